"""Faults for the self-test: each context manager replaces one function of discreet by a wrong one while it is open.

The faults are those that a sampler of this kind can have: too little noise, wrong class sizes, a bias in a draw, ranks
that are mapped to the wrong items, and users who count for more than they should.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ibis
import numpy as np
from flint import arb

from discreet.evidence import groups
from discreet.evidence.number_rows import GRID
from discreet.exact.arrays import Ranks
from discreet.exact.ball import ball
from discreet.exact.discrete import upper_tail
from discreet.exact.entropy import Entropy
from discreet.exact.nested import Enclosure, log_slack
from discreet.mechanisms import canonical, canonical_nested, core, weighted_discovery
from discreet.mechanisms.adaptive_discovery import SHARE_STEPS, AdaptiveDiscovery, SharedItems
from discreet.mechanisms.canonical import Class
from discreet.mechanisms.discovery import Discovery
from discreet.mechanisms.registry import MECHANISMS
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity
from discreet.release import counts, discovery_request, request, shortfall
from discreet.sources.arrays.positions import PositionFinder
from discreet.sources.arrays.sorting import LARGE, BucketColumn
from discreet.sources.events import unlisted
from discreet.sources.events.unlisted import UnlistedScoring, UnlistedTableSnapshot

Plant = Callable[[], AbstractContextManager[None]]


@contextmanager
def replace_attribute(owner: Any, name: str, wrong: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute of a module or class by `wrong(attribute)` while the context is open."""
    right = vars(owner)[name]
    setattr(owner, name, wrong(right))
    try:
        yield
    finally:
        setattr(owner, name, right)


def wrong_scale(factor: Fraction) -> Plant:
    """Return a fault that multiplies the cost of one unit of loss by a factor, in all mechanisms."""

    def scale_wrongly(right: Any) -> Any:
        def scale(epsilon: Fraction, sensitivity: Sensitivity) -> Fraction:
            return factor * Fraction(right(epsilon, sensitivity))

        return scale

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            for kind in MECHANISMS.values():
                stack.enter_context(replace_attribute(sys.modules[kind.__module__], "scale", scale_wrongly))
            yield

    return plant


def printed_class_size() -> AbstractContextManager[None]:
    """Use the class size of Algorithm 1 of the paper as printed, with ranks from 1.

    It reads m += log((t - (h+1)) / (k - (h+1))) for h = k-2 down to 0.
    """

    def log_size(self: canonical.Prepared, cell: Class) -> arb:
        (h, t), k, size = cell, self.top[0], Fraction(1)
        if cell != self.top:
            for head in range(k - 2, h - 1, -1):
                size *= Fraction((t + 1) - (head + 1), k - (head + 1))
        return ball(size).log()

    return replace_attribute(canonical.Prepared, "log_size", lambda right: log_size)


def biased_subset() -> AbstractContextManager[None]:
    """Draw the members of a subset by the remainder of random bits, which makes some of them more likely."""

    def subset(self: Entropy, size: int, last: int) -> Ranks:
        chosen: set[int] = set()
        while len(chosen) < size:
            chosen.add(self.bits(last.bit_length()) % (last + 1))
        return np.array(sorted(chosen), np.int64)

    return replace_attribute(Entropy, "subset", lambda right: subset)


def no_thinning() -> AbstractContextManager[None]:
    """Keep every arrival of a box, as if all its classes were as large as its bound."""

    def arrive(self: canonical._Streams, j: int, entropy: Entropy) -> Class:
        return self.prepared.top if j == 0 else self.boxes.cell(j - 1, entropy)

    return replace_attribute(canonical._Streams, "arrive", lambda right: arrive)


def no_acceptance() -> AbstractContextManager[None]:
    """Accept every class that is proposed, as if all classes of a cell were as heavy as its bound."""
    return replace_attribute(canonical_nested, "sample_bernoulli_exp", lambda right: lambda *_: True)


