"""The dialect of MariaDB, which ibis calls mysql. MySQL itself is refused.

The settings of a session change how MariaDB compares text, divides and casts, so that `adapt_table` sets them. Text is
compared as UTF-8 bytes, because collations equate case, accents and blanks at the ends.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import reduce
from operator import add
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from discreet.errors import InvalidValueError
from discreet.sources.events.cells import LONGEST_TEXT, SECONDS_PER_DAY, engine_function, null_unless
from discreet.sources.events.dialects.base import Close, Dialect, digest_bytes, iterate_rows

_SETTINGS = {
    # Without the strict modes a cast never fails, and other modes change what quotes and backslashes mean.
    "sql_mode": "'NO_ENGINE_SUBSTITUTION,NO_UNSIGNED_SUBTRACTION'",
    "time_zone": "'+00:00'",
    "default_regex_flags": "''",
    "max_sort_length": "1024",
    "sql_select_limit": "DEFAULT",
    # Whole numbers are divided as decimals, and fewer places round a quotient up to the next whole number.
    "div_precision_increment": "30",
}

_LONGEST_KEY = 512
"""Maximum number of bytes of a text that identifies a user or an item.

MariaDB sorts and groups by the first 1,024 bytes (`max_sort_length`), and joins temporary tables by up to 512 quickly.
"""

_LONGEST_TEXT = 2**20
"""Maximum number of characters of any text; functions of text make none that is longer."""

_KEY = "_key"
"""The end of the name of an indexed column that holds the bytes of a column of text."""

_COLUMN_TYPES = {"int64": "bigint", "string": "longtext", "date32[day]": "date", "bool": "boolean"}

_READ_ONLY = ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION READ ONLY")
"""The start of a transaction that takes no locks and whose changes of temporary tables are in no binary log."""

_CREATE = "CREATE TEMPORARY TABLE {} ({}) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"

_EPOCH_DAY, _FIRST_DAY = 719_528, 366
"""The days of 1970-01-01 and 0001-01-01, as TO_DAYS counts them."""


def connect(url: str) -> tuple[Any, Close]:
    """Return a connection that may send files, and the function that closes it."""
    import ibis

    # A server may have no table of time zones, of which ibis warns.
    with warnings.catch_warnings(action="ignore"):
        connection = ibis.connect(url.replace("mariadb://", "mysql://", 1), local_infile=True)
    return connection, connection.disconnect


def _ask(backend: Any, *statements: str) -> Any:
    """Run statements, and return the rows of the last one."""
    with backend.con.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        return cursor.fetchall()


def adapt_table(table: Any) -> Any:
    """Prepare the session, and return a table whose columns have the types that ibis takes them for.

    TINYINT(1) becomes a boolean, unsigned numbers and bits become signed ones, dates that are none become NULL, and
    text in a character set that Unicode may not hold exactly becomes bytes. No row is read for that.
    """
    backend = table.get_backend()
    [(version,)] = _ask(backend, "SELECT VERSION()")
    if not re.search("-MariaDB", version):
        raise InvalidValueError("table must be on MariaDB, not on MySQL, on which discreet has not been tested")
    # Replicas would repeat each statement, LOAD DATA with its rows, and InnoDB refuses a transaction without locks.
    [(is_logged, form)] = _ask(backend, "SELECT @@log_bin AND @@sql_log_bin, @@binlog_format")
    if is_logged and form == "STATEMENT":
        raise InvalidValueError(
            "table must be on a connection whose binlog_format is MIXED or ROW, not STATEMENT, with which the binary "
            "log of MariaDB would show which items are looked up"
        )
    settings = ", ".join(f"{name} = {value}" for name, value in _SETTINGS.items())
    backend.con.set_character_set("utf8mb4", "utf8mb4_nopad_bin")
    _ask(backend, f"SET SESSION {settings}")
    query = backend.compile(table)
    with backend.con.cursor() as cursor:
        cursor.execute(f"SELECT * FROM ({query}) AS t LIMIT 0")  # noqa: S608  # made by ibis
        described = {name: (code, length) for name, code, _, _, length, *_ in cursor.description}
    texts = [name for name, dtype in table.schema().items() if dtype.is_string()]
    charsets = _ask_charsets(backend, query, texts)
    found = {name: _adapt_text(table[name], charset) for name, charset in zip(texts, charsets, strict=True)}
    found |= {name: _adapt_column(table[name], *described[name]) for name in table.columns if name not in texts}
    adapted = {name: column for name, column in found.items() if column is not None}
    return table.mutate(**adapted) if adapted else table


def _ask_charsets(backend: Any, query: str, names: list[str]) -> tuple[str, ...]:
    """Return the character sets of columns of text."""
    asked = ", ".join(f"CHARSET(MAX(`{name.replace('`', '``')}`))" for name in names)
    [found] = _ask(backend, f"SELECT {asked} FROM ({query}) AS t WHERE FALSE") if names else [()]  # noqa: S608
    return tuple(found)


def describe_type(column: Any) -> str:
    """Return the name of a column's type, or the character set of text that `adapt_table` made bytes of."""
    import ibis.expr.operations as ops

    made = column.op()
    while isinstance(made, ops.Field) and isinstance(made.rel, ops.Project):
        made = made.rel.values[made.name]
    texts = [each for each in made.find(ops.Field, filter=ops.Value) if each.dtype.is_string()]
    if not (column.type().is_binary() and texts):
        return str(column.type())
    backend = column.get_backend()
    [charset] = _ask_charsets(backend, backend.compile(texts[0].rel.to_expr()), [texts[0].name])
    return f"text in the character set {charset}, which is read as bytes: convert the column to utf8mb4"


