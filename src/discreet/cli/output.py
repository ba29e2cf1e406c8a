"""The output of the commands: forms of a release, whole files, and colours and progress for a terminal.

Text is printed as standard output can spell it, and a file is written whole or not at all. Colours are left out where
NO_COLOR is set and not empty (no-color.org) or TERM is dumb, and always in pipes and files.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, check_is_path
from discreet.jobs import count_in_lines, is_shown
from discreet.publish.options import join_choices
from discreet.release.formats import format_csv
from discreet.release.release import DRAWN_BY, add_decimals
from discreet.release.theme import check_matplotlib
from discreet.text import escape_line, number_for_programs

if TYPE_CHECKING:
    from discreet.release.grouped import AnyRelease
    from discreet.release.sketch import Sketch

BOLD, DIM, RED = "1", "2", "1;31"


class OutputError(Exception):
    """A result could not be written, because of a full disk, for example."""

    code = "output"


def check_out(out: str | None, inputs: dict[str, list[str]], name: str = "out") -> None:
    """Raise if `out` cannot be written, or would replace one of the inputs, which are listed by role.

    `name` is the option that names the file.
    """
    if out is None:
        return
    from discreet.atomic_write import check_writable

    if out == "-":
        raise InvalidValueError(f"{name} must be a file, not '-': what is printed goes to standard output without it")
    check_is_path(name, out, "a file")
    check_writable(Path(out), name)
    for role, files in inputs.items():
        if os.path.exists(out) and any(os.path.exists(file) and os.path.samefile(out, file) for file in files):
            raise InvalidValueError(f"{name} must be another file than the {role}, not {str(Path(out))!r}")


def check_ending(path: str, endings: Iterable[str], name: str = "out") -> str:
    """Return the ending of a file name, in small letters and without the point; raise unless it is one of `endings`."""
    known, ending = list(endings), Path(path).suffix.lower()[1:]
    if ending not in known:
        listed = join_choices([f".{each}" for each in known])
        raise InvalidValueError(f"{name} must be a file with a name that ends in {listed}, not {path!r}")
    return ending


def check_chart(chart: str, inputs: dict[str, list[str]], items: int = 0) -> None:
    """Raise unless a list of so many items can be drawn in the file `chart`; done before anything is charged."""
    check_out(chart, inputs, "chart")
    check_ending(chart, CHART_ENDINGS, "chart")
    check_matplotlib()
    from discreet.release.plots import check_size

    check_size(items)


def print_released(release: AnyRelease | Sketch, request_id: str | None) -> None:
    """Print the event of a release, in a log of JSON."""
    cost = release.guarantee
    print_event("released", request_id=request_id, epsilon=cost.epsilon, delta=cost.delta)


def deliver(release: AnyRelease, shape: str, out: str | None) -> None:
    """Write the release to `out`, if given, and print it.

    The file has the form that is printed, and in place of a table the form that its name ends in.
    """
    if out is not None:
        form = OUT_ENDINGS[check_ending(out, OUT_ENDINGS)] if shape == "table" else shape
        save(FORMATS[form](release), out)
    if shape == "json":
        print_json(add_decimals(release))
    else:
        print_text(FORMATS[shape](release), heading=shape == "table")


def save_chart(drawable: Any, chart: str) -> None:
    """Draw what has a `plot` method in a file, in the format that its name ends in."""
    from discreet.release.plots import render

    save(render(drawable.plot(), check_ending(chart, CHART_ENDINGS, "chart")), chart)


def save(content: str | bytes, out: str) -> None:
    """Write a text, with a line break at its end, or bytes to `out`, whole or not at all."""
    from discreet.atomic_write import atomic_write

    try:
        atomic_write(Path(out), content if isinstance(content, bytes) else content + "\n")
    except OSError as error:
        raise OutputError(f"writing {str(Path(out))!r} fails: {error.strerror}") from None


def print_json(data: Any) -> None:
    """Print JSON, in ASCII if standard output cannot spell a label."""
    data = _replace_unbounded(data)
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2)
    print_text(text)


def _replace_unbounded(data: Any) -> Any:
    """Return the data with null for NaN and infinity, which JSON does not have."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _replace_unbounded(value) for key, value in data.items()}
    return [_replace_unbounded(each) for each in data] if isinstance(data, list | tuple) else data


