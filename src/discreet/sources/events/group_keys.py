"""The public groups of a list by group, and which of them each row of the events is in.

The list decides what kind of value a group column is read as; a row is given the ordinal of its group in the list by
joins with small public tables, and a row of no listed group is dropped. No row can make that fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product as combine
from math import prod
from typing import Any

from discreet.errors import InvalidValueError, quote, refuse_column
from discreet.labels import is_column, label_to_json
from discreet.sources.base import MANY, ONE, check_each_user
from discreet.sources.events.cells import is_whole_type, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.domain import is_list, refuse_repetition
from discreet.sources.events.group_columns import (
    GROUPS,
    GroupColumn,
    NumberedMembers,
    Product,
    check_number,
    product,
    read_by,
    read_members,
    read_table,
    read_tuples,
)
from discreet.sources.events.periods import UNITS, list_periods, period_column
from discreet.sources.events.provenance import origin_of, origin_of_list
from discreet.sources.events.ranges import integers

# A hash of a user together with something of theirs, the same on every engine.
#
# It decides which of a user's things count, so that no other user has a part in it and no thing is favoured for all.
# The user is in it by a spelling: equal users have equal ones, which is all that is needed. Users with one spelling in
# common would choose alike, and nothing else.


def check_hash(opened: Opened, argument: str) -> None:
    """Refuses what a hash decides on an engine of which it is not known how it makes one."""
    if opened.dialect.digest is None or opened.dialect.text_bytes is None:
        raise InvalidValueError(
            f"{argument} must be left out on {opened.engine}: discreet does not know how it makes a hash of text"
        )


def hash_with_user(dialect: Dialect, who: Any, thing: Any) -> Any:
    """MD5 of the digest of a user, a colon and a thing of theirs, as bytes that every engine orders alike.

    Parameters
    ----------
    dialect
        That of the engine, which makes hashes.
    who
        What users are told apart by, as `user_key` has it.
    thing
        A column of text.
    """
    assert dialect.digest is not None, "checked when the source was made"
    assert dialect.text_bytes is not None, "checked when the source was made"
    # A digest has no colon, so that no two pairs are joined to the same text.
    joined = dialect.digest(_spell(dialect, who)) + ":" + thing
    return dialect.text_bytes(dialect.digest(joined))


def _spell(dialect: Dialect, who: Any) -> Any:
    """A user's spelling, text or bytes, the same for values that are equal; empty for what has none."""
    import ibis

    dtype = who.type()
    if dialect.spell_user is not None:
        return dialect.spell_user(who)
    if dtype.is_binary():
        return who
    plain = is_whole_type(dtype) or dtype.is_uuid() or dtype.is_boolean()
    text = who.cast("string") if plain else read_cell(dialect, who, "string")
    return ibis.coalesce(text, "")


# Groups as a command line has them: what `by` and `groups` are, from text.

_PERIOD = rf"({'|'.join(UNITS)})\(([^,()]+)(?:,\s*([^,()]+))?\)"


def parse_by(text: str) -> str | GroupColumn | list[str | GroupColumn]:
    """The column, the period of one, or the list of these that a text such as "country,month(played_at)" stands for.

    A comma separates columns, outside of parentheses; a period may name its zone, "month(played_at, Europe/Berlin)".
    """
    found = [_parse_column(part.strip()) for part in re.split(r",(?![^()]*\))", text)]
    return found[0] if len(found) == 1 else found


def _parse_column(text: str) -> str | GroupColumn:
    if not text:
        raise InvalidValueError("by must name a column on each side of a comma")
    period = re.fullmatch(_PERIOD, text)
    if period is None:
        return text
    unit, column, zone = period.groups()
    return period_column(unit, column.strip(), None if zone is None else zone.strip())


def suggest_period(column: str) -> str:
    """The end of a sentence about a column that is written as a command line has a period, or nothing."""
    period = re.fullmatch(_PERIOD, column)
    if period is None:
        return ""
    unit, name, zone = period.groups()
    return f"; did you mean discreet.{unit}({', '.join(repr(part.strip()) for part in (name, zone) if part)})?"


