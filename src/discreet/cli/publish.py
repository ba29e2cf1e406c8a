"""`discreet publish`: what the charts of a file cost, their releases, and their site."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.app import FAILURE, describe_error, print_traceback
from discreet.cli.options import complete_from, parse_choice, parse_seconds
from discreet.cli.output import OutputError, print_notes, print_text
from discreet.errors import InvalidValueError
from discreet.progress import show_progress
from discreet.text import align_columns, number_for_programs, printable, round_down, round_up

if TYPE_CHECKING:
    from discreet.publish.charts_file import ChartsFile
    from discreet.publish.price import ChartPrice, Price
    from discreet.publish.site import Site

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
    from discreet.publish.price import MOST_PERIODS

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

HELP = """
\b
Examples:
  discreet publish charts.toml --dry-run
  discreet publish charts.toml --dummy
  discreet publish charts.toml --yes
  discreet publish charts.toml --yes --log json --wait 0
"""

app = typer.Typer(rich_markup_mode=None)


@app.command("publish", short_help="Publish the charts of a file: price, releases, site.", epilog=HELP)
def publish(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The charts, a TOML file: see docs/publish.md.")],
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
    """Publishes the charts in FILE: shows what they cost, releases what is due, and writes their site.

    A period is released once it is over, and once: run again, it costs nothing and writes the same files. A chart that
    fails does not stop the others, and the exit code is then 1.
    """
    from discreet.publish.charts_file import read_charts
    from discreet.publish.due_periods import check_is_past, parse_moment

    log_as, seconds, moment = parse_choice("log", log, LOGS), parse_seconds(wait), parse_moment(as_of)
    if not (dry_run or dummy):
        check_is_past(moment, "would be released for good", " except with --dry-run or --dummy")
    charts = read_charts(file)
    told = Teller(log_as, quiet)
    with show_progress(not quiet):
        if dummy:
            _rehearse(charts, moment, told, seconds)
        elif _publish(charts, moment, told, dry_run, _asks(yes, log_as), seconds, charge_again or []):
            raise typer.Exit(FAILURE)


def _publish(
    charts: ChartsFile, moment: datetime, told: Teller, dry_run: bool, asks: bool, wait: float, charge_again: list[str]
) -> bool:
    """Publishes, and returns whether something failed."""
    from discreet.ledger.ledger import Ledger
    from discreet.publish.lock import lock_publishing
    from discreet.publish.price import make_price
    from discreet.publish.run import release_due
    from discreet.publish.site import make_site
    from discreet.publish.site_folder import check_site

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
            return any(row.error is not None for row in price.charts)
        if asks and price.run.epsilon and not typer.confirm("Release them?", default=False):
            told("declined")
            return False
        failures = release_due(price, ledger, told)
        _write(charts.out, make_site(charts, ledger), told, wait)
    return bool(failures)


def _rehearse(charts: ChartsFile, moment: datetime, told: Teller, wait: float) -> None:
    from discreet.publish.dummy import make_dummy_site
    from discreet.publish.site_folder import check_site

    check_site(charts.dummy_out)
    _write(charts.dummy_out, make_dummy_site(charts, moment), told, wait)


def _write(out: Path, site: Site, told: Teller, wait: float) -> None:
    from discreet.publish.site import list_files
    from discreet.publish.site_folder import write_site

    files = list_files(site)
    with _name_folder(out):
        at_once = write_site(out, files, wait, told)
    told("written", out=_shorten_path(out / "index.html"), files=len(files), at_once=at_once, dummy=site.ledger is None)


def _shorten_path(path: Path) -> str:
    """A path as it is written from here, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@contextmanager
def _name_folder(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failure = OutputError(f"writing the site {str(out)!r} fails: {error.strerror}")
    else:
        return
    raise failure


def _asks(yes: bool, log: str) -> bool:
    """Whether somebody is there to be asked."""
    return not yes and log == "text" and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
