"""Items that nobody listed: the same on every engine as by the definition, and what one user can do to them."""

import random
import sqlite3
import warnings
from collections import Counter, defaultdict
from datetime import date
from fractions import Fraction
from hashlib import md5
from math import ceil, isqrt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.discovered import Discovered
from discreet.sources.events.engine import ask
from discreet.sources.events.unlisted import UnlistedScoring, weigh_on_engine
from effort import examples
from engines import ENGINES, LONG_ON_SERVERS, as_table, on
from snapshots import find_items

KEY = "00c0ffee00c0ffee"
ODD = ["dune", "Dune", " dune ", "é", "É", "ß", "'quoted' \"text\"", "x,y", "😀", "￿x", "𐀀", "NULL", "7", "07"]
UNIVERSE = {
    "string": ODD + [f"movie {i}" for i in range(12)],
    "integer": [0, 1, -5, 7, 2**40, -(2**62), 2**63 - 1, *range(100, 112)],
    "date": [date(2020, 1, 1 + i) for i in range(12)] + [date(1999, 12, 31), date(2024, 2, 29)],
    "boolean": [True, False],
}
TYPES = {"string": pa.string(), "integer": pa.int64(), "date": pa.date32(), "boolean": pa.bool_()}
LANDS = ["DE", "FR", "IT"]


def make_rows(seed, kind="string", rows=250):
    rng = random.Random(seed)
    made = [
        {
            "who": None if rng.random() < 0.05 else rng.choice(["ann", "bob", "Bob", f"u{rng.randrange(30)}"]),
            "what": None if rng.random() < 0.05 else rng.choice(UNIVERSE[kind]),
            "amount": rng.choice([None, 0.0, 1.0, 2.5, -3.25, 0.25, 1e300]),
            "land": rng.choice(LANDS),
        }
        for _ in range(rows)
    ]
    schema = [("who", pa.string()), ("what", TYPES[kind]), ("amount", pa.float64()), ("land", pa.string())]
    return made, pa.Table.from_pylist(made, pa.schema(schema))


def spell(item):
    return {True: "true", False: "false"}[item] if isinstance(item, bool) else str(item)


def counting(who, items, most):
    """The definition: a user's items with the least hashes."""

    def place(item):
        return md5(f"{KEY}{who}/{spell(item)}".encode(), usedforsecurity=False).hexdigest()[:12]

    return sorted(items, key=place)[:most]


def define(rows, most, clip=None, unify=lambda item: item):
    """The definition: for how many users each item counts, and its score among all users."""
    totals = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row["who"] is not None and row["what"] is not None and not (clip and row["amount"] is None):
            steps = int(max(-(10**9), min(10**9, (row["amount"] or 0) * 4)))
            totals[row["who"]][unify(row["what"])] += steps
    users, scores = Counter(), Counter()
    for who, items in totals.items():
        users.update(counting(who, items, most))
        for item, total in items.items():
            scores[item] += max(clip[0], min(clip[1], total)) if clip else 1
    return {item: (users[item], scores[item]) for item in users}


def find_each(source):
    """In each group every item that counts for somebody, with both of its numbers; a source says no more."""
    runs = []

    def keep(users, items):
        runs.append(np.repeat(users, items))
        return np.arange(items.sum())

    found = find_items(source, KEY, keep)
    for listed, users in zip(found, runs, strict=True):
        assert sorted(users.tolist(), reverse=True) == users.tolist()
        assert len(set(listed.items)) == len(listed.items)
    return [
        {item: (int(n), score) for item, n, score in zip(listed.items, users, listed.scores, strict=True)}
        for listed, users in zip(found, runs, strict=True)
    ]


def find_everything(source, group=0):
    return find_each(source)[group]


def open_found(table, most=3, domain=None, **options):
    found = domain or discreet.discovered("1e-6", most, method="laplace")
    given = table if isinstance(table, dict) else {"table": table}
    return discreet.events(**given, user="who", item="what", domain=found, **options)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_the_same(engine, tmp_path, request):
    rows, table = make_rows(1)
    given = on(engine, table, tmp_path, request)
    assert find_everything(open_found(given)) == define(rows, 3)
    sums = open_found(given, value="amount", clip=("-1.5", 4), resolution="0.25")
    assert find_everything(sums) == define(rows, 3, (-6, 16))
    assert sums.grid == Fraction(1, 4)


