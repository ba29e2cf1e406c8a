"""Render the site of a charts file: every page and every file to download.

jinja2 renders the pages from `templates/` with autoescape, and markdown-it renders the statement. A site depends on the
ledger and on the titles and notes of the charts file alone. A page loads nothing from elsewhere. Each list is one table
with SVG bars in its cells, so pointers, screen readers, printers and narrow screens all get the same content. The
script only hides the groups that are not chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from discreet.labels import sort_key
from discreet.ledger.ledger import Ledger
from discreet.publish.charts_file import Chart, ChartsFile
from discreet.publish.editions import Edition, is_withheld, read_record
from discreet.release.formats import format_csv
from discreet.release.grouped import GroupedRelease, count_groups, name_group
from discreet.release.registry import entry_to_yaml, write_registry_entry
from discreet.release.release import Release, describe_size
from discreet.release.statement import make_subject, promise_to_people, write_statement
from discreet.text import count_with_commas, decimal, decimal_above, hash_for_policy, printable, round_up

if TYPE_CHECKING:
    from jinja2 import Environment

_SHOWN_PERIODS = 12
"""A page links to this many periods, a year of months; links to earlier ones are folded away."""

_BAR_LENGTH = 1000
"""Width of the view box of a bar in `list.html`. Bars are about 400 pixels wide, so a rounded unit is below a pixel."""

_TOO_NOISY = "too noisy to publish"
"""The words in the place of a list that is withheld."""

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


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


@dataclass(frozen=True)
class Earlier:
    """The same list in the period before, and the name of that period."""

    release: Release
    name: str


def make_site(file: ChartsFile, ledger: Ledger) -> Site:
    """Return the site of all releases that a ledger holds for the charts of a file."""
    entries = ledger.history()
    records = [(chart, read_record(entries, chart)) for chart in file.charts]
    return Site(file, [ChartPages(chart, record.editions) for chart, record in records if record.editions], ledger)


def list_files(site: Site) -> dict[str, str]:
    """Return the text of every file of a site, keyed by its path in the site."""
    from markdown_it import MarkdownIt

    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    render_page = partial(
        render,
        site_title=site.file.title,
        style=style,
        style_hash=hash_for_policy(style),
        script=script,
        script_hash=hash_for_policy(script),
        protection=_describe_protection(site.ledger),
    )
    texts = _write_statements(site)
    # Headings, lists, paragraphs and code are rendered, and everything else stays text: a title or a unit can be any
    # text, so it must not become a link, an image or a tag.
    markdown = MarkdownIt("zero", {"html": False}).enable(["heading", "list", "backticks"])
    statement = markdown.render(texts["statement.md"])
    texts["statement.html"] = render_page("statement.html", title="Statement", statement=statement)
    cards = [_describe_card(pages) for pages in site.charts]
    texts["index.html"] = render_page("index.html", title=site.file.title, note=site.file.note, cards=cards)
    for pages in site.charts:
        for place, edition in enumerate(pages.editions):
            page = render_page("chart.html", **_describe_edition(pages, place))
            texts[pages.name_file(edition, ".html")] = page
            if edition is pages.latest:
                texts[f"{pages.chart.id}.html"] = page
            shown = edition.shown_part(pages.chart)
            if shown is not None:
                texts[f"data/{pages.name_file(edition, '.csv')}"] = format_csv(shown) + "\n"
                texts[f"data/{pages.name_file(edition, '.json')}"] = shown.to_json(indent=2) + "\n"
    return texts


def render(template: str, **values: Any) -> str:
    """Render a file of `templates/`. Every value is escaped unless the template marks it as safe."""
    return _open_templates().get_template(template).render(values)


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


def _describe_protection(ledger: Ledger | None) -> dict[str, str] | None:
    """Return the facts about privacy that stand on every page, None for a rehearsal."""
    if ledger is None:
        return None
    budget, person = ledger.budget, f"any single one of the {printable(ledger.budget.unit)}"
    # Under swap adjacency the set of users is public, so only their rows are hidden.
    is_membership_hidden = budget.adjacency == "add-remove"
    lists = "all lists that are ever charged to this budget"
    beside = "" if budget.delta is None else f" and delta = {decimal_above(budget.delta)}"
    return {
        "secret": f"whether {person} is in the data" if is_membership_hidden else f"what the rows of {person} are",
        "promise": promise_to_people(budget.epsilon, budget.delta or Fraction(0), budget.adjacency, lists),
        "terms": f"epsilon = {decimal_above(budget.epsilon)}{beside}",
        "spent": decimal_above(ledger.spent),
    }


def _write_statements(site: Site) -> dict[str, str]:
    """Return the statements about the latest release of each chart, as Markdown and as registry entries in YAML."""
    texts = [f"# {printable(site.file.title)}: what is promised"]
    entries = []
    for pages in site.charts:
        chart = pages.chart
        subject = make_subject(pages.latest.release, site.ledger, pages.latest.entry)
        if pages.latest.shown_part(chart) is None:
            subject = replace(subject, quality="The latest list is too noisy to publish: its bound is above the limit.")
        # The headings of a statement move one level down, below the title of the site.
        lowered = re.sub("^(#+ )", r"#\1", write_statement(subject), flags=re.MULTILINE)
        texts.append(lowered.replace("## ", f"## {printable(chart.title)}: ", 1))
        answers = {"basic.name": chart.title, "deployment_model.release_type": "One release"}
        if chart.note is not None:
            answers["basic.description"] = chart.note
        if chart.unit is not None:
            answers["deployment_model.release_type"] = "Many releases"
            answers["deployment_model.release_type_details"] = f"One release for each {chart.get('every')}."
        entries.append(entry_to_yaml(write_registry_entry(subject, answers)))
    if not entries:
        texts.append("Nothing is released yet.")
    return {"statement.md": "\n\n".join(texts) + "\n", "statement.yaml": "---\n".join(entries) or "[]\n"}


def _describe_card(pages: ChartPages) -> dict[str, Any]:
    """Return the values of the card of a chart: a few items, of the first group where there are groups, and facts."""
    release, group, facts = pages.latest.shown_part(pages.chart), "", []
    if pages.latest.period:
        facts.append(name_period(pages.latest.period))
    if isinstance(pages.latest.release, GroupedRelease):
        facts.append(count_groups(len(pages.latest.release)))
    if isinstance(release, GroupedRelease):
        first, release = next(iter(release.items()))
        group = f"{name_group(first)}: "
    earlier = len(pages.editions) - 1
    if earlier:
        facts.append(f"{earlier} earlier {'period' if earlier == 1 else 'periods'}")
    items = [] if release is None else list(release)
    few = (
        _TOO_NOISY
        if release is None
        else f"{group}{', '.join(map(printable, items[:3]))}{' ...' if len(items) > 3 else ''}"
    )
    return {"chart": pages.chart, "few": few, "facts": ", ".join(facts)}


def _describe_edition(pages: ChartPages, place: int) -> dict[str, Any]:
    """Return the values of the page of one edition."""
    edition, chart = pages.editions[place], pages.chart
    before = pages.editions[place - 1] if place else None
    if isinstance(edition.release, Release):
        group_columns = ""
        lists = [{"group": None, **_describe_shown(chart, edition.release, before, None)}]
    else:
        group_columns = " and ".join(edition.release.names)
        lists = [
            {"group": name_group(group), **_describe_shown(chart, release, before, group)}
            for group, release in edition.release.items()
        ]
    # The sentence about the shortfall stands below the list.
    said = set(edition.release.describe_shortfall())
    lines = [line for line in edition.release.notes() if line not in said]
    if said and isinstance(edition.release, GroupedRelease):
        elsewhere = edition.release.groups_per_user < len(lists)
        about = ", and about the users who count in its group" if elsewhere else ""
        lines.append(f"the confidence of 95% is for each list by itself{about}")
    if chart.withhold_above is not None:
        lines.append(
            f"lists whose bound is above {decimal(chart.withhold_above)} are not published; of all lists, published or "
            "not, at most 5% are published with a bound that is too small"
        )
    if edition.entry is not None:
        lines.append(f"released {edition.entry.time.replace('T', ' ').replace('Z', ' UTC')}")
    # The terms that differ from those of the latest edition are named, as far as the releases tell.
    was, now = _list_terms(edition.release), _list_terms(pages.latest.release)
    return {
        "title": chart.title,
        "note": chart.note,
        "pages": pages,
        "edition": edition,
        "period": _capitalize(name_period(edition.period)),
        "is_changed": edition.fingerprint not in (None, chart.fingerprint),
        "changes": [f"{name} {old}, not {now[name]}" for name, old in was.items() if old != now[name]],
        "newest_first": pages.editions[::-1],
        "shown_periods": _SHOWN_PERIODS,
        "group_columns": group_columns,
        "lists": lists,
        "has_data": edition.shown_part(chart) is not None,
        "terms": [f"{_capitalize(line.removesuffix('.'))}." for line in lines],
    }


def _describe_shown(chart: Chart, release: Release, before: Edition | None, group: Any) -> dict[str, Any]:
    """Return the values of `list.html` for a list, or for the notice in the place of a list that is withheld."""
    if is_withheld(chart, release):
        ahead = release.listing.bound.removeprefix("at most ")
        notice = f"an item left out may be ahead of an item on the list by {ahead}"
        return {"withheld": f"{_capitalize(_TOO_NOISY)}: {notice}."}
    return describe_list(release, _find_earlier(chart, before, group))


def _find_earlier(chart: Chart, before: Edition | None, group: Any) -> Earlier | None:
    """Return the list of the same group in the edition before; None if that edition shows no such list."""
    if before is None or before.period is None:
        return None
    release: Any = before.release
    if isinstance(release, GroupedRelease) != (group is not None):
        return None
    if isinstance(release, GroupedRelease):
        release = release.releases.get(group)
    if release is None or is_withheld(chart, release):
        return None
    return Earlier(release, name_period(before.period))


def _list_terms(release: Any) -> dict[str, str]:
    """Return the terms of a release that a page names if they have changed."""
    asked, guarantee = getattr(release, "asked", None), release.guarantee
    return {
        "k": str(release.k if asked is None else asked),
        "epsilon": round_up(guarantee.epsilon),
        "mechanism": repr(guarantee.mechanism),
        "counts": "with" if guarantee.counts_epsilon else "without",
    }


def describe_list(release: Release, earlier: Earlier | None) -> dict[str, Any]:
    """Return the values of `list.html`: the rows of a list, and the items that came and went since the one before."""
    came = [] if earlier is None else _find_missing(release.items, earlier.release.items)
    went = [] if earlier is None else _find_missing(earlier.release.items, release.items)
    new = {sort_key(item) for item in came}
    earlier_counts = None if earlier is None else earlier.release.counts
    caption = f"{describe_size(release)}, {release.listing.describe_order()}."
    if release.counts is not None:
        caption += " The line over a bar is where the number without noise lies, with a chance of at least 95%."
    view = {
        "withheld": None,
        "caption": caption,
        "shortfall": " ".join(release.describe_shortfall()),
        "is_ordered": release.order is not None,
        "has_counts": release.counts is not None,
        "has_earlier_counts": earlier_counts is not None,
        "earlier": None if earlier is None else earlier.name,
        "came": [printable(item) for item in came],
        "went": [printable(item) for item in went],
    }
    if release.counts is None:
        items = release.items if release.order is None else release.order
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
                "value": count_with_commas(count.value),
                "interval": f"{count_with_commas(count.low)} to {count_with_commas(count.high)}",
                "before": count_with_commas(before[key].value) if key in before else None,
            }
        )
    return {**view, "rows": rows}


def name_period(period: str | None) -> str:
    """Return a period in words, and an empty text for None.

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


def _find_missing(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Return the items that are not among others; labels are compared as in a release."""
    known = {sort_key(item) for item in others}
    return [item for item in items if sort_key(item) not in known]


def _capitalize(text: str) -> str:
    # str.capitalize would turn all other letters into small ones.
    return text[:1].upper() + text[1:]
