"""Print how far plans from sketches are from plans from the scores.

    python examples/sketches.py             prints the table of docs/appendix/planning.md
    python examples/sketches.py FOLDER      takes the paper's vectors, NAME.nD.npy, from there

For each vector several sketches are drawn, each with its own seed, and the epsilon that canonical needs for an expected
recall of 0.9 is computed from each and from the scores; once at the default ranks, and once at a few ranks around k.
Nothing here is private: the seeds are known.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import discreet
from discreet.study.vectors import Vector, make_vectors
from gammas import DATA, load_papers

EPSILONS = ("0.01", "0.03", "0.1")
SIZES = (10, 100)
FEW = (5, 10, 20, 100, 1000)
DRAWS = 9


def main() -> None:
    """Print a table for the default ranks, and one for few ranks around k = 10."""
    vectors = load_papers(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA) + make_vectors([])
    print(f"At the default ranks:\n\n{table(vectors, SIZES)}\n")
    print(f"At the ranks {', '.join(map(str, FEW))}:\n\n{table(vectors, (10,), FEW)}")


def table(vectors: list[Vector], sizes: Sequence[int], ranks: Sequence[int] | None = None) -> str:
    """Return a row for each vector and k for which some epsilon is enough."""
    head = ["scores", "k", "needed", *(f"sketch for {epsilon}" for epsilon in EPSILONS)]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for vector in vectors:
        for k in sizes:
            needed = need(vector.scores, k, vector.limit)
            if needed is not None:
                cells = [compare(vector, k, epsilon, needed, ranks) for epsilon in EPSILONS]
                lines.append(f"| {vector.name} | {k} | {needed:.3g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def need(scores: Any, k: int, limit: discreet.Sensitivity | None = None) -> float | None:
    """Return the epsilon that canonical needs, None if ties let none be enough; a sketch knows its sensitivity."""
    most = {"goal": "recall", "probability": "0.9", "mechanism": discreet.Canonical()}
    try:
        return float(discreet.epsilon_for(scores, k, **most, sensitivity=limit))
    except discreet.Error:
        return None


def compare(vector: Vector, k: int, epsilon: str, needed: float, ranks: Sequence[int] | None) -> str:
    """Return plans from sketches as multiples of the need: the median, the smallest and the largest.

    Sketches that call themselves doubtful are left out; where most do, so is the cell.
    """
    drawn = [draw(vector, epsilon, ranks, seed) for seed in range(DRAWS)]
    plans = [need(sketch, k) for sketch in drawn if not sketch.is_doubtful(k)]
    ratios = [planned / needed for planned in plans if planned is not None]
    if len(ratios) <= DRAWS // 2:
        return "doubtful"
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def draw(vector: Vector, epsilon: str, ranks: Sequence[int] | None, seed: int) -> discreet.Sketch:
    """Return a sketch that can be drawn again."""
    grid, rng = None if vector.scores.dtype.kind in "iu" else 1, random.Random(seed)
    return discreet.sketch(vector.scores, epsilon, ranks=ranks, grid=grid, sensitivity=vector.limit, rng=rng)


if __name__ == "__main__":
    main()
