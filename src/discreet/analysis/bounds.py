"""Utility guarantees of canonical and peeling that hold for every score vector, computed from public numbers alone.

An element that is v behind the best of at most C(d, k), in units of the noise, wins with probability at most exp(-v)
under Gumbel noise (docs/proofs.md, 2.4). Ranks count from 1 as in Shekelyan and Loukides (2022): x[1] >= ... >= x[d]
are the scores, T is the worst released rank, s = epsilon / (2 delta). Numbers are balls rounded to the safe side;
docs/errata.md lists the bounds of the paper that are mended here, and its "leap" for peeling, which has no repair.
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

_MOST_ITEMS = 1 << 63
"""The largest domain of a release: ranks are 64-bit integers."""

_BEGIN, _END = -40, 4
"""Limits of the integral over log u: u is below e^-40 or above e^4 with probability at most 5e-18."""

_TOLERANCE = 2.0**-50
"""The error allowed in an integral: far below the 2^-40 that the docstrings promise."""

_MOST_BITS = 2048
"""The precision at which a comparison of two bounds gives up: by then they are taken as equal."""


@dataclass(frozen=True)
class Tails:
    """The tail bounds of canonical and of peeling for one (d, k).

    Both numbers are rounded up. `canonical_is_better` is decided before rounding, and is True only if that is certain.
    """

    canonical: float
    peeling: float
    canonical_is_better: bool


@dataclass(frozen=True)
class _Setting:
    """A release of k of d items; s = epsilon / (2 delta) turns one unit of loss into log weight."""

    d: int
    k: int
    s: Fraction
    noise: Noise

    @classmethod
    def parse(
        cls, d: int, k: int, epsilon: Number, noise: str, sensitivity: Sensitivity | None, adjacency: str
    ) -> _Setting:
        """Check the arguments of a bound."""
        items = _parse_domain_size(d)
        chosen = whole_number(k, "k", 1, items, f"{items}, the number of items")
        s = scale(positive(epsilon, "epsilon"), sensitivity_or_default(sensitivity).under(adjacency))
        return cls(items, chosen, s, check_noise(noise))

    @property
    def tail(self) -> PairwiseTail:
        """Return the bound on the probability that an element behind the best one wins."""
        return self.noise.require_pairwise_tail()


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
    """Return a bound on the loss of the drawn subset above the best loss that fails with probability at most alpha.

    The event loss(drawn) > best loss + bound has probability at most alpha, for every score vector. It covers the
    canonical mechanism, which draws one of |Y| = C(d, k) subsets, and with k = 1 every choice of one of d items.

    An element that is v = s (loss - best loss) behind wins only if it beats the best element, with probability p(v).
    Under Gumbel, exponential and half-logistic noise p(v) <= exp(-v), and fewer than |Y| elements are behind, so
    v = L = log|Y| + log(1/alpha) suffices. The two noises with a heavy lower tail need a little more:
    Laplace, p(v) = exp(-v) (2+v)/4, v = L + log((1+L)/2); logistic, p(v) <= exp(-v) (v + log 2), v = L + log(1+2L).

    Parameters
    ----------
    d
        The number of items.
    k
        The number of released items; with k = d all are released, and the bound is 0.
    epsilon
        The privacy budget of the release.
    alpha
        The probability with which the bound may fail, above 0 and below 1.
    noise
        The name of a noise.
    sensitivity
        The amount by which adding one user can move a score; counts of users by default.
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
    given, level = _Setting.parse(d, k, epsilon, noise, sensitivity, adjacency), _parse_alpha(alpha)
    return round_up(lambda: _subset_height(given.d, given.k, level, given.tail) / ball(given.s), given.d)


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
    """Return a bound on x[k] - x[T] for canonical that fails with probability at most alpha.

    With probability at least 1 - alpha every released item scores at least x[k] - bound, for every score vector.

    Relative to the top-k, which has the least loss, a subset that lacks rank h+1 and has worst rank t has the loss
    (1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t]) >= gamma (x[k] - x[t]). So the bound of the exponential mechanism
    over C(d, k) subsets, divided by gamma, bounds x[k] - x[T]:
    bound = (2 delta / (gamma epsilon)) (log C(d, k) + log(1/alpha)), with the same additions for Laplace and logistic
    noise. It also holds for the loss rounded up (`ceil`), which only adds to the loss of the other subsets.

    Parameters
    ----------
    d, k, epsilon, alpha, noise, sensitivity, adjacency
        As in `exponential_mechanism`.
    gamma
        The gamma of the mechanism, by default that of `Canonical()`; above 0, because with gamma = 0 the loss does
        not depend on the worst item. `Canonical(ceil=True)` has 1/2.

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
    given, level = _Setting.parse(d, k, epsilon, noise, sensitivity, adjacency), _parse_alpha(alpha)
    why = "the bound is on the worst item released, which the loss does not see with gamma = 0"
    share = _parse_positive_gamma(gamma, why)
    return round_up(lambda: _subset_height(given.d, given.k, level, given.tail) / ball(given.s * share), given.d)


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
    """Return a bound on x[k] - x[T] for peeling that fails with probability at most alpha.

    With probability at least 1 - alpha the item of every round i scores at least x[i] - bound, for every score vector.

    Round i is a choice of one of at most d items at epsilon/k. At most i-1 items are gone, so the best remaining item
    scores at least x[i] >= x[k]. Given the earlier rounds, the item of this round scores less than that by more than
    (k/s) (log d + log(1/a)) with probability at most a. So all k rounds are good with probability at least (1-a)^k,
    which is 1 - alpha for a = 1 - (1-alpha)^(1/k) (Sidak). With r = k a / alpha >= 1, the ratio of this a to that of a
    union bound, bound = (1/s) (k log d + k log k + k log(1/alpha) - k log r). Here r is exact: a constant in place of
    log r must be below it, and the printed 0.06 is above it for every alpha up to 0.1.

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
    given, level = _Setting.parse(d, k, epsilon, noise, sensitivity, adjacency), _parse_alpha(alpha)
    return round_up(lambda: _rounds_height(given.d, given.k, level, given.tail) / ball(given.s), given.d)


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
    """Return the tail bounds of canonical and of peeling under Gumbel, exponential or half-logistic noise.

    This compares two upper bounds on x[k] - x[T]. The smaller bound is the better promise; it does not show that the
    mechanism is better on any scores. The order of the bounds depends neither on epsilon nor on the sensitivity.

    Parameters
    ----------
    d, k, epsilon, alpha, gamma, sensitivity, adjacency
        As in `canonical_tail`.

    Returns
    -------
    Tails
        Both bounds, and True if that of canonical is certainly the smaller.

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
    return Tails(canonical, peeling, _is_better(int(d), int(k), _parse_alpha(alpha), exact(gamma, "gamma")))


def smallest_k(d: int, alpha: Number, *, gamma: Number = DEFAULT_GAMMA) -> int | None:
    """Return the smallest k from which on, up to d-1, canonical's tail bound is below that of peeling.

    Divide both bounds by k/s. That of peeling, log d + log(1/a), grows with k, because a falls. That of canonical is
    (log C(d, k) + log(1/alpha)) / (gamma k), which falls: log C(d, k) is the sum of log((d-j+1)/j) for j up to k, whose
    terms fall, and so does their mean. Hence they cross once. With k = d all items are released.

    As in `compare_tails`, this compares two upper bounds and not the mechanisms.

    Parameters
    ----------
    d, alpha, gamma
        As in `canonical_tail`.

    Returns
    -------
    int or None
        The smallest such k, or None if there is none below d.

    Examples
    --------
    >>> smallest_k(1000, alpha="0.05"), smallest_k(1000, alpha="0.05", gamma=1)
    (3, 2)
    """
    items = _parse_domain_size(d)
    level, share = _parse_alpha(alpha), _parse_positive_gamma(gamma, "there is no bound for gamma = 0")
    low, high = 1, items
    while low < high:
        middle = (low + high) // 2
        if _is_better(items, middle, level, share):
            high = middle
        else:
            low = middle + 1
    return low if low < items else None


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
    """Return a lower bound on the probability of the top-k under canonical if x[k] - x[k+1] >= gap.

    Let N be the largest of n = C(d, k) - 1 independent noises less one more, and X = N / (s gamma). Then
    Pr[TOP] >= Pr[X < x[k] - x[k+1]], because every other subset is behind the top-k by
    s ((1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t])) >= s gamma (x[k] - x[k+1]) as h+1 <= k and t >= k+1. If all of
    them were exactly that far behind, the top-k would win with probability Pr[N < s gamma (x[k] - x[k+1])]; moving
    them further back only helps it. Under Gumbel noise N is logistic about log n, so this is
    1 / (1 + n exp(-s gamma gap)); for other noises see `one_against`. It also holds for the loss rounded up (`ceil`).

    Parameters
    ----------
    d, k, epsilon, gamma, noise, sensitivity, adjacency
        As in `canonical_tail`.
    gap
        An assumed lower bound on x[k] - x[k+1], zero or more.

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
    given = _Setting.parse(d, k, epsilon, noise, sensitivity, adjacency)
    share = _parse_positive_gamma(gamma, "the gap is below the k-th score, where the loss does not look with gamma = 0")
    v = given.s * share * _parse_distance(gap, "gap")
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
    """Return a lower bound on the probability that canonical misses the top-k if x[1] - x[d] <= spread.

    With N as in `canonical_leap` and X = N / (s gamma), for gamma >= 1/2, Pr[not TOP] >= Pr[X > x[1] - x[d]]. Every
    other subset is behind the top-k by s ((1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t])), a weighted sum of two parts
    of x[1] - x[d], and so by at most s max(gamma, 1-gamma) (x[1] - x[d]); moving them back that far only helps the
    top-k. For gamma < 1/2 the same holds with 1-gamma in place of gamma. All n = C(d, k) - 1 other subsets count, and
    no more: with a dummy subset added the bound would be false. TOP is by rank: under ties a release may be as good as
    the top-k without being it. The bound does not cover `ceil`.

    Parameters
    ----------
    d, k, epsilon, noise, sensitivity, adjacency
        As in `canonical_tail`.
    spread
        An assumed upper bound on x[1] - x[d], zero or more.
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
    given = _Setting.parse(d, k, epsilon, noise, sensitivity, adjacency)
    share = check_gamma(gamma)
    v = given.s * max(share, 1 - share) * _parse_distance(spread, "spread")
    if given.k == given.d:
        return 0.0
    return round_down(lambda: one_against(given.noise, v, _log_others(given.d, given.k))[1], given.d)


def _parse_domain_size(d: int) -> int:
    return whole_number(d, "d", 1, _MOST_ITEMS, "2^63")


def _parse_alpha(alpha: Number) -> Fraction:
    level = exact(alpha, "alpha")
    if not 0 < level < 1:
        raise InvalidValueError(f"alpha must be above 0 and below 1, not {quote(alpha)}")
    return level


def _parse_positive_gamma(gamma: Number, why: str) -> Fraction:
    """Return gamma, or raise with the reason `why` it must not be 0."""
    share = check_gamma(gamma)
    if share == 0:
        raise InvalidValueError(f"gamma must be above 0, not {quote(gamma)}: {why}")
    return share


def _parse_distance(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise InvalidValueError(f"{name} must be zero or more, not {quote(value)}")
    return number


def _subset_height(d: int, k: int, level: Fraction, tail: PairwiseTail) -> arb:
    """Return a bound, in units of the noise, on how far the drawn subset is behind the best; it fails at `level`."""
    return arb(0) if k == d else tail.height(log_binomial(d, k) - ball(level).log())


def _rounds_height(d: int, k: int, level: Fraction, tail: PairwiseTail) -> arb:
    """Return k times a bound on the distance from the best remaining item in every round, which fails at `level`."""
    if k == d:
        return arb(0)
    # The level of each round is 1 - (1 - level)^(1/k).
    log_kept = ball(-level).log1p() if level < Fraction(1, 2) else ball(1 - level).log()
    return k * tail.height(arb(d).log() - (-(log_kept / k).expm1()).log())


def _is_better(d: int, k: int, level: Fraction, share: Fraction) -> bool:
    """Return True if canonical's tail bound is certainly below that of peeling."""
    bits, tail = 128, GUMBEL.require_pairwise_tail()
    # The two can be equal, as at d = 4, k = 2, level = 3/4, gamma = 1/2: then no precision separates them.
    while bits <= _MOST_BITS:
        with precise(d, bits):
            canonical = _subset_height(d, k, level, tail) / ball(share)
            peeling = _rounds_height(d, k, level, tail)
            if canonical < peeling:
                return True
            if canonical > peeling:
                return False
        bits *= 2
    return False


