"""Find the positions of ranks in an unsorted array, without sorting it a second time.

Items are ordered by score, highest first, and equal ones by position, last first. So the item at a rank has a known
score and a known number of equals at lower positions, and the items between two ranks lie between two such items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Mask, Ranks, sorted_distinct
from discreet.mechanisms.tally import Selection, Tally, UniformSubset
from discreet.sources.arrays.sorting import BLOCK, LARGE, as_bits, iterate_blocks

_FEW = 8
"""Up to this many items are searched for one by one, in one pass over the scores; more are found by a sort."""

_SHORT = 1 << 10
"""Up to this many values an argsort by NumPy takes less time than a sort of keys."""


@dataclass(frozen=True, eq=False, repr=False)
class PositionFinder:
    """The positions of ranks, for scores in an array and their tally."""

    scores: NDArray[Any]
    tally: Tally

    def find(self, ranks: Ranks) -> Ranks:
        """Return the positions of the items at some ranks."""
        lowest = int(ranks.max())
        near, held = self._take_top(lowest)
        if len(held) <= 64 * len(ranks):
            return _take_positions(near, _argsort(held)[len(held) - 1 - ranks])
        return _take_positions(
            near, _find_equals(held, self._name_scores(ranks), self.tally.last_of_run(ranks) - ranks)
        )

    def find_selected(self, selection: Selection) -> Ranks:
        """Return the positions of a selection; draw what it leaves open, every subset being equally likely."""
        if selection.is_listed:
            return self.find(selection.ranks)
        if selection.cuts_no_run:
            return self._find_between(selection)
        head, some, single = selection.head, selection.subset, len(selection.ranks)
        ends = [0, head - 1] * (head > 0) + ([] if some is None else [some.first, some.last])
        ranks = np.concatenate([selection.ranks, ends]).astype(np.int64)
        values = self._name_scores(ranks)
        near, held = self._take_top(int(ranks.max()))
        marks = np.full(len(ranks), -1)
        marks[single::2] = len(held)
        # Single ranks are located one by one, and so are those ends of ranges that cut a run of equal scores.
        before, firsts = self.tally.last_of_run(ranks) - ranks, ranks[single::2]
        sought = np.arange(len(ranks)) < single
        sought[single::2] = (firsts > 0) & (self.tally.last_of_run(np.maximum(firsts - 1, 0)) >= firsts)
        sought[single + 1 :: 2] = before[single + 1 :: 2] > 0
        marks[sought] = _find_equals(held, values[sought], before[sought])
        ranges = [_Range(*values[i : i + 2], *marks[i : i + 2].tolist()) for i in range(single, len(ranks), 2)]
        parts = [marks[:single]]
        if head:
            parts.append(ranges[0].all(held))
        if some is not None:
            parts.append(ranges[-1].some(held, some))
        return _take_positions(near, np.concatenate(parts))

    def _find_between(self, selection: Selection) -> Ranks:
        """Return the positions of a selection whose ranges do not cut runs, so that two scores bound each range."""
        head, some, d = selection.head, selection.subset, len(self.scores)
        if some is None:
            return self._find_down_to(head - 1)
        if d < LARGE or lies_close(some, d):
            chosen = some.entropy.subset(some.count, some.last - some.first)
            if not head:
                return chosen if some.last == d - 1 else self._find_down_to(some.last).take(chosen)
            near, held = self._take_top(some.last)
            before = held > self.tally.number(some.first)
            inside = (before ^ (held >= self.tally.number(some.last))).nonzero()[0]
            return _take_positions(near, np.concatenate([before.nonzero()[0], inside.take(chosen)]))
        lowest = self.tally.number(some.last)

        def keep(positions: Ranks) -> Ranks:
            return positions if some.last == d - 1 else positions[self.scores.take(positions) >= lowest]

        return draw_inside(some, d, keep, self._find_down_to(head - 1) if head else np.empty(0, np.int64))

    def _find_down_to(self, rank: int) -> Ranks:
        """Return the positions of all items that score no less than the one at a rank."""
        lowest = self.tally.number(rank)
        return _positions_where(self.scores, lambda block: block >= lowest)

    def _name_scores(self, ranks: Ranks) -> NDArray[Any]:
        """Return the score at each rank in the type of the array."""
        values = self.tally.raw(ranks)
        if values.dtype == np.uint64:
            # The raw bits are those of the array, signed or not.
            values = values.view(np.uint64 if self.scores.dtype.kind == "u" else np.int64).astype(self.scores.dtype)
        return values

    def _take_top(self, rank: int) -> tuple[Ranks | None, NDArray[Any]]:
        """Return the positions and scores of all items down to a rank; of all items if these are many."""
        if 4 * rank > len(self.scores):
            return None, self.scores
        near = self._find_down_to(rank)
        return near, self.scores.take(near)


@dataclass(frozen=True, eq=False, repr=False)
class _Range:
    """The items between two items of an array: by score, and among the equals of either end by position."""

    high: Any
    low: Any
    first: int
    last: int

    def all(self, scores: NDArray[Any]) -> Ranks:
        """Return the positions of all items in the range."""
        return self._keep_inside(
            scores, _positions_where(scores, lambda block: (block <= self.high) & (block >= self.low))
        )

    def some(self, scores: NDArray[Any], some: UniformSubset) -> Ranks:
        """Return the positions of a uniform subset of the range."""
        if lies_close(some, len(scores)):
            subset: Ranks = self.all(scores)[some.entropy.subset(some.count, some.last - some.first)]
            return subset
        none = np.empty(0, np.int64)
        return draw_inside(some, len(scores), lambda positions: self._keep_inside(scores, positions), none)

    def _keep_inside(self, scores: NDArray[Any], positions: Ranks) -> Ranks:
        held = scores[positions]
        below = (held < self.high) | ((held == self.high) & (positions <= self.first))
        above = (held > self.low) | ((held == self.low) & (positions >= self.last))
        kept: Ranks = positions[below & above]
        return kept


def lies_close(some: UniformSubset, d: int) -> bool:
    """Return True if the range of a subset is a small part of all items, or the subset a large part of the range."""
    size = some.last - some.first + 1
    return 4 * size < d or 2 * some.count > size


def draw_inside(some: UniformSubset, d: int, keep: Callable[[Ranks], Ranks], head: Ranks) -> Ranks:
    """Return the positions of a uniform subset of a range, and the head before it; `keep` drops positions outside.

    Rejection sampling: uniform positions are drawn until enough distinct ones are inside.
    """
    size, total = some.last - some.first + 1, some.count + len(head)
    chosen = _Marks(d) if 64 * total > d else _Distinct()
    chosen.add(head)
    while (missing := total - len(chosen)) > 0:
        drawn = some.entropy.upto_all(missing * d // size + 8, d - 1)
        chosen.add(keep(drawn)[:missing])
    return chosen.all()


class _Distinct:
    """A set of positions, kept as a sorted array."""

    def __init__(self) -> None:
        self._held = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, positions: Ranks) -> None:
        self._held = sorted_distinct(np.concatenate([self._held, positions]))

    def all(self) -> Ranks:
        return self._held


class _Marks:
    """A set of positions, kept as a mask: faster if the set is not a small part of all positions."""

    def __init__(self, d: int) -> None:
        self._marked = np.zeros(d, bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._marked))

    def add(self, positions: Ranks) -> None:
        self._marked[positions] = True

    def all(self) -> Ranks:
        return np.flatnonzero(self._marked)


def _take_positions(positions: Ranks | None, indices: Ranks) -> Ranks:
    """Return the positions at some indices of a list of positions; None stands for the list of all."""
    return indices if positions is None else positions[indices]


def _positions_where(scores: NDArray[Any], holds: Callable[[NDArray[Any]], Mask]) -> Ranks:
    if len(scores) <= BLOCK:
        return holds(scores).nonzero()[0]
    return np.concatenate([start + np.flatnonzero(holds(block)) for start, block in iterate_blocks(scores)])


def _find_equals(scores: NDArray[Any], values: NDArray[Any], before: Ranks) -> Ranks:
    """Return the positions of the items with these scores that have so many equals at lower positions."""
    if len(values) <= _FEW:
        return _scan_for_equals(scores, values, before)
    candidates = _find_candidates(scores, np.unique(values), 16 * len(values))
    held = scores[candidates]
    order = _argsort(held)
    found: Ranks = candidates[order[np.searchsorted(held[order], values, side="left") + before]]
    return found


def _argsort(values: NDArray[Any]) -> Ranks:
    """Return the indices of values in ascending order, equal ones in their given order."""
    bits = max(1, (len(values) - 1).bit_length())
    is_long = len(values) > _SHORT and values.dtype.kind != "f"
    if is_long and (int(values.max()) - int(values.min())).bit_length() + bits <= 64:
        # A plain sort of keys with the indices in their low bits is several times faster than an argsort.
        above = as_bits(values) - as_bits(values.min(keepdims=True))
        keys = above << np.uint64(bits) | np.arange(len(values), dtype=np.uint64)
        return (np.sort(keys) & np.uint64((1 << bits) - 1)).astype(np.int64)
    return np.argsort(values, kind="stable")


def _scan_for_equals(scores: NDArray[Any], values: NDArray[Any], before: Ranks) -> Ranks:
    """Do the same for few items, in one pass that counts the equals of each."""
    found, left = np.full(len(values), -1), before.copy()
    sought = {value: np.flatnonzero(values == value) for value in values}
    for start, block in iterate_blocks(scores):
        for value, wanted in list(sought.items()):
            equal = block == value
            count = np.count_nonzero(equal)
            here = wanted[left[wanted] < count]
            if len(here):
                found[here] = start + np.flatnonzero(equal)[left[here]]
                sought[value] = wanted = wanted[found[wanted] < 0]
                if not len(wanted):
                    del sought[value]
                    continue
            left[wanted] -= count
        if not sought:
            break
    return found


def _find_candidates(scores: NDArray[Any], values: NDArray[Any], enough: int) -> Ranks:
    """Return ascending positions that include all with one of some ascending scores, and not many others."""
    inside = _positions_where(scores, lambda block: (block >= values[0]) & (block <= values[-1]))
    if len(inside) <= enough:
        return inside
    table = np.zeros(1 << 22, bool)
    table[_hash_to_22_bits(values)] = True
    likely: Ranks = inside[
        np.concatenate([table[_hash_to_22_bits(scores[part])] for _, part in iterate_blocks(inside)])
    ]
    return likely


def _hash_to_22_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a hash below 2^22 that equal values share: Fibonacci hashing, by the golden ratio times 2^64."""
    bits = (values + 0.0 if values.dtype.kind == "f" else values).astype(np.float64, copy=False).view(np.uint64)
    return (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(42)
