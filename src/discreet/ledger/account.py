"""Compose the costs of releases, and read the records of a ledger into an account of budget, cost and requests.

Costs compose by the sum of epsilons or by zCDP (docs/proofs.md, 6; conversion: Canonne, Kamath and Steinke 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, LedgerError, quote
from discreet.exact.ball import ball, precision
from discreet.ledger.store import (
    BUDGET,
    CHARGE,
    LOCK,
    PART,
    REOPEN,
    STORE,
    WITHDRAW,
    Record,
    check_chain,
    damage_error,
)
from discreet.mechanisms.histogram import DiscreteLaplace
from discreet.privacy import RENEWALS, fraction_from_json
from discreet.release.grouped import AnyRelease, read_release
from discreet.release.release import explain_malformed
from discreet.release.sketch import Sketch, is_sketch
from discreet.sources.events.periods import UNITS, open_zone
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

_OPTIONAL = {"groups", "edition", "part", "period", "as_of"}
"""The keys that only some charges have: the number of groups, the chart of an edition, the part and the period."""

REST = "no part"
"""The name in tables of what is in no part."""

_EDITION, _REASON = {"chart", "period", "settings"}, "reason"
_WITHDRAWAL = {"chart", "period", "reason", "time", "version"}
_PART = {"part", "epsilon", "delta", "release_delta", "time", "version"}


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
    every, zone
        The length of the periods in which the budget renews, a name in `RENEWALS`, and their time zone, None for UTC.
        Without periods the budget is for all releases ever.
    since
        The day from whose period on charges are allowed; None if that is the period in which the ledger was made.
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
    every: str | None = None
    zone: str | None = None
    since: date | None = None

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

    def period_of(self, moment: datetime) -> str | None:
        """Return the period in which a charge at a moment counts; None for a budget without periods."""
        if self.every is None:
            return None
        return str(UNITS[self.every].spell(self.day_of(moment)))

    def day_of(self, moment: datetime) -> date:
        """Return the day of a moment in the zone of the periods."""
        return moment.astimezone(UTC if self.zone is None else open_zone(self.zone)).date()

    def first_day(self, period: str) -> date:
        """Return the first day of a period; raise ValueError unless it is one."""
        first = None if self.every is None else UNITS[self.every].parse(period)
        if first is None:
            raise ValueError
        return first

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
        every, zone = content.get("every"), content.get("zone")
        if every not in (None, *RENEWALS) or (zone is not None and (every is None or not isinstance(zone, str))):
            raise ValueError
        since = None if content.get("since") is None else date.fromisoformat(content["since"])
        if since is not None and every is None:
            raise ValueError
        return cls(epsilon, delta, content["adjacency"], content["unit"], dataset, release_delta, every, zone, since)


@dataclass(frozen=True)
class Spending:
    """A budget that is divided into parts, and the composed cost of each part; one of them for each period.

    The remainder, for releases that name no part, has the name None. Epsilon, the delta of releases and the delta for
    composition of all parts and the remainder add up to those of the budget. A part is an interactive mechanism of its
    own, so that parts compose by the sums (docs/budget.md): a rho is converted with the delta of its own part.

    Attributes
    ----------
    budgets
        The budget of each part and of the remainder.
    costs
        The composed cost of each part that has one.
    """

    budgets: dict[str | None, Budget]
    costs: dict[str | None, Composition] = field(default_factory=dict)

    @property
    def parts(self) -> list[str]:
        """The names of the parts, in the order in which they were made."""
        return [name for name in self.budgets if name is not None]

    @property
    def cost(self) -> Composition:
        """The composed cost of all parts together."""
        return reduce(Composition.plus, self.costs.values(), Composition())

    @property
    def fits(self) -> bool:
        """True if the cost of each part fits its budget."""
        return all(budget.fits(self.cost_of(part)) for part, budget in self.budgets.items())

    def cost_of(self, part: str | None) -> Composition:
        """Return the composed cost of a part."""
        return self.costs.get(part, Composition())

    def budget_of(self, part: str | None) -> Budget:
        """Return the budget of a part; raise if there is none of this name."""
        if part not in self.budgets:
            known = f"one of {', '.join(self.parts)}, or left out" if self.parts else "left out, as the ledger has none"
            raise InvalidValueError(f"part must be {known}, not {quote(part)}")
        return self.budgets[part]

    def spent(self, *parts: str | None) -> Fraction:
        """Return the epsilon that some parts have spent, by default all of them: each by the better composition."""
        named = parts or tuple(self.budgets)
        return sum((self.cost_of(part).spent(self.budgets[part].conversion_delta) for part in named), Fraction(0))

    def left(self, *parts: str | None) -> Fraction:
        """Return the epsilon that is left in some parts, by default in all of them."""
        named = parts or tuple(self.budgets)
        return sum((max(Fraction(0), self.budgets[part].epsilon - self.spent(part)) for part in named), Fraction(0))

    def plus(self, part: str | None, cost: Composition) -> Spending:
        """Return the costs after a further one of a part."""
        return replace(self, costs={**self.costs, part: self.cost_of(part).plus(cost)})

    def renewed(self) -> Spending:
        """Return the same parts with nothing spent."""
        return Spending(self.budgets)

    def with_part(
        self, name: str, epsilon: Fraction, delta: Fraction | None = None, release_delta: Fraction = Fraction(0)
    ) -> Spending:
        """Return the spending with a part that is made or changed; epsilon 0 dissolves it. Raise if it does not fit.

        Sums hold for any division that is chosen after releases. A conversion from zCDP does not, because its epsilon
        and delta must be fixed beforehand; with one, the remainder and the part must have no cost yet.
        """
        rest, old = self.budgets[None], self.budgets.get(name)
        is_converting = any(each.conversion_delta is not None for each in self.budgets.values())
        if is_converting and (self.costs.keys() & {None, name}):
            raise InvalidValueError(
                "a part must be made or changed before anything is charged to it, or outside of all parts, in the same "
                "period: the delta for composition may not be divided after a release"
            )
        if delta is not None and rest.delta is None:
            raise InvalidValueError("delta must be left out for a part of a budget that has none")
        if old is None and not epsilon:
            raise InvalidValueError(f"epsilon must be above zero for a new part, which {quote(name)} is")
        free = [each + mine for each, mine in zip(_shares(rest), _shares(old), strict=True)]
        # Nothing that the remainder has spent can be given away; with a conversion nothing is spent.
        spent = self.cost_of(None)
        unspent = (free[0] - spent.epsilon, free[1] - spent.delta, free[2])
        given = (epsilon, release_delta, (delta or Fraction(0)) - release_delta)
        names = ("epsilon", "release_delta", "delta for composition")
        for what, most, asked in zip(names, unspent, given, strict=True):
            if asked > most:
                raise InvalidValueError(
                    f"{what} must be at most {round_down(most)}, which is in no part and not spent, not "
                    f"{round_up(asked)}"
                )
        part = replace(rest, epsilon=epsilon, delta=delta, release_delta=release_delta)
        if not part.fits(self.cost_of(name)):
            raise InvalidValueError("a part must keep what it has spent in this period, and this one is smaller")
        epsilon_rest, releases_rest, conversion_rest = (each - less for each, less in zip(free, given, strict=True))
        delta_rest = None if rest.delta is None else releases_rest + conversion_rest
        rest = replace(rest, epsilon=epsilon_rest, delta=delta_rest, release_delta=releases_rest)
        budgets = {**self.budgets, name: part, None: rest}
        if not epsilon:
            del budgets[name]
        return replace(self, budgets=budgets)


def _shares(budget: Budget | None) -> tuple[Fraction, Fraction, Fraction]:
    """Return epsilon, the delta of releases and the delta for composition of a part; zeros for None."""
    if budget is None:
        return Fraction(0), Fraction(0), Fraction(0)
    return budget.epsilon, budget.release_delta, budget.conversion_delta or Fraction(0)


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
    part
        The part of the budget that is charged; None for a charge outside of all parts.
    period
        The period of the budget in which the charge counts; None for a budget without periods.
    as_of
        The time by which the period was chosen, in UTC, if the caller gave one; None if it is that of the charge.
    edition
        The chart, the period and the settings of a chart that `discreet publish` released, and the reason if it was
        released again as a correction; None for all other charges: no argument of a caller sets it.
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
    part: str | None = None
    period: str | None = None
    as_of: str | None = None
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
class Withdrawal:
    """A period of a chart that was withdrawn from its site; no release was taken back, and its cost stays spent.

    Attributes
    ----------
    number, time
        The number of its record, and its time in UTC.
    chart, period
        The id of the chart, and the period; None for a chart without periods.
    reason
        The reason in the words of the person who withdrew it.
    version
        The version of discreet that wrote it.
    """

    number: int
    time: str
    chart: str
    period: str | None
    reason: str
    version: str

    @classmethod
    def read(cls, record: Record) -> Withdrawal:
        """Parse the record of a withdrawal."""
        return cls(number=record.number, **record.content)


@dataclass(frozen=True)
class Account:
    """The state after the records up to `last`; `spending` is that of `period`, or of all time without periods.

    `earlier` is the spending of the periods before it. Nothing carries over from one to the next. `is_late` is True if
    some charge counts in a period before that of its time. `made` is the time at which the ledger was made.
    Later records make a new account that shares the dictionaries. These only grow, and reading a record twice, as two
    threads may, changes nothing.
    """

    budget: Budget
    last: Record
    made: datetime
    time: datetime
    spending: Spending
    requests: dict[str, int] = field(default_factory=dict)
    stores: dict[int, int | None] = field(default_factory=dict)
    locked_by: int | None = None
    period: str | None = None
    earlier: tuple[tuple[str, Spending], ...] = ()
    is_late: bool = False

    @property
    def start(self) -> str | None:
        """The first period that can be charged: that of `since`, by default that in which the ledger was made."""
        budget, period = self.budget, self.budget.period_of(self.made)
        if budget.every is None or budget.since is None or budget.since >= budget.day_of(self.made):
            return period
        return str(UNITS[budget.every].spell(budget.since))

    @property
    def is_backdated(self) -> bool:
        """True if periods before that in which the ledger was made can be charged."""
        return self.start != self.budget.period_of(self.made)

    @property
    def spent(self) -> Composition:
        """The composed cost of the period, or of all charges without periods."""
        return self.spending.cost

    @property
    def every_spending(self) -> dict[str, Spending]:
        """The spending of each period with charges, oldest first; empty for a budget without periods."""
        listed = self.earlier if self.period is None else (*self.earlier, (self.period, self.spending))
        return {period: spending for period, spending in listed if spending.costs}

    @property
    def periods(self) -> dict[str, Composition]:
        """The composed cost of each period with charges, oldest first; empty for a budget without periods."""
        return {period: spending.cost for period, spending in self.every_spending.items()}

    @property
    def total(self) -> Composition:
        """The composed cost of all periods; its rho may not be converted to an epsilon."""
        return reduce(Composition.plus, (spending.cost for _, spending in self.earlier), self.spent)

    @property
    def fits(self) -> bool:
        """True if the cost of each part in each period fits its budget."""
        return all(spending.fits for spending in (*(each for _, each in self.earlier), self.spending))

    def in_period(self, period: str | None) -> Account:
        """Return the account with the spending of a period, at or after that of the last charge."""
        if period == self.period:
            return self
        earlier = self.earlier if self.period is None else (*self.earlier, (self.period, self.spending))
        return replace(self, spending=self.spending.renewed(), period=period, earlier=earlier)

    def at(self, moment: datetime) -> Account:
        """Return the account with the spending of the period of a moment, or of the last charge if that is later."""
        period = self.budget.period_of(moment)
        is_over = period is not None and (
            self.period is None or self.budget.first_day(period) > self.budget.first_day(self.period)
        )
        return self.in_period(period) if is_over else self

    def after(self, record: Record) -> Account:
        """Return the account extended by one record; raise ValueError unless the record is well-formed."""
        account = self.read(record)
        if record.kind == CHARGE:
            self.stores.setdefault(record.number, None)
            if request := record.content["request_id"]:
                self.requests.setdefault(request, record.number)
        elif record.kind == STORE:
            self.stores[_number_of_charge(record)] = record.number
        return account

    def read(self, record: Record) -> Account:
        """Return the account after a record, whose request and release are not entered; nothing is changed."""
        if record.kind == CHARGE:
            content = record.content
            request, edition = content["request_id"], content.get("edition")
            if edition is not None and edition.keys() - {_REASON} != _EDITION:
                raise ValueError
            if content.keys() - _OPTIONAL != _KEYS or (
                request and self.requests.get(request, record.number) != record.number
            ):
                raise ValueError
            time, cost = datetime.fromisoformat(content["time"]), cost_of(*(content[name] for name in _COSTS))
            part = content.get("part")
            account = self._in_period_of(content, time)
            if not isinstance(part, str | None) or part not in account.spending.budgets:
                raise ValueError
            spending = account.spending.plus(part, cost)
            is_late = self.is_late or ("as_of" in content and account.period != self.budget.period_of(time))
            return replace(account, last=record, time=time, spending=spending, is_late=is_late)
        if record.kind == PART:
            content = record.content
            time = datetime.fromisoformat(content["time"])
            account = self._in_period_of(content, time)
            if content.keys() - {"period"} != _PART or not isinstance(content["part"], str):
                raise ValueError
            return replace(account, last=record, time=time, spending=account.spending.with_part(*read_part(content)))
        if record.kind == LOCK and record.content["charge"] in self.stores:
            return replace(self, last=record, locked_by=record.content["charge"])
        if record.kind == REOPEN and self.locked_by is not None and record.content["reason"]:
            return replace(self, last=record, locked_by=None)
        if record.kind == WITHDRAW:
            content = record.content
            time = datetime.fromisoformat(content["time"])
            if content.keys() != _WITHDRAWAL or not content["reason"] or time < self.time:
                raise ValueError
            return replace(self, last=record, time=time)
        if record.kind != STORE or self.stores[_number_of_charge(record)] not in (None, record.number):
            raise ValueError
        return replace(self, last=record)

    def _in_period_of(self, content: dict[str, Any], time: datetime) -> Account:
        """Return the account in the period of a record; raise ValueError if it or the time is before the last one."""
        period, last = content.get("period"), self.period
        if time < self.time or (period is None) != (self.budget.every is None):
            raise ValueError
        # Nothing is charged to a period that has ended in the ledger, so that no period is counted twice.
        if period is not None and self.budget.first_day(period) < self.budget.first_day(last or period):
            raise ValueError
        return self.in_period(period)


_KEYS = {each.name for each in fields(Entry)} - {"number", "stored"} - _OPTIONAL
"""The keys that every charge has."""


_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The errors by which a record shows that discreet did not write it."""


