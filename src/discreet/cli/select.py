"""`discreet select`: a release from a file of scores or from events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options as shared
from discreet.cli.discovery import (
    DeltaOption,
    DiscoverOption,
    DiscoveryEpsilonOption,
    KindOption,
    SpellingOption,
    parse_discovery,
)
from discreet.cli.errors import first_example
from discreet.cli.event_options import (
    FINDING,
    GROUPING,
    TABLE,
    ClipOption,
    ConnectOption,
    DatasetOption,
    DelimiterOption,
    DomainOption,
    EncodingOption,
    EscapeOption,
    LabelOption,
    LedgerOption,
    NameOption,
    PurposeOption,
    RequestIdOption,
    ResolutionOption,
    UserOption,
    ValueOption,
    WhereOption,
    gather_options,
)
from discreet.cli.groups import ByOption, EachUserOption, GroupsOption, MaxGroupsOption
from discreet.cli.input_kinds import EVENTS_ONLY, SCORES_ONLY, refuse_options
from discreet.cli.options import (
    check_input_format,
    parse_adjacency,
    parse_count,
    parse_format,
    parse_mechanism,
    parse_sensitivity,
)
from discreet.cli.output import FORMATS, check_out, deliver, print_notes
from discreet.cli.stdin import Input, input_files, input_suffix, name_input, open_input
from discreet.errors import InvalidValueError
from discreet.jobs import show_progress
from discreet.privacy import positive
from discreet.release.padding import Padding, check_auto
from discreet.release.topk import make_any_request, plan_charge, release_from
from discreet.sources.events.location import has_other_scheme
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
  discreet select scores.csv -k 10 --epsilon 1 --counts 0.5 --format csv > top.csv
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
  discreet select logs.parquet --user device --item message --discover --delta 1e-8 --max-items-per-user 3 \\
    -k 20 --epsilon 1
  discreet select visits.csv --user visitor --item page --delimiter ';' --escape '\\' \\
    --domain pages.csv:page -k 3 --epsilon 1
  zcat ratings.csv.gz | discreet select - --user user_id --item movie_id \\
    --domain movies.csv:movie_id -k 3 --epsilon 1 --quiet
"""

app = typer.Typer(rich_markup_mode=None)


def _check_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    return check_files(context, files, HELP)


def check_files(context: typer.Context, files: list[str] | None, examples: str) -> list[str] | None:
    """The input must be named once. What was given on the command line has been parsed before this."""
    connect = context.params.get("connect")
    if not files and connect is None:
        raise InvalidValueError(f"FILE is missing; for example: {first_example(examples)}")
    if files and connect is not None:
        raise InvalidValueError("connect must be left out with FILE: the input is one of the two")
    if any(map(has_other_scheme, files or [])):
        raise InvalidValueError(
            "FILE must be a file, or the URL of one by https, s3 or gs; the URL of a database goes with --connect"
        )
    return files


