"""One user's odd cells, in whatever column, change nothing but that user's own part: no type, no path, no error."""

import csv
import enum
import json
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import discreet
from discreet.mechanisms.tally import Selection
from effort import examples
from engines import LONG_ON_SERVERS, on
from snapshots import find_items, select_items

N = 5


def scores(table, domain=(1, 2), **question):
    """The scores of all items, in each group where there are some; or the message in place of them."""
    arguments = table if isinstance(table, dict) else {"table": table}
    try:
        source = discreet.events(**arguments, user="who", item="what", domain=list(domain), **question)
        if "by" in question:
            every = select_items(source, lambda _, tally: Selection(np.arange(tally.d)), scored=True)
            return {(place, item): score for place, (items, found) in enumerate(every)
                    for item, score in zip(items, found, strict=True)}  # fmt: skip
        tally, items = source.tally(), source.items(np.arange(source.d))
        source.close()
    except discreet.Error as error:
        return str(error)
    return {item: tally.exact(rank) for rank, item in enumerate(items)}


def assert_neighbours(old, new):
    if isinstance(old, str):
        assert old == new
        assert "the query failed" not in old
        return
    assert isinstance(new, dict), new
    assert old.keys() == new.keys()
    assert all(abs(new[item] - old[item]) <= 1 for item in old), (old, new)


class Raising:
    """An object of which nothing can be asked."""

    def __raise(self, *_):
        raise RuntimeError("private")

    __eq__ = __hash__ = __str__ = __repr__ = __float__ = __int__ = __bool__ = __lt__ = __len__ = __raise


class RaisingText(str):
    def encode(self, *_):
        raise RuntimeError("private")

    __str__ = __eq__ = encode
    __hash__ = str.__hash__


class Word(enum.StrEnum):
    A = "a"


