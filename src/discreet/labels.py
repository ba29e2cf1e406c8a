"""Labels of items: which are allowed, the one order in which a release lists them, and how JSON holds them.

The order depends on the labels alone and is total: two different labels never tie, because a tie would be broken by
the order in which they came, and that can be the order of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError, quote

_NUMBERS = (int, float, Decimal, Fraction)
_PLAIN = (str, bytes, UUID)
_OWN = {str, int, bool, float, bytes, Decimal, Fraction, UUID, date, datetime, time, timedelta, tuple, type(None)}
_NONE = object()


def unwrap_label(label: Any) -> Any:
    """A label as Python's own type: scalars of NumPy and pandas, enumerations and other subclasses are unwrapped.

    What a subclass makes of comparison and hashing could tie two labels or order them by chance.
    """
    if isinstance(label, np.datetime64 | np.timedelta64):
        whole = label.astype(label.dtype.str[:2] + "8[us]")
        return whole.item() if whole == label else label
    if isinstance(label, np.generic):
        return label.item()
    if type(label) in _OWN:
        return tuple(map(unwrap_label, label)) if isinstance(label, tuple) else label
    if hasattr(label, "to_pydatetime") and label == label and not label.nanosecond:
        return label.to_pydatetime()
    if hasattr(label, "to_pytimedelta") and label == label and not label.nanoseconds:
        return label.to_pytimedelta()
    if isinstance(label, str):
        return str.__str__(label)
    if isinstance(label, int):
        return int.__int__(label)
    if isinstance(label, tuple):
        return tuple(map(unwrap_label, label))
    return label


def is_column(given: Any) -> bool:
    """Whether a list is a column of data, whose values no message shows: it may turn out to be of private rows."""
    return type(given).__module__.partition(".")[0] in ("numpy", "pandas", "polars", "pyarrow")


def check_labels(labels: Iterable[Any], private: bool = False) -> list[Any]:
    """The labels as a list, which must be hashable, different from each other, and of types with an order.

    Where they are private, no message shows one.
    """
    listed = [unwrap_label(label) for label in labels]
    kinds = {type(label) for label in listed}
    simple = kinds <= {str} or kinds <= {int}
    unordered = None if simple else next((label for label in listed if not _is_ordered(label)), _NONE)
    if not simple and unordered is not _NONE:
        raise InvalidTypeError(
            "labels must be strings, numbers, dates, times, UUIDs, bytes, None or tuples of these, "
            f"not {f'a {type(unordered).__name__}' if private else quote(unordered)}"
        )
    # Keys differ where labels do; equality itself knows nothing of the two hours of a clock that is set back.
    keys = listed if simple else [sort_key(label) for label in listed]
    if len(set(keys)) < len(keys):
        repeated = "one" if private else quote(_first_repeat(keys, listed))
        raise InvalidValueError(f"labels must all be different, but {repeated} is there twice")
    return listed


def labels_at(labels: Sequence[Any] | None, places: NDArray[np.int64]) -> list[Any]:
    """The labels at some positions, which are their own labels where there are none."""
    return places.tolist() if labels is None else [labels[place] for place in places.tolist()]


def sort_labels(labels: Collection[Any] | NDArray[np.int64]) -> list[Any]:
    """Labels in the order of a release: by kind, then by value; strings by code point, numbers by size."""
    if isinstance(labels, np.ndarray):
        # Positions come in a few pieces that are in order.
        ascending: list[Any] = np.sort(labels, kind="stable").tolist()
        return ascending
    kinds = set(map(type, labels))
    # Within these kinds Python's own order is the one of the keys, and much faster.
    return sorted(labels) if kinds in ({int}, {str}) else sorted(labels, key=sort_key)


def sort_key(label: Any) -> tuple[Any, ...]:
    """A key that compares with every other and differs for different labels."""
    if label is None:
        return ("",)
    if isinstance(label, _NUMBERS):
        return ("number", _float(label), Fraction(0) if _is_infinite(label) else Fraction(label))
    if isinstance(label, datetime):
        # Across time zones Python compares instants, within one the clock: only instants make one order.
        instant = label if (offset := label.utcoffset()) is None else label.replace(tzinfo=None) - offset
        plain_instant = instant.replace(tzinfo=None, fold=0)
        return ("datetime", offset is not None, plain_instant, label.isoformat(), label.fold, str(label.tzinfo))
    if isinstance(label, tuple):
        return ("tuple", *(sort_key(part) for part in label))
    return (type(label).__name__, label)


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _is_infinite(number: Any) -> bool:
    return number.is_infinite() if isinstance(number, Decimal) else isinstance(number, float) and math.isinf(number)


def _is_ordered(label: Any) -> bool:
    if isinstance(label, tuple):
        return all(map(_is_ordered, label))
    if isinstance(label, time) and label.tzinfo is not None:
        return False
    if isinstance(label, Decimal):
        return not label.is_nan() and (label.is_infinite() or abs(label.adjusted()) < 5000)
    # NaN and NaT differ from themselves, and finer times than microseconds have no Python type.
    return type(label) in _OWN and bool(label == label)


def _first_repeat(keys: list[Any], labels: list[Any]) -> Any:
    seen = set()
    for key, label in zip(keys, labels, strict=True):
        if key in seen:
            return label
        seen.add(key)
    return None


def label_to_json(label: Any) -> Any:
    """A label as JSON holds it; what JSON has no type for becomes an object with its type and text."""
    if label is None or isinstance(label, str | bool):
        return label
    if isinstance(label, int) or (isinstance(label, float) and math.isfinite(label)):
        return label
    if isinstance(label, tuple):
        return {"type": "tuple", "value": [label_to_json(part) for part in label]}
    if isinstance(label, timedelta):
        return {"type": "timedelta", "value": [label.days, label.seconds, label.microseconds]}
    kind = next(name for name, (known, _) in _JSON_TYPES.items() if isinstance(label, known))
    # The second 2:30 of a night on which clocks are put back is another label than the first.
    later = {"fold": 1} if getattr(label, "fold", 0) else {}
    return {"type": kind, "value": label.hex() if isinstance(label, bytes) else _label_text(label), **later}


def _label_text(label: Any) -> str:
    return str(label.isoformat()) if isinstance(label, date | time) else str(label)


def label_from_json(data: Any) -> Any:
    """The label that `label_to_json` wrote."""
    if not isinstance(data, dict):
        return data
    if data["type"] == "tuple":
        return tuple(label_from_json(part) for part in data["value"])
    if data["type"] == "timedelta":
        return timedelta(*data["value"])
    label = _JSON_TYPES[data["type"]][1](data["value"])
    return label.replace(fold=1) if data.get("fold") == 1 else label


_JSON_TYPES: dict[str, tuple[type, Any]] = {
    "datetime": (datetime, datetime.fromisoformat),
    "date": (date, date.fromisoformat),
    "time": (time, time.fromisoformat),
    "decimal": (Decimal, Decimal),
    "fraction": (Fraction, Fraction),
    "float": (float, float),
    "bytes": (bytes, bytes.fromhex),
    "uuid": (UUID, UUID),
}
