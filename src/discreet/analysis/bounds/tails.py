"""How bad the worst released item may be: tail bounds of canonical and of peeling, with their proofs.

All of them bound how far behind the best an element may be that still wins, in units of the noise (its height, from the
noise's `pairwise_tail`), and turn that into scores.

Where canonical has the better bound is a comparison of two upper bounds, not of two mechanisms.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from discreet.analysis.bounds.arguments import check_alpha, check_positive_gamma, check_setting, check_sizes
from discreet.exact.ball import ball, log_binomial, precise, round_up
from discreet.mechanisms.canonical import DEFAULT_GAMMA
from discreet.noise import GUMBEL, PairwiseTail
from discreet.privacy import Number, Sensitivity, exact


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
        How many are released; with k = d all are, and the bound is 0.
    epsilon
        The privacy budget of the release.
    alpha
        The probability with which the bound may fail, above 0 and below 1.
    noise
        The name of a noise.
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
    given, level = check_setting(d, k, epsilon, noise, sensitivity, adjacency), check_alpha(alpha)
    return round_up(lambda: subsets_height(given.d, given.k, level, given.tail) / ball(given.s), given.d)


def canonical_tail(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    gamma: Number = DEFAULT_GAMMA,
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
    d, k, epsilon, alpha, noise, sensitivity, adjacency
        As in `exponential_mechanism`.
    gamma
        The gamma of the mechanism, by default that of `Canonical()`; above 0, because with gamma = 0 the loss does
        not see the worst item. `Canonical(ceil=True)` has 1/2.

    Returns
    -------
    float
        The bound, in units of the scores, rounded up.

    Examples
    --------
    >>> round(canonical_tail(1000, 10, epsilon=1, alpha="0.05"), 3)
    75.898
    >>> round(canonical_tail(1000, 10, epsilon=1, alpha="0.05", gamma=1), 3)
    56.924
    """
    given, level = check_setting(d, k, epsilon, noise, sensitivity, adjacency), check_alpha(alpha)
    why = "the bound is on the worst item released, which the loss does not see with gamma = 0"
    share = check_positive_gamma(gamma, why)
    return round_up(lambda: subsets_height(given.d, given.k, level, given.tail) / ball(given.s * share), given.d)


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
    d, k, epsilon, alpha, noise, sensitivity, adjacency
        As in `exponential_mechanism`; each round has a k-th of epsilon.

    Returns
    -------
    float
        The bound, in units of the scores, rounded up.

    Examples
    --------
    >>> round(peeling_tail(1000, 10, epsilon=1, alpha="0.05"), 3)
    121.831
    """
    given, level = check_setting(d, k, epsilon, noise, sensitivity, adjacency), check_alpha(alpha)
    return round_up(lambda: rounds_height(given.d, given.k, level, given.tail) / ball(given.s), given.d)


def subsets_height(d: int, k: int, level: Fraction, tail: PairwiseTail) -> arb:
    """How far behind the best a subset may be, in units of the noise, except with probability `level`."""
    return arb(0) if k == d else tail.height(log_binomial(d, k) - ball(level).log())


def rounds_height(d: int, k: int, level: Fraction, tail: PairwiseTail) -> arb:
    """How far behind the best left an item may be in every round, times k, except with probability `level`."""
    return arb(0) if k == d else k * tail.height(arb(d).log() - _level_of_each_round(level, k).log())


def _level_of_each_round(level: Fraction, k: int) -> arb:
    """A ball around 1 - (1 - level)^(1/k)."""
    one_minus = ball(-level).log1p() if level < Fraction(1, 2) else ball(1 - level).log()
    return -(one_minus / k).expm1()


@dataclass(frozen=True)
class Tails:
    """The tail bounds of canonical and of peeling for one (d, k), and whether canonical's is the smaller.

    The two numbers are rounded up; `canonical_is_better` is decided before that, and True only where it is certain.
    """

    canonical: float
    peeling: float
    canonical_is_better: bool


def compare_tails(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    gamma: Number = DEFAULT_GAMMA,
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> Tails:
    """The tail bounds of canonical and of peeling side by side, under Gumbel, exponential or half-logistic noise.

    This compares two upper bounds on how far below x[k] the worst released item is. The smaller bound is the better
    promise; it does not show that the mechanism is better on any scores. Which bound is smaller depends neither on
    epsilon nor on the sensitivity.

    Parameters
    ----------
    d, k, epsilon, alpha, gamma, sensitivity, adjacency
        As in `canonical_tail`.

    Returns
    -------
    Tails
        Both bounds, and whether that of canonical is the smaller.

    Examples
    --------
    >>> compare_tails(1000, 10, epsilon=1, alpha="0.05").canonical_is_better
    True
    >>> compare_tails(1000, 2, epsilon=1, alpha="0.05").canonical_is_better
    False
    """
    options: dict[str, Any] = {"sensitivity": sensitivity, "adjacency": adjacency}
    canonical = canonical_tail(d, k, epsilon, alpha, gamma=gamma, **options)
    peeling = peeling_tail(d, k, epsilon, alpha, **options)
    return Tails(canonical, peeling, _is_better(int(d), int(k), check_alpha(alpha), exact(gamma, "gamma")))


def smallest_k(d: int, alpha: Number, *, gamma: Number = DEFAULT_GAMMA) -> int | None:
    """The smallest k at which canonical's tail bound is below that of peeling: it then is for all k from there to d-1.

    Divide both bounds by k/s. That of peeling, log d + log(1/a), grows with k, because a falls. That of canonical is
    (log C(d, k) + log(1/alpha)) / (gamma k), which falls: log C(d, k) is the sum of log((d-j+1)/j) for j up to k, whose
    terms fall, and so does their mean. Hence they cross once. (With k = d all items are released: nothing to compare.)

    As in `compare_tails`, this is about two upper bounds and not about the mechanisms.

    Parameters
    ----------
    d, alpha, gamma
        As in `canonical_tail`.

    Returns
    -------
    int or None
        The smallest such k, or None where there is none below d.

    Examples
    --------
    >>> smallest_k(1000, alpha="0.05"), smallest_k(1000, alpha="0.05", gamma=1)
    (3, 2)
    """
    d, _ = check_sizes(d, 1)
    level, share = check_alpha(alpha), check_positive_gamma(gamma, "there is no bound for gamma = 0")
    low, high = 1, d
    while low < high:
        middle = (low + high) // 2
        if _is_better(d, middle, level, share):
            high = middle
        else:
            low = middle + 1
    return low if low < d else None


def _is_better(d: int, k: int, level: Fraction, share: Fraction) -> bool:
    """Whether canonical's tail bound is certainly below that of peeling, both times s."""
    bits, tail = 128, GUMBEL.require_pairwise_tail()
    # The two can be equal, as at d = 4, k = 2, level = 3/4, gamma = 1/2: then no precision tells them apart.
    while bits <= 2048:
        with precise(d, bits):
            canonical = subsets_height(d, k, level, tail) / ball(share)
            peeling = rounds_height(d, k, level, tail)
            if canonical < peeling:
                return True
            if canonical > peeling:
                return False
        bits *= 2
    return False
