"""Read the releases of a chart from a ledger, and find the periods that are due.

A period of a chart is charged under a request id such as songs/2026-10. If a charge has no stored release, its budget
is spent all the same, and the period is charged once more, as songs/2026-10/2. A period has at most one stored release,
and that release stays even if the chart is edited later. The `edition` of a charge names its chart, and only publishing
writes an `edition`. Request ids and purposes are the caller's own text and are never parsed.

A period is due once it is over on the calendar of the chart's time zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from discreet.errors import InvalidValueError
from discreet.language import ENGLISH, Language
from discreet.ledger.account import Entry, Withdrawal
from discreet.ledger.ledger import Ledger
from discreet.publish.charts_file import Chart, ChartsFile
from discreet.publish.site_folder import MARK
from discreet.release.grouped import AnyRelease
from discreet.release.release import Release
from discreet.release.sketch import Sketch
from discreet.sources.events.periods import UNITS, Unit, list_periods, open_zone

NO_ENTRIES = "[]\n"
"""The file `statement.yaml` of a site without releases, which has an entry for each chart that has one."""


@dataclass(frozen=True)
class Edition:
    """One released period of a chart.

    Attributes
    ----------
    period
        The period; None if the chart has no periods.
    release
        The release of the period.
    entry
        Its charge in the ledger; None in a rehearsal.
    earlier
        The charges of the releases of the period that it replaced, the first of them first.
    withdrawal
        The withdrawal of the period; None while its release is shown.
    """

    period: str | None
    release: AnyRelease
    entry: Entry | None = None
    earlier: tuple[Entry, ...] = ()
    withdrawal: Withdrawal | None = None

    @property
    def reason(self) -> str | None:
        """The reason of a correction, None for the first release of a period."""
        return None if self.entry is None or self.entry.edition is None else self.entry.edition.get("reason")

    def describe_notice(self, chart: Chart, language: Language = ENGLISH) -> str | None:
        """Return the notice about a correction or a withdrawal, for the page and the statement; else None."""
        if self.entry is None:
            return None
        if self.withdrawal is not None:
            return language.text(
                "site.withdrawn_notice",
                time=spell_moment(self.withdrawal.time, chart, language),
                reason=self.withdrawal.reason.removesuffix("."),
                released=spell_moment(self.entry.time, chart, language),
            )
        if self.reason is None or not self.earlier:
            return None
        return language.text(
            "site.corrected",
            time=spell_moment(self.entry.time, chart, language),
            reason=self.reason.removesuffix("."),
            first=spell_moment(self.earlier[0].time, chart, language),
        )

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the chart at the time of the release, None if unknown."""
        return None if self.entry is None or self.entry.edition is None else self.entry.edition["settings"]

    def shown_part(self, chart: Chart) -> AnyRelease | None:
        """Return the release without the lists that the chart withholds; None if no list is left."""
        if self.withdrawal is not None:
            return None
        if isinstance(self.release, Release):
            return None if is_withheld(chart, self.release) else self.release
        shown = {group: release for group, release in self.release.items() if not is_withheld(chart, release)}
        withheld = tuple(group for group in self.release if group not in shown)
        return replace(self.release, releases=shown, withheld=withheld) if shown else None

    @property
    def first_day(self) -> date:
        """The first day of the period, by which editions are sorted."""
        days = (unit.parse(self.period) for unit in UNITS.values())
        return next((day for day in days if day is not None), date.min)


def spell_moment(stamp: str, chart: Chart, language: Language) -> str:
    """Return a time of the ledger as a page spells it, in the time zone of a chart."""
    zone = chart.get("zone")
    return language.moment(stamp, None if zone is None else open_zone(zone))


def is_withheld(chart: Chart, release: Release) -> bool:
    """Return True if the bound of a shortfall is above the limit of a chart; a list without a bound is shown.

    The bound is part of the release, so that the decision is post-processing.
    """
    limit, shortfall = chart.withhold_above, release.shortfall
    return limit is not None and shortfall is not None and shortfall.upper > limit


