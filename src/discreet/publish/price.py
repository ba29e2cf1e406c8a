"""What a run of publishing will cost, what is left after it, and for how many more periods that lasts.

The cost of a release is that of the same request on an empty table: it follows from the charts file and public lists
alone, so that no event is read.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet.errors import Error, InvalidValueError, LedgerError, quote
from discreet.ledger.account import Budget, Composition
from discreet.ledger.ledger import Ledger
from discreet.mechanisms.discovery import delta_warning
from discreet.publish.chart_source import has_lists_in_database, list_terms, open_chart_source, open_stand_in
from discreet.publish.charts_file import Chart
from discreet.publish.due_periods import find_due_periods, find_last_ended, find_next_end
from discreet.publish.editions import ChartRecord, name_request, read_record
from discreet.release.topk import make_any_request

MOST_PERIODS = 1000
"""So far ahead the budget is followed."""

MOST_CHARGES = 2
"""So often a period is charged without being asked for: what fails after its charge would fail again."""


@dataclass(frozen=True)
class ChartPrice:
    """What one chart will cost.

    Attributes
    ----------
    chart, record
        The chart, and what the ledger holds of it.
    due
        The periods that this run is to release, in order, up to the first that must not be charged again.
    cost
        What the release of one period costs; None where that cannot be said.
    error
        Why not, or why a period is not released.
    lasts
        For how many more periods the budget lasts after this run, if all charts go on; None for a chart without.
    """

    chart: Chart
    record: ChartRecord
    due: tuple[str | None, ...]
    cost: Composition | None
    error: Error | None = None
    lasts: int | None = None

    @property
    def charged_again(self) -> list[str]:
        """The request ids of this run's periods that were charged before, and have no release."""
        lost = [period for period in self.due if self.record.count_lost(period)]
        return [self.record.next_request_id(self.chart.id, period) for period in lost]

    @property
    def warning(self) -> str | None:
        """What is to be said about its delta, if anything is."""
        return None if self.cost is None else delta_warning(self.cost.delta)


@dataclass(frozen=True)
class Price:
    """What a run will cost: each chart, and what the ledger says of all of them."""

    charts: tuple[ChartPrice, ...]
    budget: Budget
    spent: Composition

    @property
    def run(self) -> Composition:
        """What all releases of this run cost together."""
        return add_up([(each.cost, len(each.due)) for each in self.charts])

    @property
    def fits(self) -> bool:
        """Whether the budget allows all of them."""
        return self.budget.fits(self.spent.plus(self.run))

    @property
    def left(self) -> Fraction:
        """The epsilon that is left after all of them."""
        after = self.spent.plus(self.run).spent(self.budget.conversion_delta)
        return max(Fraction(0), self.budget.epsilon - after)


def make_price(charts: Sequence[Chart], ledger: Ledger, moment: datetime, charge_again: Collection[str] = ()) -> Price:
    """What a run at a moment will cost; the ledger and public lists are read, and no events.

    `charge_again` has the ids of charts of which one period may be charged once more than `MOST_CHARGES` times.
    """
    for name in charge_again:
        if name not in [chart.id for chart in charts]:
            raise InvalidValueError(f"charge_again must be the id of a chart of the file, not {quote(name)}")
    entries = ledger.history()
    rows = [_price_chart(chart, read_record(entries, chart), moment, chart.id in charge_again) for chart in charts]
    price = Price(tuple(rows), ledger.budget, ledger.composition)
    return Price(_follow_budget(price, moment), price.budget, price.spent)


def add_up(costs: Sequence[tuple[Composition | None, int]]) -> Composition:
    """What so many releases of each cost come to."""
    total = Composition()
    for cost, times in costs:
        if cost is not None:
            many = Composition(times * cost.epsilon, times * cost.rho, times * cost.delta)
            total = total.plus(many)
    return total


def _price_chart(chart: Chart, record: ChartRecord, moment: datetime, charge_again: bool) -> ChartPrice:
    due = tuple(each for each in find_due_periods(chart, moment) if each not in record.periods)
    try:
        row = ChartPrice(chart, record, due, find_cost(chart))
    except Error as error:
        return ChartPrice(chart, record, due, None, error)
    return _stop_at_other(_stop_at_lost(row, charge_again))


