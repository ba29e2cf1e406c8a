"""Small score vectors, and all their neighbours: the vectors that adding, removing or replacing one user makes of them.

For each mechanism of `verify --all` there is also a witness, the pair of neighbours known to come closest to epsilon. A
check on inputs that reach 0.7 of epsilon would pass with a scale that is a third too large. `tools/witness_search.py`
found the witnesses by the definition and wrote witnesses.json; `verify` computes both laws of a witness again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.resources import files
from itertools import product
from random import Random
from typing import Any

from discreet.mechanisms.base import Mechanism
from discreet.privacy import Sensitivity

Scores = tuple[Fraction, ...]
SHARP = 0.96
"""On a pair that reaches this share of epsilon, a scale 5% too large exceeds epsilon: 0.96 * 1.05 > 1."""


@dataclass(frozen=True)
class Family:
    """Score vectors of one length, with the changes that one user can make.

    Attributes
    ----------
    scores
        The vectors.
    adjacency
        The adjacency of their neighbours.
    sensitivity
        The range of the change of a score by one added user.
    random
        The number of neighbours by random real changes of each vector, in addition to those by extreme changes.
    """

    scores: tuple[Scores, ...]
    adjacency: str
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    random: int = 0

    @property
    def d(self) -> int:
        """The number of items."""
        return len(self.scores[0])

    def with_few_items(self, most: int) -> Family:
        """Return the same vectors for users who touch at most `most` items each."""
        return replace(self, sensitivity=Sensitivity(self.sensitivity.down, self.sensitivity.up, most))

    def neighbours(self, scores: Scores) -> Iterator[Scores]:
        """Yield every neighbour of a vector by extreme changes, and some by random ones.

        Counts move by 0 or 1 if a user is added, by 0 or -1 if one is removed, and by -1, 0 or 1 if one is replaced.
        For counts the extreme changes make all neighbours.
        """
        seen = set()
        few = self.sensitivity.items
        if few is None:
            # Every score moves down by the most, not at all, or up by the most.
            ends = (sorted({Fraction(0), *side}) for side in self._sides())
            every = [change for each in ends for change in product(each, repeat=self.d)]
        else:
            every = list(self.changes_by_users(few))
        for change in [*every, *self._random(scores)]:
            other = move(scores, change)
            if other != scores and other not in seen:
                seen.add(other)
                yield other

    def are_neighbours(self, scores: Scores, other: Scores) -> bool:
        """Return True if one user, or one swap, turns one vector into the other."""
        changes = [after - before for before, after in zip(scores, other, strict=True)]
        if not any(all(low <= change <= high for change in changes) for low, high in self._sides()):
            return False
        moved, most = [change for change in changes if change], self.sensitivity.items
        if most is None:
            return True
        # Users of at most `most` items each must be able to make all these changes together.
        if self.adjacency == "add-remove":
            return len(moved) <= most
        down, up = self.sensitivity.down, self.sensitivity.up
        # A user who comes moves a score by a number in [-down, up], and one who leaves by one in [-up, down].
        comes, leaves = ([-low <= change <= high for change in moved] for low, high in ((down, up), (up, down)))
        only_comes, only_leaves = len(moved) - sum(leaves), len(moved) - sum(comes)
        both = sum(not one and not other for one, other in zip(comes, leaves, strict=True))
        return max(only_comes, only_leaves) <= most and len(moved) + both <= 2 * most

    def changes_by_users(self, most: int) -> Iterator[Scores]:
        """Yield every extreme change by users of at most `most` items."""
        limit, nobody = self.sensitivity, (Fraction(0),) * self.d
        ends = sorted({Fraction(0), -limit.down, limit.up})
        users = [user for user in product(ends, repeat=self.d) if sum(part != 0 for part in user) <= most]
        swaps = [(nobody, user) for user in users] + [(user, nobody) for user in users]
        for gone, new in swaps if self.adjacency == "add-remove" else product(users, repeat=2):
            yield tuple(more - less for less, more in zip(gone, new, strict=True))

    def _random(self, scores: Scores) -> Iterator[Scores]:
        # The seed makes a report reproducible. The changes are not secret.
        generator = Random(repr((scores, self.adjacency, self.sensitivity)))  # noqa: S311
        sides = list(self._sides())
        for _ in range(self.random):
            low, high = generator.choice(sides)
            change = tuple(low + (high - low) * Fraction(generator.randrange(65), 64) for _ in scores)
            if self.sensitivity.items is not None:
                # A swap moves the same items for both users.
                kept = generator.sample(range(self.d), min(self.sensitivity.items or self.d, self.d))
                change = tuple(step if item in kept else Fraction(0) for item, step in enumerate(change))
            yield change

    def _sides(self) -> Iterator[tuple[Fraction, Fraction]]:
        """Yield the ranges of a change; under add-remove all scores change by an addition or all by a removal."""
        limit = self.sensitivity.under(self.adjacency)
        yield -limit.down, limit.up
        if self.adjacency == "add-remove" and limit.down != limit.up:
            yield -limit.up, limit.down


@dataclass(frozen=True)
class OnePair(Family):
    """One vector with a single neighbour."""

    neighbour: Scores = ()

    def neighbours(self, scores: Scores) -> Iterator[Scores]:
        yield self.neighbour


@dataclass(frozen=True)
class Witness:
    """Two inputs that differ by one added user, and the share of epsilon that they reach.

    Attributes
    ----------
    k
        The number of released items.
    epsilon
        The epsilon of the release.
    scores, neighbour
        The counts without the user and with the user.
    share
        The largest log ratio of their laws as a share of epsilon, rounded down to six digits.
    items
        The bound on the items of a user, for a mechanism that needs one.
    """

    k: int
    epsilon: Fraction
    scores: tuple[int, ...]
    neighbour: tuple[int, ...]
    share: float
    items: int | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Witness:
        """Return the witness that `to_dict` wrote."""
        scores, neighbour = tuple(data["scores"]), tuple(data["neighbour"])
        return cls(data["k"], Fraction(data["epsilon"]), scores, neighbour, data["share"], data.get("items"))

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as values of JSON."""
        data = vars(self) | {"epsilon": str(self.epsilon)}
        return {name: value for name, value in data.items() if value is not None}

    @property
    def is_sharp(self) -> bool:
        """True if a scale 5% too large shows on this pair."""
        return self.share >= SHARP

    def family(self) -> OnePair:
        """Return the pair as a family to verify on."""
        first, second = (tuple(map(Fraction, vector)) for vector in (self.scores, self.neighbour))
        return OnePair((first,), "add-remove", Sensitivity(items=self.items), neighbour=second)