@pytest.mark.corners
@pytest.mark.parametrize("engine", ["arrow", "csv", "sqlite", *LONG_ON_SERVERS])
@pytest.mark.parametrize("kind", ["integer", "date", "boolean"])
def test_every_kind_of_item_is_found(engine, kind, tmp_path, request):
    rows, table = make_rows(2, kind)
    given = on(engine, table, tmp_path, request)
    terms = discreet.discovered("1e-6", 2, kind=kind, method="laplace")
    assert find_everything(open_found(given, domain=terms)) == define(rows, 2)


def fold(text):
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in text)


@pytest.mark.some(3)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
@pytest.mark.parametrize(
    ("spelling", "unify"),
    [("casefold", fold), ("trim", lambda text: text.strip(" ")), ("both", lambda text: fold(text.strip(" ")))],
)
def test_spellings_are_one_item_everywhere(engine, spelling, unify, tmp_path, request):
    rows, table = make_rows(3)
    terms = discreet.discovered("1e-6", 2, spelling=spelling, method="laplace")
    source = open_found(on(engine, table, tmp_path, request), domain=terms)
    assert find_everything(source) == define(rows, 2, unify=unify)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "duckdb", "sqlite", *LONG_ON_SERVERS])
def test_groups_have_items_of_their_own(engine, tmp_path, request):
    rows, table = make_rows(4)
    given, split = on(engine, table, tmp_path, request), {"by": "land", "groups": ["DE", "FR"]}
    own = defaultdict(Counter)
    for row in rows:
        if row["who"] is not None and row["land"] in split["groups"]:
            own[row["who"]][row["land"]] += 1
    main = {who: max(split["groups"], key=lambda land: count[land]) for who, count in own.items()}  # at once
    for index, land in enumerate(split["groups"]):
        inside = [row for row in rows if row["land"] == land]
        many = open_found(given, each_user="many", **split)
        assert find_everything(many, index) == define(inside, 3)
        one = open_found(given, each_user="one", **split)
        assert find_everything(one, index) == define([row for row in inside if main.get(row["who"]) == land], 3)


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_bits_give_the_same_release(engine, tmp_path, request):
    _, table = make_rows(5, rows=600)
    split = {"by": "land", "groups": LANDS, "each_user": "many", "max_groups_per_user": 2}
    counted, weighed = discreet.discovered("1e-6", 3, method="laplace"), discreet.discovered("1e-6", method="gaussian")
    for terms, options in ((counted, {}), (counted, split), (weighed, {}), (weighed, split)):
        first, other = (
            discreet.top_k(open_found(given, domain=terms, **options), k=4, epsilon=60, counts=1, rng=random.Random(8))
            for given in (table, on(engine, table, tmp_path, request))
        )
        assert first == other
        assert first.guarantee.delta == Fraction(1, 10**6)


# What one user can do.

TOUCHES = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(ODD[:8])), max_size=30)
OWN = st.lists(st.sampled_from(ODD), max_size=12)
EXAMPLES = {"mariadb": 3, "arrow": 10, "sqlite": 10, "postgres": 6, "spark": 2}


def make_neighbours(tables):
    """Tables without a user and with one, one after the other, as groups of one table of events."""
    rows = [
        {"table": 2 * index + added, "who": f"{index}-{who}", "what": item}
        for index, (others, own) in enumerate(tables)
        for added in range(2)
        for who, item in [*others, *(("new", item) for item in own * added)]
    ]
    return pa.Table.from_pylist(rows, pa.schema([("table", pa.int64()), ("who", pa.string()), ("what", pa.string())]))


def check_sensitivity(without, added, own, most):
    """At most so many items count for one user more, and totals rise by one for those that the user has."""
    moved = {item: added[item][0] - without.get(item, (0, 0))[0] for item in added}
    assert set(without) <= set(added)
    assert sorted(filter(None, moved.values())) == [1] * min(most, len(own))
    assert {item for item, change in moved.items() if change} <= own
    assert all(added[item][1] - without[item][1] == (item in own) for item in without)


