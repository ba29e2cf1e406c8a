"""The joint mechanism over sequences and over sets, counted and weighed, against enumeration."""

from itertools import combinations, permutations
from math import comb, exp, log

import numpy as np
import pytest

import discreet
from discreet.analysis import JointOverSets
from discreet.analysis.goals import describe_ranks, goals
from discreet.analysis.joint_odds import Layers, log_sequences, log_sets
from discreet.mechanisms.registry import to_dict
from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source

CHOICES = {log_sequences: permutations, log_sets: combinations}


def staircases(rng, k, d):
    """Rows of last ranks that do not decrease and leave every place its own rank."""
    return np.maximum(np.sort(rng.integers(0, d, (20, k)), axis=1), np.arange(k))


@pytest.mark.parametrize("counter", CHOICES, ids=lambda counter: counter.__name__)
@pytest.mark.parametrize(("k", "d"), [(1, 4), (2, 5), (4, 6), (5, 7)])
def test_counts_are_those_of_enumeration(counter, k, d):
    last = staircases(np.random.default_rng(k), k, d)
    for h in range(k + 1):
        found = counter(last, h)
        for row, logarithm in zip(last.tolist(), found.tolist(), strict=True):
            count = sum(
                all(rank <= most for rank, most in zip(chosen, row, strict=True)) and set(range(h)) <= set(chosen)
                for chosen in CHOICES[counter](range(d), k)
            )
            assert exp(logarithm) == pytest.approx(count, rel=1e-12)


def test_counts_of_sets_are_right_where_numbers_are_huge():
    """Without a staircase it is a binomial, with one step it is a sum of products of two."""
    d, k = 4000, 700
    assert log_sets(np.full((1, k), d - 1), 0)[0] == pytest.approx(log(comb(d, k)), rel=1e-13)
    last = np.array([[999] * 300 + [d - 1] * 400])
    split = sum(comb(1000, below) * comb(d - 1000, k - below) for below in range(300, k + 1))
    assert log_sets(last, 0)[0] == pytest.approx(log(split), rel=1e-13)


