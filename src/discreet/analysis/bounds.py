"""Guarantees without data: what the mechanisms promise for every score vector, from public numbers alone.

All of it rests on one race. Write v for how far an element is behind the best one, in units of the noise. For an
element to win it must beat the best one, which has a chance of at most exp(-v) under Gumbel noise, and there are |Y|
elements at most. Ranks count from 1, as in the paper: x[1] >= ... >= x[d] are the scores, T is the worst rank that is
released, s = epsilon / (2 delta). Every number is computed with balls and rounded to the side on which it stays true.

The paper (Shekelyan and Loukides, 2022) prints several of these bounds the wrong way round: see docs/errata.md. Its
"leap" for peeling is no bound and has no repair, so there is none here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
from flint import acb, arb, ctx

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.exact.ball import ball, log_binomial, precision
from discreet.mechanisms.base import scale
from discreet.noise import NOISES, Piece, check_noise
from discreet.privacy import Number, Sensitivity, exact, positive

__all__ = [
    "Tails",
    "canonical_leap",
    "canonical_miss",
    "canonical_tail",
    "compare_tails",
    "exponential_mechanism",
    "peeling_tail",
    "smallest_k",
]

_MOST = 1 << 63
"""The largest domain that a release can have."""


@dataclass(frozen=True)
class Tails:
    """The tail bounds of canonical and of peeling for one (d, k), and whether canonical's is the smaller.

    The two numbers are rounded up; `canonical_is_better` is decided before that, and True only where it is certain.
    """

    canonical: float
    peeling: float
    canonical_is_better: bool


def exponential_mechanism(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """How far the loss of what is drawn may be above the best loss, except with probability alpha.

    The event: loss(drawn) > best loss + bound. It has probability at most alpha, for every score vector. It covers the
    canonical mechanism, which draws one of |Y| = C(d, k) subsets, and with k = 1 every choice of one of d items.

    An element that is v = s (loss - best loss) behind wins only if it beats the best element, with probability p(v).
    Under Gumbel, exponential and half-logistic noise p(v) <= exp(-v); fewer than |Y| elements are behind; so
    v = L = log|Y| + log(1/alpha) does. For the two noises with a heavy lower side it takes a little more:
    Laplace, p(v) = exp(-v) (2+v)/4, v = L + log((1+L)/2); logistic, p(v) <= exp(-v) (v + log 2), v = L + log(1+2L).

    Parameters
    ----------
    d
        The number of items.
    k
        How many are released.
    epsilon
        The privacy budget of the release.
    alpha
        The probability with which the bound may fail, above 0 and below 1.
    noise
        One of the five noises.
    sensitivity
        How far adding one user can move a score; counts of users by default.
    adjacency
        "add-remove" or "swap".

    Returns
    -------
    float
        The bound, in units of the loss, rounded up.

    Examples
    --------
    >>> round(exponential_mechanism(1000, 1, epsilon=1, alpha="0.05"), 3)
    9.903
    >>> round(exponential_mechanism(1000, 10, epsilon=1, alpha="0.05"), 3)
    56.924
    """
    d, k = _sizes(d, k)
    s, level = _scale(epsilon, sensitivity, adjacency), _level(alpha)
    check_noise(noise)
    return _above(lambda: _subsets_height(d, k, level, noise) / ball(s), d)


def canonical_tail(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    gamma: Number = "1/2",
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """How far below x[k] the worst item that canonical releases may be, except with probability alpha.

    The event: x[T] >= x[k] - bound, that is, every released item scores at least x[k] - bound. It has probability at
    least 1 - alpha, for every score vector.

    Counted from the top-k, which has the least loss, a subset that lacks rank h+1 and has worst rank t has the loss
    (1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t]) >= gamma (x[k] - x[t]). So the guarantee of the exponential
    mechanism over C(d, k) subsets, divided by gamma, is one for x[k] - x[T]:
    bound = (2 delta / (gamma epsilon)) (log C(d, k) + log(1/alpha)), with the same additions for Laplace and logistic
    noise. It holds for the loss rounded up (`ceil`) too, which only adds to the loss of the others.

    Parameters
    ----------
    d
        The number of items.
    k
        How many are released; with k = d all are, and the bound is 0.
    epsilon
        The privacy budget of the release.
    alpha
        The probability with which the bound may fail, above 0 and below 1.
    gamma
        The gamma of the mechanism, above 0: with gamma = 0 the loss does not see the worst item.
    noise
        One of the five noises.
    sensitivity
        How far adding one user can move a score; counts of users by default.
    adjacency
        "add-remove" or "swap".

    Returns
    -------
    float
        The bound, in units of the scores, rounded up.

    Examples
    --------
    >>> round(canonical_tail(1000, 10, epsilon=1, alpha="0.05"), 3)
    113.847
    >>> round(canonical_tail(1000, 10, epsilon=1, alpha="0.05", gamma=1), 3)
    56.924
    """
    d, k = _sizes(d, k)
    s, level = _scale(epsilon, sensitivity, adjacency), _level(alpha)
    share = _share(gamma, "the bound is on the worst item released, which the loss does not see with gamma = 0")
    check_noise(noise)
    return _above(lambda: _subsets_height(d, k, level, noise) / ball(s * share), d)


def peeling_tail(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """How far below x[k] the worst item that peeling releases may be, except with probability alpha.

    The event: x[T] >= x[k] - bound. It has probability at least 1 - alpha, for every score vector. More is true on the
    same event: the item of round i scores at least x[i] - bound.

    Round i is a choice of one of at most d items at epsilon/k. Before it at most i-1 items are gone, so that the best
    one left scores at least x[i] >= x[k]. Whatever was drawn before, the item of the round scores less than that by
    more than (k/s) (log d + log(1/a)) with probability at most a; hence all k rounds are good with probability at least
    (1-a)^k, which is 1 - alpha for a = 1 - (1-alpha)^(1/k) (Sidak). With r = k a / alpha >= 1, the ratio of this a to
    that of a union bound, bound = (1/s) (k log d + k log k + k log(1/alpha) - k log r). Here r is exact: a constant in
    place of log r must be below it, and the printed 0.06 is above it for every alpha up to 0.1.

    Parameters
    ----------
    d
        The number of items.
    k
        How many are released; with k = d all are, and the bound is 0.
    epsilon
        The privacy budget of the release, of which each round has a k-th.
    alpha
        The probability with which the bound may fail, above 0 and below 1.
    noise
        One of the five noises.
    sensitivity
        How far adding one user can move a score; counts of users by default.
    adjacency
        "add-remove" or "swap".

    Returns
    -------
    float
        The bound, in units of the scores, rounded up.

    Examples
    --------
    >>> round(peeling_tail(1000, 10, epsilon=1, alpha="0.05"), 3)
    121.831
    """
    d, k = _sizes(d, k)
    s, level = _scale(epsilon, sensitivity, adjacency), _level(alpha)
    check_noise(noise)
    return _above(lambda: _rounds_height(d, k, level, noise) / ball(s), d)


def compare_tails(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    gamma: Number = "1/2",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> Tails:
    """The tail bounds of canonical and of peeling side by side, under Gumbel, exponential or half-logistic noise.

    This compares two upper bounds on how far below x[k] the worst released item is. The smaller bound is the better
    promise; it does not show that the mechanism is better on any scores. Which bound is smaller depends neither on
    epsilon nor on the sensitivity.

    Parameters
    ----------
    d
        The number of items.
    k
        How many are released.
    epsilon
        The privacy budget of the release.
    alpha
        The probability with which each bound may fail, above 0 and below 1.
    gamma
        The gamma of canonical, above 0.
    sensitivity
        How far adding one user can move a score; counts of users by default.
    adjacency
        "add-remove" or "swap".

    Returns
    -------
    Tails
        Both bounds, and whether that of canonical is the smaller.

    Examples
    --------
    >>> compare_tails(1000, 10, epsilon=1, alpha="0.05").canonical_is_better
    True
    >>> compare_tails(1000, 3, epsilon=1, alpha="0.05").canonical_is_better
    False
    """
    options: dict[str, Any] = {"sensitivity": sensitivity, "adjacency": adjacency}
    canonical = canonical_tail(d, k, epsilon, alpha, gamma=gamma, **options)
    peeling = peeling_tail(d, k, epsilon, alpha, **options)
    return Tails(canonical, peeling, _is_better(int(d), int(k), _level(alpha), exact(gamma, "gamma")))


def smallest_k(d: int, alpha: Number, *, gamma: Number = "1/2") -> int | None:
    """The smallest k at which canonical's tail bound is below that of peeling: it then is for all k from there to d-1.

    Divide both bounds by k/s. That of peeling, log d + log(1/a), grows with k, because a falls. That of canonical is
    (log C(d, k) + log(1/alpha)) / (gamma k), which falls: log C(d, k) is the sum of log((d-j+1)/j) for j up to k, whose
    terms fall, and so does their mean. Hence they cross once. (With k = d all items are released: nothing to compare.)

    As in `compare_tails`, this is about two upper bounds and not about the mechanisms.

    Parameters
    ----------
    d
        The number of items.
    alpha
        The probability with which each bound may fail, above 0 and below 1.
    gamma
        The gamma of canonical, above 0.

    Returns
    -------
    int or None
        The smallest such k, or None where there is none below d.

    Examples
    --------
    >>> smallest_k(1000, alpha="0.05"), smallest_k(1000, alpha="0.05", gamma=1)
    (8, 2)
    """
    d, _ = _sizes(d, 1)
    level, share = _level(alpha), _share(gamma, "there is no bound for gamma = 0")
    low, high = 1, d
    while low < high:
        middle = (low + high) // 2
        if _is_better(d, middle, level, share):
            high = middle
        else:
            low = middle + 1
    return low if low < d else None


def canonical_leap(
    d: int,
    k: int,
    epsilon: Number,
    gap: Number,
    *,
    gamma: Number = "1/2",
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """A probability with which canonical releases the top-k if x[k] - x[k+1] is at least `gap`.

    Let N be the largest of n = C(d, k) - 1 independent noises less one more, and X = N / (s gamma). Then
    Pr[TOP] >= Pr[X < x[k] - x[k+1]], because every other subset is behind the top-k by
    s ((1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t])) >= s gamma (x[k] - x[k+1]) as h+1 <= k and t >= k+1. If all of
    them were exactly so far behind, the top-k would win with probability Pr[N < s gamma (x[k] - x[k+1])], and moving
    them further back only helps it. Under Gumbel noise N is logistic about log n, so this is
    1 / (1 + n exp(-s gamma gap)); for the others see `_race`. It holds for the loss rounded up (`ceil`) too.

    Parameters
    ----------
    d
        The number of items.
    k
        How many are released.
    epsilon
        The privacy budget of the release.
    gap
        How far the k-th score is above the next one, at least: an assumption about the scores, zero or more.
    gamma
        The gamma of the mechanism, above 0.
    noise
        One of the five noises.
    sensitivity
        How far adding one user can move a score; counts of users by default.
    adjacency
        "add-remove" or "swap".

    Returns
    -------
    float
        A lower bound on Pr[TOP], rounded down: for Gumbel noise in its last digit, for the others by up to 2^-40.

    Examples
    --------
    >>> round(canonical_leap(1000, 10, epsilon=1, gap=120), 4)
    0.9977
    >>> round(canonical_leap(1000, 10, epsilon=1, gap=120, noise="exponential"), 4)
    0.9988
    """
    d, k = _sizes(d, k)
    share = _share(gamma, "the gap is below the k-th score, where the loss does not look with gamma = 0")
    v = _scale(epsilon, sensitivity, adjacency) * share * _at_least_zero(gap, "gap")
    check_noise(noise)
    return 1.0 if k == d else _below(lambda: _race(noise, v, _log_others(d, k))[0], d)


def canonical_miss(
    d: int,
    k: int,
    epsilon: Number,
    spread: Number,
    *,
    gamma: Number = "1/2",
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """A probability with which canonical does not release the top-k if x[1] - x[d] is at most `spread`.

    With N as in `canonical_leap` and X = N / (s gamma), for gamma >= 1/2, Pr[not TOP] >= Pr[X > x[1] - x[d]]. For every
    other subset is behind the top-k by s ((1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t])), a weighted sum of two parts
    of x[1] - x[d], and so by at most s max(gamma, 1-gamma) (x[1] - x[d]); moving them back that far only helps the
    top-k. For gamma < 1/2 the same holds with 1-gamma in place of gamma. Of the n = C(d, k) - 1 others each one counts:
    with one more, a dummy subset that is no subset of the items, it would be false. TOP is by rank: under ties the
    release may be as good and still not be the one that comes first. It does not cover `ceil`.

    Parameters
    ----------
    d
        The number of items.
    k
        How many are released.
    epsilon
        The privacy budget of the release.
    spread
        How far the largest score is above the smallest, at most: an assumption about the scores, zero or more.
    gamma
        The gamma of the mechanism.
    noise
        One of the five noises.
    sensitivity
        How far adding one user can move a score; counts of users by default.
    adjacency
        "add-remove" or "swap".

    Returns
    -------
    float
        A lower bound on Pr[not TOP], rounded down: for Gumbel noise in its last digit, for the others by up to 2^-40.

    Examples
    --------
    >>> round(canonical_miss(1000, 10, epsilon=1, spread=100), 4)
    0.9807
    """
    d, k = _sizes(d, k)
    share = _gamma(gamma)
    v = _scale(epsilon, sensitivity, adjacency) * max(share, 1 - share) * _at_least_zero(spread, "spread")
    check_noise(noise)
    return 0.0 if k == d else _below(lambda: _race(noise, v, _log_others(d, k))[1], d)


def _subsets_height(d: int, k: int, level: Fraction, noise: str) -> arb:
    """How far behind the best a subset may be, in units of the noise, except with probability `level`."""
    return arb(0) if k == d else _height(log_binomial(d, k) - ball(level).log(), noise)


def _rounds_height(d: int, k: int, level: Fraction, noise: str) -> arb:
    """How far behind the best left an item may be in every round, times k, except with probability `level`."""
    return arb(0) if k == d else k * _height(arb(d).log() - _each_round(level, k).log(), noise)


def _each_round(level: Fraction, k: int) -> arb:
    """A ball around 1 - (1 - level)^(1/k)."""
    one_minus = ball(-level).log1p() if level < Fraction(1, 2) else ball(1 - level).log()
    return -(one_minus / k).expm1()


def _height(log_ratio: arb, noise: str) -> arb:
    """A v such that exp(log_ratio) p(v) <= 1, where p(v) is the chance of one element, v behind, to beat another.

    For log_ratio = L >= log 2, and with Z the noise of the one in front, p(v) = E[1 - F(Z + v)].
    Gumbel: 1 / (1 + e^v). Exponential: e^-v / 2. Half-logistic: 1 - F(w) <= 2 e^-w, and E[2 e^-Z] = 4 log 2 - 2 < 1.
    Laplace: e^-v (2+v)/4, and (2+v)/4 <= (1+L)/2 as log((1+L)/2) <= L. Logistic: 1 - F(w) <= min(1, e^-w), whose mean
    is e^-v (v + log(1 + e^-v)), and v + log 2 <= 1 + 2L as log(1+2L) <= L + 0.2.
    """
    if noise == "laplace":
        return log_ratio + ((1 + log_ratio) / 2).log()
    if noise == "logistic":
        return log_ratio + (1 + 2 * log_ratio).log()
    return log_ratio


def _is_better(d: int, k: int, level: Fraction, share: Fraction) -> bool:
    """Whether canonical's tail bound is certainly below that of peeling, both times s."""
    bits = 128
    # The two can be equal, as at d = 4, k = 2, level = 3/4, gamma = 1/2: then no precision tells them apart.
    while bits <= 2048:
        with _precision(d, bits):
            canonical = _subsets_height(d, k, level, "gumbel") / ball(share)
            peeling = _rounds_height(d, k, level, "gumbel")
            if canonical < peeling:
                return True
            if canonical > peeling:
                return False
        bits *= 2
    return False


