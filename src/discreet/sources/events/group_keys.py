"""The public groups of a list by group, and which of them each row of the events is in.

The list decides what kind of value a group column is read as; a row is given the ordinal of its group in the list by
joins with small public tables, and a row of no listed group is dropped. No row can make that fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from itertools import product as combine
from math import prod
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.labels import is_column, unwrap_label
from discreet.sources.column_hints import choices, refuse_column, suggestion
from discreet.sources.engine import ask
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.domain import (
    Integers,
    ListNames,
    check_presence,
    convert_kind,
    find_list_column,
    is_list,
    read_list,
    read_values,
    refuse_repetition,
    split_column,
)
from discreet.sources.events.group_columns import NumberedMembers, PlainColumn, read_by
from discreet.sources.events.origin import origin_of

MOST_GROUPS = 1_000_000
"""So many groups at most: each is drawn by itself, and all of them are listed in a release."""

GROUPS = ListNames("groups", "group")
ORDINAL = "grp"
"""The column that says which group a row is in."""

_MOST_IN_WORDS = 100


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
    _by: tuple[PlainColumn, ...]
    _parts: list[NumberedMembers]
    _opened: Opened
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
        group_key = self._opened.dialect.group_key
        rows = table.select(**kept, **{name: group_key(part.read(table)) for name, part in own.items()})
        joined = rows
        for name, part in own.items():
            joined = joined.inner_join(part.table, rows[name] == group_key(part.table.key))
        joined, ordinal = self._number_combinations(joined)
        return joined.select(**{name: rows[name] for name in kept}, **{ORDINAL: ordinal.cast("int64")})

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
        by, listed = [each.spelling for each in self._by], [_spell_key(key) for key in self.keys]
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


def _spell_key(key: Any) -> Any:
    """A group as JSON has it."""
    if isinstance(key, tuple):
        return [_spell_key(each) for each in key]
    return key.isoformat() if isinstance(key, date) else key


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
        origin = origin_of(each)
        # To find the files of a large table takes time, and a list of one's own has no origin.
        if each is table or (origin and origin.meets(origin_of(table, name if isinstance(name, str) else None))):
            raise InvalidValueError(
                "groups must be a public list of groups, not the events themselves or a column of them: a group that "
                "is listed because somebody is in it tells just that, and no epsilon covers it"
            )


def open_group_keys(by: Any, groups: Any, opened: Opened) -> GroupKeys:
    """The groups of a public list, ready to be joined to the events.

    Parameters
    ----------
    by
        A column of the events, or a list of them.
    groups
        The public list: for one column what `discreet.events` takes as a domain; for several a table or file with
        columns of these names, a list of tuples, or `discreet.product`.
    opened
        The events.
    """
    columns = read_by(by)
    names = list(opened.table.columns)
    for each in columns:
        if each.column not in names:
            refuse_column("by", each.column, names, private=opened.is_text)
    if len(columns) == 1:
        if isinstance(groups, Product):
            raise InvalidValueError("groups must be one list where by is one column, not a product of several")
        part = _read_members(groups, columns[0], opened)
        return _make_keys(columns, [part], opened, part.members)
    if isinstance(groups, Product):
        return _open_product(groups, columns, opened)
    return _open_combinations(groups, columns, opened)


def _make_keys(
    by: tuple[PlainColumn, ...],
    parts: list[NumberedMembers],
    opened: Opened,
    keys: Iterable[Any],
    combinations: Any = None,
) -> GroupKeys:
    columns = list(dict.fromkeys(each.column for each in by))
    return GroupKeys(tuple(keys), tuple(each.name for each in by), columns, by, parts, opened, combinations)


def _read_members(given: Any, column: PlainColumn, opened: Opened) -> NumberedMembers:
    """The members of the public list of one column."""
    if isinstance(given, Integers):
        _check_number(given.d)
        given = range(given.lo, given.hi + 1)
    if is_list(given):
        members, kind = read_list(given, GROUPS)
    else:
        ((members, kind),) = _read_table(given, [column], opened)
        if len(members.unique()) < len(members):
            refuse_repetition(GROUPS)
    _check_number(len(members))
    return column.number_members(members, kind, opened)


def _read_table(given: Any, columns: Sequence[PlainColumn], opened: Opened) -> list[tuple[Any, str]]:
    """The columns of a public table or file, in the order of its rows where it has one, else sorted."""
    source, named = split_column(given)
    if named is not None and len(columns) > 1:
        raise InvalidValueError(
            f"groups must be a file with the columns {_name_all(columns)}, without one after a colon"
        )
    listed = open_table(source, None, GROUPS.argument, csv_format=opened.csv_format)
    try:
        return _read_columns(listed, named, columns, opened)
    finally:
        listed.close()


def _read_columns(
    listed: Opened, named: str | None, columns: Sequence[PlainColumn], opened: Opened
) -> list[tuple[Any, str]]:
    found = {f"c{index}": _find_column(listed, named, column, len(columns)) for index, column in enumerate(columns)}
    table = listed.table.select(**{name: listed.table[column] for name, column in found.items()})
    kinds = []
    for name, column in zip(found, columns, strict=True):
        table, kind = convert_kind(table, name, listed, opened, column.declared_kind(opened), GROUPS)
        kinds.append(kind)
    _check_number(ask(listed.engine, "counting the groups", lambda: int(table.count().to_pyarrow().as_py())))
    rows = ask(listed.engine, "reading the groups", table.to_pyarrow).combine_chunks()
    check_presence(GROUPS, rows.num_rows, sum(column.null_count for column in rows.columns))
    if not _has_order(listed):
        rows = _sort_rows(rows)
    return list(zip((column.combine_chunks() for column in rows.columns), kinds, strict=True))


def _find_column(listed: Opened, named: str | None, column: PlainColumn, number: int) -> str:
    if number == 1:
        return find_list_column(listed, named, column.column, GROUPS)
    columns = list(listed.table.columns)
    if column.column not in columns:
        hint = suggestion(column.column, columns, private=False)
        raise InvalidValueError(
            f"groups must have a column called {shown(column.column)}, and has {choices(columns)}{hint}"
        )
    return column.column


def _name_all(columns: Sequence[PlainColumn]) -> str:
    return ", ".join(each.column for each in columns)


def _has_order(listed: Opened) -> bool:
    """Whether the rows of a public table have an order: in files and frames they do, on an engine they may not."""
    return listed.engine == "DuckDB"


def _sort_rows(rows: Any) -> Any:
    import pyarrow as pa

    fields = [field.with_type(pa.uint8()) if pa.types.is_boolean(field.type) else field for field in rows.schema]
    order = pa.compute.sort_indices(rows.cast(pa.schema(fields)), [(name, "ascending") for name in rows.column_names])
    return rows.take(order)


def _check_number(number: int) -> None:
    if number > MOST_GROUPS:
        raise InvalidValueError(f"groups must hold at most {MOST_GROUPS:,} groups, not {number:,}")


def _open_product(groups: Product, columns: tuple[PlainColumn, ...], opened: Opened) -> GroupKeys:
    if len(groups.lists) != len(columns):
        raise InvalidValueError(
            f"groups must be a product of {len(columns)} lists, one for each column of by, not of {len(groups.lists)}"
        )
    parts = [_read_members(each, column, opened) for each, column in zip(groups.lists, columns, strict=True)]
    _check_number(prod(len(part.members) for part in parts))
    return _make_keys(columns, parts, opened, combine(*(part.members for part in parts)))


def _open_combinations(groups: Any, columns: tuple[PlainColumn, ...], opened: Opened) -> GroupKeys:
    """The groups of several columns that a table or a list of tuples holds."""
    lists = _read_tuples(groups, columns) if is_list(groups) else _read_table(groups, columns, opened)
    parts, places = [], []
    for (values, kind), column in zip(lists, columns, strict=True):
        encoded = values.dictionary_encode()
        parts.append(column.number_members(encoded.dictionary, kind, opened))
        places.append(encoded.indices.to_pylist())
    rows = list(zip(*places, strict=True))
    if len(set(rows)) < len(rows):
        refuse_repetition(GROUPS)
    keys = [tuple(part.members[place] for part, place in zip(parts, row, strict=True)) for row in rows]
    return _make_keys(columns, parts, opened, keys, _adopt_combinations(places, opened))


def _adopt_combinations(places: list[list[int]], opened: Opened) -> Any:
    import pyarrow as pa

    columns = {f"place{index}": pa.array(each, pa.int64()) for index, each in enumerate(places)}
    return opened.adopt(pa.table({**columns, "ordinal": pa.array(range(len(places[0])), pa.int64())}))


def _read_tuples(given: Any, columns: Sequence[PlainColumn]) -> list[tuple[Any, str]]:
    raw = given.tolist() if hasattr(given, "tolist") else list(given)
    _check_number(len(raw))
    check_presence(GROUPS, len(raw), 0)
    for each in raw:
        if not isinstance(each, tuple | list) or len(each) != len(columns):
            seen = "" if is_column(given) else f", not {shown(each)}"
            raise InvalidTypeError(
                f"groups must hold tuples of {len(columns)} values, one for each of {_name_all(columns)}{seen}"
            )
    return [read_values([unwrap_label(each[index]) for each in raw], GROUPS) for index in range(len(columns))]
