"""Sort the points of a study into pictures and draw each one with matplotlib.

A picture has one panel per goal for one figure, one vector and one k. Every method has one of eleven colours and one of
four dash patterns: eleven and four have no common factor, so 44 methods differ in one of the two. Every curve also has
a marker, its name in a legend, and its name beside it if there is room.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, groupby, pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.exact.arrays import Floats
from discreet.mechanisms.canonical import Canonical
from discreet.release.theme import Theme, check_matplotlib, themed
from discreet.study.curves import FIGURES, STEP, Figure, Point, Results
from discreet.text import decimal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

GOAL_TITLES = {
    "top": ("TOP", "exactly the k best"),
    "great": ("GREAT", "best k/10 in, none past rank 1.1 k"),
    "good": ("GOOD", "best k/100 in, none past rank 1.5 k"),
    "optimal": ("OPTIMAL", "a best k, however ties are broken"),
    "recall": ("RECALL", "the expected share of right items"),
}

DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (8, 2, 1.5, 2)))
MARKERS = "os^DvPX<>ph*d"

_SETTINGS: dict[Any, Any] = {
    "axes.titlesize": 10, "axes.titleweight": "normal", "font.size": 9, "legend.fontsize": 9, "legend.handlelength": 4,
}  # fmt: skip
"""The settings of matplotlib that curves have beside those of the theme."""

_PANEL = (4.2, 2.9)
"""The width and height of a panel in inches."""

SHOWN_ERROR = 0.005
"""Errors up to this size are narrower than the line of a curve and get no band."""

_SEEN = 0.011
"""Points that differ by less than this share of the axis, about four pixels, are joined however high the step is."""

_CROWDED = 0.1
"""A linear axis becomes logarithmic if more than half of the curves reach one half in this share of it, at the left."""

_LEVELS = (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8, 0.12, 0.88, 0.08, 0.92)
"""The probabilities at which a curve may have its name beside it; the first one with room is taken."""

_LABEL_GAP = 5
"""The pixels between a curve and its name: enough for a marker."""

_FOOT = 0.12
"""The room below zero for the value of a marked point, where no curve is."""

_GAMMA = re.compile(r"\bgamma = (\d+(?:/[1-9]\d*|\.\d+)?)(?![\d./])")


@dataclass(frozen=True)
class Picture:
    """The curves of one figure for one vector and one k.

    Attributes
    ----------
    figure, vector, d, k
        The values that all its points share.
    is_logarithmic
        True for a logarithmic horizontal axis, which shows the points at positive places.
    low, high
        The ends of the horizontal axis, the same for all goals so that they can be compared.
    methods
        All methods of the figure, gammas in ascending order, so that a method looks the same in every picture.
    curves
        The points of each method from left to right, by goal.
    marks
        Points to draw a circle around.
    share
        None if recall is the expected share of right items; otherwise recall is the probability of this share.
    """

    figure: Figure
    vector: str
    d: int
    k: int
    is_logarithmic: bool
    low: float
    high: float
    methods: list[str]
    curves: dict[str, dict[str, list[Point]]]
    marks: list[Point]
    share: Fraction | None = None

    @property
    def points(self) -> list[Point]:
        """All points, by goal, then by method, then from left to right."""
        return [point for goal in self.curves.values() for curve in goal.values() for point in curve]

    @property
    def subject(self) -> str:
        """The vector, its number of items and k, in words."""
        return f"{self.vector}, {self.d:,} items, k = {self.k:,}"

    @property
    def description(self) -> str:
        """The picture in words: for each curve, the place where it reaches one half."""
        told = []
        for goal, curves in self.curves.items():
            told.append(f"{GOAL_TITLES[goal][0]} for {self.vector}, k = {self.k}")
            for method, curve in curves.items():
                x = next((point.x for point in curve if point.probability >= 0.5), None)
                place = f"reaches one half by {self.figure.axis} = {x:.3g}" if x is not None else "stays below one half"
                told.append(f"{method} {place}")
        return ". ".join(told)

    def draw(self, dark: bool = False, notes: Sequence[str] = ()) -> Canvas:
        """Return the figure: at most two panels in a row, a title above, a legend in the room left, and notes below."""
        with themed(dark, _SETTINGS) as theme, warnings.catch_warnings():
            from discreet.release.plots import TITLE, Canvas, fill_notes

            # Names may have letters that no font here has; `render` says it once.
            warnings.filterwarnings("ignore", message="Glyph")
            goals, looks = list(self.curves), style_curves(self.methods, theme)
            count, shown = len(goals), {method for curves in self.curves.values() for method in curves}
            rows, columns = (count + 1) // 2, min(count, 2)
            width, height = _PANEL[0] * 2, _PANEL[1] * (rows if count > 1 else 1.35)
            canvas = Canvas(figsize=(width, height), layout="constrained")
            canvas.suptitle(self.subject, **TITLE)
            if notes:
                canvas.supxlabel(fill_notes(notes, width), x=0.01, ha="left", fontsize=8.5, color=theme.quiet)
            grid = list(canvas.subplots(rows, columns, squeeze=False).flat)
            for axes, goal in zip(grid, goals, strict=False):
                draw_panel(axes, self, goal, looks, theme)
            lines = {line.get_label(): line for line in chain.from_iterable(axes.lines for axes in grid)}
            methods = [method for method in self.methods if method in shown]
            handles = [lines[method] for method in methods]
            if count == 1:
                canvas.legend(handles, methods, loc="outside right upper")
            elif count % 2:
                grid[-1].set_axis_off()
                grid[-1].legend(handles, methods, loc="center left")
            else:
                # A row has room for about 108 letters; the sample of a line takes 12 of them.
                ncols = max(1, min(3, 108 // (max(map(len, methods)) + 12)))
                canvas.legend(handles, methods, loc="outside lower left", ncols=ncols)
            _label_curves(canvas, grid[:count])
        return canvas

    def draw_in(self, ax: Any, dark: bool, notes: Sequence[str]) -> Any:
        """Draw the panel of the only goal in the caller's axes, with a legend at its right; return the whole figure."""
        [goal] = self.curves
        with themed(dark, _SETTINGS) as theme:
            from discreet.release.plots import entitle, figure_of, open_axes, write_below

            axes = open_axes(ax, 0, theme)
            draw_panel(axes, self, goal, style_curves(self.methods, theme), theme)
            entitle(axes, theme, f"{self.subject}\n{axes.get_title(loc='left')}")
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=7, handlelength=2.5, borderaxespad=0)
            write_below(axes, theme, notes, self.figure.axis)
            return figure_of(axes)

    @cached_property
    def svg(self) -> str:
        """The drawing as SVG."""
        check_matplotlib()
        from discreet.release.plots import render

        return render(self.draw(), "svg", f"{self.figure.title}: {self.subject}").decode()


