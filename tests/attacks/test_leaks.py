"""Attacks on everything else that a program says: messages, chained errors, representations, logs, warnings, output.

The private rows hold a name and two numbers that occur nowhere else. All that comes out of a call is searched for them.
"""

import contextlib
import importlib
import io
import logging
import pickle
import random
import sqlite3
import traceback
import warnings
from dataclasses import dataclass, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.exact import nested
from discreet.mechanisms import tally
from discreet.sources.arrays.array import array_source
from discreet.sources.events import lookup
from discreet.sources.files import file_source

PACKAGE = Path(discreet.__file__).parent
SOURCES = [path for path in (PACKAGE / "sources").rglob("*.py") if path.stem != "__init__"]

NAME = "Zebulon Quixote"
NUMBER = 918273645
DIGITS = "5463728190546372"
"""So many that no random name of a table and no address in memory holds them by chance."""
MARKS = ("Zebulon", "Quixote", "918273645", "918_273_645", "918,273,645", "9.18273645", DIGITS)


def shows(text):
    return [mark for mark in MARKS if mark in text]


def chain(error):
    """An error and all that hangs on it, suppressed or not."""
    seen, waiting = [], [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return seen


def spoken(call):
    """All that a call says: its answer or its errors, what it warns of, logs at any level and prints."""
    out, log = io.StringIO(), io.StringIO()
    handler, before = logging.StreamHandler(log), logging.root.level
    loggers = [logging.root, *(each for each in logging.root.manager.loggerDict.values() if hasattr(each, "handlers"))]
    deaf = [each for each in loggers if each is logging.root or not each.propagate]
    levels = {each: each.level for each in loggers}
    for each in deaf:
        each.addHandler(handler)
    for each in loggers:
        each.setLevel(logging.DEBUG)
    said = []
    try:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            with contextlib.redirect_stderr(out):
                try:
                    answer = call()
                    said += [repr(answer), str(answer)]
                except Exception as error:
                    for each in chain(error):
                        said += [str(each), repr(each), repr(each.args), *getattr(each, "__notes__", [])]
                        said += [repr(vars(each)), *traceback.format_exception(each)]
        said += [str(each.message) for each in caught]
    finally:
        for each in deaf:
            each.removeHandler(handler)
        for each, level in levels.items():
            each.setLevel(level)
        logging.root.setLevel(before)
    return "\n".join([*said, out.getvalue(), log.getvalue()])


def failure(call):
    """What a call says, which must be an error of discreet with nothing chained to it that its author did not write."""
    with pytest.raises(discreet.Error):
        call()
    return spoken(call)


@pytest.fixture(autouse=True)
def on_the_process(capfd, monkeypatch):
    """Engines may write to the process's own streams, past Python's; this is searched as well."""
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    yield
    captured = capfd.readouterr()
    assert not shows(captured.out + captured.err)


# The naive half: what wrappers do, and that the search finds it.

ROWS = [("u1", "a", "5"), (NAME, "a", f"{NUMBER} pounds"), ("u3", "b", DIGITS)]


def naive_sums(rows, chained):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE events (who VARCHAR, what VARCHAR, amount VARCHAR)")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        try:
            return connection.execute("SELECT what, sum(CAST(amount AS INTEGER)) FROM events GROUP BY what").fetchall()
        except duckdb.Error as error:
            if chained:
                raise RuntimeError("the events could not be read") from error
            raise RuntimeError("the events could not be read") from None


@dataclass
class NaiveSource:
    scores: dict

    def release(self):
        logging.getLogger("naive").debug("selecting among %s", self.scores)
        return max(self.scores, key=self.scores.get)


def test_chained_errors_quote_a_row_and_discreets_do_not(tmp_path):
    """`raise ... from error` shows the engine's words; `from None` hides them from the traceback and keeps them."""
    for chained in (True, False):
        with pytest.raises(RuntimeError) as raised:
            naive_sums(ROWS, chained)
        assert not shows(str(raised.value))
        assert bool(shows("".join(traceback.format_exception(raised.value)))) == chained
        assert "918273645" in shows(" ".join(map(str, chain(raised.value))))
    path = tmp_path / "events.ddb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE raw (who VARCHAR, what VARCHAR, amount VARCHAR)")
        connection.executemany("INSERT INTO raw VALUES (?, ?, ?)", ROWS)
        connection.execute("CREATE VIEW events AS SELECT who, what, CAST(amount AS INTEGER) AS amount FROM raw")
    source = discreet.events(
        f"duckdb://{path}", name="events", user="who", item="what", domain=["a", "b"], value="amount", clip=(0, 9)
    )
    text = failure(lambda: discreet.top_k(source, 1, 1))
    assert "the query failed on DuckDB" in text
    assert not shows(text)
    with pytest.raises(discreet.Error) as raised:
        discreet.top_k(source, 1, 1)
    assert chain(raised.value) == [raised.value], "nothing hangs on it, suppressed or not"


