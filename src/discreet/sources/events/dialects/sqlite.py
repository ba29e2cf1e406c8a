"""The dialect of SQLite, which stores a value of any type in any column.

Functions of Python, registered with a connection, read cells by the type of the cell. A column of a view need not have
a type at all; ibis then takes the type of the first row, which is private. Here such a column has no type.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

from discreet.errors import InvalidTypeError, quote
from discreet.sources.events.case_folding import fold_case
from discreet.sources.events.cells import (
    DAY_NUMBER,
    LARGEST_EXACT,
    LONGEST_TEXT,
    MOMENT,
    SECOND_NUMBER,
    SECONDS_PER_DAY,
    SPELLINGS,
    engine_function,
    read_truth,
)
from discreet.sources.events.dialects.base import Dialect, cast_to_bytes, declare_columns, iterate_rows, trim_spaces
from discreet.sources.events.engine import ask
from discreet.sources.events.formats import Formats, respell_by_key

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER, _PART = "discreet_number", "discreet_part"
_RESPELL = "discreet_respell"
_COLUMN_TYPES = {"int64": "INTEGER", "string": "TEXT", "date32[day]": "DATE", "bool": "BOOLEAN"}


def register_functions(backend: Any) -> None:
    """Register with a connection the functions of Python that expressions call."""
    for name, function in _FUNCTIONS.items():
        backend.con.create_function(name, 1, function, deterministic=True)
    backend.con.create_function(_NUMBER, 3, _number_string, deterministic=True)
    backend.con.create_function(_RESPELL, 3, respell_by_key, deterministic=True)
    backend.con.create_function(_PART, 3, _extract_part, deterministic=True)


def declare_types(backend: Any, table: Any) -> tuple[Any, frozenset[str]]:
    """Return a table of SQLite without inferred types, and the names of its columns that have no type.

    Parameters
    ----------
    backend
        The connection of ibis.
    table
        The name of a table or view, or an ibis table over tables and views.
    """
    register_functions(backend)
    if isinstance(table, str):
        return _table_without_guesses(backend, table, "main")
    from ibis.expr.operations import DatabaseTable

    bases = {(op.name, op.namespace.database or "main") for op in table.op().find(DatabaseTable)}
    if isinstance(table.op(), DatabaseTable):
        ((name, database),) = bases
        return _table_without_guesses(backend, name, database)
    for name, database in sorted(bases):
        declared = _read_declarations(backend, name, database)
        without = [column for column, type_name in declared.items() if not type_name]
        if without:
            raise InvalidTypeError(
                f"table must be the table {quote(name)} itself and no expression of it, because its column "
                f"{quote(without[0])} was declared without a type, and ibis has guessed one from a row: use where"
            )
    return table, frozenset()


def _read_declarations(backend: Any, name: str, database: str) -> dict[str, str]:
    """Return the declared type of each column, "" for none."""
    query = "SELECT name, type FROM pragma_table_info(?, ?)"
    rows = ask("SQLite", "reading the columns", lambda: backend.con.execute(query, (name, database)).fetchall())
    return dict(rows)


def _table_without_guesses(backend: Any, name: str, database: str) -> tuple[Any, frozenset[str]]:
    import ibis.expr.operations as ops
    import ibis.expr.schema as sch
    from ibis.common.exceptions import UnsupportedBackendType

    declared = _read_declarations(backend, name, database)
    schema: dict[str, Any] = {}
    for column, type_name in declared.items():
        # An empty or unknown declaration is no type.
        dtype = None
        with suppress(UnsupportedBackendType, ValueError, TypeError):
            dtype = backend._parse_type(type_name, True) if type_name else None
        schema[column] = None if dtype is None or dtype.is_unknown() else dtype
    table = ops.DatabaseTable(
        name=name,
        schema=sch.Schema({column: dtype or "string" for column, dtype in schema.items()}),
        source=backend,
        namespace=ops.Namespace(database=None if database == "main" else database),
    ).to_expr()
    return table, frozenset(column for column, dtype in schema.items() if dtype is None)


def _decode(cell: Any, pattern: str) -> str | None:
    """Return the text of a cell if the pattern matches the whole text."""
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
    text = _decode(cell, SPELLINGS["integer"])
    number = None if text is None else int(text.partition(".")[0])
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _parse_float(cell: Any) -> float | None:
    if isinstance(cell, int | float):
        return float(cell)
    text = _decode(cell, SPELLINGS["float"])
    return None if text is None else float(text)


def _parse_timestamp(cell: Any) -> str | None:
    """Return a timestamp as conditions compare it: with a blank between date and time, without trailing zeros."""
    text = _decode(cell, SPELLINGS["timestamp"])
    if text is None:
        return None
    day, clock = text[:10], text[11:] or "00:00:00"
    clock = clock if clock.count(":") == 2 else f"{clock}:00"
    return f"{day} {clock.rstrip('0').rstrip('.') if '.' in clock else clock}"


def _count_days(cell: Any) -> int | None:
    text = _decode(cell, SPELLINGS["date"])
    return None if text is None else date.fromisoformat(text).toordinal() - _EPOCH.toordinal()


def _count_seconds(cell: Any) -> int | None:
    text = _decode(cell, MOMENT)
    if text is None:
        return None
    # The offset is subtracted last, because the result may lie outside of Python's calendar.
    moment = datetime.fromisoformat(re.sub(r"\.[0-9]+", "", text.replace(" UTC", "Z")))
    offset = moment.utcoffset() or timedelta(0)
    return (moment.replace(tzinfo=UTC) - _EPOCH - offset) // timedelta(seconds=1)


def _decode_text(cell: Any) -> str | None:
    try:
        return cell.decode() if isinstance(cell, bytes) and 0 not in cell else None
    except UnicodeDecodeError:
        return None


def _number_string(cell: Any, alphabet: str, longest: int) -> int | None:
    """Return the number of a text among all strings over an alphabet, or None if it is longer or not one of them."""
    text = _decode_text(cell)
    if text is None or len(text) > longest or not set(text) <= set(alphabet):
        return None
    number = 0
    for character in text:
        number = number * len(alphabet) + alphabet.index(character) + 1
    return number


def _extract_part(day: int | None, second: int | None, part: str) -> int | None:
    """Return a part of a day or a second since 1970; a day has no hour."""
    number = day if day is not None or second is None else second // SECONDS_PER_DAY
    if number is None or not date.min.toordinal() <= number + _EPOCH.toordinal() <= date.max.toordinal():
        return None
    if part == "hour":
        return None if second is None else second % SECONDS_PER_DAY // 3600
    found = date.fromordinal(number + _EPOCH.toordinal())
    parts = {"quarter": (found.month + 2) // 3, "isodow": found.isoweekday()}
    return parts[part] if part in parts else int(getattr(found, part))


_FUNCTIONS = {
    "discreet_md5": lambda cell: (
        hashlib.md5(cell, usedforsecurity=False).hexdigest() if isinstance(cell, bytes) else None
    ),
    "discreet_text": _decode_text,
    "discreet_clean": lambda cell: (
        _decode_text(cell) if isinstance(cell, bytes) and len(cell) <= LONGEST_TEXT else None
    ),
    "discreet_fold": lambda text: fold_case(text) if isinstance(text, str) else None,
    "discreet_integer": _parse_integer,
    "discreet_float": _parse_float,
    "discreet_date": lambda cell: _decode(cell, SPELLINGS["date"]),
    "discreet_timestamp": _parse_timestamp,
    "discreet_days": _count_days,
    "discreet_seconds": _count_seconds,
}


def _choose_by_storage(column: Any, **values: Any) -> Any:
    """Return the value given for the storage type of each cell, NULL for other types."""
    import ibis

    stored = column.typeof()
    branches = [(stored == name, value) for name, value in values.items()]
    return ibis.cases(*branches, else_=ibis.null(branches[0][1].type()))


def _as_blob(column: Any) -> Any:
    """Return the bytes of a text, which a function of Python can take even if they are not UTF-8."""
    return (column if column.type().is_string() else column.cast("string")).cast("binary")


def _call(name: str, result: str, argument: Any) -> Any:
    """Call one of the functions that are registered with a connection."""
    return engine_function(name, result, str(argument.type()).removeprefix("!"))(argument)


def _respell(column: Any, kind: str, formats: Formats) -> Any:
    """Return the bytes of a text as a kind is spelled, by a function that knows the caller's formats."""
    if not (column.type().is_string() and formats.concern(kind)):
        return _as_blob(column)
    call = engine_function(_RESPELL, "binary", "binary", "string", "string")
    return call(_as_blob(column), kind, formats.key)


