"""Compose the costs of releases, and read the records of a ledger into an account of budget, cost and requests.

Costs compose by the sum of epsilons or by zCDP (docs/proofs.md, 6; conversion: Canonne, Kamath and Steinke 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.exact.ball import ball, precision
from discreet.ledger.store import BUDGET, CHARGE, LOCK, REOPEN, STORE, Record, check_chain, damage_error
from discreet.mechanisms.histogram import DiscreteLaplace
from discreet.privacy import fraction_from_json
from discreet.release.grouped import AnyRelease, read_release
from discreet.release.release import explain_malformed
from discreet.release.sketch import Sketch, is_sketch
from discreet.text import printable, repr_with_decimals, round_down, round_up

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


Stored = AnyRelease | Sketch
"""The results that a charge can be for."""

_STEP = 10**9
"""A converted epsilon is rounded up to a multiple of one billionth: ten digits, of which people see four."""

_LARGEST_EXPONENT = 700.0
"""exp of a larger number overflows a float."""

_COSTS = ("epsilon", "zcdp", "delta")

_OPTIONAL = {"groups", "edition"}
"""The keys that only some charges have: the number of groups of a release, and the chart of an edition."""

_EDITION = {"chart", "period", "settings"}


@dataclass(frozen=True, repr=False)
class Composition:
    """The composed cost of releases.

    Epsilons add (basic composition), and so do the rhos of zCDP and the deltas: a release with a delta is
    delta-approximately rho-zCDP. Both compositions hold if each release is chosen after seeing the earlier ones, and so
    does the better of the two: on outcomes where the sum stays within the budget the ratio of probabilities is at most
    e^epsilon, and all others are outcomes of a process that stops at the rho of the budget.

    Attributes
    ----------
    epsilon
        The sum of their epsilons.
    rho
        The sum of their zCDP parameters.
    delta
        The sum of their deltas.
    """

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __repr__(self) -> str:
        return repr_with_decimals(self, round_up)

    def plus(self, other: Composition) -> Composition:
        """Return the cost of these releases and others together."""
        delta = self.delta + other.delta if other.delta else self.delta  # mostly zero, and exact sums take time
        return Composition(self.epsilon + other.epsilon, self.rho + other.rho, delta)

    def by_zcdp(self, conversion: Fraction | None) -> Fraction | None:
        """Return the epsilon by zCDP at a delta that adds to those of the releases; None without one."""
        return None if conversion is None else zcdp_to_epsilon(self.rho, conversion)

    def spent(self, conversion: Fraction | None) -> Fraction:
        """Return the smaller of the two epsilons."""
        other = self.by_zcdp(conversion)
        return self.epsilon if other is None else min(self.epsilon, other)

    def fits(self, epsilon: Fraction, conversion: Fraction | None, release_delta: Fraction = Fraction(0)) -> bool:
        """Return True if the cost is within epsilon and the two deltas, which were fixed beforehand."""
        if self.delta > release_delta:
            return False
        return self.epsilon <= epsilon or self.spent(conversion) <= epsilon


@dataclass(frozen=True, repr=False)
class Budget:
    """The budget of a ledger.

    Attributes
    ----------
    epsilon
        The most that all releases together may cost.
    delta
        With a delta, the cost is that of (epsilon, delta)-differential privacy, by the better of two compositions.
    release_delta
        The part of delta for releases that have a delta of their own; the rest is for composition by zCDP.
    adjacency
        "add-remove" or "swap"; releases under the other one are refused.
    unit
        The people whose privacy the budget protects, in words.
    dataset
        The name of the data, which a release must give as well; None for any data.
    """

    epsilon: Fraction
    delta: Fraction | None
    adjacency: str
    unit: str
    dataset: str | None = None
    release_delta: Fraction = Fraction(0)

    def __repr__(self) -> str:
        return repr_with_decimals(self, round_up)

    @property
    def conversion_delta(self) -> Fraction | None:
        """Return the part of delta for composition by zCDP; None if there is none."""
        # Fixed beforehand: a split chosen after seeing releases could exceed both parts.
        return None if self.delta is None or self.delta == self.release_delta else self.delta - self.release_delta

    def fits(self, cost: Composition) -> bool:
        """Return True if the composed cost of all releases fits the budget."""
        return cost.fits(self.epsilon, self.conversion_delta, self.release_delta)

    @classmethod
    def read(cls, content: dict[str, Any]) -> Budget:
        """Parse the budget in the first record."""
        delta = None if content["delta"] is None else fraction_from_json(content["delta"], "delta")
        release_delta = fraction_from_json(content.get("release_delta", 0), "release_delta")
        if not 0 <= release_delta <= (delta or 0):
            raise ValueError
        # Ledgers of early versions have no dataset.
        dataset = content.get("dataset")
        epsilon = fraction_from_json(content["epsilon"], "epsilon")
        return cls(epsilon, delta, content["adjacency"], content["unit"], dataset, release_delta)


@dataclass(frozen=True, repr=False)
class Entry:
    """One charge and its release.

    Attributes
    ----------
    number
        The number of its record.
    time
        The time of the charge in UTC, to the second.
    purpose
        The purpose that the caller gave, or None.
    k, d
        The number of released items and of all items, per group; d is that of the largest group, and None under
        partition selection. For a sketch, k is the number of its ranks.
    mechanism
        The mechanism's name and parameters.
    epsilon, zcdp, delta
        The cost.
    version
        The version of discreet that charged it.
    fingerprint
        A hash of the public query.
    request_id
        The caller's name for the request, or None.
    groups
        The number of released groups, or None for one list.
    edition
        The chart, the period and the settings of a chart that `discreet publish` released; None for all other charges:
        no argument of a caller sets it.
    stored
        The release as JSON, or None if none was stored; the cost is spent in either case.
    """

    number: int
    time: str
    purpose: str | None
    k: int
    d: int | None
    mechanism: dict[str, Any]
    epsilon: Fraction
    zcdp: Fraction
    delta: Fraction
    version: str
    fingerprint: str
    request_id: str | None
    groups: int | None = None
    edition: dict[str, str | None] | None = None
    stored: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return repr_with_decimals(self, round_up)

    @classmethod
    def read(cls, record: Record) -> Entry:
        """Parse the record of a charge."""
        content = record.content
        cost = cost_of(*(content.pop(name) for name in _COSTS))
        return cls(number=record.number, epsilon=cost.epsilon, zcdp=cost.rho, delta=cost.delta, **content)

    @property
    def release(self) -> Stored | None:
        """Return the release, or None if a crash came between the charge and the storing."""
        return None if self.stored is None else read_stored(self.stored)

    @property
    def is_sketch(self) -> bool:
        """Return True for the charge of a sketch."""
        return bool(self.mechanism["name"] == DiscreteLaplace.name)


@dataclass(frozen=True)
class Account:
    """The state after the records up to `last`.

    Later records make a new account that shares the dictionaries. These only grow, and reading a record twice, as two
    threads may, changes nothing.
    """

    budget: Budget
    last: Record
    time: datetime
    spent: Composition = field(default_factory=Composition)
    requests: dict[str, int] = field(default_factory=dict)
    stores: dict[int, int | None] = field(default_factory=dict)
    locked_by: int | None = None

    def after(self, record: Record) -> Account:
        """Return the account extended by one record; raise ValueError unless the record is well-formed."""
        if record.kind == CHARGE:
            content = record.content
            request, edition = content["request_id"], content.get("edition")
            if edition is not None and edition.keys() != _EDITION:
                raise ValueError
            if content.keys() - _OPTIONAL != _KEYS or (
                request and self.requests.setdefault(request, record.number) != record.number
            ):
                raise ValueError
            self.stores.setdefault(record.number, None)
            time, cost = datetime.fromisoformat(content["time"]), cost_of(*(content[name] for name in _COSTS))
            if time < self.time:
                raise ValueError
            return replace(self, last=record, time=time, spent=self.spent.plus(cost))
        if record.kind == LOCK and record.content["charge"] in self.stores:
            return replace(self, last=record, locked_by=record.content["charge"])
        if record.kind == REOPEN and self.locked_by is not None and record.content["reason"]:
            return replace(self, last=record, locked_by=None)
        # Canonical JSON begins with the number; the release after it can be long and is not parsed here.
        charge = int(record.body.partition(",")[0].removeprefix('{"charge":'))
        if record.kind != STORE or self.stores[charge] not in (None, record.number):
            raise ValueError
        self.stores[charge] = record.number
        return replace(self, last=record)


_KEYS = {each.name for each in fields(Entry)} - {"number", "stored"} - _OPTIONAL
"""The keys that every charge has."""


def extend_account(account: Account | None, records: Iterable[Record]) -> Account:
    """Return the account after these records, each of which is checked; without an account, the first is the budget."""
    for record in check_chain(None if account is None else account.last, records):
        try:
            if account is not None:
                account = account.after(record)
            elif record.kind == BUDGET:
                time = datetime.fromisoformat(record.content["time"])
                account = Account(Budget.read(record.content), record, time)
            else:
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            said = explain_malformed(error)
        else:
            continue
        raise damage_error(record.number, f"is not one that discreet writes{said}")
    if account is None:
        raise damage_error(1, "is missing")
    return account


@lru_cache(maxsize=1024)
def cost_of(epsilon: str, zcdp: str, delta: str) -> Composition:
    """Parse a cost; cached, because most charges of a ledger cost the same."""
    costs = zip(_COSTS, (epsilon, zcdp, delta), strict=True)
    cost = Composition(*(fraction_from_json(text, name) for name, text in costs))
    if min(cost.epsilon, cost.rho, cost.delta) < 0:
        raise ValueError
    return cost


def read_stored(data: Any) -> Stored:
    """Return the release or the sketch from its stored form."""
    return Sketch.from_dict(data) if is_sketch(data) else read_release(data)


def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the smallest epsilon for which rho-zCDP is shown to be (epsilon, delta)-DP, rounded up.

    By Proposition 12 of Canonne, Kamath and Steinke (2020), every alpha > 1 gives the bound
    epsilon = rho alpha + log(1 / (alpha delta)) / (alpha - 1) + log(1 - 1 / alpha).

    Examples
    --------
    >>> float(zcdp_to_epsilon(Fraction(1, 8), Fraction(1, 10**6)))
    2.419093177
    """
    if rho == 0:
        return Fraction(0)
    log_rho, log_delta = (math.log(each.numerator) - math.log(each.denominator) for each in (rho, delta))
    # The derivative of epsilon by alpha is rho + log(alpha delta) / (alpha - 1)^2: negative up to the one alpha where
    # rho (alpha - 1)^2 + log alpha = log(1 / delta), and positive after it. Bisect over log(alpha - 1).
    low, high = -_LARGEST_EXPONENT, _LARGEST_EXPONENT
    for _ in range(100):
        middle = (low + high) / 2
        grown = math.exp(min(_LARGEST_EXPONENT, log_rho + 2 * middle)) + math.log1p(math.exp(middle))
        low, high = (middle, high) if grown < -log_delta else (low, middle)
    # Every alpha gives a valid bound, so alpha may be a float; the bound itself is computed with balls.
    a = Fraction(math.exp(low))
    with precision(256 + 2 * max(abs(part.bit_length()) for part in (*a.as_integer_ratio(), int(rho)))):
        alpha = ball(1 + a)
        epsilon = ball(rho) * alpha - (alpha * ball(delta)).log() / ball(a) + (ball(a) / alpha).log()
        mantissa, exponent = epsilon.upper().man_exp()
    above = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return Fraction(max(0, math.ceil(above * _STEP)), _STEP)


