"""Count the scores of a snapshot, and find the items at given ranks, without sorting on the engine.

Items of equal score are ordered by value: numbers and dates by size, strings by code point (the order of their UTF-8
bytes), False before True. To find the item at an offset of a large run, its items are counted by bucket, which is a
range of numbers or a prefix of strings, and only the buckets that hold a wanted offset are refined. Buckets are sorted
in this process, so the engine's collation does not matter.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.ranges import Integers

FETCHED = 20_000
"""The approximate number of items that a lookup fetches and sorts in this process."""

MOST_SCORES = 1_000_000
"""Maximum number of items, in all groups together, on an engine from which a lookup fetches all scores."""

BITS = 12
"""The logarithm to base 2 of the number of buckets that a range of numbers is split into at once."""

ROWS = 17
"""The logarithm to base 2 of the approximate number of buckets that are counted for many groups at once."""

Place = tuple[int, int, int]
"""A group, a score, and an offset among the items of the group that have the score."""

Found = dict[Place, Any]
"""The label at each place."""

TakenCounts = dict[tuple[int, int | None], dict[int, int]]
"""The number of taken numbers in each bucket, by the group and the coarser bucket."""


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """The items of one score of a group that are in a bucket, or all of them.

    `count` is their number, `first` the offset of the first item, and `offsets` are the wanted offsets.
    """

    group: int
    score: int
    bucket: Any
    count: int
    first: int
    offsets: list[int]

    @property
    def key(self) -> tuple[int, int, Any]:
        """The group, score and bucket of the items."""
        return self.group, self.score, self.bucket

    def split(self, counts: Iterable[tuple[Any, int]]) -> list[Segment]:
        """Return the finer buckets that hold wanted offsets, given all finer buckets in order with their counts."""
        segments, first = [], self.first
        for bucket, count in counts:
            inside = _between(self.offsets, first, first + count)
            if inside:
                segments.append(Segment(self.group, self.score, bucket, count, first, inside))
            first += count
        return segments


@dataclass(frozen=True, eq=False, repr=False)
class FreeSegment:
    """The numbers of a group from `low` to `high`, `taken` of which have a score other than zero.

    `first` is the offset of the first free number, and `offsets` are the wanted offsets among free numbers.
    """

    group: int
    bucket: int | None
    low: int
    high: int
    taken: int
    first: int
    offsets: list[int]

    def split(self, shift: int, taken: TakenCounts) -> list[FreeSegment]:
        """Return the buckets with taken numbers, and the ranges between them, that hold wanted offsets."""
        # Adjacent buckets without taken numbers are one range, whose bucket is None.
        pieces: list[tuple[int | None, int, int, int]] = []
        start = self.low
        for bucket, count in sorted(taken.get((self.group, self.bucket), {}).items()):
            low, high = max(self.low, bucket << shift), min(self.high, ((bucket + 1) << shift) - 1)
            pieces += [(None, start, low - 1, 0), (bucket, low, high, count)]
            start = high + 1
        segments, first = [], self.first
        for piece, low, high, count in [*pieces, (None, start, self.high, 0)]:
            free = high - low + 1 - count
            inside = _between(self.offsets, first, first + free)
            if inside:
                segments.append(FreeSegment(self.group, piece, low, high, count, first, inside))
            first += free
        return segments

    def pass_over(self, taken: list[int]) -> Found:
        """Return the free numbers at the wanted offsets, given the taken numbers in ascending order."""
        # The number of free numbers of the segment before each taken number.
        free_before = [item - self.low - i for i, item in enumerate(taken)]
        skipped = {offset: offset - self.first for offset in self.offsets}
        return {
            (self.group, 0, offset): self.low + free + bisect_right(free_before, free)
            for offset, free in skipped.items()
        }


def _between(offsets: list[int], first: int, end: int) -> list[int]:
    return offsets[bisect_left(offsets, first) : bisect_left(offsets, end)]


def check_fetch(opened: Opened, items: int) -> None:
    """Raise if a lookup among so many public items would fetch too many scores from the engine."""
    if opened.dialect.was_run and opened.dialect.send_unlogged is None and items > MOST_SCORES:
        raise InvalidValueError(
            f"domain must have at most {MOST_SCORES:,} items on {opened.engine}, over all groups, not {items:,}: "
            "discreet knows no way to ask that engine for some of them that no log shows, and fetches all scores"
        )


class Lookup:
    """A snapshot of the scores, and the queries on it.

    Parameters
    ----------
    scores
        The snapshot: columns `item` and `score`, `label` if labels are shown, and `grp`, from 0 on, if there are
        groups. Every item of a listed domain has a row; of a range of numbers, only those that somebody touched.
        Without a domain the column `total` is returned with each item.
    kind, domain
        The kind of the items, and their public domain, the same for every group; None for partition selection.
    dialect
        The dialect of the engine that holds the snapshot.
    groups
        The number of groups; None without groups.
    """

    def __init__(
        self,
        scores: Any,
        kind: str,
        domain: Integers | ListedDomain | None,
        dialect: Dialect,
        groups: int | None = None,
    ) -> None:
        self._scores, self._kind, self._domain, self._groups = scores, kind, domain, groups
        self._runs: list[list[tuple[int, int]]] = []
        self._bits, self._dialect = BITS, dialect

    def runs(self) -> list[tuple[list[int], list[int]]]:
        """Return for each group the distinct scores in descending order, and the number of items of each."""
        scores = self._scores
        counted = scores.group_by(*self._group_names, "score").agg(items=scores.count()).to_pyarrow()
        found: list[dict[int, int]] = [{} for _ in range(self._groups or 1)]
        for group, score, count in _iterate_columns(counted, "grp", "score", "items"):
            found[group][int(score)] = int(count)
        for counts in found:
            missing = 0 if self._domain is None else self._domain.d - sum(counts.values())
            if missing < 0 or (missing and not isinstance(self._domain, Integers)):
                raise RuntimeError("the engine has joined the domain in a way of its own")
            if missing:
                # Untouched numbers have score zero, as do numbers whose events add up to zero.
                counts[0] = counts.get(0, 0) + missing
        self._runs = [sorted(each.items(), reverse=True) for each in found]
        return [([score for score, _ in runs], [count for _, count in runs]) for runs in self._runs]

    def count_by(self, scores: Any) -> Lookup:
        """Return the same lookup with other scores of the same items, without groups."""
        return Lookup(scores, self._kind, self._domain, self._dialect)

    def largest_totals(self, count: int) -> list[list[int]]:
        """Return the `count` largest of the column `total` in each group, with repetitions, in descending order."""
        import ibis

        scores = self._scores
        totals = scores.group_by(*self._group_names, "total").agg(items=scores.count())
        # A run of equal totals is one row, so that `count` rows of each group are enough.
        place = ibis.row_number().over(ibis.window(group_by=self._group_names, order_by=ibis.desc(totals.total)))
        numbered = totals.mutate(place=place)
        fetched = numbered.filter(numbered.place < count).to_pyarrow()
        found: list[list[tuple[int, int]]] = [[] for _ in range(self._groups or 1)]
        for group, total, items in _iterate_columns(fetched, "grp", "total", "items"):
            found[group].append((int(total), int(items)))
        runs = [sorted(each, reverse=True) for each in found]
        return [[total for total, items in each for _ in range(min(items, count))][:count] for each in runs]

    def items(self, ranks: Sequence[Ranks]) -> list[list[Any]]:
        """Return the labels at these ranks of each group, in order."""
        # In partition selection, the number of ranks is the number of discovered items, which no statement may show.
        self._bits = self._count_bits(len(ranks) if self._domain is None else sum(map(len, ranks)))
        places: list[list[Place]] = []
        for group, wanted in enumerate(ranks):
            runs = self._runs[group]
            starts = [0, *accumulate(count for _, count in runs)]
            at = [(rank, bisect_right(starts, rank) - 1) for rank in wanted.tolist()]
            places.append([(group, runs[run][0], rank - starts[run]) for rank, run in at])
        wanted_offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
        for group, score, offset in sorted(place for inside in places for place in inside):
            wanted_offsets[group, score].append(offset)
        found: Found = {}
        if isinstance(self._domain, Integers):
            at_zero = [key for key in wanted_offsets if key[1] == 0]
            found |= self._find_untouched({key[0]: wanted_offsets.pop(key) for key in at_zero}, self._domain)
        sizes = [dict(runs) for runs in self._runs]
        segments = [
            Segment(group, score, None, sizes[group][score], 0, inside)
            for (group, score), inside in wanted_offsets.items()
        ]
        level = 0
        while segments:
            room = max(64, FETCHED // len(segments))
            small = [segment for segment in segments if segment.count <= max(room, 4 * len(segment.offsets))]
            large = [segment for segment in segments if segment.count > max(room, 4 * len(segment.offsets))]
            found |= self._fetch(small, level)
            segments = []
            if large:
                # The items of each large segment are counted by finer bucket, and those with a wanted offset stay.
                keyed = self._select_keyed(level, finer=self._bucket(self._scores.item, level + 1))
                counted = read_matching(self._dialect, keyed, self._wanted_table(large, level), _count_each)
                rows, counts = _iterate_columns(counted, "grp", "score", "bucket", "finer", "items"), defaultdict(list)
                for group, score, bucket, finer, count in rows:
                    counts[group, int(score), bucket].append((finer, int(count)))
                segments = [part for segment in large for part in segment.split(sorted(counts[segment.key]))]
            level += 1
        return [[found[place] for place in inside] for inside in places]

    def close(self) -> None:
        """Drop the snapshot, without reporting a failure."""
        # The engine may be gone already, and its messages are private.
        with suppress(Exception):
            self._scores.release()

    @property
    def _group_names(self) -> list[str]:
        return [] if self._groups is None else ["grp"]

    def _count_bits(self, pieces: int) -> int:
        """Return the logarithm of the number of buckets for so many pieces, a public number of items or groups."""
        return BITS if self._groups is None else max(4, min(BITS, ROWS - pieces.bit_length()))

    def _fetch(self, segments: list[Segment], level: int) -> Found:
        """Fetch and sort the items of segments, and return the labels at the wanted offsets."""
        if not segments:
            return {}
        labelled = isinstance(self._domain, ListedDomain) and self._domain.labelled
        shown_as = "total" if self._domain is None else "label" if labelled else "item"
        keyed = self._select_keyed(level, item=self._scores.item, shown=self._scores[shown_as])
        members = defaultdict(list)
        rows = read_matching(self._dialect, keyed, self._wanted_table(segments, level))
        for group, score, bucket, item, shown in _iterate_columns(rows, "grp", "score", "bucket", "item", "shown"):
            label = (item, int(shown)) if self._domain is None else shown
            members[group, int(score), bucket].append((item, label))
        found: Found = {}
        for segment in segments:
            ordered = sorted(members[segment.key], key=lambda pair: pair[0])
            for offset in segment.offsets:
                found[segment.group, segment.score, offset] = ordered[offset - segment.first][1]
        return found

    def _select_keyed(self, level: int, **columns: Any) -> Any:
        """Return columns of the snapshot with the group, score and bucket of each row at a level."""
        table = self._scores
        bucket = {"bucket": self._bucket(table.item, level)} if level else {}
        return table.select(*self._group_names, score=table.score, **bucket, **columns)

    def _wanted_table(self, segments: list[Segment], level: int) -> Any:
        """Return the groups, scores and buckets of some segments as an Arrow table."""
        import pyarrow as pa

        year = self._kind == "date" and level == 1
        types = {"string": pa.string(), "date": pa.date32(), "boolean": pa.bool_()}
        bucket = {"bucket": [segment.bucket for segment in segments]} if level else {}
        columns = {"score": [segment.score for segment in segments], **bucket}
        return self._arrow_table(
            [segment.group for segment in segments], columns, None if year else types.get(self._kind)
        )

    def _arrow_table(self, groups: list[int], columns: dict[str, list[Any]], bucket_type: Any = None) -> Any:
        """Return columns of integers, or of `bucket_type`, after the column of the groups if there are groups."""
        import pyarrow as pa

        named = dict.fromkeys(self._group_names, groups) | columns
        types = {"bucket": bucket_type or pa.int64()}
        return pa.table({name: pa.array(values, types.get(name, pa.int64())) for name, values in named.items()})

    def _bucket(self, item: Any, level: int) -> Any:
        """Return the bucket of an item at a level; buckets are in the order of the items and nested."""
        if self._kind == "string":
            return item.substr(0, level if level < 4 else 2 ** (level - 2))
        if self._kind == "date":
            return item.year() if level == 1 else item
        if self._kind == "boolean":
            return item
        width = 64 if self._groups is None or self._domain is None else self._domain.d.bit_length()
        return self._shift(item, max(0, width - self._bits * level))

    def _shift(self, item: Any, bits: int) -> Any:
        """Return the numbers of the buckets of 2^bits whole numbers that hold some numbers."""
        return self._dialect.shift_right(item, bits)

    def _find_untouched(self, offsets: dict[int, list[int]], domain: Integers) -> Found:
        """Return the numbers at these offsets of each group, among the numbers of score zero."""
        shift = max(0, domain.d.bit_length() - self._count_bits(self._groups or 1))
        whole = [FreeSegment(group, None, domain.lo, domain.hi, 0, 0, inside) for group, inside in offsets.items()]
        # One query counts the taken numbers of each bucket; a bucket that is not in its result is free.
        counts = self._count_taken(shift) if whole else {}
        segments = [piece for segment in whole for piece in segment.split(shift, counts)]
        found: Found = {}
        while segments:
            room = max(64, FETCHED // len(segments))
            most = room if shift else domain.d
            full = [segment for segment in segments if segment.taken > most]
            found |= self._fetch_free([segment for segment in segments if segment.taken <= most], shift)
            finer = max(0, shift - self._bits)
            counts = self._count_taken(finer, shift, full) if full else {}
            segments, shift = [piece for segment in full for piece in segment.split(finer, counts)], finer
        return found

    @property
    def _taken_scores(self) -> Any:
        return self._scores.filter(self._scores.score != 0)

    def _count_taken(self, shift: int, coarse: int | None = None, inside: Sequence[FreeSegment] = ()) -> TakenCounts:
        """Count the taken numbers of each bucket, in some coarser buckets or in all."""
        taken = self._taken_scores
        finer = {"bucket": self._shift(taken.item, shift)}
        if coarse is None:
            counted = _count_each(taken.select(*self._group_names, **finer)).to_pyarrow()
        else:
            keyed = taken.select(*self._group_names, coarser=self._shift(taken.item, coarse), **finer)
            wanted = {"coarser": [segment.bucket for segment in inside]}
            sent = self._arrow_table([segment.group for segment in inside], wanted)
            counted = read_matching(self._dialect, keyed, sent, _count_each)
        counts: TakenCounts = defaultdict(dict)
        for group, coarser, bucket, count in _iterate_columns(counted, "grp", "coarser", "bucket", "items"):
            counts[group, coarser][bucket] = int(count)
        return counts

    def _fetch_free(self, segments: list[FreeSegment], shift: int) -> Found:
        """Fetch the taken numbers of segments, and return the free numbers at the wanted offsets."""
        touched = [segment for segment in segments if segment.taken]
        members: dict[tuple[int, Any], list[int]] = defaultdict(list)
        if touched:
            taken = self._taken_scores
            keyed = taken.select(*self._group_names, item=taken.item, bucket=self._shift(taken.item, shift))
            wanted = {"bucket": [segment.bucket for segment in touched]}
            sent = self._arrow_table([segment.group for segment in touched], wanted)
            rows = read_matching(self._dialect, keyed, sent)
            for group, bucket, item in _iterate_columns(rows, "grp", "bucket", "item"):
                members[group, bucket].append(item)
        found: Found = {}
        for segment in segments:
            found |= segment.pass_over(sorted(members[segment.group, segment.bucket]))
        return found


def _iterate_columns(rows: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of an Arrow table; an absent group is 0, and an absent bucket None."""
    absent = {"grp": 0, "bucket": None, "coarser": None}
    columns = [
        rows[name].to_pylist() if name in rows.column_names else [absent[name]] * rows.num_rows for name in names
    ]
    return zip(*columns, strict=True)