def _adapt_text(text: Any, charset: str) -> Any:
    if charset in ("utf8mb4", "utf8mb3", "utf8", "latin1"):
        return None
    own = _bytes_of(text)
    return null_unless(own == text_bytes(text), text) if charset == "ascii" else own


def _bytes_of(text: Any) -> Any:
    """Return the bytes of a text in its own character set, NULL if it has more characters than any that is used.

    HEX of a LONGTEXT could be longer than MariaDB's types allow, and a temporary table would keep nothing of it.
    """
    part = engine_function("substr", "string", "string", "int64", "int64")(text, 1, _LONGEST_TEXT)
    spelled = engine_function("unhex", "binary", "string")(engine_function("hex", "string", "string")(part))
    return null_unless(text.length() <= _LONGEST_TEXT, spelled)


def _adapt_column(column: Any, code: int, length: int) -> Any:
    """Return a column that is no text in another type, or None if its own will do."""
    import ibis
    from MySQLdb.constants import FIELD_TYPE

    dtype = column.type()
    if code == FIELD_TYPE.BIT or dtype.is_uint64():
        return column.cast("uint64").cast("decimal(20, 0)")
    if code == FIELD_TYPE.TINY and length == 1:
        return ibis.cases((column == 1, True), (column == 0, False), else_=ibis.null("boolean"))
    if dtype.is_unsigned_integer():
        return column.cast("int64")
    if dtype.is_date() or dtype.is_timestamp():
        kind = str(dtype)
        last = engine_function("last_day", "date", kind)(column)
        is_in_month = engine_function("dayofmonth", "int64", kind)(column) <= engine_function(
            "dayofmonth", "int64", "date"
        )(last)
        # TO_DAYS is NULL for a zero in place of the month or the day.
        return null_unless((_to_days(column) >= _FIRST_DAY) & is_in_month, column)
    return None


def _to_days(moment: Any) -> Any:
    return engine_function("to_days", "int64", str(moment.type()))(moment)


def text_bytes(text: Any) -> Any:
    """Return the bytes of a text in UTF-8, to which a cast to CHAR converts it."""
    import ibis.expr.operations as ops

    column = text.op()
    if isinstance(column, ops.Field) and f"{column.name}{_KEY}" in column.rel.schema:
        return ops.Field(column.rel, f"{column.name}{_KEY}").to_expr()
    # ibis leaves out a cast to the type that it believes a column to have.
    return _bytes_of(text.cast("string(4294967295)"))


def fit_key(key: Any) -> Any:
    """Return the bytes of a text, NULL if they are too many; as a part of that length they fit an index."""
    length = engine_function("octet_length", "int64", "binary")(key)
    part = engine_function("substr", "binary", "binary", "int64", "int64")(key, 1, _LONGEST_KEY)
    return null_unless(length <= _LONGEST_KEY, part)


def bytes_text(spelled: Any) -> Any:
    """Return the text of bytes in UTF-8, in the collation of the session, which compares bytes."""
    return spelled.cast("string")


def digest(value: Any) -> Any:
    """Return the hexadecimal MD5 of bytes, or of a text's bytes."""
    return digest_bytes(value, text_bytes)


def hash_number(*texts: Any) -> Any:
    """Return the first 48 bits of the MD5 of some texts as a number."""
    digits = digest(reduce(add, texts)).left(12)
    return engine_function("conv", "string", "string", "int64", "int64")(digits, 16, 10).cast("int64")


