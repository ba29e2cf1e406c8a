"""`discreet publish`: the cost of the charts of a file, their releases, their site, and the log of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.app import FAILURE, describe_error, print_traceback
from discreet.cli.options import complete_from, parse_choice, parse_seconds
from discreet.cli.output import OutputError, print_notes, print_text
from discreet.errors import InvalidValueError
from discreet.jobs import show_progress
from discreet.text import align_columns, number_for_programs, printable, round_down, round_up

if TYPE_CHECKING:
    from discreet.publish.charts_file import ChartsFile
    from discreet.publish.pages import Site
    from discreet.publish.run import Price

HELP = """
\b
Examples:
  discreet publish charts.toml --dry-run
  discreet publish charts.toml --dummy
  discreet publish charts.toml --yes
  discreet publish charts.toml --yes --log json --wait 0
"""
LOGS = ("text", "json")

app = typer.Typer(rich_markup_mode=None)


@app.command("publish", short_help="Publish the charts of a file: price, releases, site.", epilog=HELP)
def publish(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The charts, a TOML file: see docs/charts-file.md.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it costs, and end. No event is read.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Where nobody can be asked, none is.")] = False,
    dummy: Annotated[
        bool,
        typer.Option(
            "--dummy", help="Make a site of made-up events beside the other: neither data nor budget is touched."
        ),
    ] = False,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Publish what was over at this time, such as 2026-11-01. By default now."),
    ] = None,
    charge_again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHART",
            help="Charge a period of this chart once more that was charged twice and not stored. May be repeated.",
        ),
    ] = None,
    wait: Annotated[
        str, typer.Option(metavar="S", help="How many seconds to wait for another run on the same budget or site.")
    ] = "600",
    log: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to tell what happens: text, or json, one object a line. Nothing private is in either.",
            autocompletion=complete_from(LOGS),
        ),
    ] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")] = False,
) -> None:
    """Publish the charts in FILE: show what they cost, release what is due, and write their site.

    A period is released once it is over, and once: run again, it costs nothing and writes the same files. A chart that
    fails does not stop the others, and the exit code is then 1.
    """
    from discreet.publish.charts_file import read_charts
    from discreet.publish.editions import check_is_past, parse_moment

    form, seconds, moment = parse_choice("log", log, LOGS), parse_seconds(wait), parse_moment(as_of)
    if not (dry_run or dummy):
        check_is_past(moment, "would be released for good", " except with --dry-run or --dummy")
    charts, told = read_charts(file), Log(form, quiet)
    is_asked = not yes and form == "text" and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    with show_progress(not quiet):
        if dummy:
            from discreet.publish.run import make_dummy_site
            from discreet.publish.site_folder import check_site

            check_site(charts.dummy_out)
            _write(charts.dummy_out, make_dummy_site(charts, moment), told, seconds)
        elif not _publish(charts, moment, told, dry_run, is_asked, seconds, charge_again or []):
            raise typer.Exit(FAILURE)


def _publish(
    charts: ChartsFile, moment: datetime, told: Log, dry_run: bool, is_asked: bool, wait: float, charge_again: list[str]
) -> bool:
    """Price, release and write the charts, and return True unless a chart failed."""
    from discreet.ledger.ledger import Ledger
    from discreet.publish.pages import make_site
    from discreet.publish.run import make_price, release_due
    from discreet.publish.site_folder import check_site, lock_publishing

    if not charts.ledger.exists():
        name = charts.ledger.name
        raise InvalidValueError(
            f"{charts.path.name}: ledger must be a file that exists, not {str(charts.ledger)!r}; for example: discreet "
            f"budget init {name} --epsilon 3 --unit 'users of ...'"
        )
    ledger = Ledger(charts.ledger)
    check_site(charts.out)
    with ExitStack() as held:
        if not dry_run:
            held.enter_context(lock_publishing(charts.ledger, wait, told))
        price = make_price(charts.charts, ledger, moment, charge_again)
        told.price(charts, price, moment)
        if dry_run:
            return all(row.error is None for row in price.charts)
        if is_asked and price.run.epsilon and not typer.confirm("Release them?", default=False):
            told("declined")
            return True
        failures = release_due(price, ledger, told)
        _write(charts.out, make_site(charts, ledger), told, wait)
    return not failures


def _write(out: Path, site: Site, told: Log, wait: float) -> None:
    from discreet.publish.pages import list_files
    from discreet.publish.site_folder import write_site

    files, here, index = list_files(site), Path.cwd(), out / "index.html"
    try:
        at_once = write_site(out, files, wait, told)
    except OSError as error:
        raise OutputError(f"writing the site {str(out)!r} fails: {error.strerror}") from None
    shown = str(index.relative_to(here) if index.is_relative_to(here) else index)
    told("written", out=shown, files=len(files), at_once=at_once, dummy=site.ledger is None)


class Log:
    """The log of a run, as lines for people or as JSON for programs. Every fact in it is public."""

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
            from discreet.ledger.charges import now, stamp

            print_text(json.dumps({"time": stamp(now()), "event": event, **facts}))
        else:
            print_text(printable(_SENTENCES[event](facts)))
        sys.stdout.flush()

    def price(self, charts: ChartsFile, price: Price, moment: datetime) -> None:
        """Print the cost of a run."""
        if not self._is_json:
            print_text("\n".join(_list_prices(charts, price, moment)), heading=True)
            sys.stdout.flush()
            return
        for row in price.charts:
            cost = row.cost
            self(
                "price",
                chart=row.chart.id,
                due=list(row.due),
                released=len(row.record.editions),
                epsilon=None if cost is None else number_for_programs(cost.epsilon),
                delta=None if cost is None else number_for_programs(cost.delta),
                cost=None if cost is None else number_for_programs(cost.epsilon * len(row.due)),
                lasts=row.lasts,
                **({"charged_again": row.charged_again} if row.charged_again else {}),
                **({} if row.error is None else {"error": describe_error(row.error)}),
                **({} if row.warning is None else {"warning": row.warning}),
            )
        numbers = {"epsilon": price.run.epsilon, "delta": price.run.delta, "left": price.left}
        self("total", **{name: number_for_programs(number) for name, number in numbers.items()}, fits=price.fits)


def _list_prices(charts: ChartsFile, price: Price, moment: datetime) -> list[str]:
    """Return the lines of the table of charts, and of their total."""
    from discreet.publish.run import MOST_PERIODS

    budget, run = price.budget, price.run
    as_of = moment.isoformat(" ", "minutes").replace("+00:00", " UTC")
    title = f"{printable(charts.title)}: the privacy of {printable(budget.unit)}, as of {as_of}"
    deltas = any(row.cost is not None and row.cost.delta for row in price.charts)
    head = ("chart", "period", "epsilon", *(["delta"] if deltas else []), "released", "this run", "lasts")
    rows = [head]
    for row in price.charts:
        cost, unit, editions = row.cost, row.chart.unit, row.record.editions
        periods = [period or "once" for period in row.due]
        due = " and ".join(periods) or "nothing due"
        if len(periods) > 2:
            due = f"{periods[0]} to {periods[-1]} ({len(periods)})"
        released = "none"
        if editions:
            released = f"{len(editions)}, up to {editions[-1].period}" if editions[-1].period else "yes"
        lasts = ""
        if row.lasts is not None and unit is not None:
            lasts = f"{row.lasts} more {unit.name}{'' if row.lasts == 1 else 's'}"
            if row.lasts >= MOST_PERIODS:
                lasts = f"over {MOST_PERIODS:,} more {unit.name}s"
        rows.append(
            (
                row.chart.id,
                due,
                "?" if cost is None else round_up(cost.epsilon),
                *(["?" if cost is None else round_up(cost.delta)] if deltas else []),
                released,
                "?" if cost is None else round_up(cost.epsilon * len(periods)),
                lasts,
            )
        )
    beside = f" and delta {round_up(run.delta)}" if run.delta else ""
    rest = f"{round_down(price.left)} of {round_up(budget.epsilon)} is left after it"
    if not price.fits:
        rest = "more than is left: what does not fit is refused before anything is drawn"
    remarks = [f"{row.chart.id}: {describe_error(row.error)}" for row in price.charts if row.error is not None]
    remarks += [
        f"{row.chart.id}: charged before and not stored, which is spent; charged again as "
        f"{' and '.join(row.charged_again)}"
        for row in price.charts
        if row.charged_again
    ]
    remarks += [f"{row.chart.id}: {row.warning}" for row in price.charts if row.warning is not None]
    total = f"this run costs epsilon {round_up(run.epsilon)}{beside}; {rest}"
    return [title, *(f"  {line}" for line in [*align_columns(rows), *remarks, total])]


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
"""The line for people of each event."""
