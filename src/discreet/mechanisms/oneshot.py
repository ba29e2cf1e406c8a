"""One-shot: every item gets its score times s/k plus noise once, and the k largest values are released in order.

With k = 1 this is the exponential mechanism (Gumbel), permute-and-flip (exponential noise) and report-noisy-max
(Laplace). The order is private too, because (log density)' >= -1 for every noise (docs/proofs.md, section 2.2). The
draw is a race (section 9.2) over streams: the k best items one by one, the others by distance below the k-th in units
of noise, and all that are hopelessly far below in one stream. Their number grows with k and log d, not with d.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log
from typing import ClassVar

import numpy as np
from flint import arb

from discreet.exact.arrays import Floats, Ranks, sorted_distinct
from discreet.exact.ball import LARGEST, ball, bound_above
from discreet.exact.entropy import Entropy
from discreet.exact.race import sample_best
from discreet.mechanisms.base import Form, NoisyItems, scale
from discreet.mechanisms.noise import NOISES, Noise
from discreet.mechanisms.tally import Remaining, Selection, Tally, to_float
from discreet.privacy import Sensitivity


@dataclass(frozen=True, repr=False)
class OneShot(NoisyItems):
    """A mechanism that adds noise to every score once and releases the k largest, in order.

    Parameters
    ----------
    noise
        The name of a noise.

    Examples
    --------
    >>> OneShot()
    OneShot(noise='exponential')
    """

    name: ClassVar[str] = "one-shot"

    noise: str = "exponential"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        return Prepared(tally, k, self.unit_cost(scale(epsilon, sensitivity), k), NOISES[self.noise])

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        # With a max-stable noise it is k rounds of epsilon / k (docs/proofs.md, 6.2); with others it is one round.
        noise = NOISES[self.noise]
        return k * noise.zcdp(epsilon / k) if noise.max_stable else noise.zcdp(epsilon)

    @property
    def label(self) -> str:
        return f"{self.name}, {self.noise}"

    @property
    def form(self) -> Form:
        return Form.UNKNOWN if NOISES[self.noise].distribution is None else Form.RACE

    @property
    def longest_exact_order(self) -> int | None:
        # The probability of an order of two is one integral over the second largest value; longer orders need several.
        return 2 if self.needs_integrals else None


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """One-shot on a tally, as the streams of a race; `weight` is the value of one unit of score in units of noise."""

    tally: Tally | Remaining
    k: int
    weight: Fraction
    noise: Noise

    def select(self, entropy: Entropy) -> Selection:
        return Selection(self.draw(entropy))

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw the ranks of the k largest values, largest first."""
        return np.array(sample_best(self, self.k, self.noise, entropy), np.int64)

    def excess(self, rank: int) -> Fraction:
        """Return the distance of the value at a rank below that at rank k-1, before noise."""
        return self.weight * self.tally.gap(self.k - 1, rank)

    def gain(self, element: int) -> arb:
        return -ball(self.excess(element))

    def gain_float(self, elements: Ranks, above: int | None = None) -> Floats:
        edge = np.full_like(elements, self.k - 1 if above is None else above)
        up, down = self.tally.gaps(elements, edge, self.weight), self.tally.gaps(edge, elements, self.weight)
        return _with_infinity(up) - _with_infinity(down)

    @cached_property
    def start(self) -> Ranks:
        d, k = self.tally.d, self.k
        # Beyond this depth below the k-th, the probability that any of the d items wins is about e^-10.
        depth = int(log(d) + log(k) + 10.0)
        unit = min(to_float(1 / self.weight), 1e300)
        steps = self.tally.within(np.full(depth, k - 1), unit * np.arange(1.0, depth + 1.0, dtype=np.float64))
        cuts = sorted_distinct(steps) + 1
        return np.concatenate([np.arange(min(k + 1, d)), cuts[(cuts > k) & (cuts < d)]]).astype(np.int64)

    @cached_property
    def cells(self) -> Ranks:
        return np.append(self.start[1:] - 1, self.tally.d - 1) - self.start + 1

    @cached_property
    def bound(self) -> Floats:
        return bound_above(np.maximum(self.gain_float(self.start), -LARGEST))


def _with_infinity(gaps: Floats) -> Floats:
    """Return gaps with the largest float, which stands for all beyond, replaced by infinity."""
    return np.where(gaps < LARGEST, gaps, np.inf)
