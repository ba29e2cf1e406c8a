"""Price a run, release what is due, or rehearse."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.any_request import make_any_request
from discreet.errors import Error, InvalidValueError, quote
from discreet.ledger.account import Budget
from discreet.ledger.charges import open_charge
from discreet.ledger.composition import Composition
from discreet.ledger.errors import LedgerError
from discreet.ledger.ledger import Ledger
from discreet.mechanisms.discovery import delta_warning
from discreet.padding import Padding
from discreet.publish.chart_source import (
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
    describe_purpose,
    find_due_periods,
    find_last_ended,
    find_next_end,
    name_edition,
    name_request,
    read_record,
)
from discreet.publish.pages import ChartPages, Site
from discreet.sources.events.group_columns import read_by
from discreet.sources.events.periods import UNITS
from discreet.sources.events.ranges import Integers
from discreet.sources.groups import GroupedSource
from discreet.sources.unlisted import UnlistedGroups
from discreet.text import number_for_programs
from discreet.topk import release_from, top_k

Report = Callable[..., None]
"""What is told of a run: the name of an event, and public facts about it by name."""


@dataclass(frozen=True)
class Failure:
    """A chart that could not be released: why, and for which period."""

    chart: str
    period: str | None
    error: Exception


def release_due(price: Price, ledger: Ledger, report: Report) -> list[Failure]:
    """Releases every period that is due, in the order of the file, and returns what failed."""
    failures: list[Failure] = []
    for row in price.charts:
        failure = _release_chart(row, ledger, report)
        if failure is not None:
            report("failed", chart=failure.chart, period=failure.period, error=failure.error)
            failures.append(failure)
    return failures


def _release_chart(row: ChartPrice, ledger: Ledger, report: Report) -> Failure | None:
    """Releases the periods of one chart, up to the first that fails, which the later ones would do as well."""
    if row.cost is None and row.error is not None:
        return Failure(row.chart.id, None, row.error)
    told: list[str] = []
    for period in row.due:
        try:
            notes = _release_period(row.chart, row.record, period, ledger, report)
        except Exception as error:  # whatever it is, the next chart has its turn
            return Failure(row.chart.id, period, error)
        for note in notes:
            if note not in told:
                report("noted", chart=row.chart.id, note=note)
                told.append(note)
    return None if row.error is None else Failure(row.chart.id, None, row.error)


def _release_period(chart: Chart, record: ChartRecord, period: str | None, ledger: Ledger, report: Report) -> list[str]:
    """Releases a period, and returns what has to be known to trust the scores."""
    request = record.next_request_id(chart.id, period)
    if record.count_lost(period):
        report("lost", chart=chart.id, period=period, request_id=request)
    source = open_chart_source(chart, period)
    terms = list_terms(chart)
    padding = Padding(terms.pop("pad_to"))
    padding.add_elapsed(source.opening_seconds())
    charge = open_charge(ledger, describe_purpose(chart, period), request, chart.get("dataset"), source.delta)
    release = release_from(
        lambda: nullcontext(source),
        partial(make_any_request, **terms),
        padding,
        replace(charge, edition=name_edition(chart, period)),
    )
    cost = release.guarantee
    report("released", chart=chart.id, period=period, request_id=request, epsilon=number_for_programs(cost.epsilon))
    notes: list[str] = source.notes()
    return notes


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


_USERS, _ROWS, _ITEMS, _PERIODS = 20_000, 60_000, 5_000, 3
"""How many users and rows are made up, of how many items at most, for how many periods."""


def make_dummy_site(file: ChartsFile, moment: datetime) -> Site:
    """A site of made-up releases, for the periods that would be due if nothing was released before."""
    charts = []
    for chart in file.charts:
        with name_place(f"{file.path.name}, chart {chart.id!r}: "):
            periods = find_due_periods(chart, moment)[-_PERIODS:]
            editions = [_make_edition(chart, period, seed) for seed, period in enumerate(periods)]
        if editions:
            charts.append(ChartPages(chart, editions))
    return Site(file, charts, None)


def _make_edition(chart: Chart, period: str | None, seed: int) -> Edition:
    rng = np.random.default_rng([seed, *chart.id.encode()])
    source = open_stand_in(chart, _make_events(chart, rng), chart.get("label"))
    terms = list_terms(chart)
    terms.pop("pad_to")
    return Edition(period, top_k(source, **terms, rng=rng))


def _make_events(chart: Chart, rng: np.random.Generator) -> Any:
    """A table of rows in which some items, and some groups, are more frequent than others."""
    import pyarrow as pa

    if has_lists_in_database(chart):
        raise InvalidValueError("domain and groups must be in files for a rehearsal, which opens no database")
    given, empty = chart.settings["events"], open_stand_in(chart, make_empty_table(chart), None)
    items, users = _list_items(chart, empty), rng.integers(0, _USERS, _ROWS)
    columns = {given["item"]: _pick(items, rng), given["user"]: [f"user {each}" for each in users]}
    if isinstance(empty, GroupedSource | UnlistedGroups):
        columns |= _make_groups(chart, empty.keys, users, rng)
    if given.get("value") is not None:
        low, high = (float(each) for each in given["clip"])
        columns[given["value"]] = rng.uniform(low, high, _ROWS).round(2).tolist()
    return pa.table({name: pa.array(columns[name], kind) for name, kind in list_columns(chart).items()})


def _list_items(chart: Chart, empty: Any) -> list[str]:
    """Some items of the domain, or made-up ones where it has to be found."""
    domain = list_public_options(chart)["domain"]
    if chart.get("discover") is not None:
        return [_spell_item(chart, number) for number in range(50)]
    if isinstance(domain, Integers):
        return [str(domain.lo + number) for number in range(min(domain.d, _ITEMS))]
    one = empty.members[0] if isinstance(empty, GroupedSource) else empty
    return [str(item) for item in one.every_item()[:_ITEMS]]


def _spell_item(chart: Chart, number: int) -> str:
    kind = chart.get("discover").get("kind") or "string"
    spelt = {"integer": str(number), "date": f"2026-01-{number % 28 + 1:02}", "boolean": str(number % 2 == 0)}
    return spelt.get(kind, f"item {number + 1}")


def _make_groups(chart: Chart, keys: Any, users: Any, rng: np.random.Generator) -> dict[str, list[str]]:
    """A group for each row, mostly the one that is the user's own; of a period its first day."""
    columns = read_by(list_public_options(chart)["by"])
    home = np.where(rng.random(len(users)) < 0.9, users, rng.integers(0, _USERS, len(users))) % len(keys)
    parts = [key if len(columns) > 1 else (key,) for key in keys]
    return {
        column.column: [_spell_group(column, parts[group][place]) for group in home]
        for place, column in enumerate(columns)
    }


def _spell_group(column: Any, key: Any) -> str:
    unit = getattr(column, "unit", None)
    first = None if unit is None else UNITS[unit].parse(key)
    return str(key) if first is None else first.isoformat()


def _pick(items: list[str], rng: np.random.Generator) -> list[str]:
    """A row's items, of which the first in a shuffled list are the most frequent."""
    weights = 1.0 / np.arange(3, len(items) + 3) ** 1.1
    chosen = rng.choice(len(items), _ROWS, p=weights / weights.sum())
    shuffled = np.random.default_rng(len(items)).permutation(len(items))
    return [items[shuffled[place]] for place in chosen]
