"""The shape that all mechanisms share.

A mechanism is a small frozen value. It turns a tally, k, epsilon and a sensitivity into something `Prepared`, from
which ranks can be drawn, and which holds the formulas that sampler, analysis and verifier all read.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Protocol

from discreet.exact.arrays import Ranks
from discreet.exact.entropy import Entropy
from discreet.privacy import Sensitivity
from discreet.selection import Selection
from discreet.tally import Tally


class Prepared(Protocol):
    """A mechanism applied to a tally."""

    def select(self, entropy: Entropy) -> Selection:
        """Returns what is selected, the ranks of a large part perhaps still to be drawn."""

    def draw(self, entropy: Entropy) -> Ranks:
        """Returns k ranks: in the released order where the mechanism has one, in any order otherwise."""


class Mechanism(Protocol):
    """A way to select k of d items with epsilon-differential privacy."""

    name: ClassVar[str]
    ordered: ClassVar[bool]

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        """The mechanism on these scores; `sensitivity` is that of the adjacency in force."""

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        """The rho for which an epsilon release of k items is rho-zCDP."""

    def parameters(self) -> dict[str, Any]:
        """What makes this value of the mechanism, in terms that JSON can hold."""


def scale(epsilon: Fraction, sensitivity: Sensitivity) -> Fraction:
    """S = epsilon / (2 delta): how much log weight one unit of loss costs."""
    return epsilon / (2 * sensitivity.delta)
