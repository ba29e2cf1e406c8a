"""Show the progress of long jobs on standard error, and make process pools for them.

Nothing is shown unless `show_progress` asks for it, as the command line does. Progress consists of stage names, public
totals and seconds, so it never depends on rows. rich draws it in a terminal that can erase a line (not TERM=dumb);
`count_in_lines` prints plain lines without one.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_PATIENCE = 1.0
"""A stage is shown once it has taken this many seconds, so that short jobs show nothing."""

_FIRST_LINE, _LINES_APART = 3.0, 20.0
"""The seconds before the first plain line and between two of them: a log of minutes has few of them."""

_WANTED: ContextVar[bool] = ContextVar("wanted", default=False)
_WITHIN: ContextVar[bool] = ContextVar("within", default=False)


@contextmanager
def show_progress(wanted: bool = True) -> Iterator[None]:
    """Show the stages of long jobs inside this context, on standard error if it is a terminal.

    Parameters
    ----------
    wanted
        False shows none, as outside the context.

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
    """Show `name` and the seconds since the stage began, until it ends; a stage within another shows nothing."""
    if not is_shown() or _WITHIN.get():
        yield
        return
    begun, shown = time.monotonic(), list[Any]()

    def show() -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        def line() -> Text:
            text = f"{name() if callable(name) else name} ... {time.monotonic() - begun:.0f} s"
            return Text(text, no_wrap=True, overflow="ellipsis")

        live = Live(
            get_renderable=line,
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        shown.append(live)
        with suppress(OSError, ValueError):
            live.start(refresh=True)

    timer = threading.Timer(_PATIENCE, show)
    timer.daemon = True
    token = _WITHIN.set(True)
    timer.start()
    try:
        yield
    finally:
        _WITHIN.reset(token)
        timer.cancel()
        timer.join()
        # The reader of standard error may be gone, which is no reason to stop.
        with suppress(OSError, ValueError):
            for live in shown:
                live.stop()


@contextmanager
def count_steps(name: str, steps: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show the stage `name` with the number of its steps that are done; the total is public.

    The context gives a function to call with that number. The stage begins with the first call, because the code before
    it may have a stage of its own.
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
    """Print the number of finished steps in plain lines if progress is wanted; give a function to call after each."""
    done, ended, begun = [0], threading.Event(), time.monotonic()

    def advance() -> None:
        done[0] += 1

    def tell() -> None:
        wait = _FIRST_LINE
        # The reader of standard error may be gone, which is no reason to stop.
        with suppress(OSError, ValueError):
            while not ended.wait(wait):
                text = f"{name}: {done[0]} of {total} done, {time.monotonic() - begun:.0f} s"
                print(text, file=sys.stderr, flush=True)
                wait = _LINES_APART

    if not _WANTED.get() or getattr(sys, "stderr", None) is None:
        yield advance
        return
    teller = threading.Thread(target=tell, daemon=True)
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
    # Releases show progress and need no processes, whose modules are slow to import.
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(jobs, initializer=gc.freeze)