@pytest.mark.some(2)
@pytest.mark.hypothesis
@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
def test_one_user_more_moves_so_many_items_by_one(engine, tmp_path, request):
    @settings(max_examples=examples(EXAMPLES[engine]), deadline=None)
    @given(st.lists(st.tuples(TOUCHES, OWN), min_size=1, max_size=5), st.integers(1, 3))
    def check(tables, most):
        given = on(engine, make_neighbours(tables), tmp_path, request)
        split = {"by": "table", "groups": discreet.integers(0, 2 * len(tables) - 1), "each_user": "many"}
        found = find_each(open_found(given, most, **split))
        for index, (_, own) in enumerate(tables):
            check_sensitivity(found[2 * index], found[2 * index + 1], set(own), most)
        if engine == "spark":
            # Every query takes seconds there.
            return
        # The last table again, in the way that has no groups.
        last = [open_found(given, most, where=f"table = {2 * index + added}") for added in range(2)]
        assert [find_everything(source) for source in last] == found[-2:]

    check()


@pytest.mark.some(1)
@pytest.mark.parametrize("engine", ["arrow", "sqlite"])
def test_a_user_with_very_many_items_counts_for_few(engine, tmp_path, request):
    size = 10**6 if engine == "arrow" else 10**4
    who = np.concatenate([np.zeros(size, np.int64), np.arange(1, 51)])
    what = np.array([f"{i}" for i in range(size)] + ["0"] * 50)
    source = open_found(on(engine, pa.table({"who": who, "what": what}), tmp_path, request), 5)
    found = find_everything(source)
    assert sum(n for n, _ in found.values()) == 55
    assert found["0"][1] == 51
    assert len(found) <= 6


def test_items_whose_hashes_collide_count_together_or_not_at_all(monkeypatch):
    import ibis

    monkeypatch.setattr(UnlistedScoring, "_hash", lambda *_: ibis.literal(7))
    table = pa.table({"who": [1] * 5 + [2] * 3, "what": ["b", "a", "é", "Z", "￿", "a", "Z", "c"]})
    assert find_everything(open_found(table, 3)) == {"a": (1, 2), "Z": (1, 2), "c": (1, 1)}


def test_one_items_luck_is_not_that_of_all():
    items = [f"item {i}" for i in range(10)]
    table = pa.table({"who": np.repeat(np.arange(3000), 10), "what": items * 3000})
    found = find_everything(open_found(table, 1))
    # Binomial(3000, 1/10) each: seven standard deviations.
    assert all(abs(found[item][0] - 300) < 7 * 16.5 for item in items)
    assert all(found[item][1] == 3000 for item in items)


def test_another_key_is_another_choice():
    table = pa.table({"who": np.repeat(np.arange(50), 10), "what": [f"item {i}" for i in range(10)] * 50})
    source, seen = open_found(table, 1), []

    def keep(users, items):
        seen.append(np.repeat(users, items).tolist())
        return np.empty(0, np.int64)

    for key in (KEY, KEY, "ffff"):
        assert find_items(source, key, keep)[0].items == []
    assert seen[0] == seen[1] != seen[2]


# Public inputs alone decide types and errors.


def test_a_gap_in_a_frame_changes_nobody_elses_items():
    long = [2**60, 2**60 + 1, 5, 2**53 - 1]
    whole = pd.DataFrame({"who": ["a", "b", "c", "d"], "what": long})
    gap = pd.DataFrame({"who": ["a", "b", "c", "d", "e"], "what": [*long, None]})
    for kind, own in (("integer", [5, 2**53 - 1]), ("string", ["5", str(2**53 - 1)])):
        terms = discreet.discovered("1e-6", 1, kind=kind, method="laplace")
        found = [find_everything(open_found(frame, domain=terms)) for frame in (whole, gap)]
        assert found[0] == found[1] == dict.fromkeys(own, (1, 1))


