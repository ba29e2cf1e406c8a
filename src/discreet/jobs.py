"""Shows on standard error, in a terminal, which stage of a long job is running and for how long.

A library does not print: nothing is shown unless `show_progress` asks for it, as the command line does. What is shown
are names of stages and seconds: nothing that depends on rows. A terminal that cannot take a line back (TERM=dumb) is
shown nothing. What takes minutes may ask for plain lines where there is no terminal, a few a minute: `count_in_lines`.
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
_FIRST_LINE, _LINES_APART = 3.0, 20.0
_WANTED: ContextVar[bool] = ContextVar("wanted", default=False)
_WITHIN: ContextVar[bool] = ContextVar("within", default=False)


@contextmanager
def show_progress(wanted: bool = True) -> Iterator[None]:
    """Shows inside which stage of a long job is running, on standard error where that is a terminal.

    Parameters
    ----------
    wanted
        False shows none, which is how it is outside.

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
    """Whether progress was asked for, and somebody looks at standard error, where it is shown."""
    if not _WANTED.get() or os.environ.get("TERM") == "dumb":
        return False
    return getattr(sys, "stderr", None) is not None and sys.stderr.isatty()


@contextmanager
def stage(name: str | Callable[[], str]) -> Iterator[None]:
    """Shows `name` and the seconds since it began, once it has taken more than one, until it ends.

    A stage within another shows nothing of its own.
    """
    if not is_shown() or _WITHIN.get():
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(name if callable(name) else lambda: name, done), daemon=True)
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
    """Shows the stage `name` with how many of its steps, whose number is public, are done.

    Gives what to call with the number of steps that are done. The stage begins with the first call, because what comes
    before may be one of its own.
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
    """Tells in plain lines how many of the steps are done, where progress is wanted; gives what to call after each.

    The first comes after a few seconds and the next ones rarely, so that a log of minutes has few of them.
    """
    done, ended = [0], threading.Event()

    def advance() -> None:
        done[0] += 1

    if not _WANTED.get() or getattr(sys, "stderr", None) is None:
        yield advance
        return
    teller = threading.Thread(target=_tell_lines, args=(name, total, done, ended), daemon=True)
    teller.start()
    try:
        yield advance
    finally:
        ended.set()
        teller.join()


def _tell_lines(name: str, total: int, done: list[int], ended: threading.Event) -> None:
    begun, wait = time.monotonic(), _FIRST_LINE
    # Whoever read standard error may be gone, which is no reason to stop.
    with suppress(OSError, ValueError):
        while not ended.wait(wait):
            print(f"{name}: {done[0]} of {total} done, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            wait = _LINES_APART


def _tick(name: Callable[[], str], done: threading.Event) -> None:
    begun, shown = time.monotonic(), False
    if done.wait(_PATIENCE):
        return
    while not done.wait(0.2):
        sys.stderr.write(f"\r{name()} ... {time.monotonic() - begun:.0f} s ")
        sys.stderr.flush()
        shown = True
    if shown:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


# Processes that share a computation.


def make_pool(jobs: int) -> ProcessPoolExecutor:
    """So many processes, none of which collects the garbage of the one that it is a copy of.

    What a process leaves behind may be a connection of an engine with threads, which a copy does not have: to let it go
    there ends the copy.
    """
    return ProcessPoolExecutor(jobs, initializer=gc.freeze)
