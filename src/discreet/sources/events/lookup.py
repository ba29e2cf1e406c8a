"""From ranks back to items, on the engine, without sorting there.

Items of equal score are ranked by their own order: numbers and dates by size, strings by code point (which is the order
of their UTF-8 bytes), False before True. To find the j-th item of a large group, its items are counted by bucket, a
range of numbers or the first characters of a string, and only the buckets that hold a wanted place are opened. Buckets
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

from discreet.exact.entropy import Ranks
from discreet.sources.events.dialects import dialect_of
from discreet.sources.events.domain import Integers, Listed

FETCHED = 20_000
"""About how many items a lookup may fetch to sort them here."""

BITS = 12
"""A range of numbers is cut into up to two to this power buckets at once."""

Found = dict[tuple[int, int], Any]
"""A label for each score and place among the items of that score."""


@dataclass(frozen=True, eq=False, repr=False)
class Cell:
    """Some items of one score: those in a bucket, or all; how many, the place of the first, and the places wanted."""

    score: int
    bucket: Any
    count: int
    first: int
    places: list[int]

    def cut(self, counts: Iterable[tuple[Any, int]]) -> list[Cell]:
        """The finer buckets that hold wanted places, given all of them in order with their counts."""
        cells, first = [], self.first
        for bucket, count in counts:
            low, high = bisect_left(self.places, first), bisect_left(self.places, first + count)
            if low < high:
                cells.append(Cell(self.score, bucket, count, first, self.places[low:high]))
            first += count
        return cells


class Lookup:
    """The snapshot of the scores, and the questions asked of it."""

    def __init__(self, scores: Any, kind: str, domain: Integers | Listed) -> None:
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
        places = []
        for rank in ranks.tolist():
            run = bisect_right(starts, rank) - 1
            places.append((self._runs[run][0], rank - starts[run]))
        found = self._found(places)
        return [found[place] for place in places]

    def close(self) -> None:
        """Drops the snapshot; a failure to do so is nobody's news."""
        # The engine may be gone already, and its words are private.
        with suppress(Exception):
            self._scores.release()

    def _found(self, places: list[tuple[int, int]]) -> Found:
        wanted: dict[int, list[int]] = defaultdict(list)
        for score, place in sorted(places):
            wanted[score].append(place)
        found: Found = {}
        if isinstance(self._domain, Integers) and 0 in wanted:
            found |= self._in_gaps(wanted.pop(0), self._domain)
        sizes = dict(self._runs)
        cells, level = [Cell(score, None, sizes[score], 0, inside) for score, inside in wanted.items()], 0
        while cells:
            room = max(64, FETCHED // len(cells))
            small = [cell for cell in cells if cell.count <= max(room, 4 * len(cell.places))]
            large = [cell for cell in cells if cell.count > max(room, 4 * len(cell.places))]
            found |= self._fetched(small, level)
            cells, level = self._cut(large, level), level + 1
        return found

    def _fetched(self, cells: list[Cell], level: int) -> Found:
        """The labels at the wanted places of cells, whose items are fetched and sorted here."""
        if not cells:
            return {}
        labelled = isinstance(self._domain, Listed) and self._domain.labelled
        item = self._scores.item
        keyed = self._keyed(level, item=item, shown=self._scores.label if labelled else item)
        members = defaultdict(list)
        for row in read_matching(keyed, self._wanted(cells, level)).to_pylist():
            members[int(row["score"]), row.get("bucket")].append((row["item"], row["shown"]))
        found: Found = {}
        for cell in cells:
            ordered = sorted(members[cell.score, cell.bucket], key=lambda pair: pair[0])
            found |= {(cell.score, place): ordered[place - cell.first][1] for place in cell.places}
        return found

    def _cut(self, cells: list[Cell], level: int) -> list[Cell]:
        """The cells of the next level that hold wanted places."""
        if not cells:
            return []
        keyed = self._keyed(level, finer=self._bucket(self._scores.item, level + 1))
        counted = read_matching(keyed, self._wanted(cells, level), _count_each)
        inside = defaultdict(list)
        for row in counted.to_pylist():
            inside[int(row["score"]), row.get("bucket")].append((row["finer"], int(row["items"])))
        return [finer for cell in cells for finer in cell.cut(sorted(inside[cell.score, cell.bucket]))]

    def _keyed(self, level: int, **columns: Any) -> Any:
        """Columns of the snapshot, with the score and the bucket that say which cell of a level a row is in."""
        table = self._scores
        bucket = {"bucket": self._bucket(table.item, level)} if level else {}
        return table.select(score=table.score, **bucket, **columns)

    def _wanted(self, cells: list[Cell], level: int) -> Any:
        """The scores and buckets of some cells, as an Arrow table."""
        import pyarrow as pa

        columns = {"score": pa.array([cell.score for cell in cells], pa.int64())}
        if level:
            columns["bucket"] = pa.array([cell.bucket for cell in cells], self._bucket_type(level))
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

    def _in_gaps(self, places: list[int], domain: Integers) -> Found:
        """The numbers of the domain at these places among all but those with a score other than zero."""
        taken = self._scores.filter(self._scores.score != 0)
        shift = max(0, domain.d.bit_length() - BITS)
        # Every bucket of numbers has some of its own taken, known after one count; the others are free.
        cells = _free(domain, domain.lo >> shift, domain.hi >> shift, shift, _counts(taken, shift, None), places)
        found: Found = {}
        while cells:
            room = max(64, FETCHED // len(cells))
            full = [cell for cell in cells if cell.taken > room and shift > 0]
            found |= _from_free([cell for cell in cells if cell not in full], taken, shift)
            finer = max(0, shift - BITS)
            counts = _counts(taken, finer, (shift, [cell.bucket for cell in full])) if full else {}
            cells = [
                piece
                for cell in full
                for piece in _free(
                    domain,
                    cell.low >> finer,
                    cell.high >> finer,
                    finer,
                    counts,
                    cell.places,
                    cell.first,
                )
            ]
            shift = finer
        return found


@dataclass(frozen=True, eq=False, repr=False)
class FreeCell:
    """A range of numbers some of which are taken: its bucket, its bounds, the place of its first free number."""

    bucket: int
    low: int
    high: int
    taken: int
    first: int
    places: list[int]


def _free(
    domain: Integers, start: int, end: int, shift: int, counts: dict[int, int], places: list[int], first: int = 0
) -> list[FreeCell]:
    """The buckets from `start` to `end` that hold wanted places among their free numbers."""
    cells = []
    for bucket in range(start, end + 1):
        low, high = max(domain.lo, bucket << shift), min(domain.hi, ((bucket + 1) << shift) - 1)
        free = high - low + 1 - counts.get(bucket, 0)
        begin, stop = bisect_left(places, first), bisect_left(places, first + free)
        if begin < stop:
            cells.append(FreeCell(bucket, low, high, counts.get(bucket, 0), first, places[begin:stop]))
        first += free
    return cells


def _counts(taken: Any, shift: int, inside: tuple[int, list[int]] | None) -> dict[int, int]:
    """How many taken numbers each bucket has, in some coarser buckets or in all."""
    finer = {"bucket": taken.item >> shift}
    if inside is None:
        grouped = _count_each(taken.select(**finer)).to_pyarrow()
    else:
        keyed = taken.select(coarser=taken.item >> inside[0], **finer)
        grouped = read_matching(keyed, _numbers("coarser", inside[1]), _count_each)
    return dict(zip(grouped["bucket"].to_pylist(), map(int, grouped["items"].to_pylist()), strict=True))


def _count_each(rows: Any) -> Any:
    """The different rows, and how many times each is there."""
    return rows.group_by(*rows.columns).agg(items=rows.count())


def _numbers(name: str, values: list[int]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(values, pa.int64())})


def _from_free(cells: list[FreeCell], taken: Any, shift: int) -> Found:
    """The free numbers at the wanted places; the taken ones of these cells are fetched."""
    touched = [cell.bucket for cell in cells if cell.taken]
    members: dict[int, list[int]] = defaultdict(list)
    if touched:
        keyed = taken.select(item=taken.item, bucket=taken.item >> shift)
        for item in sorted(read_matching(keyed, _numbers("bucket", touched))["item"].to_pylist()):
            members[item >> shift].append(item)
    found: Found = {}
    for cell in cells:
        # How many numbers of the cell are free before each taken one.
        free_before = [item - cell.low - i for i, item in enumerate(members[cell.bucket])]
        for place in cell.places:
            skipped = place - cell.first
            found[0, place] = cell.low + skipped + bisect_right(free_before, skipped)
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
