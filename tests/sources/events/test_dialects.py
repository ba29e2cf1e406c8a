"""A dialect is all that is known of an engine; one that nobody has described is promised little and sent nothing."""

import ast
import gc
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from importlib import import_module
from pathlib import Path

import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.errors import Error, InvalidTypeError, InvalidValueError
from discreet.sources.events.compiled import Compiler
from discreet.sources.events.dialects import duckdb
from discreet.sources.events.dialects.base import SENT_TYPES, Dialect, dialect_named, list_engines
from engines import EACH_DIALECT, on

SOURCES = Path(discreet.__file__).parent / "sources"
DESCRIBED = [dialect_named(name, runs=False) for name in sorted(list_engines())]
NAMES = {name for each in DESCRIBED for name in (each.name, each.title)} | list_engines()
DUCKDB = duckdb.DIALECT
EVENTS = pa.table({"who": [1, 1, 2, 3, 3, 4], "what": ["a", "b", "a", "A", "a", "b "], "stars": [5, 4, 3, 5, 1, 2]})


def compared_names(tree):
    """The names of engines in comparisons, patterns and lookups, but for those of the package that an object is of."""
    for node in ast.walk(tree):
        asked = isinstance(node, ast.Compare | ast.MatchValue | ast.Dict)
        of_a_package = isinstance(node, ast.Compare) and "package" in ast.unparse(node.left)
        if asked and not of_a_package:
            parts = node.keys if isinstance(node, ast.Dict) else [node]
            found = {part.value for each in parts if each for part in ast.walk(each) if isinstance(part, ast.Constant)}
            yield from found & NAMES


@pytest.mark.long
def test_no_other_module_asks_for_the_name_of_an_engine():
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES.rglob("*.py")}
    assert {path.name for path, tree in modules.items() if set(compared_names(tree))} == set()


def test_a_question_about_a_name_would_be_found():
    asked = ['engine == "sqlite"', 'backend.name not in ("duckdb", "x")', '{"postgres": 1}[engine]', 'title == "Spark"']
    found = [list(compared_names(ast.parse(each))) for each in asked]
    assert found == [["sqlite"], ["duckdb"], ["postgres"], ["Spark"]]
    assert not list(compared_names(ast.parse('package in ("duckdb", "_duckdb")')))


@pytest.fixture
def newcomer(monkeypatch):
    """A table on an engine that nobody has described: DuckDB, without its dialect."""
    monkeypatch.setattr(duckdb, "DIALECT", Dialect(name="duckdb", title="duckdb"))
    return ibis.duckdb.connect().create_table("events", EVENTS)


def scores(table, **options):
    """The score of each item."""
    source = discreet.events(table, user="who", item="what", domain=["a", "b", "A"], **options)
    tally = source.tally()
    found = {item: int(tally.exact(rank)) for rank, item in enumerate(source.items(np.arange(3)))}
    source.close()
    return found


USES = [
    ({"where": "what < 'b'"}, (3, 0, 1)),
    ({"where": "trim(what) = 'b'"}, (0, 1, 0)),
    ({"max_items_per_user": 2}, (3, 1, 1)),
]


@pytest.mark.parametrize(("options", "expected"), USES)
def test_one_value_makes_an_engine_known(newcomer, options, expected, monkeypatch):
    with pytest.raises(InvalidTypeError, match=r" must hold numbers, dates or booleans on duckdb, not string: "):
        scores(newcomer, **options)
    described = Dialect(name="duckdb", title="a newcomer", text_bytes=DUCKDB.text_bytes, trim=DUCKDB.trim)
    monkeypatch.setattr(duckdb, "DIALECT", described)
    assert scores(newcomer, **options) == dict(zip(("a", "b", "A"), expected, strict=True))


def test_bounds_are_refused_on_an_engine_without_a_dialect(newcomer):
    """Even where they would be computed, as by this DuckDB: a plan does not try them either."""
    with pytest.raises(InvalidValueError, match=r"^max_items_per_user must be left out on duckdb: discreet does not"):
        discreet.events(newcomer, user="who", item="stars", domain=[1, 5], max_items_per_user=1)
    with pytest.raises(InvalidValueError, match=r"^max_items_per_user must be left out on polars: discreet does not"):
        on_polars(by="kept", groups=[True, False], each_user="one", max_items_per_user=1)
    assert not discreet.events(newcomer, user="who", item="stars", domain=[1, 5]).can_be_clipped


