"""Show the progress of long jobs on standard error, and make process pools for them.

Nothing is shown unless `show_progress` asks for it, as the command line does. Progress consists of stage names, public
totals and seconds, so it never depends on rows; a terminal that cannot erase a line (TERM=dumb) shows none.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar

_PATIENCE = 1.0
"""Seconds before a stage is shown: short jobs stay silent."""

_FIRST_LINE, _LINES_APART = 3.0, 20.0
"""Seconds before the first plain line and between later ones: a log of minutes has few of them."""

_WANTED: ContextVar[bool] = ContextVar("wanted", default=False)
_WITHIN: ContextVar[bool] = ContextVar("within", default=False)


@contextmanager
def show_progress(wanted: bool = True) -> Iterator[None]:
    """Show the running stage on standard error, if that is a terminal, until the block ends.

    Parameters
    ----------
    wanted
        False shows nothing, which is the default outside.

    Examples
    --------
    >>> import discreet
    >>> from discreet.jobs import show_progress
    >>> with show_progress():
    ...     release = discreet.top_k({"dune": 912, "alien": 877}, k=1, epsilon=100)
    """
    token = _WANTED.set(wanted)
    try:
        yield
    finally:
        _WANTED.reset(token)


def is_shown() -> bool:
    """Return True if progress was asked for and standard error is a terminal that can show it."""
    if not _WANTED.get() or os.environ.get("TERM") == "dumb":
        return False
    return getattr(sys, "stderr", None) is not None and sys.stderr.isatty()


@contextmanager
def stage(name: str | Callable[[], str]) -> Iterator[None]:
    """Show `name` and the seconds since the block began, once it has run for more than one second.

    A stage inside another stage shows nothing.
    """
    if not is_shown() or _WITHIN.get():
        yield
        return
    done = threading.Event()

    def tick() -> None:
        begun = time.monotonic()
        if done.wait(_PATIENCE):
            return
        shown = False
        while not done.wait(0.2):
            current = name() if callable(name) else name
            sys.stderr.write(f"\r{current} ... {time.monotonic() - begun:.0f} s ")
            sys.stderr.flush()
            shown = True
        if shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    ticker = threading.Thread(target=tick, daemon=True)
    token = _WITHIN.set(True)
    ticker.start()
    try:
        yield
    finally:
        _WITHIN.reset(token)
        done.set()
        ticker.join()


@contextmanager
def count_steps(name: str, steps: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show the stage `name` with the number of finished steps, out of a public total.

    Yields a function that takes the number of finished steps. The stage begins when that is called with 0: work before
    it may be a stage of its own.
    """
    done, running = [0], ExitStack()

    def advance(count: int) -> None:
        done[0] = count
        if not count:
            running.enter_context(stage(lambda: f"{name} {done[0]:,} of {total:,} {steps}"))

    with running:
        yield advance


@contextmanager
def count_in_lines(name: str, total: int) -> Iterator[Callable[[], None]]:
    """Print the number of finished steps in plain lines, if progress is wanted, terminal or not.

    Yields a function to call after each step.
    """
    done, ended = [0], threading.Event()

    def advance() -> None:
        done[0] += 1

    if not _WANTED.get() or getattr(sys, "stderr", None) is None:
        yield advance
        return

    def print_lines() -> None:
        begun, wait = time.monotonic(), _FIRST_LINE
        # A closed standard error must not stop the job.
        with suppress(OSError, ValueError):
            while not ended.wait(wait):
                passed = time.monotonic() - begun
                print(f"{name}: {done[0]} of {total} done, {passed:.0f} s", file=sys.stderr, flush=True)
                wait = _LINES_APART

    teller = threading.Thread(target=print_lines, daemon=True)
    teller.start()
    try:
        yield advance
    finally:
        ended.set()
        teller.join()


def make_pool(jobs: int) -> ProcessPoolExecutor:
    """Return a pool of `jobs` processes that never collect garbage inherited from their parent.

    That garbage may be a connection of an engine whose threads the child lacks; freeing it would end the child.
    """
    return ProcessPoolExecutor(jobs, initializer=gc.freeze)
