"""Compute scores from a table of events on DuckDB, PostgreSQL, SQLite, Spark or any other engine of ibis.

A score is the number of distinct users of an item, or the sum over users of their clipped values. One query computes
the scores of all items, and of all groups, into one temporary table (`Table.cache`), which the tally and the lookup of
the chosen items both read. Only the tally, small counts and the chosen items leave the engine. With groups, items of a
listed domain are stored as their ordinals in its order, so that untouched items are the free numbers, and labels are
looked up in the public list.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import OF_COUNTS, Expressions, Sensitivity
from discreet.sources.base import AnySource, GroupedSource, Source
from discreet.sources.clipped import ClippableSource, ClippedSource
from discreet.sources.events.cells import has_reading
from discreet.sources.events.connect import Opened, probe_query
from discreet.sources.events.domain import ListedDomain, holds_long_numbers, kind_of_type, open_listed_domain
from discreet.sources.events.engine import ask
from discreet.sources.events.formats import MOMENT_KIND
from discreet.sources.events.group_keys import GroupSplit
from discreet.sources.events.location import Location
from discreet.sources.events.lookup import Lookup, check_fetch
from discreet.sources.events.periods import OnePeriod
from discreet.sources.events.ranges import Integers, integers
from discreet.sources.events.scoring import MASK, RowReading, Scoring, Steps, pair_scores

if TYPE_CHECKING:
    from discreet.sources.events.where import Condition


@dataclass(frozen=True, eq=False, repr=False)
class Question:
    """The question to a table of events, whatever its items are.

    Attributes
    ----------
    opened
        The events.
    columns
        The columns of the user, the item and the value, by these names.
    where, during
        The condition and the one period that rows must meet; None for all rows.
    steps
        The rule that turns values into whole steps; None if scores count users.
    adjacency
        The adjacency.
    spelled
        The columns and row expressions as the caller wrote them, if they are spelled otherwise.
    expressions
        The row expressions.
    """

    opened: Opened
    columns: dict[str, str]
    where: Condition | None
    steps: Steps | None
    adjacency: str
    during: OnePeriod | None = None
    spelled: dict[str, str] = field(default_factory=dict)
    expressions: Expressions = ()


@dataclass(frozen=True, eq=False, repr=False)
class TableParts:
    """The parts of a source of events, for callers that may look at its rows.

    Attributes
    ----------
    opened
        The events.
    kept
        The expression of the events that the condition keeps.
    where
        The condition, None if there is none.
    reading
        The rule that reads a row.
    domain, domain_place
        The public list of items, None for items to be found, and its file or table, if the caller named one.
    split
        The groups, or None.
    item
        The item column, or the expression of it, as the caller spelled it.
    during
        The column of the one period whose rows are kept, None for all rows.
    """

    opened: Opened
    kept: Any
    where: Condition | None
    reading: RowReading
    domain: Integers | ListedDomain | None
    domain_place: Location | None
    split: GroupSplit | None
    item: str
    during: str | None = None


class EventTable(AnySource, ABC):
    """A table of events and a question to it.

    Threads may share a table, and take turns. It belongs to the process that made it, like the connection that it
    holds.
    """

    _scoring: RowReading
    _domain: Integers | ListedDomain | None = None
    _domain_place: Location | None = None
    _split: GroupSplit | None = None

    def __init__(self, question: Question) -> None:
        opened, steps = question.opened, question.steps
        self._question, self._opened, self._columns, self._steps = question, opened, question.columns, steps
        self._sensitivity = OF_COUNTS if steps is None else steps.sensitivity
        self._grid: Fraction = Fraction(1) if steps is None else steps.resolution
        self._lock, self._process = threading.RLock(), os.getpid()
        self._where, self.expressions = question.where, question.expressions
        self._notes: list[str] = []
        self._table = self._filter(opened.events)
        self._lookups: list[Lookup] = []
        # The connection closes with the source, after the snapshot, which needs it to be dropped.
        weakref.finalize(self, _close_all, self._lookups, opened, self._process)

    def exclusive(self) -> AbstractContextManager[Any]:
        """Return a lock that keeps other threads from taking a snapshot before this one ends."""
        self._check_process()
        return self._lock

    def notes(self) -> list[str]:
        """Return warnings about the public lists, and how each column without a declared type is read.

        The notes depend on the arguments and on the declared types, and on no row.
        """
        question, opened = self._question, self._opened
        read = [("item", self._columns["item"], self._scoring.kind)]
        read += [] if self._split is None else [("by", *each) for each in self._split.groups.list_kinds()]
        read += [] if question.during is None else [("during", question.during.column.column, MOMENT_KIND)]
        read += [] if question.steps is None else [("value", self._columns["value"], "float")]
        told = [opened.formats.describe_column(*each) for each in read if each[1] in opened.undeclared]
        return [*opened.doubts, *told, *opened.notes, *self._notes]

    def probe(self) -> None:
        """Raise if a release would fail on the engine whatever the rows are."""
        split, period = self._split, self._question.during
        columns = [*self._columns.values(), *([] if split is None else split.groups.columns)]
        with self.exclusive():
            probe_query(self._opened, self.make_query, columns if period is None else [*columns, period.column.column])

    @abstractmethod
    def make_query(self) -> Any:
        """Return the expression that a release caches."""

    def list_parts(self) -> TableParts:
        """Return the parts of the source."""
        period = self._question.during
        return TableParts(
            opened=self._opened,
            kept=self._table,
            where=self._where,
            reading=self._scoring,
            domain=self._domain,
            domain_place=self._domain_place,
            split=self._split,
            item=self._question.spelled.get("item", self._columns["item"]),
            during=None if period is None else period.column.column,
        )

    def sql(self) -> str:
        """Return the statement that computes the scores, in the SQL of the engine of a table of `discreet.compiled`.

        Its columns are `item` and `score`; an item of `discreet.integers` without a row has score 0. With groups, `grp`
        is the place in the list of groups and `item` the place in the sorted list of items, both from 0 on, and those
        without a row have score 0.
        """
        write = getattr(self._opened.table.get_backend(), "compile_with_lists", None)
        if write is None:
            raise InvalidValueError(
                f"sql must be asked of a table of discreet.compiled, not of one on {self._opened.engine}, where a "
                "release runs its statements itself"
            )
        if self._domain is None:
            raise InvalidValueError(
                "sql must be asked of a source with a public list of items: discovery draws between its statements"
            )
        return str(write(self.make_query()))

    def close(self) -> None:
        """Let go of the snapshot."""
        while self._lookups:
            self._lookups.pop().close()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidTypeError(
            "a source of events cannot be copied or pickled, because it holds a connection: "
            "call discreet.events where the source is needed"
        )

    def describe_question(self) -> dict[str, Any]:
        """Return the public question without its items, as JSON data."""
        steps = self._steps
        clip = None if steps is None else [steps.low, steps.high, str(steps.resolution)]
        period, where = self._question.during, None if self._where is None else self._where.text
        kept = {} if period is None else {"during": period.spelling}
        return {
            "columns": {**self._columns, **self._question.spelled},
            "where": where,
            "clip": clip,
            **kept,
            **self._opened.formats.given(),
        }

    def _check_process(self) -> None:
        """Raise in a forked process, where the connection has lost its threads and shares its socket."""
        if os.getpid() != self._process:
            raise InvalidValueError(
                "a source of events must be used in the process that made it: call discreet.events in each process"
            )

    def _filter(self, table: Any) -> Any:
        """Return the rows that the condition and the period keep, with the columns of row expressions.

        `table` is the events or a view of them, without these columns.
        """
        where, opened, period = self._where, self._opened, self._question.during
        table = table if period is None else period.keep(table, opened)
        if where is not None:
            translation = where.translate(
                table, opened.dialect, undeclared=opened.undeclared, names_are_private=opened.names_are_private
            )
            self._notes = [] if translation.note is None else [translation.note]
            table = table.filter(translation.expression)
        return table if opened.derive is None else opened.derive(table)

    def _declared_kind(self) -> str | None:
        """Return the declared kind of the items, or None if their type is not declared."""
        if self._columns["item"] in self._opened.undeclared:
            return None
        dtype = self._opened.table[self._columns["item"]].type()
        kind = "integer" if dtype.is_numeric() and not dtype.is_boolean() else kind_of_type(dtype)
        if kind is None:
            column = self._opened.table[self._columns["item"]]
            given = self._opened.dialect.describe_type(column)
            raise InvalidTypeError(f"item must be a column of strings, numbers, dates or booleans, not of {given}")
        self._opened.dialect.check_column("item", dtype)
        return kind

    def check_kind(self, kind: str) -> None:
        """Raise if the declared type of the item column can never hold an item of the kind."""
        column, declared = self._opened.table[self._columns["item"]], self._declared_kind()
        if kind == "string":
            self._opened.dialect.check_text("domain")
        if declared not in (None, kind) and not has_reading(self._opened.dialect, column, kind):
            raise InvalidTypeError(f"domain must hold items like those of the events, {declared}s, not {kind}s")


class ListedEventTable(EventTable):
    """A table of events with a public domain, which is given as the caller has it, and its label column."""

    _domain: Integers | ListedDomain

    def __init__(self, question: Question, domain: Any, label: str | None, groups: int = 1) -> None:
        super().__init__(question)
        opened, item, self._label = question.opened, question.columns["item"], label
        self._domain_place = domain if isinstance(domain, Location) else None
        if isinstance(domain, range) and domain.step == 1 and len(domain) and label is None:
            domain = integers(domain.start, domain.stop - 1)
        if isinstance(domain, Integers):
            if label is not None:
                raise InvalidValueError(f"label must be left out when domain is {domain.title}")
            domain.check_engine(opened.dialect)
            self._domain = domain
        else:
            self._domain = open_listed_domain(domain, label, item, opened, self._declared_kind())
        self.check_kind(self._domain.kind)
        check_fetch(opened, self._domain.d * groups)
        # A gap in a pandas column turns whole numbers into floats, which merges or loses those beyond 2^53.
        if opened.is_pandas and item in opened.undeclared and holds_long_numbers(self._domain):
            raise InvalidTypeError(
                "domain must not hold whole numbers beyond 2^53 where the events are a pandas frame whose item column "
                "has a type that pandas chose, because one missing item makes floats of them all: "
                'read that column as .astype("Int64"), as .astype("string") or with Arrow'
            )

    def _read_in_order(self, domain: ListedDomain) -> Any:
        """Return the rows of the domain as an Arrow table, in the order of the items.

        Arrow sorts by size or code point; engines sort text by rules of their own.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        backend, table = self._opened.table.get_backend(), domain.table
        rows = ask(self._opened.engine, "reading the domain", partial(backend.to_pyarrow, table)).combine_chunks()
        items = rows["item"].combine_chunks()
        return rows.take(pc.array_sort_indices(items.cast(pa.uint8()) if domain.kind == "boolean" else items))

    def _adopt_ordinals(self, items: Any) -> Any:
        """Return sorted items, each with its ordinal, as a table on the engine of the events."""
        import pyarrow as pa

        return self._opened.adopt(pa.table({"item": items, "ordinal": np.arange(len(items)) & MASK}))

    def _make_scoring(self, max_items_per_user: int | None, ordinals: Any) -> Scoring:
        """Return the rule that turns rows into scores; `ordinals` numbers the items of the domain if that is needed."""
        if max_items_per_user is not None and not self._opened.dialect.has_bounds:
            raise InvalidValueError(
                f"max_items_per_user must be left out on {self._opened.engine}: discreet does not know how that engine "
                "computes with whole numbers"
            )
        return Scoring(
            columns=self._columns,
            domain=self._domain,
            kind=self._domain.kind,
            steps=self._steps,
            dialect=self._opened.dialect,
            max_items_per_user=max_items_per_user,
            ordinals=ordinals,
        )

    def _take_snapshot(self, kind: str, domain: Integers | ListedDomain, groups: int | None = None) -> Lookup:
        """Compute the scores, and return the lookup on them; all later queries read the result of this one."""
        self.close()
        opened = self._opened
        scores = ask(opened.engine, "computing the scores", lambda: opened.dialect.cache(self.make_query()))
        self._lookups.append(Lookup(scores, kind, domain, opened.dialect, groups))
        return self._lookups[-1]

    def _describe(self, max_items_per_user: int | None) -> dict[str, Any]:
        """Return the public question as JSON data."""
        domain = self._domain
        listed = domain.description() if isinstance(domain, Integers) else domain.kind
        bound = {} if max_items_per_user is None else {"max_items_per_user": max_items_per_user}
        return {**self.describe_question(), "domain": listed, "label": self._label, **bound}


