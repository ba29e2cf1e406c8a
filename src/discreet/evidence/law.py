"""The exact law of a draw, by enumeration: every sequence of ranks that can be drawn, with its log probability.

For small inputs. It reads the formulas that the sampler reads (the excess of a loss, the size of a class, the weight of
a sequence) and calls the sampler's own code for what it makes of a class, so that a fault in one of them shows here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import singledispatch
from itertools import combinations, permutations
from typing import Any, cast

import numpy as np
from flint import arb

from discreet.errors import InvalidValueError
from discreet.evidence.chances import Group, first_two, winners
from discreet.exact.arrays import Ranks
from discreet.exact.ball import ball
from discreet.exact.entropy import Entropy
from discreet.mechanisms import canonical, joint, oneshot, peeling
from discreet.noise import Noise

Drawn = tuple[int, ...]
Law = dict[Drawn, arb]
"""What can be drawn, as the mechanism hands it over, and the logarithm of its probability."""


@singledispatch
def law(prepared: Any) -> Law:
    """The exact law of `prepared.draw`, at the precision of balls in force."""
    raise InvalidValueError(f"prepared must be a mechanism on a tally, not {type(prepared).__name__}")


@law.register
def _(prepared: canonical.Prepared) -> Law:
    cells = [prepared.top, *_cells(prepared.classes)]
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
    return dict(zip(sequences, _normalised(weights), strict=True))


@law.register
def _(prepared: oneshot.Prepared) -> Law:
    excess = [prepared.excess(rank) for rank in range(prepared.tally.d)]
    if prepared.noise.max_stable:
        # The largest of the values left is the largest of fresh ones.
        return _in_rounds(prepared.k, lambda gone: _each_winner(prepared.noise, excess, gone), prepared.tally.d)
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

    return _in_rounds(prepared.k, one_round, prepared.tally.d)


def _cells(classes: canonical.Classes) -> Iterator[canonical.Class]:
    """Every class that the sampler's boxes cover."""
    first_h, last_h, first_t, last_t = classes.corners
    return ((h, t) for h in range(first_h, last_h + 1) for t in range(first_t, last_t + 1))


def _class_chances(prepared: canonical.Prepared, cells: list[canonical.Class]) -> list[arb]:
    """The log probability of each class."""
    if prepared.noise.max_stable:
        return _normalised([prepared.log_weight(cell) for cell in cells])
    sizes, excess = [prepared.size(cell) for cell in cells], [prepared.excess(cell) for cell in cells]
    groups: Counter[Fraction] = Counter()
    for value, size in zip(excess, sizes, strict=True):
        groups[value] += size
    chances = _chances(prepared.noise, groups)
    return [(chances[value] * size / groups[value]).log() for value, size in zip(excess, sizes, strict=True)]


def _members(classes: canonical.Classes, cell: canonical.Class) -> Iterator[Drawn]:
    """Every subset of a class, as the sampler makes it of a subset that it draws."""
    script = _Script()
    classes.subset(*cell, cast(Entropy, script))
    for answer in combinations(range(script.last + 1), script.size):
        script.answer = answer
        yield tuple(classes.subset(*cell, cast(Entropy, script)).tolist())


class _Script:
    """Stands where a class draws its subset: notes what is asked, and answers what it was told."""

    size, last = 0, -1
    answer: Drawn | None = None

    def subset(self, size: int, last: int) -> Ranks:
        self.size, self.last = size, last
        return np.array(range(size) if self.answer is None else self.answer, np.int64)


def _in_rounds(k: int, one_round: Any, d: int) -> Law:
    """The law of k winners in turn, where `one_round` gives the log chances of those left."""
    result: Law = {(): arb(0)}
    for _ in range(k):
        result = {
            (*gone, rank): log_probability + chance
            for gone, log_probability in result.items()
            for rank, chance in one_round(gone).items()
        }
    return result


def _each_winner(noise: Noise, excess: list[Fraction], gone: Drawn) -> dict[int, arb]:
    """The log chance of each rank but those gone to have the largest value."""
    left = {rank: value for rank, value in enumerate(excess) if rank not in gone}
    groups = Counter(left.values())
    chances = _chances(noise, groups)
    logs = {value: (chance / groups[value]).log() for value, chance in chances.items()}
    return {rank: logs[value] for rank, value in left.items()}


def _chances(noise: Noise, groups: Counter[Fraction]) -> dict[Fraction, arb]:
    # Only differences matter: counted from the least, equal races are computed once.
    least = min(groups)
    race = tuple(sorted((value - least, count) for value, count in groups.items()))
    return {value + least: chance for (value, _), chance in zip(race, winners(noise, race), strict=True)}


def _without(excess: list[Fraction], gone: Drawn) -> tuple[Group, ...]:
    return tuple(sorted(Counter(value for rank, value in enumerate(excess) if rank not in gone).items()))


def _normalised(log_weights: Iterable[arb]) -> list[arb]:
    weights = list(log_weights)
    total = sum((weight.exp() for weight in weights), arb(0)).log()
    return [weight - total for weight in weights]


def _add(result: Law, drawn: Drawn, log_probability: arb) -> None:
    if drawn in result:
        log_probability = (result[drawn].exp() + log_probability.exp()).log()
    result[drawn] = log_probability
