"""Print how far the epsilon that `discreet.plan` recommends is from the least over all mechanisms and gamma in 64ths.

    python benchmarks/best.py             prints the table of docs/appendix/planning.md

The least epsilon is found here by bisection of `discreet.utility`, which shares nothing with the search of `plan`. The
scores are the demo's and, where they are at hand (../shared/datasets, or DISCREET_DATA), the paper's. If ties let no
epsilon be enough, there is no row.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np

import discreet
from discreet.mechanisms.base import Mechanism

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from ratings import five_stars, ratings, titles

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))
PROBABILITY, CLOSE = 0.9, 1.0005
OF_COUNTS = discreet.Sensitivity(down=0, up=1)


def main() -> None:
    """Print a row for each vector, k and goal, and the worst ratio."""
    found, columns = vectors(), ("scores", "k", "goal", "plan", "ratio to the best", "best gamma")
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    worst = 0.0
    for name, scores in found.items():
        for k in (10, 100, 1000):
            for goal in ("top", "recall") if k < len(scores) else ():
                worst = max(worst, show(name, scores, k, goal))
    print(f"\nThe largest ratio is {ceil(1000 * worst) / 1000:.3f}.")


def vectors() -> dict[str, np.ndarray]:
    """Return the demo's counts, and the paper's vectors."""
    names = titles()
    found = {"demo": five_stars(ratings(500_000, 4_000_000, len(names), seed=20), len(names))}
    if not DATA.is_dir():
        print(f"The paper's vectors are not in {DATA.name}: only the demo is looked at.\n")
    return found | {path.name.split(".")[0]: np.load(path) for path in sorted(DATA.glob("*.n*.npy"))}


def show(name: str, scores: np.ndarray, k: int, goal: str) -> float:
    """Print one row and return the ratio, or 0 and no row if ties let no epsilon be enough."""
    try:
        plan = discreet.plan(scores, k, goal=goal, probability=str(PROBABILITY), sensitivity=OF_COUNTS)
    except discreet.Error:
        return 0.0
    best, mechanism = search(scores, k, goal, float(plan.epsilon))
    planned = float(plan.epsilon)
    by = mechanism.gamma if isinstance(mechanism, discreet.Canonical) else repr(mechanism)
    print(f"| {name} | {k} | {goal} | {planned:.4g} | {planned / best:.3f} | {by} |", flush=True)
    return planned / best


def search(scores: np.ndarray, k: int, goal: str, start: float) -> tuple[float, Mechanism | None]:
    """Return the least epsilon of any candidate, and whose it is; one that does not reach less is passed over."""
    best, whose = 2.0 * start, None
    for mechanism in candidates(k):

        def reaches(epsilon: float, mechanism: Mechanism = mechanism) -> bool:
            return getattr(discreet.utility(scores, k, epsilon, mechanism, sensitivity=OF_COUNTS), goal) >= PROBABILITY

        if reaches(best / CLOSE):
            best, whose = bisect(reaches, best / CLOSE), mechanism
    return best, whose


def candidates(k: int) -> list[Mechanism]:
    """Canonical with every 64th, and the others; at k = 1000 joint, which takes minutes there, is left out."""
    others: list[Mechanism] = [discreet.OneShot(), discreet.Peeling(), *([discreet.Joint()] if k < 1000 else [])]
    return [*(discreet.Canonical(gamma=Fraction(n, 64)) for n in range(65)), *others]


def bisect(reaches: Callable[[float], bool], high: float) -> float:
    """Return the least epsilon below one that is enough."""
    low = high / 2.0
    while reaches(low):
        low, high = low / 2.0, low
    while high > CLOSE * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


if __name__ == "__main__":
    main()
