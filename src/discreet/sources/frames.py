"""A pandas frame as an Arrow table, cell by cell where pandas has guessed what a column holds.

The types that pandas gives by itself follow from the rows: one gap makes floats of whole numbers, one text makes
objects of everything. Such columns are read by their cells, and whole numbers as the floats that a gap would make of
them. Users alone keep all their digits: a row without a user is nobody's. Nullable types (Int64, Float64, boolean,
string) and those of Arrow were declared by somebody, and are what they say.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import inf
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from discreet.sources.cells import LARGEST_EXACT

MIXED = pa.struct([("text", pa.string()), ("number", pa.float64()), ("other", pa.string())])
"""The Arrow type of a column of mixed cells."""

Cell = tuple[str | None, float | None, str | None]
MISSING: Cell = (None, None, None)


def frame_to_arrow(frame: Any, wanted: Collection[str], user: str | None = None) -> tuple[pa.Table, frozenset[str]]:
    """The wanted columns of a pandas frame, all others empty, and the names of those without a declared type.

    Parameters
    ----------
    frame
        The pandas frame.
    wanted
        The columns that will be asked for.
    user
        The one of them that tells users apart.
    """
    guessed = frozenset(str(name) for name, dtype in zip(frame.columns, frame.dtypes, strict=True) if _is_guess(dtype))
    folded = {name.casefold() for name in wanted}
    names = [str(name) for name in frame.columns]
    arrays = [
        _column(frame.iloc[:, place], exact=name == user) if name.casefold() in folded else pa.nulls(len(frame))
        for place, name in enumerate(names)
    ]
    return pa.Table.from_arrays(arrays, names=names), guessed


def is_float_column(frame: Any, name: str) -> bool:
    """Whether a column of a pandas frame is of NumPy's floats, in which large whole numbers have been merged."""
    found = [dtype for column, dtype in zip(frame.columns, frame.dtypes, strict=True) if str(column) == name]
    return bool(found) and isinstance(found[0], np.dtype) and found[0].kind == "f"


def _is_guess(dtype: Any) -> bool:
    """Whether pandas gives this type by itself: those of NumPy, categories, and text with NaN for gaps."""
    import pandas as pd

    if isinstance(dtype, pd.StringDtype):
        return dtype.na_value is not pd.NA
    declared = isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "na_value", None) is pd.NA
    return not declared


def _is_plain(dtype: Any) -> bool:
    """Whether a type that pandas has guessed reads the same as a whole and cell by cell."""
    import pandas as pd

    if isinstance(dtype, np.dtype):
        return dtype.kind in "iubM" or dtype in (np.float32, np.float64)
    return isinstance(dtype, pd.StringDtype | pd.DatetimeTZDtype)


def _column(series: Any, exact: bool) -> Any:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        return _column(pd.Series(series.cat.categories.to_numpy()), exact).take(codes)
    guessed = _is_guess(series.dtype)
    if guessed and not _is_plain(series.dtype):
        return _objects(series.astype(object).to_numpy(), exact)
    if guessed and not exact and isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu":
        series = series.astype("float64")
    try:
        found = pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError):
        cells = _objects(series.astype(object).to_numpy(), exact)
        return cells if guessed else cells.field("text")
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return _whole_microseconds(found)


def _whole_microseconds(column: Any) -> Any:
    """Timestamps in the one resolution that Python has too."""
    if not pa.types.is_timestamp(column.type):
        return column
    # What is finer is cut off, here and in _moment.
    return column.cast(pa.timestamp("us", column.type.tz), safe=False)


def _objects(values: Any, exact: bool) -> Any:
    """Objects of Python as text where all of them are, else as mixed cells."""
    try:
        return pa.array(values, pa.string(), from_pandas=True)
    except (pa.ArrowException, UnicodeError, TypeError, ValueError):
        cells = [_cell(value, exact) for value in values]
    fields = [pa.array([cell[place] for cell in cells], field.type) for place, field in enumerate(MIXED)]
    return pa.StructArray.from_arrays(fields, fields=list(MIXED))


def _cell(value: Any, exact: bool) -> Cell:
    """The spelling of an object, or the number and a name for one that has none; all missing for anything else."""
    if isinstance(value, bool | np.bool_):
        return _spelled("true" if value else "false")
    if isinstance(value, int | np.integer):
        return _integer_cell(int(value), exact)
    if isinstance(value, float | np.floating):
        return _float_cell(float(value))
    if isinstance(value, Decimal):
        return _decimal_cell(value)
    return (None, None, str(value)) if _is_span(value) else _spelled(_text(value))


def _spelled(text: str | None) -> Cell:
    return text, None, None


def _text(value: Any) -> str | None:
    """The spelling of an object that is no number; None where it has none."""
    if isinstance(value, str):
        return _proper_text(value)
    if isinstance(value, bytes):
        return _decoded(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return _moment(value)
    return value.isoformat() if isinstance(value, date) else None


def _is_span(value: Any) -> bool:
    """Whether an object is a span or a time of the day, which are users at most."""
    import pandas as pd

    return isinstance(value, timedelta | time | pd.Period | pd.Interval)


def _integer_cell(number: int, exact: bool) -> Cell:
    if abs(number) <= LARGEST_EXACT:
        return _spelled(str(number))
    if exact:
        # Python writes no number of thousands of digits as text.
        return _spelled(str(number) if abs(number) < 10**100 else None)
    return _float_cell(float(number) if abs(number) < 10**308 else inf if number > 0 else -inf)


def _proper_text(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _float_cell(number: float) -> Cell:
    if number != number:
        return MISSING
    digits = str(int(number)) if number.is_integer() else repr(number)
    return _spelled(digits) if number.is_integer() and abs(number) <= LARGEST_EXACT else (None, number, digits)


def _decimal_cell(number: Decimal) -> Cell:
    if number.is_nan():
        return MISSING
    whole = number.is_finite() and number.adjusted() < 40 and number == number.to_integral_value()
    return _spelled(str(int(number))) if whole else (None, float(number), str(number))


def _moment(moment: datetime) -> str | None:
    """A timestamp as DuckDB spells it, at midnight as its date, with a zone in UTC; pandas' NaT is none."""
    if moment != moment:
        return None
    if moment.tzinfo is None:
        return _to_the_microsecond(moment).removesuffix(" 00:00:00")
    try:
        return f"{_to_the_microsecond(moment.astimezone(UTC))}+00"
    except (OverflowError, ValueError):
        return None


def _to_the_microsecond(moment: datetime) -> str:
    return str(moment.isoformat(sep=" ", timespec="microseconds"))[:26].rstrip("0").rstrip(".")
