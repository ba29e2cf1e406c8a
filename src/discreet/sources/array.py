"""Scores that the caller holds: mappings, lists, arrays and one-dimensional frames. The reference for all sources.

Whole numbers are sorted once as 64-bit keys with the item's position in the low bits, so that the sorted keys are the
tally and the way back to the items at once. Other scores are sorted by value, by which the chosen ones are found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.exact.entropy import Ranks
from discreet.sources.base import Source
from discreet.sources.labels import check_labels, plain
from discreet.tally import Column, ExactColumn, FloatColumn, IntegerColumn, Tally, common_unit

_FINITE = "scores must be finite numbers, and one of them is not; drop or replace it before the call"
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False, repr=False)
class ArraySource(Source):
    """Scores in an array, with labels or, without, the positions as labels."""

    scores: NDArray[Any]
    labels: Sequence[Any] | None = None
    unit: Fraction = Fraction(1)
    grid: Fraction | None = None

    @property
    def d(self) -> int:
        return len(self.scores)

    def tally(self) -> Tally:
        return Tally(self._column)

    def items(self, ranks: Ranks) -> list[Any]:
        return self._named(self._places(self.d - 1 - ranks))

    def every_item(self) -> list[Any]:
        return self._named(np.arange(self.d))

    @cached_property
    def _column(self) -> Column:
        return _sorted_column(self.scores, self.unit)

    def _named(self, places: Ranks) -> list[Any]:
        labels = self.labels
        return places.tolist() if labels is None else [labels[place] for place in places.tolist()]

    def _places(self, positions: Ranks) -> Ranks:
        """Where in the input the entries of the sorted column are; equal scores are there by position."""
        column = self._column
        if isinstance(column, IntegerColumn) and column.shift:
            mask = np.uint64((1 << column.shift) - 1)
            return (column.keys[positions] & mask).astype(np.int64)
        if isinstance(column, IntegerColumn):
            return _found_by_value(_less(self.scores, column.low), column.keys, positions)
        if isinstance(column, FloatColumn):
            return _found_by_value(self.scores, column.values, positions)
        return np.array(sorted(range(self.d), key=self.scores.__getitem__), np.int64)[positions]


def array_source(scores: Any, labels: Any = None) -> ArraySource:
    """The source behind whatever one-dimensional scores a caller may hold."""
    if isinstance(scores, Mapping):
        if labels is not None:
            raise InvalidValueError("labels must be left out when scores is a mapping, whose keys are the labels")
        scores, labels = list(scores.values()), list(scores.keys())
    elif labels is None:
        scores, labels = _frame_parts(scores)
    else:
        scores, _ = _frame_parts(scores)
    values = _as_array(scores)
    if values.ndim != 1:
        raise InvalidValueError(f"scores must have one dimension, not {values.ndim}")
    if not len(values):
        raise InvalidValueError("scores must hold at least one item, not none")
    named = None if labels is None else _checked(labels, len(values))
    gridded, unit = _on_a_grid(values)
    return ArraySource(gridded, named, unit, Fraction(1) if _is_whole(scores, values) else None)


def _checked(labels: Any, length: int) -> Sequence[Any]:
    if isinstance(labels, str | bytes | Mapping | set | frozenset) or not isinstance(labels, Iterable):
        raise InvalidTypeError(f"labels must be a list with one label for each score, not a {type(labels).__name__}")
    listed = check_labels(labels.to_pylist() if hasattr(labels, "to_pylist") else labels)
    if len(listed) != length:
        raise InvalidValueError(f"labels must be as many as the scores, {length}, not {len(listed)}")
    return listed


def _frame_parts(scores: Any) -> tuple[Any, Any]:
    """One-dimensional data of pandas, polars or pyarrow as (scores, labels); anything else as it is.

    Only a library that is already imported can have made the object, so none is imported here.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(scores, pandas.Series):
        default = scores.index.equals(pandas.RangeIndex(len(scores)))
        return _values(scores), None if default else scores.index.tolist()
    package = type(scores).__module__.partition(".")[0]
    if package not in sys.modules or package not in ("pandas", "polars", "pyarrow"):
        return scores, None
    kind = type(scores).__name__
    if kind in ("DataFrame", "LazyFrame", "Table", "RecordBatch"):
        raise InvalidTypeError(f"scores must be one column, not a {package} {kind}: pass the column that holds them")
    # What has no length or cannot say whether it holds nulls, pandas' NA or a pyarrow scalar, is no column.
    is_column = hasattr(scores, "__len__") and (hasattr(scores, "isna") or hasattr(scores, "null_count"))
    return _values(scores) if is_column else scores, None


