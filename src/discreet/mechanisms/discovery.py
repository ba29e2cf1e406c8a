"""Private partition selection by Laplace noise on numbers of users, and the choice of a method by a caller.

At most l items of each user count. An item with n >= 1 counted users is kept if n + N >= T, where N is discrete Laplace
noise, P(N = z) proportional to exp(-rate |z|). An item without users is never kept: nobody knows that it exists.

Proof. Add a user. Let j <= l of the user's items have no other user. Each of these is kept with p = P(N >= T - 1), and
none of them with (1-p)^j. Each of the other l - j items changes by one user, which costs a factor of exp(rate). So with
rate = epsilon / l the distributions P and Q of all other items, with the user and without, are within e^epsilon of each
other. Let S be a set of outcomes. Its probability with the user is between (1-p)^j P(S) and (1-p)^j P(S) + 1 - (1-p)^j;
without the user it is Q(S) <= (1-p)^j Q(S) + 1 - (1-p)^j. Each of the two is therefore at most e^epsilon times the
other plus 1 - (1-p)^j <= 1 - (1-p)^l. T is the least whole number for which that is at most delta. A user with l new
items attains it, so T - 1 would break the guarantee.

A swap is a removal and an addition: at epsilon / 2 and d each, it is (epsilon, d (1 + exp(epsilon / 2)))-private. If a
user may be in g groups, each group has epsilon / g and delta / g.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from flint import arb

from discreet.errors import InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import FLOAT_MARGIN, ball, float_above
from discreet.exact.discrete import MOST_TRIALS, least_upper_tail, sample_binomials, upper_tail
from discreet.exact.entropy import Entropy
from discreet.mechanisms.partition_selection import HARDLY, PartitionSelection, about
from discreet.mechanisms.weighted_discovery import WeightedDiscovery
from discreet.privacy import check_adjacency, exact, positive, whole_number
from discreet.text import decimal, round_up

LARGEST_DELTA = Fraction(1, 10**3)
"""The largest delta allowed: one person in a thousand is no exception."""

DOUBTFUL_DELTA = Fraction(1, 10**5)
"""A larger delta gets a warning."""


@dataclass(frozen=True)
class Discovery(PartitionSelection):
    """Partition selection by Laplace noise on numbers of users; the attributes are those of `PartitionSelection`.

    Examples
    --------
    >>> found = Discovery(Fraction(1, 4), Fraction(1, 10**8), max_items_per_user=3)
    >>> found.threshold, found.rate
    (228, Fraction(1, 12))
    """

    method: ClassVar[str] = "laplace"
    largest_threshold: ClassVar[int] = MOST_TRIALS

    @property
    def rate(self) -> Fraction:
        """The rate of the noise: z has probability proportional to exp(-rate |z|)."""
        return self._group_epsilon / self.max_items_per_user

    @cached_property
    def threshold(self) -> int:
        """The threshold T, at least 2: an item is kept if its number of users plus noise reaches it."""
        return 1 + least_upper_tail(self.rate, self._largest_chance_alone)

    @property
    def zcdp(self) -> Fraction:
        # rate^2 / 2 for each item that changes by one user: l in each of g groups, twice as many under swap.
        changed = self.max_items_per_user * self.max_groups_per_user * self._sides
        return changed * self.rate**2 / 2

    def keep_probability(self, total: int) -> arb:
        return upper_tail(self.rate, self.threshold - total) if total > 0 else arb(0)

    def sample_kept(self, entropy: Entropy, totals: Ranks, items: Ranks) -> Ranks:
        # The rarer outcome is drawn, because its probability is a tail: kept for n < T, left out for n >= T.
        is_above = totals >= self.threshold
        steps = np.where(is_above, totals - self.threshold + 1, self.threshold - totals)
        trials = np.where(totals > 0, items, 0)
        rarer = sample_binomials(
            entropy, trials, *self._bound_upper_tails(steps), lambda i: upper_tail(self.rate, int(steps[i]))
        )
        return np.where(is_above, trials - rarer, rarer)

    def share_of_group(self) -> Discovery:
        """Return the discovery of one group, with the cost to that group alone."""
        groups = self.max_groups_per_user
        return replace(self, epsilon=self.epsilon / groups, delta=self.delta / groups, max_groups_per_user=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the discovery as JSON values; delta and adjacency are those of the guarantee."""
        return {**super().to_dict(), "threshold": self.threshold}

    def describe_threshold(self) -> str:
        steps = least_upper_tail(self.rate, lambda: ball(HARDLY))
        few, many = self.threshold - steps + 1, self.threshold - 1 + steps
        each = "1 item counts" if self.max_items_per_user == 1 else f"{self.max_items_per_user:,} items count"
        return (
            f"An item that fewer than about {about(few)} people touched will hardly be seen (less than one time in "
            f"ten), and one that about {about(many)} or more touched nearly always (more than nine times in ten). "
            f"Of each person at most {each} for that."
        )

    @property
    def _group_epsilon(self) -> Fraction:
        """The cost of one user in one group."""
        return self.epsilon / (self.max_groups_per_user * self._sides)

    def _largest_chance_alone(self) -> arb:
        """Return a ball around the largest P(N >= T - 1) with 1 - (1 - P)^l <= the delta of one user in one group.

        No tail equals it. Under add-remove it is algebraic. Under swap equality would be an equation of rational
        functions of exp(-rate), which is transcendental, and the two functions differ at exp(-rate) = 1.
        """
        allowed = ball(self.delta / self.max_groups_per_user)
        if self.adjacency == "swap":
            allowed /= 1 + ball(self._group_epsilon).exp()
        chance: arb = -((-allowed).log1p() / self.max_items_per_user).expm1()
        return chance

    def _bound_upper_tails(self, steps: Ranks) -> tuple[Floats, Floats]:
        """Return floats certainly below and above P(N >= n) for n = steps >= 1."""
        rate = float_above(self.rate)
        with np.errstate(over="ignore"):
            exponent, beyond = rate * steps.astype(np.float64), 1.0 + np.exp(-rate)
        # q^n / (1 + q) with q = exp(-rate): the product has a relative error of 2^-51, all that follows one of 2^-42.
        low = np.exp(-exponent * (1.0 + FLOAT_MARGIN) - FLOAT_MARGIN) / beyond
        return low, np.exp(-exponent * (1.0 - FLOAT_MARGIN) + FLOAT_MARGIN) / beyond


