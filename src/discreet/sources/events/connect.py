"""Whatever a caller may hold as a table, as one ibis table with the name of its engine.

Files and frames run on an embedded DuckDB. A text file has no schema, and guessing one would look at private rows, so
its columns are read as text; the public domain and the public condition say what to make of them.
"""

from __future__ import annotations

import os
import re
import uuid
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, MissingExtraError, quote
from discreet.sources.events.csv_files import DELIMITERS, USUAL, CsvFormat
from discreet.sources.events.dialects.base import SENT_TYPES, Dialect, connect_in_memory, dialect_named, dialect_of
from discreet.sources.events.engine import EngineError, ask
from discreet.sources.events.location import (
    FoundFiles,
    fetch_text_file,
    find_files,
    is_path,
    is_paths,
    is_remote,
    list_files,
    list_remote_files,
    load_httpfs,
    locate_remote_file,
)

if TYPE_CHECKING:
    from discreet.sources.events.csv_files import CsvRows
    from discreet.sources.events.frames import FrameColumn


# Tables of a database by name: of its own schema, of another one, or as the public list of items.

PREFIX = "connect:"
"""What a list begins with that is a column of a table beside the events, in the same database."""


@dataclass(frozen=True)
class TableName:
    """The name of a table, and of its schema where it was said."""

    table: str
    schema: str | None = None

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


def parse_table_name(given: Any) -> TableName:
    """The name that a caller means by "events", "mart.events" or ("mart", "events")."""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) and part for part in given):
        return TableName(given[1], given[0])
    if not isinstance(given, str) or not given:
        raise InvalidTypeError(
            "name must be the name of a table, such as 'events', 'mart.events' or ('mart', 'events'), "
            f"not {quote(given)}"
        )
    schema, _, table = given.partition(".")
    return TableName(table, schema) if schema and table else TableName(given)


def parse_listed_column(given: Any) -> tuple[TableName, str | None] | None:
    """The table and the column of "connect:mart.products.id"; None for any other list."""
    if not isinstance(given, str) or not given.startswith(PREFIX):
        return None
    parts = given.removeprefix(PREFIX).split(".")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise InvalidValueError(
            f"domain must be {PREFIX}TABLE.COLUMN or {PREFIX}SCHEMA.TABLE.COLUMN, not {quote(given)}"
        )
    *schema, table, column = parts
    return TableName(table, schema[0] if schema else None), column


def open_named_table(connection: Any, engine: str, name: TableName, argument: str) -> Any:
    """The ibis table of that name."""
    found = find_named_table(connection, engine, name, argument)
    schema = {} if found.schema is None else {"database": found.schema}

    def read_table() -> Any:
        table = connection.table(found.table, **schema)
        return dialect_of(table).adapt_table(table)

    return ask(engine, "opening the table", read_table, "the right to read it")


def find_named_table(connection: Any, engine: str, name: TableName, argument: str) -> TableName:
    """The name as the engine has it; of a table that is not there it is refused without a word about others."""
    if str(name) != name.table and str(name) in ask(engine, "listing tables", connection.list_tables):
        # A name may have a dot in it.
        name = TableName(str(name))
    schema = {} if name.schema is None else {"database": name.schema}
    known = name.schema is None or name.schema in ask(engine, "listing schemas", connection.list_databases)
    if not known or name.table not in ask(engine, "listing tables", lambda: connection.list_tables(**schema)):
        raise InvalidValueError(f"{argument} must be a table of {engine}, and {quote(str(name))} is none")
    return name


def server_of(url: str) -> str:
    """The host and the port of a URL, which say who does not answer; nothing else of it may be shown."""
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest)[0]
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", authority.rpartition("@")[2])
    # A password may hold a slash, and then what looks like the host is part of it.
    if found is None or "@" in rest[len(authority) :]:
        return "the server of that URL"
    return f"{found[1] or 'localhost'}{'' if found[2] is None else f', port {found[2]}'}"


