"""Tables by name: of other schemas, and as the public list beside the events."""

import sqlite3
from contextlib import closing, contextmanager

import duckdb
import ibis
import numpy as np
import pytest

import discreet
from discreet.errors import Error
from discreet.sources.events.check_report import Frequent
from discreet.sources.events.connect import server_of
from discreet.sources.events.location import Location, TableName, parse_table_name
from engines import on_server

EVENTS = [(1, 7), (2, 7), (2, 8), (3, 9)]
EXPECTED = {7: 2, 8: 1}
STATEMENTS = [
    "CREATE SCHEMA mart", "CREATE SCHEMA other",
    "CREATE TABLE mart.visits (who INTEGER, page INTEGER)",
    "INSERT INTO mart.visits VALUES (1, 7), (2, 7), (2, 8), (3, 9)",
    "CREATE TABLE visits (who INTEGER, page INTEGER)",
    "CREATE TABLE mart.pages (id INTEGER, title TEXT)", "INSERT INTO mart.pages VALUES (7, 'home'), (8, 'help')",
    'CREATE TABLE "odd.name" (who INTEGER, page INTEGER)', 'INSERT INTO "odd.name" VALUES (1, 8)',
]  # fmt: skip


@pytest.fixture(params=["duckdb", on_server("postgres")])
def url(request, tmp_path):
    """A database with the events in a schema of its own, and an empty table of the same name in the usual one."""
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
            for statement in STATEMENTS:
                connection.execute(statement)
        yield f"duckdb://{tmp_path / 'data.duckdb'}"
        return
    address = request.getfixturevalue("postgres")
    drops = ["DROP SCHEMA mart CASCADE", "DROP SCHEMA other CASCADE", "DROP TABLE visits", 'DROP TABLE "odd.name"']
    with run_and_undo(address, STATEMENTS, drops):
        yield address


@contextmanager
def run_and_undo(address, statements, undo):
    """Runs statements on a database, and others that undo them afterwards."""
    connection = ibis.connect(address)
    for statement in statements:
        connection.raw_sql(statement).close()
    yield
    for statement in undo:
        connection.raw_sql(statement).close()
    connection.disconnect()


def scores(url, name, domain=(7, 8), **options):
    source = discreet.events(url, name=name, user="who", item="page", domain=domain, **options)
    tally, items = source.tally(), source.items(np.arange(source.d))
    source.close()
    return {item: int(tally.exact(rank)) for rank, item in enumerate(items)}


def test_a_schema_is_part_of_the_name(url):
    assert scores(url, "mart.visits") == scores(url, ("mart", "visits")) == EXPECTED
    assert scores(url, "visits") == {7: 0, 8: 0}
    assert scores(url, "odd.name") == {7: 0, 8: 1}


def test_the_list_may_be_a_table_beside_the_events(url):
    assert scores(url, "mart.visits", "connect:mart.pages.id") == EXPECTED
    labelled = scores(url, "mart.visits", "connect:mart.pages.id", label="title")
    assert labelled == {"home": 2, "help": 1}


def test_a_list_beside_the_events_can_be_checked(url):
    domain = "connect:mart.pages.id"
    with closing(discreet.events(url, name="mart.visits", user="who", item="page", domain=domain)) as source:
        found = discreet.check_events(source)
    assert (found.rows_inside, found.rows_outside, found.outside) == (3, 1, [Frequent("9", 1)])
    assert found.other_columns == []


BAD = [
    ({"name": "mart.visit"}, "name must be a table of {engine}, and 'mart.visit' is none; did you mean visits?"),
    ({"name": "nowhere.visits"}, "name must be a table of {engine}, and 'nowhere.visits' is none"),
    ({"name": "visit"}, "name must be a table of {engine}, and 'visit' is none; did you mean visits?"),
    ({"name": "pages"}, "name must be a table of {engine}, and 'pages' is none; did you mean mart.pages?"),
    ({"name": ("other", "visits")}, "name must be a table of {engine}, and 'other.visits' is none"),
    ({"domain": "connect:mart.page.id"}, "domain must be a table of {engine}, and 'mart.page' is none"),
    ({"domain": "connect:pages"}, "domain must be connect:TABLE.COLUMN or connect:SCHEMA.TABLE.COLUMN, not "),
    ({"domain": "connect:mart.pages.nr"}, "domain must have a column called 'nr', and has id, title"),
    ({"domain": "connect:mart.visits.page"}, "domain must be a public list of items, not the events themselves"),
    ({"domain": "connect:visits.page"}, "domain must be a public list of items, not the events themselves"),
]


@pytest.mark.some(6)
@pytest.mark.parametrize(("change", "sentence"), BAD, ids=[str(change) for change, _ in BAD])
def test_what_is_not_there_is_refused_and_a_table_of_that_name_is_suggested(url, change, sentence):
    engine = "DuckDB" if url.startswith("duckdb") else "PostgreSQL"
    with pytest.raises(Error) as raised:
        scores(**{"url": url, "name": "mart.visits", **change})
    assert str(raised.value).startswith(sentence.format(engine=engine))
    assert "odd" not in str(raised.value)


def test_sqlite_has_its_own_schema(tmp_path):
    with sqlite3.connect(tmp_path / "data.db") as connection:
        connection.execute("CREATE TABLE visits (who INTEGER, page INTEGER)")
        connection.executemany("INSERT INTO visits VALUES (?, ?)", EVENTS)
        connection.execute("CREATE TABLE pages (id INTEGER)")
        connection.execute("INSERT INTO pages VALUES (7), (8)")
    connection.close()
    url = f"sqlite://{tmp_path / 'data.db'}"
    assert scores(url, "main.visits") == scores(url, "visits", "connect:pages.id") == EXPECTED
    with pytest.raises(Error, match=r"^name must be a table of SQLite, and 'mart\.visits' is none$"):
        scores(url, "mart.visits")


