"""Check every public parameter of a release before anything private is read, and draw one list, or one for each group.

A request holds a source, k, the guarantee and the noise of counts. The draw, the ledger, the analysis and the verifier
all take requests. `AnyRequest` is the protocol that the four kinds of request share.

With groups a user counts in at most g of them, and each group has a g-th of epsilon, of the selection and of the
counts. Adding or removing a user changes at most g groups, so the total cost is that of the g costliest groups. A user
who is replaced can leave g groups and join g others. Each of these 2g groups sees half of the change that the
sensitivity of "swap" allows for, and a linear mechanism loses half as much for it, so the total is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from discreet.errors import InternalError, InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Ranks
from discreet.exact.discrete import sample_discrete_laplace
from discreet.exact.entropy import Entropy, as_entropy
from discreet.jobs import count_steps
from discreet.labels import sort_key, sort_labels
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import (
    Sensitivity,
    check_adjacency,
    positive,
    sensitivity_or_default,
    sum_of_largest,
    whole_number,
)
from discreet.release.counts import (
    CountFormat,
    CountMechanism,
    Reach,
    check_counts,
    l1_distance,
    l1_distance_by_group,
    make_count_mechanism,
    make_value_format,
    split_budget,
)
from discreet.release.guarantee import Guarantee
from discreet.release.release import Release
from discreet.release.shortfall import (
    ShortfallMechanism,
    find_lead,
    make_shortfall_mechanism,
    split_shortfall,
)
from discreet.sources.base import AnySource, GroupedSource, Source
from discreet.sources.scores import as_source

if TYPE_CHECKING:
    from discreet.release.grouped import GroupedRelease


@dataclass(frozen=True, eq=False, repr=False)
class Randomness:
    """The random choices of one release.

    Attributes
    ----------
    select
        Draws a selection from a prepared mechanism.
    noise
        Draws n with probability proportional to exp(-rate |n|) for a given rate; None without counts.
    entropy
        The source of random bits.
    private
        False if the bits come from a generator that a test passed.
    """

    select: Callable[[Prepared], Selection]
    noise: Callable[[Fraction], int] | None = None
    entropy: Entropy = field(default_factory=Entropy)
    private: bool = True

    @classmethod
    def of(cls, rng: Any) -> Randomness:
        """Return the choices by the bits of a generator, or of the operating system if `rng` is None."""
        entropy = as_entropy(rng)

        def select(prepared: Prepared) -> Selection:
            return prepared.select(entropy)

        return cls(select, partial(sample_discrete_laplace, entropy), entropy, rng is None)


@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """The outcome of a draw on a tally.

    Attributes
    ----------
    selection
        The ranks to release.
    scores
        The exact scores at these ranks, where counts are released.
    lead
        The exact lead of the best item left out, where a shortfall is released and the selection is not empty.
    values
        The noisy values in steps of the grid, where the mechanism releases values.
    chosen
        The candidate that the mechanism chose, where it chooses between several.
    """

    selection: Selection = field(default_factory=lambda: Selection(np.empty(0, np.int64)))
    scores: list[Fraction] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    chosen: str | None = None
    lead: Fraction | None = None


class Workload(NamedTuple):
    """The public facts that determine how long a release takes: k of d scores, their type, counts and groups."""

    typed: bool
    d: int
    k: int
    counts: bool
    groups: int = 1


class AnyRequest(Protocol):
    """A request of any kind: a list, lists by group, partition selection, or a sketch."""

    @property
    def source(self) -> AnySource:
        """The source of the scores."""

    @property
    def k(self) -> int:
        """The number of items, or of ranks of a sketch, to release in each group."""

    @property
    def d(self) -> int | None:
        """The size of the public domain, of the largest one with groups; None for partition selection."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release."""

    @property
    def groups(self) -> int | None:
        """The number of groups, or None without groups."""

    @property
    def requests(self) -> Sequence[Request]:
        """The request of each group; empty unless the groups have public lists of items."""

    @property
    def workload(self) -> Workload:
        """The public sizes that determine how long the release takes."""

    def describe(self) -> dict[str, Any]:
        """Return the public parameters that neither the source nor the guarantee holds, as JSON data."""

    def draw(self, randomness: Randomness) -> Any:
        """Draw the release."""


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """A request for one list; the scores stay unread in the source.

    Attributes
    ----------
    source
        The source of the scores.
    k
        The number of items to release.
    guarantee
        The guarantee of the release.
    count_mechanism
        The mechanism of the counts, or None without counts.
    value_format
        The format of the values that the mechanism itself releases, or None if it releases none.
    shortfall_mechanism
        The mechanism of the shortfall, or None without one.
    """

    source: Source
    k: int
    guarantee: Guarantee
    count_mechanism: CountMechanism | None = None
    value_format: CountFormat | None = None
    shortfall_mechanism: ShortfallMechanism | None = None
    groups: ClassVar[None] = None
    requests: ClassVar[tuple[Request, ...]] = ()

    @property
    def d(self) -> int:
        """The number of items in the public domain."""
        return self.source.d

    @property
    def takes_all_items(self) -> bool:
        """True if the selection is the whole domain, which needs no draw and costs nothing."""
        return is_free(self.guarantee.mechanism, self.k, self.d)

    @property
    def has_numbers(self) -> bool:
        """True if each item comes with a count, or with a value, which takes as long to round as a count to draw."""
        return self.count_mechanism is not None or self.value_format is not None

    @property
    def workload(self) -> Workload:
        return Workload(self.source.typed, self.d, self.k, self.has_numbers)

    def describe(self) -> dict[str, Any]:
        """Return nothing: the source and the guarantee hold every public parameter of a list."""
        return {}

    def prepare(self, tally: Tally) -> Prepared:
        """Return the mechanism prepared on the tally of the source."""
        promised = self.guarantee
        return promised.mechanism.prepare(tally, self.k, promised.selection_epsilon, promised.sensitivity)

    def draw(self, randomness: Randomness) -> Release:
        """Take a snapshot, tally the scores, draw ranks, look up the items, and return the release."""
        if self.takes_all_items and self.count_mechanism is None:
            return self.make_release(self.source.every_item(), Drawn(), randomness)
        # An overflow of a float depends on the scores, so the caller's NumPy settings must not raise an error for it.
        with np.errstate(all="ignore"), self.source.snapshot() as snapshot:
            drawn = self.draw_selection(snapshot.tally, randomness)
            items = snapshot.items(drawn.selection)
        return self.make_release(items, drawn, randomness)

    def draw_selection(self, tally: Tally, randomness: Randomness) -> Drawn:
        """Draw the ranks to release, and read the scores that counts and a shortfall need."""
        selection = Selection(np.arange(self.k)) if self.takes_all_items else randomness.select(self.prepare(tally))
        chosen, lead = selection.chosen, None
        scores: list[Fraction] = []
        values: list[int] = []
        if selection.values is not None and self.value_format is not None:
            values = selection.values.to_steps(self.value_format.grid)
        if self.count_mechanism is not None:
            selection = Selection(selection.draw_ranks())
            scores = [tally.exact(rank) for rank in selection.ranks.tolist()]
        if self.shortfall_mechanism is not None and not selection.is_empty:
            # The items must be those whose scores are read here, so nothing may be left to draw.
            if selection.subset is not None:
                selection = Selection(selection.draw_ranks())
            lead = find_lead(tally, selection)
        return Drawn(selection, scores, values, chosen, lead)

    def make_release(self, items: list[Any] | Ranks, drawn: Drawn, randomness: Randomness) -> Release:
        """Return the release of the drawn items, with their noisy counts or their values where there are any."""
        mechanism, counted, form = self.guarantee.mechanism, self.count_mechanism, self.value_format
        listed = check_items(items, self.k, mechanism.may_release_fewer)
        has_order = mechanism.ordered and not self.takes_all_items
        labels: list[Any] = []
        if has_order or counted is not None:
            labels = items.tolist() if isinstance(items, np.ndarray) else items
        order, counts = labels if has_order else None, None
        if counted is not None and randomness.noise is not None:
            counts = counted.add_noise(labels, drawn.scores, randomness.noise)
        if form is not None and drawn.values:
            # The released order is that of the values before they are rounded.
            counts = [form.make_count(item, steps) for item, steps in zip(order or [], drawn.values, strict=True)]
        shortfall = None
        if self.shortfall_mechanism is not None and drawn.lead is not None and randomness.noise is not None:
            shortfall = self.shortfall_mechanism.add_noise(drawn.lead, randomness.noise)
        asked = self.k if mechanism.may_release_fewer else None
        return Release(
            listed, order, self.d, self.guarantee, randomness.private, counts, asked, drawn.chosen, shortfall
        )


