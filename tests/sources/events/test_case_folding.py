"""Simple case folding: the shipped table is that of Unicode, and every engine folds every character by it."""

import sqlite3
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.sources.events.case_folding import fold_case, list_folds, read_table
from discreet.sources.events.connect import open_table
from discreet.sources.events.dialects import duckdb as duckdb_dialect
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.engine import ask
from discreet.sources.events.location import Location
from discreet.sources.events.unlisted import unify_spellings
from engines import FOLDING_SERVERS, on

TOOLS = Path(__file__).parents[3] / "tools"
ONE_TO_ONE = {
    # As CaseFolding.txt has them: C and S lines, and no F and T lines.
    "A": "a",
    "Z": "z",
    "Ä": "ä",
    "ẞ": "ß",
    "ß": "ß",
    "İ": "İ",
    "I": "i",
    "\u0131": "\u0131",
    "\u212a": "k",
    "\u017f": "s",
    "Σ": "\u03c3",
    "ς": "\u03c3",
    "µ": "μ",
    "\u0345": "\u03b9",
    "ᾈ": "ᾀ",
    "ﬁ": "ﬁ",
    "ŉ": "ŉ",
    "\u13a0": "\u13a0",
    "\uab70": "\u13a0",
    "Ⅷ": "ⅷ",
    "Ⓐ": "ⓐ",
    "\U00010400": "\U00010428",
    "\U0001e900": "\U0001e922",
    "😀": "😀",
    "寿": "寿",
    "\ufb03": "\ufb03",
}
SAME = [
    ["Müller", " MÜLLER", "müller  "],
    ["Mu\u0308ller", "MU\u0308LLER "],  # decomposed, which is another text
    ["Straße", "STRAẞE", " straße"],
    ["STRASSE", "Strasse"],
    ["İstanbul", "İSTANBUL"],
    ["istanbul", "Istanbul"],
    ["\u0131stanbul"],
    ["\u212aelvin", "kelvin", "KELVIN"],
    ["ΣΊΣΥΦΟΣ", "Σί\u03c3υφος", "\u03c3ί\u03c3υφο\u03c3"],  # noqa: RUF001
    ["\U00010400\U00010401", "\U00010428\U00010429"],
    ["😀 OK", "😀 ok "],
    ["A" * 10_000, "a" * 10_000],
    ["Ä" * 10_000 + " ", "ä" * 10_000],
    ["\tTab", "\ttab"],
    ["\u00a0no-break", "\u00a0NO-BREAK"],
    ["", "   "],
    ["'quoted' \\ \"TEXT\"", "'QUOTED' \\ \"text\""],
    ["100%_[A-Z]^]", "100%_[a-z]^]"],
    ["z" * 65_536],
]
"""Lists of texts that are one item each."""


@pytest.mark.long
def test_the_table_is_that_of_unicode(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import case_folding

    version, runs = read_table()
    made = list(case_folding.find_runs())
    own = {code: code + offset for first, last, step, offset in made for code in range(first, last + 1, step)}
    # A character that is assigned never folds otherwise; a later Python only knows more of them.
    assert {code: own.get(code) for code in list_folds()} == list_folds()
    if unicodedata.unidata_version == version:
        assert made == runs
        assert (
            case_folding.format_table().encode()
            == Path(duckdb_dialect.__file__).parents[1].joinpath("case_folding.json").read_bytes()
        )
    assert version == "14.0.0"
    assert sys.version_info >= (3, 11)
    assert len(list_folds()) == 1454


def test_characters_fold_one_to_one_and_once():
    assert {text: fold_case(text) for text in ONE_TO_ONE} == ONE_TO_ONE
    folds = list_folds()
    assert not set(folds) & set(folds.values())
    assert fold_case("".join(map(chr, folds))) == "".join(map(chr, folds.values()))


def fold_on(engine, texts, tmp_path, request, spelling="fold"):
    """Return what a source makes of texts on an engine."""
    given = on(engine, pa.table({"n": range(len(texts)), "what": pa.array(texts, pa.string())}), tmp_path, request)
    opened = open_table(Location.parse(given["table"]) or given["table"], given.get("name"), "table", ["n", "what"])
    try:
        table = opened.table
        made = table.select(n=table.n.cast("int64"), text=unify_spellings(opened.dialect, table.what, spelling))
        found = ask(engine, "folding", made.to_pyarrow).to_pylist()
    finally:
        opened.close()
    return [row["text"] for row in sorted(found, key=lambda row: row["n"])]


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "csv", "ibis", "duckdb", "sqlite", *FOLDING_SERVERS])
def test_every_engine_folds_every_character(engine, tmp_path, request):
    skipped = {0, *range(0xD800, 0xE000)}
    # CSV files would need quotes around line breaks, DuckDB drops rows of them with the last code point, and the trim
    # of engines is tested below.
    skipped |= {10, 13, 32, 0x10FFFF} if engine == "csv" else {32}
    every = "".join(chr(code) for code in range(0x110000) if code not in skipped)
    texts = [every[i : i + 999] for i in range(0, len(every), 999)]
    # A few characters alone, because PostgreSQL folds by the highest one.
    texts += [*ONE_TO_ONE, "A\u024f", "Ä\u0250", "\u0400Ä", "Ա", "\U0001e900"]
    assert fold_on(engine, texts, tmp_path, request) == [fold_case(text) for text in texts]


