"""Write a site whole or not at all, one writer at a time."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import InvalidValueError
from discreet.ledger.errors import LedgerError

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


def find_lock(path: Path) -> Path:
    """Return the file beside `path` that is locked for it."""
    return path.with_name(f".{path.name}.publish-lock")


@contextmanager
def lock_publishing(ledger: Path, wait: float, report: Callable[..., None]) -> Iterator[None]:
    """Hold the lock of a ledger inside: what one run is drawing, another must not take for lost."""
    # A ledger that is reached by two names is one ledger.
    with hold_lock(Path(os.path.realpath(ledger)), "ledger", wait, report):
        yield


@contextmanager
def hold_lock(path: Path, name: str, wait: float, report: Callable[..., None]) -> Iterator[None]:
    """Hold the lock of a file or folder inside, after waiting for another run for `wait` seconds at most.

    `name` is the setting that names the file or folder, for errors. A wait is reported.
    """
    file = find_lock(path)
    try:
        # For its owner alone, also where an earlier version made it for others.
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        with suppress(OSError):
            file.chmod(0o600)
        connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error):
        raise _refuse(path, name) from None
    with closing(connection):
        if not _try_lock(connection, path, name):
            report("waiting", on="budget" if name == "ledger" else "site", seconds=wait)
            connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
            if not _try_lock(connection, path, name):
                done = "nothing was drawn" if name == "ledger" else "the site was not written"
                raise LedgerError(
                    f"another run of 'discreet publish' is at work on {path.name}; {done}, try again later"
                )
        yield


def _try_lock(connection: sqlite3.Connection, path: Path, name: str) -> bool:
    """Return True if the lock was free in the time that the connection waits."""
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise _refuse(path, name) from None
    return True


def _refuse(path: Path, name: str) -> InvalidValueError:
    return InvalidValueError(f"{name} must be in a folder that can be written, and that of {path.name} cannot")