@dataclass(frozen=True, eq=False, repr=False)
class GroupedRequest:
    """A request for a list in each group; the scores stay unread in the source.

    Attributes
    ----------
    source
        The source of the scores.
    requests
        The request of each group, in the order of the source; its guarantee is the group's own share.
    guarantee
        The guarantee of the release of all groups.
    """

    source: GroupedSource
    requests: Sequence[Request]
    guarantee: Guarantee

    @property
    def k(self) -> int:
        """The number of items to release in each group."""
        return self.requests[0].k

    @property
    def d(self) -> int:
        """The number of items in the largest group."""
        return max(request.d for request in self.requests)

    @property
    def takes_all_items(self) -> bool:
        """True if every group is released whole, which needs no draw and costs nothing."""
        return all(request.takes_all_items for request in self.requests)

    @property
    def has_counts(self) -> bool:
        """True if the release has counts; either all groups have counts or none has."""
        return self.requests[0].count_mechanism is not None

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.requests)

    def describe(self) -> dict[str, Any]:
        """Return nothing: the source and the requests of the groups hold every public parameter."""
        return {}

    @property
    def workload(self) -> Workload:
        typed = all(request.source.typed for request in self.requests)
        items, groups = sum(request.d for request in self.requests), len(self.requests)
        return Workload(typed, items, self.k * groups, self.requests[0].has_numbers, groups)

    def draw(self, randomness: Randomness) -> GroupedRelease:
        """Take one snapshot of all groups, draw one group after the other, and look up the items of all at once."""
        from discreet.release.grouped import GroupedRelease

        source, requests = self.source, self.requests
        items: list[list[Any] | Ranks]
        if self.takes_all_items and not self.has_counts:
            drawn = [Drawn() for _ in requests]
            # Groups that share a source share its list of items, which is read once.
            sources = {id(request.source): request.source for request in requests}
            listed = {number: one.every_item() for number, one in sources.items()}
            items = [listed[id(request.source)] for request in requests]
        else:
            drawn, picks = [], []
            with (
                np.errstate(all="ignore"),
                source.snapshot() as snapshot,
                count_steps("drawing", "groups", len(requests)) as advance,
            ):
                for group, (request, tally) in enumerate(zip(requests, snapshot.tallies(), strict=True)):
                    advance(group)
                    drawn.append(request.draw_selection(tally, randomness))
                    picks.append(snapshot.pick(drawn[-1].selection))
                items = snapshot.items(picks)
        releases = {
            key: request.make_release(found, one, randomness)
            for key, request, found, one in zip(source.keys, requests, items, drawn, strict=True)
        }
        return GroupedRelease(releases, self.guarantee, source.each_user, source.groups_per_user, source.names)


