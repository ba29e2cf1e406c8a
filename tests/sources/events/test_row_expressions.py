"""Row expressions in the place of a column: one meaning on every engine, total on every row, and never another user."""

import random
import re
import sqlite3
from collections import defaultdict
from datetime import date, datetime, timedelta
from math import isfinite

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.errors import InvalidValueError
from discreet.sources.events.case_folding import fold_case
from discreet.sources.events.cells import read_cell
from discreet.sources.events.connect import open_table
from discreet.sources.events.engine import ask
from discreet.sources.events.group_keys import parse_by
from discreet.sources.events.location import Location
from discreet.sources.events.row_expressions import RowExpression, derive_columns
from effort import examples
from engines import ENGINES, LOCAL, LONG_ON_SERVERS, ON_CLICKHOUSE, POSTGRES, SPARK, on, on_server

LONG = ["z" * 65_536, "z" * 65_537, "Ä" * 32_768, "Ä" * 32_769, "a b" * 10_000]
CELLS = [None, "", " ", " Äpfel ", "ÄPFEL", "e\u0301É", "😀x", "a\nb", "'q'", "%_", "\\", "7", " 7", "07", "7.0", "7.5"]
CELLS += ["1e999", "-3", "9" * 30, "true", "2026-02-28", "2026-02-30", "0000-01-01", "10000-01-01", "0001-01-01"]
CELLS += ["9999-12-31", "2026-11-03 23:30:00", "2026-11-03T23:30:00-01:00", "0001-01-01 00:00:00+14", "NULL", *LONG]


def clean(cell):
    """The text that functions see; cells of bytes are broken UTF-8."""
    return None if not isinstance(cell, str) or "\0" in cell or len(cell.encode()) > 65_536 else cell


def of_text(function):
    return lambda a, b: None if clean(a) is None else function(clean(a))


def read_text(pattern, function):
    """The value of texts that a pattern spells, None if there is none."""

    def read(cell):
        spelled = None if clean(cell) is None else re.fullmatch(pattern, cell, re.ASCII)
        try:
            return None if spelled is None else function(spelled)
        except (ValueError, OverflowError):
            return None

    return read


def read_moment(spelled):
    day, time, zone = spelled.groups()
    moment = datetime.fromisoformat(f"{day}T{(time or '00:00')[:8]}")
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", zone or "+00", re.ASCII)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        moment -= int(f"{sign}1") * timedelta(hours=int(hours), minutes=int(minutes or 0))
    return moment


def within_64_bits(number):
    return number if number is not None and -(2**63) <= number < 2**63 else None


_DAY = r"(\d{4}-\d\d-\d\d)"
_ZONE = r"(Z| UTC|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?"
find_date = read_text(_DAY, lambda spelled: date.fromisoformat(spelled[1]))
find_moment = read_text(rf"{_DAY}[ T]((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{{1,9}})?)?){_ZONE}", read_moment)
find_whole = read_text(r"([+-]?\d{1,40})(?:\.0{0,20})?", lambda spelled: within_64_bits(int(spelled[1])))
find_truth = read_text("true|True|TRUE|false|False|FALSE", lambda spelled: spelled[0].lower() == "true")
find_float = read_text(
    r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?",
    lambda spelled: float(spelled[0]) if isfinite(float(spelled[0])) else None,
)


def find_day(cell):
    """The day of a text that is a date, or a time, whose day is that in UTC."""
    return find_date(cell) or (None if find_moment(cell) is None else find_moment(cell).date())


def of_day(function):
    return lambda a, b: None if find_day(a) is None else function(find_day(a))


def within_arithmetic(number):
    return None if abs(number) >= 2**63 else number


