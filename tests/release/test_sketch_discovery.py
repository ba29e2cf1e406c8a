"""Sketches of items that nobody listed: read alike on every engine, no further apart than their noise allows for."""

import json
import random
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.release.sketch_request import make_sketch_request, read_steps
from effort import examples
from engines import ENGINES, on

EXACT = 10**7
"""An epsilon with so little noise that every score is as it is."""


def make_table(rows):
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("who", "what", "amount"))}
    types = {"who": pa.string(), "what": pa.string(), "amount": pa.int64()}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()})


def make_rows(seed, rows=300):
    rng = random.Random(seed)
    return [
        (f"u{rng.randrange(40)}", rng.choice([None, *(f"movie {i}" for i in range(15))]), rng.randrange(-9, 10))
        for _ in range(rows)
    ]


def open_events(given, most=1, **options):
    terms = options.pop("terms", {})
    domain = discreet.discovered("1e-8", most, **{"method": "laplace", **terms})
    table = given if isinstance(given, dict) else {"table": given}
    return discreet.events(**table, user="who", item="what", domain=domain, **options)


def define_scores(rows, clip=None):
    """The scores of all items: their users, or the sum of the clipped totals of each; then zeros without end."""
    totals = defaultdict(int)
    for who, what, amount in rows:
        if what is not None:
            totals[who, what] += amount
    scores = defaultdict(int)
    for (_, what), total in totals.items():
        scores[what] += 1 if clip is None else min(max(total, clip[0]), clip[1])
    return sorted((max(0, score) for score in scores.values()), reverse=True)


def at(scores, ranks):
    return [scores[rank - 1] if rank <= len(scores) else 0 for rank in ranks]


