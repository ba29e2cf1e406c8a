"""Price a run of publishing, release the periods that are due, or rehearse with made-up events.

A period is charged before it is drawn and stored before it is shown, and a chart that fails does not stop the others.
The cost of a release is that of the same request on an empty table, so pricing reads the charts file, the ledger and
public lists, and no events. A rehearsal reads neither the events nor the ledger: made-up events follow from the charts
file and public lists alone, one of which can be in the database of the events. They all meet the condition and lie in
the period, so a rehearsal tests neither; `discreet check` does. Reports hold public facts only: charts, periods,
request ids and costs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from discreet.errors import Error, InvalidValueError, LedgerError, quote
from discreet.ledger.account import Budget, Composition, Spending
from discreet.ledger.charges import enter_period, open_charge
from discreet.ledger.ledger import Ledger
from discreet.mechanisms.discovery import delta_warning
from discreet.publish.chart_source import (
    fetch_domain,
    has_lists_in_database,
    list_public_options,
    list_terms,
    open_chart_source,
    open_stand_in,
)
from discreet.publish.charts_file import Chart, ChartsFile, name_place
from discreet.publish.editions import (
    ChartRecord,
    Edition,
    find_day_after,
    find_due_periods,
    find_last_ended,
    name_request,
    read_record,
)
from discreet.publish.pages import ChartPages, Site
from discreet.release.topk import Padding, deliver_release, make_any_request, top_k
from discreet.sources.base import GroupedSource
from discreet.sources.discovered import UnlistedGroups
from discreet.sources.events.group_columns import read_by
from discreet.sources.events.periods import UNITS, Unit
from discreet.sources.events.ranges import Integers
from discreet.text import number_for_programs

MOST_PERIODS = 1000
"""The budget is followed for at most this many periods of a chart, almost three years of days."""

MOST_CHARGES = 2
"""A period is charged at most this often unless the caller asks for more: what failed twice is likely to fail again."""

_USERS, _ROWS = 20_000, 60_000
"""Size of a made-up table: large enough that lists look real, small enough that a period takes about a second."""

_ITEMS = 5_000
"""Made-up events hold at most this many items of the domain, because a domain can have millions."""

_PERIODS = 3
"""A rehearsal shows at most this many periods of a chart, enough for links and for changes since the one before."""

Report = Callable[..., None]
"""Takes the name of an event, and public facts about the event by keyword."""


@dataclass(frozen=True)
class ChartPrice:
    """The cost of one chart in a run.

    Attributes
    ----------
    chart, record
        The chart, and its charges and releases in the ledger.
    due
        The periods to release, in order, up to the first that must not be charged.
    cost
        The cost of one period; None if it cannot be computed.
    error
        The reason for a missing cost, or for a period that is not released.
    lasts
        The number of further periods that the budget allows after this run if all charts go on, in a budget that
        renews within its current period; None for a chart without further periods.
    coming
        In a budget that renews, the number of further periods that will be due within its current period, else None.
    """

    chart: Chart
    record: ChartRecord
    due: tuple[str | None, ...]
    cost: Composition | None
    error: Error | None = None
    lasts: int | None = None
    coming: int | None = None

    @property
    def charged_again(self) -> list[str]:
        """The request ids of due periods that were charged before and have no release."""
        lost = [period for period in self.due if self.record.count_lost(period)]
        return [self.record.next_request_id(self.chart.id, period) for period in lost]

    @property
    def warning(self) -> str | None:
        """A warning about a large delta, None if there is no reason for one."""
        return None if self.cost is None else delta_warning(self.cost.delta)


@dataclass(frozen=True)
class Price:
    """The cost of a run: its charts, the budget, and the cost of all earlier releases of the same period of the budget.

    `spending` is that cost by parts, and `period` that period, None for a budget that does not renew. `moment` is the
    time of the run.
    """

    charts: tuple[ChartPrice, ...]
    budget: Budget
    spending: Spending
    moment: datetime
    period: str | None = None

    @property
    def run(self) -> Composition:
        """The composed cost of all releases of this run."""
        return self._add_run(self.spending.renewed()).cost

    @property
    def after(self) -> Spending:
        """The spending after this run."""
        return self._add_run(self.spending)

    @property
    def fits(self) -> bool:
        """True if the budget allows all releases of this run."""
        return self.after.fits

    @property
    def left(self) -> Fraction:
        """The epsilon that is left after this run."""
        return self.after.left()

    def _add_run(self, spending: Spending) -> Spending:
        for row in self.charts:
            if row.cost is not None:
                times, cost = len(row.due), row.cost
                cost = Composition(times * cost.epsilon, times * cost.rho, times * cost.delta)
                spending = spending.plus(row.chart.get("part"), cost)
        return spending


@dataclass(frozen=True)
class Failure:
    """A chart that could not be released, with the period, if one is to blame, and the error."""

    chart: str
    period: str | None
    error: Exception


def make_price(
    charts: Sequence[Chart], ledger: Ledger, as_of: datetime | None = None, charge_again: Collection[str] = ()
) -> Price:
    """Compute the cost of a run from the ledger and public lists, without reading events.

    `as_of` is the moment of the run, by default now by the clock of the ledger. `charge_again` holds ids of charts. One
    period of each may be charged once more than `MOST_CHARGES` times.
    """
    for name in charge_again:
        if name not in [chart.id for chart in charts]:
            raise InvalidValueError(f"charge_again must be the id of a chart of the file, not {quote(name)}")
    moment = as_of or ledger.now()
    entries = ledger.history()
    withdrawn = ledger.withdrawals()
    records = [read_record(entries, chart, withdrawn) for chart in charts]
    rows = [
        _price_chart(chart, record, moment, chart.id in charge_again)
        for chart, record in zip(charts, records, strict=True)
    ]
    account = ledger.account
    # A charge for a period that has ended in the ledger is refused. A run without charges writes the site all the same.
    is_entered = as_of is not None and any(row.due for row in rows)
    account = enter_period(account, moment) if is_entered else account.at(moment)
    budget = account.budget
    rows = [_check_part(row, account.spending) for row in rows]
    price = Price(tuple(rows), budget, account.spending, moment, account.period)
    # Follow the budget as periods end and all charts are released: a heap of the next period of each chart, by the day
    # after it.
    coming: list[tuple[date, int, Unit, Composition]] = []
    for place, row in enumerate(price.charts):
        unit = row.chart.unit
        if unit is not None and row.cost is not None:
            first = find_day_after(unit, find_last_ended(unit, moment, row.chart.get("zone")))
            first = max(first, row.chart.first or first)
            if row.chart.last is not None and first > row.chart.last:
                continue
            heapq.heappush(coming, (find_day_after(unit, first), place, unit, row.cost))
    total, counts, due = price.after, [0] * len(price.charts), [0] * len(price.charts)
    goes_on = {place for _, place, _, _ in coming}
    while coming and max(due) < MOST_PERIODS:
        following, place, unit, cost = heapq.heappop(coming)
        # A period is released on the day after it. A budget that renews is followed to the end of its current period.
        if budget.every is not None and str(UNITS[budget.every].spell(following)) != price.period:
            continue
        due[place] += 1
        total = total.plus(rows[place].chart.get("part"), cost)
        counts[place] += total.fits
        if budget.every is None and not total.fits:
            break
        last = rows[place].chart.last
        if last is not None and following > last:
            continue
        heapq.heappush(coming, (find_day_after(unit, following), place, unit, cost))
    priced = [
        replace(row, lasts=counts[place], coming=None if budget.every is None else due[place])
        if place in goes_on
        else row
        for place, row in enumerate(rows)
    ]
    return replace(price, charts=tuple(priced))


def _price_chart(chart: Chart, record: ChartRecord, moment: datetime, charge_again: bool) -> ChartPrice:
    """Compute the cost of a chart, and stop its due periods at the first that must not be charged."""
    due = tuple(each for each in find_due_periods(chart, moment) if each not in record.periods)
    try:
        row = ChartPrice(chart, record, due, find_cost(chart))
    except Error as error:
        return ChartPrice(chart, record, due, None, error)

    def name_times(count: int) -> str:
        return "twice" if count == 2 else f"{count} times"

    stuck = [period for period in due if record.count_lost(period) >= MOST_CHARGES]
    if charge_again and not stuck:
        raise InvalidValueError(
            f"charge_again must be a chart that was charged {name_times(MOST_CHARGES)} for a period and not stored, "
            f"which {quote(chart.id)} was not"
        )
    # With `charge_again` the first stuck period is charged, and the second stops the chart.
    if len(stuck) > charge_again:
        period = stuck[charge_again]
        lost = LedgerError(
            f"{name_request(chart.id, period)} was charged {name_times(record.count_lost(period))} and not "
            f"stored; `--charge-again {chart.id}` draws it once more"
        )
        row = replace(row, due=due[: due.index(period)], error=lost)
    for place, period in enumerate(row.due):
        request = record.next_request_id(chart.id, period)
        if request in record.other_ids:
            used = LedgerError(f"request id {quote(request)} is used by another release, which is not of this chart")
            return replace(row, due=row.due[:place], error=used)
    return row


def _check_part(row: ChartPrice, spending: Spending) -> ChartPrice:
    """Return a row without a cost, and with the error, if its chart names a part that the ledger does not have."""
    try:
        spending.budget_of(row.chart.get("part"))
    except Error as error:
        return replace(row, cost=None, error=error)
    return row


def find_cost(chart: Chart) -> Composition:
    """Return the cost of releasing one period of a chart."""
    terms = list_terms(chart)
    terms.pop("pad_to")
    if has_lists_in_database(chart):
        # The public lists are read from the database of the events, and no events are.
        source = open_chart_source(chart, None)
    else:
        source = open_stand_in(chart, _make_empty_table(chart), chart.get("label"))
    guarantee = make_any_request(source, **terms).guarantee
    return Composition(guarantee.epsilon, guarantee.zcdp, guarantee.delta)


def _make_empty_table(chart: Chart, types: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return a table with the columns of the events, some of them of known types, and no rows."""
    import pyarrow as pa

    return pa.table({name: pa.array([], kind) for name, kind in (_list_columns(chart) | dict(types)).items()})