DEFINITIONS = {
    "trim(a)": of_text(lambda a: a.strip(" ")),
    "ltrim(a)": of_text(lambda a: a.lstrip(" ")),
    "rtrim(a)": of_text(lambda a: a.rstrip(" ")),
    "lower(a)": of_text(lambda a: "".join(c.lower() if c.isascii() else c for c in a)),
    "upper(a)": of_text(lambda a: "".join(c.upper() if c.isascii() else c for c in a)),
    "fold(a)": of_text(fold_case),
    "fold(trim(a))": of_text(lambda a: fold_case(a.strip(" "))),
    "substring(a, 2, 3)": of_text(lambda a: a[1:4]),
    "substring(fold(a), 30000)": of_text(lambda a: fold_case(a)[29_999:]),
    "replace(a, 'a', '<>')": of_text(lambda a: a.replace("a", "<>")),
    "replace(a, '\\', '''')": of_text(lambda a: a.replace("\\", "'")),
    "concat(a, '|', b)": lambda a, b: f"{clean(a) or ''}|{clean(b) or ''}",
    "coalesce(a, b, 'none')": lambda a, b: next((each for each in (clean(a), clean(b)) if each is not None), "none"),
    "CASE WHEN a LIKE '7%' THEN 'seven' ELSE upper(b) END": lambda a, b: (
        "seven"
        if clean(a) is not None and a.startswith("7")
        else (None if clean(b) is None else "".join(c.upper() if c.isascii() else c for c in b))
    ),
    "cast(cast(a AS BIGINT) AS TEXT)": lambda a, b: None if find_whole(a) is None else str(find_whole(a)),
    "cast(a AS DATE) = DATE '2026-02-28'": lambda a, b: (
        None if find_date(a) is None else find_date(a) == date(2026, 2, 28)
    ),
    "cast(a AS BOOLEAN)": lambda a, b: find_truth(a),
    "cast(a AS DOUBLE)": lambda a, b: find_float(a),
    "extract(year FROM a)": of_day(lambda day: day.year),
    "extract(quarter FROM a)": of_day(lambda day: (day.month + 2) // 3),
    "extract(month FROM a)": of_day(lambda day: day.month),
    "extract(day FROM a)": of_day(lambda day: day.day),
    "extract(isodow FROM a)": of_day(lambda day: day.isoweekday()),
    "extract(hour FROM a)": lambda a, b: None if find_moment(a) is None else find_moment(a).hour,
    "extract(month FROM a) * 100 + extract(day FROM a)": of_day(lambda day: day.month * 100 + day.day),
    "cast(a AS BIGINT) * 9223372036854775806": lambda a, b: (
        None if find_whole(a) is None else within_arithmetic(find_whole(a) * (2**63 - 2))
    ),
    "a = b": lambda a, b: None if None in (clean(a), clean(b)) else a == b,
}


def spelled(function):
    """As text, because ibis reads whole numbers of SQLite with gaps among them as floats."""
    return lambda i, j, d: None if (found := function(i, j)) is None else str(found)


TYPED = {
    "cast(i AS DOUBLE)": lambda i, j, d: float(i),
    "cast(d AS TEXT)": lambda i, j, d: None if d is None else d.isoformat(),
    "cast(i AS TEXT)": spelled(lambda i, j: i),
    "cast(- i AS TEXT)": spelled(lambda i, j: within_arithmetic(-i)),
    "cast(i - 3 AS TEXT)": spelled(lambda i, j: within_arithmetic(i - 3)),
    "cast(i + 3 AS TEXT)": spelled(lambda i, j: within_arithmetic(i + 3)),
    "cast(i - j AS TEXT)": spelled(lambda i, j: within_arithmetic(i - j)),
    "cast(i + j AS TEXT)": spelled(lambda i, j: within_arithmetic(i + j)),
    "cast(j - (- i) AS TEXT)": spelled(
        lambda i, j: None if within_arithmetic(-i) is None else within_arithmetic(j + i)
    ),
}
"""Expressions of two columns of whole numbers and one of dates."""


def evaluate(given, texts, columns=("n", "a", "b")):
    """Return the rows of the events with a column for each expression, in the order of n."""
    table = given["table"]
    opened = open_table(Location.parse(table) or table, given.get("name"), "table", columns)
    try:
        names = derive_columns(opened, [RowExpression.parse("item", text) for text in texts])
        columns = (opened.table[names[text]] for text in texts)
        # ClickHouse sends booleans with NULL as numbers, which ibis cannot fetch as booleans.
        wanted = {f"c{at}": each.cast("int32") if each.type().is_boolean() else each for at, each in enumerate(columns)}
        made = opened.table.select(n=read_cell(opened.dialect, opened.table.n, "integer"), **wanted)
        rows = sorted(ask(opened.engine, "evaluating", made.to_pyarrow).to_pylist(), key=lambda row: row["n"])
    finally:
        opened.close()
    booleans = {place for place, text in enumerate(texts) if " = " in text or "BOOLEAN" in text}
    return [
        [
            bool(v) if place in booleans and (v := row[f"c{place}"]) is not None else row[f"c{place}"]
            for place in range(len(texts))
        ]
        for row in rows
    ]


def spell(expression, engine):
    """An expression, without the function that MariaDB lacks where the cells need less."""
    if engine != "mariadb" or "fold" not in expression:
        return expression
    return f"replace(lower{expression.removeprefix('fold')}, 'Ä', 'ä')"


def evaluate_known(given, texts, columns, engine):
    """The same by text, without the expressions that a server refuses because they differ there."""
    # All of them in one query would be a plan of many megabytes on Spark.
    together, found = 1 if engine == "spark" else 4, {}
    refused = [] if engine in LOCAL else [text for text in texts if "AS" in text and is_refused(given, text, columns)]
    known = [text for text in texts if text not in refused]
    assert set(refused) <= {"cast(a AS DOUBLE)", "cast(i AS DOUBLE)", "cast(d AS TEXT)"}
    for place in range(0, len(known), together):
        some = known[place : place + together]
        rows = evaluate(given, some, columns)
        found |= {text: [row[at] for row in rows] for at, text in enumerate(some)}
    return found


def is_refused(given, text, columns):
    try:
        evaluate(given, [text], columns)
    except discreet.Error as error:
        return "such a cast is not known to mean the same on every engine" in str(error)
    return False


def check_cells(engine, cells, tmp_path, request):
    texts = [text for text in DEFINITIONS if engine != "mariadb" or "fold" not in text]
    given = on(engine, make_table(cells), tmp_path, request)
    for text, values in evaluate_known(given, texts, ("n", "a", "b"), engine).items():
        for value, pair in zip(values, cells, strict=True):
            assert value == DEFINITIONS[text](*pair), (text, *(each and each[:30] for each in pair))


def make_table(cells):
    """Return a table of two columns of text; bytes in the first one are written as they are."""
    a, b = [first for first, _ in cells], [second for _, second in cells]
    raw = pa.array([each.encode() if isinstance(each, str) else each for each in a], pa.binary())
    # Broken UTF-8 is text to Arrow until somebody looks.
    texts = pa.StringArray.from_buffers(len(raw), *raw.buffers()[1:], raw.buffers()[0], raw.null_count)
    return pa.table({"n": range(len(cells)), "a": texts, "b": pa.array(b, pa.string())})


CLICKHOUSE = pytest.param("clickhouse", marks=ON_CLICKHOUSE)
ON_EACH = ["arrow", "pandas", "polars", "duckdb", "sqlite", CLICKHOUSE, *LONG_ON_SERVERS]


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ON_EACH)
def test_every_function_is_its_definition_on_every_engine(engine, tmp_path, request):
    check_cells(engine, [*((cell, "B") for cell in CELLS), *(("é", cell) for cell in CELLS)], tmp_path, request)