def pictures_of(results: Results, share: Fraction | None = None) -> list[Picture]:
    """Return the pictures of all figures that have points, not drawn yet; `share` is that of their recall."""
    pictures = []
    for key, figure in FIGURES.items():
        points = [point for point in results.points if point.figure == key]
        methods = sort_by_gamma(list(dict.fromkeys(point.method for point in points)))
        # One scale for all pictures of a figure, so that they can be compared.
        is_logarithmic = figure.logarithmic or is_crowded(points)
        for vector, k in dict.fromkeys((point.vector, point.k) for point in points):
            own = sorted((point for point in points if (point.vector, point.k) == (vector, k)), key=lambda one: one.x)
            goals = sorted({point.goal for point in own}, key=list(GOAL_TITLES).index)
            curves: dict[str, dict[str, list[Point]]] = {goal: {} for goal in goals}
            for goal, method in product(goals, methods):
                if curve := [point for point in own if (point.goal, point.method) == (goal, method)]:
                    curves[goal][method] = curve
            marks = [mark for mark in results.marks if (mark.figure, mark.vector, mark.k) == (key, vector, k)]
            places = [point.x for point in own if point.x > 0 or not is_logarithmic]
            ends = places[0], places[-1]
            pictures.append(Picture(figure, vector, own[0].d, k, is_logarithmic, *ends, methods, curves, marks, share))
    return pictures


