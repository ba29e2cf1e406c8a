"""Binomial numbers with a probability that is only known as a ball, drawn exactly and without a coin for each trial.

A trial with probability p succeeds where a uniform number U is below p. The first bit of p at which U differs from it
decides: U is below p where p has a one there. So m trials are followed bit by bit and all at once. Of the trials that
agree with p so far, Binomial(n, 1/2) agree in the next bit too; the others are done, with success where that bit of p
is a one. Nothing depends on which trials they are, so that their number is all there is to know. It halves with every
bit: about log2(m) + 2 bits of p are read, whether p is 1e-15, 0.3 or near 1, and no sum or product is ever rounded.

Binomial(n, 1/2) itself is the number of ones among n fair bits, and for large n a rejection whose cost does not grow
with n, in the manner of Bringmann, Kuhn, Panagiotou, Peter and Thomas (Internal DLA: Efficient Simulation of a Physical
Growth Model, 2014). Let n = 2m, f(d) = C(2m, m+d) / C(2m, m), and w a width in whole numbers. A side is drawn by one
coin, a block b with probability 2^-(b+1), and a place in the block uniformly of w: every d has the chance
2^-b / (4w). It is accepted with probability 2^b f(d), which makes it proportional to f(d), as it must be. What remains
to be shown is that this is a probability. d is at least b w, and for 0 < d <= m
f(d) = prod over j <= d of (m-j+1) / (m+j) <= exp(-sum (2j-1) / (m+j)) <= exp(-d^2 / (m+d)).
The last exponent falls with d, so f(d) <= 2^-b if (b w)^2 >= b log 2 (m + b w), and that holds for all b from 1 on if
w^2 >= log 2 (m + w), which w >= sqrt(0.7 m) + 0.7 does. More than half of the proposals are accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb

from discreet.errors import InternalError
from discreet.exact.arrays import Floats, Mask, Ranks, Words
from discreet.exact.ball import (
    MAX_SCANNED,
    RELATIVE,
    START,
    EnvelopeError,
    ball,
    find_floor,
    is_below,
    log_binomial,
    precision,
)
from discreet.exact.entropy import Entropy, Uniform

# The discrete Laplace law, drawn with whole numbers alone, and its probabilities as balls.
#
# The sampler is that of Canonne, Kamath and Steinke (The Discrete Gaussian for Differential Privacy, 2020, algorithms 1
# and 2). A geometric number is drawn by blocks, so that its cost does not grow as the rate becomes small.


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


MOST_TRIALS = 2**62
"""No binomial number here has more trials."""

_COUNTED = 512
"""So many fair bits are drawn and counted; where there are more, rejection is the faster way."""

_PROPOSALS = 2048
"""So many proposals cost NumPy little more than one."""

_ONES_OF_16_BITS = np.zeros(1, np.uint8)
for _ in range(16):
    _ONES_OF_16_BITS = np.concatenate([_ONES_OF_16_BITS, _ONES_OF_16_BITS + np.uint8(1)])


def sample_binomial(entropy: Entropy, m: int, p: Callable[[], arb]) -> int:
    """Returns n with probability exactly C(m, n) p^n (1-p)^(m-n), for m up to MOST_TRIALS.

    `p` gives a ball around the probability at the precision that is set. It is called until its bits are certain, so p
    must be irrational, or be given as a ball that holds it alone, or have a denominator with an odd factor.
    """
    return _sample_from_bit(entropy, m, p, 0)


def sample_binomials(entropy: Entropy, m: Ranks, low: Floats, high: Floats, p: Callable[[int], arb]) -> Ranks:
    """Return one such number for each of the numbers of trials `m`, at most MOST_TRIALS in all, independently.

    Entry i has the probability p(i), which lies between low[i] and high[i]. Floats decide where they can, and balls
    where they cannot. Entries of which a success is rare are drawn together: with 2^-z above their probabilities, a
    trial succeeds where one of probability 2^-z does and then one of probability 2^z p(i). The first kind is the same
    for all of them, so that their number is binomial, and which ones they are is a uniform subset.
    """
    try:
        return _sample_together(entropy, m, low, high, p)
    except EnvelopeError:
        return _sample_one_by_one(entropy, m, p)


def _sample_together(entropy: Entropy, m: Ranks, low: Floats, high: Floats, p: Callable[[int], arb]) -> Ranks:
    """Return the numbers of successes, relying on the bounds `low` and `high`."""
    z = int(m.sum()).bit_length()
    is_rare = high <= 2.0**-z
    common, rare = np.flatnonzero(~is_rare), np.flatnonzero(is_rare)
    drawn = _sample_by_bits(
        entropy,
        np.append(m[common], m[rare].sum()),
        np.append(low[common], 2.0**-z),
        np.append(high[common], 2.0**-z),
        lambda j: p(int(common[j])) if j < len(common) else arb(2) ** -z,
    )
    result = np.zeros(len(m), np.int64)
    result[common] = drawn[:-1]
    at = rare[_sample_runs(entropy, m[rare], int(drawn[-1]))]
    hits = at[_sample_bernoullis(entropy, low[at] * 2.0**z, high[at] * 2.0**z, lambda j: p(int(at[j])) * arb(2) ** z)]
    return result + np.bincount(hits, minlength=len(m))


def _sample_one_by_one(entropy: Entropy, m: Ranks, p: Callable[[int], arb]) -> Ranks:
    """Return the numbers of successes by a coin for each trial, relying on no bound; refuse too many trials."""
    if m.sum() > MAX_SCANNED:
        raise InternalError
    counts = [sum(is_below(entropy.uniform(), partial(p, i)) for _ in range(n)) for i, n in enumerate(m)]
    return np.array(counts, np.int64)


def _sample_runs(entropy: Entropy, m: Ranks, count: int) -> Ranks:
    """Returns the entries to which a uniform subset of `count` of all trials belongs."""
    if not count:
        return np.empty(0, np.int64)
    ends = np.cumsum(m)
    return np.searchsorted(ends, entropy.subset(count, int(ends[-1]) - 1), side="right")


def _sample_by_bits(entropy: Entropy, m: Ranks, low: Floats, high: Floats, p: Callable[[int], arb]) -> Ranks:
    """Returns the same as `sample_binomials`, each entry by the bits of its own probability."""
    first, last = _leading_words(low), _leading_words(high)
    # So many leading bits are certain; one less where the float rounds up to a power of two.
    certain = 64 - np.frexp((first ^ last).astype(np.float64))[1]
    successes, agreeing = np.zeros(len(m), np.int64), m.copy()
    waiting = np.flatnonzero(agreeing)
    for bit in range(65):
        for i in waiting[certain[waiting] <= bit].tolist():
            successes[i] += _sample_from_bit(entropy, int(agreeing[i]), partial(p, i), bit)
        waiting = waiting[certain[waiting] > bit]
        if not len(waiting):
            break
        still = sample_fair_binomials(entropy, agreeing[waiting])
        is_one = (first[waiting] >> np.uint64(63 - bit) & np.uint64(1)).astype(np.bool_)
        successes[waiting] += np.where(is_one, agreeing[waiting] - still, 0)
        agreeing[waiting] = still
        waiting = waiting[still > 0]
    return successes


def _leading_words(values: Floats) -> Words:
    """The first 64 bits of reals from 0 on; of 1 and more, where no probability is, 64 ones."""
    below = np.minimum(values, np.nextafter(1.0, 0.0))
    return np.where(values < 1.0, (below * 2.0**64).astype(np.uint64), np.uint64(2**64 - 1))


def _sample_from_bit(entropy: Entropy, agreeing: int, p: Callable[[], arb], bit: int) -> int:
    """Returns how many of so many trials succeed that agree with p in the first `bit` bits."""
    successes, known, digits = 0, 0, 0
    while agreeing:
        bit += 1
        if bit > known:
            known = bit + 63
            digits = _leading_bits(p, known)
        if digits >> known:  # p is 1
            return successes + agreeing
        still = int(sample_fair_binomials(entropy, np.array([agreeing], np.int64))[0])
        if digits >> (known - bit) & 1:
            successes += agreeing - still
        agreeing = still
    return successes


def _leading_bits(p: Callable[[], arb], count: int) -> int:
    """The whole part of 2^count p, by balls that are made smaller until they leave no choice."""
    bits = START
    while True:
        with precision(count + bits):
            found = (p() * arb(2) ** count).floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2


def sample_fair_binomials(entropy: Entropy, n: Ranks) -> Ranks:
    """Returns for each n, from 1 to MOST_TRIALS, a number k with probability exactly C(n, k) / 2^n, independently."""
    few = n <= _COUNTED
    if few.all():
        return _count_fair_ones(entropy, n)
    result = np.empty(len(n), np.int64)
    if few.any():
        result[few] = _count_fair_ones(entropy, n[few])
    many = n[~few]
    ones = sample_by_rejection(entropy, many >> 1)
    odd = (many & 1).astype(np.bool_)
    ones[odd] += (entropy.words(int(odd.sum())) & np.uint64(1)).astype(np.int64)
    result[~few] = ones
    return result


def _count_fair_ones(entropy: Entropy, n: Ranks) -> Ranks:
    """Returns for each n, which is 1 or more, the number of ones among n fair bits."""
    length = -(-n // entropy.word)
    ends = np.cumsum(length)
    words = entropy.words(int(ends[-1]))
    words[ends - 1] >>= (length * entropy.word - n).astype(np.uint64)
    ones = _ONES_OF_16_BITS[words.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.int64)
    return np.add.reduceat(ones, ends - length)


def sample_by_rejection(entropy: Entropy, m: Ranks) -> Ranks:
    """Returns for each m, from 1 to MOST_TRIALS / 2, a number k with probability exactly C(2m, k) / 4^m."""
    result = np.empty(len(m), np.int64)
    waiting = np.arange(len(m))
    while len(waiting):
        # Several proposals at once where there are few to draw; the first that is accepted counts.
        tries = max(1, min(8, _PROPOSALS // len(waiting)))
        number, accepted = _propose(entropy, np.repeat(m[waiting], tries))
        winner = np.argmax(accepted.reshape(-1, tries), axis=1) + np.arange(0, len(accepted), tries)
        is_done = accepted[winner]
        result[waiting[is_done]] = number[winner[is_done]]
        waiting = waiting[~is_done]
    return result


def _propose(entropy: Entropy, m: Ranks) -> tuple[Ranks, Mask]:
    """Returns a number for each m, and whether it is accepted."""
    block, width = _count_ones_before_zero(entropy, len(m)), _block_width(m)
    # Upwards from the centre itself, downwards from the place below it: none is proposed twice.
    place = entropy.upto_each(2 * width - 1)
    is_down = place & 1
    distance = block * width + (place >> 1) + is_down
    return m + np.where(is_down, -distance, distance), _accept(entropy, m, distance, block)


def _block_width(m: Ranks) -> Ranks:
    """A whole number above sqrt(0.7 m) + 0.9."""
    return np.sqrt(0.7 * m.astype(np.float64)).astype(np.int64) + 2


def _count_ones_before_zero(entropy: Entropy, count: int) -> Ranks:
    """Returns independent numbers b with probability exactly 2^-(b+1)."""
    result = np.zeros(count, np.int64)
    waiting = np.arange(count)
    while len(waiting):
        words = entropy.words(len(waiting))
        # The lowest zero of a word alone, a power of two, or nothing in a word of 64 ones.
        zero = ~words & (words + np.uint64(1))
        ones = np.where(zero, np.frexp(zero.astype(np.float64))[1] - 1, 64)
        result[waiting] += ones
        waiting = waiting[ones == entropy.word]
    return result


def _accept(entropy: Entropy, m: Ranks, distance: Ranks, block: Ranks) -> Mask:
    """Returns True for each entry with probability exactly 2^block C(2m, m + distance) / C(2m, m)."""

    def acceptance(i: int) -> arb:
        n, half, d = 2 * int(m[i]), int(m[i]), int(distance[i])
        log_ratio = log_binomial(n, half + d) - log_binomial(n, half)
        return (log_ratio + int(block[i]) * arb.const_log2()).exp()

    return _sample_bernoullis(entropy, *_bound_acceptance(m, distance, block), acceptance)


def _bound_acceptance(m: Ranks, distance: Ranks, block: Ranks) -> tuple[Floats, Floats]:
    """Floats certainly below and above the probability of acceptance; the second is negative where it is zero.

    By Stirling's series, with x = d/m and c(j) between 1/(12 j) - 1/(360 j^3) and 1/(12 j),
    -log f(d) = (m + 1/2) log(1 - x^2) + d log((1+x) / (1-x)) + c(m+d) + c(m-d) - 2 c(m).
    The first two terms are near -d^2/m and 2 d^2/m where x is at most 1/2, so that little cancels. There the cubes come
    to less than 0.04 / m^3. Nothing is said for x above 1/2, which is rare.
    """
    centre = m.astype(np.float64)
    x = np.minimum(distance / centre, 0.5)
    d = x * centre
    cost = (centre + 0.5) * np.log1p(-x * x) + d * np.log1p(2.0 * x / (1.0 - x))
    cost += (1.0 / (centre + d) + 1.0 / (centre - d) - 2.0 / centre) / 12.0
    off = RELATIVE * (np.abs(cost) + block + 64.0) + 0.04 / centre**3
    cost -= block * math.log(2.0)
    is_far = 2 * distance > m
    low, high = np.where(is_far, 0.0, np.exp(-cost - off)), np.where(is_far, 1.0, np.exp(off - cost))
    return low, np.where(distance > m, -1.0, high)


def _sample_bernoullis(entropy: Entropy, low: Floats, high: Floats, p: Callable[[int], arb]) -> Mask:
    """Returns True for entry i with probability exactly p(i), which lies between low[i] and high[i]."""
    words, unit = entropy.words(len(low)), 2.0**-entropy.word
    # The uniform number is from words to words + 1, in units of its last bit.
    share = words * unit
    if (low > 1.0).any():
        raise EnvelopeError
    result: Mask = (share + unit) * (1.0 + RELATIVE) < low
    for i in np.flatnonzero(~result & (share * (1.0 - RELATIVE) <= high)).tolist():
        result[i] = is_below(Uniform(entropy, int(words[i])), partial(p, i))
    return result
