"""The canonical mechanism with Gumbel noise, drawn by two thresholds.

For 1 <= a <= k and 0 <= b <= d - k let the nested class (a, b) be all k-subsets that hold ranks 0..k-a-1 and nothing
from rank k+b on: C(a+b, a) of them. With heights A(a), of rank k - a above rank k - 1, and B(b), of rank k - 1 above
rank k - 1 + b, give each of its subsets the mass (exp(-A(a)) - exp(-A(a+1))) (exp(-B(b)) - exp(-B(b+1))). A subset is
in all classes from some a and some b on; its masses there add up to exp(-A - B), its weight (docs/proofs.md, 9.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from flint import arb

from discreet.exact.arrays import freeze
from discreet.exact.ball import log_binomial, sample_bernoulli_exp
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import SCALE, Envelope
from discreet.exact.nested import Enclosure, check_bounds, log_slack
from discreet.exact.nested_cuts import WASTE, begin, tighten
from discreet.exact.nested_plan import ALL
from discreet.mechanisms.canonical_classes import Losses
from discreet.mechanisms.canonical_heights import Heights
from discreet.selection import Selection, UniformSubset

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
    bits: int = SCALE
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
                self._latest = self.planned if self.losses.k <= ALL else self.fit(self._waste)
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
