"""What depends on somebody looking: colours and progress bars, for terminals alone.

Colours are left out where NO_COLOR is set and not empty (no-color.org) or TERM is dumb, and always in pipes and files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet.progress import is_shown

BOLD, RED = "1", "1;31"


def styled(text: str, style: str, stream: Any) -> str:
    """The text in a style, if the stream is a terminal that may have colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and is_coloured(stream) else text


def is_coloured(stream: Any) -> bool:
    """Whether colours may be written to a stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return stream is not None and bool(stream.isatty())


@contextmanager
def bar(name: str, total: int) -> Iterator[Callable[[], Any]]:
    """A progress bar on standard error, where progress is shown; gives what is to be called after each step."""
    if not is_shown():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, no_color=not is_coloured(sys.stderr))
    columns = TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda: progress.advance(task)
