"""Sorts the points of a study into panels, and draws a panel as SVG.

A panel has the curves of one figure for one vector, one k and one goal. The same drawing stands in the page, where a
script adds what answers a pointer, and in the files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from html import escape
from itertools import pairwise

from discreet.mechanisms.canonical import Canonical
from discreet.study import theme
from discreet.study.curves import FIGURES, Figure, Point, Results
from discreet.study.line_labels import Box, LineLabel, place_labels, shorten_names

WIDTH, HEIGHT = 420, 290
LEFT, RIGHT, TOP, BOTTOM = PLOT = (46, 408, 40, 244)
GOAL_TITLES = {
    "top": ("TOP", "exactly the k best"),
    "great": ("GREAT", "best k/10 in, none past rank 1.1 k"),
    "good": ("GOOD", "best k/100 in, none past rank 1.5 k"),
    "optimal": ("OPTIMAL", "a best k, however ties are broken"),
    "recall": ("RECALL", "the share of the list that is right"),
}
_GOAL_PLACES = {goal: place for place, goal in enumerate(GOAL_TITLES)}
SHOWN_ERROR = 0.005
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MAIN = Canonical().label
_STEP, _SEEN = 0.3, 4.0
"""Between points that differ by more than a step and are further apart than this on the paper nothing is drawn."""


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: what it says, whether it is logarithmic, and where it begins and ends."""

    label: str
    logarithmic: bool
    low: float
    high: float

    def share(self, x: float) -> float:
        """How far x lies from the beginning of the axis to its end, as a share of its length."""
        low, high, here = (math.log10(v) if self.logarithmic else v for v in (self.low, self.high, x))
        return (here - low) / (high - low) if high > low else 0.5

    def ticks(self) -> list[float]:
        """The round numbers to write below the axis."""
        return _powers(self.low, self.high) if self.logarithmic else _steps(self.low, self.high)


@dataclass(frozen=True)
class Panel:
    """The curves of one figure for one vector, one k and one goal.

    Attributes
    ----------
    figure, vector, d, k, goal
        What all its points have in common.
    axis
        The same for all goals, so that they can be compared side by side.
    methods
        All methods of the figure, in the order of its points, gammas as numbers: the legend of every panel.
    curves
        The points of each method that is there, from left to right.
    marks
        Points to draw a circle around.
    """

    figure: Figure
    vector: str
    d: int
    k: int
    goal: str
    axis: Axis
    methods: list[str]
    curves: dict[str, list[Point]]
    marks: list[Point] = field(default_factory=list)


def panels_of(results: Results, figure: Figure) -> list[Panel]:
    """The panels of one figure, in the order of its points."""
    points = [point for point in results.points if point.figure == figure.key]
    methods = theme.sort_by_gamma(list(dict.fromkeys(point.method for point in points)))
    places = dict.fromkeys((point.vector, point.k) for point in points)
    panels = [
        panel
        for vector, k in places
        for panel in _goals(figure, methods, [point for point in points if (point.vector, point.k) == (vector, k)])
    ]
    return [replace(panel, marks=[mark for mark in results.marks if _is_in(mark, panel)]) for panel in panels]


def _is_in(point: Point, panel: Panel) -> bool:
    return (point.figure, point.vector, point.k, point.goal) == (panel.figure.key, panel.vector, panel.k, panel.goal)


def figures_of(results: Results) -> list[Figure]:
    """The figures that have points."""
    keys = {point.figure for point in results.points}
    return [figure for key, figure in FIGURES.items() if key in keys]


def _goals(figure: Figure, methods: list[str], points: list[Point]) -> list[Panel]:
    first, places = points[0], [point.x for point in points]
    axis = Axis(figure.axis, figure.logarithmic, min(places), max(places))
    return [
        Panel(figure, first.vector, first.d, first.k, goal, axis, methods, _curves(methods, points, goal))
        for goal in sorted({point.goal for point in points}, key=_GOAL_PLACES.__getitem__)
    ]


