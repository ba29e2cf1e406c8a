"""The query of items that nobody listed: for how many users each counts, and what it scores among all users.

Of a user's items those count of which at most l have a hash, of the key, the user and the item, that is not above
theirs: the l with the least hashes, but where two agree. The hash is the first 48 bits of MD5, which every engine has
alike. Two users' hashes of an item have nothing to do with each other, or one item's luck would be common to all. What
a hash is good for is that it looks random: which items count is decided by the rows of this user alone and the key, and
they are at most l whatever it is, so that the promise needs nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.sources.base import MANY
from discreet.sources.discovered import (
    EXACT,
    SPELLINGS,
    Discovered,
    FoundItems,
    UnlistedGroups,
    UnlistedSource,
)
from discreet.sources.events.cells import LARGEST_EXACT, null_unless, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.engine import ask
from discreet.sources.events.group_keys import GroupSplit, check_hash
from discreet.sources.events.lookup import Lookup
from discreet.sources.events.scoring import RowReading
from discreet.sources.events.table import EventTable, Question


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnlistedScoring(RowReading):
    """How rows of events become scored items that nobody listed.

    Attributes
    ----------
    spelling
        Which spellings are one item.
    max_items_per_user
        How many items of a user count for finding them.
    drops_long_numbers
        Whether whole numbers beyond 2^53 are no items, because the column may have become one of floats.
    """

    spelling: str
    max_items_per_user: int
    drops_long_numbers: bool

    def find_items(self, table: Any, key: str) -> Any:
        """The expression of the items that count for somebody: `item`, for how many (`score`), and their `total`."""
        rows = self._drop_gaps(table.select(**self._read_rows(table)))
        return self._count_users(self._add_up_by_user(rows), table, key)

    def find_items_by_group(self, table: Any, again: Any, split: GroupSplit, key: str) -> Any:
        """The same in each group, with the column `grp`; the parameters are those of `Scoring.scores_by_group`."""
        rows = self._drop_gaps(split.groups.add_ordinals(table, **self._read_rows(table))).alias("discreet_rows")
        users = split.groups.add_ordinals(again, who=self._read_user(again))
        by_user = self._add_up_by_user(rows, ["grp"]).alias("discreet_users")
        own = split.keep_own_groups(by_user, users.filter(users.who.notnull()))
        return self._count_users(own, table, key, ["grp"])

    def _read_item(self, item: Any) -> Any:
        read = super()._read_item(item)
        if self.kind == "string":
            read = self.dialect.drop_broken_text(self._unify_spelling(read))
        if self.kind == "date" and not self.dialect.dates_are_text:
            # PostgreSQL and Spark have others, and even an infinite one, which fail to be read outside of them.
            read = null_unless(read.between(date.min, date.max), read)
        return self._drop_long_numbers(read) if self.drops_long_numbers else read

    def _unify_spelling(self, text: Any) -> Any:
        folds, trims = SPELLINGS[self.spelling]
        if trims and self.dialect.trim is not None:
            text = self.dialect.trim(text, "trim")
        return self.dialect.fold_case(text, "lower") if folds else text

    def _drop_long_numbers(self, item: Any) -> Any:
        """The items but for whole numbers beyond 2^53, as numbers or spelled, of which a gap makes floats."""
        import ibis

        number = read_cell(self.dialect, item, "float")
        spelled = item.re_search("^[+-]?[0-9]+$") if self.kind == "string" else ibis.literal(True)
        return ibis.cases((spelled & (number.abs() > LARGEST_EXACT), ibis.null(item.type())), else_=item)

    def _add_up_by_user(self, rows: Any, within: Sequence[str] = ()) -> Any:
        """One row for each user and item, in each group, with the user's total where scores are sums."""
        if self.steps is None:
            return rows.distinct()
        return rows.group_by("who", *within, "item").agg(total=rows.steps.sum())

    def _count_users(self, by_user: Any, table: Any, key: str, within: Sequence[str] = ()) -> Any:
        """For how many users each item counts, and its score among all."""
        import ibis

        hashed = self._clip_totals(by_user).mutate(hash=self._hash(by_user, table, key))
        # Equal ones count together or not at all: a second key to sort by would take a tenth of the query.
        so_far = ibis.range_window(preceding=None, following=0, group_by=["who", *within], order_by=hashed.hash)
        ranked = hashed.mutate(counts=hashed.count().over(so_far) <= self.max_items_per_user)
        users = ranked.counts.ifelse(1, 0).cast("int32").sum().cast("int64")
        scored = ranked.group_by(*within, "item").agg(users=users, total=self._sum_users(ranked).cast("int64"))
        counting = self._drop_uncounted(scored)
        item = counting.item
        text = item if self.kind != "string" or self.dialect.bytes_text is None else self.dialect.bytes_text(item)
        return counting.select(*within, item=text, score=counting.users, total=counting.total)

    def _drop_uncounted(self, scored: Any) -> Any:
        """The items that count for somebody: no noise may keep one that is there because of a user beyond the limit."""
        return scored.filter(scored.users > 0)

    def _hash(self, by_user: Any, table: Any, key: str) -> Any:
        """What decides which items of a user count, in an order that is the same on every engine."""
        import ibis

        who = by_user.who
        # What is in bytes without being declared so was text.
        is_text = who.type().is_binary() and not table[self.columns["user"]].type().is_binary()
        named = self.dialect.text_of_key(who, is_text)
        if self.dialect.limit_to_calendar is not None and (who.type().is_timestamp() or who.type().is_nested()):
            # DuckDB fails to write timestamps at the ends of its range as text.
            named = ibis.coalesce(read_cell(self.dialect, who, "string"), "")
        item = self.dialect.text_of_key(by_user.item, self.kind == "string")
        return self.dialect.hash_texts(ibis.literal(key), named, ibis.literal("/"), item)