def _list_columns(chart: Chart) -> dict[str, Any]:
    """Return the columns that a chart needs, with types that are comparable with any public list."""
    import pyarrow as pa

    given, by = chart.settings["events"], list_public_options(chart).get("by")
    grouping = [] if by is None else [column.column for column in read_by(by)]
    columns = {name: pa.string() for name in [given["item"], *grouping, given["user"]]}
    return columns | ({} if given.get("value") is None else {given["value"]: pa.float64()})


def release_due(price: Price, ledger: Ledger, report: Report, as_of: datetime | None = None) -> list[Failure]:
    """Release every due period in the order of the file, and return the charts that failed.

    `as_of` is the moment whose period a budget that renews is charged for, None for now.
    """
    failures: list[Failure] = []
    for row in price.charts:
        failure = None if row.error is None else Failure(row.chart.id, None, row.error)
        told: list[str] = []
        # A chart stops at the first period that fails, because later ones would most likely fail too.
        for period in row.due if row.cost is not None else ():
            try:
                notes = _release_period(row.chart, row.record, period, ledger, report, as_of)
            except Exception as error:  # any error ends this chart alone, but for a lock that is lost
                ledger.check_publishing()
                failure = Failure(row.chart.id, period, error)
                break
            for note in notes:
                if note not in told:
                    report("noted", chart=row.chart.id, note=note)
                    told.append(note)
        if failure is not None:
            report("failed", chart=failure.chart, period=failure.period, error=failure.error)
            failures.append(failure)
    return failures