WHOLE = [0, 1, -1, 7, 2**53 - 1, 2**63 - 4, 2**63 - 1, -(2**63) + 3, -(2**63)]
DAYS = [None, date(1, 1, 1), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)]


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ON_EACH)
def test_numbers_and_dates_are_their_definitions_on_every_engine(engine, tmp_path, request):
    rows = [(i, j, day) for i in WHOLE for j in (-(2**63), -1, 2**63 - 1) for day in DAYS[:: 1 + 4 * (j != -1)]]
    i, j, days = zip(*rows, strict=True)
    table = {"n": range(len(rows)), "i": pa.array(i, pa.int64()), "j": pa.array(j, pa.int64())}
    given = on(engine, pa.table({**table, "d": pa.array(days, pa.date32())}), tmp_path, request)
    for text, values in evaluate_known(given, list(TYPED), ("n", "i", "j", "d"), engine).items():
        for value, row in zip(values, rows, strict=True):
            assert value == TYPED[text](*row), (text, *row)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
MOMENTS = st.builds(
    lambda moment, mark, places, zone: f"{moment.isoformat(mark)[:places]}{zone}",
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59)),
    st.sampled_from(" T"),
    st.sampled_from([10, 16, 19, 26]),
    st.sampled_from(["", "", "Z", " UTC", "+14:00", "-12", "+0530"]),
)
ODD = [
    TEXT.map(lambda text: (text * 10_000)[:10_000]),
    st.tuples(TEXT, TEXT).map("\0".join),
    st.tuples(TEXT, st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80"])).map(lambda pair: pair[0].encode() + pair[1]),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.sampled_from(["{:04}-12-31", "{:04}-01-01 00:30:00+01:00"]).flatmap(
        lambda form: st.integers(0, 10**5).map(form.format)
    ),
    MOMENTS,
]
CELL = st.one_of(st.sampled_from(CELLS), st.tuples(TEXT, st.sampled_from(CELLS[1:])).map("".join), *ODD)


@pytest.mark.some(1)
@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
def test_every_function_is_its_definition_on_any_cell(engine, tmp_path, request):
    """Broken UTF-8 and NUL are in frames of Arrow; other engines refuse to store one of them."""

    def can_store(cell):
        return engine == "arrow" or (not isinstance(cell, bytes) and "\0" not in (cell or ""))

    @settings(max_examples=examples({"arrow": 6, "sqlite": 12}.get(engine, 3)), deadline=None)
    @given(
        st.lists(st.tuples(CELL.map(lambda cell: cell if can_store(cell) else None), TEXT), min_size=20, max_size=20)
    )
    def check(cells):
        check_cells(engine, cells, tmp_path, request)

    check()


NESTED = {
    "fold({})": fold_case,
    "trim({})": lambda text: text.strip(" "),
    "lower({})": lambda text: "".join(c.lower() if c.isascii() else c for c in text),
    "upper({})": lambda text: "".join(c.upper() if c.isascii() else c for c in text),
    "substring({}, 2, 30)": lambda text: text[1:31],
    "replace({}, 'e', 'É')": lambda text: text.replace("e", "É"),
    "concat({}, ' - ', {})": lambda one, other: f"{one or ''} - {other or ''}",
    "coalesce({}, {})": lambda one, other: other if one is None else one,
    "CASE WHEN {0} LIKE 'e%' THEN {0} ELSE {1} END": lambda one, other: one if (one or "").startswith("e") else other,
}
"""Functions of text to put into each other; those of one text are NULL without it."""