def test_a_trim_that_is_not_known_is_refused(newcomer, monkeypatch):
    monkeypatch.setattr(duckdb, "DIALECT", Dialect(name="duckdb", title="duckdb", text_bytes=DUCKDB.text_bytes))
    with pytest.raises(Error, match=r"^where must not trim strings on duckdb, as it does with what"):
        scores(newcomer, where="trim(what) = 'b'")


def test_columns_that_are_declared_without_gaps_take_expressions(tmp_path):
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE ev (who VARCHAR NOT NULL, what VARCHAR NOT NULL)")
    connection.con.execute("INSERT INTO ev VALUES (' Ann', 'TEA'), ('ann', 'tea')")
    table, made = connection.table("ev"), {"user": "lower(trim(who))", "item": "fold(trim(what))"}
    source = discreet.events(table, **made, domain=["tea", "rum"], where="CASE WHEN what = 'x' THEN who END IS NULL")
    assert source.tally().exact(0) == 1
    source.close()


def test_an_engine_without_a_dialect_counts_no_distinct_values_by_itself(monkeypatch):
    """Such a count is approximate on ClickHouse and Druid, where one user can move it by any number."""
    monkeypatch.setattr(Compiler, "runs", True)
    table = discreet.compiled("trino", "ev", {"who": "int64", "what": "int64", "land": "int64"})
    split = {"by": "land", "groups": [1, 2], "each_user": "many"}
    for options in ({}, split):
        query = discreet.events(table, user="who", item="what", domain=[1, 2], **options).make_query()
        text = table.get_backend().compile_with_lists(query)
        assert "COUNT(DISTINCT" not in text
        assert "SELECT DISTINCT" in text


DAYS = [date(2026, 1, 1), date(2026, 1, 2)]
UNDESCRIBED = pl.from_arrow(EVENTS).with_columns(
    number=pl.Series([7, 8, 7, 7, 9, 8]),
    day=pl.Series([DAYS[0]] * 3 + [DAYS[1]] * 3),
    kept=pl.Series([True, False, True, True, True, False]),
    at=pl.Series([datetime(2026, 1, 1)] * 6),
    listed=pl.Series([["a"]] * 6),
)
"""Events on polars by ibis, an engine that has no dialect."""


def on_polars(**options):
    table = ibis.polars.connect({"events": UNDESCRIBED}).table("events")
    return discreet.events(table, **{"user": "who", "item": "number", "domain": [7, 8, 9], **options})


@pytest.mark.parametrize(("item", "domain", "expected"), [
    ("number", [7, 8, 9], [3, 2, 1]), ("number", range(7, 10), [3, 2, 1]), ("day", DAYS, [2, 2]),
    ("kept", [True, False], [3, 2]),
])  # fmt: skip
def test_an_engine_without_a_dialect_counts_numbers_dates_and_booleans(item, domain, expected):
    source = on_polars(item=item, domain=domain)
    tally = source.tally()
    assert [int(tally.exact(rank)) for rank in range(len(expected))] == expected
    assert source.items(np.arange(len(expected))) == list(domain)
    source.close()


def test_an_engine_without_a_dialect_has_groups_and_conditions_of_numbers():
    split = {"by": "kept", "groups": [True, False], "each_user": "many"}
    released = discreet.top_k(on_polars(**split, where="stars > 1 AND day = DATE '2026-01-01'"), 1, 1000)
    assert {key: released[key].items for key in (True, False)} == {True: [7], False: [8]}


@pytest.mark.parametrize(("domain", "groups", "found"), [
    (range(10**6), [True], None), (range(10**6 + 1), [True], "1,000,001"), (range(500_001), [True, False], "1,000,002"),
    (discreet.integers(0, 2**62), [True], f"{2**62 + 1:,}"),
])  # fmt: skip
def test_an_engine_without_a_dialect_fetches_no_more_than_a_bound(domain, groups, found):
    """The public size of the domain decides, and no row: here six of them."""
    split = {} if len(groups) == 1 else {"by": "kept", "groups": groups, "each_user": "many"}
    if found is None:
        assert on_polars(domain=domain, **split).d == 10**6
        return
    with pytest.raises(Error, match=f"^domain must have at most 1,000,000 items on polars, .*, not {found}: discreet"):
        on_polars(domain=domain, **split)


