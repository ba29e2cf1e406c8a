"""One more user, with whatever rows, moves no score by more than the sensitivity, changes no label, raises nothing.

What an engine infers from rows must decide nothing: each store here is written with the rows of some users, and again
with arbitrary rows of one more, before or after the others.
"""

import json
import sqlite3
import tempfile
import warnings
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import discreet
from discreet.mechanisms.tally import Selection
from effort import examples
from engines import CONNECT, EACH_DIALECT, LONG_ON_SERVERS, MARIADB, ON_CLICKHOUSE, SPARK, fill_clickhouse, on
from lookalikes import ALIKE, AMOUNTS, ASKED, SCHEMA, check_move, count_by_look, make_others
from snapshots import scores_of, select_items

BASE = [
    {"who": who, "what": what, "stars": stars, "amount": amount, "day": day}
    for who, what, stars, amount, day in [
        (1, 1, 5, 1.5, "2024-01-31"), (1, 2, 4, 2.0, "2024-02-29"), (2, 1, 5, 0.5, "2024-01-31"),
        (3, 3, 5, 3.0, "2024-12-31"), (4, 1, 3, 1.0, "2024-01-31"), (4, 3, 5, 2.5, "2024-02-29"),
    ]
]  # fmt: skip
ODD = [
    None, 0, 1, 2, 3, -1, 7, 2**53, 2**53 + 1, 2**62, 1.0, 2.5, -0.0, 1e300, float("inf"), float("nan"), "", "n-a", "1",
    "01", " 1 ", "1.0", "1.", "1.5", "0x1", "1_0", "1e0", "+1", "9" * 30, "true", "True", "none", "NaN", "inf",
    "2024-01-31", "2024-02-30", "31/01/2024", "2024-01-31 10:00:00", True, False, date(2024, 1, 31), "Straße",
    datetime(2024, 1, 31, 12), Decimal("1.0"),
]  # fmt: skip
CELLS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4)
ROWS = st.lists(st.fixed_dictionaries({}, optional={name: CELLS for name in BASE[0] if name != "who"}), max_size=4)
USER = st.sampled_from([9, "9", "zed", 9.0, 2**60])

DOMAINS = {
    "strings": ["1", "01", "2", "3", "n-a", "none"],
    "whole numbers": [1, 2, 3, 7],
    "range": discreet.integers(0, 9),
    "all strings": discreet.strings("0123n-a", 3),
    "dates": [date(2024, 1, 31), date(2024, 2, 29)],
    "booleans": [True, False],
}
QUESTIONS = [
    {},
    {"where": "stars = 5"},
    {"where": "stars >= 4 AND NOT (day = DATE '2024-02-29')"},
    {"where": "stars + 1 > 4 OR day LIKE '2024-01%' OR stars IS NULL"},
    {"value": "amount", "clip": (-2, 2), "resolution": "0.5"},
    {"max_items_per_user": 1},
    {"user": "lower(trim(who))", "item": "fold(trim(what))"},
    {"item": "coalesce(substring(what, 1, 1), concat('n', day))", "max_items_per_user": 1},
    {"item": "cast(what AS BIGINT) + 1", "value": "cast(stars AS BIGINT) * 0.5", "clip": (-2, 2), "resolution": "0.5"},
    {"item": "CASE WHEN day < '2024-02' THEN what ELSE replace(what, '1', '2') END", "where": "fold(what) <> 'x'"},
    {"item": "extract(month FROM day)", "value": "amount", "clip": (-1, 1), "resolution": "0.5"},
]


def on_pandas(rows, folder, first, extra):
    return {"table": pd.DataFrame([*extra, *rows] if first else [*rows, *extra])}


def on_pandas_categories(rows, folder, first, extra):
    frame = on_pandas(rows, folder, first, extra)["table"]
    return {"table": frame.assign(what=frame["what"].map(_hashable).astype("category"))}


def _hashable(cell):
    return None if pd.isna(cell) else cell


