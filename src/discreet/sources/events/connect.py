"""Open whatever a caller holds as a table: the result is one ibis table and the name of its engine.

Files and frames run on an embedded DuckDB. A text file has no schema, and guessing one would read private rows, so its
columns are text; the public domain and the public condition decide how a cell is read.
"""

from __future__ import annotations

import os
import re
import uuid
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, MissingExtraError, quote, suggestion
from discreet.sources.events.csv_files import DELIMITERS, USUAL, CsvFormat
from discreet.sources.events.dialects.base import SENT_TYPES, Dialect, dialect_named, dialect_of
from discreet.sources.events.dialects.duckdb import connect_in_memory
from discreet.sources.events.engine import EngineError, ask, describe_refusal, find_sqlstate
from discreet.sources.events.formats import USUAL_FORMATS, Formats
from discreet.sources.events.location import (
    Location,
    TableName,
    fetch_text_file,
    list_remote_files,
    parse_table_name,
)

if TYPE_CHECKING:
    from discreet.sources.events.csv_files import CsvRows
    from discreet.sources.events.domain import ListNames
    from discreet.sources.events.frames import FrameColumn
    from discreet.sources.events.row_expressions import RowExpression


@dataclass(eq=False, repr=False)
class Opened:
    """An open ibis table and its engine.

    Attributes
    ----------
    events, engine
        The ibis table as it was opened, and the name of its engine in messages.
    undeclared
        The columns without a declared type: each cell is read as the kind of value that it is compared with.
    is_text
        True if the table is a text file.
    names_are_private
        True if a name of a column may be private: the header of a text file may be a row, and one of several files may
        hold the rows of one user.
    is_pandas
        True if the table is a pandas frame.
    list_formats
        The caller's settings for public lists in CSV files, by the name of the list: "domain" or "groups".
    formats
        The formats of dates and numbers in text.
    doubts
        Warnings about the public lists.
    csv_rows
        The streams of rows of a private CSV file; they count the rows that they left out.
    cleanup
        The functions that `close` calls, last one first.
    table, derive
        The table with a column for each row expression, and the function that adds these columns; None without them.
    expressions
        The row expressions by the names of their columns.
    notes
        How these expressions read columns without a declared type.
    """

    events: Any
    engine: str
    undeclared: frozenset[str] = frozenset()
    is_text: bool = False
    names_are_private: bool = False
    is_pandas: bool = False
    list_formats: Mapping[str, CsvFormat] = field(default_factory=dict)
    formats: Formats = USUAL_FORMATS
    doubts: list[str] = field(default_factory=list)
    csv_rows: list[CsvRows] = field(default_factory=list)
    cleanup: list[Callable[[], None]] = field(default_factory=list)
    table: Any = field(init=False)
    derive: Callable[[Any], Any] | None = None
    expressions: Mapping[str, RowExpression] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = self.events

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect of the engine, with the formats of text."""
        return replace(dialect_of(self.table), formats=self.formats)

    def adopt(self, rows: Any) -> Any:
        """Send a public Arrow table to the engine, and return it as an ibis table that lasts until `close`."""
        backend, name, dialect = self.table.get_backend(), _make_unused_name("domain"), self.dialect
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
        _drop_left(backend)
        if not dialect.views_local_tables:
            self.cleanup.append(lambda: _left(backend).append(local.op().name))
            return local
        self.cleanup.append(lambda: backend.drop_view(local.op().name, force=True))
        view = ask(self.engine, "sending the domain", lambda: backend.create_view(name, local))
        self.cleanup.append(lambda: backend.drop_view(name))
        return view

    def holds_text(self, column: str) -> bool:
        """Return True if a column has no declared type, or is declared as text."""
        return column in self.undeclared or bool(self.table[column].type().is_string())

    def doubt_spelling(self, column: str, names: ListNames, members: Any, place: tuple[str, str] = ("", "")) -> None:
        """Add a warning if a column is a row expression that can never equal members of its public list.

        Parameters
        ----------
        column
            The column of the events.
        names, members
            The list, as an Arrow array.
        place
            The file that holds the list, and its column.
        """
        made = self.expressions.get(column)
        if made is not None and str(members.type) == "string":
            doubt = made.describe_misspelt(names, members.to_pylist(), *place)
            self.doubts += [doubt] if doubt else []

    def check_formats(self, columns: Collection[str]) -> None:
        """Raise if formats were given, and none of the columns that are used can hold text on this engine."""
        for argument in self.formats.given():
            if self.dialect.text_bytes is None:
                raise InvalidValueError(
                    f"{argument} must be left out on {self.engine}: discreet does not know how it reads text"
                )
            if not any(self.holds_text(name) for name in self.table.columns if name in columns):
                raise InvalidValueError(
                    f"{argument} must be left out where no column that is used holds text: their types are declared"
                )

    def close(self) -> None:
        """Drop everything that opening made, without reporting a failure."""
        while self.cleanup:
            # The engine may be gone already, and its messages are private.
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
    """Open a location, a frame, a relation, an ibis table or a Spark DataFrame.

    Parameters
    ----------
    given
        The table.
    name
        The table's name in the database, with or without its schema, if `given` is the URL of a database.
    argument
        The name of the table in messages.
    wanted
        The columns of private rows that will be queried; None if the table is public and read as a whole.
    csv_format
        The caller's settings for CSV files.
    user
        The column of the users, if the table has one.
    """
    if isinstance(given, Location) and given.database is not None:
        return _open_database(given.database, name, given.argument or argument)
    if name is not None:
        raise InvalidValueError(f"name must be left out unless {argument} is a connection URL")
    if isinstance(given, Location):
        return _open_files(given, argument, wanted, csv_format, user)
    package = type(given).__module__.partition(".")[0]
    if package in ("pandas", "polars", "pyarrow"):
        return _open_frame(given, wanted, argument, user)
    if package in ("duckdb", "_duckdb") and hasattr(given, "to_arrow_table"):
        return _open_relation(given, wanted, argument)
    if package == "ibis" and hasattr(given, "columns"):
        backend = ask("ibis", f"finding the engine of {argument}", given.get_backend)
        dialect = dialect_of(given)
        if dialect.declare_types is not None and wanted is not None:
            table, undeclared = dialect.declare_types(backend, given)
            return Opened(table, backend.name, undeclared)
        return Opened(ask(backend.name, f"opening {argument}", lambda: dialect.adapt_table(given)), backend.name)
    if package == "pyspark" and hasattr(given, "createOrReplaceTempView"):
        ibis, view, session = _import_ibis(), _make_unused_name("frame"), given.sparkSession
        connection = ask("Spark", "connecting", lambda: ibis.pyspark.connect(session))
        given.createOrReplaceTempView(view)
        opened = Opened(None, "Spark", cleanup=[lambda: session.catalog.dropTempView(view)])
        try:
            opened.events = opened.table = ask(
                "Spark", "opening the frame", lambda: dialect_named("pyspark").adapt_table(connection.table(view))
            )
        except BaseException:
            opened.close()
            raise
        return opened
    raise InvalidTypeError(
        f"{argument} must be a path or a list of paths, a connection URL, a pandas, polars or pyarrow table, a DuckDB "
        f"relation, an ibis table or a Spark DataFrame, not a {type(given).__name__}"
    )


def _open_database(url: str, name: Any, argument: str) -> Opened:
    if not name:
        raise InvalidValueError(f"name must be given, the table to read, when {argument} is a connection URL")
    wanted, dialect = parse_table_name(name), dialect_named(url.partition("://")[0])
    path = url.partition("://")[2].partition("?")[0]
    # Opening a database file that does not exist would create it.
    if dialect.is_file and not os.path.isfile(path):
        # A user and a password can stand before the path.
        raise InvalidValueError(
            f"{argument} must be the URL of a database file that exists, not one of {quote(path.rpartition('@')[2])}"
        )
    _import_ibis()
    # The errors of a driver can hold a password, so the handlers only note what failed.
    missing, failed, is_malformed, is_busy, refusal = False, False, False, False, None
    try:
        with warnings.catch_warnings(action="ignore"):
            connection, close = dialect.connect(url)
    except ImportError:
        missing = True
    except Exception as error:
        failed, is_malformed = True, dialect.is_file or isinstance(error, ValueError)
        is_busy = "database is locked" in str(error)
        refusal = describe_refusal(find_sqlstate(error), argument, f" at {server_of(url)}")
    if missing:
        line = f"pip install {' '.join(map(repr, dialect.packages or (f'ibis-framework[{dialect.name}]',)))}"
        raise MissingExtraError(f"{argument} needs the driver of {dialect.title}: {line}")
    if is_busy:
        raise EngineError(f"{dialect.title} is busy: another process has locked the database; try again later")
    if is_malformed:
        raise InvalidValueError(f"{argument} must be the URL of a database, and the one on {dialect.title} is none")
    if failed and refusal is not None:
        raise EngineError(f"{dialect.title} {refusal}")
    if failed:
        raise EngineError(
            f"{dialect.title} does not answer at {server_of(url)}, or does not know this user or database: try again "
            f"later, or correct {argument}"
        )
    try:
        found = find_named_table(connection, dialect.title, wanted, "name")
        if dialect.declare_types is None:
            table, undeclared = open_named_table(connection, dialect.title, found, "name"), frozenset[str]()
        else:
            table, undeclared = dialect.declare_types(connection, found.table)
    except BaseException:
        close()
        raise
    return Opened(table, dialect.title, undeclared, cleanup=[close])


def server_of(url: str) -> str:
    """Return the host and the port of a URL; no other part of it may be shown."""
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest)[0]
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", authority.rpartition("@")[2])
    # A password may hold a slash. The text before that slash then looks like the host.
    if found is None or "@" in rest[len(authority) :]:
        return "the server of that URL"
    return f"{found[1] or 'localhost'}{'' if found[2] is None else f', port {found[2]}'}"


def open_named_table(connection: Any, engine: str, name: TableName, argument: str) -> Any:
    """Return the ibis table of a name, or raise if there is none; `argument` is the name in messages."""
    found = find_named_table(connection, engine, name, argument)
    schema = {} if found.schema is None else {"database": found.schema}

    def read_table() -> Any:
        table = connection.table(found.table, **schema)
        return dialect_of(table).adapt_table(table)

    return ask(engine, "opening the table", read_table, "the right to read it")


def find_named_table(connection: Any, engine: str, name: TableName, argument: str) -> TableName:
    """Return the name as the engine has it, or raise an error that may suggest one other table."""
    if str(name) != name.table and str(name) in ask(engine, "listing tables", connection.list_tables):
        # The name of a table can contain a dot.
        name = TableName(str(name))
    schema = {} if name.schema is None else {"database": name.schema}
    known = name.schema is None or name.schema in ask(engine, "listing schemas", connection.list_databases)
    tables = ask(engine, "listing tables", lambda: connection.list_tables(**schema)) if known else []
    if name.table in tables:
        return name
    hint = suggestion(name.table, tables, private=False)
    if name.schema is None:
        with suppress(EngineError):
            hint = ask(engine, "listing schemas", lambda: _find_schema(connection, name.table)) or hint
    # A server lists only the tables that the account may read.
    unseen = ", or this account may not read it" if dialect_named(connection.name).copies_local_tables else ""
    raise InvalidValueError(f"{argument} must be a table of {engine}, and {quote(str(name))} is none{hint or unseen}")


def _find_schema(connection: Any, table: str) -> str:
    """Return a hint at the schema that has a table of this name, "" if none has; names of tables are public."""
    for schema in sorted(connection.list_databases()):
        if not schema.startswith(("pg_", "information_schema")) and table in connection.list_tables(database=schema):
            return f"; did you mean {schema}.{table}?"
    return ""


def _open_files(
    location: Location, argument: str, wanted: Collection[str] | None, csv_format: CsvFormat, user: str | None
) -> Opened:
    """Open files on a DuckDB of our own, which opens and closes with them."""
    found = location.find_files(argument)
    streams: list[CsvRows] = []

    def read(connection: Any) -> tuple[Any, frozenset[str]]:
        from discreet.sources.events.csv_files import check_whole
        from discreet.sources.events.readers import read_delimited, read_json, read_parquet

        files, name = found.files, _make_unused_name("files")
        if any(file.is_remote for file in files):
            files = list_remote_files(connection, found)
        if found.ending == ".parquet" and wanted is None:
            return connection.read_parquet([file.literal for file in files]), frozenset()
        if found.ending == ".parquet":
            return read_parquet(connection, files, wanted or (), found.several, name, user)
        files = tuple(fetch_text_file(connection, file) if file.is_remote else file for file in files)
        check_whole([file.text for file in files], found.given)
        local = replace(found, files=files)
        if found.ending in DELIMITERS:
            table = read_delimited(connection, local, csv_format, name, wanted, streams)
        else:
            table = read_json(connection, local, wanted, name, user)
        return table, frozenset(table.columns)

    opened = _open_embedded(f"opening {found.given}", read)
    opened.is_text, opened.csv_rows = found.ending != ".parquet", streams
    opened.names_are_private = opened.is_text or found.several
    return opened


def _open_frame(frame: Any, wanted: Collection[str] | None, argument: str, user: str | None) -> Opened:
    """Open a frame of pandas, polars or pyarrow; only the wanted columns are read."""
    import pyarrow as pa

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
        opened = _open_columns(len(frame), columns, listed)
        opened.is_pandas = True
        return opened
    chosen = [names[place] for place in places]
    if package == "pyarrow":
        frame = frame.select(places)
    elif package == "polars":
        from polars import selectors

        # polars takes a plain name that begins with ^ and ends with $ for a pattern.
        frame = frame.select(selectors.by_name(*chosen) if chosen else [])

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

    table = ask("Arrow", f"reading {argument}", convert)
    columns = [FrameColumn(name, keep_nanoseconds(table.column(name), name == user)) for name in chosen]
    return _open_columns(table.num_rows, columns, listed)


def is_frame(given: Any) -> bool:
    """Return True if an object of pandas, polars or pyarrow has columns; its type's name tells without a warning."""
    return type(given).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch")


