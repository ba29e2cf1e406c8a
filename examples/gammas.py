"""Print the epsilon that canonical needs with each of several gammas.

    python examples/gammas.py             prints the tables of docs/appendix/planning.md
    python examples/gammas.py FOLDER      takes the paper's vectors, NAME.nD.npy, from there

The paper's vectors are looked for in ../shared/datasets, or where DISCREET_DATA says; without them the made-up ones are
all there is. Everything is computed from these scores, so nothing here is private.
"""

from __future__ import annotations

import os
import sys
from math import exp, log
from pathlib import Path

import numpy as np

import discreet
from discreet.study.vectors import Vector, load_vectors, make_vectors

GAMMAS = ("1/2", "2/3", "3/4", "7/8", "15/16", "1")
SIZES = (10, 100, 1000)
SHOWN = 100
"""The size of the rows that are printed; the mean and the worst are over all sizes."""
TARGETS = {"top": "Pr[TOP] = 0.9", "recall": "an expected recall of 0.9"}
DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))

Needs = dict[tuple[str, int], list[float | None]]


def main() -> None:
    """Print a table for each target."""
    vectors = load_papers(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA) + make_vectors([]) + [million()]
    for goal, meaning in TARGETS.items():
        needs = {(one.name, k): [need(one, k, gamma, goal) for gamma in GAMMAS] for one in vectors for k in SIZES}
        print(f"\nThe epsilon that canonical needs for {meaning}:\n")
        print(table({case: row for case, row in needs.items() if any(row)}))


def load_papers(folder: Path) -> list[Vector]:
    """Return the paper's vectors, or none where they are not at hand, which is said."""
    if folder.is_dir():
        return load_vectors(folder, [])
    print(f"The paper's vectors are not in {folder.name}: what is printed is for made-up ones alone.")
    return []


def million() -> Vector:
    """Return a long tail of a million items."""
    return Vector("MILLION", np.floor(1e8 / np.arange(1, 10**6 + 1) ** 0.9).astype(np.int64))


def need(vector: Vector, k: int, gamma: str, goal: str) -> float | None:
    """Return the epsilon, or None where ties do not let any be enough."""
    try:
        mechanism = discreet.Canonical(gamma=gamma)
        found = discreet.epsilon_for(
            vector.scores, k, goal=goal, probability="0.9", mechanism=mechanism, sensitivity=vector.limit
        )
    except discreet.Error:
        return None
    return float(found)


def table(needs: Needs) -> str:
    """Format the rows of one size, the least in bold, and the mean and worst of each gamma's need over the least."""
    lines = ["| scores | k | " + " | ".join(GAMMAS) + " |", "| --- | --- |" + " --- |" * len(GAMMAS)]
    for (name, k), row in needs.items():
        if k != SHOWN:
            continue
        best = min(value for value in row if value is not None)
        lines.append(f"| {name} | {k} | " + " | ".join(cell(value, best) for value in row) + " |")
    whole = [row for row in needs.values() if None not in row]
    for label, summary in (("mean", geometric_mean), ("worst", max)):
        ratios = [summary([row[i] / min(row) for row in whole]) for i in range(len(GAMMAS))]
        lines.append(f"| **{label}, to the best** | | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")
    return "\n".join(lines)


def cell(value: float | None, best: float) -> str:
    """Return an epsilon to three digits."""
    if value is None:
        return "-"
    digits = f"{float(f'{value:.3g}'):g}"
    return f"**{digits}**" if value == best else digits


def geometric_mean(values: list[float]) -> float:
    """Return the mean of ratios."""
    return exp(sum(map(log, values)) / len(values))


if __name__ == "__main__":
    main()
