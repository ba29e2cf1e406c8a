"""Draw releases and sketches with matplotlib; imported by the `plot` methods alone, because matplotlib is optional.

A list with counts becomes bars with intervals. A list without an order becomes a field of equal chips, and only a
released order is numbered, so that no place looks like a rank.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, partial
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubplotParams
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.labels import sort_key
from discreet.language import ENGLISH, Language
from discreet.release.grouped import name_group
from discreet.release.release import Listing, describe_cost
from discreet.release.theme import FONTS_WANTED, Theme, themed
from discreet.text import printable, shorten

if TYPE_CHECKING:
    from discreet.release.grouped import GroupedRelease
    from discreet.release.release import Release
    from discreet.release.sketch import Sketch

WIDTH = 7.2
"""The width of a picture in inches."""

ROW = 0.27
"""The height of a bar or a chip with its gap, in inches."""

MOST_ITEMS = 1000
"""The largest number of items in a picture: its height then stays below the limits of PNG files and of readers."""

MOST_PANELS = 150
"""The largest number of groups in a picture, for the same reason."""

_LETTERS, _SMALL_LETTERS = 12, 16
"""The letters that fit one inch, of names in chips and of the small print below a picture."""

_COLUMN = 10
"""So many names without counts stand in one column before a second one begins."""

_LONGEST = 40
"""A longer name is cut in the middle."""

_SHORTEST = 12
"""A name is cut to no fewer letters than this."""

_NAMED = 20
"""Panels with bars stand in one column if a name is longer than this, because bars beside it would be too short."""

_TICK_LETTER, _TICK_GAP = 6.0, 9.0
"""The width of a letter below a tick and the least gap between two labels, in points: digits are 5.7 wide at size 9."""

_NARROWEST = 1.5
"""In axes of fewer inches than this, a title and notes are as wide as this."""

_LARGEST = 10**300
"""Larger numbers have no float to draw them by."""

_DPI = 150

TITLE: dict[str, Any] = {"x": 0.01, "ha": "left", "fontsize": 11, "fontweight": "bold"}
"""The style of the title above a figure."""


class Canvas(Figure):
    """A figure that a notebook shows, also where nothing has set up matplotlib for it."""

    def _repr_png_(self) -> bytes:
        return render(self, "png")


def render(figure: Figure, ending: str, title: str | None = None, identifier: str | None = None) -> bytes:
    """Return a figure as the content of a PNG, SVG or PDF file, the same for the same figure.

    A title and, for PNG and SVG, an identifier go into the metadata.
    """
    # No date, so that the file is the same.
    metadata: dict[str, str | None] = {"Creator": "discreet", "Date": None}
    if ending == "png":
        metadata = {"Software": "discreet"}
    elif ending == "pdf":
        metadata = {"Creator": "discreet", "CreationDate": None}
    if title is not None:
        metadata["Title"] = title
    if identifier is not None:
        metadata["Identifier"] = identifier
    content = io.BytesIO()
    with themed(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        paper = figure.get_facecolor()
        figure.savefig(content, format=ending, metadata=metadata, dpi=_DPI, facecolor=paper)
    # matplotlib names each letter of an item; in an SVG file letters are text, which the reader's fonts show.
    if ending != "svg" and any(str(each.message).startswith("Glyph") for each in caught):
        _warn_of_missing_letters()
    for each in caught:
        if not str(each.message).startswith("Glyph"):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return content.getvalue()


@cache
def _warn_of_missing_letters() -> None:
    """Warn once in a process."""
    warnings.warn(f"pictures have boxes in place of letters that no font here has: {FONTS_WANTED}", stacklevel=3)


def open_axes(ax: Any, height: float, theme: Theme) -> Axes:
    """Return the axes of a new figure of a height in inches, or those that the caller gave, with the looks of a theme.

    A figure of the caller's whose layout nobody chose gets the constrained one, which makes room for names and notes.
    """
    if ax is None:
        return Canvas(figsize=(WIDTH, height), layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise InvalidTypeError(f"ax must be the axes of matplotlib to draw in, not {quote(ax)}")
    figure = figure_of(ax)
    if figure.get_layout_engine() is None and vars(figure.subplotpars) == vars(SubplotParams()):
        figure.set_layout_engine("constrained")
    ax.set_facecolor(theme.paper)
    for side, spine in ax.spines.items():
        spine.set(edgecolor=theme.quiet, visible=side not in ("top", "right"))
    ax.set_axisbelow(True)
    ax.grid(visible=True, color=theme.grid)
    ax.tick_params(color=theme.quiet, labelcolor=theme.ink, labelfontfamily=rcParams["font.family"])
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(theme.ink)
    return ax


def figure_of(axes: Axes) -> Any:
    """Return the whole figure of some axes, which may be in a part of it."""
    return axes.figure.canvas.figure


def entitle(axes: Axes, theme: Theme, title: str, warning: str = "") -> None:
    """Write a title above the figure if it is discreet's own, else above the axes; a warning makes all of it red."""
    figure, lines = figure_of(axes), [each for each in (warning, title) if each]
    colour = theme.warn if warning else theme.ink
    if isinstance(figure, Canvas):
        figure.suptitle("\n".join(fill(line, 74) for line in lines), **TITLE, color=colour)
    else:
        _wrap(axes.set_title("\n".join(lines), fontsize=11, loc="left", fontweight="bold", color=colour), axes)