METHODS: dict[str, type[PartitionSelection]] = {each.method: each for each in (Discovery, WeightedDiscovery)}
"""The methods by name; the first is the default."""


def make_discovery(
    delta: Any,
    max_items_per_user: Any,
    budget: Fraction,
    k: int,
    *,
    epsilon: Any = None,
    adjacency: str = "add-remove",
    max_groups_per_user: int = 1,
    method: str = Discovery.method,
) -> PartitionSelection:
    """Return the discovery that a caller asked for; raise for invalid input.

    Parameters
    ----------
    delta, max_items_per_user, epsilon
        The input of the caller. Without an epsilon, `default_epsilon` decides.
    budget, k
        The epsilon of the whole release, and the most items that it has.
    adjacency, max_groups_per_user
        As in `PartitionSelection`.
    method
        A key of `METHODS`.

    Examples
    --------
    >>> make_discovery("1e-8", 3, Fraction(1), 20).epsilon
    Fraction(23, 80)
    """
    check_adjacency(adjacency)
    limit = whole_number(max_items_per_user, "max_items_per_user", 1)
    part = default_epsilon(budget, limit, k) if epsilon is None else positive(epsilon, "epsilon of discovered")
    if part >= budget:
        raise InvalidValueError(
            f"epsilon of discovered must be below {decimal(budget)}, the epsilon of the release, not {quote(epsilon)}"
        )
    found = METHODS[method](part, check_delta(delta), limit, adjacency, max_groups_per_user)
    if found.threshold > found.largest_threshold:
        raise InvalidValueError(
            f"epsilon must be larger for discovery with max_items_per_user={limit}: with {round_up(part)} for it, "
            f"an item would need about 10^{len(str(found.threshold)) - 1} people to be found"
        )
    return found


def read_discovery(data: dict[str, Any], delta: str, adjacency: str) -> PartitionSelection:
    """Return the discovery that `to_dict` wrote; raise unless its threshold and noise are what its numbers give."""
    items = whole_number(data["max_items_per_user"], "max_items_per_user", 1)
    groups = whole_number(data.get("max_groups_per_user", 1), "max_groups_per_user", 1)
    check_adjacency(adjacency)
    method = METHODS[data.get("method", Discovery.method)]
    found = method(positive(data["epsilon"], "epsilon"), check_delta(delta), items, adjacency, groups)
    written = found.to_dict()
    is_other = any(written[name] != data.get(name) for name in ("sigma", "threshold") if name in written)
    if is_other or found.threshold > found.largest_threshold:
        raise InvalidValueError("threshold must be that of the other numbers")
    return found


def default_epsilon(budget: Fraction, max_items_per_user: int, k: int) -> Fraction:
    """Return the part of epsilon for discovery: a quarter, and up to a half if a user has many items relative to k."""
    return budget * min(Fraction(1, 2), Fraction(1, 4) + Fraction(max_items_per_user, 4 * k))


def check_delta(delta: Any) -> Fraction:
    """Return delta as an exact rational; raise unless it is above zero and at most LARGEST_DELTA."""
    limit = decimal(LARGEST_DELTA)
    if delta is None:
        raise InvalidValueError(
            f"delta must be given for discovery: above zero and at most {limit}, for instance '1e-8'"
        )
    number = exact(delta, "delta")
    # The float 0.001 is slightly above one thousandth, and is accepted.
    if not 0 < number <= Fraction(float(LARGEST_DELTA)):
        raise InvalidValueError(f"delta must be above zero and at most {limit}, not {quote(delta)}")
    return number


def delta_warning(delta: Fraction) -> str | None:
    """Return a warning about a delta that is too large for most uses, else None."""
    if delta <= Fraction(float(DOUBTFUL_DELTA)):
        return None
    return (
        f"delta is {round_up(delta)}: it should be well below one over the number of people, "
        "because with that chance each of them may have an item released that is theirs alone"
    )