def extend_account(account: Account | None, records: Iterable[Record]) -> Account:
    """Return the account after these records, each of which is checked; without an account, the first is the budget."""
    for record in check_chain(None if account is None else account.last, records):
        try:
            if account is not None:
                account = account.after(record)
            elif record.kind == BUDGET:
                budget = Budget.read(record.content)
                time = datetime.fromisoformat(record.content["time"])
                account = Account(budget, record, time, time, Spending({None: budget}))
            else:
                raise ValueError
        except _MALFORMED as error:
            said = explain_malformed(error)
        else:
            continue
        raise damage_error(record.number, f"is not one that discreet writes{said}")
    if account is None:
        raise damage_error(1, "is missing")
    return account


def check_readable(account: Account, record: Record) -> None:
    """Raise unless a record that is about to be written can be read after the others: it can never be taken back."""
    try:
        account.read(record)
    except _MALFORMED as error:
        said = explain_malformed(error)
    else:
        return
    raise LedgerError(f"the ledger would be damaged by its next record, which was not written{said}")


def _number_of_charge(record: Record) -> int:
    """Return the number of the charge whose release a record holds."""
    # Canonical JSON begins with the number; the release after it can be long and is not parsed here.
    return int(record.body.partition(",")[0].removeprefix('{"charge":'))


