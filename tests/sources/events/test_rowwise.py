"""check_rowwise: what an ibis table may be made of, and the words for what it may not."""

import math
import operator as op
import warnings
from datetime import date

import ibis
import ibis.expr.operations as ops
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.events.dialects.base import dialect_of
from discreet.sources.events.rowwise import _LISTED, check_rowwise
from effort import examples

EVENTS = pa.table({"who": [1, 1, 2], "what": ["a", "b", "a"], "amount": [1.0, 2.0, 3.0], "tags": [["x"], ["y"], ["z"]]})
PEOPLE = pa.table({"who": [1, 2], "name": ["ann", "bob"]})
ITEMS = pa.table({"what": ["a", "b"], "genre": ["g", "h"], "amount": [1.0, 2.0]})


@pytest.fixture
def tables():
    backend = ibis.duckdb.connect()
    named = {"events": EVENTS, "people": PEOPLE, "movies": ITEMS}
    # Never disconnected: ibis drops what it has cached as it is forgotten, which needs the connection.
    return tuple(backend.create_table(name, rows) for name, rows in named.items())


@ibis.udf.scalar.builtin
def random() -> float: ...


def only_numbers(table):
    return table.select("who", "amount")


ROWWISE = {
    "filter, sort, cast": lambda t, p, m: t.filter(t.amount > 0).order_by("amount").cast({"who": "string"}),
    "columns": lambda t, p, m: t.rename(x="amount").drop("x").relocate("what"),
    "missing values": lambda t, p, m: t.fill_null({"amount": 0}).drop_null("who"),
    "equal rows once": lambda t, p, m: only_numbers(t).distinct().select("who", what=ibis.literal("a")),
    "union": lambda t, p, m: t.union(t.filter(t.amount > 1)).union(t),
    "set operations": lambda t, p, m: (
        only_numbers(t)
        .intersect(only_numbers(t))
        .difference(only_numbers(t).filter(False))
        .union(only_numbers(t), distinct=True)
    ).select("who", what=ibis.literal("a")),
    "text": lambda t, p, m: t.mutate(what=(t.what.lower() + "!").left(1)),
    "cases": lambda t, p, m: t.mutate(what=ibis.cases((t.amount > 1, "a"), else_=t.what)),
    "lists": lambda t, p, m: t.mutate(n=t.tags.length()).unnest("tags"),
    "structs": lambda t, p, m: t.mutate(s=ibis.struct({"a": t.what})).mutate(what=lambda made: made.s.a),
    "hash": lambda t, p, m: t.mutate(n=t.what.hash(), z=ibis.pi),
    "lenient casts": lambda t, p, m: t.mutate(n=t.what.try_cast("int64"), d=t.what.try_cast("date")),
    "list of values": lambda t, p, m: t.filter(t.what.isin(["a", "b"]) & t.amount.between(0, 9)),
    "joins": lambda t, p, m: t.join(p, "who").left_join(m, "what"),
    "right join": lambda t, p, m: m.drop("amount").right_join(t, "what").select("who", what="what_right"),
    "nearest": lambda t, p, m: t.asof_join(m.drop("what"), "amount"),
    "semi-joins": lambda t, p, m: t.semi_join(p, "who").anti_join(m.filter(m.genre == "none"), "what"),
    "isin": lambda t, p, m: t.filter(t.who.isin(p.who)),
    "memory": lambda t, p, m: ibis.memtable(EVENTS).filter(ibis._.who > 0),
}


@pytest.mark.parametrize("what", ROWWISE)
def test_what_keeps_the_rows_of_users_apart_is_taken(what, tables):
    source = discreet.events(ROWWISE[what](*tables), user="who", item="what", domain=["a", "b", "c"])
    assert discreet.top_k(source, 1, 1000).items == ["a"]


