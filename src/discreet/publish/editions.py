"""What a ledger holds of a chart: the release of each period, under request ids such as songs/2026-10.

A charge whose release was never stored is spent, and the period is charged again as songs/2026-10/2: once, because what
fails every time would else spend all of a budget. A period has one stored release at most, and it is that, whatever the
chart says by now. A charge is of a chart if its `edition` says so, which only publishing writes. Request ids and
purposes are the callers' own texts and are never parsed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date

from discreet.ledger.account import Entry
from discreet.publish.charts_file import Chart
from discreet.release.grouped import AnyRelease
from discreet.release.sketch import Sketch
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
        return None if self.entry is None or self.entry.edition is None else self.entry.edition["settings"]

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
    charged
        The period of each charge for the chart, by its request id.
    other_ids
        Request ids that were charged for something else.
    """

    editions: tuple[Edition, ...] = ()
    charged: dict[str, str | None] = field(default_factory=dict)
    other_ids: frozenset[str] = field(default_factory=frozenset)

    @property
    def periods(self) -> set[str | None]:
        """The periods that have a release."""
        return {edition.period for edition in self.editions}

    def next_request_id(self, chart: str, period: str | None) -> str:
        """Return the first id of a period not charged yet: after a charge without a release, one with a number."""
        base, tried = name_request(chart, period), 1
        while (found := base if tried == 1 else f"{base}/{tried}") in self.charged:
            tried += 1
        return found

    def count_lost(self, period: str | None) -> int:
        """Return how often a period was charged, where it has no release."""
        return 0 if period in self.periods else list(self.charged.values()).count(period)

    def find_other(self, chart: str, period: str | None) -> str | None:
        """Return the next request id of a period if it was charged for something else, or None."""
        wanted = self.next_request_id(chart, period)
        return wanted if wanted in self.other_ids else None


def name_request(chart: str, period: str | None) -> str:
    """Return the request id of the first attempt at a period."""
    return chart if period is None else f"{chart}/{period}"


def describe_purpose(chart: Chart, period: str | None) -> str:
    """Return the purpose of a charge, for people."""
    return chart.title if period is None else f"{chart.title}, {period}"


def name_edition(chart: Chart, period: str | None) -> dict[str, str | None]:
    """Return what a charge says for `read_record`: the chart, the period, and the fingerprint of the settings."""
    return {"chart": chart.id, "period": period, "settings": chart.fingerprint}


def read_record(entries: Iterable[Entry], chart: Chart) -> ChartRecord:
    """Return what the entries of a ledger hold of a chart."""
    editions, charged, others = [], {}, set()
    for entry in entries:
        if entry.request_id is None:
            continue
        if entry.edition is None or entry.edition["chart"] != chart.id:
            others.add(entry.request_id)
            continue
        period, release = entry.edition["period"], entry.release
        charged[entry.request_id] = period
        if release is not None and not isinstance(release, Sketch):
            editions.append(Edition(period, release, entry))
    return ChartRecord(tuple(sorted(editions, key=lambda each: each.first)), charged, frozenset(others))


def parse_period(period: str | None) -> date | None:
    """The first day of a period of any length, None where it is none."""
    return next((day for unit in UNITS.values() if (day := unit.parse(period)) is not None), None)