WITNESSES: dict[str, Witness] = {
    mechanism: Witness.from_dict(found)
    for mechanism, found in json.loads(files("discreet.evidence").joinpath("witnesses.json").read_text("utf-8")).items()
}
"""The best pair that the search found, by the text of the mechanism."""


def best_witness(mechanism: Mechanism) -> Witness | None:
    """Return the best witness known for a mechanism, None for a gamma that was not searched."""
    return WITNESSES.get(repr(mechanism))


def move(scores: Scores, change: Scores) -> Scores:
    """Return the sum of scores and a change."""
    return tuple(score + step for score, step in zip(scores, change, strict=True))


def whole(*scores: int) -> Scores:
    """Return integers as exact scores."""
    return tuple(Fraction(score) for score in scores)


_THREE = (whole(0, 0, 0), whole(1, 0, 0), whole(3, 1, 0))
_FOUR = (whole(0, 0, 0, 0), whole(1, 0, 0, 0), whole(2, 1, 0, 0), whole(2, 2, 1, 0), whole(4, 3, 1, 0))
_MANY = (*_FOUR, whole(1, 1, 0, 0), whole(1, 1, 1, 0), whole(3, 2, 1, 0), whole(6, 0, 0, 0), whole(5, 5, 0, 0))
_FIVE = (whole(0, 0, 0, 0, 0), whole(2, 1, 1, 0, 0), whole(4, 3, 2, 1, 0))
_SIX = (whole(1, 1, 1, 1, 1, 0), whole(3, 2, 2, 1, 1, 0))
_REAL = (tuple(map(Fraction, ("7/3", "1", "1/2", "0"))), tuple(map(Fraction, ("1/4", "1/8", "0", "0"))))
_UNEVEN = Sensitivity(down="1/3", up="3/4")


def families(deep: bool) -> list[Family]:
    """Return the default families: counts and real scores, under both adjacencies."""
    few = [
        Family(_THREE, "add-remove"),
        Family(_FOUR, "add-remove"),
        Family(_FOUR[1:3], "swap"),
        Family(_SIX, "add-remove"),
        Family(_REAL[:1], "add-remove", _UNEVEN, random=8),
    ]
    many = [
        Family(_THREE, "swap"),
        Family(_MANY, "add-remove", random=4),
        Family(_MANY[:6], "swap"),
        Family(_FIVE, "add-remove"),
        Family(_REAL, "add-remove", _UNEVEN, random=32),
        Family(_REAL[:1], "swap", _UNEVEN, random=16),
    ]
    return [*few, *many] if deep else few


def bound_users(mechanism: Mechanism, chosen: list[Family], bounds: tuple[int, ...]) -> list[Family]:
    """Return the families with each bound on the items of a user, for a mechanism that needs one."""
    if not mechanism.releases_values:
        return chosen
    return [family.with_few_items(most) for family in chosen for most in bounds]
