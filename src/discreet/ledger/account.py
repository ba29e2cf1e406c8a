"""What the records of a ledger come to: the budget, what is spent of it, and which requests were answered."""

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


# What many releases cost together: by the sum of their epsilons, and by zCDP.
#
# Pure: epsilons add (basic composition). zCDP: rhos add, and rho-zCDP is (epsilon, delta)-DP for every alpha > 1 with
#
#     epsilon = rho alpha + log(1 / (alpha delta)) / (alpha - 1) + log(1 - 1 / alpha)
#
# (Canonne, Kamath and Steinke 2020, Proposition 12). A release with a delta is delta-approximately rho-zCDP, and the
# deltas add as well. Both hold when each release is chosen after seeing the ones before,
# and so does the better of the two: on outcomes where the sum stays within the budget the ratio of probabilities is at
# most e^epsilon, and all others are outcomes of a process that stops at the rho of the budget.

_STEP = 10**9
"""A converted epsilon is rounded up to a multiple of one billionth."""

_FLAT = 700.0
"""Exponents beyond this leave the range of floats."""


@dataclass(frozen=True, repr=False)
class Composition:
    """What releases come to.

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
        """These releases and others."""
        delta = self.delta + other.delta if other.delta else self.delta  # mostly zero, and exact sums take time
        return Composition(self.epsilon + other.epsilon, self.rho + other.rho, delta)

    def by_zcdp(self, conversion: Fraction | None) -> Fraction | None:
        """The epsilon by zCDP, converted at a delta that comes beside those of the releases; None without one."""
        return None if conversion is None else zcdp_to_epsilon(self.rho, conversion)

    def spent(self, conversion: Fraction | None) -> Fraction:
        """The epsilon, by the better of the two."""
        other = self.by_zcdp(conversion)
        return self.epsilon if other is None else min(self.epsilon, other)

    def fits(self, epsilon: Fraction, conversion: Fraction | None, release_delta: Fraction = Fraction(0)) -> bool:
        """Whether all of this is within epsilon and the sum of two deltas that were fixed beforehand."""
        if self.delta > release_delta:
            return False
        return self.epsilon <= epsilon or self.spent(conversion) <= epsilon


def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon for which rho-zCDP is shown to be (epsilon, delta)-DP, rounded up.

    Examples
    --------
    >>> float(zcdp_to_epsilon(Fraction(1, 8), Fraction(1, 10**6)))
    2.419093177
    """
    if rho == 0:
        return Fraction(0)
    # Every alpha gives a true bound, so a float may choose it; a ball decides what it is.
    a = Fraction(_best_order(_log(rho), _log(delta)))
    with precision(256 + 2 * max(abs(part.bit_length()) for part in (*a.as_integer_ratio(), int(rho)))):
        alpha = ball(1 + a)
        epsilon = ball(rho) * alpha - (alpha * ball(delta)).log() / ball(a) + (ball(a) / alpha).log()
        mantissa, exponent = epsilon.upper().man_exp()
    above = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return Fraction(max(0, math.ceil(above * _STEP)), _STEP)


def _best_order(log_rho: float, log_delta: float) -> float:
    """The alpha - 1 that is best, nearly.

    The derivative of epsilon by alpha is rho + log(alpha delta) / (alpha - 1)^2: below zero up to the one alpha where
    rho (alpha - 1)^2 + log alpha = log(1 / delta), and above zero after it.
    """
    low, high = -_FLAT, _FLAT
    for _ in range(100):
        middle = (low + high) / 2
        grown = math.exp(min(_FLAT, log_rho + 2 * middle)) + math.log1p(math.exp(middle))
        low, high = (middle, high) if grown < -log_delta else (low, middle)
    return math.exp(low)


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


Stored = AnyRelease | Sketch
"""What a charge can be for."""


