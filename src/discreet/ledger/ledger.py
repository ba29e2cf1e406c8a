"""A privacy budget in a file or a database, to which every release is charged before it is drawn.

The order is charge, draw, store, return: a charge is on disk before a random bit is drawn, and the release is on disk
before the caller sees it. A crash in between loses budget and never privacy: a charge without a release stays spent and
is never drawn again.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import discreet
from discreet.errors import InvalidValueError, LedgerError, quote
from discreet.ledger import charges
from discreet.ledger.account import (
    REST,
    Account,
    Budget,
    Composition,
    Entry,
    Spending,
    Stored,
    Withdrawal,
    check_readable,
    extend_account,
    list_parts,
    read_part,
)
from discreet.ledger.charges import PlannedCharge, Query
from discreet.ledger.store import (
    BUDGET,
    CHARGE,
    LEAST,
    LOCK,
    PART,
    REOPEN,
    STORE,
    WITHDRAW,
    Record,
    Transaction,
    damage_error,
    next_record,
    open_store,
)
from discreet.privacy import RENEWALS, Number, check_adjacency, exact, parameter, positive
from discreet.sources.events.engine import EngineError
from discreet.sources.events.periods import UNITS, open_zone
from discreet.text import decimal, make_html_table, make_html_view, printable, round_up

WAIT = 30.0
"""Seconds to wait for other processes: far longer than any transaction, short enough for a person."""

_LONGEST_PART = 50
"""The most characters in the name of a part, which is a cell of a table."""

_MOST_WAIT = 10**6
"""The longest wait in seconds, eleven days; SQLite counts milliseconds in 32 bits."""


class Ledger:
    """A privacy budget that several people, processes and hosts spend, in a file or a database.

    Parameters
    ----------
    path
        The file, or the URL of a PostgreSQL database, which must hold a ledger already: `Ledger.create` makes one. Its
        records are checked on opening.
    wait
        The seconds to wait for other processes that are writing to it.

    Examples
    --------
    >>> import discreet, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = discreet.Ledger.create(f"{folder.name}/budget.db", epsilon=3, unit="readers of the library")
    >>> loans = {"dune": 912, "emma": 877, "ulysses": 410}
    >>> release = discreet.top_k(loans, k=1, epsilon="0.1", ledger=ledger, purpose="monthly chart")
    >>> ledger.spent, ledger.left
    (Fraction(1, 10), Fraction(29, 10))
    >>> [(entry.purpose, entry.release == release) for entry in ledger.history()]
    [('monthly chart', True)]
    >>> discreet.top_k(loans, k=1, epsilon=3, ledger=ledger)
    Traceback (most recent call last):
    discreet.errors.BudgetSpentError: epsilon 3 does not fit: 2.9 of 3 is left, and nothing was drawn
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, wait: float = WAIT) -> None:
        self._store, self._wait = open_store(path), _check_wait(wait)
        self._account: Account | None = None
        self._read()

    @classmethod
    def unread(cls, path: str | os.PathLike[str]) -> Ledger:
        """Return a ledger whose records are checked when they are first needed; `top_k` opens a path this way."""
        ledger = cls.__new__(cls)
        ledger._store, ledger._wait, ledger._account = open_store(path), WAIT, None
        return ledger

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: Number,
        delta: Number | None = None,
        release_delta: Number | None = None,
        adjacency: str = "add-remove",
        unit: str,
        dataset: str | None = None,
        every: str | None = None,
        zone: str | None = None,
        since: str | date | None = None,
        wait: float = WAIT,
    ) -> Ledger:
        """Make a new ledger, in a file that does not exist yet and that only its owner may read, or in a database.

        Parameters
        ----------
        path
            The file; or the URL of a PostgreSQL database for several hosts, such as
            "postgres://HOST/DATABASE?ledger=TABLE". No record and no message holds the user or the password.
        epsilon
            The most that all releases together may cost, taken exactly.
        delta
            With a delta the budget is one of (epsilon, delta)-differential privacy, and many small releases cost less.
        release_delta
            The part of delta for the deltas of releases, such as those of partition selection (items that nobody
            listed). The rest is for composition. By default it is 0, and releases with a delta are refused.
        adjacency
            "add-remove" or "swap", the same for all releases.
        unit
            The people whose privacy is protected, in words, such as "users of ratings".
        dataset
            The name of the data: a release that does not give the same name is refused before any data are read. By
            default the ledger is for any data.
        every
            "year", "quarter" or "month": the budget is for each such period, and nothing carries over from one to the
            next. A person who is in the data for several periods is promised the sum of their budgets. By default the
            budget is for all releases ever.
        zone
            With every: the time zone of the periods, such as "Europe/Berlin". By default UTC.
        since
            With every: a day such as "2023-01-01". `as_of` may then name a period from that of this day on, so that
            the budgets of all these periods can be spent on the people of today. By default no charge counts in a
            period before that in which the ledger is made.
        wait
            As in `Ledger`.
        """
        check_adjacency(adjacency)
        _check_wait(wait)
        if every is not None and every not in RENEWALS:
            raise InvalidValueError(f"every must be one of {', '.join(RENEWALS)}, or left out, not {quote(every)}")
        if zone is not None:
            if every is None:
                raise InvalidValueError("zone must be left out without every: only a budget that renews has periods")
            open_zone(zone)
        first = _parse_since(since, every)
        whole, part = _parse_deltas(delta, release_delta)
        budget = {
            "epsilon": str(positive(epsilon, "epsilon")),
            "delta": None if whole is None else str(whole),
            **({"release_delta": str(part)} if part else {}),
            **({} if every is None else {"every": every}),
            **({} if zone is None else {"zone": zone}),
            **({} if first is None else {"since": first.isoformat()}),
            "adjacency": adjacency,
            "unit": charges.check_text(unit, "unit"),
            "dataset": None if dataset is None else charges.check_text(dataset, "dataset"),
            "version": discreet.__version__,
            # No two ledgers share a hash.
            "id": secrets.token_hex(16),
        }

        def make_first(clock: datetime | None) -> Record:
            # The time decides which periods can be charged, so it is that of the clock that all hosts share.
            record = next_record(None, BUDGET, {**budget, "time": charges.stamp(clock or charges.now())})
            account = extend_account(None, [record])
            today = account.budget.day_of(account.made)
            if first is not None and first > today:
                raise InvalidValueError(f"since must not be after today, {today}, and is {first}")
            return record

        open_store(path).make(make_first)
        return cls(path, wait=wait)

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def _repr_html_(self) -> str:
        """Return the notebook view, with the rows of `discreet budget show`."""
        from discreet.ledger.account import describe_whose, summarize_budget

        parts = list_parts(self.current())
        listed = [
            (f"part {printable(name)}", f"{round_up(spent)} of {round_up(whole)} is spent")
            for name, whole, spent, _ in parts
        ]
        rows = make_html_table([*summarize_budget(self).items(), *listed])
        return make_html_view(f"{printable(self._store.name)}: {describe_whose(self)}", rows, [])

    @property
    def path(self) -> str:
        """Return the absolute path of the file; of a URL what may be shown, without user and password."""
        return self._store.path

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self._store.name

    @property
    def account(self) -> Account:
        """Return the state after all records: budget, costs, requests."""
        return self._read()

    def now(self) -> datetime:
        """Return the time by the clock that counts: that of a server, or that of this machine for a file."""
        with self._store.read(self._wait) as chain:
            return chain.clock() or charges.now()

    def current(self) -> Account:
        """Return the state after all records, with the spending of today's period."""
        with self._store.read(self._wait) as chain:
            return self._catch_up(chain).at(chain.clock() or charges.now())

    @property
    def budget(self) -> Budget:
        """Return the budget."""
        return self._read().budget

    @property
    def composition(self) -> Composition:
        """Return the sums of the charges of today's period: epsilon, zCDP's rho, and delta; without periods of all."""
        return self.current().spent

    @property
    def periods(self) -> dict[str, Composition]:
        """Return the sums of the charges of each period of a budget that renews, oldest first; empty for others."""
        return self._read().periods

    @property
    def spent(self) -> Fraction:
        """Return the spent epsilon: the sum, or with a delta the smaller of the sum and the epsilon by zCDP.

        A budget that renews counts from the beginning of today's period.
        """
        return self.current().spending.spent()

    @property
    def left(self) -> Fraction:
        """Return the epsilon of the budget minus the spent epsilon."""
        return self.current().spending.left()

    @property
    def spending(self) -> Spending:
        """Return the budget and the cost of each part, and of the remainder as None, in today's period."""
        return self.current().spending

    @property
    def head(self) -> str:
        """Return the hash of the last record. A copy kept elsewhere reveals later removal of records."""
        return self._read().last.hash

    def has_head(self, head: str) -> bool:
        """Return True if a record has this hash: the ledger is then the one that had it as its head, or its future."""
        return any(record.hash == head for record in self._all()[1])

    def history(self) -> list[Entry]:
        """Return all charges in order, with their releases."""
        entries: dict[int, Entry] = {}
        for record in self._all()[1]:
            if record.kind == CHARGE:
                entries[record.number] = Entry.read(record)
            elif record.kind == STORE:
                number = record.content["charge"]
                entries[number] = replace(entries[number], stored=record.content["release"])
        return list(entries.values())

    def check(self, head: str | None = None) -> int:
        """Check every record, and that `head`, a hash kept from before, is among them.

        Returns
        -------
        int
            The number of records after `head`, or without one the number of all records.
        """
        if head is not None and not re.fullmatch("[0-9a-f]{64}", str(head)):
            raise InvalidValueError(f"head must be the 64 hexadecimal digits that the ledger shows, not {quote(head)}")
        account, found = self._all()
        if not account.fits:
            raise LedgerError("the ledger is damaged: more is spent than the budget allows")
        hashes = [record.hash for record in found]
        if head is None:
            return len(hashes)
        if head not in hashes:
            raise LedgerError("the ledger does not hold the head given: records were removed, or it is another ledger")
        return len(hashes) - 1 - hashes.index(head)

    def export(self) -> dict[str, Any]:
        """Return all records as JSON values, with which others can check the chain."""
        _, found = self._all()
        listed = [{**vars(each), "body": each.content} for each in found]
        return {"format": 1, "head": found[-1].hash, "records": listed}

    def lock_publishing(self, wait: float, report: Callable[..., None]) -> AbstractContextManager[None]:
        """Return a context that holds the lock of `discreet publish`; it waits for another run, which it reports."""
        return self._store.lock_publishing(wait, report)

    def check_publishing(self) -> None:
        """Raise if this ledger holds the lock of `discreet publish`, and lost it."""
        self._store.check_publishing()

    def check_dataset(self, dataset: str | None) -> None:
        """Raise if the ledger is for other data; `top_k` calls this before it reads any."""
        # An earlier reading suffices: the charge itself detects a file that was replaced since.
        charges.check_dataset(self._account or self._read(), dataset)

    def check_part(self, part: str | None) -> None:
        """Raise if the ledger has no part of this name; `top_k` calls this before it reads any data."""
        account = self._account or self._read()
        if part not in account.spending.budgets:
            # Another process may have made it since.
            self._read().spending.budget_of(part)

    def check_release_delta(
        self, delta: Fraction, must_fit: bool, as_of: datetime | None = None, part: str | None = None
    ) -> None:
        """Raise if a release's delta does not fit the ledger; `top_k` calls this before it reads any data."""
        if delta:
            account = (self._account or self._read()).at(as_of or self.now())
            charges.check_release_delta(account, delta, must_fit, part)

    def reserve_part(
        self, name: str, *, epsilon: Number, delta: Number | None = None, release_delta: Number | None = None
    ) -> None:
        """Reserve a part of the budget for a team, or change or dissolve one; a release names it in `part`.

        A release is charged to its own part alone, and a release without one to the remainder. Parts and the remainder
        add up to the budget, in epsilon and in both deltas. In a budget that renews, a part holds from today's period
        on, and an earlier period takes no further charges.

        Parameters
        ----------
        name
            The name of the part.
        epsilon
            The epsilon of the part, in each period of a budget that renews. 0 dissolves a part that has spent nothing.
        delta, release_delta
            The delta of the part, and the share of it for releases, as in `Ledger.create`. By default none. If the
            budget has a delta for composition, the part must be made or changed before anything is charged to it or to
            the remainder in the period.
        """
        charges.check_text(name, "part")
        if len(name) > _LONGEST_PART or not name.isprintable():
            raise InvalidValueError(f"part must have at most {_LONGEST_PART} characters that can be printed")
        if name.strip().casefold() == REST:
            raise InvalidValueError(f"part must have another name than {REST!r}, which is the rest of the budget")
        whole, share = _parse_deltas(delta, release_delta)
        size = parameter(epsilon, "epsilon")
        if size < 0:
            raise InvalidValueError(f"epsilon must not be negative, as {quote(epsilon)} is")
        with self._store.write(self._wait) as chain:
            account = self._catch_up(chain)
            time = max(chain.clock() or charges.now(), account.time)
            account = account.at(time)
            content = {
                "part": name,
                "epsilon": str(size),
                "delta": None if whole is None else str(whole),
                "release_delta": str(share),
                **({} if account.period is None else {"period": account.period}),
                "time": charges.stamp(time),
                "version": discreet.__version__,
            }
            account.spending.with_part(*read_part(content))
            _append(chain, account, next_record(account.last, PART, content))

    def has_request(self, request_id: str) -> bool:
        """Return True if a request of this name was charged."""
        return request_id in self._read().requests

    def check_room(self, size: int) -> None:
        """Raise if there is no room for `size` bytes; `top_k` calls this before it charges a release."""
        self._store.check_room(size)

    def charge(self, planned: PlannedCharge, query: Query, others: Iterable[Query] = ()) -> Record | Stored:
        """Charge a query, or return the release of a request that was answered before; `top_k` calls this.

        `others` are other readings of the query's floats, as which a request may have been stored.

        Returns
        -------
        Record, Release, GroupedRelease or Sketch
            The charge, which is on disk; or the stored release of the same request.
        """
        self.check_publishing()
        with self._store.write(self._wait) as chain:
            account = self._catch_up(chain)
            if planned.request_id is not None and planned.request_id in account.requests:
                return charges.stored_release(chain, account, planned.request_id, query, others)
            record = charges.charge_record(account, planned, query, chain.clock())
            _append(chain, account, record)
        return record

    def keep(self, charge: Record, release: Stored) -> None:
        """Store the release of a charge; `top_k` calls this before the caller sees the release."""
        try:
            with self._store.write(self._wait) as chain:
                account = self._catch_up(chain)
                if chain.record_at(charge.number) != charge or account.stores[charge.number] is not None:
                    raise LedgerError("the ledger does not hold its charge, or holds a release for it already")
                content = {"charge": charge.number, "release": release.to_dict()}
                _append(chain, account, next_record(account.last, STORE, content))
        except (LedgerError, InvalidValueError, EngineError) as error:
            kind, reason = (EngineError if isinstance(error, EngineError) else LedgerError), str(error)
        else:
            return
        raise kind(f"the release could not be stored, so it is withheld, and its epsilon spent: {reason}")

    @property
    def is_locked(self) -> bool:
        """Return True if releases are refused because discreet found a fault in its own work."""
        return self._read().locked_by is not None

    def lock(self, charge: Record) -> None:
        """Refuse all further releases; `top_k` calls this after it withheld a release for a fault of discreet."""
        with self._store.write(self._wait) as chain:
            account = self._catch_up(chain)
            if chain.record_at(charge.number) != charge:
                raise LedgerError("the ledger does not hold the charge that it is to be locked for")
            content = {"charge": charge.number, "version": discreet.__version__}
            _append(chain, account, next_record(account.last, LOCK, content))

    def withdraw(self, chart: str, period: str | None, reason: str) -> None:
        """Write that a period of a chart is withdrawn; `discreet publish withdraw` calls this."""
        charges.check_text(reason, "reason")
        with self._store.write(self._wait) as chain:
            account = self._catch_up(chain)
            time = charges.stamp(max(chain.clock() or charges.now(), account.time))
            content = {
                "chart": chart,
                "period": period,
                "reason": reason,
                "time": time,
                "version": discreet.__version__,
            }
            _append(chain, account, next_record(account.last, WITHDRAW, content))

    def withdrawals(self) -> list[Withdrawal]:
        """Return all withdrawals of published charts, in order."""
        return [Withdrawal.read(record) for record in self._all()[1] if record.kind == WITHDRAW]

    def reopen(self, reason: str) -> None:
        """Allow releases again after a fault of discreet locked the ledger.

        Parameters
        ----------
        reason
            The reason why it is safe to go on, such as the version that mends the fault; the ledger keeps it.
        """
        charges.check_text(reason, "reason")
        with self._store.write(self._wait) as chain:
            account = self._catch_up(chain)
            if account.locked_by is None:
                raise LedgerError("the ledger is not locked, so there is nothing to reopen")
            content = {
                "reason": reason,
                "time": charges.stamp(chain.clock() or charges.now()),
                "version": discreet.__version__,
            }
            _append(chain, account, next_record(account.last, REOPEN, content))

    def _read(self) -> Account:
        with self._store.read(self._wait) as chain:
            return self._catch_up(chain)

    def _all(self) -> tuple[Account, list[Record]]:
        """Read and check all records anew; return them with their account."""
        with self._store.read(self._wait) as chain:
            found = list(chain.records())
        return extend_account(None, found), found

    def _catch_up(self, chain: Transaction) -> Account:
        """Return the account of all records, reading only the last known record and those after it."""
        account = self._account
        if account is not None and chain.record_at(account.last.number) != account.last:
            raise damage_error(account.last.number, "was edited or removed")
        first = LEAST if account is None else account.last.number + 1
        self._account = account = extend_account(account, chain.records(first))
        return account


