"""The arguments of `discreet.events` and `top_k` for a chart of a charts file and a period."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qsl

from discreet.errors import InvalidValueError, MissingExtraError, quote, refuse_column
from discreet.publish.charts_file import VARIABLE, Chart, expand_variables, is_database
from discreet.release.statement import ADDS_ONE, Question
from discreet.sources.discovered import discovered
from discreet.sources.events.connect import open_table
from discreet.sources.events.csv_files import DELIMITERS
from discreet.sources.events.dialects.base import dialect_named
from discreet.sources.events.domain import parse_domain
from discreet.sources.events.engine import ask
from discreet.sources.events.group_columns import Product, product, read_by
from discreet.sources.events.group_keys import parse_by, parse_groups
from discreet.sources.events.location import PREFIX, FilePath, Location
from discreet.sources.events.periods import OnePeriod, period_column
from discreet.sources.events.scoring import Steps
from discreet.sources.events.source import events

SPARK = "pyspark://"
"""The scheme of Spark in `connect`."""

_COLUMNS = ("user", "item", "value", "resolution", "max_items_per_user")
_TEXT_FORMAT = ("delimiter", "escape", "encoding", "date_format", "decimal", "thousands")
_LIST_FORMAT = ("delimiter", "encoding")
"""Keys of a chart's events and of its lists that are arguments of `discreet.events` as they are."""


def open_chart_source(chart: Chart, period: str | None) -> Any:
    """Return the source of one release of a chart: its events, of one period if the chart has periods."""
    options = {name: chart.settings["events"].get(name) for name in (*_COLUMNS, "where", "name", *_TEXT_FORMAT)}
    table, public = find_table(chart), list_public_options(chart)
    if not isinstance(table, str | list):
        # A DataFrame is the table already, and a list beside it is another one.
        options["name"], domain = None, public["domain"]
        if isinstance(domain, Location) and domain.beside is not None:
            frame = _open_spark_table(_find_database(chart), str(domain.beside))
            shown = _name_columns(chart, domain, frame.columns)
            public["domain"] = frame.select(*(frame[column].alias(name) for name, column in shown.items()))
    elif isinstance(table, str) and options["name"] is not None:
        table = Location(database=table, argument="connect")
    return events(table, **options, **public, during=find_period(chart, period))


def fetch_domain(chart: Chart, most: int) -> Any:
    """Return the first items of a domain in a database, and their labels, as an Arrow table; None for other domains.

    No other table of the database is opened. The first column is that of the items.
    """
    location = list_public_options(chart)["domain"]
    if not isinstance(location, Location) or location.beside is None:
        return None
    table, url = location.beside, _find_database(chart)
    if url.startswith(SPARK):
        opened = open_table(_open_spark_table(url, str(table)), None, "domain")
    else:
        named = (table.schema, table.table) if table.schema else table.table
        opened = open_table(Location.parse(url), named, "domain")
    try:
        shown = _name_columns(chart, location, opened.table.columns)
        items = opened.table.select(**{name: opened.table[column] for name, column in shown.items()})
        return ask(opened.engine, "reading the domain", items.order_by(next(iter(shown))).limit(most).to_pyarrow)
    finally:
        opened.close()


