"""The joint exponential mechanism over sequences (Gillenwater et al., 2022): a sequence of k items, released in order.

The loss of a sequence of distinct items is the largest amount by which the true i-th score exceeds that of its i-th
item. It has sensitivity 2 delta, so the weight of a sequence is exp(-c loss) with c = s/2 (docs/proofs.md, section 5).

A weight is the probability that an exponential variable of rate c exceeds the loss. So the half line is cut into parts
[a, b): in each part a sequence y with loss below b has the mass exp(-c max(a, loss(y))) - exp(-c b), and the masses of
y telescope to its weight (section 9.1). A part is drawn by an envelope, then a uniform sequence of loss below b, which
is accepted with the probability that makes its mass right.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, pairwise
from math import inf
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx

from discreet.errors import InternalError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks, count_up
from discreet.exact.ball import (
    FLOAT_MARGIN,
    MAX_SCANNED,
    START_PRECISION,
    EnvelopeError,
    ball,
    bound_above,
    is_below_exp,
)
from discreet.exact.boxes import choose_loose
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import WEIGHT_BITS, Envelope, scan_weights
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.mechanisms.tally import ExactColumn, Selection, Tally, to_float
from discreet.privacy import Sensitivity

_WASTE = 8.0
"""Edges are close enough if their bounds add up to at most (1 + _WASTE) times the mass."""

_RISE = 0.25
"""The target rise of the log count per part, in nats."""

_MAX_PIECES = 32
"""The most parts between two counted edges."""

_NEGLIGIBLE = 10.0
"""An interval whose bound is more than this many nats below the largest is one part."""

_MAX_LOOKUPS = 1 << 15
"""The number of ranks looked up at a time, so that they stay in the cache."""


@dataclass(frozen=True)
class Joint(Mechanism):
    """A mechanism that releases a sequence of k items at once, by the distance of each below the true score there.

    Parameters
    ----------
    over
        "sequences". Deprecated: "sets" stands for `discreet.analysis.JointOverSets()`.

    Examples
    --------
    >>> Joint()
    Joint()
    """

    over: str = "sequences"

    name: ClassVar[str] = "joint"
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.over not in ("sequences", "sets"):
            raise InvalidValueError(f"over must be 'sequences' or 'sets', not {quote(self.over)}")
        if not self.is_drawable:
            message = "Joint(over='sets') is deprecated: compare with discreet.analysis.JointOverSets() instead"
            warnings.warn(message, DeprecationWarning, stacklevel=3)

    def __repr__(self) -> str:
        return "Joint()" if self.is_drawable else "Joint(over='sets')"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        rate = self.unit_cost(scale(epsilon, sensitivity), k)
        if isinstance(tally.column, ExactColumn) or not 2.0**-900 < to_float(rate) < 2.0**900:
            # Scores that may be beyond the floats are brought to the scale on which one unit of loss matters.
            return Prepared(tally.scale_by(rate), k, Fraction(1))
        return Prepared(tally, k, rate)

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        # An exponential mechanism over sequences has a privacy loss of range epsilon (docs/proofs.md, 6.2).
        return epsilon**2 / 8

    def parameters(self) -> dict[str, Any]:
        return {} if self.is_drawable else {"over": self.over}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        return s / 2

    @property
    def label(self) -> str:
        return f"{self.name}, {self.over}"

    @property
    def form(self) -> Form:
        return Form.LOSSES

    @property
    def is_drawable(self) -> bool:
        return self.over == "sequences"

    @property
    def is_linear(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """The joint mechanism on a tally: parts of the half line, built once, and draws from them."""

    tally: Tally
    k: int
    rate: Fraction
    bits: int = WEIGHT_BITS

    def select(self, entropy: Entropy) -> Selection:
        return Selection(self.draw(entropy))

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw a sequence of k ranks with probability exactly proportional to exp(-rate loss)."""
        try:
            while True:
                part = self.envelope.pick(entropy)
                last, uniform = self.last_ranks(float(self.edges[part + 1])), entropy.uniform()
                log_acceptance = partial(self.log_acceptance, part, last)
                # The acceptance probability is largest for a loss of 0. Most rejections happen here, before a sequence
                # is drawn; the same uniform decides again once its loss is known.
                if is_below_exp(uniform, partial(log_acceptance, Fraction(0))):
                    sequence = np.array(entropy.arrangement(last.tolist()), np.int64)
                    loss = self.loss(sequence)
                    if loss < self.edges[part + 1] and is_below_exp(uniform, partial(log_acceptance, loss)):
                        return sequence
        except EnvelopeError:
            return self._scan(entropy)

    def _scan(self, entropy: Entropy) -> Ranks:
        """Draw as `draw` does, without bounds: by parts that end at each possible loss, in which all masses agree."""
        d, k = self.tally.d, self.k
        if k * k * d > MAX_SCANNED:
            raise InternalError
        scores = [self.tally.exact(rank) for rank in range(d)]
        losses = sorted({max(high - low, Fraction(0)) for high in scores[:k] for low in scores})
        # Bisection needs ascending order.
        below = scores[::-1]
        last = [np.array([d - 1 - bisect_left(below, high - loss) for high in scores[:k]]) for loss in losses]

        def log_masses() -> list[arb]:
            heights = [-ball(self.rate * loss) for loss in losses]
            widths = [-(after - before).expm1() for before, after in pairwise(heights)]
            logs = [(width.log() for width in widths), (arb(0),)]
            return [h + w + log_count(ranks) for h, w, ranks in zip(heights, chain(*logs), last, strict=True)]

        part = scan_weights(entropy, log_masses)
        return np.array(entropy.arrangement(last[part].tolist()), np.int64)

    def loss(self, sequence: Ranks) -> Fraction:
        """Return the largest amount, at least 0, by which the score at rank i exceeds that of the i-th item."""
        return self.tally.largest_gap(np.arange(self.k), sequence)

    def log_acceptance(self, part: int, last: Ranks, loss: Fraction) -> arb:
        """Return a ball around the log acceptance probability of a sequence of this loss drawn in this part."""
        a, b = float(self.edges[part]), float(self.edges[part + 1])
        log_mass = -ball(self.rate * max(loss, Fraction(a)))
        if b < inf:
            # log(exp(-u) - exp(-v)) = -u + log(1 - exp(u - v))
            log_mass += (-(-ball(self.rate * Fraction(b)) - log_mass).expm1()).log()
        return log_mass + log_count(last) - self.envelope.log_weight(part)

    def last_ranks(self, reach: float) -> Ranks:
        """Return, for each place, the last rank whose score is less than `reach` below that of the place."""
        return last_ranks(self.tally, self.k, np.array([reach])).ravel()

    @cached_property
    def edges(self) -> Floats:
        """The first points of the parts, and infinity."""
        return self._parts[0]

    @cached_property
    def envelope(self) -> Envelope:
        return Envelope.over(self._parts[1], self.bits)

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        """The edges, and upper bounds on the log masses of the parts between them.

        Sequences are counted at few edges, and each interval between two of these is cut into parts with the same
        bound. A part can then be rejected by its own count, before a sequence is drawn.
        """
        rate, everything = to_float(self.rate), float(self._log_counts(np.array([inf]))[0])
        counted, below = self._counted_edges(rate, everything)
        upper = below[1:] - rate * counted[:-1] + _log_width(rate, counted)
        pieces = np.where(upper > upper.max() - _NEGLIGIBLE, np.diff(below) / _RISE, 1.0)
        edges, which = _cut_evenly(rate, counted, np.ceil(np.clip(pieces, 1.0, _MAX_PIECES)).astype(np.int64))
        # Each term is raised separately, because the terms nearly cancel.
        log_counts = np.append(below[1:][which], everything)
        log_width = np.append(_log_width(rate, edges), 0.0)
        return np.append(edges, inf), bound_above(log_counts) + bound_above(-rate * edges) + bound_above(log_width)

    def _counted_edges(self, rate: float, everything: float) -> tuple[Floats, Floats]:
        """Return edges from 0 on, and the log number of sequences with a loss below each."""
        # Beyond this edge all sequences together have a mass below exp(-40).
        end = np.exp2(np.ceil(np.log2((everything + 40.0) / rate)))
        edges = np.array([0.0, min(float(end), 2.0**1020)])
        below = self._log_counts(edges)
        while True:
            height, log_width = -rate * edges, _log_width(rate, edges)
            upper, lower = (log_count + height[:-1] + log_width for log_count in (below[1:], below[:-1]))
            # All sequences below an edge weigh at least as much as they would at it; this finds the peak early.
            heaviest = max(float((below + height).max()), everything + float(height[-1]))
            middle = edges[:-1] + np.diff(edges) / 2.0
            divisible = (middle > edges[:-1]) & (middle < edges[1:])
            chosen = np.flatnonzero(choose_loose(upper, lower, divisible, heaviest, _WASTE))
            if not len(chosen):
                return edges, below
            edges = np.insert(edges, chosen + 1, middle[chosen])
            below = np.insert(below, chosen + 1, self._log_counts(middle[chosen]))

    def _log_counts(self, reaches: Floats) -> Floats:
        """Return the log number of sequences whose loss is below each reach."""
        size = max(1, _MAX_LOOKUPS // self.k)
        rows = np.split(np.maximum(reaches, np.nextafter(0.0, 1.0)), range(size, len(reaches), size))
        return np.concatenate([log_count_float(last_ranks(self.tally, self.k, some)) for some in rows])


def last_ranks(tally: Tally, k: int, reaches: Floats) -> Ranks:
    """Return, for each reach and place, the last rank whose score is less than the reach below that of the place."""
    finite = np.isfinite(reaches)
    if finite.all():
        # Look-ups are fastest in ascending order of score.
        return tally.within(np.arange(k - 1, -1, -1), reaches[:, None])[:, ::-1]
    last = np.full((len(reaches), k), tally.d - 1)
    if finite.any():
        last[finite] = last_ranks(tally, k, reaches[finite])
    return last


def log_count(last: Ranks) -> arb:
    """Return a ball around the log number of sequences of distinct ranks with the i-th in 0..last[i].

    At START_PRECISION it is a sum of float logarithms, all non-negative and each right to a relative 2^-41, so the sum
    is right to a relative 2^-40; at higher precision it is the logarithm of the product.
    """
    choices = (last - np.arange(len(last))).astype(np.uint64) + np.uint64(1)
    if ctx.prec <= START_PRECISION:
        total = float(np.log(choices.astype(np.float64)).sum())
        return arb(total, FLOAT_MARGIN * total)
    product = arb(1)
    for choice in choices.tolist():
        product *= choice
    return product.log()


def log_count_float(last: Ranks) -> Floats:
    """Return the log number of sequences of distinct ranks with the i-th in 0..last[i], for each row, in floats."""
    # prod (last[i] - i + 1): `last` does not decrease, so the i ranks chosen before are all among 0..last[i].
    free = (last - np.arange(last.shape[1])).astype(np.float64)
    free += 1.0
    return np.asarray(np.log(free, out=free).sum(axis=1), np.float64)


def _log_width(rate: float, edges: Floats) -> Floats:
    """Return log(1 - exp(-rate width)) for each part."""
    return np.log(-np.expm1(-rate * np.diff(edges)))


def _cut_evenly(rate: float, edges: Floats, pieces: Ranks) -> tuple[Floats, Ranks]:
    """Return the edges with each part cut into at most `pieces` of about equal mass, and the part of each piece."""
    part = np.repeat(np.arange(len(pieces)), pieces)
    share = count_up(pieces) / pieces[part]
    begin = edges[part] - np.log1p(share * np.expm1(-rate * np.diff(edges))[part]) / rate
    begin = np.maximum.accumulate(np.minimum(begin, edges[part + 1]))
    kept = (share == 0.0) | ((np.diff(begin, prepend=-1.0) > 0.0) & (begin < edges[part + 1]))
    return np.append(begin[kept], edges[-1]), part[kept]
