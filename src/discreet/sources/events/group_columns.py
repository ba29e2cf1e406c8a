"""Group columns of the events (`by`), and the public lists of their members (`groups`).

The public list decides the kind of value that a column is read as. The expressions that look up a row's member in the
list cannot fail on a row.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, choices, quote, suggestion
from discreet.labels import is_column, unwrap_label
from discreet.sources.events.cells import has_reading, read_cell
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.csv_files import USUAL
from discreet.sources.events.domain import (
    ListedDomain,
    ListNames,
    check_presence,
    convert_kind,
    find_list_column,
    holds_long_numbers,
    is_list,
    kind_of_type,
    name_place,
    read_list,
    read_values,
    refuse_repetition,
    unwrap_categories,
)
from discreet.sources.events.engine import ask
from discreet.sources.events.location import Location
from discreet.sources.events.ranges import Integers

MOST_GROUPS = 1_000_000
"""Maximum number of groups: each has a draw of its own, and a release lists all of them."""

GROUPS = ListNames(
    "groups",
    "group",
    about_gaps="; pandas reads the text NA as missing, unless keep_default_na=False",
    about_times="; periods are text: discreet.months('2026-01', '2026-12'), or days, weeks, quarters, years",
)


class GroupColumn(ABC):
    """A column of the events whose values, or periods of them, are groups."""

    column: str

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of these groups in a release."""

    @property
    @abstractmethod
    def spelling(self) -> str:
        """The column, and its period if there is one, as the command line spells them."""

    @abstractmethod
    def declared_kind(self, opened: Opened) -> str | None:
        """Return the kind of value that text of a public file is read as, None if the list decides."""

    @abstractmethod
    def number_members(self, members: Any, kind: str, opened: Opened, shows: bool) -> NumberedMembers:
        """Return the members of the public list, numbered, as groups of this column of the events.

        Parameters
        ----------
        members, kind
            The list, an Arrow array, and the kind of its values.
        opened
            The events.
        shows
            True if a message may show a member. It may not if the list is a column, which could be an unrecognised
            copy of the events.
        """


@dataclass(frozen=True)
class PlainColumn(GroupColumn):
    """A column whose values are groups as they are; `text` is the row expression that makes it, if there is one."""

    column: str
    text: str | None = None

    @property
    def name(self) -> str:
        return self.text or self.column

    @property
    def spelling(self) -> str:
        return self.name

    def declared_kind(self, opened: Opened) -> str | None:
        """Return the declared kind of the column."""
        if self.column in opened.undeclared:
            return None
        dtype = opened.table[self.column].type()
        kind = "integer" if dtype.is_numeric() and not dtype.is_boolean() else kind_of_type(dtype)
        if kind is None:
            hint = f"; {_suggest_months(self.column)}" if dtype.is_timestamp() else ""
            given = opened.dialect.describe_type(opened.table[self.column])
            raise InvalidTypeError(f"by must be a column of strings, numbers, dates or booleans, not of {given}{hint}")
        return kind

    def number_members(self, members: Any, kind: str, opened: Opened, shows: bool) -> NumberedMembers:
        import pyarrow as pa

        declared, dialect, listed = self.declared_kind(opened), opened.dialect, members.to_pylist()
        dialect.check_column("by", opened.table[self.column].type())
        if kind == "string":
            dialect.check_text("groups")
        if declared not in (None, kind) and not has_reading(dialect, opened.table[self.column], kind):
            raise InvalidTypeError(f"groups must hold groups like those of the events, {declared}s, not {kind}s")
        # A column of dates has no weeks, months or quarters.
        period = re.compile(r"\d{4}-(\d\d|W\d\d|Q\d)", re.ASCII)
        if declared == "date" and kind == "string" and all(map(period.fullmatch, listed)):
            raise InvalidValueError(
                f"groups must hold dates, like those of the column {quote(self.column)}, not periods; "
                f"{_suggest_months(self.column)}"
            )
        table = opened.adopt(pa.table({"key": members, "number": np.arange(len(members))}))
        # A gap makes floats of a pandas column, which would merge or lose such groups.
        may_become_floats = opened.is_pandas and self.column in opened.undeclared
        if may_become_floats and holds_long_numbers(
            ListedDomain(table.select(item=table.key), kind, len(members), False)
        ):
            raise InvalidTypeError(
                "groups must not hold whole numbers beyond 2^53 where the events are a pandas frame whose group column "
                "has a type that pandas chose, because one missing group makes floats of them all: "
                'read that column as .astype("Int64"), as .astype("string") or with Arrow'
            )
        return NumberedMembers(
            members=listed,
            kind=kind,
            table=table,
            read=lambda rows: dialect.group_key(read_cell(dialect, rows[self.column], kind)),
            match=lambda value: [value == dialect.group_key(table.key)],
        )


def _suggest_months(column: str) -> str:
    return f"for its months by is discreet.month({column!r}), or month({column}) on the command line"


@dataclass(frozen=True, eq=False, repr=False)
class NumberedMembers:
    """The members of a public list of one column, and the expressions that find the number of a row's member.

    Attributes
    ----------
    members
        The members as a release shows them.
    kind
        The kind that the column of the events is read as.
    table
        A public table on the engine of the events; `number` is the place of a member in the list.
    read
        Returns the value of each row of the events that is looked up in the table. It cannot fail on a row.
    match
        Returns the conditions that join this value to the table. At most one row of the table meets them.
    place
        The file of the list and its column; empty texts for a list in no file.
    """

    members: list[Any]
    kind: str
    table: Any
    read: Callable[[Any], Any]
    match: Callable[[Any], list[Any]]
    place: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Product:
    """Every combination of the members of several public lists; the last list changes fastest."""

    lists: tuple[Any, ...]