def is_crowded(points: Sequence[Point]) -> bool:
    """Return True if, for some vector and k, most curves reach one half in the left tenth of a linear axis."""

    def subject(point: Point) -> tuple[str, int]:
        return point.vector, point.k

    for _, group in groupby(sorted(points, key=subject), key=subject):
        own = sorted(group, key=lambda point: point.x)
        left = own[0].x + _CROWDED * (own[-1].x - own[0].x)
        halves: dict[tuple[str, str], float] = {}
        for point in own:
            if point.probability >= 0.5:
                halves.setdefault((point.goal, point.method), point.x)
        if 2 * sum(x < left for x in halves.values()) > len(halves):
            return True
    return False


def read_gamma(method: str) -> Fraction | None:
    """Return the gamma in the name of a method, or None if the name has none."""
    found = _GAMMA.search(method)
    return None if found is None else Fraction(found[1])


def sort_by_gamma(methods: Sequence[str]) -> list[str]:
    """Return the methods in their order, with those that have a gamma sorted by it among their own places."""
    gammas = {method: gamma for method in methods if (gamma := read_gamma(method)) is not None}
    ranked = iter(sorted(gammas, key=lambda method: gammas[method]))
    return [next(ranked) if method in gammas else method for method in methods]


def style_curves(methods: Sequence[str], theme: Theme) -> dict[str, dict[str, Any]]:
    """Return the colour, the dashes and the marker of each method of a figure, as arguments of `Axes.plot`."""
    return {
        method: {
            "color": theme.curves[i % len(theme.curves)],
            "linestyle": DASHES[i % len(DASHES)],
            "marker": MARKERS[i % len(MARKERS)],
        }
        for i, method in enumerate(methods)
    }


def trace_line(picture: Picture, curve: Sequence[Point]) -> tuple[Floats, Floats, Floats]:
    """Return the x, the probability and the error along a curve as it is drawn.

    The curve goes on level to both ends of the axis: it was followed until it changed no more. A NaN stands between
    two points if a straight line would hide a step.
    """
    shown = [point for point in curve if point.x >= picture.low]
    points = [replace(shown[0], x=picture.low), *shown, replace(shown[-1], x=picture.high)]
    line: Floats = np.array([(point.x, point.probability, point.error) for point in points], dtype=float).T
    places = np.log10(line[0]) if picture.is_logarithmic else line[0]
    is_wide = np.diff(places) > _SEEN * (places[-1] - places[0])
    steps = np.flatnonzero(is_wide & (np.abs(np.diff(line[1])) > STEP)) + 1
    x, probability, error = np.insert(line, steps, np.nan, axis=1)
    return x, probability, error


