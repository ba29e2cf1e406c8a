"""Guarantees without data: what the mechanisms promise for every score vector, from public numbers alone.

All of it rests on one race. Write v for how far an element is behind the best one, in units of the noise. For an
element to win it must beat the best one, which has a chance of at most exp(-v) under Gumbel noise, and there are |Y|
elements at most. Ranks count from 1, as in the paper: x[1] >= ... >= x[d] are the scores, T is the worst rank that is
released, s = epsilon / (2 delta). Every number is computed with balls and rounded to the side on which it stays true.

The paper (Shekelyan and Loukides, 2022) prints several of these bounds the wrong way round: see docs/errata.md. Its
"leap" for peeling is no bound and has no repair, so there is none here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx

from discreet.errors import InvalidValueError, quote
from discreet.exact.ball import ball, log_binomial, precise, round_down, round_up
from discreet.mechanisms.base import scale
from discreet.mechanisms.canonical import DEFAULT_GAMMA, check_gamma
from discreet.mechanisms.noise import GUMBEL, Noise, PairwiseTail, Piece, check_noise
from discreet.privacy import Number, Sensitivity, exact, positive, sensitivity_or_default, whole_number

# What a bound is computed from, checked: sizes, epsilon, the noise, and numbers with a range of their own.

_MOST = 1 << 63
"""The largest domain that a release can have."""


@dataclass(frozen=True)
class Setting:
    """A release of k of d items, where one unit of loss costs s = epsilon / (2 delta) of log weight."""

    d: int
    k: int
    s: Fraction
    noise: Noise

    @property
    def tail(self) -> PairwiseTail:
        """What bounds how far behind the best an element may be that still wins."""
        return self.noise.require_pairwise_tail()


def check_setting(
    d: int, k: int, epsilon: Number, noise: str, sensitivity: Sensitivity | None, adjacency: str
) -> Setting:
    """The release that the arguments describe, if they describe one."""
    items, chosen = check_sizes(d, k)
    limit = sensitivity_or_default(sensitivity)
    s = scale(positive(epsilon, "epsilon"), limit.under(adjacency))
    return Setting(items, chosen, s, check_noise(noise))


def check_sizes(d: int, k: int) -> tuple[int, int]:
    """The number of items, and how many of them are released."""
    items = whole_number(d, "d", 1, _MOST, "2^63")
    return items, whole_number(k, "k", 1, items, f"{items}, the number of items")


def check_alpha(alpha: Number) -> Fraction:
    """The probability with which a bound may fail."""
    level = exact(alpha, "alpha")
    if not 0 < level < 1:
        raise InvalidValueError(f"alpha must be above 0 and below 1, not {quote(alpha)}")
    return level


def check_positive_gamma(gamma: Number, why: str) -> Fraction:
    """A gamma above zero, for bounds that divide by it; `why` says what is lost without."""
    share = check_gamma(gamma)
    if share == 0:
        raise InvalidValueError(f"gamma must be above 0, not {quote(gamma)}: {why}")
    return share


def check_not_negative(value: Number, name: str) -> Fraction:
    """A distance of scores."""
    number = exact(value, name)
    if number < 0:
        raise InvalidValueError(f"{name} must be zero or more, not {quote(value)}")
    return number


# How often canonical releases the top-k, and how often not, from how far the scores are apart: two lower bounds.
#
# Both rest on one element against n others that are all as far behind it, where n may be larger than any float.
# `winners`
# of `discreet.evidence.law` integrates over a threshold, below which n others are with the chance F^n: for such an n
# that
# is a cliff. Here the integral is over the time u/n at which the first of the others arrives, whose scale alone depends
# on n.

_BEGIN, _END = -40, 4
"""Where the integral over log u is cut off: u is below e^-40 or above e^4 = 54.6 with a chance of 5e-18 at most."""

_TOLERANCE = 2.0**-50
"""The error that an integral may have."""


def canonical_leap(
    d: int,
    k: int,
    epsilon: Number,
    gap: Number,
    *,
    gamma: Number = DEFAULT_GAMMA,
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
    1 / (1 + n exp(-s gamma gap)); for the others see `one_against`. It holds for the loss rounded up (`ceil`) too.

    Parameters
    ----------
    d, k, epsilon, gamma, noise, sensitivity, adjacency
        As in `canonical_tail`.
    gap
        How far the k-th score is above the next one, at least: an assumption about the scores, zero or more.

    Returns
    -------
    float
        A lower bound on Pr[TOP], rounded down: for Gumbel noise in its last digit, for the others by up to 2^-40.

    Examples
    --------
    >>> round(canonical_leap(1000, 10, epsilon=1, gap=80), 4)
    0.9977
    >>> round(canonical_leap(1000, 10, epsilon=1, gap=80, noise="exponential"), 4)
    0.9988
    """
    given = check_setting(d, k, epsilon, noise, sensitivity, adjacency)
    share = check_positive_gamma(gamma, "the gap is below the k-th score, where the loss does not look with gamma = 0")
    v = given.s * share * check_not_negative(gap, "gap")
    if given.k == given.d:
        return 1.0
    return round_down(lambda: one_against(given.noise, v, _log_others(given.d, given.k))[0], given.d)