def nest(inner):
    of_two = [form for form in NESTED if form.count("{") > 1]
    of_one = [form for form in NESTED if form not in of_two]
    return st.tuples(st.sampled_from(of_one), inner) | st.tuples(st.sampled_from(of_two), inner, inner)


def write(tree):
    return tree if isinstance(tree, str) else tree[0].format(*map(write, tree[1:]))


def compute(tree, row):
    if isinstance(tree, str):
        return row[tree]
    found = [compute(each, row) for each in tree[1:]]
    return None if found == [None] else NESTED[tree[0]](*found)


TREES = nest(st.recursive(st.sampled_from(["a", "b", ("fold({})", "a")]), nest, max_leaves=3))
WORDS = st.sampled_from([" Äpfel ", "ÄPFEL", "e\u0301É", "😀x", "ẞ", "İstanbul", "eBay \u212a", "plain", None])


@pytest.mark.some(2)
@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", [*ON_EACH[:3], "parquet", "csv", *ON_EACH[3:6], POSTGRES, SPARK])
def test_nested_functions_are_their_definitions_over_several_chunks(engine, tmp_path, request):
    """DuckDB reads chunks of 2,048 rows, and holds a text of up to 12 bytes beside its length."""

    @settings(max_examples=examples({"spark": 6, "clickhouse": 12}.get(engine, 36)), deadline=None)
    @given(st.lists(TREES, min_size=1, max_size=2, unique_by=write), st.lists(st.tuples(WORDS, WORDS), min_size=1))
    def check(trees, words):
        words = (words * 5000)[:5000]
        cells = [[each and f"{each} Nummer {n % 99}" for each in pair] for n, pair in enumerate(words)]
        given_, texts = on(engine, make_table(cells), tmp_path, request), [write(tree) for tree in trees]
        try:
            found = evaluate(given_, texts)
        except InvalidValueError as error:
            # Too long a statement or text is refused before any row is read.
            if not re.search("must nest fewer|must not make texts of more", str(error)):
                raise
            return
        for at, tree in enumerate(trees):
            expected = [compute(tree, {"a": a, "b": b}) for a, b in cells]
            assert [row[at] for row in found] == expected, texts[at]

    check()


@pytest.mark.parametrize("more", range(4))
def test_a_coalesced_fold_counts_each_user_once(more):
    """A text in freed memory would be that of another row, and one user more would move any score."""
    names = [f"Ein langer Artikel Nummer {n % 6} ÄÖ" for n in range(9000)]
    names = [*(f"Anderer Artikel überall {n}" for n in range(more)), *names]
    table = pa.table({"who": [max(n + 1, more) - more for n in range(len(names))], "a": names, "b": ["x"] * len(names)})
    domain = [fold_case(name) for name in names[-6:]]
    source = discreet.events(table, user="who", item="coalesce(fold(a), b)", domain=domain)
    assert score(source) == dict.fromkeys(domain, 1500)


def test_a_user_made_of_a_folded_text_is_one_user():
    names = [f"Ein langer Name Nummer {n % 6} ÄÖ" for n in range(5000)]
    table = pa.table({"a": names, "b": ["x"] * len(names), "what": ["y"] * len(names)})
    source = discreet.events(table, user="concat(fold(a), '-', b)", item="what", domain=["y"])
    assert discreet.check_events(source).users == 6
    assert score(source) == {"y": 6}


def test_broken_text_is_missing_before_any_function(tmp_path):
    with sqlite3.connect(tmp_path / "broken.db") as connection:
        connection.execute("CREATE TABLE events (n INTEGER, a TEXT, b TEXT)")
        for place, cell in enumerate(["ff41", "41ff", "4100", "00", "410042", "c3", "eda080", "20c320"]):
            connection.execute(f"INSERT INTO events VALUES ({place}, CAST(X'{cell}' AS TEXT), 'b')")  # noqa: S608
        connection.execute("INSERT INTO events VALUES (8, X'41', 'b')")
    connection.close()
    texts = ["fold(a)", "trim(a)", "substring(a, 1, 1)", "concat(a, b)", "coalesce(a, b)", "replace(a, 'A', '')"]
    found = evaluate({"table": f"sqlite://{tmp_path / 'broken.db'}", "name": "events"}, texts)
    assert found == [*[[None, None, None, "b", "b", None]] * 8, ["a", "A", "A", "Ab", "A", ""]]


@pytest.mark.parametrize("engine", ["arrow", "sqlite", on_server("postgres")])
def test_dates_of_columns_and_of_text_mix(engine, tmp_path, request):
    """SQLite keeps dates as text, and those of a cast are dates to ibis."""
    days = pa.array([date(2024, 2, 29), None, date(2026, 1, 2)], pa.date32())
    table = pa.table({"n": range(3), "a": ["2026-01-01", "2026-01-01", "x"], "d": days})
    mixed = "coalesce(d, cast(a AS DATE))"
    texts = ["cast(a AS DATE) = d", f"{mixed} = DATE '2026-01-01'", f"extract(day FROM {mixed})"]
    found = evaluate(on(engine, table, tmp_path, request), texts, ("n", "a", "d"))
    assert found == [[False, False, 29], [None, True, 1], [None, False, 2]]