@dataclass(eq=False, repr=False)
class Opened:
    """An ibis table and its engine, as it was opened.

    Attributes
    ----------
    table, engine
        The ibis table, and what messages call its engine.
    undeclared
        The columns whose type nobody has declared: their cells are read one by one, as what they are compared with.
    is_text
        Whether the table is a text file, whose header may be somebody's row.
    csv_format
        What the caller says of CSV files.
    csv_rows
        The streams of rows behind a private CSV file, which know how many rows they have left out.
    is_pandas
        True if the table is a pandas frame.
    cleanup
        What to do when it is no longer needed.
    """

    table: Any
    engine: str
    undeclared: frozenset[str] = frozenset()
    is_text: bool = False
    is_pandas: bool = False
    csv_format: CsvFormat = USUAL
    csv_rows: list[CsvRows] = field(default_factory=list)
    cleanup: list[Callable[[], None]] = field(default_factory=list)

    @property
    def dialect(self) -> Dialect:
        """That of the engine."""
        return dialect_of(self.table)

    def drop_collation(self, column: str) -> Any:
        """Return a column whose text is compared by its bytes."""
        values = self.table[column]
        return self.dialect.drop_collation(values) if values.type().is_string() else values

    def adopt(self, rows: Any) -> Any:
        """A public Arrow table as a table of this engine, which lasts until this one is closed."""
        backend, name, dialect = self.table.get_backend(), _unused_name("domain"), self.dialect
        send = dialect.send_unlogged if dialect.copies_local_tables else None
        if send is not None and {str(field.type) for field in rows.schema} <= SENT_TYPES:
            stack = ExitStack()
            table = ask(
                self.engine,
                "sending the domain",
                lambda: stack.enter_context(send(backend, name, rows)),
                "the right to make temporary tables",
            )
            self.cleanup.append(stack.close)
            return table
        local = _import_ibis().memtable(rows)
        if not dialect.views_local_tables:
            return local
        view = ask(self.engine, "sending the domain", lambda: backend.create_view(name, local))
        self.cleanup.append(lambda: (backend.drop_view(name), local)[0])
        return view

    def close(self) -> None:
        """Drops what opening made; a failure to do so is not reported."""
        while self.cleanup:
            # The engine may be gone already, and its words are private.
            with suppress(Exception):
                self.cleanup.pop()()


def open_table(
    given: Any,
    name: Any,
    argument: str,
    wanted: Collection[str] | None = None,
    csv_format: CsvFormat = USUAL,
    user: str | None = None,
) -> Opened:
    """The table behind a path, a URL, a frame, a relation, an ibis table or a Spark DataFrame.

    Parameters
    ----------
    given
        What the caller passed.
    name
        The table's name in the database, with its schema or without, where `given` is a URL.
    argument
        What error messages call it.
    wanted
        The columns of private rows that will be asked for; None where the table is public, and read as it is.
    csv_format
        What the caller says of CSV files.
    user
        The column of the users, where the table has some.
    """
    if name is not None and not is_url(given):
        raise InvalidValueError(f"name must be left out unless {argument} is a connection URL")
    if is_url(given):
        return _open_url(given, name, argument)
    if is_path(given) or is_paths(given):
        return _open_files(given, argument, wanted, csv_format, user)
    package = type(given).__module__.partition(".")[0]
    if package in ("pandas", "polars", "pyarrow"):
        return _open_frame(given, wanted, argument, user)
    if package in ("duckdb", "_duckdb") and hasattr(given, "to_arrow_table"):
        return _open_relation(given, wanted, argument)
    if package == "ibis" and hasattr(given, "columns"):
        return _open_ibis(given, argument, wanted)
    if package == "pyspark" and hasattr(given, "createOrReplaceTempView"):
        return _open_spark(given)
    raise InvalidTypeError(
        f"{argument} must be a path or a list of paths, a connection URL, a pandas, polars or pyarrow table, a DuckDB "
        f"relation, an ibis table or a Spark DataFrame, not a {type(given).__name__}"
    )