def test_representations_and_logs_show_scores_and_discreets_do_not():
    scores = {"a": NUMBER, "b": int(DIGITS), "c": 5}
    naive = NaiveSource(scores)
    assert shows(repr(naive)) == ["918273645", DIGITS]
    assert shows(spoken(naive.release)) == ["918273645", DIGITS]
    assert not shows(spoken(lambda: discreet.top_k(scores, 2, 1)))
    for mechanism in (discreet.Canonical(), discreet.OneShot(), discreet.Peeling("laplace"), discreet.Joint()):
        source = array_source(scores)
        ready = mechanism.prepare(source.tally(), 2, Fraction(1), discreet.Sensitivity())
        release = discreet.top_k(source, 2, 1, mechanism=mechanism)
        parts = [getattr(ready, name, None) for name in ("classes", "boxes", "envelope", "tally", "bound", "start")]
        kept = [each for each in parts if not isinstance(each, np.ndarray)]
        for each in (source, source.tally(), source.tally().column, ready, release, release.guarantee, *kept):
            assert not shows(f"{each!r} {each!s} {each:}")
        assert not shows(release.to_json() + release._repr_html_() + repr(vars(release)))
        assert not any(mark.encode() in pickle.dumps(release) for mark in MARKS)
        assert NUMBER.to_bytes(4, "little") not in pickle.dumps(release)


# Arrays of scores.

NOT_A_NUMBER = float("nan")
BAD_SCORES = [
    [NUMBER, 1.0, NOT_A_NUMBER],
    [float(NUMBER), None],
    [NUMBER, NAME],
    [Decimal(NUMBER), Decimal("NaN")],
    [Decimal(NUMBER), Decimal(f"{DIGITS}e999999")],
    np.array([NUMBER, np.inf]),
    np.array([NAME, DIGITS]),
    np.array([[NUMBER, 1], [2, int(DIGITS)]]),
    np.array([NUMBER, NAME], object),
    np.ma.array([NUMBER, int(DIGITS)], mask=[0, 1]),
    {"a": NUMBER, "b": NAME},
    {"a": NUMBER, "b": [int(DIGITS)]},
    pd.Series([NUMBER, None], dtype="Int64"),
    pd.Series([NAME, DIGITS]),
    pd.Series([NUMBER, NAME], dtype=object),
    pd.DataFrame({"score": [NUMBER, int(DIGITS)]}),
    pl.Series([NAME, DIGITS]),
    pl.Series([[NUMBER], [int(DIGITS)]]),
    pa.array([NUMBER, None]),
    pa.array([NAME, DIGITS]),
    pa.array([{"x": NUMBER}, {"x": int(DIGITS)}]),
    {NUMBER, int(DIGITS)},
    f"{NAME} {NUMBER}",
    NUMBER,
]


