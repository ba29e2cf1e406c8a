"""Frames as DuckDB can read them: cell by cell where pandas has guessed what a column holds, and without broken text.

The types that pandas gives by itself follow from the rows: one gap makes floats of whole numbers, one text makes
objects of everything. Such columns are read by their cells, and whole numbers as the floats that a gap would make of
them. Users alone keep all their digits: a row without a user is nobody's. Nullable types (Int64, Float64, boolean,
string) and those of Arrow were declared by somebody, and are what they say. Text that is not UTF-8, on which DuckDB
fails, is read as bytes and converted value by value: what is no text is missing, like any other value that does not
convert.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import inf
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from discreet.sources.events.cells import LARGEST_EXACT
from discreet.sources.events.text_files import quote_identifier

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
        _convert_column(frame.iloc[:, index], exact=name == user) if name.casefold() in folded else pa.nulls(len(frame))
        for index, name in enumerate(names)
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


def _convert_column(series: Any, exact: bool) -> Any:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        return _convert_column(pd.Series(series.cat.categories.to_numpy()), exact).take(codes)
    guessed = _is_guess(series.dtype)
    if guessed and not _is_plain(series.dtype):
        return _convert_objects(series.astype(object).to_numpy(), exact)
    if guessed and not exact and isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu":
        series = series.astype("float64")
    try:
        found = pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError):
        cells = _convert_objects(series.astype(object).to_numpy(), exact)
        return cells if guessed else cells.field("text")
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return _cut_to_microseconds(found)


def _cut_to_microseconds(column: Any) -> Any:
    """Timestamps in the one resolution that Python has too."""
    if not pa.types.is_timestamp(column.type):
        return column
    # What is finer is cut off, here and in _spell_moment.
    return column.cast(pa.timestamp("us", column.type.tz), safe=False)


def _convert_objects(values: Any, exact: bool) -> Any:
    """Objects of Python as text where all of them are, else as mixed cells."""
    try:
        return pa.array(values, pa.string(), from_pandas=True)
    except (pa.ArrowException, UnicodeError, TypeError, ValueError):
        cells = [_convert_object(value, exact) for value in values]
    fields = [pa.array([cell[index] for cell in cells], field.type) for index, field in enumerate(MIXED)]
    return pa.StructArray.from_arrays(fields, fields=list(MIXED))


def _convert_object(value: Any, exact: bool) -> Cell:
    """The spelling of an object, or the number and a name for one that has none; all missing for anything else."""
    if isinstance(value, bool | np.bool_):
        return _text_cell("true" if value else "false")
    if isinstance(value, int | np.integer):
        return _convert_integer(int(value), exact)
    if isinstance(value, float | np.floating):
        return _convert_float(float(value))
    if isinstance(value, Decimal):
        return _convert_decimal(value)
    if _is_span(value):
        return None, None, str(value)
    text = _spell(value)
    # At midnight the text is that of a date, which is another moment where there are zones.
    midnight = isinstance(value, datetime) and text is not None and len(text) == len("2024-01-31")
    return text, None, f"{text}{_MIDNIGHT}" if midnight else None


_MIDNIGHT = " 00:00:00"


def _text_cell(text: str | None) -> Cell:
    return text, None, None


def _spell(value: Any) -> str | None:
    """The spelling of an object that is no number; None where it has none."""
    if isinstance(value, str):
        return _check_text(value)
    if isinstance(value, bytes):
        return _decode(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return _spell_moment(value)
    return value.isoformat() if isinstance(value, date) else None


def _is_span(value: Any) -> bool:
    """Whether an object is a span or a time of the day, which are users at most."""
    import pandas as pd

    return isinstance(value, timedelta | time | pd.Period | pd.Interval)


def _convert_integer(number: int, exact: bool) -> Cell:
    if abs(number) <= LARGEST_EXACT:
        return _text_cell(str(number))
    if exact:
        # Python writes no number of thousands of digits as text.
        return _text_cell(str(number) if abs(number) < 10**100 else None)
    return _convert_float(float(number) if abs(number) < 10**308 else inf if number > 0 else -inf)


def _check_text(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _decode(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _convert_float(number: float) -> Cell:
    if number != number:
        return MISSING
    digits = str(int(number)) if number.is_integer() else repr(number)
    return _text_cell(digits) if number.is_integer() and abs(number) <= LARGEST_EXACT else (None, number, digits)


def _convert_decimal(number: Decimal) -> Cell:
    if number.is_nan():
        return MISSING
    whole = number.is_finite() and number.adjusted() < 40 and number == number.to_integral_value()
    return _text_cell(str(int(number))) if whole else (None, float(number), str(number))


def _spell_moment(moment: datetime) -> str | None:
    """A timestamp as DuckDB spells it, at midnight as its date, with a zone in UTC; pandas' NaT is none."""
    if moment != moment:
        return None
    if moment.tzinfo is None:
        return _spell_clock(moment).removesuffix(_MIDNIGHT)
    try:
        return f"{_spell_clock(moment.astimezone(UTC))}+00"
    except (OverflowError, ValueError):
        return None


def _spell_clock(moment: datetime) -> str:
    return str(moment.isoformat(sep=" ", timespec="microseconds"))[:26].rstrip("0").rstrip(".")


def decode_frame(connection: Any, table: pa.Table) -> Any:
    """An Arrow table as one of DuckDB's without its broken text, or None where it has none."""
    broken = [name for name in table.column_names if _is_broken(table, name)]
    if not broken:
        return None
    fields = [field.with_type(as_bytes(field.type)) if field.name in broken else field for field in table.schema]
    return _create_view(connection, table.cast(pa.schema(fields)), dict.fromkeys(broken, _DECODE))


_DECODE = "TRY(decode({0})) AS {0}"


def as_bytes(dtype: Any) -> Any:
    """The type of the bytes of a text, plain or in a dictionary; any other type as it is."""
    plain = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    if pa.types.is_string(plain):
        return pa.binary()
    if pa.types.is_large_string(plain):
        return pa.large_binary()
    return pa.binary_view() if pa.types.is_string_view(plain) else dtype


def _is_broken(table: pa.Table, name: str) -> bool:
    """Whether a column is of text, and some of it is no UTF-8."""
    if table.column_names.count(name) > 1 or as_bytes(table.schema.field(name).type) == table.schema.field(name).type:
        return False
    try:
        table.column(name).validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def _create_view(connection: Any, rows: Any, conversions: dict[str, str]) -> Any:
    """A view of Arrow rows in which some columns are converted."""
    name = f"discreet_arrow_{uuid.uuid4().hex}"
    connection.con.register(name, rows)
    columns = ", ".join(conversions.get(each, "{0}").format(quote_identifier(each)) for each in rows.schema.names)
    connection.con.execute(f"CREATE TEMP VIEW {name}_view AS SELECT {columns} FROM {name}")  # noqa: S608  # all quoted
    return connection.table(f"{name}_view")
