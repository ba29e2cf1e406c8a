"""One contract for every engine: the same events give the same tally and, with the same bits, the same release."""

import random
from collections import defaultdict
from datetime import date
from fractions import Fraction
from math import floor, isnan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from discreet.sources.arrays.array import array_source
from effort import examples
from engines import CLICKHOUSE, ENGINES, LOCAL, LONG_ON_SERVERS, POSTGRES, on

ODD = ["dune", "Dune", "a", "B", "é", "z", "ß", "", " ", "'quoted' \"text\"", "x,y", "😀", "￿x", "𐀀", "naïve", "NULL"]

SUMS = {"value": "amount", "clip": ("-1.5", 4), "resolution": "0.25"}
STEPS = (Fraction(-3, 2), Fraction(4), Fraction(1, 4))
"""The same as numbers: from, to, in steps of."""


@pytest.fixture
def events_on(tmp_path, request):
    """Makes a source of events on an engine: (engine, events, domain, more arguments of `discreet.events`)."""

    def source(engine, events, domain, **options):
        return discreet.events(
            **on(engine, events, tmp_path, request), user="who", item="what", domain=domain, **options
        )

    return source


def generated(seed, kind):
    """Events with duplicates, missing values, unknown items and extreme values, and a domain for them."""
    rng = random.Random(seed)
    universe = {
        "string": [item for item in ODD if item != ""] + [f"movie {i}" for i in range(20)],
        "integer": [0, 1, 2, -5, 7, 2**40, -(2**62), 2**63 - 1, *range(100, 125)],
        "date": [date(2020, 1, 1 + i) for i in range(20)] + [date(1999, 12, 31), date(2024, 2, 29)],
        "boolean": [True, False],
    }[kind]
    domain = rng.sample(universe, max(2, len(universe) * 3 // 4))
    rows = [
        {
            "who": None
            if rng.random() < 0.05
            else rng.choice(["ann", "bob", "Bob", "eve", "zoë", f"u{rng.randrange(30)}"]),
            "what": None if rng.random() < 0.05 else rng.choice(universe),
            "amount": rng.choice(
                [None, 0.0, 1.0, 2.5, -3.25, 1e300, -1e300, 0.1, 0.05, float("inf"), float("nan"), rng.uniform(-9, 9)]
            ),
            "stars": rng.randrange(1, 6),
        }
        for _ in range(300)
    ]
    types = {"string": pa.string(), "integer": pa.int64(), "date": pa.date32(), "boolean": pa.bool_()}
    schema = pa.schema([("who", pa.string()), ("what", types[kind]), ("amount", pa.float64()), ("stars", pa.int64())])
    return rows, pa.Table.from_pylist(rows, schema), domain


def counted(rows, domain, keep=lambda row: True):
    """The definition: how many distinct users each item of the domain has."""
    users = defaultdict(set)
    for row in rows:
        if row["who"] is not None and row["what"] is not None and keep(row):
            users[row["what"]].add(row["who"])
    return {item: Fraction(len(users[item])) for item in domain}


def summed(rows, domain, low, high, resolution):
    """The definition: the sum over users of each one's total in whole steps, clipped."""
    totals = defaultdict(int)
    for row in rows:
        if row["who"] is not None and row["what"] is not None and not (row["amount"] is None or isnan(row["amount"])):
            amount = max(-(10**9) * float(resolution), min(10**9 * float(resolution), row["amount"]))
            totals[row["what"], row["who"]] += floor(amount / float(resolution) + 0.5)
    scores = dict.fromkeys(domain, Fraction(0))
    for (item, _), total in totals.items():
        if item in scores:
            scores[item] += max(low / resolution, min(high / resolution, total)) * resolution
    return scores


def first_by_hash(places, most):
    """The definition: so many of a user's items, by a hash that is made of the places of all of them."""
    multiplier = sum(places.values()) * 1_327_217_885 % 2**31 | 1
    return sorted(places, key=lambda item: (multiplier * (places[item] + 1) % 2**31, item))[:most]


def kept(rows, domain, most):
    """The definition of max_items_per_user: the rows of the items that each user keeps."""
    place, touched = {item: i for i, item in enumerate(sorted(domain))}, defaultdict(set)
    for row in rows:
        if row["who"] is not None and row["what"] in place:
            touched[row["who"]].add(row["what"])
    chosen = {}
    for who, items in touched.items():
        chosen[who] = first_by_hash({item: place[item] for item in items}, most)
    return [row for row in rows if row["what"] in chosen.get(row["who"], ())]


def ranking(source):
    """Every item with its score, by rank: all that a source can say."""
    tally = source.tally()
    try:
        items = source.items(np.arange(tally.d))
        return [(tally.exact(rank), item) for rank, item in enumerate(items)]
    finally:
        source.close()


def expected(scores):
    return sorted(((score, item) for item, score in scores.items()), key=lambda pair: (-pair[0], pair[1]))


def moved(events_on, engine, case, **options):
    """How far one more user moves each score, whatever all the rows of this user are: within the sensitivity."""
    rows, events, domain = case
    extra = [{**row, "who": "the new one"} for row in rows[:60] if row["what"] is not None]
    more = pa.concat_tables([events, pa.Table.from_pylist(extra, events.schema)])
    ranked = []
    for table in (events, more):
        source = events_on(engine, table, domain, **options)
        ranked.append({item: score for score, item in ranking(source)})
    moves = [ranked[1][item] - ranked[0][item] for item in domain]
    assert all(-source.sensitivity.down <= move <= source.sensitivity.up for move in moves)
    return moves


def as_array(scores, in_order=False):
    """The reference source: equal scores rank by position from the end, so the items are laid out backwards.

    Canonical leaves open which of some ranks are taken, and in an array they are found in the order of positions.
    """
    items = [item for _, item in expected(scores)] if in_order else sorted(scores, reverse=True)
    return array_source([scores[item] for item in items], items)


@pytest.mark.corners
@pytest.mark.parametrize("kind", ["string", "integer", "date", "boolean"])
@pytest.mark.parametrize("engine", ENGINES)
def test_counts_are_those_of_the_definition(engine, kind, events_on):
    rows, events, domain = generated(1, kind)
    source = events_on(engine, events, domain)
    scores = counted(rows, domain)
    assert source.d == len(domain)
    assert source.sensitivity == discreet.Sensitivity(0, 1)
    assert ranking(source) == expected(scores)
    # A query on Spark takes seconds: one mechanism is enough there, because all read the same tally.
    mechanisms = (discreet.OneShot("gumbel"), discreet.Canonical(), discreet.Joint())
    for mechanism in mechanisms[: 1 if engine == "spark" else 3]:
        releases = [
            discreet.top_k(each, min(5, len(domain) - 1), "0.3", mechanism=mechanism, rng=random.Random(7))
            for each in (source, as_array(scores, in_order=mechanism.name == "canonical"))
        ]
        assert releases[0].items == releases[1].items
        assert releases[0].order == releases[1].order


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_sums_are_those_of_the_definition(engine, events_on):
    rows, events, domain = generated(2, "string")
    source = events_on(engine, events, domain, **SUMS)
    assert source.sensitivity == discreet.Sensitivity("1.5", 4)
    assert ranking(source) == expected(summed(rows, domain, *STEPS))


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_range_of_numbers_needs_no_list(engine, events_on):
    rows, events, _ = generated(3, "integer")
    source = events_on(engine, events, discreet.integers(-10, 130))
    assert ranking(source) == expected(counted(rows, range(-10, 131)))
    values = {"value": "amount", "clip": (-2, 2)}
    signed = events_on(engine, events, discreet.integers(0, 130), **values)
    assert ranking(signed) == expected(summed(rows, range(131), Fraction(-2), Fraction(2), Fraction(1)))


@pytest.mark.some(4)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_filtered_by_where(engine, events_on):
    rows, events, domain = generated(4, "string")
    source = events_on(engine, events, domain, where="stars >= 4 AND who <> 'eve'")
    scores = counted(rows, domain, lambda row: row["stars"] >= 4 and row["who"] != "eve")
    assert ranking(source) == expected(scores)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", *LONG_ON_SERVERS])
def test_adding_a_user_moves_every_score_within_the_sensitivity(engine, events_on):
    """On each engine, with and without values."""
    case = generated(5, "string")
    for options in ({}, {"value": "amount", "clip": (-1, 3), "resolution": "0.5"}, {"where": "stars < 4"}):
        assert any(moved(events_on, engine, case, **options))


@pytest.mark.some(3)
@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("kind", ["string", "integer", "date", "boolean"])
@pytest.mark.parametrize("engine", LOCAL)
def test_a_user_keeps_the_items_of_the_definition(engine, kind, most, events_on):
    check_kept(events_on, engine, kind, most)


@pytest.mark.parametrize("kind", ["string", "integer"])
@pytest.mark.parametrize("engine", LONG_ON_SERVERS)
def test_a_user_keeps_the_items_of_the_definition_on_servers(engine, kind, events_on):
    check_kept(events_on, engine, kind, 2)


def check_kept(events_on, engine, kind, most):
    rows, events, domain = generated(7, kind)
    source = events_on(engine, events, domain, where="stars >= 2", max_items_per_user=np.int64(most))
    passing = [row for row in rows if row["stars"] >= 2]
    assert ranking(source) == expected(counted(kept(passing, domain, most), domain))
    assert (source.sensitivity, source.max_items_per_user) == (discreet.Sensitivity(0, 1), most)


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_sums_are_of_kept_items(engine, events_on):
    rows, events, domain = generated(8, "string")
    source = events_on(engine, events, domain, **SUMS, max_items_per_user=2)
    # A row without a value is none.
    valued = kept([row for row in rows if row["amount"] is not None and not isnan(row["amount"])], domain, 2)
    assert ranking(source) == expected(summed(valued, domain, *STEPS))
    assert source.grid == Fraction(1, 4)


@pytest.mark.some(3)
@pytest.mark.parametrize("options", [{}, SUMS], ids=["counts", "sums"])
@pytest.mark.parametrize("engine", ENGINES)
def test_scores_with_a_bound_stand_beside_those_without(engine, options, events_on):
    """For a plan: both scores of each item, and which items are the best by the scores without the bound."""
    rows, events, domain = generated(11, "string")
    source = events_on(engine, events, domain, **options)
    assert source.can_be_clipped
    if options:
        rows = [row for row in rows if row["amount"] is not None and not isnan(row["amount"])]
    both = [
        summed(some, domain, *STEPS) if options else counted(some, domain) for some in (rows, kept(rows, domain, 2))
    ]
    clipped = source.count_clipped(2)
    tally, truth = clipped.tally(), clipped.truth
    assert clipped.max_items_per_user == 2
    assert not clipped.keeps_all
    pairs = [(tally.exact(i), truth.tally.exact(rank)) for i, rank in enumerate(truth.standings.tolist())]
    assert sorted(truth.standings) == list(range(len(domain)))
    assert sorted(pairs) == sorted((both[1][item], both[0][item]) for item in domain)


@pytest.mark.parametrize("engine", ["arrow", "sqlite", POSTGRES])
@pytest.mark.parametrize("ends", [(-10, 130), (-(2**63), -1), (2**62, 2**63 - 1)], ids=["small", "lowest", "highest"])
def test_items_of_a_range_are_kept_by_the_definition(engine, ends, events_on):
    numbers = [
        ends[0],
        ends[0] + 1,
        ends[1],
        ends[1] - 1,
        *range((ends[0] + ends[1]) // 2, (ends[0] + ends[1]) // 2 + 9),
    ]
    rng = random.Random(9)
    pairs = sorted({(rng.randrange(40), rng.choice(numbers)) for _ in range(200)})
    events = pa.table({"who": [who for who, _ in pairs], "what": [what for _, what in pairs]})
    source = events_on(engine, events, discreet.integers(*ends), max_items_per_user=2)
    scores = dict.fromkeys(numbers, Fraction(0))
    for user in {who for who, _ in pairs}:
        for item in first_by_hash({what: what - ends[0] for who, what in pairs if who == user}, 2):
            scores[item] += 1
    tally = source.tally()
    touched = sum(score > 0 for score in scores.values())
    found = dict(zip(source.items(np.arange(touched)), (tally.exact(rank) for rank in range(touched)), strict=True))
    source.close()
    assert found == {item: score for item, score in scores.items() if score}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "sqlite", POSTGRES])
@pytest.mark.parametrize(
    "options", [{}, {"value": "amount", "clip": (-1, 3), "resolution": "0.5"}], ids=["users", "sums"]
)
def test_adding_a_user_moves_few_scores_and_those_within_the_sensitivity(engine, options, events_on):
    moves = moved(events_on, engine, generated(10, "string"), max_items_per_user=3, **options)
    assert 1 <= sum(move != 0 for move in moves) <= 3


@pytest.mark.parametrize("engine", ["arrow", CLICKHOUSE, *LONG_ON_SERVERS])
def test_labels_of_the_domain_are_shown(engine, events_on):
    rows, events, _ = generated(6, "integer")
    titles = {i: f"Title {i:03}" for i in range(100, 125)}
    domain = pa.table({"what": list(titles), "title": list(titles.values())})
    source = events_on(engine, events, domain, label="title")
    scores = counted(rows, titles)
    assert ranking(source) == [(score, titles[item]) for score, item in expected(scores)]


texts = st.sampled_from([item for item in ODD if item != ""]) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6
)
amounts = st.none() | st.floats(allow_nan=False, width=64) | st.sampled_from([0.05, 0.15, -0.25, 1e18, -1e18])
event = st.fixed_dictionaries({"who": st.none() | texts, "what": st.none() | texts, "amount": amounts})


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", ["arrow", "parquet", "sqlite", POSTGRES])
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(event, min_size=1, max_size=25), extra=st.lists(texts, min_size=1, max_size=5))
def test_generated_events_have_the_scores_of_the_definition(engine, tmp_path, request, rows, extra):
    schema = pa.schema([("who", pa.string()), ("what", pa.string()), ("amount", pa.float64())])
    events = pa.Table.from_pylist(rows, schema)
    domain = sorted({*extra, *(row["what"] for row in rows[::2] if row["what"] is not None)})
    given_as = on(engine, events, tmp_path, request)
    source = discreet.events(**given_as, user="who", item="what", domain=domain)
    assert ranking(source) == expected(counted(rows, domain))
    low, high, unit = Fraction(-2), Fraction(5), Fraction(1, 10)
    source = discreet.events(
        **given_as, user="who", item="what", domain=domain, value="amount", clip=(low, high), resolution=unit
    )
    assert ranking(source) == expected(summed(rows, domain, low, high, unit))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("tables", [2, 30])
def test_many_tables_in_one_query_on_spark(tables, tmp_path, request):
    """Several generated tables at once: a table's number goes in front of its items and its users."""
    packed, everything, scores = [], [], {}
    for case in range(tables):
        rows, _, domain = generated(100 + case, "string")
        scores |= {f"{case}:{item}": score for item, score in counted(rows, domain).items()}
        everything += [f"{case}:{item}" for item in domain]
        for row in rows:
            what = None if row["what"] is None else f"{case}:{row['what']}"
            packed.append({"who": row["who"], "what": what, "amount": row["amount"], "stars": row["stars"]})
    schema = pa.schema([("who", pa.string()), ("what", pa.string()), ("amount", pa.float64()), ("stars", pa.int64())])
    frame = on("spark", pa.Table.from_pylist(packed, schema), tmp_path, request)
    source = discreet.events(**frame, user="who", item="what", domain=everything)
    assert ranking(source) == expected(scores)
