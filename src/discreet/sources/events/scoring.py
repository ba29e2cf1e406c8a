"""The query of the scores: distinct users of an item, or clipped totals of users added up, over the whole domain.

With groups it is one query for all of them, of what somebody touched: groups times items are never laid out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from discreet.sources.events.bounded import join_ordinals, keep_first_items
from discreet.sources.events.cells import read_cell, user_key
from discreet.sources.events.dialects import Dialect
from discreet.sources.events.domain import Integers, ListedDomain
from discreet.sources.events.group_split import GroupSplit
from discreet.sources.events.steps import MOST_STEPS, Steps


@dataclass(frozen=True, eq=False, repr=False)
class Scoring:
    """How rows of events become scores.

    Attributes
    ----------
    columns
        The columns of the user, the item and the value, by these names.
    domain, kind
        The public list of items, and the type that they have.
    steps
        Values as whole steps; None where scores count users.
    dialect
        That of the engine.
    undeclared
        The columns whose type nobody has declared.
    max_items_per_user, ordinals
        How many items of a user are scored, all if None, and where each item stands in the order that decides which.
    """

    columns: dict[str, str]
    domain: Integers | ListedDomain
    kind: str
    steps: Steps | None
    dialect: Dialect
    undeclared: frozenset[str]
    max_items_per_user: int | None
    ordinals: Any

    def scores(self, table: Any) -> Any:
        """The expression of the scores: one row for each item of a listed domain, or each touched item of a range."""
        import ibis

        touched = self._score_items(table.select(**self._read_rows(table)))
        if isinstance(self.domain, Integers):
            return touched.filter(touched.item.between(self.domain.lo, self.domain.hi))
        domain = self.domain.table
        joined = domain.left_join(touched, self.dialect.group_key(domain.item) == touched.item)
        shown_too = {"label": domain.label} if self.domain.labelled else {}
        return joined.select(item=domain.item, score=ibis.coalesce(touched.score, 0), **shown_too)

    def scores_by_group(self, table: Any, split: GroupSplit) -> Any:
        """The expression of the scores of each group: a row for each item of the domain that somebody touched there.

        Items of a listed domain are their ordinals.
        """
        rows = split.groups.add_ordinals(table, **self._read_rows(table))
        touched = self._score_items(split.keep_own_groups(rows.filter(rows.who.notnull())), ["grp"])
        inside = join_ordinals(touched, self.ordinals, self.dialect)
        item = inside.item if isinstance(self.domain, Integers) else inside.ordinal
        return inside.select(grp=inside.grp, item=item, score=inside.score)

    def _read_rows(self, table: Any) -> dict[str, Any]:
        """Of each row the user, the item and, where scores are sums, the steps."""
        columns = self.columns
        who = user_key(self.dialect, table[columns["user"]], declared=columns["user"] not in self.undeclared)
        read = {"who": who, "item": self.dialect.group_key(self._read_item(table[columns["item"]]))}
        return read if self.steps is None else read | {"steps": self._to_steps(table[columns["value"]], self.steps)}

    def _score_items(self, rows: Any, within: Sequence[str] = ()) -> Any:
        """The scores of the items that somebody touched, those outside of the domain too, within each group."""
        return self._count_users(rows, within) if self.steps is None else self._sum_values(rows, self.steps, within)

    def _read_item(self, item: Any) -> Any:
        """The item of a row as the domain spells it, or nothing where it cannot be one; no row makes this fail."""
        return read_cell(self.dialect, item, self.kind)

    def _to_steps(self, value: Any, steps: Steps) -> Any:
        """A row's value in whole steps: rounded to the nearest, saturated, and missing where it is no number."""
        unit = float(steps.resolution)
        bound = MOST_STEPS * unit
        if value.type().is_decimal() and self.dialect.has_typed_columns:
            # One beyond all floats, or one too small for them, would fail to convert.
            value = self.dialect.drop_strange_decimals(value).clip(-ceil(bound), ceil(bound))
        number = read_cell(self.dialect, value, "float")
        if self.dialect.has_typed_columns:
            number = number.isnan().ifelse(None, number)
        return (number.clip(-bound, bound) / unit + 0.5).floor().cast("int64")

    def _count_users(self, rows: Any, within: Sequence[str]) -> Any:
        """Per item, the number of distinct users."""
        if self.max_items_per_user is None:
            # count(distinct) passes over missing users by itself, and the join with the domain over missing items.
            return rows.group_by(*within, "item").agg(score=rows.who.nunique())
        pairs = join_ordinals(rows.filter(rows.who.notnull()), self.ordinals, self.dialect).distinct()
        kept = keep_first_items(pairs, self.ordinals, self.max_items_per_user, within)
        return kept.group_by(*within, "item").agg(score=kept.count())

    def _sum_values(self, rows: Any, steps: Steps, within: Sequence[str]) -> Any:
        """Per item, the sum over users of the user's clipped total, in a type that cannot overflow."""
        wide = self.dialect.total_type
        rows = rows.filter(rows.who.notnull() & rows.item.notnull() & rows.steps.notnull())
        rows = rows.mutate(steps=rows.steps.cast(wide))
        totals = self._total_by_user(rows, within)
        clipped = totals.mutate(total=totals.total.clip(steps.low, steps.high).cast(wide))
        return clipped.group_by(*within, "item").agg(score=clipped.total.sum().cast("int64"))

    def _total_by_user(self, rows: Any, within: Sequence[str]) -> Any:
        """For each user and item the sum of the steps, of all items or of those that count."""
        if self.max_items_per_user is None:
            return rows.group_by("who", *within, "item").agg(total=rows.steps.sum())
        rows = join_ordinals(rows, self.ordinals, self.dialect)
        totals = rows.group_by("who", *within, "item", "ordinal").agg(total=rows.steps.sum())
        return keep_first_items(totals, self.ordinals, self.max_items_per_user, within)
