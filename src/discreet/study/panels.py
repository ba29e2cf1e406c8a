"""Sorts the points of a study into panels, each with the curves of one figure for one vector, one k and one goal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.study.results import FIGURES, Figure, Point, Results

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
        All methods of the figure, in the order of its points: the legend of every panel.
    curves
        The points of each method that is there, from left to right.
    """

    figure: Figure
    vector: str
    d: int
    k: int
    goal: str
    axis: Axis
    methods: list[str]
    curves: dict[str, list[Point]]


def panels_of(results: Results, figure: Figure) -> list[Panel]:
    """The panels of one figure, in the order of its points."""
    points = [point for point in results.points if point.figure == figure.key]
    methods = list(dict.fromkeys(point.method for point in points))
    places = dict.fromkeys((point.vector, point.k) for point in points)
    return [
        panel
        for vector, k in places
        for panel in _goals(figure, methods, [point for point in points if (point.vector, point.k) == (vector, k)])
    ]


def figures_of(results: Results) -> list[Figure]:
    """The figures that have points."""
    keys = {point.figure for point in results.points}
    return [figure for key, figure in FIGURES.items() if key in keys]


def _goals(figure: Figure, methods: list[str], points: list[Point]) -> list[Panel]:
    first, places = points[0], [point.x for point in points]
    axis = Axis(figure.axis, figure.logarithmic, min(places), max(places))
    return [
        Panel(figure, first.vector, first.d, first.k, goal, axis, methods, _curves(methods, points, goal))
        for goal in dict.fromkeys(point.goal for point in points)
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