@pytest.mark.parametrize("engine", ["arrow", "duckdb", "sqlite", *FOLDING_SERVERS])
def test_spellings_of_one_item_are_found_as_one(engine, tmp_path, request):
    rows = [
        {"who": f"{index}-{number}", "what": text}
        for index, texts in enumerate(SAME)
        for number, text in enumerate(texts)
    ]
    rows += [{"who": f"long {n}", "what": text} for n, text in enumerate(["z" * 65_537, "ä" * 32_769, None])]
    given = on(engine, pa.Table.from_pylist(rows), tmp_path, request)
    source = discreet.events(
        **given, user="who", item="what", domain=discreet.discovered("1e-6", 1, spelling="fold", method="laplace")
    )
    with source.snapshot("key") as snapshot:
        ((users, items),) = snapshot.runs()
        (found,) = snapshot.items([np.arange(items.sum())])
    expected = {fold_case(texts[0].strip(" ")): len(texts) for texts in SAME}
    assert dict(zip(found.items, found.scores, strict=True)) == expected
    assert Counter(dict(zip(users.tolist(), items.tolist(), strict=True))) == Counter(expected.values())
    assert source.description()["spelling"] == "fold by Unicode 14.0.0"


@pytest.mark.parametrize("spelling", ["exact", "casefold", "trim", "both", "fold"])
@pytest.mark.parametrize("engine", ["sqlite", "arrow", *FOLDING_SERVERS[1:]])  # PostgreSQL has no text with a NUL
def test_broken_text_is_dropped_before_it_is_changed(engine, spelling, tmp_path, request):
    """A function that ends at a NUL would make an item of broken text."""
    if engine == "sqlite":
        cells = "X'4100', X'004120', X'412000', X'2041002020', X'00', X'41ff', X'c3', X'20c341'"
        with sqlite3.connect(tmp_path / "broken.db") as connection:
            connection.execute("CREATE TABLE events (what TEXT)")
            listed = ", ".join(f"(CAST({cell} AS TEXT))" for cell in cells.split(", "))
            connection.execute(f"INSERT INTO events VALUES {listed}, ('B ')")  # noqa: S608
        connection.close()
        table = ibis.sqlite.connect(tmp_path / "broken.db").table("events")
        opened = open_table(table, None, "table", ["what"])
    else:
        texts = ["A\0", "\0A ", "A \0", " A\0  ", "\0", "B "]
        given = on(engine, pa.table({"what": texts}), tmp_path, request)
        opened = open_table(given["table"], None, "table", ["what"])
    made = opened.table.select(text=unify_spellings(opened.dialect, opened.table.what, spelling))
    found = set(ask(engine, "folding", made.to_pyarrow)["text"].to_pylist())
    opened.close()
    kept = {"exact": "B ", "casefold": "b ", "trim": "B", "both": "b", "fold": "b"}[spelling]
    # DuckDB and Spark have text with a NUL, which only functions that need the same text everywhere drop.
    assert found == {None, kept} if engine == "sqlite" or spelling == "fold" else kept in found


def test_an_engine_without_the_table_refuses(monkeypatch):
    known = duckdb_dialect.DIALECT
    functions = {"text_bytes": known.text_bytes, "digest": known.digest, "trim": known.trim}
    newcomer = Dialect(name="duckdb", title="newcomer", **functions)
    monkeypatch.setattr(duckdb_dialect, "DIALECT", newcomer)
    for spelling, works in (("both", True), ("fold", False)):
        domain = discreet.discovered("1e-6", 1, spelling=spelling)
        table = ibis.duckdb.connect().create_table("events", pa.table({"who": [1], "what": ["a"]}))
        if works:
            discreet.events(table, user="who", item="what", domain=domain)
            continue
        with pytest.raises(discreet.Error, match=r"^spelling must not be 'fold' on duckdb: its functions of text"):
            discreet.events(table, user="who", item="what", domain=domain)


def test_two_connections_to_one_database_fold(tmp_path):
    """The function stays in the catalogue of the database, which they share."""
    first = ibis.duckdb.connect(tmp_path / "events.ddb")
    first.create_table("events", pa.table({"who": [1, 2, 3], "what": ["Ä", " ä", "a"]}))
    second = ibis.duckdb.connect(tmp_path / "events.ddb")
    for connection in (first, second, first):
        domain = discreet.discovered("1e-6", 1, spelling="fold")
        source = discreet.events(connection.table("events"), user="who", item="what", domain=domain)
        assert discreet.top_k(source, k=1, epsilon=1000).items == ["ä"]
    first.disconnect()
    source = discreet.events(second.table("events"), user="who", item="what", domain=domain)
    assert discreet.top_k(source, k=1, epsilon=1000).items == ["ä"]
