"""Request: k items of a source, or of each of its groups, and what their release promises.

Every public parameter of a release is checked here, in one place and before anything private is read. What selects,
verifies, analyses or charges a release takes the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.counts import CountMechanism, check_counts, make_count_mechanism, split_budget
from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.padding import Workload
from discreet.privacy import Sensitivity, check_adjacency, positive, sensitivity_or_default, whole_number
from discreet.release import Guarantee
from discreet.sources.base import Source
from discreet.sources.scores import as_source
from discreet.tally import Tally


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """What a release is asked for; the scores are in the source alone, unread.

    Attributes
    ----------
    source
        Where the scores come from.
    k
        How many items to release.
    guarantee
        What the release promises.
    count_mechanism
        What makes the counts of the release, or None where it has none.
    """

    source: Source
    k: int
    guarantee: Guarantee
    count_mechanism: CountMechanism | None = None

    @property
    def d(self) -> int:
        """How many items the public domain has."""
        return self.source.d

    @property
    def takes_all_items(self) -> bool:
        """Whether the selection is the whole domain, which needs no draw and costs nothing."""
        return self.k == self.d

    @property
    def workload(self) -> Workload:
        """What says how long the release takes."""
        return Workload(self.source.typed, self.d, self.k, self.count_mechanism is not None)

    def prepare(self, tally: Tally) -> Prepared:
        """The mechanism on the scores of the source."""
        promised = self.guarantee
        return promised.mechanism.prepare(tally, self.k, promised.selection_epsilon, promised.sensitivity)


def make_request(
    scores: Any,
    k: Any,
    epsilon: Any,
    *,
    mechanism: Any = None,
    sensitivity: Any = None,
    adjacency: Any = None,
    counts: Any = None,
    split: Any = None,
) -> Request:
    """The request that the arguments of `top_k` describe.

    Parameters
    ----------
    scores, k, epsilon, mechanism, sensitivity, adjacency, counts, split
        What `top_k` takes, as the caller gave it.
    """
    source = as_source(scores)
    return Request(source, *make_terms(source, k, epsilon, mechanism, sensitivity, adjacency, counts, split))


Terms = tuple[int, Guarantee, CountMechanism | None]
"""What a request is besides its source: k, what is promised, and what makes the counts."""


def make_terms(
    source: Source,
    k: Any,
    epsilon: Any,
    mechanism: Any,
    sensitivity: Any,
    adjacency: Any,
    counts: Any,
    split: Any,
    group: GroupShare | None = None,
) -> Terms:
    """The terms on which k items of a source are released, checked: by itself, or as one of several groups."""
    budget = positive(epsilon, "epsilon")
    check_counts(source.grid, counts, split)
    neighbours = check_source_adjacency(source.adjacency, adjacency)
    chosen = check_mechanism(DEFAULT if mechanism is None else mechanism)
    own = find_sensitivity(source, sensitivity)
    limit = own.under(neighbours)
    where = "" if group is None else f" in the group {shown(group.key)}"
    size = whole_number(k, "k", 1, source.d, f"{source.d}, the number of items{where}")
    parts = split_budget(budget, counts, split, everything=size == source.d)
    selection, rest = parts if group is None else (part / group.groups_per_user for part in parts)
    # Both privacy parameters of two releases add up, whatever the second makes of the first; rest-DP is rest^2/2-zCDP.
    rho = chosen.zcdp(selection, size) + rest**2 / 2
    guarantee = Guarantee(selection + rest, neighbours, limit, chosen, rho, rest)
    return size, guarantee, _count_mechanism(source, size, own, guarantee, grouped=group is not None)


@dataclass(frozen=True)
class GroupShare:
    """One of several groups, and in how many of them a user counts: its release has that part of a budget."""

    key: Any
    groups_per_user: int


def _count_mechanism(
    source: Source, k: int, own: Sensitivity, guarantee: Guarantee, grouped: bool
) -> CountMechanism | None:
    """What makes the counts, where `own` is the sensitivity of adding one user."""
    epsilon = guarantee.counts_epsilon
    if not epsilon or source.grid is None:
        return None
    most = source.max_items_per_user
    return make_count_mechanism(own, guarantee.adjacency, source.grid, k, most, epsilon, grouped=grouped)


def check_source_adjacency(own: str | None, given: Any) -> str:
    """The adjacency of a release: that of its source, where it has one, and what the caller gave must be the same."""
    if given is not None:
        check_adjacency(given)
    if own is not None and given not in (None, own):
        raise InvalidValueError(f"adjacency must be that of the source, {own!r}, or left out, not {given!r}")
    return str(given or own or "add-remove")


def check_group_mechanism(mechanism: Mechanism, adjacency: str) -> None:
    """Raises where a group cannot be charged half of a user who is replaced, for leaving it or coming to it alone."""
    if adjacency == "swap" and not mechanism.is_linear:
        raise InvalidValueError(
            f"mechanism must not be {mechanism!r} for groups under 'swap': a user who leaves one group for "
            "another would cost it more than epsilon"
        )


def find_sensitivity(source: Source, given: Any) -> Sensitivity:
    """How far adding one user can move a score: what the source knows, or else what the caller says."""
    if source.sensitivity is None:
        return sensitivity_or_default(given)
    if given is not None:
        raise InvalidValueError("sensitivity must be left out, because the source knows its own")
    return source.sensitivity
