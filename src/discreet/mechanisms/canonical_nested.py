"""The canonical mechanism with Gumbel noise, drawn by two thresholds (docs/proofs.md, section 9.3).

For 1 <= a <= k and 0 <= b <= d - k the nested class (a, b) is the set of all C(a+b, a) k-subsets that hold ranks
0..k-a-1 and nothing from rank k+b on. Let A(a) be the term of rank k-a in the excess loss, and B(b) that of rank
k+b-1. Each subset of the class gets the mass (exp(-A(a)) - exp(-A(a+1))) (exp(-B(b)) - exp(-B(b+1))). A subset is in
all classes from some a and some b on, so its masses telescope to exp(-A - B), its weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.exact.arrays import Floats, Ranks, freeze
from discreet.exact.ball import LARGEST, ball, is_less, log_binomial, sample_bernoulli_exp
from discreet.exact.entropy import Entropy, Uniform
from discreet.exact.envelope import WEIGHT_BITS, Envelope
from discreet.exact.nested import MAX_SINGLE_CELLS, WASTE, Enclosure, begin, check_bounds, tighten
from discreet.mechanisms.tally import TINY, Selection, Tally, UniformSubset, scaled_gaps

if TYPE_CHECKING:
    from discreet.mechanisms.canonical import Losses

_MAX_PIECES = 256
"""The most pieces that a cell is cut into per step of the search for one of its indices."""

_PLANNED_TRIES = 8
"""The number of planned proposals that may be rejected before cells are fitted to the scores."""

_FITTED_TRIES = 32
"""The number of fitted proposals that may be rejected before all cells are fitted anew, with half the waste."""

_WHOLE = Envelope.over(np.zeros(1))
"""The envelope of a row that has one part."""
freeze(_WHOLE.cumulative)


@dataclass(eq=False, repr=False)
class NestedClasses:
    """The nested classes of losses that are not rounded, drawn by their mass.

    Attributes
    ----------
    losses
        The losses.
    bits
        The number of bits of the heaviest weights of an envelope.
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
        """Proposals by cells that depend on k and d alone, which fit nearly all scores of few items."""
        with np.errstate(all="ignore"):
            return self._propose(begin(self.top, self.bottom))

    def fit(self, waste: float) -> Proposals:
        """Return proposals by cells refined until their bounds waste little."""
        with np.errstate(all="ignore"):
            return self._propose(tighten(self.planned.cells, self.top, self.bottom, waste))

    def _propose(self, cells: Enclosure) -> Proposals:
        """Return proposals by some cells, after the cheap checks of their bounds."""
        slack = check_bounds(cells, self.top.last, self.bottom.last, self.bits)
        return Proposals(self.top, self.bottom, cells, slack, self.bits)

    def select(self, entropy: Entropy) -> Selection:
        """Draw a k-subset with probability proportional to exp(-s loss); all but its class is still to be drawn."""
        (a, b), k = self.draw_class(entropy), self.losses.k
        # Only the last index of a run of equal scores has mass, so neither the head nor the range splits a run.
        some = UniformSubset(a, k - a, k + b - 1, entropy) if b else None
        return Selection(np.empty(0, np.int64), k - a if b else k, some, cuts_no_run=True)

    def draw_class(self, entropy: Entropy) -> tuple[int, int]:
        """Draw a class (a, b) with probability exactly proportional to its mass; (k, 0) stands for all (a, 0).

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
    """Cells around all classes, which propose classes for rejection sampling.

    Attributes
    ----------
    top, bottom
        The heights on both sides.
    cells
        The enclosure of all classes.
    slack
        The amount that raises the bounds of the cells above the masses, whatever the rounding.
    bits
        The number of bits of the heaviest weights.
    """

    top: Heights
    bottom: Heights
    cells: Enclosure
    slack: float
    bits: int

    @cached_property
    def envelope(self) -> Envelope:
        """The envelope of all classes: part j is cell j of b, with all a."""
        return Envelope.over(self.cells.log_masses + self.slack, self.bits)

    def row(self, b: int) -> Envelope:
        """Return the envelope of a row: part i is cell i of a at this b. Only the shares of its parts are used."""
        if len(self.cells.a.first) == 1:
            return _WHOLE
        return Envelope.over(self.cells.row(b, self.top.last + self.bottom.last), self.bits)

    def draw(self, entropy: Entropy) -> tuple[int, int] | None:
        """Draw a class (a, b), accepted with probability exactly proportional to its mass, or None if it is rejected.

        All classes (a, 0) hold the top-k alone. They are drawn as one, because their masses add up to that of index 0.
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
        """Return a ball around the log acceptance probability of a class drawn from cell j of b and cell i of a.

        It is the mass of both cells times C(a+b, a), divided by the weights by which they were drawn. None for i stands
        for all cells of a.
        """
        cells = self.cells
        mass = self.bottom.log_mass(int(cells.b.first[j]), int(cells.b.last[j])) - self.envelope.log_weight(j)
        if i is not None:
            mass += self.top.log_mass(int(cells.a.first[i]), int(cells.a.last[i])) + log_binomial(a + b, a)
            mass -= row.log_share(i)
        return mass

    def acceptance_bounds(self, j: int, b: int, row: Envelope, i: int | None, a: int) -> tuple[float, float]:
        """Return floats certainly below and above `log_acceptance`."""
        log_a, log_b = 0.0 if i is None else float(self.cells.a.log_mass[i]), float(self.cells.b.log_mass[j])
        size = math.lgamma(a + b + 1) - math.lgamma(a + 1) - math.lgamma(b + 1)
        weight, other = self.envelope.log_weight_float(j), 0.0 if i is None else row.log_share_float(i)
        # Each term has a relative error of at most 2^-38 of the terms that it is computed from.
        made_of = (a + b) * math.log(a + b + 2.0) + abs(log_a) + abs(log_b) + abs(weight) + abs(row.reference) + 128.0
        middle, off = log_a + log_b + size - weight - other, 2.0**-38 * made_of
        return (middle - off, middle + off) if off < 1.0 else (-math.inf, math.inf)


