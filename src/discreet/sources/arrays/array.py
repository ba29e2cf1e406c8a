"""Scores in memory: mappings, lists, arrays and columns of frames. This is the reference for all sources.

`sorting` sorts or counts the scores by value, and `positions` finds the chosen items by their scores: positions are
never sorted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.labels import check_labels, is_column, labels_at, unwrap_label
from discreet.mechanisms.tally import Selection, Tally, common_unit
from discreet.sources.arrays.positions import PositionFinder
from discreet.sources.arrays.sorting import FINITE, LARGE, tally_of_array
from discreet.sources.base import Source

FRAMES = ("pandas", "polars", "pyarrow")
"""The packages whose columns have a conversion of their own."""

_NUMERIC = re.compile(r"u?int(8|16|32|64)|float(16|32|64)?|halffloat|double|bool(ean)?")
"""The machine types of columns: pandas' "Int64" and "double[pyarrow]", polars' "Float32", pyarrow's "int64"."""

_WHOLE = re.compile(r"(sparse\[)?(u?int[0-9]+|bool(ean)?|object)(, .*)?")
"""The types of whole numbers and objects: pandas' "Int64" and "Sparse[int64, 0]", polars' "UInt8" and "Object"."""

_MOST_DIGITS = 5000
"""The largest exponent of a Decimal score, so that its fraction fits memory."""


@dataclass(frozen=True, eq=False, repr=False)
class ArraySource(Source):
    """Scores in an array, with labels; without labels, the positions are the labels."""

    scores: NDArray[Any]
    labels: Sequence[Any] | None = None
    unit: Fraction = Fraction(1)
    grid: Fraction | None = None
    typed: bool = False
    between_steps: bool = False
    fractional: bool = False
    d: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", len(self.scores))

    def tally(self) -> Tally:
        return tally_of_array(self.scores, self.unit)

    def items(self, ranks: Ranks) -> list[Any]:
        return labels_at(self.labels, self._find_positions(self.tally(), Selection(ranks)))

    def draw_items(self, tally: Tally, selection: Selection) -> list[Any] | Ranks:
        positions = self._find_positions(tally, selection)
        return positions if self.labels is None else labels_at(self.labels, positions)

    def _find_positions(self, tally: Tally, selection: Selection) -> Ranks:
        if self.scores.dtype == object:
            ascending = sorted(range(self.d), key=self.scores.__getitem__)
            return np.array(ascending, np.int64)[self.d - 1 - selection.draw_ranks()]
        finder = PositionFinder(self.scores, tally)
        if selection.cuts_no_run or self.d >= LARGE:
            return finder.find_selected(selection)
        return finder.find(selection.draw_ranks())

    def every_item(self) -> list[Any]:
        return labels_at(self.labels, np.arange(self.d))

    def freeze(self) -> ArraySource:
        """Return the same with a read-only copy of the scores, which nobody else can change."""
        scores = self.scores.copy()
        scores.setflags(write=False)
        return replace(self, scores=scores)


def array_source(scores: Any, labels: Any = None) -> ArraySource:
    """Return the source of one-dimensional scores of any supported kind."""
    if _is_buffer(scores):
        failed = None
        try:
            scores = np.asarray(scores)
        except (TypeError, ValueError):
            failed = type(scores).__name__
        if failed is not None:
            raise InvalidTypeError(f"scores must be numbers, not a {failed} of another format")
    typed, fractional = is_typed(scores), is_fractional(scores)
    if isinstance(scores, Mapping):
        if labels is not None:
            raise InvalidValueError("labels must be left out when scores is a mapping, whose keys are the labels")
        scores, labels = list(scores.values()), list(scores.keys())
        if scores and hasattr(scores[0], "__len__") and not isinstance(scores[0], str | bytes):
            raise InvalidTypeError(
                f"scores must be a number for each item, not a {type(scores[0]).__name__}: "
                "for lists by group use discreet.grouped(scores, each_user=...)"
            )
    elif labels is None:
        scores, labels = _split_frame(scores)
    else:
        scores, _ = _split_frame(scores)
    values = _as_array(scores)
    listed = check_score_labels(labels, values.shape)
    # The type is public, and decides that scores are whole; their values do not.
    is_whole, unit = values.dtype.kind in "ui", None
    if values.dtype == object:
        is_whole = all(issubclass(kind, int | np.integer | np.bool_) for kind in set(map(type, scores)))
        unit = common_unit(values.tolist())
    if unit is not None:
        # Multiples of one unit sort faster than fractions.
        values = np.array([int(value / unit) for value in values.tolist()], np.int64)
    grid = Fraction(1) if is_whole else None
    return ArraySource(values, listed, unit or Fraction(1), grid, typed, fractional=fractional)