def test_text_that_is_none_is_no_item(tmp_path):
    with sqlite3.connect(tmp_path / "broken.db") as connection:
        connection.execute("CREATE TABLE events (who TEXT, what TEXT)")
        connection.execute("INSERT INTO events VALUES ('a', CAST(X'ff41' AS TEXT)), ('b', 'fine'), ('c', X'41')")
        connection.execute("INSERT INTO events VALUES ('d', CAST(X'410042' AS TEXT))")
    connection.close()
    source = open_found({"table": f"sqlite://{tmp_path / 'broken.db'}", "name": "events"})
    assert find_everything(source) == {"fine": (1, 1)}


def open_far_dates(engine, request):
    """A date that Python has, of two people, and others of one person each."""
    if engine == "arrow":
        days = pa.array([18262, 18262, 10**7, -(10**6)], pa.int32()).cast(pa.date32())
        return {"table": pa.table({"who": [1, 2, 3, 4], "what": days})}
    if engine == "spark":
        far = "(3, make_date(10000, 1, 1)), (4, make_date(-44, 3, 15))"
        rows = f"VALUES (1, DATE '2020-01-01'), (2, DATE '2020-01-01'), {far} AS t(who, what)"
        frame = request.getfixturevalue("spark").sql(f"SELECT * FROM {rows}")  # noqa: S608
        return {"table": as_table(frame)}
    psycopg, url = pytest.importorskip("psycopg"), request.getfixturevalue("postgres")
    with psycopg.connect(url.replace("postgres://", "postgresql://", 1), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS far")
        connection.execute("CREATE TABLE far (who int, what date)")
        known, far = "(1, '2020-01-01'), (2, '2020-01-01')", "(3, 'infinity'), (4, '0044-03-15 BC'), (5, '10000-01-01')"
        connection.execute(f"INSERT INTO far VALUES {known}, {far}")  # noqa: S608
    return {"table": url, "name": "far"}


@pytest.mark.parametrize("engine", ["arrow", *LONG_ON_SERVERS])
def test_dates_outside_of_the_calendar_are_no_items(engine, request):
    terms = discreet.discovered("1e-6", 2, kind="date", method="laplace")
    assert find_everything(open_found(open_far_dates(engine, request), domain=terms)) == {date(2020, 1, 1): (2, 2)}


@pytest.mark.parametrize(
    "user", [pa.array([b"\xff", b"\x00", b"\xff"]), pa.array([1.0, 2.0, 1.0]), [True, False, True]]
)
def test_users_of_any_type_are_told_apart(user):
    table = pa.table({"who": user, "what": ["a", "a", "b"]})
    assert find_everything(open_found(table)) == {"a": (2, 2), "b": (1, 1)}


def test_users_of_bytes_and_of_mixed_cells(tmp_path):
    events = pa.table({"who": ["u1", "u2", "u3"] * 20, "what": [f"item {i % 11}" for i in range(60)]})
    spelled = find_everything(open_found(events, 2))
    # Object columns of pandas have cells of any type; text among them is the same user as elsewhere.
    frame = events.to_pandas().astype(object)
    assert find_everything(open_found(frame, 2)) == spelled
    raw = events.set_column(0, "who", events["who"].cast(pa.binary()))
    with sqlite3.connect(tmp_path / "raw.db") as connection:
        connection.execute("CREATE TABLE events (who BLOB, what TEXT)")
        rows = zip(raw["who"].to_pylist(), raw["what"].to_pylist(), strict=True)
        connection.executemany("INSERT INTO events VALUES (?, ?)", [*rows, (b"\xff\x00", "item 3")])
    connection.close()
    found = find_everything(open_found({"table": f"sqlite://{tmp_path / 'raw.db'}", "name": "events"}, 2))
    assert sum(n for n, _ in found.values()) == 7
    assert sum(n for n, _ in find_everything(open_found(raw, 2)).values()) == 6


def test_what_does_not_go_together_is_refused():
    table = pa.table({"who": [1], "what": ["a"], "n": [1]})
    found = discreet.discovered("1e-6", 1, method="laplace")
    for message, options in {
        "max_items_per_user must be left out with discreet.discovered": {"max_items_per_user": 2},
        "label must be left out with discreet.discovered": {"label": "n"},
    }.items():
        with pytest.raises(discreet.Error, match=message):
            discreet.events(table, user="who", item="what", domain=found, **options)


@pytest.mark.parametrize(
    ("message", "arguments"),
    {
        "delta must be given for discovery": (None, 1),
        "delta must be above zero and at most 0.001, not 0.5": (0.5, 1),
        "max_items_per_user must be a whole number from 1": ("1e-6", 0),
        "kind must be 'string', 'integer', 'date' or 'boolean', not 'text'": ("1e-6", 1, None, "text"),
        "spelling must be 'exact', 'casefold', 'trim', 'both' or 'fold', not 'x'": ("1e-6", 1, None, "string", "x"),
        "spelling must be left out unless kind is 'string'": ("1e-6", 1, None, "date", "trim"),
        "epsilon of discovered must be above zero": ("1e-6", 1, 0),
    }.items(),
)
def test_bad_terms_are_refused(message, arguments):
    with pytest.raises(discreet.Error, match=message):
        discreet.discovered(*arguments)


def test_a_large_delta_is_warned_about():
    with pytest.warns(UserWarning, match=r"delta is 0\.0001: it should be well below one over the number of people"):
        found = discreet.discovered("1e-4", 2, epsilon="0.5", kind="integer", method="laplace")
    assert found == Discovered(Fraction(1, 10**4), 2, Fraction(1, 2), "integer", method="laplace")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert discreet.discovered("1e-5", 2, method="laplace").delta == Fraction(1, 10**5)
        # A float is its shortest decimal.
        assert discreet.discovered(1e-5, 2).delta == Fraction(1, 10**5)
    with pytest.warns(UserWarning, match=r"delta is 0\.001: it should"):
        assert discreet.discovered(1e-3, 2).delta == Fraction(1, 10**3)


# Weights.


def define_weights(rows, most, groups=None):
    """The definition: an item's sum of floor(1024 / sqrt(m)) over the users for whom it counts, and its score.

    m is the number of items of a user that count, in all groups together.
    """
    by_group = defaultdict(list)
    for row in rows:
        by_group[row["land"] if groups else None].append(row)
    chosen, users = defaultdict(dict), Counter()
    for land in groups or [None]:
        own = defaultdict(set)
        for row in by_group[land]:
            if row["who"] is not None and row["what"] is not None:
                own[row["who"]].add(row["what"])
        for who, items in own.items():
            chosen[land][who] = counting(who, items, most), items
            users[who] += min(most, len(items))
    found = []
    for land in groups or [None]:
        sums, scores = Counter(), Counter()
        for who, (counted, items) in chosen[land].items():
            sums.update(dict.fromkeys(counted, next(w for w in range(1024, 0, -1) if w * w * users[who] <= 2**20)))
            scores.update(items)
        found.append({item: (sums[item], scores[item]) for item in sums})
    return found


def weigh(most=3, **terms):
    return Discovered(Fraction(1, 10**6), most, method="gaussian", **terms)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_adds_up_the_same_weights(engine, tmp_path, request):
    rows, table = make_rows(1)
    given = on(engine, table, tmp_path, request)
    for most in (1, 5, 100):
        assert find_each(open_found(given, domain=weigh(most))) == define_weights(rows, most)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "duckdb", "sqlite", *LONG_ON_SERVERS])
