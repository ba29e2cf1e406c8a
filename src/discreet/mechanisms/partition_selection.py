"""The interface of partition selection: find items that nobody listed, with (epsilon, delta)-differential privacy.

A method adds up a whole number for each item, the sum of what the item's users count, and keeps the item with a
probability that depends on that sum alone, independently of all others. `discovery` counts users and adds Laplace
noise; `weighted_discovery` adds up weights and Gaussian noise. Other code calls this interface and knows no method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from flint import arb

from discreet.exact.arrays import Ranks
from discreet.exact.ball import START_PRECISION, ball, precision
from discreet.exact.entropy import Entropy
from discreet.language import ENGLISH, Language

if TYPE_CHECKING:
    from discreet.mechanisms.adaptive_discovery import SharedItems

HARDLY = Fraction(1, 10)
"""An item kept with a smaller probability is called hardly seen; one left out with a smaller one, always seen."""

CHANCES = Fraction(5, 100), Fraction(50, 100), Fraction(95, 100)
"""The probabilities of finding an item for which a plan says how many people it needs."""

_LAST_PRECISION = 1 << 12
"""The bits at which two numbers that still cannot be told apart count as equal."""


@dataclass(frozen=True)
class PartitionSelection(ABC):
    """The parameters of partition selection; all are public, and fixed before any data are read.

    `make_discovery` validates the input of a caller.

    Attributes
    ----------
    epsilon, delta
        The cost of finding the items, in all groups together.
    max_items_per_user
        The number of items of a user that count, in each group.
    adjacency
        "add-remove" or "swap".
    max_groups_per_user
        The number of groups a user may be in; 1 without groups, or if every user is in one.
    """

    epsilon: Fraction
    delta: Fraction
    max_items_per_user: int
    adjacency: str = "add-remove"
    max_groups_per_user: int = 1

    method: ClassVar[str]
    """The name of the method for callers."""
    largest_threshold: ClassVar[int]
    """A larger threshold is refused, because its sums would not fit 64 bits."""

    @cached_property
    @abstractmethod
    def threshold(self) -> int:
        """The approximate number of people that an item needs to be found."""

    @property
    @abstractmethod
    def zcdp(self) -> Fraction:
        """The rho of delta-approximate zero-concentrated differential privacy, in all groups together."""

    @property
    def zcdp_delta(self) -> Fraction:
        """The delta of that zero-concentrated differential privacy: what the items of one user alone cost."""
        return self.delta

    def compose_zcdp(self, selection: Fraction) -> Fraction:
        """Return the rho of finding the items and selecting among them, given that of the selection."""
        return self.zcdp + selection

    @property
    def alternative(self) -> SharedItems | None:
        """The method that is used instead if `prefers_alternative`; None if there is no choice."""
        return None

    def prefers_alternative(self, hidden: int, noise: Callable[[Fraction], int]) -> bool:
        """Return True if the choice is for the alternative.

        Parameters
        ----------
        hidden
            The number that `UnlistedSnapshot.count_hidden` returns.
        noise
            Draws n with probability proportional to exp(-rate |n|) for a given rate.
        """
        return False

    @abstractmethod
    def keep_probability(self, total: int) -> arb:
        """Return a ball around the probability of keeping an item whose users add up to `total`."""

    @abstractmethod
    def weigh(self, items_per_user: int) -> int:
        """Return what a user of whom so many items count, in all groups together, adds to the sum of each of them."""

    def people_needed(self, probability: Fraction, items_per_user: int = 1) -> int:
        """Return the least number of people on an item that is kept with at least this probability.

        Parameters
        ----------
        probability
            Above 0 and below 1.
        items_per_user
            The number of items of each of these people that count, in all groups together.
        """
        weight = self.weigh(items_per_user)
        return find_people_needed(lambda people: self.keep_probability(people * weight), probability)

    @property
    def most_items(self) -> int:
        """The most items of one user that count, in all groups together."""
        return self.max_items_per_user * self.max_groups_per_user

    @abstractmethod
    def sample_kept(self, entropy: Entropy, totals: Ranks, items: Ranks) -> Ranks:
        """Draw the number of items kept in each run, with the distribution of one independent noise per item.

        Parameters
        ----------
        entropy
            The source of randomness.
        totals
            The sum of what the users of each item of a run count. Items of sum 0 are never kept.
        items
            The number of items of each run. Given the number kept, every subset of that size is equally likely.
        """

    def sample_kept_ranks(self, entropy: Entropy, totals: Ranks, items: Ranks) -> Ranks:
        """Draw the kept items, as ranks in ascending order, if the runs follow each other.

        The parameters are those of `sample_kept`; the kept items of a run are a uniform subset.
        """
        kept = self.sample_kept(entropy, totals, items)
        first = np.cumsum(items) - items
        some = np.flatnonzero((kept > 0) & (kept < items))
        sizes, counts = items[some].tolist(), kept[some].tolist()
        drawn = [
            at + entropy.subset(count, size - 1)
            for at, size, count in zip(first[some].tolist(), sizes, counts, strict=True)
        ]
        # Runs that are kept whole need no bits, and most of hundreds of thousands of weight sums have one item.
        whole = np.flatnonzero(kept == items)
        within = np.arange(items[whole].sum()) - np.repeat(np.cumsum(items[whole]) - items[whole], items[whole])
        return np.sort(np.concatenate([np.repeat(first[whole], items[whole]) + within, *drawn]))

    @abstractmethod
    def share_of_group(self) -> Self:
        """Return the discovery of one group, with the cost to that group alone."""

    def to_dict(self) -> dict[str, Any]:
        """Return the discovery as JSON values; delta and adjacency are those of the guarantee."""
        groups = {} if self.max_groups_per_user == 1 else {"max_groups_per_user": self.max_groups_per_user}
        return {"epsilon": str(self.epsilon), "max_items_per_user": self.max_items_per_user, **groups}

    @abstractmethod
    def describe_threshold(self, language: Language = ENGLISH) -> str:
        """Return a sentence or two on the meaning of the threshold for an item."""

    def describe_release(self, chosen: str | None, language: Language = ENGLISH) -> str:
        """Return what the threshold meant for the items of a release, by the method that `Release.chosen` names."""
        return self.describe_threshold(language)

    def describe_people(self) -> str:
        """Return a sentence on the number of people that an item needs to be found with each of CHANCES."""
        few, half, many = (f"{people:,}" for people in self.list_people(1))
        found = f"An item is found with a chance of 5% from {few} people on, 50% from {half} and 95% from {many}"
        if self.weigh(self.most_items) == self.weigh(1):
            return f"{found}."
        few, half, many = (f"{people:,}" for people in self.list_people(self.most_items))
        busy = f"from {few}, {half} and {many} if each of them touched {self.most_items:,} items"
        return f"{found} if they touched nothing else, and {busy}."

    def list_people(self, items_per_user: int) -> list[int]:
        """Return the number of people that each of CHANCES needs, as `people_needed` does."""
        return [self.people_needed(chance, items_per_user) for chance in CHANCES]

    def describe_noise(self, language: Language = ENGLISH) -> str:
        """Return a sentence that names the noise, or an empty text where statements have never named it."""
        return ""

    @property
    def _sides(self) -> int:
        """The number of users whose items differ between neighbouring datasets."""
        return 2 if self.adjacency == "swap" else 1


def find_people_needed(keep_probability: Callable[[int], arb], probability: Fraction) -> int:
    """Return the least number of people on an item that is kept with at least a probability."""

    def is_enough(people: int) -> bool:
        bits = START_PRECISION
        while bits <= _LAST_PRECISION:
            with precision(bits):
                kept, wanted = keep_probability(people), ball(probability)
                if kept < wanted:
                    return False
                if kept >= wanted:
                    return True
            bits *= 2
        return True

    many = 1
    while not is_enough(many):
        many *= 2
    few = many // 2
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return many


def about(people: int) -> int:
    """Return a number of people rounded to two digits."""
    return round(people, 2 - len(str(people)))
