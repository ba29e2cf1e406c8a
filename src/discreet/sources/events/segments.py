"""Pieces of a group's items among which some offsets are wanted: items of one score, and numbers that are free."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Place = tuple[int, int, int]
"""A group, a score, and an offset among the items of the group that have the score."""

Found = dict[Place, Any]
"""A label for each place."""


TakenCounts = dict[tuple[int, int | None], dict[int, int]]
"""How many numbers are taken in each bucket, by the group and the coarser bucket."""


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Some items of one score of a group: those in a bucket, or all.

    How many there are, the offset of the first, and the offsets wanted.
    """

    group: int
    score: int
    bucket: Any
    count: int
    first: int
    offsets: list[int]

    @property
    def key(self) -> tuple[int, int, Any]:
        """What its items have in common."""
        return self.group, self.score, self.bucket

    def split(self, counts: Iterable[tuple[Any, int]]) -> list[Segment]:
        """The finer buckets that hold wanted offsets, given all of them in order with their counts."""
        segments, first = [], self.first
        for bucket, count in counts:
            inside = _between(self.offsets, first, first + count)
            if inside:
                segments.append(Segment(self.group, self.score, bucket, count, first, inside))
            first += count
        return segments


@dataclass(frozen=True, eq=False, repr=False)
class FreeSegment:
    """A range of numbers of a group some of which are taken.

    Its bucket, its bounds, how many are taken, the offset of its first free number, and the offsets wanted.
    """

    group: int
    bucket: int | None
    low: int
    high: int
    taken: int
    first: int
    offsets: list[int]

    def split(self, shift: int, taken: TakenCounts) -> list[FreeSegment]:
        """The buckets with taken numbers, and what lies between them, that hold wanted offsets."""
        segments, first = [], self.first
        for bucket, low, high, count in self._cut(shift, taken.get((self.group, self.bucket), {})):
            free = high - low + 1 - count
            inside = _between(self.offsets, first, first + free)
            if inside:
                segments.append(FreeSegment(self.group, bucket, low, high, count, first, inside))
            first += free
        return segments

    def _cut(self, shift: int, counts: dict[int, int]) -> Iterator[tuple[int | None, int, int, int]]:
        """Buckets with their bounds and how many of their numbers are taken; those in a row with none are one."""
        start = self.low
        for bucket, count in sorted(counts.items()):
            low, high = max(self.low, bucket << shift), min(self.high, ((bucket + 1) << shift) - 1)
            if start < low:
                yield None, start, low - 1, 0
            yield bucket, low, high, count
            start = high + 1
        if start <= self.high:
            yield None, start, self.high, 0

    def pass_over(self, taken: list[int]) -> Found:
        """The free numbers at the wanted offsets, given those taken in ascending order."""
        # How many numbers of the segment are free before each taken one.
        free_before = [item - self.low - i for i, item in enumerate(taken)]
        skipped = {offset: offset - self.first for offset in self.offsets}
        return {
            (self.group, 0, offset): self.low + free + bisect_right(free_before, free)
            for offset, free in skipped.items()
        }


def _between(offsets: list[int], first: int, end: int) -> list[int]:
    return offsets[bisect_left(offsets, first) : bisect_left(offsets, end)]
