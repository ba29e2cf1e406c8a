"""One element against n others that are all as far behind it, where n may be larger than any float.

`chances.winners` integrates over a threshold, below which n others are with the chance F^n: for such an n that is a
cliff. Here the integral is over the time u/n at which the first of the others arrives, whose scale alone depends on n.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import acb, arb, ctx

from discreet.exact.ball import ball
from discreet.noise import Noise, PairwiseTail, Piece

_BEGIN, _END = -40, 4
"""Where the integral over log u is cut off: u is below e^-40 or above e^4 = 54.6 with a chance of 5e-18 at most."""

_TOLERANCE = 2.0**-50
"""The error that an integral may have."""


def one_against(noise: Noise, v: Fraction, log_n: arb) -> tuple[arb, arb]:
    """The chances that one element beats and does not beat all of n others that are v behind it."""
    if ball(v) > log_n + 10**6 and _all_together(noise.require_pairwise_tail(), v, log_n) < arb(2) ** -1000:
        lost = arb(0).union(arb(2) ** -1000)
    elif v == 0 or noise.max_stable:
        odds = (log_n - ball(v)).exp()
        return 1 / (1 + odds), odds / (1 + odds)
    else:
        lost = _lost(noise, v, log_n)
    return 1 - lost, lost


def _all_together(tail: PairwiseTail, v: Fraction, log_n: arb) -> arb:
    """At least the chance that one of n others, v behind, beats one element: n times that of one."""
    return log_n.exp() * tail.chance(ball(v))


def _lost(noise: Noise, v: Fraction, log_n: arb) -> arb:
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
    """The integral of `_lost` where F has one formula and G has one: that of times after its seam if `late`."""

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

    def scaled(self, factor: Fraction) -> _ComplexTime:
        return _ComplexTime(self.value * acb(ball(factor)), self.late)