def _values(column: Any) -> Any:
    """The values of a pandas, polars or pyarrow column, which must not hold nulls."""
    nulls = column.isna().sum() if hasattr(column, "isna") else column.null_count
    if nulls() if callable(nulls) else nulls:
        raise InvalidValueError(_FINITE)
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    try:
        if "decimal" not in kind:
            return np.asarray(column)
        return column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    except Exception:
        failed = kind
    # Raised outside the handler: the library's own words may quote a score.
    raise InvalidTypeError(f"scores must be a column of numbers, not of {failed}")


def _as_array(scores: Any) -> NDArray[Any]:
    """Scores as an array of whole numbers, of float64, or of Fractions where neither holds them exactly."""
    if isinstance(scores, str | bytes) or not hasattr(scores, "__len__"):
        kind = type(scores).__name__
        raise InvalidTypeError(f"scores must be a mapping, a list or a one-dimensional array, not a {kind}")
    # To ask for a masked array imports what makes them, so plain ones are not asked about.
    if isinstance(scores, np.ndarray) and type(scores) is not np.ndarray and isinstance(scores, np.ma.MaskedArray):
        if np.ma.getmaskarray(scores).any():
            raise InvalidValueError(_FINITE)
        scores = scores.data
    if not isinstance(scores, np.ndarray):
        if isinstance(scores, set | frozenset):
            raise InvalidTypeError("scores must be a mapping, a list or a one-dimensional array, not a set")
        return _from_list(list(scores))
    if scores.dtype == object:
        return _from_list(scores.tolist()) if scores.ndim == 1 else scores
    if scores.dtype.kind in "bui":
        return scores.view(np.uint8) if scores.dtype.kind == "b" else scores
    if scores.dtype.kind == "f" and scores.dtype.itemsize <= 8:
        return scores.astype(np.float64, copy=False)
    if scores.dtype.kind == "f":
        return _from_list(list(scores)) if scores.ndim == 1 else scores
    raise InvalidTypeError(f"scores must be numbers, not an array of {scores.dtype}")


def _from_list(values: list[Any]) -> NDArray[Any]:
    """An array that holds a list of numbers exactly."""
    kinds = {type(value) for value in values}
    if kinds <= {int, bool} and all(-(2**63) <= value < 2**63 for value in values):
        return np.array(values, np.int64)
    if kinds <= {float, np.float64}:
        return np.array(values, np.float64)
    exact = np.empty(len(values), object)
    for i, value in enumerate(values):
        exact[i] = _fraction(value)
    return exact


def _fraction(value: Any) -> Fraction:
    number = plain(value)
    if isinstance(number, list | tuple | np.ndarray):
        raise InvalidValueError("scores must have one dimension, not more")
    if not isinstance(number, int | float | Fraction | Decimal | np.longdouble):
        raise InvalidTypeError(f"scores must be numbers, not values of type {type(value).__name__}")
    if isinstance(number, Decimal) and number.is_finite() and abs(number.adjusted()) > 5000:
        raise InvalidValueError("scores must be numbers of at most 5000 digits, and one has more")
    try:
        return Fraction(*number.as_integer_ratio())
    except (ValueError, OverflowError):
        raise InvalidValueError(_FINITE) from None