def naive_floats(scores):
    values = scores.values() if isinstance(scores, dict) else scores
    return np.array([float(str(value)) for value in values])


@pytest.mark.parametrize("scores", BAD_SCORES, ids=[f"{i} {type(each).__name__}" for i, each in enumerate(BAD_SCORES)])
def test_an_error_about_scores_shows_none(scores):
    assert "Zebulon" in shows(spoken(lambda: naive_floats([NUMBER, NAME])))
    assert not shows(failure(lambda: discreet.top_k(scores, 1, 1)))


def naive_check(scores, k):
    if k > len(scores):
        raise ValueError(f"cannot take {k} of {scores}")


BAD_ARGUMENTS = [
    {"k": 7},
    {"k": "two"},
    {"epsilon": 0},
    {"epsilon": "much"},
    {"labels": ["x"]},
    {"labels": ["x", "x", "y"]},
    {"mechanism": "canonical"},
    {"sensitivity": 1},
    {"adjacency": "replace"},
    {"rng": 5},
]


@pytest.mark.parametrize("change", BAD_ARGUMENTS, ids=str)
def test_an_error_about_an_argument_shows_no_score(change):
    scores = [NUMBER, int(DIGITS), 5]
    assert shows(spoken(lambda: naive_check(scores, 7)))
    assert not shows(failure(lambda: discreet.top_k(scores, **{"k": 1, "epsilon": 1, **change})))


SCORE_FILES = {
    "text.csv": f"item,score\na,{NUMBER}\nb,{NAME}\n",
    "short.csv": f"item,score\na,{NUMBER}\nb\n",
    "quote.csv": f'item,score\na,{NUMBER}\nb,"{DIGITS}\n',
    "nan.csv": f"item,score\na,{NUMBER}\nb,nan\n",
    "text.json": f'{{"a": {NUMBER}, "b": "{NAME}"}}',
    "cut.json": f'{{"a": {NUMBER}, "b": {DIGITS}',
    "list.json": f'[{NUMBER}, [{DIGITS}], "{NAME}"]',
    "cut.npy": f"\x93NUMPY {NUMBER} {NAME}",
    "cut.parquet": f"PAR1 {NUMBER} {NAME} {DIGITS} PAR1",
}


@pytest.mark.parametrize("name", SCORE_FILES)
def test_an_error_about_a_file_of_scores_shows_none(name, tmp_path):
    path = tmp_path / name
    path.write_text(SCORE_FILES[name], encoding="utf-8")
    assert shows(spoken(lambda: float(path.read_text(encoding="utf-8")))), "Python quotes what it cannot convert"
    assert not shows(failure(lambda: discreet.top_k(file_source(path), 1, 1)))


# Tables of events.


def written(engine, folder):
    """Private events on an engine: the arguments that open them, and how to spoil them afterwards."""
    events = pa.table(
        {
            "who": ["u1", NAME, "u3"],
            "what": ["a", NAME, DIGITS],
            "amount": [5.0, float(NUMBER), float(DIGITS)],
            "note": [f"{NUMBER}", NAME, DIGITS],
        }
    )
    if engine == "csv":
        events.to_pandas().to_csv(folder / "events.csv", index=False)
        return {"table": folder / "events.csv"}, folder / "events.csv"
    if engine == "json":
        events.to_pandas().to_json(folder / "events.json", orient="records")
        return {"table": folder / "events.json"}, folder / "events.json"
    if engine == "parquet":
        pa.parquet.write_table(events, folder / "events.parquet")
        return {"table": folder / "events.parquet"}, folder / "events.parquet"
    if engine == "duckdb":
        with duckdb.connect(str(folder / "events.ddb")) as connection:
            connection.execute("CREATE TABLE events AS SELECT * FROM events")
        return {"table": f"duckdb://{folder / 'events.ddb'}", "name": "events"}, None
    with sqlite3.connect(folder / "events.db") as connection:
        connection.execute("CREATE TABLE events (who TEXT, what TEXT, amount REAL, note TEXT)")
        connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?)", [tuple(row.values()) for row in events.to_pylist()]
        )
    connection.close()
    return {"table": f"sqlite://{folder / 'events.db'}", "name": "events"}, folder / "events.db"


