"""Attacks on the order in which released items come: a list that echoes its input tells the ranks."""

import itertools
import random
from fractions import Fraction

import pandas as pd
import pytest
from flint import arb

import discreet
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.sources.arrays.array import array_source

CATALOGUE = ["alien", "dune", "heat", "solaris", "stalker"]
"""Public: a list of items read off the views would tell by itself that somebody saw each."""

SETS = [discreet.Canonical(), discreet.Canonical(gamma=1), discreet.Canonical(noise="laplace")]
SEQUENCES = [discreet.OneShot(), discreet.OneShot("gumbel"), discreet.Peeling("laplace"), discreet.Joint()]


def counted(views):
    """How often each movie of the catalogue was seen; `value_counts` has the most seen first."""
    seen = pd.Series(views).value_counts()
    assert set(seen.index) == set(CATALOGUE)
    return seen


def naive_release(counts, k, epsilon, rng):
    """A set of k movies by the exponential mechanism, k rounds of it, listed as they come in the input."""
    chosen = set()
    while len(chosen) < k:
        left = [item for item in counts.index if item not in chosen]
        best = max(counts[item] for item in left)
        weights = [2.718281828459045 ** (float(epsilon) / k * float(counts[item] - best)) for item in left]
        chosen |= set(rng.choices(left, weights))
    return [item for item in counts.index if item in chosen]


VIEWS = {"alien": 40, "dune": 40, "heat": 9, "solaris": 8, "stalker": 7}


def views(one_more):
    """Views of movies, and those of one user more."""
    return [item for item, n in {**VIEWS, one_more: VIEWS[one_more] + 1}.items() for _ in range(n)]


def test_a_value_counts_echoes_the_ranks():
    """However little epsilon is spent on the set, the order of the naive list is that of the exact scores, always."""
    rng = random.Random(1)
    echoes = set()
    for one_more in ("alien", "dune"):
        for _ in range(200):
            listed = naive_release(counted(views(one_more)), 4, "0.000001", rng)
            if {"alien", "dune"} <= set(listed):
                echoes.add((one_more, min("alien", "dune", key=listed.index)))
    # Which of the two comes first tells whose 41st viewer there is, without any noise.
    assert echoes == {("alien", "alien"), ("dune", "dune")}
    for mechanism in SETS:
        for one_more in ("alien", "dune"):
            for seed in range(20):
                release = discreet.top_k(
                    counted(views(one_more)), 4, "0.000001", mechanism=mechanism, rng=random.Random(seed)
                )
                assert release.items == sorted(release.items)
                assert release.order is None


@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", SETS + SEQUENCES, ids=str)
def test_the_order_of_the_input_reaches_no_release(mechanism):
    """All 120 orders of the same scores give the same release, byte by byte; the naive list has 6 different ones."""
    scores = {"alien": 900, "dune": 700, "heat": 500, "solaris": 3, "stalker": 1}
    orders = [dict(order) for order in itertools.permutations(scores.items())]
    naive = {tuple(naive_release(pd.Series(order), 3, 100, random.Random(1))) for order in orders}
    assert len(naive) == 6
    exact = {discreet.top_k(pd.Series(order), 3, 100, mechanism=mechanism).to_json() for order in orders}
    assert len(exact) == 1
    release = discreet.Release.from_json(exact.pop())
    assert release.items == ["alien", "dune", "heat"]
    assert release.order == (["alien", "dune", "heat"] if mechanism.ordered else None)


@pytest.mark.parametrize("mechanism", SEQUENCES, ids=str)
def test_an_order_is_released_only_where_epsilon_covers_it(mechanism):
    """No sequence changes its chance by more than e^epsilon between neighbours; of the naive lists some vanish."""
    rng = random.Random(2)
    here, there = (
        {
            tuple(naive_release(pd.Series(scores).sort_values(ascending=False, kind="stable"), 2, 1, rng))
            for _ in range(300)
        }
        for scores in ({"a": 3, "b": 3, "c": 0}, {"a": 3, "b": 4, "c": 0})
    )
    assert ("a", "b") in here - there
    assert ("b", "a") in there - here
    scores = [3, 2, 2]
    with precision(112):
        laws = {moved: by_position(mechanism, scores, moved) for moved in itertools.product((0, 1), repeat=3)}
        still = laws[0, 0, 0]
        for moved in laws.values():
            assert all(abs(moved[sequence] - still[sequence]) <= 1 + arb("1e-9") for sequence in still)


def by_position(mechanism, scores, moved):
    """The law over sequences of positions of the input, where one user has moved the scores."""
    source = array_source([score + move for score, move in zip(scores, moved, strict=True)])
    ready = mechanism.prepare(source.tally(), 2, Fraction(1), discreet.Sensitivity())
    places = source.items(pd.RangeIndex(3).to_numpy())
    return {tuple(places[rank] for rank in ranks): chance for ranks, chance in law(ready).items()}


@pytest.mark.parametrize("mechanism", SETS + SEQUENCES, ids=str)
def test_all_items_come_without_their_order(mechanism):
    """With k = d the naive list is the whole ranking, free of noise; here it is the catalogue, and costs nothing."""
    counts = counted(views("dune"))
    assert naive_release(counts, 5, 1, random.Random(1)) == ["dune", "alien", "heat", "solaris", "stalker"]
    release = discreet.top_k(counts, 5, 1, mechanism=mechanism)
    assert release.items == CATALOGUE
    assert release.order is None
    assert release.guarantee.epsilon == 0