def _wrap(text: Text, axes: Axes) -> None:
    """Wrap a text to the width that the axes have when it is drawn; matplotlib itself wraps to that of the figure."""
    text.set_wrap(True)
    text._get_wrap_line_width = partial(_measure, axes)  # type: ignore[attr-defined]  # private, and older than 3.9


def _measure(axes: Axes) -> float:
    """Return the width of axes in pixels, or the least one that text is wrapped to."""
    return float(max(axes.get_window_extent().width, _NARROWEST * figure_of(axes).dpi))


def add_heading(figure: Figure, heading: str) -> None:
    """Write a heading above the title of a figure of discreet's own, which becomes taller by it."""
    lines = fill(printable(heading), 74)
    with themed():
        title = figure.suptitle(f"{lines}\n{figure.get_suptitle()}", **TITLE)
    title.set_parse_math(False)
    figure.set_figheight(figure.get_figheight() + 0.2 * (lines.count("\n") + 1))


def write_below(axes: Axes, theme: Theme, notes: Iterable[str], label: str = "") -> None:
    """Write the label of the horizontal axis and, below it, notes in small print, a paragraph each."""
    figure = figure_of(axes)
    small: dict[str, Any] = {"fontsize": 8.5, "color": theme.quiet}
    if isinstance(figure, Canvas):
        axes.set_xlabel(label, **small)
        figure.supxlabel(fill_notes(notes, WIDTH), x=0.01, ha="left", **small)
    else:
        # In somebody else's figure there is no other place than the axes' own.
        lines = [*([label] if label else []), *map(_capitalize, notes)]
        _wrap(axes.set_xlabel("\n".join(lines), loc="left", **small), axes)


def fill_notes(notes: Iterable[str], width: float) -> str:
    """Return notes as lines of small print of a width in inches, each note beginning with a capital."""
    return "\n".join(fill(_capitalize(note), max(20, round(_SMALL_LETTERS * width))) for note in notes)


def _capitalize(note: str) -> str:
    # str.capitalize would turn all other letters into small ones.
    return note[:1].upper() + note[1:]


