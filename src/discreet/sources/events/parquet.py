"""Parquet files as one table: each file by its own schema, and partitions of folders as text.

What the first of several files happens to hold, or which values folders are named after, is somebody's rows. So a
column of several files has no declared type: where the files agree it keeps the type that they have, and where they do
not its cells are spelled. The scores are the same either way.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from discreet.redaction import redact_url
from discreet.sources.events.cells import engine_function, is_whole_type, null_unless, read_cell
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.text_files import literal_paths, spell_columns

Schema = dict[str, str]
"""The type of each column of a file, as DuckDB calls it."""


def read_parquet(
    connection: Any, files: list[str], wanted: Collection[str], several: bool, name: str
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
    """
    if not several:
        table = connection.read_parquet(literal_paths(files), hive_partitioning=True, hive_types_autocast=False)
        return table, frozenset(_partition_columns(files[0]))
    import ibis

    spelled = {column.casefold(): column for column in wanted}
    parts = [spell_columns(_read_group(connection, group), spelled) for group in _group_by_schema(connection, files)]
    columns = {column.casefold(): column for part in reversed(parts) for column in part.columns}
    asked = [column for folded, column in columns.items() if folded in spelled]
    common = {column: _common_type(parts, column) for column in asked}
    unions = [_align_columns(part, common) for part in parts]
    joined = unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0]
    others = {column: ibis.null("string") for column in columns.values() if column not in common}
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


def _read_group(connection: Any, files: list[str]) -> Any:
    partitioned = bool(_partition_columns(files[0]))
    return connection.read_parquet(literal_paths(files), hive_partitioning=partitioned, hive_types_autocast=False)


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


def _common_type(parts: list[Any], column: str) -> Any:
    """The type of a column in all parts that have it, None where they differ."""
    types = {part[column].type().copy(nullable=True) for part in parts if column in part.columns}
    return types.pop() if len(types) == 1 else None


def _align_columns(part: Any, common: dict[str, Any]) -> Any:
    """A part with all wanted columns, in their common type or spelled."""
    import ibis

    found = {}
    for column, dtype in common.items():
        if dtype is not None:
            found[column] = part[column] if column in part.columns else ibis.null(dtype)
        else:
            found[column] = spell_mixed(part[column] if column in part.columns else ibis.null("string"))
    return part.select(**found)


def spell_mixed(column: Any) -> Any:
    """A column of one type of DuckDB's as one of mixed cells."""
    import ibis

    text, number = read_cell(DUCKDB, column, "string"), ibis.null("float64")
    if column.type().is_numeric():
        number = null_unless(text.isnull(), column.cast("float64"))
    apart = text.isnull()
    if column.type().is_timestamp() and column.type().timezone is None:
        # At midnight the text is that of a date, which is another moment where there are zones.
        apart = apart | (text.length() == len("2024-01-31"))
    return ibis.struct({"text": text, "number": number, "other": null_unless(apart, _spell_any(column))})


def _spell_any(column: Any) -> Any:
    """A text for every cell of a column of DuckDB's that is not missing, which others do not have."""
    import ibis

    dtype = column.type()
    if dtype.is_numeric() and not is_whole_type(dtype):
        whole = column.try_cast("decimal(38, 0)")
        return ibis.coalesce(null_unless(whole.try_cast(dtype) == column, whole.cast("string")), column.cast("string"))
    if dtype.is_timestamp():
        # Those beyond the calendar have no text.
        return engine_function("epoch_us", "int64", str(dtype))(column).cast("string")
    return engine_function("hex", "string", str(dtype))(column) if dtype.is_binary() else column.cast("string")
