"""Frames as tables of DuckDB: only the wanted columns, each with a type that no row decides.

The types that pandas chooses follow from the rows: one gap turns integers into floats, one complex number turns all
numbers into complex ones, and one text turns a column into objects. Such a column becomes cells without a declared type
(`cells.py`), converted one by one by a function that never raises and drops unknown values. Outside of the user column,
integers become the floats that a gap would make of them. The nullable types (Int64, Float64, boolean, string) and those
of Arrow and polars were declared, and stay. Text crosses to DuckDB as bytes and is decoded there one by one, because
DuckDB fails on a whole column if one text is not UTF-8.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import floor, inf
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from discreet.errors import InvalidValueError, quote
from discreet.sources.events.cells import FIRST_SECOND, LARGEST_EXACT, LAST_SECOND
from discreet.sources.events.readers import quote_identifier

_FIELD_TYPES = {
    "text": (pa.string(), "VARCHAR"),
    "integer": (pa.int64(), "BIGINT"),
    "number": (pa.float64(), "DOUBLE"),
    "truth": (pa.bool_(), "BOOLEAN"),
    "day": (pa.date32(), "DATE"),
    "clock": (pa.timestamp("us"), "TIMESTAMP"),
    "point": (pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    "other": (pa.string(), "VARCHAR"),
}
"""The fields of a cell without a declared type, with their types in Arrow and DuckDB."""

Fields = dict[str, Any]
"""The fields of one cell, or Arrow arrays of the fields of a column; absent fields are missing."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = {
    "W": 604_800 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000,
    "ns": 1,
}  # fmt: skip
_PER_NANOSECOND = {"ps": 10**3, "fs": 10**6, "as": 10**9}
_MOST_DIGITS = 100
"""A decimal with more digits before or after its point is read as a float, without an exact spelling."""


@dataclass(frozen=True, eq=False, repr=False)
class FrameColumn:
    """A wanted column of a frame: an array of a declared type, or the fields of cells without one."""

    name: str
    declared: Any = None
    fields: Fields | None = None


def choose_columns(names: Sequence[str], wanted: Collection[str] | None, argument: str) -> tuple[list[int], list[str]]:
    """Return the places of the wanted columns, and the names of all columns that messages may mention.

    DuckDB ignores case in names. A name with the case that the caller wrote wins over other spellings. Names that are
    empty or repeated are not mentioned.

    Parameters
    ----------
    names
        The names of the columns of a frame.
    wanted
        The columns that will be queried; None for all.
    argument
        The name of the frame in messages.
    """
    places: dict[str, int] = {}
    for name in dict.fromkeys(names if wanted is None else wanted):
        exact = [place for place, each in enumerate(names) if each == name]
        found = exact or [place for place, each in enumerate(names) if each.casefold() == name.casefold()]
        if len(exact) > 1 and wanted is not None:
            raise InvalidValueError(f"{argument} must have one column called {quote(name)}, not {len(exact)}")
        if name and len(found) == 1:
            places.setdefault(name.casefold(), found[0])
    chosen, folded = set(places.values()), [name.casefold() for name in names]
    listed = [
        name
        for place, name in enumerate(names)
        if place in chosen or (name and folded[place] not in places and folded.count(folded[place]) == 1)
    ]
    return sorted(chosen), listed


def convert_pandas(frame: Any, places: Sequence[int], user: str | None) -> list[FrameColumn]:
    """Return columns of a pandas frame by their places; `user` is the name of the user column."""
    import pandas as pd

    found = []
    for place in places:
        name, series = str(frame.columns[place]), frame.iloc[:, place]
        dtype = series.dtype
        # pandas chooses the types of NumPy, categories, and text with NaN for gaps; it never chooses those with NA.
        if not isinstance(dtype, pd.ArrowDtype) and getattr(dtype, "na_value", None) is not pd.NA:
            found.append(FrameColumn(name, fields=_convert_guessed(series, exact=name == user)))
            continue
        try:
            declared = keep_nanoseconds(pa.array(series, from_pandas=True), name == user)
            found.append(FrameColumn(name, declared))
        except (pa.ArrowException, ValueError, TypeError):
            # A column that is declared as text can hold half of a surrogate pair.
            cells = _convert_objects(series.astype(object).to_numpy(), exact=True)
            found.append(FrameColumn(name, cells.get("text", pa.nulls(len(series), pa.string()))))
    return found