def fold_case(text: Any, case: str) -> Any:
    """Return a text with A to Z in another case; a byte of a letter in ASCII is part of no other character."""
    pairs = zip(*((ascii_uppercase, ascii_lowercase) if case == "lower" else (ascii_lowercase, ascii_uppercase)),
                strict=True)  # fmt: skip
    return reduce(lambda found, pair: found.replace(*pair), pairs, bytes_text(text_bytes(text)))


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it has a NUL or is too long."""
    length = engine_function("octet_length", "int64", "binary")(text_bytes(text))
    return null_unless((length <= LONGEST_TEXT) & (find("\0", text) < 0), text)


def find(part: Any, text: Any) -> Any:
    """Return the place of a text in another one, counted from 0, or -1."""
    import ibis

    part = ibis.literal(part) if isinstance(part, str) else part
    text = ibis.literal(text) if isinstance(text, str) else bytes_text(text_bytes(text))
    return engine_function("locate", "int64", "string", "string")(part, text) - 1


def shift_right(number: Any, bits: int) -> Any:
    """Return a number divided by a power of 2, rounded down; MariaDB shifts numbers below zero as if unsigned."""
    import ibis

    if not bits:
        return number
    # Two casts, because ibis believes that the result is signed already.
    return ibis.cases(
        (number < 0, -1 - ((-1 - number) >> bits).cast("int32").cast("int64")),
        else_=(number >> bits).cast("int32").cast("int64"),
    )


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970."""
    return _to_days(day) - _EPOCH_DAY


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds of a timestamp since 1970, rounded down; the zone of the session is UTC."""
    seconds = engine_function("to_seconds", "int64", str(moment.type()))(moment)
    return seconds - _EPOCH_DAY * SECONDS_PER_DAY


def extract_part(day: Any, second: Any, part: str) -> Any:
    """Return a part of a day or a second since 1970; a day has no hour."""
    import ibis

    least, most = date.min.toordinal() + _FIRST_DAY - 1, date.max.toordinal() + _FIRST_DAY - 1
    number = ibis.coalesce(day, second // SECONDS_PER_DAY) + _EPOCH_DAY
    found = engine_function("from_days", "date", "int64")(null_unless(number.between(least, most), number))
    if part == "hour":
        return null_unless(found.notnull(), (second - second // SECONDS_PER_DAY * SECONDS_PER_DAY) // 3600)
    if part == "isodow":
        return engine_function("weekday", "int64", "date")(found) + 1
    return engine_function({"day": "dayofmonth"}.get(part, part), "int64", "date")(found)


def cache(query: Any) -> Any:
    """Return a temporary table with the rows of a query, whose text is UTF-8 whatever the database's character set.

    Replicas are told nothing of its rows, and no row of the events is locked.
    """
    import ibis.expr.types as ir

    class Snapshot(ir.Table):  # type: ignore[misc]  # ibis has partial types
        def release(self) -> None:
            _drop(backend, name)

    backend, name = query.get_backend(), f"discreet_scores_{uuid.uuid4().hex}"
    backend._run_pre_execute_hooks(query)
    known = backend.compiler.type_mapper
    types = [
        "longtext" if kind.is_string() else "longblob" if kind.is_binary() else known.to_string(kind)
        for kind in query.schema().values()
    ]
    columns = ", ".join(f"`{column}` {kind}" for column, kind in zip(query.columns, types, strict=True))
    _ask(backend, _CREATE.format(name, columns))
    try:
        _ask(backend, *_READ_ONLY, f"INSERT INTO {name} {backend.compile(query)}", "COMMIT")
    except BaseException:
        _drop(backend, name)
        raise
    return Snapshot(_temporary_table(backend, name, query.schema()).op())


def _temporary_table(backend: Any, name: str, schema: Any) -> Any:
    """Return a temporary table with the types that it was made of, some of which MariaDB does not tell apart."""
    import ibis.expr.operations as ops

    return ops.DatabaseTable(name, schema=schema, source=backend, namespace=ops.Namespace()).to_expr()


def _drop(backend: Any, name: str) -> None:
    # An open transaction ends first, because a table may have been made while its insertion failed.
    _ask(backend, "ROLLBACK", f"DROP TEMPORARY TABLE IF EXISTS {name}")


@contextmanager
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a temporary table filled from a file that only this process can read, which no statement shows.

    A column of text has an indexed column of its bytes beside it, unless a text of it is longer than an index allows.
    """
    import ibis.expr.schema as sch

    types, schema, indexed = [], dict(sch.Schema.from_pyarrow(rows.schema)), []
    for field in rows.schema:
        types.append(_COLUMN_TYPES[str(field.type)])
        key = field.name
        if field.type == "string":
            longest = max((len(text.encode()) for text in rows[field.name].to_pylist() if text), default=0)
            key = f"{field.name}{_KEY}" if longest <= _LONGEST_KEY else None
        if key is not None:
            indexed.append(key)
    keys = [key for key in indexed if key not in rows.column_names]
    columns = [f"`{column}` {kind}" for column, kind in zip(rows.column_names, types, strict=True)]
    columns += [f"`{key}` varbinary({_LONGEST_KEY}) AS (BINARY `{key.removesuffix(_KEY)}`) STORED" for key in keys]
    # An index has at most 3,072 bytes.
    kept = [f"`{key}`" for key in indexed if key not in keys[2:]]
    columns += [f"INDEX ({', '.join(kept)})"] if kept else []
    schema |= dict.fromkeys(keys, "binary")
    with _write_privately(rows) as path:
        _ask(backend, _CREATE.format(name, ", ".join(columns)))
        try:
            _load(backend, name, path, rows.column_names)
        except BaseException:
            _drop(backend, name)
            raise
    try:
        yield _temporary_table(backend, name, sch.schema(schema))
    finally:
        _drop(backend, name)