ROWS = [
    *[("Ann ", " Äpfel", "10115", 250), ("ann", "ÄPFEL ", "10117", 50), ("BOB", "äpfel", "20095", 150)],
    *[("bob", "Birnen", "20097", 7), ("cem", "birnen", "10999", 100), (None, "äpfel", "10115", 1)],
    *[("dan", None, "10115", 1), ("eve", "Kiwi", "99999", 5), ("  ", "äpfel", None, 1)],
]
EVENTS = pa.table(
    {
        "who": pa.array([row[0] for row in ROWS], pa.string()),
        "what": pa.array([row[1] for row in ROWS], pa.string()),
        "plz": pa.array([row[2] for row in ROWS], pa.string()),
        "cents": pa.array([row[3] for row in ROWS], pa.int64()),
    }
)
EXPRESSIONS = {"user": "lower(trim(who))", "item": "fold(trim(what))", "domain": ["äpfel", "birnen", "quitten"]}


def score(source):
    """The scores of a source by item, of each group where there are any."""
    release = discreet.top_k(source, source.list_parts().domain.d, 1000, counts=10**6)
    if not hasattr(source, "keys"):
        return {each.item: each.value for each in release.counts}
    return {key: {each.item: each.value for each in release[key].counts} for key in source.keys}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_argument_takes_an_expression(engine, tmp_path, request):
    given = on(engine, EVENTS, tmp_path, request)
    options = {**given, **EXPRESSIONS, "item": spell(EXPRESSIONS["item"], engine)}
    if engine == "mariadb":
        with pytest.raises(discreet.Error, match=r"^item must not fold strings on mysql, as in FOLD\("):
            discreet.events(**given, **EXPRESSIONS)
    if engine == "datafusion":
        with pytest.raises(discreet.Error, match=r"^user must not change strings on datafusion, as it does with who$"):
            discreet.events(**options)
        return
    assert score(discreet.events(**options)) == {"äpfel": 3, "birnen": 2, "quitten": 0}
    # Brackets make an expression of it in several files too.
    spent = {"value": "(cents * 0.01)", "clip": (0, 2), "resolution": "0.01"}
    assert {k: round(float(v), 2) for k, v in score(discreet.events(**options, **spent)).items()} == {
        "äpfel": 3.51, "birnen": 1.07, "quitten": 0
    }  # fmt: skip
    split = {"by": "substring(plz, 1, 2)", "groups": ["10", "20"], "each_user": "many"}
    source = discreet.events(**options, **split)
    assert score(source) == {
        "10": {"äpfel": 1, "birnen": 1, "quitten": 0},
        "20": {"äpfel": 1, "birnen": 1, "quitten": 0},
    }
    assert source.names == ("substring(plz, 1, 2)",)
    assert source.description()["by"] == ["substring(plz, 1, 2)"]
    assert source.description()["columns"] == {"user": "lower(trim(who))", "item": options["item"]}
    assert discreet.check_events(source).rows == len(ROWS)
    terms = discreet.discovered("1e-6", 3)
    discovered = discreet.events(**{**options, "domain": terms}, where="cents > 6")
    with discovered.snapshot("key") as snapshot:
        ((_, items),) = snapshot.runs()
        (listed,) = snapshot.items([np.arange(items.sum())])
    assert dict(zip(listed.items, listed.scores, strict=True)) == {"äpfel": 2, "birnen": 2}


def test_the_name_of_a_column_is_that_column(tmp_path):
    names = ["a-b", "fold(x)", "x y", "x.y", "user", "1"]
    table = pa.table({**{name: ["p", "q"] for name in names}, "x": ["X", "X"], "a": [1, 2], "b": [1, 1]})
    for name in names:
        source = discreet.events(table, user="x", item=name, domain=["p", "q"])
        assert source.description()["columns"]["item"] == name
        assert score(source) == {"p": 1, "q": 1}
    table.to_pandas().to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    # Private records of JSON do not tell their keys: only brackets make an expression there.
    assert score(discreet.events(tmp_path / "rows.jsonl", user="x", item="a-b", domain=["p", "q"])) == {"p": 1, "q": 1}
    assert score(discreet.events(tmp_path / "rows.jsonl", user="b", item="fold(x)", domain=["x"])) == {"x": 1}
    (tmp_path / "keys.jsonl").write_text('{"x": 1, "price (EUR)": "low"}\n')
    source = discreet.events(tmp_path / "keys.jsonl", user="x", item='"price (EUR)"', domain=["low"])
    assert score(source) == {"low": 1}
    source = discreet.events(tmp_path / "rows.jsonl", user="x", item='"a-b"', domain=["p", "q"])
    assert score(source) == {"p": 1, "q": 1}
    # Two expressions that differ in case alone, and a long one with a line break.
    long = "CASE WHEN x = 'X'\nTHEN lower(x) ELSE '" + "y" * 60 + "' END"
    options = {"by": "LOWER(x)", "groups": ["x"], "each_user": "one"}
    for item in ("lower(x)", long):
        source = discreet.events(table, user="a", item=item, domain=["x"], **options)
        assert source.description()["columns"]["item"] == item
        assert source.names == ("LOWER(x)",)
        assert score(source) == {"x": {"x": 2}}


