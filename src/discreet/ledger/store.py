"""Hash-chained records, and the interface of the places that keep them: a file, or a table of a PostgreSQL server."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, LedgerError, check_is_path, quote

WITHDRAW = "withdraw"
"""Kind of record: a published chart's period was withdrawn; what it cost stays spent."""

PART = "part"
"""Kind of record: a part of the budget was made, changed or dissolved."""

START = "0" * 64
"""The previous hash of the first record."""

BUDGET, CHARGE, STORE = "budget", "charge", "store"
"""Kinds of records: the budget, a charge, and the release of a charge."""

LOCK, REOPEN = "lock", "reopen"
"""Kinds of records: a lock after a fault of discreet itself, and a person's permission to go on."""

LEAST = -(2**63)
"""The least number that a database can give a record; those of discreet begin with 1."""

_SCHEMES = ("postgres://", "postgresql://")

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


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


class Transaction(ABC):
    """An open transaction on the records of one ledger."""

    @abstractmethod
    def append(self, record: Record) -> None:
        """Write a record after all others."""

    @abstractmethod
    def records(self, first: int = LEAST) -> Iterator[Record]:
        """Return the records from a number on, in order; by default all, even those with impossible numbers below 1."""

    @abstractmethod
    def clock(self) -> datetime | None:
        """Return the time of the clock that all hosts share, to the second; None where each has its own."""

    def record_at(self, number: int) -> Record | None:
        """Return the record of this number, or None."""
        found = next(self.records(number), None)
        return found if found is not None and found.number == number else None


class Store(ABC):
    """A place that keeps the records of one ledger.

    `path` names the place in messages and to people. It holds no user, no password and no other part of a URL that
    could be secret, and neither does the text of any error that a store raises.
    """

    path: str

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rpartition("/")[2]

    @abstractmethod
    def make(self, make_first: Callable[[datetime | None], Record]) -> None:
        """Make the place of a new ledger; never replace a ledger.

        `make_first` returns its first record from the time of `Transaction.clock`. If it raises, nothing is made.
        """

    @abstractmethod
    def read(self, wait: float) -> AbstractContextManager[Transaction]:
        """Open a snapshot of the records; `wait` are seconds to wait for others."""

    @abstractmethod
    def write(self, wait: float) -> AbstractContextManager[Transaction]:
        """Open an exclusive transaction, which is on disk once it has ended without an error."""

    @abstractmethod
    def check_room(self, size: int) -> None:
        """Raise if it is known that there is no room for `size` more bytes."""

    @abstractmethod
    def lock_publishing(self, wait: float, report: Callable[..., None]) -> AbstractContextManager[None]:
        """Hold the lock of `discreet publish`, so that no other run takes a period that is being drawn for lost."""

    @abstractmethod
    def check_publishing(self) -> None:
        """Raise if this process holds the lock of `discreet publish`, and lost it."""


def open_store(ledger: object) -> Store:
    """Return the store that an argument names, a path or the URL of a PostgreSQL database, without opening it."""
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidTypeError(f"ledger must be a path, a URL or a Ledger, not {quote(ledger)}")
    text = os.fspath(ledger)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValueError(f"ledger must be a path, not {quote(text)}")
    if is_url(text):
        from discreet.ledger.postgres_store import PostgresStore

        return PostgresStore(text)
    from discreet.ledger.file_store import FileStore

    return FileStore(text)


def is_url(ledger: str, folder: str | os.PathLike[str] = "") -> bool:
    """Return True for the URL of a PostgreSQL database, False for a path in a folder; raise for any other URL."""
    if ledger.startswith(_SCHEMES):
        return True
    allowed = "a path or the URL of a PostgreSQL database, such as postgres://HOST/DATABASE"
    check_is_path("ledger", ledger, allowed, folder)
    return False
