"""How high the scores on one side of the k-th rise above it, or fall below it: exponentials of that, and draws by them.

Index i is the i-th rank away from the k-th, and its height H(i) is what the loss gains there: it never falls with i,
and beyond the last index it is infinite. A cell of indices first..last has the mass exp(-H(first)) - exp(-H(last + 1)),
which takes two scores, however many indices there are; within a run of equal scores there is no mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.columns import TINY, scaled_gaps
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import ball, is_less
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
        scores = self._scores(np.concatenate([first, last[ends] + 1, [self.first]]))
        begin, end, base = scores[:count], scores[count:-1], np.repeat(scores[-1:], count)
        # From the first index to each cell, and from the beginning of a cell to its end: two terms of one sign.
        gaps = self._gaps(np.concatenate([base, begin[ends]]), np.concatenate([begin, end]))
        log_mass, steps = -gaps[:count], gaps[count:]
        shares = np.log(-np.expm1(-steps))
        for i in np.flatnonzero(steps == TINY).tolist():
            step = self._height(int(first[ends][i]), int(last[ends][i]) + 1)
            # 1 - exp(-x) is below x, and not by a relative 2^-1000.
            shares[i] = math.log(step.numerator) - math.log(step.denominator)
        log_mass[ends] += shares
        return log_mass

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
        ends = self._scores(np.array([first, min(last + 1, self.last)]))
        begin = ends[:1]
        total = 1.0 if last == self.last else -math.expm1(-float(self._gaps(begin, ends[1:])[0]))
        wanted = total * (uniform.numerator * 2.0**-uniform.bits)
        # Shares that are less than TINY are taken for it.
        if wanted <= 2.0 * TINY:
            return None
        while first < last:
            ends = _cut_evenly(first, last)
            shares = -np.expm1(-self._gaps(begin, self._scores(ends + 1)))
            place = int(shares.searchsorted(wanted, side="right"))
            near = shares[max(0, place - 1) : place + 1]
            if (np.abs(near - wanted) <= 2.0**-40 * wanted).any():
                return None
            first = int(ends[place - 1]) + 1 if place else first
            last = int(ends[place]) if place < len(ends) else last
        return first

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

    def _height(self, near: int, far: int) -> Fraction:
        """By how much one index is higher than one before it, exactly."""
        return self.unit * abs(self.tally.gap(self.edge + self.step * near, self.edge + self.step * far))

    def _scores(self, index: Ranks) -> NDArray[Any]:
        return self.tally.raw(self.edge + self.step * index)

    def _gaps(self, near: NDArray[Any], far: NDArray[Any]) -> Floats:
        """By how much some indices are higher than others before them, by their scores."""
        larger, smaller = (near, far) if self.step > 0 else (far, near)
        return scaled_gaps(larger, smaller, self._scale)

    @cached_property
    def _scale(self) -> Fraction:
        """How high one step between scores as the column holds them is."""
        step = self.tally.column.unit
        return self.unit if step == 1 else self.unit * step


def _cut_evenly(first: int, last: int) -> Ranks:
    """Where pieces of a range end, all but the last of them."""
    width = last - first + 1
    if width <= _AT_ONCE:
        return np.arange(first, last)
    return np.array([first + width * i // _AT_ONCE - 1 for i in range(1, _AT_ONCE)], np.int64)
