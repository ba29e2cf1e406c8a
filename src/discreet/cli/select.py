"""`discreet select`: a release from a file of scores or from events."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.app import first_example, hide_urls
from discreet.cli.options import (
    ChargeOptions,
    ChartOption,
    InputFormatOption,
    OutputOptions,
    ScoreOptions,
    parse_adjacency,
    parse_choice,
    parse_count,
    parse_format,
    parse_mechanism,
    parse_sensitivity,
    refuse_options,
    spread,
)
from discreet.cli.output import (
    FORMATS,
    LOGS,
    OUT_ENDINGS,
    check_chart,
    check_ending,
    check_out,
    deliver,
    is_terminal,
    print_doubt,
    print_notes,
    print_released,
    save_chart,
)
from discreet.cli.stdin import Input
from discreet.errors import InvalidValueError
from discreet.jobs import show_progress
from discreet.privacy import positive
from discreet.publish.options import (
    DiscoveryOptions,
    EventOptions,
    GroupOptions,
    ItemOptions,
    MechanismOptions,
    ReleaseOptions,
    option,
)
from discreet.release.shortfall import parse_shortfall
from discreet.release.topk import Padding, check_auto, deliver_release, make_any_request, plan_charge
from discreet.sources.files import TEXTS, file_source

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

HELP = """
\b
Examples with scores:
  discreet select scores.csv -k 10 --epsilon 1
  discreet select films.csv -k 5 --epsilon 0.5 --item title --score fans
  discreet select scores.json -k 10 --epsilon 1 --json
  discreet select counts.npy -k 10 --epsilon 1/3 --out top.json
  discreet select scores.csv -k 3 --epsilon 1 --mechanism one-shot --noise gumbel
  discreet select points.tsv -k 3 --epsilon 1 --sensitivity 2,5 --adjacency swap
  discreet select scores.parquet -k 10 --epsilon 1
  discreet select scores.csv -k 10 --epsilon 1 --ledger budget.db --purpose "monthly chart"
  discreet select counts.npy -k 100 --epsilon 0.1 --mechanism core --otherwise none
  discreet select scores.csv -k 10 --epsilon 1 --counts 0.5
  discreet select scores.csv -k 10 --epsilon 1 --shortfall 0.05
  discreet select scores.csv -k 10 --epsilon 1 --counts 0.5 --format csv > top.csv
  discreet select scores.csv -k 10 --epsilon 1 --counts 0.5 --chart top.png
  discreet select - -k 10 --epsilon 1 --format items < scores.csv | sort
  grep -v "^#" points.tsv | discreet select - --input-format tsv -k 3 --epsilon 1 --sensitivity 2,5

\b
Examples with events:
  discreet select ratings.parquet --user user_id --item movie_id --where "stars = 5" \\
    --domain movies.csv:movie_id --label title -k 100 --epsilon 1
  discreet select "ratings-*.csv" --user user_id --item movie_id \\
    --value stars --clip 0,5 --resolution 0.5 --domain movies.csv:movie_id -k 3 --epsilon 1
  discreet select ratings.parquet --user user_id --item movie_id \\
    --domain integers:0:999999 -k 3 --epsilon 1 --adjacency swap --out top.json
  discreet select ratings.parquet --user user_id --item movie_id --max-items-per-user 2 \\
    --domain movies.csv:movie_id -k 3 --epsilon 1 --split auto
  discreet select ratings.parquet --user user_id --item movie_id --max-items-per-user 2 \\
    --domain movies.csv:movie_id -k 3 --epsilon 1 --mechanism histogram
  discreet select --connect sqlite://ratings.db --name ratings --user user_id --item movie_id \\
    --domain movies.csv:movie_id --label title -k 3 --epsilon 1 --json
  discreet select ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id --label title \\
    --by country --groups countries.csv:code --each-user one -k 3 --epsilon 1
  discreet select ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    --by "month(rated_at)" --groups 2026-01..2026-12 --each-user many --max-groups-per-user 3 \\
    -k 3 --epsilon 1 --format csv
  discreet select ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    --by country --groups countries.csv:code --by "quarter(rated_at, Europe/Berlin)" --groups 2026-Q1..2026-Q4 \\
    --each-user many -k 3 --epsilon 2 --json
  discreet select logs.parquet --user device --item message --discover --delta 1e-8 \\
    -k 20 --epsilon 1
  discreet select visits.csv --user visitor --item page --delimiter ';' --escape '\\' \\
    --domain pages.csv:page -k 3 --epsilon 1
  zcat ratings.csv.gz | discreet select - --user user_id --item movie_id \\
    --domain movies.csv:movie_id -k 3 --epsilon 1 --quiet
