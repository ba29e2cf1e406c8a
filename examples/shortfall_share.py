"""Compare shares of epsilon that `shortfall="auto"` could take: the bound that a release gets, and the recall it loses.

    python examples/shortfall_share.py             prints the table, as Markdown, in a few minutes
    python examples/shortfall_share.py FOLDER      takes the paper's vectors, NAME.nD.npy, from there

A release spends (1 - s) epsilon on the selection and s epsilon on the bound. A larger share s makes the list worse and
the bound tighter. Both are computed and not drawn, for canonical: the classes of `discreet.class_probabilities` have
one lead D each, and the expected bound is a sum over the noise. A bound below 0 says that the list is a true top-k, and
counts as 0, because nothing better can be said. Everything is computed from these scores, so nothing here is private.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.exact.discrete import interval_half_width
from discreet.release.shortfall import AUTO_SHARE
from gammas import DATA, load_papers

SHARES = tuple(Fraction(1, n) for n in (100, 50, 30, 20, 15, 12, 10, 8, 6, 5, 4, 3))
EPSILONS = tuple(Fraction(round(1000 * 10 ** (step / 6)), 10**5) for step in range(16))
SIZES = (1, 10, 100, 1000)

RULES: dict[str, Callable[[int], Fraction]] = {
    **{str(share): lambda k, share=share: share for share in SHARES},
    "1 / (1 + sqrt(k))": lambda k: Fraction(1 / (1 + sqrt(k))).limit_denominator(1000),
    "1 / (4 + sqrt(k))": lambda k: Fraction(1 / (4 + sqrt(k))).limit_denominator(1000),
}
"""Constant shares, and some that depend on k."""

Scores = NDArray[np.int64]
Case = tuple[Scores, int, Fraction]
Measured = dict[str, tuple[float, float]]
"""By rule: the expected bound above the best one, in units of 1 / epsilon, and the recall that is lost."""


def main() -> None:
    """Print a row for each rule: means over all cases, by k, and by epsilon."""
    shapes = make_shapes() | load_shapes(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
    cases = [(scores, k, epsilon) for scores in shapes.values() for k in SIZES for epsilon in EPSILONS]
    cases = [case for case in cases if case[1] < len(case[0])]
    measured = [measure(*case) for case in cases]
    columns: dict[str, Callable[[Case], bool]] = {
        "all": lambda case: True,
        **{f"k = {k:,}": lambda case, k=k: case[1] == k for k in SIZES},
        "epsilon up to 0.1": lambda case: float(case[2]) <= 0.1,
        "above 0.1": lambda case: float(case[2]) > 0.1,
    }
    first, last = (f"{float(epsilon):g}" for epsilon in (EPSILONS[0], EPSILONS[-1]))
    print(f"{len(cases)} cases: {', '.join(shapes)}; k = {SIZES}; {len(EPSILONS)} epsilons from {first} to {last}.")
    print(
        "The expected bound above that of the best share of each case, in people times epsilon, and the recall lost:\n"
    )
    print(f"| share | {' | '.join(columns)} | recall lost |\n| --- |{' --- |' * (len(columns) + 1)}")
    for rule in RULES:
        cells = [
            fmean(each[rule][0] for case, each in zip(cases, measured, strict=True) if chosen(case))
            for chosen in columns.values()
        ]
        lost, bold = fmean(each[rule][1] for each in measured), "**" if rule == str(AUTO_SHARE) else ""
        print(f"| {bold}{rule}{bold} | {' | '.join(f'{cell:.1f}' for cell in cells)} | {lost:.2%} |")


def make_shapes() -> dict[str, Scores]:
    """Return made-up scores of several shapes, in descending order."""
    rank, draw = np.arange(1, 2001), np.random.default_rng(1)
    made = {
        "Zipf": 30_000 / rank,
        "flat Zipf": 30_000 / rank**0.3,
        "uniform": draw.integers(0, 3000, 2000),
        "geometric": 30_000 * 0.97**rank,
        "ties": 100.0 * (3000 // (100 + rank)),
        "near-ties": 5000.0 - rank,
    }
    return {name: -np.sort(-np.floor(values)).astype(np.int64) for name, values in made.items()}


def load_shapes(folder: Path) -> dict[str, Scores]:
    """Return the paper's vectors; sums are rounded to whole numbers."""
    return {vector.name: -np.sort(-np.rint(vector.scores)).astype(np.int64) for vector in load_papers(folder)}


def measure(scores: Scores, k: int, epsilon: Fraction) -> Measured:
    """Return the expected bound above the best one, and the recall lost beside a release without a bound, by rule."""
    whole, found = find_classes(scores, k, epsilon)[2], {}
    for name, rule in RULES.items():
        share = rule(k)
        lead, chance, recall = find_classes(scores, k, epsilon * (1 - share))
        above = lead + interval_half_width(epsilon * share, Fraction(1, 10))
        # E[max(a + N, 0)] is max(a, 0) + r^(|a| + 1) / (1 - r^2) for whole a, with r = exp(-rate).
        r = np.exp(-float(epsilon * share))
        bound = float(chance @ (np.maximum(above, 0) + r ** (np.abs(above) + 1.0) / (1.0 - r * r)))
        found[name] = bound, whole - recall
    best = min(bound for bound, _ in found.values())
    return {name: (float(epsilon) * (bound - best), lost) for name, (bound, lost) in found.items()}


def find_classes(scores: Scores, k: int, epsilon: Fraction) -> tuple[Any, Any, float]:
    """Return the lead D of each class of sets, the probability of the class, and the expected recall."""
    classes = discreet.class_probabilities(scores, k, epsilon)
    lead = scores[classes.h] - scores[classes.t - 1]
    return lead, classes.probability, discreet.expected(scores, k, epsilon).recall


if __name__ == "__main__":
    main()