@contextmanager
def low_bounds() -> Iterator[None]:
    """Lower the bounds on nested classes by 7%, except on those that hold the top-k alone, and remove all checks.

    The bounds are not checked when they are built, and an acceptance probability above 1, which would end a
    draw, counts as 1.
    """

    def lower_bounds(right: Any) -> Any:
        def enclose(top: Any, bottom: Any) -> Any:
            cells = right(top, bottom)
            return replace(cells, log_masses=cells.log_masses + math.log(0.93) * (cells.b.last > 0))

        return enclose

    def skip_checks(cells: Enclosure, k: int, m: int, bits: int) -> float:
        return log_slack(k, m, len(cells.a.first), bits)

    def accept(right: Any) -> Any:
        return lambda entropy, log_probability, bounds: right(entropy, lambda: log_probability().min(arb(0)))

    with (
        replace_attribute(canonical_nested, "begin", lower_bounds),
        replace_attribute(canonical_nested, "check_bounds", lambda right: skip_checks),
        replace_attribute(canonical_nested, "sample_bernoulli_exp", accept),
    ):
        yield


@contextmanager
def next_rank() -> Iterator[None]:
    """Release the item one rank below the one that was drawn."""

    def shift(right: Any) -> Any:
        return lambda self, ranks: right(self, (ranks + 1) % len(self.scores))

    def one_by_one(right: Any) -> Any:
        return lambda self, selection: self.find(selection.draw_ranks())

    with (
        replace_attribute(PositionFinder, "find", shift),
        replace_attribute(PositionFinder, "find_selected", one_by_one),
    ):
        yield


def shifted_range() -> AbstractContextManager[None]:
    """Shift ranges of ranks by one in large arrays."""

    def shift(right: Any) -> Any:
        def find_selected(self: PositionFinder, selection: Selection) -> Any:
            subset = selection.subset
            if subset is not None and subset.last < self.tally.d - 1 >= LARGE - 1:
                shifted = replace(subset, first=subset.first + 1, last=subset.last + 1)
                selection = replace(selection, subset=shifted, cuts_no_run=False)
            return right(self, selection)

        return find_selected

    return replace_attribute(PositionFinder, "find_selected", shift)


def shifted_buckets() -> AbstractContextManager[None]:
    """Return the score one rank lower from an array that is sorted into buckets."""

    def shift(right: Any) -> Any:
        return lambda self, positions: right(self, np.maximum(positions - 1, 0))

    return replace_attribute(BucketColumn, "raw", shift)


def planned_with_half_the_noise() -> AbstractContextManager[None]:
    """Plan the noise of counts at twice the rate."""

    def double_rate(right: Any) -> Any:
        def make_count_mechanism(*arguments: Any, **options: Any) -> Any:
            made = right(*arguments, **options)
            return replace(made, rate=2 * made.rate)

        return make_count_mechanism

    return replace_attribute(request, "make_count_mechanism", double_rate)


def drawn_with_half_the_noise() -> AbstractContextManager[None]:
    """Plan the noise of counts correctly, and draw it at twice the rate."""

    def double_rate(right: Any) -> Any:
        return lambda entropy, rate: right(entropy, 2 * rate)

    return replace_attribute(request, "sample_discrete_laplace", double_rate)


def shortfall_with_half_the_noise() -> AbstractContextManager[None]:
    """Draw the noise of a shortfall at twice its rate."""

    def double_rate(right: Any) -> Any:
        return lambda self, lead, noise: right(self, lead, lambda rate: noise(2 * rate))

    return replace_attribute(shortfall.ShortfallMechanism, "add_noise", double_rate)


def shortfall_of_rounded_scores() -> AbstractContextManager[None]:
    """Round the two scores of a lead to the grid of the verifier's sums, one by one, in place of the lead."""

    def find_lead(tally: Tally, selection: Selection) -> Fraction:
        ranks = selection.draw_ranks()
        left_out = min(set(range(tally.d)) - set(ranks.tolist()))
        first, last = (counts.round_half_up(tally.exact(rank) / GRID) for rank in (left_out, int(ranks.max())))
        return (first - last) * GRID

    return replace_attribute(request, "find_lead", lambda right: find_lead)


def shortfall_moved_by_one_side() -> AbstractContextManager[None]:
    """Take max(down, up) for the sensitivity of a lead, as if a user moved one of its two scores."""

    def count_steps(right: Any) -> Any:
        def shortfall_steps(limit: Sensitivity, adjacency: str, grid: Fraction) -> Any:
            return right(Sensitivity(0, max(limit.down, limit.up)), adjacency, grid)

        return shortfall_steps

    return replace_attribute(shortfall, "shortfall_steps", count_steps)