def _log_others(d: int, k: int) -> arb:
    """A ball around log(C(d, k) - 1), for k < d."""
    log_all = log_binomial(d, k)
    return log_all + (-(-log_all).exp()).log1p()


_END, _TOLERANCE = 64, 2.0**-50
"""Where an integral over race times is cut off, as exp(-64) is nothing, and the error that it may have."""


@dataclass(frozen=True)
class _Arrival:
    """The noise G of a race time E: exp(-G(E)) where G >= 0, the E at which exp(-G) is x <= 1, and exp(-G) for G <= 0.

    Without a lower formula the first one holds everywhere.
    """

    early: Callable[[acb], acb]
    moment: Callable[[arb], arb]
    late: Callable[[acb], acb] | None = None


_ARRIVALS = {
    "exponential": _Arrival(lambda e: -(-e).expm1(), lambda x: -(-x).log1p()),
    "laplace": _Arrival(lambda e: -2 * (-e).expm1(), lambda x: -(-x / 2).log1p(), lambda e: e.exp() / 2),
    "logistic": _Arrival(lambda e: e.expm1(), lambda x: x.log1p()),
    "half-logistic": _Arrival(lambda e: (e / 2).tanh(), lambda x: 2 * x.atanh()),
}


def _race(noise: str, v: Fraction, log_n: arb) -> tuple[arb, arb]:
    """The chances that one element beats and does not beat all of n others that are v behind it."""
    if v == 0:
        odds = log_n.exp()
        return 1 / (1 + odds), odds / (1 + odds)
    if ball(v) > log_n + 10**6:
        lost = arb(0).union(arb(2) ** -1000)
    elif noise == "gumbel":
        odds = (log_n - ball(v)).exp()
        return 1 / (1 + odds), odds / (1 + odds)
    else:
        lost = _lost(noise, v, log_n)
    return 1 - lost, lost


