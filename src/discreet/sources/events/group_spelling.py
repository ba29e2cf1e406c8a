"""Groups as a command line has them: what `by` and `groups` are, from text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.sources.events.group_columns import GroupColumn
from discreet.sources.events.group_lists import product
from discreet.sources.events.periods import UNITS, list_periods, period_column
from discreet.sources.events.ranges import integers

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