@app.command("select", short_help="Release the k items that score highest.", epilog=HELP)
def select(
    context: typer.Context,
    k: shared.KOption,
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The privacy budget to spend, taken exactly: 1, 0.5, 1/3 or 1e-2.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            callback=_check_files,
            show_default=False,
            help="The scores: .npy, .csv, .tsv, .json or .parquet. With --user the events: .parquet, .csv, .tsv or "
            ".json, compressed or not, several of them, a folder, a pattern or a URL. For either, - is standard input.",
        ),
    ] = None,
    item: shared.ItemOption = None,
    score: shared.ScoreOption = None,
    user: UserOption = None,
    domain: DomainOption = None,
    label: LabelOption = None,
    where: WhereOption = None,
    value: ValueOption = None,
    clip: ClipOption = None,
    resolution: ResolutionOption = None,
    max_items_per_user: Annotated[
        str | None,
        typer.Option(
            metavar="L",
            help="With --user: score at most L items of each user, so that counts need less noise and a histogram can "
            "be had. With --discover: so many items of a user count for finding them.",
        ),
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
    mechanism: shared.MechanismOption = None,
    gamma: shared.GammaOption = None,
    noise: shared.NoiseOption = None,
    ceil: shared.CeilOption = False,
    precision: shared.PrecisionOption = None,
    otherwise: shared.OtherwiseOption = None,
    sensitivity: shared.SensitivityOption = None,
    adjacency: shared.AdjacencyOption = "add-remove",
    counts: Annotated[
        str | None,
        typer.Option(metavar="E2", help="Release a noisy score for each item too, at this epsilon beside the other."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="auto",
            help="With 'auto': release noisy scores too, for half of epsilon.",
            autocompletion=shared.complete_from(["auto"]),
        ),
    ] = None,
    ledger: LedgerOption = None,
    purpose: PurposeOption = None,
    request_id: RequestIdOption = None,
    dataset: DatasetOption = None,
    pad_to: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="Print, write and end only at multiples of S seconds since the start, errors too. With 'auto', of a "
            "period that fits; for scores in .npy and .parquet alone.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="How to print: table, for people; json, with the guarantee; csv; or items, a line each, with "
            "a backslash as \\\\ and a line break as \\n, after the group and a tab with --by. By default table.",
            autocompletion=shared.complete_from(FORMATS),
        ),
    ] = None,
    as_json: shared.JsonOption = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the release to this file too, whole or not at all: as JSON, or as --format says.",
        ),
    ] = None,
    quiet: shared.QuietOption = False,
) -> None:
    """Releases which K items score highest, with epsilon-differential privacy for each user behind the scores.

    FILE holds scores, or with --user events, from which scores are made: how many distinct users an item has, or what
    they add to it. Scores are not shown, but for noisy ones with --counts or --split. With --by there is a list for
    each of several groups, and epsilon is what all of them cost together.

    The list of items must be public. In a file of scores, keep items that no user touched, with a score of zero. In a
    .npy file and in a JSON list the items are positions, counted from 0; where the scores are sorted, positions are
    ranks and tell about scores. Where nobody has a list, --discover finds the items in events, for a delta.
    """
    # Everything public is checked before the scores or the events are read.
    own = {"gamma": gamma, "noise": noise, "ceil": ceil or None, "precision": precision, "otherwise": otherwise}
    drawn_by = parse_mechanism(mechanism, own)
    count, shape = parse_count(k), parse_format(form, as_json, FORMATS)
    positive(epsilon, "epsilon")
    if counts is not None:
        positive(counts, "counts")
    parse_adjacency(adjacency)
    padding = Padding(pad_to, context.obj, from_file=True)
    file = name_input(files, events=user is not None)
    check_input_format(file, input_format, events=user is not None)
    book = open_ledger(ledger, out)
    if padding.is_auto:
        check_auto(user is None and input_suffix(file, input_format) not in TEXTS)
    limits = None if sensitivity is None else parse_sensitivity(sensitivity)
    options, grouping, finding = (gather_options(context, names) for names in (TABLE, GROUPING, FINDING))
    terms = None if user is None else parse_discovery(finding, max_items_per_user)
    source_of: Callable[[Any], Any]
    if user is None:
        refuse_options({**options, **finding, **grouping}, EVENTS_ONLY, "without user")
        check_out(out, {"scores": input_files(file)})
        source_of = partial(file_source, item=item, score=score)
    else:
        from discreet.cli.events import prepare_events

        refuse_options({"score": score, "sensitivity": sensitivity}, SCORES_ONLY, "with user")
        source_of = prepare_events(file, user, item, adjacency, options, terms, grouping, out)
    # Progress would show when a stage ends.
    with show_progress(not quiet and pad_to is None):
        ask = partial(
            make_any_request, k=count, epsilon=epsilon, mechanism=drawn_by, adjacency=adjacency,
            sensitivity=limits, counts=counts, split=split,
        )  # fmt: skip
        charge = plan_charge(book, purpose, request_id, dataset, delta=Fraction(0) if terms is None else terms.delta)
        notes: list[str] = []
        opened = partial(open_source, file, input_format, source_of, notes)
        release = release_from(opened, ask, padding, charge)
    print_notes(notes, quiet)
    deliver(release, shape, out)


@contextmanager
def open_source(
    file: Input, kind: str | None, source_of: Callable[[Any], Any], notes: list[str] | None = None
) -> Iterator[Any]:
    """The source behind FILE; a copy of standard input is there until it is let go.

    What there is to say about the source is added to `notes`, for `print_notes` to print when nothing can be told from
    the time: opening takes as long as the data ask for.
    """
    with open_input(file, kind) as path:
        source = source_of(path)
        if notes is not None:
            notes += source.notes()
        yield source


def open_ledger(ledger: str | None, out: str | None) -> Ledger | None:
    """The ledger that a release is charged to, which `out` must not replace."""
    check_out(out, {"ledger": [] if ledger is None else [ledger]})
    if ledger is None:
        return None
    from discreet.ledger.ledger import Ledger

    return Ledger(ledger)
