"""How high the scores on one side of the k-th rise above it, or fall below it: exponentials of that, and draws by them.

Index i is the i-th rank away from the k-th, and its height H(i) is what the loss gains there: it never falls with i,
and beyond the last index it is infinite. A cell of indices first..last has the mass exp(-H(first)) - exp(-H(last + 1)),
which takes two scores, however many indices there are; within a run of equal scores there is no mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.columns import TINY, scaled_gaps, to_float
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import LARGEST, ball, is_less
from discreet.exact.entropy import Entropy, Uniform
from discreet.tally import Tally

_AT_ONCE = 256
"""Into how many pieces a cell is cut at once on the way to an index of it."""


@dataclass(frozen=True, eq=False, repr=False)
class Heights:
    """The heights on one side.

    Attributes
    ----------
    tally
        The scores.
    edge
        The rank from which indices count.
    step
        -1 where rank edge - i has index i, 1 where rank edge + i has it.
    first, last
        The first index, whose height is 0, and the last.
    unit
        How high one unit of score is.
    """

    tally: Tally
    edge: int
    step: int
    first: int
    last: int
    unit: Fraction

    @property
    def known_last(self) -> int:
        """The last index whose score is at hand."""
        return self.last if self.step < 0 else min(self.last, self.tally.known_count - 1 - self.edge)

    def sort_all(self) -> None:
        """Has all scores at hand from now on."""
        self._scores(np.array([self.last]))

    def log_masses(self, first: Ranks, last: Ranks) -> Floats:
        """The log masses of some cells: right to a relative 2^-44, and -inf only where there is no mass.

        The caller has NumPy ignore that there is no logarithm of 0.
        """
        count, ends = len(first), last < self.last
        scores = self._scores(np.concatenate([first, last[ends] + 1]))
        begin, end = scores[:count], scores[count:]
        log_mass = -self._gaps(self._first_score, begin)
        log_mass[ends] += self._log_shares(first[ends], last[ends] + 1, self._gaps(begin[ends], end))
        return log_mass

    def log_masses_in_a_row(self, first: Ranks) -> Floats:
        """The same for cells that end where the next begins: the first begins with all indices, the last ends there.

        Right to a relative 2^-41 for up to 3,000 cells, of which there are fewer: heights are sums of steps.
        """
        scores = self._scores(first)
        steps = self._gaps(scores[..., :-1], scores[..., 1:])
        log_mass = np.zeros(scores.shape)
        np.add.accumulate(steps, -1, out=log_mass[..., 1:])
        np.negative(log_mass, out=log_mass)
        # What is beyond all floats has a mass all the same.
        np.maximum(log_mass, -LARGEST, out=log_mass)
        log_mass[..., :-1] += self._log_shares(first[:-1], first[1:], steps)
        return log_mass

    def is_last_above(self, log_mass: float) -> bool:
        """Whether the last index alone has more than this log mass."""
        return self._log_mass_of_last > log_mass

    @cached_property
    def _log_mass_of_last(self) -> float:
        """That log mass, right to a relative 2^-44 or an absolute 2^-48; -inf or NaN for what is beyond all floats."""
        near, far = (self.tally.number(self.edge + self.step * index) for index in (self.first, self.last))
        # Either are rationals, whole numbers among them, or both are floats.
        gap: Any = abs(near - far)
        return -to_float(self._scale) * (gap if isinstance(gap, float) else to_float(gap))

    def _log_shares(self, near: Ranks, far: Ranks, steps: Floats) -> Floats:
        """Log(1 - exp(-(H(far) - H(near)))), by that step: from the beginning of a cell on, beside what is before it.

        The two add up to the log mass of the cell, and are of one sign.
        """
        shares: Floats = np.expm1(-steps)
        np.negative(shares, out=shares)
        np.log(shares, out=shares)
        is_tiny = steps == TINY
        for place in zip(*is_tiny.nonzero(), strict=True) if np.count_nonzero(is_tiny) else ():
            step = self._height(int(near[place[-1]]), int(far[place[-1]]), self._tally_of(*place[:-1]))
            # 1 - exp(-x) is below x, and not by a relative 2^-1000.
            shares[place] = math.log(step.numerator) - math.log(step.denominator)
        return shares

    def of(self, tally: Tally) -> Heights:
        """The heights on the same side of another tally that has the length and the type of this one."""
        return Heights(tally, self.edge, self.step, self.first, self.last, self.unit)

    def _tally_of(self, number: int = 0) -> Tally:
        return self.tally

    def log_mass(self, first: int, last: int) -> arb:
        """A ball around the log mass of a cell, which must not be zero."""
        return self._share(first, last).log() - ball(self._height(self.first, first))

    def draw(self, first: int, last: int, entropy: Entropy) -> int:
        """Returns an index of a cell with probability exactly proportional to its mass; some index must have one.

        With U uniform, it is the first index whose share of the cell, with all before it, is above U.
        """
        if first == last:
            return first
        uniform = entropy.uniform()
        found = self._draw_by_floats(first, last, uniform)
        return self._draw_by_balls(first, last, uniform) if found is None else found

    def _draw_by_floats(self, first: int, last: int, uniform: Uniform) -> int | None:
        """The index that a uniform number stands for, or None where floats cannot tell."""
        # Below that, so few bits of it are known that a float would not say what it must.
        if uniform.bits < 64 or uniform.numerator >> (uniform.bits - 20) == 0:
            return None
        if last - first == self.last - self.first:
            before = -math.expm1(self._log_mass_of_last)
            if uniform.numerator * 2.0**-uniform.bits > before + 2.0**-40:
                return last
        starts = _cut_evenly(first, last, with_end=last < self.last)
        scores = self._scores(starts)
        begin = scores[:1]
        shares = -np.expm1(-self._gaps(begin, scores[1:]))
        wanted = (float(shares[-1]) if last < self.last else 1.0) * (uniform.numerator * 2.0**-uniform.bits)
        # Shares that are less than TINY are taken for it.
        if wanted <= 2.0 * TINY:
            return None
        if last < self.last:
            starts, shares = starts[:-1], shares[:-1]
        while True:
            place = int(shares.searchsorted(wanted, side="right"))
            if any(abs(near - wanted) <= 2.0**-40 * wanted for near in shares[max(0, place - 1) : place + 1].tolist()):
                return None
            first, last = int(starts[place]), int(starts[place + 1]) - 1 if place < len(shares) else last
            if first == last:
                return first
            starts = _cut_evenly(first, last)
            shares = -np.expm1(-self._gaps(begin, self._scores(starts[1:])))

    def _draw_by_balls(self, first: int, last: int, uniform: Uniform) -> int:
        """The index that a uniform number stands for."""

        def reveal() -> int:
            uniform.extend()
            return uniform.bits

        low, high = first, last
        while low < high:
            middle = (low + high) // 2

            def share(index: int = middle) -> arb:
                return self._share(first, index)

            if is_less(lambda: uniform.ball() * self._share(first, last), share, reveal):
                high = middle
            else:
                low = middle + 1
        return low

    def _share(self, first: int, last: int) -> arb:
        """A ball around 1 - exp(-(H(last + 1) - H(first)))."""
        return arb(1) if last == self.last else -(-ball(self._height(first, last + 1))).expm1()

    def _height(self, near: int, far: int, tally: Tally | None = None) -> Fraction:
        """By how much one index is higher than one before it, exactly."""
        gap = (tally or self.tally).gap(self.edge + self.step * near, self.edge + self.step * far)
        return self.unit * abs(gap)

    def _scores(self, index: Ranks) -> NDArray[Any]:
        return self.tally.raw(self.edge + index if self.step > 0 else self.edge - index)

    def _gaps(self, near: NDArray[Any], far: NDArray[Any]) -> Floats:
        """By how much some indices are higher than others before them, by their scores."""
        larger, smaller = (near, far) if self.step > 0 else (far, near)
        return scaled_gaps(larger, smaller, self._scale)

    @cached_property
    def _first_score(self) -> NDArray[Any]:
        return self._scores(np.array([self.first]))

    @cached_property
    def _scale(self) -> Fraction:
        """How high one step between scores as the column holds them is."""
        step = self.tally.column.unit
        return self.unit if step == 1 else self.unit * step


@dataclass(frozen=True, eq=False, repr=False)
class HeightsOfMany(Heights):
    """The heights on the same side of several tallies of one length and type: only their masses in a row, by tally.

    Attributes
    ----------
    sides
        Those of each; what all of them have is that of the first.
    """

    sides: Sequence[Heights]

    @classmethod
    def of_each(cls, sides: Sequence[Heights]) -> HeightsOfMany:
        """All of some sides, which are alike but for their tallies."""
        one = sides[0]
        return cls(one.tally, one.edge, one.step, one.first, one.last, one.unit, sides)

    @property
    def known_last(self) -> int:
        return self.last

    def is_last_above(self, log_mass: float) -> bool:
        """Whether it has in each of them."""
        return all(side.is_last_above(log_mass) for side in self.sides)

    def _tally_of(self, number: int = 0) -> Tally:
        return self.sides[number].tally

    def _scores(self, index: Ranks) -> NDArray[Any]:
        ranks = self.edge + self.step * index
        if all(side.tally.last is None for side in self.sides):
            positions = self.tally.d - 1 - ranks
            return np.array([side.tally.column.raw(positions) for side in self.sides])
        return np.array([side.tally.raw(ranks) for side in self.sides])


def _cut_evenly(first: int, last: int, with_end: bool = False) -> Ranks:
    """Where pieces of a range begin, and the index after its end if that is wanted."""
    width = last - first + 1
    if width <= _AT_ONCE:
        return first + np.arange(width + with_end)
    number = np.arange(_AT_ONCE + with_end)
    # Without passing 2^63.
    return first + width // _AT_ONCE * number + width % _AT_ONCE * number // _AT_ONCE
