"""The query of the scores: distinct users of an item, or clipped totals of users added up, over the whole domain.

With groups it is one query for all of them, of what somebody touched: groups times items are never laid out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.privacy import Sensitivity, exact, positive
from discreet.sources.events.cells import is_missing, read_cell, user_key
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.engine import ask
from discreet.sources.events.group_keys import GroupSplit
from discreet.sources.events.ranges import Integers

MOST_STEPS = 10**9
"""Maximum number of steps of a clip bound, at which the value of a row saturates too.

Sums then fit 64 bits for more than nine billion users; engines with decimals add up decimals anyway.
"""

_LEAST, _GREATEST = Fraction(1, 10**250), Fraction(10**250)
"""Range of the resolution in which a quarter of a step and MOST_STEPS steps are finite, normal doubles."""


@dataclass(frozen=True, eq=False, repr=False)
class Steps:
    """The clip bounds of a sum in whole steps of a resolution that divides them."""

    low: int
    high: int
    resolution: Fraction

    @classmethod
    def parse(cls, value: Any, clip: Any, resolution: Any) -> Steps | None:
        """Parse the arguments of `events`; return None without `value`, because scores then count users."""
        if value is None:
            for argument, given in (("clip", clip), ("resolution", resolution)):
                if given is not None:
                    raise InvalidValueError(
                        f"{argument} must be left out without value, because scores then count users"
                    )
            return None
        if clip is None:
            raise InvalidValueError("clip must be given with value, as (low, high): the most one user may move a score")
        try:
            given_low, given_high = clip
        except (TypeError, ValueError):
            raise InvalidTypeError(f"clip must be a pair (low, high), not {quote(clip)}") from None
        low, high = exact(given_low, "clip low"), exact(given_high, "clip high")
        if low > high:
            raise InvalidValueError(f"clip must be (low, high) with low at most high, not {quote(clip)}")
        if low == high == 0:
            raise InvalidValueError("clip must leave room for a score to move, not (0, 0)")
        if resolution is None and not low.denominator == high.denominator == 1:
            raise InvalidValueError("resolution must be given where clip is not in whole numbers, for example '0.01'")
        unit = Fraction(1) if resolution is None else positive(resolution, "resolution")
        if not _LEAST <= unit <= _GREATEST:
            raise InvalidValueError(f"resolution must be from 1e-250 to 1e250, not {quote(resolution)}")
        if (low / unit).denominator != 1 or (high / unit).denominator != 1:
            raise InvalidValueError(
                f"resolution must divide the clip bounds {low} and {high}, and {quote(resolution)} does not"
            )
        if max(abs(low), abs(high)) / unit > MOST_STEPS:
            raise InvalidValueError(
                f"resolution must leave the clip bounds at most {MOST_STEPS} steps, not {quote(resolution)}"
            )
        return cls(int(low / unit), int(high / unit), unit)

    @property
    def sensitivity(self) -> Sensitivity:
        """The distance that one user can move a sum down and up."""
        return Sensitivity(max(0, -self.low) * self.resolution, max(0, self.high) * self.resolution)


# At most so many items a user: which of them are kept, decided by the user's own items in the domain and nothing else.
#
# Each item of the domain has an ordinal, from 0, in the order of the items themselves. A user's items are hashed as
# multiplier * (ordinal + 1) mod 2^31, with an odd multiplier made of the sum of the user's own ordinals, and those with
# the least hashes are kept. So no item of the domain is favoured, and users with other items choose otherwise; two
# users
# with the same items keep the same ones. Products and sums fit 63 bits and remainders are masks of bits, which are the
# same on every engine (SQLite computes remainders in floats).

MASK = 2**31 - 1
"""Ordinals are taken modulo 2^31; smaller ones have different hashes, because the multiplier is odd."""

MIX = 1_327_217_885
"""2^31 over the golden ratio, which spreads the small sums of small domains over all multipliers."""


def number_items(domain: Integers | ListedDomain, opened: Opened) -> Any:
    """Return the items of a domain with their ordinals, on the engine of the events; a range needs no table."""
    if isinstance(domain, Integers):
        return domain
    return adopt_ordinals(read_in_order(domain, opened)["item"], opened)


def read_in_order(domain: ListedDomain, opened: Opened) -> Any:
    """The rows of a domain as an Arrow table, in the order of the items, which is made here.

    By size or code point, because engines sort text by rules of their own.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    backend = opened.table.get_backend()
    rows = ask(opened.engine, "reading the domain", lambda: backend.to_pyarrow(domain.table)).combine_chunks()
    items = rows["item"].combine_chunks()
    return rows.take(pc.array_sort_indices(items.cast(pa.uint8()) if domain.kind == "boolean" else items))


def adopt_ordinals(items: Any, opened: Opened) -> Any:
    """Items in their order, each with its ordinal, on the engine of the events."""
    import pyarrow as pa

    return opened.adopt(pa.table({"item": items, "ordinal": np.arange(len(items)) & MASK}))