def is_typed(scores: Any) -> bool:
    """Return True for an array or a column whose declared type is a machine number, not an object."""
    dtype = getattr(scores, "dtype", getattr(scores, "type", None))
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf" and dtype.itemsize <= 8
    return _NUMERIC.fullmatch(str(dtype).lower().removesuffix("[pyarrow]")) is not None


def is_fractional(scores: Any) -> bool:
    """Return True if scores have a declared type that is neither of whole numbers nor of booleans nor of objects.

    The values decide nothing. Mappings, lists and arrays of objects declare no type of numbers.
    """
    dtype = getattr(scores, "dtype", getattr(scores, "type", None))
    if isinstance(dtype, np.dtype):
        return dtype.kind not in "biuO"
    return dtype is not None and _WHOLE.fullmatch(str(dtype).lower().removesuffix("[pyarrow]")) is None


def check_score_labels(labels: Any, shape: tuple[int, ...]) -> Sequence[Any] | None:
    """Return the checked labels, or None; raise unless the shape of the scores has one dimension and is not empty."""
    if len(shape) != 1:
        raise InvalidValueError(f"scores must have one dimension, not {len(shape)}")
    (length,) = shape
    if not length:
        raise InvalidValueError("scores must hold at least one item, not none")
    if labels is None:
        return None
    listed = check_label_list(labels)
    if len(listed) != length:
        raise InvalidValueError(f"labels must be as many as the scores, {length}, not {len(listed)}")
    return listed


class CheckedLabels(list[Any]):
    """Labels that were checked, so that many arrays can share them."""


def check_label_list(labels: Any) -> CheckedLabels:
    """Return the checked labels of a list of any kind."""
    if isinstance(labels, CheckedLabels):
        return labels
    if isinstance(labels, str | bytes | Mapping | set | frozenset) or not isinstance(labels, Iterable):
        raise InvalidTypeError(f"labels must be a list with one label for each score, not a {type(labels).__name__}")
    values = labels
    if hasattr(labels, "to_pylist"):
        values = labels.to_pylist()
    elif type(labels).__module__.partition(".")[0] == "pandas" and hasattr(labels, "tolist"):
        # NumPy's tolist would turn dates into numbers, so arrays stay as they are.
        values = labels.tolist()
    return CheckedLabels(check_labels(values, private=is_column(labels)))