def _curves(methods: list[str], points: list[Point], goal: str) -> dict[str, list[Point]]:
    curves: dict[str, list[Point]] = {method: [] for method in methods}
    for point in sorted(points, key=lambda point: point.x):
        if point.goal == goal:
            curves[point.method].append(point)
    return {method: curve for method, curve in curves.items() if curve}


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 between them on a short axis and fewer of them on a long one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if high <= 100 * low else (1,)
    every = math.ceil((last - first + 1) / 7) if len(digits) == 1 else 1
    values = [digit * 10.0**power for power in range(first, last + 1) if power % every == 0 for digit in digits]
    inside = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    return inside if len(inside) > 1 else _steps(low, high)


def _steps(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten: at most six."""
    if high <= low:
        return [low]
    unit = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(unit * size for size in (1, 2, 5, 10) if (high - low) / (unit * size) <= 5 + 1e-9)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A round number as it stands below an axis."""
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    digit, power = f"{value:.0e}".split("e")
    return ("" if digit == "1" else digit + "·") + "10" + str(int(power)).translate(_SUPERSCRIPTS)


def tone(panel: Panel, method: str) -> str:
    """The class of a curve: its colour and dashes, and whether it is the one to look at."""
    main = [mark.method for mark in panel.marks] or [_MAIN]
    return theme.tone(panel.methods, method) + (" main" if method in main else "")


def svg(panel: Panel) -> str:
    """One panel as an element of a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" '
        f'aria-label="{escape(describe(panel))}">{draw(panel)}</svg>'
    )


def describe(panel: Panel) -> str:
    """A panel in words: where each curve has reached one half."""
    where = f"{GOAL_TITLES[panel.goal][0]} for {panel.vector}, k = {panel.k}"
    return ". ".join([where, *(f"{method} {_half(panel, curve)}" for method, curve in panel.curves.items())])


def draw(panel: Panel) -> str:
    """One panel as the content of an SVG element of `WIDTH` by `HEIGHT`."""
    name, meaning = GOAL_TITLES[panel.goal]
    title = f'<text class="strong" x="{LEFT}" y="20">{name}<tspan dx="8">{meaning}</tspan></text>'
    marks = [_mark(panel, mark) for mark in panel.marks]
    return "".join([title, _grid(panel), *_bands(panel), *_lines(panel), *_names(panel), *marks])


def traces(panel: Panel) -> dict[str, list[list[Point]]]:
    """The curves as they are drawn: on to both ends of the axis, in pieces where a step lies between two points.

    Beyond its points a curve is as it is at its end: it was followed until nothing changed any more.
    """
    return {method: _cut(panel, _reach_ends(panel, curve)) for method, curve in panel.curves.items()}


def _reach_ends(panel: Panel, curve: list[Point]) -> list[Point]:
    first, last = curve[0], curve[-1]
    before = [replace(first, x=panel.axis.low)] if first.x > panel.axis.low else []
    after = [replace(last, x=panel.axis.high)] if last.x < panel.axis.high else []
    return [*before, *curve, *after]


def _cut(panel: Panel, curve: list[Point]) -> list[list[Point]]:
    pieces = [curve[:1]]
    for one, other in pairwise(curve):
        is_wide = _across(panel, other.x) - _across(panel, one.x) > _SEEN
        if is_wide and abs(other.probability - one.probability) > _STEP:
            pieces.append([])
        pieces[-1].append(other)
    return pieces


def _mark(panel: Panel, mark: Point) -> str:
    """A circle around a point with a line down to the axis, and its epsilon beside it, where there is room."""
    x, y, left = _across(panel, mark.x), _down(mark.probability), panel.axis.share(mark.x) > 0.6
    which = f'class="chosen {tone(panel, mark.method)}" data-m="{panel.methods.index(mark.method)}"'
    text = f'<text class="strong halo" x="{x - 12 if left else x + 12:.1f}" y="{y + 16:.1f}"'
    return (
        f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{BOTTOM}"/>'
        f'<circle {which} cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        f'{text} text-anchor="{"end" if left else "start"}">{panel.axis.label} = {mark.x:.4g}</text>'
    )


def _mark_box(panel: Panel, mark: Point) -> Box:
    """The room that a mark and its epsilon take."""
    x, y, wide = _across(panel, mark.x), _down(mark.probability), 8.0 * len(f"{panel.axis.label} = {mark.x:.4g}") + 20
    return (x - wide, x + 8, y - 8, y + 22) if panel.axis.share(mark.x) > 0.6 else (x - 8, x + wide, y - 8, y + 22)


def _names(panel: Panel) -> list[str]:
    """The name of each curve beside it."""
    curves = {
        method: [[(_across(panel, point.x), _down(point.probability)) for point in piece] for piece in pieces]
        for method, pieces in traces(panel).items()
    }
    taken = [_mark_box(panel, mark) for mark in panel.marks]
    labels = place_labels(curves, shorten_names(panel.methods), (LEFT, RIGHT, TOP, BOTTOM), taken)
    return [_name(panel, label) for label in labels]


def _name(panel: Panel, label: LineLabel) -> str:
    which = f'{theme.tone(panel.methods, label.method)}" data-m="{panel.methods.index(label.method)}"'
    text = f'<text class="name halo {which} x="{label.x:.1f}" y="{label.y:.1f}" text-anchor="{label.anchor}">'
    return f"{_lead(label, which)}{text}{escape(label.text)}</text>"


def _lead(label: LineLabel, which: str) -> str:
    if label.lead is None:
        return ""
    (x1, y1), (x2, y2) = label.lead
    dot = f'<circle class="end {which} cx="{x1:.1f}" cy="{y1:.1f}" r="2"/>'
    return f'<line class="lead {which} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>{dot}'


def _half(panel: Panel, curve: list[Point]) -> str:
    x = next((point.x for point in curve if point.probability >= 0.5), None)
    return "stays below one half" if x is None else f"reaches one half by {panel.axis.label} = {x:.3g}"


def _grid(panel: Panel) -> str:
    rows = "".join(_row(percent) for percent in (0, 25, 50, 75, 100))
    columns = "".join(
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{BOTTOM}"/>'
        f'<text x="{x:.1f}" y="{BOTTOM + 17}" text-anchor="middle">{tick_text(value)}</text>'
        for value in panel.axis.ticks()
        for x in [_across(panel, value)]
    )
    label = f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 37}" text-anchor="middle">{escape(panel.axis.label)}</text>'
    return rows + columns + f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>' + label


def _row(percent: int) -> str:
    y = _down(percent / 100)
    return (
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text x="{LEFT - 7}" y="{y + 4}" text-anchor="end">{percent}%</text>'
    )


def _bands(panel: Panel) -> list[str]:
    """What the probability may be, around curves that were drawn and not computed."""
    bands = []
    for method, pieces in traces(panel).items():
        for curve in pieces:
            if all(point.error <= SHOWN_ERROR for point in curve):
                continue
            above = [_place(panel, point.x, min(1, point.probability + point.error)) for point in curve]
            below = [_place(panel, point.x, max(0, point.probability - point.error)) for point in curve]
            bands.append(_curve(panel, "polygon", "band", method, above + below[::-1]))
    return bands


def _lines(panel: Panel) -> list[str]:
    return [_line(panel, method, piece) for method, pieces in traces(panel).items() for piece in pieces]


def _line(panel: Panel, method: str, piece: list[Point]) -> str:
    """A piece of a curve: a line, or a dot where steps on both sides leave one point."""
    places = [_place(panel, point.x, point.probability) for point in piece]
    if len(piece) > 1:
        return _curve(panel, "polyline", "line", method, places)
    x, y = places[0].split(",")
    which = f'class="end {theme.tone(panel.methods, method)}" data-m="{panel.methods.index(method)}"'
    return f'<circle {which} cx="{x}" cy="{y}" r="2"/>'


def _curve(panel: Panel, shape: str, kind: str, method: str, places: list[str]) -> str:
    which = f'class="{kind} {tone(panel, method)}" data-m="{panel.methods.index(method)}"'
    return f'<{shape} {which} points="{" ".join(places)}"/>'


def _place(panel: Panel, x: float, probability: float) -> str:
    return f"{_across(panel, x):.1f},{_down(probability):.1f}"


def _across(panel: Panel, x: float) -> float:
    return LEFT + (RIGHT - LEFT) * panel.axis.share(x)


def _down(probability: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * probability