ENGINES = ["csv", "json", "parquet", "duckdb", "sqlite"]
OPTIONS = {"user": "who", "item": "what", "domain": ["a", "b", "c"]}

BAD_OPTIONS = [
    {"user": "whom"},
    {"item": 3},
    {"value": "price", "clip": (0, 5)},
    {"value": "amount"},
    {"value": "amount", "clip": (5, 0)},
    {"value": "amount", "clip": (0, 1), "resolution": "0.3"},
    {"where": "nope = 1"},
    {"where": "amount >"},
    {"where": "who = 'u1"},
    {"where": "amount = DATE '2024-01-01' + who"},
    {"where": "CAST(note AS INTERVAL) = 1"},
    {"where": "note = (SELECT min(note) FROM events)"},
    {"where": "error(note)"},
    {"where": "1 / amount > 0"},
    {"where": "note SIMILAR TO '('"},
    {"domain": []},
    {"domain": ["a", "a"]},
    {"domain": ["a", 1]},
    {"domain": 5},
    {"label": "title"},
    {"adjacency": "both"},
]


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_about_a_table_shows_no_row(engine, tmp_path):
    """Public faults on every engine; the same mistake in a query of one's own is answered with a row."""
    opened, _ = written(engine, tmp_path)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE events (who VARCHAR, note VARCHAR)")
        connection.execute("INSERT INTO events VALUES (?, ?)", [NAME, f"{DIGITS} pounds"])
        naive = spoken(lambda: connection.execute("SELECT who FROM events WHERE CAST(note AS INTEGER) = 1").fetchall())
    assert DIGITS in shows(naive)
    # Which keys the records of a JSON file have is private, so that a name that none has is no fault there.
    said = spoken if engine == "json" else failure
    for change in BAD_OPTIONS:
        assert not shows(said(lambda change=change: discreet.events(**opened, **{**OPTIONS, **change}).sensitivity))
    if "name" in opened:
        assert not shows(failure(lambda: discreet.events(opened["table"], name="nope", **OPTIONS)))
        assert not shows(failure(lambda: discreet.events(opened["table"], **OPTIONS)))


def naive_columns(path, column):
    """What a reader of tables says of a column that is not there."""
    columns = pd.read_csv(path).columns
    if column not in columns:
        raise KeyError(f"{column} is not one of {', '.join(columns)}")


@pytest.mark.parametrize("name", ["events.csv", "events.tsv", "events.json", "events.jsonl"])
def test_a_file_without_a_header_shows_no_row(name, tmp_path):
    """The first row is taken for names of columns, and so it is with keys of a record that are a user's own words."""
    (tmp_path / "naive.csv").write_text(f"{NAME},{NUMBER}\n{DIGITS},a\n", encoding="utf-8")
    assert "Zebulon" in shows(spoken(lambda: naive_columns(tmp_path / "naive.csv", "who")))
    delimiter = "\t" if name.endswith(".tsv") else ","
    rows = f"{NAME}{delimiter}{NUMBER}\n{DIGITS}{delimiter}a\n"
    record = f'{{"{NAME}": 1, "{NUMBER}": "{DIGITS}"}}'
    contents = {".json": f"[{record}]", ".jsonl": record}
    path = tmp_path / name
    path.write_text(contents.get(path.suffix, rows), encoding="utf-8")
    for change in ({}, {"user": NAME}, {"user": NAME, "item": str(NUMBER), "where": "amount > 5"}):
        text = spoken(lambda change=change: discreet.top_k(discreet.events(path, **{**OPTIONS, **change}), 1, 1).items)
        asked = [mark for mark in MARKS if mark in str(change)]
        assert [mark for mark in shows(text) if mark not in asked] == []
        assert ("is not in the header of the file" in text) == (path.suffix in (".csv", ".tsv"))


