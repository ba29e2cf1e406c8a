"""The pairs of neighbouring inputs that come closest to epsilon, one for each mechanism that `verify --all` covers.

A check on inputs that reach 0.7 of epsilon would pass with a scale raised by a third. `discreet.evidence.search` found
these pairs, once, by the definition, and wrote witnesses.json; each is kept with the share of epsilon that it reaches,
and `verify` compares the two laws anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any

from discreet.evidence.neighbours import OnePair
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Sensitivity

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
    items
        How many items a user touches at most, for a mechanism that goes by that.
    """

    k: int
    epsilon: Fraction
    scores: tuple[int, ...]
    neighbour: tuple[int, ...]
    share: float
    items: int | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Witness:
        """The witness that `to_dict` wrote."""
        scores, neighbour = tuple(data["scores"]), tuple(data["neighbour"])
        return cls(data["k"], Fraction(data["epsilon"]), scores, neighbour, data["share"], data.get("items"))

    def to_dict(self) -> dict[str, Any]:
        """The witness in terms that JSON can hold."""
        data = vars(self) | {"epsilon": str(self.epsilon)}
        return {name: value for name, value in data.items() if value is not None}

    @property
    def is_sharp(self) -> bool:
        """Whether a scale that is 5% off shows on this pair."""
        return self.share >= SHARP

    def family(self) -> OnePair:
        """The pair, as inputs to verify on."""
        first, second = (tuple(map(Fraction, vector)) for vector in (self.scores, self.neighbour))
        return OnePair((first,), "add-remove", Sensitivity(items=self.items), neighbour=second)


def best_witness(mechanism: Mechanism) -> Witness | None:
    """The best witness known for a mechanism, None for a gamma that was not searched."""
    return WITNESSES.get(repr(mechanism))


def _read_witnesses() -> dict[str, Witness]:
    kept = json.loads(files("discreet.evidence").joinpath("witnesses.json").read_text(encoding="utf-8"))
    return {mechanism: Witness.from_dict(found) for mechanism, found in kept.items()}


WITNESSES: dict[str, Witness] = _read_witnesses()
"""The best pair that the search found, by the text of the mechanism."""
