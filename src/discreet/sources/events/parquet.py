"""Parquet files as one table: each file by its own schema, and partitions of folders as text.

What the first of several files happens to hold, or which values folders are named after, is somebody's rows. So a
column of several files has no declared type: where the files agree it keeps the type that they have, and where they do
not its cells are spelled. The scores are the same either way.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote

from discreet.sources.events.cells import is_mixed, read_cell
from discreet.sources.events.dialects import DUCKDB

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
        table = connection.read_parquet(files, hive_partitioning=True, hive_types_autocast=False)
        return table, frozenset(_partition_columns(files[0]))
    parts = [_read_group(connection, group) for group in _group_by_schema(connection, files)]
    columns = list(dict.fromkeys(column for part in parts for column in part.columns))
    folded = {column.casefold() for column in wanted}
    asked = [column for column in columns if column.casefold() in folded]
    common = {column: _common_type(parts, column) for column in asked}
    unions = [_align_columns(part, columns, common) for part in parts]
    joined = unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0]
    return connection.create_view(name, joined), frozenset(columns)


def _group_by_schema(connection: Any, files: list[str]) -> list[list[str]]:
    """The files in groups that have the same columns of the same types, in their folders too."""
    listed = connection.con.execute(
        "SELECT file_name, name, coalesce(duckdb_type, ''), coalesce(num_children, 0) FROM parquet_schema(?)", [files]
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
    return connection.read_parquet(files, hive_partitioning=partitioned, hive_types_autocast=False)


def _partition_columns(file: str) -> list[str]:
    """The columns that the folders of a file are named after, as DuckDB finds them."""
    folders = os.path.dirname(file).split(os.sep)
    return [unquote(folder.partition("=")[0]) for folder in folders if folder.count("=") == 1]


def _common_type(parts: list[Any], column: str) -> Any:
    """The type of a column in all parts that have it, None where they differ."""
    types = {part[column].type().copy(nullable=True) for part in parts if column in part.columns}
    return types.pop() if len(types) == 1 else None


def _align_columns(part: Any, columns: list[str], common: dict[str, Any]) -> Any:
    """A part with all columns: the wanted ones in their common type or spelled, the others empty."""
    import ibis

    found = {}
    for column in columns:
        if column not in common:
            found[column] = ibis.null("string")
        elif common[column] is not None:
            found[column] = part[column] if column in part.columns else ibis.null(common[column])
        else:
            found[column] = spell_mixed(part[column] if column in part.columns else ibis.null("string"))
    return part.select(**found)


def spell_mixed(column: Any) -> Any:
    """A column of one type of DuckDB's as one of mixed cells."""
    import ibis

    if is_mixed(column.type()):
        return column
    text, number = read_cell(DUCKDB, column, "string"), ibis.null("float64")
    if column.type().is_numeric():
        number = text.isnull().ifelse(column.cast("float64"), number)
    return ibis.struct({"text": text, "number": number})