@dataclass(frozen=True, repr=False)
class Budget:
    """What may be spent, and on whom.

    Attributes
    ----------
    epsilon
        The most that all releases together may cost.
    delta
        With a delta, the cost is that of (epsilon, delta)-differential privacy, by the better of two ways to add up.
    release_delta
        How much of delta is for releases that have one of their own; the rest is for adding up by zCDP.
    adjacency
        "add-remove" or "swap": the ledger takes releases under this one alone.
    unit
        Whose privacy it is, in words.
    dataset
        The name of the data that it is for, which a release must give as well; None where it is for any.
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
        """How much of delta is for adding up by zCDP; None where nothing is."""
        # Fixed beforehand: whoever could trade one for the other by what was released would exceed both.
        return None if self.delta is None or self.delta == self.release_delta else self.delta - self.release_delta

    def fits(self, cost: Composition) -> bool:
        """Whether what releases come to is within the budget."""
        return cost.fits(self.epsilon, self.conversion_delta, self.release_delta)

    @classmethod
    def read(cls, content: dict[str, Any]) -> Budget:
        """The budget in the first record."""
        delta = None if content["delta"] is None else fraction_from_json(content["delta"], "delta")
        release_delta = fraction_from_json(content.get("release_delta", 0), "release_delta")
        if not 0 <= release_delta <= (delta or 0):
            raise ValueError
        # A ledger that was made before there were datasets says nothing of one.
        dataset = content.get("dataset")
        epsilon = fraction_from_json(content["epsilon"], "epsilon")
        return cls(epsilon, delta, content["adjacency"], content["unit"], dataset, release_delta)


@dataclass(frozen=True, repr=False)
class Entry:
    """One charge, and what was released for it.

    Attributes
    ----------
    number
        The number of its record.
    time
        When it was charged, in UTC, to the second.
    purpose
        What the caller said it is for, or None.
    k, d
        How many items of how many, in each group where there are groups; d is that of the largest, and None where
        nobody listed the items. Of a sketch, k is how many ranks it has.
    mechanism
        The mechanism's name and parameters.
    epsilon, zcdp, delta
        What it cost.
    version
        The version of discreet that charged it.
    fingerprint
        A hash of the public query.
    request_id
        What the caller called the request, or None.
    groups
        How many groups were released, or None where the release was of one list.
    edition
        The chart, the period and the settings of a chart that `discreet publish` released; None for all other charges,
        whatever their callers say of them.
    stored
        The release as JSON holds it, or None where none was stored: it is spent all the same.
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
        """The entry of a charge."""
        content = record.content
        cost = cost_of(*(content.pop(name) for name in _COSTS))
        return cls(number=record.number, epsilon=cost.epsilon, zcdp=cost.rho, delta=cost.delta, **content)

    @property
    def release(self) -> Stored | None:
        """What was released, or None where a crash came between the charge and the storing."""
        return None if self.stored is None else read_stored(self.stored)

    @property
    def is_sketch(self) -> bool:
        """Whether it is of a sketch: k is then how many ranks it has."""
        return bool(self.mechanism["name"] == DiscreteLaplace.name)


@dataclass(frozen=True)
class Account:
    """The records up to `last`, added up.

    Later records make a new account. The dictionaries are shared with it: they only grow, and reading a record twice,
    as two threads may, changes nothing.
    """

    budget: Budget
    last: Record
    time: datetime
    spent: Composition = field(default_factory=Composition)
    requests: dict[str, int] = field(default_factory=dict)
    stores: dict[int, int | None] = field(default_factory=dict)
    locked_by: int | None = None

    def after(self, record: Record) -> Account:
        """Return the account once one more record is read."""
        if record.kind == CHARGE:
            return self._after_charge(record, record.content)
        if record.kind == LOCK and record.content["charge"] in self.stores:
            return replace(self, last=record, locked_by=record.content["charge"])
        if record.kind == REOPEN and self.locked_by is not None and record.content["reason"]:
            return replace(self, last=record, locked_by=None)
        # Canonical JSON begins with the number; the release behind it can be long and is not read here.
        charge = int(record.body.partition(",")[0].removeprefix('{"charge":'))
        if record.kind != STORE or self.stores[charge] not in (None, record.number):
            raise ValueError
        self.stores[charge] = record.number
        return replace(self, last=record)

    def _after_charge(self, record: Record, content: dict[str, Any]) -> Account:
        request, edition = content["request_id"], content.get("edition")
        if edition is not None and edition.keys() != _EDITION:
            raise ValueError
        if content.keys() - _OPTIONAL != _KEYS or (
            request and self.requests.setdefault(request, record.number) != record.number
        ):
            raise ValueError
        self.stores.setdefault(record.number, None)
        time, spent = datetime.fromisoformat(content["time"]), self.spent.plus(cost_of(*(content[c] for c in _COSTS)))
        if time < self.time:
            raise ValueError
        return replace(self, last=record, time=time, spent=spent)


