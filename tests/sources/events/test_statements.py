"""What an engine is told, and may log: the same for two tables whose scores all differ, run for run."""

import random
import re
import sqlite3
from functools import partial
from itertools import islice
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.mechanisms.tally import Selection
from discreet.sources.events import lookup
from discreet.sources.events import table as events_table
from discreet.sources.events.dialects.base import dialect_named, dialect_of
from engines import CONNECT, on
from snapshots import select_items

LENGTHS = (1, 2, 150, 1, 90, 2)
"""How many items have the highest score, the next and so on; the long runs are looked up by buckets."""

SCORES = ((90_677, 81_799, 76_103, 64_513, 53_987, 41_213), (99_013, 98_017, 56_527, 44_971, 31_337, 27_893))
"""The scores of the runs, of two tables."""

ITEMS = [f"{word} {i}" for i, word in enumerate(["ada", "adam", "bela"] * 82)]
WIDE = discreet.integers(-(2**62), 2**62 - 1)
KINDS = {"string": ITEMS, "integer": [2**40 * (i - 99) for i in range(len(ITEMS))]}


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(lookup, "FETCHED", 8)
    monkeypatch.setattr(lookup, "BITS", 5)


def table_of(scores, kind):
    """One user, whose amounts are the scores."""
    amounts = [score for score, length in zip(scores, LENGTHS, strict=True) for _ in range(length)]
    return pa.table({"who": [1] * len(amounts), "what": KINDS[kind], "amount": pa.array(amounts, pa.float64())})


def source_of(table, kind, domain=None):
    return discreet.events(
        table,
        user="who",
        item="what",
        domain=KINDS[kind] if domain is None else domain,
        value="amount",
        clip=(0, 10**5),
        resolution=1,
    )


def look_up(table, kind, domain=None):
    """Two releases and a lookup by buckets, of what was touched and what was not."""
    source = source_of(table, kind, domain)
    found = [discreet.top_k(source, k, 10**4, rng=random.Random(3)).items for k in (1, 200)]
    source.tally()
    touched = [0, 2, 77, 152, 153, 199, 245]
    untouched = [] if domain is None else [246, 2**62 - 10**6, 2**62 + 5 * 2**40]
    found.append(source.items(np.array([*touched, *untouched])))
    source.close()
    assert found[-1][:7] == [by_rank(kind)[rank] for rank in touched]
    return found


def by_rank(kind):
    """All items that were touched: run for run, and by their own order inside each."""
    items = iter(KINDS[kind])
    return [item for length in LENGTHS for item in sorted(islice(items, length))]


def without_names(text):
    """A text whose random names are replaced by numbers, in their order."""
    seen = {}
    random_name = r"\b(?:ibis|discreet)_[a-z_]+_[0-9a-z]{20,}\b"
    return re.sub(random_name, lambda found: f"name{seen.setdefault(found[0], len(seen))}", text)


def check_same(first, second):
    """Raises unless what was said is the same both times, and has no score in it."""
    first, second = without_names(first), without_names(second)
    assert "name1" in first, "there is something to compare"
    assert not private_numbers(first + second)
    assert first == second


def private_numbers(text):
    return {str(score) for scores in SCORES for score in scores} & set(re.findall(r"\d+", text))


CASES = [("string", None), ("integer", None), ("integer", WIDE)]
kinds_and_ranges = pytest.mark.parametrize(("kind", "domain"), CASES, ids=["text", "numbers", "range"])


def ask_duckdb(events, question):
    """Returns the items found in events on DuckDB, and all that DuckDB was told."""
    connection = ibis.duckdb.connect()
    table = connection.create_table("events", events)
    connection.con.execute("CALL enable_logging('QueryLog')")
    found = question(table)
    connection.con.execute("CALL disable_logging()")
    rows = connection.con.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
    connection.disconnect()
    return found, "\n".join(row[0] for row in rows)


