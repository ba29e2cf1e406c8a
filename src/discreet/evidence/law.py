"""Compute the exact law of a draw by enumeration: every sequence of ranks that can be drawn, with its log probability.

The enumeration is for small inputs. It reads the formulas of the sampler (the excess of a loss, the size of a class,
the weight of a sequence) and calls its code for the members of a class, so that a fault in one of them shows here.

The winner of a race of noisy values is a rigorous integral over one variable. With u = exp(-w) at a threshold w, and x
= u exp(v), the noisy value of an element of value v is below w with probability F(x) of `discreet.mechanisms.noise`.
The half line of u is mapped to [0, 1) by u = y / ((1-y) exp(max v)), so that x = p/q with p = r y, q = 1-y, and r =
exp(v - max v). Between the points x = 1 of the elements the integrand is analytic, and Arb encloses its integral. A
max-stable noise (Gumbel's) needs no integral.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache, singledispatch
from itertools import combinations, permutations, product
from math import prod
from typing import Any, cast

import numpy as np
from flint import acb, arb, ctx

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.exact.ball import ball
from discreet.exact.entropy import Entropy
from discreet.mechanisms import canonical, core, joint, oneshot, peeling
from discreet.mechanisms.canonical import Class, Classes
from discreet.mechanisms.noise import Distribution, Noise, Piece
from discreet.mechanisms.tally import Selection

Drawn = tuple[int, ...]
Law = dict[Drawn, arb]
"""Each possible draw, as the mechanism returns it, with its log probability."""

Group = tuple[Fraction, int]
"""The distance of some equal values below a common level, and the number of elements with this value."""


@singledispatch
def law(prepared: Any) -> Law:
    """Return the exact law of `prepared.draw`, at the current precision of balls."""
    raise InvalidValueError(f"prepared must be a mechanism on a tally, not {type(prepared).__name__}")


@law.register
def _(prepared: canonical.Prepared) -> Law:
    # Every class that the boxes of the sampler cover.
    first_h, last_h, first_t, last_t = prepared.classes.corners
    cells = [prepared.top, *product(range(first_h, last_h + 1), range(first_t, last_t + 1))]
    result: Law = {}
    for cell, chance in zip(cells, _class_chances(prepared, cells), strict=True):
        members = [tuple(range(prepared.top[0]))] if cell == prepared.top else list(_members(prepared.classes, cell))
        for ranks in members:
            _add(result, ranks, chance - arb(len(members)).log())
    return result


@law.register
def _(prepared: joint.Prepared) -> Law:
    sequences = list(permutations(range(prepared.tally.d), prepared.k))
    weights = [-ball(prepared.rate * prepared.loss(np.array(y))) for y in sequences]
    return dict(zip(sequences, _normalise(weights), strict=True))


@law.register
def _(prepared: oneshot.Prepared) -> Law:
    excess = [prepared.excess(rank) for rank in range(prepared.tally.d)]
    if prepared.noise.max_stable:
        # The largest of the remaining values has the law of the largest of fresh ones.
        return _in_rounds(prepared.k, lambda gone: _each_winner(prepared.noise, excess, gone))
    if prepared.k == 1:
        return {(rank,): chance for rank, chance in _each_winner(prepared.noise, excess, ()).items()}
    if prepared.k > 2:
        name = prepared.noise.name
        raise InvalidValueError(
            f"k must be 1 or 2 for one-shot with {name} noise, whose order is integrated, not {prepared.k}"
        )
    return {
        (i, j): first_two(prepared.noise, excess[i], excess[j], _without(excess, (i, j))).log()
        for i, j in permutations(range(prepared.tally.d), 2)
    }


@law.register
def _(prepared: peeling.Prepared) -> Law:
    def one_round(gone: Drawn) -> dict[int, arb]:
        left = prepared.tally.without(np.array(sorted(gone), np.int64))
        once = oneshot.Prepared(left, 1, prepared.weight, prepared.noise)
        chances = _each_winner(prepared.noise, [once.excess(rank) for rank in range(left.d)], ())
        return {int(left.original(np.array([rank]))[0]): chance for rank, chance in chances.items()}

    return _in_rounds(prepared.k, one_round)


@law.register
def _(prepared: core.Prepared) -> Law:
    # A draw is the number of a candidate, followed by ranks in ascending order.
    result: Law = {}
    # A candidate with weight zero is never drawn.
    weights = {j: weight for j, weight in enumerate(prepared.log_weights()) if weight != arb("-inf")}
    for j, chance in zip(weights, _normalise(weights.values()), strict=True):
        candidate = prepared.candidate(j)
        for ranks, log_probability in ({(): arb(0)} if candidate is None else set_law(candidate)).items():
            result[j, *ranks] = chance + log_probability
    return result


def set_law(prepared: Any) -> Law:
    """Return the law of a draw without its order, as ranks in ascending order."""
    result: Law = {}
    if isinstance(prepared, oneshot.Prepared) and not prepared.noise.max_stable:
        excess = [prepared.excess(rank) for rank in range(prepared.tally.d)]
        for ranks in combinations(range(len(excess)), prepared.k):
            # Sets of equal values are equally likely and share one integral.
            inside = tuple(sorted(Counter(excess[rank] for rank in ranks).items()))
            result[ranks] = _all_largest(prepared.noise, inside, _without(excess, ranks), ctx.prec)
        return result
    for ranks, log_probability in law(prepared).items():
        _add(result, tuple(sorted(ranks)), log_probability)
    return result


@singledispatch
def as_selection(prepared: Any, drawn: Iterable[int]) -> Selection:
    """Return the selection that a mechanism makes of a draw, as `law` lists it."""
    return Selection(np.fromiter(drawn, np.int64))


@as_selection.register
def _(prepared: core.Prepared, drawn: Iterable[int]) -> Selection:
    j, *ranks = drawn
    return prepared.label(j, Selection(np.array(ranks, np.int64)))


def _class_chances(prepared: canonical.Prepared, cells: list[Class]) -> list[arb]:
    """Return the log probability of each class."""
    if prepared.noise.max_stable:
        return _normalise([prepared.log_weight(cell) for cell in cells])
    sizes, excess = [prepared.size(cell) for cell in cells], [prepared.excess(cell) for cell in cells]
    groups: Counter[Fraction] = Counter()
    for value, size in zip(excess, sizes, strict=True):
        groups[value] += size
    chances = _chances(prepared.noise, groups)
    return [(chances[value] * size / groups[value]).log() for value, size in zip(excess, sizes, strict=True)]


def _members(classes: Classes, cell: Class) -> Iterator[Drawn]:
    """Yield every subset of a class, as the sampler makes it of the subset that it draws."""
    script = _Script()
    classes.subset(*cell, cast(Entropy, script))
    for answer in combinations(range(script.last + 1), script.size):
        script.answer = answer
        yield tuple(classes.subset(*cell, cast(Entropy, script)).tolist())


class _Script:
    """A stand-in for the entropy of a class: it records the request for a subset, and returns a given answer."""

    size, last = 0, -1
    answer: Drawn | None = None

    def subset(self, size: int, last: int) -> Ranks:
        self.size, self.last = size, last
        return np.array(range(size) if self.answer is None else self.answer, np.int64)


def _in_rounds(k: int, one_round: Callable[[Drawn], dict[int, arb]]) -> Law:
    """Return the law of k successive winners; `one_round` gives the log probabilities after some are gone."""
    result: Law = {(): arb(0)}
    for _ in range(k):
        result = {
            (*gone, rank): log_probability + chance
            for gone, log_probability in result.items()
            for rank, chance in one_round(gone).items()
        }
    return result


def _each_winner(noise: Noise, excess: list[Fraction], gone: Drawn) -> dict[int, arb]:
    """Return the log probability of each remaining rank to have the largest value."""
    left = {rank: value for rank, value in enumerate(excess) if rank not in gone}
    groups = Counter(left.values())
    chances = _chances(noise, groups)
    logs = {value: (chance / groups[value]).log() for value, chance in chances.items()}
    return {rank: logs[value] for rank, value in left.items()}


def _chances(noise: Noise, groups: Counter[Fraction]) -> dict[Fraction, arb]:
    # Only differences matter. Relative to the least value, equal races share one result.
    least = min(groups)
    race = tuple(sorted((value - least, count) for value, count in groups.items()))
    return {value + least: chance for (value, _), chance in zip(race, winners(noise, race), strict=True)}


def _without(excess: list[Fraction], gone: Drawn) -> tuple[Group, ...]:
    return tuple(sorted(Counter(value for rank, value in enumerate(excess) if rank not in gone).items()))


def _normalise(log_weights: Iterable[arb]) -> list[arb]:
    weights = list(log_weights)
    total = sum((weight.exp() for weight in weights), arb(0)).log()
    return [weight - total for weight in weights]


def _add(result: Law, drawn: Drawn, log_probability: arb) -> None:
    if drawn in result:
        log_probability = (result[drawn].exp() + log_probability.exp()).log()
    result[drawn] = log_probability


def winners(noise: Noise, groups: tuple[Group, ...]) -> tuple[arb, ...]:
    """Return the probability of each group that one of its elements is the largest of all, at the current precision.

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
    return tuple(race.integral(_first_at_threshold(i, count)) for i, (_, count) in enumerate(groups))


