"""The table of sketches of the page "Choose a mechanism and an epsilon": plans from sketches, beside those of scores.

    python examples/sketches.py             prints the table, as Markdown
    python examples/sketches.py FOLDER      takes the paper's vectors, NAME.nD.npy, from there

For each vector several sketches are drawn, each with its own seed, and the epsilon that canonical needs for an expected
recall of 0.9 is computed from each and from the scores. Nothing here is private: the seeds are known.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from statistics import median
from typing import Any

import discreet
from discreet.study.vectors import Vector, make_vectors
from gammas import DATA, load_papers

EPSILONS = ("0.01", "0.03", "0.1")
SIZES = (10, 100)
DRAWS = 9


def main() -> None:
    """Print the table."""
    vectors = load_papers(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA) + make_vectors([])
    print("| scores | k | needed | " + " | ".join(f"sketch for {epsilon}" for epsilon in EPSILONS) + " |")
    print("| --- | --- | --- |" + " --- |" * len(EPSILONS))
    for vector in vectors:
        for k in SIZES:
            needed = need(vector.scores, k, vector.limit)
            if needed is not None:
                cells = [compare(vector, k, epsilon, needed) for epsilon in EPSILONS]
                print(f"| {vector.name} | {k} | {needed:.3g} | " + " | ".join(cells) + " |", flush=True)


def need(scores: Any, k: int, limit: discreet.Sensitivity | None = None) -> float | None:
    """Return the epsilon that canonical needs, None if ties let none be enough; a sketch knows its sensitivity."""
    most = {"goal": "recall", "probability": "0.9", "mechanism": discreet.Canonical()}
    try:
        return float(discreet.epsilon_for(scores, k, **most, sensitivity=limit))
    except discreet.Error:
        return None


def compare(vector: Vector, k: int, epsilon: str, needed: float) -> str:
    """By which factor plans from sketches are off: the middle one, the smallest and the largest.

    Sketches that call themselves doubtful are left out; where most do, so is the cell.
    """
    drawn = [draw(vector, epsilon, seed) for seed in range(DRAWS)]
    plans = [need(sketch, k) for sketch in drawn if not sketch.is_doubtful(k)]
    ratios = [planned / needed for planned in plans if planned is not None]
    if len(ratios) <= DRAWS // 2:
        return "doubtful"
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def draw(vector: Vector, epsilon: str, seed: int) -> discreet.Sketch:
    """Return a sketch that can be drawn again."""
    grid = None if vector.scores.dtype.kind in "iu" else 1
    return discreet.sketch(vector.scores, epsilon, grid=grid, sensitivity=vector.limit, rng=random.Random(seed))


if __name__ == "__main__":
    main()
