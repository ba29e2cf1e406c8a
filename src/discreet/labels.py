"""Check, sort and serialise the labels of items.

The order of a release depends on the labels alone and is total. Two different labels never tie: a tie would fall back
on the order of arrival, which can be the order of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unicodedata import combining, normalize
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError, quote

_NUMBERS = (int, float, Decimal, Fraction)
_OWN = {str, int, bool, float, bytes, Decimal, Fraction, UUID, date, datetime, time, timedelta, tuple, type(None)}

_MOST_EXPONENT = 5000
"""Decimals with an exponent of this size or more are refused: their exact comparison with others takes long."""


def unwrap_label(label: Any) -> Any:
    """Convert a scalar of NumPy or pandas, an enumeration or another subclass to Python's own type.

    A subclass may redefine comparison and hashing, and so tie two labels or order them at random.
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
    """Return True for a column of a data library: its values may be private rows, so no message shows them."""
    return type(given).__module__.partition(".")[0] in ("numpy", "pandas", "polars", "pyarrow")


def check_labels(labels: Iterable[Any], private: bool = False) -> list[Any]:
    """Return the unwrapped labels as a list; raise unless they are distinct and of types with a total order.

    With `private`, no message shows a label.
    """
    listed = [unwrap_label(label) for label in labels]
    kinds = {type(label) for label in listed}
    is_simple = kinds <= {str} or kinds <= {int}
    for label in [] if is_simple else listed:
        if not _is_ordered(label):
            raise InvalidTypeError(
                "labels must be strings, numbers, dates, times, UUIDs, bytes, None or tuples of these, "
                f"not {f'a {type(label).__name__}' if private else quote(label)}"
            )
    # Keys, not labels: in the hour in which clocks are set back, two different datetimes compare equal.
    keys = listed if is_simple else [sort_key(label) for label in listed]
    if len(set(keys)) < len(keys):
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        repeat = next(label for place, label in enumerate(listed) if first[keys[place]] != place)
        raise InvalidValueError(
            f"labels must all be different, but {'one' if private else quote(repeat)} is there twice"
        )
    return listed


def labels_at(labels: Sequence[Any] | None, places: NDArray[np.int64]) -> list[Any]:
    """Return the labels at the given positions; without labels, the positions themselves."""
    return places.tolist() if labels is None else [labels[place] for place in places.tolist()]


def sort_labels(labels: Collection[Any] | NDArray[np.int64]) -> list[Any]:
    """Sort labels as a release lists them: by type, then by value; strings by code point, numbers by size."""
    if isinstance(labels, np.ndarray):
        # A stable sort is fast here: positions consist of a few ascending runs.
        ascending: list[Any] = np.sort(labels, kind="stable").tolist()
        return ascending
    kinds = set(map(type, labels))
    # For these types Python's own order equals that of the keys, and is much faster.
    return sorted(labels) if kinds in ({int}, {str}) else sorted(labels, key=sort_key)


def sort_key(label: Any) -> tuple[Any, ...]:
    """Return a key that compares with the key of every other label and equals none of them."""
    if label is None:
        return ("",)
    if isinstance(label, _NUMBERS):
        try:
            size = float(label)
        except OverflowError:
            size = math.inf if label > 0 else -math.inf
        return ("number", size, Fraction(0) if label in (math.inf, -math.inf) else Fraction(label))
    if isinstance(label, datetime):
        # Python compares instants across time zones and clock times within one; only instants give a total order.
        instant = label if (offset := label.utcoffset()) is None else label.replace(tzinfo=None) - offset
        plain_instant = instant.replace(tzinfo=None, fold=0)
        return ("datetime", offset is not None, plain_instant, label.isoformat(), label.fold, str(label.tzinfo))
    if isinstance(label, tuple):
        return ("tuple", *(sort_key(part) for part in label))
    return (type(label).__name__, label)


def sort_for_readers(labels: Iterable[Any]) -> list[Any]:
    """Sort labels as a page lists them: texts by their letters without case and accents, others as `sort_labels` does.

    The order depends on the labels alone. That of a release in data is by code point, which puts "Äpfel" after "Zimt".

    Examples
    --------
    >>> sort_for_readers(["Zimt", "Äpfel", "apfel", "Öl", "Petersilie"])
    ['apfel', 'Äpfel', 'Öl', 'Petersilie', 'Zimt']
    """
    return sorted(labels, key=_reading_key)


def _reading_key(label: Any) -> tuple[Any, ...]:
    if isinstance(label, tuple):
        return ("tuple", *map(_reading_key, label))
    if not isinstance(label, str):
        return sort_key(label)
    letters = label.casefold()
    if not label.isascii():
        letters = "".join(letter for letter in normalize("NFKD", letters) if not combining(letter))
    return ("str", letters, label)


def _is_ordered(label: Any) -> bool:
    """Return True if `sort_key` gives the label a place among all others."""
    if isinstance(label, tuple):
        return all(map(_is_ordered, label))
    if isinstance(label, time) and label.tzinfo is not None:
        return False
    if isinstance(label, Decimal):
        return not label.is_nan() and (label.is_infinite() or abs(label.adjusted()) < _MOST_EXPONENT)
    # NaN and NaT differ from themselves; times finer than microseconds have no Python type.
    return type(label) in _OWN and bool(label == label)


def label_to_json(label: Any) -> Any:
    """Return a label as a JSON value; types that JSON lacks become an object with type and text."""
    if label is None or isinstance(label, str | bool):
        return label
    if isinstance(label, int) or (isinstance(label, float) and math.isfinite(label)):
        return label
    if isinstance(label, tuple):
        return {"type": "tuple", "value": [label_to_json(part) for part in label]}
    if isinstance(label, timedelta):
        return {"type": "timedelta", "value": [label.days, label.seconds, label.microseconds]}
    kind = next(name for name, (known, _) in _JSON_TYPES.items() if isinstance(label, known))
    if isinstance(label, bytes):
        text = label.hex()
    else:
        text = label.isoformat() if isinstance(label, date | time) else str(label)
    # When clocks are set back, 2:30 occurs twice; fold distinguishes the second.
    return {"type": kind, "value": text} | ({"fold": 1} if getattr(label, "fold", 0) else {})


def label_from_json(data: Any) -> Any:
    """Return the label from which `label_to_json` made `data`."""
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
