"""The site of a charts file: every page and every file to download, as a function of the ledger and of titles alone.

The pages are HTML with SVG, made here: nothing is loaded from elsewhere, and a script only hides what is not chosen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from importlib.resources import files
from string import Template

from discreet.html_text import hash_for_policy
from discreet.ledger.ledger import Ledger
from discreet.publish.chart_page import ChartPages, chart_to_html
from discreet.publish.charts_file import ChartsFile
from discreet.publish.editions import Edition, read_record
from discreet.publish.site_statement import make_statements, protect_in_words
from discreet.publish.wording import join_names, name_period
from discreet.release.formats import format_csv
from discreet.release.grouped import GroupedRelease, count_groups, name_group

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
