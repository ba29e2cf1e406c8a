"""The discrete Laplace law: walked bit by bit, counted against its probabilities, and its tails against sums."""

import random
from collections import Counter
from fractions import Fraction

import pytest

import draws
from discreet.evidence.walk import walk
from discreet.exact.ball import ball, precision
from discreet.exact.discrete import (
    interval_half_width,
    sample_bernoulli_exp1,
    sample_discrete_laplace,
    sample_geometric_exp,
)
from discreet.exact.entropy import Entropy
from laplace import log_probability, tail_probability

RATES = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2), Fraction(3, 4)]


def assert_between(decided, undecided, log_probabilities):
    """Every probability lies between what is decided for it and that plus what is undecided."""
    with precision(200):
        for outcome, log in log_probabilities.items():
            known = decided.get(outcome, Fraction(0))
            assert not log.exp() < ball(known)
            assert not log.exp() > ball(known + undecided)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(1)])
def test_sample_bernoulli_exp1_has_the_probability_of_exp(x):
    decided, undecided = walk(lambda entropy: sample_bernoulli_exp1(entropy, x.numerator, x.denominator), 4000)
    with precision(200):
        assert_between(decided, undecided, {True: -ball(x)})
    assert undecided < Fraction(1, 5)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_walked_bits_add_up_to_the_geometric_law(rate):
    decided, undecided = walk(lambda entropy: sample_geometric_exp(entropy, rate), 6000)
    with precision(200):
        first = (-(-ball(rate)).expm1()).log()
        assert_between(decided, undecided, {n: first - ball(rate * n) for n in range(20)})
    assert undecided < Fraction(1, 3)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_walked_bits_add_up_to_the_law(rate):
    decided, undecided = walk(lambda entropy: sample_discrete_laplace(entropy, rate), 20000)
    with precision(200):
        assert_between(decided, undecided, {n: log_probability(rate, n) for n in range(-20, 21)})
    assert undecided < Fraction(1, 2)
    # The law is symmetric, and so is the sampler on bits of the same length.
    assert all(decided.get(n) == decided.get(-n) for n in range(1, 4))


def floats(rate, far):
    """The probabilities as floats, with all beyond `far` in one."""
    with precision(100):
        near = {n: float(log_probability(rate, n).exp()) for n in range(-far, far + 1)}
        return near | {"far": float(tail_probability(rate, far))}


@pytest.mark.corners
@pytest.mark.parametrize("word", [1, 64])
@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(1), Fraction(13, 5), Fraction(1, 1000)], ids=str)
def test_draws_have_the_law(rate, word):
    far, n = min(int(6 / rate) + 1, 40), 40_000
    entropy = Entropy(random.Random(17), word)
    seen = (sample_discrete_laplace(entropy, rate) for _ in range(n))
    counts = Counter(value if abs(value) <= far else "far" for value in seen)
    probabilities = floats(rate, far)
    assert draws.fits(counts, probabilities)
    # Zero counted with both signs, which is the classic mistake, would be seen.
    if rate > Fraction(1, 10):
        twice = probabilities | {0: 2 * probabilities[0]}
        total = sum(twice.values())
        assert draws.power(n, probabilities, {key: p / total for key, p in twice.items()}) > 0.999


def test_a_rate_that_is_off_by_five_percent_would_be_seen():
    assert draws.power(40_000, floats(Fraction(1), 12), floats(Fraction(21, 20), 12)) > 0.999


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_tails_are_what_the_sum_leaves(rate):
    with precision(200):
        for n in range(6):
            inside = sum(log_probability(rate, i).exp() for i in range(-n, n + 1))
            assert (1 - inside).overlaps(tail_probability(rate, n))
            assert tail_probability(rate, n).rad() < 1e-50
        whole = sum(log_probability(rate, i).exp() for i in range(-400, 401))
        assert abs(1 - whole) < 1e-50


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 1000), Fraction(19, 20)])
@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 10**6), Fraction(50), Fraction(1, 10**40)], ids=str)
def test_the_half_width_is_the_least_that_misses_rarely_enough(rate, alpha):
    width = interval_half_width(rate, alpha)
    with precision(400):
        assert tail_probability(rate, width) < ball(alpha)
        assert width == 0 or tail_probability(rate, width - 1) > ball(alpha)


def test_the_cost_does_not_grow_as_the_rate_becomes_small():
    """Bits asked for: those of the numbers themselves, and not more draws."""

    class Counted(random.Random):
        asked = 0

        def getrandbits(self, k, /):
            self.asked += 1
            return super().getrandbits(k)

    asked = []
    for rate in (Fraction(1, 3), Fraction(1, 10**9), Fraction(1, 10**300), Fraction(10**300)):
        bits = Counted(5)
        for _ in range(500):
            sample_discrete_laplace(Entropy(bits), rate)
        asked.append(bits.asked)
    assert max(asked) < 3 * min(asked)
