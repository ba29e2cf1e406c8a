"""Shows on standard error, in a terminal only, which stage of a long job is running and for how long.

What is shown are names of stages and seconds: nothing that depends on rows.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 1.0


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Shows `name` and the seconds since it began, once it has taken more than one, until it ends."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(name, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def _tick(name: str, done: threading.Event) -> None:
    begun, shown = time.monotonic(), False
    if done.wait(_PATIENCE):
        return
    while not done.wait(0.2):
        sys.stderr.write(f"\r{name} ... {time.monotonic() - begun:.0f} s ")
        sys.stderr.flush()
        shown = True
    if shown:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
