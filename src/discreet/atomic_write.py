"""Writes a text file whole or not at all: a reader finds the old file or the new one, never a part of either."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from discreet.errors import InvalidValueError


def check_writable(path: Path, name: str) -> None:
    """Raises unless `path`, the argument called `name`, can be a file to write: before any work goes into its text."""
    given = repr(str(path))
    if os.path.isdir(path):
        raise InvalidValueError(f"{name} must be a file, not {given}, a directory")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidValueError(f"{name} must be a regular file, not {given}, a device or a pipe")
    if not os.path.isdir(_target(path).parent):
        raise InvalidValueError(f"{name} must be in a directory that exists, not {given}")


def atomic_write(path: Path, text: str) -> None:
    """Writes a file through a draft beside it, which takes its place once it is on the disk.

    Parameters
    ----------
    path
        The file to write or to replace; the target of a link is replaced, not the link.
    text
        What it will hold, in UTF-8.
    """
    target = _target(path)
    draft = target.with_name(f".discreet-{secrets.token_hex(8)}.tmp")
    try:
        _write_draft(draft, text)
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _write_draft(draft: Path, text: str) -> None:
    with draft.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))
