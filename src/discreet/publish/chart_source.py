"""From a chart and a period to the arguments of `discreet.events` and `top_k`: what the keys of the file stand for."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.publish.charts_file import Chart
from discreet.sources.discovered import Discovered, discovered
from discreet.sources.events.csv_files import DELIMITERS
from discreet.sources.events.dialects.base import dialect_named
from discreet.sources.events.domain import parse_domain
from discreet.sources.events.group_columns import Product, product
from discreet.sources.events.group_keys import parse_by, parse_groups
from discreet.sources.events.location import PREFIX, FilePath, Location
from discreet.sources.events.periods import OnePeriod, period_column
from discreet.sources.events.source import events

_AS_THEY_ARE = (
    *("user", "item", "value", "resolution", "max_items_per_user"),
    *("where", "name", "delimiter", "escape", "encoding"),
)


def open_chart_source(chart: Chart, period: str | None) -> Any:
    """The source of one release of a chart: its events, of one period where it has periods."""
    options = {name: chart.settings["events"].get(name) for name in _AS_THEY_ARE}
    return events(find_table(chart), **options, **list_public_options(chart), during=find_period(chart, period))


def open_stand_in(chart: Chart, table: Any, label: str | None) -> Any:
    """The same source on another table, of the events' columns, each row of which is kept and in the period.

    It knows what a release costs, and reads nothing of the events.
    """
    options = {name: chart.settings["events"].get(name) for name in ("user", "item", "value", "resolution")}
    options["max_items_per_user"] = chart.settings["events"].get("max_items_per_user")
    public = list_public_options(chart)
    lists = [each for each in (public["domain"], public.get("groups")) if isinstance(each, Location)]
    if any(path.ending in DELIMITERS for each in lists for path in each.paths):
        options |= {name: chart.settings["events"].get(name) for name in ("delimiter", "escape", "encoding")}
    return events(table, **options, **{**public, "label": label})


def has_lists_in_database(chart: Chart) -> bool:
    """Whether a public list of a chart is a table beside its events."""
    public = list_public_options(chart)
    groups = public.get("groups")
    lists = [public["domain"], *(groups.lists if isinstance(groups, Product) else [groups])]
    located = [each for each in lists if isinstance(each, Location)]
    return any(each.beside or (each.paths and each.paths[0].text.startswith(PREFIX)) for each in located)


def list_terms(chart: Chart) -> dict[str, Any]:
    """The arguments of `top_k` but for the source and what a ledger is told."""
    terms = {name: chart.get(name) for name in ("k", "epsilon", "counts", "split", "pad_to")}
    return {**terms, "mechanism": chart.mechanism}


def list_public_options(chart: Chart) -> dict[str, Any]:
    """The arguments of `discreet.events` that come from public lists, and what belongs to them."""
    clip = chart.settings["events"].get("clip")
    return {
        "domain": _find_domain(chart),
        "label": chart.get("label"),
        "clip": None if clip is None else tuple(clip),
        "adjacency": chart.get("adjacency") or "add-remove",
        **_find_groups(chart),
    }


def find_period(chart: Chart, period: str | None) -> OnePeriod | None:
    """The period whose events a release is of."""
    if period is None or chart.unit is None:
        return None
    return period_column(chart.unit.name, chart.get("time"), chart.get("zone")).only(period)


def find_table(chart: Chart) -> str | list[str]:
    """The files of the events, or the URL of their database with the variables of the environment in it."""
    given = chart.settings["events"]
    if given.get("table") is not None:
        named = given["table"] if isinstance(given["table"], list) else [given["table"]]
        if any(_is_database(each) for each in named):
            raise InvalidValueError("table must be a file; the URL of a database is connect")
        paths = list(map(chart.find_path, named))
        return paths if len(paths) > 1 else paths[0]
    url = re.sub(r"\$\{(\w+)\}", _find_variable, given["connect"])
    if not _is_database(url):
        raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
    scheme, _, rest = url.partition("://")
    # The path of a database file is relative to the charts file, like all others.
    return f"{scheme}://{os.path.join(chart.folder, rest)}" if dialect_named(scheme).is_file else url


def _is_database(given: Any) -> bool:
    location = Location.parse(given)
    return location is not None and location.database is not None


def _find_variable(found: re.Match[str]) -> str:
    name = found[1]
    if not os.environ.get(name):
        raise InvalidValueError(f"connect must name variables of the environment that are set, and {name} is not")
    return os.environ[name]


def _find_domain(chart: Chart) -> Any:
    given, terms = chart.get("domain"), chart.get("discover")
    if terms is not None:
        return _find_discovery(terms)
    return given if isinstance(given, list) else _find_list(chart, parse_domain(given))


def _find_discovery(terms: dict[str, Any]) -> Discovered:
    # What there is to say about a large delta is said with the price.
    with warnings.catch_warnings(action="ignore"):
        return discovered(**terms)


def _find_list(chart: Chart, given: Any) -> Any:
    """A public list, whose file is found from the charts file."""
    location = Location.parse_list(given, "groups") if isinstance(given, str) else given
    if not isinstance(location, Location) or location.beside is not None:
        return location
    if location.database is not None:
        scheme = location.database.partition(":")[0]
        raise InvalidValueError(f"a public list must be in a file, not at a URL like {quote(scheme)}")
    path = location.paths[0].text
    return location if path.startswith(PREFIX) else replace(location, paths=(FilePath.parse(chart.find_path(path)),))


def _find_groups(chart: Chart) -> dict[str, Any]:
    given = chart.get("by")
    if given is None:
        return {}
    named = given["column"]
    columns = [parse_by(each) for each in ([named] if isinstance(named, str) else named)]
    if any(isinstance(each, list) for each in columns):
        raise InvalidValueError("column must be a list of texts where several columns make a group")
    units = [getattr(each, "unit", None) for each in columns]
    most = given.get("max_groups_per_user")
    return {
        "by": columns[0] if len(columns) == 1 else columns,
        "groups": _find_group_list(chart, given["groups"], units),
        "each_user": given["each_user"],
        "max_groups_per_user": most,
    }


def _find_group_list(chart: Chart, given: Any, units: list[str | None]) -> Any:
    """The public list of groups: of one column, of all combinations of several, or a file that has several."""
    if isinstance(given, str):
        return _find_list(chart, parse_groups(given, units))
    if len(units) == 1:
        return given
    if len(given) != len(units):
        raise InvalidValueError(f"groups must be a file, or a list with one list for each of the {len(units)} columns")
    return product(*(_find_member_list(chart, each, unit) for each, unit in zip(given, units, strict=True)))


def _find_member_list(chart: Chart, given: Any, unit: str | None) -> Any:
    return _find_list(chart, parse_groups(given, [unit])) if isinstance(given, str) else given