class TableSource(ListedEventTable, ClippableSource):
    """Scores of a public domain from a table of events."""

    _scoring: Scoring

    def __init__(self, question: Question, domain: Any, label: str | None, max_items_per_user: int | None) -> None:
        super().__init__(question, domain, label)
        self.sensitivity, self.grid, self.adjacency = self._sensitivity, self._grid, question.adjacency
        self.d, self.max_items_per_user = self._domain.d, max_items_per_user
        numbered = None if max_items_per_user is None else self._ordinals
        self._scoring = self._make_scoring(max_items_per_user, numbered)

    @cached_property
    def _ordinals(self) -> Any:
        """The ordinal of each item in the order that decides which items of a user are kept."""
        domain = self._domain
        return domain if isinstance(domain, Integers) else self._adopt_ordinals(self._read_in_order(domain)["item"])

    def __repr__(self) -> str:
        return f"TableSource({self.d:,} items, {', '.join(f'{role}={name!r}' for role, name in self._columns.items())})"

    def description(self) -> dict[str, Any]:
        return self._describe(self.max_items_per_user)

    def tally(self) -> Tally:
        self._check_process()
        kind = "integer" if isinstance(self._domain, Integers) else self._domain.kind
        lookup = self._take_snapshot(kind, self._domain)
        values, counts = ask(self._opened.engine, "counting the scores", lookup.runs)[0]
        return Tally.of_runs(values, counts, self.grid)

    def make_query(self) -> Any:
        return self._scoring.scores(self._table)

    @property
    def can_be_clipped(self) -> bool:
        return self.max_items_per_user is None and self._opened.dialect.has_bounds

    def count_clipped(self, most: int) -> ClippedSource:
        """Return the scores with at most `most` items of each user, beside those of all items, from one query."""
        self._check_process()
        clipped = self._make_scoring(most, self._ordinals).scores(self._table)
        pairs = pair_scores(self._scoring.scores(self._table), clipped, self._opened.dialect)
        counted = ask(self._opened.engine, "counting the scores of fewer items a user", pairs.to_pyarrow)
        return ClippedSource(self, most, *(counted[name].to_numpy() for name in ("score", "kept", "items")))

    def items(self, ranks: Ranks) -> list[Any]:
        if not self._lookups:
            raise InvalidValueError("items must be asked for after the tally, which takes the snapshot they come from")
        lookup, domain = self._lookups[-1], self._domain
        found = ask(self._opened.engine, "looking up the items", lambda: lookup.items([ranks])[0])
        return [domain.spell(number) for number in found] if isinstance(domain, Integers) else found

    def every_item(self) -> list[Any]:
        if isinstance(self._domain, Integers):
            return self._domain.list_items()
        table, shown_as = self._domain.table, "label" if self._domain.labelled else "item"
        backend = self._opened.table.get_backend()
        with self.exclusive():
            column = ask(
                self._opened.engine, "reading the domain", lambda: backend.to_pyarrow(table.select(shown_as))[shown_as]
            )
        found: list[Any] = column.to_pylist()
        return found


