"""The public groups of a source of events, the group of each row, and the groups in which a user counts.

Joins with small public tables give a row the ordinal of its group in the list; rows of no listed group are dropped, and
no row can make a join fail. The groups in which a user counts depend on that user's rows alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
    read_members,
    read_table,
    read_tuples,
)
from discreet.sources.events.location import Location
from discreet.sources.events.periods import UNITS, OnePeriod, list_periods, period_column
from discreet.sources.events.ranges import integers

ORDINAL = "grp"
"""The column that holds the ordinal of a row's group."""

_MOST_IN_WORDS = 100
"""Maximum number of groups that a description lists; longer lists are described by their number and a hash."""

_PERIOD = rf"({'|'.join(UNITS)})\(([^,()]+)(?:,\s*([^,()]+))?\)"

_RANGES = {
    "day": "2026-01-01..2026-01-31",
    "week": "2026-W01..2026-W53",
    "month": "2026-01..2026-12",
    "quarter": "2026-Q1..2026-Q4",
    "year": "2020..2026",
}


@dataclass(frozen=True, eq=False, repr=False)
class GroupKeys:
    """The public groups of a source of events, in the order of their list.

    Attributes
    ----------
    keys
        The groups: a value for one column, a tuple for several.
    names
        The names of the group columns in a release.
    columns
        The columns of the events that decide the group of a row.
    by
        The group columns, one for each part of a group.
    parts
        The list of each group column.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    columns: list[str]
    by: tuple[GroupColumn, ...]
    parts: list[NumberedMembers]
    _combinations: Any = None

    def add_ordinals(self, table: Any, **kept: Any) -> Any:
        """Return the rows of listed groups, each with the index of its group in `keys` as the 64-bit integer `grp`.

        Parameters
        ----------
        table
            The events, or a part of their rows.
        kept
            The values of the rows to keep, as expressions of `table` by name; by default all of its columns.
        """
        if not kept and ORDINAL in table.columns:
            raise InvalidValueError(f"table must not have a column called {ORDINAL} where all of its columns are kept")
        kept = kept or {name: table[name] for name in table.columns}
        own = {_find_unused_name(f"key{index}", kept): part for index, part in enumerate(self.parts)}
        rows = table.select(**kept, **{name: part.read(table) for name, part in own.items()})
        joined = rows
        for name, part in own.items():
            joined = joined.inner_join(part.table, part.match(rows[name]))
        numbers, listed = [part.table.number for part in self.parts], self._combinations
        if listed is None:
            ordinal = numbers[0]
            for part, number in zip(self.parts[1:], numbers[1:], strict=True):
                ordinal = ordinal * len(part.members) + number
        else:
            places = [listed[f"place{index}"] == number for index, number in enumerate(numbers)]
            joined, ordinal = joined.inner_join(listed, places), listed.ordinal
        return joined.select(**{name: rows[name] for name in kept}, **{ORDINAL: ordinal.cast("int64")})

    def find_strangers(self, table: Any) -> Iterator[tuple[GroupColumn, Any]]:
        """Yield each group column with the rows whose value there is no member of its list."""
        for by, part in zip(self.by, self.parts, strict=True):
            name = _find_unused_name("key", table.columns)
            keyed = table.mutate(**{name: part.read(table)})
            yield by, keyed.anti_join(part.table, part.match(keyed[name]))

    def list_kinds(self) -> list[tuple[str, str]]:
        """Return each group column of the events with the kind that it is read as."""
        return [(by.column, part.kind) for by, part in zip(self.by, self.parts, strict=True)]

    def description(self) -> dict[str, Any]:
        """Return the public description of the groups as JSON values."""
        by, listed = [each.spelling for each in self.by], [label_to_json(key) for key in self.keys]
        if len(listed) <= _MOST_IN_WORDS:
            return {"by": by, "groups": listed}
        digest = sha256("\n".join(map(repr, listed)).encode()).hexdigest()
        return {"by": by, "groups": {"number": len(listed), "sha256": digest}}


def _find_unused_name(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    while name in folded:
        name += "_"
    return name


@dataclass(frozen=True, eq=False, repr=False)
class GroupSplit:
    """The groups, and the number of them in which a user counts.

    The rows that decide are those with a user and a listed group that meet the condition, whatever their item.

    Attributes
    ----------
    groups
        The public list.
    each_user
        "one" if a user counts in the group with most of the user's rows, the first in the list among equals.
    groups_per_user
        With "many", the maximum number of groups in which a user counts: those with the least hashes of user and group.
    dialect
        The dialect of the engine.
    """

    groups: GroupKeys
    each_user: str
    groups_per_user: int
    dialect: Dialect

    @property
    def is_bounded(self) -> bool:
        """True if a user can have rows in more groups than count."""
        return self.groups_per_user < len(self.groups.keys)

    def description(self) -> dict[str, Any]:
        """Return the public description of the groups, and of the rule for users, as JSON values."""
        bound = {"max_groups_per_user": self.groups_per_user} if self.each_user == MANY else {}
        return {**self.groups.description(), "each_user": self.each_user, **bound}

    def keep_own_groups(self, scored: Any, rows: Any) -> Any:
        """Return `scored` without the groups in which its users do not count, as `rows` decide.

        Both tables have the columns `who` and `grp`.
        """
        if self.each_user != ONE and not self.is_bounded:
            return scored
        import ibis

        rows = rows.alias("discreet_group_rows")
        if self.each_user == ONE:
            # The maximum of one integer finds the group with most rows, the first in the list among equals: its upper
            # bits are the rows, its lower bits the place counted from the end of the list.
            bits = len(self.groups.keys).bit_length()
            last, most = 2**bits - 1, 2 ** (62 - bits)
            counted = rows.group_by("who", "grp").agg(number=rows.count())
            place = counted.number.cast("int64").clip(upper=most) * 2**bits + (last - counted.grp)
            ranked = counted.select(who=counted.who, place=place)
            main = ranked.group_by("who").agg(place=ranked.place.max())
            own = main.select(who=main.who, grp=last - (main.place & last))
        else:
            # The hash depends on the user, so that users with the same groups may keep different ones.
            pairs = rows.select(who=rows.who, grp=rows.grp).distinct()
            hashed = pairs.mutate(hash=hash_with_user(self.dialect, pairs.who, pairs.grp.cast("string")))
            position = ibis.row_number().over(ibis.window(group_by="who", order_by=[hashed.hash, hashed.grp]))
            ranked = hashed.mutate(position=position)
            own = ranked.filter(ranked.position < self.groups_per_user).select("who", "grp")
        own = own.alias("discreet_groups")
        joined = scored.inner_join(own, [scored.who == own.who, scored.grp == own.grp])
        return joined.select(*(scored[name] for name in scored.columns))


def open_group_split(
    columns: tuple[GroupColumn, ...], groups: Any, opened: Opened, each_user: Any, max_groups_per_user: Any
) -> GroupSplit:
    """Return the groups that the arguments of `events` describe, and the number of them in which a user counts."""
    keys = open_group_keys(columns, groups, opened)
    most = check_each_user(each_user, max_groups_per_user, len(keys.keys))
    split = GroupSplit(keys, each_user, most, opened.dialect)
    if each_user == MANY and split.is_bounded:
        check_hash(opened, "max_groups_per_user")
    return split


def open_group_keys(columns: tuple[GroupColumn, ...], groups: Any, opened: Opened) -> GroupKeys:
    """Return the groups of a public list, ready to be joined to the events.

    Parameters
    ----------
    columns
        The group columns of the events.
    groups
        The public list. For one column it is given like a domain; periods are spelled as in ISO 8601. For several it
        is a table or file with columns of these names, a list of tuples, or `discreet.product`.
    opened
        The events.
    """
    names = list(opened.table.columns)
    for each in columns:
        if each.column not in names:
            if period := suggest_period(each.column):
                raise InvalidValueError(f"by must be a column of the table, not {quote(each.column)}{period}")
            refuse_column("by", each.column, names, private=opened.names_are_private)
    keys: Iterable[Any]
    combinations = None
    if len(columns) == 1:
        if isinstance(groups, Product):
            raise InvalidValueError("groups must be one list where by is one column, not a product of several")
        parts = [read_members(groups, columns[0], opened)]
        keys = parts[0].members
    elif isinstance(groups, Product):
        if len(groups.lists) != len(columns):
            raise InvalidValueError(
                f"groups must be a product of {len(columns)} lists, one for each column of by, "
                f"not of {len(groups.lists)}"
            )
        parts = [read_members(each, column, opened) for each, column in zip(groups.lists, columns, strict=True)]
        check_number(prod(len(part.members) for part in parts))
        keys = combine(*(part.members for part in parts))
    else:
        import pyarrow as pa

        lists = read_tuples(groups, columns) if is_list(groups) else read_table(groups, columns, opened)
        shows = is_list(groups) and not is_column(groups)
        parts, places = [], []
        for (values, kind, place), column in zip(lists, columns, strict=True):
            encoded = values.dictionary_encode()
            opened.doubt_spelling(column.column, GROUPS, encoded.dictionary, place)
            parts.append(column.number_members(encoded.dictionary, kind, opened, shows))
            places.append(encoded.indices.to_pylist())
        rows = list(zip(*places, strict=True))
        if len(set(rows)) < len(rows):
            refuse_repetition(GROUPS)
        keys = [tuple(part.members[place] for part, place in zip(parts, row, strict=True)) for row in rows]
        listed = {f"place{index}": pa.array(each, pa.int64()) for index, each in enumerate(places)}
        combinations = opened.adopt(pa.table({**listed, "ordinal": pa.array(range(len(rows)), pa.int64())}))
    # Two periods of one unit have the same name; their spellings differ.
    short = [each.name for each in columns]
    shown = tuple(each.name if short.count(each.name) == 1 else each.spelling for each in columns)
    own = list(dict.fromkeys(each.column for each in columns))
    return GroupKeys(tuple(keys), shown, own, columns, parts, combinations)


def parse_by(text: str) -> str | GroupColumn | list[str | GroupColumn]:
    """Parse the text of a command line, such as "country,month(played_at)", into a column, a period or a list of these.

    A comma outside of parentheses separates columns; a period may name its zone, "month(played_at, Europe/Berlin)".
    """
    found: list[str | GroupColumn] = []
    # A text in quotes, or a character; brackets may be nested in row expressions.
    parts, depth = [""], 0
    for piece in re.findall(r"'[^']*'|\"[^\"]*\"|.", text, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += piece
    for part in parts:
        name = part.strip()
        if not name:
            raise InvalidValueError("by must name a column on each side of a comma")
        if period := re.fullmatch(_PERIOD, name):
            unit, column, zone = period.groups()
            found.append(period_column(unit, column.strip(), None if zone is None else zone.strip()))
        else:
            found.append(name)
    return found[0] if len(found) == 1 else found


def parse_during(text: str) -> OnePeriod:
    """Parse the text of a command line, such as "month(played_at)=2026-10", into one period of a column."""
    column, _, period = text.rpartition("=")
    found = re.fullmatch(_PERIOD, column.strip())
    if found is None:
        raise InvalidValueError(
            f"during must be one period of a column, such as month(played_at)=2026-10, not {quote(text)}"
        )
    unit, name, zone = found.groups()
    return period_column(unit, name.strip(), zone and zone.strip()).only(period.strip())


def suggest_period(column: str) -> str:
    """Return a hint for a column that is spelled like a period on the command line, and "" for others."""
    period = re.fullmatch(_PERIOD, column)
    if period is None:
        return ""
    unit, name, zone = period.groups()
    return f"; did you mean discreet.{unit}({', '.join(repr(part.strip()) for part in (name, zone) if part)})?"


def parse_groups(text: str | Sequence[str], units: Sequence[str | None] = ()) -> Any:
    """Parse a range, such as "2026-01..2026-12" or "1..12", into a public list, and other text into a location.

    Several texts, one for each column of `by`, stand for every combination. Messages name the units of the periods that
    `by` asks for.
    """
    if not isinstance(text, str):
        found = [parse_groups(each, units[place : place + 1]) for place, each in enumerate(text)]
        return found[0] if len(found) == 1 else product(*found)
    first, dots, last = text.partition("..")
    # A path may have two dots too.
    if not dots or not first or re.search(r"[/\\:]", text):
        return Location.parse_list(text, "groups")
    if re.fullmatch(r"[+-]?[0-9]{1,20}", first) and re.fullmatch(r"[+-]?[0-9]{1,20}", last):
        return integers(int(first), int(last))
    fitting = [name for name, unit in UNITS.items() if unit.parse(first) is not None]
    if not fitting:
        unit = units[0] if units else None
        described = f"a range of whole numbers like 1..12 or of periods, such as months like {_RANGES['month']}"
        allowed = described if unit is None else f"{unit}s like {_RANGES[unit]}"
        raise InvalidValueError(f"groups must be {allowed}, not {quote(text)}")
    if UNITS[fitting[0]].parse(last) is None:
        raise InvalidValueError(f"groups must run from a {fitting[0]} to a {fitting[0]}, not to {quote(last)}")
    return list_periods(fitting[0], first, last)


def check_hash(opened: Opened, argument: str) -> None:
    """Raise if the engine has no known function for the hash that an argument needs."""
    if opened.dialect.digest is None or opened.dialect.text_bytes is None:
        raise InvalidValueError(
            f"{argument} must be left out on {opened.engine}: discreet does not know how it makes a hash of text"
        )


def hash_with_user(dialect: Dialect, who: Any, thing: Any) -> Any:
    """Return MD5 of the digest of a user, a colon and a text, as bytes that every engine orders alike.

    Equal users have equal spellings, and the hash needs no more: unequal users with one spelling would choose alike.

    Parameters
    ----------
    dialect
        The dialect of an engine that makes hashes.
    who
        The key of the user, as `RowReading.read_user` returns it.
    thing
        A column of text.
    """
    import ibis

    assert dialect.digest is not None, "checked when the source was made"
    assert dialect.text_bytes is not None, "checked when the source was made"
    dtype = who.type()
    if dialect.user_key is not None:
        # The cast of a key to text has the digits of a whole number.
        spelled = who.cast("string")
    elif dtype.is_binary():
        spelled = who
    else:
        plain = is_whole_type(dtype) or dtype.is_uuid() or dtype.is_boolean()
        spelled = ibis.coalesce(who.cast("string") if plain else read_cell(dialect, who, "string"), "")
    # A digest has no colon, so no two pairs are joined to the same text.
    return dialect.text_bytes(dialect.digest(dialect.digest(spelled) + ":" + thing))