"""

SCORES_ONLY = {
    "score": "the scores are made from the events",
    "sensitivity": "the events tell how far one user can move a score",
}
EVENTS_ONLY = {
    **dict.fromkeys(
        ("domain", "discover", "kind", "spelling", "discovery_epsilon", "method"),
        "a file of scores lists its own items",
    ),
    **dict.fromkeys(("value", "clip", "resolution", "max_items_per_user"), "a file of scores is added up already"),
    **dict.fromkeys(("groups", "each_user", "max_groups_per_user"), "a file of scores has no groups"),
    "label": "a file of scores has its own labels",
    "where": "a file of scores has no rows of users to choose from",
    "delta": "a file of scores lists its own items, and none are to be found",
    "by": "a file of scores has no rows of users to put into groups",
    "connect": "a database is read as events, not as scores",
    "name": "it is the table of a database, which is read as events",
    **dict.fromkeys(("delimiter", "domain_delimiter", "groups_delimiter"), "the header of a file of scores shows it"),
    "escape": "a file of scores doubles the quotes inside quotes",
    **dict.fromkeys(("encoding", "domain_encoding", "groups_encoding"), "a file of scores is UTF-8"),
    "during": "a file of scores has no rows of users to choose from",
    "date_format": "a file of scores has no dates",
    **dict.fromkeys(("decimal", "thousands"), "the numbers of a file of scores have a point and no groups"),
}
"""Options that belong to one kind of input, each with the reason why the other kind refuses it."""

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True, eq=False, repr=False)
class ListOutputOptions(OutputOptions):
    """The form in which a list of items is printed."""

    form: str | None = option(
        "The format: table, for people; json, with the guarantee; csv; or items, a line each, with a backslash as "
        "\\\\ and a line break as \\n, after the group and a tab with --by. By default table.",
        "NAME",
        flags=("--format",),
        choices=FORMATS,
    )


def check_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    """Raise unless the input is named once, as FILE or by --connect; typer calls this after it parsed the options."""
    connect = context.params.get("connect")
    if not files and connect is None:
        raise InvalidValueError(f"FILE is missing; for example: {first_example(context.command.epilog)}")
    if files and connect is not None:
        raise InvalidValueError("connect must be left out with FILE: the input is one of the two")
    return files


def files_argument(help: str, check: Callable[..., Any] = check_files) -> Any:  # noqa: A002
    """Return typer's declaration of the input FILE..., which `check` examines once all options are parsed."""
    return typer.Argument(metavar="FILE...", callback=check, show_default=False, help=help)


@app.command("select", short_help="Release the k items that score highest.", epilog=HELP)
@spread()
def select(
    context: typer.Context,
    release: ReleaseOptions,
    events: EventOptions,
    items: ItemOptions,
    discovery: DiscoveryOptions,
    groups: GroupOptions,
    scores: ScoreOptions,
    mechanism: MechanismOptions,
    ledger: ChargeOptions,
    output: ListOutputOptions,
    files: Annotated[
        list[str] | None,
        files_argument(
            "The scores: .npy, .csv, .tsv, .json or .parquet. With --user the events: .parquet, .csv, .tsv or .json, "
            "compressed or not, several of them, a folder, a pattern or a URL. For either, - is standard input."
        ),
    ] = None,
    input_format: InputFormatOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the release to this file too, whole or not at all: as its name ends, .json, .csv or .txt, or "
            "as --format says.",
        ),
    ] = None,
    chart: ChartOption = None,
) -> None:
    """Release which K items score highest, with epsilon-differential privacy for each user behind the scores.

    FILE holds scores, or with --user events, from which scores are made: the number of distinct users of an item, or
    the sum of what they add to it. Scores are not shown, but for noisy ones with --counts or --split. With --by there
    is a list for each of several groups, and epsilon is the cost of all of them together.

    The list of items must be public. In a file of scores, keep items that no user touched, with a score of zero. In a
    .npy file and in a JSON list the items are positions, counted from 0; where the scores are sorted, positions are
    ranks and tell about scores. If there is no list, --discover finds the items in events, for a delta.
    """
    # Options are checked before the scores or the events are read; the budget is checked when it is charged.
    parse_choice("log", ledger.log, LOGS)
    drawn_by = parse_mechanism(mechanism)
    k, shape, epsilon = parse_count(release.k), parse_format(output, FORMATS), positive(release.epsilon, "epsilon")
    counts = None if release.counts is None else positive(release.counts, "counts")
    if release.shortfall is not None:
        parse_shortfall(release.shortfall)
    adjacency = parse_adjacency(release.adjacency)
    padding = Padding(release.pad_to, context.obj, from_file=True)
    file = Input.parse(files, input_format, events=events.user is not None)
    book = open_ledger(ledger.ledger, out)
    if padding.is_auto:
        check_auto(events.user is None and file.suffix not in TEXTS)
    sensitivity = parse_sensitivity(scores.sensitivity)
    open_table, delta = prepare_source(file, file_source, events, items, discovery, groups, scores, adjacency, out)
    if out is not None:
        check_ending(out, OUT_ENDINGS)
    if chart is not None:
        check_chart(chart, {"input": file.files, "ledger": [ledger.ledger or ""]}, k)
    # The progress display would show when a stage ends, which padding hides.
    with show_progress(not output.quiet and ledger.log == "text" and release.pad_to is None):
        charge = plan_charge(
            book, ledger.purpose, ledger.request_id, ledger.dataset, None, delta, ledger.as_of, ledger.part
        )
        notes: list[str] = []
        with deliver_release(padding, charge) as delivery, open_source(file, open_table, notes) as source:
            request = make_any_request(
                source, k, epsilon, mechanism=drawn_by, adjacency=adjacency, sensitivity=sensitivity, counts=counts,
                split=release.split, shortfall=release.shortfall,
            )  # fmt: skip
            delivery.draw(request)
            del source, request
    print_notes(notes, output.quiet)
    print_released(delivery.release, ledger.request_id)
    deliver(delivery.release, shape, out)
    if chart is not None:
        save_chart(delivery.release, chart)
    if events.user is not None and not output.quiet and is_terminal(sys.stderr):
        print_doubt(f"rows that do not fit are left out without a word; to count them: {name_check(context)}")