def on_csv(rows, folder, first, extra):
    lines = [",".join(BASE[0]), *map(_csv_line, [*extra, *rows] if first else [*rows, *extra])]
    (folder / "e.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"table": folder / "e.csv"}


def on_several_csv(rows, folder, first, extra):
    """The user's file has columns of its own, in an order of its own."""
    lines = [",".join(BASE[0]), *map(_csv_line, rows)]
    (folder / "m.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if extra:
        names = list(dict.fromkeys(name for row in extra for name in reversed(row)))
        lines = [
            ",".join([*names, "more"]),
            *(",".join(_text(row.get(name)) for name in names) + ",x" for row in extra),
        ]
        (folder / ("a.csv" if first else "z.csv")).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"table": str(folder / "*.csv")}


def _csv_line(row):
    return ",".join(_text(row.get(name)) for name in BASE[0])


def _text(cell):
    return "" if cell is None else '"' + str(cell).replace('"', '""') + '"'


def on_json_lines(rows, folder, first, extra):
    lines = [json.dumps(row, default=str) for row in ([*extra, *rows] if first else [*rows, *extra])]
    (folder / "e.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"table": folder / "e.jsonl"}


def on_json_array(rows, folder, first, extra):
    kept = [*extra, *rows] if first else [*rows, *extra]
    content = json.dumps(kept, default=str).replace("NaN", "null").replace("Infinity", "null")
    (folder / "e.json").write_text(content, encoding="utf-8")
    return {"table": folder / "e.json"}


def on_several_parquet(rows, folder, first, extra):
    pa.parquet.write_table(pa.Table.from_pylist(rows), folder / "m.parquet")
    if extra:
        pa.parquet.write_table(_arrow(extra), folder / ("a.parquet" if first else "z.parquet"))
    return {"table": str(folder / "*.parquet")}


def on_lookalike_csv(rows, folder, first, extra):
    """The user's file has columns that are called like the expressions of others."""
    return on_several_csv(rows, folder, first, [{**row, **_lookalikes(row)} for row in extra])


def on_lookalike_parquet(rows, folder, first, extra):
    return on_several_parquet(rows, folder, first, [{**row, **_lookalikes(row)} for row in extra])


def _lookalikes(row):
    return {
        text: row.get("what")
        for question in QUESTIONS
        for name in ("user", "item", "value")
        if "(" in (text := question.get(name, ""))
    }


def on_hive(rows, folder, first, extra):
    for i, row in enumerate([*extra, *rows] if first else [*rows, *extra]):
        part = "__HIVE_DEFAULT_PARTITION__" if row.get("what") is None else str(row["what"]).replace("/", "")
        inside = folder / f"what={part or '__HIVE_DEFAULT_PARTITION__'}"
        inside.mkdir(exist_ok=True)
        others = {name: cell for name, cell in row.items() if name != "what"}
        pa.parquet.write_table(_arrow([others]), inside / f"{i}.parquet")
    return {"table": str(folder / "what=*" / "*.parquet")}


def _arrow(rows):
    """A table whose types follow from these rows alone; text where they are mixed."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError, ValueError):
            columns[name] = pa.array([None if cell is None else str(cell) for cell in cells])
    return pa.table(columns)


def on_sqlite(rows, folder, first, extra, declaration="who, what, stars, amount, day", name="raw"):
    with sqlite3.connect(folder / "e.db") as connection:
        connection.execute(f"CREATE TABLE raw ({declaration})")
        connection.execute(
            "CREATE VIEW ev AS SELECT who, coalesce(what, 'none') AS what, stars, amount, trim(day) AS day FROM raw"
        )
        kept = [
            [_sqlite_cell(row.get(each)) for each in BASE[0]] for row in ([*extra, *rows] if first else [*rows, *extra])
        ]
        connection.executemany("INSERT INTO raw VALUES (?, ?, ?, ?, ?)", kept)
    connection.close()
    return {"table": f"sqlite://{folder / 'e.db'}", "name": name}


def _sqlite_cell(cell):
    if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
        return str(cell)
    return cell if cell is None or isinstance(cell, int | float | str) else str(cell)


def on_sqlite_view(rows, folder, first, extra):
    return on_sqlite(rows, folder, first, extra, name="ev")


def on_sqlite_declared(rows, folder, first, extra):
    return on_sqlite(rows, folder, first, extra, "who TEXT, what INTEGER, stars INTEGER, amount REAL, day TEXT")


def on_sqlite_ibis(rows, folder, first, extra):
    """The table of an ibis connection, which has guessed types of its own."""
    on_sqlite(rows, folder, first, extra)
    return {"table": ibis.sqlite.connect(folder / "e.db").table("raw")}


def on_duckdb_text(rows, folder, first, extra):
    with duckdb.connect(str(folder / "e.ddb")) as connection:
        connection.execute("CREATE TABLE ev (who VARCHAR, what VARCHAR, stars DOUBLE, amount DOUBLE, day VARCHAR)")
        connection.executemany("INSERT INTO ev VALUES (?, ?, ?, ?, ?)", _typed_rows(rows, first, extra))
    return {"table": f"duckdb://{folder / 'e.ddb'}", "name": "ev"}


def _typed_rows(rows, first, extra):
    """Rows of two columns of numbers, and of text."""
    kept = [*extra, *rows] if first else [*rows, *extra]
    return [[_number(row.get(name)) if name in ("stars", "amount") else _string(row.get(name)) for name in BASE[0]]
            for row in kept]  # fmt: skip


def _number(cell):
    return float(cell) if isinstance(cell, int | float) else None


def _string(cell):
    return None if cell is None else str(cell).replace("\x00", "")


def on_postgres(url):
    """A table of text, floats and decimals, whose text is cast to what the domain holds."""
    import psycopg

    def store(rows, folder, first, extra):
        with psycopg.connect(url.replace("postgres://", "postgresql://", 1), autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS ev")
            connection.execute("CREATE TABLE ev (who TEXT, what TEXT, stars FLOAT8, amount NUMERIC, day TEXT)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO ev VALUES (%s, %s, %s, %s, %s)", _typed_rows(rows, first, extra))
        return {"table": url, "name": "ev"}

    return store


def on_mariadb(url):
    """A table whose text has a collation that equates case and accents."""

    def store(rows, folder, first, extra):
        with warnings.catch_warnings(action="ignore"):  # a new server has no table of time zones
            connection = ibis.connect(url)
        with connection.con.cursor() as cursor:
            text = "LONGTEXT COLLATE utf8mb4_general_ci"
            if "ev" in connection.list_tables():
                cursor.execute("DROP TABLE ev")
            columns = f"who {text}, what {text}, stars DOUBLE, amount DECIMAL(38, 10), day {text}"
            cursor.execute(f"CREATE TABLE ev ({columns}) CHARACTER SET utf8mb4")
            cells = [[_decimal_cell(cell) for cell in row] for row in _typed_rows(rows, first, extra)]
            cursor.execute("SET sql_mode = ''")  # numbers that are too large become the largest
            cursor.executemany("INSERT INTO ev VALUES (%s, %s, %s, %s, %s)", cells)
        connection.disconnect()
        return {"table": url, "name": "ev"}

    return store


def _decimal_cell(cell):
    return None if isinstance(cell, float) and not abs(cell) < float("inf") else cell


def on_spark(session):
    schema = "who string, what string, stars double, amount double, day string"

    def store(rows, folder, first, extra):
        return {"table": session.createDataFrame([tuple(row) for row in _typed_rows(rows, first, extra)], schema)}

    return store


def on_datafusion(rows, folder, first, extra):
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    return {"table": ibis.datafusion.connect().create_table("ev", _typed_arrow(rows, first, extra))}


def on_clickhouse(rows, folder, first, extra):
    return {"table": fill_clickhouse(_typed_arrow(rows, first, extra))}


def _typed_arrow(rows, first, extra):
    kinds = [pa.string(), pa.string(), pa.float64(), pa.float64(), pa.string()]
    names = ["who", "what", "stars", "amount", "day"]
    columns = zip(*_typed_rows(rows, first, extra), strict=True)
    given = [
        pa.array([_string(cell) if kind == pa.string() else cell for cell in column], kind)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return pa.table(given, names)


STORES = {
    "datafusion": on_datafusion,
    "pandas": on_pandas,
    "pandas categories": on_pandas_categories,
    "csv": on_csv,
    "several csv": on_several_csv,
    "json lines": on_json_lines,
    "json array": on_json_array,
    "several parquet": on_several_parquet,
    "lookalike csv": on_lookalike_csv,
    "lookalike parquet": on_lookalike_parquet,
    "hive": on_hive,
    "sqlite": on_sqlite,
    "sqlite view": on_sqlite_view,
    "sqlite declared": on_sqlite_declared,
    "sqlite by ibis": on_sqlite_ibis,
    "duckdb": on_duckdb_text,
    "clickhouse": on_clickhouse,
}
EACH_STORE = [
    pytest.param(store, id=name, marks=ON_CLICKHOUSE if name == "clickhouse" else []) for name, store in STORES.items()
]


def check_neighbours(store, user, rows, domain, question, first):
    extra = [{"who": user, **row} for row in rows]
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as after:
        old, sensitivity = scores_of(store(BASE, Path(before), first, []), domain, question)
        new, _ = scores_of(store(BASE, Path(after), first, extra), domain, question)
    if sensitivity is None:
        assert old == new, "what is refused must be so for every neighbour"
        return
    assert old.keys() == new.keys()
    moved = {item: new[item] - old[item] for item in old if new[item] != old[item]}
    assert all(-sensitivity.down <= step <= sensitivity.up for step in moved.values()), moved
    assert len(moved) <= question.get("max_items_per_user", len(old))


@pytest.mark.some(3)
@pytest.mark.parametrize("store", EACH_STORE)
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow], deadline=None, derandomize=True)
@given(
    user=USER, rows=ROWS, kind=st.sampled_from(list(DOMAINS)), question=st.sampled_from(QUESTIONS), first=st.booleans()
)
@example(user="zed", rows=[{}], kind="whole numbers", question={}, first=True)
@example(user="zed", rows=[{}], kind="strings", question={}, first=True)
@example(user="zed", rows=[{"what": "n-a"}], kind="range", question={}, first=False)
@example(user="zed", rows=[{"what": None, "stars": "many"}], kind="whole numbers", question=QUESTIONS[1], first=True)
def test_a_user_with_any_rows_changes_nothing_else(store, user, rows, kind, question, first):
    # That all users of a pandas column of whole numbers are whole is the caller's word.
    assume(user != 9.0 or isinstance(user, int) or not store.__name__.startswith("on_pandas"))
    check_neighbours(store, user, rows, DOMAINS[kind], question, first)


@pytest.mark.some(1)
@pytest.mark.parametrize("store", [on_pandas, on_several_parquet, on_sqlite_view], ids=lambda store: store.__name__)
def test_a_domain_in_a_file_decides_the_kind_of_labels_by_itself(store, tmp_path):
    for name, items, kind in [("whole", ["1", "2", "3"], int), ("text", ["01", "2", "3"], str)]:
        (tmp_path / f"{name}.csv").write_text("\n".join(["what", *items]) + "\n", encoding="utf-8")
        for extra in ([], [{"who": 9, "what": None}], [{"who": 9, "what": "n-a"}]):
            with tempfile.TemporaryDirectory() as folder:
                found, _ = scores_of(store(BASE, Path(folder), True, extra), tmp_path / f"{name}.csv", {})
            assert {label for label, _ in found} == {kind}
            assert found[kind, kind("2")] == 1


def test_users_keep_their_long_numbers_in_pandas():
    """A gap in the item column or none, 200 users with ids of 19 digits are 200."""
    users = [2**60 + i for i in range(200)]
    for gap in ([], [None]):
        frame = pd.DataFrame({"who": users + [5] * len(gap), "what": [1] * 200 + gap})
        found, _ = scores_of({"table": frame}, [1, 2], {})
        assert found == {(int, 1): 200, (int, 2): 0}


@pytest.mark.some(1)
@pytest.mark.parametrize("dtype", ["float64", "object", "category"])
def test_floats_of_pandas_are_users_where_no_two_people_share_one(dtype):
    """Ids that a float has merged are nobody's, in whatever type of column: else one person moves a sum by 2."""
    floats = pd.DataFrame({"who": [7, 8, 2**60, 2**60 + 1, None], "what": 1, "amount": [1, 1, 1, -1, 1]})
    frame = floats.assign(who=floats["who"].astype(dtype))
    sums = {"value": "amount", "clip": (-1, 1)}
    groups = {"by": "amount", "groups": [1, -1], "each_user": "one"}
    for question in ({}, {"max_items_per_user": 1}, sums):
        assert scores_of({"table": frame}, [1], question)[0] == {(int, 1): 2}
    source = discreet.events(frame, user="who", item="what", domain=[1], **groups)
    found = select_items(source, lambda _, tally: Selection(np.arange(tally.d)), scored=True)
    assert [list(scores) for _, scores in found] == [[2], [0]]
    declared = frame.assign(who=pd.array([7, 8, 2**60, 2**60 + 1, None], "Int64"))
    assert scores_of({"table": declared}, [1], {})[0] == {(int, 1): 4}


@pytest.mark.some(2)
@pytest.mark.parametrize("items", [[1, 2], [1, None], ["1", "x"], [1.5, 1]], ids=str)
def test_items_beyond_2_to_the_53_need_a_declared_type_in_pandas(items):
    frame = pd.DataFrame({"who": [1, 2], "what": items})
    for domain in ([2**60, 1], [str(2**60), "1"], discreet.integers(0, 2**60)):
        said, _ = scores_of({"table": frame}, domain, {})
        assert said.startswith("domain must not hold whole numbers beyond 2^53")
    declared = pd.DataFrame({"who": [1, 2], "what": pd.array([2**60 + 1, None], "Int64")})
    assert scores_of({"table": declared}, [2**60, 2**60 + 1], {})[0] == {(int, 2**60 + 1): 1, (int, 2**60): 0}


def test_expressions_of_a_table_with_guessed_types_are_refused(tmp_path):
    on_sqlite(BASE, tmp_path, False, [])
    table = ibis.sqlite.connect(tmp_path / "e.db").table("raw")
    said, _ = scores_of({"table": table.filter(table.stars == 5)}, [1], {})
    assert said.startswith("table must be the table 'raw' itself and no expression of it, because its column 'who'")


def test_an_empty_table_without_types_has_no_scores(tmp_path):
    kwargs = on_sqlite([], tmp_path, False, [])
    assert scores_of(kwargs, [1, 2], {})[0] == {(int, 1): 0, (int, 2): 0}


STRANGE = [{"what": cell, "stars": cell, "amount": cell, "day": cell} for cell in ODD]


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize("engine", LONG_ON_SERVERS)
def test_a_user_with_all_odd_rows_changes_nothing_else_on_a_server(engine, kind, request):
    server = request.getfixturevalue(engine)
    store = {"mariadb": on_mariadb, "postgres": on_postgres, "spark": on_spark}[engine](server)
    questions = QUESTIONS if engine == "postgres" else QUESTIONS[:1]
    for question in questions:
        check_neighbours(store, "zed", STRANGE, DOMAINS[kind], question, first=True)


def test_a_message_names_the_pattern_and_no_file_that_it_finds(tmp_path):
    for name, header in (("ann", "who,what"), ("Zebulon Quux", "who,who")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,2\n", encoding="utf-8")
    said, _ = scores_of({"table": str(tmp_path / "*.csv")}, ["1"], {})
    assert "*.csv' must begin with a header" in said
    assert "Zebulon" not in said


ALIKE_ROWS = st.lists(
    st.fixed_dictionaries({
        "what": st.sampled_from(ALIKE),
        "land": st.sampled_from(ALIKE),
        "amount": st.sampled_from(AMOUNTS),
    }),
    min_size=1,
    max_size=8,
)  # fmt: skip
COLLATED = [
    *((each, None) for each in EACH_DIALECT),
    ("duckdb", "NOCASE"),
    ("sqlite", "NOCASE"),
    ("sqlite", "RTRIM"),
    *((MARIADB, f"utf8mb4_{each}") for each in ("general_nopad_ci", "uca1400_ai_ci")),
    *([(SPARK, "UTF8_LCASE_RTRIM")] if CONNECT else []),
]
"""Engines, and the collations of their columns of text; MariaDB's is general_ci where no other one is named.

The Spark that make test-connect asks is of version 4, which has collations.
"""


@pytest.mark.some(2)
@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("engine", "collation"),
    [pytest.param(*getattr(each, "values", [each]), own, marks=getattr(each, "marks", [])) for each, own in COLLATED],
)
def test_a_user_whose_name_looks_like_another_is_one_more(engine, collation, tmp_path, request):
    """In spellings that collations equate, or that differ by blanks, case, accents, NUL or an emoji."""
    # PostgreSQL has no text with a NUL.
    alike = [text for text in ALIKE if engine != "postgres" or "\0" not in text]
    base = make_others(alike)
    before = on(engine, pa.Table.from_pylist(base, SCHEMA), tmp_path, request, collation)
    old = {asked: count_by_look(before, alike, asked) for asked in ASKED}

    @settings(max_examples=examples({"spark": 4}.get(engine, 20 if collation is None else 8)), deadline=None)
    @given(rows=ALIKE_ROWS, asked=st.sampled_from(list(ASKED)), first=st.booleans())
    @example(rows=[{"what": "ann", "land": "ann", "amount": -0.0}], asked="discovery", first=True)
    def check(rows, asked, first):
        own = [{"who": "ann", **row} for row in rows if {row["what"], row["land"]} <= {*alike}]
        events = pa.Table.from_pylist([*own, *base] if first else [*base, *own], SCHEMA)
        new = count_by_look(on(engine, events, tmp_path, request, collation), alike, asked)
        check_move(old[asked], new, own, asked)

    check()
