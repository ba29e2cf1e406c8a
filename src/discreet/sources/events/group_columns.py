"""The columns of events that say which group a row is in, and how a row is given the number of its own.

The public list decides what kind of value a column is read as, by expressions that cannot fail on a row.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, choices, quote, suggestion
from discreet.labels import is_column, unwrap_label
from discreet.sources.events.cells import has_reading, read_cell
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.domain import (
    ListedDomain,
    ListNames,
    check_presence,
    convert_kind,
    find_list_column,
    holds_long_numbers,
    is_list,
    kind_of_type,
    read_list,
    read_values,
    refuse_repetition,
    unwrap_categories,
)
from discreet.sources.events.engine import ask
from discreet.sources.events.location import Location
from discreet.sources.events.ranges import Integers


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


# Public lists of groups, in the order in which a release has them: of one column, or of combinations of several.

MOST_GROUPS = 1_000_000
"""So many groups at most: each is drawn by itself, and all of them are listed in a release."""

GROUPS = ListNames(
    "groups",
    "group",
    about_gaps="; pandas reads the text NA as missing, unless keep_default_na=False",
    about_times="; periods are text: discreet.months('2026-01', '2026-12'), or days, weeks, quarters, years",
)


@dataclass(frozen=True)
class Product:
    """Every combination of the members of several public lists; the last list changes fastest."""

    lists: tuple[Any, ...]


def product(*lists: Any) -> Product:
    """The groups of several columns: every combination of the members of one public list for each column.

    Parameters
    ----------
    lists
        For each column of `by` what `groups` takes for it alone: a list, a file with its column, a table, or
        `discreet.integers(lo, hi)`.

    Examples
    --------
    >>> import discreet
    >>> discreet.product(["DE", "FR"], discreet.integers(1, 12))
    Product(lists=(['DE', 'FR'], Integers(lo=1, hi=12)))
    """
    if len(lists) < 2:
        raise InvalidValueError(f"product must have a list for each of two or more columns, not {len(lists)}")
    return Product(lists)


def read_members(given: Any, column: GroupColumn, opened: Opened) -> NumberedMembers:
    """The members of the public list of one column."""
    if isinstance(given, Integers):
        check_number(given.d)
        given = given.list_items()
    given = unwrap_categories(given, "groups")
    path = given.paths[0].text if isinstance(given, Location) and given.paths else ""
    if re.fullmatch(r"[^./\\:*]+", path) and not os.path.exists(path):
        raise InvalidValueError(
            f"groups must be a list, a table or a file with its column, not {quote(path)}: pass a list, [{path!r}]"
        )
    if is_list(given):
        members, kind = read_list(given, GROUPS)
    else:
        ((members, kind),) = read_table(given, [column], opened)
        if len(members.unique()) < len(members):
            refuse_repetition(GROUPS)
    check_number(len(members))
    return column.number_members(members, kind, opened, shows=is_list(given) and not is_column(given))


def read_table(given: Any, columns: Sequence[GroupColumn], opened: Opened) -> list[tuple[Any, str]]:
    """The columns of a public table, each with its kind: in the order of the rows if they have one, else sorted."""
    named = given.column if isinstance(given, Location) else None
    if named is not None and len(columns) > 1:
        raise InvalidValueError(
            f"groups must be a file with the columns {_name_all(columns)}, without one after a colon"
        )
    listed = open_table(given, None, GROUPS.argument, csv_format=opened.csv_format)
    try:
        rows, kinds = _read_columns(listed, named, columns, opened)
    finally:
        listed.close()
    rows = rows if _has_order(given) else _sort_rows(rows)
    return list(zip((column.combine_chunks() for column in rows.columns), kinds, strict=True))


def _read_columns(
    listed: Opened, named: str | None, columns: Sequence[GroupColumn], opened: Opened
) -> tuple[Any, list[str]]:
    """The columns of an open public table as an Arrow table, and their kinds."""
    found = {f"c{index}": _find_column(listed, named, column, len(columns)) for index, column in enumerate(columns)}
    table = listed.table.select(**{name: listed.table[column] for name, column in found.items()})
    kinds = []
    for name, column in zip(found, columns, strict=True):
        table, kind = convert_kind(table, name, listed, opened, column.declared_kind(opened), GROUPS)
        kinds.append(kind)
    check_number(ask(listed.engine, "counting the groups", lambda: int(table.count().to_pyarrow().as_py())))
    rows = ask(listed.engine, "reading the groups", table.to_pyarrow).combine_chunks()
    check_presence(GROUPS, rows.num_rows, sum(column.null_count for column in rows.columns))
    return rows, kinds


def _find_column(listed: Opened, named: str | None, column: GroupColumn, number: int) -> str:
    """The column of a public table: called like the groups of a release, such as month, or like that of the events."""
    columns = list(listed.table.columns)
    if named is None and column.name in columns:
        return column.name
    if number == 1:
        return find_list_column(listed, named, column.column, GROUPS)
    if column.column not in columns:
        either = "" if column.name == column.column else f" or {quote(column.name)}"
        hint = suggestion(column.column, columns, private=False)
        raise InvalidValueError(
            f"groups must have a column called {quote(column.column)}{either}, and has {choices(columns)}{hint}"
        )
    return column.column


def _name_all(columns: Sequence[GroupColumn]) -> str:
    return ", ".join(each.column for each in columns)


def _has_order(table: Any) -> bool:
    """Whether the rows of a public table have an order: in files and frames they do, on an engine they may not."""
    package = type(table).__module__.partition(".")[0]
    return package not in ("ibis", "pyspark")


def _sort_rows(rows: Any) -> Any:
    import pyarrow as pa

    fields = [field.with_type(pa.uint8()) if pa.types.is_boolean(field.type) else field for field in rows.schema]
    order = pa.compute.sort_indices(rows.cast(pa.schema(fields)), [(name, "ascending") for name in rows.column_names])
    return rows.take(order)


def check_number(number: int) -> None:
    """Refuses more groups than can be listed."""
    if number > MOST_GROUPS:
        raise InvalidValueError(f"groups must hold at most {MOST_GROUPS:,} groups, not {number:,}")


def read_tuples(given: Any, columns: Sequence[GroupColumn]) -> list[tuple[Any, str]]:
    """The columns of a public list of tuples, each with its kind."""
    raw = given.tolist() if hasattr(given, "tolist") else list(given)
    check_number(len(raw))
    check_presence(GROUPS, len(raw), 0)
    for each in raw:
        if not isinstance(each, tuple | list) or len(each) != len(columns):
            seen = "" if is_column(given) else f", not {quote(each)}"
            raise InvalidTypeError(
                f"groups must hold tuples of {len(columns)} values, one for each of {_name_all(columns)}{seen}"
            )
    return [read_values([unwrap_label(each[index]) for each in raw], GROUPS) for index in range(len(columns))]