def draw_release(release: Release, ax: Any = None, dark: bool = False, language: Language = ENGLISH) -> Any:
    """Return a figure of a release: bars for counts, numbered names for an order, else chips."""
    check_size(release.k)
    with themed(dark) as theme:
        warning, notes = _describe(release, describe_cost(release.guarantee, language=language), language)
        width = ax.get_window_extent().width / figure_of(ax).dpi if isinstance(ax, Axes) else WIDTH
        across, rows = _arrange(release.listing, width)
        axes = open_axes(ax, ROW * max(rows, 1) + 0.9 + 0.2 * len(notes), theme)
        entitle(axes, theme, release.title(language), warning)
        # Names stand beside bars, and leave them some of the width in small axes of the caller.
        longest = min(_LONGEST, max(_SHORTEST, int(0.6 * _LETTERS * width)))
        _draw_listing(axes, release.listing, theme, across, rows, language, longest)
        label = "" if release.counts is None else language.text("picture.interval")
        write_below(axes, theme, notes, label)
        return figure_of(axes)


def _describe(release: Release | GroupedRelease, cost: str, language: Language) -> tuple[str, list[str]]:
    """Return the warning above a release, which is empty if it is private, and the notes below it."""
    warning, remarks = language.text("note.not_private"), release.remarks(language)
    if not release.private:
        # It promises nothing, so it has no cost.
        return warning, [*release.describe_shortfall(language), *(each for each in remarks if each != warning)]
    return "", [*release.describe_shortfall(language), cost, *remarks]


def draw_groups(release: GroupedRelease, dark: bool = False, language: Language = ENGLISH) -> Any:
    """Return a figure with a panel for each group; bars of all groups share one scale."""
    shown: dict[Any, Listing] = {}
    for group, each in release.items():
        listing = each.make_listing(language)
        items = sum(len(one.items) for one in shown.values()) + len(listing.items)
        if shown and (items > MOST_ITEMS or len(shown) == MOST_PANELS):
            break
        shown[group] = listing
    check_size(len(next(iter(shown.values())).items))
    with themed(dark) as theme:
        has_counts = any(listing.counts is not None for listing in shown.values())
        longest = max(len(name) for listing in shown.values() for name in ["", *_spell_items(listing.items)])
        # Three columns of short names, two of bars, and fewer where names are long.
        fitting = (1 if longest > _NAMED else 2) if has_counts else _count_columns(longest, WIDTH)
        columns = min(len(shown), fitting, 3)
        plans = {group: _arrange(listing, WIDTH / columns) for group, listing in shown.items()}
        tall = [max(rows for _, rows in list(plans.values())[i : i + columns]) for i in range(0, len(shown), columns)]
        # Constrained layout makes no room for a heading at the right; names of items stand at the left of bars.
        letters = max(12, int(_LETTERS * WIDTH / columns) - (longest if has_counts else 0))
        headings = {
            group: fill(
                shorten(name_group(group), 90 // columns) + (f" ({listing.bound})" if listing.bound else ""), letters
            )
            for group, listing in shown.items()
        }
        more_lines = [each.count("\n") for each in headings.values()]
        heights = [
            ROW * max(rows, 1) + 0.75 + 0.18 * max(more_lines[i * columns : (i + 1) * columns])
            for i, rows in enumerate(tall)
        ]
        warning, notes = _describe(release, release.describe_cost(language), language)
        if has_counts:
            notes.insert(0, language.text("picture.interval"))
        if more := len(release) - len(shown):
            notes.append(language.text("picture.more_groups", count=more))
        figure = Canvas(figsize=(WIDTH, sum(heights) + 0.5 + 0.2 * len(notes)), layout="constrained")
        # The number at the end of a bar stays apart from the names of the panel at its right.
        figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]  # that of the line above
        grid = figure.subplots(
            len(heights), columns, squeeze=False, sharex=has_counts, gridspec_kw={"height_ratios": heights}
        )
        for axes, (group, listing) in zip(grid.flat, shown.items(), strict=False):
            axes.set_title(headings[group], fontsize=10)
            _draw_listing(axes, listing, theme, *plans[group], language)
            axes.tick_params(labelbottom=has_counts)
        entitle(grid[0, 0], theme, release.title(language), warning)
        for axes in list(grid.flat)[len(shown) :]:
            axes.set_visible(False)
        figure.supxlabel(fill_notes(notes, WIDTH), x=0.01, ha="left", fontsize=8.5, color=theme.quiet)
        return figure


