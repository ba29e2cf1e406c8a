"""Partition selection that chooses privately between weights and one noisy number of users for each item.

If most users have few items, a threshold on noisy numbers of users needs fewer users than weights and a selection,
because all of epsilon goes into one noise. Of each user one item counts for that, the one with the least hash: its
first item. That loses an item of users who mostly have another first item. Let f be the number of users of whom an item
is the first, and g the number of those for whom it counts without being the first: the item hides g - 2 f users. First
items are taken if H + N < m, with H the most users that an item hides, at least 0, discrete Laplace noise N, and a
margin m of MARGIN scales of that noise. Adding a user moves H by at most 2, because it raises one f by 1 and other g by
1; replacing one moves H by at most 3.

`SingleItems` keeps an item with n >= 1 users if n + Z, rounded, is at least T, with Laplace noise Z; of the kept items
it releases those with the k largest n + Z. That is a function of the noisy numbers at or above T, which are
(epsilon, delta)-private (docs/proofs.md, section 14). Both methods have what the choice leaves of epsilon, and all of
delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from flint import arb

from discreet.exact.arrays import Ranks
from discreet.exact.ball import ball
from discreet.language import ENGLISH, Language
from discreet.mechanisms.histogram import PreparedHistogram
from discreet.mechanisms.noise import LAPLACE
from discreet.mechanisms.partition_selection import CHANCES, HARDLY, about, find_people_needed
from discreet.mechanisms.tally import Selection, Tally
from discreet.mechanisms.weighted_discovery import WeightedDiscovery, find_ceiling

HIDDEN_BEYOND = 2
"""The users for whom an item counts without being the first are hidden beyond so many times those of whom it is."""

MARGIN = 4
"""First items are taken if no item hides as many users as this many scales of the noise of the choice, 200 / epsilon
under add-remove. If no item hides any, the choice is wrong once in 110."""

CHOICE_PART = Fraction(1, 25)
"""The part of epsilon for the choice; docs/appendix/discovery.md tells how these three numbers were chosen."""

MOST_PLACES = 10**4
"""For a larger k there is no choice. The draw of the k largest of 10^9 noisy numbers takes 50 ms for this k, and 1.3 s
for ten times as many."""


@dataclass(frozen=True)
class SingleItems:
    """The k largest noisy numbers of users at or above a threshold, where one item of a user counts.

    Attributes
    ----------
    epsilon, delta
        The cost of the released items.
    adjacency
        "add-remove" or "swap".

    Examples
    --------
    >>> SingleItems(Fraction(99, 100), Fraction(1, 10**8)).threshold
    20
    """

    epsilon: Fraction
    delta: Fraction
    adjacency: str = "add-remove"

    method: ClassVar[str] = "one-item"

    @property
    def rate(self) -> Fraction:
        """The rate of the noise: its density at z is in proportion to exp(-rate |z|)."""
        return self.epsilon / self._sides

    @cached_property
    def threshold(self) -> int:
        """The least T for which an item of one user alone is kept with at most its part of delta.

        That probability is P(Z >= T - 3/2) = exp(-rate (T - 3/2)) / 2. It never equals a rational.
        """
        twice = 2 * self.delta / self._sides
        return find_ceiling(lambda: ball(Fraction(3, 2)) - ball(twice).log() / ball(self.rate))

    @property
    def zcdp(self) -> Fraction:
        """The rho of delta-approximate zero-concentrated differential privacy."""
        # rate^2 / 2 for each number of users that changes by one: one of them, two under swap.
        return self._sides * self.rate**2 / 2

    def keep_probability(self, users: int) -> arb:
        """Return a ball around the probability that the noisy number of users reaches the threshold."""
        if users < 1:
            return arb(0)
        missing = self.threshold - Fraction(1, 2) - users
        tail = (-ball(self.rate * abs(missing))).exp() / 2
        return tail if missing > 0 else 1 - tail

    def list_people(self) -> list[int]:
        """Return the number of people from which on an item is kept with each of CHANCES."""
        return [find_people_needed(self.keep_probability, chance) for chance in CHANCES]

    def prepare(self, tally: Tally, k: int) -> PreparedHistogram:
        """Return the draw of the k largest noisy numbers of users, or of all if there are fewer."""
        return PreparedHistogram(tally, min(k, tally.d), self.rate, LAPLACE)

    def keep(self, selection: Selection) -> Ranks:
        """Return the ranks of a draw whose noisy numbers, rounded, reach the threshold, in ascending order."""
        assert selection.values is not None, "the draw has the noisy numbers"
        reached = np.array(selection.values.to_steps(Fraction(1))) >= self.threshold
        return np.sort(selection.ranks[reached])

    @property
    def _sides(self) -> int:
        return 2 if self.adjacency == "swap" else 1


@dataclass(frozen=True)
class AdaptiveDiscovery(WeightedDiscovery):
    """Weighted discovery unless a noisy number says that one item of each user ranks the items well.

    Attributes
    ----------
    epsilon, delta, max_items_per_user, adjacency, max_groups_per_user
        As in `PartitionSelection`; epsilon pays for the choice and for the noise on weights.
    budget
        The epsilon of choosing, finding and selecting together.
    choice_epsilon
        The cost of the choice.

    Examples
    --------
    >>> terms = {"budget": Fraction(1), "choice_epsilon": Fraction(1, 25)}
    >>> found = AdaptiveDiscovery(Fraction(3, 5), Fraction(1, 10**8), 100, **terms)
    >>> found.threshold, found.alternative.threshold, found.margin
    (59, 20, Fraction(200, 1))
    """

    budget: Fraction = Fraction(0)
    choice_epsilon: Fraction = Fraction(0)

    method: ClassVar[str] = "auto"

    @property
    def noise_epsilon(self) -> Fraction:
        return self.epsilon - self.choice_epsilon

    @cached_property
    def alternative(self) -> SingleItems:
        """The method for one item of each user, which has all of epsilon but the cost of the choice."""
        return SingleItems(self.budget - self.choice_epsilon, self.delta, self.adjacency)

    @property
    def choice_rate(self) -> Fraction:
        """The rate of the noise of the choice."""
        # Two for a first item of a user, and under swap one for another item of the other user.
        return self.choice_epsilon / (HIDDEN_BEYOND + self._sides - 1)

    @property
    def margin(self) -> Fraction:
        """The number of hidden users, with noise, from which on weights are taken."""
        return MARGIN / self.choice_rate

    def prefers_alternative(self, hidden: int, noise: Callable[[Fraction], int]) -> bool:
        return hidden + noise(self.choice_rate) < self.margin

    @property
    def zcdp_delta(self) -> Fraction:
        # The alternative spends all of delta on the items of one user alone.
        return self.delta

    def compose_zcdp(self, selection: Fraction) -> Fraction:
        # epsilon-DP is epsilon^2/2-zCDP. After the choice there is one method or the other.
        return self.choice_epsilon**2 / 2 + max(self.zcdp + selection, self.alternative.zcdp)

    def to_dict(self) -> dict[str, Any]:
        """Return the discovery as JSON values; delta and adjacency are those of the guarantee."""
        choice = {"epsilon": str(self.choice_epsilon), "threshold": self.alternative.threshold}
        return {**super().to_dict(), "budget": str(self.budget), "choice": choice}

    def describe_threshold(self, language: Language = ENGLISH) -> str:
        return f"{super().describe_threshold(language)} {self._describe_alternative('found.single', language)}"

    def describe_release(self, chosen: str | None, language: Language = ENGLISH) -> str:
        if chosen == self.alternative.method:
            return self._describe_alternative("found.single_chosen", language)
        if chosen is None:
            return self.describe_threshold(language)
        return f"{language.text('found.weights_chosen')} {super().describe_threshold(language)}"

    def _describe_alternative(self, name: str, language: Language) -> str:
        few, many = (find_people_needed(self.alternative.keep_probability, each) for each in (HARDLY, 1 - HARDLY))
        return language.text(name, threshold=self.alternative.threshold, few=about(few), many=about(many))

    def describe_people(self) -> str:
        few, half, many = (f"{people:,}" for people in self.alternative.list_people())
        mostly = "most people touched one item or a few"
        return f"{super().describe_people()} If {mostly}, it is from {few}, {half} and {many}."

    def describe_noise(self, language: Language = ENGLISH) -> str:
        epsilon, scale = (f"{float(each):.4g}" for each in (self.choice_epsilon, 1 / self.alternative.rate))
        return language.text(
            "found.choice",
            epsilon=language.number(epsilon),
            margin=about(round(self.margin)),
            scale=language.number(scale),
            threshold=self.alternative.threshold,
            otherwise=super().describe_noise(language),
        )