def _log_others(d: int, k: int) -> arb:
    """Return a ball around log(C(d, k) - 1), for k < d."""
    log_all = log_binomial(d, k)
    return log_all + (-(-log_all).exp()).log1p()


def one_against(noise: Noise, v: Fraction, log_n: arb) -> tuple[arb, arb]:
    """Return the probabilities that one element beats, and does not beat, all of n others that are v behind it."""
    if ball(v) > log_n + 10**6 and _union_bound(noise, v, log_n) < arb(2) ** -1000:
        lost = arb(0).union(arb(2) ** -1000)
    elif v == 0 or noise.max_stable:
        odds = (log_n - ball(v)).exp()
        return 1 / (1 + odds), odds / (1 + odds)
    else:
        lost = _losing_chance(noise, v, log_n)
    return 1 - lost, lost


def _union_bound(noise: Noise, v: Fraction, log_n: arb) -> arb:
    """Return n times the probability that one element v behind beats another."""
    return log_n.exp() * noise.require_pairwise_tail().chance(ball(v))


def _losing_chance(noise: Noise, v: Fraction, log_n: arb) -> arb:
    """Return the probability that the best of n others, v behind, beats one element.

    With u a standard exponential variable, the largest noise of n is G(u/n), and the integral is that of
    e^-u F(G(u/n) - v). n may exceed every float, so the integral is over the time u/n of the first arrival, whose scale
    alone depends on n: over a threshold w, F(w)^n would be a cliff. The formulas change where G(u/n) = v and so F is at
    zero, and where G = 0, at the time -log F(0), which is log 2 wherever G has a seam.
    """
    at_most, distribution = _union_bound(noise, v, log_n), noise.require_distribution()
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
    """The part of the integral of `_losing_chance` on which F and G have one formula each; `late` is past G's seam."""

    noise: Noise
    piece: Piece
    late: bool
    v: arb
    log_n: arb

    def between(self, begin: arb, end: arb) -> arb:
        """Integrate over log u from `begin` to `end`, clipped to the limits of the integral."""
        begin, end = begin.max(arb(_BEGIN)), end.min(arb(_END))
        if begin >= end:
            return arb(0)
        whole = acb.integral(self.at, acb(begin), acb(end), abs_tol=arb(_TOLERANCE), rel_tol=arb(2) ** (30 - ctx.prec))
        return whole.real

    def at(self, log_u: acb, _: bool) -> acb:
        """Return the integrand, over log u because G is logarithmic at u = 0."""
        u = log_u.exp()
        noise = self.noise.inverse(_ComplexTime((log_u - self.log_n).exp(), self.late))
        chance: acb = self.piece.below((self.v - noise).exp(), acb(1))
        return (log_u - u).exp() * chance


@dataclass(frozen=True, eq=False, repr=False)
class _ComplexTime:
    """A race time as a complex ball that uses the formula of one side of log 2 throughout."""

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
