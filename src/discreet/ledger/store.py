"""The file of a ledger: one SQLite table of hash-chained records, and transactions that are on disk when they end.

The journal is a rollback journal in mode DELETE with synchronous = EXTRA. With FULL the removal of the journal is not
synced, so after a power cut it can come back and undo a charge whose release was already seen. A write-ahead log would
keep charges in a second file, which a copy of the first forgets, and does not work on a shared drive.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, LedgerError, quote

START = "0" * 64
"""The previous hash of the first record."""

BUDGET, CHARGE, STORE = "budget", "charge", "store"
"""Kinds of records: the budget, a charge, and the release of a charge."""

LOCK, REOPEN = "lock", "reopen"
"""Kinds of records: a lock after a fault of discreet itself, and a person's permission to go on."""

APPLICATION = 0x64736372
"""The application id in the header of the file: "dscr"."""

SCHEMA = 1
"""The version of the table, in the header as well."""

TABLE = (
    "CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, "
    "previous TEXT NOT NULL, hash TEXT NOT NULL)"
)

EXTRA = 3
"""SQLite's number for synchronous = EXTRA; versions that do not know the word set a lower one."""

LEAST = -(2**63)
"""The least number that SQLite can give a record; those of discreet begin with 1."""

_MOST_TRIED = 2**20
"""The most bytes written to find out if there is room: more would take long for large releases."""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)

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


@dataclass(frozen=True)
class Record:
    """One record of the chain; `body` is canonical JSON.

    The hash is SHA-256 over number, kind, previous hash and body, a line each, so editing, removing or moving a record
    breaks the chain. A writer of the file can make a whole new chain; a copy of the last hash kept elsewhere reveals
    that, because no other chain holds it.
    """

    number: int
    kind: str
    body: str
    previous: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """Return the parsed body."""
        found: dict[str, Any] = json.loads(self.body)
        return found


def canonical(content: Any) -> str:
    r"""Return the canonical JSON of some content: sorted keys, no spaces, ASCII.

    Examples
    --------
    >>> canonical({"k": 2, "d": "ä"})
    '{"d":"\\u00e4","k":2}'
    """
    return _ENCODER.encode(content)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def next_record(last: Record | None, kind: str, content: dict[str, Any]) -> Record:
    """Return the record that comes after `last`."""
    number, previous = (1, START) if last is None else (last.number + 1, last.hash)
    body = canonical(content)
    return Record(number, kind, body, previous, digest(f"{number}\n{kind}\n{previous}\n{body}"))


