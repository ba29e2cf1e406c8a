"""Measure how the running time of a release depends on the scores and their types, bare and padded.

.venv/bin/python benchmarks/clock.py
"""

from __future__ import annotations

import statistics
import sys
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import discreet
from discreet.release.topk import default_period

SIZES = [(10_000, 100, "1"), (10_000, 100, "0.01"), (17_770, 1000, "0.01"), (1_000_000, 1000, "1")]


def inputs(d: int) -> dict[str, np.ndarray]:
    """Scores of one length: some, a neighbour of theirs, and others far away."""
    generator = np.random.default_rng(0)
    zipf = generator.permutation((1e7 / np.arange(1, d + 1)).astype(np.int64))
    return {
        "Zipf counts": zipf,
        "a neighbour": zipf + generator.integers(0, 2, d),
        "all alike": np.full(d, 1000),
        "1 to d": generator.permutation(d),
        "one far ahead": np.where(np.arange(d) == d // 2, 10**9, 0),
    }


def measured(scores: dict[str, Any], k: int, epsilon: str, repeats: int, pad_to: str | None) -> dict[str, list]:
    """Seconds of each input, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in scores}
    for name in scores:
        discreet.top_k(scores[name], k, epsilon)
    for _ in range(repeats):
        for name, values in scores.items():
            begun = time.perf_counter()
            discreet.top_k(values, k, epsilon, pad_to=pad_to)
            times[name].append(time.perf_counter() - begun)
    return times


def lists(d: int) -> dict[str, list]:
    """Return lists of one length: whole numbers, neighbours with one score of another type, and others far away."""
    whole = np.random.default_rng(0).integers(0, 10**6, d).tolist()
    return {
        "whole numbers": whole,
        "one float among them": [*whole[:-1], whole[-1] + 0.5],
        "one Fraction among them": [*whole[:-1], whole[-1] + Fraction(1, 7)],
        "one of 30 digits more": [*whole[:-1], whole[-1] + Fraction(1, 10**30)],
        "Decimals": [Decimal(score) / 8 for score in whole],
        "Fractions": [Fraction(score, n + 1) for n, score in enumerate(whole)],
    }


def print_types(d: int, k: int) -> None:
    """Print how long lists take, by the types of their scores."""
    times = measured(lists(d), k, "1", 5, None)
    print(f"lists of d = {d:,}, k = {k:,}, epsilon = 1, without padding")
    for name, seconds in times.items():
        print(f"  {name:<24} {1000 * statistics.median(seconds):>10.0f} ms")


def main() -> None:
    """Print a table a size."""
    print_types(100_000, 100)
    for d, k, epsilon in SIZES:
        scores = inputs(d)
        bare, padded = measured(scores, k, epsilon, 41, None), measured(scores, k, epsilon, 15, "auto")
        period = default_period(d, k)
        print(f"d = {d:,}, k = {k:,}, epsilon = {epsilon}; padded to {1000 * period:g} ms")
        print(f"  {'scores':<14} {'median ms':>10} {'slowest ms':>11} {'padded ms':>10} {'p against Zipf':>15}")
        for name in scores:
            p = stats.mannwhitneyu(padded["Zipf counts"], padded[name]).pvalue
            bare_ms, slow_ms = 1000 * statistics.median(bare[name]), 1000 * max(bare[name])
            padded_ms = 1000 * statistics.median(padded[name])
            print(f"  {name:<14} {bare_ms:>10.2f} {slow_ms:>11.2f} {padded_ms:>10.2f} {p:>15.2g}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
