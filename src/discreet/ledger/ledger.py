"""A privacy budget in a file, to which every release is charged before it is drawn.

The order is charge, draw, store, return: a charge is on disk before a random bit is drawn, and the release is on disk
before the caller sees it. A crash in between loses budget and never privacy: a charge without a release stays spent and
is never drawn again.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import replace
from fractions import Fraction
from sqlite3 import Connection
from typing import Any

import discreet
from discreet.errors import InvalidValueError, LedgerError, quote
from discreet.ledger import charges, store
from discreet.ledger.account import Account, Budget, Composition, Entry, Stored, extend_account
from discreet.ledger.charges import Query
from discreet.ledger.store import (
    BUDGET,
    CHARGE,
    LOCK,
    REOPEN,
    STORE,
    Record,
    as_path,
    check_free_space,
    damage_error,
    next_record,
)
from discreet.privacy import Number, check_adjacency, exact, positive
from discreet.text import decimal, make_html_table, make_html_view, printable

WAIT = 30.0
"""Seconds to wait for other processes: far longer than any transaction, short enough for a person."""

_MOST_WAIT = 10**6
"""The longest wait in seconds, eleven days; SQLite counts milliseconds in 32 bits."""


class Ledger:
    """A privacy budget that several people and processes spend, in a file.

    Parameters
    ----------
    path
        The file, which must be a ledger already: `Ledger.create` makes one. Its records are checked on opening.
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
        self._path, self._wait = as_path(path), _check_wait(wait)
        self._account: Account | None = None
        self._read()

    @classmethod
    def unread(cls, path: str | os.PathLike[str]) -> Ledger:
        """Return a ledger whose records are checked when they are first needed; `top_k` opens a path this way."""
        ledger = cls.__new__(cls)
        ledger._path, ledger._wait, ledger._account = as_path(path), WAIT, None
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
        wait: float = WAIT,
    ) -> Ledger:
        """Make a new ledger, in a file that does not exist yet and that only its owner may read.

        Parameters
        ----------
        path
            The file.
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
        wait
            As in `Ledger`.
        """
        check_adjacency(adjacency)
        _check_wait(wait)
        whole, part = None, Fraction(0)
        if delta is not None:
            whole = positive(delta, "delta")
            if whole >= 1:
                raise InvalidValueError(f"delta must be below 1, not {quote(delta)}")
        if release_delta is not None:
            part = exact(release_delta, "release_delta")
            if whole is None:
                raise InvalidValueError("release_delta must be left out without delta, of which it is a part")
            if not 0 <= part <= whole:
                given = quote(release_delta)
                raise InvalidValueError(f"release_delta must be from 0 to delta, {decimal(whole)}, not {given}")
        budget = {
            "epsilon": str(positive(epsilon, "epsilon")),
            "delta": None if whole is None else str(whole),
            **({"release_delta": str(part)} if part else {}),
            "adjacency": adjacency,
            "unit": charges.check_text(unit, "unit"),
            "dataset": None if dataset is None else charges.check_text(dataset, "dataset"),
            "time": charges.stamp(charges.now()),
            "version": discreet.__version__,
            # No two ledgers share a hash.
            "id": secrets.token_hex(16),
        }
        store.make_file(as_path(path), next_record(None, BUDGET, budget))
        return cls(path, wait=wait)

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r})"

    def _repr_html_(self) -> str:
        """Return the notebook view, with the rows of `discreet budget show`."""
        from discreet.ledger.account import describe_whose, summarize_budget

        rows = make_html_table(list(summarize_budget(self).items()))
        return make_html_view(f"{printable(self._path.name)}: {describe_whose(self)}", rows, [])

    @property
    def path(self) -> str:
        """Return the absolute path of the file."""
        return str(self._path)

    @property
    def budget(self) -> Budget:
        """Return the budget."""
        return self._read().budget

    @property
    def composition(self) -> Composition:
        """Return the sums of all charges: epsilon, zCDP's rho, and delta."""
        return self._read().spent

    @property
    def spent(self) -> Fraction:
        """Return the spent epsilon: the sum, or with a delta the smaller of the sum and the epsilon by zCDP."""
        account = self._read()
        return account.spent.spent(account.budget.conversion_delta)

    @property
    def left(self) -> Fraction:
        """Return the epsilon of the budget minus the spent epsilon."""
        return charges.epsilon_left(self._read())

    @property
    def head(self) -> str:
        """Return the hash of the last record. A copy kept elsewhere reveals later removal of records."""
        return self._read().last.hash

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
        if not account.budget.fits(account.spent):
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

    def check_dataset(self, dataset: str | None) -> None:
        """Raise if the ledger is for other data; `top_k` calls this before it reads any."""
        # An earlier reading suffices: the charge itself detects a file that was replaced since.
        charges.check_dataset(self._account or self._read(), dataset)

    def check_release_delta(self, delta: Fraction, must_fit: bool) -> None:
        """Raise if a release's delta does not fit the ledger; `top_k` calls this before it reads any data."""
        charges.check_release_delta(self._account or self._read(), delta, must_fit)

    def has_request(self, request_id: str) -> bool:
        """Return True if a request of this name was charged."""
        return request_id in self._read().requests

    def check_room(self, size: int) -> None:
        """Raise if the disk has no room for `size` bytes; `top_k` calls this before it charges a release."""
        check_free_space(self._path, size)

    def charge(
        self,
        query: Query,
        purpose: str | None,
        request_id: str | None,
        edition: dict[str, str | None] | None = None,
    ) -> Record | Stored:
        """Charge a query, or return the release of a request that was answered before; `top_k` calls this.

        Returns
        -------
        Record, Release, GroupedRelease or Sketch
            The charge, which is on disk; or the stored release of the same request.
        """
        with store.write_transaction(self._path, self._wait) as connection:
            account = self._catch_up(connection)
            if request_id is not None and request_id in account.requests:
                return charges.stored_release(connection, account, request_id, query)
            record = charges.charge_record(account, query, purpose, request_id, edition)
            store.append(connection, record)
        return record

    def keep(self, charge: Record, release: Stored) -> None:
        """Store the release of a charge; `top_k` calls this before the caller sees the release."""
        try:
            with store.write_transaction(self._path, self._wait) as connection:
                account = self._catch_up(connection)
                if store.record_at(connection, charge.number) != charge or account.stores[charge.number] is not None:
                    raise LedgerError("the ledger does not hold its charge, or holds a release for it already")
                content = {"charge": charge.number, "release": release.to_dict()}
                store.append(connection, next_record(account.last, STORE, content))
        except (LedgerError, InvalidValueError) as error:
            reason = str(error)
        else:
            return
        raise LedgerError(f"the release could not be stored, so it is withheld, and its epsilon spent: {reason}")

    @property
    def is_locked(self) -> bool:
        """Return True if releases are refused because discreet found a fault in its own work."""
        return self._read().locked_by is not None

    def lock(self, charge: Record) -> None:
        """Refuse all further releases; `top_k` calls this after it withheld a release for a fault of discreet."""
        with store.write_transaction(self._path, self._wait) as connection:
            account = self._catch_up(connection)
            if store.record_at(connection, charge.number) != charge:
                raise LedgerError("the ledger does not hold the charge that it is to be locked for")
            content = {"charge": charge.number, "version": discreet.__version__}
            store.append(connection, next_record(account.last, LOCK, content))

    def reopen(self, reason: str) -> None:
        """Allow releases again after a fault of discreet locked the ledger.

        Parameters
        ----------
        reason
            The reason why it is safe to go on, such as the version that mends the fault; the ledger keeps it.
        """
        charges.check_text(reason, "reason")
        with store.write_transaction(self._path, self._wait) as connection:
            account = self._catch_up(connection)
            if account.locked_by is None:
                raise LedgerError("the ledger is not locked, so there is nothing to reopen")
            content = {"reason": reason, "time": charges.stamp(charges.now()), "version": discreet.__version__}
            store.append(connection, next_record(account.last, REOPEN, content))

    def _read(self) -> Account:
        with store.read_transaction(self._path, self._wait) as connection:
            return self._catch_up(connection)

    def _all(self) -> tuple[Account, list[Record]]:
        """Read and check all records anew; return them with their account."""
        with store.read_transaction(self._path, self._wait) as connection:
            found = list(store.records(connection))
        return extend_account(None, found), found

    def _catch_up(self, connection: Connection) -> Account:
        """Return the account of all records, reading only the last known record and those after it."""
        account = self._account
        if account is not None and store.record_at(connection, account.last.number) != account.last:
            raise damage_error(account.last.number, "was edited or removed")
        first = store.LEAST if account is None else account.last.number + 1
        self._account = account = extend_account(account, store.records(connection, first))
        return account


def _check_wait(wait: Any) -> float:
    seconds = exact(wait, "wait")
    if not 0 <= seconds <= _MOST_WAIT:
        raise InvalidValueError(f"wait must be from 0 to 10^6 seconds, not {quote(wait)}")
    return float(seconds)
