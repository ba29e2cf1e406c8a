"""`discreet sketch`: the shape of the score curve from a file of scores or from events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from discreet.cli import options as shared
from discreet.cli.options import (
    EVENTS_ONLY,
    GROUPING,
    SCORES_ONLY,
    TABLE,
    ClipOption,
    ConnectOption,
    DatasetOption,
    DelimiterOption,
    DomainOption,
    EncodingOption,
    EscapeOption,
    LedgerOption,
    NameOption,
    PurposeOption,
    RequestIdOption,
    ResolutionOption,
    UserOption,
    ValueOption,
    WhereOption,
    check_input_format,
    gather_options,
    parse_adjacency,
    parse_count,
    parse_format,
    parse_sensitivity,
    refuse_options,
)
from discreet.cli.output import check_out, print_json, print_notes, print_text, save
from discreet.cli.select import check_files, open_ledger, open_source
from discreet.cli.stdin import input_files, name_input
from discreet.padding import Padding
from discreet.privacy import positive
from discreet.progress import show_progress
from discreet.sketch_request import make_sketch_request
from discreet.sources.files import file_source
from discreet.topk import plan_charge, release_from

HELP = """
\b
Examples:
  discreet sketch scores.csv --epsilon 0.05 --out curve.json
  discreet sketch scores.csv --epsilon 0.05 --ranks 5,10,20,100 --json
  discreet sketch counts.npy --epsilon 0.05 --ledger budget.db --purpose "planning the chart"
  discreet sketch ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    --max-items-per-user 5 --epsilon 0.05 --out curve.json
"""

app = typer.Typer(rich_markup_mode=None)


def _check_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    return check_files(context, files, HELP)


@app.command("sketch", short_help="Buy the shape of the scores, to plan by.", epilog=HELP)
def sketch(
    context: typer.Context,
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="What the sketch may cost, taken exactly: 0.05, 1/20 or 5e-2.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            callback=_check_files,
            show_default=False,
            help="The scores, or with --user the events, as for select. For either, - is standard input.",
        ),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            metavar="R,R,...",
            help="The ranks to tell the scores of, from 1 for the largest, not chosen by looking at the data. Fewer "
            "have less noise. By default 1,2,5,10,20 and so on, and the last.",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="G", help="What to round scores to that are floats in a .npy or .parquet file."),
    ] = None,
    item: shared.ItemOption = None,
    score: shared.ScoreOption = None,
    user: UserOption = None,
    domain: DomainOption = None,
    where: WhereOption = None,
    value: ValueOption = None,
    clip: ClipOption = None,
    resolution: ResolutionOption = None,
    max_items_per_user: Annotated[
        str | None,
        typer.Option(metavar="L", help="With --user: score at most L items of each user; then the noise is less."),
    ] = None,
    connect: ConnectOption = None,
    name: NameOption = None,
    delimiter: DelimiterOption = None,
    escape: EscapeOption = None,
    encoding: EncodingOption = None,
    input_format: shared.InputFormatOption = None,
    sensitivity: shared.SensitivityOption = None,
    adjacency: shared.AdjacencyOption = "add-remove",
    ledger: LedgerOption = None,
    purpose: PurposeOption = None,
    request_id: RequestIdOption = None,
    dataset: DatasetOption = None,
    pad_to: Annotated[
        str | None,
        typer.Option(metavar="S", help="Print, write and end only at multiples of S seconds since the start."),
    ] = None,
    form: shared.FormatOption = None,
    as_json: shared.JsonOption = False,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the sketch to this file, for 'discreet plan': NAME.json.")
    ] = None,
    quiet: shared.QuietOption = False,
) -> None:
    """Tells noisy scores at a few public ranks, with epsilon-differential privacy for each user behind the scores.

    That is enough to plan a release by: 'discreet plan' and the library take the file in place of scores, and what they
    tell is then as private as the sketch. The ranks say nothing about which items they are.
    """
    # Everything public is checked before the scores or the events are read.
    shape = parse_format(form, as_json, shared.TABLE_OR_JSON)
    positive(epsilon, "epsilon")
    parse_adjacency(adjacency)
    places = None if ranks is None else [parse_count(rank.strip(), "ranks") for rank in ranks.split(",")]
    padding = Padding(pad_to, context.obj, from_file=True)
    file = name_input(files, events=user is not None)
    check_input_format(file, input_format, events=user is not None)
    book = open_ledger(ledger, out)
    options = gather_options(context, TABLE)
    source_of: Callable[[Any], Any]
    if user is None:
        refuse_options(options, EVENTS_ONLY, "without user")
        check_out(out, {"scores": input_files(file)})
        source_of = partial(file_source, item=item, score=score)
    else:
        from discreet.cli.events import prepare_events

        refuse_options({"score": score, "sensitivity": sensitivity}, SCORES_ONLY, "with user")
        source_of = prepare_events(file, user, item, adjacency, options, None, gather_options(context, GROUPING), out)
    ask = partial(
        make_sketch_request, epsilon=epsilon, ranks=places, grid=grid, adjacency=adjacency,
        sensitivity=None if sensitivity is None else parse_sensitivity(sensitivity),
    )  # fmt: skip
    with show_progress(not quiet and pad_to is None):
        charge = plan_charge(book, purpose, request_id, dataset)
        notes: list[str] = []
        made = release_from(partial(open_source, file, input_format, source_of, notes), ask, padding, charge)
    print_notes(notes, quiet)
    if out is not None:
        save(made.to_json(indent=2), out)
    if shape == "json":
        print_json(made.to_dict())
    else:
        print_text(str(made), heading=True)
