"""Charges: what one says, and whether it is granted, by the budget, the adjacency, the clock and earlier requests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

import discreet
from discreet.errors import BudgetSpentError, InvalidTypeError, InvalidValueError, LedgerError, quote
from discreet.labels import sort_labels
from discreet.ledger.account import Account, Composition, Entry, Stored, read_stored
from discreet.ledger.store import CHARGE, Record, canonical, check_chain, damage_error, digest, next_record, record_at
from discreet.mechanisms.registry import to_dict as mechanism_to_dict
from discreet.privacy import spell_exactly
from discreet.release.guarantee import Guarantee
from discreet.release.request import AnyRequest, Request
from discreet.text import round_down, round_up

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


# The public query behind a release, and its fingerprint: what was asked, never what the data answered.

MOST_LABELS = 100_000
"""Labels of larger domains are not read for the fingerprint: it would take longer than the release."""


@dataclass(frozen=True)
class Query:
    """What is asked: k of d items or, for a sketch, ranks, with a guarantee, of a source described in public terms.

    Items that nobody listed have no d.

    `dataset` is the caller's name for the data, or None; `groups` how many groups it is asked for, d then being the
    size of the largest, or None where there are none.
    """

    k: int
    d: int | None
    guarantee: Guarantee
    source: dict[str, Any]
    dataset: str | None = None
    groups: int | None = None

    @property
    def fingerprint(self) -> str:
        """The same for two queries that ask the same, whatever the data."""
        named = {} if self.dataset is None else {"dataset": self.dataset}
        promised = _promise_to_dict(self.guarantee)
        return digest(canonical({"k": self.k, "d": self.d, "guarantee": promised, "source": self.source, **named}))


def query_of(request: AnyRequest, dataset: str | None = None) -> Query:
    """Return the public query behind a request; `dataset` is the caller's name for the data."""
    source = request.source
    labels = _hash_of_labels(getattr(source, "labels", None), MOST_LABELS)
    described = {**source.description(), **request.describe(), **labels}
    if request.requests:
        described["members"] = _digest_members(request.requests)
    return Query(request.k, request.d, request.guarantee, described, dataset, request.groups)


def _promise_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    promised = guarantee.to_dict()
    del promised["zcdp"]  # which a later version may know better
    return promised


def _digest_members(requests: Sequence[Request]) -> str:
    """A hash of what is asked of each group, in their order: its size, its share, and what is public of its source."""
    promises: dict[int, dict[str, Any]] = {}
    told: dict[int, dict[str, Any]] = {}
    room = MOST_LABELS
    described = []
    for request in requests:
        guarantee, source = request.guarantee, request.source
        labels = getattr(source, "labels", None)
        if id(guarantee) not in promises:
            promises[id(guarantee)] = _promise_to_dict(guarantee)
        if id(labels) not in told:
            told[id(labels)] = _hash_of_labels(labels, room)
            room -= 0 if labels is None else len(labels)
        described.append([request.d, promises[id(guarantee)], {**source.description(), **told[id(labels)]}])
    return digest(canonical(described))


def _hash_of_labels(labels: Any, most: int) -> dict[str, Any]:
    """A hash of the labels that the caller gave, in an order of the labels alone: theirs can be that of the scores."""
    if labels is None or len(labels) > most:
        return {}
    # The text of a list tells its members and their types apart, and is made quickly.
    return {"labels": digest(repr(sort_labels(labels)))}


_BACK = timedelta(minutes=1)
"""How far a clock may go back, or the clocks of two machines differ, before one of them counts as wrong."""

_LONGEST = 1000

_ROOM, _ROOM_PER_ITEM = 32_768, 200
"""About how many bytes a charge with its journal, and an item of a release, take in a ledger."""


@dataclass(frozen=True)
class Charge:
    """The ledger that a release is to be charged to, and the words of its caller.

    `edition` is written by `discreet publish` alone: no argument of `top_k` or `sketch` leads to it.
    """

    ledger: Ledger
    purpose: str | None
    request_id: str | None
    dataset: str | None
    edition: dict[str, str | None] | None = None

    def query(self, request: AnyRequest) -> Query:
        """What is charged: the public query behind a request."""
        return query_of(request, self.dataset)

    def is_new(self) -> bool:
        """Return whether the request was not charged before."""
        return self.request_id is None or not self.ledger.has_request(self.request_id)

    def check_room(self, query: Query) -> None:
        """Raise where the disk of the ledger has no room for the charge and the release."""
        self.ledger.check_room(_ROOM + _ROOM_PER_ITEM * query.k * (query.groups or 1))

    def spend(self, query: Query) -> tuple[Record | None, Stored | None]:
        """The charge, which is made; or, and without one, what was released for the same request before."""
        granted = self.ledger.charge(query, self.purpose, self.request_id, self.edition)
        return (granted, None) if isinstance(granted, Record) else (None, granted)

    def lock(self, record: Record) -> None:
        """Lock the ledger after a charge whose release was withheld for a fault of discreet itself."""
        self.ledger.lock(record)

    def keep(self, record: Record, release: Stored) -> None:
        """Stores what was released for a charge, before anybody sees it."""
        self.ledger.keep(record, release)


def open_charge(
    ledger: str | os.PathLike[str] | Ledger,
    purpose: str | None,
    request_id: str | None,
    dataset: str | None,
    delta: Fraction = Fraction(0),
) -> Charge:
    """The charge that a release will make, on a ledger that is for its data; the words of the caller are checked.

    `delta` is that of the release, where it has one.
    """
    from discreet.ledger.ledger import Ledger

    for name, given in (("purpose", purpose), ("request_id", request_id), ("dataset", dataset)):
        if given is not None:
            check_text(given, name)
    book = ledger if isinstance(ledger, Ledger) else Ledger.unread(ledger)
    book.check_dataset(dataset)
    book.check_release_delta(delta, is_new=request_id is None)
    return Charge(book, purpose, request_id, dataset)


