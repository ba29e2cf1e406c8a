"""The pages of a site, and what is written on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from discreet.grouped_listing import name_group
from discreet.grouped_release import AnyRelease, GroupedRelease, count_groups
from discreet.html_text import hash_for_policy
from discreet.labels import sort_key
from discreet.ledger.account import Budget
from discreet.ledger.ledger import Ledger
from discreet.publish.charts_file import Chart, ChartsFile
from discreet.publish.editions import Edition, read_record
from discreet.release import Count, Release
from discreet.release_csv import format_csv
from discreet.release_words import describe_size
from discreet.statements.registry import write_registry_entry
from discreet.statements.statement import promise_to_people, write_statement
from discreet.statements.subject import make_subject
from discreet.statements.yaml_text import entry_to_yaml
from discreet.text import count_with_commas, decimal_above, printable, round_up

DUMMY = "DUMMY: made-up events, drawn without privacy. Nothing here is about anybody."


@dataclass(frozen=True)
class Site:
    """What a site is made of.

    Attributes
    ----------
    file
        The charts file, for titles.
    charts
        The charts that have something to show, each with its editions.
    ledger
        What they were charged to; None for a rehearsal with made-up events.
    """

    file: ChartsFile
    charts: Sequence[ChartPages]
    ledger: Ledger | None


def make_site(file: ChartsFile, ledger: Ledger) -> Site:
    """The site of all that a ledger holds of the charts of a file."""
    entries = ledger.history()
    records = [(chart, read_record(entries, chart)) for chart in file.charts]
    return Site(file, [ChartPages(chart, record.editions) for chart, record in records if record.editions], ledger)


def list_files(site: Site) -> dict[str, str]:
    """The text of every file of a site, by its name."""
    lay_out = partial(_lay_out, site, protect_in_words(site))
    texts = {"index.html": lay_out(site.file.title, _index(site)), **make_statements(site)}
    texts["statement.html"] = lay_out("Statement", _statement_page(texts["statement.md"]))
    for pages in site.charts:
        for place, edition in enumerate(pages.editions):
            page = lay_out(pages.chart.title, chart_to_html(pages, place))
            texts[pages.name_file(edition, ".html")] = page
            if edition is pages.latest:
                texts[f"{pages.chart.id}.html"] = page
            texts[f"data/{pages.name_file(edition, '.csv')}"] = format_csv(edition.release) + "\n"
            texts[f"data/{pages.name_file(edition, '.json')}"] = edition.release.to_json(indent=2) + "\n"
    return texts


def _lay_out(site: Site, privacy: str, title: str, main: str) -> str:
    """A page: what all of them have around their main part."""
    dummy = f'<p class="dummy" role="note">{DUMMY}</p>' if site.ledger is None else ""
    style, script = _text("page.css"), _text("page.js")
    return Template(_text("page.html")).substitute(
        title=escape(title if title == site.file.title else f"{title} - {site.file.title}"),
        site=escape(site.file.title),
        style=style,
        style_hash=hash_for_policy(style),
        script=script,
        script_hash=hash_for_policy(script),
        dummy=dummy,
        main=main,
        privacy=privacy,
        origin="made-up events" if site.ledger is None else "private data with differential privacy",
    )


@cache
def _text(name: str) -> str:
    return files("discreet.publish").joinpath(name).read_text(encoding="utf-8")


def _index(site: Site) -> str:
    note = f'<p class="note">{escape(site.file.note)}</p>' if site.file.note else ""
    cards = "".join(map(_card, site.charts)) or "<p>Nothing is released yet.</p>"
    return f'<h1>{escape(site.file.title)}</h1>{note}<div class="cards">{cards}</div>'


def _card(pages: ChartPages) -> str:
    chart, latest = pages.chart, pages.latest
    note = f"<p>{escape(chart.note)}</p>" if chart.note else ""
    facts = [name_period(latest.period)] if latest.period else []
    facts += [count_groups(len(latest.release))] if isinstance(latest.release, GroupedRelease) else []
    earlier = len(pages.editions) - 1
    facts += [f"{earlier} earlier {'period' if earlier == 1 else 'periods'}"] if earlier else []
    told = f'<p class="facts">{escape(", ".join(facts))}</p>' if facts else ""
    return (
        f'<article><h2><a href="{chart.id}.html">{escape(chart.title)}</a></h2>{note}'
        f'<p class="few">{escape(_name_few(latest))}</p>{told}</article>'
    )


def _name_few(edition: Edition) -> str:
    """The first items of a chart, or of the first of its groups."""
    one, group = edition.release, ""
    if isinstance(one, GroupedRelease):
        first, one = next(iter(one.items()))
        group = f"{name_group(first)}: "
    items = [count.item for count in one.counts] if one.counts is not None else one.order or one.items
    return f"{group}{join_names(items[:3])}{' ...' if len(items) > 3 else ''}"


def _statement_page(markdown: str) -> str:
    """The statement for people who read it in a browser: headings, lists and paragraphs."""
    parts, items = [], []
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("- "):
            items.append(f"<li>{_mark_code(line[2:])}</li>")
            continue
        if items:
            parts.append(f"<ul>{''.join(items)}</ul>")
            items = []
        mark, _, rest = line.partition(" ")
        if mark in ("#", "##", "###"):
            parts.append(f"<h{len(mark)}>{_mark_code(rest)}</h{len(mark)}>")
        elif line.strip():
            parts.append(f"<p>{_mark_code(line)}</p>")
    files = '<p class="downloads">The same as <a href="statement.md" download>text</a>, and as a draft for the '
    return f'<div class="statement">{"".join(parts)}</div>{files}<a href="statement.yaml" download>registry</a>.</p>'


def _mark_code(line: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(line))


_LINK = '<a href="statement.html">the statement</a>'


def protect_in_words(site: Site) -> str:
    """How people are protected, in three sentences of HTML."""
    if site.ledger is None:
        return f"These pages are a rehearsal. Nobody's data were read for them. What will be promised is in {_LINK}."
    budget = site.ledger.budget
    delta = budget.delta or Fraction(0)
    lists = "all lists that are ever charged to this budget"
    promise = escape(promise_to_people(budget.epsilon, delta, budget.adjacency, lists))
    beside = "" if budget.delta is None else f" and delta = {decimal_above(budget.delta)}"
    spent = escape(decimal_above(site.ledger.spent))
    terms = escape(f"epsilon = {decimal_above(budget.epsilon)}{beside}")
    return (
        "Every list is drawn at random in a way that hides, as far as the next sentence says, "
        f"{escape(_name_secret(budget))}. {promise} That budget is {terms}, of which {spent} is spent: {_LINK} says "
        "what that means, and what it does not protect."
    )


def _name_secret(budget: Budget) -> str:
    """What is hidden of a person: with swap it is no secret who is in the data."""
    person = f"any single one of the {printable(budget.unit)}"
    return f"whether {person} is in the data" if budget.adjacency == "add-remove" else f"what the rows of {person} are"


def make_statements(site: Site) -> dict[str, str]:
    """The statement of each chart's last release, as text and as entries of the public registry of deployments."""
    texts = [f"# {printable(site.file.title)}: what is promised"]
    entries = []
    for pages in site.charts:
        subject = make_subject(pages.latest.release, site.ledger, pages.latest.entry)
        texts.append(_lower_headings(write_statement(subject), pages.chart.title))
        entries.append(entry_to_yaml(write_registry_entry(subject, _answer(pages))))
    nothing = [] if entries else ["Nothing is released yet."]
    return {"statement.md": "\n\n".join([*texts, *nothing]) + "\n", "statement.yaml": "---\n".join(entries) or "[]\n"}