def _name_columns(chart: Chart, domain: Location, columns: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a public list by the names that the source expects: that of the items, and the label."""
    label = chart.get("label")
    for argument, name in (("domain", domain.column), ("label", label)):
        if name is not None and name not in columns:
            refuse_column(argument, name, columns, private=False)
    return {chart.settings["events"]["item"]: domain.column, **({} if label is None else {label: label})}


def open_stand_in(chart: Chart, table: Any, label: str | None, domain: Any = None) -> Any:
    """Return the source of a chart on another table, which has the columns of the events.

    Every row of the table counts, without a condition or a period. The source tells what a release costs, and reads
    nothing of the events. `domain` takes the place of a domain in a database.
    """
    public = list_public_options(chart)
    if domain is not None:
        public["domain"] = domain
    lists = [each for each in (public["domain"], public.get("groups")) if isinstance(each, Location)]
    is_text = any(path.ending in DELIMITERS for each in lists for path in each.paths)
    options = {name: chart.settings["events"].get(name) for name in (*_COLUMNS, *(["escape"] if is_text else []))}
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
        **{f"domain_{name}": chart.get(f"domain_{name}") for name in _LIST_FORMAT},
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
            **{f"groups_{name}": by.get(f"groups_{name}") for name in _LIST_FORMAT},
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


def find_table(chart: Chart) -> Any:
    """Return the files of the events, the URL of their database, or the DataFrame of their table on Spark."""
    given = chart.settings["events"]
    if given.get("table") is not None:
        named = given["table"] if isinstance(given["table"], list) else [given["table"]]
        paths = list(map(chart.find_path, named))
        return paths if len(paths) > 1 else paths[0]

    url = _find_database(chart)
    return _open_spark_table(url, given.get("name")) if url.startswith(SPARK) else url


def _find_database(chart: Chart) -> str:
    """Return the URL of the database of the events, with the variables of the environment in it."""
    url = expand_variables(chart.settings["events"]["connect"], "connect")
    if not is_database(url):
        raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
    scheme, _, rest = url.partition("://")
    # The path of a database file is relative to the charts file, like all others.
    return f"{scheme}://{os.path.join(chart.folder, rest)}" if dialect_named(scheme).is_file else url


def _open_spark_table(url: str, name: Any) -> Any:
    """Return a table of Spark's catalog as a DataFrame, whose plan is checked as that of any other DataFrame.

    The URL is pyspark:// and settings of the session, such as pyspark://?spark.master=local[4]. The session is that of
    the process, and stays for the next chart.
    """
    if not name:
        raise InvalidValueError("name must be given, the table to read, with connect")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("connect needs Spark: pip install 'pyspark>=3.5,<5'") from None
    place, _, query = url.removeprefix(SPARK).partition("?")
    if place:
        raise InvalidValueError("connect must be pyspark:// or pyspark://?SETTING=VALUE&..., with nothing before the ?")
    builder = SparkSession.builder
    for setting, value in parse_qsl(query):
        builder = builder.config(setting, value)
    session = ask("Spark", "starting", builder.getOrCreate)
    return ask("Spark", "opening the table", lambda: session.table(name), "a table of this name")


def name_source(chart: Chart) -> str:
    """Return the kind of source of a chart, as a statement names it."""
    given = chart.settings["events"]
    if given.get("table") is not None:
        first = given["table"][0] if isinstance(given["table"], list) else given["table"]
        ending = FilePath.parse(first).ending or ""
        return {".parquet": "parquet", ".csv": "csv", ".tsv": "csv"}.get(
            ending, "json" if "json" in ending else "other"
        )
    # A variable may hold the whole URL. Where it is not set, as for a site that is made anew, the kind is unknown.
    url = re.sub(VARIABLE, lambda found: os.environ.get(found[1], ""), str(given.get("connect")))
    engine = url.partition(":")[0]
    schemes = {"postgres": "postgresql", "mysql": "mariadb", "pyspark": "spark", "databricks": "spark"}
    same = ("postgresql", "mariadb", "clickhouse", "datafusion", "duckdb", "sqlite")
    return engine if engine in same else schemes.get(engine, "other")


def describe_question(chart: Chart, period: str | None) -> Question:
    """Return the arguments of `events` for a chart that its releases do not record, without the place of the events."""
    given, public, taken = chart.settings["events"], list_public_options(chart), find_period(chart, period)
    steps = Steps.parse(given.get("value"), public["clip"], given.get("resolution"))
    columns = [] if public.get("by") is None else read_by(public["by"])
    return Question(
        where=given.get("where"),
        period=None if taken is None else taken.spelling,
        has_zone=any(getattr(each, "zone", None) for each in [*columns, *([] if taken is None else [taken.column])]),
        max_items_per_user=given.get("max_items_per_user"),
        sensitivity=ADDS_ONE if steps is None else steps.sensitivity,
        grid=Fraction(1) if steps is None else steps.resolution,
    )
