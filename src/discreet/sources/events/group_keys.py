"""The public groups of a list by group, and which of them each row of the events is in.

The list decides what kind of value a group column is read as; a row is given the ordinal of its group in the list by
joins with small public tables, and a row of no listed group is dropped. No row can make that fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import product as combine
from math import prod
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.labels import is_column, label_to_json
from discreet.sources.column_hints import refuse_column
from discreet.sources.events.connect import Opened
from discreet.sources.events.domain import is_list, refuse_repetition
from discreet.sources.events.group_columns import GroupColumn, NumberedMembers, read_by
from discreet.sources.events.group_lists import GROUPS, Product, check_number, read_members, read_table, read_tuples
from discreet.sources.events.group_spelling import suggest_period
from discreet.sources.events.origin import origin_of, origin_of_list

ORDINAL = "grp"
"""The column that says which group a row is in."""

_MOST_IN_WORDS = 100


@dataclass(frozen=True, eq=False, repr=False)
class GroupKeys:
    """The public groups of a source of events, in the order of their list.

    Attributes
    ----------
    keys
        The groups: a value for one column, a tuple for several.
    names
        What a release calls the group columns.
    columns
        The columns of the events that say which group a row is in.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    columns: list[str]
    _by: tuple[GroupColumn, ...]
    _parts: list[NumberedMembers]
    _combinations: Any = None

    def add_ordinals(self, table: Any, **kept: Any) -> Any:
        """The rows of listed groups, each with the index of its group in `keys` as the 64-bit integer `grp`.

        Parameters
        ----------
        table
            The events, or a part of their rows.
        kept
            The values of the rows to keep, as expressions of `table` by name; all of its columns where none is given.
        """
        kept = kept or _all_columns(table)
        own = {_unused_name(f"key{index}", kept): part for index, part in enumerate(self._parts)}
        rows = table.select(**kept, **{name: part.read(table) for name, part in own.items()})
        joined = rows
        for name, part in own.items():
            joined = joined.inner_join(part.table, part.match(rows[name]))
        joined, ordinal = self._number_combinations(joined)
        return joined.select(**{name: rows[name] for name in kept}, **{ORDINAL: ordinal.cast("int64")})

    def find_strangers(self, table: Any) -> Iterator[tuple[GroupColumn, Any]]:
        """For each group column, the rows whose value there is no member of its list."""
        for by, part in zip(self._by, self._parts, strict=True):
            name = _unused_name("key", {column.casefold(): None for column in table.columns})
            keyed = table.mutate(**{name: part.read(table)})
            yield by, keyed.anti_join(part.table, part.match(keyed[name]))

    def _number_combinations(self, joined: Any) -> tuple[Any, Any]:
        """The joined rows, and the ordinal of the combination that each has, from the numbers of its parts."""
        numbers, listed = [part.table.number for part in self._parts], self._combinations
        if listed is not None:
            places = [listed[f"place{index}"] == number for index, number in enumerate(numbers)]
            return joined.inner_join(listed, places), listed.ordinal
        ordinal = numbers[0]
        for part, number in zip(self._parts[1:], numbers[1:], strict=True):
            ordinal = ordinal * len(part.members) + number
        return joined, ordinal

    def description(self) -> dict[str, Any]:
        """What is public about the groups, in terms that JSON can hold; of many, their number and a hash."""
        by, listed = [each.spelling for each in self._by], [label_to_json(key) for key in self.keys]
        if len(listed) <= _MOST_IN_WORDS:
            return {"by": by, "groups": listed}
        digest = sha256("\n".join(map(repr, listed)).encode()).hexdigest()
        return {"by": by, "groups": {"number": len(listed), "sha256": digest}}


def _all_columns(table: Any) -> dict[str, Any]:
    if ORDINAL in table.columns:
        raise InvalidValueError(f"table must not have a column called {ORDINAL} where all of its columns are kept")
    return {name: table[name] for name in table.columns}


def _unused_name(name: str, taken: Mapping[str, Any]) -> str:
    folded = {each.casefold() for each in taken}
    while name in folded:
        name += "_"
    return name