def _read_integer(column: Any, formats: Formats) -> Any:
    return _choose_by_storage(
        column,
        integer=column.cast("int64"),
        real=_call("discreet_integer", "int64", column),
        text=_call("discreet_integer", "int64", _respell(column, "integer", formats)),
    )


def _read_text(column: Any, formats: Formats) -> Any:
    whole = _call("discreet_integer", "int64", column).cast("string")
    return _choose_by_storage(column, text=column.cast("string"), integer=column.cast("string"), real=whole)


def drop_affinity(key: Any) -> Any:
    """Return a key without the affinity of its column; SQLite makes no index to compare a column with a computed key.

    It would compare each listed item with each touched one.
    """
    kind = str(key.type())
    return engine_function("ifnull", kind, kind, kind)(key, key)


def index_items(listed: Any) -> Any:
    """Return a public list with its items as keys, in a subquery that SQLite computes and indexes, for DISTINCT."""
    key = DIALECT.group_key(listed.item)
    return listed.mutate(item=drop_affinity(key)).distinct()


def digest(value: Any) -> Any:
    """Return the hexadecimal MD5 of bytes, or of a text's bytes."""
    return _call("discreet_md5", "string", value.cast("binary"))


def drop_broken_text(text: Any) -> Any:
    """Return a text, NULL if its bytes are not UTF-8 or if it has a NUL, where SQLite's own functions cut it off."""
    return _call("discreet_text", "string", text.cast("binary"))


