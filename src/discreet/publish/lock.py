"""One run of publishing at a time on a ledger: what one is drawing, another must not take for lost.

The lock is a transaction of SQLite on a file beside the ledger. It ends with the process, however that ends.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from discreet.errors import InvalidValueError
from discreet.ledger.errors import LedgerError


def find_lock(ledger: Path) -> Path:
    """The file that is locked for a ledger."""
    path = Path(os.path.realpath(ledger))
    return path.with_name(f".{path.name}.publish-lock")


@contextmanager
def lock_publishing(ledger: Path, wait: float, report: Callable[..., None]) -> Iterator[None]:
    """Holds the lock of a ledger inside, after waiting so many seconds at most for another run, which is reported."""
    file = find_lock(ledger)
    try:
        connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    except sqlite3.Error:
        raise _refuse(ledger) from None
    with closing(connection):
        if not _try_lock(connection, ledger):
            report("waiting", seconds=wait)
            connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
            if not _try_lock(connection, ledger):
                raise LedgerError(
                    f"another run of 'discreet publish' is at work on {ledger.name}; nothing was drawn, try again later"
                )
        yield


def _try_lock(connection: sqlite3.Connection, ledger: Path) -> bool:
    """Whether the lock was free, in the time that the connection waits."""
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise _refuse(ledger) from None
    return True


def _refuse(ledger: Path) -> InvalidValueError:
    return InvalidValueError(f"ledger must be in a folder that can be written, and that of {ledger.name} cannot")
