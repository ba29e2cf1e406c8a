"""Attacks on how scores are made of rows: one user who moves them by more than is promised, or makes a query fail."""

import json
import random
import sqlite3

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet


def scores_of(source):
    """Every item with its score: what a source tells the mechanism."""
    tally = source.tally()
    items = source.items(np.arange(tally.d))
    source.close()
    return {item: tally.exact(rank) for rank, item in enumerate(items)}


# 5. Sensitivity lost by the order of a float sum.

CLIP = 1024
LARGE = [CLIP] * (2**24 // CLIP)
"""Payments that add up to 2^24, from where on a 32-bit float moves in steps of 2 upwards and of 1 downwards."""


def payments(amounts):
    who, what = range(len(amounts)), ["shop"] * len(amounts)
    return pa.table({"who": who, "what": what, "amount": pa.array(np.array(amounts, np.float32))})


def naive_sum(events):
    """The clipped sum in an array of floats, row by row, as any scatter-add has it."""
    scores = np.zeros(1, np.float32)
    clipped = np.clip(events["amount"].to_numpy(), -CLIP, CLIP)
    np.add.at(scores, np.zeros(len(clipped), int), clipped)
    return float(scores[0])


def exact_sum(events):
    source = discreet.events(
        events, user="who", item="what", domain=["shop", "park"], value="amount", clip=(-CLIP, CLIP), resolution="0.1"
    )
    assert source.sensitivity == discreet.Sensitivity(CLIP, CLIP)
    return scores_of(source)["shop"]


def test_one_user_moves_a_float_sum_by_a_hundred_times_the_clip_bound():
    """At 2^24 a refund of 0.9 rounds to 1; one payment of 2 before it, and it rounds to nothing, every time."""
    refunds = [-0.9] * 100_000
    without, with_user = payments(LARGE + refunds), payments([*LARGE, 2, *refunds])
    assert naive_sum(with_user) - naive_sum(without) == 100_002 > 97 * CLIP
    assert exact_sum(with_user) - exact_sum(without) == 2
    assert exact_sum(without) == 2**24 - 90_000


def test_the_order_of_rows_moves_a_float_sum():
    """2^24 and five thousand ones: summed from the large end the ones are lost, from the small end they count."""
    ones = [1.0] * 5000
    mixed = random.Random(1).sample(LARGE + ones, len(LARGE + ones))
    assert naive_sum(payments(ones + LARGE)) - naive_sum(payments(LARGE + ones)) == 5000 > 4 * CLIP
    assert {exact_sum(payments(amounts)) for amounts in (LARGE + ones, ones + LARGE, mixed)} == {2**24 + 5000}


# 6. Sensitivity lost by a condition that looks at other rows.

LOOKS_AROUND = [
    ("amount >= (SELECT avg(amount) FROM events)", "a subquery"),
    ("row_number() OVER (ORDER BY hour) <= 100", "a window"),
    ("amount >= avg(amount) OVER ()", "a window"),
    ("hour - min(hour) OVER () < 500", "a window"),
    ("NOT EXISTS (SELECT 1 FROM events AS other WHERE other.amount > 9 * events.amount)", "a subquery"),
    (
        "who NOT IN (SELECT who FROM events WHERE what = 'b') AND 100 <> (SELECT count(*) - 100 FROM events)",
        "a subquery",
    ),
]
"""Conditions that a filter may want, and the word by which discreet refuses them."""


def purchases(extra):
    """A hundred users who bought a, and perhaps one who came earlier, a hundred times, and paid more."""
    crowd = [{"who": f"u{i}", "what": "a", "amount": 10, "hour": 1000 + i} for i in range(100)]
    early = [{"who": "early", "what": "b", "amount": 10**6, "hour": i} for i in range(100)]
    return pa.Table.from_pylist(early + crowd if extra else crowd)


def naive_counts(events, where):
    """Distinct users per item, of the rows that a condition keeps, as DuckDB has it; QUALIFY is WHERE with windows."""
    clause = "QUALIFY" if "OVER" in where else "WHERE"
    query = f"SELECT what, count(DISTINCT who) FROM (SELECT * FROM events {clause} {where}) GROUP BY what"  # noqa: S608
    with duckdb.connect() as connection:
        connection.register("events", events)
        return dict(connection.execute(query).fetchall())


@pytest.mark.parametrize(("where", "word"), LOOKS_AROUND)
def test_a_condition_that_looks_at_other_rows_lets_one_user_move_a_hundred(where, word):
    counts = [naive_counts(purchases(extra), where).get("a", 0) for extra in (False, True)]
    assert counts == [100, 0]
    with pytest.raises(discreet.Error) as raised:
        discreet.events(purchases(True), user="who", item="what", domain=["a", "b"], where=where)
    assert f"where must not use {word}" in str(raised.value)
    assert "the sensitivity is lost" in str(raised.value)


def test_a_condition_on_single_rows_moves_every_score_by_one_at_most():
    """What such filters are for can be said with public numbers: 10 where the naive filter takes the mean."""
    assert naive_counts(purchases(True), "amount >= (SELECT avg(amount) FROM events)") == {"b": 1}
    where = "amount >= 10 AND hour < 1500 AND NOT (what = 'b' AND amount > 10000000)"
    found = [
        scores_of(discreet.events(purchases(extra), user="who", item="what", domain=["a", "b"], where=where))
        for extra in (False, True)
    ]
    assert found == [{"a": 100, "b": 0}, {"a": 100, "b": 1}]


IBIS = {
    "a limit": lambda table: table.order_by("hour").limit(100),
    "a sample": lambda table: table.sample(0.5),
    "a window": lambda table: table.mutate(place=ibis.row_number().over(order_by=table.hour)).filter(
        lambda placed: placed.place < 100
    ),
    "an aggregate": lambda table: table.filter(table.amount >= table.amount.mean()),
    "the number of a row": lambda table: table.filter(table.rowid() < 100),
    "a join or isin of a table with itself": lambda table: table.anti_join(
        early := table.filter(table.amount > 10).view(), table.hour > early.hour
    ),
}
"""The same in ibis, by the word of the refusal."""


@pytest.mark.parametrize("word", IBIS)
def test_an_ibis_table_that_looks_at_other_rows_is_refused(word):
    """The first hundred rows are the crowd's or the early user's; the naive count takes the table as it is."""
    backend = ibis.duckdb.connect()
    tables = [IBIS[word](backend.create_table(f"events{extra:d}", purchases(extra))) for extra in (False, True)]
    if word != "a sample":
        counts = [table.filter(table.what == "a").who.nunique().to_pyarrow().as_py() for table in tables]
        assert counts == [100, 0]
    for table in tables:
        with pytest.raises(discreet.Error) as raised:
            discreet.events(table, user="who", item="what", domain=["a", "b"])
        assert f"and this ibis expression holds {word}: " in str(raised.value)
        assert "keep one user's rows independent of other users' rows" in str(raised.value)
    backend.disconnect()


# 7. Rows that make a query fail.

ODD = [
    "unknown", "", " ", "1e999", "-1e999", "NaN", "inf", "9" * 400, "0x10", "1_000", "1,5", "\u0661\u0668", "\u2603",
    "2024-02-31", "infinity", "true", "'", "--", "\\", "\x00", "\x7f", "x" * 100_000,
]  # fmt: skip


def visits(*odd):
    """Five users of the shop a, and for each odd value a user of another shop with that in every other field."""
    rows = [(f"u{i}", "a", str(20 + i), f"2024-01-0{i + 1}") for i in range(5)]
    return rows + [(value, f"odd {i:02}", value, value) for i, value in enumerate(odd)]


NAMES = ("who", "what", "age", "day")
NAIVE = "SELECT what, count(DISTINCT who) FROM visits WHERE CAST(age AS INTEGER) >= 18 GROUP BY what"


@pytest.mark.some(2)
@pytest.mark.parametrize("odd", ["unknown", "", "1e999", "NaN", "2024-02-31"])
def test_a_cast_tells_that_a_row_is_there(odd):
    """In DuckDB and in pandas the query runs without one user's row and fails with it, and quotes the value."""
    calm, frame = (pd.DataFrame(rows, columns=NAMES) for rows in (visits(), visits(odd)))
    with duckdb.connect() as connection:
        connection.register("visits", pa.Table.from_pandas(calm))
        assert connection.execute(NAIVE).fetchall() == [("a", 5)]
        connection.register("visits", pa.Table.from_pandas(frame))
        with pytest.raises(duckdb.ConversionException, match=f"Could not convert string '{odd}'"):
            connection.execute(NAIVE).fetchall()
    assert (calm.age.astype(int) >= 18).sum() == 5
    with pytest.raises(ValueError, match="invalid literal for int"):
        frame.age.astype(int)
    # A cast in `where` is missing in place of an error, so the query runs on both tables and counts the same people.
    options = {"user": "who", "item": "what", "domain": ["a"], "where": "CAST(age AS BIGINT) > 17"}
    for table in (calm, frame):
        tally = discreet.events(pa.Table.from_pandas(table), **options).tally()
        assert tally.exact(0) == 5


def written(engine, rows, folder):
    """The rows on an engine; SQLite lets text into columns of numbers and dates, the others have text throughout."""
    frame = pd.DataFrame(rows, columns=NAMES)
    if engine == "csv":
        frame.to_csv(folder / "visits.csv", index=False)
        return {"table": folder / "visits.csv"}
    if engine == "parquet":
        pa.parquet.write_table(pa.Table.from_pandas(frame), folder / "visits.parquet")
        return {"table": folder / "visits.parquet"}
    if engine == "json":
        frame.to_json(folder / "visits.jsonl", orient="records", lines=True)
        return {"table": folder / "visits.jsonl"}
    (folder / "visits.db").unlink(missing_ok=True)
    with sqlite3.connect(folder / "visits.db") as connection:
        connection.execute("CREATE TABLE visits (who TEXT, what TEXT, age INTEGER, day DATE)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    connection.close()
    return {"table": f"sqlite://{folder / 'visits.db'}", "name": "visits"}


TEXTUAL = {"where": "age LIKE '2%' OR day < '2024-01-04'"}
NUMERIC = {"where": "age >= 18 AND day < DATE '2024-02-01'"}
SUMS = {"value": "age", "clip": (0, 30)}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("engine", "questions"),
    [
        ("csv", [{}, NUMERIC, SUMS]),
        ("json", [{}, NUMERIC, SUMS]),
        ("parquet", [{}, TEXTUAL]),
        ("sqlite", [{}, NUMERIC, SUMS]),
    ],
)
def test_no_value_of_a_row_makes_a_release_fail(engine, questions, tmp_path):
    """Whatever stands in a row, the release comes out, and the row moves no score by more than its bound."""
    with pytest.raises(ValueError, match="invalid literal for int"):
        pd.DataFrame(visits(*ODD), columns=NAMES).age.astype(int)
    domain = ["a", *(f"odd {i:02}" for i in range(len(ODD)))]
    for options in questions:
        opened = written(engine, visits(*ODD), tmp_path)
        source = discreet.events(**opened, user="who", item="what", domain=domain, **options)
        release = discreet.top_k(source, k=1, epsilon=100)
        scores = scores_of(source)
        assert release.items == ["a"]
        assert scores.pop("a") == (110 if options is SUMS else 5)
        assert len(scores) == len(ODD)
        assert all(0 <= score <= (30 if options is SUMS else 1) for score in scores.values())


BROKEN = {
    "half a pair": rb'{"who": "\ud800", "what": "a"}',
    "not UTF-8": b'{"who": "\xff\xfe", "what": "a"}',
    "cut": b'{"who": ',
    "40 MB": b'{"who": "' + b"x" * 40_000_000 + b'", "what": "a"}',
    "a quote": b'"',
    "brackets": b"[" * 100_000,
    "no record": b'["who", "what"]',
    "NUL": b'{"who": "\x00", "what": "a"}',
    "nothing": b"",
}
"""Records of one user that a program may write, or a crash leave behind."""


def naive_json(path):
    """DuckDB's own reader, told to ignore errors."""
    query = f"SELECT count(*) FROM read_json('{path}', ignore_errors = true) WHERE what = 'a'"  # noqa: S608
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()[0][0]


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("place", [0, 3])
def test_no_record_of_a_json_file_makes_a_release_fail(kind, place, tmp_path):
    """Nor does one change what is read of the others: in DuckDB's reader a cut record takes the next one with it."""
    lines = [json.dumps({"who": f"u{i}", "what": "a"}).encode() for i in range(5)]
    path = tmp_path / "visits.jsonl"
    path.write_bytes(b"\n".join([*lines[:place], BROKEN[kind], *lines[place:]]) + b"\n")
    if kind == "40 MB":
        with pytest.raises(duckdb.Error, match="maximum_object_size"):
            naive_json(path)
    if kind == "cut" and place:
        assert naive_json(path) == 4
    for options in ({}, {"where": "lower(who) <> 'x'"}):
        source = discreet.events(path, user="who", item="what", domain=["a", "b"], **options)
        assert discreet.top_k(source, 1, 100).items == ["a"]
        assert scores_of(source) == {"a": 5, "b": 0}


@pytest.mark.some(2)
@pytest.mark.parametrize("odd", [None, "who", "what", "note", "at"])
def test_no_bytes_of_a_row_in_a_frame_make_a_release_fail(odd):
    """Text that is not UTF-8, and a time of the year 146 million, in the row of one user, at the item b."""

    def text(column, values):
        last = b"\xff\xfe" if odd == column else values[-1]
        return pa.array([*values[:-1], last], pa.binary()).view(pa.string())

    events = pa.table(
        {
            "who": text("who", [b"u1", b"u2", b"u3"]),
            "what": text("what", [b"a", b"a", b"b"]),
            "note": text("note", [b"x", b"y", b"x"]),
            "at": pa.array([0, 1, 2**62 if odd == "at" else 2], pa.timestamp("ms")),
        }
    )
    if odd not in (None, "at"):
        query = f'SELECT count(DISTINCT upper("{odd}")) FROM events'  # noqa: S608
        with duckdb.connect() as connection, pytest.raises(duckdb.Error, match=r"UTF8|UTF-8|unicode"):
            connection.execute(query).fetchall()
    options = {"user": "who", "item": "what", "domain": ["a", "b"]}
    plain = discreet.events(events, **options)
    assert discreet.top_k(plain, 1, 100).items == ["a"]
    assert scores_of(plain) == {"a": 2, "b": odd not in ("who", "what")}
    where = "upper(who) <> 'Z' AND trim(note) IN ('x', 'y') AND at < TIMESTAMP '2024-01-01 00:00:00'"
    assert scores_of(discreet.events(events, **options, where=where)) == {"a": 2, "b": odd is None}
    by_time = discreet.events(events, **{**options, "user": "at"})
    assert scores_of(by_time)["a"] == 2
