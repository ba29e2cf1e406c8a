"""What `discreet publish` tells while it runs: lines for people, or JSON for programs, and the table of prices."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.cli.errors import describe_error, print_traceback
from discreet.cli.output import print_notes, print_text
from discreet.text import align_columns, number_for_programs, printable, round_down, round_up

if TYPE_CHECKING:
    from discreet.publish.charts_file import ChartsFile
    from discreet.publish.run import ChartPrice, Price

LOGS = ("text", "json")


class Teller:
    """Tells what happens, as lines for people or as JSON for programs. What it is told is public."""

    def __init__(self, form: str, quiet: bool = False) -> None:
        self._is_json, self._is_quiet = form == "json", quiet

    def __call__(self, event: str, **facts: Any) -> None:
        if event == "noted" and (self._is_quiet or not self._is_json):
            print_notes([f"{facts['chart']}: {facts['note']}"], self._is_quiet)
            return
        error = facts.get("error")
        if isinstance(error, Exception):
            print_traceback(error)
            facts["error"] = describe_error(error)
        if self._is_json:
            print_text(json.dumps({"time": _now(), "event": event, **facts}))
        else:
            print_text(printable(_SENTENCES[event](facts)))
        sys.stdout.flush()

    def price(self, charts: ChartsFile, price: Price, moment: datetime) -> None:
        """Tells what a run costs."""
        if self._is_json:
            for row in price.charts:
                self("price", **_price_facts(row))
            self("total", **_total_facts(price))
        else:
            print_text("\n".join(_price_lines(charts, price, moment)), heading=True)
            sys.stdout.flush()


def _now() -> str:
    from discreet.ledger.charges import now, stamp

    return stamp(now())


def _price_facts(row: ChartPrice) -> dict[str, Any]:
    cost = row.cost
    return {
        "chart": row.chart.id,
        "due": list(row.due),
        "released": len(row.record.editions),
        "epsilon": None if cost is None else number_for_programs(cost.epsilon),
        "delta": None if cost is None else number_for_programs(cost.delta),
        "cost": None if cost is None else number_for_programs(cost.epsilon * len(row.due)),
        "lasts": row.lasts,
        **({"charged_again": row.charged_again} if row.charged_again else {}),
        **({} if row.error is None else {"error": describe_error(row.error)}),
        **({} if row.warning is None else {"warning": row.warning}),
    }


def _total_facts(price: Price) -> dict[str, Any]:
    run = price.run
    numbers = {"epsilon": run.epsilon, "delta": run.delta, "left": price.left}
    return {**{name: number_for_programs(number) for name, number in numbers.items()}, "fits": price.fits}


def _price_lines(charts: ChartsFile, price: Price, moment: datetime) -> list[str]:
    """The table of charts, and what they come to."""
    budget, run = price.budget, price.run
    title = f"{printable(charts.title)}: the privacy of {printable(budget.unit)}, as of {_describe_moment(moment)}"
    deltas = any(row.cost is not None and row.cost.delta for row in price.charts)
    head = ("chart", "period", "epsilon", *(["delta"] if deltas else []), "released", "this run", "lasts")
    rows = [head, *(_price_cells(row, deltas) for row in price.charts)]
    beside = f" and delta {round_up(run.delta)}" if run.delta else ""
    rest = f"{round_down(price.left)} of {round_up(budget.epsilon)} is left after it"
    if not price.fits:
        rest = "more than is left: what does not fit is refused before anything is drawn"
    errors = [f"{row.chart.id}: {describe_error(row.error)}" for row in price.charts if row.error is not None]
    errors += [f"{row.chart.id}: {_describe_again(row)}" for row in price.charts if row.charged_again]
    errors += [f"{row.chart.id}: {row.warning}" for row in price.charts if row.warning is not None]
    total = f"this run costs epsilon {round_up(run.epsilon)}{beside}; {rest}"
    return [title, *(f"  {line}" for line in [*align_columns(rows), *errors, total])]


def _price_cells(row: ChartPrice, deltas: bool) -> tuple[str, ...]:
    cost, count = row.cost, len(row.due)
    each = "?" if cost is None else round_up(cost.epsilon)
    return (
        row.chart.id,
        _describe_due(row),
        each,
        *(["?" if cost is None else round_up(cost.delta)] if deltas else []),
        _describe_released(row),
        "?" if cost is None else round_up(cost.epsilon * count),
        _describe_rest(row),
    )


def _describe_due(row: ChartPrice) -> str:
    periods = [period or "once" for period in row.due]
    if len(periods) > 2:
        return f"{periods[0]} to {periods[-1]} ({len(periods)})"
    return " and ".join(periods) or "nothing due"


def _describe_again(row: ChartPrice) -> str:
    return f"charged before and not stored, which is spent; charged again as {' and '.join(row.charged_again)}"


def _describe_released(row: ChartPrice) -> str:
    editions = row.record.editions
    if not editions:
        return "none"
    return f"{len(editions)}, up to {editions[-1].period}" if editions[-1].period else "yes"


def _describe_rest(row: ChartPrice) -> str:
    from discreet.publish.run import MOST_PERIODS

    if row.lasts is None or row.chart.unit is None:
        return ""
    if row.lasts >= MOST_PERIODS:
        return f"over {MOST_PERIODS:,} more {row.chart.unit.name}s"
    return f"{row.lasts} more {row.chart.unit.name}{'' if row.lasts == 1 else 's'}"


def _describe_moment(moment: datetime) -> str:
    return moment.isoformat(" ", "minutes").replace("+00:00", " UTC")


def _name_release(facts: dict[str, Any]) -> str:
    return facts["chart"] if facts["period"] is None else f"{facts['chart']} {facts['period']}"


_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "waiting": lambda facts: (
        f"another run is at work on this {facts['on']}; waiting up to {facts['seconds']:g} seconds"
    ),
    "declined": lambda _: "nothing was released",
    "lost": lambda facts: (
        f"{_name_release(facts)}: was charged before and no release was stored, which a crash or a query that fails "
        f"does; that is spent, and it is charged again as {facts['request_id']}"
    ),
    "released": lambda facts: f"{_name_release(facts)}: released for epsilon {round_up(Fraction(facts['epsilon']))}",
    "failed": lambda facts: f"{_name_release(facts)}: failed: {facts['error']}",
    "written": lambda facts: (
        f"wrote {facts['out']}"
        + (" with made-up events: DUMMY" if facts["dummy"] else "")
        + ("" if facts["at_once"] else "; it is no link, so that for a moment there was no site")
    ),
}