def parse_groups(text: str | Sequence[str], units: Sequence[str | None] = ()) -> Any:
    """The public list that a text stands for: a range such as "2026-01..2026-12" or "1..12", or a file and its column.

    Of several texts, one for each column of `by`, every combination. The units of the periods that `by` asks for are
    for messages.
    """
    if not isinstance(text, str):
        found = [parse_groups(each, units[place : place + 1]) for place, each in enumerate(text)]
        return found[0] if len(found) == 1 else product(*found)
    first, dots, last = text.partition("..")
    # A path may have two dots too.
    if not dots or not first or re.search(r"[/\\:]", text):
        return text
    if re.fullmatch(r"[+-]?[0-9]{1,20}", first) and re.fullmatch(r"[+-]?[0-9]{1,20}", last):
        return integers(int(first), int(last))
    fitting = [name for name, unit in UNITS.items() if unit.parse(first) is not None]
    if not fitting:
        raise InvalidValueError(f"groups must be {_describe_ranges(units)}, not {quote(text)}")
    if UNITS[fitting[0]].parse(last) is None:
        raise InvalidValueError(f"groups must run from a {fitting[0]} to a {fitting[0]}, not to {quote(last)}")
    return list_periods(fitting[0], first, last)


_RANGES = {
    "day": "2026-01-01..2026-01-31",
    "week": "2026-W01..2026-W53",
    "month": "2026-01..2026-12",
    "quarter": "2026-Q1..2026-Q4",
    "year": "2020..2026",
}


def _describe_ranges(units: Sequence[str | None]) -> str:
    """How ranges are written: of the unit that is asked for, or of any."""
    unit = units[0] if units else None
    if unit is None:
        return f"a range of whole numbers like 1..12 or of periods, such as months like {_RANGES['month']}"
    return f"{unit}s like {_RANGES[unit]}"


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


# Which groups a user counts in, decided by the user's own rows and nothing else, in the query that scores them.
#
# The rows are those kept by the caller's condition that have a user and a listed group, whatever their item.


@dataclass(frozen=True, eq=False, repr=False)
class GroupSplit:
    """The groups, and in how many of them a user counts.

    Attributes
    ----------
    groups
        The public list.
    each_user
        "one" where a user counts in the group with most rows of theirs, of several the first in the list.
    groups_per_user
        With "many", in how many groups a user counts at most: those with the least hashes of user and group.
    dialect
        That of the engine.
    """

    groups: GroupKeys
    each_user: str
    groups_per_user: int
    dialect: Dialect

    @property
    def is_bounded(self) -> bool:
        """Whether a user can be in more groups than count."""
        return self.groups_per_user < len(self.groups.keys)

    def keep_own_groups(self, scored: Any, rows: Any) -> Any:
        """What was made of the rows, less what is of groups in which its user does not count.

        Both have the columns `who` and `grp`; the rows decide.
        """
        if self.each_user != ONE and not self.is_bounded:
            return scored
        find = self._find_main_groups if self.each_user == ONE else self._keep_few_groups
        own = find(rows.alias("discreet_group_rows")).alias("discreet_groups")
        joined = scored.inner_join(own, [scored.who == own.who, scored.grp == own.grp])
        return joined.select(*(scored[name] for name in scored.columns))

    def _find_main_groups(self, rows: Any) -> Any:
        """For each user the group with most rows, the first in the list where there are several."""
        bits = len(self.groups.keys).bit_length()
        last, most = 2**bits - 1, 2 ** (62 - bits)
        counted = rows.group_by("who", "grp").agg(number=rows.count())
        # The greatest of numbers with the rows in the upper bits, the place from the end of the list in the lower ones.
        place = counted.number.cast("int64").clip(upper=most) * 2**bits + (last - counted.grp)
        ranked = counted.select(who=counted.who, place=place)
        main = ranked.group_by("who").agg(place=ranked.place.max())
        return main.select(who=main.who, grp=last - (main.place & last))

    def _keep_few_groups(self, rows: Any) -> Any:
        """At most so many groups of each user, others for another user, though the groups of both be the same."""
        import ibis

        pairs = rows.select(who=rows.who, grp=rows.grp).distinct()
        hashed = pairs.mutate(hash=hash_with_user(self.dialect, pairs.who, pairs.grp.cast("string")))
        position = ibis.row_number().over(ibis.window(group_by="who", order_by=[hashed.hash, hashed.grp]))
        ranked = hashed.mutate(position=position)
        return ranked.filter(ranked.position < self.groups_per_user).select("who", "grp")


def open_group_split(by: Any, groups: Any, opened: Opened, each_user: Any, max_groups_per_user: Any) -> GroupSplit:
    """The groups that the arguments of `events` describe, and in how many of them a user counts."""
    keys = open_group_keys(by, groups, opened)
    most = check_each_user(each_user, max_groups_per_user, len(keys.keys))
    split = GroupSplit(keys, each_user, most, opened.dialect)
    if each_user == MANY and split.is_bounded:
        check_hash(opened, "max_groups_per_user")
    return split
