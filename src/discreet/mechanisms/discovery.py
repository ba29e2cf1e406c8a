"""Discovery: which items that nobody listed may be known at all, (epsilon, delta)-private.

Of each user at most l items count; n is the number of users of an item that count. An item with n of 1 or more is kept
where n + N >= T, with P(N = z) proportional to exp(-rate |z|). Others are never kept: nobody knows what they are.

Add a user. Some j <= l of the items that count for them have nobody else; each is kept with p = P(N >= T - 1), none of
them with (1-p)^j. The other l - j differ by one user each, which costs a factor of exp(rate) an item, so that the laws
P and Q of all other items, with the user and without, are within e^epsilon of each other for rate = epsilon / l. Let S
be any set of outcomes. With the user its probability is at least (1-p)^j P(S) and at most that and 1 - (1-p)^j more;
without, it is Q(S), which is at most (1-p)^j Q(S) + 1 - (1-p)^j. So either probability is at most e^epsilon times the
other, and 1 - (1-p)^j <= 1 - (1-p)^l more. T is the least whole number for which this is at most delta, and l new items
reach it: one less would break the promise.

A swap is a removal and an addition: at epsilon / 2 and d each, they are (epsilon, d (1 + exp(epsilon / 2)))-private.
Where a user may be in g groups, each group has epsilon / g and delta / g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from discreet.errors import InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import FLOAT_MARGIN, ball, float_above
from discreet.exact.discrete import MOST_TRIALS, least_upper_tail, sample_binomials, upper_tail
from discreet.exact.entropy import Entropy
from discreet.privacy import check_adjacency, exact, positive, whole_number
from discreet.text import count_with_commas, decimal, round_up

LARGEST_DELTA = Fraction(1, 10**3)
"""A larger delta is refused: one person in a thousand is no exception."""

DOUBTFUL_DELTA = Fraction(1, 10**5)
"""A larger delta gets a warning."""

HARDLY = Fraction(1, 10)
"""An item that is kept less often than this is hardly seen; one that is left out less often is seen nearly always."""


@dataclass(frozen=True)
class Discovery:
    """How items that nobody listed are found; all of it is public, and fixed before anything is read.

    `make_discovery` checks what a caller gave.

    Attributes
    ----------
    epsilon, delta
        What finding the items costs, in all groups together.
    max_items_per_user
        How many items of a user count, in each group.
    adjacency
        "add-remove" or "swap".
    max_groups_per_user
        How many groups a user may be in; 1 where there are no groups, or where everybody is in one.

    Examples
    --------
    >>> found = Discovery(Fraction(1, 4), Fraction(1, 10**8), max_items_per_user=3)
    >>> found.threshold, found.rate
    (228, Fraction(1, 12))
    """

    epsilon: Fraction
    delta: Fraction
    max_items_per_user: int
    adjacency: str = "add-remove"
    max_groups_per_user: int = 1

    @property
    def rate(self) -> Fraction:
        """The noise is z with probability proportional to exp(-rate |z|)."""
        return self._group_epsilon / self.max_items_per_user

    @cached_property
    def threshold(self) -> int:
        """T: an item is kept where its number of users and the noise come to so much; always 2 or more."""
        return 1 + least_upper_tail(self.rate, self._largest_chance_alone)

    @property
    def zcdp(self) -> Fraction:
        """The rho of delta-approximate zero-concentrated differential privacy, in all groups together."""
        # rate^2 / 2 for each of the items that differ by one: l in g groups, twice as many under swap.
        changed = self.max_items_per_user * self.max_groups_per_user * self._sides
        return changed * self.rate**2 / 2

    def keep_probability(self, users: int) -> arb:
        """A ball around the probability of keeping an item for which so many users count."""
        return upper_tail(self.rate, self.threshold - users) if users > 0 else arb(0)

    def sample_kept(self, entropy: Entropy, users: Ranks, items: Ranks) -> Ranks:
        """Returns how many items are kept of each run, exactly as if every item had a noise of its own.

        Parameters
        ----------
        entropy
            Where the random bits come from.
        users
            For how many users the items of a run count. Items for which none does are never kept.
        items
            How many items the run has. Given the number kept, every subset of that size is equally likely.
        """
        # A run is drawn by its rarer side, whose probability is a tail: items kept below T, left out from T on.
        is_above = users >= self.threshold
        steps = np.where(is_above, users - self.threshold + 1, self.threshold - users)
        trials = np.where(users > 0, items, 0)
        rarer = sample_binomials(
            entropy, trials, *self._bound_upper_tails(steps), lambda i: upper_tail(self.rate, int(steps[i]))
        )
        return np.where(is_above, trials - rarer, rarer)

    def sample_kept_ranks(self, entropy: Entropy, users: Ranks, items: Ranks) -> Ranks:
        """Returns which items are kept, as their ranks in ascending order, where the runs follow each other.

        The parameters are those of `sample_kept`; which items of a run are kept is a uniform subset.
        """
        kept = self.sample_kept(entropy, users, items)
        some = np.flatnonzero(kept)
        first = (np.cumsum(items) - items)[some].tolist()
        sizes, counts = items[some].tolist(), kept[some].tolist()
        drawn = [at + entropy.subset(count, size - 1) for at, size, count in zip(first, sizes, counts, strict=True)]
        return np.concatenate([np.empty(0, np.int64), *drawn])

    def share_of_group(self) -> Discovery:
        """The same discovery as one of its groups has it: what it costs that group alone."""
        groups = self.max_groups_per_user
        return replace(self, epsilon=self.epsilon / groups, delta=self.delta / groups, max_groups_per_user=1)

    def to_dict(self) -> dict[str, Any]:
        """The discovery in terms that JSON can hold; its delta and adjacency are those of the guarantee."""
        groups = {} if self.max_groups_per_user == 1 else {"max_groups_per_user": self.max_groups_per_user}
        bounds = {"max_items_per_user": self.max_items_per_user, **groups}
        return {"epsilon": str(self.epsilon), **bounds, "threshold": self.threshold}

    @classmethod
    def from_dict(cls, data: dict[str, Any], delta: str, adjacency: str) -> Discovery:
        """The discovery that `to_dict` wrote; others are refused, for some of which there is no threshold."""
        items = whole_number(data["max_items_per_user"], "max_items_per_user", 1)
        groups = whole_number(data.get("max_groups_per_user", 1), "max_groups_per_user", 1)
        check_adjacency(adjacency)
        found = cls(positive(data["epsilon"], "epsilon"), check_delta(delta), items, adjacency, groups)
        if found.threshold != data["threshold"]:
            raise InvalidValueError("threshold must be that of the other numbers")
        return found

    def describe_threshold(self) -> str:
        """What the threshold means for an item, in a sentence or two."""
        steps = least_upper_tail(self.rate, lambda: ball(HARDLY))
        few, many = self.threshold - steps + 1, self.threshold - 1 + steps
        each = "1 item counts" if self.max_items_per_user == 1 else f"{self.max_items_per_user:,} items count"
        return (
            f"An item that fewer than about {_about(few)} people touched will hardly be seen (less than one time in "
            f"ten), and one that about {_about(many)} or more touched nearly always (more than nine times in ten). "
            f"Of each person at most {each} for that."
        )

    @property
    def _sides(self) -> int:
        """Of how many users the items differ between neighbours."""
        return 2 if self.adjacency == "swap" else 1

    @property
    def _group_epsilon(self) -> Fraction:
        """What one user may cost one group."""
        return self.epsilon / (self.max_groups_per_user * self._sides)

    def _largest_chance_alone(self) -> arb:
        """A ball around the largest P(N >= T - 1) with 1 - (1 - P)^l <= the delta of one user in one group.

        A tail is never equal to it. Under add-remove it is algebraic. Under swap equality would be one of rational
        functions in exp(-rate), which is transcendental, and at exp(-rate) = 1 they are apart.
        """
        allowed = ball(self.delta / self.max_groups_per_user)
        if self.adjacency == "swap":
            allowed /= 1 + ball(self._group_epsilon).exp()
        chance: arb = -((-allowed).log1p() / self.max_items_per_user).expm1()
        return chance

    def _bound_upper_tails(self, steps: Ranks) -> tuple[Floats, Floats]:
        """Floats certainly below and above the probability of a noise of so many steps or more, from 1 on."""
        rate = float_above(self.rate)
        with np.errstate(over="ignore"):
            exponent, beyond = rate * steps.astype(np.float64), 1.0 + np.exp(-rate)
        # The product is off by a relative 2^-51, and all that follows by a relative 2^-42.
        low = np.exp(-exponent * (1.0 + FLOAT_MARGIN) - FLOAT_MARGIN) / beyond
        return low, np.exp(-exponent * (1.0 - FLOAT_MARGIN) + FLOAT_MARGIN) / beyond


def make_discovery(
    delta: Any,
    max_items_per_user: Any,
    budget: Fraction,
    k: int,
    *,
    epsilon: Any = None,
    adjacency: str = "add-remove",
    max_groups_per_user: int = 1,
) -> Discovery:
    """The discovery that a caller asked for.

    Parameters
    ----------
    delta, max_items_per_user, epsilon
        As the caller gave them. Without an epsilon it is the part that `default_epsilon` takes.
    budget, k
        The epsilon of the whole release, and how many items it has at most.
    adjacency, max_groups_per_user
        As `Discovery` has them.

    Examples
    --------
    >>> make_discovery("1e-8", 3, Fraction(1), 20).epsilon
    Fraction(23, 80)
    """
    check_adjacency(adjacency)
    limit = whole_number(max_items_per_user, "max_items_per_user", 1)
    part = default_epsilon(budget, limit, k) if epsilon is None else _check_part(epsilon, budget)
    found = Discovery(part, check_delta(delta), limit, adjacency, max_groups_per_user)
    if found.threshold > MOST_TRIALS:
        raise InvalidValueError(
            f"epsilon must be larger for discovery with max_items_per_user={limit}: with {round_up(part)} for it, "
            f"an item would need about 10^{len(str(found.threshold)) - 1} people to be found"
        )
    return found


def default_epsilon(budget: Fraction, max_items_per_user: int, k: int) -> Fraction:
    """The part of epsilon for discovery: a quarter, and up to a half where a user has many items beside k."""
    return budget * min(Fraction(1, 2), Fraction(1, 4) + Fraction(max_items_per_user, 4 * k))


def check_delta(delta: Any) -> Fraction:
    """The delta that was given, which must be above zero and at most LARGEST_DELTA."""
    limit = decimal(LARGEST_DELTA)
    if delta is None:
        raise InvalidValueError(
            f"delta must be given for discovery: above zero and at most {limit}, for instance '1e-8'"
        )
    number = exact(delta, "delta")
    # The float 0.001 is a little above one thousandth, and means it.
    if not 0 < number <= Fraction(float(LARGEST_DELTA)):
        raise InvalidValueError(f"delta must be above zero and at most {limit}, not {quote(delta)}")
    return number


def delta_warning(delta: Fraction) -> str | None:
    """What is to be said about a delta that is too large for most uses; None where it is not."""
    if delta <= Fraction(float(DOUBTFUL_DELTA)):
        return None
    return (
        f"delta is {round_up(delta)}: it should be well below one over the number of people, "
        "because with that chance each of them may have an item released that is theirs alone"
    )


def _check_part(epsilon: Any, budget: Fraction) -> Fraction:
    part = positive(epsilon, "epsilon of discovered")
    if part >= budget:
        raise InvalidValueError(
            f"epsilon of discovered must be below {decimal(budget)}, the epsilon of the release, not {quote(epsilon)}"
        )
    return part


def _about(people: int) -> str:
    """A number of people to two digits."""
    return count_with_commas(round(people, 2 - len(str(people))))
