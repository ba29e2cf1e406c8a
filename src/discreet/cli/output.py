"""What the commands print and write: text that the terminal can spell, and files whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from discreet.errors import InvalidValueError
from discreet.release import Release
from discreet.whole import check_target, write_whole


class OutputError(Exception):
    """The result could not be handed over, because of a full disk, for example."""


def check_out(out: Path | None, inputs: dict[str, list[str]]) -> None:
    """The release must not replace what it is made from."""
    if out is None:
        return
    check_target(out, "out")
    for role, files in inputs.items():
        if os.path.exists(out) and any(os.path.exists(file) and os.path.samefile(out, file) for file in files):
            raise InvalidValueError(f"out must be another file than the {role}, not {str(out)!r}")


def deliver(release: Release, as_json: bool, out: Path | None) -> None:
    """Writes the release to `out`, if given, and prints it."""
    if out is not None:
        save(release.to_json(indent=2), out)
    print_text(_json(release) if as_json else str(release))


def save(text: str, out: Path) -> None:
    """Writes the text to `out`, whole or not at all."""
    try:
        write_whole(out, text + "\n")
    except OSError as error:
        raise OutputError(f"writing {str(out)!r} fails: {error.strerror}") from None


def _json(release: Release) -> str:
    """The release as JSON; where standard output cannot spell a label, with escapes in place of it."""
    text = release.to_json(indent=2)
    with suppress(UnicodeEncodeError):
        text.encode(_encoding())
        return text
    return json.dumps(release.to_dict(), indent=2)


def print_text(text: str) -> None:
    """Prints, with escapes for what standard output cannot spell."""
    if getattr(sys, "stdout", None) is None:
        raise OutputError("standard output must be open, but is closed")
    print(text.encode(_encoding(), "backslashreplace").decode(_encoding()))


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def flush() -> None:
    """Prints what is buffered while an error still has a place to go; when Python ends, it has none."""
    if getattr(sys, "stdout", None) is not None:
        sys.stdout.flush()