def shortfall_among_kept_items() -> AbstractContextManager[None]:
    """Take the largest score left out among the kept items alone."""

    def among_kept(right: Any) -> Any:
        def release_found(self: Any, found: Any, randomness: Any, largest: Any = (), method: Any = None) -> Any:
            return right(self, found, randomness, sorted(found.scores, reverse=True), method)

        return release_found

    return replace_attribute(discovery_request.DiscoveryRequest, "_release_found", among_kept)


def shortfall_among_counted_items() -> AbstractContextManager[None]:
    """Take the largest score left out among the items that count for somebody."""

    def drop_uncounted(self: UnlistedScoring, scored: Any) -> Any:
        return scored.filter(scored.users > 0)

    return replace_attribute(UnlistedScoring, "_drop_uncounted", lambda right: drop_uncounted)


def left_in_all_groups() -> AbstractContextManager[None]:
    """Count a user in all groups where the user has rows, although each user counts in one."""
    return replace_attribute(groups, "choose_groups", lambda right: lambda rows, each_user, most: sorted(rows))


def whole_epsilon_for_each_group() -> AbstractContextManager[None]:
    """Release each group with the whole epsilon in place of its share, and state epsilon for all of them."""
    return replace_attribute(request, "GroupShare", lambda right: lambda key, groups_per_user: right(key, 1))


def swap_counted_once_in_groups() -> AbstractContextManager[None]:
    """Draw counts by group with the noise of one list, as if a replaced user stayed in the group."""
    return replace_attribute(counts, "l1_steps_by_group", lambda right: counts.l1_steps)


def threshold_one_less() -> AbstractContextManager[None]:
    """Lower the threshold of discovery by one user."""
    return replace_attribute(Discovery, "threshold", lambda right: property(lambda self: right.func(self) - 1))


def all_items_of_a_user_count() -> AbstractContextManager[None]:
    """Count all items of a user in discovery, however many there are."""

    def lift_limit(right: Any) -> Any:
        def count_users(self: UnlistedScoring, *arguments: Any) -> Any:
            return right(replace(self, max_items_per_user=2**31), *arguments)

        return count_users

    return replace_attribute(UnlistedScoring, "_count_users", lift_limit)


@contextmanager
def rows_as_people() -> Iterator[None]:
    """Count every row of a user, in discovery and in the score."""
    with (
        replace_attribute(UnlistedScoring, "_add_up_by_user", lambda right: lambda self, rows, within=(): rows),
        replace_attribute(UnlistedScoring, "_hash", lambda right: lambda *_: ibis.row_number()),
    ):
        yield


@contextmanager
def uncounted_items_kept() -> Iterator[None]:
    """Let noise keep an item that counts for no user because its users are beyond their limit."""

    def keep_probability(self: Discovery, users: int) -> arb:
        return upper_tail(self.rate, self.threshold - users)

    def runs(self: UnlistedTableSnapshot) -> list[tuple[Ranks, Ranks]]:
        return [(np.array(users, np.int64), np.array(items, np.int64)) for users, items in self.lookup.runs()]

    with (
        replace_attribute(UnlistedTableSnapshot, "runs", lambda right: runs),
        replace_attribute(UnlistedScoring, "_drop_uncounted", lambda right: lambda self, scored: scored),
        replace_attribute(Discovery, "keep_probability", lambda right: keep_probability),
    ):
        yield


def counts_bounded_like_discovery() -> AbstractContextManager[None]:
    """Draw counts with the noise for users of one item, as discovery bounds them, although all items count."""

    def bound(right: Any) -> Any:
        def make_count_mechanism(
            sensitivity: Any, adjacency: Any, grid: Any, k: Any, _: Any, *rest: Any, **more: Any
        ) -> Any:
            return right(sensitivity, adjacency, grid, k, 1, *rest, **more)

        return make_count_mechanism

    return replace_attribute(discovery_request, "make_count_mechanism", bound)


def whole_delta_for_each_group() -> AbstractContextManager[None]:
    """Let each group find items with the whole epsilon and delta, and state them for all groups together."""

    def keep_whole(right: Any) -> Any:
        return lambda self: replace(self, max_groups_per_user=1)

    return replace_attribute(Discovery, "share_of_group", keep_whole)