@pytest.mark.some(6)
@pytest.mark.parametrize("counter", CHOICES, ids=lambda counter: counter.__name__)
@pytest.mark.parametrize("seed", range(12))
def test_shares_are_those_of_enumeration(counter, seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    k = min(k, d - 1)
    scores = np.sort(rng.integers(0, 8, d) if seed % 2 else rng.random(d) * 6)[::-1]
    rate = float(rng.random() * 2 + 0.05)
    regions = [(h, t) for h in range(k + 1) for t in range(k, d + 1)]
    mechanism = JointOverSets() if counter is log_sets else discreet.Joint()
    shares, error = Layers.of(array_source(scores).tally(), k, mechanism, regions).shares(rate, 1e-9)
    assert error <= 2e-9
    weights = np.zeros(len(regions))
    total = 0.0
    for chosen in CHOICES[counter](range(d), k):
        weight = exp(-rate * max(0.0, *(scores[place] - scores[rank] for place, rank in enumerate(chosen))))
        held, worst = describe_ranks(np.sort(chosen))
        weights += weight * np.array([held >= h and worst <= t for h, t in regions])
        total += weight
    assert shares == pytest.approx(weights / total, abs=error + 1e-12)


def test_what_was_counted_for_one_epsilon_serves_for_the_next():
    scores = (1e4 / np.arange(1, 301)).astype(np.int64)
    tally = array_source(scores).tally()
    regions = list(goals(tally, 10).values())
    warm = Layers.of(tally, 10, JointOverSets(), regions)
    for rate in (2.0, 0.5, 0.125, 0.03):
        fresh = Layers.of(tally, 10, JointOverSets(), regions)
        assert warm.shares(rate, 1e-8)[0] == pytest.approx(fresh.shares(rate, 1e-8)[0], abs=2e-8)


def test_sets_need_less_epsilon_than_sequences_and_are_not_drawn():
    scores = (1e4 / np.arange(1, 301)).astype(np.int64)
    sets, sequences = (
        discreet.epsilon_for(scores, 5, mechanism=mechanism) for mechanism in (JointOverSets(), discreet.Joint())
    )
    assert sets < sequences
    with pytest.raises(discreet.Error, match=r"JointOverSets\(\) is only there to be compared with; Canonical\(\)"):
        discreet.top_k([3, 2, 1], 1, 1, mechanism=JointOverSets())


def test_the_argument_over_is_deprecated_and_says_the_same():
    scores = [9, 7, 6, 2, 2, 1]
    with pytest.warns(DeprecationWarning, match=r"compare with discreet.analysis.JointOverSets\(\) instead") as seen:
        sets = discreet.Joint(over="sets")
    assert seen[0].filename == __file__
    assert repr(sets) == "Joint(over='sets')"
    assert to_dict(sets) == to_dict(JointOverSets()) == {"name": "joint", "over": "sets"}
    assert discreet.utility(scores, 3, 1, sets) == discreet.utility(scores, 3, 1, JointOverSets())
    assert discreet.epsilon_for(scores, 3, mechanism=sets) == discreet.epsilon_for(scores, 3, mechanism=JointOverSets())
    found = discreet.subset_probability(scores, [0, 1, 2], 1, sets)
    assert found.value == discreet.subset_probability(scores, [0, 1, 2], 1, JointOverSets()).value
    (choice,) = discreet.compare(scores, 3, mechanisms=[sets]).choices
    assert choice.mechanism is sets
    with pytest.raises(discreet.Error, match=r"Joint\(over='sets'\) is only there to be compared with; Canonical\(\)"):
        discreet.top_k([3, 2, 1], 1, 1, mechanism=sets)
    with pytest.raises(discreet.Error, match="over must be 'sequences' or 'sets', not 'words'"):
        discreet.Joint(over="words")
    assert discreet.Joint() == discreet.Joint(over="sequences")


def test_what_weighs_nothing_is_found_quickly():
    """No region can be reached at so small an epsilon: few counts are needed to know."""
    tally = array_source(np.arange(2000)).tally()
    layers = Layers.of(tally, 100, JointOverSets(), [(100, 100), (10, 110)])
    shares, error = layers.shares(1e-6, 1e-9)
    assert shares == [0.0, 0.0]
    assert error <= 1e-9
    assert len(layers._seen) < 60


@pytest.mark.parametrize("mechanism", [discreet.Joint(), JointOverSets()], ids=repr)
def test_a_domain_of_a_trillion_is_not_laid_out(mechanism):
    tally = Tally.of_runs([9, 5, 0], [1, 1, 2**40])
    shares, error = Layers.of(tally, 2, mechanism, [(2, 2), (1, 3)]).shares(20.0, 1e-9)
    assert shares[0] > 1 - 1e-9
    assert error < 1e-8


@pytest.mark.some(1)
@pytest.mark.parametrize("mechanism", [discreet.Joint(), JointOverSets()], ids=repr)
def test_the_error_of_one_set_covers_it_where_scores_are_not_whole(mechanism):
    """A set has no choice below its loss: no straight line leads to the step."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        scores = np.round(rng.random(5) * 8, 4)
        ordered, epsilon = np.sort(scores)[::-1], float(rng.random() * 5)
        choices = permutations if mechanism.ordered else combinations
        weights = {}
        for chosen in choices(range(5), 2):
            loss = max(0.0, *(ordered[place] - ordered[rank] for place, rank in enumerate(chosen)))
            weights[frozenset(chosen)] = weights.get(frozenset(chosen), 0.0) + exp(-epsilon / 2 * loss)
        items = np.argsort(-scores, kind="stable")
        for chosen, weight in weights.items():
            best = [int(items[r]) for r in chosen]
            found = discreet.subset_probability(scores.tolist(), best, epsilon, mechanism)
            assert abs(found.value - weight / sum(weights.values())) <= found.error