EQUAL = "equal rows once, where text may be compared without case"
OPEN = "the users on the open side of a join"
ITSELF = "a join or isin of a table with itself"
CLOCK = "a random number or the clock"
ACROSS = [
    ("a limit", lambda t, p, m: t.join(p.limit(1), "who")),
    ("the number of a row", lambda t, p, m: t.filter(t.rowid() < 120)),
    ("a window", lambda t, p, m: t.mutate(n=ibis.row_number())),
    ("a window", lambda t, p, m: t.mutate(n=t.amount.sum().over(ibis.window(group_by=t.who)))),
    ("a window", lambda t, p, m: t.mutate(n=t.amount.lag())),
    ("an aggregate", lambda t, p, m: t.distinct(on="what")),
    ("an aggregate", lambda t, p, m: t.filter(t.amount < m.amount.max().as_scalar())),
    (CLOCK, lambda t, p, m: t.filter(ibis.random() < 0.5)),
    (CLOCK, lambda t, p, m: t.mutate(who=ibis.uuid())),
    (CLOCK, lambda t, p, m: t.filter(ibis.now() > ibis.timestamp("2020-01-01"))),
    ("a function of your own", lambda t, p, m: t.filter(random() < 0.5)),
    ("SQL of your own", lambda t, p, m: t.sql("SELECT * FROM events LIMIT 3")),
    ("SQL of your own", lambda t, p, m: t.get_backend().sql("SELECT * FROM events LIMIT 3")),
    ("AliasedRelation, which is not known to keep rows apart", lambda t, p, m: t.alias("other")),
    ("a table that ibis has cached", lambda t, p, m: t.limit(2).cache()),
    ("a subquery about single rows", lambda t, p, m: t.filter((p.who == t.who).any())),
    (ITSELF, lambda t, p, m: t.semi_join(t.filter(t.amount > 2).view(), "what")),
    (ITSELF, lambda t, p, m: t.join(t.view(), "what")),
    (ITSELF, lambda t, p, m: t.filter(t.what.isin(t.filter(t.amount > 2).what))),
    (ITSELF, lambda t, p, m: t.filter(ibis.literal("a").isin(t.what))),
    (ITSELF, lambda t, p, m: t.semi_join(t.get_backend().table("EVENTS"), "what")),
    (ITSELF, lambda t, p, m: t.semi_join(t.get_backend().table("events", database="main"), "what")),
    (ITSELF, lambda t, p, m: ibis.memtable(EVENTS).semi_join(ibis.memtable(EVENTS.select(["what"])), "what")),
    ("a join by position", lambda t, p, m: t.join(p.select("name"), how="positional")),
    (OPEN, lambda t, p, m: m.left_join(t, "what").select("what", who=ibis._.who.fill_null(0))),
    (OPEN, lambda t, p, m: t.outer_join(m, "what")),
    (OPEN, lambda t, p, m: t.union(m.left_join(t, "what").select("who", "what", t.amount, t.tags))),
    (OPEN, lambda t, p, m: m.asof_join(t, "amount").select("what", "who")),
    (EQUAL, lambda t, p, m: t.select("who", "what").distinct()),
    (EQUAL, lambda t, p, m: t.drop("tags").union(t.drop("tags"), distinct=True)),
    (EQUAL, lambda t, p, m: t.drop("tags").intersect(t.drop("tags"))),
    (EQUAL, lambda t, p, m: t.drop("tags").difference(t.drop("tags").filter(False))),
    ("a join that picks rows (any_inner)", lambda t, p, m: t.any_inner_join(p, "who")),
    # One row decides whether there is an answer.
    (
        "a cast from string to int64, which can fail on a row (try_cast does not)",
        lambda t, p, m: t.cast({"what": "int64"}),
    ),
    ("a cast from int64 to int8", lambda t, p, m: t.mutate(n=t.who.cast("int8"))),
    ("a cast from float64 to int64", lambda t, p, m: t.mutate(n=t.amount.cast("int64"))),
    ("arithmetic, which can fail on a row", lambda t, p, m: t.mutate(n=t.who + 1)),
    ("arithmetic, which can fail on a row", lambda t, p, m: t.filter(t.amount.sqrt() > 1)),
    ("arithmetic, which can fail on a row", lambda t, p, m: t.mutate(n=t.amount.round())),
    ("RegexExtract, which is not known", lambda t, p, m: t.mutate(n=t.what.re_extract("(.)", 1))),
    ("a part of a text whose place", lambda t, p, m: t.mutate(n=t.what.substr(t.who))),
    ("LIKE with a backslash", lambda t, p, m: t.filter(t.what.like("a\\"))),
    ("a comparison or choice between boolean and int8", lambda t, p, m: t.filter(t.who.isnull() == 1)),
    ("a comparison or choice between date and timestamp", lambda t, p, m: dated(t).filter(ibis._.day < ibis._.at)),
    ("fill_null without columns", lambda t, p, m: only_numbers(t).fill_null(0)),
]


def dated(table):
    return table.mutate(day=table.what.try_cast("date"), at=table.what.try_cast("timestamp"))