def draw_sketch(sketch: Sketch, ax: Any = None, dark: bool = False, language: Language = ENGLISH) -> Any:
    """Return a figure of a sketch: its noisy scores with intervals, and the curve that stands in for the scores."""
    with themed(dark) as theme:
        axes = open_axes(ax, 4.2, theme)
        half, tally = float(sketch.half_width), sketch.tally()
        noisy = np.array([_to_float(score) for score in sketch.noisy])
        last = sketch.ranks[-1] if sketch.domain_size is None else sketch.domain_size
        along = sorted({*sketch.ranks, *(min(last, round(rank)) for rank in np.geomspace(1, last, 300).tolist())})
        axes.plot(along, [float(tally.exact(rank - 1)) for rank in along], color=theme.curves[1], linewidth=1.8)
        axes.errorbar(sketch.ranks, noisy, yerr=half, fmt="o", color=theme.ink, markersize=4, capsize=3, linewidth=1)
        axes.set_xscale("log")
        if noisy.min() > 0 and noisy.max() > 50 * noisy.min():
            axes.set_yscale("log", nonpositive="clip")
            # Intervals that reach zero have no end on this axis.
            axes.set_ylim(noisy.min() / 3)
        axes.xaxis.set_major_formatter(lambda x, _: language.number(f"{x:,.0f}"))
        axes.yaxis.set_major_formatter(lambda x, _: language.number(f"{x:,.10g}"))
        cost, *doubt = sketch.describe_terms(language)
        entitle(axes, theme, sketch.title(language), " ".join(doubt))
        axes.set_ylabel(language.text("curve.score"))
        write_below(axes, theme, [cost] if sketch.private else [], language.text("curve.rank"))
        return figure_of(axes)


def check_size(items: int) -> None:
    """Raise if a list is too long to draw."""
    if items > MOST_ITEMS:
        raise InvalidValueError(
            f"k must be at most {MOST_ITEMS:,} for a picture, not {items:,}: to_frame has all items"
        )


def _arrange(listing: Listing, width: float) -> tuple[int, int]:
    """Return the number of columns and rows of a list in a panel of a width in inches."""
    count = len(listing.items)
    if listing.counts is not None or not count:
        return 1, count
    longest = max(map(len, _spell_items(listing.items)))
    across = min(4, ceil(count / _COLUMN), _count_columns(longest, width))
    return across, ceil(count / across)


def _count_columns(longest: int, width: float) -> int:
    """Return the number of columns of names of at most so many letters that fit a width in inches, at least one."""
    return max(1, int(_LETTERS * width / (longest + 3)))


def _draw_listing(
    axes: Axes, listing: Listing, theme: Theme, across: int, rows: int, language: Language, longest: int = _LONGEST
) -> None:
    if listing.counts is not None and listing.counts:
        _draw_bars(axes, listing, listing.counts, theme, language, longest)
        return
    axes.set(xlim=(0, across), ylim=(max(rows, 1) - 0.5, -0.5), xticks=[], yticks=[])
    axes.set_frame_on(False)
    if not rows:
        axes.text(0, 0, language.text("list.empty"), color=theme.quiet, va="center")
    chip = {"boxstyle": "round,pad=0.3", "facecolor": theme.grid, "edgecolor": theme.quiet, "linewidth": 0.6}
    numbered = listing.order is not None
    for place, name in enumerate(_spell_items(listing.items if listing.order is None else listing.order)):
        # Columns are read downwards, as the names of a dictionary are.
        column, row = divmod(place, rows)
        # The points of all numbers stand below each other.
        words = f"{place + 1:\N{FIGURE SPACE}>{len(str(len(listing.items)))}}.  {name}" if numbered else name
        axes.text(column + 0.03, row, words, va="center", fontsize=10, bbox=None if numbered else chip)


