"""What differs between engines: one frozen Dialect each. Everything else asks the dialect, and never an engine's name.

To add an engine, write its Dialect here, list it in `_KNOWN`, and give the contract tests a line. Any other engine of
ibis gets a generic one that promises little: text is not put in order or trimmed there, and what is private is not
sent to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from discreet.sources.events import calendar_counts, sqlite
from discreet.sources.events.cells import engine_function
from discreet.sources.events.embedded import Close, connect_to_file

_LAST_DECIMAL_PLACE = 300
"""The last place of a decimal of PostgreSQL's that counts; floats go a little further."""


def _connect_by_ibis(url: str) -> tuple[Any, Close]:
    import ibis

    connection = ibis.connect(url.replace("postgresql://", "postgres://", 1))
    return connection, connection.disconnect


def _like(text: Any, pattern: str) -> Any:
    return text.like(pattern)


def _translate_case(text: Any, case: str) -> Any:
    """The 26 letters in lower or upper case; what engines do to others depends on versions and locales."""
    letters = (ascii_uppercase, ascii_lowercase)
    return text.translate(*(letters if case == "lower" else reversed(letters)))


@dataclass(frozen=True, eq=False, repr=False)
class Dialect:
    """How one engine is asked for what all of them should answer alike.

    Attributes
    ----------
    name, title
        What ibis calls the engine, and what messages call one that was opened by its URL.
    extra
        The extra of this package that brings its driver, if one does.
    is_file
        Whether its URL is the path of a file, which opening would make where there is none.
    connect
        A connection to a URL, and what closes it.
    declare_types
        A table without types that were guessed from rows, and the names of the columns that then have none; None where
        every column has a type that somebody declared.
    views_local_tables
        Whether a table in memory has to become a view before the engine can cache what is made of it.
    send_unlogged
        A temporary table of a name with the rows of an Arrow table, sent by a way that no log, history or plan of the
        engine shows; None where none is known, and then nothing is sent.
    text_bytes
        The UTF-8 bytes of a text, whose equality and order no collation changes; None where it is not known how.
    digest
        The MD5 of a text or of bytes, as hexadecimal text: a hash that is the same on every engine.
    equates_by_bytes
        Whether a condition compares text by its bytes for = too, because a column may ignore case.
    like, fold_case, trim
        LIKE that tells capitals apart; the letters A to Z in "lower" or "upper" case; a text without the spaces at its
        ends ("trim", "ltrim" or "rtrim"), None where it is not known how.
    text_end
        The end of a text in a regular expression.
    has_try_cast
        Whether TRY_CAST gives NULL where a cast fails; else a cast must be kept from cells on which it would.
    limit_to_calendar
        A date or timestamp, NULL outside of the years 1 to 9999; those convert to text and back as ISO 8601 has them,
        and so do booleans. None where the engine is not known to do so.
    count_days, count_seconds
        The days of a date and the whole seconds of a timestamp since 1970 in UTC, rounded down, whatever the zone of
        the session; a column without a zone is in UTC. What is outside of the years 1 to 9999 may be NULL. None where
        it is not known how.
    cell_readers, spell_user
        Where a cell has a type of its own, whatever its column was declared as: how one is read as each kind, and how
        it spells a user. None where columns have types.
    dates_are_text
        Whether dates and timestamps are kept as text.
    total_type
        A type in which sums of 64-bit integers do not overflow, or turn into what is beyond them.
    drop_strange_decimals
        A decimal column without what neither is a number nor converts to a float.
    """

    name: str
    title: str
    extra: str | None = None
    is_file: bool = False
    connect: Callable[[str], tuple[Any, Close]] = _connect_by_ibis
    declare_types: Callable[[Any, Any], tuple[Any, frozenset[str]]] | None = None
    views_local_tables: bool = False
    send_unlogged: Callable[[Any, str, Any], AbstractContextManager[Any]] | None = None
    text_bytes: Callable[[Any], Any] | None = None
    digest: Callable[[Any], Any] = lambda value: value.hexdigest("md5")
    equates_by_bytes: bool = False
    like: Callable[[Any, str], Any] = _like
    fold_case: Callable[[Any, str], Any] = _translate_case
    trim: Callable[[Any, str], Any] | None = None
    text_end: str = "$"
    has_try_cast: bool = True
    limit_to_calendar: Callable[[Any, str], Any] | None = None
    count_days: Callable[[Any], Any] | None = None
    count_seconds: Callable[[Any], Any] | None = None
    cell_readers: Mapping[str, Callable[[Any], Any | None]] | None = None
    spell_user: Callable[[Any], Any] | None = None
    dates_are_text: bool = False
    total_type: str = "decimal(38, 0)"
    drop_strange_decimals: Callable[[Any], Any] = lambda value: value

    @property
    def has_typed_columns(self) -> bool:
        """Whether a column holds values of its declared type alone."""
        return self.cell_readers is None

    def group_key(self, value: Any) -> Any:
        """What to group and join by: the bytes of a text, and any other value as it is.

        A column may compare text without case (NOCASE, citext), and then a GROUP BY takes one user's spelling for
        everybody's.
        """
        return value if self.text_bytes is None or not value.type().is_string() else self.text_bytes(value)


