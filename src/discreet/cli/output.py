"""What the commands print and write: formats of a release, whole files, and what a terminal alone is shown.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError
from discreet.jobs import count_in_lines, is_shown
from discreet.release.formats import format_csv
from discreet.release.release import DRAWN_BY, add_decimals
from discreet.text import escape_line

if TYPE_CHECKING:
    from discreet.release.grouped import AnyRelease

BOLD, DIM, RED = "1", "2", "1;31"


class OutputError(Exception):
    """Something could not be handed over, because of a full disk, for example."""


def check_out(out: str | None, inputs: dict[str, list[str]]) -> None:
    """The release must not replace what it is made from."""
    if out is None:
        return
    from discreet.atomic_write import check_writable

    if out == "-":
        raise InvalidValueError("out must be a file, not '-': what is printed goes to standard output without it")
    check_writable(Path(out), "out")
    for role, files in inputs.items():
        if os.path.exists(out) and any(os.path.exists(file) and os.path.samefile(out, file) for file in files):
            raise InvalidValueError(f"out must be another file than the {role}, not {str(Path(out))!r}")


def deliver(release: AnyRelease, shape: str, out: str | None) -> None:
    """Writes the release to `out`, if given, and prints it.

    A file has no table for people, but CSV where its name ends so, and else JSON.
    """
    if out is not None:
        by_name = "csv" if out.lower().endswith(".csv") else "json"
        save(FORMATS[by_name if shape == "table" else shape](release), out)
    if shape == "json":
        print_json(add_decimals(release))
    else:
        print_text(FORMATS[shape](release), heading=shape == "table")


def save(text: str, out: str) -> None:
    """Writes the text to `out`, whole or not at all."""
    from discreet.atomic_write import atomic_write

    try:
        atomic_write(Path(out), text + "\n")
    except OSError as error:
        raise OutputError(f"writing {str(Path(out))!r} fails: {error.strerror}") from None


def print_json(data: Any) -> None:
    """Prints JSON; where standard output cannot spell a label, with escapes in place of it."""
    data = _replace_unbounded(data)
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2)
    print_text(text)


def _replace_unbounded(data: Any) -> Any:
    """The data with null for what is no number or an infinite one, which JSON does not have."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _replace_unbounded(value) for key, value in data.items()}
    return [_replace_unbounded(each) for each in data] if isinstance(data, list | tuple) else data


def print_text(text: str, heading: bool = False) -> None:
    """Prints, with escapes for what standard output cannot spell; a heading is bold in a terminal."""
    if getattr(sys, "stdout", None) is None:
        raise OutputError("standard output must be open, but is closed")
    text = text.encode(_encoding(), "backslashreplace").decode(_encoding())
    first, line, rest = text.partition("\n")
    if heading:
        first, rest = apply_style(first, BOLD, sys.stdout), "\n".join(map(_dim_details, rest.split("\n")))
    print(f"{first}{line}{rest}")


def _dim_details(line: str) -> str:
    """A line in a quiet colour, if it is the one that says how a release was drawn."""
    return apply_style(line, DIM, sys.stdout) if line.startswith(DRAWN_BY) else line


def print_doubt(sentence: str) -> None:
    """Prints a sentence for whoever runs the command, on standard error; it depends on what was given alone."""
    if getattr(sys, "stderr", None) is not None:
        print(f"discreet: {sentence}", file=sys.stderr)


def print_notes(notes: Iterable[str], quiet: bool) -> None:
    """Prints what there is to say about a source, unless the caller wants to hear of nothing but errors."""
    for note in [] if quiet else notes:
        print_doubt(note)


def flush() -> None:
    """Prints what is buffered while an error still has a place to go; when Python ends, it has none."""
    if getattr(sys, "stdout", None) is not None:
        sys.stdout.flush()


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def format_items(release: AnyRelease) -> str:
    r"""An item a line and nothing else; a backslash is written as \\ and a control character as \n or \x1b.

    Of a release by group, the group comes first, and tabs are between.
    """
    listing = release.listing
    cells = 1 + len(listing.names)
    return "\n".join("\t".join(map(escape_line, row[:cells])) for row in listing.rows())


def _format_json(release: AnyRelease) -> str:
    return release.to_json(indent=2)


FORMATS: dict[str, Callable[[AnyRelease], str]] = {
    "table": str, "json": _format_json, "csv": format_csv, "items": format_items,
}  # fmt: skip
"""How a release can be printed: a table for people, JSON that reads back, CSV, or its items alone for a pipe."""


def apply_style(text: str, style: str, stream: Any) -> str:
    """The text in a style, if the stream is a terminal that may have colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and supports_colour(stream) else text


def supports_colour(stream: Any) -> bool:
    """Whether colours may be written to a stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return stream is not None and bool(stream.isatty())


@contextmanager
def progress_bar(name: str, total: int, in_lines: bool = False) -> Iterator[Callable[[], Any]]:
    """A progress bar on standard error, where progress is shown; gives what is to be called after each step.

    With `in_lines`, for what takes minutes, a pipe gets a few plain lines in its place.
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
