"""Write a file atomically: a reader finds the old file or the new one, never a part of either."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from discreet.errors import InvalidValueError


def check_writable(path: Path, name: str) -> None:
    """Raise unless `path`, the argument called `name`, can be written as a file; called before the text is computed."""
    given = repr(str(path))
    if os.path.isdir(path):
        raise InvalidValueError(f"{name} must be a file, not {given}, a directory")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidValueError(f"{name} must be a regular file, not {given}, a device or a pipe")
    if not os.path.isdir(Path(os.path.realpath(path)).parent):
        raise InvalidValueError(f"{name} must be in a directory that exists, not {given}")


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a draft beside the file, sync it to disk, then rename it to the file.

    Parameters
    ----------
    path
        The file to write or to replace; of a link, the target is replaced.
    content
        The new content; text is written as UTF-8.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".discreet-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