def check_items(items: list[Any] | Ranks, k: int, may_be_fewer: bool) -> list[Any]:
    """Return the items sorted by label; raise InternalError unless they are distinct and k, or fewer if allowed."""
    listed = sort_labels(items)
    # Labels that compare equal, such as the two hours of a clock that is set back, differ in their sort keys.
    kinds = {type(item) for item in listed}
    simple = kinds <= {str} or kinds <= {int}
    distinct = len(set(listed if simple else map(sort_key, listed)))
    if distinct < len(listed) or not (len(listed) == k or (may_be_fewer and len(listed) < k)):
        raise InternalError
    return listed


@dataclass(frozen=True)
class Asked:
    """The arguments of `top_k` beside the scores, as the caller gave them, unchecked."""

    k: Any
    epsilon: Any
    mechanism: Any = None
    sensitivity: Any = None
    adjacency: Any = None
    counts: Any = None
    split: Any = None
    shortfall: Any = None

    def check_mechanism(self) -> Mechanism:
        """Return the checked mechanism, or the default if none was given."""
        return DEFAULT if self.mechanism is None else check_mechanism(self.mechanism)


@dataclass(frozen=True)
class GroupShare:
    """One of several groups; its share of a budget is one part in `groups_per_user`, the contribution bound."""

    key: Any
    groups_per_user: int


