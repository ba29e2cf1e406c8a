"""Small score vectors, and all vectors that one user more, one user less or another user makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.resources import files
from itertools import product
from random import Random
from typing import Any

from discreet.mechanisms.base import Mechanism
from discreet.privacy import Sensitivity

Scores = tuple[Fraction, ...]


@dataclass(frozen=True)
class Family:
    """Score vectors of one length, with what one user can do to them.

    Attributes
    ----------
    scores
        The vectors.
    adjacency
        Which neighbours each of them has.
    sensitivity
        How far adding one user can move a score.
    random
        How many neighbours by random real changes each vector gets, beside all those by extreme changes.
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
        """The same vectors, for users who touch at most so many items each."""
        return replace(self, sensitivity=Sensitivity(self.sensitivity.down, self.sensitivity.up, most))

    def neighbours(self, scores: Scores) -> Iterator[Scores]:
        """Every neighbour of a vector: each score moved down by the most, not at all, or up by the most, and some more.

        Counts move by 0 or 1 when a user is added, by 0 or -1 when one is removed, and by -1, 0 or 1 when one is
        replaced by another: for counts these are all the neighbours there are.
        """
        seen = set()
        few = self.sensitivity.items
        every = self._extreme() if few is None else self.changes_by_users(few)
        for change in [*every, *self._random(scores)]:
            other = tuple(score + step for score, step in zip(scores, change, strict=True))
            if other != scores and other not in seen:
                seen.add(other)
                yield other

    def are_neighbours(self, scores: Scores, other: Scores) -> bool:
        """Whether one user makes one vector of the other."""
        changes = [after - before for before, after in zip(scores, other, strict=True)]
        if not any(all(low <= change <= high for change in changes) for low, high in self._sides()):
            return False
        return self.sensitivity.items is None or self._are_few(changes, self.sensitivity.items)

    def _are_few(self, changes: Sequence[Fraction], most: int) -> bool:
        """Whether users of so many items each can make all these changes, each of which one user or two can make."""
        moved = [change for change in changes if change]
        if self.adjacency == "add-remove":
            return len(moved) <= most
        down, up = self.sensitivity.down, self.sensitivity.up
        # Who comes moves a score by something in [-down, up], and who leaves by something in [-up, down].
        comes, leaves = ([-low <= change <= high for change in moved] for low, high in ((down, up), (up, down)))
        only_comes, only_leaves = len(moved) - sum(leaves), len(moved) - sum(comes)
        both = sum(not one and not other for one, other in zip(comes, leaves, strict=True))
        return max(only_comes, only_leaves) <= most and len(moved) + both <= 2 * most

    def _extreme(self) -> Iterator[Scores]:
        for steps in self._sides():
            yield from product(sorted({Fraction(0), *steps}), repeat=self.d)

    def changes_by_users(self, most: int) -> Iterator[Scores]:
        """Every change by users of so many items at most: each item by as much as can be, or not at all."""
        limit, nobody = self.sensitivity, (Fraction(0),) * self.d
        ends = sorted({Fraction(0), -limit.down, limit.up})
        users = [user for user in product(ends, repeat=self.d) if sum(part != 0 for part in user) <= most]
        swaps = [(nobody, user) for user in users] + [(user, nobody) for user in users]
        for gone, new in swaps if self.adjacency == "add-remove" else product(users, repeat=2):
            yield tuple(more - less for less, more in zip(gone, new, strict=True))

    def _random(self, scores: Scores) -> Iterator[Scores]:
        # Made-up data: the seed makes a report one that can be had again.
        generator = Random(repr((scores, self.adjacency, self.sensitivity)))  # noqa: S311
        sides = list(self._sides())
        for _ in range(self.random):
            low, high = generator.choice(sides)
            change = tuple(low + (high - low) * Fraction(generator.randrange(65), 64) for _ in scores)
            yield change if self.sensitivity.items is None else self._keep_few(change, generator)

    def _keep_few(self, change: Scores, generator: Random) -> Scores:
        """A change of as many items as each user may touch, which are the same for both where there are two."""
        kept = generator.sample(range(self.d), min(self.sensitivity.items or self.d, self.d))
        return tuple(step if item in kept else Fraction(0) for item, step in enumerate(change))

    def _sides(self) -> Iterator[tuple[Fraction, Fraction]]:
        """The ranges that a change lies in: for add/remove all scores move as an addition or all as a removal."""
        limit = self.sensitivity.under(self.adjacency)
        yield -limit.down, limit.up
        if self.adjacency == "add-remove" and limit.down != limit.up:
            yield -limit.up, limit.down


@dataclass(frozen=True)
class OnePair(Family):
    """One vector, and one neighbour of it in place of all."""

    neighbour: Scores = ()

    def neighbours(self, scores: Scores) -> Iterator[Scores]:
        yield self.neighbour


def whole(*scores: int) -> Scores:
    """Whole numbers as exact scores."""
    return tuple(Fraction(score) for score in scores)


_THREE = (whole(0, 0, 0), whole(1, 0, 0), whole(3, 1, 0))
_FOUR = (whole(0, 0, 0, 0), whole(1, 0, 0, 0), whole(2, 1, 0, 0), whole(2, 2, 1, 0), whole(4, 3, 1, 0))
_MANY = (*_FOUR, whole(1, 1, 0, 0), whole(1, 1, 1, 0), whole(3, 2, 1, 0), whole(6, 0, 0, 0), whole(5, 5, 0, 0))
_FIVE = (whole(0, 0, 0, 0, 0), whole(2, 1, 1, 0, 0), whole(4, 3, 2, 1, 0))
_SIX = (whole(1, 1, 1, 1, 1, 0), whole(3, 2, 2, 1, 1, 0))
_REAL = (tuple(map(Fraction, ("7/3", "1", "1/2", "0"))), tuple(map(Fraction, ("1/4", "1/8", "0", "0"))))
_UNEVEN = Sensitivity(down="1/3", up="3/4")


def families(deep: bool) -> list[Family]:
    """The families that are verified by default: counts and real scores, under both adjacencies."""
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
    """The families for a mechanism: for one that goes by how many items users touch, with each of some bounds."""
    if not mechanism.releases_values:
        return chosen
    return [family.with_few_items(most) for family in chosen for most in bounds]


# The pairs of neighbouring inputs that come closest to epsilon, one for each mechanism that `verify --all` covers.
#
# A check on inputs that reach 0.7 of epsilon would pass with a scale raised by a third. `discreet.evidence.search`
# found these pairs, once, by the definition, and wrote witnesses.json; each is kept with the share of epsilon that it
# reaches, and `verify` compares the two laws anew.

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