Drawn = tuple[int, int, Envelope, int | None, int]
"""A cell of b and b, the envelope of the cells of a at this b, one of these cells or None for all, and a."""


@dataclass(frozen=True, eq=False, repr=False)
class Heights:
    """The heights H on one side of the k-th score: the terms of the excess loss, by distance from the k-th rank.

    H(i) belongs to the i-th rank away from `edge`. It does not decrease in i, and is infinite beyond the last index. A
    cell of indices first..last has the mass exp(-H(first)) - exp(-H(last + 1)), which takes two scores to compute; a
    run of equal scores has mass only at its last index.

    Attributes
    ----------
    tally
        The scores.
    edge
        The rank from which indices count.
    step
        -1 if rank edge - i has index i, 1 if rank edge + i has it.
    first, last
        The first index, whose height is 0, and the last.
    unit
        The height of one unit of score.
    """

    tally: Tally
    edge: int
    step: int
    first: int
    last: int
    unit: Fraction

    def log_masses(self, first: Ranks, last: Ranks) -> Floats:
        """Return the log masses of cells to a relative 2^-44; -inf only for a mass of 0.

        The caller silences NumPy's warning about the logarithm of 0.
        """
        count, ends = len(first), last < self.last
        scores = self._scores(np.concatenate([first, last[ends] + 1]))
        begin, end = scores[:count], scores[count:]
        log_mass = -self._gaps(self._first_score, begin)
        log_mass[ends] += self._log_shares(first[ends], last[ends] + 1, self._gaps(begin[ends], end))
        return log_mass

    def log_masses_in_a_row(self, first: Ranks) -> Floats:
        """Return the log masses of consecutive cells that begin at `first` and together hold all indices.

        The relative error is 2^-41 for up to 3,000 cells, of which there are fewer: heights are running sums of steps.
        """
        scores = self._scores(first)
        steps = self._gaps(scores[:-1], scores[1:])
        log_mass = np.zeros(len(scores))
        np.add.accumulate(steps, out=log_mass[1:])
        np.negative(log_mass, out=log_mass)
        # A height beyond the floats still leaves a mass.
        np.maximum(log_mass, -LARGEST, out=log_mass)
        log_mass[:-1] += self._log_shares(first[:-1], first[1:], steps)
        return log_mass

    def is_last_above(self, log_mass: float) -> bool:
        """Return True if the last index alone has more than this log mass."""
        return self._log_mass_of_last > log_mass

    @cached_property
    def _log_mass_of_last(self) -> float:
        """The log mass of the last index, to a relative 2^-44 or an absolute 2^-48; -inf or NaN beyond the floats."""
        near, far = (self.edge + self.step * index for index in (self.first, self.last))
        return -self.tally.scaled_distance(near, far, self._scale)

    def _log_shares(self, near: Ranks, far: Ranks, steps: Floats) -> Floats:
        """Return log(1 - exp(-steps)) for the steps H(far) - H(near).

        It is the log mass of a cell relative to all indices from its first on. Both logarithms are at most 0, so their
        sum does not cancel.
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
        """Return a ball around the log mass of a cell, which must not be 0."""
        return self._share(first, last).log() - ball(self._height(self.first, first))

    def draw(self, first: int, last: int, entropy: Entropy) -> int:
        """Draw an index of a cell with probability exactly proportional to its mass; some index must have one.

        With U uniform, it is the first index at which the cumulative share of the cell exceeds U.
        """
        if first == last:
            return first
        uniform = entropy.uniform()
        found = self._draw_by_floats(first, last, uniform)
        return self._draw_by_balls(first, last, uniform) if found is None else found

    def _draw_by_floats(self, first: int, last: int, uniform: Uniform) -> int | None:
        """Return the index that a uniform number selects, or None if floats cannot decide."""
        # A U below 2^-20 has too few known bits for a relative error of 2^-40.
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
        # Shares below TINY are rounded up to it.
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
        """Return the index that a uniform number selects, by bisection with exact comparisons."""
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
        """Return a ball around 1 - exp(-(H(last + 1) - H(first)))."""
        return arb(1) if last == self.last else -(-ball(self._height(first, last + 1))).expm1()

    def _height(self, near: int, far: int) -> Fraction:
        """Return H(far) - H(near) exactly."""
        return self.unit * abs(self.tally.gap(self.edge + self.step * near, self.edge + self.step * far))

    def _scores(self, index: Ranks) -> NDArray[Any]:
        return self.tally.raw(self.edge + index if self.step > 0 else self.edge - index)

    def _gaps(self, near: NDArray[Any], far: NDArray[Any]) -> Floats:
        """Return H(far) - H(near) from the scores at both indices."""
        larger, smaller = (near, far) if self.step > 0 else (far, near)
        return scaled_gaps(larger, smaller, self._scale)

    @cached_property
    def _first_score(self) -> NDArray[Any]:
        return self._scores(np.array([self.first]))

    @cached_property
    def _scale(self) -> Fraction:
        """The height of one step between scores as the column stores them."""
        step = self.tally.column.unit
        return self.unit if step == 1 else self.unit * step


def _cut_evenly(first: int, last: int, with_end: bool = False) -> Ranks:
    """Return the first indices of the pieces of a range, and with `with_end` the index after its end."""
    width = last - first + 1
    if width <= _MAX_PIECES:
        return first + np.arange(width + with_end)
    number = np.arange(_MAX_PIECES + with_end)
    # first + width i / _MAX_PIECES, without overflow beyond 2^63.
    return first + width // _MAX_PIECES * number + width % _MAX_PIECES * number // _MAX_PIECES
