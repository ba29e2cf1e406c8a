"""`discreet publish`: the cost of the charts of a file, their releases, their site, and the log of a run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.app import describe_error, find_code, join_exit_codes, print_traceback
from discreet.cli.options import AsOfOption, LogOption, QuietOption, parse_choice, parse_seconds
from discreet.cli.output import LOGS, OutputError, print_event, print_notes, print_text
from discreet.errors import InvalidValueError, quote
from discreet.jobs import show_progress
from discreet.text import align_columns, number_for_programs, printable, round_down, round_up

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.publish.charts_file import Chart, ChartsFile
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
app = typer.Typer(rich_markup_mode=None)


WaitOption = Annotated[
    str, typer.Option(metavar="S", help="The seconds to wait for another run on the same budget or site.")
]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what it costs, and end. No event is read.")]
YesOption = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", help="Release without asking, as in a scheduler, where there is no terminal to ask in."
    ),
]


@app.command("publish", short_help="Publish the charts of a file: price, releases, site.", epilog=HELP)
def publish(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The charts, a TOML file: see the page Charts file.")],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
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
    wait: WaitOption = "600",
    log: LogOption = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")] = False,
) -> None:
    """Publish the charts in FILE: show what they cost, release what is due, and write their site.

    A period is released once it is over, and once: run again, it costs nothing and writes the same files. A chart that
    fails does not stop the others, and the exit code then says why it failed.
    """
    from discreet.ledger.charges import parse_moment
    from discreet.publish.charts_file import read_charts

    form, seconds, moment = parse_choice("log", log, LOGS), parse_seconds(wait), parse_moment(as_of)
    charts, told = read_charts(file), Log(form, quiet)
    with show_progress(not quiet):
        if dummy:
            from discreet.publish.run import make_dummy_site
            from discreet.publish.site_folder import check_site

            check_site(charts.dummy_out)
            _write(charts.dummy_out, make_dummy_site(charts, moment), told, seconds)
        else:
            errors = _publish(charts, as_of, told, dry_run, yes, seconds, charge_again or [])
            raise typer.Exit(join_exit_codes(errors))


FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="The charts, as for discreet publish.")]
ChartArgument = Annotated[str, typer.Argument(metavar="CHART", help="The id of the chart.")]
PeriodArgument = Annotated[str, typer.Argument(metavar="PERIOD", help="The period, such as 2026-01, or once.")]
ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="The reason, which the page and the ledger show.")]
CORRECT_HELP = """
\b
Examples:
  discreet publish correct charts.toml movies once --reason "events of one day were missing" --dry-run
  discreet publish correct charts.toml movies once --reason "events of one day were missing" --yes
"""
WITHDRAW_HELP = """
\b
Examples:
  discreet publish withdraw charts.toml movies once --reason "the list of movies was wrong"