def describe_whose(ledger: Ledger) -> str:
    """Return the people and the adjacency that a budget protects, in words."""
    return f"the privacy of {printable(ledger.budget.unit)}, {ledger.budget.adjacency}"


def summarize_budget(ledger: Ledger) -> dict[str, str]:
    """Return the rows of a summary by name; spent numbers are rounded up, remaining ones down."""
    budget, composition, entries = ledger.budget, ledger.composition, ledger.history()
    lost = sum(entry.stored is None for entry in entries)
    promised = [
        f"epsilon {round_up(budget.epsilon)}",
        *([] if budget.delta is None else [f"delta {round_up(budget.delta)}"]),
        *([f"{round_up(budget.release_delta)} of it for releases"] if budget.release_delta else []),
    ]
    deltas = {"delta": f"{round_up(composition.delta)} of {round_up(budget.release_delta)} is spent on releases"}
    zcdp = composition.by_zcdp(budget.conversion_delta)
    converted = "which needs a delta" if zcdp is None else f"epsilon {round_up(zcdp)}"
    return {
        **({} if budget.dataset is None else {"dataset": printable(budget.dataset)}),
        "budget": ", ".join(promised),
        "spent": round_up(composition.spent(budget.conversion_delta)),
        "left": round_down(ledger.left),
        **({"locked": "releases are refused until 'discreet budget reopen'"} if ledger.is_locked else {}),
        **(deltas if budget.release_delta else {}),
        "by sum": round_up(composition.epsilon),
        "by zCDP": f"rho {round_up(composition.rho)}, {converted}",
        "releases": f"{len(entries)}" + (f", {lost} of them without a stored release" if lost else ""),
        "head": ledger.head,
    }
