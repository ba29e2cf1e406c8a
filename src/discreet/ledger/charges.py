"""Describe the public query behind a release, and grant or refuse its charge to a ledger.

A query and its fingerprint depend on the request and never on the data. A charge is granted if budget, adjacency,
dataset and clock allow it; a request that was answered before gets its stored release and costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import discreet
from discreet.errors import BudgetSpentError, InvalidTypeError, InvalidValueError, LedgerError, quote
from discreet.labels import sort_labels
from discreet.ledger.account import Account, Composition, Entry, Stored, read_stored
from discreet.ledger.store import (
    CHARGE,
    Record,
    Transaction,
    canonical,
    check_chain,
    damage_error,
    digest,
    next_record,
)
from discreet.mechanisms.registry import to_dict as mechanism_to_dict
from discreet.privacy import spell_exactly
from discreet.release.guarantee import Guarantee
from discreet.release.request import AnyRequest, Request
from discreet.sources.events.periods import open_zone
from discreet.text import round_apart, round_down, round_up

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


MOST_LABELS = 100_000
"""Labels of larger domains are left out of the fingerprint: hashing them would take longer than the release."""

_BACK = timedelta(minutes=1)
"""The most by which a clock may lie behind the last charge: clocks of two machines differ by seconds."""

FIRST_YEAR, LAST_YEAR = 1900, 2999
"""The years that a moment may be in: Python's calendar ends with year 9999, and years below 1000 are not read again."""

_LONGEST_TEXT = 1000
"""The most characters of a purpose, a request id or a dataset: they are printed in tables."""

_ROOM, _ROOM_PER_ITEM = 32_768, 200
"""Estimated bytes of a charge with its journal, and of one released item."""


@dataclass(frozen=True)
class Query:
    """A public query: k of d items (or k ranks of a sketch), with a guarantee, of a source in public terms.

    d is None under partition selection, where nobody listed the items. `dataset` is the caller's name for the data, or
    None. `part` is the part of the budget that pays, or None. `groups` is the number of groups, or None for one list; d
    is then that of the largest group.
    """

    k: int
    d: int | None
    guarantee: Guarantee
    source: dict[str, Any]
    dataset: str | None = None
    groups: int | None = None
    part: str | None = None

    @property
    def fingerprint(self) -> str:
        """Return a hash that is equal for equal queries, whatever the data."""
        texts = {"dataset": self.dataset, "part": self.part}
        named = {name: text for name, text in texts.items() if text is not None}
        promised = _promise_to_dict(self.guarantee)
        return digest(canonical({"k": self.k, "d": self.d, "guarantee": promised, "source": self.source, **named}))


def query_of(request: AnyRequest, dataset: str | None = None, part: str | None = None) -> Query:
    """Return the public query behind a request; `dataset` is the caller's name for the data, `part` pays for it."""
    source = request.source
    labels = _hash_of_labels(getattr(source, "labels", None), MOST_LABELS)
    described = {**source.description(), **request.describe(), **labels}
    if request.requests:
        described["members"] = _digest_members(request.requests)
    return Query(request.k, request.d, request.guarantee, described, dataset, request.groups, part)


def _promise_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    promised = guarantee.to_dict()
    del promised["zcdp"]  # a later version may have a smaller bound
    return promised


def _digest_members(requests: Sequence[Request]) -> str:
    """Return a hash of the queries of all groups, in order: size, guarantee, and public description of the source."""
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
    """Return a hash of the caller's labels, sorted: their given order can be that of the scores."""
    if labels is None or len(labels) > most:
        return {}
    # The repr of a list distinguishes its members and their types, and is fast.
    return {"labels": digest(repr(sort_labels(labels)))}


@dataclass(frozen=True)
class PlannedCharge:
    """The ledger that a release will be charged to, and the texts of its caller.

    `edition` is written by `discreet publish` alone: no argument of `top_k` or `sketch` sets it.
    """

    ledger: Ledger
    purpose: str | None
    request_id: str | None
    dataset: str | None
    edition: dict[str, str | None] | None = None
    as_of: datetime | None = None
    part: str | None = None

    def query(self, request: AnyRequest) -> Query:
        """Return the public query of a request, which is what is charged."""
        return query_of(request, self.dataset, self.part)

    def is_new(self) -> bool:
        """Return True unless the request was charged before."""
        return self.request_id is None or not self.ledger.has_request(self.request_id)

    def check_room(self, query: Query) -> None:
        """Raise if the disk of the ledger has no room for the charge and the release."""
        self.ledger.check_room(_ROOM + _ROOM_PER_ITEM * query.k * (query.groups or 1))

    def spend(self, query: Query, others: Iterable[AnyRequest] = ()) -> tuple[Record | None, Stored | None]:
        """Charge the query and return the record; for a request that was answered before, return its release.

        `others` are other readings of the request, which may have been stored as one of them.
        """
        granted = self.ledger.charge(self, query, map(self.query, others))
        return (granted, None) if isinstance(granted, Record) else (None, granted)

    def lock(self, record: Record) -> None:
        """Lock the ledger after a charge whose release was withheld for a fault of discreet itself."""
        self.ledger.lock(record)

    def keep(self, record: Record, release: Stored) -> None:
        """Store the release of a charge, before the caller sees it."""
        self.ledger.keep(record, release)


