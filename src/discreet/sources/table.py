"""From raw events to a tally: who did what, on DuckDB, PostgreSQL, SQLite, Spark or any other engine of ibis.

A score is the number of distinct users of an item, or the sum over users of what each adds to it, clipped. The scores
of all items are computed by one query and kept in one temporary table (`Table.cache`), which the tally and the lookup
of the chosen items both read. What crosses the wire is the tally, small counts, and the chosen items.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from fractions import Fraction
from math import ceil
from typing import Any, NoReturn

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.exact.entropy import Ranks
from discreet.privacy import Number, Sensitivity, check_adjacency, exact, positive
from discreet.sources.base import Source
from discreet.sources.bounded import first_items, placed, places
from discreet.sources.connect import Opened, files_of, open_table
from discreet.sources.domain import TYPES, Integers, Listed, integers, kind_of_type, listed, split_column
from discreet.sources.engine import ask
from discreet.sources.lookup import Lookup
from discreet.sources.names import choices, suggestion
from discreet.sources.raw import by_bytes
from discreet.sources.rowwise import check_rowwise
from discreet.tally import IntegerColumn, Tally

MOST_STEPS = 10**9
"""The most steps of resolution that a clip bound may have, and at which a row saturates: sums then fit 64 bits for
more than nine billion users, and engines with decimals use those anyway."""


def events(
    table: Any,
    *,
    user: str,
    item: str,
    domain: Any,
    label: str | None = None,
    where: str | None = None,
    value: str | None = None,
    clip: tuple[Number, Number] | None = None,
    resolution: Number | None = None,
    max_items_per_user: int | None = None,
    adjacency: str = "add-remove",
    name: str | None = None,
) -> TableSource:
    """A source of scores from a table of events, one row for something that a user did to an item.

    Parameters
    ----------
    table
        A path or pattern (.parquet, .csv, .tsv, .json, compressed or not), a pandas, polars or pyarrow table, a DuckDB
        relation, an ibis table of any engine, a Spark DataFrame, or a connection URL together with `name`.
    user, item
        The columns that say who and what. Rows without either are dropped, and so are items outside the domain.
    domain
        The public list of items: a list, a table, a file with its column ("movies.csv:movie_id"), or
        `discreet.integers(lo, hi)`. It must not come from the events.
    label
        A column of the domain to show in place of the item.
    where
        A condition on single rows, in DuckDB's SQL. What could look at other rows, or fail on one, is refused.
    value, clip, resolution
        Without `value` a score counts distinct users. With it, a score is the sum over users of the user's total for
        the item, clipped to the range `clip`, in whole steps of `resolution`.
    max_items_per_user
        Of each user's items in the domain, after `where`, only this many are scored: which ones is decided by these
        items alone, in an order that looks random. Counts then need less noise; the selection does not need it.
    adjacency
        "add-remove" or "swap": what two neighbouring tables differ by, in terms of whole users.
    name
        The table's name, where `table` is a URL.

    Returns
    -------
    TableSource
        What `top_k` takes; it knows how far one user can move a score.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> ratings = pyarrow.table({"who": [1, 1, 2, 3], "movie": ["dune", "dune", "dune", "heat"]})
    >>> source = discreet.events(ratings, user="who", item="movie", domain=["dune", "heat", "alien"])
    >>> discreet.top_k(source, k=1, epsilon=100).items
    ['dune']
    """
    check_adjacency(adjacency)
    most = _most_items(max_items_per_user)
    steps = _steps(value, clip, resolution)
    _refuse_own_domain(table, domain)
    opened = open_table(table, name, "table", _named(user, item, value, where))
    try:
        check_rowwise(opened.table)
        columns = {"user": user, "item": item, **({} if value is None else {"value": value})}
        for argument, column in columns.items():
            _check_column(opened, argument, column)
        return TableSource(opened, columns, domain, label, where, steps, adjacency, most)
    except BaseException:
        opened.close()
        raise


def _named(user: Any, item: Any, value: Any, where: Any) -> list[str]:
    """The columns that the caller names, those of the condition as far as it can be read."""
    names = [column for column in (user, item, value) if isinstance(column, str)]
    if isinstance(where, str):
        from discreet.sources.grammar import words

        names += words(where)
    return names


class _Steps:
    """Values as whole steps: the clip bounds and the saturation of a row, in steps of the resolution."""

    def __init__(self, low: Fraction, high: Fraction, resolution: Fraction) -> None:
        self.resolution = resolution
        self.low, self.high = int(low / resolution), int(high / resolution)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(max(0, -self.low) * self.resolution, max(0, self.high) * self.resolution)


class TableSource(Source):
    """Scores of a public domain from a table of events.

    Threads may share one, and take turns. It belongs to the process that made it, like the connection that it holds.
    """

    def __init__(
        self,
        opened: Opened,
        columns: dict[str, str],
        domain: Any,
        label: str | None,
        where: str | None,
        steps: _Steps | None,
        adjacency: str,
        max_items_per_user: int | None = None,
    ) -> None:
        self._opened, self._columns, self._steps = opened, columns, steps
        self.adjacency, self._label = adjacency, label
        self.sensitivity = Sensitivity() if steps is None else steps.sensitivity
        self.grid: Fraction = Fraction(1) if steps is None else steps.resolution
        self.max_items_per_user = max_items_per_user
        self._lock, self._process = threading.RLock(), os.getpid()
        self._where, self._table = where, self._filtered(opened.table, where)
        own_kind = None if opened.untyped else self._item_kind()
        if isinstance(domain, range) and domain.step == 1 and len(domain) and label is None:
            domain = integers(domain.start, domain.stop - 1)
        self._domain: Integers | Listed = (
            self._range(domain, label, own_kind)
            if isinstance(domain, Integers)
            else listed(domain, label, columns["item"], opened, own_kind)
        )
        kind = "integer" if isinstance(self._domain, Integers) else self._domain.kind
        if own_kind is not None and own_kind != kind:
            raise InvalidTypeError(f"domain must hold items like those of the events, {own_kind}s, not {kind}s")
        self._kind = kind
        self._places = None if max_items_per_user is None else places(self._domain, opened)
        self._snapshots: list[Lookup] = []
        # What was opened here ends with the source: the snapshot first, which needs its connection to go.
        weakref.finalize(self, _let_go, self._snapshots, opened, self._process)

    @property
    def d(self) -> int:
        return self._domain.d

    def description(self) -> dict[str, Any]:
        domain, steps = self._domain, self._steps
        listed = [domain.lo, domain.hi] if isinstance(domain, Integers) else domain.kind
        clip = None if steps is None else [steps.low, steps.high, str(steps.resolution)]
        most = self.max_items_per_user
        return {
            "columns": self._columns, "where": self._where, "clip": clip, "domain": listed, "label": self._label,
            **({} if most is None else {"max_items_per_user": most}),
        }  # fmt: skip

    def exclusive(self) -> AbstractContextManager[Any]:
        self._check_process()
        return self._lock

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidTypeError(
            "a source of events cannot be copied or pickled, because it holds a connection: "
            "call discreet.events where the source is needed"
        )

    def tally(self) -> Tally:
        self._check_process()
        self.close()
        # The snapshot is what this query returns; everything after reads its result.
        scores = ask(self._opened.engine, "computing the scores", self._snapshot)
        lookup = Lookup(scores, self._kind, self._domain)
        self._snapshots.append(lookup)
        values, counts = ask(self._opened.engine, "counting the scores", lambda: self._all_of(lookup.runs()))
        low = int(values[-1])
        keys = np.array([int(value) - low for value in values[::-1]], np.uint64)
        return Tally(IntegerColumn(keys, 0, low, self.grid), _last_ranks(counts))

    def items(self, ranks: Ranks) -> list[Any]:
        if not self._snapshots:
            raise InvalidValueError("items must be asked for after the tally, which takes the snapshot they come from")
        lookup = self._snapshots[-1]
        return ask(self._opened.engine, "looking up the items", lambda: lookup.items(ranks))

    def every_item(self) -> list[Any]:
        if isinstance(self._domain, Integers):
            return list(range(self._domain.lo, self._domain.hi + 1))
        table, shown_as = self._domain.table, "label" if self._domain.labelled else "item"
        backend = self._opened.table.get_backend()
        with self.exclusive():
            column = ask(
                self._opened.engine, "reading the domain", lambda: backend.to_pyarrow(table.select(shown_as))[shown_as]
            )
        found: list[Any] = column.to_pylist()
        return found

    def close(self) -> None:
        while self._snapshots:
            self._snapshots.pop().close()

    @property
    def _backend(self) -> str:
        """The engine, as ibis calls it."""
        return str(self._opened.table.get_backend().name)

    @property
    def _is_sqlite(self) -> bool:
        """SQLite has neither decimals nor NaN."""
        return self._backend == "sqlite"

    def _all_of(self, runs: tuple[list[int], list[int]]) -> tuple[list[int], list[int]]:
        """The runs, which must be of all items of the domain and of no more."""
        if sum(runs[1]) != self.d:
            raise RuntimeError("the engine has joined the domain in a way of its own")
        return runs

    def _check_process(self) -> None:
        """Refuses a forked process, in which the connection has lost its threads and shares its socket."""
        if os.getpid() != self._process:
            raise InvalidValueError(
                "a source of events must be used in the process that made it: call discreet.events in each process"
            )

    def _filtered(self, table: Any, where: str | None) -> Any:
        if where is None:
            return table
        from discreet.sources.where import condition

        return table.filter(condition(where, table, untyped=self._opened.untyped))

    def _item_kind(self) -> str:
        dtype = self._opened.table[self._columns["item"]].type()
        kind = kind_of_type(dtype)
        if kind is None:
            raise InvalidTypeError(
                f"item must be a column of strings, whole numbers, dates or booleans, not of {dtype}"
            )
        return kind

    def _range(self, domain: Integers, label: str | None, kind: str | None) -> Integers:
        if label is not None:
            raise InvalidValueError("label must be left out when domain is a range of whole numbers")
        if kind not in (None, "integer"):
            raise InvalidTypeError(f"domain must hold items like those of the events, {kind}s, not integers")
        return domain

    def _snapshot(self) -> Any:
        """The scores, kept on the engine."""
        return self._scores(self._table).cache()

    def _scores(self, table: Any) -> Any:
        """The expression of the scores: one row for each item of a listed domain, or each touched item of a range."""
        import ibis

        columns = self._columns
        who = by_bytes(self._backend, table[columns["user"]])
        what = by_bytes(self._backend, self._item(table[columns["item"]]))
        if self._steps is None:
            touched = self._users(table.select(who=who, item=what))
        else:
            whole = self._row_steps(table[columns["value"]], self._steps)
            touched = self._sums(table.select(who=who, item=what, steps=whole), self._steps)
        if isinstance(self._domain, Integers):
            return touched.filter(touched.item.between(self._domain.lo, self._domain.hi))
        domain = self._domain.table
        joined = domain.left_join(touched, by_bytes(self._backend, domain.item) == touched.item)
        shown_too = {"label": domain.label} if self._domain.labelled else {}
        return joined.select(item=domain.item, score=ibis.coalesce(touched.score, 0), **shown_too)

    def _item(self, item: Any) -> Any:
        """The item of a row as the domain spells it, or nothing where it cannot be one; no row makes this fail."""
        if self._opened.untyped:
            return item.try_cast(TYPES[self._kind])
        if self._kind != "integer":
            return item
        if self._is_sqlite:
            # SQLite keeps text in a column of numbers, and would read it as 0.
            return (item.typeof() == "integer").ifelse(item, None)
        return item.try_cast("int64") if item.type().is_unsigned_integer() else item.cast("int64")

    def _row_steps(self, value: Any, steps: _Steps) -> Any:
        """A row's value in whole steps: rounded to the nearest, saturated, and missing where it is no number."""
        unit = float(steps.resolution)
        bound = MOST_STEPS * unit
        if value.type().is_decimal():
            # A decimal can be beyond all floats, and converting it would fail.
            value = value.clip(-ceil(bound), ceil(bound))
        number = value.try_cast("float64") if self._opened.untyped else value.cast("float64")
        if self._is_sqlite:
            number = value.typeof().isin(["integer", "real"]).ifelse(number, None)
        else:
            number = number.isnan().ifelse(None, number)
        return (number.clip(-bound, bound) / unit + 0.5).floor().cast("int64")

    def _users(self, rows: Any) -> Any:
        """Per item, the number of distinct users."""
        if self.max_items_per_user is None:
            # count(distinct) passes over missing users by itself, and the join with the domain over missing items.
            return rows.group_by("item").agg(score=rows.who.nunique())
        pairs = placed(rows.filter(rows.who.notnull()), self._places, self._backend).distinct()
        kept = first_items(pairs, self._places, self.max_items_per_user)
        return kept.group_by("item").agg(score=kept.count())

    def _sums(self, rows: Any, steps: _Steps) -> Any:
        """Per item, the sum over users of the user's clipped total, in a type that cannot overflow."""
        wide = "int64" if self._is_sqlite else "decimal(38, 0)"
        rows = rows.filter(rows.who.notnull() & rows.item.notnull() & rows.steps.notnull())
        rows = rows.mutate(steps=rows.steps.cast(wide))
        totals = self._totals(rows)
        clipped = totals.mutate(total=totals.total.clip(steps.low, steps.high).cast(wide))
        return clipped.group_by("item").agg(score=clipped.total.sum().cast("int64"))

    def _totals(self, rows: Any) -> Any:
        """For each user and item the sum of the steps, of all items or of those that count."""
        if self.max_items_per_user is None:
            return rows.group_by("who", "item").agg(total=rows.steps.sum())
        rows = placed(rows, self._places, self._backend)
        totals = rows.group_by("who", "item", "place").agg(total=rows.steps.sum())
        return first_items(totals, self._places, self.max_items_per_user)