ZONED = pd.Timestamp("2024-01-31 12:00:00.123456789", tz="Europe/Berlin")
HASHABLE = [
    None, pd.NA, pd.NaT, float("nan"), True, np.bool_(False), 1, 2, -7, 2**53, 2**53 + 1, 2**63, 2**64, 10**30, 10**400,
    10**5000, -(10**5000), np.int8(1), np.uint64(2**64 - 1), 1.0, 1.5, -0.0, 1e300, float("inf"), np.float16(1.5),
    np.float32(0.1), np.longdouble("1.5"), np.longdouble(1) / 3, Decimal("1.0"), Decimal("7.50"), Decimal("sNaN"),
    Decimal("Infinity"), Decimal("1e999999"), Decimal("1e-999999"), Fraction(1, 3), 1 + 0j, 1j, complex("nan"),
    np.complex64(2), date(2024, 1, 31), date.min, date.max, time(12), datetime(2024, 1, 31), datetime.min, datetime.max,
    datetime(2024, 1, 31, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), timedelta(1), timedelta.max, ZONED,
    pd.Timestamp("1700-01-01"), pd.Timestamp("2024-01-31"), pd.Timedelta(1), pd.Period("2024-01"), pd.Interval(0, 1.5),
    *(np.datetime64(7, unit) for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")),
    *(np.timedelta64(7, unit) for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")),
    np.datetime64("NaT"), np.timedelta64("NaT"), np.timedelta64(7), np.datetime64(2**62, "D"),
    np.datetime64(2**62, "Y"), b"a", b"\xff", np.bytes_(b"b"), "", "1", "x", "\ud800", "a\0b", np.str_("n"),
    RaisingText("t"), Word.A, UUID(int=7), (1, 2), frozenset({1}), object, Raising,
]  # fmt: skip
UNHASHABLE = [[1], {"a": 1}, np.array([1, 2]), bytearray(b"a"), {1}, Raising(), pd.Series([1])]
ODD = HASHABLE + UNHASHABLE


@pytest.mark.parametrize("exact", [True, False])
def test_every_object_is_a_cell_or_missing(exact):
    from discreet.sources.events.frames import convert_object

    for value in ODD:
        fields = convert_object(value, exact)
        assert set(fields) <= {"text", "integer", "number", "truth", "day", "clock", "point", "other"}
        assert len(set(fields) - {"other"}) <= 1
    same = [1, 1.0, np.float16(1), np.int8(1), Decimal("1.00"), 1 + 0j, np.complex64(1), np.longdouble(1)]
    assert [convert_object(value, exact) for value in same] == [{"integer": 1}] * len(same)
    assert convert_object(Decimal("7.50"), exact) == convert_object(Decimal("7.5"), exact)
    assert convert_object(timedelta(1), exact) == convert_object(np.timedelta64(24, "h"), exact)
    assert convert_object(pd.Interval(0, 1), exact) == convert_object(pd.Interval(0.0, 1.0), exact)
    assert convert_object("a", exact) == convert_object(Word.A, exact) == convert_object(b"a", exact) == {"text": "a"}


BASES = {
    "integers": [1, 1, 1, 2, 2],
    "floats": [1.0, 1.5, 1.0, 2.0, 7.25],
    "text": ["1", "x", "1", "2024-01-31", "2"],
    "booleans": [True, False, True, True, False],
    "dates": [date(2024, 1, 31)] * N,
    "moments": [datetime(2024, 1, 31, 12 + i) for i in range(N)],
    "nanoseconds": [pd.Timestamp("1960-01-31 12:00:00.123456789")] * N,
    "zones": [ZONED] * N,
    "spans": [timedelta(i) for i in range(N)],
    "large": [2**60 + i for i in range(N)],
}
QUESTIONS = [
    {},
    {"max_items_per_user": 1},
    {"value": "amount", "clip": (0, 1)},
    {"by": "grp", "groups": [1, 2], "each_user": "one"},
    {"by": "grp", "groups": ["1", "x"], "each_user": "many", "max_groups_per_user": 1},
    {"by": discreet.month("grp"), "groups": ["2024-01"], "each_user": "one"},
    {"where": "flag = 1"},
    {"where": "flag <> '7' AND flag IS NOT NULL"},
    {"where": "flag > TIMESTAMP '2000-01-01 00:00:00' OR flag = true"},
    {"where": "flag >= TIMESTAMPTZ '2000-01-01 00:00:00+00:00' OR flag + 0 > 1"},
]
COLUMNS = ["what", "grp", "amount", "flag", "unused"]
USERS = [100, 101, 102, 103, 104]


def pandas_frame(columns, dtype):
    """The frame that pandas makes of cells, in a type of its own choice or in one that holds anything."""
    found = {}
    for name, cells in columns.items():
        holder = np.empty(len(cells), object)
        holder[:] = [*cells]
        try:
            series = pd.Series(cells) if dtype == "inferred" else pd.Series(holder, dtype=object)
            found[name] = series.astype("category") if dtype == "category" else series
        except Exception:  # what pandas itself refuses is no frame
            assume(False)
    return pd.DataFrame(found)


@pytest.mark.some(2)
@pytest.mark.parametrize("dtype", ["inferred", "object", "category"])
@settings(max_examples=examples(12))
@given(data=st.data())
def test_no_cell_of_pandas_decides_anything_for_others(dtype, data):
    known = HASHABLE if dtype == "category" else ODD
    # By their places: some cannot even be compared.
    cells = st.integers(0, len(known) - 1).map(known.__getitem__)
    question = data.draw(st.sampled_from(QUESTIONS))
    base = {"who": USERS} | {name: BASES[data.draw(st.sampled_from(list(BASES)))] for name in COLUMNS}
    rows = data.draw(st.integers(1, 2))
    extra = {"who": [data.draw(cells)] * rows} | {name: [data.draw(cells) for _ in range(rows)] for name in COLUMNS}
    for name in COLUMNS:
        if data.draw(st.booleans()):
            extra[name] = base[name][:rows]
    odd = {name: [*base[name], *extra[name]] for name in base}
    old, new = (scores(pandas_frame(columns, dtype), **question) for columns in (base, odd))
    assert_neighbours(old, new)


def arrow_cells(cells):
    """The cells in the type that Arrow infers, or as text where it infers none."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, RuntimeError):
        return pa.array([None if cell is None else f"odd {place}" for place, cell in enumerate(cells)])


ARRAYS = [
    pa.array([2**63 - 1, -(2**63) + 1], pa.timestamp("us")), pa.array([2**63 - 1, 1001], pa.timestamp("ns")),
    pa.array([2**40, 0], pa.timestamp("s", "UTC")), pa.array([2**31 - 1, -(2**31)], pa.date32()),
    pa.array([1.5, 2.0**60]), pa.array([2**64 - 1, 0], pa.uint64()), pa.array([Decimal("7.50"), Decimal(1)]),
    pa.array([Decimal(10**37), None]), pa.array([b"\xff", b"1"]), pa.array([[1], None]), pa.nulls(2),
    pa.array([{"text": "1", "integer": 1}] * 2), pa.array([True, None]), pa.array(["1", "x"]), pa.array([7, 8]),
    pa.array([1, 2], pa.float16()), pa.array([1, 2], pa.duration("ns")), pa.array([time(1), time(2)]),
    pa.array(["a", "b"]).dictionary_encode(), pa.array([float("nan"), float("inf")]),
]  # fmt: skip


@settings(max_examples=examples(12))
@given(data=st.data())
def test_no_file_of_one_user_decides_anything_for_others(data):
    question = data.draw(st.sampled_from(QUESTIONS))
    base = {"who": USERS} | {name: BASES[data.draw(st.sampled_from(list(BASES)))] for name in COLUMNS}
    extra = {name: data.draw(st.sampled_from(ARRAYS)) for name in COLUMNS if data.draw(st.booleans())}
    who = data.draw(st.sampled_from(ARRAYS)).slice(0, 1)
    extra["who"] = pa.chunked_array([who, who], who.type)
    with tempfile.TemporaryDirectory() as folder:
        pa.parquet.write_table(
            pa.table({name: arrow_cells(each) for name, each in base.items()}), f"{folder}/m.parquet"
        )
        old = scores(f"{folder}/*.parquet", **question)
        name = data.draw(st.sampled_from(["a", "z"]))
        pa.parquet.write_table(pa.table(extra), f"{folder}/{name}.parquet")
        assert_neighbours(old, scores(f"{folder}/*.parquet", **question))


def broken_text(texts):
    """Texts, of which those that are None are no UTF-8."""
    data = pa.array([b"\xff" if text is None else text.encode() for text in texts])
    return pa.StringArray.from_buffers(len(texts), *data.buffers()[1:])


@settings(max_examples=examples(12))
@given(data=st.data())
def test_no_value_of_arrow_or_polars_decides_anything_for_others(data):
    """Types are declared here, so that they are those of all rows; broken text and extreme moments are values."""
    question = data.draw(st.sampled_from(QUESTIONS))
    odd = {
        "text": lambda: broken_text([*BASES["text"], None]),
        "seconds": lambda: pa.array([*range(N), 2**62], pa.timestamp("s", "UTC")),
        "microseconds": lambda: pa.array([*range(N), 2**63 - 1], pa.timestamp("us")),
        "spans": lambda: pa.array([*range(N), 2**62], pa.duration("ms")),
        "floats": lambda: pa.array([*BASES["floats"], float("nan")]),
        "lists": lambda: pa.ListArray.from_arrays([*range(N + 2)], broken_text(["a"] * N + [None])),
    }  # fmt: skip
    columns = {"who": pa.array([*USERS, 2**62])}
    if data.draw(st.booleans()):
        columns["who"] = broken_text([*map(str, USERS), None])
    for name in COLUMNS:
        columns[name] = odd[data.draw(st.sampled_from(list(odd)))]()
    new = pa.table(list(columns.values()), names=list(columns))
    assert_neighbours(scores(new.slice(0, N), **question), scores(new, **question))


PLAIN = [
    None, 0, 1, 2, -7, 2**53 + 1, 2**63 - 1, 1.0, 1.5, 1e300, -0.0, "", "1", "x", "ü", "a\0b",
    '"', "x,;\n", "2024-01-31",
    "2024-01-31 12:00:00", "true", "nan", "1e400", "0x1F", "1_000", "9" * 400,
]  # fmt: skip
"""Cells that text files and databases without types can hold."""


def keep_plain(store, columns, folder):
    """A table of plain cells on a store without declared types of numbers."""
    rows = list(zip(*columns.values(), strict=True))
    texts = [[None if cell is None else str(cell) for cell in row] for row in rows]
    match store:
        case "csv":
            with open(f"{folder}/e.csv", "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([list(columns), *texts])
            return f"{folder}/e.csv"
        case "jsonl" | "json":
            lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
            text = "\n".join(lines) if store == "jsonl" else f"[{','.join(lines)}]"
            Path(f"{folder}/e.{store}").write_text(text, encoding="utf-8")
            return f"{folder}/e.{store}"
        case "sqlite":
            with closing(sqlite3.connect(f"{folder}/e.db")) as connection, connection:
                connection.execute(f"CREATE TABLE e ({', '.join(columns)})")
                connection.executemany(f"INSERT INTO e VALUES ({', '.join('?' * len(columns))})", rows)  # noqa: S608
            return {"table": f"sqlite://{folder}/e.db", "name": "e"}
        case "polars":
            return pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String), orient="row")
        case "duckdb":
            connection = ibis.duckdb.connect()
            schema = pa.schema([(name, pa.string()) for name in columns])
            return connection.create_table("e", pa.table([*map(list, zip(*texts, strict=True))], schema=schema))


@pytest.mark.some(2)
@pytest.mark.parametrize("store", ["csv", "jsonl", "json", "sqlite", "polars", "duckdb"])
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_no_plain_cell_decides_anything_for_others(store, data):
    cells = st.sampled_from(PLAIN)
    question = data.draw(st.sampled_from(QUESTIONS))
    base = {"who": USERS} | {name: data.draw(st.lists(cells, min_size=N, max_size=N)) for name in COLUMNS}
    rows = data.draw(st.integers(1, 3))
    extra = {"who": [data.draw(cells)] * rows} | {name: [data.draw(cells) for _ in range(rows)] for name in COLUMNS}
    is_first = data.draw(st.booleans())
    odd = {name: [*extra[name], *base[name]] if is_first else [*base[name], *extra[name]] for name in base}
    found = []
    for columns in (base, odd):
        with tempfile.TemporaryDirectory() as folder:
            found.append(scores(keep_plain(store, columns, folder), **question))
    assert_neighbours(*found)


UNUSED = [
    pa.array([1, 2], pa.float16()), pa.array([Decimal(1), Decimal(2)], pa.decimal256(76, 0)), pa.array([[1], [2]]),
    pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()), pa.RunEndEncodedArray.from_arrays([2], ["a"]),
    pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]), pa.array([1, 2], pa.time64("ns")),
    pa.array([2**62] * 2, pa.timestamp("s", "UTC")), pa.array([[1], [2]], pa.list_view(pa.int64())), pa.nulls(2),
]  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("unused", UNUSED, ids=lambda array: str(array.type))
def test_a_column_that_nobody_asked_for_is_never_looked_at(unused):
    """Neither its name nor its type matters, with broken text in another column or without."""
    for items, name in ((pa.array(["1", "2"]), "x"), (broken_text(["1", None]), "x"), (broken_text(["1", None]), "")):
        table = pa.table([pa.array([1, 2]), items, unused, unused], names=["who", "what", name, "WHO"])
        assert scores(table, ["1"]) == {"1": 1}


def test_columns_of_one_name_are_refused_where_they_are_asked_for():
    rows = [[1, 2], [1, 2], [1, 1]]
    for table in (
        pa.table(rows, names=["who", "who", "what"]),
        pd.DataFrame(zip(*rows, strict=True), columns=["who", "who", "what"]),
    ):
        assert scores(table) == "table must have one column called 'who', not 2"
    twice = pd.DataFrame([[1, 1, b"\xff", 2j]], columns=["who", "what", "x", "x"])
    assert scores(twice) == scores(pa.table(rows, names=["what", "x", "who"]).append_column("x", [[1, 2]]), [1]) | {
        2: 0
    }
    levels = pd.DataFrame([[1, 1, 1j]], columns=pd.MultiIndex.from_tuples([("a", "who"), ("a", "what"), ("b", 3)]))
    source = discreet.events(levels, user="('a', 'who')", item="('a', 'what')", domain=[1])
    assert source.tally().exact(0) == 1
    numbers = pd.DataFrame({0: [1, 2], 1: [1, 1], "2": [1j, "x"], 2: [1, 2]})
    assert discreet.events(numbers, user="0", item="1", domain=[1]).tally().exact(0) == 2


def test_polars_reads_wanted_columns_alone():
    frame = pl.DataFrame({"who": [1, 2], "what": [1, 1], "": [object(), object()], "^w.*$": [1, 2]})
    for table in (frame, frame.drop("").lazy()):
        assert scores(table) == {1: 2, 2: 0}


FLOATS = [
    7.0,
    8.0,
    2.0**53 - 1,
    2.0**53,
    2.0**53 + 2,
    1e300,
    0.5,
    -0.0,
    0.0,
    float("inf"),
    float("-inf"),
    float("nan"),
    None,
]
FLOAT_USERS = 4
"""7, 8, 2^53 - 1, and one for both zeros."""


def float_store(name, folder, request):
    table = pa.table({"who": pa.array(FLOATS, pa.float64()), "what": [1] * len(FLOATS), "n": [1] * len(FLOATS)})
    match name:
        case "arrow":
            return table
        case "polars":
            return pl.from_arrow(table)
        case "float64" | "object" | "category" | "Float64":
            frame = table.to_pandas()
            return frame.assign(who=frame["who"].astype(name))
        case "parquet":
            pa.parquet.write_table(table, folder / "e.parquet")
            return folder / "e.parquet"
        case "folder":
            pa.parquet.write_table(table, folder / "e.parquet")
            return str(folder / "*.parquet")
        case "jsonl" | "json":
            cells = ["null" if cell is None or cell - cell != 0 else repr(cell) for cell in FLOATS]
            lines = [f'{{"who": {cell}, "what": 1, "n": 1}}' for cell in cells]
            text = "\n".join(lines) if name == "jsonl" else f"[{','.join(lines)}]"
            (folder / f"e.{name}").write_text(text, encoding="utf-8")
            return folder / f"e.{name}"
        case "duckdb":
            with duckdb.connect(str(folder / "e.ddb")) as connection:
                connection.register("rows", table)
                connection.execute("CREATE TABLE ev AS SELECT * FROM rows")
            return {"table": f"duckdb://{folder / 'e.ddb'}", "name": "ev"}
        case "sqlite" | "sqlite real" | "sqlite integer":
            import sqlite3

            with sqlite3.connect(folder / "e.db") as connection:
                connection.execute(f"CREATE TABLE ev (who {name.partition(' ')[2]}, what INTEGER, n INTEGER)")
                connection.executemany("INSERT INTO ev VALUES (?, 1, 1)", [(cell,) for cell in FLOATS])
            connection.close()
            return {"table": f"sqlite://{folder / 'e.db'}", "name": "ev"}
        case "postgres":
            url = request.getfixturevalue("postgres")
            connection = ibis.connect(url)
            connection.create_table("floats", table, overwrite=True)
            connection.disconnect()
            return {"table": url, "name": "floats"}
        case "mariadb":
            return on(name, table, folder, request)
        case "spark":
            session = request.getfixturevalue("spark")
            rows = [tuple(row.values()) for row in table.to_pylist()]
            return session.createDataFrame(rows, "who double, what bigint, n bigint")


STORES = ["arrow", "polars", "float64", "object", "category", "Float64", "parquet", "folder", "jsonl", "json", "duckdb",
          "sqlite", "sqlite real", *LONG_ON_SERVERS]  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("store", STORES)
def test_a_float_is_a_user_where_no_two_whole_numbers_share_it(store, tmp_path, request):
    table = float_store(store, tmp_path, request)
    questions = [{}, {"value": "n", "clip": (-1, 1)}, {"max_items_per_user": 1}]
    for question in questions if store != "spark" else questions[:1]:
        assert scores(table, **question) == {1: FLOAT_USERS, 2: 0}


def test_a_complex_number_takes_nobody_away():
    whos, odd = list(range(50)), {"who": [99], "what": [1j]}
    old = scores(pd.DataFrame({"who": whos, "what": 1}))
    assert old == scores(pd.DataFrame({"who": whos + odd["who"], "what": [1] * 50 + odd["what"]})) == {1: 50, 2: 0}


def test_users_of_nanoseconds_are_told_apart_whatever_other_files_hold(tmp_path):
    ticks = pa.array([1_706_695_200_000_000_001 + i for i in range(N)], pa.timestamp("ns"))
    pa.parquet.write_table(pa.table({"who": ticks, "what": [1] * N}), tmp_path / "m.parquet")
    assert scores(str(tmp_path / "*.parquet")) == {1: N, 2: 0}
    pa.parquet.write_table(pa.table({"who": ["zed"], "what": [1]}), tmp_path / "z.parquet")
    assert scores(str(tmp_path / "*.parquet")) == {1: N + 1, 2: 0}
    frame = pd.DataFrame({"who": ticks.to_pandas(), "what": 1})
    assert scores(frame) == scores(frame.astype({"who": object})) == {1: N, 2: 0}
    assert scores(frame.assign(who=frame["who"].dt.tz_localize("UTC"))) == {1: N, 2: 0}


@pytest.mark.some(2)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_users_at_the_ends_of_time_are_found_with_others(unit, zone, tmp_path):
    ticks = pa.array([0, 2**63 - 1, 2**63 - 2, -(2**63) + 1, -(2**63) + 2], pa.timestamp(unit, zone))
    table = pa.table({"who": ticks, "what": ["a"] * 5})
    pa.parquet.write_table(
        pa.table({"who": ticks.cast(pa.timestamp("us", zone), safe=False), "what": ["a"] * 5}), tmp_path / "m.parquet"
    )
    for store in (table, table.to_pandas(), str(tmp_path / "*.parquet"), tmp_path / "m.parquet"):
        source = discreet.events(store, user="who", item="what", domain=discreet.discovered("1e-6", 1))
        (found,) = find_items(source, "key", lambda users, items: np.arange(len(items)))
        assert found.items == ["a"]


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # ibis asks pandas for it
@pytest.mark.parametrize("wrap", [ibis.memtable, lambda frame: duckdb.connect().from_df(frame)], ids=["ibis", "duckdb"])
def test_a_pandas_frame_inside_of_another_table_is_refused(wrap):
    """Its types follow from rows there too: one missing item took a score from 50 to 0."""
    whole = pd.DataFrame({"who": range(3), "what": [2**60 + 1] * 3})
    gap = pd.DataFrame({"who": range(4), "what": [*[2**60 + 1] * 3, None]})
    one, other = (scores(wrap(frame), domain=[2**60 + 1]) for frame in (whole, gap))
    assert one == other
    assert "whose types follow from rows" in one
    declared = pa.table({"who": [1, 2], "what": [1, 1]})
    assert scores(ibis.memtable(declared)) == {1: 2, 2: 0}


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas", "folder"])
def test_users_of_zoned_nanoseconds_are_not_merged(kind, tmp_path):
    """Two of them that share a microsecond are two users, or, in a folder, whose types are somebody's, none."""
    who = pa.array([0, 1], pa.int64()).view(pa.timestamp("ns", "UTC"))
    table = pa.table({"who": who, "what": [1, 1], "amount": [-5, 10]})
    if kind == "folder":
        pa.parquet.write_table(table, tmp_path / "a.parquet")
        pa.parquet.write_table(pa.table({"who": ["x"], "what": [1], "amount": [1]}), tmp_path / "b.parquet")
    given = {"polars": pl.from_arrow, "pandas": lambda each: each.to_pandas()}.get(kind, lambda each: each)(table)
    found = scores(tmp_path if kind == "folder" else given, value="amount", clip=(-5, 5))
    assert found == {1: 1 if kind == "folder" else 0, 2: 0}


def test_a_parquet_file_with_users_of_zoned_nanoseconds_is_refused(tmp_path):
    who = pa.array([0, 1], pa.int64()).view(pa.timestamp("ns", "UTC"))
    pa.parquet.write_table(pa.table({"who": who, "what": [1, 1]}), tmp_path / "a.parquet")
    assert "user must not be a column of nanoseconds with a time zone" in scores(tmp_path / "a.parquet")


def test_a_nested_type_of_one_file_stops_no_other(tmp_path):
    pa.parquet.write_table(pa.table({"who": ["x", "y"], "what": [1, 1]}), tmp_path / "a.parquet")
    before = scores(tmp_path)
    odd = f"COPY (SELECT union_value(k := 1) AS who, 1 AS what) TO '{tmp_path / 'b.parquet'}' (FORMAT parquet)"
    duckdb.connect().execute(odd)
    assert_neighbours(before, scores(tmp_path))
