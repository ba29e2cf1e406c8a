"""Build the query of the scores: the distinct users of each item, or the sum of the clipped totals of its users.

With groups one query scores all of them. It returns only the pairs of group and item that have a user, never the whole
product of groups and items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.privacy import Sensitivity, exact, positive_exact
from discreet.sources.events.cells import is_missing, is_untyped, read_cell
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.group_keys import GroupSplit
from discreet.sources.events.ranges import Integers

MOST_STEPS = 10**9
"""Maximum number of steps of a clip bound, at which the value of a row saturates too.

Sums then fit 64 bits for more than nine billion users; engines with decimals add up decimals anyway.
"""

_LEAST, _GREATEST = Fraction(1, 10**250), Fraction(10**250)
"""Range of the resolution in which a quarter of a step and MOST_STEPS steps are finite, normal doubles."""

MASK = 2**31 - 1
"""Ordinals and hashes are taken modulo 2^31; ordinals below 2^31 have different hashes, as the multiplier is odd."""

MIX = 1_327_217_885
"""2^31 over the golden ratio; it spreads the small sums of small domains over all multipliers."""


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
        unit = Fraction(1) if resolution is None else positive_exact(resolution, "resolution")
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RowReading:
    """Reads the rows of events and adds up the totals of users.

    Attributes
    ----------
    columns
        The columns of the user, the item and the value, by the keys "user", "item" and "value".
    kind
        The kind of the items.
    steps
        The clip bounds in whole steps, None if scores count users.
    dialect
        The dialect of the engine.
    """

    columns: dict[str, str]
    kind: str
    steps: Steps | None
    dialect: Dialect

    def read_rows(self, table: Any) -> dict[str, Any]:
        """Return the user and the item of each row and, if scores are sums, the value in whole steps.

        A value is rounded to the nearest step and saturates; the steps are NULL if the value is no number.
        """
        import ibis

        item = self.dialect.row_key(self.read_item(table[self.columns["item"]]))
        read = {"who": self.read_user(table), "item": item}
        if self.steps is None:
            return read
        unit = float(self.steps.resolution)
        bound = MOST_STEPS * unit
        number = read_cell(self.dialect, table[self.columns["value"]], "float")
        if self.dialect.has_typed_columns and self.dialect.has_nan:
            number = number.isnan().ifelse(None, number)
        rounded = (number.clip(-bound, bound) / unit + 0.5).floor().cast("int64")
        # PostgreSQL fails on a quotient that is too small for a double.
        tiny = number.abs() < unit / 4
        return {**read, "steps": ibis.cases((tiny, ibis.literal(0, "int64")), else_=rounded)}

    def lay_out(self, table: Any) -> Any:
        """Return every row, also incomplete ones: user and item, both cells as text, and `gap` if the item is missing.

        This is for `check_events`; no release looks at rows.
        """
        user, cell = (table[self.columns[name]] for name in ("user", "item"))
        texts = {"user": read_cell(self.dialect, user, "string"), "spelled": read_cell(self.dialect, cell, "string")}
        return table.select(**self.read_rows(table), **texts, gap=is_missing(cell))

    def read_user(self, table: Any) -> Any:
        """Return the key that distinguishes users, NULL for a cell that is no user; it depends on the cell alone."""
        import ibis

        column = table[self.columns["user"]]
        dtype = column.type()
        if is_untyped(dtype):
            # A field of a structure has no collation, so its text is compared by bytes.
            return ibis.coalesce(column["other"], read_cell(self.dialect, column, "string"))
        if self.dialect.user_key is not None:
            return self.dialect.user_key(column)
        if dtype.is_floating():
            column = read_cell(self.dialect, column, "integer")
        return self.dialect.row_key(column)

    def read_item(self, item: Any) -> Any:
        """Return the item of each row as the domain spells it, NULL if it can be none; no row makes this fail."""
        return read_cell(self.dialect, item, self.kind)

    def drop_gaps(self, rows: Any) -> Any:
        """Return the rows that have a user, an item and a value, with steps in the type in which they are added up."""
        rows = rows.filter(rows.who.notnull() & rows.item.notnull())
        if self.steps is None:
            return rows
        rows = rows.filter(rows.steps.notnull())
        return rows.mutate(steps=rows.steps.cast(self.dialect.total_type))

    def add_users(self, by_user: Any, key: Sequence[str]) -> Any:
        """Return the score of each item: the number of its users, or the sum of their clipped totals."""
        by_user = self.clip_totals(by_user)
        return by_user.group_by(*key).agg(score=self.sum_users(by_user))

    def clip_totals(self, by_user: Any) -> Any:
        """Return the rows of users and items, with totals clipped to the bounds if scores are sums."""
        if self.steps is None:
            return by_user
        clipped = by_user.total.clip(self.steps.low, self.steps.high).cast(self.dialect.total_type)
        return by_user.mutate(total=clipped)

    def sum_users(self, by_user: Any) -> Any:
        """Return the contributions of all users to a score, one each or their clipped totals; no sum overflows."""
        return by_user.count() if self.steps is None else by_user.total.sum().cast("int64")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scoring(RowReading):
    """Computes the scores of a public list of items from rows of events.

    Attributes
    ----------
    domain
        The public list of items.
    max_items_per_user, ordinals
        The maximum number of items of a user that are scored, None for all, and the numbered items that decide which.
    """

    domain: Integers | ListedDomain
    max_items_per_user: int | None
    ordinals: Any

    def read_item(self, item: Any) -> Any:
        """Return the item of each row as the domain spells it, as its number if the domain is a range."""
        if isinstance(self.domain, Integers):
            return self.domain.read_item(self.dialect, item)
        return super().read_item(item)

    def scores(self, table: Any) -> Any:
        """Return the scores, with one row for each item of a listed domain or for each touched item of a range."""
        import ibis

        rows = table.select(**self.read_rows(table))
        if self.counts_all_items:
            # count(distinct) ignores missing users, and the join with the domain drops missing items.
            touched = rows.group_by("item").agg(score=rows.who.nunique())
        else:
            touched = self.add_users(self._total_by_user(rows), ["item"])
        if isinstance(self.domain, Integers):
            return touched.filter(touched.item.between(self.domain.lo, self.domain.hi))
        domain = self.domain.table
        listed = self.dialect.drop_affinity(self.dialect.group_key(domain.item))
        joined = domain.left_join(touched, listed == touched.item)
        shown_too = {"label": domain.label} if self.domain.labelled else {}
        return joined.select(item=domain.item, score=ibis.coalesce(touched.score, 0), **shown_too)

    def scores_by_group(self, table: Any, again: Any, split: GroupSplit) -> Any:
        """Return the scores of each group, with one row for each item of the domain that has a user there.

        Items of a listed domain are given by their ordinals. The subqueries have names and stand side by side, because
        SQLite's parser limits the depth.

        Parameters
        ----------
        table
            The events.
        again
            A second expression of the events. An expression that is used twice becomes a common table expression, of
            which DuckDB and PostgreSQL would keep all rows in memory; reading the events twice needs none.
        split
            The groups, and the rule for the groups in which a user counts.
        """
        rows = split.groups.add_ordinals(table, **self.read_rows(table))
        rows = rows.filter(rows.who.notnull()).alias("discreet_rows")
        users = split.groups.add_ordinals(again, who=self.read_user(again))
        users = users.filter(users.who.notnull())
        if self.counts_all_items:
            own = split.keep_own_groups(rows, users)
            touched = own.group_by("grp", "item").agg(score=own.who.nunique())
            inside = join_ordinals(touched, self.ordinals, self.dialect)
            return inside.select(grp=inside.grp, item=inside[self._number_column], score=inside.score)
        # The items of a user in a group do not depend on the groups that count, so they are chosen first.
        by_user = self._total_by_user(rows, ["grp"]).alias("discreet_users")
        scored = self.add_users(split.keep_own_groups(by_user, users), ["grp", self._number_column])
        return scored.rename(item=self._number_column)

    @property
    def counts_all_items(self) -> bool:
        """True if scores count users without a contribution bound, and the engine counts them by itself."""
        return self.steps is None and self.max_items_per_user is None and self.dialect.counts_distinct

    @property
    def _number_column(self) -> str:
        """The column of the number that stands for an item: the item of a range, else the ordinal."""
        return "item" if isinstance(self.domain, Integers) else "ordinal"

    def _total_by_user(self, rows: Any, within: Sequence[str] = ()) -> Any:
        """Return one row for each user, group and item that counts, with the user's total if scores are sums.

        Rows without a user are dropped. With groups or a bound, rows of items outside of the domain are dropped too.
        """
        rows = rows.filter(rows.who.notnull()) if self.steps is None else self.drop_gaps(rows)
        most, numbered = self.max_items_per_user, []
        if most is not None or within:
            rows, numbered = join_ordinals(rows, self.ordinals, self.dialect), ["ordinal"]
        if self.steps is None:
            by_user = rows.distinct()
        else:
            by_user = rows.group_by("who", *within, "item", *numbered).agg(total=rows.steps.sum())
        return by_user if most is None else keep_first_items(by_user, self.ordinals, most, within)


def join_ordinals(rows: Any, ordinals: Any, dialect: Dialect) -> Any:
    """Return the rows of items in the domain, each with the ordinal of its item; items of text are bytes."""
    if not isinstance(ordinals, Integers):
        listed = dialect.index_items(ordinals)
        joined = rows.inner_join(listed, rows.item == dialect.group_key(listed.item))
        others = {name: rows[name] for name in rows.columns if name != "item"}
        return joined.select(item=rows.item, ordinal=listed.ordinal, **others)
    inside = rows.filter(rows.item.between(ordinals.lo, ordinals.hi))
    # This is item - lo modulo 2^31, without a difference that could leave 64 bits.
    return inside.mutate(ordinal=((inside.item & MASK) + (-ordinals.lo & MASK)) & MASK)


def keep_first_items(pairs: Any, ordinals: Any, most: int, within: Sequence[str] = ()) -> Any:
    """Return at most `most` rows of every user, or of every user in each group, those with the least hashes.

    An item is hashed as multiplier * (ordinal + 1) mod 2^31, with an odd multiplier made of the sum of the user's
    ordinals. So no item is favoured, users with different items choose differently, and the choice depends on the rows
    of one user alone. Products and sums fit 63 bits, and remainders are bit masks, which all engines compute alike
    (SQLite computes remainders in floats). Few queries are nested, because SQLite's parser limits the depth.

    Parameters
    ----------
    pairs
        One row for each user and item, with the ordinal of the item.
    ordinals
        The numbered items, with their ordinals, or a range.
    most
        The maximum number of rows to keep.
    within
        The group columns; `most` rows of a user are kept in each group.
    """
    import ibis

    own = ["who", *within]
    # A sum of ordinals below 2^31 fits 63 bits for four billion items of one user. PostgreSQL adds up 32-bit integers
    # in 64 bits, and 64-bit integers in decimals, which have no bits to mask.
    total = pairs.ordinal.cast("int32").sum().over(group_by=own)
    multiplier = ((total & MASK) * MIX & MASK) | 1
    hashed = pairs.mutate(hash=(multiplier * (pairs.ordinal + 1)) & MASK)
    # Two items of a range can share an ordinal, and then the item itself decides.
    order = [hashed.hash, hashed.item if isinstance(ordinals, Integers) else hashed.ordinal]
    position = ibis.row_number().over(ibis.window(group_by=own, order_by=order))
    ranked = hashed.mutate(position=position)
    return ranked.filter(ranked.position < most)


def pair_scores(scores: Any, clipped: Any, dialect: Dialect) -> Any:
    """Count the items for each pair of a score and the score under a bound, 0 for an item that no user keeps."""
    import ibis

    joined = scores.left_join(clipped, dialect.group_key(scores.item) == dialect.group_key(clipped.item))
    pairs = joined.select(score=scores.score.cast("int64"), kept=ibis.coalesce(clipped.score, 0).cast("int64"))
    return pairs.group_by("score", "kept").agg(items=pairs.count())
