"""Query the items of partition selection: the number of users for whom each counts, or their weights, and its score.

An item counts for a user if at most l of the user's items have a hash not above its own: the l items with the least
hashes, except that equal hashes count together or not at all. The hash of the key, the user and the item is the first
48 bits of MD5, which all engines compute alike. It depends on the user, so that no item is lucky for all users. Privacy
does not depend on the hash: a user's rows and the key alone decide which items count, and there are at most l of them.
With weights, each of the m items of a user that count, in all groups together, adds floor(G / sqrt(m)) whole steps.
With shares, the items with the least hashes, three or all m if m is less, add S / min(m, 3) whole steps each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.mechanisms.adaptive_discovery import HIDDEN_BEYOND, MOST_SHARED, SHARE_STEPS
from discreet.mechanisms.weighted_discovery import WEIGHT_STEPS
from discreet.sources.discovered import (
    ASCII,
    SPELLINGS,
    UNICODE,
    Discovered,
    FoundItems,
    UnlistedGroups,
    UnlistedSource,
)
from discreet.sources.events.cells import LARGEST_EXACT, null_unless, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.engine import ask
from discreet.sources.events.group_keys import GroupSplit, check_hash
from discreet.sources.events.lookup import Lookup
from discreet.sources.events.scoring import RowReading
from discreet.sources.events.table import EventTable, Question


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnlistedScoring(RowReading):
    """The rule that turns rows of events into scored items of partition selection.

    Attributes
    ----------
    spelling
        The rule by which spellings are one item.
    max_items_per_user
        The contribution bound in items for finding them.
    drops_long_numbers
        True if whole numbers beyond 2^53 are not items, because the column may have become one of floats.
    is_weighted
        True if users add weights that depend on how many of their items count, in place of 1 each.
    with_shares
        True if the result has the sum of an item's shares too, and the number of users for whom it counts.
    with_uncounted
        True if items that count for nobody are in the result too.
    """

    spelling: str
    max_items_per_user: int
    drops_long_numbers: bool
    is_weighted: bool = False
    with_shares: bool = False
    with_uncounted: bool = False

    def find_items(self, table: Any, key: str) -> Any:
        """Return the items as columns `item`, `score` (its users for whom it counts, or their weights) and `total`.

        Items that count for nobody are left out, unless `with_uncounted` is set.
        """
        rows = self.drop_gaps(table.select(**self.read_rows(table)))
        return self._count_users(self._add_up_by_user(rows), table, key)

    def find_items_by_group(self, table: Any, again: Any, split: GroupSplit, key: str) -> Any:
        """Return the same in each group, with a column `grp`; the parameters are those of `Scoring.scores_by_group`."""
        rows = self.drop_gaps(split.groups.add_ordinals(table, **self.read_rows(table))).alias("discreet_rows")
        users = split.groups.add_ordinals(again, who=self.read_user(again))
        by_user = self._add_up_by_user(rows, ["grp"]).alias("discreet_users")
        own = split.keep_own_groups(by_user, users.filter(users.who.notnull()))
        return self._count_users(own, table, key, ["grp"])

    def read_item(self, item: Any) -> Any:
        read = super().read_item(item)
        if self.kind == "string":
            read = unify_spellings(self.dialect, read, self.spelling)
        if self.kind == "date" and not self.dialect.dates_are_text:
            # Engines have dates beyond those of Python, even an infinite one, which cannot be read.
            read = null_unless(read.between(*map(self.dialect.date_literal, (date.min, date.max))), read)
        if not self.drops_long_numbers:
            return read
        import ibis

        # Whole numbers beyond 2^53, as numbers or spelled, may be floats because of a gap.
        number = read_cell(self.dialect, read, "float")
        spelled = read.re_search("^[+-]?[0-9]+$") if self.kind == "string" else ibis.literal(True)
        return ibis.cases((spelled & (number.abs() > LARGEST_EXACT), ibis.null(read.type())), else_=read)

    def _add_up_by_user(self, rows: Any, within: Sequence[str] = ()) -> Any:
        """Return one row for each user and item, in each group, with the user's total if scores are sums."""
        if self.steps is None:
            return rows.distinct()
        return rows.group_by("who", *within, "item").agg(total=rows.steps.sum())

    def _count_users(self, by_user: Any, table: Any, key: str, within: Sequence[str] = ()) -> Any:
        """Return the number of users for whom each item counts, or their weights, and its score among all users."""
        import ibis

        hashed = self.clip_totals(by_user).mutate(hash=self._hash(by_user, table, key))
        # Equal hashes count together or not at all: a second sort key would cost a tenth of the query.
        so_far = ibis.range_window(preceding=None, following=0, group_by=["who", *within], order_by=hashed.hash)
        ranked = hashed.mutate(counts=hashed.count().over(so_far) <= self.max_items_per_user)
        added: Any = 1
        shares: dict[str, Any] = {}
        if self.is_weighted:
            by_who = ibis.window(group_by="who")
            if within:
                ranked = ranked.mutate(own=ranked.counts.ifelse(1, 0).sum().over(by_who))
            else:
                ranked = hashed.mutate(place=hashed.count().over(so_far), touched=hashed.count().over(by_who))
                # If hashes are equal, fewer items may count than this, and the weights are only lower.
                own = ibis.least(ranked.touched, self.max_items_per_user)
                ranked = ranked.mutate(counts=ranked.place <= self.max_items_per_user, own=own)
                if self.with_shares:
                    # If hashes are equal, fewer items may have a share, and the shares are only lower.
                    has_share = ranked.place <= min(MOST_SHARED, self.max_items_per_user)
                    share = share_on_engine(ranked.own)
                    # The state of a count takes half the memory of that of a sum.
                    shares = {
                        "shared": has_share.ifelse(share, 0).cast("int32").sum().cast("int64"),
                        "counted": ranked.counts.ifelse(1, ibis.null("int8")).count(),
                    }
            added = weigh_on_engine(ranked.own)
        users = ranked.counts.ifelse(added, 0).cast("int32").sum().cast("int64")
        total = self.sum_users(ranked).cast("int64")
        scored = ranked.group_by(*within, "item").agg(users=users, total=total, **shares)
        counting = self._drop_uncounted(scored)
        item = counting.item
        text = item if self.kind != "string" or self.dialect.bytes_text is None else self.dialect.bytes_text(item)
        shown = {name: counting[name] for name in shares}
        return counting.select(*within, item=text, score=counting.users, total=counting.total, **shown)

    def _drop_uncounted(self, scored: Any) -> Any:
        """Drop the items that count for nobody: they may exist because of a user beyond the contribution bound."""
        return scored if self.with_uncounted else scored.filter(scored.users > 0)

    def _hash(self, by_user: Any, table: Any, key: str) -> Any:
        """Return the hash that decides which items of a user count, in an order that is the same on every engine."""
        import ibis

        who = by_user.who
        # A user in bytes whose column is not declared so was text.
        is_text = who.type().is_binary() and not table[self.columns["user"]].type().is_binary()
        named = self.dialect.text_of_key(who, is_text)
        if self.dialect.limit_to_calendar is not None and (who.type().is_timestamp() or who.type().is_nested()):
            # DuckDB cannot write timestamps at the ends of its range as text.
            named = ibis.coalesce(read_cell(self.dialect, who, "string"), "")
        item = self.dialect.text_of_key(by_user.item, self.kind == "string")
        return self.dialect.hash_texts(ibis.literal(key), named, ibis.literal("/"), item)