def refuse_own_groups(table: Any, groups: Any, name: Any) -> None:
    """Refuses the events themselves as the list of their groups, or a piece of them, where that can be seen.

    Parameters
    ----------
    table, name
        The events, as `discreet.events` is given them.
    groups
        The public list.
    """
    for each in groups.lists if isinstance(groups, Product) else [groups]:
        origin = origin_of_list(each)
        # To find the files of a large table takes time, and a list of one's own has no origin.
        if each is table or (origin and origin.meets(origin_of(table, name or None))):
            raise InvalidValueError(
                "groups must be a public list of groups, not the events themselves or a column of them: a group that "
                "is listed because somebody is in it tells just that, and no epsilon covers it"
            )


def open_group_keys(by: Any, groups: Any, opened: Opened) -> GroupKeys:
    """The groups of a public list, ready to be joined to the events.

    Parameters
    ----------
    by
        A column of the events, a period of one, or a list of them.
    groups
        The public list: for one column what `discreet.events` takes as a domain, of periods as they are written; for
        several a table or file with
        columns of these names, a list of tuples, or `discreet.product`.
    opened
        The events.
    """
    columns = read_by(by)
    names = list(opened.table.columns)
    for each in columns:
        if each.column not in names:
            if period := suggest_period(each.column):
                raise InvalidValueError(f"by must be a column of the table, not {quote(each.column)}{period}")
            refuse_column("by", each.column, names, private=opened.is_text)
    if len(columns) == 1:
        if isinstance(groups, Product):
            raise InvalidValueError("groups must be one list where by is one column, not a product of several")
        part = read_members(groups, columns[0], opened)
        return _make_keys(columns, [part], part.members)
    if isinstance(groups, Product):
        return _open_product(groups, columns, opened)
    return _open_combinations(groups, columns, opened)


def _make_keys(
    by: tuple[GroupColumn, ...],
    parts: list[NumberedMembers],
    keys: Iterable[Any],
    combinations: Any = None,
) -> GroupKeys:
    columns = list(dict.fromkeys(each.column for each in by))
    return GroupKeys(tuple(keys), _name_columns(by), columns, by, parts, combinations)


def _name_columns(by: tuple[GroupColumn, ...]) -> tuple[str, ...]:
    """What a release calls the group columns, each by another name."""
    short = [each.name for each in by]
    return tuple(each.name if short.count(each.name) == 1 else each.spelling for each in by)


def _open_product(groups: Product, columns: tuple[GroupColumn, ...], opened: Opened) -> GroupKeys:
    if len(groups.lists) != len(columns):
        raise InvalidValueError(
            f"groups must be a product of {len(columns)} lists, one for each column of by, not of {len(groups.lists)}"
        )
    parts = [read_members(each, column, opened) for each, column in zip(groups.lists, columns, strict=True)]
    check_number(prod(len(part.members) for part in parts))
    return _make_keys(columns, parts, combine(*(part.members for part in parts)))


def _open_combinations(groups: Any, columns: tuple[GroupColumn, ...], opened: Opened) -> GroupKeys:
    """The groups of several columns that a table or a list of tuples holds."""
    lists = read_tuples(groups, columns) if is_list(groups) else read_table(groups, columns, opened)
    shows = is_list(groups) and not is_column(groups)
    parts, places = [], []
    for (values, kind), column in zip(lists, columns, strict=True):
        encoded = values.dictionary_encode()
        parts.append(column.number_members(encoded.dictionary, kind, opened, shows))
        places.append(encoded.indices.to_pylist())
    rows = list(zip(*places, strict=True))
    if len(set(rows)) < len(rows):
        refuse_repetition(GROUPS)
    keys = [tuple(part.members[place] for part, place in zip(parts, row, strict=True)) for row in rows]
    return _make_keys(columns, parts, keys, _adopt_combinations(places, opened))


def _adopt_combinations(places: list[list[int]], opened: Opened) -> Any:
    import pyarrow as pa

    columns = {f"place{index}": pa.array(each, pa.int64()) for index, each in enumerate(places)}
    return opened.adopt(pa.table({**columns, "ordinal": pa.array(range(len(places[0])), pa.int64())}))
