"""The tables of docs/appendix/discovery.md on the part of epsilon for discovery: how it was fitted, and checked.

    python examples/discovery_split.py            prints the tables, as Markdown

For each law of events, number of people, k and epsilon, a part from 1/4 to 7/8 of epsilon finds items and the rest
selects among them. The regret of a rule is how far it stays behind the best part, in points of the share of the true
top-k. A rule knows k, epsilon and the groups of a person, and nothing of the events. The rule of the library is the
one with the least regret in the worst case on the fitted laws.

Items are found in plain floats, and selected by the library. All draws have a seed. It takes about five minutes on two
cores.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from itertools import product
from math import erfc, sqrt

import numpy as np

import discreet
from discovery_compared import (
    BUDGETS,
    DELTA,
    FITTED,
    ITEMS,
    LAWS,
    OTHERS,
    PEOPLE,
    count_best,
    format_table,
    make_events,
)
from discreet.mechanisms.weighted_discovery import WEIGHT_STEPS, WeightedDiscovery

SIZES, PARTS = (10, 50, 200), [Fraction(part, 16) for part in (4, 6, 8, 9, 10, 11, 12, 13, 14)]
BOUNDINGS, DRAWS = 2, 6
LIMIT = 100

Cell = tuple[int, int, str]
"""The number of people, k and epsilon."""
Curves = dict[str, dict[Cell, list[float]]]
"""For each law and cell the share of the true top-k, in percents, with each of PARTS."""

VARIED = {"lognormal, l = 10, delta = 1e-5": ("lognormal", 10, "1e-5")}
"""A check with another bound and delta than those of all others."""

CASES = {name: (name, LIMIT, DELTA) for name in FITTED | OTHERS} | VARIED


def grow(constant: int) -> Callable[[int, str, int], float]:
    """Return the rule of half of epsilon and c / (k g) more, at most three quarters, as a part of epsilon."""
    return lambda k, epsilon, groups: 0.5 + min(0.25, constant / (k * groups * float(epsilon)))


def plan(k: int, epsilon: str, groups: int) -> float:
    """Return the part of epsilon that the library spends on discovery by default."""
    found = discreet.discovered(DELTA, method="gaussian").plan(k, epsilon, max_groups_per_user=groups)
    return float(found.epsilon / Fraction(epsilon))


RULES: dict[str, Callable[[int, str, int], float]] = {
    "1/2": lambda *_: 0.5,
    "9/16": lambda *_: 0.5625,
    "5/8": lambda *_: 0.625,
    "3/4": lambda *_: 0.75,
    **{f"c = {constant}": grow(constant) for constant in (2, 3, 4, 5, 6, 8)},
    "library": plan,
}
"""The rules: constant parts, and e/2 + min(e/4, c / (k g)) with g groups of a person."""


def measure_curves(case: str, people: int) -> dict[Cell, list[float]]:
    """Return the share of the true top-k in the mean, for each k and epsilon, with each of PARTS."""
    name, limit, delta = CASES[case]
    events, rng, bits = make_events(name, people), np.random.default_rng(people), random.Random(people)
    touched, groups = events.count_people(), LAWS[name].groups
    hits: dict[Cell, list[float]] = defaultdict(lambda: [0.0] * len(PARTS))
    # Of many groups three are enough, because all are alike.
    shown = min(groups, 3)
    whole = BOUNDINGS * DRAWS * shown / 100
    for _ in range(BOUNDINGS):
        _, weights = events.bound(limit, rng.random(len(events.person)))
        for epsilon, (place, part) in product(BUDGETS, enumerate(PARTS)):
            found = WeightedDiscovery(part * Fraction(epsilon), Fraction(delta), limit, max_groups_per_user=groups)
            rest = (Fraction(epsilon) - found.epsilon) / groups
            steps = (found.cutoff - weights) / (WEIGHT_STEPS * float(found.sigma) * sqrt(2.0))
            chance = np.where(weights > 0, [erfc(step) / 2.0 for step in steps.tolist()], 0.0)
            for _, group in product(range(DRAWS), range(shown)):
                own = slice(ITEMS * group, ITEMS * (group + 1))
                kept = np.flatnonzero(rng.random(ITEMS) < chance[own])
                for k in SIZES:
                    released = kept
                    if len(kept) > k:
                        released = kept[discreet.top_k(touched[own][kept], k, rest, rng=bits).items]
                    hits[people, k, epsilon][place] += count_best(touched[own], k, released) / (k * whole)
    return dict(hits)


def find_regrets(curves: Curves, rule: Callable[[int, str, int], float]) -> dict[tuple[str, Cell], float]:
    """Return how far a rule stays behind the best of PARTS, in points; between two parts a share is interpolated."""
    parts = [float(part) for part in PARTS]
    return {
        (case, cell): max(shares) - float(np.interp(rule(cell[1], cell[2], LAWS[CASES[case][0]].groups), parts, shares))
        for case, cells in curves.items()
        for cell, shares in cells.items()
    }


def format_regrets(curves: Curves) -> str:
    """Return the largest regret of each rule on each law, over all laws, and the mean over all cells."""
    rows: dict[str, list[str]] = {case: [] for case in [*curves, "largest", "mean"]}
    for rule in RULES.values():
        regrets = find_regrets(curves, rule)
        for case in curves:
            rows[case].append(f"{max(regret for (own, _), regret in regrets.items() if own == case):.0f}")
        rows["largest"].append(f"**{max(regrets.values()):.0f}**")
        rows["mean"].append(f"{sum(regrets.values()) / len(regrets):.1f}")
    return format_table(["law", *RULES], [[case, *row] for case, row in rows.items()])


def main() -> None:
    """Measure on all laws and print."""
    curves: Curves = defaultdict(dict)
    with ProcessPoolExecutor(2) as pool:
        pairs = list(product(CASES, PEOPLE))
        for (case, _), found in zip(pairs, pool.map(measure_curves, *zip(*pairs, strict=True)), strict=True):
            curves[case] |= found
    print(f"On the laws that fitted the rule:\n\n{format_regrets({name: curves[name] for name in FITTED})}\n")
    print(f"On the others:\n\n{format_regrets({name: curves[name] for name in [*OTHERS, *VARIED]})}")


if __name__ == "__main__":
    main()
