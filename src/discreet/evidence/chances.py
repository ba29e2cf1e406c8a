"""Who wins a race of noisy values, as balls: rigorous integrals over one variable.

An element of value v has the noisy value v + noise. With u = exp(-w) at a threshold w, and x = u exp(v), its chance to
be below is F(x) of `discreet.noise`. The half line of u is laid on [0, 1) by u = y / ((1-y) exp(max v)), so that
x = p/q with p = r y, q = 1-y, and r = exp(v - max v). Between the points x = 1 of the elements all is analytic, and
Arb's integration encloses it. A max-stable noise (Gumbel's) needs no integral.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import prod

from flint import acb, arb, ctx

from discreet.exact.ball import ball
from discreet.noise import Distribution, Noise, Piece

Group = tuple[Fraction, int]
"""How far the value of some elements is below a common level, and how many elements have it."""


def winners(noise: Noise, groups: tuple[Group, ...]) -> tuple[arb, ...]:
    """The chance of each group that one of its elements is the largest of all, at the precision in force.

    The groups must have different values.
    """
    return _winners(noise, groups, ctx.prec)


@lru_cache(maxsize=1 << 16)
def _winners(noise: Noise, groups: tuple[Group, ...], _: int) -> tuple[arb, ...]:
    if noise.max_stable:
        weights = [count * (-ball(excess)).exp() for excess, count in groups]
        total = sum(weights, arb(0))
        return tuple(weight / total for weight in weights)
    race = _Race(noise.require_distribution(), groups)
    return tuple(race.integral(_first(i, count)) for i, (_, count) in enumerate(groups))


def first_two(noise: Noise, first: Fraction, second: Fraction, rest: tuple[Group, ...]) -> arb:
    """The chance that one element of value -`first` is the largest of all and one of -`second` is the next."""
    # Only differences matter: counted from the least, equal races are computed once.
    least = min(first, second, *(excess for excess, _ in rest))
    below = tuple((excess - least, count) for excess, count in rest)
    return _first_two(noise, first - least, second - least, below, ctx.prec)


@lru_cache(maxsize=1 << 16)
def _first_two(noise: Noise, first: Fraction, second: Fraction, rest: tuple[Group, ...], _: int) -> arb:
    return _Race(noise.require_distribution(), ((first, 1), (second, 1), *rest)).integral(_second)


class _Race:
    """Elements in groups, and integrals over the threshold."""

    def __init__(self, distribution: Distribution, groups: tuple[Group, ...]) -> None:
        least = min(excess for excess, _ in groups)
        self.distribution = distribution
        self.counts = [count for _, count in groups]
        self.r = [(-ball(excess - least)).exp() for excess, _ in groups]
        # x = 1 at r y = 1 - y; values rise with r, so that the largest r has its point first.
        self.points = [1 / (1 + r) for r in self.r]

    def integral(self, integrand: Callable[[list[_At], list[int]], acb]) -> arb:
        """The integral of `integrand` over all thresholds."""
        order = sorted(range(len(self.r)), key=lambda i: self.points[i].mid())
        # Where both formulas are one there is nothing to cut.
        cuts = order if self.distribution.has_seam else []
        total, begin = arb(0), acb(0)
        for done in range(len(cuts) + 1):
            passed = set(cuts[:done])
            end = acb(self.points[cuts[done]]) if done < len(cuts) else acb(1)
            pieces = [self.distribution.lower if i in passed else self.distribution.upper for i in range(len(self.r))]
            total += self._part(integrand, pieces, begin, end)
            begin = end
        return total

    def _part(
        self,
        integrand: Callable[[list[_At], list[int]], acb],
        pieces: list[Piece | None],
        begin: acb,
        end: acb,
    ) -> arb:
        def at(y: acb, _: bool) -> acb:
            q = 1 - y
            return integrand([_At(piece, r, r * y, q) for piece, r in zip(pieces, self.r, strict=True)], self.counts)

        # Beyond the floor of what must be above it, it is zero everywhere and exactly.
        if at((begin + end) / 2, True) == 0:
            return arb(0)
        # Far smaller chances need more precision: whoever wants their digits asks with more.
        goal = arb(2) ** (-ctx.prec + 30)
        return acb.integral(at, begin, end, abs_tol=goal, rel_tol=goal).real


class _At:
    """One element at one threshold: its chance to be below, and the density of being there."""

    __slots__ = ("_p", "_piece", "_q", "_r")

    def __init__(self, piece: Piece | None, r: arb, p: acb, q: acb) -> None:
        self._piece, self._r, self._p, self._q = piece, r, p, q

    @property
    def below(self) -> acb:
        return acb(0) if self._piece is None else self._piece.below(self._p, self._q)

    @property
    def above(self) -> acb:
        return acb(1) if self._piece is None else self._piece.above(self._p, self._q)

    @property
    def density(self) -> acb:
        # p' q - p q' = r (1-y) + r y = r
        return acb(0) if self._piece is None else self._r * self._piece.slope(self._p, self._q)


def _first(i: int, count: int) -> Callable[[list[_At], list[int]], acb]:
    """One of group i is at the threshold, and all others are below."""

    def integrand(elements: list[_At], counts: list[int]) -> acb:
        others = [n - (j == i) for j, n in enumerate(counts)]
        density = count * elements[i].density
        if density == 0:
            return density
        return density * prod((e.below**n for e, n in zip(elements, others, strict=True) if n), start=acb(1))

    return integrand


def _second(elements: list[_At], counts: list[int]) -> acb:
    """Element 0 is above the threshold, element 1 at it, and all others are below."""
    first, second, *rest = elements
    below = prod((e.below**n for e, n in zip(rest, counts[2:], strict=True)), start=acb(1))
    return second.density * first.above * below