@lru_cache(maxsize=1024)
def cost_of(epsilon: str, zcdp: str, delta: str) -> Composition:
    """Parse a cost; cached, because most charges of a ledger cost the same."""
    costs = zip(_COSTS, (epsilon, zcdp, delta), strict=True)
    cost = Composition(*(fraction_from_json(text, name) for name, text in costs))
    if min(cost.epsilon, cost.rho, cost.delta) < 0:
        raise ValueError
    return cost


def read_part(content: dict[str, Any]) -> tuple[str, Fraction, Fraction | None, Fraction]:
    """Return the name, epsilon, delta and delta of releases in the record of a part."""
    epsilon = fraction_from_json(content["epsilon"], "epsilon")
    delta = None if content["delta"] is None else fraction_from_json(content["delta"], "delta")
    release_delta = fraction_from_json(content["release_delta"], "release_delta")
    if epsilon < 0 or not 0 <= release_delta <= (delta or 0):
        raise ValueError
    return content["part"], epsilon, delta, release_delta


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


def describe_renewal(budget: Budget) -> str:
    """Return the rule by which a budget renews, to follow the budget in words; empty without periods."""
    if budget.every is None:
        return ""
    return f" every {budget.every}{'' if budget.zone is None else f' in {budget.zone}'}, nothing carries over"


