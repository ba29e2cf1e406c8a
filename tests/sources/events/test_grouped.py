"""Lists by group on every engine: the scores of each group, its items, and what one user can do to them."""

import gc
import hashlib
import json
import pickle
import random
import re
import sqlite3
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_contract import (
    STEPS,
    SUMS,
    amounts,
    counted,
    expected,
    generated,
    kept,
    summed,
    texts,
)

import discreet
from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.mechanisms.tally import Selection
from discreet.sources.events import connect, lookup
from discreet.sources.events.dialects.base import dialect_named
from effort import examples
from engines import ENGINES, LONG_ON_SERVERS, POSTGRES, on
from snapshots import select_items

LANDS = ["DE", "FR", "AT", "é", "JP"]
"""The public groups; that nobody is in the last one does not show."""


def with_lands(seed, kind):
    """Generated events in groups, some in none or in one that is not listed; and the domain of their items."""
    rows, events, domain = generated(seed, kind)
    rng = random.Random(seed)
    for row in rows:
        row["land"] = rng.choice([*LANDS[:4], *LANDS[:2], "US", None])
    land = pa.array([row["land"] for row in rows], pa.string())
    return rows, events.append_column("land", land), domain


def first_groups(who, places, most):
    """The definition: so many of a user's groups, by a hash of the user and the group."""

    def digest(text):
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    return sorted(places, key=lambda place: digest(f"{digest(str(who))}:{place}"))[:most]


def count_in_groups(rows, keys, each_user, most_groups=None):
    """The definition: the rows that count in each group, of the groups that each user counts in."""
    rows = [row for row in rows if row["who"] is not None and row["land"] in keys]
    own = {}
    for who in {row["who"] for row in rows}:
        number = Counter(keys.index(row["land"]) for row in rows if row["who"] == who)
        if each_user == "one":
            own[who] = {max(number, key=lambda place: (number[place], -place))}
        else:
            own[who] = set(first_groups(who, number, most_groups or len(keys)))
    return [[row for row in rows if row["land"] == key and place in own[row["who"]]] for place, key in enumerate(keys)]


def score_groups(rows, keys, domain, options):
    """The definition: the scores of all items in each group."""
    passing = [row for row in rows if "where" not in options or row["stars"] >= 2]
    groups = count_in_groups(passing, keys, options["each_user"], options.get("max_groups_per_user"))
    most = options.get("max_items_per_user")
    if "value" not in options:
        return [counted(rows if most is None else kept(rows, domain, most), domain) for rows in groups]
    valued = [[row for row in rows if row["amount"] is not None and row["amount"] == row["amount"]] for rows in groups]
    return [summed(rows if most is None else kept(rows, domain, most), domain, *STEPS) for rows in valued]


def rank_groups(source):
    """Every item with its score, by rank, in each group: all that a source can say."""
    chosen = select_items(source, lambda _, tally: Selection(np.arange(tally.d)), scored=True)
    return [list(zip(scores, items, strict=True)) for items, scores in chosen]


@pytest.fixture
def grouped_on(tmp_path, request):
    """Makes a source by group on an engine: (engine, events, domain, more arguments of `discreet.events`)."""

    def source(engine, events, domain, **options):
        given_as = on(engine, events, tmp_path, request)
        options = {"by": "land", "groups": LANDS} | options
        return discreet.events(**given_as, user="who", item="what", domain=domain, **options)

    return source


CASES = [
    {"each_user": "one"},
    {"each_user": "many", "max_groups_per_user": 2, "max_items_per_user": 2, "where": "stars >= 2", **SUMS},
    {"each_user": "one", "max_items_per_user": 1, **SUMS},
    {"each_user": "many"},
    {"each_user": "many", "max_groups_per_user": 1, "where": "stars >= 2"},
    {"each_user": "one", "max_items_per_user": 2},
    {"each_user": "many", "max_groups_per_user": 3, "max_items_per_user": 3},
    {"each_user": "many", **SUMS},
]


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_items_are_those_of_the_definition(engine, grouped_on):
    # A query on Spark takes seconds.
    for number, options in enumerate(CASES[: 2 if engine == "spark" else None]):
        rows, events, domain = with_lands(20 + number, ["string", "integer"][number % 2])
        source = grouped_on(engine, events, domain, **options)
        assert rank_groups(source) == [expected(scores) for scores in score_groups(rows, LANDS, domain, options)]
        assert not source._lookups


