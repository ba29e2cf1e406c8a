"""The discrete Laplace law, drawn with whole numbers alone, and its probabilities as balls.

The sampler is that of Canonne, Kamath and Steinke (The Discrete Gaussian for Differential Privacy, 2020, algorithms 1
and 2). A geometric number is drawn by blocks, so that its cost does not grow as the rate becomes small.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from discreet.exact.ball import START, ball, precision
from discreet.exact.entropy import Entropy


def sample_discrete_laplace(entropy: Entropy, rate: Fraction) -> int:
    """Returns n with probability exactly proportional to exp(-rate |n|), over all whole numbers; rate is above zero."""
    while True:
        size, negative = sample_geometric_exp(entropy, rate), entropy.bits(1)
        # Zero has one sign, not two.
        if size or not negative:
            return -size if negative else size


def sample_geometric_exp(entropy: Entropy, rate: Fraction) -> int:
    """Returns n with probability exactly proportional to exp(-rate n), over the whole numbers from 0."""
    # With rate = s/t: u + t v has chances proportional to exp(-(u + t v) / t), and s of them in a row make one step.
    s, t = rate.numerator, rate.denominator
    while True:
        u = entropy.upto(t - 1)
        if sample_bernoulli_exp1(entropy, Fraction(u, t)):
            break
    v = 0
    while sample_bernoulli_exp1(entropy, Fraction(1)):
        v += 1
    return (u + t * v) // s


def sample_bernoulli_exp1(entropy: Entropy, x: Fraction) -> bool:
    """Returns True with probability exactly exp(-x), for x from 0 to 1."""
    # Pr[the first n trials succeed] = x^n / n!, so that Pr[the first failure is at an odd trial] = sum (-x)^n / n!.
    trial = 1
    while entropy.upto(x.denominator * trial - 1) < x.numerator:
        trial += 1
    return trial % 2 == 1


def log_probability(rate: Fraction, n: int) -> arb:
    """A ball around the logarithm of the probability that `sample_discrete_laplace` returns n."""
    # Pr[n] = (1 - q) / (1 + q) q^|n| with q = exp(-rate).
    return (-(-ball(rate)).expm1()).log() - (-ball(rate)).exp().log1p() - ball(rate * abs(n))


def tail_probability(rate: Fraction, n: int) -> arb:
    """A ball around the probability of a discrete Laplace number more than n away from zero; n is at least 0."""
    # 2 q^(n+1) / (1 + q) with q = exp(-rate).
    return 2 * (-ball(rate * (n + 1))).exp() / (1 + (-ball(rate)).exp())


def interval_half_width(rate: Fraction, alpha: Fraction) -> int:
    """The least n from 0 on that a discrete Laplace number is farther from zero than with chance at most alpha.

    A chance is never equal to alpha, because exp(-rate) is transcendental: more precision always decides.
    """
    bits = START
    while True:
        with precision(bits):
            # 2 q^(n+1) / (1 + q) <= alpha where n + 1 >= log(2 / (alpha (1 + q))) / rate.
            steps = ((ball(2 / alpha)).log() - (-ball(rate)).exp().log1p()) / ball(rate)
            found = steps.ceil().unique_fmpz()
        if found is not None:
            return max(0, int(found) - 1)
        bits *= 2
