"""Parquet files as one table: each file by its own schema, and partitions of folders as text.

The types of one of several files, and the values that folders are named after, are somebody's rows. So a column of
several files has no declared type, whether the files agree or not: each file's cells are converted to the one type that
cells without a declared type have (`cells.py`). Columns that nobody asked for are never looked at.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from sqlglot import exp

from discreet.errors import InvalidTypeError, quote
from discreet.redaction import redact_url
from discreet.sources.events.cells import CELL_FIELDS, engine_function, is_whole_type, null_unless, read_cell
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.text_files import literal_paths, quote_identifier, spell_columns

Schema = dict[str, str]
"""The type of each column of a file, as DuckDB calls it."""


def read_parquet(
    connection: Any, files: list[str], wanted: Collection[str], several: bool, name: str, user: str | None = None
) -> tuple[Any, frozenset[str]]:
    """A table of Parquet files, and the names of its columns without a declared type.

    Parameters
    ----------
    connection
        An ibis connection to DuckDB.
    files
        The files.
    wanted
        The columns that will be asked for; of several files, the others are listed and empty.
    several
        Whether the caller has asked for a pattern of files, however many there are.
    name
        A name for the view.
    user
        The column that tells users apart.
    """
    if not several:
        if _cuts_nanoseconds(connection, files, user):
            raise InvalidTypeError(
                f"user must not be a column of nanoseconds with a time zone, as {quote(user)} is: DuckDB cuts them to "
                "microseconds; write it without the zone"
            )
        table = connection.read_parquet(literal_paths(files), hive_partitioning=True, hive_types_autocast=False)
        return table, frozenset(_partition_columns(files[0]))
    import ibis

    empty = ibis.null("string")
    spelled = {column.casefold(): column for column in wanted}
    parts, columns = [], dict[str, str]()
    for group in _group_by_schema(connection, files):
        part, names = _read_group(connection, group, spelled)
        if _cuts_nanoseconds(connection, group, user):
            # Two users may have become one, so that none of them is one.
            part = part.mutate(**{each: empty for each in part.columns if each.casefold() == str(user).casefold()})
        parts.append(spell_columns(part, spelled))
        for column in names:
            columns.setdefault(column.casefold(), spelled.get(column.casefold(), column))
    asked = [column for folded, column in columns.items() if folded in spelled]
    unions = [
        part.select(**{each: convert_to_cell(part[each] if each in part.columns else empty) for each in asked})
        for part in parts
    ]
    joined = unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0]
    others = {column: empty for column in columns.values() if column not in asked}
    return connection.create_view(name, joined.mutate(**others)), frozenset(columns.values())


def _group_by_schema(connection: Any, files: list[str]) -> list[list[str]]:
    """The files in groups that have the same columns of the same types, in their folders too."""
    listed = connection.con.execute(
        "SELECT file_name, name, coalesce(duckdb_type, ''), coalesce(num_children, 0) FROM parquet_schema(?)",
        [literal_paths(files)],
    ).fetchall()
    schemas = defaultdict(list)
    for file, *column in listed:
        schemas[file].append(tuple(column))
    groups = defaultdict(list)
    for file in files:
        groups[tuple(schemas[file]), tuple(_partition_columns(file))].append(file)
    return list(groups.values())


def _cuts_nanoseconds(connection: Any, files: list[str], user: str | None) -> bool:
    """Return True if users are nanoseconds with a zone, which DuckDB cuts to microseconds, in files of one schema."""
    query = "SELECT name, logical_type FROM parquet_schema(?) WHERE logical_type LIKE '%isAdjustedToUTC=1%NANOS=Nano%'"
    found = connection.con.execute(query, [literal_paths(files[:1])]).fetchall()
    return any(name.casefold() == str(user).casefold() for name, _ in found)


def _read_group(connection: Any, files: list[str], wanted: Collection[str]) -> tuple[Any, list[str]]:
    """Return the wanted columns of files of one schema, and the names of all of its columns."""
    partitioned = str(bool(_partition_columns(files[0]))).lower()
    listed = ", ".join(str(exp.Literal.string(each).sql("duckdb")) for each in literal_paths(files))
    reader = f"read_parquet([{listed}], hive_partitioning = {partitioned}, hive_types_autocast = false)"
    types = {row[0]: row[1] for row in connection.con.execute(f"DESCRIBE FROM {reader}").fetchall()}
    names = list(types)
    asked = [_select_readable(name, types[name]) for name in names if name.casefold() in wanted]
    if not asked:
        return connection.sql(f"SELECT 0 AS discreet_row FROM {reader}"), names  # noqa: S608  # all quoted
    # Only these are named: of a type that ibis does not know, a column that nobody asked for would stop it.
    return connection.sql(f"SELECT {', '.join(asked)} FROM {reader}"), names  # noqa: S608


def _select_readable(name: str, dtype: str) -> str:
    """Return the SQL of a column; a nested one is the bytes of its text: ibis does not know all nested types."""
    column = quote_identifier(name)
    is_nested = dtype.endswith("]") or dtype.startswith(("STRUCT", "UNION", "MAP"))
    return f"TRY(encode({column}::VARCHAR)) AS {column}" if is_nested else column


def _partition_columns(file: str) -> list[str]:
    """The columns that the folders of a file are named after, as DuckDB finds them; none where it would fail."""
    folders = [folder for folder in os.path.dirname(redact_url(file)).split(os.sep) if folder.count("=") == 1]
    if not all(map(_is_partition, folders)):
        return []
    return [unquote(folder.partition("=")[0]) for folder in folders]


def _is_partition(folder: str) -> bool:
    """Whether DuckDB finds a partition in the name of a folder, and text in it."""
    try:
        unquote_to_bytes(folder).decode()
    except UnicodeDecodeError:
        return False
    return not re.search(r"[?\\\n\r]", folder)


def convert_to_cell(column: Any) -> Any:
    """Return a column of any one type of DuckDB's as cells without a declared type; no value makes this fail."""
    import ibis

    dtype, limit = column.type(), DUCKDB.limit_to_calendar
    assert limit is not None, "DuckDB's calendar is known"
    fields: dict[str, Any] = {}
    if dtype.is_string() or dtype.is_uuid():
        fields["text"] = column.cast("string")
    elif dtype.is_boolean():
        fields["truth"] = column
    elif dtype.is_integer():
        whole = column.try_cast("int64")
        fields = {"integer": whole, "text": null_unless(whole.isnull(), column.cast("string"))}
    elif dtype.is_floating() or dtype.is_decimal():
        whole = read_cell(DUCKDB, column, "integer")
        fields = {"integer": whole, "number": null_unless(whole.isnull(), column.cast("float64"))}
        if dtype.is_decimal():
            digits = column.cast("string")
            # Files may have one number with more or fewer zeros at its end.
            digits = digits if is_whole_type(dtype) else digits.re_replace(r"\.?0+$", "")
            fields["other"] = null_unless(whole.isnull(), digits)
    elif dtype.is_date():
        fields["day"] = limit(column, "date")
        fields["other"] = null_unless(fields["day"].isnull(), _spell_any(column))
    elif dtype.is_timestamp():
        name, kind = ("clock", "timestamp") if dtype.timezone is None else ("point", "timestamp('UTC')")
        moment = limit(column, kind)
        # DuckDB asks a function about the least and the greatest value beforehand, where TRY does not help.
        is_fine = dtype.scale == _NANOSECONDS
        counted = column if is_fine else engine_function("try", kind, kind)(column.cast(kind))
        count = engine_function("epoch_ns" if is_fine else "epoch_us", "int64", str(counted.type()))(counted)
        exact = ibis.coalesce(count.cast("string") + (" ns" if is_fine else "000 ns"), _spell_any(column))
        is_cut = moment.isnull() | (count % 1000 != 0) if is_fine else moment.isnull()
        fields = {name: moment, "other": null_unless(is_cut, exact)}
    elif dtype.is_binary():
        fields["other"] = engine_function("hex", "string", str(dtype))(column)
    elif not dtype.is_null():
        fields["other"] = _spell_any(column)
    return ibis.struct({name: fields.get(name, ibis.null(kind)).cast(kind) for name, kind in CELL_FIELDS.items()})


_NANOSECONDS = 9
"""The scale of a timestamp with nanoseconds."""


def _spell_any(column: Any) -> Any:
    """Return the text that DuckDB has for a value, NULL where it fails to make one."""
    return _try(column.cast("string"))


def _try(text: Any) -> Any:
    return engine_function("try", "string", "string")(text)
