"""The file of a ledger: one SQLite table of records, and transactions that are on the disk when they end.

A rollback journal in mode DELETE with synchronous = EXTRA. EXTRA, because with FULL the removal of the journal is not
synced, and after a power cut the journal can come back and undo a charge whose release was already seen. Not a
write-ahead log, because then a charge lives in a second file until a checkpoint, and a copy of the first file alone
would have forgotten it; and because processes on a shared drive could not use one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from discreet.errors import InvalidValueError
from discreet.ledger.chain import Record
from discreet.ledger.errors import LedgerError
from discreet.ledger.path import check_same, is_writable, stat_ledger, sync_folder, translate_errors

APPLICATION = 0x64736372
"""The application id in the header of the file: "dscr"."""

SCHEMA = 1
"""The version of the table, in the header as well."""

TABLE = (
    "CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, "
    "previous TEXT NOT NULL, hash TEXT NOT NULL)"
)

EXTRA = 3
"""What SQLite calls synchronous = EXTRA; a version that does not know it takes it for less."""

LEAST = -(2**63)
"""The least number that SQLite can give a record; ours begin with 1."""


def make_file(path: Path, first: Record) -> None:
    """Makes the file of a new ledger, for its owner alone; what is there already is left alone."""
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        raise InvalidValueError(f"path must be a file that does not exist yet, not {str(path)!r}") from None
    except OSError as error:
        raise LedgerError(f"making the ledger {str(path)!r} fails: {error.strerror}") from None
    try:
        os.close(file)
        path.chmod(0o600)  # whatever the umask
        with translate_errors(path), closing(_connect(path, 0.0, "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {SCHEMA}", TABLE):
                connection.execute(statement)
            append(connection, first)
            connection.execute("COMMIT")
        sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


@contextmanager
def read_transaction(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """A snapshot of the records."""
    mode = "rw" if is_writable(stat_ledger(path), path) else "ro"
    with translate_errors(path), closing(_connect(path, wait, mode)) as connection:
        connection.execute("BEGIN")
        _check_format(connection, path)
        yield connection


@contextmanager
def write_transaction(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """A transaction that no other overlaps; once it has ended without an error, it is on the disk."""
    before = stat_ledger(path)
    if not is_writable(before, path):
        raise LedgerError(f"the ledger {str(path)!r} is read-only, so nothing can be charged to it")
    with translate_errors(path), closing(_connect(path, wait, "rw")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            _check_format(connection, path)
            yield connection
            connection.execute("COMMIT")
            check_same(before, path)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def append(connection: sqlite3.Connection, record: Record) -> None:
    """Writes a record after all others."""
    values = record.number, record.kind, record.body, record.previous, record.hash
    connection.execute("INSERT INTO records (number, kind, body, previous, hash) VALUES (?, ?, ?, ?, ?)", values)


def records(connection: sqlite3.Connection, first: int = LEAST) -> Iterator[Record]:
    """The records from a number on, in order; by default all, also such as have no place before the first."""
    rows = connection.execute(
        "SELECT number, kind, body, previous, hash FROM records WHERE number >= ? ORDER BY number", (first,)
    )
    return (Record(*row) for row in rows)


def record_at(connection: sqlite3.Connection, number: int) -> Record | None:
    """The record of this number, if there is one."""
    found = next(records(connection, number), None)
    return found if found is not None and found.number == number else None


def _connect(path: Path, wait: float, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", timeout=wait, isolation_level=None, uri=True)
    try:
        # fullfsync matters on macOS alone, where fsync does not reach the disk.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        if _number(connection, "synchronous") != EXTRA:
            raise LedgerError(f"a ledger needs SQLite 3.12 or newer, not {sqlite3.sqlite_version}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raises unless the file is a ledger of our version, with our table and nothing else, such as a trigger."""
    if _number(connection, "application_id") != APPLICATION:
        raise InvalidValueError(f"ledger must be a ledger made by discreet, and {str(path)!r} is another kind of file")
    version = _number(connection, "user_version")
    if version != SCHEMA:
        kind = "newer" if version > SCHEMA else "unknown"
        raise LedgerError(f"the ledger {str(path)!r} has version {version} of a {kind} discreet, not {SCHEMA}")
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if connection.execute("SELECT sql FROM sqlite_master").fetchall() != [(TABLE,)] or journal != "delete":
        raise LedgerError(f"the ledger {str(path)!r} is damaged: its table is not the one that discreet makes")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
