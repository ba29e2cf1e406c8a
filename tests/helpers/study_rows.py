"""A small study that was made up: two vectors, two k, and every kind of figure."""

import math

from discreet.study.curves import NeededEpsilon, Point, Results, Time

METHODS = ["canonical, gamma = 3/4", "joint over sets", "one-shot, exponential"]


def curve(figure, vector, k, method, middle, goals=("top", "great", "good"), error=0.0):
    """A curve that rises around `middle`."""
    places = [middle * 10 ** (i / 4 - 2) for i in range(17)]
    return [
        Point(figure, vector, 1000, k, method, x, goal, math.exp(-middle / x / 4**i), error)
        for i, goal in enumerate(goals)
        for x in places
    ]


def study():
    places = [("ALPHA", 10), ("ALPHA", 100), ("<b>&\"Beta'", 10)]
    needs = {method: 0.1 * 30**i for i, method in enumerate(METHODS)}
    points = [p for vector, k in places for m in METHODS for p in curve("methods", vector, k, m, needs[m] * k)]
    points += curve("canonical-noises", "ALPHA", 10, "gumbel", 1) + curve(
        "canonical-noises", "ALPHA", 10, "laplace", 2, error=0.03
    )
    points += [p for i in range(11) for p in curve("gammas", "ALPHA", 10, f"gamma = {i / 10:g}", 1 + i, ("top",))]
    points += [Point("shapes", "ZIPF", 1000, 10, "canonical", i / 10, "top", i / 10, 0) for i in range(11)]
    budgets = [
        NeededEpsilon(vector, 1000, k, m, p, needs[m] * k / (1 - p), needs[m] / needs[METHODS[0]])
        for vector, k in places
        for m in METHODS
        for p in (0.5, 0.9, 0.99)
    ]
    times = [Time(vector, 1000, k, m, 1e-5 * k**2, "d log d") for vector, k in places for m in METHODS[:2]]
    return Results(points, budgets, [*times, Time("ALPHA", 1000, 10, METHODS[2], math.nan, "d & k")])