def open_charge(
    ledger: str | os.PathLike[str] | Ledger,
    purpose: str | None,
    request_id: str | None,
    dataset: str | None,
    delta: Fraction = Fraction(0),
    as_of: Any = None,
    part: str | None = None,
) -> PlannedCharge:
    """Check the texts of the caller, open the ledger, and return the charge for a release with this delta."""
    from discreet.ledger.ledger import Ledger

    for name, given in (("purpose", purpose), ("request_id", request_id), ("dataset", dataset), ("part", part)):
        if given is not None:
            check_text(given, name)
    book = ledger if isinstance(ledger, Ledger) else Ledger.unread(ledger)
    moment = None if as_of is None else read_as_of(as_of, book)
    book.check_dataset(dataset)
    book.check_part(part)
    book.check_release_delta(delta, must_fit=request_id is None, as_of=moment, part=part)
    return PlannedCharge(book, purpose, request_id, dataset, as_of=moment, part=part)


def read_as_of(as_of: Any, ledger: Ledger) -> datetime:
    """Return the moment whose period a charge is for; raise if it is after now, or if the budget does not renew."""
    moment = parse_moment(as_of, ledger.budget.zone)
    # The clock of this host may differ from the one that counts, which is asked only if it matters.
    if moment > datetime.now(UTC) and moment > (time := ledger.now()):
        raise InvalidValueError(f"as_of must not be after now, which is {stamp(time)}, and is {moment.isoformat()}")
    if ledger.budget.every is None:
        raise InvalidValueError("as_of must be left out for a budget that does not renew, in which all releases count")
    return moment


def charge_record(account: Account, planned: PlannedCharge, query: Query, clock: datetime | None = None) -> Record:
    """Return the record of a charge; raise if the charge is refused.

    `clock` is the time of the store, where several hosts share one: the clock of one of them must not end a period.
    """
    if account.locked_by is not None:
        raise LedgerError(
            f"the ledger is locked: for charge {account.locked_by} discreet found a fault in its own work and withheld "
            "the release; nothing was drawn. Once the fault is known, 'discreet budget reopen' unlocks the ledger"
        )
    check_dataset(account, query.dataset)
    budget, guarantee, part = account.budget, query.guarantee, query.part
    if guarantee.adjacency != budget.adjacency:
        raise InvalidValueError(
            f"adjacency must be that of the ledger, {budget.adjacency!r}, not {guarantee.adjacency!r}"
        )
    time = clock or now()
    if planned.as_of is not None and planned.as_of > time + _BACK:
        raise InvalidValueError(f"as_of must not be after now, which is {stamp(time)} by the clock of the ledger")
    if time < account.time - _BACK:
        raise LedgerError(
            f"the clock says {stamp(time)}, but the last charge was at {stamp(account.time)}; nothing was drawn"
        )
    time = max(time, account.time)
    account = enter_period(account, planned.as_of or time)
    own = account.spending.budget_of(part)
    check_release_delta(account, guarantee.delta, part=part)
    total = account.spending.cost_of(part).plus(Composition(guarantee.epsilon, guarantee.zcdp, guarantee.delta))
    if not own.fits(total):
        left = account.spending.left(part)
        asked, rest = round_up(guarantee.epsilon), round_down(left)
        if guarantee.epsilon > left:
            asked, rest = round_apart(guarantee.epsilon, left)
        within = "" if account.period is None else f" in {account.period}"
        rest = f"{rest} of {round_up(own.epsilon)} is left{_name_part(account, part)}{within}, and nothing was drawn"
        if own.conversion_delta is not None:
            after, _ = round_apart(total.spent(own.conversion_delta), own.epsilon)
            rest = f"it would bring what is spent at delta {round_up(own.conversion_delta)} to {after}; {rest}"
        raise BudgetSpentError(f"epsilon {asked} does not fit: {rest}")
    content = {
        "time": stamp(time),
        "purpose": planned.purpose,
        "k": query.k,
        "d": query.d,
        "mechanism": mechanism_to_dict(guarantee.mechanism),
        "epsilon": str(guarantee.epsilon),
        "zcdp": spell_exactly(guarantee.zcdp),
        "delta": str(guarantee.delta),
        "version": discreet.__version__,
        "fingerprint": query.fingerprint,
        "request_id": planned.request_id,
        **({} if query.groups is None else {"groups": query.groups}),
        **({} if part is None else {"part": part}),
        **({} if account.period is None else {"period": account.period}),
        **({} if planned.as_of is None else {"as_of": stamp(planned.as_of.astimezone(UTC))}),
        **({} if planned.edition is None else {"edition": planned.edition}),
    }
    return next_record(account.last, CHARGE, content)