def name_check(context: typer.Context) -> str:
    """Return the command line of the check of the same events; it depends on the arguments alone."""
    kinds = (EventOptions, ItemOptions, DiscoveryOptions, GroupOptions)
    kept = {"files", "input_format", *(field.name for kind in kinds for field in fields(kind))}
    words = []
    for parameter in sorted(context.command.params, key=lambda each: each.param_type_name != "argument"):
        given = context.params.get(parameter.name or "")
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in kept or source is None or source.name != "COMMANDLINE":
            continue
        for each in given if isinstance(given, list | tuple) else [given]:
            flag = [] if parameter.param_type_name == "argument" else [max(parameter.opts, key=len)]
            words += [*flag, *([] if each is True else [hide_urls(str(each))])]
    return shlex.join(["discreet", "check", *words])


def prepare_source(
    file: Input,
    read_scores: Callable[..., Any],
    events: EventOptions,
    items: ItemOptions,
    discovery: DiscoveryOptions,
    groups: GroupOptions,
    scores: ScoreOptions,
    adjacency: str,
    out: str | None,
) -> tuple[Callable[[Any], Any], Fraction]:
    """Check the options of the input; return the function that opens it, given the path of FILE, and its delta.

    Parameters
    ----------
    file
        FILE.
    read_scores
        The function that opens a file of scores, given its path and the names of its columns.
    events, items, discovery, groups, scores, adjacency
        The options.
    out
        The file to write to, which must not be one of the inputs.
    """
    if events.user is None:
        refuse_options(EVENTS_ONLY, "without user", items, events, discovery, groups)
        check_out(out, {"scores": file.files})
        return partial(read_scores, item=events.item, score=scores.score), Fraction(0)
    from discreet.cli.events import parse_discovery, prepare_events

    terms = parse_discovery(discovery, events.max_items_per_user)
    refuse_options(SCORES_ONLY, "with user", scores)
    open_table = prepare_events(file, events, items, terms, groups, adjacency, out)
    return open_table, Fraction(0) if terms is None else terms.delta


@contextmanager
def open_source(file: Input, open_table: Callable[[Any], Any], notes: list[str]) -> Iterator[Any]:
    """Give the source behind FILE, and add its notes to `notes`.

    `print_notes` prints them later: printed at once they would tell how long opening took, which depends on the data.
    """
    with file.open() as path:
        source = open_table(path)
        notes += source.notes()
        yield source


def open_ledger(ledger: str | None, out: str | None) -> Ledger | None:
    """Return the ledger that a release is charged to, which `out` must not replace."""
    if ledger is None:
        return None
    check_out(out, {"ledger": [ledger]})
    from discreet.ledger.ledger import Ledger

    return Ledger(ledger)