def _open_relation(relation: Any, wanted: Collection[str] | None, argument: str) -> Opened:
    """Open a relation of DuckDB; only the wanted columns are fetched."""
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


def _open_columns(rows: int, columns: list[FrameColumn], listed: list[str]) -> Opened:
    from discreet.sources.events.frames import create_view

    undeclared = frozenset(column.name for column in columns if column.fields is not None)
    return _open_embedded(
        "opening the frame", lambda connection: (create_view(connection, rows, columns, listed), undeclared)
    )


def _open_embedded(stage: str, read: Callable[[Any], tuple[Any, frozenset[str]]]) -> Opened:
    """Open a table on a new DuckDB in memory, which is closed with it, or at once if opening fails."""
    _import_ibis()
    connection, close = ask("DuckDB", "starting", connect_in_memory)
    try:
        table, undeclared = ask("DuckDB", stage, partial(read, connection))
    except BaseException:
        close()
        raise
    return Opened(table, "DuckDB", undeclared, cleanup=[close])


def _import_ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise MissingExtraError("tables need ibis with DuckDB: pip install 'ibis-framework[duckdb]'") from None
    return ibis


def _left(backend: Any) -> list[str]:
    """Return the names of the tables in memory that closed sources have left on a connection of ibis."""
    names: list[str] = vars(backend).setdefault("_discreet_left", [])
    return names


