"""The canonical mechanism with Gumbel noise, drawn by two thresholds.

For 1 <= a <= k and 0 <= b <= d - k let the nested class (a, b) be all k-subsets that hold ranks 0..k-a-1 and nothing
from rank k+b on: C(a+b, a) of them. With heights A(a), of rank k - a above rank k - 1, and B(b), of rank k - 1 above
rank k - 1 + b, give each of its subsets the mass (exp(-A(a)) - exp(-A(a+1))) (exp(-B(b)) - exp(-B(b+1))). A subset is
in all classes from some a and some b on; its masses there add up to exp(-A - B), its weight (docs/proofs.md, 9.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from flint import arb

from discreet.exact.ball import log_binomial, sample_bernoulli_exp
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import SCALE, Envelope
from discreet.exact.nested import Enclosure, log_slack
from discreet.exact.nested_cuts import enclose
from discreet.mechanisms.canonical_classes import Losses
from discreet.mechanisms.canonical_heights import Heights
from discreet.selection import Selection, UniformSubset

_WHOLE = Envelope.over(np.zeros(1))
"""All of a row that has one part."""


@dataclass(frozen=True, eq=False, repr=False)
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
    def enclosure(self) -> Enclosure:
        """Cells around all classes."""
        self.losses.focus()
        with np.errstate(all="ignore"):
            return enclose(self.top, self.bottom)

    @cached_property
    def envelope(self) -> Envelope:
        """Part j is cell j of b, with all a."""
        cells = self.enclosure
        slack = log_slack(self.top.last, self.bottom.last, len(cells.a.first), self.bits)
        return Envelope.over(cells.log_masses + slack, self.bits)

    def row(self, b: int) -> Envelope:
        """Part i is cell i of a, next to this b: their shares alone count."""
        if len(self.enclosure.a.first) == 1:
            return _WHOLE
        return Envelope.over(self.enclosure.levels.row(b), self.bits)

    def select(self, entropy: Entropy) -> Selection:
        """Returns a k-subset of the ranks, distributed as the mechanism says; all but the class is left open."""
        (a, b), k = self.draw_class(entropy), self.losses.k
        # Only the last index of a run has a mass, and the head ends before it.
        some = UniformSubset(a, k - a, k + b - 1, entropy) if b else None
        return Selection(np.empty(0, np.int64), k - a if b else k, some, cuts_no_run=True)

    def draw_class(self, entropy: Entropy) -> tuple[int, int]:
        """Returns a class (a, b) with probability exactly proportional to its mass."""
        cells = self.enclosure
        while True:
            j = self.envelope.pick(entropy)
            b = self.bottom.draw(int(cells.b.first[j]), int(cells.b.last[j]), entropy)
            row = self.row(b)
            i = 0 if row is _WHOLE else row.pick(entropy)
            a = self.top.draw(int(cells.a.first[i]), int(cells.a.last[i]), entropy)
            drawn = j, row, i, a, b
            if sample_bernoulli_exp(entropy, partial(self.log_acceptance, *drawn), self.acceptance_bounds(*drawn)):
                return a, b

    def log_acceptance(self, j: int, row: Envelope, i: int, a: int, b: int) -> arb:
        """A ball around the log probability that a class drawn from cell i of a and cell j of b is kept.

        The two cells and C(a+b, a), over the weights that they were drawn by.
        """
        cells = self.enclosure
        mass = self.bottom.log_mass(int(cells.b.first[j]), int(cells.b.last[j]))
        mass += self.top.log_mass(int(cells.a.first[i]), int(cells.a.last[i])) + log_binomial(a + b, a)
        return mass - self.envelope.log_weight(j) - row.log_share(i)

    def acceptance_bounds(self, j: int, row: Envelope, i: int, a: int, b: int) -> tuple[float, float]:
        """Floats certainly below and above the log probability that such a class is kept."""
        log_a, log_b = float(self.enclosure.a.log_mass[i]), float(self.enclosure.b.log_mass[j])
        size = math.lgamma(a + b + 1) - math.lgamma(a + 1) - math.lgamma(b + 1)
        weight, other = self.envelope.log_weight_float(j), row.log_share_float(i)
        # Each term is right to a relative 2^-38 of what it is made of.
        made_of = (a + b) * math.log(a + b + 2.0) + abs(log_a) + abs(log_b) + abs(weight) + abs(row.reference) + 128.0
        middle, off = log_a + log_b + size - weight - other, 2.0**-38 * made_of
        return (middle - off, middle + off) if off < 1.0 else (-math.inf, math.inf)