def _split_frame(scores: Any) -> tuple[Any, Any]:
    """Return one-dimensional data of pandas, polars or pyarrow as (scores, labels), anything else unchanged.

    Only a library that is already imported can have made the object, so none is imported here.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(scores, pandas.Series):
        default = scores.index.equals(pandas.RangeIndex(len(scores)))
        return _column_values(scores), None if default else scores.index
    package = type(scores).__module__.partition(".")[0]
    if package not in sys.modules or package not in FRAMES:
        return scores, None
    kind = type(scores).__name__
    if kind in ("DataFrame", "LazyFrame", "Table", "RecordBatch"):
        raise InvalidTypeError(f"scores must be one column, not a {package} {kind}: pass the column that holds them")
    # Objects without a length or a count of nulls, such as pandas' NA or a pyarrow scalar, are not columns.
    counts_nulls = hasattr(scores, "__len__") and (hasattr(scores, "isna") or hasattr(scores, "null_count"))
    return _column_values(scores) if counts_nulls else scores, None


def _column_values(column: Any) -> Any:
    """Return the values of a pandas, polars or pyarrow column, which must not hold nulls."""
    nulls = column.isna().sum() if hasattr(column, "isna") else column.null_count
    if nulls() if callable(nulls) else nulls:
        raise InvalidValueError(FINITE)
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    try:
        if "decimal" not in kind:
            return np.asarray(column)
        return column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    except Exception:
        failed = kind
    # Raised outside the handler, because the library's own message may quote a score.
    raise InvalidTypeError(f"scores must be a column of numbers, not of {failed}")


def _as_array(scores: Any) -> NDArray[Any]:
    """Return scores as an array of whole numbers, of floats, or of Fractions if neither holds them exactly."""
    if isinstance(scores, str | bytes) or not hasattr(scores, "__len__"):
        kind = type(scores).__name__
        raise InvalidTypeError(f"scores must be a mapping, a list or a one-dimensional array, not a {kind}")
    # Access to np.ma imports it, so plain arrays skip this check.
    if isinstance(scores, np.ndarray) and type(scores) is not np.ndarray and isinstance(scores, np.ma.MaskedArray):
        if np.ma.getmaskarray(scores).any():
            raise InvalidValueError(FINITE)
        scores = scores.data
    if not isinstance(scores, np.ndarray):
        if isinstance(scores, set | frozenset):
            raise InvalidTypeError("scores must be a mapping, a list or a one-dimensional array, not a set")
        return _from_list(list(scores))
    if scores.dtype == object:
        return _from_list(scores.tolist()) if scores.ndim == 1 else scores
    if scores.dtype.kind in "bui":
        return scores.view(np.uint8) if scores.dtype.kind == "b" else _to_native_order(scores)
    if scores.dtype.kind == "f" and scores.dtype.itemsize <= 8:
        return scores.astype(np.float32) if scores.dtype.itemsize == 2 else _to_native_order(scores)
    if scores.dtype.kind == "f":
        return _from_list(list(scores)) if scores.ndim == 1 else scores
    raise InvalidTypeError(f"scores must be numbers, not an array of {scores.dtype}")


def _is_buffer(scores: Any) -> bool:
    """Return True for memory with a format, such as an array of Python or ctypes, or an object with `__array__`."""
    is_frame = type(scores).__module__.partition(".")[0] in FRAMES
    if is_frame or isinstance(scores, bytes | bytearray) or hasattr(scores, "dtype"):
        return False
    try:
        return memoryview(scores).ndim > 0
    except TypeError:
        return hasattr(scores, "__array__")


def _to_native_order(scores: NDArray[Any]) -> NDArray[Any]:
    """Return the array in the byte order of the machine."""
    return scores if scores.dtype.isnative else scores.astype(scores.dtype.newbyteorder("="), copy=False)


def _from_list(values: list[Any]) -> NDArray[Any]:
    """Return an array that holds a list of numbers exactly."""
    kinds = {type(value) for value in values}
    if kinds <= {int, bool} and all(-(2**63) <= value < 2**63 for value in values):
        return np.array(values, np.int64)
    if kinds <= {float, np.float64}:
        return np.array(values, np.float64)
    exact = np.empty(len(values), object)
    for i, value in enumerate(values):
        exact[i] = _to_fraction(value)
    return exact


def _to_fraction(value: Any) -> Fraction:
    number = unwrap_label(value)
    if isinstance(number, list | tuple | np.ndarray):
        raise InvalidValueError("scores must have one dimension, not more")
    if not isinstance(number, int | float | Fraction | Decimal | np.longdouble):
        raise InvalidTypeError(f"scores must be numbers, not values of type {type(value).__name__}")
    if isinstance(number, Decimal) and number.is_finite() and abs(number.adjusted()) > _MOST_DIGITS:
        raise InvalidValueError(f"scores must be numbers of at most {_MOST_DIGITS} digits, and one has more")
    try:
        return Fraction(*number.as_integer_ratio())
    except (ValueError, OverflowError):
        raise InvalidValueError(FINITE) from None