TEXTS = [
    ("item", {"item": "what", "domain": ["a", "A"]}),
    ("item", {"item": "what", "domain": [7]}),
    ("domain", {"domain": ["7", "8"]}),
    ("domain", {"domain": discreet.discovered("1e-6", 1, kind="string")}),
    ("user", {"user": "what"}),
    ("user", {"user": "at"}),
    ("user", {"user": "listed"}),
    ("by", {"by": "what", "groups": ["a"], "each_user": "one"}),
    ("by", {"by": ["stars", "what"], "groups": [(1, "a")], "each_user": "many"}),
    ("groups", {"by": "stars", "groups": ["5"], "each_user": "one"}),
    *(("what in where", {"where": where}) for where in (
        "what = 'a'", "what <> 'a'", "what IN ('a')", "what LIKE 'a%'", "what < 'b'", "what IS NULL",
        "lower(what) = 'a'", "stars = 1 OR coalesce(what, 'a') = 'a'", "what IS NOT DISTINCT FROM 'a'",
        "CASE WHEN what = 'a' THEN TRUE ELSE FALSE END",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "options"), TEXTS, ids=str)
def test_text_is_refused_on_an_engine_without_a_dialect(argument, options):
    """Its collation may equate two spellings: one user of SOUP would then move the score of Soup from 30 to 0."""
    with pytest.raises(InvalidTypeError, match=f"^{argument} must hold numbers, dates or booleans on polars, not "):
        on_polars(**options)


def test_a_domain_of_text_may_be_on_an_engine_without_a_dialect():
    listed = ibis.polars.connect({"items": pl.DataFrame({"what": ["a", "b", "A"]})}).table("items")
    source = discreet.events(EVENTS, user="who", item="what", domain=listed)
    assert source.d == 3
    assert discreet.top_k(source, 1, 1000).items == ["a"]


SOUPS = ["Soup"] * 30 + ["SOUP", "soup ", "Soup\t", "Soup\0", "Söup", "Soup ", "\N{SOFT HYPHEN}Soup"]


@pytest.mark.parametrize("engine", EACH_DIALECT)
def test_equal_spellings_do_not_merge(engine, tmp_path, request):
    """The collation of MariaDB's column equates most of these: one of them would take the 30 users of another."""
    # PostgreSQL has no text with a NUL.
    soups = [soup for soup in SOUPS if engine != "postgres" or "\0" not in soup]
    events = pa.table({"who": range(len(soups)), "what": soups})
    given = on(engine, events, tmp_path, request)
    source = discreet.events(**given, user="who", item="what", domain=sorted(set(soups)))
    tally = source.tally()
    assert [int(tally.exact(rank)) for rank in range(source.d)] == [30, *[1] * (source.d - 1)]
    assert source.items(np.array([0])) == ["Soup"]
    source.close()
    # Users are told apart by bytes too.
    source = discreet.events(**given, user="what", item="who", domain=range(len(soups)))
    bounded = discreet.events(**given, user="what", item="who", domain=range(len(soups)), max_items_per_user=1)
    sums = [sum(int(tally.exact(rank)) for rank in range(tally.d)) for tally in (source.tally(), bounded.tally())]
    assert sums == [len(soups), len(set(soups))]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("mariadb")
@pytest.mark.parametrize(("charset", "cells"), [
    ("latin1", [bytes([code]) for code in range(1, 256)]), ("ascii", [b"a", b"A", b"a "]), ("gbk", [b"a", b"A", b"a "]),
    ("utf16", [each.encode("utf-16-be") for each in ("a", "A", "a ", "\N{GRINNING FACE}")]),
    ("cp1251", [bytes([code]) for code in range(1, 256)]),
])  # fmt: skip
def test_users_of_mariadb_in_any_character_set_are_told_apart(charset, cells, mariadb):
    backend, close = dialect_named("mysql").connect(mariadb)
    with backend.con.cursor() as cursor:
        if "charsets" in backend.list_tables():
            cursor.execute("DROP TABLE charsets")
        cursor.execute(f"CREATE TABLE charsets (who VARCHAR(9) CHARACTER SET {charset}, what INT)")
        listed = ", ".join(f"(CONVERT(x'{cell.hex()}' USING {charset}), 1)" for cell in cells)
        cursor.execute(f"INSERT INTO charsets VALUES {listed}")  # noqa: S608
    source = discreet.events(backend.table("charsets"), user="who", item="what", domain=[1, 2])
    assert [int(source.tally().exact(rank)) for rank in range(2)] == [len(cells), 0]
    source.close()
    if charset in ("gbk", "utf16", "cp1251"):
        said = f" must be a column of strings, .*, not of text in the character set {charset}, which is read as bytes"
        with pytest.raises(InvalidTypeError, match=f"^item{said}"):
            discreet.events(backend.table("charsets"), user="what", item="who", domain=["a"])
        split = {"by": "who", "groups": ["a"], "each_user": "one"}
        with pytest.raises(InvalidTypeError, match=f"^by{said}"):
            discreet.events(backend.table("charsets"), user="what", item="what", domain=[1], **split)
    close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("mariadb")
def test_a_log_of_statements_is_refused_when_the_table_is_opened(request, tmp_path):
    """LOAD DATA of the items to look up would be in it, row by row."""
    events = pa.table({"who": [1, 2, 3], "what": [7, 7, 8]})
    backend, close = dialect_named("mysql").connect(on("mariadb", events, tmp_path, request)["table"])
    given = {"user": "who", "item": "what", "domain": discreet.integers(0, 10**6)}
    with backend.con.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        with pytest.raises(InvalidValueError, match=r"^table must be on a .* whose binlog_format is MIXED or ROW"):
            discreet.events(backend.table("events"), **given)
        for setting in ("sql_log_bin = OFF", "sql_log_bin = ON, binlog_format = MIXED"):
            cursor.execute(f"SET SESSION {setting}")
            source = discreet.events(backend.table("events"), **given)
            assert discreet.top_k(source, k=1, epsilon=1000).items == [7]
            del source
            gc.collect()
    close()


def test_items_are_not_found_where_no_hash_is_known(newcomer, monkeypatch):
    found = {"user": "who", "item": "what", "domain": discreet.discovered("1e-6", 1)}
    described = Dialect(name="duckdb", title="a newcomer", text_bytes=DUCKDB.text_bytes)
    monkeypatch.setattr(duckdb, "DIALECT", described)
    with pytest.raises(Error, match=r"^discovered must be left out on .*: discreet does not know how it makes a hash"):
        discreet.events(newcomer, **found)


def test_a_hash_as_a_number_is_that_of_its_digits():
    texts = ibis.duckdb.connect().create_table("texts", pa.table({"text": [f"{i} é" for i in range(200)]}))
    both = [each.hash_texts(ibis.literal("key/"), texts.text) for each in (DUCKDB, replace(DUCKDB, hash_number=None))]
    number, digits = texts.select(number=both[0], digits=both[1]).to_pyarrow().to_pydict().values()
    assert [f"{n:012x}".encode() for n in number] == digits
    assert len(set(number)) == 200


def test_nothing_private_is_sent_to_an_engine_unless_it_says_how():
    strange = ["unheard-of", "", "postgres.x", "..postgres", "__init__", "os"]
    assert [dialect_named(name).send_unlogged for name in strange] == [None] * len(strange)
    assert {"duckdb", "postgres", "postgresql", "pyspark", "sqlite"} < list_engines()
    assert all(each.text_bytes is not None for each in DESCRIBED)


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("domain", [
    list(range(300)), [f"x{i}'\\\"" for i in range(300)], [date(2026, 1, 1) + timedelta(i) for i in range(300)],
    [True, False],
])  # fmt: skip
def test_a_public_list_is_copied_to_postgres_and_dropped_with_the_events(domain, request):
    """No statement a row, and no table that is left in the session of the caller."""
    connection = ibis.connect(request.getfixturevalue("postgres"))
    try:
        table = connection.create_table("copied", pa.table({"who": [1, 2, 2], "what": domain[:1] * 3}), overwrite=True)
        source = discreet.events(table, user="who", item="what", domain=domain)
        assert len(copied_tables(connection)) == 1
        assert source.tally().d == len(domain)
        assert source.items(np.array([0])) == domain[:1]
        assert discreet.top_k(source, 1, 1000).items == domain[:1]
        assert len(copied_tables(connection)) == 1
        del source
        gc.collect()
        assert copied_tables(connection) == []
    finally:
        connection.disconnect()


def copied_tables(connection):
    """The names of the temporary tables that hold public lists."""
    with connection.con.cursor() as cursor:
        found = cursor.execute("SELECT relname FROM pg_class WHERE relname LIKE 'discreet_domain_%'").fetchall()
    connection.con.commit()
    return [name for (name,) in found]


def test_every_engine_that_is_sent_rows_takes_the_same_types():
    """What may be sent is asked in one place, and each engine has names of its own for it."""
    names = {"clickhouse", "mysql", "postgres", "pyspark", "sqlite"}
    modules = [import_module(f"discreet.sources.events.dialects.{name}") for name in names]
    assert [set(module._COLUMN_TYPES) for module in modules] == [SENT_TYPES] * 5
    assert {each.name for each in DESCRIBED if each.copies_local_tables} == {"clickhouse", "mysql", "postgres"}
    assert all(each.send_unlogged is not None for each in DESCRIBED if each.copies_local_tables)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_text_files_are_refused_on_datafusion_which_infers_their_types(ending, tmp_path):
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    path = tmp_path / f"events.{ending}"
    path.write_text("who,what\n1,a\n" if ending == "csv" else '{"who": 1, "what": "a"}\n')
    backend = ibis.datafusion.connect()
    getattr(backend.con, f"register_{ending}")("ev", str(path))
    with pytest.raises(InvalidTypeError, match=r"^table must not read CSV, JSON or Avro files on DataFusion, which"):
        discreet.events(backend.table("ev"), user="who", item="what", domain=["a", "b"])


def test_dates_of_datafusion_beyond_nanoseconds_meet_conditions():
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    days = [date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31)]
    events = pa.table({"who": [1, 2, 3], "what": ["a"] * 3, "day": days})
    table = ibis.datafusion.connect().create_table("ev", events)
    for where, users in (("day > DATE '2025-01-01'", 2), ("day >= DATE '0001-01-01'", 3), ("day < '9999-12-31'", 2)):
        source = discreet.events(table, user="who", item="what", domain=["a", "b"], where=where)
        assert source.tally().exact(0) == users
        source.close()


