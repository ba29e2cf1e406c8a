"""The options of `discreet select` for lists by group: how they are declared, and what their text means."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Annotated, Any

import typer

from discreet.cli.options import complete_from, join_choices, parse_choice, parse_count
from discreet.cli.stdin import STANDARD
from discreet.errors import InvalidValueError, quote, suggestion
from discreet.sources.base import MANY, ONE, explain_each_user
from discreet.sources.events.location import has_other_scheme

_ONE_OR_MANY = (ONE, MANY)

ByOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="With --user: release a list for each group. The column that says which group a row is in, or a period of "
        "a date or time: day(COLUMN), week(...), month(...), quarter(...) or year(...), in UTC, or in a zone as in "
        "month(COLUMN, Europe/Berlin). Give it once for each column where several make a group.",
    ),
]
GroupsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LIST",
        show_default=False,
        help="With --by: the public list of groups, as FILE:COLUMN or as FIRST..LAST, of whole numbers or periods, "
        "such as 2026-01..2026-12. Give it once for each --by, for all combinations, or once as a FILE that has all "
        "the columns. Rows of other groups are left out.",
    ),
]
EachUserOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --by, and without a default: one, where a user counts in one group alone, that of most of the "
        "user's rows, and each group has all of epsilon; or many, where a user may count in several, and the groups "
        "divide epsilon.",
        autocompletion=complete_from(_ONE_OR_MANY),
    ),
]
MaxGroupsOption = Annotated[
    str | None,
    typer.Option(
        metavar="G",
        help="With --each-user many: a user counts in at most G groups, and each group has epsilon/G. By default all.",
    ),
]


def parse_grouping(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `discreet.events` that the options by name stand for, none of them where there are no groups."""
    if given["by"] is None:
        for option, text in given.items():
            if text is not None:
                raise InvalidValueError(f"{option} must be left out without by: there are no groups")
        return {}
    most, columns = given["max_groups_per_user"], list(map(_parse_column, given["by"]))
    groups = _parse_groups(given["groups"] or [], columns)
    if given["each_user"] is None:
        # Quotes are for Python, and a shell would take them away.
        prices = explain_each_user(_count_groups(groups), "--max-groups-per-user").replace("'", "")
        raise InvalidValueError(f"--each-user must be given with --by, one or many: {prices}")
    parse_choice("each_user", given["each_user"], _ONE_OR_MANY)
    return {
        "by": columns[0] if len(columns) == 1 else columns,
        "groups": groups,
        "each_user": given["each_user"],
        "max_groups_per_user": None if most is None else parse_count(most, "max_groups_per_user"),
    }


def _count_groups(groups: Any) -> str:
    """How many groups a list has, as far as that is known before a file is read."""
    from discreet.sources.events.group_columns import Product
    from discreet.sources.events.ranges import Integers

    lists = groups.lists if isinstance(groups, Product) else [groups]
    if any(isinstance(each, str) for each in lists):
        return "G"
    return f"{prod(each.d if isinstance(each, Integers) else len(each) for each in lists):,}"


def _parse_column(text: str) -> Any:
    from discreet.sources.events.group_keys import parse_by
    from discreet.sources.events.periods import UNITS

    found = parse_by(text) if text.strip() else []
    if isinstance(found, list):
        raise InvalidValueError(f"by must be given once for each column, and names one, not {quote(text)}")
    named, bracket, _ = text.partition("(")
    hint = suggestion(named, list(UNITS), private=False)
    if isinstance(found, str) and bracket and hint:
        raise InvalidValueError(f"by must be a column or {join_choices(UNITS)} of one, not {quote(text)}{hint}")
    return found


def _parse_groups(texts: Sequence[str], by: Sequence[Any]) -> Any:
    from discreet.sources.events.group_keys import parse_groups

    if not texts:
        raise InvalidValueError(
            "groups must be given with by: a public list of groups, such as countries.csv:code or 2026-01..2026-12, "
            "because a list made from the events would tell where somebody was"
        )
    columns = len(by)
    if len(texts) not in (1, columns):
        ways = "" if columns == 1 else f", {columns} times, or once as a file of combinations"
        raise InvalidValueError(f"groups must be given once for each by{ways}, not {len(texts)} times")
    for text in texts:
        if has_other_scheme(text) or text.partition(":")[0] == STANDARD:
            raise InvalidValueError(
                "groups must be FILE:COLUMN or FIRST..LAST: neither the URL of a database nor standard input"
            )
        if not re.search(r"[.:/\\]", text) and not os.path.exists(text):
            raise InvalidValueError(
                f"groups must be FILE:COLUMN or FIRST..LAST, not {quote(text)}: put the list into a file, one group on "
                "each line under a header, and name it FILE:COLUMN"
            )
    found = parse_groups(texts, [getattr(column, "unit", None) for column in by])
    if len(texts) < columns and not isinstance(found, str):
        raise InvalidValueError(
            f"groups must be given once for each by, {columns} times, or once as a file of combinations, "
            f"not as the one range {quote(texts[0])}"
        )
    return found