def _let_go(snapshots: list[Lookup], opened: Opened, process: int) -> None:
    # A forked copy must not end the connection of its parent.
    if os.getpid() != process:
        return
    while snapshots:
        snapshots.pop().close()
    opened.close()


def _last_ranks(counts: list[int]) -> Ranks:
    """The last rank of each run, where the runs have these lengths."""
    last, total = [], -1
    for count in counts:
        total += count
        last.append(total)
    return np.array(last, np.int64)


def _most_items(given: Any) -> int | None:
    if given is None:
        return None
    message = f"max_items_per_user must be a whole number from 1, not {shown(given)}"
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise InvalidTypeError(message)
    if given < 1:
        raise InvalidValueError(message)
    return min(int(given), 2**63 - 1)


def _steps(value: Any, clip: Any, resolution: Any) -> _Steps | None:
    if value is None:
        for argument, given in (("clip", clip), ("resolution", resolution)):
            if given is not None:
                raise InvalidValueError(f"{argument} must be left out without value, because scores then count users")
        return None
    if clip is None:
        raise InvalidValueError("clip must be given with value, as (low, high): the most one user may move a score")
    try:
        given_low, given_high = clip
    except (TypeError, ValueError):
        raise InvalidTypeError(f"clip must be a pair (low, high), not {shown(clip)}") from None
    low, high = exact(given_low, "clip low"), exact(given_high, "clip high")
    if low > high:
        raise InvalidValueError(f"clip must be (low, high) with low at most high, not {shown(clip)}")
    if low == high == 0:
        raise InvalidValueError("clip must leave room for a score to move, not (0, 0)")
    unit = _resolution(resolution, low, high)
    if max(abs(low), abs(high)) / unit > MOST_STEPS:
        raise InvalidValueError(
            f"resolution must leave the clip bounds at most {MOST_STEPS} steps, not {shown(resolution)}"
        )
    return _Steps(low, high, unit)


