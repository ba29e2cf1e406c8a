"""A release from raw events against the query that anybody would ask without privacy."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import discreet
from suite import Row, Rows, Run, power
from timing import medians

USERS, ITEMS = 500_000, 20_000


def rows(run: Run) -> Rows:
    """Parquet and CSV on DuckDB, and a domain that is too large to list; `engines` has the others."""
    repeats = 5 if run.full else 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        make_events(path, run.size(5 * 10**6, 2 * 10**7))
        yield from parquet(path, repeats)
        yield from delimited(Path(folder) / "events.csv", run)
    yield from huge_domain(run.size(2 * 10**5, 10**6), repeats)


def make_events(path: Path, rows: int) -> None:
    """Events of a long tail of items."""
    rng = np.random.default_rng(3)
    item = draw_items(rng, rows)
    pq.write_table(pa.table({"user_id": rng.integers(0, USERS, rows), "item_id": item}), path)


def draw_items(rng: np.random.Generator, rows: int) -> Any:
    """Items of a long tail."""
    fame = 1.0 / np.arange(1, ITEMS + 1) ** 0.9
    return rng.choice(ITEMS, rows, p=fame / fame.sum())


def bare(path: Path) -> None:
    """Ask DuckDB without privacy."""
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT item_id, count(DISTINCT user_id) FROM read_parquet('{path}') GROUP BY item_id"  # noqa: S608
        ).fetchall()


def release(path: Path) -> None:
    """Return the same with privacy, and only the released items."""
    source = discreet.events(str(path), user="user_id", item="item_id", domain=list(range(ITEMS)))
    discreet.top_k(source, k=100, epsilon=1)


def parquet(path: Path, repeats: int) -> Rows:
    """Events in Parquet, on DuckDB: time and memory."""
    times = medians({"bare": lambda: bare(path), "release": lambda: release(path)}, repeats)
    what = f"{many(pq.read_metadata(path).num_rows)} events, Parquet, DuckDB"
    yield Row(what, times["release"] / times["bare"], "bare queries", 1.3, one=times["bare"])
    peaks = [[peak(__file__, name, path) for name in ("bare", "release")] for _ in range(repeats - 2)]
    above = statistics.median(private - plain for plain, private in peaks)
    yield Row(f"{what}, peak memory above that of the bare query", above, "MB", 300)


def delimited(path: Path, run: Run) -> Rows:
    """Events in CSV, with quoted columns that nobody asks for."""
    rng, count = np.random.default_rng(4), run.size(2 * 10**6, 6 * 10**6)
    events = {"user_id": rng.integers(0, USERS, count), "item_id": draw_items(rng, count)}
    events |= {"seconds": rng.integers(0, 10**9, count), "note": rng.choice(["skipped", "heard, to the end"], count)}
    csv.write_csv(pa.table(events), path)
    query = f"SELECT item_id, count(DISTINCT user_id) FROM read_csv('{path}', all_varchar = true) GROUP BY item_id"  # noqa: S608

    def ask() -> None:
        with duckdb.connect() as connection:
            connection.execute(query).fetchall()

    def private() -> None:
        source = discreet.events(str(path), user="user_id", item="item_id", domain=list(map(str, range(ITEMS))))
        discreet.top_k(source, k=100, epsilon=1)

    times = run.minima({"bare": ask, "release": private}, 7)
    what = f"{many(count)} events, CSV, DuckDB"
    yield Row(what, times["release"] / times["bare"], "bare queries", 1.1, one=times["bare"])


def peak(script: str, *what: str | Path) -> float:
    """Return the peak resident memory of a process of its own that does one thing, in MB."""
    command = [sys.executable, script, *map(str, what)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak() -> None:
    """Print the peak resident memory of this process, in MB."""
    print(read_memory())


def read_memory() -> float:
    """Return the peak resident memory of this process, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def huge_domain(count: int, repeats: int) -> Rows:
    """Compare a domain of 2^63 numbers, some of them touched, with a domain of just those."""
    rng = np.random.default_rng(5)
    touched = np.unique(rng.integers(0, 2**63 - 1, count))
    events = pa.table({"user_id": rng.integers(0, USERS, 2 * count), "item_id": rng.choice(touched, 2 * count)})
    domain = pa.table({"item_id": touched})

    def listed() -> None:
        discreet.top_k(discreet.events(events, user="user_id", item="item_id", domain=domain), k=100, epsilon=1)

    def ranged() -> None:
        every = discreet.integers(0, 2**63 - 1)
        discreet.top_k(discreet.events(events, user="user_id", item="item_id", domain=every), k=100, epsilon=1)

    times = medians({"listed": listed, "ranged": ranged}, repeats)
    what = f"domain of 2^63 numbers, {many(count)} touched"
    yield Row(what, times["ranged"] / times["listed"], "times just those", 1.5, one=times["listed"])


def many(n: int) -> str:
    """Return a round number: 4 * 10^6."""
    first, zeros = str(n)[0], len(str(n)) - 1
    return power(n) if n == 10**zeros else f"{first} * 10^{zeros}" if n == int(first) * 10**zeros else str(n)


if __name__ == "__main__":
    {"bare": bare, "release": release}[sys.argv[1]](Path(sys.argv[2]))
    print_peak()
