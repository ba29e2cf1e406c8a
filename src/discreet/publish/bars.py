"""One list as a table that is a picture too: a row for each item, with a bar and an interval where it has a count.

The picture is SVG in the cells of the table, so that what a pointer, a screen reader, a printer and a narrow screen
find is one and the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from discreet.labels import sort_key
from discreet.publish.wording import items_missing_from, join_names
from discreet.release.release import Count, Release, describe_size
from discreet.text import count_with_commas, printable

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