def print_text(text: str, heading: bool = False) -> None:
    """Print a text, with escapes for characters that standard output cannot spell.

    With `heading`, a terminal shows the first line bold, and the line about the mechanism dim.
    """
    if getattr(sys, "stdout", None) is None:
        raise OutputError("standard output must be open, but is closed")
    text = text.encode(_encoding(), "backslashreplace").decode(_encoding())
    first, line, rest = text.partition("\n")
    if heading:
        lines = rest.split("\n")
        dimmed = [apply_style(one, DIM, sys.stdout) if one.startswith(DRAWN_BY) else one for one in lines]
        first, rest = apply_style(first, BOLD, sys.stdout), "\n".join(dimmed)
    print(f"{first}{line}{rest}")


LOGS = ("text", "json")
JSON_LOG: ContextVar[str | None] = ContextVar("JSON_LOG", default=None)
"""The stream of sys that takes the log of the running command as JSON, None for a log in text."""


def print_event(event: str, **facts: Any) -> None:
    """Print an event of the log as JSON, in one line. Every fact in it is public."""
    name = JSON_LOG.get()
    if name is None or getattr(sys, name, None) is None:
        return
    # To the second, as in the ledger: a finer time would tell how long a release took.
    time = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    line = json.dumps({"time": time, "event": event, **facts}, default=number_for_programs)
    print(line, file=getattr(sys, name), flush=True)


def print_doubt(sentence: str) -> None:
    """Print a sentence on standard error for the person who runs the command; it depends on the arguments alone."""
    if JSON_LOG.get():
        print_event("noted", note=sentence)
    elif getattr(sys, "stderr", None) is not None:
        print(f"discreet: {sentence}", file=sys.stderr)


def print_notes(notes: Iterable[str], quiet: bool) -> None:
    """Print the notes about a source, unless the command is quiet."""
    for note in [] if quiet else notes:
        print_doubt(note)


def is_terminal(stream: Any) -> bool:
    """Return True if a stream is open and leads to a terminal."""
    return stream is not None and bool(stream.isatty())


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def format_items(release: AnyRelease) -> str:
    r"""Return the items, one on each line; a backslash is written as \\ and a control character as \n or \x1b.

    In a release by group the group comes first, and tabs are between.
    """
    listing = release.listing
    cells = 1 + len(listing.names)
    return "\n".join("\t".join(map(escape_line, row[:cells])) for row in listing.rows())


FORMATS: dict[str, Callable[[AnyRelease], str]] = {
    "table": str,
    "json": lambda release: release.to_json(indent=2),
    "csv": format_csv,
    "items": format_items,
}
"""The forms of a release: a table for people, JSON that reads back, CSV, or its items alone for a pipe."""

OUT_ENDINGS = {"json": "json", "csv": "csv", "txt": "table"}
"""The form of a release in a file by the ending of its name, unless --format says another."""

CHART_ENDINGS = ("png", "svg", "pdf")
"""The endings of files that pictures are written to."""


def apply_style(text: str, style: str, stream: Any) -> str:
    """Return the text in a style if the stream is a terminal that may have colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and supports_colour(stream) else text


def supports_colour(stream: Any) -> bool:
    """Return True if colours may be written to a stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return is_terminal(stream)


@contextmanager
def progress_bar(name: str, total: int, in_lines: bool = False) -> Iterator[Callable[[], Any]]:
    """Show a progress bar on standard error, and give the function to call after each step.

    With `in_lines`, for work that takes minutes, a pipe gets a few plain lines in its place.
    """
    if not is_shown():
        with count_in_lines(name, total) if in_lines else nullcontext(lambda: None) as step:
            yield step
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, no_color=not supports_colour(sys.stderr))
    columns = TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda: progress.advance(task)
