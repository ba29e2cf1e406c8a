"""What a ledger holds of a chart: the release of each period, under request ids such as songs/2026-10.

A charge whose release was never stored is spent, and the period is charged again as songs/2026-10/2: once, because what
fails every time would else spend all of a budget. A period has one stored release at most, and it is that, whatever the
chart says by now. Request ids are anybody's to choose: what was not charged for a chart is never shown as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from discreet.grouped_release import AnyRelease
from discreet.ledger.account import Entry
from discreet.publish.charts_file import Chart
from discreet.sketches import Sketch
from discreet.sources.events.periods import UNITS


@dataclass(frozen=True)
class Edition:
    """One released period of a chart.

    Attributes
    ----------
    period
        The period, None where the chart has none.
    release
        What was released.
    entry
        Its charge; None where it is made up.
    """

    period: str | None
    release: AnyRelease
    entry: Entry | None = None

    @property
    def fingerprint(self) -> str | None:
        """That of the chart at the time, None where it is not known."""
        return None if self.entry is None else _find_fingerprint(self.entry)

    @property
    def first(self) -> date:
        """The first day of the period, by which editions are sorted."""
        return parse_period(self.period) or date.min


@dataclass(frozen=True)
class ChartRecord:
    """What a ledger holds of one chart.

    Attributes
    ----------
    editions
        The released periods, the oldest first.
    request_ids
        All request ids that were charged for the chart.
    other_ids
        Request ids that look like them, and were charged for something else.
    """

    editions: tuple[Edition, ...] = ()
    request_ids: frozenset[str] = field(default_factory=frozenset)
    other_ids: frozenset[str] = field(default_factory=frozenset)

    @property
    def periods(self) -> set[str | None]:
        """The periods that have a release."""
        return {edition.period for edition in self.editions}

    def next_request_id(self, chart: str, period: str | None) -> str:
        """The first id of a period that is free: after a charge without a release, one with a number behind it."""
        base, tried = name_request(chart, period), 1
        while (found := base if tried == 1 else f"{base}/{tried}") in self.request_ids:
            tried += 1
        return found

    def count_lost(self, chart: str, period: str | None) -> int:
        """How often a period was charged, where it has no release."""
        if period in self.periods:
            return 0
        return sum(_match_request(each, chart) == (period,) for each in self.request_ids)

    def find_other(self, chart: str, period: str | None) -> str | None:
        """A request id of a period that was charged for something else, None where there is none."""
        return min((each for each in self.other_ids if _match_request(each, chart) == (period,)), default=None)


def name_request(chart: str, period: str | None) -> str:
    """The request id of the first attempt at a period."""
    return chart if period is None else f"{chart}/{period}"


def describe_purpose(chart: Chart, period: str | None) -> str:
    """What a charge says that it is for, with the fingerprint of the chart's settings, which an `Edition` reads."""
    return f"{chart.title}{'' if period is None else f', {period}'} (settings {chart.fingerprint})"


def read_record(entries: Iterable[Entry], chart: Chart) -> ChartRecord:
    """What the entries of a ledger hold of a chart."""
    editions, used, others = [], set(), set()
    for entry in entries:
        found = _match_request(entry.request_id, chart.id)
        if found is None:
            continue
        if _find_fingerprint(entry) is None:
            others.add(str(entry.request_id))
            continue
        used.add(str(entry.request_id))
        release = entry.release
        if release is not None and not isinstance(release, Sketch):
            editions.append(Edition(found[0], release, entry))
    return ChartRecord(tuple(sorted(editions, key=lambda each: each.first)), frozenset(used), frozenset(others))


def _find_fingerprint(entry: Entry) -> str | None:
    """The fingerprint of settings that `describe_purpose` wrote into a charge; None where it was not charged so."""
    found = re.search(r"\(settings ([0-9a-f]{8})\)\Z", entry.purpose or "")
    return None if found is None else found[1]


def _match_request(request_id: str | None, chart: str) -> tuple[str | None] | None:
    """The period that a request id names, in a tuple; None where it is not of the chart."""
    parts: list[Any] = (request_id or "").split("/")
    if parts[0] != chart:
        return None
    # A number of up to three digits counts attempts: no period is written so.
    if len(parts) > 1 and re.fullmatch("[1-9][0-9]{0,2}", parts[-1]):
        parts.pop()
    if len(parts) > 2 or (len(parts) == 2 and parse_period(parts[1]) is None):
        return None
    return (parts[1] if len(parts) == 2 else None,)


def parse_period(period: str | None) -> date | None:
    """The first day of a period of any length, None where it is none."""
    return next((day for unit in UNITS.values() if (day := unit.parse(period)) is not None), None)