@pytest.mark.some(2)
@kinds_and_ranges
def test_duckdb(kind, domain, narrow):
    (items, first), (again, second) = (
        ask_duckdb(table_of(scores, kind), partial(look_up, kind=kind, domain=domain)) for scores in SCORES
    )
    assert items == again
    check_same(first, second)
    assert "SEMI JOIN" in first


@pytest.mark.some(2)
@kinds_and_ranges
def test_sqlite_traced_with_its_parameters(kind, domain, narrow, tmp_path):
    def said(scores):
        statements = []
        with sqlite3.connect(tmp_path / f"{scores[0]}.db") as connection:
            connection.execute("CREATE TABLE events (who INTEGER, what " + SQLITE[kind] + ", amount REAL)")
            rows = [tuple(row.values()) for row in table_of(scores, kind).to_pylist()]
            connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        backend = ibis.sqlite.from_connection(connection)
        connection.set_trace_callback(statements.append)
        found = look_up(backend.table("events"), kind, domain)
        backend.disconnect()
        return found, "\n".join(statements)

    (items, first), (again, second) = map(said, SCORES)
    assert items == again
    check_same(first, second)
    assert "INSERT INTO discreet_wanted_" in first


SQLITE = {"string": "TEXT", "integer": "INTEGER"}


@pytest.fixture
def logging_database(postgres):
    """The URL of a database whose every statement is logged, with its parameters."""
    with ibis.connect(postgres).con as connection:
        connection.autocommit = True
        connection.execute("CREATE DATABASE logging")
        connection.execute("ALTER DATABASE logging SET log_statement = 'all'")
        connection.execute("ALTER DATABASE logging SET log_duration = off")
        connection.execute("ALTER DATABASE logging SET log_parameter_max_length = -1")
    yield postgres.replace("/contract?", "/logging?")
    with ibis.connect(postgres).con as connection:
        connection.autocommit = True
        connection.execute("DROP DATABASE logging")


def ask_postgres(database, events, question):
    """Returns the items found in events on PostgreSQL, and all that its log has of it."""
    backend = ibis.connect(database)
    log = Path(backend.con.execute("SHOW data_directory").fetchone()[0]) / "log"
    backend.create_table("events", events)
    before = log.stat().st_size
    found = question(backend.table("events"))
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode()
    backend.drop_table("events")
    backend.disconnect()
    # A line begins with the time and the process, and temporary tables have a schema for each connection.
    text = re.sub(r"(?m)^.*? (LOG|DETAIL|ERROR|STATEMENT|WARNING|CONTEXT):", r"\1:", text)
    return found, re.sub(r"pg_temp_\d+", "pg_temp", text)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_postgresql(logging_database, narrow):
    for kind, domain in CASES:
        (items, first), (again, second) = (
            ask_postgres(logging_database, table_of(scores, kind), partial(look_up, kind=kind, domain=domain))
            for scores in SCORES
        )
        assert items == again
        check_same(first, second)
        assert "COPY discreet_wanted_" in first


def ask_mariadb(request, events, question):
    """Returns the items found in events on MariaDB, all that its log has of it, and what its log of changes has."""
    arguments = on("mariadb", events, None, request)
    backend = dialect_named("mysql").connect(arguments["table"])[0]
    with backend.con.cursor() as cursor:
        cursor.execute("SELECT @@general_log_file, CONCAT(@@log_bin_basename, '.000001')")
        logs = [Path(each) for each in cursor.fetchone()]
    before = [log.stat().st_size for log in logs]
    found = question(backend.table("events"))
    statements, changes = (log.read_bytes()[size:] for log, size in zip(logs, before, strict=True))
    backend.disconnect()
    # A line begins with the time, on its first occurrence, and the connection.
    return found, re.sub(r"(?m)^(\d{6} .*?)?\t+ *\d+ ", "", statements.decode()), changes.decode("latin-1")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("mariadb")