def test_no_date_of_a_user_fails_a_discovery_on_datafusion():
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    days = pa.array([20_000, 20_000, 20_001, 2**31 - 1, -(2**31), None], pa.int32()).cast(pa.date32())
    events = pa.table({"who": days, "what": ["a"] * 6})
    table = ibis.datafusion.connect().create_table("ev", events)
    terms = discreet.discovered(delta="1e-8", max_items_per_user=1, method="laplace")
    with discreet.events(table, user="who", item="what", domain=terms).snapshot("key") as found:
        [(users, items)] = found.runs()
    assert (users.tolist(), items.tolist()) == ([4], [1])


def test_a_nan_with_a_sign_is_largest_on_datafusion():
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    for kind in (pa.float32(), pa.float64()):
        numbers = pa.array([float("nan"), -float("nan"), 6.0, 1.0, None], pa.float64()).cast(kind)
        events = pa.table({"who": range(5), "what": ["a"] * 5, "x": numbers})
        table = ibis.datafusion.connect().create_table("ev", events)
        source = discreet.events(table, user="who", item="what", domain=["a", "b"], where="x > 5")
        assert source.tally().exact(0) == 3


def test_dates_of_datafusion_in_milliseconds_have_periods():
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    days = pa.array([date(1970, 1, 2), date(2026, 1, 1)], pa.date64())
    events = pa.table({"who": [1, 2], "what": ["a"] * 2, "day": days})
    table = ibis.datafusion.connect().create_table("ev", events)
    for year in (1970, 2026):
        source = discreet.events(
            table, user="who", item="what", domain=["a", "b"], during=discreet.year("day").only(year)
        )
        assert source.tally().exact(0) == 1


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_broken_text_of_arrow_is_missing_on_datafusion(kind):
    """Arrow tables do not check their text, and one row of a user must not make a release fail."""
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    cells = [b"a", b"a", b"b", "\N{GRINNING FACE}".encode()]
    cells += [b"a\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]
    places = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    texts = pa.StringArray.from_buffers(len(cells), pa.py_buffer(places), pa.py_buffer(b"".join(cells)))
    if kind == "dictionary":
        texts = pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int32()), texts)
    elif kind == "large_string":
        whole = [pa.py_buffer(places.astype(np.int64)), pa.py_buffer(b"".join(cells))]
        texts = pa.LargeStringArray.from_buffers(len(cells), *whole)
    events = pa.table({"who": range(len(cells)), "what": texts, "number": [7] * len(cells)})
    backend = ibis.datafusion.connect()
    backend.con.register_record_batches("ev", [events.to_batches()])
    table, listed = backend.table("ev"), ["a", "b", "\N{GRINNING FACE}"]
    for options, expected in [
        ({}, [2, 1, 1]), ({"where": "what LIKE 'a%'"}, [2, 0, 0]), ({"where": "what IS NULL", "item": "number"}, [4]),
        ({"domain": discreet.strings("ab", 2)}, [2, 1]), ({"max_items_per_user": 1}, [2, 1, 1]),
        ({"user": "what", "item": "number"}, [3]), ({"domain": [1, 2]}, [0, 0]),
    ]:  # fmt: skip
        domain = [7, 8] if options.get("item") == "number" else listed
        source = discreet.events(table, **{"user": "who", "item": "what", "domain": domain, **options})
        tally = source.tally()
        assert [int(tally.exact(rank)) for rank in range(len(expected))] == expected
        source.close()
    found = discreet.discovered(delta="1e-8", max_items_per_user=1)
    source = discreet.events(table, user="who", item="what", domain=found)
    assert set(discreet.top_k(source, k=9, epsilon=1000).items) <= set(listed)