def _count_each(rows: Any) -> Any:
    """Return the distinct rows and their counts."""
    return rows.group_by(*rows.columns).agg(items=rows.count())


def read_matching(dialect: Dialect, table: Any, wanted: Any, then: Callable[[Any], Any] = lambda rows: rows) -> Any:
    """Return the rows of an ibis table that equal some row of the Arrow table `wanted` in all of its columns.

    The wanted scores and buckets reveal the scores of the released items. Literals and bound parameters appear in
    statement logs, query histories and plans. The wanted rows are therefore sent to a temporary table with a random
    name, in a way that the engine does not log, and joined. If no such way is known, nothing is sent and all rows are
    fetched.

    Parameters
    ----------
    dialect, table
        An ibis table that has the columns of `wanted`, and the dialect of its engine.
    wanted
        The rows that no statement may show: columns of integers, text, dates or booleans, each row once.
    then
        A function applied to the rows on the engine; its result must keep the columns of `wanted`.

    Returns
    -------
    pyarrow.Table
        The result of `then`.
    """
    backend = table.get_backend()
    send = dialect.send_unlogged
    if send is None:
        import pyarrow as pa

        rows, names = then(table).to_pyarrow(), wanted.column_names
        typed = wanted.cast(pa.schema([rows.schema.field(name) for name in names]))
        return rows.join(typed, keys=names, join_type="left semi")
    with send(backend, f"discreet_wanted_{uuid.uuid4().hex}", wanted) as sent:
        return then(table.semi_join(sent, wanted.column_names)).to_pyarrow()