def test_mariadb(narrow, request):
    for kind, domain in CASES:
        (items, first, one), (again, second, other) = (
            ask_mariadb(request, table_of(scores, kind), partial(look_up, kind=kind, domain=domain))
            for scores in SCORES
        )
        assert items == again
        check_same(first, second)
        assert "LOAD DATA LOCAL INFILE" in first
        # Replicas are told of temporary tables and of no row of one.
        assert "CREATE TEMPORARY TABLE" in one
        assert not private_numbers(without_names(one + other))
        assert "INSERT INTO discreet_" not in one
        assert not any(item in one for item in KINDS["string"])


def group_table(scores, kind):
    """Two groups with the same items, in the second of which the scores are those of the first the other way round."""
    amounts = [score for score, length in zip(scores, LENGTHS, strict=True) for _ in range(length)]
    columns = {"what": KINDS[kind], "amount": pa.array(amounts, pa.float64())}
    first = pa.table({**columns, "who": [1] * len(amounts), "land": ["DE"] * len(amounts)})
    second = {"what": pa.array(KINDS[kind][::-1]), "who": [2] * len(amounts), "land": ["FR"] * len(amounts)}
    return pa.concat_tables([first, pa.table({**columns, **second}).select(first.column_names)])


def look_up_groups(table, kind, domain=None):
    """Two releases of all groups and a lookup by buckets, of what was touched and what was not; nobody is in AT."""
    options = {"domain": KINDS[kind] if domain is None else domain, "value": "amount", "clip": (0, 10**5)}
    source = discreet.events(
        table, user="who", item="what", **options, by="land", groups=["FR", "AT", "DE"], each_user="one"
    )
    found = [
        {key: each.items for key, each in discreet.top_k(source, k, 10**4, rng=random.Random(3)).items()}
        for k in (1, 200)
    ]
    touched = [0, 2, 77, 152, 153, 199, 245]
    untouched = [] if domain is None else [246, 2**62 - 10**6, 2**62 + 5 * 2**40]
    wanted = Selection(np.array([*touched, *untouched]))
    chosen = select_items(source, lambda group, _: wanted, scored=False)
    assert chosen[2][0][:7] == [by_rank(kind)[rank] for rank in touched]
    return [*found, chosen]


@pytest.mark.some(1)
@kinds_and_ranges
def test_duckdb_by_group(kind, domain, narrow):
    (items, first), (again, second) = (
        ask_duckdb(group_table(scores, kind), partial(look_up_groups, kind=kind, domain=domain)) for scores in SCORES
    )
    assert items == again
    check_same(first, second)
    assert "SEMI JOIN" in first


@pytest.mark.long
@pytest.mark.xdist_group("postgres")
def test_postgresql_by_group(logging_database, narrow):
    for kind, domain in CASES[::2]:
        (items, first), (again, second) = (
            ask_postgres(logging_database, group_table(scores, kind), partial(look_up_groups, kind=kind, domain=domain))
            for scores in SCORES
        )
        assert items == again
        check_same(first, second)
        assert "COPY discreet_wanted_" in first


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(CONNECT, reason="a client of Spark Connect sees no list of queries")
def test_spark_shows_the_same_plans(spark, tmp_path):
    """What the pages of Spark show of queries, and what its event log keeps."""
    shown = spark._jsparkSession.sharedState().statusStore()
    spark.conf.set("spark.sql.maxMetadataStringLength", 10**6)

    def executions_after(last):
        # By number: the session keeps the newest thousand alone, so places in the list move.
        listed = shown.executionsList()
        executions = [listed.apply(place) for place in range(listed.size())]
        return [each for each in executions if each.executionId() > last]

    def said(scores):
        pa.parquet.write_table(table_of(scores, "integer"), tmp_path / "events.parquet")
        before = max((each.executionId() for each in executions_after(-1)), default=-1)
        source = source_of(spark.read.parquet(str(tmp_path / "events.parquet")), "integer", WIDE)
        found = discreet.top_k(source, 3, 10**4).items
        plans = [each.physicalPlanDescription() for each in executions_after(before)]
        # Columns, RDDs and parts of plans are numbered on and on in a session.
        text = re.sub(r"(#|plan_id=|RDD\[|Exchange )\d+", r"\1", "\n".join(plans))
        # How large the parts of a result are is shown, as docs/known-limits.md says.
        return found, re.sub(r"Statistics\(.*?\)", "Statistics", text)

    (items, first), (again, second) = map(said, SCORES)
    spark.conf.unset("spark.sql.maxMetadataStringLength")
    assert items == again == KINDS["integer"][:3]
    check_same(first, second)
    assert "BroadcastHashJoin LeftSemi" in first


