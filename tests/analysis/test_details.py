"""Classes, single sets and averages, against full enumeration of every set."""

from fractions import Fraction
from itertools import combinations
from math import exp

import numpy as np
import pytest

import discreet
from discreet.analysis import JointOverSets
from discreet.analysis.goals import describe_ranks
from discreet.evidence import definition
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import to_dict
from discreet.sources.arrays.array import array_source

CANONICAL = [discreet.Canonical(gamma) for gamma in ("0", "1/3", "1/2", "1")] + [discreet.Canonical(ceil=True)]
SCORES = [[9, 7, 7, 6, 2, 0], [3, 3, 3, 3, 1, 0], [8, 5, 4, 4, 2, 1]]


def sets(mechanism, scores, k, epsilon):
    """The exact probability of every set of ranks."""
    with precision(112):
        chances = law(mechanism.prepare(array_source(scores).tally(), k, Fraction(epsilon), discreet.Sensitivity()))
    found = {}
    for ranks, log_chance in chances.items():
        found[tuple(sorted(ranks))] = found.get(tuple(sorted(ranks)), 0.0) + float(log_chance.exp())
    return found


def at_ranks(scores, ranks):
    """The positions of the items at some ranks."""
    return array_source(scores).items(np.array(ranks))


@pytest.mark.parametrize("mechanism", CANONICAL, ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_classes_are_those_of_enumeration(mechanism, scores):
    found = discreet.class_probabilities(scores, 3, "1/2", mechanism)
    by_class = {}
    for ranks, chance in sets(mechanism, scores, 3, "1/2").items():
        cell = describe_ranks(np.array(ranks))
        by_class[cell] = by_class.get(cell, 0.0) + chance
    listed = dict(zip(zip(found.h.tolist(), found.t.tolist(), strict=True), found.probability.tolist(), strict=True))
    assert found.error < 1e-9
    assert listed == pytest.approx(by_class, abs=1e-9)
    assert "NOT private" in str(found)


@pytest.mark.corners
@pytest.mark.parametrize(
    "mechanism",
    [*CANONICAL, discreet.Joint(), discreet.Peeling(), *(discreet.OneShot(noise) for noise in NOISES)],
    ids=str,
)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_every_set_has_its_probability(mechanism, scores):
    for ranks, chance in sets(mechanism, scores, 2, 2).items():
        found = discreet.subset_probability(scores, at_ranks(scores, ranks), 2, mechanism)
        assert found.value == pytest.approx(chance, abs=found.error + 1e-12)
        assert found.error < 1e-8


def test_every_set_of_joint_over_sets_has_its_probability():
    scores, k = [8, 5, 4, 4, 2, 1], 3
    ordered = sorted(scores, reverse=True)
    weights = {
        ranks: np.exp(-0.5 * max(ordered[place] - ordered[rank] for place, rank in enumerate(ranks)))
        for ranks in combinations(range(len(scores)), k)
    }
    for ranks, weight in weights.items():
        found = discreet.subset_probability(scores, at_ranks(scores, ranks), 1, JointOverSets())
        assert found.value == pytest.approx(weight / sum(weights.values()), abs=found.error + 1e-12)


@pytest.mark.parametrize("mechanism", CANONICAL, ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_averages_are_those_of_enumeration(mechanism, scores):
    k, ordered = 3, sorted(scores, reverse=True)
    found = discreet.expected(scores, k, "1/2", mechanism)
    chances = sets(mechanism, scores, k, "1/2").items()
    recall = sum(chance * sum(ordered[rank] >= ordered[k - 1] for rank in ranks) / k for ranks, chance in chances)
    error = sum(chance * (ordered[k - 1] - ordered[max(ranks)]) for ranks, chance in chances if max(ranks) >= k)
    assert found.recall == pytest.approx(recall, abs=1e-9)
    assert found.score_error == pytest.approx(error, abs=1e-8)
    assert found.confidence is None


@pytest.mark.long
def test_averages_of_draws_cover_those_of_enumeration():
    scores, k = [9, 7, 7, 6, 2], 2
    mechanism = discreet.Peeling("laplace")
    found = discreet.expected(scores, k, 1, mechanism, width="0.2", confidence="0.9999999")
    chances = sets(mechanism, scores, k, 1).items()
    recall = sum(chance * len(set(ranks) & {0, 1, 2}) / k for ranks, chance in chances)
    assert abs(found.recall - recall) <= found.recall_off <= 0.1
    assert found.confidence == Fraction(9999999, 10000000)
    assert "with confidence 0.9999999" in str(found)
    assert "NOT private" in str(found)


def test_the_order_of_draws_covers_that_of_enumeration():
    """Places and tau by the law of every sequence, with two equal scores."""
    scores, k, mechanism = [9, 7, 7, 2], 3, discreet.Peeling()
    found = discreet.expected(scores, k, 2, mechanism, width="0.2", confidence="0.9999999")
    sequences = definition.law(to_dict(mechanism), scores, k, Fraction(2))
    places = tau = 0.0
    for order, log_chance in sequences.items():
        drawn, chance = [scores[i] for i in order], exp(log_chance)
        places += chance * sum(a == b for a, b in zip(drawn, [9, 7, 7], strict=True)) / k
        tau += chance * sum(np.sign(a - b) for a, b in combinations(drawn, 2)) / 3
    assert abs(found.places - places) <= found.places_off <= 0.1
    assert abs(found.kendall - tau) <= found.kendall_off <= 0.2
    assert 0.3 < places < 0.95
    assert found.recall_off < 1e-8
    assert "Kendall's tau" in str(found)
    assert discreet.expected(scores, k, 2).kendall is None
    assert discreet.expected([3, 2, 1], 1, 5, mechanism, width="0.9").kendall == 0.0


def test_the_width_of_counts_is_that_of_a_release():
    release = discreet.top_k([900, 700, 500, 20], 2, epsilon=1, counts="0.5")
    width = discreet.expected([900, 700, 500, 20], 2, epsilon=1, counts="0.5").count_width
    assert {count.high - count.low for count in release.counts} == {width}
    assert "counts in intervals of 24" in str(discreet.expected([900, 700, 500, 20], 2, epsilon=1, counts="0.5"))
    assert discreet.expected([900, 700, 500, 20], 2, epsilon=1).count_width is None
    halves = discreet.expected([900, 700, 500, 20], 2, epsilon=1, split="auto")
    assert halves.count_width == width
    assert halves.recall == pytest.approx(discreet.expected([900, 700, 500, 20], 2, epsilon="1/2").recall)


def test_all_items_are_certain():
    assert discreet.class_probabilities([2, 1], 2, 1).probability.tolist() == [1.0]
    assert discreet.subset_probability([2, 1], [0, 1], 1).value == 1.0
    assert discreet.expected([2, 1], 2, 1).recall == 1.0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: discreet.class_probabilities([3, 2, 1], 1, 1, discreet.OneShot()), "must be canonical with gumbel"),
        (lambda: discreet.subset_probability([3, 2], [5], 1), "and 5 has none"),
        (lambda: discreet.subset_probability([3, 2], [0, 0], 1), "each once"),
        (lambda: discreet.subset_probability([3, 2], [], 1), "one item or more"),
        (lambda: discreet.subset_probability([3, 2], "a", 1), "subset must be a list of items, not 'a'"),
        (lambda: discreet.subset_probability([3, 2], [0], 1, discreet.Peeling("laplace")), "is computed"),
        (lambda: discreet.subset_probability([3, 2], [[1]], 1), "a list of labels"),
        (lambda: discreet.expected([3, 2], 1, 1, JointOverSets()), "one to draw from"),
    ],
)
def test_bad_use_is_one_sentence(call, complaint):
    with pytest.raises(discreet.Error, match=complaint):
        call()