@pytest.mark.parametrize(
    "change", [{"user": "whom"}, {"by": "month", "groups": ["a"], "each_user": "one"}, {"where": "q = 1"}]
)
def test_a_column_of_one_of_several_files_is_not_shown(change, tmp_path):
    """One file may hold the rows of one user, and so its names of columns may be private."""
    for name, more in (("all", {}), ("one", {NAME: [1], str(NUMBER): [2]})):
        pa.parquet.write_table(pa.table({"who": [1], "what": ["a"], **more}), tmp_path / f"{name}.parquet")
    options = {"user": "who", "item": "what", "domain": ["a", "b"], **change}
    text = spoken(lambda: discreet.top_k(discreet.events(tmp_path, **options), 1, 1).items)
    assert "is not in the header of the file" in text
    assert shows(text) == []


@dataclass(frozen=True)
class NaiveCell:
    score: int
    count: int


def test_the_parts_of_a_lookup_show_no_score(monkeypatch):
    """A dataclass prints what it holds, in a debugger or where somebody logs it."""
    assert shows(repr(NaiveCell(NUMBER, int(DIGITS)))) == ["918273645", DIGITS]
    seen = []
    for kind in (lookup.Segment, lookup.FreeSegment):
        made = kind.__init__

        def kept(self, *values, made=made):
            made(self, *values)
            seen.append(self)

        monkeypatch.setattr(kind, "__init__", kept)
    monkeypatch.setattr(lookup, "FETCHED", 2)
    events = pa.table({"who": [NAME] * 300, "what": range(300), "amount": [float(NUMBER)] * 300})
    options = {"user": "who", "item": "what", "value": "amount", "clip": (0, NUMBER)}
    source = discreet.events(events, **options, domain=discreet.integers(0, 10**6))
    discreet.top_k(source, 5, 1, rng=random.Random(1))
    source.tally()
    source.items(np.array([0, 150, 299, 300, 10**6]))
    assert {type(each) for each in seen} == {lookup.Segment, lookup.FreeSegment}
    for each in [*seen, *source._lookups]:
        assert not shows(f"{each!r} {each!s}")
    source.close()


PUBLIC = {
    "Discovered",
    "Grid",
    "Integers",
    "ListNames",
    "OnePeriod",
    "PeriodColumn",
    "PlainColumn",
    "Product",
    "Strings",
    "TableName",
    "Value",
}
"""What is made of public arguments alone: domains, how groups and tables are named, and parts of a condition."""


def test_no_dataclass_of_a_source_prints_itself():
    """So that the next one does not either."""
    found = 0
    names = (".".join(each.relative_to(PACKAGE).with_suffix("").parts) for each in SOURCES)
    for module in [tally, *(importlib.import_module(f"discreet.{name}") for name in names)]:
        for name, kind in vars(module).items():
            if (
                isinstance(kind, type)
                and is_dataclass(kind)
                and kind.__module__ == module.__name__
                and name not in PUBLIC
            ):
                assert kind.__repr__ is object.__repr__, f"{name} shows what it holds"
                found += 1
    assert found >= 8


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_and_its_release_show_no_row(engine, tmp_path):
    """The objects that a caller holds, before, during and after a release that succeeds."""
    opened, _ = written(engine, tmp_path)
    assert shows(repr(pd.DataFrame({"who": [NAME]})))
    source = discreet.events(**opened, **OPTIONS, value="amount", clip=(0, 10**9))
    assert not shows(spoken(lambda: source))
    tally = source.tally()
    ready = discreet.Canonical().prepare(tally, 1, Fraction(1), source.sensitivity)
    held = [source, tally, tally.column, ready, ready.boxes, ready.envelope, ready.nested, *vars(source).values()]
    held += [ready.nested.planned, ready.nested.fit(0.6).cells, ready.nested.top, ready.nested.planned.envelope]
    for each in (each for each in held if not isinstance(each, ibis.Table)):
        assert not shows(f"{each!r} {each!s}")
    source.close()
    assert not shows(spoken(lambda: discreet.top_k(source, 1, 1)))
    assert not shows(spoken(lambda: discreet.top_k(source, 3, 1)))
    assert not shows(failure(lambda: discreet.top_k(source, 4, 1)))