def dialect_named(name: str) -> Dialect:
    """The dialect of an engine, by the name that ibis or the scheme of a URL has for it."""
    return _KNOWN.get(name) or Dialect(name=name, title=name)


def dialect_of(table: Any) -> Dialect:
    """The dialect of the engine of an ibis table."""
    return dialect_named(str(table.get_backend().name))


def _digest_by_md5(value: Any) -> Any:
    return engine_function("md5", "string", str(value.type()).removeprefix("!"))(value)


def _trim_spaces(text: Any, name: str) -> Any:
    """A trim that is told what to remove: DuckDB removes more unless told."""
    return engine_function(name, "string", "string", "string")(text, " ")


def _trim_plainly(text: Any, name: str) -> Any:
    """A trim that is not told what to remove: Spark reads two arguments in reverse."""
    return engine_function(name, "string", "string")(text)


def _glob(text: Any, pattern: str) -> Any:
    """LIKE as SQLite's GLOB, which tells capitals apart."""
    escaped = re.sub(r"[*?[]", r"[\g<0>]", pattern).replace("%", "*").replace("_", "?")
    return engine_function("glob", "boolean", "string", "string")(escaped, text)


def _cast_to_bytes(text: Any) -> Any:
    return text.cast("binary")


def _drop_odd_numerics(value: Any) -> Any:
    """A numeric of PostgreSQL's that converts to a float: without NaN, which is above all numbers, and not too fine."""
    import ibis

    value = value.nullif(ibis.literal("NaN").cast(value.type()))
    return engine_function("round", "decimal", "decimal", "int32")(value, _LAST_DECIMAL_PLACE)