@pytest.mark.some(1)
@pytest.mark.parametrize("each_user", ["one", "many"])
def test_ties_are_decided_by_the_list_and_not_by_the_order_of_rows(each_user, grouped_on):
    """Every user has two rows in each of three groups: the first in the list gets all, or one for each user."""
    rows = [{"who": f"u{i}", "what": f"w{i % 3}", "land": land} for i in range(9) for land in ("FR", "DE", "AT") * 2]
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        options = {"each_user": each_user, **({} if each_user == "one" else {"max_groups_per_user": 1})}
        for groups in (LANDS, LANDS[::-1]):
            source = grouped_on("arrow", pa.Table.from_pylist(rows), ["w0", "w1", "w2"], groups=groups, **options)
            found.append(dict(zip(source.keys, rank_groups(source), strict=True)))
    full, empty = [(3, "w0"), (3, "w1"), (3, "w2")], [(0, "w0"), (0, "w1"), (0, "w2")]
    assert all(each == found[i % 2] for i, each in enumerate(found))
    if each_user == "one":
        assert found[0] == {land: full if land == "DE" else empty for land in LANDS}
        assert found[1] == {land: full if land == "AT" else empty for land in LANDS}
    else:
        assert all(sum(score for ranked in each.values() for score, _ in ranked) == 9 for each in found)
        assert all(len([ranked for ranked in each.values() if ranked != empty]) > 1 for each in found)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "csv", "sqlite", *LONG_ON_SERVERS])
def test_people_in_the_same_groups_count_in_different_ones(engine, grouped_on):
    """Of 2,000 people in all twelve months each counts in three, and each month has about a quarter of them."""
    months = discreet.months("2026-01", "2026-12")
    chosen = Counter(place for who in range(2000) for place in first_groups(who, range(12), 3))
    # For fair choices, Binomial(2000, 1/4), a month is outside with a chance below 1e-10.
    assert all(370 < chosen[place] < 630 for place in range(12))
    who, land = np.repeat(np.arange(2000), 12), pa.array(months * 2000)
    events = pa.table({"who": who, "what": ["dune"] * len(who), "land": land})
    options = {"groups": months, "each_user": "many", "max_groups_per_user": 3}
    found = rank_groups(grouped_on(engine, events, ["dune"], **options))
    assert [score for ((score, _),) in found] == [chosen[place] for place in range(12)]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.uint64(), pa.float64(), pa.decimal128(25, 2), pa.decimal128(38, 0)], ids=str
)
def test_a_user_chooses_alike_in_every_type(kind, grouped_on):
    who = pa.array([who for who in range(40) for _ in LANDS]).cast(kind)
    events = pa.table({"who": who, "what": ["dune"] * 200, "land": LANDS * 40})
    chosen = Counter(place for who in range(40) for place in first_groups(who, range(5), 2))
    found = rank_groups(grouped_on("arrow", events, ["dune"], each_user="many", max_groups_per_user=2))
    assert [score for ((score, _),) in found] == [chosen[place] for place in range(5)]


@pytest.mark.some(2)
@pytest.mark.parametrize("declared", ["TEXT", "INTEGER", "REAL", "BLOB", ""])
def test_no_user_of_sqlite_makes_the_choice_fail(declared, tmp_path):
    """Cells of any type in a column of any, also text that is not UTF-8: each is a user in at most two groups."""
    users = ["7", "7.0", "7.5", "-0.0", "9e99", f"{2**63 - 1}", "'7'", "'x'", "x'ff'", "CAST(x'ff' AS TEXT)", "''"]
    with sqlite3.connect(tmp_path / "events.db") as connection:
        connection.execute(f"CREATE TABLE events (who {declared}, what TEXT, land TEXT)")
        for who in users:
            for land in LANDS:
                connection.execute(f"INSERT INTO events VALUES ({who}, 'dune', ?)", (land,))  # noqa: S608
        (people,) = connection.execute("SELECT COUNT(DISTINCT who) FROM events").fetchone()
    connection.close()
    source = discreet.events(
        f"sqlite://{tmp_path / 'events.db'}", name="events", user="who", item="what", domain=["dune"],
        by="land", groups=LANDS, each_user="many", max_groups_per_user=2,
    )  # fmt: skip
    total = sum(int(score) for ((score, _),) in rank_groups(source))
    # Users are told apart by their spelling, which 7 and '7' share, and ff and its text; 7.5 and 9e99 are no users, and
    # neither is 2^63 - 1 as a float. In a column of text every cell is text.
    assert total == 2 * {"TEXT": people - 1, "REAL": 5}.get(declared, 6)


