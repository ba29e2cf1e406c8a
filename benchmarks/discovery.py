"""Items that nobody listed: drawing which of 10^9 are released, and events against a query without privacy.

Two queries without noise are compared with: the number of different users of each item, and that number where at most
three items of each user count, which needs a hash and a window as a release does; the target of 1.5 was set for the
second one. Each time is the median of three runs, in turns in one process; each peak of memory is that of a process of
its own, and the median of three.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import discreet
from discreet.exact.entropy import Entropy
from discreet.mechanisms.adaptive_discovery import MOST_PLACES
from discreet.mechanisms.tally import Tally
from discreet.mechanisms.weighted_discovery import WEIGHT_STEPS, WeightedDiscovery
from suite import Row, Rows, Run, power
from tables import many, peak, print_peak
from timing import medians

K, DELTA = 20, "1e-8"
USERS, ITEMS, PER_USER = 500_000, 2_000_000, 3


def rows(run: Run) -> Rows:
    """Measure the draw, and the whole release from Parquet on DuckDB: time and memory."""
    yield from draws(run)
    events = run.size(2 * 10**7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        make_events(path, events)
        yield from parquet(path)


def make_events(path: Path, events: int) -> None:
    """Events of a long tail of texts, so many that nearly all of two million are there."""
    rng = np.random.default_rng(5)
    share = events / 2e7
    head = (rng.pareto(0.6, events) * 100).astype(np.int64)
    item = np.where(rng.random(events) < 0.5, head % int(ITEMS * share), rng.integers(0, int(ITEMS * share), events))
    text = pc.binary_join_element_wise("could not open file", pa.array(item).cast(pa.string()), " ")
    pq.write_table(pa.table({"user_id": rng.integers(0, int(USERS * share), events), "message": text}), path)


def bounded(path: Path) -> None:
    """Ask DuckDB without noise: at most PER_USER items of each user by a hash, and their counts."""
    pairs = f"SELECT DISTINCT user_id, message FROM read_parquet('{path}')"  # noqa: S608
    place = "row_number() OVER (PARTITION BY user_id ORDER BY hash(user_id, message))"
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT message, count(*) FROM (SELECT message, {place} AS place FROM ({pairs})) "  # noqa: S608
            f"WHERE place <= {PER_USER} GROUP BY message"
        ).to_arrow_table()


def bare(path: Path) -> None:
    """Ask DuckDB without privacy how many users each item has."""
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT message, count(DISTINCT user_id) FROM read_parquet('{path}') GROUP BY message"  # noqa: S608
        ).to_arrow_table()


def release(path: Path) -> None:
    """Return the items that are found, and the top-k of them by all of their users."""
    found = discreet.discovered(DELTA)
    discreet.top_k(discreet.events(str(path), user="user_id", item="message", domain=found), k=K, epsilon=1)


TASKS = {"bare": bare, "bounded": bounded, "release": release}


def parquet(path: Path) -> Rows:
    """Events in Parquet, on DuckDB: time, and memory."""
    times = medians({name: lambda task=task: task(path) for name, task in TASKS.items()}, 3)
    what = f"{many(pq.read_metadata(path).num_rows)} events, Parquet, DuckDB"
    yield Row(what, times["release"] / times["bare"], "queries of all items, without noise", one=times["bare"])
    unit = f"queries of {PER_USER} items a user, without noise"
    yield Row(what, times["release"] / times["bounded"], unit, 1.5, one=times["bounded"])
    peaks = [{name: peak(__file__, name, path) for name in TASKS} for _ in range(3)]
    for name, shown, target in (
        ("bare", "query of all items", 300),
        ("bounded", "query of a bound without noise", None),
    ):
        above = statistics.median(each["release"] - each[name] for each in peaks)
        yield Row(f"{what}, peak memory above that of the {shown}", above, "MB", target)


def draws(run: Run) -> Rows:
    """Measure the draw itself in milliseconds, beside NumPy's time for binomials of the same runs in floats."""
    d = run.size(10**9)
    users, items = zipf_runs(d)
    found = discreet.discovered(DELTA).plan(K, 1)
    assert isinstance(found, WeightedDiscovery)
    alone = np.array([WEIGHT_STEPS]), np.array([d])
    every = np.arange(1, found.cutoff + round(9 * float(found.sigma) * WEIGHT_STEPS))
    runs = {
        "of one user each": alone,
        "by Zipf's law": (users * WEIGHT_STEPS, items),
        "of all sums to T + 9 sigma": (every, np.full(len(every), d // len(every))),
    }
    for name, (totals, sizes) in runs.items():
        tasks = {
            "exact": partial(found.sample_kept, Entropy(), totals, sizes),
            "floats": partial(np.random.default_rng(0).binomial, sizes, keep_probabilities(found, totals)),
        }
        times = run.medians(tasks, repeats=15)
        what = f"{power(d)} items {name}, runs: {len(sizes):,}"
        yield Row(what, 1e3 * times["exact"], "ms", None if totals is every else 50)
        yield Row(what, times["exact"] / times["floats"], "times NumPy's binomials in floats", one=times["floats"])
    tally = Tally.of_runs([1], [d], Fraction(1))
    for k in (K, MOST_PLACES):
        shared = discreet.discovered(DELTA).plan(k, 1).alternative
        assert shared is not None
        times = run.medians({"draw": lambda shared=shared, k=k: shared.prepare(tally, k).select(Entropy())}, repeats=15)
        yield Row(f"{power(d)} items with a share of one user each, k = {k:,}", 1e3 * times["draw"], "ms", 50)


def zipf_runs(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct numbers of users if the item of rank r has d / r of them, and the number of items of each."""
    root = math.isqrt(d)
    small = np.arange(1, root + 1)
    users = np.unique(np.concatenate([small, d // small]))
    items = -np.diff(np.append(d // users, 0))
    return users[items > 0], items[items > 0]


def keep_probabilities(found: WeightedDiscovery, totals: np.ndarray) -> np.ndarray:
    """Return Phi((w - T) / sigma) in floats, as a plain implementation has it."""
    steps = (found.cutoff - totals) / (WEIGHT_STEPS * float(found.sigma) * math.sqrt(2.0))
    return np.array([math.erfc(step) / 2.0 for step in steps.tolist()])


if __name__ == "__main__":
    TASKS[sys.argv[1]](Path(sys.argv[2]))
    print_peak()
