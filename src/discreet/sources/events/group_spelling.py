"""Groups as a command line has them: what `by` and `groups` are, from text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from discreet.errors import InvalidValueError, shown
from discreet.sources.events.domain import integers
from discreet.sources.events.group_columns import GroupColumn
from discreet.sources.events.group_lists import product
from discreet.sources.events.periods import UNITS, list_periods, period_column

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


def parse_groups(text: str | Sequence[str]) -> Any:
    """The public list that a text stands for: a range such as "2026-01..2026-12" or "1..12", or a file and its column.

    Of several texts, one for each column of `by`, every combination.
    """
    if not isinstance(text, str):
        found = [parse_groups(each) for each in text]
        return found[0] if len(found) == 1 else product(*found)
    first, dots, last = text.partition("..")
    if not dots:
        return text
    if re.fullmatch(r"[+-]?[0-9]{1,20}", first) and re.fullmatch(r"[+-]?[0-9]{1,20}", last):
        return integers(int(first), int(last))
    units = [name for name, unit in UNITS.items() if unit.parse(first) is not None]
    if not units:
        return text
    if UNITS[units[0]].parse(last) is None:
        raise InvalidValueError(f"groups must run from a {units[0]} to a {units[0]}, not to {shown(last)}")
    return list_periods(units[0], first, last)