def _lost(noise: str, v: Fraction, log_n: arb) -> arb:
    """The chance that the first of n others, v behind, beats one element: the integral of e^-u F(G(u/n) - v) over u.

    The largest noise of n is G(u/n), where u is a standard exponential variable. In x = exp(-w) at w = G(u/n) - v,
    F is x = e^v exp(-G(u/n)) put into its formulas, which change where w = 0 and, for Laplace noise, where G = 0.
    """
    # All n together, by the chances of one (`_height`): (1 + v) e^-v is above each of them.
    at_most = (log_n - ball(v)).exp() * (1 + ball(v))
    if at_most < _TOLERANCE:
        return arb(0).union(at_most)
    n, lift, arrival = log_n.exp(), ball(v).exp(), _ARRIVALS[noise]
    switch, upper, lower = n * arrival.moment(1 / lift), NOISES[noise].upper, NOISES[noise].lower
    total = _part(lambda u: upper.below(lift * arrival.early(u / n), acb(1)), arb(0), switch)
    if lower is not None:
        total += _low_parts(lower, arrival, lift, n, switch)
    return total + arb(0).union((-arb(_END)).exp())


def _low_parts(lower: Piece, arrival: _Arrival, lift: arb, n: arb, switch: arb) -> arb:
    """The part of `_lost` where w < 0, before and after the noise itself is below zero."""

    def part(least: Callable[[acb], acb], begin: arb, end: arb) -> arb:
        return _part(lambda u: lower.below(lift * least(u / n), acb(1)), begin, end)

    if arrival.late is None:
        return part(arrival.early, switch, arb(_END))
    zero = n * arrival.moment(arb(1))
    return part(arrival.early, switch, zero) + part(arrival.late, zero, arb(_END))