def canonical_miss(
    d: int,
    k: int,
    epsilon: Number,
    spread: Number,
    *,
    gamma: Number = DEFAULT_GAMMA,
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
    d, k, epsilon, noise, sensitivity, adjacency
        As in `canonical_tail`.
    spread
        How far the largest score is above the smallest, at most: an assumption about the scores, zero or more.
    gamma
        The gamma of the mechanism, which may be 0 here.

    Returns
    -------
    float
        A lower bound on Pr[not TOP], rounded down: for Gumbel noise in its last digit, for the others by up to 2^-40.

    Examples
    --------
    >>> round(canonical_miss(1000, 10, epsilon=1, spread=67), 4)
    0.9753
    """
    given = check_setting(d, k, epsilon, noise, sensitivity, adjacency)
    share = check_gamma(gamma)
    v = given.s * max(share, 1 - share) * check_not_negative(spread, "spread")
    if given.k == given.d:
        return 0.0
    return round_down(lambda: one_against(given.noise, v, _log_others(given.d, given.k))[1], given.d)


def _log_others(d: int, k: int) -> arb:
    """A ball around log(C(d, k) - 1), for k < d."""
    log_all = log_binomial(d, k)
    return log_all + (-(-log_all).exp()).log1p()


def one_against(noise: Noise, v: Fraction, log_n: arb) -> tuple[arb, arb]:
    """The chances that one element beats and does not beat all of n others that are v behind it."""
    if ball(v) > log_n + 10**6 and _all_together(noise.require_pairwise_tail(), v, log_n) < arb(2) ** -1000:
        lost = arb(0).union(arb(2) ** -1000)
    elif v == 0 or noise.max_stable:
        odds = (log_n - ball(v)).exp()
        return 1 / (1 + odds), odds / (1 + odds)
    else:
        lost = _losing_chance(noise, v, log_n)
    return 1 - lost, lost


def _all_together(tail: PairwiseTail, v: Fraction, log_n: arb) -> arb:
    """At least the chance that one of n others, v behind, beats one element: n times that of one."""
    return log_n.exp() * tail.chance(ball(v))


def _losing_chance(noise: Noise, v: Fraction, log_n: arb) -> arb:
    """The chance that the first of n others, v behind, beats one element.

    With u a standard exponential variable, the largest noise of n is G(u/n), and the integral is that of
    e^-u F(G(u/n) - v). The formulas change where G(u/n) = v and so F is at zero, and where G = 0, at the time
    -log F(0), which is log 2 wherever G has a seam.
    """
    at_most, distribution = _all_together(noise.require_pairwise_tail(), v, log_n), noise.require_distribution()
    if at_most < _TOLERANCE:
        return arb(0).union(at_most)
    # F(G) = e^-E, hence G(E) = v at E = -log F(v).
    switch = log_n + (-(-distribution.upper.above((-ball(v)).exp(), 1)).log1p()).log()
    total = _Part(noise, distribution.upper, False, ball(v), log_n).between(arb(_BEGIN), switch)
    if distribution.lower is not None:
        middle = log_n + (-distribution.upper.below(arb(1), arb(1)).log()).log()
        total += _Part(noise, distribution.lower, False, ball(v), log_n).between(switch, middle)
        total += _Part(noise, distribution.lower, True, ball(v), log_n).between(middle, arb(_END))
    return total + arb(0).union(arb(_BEGIN).exp() + (-arb(_END).exp()).exp())


@dataclass(frozen=True, eq=False)
class _Part:
    """The integral of `_losing_chance` where F and G have one formula each: G's after its seam if `late`."""

    noise: Noise
    piece: Piece
    late: bool
    v: arb
    log_n: arb

    def between(self, begin: arb, end: arb) -> arb:
        """The integral over log u from `begin` to `end`, or between the cut-offs as far as these are inside."""
        begin, end = begin.max(arb(_BEGIN)), end.min(arb(_END))
        if begin >= end:
            return arb(0)
        whole = acb.integral(self.at, acb(begin), acb(end), abs_tol=arb(_TOLERANCE), rel_tol=arb(2) ** (30 - ctx.prec))
        return whole.real

    def at(self, log_u: acb, _: bool) -> acb:
        """The integrand, over log u because G has a logarithm at u = 0."""
        u = log_u.exp()
        noise = self.noise.inverse(_ComplexTime((log_u - self.log_n).exp(), self.late))
        chance: acb = self.piece.below((self.v - noise).exp(), acb(1))
        return (log_u - u).exp() * chance


@dataclass(frozen=True, eq=False, repr=False)
class _ComplexTime:
    """A race time as a complex ball, all of it with the formula for one side of log 2."""

    value: acb
    late: bool

    @property
    def log2(self) -> acb:
        return acb(arb.const_log2())

    def log(self) -> acb:
        return self.value.log()

    def tail(self) -> acb:
        return -(-((-self.value).expm1())).log()

    def lift(self) -> acb:
        return (-self.value).exp().log1p()

    def before_log2(self, early: acb, late: acb) -> acb:
        return late if self.late else early

    def scale_by(self, factor: Fraction) -> _ComplexTime:
        return _ComplexTime(self.value * acb(ball(factor)), self.late)


# How bad the worst released item may be: tail bounds of canonical and of peeling, with their proofs.
#
# All of them bound how far behind the best an element may be that still wins, in units of the noise (its height, from
# the noise's `pairwise_tail`), and turn that into scores.
#
# Where canonical has the better bound is a comparison of two upper bounds, not of two mechanisms.


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
