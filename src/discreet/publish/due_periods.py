"""Which periods of a chart are over, by the clock of its zone: those alone are published."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from discreet.errors import InvalidValueError, quote
from discreet.publish.charts_file import Chart
from discreet.sources.events.periods import Unit, list_periods, open_zone


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
