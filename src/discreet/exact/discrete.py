"""Exact samplers for whole numbers: the discrete Laplace and the binomial distribution, and tails of the former.

The Laplace sampler is that of Canonne, Kamath and Steinke (The Discrete Gaussian for Differential Privacy, 2020,
algorithms 1 and 2; docs/proofs.md, section 8.1). The binomial sampler needs a success probability only as a ball, and
reads about log2(m) + 2 of its bits for m trials. No sum or product is ever rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from flint import arb

from discreet.errors import InternalError
from discreet.exact.arrays import Floats, Mask, Ranks, Words
from discreet.exact.ball import (
    FLOAT_MARGIN,
    MAX_SCANNED,
    START_PRECISION,
    EnvelopeError,
    ball,
    find_floor,
    is_below,
    log_binomial,
    precision,
)
from discreet.exact.entropy import Entropy, Uniform

MOST_TRIALS = 2**62
"""The most trials of a binomial draw, so that all counts fit 64 bits."""

_MAX_COUNTED_BITS = 512
"""Up to this many fair bits are drawn and counted; for more, rejection is faster."""

_PROPOSALS_AT_ONCE = 2048
"""Up to this many proposals cost NumPy little more than one."""

_ONES_OF_16_BITS = np.zeros(1, np.uint8)
for _ in range(16):
    _ONES_OF_16_BITS = np.concatenate([_ONES_OF_16_BITS, _ONES_OF_16_BITS + np.uint8(1)])


# The discrete Laplace distribution


def sample_discrete_laplace(entropy: Entropy, rate: Fraction) -> int:
    """Draw a whole number n with probability exactly proportional to exp(-rate |n|), for rate > 0."""
    while True:
        size, negative = sample_geometric_exp(entropy, rate), entropy.bits(1)
        # Reject -0, because 0 would otherwise count twice.
        if size or not negative:
            return -size if negative else size


def sample_geometric_exp(entropy: Entropy, rate: Fraction) -> int:
    """Draw n >= 0 with probability exactly proportional to exp(-rate n)."""
    # With rate = s/t, z = u + t v has probability proportional to exp(-z / t), and n = floor(z / s).
    s, t = rate.numerator, rate.denominator
    while True:
        u = entropy.upto(t - 1)
        if sample_bernoulli_exp1(entropy, u, t):
            break
    v = 0
    while sample_bernoulli_exp1(entropy, 1, 1):
        v += 1
    return (u + t * v) // s


def sample_bernoulli_exp1(entropy: Entropy, numerator: int, denominator: int) -> bool:
    """Return True with probability exactly exp(-x) for x = numerator / denominator, 0 <= x <= 1."""
    # Pr[the first n trials succeed] = x^n / n!, so Pr[the first failure is odd] = sum (-x)^n / n! = exp(-x).
    # Lowest terms need the fewest bits.
    shared = math.gcd(numerator, denominator)
    over, under, trial = numerator // shared, denominator // shared, 1
    while entropy.upto(under * trial - 1) < over:
        trial += 1
    return trial % 2 == 1


def upper_tail(rate: Fraction, n: int) -> arb:
    """Return a ball around Pr[N >= n] for a discrete Laplace variable N and any whole number n."""
    # Pr[N >= n] = q^n / (1 + q) for n >= 1 with q = exp(-rate); the distribution is symmetric.
    if n < 1:
        return 1 - upper_tail(rate, 1 - n)
    return (-ball(rate * n)).exp() / (1 + (-ball(rate)).exp())


@lru_cache(maxsize=256)
def interval_half_width(rate: Fraction, alpha: Fraction) -> int:
    """Return the least n >= 0 with Pr[|N| > n] <= alpha for a discrete Laplace N; both arguments are public."""
    return least_upper_tail(rate, lambda: ball(alpha / 2)) - 1


def rounded_half_width(rate: Fraction, alpha: Fraction) -> int:
    """Return n such that rounded Laplace noise, floor(X + 1/2), exceeds n in size with probability at most alpha.

    X has the density rate exp(-rate |x|) / 2. Pr[|X| > t] = alpha at t = log(1 / alpha) / rate, and |X| <= t implies
    that floor(X + 1/2) is at most floor(t + 1/2) from zero.
    """
    # log(1 / alpha) is transcendental for a rational alpha < 1, so enough precision decides.
    return find_floor(
        lambda: ball(Fraction(1, 2)) - ball(alpha).log() / ball(rate), lambda rounds: rounds * START_PRECISION
    )


def least_upper_tail(rate: Fraction, chance: Callable[[], arb]) -> int:
    """Return the least n >= 1 with Pr[N >= n] <= `chance` for a discrete Laplace variable N.

    `chance` returns a ball at the precision in force. It must differ from every tail, or no precision would decide. An
    algebraic number always does, because exp(-rate) is transcendental.
    """
    bits = START_PRECISION
    while True:
        with precision(bits):
            # q^n / (1 + q) <= chance if and only if n >= log(1 / (chance (1 + q))) / rate.
            steps = -(chance().log() + (-ball(rate)).exp().log1p()) / ball(rate)
            found = steps.ceil().unique_fmpz()
        if found is not None:
            return max(1, int(found))
        bits *= 2


# The binomial distribution
#
# A trial succeeds if a uniform U is below p. The first bit in which U and p differ decides: U < p if that bit of p is a
# one. All m trials are followed bit by bit at once. Of n trials that agree with p so far, Binomial(n, 1/2) agree in the
# next bit too; the others are decided. Only their number matters, and it halves with every bit.


def sample_binomials(entropy: Entropy, m: Ranks, low: Floats, high: Floats, p: Callable[[int], arb]) -> Ranks:
    """Draw independent numbers n_i with probability exactly C(m_i, n_i) p_i^n_i (1-p_i)^(m_i-n_i).

    Parameters
    ----------
    entropy
        The source of randomness.
    m
        The numbers of trials, together at most MOST_TRIALS.
    low, high
        Floats below and above each probability; they decide most bits.
    p
        A function that returns a ball around p_i.
    """
    try:
        return _sample_together(entropy, m, low, high, p)
    except EnvelopeError:
        # A bound is too low: one exact coin per trial.
        if m.sum() > MAX_SCANNED:
            raise InternalError from None
        counts = [sum(is_below(entropy.uniform(), partial(p, i)) for _ in range(n)) for i, n in enumerate(m)]
        return np.array(counts, np.int64)


def _sample_together(entropy: Entropy, m: Ranks, low: Floats, high: Floats, p: Callable[[int], arb]) -> Ranks:
    """Draw the numbers of `sample_binomials`, relying on the bounds `low` and `high`."""
    # Thinning: with 2^-z above p_i, a trial succeeds if a coin of probability 2^-z and then one of probability 2^z p_i
    # does. All rare entries share the first kind of coin: its successes are binomial in number, and a uniform subset.
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
    at = np.empty(0, np.int64)
    if drawn[-1]:
        ends = np.cumsum(m[rare])
        at = rare[np.searchsorted(ends, entropy.subset(int(drawn[-1]), int(ends[-1]) - 1), side="right")]
    hits = at[_sample_bernoullis(entropy, low[at] * 2.0**z, high[at] * 2.0**z, lambda j: p(int(at[j])) * arb(2) ** z)]
    return result + np.bincount(hits, minlength=len(m))


def _sample_by_bits(entropy: Entropy, m: Ranks, low: Floats, high: Floats, p: Callable[[int], arb]) -> Ranks:
    """Draw the numbers of `sample_binomials`, each by the bits of its own probability."""
    first, last = _leading_words(low), _leading_words(high)
    # The number of leading bits that low and high share; one less where the float rounds up to a power of two.
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
    """Return the first 64 bits of non-negative reals, and 64 ones for reals from 1 on."""
    below = np.minimum(values, np.nextafter(1.0, 0.0))
    return np.where(values < 1.0, (below * 2.0**64).astype(np.uint64), np.uint64(2**64 - 1))


def _sample_from_bit(entropy: Entropy, agreeing: int, p: Callable[[], arb], bit: int) -> int:
    """Draw the number of successes among `agreeing` trials that agree with p in the first `bit` bits.

    `p` returns a ball around the probability at the precision in force. It is evaluated until its bits are certain, so
    p must be irrational, an exact ball, or have a denominator with an odd factor.
    """
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
    """Return floor(2^count p), with more precision until the ball determines it."""
    bits = START_PRECISION
    while True:
        with precision(count + bits):
            found = (p() * arb(2) ** count).floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2


def sample_fair_binomials(entropy: Entropy, n: Ranks) -> Ranks:
    """Draw for each n, from 1 to MOST_TRIALS, a number k with probability exactly C(n, k) / 2^n, independently."""
    few = n <= _MAX_COUNTED_BITS
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
    """Draw n fair bits for each n >= 1 and return the number of ones."""
    length = -(-n // entropy.word)
    ends = np.cumsum(length)
    words = entropy.words(int(ends[-1]))
    words[ends - 1] >>= (length * entropy.word - n).astype(np.uint64)
    ones = _ONES_OF_16_BITS[words.view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.int64)
    return np.add.reduceat(ones, ends - length)


# Binomial(2m, 1/2) by rejection at a cost that does not grow with m, after Bringmann, Kuhn, Panagiotou, Peter and
# Thomas (Internal DLA: Efficient Simulation of a Physical Growth Model, 2014). Let f(d) = C(2m, m+d) / C(2m, m).
# Proposal: a side by a fair coin, a block b with probability 2^-(b+1), a uniform place among the w of the block; every
# distance d has the probability 2^-b / (4w). Acceptance probability: 2^b f(d), so that d is accepted in proportion to
# f(d). It is at most 1: d >= b w, and for 0 < d <= m
#     f(d) = prod over j <= d of (m-j+1) / (m+j) <= exp(-sum (2j-1) / (m+j)) <= exp(-d^2 / (m+d)).
# The last exponent decreases in d, so f(d) <= 2^-b if (b w)^2 >= b log 2 (m + b w). That holds for all b >= 1 if
# w^2 >= log 2 (m + w), which w >= sqrt(0.7 m) + 0.7 satisfies. More than half of the proposals are accepted.


def sample_by_rejection(entropy: Entropy, m: Ranks) -> Ranks:
    """Draw for each m, from 1 to MOST_TRIALS / 2, a number k with probability exactly C(2m, k) / 4^m."""
    result = np.empty(len(m), np.int64)
    waiting = np.arange(len(m))
    while len(waiting):
        # Several proposals at once where few numbers are missing; the first accepted one counts.
        tries = max(1, min(8, _PROPOSALS_AT_ONCE // len(waiting)))
        number, accepted = _propose(entropy, np.repeat(m[waiting], tries))
        winner = np.argmax(accepted.reshape(-1, tries), axis=1) + np.arange(0, len(accepted), tries)
        is_done = accepted[winner]
        result[waiting[is_done]] = number[winner[is_done]]
        waiting = waiting[~is_done]
    return result


def _propose(entropy: Entropy, m: Ranks) -> tuple[Ranks, Mask]:
    """Draw a proposal for each m, and True if it is accepted."""
    block, width = _sample_geometric_half(entropy, len(m)), _block_width(m)
    # Upwards from the centre itself, downwards from the number below it: none is proposed twice.
    place = entropy.upto_each(2 * width - 1)
    is_down = place & 1
    distance = block * width + (place >> 1) + is_down

    def acceptance(i: int) -> arb:
        # 2^b C(2m, m + d) / C(2m, m)
        n, half, d = 2 * int(m[i]), int(m[i]), int(distance[i])
        log_ratio = log_binomial(n, half + d) - log_binomial(n, half)
        return (log_ratio + int(block[i]) * arb.const_log2()).exp()

    accepted = _sample_bernoullis(entropy, *_bound_acceptance(m, distance, block), acceptance)
    return m + np.where(is_down, -distance, distance), accepted


def _block_width(m: Ranks) -> Ranks:
    """Return a whole number above sqrt(0.7 m) + 0.9."""
    return np.sqrt(0.7 * m.astype(np.float64)).astype(np.int64) + 2


def _sample_geometric_half(entropy: Entropy, count: int) -> Ranks:
    """Draw independent numbers b >= 0 with probability exactly 2^-(b+1): the number of ones before the first zero."""
    result = np.zeros(count, np.int64)
    waiting = np.arange(count)
    while len(waiting):
        words = entropy.words(len(waiting))
        # The lowest zero of a word as a power of two, or 0 for a word of 64 ones.
        zero = ~words & (words + np.uint64(1))
        ones = np.where(zero, np.frexp(zero.astype(np.float64))[1] - 1, 64)
        result[waiting] += ones
        waiting = waiting[ones == entropy.word]
    return result


def _bound_acceptance(m: Ranks, distance: Ranks, block: Ranks) -> tuple[Floats, Floats]:
    """Return floats certainly below and above the acceptance probabilities; the second is negative where it is zero."""
    # Stirling's series, with x = d/m and c(j) between 1/(12 j) - 1/(360 j^3) and 1/(12 j):
    #     -log f(d) = (m + 1/2) log(1 - x^2) + d log((1+x) / (1-x)) + c(m+d) + c(m-d) - 2 c(m).
    # The first two terms are near -d^2/m and 2 d^2/m for x <= 1/2, so little cancels, and the cubes in c add up to less
    # than 0.04 / m^3. For x > 1/2, which is rare, the bounds are 0 and 1.
    centre = m.astype(np.float64)
    x = np.minimum(distance / centre, 0.5)
    d = x * centre
    cost = (centre + 0.5) * np.log1p(-x * x) + d * np.log1p(2.0 * x / (1.0 - x))
    cost += (1.0 / (centre + d) + 1.0 / (centre - d) - 2.0 / centre) / 12.0
    off = FLOAT_MARGIN * (np.abs(cost) + block + 64.0) + 0.04 / centre**3
    cost -= block * math.log(2.0)
    is_far = 2 * distance > m
    low, high = np.where(is_far, 0.0, np.exp(-cost - off)), np.where(is_far, 1.0, np.exp(off - cost))
    return low, np.where(distance > m, -1.0, high)


def _sample_bernoullis(entropy: Entropy, low: Floats, high: Floats, p: Callable[[int], arb]) -> Mask:
    """Draw True for entry i with probability exactly p(i), which lies between low[i] and high[i]."""
    words, unit = entropy.words(len(low)), 2.0**-entropy.word
    # U lies between words * unit and (words + 1) * unit.
    share = words * unit
    if (low > 1.0).any():
        raise EnvelopeError
    result: Mask = (share + unit) * (1.0 + FLOAT_MARGIN) < low
    for i in np.flatnonzero(~result & (share * (1.0 - FLOAT_MARGIN) <= high)).tolist():
        result[i] = is_below(Uniform(entropy, int(words[i])), partial(p, i))
    return result