def test_the_weights_of_a_user_are_shared_by_all_groups(engine, tmp_path, request):
    rows, table = make_rows(4)
    given, split = on(engine, table, tmp_path, request), {"by": "land", "groups": LANDS}
    many = find_each(open_found(given, domain=weigh(), each_user="many", **split))
    assert many == define_weights(rows, 3, LANDS)
    # In one group each, everybody has the weight that is theirs there alone.
    own = defaultdict(Counter)
    for row in rows:
        own[row["who"]][row["land"]] += row["who"] is not None
    main = {who: max(LANDS, key=lambda land: count[land]) for who, count in own.items()}
    one = find_each(open_found(given, domain=weigh(), each_user="one", **split))
    assert one == define_weights([row for row in rows if main[row["who"]] == row["land"]], 3, LANDS)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
def test_no_user_has_a_norm_above_one(engine, tmp_path, request):
    rng, rows = random.Random(3), []
    for who in range(40):
        cells = rng.sample([(land, f"{who} {i}") for land in LANDS for i in range(20)], rng.randrange(1, 40))
        rows += [{"who": f"{who}", "what": item, "land": land} for land, item in cells]
    given = on(engine, pa.Table.from_pylist(rows), tmp_path, request)
    split = {"by": "land", "groups": LANDS, "each_user": "many", "max_groups_per_user": 2}
    for most, options in ((4, {}), (100, {}), (4, split)):
        norms = Counter()
        for found in find_each(open_found(given, domain=weigh(most), **options)):
            for item, (weight, _) in found.items():
                norms[item.split()[0]] += weight**2
        assert len(norms) == 40
        assert 0.9 * 2**20 < max(norms.values()) <= 2**20