@pytest.mark.some(2)
@kinds_and_ranges
def test_an_engine_that_is_not_known_is_sent_nothing(kind, domain, narrow, monkeypatch):
    """Then all rows are fetched, and the wanted ones found here."""
    table = ibis.duckdb.connect().create_table("events", table_of(SCORES[0], kind))
    usual = look_up(table, kind, domain)
    unknown = dialect_named("unheard-of")
    monkeypatch.setattr(events_table, "Lookup", lambda *parts: lookup.Lookup(*parts[:3], unknown, *parts[4:]))
    table.get_backend().con.execute("CALL enable_logging('QueryLog')")
    assert look_up(table, kind, domain) == usual
    log = table.get_backend().con.execute("SELECT string_agg(message, '\n') FROM duckdb_logs").fetchone()[0]
    assert "GROUP BY" in log
    assert "discreet_wanted" not in log
    assert not private_numbers(log)


# Items that nobody listed: for how many users they count is private too, and so is which of them exist.

USERS = ((97, 83, 61), (89, 79, 67))
SIZES = (1, 2, 40)


def touches_of(users):
    """Every user touches one item, of which there are runs with equal numbers of users."""
    items = iter(ITEMS)
    what = [
        item for count, size in zip(users, SIZES, strict=True) for item in islice(items, size) for _ in range(count)
    ]
    return pa.table({"who": list(range(len(what))), "what": what})


def find(table):
    source = discreet.events(table, user="who", item="what", domain=discreet.discovered("1e-6", 1))
    return [discreet.top_k(source, k, 10**3, rng=random.Random(3)).items for k in (2, 90)]


def test_finding_items_tells_an_engine_nothing(narrow):
    (items, first), (again, second) = (ask_duckdb(touches_of(users), find) for users in USERS)
    assert (len(items[0]), len(items[1])) == (2, 43)
    assert items[1] == again[1]
    first, second = without_names(first), without_names(second)
    assert first == second
    assert "SEMI JOIN" in first
    assert not {str(count) for users in USERS for count in users} & set(re.findall(r"\b\d+\b", first))
    assert not any(item in first for item in items[1])


def look_up_found(table, number):
    """So many items of one score in each of two groups, of items that nobody listed."""
    found = lookup.Lookup(table, "integer", None, dialect_of(table), 2)
    found.runs()
    return found.items([np.arange(number), np.arange(number)])


def test_how_many_items_are_found_decides_no_bucket(narrow, monkeypatch):
    monkeypatch.setattr(lookup, "ROWS", 11)
    items = np.arange(3000) * 2**40
    rows = {"grp": np.repeat([0, 1], 3000), "item": np.tile(items, 2), "score": [7] * 6000, "total": [9] * 6000}
    logs = {}
    for number in (1, 500):
        found, logs[number] = ask_duckdb(pa.table(rows), partial(look_up_found, number=number))
        assert found == [[(item, 9) for item in items[:number].tolist()]] * 2
    few, many = (sorted(set(map(int, re.findall(r">> (\d+)", log))), reverse=True) for log in logs.values())
    # How deep the search goes is known to show; by which steps it goes there is the same.
    assert few[: len(many)] == many
    assert len(many) > 1