def keep_nanoseconds(column: Any, is_user: bool) -> Any:
    """Return a column of users without its time zone if it counts nanoseconds.

    DuckDB truncates zoned timestamps to microseconds, which would merge users. The instants do not depend on the zone.
    """
    dtype = column.type
    is_cut = is_user and pa.types.is_timestamp(dtype) and dtype.unit == "ns" and dtype.tz is not None
    return column.cast(pa.timestamp("ns")) if is_cut else column


def create_view(connection: Any, rows: int, columns: Sequence[FrameColumn], listed: Sequence[str]) -> Any:
    """Return an ibis table of the listed columns; those that are not among `columns` are empty."""
    name, arrays = f"discreet_arrow_{uuid.uuid4().hex}", dict[str, Any]()
    values = dict.fromkeys(listed, "NULL::VARCHAR")

    def refer_to(array: Any) -> str:
        place = f"c{len(arrays)}"
        arrays[place] = _make_readable(array)
        return f"TRY(decode({place}))" if _is_text(array.type) else place

    for column in columns:
        if column.fields is None:
            values[column.name] = refer_to(column.declared)
        else:
            given = {field: refer_to(array) for field, array in column.fields.items()}
            types = {field: f"{given.get(field, 'NULL')}::{kind}" for field, (_, kind) in _FIELD_TYPES.items()}
            values[column.name] = "{" + ", ".join(f"'{field}': {each}" for field, each in types.items()) + "}"
    selected = ", ".join(f"{value} AS {quote_identifier(column)}" for column, value in values.items())
    connection.con.register(name, pa.table(arrays or {"c0": pa.nulls(rows)}))
    connection.con.execute(f"CREATE TEMP VIEW {name}_view AS SELECT {selected} FROM {name}")  # noqa: S608  # all quoted
    return connection.table(f"{name}_view")


