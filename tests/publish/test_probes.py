"""What fails for public reasons fails before a ledger is charged, in `top_k`, `select` and `publish`, and is named."""

import sqlite3
import tempfile
import warnings

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pytest

import discreet
from chart_folder import publish, write_charts
from command_line import process
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.engine import EngineError

EVENTS = {"who": [1, 2, 3], "what": [7, 7, 8]}
ASKED = {"user": "who", "item": "what", "domain": range(5, 10)}


@pytest.fixture
def ledger(tmp_path):
    return discreet.Ledger.create(tmp_path / "budget.db", epsilon=10, unit="users")


def check_refused(ledger, sentence, table, **options):
    """A release is refused with the sentence, and the ledger holds what it held."""
    source = discreet.events(table, **{**ASKED, **options})
    with pytest.raises(EngineError) as raised:
        discreet.top_k(source, 1, 1, ledger=ledger, request_id="june")
    assert str(raised.value) == f"{sentence}; nothing was drawn or charged"
    assert (ledger.check(), ledger.spent) == (1, 0)


@pytest.fixture
def clerk(postgres):
    """The URL of an account of PostgreSQL that may read the table `probed` and make no temporary tables."""
    psycopg = pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed here")
    with psycopg.connect(postgres.replace("postgres://", "postgresql://", 1)) as connection:
        connection.execute("DROP TABLE IF EXISTS probed")
        connection.execute("CREATE TABLE probed (who int, what int)")
        connection.execute("INSERT INTO probed VALUES (1, 7), (2, 7), (3, 8)")
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = 'clerk'").fetchall():
            connection.execute("CREATE ROLE clerk LOGIN")
        connection.execute("REVOKE TEMPORARY ON DATABASE contract FROM PUBLIC")
        connection.execute("GRANT SELECT ON probed TO clerk")
    yield postgres.replace("postgres:@", "clerk@")
    with psycopg.connect(postgres.replace("postgres://", "postgresql://", 1)) as connection:
        connection.execute("GRANT TEMPORARY ON DATABASE contract TO PUBLIC")


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_postgres_without_temporary_tables_costs_nothing(ledger, clerk):
    sentence = "PostgreSQL must let this account make temporary tables, and have room for them"
    check_refused(ledger, sentence, clerk, name="probed")
    found = discreet.discovered("1e-6", 1, kind="integer")
    book = discreet.Ledger.create(f"{ledger.path}.2", epsilon=10, delta="1e-5", release_delta="1e-6", unit="users")
    check_refused(book, sentence, clerk, name="probed", domain=found)
    with pytest.raises(EngineError, match="at sending the domain, which needs the right to make temporary tables; "):
        discreet.events(clerk, name="probed", **{**ASKED, "domain": [7, 8]})
    source = discreet.events(clerk, name="probed", **{**ASKED, "domain": found})
    with pytest.raises(EngineError, match="at finding the items, which needs the right to make temporary tables; "):
        discreet.top_k(source, 1, 1)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_postgres_without_a_right_to_read_costs_nothing(ledger, clerk, postgres):
    psycopg = pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed here")
    source = discreet.events(clerk, name="probed", **ASKED)
    with psycopg.connect(postgres.replace("postgres://", "postgresql://", 1)) as connection:
        connection.execute("REVOKE SELECT ON probed FROM clerk")
    with pytest.raises(EngineError, match=r"^PostgreSQL must let this account read the columns who, what of"):
        discreet.top_k(source, 1, 1, ledger=ledger)
    assert (ledger.check(), ledger.spent) == (1, 0)
    unseen = r"^name must be a table of PostgreSQL, and 'probed' is none, or this account may not read it$"
    with pytest.raises(discreet.Error, match=unseen):
        discreet.events(clerk, name="probed", **ASKED)


