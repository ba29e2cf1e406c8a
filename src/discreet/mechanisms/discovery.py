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
from discreet.language import ENGLISH, Language
from discreet.mechanisms.adaptive_discovery import CHOICE_PART, MOST_PLACES, AdaptiveDiscovery
from discreet.mechanisms.partition_selection import CHANCES, HARDLY, PartitionSelection, about
from discreet.mechanisms.weighted_discovery import WeightedDiscovery
from discreet.privacy import check_adjacency, parameter, positive, whole_number
from discreet.text import align_columns, decimal, make_html_table, make_html_view, round_up

LARGEST_DELTA = Fraction(1, 10**3)
"""The largest delta allowed: one person in a thousand is no exception."""

PARTS = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)
"""The parts of epsilon for finding the items that a plan compares with the one planned."""

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

    def weigh(self, items_per_user: int) -> int:
        return 1

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

    def describe_threshold(self, language: Language = ENGLISH) -> str:
        steps = least_upper_tail(self.rate, lambda: ball(HARDLY))
        few, many = self.threshold - steps + 1, self.threshold - 1 + steps
        return language.text("found.laplace", few=about(few), many=about(many), count=self.max_items_per_user)

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


METHODS: dict[str, type[PartitionSelection]] = {
    each.method: each for each in (AdaptiveDiscovery, WeightedDiscovery, Discovery)
}
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
    method: str = WeightedDiscovery.method,
) -> PartitionSelection:
    """Return the discovery that a caller asked for; raise for invalid input.

    Parameters
    ----------
    delta, max_items_per_user, epsilon
        The input of the caller. Without an epsilon, Gaussian noise gets half of the budget and 5 / (k g) more, with g
        the groups of a user, but at most three quarters; docs/appendix/discovery.md tells how this rule was fitted.
        Laplace noise gets a quarter, and up to a half if a user has many items relative to k. A choice between methods
        comes before that, at a 25th of the budget.
    budget, k
        The epsilon of the whole release, and the most items that it has.
    adjacency, max_groups_per_user
        As in `PartitionSelection`.
    method
        A key of `METHODS`. Without a choice between methods, for groups or a large k, "auto" is "gaussian".

    Examples
    --------
    >>> make_discovery("1e-8", 100, Fraction(1), 20).epsilon
    Fraction(3, 4)
    >>> make_discovery("1e-8", 3, Fraction(1), 20, method="laplace").epsilon
    Fraction(23, 80)
    """
    check_adjacency(adjacency)
    limit = whole_number(max_items_per_user, "max_items_per_user", 1)
    choice = Fraction(0)
    if method == AdaptiveDiscovery.method:
        has_choice = max_groups_per_user == 1 and k <= MOST_PLACES
        method, choice = (method, budget * CHOICE_PART) if has_choice else (WeightedDiscovery.method, choice)
    rest = budget - choice
    if epsilon is not None:
        part = positive(epsilon, "epsilon of discovered")
    elif method == Discovery.method:
        part = budget * min(Fraction(1, 2), Fraction(1, 4) + Fraction(limit, 4 * k))
    else:
        part = rest / 2 + min(rest / 4, Fraction(5, k * max_groups_per_user))
    if part >= rest:
        left = " left by the choice of a method" if choice else ""
        raise InvalidValueError(
            f"epsilon of discovered must be below {decimal(rest)}, the epsilon of the release{left}, not "
            f"{decimal(part)}"
        )
    own = {"budget": budget, "choice_epsilon": choice} if choice else {}
    found = METHODS[method](part + choice, check_delta(delta), limit, adjacency, max_groups_per_user, **own)
    if found.threshold > found.largest_threshold:
        raise InvalidValueError(
            f"epsilon must be larger for discovery with max_items_per_user={limit}: with {round_up(part)} for it, "
            f"an item would need about 10^{len(str(found.threshold)) - 1} people to be found"
        )
    return found


