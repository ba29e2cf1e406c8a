"""What a mechanism is to the rest of the library.

A mechanism is a small frozen value. It turns a tally, k, epsilon and a sensitivity into something `Prepared`, from
which ranks can be drawn, and which holds the formulas that sampler, analysis and verifier all read. Whatever else they
need to know of a mechanism stands here too, with a default that is safe: nobody asks which class it is of.
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
from discreet.mechanisms.noise import NOISES, check_noise, noise_of
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity


class Prepared(Protocol):
    """A mechanism applied to a tally."""

    def select(self, entropy: Entropy) -> Selection:
        """Returns what is selected, the ranks of a large part perhaps still to be drawn."""

    def draw(self, entropy: Entropy) -> Ranks:
        """Returns k ranks: in the released order where the mechanism has one, in any order otherwise."""


class Form(Enum):
    """How the probabilities of releases follow from the scores, and so which formula the analysis uses."""

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
        What files and the command line call it.
    ordered
        Whether a release says which item was drawn in which place.
    """

    name: ClassVar[str]
    ordered: ClassVar[bool]

    @abstractmethod
    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        """The mechanism on these scores; `sensitivity` is that of the adjacency in force."""

    @abstractmethod
    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        """The rho for which an epsilon release of k items is rho-zCDP."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What makes this value of the mechanism, in terms that JSON can hold."""

    @abstractmethod
    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        """What one unit of score of the worst item costs, in units of noise, where one unit of loss costs s."""

    @classmethod
    def variants(cls) -> Sequence[Mechanism]:
        """Every value of this mechanism that `verify --all` covers."""
        return [cls()]

    @classmethod
    def contenders(cls) -> Sequence[Mechanism]:
        """The values of this mechanism that are compared with others."""
        return [cls()]

    @property
    def label(self) -> str:
        """What the legend of a figure calls it."""
        return self.name

    @property
    def form(self) -> Form:
        """Which formula gives the probabilities of its releases."""
        return Form.UNKNOWN

    @property
    def is_drawable(self) -> bool:
        """Whether it has a sampler; one that has none can be compared with others, and that is all."""
        return True

    @property
    def releases_values(self) -> bool:
        """Whether the noisy scores themselves are private, and not only which of them are the largest.

        Its noise is then for how far all scores together move, so that it must be known how many of them one user can
        move; a release has the values, and one of all items costs what one of few does.
        """
        return False

    @property
    def may_release_fewer(self) -> bool:
        """Whether a release may have fewer than k items, so that only the goal "recall" can be asked of it."""
        return False

    def doubt(self, k: int, d: int | None) -> str | None:
        """Why it is hardly the right one for k of d items, in a line for people; None where it may well be."""
        return None

    @property
    def is_linear(self) -> bool:
        """Whether scores that move by x times the sensitivity cost x epsilon; if not, x is rounded up."""
        return False

    @property
    def needs_integrals(self) -> bool:
        """Whether exact probabilities are integrals over the noise; with a max-stable one they are sums."""
        return not noise_of(self).max_stable

    @property
    def longest_exact_order(self) -> int | None:
        """How many items at most have an order whose exact probability can be computed; None for any number."""
        return None


@dataclass(frozen=True, repr=False)
class NoisyItems(Mechanism):
    """A mechanism that adds noise to the items one by one, each with a k-th of epsilon, and releases them in order.

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
    """S = epsilon / (2 delta): how much log weight one unit of loss costs."""
    return epsilon / (2 * sensitivity.delta)
