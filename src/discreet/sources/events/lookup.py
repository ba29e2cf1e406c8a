"""From ranks back to items, on the engine, without sorting there.

Items of equal score are ranked by their own order: numbers and dates by size, strings by code point (which is the order
of their UTF-8 bytes), False before True. To find the j-th item of a large group, its items are counted by bucket, a
range of numbers or the first characters of a string, and only the buckets that hold a wanted offset are opened. Buckets
are sorted here, so the engine's collation does not matter, and no query sorts or numbers the rows of a group.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from discreet.exact.arrays import Ranks
from discreet.sources.events.dialects import dialect_of
from discreet.sources.events.domain import Integers, ListedDomain

FETCHED = 20_000
"""About how many items a lookup may fetch to sort them here."""

BITS = 12
"""A range of numbers is split into up to two to this power buckets at once."""

Found = dict[tuple[int, int], Any]
"""A label for each score and offset among the items of that score."""


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Some items of one score: those in a bucket, or all; how many, the offset of the first, and the offsets wanted."""

    score: int
    bucket: Any
    count: int
    first: int
    offsets: list[int]

    def split(self, counts: Iterable[tuple[Any, int]]) -> list[Segment]:
        """The finer buckets that hold wanted offsets, given all of them in order with their counts."""
        segments, first = [], self.first
        for bucket, count in counts:
            low, high = bisect_left(self.offsets, first), bisect_left(self.offsets, first + count)
            if low < high:
                segments.append(Segment(self.score, bucket, count, first, self.offsets[low:high]))
            first += count
        return segments