@pytest.mark.some(1)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_column_of_several_files_changes_an_expression(tmp_path, ending):
    """One file may be one user's: brackets alone make an expression, as in JSON."""
    names = ["who", "what", "a-b", "price (EUR)"]
    first = pa.table({"who": ["ann", "bob"], "what": ["A", "a"], "a-b": ["p", "q"], "price (EUR)": ["low", "high"]})
    second = pa.table({"who": ["cem"], "what": ["b"], "fold(what)": ["a"], "(cents * 2)": ["1"], "cents": ["3"]})
    write = {"csv": pa.csv.write_csv, "parquet": pa.parquet.write_table}[ending]
    write(first.select(names), tmp_path / f"first.{ending}")
    options = {"table": str(tmp_path / f"*.{ending}"), "user": "who"}
    for extra in (None, tmp_path / f"second.{ending}", tmp_path / f"a.{ending}"):
        if extra is not None:
            write(second, extra)
        found = score(discreet.events(**options, item="fold(what)", domain=["a", "b"]))
        assert found == {"a": 2, "b": 0 if extra is None else 1}
        for item in ("a-b", '"a-b"'):
            assert score(discreet.events(**options, item=item, domain=["p", "q"])) == {"p": 1, "q": 1}
        assert score(discreet.events(**options, item='"price (EUR)"', domain=["low"])) == {"low": 1}
        with pytest.raises(discreet.Error, match=r"must not use the function price .* stands in double quotes"):
            discreet.events(**options, item="price (EUR)", domain=["low"])
        with pytest.raises(discreet.Error, match=r"value must be a column .* as \(cents \* 2\)$"):
            discreet.events(**options, item="what", domain=["a"], value="cents * 2", clip=(0, 9))
    spent = {"value": "(cents * 2)", "clip": (0, 9)}
    assert score(discreet.events(**options, item="what", domain=["b"], **spent)) == {"b": 9}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"user": "concat(who, plz)", "by": "plz", "groups": ["1"], "each_user": "one"},
            "user must not be made of a column that by uses",
        ),
        (
            {"user": "concat(who, PLZ)", "by": "substring(plz, 1, 2)", "groups": ["1"], "each_user": "one"},
            "is of 'plz'",
        ),
        (
            {"user": "concat(who, what)"},
            "user must not be made of a column that item uses, as 'concat\\(who, what\\)' is of 'what'",
        ),
        ({"user": "concat(who, plz)", "during": discreet.month("plz").only("2026-01")}, "that during uses"),
        (
            {"user": "concat(who, plz)", "by": discreet.month("plz"), "groups": ["2026-01"], "each_user": "one"},
            "that by uses",
        ),
        (
            {"user": "concat(who, cents)", "value": "CENTS", "clip": (0, 1)},
            "that value uses, as 'concat\\(who, cents\\)' is of 'CENTS'",
        ),
        ({"user": "concat(who, cents)", "value": "cents * 2", "clip": (0, 1)}, "that value uses"),
        ({"user": "lower('x')"}, "user must be a column or an expression of columns"),
        ({"item": "fold(trim(what)"}, "item must be one SQL expression, and does not parse"),
        ({"item": "fold(trim(waht))"}, "item must name columns of the table .*; did you mean what"),
        ({"item": "whatt"}, "item must be a column of the table, one of who, what, plz, cents, not 'whatt'"),
        ({"item": "who-what-x"}, "item must be a column of the table"),
        (
            {"item": "cents * 0.5"},
            "item must be text, whole numbers, dates or booleans, and 'cents \\* 0.5' has decimal places",
        ),
        ({"item": "max(what)"}, "item must not use an aggregate"),
        ({"item": "random()"}, "item must not use the function random"),
        ({"item": "(SELECT 1)"}, "item must not use a subquery"),
        ({"value": "lower(what)", "clip": (0, 1)}, "value must be made of numbers, and 'lower\\(what\\)' is a string"),
        ({"by": "month(plz)", "groups": ["2026-01"], "each_user": "one"}, "did you mean discreet.month"),
        ({"by": "fold(plz", "groups": ["1"], "each_user": "one"}, "by must be one SQL expression"),
    ],
)
def test_what_is_no_expression_for_an_argument_is_refused(options, message):
    with pytest.raises(discreet.Error, match=message):
        discreet.events(EVENTS, **{"user": "who", "item": "what", "domain": ["a"], **options})