def number_string(text: Any, alphabet: str, longest: int) -> Any:
    """Return the number of a text among all strings; SQLite's parser is not deep enough for a sum over its places."""
    call = engine_function(_NUMBER, "int64", "binary", "string", "int64")
    return call(text.cast("binary"), alphabet, longest)


def user_key(column: Any) -> Any:
    """Return the key of a user: a whole number or the bytes of a text, and NULL for a float that is not whole.

    In a column of whole numbers a cell that spells one in text is that number. Other columns have keys of bytes alone.
    """
    import ibis

    stored = column.typeof()
    whole = _call("discreet_integer", "int64", column)
    if not column.type().is_integer():
        return _as_blob(ibis.cases((stored == "real", whole.cast("string")), else_=column.cast("string")))
    # SQLite compares numbers faster than bytes, and a cell of such a column is seldom text.
    spelled = column.cast("string")
    number = spelled.cast("int64")
    is_spelled = _as_blob(number.cast("string")) == _as_blob(spelled)
    found = ibis.cases((stored == "integer", column), (stored == "real", whole), (is_spelled, number), else_=None)
    text = ibis.cases((stored == "real", None), else_=_as_blob(spelled))
    return engine_function("ifnull", "binary", "int64", "binary")(found, text)


def _read_number(column: Any, formats: Formats) -> Any:
    import ibis

    stored = column.typeof()
    if column.type().is_numeric():
        return stored.isin(["integer", "real"]).ifelse(column.cast("float64"), None)
    # Two branches instead of four, because SQLite's parser limits the depth.
    text = _call("discreet_float", "float64", _respell(column, "float", formats))
    return ibis.cases((stored == "text", text), else_=_call("discreet_float", "float64", column))


def _read_boolean(column: Any, formats: Formats) -> Any:
    import ibis

    number = column.cast("int64")
    bit = ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))
    return _choose_by_storage(column, integer=bit, text=read_truth(column.cast("string")))


def _read_moment(name: str, result: str, kind: str) -> Callable[[Any, Formats], Any]:
    """Return a reader of dates or timestamps, which SQLite stores as text."""
    return lambda column, formats: _choose_by_storage(column, text=_call(name, result, _respell(column, kind, formats)))


CELL_READERS: dict[str, Callable[[Any, Formats], Any | None]] = {
    "string": _read_text,
    "integer": _read_integer,
    "float": _read_number,
    "boolean": _read_boolean,
    "date": _read_moment("discreet_date", "date", "date"),
    "timestamp": _read_moment("discreet_timestamp", "string", "timestamp"),
    "timestamp with time zone": lambda column, formats: None,
    DAY_NUMBER: _read_moment("discreet_days", "int64", DAY_NUMBER),
    SECOND_NUMBER: _read_moment("discreet_seconds", "int64", SECOND_NUMBER),
}
"""The functions that read a cell as each kind, by the cell's own type."""


def connect(url: str) -> tuple[Any, Callable[[], None]]:
    """Return a connection to a file that threads can use in turn, and the function that closes it."""
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
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a temporary table filled from the result of a function, which not even a trace of parameters shows.

    The primary key is for the lookups of EXISTS.
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


def find_trouble(backend: Any) -> str | None:
    """Return a message if SQLite cannot write a temporary table that is larger than its cache."""
    try:
        with backend.begin() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE discreet_room AS SELECT zeroblob(16000000) AS bytes")
            cursor.execute("DROP TABLE temp.discreet_room")
    except Exception:
        return "must have room in a folder for temporary files that can be written: set SQLITE_TMPDIR"
    return None


def bytes_text(spelled: Any) -> Any:
    """Return the text of bytes by a function, because a mere cast keeps the collation of the column."""
    import ibis

    return ibis.coalesce(spelled.cast("string"), ibis.null("string"))


DIALECT = Dialect(
    name="sqlite",
    title="SQLite",
    is_file=True,
    connect=connect,
    declare_types=declare_types,
    find_trouble=find_trouble,
    send_unlogged=send_unlogged,
    text_bytes=cast_to_bytes,
    bytes_text=bytes_text,
    digest=digest,
    drop_broken_text=drop_broken_text,
    number_string=number_string,
    # GLOB is a case-sensitive LIKE with other signs.
    like=lambda text, pattern: engine_function("glob", "boolean", "string", "string")(
        re.sub(r"[*?[]", r"[\g<0>]", pattern).replace("%", "*").replace("_", "?"), text
    ),
    # SQLite changes the case of A to Z only.
    fold_case=lambda text, case: text.lower() if case == "lower" else text.upper(),
    trim=trim_spaces,
    clean_text=lambda text: _call("discreet_clean", "string", text.cast("binary")),
    fold=lambda text: _call("discreet_fold", "string", text),
    extract_part=lambda day, second, part: engine_function(_PART, "int64", "int64", "int64", "string")(
        day, second, part
    ),
    drop_affinity=drop_affinity,
    index_items=index_items,
    cell_readers=CELL_READERS,
    user_key=user_key,
    dates_are_text=True,
    # SQLite has no decimals, but its integers become doubles when they overflow.
    total_type="int64",
)