def product(*lists: Any) -> Product:
    """Return the groups of several columns: every combination of the members of one public list for each column.

    Parameters
    ----------
    lists
        One list for each column of `by`, given as `groups` is for that column alone: a list, a file with its column, a
        table, or `discreet.integers(lo, hi)`.

    Examples
    --------
    >>> import discreet
    >>> discreet.product(["DE", "FR"], discreet.integers(1, 12))
    Product(lists=(['DE', 'FR'], Integers(lo=1, hi=12)))
    """
    if len(lists) < 2:
        raise InvalidValueError(f"product must have a list for each of two or more columns, not {len(lists)}")
    return Product(lists)


def read_by(by: Any) -> tuple[GroupColumn, ...]:
    """Return the group columns that `by` names."""
    found: list[GroupColumn] = []
    for each in by if isinstance(by, list | tuple) else [by]:
        if not isinstance(each, str | GroupColumn):
            raise InvalidTypeError(
                "by must be a column, a period of one such as discreet.month('played_at'), or a list of them, "
                f"not {quote(each)}"
            )
        found.append(PlainColumn(each) if isinstance(each, str) else each)
    if not found:
        raise InvalidValueError("by must name at least one column, not none")
    if len(set(found)) < len(found):
        raise InvalidValueError("by must name each column once, but one is there twice")
    return tuple(found)


def read_members(given: Any, column: GroupColumn, opened: Opened) -> NumberedMembers:
    """Return the numbered members of the public list of one column."""
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
        (members, kind), place = read_list(given, GROUPS), ("", "")
    else:
        ((members, kind, place),) = read_table(given, [column], opened)
        if len(members.unique()) < len(members):
            refuse_repetition(GROUPS)
    check_number(len(members))
    opened.doubt_spelling(column.column, GROUPS, members, place)
    shows = is_list(given) and not is_column(given)
    return replace(column.number_members(members, kind, opened, shows), place=place)


def read_table(given: Any, columns: Sequence[GroupColumn], opened: Opened) -> list[tuple[Any, str, tuple[str, str]]]:
    """Return the columns of a public table, in the order of the rows if they have one, else sorted.

    Each comes with its kind, and with the file and the column of the list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    named = given.column if isinstance(given, Location) else None
    if named is not None and len(columns) > 1:
        raise InvalidValueError(
            f"groups must be a file with the columns {_name_all(columns)}, without one after a colon"
        )
    listed = open_table(given, None, GROUPS.argument, csv_format=opened.list_formats.get("groups", USUAL))
    try:
        # A list of months may be called month, like its groups, or like the group column.
        names, found = list(listed.table.columns), dict[str, str]()
        for index, each in enumerate(columns):
            if named is None and each.name in names:
                found[f"c{index}"] = each.name
            elif len(columns) == 1:
                found[f"c{index}"] = find_list_column(listed, named, each.column, GROUPS)
            elif each.column in names:
                found[f"c{index}"] = each.column
            else:
                either = "" if each.name == each.column else f" or {quote(each.name)}"
                hint = suggestion(each.column, names, private=False)
                raise InvalidValueError(
                    f"groups must have a column called {quote(each.column)}{either}, and has {choices(names)}{hint}"
                )
        table = listed.table.select(**{name: listed.table[column] for name, column in found.items()})
        kinds = []
        for name, column in zip(found, columns, strict=True):
            table, kind = convert_kind(table, name, listed, opened, column.declared_kind(opened), GROUPS)
            kinds.append(kind)
        check_number(int(ask(listed.engine, "counting the groups", table.count().to_pyarrow).as_py()))
        rows = ask(listed.engine, "reading the groups", table.to_pyarrow).combine_chunks()
    finally:
        listed.close()
    check_presence(GROUPS, rows.num_rows, sum(column.null_count for column in rows.columns))
    # Files and frames have an order of rows. Tables of an engine may have none and are sorted.
    package = type(given).__module__.partition(".")[0]
    if package in ("ibis", "pyspark"):
        fields = [field.with_type(pa.uint8()) if pa.types.is_boolean(field.type) else field for field in rows.schema]
        keys = [(name, "ascending") for name in rows.column_names]
        rows = rows.take(pc.sort_indices(rows.cast(pa.schema(fields)), keys))
    # A file of combinations is named without a column.
    file = given if isinstance(given, Location) and len(columns) == 1 else None
    places = [name_place(file, column) for column in found.values()]
    return list(zip((column.combine_chunks() for column in rows.columns), kinds, places, strict=True))


def read_tuples(given: Any, columns: Sequence[GroupColumn]) -> list[tuple[Any, str, tuple[str, str]]]:
    """Return the columns of a public list of tuples as `read_table` does."""
    raw = given.tolist() if hasattr(given, "tolist") else list(given)
    check_number(len(raw))
    check_presence(GROUPS, len(raw), 0)
    for each in raw:
        if not isinstance(each, tuple | list) or len(each) != len(columns):
            seen = "" if is_column(given) else f", not {quote(each)}"
            raise InvalidTypeError(
                f"groups must hold tuples of {len(columns)} values, one for each of {_name_all(columns)}{seen}"
            )
    listed = ([unwrap_label(each[index]) for each in raw] for index in range(len(columns)))
    return [(*read_values(values, GROUPS), ("", "")) for values in listed]


def check_number(number: int) -> None:
    """Raise if there are more than MOST_GROUPS groups."""
    if number > MOST_GROUPS:
        raise InvalidValueError(f"groups must hold at most {MOST_GROUPS:,} groups, not {number:,}")


def _name_all(columns: Sequence[GroupColumn]) -> str:
    return ", ".join(each.column for each in columns)