def join_ordinals(rows: Any, ordinals: Any, dialect: Dialect) -> Any:
    """The rows of the domain's items, each with its ordinal; items of text are bytes here."""
    if not isinstance(ordinals, Integers):
        joined = rows.inner_join(ordinals, rows.item == dialect.group_key(ordinals.item))
        others = {name: rows[name] for name in rows.columns if name != "item"}
        return joined.select(item=rows.item, ordinal=ordinals.ordinal, **others)
    inside = rows.filter(rows.item.between(ordinals.lo, ordinals.hi))
    # item - lo modulo 2^31, without a difference that could leave 64 bits.
    return inside.mutate(ordinal=((inside.item & MASK) + (-ordinals.lo & MASK)) & MASK)


def keep_first_items(pairs: Any, ordinals: Any, most: int, within: Sequence[str] = ()) -> Any:
    """At most so many rows of every user, or of every user within each group, by the hash of their ordinals.

    What is kept of a user depends on the rows of this user alone: every window is over one user. As few queries inside
    each other as can be, because SQLite's parser does not go deep.

    Parameters
    ----------
    pairs
        One row for each user and item, with the ordinal of the item.
    ordinals
        What they come from.
    most
        How many rows to keep.
    within
        The columns in each of whose values so many are kept.
    """
    import ibis

    own = ["who", *within]
    # A sum of numbers below 2^31 fits 63 bits for four billion items of one user. PostgreSQL adds up numbers of 32 bits
    # in 64, and those of 64 in decimals, which have no bits to mask.
    total = pairs.ordinal.cast("int32").sum().over(group_by=own)
    multiplier = ((total & MASK) * MIX & MASK) | 1
    hashed = pairs.mutate(hash=(multiplier * (pairs.ordinal + 1)) & MASK)
    # Numbers far apart can share an ordinal.
    order = [hashed.hash, hashed.item if isinstance(ordinals, Integers) else hashed.ordinal]
    position = ibis.row_number().over(ibis.window(group_by=own, order_by=order))
    ranked = hashed.mutate(position=position)
    return ranked.filter(ranked.position < most)