def unify_spellings(dialect: Dialect, text: Any, spelling: str) -> Any:
    """Return the item that a text spells, NULL for broken text, which no other function sees."""
    letters, trims = SPELLINGS[spelling]
    if letters == UNICODE and dialect.clean_text is not None and dialect.fold is not None:
        text = dialect.fold(dialect.clean_text(text))
    else:
        text = dialect.drop_broken_text(text)
        text = dialect.fold_case(text, "lower") if letters == ASCII else text
    return dialect.trim(text, "trim") if trims and dialect.trim is not None else text


def check_spelling(opened: Opened, spelling: str) -> None:
    """Raise if the engine has no function that a rule of spellings needs."""
    letters, trims = SPELLINGS[spelling]
    for needed, function in ((trims, opened.dialect.trim), (letters == UNICODE, opened.dialect.fold)):
        if needed and function is None:
            raise InvalidValueError(
                f"spelling must not be {spelling!r} on {opened.engine}: its functions of text are not known"
            )


def weigh_on_engine(own: Any) -> Any:
    """Return floor(G / sqrt(m)) for a column m, and for m = 0 what m = 1 has, exactly on every engine.

    If G / sqrt(m) is below a whole number n, then n^2 m - G^2 >= 1, and n is more than 2^-22 above it for m up to G^2.
    Adding 2^-24 thus reaches n only from a rounding error of more than half of that, and makes up for a smaller one.
    """
    import ibis

    root = ibis.greatest(own.cast("float64"), 1.0).sqrt()
    return (WEIGHT_STEPS / root + 2.0**-24).floor().cast("int32")


