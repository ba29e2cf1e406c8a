"""Labels of items: which are allowed, and the one order in which a release lists them.

The order depends on the labels alone and is total: two different labels never tie, because a tie would be broken by
the order in which they came, and that can be the order of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, shown

_NUMBERS = (int, float, Decimal, Fraction)
_PLAIN = (str, bytes, UUID)


def plain(label: Any) -> Any:
    """A label as Python's own type: scalars of NumPy and pandas are unwrapped where nothing is lost."""
    if isinstance(label, np.datetime64 | np.timedelta64):
        whole = label.astype(label.dtype.str[:2] + "8[us]")
        return whole.item() if whole == label else label
    if isinstance(label, np.generic):
        return label.item()
    if hasattr(label, "to_pydatetime") and label == label and not label.nanosecond:
        return label.to_pydatetime()
    return label


def check_labels(labels: Iterable[Any]) -> list[Any]:
    """The labels as a list, which must be hashable, different from each other, and of types with an order."""
    listed = [plain(label) for label in labels]
    try:
        distinct = set(listed)
    except TypeError:
        raise InvalidTypeError("labels must be hashable, such as strings, numbers, dates or tuples of them") from None
    kinds = {type(label) for label in distinct}
    if kinds <= {str} or kinds <= {int}:
        unordered = None
    else:
        unordered = next((label for label in listed if not _is_ordered(label)), None)
    if unordered is not None:
        raise InvalidTypeError(
            "labels must be strings, numbers, dates, times, UUIDs, bytes, None or tuples of these, "
            f"not {shown(unordered)}"
        )
    if len(distinct) < len(listed):
        raise InvalidValueError(f"labels must all be different, but {shown(_first_repeat(listed))} is there twice")
    return listed


def in_order(labels: Collection[Any]) -> list[Any]:
    """Labels in the order of a release: by kind, then by value; strings by code point, numbers by size."""
    listed, kinds = list(labels), set(map(type, labels))
    # Within these kinds Python's own order is the one of the keys, and much faster.
    if kinds == {int}:
        try:
            ordered: list[Any] = np.sort(np.array(listed, np.int64)).tolist()
        except OverflowError:
            ordered = sorted(listed)
        return ordered
    return sorted(listed) if kinds == {str} else sorted(listed, key=sort_key)


def sort_key(label: Any) -> tuple[Any, ...]:
    """A key that compares with every other and differs for different labels."""
    if label is None:
        return ("",)
    if isinstance(label, _NUMBERS):
        return ("number", _float(label), Fraction(0) if _is_infinite(label) else Fraction(label))
    if isinstance(label, datetime):
        return ("datetime", label.tzinfo is not None, label)
    if isinstance(label, date | time | timedelta):
        return (type(label).__name__, label)
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
        return not label.is_nan()
    known = label is None or isinstance(label, (*_NUMBERS, *_PLAIN, date, time, timedelta))
    # NaN and NaT differ from themselves, and finer times than microseconds have no Python type.
    return known and bool(label == label) and not getattr(label, "nanosecond", 0)


def _first_repeat(labels: list[Any]) -> Any:
    seen = set()
    for label in labels:
        if label in seen:
            return label
        seen.add(label)
    return None