@dataclass(frozen=True, eq=False, repr=False)
class GroupedTableSnapshot:
    """The scores of all groups in one temporary table of an engine."""

    lookup: Lookup
    engine: str
    grid: Fraction
    domain: Integers | ListedDomain
    labels: Any

    def tallies(self) -> Iterator[Tally]:
        runs = ask(self.engine, "counting the scores", self.lookup.runs)
        return (Tally.of_runs(values, counts, self.grid) for values, counts in runs)

    def pick(self, selection: Selection) -> Ranks:
        return selection.draw_ranks()

    def items(self, picks: list[Any]) -> list[list[Any] | Ranks]:
        found = ask(self.engine, "looking up the items", partial(self.lookup.items, picks))
        if isinstance(self.domain, Integers):
            return [[self.domain.spell(number) for number in numbers] for numbers in found]
        # Arrow cannot infer a type from an empty list.
        return [self.labels.take(numbers).to_pylist() if numbers else [] for numbers in found]


class GroupedTableSource(ListedEventTable, GroupedSource):
    """Scores of a public domain in each of several public groups, from a table of events."""

    _scoring: Scoring
    _split: GroupSplit

    def __init__(
        self,
        question: Question,
        domain: Any,
        label: str | None,
        max_items_per_user: int | None,
        split: GroupSplit,
    ) -> None:
        super().__init__(question, domain, label, len(split.groups.keys))
        self._split, self._max_items_per_user = split, max_items_per_user
        self.keys, self.names = split.groups.keys, split.groups.names
        self.each_user, self.groups_per_user = split.each_user, split.groups_per_user
        listed: Any = self._domain
        self._labels: Any = None
        self._numbers, ordinals = listed, listed
        if not isinstance(listed, Integers):
            if listed.d > MASK + 1:
                raise InvalidValueError(f"domain must hold at most 2^31 items with by, not {listed.d}, or be integers")
            rows = self._read_in_order(listed)
            self._labels = rows["label" if listed.labelled else "item"].combine_chunks()
            ordinals, self._numbers = self._adopt_ordinals(rows["item"]), Integers(0, listed.d - 1)
        member = GroupMember(self._domain, self._labels, self._grid, self._sensitivity)
        member.adjacency, member.max_items_per_user = question.adjacency, max_items_per_user
        self.members = [member] * len(self.keys)
        self._scoring = self._make_scoring(max_items_per_user, ordinals)

    def description(self) -> dict[str, Any]:
        return self._describe(self._max_items_per_user) | self._split.description()

    @contextmanager
    def snapshot(self) -> Iterator[GroupedTableSnapshot]:
        with self.exclusive():
            try:
                lookup = self._take_snapshot("integer", self._numbers, len(self.keys))
                yield GroupedTableSnapshot(lookup, self._opened.engine, self._grid, self._domain, self._labels)
            finally:
                self.close()

    def make_query(self) -> Any:
        again = self._filter(self._opened.events.view())
        return self._scoring.scores_by_group(self._table, again, self._split)


class GroupMember(Source):
    """The public facts about one group of events; all groups are released at once."""

    def __init__(self, domain: Integers | ListedDomain, labels: Any, grid: Fraction, sensitivity: Sensitivity) -> None:
        self._domain, self._labels, self.d = domain, labels, domain.d
        self.grid, self.sensitivity = grid, sensitivity

    def tally(self) -> Tally:
        self._refuse()

    def items(self, ranks: Ranks) -> list[Any]:
        self._refuse()

    def every_item(self) -> list[Any]:
        domain = self._domain
        found: list[Any] = domain.list_items() if isinstance(domain, Integers) else self._labels.to_pylist()
        return found

    def _refuse(self) -> NoReturn:
        raise InvalidValueError("a group of events must be released with the others: pass the whole source")


def _close_all(snapshots: list[Lookup], opened: Opened, process: int) -> None:
    # A forked copy must not end the connection of its parent.
    if os.getpid() != process:
        return
    while snapshots:
        snapshots.pop().close()
    opened.close()
