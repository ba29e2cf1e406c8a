"""`discreet check`: whether columns, domain, condition and groups fit, before the first release. NOT private."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options as shared
from discreet.cli.app import FAILURE
from discreet.cli.events import (
    ByOption,
    DeltaOption,
    DiscoverOption,
    DiscoveryEpsilonOption,
    EachUserOption,
    GroupsOption,
    KindOption,
    MaxGroupsOption,
    SpellingOption,
    parse_discovery,
)
from discreet.cli.options import (
    FINDING,
    GROUPING,
    SCORES_ONLY,
    TABLE,
    ClipOption,
    ConnectOption,
    DelimiterOption,
    DomainOption,
    EncodingOption,
    EscapeOption,
    LabelOption,
    NameOption,
    ResolutionOption,
    UserOption,
    ValueOption,
    WhereOption,
    check_input_format,
    gather_options,
    parse_adjacency,
    parse_format,
    refuse_options,
)
from discreet.cli.output import FORMATS, OutputError, print_json, print_notes, print_text
from discreet.cli.select import check_files, open_source
from discreet.cli.stdin import name_input
from discreet.errors import InvalidValueError
from discreet.progress import show_progress
from discreet.sources.events.check import check_events
from discreet.sources.events.check_report import Check

if TYPE_CHECKING:
    from discreet.sources.events.check_report import Check

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

UnusedOption = Annotated[str | None, typer.Option(hidden=True, help="An option of select that a check does not need.")]
UnusedKOption = Annotated[str | None, typer.Option("-k", hidden=True, help="As for select; a check does not need it.")]


def _check_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    return check_files(context, files, HELP)


@app.command("check", short_help="See whether events and domain fit. NOT private.", epilog=HELP)
def check(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            callback=_check_files,
            show_default=False,
            help="The events, as for select. - is standard input. Or the charts of 'discreet publish', a .toml file.",
        ),
    ] = None,
    item: shared.ItemOption = None,
    score: Annotated[str | None, typer.Option(hidden=True)] = None,
    user: UserOption = None,
    domain: DomainOption = None,
    label: LabelOption = None,
    where: WhereOption = None,
    value: ValueOption = None,
    clip: ClipOption = None,
    resolution: ResolutionOption = None,
    max_items_per_user: Annotated[
        str | None, typer.Option(metavar="L", help="With --user: as for select; what is checked are all rows.")
    ] = None,
    discover: DiscoverOption = False,
    delta: DeltaOption = None,
    kind: KindOption = None,
    spelling: SpellingOption = None,
    discovery_epsilon: DiscoveryEpsilonOption = None,
    by: ByOption = None,
    groups: GroupsOption = None,
    each_user: EachUserOption = None,
    max_groups_per_user: MaxGroupsOption = None,
    connect: ConnectOption = None,
    name: NameOption = None,
    delimiter: DelimiterOption = None,
    escape: EscapeOption = None,
    encoding: EncodingOption = None,
    input_format: shared.InputFormatOption = None,
    sensitivity: Annotated[str | None, typer.Option(hidden=True)] = None,
    adjacency: shared.AdjacencyOption = "add-remove",
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Refused: a check is not private, and no budget covers it.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="How to print: json, or as a table.",
            autocompletion=shared.complete_from(shared.TABLE_OR_JSON),
        ),
    ] = None,
    as_json: shared.JsonOption = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write it to this file too, a new one that you alone may read. By default it is kept nowhere.",
        ),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With a charts file: check the periods that ended last before this time."),
    ] = None,
    quiet: shared.QuietOption = False,
    k: UnusedKOption = None,
    epsilon: UnusedOption = None,
    mechanism: UnusedOption = None,
    gamma: UnusedOption = None,
    noise: UnusedOption = None,
    ceil: Annotated[bool, typer.Option("--ceil", hidden=True)] = False,
    counts: UnusedOption = None,
    split: UnusedOption = None,
    purpose: UnusedOption = None,
    request_id: UnusedOption = None,
    dataset: UnusedOption = None,
    pad_to: UnusedOption = None,
) -> None:
    """Looks at the events before a release, to see whether the columns, the domain, the condition and the groups fit.

    NOT private, for the data holder alone: what it prints is read off the rows. It takes the options of select, so that
    a command line can be checked by its first word, or a charts file without any. It counts rows that are dropped,
    items outside the domain, items of it that nobody touched, spellings that differ in case or spaces, and dates that
    are not read, and ends with what to change. The exit code is 1 where no row counts, so that a release would be noise
    alone.
    """
    from discreet.cli.events import prepare_events
    from discreet.sources.events.check import check_events

    if ledger is not None:
        raise InvalidValueError(
            "ledger must be left out: a check is not private, so that no budget covers it, and nothing is charged"
        )
    file = name_input(files, events=True)
    if user is None and not is_charts_file(file):
        raise InvalidValueError(
            "user must be given: a check is for events, and a file of scores has no rows of users and no other domain"
        )
    # Where select would print a list in another form, there is none to print.
    shape = "json" if parse_format(form, as_json, FORMATS) == "json" else "table"
    _check_new(out)
    parse_adjacency(adjacency)
    check_input_format(file, input_format, events=True)
    refuse_options({"score": score, "sensitivity": sensitivity}, SCORES_ONLY, "with user")
    options, grouping, finding = (gather_options(context, names) for names in (TABLE, GROUPING, FINDING))
    notes: list[str] = []
    if user is None:
        with show_progress(not quiet):
            checks = check_charts(str(file), as_of, {"item": item, **options, **grouping, **finding}, notes)
        print_notes(notes, quiet)
        _deliver(checks, shape, out)
        return
    if as_of is not None:
        raise InvalidValueError("as_of must be left out without a charts file, whose periods it is about")
    source_of = prepare_events(
        file, user, item, adjacency, options, parse_discovery(finding, max_items_per_user), grouping, out
    )
    with show_progress(not quiet), open_source(file, input_format, source_of, notes) as source:
        found = check_events(source)
    print_notes(notes, quiet)
    _deliver({"": found}, shape, out)


def _deliver(found: dict[str, Check], shape: str, out: str | None) -> None:
    """Writes and prints checks, by the id of their chart where they are of charts."""
    text = "\n\n".join(f"{name}: {one}" if name else str(one) for name, one in found.items())
    if out is not None:
        _save_for_owner(text, out)
    if shape == "json":
        print_json({name: one.to_dict() for name, one in found.items()} if "" not in found else found[""].to_dict())
    else:
        print_text(text, heading=True)
    if any(one.is_noise for one in found.values()):
        raise typer.Exit(FAILURE)


def _check_new(out: str | None) -> None:
    """Refuses to replace a file: others may read it, and a command line of select may name one that is published."""
    if out is not None and os.path.lexists(out):
        raise InvalidValueError(f"out must be a new file, not {out!r}: a check is not private, and replaces nothing")


def _save_for_owner(text: str, out: str) -> None:
    """Writes a new file that its owner alone may read."""
    try:
        with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise OutputError(f"writing {out!r} fails: {error.strerror}") from None


def is_charts_file(file: Any) -> bool:
    """Whether FILE is one charts file, by its name."""
    return isinstance(file, str) and file.endswith(".toml")


def check_charts(file: str, as_of: str | None, options: Mapping[str, Any], notes: list[str]) -> dict[str, Check]:
    """The check of each chart of a file, by its id; its ledger is not opened. None of the options may be given.

    What there is to say about the sources is added to `notes`.
    """
    from discreet.publish.chart_source import open_chart_source
    from discreet.publish.charts_file import name_place, read_charts
    from discreet.publish.due_periods import check_is_past, find_due_periods, parse_moment

    for name, given in options.items():
        if given:
            raise InvalidValueError(f"{name} must be left out with a charts file, which says it")
    moment = parse_moment(as_of)
    check_is_past(moment, "has rows to come, which no check has seen")
    charts, found = read_charts(file), {}
    for chart in charts.charts:
        # Of a chart whose first period is yet to end, that period.
        period = (find_due_periods(chart, moment) or [chart.get("from")])[-1]
        with name_place(f"{charts.path.name}, chart {chart.id!r}: "):
            source = open_chart_source(chart, period)
            found[chart.id] = check_events(source)
            notes += [f"{chart.id}: {note}" for note in source.notes()]
    return found