def _drop_left(backend: Any) -> None:
    """Drop what closed sources have left; ibis itself would keep it until the process ends.

    The collector closes a source at any time. To drop a table then would end a result or a transaction of the caller.
    """
    left = _left(backend)
    while left:
        name = left.pop()
        # ibis makes a view of it, or a temporary table, by engine.
        for drop in (backend.drop_view, backend.drop_table):
            with suppress(Exception):
                drop(name, force=True)


def _make_unused_name(kind: str) -> str:
    """Return a random name for a table or view of ours, which depends on no data."""
    return f"discreet_{kind}_{uuid.uuid4().hex}"


def probe_query(opened: Opened, make_query: Callable[[], Any], columns: Sequence[str]) -> None:
    """Try a query on no rows, and raise an EngineError that names what its engine lacks.

    The rights of an account, room for temporary tables and missing functions are public, so the error may name them. It
    is raised before a ledger is charged.

    Parameters
    ----------
    opened
        The events.
    make_query
        A function that returns the expression that a release will cache.
    columns
        The columns of the events that the expression reads.
    """
    import ibis

    def cache_nothing(query: Any) -> None:
        # With this filter as the outermost step, every engine checks the whole query and reads no row.
        snapshot = opened.dialect.cache(query.filter(ibis.literal(False)))
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