def is_url(given: Any) -> bool:
    """Whether something is the URL of a database."""
    is_any = isinstance(given, str) and re.match(r"^[a-z][a-z0-9+]*://", given) is not None
    return is_any and not is_remote(given)


def as_arrow(frame: Any, argument: str) -> Any:
    """A pandas, polars or pyarrow table as an Arrow table."""
    import pyarrow as pa

    def convert() -> Any:
        if isinstance(frame, pa.Table):
            return frame
        if hasattr(frame, "collect"):
            return frame.collect().to_arrow()
        if hasattr(frame, "to_arrow"):
            return frame.to_arrow()
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        return pa.Table.from_pandas(frame, preserve_index=False)

    if not is_frame(frame):
        raise InvalidTypeError(f"{argument} must be a table with columns, not a {type(frame).__name__}")
    return ask("Arrow", f"reading {argument}", convert)


def is_frame(given: Any) -> bool:
    """Whether something of pandas, polars or pyarrow has columns; the names of the types, because asking may warn."""
    return type(given).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch")


def _import_ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise MissingExtraError("tables need ibis with DuckDB: pip install 'ibis-framework[duckdb]'") from None
    return ibis


def _start_duckdb() -> tuple[Any, Callable[[], None]]:
    """A DuckDB of our own, and what closes it."""
    _import_ibis()
    return ask("DuckDB", "starting", connect_in_memory)


def _open_frame(frame: Any, wanted: Collection[str] | None, argument: str, user: str | None) -> Opened:
    """Open a frame of pandas, polars or pyarrow, of which only the wanted columns are looked at."""
    from discreet.sources.events.frames import FrameColumn, choose_columns, convert_pandas, keep_nanoseconds

    if not is_frame(frame):
        raise InvalidTypeError(f"{argument} must be a table with columns, not a {type(frame).__name__}")
    package = type(frame).__module__.partition(".")[0]
    if package == "pyarrow":
        names = list(frame.schema.names)
    elif type(frame).__name__ == "LazyFrame":
        names = ask("polars", f"reading {argument}", lambda: frame.collect_schema().names())
    else:
        names = list(map(str, frame.columns))
    places, listed = choose_columns(names, wanted, argument)
    if package == "pandas" and wanted is not None:
        columns = ask("Arrow", f"reading {argument}", lambda: convert_pandas(frame, places, user))
        return _open_columns(len(frame), columns, listed, is_pandas=True)
    chosen = [names[place] for place in places]
    if package == "pyarrow":
        frame = frame.select(places)
    elif package == "polars":
        from polars import selectors

        # A plain name would be a pattern where it begins with ^ and ends with $.
        frame = frame.select(selectors.by_name(*chosen) if chosen else [])
    table = as_arrow(frame, argument)
    columns = [FrameColumn(name, keep_nanoseconds(table.column(name), name == user)) for name in chosen]
    return _open_columns(table.num_rows, columns, listed)


def _open_relation(relation: Any, wanted: Collection[str] | None, argument: str) -> Opened:
    """Open a relation of DuckDB, of which only the wanted columns are fetched."""
    from discreet.sources.events.frames import FrameColumn, choose_columns
    from discreet.sources.events.readers import quote_identifier

    if wanted is not None and "pandas_scan" in relation.sql_query():
        raise InvalidTypeError(
            f"{argument} must not be a relation over a pandas frame, whose types follow from rows; pass the frame"
        )
    places, listed = choose_columns(list(relation.columns), wanted, argument)
    chosen = [relation.columns[place] for place in places]
    asked = ", ".join(map(quote_identifier, chosen)) or "0"
    table = ask("DuckDB", f"reading {argument}", lambda: relation.project(asked).to_arrow_table())
    columns = [FrameColumn(name, table.column(name)) for name in chosen]
    return _open_columns(table.num_rows, columns, listed)


