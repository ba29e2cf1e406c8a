"""`discreet check`: do columns, domain, condition and groups fit, before the first release? NOT private."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from discreet.cli.app import FAILURE
from discreet.cli.options import (
    InputFormatOption,
    OutputOptions,
    ScoreOptions,
    list_given,
    parse_adjacency,
    parse_format,
    refuse_options,
    spread,
)
from discreet.cli.output import FORMATS, OutputError, print_json, print_notes, print_text
from discreet.cli.select import SCORES_ONLY, files_argument, open_source
from discreet.cli.stdin import Input
from discreet.errors import InvalidValueError, check_is_path
from discreet.jobs import show_progress
from discreet.publish.options import (
    DiscoveryOptions,
    EventOptions,
    GroupOptions,
    ItemOptions,
    LedgerOptions,
    MechanismOptions,
    ReleaseOptions,
)

HELP = """
\b
Examples:
  discreet check ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id --where "stars = 5"
  discreet check "ratings-*.csv" --user user_id --item movie_id --domain integers:0:999999 --json
  discreet check --connect sqlite://ratings.db --name ratings --user user_id --item movie_id \\
    --domain movies.csv:movie_id
  discreet check ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    --by country --groups countries.csv:code --each-user one -k 3 --epsilon 1
  discreet check charts.toml
"""

app = typer.Typer(rich_markup_mode=None)


@app.command("check", short_help="See whether events and domain fit. NOT private.", epilog=HELP)
@spread(without=["precision", "otherwise"], hidden=[ScoreOptions, ReleaseOptions, MechanismOptions, LedgerOptions])
def check(
    events: EventOptions,
    items: ItemOptions,
    discovery: DiscoveryOptions,
    groups: GroupOptions,
    output: OutputOptions,
    scores: ScoreOptions,
    release: ReleaseOptions,
    mechanism: MechanismOptions,
    ledger: LedgerOptions,
    files: Annotated[
        list[str] | None,
        files_argument(
            "The events, as for select. - is standard input. Or the charts of 'discreet publish', a .toml file."
        ),
    ] = None,
    input_format: InputFormatOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write it to this file too, a new one that you alone may read; a .html is a page, with the share of "
            "rows left out by each cause as a bar. By default it is kept nowhere.",
        ),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With a charts file: check the periods that ended last before this time."),
    ] = None,
) -> None:
    """Look at the events before a release, to see whether the columns, the domain, the condition and the groups fit.

    NOT private, for the data holder alone: the output is read off the rows, and no budget covers it. The command takes
    the options of select, so that a command line can be checked by its first word, or a charts file without any. It
    counts rows that are dropped, items outside the domain, items of it that nobody touched, spellings that differ in
    case or spaces, and dates that are not read, and ends with advice. The exit code is 1 where no row counts, so that a
    release would be noise alone.
    """
    from discreet.cli.events import allow_no_delta, parse_discovery, prepare_events
    from discreet.sources.events.check import check_events
    from discreet.sources.events.check_report import make_page

    if ledger.ledger is not None:
        raise InvalidValueError(
            "ledger must be left out: a check is not private, so that no budget covers it, and nothing is charged"
        )
    is_charts_file = files is not None and len(files) == 1 and files[0].endswith(".toml")
    if events.user is None and not is_charts_file:
        raise InvalidValueError(
            "user must be given: a check is for events, and a file of scores has no rows of users and no other domain"
        )
    # A check prints no list, so the other forms of select become a table.
    shape = "json" if parse_format(output, FORMATS) == "json" else "table"
    # Others may read a file that exists, and the --out of a select command may be published.
    if out is not None:
        check_is_path("out", out, "a new file")
    if out is not None and os.path.lexists(out):
        raise InvalidValueError(f"out must be a new file, not {out!r}: a check is not private, and replaces nothing")
    parse_adjacency(release.adjacency)
    file = Input.parse(files, input_format, events=True)
    refuse_options(SCORES_ONLY, "with user", scores)
    notes: list[str] = []
    if events.user is None:
        for name in list_given(events, items, groups, discovery):
            raise InvalidValueError(f"{name} must be left out with a charts file, which says it")
        from discreet.ledger.charges import parse_moment
        from discreet.publish.chart_source import open_chart_source
        from discreet.publish.charts_file import name_place, read_charts
        from discreet.publish.editions import check_is_past, find_due_periods

        with show_progress(not output.quiet):
            moment = parse_moment(as_of)
            check_is_past(moment, datetime.now(UTC), "has rows to come, which no check has seen")
            charts, found = read_charts(file.given[0]), {}
            for chart in charts.charts:
                # A chart without a period that is due is checked for its first one. No ledger is opened.
                period = (find_due_periods(chart, moment) or [chart.get("from")])[-1]
                with name_place(f"{charts.path.name}, chart {chart.id!r}: "):
                    source = open_chart_source(chart, period)
                    found[chart.id] = check_events(source)
                    notes += [f"{chart.id}: {note}" for note in source.notes()]
        data = {name: one.to_dict() for name, one in found.items()}
        text = "\n\n".join(f"{name}: {one}" for name, one in found.items())
        is_noise = any(one.is_noise for one in found.values())
    else:
        if as_of is not None:
            raise InvalidValueError("as_of must be left out without a charts file, whose periods it is about")
        terms = parse_discovery(allow_no_delta(discovery), events.max_items_per_user)
        open_table = prepare_events(file, events, items, terms, groups, release.adjacency, out)
        with show_progress(not output.quiet), open_source(file, open_table, notes) as source:
            one = replace(check_events(source), as_options=True)
        data, text, is_noise = one.to_dict(), str(one), one.is_noise
        found = {"Check": one}
    print_notes(notes, output.quiet)
    if out is not None:
        try:
            with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as written:
                written.write(f"{make_page(found) if out.endswith('.html') else text}\n")
        except OSError as error:
            raise OutputError(f"writing {out!r} fails: {error.strerror}") from None
    if shape == "json":
        print_json(data)
    else:
        print_text(text, heading=True)
    if is_noise:
        raise typer.Exit(FAILURE)
