"""The file of a ledger: one SQLite table of hash-chained records, and transactions that are on disk when they end.

The journal is a rollback journal in mode DELETE with synchronous = EXTRA. With FULL the removal of the journal is not
synced, so after a power cut it can come back and undo a charge whose release was already seen. A write-ahead log would
keep charges in a second file, which a copy of the first forgets, and does not work on a shared drive.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from discreet.errors import InvalidValueError, LedgerError
from discreet.ledger.store import LEAST, Record, Store, Transaction

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

_MOST_TRIED = 2**20
"""The most bytes written to find out if there is room: more would take long for large releases."""

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


class FileTransaction(Transaction):
    """A transaction on the one table of a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def append(self, record: Record) -> None:
        values = record.number, record.kind, record.body, record.previous, record.hash
        statement = "INSERT INTO records (number, kind, body, previous, hash) VALUES (?, ?, ?, ?, ?)"
        self._connection.execute(statement, values)

    def records(self, first: int = LEAST) -> Iterator[Record]:
        rows = self._connection.execute(
            "SELECT number, kind, body, previous, hash FROM records WHERE number >= ? ORDER BY number", (first,)
        )
        return (Record(*row) for row in rows)

    def clock(self) -> None:
        return None


class FileStore(Store):
    """A ledger in a file; `given` is its path, in which links are resolved."""

    def __init__(self, given: str) -> None:
        self._path = Path(os.path.realpath(given))
        self.path = str(self._path)

    def make(self, make_first: Callable[[datetime | None], Record]) -> None:
        _make_file(self._path, make_first(None))

    @contextmanager
    def read(self, wait: float) -> Iterator[FileTransaction]:
        path = self._path
        mode = "rw" if _is_writable(_stat_ledger(path), path) else "ro"
        with _translate_errors(path), closing(_connect(path, wait, mode)) as connection:
            connection.execute("BEGIN")
            _check_format(connection, path)
            yield FileTransaction(connection)

    @contextmanager
    def write(self, wait: float) -> Iterator[FileTransaction]:
        path = self._path
        before = _stat_ledger(path)
        if not _is_writable(before, path):
            raise LedgerError(f"the ledger {str(path)!r} is read-only, so nothing can be charged to it")
        with _translate_errors(path), closing(_connect(path, wait, "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                _check_format(connection, path)
                yield FileTransaction(connection)
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

    def check_room(self, size: int) -> None:
        check_free_space(self._path, size)

    @contextmanager
    def lock_publishing(self, wait: float, report: Callable[..., None]) -> Iterator[None]:
        # Two names of one ledger share a lock, since links are resolved.
        with hold_lock(self._path, "ledger", wait, report):
            yield

    def check_publishing(self) -> None:
        """Do nothing: the lock ends with the process alone."""


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


def _make_file(path: Path, first: Record) -> None:
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
            FileTransaction(connection).append(first)
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


def find_lock(path: Path) -> Path:
    """Return the file that is locked for `path`."""
    return path.with_name(f".{path.name}.publish-lock")


@contextmanager
def hold_lock(path: Path, name: str, wait: float, report: Callable[..., None]) -> Iterator[None]:
    """Hold the lock of a file or folder, after waiting at most `wait` seconds for another run.

    `name` is the setting that names the file or folder, for errors. The lock is an SQLite transaction on a file of its
    own, so it ends with the process, even if the process is killed.
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