def draw_panel(axes: Axes, picture: Picture, goal: str, looks: dict[str, dict[str, Any]], theme: Theme) -> None:
    """Draw the curves of one goal, thick those that are marked."""
    from matplotlib.ticker import LogLocator, PercentFormatter

    name, meaning = GOAL_TITLES[goal]
    marks = [mark for mark in picture.marks if mark.goal == goal]
    main = [mark.method for mark in marks] or [Canonical().label]
    is_share = goal == "recall" and picture.share is None
    if goal == "recall" and picture.share is not None:
        meaning = f"{decimal(picture.share)} of the list is right, or more"
    axes.set_title(f"{name}: {meaning}")
    axes.set(xlabel=picture.figure.axis, ylabel="expected share" if is_share else "probability")
    axes.set(ylim=(-_FOOT if marks else -0.03, 1.03), yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    if picture.is_logarithmic:
        digits = (1.0, 2.0, 5.0) if picture.high <= 100 * picture.low else (1.0,)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=digits, numticks=7))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    if picture.high > picture.low:
        axes.set_xlim(picture.low, picture.high)
    for method, curve in picture.curves[goal].items():
        x, y, error = trace_line(picture, curve)
        if np.nanmax(error) > SHOWN_ERROR:
            low, high = np.maximum(y - error, 0), np.minimum(y + error, 1)
            axes.fill_between(x, low, high, color=looks[method]["color"], alpha=0.16, linewidth=0)
        # Curves have their markers at different places, so that curves that coincide can still be told apart.
        first = 0.013 * picture.methods.index(method)
        # The main curve is thick and solid.
        look = {**looks[method], "linewidth": 1.4}
        if method in main:
            look |= {"linestyle": "-", "linewidth": 2.6}
        axes.plot(x, y, **look, label=method, markersize=4.5, markevery=(first, 0.17))
        gaps = np.isnan(np.concatenate([[np.nan], y, [np.nan]]))
        alone = gaps[:-2] & gaps[2:] & ~gaps[1:-1]
        axes.plot(x[alone], y[alone], **{**looks[method], "linestyle": "none"}, markersize=4.5)
    for mark in marks:
        axes.plot([mark.x, mark.x], [-_FOOT, mark.probability], color=theme.quiet, linewidth=0.8)
        circle: dict[str, Any] = {"marker": "o", "markersize": 10, "markeredgewidth": 2, "markerfacecolor": theme.paper}
        axes.plot(mark.x, mark.probability, color=looks[mark.method]["color"], **circle)
        # The value stands below all curves, beside the line, on the side that has more room.
        side, shift = ("right", -5) if mark.x > picture.low**0.4 * picture.high**0.6 else ("left", 5)
        axes.annotate(
            f"{picture.figure.axis} = {mark.x:.4g}",
            (mark.x, -_FOOT / 2),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontweight="bold",
        )


def _label_curves(canvas: Canvas, panels: Sequence[Axes]) -> None:
    """Write the name of each curve beside it, unless it would touch a curve, other words or an end of the axes."""
    from matplotlib.transforms import Bbox

    # The panels take their places and keep them: a name needs no room of its own.
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    for axes in panels:
        frame, (bottom, top) = axes.get_window_extent(), axes.get_ylim()
        taken = [text.get_window_extent() for text in axes.texts]
        paths = {line: line.get_path().transformed(axes.transData).cleaned(remove_nans=True) for line in axes.lines}
        for line, path in paths.items():
            if str(line.get_label()).startswith("_"):
                continue
            # The legend has the whole name.
            name = str(line.get_label()).removeprefix("canonical, ")
            text = axes.text(0, 0, name, color=line.get_color(), fontsize=8, va="center")
            width, height = text.get_window_extent().width + _LABEL_GAP, text.get_window_extent().height
            for level, side in product(_LEVELS, ("left", "right")):
                y = frame.y0 + (level - bottom) / (top - bottom) * frame.height
                # The box begins at the curve, so that no other curve is between them. The curve rises: on its right the
                # upper edge of the box is nearest, on its left the lower edge.
                nearest = y + height / 2 if side == "left" else y - height / 2
                x = _cross(np.asarray(path.vertices, dtype=float), nearest)
                if x is None:
                    continue
                box = Bbox.from_bounds(x + 2 if side == "left" else x - 2 - width, y - height / 2, width, height)
                is_inside = frame.x0 + 2 <= box.x0 and box.x1 <= frame.x1
                is_free = not any(other.intersects_bbox(box, filled=False) for other in paths.values())
                if is_inside and is_free and not any(other.overlaps(box.padded(4)) for other in taken):
                    edge = box.x0 + _LABEL_GAP if side == "left" else box.x1 - _LABEL_GAP
                    text.set(position=axes.transData.inverted().transform((edge, y)), ha=side)
                    taken.append(box)
                    break
            else:
                text.remove()


def _cross(line: Floats, level: float) -> float | None:
    """Return the place at which a line first crosses a level upwards, or None."""
    for (x, y), (next_x, next_y) in pairwise(line):
        if y < level <= next_y:
            return float(x + (next_x - x) * (level - y) / (next_y - y))
    return None