def _part(chance: Callable[[acb], acb], begin: arb, end: arb) -> arb:
    """The integral of e^-u times `chance` from `begin` to `end`, or to the cut-off if that comes first."""
    if begin > _END:
        return arb(0)
    last = arb(_END) if end > _END else end
    error = arb(_TOLERANCE), arb(2) ** (-ctx.prec + 30)
    whole = acb.integral(lambda u, _: (-u).exp() * chance(u), acb(begin), acb(last), abs_tol=error[0], rel_tol=error[1])
    return whole.real


@contextmanager
def _precision(d: int, bits: int = 128) -> Iterator[None]:
    """Balls of `bits` good bits where logarithms of factorials of numbers up to d cancel."""
    with precision(bits + 2 * d.bit_length()):
        yield


def _above(value: Callable[[], arb], d: int) -> float:
    """A float at or above the value."""
    with _precision(d):
        result = value()
        return 0.0 if result == 0 else nextafter(float(result.upper()), inf)


def _below(chance: Callable[[], arb], d: int) -> float:
    """A float below the chance, and zero or more."""
    with _precision(d):
        return max(0.0, nextafter(float(chance().lower()), -inf))


def _scale(epsilon: Number, sensitivity: Sensitivity | None, adjacency: str) -> Fraction:
    if sensitivity is not None and not isinstance(sensitivity, Sensitivity):
        raise InvalidTypeError(f"sensitivity must be a Sensitivity(down=..., up=...), not {shown(sensitivity)}")
    return scale(positive(epsilon, "epsilon"), (sensitivity or Sensitivity()).under(adjacency))


def _sizes(d: int, k: int) -> tuple[int, int]:
    items = _whole(d, "d", _MOST, "2^63")
    return items, _whole(k, "k", items, f"{items}, the number of items")


def _whole(value: Any, name: str, most: int, limit: str) -> int:
    message = f"{name} must be a whole number from 1 to {limit}, not {shown(value)}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidTypeError(message)
    if not 1 <= value <= most:
        raise InvalidValueError(message)
    return int(value)


def _level(alpha: Number) -> Fraction:
    level = exact(alpha, "alpha")
    if not 0 < level < 1:
        raise InvalidValueError(f"alpha must be above 0 and below 1, not {shown(alpha)}")
    return level


def _gamma(gamma: Number) -> Fraction:
    share = exact(gamma, "gamma")
    if not 0 <= share <= 1:
        raise InvalidValueError(f"gamma must be from 0 to 1, not {shown(gamma)}")
    return share


def _share(gamma: Number, why: str) -> Fraction:
    share = _gamma(gamma)
    if share == 0:
        raise InvalidValueError(f"gamma must be above 0, not {shown(gamma)}: {why}")
    return share


def _at_least_zero(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise InvalidValueError(f"{name} must be zero or more, not {shown(value)}")
    return number
