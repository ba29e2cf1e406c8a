"""The canonical mechanism with Gumbel noise, drawn by two thresholds.

For 1 <= a <= k and 0 <= b <= d - k let the nested class (a, b) be all k-subsets that hold ranks 0..k-a-1 and nothing
from rank k+b on: C(a+b, a) of them. With heights A(a), of rank k - a above rank k - 1, and B(b), of rank k - 1 above
rank k - 1 + b, give each of its subsets the mass (exp(-A(a)) - exp(-A(a+1))) (exp(-B(b)) - exp(-B(b+1))). A subset is
in all classes from some a and some b on; its masses there add up to exp(-A - B), its weight (docs/proofs.md, 9.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.exact.arrays import Floats, Ranks, freeze
from discreet.exact.ball import LARGEST, ball, is_less, log_binomial, sample_bernoulli_exp
from discreet.exact.entropy import Entropy, Uniform
from discreet.exact.envelope import WEIGHT_BITS, Envelope
from discreet.exact.nested import Enclosure, check_bounds, log_slack
from discreet.exact.nested_grid import MAX_SINGLE_CELLS, WASTE, begin, tighten
from discreet.mechanisms.canonical_classes import Losses
from discreet.mechanisms.tally import TINY, Selection, Tally, UniformSubset, scaled_gaps, to_float

# How high the scores on one side of the k-th rise above it, or fall below it: exponentials of that, and draws by them.
#
# Index i is the i-th rank away from the k-th, and its height H(i) is what the loss gains there: it never falls with i,
# and beyond the last index it is infinite. A cell of indices first..last has the mass exp(-H(first)) - exp(-H(last +
# 1)), which takes two scores, however many indices there are; within a run of equal scores there is no mass.

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
        steps = self._gaps(scores[:-1], scores[1:])
        log_mass = np.zeros(len(scores))
        np.add.accumulate(steps, out=log_mass[1:])
        np.negative(log_mass, out=log_mass)
        # A height beyond all floats still leaves a mass.
        np.maximum(log_mass, -LARGEST, out=log_mass)
        log_mass[:-1] += self._log_shares(first[:-1], first[1:], steps)
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
        for place in np.flatnonzero(steps == TINY).tolist():
            step = self._height(int(near[place]), int(far[place]))
            # 1 - exp(-x) is below x by less than a relative 2^-1000.
            shares[place] = math.log(step.numerator) - math.log(step.denominator)
        return shares

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
        low, high = first, last
        while low < high:
            middle = (low + high) // 2

            def share(index: int = middle) -> arb:
                return self._share(first, index)

            if is_less(lambda: uniform.ball() * self._share(first, last), share, uniform.reveal):
                high = middle
            else:
                low = middle + 1
        return low

    def _share(self, first: int, last: int) -> arb:
        """A ball around 1 - exp(-(H(last + 1) - H(first)))."""
        return arb(1) if last == self.last else -(-ball(self._height(first, last + 1))).expm1()

    def _height(self, near: int, far: int) -> Fraction:
        """Return by how much one index is higher than one before it, exactly."""
        return self.unit * abs(self.tally.gap(self.edge + self.step * near, self.edge + self.step * far))

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


def _cut_evenly(first: int, last: int, with_end: bool = False) -> Ranks:
    """Where pieces of a range begin, and the index after its end if that is wanted."""
    width = last - first + 1
    if width <= _AT_ONCE:
        return first + np.arange(width + with_end)
    number = np.arange(_AT_ONCE + with_end)
    # Without passing 2^63.
    return first + width // _AT_ONCE * number + width % _AT_ONCE * number // _AT_ONCE


_WHOLE = Envelope.over(np.zeros(1))
"""All of a row that has one part."""
freeze(_WHOLE.cumulative)


_PLANNED_TRIES = 8
"""The number of planned proposals that may be rejected before cells are fitted to the scores."""

_FITTED_TRIES = 32
"""The number of fitted proposals that may be rejected before all cells are fitted anew, with half the waste."""


@dataclass(eq=False, repr=False)
class NestedClasses:
    """The nested classes of some losses that are not rounded, and draws by their mass.

    Attributes
    ----------
    losses
        The losses.
    bits
        How many bits the heaviest weights have that cells are drawn by.
    """

    losses: Losses
    bits: int = WEIGHT_BITS
    _latest: Proposals | None = field(default=None, init=False)
    _waste: float = field(default=WASTE, init=False)

    @cached_property
    def top(self) -> Heights:
        """The heights of the first k ranks."""
        losses = self.losses
        return Heights(losses.tally, losses.k, -1, 1, losses.k, losses.s * (1 - losses.gamma))

    @cached_property
    def bottom(self) -> Heights:
        """The heights from the k-th rank on down."""
        losses = self.losses
        return Heights(losses.tally, losses.k - 1, 1, 0, losses.tally.d - losses.k, losses.s * losses.gamma)

    @cached_property
    def planned(self) -> Proposals:
        """Proposals by the cells that k and the number of items plan, which fit nearly all scores of few items."""
        with np.errstate(all="ignore"):
            return self._propose(begin(self.top, self.bottom))

    def fit(self, waste: float) -> Proposals:
        """Return proposals by cells that are cut until their bounds waste little."""
        with np.errstate(all="ignore"):
            return self._propose(tighten(self.planned.cells, self.top, self.bottom, waste))

    def _propose(self, cells: Enclosure) -> Proposals:
        """Return proposals by some cells, after checking what is cheap to check of their bounds."""
        check_bounds(cells, log_slack(self.top.last, self.bottom.last, len(cells.a.first), self.bits))
        return Proposals(self.top, self.bottom, cells, self.bits)

    def select(self, entropy: Entropy) -> Selection:
        """Returns a k-subset of the ranks, distributed as the mechanism says; all but the class is left open."""
        (a, b), k = self.draw_class(entropy), self.losses.k
        # Only the last index of a run has a mass, and the head ends before it.
        some = UniformSubset(a, k - a, k + b - 1, entropy) if b else None
        return Selection(np.empty(0, np.int64), k - a if b else k, some, cuts_no_run=True)

    def draw_class(self, entropy: Entropy) -> tuple[int, int]:
        """Return a class (a, b) with probability exactly proportional to its mass; (k, 0) stands for all (a, 0).

        An accepted class has this distribution under every envelope, and the number of rejections alone decides which
        envelope proposes the next one. The last envelope is kept for further draws.
        """
        with np.errstate(all="ignore"):
            if self._latest is None:
                self._latest = self.planned if self.losses.k <= MAX_SINGLE_CELLS else self.fit(self._waste)
            left = _PLANNED_TRIES if self._latest is self.planned else _FITTED_TRIES
            while (found := self._latest.draw(entropy)) is None:
                left -= 1
                if not left:
                    if self._latest is not self.planned:
                        self._waste /= 2.0
                    self._latest, left = self.fit(self._waste), _FITTED_TRIES
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Proposals:
    """Cells around all classes, and classes that are proposed by these and accepted.

    Attributes
    ----------
    top, bottom
        The heights on both sides.
    cells
        What encloses all classes.
    bits
        As in `NestedClasses`.
    """

    top: Heights
    bottom: Heights
    cells: Enclosure
    bits: int

    @cached_property
    def envelope(self) -> Envelope:
        """Part j is cell j of b, with all a."""
        # The slack covers rounding, and what the integer weights of cells of a add.
        slack = log_slack(self.top.last, self.bottom.last, len(self.cells.a.first), self.bits)
        return Envelope.over(self.cells.log_masses + slack, self.bits)

    def row(self, b: int) -> Envelope:
        """Part i is cell i of a, next to this b: their shares alone count."""
        if len(self.cells.a.first) == 1:
            return _WHOLE
        return Envelope.over(self.cells.row(b, self.top.last + self.bottom.last), self.bits)

    def draw(self, entropy: Entropy) -> tuple[int, int] | None:
        """Returns a class (a, b), with probability exactly proportional to its mass, or None where it is turned down.

        All classes (a, 0) are the top-k alone. They are drawn as one, with all a: their masses add up to that of b.
        """
        cells = self.cells
        j = self.envelope.pick(entropy)
        b = self.bottom.draw(int(cells.b.first[j]), int(cells.b.last[j]), entropy)
        drawn: Drawn = j, b, _WHOLE, None, self.top.last
        if b:
            row = self.row(b)
            i = 0 if row is _WHOLE else row.pick(entropy)
            drawn = j, b, row, i, self.top.draw(int(cells.a.first[i]), int(cells.a.last[i]), entropy)
        accepted = sample_bernoulli_exp(entropy, partial(self.log_acceptance, *drawn), self.acceptance_bounds(*drawn))
        return (drawn[-1], b) if accepted else None

    def log_acceptance(self, j: int, b: int, row: Envelope, i: int | None, a: int) -> arb:
        """A ball around the log probability that a class drawn from cell j of b and cell i of a is kept.

        The two cells and C(a+b, a), over the weights that they were drawn by. Without a cell of a, all of them count.
        """
        cells = self.cells
        mass = self.bottom.log_mass(int(cells.b.first[j]), int(cells.b.last[j])) - self.envelope.log_weight(j)
        if i is not None:
            mass += self.top.log_mass(int(cells.a.first[i]), int(cells.a.last[i])) + log_binomial(a + b, a)
            mass -= row.log_share(i)
        return mass

    def acceptance_bounds(self, j: int, b: int, row: Envelope, i: int | None, a: int) -> tuple[float, float]:
        """Floats certainly below and above the log probability that such a class is kept."""
        log_a, log_b = 0.0 if i is None else float(self.cells.a.log_mass[i]), float(self.cells.b.log_mass[j])
        size = math.lgamma(a + b + 1) - math.lgamma(a + 1) - math.lgamma(b + 1)
        weight, other = self.envelope.log_weight_float(j), 0.0 if i is None else row.log_share_float(i)
        # Each term is right to a relative 2^-38 of what it is made of.
        made_of = (a + b) * math.log(a + b + 2.0) + abs(log_a) + abs(log_b) + abs(weight) + abs(row.reference) + 128.0
        middle, off = log_a + log_b + size - weight - other, 2.0**-38 * made_of
        return (middle - off, middle + off) if off < 1.0 else (-math.inf, math.inf)


Drawn = tuple[int, int, Envelope, int | None, int]
"""A cell of b and b, the weights of cells of a next to it, one of them or None for all together, and a."""