@pytest.mark.parametrize(("word", "made"), ACROSS, ids=[f"{i} {word}" for i, (word, _) in enumerate(ACROSS)])
def test_what_lets_one_user_change_the_rows_of_another_is_refused(word, made, tables):
    with warnings.catch_warnings(action="ignore"):  # ibis reads the columns of SQL by a name that DuckDB renames
        table = made(*tables)
    with pytest.raises(discreet.Error) as raised:
        discreet.events(table, user="who", item="what", domain=["a", "b", "c"])
    assert f"and this ibis expression holds {word}" in str(raised.value)
    assert str(raised.value).startswith("table must keep one user's rows independent of other users' rows")


def test_the_open_side_of_a_join_would_let_one_user_move_anothers_score():
    """Nobody's rows are given to user 0: there is one more for each item that no other user has touched."""
    backend = ibis.duckdb.connect()
    movies = backend.create_table("movies", ITEMS)
    counts = []
    for name, rows in (("without", EVENTS.slice(0, 1)), ("with_user", EVENTS.slice(0, 2))):
        events = backend.create_table(name, rows)
        joined = movies.left_join(events, "what").select("what", who=events.who.fill_null(0))
        counts.append(joined.filter(joined.who == 0).count().to_pyarrow().as_py())
        with pytest.raises(discreet.Error, match=OPEN):
            discreet.events(joined, user="who", item="what", domain=["a", "b"])
    assert counts == [1, 0]
    backend.disconnect()


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_rows_of_two_users_that_a_column_takes_for_equal(engine, tmp_path):
    """With NOCASE, distinct keeps one of Ann and ann: whoever comes first takes the other's row away."""
    backend = getattr(ibis, engine).connect(tmp_path / "e.db")
    statements = [
        "CREATE TABLE events (who TEXT COLLATE NOCASE, what TEXT COLLATE NOCASE)",
        "INSERT INTO events VALUES ('Ann', 'a'), ('ann', 'a')",
    ]
    for each in statements:
        backend.raw_sql(each)
    events = backend.table("events")
    assert len(backend.raw_sql("SELECT DISTINCT * FROM events").fetchall()) == 1
    with pytest.raises(discreet.Error, match=EQUAL):
        discreet.events(events.distinct(), user="who", item="what", domain=["a", "b"])
    with pytest.raises(discreet.Error, match=EQUAL):
        discreet.events(events.intersect(events), user="who", item="what", domain=["a", "b"])
    source = discreet.events(events, user="who", item="what", domain=["a", "b"])
    assert source.tally().exact(0) == 2
    source.close()
    backend.disconnect()


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_equal_rows_once_on_numbers_need_an_engine_with_types(engine):
    backend = getattr(ibis, engine).connect()
    events = backend.create_table("events", schema=ibis.schema({"who": "int64", "what": "int64"}))
    if engine == "duckdb":
        check_rowwise(events.distinct(), dialect_of(events), "who")
    else:
        with pytest.raises(discreet.Error, match=EQUAL):
            check_rowwise(events.distinct(), dialect_of(events), "who")
    backend.disconnect()


COLUMNS = {"i": "int64", "k": "int32", "f": "float64", "s": "string", "z": "string", "b": "boolean", "d": "date"}


def expressions(t):
    """Every accepted operation on values, with the types and arguments that it is accepted with."""
    i, k, f, s, z, b, d = (t[name] for name in COLUMNS)
    yield from (
        do(x, y) for do in (op.eq, op.ne, op.lt, op.le, op.gt, op.ge) for x, y in ((i, k), (i, f), (s, z), (i, 0.5))
    )
    yield from (s.identical_to(z), i.between(k, 9), f.between(0, 1), s.isin(["", "é"]), i.isin([1, 2.5]), d == d)
    yield from (d > ibis.date("2024-01-01"), d > "2024-01-01", b & (i > 0), b | b, b ^ b, ~b, b == b)
    yield from (i.isnull(), s.notnull(), f.isnan(), f.isinf(), i.nullif(0), s.nullif(""), ibis.coalesce(i, k, 0))
    yield from (i.fill_null(7), s.fill_null("x"), ibis.greatest(i, k), ibis.least(f, 0.5), ibis.pi, ibis.e)
    yield from (
        ibis.cases((b, i), (i > 0, k), else_=0),
        s.cases(("", 1), ("é", 2), else_=3),
        b.ifelse(s, z),
        b.ifelse(i, None),
    )
    yield from (
        s.lower(),
        s.upper(),
        s.strip(),
        s.lstrip(),
        s.rstrip(),
        s.length(),
        s + z,
        s + "!",
        s.left(2),
        s.right(2),
    )
    yield from (s.substr(1, 2), s.substr(1), s.startswith("2"), s.endswith("4"), s.contains("é"), s.contains(z))
    yield from (s.replace("2", "x"), s.replace(z, s), s.like("2%"), s.ilike("_É%"), s.hash(), s.typeof(), i.typeof())
    yield from (each.cast("string") for each in (i, k, f, b, d))
    yield from (k.cast("int64"), i.cast("float64"), k.cast("float64"), s.cast("string"))
    yield from (s.try_cast(kind) for kind in ("int64", "int8", "float64", "boolean", "date", "timestamp"))
    yield from (f.try_cast("int64"), f.try_cast("int8"), i.try_cast("int8"), i.try_cast("boolean"), b.try_cast("int64"))
    yield from (ibis.struct({"a": i, "c": s})["c"], ibis.literal([1, 2]).length())