def _is_whole(scores: Any, values: NDArray[Any]) -> bool:
    """Whether the scores are whole numbers by their type, which is public, and not only by their values."""
    if values.dtype == object:
        return all(issubclass(kind, int | np.integer | np.bool_) for kind in set(map(type, scores)))
    return values.dtype.kind in "ui"


def _on_a_grid(values: NDArray[Any]) -> tuple[NDArray[Any], Fraction]:
    """Rationals as whole multiples of a unit where that can be, which is how decimals are sorted fast."""
    unit = common_unit(values.tolist()) if values.dtype == object else None
    if unit is None:
        return values, Fraction(1)
    return np.array([int(value / unit) for value in values.tolist()], np.int64), unit


def _sorted_column(scores: NDArray[Any], unit: Fraction) -> Column:
    if scores.dtype == object:
        return ExactColumn(sorted(scores.tolist()))
    if scores.dtype.kind == "f":
        ordered = np.sort(scores)
        if not (np.isfinite(ordered[0]) and np.isfinite(ordered[-1])):
            raise InvalidValueError(_FINITE)
        return FloatColumn(ordered)
    shift = max(1, (len(scores) - 1).bit_length())
    # Most scores are small and not negative, which packing finds out by itself; else their range is looked up.
    if (keys := _packed(scores, 0, shift)) is not None:
        return IntegerColumn(keys, shift, 0, unit)
    low = int(scores.min())
    if (keys := _packed(scores, low, shift)) is not None:
        return IntegerColumn(keys, shift, low, unit)
    lowest = 0 if scores.dtype.kind == "u" else -(2**63)
    return IntegerColumn(np.sort(_less(scores, lowest)), 0, lowest, unit)


def _less(scores: NDArray[Any], low: int) -> NDArray[np.uint64]:
    """Whole numbers less a lower bound on them: unsigned subtraction wraps to the right difference."""
    return _bits(scores) - np.uint64(low % 2**64)


def _bits(scores: NDArray[Any]) -> NDArray[np.uint64]:
    """The 64 bits of each whole number; a view where it has that many."""
    return scores.astype(np.uint64 if scores.dtype.kind == "u" else np.int64, copy=False).view(np.uint64)


def _packed(scores: NDArray[Any], low: int, shift: int) -> NDArray[np.uint64] | None:
    """Sorted keys with the score less `low` in the high bits and the position in the low ones, or None if too wide."""
    keys = np.empty(len(scores), np.uint64)
    positions = np.arange(min(_BLOCK, len(scores)), dtype=np.uint64)
    base, limit = np.uint64(low % 2**64), np.uint64(2 ** (64 - shift) - 1)
    for start in range(0, len(scores), _BLOCK):
        bits, block = _bits(scores[start : start + _BLOCK]), keys[start : start + _BLOCK]
        # Unsigned subtraction wraps to the right difference; a score below `low` wraps beyond the limit.
        bits = bits - base if low else bits
        if bits.max() > limit:
            return None
        np.left_shift(bits, np.uint64(shift), out=block)
        block += positions[: len(block)]
        positions += np.uint64(_BLOCK)
    keys.sort()
    return keys


def _found_by_value(scores: NDArray[Any], ordered: NDArray[Any], positions: Ranks) -> Ranks:
    """Where in `scores` the entries at these positions of the sorted copy are; equal ones by position."""
    wanted = ordered[positions]
    values = np.unique(wanted)
    candidates = np.flatnonzero((scores >= values[0]) & (scores <= values[-1]))
    if len(candidates) > 4 * len(positions):
        near = np.minimum(np.searchsorted(values, scores[candidates]), len(values) - 1)
        candidates = candidates[values[near] == scores[candidates]]
    candidates = candidates[np.argsort(scores[candidates], kind="stable")]
    begins = np.searchsorted(scores[candidates], wanted, side="left")
    found: Ranks = candidates[begins + positions - np.searchsorted(ordered, wanted, side="left")]
    return found
