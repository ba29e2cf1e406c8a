"""`discreet publish`: what the charts of a file cost, their releases, and their site."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.errors import FAILURE
from discreet.cli.options import complete_from, parse_choice, parse_seconds
from discreet.cli.output import OutputError
from discreet.cli.publish_log import LOGS, Teller
from discreet.errors import InvalidValueError
from discreet.progress import show_progress

if TYPE_CHECKING:
    from discreet.publish.charts_file import ChartsFile
    from discreet.publish.pages import Site

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
    from discreet.publish.editions import check_is_past, parse_moment

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
            return any(row.error is not None for row in price.charts)
        if asks and price.run.epsilon and not typer.confirm("Release them?", default=False):
            told("declined")
            return False
        failures = release_due(price, ledger, told)
        _write(charts.out, make_site(charts, ledger), told, wait)
    return bool(failures)


def _rehearse(charts: ChartsFile, moment: datetime, told: Teller, wait: float) -> None:
    from discreet.publish.run import make_dummy_site
    from discreet.publish.site_folder import check_site

    check_site(charts.dummy_out)
    _write(charts.dummy_out, make_dummy_site(charts, moment), told, wait)


def _write(out: Path, site: Site, told: Teller, wait: float) -> None:
    from discreet.publish.pages import list_files
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
