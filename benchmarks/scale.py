"""The cost model of docs/scale.md: constants measured at sizes that fit, held against the largest that do.

python benchmarks/scale.py [--spark]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

import discreet
from discreet.exact.entropy import Entropy
from discreet.mechanisms.tally import IntegerColumn, Tally

K = 1000
OF_COUNTS = discreet.Sensitivity(down=0, up=1)
CORES = 1000
"""Those of the cluster that the last rows are about."""

Row = tuple[str, str, str]


def fastest(task: Callable[[], object], repeats: int = 3) -> float:
    """Return the least of some times: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def counts(d: int) -> np.ndarray:
    """Return counts of a long tail, shuffled, block by block so that 10^8 of them fit."""
    rng = np.random.default_rng(0)
    return (10.0 / (1.0 - rng.random(d)) ** 0.9).astype(np.int64)


def distinct(d: int) -> np.ndarray:
    """Floats that all matter, because they hardly differ."""
    return np.random.default_rng(1).random(d)


def arrays() -> Iterator[Row]:
    """Constants at 10^7 items, and what they foretell for 10^8."""
    small, large = 10**7, 10**8
    for name, made in (("counts", counts), ("distinct floats", distinct)):
        scores = made(small)
        measured = fastest(lambda: discreet.top_k(scores, K, 1, sensitivity=OF_COUNTS))  # noqa: B023
        bare = fastest(lambda: np.sort(scores))  # noqa: B023
        yield (
            f"array of {name}, d = 10^7",
            f"{1e9 * measured / small:.1f} ns an item",
            f"np.sort {1e9 * bare / small:.1f}",
        )
        expected = measured / small * large
        scores = made(large)
        found = fastest(lambda: discreet.top_k(scores, K, 1, sensitivity=OF_COUNTS), 2)  # noqa: B023
        yield f"array of {name}, d = 10^8", f"{found:.2f} s", f"{expected:.2f} s by the model ({found / expected:.2f})"


def runs() -> Iterator[Row]:
    """Drawing from runs of equal scores, as tables hand them over: the number of items does not matter."""
    for d, length in ((10**6, 10**4), (10**9, 10**4), (10**9, 10**6), (2**62, 10**6)):
        keys = np.arange(length, dtype=np.uint64) * np.uint64(3)
        share = np.maximum(1, (d / length * np.ones(length)).astype(np.int64))
        tally = Tally(IntegerColumn(keys), np.cumsum(share) - 1)

        def draw() -> None:
            discreet.Canonical().prepare(tally, K, Fraction(1), discreet.Sensitivity()).draw(Entropy())  # noqa: B023

        yield f"drawing, d = {tally.d:.2g} in {length} runs", f"{1e3 * fastest(draw, 7):.1f} ms", "does not grow with d"


def spark() -> Iterator[Row]:
    """Events on Spark with two local cores, and what the model says of 10^11 events on a cluster."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.driver.memory", "6g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    items = 10**6
    times = {}
    for rows in (10**6, 2 * 10**7):
        events = session.range(rows).selectExpr(
            "pmod(hash(id), 500000) AS user_id", f"CAST(pow(rand(7), 3) * {items} AS BIGINT) AS item_id"
        )
        events.cache().count()
        source = discreet.events(events, user="user_id", item="item_id", domain=discreet.integers(0, items - 1))
        times[rows] = fastest(lambda: discreet.top_k(source, 100, 1), 2)  # noqa: B023
        events.unpersist()
        yield f"Spark, local[2], {rows:.0e} events", f"{times[rows]:.1f} s", ""
    session.stop()
    one, many = sorted(times)
    per_event = 2 * (times[many] - times[one]) / (many - one)
    start = max(0.0, times[one] - per_event * one / 2)
    yield "an event on Spark", f"{1e6 * per_event:.2f} core microseconds", f"{start:.1f} s to start and to look up"
    expected = start + per_event * 10**11 / CORES
    yield f"10^11 events, 10^9 items, {CORES} cores", f"{expected / 60:.1f} minutes by the model", "not measured"


def main() -> None:
    """Print the table."""
    rows = [*runs(), *arrays(), *(spark() if "--spark" in sys.argv else ())]
    for what, measured, beside in rows:
        print(f"{what:48} {measured:28} {beside}", flush=True)


if __name__ == "__main__":
    main()