def _release_period(
    chart: Chart,
    record: ChartRecord,
    period: str | None,
    ledger: Ledger,
    report: Report,
    as_of: datetime | None,
    reason: str | None = None,
) -> list[str]:
    """Release a period, and return the notes of its source; with a reason it is a correction."""
    request = record.next_request_id(chart.id, period)
    if record.count_lost(period):
        report("lost", chart=chart.id, period=period, request_id=request)
    source = open_chart_source(chart, period)
    terms = list_terms(chart)
    notes: list[str] = source.notes()
    padding = Padding(terms.pop("pad_to"))
    padding.add_elapsed(source.opening_seconds())
    purpose = chart.title if period is None else f"{chart.title}, {period}"
    charge = open_charge(ledger, purpose, request, chart.get("dataset"), source.delta, as_of, chart.get("part"))
    # `read_record` finds the charges of a chart by this.
    edition: dict[str, str | None] = {"chart": chart.id, "period": period, "settings": chart.fingerprint}
    if reason is not None:
        edition["reason"] = reason
    with deliver_release(padding, replace(charge, edition=edition)) as delivery:
        delivery.draw(make_any_request(source, **terms))
        # The source is freed before the wait.
        del source
    cost = delivery.release.guarantee
    report("released", chart=chart.id, period=period, request_id=request, epsilon=number_for_programs(cost.epsilon))
    return notes