@dataclass(frozen=True, repr=False)
class DiscoveryComparison:
    """The people that an item needs, by method and by the part of epsilon that finds the items. All of it is public.

    Attributes
    ----------
    planned
        The partition selection of the release.
    budget
        The epsilon of the release.
    choices
        The partition selections compared, `planned` among them, each with a mark: "planned", "default" or "".

    Examples
    --------
    >>> planned = make_discovery("1e-8", 3, Fraction(1), 20, method="laplace")
    >>> [each.list_people(1)[1] for each, _ in compare_discoveries(planned, Fraction(1), 20).choices if each == planned]
    [198]
    """

    planned: PartitionSelection
    budget: Fraction
    choices: tuple[tuple[PartitionSelection, str], ...]

    def _rows(self) -> list[list[str]]:
        """Return the table, with its head first."""
        most = max(each.most_items for each, _ in self.choices)
        busy = [f"95% at {most:,} items"] if most > 1 else []
        rows = [["method", "finds with", "selects with", "5%", "50%", "95%", *busy, ""]]
        for each, mark in self.choices:
            parts = round_up(each.epsilon), round_up(self.budget - each.epsilon)
            people = each.list_people(1) + ([each.people_needed(CHANCES[-1], each.most_items)] if busy else [])
            rows.append([each.method, *parts, *(f"{number:,}" for number in people), mark])
            if each.alternative is not None:
                whole, people = round_up(each.alternative.epsilon), each.alternative.list_people()
                rows.append(["  or", whole, "0", *(f"{number:,}" for number in people), *([""] if busy else []), ""])
        return rows

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rows as JSON values."""
        return [{**describe_choice(each), "mark": mark or None} for each, mark in self.choices]

    def _title(self) -> str:
        return f"People that an item needs to be found, of epsilon = {round_up(self.budget)}"

    def __str__(self) -> str:
        lines = align_columns(self._rows(), numbers=True)
        return "\n".join([f"{self._title()}:", *(f"  {line}".rstrip() for line in lines)])

    def __repr__(self) -> str:
        return f"DiscoveryComparison({len(self.choices)} choices, epsilon={round_up(self.budget)})"

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return make_html_view(self._title(), make_html_table(rows, head), [])


def describe_choice(found: PartitionSelection) -> dict[str, Any]:
    """Return a partition selection and the people it needs for each of CHANCES, as JSON values."""
    people = {str(chance): number for chance, number in zip(CHANCES, found.list_people(1), strict=True)}
    busy = {str(chance): number for chance, number in zip(CHANCES, found.list_people(found.most_items), strict=True)}
    described = {"method": found.method, **found.to_dict(), "people": people, "people_of_most_items": busy}
    if found.alternative is not None:
        needed = zip(CHANCES, found.alternative.list_people(), strict=True)
        described["people_of_one_item"] = {str(chance): number for chance, number in needed}
    return described


def compare_discoveries(planned: PartitionSelection, budget: Fraction, k: int) -> DiscoveryComparison:
    """Return the comparison of a planned partition selection with both methods at several parts of epsilon.

    Parameters
    ----------
    planned
        The partition selection of the release; the others have its delta, bounds and adjacency.
    budget, k
        As for `make_discovery`.
    """
    bounds = planned.delta, planned.max_items_per_user, budget, k
    choices: list[tuple[PartitionSelection, str]] = []
    for method in METHODS:
        found: dict[PartitionSelection, str] = {}
        parts = [None, *(share * budget for share in PARTS), planned.epsilon]
        if method == AdaptiveDiscovery.method:
            parts = [None] if planned.max_groups_per_user == 1 and k <= MOST_PLACES else []
            found |= {planned: "planned"} if planned.method == method else {}
        for part in parts:
            try:
                each = make_discovery(
                    *bounds, epsilon=part, adjacency=planned.adjacency,
                    max_groups_per_user=planned.max_groups_per_user, method=method,
                )  # fmt: skip
            except InvalidValueError:
                # The threshold of this one would not fit 64 bits.
                continue
            found.setdefault(each, "planned" if each == planned else "" if part is not None else "default")
        choices += sorted(found.items(), key=lambda choice: choice[0].epsilon)
    return DiscoveryComparison(planned, budget, tuple(choices))


def read_discovery(data: dict[str, Any], delta: str, adjacency: str) -> PartitionSelection:
    """Return the discovery that `to_dict` wrote; raise unless its threshold and noise are what its numbers give."""
    items = whole_number(data["max_items_per_user"], "max_items_per_user", 1)
    groups = whole_number(data.get("max_groups_per_user", 1), "max_groups_per_user", 1)
    check_adjacency(adjacency)
    # Laplace noise has no name in the file.
    method = METHODS[data.get("method", Discovery.method)]
    found = method(positive(data["epsilon"], "epsilon"), check_delta(delta), items, adjacency, groups)
    if isinstance(found, AdaptiveDiscovery):
        budget, choice = (positive(each, "epsilon") for each in (data["budget"], data["choice"]["epsilon"]))
        found = replace(found, budget=budget, choice_epsilon=choice)
        if groups > 1 or not found.choice_epsilon < found.epsilon < found.budget:
            raise InvalidValueError("budget must be above epsilon, and epsilon above that of the choice")
    written = found.to_dict()
    is_other = any(written[name] != data.get(name) for name in ("sigma", "threshold", "choice") if name in written)
    if is_other or found.threshold > found.largest_threshold:
        raise InvalidValueError("threshold must be that of the other numbers")
    return found


def check_delta(delta: Any) -> Fraction:
    """Return delta as an exact rational; raise unless it is above zero and at most LARGEST_DELTA."""
    limit = decimal(LARGEST_DELTA)
    if delta is None:
        raise InvalidValueError(
            f"delta must be given for discovery: above zero and at most {limit}, for instance '1e-8'"
        )
    number = parameter(delta, "delta")
    # Early versions read the float 0.001 as slightly more than one thousandth; their releases are accepted.
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
