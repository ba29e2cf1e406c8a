"""check_rowwise: what an ibis table may be made of, and the words for what it may not."""

import warnings

import ibis
import pyarrow as pa
import pytest

import discreet

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


ROWWISE = {
    "filter, sort, cast": lambda t, p, m: t.filter(t.amount > 0).order_by("amount").cast({"who": "string"}),
    "columns": lambda t, p, m: t.rename(x="amount").drop("x").relocate("what"),
    "missing values": lambda t, p, m: t.fill_null({"amount": 0}).drop_null("who"),
    "equal rows once": lambda t, p, m: t.select("who", "what").distinct(),
    "union": lambda t, p, m: t.union(t.filter(t.amount > 1)).union(t, distinct=True),
    "set operations": lambda t, p, m: t.drop("tags").intersect(t.drop("tags")).difference(t.drop("tags").filter(False)),
    "text": lambda t, p, m: t.mutate(what=t.what.lower().re_extract("(.)", 1)),
    "cases": lambda t, p, m: t.mutate(what=ibis.cases((t.amount > 1, "a"), else_=t.what)),
    "lists": lambda t, p, m: t.mutate(n=t.tags.map(lambda tag: tag.upper()).length()).unnest("tags"),
    "structs": lambda t, p, m: t.mutate(s=ibis.struct({"a": t.what})).mutate(what=lambda made: made.s.a),
    "hash": lambda t, p, m: t.mutate(n=t.what.hash() + 1, z=ibis.pi),
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
]


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