CHART = """
[[chart]]
id = "songs"
title = "Songs"
events = {{ connect = "{url}", name = "probed", user = "who", item = "what" }}
domain = "integers:5:9"
k = 1
epsilon = "1"
"""


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_publish_and_select_without_temporary_tables_cost_nothing(ledger, clerk, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_charts(tmp_path, CHART.format(url=clerk))
    sentence = "PostgreSQL must let this account make temporary tables, and have room for them; nothing was drawn or"
    for _ in range(2):
        assert publish() == 4
        assert sentence in capsys.readouterr().out
        assert (ledger.check(), ledger.spent) == (1, 0)
    asked = ["--user", "who", "--item", "what", "--domain", "integers:5:9", "-k", "1", "--epsilon", "1"]
    done = process("select", "--connect", clerk, "--name", "probed", *asked, "--ledger", ledger.path)
    assert (done.returncode, sentence in done.stderr) == (4, True)
    assert (ledger.check(), ledger.spent) == (1, 0)


def test_a_folder_that_cannot_be_written_is_named_by_duckdb(ledger, tmp_path):
    connection = ibis.duckdb.connect()
    table = connection.create_table("events", pa.table(EVENTS))
    (tmp_path / "file").touch()
    connection.con.execute(f"SET temp_directory = '{tmp_path / 'file' / 'spills'}'")
    sentence = "duckdb must have a temp_directory that can be written: SET temp_directory"
    check_refused(ledger, sentence, table)
    connection.con.execute(f"SET temp_directory = '{tmp_path / 'new' / 'spills'}'")
    assert discreet.top_k(discreet.events(table, **ASKED), 1, 1, ledger=ledger).private


def test_no_folder_for_temporary_files_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(EngineError, match=r"^DuckDB must have a folder for temporary files that can be written"):
        discreet.events(pa.table(EVENTS), **ASKED)


def make_sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE events (who INTEGER, what INTEGER)")
        connection.executemany("INSERT INTO events VALUES (?, ?)", zip(*EVENTS.values(), strict=True))
    connection.close()
    return f"sqlite://{path}"


def test_sqlite_without_room_for_temporary_files_costs_nothing(ledger, tmp_path):
    """One page in memory and no folder: what does not fit has nowhere to go."""
    resource = pytest.importorskip("resource", reason="limits on file sizes are those of Unix")
    url = make_sqlite(tmp_path / "events.db")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        sentence = "SQLite must have room in a folder for temporary files that can be written: set SQLITE_TMPDIR"
        check_refused(ledger, sentence, url, name="events")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_database_that_is_read_only_is_enough(ledger, tmp_path):
    make_sqlite(tmp_path / "events.db")
    plain = sqlite3.connect(f"file:{tmp_path / 'events.db'}?mode=ro", uri=True)
    with duckdb.connect(str(tmp_path / "events.ddb")) as connection:
        connection.execute("CREATE TABLE events AS SELECT 1 AS who, 7 AS what")
    opened = ibis.duckdb.connect(tmp_path / "events.ddb", read_only=True)
    for backend in (ibis.sqlite.from_connection(plain), opened):
        source = discreet.events(backend.table("events"), **ASKED)
        assert discreet.top_k(source, 1, 1, ledger=ledger).private
        del source
        backend.disconnect()


def test_what_an_engine_cannot_compute_costs_nothing(ledger, monkeypatch):
    """Bounds are refused by name on polars; without that refusal the probe finds the missing function."""
    monkeypatch.setattr(Dialect, "has_bounds", True)
    table = ibis.polars.connect({"events": pl.DataFrame(EVENTS)}).table("events")
    sentence = "polars must be able to compute these scores, and lacks a function that they need"
    check_refused(ledger, sentence, table, max_items_per_user=1)


def test_a_failure_after_the_charge_says_that_it_is_spent(ledger):
    """A view of the caller that fails on a row, which no probe reads."""
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE raw AS SELECT 1 AS who, 'x' AS what")
    connection.con.execute("CREATE VIEW events AS SELECT who, CAST(what AS INTEGER) AS what FROM raw")
    source = discreet.events(connection.table("events"), **ASKED)
    with pytest.raises(EngineError) as raised:
        discreet.top_k(source, 1, 1, ledger=ledger)
    assert str(raised.value).startswith("the query failed on duckdb at computing the scores; ")
    assert str(raised.value).endswith("; it was charged before, and what it cost stays spent")
    assert ledger.spent == 1


def test_a_request_that_was_answered_is_not_tried_again(ledger, tmp_path):
    connection = ibis.duckdb.connect()
    table = connection.create_table("events", pa.table(EVENTS))
    first = discreet.top_k(discreet.events(table, **ASKED), 1, 1, ledger=ledger, request_id="june")
    (tmp_path / "file").touch()
    connection.con.execute(f"SET temp_directory = '{tmp_path / 'file' / 'spills'}'")
    assert discreet.top_k(discreet.events(table, **ASKED), 1, 1, ledger=ledger, request_id="june") == first


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_table_of_spark_that_is_gone_costs_nothing(ledger, spark):
    spark.createDataFrame([*zip(*EVENTS.values(), strict=True)], "who int, what int").createOrReplaceTempView("probed")
    with warnings.catch_warnings(action="ignore"):  # pyspark 3.5 asks distutils for versions
        table = ibis.pyspark.connect(spark).table("probed")
    source = discreet.events(table, **ASKED)
    assert discreet.top_k(source, 1, 1, ledger=ledger).private
    spark.catalog.dropTempView("probed")
    with pytest.raises(EngineError, match=r"^pyspark must let this account read the columns who, what of the table; "):
        discreet.top_k(source, 1, 1, ledger=ledger)
    assert ledger.spent == 1