# Items that nobody listed, from a table of events: one snapshot, its runs, and the items that are kept.
#
# The snapshot has a row for each item that counts for somebody: for how many, and what it scores among all. What
# crosses
# the wire is how many items count for how many users, and then the items that were drawn to be kept, with their scores.


@dataclass(frozen=True, eq=False, repr=False)
class UnlistedTableSnapshot:
    """The items that count for somebody in one temporary table of an engine."""

    lookup: Lookup
    engine: str

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        runs = ask(self.engine, "counting the items", self.lookup.runs)
        return [(np.array(users, np.int64), np.array(items, np.int64)) for users, items in runs]

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        found = ask(self.engine, "looking up the items", lambda: self.lookup.items(kept))
        return [FoundItems([item for item, _ in pairs], [total for _, total in pairs]) for pairs in found]


class UnlistedTable(EventTable, UnlistedSource):
    """Scores of items that are to be found in a table of events.

    Threads may share one, and take turns. It belongs to the process that made it, like the connection that it holds.
    """

    _scoring: UnlistedScoring

    def __init__(self, question: Question, terms: Discovered) -> None:
        super().__init__(question)
        opened, columns = question.opened, question.columns
        self._check_kind(terms.kind)
        check_hash(opened, "discovered")
        _check_trim(opened, terms)
        self.terms, self.adjacency = terms, question.adjacency
        self.sensitivity, self.grid = self._sensitivity, self._grid
        self._scoring = UnlistedScoring(
            columns=columns,
            kind=terms.kind,
            steps=question.steps,
            dialect=opened.dialect,
            spelling=terms.spelling,
            max_items_per_user=terms.max_items_per_user,
            drops_long_numbers=_may_become_floats(opened, columns["item"], terms.kind),
        )

    def description(self) -> dict[str, Any]:
        return {**self._describe_question(), **self.terms.description()}

    @contextmanager
    def snapshot(self, key: str) -> Iterator[UnlistedTableSnapshot]:
        with self.exclusive():
            try:
                self.close()
                scores = ask(self._opened.engine, "finding the items", lambda: self._make_query(key).cache())
                self._snapshots.append(Lookup(scores, self.terms.kind, None, self._groups))
                yield UnlistedTableSnapshot(self._snapshots[-1], self._opened.engine)
            finally:
                self.close()

    @property
    def _groups(self) -> int | None:
        return None

    def _make_query(self, key: str = "") -> Any:
        return self._scoring.find_items(self._table, key)


class UnlistedGroupTable(UnlistedTable, UnlistedGroups):
    """Scores of items that are to be found in each of several public groups."""

    _split: GroupSplit

    def __init__(self, question: Question, terms: Discovered, split: GroupSplit) -> None:
        super().__init__(question, terms)
        self._split = split
        self.keys, self.names = split.groups.keys, split.groups.names
        self.each_user, self.groups_per_user = split.each_user, split.groups_per_user

    def description(self) -> dict[str, Any]:
        bound = {"max_groups_per_user": self.groups_per_user} if self.each_user == MANY else {}
        return {**super().description(), **self._split.groups.description(), "each_user": self.each_user, **bound}

    @property
    def _groups(self) -> int | None:
        return len(self.keys)

    def _make_query(self, key: str = "") -> Any:
        again = self._filter(self._opened.table.view())
        return self._scoring.find_items_by_group(self._table, again, self._split, key)


def _check_trim(opened: Opened, terms: Discovered) -> None:
    if terms.spelling != EXACT and SPELLINGS[terms.spelling][1] and opened.dialect.trim is None:
        raise InvalidValueError(f"spelling must not be {terms.spelling!r} on {opened.engine}: its trim is not known")


def _may_become_floats(opened: Opened, item: str, kind: str) -> bool:
    """Whether a missing item makes floats of a pandas column, which merges whole numbers beyond 2^53."""
    return opened.is_pandas and item in opened.undeclared and kind in ("integer", "string")
