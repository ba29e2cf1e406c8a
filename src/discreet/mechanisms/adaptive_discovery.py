"""Partition selection that chooses privately between weights and shares of one vote of each user, with one noise.

If most users have few items, a threshold on noisy sums of shares needs fewer users than weights and a selection,
because all of epsilon goes into one noise. Of a user with m items min(m, 3) count for that, those with the least
hashes, and share one vote equally. That loses an item of users who mostly have other items with a share. Let w be the
sum of an item's shares and c the number of users for whom it counts with weights: the item hides c - 3 w users. Shares
are taken if H + N < m, with H the most users that an item hides, rounded up, at least 0, discrete Laplace noise N, and
a margin m of MARGIN scales of that noise. A user adds 1, 0, -1/2 or -2 to each c - 3 w, so that adding a user moves H
by at most 2, and replacing one moves it by at most 3.

`SharedItems` keeps an item with w > 0 if w + Z, rounded to a step, is at least T, with Laplace noise Z; of the kept
items it releases those with the k largest w + Z. A user moves all w together by at most 1, so the noisy sums at or
above T are (epsilon, delta)-private, and the release is a function of them (docs/proofs.md, section 14). Both methods
have what the choice leaves of epsilon, and all of delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
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

MOST_SHARED = 3
"""The most items of a user that share the vote."""

SHARE_STEPS = 6
"""The steps of a vote, which 1, 2 and 3 divide. Shares, their sums and the threshold are whole numbers of steps."""

HIDDEN_BEYOND = 2
"""The most by which a user can lower the number of users that an item hides. A user for whom it counts adds 1, less
HIDDEN_BEYOND + 1 times the share of the item."""

MARGIN = 4
"""Shares are taken if no item hides as many users as this many scales of the noise of the choice, 200 / epsilon
under add-remove. If no item hides any, the choice is wrong once in 110."""

CHOICE_PART = Fraction(1, 25)
"""The part of epsilon for the choice; docs/appendix/discovery.md tells how these three numbers were chosen."""

MOST_PLACES = 10**4
"""For a larger k there is no choice. The draw of the k largest of 10^9 noisy numbers takes 50 ms for this k, and 1.3 s
for ten times as many."""


@dataclass(frozen=True)
class SharedItems:
    """The k largest noisy sums of shares at or above a threshold, where the items of a user share one vote.

    Attributes
    ----------
    epsilon, delta
        The cost of the released items.
    adjacency
        "add-remove" or "swap".
    most_items
        The most items of a user that share the vote, at most MOST_SHARED.

    Examples
    --------
    >>> shared = SharedItems(Fraction(99, 100), Fraction(1, 10**8))
    >>> shared.cutoff, shared.threshold
    (117, 20)
    """

    epsilon: Fraction
    delta: Fraction
    adjacency: str = "add-remove"
    most_items: int = MOST_SHARED

    method: ClassVar[str] = "few-items"

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on sums of shares: its density at z is in proportion to exp(-rate |z|)."""
        return self.epsilon / self._sides

    @property
    def step_rate(self) -> Fraction:
        """The rate of the noise on sums in steps."""
        return self.rate / SHARE_STEPS

    @cached_property
    def cutoff(self) -> int:
        """The threshold T in steps: an item is kept if its sum of shares plus noise, rounded to a step, reaches it.

        It is the least T at which t items of one user alone are kept with at most the user's part of delta, for t = 1
        to `most_items`. None of the bounds on T is a whole number, by the theorem of Lindemann and Weierstrass.
        """

        def alone(t: int) -> arb:
            # P(Z >= T - 1/2 - S / t) = exp(-rate (T - 1/2 - S / t)) / 2 is at most q = 1 - (1 - delta)^(1/t).
            q = -((-ball(self.delta / self._sides)).log1p() / t).expm1()
            return ball(Fraction(1, 2) + Fraction(SHARE_STEPS, t)) - (2 * q).log() / ball(self.step_rate)

        return max(find_ceiling(partial(alone, t)) for t in range(1, self.most_items + 1))

    @cached_property
    def threshold(self) -> int:
        """The number of people that an item needs to reach T if it is all that they touched."""
        return -(-self.cutoff // SHARE_STEPS)

    @property
    def zcdp(self) -> Fraction:
        """The rho of delta-approximate zero-concentrated differential privacy."""
        # The sum of rate^2 x^2 / 2 over the sums that move by x. Every |x| is at most 1 and they add up to at most one,
        # or under swap to two, and so do their squares.
        return self._sides * self.rate**2 / 2

    def keep_probability(self, total: int) -> arb:
        """Return a ball around the probability of keeping an item whose shares add up to so many steps."""
        if total < 1:
            return arb(0)
        missing = self.cutoff - Fraction(1, 2) - total
        tail = (-ball(self.step_rate * abs(missing))).exp() / 2
        return tail if missing > 0 else 1 - tail

    def people_needed(self, probability: Fraction) -> int:
        """Return the least number of people on an item, all that they touched, kept with at least this probability."""
        return find_people_needed(lambda people: self.keep_probability(people * SHARE_STEPS), probability)

    def list_people(self) -> list[int]:
        """Return the number of people that each of CHANCES needs, as `people_needed` does."""
        return [self.people_needed(chance) for chance in CHANCES]

    def prepare(self, tally: Tally, k: int) -> PreparedHistogram:
        """Return the draw of the k largest noisy sums in steps, or of all if there are fewer."""
        return PreparedHistogram(tally, min(k, tally.d), self.step_rate, LAPLACE)

    def keep(self, selection: Selection) -> Ranks:
        """Return the ranks of a draw whose noisy sums, rounded to a step, reach the threshold, in ascending order."""
        assert selection.values is not None, "the draw has the noisy sums"
        reached = np.array(selection.values.to_steps(Fraction(1))) >= self.cutoff
        return np.sort(selection.ranks[reached])

    @property
    def _sides(self) -> int:
        return 2 if self.adjacency == "swap" else 1


@dataclass(frozen=True)
class AdaptiveDiscovery(WeightedDiscovery):
    """Weighted discovery unless a noisy number says that shares of one vote of each user rank the items well.

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
    (59, 21, Fraction(200, 1))
    """

    budget: Fraction = Fraction(0)
    choice_epsilon: Fraction = Fraction(0)

    method: ClassVar[str] = "auto"

    @property
    def noise_epsilon(self) -> Fraction:
        return self.epsilon - self.choice_epsilon

    @cached_property
    def alternative(self) -> SharedItems:
        """The method for shares, which has all of epsilon but the cost of the choice."""
        most = min(MOST_SHARED, self.max_items_per_user)
        return SharedItems(self.budget - self.choice_epsilon, self.delta, self.adjacency, most)

    @property
    def choice_rate(self) -> Fraction:
        """The rate of the noise of the choice."""
        # Two for the whole vote of a user, and under swap one for an item of the other user without a share.
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
        choice = {"epsilon": str(self.choice_epsilon), "threshold": str(self._vote_threshold)}
        return {**super().to_dict(), "budget": str(self.budget), "choice": choice}

    def describe_threshold(self, language: Language = ENGLISH) -> str:
        return f"{super().describe_threshold(language)} {self._describe_alternative('found.shares', language)}"

    def describe_release(self, chosen: str | None, language: Language = ENGLISH) -> str:
        if chosen == self.alternative.method:
            return self._describe_alternative("found.shares_chosen", language)
        if chosen is None:
            return self.describe_threshold(language)
        return f"{language.text('found.weights_chosen')} {super().describe_threshold(language)}"

    @property
    def _vote_threshold(self) -> Fraction:
        """The threshold of the alternative in votes."""
        return Fraction(self.alternative.cutoff, SHARE_STEPS)

    def _describe_alternative(self, name: str, language: Language) -> str:
        few, many = (self.alternative.people_needed(each) for each in (HARDLY, 1 - HARDLY))
        threshold = language.number(f"{float(self._vote_threshold):.4g}")
        return language.text(name, threshold=threshold, few=about(few), many=about(many))

    def describe_people(self) -> str:
        few, half, many = (f"{people:,}" for people in self.alternative.list_people())
        mostly = "most people touched one item or a few"
        return f"{super().describe_people()} If {mostly}, it is from {few}, {half} and {many}."

    def describe_noise(self, language: Language = ENGLISH) -> str:
        numbers = self.choice_epsilon, 1 / self.alternative.rate, self._vote_threshold
        epsilon, scale, threshold = (language.number(f"{float(each):.4g}") for each in numbers)
        return language.text(
            "found.choice",
            epsilon=epsilon,
            margin=about(round(self.margin)),
            scale=scale,
            threshold=threshold,
            otherwise=super().describe_noise(language),
        )