def first_two(noise: Noise, first: Fraction, second: Fraction, rest: tuple[Group, ...]) -> arb:
    """Return the probability that an element of value -`first` is the largest of all and one of -`second` the next."""
    # Only differences matter. Relative to the least value, equal races share one result.
    least = min(first, second, *(excess for excess, _ in rest))
    below = tuple((excess - least, count) for excess, count in rest)
    return _first_two(noise, first - least, second - least, below, ctx.prec)


@lru_cache(maxsize=1 << 16)
def _first_two(noise: Noise, first: Fraction, second: Fraction, rest: tuple[Group, ...], _: int) -> arb:
    def second_at_threshold(elements: list[_At], counts: list[int]) -> acb:
        # Element 0 is above the threshold, element 1 at it, and all others are below.
        top, at, *others = elements
        below = prod((e.below**n for e, n in zip(others, counts[2:], strict=True)), start=acb(1))
        return at.density * top.above * below

    return _Race(noise.require_distribution(), ((first, 1), (second, 1), *rest)).integral(second_at_threshold)


class _Race:
    """Elements in groups, and integrals over the threshold."""

    def __init__(self, distribution: Distribution, groups: tuple[Group, ...]) -> None:
        least = min(excess for excess, _ in groups)
        self.distribution = distribution
        self.counts = [count for _, count in groups]
        self.r = [(-ball(excess - least)).exp() for excess, _ in groups]
        # x = 1 where r y = 1 - y. The largest r has the first such point.
        self.points = [1 / (1 + r) for r in self.r]

    def integral(self, integrand: Callable[[list[_At], list[int]], acb]) -> arb:
        """Return the integral of `integrand` over all thresholds."""
        order = sorted(range(len(self.r)), key=lambda i: self.points[i].mid())
        # A noise with one formula on both sides needs no cut.
        cuts = order if self.distribution.has_seam else []
        # A much smaller probability has no correct digits at this tolerance; the caller then raises the precision.
        goal = arb(2) ** (-ctx.prec + 30)
        total, begin = arb(0), acb(0)
        for done in range(len(cuts) + 1):
            passed = set(cuts[:done])
            end = acb(self.points[cuts[done]]) if done < len(cuts) else acb(1)
            pieces = [self.distribution.lower if i in passed else self.distribution.upper for i in range(len(self.r))]

            def at(y: acb, _: bool, pieces: list[Piece | None] = pieces) -> acb:
                elements = [_At(piece, r, r * y, 1 - y) for piece, r in zip(pieces, self.r, strict=True)]
                return integrand(elements, self.counts)

            # Below the floor of a noise the integrand is exactly zero.
            if at((begin + end) / 2, True) != 0:
                total += acb.integral(at, begin, end, abs_tol=goal, rel_tol=goal).real
            begin = end
        return total


