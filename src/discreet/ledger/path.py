"""The path of a ledger: what may be there, who may write it, and what goes wrong with it, in our words."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.ledger.errors import LedgerError


def as_path(ledger: object) -> Path:
    """The absolute path that an argument names."""
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidTypeError(f"ledger must be a path or a Ledger, not {quote(ledger)}")
    text = os.fspath(ledger)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValueError(f"ledger must be a path, not {quote(text)}")
    return Path(os.path.realpath(text))


def stat_ledger(path: Path) -> os.stat_result:
    """What is at the path, which must be a file with one name: SQLite keeps its journal beside the name."""
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidValueError(f"ledger must be a file that exists, not {str(path)!r}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise InvalidValueError(f"ledger must be a regular file, not {str(path)!r}")
    if found.st_nlink > 1:
        raise LedgerError(f"the ledger {str(path)!r} has hard links, by which it could be spent twice; remove them")
    return found


def check_same(before: os.stat_result, path: Path) -> None:
    """Raises where the file has gone: those who have it open can write to it still, and nobody will read it."""
    try:
        same = os.path.samestat(before, path.stat())
    except OSError:
        same = False
    if not same:
        raise LedgerError(f"the ledger {str(path)!r} was removed or replaced while it was in use")


def is_writable(found: os.stat_result, path: Path) -> bool:
    """Whether we may write the file."""
    # A file that is marked read-only stays so for those who may write everything.
    return bool(found.st_mode & 0o222) and os.access(path, os.W_OK)


_TRIED = 2**20
"""The most bytes that are written to find out whether there is room: more would take long for large releases."""


def check_free_space(path: Path, size: int) -> None:
    """Raise where the disk is too full for a new file of so many bytes beside the ledger."""
    try:
        is_full = shutil.disk_usage(path.parent).free < size
        with tempfile.TemporaryFile(dir=path.parent) as file:
            # A quota shows only where something is written: zeros, because a hole takes no room.
            file.write(bytes(min(size, _TRIED)))
    except OSError as error:
        # Whatever else is wrong with the folder is found, and named, by the charge.
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if is_full:
        raise LedgerError(
            f"the ledger {str(path)!r} cannot be written: the disk is full, or has no room for the release; "
            "nothing was drawn or charged"
        )


def sync_folder(folder: Path) -> None:
    """The name of a new file is on the disk once its folder is."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raises what SQLite raises inside as a LedgerError, in our words."""
    try:
        yield
    except sqlite3.Error as error:
        # The words of SQLite can quote what is in the file; its code cannot. Text that is not UTF-8 has no code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        reason = _REASONS.get(code & 0xFF, f"cannot be used: SQLite reports error {code}")
        failure = LedgerError(f"the ledger {str(path)!r} {reason}")
    else:
        return
    raise failure


_REASONS = {
    sqlite3.SQLITE_BUSY: "is in use by other processes and was not free in time; try again, or wait longer",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk reports an error, or a limit on file sizes",
    sqlite3.SQLITE_READONLY: "cannot be written: it or its folder is read-only, or it was removed while in use",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: it or its folder cannot be read or written",
    sqlite3.SQLITE_CORRUPT: "is damaged: SQLite cannot read it",
    sqlite3.SQLITE_NOTADB: "is not a ledger, or is damaged: SQLite cannot read it",
    sqlite3.SQLITE_CONSTRAINT: "is damaged: a record is in the way of the next one",
}
