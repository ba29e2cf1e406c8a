"""What a ledger holds of a chart, and the periods that are due."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from discreet.errors import InvalidValueError, quote
from discreet.grouped_release import AnyRelease
from discreet.ledger.account import Entry
from discreet.publish.charts_file import Chart
from discreet.sketches import Sketch
from discreet.sources.events.local_days import open_zone
from discreet.sources.events.periods import UNITS, Unit, list_periods


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


def find_due_periods(chart: Chart, moment: datetime) -> list[str | None]:
    """The periods that are to have a release at a moment, in order: from the first that is said, or the last alone.

    A chart without periods has one release, whose period is None.
    """
    unit = chart.unit
    if unit is None:
        return [None]
    last = find_last_ended(unit, moment, chart.get("zone"))
    first = chart.first or last
    if first > last:
        return []
    return [str(each) for each in list_periods(unit.name, unit.spell(first), unit.spell(last))]


def find_last_ended(unit: Unit, moment: datetime, zone: str | None) -> date:
    """The first day of the period that ended last before a moment, on the calendar of a zone, by default UTC."""
    today = moment.astimezone(UTC if zone is None else open_zone(zone)).date()
    return first_day(unit, first_day(unit, today) - timedelta(1))


def find_next_end(unit: Unit, first: date) -> date:
    """The first day after a period, by its first day."""
    return unit.last_day(first) + timedelta(1)


def first_day(unit: Unit, day: date) -> date:
    """The first day of the period that a day is in."""
    # What a unit spells it also reads.
    return unit.parse(unit.spell(day)) or day


def check_is_past(moment: datetime, otherwise: str, unless: str = "") -> None:
    """Raises where a moment is to come: periods that end before it may not be over.

    Parameters
    ----------
    moment
        What `as_of` says.
    otherwise, unless
        What would happen to a period that is not over, and with which options the moment may be to come.
    """
    if moment > datetime.now(UTC):
        raise InvalidValueError(
            f"as_of must not be after now{unless}, not {moment.isoformat()}: a period that is not over {otherwise}"
        )


def parse_moment(text: str | None) -> datetime:
    """The moment that a text stands for: a day, at its begin, or a time, in UTC unless it has a zone; None is now."""
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(
            f"as_of must be a day or a time such as 2026-11-01 or 2026-11-01T06:00+01:00, not {quote(text)}"
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
