"""The canonical mechanism with Gumbel noise, drawn by two thresholds.

For 1 <= a <= k and 0 <= b <= d - k let the nested class (a, b) be all k-subsets that hold ranks 0..k-a-1 and nothing
from rank k+b on: C(a+b, a) of them. With heights A(a), of rank k - a above rank k - 1, and B(b), of rank k - 1 above
rank k - 1 + b, give each of its subsets the mass (exp(-A(a)) - exp(-A(a+1))) (exp(-B(b)) - exp(-B(b+1))). A subset is
in all classes from some a and some b on; its masses there add up to exp(-A - B), its weight (docs/proofs.md, 9.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from flint import arb

from discreet.columns import FloatColumn, IntegerColumn
from discreet.exact.arrays import Floats, freeze
from discreet.exact.ball import log_binomial, sample_bernoulli_exp
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import SCALE, Envelope
from discreet.exact.nested import Enclosure, log_slack
from discreet.exact.nested_cuts import begin, is_flat, tighten
from discreet.exact.nested_plan import ALL
from discreet.mechanisms.canonical_classes import Losses
from discreet.mechanisms.canonical_heights import Heights, HeightsOfMany
from discreet.selection import Selection, UniformSubset

_WHOLE = Envelope.over(np.zeros(1))
"""All of a row that has one part."""
freeze(_WHOLE.cumulative)


_TRIES = 8
"""How many proposals by cells that were planned may be turned down before others are made for these scores."""


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
    def planned(self) -> Proposals:
        """By cells that k and the number of items plan, which hardly ever need to be others for few items."""
        self.losses.focus()
        with np.errstate(all="ignore"):
            return Proposals(self.top, self.bottom, begin(self.top, self.bottom), self.bits)

    @cached_property
    def fitted(self) -> Proposals:
        """By cells that were cut where they waste much."""
        with np.errstate(all="ignore"):
            cells = tighten(self.planned.cells, self.top, self.bottom)
            return Proposals(self.top, self.bottom, cells, self.bits)

    @property
    def is_known(self) -> bool:
        """Whether all scores are in order by now."""
        return self.bottom.known_last == self.bottom.last

    def select(self, entropy: Entropy) -> Selection:
        """Returns a k-subset of the ranks, distributed as the mechanism says; all but the class is left open."""
        (a, b), k = self.draw_class(entropy), self.losses.k
        # Only the last index of a run has a mass, and the head ends before it.
        some = UniformSubset(a, k - a, k + b - 1, entropy) if b else None
        return Selection(np.empty(0, np.int64), k - a if b else k, some, cuts_no_run=True)

    def draw_class(self, entropy: Entropy) -> tuple[int, int]:
        """Returns a class (a, b) with probability exactly proportional to its mass; (k, 0) stands for all (a, 0).

        Whoever proposes it, a class that is accepted has this distribution, and how often classes were turned down
        before is all that decides who proposes the next.
        """
        tried = 0
        with np.errstate(all="ignore"):
            while (found := self._propose_after(tried).draw(entropy)) is None:
                tried += 1
        return found

    def _propose_after(self, tried: int) -> Proposals:
        """Who proposes the next class after so many were turned down."""
        # A draw may put all scores in order, but only after fitted cells were made, which are used from then on.
        is_planned = tried < _TRIES and "fitted" not in vars(self) and self.losses.k <= ALL and self.is_known
        return self.planned if is_planned else self.fitted


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
        return Envelope.over(raise_masses(self.cells, self.top.last, self.bottom.last, self.bits), self.bits)

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


def plan_together(every: Sequence[NestedClasses]) -> None:
    """Makes the planned proposals of those that are alike in length and type at once; all have the same k and losses.

    Each then has what it would make by itself.
    """
    alike: dict[Any, list[NestedClasses]] = {}
    for each in every:
        tally = each.losses.tally
        if isinstance(tally.column, IntegerColumn | FloatColumn):
            alike.setdefault((type(tally.column), tally.column.unit, tally.d), []).append(each)
    for some in alike.values():
        top, bottom = some[0].top, some[0].bottom
        at_once = max(1, _AT_ONCE // top.last)
        for each in some[1:]:
            vars(each).update(top=top.of(each.losses.tally), bottom=bottom.of(each.losses.tally))
        are_flat = [is_flat(each.top) for each in some]
        for flat in (False, True):
            planned = [each for each, found in zip(some, are_flat, strict=True) if found is flat]
            for start in range(0, len(planned), at_once):
                _plan_alike(planned[start : start + at_once])


_AT_ONCE = 1 << 14
"""For how many items in all, k for each tally, proposals are made at once: they then take a few megabytes."""


def _plan_alike(some: Sequence[NestedClasses]) -> None:
    top, bottom = (
        HeightsOfMany.of_each([each.top for each in some]),
        HeightsOfMany.of_each([each.bottom for each in some]),
    )
    bits = some[0].bits
    with np.errstate(all="ignore"):
        every = begin(top, bottom)
        envelopes = Envelope.over_each(raise_masses(every, top.last, bottom.last, bits), bits)
    for each, cells, envelope in zip(some, every.split(), envelopes, strict=True):
        proposals = Proposals(each.top, each.bottom, cells, bits)
        vars(proposals)["envelope"] = envelope
        vars(each)["planned"] = proposals


def raise_masses(cells: Enclosure, k: int, m: int, bits: int) -> Floats:
    """The log masses of cells of b, raised above what rounding and the weights of cells of a may add."""
    return cells.log_masses + log_slack(k, m, len(cells.a.first), bits)
