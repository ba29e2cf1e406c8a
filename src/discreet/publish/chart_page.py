"""The page of one chart in one period: its lists, what they cost, how they differ from the period before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from discreet.publish.bars import Earlier, list_to_html
from discreet.publish.charts_file import Chart
from discreet.publish.editions import Edition
from discreet.publish.wording import describe_difference, name_period
from discreet.release.grouped import GroupedRelease, name_group
from discreet.release.release import Release

_SHOWN_PERIODS = 12


@dataclass(frozen=True)
class ChartPages:
    """A chart and its editions, the oldest first, of which there is at least one."""

    chart: Chart
    editions: Sequence[Edition]

    @property
    def latest(self) -> Edition:
        """The edition of the last period."""
        return self.editions[-1]

    def name_file(self, edition: Edition, ending: str) -> str:
        """The file of an edition: a point is in no id and no period."""
        return f"{self.chart.id}.{edition.period}{ending}" if edition.period else f"{self.chart.id}.once{ending}"


def chart_to_html(pages: ChartPages, place: int) -> str:
    """The main part of the page of an edition."""
    edition, chart = pages.editions[place], pages.chart
    before = pages.editions[place - 1] if place else None
    lists = _group_lists(edition, before)
    title = f"<h1>{escape(chart.title)}</h1>"
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    period = (
        f'<p class="period">{escape(_begin_with_capital(name_period(edition.period)))}</p>' if edition.period else ""
    )
    choice = _choose_group(edition.release) if isinstance(edition.release, GroupedRelease) else ""
    return (
        f"{title}{note}{period}{_changed_settings(pages, edition)}{_choose_period(pages, edition)}{choice}{lists}"
        f"{_terms(edition)}{_downloads(pages, edition)}"
    )


def _group_lists(edition: Edition, before: Edition | None) -> str:
    if isinstance(edition.release, Release):
        return f'<section class="list">{list_to_html(edition.release, _find_earlier(before, None))}</section>'
    return "".join(
        f'<section class="list" data-group="{place}" aria-labelledby="group-{place}">'
        f'<h2 id="group-{place}">{escape(name_group(group))}</h2>'
        f"{list_to_html(release, _find_earlier(before, group))}</section>"
        for place, (group, release) in enumerate(edition.release.items())
    )


def _find_earlier(before: Edition | None, group: Any) -> Earlier | None:
    """The same list in the edition before, where it has it."""
    if before is None or before.period is None:
        return None
    release: Any = before.release
    if isinstance(release, GroupedRelease) != (group is not None):
        return None
    if isinstance(release, GroupedRelease):
        release = release.releases.get(group)
    return None if release is None else Earlier(release, name_period(before.period))


def _choose_group(release: GroupedRelease) -> str:
    if len(release) < 2:
        return ""
    options = "".join(
        f'<option value="{place}">{escape(name_group(group))}</option>' for place, group in enumerate(release)
    )
    label = escape(" and ".join(release.names))
    return (
        f'<p class="choice" hidden><label for="group">{label}</label> '
        f'<select id="group">{options}<option value="">all</option></select></p>'
    )


def _choose_period(pages: ChartPages, edition: Edition) -> str:
    if len(pages.editions) < 2:
        return ""
    links = [_link_period(pages, each, each is edition) for each in reversed(pages.editions)]
    shown, folded = links[:_SHOWN_PERIODS], links[_SHOWN_PERIODS:]
    more = f"<details><summary>earlier periods</summary><ul>{''.join(folded)}</ul></details>" if folded else ""
    return f'<nav class="periods" aria-label="Periods"><ul>{"".join(shown)}</ul>{more}</nav>'


def _link_period(pages: ChartPages, edition: Edition, is_this: bool) -> str:
    mark = ' aria-current="page"' if is_this else ""
    name = escape(edition.period or "once")
    return f'<li><a href="{pages.name_file(edition, ".html")}"{mark}>{name}</a></li>'


def _changed_settings(pages: ChartPages, edition: Edition) -> str:
    """Says that an edition was released when the chart was another."""
    if edition.fingerprint in (None, pages.chart.fingerprint):
        return ""
    others = describe_difference(edition, pages.latest) if edition is not pages.latest else []
    told = f": {escape('; '.join(others))}" if others else ""
    return (
        '<p class="changed">The settings of this chart have changed since this period was released, and what is '
        f"released stays as it is{told}.</p>"
    )


def _terms(edition: Edition) -> str:
    entry = edition.entry
    when = [] if entry is None else [f"released {entry.time.replace('T', ' ').replace('Z', ' UTC')}"]
    lines = [*edition.release.notes(), *when]
    return "".join(f'<p class="terms">{escape(_begin_with_capital(line.removesuffix(".")))}.</p>' for line in lines)


def _downloads(pages: ChartPages, edition: Edition) -> str:
    links = " and ".join(
        f'<a href="data/{pages.name_file(edition, ending)}" download>{ending[1:].upper()}</a>'
        for ending in (".csv", ".json")
    )
    return f'<p class="downloads">Download this period as {links}.</p>'


def _begin_with_capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
