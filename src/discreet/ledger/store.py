"""The file of a ledger: one SQLite table of records, and transactions that are on the disk when they end.

A rollback journal in mode DELETE with synchronous = EXTRA. EXTRA, because with FULL the removal of the journal is not
synced, and after a power cut the journal can come back and undo a charge whose release was already seen. Not a
write-ahead log, because then a charge lives in a second file until a checkpoint, and a copy of the first file alone
would have forgotten it; and because processes on a shared drive could not use one.
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

# Records in a chain: each carries the hash of the one before, so that one edited, removed or moved breaks it.
#
# The hash of a record is SHA-256 over its number, its kind, the hash before and its body, a line each. Whoever can
# write
# the file can also make a whole new chain; a hash of the last record that was kept elsewhere shows that too, because no
# other chain holds it.

START = "0" * 64
"""What the first record names as the hash before it."""

BUDGET, CHARGE, STORE = "budget", "charge", "store"
"""The kinds of records: what may be spent, what was spent, and what was released for it."""

LOCK, REOPEN = "lock", "reopen"
"""Further kinds: after a fault of discreet itself nothing more is released, until a person says that it may be."""


@dataclass(frozen=True)
class Record:
    """One line of the ledger; `body` is canonical JSON."""

    number: int
    kind: str
    body: str
    previous: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, read."""
        found: dict[str, Any] = json.loads(self.body)
        return found


def canonical(content: Any) -> str:
    r"""The one JSON text of some content: sorted keys, no spaces, ASCII.

    Examples
    --------
    >>> canonical({"k": 2, "d": "ä"})
    '{"d":"\\u00e4","k":2}'
    """
    return _ENCODER.encode(content)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def next_record(last: Record | None, kind: str, content: dict[str, Any]) -> Record:
    """The record that comes after `last`."""
    number, previous = (1, START) if last is None else (last.number + 1, last.hash)
    body = canonical(content)
    return Record(number, kind, body, previous, digest(f"{number}\n{kind}\n{previous}\n{body}"))


def check_chain(last: Record | None, records: Iterable[Record]) -> Iterator[Record]:
    """The records that follow `last`, each once it is known to be whole and in its place."""
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
    """The error for a record that is not as it was written."""
    return LedgerError(f"the ledger is damaged: record {number} {what}; it must not be used for releases")


# The path of a ledger: what may be there, who may write it, and what goes wrong with it, in our words.


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
