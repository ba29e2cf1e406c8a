"""SQLite; `sqlite_cells.py` reads its cells, which have types of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet.sources.events import sqlite_cells
from discreet.sources.events.cells import engine_function
from discreet.sources.events.dialect import (
    Dialect,
    cast_to_bytes,
    declare_columns,
    iterate_rows,
    trim_spaces,
)

_COLUMN_TYPES = {"int64": "INTEGER", "string": "TEXT", "date32[day]": "DATE", "bool": "BOOLEAN"}


def _connect(url: str) -> tuple[Any, Callable[[], None]]:
    """A connection to a file that threads may use in turn, which is what they do with a source, and what closes it."""
    import ibis

    if "?" in url:
        backend = ibis.connect(url)
        return backend, backend.disconnect
    import sqlite3

    connection = sqlite3.connect(url.partition("://")[2], check_same_thread=False)
    try:
        backend = ibis.sqlite.from_connection(connection)
    except BaseException:
        connection.close()
        raise
    return backend, backend.disconnect


@contextmanager
def _insert_rows(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary table, filled from what a function returns: even a trace, which shows parameters, does not show it.

    The key is what EXISTS looks up, row by row.
    """
    columns = declare_columns(rows, [_COLUMN_TYPES[str(field.type)] for field in rows.schema])
    values = ", ".join(f"json_extract(value, '$[{i}]')" for i in range(rows.num_columns))
    text = json.dumps(list(iterate_rows(rows)), default=lambda day: day.isoformat())
    key = f"PRIMARY KEY ({', '.join(rows.column_names)})"
    with backend.begin() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({columns}, {key}) WITHOUT ROWID")
        backend.con.create_function(name, 0, lambda: text)
        try:
            cursor.execute(f"INSERT INTO {name} SELECT {values} FROM json_each({name}())")  # noqa: S608  # a random name
        finally:
            backend.con.create_function(name, 0, None)
    try:
        yield backend.table(name, database="temp")
    finally:
        with backend.begin() as cursor:
            cursor.execute(f"DROP TABLE temp.{name}")


def _find_trouble(backend: Any) -> str | None:
    """Return what is wrong with the folder for temporary files, by a table that is too large for SQLite's cache."""
    try:
        with backend.begin() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE discreet_room AS SELECT zeroblob(16000000) AS bytes")
            cursor.execute("DROP TABLE temp.discreet_room")
    except Exception:
        return "must have room in a folder for temporary files that can be written: set SQLITE_TMPDIR"
    return None


def _to_plain_text(spelled: Any) -> Any:
    """Return the text of bytes; not as a mere cast, which keeps the collation of the column that it is of."""
    import ibis

    return ibis.coalesce(spelled.cast("string"), ibis.null("string"))


def _glob(text: Any, pattern: str) -> Any:
    """LIKE as SQLite's GLOB, which tells capitals apart."""
    escaped = re.sub(r"[*?[]", r"[\g<0>]", pattern).replace("%", "*").replace("_", "?")
    return engine_function("glob", "boolean", "string", "string")(escaped, text)


DIALECT = Dialect(
    name="sqlite",
    title="SQLite",
    is_file=True,
    connect=_connect,
    declare_types=sqlite_cells.declare_types,
    find_trouble=_find_trouble,
    send_unlogged=_insert_rows,
    text_bytes=cast_to_bytes,
    bytes_text=_to_plain_text,
    digest=sqlite_cells.digest,
    drop_broken_text=sqlite_cells.drop_broken_text,
    number_string=sqlite_cells.number_string,
    like=_glob,
    # SQLite knows no other letters than these 26.
    fold_case=lambda text, case: text.lower() if case == "lower" else text.upper(),
    trim=trim_spaces,
    cell_readers=sqlite_cells.CELL_READERS,
    spell_user=sqlite_cells.spell_user,
    dates_are_text=True,
    # It has no decimals, but its integers turn into doubles where they overflow.
    total_type="int64",
)