def price_correction(
    chart: Chart, period: str | None, reason: str, ledger: Ledger, as_of: datetime | None, draw_again: bool = False
) -> Price:
    """Compute the cost of releasing a published period again, which is nothing if this correction was made already.

    A run that was killed after it stored the correction, and is started again, therefore costs nothing. With another
    reason a correction is drawn once more only with `draw_again`: a new wording alone is no reason to spend.
    """
    record, edition = _find_edition(chart, period, ledger)
    cost, is_shown = find_cost(chart), edition.withdrawal is None
    is_made = is_shown and edition.reason == reason
    if is_shown and edition.reason is not None and not is_made and not draw_again:
        raise InvalidValueError(
            f"{name_request(chart.id, period)} was corrected before, because {quote(edition.reason)}, and would be "
            "drawn and charged once more; a reason cannot be reworded. Give `--draw-again` if that is meant"
        )
    request = record.next_request_id(chart.id, period)
    if request in record.other_ids:
        raise LedgerError(f"request id {quote(request)} is used by another release, which is not of this chart")
    moment = as_of or ledger.now()
    account = ledger.account.at(moment) if as_of is None or is_made else enter_period(ledger.account, moment)
    account.spending.budget_of(chart.get("part"))
    row = ChartPrice(chart, record, () if is_made else (period,), cost)
    return Price((row,), account.budget, account.spending, moment, account.period)


def correct_period(price: Price, reason: str, ledger: Ledger, report: Report, as_of: datetime | None = None) -> None:
    """Release a period again as it was priced by `price_correction`."""
    for row in price.charts:
        for period in row.due:
            for note in _release_period(row.chart, row.record, period, ledger, report, as_of, reason):
                report("noted", chart=row.chart.id, note=note)


def withdraw_period(chart: Chart, period: str | None, reason: str, ledger: Ledger, report: Report) -> None:
    """Withdraw a published period; nothing if it is withdrawn for this reason already."""
    _, edition = _find_edition(chart, period, ledger)
    if edition.withdrawal is None or edition.withdrawal.reason != reason:
        ledger.withdraw(chart.id, period, reason)
        report("withdrawn", chart=chart.id, period=period)