def _stop_at_other(row: ChartPrice) -> ChartPrice:
    """The price of a chart up to the first period whose request id was charged for something else."""
    for place, period in enumerate(row.due):
        other = row.record.find_other(row.chart.id, period)
        if other is not None:
            error = LedgerError(f"request id {quote(other)} is used by another release, which is not of this chart")
            return replace(row, due=row.due[:place], error=error)
    return row


def _stop_at_lost(row: ChartPrice, charge_again: bool) -> ChartPrice:
    """The price of a chart up to the first period that is charged often enough, or, if one may be again, the second."""
    chart, record = row.chart, row.record
    stuck = [period for period in row.due if record.count_lost(period) >= MOST_CHARGES]
    if charge_again and not stuck:
        raise InvalidValueError(
            f"charge_again must be a chart that was charged {_name_times(MOST_CHARGES)} for a period and not stored, "
            f"which {quote(chart.id)} was not"
        )
    if not stuck[charge_again:]:
        return row
    period = stuck[charge_again]
    error = LedgerError(
        f"{name_request(chart.id, period)} was charged {_name_times(record.count_lost(period))} and not "
        f"stored; `--charge-again {chart.id}` draws it once more"
    )
    return replace(row, due=row.due[: row.due.index(period)], error=error)


def _name_times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def find_cost(chart: Chart) -> Composition:
    """What the release of one period costs."""
    terms = list_terms(chart)
    terms.pop("pad_to")
    if has_lists_in_database(chart):
        # They are public, and are read where the events are; of those nothing is.
        source = open_chart_source(chart, None)
    else:
        source = open_stand_in(chart, make_empty_table(chart), chart.get("label"))
    guarantee = make_any_request(source, **terms).guarantee
    return Composition(guarantee.epsilon, guarantee.zcdp, guarantee.delta)


def make_empty_table(chart: Chart) -> Any:
    """A table without rows that has the columns of the events."""
    import pyarrow as pa

    return pa.table({name: pa.array([], kind) for name, kind in list_columns(chart).items()})


def list_columns(chart: Chart) -> dict[str, Any]:
    """The columns that a chart needs, with types that any public list can be compared with."""
    import pyarrow as pa

    from discreet.publish.chart_source import list_public_options
    from discreet.sources.events.group_columns import read_by

    given, by = chart.settings["events"], list_public_options(chart).get("by")
    grouping = [] if by is None else [column.column for column in read_by(by)]
    columns = {name: pa.string() for name in [given["item"], *grouping, given["user"]]}
    return columns | ({} if given.get("value") is None else {given["value"]: pa.float64()})


@dataclass(order=True)
class _Next:
    """The end of a chart's next period, and which chart it is of."""

    end: date
    place: int
    first: date = field(compare=False)


def _follow_budget(price: Price, moment: datetime) -> tuple[ChartPrice, ...]:
    """The charts with how many more periods of each fit, when all are released as their periods end."""
    total, counts = price.spent.plus(price.run), [0] * len(price.charts)
    coming = [_Next(*each) for each in _find_next_ends(price, moment)]
    heapq.heapify(coming)
    while coming and max(counts) < MOST_PERIODS:
        soonest = heapq.heappop(coming)
        row = price.charts[soonest.place]
        total = total.plus(row.cost or Composition())
        if not price.budget.fits(total) or row.chart.unit is None:
            break
        counts[soonest.place] += 1
        following = find_next_end(row.chart.unit, soonest.first)
        heapq.heappush(coming, _Next(find_next_end(row.chart.unit, following), soonest.place, following))
    return tuple(
        replace(row, lasts=None if row.chart.unit is None else count)
        for row, count in zip(price.charts, counts, strict=True)
    )


def _find_next_ends(price: Price, moment: datetime) -> list[tuple[date, int, date]]:
    found = []
    for place, row in enumerate(price.charts):
        unit = row.chart.unit
        if unit is None or row.cost is None:
            continue
        first = find_next_end(unit, find_last_ended(unit, moment, row.chart.get("zone")))
        first = max(first, row.chart.first or first)
        found.append((find_next_end(unit, first), place, first))
    return found