@dataclass(frozen=True)
class ChartRecord:
    """The charges and releases of one chart in a ledger.

    Attributes
    ----------
    editions
        The released periods, oldest first.
    charged
        The period of each charge for the chart, keyed by request id.
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
        """Return the first id of a period that is not charged yet; ids after the first end in a number."""
        base, tried = name_request(chart, period), 1
        while (found := base if tried == 1 else f"{base}/{tried}") in self.charged:
            tried += 1
        return found

    def count_lost(self, period: str | None) -> int:
        """Return the number of charges for a period without a release, 0 if the period has one."""
        return 0 if period in self.periods else list(self.charged.values()).count(period)


def name_request(chart: str, period: str | None) -> str:
    """Return the request id of the first charge for a period."""
    return chart if period is None else f"{chart}/{period}"


def read_record(entries: Iterable[Entry], chart: Chart, withdrawals: Iterable[Withdrawal] = ()) -> ChartRecord:
    """Return the charges and releases of a chart among the entries of a ledger; of a period the last one counts."""
    editions: dict[str | None, Edition] = {}
    charged, others = {}, set()
    for entry in entries:
        if entry.request_id is None:
            continue
        if entry.edition is None or entry.edition["chart"] != chart.id:
            others.add(entry.request_id)
            continue
        period, release = entry.edition["period"], entry.release
        charged[entry.request_id] = period
        if release is not None and not isinstance(release, Sketch):
            before = editions.get(period)
            earlier = () if before is None or before.entry is None else (*before.earlier, before.entry)
            editions[period] = Edition(period, release, entry, earlier)
    for each in withdrawals:
        edition = editions.get(each.period) if each.chart == chart.id else None
        # A correction after a withdrawal takes its place.
        if edition is not None and edition.entry is not None and edition.entry.number < each.number:
            editions[each.period] = replace(edition, withdrawal=each)
    shown = sorted(editions.values(), key=lambda each: each.first_day)
    return ChartRecord(tuple(shown), charged, frozenset(others))


def check_site_is_of(ledger: Ledger, file: ChartsFile) -> None:
    """Raise unless a ledger holds the releases that the site shows: another ledger would draw them a second time."""
    if not (file.out / "index.html").exists() or _shows_nothing(file.out):
        return
    try:
        head = (file.out / MARK).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        head = ""
    if not re.fullmatch("[0-9a-f]{64}", head):
        raise InvalidValueError(
            f"out must be a site that names its ledger, and the file {MARK} of {file.out.name!r} is missing or "
            f"damaged: {ledger.name!r} may lack releases that the site shows. If it was made with this ledger, move "
            "the site away: it is written anew, and costs nothing. If not, name its ledger, or another out"
        )
    if not ledger.has_head(head):
        raise InvalidValueError(
            f"ledger must hold the releases that the site {file.out.name!r} shows, and {ledger.name!r} does not: "
            "they would be lost, and drawn a second time from the same people. Name the ledger that the site was made "
            "with, or another out. A budget for every year needs no second ledger: discreet budget init --every year"
        )


def _shows_nothing(out: Path) -> bool:
    """Return True if the site at `out` has no release, as after a first run that failed: any ledger may take over."""
    try:
        return (out / "statement.yaml").read_text(encoding="utf-8") == NO_ENTRIES
    except (OSError, UnicodeDecodeError):
        return False


def find_due_periods(chart: Chart, moment: datetime) -> list[str | None]:
    """Return the periods that must have a release at a moment, in order.

    They begin with the period that the chart names in `from`, by default the last one that is over. A chart without
    periods has one release, whose period is None.
    """
    unit = chart.unit
    if unit is None:
        return [None]
    last = find_last_ended(unit, moment, chart.get("zone"))
    first = chart.first or (last if chart.last is None else min(last, chart.last))
    last = last if chart.last is None else min(last, chart.last)
    if first > last:
        return []
    return [str(each) for each in list_periods(unit.name, unit.spell(first), unit.spell(last))]


def find_last_ended(unit: Unit, moment: datetime, zone: str | None) -> date:
    """Return the first day of the last period that is over at a moment, on the calendar of a zone, by default UTC."""

    def find_first_day(day: date) -> date:
        return unit.parse(unit.spell(day)) or day

    today = moment.astimezone(UTC if zone is None else open_zone(zone)).date()
    return find_first_day(find_first_day(today) - timedelta(1))


def find_day_after(unit: Unit, first: date) -> date:
    """Return the day after a period, given the first day of the period."""
    return unit.last_day(first) + timedelta(1)


def check_is_past(moment: datetime, now: datetime, otherwise: str, unless: str = "") -> None:
    """Raise if a moment is in the future, because periods that end before it may not be over.

    Parameters
    ----------
    moment
        The moment that `as_of` names.
    now
        The time by the clock that counts.
    otherwise
        The consequence for a period that is not over, for the message.
    unless
        The options that allow a future moment, for the message.
    """
    if moment > now:
        raise InvalidValueError(
            f"as_of must not be after now{unless}, not {moment.isoformat()}: a period that is not over {otherwise}"
        )