def _draw_bars(
    axes: Axes, listing: Listing, counts: Sequence[Any], theme: Theme, language: Language, longest: int
) -> None:
    """Draw a bar from zero for each count, its interval over it and its number beside it."""
    places = {sort_key(item): place for place, item in enumerate(listing.order or [], 1)}
    rows = range(len(counts))
    value, low, high = ([_to_float(getattr(count, end)) for count in counts] for end in ("value", "low", "high"))
    axes.barh(rows, value, height=0.66, color=theme.bar, edgecolor=theme.mark, linewidth=0.6)
    ends = [np.subtract(value, low), np.subtract(high, value)]
    axes.errorbar(value, rows, xerr=ends, fmt="none", ecolor=theme.mark, elinewidth=1.5, capsize=3, capthick=1.5)
    axes.axvline(0, color=theme.quiet, linewidth=0.8)
    for row, count in enumerate(counts):
        write_beside(axes, theme, str(language.spell(count.value)), max(high[row], 0.0), row)
    names = _spell_items([count.item for count in counts], longest)
    if listing.order is not None:
        order = [language.text("site.place", place=places[sort_key(count.item)]) for count in counts]
        names = [f"{name} ({place})" for name, place in zip(names, order, strict=True)]
    axes.set_yticks(rows, names, fontsize=10)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(counts) - 0.4, -0.6)
    # Room for the numbers at the end of the bars.
    axes.margins(x=0.18)
    axes.xaxis.set_major_formatter(lambda x, _: language.number(f"{x:,.10g}"))
    axes.xaxis.set_major_locator(_FittingLocator())
    axes.tick_params(axis="x", labelsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


class _FittingLocator(MaxNLocator):
    """Round numbers along a horizontal axis, as many as have room for their labels, at most four steps."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = sorted((vmin, vmax))
        axis: Any = self.axis
        axes = axis.axes
        points = axes.get_window_extent().width / figure_of(axes).dpi * 72
        for steps in (4, 3, 2, 1):
            self.set_params(nbins=steps)
            ticks = [tick for tick in super().tick_values(vmin, vmax) if low <= tick <= high]
            labels = [axis.major.formatter(tick, None) for tick in ticks]
            needed = max(map(len, labels), default=0) * _TICK_LETTER + _TICK_GAP
            if len(ticks) < 2 or (ticks[1] - ticks[0]) / (high - low) * points >= needed:
                return np.array(ticks)
        # Bars begin at zero, so an axis without room has that tick.
        return np.array([tick for tick in ticks if tick == 0][:1])


def write_beside(axes: Axes, theme: Theme, number: str, end: float, row: float) -> None:
    """Write a number at the end of a bar, in front of the grid lines."""
    box = {"facecolor": theme.paper, "edgecolor": "none", "pad": 1}
    axes.annotate(number, (end, row), (6, 0), textcoords="offset points", va="center", fontsize=9, bbox=box)


def _spell_items(items: Sequence[Any], longest: int = _LONGEST) -> list[str]:
    """Return the names of items; long ones are cut in the middle, and numbered where they would then be the same."""
    names = [printable(item) for item in items]
    cut = [_cut(name, longest) for name in names]
    total, seen = Counter(cut), Counter[str]()
    for place, name in enumerate(cut):
        if total[name] > 1 and name != names[place]:
            seen[name] += 1
            number = f" ({seen[name]})"
            cut[place] = _cut(names[place], longest - len(number)) + number
    return cut


def _cut(name: str, width: int) -> str:
    """Return a name of at most `width` letters, with "..." in its middle if it is longer."""
    if len(name) <= width:
        return name
    tail = width // 3
    return f"{shorten(name, width - tail)}{name[-tail:].lstrip()}"


def _to_float(number: Any) -> float:
    if abs(number) > _LARGEST:
        raise InvalidValueError("counts must be at most 10^300 in size for a picture")
    return float(number)
