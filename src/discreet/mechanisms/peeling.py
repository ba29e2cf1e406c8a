"""Peeling: k rounds at epsilon / k, each of which releases one item and removes it (docs/proofs.md, section 3).

With a max-stable noise (Gumbel's) the k rounds have the distribution of one-shot, order included, because the remaining
values are distributed like fresh ones. With other noises the rounds are drawn one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.exact.arrays import Ranks
from discreet.exact.entropy import Entropy
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Form, NoisyItems, scale
from discreet.mechanisms.noise import NOISES, Noise
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity


@dataclass(frozen=True, repr=False)
class Peeling(NoisyItems):
    """A mechanism that releases one item at a time, k times, each at epsilon / k, in order.

    Parameters
    ----------
    noise
        The name of a noise.

    Examples
    --------
    >>> Peeling()
    Peeling(noise='gumbel')
    """

    name: ClassVar[str] = "peeling"

    noise: str = "gumbel"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        return Prepared(tally, k, self.unit_cost(scale(epsilon, sensitivity), k), NOISES[self.noise])

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        # k rounds of epsilon/k
        return k * NOISES[self.noise].zcdp(epsilon / k)

    @property
    def label(self) -> str:
        return f"{self.name}, {self.noise}" if self.needs_integrals else self.name

    @property
    def form(self) -> Form:
        return Form.UNKNOWN if self.needs_integrals else Form.RACE


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """Peeling on a tally; `weight` is the value of one unit of score in units of noise."""

    tally: Tally
    k: int
    weight: Fraction
    noise: Noise

    def select(self, entropy: Entropy) -> Selection:
        return Selection(self.draw(entropy))

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw the released ranks, in the order of the rounds."""
        if self.noise.max_stable:
            return oneshot.Prepared(self.tally, self.k, self.weight, self.noise).draw(entropy)
        gone = np.empty(0, np.int64)
        order = []
        for _ in range(self.k):
            left = self.tally.without(gone)
            drawn = oneshot.Prepared(left, 1, self.weight, self.noise).draw(entropy)
            rank = int(left.original(drawn)[0])
            gone = np.insert(gone, np.searchsorted(gone, rank), rank)
            order.append(rank)
        return np.array(order, np.int64)
