"""Write a site whole or not at all, with one writer at a time.

The site is a symbolic link to a folder beside it. A new site is written into a new folder, and the link is replaced in
one step, so a reader always finds the old site or the new one. The replaced folder stays for a while, for readers who
are in it. If links cannot be made, the site is a folder: on Linux it is exchanged in one step; elsewhere it is moved
aside first, and for a moment there is no site.

A lock is an SQLite transaction on a file of its own, so it ends with the process, even if the process is killed.
"""

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

from discreet.errors import InvalidValueError, LedgerError

KEPT_SECONDS = 60
"""A replaced folder is kept for this long, which lets a reader who opened it read all of its files."""

MARK = ".discreet-site"
"""Name of an empty file that marks a folder as a site written by discreet."""


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
    out: Path, files: dict[str, str], wait: float = 600, report: Callable[..., None] = lambda *_, **__: None
) -> bool:
    """Replace the site at `out` by the given files.

    Parameters
    ----------
    out
        The path of the site.
    files
        The text of each file, keyed by its path in the site.
    wait
        The longest time in seconds to wait for another process that writes the same site.
    report
        Is told of a wait.

    Returns
    -------
    bool
        True if the new site took the place of the old one in one step.
    """
    check_site(out)
    with _hold_lock(out, "out", wait, report):
        # Another process may have changed `out` during the wait.
        check_site(out)
        folder = _name_draft(out)
        try:
            folder.mkdir()
            for name, text in {MARK: "", **files}.items():
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                with path.open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
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


@contextmanager
def lock_publishing(ledger: Path, wait: float, report: Callable[..., None]) -> Iterator[None]:
    """Hold the lock of a ledger, so that no other run takes a period that is being drawn for a lost one."""
    # Two names of one ledger must share a lock.
    with _hold_lock(Path(os.path.realpath(ledger)), "ledger", wait, report):
        yield


def find_lock(path: Path) -> Path:
    """Return the file that is locked for `path`."""
    return path.with_name(f".{path.name}.publish-lock")


@contextmanager
def _hold_lock(path: Path, name: str, wait: float, report: Callable[..., None]) -> Iterator[None]:
    """Hold the lock of a file or folder, after waiting at most `wait` seconds for another run.

    `name` is the setting that names the file or folder, for errors.
    """
    file = find_lock(path)
    refused = InvalidValueError(f"{name} must be in a folder that can be written, and that of {path.name} cannot")

    def try_lock() -> bool:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise refused from None
        return True

    try:
        # The lock is for those who may write what it guards: the owner, and a group that shares it.
        guarded = path if path.is_file() else path.parent
        mode = 0o600 | (guarded.stat().st_mode & 0o060)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, mode))
        with suppress(OSError):
            file.chmod(mode)
        connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error):
        raise refused from None
    with closing(connection):
        if not try_lock():
            report("waiting", on="budget" if name == "ledger" else "site", seconds=wait)
            connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
            if not try_lock():
                done = "nothing was drawn" if name == "ledger" else "the site was not written"
                raise LedgerError(
                    f"another run of 'discreet publish' is at work on {path.name}; {done}, try again later"
                )
        yield
