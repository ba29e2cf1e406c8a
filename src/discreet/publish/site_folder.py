"""Write a site whole or not at all, with one writer at a time.

The site is a symbolic link to a folder beside it. A new site is written into a new folder, and the link is replaced in
one step, so a reader always finds the old site or the new one. The replaced folder stays for a while, for readers who
are in it. If links cannot be made, the site is a folder: on Linux it is exchanged in one step; elsewhere it is moved
aside first, and for a moment there is no site.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from discreet.errors import InvalidValueError
from discreet.ledger.file_store import hold_lock

KEPT_SECONDS = 60
"""A replaced folder is kept for this long, which lets a reader who opened it read all of its files."""

MARK = ".discreet-site"
"""Name of a file that marks a folder as a site written by discreet; it holds the head of the ledger at that time."""


def check_site(out: Path) -> None:
    """Raise unless `out` is missing, an empty folder, or a site that was written before."""
    if not out.parent.is_dir():
        raise InvalidValueError(f"out must be in a folder that exists, not {str(out)!r}")
    if out.is_symlink():
        target = Path(os.path.realpath(out))
        is_ours = target.parent == Path(os.path.realpath(out.parent)) and _is_draft(target.name, out)
        if os.path.exists(out) and not is_ours:
            raise InvalidValueError(
                f"out must not be a link to another folder, as {str(out)!r} is: it would be replaced"
            )
    elif out.exists() and not (out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))):
        raise InvalidValueError(
            f"out must be a new or an empty folder, or a site that discreet wrote, not {str(out)!r}"
        )


def is_in_site(path: Path, out: Path) -> bool:
    """Return True if a file, with links resolved, is in the site at `out` or in a folder that is replaced with it."""
    real, place = Path(os.path.realpath(path)), Path(os.path.realpath(out.parent)) / out.name
    if real.is_relative_to(place) or real.is_relative_to(os.path.realpath(out)):
        return True
    beside = real.parts[len(place.parent.parts) :] if real.is_relative_to(place.parent) else ()
    return bool(beside) and _is_draft(beside[0], out)


def write_site(
    out: Path,
    files: Mapping[str, str | bytes],
    wait: float = 600,
    report: Callable[..., None] = lambda *_, **__: None,
    mark: str = "",
) -> bool:
    """Replace the site at `out` by the given files.

    Parameters
    ----------
    out
        The path of the site.
    files
        The text or the bytes of each file, keyed by its path in the site.
    wait
        The longest time in seconds to wait for another process that writes the same site.
    report
        Is told of a wait.
    mark
        The text of the file that marks the folder as a site.

    Returns
    -------
    bool
        True if the new site took the place of the old one in one step.
    """
    check_site(out)
    with hold_lock(out, "out", wait, report):
        # Another process may have changed `out` during the wait.
        check_site(out)
        folder = _name_draft(out)
        try:
            folder.mkdir()
            for name, content in {MARK: mark, **files}.items():
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                with path.open("xb") as file:
                    file.write(content if isinstance(content, bytes) else content.encode())
                    file.flush()
                    os.fsync(file.fileno())
            at_once = _put_in_place(folder, out)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Sites that were replaced long enough ago are removed, and the remains of processes that were killed.
        for path in out.parent.iterdir():
            with suppress(OSError):
                age = time.time() - path.lstat().st_mtime
                if not _is_draft(path.name, out) or path == folder or 0 <= age < KEPT_SECONDS:
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
    return at_once


def _put_in_place(folder: Path, out: Path) -> bool:
    """Make `out` stand for the folder; return True if this took one step."""
    # `write_site` counts the age of the old site from now.
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
    """Exchange the names of two files or folders in one step; return False if the system cannot do that."""
    try:
        renameat2: Any = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _name_draft(out: Path, ending: str = "") -> Path:
    """Return a new name beside a site, which `_is_draft` recognizes."""
    return out.with_name(f".{out.name}-{secrets.token_hex(8)}{ending}")


def _is_draft(name: str, out: Path) -> bool:
    return re.fullmatch(rf"\.{re.escape(out.name)}-[0-9a-f]{{16}}(\.link|\.old)?", name) is not None
