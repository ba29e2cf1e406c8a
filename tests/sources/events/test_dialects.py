"""A dialect is all that is known of an engine; one that nobody has described is promised little and sent nothing."""

import ast
import gc
from dataclasses import replace
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest
from engines import postgres  # noqa: F401  # a fixture

import discreet
from discreet.errors import Error
from discreet.sources.events.dialect import SENT_TYPES, Dialect, dialect_named, list_engines
from discreet.sources.events.dialects import duckdb

SOURCES = Path(discreet.__file__).parent / "sources"
DESCRIBED = [dialect_named(name) for name in sorted(list_engines())]
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
    ({"where": "what < 'b'"}, "where must not order strings on duckdb, as it does with what", (3, 0, 1)),
    ({"where": "trim(what) = 'b'"}, "where must not trim strings on duckdb, as it does with what", (0, 1, 0)),
    ({"max_items_per_user": 2}, "max_items_per_user must be left out for items of text on duckdb: ", (3, 1, 1)),
]


@pytest.mark.parametrize(("options", "sentence", "_"), USES)
def test_what_cannot_be_promised_is_refused(newcomer, options, sentence, _):
    with pytest.raises(Error, match=f"^{sentence}"):
        scores(newcomer, **options)


def test_plain_counts_need_no_promise(newcomer):
    assert scores(newcomer, where="stars > 1 AND what LIKE '%'") == {"a": 2, "b": 1, "A": 1}


@pytest.mark.parametrize(("options", "_", "expected"), USES)
def test_one_value_makes_an_engine_known(newcomer, options, _, expected, monkeypatch):
    described = Dialect(name="duckdb", title="a newcomer", text_bytes=DUCKDB.text_bytes, trim=DUCKDB.trim)
    monkeypatch.setattr(duckdb, "DIALECT", described)
    assert scores(newcomer, **options) == dict(zip(("a", "b", "A"), expected, strict=True))


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
    names = {"postgres", "pyspark", "sqlite"}
    modules = [import_module(f"discreet.sources.events.dialects.{name}") for name in names]
    assert [set(module._COLUMN_TYPES) for module in modules] == [SENT_TYPES] * 3
    assert {each.name for each in DESCRIBED if each.copies_local_tables} == {"postgres"}
    assert all(each.send_unlogged is not None for each in DESCRIBED if each.copies_local_tables)
