"""Classes, single sets and averages, against full enumeration of every set."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import discreet
from discreet.analysis import JointOverSets
from discreet.analysis.utility import describe_ranks
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.noise import NOISES
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
    recall = sum(chance * len(set(ranks) & set(range(k))) / k for ranks, chance in chances)
    error = sum(chance * (ordered[k - 1] - ordered[max(ranks)]) for ranks, chance in chances if max(ranks) >= k)
    assert found.recall == pytest.approx(recall, abs=1e-9)
    assert found.score_error == pytest.approx(error, abs=1e-8)
    assert found.confidence is None


def test_averages_of_draws_cover_those_of_enumeration():
    scores, k = [9, 7, 7, 6, 2], 2
    mechanism = discreet.OneShot("laplace")
    found = discreet.expected(scores, k, 1, mechanism, width="0.2", confidence="0.9999999")
    chances = sets(mechanism, scores, k, 1).items()
    recall = sum(chance * len(set(ranks) & {0, 1}) / k for ranks, chance in chances)
    assert abs(found.recall - recall) <= found.recall_off <= 0.1
    assert found.confidence == Fraction(9999999, 10000000)
    assert "with confidence 0.9999999" in str(found)
    assert "NOT private" in str(found)


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