def _append(chain: Transaction, account: Account, record: Record) -> None:
    """Write a record; raise before it if it could not be read again."""
    check_readable(account, record)
    chain.append(record)


def _parse_deltas(delta: Any, release_delta: Any) -> tuple[Fraction | None, Fraction]:
    """Return the delta of a budget or a part, and the share of it for releases."""
    whole, share = None, Fraction(0)
    if delta is not None:
        whole = positive(delta, "delta")
        if whole >= 1:
            raise InvalidValueError(f"delta must be below 1, not {quote(delta)}")
    if release_delta is not None:
        share = parameter(release_delta, "release_delta")
        if whole is None:
            raise InvalidValueError("release_delta must be left out without delta, of which it is a part")
        if not 0 <= share <= whole:
            given = quote(release_delta)
            raise InvalidValueError(f"release_delta must be from 0 to delta, {decimal(whole)}, not {given}")
    return whole, share


def _parse_since(since: Any, every: str | None) -> date | None:
    """Return the day from whose period on a budget that renews can be charged."""
    if since is None:
        return None
    if every is None:
        raise InvalidValueError("since must be left out without every: only a budget that renews has periods")
    day = UNITS["day"].parse(since)
    if day is None or day.year < charges.FIRST_YEAR:
        allowed = f"a day such as 2023-01-01, in {charges.FIRST_YEAR} or later"
        raise InvalidValueError(f"since must be {allowed}, not {quote(since)}")
    return day


def _check_wait(wait: Any) -> float:
    seconds = exact(wait, "wait")
    if not 0 <= seconds <= _MOST_WAIT:
        raise InvalidValueError(f"wait must be from 0 to 10^6 seconds, not {quote(wait)}")
    return float(seconds)
