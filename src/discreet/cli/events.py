"""The source of events that the options of `discreet select --user` describe."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import complete_from, join_choices, parse_choice, parse_count
from discreet.cli.output import check_out, print_doubt
from discreet.cli.stdin import STANDARD, Input, input_files
from discreet.discovery_terms import EXACT, KINDS, SPELLINGS, Discovered, discovered
from discreet.errors import InvalidValueError, quote
from discreet.sources.column_hints import suggestion
from discreet.sources.events.domain import parse_domain
from discreet.sources.events.file_paths import list_files
from discreet.sources.events.ranges import Integers
from discreet.sources.events.remote_files import is_remote
from discreet.sources.events.source import events
from discreet.sources.events.strings import STRINGS
from discreet.sources.groups import MANY, ONE, explain_each_user

if TYPE_CHECKING:
    from discreet.discovery_terms import Discovered

DiscoverOption = Annotated[
    bool,
    typer.Option(
        "--discover",
        help="With --user, in place of --domain: find the items in the events, where nobody has a list of them. Needs "
        "--delta, and --max-items-per-user, which then says how many items of a user count for finding them.",
    ),
]
DeltaOption = Annotated[
    str | None,
    typer.Option(
        metavar="D",
        help="With --discover: the chance that the promise of epsilon may fail, such as 1e-8; far below one over the "
        "number of people, and at most 1e-3.",
    ),
]
KindOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With --discover: what the items are, {join_choices(KINDS)}. By default string.",
        autocompletion=complete_from(KINDS),
    ),
]
SpellingOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --discover: which texts are one item. exact, the default; casefold, whatever the case of A to Z; "
        "trim, whatever the spaces at their ends; or both.",
        autocompletion=complete_from(SPELLINGS),
    ),
]
DiscoveryEpsilonOption = Annotated[
    str | None,
    typer.Option(
        metavar="E1",
        help="With --discover: how much of epsilon is for finding the items. By default a quarter to a half.",
    ),
]


def parse_discovery(given: Mapping[str, Any], max_items_per_user: str | None) -> Discovered | None:
    """The terms that the options by name stand for; None, and no option given, where nothing is to be found."""
    if not given["discover"]:
        for option, text in given.items():
            if text:
                raise InvalidValueError(f"{option} must be left out without discover: the items come from a list")
        return None
    if max_items_per_user is None:
        raise InvalidValueError("max_items_per_user must be given with discover: how many items of a user count for it")
    most = parse_count(max_items_per_user, "max_items_per_user")
    kind = parse_choice("kind", given["kind"] or KINDS[0], KINDS)
    spelling = parse_choice("spelling", given["spelling"] or EXACT, SPELLINGS)
    with warnings.catch_warnings(record=True, action="always") as caught:
        terms = discovered(given["delta"], most, given["discovery_epsilon"], kind, spelling)
    for warning in caught:
        print_doubt(str(warning.message))
    return terms


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
    from discreet.sources.events.group_lists import Product
    from discreet.sources.events.ranges import Integers

    lists = groups.lists if isinstance(groups, Product) else [groups]
    if any(isinstance(each, str) for each in lists):
        return "G"
    return f"{prod(each.d if isinstance(each, Integers) else len(each) for each in lists):,}"


def _parse_column(text: str) -> Any:
    from discreet.sources.events.group_spelling import parse_by
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
    from discreet.sources.events.group_spelling import parse_groups

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
        if ("://" in text and not is_remote(text)) or text.partition(":")[0] == STANDARD:
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


def prepare_events(
    file: Input,
    user: str,
    item: str | None,
    adjacency: str,
    options: dict[str, str | None],
    terms: Discovered | None,
    grouping: dict[str, Any],
    out: str | None,
) -> Callable[[Any], Any]:
    """Opens the events in a file, or in the database of the options; all that is given is checked before.

    `terms` says how items are found where there is no list of them.
    """
    if item is None:
        raise InvalidValueError("item must be given with user: the column that says what the user did it to")
    domain, most = options["domain"], options["max_items_per_user"] if terms is None else None
    _check_table(connect := options["connect"], options["name"])
    items, clip, groups = _parse_items(domain, terms), _parse_clip(options["clip"]), parse_grouping(grouping)
    inputs = [each for name in ([connect] if file is None else input_files(file)) for each in _list_files(name)]
    lists = {"domain": [] if domain is None else [domain], "groups": grouping["groups"] or []}
    check_out(out, {"events": inputs, **{role: _list_public_files(texts) for role, texts in lists.items()}})
    return lambda path: events(
        connect if path is None else path, user=user, item=item, domain=items, label=options["label"],
        where=options["where"], value=options["value"], clip=clip, resolution=options["resolution"],
        adjacency=adjacency, name=options["name"], escape=options["escape"], encoding=options.get("encoding"),
        delimiter=_parse_character(options["delimiter"]),
        max_items_per_user=None if most is None else parse_count(most, "max_items_per_user"), **groups,
    )  # fmt: skip


def _check_table(connect: str | None, name: str | None) -> None:
    """Raises unless the URL of a database and the name of a table are both given, or neither."""
    if connect is None:
        if name is not None:
            raise InvalidValueError("name must be left out without connect: it is the table of a database")
        return
    if not _is_url(connect):
        raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
    if not name:
        raise InvalidValueError("name must be given with connect: the table of the events in the database")


def _parse_items(domain: str | None, terms: Discovered | None) -> Any:
    """The list of items, or how they are found: one of the two must be given."""
    if domain is not None and terms is not None:
        raise InvalidValueError("domain must be left out with discover: the items come from a list, or they are found")
    if domain is not None:
        return _parse_domain(domain)
    if terms is None:
        raise InvalidValueError(
            "domain must be given with user: a public list of items, such as movies.csv:movie_id or integers:0:999, "
            "because a list made from the events would tell what somebody touched; without a list, give discover with "
            "a delta (docs/discovery.md)"
        )
    return terms


def _parse_domain(text: str) -> str | Integers:
    if _is_url(text) and not text.startswith(STRINGS):
        raise InvalidValueError(
            "domain must be FILE:COLUMN, connect:TABLE.COLUMN, integers:LO:HI or strings:ALPHABET:MAX, not the URL of "
            "a database"
        )
    if text.partition(":")[0] == STANDARD:
        raise InvalidValueError(
            "domain must be FILE:COLUMN, integers:LO:HI or strings:ALPHABET:MAX: standard input is for FILE alone"
        )
    return parse_domain(text)


def _parse_clip(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    low, comma, high = text.partition(",")
    if not comma or "," in high:
        raise InvalidValueError(f"clip must be two numbers LOW,HIGH such as 0,5, not {quote(text)}")
    return low, high


def _parse_character(text: str | None) -> str | None:
    """A character as the shell has it; a tab is hard to type there."""
    return "\t" if text == r"\t" else text


def _is_url(text: str) -> bool:
    return "://" in text and not is_remote(text)


def _list_public_files(lists: Sequence[str]) -> list[str]:
    """The files behind public lists, each of which may end with a column."""
    return [file for each in lists for file in _list_files(each) + _list_files(each.rpartition(":")[0])]


def _list_files(table: str | None) -> list[str]:
    """The files behind a path, a pattern of paths or the URL of a database in a file."""
    if table is None:
        return []
    if is_remote(table):
        return []
    path = table.partition("://")[2].partition("?")[0] if _is_url(table) else table
    return [path, *list_files(path)]