def _make_readable(array: Any) -> Any:
    """Return an Arrow array that DuckDB reads without an error: text as bytes, times and durations in microseconds."""
    if isinstance(array, pa.ChunkedArray):
        found = [_make_readable(chunk) for chunk in array.chunks]
        return pa.chunked_array(found, found[0].type) if found else _make_readable(pa.array([], array.type))
    dtype = array.type
    if isinstance(dtype, pa.BaseExtensionType) and _is_text(dtype):
        return _make_readable(array.storage)
    if pa.types.is_dictionary(dtype):
        return pa.DictionaryArray.from_arrays(array.indices, _make_readable(array.dictionary), safe=False)
    if _is_text(dtype) or pa.types.is_nested(dtype):
        return array.cast(_make_readable_type(dtype), safe=False)
    per_second = {"s": 1, "ms": 10**3}.get(getattr(dtype, "unit", ""))
    if per_second is None or not (pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype)):
        return array
    import pyarrow.compute as pc

    # DuckDB fails on times that 64-bit microseconds cannot hold. The range of DuckDB is a little smaller than that.
    most = 2**62 // 10**6 * per_second
    ticks = array.cast(pa.int64())
    ticks = pc.if_else(pc.less_equal(pc.abs(ticks), most), ticks, pa.scalar(None, pa.int64()))
    micro = pa.duration("us") if pa.types.is_duration(dtype) else pa.timestamp("us", dtype.tz)
    return pc.multiply(ticks, 10**6 // per_second).cast(micro)


def _make_readable_type(dtype: Any) -> Any:
    """Return a type with bytes in place of text and with microseconds, also inside lists and structures."""
    if pa.types.is_string(dtype):
        return pa.binary()
    if pa.types.is_large_string(dtype):
        return pa.large_binary()
    if pa.types.is_string_view(dtype):
        return pa.binary_view()
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", dtype.tz)
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(_make_readable_type(field.type)) for field in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(*map(_make_readable_type, (dtype.key_type, dtype.item_type)))
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(_make_readable_type(dtype.value_type), dtype.list_size)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return (pa.list_ if pa.types.is_list(dtype) else pa.large_list)(_make_readable_type(dtype.value_type))
    return dtype


def _is_text(dtype: Any) -> bool:
    """Return True if an Arrow type is text, plain or in a dictionary."""
    if isinstance(dtype, pa.BaseExtensionType):
        dtype = dtype.storage_type
    plain = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def _convert_guessed(series: Any, exact: bool) -> Fields:
    """Return the fields of a column whose type pandas chose.

    Arrays of one type are converted as a whole, with the same result as `convert_object` on each cell, only faster.

    Parameters
    ----------
    series
        The column.
    exact
        True if whole numbers keep all their digits, as those of users must.
    """
    import pandas as pd

    dtype = series.dtype
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if isinstance(dtype, pd.CategoricalDtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=series.isna().to_numpy())
        members = _convert_guessed(pd.Series(series.cat.categories), exact)
        return {name: array.take(codes) for name, array in members.items()}
    if kind == "b":
        return {"truth": pa.array(series.to_numpy())}
    if kind in ("i", "u"):
        numbers = series.to_numpy()
        if not exact:
            return _convert_floats(numbers.astype(np.float64))
        beyond = numbers > np.iinfo(np.int64).max
        fields = {"integer": pa.array(numbers.astype(np.int64), mask=beyond)}
        if beyond.any():
            texts = [str(number) if far else None for number, far in zip(numbers, beyond, strict=True)]
            fields["text"] = pa.array(texts)
        return fields
    if kind == "f" and dtype.itemsize <= np.dtype(np.float64).itemsize:
        return _convert_floats(series.to_numpy().astype(np.float64))
    if kind == "M" or isinstance(dtype, pd.DatetimeTZDtype):
        return _convert_ticks(series.array.asi8, dtype.unit if kind != "M" else np.datetime_data(dtype)[0], kind == "M")
    if isinstance(dtype, pd.StringDtype):
        try:
            return {"text": pa.array(series, from_pandas=True)}
        except (pa.ArrowException, ValueError, TypeError):
            pass
    return _convert_objects(series.astype(object).to_numpy(), exact)


def _convert_floats(numbers: Any) -> Fields:
    whole = (np.abs(numbers) <= LARGEST_EXACT) & (np.floor(numbers) == numbers)
    return {
        "integer": pa.array(np.where(whole, numbers, 0).astype(np.int64), mask=~whole),
        "number": pa.array(numbers, mask=whole | np.isnan(numbers)),
    }


def _convert_ticks(ticks: Any, unit: str, is_clock: bool) -> Fields:
    """Return the fields of timestamps, given as numbers of a unit since 1970; the least number stands for a gap."""
    step = _NANOSECONDS[unit]
    per_second = _NANOSECONDS["s"] // step
    there = ticks != np.iinfo(np.int64).min
    inside = there & (ticks >= FIRST_SECOND * per_second) & (ticks <= (LAST_SECOND + 1) * per_second - 1)
    kept = np.where(inside, ticks, 0)
    micro = kept * (step // 1000) if step >= 1000 else kept // (1000 // step)
    field = "clock" if is_clock else "point"
    fields = {field: pa.array(micro, pa.int64(), mask=~inside).cast(_FIELD_TYPES[field][0])}
    apart = there & ~inside if step >= 1000 else there & ~(inside & (kept % (1000 // step) == 0))
    if apart.any():
        other = np.full(len(ticks), None, object)
        other[apart] = [f"{int(tick) * step} ns" for tick in ticks[apart]]
        fields["other"] = pa.array(other, pa.string())
    return fields


def _convert_objects(values: Any, exact: bool) -> Fields:
    """Return the fields of objects of Python."""
    kinds = set(map(type, values))
    if kinds <= {str, type(None), float} and all(each != each for each in values if type(each) is float):
        # All of them are text or missing.
        try:
            return {"text": pa.array(values, pa.string(), from_pandas=True)}
        except (pa.ArrowException, UnicodeError):
            pass
    found: dict[str, list[Any]] = {}
    for place, value in enumerate(values):
        for name, part in convert_object(value, exact).items():
            found.setdefault(name, [None] * len(values))[place] = part
    counted = {"day": pa.int32(), "clock": pa.int64(), "point": pa.int64()}
    types = {name: _FIELD_TYPES[name][0] for name in found}
    return {name: pa.array(parts, counted.get(name, types[name])).cast(types[name]) for name, parts in found.items()}


def convert_object(value: Any, exact: bool) -> Fields:
    """Return the fields of the cell that an object of Python makes; none if it is missing or of an unknown type.

    The function never raises, and its result depends on the object alone. The known types are the numbers, texts and
    times of Python, NumPy and pandas.
    """
    import pandas as pd

    # An object can override its __class__, but not its type.
    kind = type(value)
    try:
        if value is None or value is pd.NA or value is pd.NaT:
            return {}
        if issubclass(kind, str):
            return {"text": str.encode(value).decode()}
        if issubclass(kind, bool | np.bool_):
            return {"truth": bool(value)}
        if issubclass(kind, np.timedelta64 | timedelta):
            span = _count_nanoseconds(value)
            return {} if span is None else {"other": f"{span} ns"}
        if issubclass(kind, int | np.integer):
            number = int(value)
            if not exact and abs(number) > LARGEST_EXACT:
                return {"number": float(number) if abs(number) < 10**308 else inf if number > 0 else -inf}
            if -(2**63) <= number < 2**63:
                return {"integer": number}
            # Python refuses to write numbers of thousands of digits as text.
            return {"text": str(number)} if abs(number) < 10**100 else {}
        if issubclass(kind, complex | np.complexfloating):
            # One complex number makes pandas convert all numbers of its column to complex ones.
            return _convert_float(value.real) if value.imag == 0 else {}
        if issubclass(kind, float | np.floating):
            return _convert_float(value)
        if issubclass(kind, Decimal):
            if value.is_nan():
                return {}
            exponent = value.as_tuple().exponent
            if not isinstance(exponent, int) or value.adjusted() > _MOST_DIGITS or exponent < -_MOST_DIGITS:
                return {"number": float(value)}
            # Trailing zeros do not change the number.
            spelled = f"{value:f}"
            spelled = spelled.rstrip("0").rstrip(".") if "." in spelled else spelled
            if "." not in spelled and abs(int(spelled)) < 2**63:
                return {"integer": int(spelled)}
            return {"number": float(value), "other": spelled}
        if issubclass(kind, bytes):
            try:
                return {"text": bytes(value).decode()}
            except UnicodeDecodeError:
                return {"other": bytes(value).hex()}
        if issubclass(kind, np.datetime64 | datetime):
            count = _count_nanoseconds(value)
            if count is None:
                return {}
            inside = FIRST_SECOND <= count // 10**9 <= LAST_SECOND
            field = "clock" if getattr(value, "tzinfo", None) is None else "point"
            known = {field: count // 1000} if inside else {}
            return known if inside and count % 1000 == 0 else {**known, "other": f"{count} ns"}
        if issubclass(kind, date):
            return {"day": date.toordinal(value) - _EPOCH.toordinal()}
        if issubclass(kind, UUID):
            return {"text": str(value)}
        if issubclass(kind, time | pd.Period):
            return {"other": str(value).encode().decode()}
        if issubclass(kind, pd.Interval):
            # pandas converts the ends of all intervals to floats if one interval has floats.
            ends = [sorted(convert_object(end, exact).items()) for end in (value.left, value.right)]
            return {"other": f"{value.closed} {ends}"}
        return {}
    except Exception:  # the methods of an object may raise anything
        return {}


def _convert_float(number: Any) -> Fields:
    nearest = float(number)
    if nearest != nearest:
        return {}
    is_whole = nearest == number and abs(nearest) <= LARGEST_EXACT and floor(nearest) == nearest
    return {"integer": int(nearest)} if is_whole else {"number": nearest}


def _count_nanoseconds(value: Any) -> int | None:
    """Return a time since 1970 or a duration in nanoseconds, rounded down; None for a gap or an unknown unit."""
    import pandas as pd

    if isinstance(value, pd.Timestamp):
        value = value.to_datetime64()
    elif isinstance(value, pd.Timedelta):
        value = value.to_timedelta64()
    elif isinstance(value, datetime):
        value -= _EPOCH if value.tzinfo is not None else _EPOCH.replace(tzinfo=None)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1) * 1000
    if np.isnat(value):
        return None
    unit, multiple = np.datetime_data(value.dtype)
    if unit in ("Y", "M") and isinstance(value, np.datetime64):
        # NumPy's number of days is wrong beyond these years.
        months = int(value.astype(f"datetime64[{unit}]").view(np.int64)) * (12 if unit == "Y" else 1)
        if abs(months) > 12 * 10**7:
            return None
        value, unit, multiple = value.astype("datetime64[D]"), "D", 1
    count = int(value.view(np.int64)) * multiple
    if unit in _PER_NANOSECOND:
        return count // _PER_NANOSECOND[unit]
    return count * _NANOSECONDS[unit] if unit in _NANOSECONDS else None
