"""Recall against full enumeration by the definition, against draws, and rows of classes against all of them."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import discreet
from discreet.analysis import JointOverSets, canonical_odds
from discreet.analysis.canonical_odds import Rows, cells_of
from discreet.analysis.goals import Hits, count_right_ranks, goals, is_reached
from discreet.evidence import definition
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import to_dict
from discreet.sources.arrays.array import array_source

COMPUTED = (
    [discreet.Canonical(gamma) for gamma in ("0", "1/2", "3/4", "1")]
    + [discreet.Canonical(ceil=True), discreet.Peeling(), discreet.Joint()]
    + [discreet.OneShot(noise) for noise in NOISES]
)
SCORES = [[9, 7, 7, 6, 2, 0], [3, 3, 3, 3, 1, 0], [8, 5, 5, 5, 5, 5], [40, 20, 3, 2, 1, 0]]


@cache
def chances(mechanism, scores, k, epsilon):
    """The probability of every set, by the second implementation."""
    law = definition.law(
        to_dict(mechanism), scores, k, Fraction(epsilon), as_sets=isinstance(mechanism, discreet.OneShot)
    )
    sets = {}
    for outcome, log_chance in law.items():
        sets[frozenset(outcome)] = sets.get(frozenset(outcome), 0.0) + math.exp(log_chance)
    return sets


def enumerated(mechanism, scores, k, epsilon, least=None):
    """The mean share of items that score at least as much as the k-th, or how likely so many of them are."""
    kth = sorted(scores, reverse=True)[k - 1]
    law = chances(mechanism, tuple(scores), k, epsilon)
    hits = {items: sum(scores[i] >= kth for i in items) for items in law}
    return sum(chance * (hits[y] / k if least is None else hits[y] >= least) for y, chance in law.items())


@pytest.mark.some(3)
@pytest.mark.parametrize("mechanism", COMPUTED, ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_recall_is_what_enumeration_gives(mechanism, scores):
    for k, epsilon in [(1, "1/2"), (2, 2), (4, 3)]:
        found = discreet.utility(scores, k, epsilon, mechanism)
        assert found.confidence is None
        assert found.error <= 1e-9
        assert found.recall == pytest.approx(enumerated(mechanism, scores, k, epsilon), abs=found.error + 1e-11)
        for least in range(1, k + 1):
            share = discreet.utility(scores, k, epsilon, mechanism, share=Fraction(least, k))
            exactly = enumerated(mechanism, scores, k, epsilon, least)
            assert share.recall == pytest.approx(exactly, abs=share.error + 1e-11), (k, least)
            assert share.share == Fraction(least, k)


def test_an_item_tied_with_the_kth_is_right():
    tally = array_source(np.array([5, 5, 3, 3, 3, 1])).tally()
    assert count_right_ranks(tally, 3) == 5
    assert goals(tally, 3)["recall"] == Hits(5)
    assert goals(tally, 3, Fraction(1, 2))["recall"] == Hits(5, 2)
    assert is_reached(Hits(5), np.array([0, 4, 5]), 3) == pytest.approx(2 / 3)
    assert is_reached(Hits(5, 2), np.array([0, 4, 5]), 3) == 1.0
    assert is_reached(Hits(5, 3), np.array([0, 4, 5]), 3) == 0.0
    assert discreet.utility([5, 5, 5, 5], 2, "0.01").recall == pytest.approx(1.0)


def test_what_is_drawn_covers_what_enumeration_gives():
    mechanism, scores, k = discreet.Canonical(noise="laplace"), [9, 7, 7, 6, 2], 2
    for least, share in ((None, None), (2, 1)):
        found = discreet.utility(scores, k, 1, mechanism, share=share, width="0.6", confidence="0.99999")
        assert abs(found.recall - enumerated(mechanism, scores, k, 1, least)) <= found.error <= 0.301


def test_joint_over_sets_has_no_recall():
    assert math.isnan(discreet.utility([3, 2, 1], 1, 1, JointOverSets()).recall)
    assert discreet.utility([3, 2, 1], 1, 1, JointOverSets()).top > 0.3
    table = discreet.compare([9, 7, 6, 1], 2, mechanisms=[JointOverSets()])
    assert table.choices[0].needs["recall"] is None


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (discreet.OneShot(), "1/10"),
        (discreet.OneShot("laplace"), "1/10"),
        (discreet.Canonical(), "0.02"),
        (discreet.Joint(), "0.05"),
    ],
    ids=str,
)
def test_draws_on_a_larger_input_agree(mechanism, epsilon):
    """At alpha = 1e-5 by Hoeffding: 300 draws, off by at most 0.14; a recall of the wrong ranks would be seen."""
    scores, k, n = (2e4 / np.arange(1, 501)).astype(np.int64), 20, 300
    found, most = (discreet.utility(scores, k, epsilon, mechanism, share=share) for share in (None, "0.75"))
    tally = array_source(scores).tally()
    prepared = mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
    entropy = discreet.exact.entropy.as_entropy(np.random.default_rng(6))
    hits = np.array([(prepared.draw(entropy) < k).sum() for _ in range(n)])
    assert abs(hits.mean() / k - found.recall) < 0.14
    assert abs((hits >= 15).mean() - most.recall) < 0.14
    assert 0.1 < found.recall < 0.97


@pytest.mark.corners
@pytest.mark.parametrize("gamma", ["0", "1/2", "1"])
@pytest.mark.parametrize("epsilon", ["0.0002", "0.01", "1"])
@pytest.mark.parametrize("goal", [1e-9, 1e-5, 1e-3])
def test_long_rows_say_what_single_classes_say(gamma, epsilon, goal):
    d, k = 3000, 12
    scores = (1e4 / np.arange(1, d + 1) ** 0.8).astype(np.int64)
    tally = array_source(scores).tally()
    prepared = discreet.Canonical(gamma).prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
    wanted = {**goals(tally, k), "most": Hits(k, 9), "tied": Hits(1500), "few": Hits(1500, 2)}
    shares_alone = {name: one for name, one in wanted.items() if getattr(one, "least", None) is None}
    cells = cells_of(prepared)
    # Where nothing counts how many are wrong, ties are rows too.
    for asked in (wanted, shares_alone):
        found = Rows.of(prepared, asked, goal)
        assert found.error <= 3 * goal
        assert len(found.h) < len(cells.h) or len(cells.h) < 5000
        for name, one in asked.items():
            rates = cell_rates(one, cells, k)
            exactly = cells.top + float((cells.probability * rates).sum())
            assert found.share(one) == pytest.approx(exactly, abs=found.error + cells.error), name


TIED = {
    "small": lambda made: (made.integers(0, 6, made.integers(20, 90)), int(made.integers(2, 12)), "1/2"),
    "counts": lambda made: (made.integers(0, 300, 4000), int(made.integers(5, 60)), "1/10"),
    "tail": lambda made: ((1e7 / np.arange(1, 60_001) ** 1.05).astype(np.int64), int(made.integers(400, 700)), "1/20"),
    "floats": lambda made: (made.random(500), 20, "4"),
    "rationals": lambda made: ([Fraction(int(x), 7) for x in made.integers(0, 40, 120)], 9, "1/2"),
}


@pytest.mark.parametrize("shape", TIED)
@pytest.mark.parametrize("seed", range(4))
def test_ties_taken_together_say_what_they_say_one_by_one(shape, seed, monkeypatch):
    scores, k, epsilon = TIED[shape](np.random.default_rng(seed))
    tally = array_source(scores).tally()
    prepared = discreet.Canonical().prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
    wanted = goals(tally, k)
    together = Rows.of(prepared, wanted, 1e-9)
    monkeypatch.setattr(canonical_odds, "_list_runs", lambda corners, tally: canonical_odds._list_rows(corners))
    apart = Rows.of(prepared, wanted, 1e-9)
    assert (len(together.h) < len(apart.h)) == (shape != "floats")
    # Rounding is all that differs, and there is no more of it.
    assert together.error <= apart.error + 1e-13
    rounding = min(1e-11, together.error + apart.error)
    for name, one in wanted.items():
        assert together.share(one) == pytest.approx(apart.share(one), abs=rounding), name
    assert together.top == pytest.approx(apart.top, abs=rounding)


def cell_rates(wanted, cells, k):
    """What each class counts for: hypergeometric, by exact binomials of floats."""
    if not isinstance(wanted, Hits):
        return ((cells.h >= wanted[0]) & (cells.t < wanted[1])).astype(float)
    from scipy.stats import hypergeom

    h, t, right = cells.h, cells.t, wanted.right
    n, between = k - 1 - h, t - h - 1
    wrong = np.clip(t - right, 0, between)
    if wanted.least is None:
        return np.where(t < right, 1.0, 1.0 - (1 + n * wrong / np.maximum(between, 1)) / k)
    few = hypergeom.cdf(k - wanted.least - 1, np.maximum(between, 1), np.minimum(wrong, between), n)
    return np.where(t < right, 1.0, np.where(n == 0, float(k > wanted.least), few))


def test_epsilon_for_recall_is_where_recall_is_reached():
    scores = (2000 / np.arange(1, 61)).astype(np.int64)
    for mechanism in (discreet.Canonical(), discreet.OneShot(), discreet.Joint()):
        for share in (None, "0.8"):
            needed = discreet.epsilon_for(scores, 5, goal="recall", probability="0.9", share=share, mechanism=mechanism)
            assert discreet.utility(scores, 5, needed, mechanism, share=share).recall >= 0.9
            assert discreet.utility(scores, 5, needed * Fraction(998, 1000), mechanism, share=share).recall < 0.9


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"goal": "recall", "share": 0}, "share must be above 0 and at most 1, not 0"),
        ({"goal": "recall", "share": "1.1"}, "share must be above 0 and at most 1, not '1.1'"),
        ({"goal": "top", "share": "0.9"}, "share must be left out with the goal top"),
    ],
)
def test_bad_use_is_one_sentence(options, complaint):
    with pytest.raises(discreet.Error, match=complaint):
        discreet.epsilon_for([3, 2, 1], 2, **options)
