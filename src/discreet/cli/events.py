"""The source of events that the options of `discreet select --user` describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.cli.groups import parse_grouping
from discreet.cli.options import parse_count
from discreet.cli.output import check_out
from discreet.cli.stdin import STANDARD, Input, input_files
from discreet.errors import InvalidValueError, quote
from discreet.sources.discovered import Discovered
from discreet.sources.events.domain import parse_domain
from discreet.sources.events.location import Location, has_other_scheme
from discreet.sources.events.ranges import STRINGS, Integers
from discreet.sources.events.source import events


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
    table = Location.parse(connect if file is None else input_files(file))
    if out is not None:
        lists = [Location.parse_list(text, "groups") for text in grouping["groups"] or []]
        located = {"events": [table], "domain": [items], "groups": lists}
        check_out(
            out, {role: [file for each in given for file in _list_files(each)] for role, given in located.items()}
        )
    return lambda path: events(
        table if path is file else path, user=user, item=item, domain=items, label=options["label"],
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
    if not has_other_scheme(connect):
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


def _parse_domain(text: str) -> Location | Integers:
    if has_other_scheme(text) and not text.startswith(STRINGS):
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


def _list_files(given: Any) -> list[str]:
    """Return the paths and files of a location on this machine, those of a database in a file among them."""
    if not isinstance(given, Location):
        return []
    if given.database is not None:
        return [given.database.partition("://")[2].partition("?")[0]]
    return [each.text for path in given.paths if not path.is_remote for each in (path, *path.files)]