"""


@app.command("publish correct", short_help="Release a published period again.", epilog=CORRECT_HELP)
def correct(
    file: FileArgument,
    chart: ChartArgument,
    period: PeriodArgument,
    reason: ReasonOption,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    draw_again: Annotated[
        bool, typer.Option("--draw-again", help="Correct a correction, which is drawn and charged once more.")
    ] = False,
    as_of: AsOfOption = None,
    wait: WaitOption = "600",
    log: LogOption = "text",
    quiet: QuietOption = False,
) -> None:
    """Release PERIOD of CHART again, which is charged again; the page shows the reason and both dates.

    The first release stays in the ledger and stays spent. Never decide this by comparing a list with the true data:
    that the page changes would tell about them.
    """
    from discreet.ledger.charges import read_as_of
    from discreet.publish.run import correct_period, price_correction

    def correct_in(charts: ChartsFile, found: Chart, edition: str | None, ledger: Ledger, told: Log) -> bool:
        moment = None if as_of is None else read_as_of(as_of, ledger)
        price = price_correction(found, edition, reason, ledger, moment, draw_again)
        told.price(charts, price)
        if dry_run or not _confirm(price, told, yes):
            return False
        correct_period(price, reason, ledger, told, moment)
        return True

    _change(file, chart, period, reason, wait, log, quiet, correct_in, is_locked=not dry_run)


@app.command("publish withdraw", short_help="Replace a published period by a notice.", epilog=WITHDRAW_HELP)
def withdraw(
    file: FileArgument,
    chart: ChartArgument,
    period: PeriodArgument,
    reason: ReasonOption,
    wait: WaitOption = "600",
    log: LogOption = "text",
    quiet: QuietOption = False,
) -> None:
    """Replace PERIOD of CHART by a notice with the reason. Nothing is drawn or charged.

    The release stays in the ledger and stays spent. Never decide this by comparing a list with the true data: that the
    page changes would tell about them.
    """
    from discreet.publish.run import withdraw_period

    def withdraw_in(_: ChartsFile, found: Chart, edition: str | None, ledger: Ledger, told: Log) -> bool:
        withdraw_period(found, edition, reason, ledger, told)
        return True

    _change(file, chart, period, reason, wait, log, quiet, withdraw_in)


def _change(
    file: str,
    name: str,
    period: str,
    reason: str,
    wait: str,
    log: str,
    quiet: bool,
    change: Callable[[ChartsFile, Chart, str | None, Ledger, Log], bool],
    is_locked: bool = True,
) -> None:
    """Correct or withdraw a period, and write the site if `change` returns True."""
    from discreet.ledger.charges import check_text
    from discreet.ledger.ledger import Ledger
    from discreet.publish.charts_file import read_charts
    from discreet.publish.editions import check_site_is_of
    from discreet.publish.pages import make_site
    from discreet.publish.site_folder import check_site

    told, seconds = Log(parse_choice("log", log, LOGS), quiet), parse_seconds(wait)
    check_text(reason, "reason")
    charts = read_charts(file)
    chart = next((each for each in charts.charts if each.id == name), None)
    if chart is None:
        raise InvalidValueError(f"CHART must be the id of a chart of {charts.path.name}, not {quote(name)}")
    ledger, edition = Ledger(charts.find_ledger()), None if period == "once" else period
    check_site(charts.out)
    with show_progress(not quiet), ledger.lock_publishing(seconds, told) if is_locked else nullcontext():
        check_site_is_of(ledger, charts)
        if change(charts, chart, edition, ledger, told):
            _write(charts.out, make_site(charts, ledger), told, seconds)


def _publish(
    charts: ChartsFile,
    as_of: str | None,
    told: Log,
    dry_run: bool,
    yes: bool,
    wait: float,
    charge_again: list[str],
) -> list[Exception]:
    """Price, release and write the charts, and return the errors of the charts that failed."""
    from discreet.ledger.charges import parse_moment
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.store import is_url
    from discreet.publish.editions import check_is_past, check_site_is_of
    from discreet.publish.pages import make_site
    from discreet.publish.run import make_price, release_due
    from discreet.publish.site_folder import check_site

    given = charts.find_ledger()
    if not is_url(given) and not Path(given).exists():
        raise InvalidValueError(
            f"{charts.path.name}: ledger must be a file that exists, not {given!r}; for example: discreet "
            f"budget init {Path(given).name} --epsilon 3 --unit 'users of ...'"
        )
    ledger = Ledger(given)
    moment = None if as_of is None else parse_moment(as_of, ledger.budget.zone)
    if moment is not None and not dry_run:
        check_is_past(moment, ledger.now(), "would be released for good", " except with --dry-run or --dummy")
    check_site(charts.out)
    with ExitStack() as held:
        if not dry_run:
            held.enter_context(ledger.lock_publishing(wait, told))
        check_site_is_of(ledger, charts)
        price = make_price(charts.charts, ledger, moment, charge_again)
        told.price(charts, price)
        if dry_run:
            return [row.error for row in price.charts if row.error is not None]
        if not _confirm(price, told, yes):
            return []
        failures = release_due(price, ledger, told, moment if ledger.budget.every is not None else None)
        ledger.check_publishing()
        _write(charts.out, make_site(charts, ledger), told, wait)
    return [failure.error for failure in failures]


def _confirm(price: Price, told: Log, yes: bool) -> bool:
    """Return True unless somebody can be asked and declines a run that costs something."""
    can_ask = not yes and told.form == "text" and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if can_ask and price.run.epsilon and not typer.confirm("Release them?", default=False):
        told("declined")
        return False
    return True


def _write(out: Path, site: Site, told: Log, wait: float) -> None:
    from discreet.publish.pages import list_files, list_pictures
    from discreet.publish.site_folder import write_site

    files: dict[str, str | bytes] = {**list_files(site), **list_pictures(site, out)}
    here, index = Path.cwd(), out / "index.html"
    head = "" if site.ledger is None else f"{site.ledger.head}\n"
    try:
        at_once = write_site(out, files, wait, told, head)
    except OSError as error:
        raise OutputError(f"writing the site {str(out)!r} fails: {error.strerror}") from None
    shown = str(index.relative_to(here) if index.is_relative_to(here) else index)
    told("written", out=shown, files=len(files), at_once=at_once, dummy=site.ledger is None)


class Log:
    """The log of a run, as lines for people or as JSON for programs. Every fact in it is public."""

    def __init__(self, form: str, quiet: bool = False) -> None:
        self.form, self._is_json, self._is_quiet = form, form == "json", quiet

    def __call__(self, event: str, **facts: Any) -> None:
        if event == "noted" and (self._is_quiet or not self._is_json):
            print_notes([f"{facts['chart']}: {facts['note']}"], self._is_quiet)
            return
        error = facts.get("error")
        if isinstance(error, Exception):
            print_traceback(error)
            facts |= {"error": describe_error(error), "code": find_code(error)}
        if self._is_json:
            print_event(event, **facts)
        else:
            print_text(printable(_SENTENCES[event](facts)))
            sys.stdout.flush()

    def price(self, charts: ChartsFile, price: Price) -> None:
        """Print the cost of a run."""
        if not self._is_json:
            print_text("\n".join(_list_prices(charts, price)), heading=True)
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
                **({} if row.coming is None else {"coming": row.coming}),
                **({"charged_again": row.charged_again} if row.charged_again else {}),
                **({} if row.error is None else {"error": row.error}),
                **({} if row.warning is None else {"warning": row.warning}),
            )
        numbers = {"epsilon": price.run.epsilon, "delta": price.run.delta, "left": price.left}
        period = {} if price.period is None else {"period": price.period}
        self(
            "total",
            **{name: number_for_programs(number) for name, number in numbers.items()},
            fits=price.fits,
            **period,
        )


def _list_prices(charts: ChartsFile, price: Price) -> list[str]:
    """Return the lines of the table of charts, and of their total."""
    from discreet.publish.run import MOST_PERIODS

    budget, run = price.budget, price.run
    as_of = price.moment.isoformat(" ", "minutes").replace("+00:00", " UTC")
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
            if row.coming is not None:
                lasts = f"{row.lasts} of {row.coming} due in {price.period}" if row.coming else ""
            elif row.lasts >= MOST_PERIODS:
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
    within = "" if price.period is None else f" in {price.period}"
    rest = f"{round_down(price.left)} of {round_up(budget.epsilon)} is left after it{within}"
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
    "withdrawn": lambda facts: f"{_name_release(facts)}: withdrawn; what it cost stays spent",
    "failed": lambda facts: f"{_name_release(facts)}: failed: {facts['error']}",
    "written": lambda facts: (
        f"wrote {facts['out']}"
        + (" with made-up events: DUMMY" if facts["dummy"] else "")
        + ("" if facts["at_once"] else "; it is no link, so that for a moment there was no site")
    ),
}
"""The line for people of each event."""
