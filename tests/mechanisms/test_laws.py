"""Laws that every mechanism obeys: what cannot matter does not."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
import draws
from definitions import definition
from discreet.exact.entropy import Entropy
from discreet.release.request import Randomness, make_request
from discreet.sources.arrays.array import array_source
from effort import examples
from sampling import sample

MECHANISMS = [
    discreet.Canonical(),
    discreet.Canonical(gamma=1),
    discreet.Canonical(gamma="2/5", noise="laplace"),
    discreet.Canonical(noise="half-logistic"),
    discreet.OneShot(),
    discreet.OneShot("logistic"),
    discreet.Peeling("exponential"),
    discreet.Peeling(),
    discreet.Joint(),
    discreet.Core(),
]

distinct_scores = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=12, unique=True)


def released(scores, k, mechanism, seed, **options):
    """Items and order with labels that go with the scores, drawn with scripted bits.

    Ranks are drawn one by one: of a range of them a source may draw positions, which come in the order of the input.
    """
    labels = options.pop("labels", None) or [f"item {score}" for score in scores]
    entropy = Entropy(random.Random(seed))

    def draw(prepared):
        selection = prepared.select(entropy)
        return replace(selection, ranks=selection.draw_ranks(), head=0, subset=None, cuts_no_run=False)

    request = make_request(array_source(scores, labels), k, 1, mechanism=mechanism, **options)
    release = request.draw(Randomness(draw))
    return release.items, release.order


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@settings(max_examples=examples(25))
@given(scores=distinct_scores, data=st.data())
def test_permuting_the_items_permutes_the_release(mechanism, scores, data):
    k = data.draw(st.integers(1, len(scores)))
    shuffled = data.draw(st.permutations(scores))
    seed = data.draw(st.integers(0, 1000))
    assert released(scores, k, mechanism, seed) == released(shuffled, k, mechanism, seed)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@settings(max_examples=examples(25))
@given(scores=st.lists(st.integers(-9, 9), min_size=2, max_size=12), data=st.data())
def test_adding_a_constant_changes_nothing(mechanism, scores, data):
    k, seed = data.draw(st.integers(1, len(scores))), data.draw(st.integers(0, 1000))
    shift = data.draw(st.sampled_from([1, -5, 2**53, 2**62, -(2**62), 10**40, Fraction(1, 3)]))
    labels = [f"item {i:02}" for i in range(len(scores))]
    here = released(scores, k, mechanism, seed, labels=labels)
    there = released([score + shift for score in scores], k, mechanism, seed, labels=labels)
    assert here == there


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@settings(max_examples=examples(25))
@given(scores=st.lists(st.integers(-9, 9), min_size=2, max_size=12), data=st.data())
def test_scaling_scores_and_sensitivity_together_changes_nothing(mechanism, scores, data):
    """For powers of two even the floats that propose are the same, so that the same bits give the same release."""
    k, seed = data.draw(st.integers(1, len(scores))), data.draw(st.integers(0, 1000))
    factor = Fraction(2) ** data.draw(st.integers(-30, 30))
    labels = [f"item {i:02}" for i in range(len(scores))]
    wide = discreet.Sensitivity(down=factor / 2, up=factor)
    plain, wider = ([step * score for score in scores] for step in (Fraction(1), factor))
    here = released(plain, k, mechanism, seed, labels=labels, sensitivity=discreet.Sensitivity("1/2", 1))
    there = released(wider, k, mechanism, seed, labels=labels, sensitivity=wide)
    assert here == there


@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", MECHANISMS[:6] + MECHANISMS[7:9], ids=str)
def test_scaling_by_a_third_keeps_the_distribution(mechanism):
    scores, k = [4, 1, 0, 1], 2 if mechanism.name != "one-shot" else 1
    thirds = [Fraction(score, 3) for score in scores]
    sensitivity = discreet.Sensitivity(down=0, up="1/3")
    counts = sample(mechanism, thirds, k, 1, 1500, sensitivity=sensitivity)
    assert draws.fits(counts, definition(mechanism, scores, k, 1))


@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_items_of_equal_score_are_equally_likely(mechanism):
    """Whatever their position: ties may be broken anyhow."""
    counts = sample(mechanism, [1, 1, 1, 1, 1], 2, 1, 1500)
    singles = {}
    for outcome, count in counts.items():
        for i in outcome:
            singles[i,] = singles.get((i,), 0) + count
    # Two of five are taken each time, so the chi-square test of single items is a little too kind, not too strict.
    assert draws.fits(singles, {(i,): 0.2 for i in range(5)})


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@given(scores=st.lists(st.integers(0, 50), min_size=1, max_size=20), data=st.data())
@settings(max_examples=examples(20))
def test_a_release_is_k_items_of_the_domain(mechanism, scores, data):
    k = data.draw(st.integers(1, len(scores)))
    epsilon = data.draw(st.sampled_from(["1e-9", "0.1", 3, 10**4]))
    release = discreet.top_k(np.array(scores), k, epsilon, mechanism=mechanism)
    assert len(release.items) == k or (mechanism.may_release_fewer and len(release.items) < k)
    assert release.items == sorted(set(release.items))
    assert set(release.items) <= set(range(len(scores)))
    assert (release.order is None) == (not mechanism.ordered or k == len(scores))
    assert release.order is None or sorted(release.order) == release.items


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_huge_epsilon_releases_the_truth_in_order(mechanism):
    scores = [3, 10**6, 5 * 10**5, 0, 7, 10**7]
    release = discreet.top_k(scores, 3, 10**4, mechanism=mechanism)
    assert release.items == [1, 2, 5]
    assert release.order in (None, [5, 1, 2])
