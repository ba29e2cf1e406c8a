"""The joint exponential mechanism over sequences (Gillenwater et al., 2022): the rival, released with its order.

The loss of a sequence of distinct items is the most by which the true i-th score exceeds the score of its i-th item,
of sensitivity 2 delta, so the weight of a sequence is exp(-c loss) with c = s/2.

Such a weight is the chance that an exponential variable of rate c exceeds the loss. So cut the half line into parts
[a, b): a sequence y has in each part the mass exp(-c max(a, loss(y))) - exp(-c b) where its loss is below b, and these
add up to its weight. The sequences with loss below b are those whose i-th rank is among the n_i(b) ranks less than b
below the i-th; the n_i do not decrease, so there are prod (n_i - i) of them (i from 0) and a uniform one is drawn place
by place. A part is drawn by weight, then a sequence, which is kept with the probability that makes its mass right.
Whether a uniform number allows that is asked for a loss of 0 first: if not even that, no sequence need be drawn.
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
from discreet.exact.ball import MAX_SCANNED, FLOAT_MARGIN, START_PRECISION, EnvelopeError, ball, bound_above, is_below_exp
from discreet.exact.boxes import choose_loose
from discreet.exact.entropy import Entropy, Uniform
from discreet.exact.envelope import WEIGHT_BITS, Envelope, scan_weights
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.mechanisms.tally import ExactColumn, Selection, Tally, to_float
from discreet.privacy import Sensitivity


@dataclass(frozen=True)
class Joint(Mechanism):
    """Releases a sequence of k items at once, by how far each is below the true score of its place.

    Parameters
    ----------
    over
        "sequences". Deprecated: "sets" stands for `discreet.analysis.JointOverSets()`, which says the same.

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
            # Scores that floats may not reach are brought to the scale on which one unit of loss matters.
            return Prepared(tally.scale_by(rate), k, Fraction(1))
        return Prepared(tally, k, rate)

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        # An exponential mechanism over sequences, of range epsilon.
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
        """Return a sequence of k ranks with probability exactly proportional to exp(-rate * loss)."""
        try:
            return self._draw_by_envelope(entropy)
        except EnvelopeError:
            return self._draw_by_scan(entropy)

    def _draw_by_envelope(self, entropy: Entropy) -> Ranks:
        while True:
            part = self.envelope.pick(entropy)
            last, uniform = self.last_ranks(float(self.edges[part + 1])), entropy.uniform()
            accepts = partial(self._accepts, uniform, part, last)
            # No loss is kept more often than 0. Most of what is refused is refused here, before there is a sequence.
            if accepts(Fraction(0)):
                sequence = np.array(entropy.arrangement(last.tolist()), np.int64)
                loss = self.loss(sequence)
                if loss < self.edges[part + 1] and accepts(loss):
                    return sequence

    def _draw_by_scan(self, entropy: Entropy) -> Ranks:
        """Return the same by parts that end at every possible loss, in which all sequences have the same mass."""
        d, k = self.tally.d, self.k
        if k * k * d > MAX_SCANNED:
            raise InternalError
        scores = [self.tally.exact(rank) for rank in range(d)]
        losses = sorted({max(high - low, Fraction(0)) for high in scores[:k] for low in scores})
        # Ascending, because that is how bisection looks things up.
        below = scores[::-1]
        last = [np.array([d - 1 - bisect_left(below, high - loss) for high in scores[:k]]) for loss in losses]

        def log_masses() -> list[arb]:
            heights = [-ball(self.rate * loss) for loss in losses]
            widths = [-(after - before).expm1() for before, after in pairwise(heights)]
            logs = [(width.log() for width in widths), (arb(0),)]
            return [h + w + log_count(ranks) for h, w, ranks in zip(heights, chain(*logs), last, strict=True)]

        part = scan_weights(entropy, log_masses)
        return np.array(entropy.arrangement(last[part].tolist()), np.int64)

    def _accepts(self, uniform: Uniform, part: int, last: Ranks, loss: Fraction) -> bool:
        """Whether a sequence of this loss, drawn in this part, is kept, by a uniform number."""
        return is_below_exp(uniform, partial(self.log_acceptance, part, last, loss))

    def loss(self, sequence: Ranks) -> Fraction:
        """The most by which the score at rank i exceeds that of the i-th item of the sequence."""
        return self.tally.largest_gap(np.arange(self.k), sequence)

    def log_acceptance(self, part: int, last: Ranks, loss: Fraction) -> arb:
        """A ball around the log probability that a sequence of this loss, drawn in this part, is kept."""
        a, b = float(self.edges[part]), float(self.edges[part + 1])
        log_mass = -ball(self.rate * max(loss, Fraction(a)))
        if b < inf:
            # log(exp(-u) - exp(-v)) = -u + log(1 - exp(u - v))
            log_mass += (-(-ball(self.rate * Fraction(b)) - log_mass).expm1()).log()
        return log_mass + log_count(last) - self.envelope.log_weight(part)

    def last_ranks(self, reach: float) -> Ranks:
        """For each place, the last rank whose score is less than `reach` below that of the place."""
        return last_ranks(self.tally, self.k, np.array([reach])).ravel()

    @cached_property
    def edges(self) -> Floats:
        """Where the parts begin, and infinity."""
        return self._parts[0]

    @cached_property
    def envelope(self) -> Envelope:
        return Envelope.over(self._parts[1], self.bits)

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        """The edges, and upper bounds on the log masses of the parts between them.

        Sequences are counted at few edges, and what is between two of them is cut into parts of one bound: a part can
        then be turned down by a count of its own, which takes less than drawing a sequence in vain.
        """
        rate, everything = to_float(self.rate), float(self._log_counts(np.array([inf]))[0])
        counted, below = self._counted_edges(rate, everything)
        upper = below[1:] - rate * counted[:-1] + _log_width(rate, counted)
        pieces = np.where(upper > upper.max() - _NEGLIGIBLE, np.diff(below) / _RISE, 1.0)
        edges, which = _cut_evenly(rate, counted, np.ceil(np.clip(pieces, 1.0, _PIECES)).astype(np.int64))
        # Each term of a bound is raised on its own, because they nearly cancel.
        log_counts = np.append(below[1:][which], everything)
        log_width = np.append(_log_width(rate, edges), 0.0)
        return np.append(edges, inf), bound_above(log_counts) + bound_above(-rate * edges) + bound_above(log_width)

    def _counted_edges(self, rate: float, everything: float) -> tuple[Floats, Floats]:
        """Edges from 0 on, and the log number of sequences below each."""
        # Beyond this, even all sequences together weigh next to nothing.
        end = np.exp2(np.ceil(np.log2((everything + 40.0) / rate)))
        edges = np.array([0.0, min(float(end), 2.0**1020)])
        below = self._log_counts(edges)
        while True:
            height, log_width = -rate * edges, _log_width(rate, edges)
            upper, lower = (log_count + height[:-1] + log_width for log_count in (below[1:], below[:-1]))
            # All sequences below an edge weigh at least as much as at it, which finds the peak early.
            heaviest = max(float((below + height).max()), everything + float(height[-1]))
            middle = edges[:-1] + np.diff(edges) / 2.0
            divisible = (middle > edges[:-1]) & (middle < edges[1:])
            chosen = np.flatnonzero(choose_loose(upper, lower, divisible, heaviest, _WASTE))
            if not len(chosen):
                return edges, below
            edges = np.insert(edges, chosen + 1, middle[chosen])
            below = np.insert(below, chosen + 1, self._log_counts(middle[chosen]))

    def _log_counts(self, reaches: Floats) -> Floats:
        """The log number of sequences whose loss is below each reach."""
        size = max(1, _CELLS // self.k)
        rows = np.split(np.maximum(reaches, np.nextafter(0.0, 1.0)), range(size, len(reaches), size))
        return np.concatenate([log_count_float(last_ranks(self.tally, self.k, some)) for some in rows])


_WASTE = 8.0
"""Edges are good enough when their bounds add up to at most (1 + _WASTE) times the mass."""

_RISE, _PIECES, _NEGLIGIBLE = 0.25, 32, 10.0
"""Between two counted edges the log count rises by about 0.25 a part; at most 32 parts, and one beyond exp(-10)."""

_CELLS = 1 << 15
"""How many ranks are looked up at once: as many as stay in the cache."""


def _cut_evenly(rate: float, edges: Floats, pieces: Ranks) -> tuple[Floats, Ranks]:
    """The edges with each part cut into so many pieces of about one mass, or fewer, and the part of each piece."""
    part = np.repeat(np.arange(len(pieces)), pieces)
    share = count_up(pieces) / pieces[part]
    begin = edges[part] - np.log1p(share * np.expm1(-rate * np.diff(edges))[part]) / rate
    begin = np.maximum.accumulate(np.minimum(begin, edges[part + 1]))
    kept = (share == 0.0) | ((np.diff(begin, prepend=-1.0) > 0.0) & (begin < edges[part + 1]))
    return np.append(begin[kept], edges[-1]), part[kept]


def last_ranks(tally: Tally, k: int, reaches: Floats) -> Ranks:
    """For each reach a row: for each place, the last rank whose score is less than that below the one of the place."""
    finite = np.isfinite(reaches)
    if finite.all():
        # Scores are looked up fastest in ascending order.
        return tally.within(np.arange(k - 1, -1, -1), reaches[:, None])[:, ::-1]
    last = np.full((len(reaches), k), tally.d - 1)
    if finite.any():
        last[finite] = last_ranks(tally, k, reaches[finite])
    return last


def log_count_float(last: Ranks) -> Floats:
    """The log number of sequences of distinct ranks with the i-th in 0..last[i], for each row, in floats."""
    free = (last - np.arange(last.shape[1])).astype(np.float64)
    free += 1.0
    return np.asarray(np.log(free, out=free).sum(axis=1), np.float64)


def _log_width(rate: float, edges: Floats) -> Floats:
    """log(1 - exp(-rate * width)) of each part."""
    return np.log(-np.expm1(-rate * np.diff(edges)))


def log_count(last: Ranks) -> arb:
    """A ball around the log number of sequences of distinct ranks with the i-th in 0..last[i].

    At first a sum of float logarithms, each right to a relative 2^-41 and all non-negative, so that their sum is right
    to a relative 2^-40; at higher precision the product itself.
    """
    choices = (last - np.arange(len(last))).astype(np.uint64) + np.uint64(1)
    if ctx.prec <= START_PRECISION:
        total = float(np.log(choices.astype(np.float64)).sum())
        return arb(total, FLOAT_MARGIN * total)
    product = arb(1)
    for choice in choices.tolist():
        product *= choice
    return product.log()