@contextmanager
def _register_with_duckdb(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A view of the Arrow table, which DuckDB scans where it lies."""
    backend.con.register(name, rows)
    try:
        yield backend.table(name)
    finally:
        backend.con.unregister(name)


@contextmanager
def _copy_to_postgres(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary table, filled by COPY: its rows are no part of a statement, and in binary of no error either."""
    types = [_POSTGRES_TYPES[str(field.type)] for field in rows.schema]
    with backend.con.cursor() as cursor, backend.con.transaction():
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({_declare_columns(rows, types)})")
        with cursor.copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(types)
            for row in _iterate_rows(rows):
                copy.write_row(row)
    try:
        yield backend.table(name)
    finally:
        with backend.con.cursor() as cursor, backend.con.transaction():
            cursor.execute(f"DROP TABLE {name}")


@contextmanager
def _insert_into_sqlite(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary table, filled from what a function returns: even a trace, which shows parameters, does not show it.

    The key is what EXISTS looks up, row by row.
    """
    columns = _declare_columns(rows, [_SQLITE_TYPES[str(field.type)] for field in rows.schema])
    values = ", ".join(f"json_extract(value, '$[{i}]')" for i in range(rows.num_columns))
    text = json.dumps(list(_iterate_rows(rows)), default=lambda day: day.isoformat())
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


@contextmanager
def _view_on_spark(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary view of a local relation, which plans show by its columns alone."""
    from pyspark.sql.functions import broadcast

    session = backend._session
    schema = _declare_columns(rows, [_SPARK_TYPES[str(field.type)] for field in rows.schema])
    with _enable_spark_arrow(session):
        frame = session.createDataFrame(rows.to_pandas(), schema)
    # The rows are few, which Spark may not know, and would sort both sides.
    broadcast(frame).createOrReplaceTempView(name)
    try:
        yield backend.table(name)
    finally:
        session.catalog.dropTempView(name)


@contextmanager
def _enable_spark_arrow(session: Any) -> Iterator[None]:
    """Frames cross to Spark as Arrow batches inside; else as pickles, which Python processes there have to read."""
    given = session.conf.get(_SPARK_ARROW)
    if given == "true":
        yield
        return
    session.conf.set(_SPARK_ARROW, "true")
    try:
        yield
    finally:
        session.conf.set(_SPARK_ARROW, given)


_SPARK_ARROW = "spark.sql.execution.arrow.pyspark.enabled"

_POSTGRES_TYPES = {"int64": "int8", "string": "text", "date32[day]": "date", "bool": "bool"}
_SQLITE_TYPES = {"int64": "INTEGER", "string": "TEXT", "date32[day]": "DATE", "bool": "BOOLEAN"}
_SPARK_TYPES = {"int64": "bigint", "string": "string", "date32[day]": "date", "bool": "boolean"}


def _declare_columns(rows: Any, types: list[str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in zip(rows.column_names, types, strict=True))


def _iterate_rows(rows: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


DUCKDB = Dialect(
    name="duckdb",
    title="DuckDB",
    is_file=True,
    connect=connect_to_file,
    send_unlogged=_register_with_duckdb,
    text_bytes=lambda text: engine_function("encode", "binary", "string")(text),
    digest=_digest_by_md5,
    trim=_trim_spaces,
    limit_to_calendar=calendar_counts.limit_duckdb_to_calendar,
    count_days=calendar_counts.count_duckdb_days,
    count_seconds=calendar_counts.count_duckdb_seconds,
)

POSTGRES = Dialect(
    name="postgres",
    title="PostgreSQL",
    extra="postgres",
    send_unlogged=_copy_to_postgres,
    text_bytes=lambda text: engine_function("convert_to", "binary", "string", "string")(text, "UTF8"),
    digest=_digest_by_md5,
    trim=_trim_spaces,
    has_try_cast=False,
    count_days=calendar_counts.count_postgres_days,
    count_seconds=calendar_counts.count_postgres_seconds,
    drop_strange_decimals=_drop_odd_numerics,
)

SQLITE = Dialect(
    name="sqlite",
    title="SQLite",
    is_file=True,
    connect=sqlite.connect,
    declare_types=sqlite.declare_types,
    send_unlogged=_insert_into_sqlite,
    text_bytes=_cast_to_bytes,
    digest=sqlite.digest,
    equates_by_bytes=True,
    like=_glob,
    # SQLite knows no other letters than these 26.
    fold_case=lambda text, case: text.lower() if case == "lower" else text.upper(),
    trim=_trim_spaces,
    cell_readers=sqlite.CELL_READERS,
    spell_user=sqlite.spell_user,
    dates_are_text=True,
    # It has no decimals, but its integers turn into doubles where they overflow.
    total_type="int64",
)

SPARK = Dialect(
    name="pyspark",
    title="Spark",
    # Spark's cache does not know tables in memory unless a view stands for them.
    views_local_tables=True,
    send_unlogged=_view_on_spark,
    text_bytes=_cast_to_bytes,
    digest=_digest_by_md5,
    trim=_trim_plainly,
    # To Java, $ is also before the end of the last line.
    text_end=r"\z",
    count_days=calendar_counts.count_spark_days,
    count_seconds=calendar_counts.count_spark_seconds,
)

DATABRICKS = replace(SPARK, name="databricks", title="databricks", views_local_tables=False, send_unlogged=None)

_KNOWN = {each.name: each for each in (DUCKDB, POSTGRES, SQLITE, SPARK, DATABRICKS)} | {"postgresql": POSTGRES}