def weights_not_scaled() -> AbstractContextManager[None]:
    """Let every item of a user count for 1, however many items the user has."""
    return replace_attribute(unlisted, "weigh_on_engine", lambda right: lambda own: right(own * 0))


def threshold_for_one_item() -> AbstractContextManager[None]:
    """Compute the threshold of weighted discovery for users of one item alone."""
    return replace_attribute(
        weighted_discovery, "least_cutoff", lambda right: lambda sigma, delta, most: right(sigma, delta, 1)
    )


def sigma_five_percent_low() -> AbstractContextManager[None]:
    """Draw weighted discovery with 5% less noise, and compute the threshold from that."""
    return replace_attribute(
        weighted_discovery, "least_sigma", lambda right: lambda *terms: right(*terms) * Fraction(19, 20)
    )


def choice_for_one_user() -> AbstractContextManager[None]:
    """Draw the choice of discovery as if a user moved its number by 1."""
    return replace_attribute(
        AdaptiveDiscovery, "choice_rate", lambda right: property(lambda self: self.choice_epsilon / self._sides)
    )


def choice_for_free() -> AbstractContextManager[None]:
    """Give shares all of epsilon, as if the choice had cost nothing."""
    return replace_attribute(
        AdaptiveDiscovery,
        "alternative",
        lambda right: property(lambda self: replace(right.func(self), epsilon=self.budget)),
    )


def shared_threshold_one_less() -> AbstractContextManager[None]:
    """Lower the threshold of sums of shares by one step."""
    return replace_attribute(SharedItems, "cutoff", lambda right: property(lambda self: right.func(self) - 1))


def shared_threshold_for_one_item() -> AbstractContextManager[None]:
    """Compute the threshold of sums of shares for users of one item alone."""
    return replace_attribute(
        SharedItems, "cutoff", lambda right: property(lambda self: right.func(replace(self, most_items=1)))
    )


def each_share_is_a_vote() -> AbstractContextManager[None]:
    """Let up to three items of a user have a whole vote each."""
    return replace_attribute(unlisted, "share_on_engine", lambda right: lambda own: right(own * 0 + 1))


def all_items_have_a_vote() -> AbstractContextManager[None]:
    """Let all items of a user have a vote where up to three are to share one, after the choice."""

    def take_all(self: UnlistedTableSnapshot) -> UnlistedTableSnapshot:
        scores = self.scores.select("item", "total", score=self.scores.total * SHARE_STEPS)
        return replace(self, lookup=self.lookup.count_by(scores), scores=scores)

    return replace_attribute(UnlistedTableSnapshot, "take_shares", lambda right: take_all)


def swap_counted_as_added() -> AbstractContextManager[None]:
    """Draw a histogram with the noise for an added user under both adjacencies."""

    def count_as_added(right: Any) -> Any:
        return lambda reach, adjacency, *rest: right(reach, "add-remove", *rest)

    return replace_attribute(request, "l1_distance", count_as_added)


def no_running_minimum() -> AbstractContextManager[None]:
    """Support a core by its own odds alone, without the minimum over smaller cores."""

    def exponents(odds: Sequence[arb], share: Fraction) -> list[arb]:
        supported = [one - ball(1 / share) for one in odds]
        return [ball(share / (2 * (1 - share))) * score for score in core.score_candidates(supported)]

    return replace_attribute(core, "exponents", lambda right: exponents)


def choice_for_nothing() -> AbstractContextManager[None]:
    """Give the candidates all of epsilon, as if choosing between them were free."""

    def prepare(self: core.Core, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> core.Prepared:
        return core.Prepared(self, tally, k, core.choice_share(k), epsilon, sensitivity)

    return replace_attribute(core.Core, "prepare", lambda right: prepare)


def boxes_by_scores() -> AbstractContextManager[None]:
    """End a box where the run of equal scores around its middle ends, so that boxes depend on the scores."""

    def end_at_runs(right: Any) -> Any:
        def weigh_grid(grid: core.Grid, tally: Tally, *terms: Fraction) -> Any:
            t = tally.last_of_run(grid.t)
            return right(replace(grid, t=t, is_good=grid.is_good & (t == grid.t)), tally, *terms)

        return weigh_grid

    return replace_attribute(core, "weigh_grid", end_at_runs)