def _find_edition(chart: Chart, period: str | None, ledger: Ledger) -> tuple[ChartRecord, Edition]:
    """Return the record of a chart and the edition of a period; raise if the period has no release."""
    record = read_record(ledger.history(), chart, ledger.withdrawals())
    for edition in record.editions:
        if edition.period == period:
            return record, edition
    shown = ", ".join(each.period or "once" for each in record.editions[-12:]) or "none"
    raise InvalidValueError(
        f"PERIOD must be a released period of {quote(chart.id)}, such as {shown}, not {quote(period or 'once')}"
    )


def make_dummy_site(file: ChartsFile, moment: datetime) -> Site:
    """Return a site of made-up releases, for the periods that would be due if nothing was released before."""
    charts = []
    for chart in file.charts:
        editions = []
        with name_place(f"{file.path.name}, chart {chart.id!r}: "):
            listed = fetch_domain(chart, _ITEMS)
            for seed, period in enumerate(find_due_periods(chart, moment)[-_PERIODS:]):
                rng = np.random.default_rng([seed, *chart.id.encode()])
                source = open_stand_in(chart, _make_events(chart, rng, listed), chart.get("label"), listed)
                terms = list_terms(chart)
                terms.pop("pad_to")
                editions.append(Edition(period, top_k(source, **terms, rng=rng)))
        if editions:
            charts.append(ChartPages(chart, editions))
    return Site(file, charts, None)


def _make_events(chart: Chart, rng: np.random.Generator, listed: Any) -> Any:
    """Return a table of made-up events in which some items and some groups are more frequent than others.

    `listed` are the items of a domain in a database, whose type the items then have; None for other domains.
    """
    import pyarrow as pa

    given = chart.settings["events"]
    own = {} if listed is None else {given["item"]: listed.schema.field(0).type}
    empty = open_stand_in(chart, _make_empty_table(chart, own), None, None if listed is None else listed.select([0]))
    domain, discover = list_public_options(chart)["domain"], chart.get("discover")
    if discover is not None:
        items = [
            {
                "integer": str(number),
                "date": f"2026-01-{number % 28 + 1:02}",
                "boolean": str(number % 2 == 0),
            }.get(discover.get("kind"), f"item {number + 1}")
            for number in range(50)
        ]
    elif listed is not None:
        items = listed.column(0).to_pylist()
    elif isinstance(domain, Integers):
        items = [str(domain.lo + number) for number in range(min(domain.d, _ITEMS))]
    else:
        one = empty.members[0] if isinstance(empty, GroupedSource) else empty
        items = [str(item) for item in one.every_item()[:_ITEMS]]
    users = rng.integers(0, _USERS, _ROWS)
    # Frequencies fall as in a Zipf law, over the items in an order that is the same for every period.
    weights = 1.0 / np.arange(3, len(items) + 3) ** 1.1
    chosen = rng.choice(len(items), _ROWS, p=weights / weights.sum())
    shuffled = np.random.default_rng(len(items)).permutation(len(items))
    columns = {
        given["item"]: [items[shuffled[place]] for place in chosen],
        given["user"]: [f"user {each}" for each in users],
    }
    if isinstance(empty, GroupedSource | UnlistedGroups):
        # Nine rows in ten are in the user's own group. The first day stands for a period.
        by = read_by(list_public_options(chart)["by"])
        home = np.where(rng.random(_ROWS) < 0.9, users, rng.integers(0, _USERS, _ROWS)) % len(empty.keys)
        for place, column in enumerate(by):
            unit = getattr(column, "unit", None)
            parts = [key[place] if len(by) > 1 else key for key in empty.keys]
            firsts = [None if unit is None else UNITS[unit].parse(part) for part in parts]
            texts = [str(part) if day is None else day.isoformat() for part, day in zip(parts, firsts, strict=True)]
            columns[column.column] = [texts[group] for group in home]
    if given.get("value") is not None:
        low, high = (float(each) for each in given["clip"])
        columns[given["value"]] = rng.uniform(low, high, _ROWS).round(2).tolist()
    types = _list_columns(chart) | own
    return pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()})
