"""The query of the scores: distinct users of an item, or clipped totals of users added up, over the whole domain.

With groups it is one query for all of them, of what somebody touched: groups times items are never laid out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.sources.events.bounded import join_ordinals, keep_first_items
from discreet.sources.events.cells import is_missing, read_cell, user_key
from discreet.sources.events.dialect import Dialect
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.group_split import GroupSplit
from discreet.sources.events.ranges import Integers
from discreet.sources.events.steps import MOST_STEPS, Steps


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