def test_a_file_has_no_tables_beside_it(tmp_path):
    (tmp_path / "e.csv").write_text("who,page\n1,7\n", encoding="utf-8")
    with pytest.raises(Error, match=r"^domain must not begin with 'connect:' unless table is a connection URL$"):
        discreet.events(tmp_path / "e.csv", user="who", item="page", domain="connect:pages.id")


def test_names_are_read_as_people_write_them():
    assert parse_table_name("events") == TableName("events")
    assert parse_table_name("mart.events") == parse_table_name(("mart", "events")) == TableName("events", "mart")
    beside = Location.parse_list("connect:products.id", "domain")
    assert (beside.beside, beside.column) == (TableName("products"), "id")
    assert Location.parse_list("products.csv:id", "domain").beside is None
    for bad in (7, ("a",), ("a", ""), ["a", "b"]):
        with pytest.raises(Error, match=r"^name must be the name of a table, such as 'events', 'mart\.events' or "):
            parse_table_name(bad)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("postgres://ann:secret@db.example.org:5433/sales", "db.example.org, port 5433"),
        ("postgres://db.example.org/sales?password=secret", "db.example.org"),
        ("postgres://ann:se:cret@[::1]:5432/sales", "[::1], port 5432"),
        ("postgres:///sales", "localhost"),
        ("postgres://ann:pa@ss@db.example.org:1/sales", "db.example.org, port 1"),
        ("postgres://ann:pa/s@s?x#@db.example.org/sales", "the server of that URL"),
        ("postgres://db.example.org/sales?user=ann@work&password=a:b@c", "the server of that URL"),
        ("postgres://ann:secret@db:x/sales", "the server of that URL"),
    ],
)
def test_a_server_is_named_by_host_and_port_alone(url, server):
    assert server_of(url) == server


ENUMS = [
    "CREATE SCHEMA shop", "CREATE TYPE colour AS ENUM ('red', 'green', 'blue')", "CREATE DOMAIN paint AS colour",
    """CREATE TYPE "odd 's" AS ENUM ('x')""", "CREATE TYPE shop.size AS ENUM ('S', 'L')",
    """CREATE TABLE enums (who int, what colour, odd "odd 's", size shop.size, paint paint, tags colour[])""",
    "INSERT INTO enums VALUES (1, 'red', 'x', 'S', 'red', ARRAY['red'::colour]), (2, 'red', 'x', 'L', 'red', NULL)",
    "INSERT INTO enums VALUES (10, 'green', 'x', 'S', 'green'), (101, 'green', 'x', 'L', 'green')",
    "INSERT INTO enums VALUES (20, 'green', 'x', 'S', 'green'), (201, 'green', 'x', 'L', 'green')",
    "CREATE TABLE shop.colours (name colour)", "INSERT INTO shop.colours VALUES ('red'), ('green')",
]  # fmt: skip
UNDO = [
    "DROP TABLE enums, shop.colours",
    "DROP DOMAIN paint",
    """DROP TYPE colour, "odd 's", shop.size""",
    "DROP SCHEMA shop",
]


@pytest.fixture
def enums(request):
    """A table of PostgreSQL's with enums of several kinds, by its URL."""
    address = request.getfixturevalue("postgres")
    with run_and_undo(address, ENUMS, UNDO):
        yield address


@pytest.mark.xdist_group("postgres")
@pytest.mark.slow
def test_an_enum_is_read_as_text(enums):
    """It is a declared list of texts, and PostgreSQL compares it with no text, which a query would fail on."""

    def counted(domain=("red", "green"), **options):
        asked = {"user": "who", "item": "what", "domain": domain, "name": "enums", **options}
        counts = discreet.top_k(discreet.events(asked.pop("table", enums), **asked), 2, 100, counts=100).counts
        return {count.item: count.value for count in counts}

    expected = {"red": 2, "green": 4}
    assert counted() == counted(item="paint") == counted(domain="connect:shop.colours.name") == expected
    assert counted(item="odd", domain=["x", "y"]) == {"x": 6, "y": 0}
    assert counted(user="size") == {"red": 2, "green": 2}
    for where in ("what = 'red'", "what IN ('red', 'mauve')", "what LIKE 'r%'", "what > 'green'", "paint <> 'green'"):
        assert counted(where=where) == {"red": 2, "green": 0}
    assert counted(where="what = paint AND size = 'S'") == {"red": 1, "green": 2}
    found = discreet.discovered("1e-6", 1, method="laplace")
    assert counted(domain=found) == expected
    by_size = discreet.events(
        enums,
        name="enums",
        user="who",
        item="what",
        domain=["red", "green"],
        by="size",
        groups=["S", "L"],
        each_user="one",
    )
    assert [release.items for release in discreet.top_k(by_size, 1, 100).values()] == [["green"], ["green"]]
    connection = ibis.connect(enums)
    table = connection.table("enums")
    assert counted(table=table.filter(table.who > 0), name=None) == expected
    connection.disconnect()
    with pytest.raises(Error, match="item must be a column of strings, numbers, dates or booleans"):
        counted(item="tags")


@pytest.mark.long
def test_a_database_that_is_locked_is_busy_and_no_wrong_address(tmp_path):
    with closing(sqlite3.connect(tmp_path / "events.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE loans (who INTEGER, what TEXT)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(discreet.EngineError, match="SQLite is busy: another process has locked the database"):
            discreet.events(f"sqlite://{tmp_path}/events.db", name="loans", user="who", item="what", domain=["a"])
