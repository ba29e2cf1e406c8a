"""Private numbers on their way to an engine, in no statement: what an engine is told can end up in its logs.

Which scores and buckets are wanted tells the scores of what is released. As literals they would stand in statement
logs, query histories and plans, and so would bound parameters. So they go into a temporary table of a random name, by a
way that the engine does not log, and are joined. Where no such way is known, nothing is sent: all rows are fetched.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Expression = Callable[[Any], Any]


def read_matching(table: Any, wanted: Any, then: Expression = lambda rows: rows) -> Any:
    """The rows of an ibis table that agree with some row of the Arrow table `wanted` in all columns of it.

    Parameters
    ----------
    table
        An ibis table, with the columns of `wanted` among its own.
    wanted
        What must stand in no statement: columns of whole numbers, text, dates or booleans, each row once.
    then
        What to make of these rows on the engine; it must keep the columns of `wanted`.

    Returns
    -------
    pyarrow.Table
        What `then` makes of the rows.
    """
    backend = table.get_backend()
    send = _WAYS.get(backend.name)
    if send is None:
        return _matching_here(then(table).to_pyarrow(), wanted)
    with send(backend, f"discreet_wanted_{uuid.uuid4().hex}", wanted) as sent:
        return then(table.semi_join(sent, wanted.column_names)).to_pyarrow()


def _matching_here(rows: Any, wanted: Any) -> Any:
    import pyarrow as pa

    names = wanted.column_names
    typed = wanted.cast(pa.schema([rows.schema.field(name) for name in names]))
    return rows.join(typed, keys=names, join_type="left semi")


@contextmanager
def _registered_with_duckdb(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A view of the Arrow table, which DuckDB scans where it lies."""
    backend.con.register(name, rows)
    try:
        yield backend.table(name)
    finally:
        backend.con.unregister(name)


@contextmanager
def _copied_to_postgres(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary table, filled by COPY: its rows are no part of a statement, and in binary of no error either."""
    types = [_POSTGRES[str(field.type)] for field in rows.schema]
    with backend.con.cursor() as cursor, backend.con.transaction():
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({_columns(rows, types)})")
        with cursor.copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(types)
            for row in _tuples(rows):
                copy.write_row(row)
    try:
        yield backend.table(name)
    finally:
        with backend.con.cursor() as cursor, backend.con.transaction():
            cursor.execute(f"DROP TABLE {name}")


@contextmanager
def _read_by_sqlite(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary table, filled from what a function returns: even a trace, which shows parameters, does not show it.

    The key is what EXISTS looks up, row by row.
    """
    columns = _columns(rows, [_SQLITE[str(field.type)] for field in rows.schema])
    values = ", ".join(f"json_extract(value, '$[{i}]')" for i in range(rows.num_columns))
    text = json.dumps(list(_tuples(rows)), default=lambda day: day.isoformat())
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
def _viewed_by_spark(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary view of a local relation, which plans show by its columns alone."""
    from pyspark.sql.functions import broadcast

    session = backend._session
    schema = _columns(rows, [_SPARK[str(field.type)] for field in rows.schema])
    with _arrow_in_spark(session):
        frame = session.createDataFrame(rows.to_pandas(), schema)
    # The rows are few, which Spark may not know, and would sort both sides.
    broadcast(frame).createOrReplaceTempView(name)
    try:
        yield backend.table(name)
    finally:
        session.catalog.dropTempView(name)


@contextmanager
def _arrow_in_spark(session: Any) -> Iterator[None]:
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


_WAYS: dict[str, Callable[[Any, str, Any], Any]] = {
    "duckdb": _registered_with_duckdb,
    "postgres": _copied_to_postgres,
    "sqlite": _read_by_sqlite,
    "pyspark": _viewed_by_spark,
}

_SPARK_ARROW = "spark.sql.execution.arrow.pyspark.enabled"

_POSTGRES = {"int64": "int8", "string": "text", "date32[day]": "date", "bool": "bool"}
_SQLITE = {"int64": "INTEGER", "string": "TEXT", "date32[day]": "DATE", "bool": "BOOLEAN"}
_SPARK = {"int64": "bigint", "string": "string", "date32[day]": "date", "bool": "boolean"}


def _columns(rows: Any, types: list[str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in zip(rows.column_names, types, strict=True))


def _tuples(rows: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)