def read_stored(data: Any) -> Stored:
    """The release or the sketch that was stored, as its format says."""
    return Sketch.from_dict(data) if is_sketch(data) else read_release(data)


def extend_account(account: Account | None, records: Iterable[Record]) -> Account:
    """The account after these records, each of which is checked; without one before, the first is the budget."""
    for record in check_chain(None if account is None else account.last, records):
        try:
            account = _open_account(record) if account is None else account.after(record)
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
    """A cost from its texts; most charges of a ledger cost the same."""
    costs = {"epsilon": epsilon, "zcdp": zcdp, "delta": delta}
    cost = Composition(*(fraction_from_json(text, name) for name, text in costs.items()))
    if min(cost.epsilon, cost.rho, cost.delta) < 0:
        raise ValueError
    return cost


_COSTS = ("epsilon", "zcdp", "delta")
_OPTIONAL = {"groups", "edition"}
"""The keys that some charges have: the number of groups of a release, and the chart of an edition."""

_EDITION = {"chart", "period", "settings"}

_KEYS = {each.name for each in fields(Entry)} - {"number", "stored"} - _OPTIONAL
"""The keys that every charge has."""


def _open_account(record: Record) -> Account:
    if record.kind != BUDGET:
        raise ValueError
    return Account(Budget.read(record.content), record, datetime.fromisoformat(record.content["time"]))


# What a budget comes to, in rows for people: what is promised, spent and left; no number is better than the exact.


def describe_whose(ledger: Ledger) -> str:
    """Whose privacy a budget is about, in words."""
    return f"the privacy of {printable(ledger.budget.unit)}, {ledger.budget.adjacency}"


def summarize_budget(ledger: Ledger) -> dict[str, str]:
    """The rows, by their names: what is spent is rounded up, and what is left down."""
    budget, composition, entries = ledger.budget, ledger.composition, ledger.history()
    lost = sum(entry.stored is None for entry in entries)
    promised = [
        f"epsilon {round_up(budget.epsilon)}",
        *([] if budget.delta is None else [f"delta {round_up(budget.delta)}"]),
        *([f"{round_up(budget.release_delta)} of it for releases"] if budget.release_delta else []),
    ]
    deltas = {"delta": f"{round_up(composition.delta)} of {round_up(budget.release_delta)} is spent on releases"}
    return {
        **({} if budget.dataset is None else {"dataset": printable(budget.dataset)}),
        "budget": ", ".join(promised),
        "spent": round_up(composition.spent(budget.conversion_delta)),
        "left": round_down(ledger.left),
        **({"locked": "releases are refused until 'discreet budget reopen'"} if ledger.is_locked else {}),
        **(deltas if budget.release_delta else {}),
        "by sum": round_up(composition.epsilon),
        "by zCDP": _describe_zcdp(composition.by_zcdp(budget.conversion_delta), composition.rho),
        "releases": f"{len(entries)}" + (f", {lost} of them without a stored release" if lost else ""),
        "head": ledger.head,
    }


def _describe_zcdp(epsilon: Fraction | None, rho: Fraction) -> str:
    return f"rho {round_up(rho)}" + (", which needs a delta" if epsilon is None else f", epsilon {round_up(epsilon)}")
