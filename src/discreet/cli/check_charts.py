"""The checks of a charts file: one for each chart, of the period that would be released next. NOT private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidValueError
from discreet.sources.events.check import check_events
from discreet.sources.events.check_report import Check


def is_charts_file(file: Any) -> bool:
    """Whether FILE is one charts file, by its name."""
    return isinstance(file, str) and file.endswith(".toml")


def check_charts(file: str, as_of: str | None, options: Mapping[str, Any], notes: list[str]) -> dict[str, Check]:
    """The check of each chart of a file, by its id; its ledger is not opened. None of the options may be given.

    What there is to say about the sources is added to `notes`.
    """
    from discreet.publish.chart_source import open_chart_source
    from discreet.publish.charts_file import name_place, read_charts
    from discreet.publish.editions import check_is_past, find_due_periods, parse_moment

    for name, given in options.items():
        if given:
            raise InvalidValueError(f"{name} must be left out with a charts file, which says it")
    moment = parse_moment(as_of)
    check_is_past(moment, "has rows to come, which no check has seen")
    charts, found = read_charts(file), {}
    for chart in charts.charts:
        # Of a chart whose first period is yet to end, that period.
        period = (find_due_periods(chart, moment) or [chart.get("from")])[-1]
        with name_place(f"{charts.path.name}, chart {chart.id!r}: "):
            source = open_chart_source(chart, period)
            found[chart.id] = check_events(source)
            notes += [f"{chart.id}: {note}" for note in source.notes()]
    return found