class Lookup:
    """The snapshot of the scores, and the questions asked of it."""

    def __init__(self, scores: Any, kind: str, domain: Integers | ListedDomain) -> None:
        self._scores, self._kind, self._domain = scores, kind, domain
        self._runs: list[tuple[int, int]] = []

    def runs(self) -> tuple[list[int], list[int]]:
        """The distinct scores in descending order, and how many items have each."""
        grouped = self._scores.group_by("score").agg(items=self._scores.count()).to_pyarrow()
        found = dict(zip(map(int, grouped["score"].to_pylist()), map(int, grouped["items"].to_pylist()), strict=True))
        if isinstance(self._domain, Integers):
            # Numbers that nobody touched have score zero, like those touched without effect.
            found[0] = self._domain.d - sum(count for score, count in found.items() if score != 0)
        self._runs = sorted(((score, count) for score, count in found.items() if count), reverse=True)
        return [score for score, _ in self._runs], [count for _, count in self._runs]

    def items(self, ranks: Ranks) -> list[Any]:
        """The labels at these ranks, in their order."""
        starts = [0, *accumulate(count for _, count in self._runs)]
        offsets = []
        for rank in ranks.tolist():
            run = bisect_right(starts, rank) - 1
            offsets.append((self._runs[run][0], rank - starts[run]))
        found = self._find(offsets)
        return [found[offset] for offset in offsets]

    def close(self) -> None:
        """Drops the snapshot; a failure to do so is not reported."""
        # The engine may be gone already, and its words are private.
        with suppress(Exception):
            self._scores.release()

    def _find(self, offsets: list[tuple[int, int]]) -> Found:
        wanted: dict[int, list[int]] = defaultdict(list)
        for score, offset in sorted(offsets):
            wanted[score].append(offset)
        found: Found = {}
        if isinstance(self._domain, Integers) and 0 in wanted:
            found |= self._find_untouched(wanted.pop(0), self._domain)
        sizes = dict(self._runs)
        segments, level = [Segment(score, None, sizes[score], 0, inside) for score, inside in wanted.items()], 0
        while segments:
            room = max(64, FETCHED // len(segments))
            small = [segment for segment in segments if segment.count <= max(room, 4 * len(segment.offsets))]
            large = [segment for segment in segments if segment.count > max(room, 4 * len(segment.offsets))]
            found |= self._fetch(small, level)
            segments, level = self._split(large, level), level + 1
        return found

    def _fetch(self, segments: list[Segment], level: int) -> Found:
        """The labels at the wanted offsets of segments, whose items are fetched and sorted here."""
        if not segments:
            return {}
        labelled = isinstance(self._domain, ListedDomain) and self._domain.labelled
        item = self._scores.item
        keyed = self._select_keyed(level, item=item, shown=self._scores.label if labelled else item)
        members = defaultdict(list)
        for row in read_matching(keyed, self._wanted_table(segments, level)).to_pylist():
            members[int(row["score"]), row.get("bucket")].append((row["item"], row["shown"]))
        found: Found = {}
        for segment in segments:
            ordered = sorted(members[segment.score, segment.bucket], key=lambda pair: pair[0])
            found |= {(segment.score, offset): ordered[offset - segment.first][1] for offset in segment.offsets}
        return found

    def _split(self, segments: list[Segment], level: int) -> list[Segment]:
        """The segments of the next level that hold wanted offsets."""
        if not segments:
            return []
        keyed = self._select_keyed(level, finer=self._bucket(self._scores.item, level + 1))
        counted = read_matching(keyed, self._wanted_table(segments, level), _count_each)
        inside = defaultdict(list)
        for row in counted.to_pylist():
            inside[int(row["score"]), row.get("bucket")].append((row["finer"], int(row["items"])))
        return [finer for segment in segments for finer in segment.split(sorted(inside[segment.score, segment.bucket]))]

    def _select_keyed(self, level: int, **columns: Any) -> Any:
        """Columns of the snapshot, with the score and the bucket that say which segment of a level a row is in."""
        table = self._scores
        bucket = {"bucket": self._bucket(table.item, level)} if level else {}
        return table.select(score=table.score, **bucket, **columns)

    def _wanted_table(self, segments: list[Segment], level: int) -> Any:
        """The scores and buckets of some segments, as an Arrow table."""
        import pyarrow as pa

        columns = {"score": pa.array([segment.score for segment in segments], pa.int64())}
        if level:
            columns["bucket"] = pa.array([segment.bucket for segment in segments], self._bucket_type(level))
        return pa.table(columns)

    def _bucket(self, item: Any, level: int) -> Any:
        """The bucket of an item at a level: in the order of the items, and finer from level to level."""
        if self._kind == "string":
            return item.substr(0, level if level < 4 else 2 ** (level - 2))
        if self._kind == "date":
            return item.year() if level == 1 else item
        if self._kind == "boolean":
            return item
        return item >> max(0, 64 - BITS * level)

    def _bucket_type(self, level: int) -> Any:
        import pyarrow as pa

        year = self._kind == "date" and level == 1
        types = {"string": pa.string(), "date": pa.date32(), "boolean": pa.bool_()}
        return pa.int64() if year else types.get(self._kind, pa.int64())

    def _find_untouched(self, offsets: list[int], domain: Integers) -> Found:
        """The numbers of the domain at these offsets among all but those with a score other than zero."""
        taken = self._scores.filter(self._scores.score != 0)
        shift = max(0, domain.d.bit_length() - BITS)
        # Every bucket of numbers has some of its own taken, known after one count; the others are free.
        segments = _split_free(
            domain, domain.lo >> shift, domain.hi >> shift, shift, _count_taken(taken, shift, None), offsets
        )
        found: Found = {}
        while segments:
            room = max(64, FETCHED // len(segments))
            full = [segment for segment in segments if segment.taken > room and shift > 0]
            found |= _fetch_free([segment for segment in segments if segment not in full], taken, shift)
            finer = max(0, shift - BITS)
            counts = _count_taken(taken, finer, (shift, [segment.bucket for segment in full])) if full else {}
            segments = [
                piece
                for segment in full
                for piece in _split_free(
                    domain,
                    segment.low >> finer,
                    segment.high >> finer,
                    finer,
                    counts,
                    segment.offsets,
                    segment.first,
                )
            ]
            shift = finer
        return found


@dataclass(frozen=True, eq=False, repr=False)
class FreeSegment:
    """A range of numbers some of which are taken: its bucket, its bounds, the offset of its first free number."""

    bucket: int
    low: int
    high: int
    taken: int
    first: int
    offsets: list[int]


def _split_free(
    domain: Integers, start: int, end: int, shift: int, counts: dict[int, int], offsets: list[int], first: int = 0
) -> list[FreeSegment]:
    """The buckets from `start` to `end` that hold wanted offsets among their free numbers."""
    segments = []
    for bucket in range(start, end + 1):
        low, high = max(domain.lo, bucket << shift), min(domain.hi, ((bucket + 1) << shift) - 1)
        free = high - low + 1 - counts.get(bucket, 0)
        begin, stop = bisect_left(offsets, first), bisect_left(offsets, first + free)
        if begin < stop:
            segments.append(FreeSegment(bucket, low, high, counts.get(bucket, 0), first, offsets[begin:stop]))
        first += free
    return segments


def _count_taken(taken: Any, shift: int, inside: tuple[int, list[int]] | None) -> dict[int, int]:
    """How many taken numbers each bucket has, in some coarser buckets or in all."""
    finer = {"bucket": taken.item >> shift}
    if inside is None:
        grouped = _count_each(taken.select(**finer)).to_pyarrow()
    else:
        keyed = taken.select(coarser=taken.item >> inside[0], **finer)
        grouped = read_matching(keyed, _number_table("coarser", inside[1]), _count_each)
    return dict(zip(grouped["bucket"].to_pylist(), map(int, grouped["items"].to_pylist()), strict=True))


def _count_each(rows: Any) -> Any:
    """The different rows, and how many times each is there."""
    return rows.group_by(*rows.columns).agg(items=rows.count())


def _number_table(name: str, values: list[int]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(values, pa.int64())})


def _fetch_free(segments: list[FreeSegment], taken: Any, shift: int) -> Found:
    """The free numbers at the wanted offsets; the taken ones of these segments are fetched."""
    touched = [segment.bucket for segment in segments if segment.taken]
    members: dict[int, list[int]] = defaultdict(list)
    if touched:
        keyed = taken.select(item=taken.item, bucket=taken.item >> shift)
        for item in sorted(read_matching(keyed, _number_table("bucket", touched))["item"].to_pylist()):
            members[item >> shift].append(item)
    found: Found = {}
    for segment in segments:
        # How many numbers of the segment are free before each taken one.
        free_before = [item - segment.low - i for i, item in enumerate(members[segment.bucket])]
        for offset in segment.offsets:
            skipped = offset - segment.first
            found[0, offset] = segment.low + skipped + bisect_right(free_before, skipped)
    return found


def read_matching(table: Any, wanted: Any, then: Callable[[Any], Any] = lambda rows: rows) -> Any:
    """The rows of an ibis table that agree with some row of the Arrow table `wanted` in all columns of it.

    Which scores and buckets are wanted tells the scores of what is released. As literals they would stand in statement
    logs, query histories and plans, and so would bound parameters. So they go into a temporary table of a random name,
    by a way that the engine does not log, and are joined. Where no such way is known, nothing is sent: all rows are
    fetched.

    Parameters
    ----------
    table
        An ibis table, with the columns of `wanted` among its own.
    wanted
        What must stand in no statement: columns of whole numbers, text, dates or booleans, each row once.
    then
        What to make of these rows on the engine; it must keep the columns of `wanted`.

    Returns
    -------
    pyarrow.Table
        What `then` makes of the rows.
    """
    backend = table.get_backend()
    send = dialect_of(table).send_unlogged
    if send is None:
        return _match_here(then(table).to_pyarrow(), wanted)
    with send(backend, f"discreet_wanted_{uuid.uuid4().hex}", wanted) as sent:
        return then(table.semi_join(sent, wanted.column_names)).to_pyarrow()


def _match_here(rows: Any, wanted: Any) -> Any:
    import pyarrow as pa

    names = wanted.column_names
    typed = wanted.cast(pa.schema([rows.schema.field(name) for name in names]))
    return rows.join(typed, keys=names, join_type="left semi")