@contextmanager
def _write_privately(rows: Any) -> Iterator[Path]:
    """Yield a file of rows as LOAD DATA reads them, in a folder that only this user can read."""
    folder = Path(tempfile.gettempdir()) / f"discreet_rows_{uuid.uuid4().hex}"
    folder.mkdir(mode=0o700)
    path = folder / "rows"
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines("\t".join(map(_spell, row)) + "\n" for row in iterate_rows(rows))
        yield path
    finally:
        path.unlink(missing_ok=True)
        folder.rmdir()


def _spell(cell: Any) -> str:
    if cell is None:
        return "\\N"
    text = str(int(cell)) if isinstance(cell, bool) else str(cell)
    for sign, name in (("\\", "\\"), ("\t", "t"), ("\n", "n"), ("\0", "0")):
        text = text.replace(sign, f"\\{name}")
    return text


def _load(backend: Any, name: str, path: Path, columns: list[str]) -> None:
    """Fill a temporary table from a file, without a trace in a log."""
    from MySQLdb import Error

    is_refused = False
    try:
        with backend.con.cursor() as cursor:
            for each in _READ_ONLY:
                cursor.execute(each)
            loading = f"LOAD DATA LOCAL INFILE %s INTO TABLE {name} CHARACTER SET utf8mb4 (`{'`, `'.join(columns)}`)"
            cursor.execute(loading, (os.fspath(path),))
            cursor.execute("COMMIT")
    except Error as error:
        if error.args[:1] not in [(code,) for code in _NO_FILES]:
            raise
        is_refused = True
    if is_refused:
        raise InvalidValueError(
            "table must be on a connection that may send files, so that no log of MariaDB shows which items are "
            "looked up: give ibis.mysql.connect local_infile=True, and set local_infile=ON on the server"
        )


_NO_FILES = (1148, 2000, 2068, 3948, 4166)
"""The errors about LOAD DATA LOCAL, which the server or the client may refuse."""


def find_trouble(backend: Any) -> str | None:
    """Return a message if the connection cannot send rows."""
    import pyarrow as pa

    try:
        with send_unlogged(backend, f"discreet_rows_{uuid.uuid4().hex}", pa.table({"n": [1]})):
            return None
    except InvalidValueError:
        raise
    except Exception:
        return "must let this account make temporary tables, and have room for them"


DIALECT = Dialect(
    name="mysql",
    title="MariaDB",
    packages=("ibis-framework[mysql]",),
    connect=connect,
    adapt_table=adapt_table,
    describe_type=describe_type,
    copies_local_tables=True,
    send_unlogged=send_unlogged,
    cache=cache,
    text_bytes=text_bytes,
    bytes_text=bytes_text,
    fit_key=fit_key,
    digest=digest,
    hash_number=hash_number,
    find=find,
    fold_case=fold_case,
    trim=lambda text, name: engine_function(name, "string", "string")(text),
    clean_text=clean_text,
    text_end=r"\z",
    has_try_cast=False,
    has_nan=False,
    digits_type="decimal(65, 0)",
    shift_right=shift_right,
    count_days=count_days,
    count_seconds=count_seconds,
    extract_part=extract_part,
    find_trouble=find_trouble,
)