def _lower_headings(statement: str, title: str) -> str:
    """A statement as a part of a longer text, under the title of its chart."""
    lowered = re.sub("^(#+ )", r"#\1", statement, flags=re.MULTILINE)
    return re.sub("^## ", lambda found: f"## {printable(title)}: ", lowered, count=1)


def _answer(pages: ChartPages) -> dict[str, Any]:
    """What a charts file knows, and a release does not."""
    chart = pages.chart
    again = chart.unit is not None
    return {
        "basic.name": chart.title,
        **({} if chart.note is None else {"basic.description": chart.note}),
        "deployment_model.release_type": "Many releases" if again else "One release",
        **({"deployment_model.release_type_details": f"One release for each {chart.get('every')}."} if again else {}),
    }


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


_LEFT = ' class="left"'
_NEW = ' <span class="new">new</span>'


@dataclass(frozen=True)
class Earlier:
    """The same list in the period before, and what that is called."""

    release: Release
    name: str


def list_to_html(release: Release, earlier: Earlier | None) -> str:
    """The list of a release, with what came in and went out since the one before."""
    fresh = set() if earlier is None else _keys(items_missing_from(release.items, earlier.release.items))
    body = _table(release, fresh, earlier) if release.counts is not None else _plain_list(release, fresh)
    caption = f"{describe_size(release)}, {release.listing.describe_order()}.{_explain_lines(release)}"
    return f'<p class="caption">{escape(caption)}</p>{body}{_describe_moves(release, earlier)}'


