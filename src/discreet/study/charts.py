"""Draws a panel as SVG: the same drawing in the page, where a script adds what answers a pointer, and in the files."""

from __future__ import annotations

from html import escape

from discreet.study.panels import Panel, tick_text
from discreet.study.results import Point
from discreet.study.theme import LIGHT

WIDTH, HEIGHT = 420, 290
LEFT, RIGHT, TOP, BOTTOM = PLOT = (46, 408, 40, 244)
GOAL_TITLES = {
    "top": ("TOP", "exactly the k best"),
    "great": ("GREAT", "best k/10 in, none past rank 1.1 k"),
    "good": ("GOOD", "best k/100 in, none past rank 1.5 k"),
}
SHOWN_ERROR = 0.005


def tone(panel: Panel, method: str) -> str:
    """The class of a curve: colours in order for gamma, which is a number, and colours to tell apart for names."""
    i, n = panel.methods.index(method), len(panel.methods)
    if panel.figure.key == "gammas":
        return f"r{round(10 * i / max(1, n - 1))}"
    return f"c{i % len(LIGHT.tones)}" + (" main" if method.casefold() == "canonical" else "")


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
    return "".join([title, _grid(panel), *_bands(panel), *_lines(panel)])


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
    for method, curve in panel.curves.items():
        if any(point.error > SHOWN_ERROR for point in curve):
            above = [_place(panel, point.x, min(1, point.probability + point.error)) for point in curve]
            below = [_place(panel, point.x, max(0, point.probability - point.error)) for point in curve]
            bands.append(_curve(panel, "polygon", "band", method, above + below[::-1]))
    return bands


def _lines(panel: Panel) -> list[str]:
    return [
        _curve(panel, "polyline", "line", method, [_place(panel, point.x, point.probability) for point in curve])
        for method, curve in panel.curves.items()
    ]


def _curve(panel: Panel, shape: str, kind: str, method: str, places: list[str]) -> str:
    which = f'class="{kind} {tone(panel, method)}" data-m="{panel.methods.index(method)}"'
    return f'<{shape} {which} points="{" ".join(places)}"/>'


def _place(panel: Panel, x: float, probability: float) -> str:
    return f"{_across(panel, x):.1f},{_down(probability):.1f}"


def _across(panel: Panel, x: float) -> float:
    return LEFT + (RIGHT - LEFT) * panel.axis.share(x)


def _down(probability: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * probability
