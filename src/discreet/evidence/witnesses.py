"""The pairs of neighbouring inputs that come closest to epsilon, one for each mechanism that `verify --all` covers.

A check on inputs that reach 0.7 of epsilon would pass with a scale raised by a third. `discreet.evidence.search` found
these pairs, once, by the definition; each is kept with the share of epsilon that it reaches, and `verify` compares the
two laws anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.evidence.neighbours import OnePair
from discreet.mechanisms.base import Mechanism

SHARP = 0.96
"""From this share of epsilon on, a scale that is 5% off is more than epsilon: 0.96 * 1.05 > 1."""


@dataclass(frozen=True)
class Witness:
    """Two inputs that differ by one added user, and how far apart they are.

    Attributes
    ----------
    k
        How many items are released.
    epsilon
        The epsilon at which they come closest to it.
    scores, neighbour
        The counts without the user and with it.
    share
        The largest log ratio of their laws as a share of epsilon, rounded down to six digits.
    """

    k: int
    epsilon: Fraction
    scores: tuple[int, ...]
    neighbour: tuple[int, ...]
    share: float

    def __repr__(self) -> str:
        return f'Witness({self.k}, Fraction("{self.epsilon}"), {self.scores}, {self.neighbour}, {self.share})'

    @property
    def is_sharp(self) -> bool:
        """Whether a scale that is 5% off shows on this pair."""
        return self.share >= SHARP

    def family(self) -> OnePair:
        """The pair, as inputs to verify on."""
        first, second = (tuple(map(Fraction, vector)) for vector in (self.scores, self.neighbour))
        return OnePair((first,), "add-remove", neighbour=second)


def best_witness(mechanism: Mechanism) -> Witness | None:
    """The best witness known for a mechanism, None for a gamma that was not searched."""
    return WITNESSES.get(repr(mechanism))


WITNESSES: dict[str, Witness] = {
    "Canonical(gamma='0', noise='gumbel')": Witness(
        5, Fraction("4"), (2, 2, 3, 1, 2, 6, 1, 1, 3), (2, 2, 3, 2, 2, 7, 1, 2, 3), 0.999999
    ),
    "Canonical(gamma='0', noise='exponential')": Witness(
        7, Fraction("4"), (1, 1, 2, 1, 1, 1, 4, 0, 0, 0), (1, 1, 2, 1, 1, 1, 5, 0, 1, 1), 0.999999
    ),
    "Canonical(gamma='0', noise='laplace')": Witness(3, Fraction("2"), (5, 6, 0, 1), (5, 6, 1, 2), 0.99963),
    "Canonical(gamma='0', noise='logistic')": Witness(2, Fraction("4"), (0, 0, 4), (1, 1, 4), 0.999968),
    "Canonical(gamma='0', noise='half-logistic')": Witness(2, Fraction("4"), (5, 2, 1), (5, 3, 2), 0.999967),
    "Canonical(gamma='1/3', noise='gumbel')": Witness(
        6, Fraction("1/2"), (1, 1, 1, 1, 24, 0, 0, 0, 0, 1), (2, 2, 2, 2, 24, 0, 1, 0, 0, 2), 0.982068
    ),
    "Canonical(gamma='1/3', noise='exponential')": Witness(
        5, Fraction("1/2"), (1, 1, 1, 1, 24, 0, 0, 0, 0, 0), (2, 2, 2, 2, 24, 1, 0, 0, 0, 0), 0.984778
    ),
    "Canonical(gamma='1/3', noise='laplace')": Witness(
        6, Fraction("1/2"), (1, 0, 1, 24, 1, 1, 1, 0, 1, 0), (1, 1, 1, 25, 1, 1, 1, 1, 1, 1), 0.982611
    ),
    "Canonical(gamma='1/3', noise='logistic')": Witness(
        5, Fraction("1/2"), (24, 2, 2, 1, 2, 2, 1, 1, 1), (24, 3, 3, 2, 3, 3, 1, 1, 1), 0.973068
    ),
    "Canonical(gamma='1/3', noise='half-logistic')": Witness(
        5, Fraction("1"), (0, 12, 0, 0, 0, 0, 0, 0, 0, 0), (0, 12, 0, 1, 1, 1, 1, 0, 1, 0), 0.984112
    ),
    "Canonical(gamma='1/2', noise='gumbel')": Witness(
        5, Fraction("1/10"), (2, 2, 2, 2, 2, 1, 1, 1, 1, 1), (3, 3, 2, 3, 3, 2, 1, 1, 1, 1), 0.977441
    ),
    "Canonical(gamma='1/2', noise='exponential')": Witness(
        6, Fraction("1/10"), (3, 3, 3, 0, 4, 0, 0, 3, 0, 3), (4, 3, 4, 0, 5, 0, 1, 4, 0, 4), 0.977228
    ),
    "Canonical(gamma='1/2', noise='laplace')": Witness(
        5, Fraction("1/10"), (2, 2, 0, 2, 2, 0, 0, 2, 0, 0), (3, 3, 0, 2, 3, 0, 1, 3, 0, 0), 0.98142
    ),
    "Canonical(gamma='1/2', noise='logistic')": Witness(
        5, Fraction("1/10"), (1, 1, 4, 0, 1, 0, 0, 1, 0, 0), (1, 2, 5, 0, 2, 1, 0, 2, 0, 0), 0.971727
    ),
    "Canonical(gamma='1/2', noise='half-logistic')": Witness(
        4, Fraction("1/10"), (1, 0, 1, 1, 1, 0, 0, 0, 0, 0), (2, 0, 2, 2, 1, 0, 0, 0, 1, 0), 0.97296
    ),
    "Canonical(gamma='3/4', noise='gumbel')": Witness(
        5, Fraction("1/10"), (3, 3, 3, 0, 0, 2, 1, 3, 0, 0), (3, 3, 3, 1, 1, 3, 1, 3, 1, 1), 0.978316
    ),
    "Canonical(gamma='3/4', noise='exponential')": Witness(
        5, Fraction("1/10"), (3, 3, 2, 3, 3, 1, 1, 1, 1, 1), (4, 4, 2, 4, 4, 2, 1, 1, 1, 1), 0.982361
    ),
    "Canonical(gamma='3/4', noise='laplace')": Witness(
        5, Fraction("1/10"), (1, 1, 1, 1, 1, 0, 0, 0, 0, 0), (2, 2, 2, 1, 2, 0, 0, 0, 1, 0), 0.982482
    ),
    "Canonical(gamma='3/4', noise='logistic')": Witness(
        5, Fraction("1/10"), (0, 4, 4, 4, 4, 0, 0, 0, 4, 0), (0, 4, 5, 5, 5, 0, 0, 1, 5, 0), 0.974099
    ),
    "Canonical(gamma='3/4', noise='half-logistic')": Witness(
        5, Fraction("1/10"), (0, 0, 1, 0, 0, 1, 1, 1, 0, 1), (0, 1, 2, 0, 0, 2, 1, 2, 0, 2), 0.978409
    ),
    "Canonical(gamma='1', noise='gumbel')": Witness(1, Fraction("4"), (3, 2, 1, 0, 0), (4, 3, 1, 1, 0), 0.999917),
    "Canonical(gamma='1', noise='exponential')": Witness(1, Fraction("4"), (6, 1, 1, 0), (7, 1, 2, 1), 1.0),
    "Canonical(gamma='1', noise='laplace')": Witness(1, Fraction("4"), (1, 1, 6, 1, 0), (1, 2, 7, 2, 1), 0.999263),
    "Canonical(gamma='1', noise='logistic')": Witness(1, Fraction("4"), (2, 2, 1, 5, 5), (2, 3, 2, 5, 5), 0.999412),
    "Canonical(gamma='1', noise='half-logistic')": Witness(
        1, Fraction("2"), (2, 4, 1, 9, 0), (2, 4, 2, 9, 0), 0.999999
    ),
    "Canonical(gamma='1/2', noise='gumbel', ceil=True)": Witness(
        5, Fraction("1/10"), (3, 3, 3, 3, 0, 0, 3, 1, 1, 1), (4, 4, 4, 4, 0, 0, 3, 1, 1, 2), 0.97665
    ),
    "Canonical(gamma='1/2', noise='exponential', ceil=True)": Witness(
        4, Fraction("1/10"), (1, 0, 1, 1, 1, 0, 0, 0, 0, 0), (2, 0, 1, 2, 2, 1, 0, 0, 0, 0), 0.977819
    ),
    "Canonical(gamma='1/2', noise='laplace', ceil=True)": Witness(
        5, Fraction("1/4"), (1, 1, 1, 1, 0, 0, 0, 4, 0, 0), (1, 2, 2, 2, 0, 0, 0, 5, 1, 0), 0.977835
    ),
    "Canonical(gamma='1/2', noise='logistic', ceil=True)": Witness(
        5, Fraction("1/10"), (1, 1, 0, 1, 0, 0, 1, 0, 0, 1), (2, 2, 0, 1, 1, 0, 2, 0, 0, 2), 0.973391
    ),
    "Canonical(gamma='1/2', noise='half-logistic', ceil=True)": Witness(
        6, Fraction("1/10"), (1, 1, 0, 1, 1, 1, 1, 0, 0, 0), (2, 2, 0, 1, 2, 2, 2, 0, 0, 1), 0.97296
    ),
    "OneShot(noise='gumbel')": Witness(2, Fraction("4"), (1, 2, 1, 5, 0, 1), (2, 2, 2, 6, 0, 2), 0.999445),
    "OneShot(noise='exponential')": Witness(2, Fraction("1/4"), (2, 2, 1, 0, 2), (2, 2, 2, 0, 3), 0.999694),
    "OneShot(noise='laplace')": Witness(2, Fraction("4"), (7, 3, 3, 0, 0), (7, 3, 3, 1, 1), 0.999166),
    "OneShot(noise='logistic')": Witness(2, Fraction("4"), (10, 5, 0, 0, 11), (10, 5, 1, 1, 11), 0.999845),
    "OneShot(noise='half-logistic')": Witness(2, Fraction("4"), (1, 5, 0), (1, 6, 0), 0.999957),
    "Peeling(noise='gumbel')": Witness(2, Fraction("4"), (0, 8, 1, 1, 1, 0, 0), (0, 9, 1, 1, 2, 1, 1), 0.999999),
    "Peeling(noise='exponential')": Witness(2, Fraction("2"), (2, 7, 0), (2, 8, 0), 0.999903),
    "Peeling(noise='laplace')": Witness(2, Fraction("2"), (10, 1, 1, 6), (11, 1, 1, 7), 0.999128),
    "Peeling(noise='logistic')": Witness(2, Fraction("4"), (0, 5, 0, 6), (0, 6, 0, 7), 0.999815),
    "Peeling(noise='half-logistic')": Witness(2, Fraction("4"), (1, 1, 5, 0, 0), (1, 1, 5, 1, 1), 0.999871),
    "Joint()": Witness(
        2,
        Fraction("1/10"),
        (1, 1, 1, 1, 1, 2, 5, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1),
        (2, 2, 2, 2, 2, 3, 5, 2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 0, 2, 2, 2, 2, 2),
        0.960495,
    ),
}
