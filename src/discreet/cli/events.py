"""The options of events, turned into the arguments of `discreet.events`."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from discreet.cli.options import list_given, parse_choice, parse_count
from discreet.cli.output import check_out, print_doubt
from discreet.cli.stdin import STANDARD, Input
from discreet.errors import InvalidValueError, quote, suggestion
from discreet.publish.options import DiscoveryOptions, EventOptions, GroupOptions, ItemOptions, join_choices
from discreet.sources.base import MANY, ONE, check_each_user, explain_each_user
from discreet.sources.discovered import EXACT, KINDS, METHODS, SPELLINGS, Discovered, discovered
from discreet.sources.events.domain import parse_domain
from discreet.sources.events.group_columns import Product
from discreet.sources.events.group_keys import parse_by, parse_during, parse_groups
from discreet.sources.events.location import Location
from discreet.sources.events.periods import UNITS
from discreet.sources.events.ranges import Integers
from discreet.sources.events.source import events

UNSPENT_DELTA = "1e-8"
"""The delta of the terms of discovery, without --delta, where a command releases no items."""

_NEITHER = "groups must be FILE:COLUMN or FIRST..LAST: neither the URL of a database nor standard input"


def prepare_events(
    file: Input,
    columns: EventOptions,
    items: ItemOptions,
    terms: Discovered | None,
    groups: GroupOptions,
    adjacency: str,
    out: str | None,
) -> Callable[[Any], Any]:
    """Check the options of events and return the function that opens the events, given the path of FILE.

    Parameters
    ----------
    file
        FILE; it names nothing where the events are in a database.
    columns, items, groups, adjacency
        The options.
    terms
        The terms of partition selection, which take the place of a list of items.
    out
        The file to write to, which must not be one of the inputs.
    """
    connect, item, most = columns.connect, columns.item, columns.max_items_per_user
    if item is None:
        raise InvalidValueError("item must be given with user: the column that says what the user did it to")
    if connect is None and columns.name is not None:
        raise InvalidValueError("name must be left out without connect: it is the table of a database")
    table = file.location
    if connect is not None:
        database = Location.parse(connect)
        if database is None or database.database is None:
            raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
        table = replace(database, argument="connect")
    if connect is not None and not columns.name:
        raise InvalidValueError("name must be given with connect: the table of the events in the database")
    if terms is not None and items.domain is not None:
        raise InvalidValueError("domain must be left out with discover: the items come from a list, or they are found")
    if terms is None and items.domain is None:
        raise InvalidValueError(
            "domain must be given with user: a public list of items, such as movies.csv:movie_id or integers:0:999, "
            "because a list made from the events would tell what somebody touched; without a list, give discover with "
            "a delta (docs/discovery.md)"
        )
    domain: Any = terms
    if items.domain is not None:
        if items.domain.partition(":")[0] == STANDARD:
            raise InvalidValueError(
                "domain must be FILE:COLUMN, integers:LO:HI or strings:ALPHABET:MAX: standard input is for FILE alone"
            )
        domain = parse_domain(items.domain)
        if _is_database(domain):
            raise InvalidValueError(
                "domain must be FILE:COLUMN, connect:TABLE.COLUMN, integers:LO:HI or strings:ALPHABET:MAX, not the URL "
                "of a database"
            )
    clip = None
    if columns.clip is not None:
        clip = tuple(columns.clip.split(","))
        if len(clip) != 2:
            raise InvalidValueError(f"clip must be two numbers LOW,HIGH such as 0,5, not {quote(columns.clip)}")
    grouping = parse_grouping(groups)
    if out is not None:
        listed = grouping.get("groups")
        lists = listed.lists if isinstance(listed, Product) else [listed]
        inputs: dict[str, list[str]] = {"events": [], "domain": [], "groups": []}
        for role, given in [("events", table), ("domain", domain), *(("groups", each) for each in lists)]:
            if isinstance(given, Location) and given.database is not None:
                # The database may be a file.
                inputs[role].append(given.database.partition("://")[2].partition("?")[0])
            elif isinstance(given, Location):
                local = [path for path in given.paths if not path.is_remote]
                inputs[role] += [each.text for path in local for each in (path, *path.files)]
        check_out(out, inputs)
    limit = None if most is None or terms is not None else parse_count(most, "max_items_per_user")
    arguments: dict[str, Any] = {
        "user": columns.user,
        "item": item,
        "domain": domain,
        "label": items.label,
        "where": columns.where,
        "value": columns.value,
        "clip": clip,
        "resolution": columns.resolution,
        "max_items_per_user": limit,
        "adjacency": adjacency,
        "name": columns.name,
        "during": None if columns.during is None else parse_during(columns.during),
        "delimiter": _parse_tab(columns.delimiter),
        "escape": columns.escape,
        "encoding": columns.encoding,
        "date_format": columns.date_format,
        "decimal": columns.decimal,
        "thousands": columns.thousands,
        "domain_delimiter": _parse_tab(items.domain_delimiter),
        "domain_encoding": items.domain_encoding,
        **grouping,
    }

    def open_events(path: Any) -> Any:
        # The warnings about public lists are among the notes.
        with warnings.catch_warnings(action="ignore"):
            return events(path if file.is_standard else table, **arguments)

    # Standard input is read from a copy, whose path is known when it is opened.
    return open_events


def _parse_tab(delimiter: str | None) -> str | None:
    r"""Return a delimiter, a tab for \t, which is hard to type in a shell."""
    return "\t" if delimiter == r"\t" else delimiter


def parse_discovery(options: DiscoveryOptions, max_items_per_user: str | None) -> Discovered | None:
    """Return the terms of partition selection; None without --discover, where no other of its options may be given."""
    if not options.discover:
        for name in list_given(options):
            raise InvalidValueError(f"{name} must be left out without discover: the items come from a list")
        return None
    method = None if options.method is None else parse_choice("method", options.method, METHODS)
    most = None if max_items_per_user is None else parse_count(max_items_per_user, "max_items_per_user")
    kind = parse_choice("kind", options.kind or KINDS[0], KINDS)
    spelling = parse_choice("spelling", options.spelling or EXACT, SPELLINGS)
    delta: Any = options.delta  # None is refused below
    with warnings.catch_warnings(record=True, action="always") as caught:
        terms = discovered(delta, most, options.discovery_epsilon, kind, spelling, method)
    for warning in caught:
        print_doubt(str(warning.message))
    return terms


def allow_no_delta(options: DiscoveryOptions) -> DiscoveryOptions:
    """Return the options with UNSPENT_DELTA if no delta is given, for a command that spends none."""
    return replace(options, delta=options.delta or UNSPENT_DELTA) if options.discover else options


def parse_grouping(options: GroupOptions) -> dict[str, Any]:
    """Return the arguments of `discreet.events` for groups, none of them without --by."""
    if options.by is None:
        for name in list_given(options):
            raise InvalidValueError(f"{name} must be left out without by: there are no groups")
        return {}
    columns = []
    for text in options.by:
        column = parse_by(text) if text.strip() else []
        if isinstance(column, list):
            raise InvalidValueError(f"by must be given once for each column, and names one, not {quote(text)}")
        named, bracket, _ = text.partition("(")
        if isinstance(column, str) and bracket and (hint := suggestion(named, list(UNITS), private=False)):
            raise InvalidValueError(f"by must be a column or {join_choices(UNITS)} of one, not {quote(text)}{hint}")
        columns.append(column)
    groups = _parse_groups(options.groups or [], columns)
    if options.each_user is None:
        # The groups in a file are not counted before the file is read.
        number = _count_groups(groups)
        count = "G" if number is None else f"{number:,}"
        # Quotes belong to Python; a shell would take them away.
        prices = explain_each_user(count, "--max-groups-per-user").replace("'", "")
        raise InvalidValueError(f"--each-user must be given with --by, one or many: {prices}")
    most = options.max_groups_per_user
    return {
        "by": columns[0] if len(columns) == 1 else columns,
        "groups": groups,
        "each_user": parse_choice("each_user", options.each_user, (ONE, MANY)),
        "max_groups_per_user": None if most is None else parse_count(most, "max_groups_per_user"),
        "groups_delimiter": _parse_tab(options.groups_delimiter),
        "groups_encoding": options.groups_encoding,
    }


def parse_groups_per_user(options: GroupOptions) -> int:
    """Return the number of groups of a user that finding items is planned for: 1 without groups.

    A plan needs no events, so --by and --groups may be left out; given, they are checked as for a release.
    """
    most = options.max_groups_per_user
    limit = None if most is None else parse_count(most, "max_groups_per_user")
    if options.by is not None:
        groups = parse_grouping(options)["groups"]
        number = _count_groups(groups, reads=True)
        assert number is not None, "files are read"
        return check_each_user(options.each_user, limit, number)
    if options.groups is not None:
        raise InvalidValueError("groups must be left out without by: it lists the groups of a column")
    if options.each_user is None and limit is None:
        return 1
    each_user = parse_choice("each_user", options.each_user or MANY, (ONE, MANY))
    if each_user == MANY and limit is None:
        raise InvalidValueError("max_groups_per_user must be given with each_user many, or by and groups")
    return check_each_user(each_user, limit, limit or 1)


def _count_groups(groups: Any, reads: bool = False) -> int | None:
    """Return the number of groups in the public lists; None if some are in a file and `reads` is False."""
    number = 1
    for each in groups.lists if isinstance(groups, Product) else [groups]:
        if isinstance(each, Location):
            if not reads:
                return None
            from discreet.sources.events.connect import open_table

            listed = open_table(each, None, "groups")
            try:
                number *= int(listed.table.count().to_pyarrow().as_py())
            finally:
                listed.close()
        else:
            number *= each.d if isinstance(each, Integers) else len(each)
    return number


def _parse_groups(texts: Sequence[str], by: Sequence[Any]) -> Any:
    """Parse the public lists of groups: one for each column, or one file of combinations."""
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
        if text.partition(":")[0] == STANDARD:
            raise InvalidValueError(_NEITHER)
        if not re.search(r"[.:/\\]", text) and not os.path.exists(text):
            raise InvalidValueError(
                f"groups must be FILE:COLUMN or FIRST..LAST, not {quote(text)}: put the list into a file, one group on "
                "each line under a header, and name it FILE:COLUMN"
            )
    groups = parse_groups(texts, [getattr(column, "unit", None) for column in by])
    for each in groups.lists if isinstance(groups, Product) else [groups]:
        if _is_database(each):
            raise InvalidValueError(_NEITHER)
    if len(texts) < columns and not isinstance(groups, Location):
        raise InvalidValueError(
            f"groups must be given once for each by, {columns} times, or once as a file of combinations, "
            f"not as the one range {quote(texts[0])}"
        )
    return groups


def _is_database(given: Any) -> bool:
    """Return True for a list that is named by what looks like the URL of a database."""
    if not isinstance(given, Location):
        return False
    return given.database is not None or any(path.is_other_url for path in given.paths)