def test_a_user_of_several_columns_one_of_which_where_uses_is_noted():
    options = {"item": "what", "domain": ["a"]}
    (note,) = discreet.events(EVENTS, user="concat(who, plz)", where="PLZ > '1'", **options).notes()
    assert note.startswith("user 'concat(who, plz)' is made of 'PLZ', which where uses too")
    for user, where in (("lower(who)", "who <> 'x'"), ("concat(who, plz)", "cents > 5"), ("who", "who <> 'x'")):
        assert not discreet.events(EVENTS, user=user, where=where, **options).notes()


def test_a_period_in_quotes_is_no_key_of_json(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"who": 1, "what": "a", "day": "2026-01-03", "month(day)": "x"}\n')
    options = {"user": "who", "item": "what", "domain": ["a"], "each_user": "one"}
    with pytest.raises(discreet.Error, match=r"not 'month\(day\)'; did you mean discreet.month\('day'\)\?"):
        discreet.events(tmp_path / "rows.jsonl", by="month(day)", groups=["2026-01"], **options)
    for by, group in ((discreet.month("day"), "2026-01"), ('"month(day)"', "x")):
        source = discreet.events(tmp_path / "rows.jsonl", by=by, groups=[group], **options)
        assert score(source) == {group: {"a": 1}}


def test_a_user_from_the_open_side_of_a_join_is_refused():
    """An expression could make a user of a row that has none."""
    connection = ibis.duckdb.connect()
    left = connection.create_table("l", pa.table({"key": [1], "what": ["a"]}))
    right = connection.create_table("r", pa.table({"key": [1], "Who": ["a"]}))
    joined = left.left_join(right, "key")
    for user in ("Who", "coalesce(who, 'x')"):
        with pytest.raises(discreet.Error, match="open side of a join"):
            discreet.events(joined, user=user, item="what", domain=["a"])


def test_a_gap_in_a_frame_changes_nobody_elses_cells():
    long = [2**60, 2**60 + 1, 5, 2**53 - 1]
    whole, gap = pd.DataFrame({"n": range(4), "a": long}), pd.DataFrame({"n": range(5), "a": [*long, None]})
    texts = ["trim(a)", "coalesce(a, 'none')", "cast(cast(a AS BIGINT) AS TEXT)"]
    first, second = evaluate({"table": whole}, texts, ("n", "a")), evaluate({"table": gap}, texts, ("n", "a"))
    assert first == second[:4] == [[None, "none", None]] * 2 + [["5"] * 3, [str(2**53 - 1)] * 3]


def test_engines_without_a_dialect_refuse(monkeypatch):
    from discreet.sources.events.dialects import duckdb as module
    from discreet.sources.events.dialects.base import Dialect

    known = {"text_bytes": module.DIALECT.text_bytes, "trim": module.DIALECT.trim}
    monkeypatch.setattr(module, "DIALECT", Dialect(name="duckdb", title="newcomer", **known))
    table = ibis.duckdb.connect().create_table("events", EVENTS)
    for item in ("fold(what)", "trim(what)", "coalesce(what, plz)"):
        with pytest.raises(discreet.Error, match="item must not change strings on duckdb, as it does with what"):
            discreet.events(table, user="who", item=item, domain=["a"])
    with pytest.raises(discreet.Error, match=r"^by must not (extract a month|change strings) on"):
        discreet.events(
            table, user="who", item="what", domain=["a"], by="extract(month FROM plz)", groups=[1], each_user="one"
        )


def test_a_column_without_a_type_is_told(tmp_path):
    (tmp_path / "rows.csv").write_text("who,what,cents\nann,a,100\n")
    options = {"user": "who", "item": "fold(what)", "domain": ["a"]}
    source = discreet.events(tmp_path / "rows.csv", value="cents * 0.01", clip=(0, 9), resolution="0.01", **options)
    assert source.notes() == [
        "item reads fold(what) as text, whose case and spaces count, because its type is not declared",
        "value reads cents as whole numbers (25), because its type is not declared: no other spelling meets it",
    ]
    assert {key: float(value) for key, value in score(source).items()} == {"a": 1.0}


LISTS = [
    ("fold(trim(x))", ["Käse", "brot", " tee"], 2, "as fold(trim(...)) makes them"),
    ("FOLD( (Trim(substring(x, 1, 9))) )", ["Käse"], 1, "as fold(trim(...)) makes them"),
    ("trim(both FROM x)", ["a "], 1, "as trim(...) makes them"),
    ("ltrim(fold(x))", ["a ", " a"], 1, "as ltrim(fold(...)) makes them"),
    ("upper(x)", ["Ä", "ä", "B", "b"], 1, "as upper(...) makes them"),
    ("lower(upper(x))", ["b", "Ä"], 0, ""),
    ("concat(fold(x), 'Y')", ["Ä", " "], 0, ""),
    ("trim(x, 'y')", ["yy"], 0, ""),
    ("cast(x AS BIGINT)", [1, 2], 0, ""),
    ("x", ["A "], 0, ""),
]


