"""The arguments of `discreet.events` and `top_k` for a chart of a charts file and a period."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.publish.charts_file import Chart
from discreet.sources.discovered import discovered
from discreet.sources.events.csv_files import DELIMITERS
from discreet.sources.events.dialects.base import dialect_named
from discreet.sources.events.domain import parse_domain
from discreet.sources.events.group_columns import Product, product
from discreet.sources.events.group_keys import parse_by, parse_groups
from discreet.sources.events.location import PREFIX, FilePath, Location
from discreet.sources.events.periods import OnePeriod, period_column
from discreet.sources.events.source import events

_COLUMNS = ("user", "item", "value", "resolution", "max_items_per_user")
_TEXT_FORMAT = ("delimiter", "escape", "encoding")
"""Keys of a chart's events that are arguments of `discreet.events` as they are."""


def open_chart_source(chart: Chart, period: str | None) -> Any:
    """Return the source of one release of a chart: its events, of one period if the chart has periods."""
    options = {name: chart.settings["events"].get(name) for name in (*_COLUMNS, "where", "name", *_TEXT_FORMAT)}
    return events(find_table(chart), **options, **list_public_options(chart), during=find_period(chart, period))


def open_stand_in(chart: Chart, table: Any, label: str | None) -> Any:
    """Return the source of a chart on another table, which has the columns of the events.

    Every row of the table counts, without a condition or a period. The source tells what a release costs, and reads
    nothing of the events.
    """
    public = list_public_options(chart)
    lists = [each for each in (public["domain"], public.get("groups")) if isinstance(each, Location)]
    is_text = any(path.ending in DELIMITERS for each in lists for path in each.paths)
    options = {name: chart.settings["events"].get(name) for name in (*_COLUMNS, *(_TEXT_FORMAT if is_text else ()))}
    return events(table, **options, **{**public, "label": label})


def has_lists_in_database(chart: Chart) -> bool:
    """Return True if a public list of a chart is a table beside its events."""
    public = list_public_options(chart)
    groups = public.get("groups")
    lists = [public["domain"], *(groups.lists if isinstance(groups, Product) else [groups])]
    located = [each for each in lists if isinstance(each, Location)]
    return any(each.beside or (each.paths and each.paths[0].text.startswith(PREFIX)) for each in located)


def list_terms(chart: Chart) -> dict[str, Any]:
    """Return the arguments of `top_k` without the source and those of a ledger."""
    terms = {name: chart.get(name) for name in ("k", "epsilon", "counts", "split", "shortfall", "pad_to")}
    return {**terms, "mechanism": chart.mechanism}


def list_public_options(chart: Chart) -> dict[str, Any]:
    """Return the arguments of `discreet.events` that name public lists, and those that belong to them."""
    terms, clip, by = chart.get("discover"), chart.settings["events"].get("clip"), chart.get("by")
    if terms is not None:
        # The warning about a large delta is printed with the price.
        with warnings.catch_warnings(action="ignore"):
            domain: Any = discovered(**terms)
    else:
        given = chart.get("domain")
        domain = given if isinstance(given, list) else _find_list(chart, parse_domain(given))
    public = {
        "domain": domain,
        "label": chart.get("label"),
        "clip": None if clip is None else tuple(clip),
        "adjacency": chart.get("adjacency") or "add-remove",
    }
    if by is not None:
        # Groups are those of one column, all combinations of several, or those in a file that has several.
        named, groups = by["column"], by["groups"]
        columns = [parse_by(each) for each in ([named] if isinstance(named, str) else named)]
        if any(isinstance(each, list) for each in columns):
            raise InvalidValueError("column must be a list of texts where several columns make a group")
        units = [getattr(each, "unit", None) for each in columns]
        if isinstance(groups, str):
            groups = _find_list(chart, parse_groups(groups, units))
        elif len(units) > 1:
            if len(groups) != len(units):
                raise InvalidValueError(
                    f"groups must be a file, or a list with one list for each of the {len(units)} columns"
                )
            groups = product(
                *(
                    _find_list(chart, parse_groups(each, [unit])) if isinstance(each, str) else each
                    for each, unit in zip(groups, units, strict=True)
                )
            )
        public |= {
            "by": columns[0] if len(columns) == 1 else columns,
            "groups": groups,
            "each_user": by["each_user"],
            "max_groups_per_user": by.get("max_groups_per_user"),
        }
    return public


def _find_list(chart: Chart, given: Any) -> Any:
    """Return a public list; the path of its file is relative to the charts file."""
    location = Location.parse_list(given, "groups") if isinstance(given, str) else given
    if not isinstance(location, Location) or location.beside is not None:
        return location
    if location.database is not None:
        scheme = location.database.partition(":")[0]
        raise InvalidValueError(f"a public list must be in a file, not at a URL like {quote(scheme)}")
    path = location.paths[0].text
    return location if path.startswith(PREFIX) else replace(location, paths=(FilePath.parse(chart.find_path(path)),))


def find_period(chart: Chart, period: str | None) -> OnePeriod | None:
    """Return the period of the events of a release; None for a chart that is released once."""
    if period is None or chart.unit is None:
        return None
    return period_column(chart.unit.name, chart.get("time"), chart.get("zone")).only(period)


def find_table(chart: Chart) -> str | list[str]:
    """Return the files of the events, or the URL of their database with the variables of the environment in it."""
    given = chart.settings["events"]
    if given.get("table") is not None:
        named = given["table"] if isinstance(given["table"], list) else [given["table"]]
        if any(_is_database(each) for each in named):
            raise InvalidValueError("table must be a file; the URL of a database is connect")
        paths = list(map(chart.find_path, named))
        return paths if len(paths) > 1 else paths[0]

    def find_variable(found: re.Match[str]) -> str:
        name = found[1]
        if not os.environ.get(name):
            raise InvalidValueError(f"connect must name variables of the environment that are set, and {name} is not")
        return os.environ[name]

    url = re.sub(r"\$\{(\w+)\}", find_variable, given["connect"])
    if not _is_database(url):
        raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
    scheme, _, rest = url.partition("://")
    # The path of a database file is relative to the charts file, like all others.
    return f"{scheme}://{os.path.join(chart.folder, rest)}" if dialect_named(scheme).is_file else url


def _is_database(given: Any) -> bool:
    location = Location.parse(given)
    return location is not None and location.database is not None