Terms = tuple[int, Guarantee, CountMechanism | None, CountFormat | None, ShortfallMechanism | None]
"""The fields of a request after its source."""


def make_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> Request:
    """Return the request for one list that the arguments of `top_k` describe; `terms` are the fields of `Asked`."""
    source = as_source(scores)
    return Request(source, *make_terms(source, Asked(k, epsilon, **terms)))


def make_listed_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> Request | GroupedRequest:
    """Return the request that the arguments of `top_k` describe for scores of one public list or of several groups."""
    make = make_grouped_request if isinstance(scores, GroupedSource) else make_request
    return make(scores, k, epsilon, **terms)


def make_grouped_request(source: GroupedSource, k: Any, epsilon: Any, **terms: Any) -> GroupedRequest:
    """Return the request that the arguments of `top_k` describe for a source by group; `terms` are `Asked`'s."""
    asked = Asked(k, epsilon, **terms)
    known: dict[tuple[Any, ...], Terms] = {}
    requests = []
    for key, each in zip(source.keys, source.members, strict=True):
        # Terms depend on these public facts alone, so that groups with equal facts share their terms.
        facts = (
            each.d, each.grid, each.between_steps, each.sensitivity, each.fractional, each.max_items_per_user,
            each.adjacency,
        )  # fmt: skip
        if facts not in known:
            known[facts] = make_terms(each, asked, GroupShare(key, source.groups_per_user))
        requests.append(Request(each, *known[facts]))
    first, *others = [guarantee for _, guarantee, *_ in known.values()]
    for other in others:
        for name, one, another in (
            ("adjacency", first.adjacency, other.adjacency),
            ("sensitivity", first.sensitivity.sides, other.sensitivity.sides),
        ):
            if one != another:
                raise InvalidValueError(f"{name} must be the same for all groups, and is {one!r} and {another!r}")
    check_group_mechanism(first.mechanism, first.adjacency)
    return GroupedRequest(source, requests, _total_guarantee(requests, source.groups_per_user))


def _total_guarantee(requests: list[Request], groups_per_user: int) -> Guarantee:
    """Return the guarantee of all groups together: sums over the costliest groups that one user can be in."""
    promised = {id(request.guarantee): request.guarantee for request in requests}
    sizes = Counter(id(request.guarantee) for request in requests)

    def add_up(cost: Callable[[Guarantee], Fraction]) -> Fraction:
        costs = [(cost(guarantee), sizes[number]) for number, guarantee in promised.items()]
        return sum_of_largest(costs, groups_per_user)

    epsilon, counts = add_up(lambda each: each.epsilon), add_up(lambda each: each.counts_epsilon)
    shortfall = add_up(lambda each: each.shortfall_epsilon)
    # A group that is released whole spends all on its counts, others spend on both: then no split holds for all groups.
    is_split = add_up(lambda each: each.selection_epsilon) + counts + shortfall == epsilon
    rho, first = add_up(lambda each: each.zcdp), requests[0].guarantee
    # Groups of few items may have less noise; the total guarantee states the largest sensitivity.
    limit = max((each.sensitivity for each in promised.values()), key=lambda one: one.l1 or 0)
    parts = (counts, shortfall) if is_split else (Fraction(0), Fraction(0))
    whole = replace(first, epsilon=epsilon, sensitivity=limit, zcdp=rho)
    return replace(whole, counts_epsilon=parts[0], shortfall_epsilon=parts[1])


