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

from discreet.sources.cells import spell_mixed
from discreet.sources.text import literal_paths, spell_columns

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
        return table, frozenset(_partitions(files[0]))
    import ibis

    spelled = {column.casefold(): column for column in wanted}
    parts = [spell_columns(_read_alike(connection, group), spelled) for group in _alike(connection, files)]
    columns = {column.casefold(): column for part in reversed(parts) for column in part.columns}
    asked = [column for folded, column in columns.items() if folded in spelled]
    common = {column: _common_type(parts, column) for column in asked}
    unions = [_aligned(part, common) for part in parts]
    joined = unions[0].union(*unions[1:]) if len(unions) > 1 else unions[0]
    others = {column: ibis.null("string") for column in columns.values() if column not in common}
    return connection.create_view(name, joined.mutate(**others)), frozenset(columns.values())


def _alike(connection: Any, files: list[str]) -> list[list[str]]:
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
        groups[tuple(schemas[file]), tuple(_partitions(file))].append(file)
    return list(groups.values())


def _read_alike(connection: Any, files: list[str]) -> Any:
    partitioned = bool(_partitions(files[0]))
    return connection.read_parquet(literal_paths(files), hive_partitioning=partitioned, hive_types_autocast=False)


def _partitions(file: str) -> list[str]:
    """The columns that the folders of a file are named after, as DuckDB finds them; none where it would fail."""
    folders = [folder for folder in os.path.dirname(file).split(os.sep) if folder.count("=") == 1]
    if not all(map(_is_proper, folders)):
        return []
    return [unquote(folder.partition("=")[0]) for folder in folders]


def _is_proper(folder: str) -> bool:
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


def _aligned(part: Any, common: dict[str, Any]) -> Any:
    """A part with all wanted columns, in their common type or spelled."""
    import ibis

    found = {}
    for column, dtype in common.items():
        if dtype is not None:
            found[column] = part[column] if column in part.columns else ibis.null(dtype)
        else:
            found[column] = spell_mixed(part[column] if column in part.columns else ibis.null("string"))
    return part.select(**found)
