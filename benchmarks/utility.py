"""The speed targets of utility, each printed beside what is measured here; every figure is a ratio in one run.

make bench
"""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import discreet
from core import Row, row, scan, table_of, zipf
from timing import medians

K, MANY = 1000, 10**4


def rows(netflix: np.ndarray) -> Iterator[Row]:
    """Netflix against one scan of all classes, a large vector against Netflix, and the memory of that."""
    descending, large = np.sort(netflix)[::-1].astype(np.float64), zipf(10**6)
    for epsilon in ("0.01", "0.1", "1"):
        times = medians(
            {
                "scan": partial(scan, descending, K, float(epsilon)),
                "netflix": partial(discreet.utility, netflix, K, epsilon),
                "large": partial(discreet.utility, large, MANY, epsilon),
            },
            repeats=5,
        )
        what = f"utility, Netflix, k = 1000, epsilon = {epsilon}"
        yield row(what, times["netflix"] / times["scan"], 0.5, f"of a scan of all classes ({times['scan']:.2f} s)")
        what = f"utility, d = 10^6, k = 10^4, epsilon = {epsilon}"
        yield row(what, times["large"] / times["netflix"], 10, f"times Netflix ({1000 * times['netflix']:.0f} ms)")
        yield row(f"  memory, epsilon = {epsilon}", memory(large, epsilon), 500, "MB")


def memory(scores: np.ndarray, epsilon: str) -> float:
    """The most memory that it holds beside the scores, in megabytes."""
    tracemalloc.start()
    discreet.utility(scores, MANY, epsilon)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    """Prints the table, and exits with 1 where a target is missed."""
    folder = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))
    file = folder / "NETFLIX.n17770.npy"
    if not file.exists():
        print("The Netflix scores are not here (set DISCREET_DATA to their folder): utility is skipped.")
        return
    sys.exit(0 if table_of(list(rows(np.load(file)))) else 1)


if __name__ == "__main__":
    main()