# Engines that fail half way.


def cut(path):
    """The beginning of a file, as after a crash."""
    path.write_bytes(path.read_bytes()[:100])


def naive_read(path):
    """A reader that helps to find the fault by showing the bytes around it."""
    content = path.read_bytes() if path.exists() else NAME.encode()
    raise ValueError(f"cannot read {path.name} near {content!r}")


def gone(path):
    path.unlink()


def overwritten(path):
    path.write_bytes(f"{NAME} {NUMBER}".encode() * 99)


@pytest.mark.parametrize(
    ("engine", "spoil"),
    [
        *((engine, spoil) for engine in ("json", "parquet", "sqlite") for spoil in (gone, cut, overwritten)),
        ("csv", gone),
    ],
)
@pytest.mark.parametrize("when", ["before", "between"])
def test_a_file_that_fails_shows_no_row(engine, spoil, when, tmp_path):
    """Deleted, cut or overwritten, before it is opened or between opening and the query."""
    opened, path = written(engine, tmp_path)
    assert shows(spoken(lambda: naive_read(path)))
    if when == "before":
        spoil(path)
        # A file without any record is one of JSON lines like others.
        said = spoken if (engine, spoil) == ("json", overwritten) else failure
        assert not shows(said(lambda: discreet.top_k(discreet.events(**opened, **OPTIONS), 1, 1).items))
        return
    source = discreet.events(**opened, **OPTIONS)
    spoil(path)
    text = spoken(lambda: discreet.top_k(source, 1, 1))
    # SQLite reads on from a file that is only gone from its folder.
    assert ("the query failed on" in text) == ((engine, spoil) != ("sqlite", gone))
    assert not shows(text)


def test_a_table_that_changes_its_type_shows_no_row():
    """A column of numbers that is text by the time of the query: DuckDB quotes a row that does not convert."""
    backend = ibis.duckdb.connect()
    made = backend.create_table("events", pa.table({"who": ["u1"], "what": ["a"], "amount": [5.0]}))
    source = discreet.events(made, **OPTIONS, value="amount", clip=(0, 9))
    changed = pa.table({"who": ["u1", NAME], "what": ["a", "b"], "amount": ["5", f"{NUMBER} pounds"]})
    backend.create_table("events", changed, overwrite=True)
    assert "918273645" in shows(spoken(lambda: made.amount.clip(0, 9).sum().execute()))
    assert not shows(failure(lambda: discreet.top_k(source, 1, 1)))
    backend.disconnect()


def test_no_setting_of_numpy_is_kept_where_threads_share_it():
    """Before NumPy 2 a decorator remembers the settings of whoever came last, and hands them to other threads.

    A release that got those of a thread that wants errors would raise one where two scores are equal.
    """
    sources = Path(discreet.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "@np.errstate" in path.read_text(encoding="utf-8")]


def test_what_is_kept_of_a_release_is_by_public_numbers_alone():
    """The same k and d, and other scores: nothing new is kept, which a later release could be timed by."""
    caches = [found for found in vars(nested).values() if hasattr(found, "cache_info")]
    assert len(caches) >= 4
    kept = set()
    for different in range(1, 12):
        discreet.top_k([100 + i % different for i in range(20)] + [0] * 20, 20, "0.1")
        kept.add(tuple(cache.cache_info().currsize for cache in caches))
    assert len(kept) == 1