def pair_scores(scores: Any, clipped: Any, dialect: Dialect) -> Any:
    """How many items have each pair of a score and the score with a bound, which is 0 where nobody keeps the item."""
    import ibis

    joined = scores.left_join(clipped, dialect.group_key(scores.item) == dialect.group_key(clipped.item))
    pairs = joined.select(score=scores.score.cast("int64"), kept=ibis.coalesce(clipped.score, 0).cast("int64"))
    return pairs.group_by("score", "kept").agg(items=pairs.count())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RowReading:
    """How a row of events is read, and how the totals of users are added up.

    Attributes
    ----------
    columns
        The columns of the user, the item and the value, by these names.
    kind
        The type that the items have.
    steps
        Values as whole steps; None where scores count users.
    dialect
        That of the engine.
    """

    columns: dict[str, str]
    kind: str
    steps: Steps | None
    dialect: Dialect

    def _read_rows(self, table: Any) -> dict[str, Any]:
        """Of each row the user, the item and, where scores are sums, the steps."""
        item = self.dialect.group_key(self._read_item(table[self.columns["item"]]))
        read = {"who": self._read_user(table), "item": item}
        return (
            read if self.steps is None else read | {"steps": self._to_steps(table[self.columns["value"]], self.steps)}
        )

    def lay_out(self, table: Any) -> Any:
        """Every row, whatever it lacks: the user and the item, both cells as text, and whether the item is missing.

        It is for looking at rows, which no release does.
        """
        user, cell = (table[self.columns[name]] for name in ("user", "item"))
        texts = {"user": read_cell(self.dialect, user, "string"), "spelled": read_cell(self.dialect, cell, "string")}
        return table.select(**self._read_rows(table), **texts, gap=is_missing(cell))

    def _read_user(self, table: Any) -> Any:
        return user_key(self.dialect, table[self.columns["user"]])

    def _read_item(self, item: Any) -> Any:
        """The item of a row as the domain spells it, or nothing where it cannot be one; no row makes this fail."""
        return read_cell(self.dialect, item, self.kind)

    def _to_steps(self, value: Any, steps: Steps) -> Any:
        """Return a row's value in whole steps: rounded to the nearest, saturated, and NULL where it is no number."""
        import ibis

        unit = float(steps.resolution)
        bound = MOST_STEPS * unit
        number = read_cell(self.dialect, value, "float")
        if self.dialect.has_typed_columns:
            number = number.isnan().ifelse(None, number)
        rounded = (number.clip(-bound, bound) / unit + 0.5).floor().cast("int64")
        # PostgreSQL fails on a quotient that is too small for a double.
        return ibis.cases((number.abs() < unit / 4, ibis.literal(0, "int64")), else_=rounded)

    def _drop_gaps(self, rows: Any) -> Any:
        """The rows that have all that a score needs, with steps in a type in which they can be added up."""
        rows = rows.filter(rows.who.notnull() & rows.item.notnull())
        if self.steps is None:
            return rows
        rows = rows.filter(rows.steps.notnull())
        return rows.mutate(steps=rows.steps.cast(self.dialect.total_type))

    def _add_users(self, by_user: Any, key: Sequence[str]) -> Any:
        """The score of each item: how many users it has, or the sum of their clipped totals, which cannot overflow."""
        by_user = self._clip_totals(by_user)
        return by_user.group_by(*key).agg(score=self._sum_users(by_user))

    def _clip_totals(self, by_user: Any) -> Any:
        """The rows of users and items, with totals in the caller's bounds where scores are sums."""
        if self.steps is None:
            return by_user
        clipped = by_user.total.clip(self.steps.low, self.steps.high).cast(self.dialect.total_type)
        return by_user.mutate(total=clipped)

    def _sum_users(self, by_user: Any) -> Any:
        """What all users add to a score: one each, or their clipped totals."""
        return by_user.count() if self.steps is None else by_user.total.sum().cast("int64")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scoring(RowReading):
    """How rows of events become scores of a public list of items.

    Attributes
    ----------
    domain
        The public list of items.
    max_items_per_user, ordinals
        How many items of a user are scored, all if None, and where each item stands in the order that decides which.
    """

    domain: Integers | ListedDomain
    max_items_per_user: int | None
    ordinals: Any

    def _read_item(self, item: Any) -> Any:
        """The item of a row as the domain spells it, by its number where the domain is never written out."""
        if isinstance(self.domain, Integers):
            return self.domain.read_item(self.dialect, item)
        return super()._read_item(item)

    def scores(self, table: Any) -> Any:
        """The expression of the scores: one row for each item of a listed domain, or each touched item of a range."""
        import ibis

        rows = table.select(**self._read_rows(table))
        if self.counts_all_items:
            # count(distinct) passes over missing users by itself, and the join with the domain over missing items.
            touched = rows.group_by("item").agg(score=rows.who.nunique())
        else:
            touched = self._add_users(self._score_by_user(rows), ["item"])
        if isinstance(self.domain, Integers):
            return touched.filter(touched.item.between(self.domain.lo, self.domain.hi))
        domain = self.domain.table
        joined = domain.left_join(touched, self.dialect.group_key(domain.item) == touched.item)
        shown_too = {"label": domain.label} if self.domain.labelled else {}
        return joined.select(item=domain.item, score=ibis.coalesce(touched.score, 0), **shown_too)

    def scores_by_group(self, table: Any, again: Any, split: GroupSplit) -> Any:
        """The expression of the scores of each group: a row for each item of the domain that somebody touched there.

        Items of a listed domain are their ordinals. The parts have names and stand beside each other, because SQLite's
        parser does not go deep.

        Parameters
        ----------
        table
            The events.
        again
            The same as an expression of its own. One that is used twice becomes a common table expression, and DuckDB
            and PostgreSQL would keep all rows of that, where reading them twice needs no memory.
        split
            The groups, and which of them a user counts in.
        """
        rows = split.groups.add_ordinals(table, **self._read_rows(table))
        rows = rows.filter(rows.who.notnull()).alias("discreet_rows")
        users = split.groups.add_ordinals(again, who=self._read_user(again))
        users = users.filter(users.who.notnull())
        if self.counts_all_items:
            own = split.keep_own_groups(rows, users)
            touched = own.group_by("grp", "item").agg(score=own.who.nunique())
            inside = join_ordinals(touched, self.ordinals, self.dialect)
            return inside.select(grp=inside.grp, item=inside[self._number_column], score=inside.score)
        # A user's items in a group are the same whether the group counts or not.
        by_user = self._score_by_user(rows, ["grp"]).alias("discreet_users")
        scored = self._add_users(split.keep_own_groups(by_user, users), ["grp", self._number_column])
        return scored.rename(item=self._number_column)

    @property
    def counts_all_items(self) -> bool:
        """Whether scores are numbers of users, each of whom may count for any number of items."""
        return self.steps is None and self.max_items_per_user is None

    @property
    def _number_column(self) -> str:
        """The column of the number by which an item of a group is known, beside that of the items themselves."""
        return "item" if isinstance(self.domain, Integers) else "ordinal"

    def _score_by_user(self, rows: Any, within: Sequence[str] = ()) -> Any:
        """One row for each user and item that counts, in each group, with the user's total where scores are sums.

        Rows without a user are dropped, and with groups or a bound those of items outside of the domain.
        """
        rows = rows.filter(rows.who.notnull()) if self.steps is None else self._drop_gaps(rows)
        most, numbered = self.max_items_per_user, []
        if most is not None or within:
            rows, numbered = join_ordinals(rows, self.ordinals, self.dialect), ["ordinal"]
        if self.steps is None:
            by_user = rows.distinct()
        else:
            by_user = rows.group_by("who", *within, "item", *numbered).agg(total=rows.steps.sum())
        return by_user if most is None else keep_first_items(by_user, self.ordinals, most, within)