@pytest.mark.some(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("clip", [None, (-5, 12)])
def test_every_engine_reads_the_same_scores(engine, clip, tmp_path, request):
    rows = make_rows(1)
    given = on(engine, make_table(rows), tmp_path, request)
    source = open_events(given, **({} if clip is None else {"value": "amount", "clip": clip}))
    ranks = (1, 2, 5, 14, 15, 16, 40)
    curve = discreet.sketch(source, EXACT, ranks, rng=random.Random(0))
    assert curve.scores == at(define_scores(rows, clip), ranks)
    assert curve.scores[-1] == 0
    assert curve.domain_size is None


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_the_bound_of_discovery_is_not_in_the_noise(method):
    rows = make_rows(2)
    curves = [
        discreet.sketch(open_events(make_table(rows), most, terms={"method": method}), 1, rng=random.Random(3))
        for most in (1, 5, 1000)
    ]
    assert len({curve.noisy for curve in curves}) == 1
    assert [curve.terms.max_items_per_user for curve in curves] == [1, 5, 1000]
    assert curves[0].ranks == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    # A user may move the scores at all ranks.
    source = open_events(make_table(rows), 1)
    assert make_sketch_request(source, 1).noise.rate == Fraction(1, 10)


CLIPS = st.sampled_from([None, (0, 3), (-2, 3), (-3, 1), (-4, -1)])
PEOPLE = st.dictionaries(st.sampled_from("abcde"), st.integers(-5, 5), max_size=5)


@settings(max_examples=examples(40))
@given(
    people=st.lists(PEOPLE, max_size=4),
    gone=PEOPLE,
    new=PEOPLE,
    clip=CLIPS,
    ranks=st.sets(st.integers(1, 7), min_size=1).map(sorted),
    adjacency=st.sampled_from(["add-remove", "swap"]),
)
def test_no_neighbour_moves_a_sketch_by_more_than_its_noise_allows_for(people, gone, new, clip, ranks, adjacency):
    def ask(last):
        everybody = [*people, last]
        rows = [(f"u{i}", item, amount) for i, each in enumerate(everybody) for item, amount in each.items()]
        # One row of an item that nobody touched keeps the column's type, and is a gap.
        table = make_table([*rows, ("nobody", None, 0)])
        summed = {} if clip is None else {"value": "amount", "clip": clip}
        request = make_sketch_request(open_events(table, adjacency=adjacency, **summed), 1, ranks)
        steps = read_steps(request)
        assert steps == at(define_scores(rows, clip), ranks)
        return steps, request.noise.rate

    (before, rate), (after, _) = ask(gone), ask(new if adjacency == "swap" else {})
    assert sum(abs(x - y) for x, y in zip(before, after, strict=True)) * rate <= 1


def test_a_user_of_every_item_moves_a_sketch_as_far_as_the_noise_allows_for():
    ranks = [1, 2, 3]
    rows = [("ann", item, 1) for item in "abc"]
    one = make_sketch_request(open_events(make_table(rows)), 1, ranks)
    other = make_sketch_request(open_events(make_table([("ann", None, 1)])), 1, ranks)
    moved = sum(abs(x - y) for x, y in zip(read_steps(one), read_steps(other), strict=True))
    assert moved * one.noise.rate == 1


def test_it_reads_back_from_json():
    terms = {"epsilon": "1/3", "kind": "string", "spelling": "both", "method": "gaussian"}
    curve = discreet.sketch(open_events(make_table(make_rows(4)), 7, terms=terms), 1)
    data = json.loads(curve.to_json())
    assert data["d"] is None
    assert data["discovered"] == {
        "delta": "1/100000000", "epsilon": "1/3", "kind": "string", "max_items_per_user": 7,
        "method": "gaussian", "spelling": "both",
    }  # fmt: skip
    again = discreet.Sketch.from_json(curve.to_json())
    assert again == curve
    assert again.terms.plan(5, 1) == curve.terms.plan(5, 1)
    assert all(one >= other for one, other in pairwise(curve.scores))
    assert curve.scores[-1] >= 0


@pytest.mark.parametrize(
    "change",
    [
        {"d": 1000}, {"discovered": None}, {"discovered": {"delta": "1e-8"}}, {"discovered": {"kind": "float"}},
        {"discovered": 3}, {"ranks": [1, 2, 5, 10, 20, 50, 100, 200, 500, 10**6 + 1]},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_sketch_is_refused(change):
    data = discreet.sketch(open_events(make_table(make_rows(5))), 1).to_dict()
    if isinstance(change.get("discovered"), dict) and "kind" in change["discovered"]:
        change = {"discovered": {**data["discovered"], **change["discovered"]}}
    with pytest.raises(discreet.Error, match=r"^data must be a sketch as Sketch\.to_dict or to_json writes it"):
        discreet.Sketch.from_dict({**data, **change})


def test_it_costs_no_delta(tmp_path):
    source = open_events(make_table(make_rows(6)))
    ledger = discreet.Ledger.create(tmp_path / "plain.db", epsilon=3, unit="users")
    first = discreet.sketch(source, "0.5", ledger=ledger, purpose="planning", request_id="curve")
    assert ledger.spent == Fraction(1, 2)
    assert ledger.composition.delta == 0
    (entry,) = ledger.history()
    assert (entry.d, entry.k, entry.is_sketch) == (None, 10, True)
    again = discreet.sketch(source, "0.5", ledger=ledger, purpose="planning", request_id="curve")
    assert (again, ledger.spent) == (first, Fraction(1, 2))
    # The terms of the planned release are in the sketch, so that others are another query.
    with pytest.raises(discreet.Error, match="request_id"):
        discreet.sketch(open_events(make_table(make_rows(6)), 2), "0.5", ledger=ledger, request_id="curve")
    assert first.guarantee.delta == 0
    assert "items that nobody listed" in first.statement(ledger)
    assert "Scores at 10 ranks of items that nobody listed, noise within" in str(first)
    assert "items that nobody listed" in repr(first)
    assert "items that nobody listed" in first._repr_html_()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"ranks": [0, 3]}, "ranks must be a whole number from 1 to 1,000,000"),
        ({"ranks": [3, 10**6 + 1]}, "ranks must be a whole number from 1 to 1,000,000"),
        ({"grid": 1}, "grid must be left out, because the scores have their own"),
        ({"sensitivity": discreet.Sensitivity(0, 1)}, "sensitivity must be left out, because the source knows its own"),
        ({"adjacency": "swap"}, "adjacency must be that of the source"),
    ],
)
def test_bad_use_is_one_sentence(options, complaint):
    with pytest.raises(discreet.Error) as caught:
        discreet.sketch(open_events(make_table(make_rows(7))), **{"epsilon": 1, **options})
    assert str(caught.value).startswith(complaint)


def test_groups_are_refused():
    split = {"by": "amount", "groups": [1, 2], "each_user": "one"}
    with pytest.raises(discreet.Error, match="scores must be of one list of items for a sketch, not of several groups"):
        discreet.sketch(open_events(make_table(make_rows(8)), **split), 1)


def test_nothing_is_released_from_it():
    curve = discreet.sketch(open_events(make_table(make_rows(9))), 1)
    with pytest.raises(discreet.Error, match="scores must have items to release"):
        discreet.top_k(curve, 3, 1)
    with pytest.raises(discreet.Error, match="scores must have items to release"):
        discreet.sketch(curve, 1)
