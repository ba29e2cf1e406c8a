"""Measure the time that a ledger adds to a release, against two bare SQLite inserts on the same disk."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import discreet
from suite import Row, Rows, Run, short

ROUNDS = 60
SCORES = {f"film {i}": i * i % 1009 for i in range(500)}


def bare(path: Path, journal: str) -> sqlite3.Connection:
    """Return a table to insert into, with every commit synced to the disk."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, text TEXT)")
    return connection


def insert_twice(connection: sqlite3.Connection) -> None:
    """Two rows, each on the disk before the next."""
    for _ in range(2):
        connection.execute("INSERT INTO lines (text) VALUES (?)", ("x" * 500,))


def measured(folder: Path) -> dict[str, list[float]]:
    """Seconds of each way, taken in turns."""
    path = folder / "path.db"
    discreet.Ledger.create(path, epsilon=10**6, unit="nobody")
    ledger = discreet.Ledger.create(folder / "open.db", epsilon=10**6, unit="nobody")
    with closing(bare(folder / "bare.db", "DELETE")) as rollback, closing(bare(folder / "wal.db", "WAL")) as wal:
        tasks = {
            "alone": lambda: discreet.top_k(SCORES, 5, 1),
            "object": lambda: discreet.top_k(SCORES, 5, 1, ledger=ledger),
            "path": lambda: discreet.top_k(SCORES, 5, 1, ledger=path),
            "inserts": lambda: insert_twice(rollback),
            "wal": lambda: insert_twice(wal),
        }
        times: dict[str, list[float]] = {name: [] for name in tasks}
        for _ in range(ROUNDS):
            for name, task in tasks.items():
                start = time.perf_counter()
                task()
                times[name].append(time.perf_counter() - start)
    return times


def rows(run: Run) -> Rows:
    """Measure the overhead of an open ledger, and of one given by its path, which is opened and checked each time."""
    # Beside this file and not in /tmp, which may be in memory.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        times = measured(Path(folder))
    one, wal = statistics.median(times["inserts"]), statistics.median(times["wal"])
    ways = {"object": "open", "path": f"given by its path, with up to {2 * ROUNDS} records"}
    for name, what in ways.items():
        yield Row(f"a ledger, {what}", _ratio(times, name), "pairs of bare inserts", 3, one=one)
    yield f"Two bare inserts through a write-ahead log, which a ledger does not use, take {short(wal)} here."


def _ratio(times: dict[str, list[float]], name: str) -> float:
    """Return the median over rounds: the speed of a disk changes from minute to minute, and a round is short."""
    rounds = zip(times[name], times["alone"], times["inserts"], strict=True)
    return statistics.median((whole - alone) / inserts for whole, alone, inserts in rounds)