def _describe_periods(account: Account) -> str:
    """Return the cost of all periods with charges in words."""
    names, conversion = [name for name, cost in account.periods.items() if cost != Composition()], account.budget.delta
    if not names:
        return "nothing is spent yet"
    beside = "" if conversion is None else " by the sum"
    since = f"since {names[0]}, in {len(names)} period{'' if len(names) == 1 else 's'}"
    return f"{round_up(account.total.epsilon)}{beside} {since}"


def describe_whose(ledger: Ledger) -> str:
    """Return the people and the adjacency that a budget protects, in words."""
    return f"the privacy of {printable(ledger.budget.unit)}, {ledger.budget.adjacency}"


def list_parts(account: Account) -> list[tuple[str, Fraction, Fraction, Fraction]]:
    """Return the name, the epsilon, the spent and the left epsilon of each part and of the remainder; empty without."""
    spending = account.spending
    return [
        (part or REST, spending.budgets[part].epsilon, spending.spent(part), spending.left(part))
        for part in (*spending.parts, *([None] if spending.parts else []))
    ]


def summarize_budget(ledger: Ledger) -> dict[str, str]:
    """Return the rows of a summary by name; spent numbers are rounded up, remaining ones down."""
    account, entries = ledger.current(), ledger.history()
    budget, composition, period, spending = account.budget, account.spent, account.period, account.spending
    lost = sum(entry.stored is None for entry in entries)
    promised = [
        f"epsilon {round_up(budget.epsilon)}",
        *([] if budget.delta is None else [f"delta {round_up(budget.delta)}"]),
        *([f"{round_up(budget.release_delta)} of it for releases"] if budget.release_delta else []),
    ]
    deltas = {"delta": f"{round_up(composition.delta)} of {round_up(budget.release_delta)} is spent on releases"}
    zcdp = None if spending.parts else composition.by_zcdp(budget.conversion_delta)
    # Releases with a delta are approximately rho-zCDP.
    beside = f" beside delta {round_up(composition.delta)}" if composition.delta else ""
    converted = "which needs a delta" if zcdp is None else f"epsilon {round_up(zcdp)}"
    if spending.parts and budget.conversion_delta is not None:
        converted = "converted in each part by itself"
    return {
        **({} if budget.dataset is None else {"dataset": printable(budget.dataset)}),
        "budget": ", ".join(promised) + describe_renewal(budget),
        **({"since": f"{account.start}, before the ledger was made"} if account.is_backdated else {}),
        **({} if period is None else {"period": period}),
        "spent": round_up(spending.spent()),
        "left": round_down(spending.left()),
        **({} if period is None else {"all": _describe_periods(account)}),
        **({"locked": "releases are refused until 'discreet budget reopen'"} if ledger.is_locked else {}),
        **(deltas if budget.release_delta else {}),
        "by sum": round_up(composition.epsilon),
        "by zCDP": f"rho {round_up(composition.rho)}{beside}, {converted}",
        "releases": f"{len(entries)}" + (f", {lost} of them without a stored release" if lost else ""),
        "head": ledger.head,
    }
