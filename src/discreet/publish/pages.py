"""Render the site of a charts file: every page and every file to download.

jinja2 renders the pages from `templates/` with autoescape, and markdown-it renders the statement. A site depends on the
ledger and on the language, titles and notes of the charts file alone. A page loads nothing from elsewhere. Each list is
one table with SVG bars in its cells, so pointers, screen readers, printers and narrow screens all get the same content.
The script only hides what a search does not find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.labels import sort_key
from discreet.language import ENGLISH, Language
from discreet.ledger.ledger import Ledger
from discreet.publish.chart_source import describe_question, name_source
from discreet.publish.charts_file import Chart, ChartsFile
from discreet.publish.editions import NO_ENTRIES, Edition, is_withheld, read_record, spell_moment
from discreet.publish.pictures import draw_pictures, is_drawable
from discreet.publish.trends import describe_trend, find_list
from discreet.release.formats import format_csv
from discreet.release.grouped import AnyRelease, GroupedRelease, count_groups, name_group
from discreet.release.registry import entry_to_yaml, write_registry_entry
from discreet.release.release import Release, counts_people
from discreet.release.statement import (
    Question,
    bound_belief,
    find_bound,
    make_subject,
    promise_of_ledger,
    promise_to_people,
    write_statement,
)
from discreet.text import escape_markdown, hash_for_policy, printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_SHOWN_PERIODS = 12
"""A page links to this many periods, a year of months; links to earlier ones are folded away."""

_BAR_LENGTH = 1000
"""Width of the view box of a bar in `list.html`. Bars are about 400 pixels wide, so a rounded unit is below a pixel."""

_CHIPS = 12
"""A card shows the items of a list without an order if there are at most this many, all of them."""

_MARKS = re.compile(r"[\\`*_\[\]<>|~&#]")
"""Marks of Markdown, which mean nothing after a backslash: the reason of a correction is any text."""

_SEARCHED = 20
"""A page with more items than this, or with groups, has a search box."""


@dataclass(frozen=True)
class ChartPages:
    """A chart with its editions, at least one, oldest first."""

    chart: Chart
    editions: Sequence[Edition]

    @property
    def latest(self) -> Edition:
        """The edition of the last period."""
        return self.editions[-1]

    def name_file(self, edition: Edition, ending: str) -> str:
        """Return the file name of an edition. Ids and periods contain no point, so names do not collide."""
        return f"{self.chart.id}.{edition.period or 'once'}{ending}"


@dataclass(frozen=True)
class Site:
    """The content of a site.

    Attributes
    ----------
    file
        The charts file, for titles and notes.
    charts
        The charts that have at least one edition.
    ledger
        The ledger that the releases were charged to; None for a rehearsal with made-up events.
    """

    file: ChartsFile
    charts: Sequence[ChartPages]
    ledger: Ledger | None

    @property
    def language(self) -> Language:
        """The language of all texts."""
        return self.file.language


@dataclass(frozen=True)
class Earlier:
    """The same list in the period before, and the name of that period."""

    release: Release
    name: str


def make_site(file: ChartsFile, ledger: Ledger) -> Site:
    """Return the site of all releases that a ledger holds for the charts of a file."""
    entries = ledger.history()
    withdrawals = ledger.withdrawals()
    records = [(chart, read_record(entries, chart, withdrawals)) for chart in file.charts]
    return Site(file, [ChartPages(chart, record.editions) for chart, record in records if record.editions], ledger)


def list_files(site: Site) -> dict[str, str]:
    """Return the text of every file of a site without its pictures, keyed by its path in the site."""
    from markdown_it import MarkdownIt

    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    language = site.language
    render_page = partial(
        render,
        language=language,
        site_title=site.file.title,
        style=style,
        style_hash=hash_for_policy(style),
        script=script,
        script_hash=hash_for_policy(script),
        protection=_describe_protection(site.ledger, language),
    )
    texts = _write_statements(site)
    # Headings, lists, paragraphs and code are rendered, and everything else stays text: a title or a unit can be any
    # text, so it must not become a link, an image or a tag.
    markdown = MarkdownIt("zero", {"html": False}).enable(["heading", "list", "backticks", "table", "escape"])
    statement = markdown.render(texts["statement.md"])
    texts["statement.html"] = render_page(
        "statement.html", title=language.text("site.statement"), statement=statement, own=None
    )
    cards = [_describe_card(pages, language) for pages in site.charts]
    texts["index.html"] = render_page(
        "index.html", title=site.file.title, note=site.file.note, cards=cards, own=_promise_of_any(site)
    )
    for pages in site.charts:
        for place, edition in enumerate(pages.editions):
            page = render_page("chart.html", **_describe_edition(site, pages, place))
            texts[pages.name_file(edition, ".html")] = page
            if edition is pages.latest:
                texts[f"{pages.chart.id}.html"] = page
            shown, notice = edition.shown_part(pages.chart), edition.describe_notice(pages.chart)
            said = edition.describe_notice(pages.chart, language) or ""
            if shown is not None:
                texts[f"data/{pages.name_file(edition, '.csv')}"] = format_csv(shown) + "\n"
                data = json.loads(shown.to_json()) | ({} if notice is None else {"notice": notice})
                texts[f"data/{pages.name_file(edition, '.json')}"] = (
                    shown.to_json(indent=2) if notice is None else json.dumps(data, indent=2)
                ) + "\n"
            elif edition.withdrawal is not None:
                # The files keep their names: who reads them regularly finds the notice.
                texts[f"data/{pages.name_file(edition, '.csv')}"] = f"notice\n{_quote_cell(notice or '')}\n"
                texts[f"data/{pages.name_file(edition, '.json')}"] = json.dumps({"notice": notice}, indent=2) + "\n"
            if notice is not None:
                texts[f"data/{pages.name_file(edition, '.notice.txt')}"] = f"{printable(said)}\n"
    return texts


def list_pictures(site: Site, old: Path) -> dict[str, bytes]:
    """Return the pictures of a site, keyed by their path in it; those of the site at `old` that are the same are kept.

    A rehearsal has none.
    """
    shown = {}
    for pages in site.charts:
        for edition in pages.editions:
            release = _find_drawn(site, pages.chart, edition)
            if release is not None:
                title = ", ".join(filter(None, [pages.chart.title, site.language.period(edition.period)]))
                shown[f"data/{pages.name_file(edition, '')}"] = title, release
    return draw_pictures(shown, site.language, old)


def _find_drawn(site: Site, chart: Chart, edition: Edition) -> AnyRelease | None:
    """Return the release that the picture of an edition shows, None if it has no picture."""
    shown = edition.shown_part(chart)
    has_picture = shown is not None and site.ledger is not None and site.file.has_pictures and is_drawable(shown)
    return shown if has_picture else None


def render(template: str, language: Language = ENGLISH, **values: Any) -> str:
    """Render a file of `templates/` in a language. Every value is escaped unless the template marks it as safe."""
    return (
        _open_templates()
        .get_template(template)
        .render(values, lang=language.code, t=partial(_tell, language), spell=language.spell)
    )


def _tell(language: Language, key: str, **fields: Any) -> Markup:
    """Return a text of the catalogue as HTML; a field that is HTML already stays as it is."""
    from markupsafe import escape

    spelled = {name: language.spell(value) for name, value in fields.items()}
    return escape(language.template(key, fields.get("count"))).format(**spelled)


@cache
def _open_templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _describe_protection(ledger: Ledger | None, language: Language) -> dict[str, str] | None:
    """Return the facts about privacy that stand on every page, None for a rehearsal."""
    if ledger is None:
        return None
    account = ledger.account
    # Under swap adjacency the set of users is public, so only their rows are hidden.
    is_added = account.budget.adjacency == "add-remove"
    secret = "site.secret_added" if is_added else "site.secret_replaced"
    return {
        "secret": language.text(secret, unit=printable(account.budget.unit)),
        "together": promise_of_ledger(account, language),
    }


def _promise_of(release: AnyRelease, language: Language) -> str:
    """Return the promise of one release by itself."""
    terms, seen = release.guarantee, "seen.lists" if isinstance(release, GroupedRelease) else "seen.list"
    return promise_to_people(terms.epsilon, terms.delta, terms.adjacency, language.text(seen), language)


def _promise_of_edition(edition: Edition, language: Language) -> str:
    """Return the promise of an edition: of a correction that of all releases of the period, which were all public.

    A withdrawal takes nothing back of what was seen.
    """
    if edition.entry is None or not (edition.earlier or edition.withdrawal):
        return _promise_of(edition.release, language)
    entries = (*edition.earlier, edition.entry)
    seen = language.text("seen.replaced" if edition.withdrawal is None else "seen.gone")
    epsilon = sum((each.epsilon for each in entries), Fraction(0))
    delta = sum((each.delta for each in entries), Fraction(0))
    return promise_to_people(epsilon, delta, edition.release.guarantee.adjacency, seen, language)


def _name_period(edition: Edition, language: Language) -> str:
    """Return the period of an edition as links name it, with a mark if it was withdrawn or corrected."""
    name = language.period(edition.period) or language.text("site.once")
    if edition.withdrawal is not None:
        return f"{name} ({language.text('site.withdrawn')})"
    return f"{name} ({language.text('site.mended')})" if edition.earlier else name


def _promise_of_any(site: Site) -> str | None:
    """Return the promise of any one release of a site: that of the one which says most about a person."""
    releases = {
        (each.release.guarantee.epsilon, each.release.guarantee.delta): each.release
        for pages in site.charts
        for each in pages.editions
    }
    if not releases:
        return None
    terms = releases[max(releases, key=lambda both: bound_belief(*both))].guarantee
    # A delta of any release leaves a bound on guesses alone, for all of them.
    delta = max(delta for _, delta in releases)
    seen = site.language.text("seen.any")
    return promise_to_people(terms.epsilon, delta, terms.adjacency, seen, site.language)


def _write_statements(site: Site) -> dict[str, str]:
    """Return the statements about the latest release of each chart, as Markdown and as registry entries in YAML."""
    language = site.language
    texts = [f"# {language.text('statement.site_title', title=escape_markdown(printable(site.file.title)))}"]
    entries = []
    for pages in site.charts:
        chart, latest = pages.chart, pages.latest
        question = _find_question(chart, latest)
        find_subject = partial(
            make_subject, latest.release, site.ledger, latest.entry, name_source(chart), question=question
        )
        subject, english = find_subject(language=language), find_subject()
        if latest.shown_part(chart) is None:
            gone = language.text("statement.too_noisy" if latest.withdrawal is None else "site.withdrawn")
            subject = replace(subject, quality=gone)
        # The headings of a statement move one level down, below the title of the site.
        notices, noted = (
            [
                printable(f"{tongue.period(each.period) or chart.title}: {notice}. {_promise_of_edition(each, tongue)}")
                for each in pages.editions
                if (notice := each.describe_notice(chart, tongue))
            ]
            for tongue in (language, ENGLISH)
        )
        told = write_statement(subject, "statement.site_registry")
        lowered = re.sub("^(#+ )", r"#\1", told, flags=re.MULTILINE)
        name = ", ".join(filter(None, [escape_markdown(printable(chart.title)), language.period(latest.period)]))
        heading, _, sections = lowered.replace("## ", f"## {name}: ", 1).partition("\n\n")
        texts.append(heading)
        if notices:
            listed = ["- " + _MARKS.sub(r"\\\g<0>", notice) for notice in notices]
            texts.append("\n".join([f"### {language.text('statement.changed')}", "", *listed]))
        texts.append(sections)
        answers = {"basic.name": chart.title, "deployment_model.release_type": "One release"}
        if chart.note is not None:
            answers["basic.description"] = chart.note
        if chart.unit is not None:
            answers["deployment_model.release_type"] = "Many releases"
            answers["deployment_model.release_type_details"] = f"One release for each {chart.get('every')}."
        entry = write_registry_entry(english, answers)
        administrative = entry["deployment"]["administrative"]
        administrative["notes"] = "\n".join(filter(None, [administrative["notes"], *noted]))
        entries.append(entry_to_yaml(entry))
    if not entries:
        texts.append(language.text("site.nothing"))
    return {"statement.md": "\n\n".join(texts) + "\n", "statement.yaml": "---\n".join(entries) or NO_ENTRIES}


def _describe_card(pages: ChartPages, language: Language) -> dict[str, Any]:
    """Return the values of the card of a chart: a few items, of the first group where there are groups, and facts."""
    latest = next((each for each in pages.editions[::-1] if each.withdrawal is None), pages.latest)
    release, group, facts = latest.shown_part(pages.chart), None, []
    if latest.period:
        facts.append(language.period(latest.period))
    if isinstance(latest.release, GroupedRelease):
        facts.append(count_groups(len(latest.release), language))
    if isinstance(release, GroupedRelease):
        first, release = next(iter(release.items()))
        group = name_group(first)
    if latest is not pages.latest:
        facts.append(_name_period(pages.latest, language))
    if earlier := len(pages.editions) - 1:
        facts.append(language.text("site.earlier", count=earlier))
    card = {"chart": pages.chart, "facts": ", ".join(facts), "group": group, "items": [], "more": ""}
    if release is None:
        withdrawn = latest.withdrawal is not None
        return {**card, "more": language.text("site.withdrawn" if withdrawn else "site.too_noisy")}
    items = list(map(printable, release))
    if release.counts is None and release.order is None:
        items = list(map(printable, release.listing.items))
        # The first few of a list without an order would look like the best few.
        few = items if len(items) <= _CHIPS else []
        return {**card, "items": few, "more": "" if few else language.text("site.no_order", count=len(items))}
    more = len(items) - 3
    return {**card, "items": items[:3], "more": language.text("site.more_items", count=more) if more > 0 else ""}


def _describe_edition(site: Site, pages: ChartPages, place: int) -> dict[str, Any]:
    """Return the values of the page of one edition."""
    edition, chart, language = pages.editions[place], pages.chart, site.language
    before = pages.editions[place - 1] if place else None
    shown = edition.shown_part(chart)
    group_columns = ""
    lists: list[dict[str, Any]] = []
    if edition.withdrawal is not None:
        releases: list[tuple[Any, Release]] = []
    elif isinstance(edition.release, Release):
        releases = [(None, edition.release)]
    else:
        group_columns = language.join(edition.release.names)
        releases = list(edition.release.items())
    question = _find_question(chart, edition)
    recent = pages.editions[max(0, place + 1 - _SHOWN_PERIODS) : place + 1]
    for group, release in releases:
        view = _describe_shown(chart, release, before, group, find_bound(release, question), language)
        # Lines of all groups on all pages would take most of the site.
        has_trend = not view["withheld"] and (group is None or edition is pages.latest)
        trend = describe_trend(chart, recent, group, language) if has_trend else None
        name = None if group is None else name_group(group)
        items = " ".join(row["label"] for row in view.get("rows", ()))
        lists.append({"group": name, "find": f"{name} {items}", "trend": trend, **view})
    lines = edition.release.remarks(language) if edition.withdrawal is None else []
    if edition.release.guarantee.shortfall_epsilon and isinstance(edition.release, GroupedRelease) and lists:
        elsewhere = edition.release.groups_per_user < len(lists)
        lines.append(language.text("site.confidence_elsewhere" if elsewhere else "site.confidence"))
    if chart.withhold_above is not None:
        lines.append(language.text("site.limit", limit=language.exact(chart.withhold_above)))
    if edition.entry is not None:
        time, counted = spell_moment(edition.entry.time, chart, language), edition.entry.as_of
        lines.append(
            language.text("site.released", time=time)
            if counted is None
            else language.text("site.released_in", time=time, period=language.period(edition.entry.period))
        )
    captions = list(dict.fromkeys(each["caption"] for each in lists if "caption" in each))
    if any(each.get("came") or each.get("went") for each in lists):
        lines.insert(0, language.text("site.chance"))
    rows = sum(len(each.get("rows", ())) for each in lists)
    return {
        "title": chart.title,
        "note": chart.note,
        "pages": pages,
        "edition": edition,
        "period": _capitalize(language.period(edition.period)),
        "period_of": partial(_name_period, language=language),
        "changed": _describe_change(before, edition, language),
        "newest_first": pages.editions[::-1],
        "shown_periods": _SHOWN_PERIODS,
        "group_columns": group_columns,
        "lists": lists,
        "caption": captions[0] if len(captions) == 1 < len(lists) else None,
        "has_search": len(lists) > 1 or rows > _SEARCHED,
        "notice": edition.describe_notice(chart, language),
        "is_withdrawn": edition.withdrawal is not None,
        "has_data": shown is not None or edition.withdrawal is not None,
        "has_pictures": _find_drawn(site, chart, edition) is not None,
        "own": _promise_of_edition(edition, language),
        "terms": [f"{_capitalize(line.removesuffix('.'))}." for line in lines],
    }


def _find_question(chart: Chart, edition: Edition) -> Question | None:
    """Return the question of an edition, or None if the chart has changed since and asks another one."""
    is_asked = edition.entry is None or edition.fingerprint == chart.fingerprint
    return describe_question(chart, edition.period) if is_asked else None


def _describe_shown(
    chart: Chart, release: Release, before: Edition | None, group: Any, bound: int | None, language: Language
) -> dict[str, Any]:
    """Return the values of `list.html` for a list, or for the notice in the place of a list that is withheld."""
    if release.shortfall is not None and is_withheld(chart, release):
        ahead = release.shortfall.spell_upper(counts_people(release.guarantee), language)
        return {"withheld": language.text("site.withheld", ahead=ahead)}
    return describe_list(release, _find_earlier(chart, before, group, language), language, bound)


def _find_earlier(chart: Chart, before: Edition | None, group: Any, language: Language) -> Earlier | None:
    """Return the list of the same group in the edition before; None if that edition shows no such list."""
    release = None if before is None or before.period is None else find_list(chart, before, group)
    return None if before is None or release is None else Earlier(release, language.period(before.period))


def _describe_change(before: Edition | None, edition: Edition, language: Language) -> str | None:
    """Return a sentence on the settings that changed with an edition; None if none did, or if nobody knows."""
    if before is None or None in (before.fingerprint, edition.fingerprint) or before.fingerprint == edition.fingerprint:
        return None
    was, now = (_list_terms(each.release, language) for each in (before, edition))
    told = [
        language.text("change.one", name=language.text(key), now=now[key], before=was[key])
        for key in now
        if now[key] != was[key]
    ]
    # The condition, the columns and the period of the events are in the fingerprint and not in the release.
    changes = "; ".join(told) or language.text("change.unseen")
    return language.text("change.said", earlier=language.period(before.period), changes=changes)


def _list_terms(release: Any, language: Language) -> dict[str, str]:
    """Return the terms of a release that a page names if they have changed, by their key in the catalogue."""
    guarantee, first = release.guarantee, next(iter(release.values())) if isinstance(release, GroupedRelease) else None
    asked, d = getattr(release, "asked", None), (first or release).d
    is_added = guarantee.adjacency == "add-remove"

    def spell_part(part: Fraction) -> str:
        return language.rounded(part) if part else language.text("change.none")

    return {
        "change.k": str(language.spell(release.k if asked is None else asked)),
        "change.d": language.text("change.found") if d is None else str(language.spell(d)),
        "change.groups": language.text("change.none") if first is None else str(language.spell(len(release))),
        "change.epsilon": language.rounded(guarantee.epsilon),
        "change.counts": spell_part(guarantee.counts_epsilon),
        "change.shortfall": spell_part(guarantee.shortfall_epsilon),
        "change.delta": spell_part(guarantee.delta),
        "change.adjacency": language.text("change.added" if is_added else "change.replaced"),
        "change.person": language.above(guarantee.sensitivity.up),
        "change.mechanism": repr(guarantee.mechanism),
    }


def describe_list(
    release: Release, earlier: Earlier | None, language: Language = ENGLISH, bound: int | None = None
) -> dict[str, Any]:
    """Return the values of `list.html`: the rows of a list, and the items that came and went since the one before.

    With a bound on the items of a user, the caption says that the numbers count no more.
    """
    came = [] if earlier is None else _find_missing(release.listing.items, earlier.release.items)
    went = [] if earlier is None else _find_missing(earlier.release.listing.items, release.items)
    new = {sort_key(item) for item in came}
    earlier_counts = None if earlier is None else earlier.release.counts
    caption = f"{release.title(language)}."
    if release.counts is not None:
        some = "" if bound is None else language.text("shortfall.some", count=bound)
        caption += f" {language.text('site.line', some=some)}"
    view = {
        "withheld": None,
        "caption": caption,
        "shortfall": " ".join(release.describe_shortfall(language)),
        "is_ordered": release.order is not None,
        "has_counts": release.counts is not None,
        "has_earlier_counts": earlier_counts is not None,
        "earlier": None if earlier is None else earlier.name,
        "came": [printable(item) for item in came],
        "went": [printable(item) for item in went],
    }
    if release.counts is None:
        items = release.listing.items if release.order is None else release.order
        return {**view, "rows": [{"label": printable(item), "is_new": sort_key(item) in new} for item in items]}

    places = {sort_key(item): place for place, item in enumerate(release.order or [], 1)}
    before = {sort_key(count.item): count for count in earlier_counts or []}
    # All bars of a list share one scale, which includes zero.
    start = min([Fraction(0), *(Fraction(count.low) for count in release.counts)])
    length = max([Fraction(0), *(Fraction(count.high) for count in release.counts)]) - start or Fraction(1)
    rows = []
    for count in release.counts:
        key = sort_key(count.item)
        zero, value, low, high = (
            round(_BAR_LENGTH * (Fraction(number) - start) / length)
            for number in (0, count.value, count.low, count.high)
        )
        rows.append(
            {
                "label": printable(count.item),
                "is_new": key in new,
                "place": places.get(key),
                "left": min(zero, value),
                "width": abs(value - zero),
                "low": low,
                "high": high,
                "value": language.spell(count.value),
                "interval": language.text("interval", low=count.low, high=count.high),
                "before": language.spell(before[key].value) if key in before else None,
            }
        )
    return {**view, "rows": rows}


def _find_missing(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Return the items that are not among others; labels are compared as in a release."""
    known = {sort_key(item) for item in others}
    return [item for item in items if sort_key(item) not in known]


def _quote_cell(text: str) -> str:
    """Return a text as a cell of a CSV file."""
    quoted = printable(text).replace('"', '""')
    return f'"{quoted}"'


def _capitalize(text: str) -> str:
    # str.capitalize would turn all other letters into small ones.
    return text[:1].upper() + text[1:]