def test_rows_of_any_item_say_which_group_a_user_is_in(grouped_on):
    """An item that is missing, or in no domain, is a row of its user's all the same; other groups' rows are none."""
    rows = [
        {"who": "ann", "what": "dune", "land": "DE"},
        {"who": "ann", "what": None, "land": "FR"},
        {"who": "ann", "what": "unheard-of", "land": "FR"},
        *({"who": "ann", "what": "dune", "land": land} for land in ("US", "US", "US", None, None, None)),
        {"who": "bob", "what": "dune", "land": "DE"},
        *({"who": None, "what": "dune", "land": "AT"} for _ in range(9)),
    ]
    table = pa.Table.from_pylist(rows)
    found = dict(zip(LANDS, rank_groups(grouped_on("arrow", table, ["dune"], each_user="one")), strict=True))
    assert found == {
        "DE": [(1, "dune")],
        "FR": [(0, "dune")],
        "AT": [(0, "dune")],
        "é": [(0, "dune")],
        "JP": [(0, "dune")],
    }
    found = rank_groups(grouped_on("arrow", table, ["dune"], each_user="many"))
    assert [score for ((score, _),) in found] == [2, 0, 0, 0, 0]


@pytest.mark.some(3)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", POSTGRES])
@pytest.mark.parametrize("ends", [(0, 2**63 - 1), (-(2**63), -1), (-20, 40)], ids=["highest", "lowest", "small"])
def test_a_range_of_numbers_is_never_laid_out(engine, ends, grouped_on, monkeypatch):
    """Untouched numbers are found in each group among its own touched ones."""
    monkeypatch.setattr(lookup, "FETCHED", 8)
    lo, hi = ends
    near = sorted({lo, lo + 1, lo + 3, hi, hi - 1, hi - 4, *range((lo + hi) // 2, (lo + hi) // 2 + 9)})
    rng = random.Random(lo)
    rows = [{"who": i % 40, "what": rng.choice(near), "land": rng.choice(LANDS[:3])} for i in range(150)]
    source = grouped_on(engine, pa.Table.from_pylist(rows), discreet.integers(lo, hi), each_user="one")
    groups = [counted(each, near) for each in count_in_groups(rows, LANDS, "one")]
    offsets = [0, 1, 2, 3, 20, 30, (hi - lo) // 2 - 15, hi - lo - 15]

    def choose(group, tally):
        assert tally.d == hi - lo + 1
        n = sum(score > 0 for score in groups[group].values())
        return Selection(np.array([*range(n), *(n + offset for offset in offsets)]))

    for scores, (items, found) in zip(groups, select_items(source, choose, scored=True), strict=True):
        touched = sorted(item for item, score in scores.items() if score)
        assert list(zip(found, items, strict=True))[: len(touched)] == expected(scores)[: len(touched)]
        for offset, item in zip(offsets, items[len(touched) :], strict=True):
            assert item not in touched
            assert item - lo - sum(each < item for each in touched) == offset


@pytest.mark.parametrize("engine", ["arrow", POSTGRES])
def test_labels_are_shown_in_place_of_items(engine, grouped_on):
    rows, events, _ = with_lands(31, "integer")
    titles = {i: f"Title {999 - i}" for i in range(100, 125)}
    domain = pa.table({"what": list(titles), "title": list(titles.values())})
    source = grouped_on(engine, events, domain, label="title", each_user="many")
    wanted = [expected(scores) for scores in score_groups(rows, LANDS, titles, {"each_user": "many"})]
    assert rank_groups(source) == [[(score, titles[item]) for score, item in ranked] for ranked in wanted]
    assert sorted(source.members[0].every_item()) == sorted(titles.values())


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["parquet", "csv", "pandas", "duckdb", "sqlite", *LONG_ON_SERVERS])
def test_the_same_bits_choose_the_same_items_on_every_engine(engine, grouped_on):
    rows, events, domain = with_lands(32, "string")
    options = {"each_user": "many", "max_groups_per_user": 2}
    scores = dict(zip(LANDS, score_groups(rows, LANDS, domain, options), strict=True))
    # Equal scores of an array rank by position from the end.
    backwards = {key: {item: each[item] for item in sorted(each, reverse=True)} for key, each in scores.items()}
    counts = {key: {item: int(score) for item, score in each.items()} for key, each in backwards.items()}
    sources = (grouped_on(engine, events, domain, **options), discreet.grouped(counts, **options))
    found = [
        discreet.top_k(source, 4, 3, mechanism=discreet.OneShot("gumbel"), rng=random.Random(5)) for source in sources
    ]
    assert [each.order for each in found[0].values()] == [each.order for each in found[1].values()]
    assert list(found[0]) == LANDS


row_of_a_user = st.fixed_dictionaries(
    {
        "what": st.none() | st.sampled_from(["a", "b", "c", "é", "outside"]) | texts,
        "land": st.none() | st.sampled_from([*LANDS, "US", "de"]),
        "amount": amounts | st.just(float("nan")),
    }
)
others = st.lists(st.tuples(st.sampled_from(["ann", "Ann", "bob", None]), row_of_a_user), max_size=12)
questions = st.fixed_dictionaries(
    {"each_user": st.just("one")}, optional={"max_items_per_user": st.integers(1, 3)}
) | st.fixed_dictionaries(
    {"each_user": st.just("many")},
    optional={"max_items_per_user": st.integers(1, 3), "max_groups_per_user": st.integers(1, 3)},
)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", POSTGRES])
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(others=others, own=st.lists(row_of_a_user, min_size=1, max_size=12), options=questions, sums=st.booleans())
def test_one_more_user_moves_few_groups_and_those_within_the_sensitivity(
    engine, grouped_on, others, own, options, sums
):
    """Whatever the rows of this user are; and nothing fails."""
    schema = pa.schema([("who", pa.string()), ("what", pa.string()), ("land", pa.string()), ("amount", pa.float64())])
    before = [{"who": who, **row} for who, row in others]
    found = []
    for rows in (before, before + [{"who": "the new one", **row} for row in own]):
        table = pa.Table.from_pylist(rows, schema)
        source = grouped_on(engine, table, ["a", "b", "c", "d", "é"], **options, **(SUMS if sums else {}))
        found.append([{item: score for score, item in ranked} for ranked in rank_groups(source)])
    check_moves(source, *found)
    assert source.groups_per_user == (
        1 if options["each_user"] == "one" else options.get("max_groups_per_user", len(LANDS))
    )


def check_moves(source, before, after):
    """Raises unless the scores of few enough groups moved, of few enough items in each, by little enough."""
    moves = [[new[item] - old[item] for item in old] for old, new in zip(before, after, strict=True)]
    member = source.members[0]
    assert all(-member.sensitivity.down <= move <= member.sensitivity.up for group in moves for move in group)
    assert sum(any(group) for group in moves) <= source.groups_per_user
    assert max(sum(move != 0 for move in group) for group in moves) <= (member.max_items_per_user or member.d)
    return moves


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("options", CASES[:2], ids=["one", "many"])
def test_one_more_user_in_each_of_many_tables_on_spark(options, grouped_on):
    """All tables at once: a table's number goes in front of its groups and its users."""
    tables, domain = 20, ["a", "b", "c", "d"]
    rng, before, new = random.Random(39), [], []
    for table in range(tables):
        for i in range(40):
            who = "the new one" if i % 4 == 0 else rng.choice(["ann", "bob", "eve"])
            row = {
                "who": f"{table}:{who}",
                "what": rng.choice([*domain, "outside", None]),
                "land": rng.choice([f"{table}:{land}" for land in LANDS] + [None]),
                "amount": rng.choice([None, 0.0, 1e300, -1e300, float("nan"), rng.uniform(-9, 9)]),
                "stars": rng.randrange(1, 6),
            }
            (new if i % 4 == 0 else before).append(row)
    schema = pa.schema(
        [(name, pa.string()) for name in ("who", "what", "land")] + [("amount", pa.float64()), ("stars", pa.int64())]
    )
    groups, found = [f"{table}:{land}" for table in range(tables) for land in LANDS], []
    for rows in (before, before + new):
        source = grouped_on("spark", pa.Table.from_pylist(rows, schema), domain, groups=groups, **options)
        found.append([{item: score for score, item in ranked} for ranked in rank_groups(source)])
    own = [slice(i * len(LANDS), (i + 1) * len(LANDS)) for i in range(tables)]
    assert sum(any(map(any, check_moves(source, found[0][each], found[1][each]))) for each in own) > tables / 4


def test_a_source_says_what_is_public_about_it(grouped_on):
    _, events, domain = with_lands(33, "string")
    source = grouped_on(
        "arrow", events, domain, each_user="many", max_groups_per_user=2, max_items_per_user=3, adjacency="swap", **SUMS
    )
    assert (source.keys, source.names, source.each_user, source.groups_per_user) == (tuple(LANDS), ("land",), "many", 2)
    assert len(source.members) == len(LANDS)
    assert repr(source) == "GroupedTableSource(5 groups by land, each_user='many', max_groups_per_user=2)"
    member = source.members[0]
    assert (member.d, member.grid, member.adjacency, member.max_items_per_user) == (len(domain), STEPS[2], "swap", 3)
    assert member.sensitivity == discreet.Sensitivity("1.5", 4)
    assert sorted(member.every_item()) == sorted(domain)
    said = source.description()
    assert json.loads(json.dumps(said)) == said
    assert (said["by"], said["groups"]) == (["land"], LANDS)
    assert (said["each_user"], said["max_groups_per_user"], said["max_items_per_user"]) == ("many", 2, 3)
    assert said["columns"] == {"user": "who", "item": "what", "value": "amount"}
    assert "max_groups_per_user" not in grouped_on("arrow", events, domain, each_user="one").description()
    for alone in (member.tally, lambda: member.items(np.arange(1))):
        with pytest.raises(InvalidValueError, match="must be released with the others"):
            alone()


@pytest.mark.parametrize(
    ("given_too", "message"),
    [
        ({"each_user": "one", "groups": None}, "groups must be given with by"),
        ({"each_user": "one", "by": None}, "groups must be left out without by"),
        ({"groups": None, "by": None, "each_user": "one"}, "each_user must be left out without by"),
        ({"groups": None, "by": None, "max_groups_per_user": 1}, "max_groups_per_user must be left out without by"),
        ({}, "each_user must be 'one' or 'many', and has no default: with 'one' "),
        ({"each_user": "both"}, "each_user must be 'one' or 'many', not 'both'"),
        ({"each_user": "one", "max_groups_per_user": 2}, "max_groups_per_user must be left out with each_user='one'"),
        ({"each_user": "many", "max_groups_per_user": 0}, "max_groups_per_user must be a whole number from 1"),
        ({"each_user": "one", "by": "country"}, "by must be a column of the table"),
        (
            {"each_user": "one", "by": "month(what)"},
            "by must be a column of the table, not 'month(what)'; did you mean discreet.month('what')?",
        ),
        (
            {"each_user": "one", "by": "week(what, Europe/Berlin)"},
            "did you mean discreet.week('what', 'Europe/Berlin')?",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(given_too, message, grouped_on):
    _, events, domain = with_lands(34, "string")
    with pytest.raises(InvalidValueError, match=re.escape(message)):
        grouped_on("arrow", events, domain, **given_too)


def test_floats_are_users_of_groups_where_they_are_whole():
    frame = pd.DataFrame({"who": [1.0, float("nan"), 1.5, 2.0**60], "what": "a", "land": LANDS[0]})
    source = discreet.events(frame, user="who", item="what", domain=["a"], by="land", groups=LANDS, each_user="one")
    assert [score for ((score, _),) in rank_groups(source)] == [1, *[0] * (len(LANDS) - 1)]


@pytest.mark.parametrize(("column", "argument"), [("who", "user"), ("what", "item"), ("land", "by")])
def test_text_is_refused_where_nobody_knows_how_it_is_told_apart(column, argument, monkeypatch):
    table = pa.table({"who": [1], "what": [1], "land": [3]})
    table = table.set_column(table.column_names.index(column), column, pa.array(["a"]))
    monkeypatch.setattr(connect, "dialect_of", lambda table: dialect_named("unheard-of"))
    lists = {"domain": ["a"] if column == "what" else [1], "groups": ["a"] if column == "land" else [3]}
    with pytest.raises(InvalidTypeError, match=f"^{argument} must hold numbers, dates or booleans on unheard-of"):
        discreet.events(table, user="who", item="what", by="land", each_user="one", **lists)


def test_a_bound_is_refused_where_nobody_knows_how_to_hash(monkeypatch):
    table = pa.table({"who": [1], "what": [1], "land": [3]})
    monkeypatch.setattr(connect, "dialect_of", lambda table: dialect_named("unheard-of"))
    own = {"user": "who", "item": "what", "domain": [1], "by": "land", "groups": [3, 4], "each_user": "many"}
    with pytest.raises(InvalidValueError, match=r"^max_groups_per_user must be left out on .*: discreet does not know"):
        discreet.events(table, **own, max_groups_per_user=1)
    for most in (None, 2):
        assert discreet.events(table, **own, max_groups_per_user=most).groups_per_user == 2


def test_a_source_ends_with_its_last_reference(grouped_on):
    """Nothing but the caller holds one, so that its connection is closed at once and not at some later time."""
    _, events, domain = with_lands(35, "string")
    source = grouped_on("arrow", events, domain, each_user="one")
    discreet.top_k(source, 2, 1)
    assert not source._lookups
    gone = weakref.ref(source)
    gc.disable()
    del source
    gc.enable()
    assert gone() is None


def test_threads_take_turns(grouped_on):
    rows, events, domain = with_lands(36, "string")
    source = grouped_on("arrow", events, domain, each_user="one")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: rank_groups(source), range(4)))
    assert found == 4 * [[expected(scores) for scores in score_groups(rows, LANDS, domain, {"each_user": "one"})]]


def test_a_source_is_not_copied(grouped_on):
    _, events, domain = with_lands(37, "string")
    with pytest.raises(InvalidTypeError, match="cannot be copied or pickled"):
        pickle.dumps(grouped_on("arrow", events, domain, each_user="one"))


def test_the_snapshot_holds_touched_items_alone(grouped_on, monkeypatch):
    """Of a million items and five groups."""
    rows = [{"who": i, "what": i * 1000, "land": LANDS[i % 2]} for i in range(100)]
    source = grouped_on("arrow", pa.Table.from_pylist(rows), range(10**6), each_user="one")
    listed = grouped_on("arrow", pa.Table.from_pylist(rows), pa.table({"what": np.arange(10**6)}), each_user="one")
    for each in (source, listed):
        with each.snapshot() as snapshot:
            assert snapshot.lookup._scores.count().to_pyarrow().as_py() == 100
    release = discreet.top_k(listed, k=3, epsilon="0.001")
    assert all(len(set(each.items)) == 3 and each.d == 10**6 for each in release.values())


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["arrow", "sqlite"])
def test_every_place_of_long_runs_is_found(engine, grouped_on, monkeypatch):
    """Runs that are too long to fetch are split, in all groups at once."""
    monkeypatch.setattr(lookup, "FETCHED", 8)
    monkeypatch.setattr(lookup, "BITS", 5)
    rng = random.Random(38)
    rows = [{"who": i % 5, "what": rng.randrange(3000), "land": LANDS[i % 5 % 3]} for i in range(3000)]
    domain = list(range(3000))
    source = grouped_on(engine, pa.Table.from_pylist(rows), domain, each_user="one")
    wanted = [expected(scores) for scores in score_groups(rows, LANDS, domain, {"each_user": "one"})]
    for _ in range(3):
        ranks = [np.array(rng.sample(range(3000), 7)) for _ in LANDS]
        chosen = select_items(source, lambda group, _, ranks=ranks: Selection(ranks[group]), scored=True)
        for ranked, inside, (items, scores) in zip(wanted, ranks, chosen, strict=True):
            assert list(zip(scores, items, strict=True)) == [ranked[rank] for rank in inside]