BY = {"by": "g", "groups": [1, 2], "each_user": "one"}


@pytest.mark.some(4)
@pytest.mark.parametrize("options", [{}, {"max_items_per_user": 1}, BY, {**BY, "value": "n", "clip": (0, 1)}], ids=str)
@pytest.mark.parametrize(("item", "domain"), [("n", [1, 2]), ("t", ["a", "b"]), ("d", DAYS), ("u", [1, 2])])
def test_sqlite_joins_a_public_list_by_an_index(item, domain, options, tmp_path):
    """Otherwise it compares each listed item with each row, or with each touched item: 40 s for 20,000 of both."""
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute("CREATE TABLE ev (who INTEGER, n INTEGER, t TEXT, d DATE, u, g INTEGER)")
    connection.close()
    source = discreet.events(
        f"sqlite://{tmp_path / 'e.db'}", name="ev", user="who", item=item, domain=domain, **options
    )
    query, backend = source.make_query(), source.list_parts().opened.table.get_backend()
    backend._run_pre_execute_hooks(query)
    plan = backend.con.execute(f"EXPLAIN QUERY PLAN {backend.compile(query)}").fetchall()
    found = [step for *_, step in plan if "AUTOMATIC COVERING INDEX (item=?)" in step]
    assert len(found) == 1 + ("max_items_per_user" in options)
    source.close()