@pytest.mark.parametrize(("text", "members", "misspelt", "remedy"), LISTS)
def test_members_of_a_list_that_an_expression_never_equals_are_warned_of(text, members, misspelt, remedy, recwarn):
    table = pa.table({"who": ["ann"], "x": ["a"]})
    if text.startswith("trim(x,"):
        with pytest.raises(discreet.Error, match="this form of trim"):
            discreet.events(table, user="who", item=text, domain=members)
        return
    split = {"by": text, "groups": members, "each_user": "one"}
    for options in ({"item": text, "domain": members}, {"item": "x", "domain": ["a"], **split}):
        recwarn.clear()
        source = discreet.events(table, user="who", **options)
        told = [str(each.message) for each in recwarn]
        assert source.notes() == told
        assert len(told) == bool(misspelt)
        for each in told:
            argument, member = ("groups", "group") if "by" in options else ("domain", "item")
            assert each.startswith(
                f"{argument} has {misspelt} of {len(members)} {member}s that no row can have, because"
            )
            assert each.endswith(remedy)


def test_the_warning_names_the_column_of_the_list_that_mends_it(tmp_path, recwarn):
    table = pa.table({"who": ["ann"], "x": ["Käse"], "land": [" by"]})
    (tmp_path / "items.csv").write_text("Artikel\nKäse\n", encoding="utf-8")
    (tmp_path / "lands.csv").write_text("Land,x\nBY,1\n", encoding="utf-8")
    options = {"user": "who", "item": "fold(trim(x))", "by": "fold(trim(land))", "each_user": "one"}
    options |= {"domain": f"{tmp_path}/items.csv", "groups": f"{tmp_path}/lands.csv:trim(Land)"}
    discreet.events(table, **options)
    told = [str(each.message).rpartition(" as ")[2] for each in recwarn]
    assert told == [f"'{tmp_path}/lands.csv:fold(trim(Land))'", f"'{tmp_path}/items.csv:fold(trim(Artikel))'"]
    recwarn.clear()
    mended = {name: text.strip("'") for name, text in zip(("groups", "domain"), told, strict=True)}
    assert score(discreet.events(table, **{**options, **mended})) == {"by": {"käse": 1}}
    # A file of combinations, and a list beside the events in their database.
    (tmp_path / "pairs.csv").write_text("fold(land),x\nBY,Käse\n", encoding="utf-8")
    discreet.events(
        table,
        user="who",
        item="x",
        domain=["a"],
        by=["fold(land)", "x"],
        groups=tmp_path / "pairs.csv",
        each_user="one",
    )
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE events (who TEXT, x TEXT)")
        connection.execute("CREATE TABLE items (x TEXT)")
        connection.execute("INSERT INTO items VALUES ('Käse')")
    connection.close()
    discreet.events(f"sqlite://{tmp_path}/shop.db", name="events", user="who", item="fold(x)", domain="connect:items.x")
    assert [str(each.message).rpartition(", as ")[2] for each in recwarn] == ["fold(...) makes them"] * 2


def test_a_comma_inside_of_brackets_or_quotes_separates_no_columns():
    for text in ("substring(plz, 1, 2)", "concat(a, trim(b))", "concat(trim(a), ',(', b)"):
        assert parse_by(text) == text
        assert parse_by(f"{text}, land") == [text, "land"]


WHO, WHAT = st.sampled_from(["u", "U", " u", "v", "V ", "w"]), st.sampled_from(["a", "A ", "ä", "Ä", "b", None])
OTHERS = st.lists(st.tuples(WHO, WHAT), max_size=12)


@pytest.mark.some(2)
@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
def test_one_user_more_moves_a_score_by_one(engine, tmp_path, request):
    """With expressions, a user is every row whose expression is the same."""

    @settings(max_examples=examples({"arrow": 12, "sqlite": 12}.get(engine, 3)), deadline=None)
    @given(OTHERS, st.lists(WHAT, max_size=8), st.integers(0, 99))
    def check(others, own, seed):
        rows = [*others, *((random.Random(seed).choice(["new", "NEW", " New "]), what) for what in own)]
        both = []
        for each in (others, rows):
            table = pa.Table.from_pylist(
                [{"who": who, "what": what} for who, what in each],
                pa.schema([("who", pa.string()), ("what", pa.string())]),
            )
            source = discreet.events(
                **on(engine, table, tmp_path, request),
                user="lower(trim(who))", item=spell("fold(trim(what))", engine), domain=["a", "ä", "b"],
            )  # fmt: skip
            both.append(score(source))
        users = defaultdict(set)
        for who, what in others:
            if what is not None:
                users[fold_case(what.strip())].add(who.strip().lower())
        touched = {fold_case(what.strip()) for what in own if what is not None}
        for item in ("a", "ä", "b"):
            assert both[0][item] == len(users[item])
            assert both[1][item] - both[0][item] == (item in touched)

    check()
