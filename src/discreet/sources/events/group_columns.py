"""The columns of events that say which group a row is in, and how a row is given the number of its own.

The public list decides what kind of value a column is read as, by expressions that cannot fail on a row.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.sources.events.cells import has_reading, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.domain import ListedDomain, holds_long_numbers, kind_of_type


def read_by(by: Any) -> tuple[GroupColumn, ...]:
    """The group columns that the caller names."""
    given = list(by) if isinstance(by, list | tuple) else [by]
    if not given:
        raise InvalidValueError("by must name at least one column, not none")
    found = tuple(_read_column(each) for each in given)
    if len(set(found)) < len(found):
        raise InvalidValueError("by must name each column once, but one is there twice")
    return found


def _read_column(given: Any) -> GroupColumn:
    if isinstance(given, GroupColumn):
        return given
    if isinstance(given, str):
        return PlainColumn(given)
    raise InvalidTypeError(
        "by must be a column, a period of one such as discreet.month('played_at'), or a list of them, "
        f"not {quote(given)}"
    )


class GroupColumn(ABC):
    """A column of events, and what of it is a group."""

    column: str

    @property
    @abstractmethod
    def name(self) -> str:
        """What a release calls these groups."""

    @property
    @abstractmethod
    def spelling(self) -> str:
        """The column and what is made of it, as a command line has it."""

    @abstractmethod
    def declared_kind(self, opened: Opened) -> str | None:
        """The kind of value that text of a public file is read as, None where the list decides."""

    @abstractmethod
    def number_members(self, members: Any, kind: str, opened: Opened, shows: bool) -> NumberedMembers:
        """The members of the public list, an Arrow array of one kind, as groups of this column of the events.

        Parameters
        ----------
        members, kind
            The list.
        opened
            The events.
        shows
            Whether a message may show a member: a column may be a copy of the events that nobody recognised.
        """


@dataclass(frozen=True)
class PlainColumn(GroupColumn):
    """A column whose values are groups as they are."""

    column: str

    @property
    def name(self) -> str:
        return self.column

    @property
    def spelling(self) -> str:
        return self.column

    def declared_kind(self, opened: Opened) -> str | None:
        """What the column was declared to hold."""
        if self.column in opened.undeclared:
            return None
        dtype = opened.table[self.column].type()
        kind = "integer" if dtype.is_numeric() and not dtype.is_boolean() else kind_of_type(dtype)
        if kind is None:
            hint = f"; {_suggest_months(self.column)}" if dtype.is_timestamp() else ""
            raise InvalidTypeError(f"by must be a column of strings, numbers, dates or booleans, not of {dtype}{hint}")
        return kind

    def number_members(self, members: Any, kind: str, opened: Opened, shows: bool) -> NumberedMembers:
        import pyarrow as pa

        declared = self.declared_kind(opened)
        opened.dialect.check_column("by", opened.table[self.column].type())
        if kind == "string":
            opened.dialect.check_text("groups")
        if declared not in (None, kind) and not has_reading(opened.dialect, opened.table[self.column], kind):
            raise InvalidTypeError(f"groups must hold groups like those of the events, {declared}s, not {kind}s")
        if declared == "date" and kind == "string" and _are_periods(members):
            raise InvalidValueError(
                f"groups must hold dates, like those of the column {quote(self.column)}, not periods; "
                f"{_suggest_months(self.column)}"
            )
        table = opened.adopt(pa.table({"key": members, "number": np.arange(len(members))}))
        _check_long_numbers(self.column, table, kind, len(members), opened)
        dialect = opened.dialect
        return NumberedMembers(
            members=members.to_pylist(),
            table=table,
            read=lambda rows: dialect.group_key(read_cell(dialect, rows[self.column], kind)),
            match=lambda value: [value == dialect.group_key(table.key)],
        )


def _suggest_months(column: str) -> str:
    return f"for its months by is discreet.month({column!r}), or month({column}) on the command line"


def _are_periods(members: Any) -> bool:
    """Whether texts are all weeks, months or quarters, which no date is written as."""
    return all(re.fullmatch(r"\d{4}-(\d\d|W\d\d|Q\d)", each, re.ASCII) for each in members.to_pylist())


@dataclass(frozen=True, eq=False, repr=False)
class NumberedMembers:
    """The members of a public list of one column, and how a row is given the number of its own.

    Attributes
    ----------
    members
        What a release calls them.
    table
        A public table on the engine of the events, with the place of each member in the list as `number`.
    read
        The value of each row of the events that is looked up in it, an expression that cannot fail on a row.
    match
        By which conditions that value is joined to the table, of which at most one row fits.
    """

    members: list[Any]
    table: Any
    read: Callable[[Any], Any]
    match: Callable[[Any], list[Any]]


def _check_long_numbers(column: str, table: Any, kind: str, size: int, opened: Opened) -> None:
    """Refuses groups that a gap in a pandas column, which makes floats of it, would merge or lose."""
    if not opened.is_pandas or column not in opened.undeclared:
        return
    if holds_long_numbers(ListedDomain(table.select(item=table.key), kind, size, False)):
        raise InvalidTypeError(
            "groups must not hold whole numbers beyond 2^53 where the events are a pandas frame whose group column "
            "has a type that pandas chose, because one missing group makes floats of them all: "
            'read that column as .astype("Int64"), as .astype("string") or with Arrow'
        )
