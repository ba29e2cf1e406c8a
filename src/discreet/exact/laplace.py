"""The discrete Laplace law, drawn with whole numbers alone, and its probabilities as balls.

The sampler is that of Canonne, Kamath and Steinke (The Discrete Gaussian for Differential Privacy, 2020, algorithms 1
and 2). A geometric number is drawn by blocks, so that its cost does not grow as the rate becomes small.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet.exact.ball import START, ball, find_floor, precision
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
    return 2 * upper_tail(rate, n + 1)


def upper_tail(rate: Fraction, n: int) -> arb:
    """A ball around the probability of a discrete Laplace number of n or more, for every whole number n."""
    # q^n / (1 + q) for n from 1 on, with q = exp(-rate); the law is symmetric.
    if n < 1:
        return 1 - upper_tail(rate, 1 - n)
    return (-ball(rate * n)).exp() / (1 + (-ball(rate)).exp())


def interval_half_width(rate: Fraction, alpha: Fraction) -> int:
    """The least n from 0 on that a discrete Laplace number is farther from zero than with chance at most alpha."""
    return least_upper_tail(rate, lambda: ball(alpha / 2)) - 1


def rounded_half_width(rate: Fraction, alpha: Fraction) -> int:
    """How many steps Laplace noise on a whole number, rounded to whole steps, takes it away, but with chance alpha.

    The noise has the density rate exp(-rate |x|) / 2 in steps, so that |x| <= t = log(1 / alpha) / rate but with chance
    alpha, and floor(x + 1/2) is then at most floor(t + 1/2) away from zero.
    """
    # log(1 / alpha) is transcendental for a rational alpha below 1, so that more precision decides.
    return find_floor(lambda: ball(Fraction(1, 2)) - ball(alpha).log() / ball(rate), lambda rounds: rounds * START)


def least_upper_tail(rate: Fraction, chance: Callable[[], arb]) -> int:
    """The least n from 1 on that a discrete Laplace number reaches with a probability of at most `chance`.

    `chance` gives a ball at the precision that is set. The two must never be equal, or no precision would decide. Where
    `chance` is algebraic they never are, because exp(-rate) is transcendental.
    """
    bits = START
    while True:
        with precision(bits):
            # q^n / (1 + q) <= chance where n >= log(1 / (chance (1 + q))) / rate.
            steps = -(chance().log() + (-ball(rate)).exp().log1p()) / ball(rate)
            found = steps.ceil().unique_fmpz()
        if found is not None:
            return max(1, int(found))
        bits *= 2