def _open_columns(rows: int, columns: list[FrameColumn], listed: list[str], is_pandas: bool = False) -> Opened:
    from discreet.sources.events.frames import create_view

    connection, close = _start_duckdb()
    undeclared = frozenset(column.name for column in columns if column.fields is not None)
    opened = _open_embedded(
        close, "opening the frame", lambda: (create_view(connection, rows, columns, listed), undeclared)
    )
    opened.is_pandas = is_pandas
    return opened


def _open_embedded(
    close: Callable[[], None], what: str, read: Callable[[], tuple[Any, frozenset[str]]], is_text: bool = False
) -> Opened:
    """A table on a DuckDB of our own, which is closed with it, and at once where it cannot be opened."""
    try:
        table, undeclared = ask("DuckDB", what, read)
    except BaseException:
        close()
        raise
    return Opened(table, "DuckDB", undeclared, is_text, cleanup=[close])


def _open_ibis(given: Any, argument: str, wanted: Collection[str] | None) -> Opened:
    backend = ask("ibis", f"finding the engine of {argument}", given.get_backend)
    dialect = dialect_named(backend.name)
    if dialect.declare_types is None or wanted is None:
        return Opened(ask(backend.name, f"opening {argument}", lambda: dialect.adapt_table(given)), backend.name)
    table, undeclared = dialect.declare_types(backend, given)
    return Opened(table, backend.name, undeclared)


def _open_files(
    given: Any, argument: str, wanted: Collection[str] | None, csv_format: CsvFormat, user: str | None
) -> Opened:
    found = find_files(given, argument)
    connection, close = _start_duckdb()
    streams: list[CsvRows] = []
    read = partial(_read_files, connection, found, wanted, csv_format, user, streams)
    opened = _open_embedded(close, f"opening {found.given}", read, is_text=found.ending != ".parquet")
    opened.csv_rows = streams
    return opened


def files_of(given: Any) -> set[str]:
    """The real paths of the files that a path, a pattern or a folder stands for."""
    path = os.fspath(given)
    if is_remote(path):
        place = locate_remote_file(path)
        return set() if place is None else {place}
    return {os.path.realpath(each) for each in list_files(path)} or {path}


def _read_files(
    connection: Any,
    found: FoundFiles,
    wanted: Collection[str] | None,
    csv_format: CsvFormat,
    user: str | None,
    streams: list[CsvRows],
) -> tuple[Any, frozenset[str]]:
    """A table of files, and its columns without a declared type."""
    from discreet.sources.events.csv_files import check_whole
    from discreet.sources.events.readers import literal_paths, read_delimited, read_json, read_parquet

    if any(map(is_remote, found.files)):
        load_httpfs(connection)
        found = _list_buckets(connection, found)
    if found.ending == ".parquet" and wanted is None:
        return connection.read_parquet(literal_paths(found.files)), frozenset()
    if found.ending == ".parquet":
        return read_parquet(connection, found.files, wanted or (), found.several, _unused_name("files"), user)
    local = [fetch_text_file(connection, file) if is_remote(file) else file for file in found.files]
    check_whole(local, found.given)
    found = replace(found, files=local)
    if found.ending in DELIMITERS:
        table = read_delimited(connection, found, csv_format, _unused_name("files"), wanted, streams)
    else:
        table = read_json(connection, found, wanted, _unused_name("json"), user)
    return table, frozenset(table.columns)


def _list_buckets(connection: Any, found: FoundFiles) -> FoundFiles:
    """The files that are meant, of buckets too."""
    files = [file for path in found.files for file in list_remote_files(connection, path)]
    if not files:
        raise InvalidValueError(f"{found.given} must be files that exist, and there are none")
    return replace(found, files=list(dict.fromkeys(files)))


def _open_url(url: str, name: Any, argument: str) -> Opened:
    if not name:
        raise InvalidValueError(f"name must be given, the table to read, when {argument} is a connection URL")
    wanted, dialect = parse_table_name(name), dialect_named(url.partition("://")[0])
    engine = dialect.title
    if dialect.is_file:
        _check_database_file(url, argument)
    connection, close = _connect(url, dialect, argument)
    try:
        found = find_named_table(connection, engine, wanted, "name")
        declare = dialect.declare_types
        if declare is None:
            table, undeclared = open_named_table(connection, engine, found, "name"), frozenset[str]()
        else:
            table, undeclared = declare(connection, found.table)
    except BaseException:
        close()
        raise
    return Opened(table, engine, undeclared, cleanup=[close])