def _explain_lines(release: Release) -> str:
    if release.counts is None:
        return ""
    return " The line over a bar is where the number without noise lies, with a chance of at least 95%."


def _plain_list(release: Release, fresh: set[tuple[object, ...]]) -> str:
    items = release.items if release.order is None else release.order
    tag = "ul" if release.order is None else "ol"
    rows = "".join(f"<li>{_label(item, fresh)}</li>" for item in items)
    return f'<{tag} class="items">{rows}</{tag}>'


def _table(release: Release, fresh: set[tuple[object, ...]], earlier: Earlier | None) -> str:
    counts = release.counts or []
    places = {sort_key(item): place for place, item in enumerate(release.order or [], 1)}
    before = None if earlier is None or earlier.release.counts is None else earlier
    scale = _Scale.of(counts)
    heads = [
        *(["Order"] if places else []),
        "Item",
        "",
        "About",
        "From, to",
        *([] if before is None else [before.name]),
    ]
    names = "".join(
        f'<th scope="col" role="columnheader"{_LEFT if head in ("Order", "Item") else ""}>{escape(head)}</th>'
        for head in heads
    )
    known = None if before is None else {sort_key(each.item): each for each in before.release.counts or []}
    rows = "".join(_row(count, scale, fresh, places, known) for count in counts)
    return f'<table role="table"><thead><tr role="row">{names}</tr></thead><tbody>{rows}</tbody></table>'


def _row(
    count: Count,
    scale: _Scale,
    fresh: set[tuple[object, ...]],
    places: dict[tuple[object, ...], int],
    known: dict[tuple[object, ...], Count] | None,
) -> str:
    key = sort_key(count.item)
    place = f'<td role="cell" class="place">{places[key]}</td>' if key in places else ""
    interval = f"{count_with_commas(count.low)} to {count_with_commas(count.high)}"
    cells = [
        f'<th scope="row" role="rowheader">{_label(count.item, fresh)}</th>',
        f'<td role="cell" class="bar">{scale.draw(count)}</td>',
        f'<td role="cell" class="number">{count_with_commas(count.value)}</td>',
        f'<td role="cell" class="number interval">{interval}</td>',
    ]
    if known is not None:
        text = count_with_commas(known[key].value) if key in known else "&ndash;"
        cells.append(f'<td role="cell" class="number before">{text}</td>')
    return f'<tr role="row">{place}{"".join(cells)}</tr>'


