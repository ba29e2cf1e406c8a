"""The audit finds nothing in the shipped sampler, and finds samplers that are a little or badly wrong."""

import dataclasses
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.analysis.goals import chi_square_tail, fit, lower_bound, upper_bound


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        discreet.Canonical(),
        *(
            pytest.param(one, marks=pytest.mark.long)
            for one in (discreet.OneShot(), discreet.Peeling(), discreet.Joint())
        ),
    ],
    ids=str,
)
def test_nothing_is_found_in_the_shipped_sampler(mechanism):
    # Fresh randomness each time: four such tests accuse a right sampler once in two million runs.
    found = discreet.audit(mechanism, draws=1000 if mechanism.name == "joint" else 2000, confidence="0.9999999")
    assert found.holds, found
    assert 0 <= found.spent <= 1
    assert "no violation at confidence 0.9999999" in str(found)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.OneShot()], ids=str)
def test_ten_percent_too_little_noise_is_found(mechanism):
    def hasty(scores):
        return discreet.top_k(scores, 2, "4.4", mechanism=mechanism, rng=random.Random(generator.getrandbits(64)))

    generator = random.Random(1)
    found = discreet.audit(mechanism, 2, epsilon=4, draws=2500, confidence="0.99", sampler=hasty)
    assert not found.holds
    assert "VIOLATION at confidence 0.99" in str(found)


def test_too_little_noise_by_half_is_found_by_the_epsilon_it_spends():
    generator = random.Random(2)

    def hasty(scores):
        return discreet.top_k(scores, 1, 2, mechanism=discreet.OneShot(), rng=random.Random(generator.getrandbits(64)))

    found = discreet.audit(discreet.OneShot(), 1, epsilon=1, draws=1000, sampler=hasty)
    assert found.overspent
    assert found.spent > 1
    assert "by the event" in str(found)


def test_a_float_implementation_that_underflows_is_found():
    """exp of a difference below -745 is 0 in a float: what is possible with one input is impossible with the other."""
    generator = np.random.default_rng(3)

    def hopeless(scores):
        weights = np.exp(np.array([750.0 * scores[label] for label in "ab"]) - 750.0)
        return ("ab"[generator.choice(2, p=weights / weights.sum())],), None

    # b has half of the probability on one input, and exactly none on the other.
    found = discreet.audit(
        discreet.Canonical(gamma=1), 1, epsilon=1, scores=[1, 1], neighbour=[1, 0], draws=400, sampler=hopeless
    )
    assert found.overspent
    assert found.event == ((("b",), None),)


def test_the_bounds_are_those_of_the_beta_law():
    for hits, draws, alpha in [(0, 50, 0.01), (3, 50, 0.01), (50, 50, 0.001), (700, 2000, 1e-6)]:
        low = stats.beta.ppf(alpha, hits, draws - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - alpha, hits + 1, draws - hits) if hits < draws else 1.0
        assert lower_bound(hits, draws, alpha) == pytest.approx(low, rel=1e-12)
        assert upper_bound(hits, draws, alpha) == pytest.approx(high, rel=1e-12)


def test_the_tail_of_chi_square():
    for statistic, freedom in [(0.1, 1), (7.3, 4), (80.0, 11)]:
        assert chi_square_tail(statistic, freedom) == pytest.approx(stats.chi2.sf(statistic, freedom), rel=1e-12)
    assert chi_square_tail(3.0, 0) == 1.0


def test_a_fit_is_good_bad_or_impossible():
    law = {"a": 0.5, "b": 0.25, "c": 0.25}
    assert fit({"a": 500, "b": 250, "c": 250}, law) == 1.0
    assert fit({"a": 600, "b": 200, "c": 200}, law) < 1e-6
    assert fit({"a": 500, "b": 250, "z": 1}, law) == 0.0
    # What is rare is counted together.
    assert fit({"a": 999, "b": 1}, {"a": 0.998, "b": 0.001, "c": 0.001}) > 0.1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"draws": 5}, "draws must be a whole number from 100"),
        ({"confidence": 1}, "confidence must be from 0.5 to less than 1"),
        ({"k": 9}, "k must be 1, 2 or 3 where scores and neighbour are left out, not 9"),
        ({"scores": [1, 2]}, "scores and neighbour must be given together"),
        ({"scores": [1, 2], "neighbour": [1]}, "scores and neighbour must be of one length, from 2 to 26, not 2 and 1"),
        ({"scores": [1, 2], "neighbour": [1, 4]}, "neighbour must be one user away from scores under 'add-remove'"),
        ({"scores": [1, 2], "neighbour": [0, 3]}, "neighbour must be one user away from scores under 'add-remove'"),
        ({"scores": 3, "neighbour": [0, 3]}, "scores must be a list of numbers, not 3"),
        ({"adjacency": "move"}, "adjacency must be"),
    ],
)
def test_bad_use_is_one_sentence(options, complaint):
    with pytest.raises(discreet.Error) as error:
        discreet.audit(discreet.Canonical(), **options)
    assert str(error.value).startswith(complaint)


def test_the_command(done):
    options = "--scores 2,1,0 --neighbour 2,1,1 -k 1 --epsilon 0.5 --draws 300 --confidence 0.9999999"
    out = done("audit", *options.split())
    assert "no violation at confidence 0.9999999" in out
    assert "of 0.5, fit to the definition p = " in out


def test_the_bound_never_exceeds_what_is_spent_by_more_than_alpha():
    """A sampler that spends log 2 exactly, many audits at confidence 0.9: the bound is above it in few of them."""
    generator = random.Random(4)
    above = 0
    for _ in range(40):
        found = discreet.audit(
            discreet.OneShot(), 1, epsilon=1, scores=[1, 1], neighbour=[1, 0], draws=100, confidence="0.9",
            sampler=lambda scores: (("b" if generator.random() < (0.5 if scores["b"] else 0.25) else "a",), None),
        )  # fmt: skip
        above += found.spent > math.log(2)
    assert above <= 5
    assert Fraction(above, 40) < Fraction(1, 5)


def test_what_a_release_shows_beside_its_items_is_seen_too():
    """A right selection, with the sum of all scores for the size of the domain or with true counts."""
    options = {"scores": [1, 1], "neighbour": [1, 0], "draws": 200}

    def sized(scores):
        return dataclasses.replace(discreet.top_k(scores, 1, 1), d=2 + sum(scores.values()))

    def counted(scores):
        release = discreet.top_k(scores, 1, 1)
        true = [discreet.Count(item, scores[item], 0, 9) for item in release.items]
        return dataclasses.replace(release, counts=true)

    for sampler in (sized, counted):
        assert not discreet.audit(discreet.Canonical(), 1, sampler=sampler, **options).holds
