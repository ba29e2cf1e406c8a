"""How often canonical releases the top-k, and how often not, from how far the scores are apart: two lower bounds.

Both rest on one element against n others that are all as far behind it, where n may be larger than any float. `winners`
of `discreet.evidence.law` integrates over a threshold, below which n others are with the chance F^n: for such an n that
is a cliff. Here the integral is over the time u/n at which the first of the others arrives, whose scale alone depends
on n.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import acb, arb, ctx

from discreet.analysis.bounds.arguments import check_not_negative, check_positive_gamma, check_setting
from discreet.exact.ball import ball, log_binomial, round_down
from discreet.mechanisms.canonical import DEFAULT_GAMMA, check_gamma
from discreet.noise import Noise, PairwiseTail, Piece
from discreet.privacy import Number, Sensitivity

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
