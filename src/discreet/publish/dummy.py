"""A rehearsal: the whole site from made-up events of the same columns, without the data and without the ledger.

What is made up follows from the charts file and from public lists alone. Made-up events all meet the condition and are
all of the period, so that neither is tried; `discreet check` does that.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError
from discreet.publish.chart_page import ChartPages
from discreet.publish.chart_source import has_lists_in_database, list_public_options, list_terms, open_stand_in
from discreet.publish.charts_file import Chart, ChartsFile, name_place
from discreet.publish.due_periods import find_due_periods
from discreet.publish.editions import Edition
from discreet.publish.price import list_columns, make_empty_table
from discreet.publish.site import Site
from discreet.release.topk import top_k
from discreet.sources.base import GroupedSource
from discreet.sources.discovered import UnlistedGroups
from discreet.sources.events.group_columns import read_by
from discreet.sources.events.periods import UNITS
from discreet.sources.events.ranges import Integers

_USERS, _ROWS, _ITEMS, _PERIODS = 20_000, 60_000, 5_000, 3
"""How many users and rows are made up, of how many items at most, for how many periods."""


def make_dummy_site(file: ChartsFile, moment: datetime) -> Site:
    """A site of made-up releases, for the periods that would be due if nothing was released before."""
    charts = []
    for chart in file.charts:
        with name_place(f"{file.path.name}, chart {chart.id!r}: "):
            periods = find_due_periods(chart, moment)[-_PERIODS:]
            editions = [_make_edition(chart, period, seed) for seed, period in enumerate(periods)]
        if editions:
            charts.append(ChartPages(chart, editions))
    return Site(file, charts, None)


def _make_edition(chart: Chart, period: str | None, seed: int) -> Edition:
    rng = np.random.default_rng([seed, *chart.id.encode()])
    source = open_stand_in(chart, _make_events(chart, rng), chart.get("label"))
    terms = list_terms(chart)
    terms.pop("pad_to")
    return Edition(period, top_k(source, **terms, rng=rng))


def _make_events(chart: Chart, rng: np.random.Generator) -> Any:
    """A table of rows in which some items, and some groups, are more frequent than others."""
    import pyarrow as pa

    if has_lists_in_database(chart):
        raise InvalidValueError("domain and groups must be in files for a rehearsal, which opens no database")
    given, empty = chart.settings["events"], open_stand_in(chart, make_empty_table(chart), None)
    items, users = _list_items(chart, empty), rng.integers(0, _USERS, _ROWS)
    columns = {given["item"]: _pick(items, rng), given["user"]: [f"user {each}" for each in users]}
    if isinstance(empty, GroupedSource | UnlistedGroups):
        columns |= _make_groups(chart, empty.keys, users, rng)
    if given.get("value") is not None:
        low, high = (float(each) for each in given["clip"])
        columns[given["value"]] = rng.uniform(low, high, _ROWS).round(2).tolist()
    return pa.table({name: pa.array(columns[name], kind) for name, kind in list_columns(chart).items()})


def _list_items(chart: Chart, empty: Any) -> list[str]:
    """Some items of the domain, or made-up ones where it has to be found."""
    domain = list_public_options(chart)["domain"]
    if chart.get("discover") is not None:
        return [_spell_item(chart, number) for number in range(50)]
    if isinstance(domain, Integers):
        return [str(domain.lo + number) for number in range(min(domain.d, _ITEMS))]
    one = empty.members[0] if isinstance(empty, GroupedSource) else empty
    return [str(item) for item in one.every_item()[:_ITEMS]]


def _spell_item(chart: Chart, number: int) -> str:
    kind = chart.get("discover").get("kind") or "string"
    spelt = {"integer": str(number), "date": f"2026-01-{number % 28 + 1:02}", "boolean": str(number % 2 == 0)}
    return spelt.get(kind, f"item {number + 1}")


def _make_groups(chart: Chart, keys: Any, users: Any, rng: np.random.Generator) -> dict[str, list[str]]:
    """A group for each row, mostly the one that is the user's own; of a period its first day."""
    columns = read_by(list_public_options(chart)["by"])
    home = np.where(rng.random(len(users)) < 0.9, users, rng.integers(0, _USERS, len(users))) % len(keys)
    parts = [key if len(columns) > 1 else (key,) for key in keys]
    return {
        column.column: [_spell_group(column, parts[group][place]) for group in home]
        for place, column in enumerate(columns)
    }


def _spell_group(column: Any, key: Any) -> str:
    unit = getattr(column, "unit", None)
    first = None if unit is None else UNITS[unit].parse(key)
    return str(key) if first is None else first.isoformat()


def _pick(items: list[str], rng: np.random.Generator) -> list[str]:
    """A row's items, of which the first in a shuffled list are the most frequent."""
    weights = 1.0 / np.arange(3, len(items) + 3) ** 1.1
    chosen = rng.choice(len(items), _ROWS, p=weights / weights.sum())
    shuffled = np.random.default_rng(len(items)).permutation(len(items))
    return [items[shuffled[place]] for place in chosen]
