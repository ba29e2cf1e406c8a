"""Private rows sent to an engine as a temporary table, by a way that no log, history or plan of the engine shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def register_with_duckdb(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A view of the Arrow table, which DuckDB scans where it lies."""
    backend.con.register(name, rows)
    try:
        yield backend.table(name)
    finally:
        backend.con.unregister(name)


@contextmanager
def copy_to_postgres(backend: Any, name: str, rows: Any) -> Iterator[Any]:
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
def insert_into_sqlite(backend: Any, name: str, rows: Any) -> Iterator[Any]:
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
def view_on_spark(backend: Any, name: str, rows: Any) -> Iterator[Any]:
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