def check_chain(last: Record | None, records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records that follow `last`, each after a check that it is intact and in its place."""
    for record in records:
        number, previous = (1, START) if last is None else (last.number + 1, last.hash)
        if record.number != number:
            raise damage_error(number, "is missing")
        if record.hash != digest(f"{number}\n{record.kind}\n{record.previous}\n{record.body}"):
            raise damage_error(number, "was edited")
        if record.previous != previous:
            raise damage_error(number, "does not follow the one before it")
        last = record
        yield record


def damage_error(number: int, what: str) -> LedgerError:
    """Return the error for a record that is not as it was written."""
    return LedgerError(f"the ledger is damaged: record {number} {what}; it must not be used for releases")


def as_path(ledger: object) -> Path:
    """Return the absolute path that an argument names."""
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidTypeError(f"ledger must be a path or a Ledger, not {quote(ledger)}")
    text = os.fspath(ledger)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValueError(f"ledger must be a path, not {quote(text)}")
    return Path(os.path.realpath(text))


def _stat_ledger(path: Path) -> os.stat_result:
    """Return the file's status; raise unless it is a file with one name, since SQLite keeps its journal by the name."""
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidValueError(f"ledger must be a file that exists, not {str(path)!r}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise InvalidValueError(f"ledger must be a regular file, not {str(path)!r}")
    if found.st_nlink > 1:
        raise LedgerError(f"the ledger {str(path)!r} has hard links, by which it could be spent twice; remove them")
    return found


def _is_writable(found: os.stat_result, path: Path) -> bool:
    # A file marked read-only is not written even by root, for whom `os.access` is always true.
    return bool(found.st_mode & 0o222) and os.access(path, os.W_OK)


def check_free_space(path: Path, size: int) -> None:
    """Raise if the disk has no room for a new file of `size` bytes beside the ledger."""
    try:
        is_full = shutil.disk_usage(path.parent).free < size
        with tempfile.TemporaryFile(dir=path.parent) as file:
            # A quota shows only on writing. Zeros are written, because a hole takes no room.
            file.write(bytes(min(size, _MOST_TRIED)))
    except OSError as error:
        # The charge reports any other trouble with the folder.
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if is_full:
        raise LedgerError(
            f"the ledger {str(path)!r} cannot be written: the disk is full, or has no room for the release; "
            "nothing was drawn or charged"
        )


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Raise every error of SQLite inside the block as a LedgerError."""
    try:
        yield
    except sqlite3.Error as error:
        # SQLite's message can quote the file; its code cannot. Text that is not UTF-8 raises an error without a code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        reason = _REASONS.get(code & 0xFF, f"cannot be used: SQLite reports error {code}")
        failure = LedgerError(f"the ledger {str(path)!r} {reason}")
    else:
        return
    raise failure


def make_file(path: Path, first: Record) -> None:
    """Make the file of a new ledger, readable by its owner alone; never replace a file."""
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        raise InvalidValueError(f"path must be a file that does not exist yet, not {str(path)!r}") from None
    except OSError as error:
        raise LedgerError(f"making the ledger {str(path)!r} fails: {error.strerror}") from None
    try:
        os.close(file)
        path.chmod(0o600)  # whatever the umask
        with _translate_errors(path), closing(_connect(path, 0.0, "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {SCHEMA}", TABLE):
                connection.execute(statement)
            append(connection, first)
            connection.execute("COMMIT")
        # The name of a new file is on disk once its folder is.
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


@contextmanager
def read_transaction(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """Open a snapshot of the records."""
    mode = "rw" if _is_writable(_stat_ledger(path), path) else "ro"
    with _translate_errors(path), closing(_connect(path, wait, mode)) as connection:
        connection.execute("BEGIN")
        _check_format(connection, path)
        yield connection


@contextmanager
def write_transaction(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """Open an exclusive transaction, which is on disk once it has ended without an error."""
    before = _stat_ledger(path)
    if not _is_writable(before, path):
        raise LedgerError(f"the ledger {str(path)!r} is read-only, so nothing can be charged to it")
    with _translate_errors(path), closing(_connect(path, wait, "rw")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            _check_format(connection, path)
            yield connection
            connection.execute("COMMIT")
            # A file that was removed can still be written through an open connection, and nobody would read it.
            try:
                is_same = os.path.samestat(before, path.stat())
            except OSError:
                is_same = False
            if not is_same:
                raise LedgerError(f"the ledger {str(path)!r} was removed or replaced while it was in use")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def append(connection: sqlite3.Connection, record: Record) -> None:
    """Write a record after all others."""
    values = record.number, record.kind, record.body, record.previous, record.hash
    connection.execute("INSERT INTO records (number, kind, body, previous, hash) VALUES (?, ?, ?, ?, ?)", values)


def records(connection: sqlite3.Connection, first: int = LEAST) -> Iterator[Record]:
    """Return the records from a number on, in order; by default all, even those with impossible numbers below 1."""
    rows = connection.execute(
        "SELECT number, kind, body, previous, hash FROM records WHERE number >= ? ORDER BY number", (first,)
    )
    return (Record(*row) for row in rows)


def record_at(connection: sqlite3.Connection, number: int) -> Record | None:
    """Return the record of this number, or None."""
    found = next(records(connection, number), None)
    return found if found is not None and found.number == number else None


def _connect(path: Path, wait: float, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", timeout=wait, isolation_level=None, uri=True)
    try:
        # fullfsync matters on macOS, where fsync does not reach the disk.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        if _number(connection, "synchronous") != EXTRA:
            raise LedgerError(f"a ledger needs SQLite 3.12 or newer, not {sqlite3.sqlite_version}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the file is a ledger of this version, with its one table and nothing else, such as a trigger."""
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