@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
def test_every_weight_is_exact(engine, tmp_path, request):
    # All of them, or those next to where the weight changes, and the squares, whose roots are exact.
    last = [2**20 // (w * w) for w in range(1, 1025)]
    near = {m + step for m in (*last, *(i * i for i in range(1, 1025))) for step in (-1, 0, 1) if m + step >= 1}
    sizes = np.arange(2**20 + 9) if engine == "arrow" else np.array([0, *sorted(near), 2**20 + 1, 2**40])
    given = on(engine, pa.table({"who": sizes, "what": sizes}), tmp_path, request)
    source = open_found(given, domain=weigh(kind="integer"))
    table = source._table
    query = table.select(m=table.who, weight=weigh_on_engine(table.who))
    weights = ask(engine, "weighing", query.to_pyarrow)
    found = dict(zip(weights["m"].to_pylist(), weights["weight"].to_pylist(), strict=True))
    assert found == {m: isqrt(2**20 // max(m, 1)) for m in sizes.tolist()}


def test_weights_where_all_hashes_collide(monkeypatch):
    """No item of the first user counts, and nothing fails."""
    import ibis

    monkeypatch.setattr(UnlistedScoring, "_hash", lambda *_: ibis.literal(7))
    table = pa.table({"who": [1] * 5 + [2] * 3, "what": ["b", "a", "é", "Z", "￿", "a", "Z", "c"], "land": ["DE"] * 8})
    split = {"by": "land", "groups": ["DE"], "each_user": "many"}
    for options in ({}, split):
        found = find_everything(open_found(table, domain=weigh(), **options))
        assert found == {"a": (591, 2), "Z": (591, 2), "c": (591, 1)}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_adds_up_shares(engine, tmp_path, request):
    rows, table = make_rows(6, rows=90)
    own = defaultdict(set)
    for row in rows:
        if row["who"] is not None and row["what"] is not None:
            own[row["who"]].add(row["what"])
    touching = Counter(item for items in own.values() for item in items)
    given = on(engine, table, tmp_path, request)
    for most, uncounted in ((100, False), (100, True), (4, True), (2, False)):
        counted, steps = Counter(), Counter()
        for who, items in own.items():
            counts = counting(who, items, most)
            counted.update(counts)
            steps.update({item: 6 // len(counts[:3]) for item in counts[:3]})
        hidden = max(counted[item] - steps[item] / 2 for item in counted)
        terms = discreet.discovered("1e-6", most, method="auto")
        with open_found(given, domain=terms).snapshot(KEY, with_uncounted=uncounted) as snapshot:
            assert snapshot.count_hidden() == max(0, ceil(hidden))
            assert (snapshot.count_hidden() > 0) == (most > 3)
            only = snapshot.take_shares()
            ((sums, items),) = only.runs()
            (found,) = only.items([np.arange(items.sum())])
            assert dict(zip(found.items, np.repeat(sums, items).tolist(), strict=True)) == steps
            assert dict(zip(found.items, found.scores, strict=True)) == {item: touching[item] for item in steps}
