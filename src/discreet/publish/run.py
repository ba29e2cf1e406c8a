"""Releases what is due: each period of each chart once, charged before it is drawn and stored before it is shown.

A chart that fails does not stop the others. What is reported are public facts: charts, periods, request ids and costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from discreet.ledger.charges import open_charge
from discreet.ledger.ledger import Ledger
from discreet.publish.chart_source import list_terms, open_chart_source
from discreet.publish.charts_file import Chart
from discreet.publish.editions import ChartRecord, describe_purpose, name_edition
from discreet.publish.price import ChartPrice, Price
from discreet.release.delivery import Delivery
from discreet.release.padding import Padding
from discreet.release.topk import make_any_request
from discreet.text import number_for_programs

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
    with Delivery(padding, replace(charge, edition=name_edition(chart, period))) as delivery:
        delivery.draw(make_any_request(source, **terms))
    cost = delivery.release.guarantee
    report("released", chart=chart.id, period=period, request_id=request, epsilon=number_for_programs(cost.epsilon))
    notes: list[str] = source.notes()
    return notes