def _connect(url: str, dialect: Dialect, argument: str) -> tuple[Any, Callable[[], None]]:
    """A connection and what closes it; what is wrong with one can hold a password and stays untold."""
    _import_ibis()
    try:
        with warnings.catch_warnings(action="ignore"):
            return dialect.connect(url)
    except ImportError:
        line = f"pip install {' '.join(map(repr, dialect.packages or (f'ibis-framework[{dialect.name}]',)))}"
    except Exception as error:
        line, is_malformed = None, dialect.is_file or isinstance(error, ValueError)
    if line is not None:
        raise MissingExtraError(f"{argument} needs the driver of {dialect.title}: {line}")
    if is_malformed:
        raise InvalidValueError(f"{argument} must be the URL of a database, and the one on {dialect.title} is none")
    raise EngineError(
        f"{dialect.title} does not answer at {server_of(url)}, or does not know this user or database: try again "
        f"later, or correct {argument}"
    )


def _check_database_file(url: str, argument: str) -> None:
    """A file database that is not there would be made by opening it."""
    path = url.partition("://")[2].partition("?")[0]
    if not os.path.isfile(path):
        # A name and a password may stand before the path, and options after it.
        raise InvalidValueError(
            f"{argument} must be the URL of a database file that exists, not one of {quote(path.rpartition('@')[2])}"
        )


def _open_spark(frame: Any) -> Opened:
    ibis, name = _import_ibis(), _unused_name("frame")
    session = frame.sparkSession
    connection = ask("Spark", "connecting", lambda: ibis.pyspark.connect(session))
    frame.createOrReplaceTempView(name)
    table = ask("Spark", "opening the frame", lambda: connection.table(name))
    return Opened(table, "Spark", cleanup=[lambda: session.catalog.dropTempView(name)])


def _unused_name(kind: str) -> str:
    """A name that nobody has used; it depends on nothing."""
    return f"discreet_{kind}_{uuid.uuid4().hex}"


# Trying, on no rows, what a release will ask of an engine, before a ledger is charged for it.
#
# Rights, temporary tables, room for them and functions that an engine lacks are public. The query of the release runs
# on a table of which no row is read, and what fails there is named.


def probe_query(opened: Opened, make_query: Callable[[], Any], columns: Sequence[str]) -> None:
    """Raise an EngineError that names what a query cannot do on its engine, whatever the rows are.

    Parameters
    ----------
    opened
        The events.
    make_query
        Returns the expression that will be cached.
    columns
        The columns of the events that it reads.
    """
    import ibis

    def cache_nothing(query: Any) -> None:
        # As an outermost step no engine reads a row for it, and all of them check the whole query.
        snapshot = query.filter(ibis.literal(False)).cache()
        try:
            snapshot.to_pyarrow()
        finally:
            snapshot.release()

    def works(question: Callable[[], Any]) -> bool:
        try:
            ask(opened.engine, "trying the query on no rows", question)
        except EngineError:
            return False
        return True

    named = opened.table.select(*dict.fromkeys(columns))
    trouble = opened.dialect.find_trouble(opened.table.get_backend())
    if trouble is None:
        if works(lambda: cache_nothing(make_query())):
            return
        if not works(lambda: named.filter(ibis.literal(False)).to_pyarrow()):
            trouble = f"must let this account read the columns {', '.join(named.columns)} of the table"
        elif not works(lambda: cache_nothing(opened.table.select(one=ibis.literal(1)))):
            trouble = "must let this account make temporary tables, and have room for them"
        else:
            trouble = "must be able to compute these scores, and lacks a function that they need"
    raise EngineError(f"{opened.engine} {trouble}; nothing was drawn or charged")