HUGE = [0, 1, -1, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
WORDS = [
    "",
    "é",
    "\U0001f600",
    "ß",
    " x ",
    "7",
    "1e400",
    "9" * 40,
    "2024-01-02",
    "02/01/2024",
    "%",
    "\\",
    "nan",
    "TRUE",
]
ROW = st.tuples(
    st.none() | st.sampled_from(HUGE),
    st.none() | st.sampled_from([0, 1, 2**31 - 1, -(2**31)]),
    st.none() | st.sampled_from(FLOATS),
    st.none()
    | st.sampled_from(WORDS)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
    st.none() | st.sampled_from(WORDS),
    st.none() | st.booleans(),
    st.none() | st.sampled_from([date(1, 1, 1), date(2024, 1, 2), date(9999, 12, 31)]),
)
LOOSE = st.none() | st.sampled_from([*HUGE, *FLOATS[:-1], *WORDS, b"\xff", b""])
"""A cell of SQLite, in a column of any type."""


def test_every_listed_operation_is_evaluated_below():
    table = ibis.table(COLUMNS, name="t")
    seen = {type(node).__name__ for each in expressions(table) for node in each.op().find(ops.Node)}
    listed = {name for module, names in _LISTED.items() if module not in ("relations", "subqueries") for name in names}
    # ibis takes a field of a struct that it has made itself to pieces.
    assert listed - seen <= {"Alias", "SortKey", "StructColumn", "StructField"}


def rows_of(table, made):
    named = {f"c{n}": each for n, each in enumerate(made)}
    found = table.select("id", **named).to_pyarrow().to_pylist()
    return {row["id"]: repr(row) for row in found}


@given(st.lists(ROW, max_size=4), ROW, st.integers(0, 4))
@settings(max_examples=examples(25), deadline=None)
def test_one_more_row_changes_no_value_of_another_on_duckdb(rows, odd, place):
    backend = ibis.duckdb.connect()
    found = []
    numbered = list(enumerate(rows))
    for cells in (numbered, [*numbered[:place], (99, odd), *numbered[place:]]):
        types = pa.schema([("id", pa.int64()), *ibis.schema(COLUMNS).to_pyarrow()])
        whole = pa.Table.from_pylist([dict(zip(types.names, (n, *row), strict=True)) for n, row in cells], schema=types)
        table = backend.create_table("t", whole, overwrite=True)
        made = list(expressions(table))
        check_rowwise(table.select(**{f"c{n}": each for n, each in enumerate(made)}), dialect_of(table))
        found.append(rows_of(table, made))
    found[1].pop(99)
    assert found[0] == found[1]
    backend.disconnect()


@given(st.lists(st.tuples(*[LOOSE] * 7), max_size=4), st.tuples(*[LOOSE] * 7), st.integers(0, 4))
@settings(max_examples=examples(25), deadline=None)
def test_one_more_row_changes_no_value_of_another_on_sqlite(rows, odd, place):
    backend = ibis.sqlite.connect()
    backend.con.text_factory = bytes
    table = backend.create_table("t", schema=ibis.schema({"id": "int64"} | COLUMNS))
    made = [each for each in expressions(table) if is_defined(backend, each)]
    assert len(made) > 60
    found = []
    numbered = list(enumerate(rows))
    for cells in (numbered, [*numbered[:place], (99, odd), *numbered[place:]]):
        backend.con.execute("DELETE FROM t")
        backend.con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(n, *row) for n, row in cells])
        # As SQLite answers, because Arrow has one type for a column.
        sql = backend.compile(table.select("id", **{f"c{n}": each for n, each in enumerate(made)}))
        found.append({row[0]: repr(row) for row in backend.con.execute(sql).fetchall()})
    found[1].pop(99)
    assert found[0] == found[1]
    backend.disconnect()


def is_defined(backend, expression):
    try:
        backend.compile(expression)
    except (ibis.common.exceptions.IbisError, NotImplementedError):
        return False
    return True
