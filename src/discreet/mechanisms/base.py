"""The interface of a mechanism: the only thing that other code knows of it.

A mechanism is a frozen value. Given a tally, k, epsilon and a sensitivity it returns a `Prepared`, which draws ranks
and holds the formulas that sampler, analysis and verifier share. Other code never checks a mechanism's class; it calls
the interface below, whose defaults are safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

from discreet.exact.arrays import Ranks
from discreet.exact.entropy import Entropy
from discreet.language import ENGLISH, Language
from discreet.mechanisms.noise import NOISES, check_noise, noise_of
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity


class Prepared(Protocol):
    """A mechanism applied to a tally."""

    def select(self, entropy: Entropy) -> Selection:
        """Draw a selection; the ranks of a large part may still have to be drawn."""

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw k ranks: in the released order if the mechanism has one, in any order otherwise."""


class Form(Enum):
    """The form of the distribution of releases, by which the analysis chooses its formula."""

    CLASSES = "classes of equally likely sets, each with a weight"
    RACE = "the k largest of all noisy values, by an integral"
    LOSSES = "a weight that depends on a loss, by counting what has which loss"
    CANDIDATES = "a choice between other mechanisms, each with a formula of its own"
    UNKNOWN = "no formula: probabilities are estimated from draws"


class Mechanism(ABC):
    """A way to select k of d items with epsilon-differential privacy.

    Attributes
    ----------
    name
        The name in files and on the command line.
    ordered
        True if a release contains the order in which its items were drawn.
    releases_values
        True if the noisy scores themselves are private, not only the identity of the largest. The noise is then scaled
        to the L1 sensitivity of all scores, so the number of scores that one user can move must be known. A release
        contains the values, and releasing all items costs as much as releasing few.
    may_release_fewer
        True if a release may have fewer than k items; only the goal "recall" applies to it.
    """

    name: ClassVar[str]
    ordered: ClassVar[bool]
    releases_values: ClassVar[bool] = False
    may_release_fewer: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        """Return the mechanism on these scores; `sensitivity` is that of the adjacency in force."""

    @abstractmethod
    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        """Return the rho for which an epsilon-private release of k items is rho-zCDP."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of this mechanism as JSON values."""

    @abstractmethod
    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        """Return the worth, in units of noise, of one unit of score of the worst item, if a unit of loss is worth s."""

    @classmethod
    def variants(cls) -> Sequence[Mechanism]:
        """Return the mechanisms of this class that `verify --all` covers."""
        return [cls()]

    @classmethod
    def contenders(cls) -> Sequence[Mechanism]:
        """Return the mechanisms of this class that take part in comparisons."""
        return [cls()]

    @property
    def label(self) -> str:
        """The name in the legend of a figure."""
        return self.name

    @property
    def form(self) -> Form:
        """The form of the distribution of releases."""
        return Form.UNKNOWN

    @property
    def is_drawable(self) -> bool:
        """True if the mechanism has a sampler; without one it only takes part in comparisons."""
        return True

    def doubt(self, k: int, d: int | None, language: Language = ENGLISH) -> str | None:
        """Return a warning if the mechanism is a poor choice for k of d items, else None."""
        return None

    @property
    def is_linear(self) -> bool:
        """True if scores that move by x times the sensitivity cost x epsilon; otherwise x is rounded up."""
        return False

    @property
    def needs_integrals(self) -> bool:
        """True if exact probabilities are integrals over the noise; with a max-stable noise they are sums."""
        return not noise_of(self).max_stable

    @property
    def longest_exact_order(self) -> int | None:
        """The longest order whose exact probability can be computed; None for any length."""
        return None


@dataclass(frozen=True, repr=False)
class NoisyItems(Mechanism):
    """A mechanism that adds noise to each item at epsilon / k and releases the items in order.

    Attributes
    ----------
    noise
        The name of a noise.
    """

    ordered: ClassVar[bool] = True

    noise: str

    def __post_init__(self) -> None:
        check_noise(self.noise)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(noise='{self.noise}')"

    def parameters(self) -> dict[str, Any]:
        return {"noise": self.noise}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        return s / k

    @classmethod
    def variants(cls) -> list[Self]:
        return [cls(noise) for noise in NOISES]

    @property
    def is_linear(self) -> bool:
        return True


def scale(epsilon: Fraction, sensitivity: Sensitivity) -> Fraction:
    """Return s = epsilon / (2 delta), the log weight that one unit of loss costs (docs/proofs.md, section 1.1)."""
    return epsilon / (2 * sensitivity.delta)
