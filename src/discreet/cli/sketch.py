"""`discreet sketch`: the shape of the score curve from a file of scores or from events."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import (
    AdjacencyOption,
    ChargeOptions,
    InputFormatOption,
    OutputOptions,
    PadToOption,
    ScoreOptions,
    parse_adjacency,
    parse_choice,
    parse_count,
    parse_format,
    parse_sensitivity,
    spread,
)
from discreet.cli.output import LOGS, print_json, print_notes, print_released, print_text, save
from discreet.cli.select import files_argument, open_ledger, open_source, prepare_source
from discreet.cli.stdin import Input
from discreet.jobs import show_progress
from discreet.privacy import positive
from discreet.publish.options import DiscoveryOptions, EventOptions, GroupOptions, ItemOptions
from discreet.release.sketch_request import make_sketch_request
from discreet.release.topk import Padding, deliver_release, plan_charge
from discreet.sources.files import file_source

HELP = """
\b
Examples:
  discreet sketch scores.csv --epsilon 0.05 --out curve.json
  discreet sketch scores.csv --epsilon 0.05 --ranks 5,10,20,100 --json
  discreet sketch counts.npy --epsilon 0.05 --ledger budget.db --purpose "planning the chart"
  discreet sketch ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    --max-items-per-user 5 --epsilon 0.05 --out curve.json
  discreet sketch logs.parquet --user device --item message --discover --delta 1e-8 --max-items-per-user 3 \\
    --epsilon 0.5 --out curve.json
"""

app = typer.Typer(rich_markup_mode=None)


@app.command("sketch", short_help="Buy the shape of the scores, to plan by.", epilog=HELP)
@spread(without=["label"])
def sketch(
    context: typer.Context,
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The epsilon of the sketch, taken exactly: 0.05, 1/20 or 5e-2.")
    ],
    events: EventOptions,
    items: ItemOptions,
    discovery: DiscoveryOptions,
    scores: ScoreOptions,
    ledger: ChargeOptions,
    output: OutputOptions,
    files: Annotated[
        list[str] | None,
        files_argument("The scores, or with --user the events, as for select. For either, - is standard input."),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            metavar="R,R,...",
            help="The ranks to tell the scores of, from 1 for the largest, not chosen by looking at the data. Fewer "
            "have less noise. By default 1,2,5,10,20 and so on, and the last, with --discover up to 1000.",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="G", help="The step to which floats in a .npy or .parquet file are rounded."),
    ] = None,
    input_format: InputFormatOption = None,
    adjacency: AdjacencyOption = "add-remove",
    pad_to: PadToOption = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the sketch to this file, for 'discreet plan': NAME.json.")
    ] = None,
) -> None:
    """Tell noisy scores at a few public ranks, with epsilon-differential privacy for each user behind the scores.

    The noisy scores are enough to plan a release: 'discreet plan' and the library take the file in place of scores, and
    their answers are then as private as the sketch. The ranks say nothing about which items they are.

    With --discover the items need no list. The sketch has no delta; that of --delta, by default 1e-8, is for the
    release that is planned from it, and so is --max-items-per-user.
    """
    from discreet.cli.events import allow_no_delta

    # Everything public is checked before the scores or the events are read.
    parse_choice("log", ledger.log, LOGS)
    shape = parse_format(output)
    positive(epsilon, "epsilon")
    parse_adjacency(adjacency)
    places = None if ranks is None else [parse_count(rank.strip(), "ranks") for rank in ranks.split(",")]
    padding = Padding(pad_to, context.obj, from_file=True)
    file = Input.parse(files, input_format, events=events.user is not None)
    book = open_ledger(ledger.ledger, out)
    no_groups = GroupOptions()
    discovery = allow_no_delta(discovery)
    open_table, _ = prepare_source(file, file_source, events, items, discovery, no_groups, scores, adjacency, out)
    # The progress display would show when a stage ends, which padding hides.
    with show_progress(not output.quiet and ledger.log == "text" and pad_to is None):
        charge = plan_charge(
            book, ledger.purpose, ledger.request_id, ledger.dataset, as_of=ledger.as_of, part=ledger.part
        )
        notes: list[str] = []
        with deliver_release(padding, charge) as delivery, open_source(file, open_table, notes) as source:
            sensitivity = parse_sensitivity(scores.sensitivity)
            request = make_sketch_request(source, epsilon, places, grid, sensitivity, adjacency)
            delivery.draw(request)
            del source, request
    made = delivery.release
    print_notes(notes, output.quiet)
    print_released(delivery.release, ledger.request_id)
    if out is not None:
        save(made.to_json(indent=2), out)
    if shape == "json":
        print_json(made.to_dict())
    else:
        print_text(str(made), heading=True)
