"""Print the expected recall of `Core` and of other mechanisms around canonical's step.

    python examples/core.py             prints the tables of docs/appendix/planning.md
    python examples/core.py FOLDER      takes the paper's vectors, NAME.nD.npy, from there

For each vector and k the step is the epsilon with which canonical, gamma = 1/2, has an expected recall of a half. Each
mechanism's recall is averaged over 14 epsilons, evenly spread on a logarithmic scale from an eighth of the step to four
times it. Vectors with fewer than 10 k items are in a table of their own: there a list of noise is not worthless. The
paper's vectors are looked for in ../shared/datasets, or where DISCREET_DATA says; without them the made-up ones are all
there is. Everything is computed from these scores, so nothing here is private.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np

import discreet
from discreet.analysis.goals import goals
from discreet.analysis.meters import meter
from discreet.mechanisms.base import Mechanism
from discreet.release.request import make_request
from discreet.study.vectors import Vector, load_vectors, make_vectors

METHODS: dict[str, Mechanism] = {
    "Core": discreet.Core(),
    "Core, or nothing": discreet.Core(otherwise=None),
    "canonical 1/2": discreet.Canonical("1/2"),
    "canonical 3/4": discreet.Canonical(),
    "one-shot": discreet.OneShot(),
}
FIXED = ("canonical 1/2", "canonical 3/4", "one-shot")
SIZES = (20, 60, 100, 300, 1000)
WIDE = 10
DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))

Recalls = dict[str, list[float]]


def main() -> None:
    """Print a table of the vectors that are long enough, and one of the others."""
    vectors = load_papers(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA) + make_vectors([]) + make_long_vectors()
    for title, is_wide in ((f"at least {WIDE} k items", True), (f"fewer than {WIDE} k items", False)):
        lines = []
        for k in SIZES:
            chosen = [one for one in vectors if one.d > k and (one.d >= WIDE * k) == is_wide]
            if chosen:
                lines.append(summarise(k, [measure(one, k) for one in chosen]))
        if lines:
            print(f"\nVectors with {title}:\n")
            print("\n".join([*head(), *lines]), flush=True)


def load_papers(folder: Path) -> list[Vector]:
    """Return the paper's vectors, or none where they are not at hand, which is said."""
    if folder.is_dir():
        return load_vectors(folder, [])
    print(f"The paper's vectors are not in {folder.name}: what is printed is for made-up ones alone.")
    return []


def make_long_vectors() -> list[Vector]:
    """Vectors of thirty thousand items: a long tail, a gentle slope, and one that hardly falls."""
    ranks = np.arange(1, 30_001)
    curves = {"TAIL": 1e7 / ranks**0.9, "SLOPE": 2e5 * np.exp(-ranks / 10_000.0), "FLAT": 1e5 / ranks**0.3}
    return [Vector(name, np.floor(curve).astype(np.int64)) for name, curve in curves.items()]


def measure(vector: Vector, k: int) -> Recalls:
    """Return the expected recall of each mechanism at each epsilon around the step."""
    half = {"goal": "recall", "probability": "0.5", "mechanism": discreet.Canonical("1/2")}
    step = discreet.epsilon_for(vector.scores, k, **half, sensitivity=vector.limit)
    epsilons = [Fraction(float(step) * 2.0**power) for power in np.linspace(-3.0, 2.0, 14)]
    return {name: list(recalls(vector, k, mechanism, epsilons)) for name, mechanism in METHODS.items()}


def recalls(vector: Vector, k: int, mechanism: Mechanism, epsilons: list[Fraction]) -> Iterable[float]:
    """Return the recall of `utility` to three digits, which is quicker."""
    promised = make_request(vector.scores, k, 1, mechanism=mechanism, sensitivity=vector.limit).guarantee
    read = meter(vector.tally, k, promised, {"recall": goals(vector.tally, k)["recall"]})
    return (read(epsilon, 1e-3).values["recall"] for epsilon in epsilons)


def head() -> list[str]:
    """Return the head of a table."""
    names = ["k", "vectors", *METHODS, "best fixed one", "Core at its worst"]
    return ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]


def summarise(k: int, measured: list[Recalls]) -> str:
    """Return the means over vectors and epsilons, that of the best fixed choice in hindsight, and Core's gap to it."""
    every = {name: np.array([one[name] for one in measured]) for name in METHODS}
    best = np.max([every[name] for name in FIXED], axis=0)
    below = float((best - every["Core"]).max())
    means = [float(values.mean()) for values in (*every.values(), best)]
    return f"| {k} | {len(measured)} | " + " | ".join(f"{mean:.2f}" for mean in means) + f" | {below:.2f} below |"


if __name__ == "__main__":
    main()
