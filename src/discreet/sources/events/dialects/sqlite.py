"""SQLite; `sqlite_cells.py` reads its cells, which have types of their own."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from discreet.errors import InvalidTypeError, quote
from discreet.sources.events.cells import (
    DAY_NUMBER,
    LARGEST_EXACT,
    MOMENT,
    SECOND_NUMBER,
    SPELLINGS,
    engine_function,
    read_truth,
)
from discreet.sources.events.dialects.base import Dialect, cast_to_bytes, declare_columns, iterate_rows, trim_spaces
from discreet.sources.events.engine import ask

# SQLite: columns by what somebody declared, and functions that read a cell.
#
# SQLite keeps a value of any type in any column, and a column of a view need not have a type at all. ibis then takes
# the type of the first row, which is private. Here such a column has no type, and its cells are read one by one.


def declare_types(backend: Any, table: Any) -> tuple[Any, frozenset[str]]:
    """A table of SQLite without guessed types, and the names of its columns that have none.

    Parameters
    ----------
    backend
        The connection of ibis.
    table
        The name of a table or view, or an ibis table that is one or is made of some.
    """
    _register(backend.con)
    if isinstance(table, str):
        return _table_without_guesses(backend, table, "main")
    from ibis.expr.operations import DatabaseTable

    bases = {(op.name, op.namespace.database or "main") for op in table.op().find(DatabaseTable)}
    if isinstance(table.op(), DatabaseTable):
        ((name, database),) = bases
        return _table_without_guesses(backend, name, database)
    for name, database in sorted(bases):
        _refuse_undeclared(name, _read_declarations(backend, name, database))
    return table, frozenset()


def _read_declarations(backend: Any, name: str, database: str) -> dict[str, str]:
    """The type that each column was declared with, "" for none."""
    query = "SELECT name, type FROM pragma_table_info(?, ?)"
    rows = ask("SQLite", "reading the columns", lambda: backend.con.execute(query, (name, database)).fetchall())
    return dict(rows)


def _table_without_guesses(backend: Any, name: str, database: str) -> tuple[Any, frozenset[str]]:
    import ibis.expr.operations as ops
    import ibis.expr.schema as sch

    declared = _read_declarations(backend, name, database)
    schema = {column: _parse_type_name(backend, type_name) for column, type_name in declared.items()}
    table = ops.DatabaseTable(
        name=name,
        schema=sch.Schema({column: dtype or "string" for column, dtype in schema.items()}),
        source=backend,
        namespace=ops.Namespace(database=None if database == "main" else database),
    ).to_expr()
    return table, frozenset(column for column, dtype in schema.items() if dtype is None)


def _parse_type_name(backend: Any, declared: str) -> Any:
    """The type that ibis has for a declaration, None where there is none or it means nothing."""
    from ibis.common.exceptions import UnsupportedBackendType

    if not declared:
        return None
    try:
        dtype = backend._parse_type(declared, True)
    except (UnsupportedBackendType, ValueError, TypeError):
        return None
    return None if dtype.is_unknown() else dtype


def _refuse_undeclared(name: str, declared: dict[str, str]) -> None:
    without = [column for column, type_name in declared.items() if not type_name]
    if without:
        raise InvalidTypeError(
            f"table must be the table {quote(name)} itself and no expression of it, because its column "
            f"{quote(without[0])} was declared without a type, and ibis has guessed one from a row: use where"
        )


def _register(connection: Any) -> None:
    """Gives a connection the functions that read cells."""
    for name, function in _FUNCTIONS.items():
        connection.create_function(name, 1, function, deterministic=True)
    connection.create_function(_NUMBER, 3, _number_string, deterministic=True)


def _decode_spelling(cell: Any, kind: str) -> str | None:
    """The text of a cell, if it is a spelling of the kind."""
    return _decode(cell, SPELLINGS[kind])


def _decode(cell: Any, pattern: str) -> str | None:
    """The text of a cell, if the pattern is that of the whole."""
    if not isinstance(cell, bytes):
        return None
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        return None
    return text if re.fullmatch(pattern, text, re.ASCII) else None


def _parse_integer(cell: Any) -> int | None:
    if isinstance(cell, float):
        return int(cell) if abs(cell) <= LARGEST_EXACT and cell == int(cell) else None
    text = _decode_spelling(cell, "integer")
    number = None if text is None else int(text.partition(".")[0])
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _parse_float(cell: Any) -> float | None:
    if isinstance(cell, int | float):
        return float(cell)
    text = _decode_spelling(cell, "float")
    return None if text is None else float(text)


def _parse_date(cell: Any) -> str | None:
    return _decode_spelling(cell, "date")


def _parse_timestamp(cell: Any) -> str | None:
    """A timestamp as conditions compare it: with a blank between its parts, and no zeros at its end."""
    text = _decode_spelling(cell, "timestamp")
    if text is None:
        return None
    day, clock = text[:10], text[11:] or "00:00:00"
    clock = clock if clock.count(":") == 2 else f"{clock}:00"
    return f"{day} {clock.rstrip('0').rstrip('.') if '.' in clock else clock}"


def _count_days(cell: Any) -> int | None:
    text = _decode_spelling(cell, "date")
    return None if text is None else date.fromisoformat(text).toordinal() - _EPOCH.toordinal()


def _count_seconds(cell: Any) -> int | None:
    text = _decode(cell, MOMENT)
    if text is None:
        return None
    # Python keeps an offset apart from the clock, which may be at the end of the calendar.
    moment = datetime.fromisoformat(re.sub(r"\.[0-9]+", "", text.replace(" UTC", "Z")))
    offset = moment.utcoffset() or timedelta(0)
    return (moment.replace(tzinfo=UTC) - _EPOCH - offset) // timedelta(seconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _digest_blob(cell: Any) -> str | None:
    return hashlib.md5(cell, usedforsecurity=False).hexdigest() if isinstance(cell, bytes) else None


def _decode_text(cell: Any) -> str | None:
    try:
        return cell.decode() if isinstance(cell, bytes) and 0 not in cell else None
    except UnicodeDecodeError:
        return None


def _number_string(cell: Any, alphabet: str, longest: int) -> int | None:
    """The number of a text of bytes among all strings over an alphabet, None where it is longer or none of them."""
    text = _decode_text(cell)
    if text is None or len(text) > longest or not set(text) <= set(alphabet):
        return None
    number = 0
    for character in text:
        number = number * len(alphabet) + alphabet.index(character) + 1
    return number


_NUMBER = "discreet_number"

_FUNCTIONS = {
    "discreet_md5": _digest_blob,
    "discreet_text": _decode_text,
    "discreet_integer": _parse_integer,
    "discreet_float": _parse_float,
    "discreet_date": _parse_date,
    "discreet_timestamp": _parse_timestamp,
    "discreet_days": _count_days,
    "discreet_seconds": _count_seconds,
}


def _choose_by_storage(column: Any, **values: Any) -> Any:
    """SQLite gives every cell a type of its own: the value for the type of the cell, NULL for others."""
    import ibis

    stored = column.typeof()
    branches = [(stored == name, value) for name, value in values.items()]
    return ibis.cases(*branches, else_=ibis.null(branches[0][1].type()))


def _as_blob(column: Any) -> Any:
    """The bytes of a text, which need not be UTF-8, as a function of Python may take them."""
    return (column if column.type().is_string() else column.cast("string")).cast("binary")


def _call(name: str, result: str, argument: Any) -> Any:
    """One of the functions that are registered with a connection."""
    return engine_function(name, result, str(argument.type()).removeprefix("!"))(argument)


def _read_integer(column: Any) -> Any:
    return _choose_by_storage(
        column,
        integer=column.cast("int64"),
        real=_call("discreet_integer", "int64", column),
        text=_call("discreet_integer", "int64", _as_blob(column)),
    )


def _read_text(column: Any) -> Any:
    whole = _call("discreet_integer", "int64", column).cast("string")
    return _choose_by_storage(column, text=column.cast("string"), integer=column.cast("string"), real=whole)


def digest(value: Any) -> Any:
    """The MD5 of bytes, or of a text's bytes, in hexadecimal."""
    return _call("discreet_md5", "string", value.cast("binary"))