def _resolution(resolution: Any, low: Fraction, high: Fraction) -> Fraction:
    if resolution is None:
        if low.denominator == high.denominator == 1:
            return Fraction(1)
        raise InvalidValueError("resolution must be given where clip is not in whole numbers, for example '0.01'")
    unit = positive(resolution, "resolution")
    if (low / unit).denominator != 1 or (high / unit).denominator != 1:
        raise InvalidValueError(
            f"resolution must divide the clip bounds {low} and {high}, and {shown(resolution)} does not"
        )
    return unit


def _check_column(opened: Opened, argument: str, column: Any) -> None:
    names = list(opened.table.columns)
    if not isinstance(column, str) or column not in names:
        _refuse_column(argument, column, names, opened.untyped)
    dtype = opened.table[column].type()
    if argument == "value" and not (opened.untyped or dtype.is_numeric()):
        raise InvalidTypeError(f"value must be a column of numbers, not of {dtype}")


def _refuse_column(argument: str, column: Any, names: list[str], untyped: bool) -> NoReturn:
    hint = suggestion(column, names, private=untyped)
    if untyped:
        raise InvalidValueError(
            f"{argument} must be a column of the table, and {shown(column)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"{argument} must be a column of the table, one of {choices(names)}, not {shown(column)}{hint}"
    )


def _refuse_own_domain(table: Any, domain: Any) -> None:
    """Refuses the events themselves as their domain, where that can be seen."""
    same = domain is table
    if isinstance(table, str | os.PathLike) and isinstance(domain, str | os.PathLike):
        path, _ = split_column(domain)
        same = bool(files_of(table) & files_of(path))
    elif hasattr(table, "equals") and type(table) is type(domain) and type(table).__module__.startswith("ibis"):
        same = bool(table.equals(domain))
    if same:
        raise InvalidValueError(
            "domain must be a public list of items, not the events themselves: an item that is listed because "
            "somebody touched it tells just that, and no epsilon covers it"
        )
