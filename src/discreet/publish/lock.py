"""Hold a lock while a run publishes: one run at a time on a ledger, and one writer at a time of a site.

The lock is a transaction of SQLite on a file of its own. It ends with the process, however that ends.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from discreet.errors import InvalidValueError, LedgerError


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