@dataclass(frozen=True)
class _Scale:
    """Where counts are on a line from 0 to 1000, on which zero has its place."""

    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, counts: Sequence[Count]) -> _Scale:
        low = min([Fraction(0), *(Fraction(count.low) for count in counts)])
        high = max([Fraction(0), *(Fraction(count.high) for count in counts)])
        return cls(low, high if high > low else low + 1)

    def place(self, number: int | Fraction) -> int:
        return round(1000 * (Fraction(number) - self.low) / (self.high - self.low))

    def draw(self, count: Count) -> str:
        """The bar from zero to the count, with its interval as a line that has ends."""
        zero, value, low, high = (self.place(each) for each in (0, count.value, count.low, count.high))
        left, width = min(zero, value), abs(value - zero)
        line = f"M{low} 14H{high}M{low} 8V20M{high} 8V20"
        return (
            '<svg viewBox="0 0 1000 28" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
            f'<rect x="{left}" y="3" width="{width}" height="22"/><path d="{line}"/></svg>'
        )


def _describe_moves(release: Release, earlier: Earlier | None) -> str:
    if earlier is None:
        return ""
    came = items_missing_from(release.items, earlier.release.items)
    went = items_missing_from(earlier.release.items, release.items)
    if not came and not went:
        return f'<p class="moves">The same items as in {escape(earlier.name)}.</p>'
    parts = [
        f"<b>{title} since {escape(earlier.name)}:</b> {escape(join_names(items))}."
        for title, items in (("Came in", came), ("Went out", went))
        if items
    ]
    return (
        f'<p class="moves">{" ".join(parts)} Lists are drawn with noise: an item can come or go by chance, and this '
        "says nothing of how likely that is.</p>"
    )


def _label(item: object, fresh: set[tuple[object, ...]]) -> str:
    return escape(printable(item)) + (_NEW if sort_key(item) in fresh else "")


def _keys(items: Sequence[object]) -> set[tuple[object, ...]]:
    return {sort_key(item) for item in items}


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def name_period(period: str | None) -> str:
    """A period as people say it.

    Examples
    --------
    >>> name_period("2026-10"), name_period("2026-W05"), name_period("2026-Q1"), name_period("2026-01-31")
    ('October 2026', 'week 5 of 2026', 'quarter 1 of 2026', '31 January 2026')
    """
    year, _, rest = (period or "").partition("-")
    month, _, day = rest.partition("-")
    if re.fullmatch("W[0-9]+", rest):
        return f"week {int(rest[1:])} of {year}"
    if re.fullmatch("Q[0-9]", rest):
        return f"quarter {rest[1:]} of {year}"
    if not month:
        return year
    return f"{int(day)} {_MONTHS[int(month) - 1]} {year}" if day else f"{_MONTHS[int(month) - 1]} {year}"


def join_names(items: Iterable[Any]) -> str:
    """Labels with commas between them."""
    return ", ".join(map(printable, items))


def items_missing_from(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """The items that are not among others; labels are told apart as in a release."""
    known = {sort_key(item) for item in others}
    return [item for item in items if sort_key(item) not in known]


def describe_difference(edition: Edition, current: Edition) -> list[str]:
    """In what the terms of two editions differ, as far as their releases say."""
    one, other = edition.release, current.release
    rows = {
        "k": (str(_count_asked(one)), str(_count_asked(other))),
        "epsilon": (round_up(one.guarantee.epsilon), round_up(other.guarantee.epsilon)),
        "mechanism": (repr(one.guarantee.mechanism), repr(other.guarantee.mechanism)),
        "counts": tuple("with" if each.guarantee.counts_epsilon else "without" for each in (one, other)),
    }
    return [f"{name} {before}, not {now}" for name, (before, now) in rows.items() if before != now]


def _count_asked(release: AnyRelease) -> int:
    """How many items were asked for, in each group where there are groups."""
    asked: int | None = getattr(release, "asked", None)
    return release.k if asked is None else asked
