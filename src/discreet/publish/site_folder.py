"""Write a folder of files whole or not at all: a reader finds the old site or the new one at every moment.

The site is a symbolic link to a folder beside it, and the link is replaced in one step. One process writes a site at a
time. A folder that was replaced stays for a while, for readers who are in it. A site that is a folder, as where links
cannot be made, is exchanged in one step on Linux; elsewhere it is moved aside first, and for a moment there is none.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.errors import InvalidValueError
from discreet.publish.lock import hold_lock

KEPT_SECONDS = 60
"""A replaced folder stays for so many seconds, so that a reader who found it can read all of its files."""

MARK = ".discreet-site"
"""A file by which a folder is known to be a site that was written here."""


def check_site(out: Path) -> None:
    """Raises unless a site can be written at `out`: nothing is there, a link, or a site that was written before."""
    if not out.parent.is_dir():
        raise InvalidValueError(f"out must be in a folder that exists, not {str(out)!r}")
    if out.is_symlink() and os.path.exists(out) and not _is_ours(Path(os.path.realpath(out)), out):
        raise InvalidValueError(f"out must not be a link to another folder, as {str(out)!r} is: it would be replaced")
    if out.is_symlink() or not out.exists():
        return
    if not out.is_dir() or not ((out / MARK).is_file() or not any(out.iterdir())):
        raise InvalidValueError(
            f"out must be a new or an empty folder, or a site that discreet wrote, not {str(out)!r}"
        )


def is_in_site(path: Path, out: Path) -> bool:
    """Whether a file is in a site at `out`, or in a folder beside it that is replaced with it, by whichever links."""
    real, place = Path(os.path.realpath(path)), Path(os.path.realpath(out.parent)) / out.name
    if real.is_relative_to(place) or real.is_relative_to(os.path.realpath(out)):
        return True
    beside = real.parts[len(place.parent.parts) :] if real.is_relative_to(place.parent) else ()
    return bool(beside) and _is_draft(beside[0], out)


def write_site(
    out: Path, files: dict[str, str], wait: float = 600, report: Callable[..., None] = lambda *_, **__: None
) -> bool:
    """Write files into the folder `out`, by their names in it, in place of all that was there.

    Another process that writes the same site is waited for, `wait` seconds at most.

    Returns
    -------
    bool
        True if the new site took the place of the old one in one step.
    """
    check_site(out)
    with hold_lock(out, "out", wait, report):
        # Another process may have written since.
        check_site(out)
        folder = _name_draft(out)
        try:
            _write_files(folder, files)
            at_once = _put_in_place(folder, out)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        _remove_others(out, folder)
    return at_once


def _write_files(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in {MARK: "", **files}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def _put_in_place(folder: Path, out: Path) -> bool:
    """Make `out` stand for the folder; return True if that was one step."""
    # Its age is counted from when it is replaced.
    with suppress(OSError):
        os.utime(out)
    new = _name_draft(out, ".link")
    try:
        new.symlink_to(folder.name, target_is_directory=True)
    except OSError:
        new = folder
    if not os.path.lexists(out):
        new.rename(out)
        return True
    if new.is_symlink() and out.is_symlink():
        new.replace(out)
        return True
    if _exchange(new, out):
        return True
    old = _name_draft(out, ".old")
    out.rename(old)
    try:
        new.rename(out)
    except BaseException:
        old.rename(out)
        raise
    return False


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders in one step; return False where the system cannot do that."""
    try:
        renameat2: Any = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _remove_others(out: Path, current: Path) -> None:
    """Remove sites that were replaced some time ago, and what runs that were killed have left."""
    for path in out.parent.iterdir():
        with suppress(OSError):
            age = time.time() - path.lstat().st_mtime
            if not _is_draft(path.name, out) or path == current or 0 <= age < KEPT_SECONDS:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _is_ours(folder: Path, out: Path) -> bool:
    """Whether a folder is one of those that are written beside a site."""
    return folder.parent == Path(os.path.realpath(out.parent)) and _is_draft(folder.name, out)


def _name_draft(out: Path, ending: str = "") -> Path:
    """A new name beside a site, which `_is_draft` knows again."""
    return out.with_name(f".{out.name}-{secrets.token_hex(8)}{ending}")


def _is_draft(name: str, out: Path) -> bool:
    return re.fullmatch(rf"\.{re.escape(out.name)}-[0-9a-f]{{16}}(\.link|\.old)?", name) is not None
