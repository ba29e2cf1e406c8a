"""What the commands print and write: text that the terminal can spell, and files whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from discreet.cli.formats import FORMATS
from discreet.cli.terminal import BOLD, styled
from discreet.errors import InvalidValueError
from discreet.release import Release


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


def deliver(release: Release, shape: str, out: str | None) -> None:
    """Writes the release to `out`, if given, and prints it. A file has no table for people, but JSON."""
    if out is not None:
        save(FORMATS["json" if shape == "table" else shape](release), out)
    if shape == "json":
        print_json(release.to_dict())
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
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2)
    print_text(text)


def print_text(text: str, heading: bool = False) -> None:
    """Prints, with escapes for what standard output cannot spell; a heading is bold in a terminal."""
    if getattr(sys, "stdout", None) is None:
        raise OutputError("standard output must be open, but is closed")
    text = text.encode(_encoding(), "backslashreplace").decode(_encoding())
    first, line, rest = text.partition("\n")
    print(f"{styled(first, BOLD, sys.stdout) if heading else first}{line}{rest}")


def flush() -> None:
    """Prints what is buffered while an error still has a place to go; when Python ends, it has none."""
    if getattr(sys, "stdout", None) is not None:
        sys.stdout.flush()


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"
