"""The speed targets of a release, each printed beside what is measured here; every figure is a ratio in one run.

make bench
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.special import gammaln

import discreet
from discreet.exact.entropy import Entropy
from discreet.noise import NOISES
from discreet.sources.array import array_source
from discreet.tally import Tally
from timing import medians

Row = tuple[str, str, str, bool]

D = 10**7


def zipf(d: int) -> np.ndarray:
    """Shuffled Zipf counts."""
    return np.random.default_rng(0).permutation((1e9 / np.arange(1, d + 1) ** 1.05).astype(np.int64))


def row(what: str, measured: float, target: float, unit: str) -> Row:
    """One line of the table."""
    return what, f"at most {target:g} {unit}", f"{measured:.3g}", measured <= target


def releases(scores: np.ndarray) -> Iterator[Row]:
    """The whole of top_k against np.sort of the same array."""
    for k in (10**3, 10**5):
        for epsilon in ("1", "0.01"):
            times = medians(
                {"sort": lambda: np.sort(scores), "top_k": lambda: discreet.top_k(scores, k, epsilon)},  # noqa: B023
                repeats=7,
            )
            ratio = times["top_k"] / times["sort"]
            yield row(f"top_k, d = 10^7, k = {k}, epsilon = {epsilon}", ratio, 3, "np.sort")
            yield row(f"  extra memory, k = {k}, epsilon = {epsilon}", extra_memory(scores, k, epsilon), 2, "arrays")


def extra_memory(scores: np.ndarray, k: int, epsilon: str) -> float:
    """The most memory that a release holds beside the scores, in sizes of their array."""
    tracemalloc.start()
    discreet.top_k(scores, k, epsilon)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / scores.nbytes


def first_draw(tally: Tally, k: int, epsilon: Fraction, mechanism: discreet.Canonical) -> None:
    """Prepares and draws once."""
    mechanism.prepare(tally, k, epsilon, discreet.Sensitivity()).draw(Entropy())


def growth(scores: np.ndarray) -> Iterator[Row]:
    """Drawing alone, with the tally given, for few and for many items."""
    large, small = array_source(scores).tally(), array_source(zipf(10**4)).tally()
    for epsilon in (Fraction(1), Fraction(1, 100)):
        times = medians(
            {
                "small": lambda: first_draw(small, 1000, epsilon, discreet.Canonical()),  # noqa: B023
                "large": lambda: first_draw(large, 1000, epsilon, discreet.Canonical()),  # noqa: B023
            },
            repeats=31,
        )
        what = f"drawing alone, k = 1000, epsilon = {epsilon}: d = 10^7 against 10^4"
        yield row(what, times["large"] / times["small"], 2, "times")


def scan(descending: np.ndarray, k: int, s: float) -> float:
    """The log weight of every class in one pass, in plain floats, as the paper does it."""
    t, total = np.arange(k, len(descending)), -np.inf
    tail = s / 2 * descending[k:] - gammaln(t - k + 1)
    for h in range(k):
        weights = tail - s / 2 * descending[h] + gammaln(t - h) - gammaln(k - h)
        total = np.logaddexp(total, weights.max() + np.log(np.exp(weights - weights.max()).sum()))
    return float(total)


def netflix(folder: Path) -> Iterator[Row]:
    """Drawing alone against one scan of all classes, and further draws against the first."""
    scores = np.load(folder / "NETFLIX.n17770.npy")
    tally, k = array_source(scores).tally(), 1000
    descending = np.sort(scores)[::-1].astype(np.float64)
    start = time.perf_counter()
    scan(descending, k, 1.0)
    whole = time.perf_counter() - start
    for noise in NOISES:
        for epsilon in (Fraction(1), Fraction(1, 100)):
            mechanism = discreet.Canonical(noise=noise)
            times = medians({"draw": lambda: first_draw(tally, k, epsilon, mechanism)}, repeats=21)  # noqa: B023
            what = f"drawing alone, Netflix, k = 1000, {noise}, epsilon = {epsilon}"
            yield row(what, times["draw"] / whole, 1 / 25, f"of a scan of all classes ({whole:.2f} s)")
    for epsilon in (Fraction(1), Fraction(1, 100)):
        yield further(tally, k, epsilon)


def further(tally: Tally, k: int, epsilon: Fraction) -> Row:
    """A further draw from the same prepared mechanism against preparing and drawing."""
    prepared = discreet.Canonical().prepare(tally, k, epsilon, discreet.Sensitivity())
    prepared.draw(Entropy())
    times = medians(
        {
            "first": lambda: first_draw(tally, k, epsilon, discreet.Canonical()),
            "further": lambda: prepared.draw(Entropy()),
        },
        repeats=101,
    )
    return row(
        f"a further draw, Netflix, k = 1000, epsilon = {epsilon}", times["further"] / times["first"], 0.1, "first"
    )


def imports() -> Iterator[Row]:
    """Importing the package against importing what it stands on."""

    def seconds(statement: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        return time.perf_counter() - start

    ours, theirs = [], []
    for _ in range(41):
        theirs.append(seconds("import numpy, flint"))
        ours.append(seconds("import discreet"))
    yield row("import discreet", statistics.median(ours) / statistics.median(theirs), 1.5, "import numpy, flint")


def main() -> None:
    """Prints the table, and exits with 1 where a target is missed."""
    rows: list[Row] = [*imports()]
    scores = zipf(D)
    rows += [*releases(scores), *growth(scores)]
    folder = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))
    if (folder / "NETFLIX.n17770.npy").exists():
        rows += netflix(folder)
    else:
        print("The Netflix scores are not here (set DISCREET_DATA to their folder): what needs them is skipped.")
    sys.exit(0 if table_of(rows) else 1)


def table_of(rows: list[Row]) -> bool:
    """Prints target and measured side by side, and tells whether all targets are met."""
    width, middle = max(len(what) for what, *_ in rows), max(len(target) for _, target, *_ in rows)
    print(f"{'what':{width}}  {'target':{middle}}  measured")
    for what, target, measured, met in rows:
        print(f"{what:{width}}  {target:{middle}}  {measured:8}  {'met' if met else 'MISSED'}")
    return all(met for *_, met in rows)


if __name__ == "__main__":
    main()