def charge_record(
    account: Account,
    query: Query,
    purpose: str | None,
    request_id: str | None,
    edition: dict[str, str | None] | None = None,
) -> Record:
    """Return the record of a charge, if it is granted."""
    if account.locked_by is not None:
        raise LedgerError(
            f"the ledger is locked: for charge {account.locked_by} discreet found a fault in its own work and withheld "
            "the release; nothing was drawn. Once the fault is known, 'discreet budget reopen' unlocks the ledger"
        )
    check_dataset(account, query.dataset)
    _check_adjacency(account, query)
    check_release_delta(account, query.guarantee.delta)
    _check_budget(account, Composition(query.guarantee.epsilon, query.guarantee.zcdp, query.guarantee.delta))
    content = {
        "time": stamp(_time(account)),
        "purpose": purpose,
        "k": query.k,
        "d": query.d,
        "mechanism": mechanism_to_dict(query.guarantee.mechanism),
        "epsilon": str(query.guarantee.epsilon),
        "zcdp": spell_exactly(query.guarantee.zcdp),
        "delta": str(query.guarantee.delta),
        "version": discreet.__version__,
        "fingerprint": query.fingerprint,
        "request_id": request_id,
        **({} if query.groups is None else {"groups": query.groups}),
        **({} if edition is None else {"edition": edition}),
    }
    return next_record(account.last, CHARGE, content)


def stored_release(connection: Connection, account: Account, request_id: str, query: Query) -> Stored:
    """The release that is stored for a request, which must ask the same."""
    entry = Entry.read(_checked_record(connection, account.requests[request_id]))
    if entry.fingerprint != query.fingerprint:
        raise InvalidValueError(f"request_id must be new for a new query, and {quote(request_id)} was for another one")
    stored = account.stores[entry.number]
    if stored is None:
        raise LedgerError(
            f"request_id {quote(request_id)} was charged at {entry.time} and has no release: it is still being drawn, "
            "or was lost in a crash; it is spent and will not be drawn again"
        )
    return read_stored(_checked_record(connection, stored).content["release"])


def epsilon_left(account: Account) -> Fraction:
    """The epsilon of the budget less what is spent."""
    return max(Fraction(0), account.budget.epsilon - account.spent.spent(account.budget.conversion_delta))


def check_dataset(account: Account, dataset: str | None) -> None:
    """Raises where the ledger is for other data than those that a release names; one for any takes all."""
    own = account.budget.dataset
    if own is not None and dataset is None:
        raise InvalidValueError(f"dataset must be given, because the ledger is for one alone, {quote(own)}")
    if own is not None and dataset != own:
        raise InvalidValueError(f"dataset must be that of the ledger, {quote(own)}, not {quote(dataset)}")


def check_release_delta(account: Account, delta: Fraction, is_new: bool = True) -> None:
    """Raises where the deltas of releases would come to more than the ledger has for them.

    One that may have been charged before, and then costs nothing, is refused only where no release can have a delta.
    """
    own = account.budget.release_delta
    if not delta or (own and not is_new) or account.spent.delta + delta <= own:
        return
    if not own:
        raise BudgetSpentError(
            f"delta {round_up(delta)} does not fit: the ledger has none for releases, which is fixed when it is made, "
            "with release_delta; nothing was drawn"
        )
    left = round_down(own - account.spent.delta)
    raise BudgetSpentError(f"delta {round_up(delta)} does not fit: {left} of {round_up(own)} is left for releases")


def check_text(given: Any, name: str) -> str:
    """A text for people to read later: not empty, and of a length that can be printed."""
    if not isinstance(given, str):
        raise InvalidTypeError(f"{name} must be a text, not {quote(given)}")
    if not given.strip() or len(given) > _LONGEST:
        raise InvalidValueError(f"{name} must have from 1 to {_LONGEST} characters, not {quote(given)}")
    return given


def now() -> datetime:
    """The time, to the second: anything finer would tell how long a release took, and that depends on the scores."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(time: datetime) -> str:
    """A time as the ledger writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _checked_record(connection: Connection, number: int) -> Record:
    """A record that was checked when it was first read, checked again."""
    record, before = record_at(connection, number), record_at(connection, number - 1)
    if record is None:
        raise damage_error(number, "is missing")
    return next(check_chain(before, [record]))


def _check_adjacency(account: Account, query: Query) -> None:
    own, given = account.budget.adjacency, query.guarantee.adjacency
    if given != own:
        raise InvalidValueError(f"adjacency must be that of the ledger, {own!r}, not {given!r}")


def _check_budget(account: Account, cost: Composition) -> None:
    budget, total = account.budget, account.spent.plus(cost)
    if budget.fits(total):
        return
    rest = f"{round_down(epsilon_left(account))} of {round_up(budget.epsilon)} is left, and nothing was drawn"
    if budget.conversion_delta is not None:
        after = round_up(total.spent(budget.conversion_delta))
        rest = f"it would bring what is spent at delta {round_up(budget.conversion_delta)} to {after}; {rest}"
    raise BudgetSpentError(f"epsilon {round_up(cost.epsilon)} does not fit: {rest}")


def _time(account: Account) -> datetime:
    """The time of a charge, which is not before the last one."""
    time = now()
    if time < account.time - _BACK:
        raise LedgerError(
            f"the clock says {stamp(time)}, but the last charge was at {stamp(account.time)}; nothing was drawn"
        )
    return max(time, account.time)