def share_on_engine(own: Any) -> Any:
    """Return the share in steps of each of the items that share the vote of a user, for a column of m."""
    import ibis

    shares = [(own == m, SHARE_STEPS // m) for m in range(1, MOST_SHARED)]
    return ibis.cases(*shares, else_=SHARE_STEPS // MOST_SHARED)


@dataclass(frozen=True, eq=False, repr=False)
class UnlistedTableSnapshot:
    """The items, in one temporary table of an engine; those that count for nobody are there for a shortfall alone."""

    lookup: Lookup
    engine: str
    scores: Any

    def count_hidden(self) -> int:
        hidden = SHARE_STEPS * self.scores.counted - (HIDDEN_BEYOND + 1) * self.scores.shared
        counted = self.scores.agg(hidden=hidden.max())
        (row,) = ask(self.engine, "counting the users", lambda: counted.to_pyarrow().to_pylist())
        # Of no rows it is NULL. Part of a user counts as one.
        return max(0, -(-int(row["hidden"] or 0) // SHARE_STEPS))

    def take_shares(self) -> UnlistedTableSnapshot:
        scores = self.scores.select("item", "total", score=self.scores.shared)
        return replace(self, lookup=self.lookup.count_by(scores), scores=scores)

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        runs = ask(self.engine, "counting the items", self.lookup.runs)
        # An item that counts for nobody is never found. Its run, of zero users, is the last one.
        counted = [([u for u in users if u > 0], items) for users, items in runs]
        return [(np.array(users, np.int64), np.array(items[: len(users)], np.int64)) for users, items in counted]

    def largest_scores(self, count: int) -> list[list[int]]:
        return ask(self.engine, "finding the largest scores", lambda: self.lookup.largest_totals(count))

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        found = ask(self.engine, "looking up the items", lambda: self.lookup.items(kept))
        return [FoundItems([item for item, _ in pairs], [total for _, total in pairs]) for pairs in found]


class UnlistedTable(EventTable, UnlistedSource):
    """Scores of items to be found in a table of events.

    The temporary table has a row for each item that counts for somebody, and for a shortfall for every item. Only the
    run-length encoding of the numbers of users leaves the engine, the largest scores for a shortfall, and then the
    items that were drawn to be kept, with their scores.
    """

    _scoring: UnlistedScoring

    def __init__(self, question: Question, terms: Discovered) -> None:
        super().__init__(question)
        opened, columns = question.opened, question.columns
        self.check_kind(terms.kind)
        check_hash(opened, "discovered")
        check_spelling(opened, terms.spelling)
        # Users of one item are counted, and sums are not numbers of users.
        terms = terms if question.steps is None else terms.without_choice()
        self.terms, self.adjacency = terms, question.adjacency
        self.sensitivity, self.grid = self._sensitivity, self._grid
        self._scoring = UnlistedScoring(
            columns=columns,
            kind=terms.kind,
            steps=question.steps,
            dialect=opened.dialect,
            spelling=terms.spelling,
            max_items_per_user=terms.max_items_per_user,
            is_weighted=terms.is_weighted,
            with_shares=terms.has_choice,
            # A gap in a pandas column turns whole numbers into floats, which merges those beyond 2^53.
            drops_long_numbers=opened.is_pandas
            and columns["item"] in opened.undeclared
            and terms.kind in ("integer", "string"),
        )

    def description(self) -> dict[str, Any]:
        return {**self.describe_question(), **self.terms.description()}

    @contextmanager
    def snapshot(self, key: str, with_uncounted: bool = False) -> Iterator[UnlistedTableSnapshot]:
        with self.exclusive():
            try:
                self.close()
                opened = self._opened
                scores = ask(
                    opened.engine,
                    "finding the items",
                    lambda: opened.dialect.cache(self.make_query(key, with_uncounted)),
                    "the right to make temporary tables" if opened.dialect.copies_local_tables else None,
                )
                groups = None if self._split is None else len(self._split.groups.keys)
                self._lookups.append(Lookup(scores, self.terms.kind, None, self._opened.dialect, groups))
                yield UnlistedTableSnapshot(self._lookups[-1], self._opened.engine, scores)
            finally:
                self.close()

    def make_query(self, key: str = "", with_uncounted: bool = False) -> Any:
        scoring = replace(self._scoring, with_uncounted=with_uncounted)
        return scoring.find_items(self._table, key)


class UnlistedGroupTable(UnlistedTable, UnlistedGroups):
    """Scores of items to be found in each of several public groups."""

    _split: GroupSplit

    def __init__(self, question: Question, terms: Discovered, split: GroupSplit) -> None:
        super().__init__(question, terms.without_choice())
        self._split = split
        self.keys, self.names = split.groups.keys, split.groups.names
        self.each_user, self.groups_per_user = split.each_user, split.groups_per_user

    def description(self) -> dict[str, Any]:
        return {**super().description(), **self._split.description()}

    def make_query(self, key: str = "", with_uncounted: bool = False) -> Any:
        again = self._filter(self._opened.events.view())
        scoring = replace(self._scoring, with_uncounted=with_uncounted)
        return scoring.find_items_by_group(self._table, again, self._split, key)
