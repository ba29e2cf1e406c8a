"""The sampler against the definition: counts of outcomes for every mechanism and noise, with the power to tell."""

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import discreet
import draws
from definitions import definition, probabilities
from discreet.evidence import definition as by_definition
from discreet.exact.entropy import Entropy
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source
from sampling import sample

# Scores have ties and are in no order. Many low scores against a few high ones make a wrong scale of noise show.
TWO = [0, 0, 6, 0, 5, 1, 0, 0, 1, 0]
THREE = [0, 6, 6, 5, 0, 1, 0, 0, 1]
ONE = [0, 10] + [1] * 4 + [0] * 40

OTHERS = [noise for noise in NOISES if noise != "gumbel"]

MANY = pytest.mark.long
"""Lists of two of fifteen: shorter ones are drawn in every run."""

# mechanism, scores, k, epsilon
CASES = (
    [
        (discreet.Canonical(), THREE, 3, 2),
        (discreet.Canonical(gamma=1), THREE, 3, 1),
        (discreet.Canonical(gamma=0), THREE, 3, 3),
        (discreet.Canonical(gamma="1/3"), THREE, 3, 2),
        (discreet.Joint(), TWO, 2, 2),
        (discreet.Joint(), TWO[1:8], 3, 2),
    ]
    + [(discreet.Canonical(noise=noise), TWO, 2, 1) for noise in OTHERS]
    + [(discreet.Canonical(gamma=1, noise=noise), TWO, 2, 1) for noise in OTHERS]
    + [(discreet.OneShot(noise), ONE, 1, "1/2") for noise in NOISES]
    + [
        pytest.param(cls(noise), TWO + [0] * 5, 2, 2 if noise == "logistic" else 1, marks=MANY)
        for cls in (discreet.OneShot, discreet.Peeling)
        for noise in NOISES
    ]
)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "scores", "k", "epsilon"), CASES, ids=lambda value: str(value)[:60])
def test_counts_fit_the_definition(mechanism, scores, k, epsilon):
    def probabilities(factor):
        exact = definition(mechanism, scores, k, Fraction(epsilon) * factor)
        return draws.by_score(exact, scores, mechanism.ordered)

    # With its usual noise a mechanism is told from one with a twentieth more epsilon, with others from a tenth more.
    is_usual = getattr(mechanism, "noise", None) == getattr(type(mechanism)(), "noise", None)
    right, wrong = probabilities(1), probabilities(Fraction(21, 20) if is_usual else Fraction(11, 10))
    assert sum(right.values()) == pytest.approx(1, abs=1e-7)
    counts = sample(mechanism, scores, k, epsilon, draws.enough(right, wrong))
    assert draws.fits(draws.by_score(counts, scores, mechanism.ordered), right)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("mechanism", "k"),
    [
        (discreet.Canonical(), 2),
        (discreet.Joint(), 2),
        (discreet.Canonical(noise="laplace"), 2),
        (discreet.OneShot(), 1),
    ],
    ids=str,
)
def test_counts_of_a_sampler_with_too_little_noise_do_not_fit(mechanism, k):
    probabilities = definition(mechanism, TWO, k, 1)
    assert not draws.fits(sample(mechanism, TWO, k, Fraction(3, 2), 3000), probabilities)
    assert draws.fits(sample(mechanism, TWO, k, 1, 3000), probabilities)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("word", [1, 3])
def test_few_bits_at_a_time_give_the_same_distribution(noise, word):
    """With a word of one or three bits nearly every comparison has to be refined: the exact path alone decides."""
    scores = [4, 2, 2, 0]
    for mechanism in (discreet.OneShot(noise), discreet.Canonical(noise=noise)):
        counts = sample(mechanism, scores, 2, 2, 1000, word=word)
        assert draws.fits(counts, definition(mechanism, scores, 2, 2))


@pytest.mark.some(2)
@pytest.mark.parametrize("noise", NOISES)
def test_one_shot_sets_of_three_fit(noise):
    scores, k = [8, 5, 5, 3, 0], 3
    counts = Counter()
    for order, count in sample(discreet.OneShot(noise), scores, k, 3, 4000).items():
        counts[tuple(sorted(order))] += count
    assert draws.fits(counts, probabilities(by_definition.oneshot_sets(scores, k, by_definition.scale(3), noise)))


def test_ceil_rounds_the_loss_up():
    scores, k, epsilon = [0, 5, 3, 3, 1], 2, Fraction(2)
    delta = Fraction(3, 4)
    losses = {y: by_definition.canonical_loss(scores, y, Fraction(1, 2)) for y in by_definition.subsets(scores, k)}
    weights = {y: np.exp(-float(epsilon) / 2 * float(-(-loss // delta))) for y, loss in losses.items()}
    expected = {y: w / sum(weights.values()) for y, w in weights.items()}
    source, entropy = array_source(np.array(scores)), Entropy(random.Random(3))
    sensitivity = discreet.Sensitivity(down=0, up="1.5")
    prepared = discreet.Canonical(ceil=True).prepare(source.tally(), k, epsilon, sensitivity)
    counts = Counter(tuple(sorted(source.items(prepared.draw(entropy)))) for _ in range(6000))
    assert draws.fits(counts, expected)


@pytest.mark.long
def test_larger_groups_of_ties_and_many_members():
    """Streams with several members, members left over from earlier arrivals, and a group of hopeless items."""
    scores, k, epsilon = [3] * 6 + [2] * 6 + [0] * 8, 2, 4
    expected = probabilities(by_definition.peeling(scores, k, by_definition.scale(epsilon), "gumbel"))
    counts = sample(discreet.OneShot("gumbel"), scores, k, epsilon, 4000)
    assert draws.fits(draws.by_score(counts, scores, True), draws.by_score(expected, scores, True))


@pytest.mark.long
def test_peeling_with_a_noise_that_remembers_is_not_one_shot():
    """Rounds with fresh Laplace noise have another law than the largest values of one round, and it shows."""
    scores, k, epsilon, n = [0, 3, 0, 0], 2, 2, 2000
    rounds, once = (
        probabilities(law(scores, k, by_definition.scale(epsilon), "laplace"))
        for law in (by_definition.peeling, by_definition.oneshot)
    )
    right, wrong = (draws.by_score(law, scores, True) for law in (rounds, once))
    assert draws.power(n, right, wrong) > 0.99
    assert draws.fits(draws.by_score(sample(discreet.Peeling("laplace"), scores, k, epsilon, n), scores, True), right)