def drop_broken_text(text: Any) -> Any:
    """A text, NULL where its bytes are not UTF-8, or where it has a NUL, at which SQLite's own functions end it."""
    return _call("discreet_text", "string", text.cast("binary"))


def number_string(text: Any, alphabet: str, longest: int) -> Any:
    """The number of a text among all strings: SQLite's parser does not go deep enough for a sum over its places."""
    call = engine_function(_NUMBER, "int64", "binary", "string", "int64")
    return call(text.cast("binary"), alphabet, longest)


def spell_user(column: Any) -> Any:
    """Return the spelling of a user: the text of a cell, the digits of a whole number, no other float."""
    import ibis

    whole = _call("discreet_integer", "int64", column).cast("string")
    return ibis.cases((column.typeof() == "real", whole), else_=column.cast("string"))


def _read_number(column: Any) -> Any:
    import ibis

    stored = column.typeof()
    if column.type().is_numeric():
        return stored.isin(["integer", "real"]).ifelse(column.cast("float64"), None)
    # Two branches in place of four, because SQLite's parser does not go deep.
    text = _call("discreet_float", "float64", _as_blob(column))
    return ibis.cases((stored == "text", text), else_=_call("discreet_float", "float64", column))


def _read_boolean(column: Any) -> Any:
    import ibis

    number = column.cast("int64")
    bit = ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))
    return _choose_by_storage(column, integer=bit, text=read_truth(column.cast("string")))


def _read_moment(name: str, result: str) -> Callable[[Any], Any]:
    """Dates and timestamps are text to SQLite: in one spelling, or counted."""
    return lambda column: _choose_by_storage(column, text=_call(name, result, _as_blob(column)))


CELL_READERS: dict[str, Callable[[Any], Any | None]] = {
    "string": _read_text,
    "integer": _read_integer,
    "float": _read_number,
    "boolean": _read_boolean,
    "date": _read_moment("discreet_date", "date"),
    "timestamp": _read_moment("discreet_timestamp", "string"),
    "timestamp with time zone": lambda column: None,
    DAY_NUMBER: _read_moment("discreet_days", "int64"),
    SECOND_NUMBER: _read_moment("discreet_seconds", "int64"),
}
"""How a cell is read as each kind, by the type that the cell itself has."""


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
    declare_types=declare_types,
    find_trouble=_find_trouble,
    send_unlogged=_insert_rows,
    text_bytes=cast_to_bytes,
    bytes_text=_to_plain_text,
    digest=digest,
    drop_broken_text=drop_broken_text,
    number_string=number_string,
    like=_glob,
    # SQLite knows no other letters than these 26.
    fold_case=lambda text, case: text.lower() if case == "lower" else text.upper(),
    trim=trim_spaces,
    cell_readers=CELL_READERS,
    spell_user=spell_user,
    dates_are_text=True,
    # It has no decimals, but its integers turn into doubles where they overflow.
    total_type="int64",
)