class _At:
    """One element at one threshold: its probability to be below, and its density there."""

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


@lru_cache(maxsize=1 << 16)
def _all_largest(noise: Noise, inside: tuple[Group, ...], outside: tuple[Group, ...], _: int) -> arb:
    """Return the log probability that all elements inside are above all elements outside."""
    n_inside = len(inside)

    def largest_outside_at_threshold(elements: list[_At], counts: list[int]) -> acb:
        above = prod((e.above**n for e, n in zip(elements[:n_inside], counts, strict=False)), start=acb(1))
        first = [_first_at_threshold(i, counts[i]) for i in range(n_inside, len(elements))]
        below = [0] * n_inside + counts[n_inside:]
        return above * sum((integrand(elements, below) for integrand in first), acb(0))

    return _Race(noise.require_distribution(), (*inside, *outside)).integral(largest_outside_at_threshold).log()


def _first_at_threshold(i: int, count: int) -> Callable[[list[_At], list[int]], acb]:
    """Return the integrand for one element of group i at the threshold, and all others below."""

    def integrand(elements: list[_At], counts: list[int]) -> acb:
        others = [n - (j == i) for j, n in enumerate(counts)]
        density = count * elements[i].density
        if density == 0:
            return density
        return density * prod((e.below**n for e, n in zip(elements, others, strict=True) if n), start=acb(1))

    return integrand
