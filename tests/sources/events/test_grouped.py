"""Lists by group on every engine: the scores of each group, its items, and what one user can do to them."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from engines import on, postgres, spark  # noqa: F401  # fixtures
from test_contract import ENGINES, STEPS, SUMS, counted, expected, first_by_hash, generated, kept, summed

import discreet
from discreet.selection import Selection
from discreet.sources.events import lookup

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


def count_in_groups(rows, keys, each_user, most_groups=None):
    """The definition: the rows that count in each group, of the groups that each user counts in."""
    rows = [row for row in rows if row["who"] is not None and row["land"] in keys]
    own = {}
    for who in {row["who"] for row in rows}:
        number = Counter(keys.index(row["land"]) for row in rows if row["who"] == who)
        if each_user == "one":
            own[who] = {max(number, key=lambda place: (number[place], -place))}
        else:
            own[who] = set(first_by_hash({place: place for place in number}, most_groups or len(keys)))
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
    chosen = source.select_items(lambda _, tally: Selection(np.arange(tally.d)), scored=True)
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


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_items_are_those_of_the_definition(engine, grouped_on):
    # A query on Spark takes seconds.
    for number, options in enumerate(CASES[: 2 if engine == "spark" else None]):
        rows, events, domain = with_lands(20 + number, ["string", "integer"][number % 2])
        source = grouped_on(engine, events, domain, **options)
        assert rank_groups(source) == [expected(scores) for scores in score_groups(rows, LANDS, domain, options)]
        assert not source._snapshots


@pytest.mark.parametrize("each_user", ["one", "many"])
def test_ties_are_decided_by_the_list_and_not_by_the_order_of_rows(each_user, grouped_on):
    """Every user has two rows in each of three groups: the first in the list gets all."""
    rows = [{"who": f"u{i}", "what": f"w{i % 3}", "land": land} for i in range(9) for land in ("FR", "DE", "AT") * 2]
    found = []
    for seed in range(5):
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
        assert sum(ranked == full for ranked in found[0].values()) == 1


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


@pytest.mark.parametrize("engine", ["arrow", "sqlite", ENGINES[-2]])
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
        touched = sum(score > 0 for score in groups[group].values())
        assert tally.d == hi - lo + 1
        return Selection(np.array([*range(touched), *(touched + offset for offset in offsets)]))

    for scores, (items, found) in zip(groups, source.select_items(choose, scored=True), strict=True):
        touched = sorted(item for item, score in scores.items() if score)
        assert list(zip(found, items, strict=True))[: len(touched)] == expected(scores)[: len(touched)]
        for offset, item in zip(offsets, items[len(touched) :], strict=True):
            assert item not in touched
            assert item - lo - sum(each < item for each in touched) == offset


@pytest.mark.parametrize("engine", ["arrow", ENGINES[-2]])
def test_labels_are_shown_in_place_of_items(engine, grouped_on):
    rows, events, _ = with_lands(31, "integer")
    titles = {i: f"Title {999 - i}" for i in range(100, 125)}
    domain = pa.table({"what": list(titles), "title": list(titles.values())})
    source = grouped_on(engine, events, domain, label="title", each_user="many")
    wanted = [expected(scores) for scores in score_groups(rows, LANDS, titles, {"each_user": "many"})]
    assert rank_groups(source) == [[(score, titles[item]) for score, item in ranked] for ranked in wanted]
    assert sorted(source.members[0].every_item()) == sorted(titles.values())


@pytest.mark.parametrize("engine", ["parquet", "csv", "pandas", "duckdb", "sqlite", *ENGINES[-2:]])
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
