"""Records in a chain: each carries the hash of the one before, so that one edited, removed or moved breaks it.

The hash of a record is SHA-256 over its number, its kind, the hash before and its body, a line each. Whoever can write
the file can also make a whole new chain; a hash of the last record that was kept elsewhere shows that too, because no
other chain holds it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from discreet.ledger.errors import LedgerError

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