@pytest.mark.parametrize("declared", ["INTEGER", "TEXT", ""])
def test_users_of_sqlite_are_one_if_they_are_spelled_alike(declared, tmp_path):
    """A database whose schema was edited has cells of any type in a column of whole numbers."""
    alike = [7, "7", 7.0, b"7"]
    apart = [-7, "07", " 7", "+7", "7.0", "7\0", "sept", b"\xff", 2**62, float(2**40), "9223372036854775808", ""]
    no_user = [None, 0.5, 1e300]
    with closing(sqlite3.connect(tmp_path / "e.db")) as connection, connection:
        connection.execute("CREATE TABLE ev (who, what INTEGER)")
        connection.executemany("INSERT INTO ev VALUES (?, 1)", [(cell,) for cell in (*alike, *apart, *no_user)])
        connection.execute("PRAGMA writable_schema = ON")
        edited = f"CREATE TABLE ev (who {declared}, what INTEGER)"
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'ev'", (edited,))
    path = f"sqlite://{tmp_path / 'e.db'}"
    for options in ({}, {"max_items_per_user": 1}):
        with closing(discreet.events(path, name="ev", user="who", item="what", domain=[1], **options)) as source:
            assert source.tally().exact(0) == 1 + len(apart)
    grouped = {"by": "what", "groups": [1], "each_user": "one"}
    with (
        closing(discreet.events(path, name="ev", user="who", item="what", domain=[1], **grouped)) as source,
        source.snapshot() as snapshot,
    ):
        assert [tally.exact(0) for tally in snapshot.tallies()] == [1 + len(apart)]
