"""Shows on standard error, in a terminal only, which stage of a long job is running and for how long.

A library does not print: nothing is shown unless `show_progress` asks for it, as the command line does. What is shown
are names of stages and seconds: nothing that depends on rows. A terminal that cannot take a line back (TERM=dumb) is
shown nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_PATIENCE = 1.0
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
    >>> from discreet.progress import show_progress
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