def make_terms(source: Source, asked: Asked, group: GroupShare | None = None) -> Terms:
    """Check the terms on which k items of a source, or of one of several groups, are released, and return them."""
    budget, counts, split = positive(asked.epsilon, "epsilon"), asked.counts, asked.split
    chosen = asked.check_mechanism()
    for name, given in (("counts", counts), ("split", split)):
        if chosen.releases_values and given is not None:
            raise InvalidValueError(f"{name} must be left out with {chosen!r}, whose releases have values already")
    has_counts = counts is not None or split is not None
    if has_counts:
        check_counts(source.grid, counts, split)
    neighbours = check_source_adjacency(source.adjacency, asked.adjacency)
    own = find_sensitivity(source, asked.sensitivity)
    limit, most = own.under(neighbours), find_items_per_user(source, own)
    if chosen.releases_values:
        if most is None:
            raise InvalidValueError(
                f"mechanism must not be {chosen!r} unless it is known how many items one user touches at most, because "
                "its noise is for all scores together: give events max_items_per_user, or scores a "
                "Sensitivity(down, up, items=...)"
            )
        l1 = l1_distance if group is None else l1_distance_by_group
        limit = limit.with_l1(l1(Reach.of(own), neighbours, source.d, most))
    where = "" if group is None else f" in the group {quote(group.key)}"
    size = whole_number(asked.k, "k", 1, source.d, f"{source.d}, the number of items{where}")
    rest = bound = Fraction(0)
    if asked.shortfall is not None:
        budget, bound = split_shortfall(budget, asked.shortfall, source.grid, size, source.d, where)
    selection = Fraction(0) if is_free(chosen, size, source.d) else budget
    if has_counts:
        selection, rest = split_budget(budget, selection, counts, split)
    if group is not None:
        selection, rest, bound = (part / group.groups_per_user for part in (selection, rest, bound))
    # Sequential composition: epsilon and rho of selection, counts and shortfall add up; e-DP is e^2/2-zCDP.
    rho, total = chosen.zcdp(selection, size) + rest**2 / 2 + bound**2 / 2, selection + rest + bound
    guarantee = Guarantee(total, neighbours, limit, chosen, rho, rest, shortfall_epsilon=bound)
    # A source that knows its sensitivity counts users or sums clipped values: with down = 0 no score is negative.
    # Scores of the caller's own may start anywhere.
    floor = source.sensitivity is not None and source.sensitivity.down == 0
    counted, form = None, None
    if rest and source.grid is not None:
        reach = own, neighbours, source.grid, size, most
        counted = make_count_mechanism(*reach, rest, floor=floor, grouped=group is not None)
    if limit.l1 is not None and source.grid is not None:
        form = make_value_format(source.grid, limit.l1, selection, source.d, floor=floor)
        if source.between_steps:
            # A score between two steps is up to half a step away from its rounded value.
            form = replace(form, half_width=form.half_width + 1)
    shortfall = None
    if bound and source.grid is not None:
        shortfall = make_shortfall_mechanism(
            own, neighbours, source.grid, bound, source.between_steps, source.max_items_per_user
        )
    return size, guarantee, counted, form, shortfall


def is_free(mechanism: Mechanism, k: int, d: int) -> bool:
    """Return True if all items are released without values, which needs no draw and costs nothing."""
    return k == d and not mechanism.releases_values


def find_items_per_user(source: Source, own: Sensitivity | None) -> int | None:
    """Return the contribution bound in items, from the source or from the sensitivity; None for unbounded."""
    if source.max_items_per_user is not None:
        return source.max_items_per_user
    return None if own is None else own.items


def check_source_adjacency(own: str | None, given: Any) -> str:
    """Return the adjacency of a release: that of its source, if it has one, which the caller may only repeat."""
    if given is not None:
        check_adjacency(given)
    if own is not None and given not in (None, own):
        raise InvalidValueError(f"adjacency must be that of the source, {own!r}, or left out, not {given!r}")
    return str(given or own or "add-remove")


def check_group_mechanism(mechanism: Mechanism, adjacency: str) -> None:
    """Raise unless the privacy loss of a user who only leaves or joins a group is at most half that of a swap."""
    if adjacency == "swap" and not mechanism.is_linear:
        raise InvalidValueError(
            f"mechanism must not be {mechanism!r} for groups under 'swap': a user who leaves one group for "
            "another would cost it more than epsilon"
        )


def find_sensitivity(source: Source, given: Any) -> Sensitivity:
    """Return the sensitivity of adding one user, from the source or else from the caller.

    Whole numbers are counts of users by default. Floats have no default.
    """
    if source.sensitivity is None:
        if given is None and source.fractional:
            raise InvalidTypeError(
                "sensitivity must be given for scores that are not whole numbers by their type, because nothing says "
                "how far one person can move them; for counts of people pass "
                "sensitivity=discreet.Sensitivity(down=0, up=1), which is --sensitivity 0,1 on the command line"
            )
        return sensitivity_or_default(given)
    if given is not None:
        raise InvalidValueError("sensitivity must be left out, because the source knows its own")
    return source.sensitivity