def enter_period(account: Account, moment: datetime) -> Account:
    """Return the account with the cost of the period of a moment.

    Raise if the ledger has charges of a later period, or if the period is before the start of the ledger. Without a
    start the budgets of any number of past periods could be spent on the people of today.
    """
    budget, start, last = account.budget, account.start, account.period
    period = budget.period_of(moment)
    if period is None or start is None:
        return account
    day, first = budget.first_day(period), budget.first_day(start)
    # Earlier versions allowed charges before the start.
    if last is not None and first <= budget.first_day(last) > day:
        raise InvalidValueError(
            f"as_of must be in {last} or later, the period of the last charge, not in {period}, which has ended in the "
            "ledger; nothing was drawn"
        )
    if day >= first:
        return account.in_period(period)
    named = "the first period of the ledger" if account.is_backdated else "the period in which the ledger was made"
    raise InvalidValueError(
        f"as_of must be in {start} or later, {named}, not in {period}, and nothing was drawn: leave as_of out, or make "
        f"a ledger that begins earlier, with 'discreet budget init --since {day}'"
    )


def stored_release(
    chain: Transaction, account: Account, request_id: str, query: Query, others: Iterable[Query] = ()
) -> Stored:
    """Return the stored release of a request; raise unless the request asked the query, or another reading of it."""
    entry = Entry.read(_checked_record(chain, account.requests[request_id]))
    if all(entry.fingerprint != each.fingerprint for each in (query, *others)):
        raise InvalidValueError(f"request_id must be new for a new query, and {quote(request_id)} was for another one")
    stored = account.stores[entry.number]
    if stored is None:
        raise LedgerError(
            f"request_id {quote(request_id)} was charged at {entry.time} and has no release: it is still being drawn, "
            "or was lost in a crash; it is spent and will not be drawn again"
        )
    return read_stored(_checked_record(chain, stored).content["release"])


def _name_part(account: Account, part: str | None) -> str:
    """Return the words for a part in a message; empty in a ledger without parts."""
    if not account.spending.parts:
        return ""
    return " outside of its parts" if part is None else f" for part {quote(part)}"


def check_dataset(account: Account, dataset: str | None) -> None:
    """Raise if the ledger is for one dataset and a release names another or none."""
    own = account.budget.dataset
    if own is not None and dataset is None:
        raise InvalidValueError(f"dataset must be given, because the ledger is for one alone, {quote(own)}")
    if own is not None and dataset != own:
        raise InvalidValueError(f"dataset must be that of the ledger, {quote(own)}, not {quote(dataset)}")


def check_release_delta(account: Account, delta: Fraction, must_fit: bool = True, part: str | None = None) -> None:
    """Raise if the deltas of all releases of a part would exceed the delta that the part has for them.

    A request that is not new may cost nothing; it is refused only if the part has no delta for releases at all.
    """
    own, spent = account.spending.budget_of(part).release_delta, account.spending.cost_of(part).delta
    if not delta or (own and not must_fit) or spent + delta <= own:
        return
    if not own:
        whose = _name_part(account, part) or " for releases"
        raise BudgetSpentError(
            f"delta {round_up(delta)} does not fit: the ledger has none{whose}, which is fixed when it is made, "
            "with release_delta; nothing was drawn"
        )
    asked, left = round_apart(delta, own - spent)
    raise BudgetSpentError(
        f"delta {asked} does not fit: {left} of {round_up(own)} is left for releases{_name_part(account, part)}, "
        "and nothing was drawn"
    )


def check_text(given: Any, name: str) -> str:
    """Return a text; raise unless it is neither blank nor too long to print."""
    if not isinstance(given, str):
        raise InvalidTypeError(f"{name} must be a text, not {quote(given)}")
    if not given.strip() or len(given) > _LONGEST_TEXT:
        raise InvalidValueError(f"{name} must have from 1 to {_LONGEST_TEXT} characters, not {quote(given)}")
    return given


def parse_moment(given: Any, zone: str | None = None) -> datetime:
    """Return a moment: a day stands for its first; without an offset it is in the zone, by default UTC. None is now.

    Examples
    --------
    >>> parse_moment("2026-11-01T06:00+01:00").astimezone(UTC).isoformat()
    '2026-11-01T05:00:00+00:00'
    >>> parse_moment("2026-11-01", "Europe/Berlin").isoformat()
    '2026-11-01T00:00:00+01:00'
    """
    if given is None:
        return datetime.now(UTC)
    shown = given.isoformat() if isinstance(given, date) else given
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        raise InvalidValueError(
            f"as_of must be a day or a time such as 2026-11-01 or 2026-11-01T06:00+01:00, not {quote(shown)}"
        ) from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise InvalidValueError(f"as_of must be in the years {FIRST_YEAR} to {LAST_YEAR}, not {quote(shown)}")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC if zone is None else open_zone(zone))


def now() -> datetime:
    """Return the time to the second: a finer one would reveal the duration of a release, which depends on scores."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(time: datetime) -> str:
    """Format a time as the ledger writes it."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _checked_record(chain: Transaction, number: int) -> Record:
    """Read a record again and check that it is still intact and in its place."""
    record, before = chain.record_at(number), chain.record_at(number - 1)
    if record is None:
        raise damage_error(number, "is missing")
    return next(check_chain(before, [record]))
