"""A matrix of features and a column of targets, read cell by cell.

What becomes of a cell depends on that cell and on the type of its array, which is public, and on no other cell: one
odd row must not change what the others count for. So lists are not left to NumPy, which makes text of all cells where
one is text. No value raises or warns, and no value is ever shown in an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.exact.arrays import Floats

_BLOCK = 2**20
"""How many cells are turned into numbers at a time."""

_FAMILIES = {**dict.fromkeys("biuf", "numbers"), "U": "text", "S": "bytes", "O": None, "c": None}
_POLARS_FAMILIES = {**dict.fromkeys(("String", "Categorical", "Enum"), "text"), "Object": None, "Null": None}

_READABLE = (Real, np.bool_, Decimal, str, bytes)


def matrix(X: Any, name: str = "X") -> Any:
    """What holds rows of features, as an array of two dimensions or a sparse one; its cells are left as they are."""
    array = _real(X.tocsr(), name) if hasattr(X, "tocsr") else as_array(X, name)
    if array.ndim != 2:
        raise InvalidValueError(
            f"Reshape your data: {name} must have two dimensions, rows and features, not {array.ndim}"
        )
    _check_readable(array, name)
    return array


def as_array(values: Any, name: str) -> Any:
    """An array, frame or column as an array of its own type, anything else as an array of Python objects."""
    kind = type(values).__name__
    try:
        array = np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, dtype=object)
    except Exception:
        array = None
    # Raised outside the handler: the words of another library may quote a value.
    if array is None:
        raise InvalidTypeError(f"{name} must be an array, a data frame or a list, not a {kind}")
    return _real(array, name)


def declared_family(column: Any) -> str | None:
    """What a column was declared to hold: "numbers", "text", "bytes" or a type by its name; None for anything.

    Columns of pandas and polars are asked themselves. What NumPy makes of them may depend on whether a cell is missing,
    and an error that follows from that would tell.
    """
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "is_numeric"):
        return _family_in_polars(dtype)
    if hasattr(dtype, "categories"):
        return declared_family(dtype.categories)
    if getattr(dtype, "type", None) is str:
        return "text"
    kind = getattr(dtype, "kind", "O")
    return _FAMILIES.get(kind, str(dtype))


def _family_in_polars(dtype: Any) -> str | None:
    name = str(dtype.base_type())
    if dtype.is_numeric() or name == "Boolean":
        return "numbers"
    return _POLARS_FAMILIES.get(name, name)


def blocks(X: Any, y: NDArray[Any]) -> Iterator[tuple[Floats, NDArray[Any]]]:
    """Some rows at a time: their features as numbers, and their targets."""
    rows = max(1, _BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], rows):
        block = X[start : start + rows]
        yield numbers(block.toarray() if hasattr(block, "toarray") else block, "X"), y[start : start + rows]


def numbers(cells: NDArray[Any], name: str) -> Floats:
    """Cells as floats; what is no number is NaN, and what is too large is infinite."""
    _check_readable(cells, name)
    if cells.dtype.kind in "biuf":
        # Whether a wide float overflows depends on the value: no setting may turn that into an error.
        with np.errstate(all="ignore"):
            return cells.astype(np.float64)
    return np.array([_number(cell) for cell in cells.ravel().tolist()], np.float64).reshape(cells.shape)


def _number(cell: Any) -> float:
    if not isinstance(cell, _READABLE):
        return nan
    try:
        return float(cell)
    except OverflowError:
        return inf if cell > 0 else -inf  # type: ignore[operator]  # text does not overflow
    except Exception:  # whatever a type of the caller's makes of it
        return nan


def _real(array: Any, name: str) -> Any:
    """The array, unless its type is complex: scikit-learn would refuse that too, and show the values."""
    if array.dtype.kind == "c":
        raise InvalidValueError(f"Complex data not supported: {name} must hold real numbers, not {array.dtype}")
    return array


def _check_readable(array: Any, name: str) -> None:
    if array.dtype.kind not in "biufOUS":
        raise InvalidTypeError(f"{name} must hold numbers, not values of the type {array.dtype}")
