"""Request: k items of a source, or of each of its groups, and what their release promises.

Every public parameter of a release is checked here, in one place and before anything private is read. What selects,
verifies, analyses or charges a release takes the request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np

from discreet.errors import InternalError, InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Ranks
from discreet.exact.discrete import sample_discrete_laplace
from discreet.exact.entropy import Entropy, as_entropy
from discreet.labels import sort_key, sort_labels
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity, check_adjacency, positive, sensitivity_or_default, whole_number
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
from discreet.release.padding import Workload
from discreet.release.release import Release
from discreet.sources.base import AnySource, Source
from discreet.sources.scores import as_source


@dataclass(frozen=True)
class Randomness:
    """The random choices of one release.

    Attributes
    ----------
    select
        Draws a selection from a prepared mechanism.
    noise
        Draws n with probability proportional to exp(-rate |n|), for the rate that it is given; None for no counts.
    entropy
        The source of random bits.
    private
        False where the bits come from a generator that a test passed.
    """

    select: Callable[[Prepared], Selection]
    noise: Callable[[Fraction], int] | None = None
    entropy: Entropy = field(default_factory=Entropy)
    private: bool = True

    @classmethod
    def of(cls, rng: Any) -> Randomness:
        """Return the choices by the bits of a generator, or of the operating system where `rng` is None."""
        entropy = as_entropy(rng)

        def select(prepared: Prepared) -> Selection:
            return prepared.select(entropy)

        return cls(select, partial(sample_discrete_laplace, entropy), entropy, rng is None)


@dataclass(frozen=True)
class Drawn:
    """The outcome of a draw on a tally.

    Attributes
    ----------
    selection
        The ranks that are released.
    scores
        Their exact scores, where counts are released.
    values
        Their noisy values in steps of the grid, where the mechanism releases values.
    chosen
        The candidate that the mechanism chose, where it chooses between several.
    """

    selection: Selection = field(default_factory=lambda: Selection(np.empty(0, np.int64)))
    scores: list[Fraction] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    chosen: str | None = None


class AnyRequest(Protocol):
    """A request of any kind: a list, lists by group, items to be found, or a sketch."""

    @property
    def source(self) -> AnySource:
        """Where the scores come from."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the release."""

    @property
    def workload(self) -> Workload:
        """The public sizes that say how long the release takes."""

    def draw(self, randomness: Randomness) -> Any:
        """Draw the release."""


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
    value_format
        How the values that the mechanism itself releases are reported, or None where it releases none.
    """

    source: Source
    k: int
    guarantee: Guarantee
    count_mechanism: CountMechanism | None = None
    value_format: CountFormat | None = None

    @property
    def d(self) -> int:
        """How many items the public domain has."""
        return self.source.d

    @property
    def takes_all_items(self) -> bool:
        """Whether the selection is the whole domain, which needs no draw and costs nothing."""
        return is_free(self.guarantee.mechanism, self.k, self.d)

    @property
    def has_numbers(self) -> bool:
        """Whether each item comes with a count, or with a value that takes as long to round as a count to draw."""
        return self.count_mechanism is not None or self.value_format is not None

    @property
    def workload(self) -> Workload:
        """What says how long the release takes."""
        return Workload(self.source.typed, self.d, self.k, self.has_numbers)

    def prepare(self, tally: Tally) -> Prepared:
        """Return the mechanism on the scores of the source."""
        promised = self.guarantee
        return promised.mechanism.prepare(tally, self.k, promised.selection_epsilon, promised.sensitivity)

    def draw(self, randomness: Randomness) -> Release:
        """Take a snapshot, tally the scores, draw ranks, look up the items, and return the release."""
        if self.takes_all_items and self.count_mechanism is None:
            return self.make_release(self.source.every_item(), Drawn(), randomness)
        # Whether a float overflows depends on the scores: no setting of the caller's may turn that into an error.
        with np.errstate(all="ignore"), self.source.snapshot() as snapshot:
            drawn = self.draw_ranks(snapshot.tally, randomness)
            items = snapshot.items(drawn.selection)
        return self.make_release(items, drawn, randomness)

    def draw_ranks(self, tally: Tally, randomness: Randomness) -> Drawn:
        """Draw which ranks of a tally are released, and read what is released of their scores."""
        selection = Selection(np.arange(self.k)) if self.takes_all_items else randomness.select(self.prepare(tally))
        values: list[int] = []
        if selection.values is not None and self.value_format is not None:
            values = selection.values.to_steps(self.value_format.grid)
        if self.count_mechanism is None:
            return Drawn(selection, [], values, selection.chosen)
        ranks = selection.draw_ranks()
        return Drawn(Selection(ranks), [tally.exact(rank) for rank in ranks.tolist()], values, selection.chosen)

    def make_release(self, items: list[Any] | Ranks, drawn: Drawn, randomness: Randomness) -> Release:
        """Return the release of the drawn items, with noise on their scores or with their values, if there are any."""
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
            # In the released order, which is that of the values before they are rounded.
            counts = [form.make_count(item, steps) for item, steps in zip(order or [], drawn.values, strict=True)]
        asked = self.k if mechanism.may_release_fewer else None
        return Release(listed, order, self.d, self.guarantee, randomness.private, counts, asked, drawn.chosen)


def check_items(items: list[Any] | Ranks, k: int, may_be_fewer: bool) -> list[Any]:
    """Return the items sorted by label; raise InternalError unless they are distinct, and k or, if allowed, fewer."""
    listed = sort_labels(items)
    # Two labels that Python calls equal, such as the two hours of a clock that is set back, differ in their keys.
    kinds = {type(item) for item in listed}
    simple = kinds <= {str} or kinds <= {int}
    distinct = len(set(listed if simple else map(sort_key, listed)))
    if distinct < len(listed) or not (len(listed) == k or (may_be_fewer and len(listed) < k)):
        raise InternalError
    return listed


@dataclass(frozen=True)
class Asked:
    """What `top_k` is asked for beside the scores, as the caller gave it: nothing of it has been checked."""

    k: Any
    epsilon: Any
    mechanism: Any = None
    sensitivity: Any = None
    adjacency: Any = None
    counts: Any = None
    split: Any = None

    def check_mechanism(self) -> Mechanism:
        """The mechanism, which is the default where none was given."""
        return DEFAULT if self.mechanism is None else check_mechanism(self.mechanism)


def make_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> Request:
    """The request that the arguments of `top_k` describe; the terms are those of `Asked`."""
    source = as_source(scores)
    return Request(source, *make_terms(source, Asked(k, epsilon, **terms)))


Terms = tuple[int, Guarantee, CountMechanism | None, CountFormat | None]
"""What a request is besides its source: k, what is promised, what makes the counts, and how values are reported."""


def make_terms(source: Source, asked: Asked, group: GroupShare | None = None) -> Terms:
    """The terms on which k items of a source are released, checked: by itself, or as one of several groups."""
    budget, counts, split = positive(asked.epsilon, "epsilon"), asked.counts, asked.split
    chosen = asked.check_mechanism()
    _refuse_counts_beside_values(chosen, counts, split)
    check_counts(source.grid, counts, split)
    neighbours = check_source_adjacency(source.adjacency, asked.adjacency)
    own = find_sensitivity(source, asked.sensitivity)
    limit = _limit_in_force(chosen, source, own, neighbours, grouped=group is not None)
    where = "" if group is None else f" in the group {quote(group.key)}"
    size = whole_number(asked.k, "k", 1, source.d, f"{source.d}, the number of items{where}")
    parts = split_budget(budget, counts, split, everything=is_free(chosen, size, source.d))
    selection, rest = parts if group is None else (part / group.groups_per_user for part in parts)
    # Both privacy parameters of two releases add up, whatever the second makes of the first; rest-DP is rest^2/2-zCDP.
    rho, total = chosen.zcdp(selection, size), selection
    if rest:
        rho, total = rho + rest**2 / 2, selection + rest
    guarantee = Guarantee(total, neighbours, limit, chosen, rho, rest)
    counted = _count_mechanism(source, size, own, guarantee, grouped=group is not None)
    return size, guarantee, counted, _value_format(source, guarantee)


def is_free(mechanism: Mechanism, k: int, d: int) -> bool:
    """Whether all items are released, without a draw and so for nothing; not where their values come with them."""
    return k == d and not mechanism.releases_values


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
    most = find_items_per_user(source, own)
    reach = own, guarantee.adjacency, source.grid, k, most
    return make_count_mechanism(*reach, epsilon, floor=_is_never_negative(source), grouped=grouped)


def _is_never_negative(source: Source) -> bool:
    """Whether no score can be below zero: counts of users cannot, nor sums of clipped values where none takes away.

    A source that knows its own sensitivity makes such scores. Of those that a caller hands in that is not known: a user
    who can only add to a score says nothing of where it begins.
    """
    return source.sensitivity is not None and source.sensitivity.down == 0


def find_items_per_user(source: Source, own: Sensitivity | None) -> int | None:
    """How many scores one user can move at most, as the source or the sensitivity of its scores says; None for all."""
    if source.max_items_per_user is not None:
        return source.max_items_per_user
    return None if own is None else own.items


def _limit_in_force(
    mechanism: Mechanism, source: Source, own: Sensitivity, adjacency: str, grouped: bool
) -> Sensitivity:
    """How far scores move between neighbours: each, and all together where the mechanism goes by that."""
    limit = own.under(adjacency)
    if not mechanism.releases_values:
        return limit
    most = find_items_per_user(source, own)
    if most is None:
        raise InvalidValueError(
            f"mechanism must not be {mechanism!r} unless it is known how many items one user touches at most, because "
            "its noise is for all scores together: give events max_items_per_user, or scores a "
            "Sensitivity(down, up, items=...)"
        )
    l1 = l1_distance_by_group if grouped else l1_distance
    return limit.with_l1(l1(Reach.of(own), adjacency, source.d, most))


def _value_format(source: Source, guarantee: Guarantee) -> CountFormat | None:
    """How values are reported that come with the selection, where scores have a grid."""
    l1 = guarantee.sensitivity.l1
    if l1 is None or source.grid is None:
        return None
    epsilon = guarantee.selection_epsilon
    form = make_value_format(source.grid, l1, epsilon, source.d, floor=_is_never_negative(source))
    # A value is then up to half a step farther from the score that was rounded with it.
    return replace(form, half_width=form.half_width + 1) if source.between_steps else form


def _refuse_counts_beside_values(mechanism: Mechanism, counts: Any, split: Any) -> None:
    for name, given in (("counts", counts), ("split", split)):
        if mechanism.releases_values and given is not None:
            raise InvalidValueError(f"{name} must be left out with {mechanism!r}, whose releases have values already")


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
    """Return how far adding one user can move a score: what the source knows, or else what the caller says.

    Whole numbers are taken for counts of users by default. Nothing says how far a user moves a float.
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
