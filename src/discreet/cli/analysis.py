"""`discreet plan` and `discreet study`: how good a release will be, from scores that need no protection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.analysis.goals import GOALS
from discreet.cli.options import (
    ChartOption,
    InputFormatOption,
    JobsOption,
    KOption,
    OutputOptions,
    QuietOption,
    ScoreOptions,
    list_given,
    make_option,
    parse_adjacency,
    parse_choice,
    parse_count,
    parse_format,
    parse_jobs,
    parse_sensitivity,
    spread,
)
from discreet.cli.output import (
    OutputError,
    check_chart,
    check_ending,
    print_json,
    print_notes,
    print_text,
    progress_bar,
    save,
    save_chart,
)
from discreet.cli.select import check_files, files_argument, open_source, prepare_source
from discreet.cli.stdin import Input
from discreet.errors import InvalidValueError, MissingExtraError
from discreet.jobs import show_progress, stage
from discreet.mechanisms.discovery import describe_choice
from discreet.mechanisms.registry import to_dict
from discreet.publish.options import DiscoveryOptions, EventOptions, GroupOptions, ItemOptions, ReleaseOptions, option
from discreet.release.sketch import Sketch, read_sketch
from discreet.release.theme import check_matplotlib
from discreet.sources.base import GroupedSource, Source
from discreet.sources.files import file_source

if TYPE_CHECKING:
    from discreet.analysis.compare import Choice
    from discreet.study.plan import Plan

PLAN_HELP = """
\b
Examples:
  discreet plan scores.csv -k 10
  discreet plan scores.csv -k 10 --goal good --probability 0.9 --epsilon 0.5
  discreet plan scores.csv -k 10 --goal recall --probability 0.95 --share 0.8
  discreet plan curve.json -k 10 --goal recall --probability 0.9
  discreet plan films.csv -k 5 --item title --score fans --out plan.html
  discreet plan films.csv -k 5 --item title --score fans --chart plan.svg
  discreet plan ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    -k 3 --goal recall --probability 0.9
  discreet plan - -k 10 --format json < scores.csv
  discreet plan --discover --delta 1e-8 -k 20 --epsilon 1
  discreet plan --discover --delta 1e-8 --max-groups-per-user 2 -k 20 --epsilon 1
"""

STUDY_HELP = """
\b
Examples:
  discreet study --out report
  discreet study GENTLE STEPS --out report --jobs 2
  discreet study --data vectors --out report --full --quiet
  discreet study --data films.csv --item title --score fans --out report
"""

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True, eq=False, repr=False)
class GoalOptions:
    """The goal that a release is planned for, and how often it must be reached."""

    goal: str = option(
        "The goal: top, the exact top-k; optimal, any of equal scores; great, the best tenth of k and none "
        "beyond 11/10 of it; good, the best hundredth and none beyond 3/2; recall, as much of the list right on "
        "average as --probability says, or --share of it so often.",
        "GOAL",
        default="top",
        flags=("--goal",),
        choices=GOALS,
    )
    probability: str = option("The probability with which the goal must be reached.", "P", default="0.95")
    share: str | None = option("With --goal recall: the share of the list that must be right.", "S")
    epsilon: str | None = option("Also tell what each mechanism reaches with this one.", "E")


def _check_plan_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    """Raise unless FILE is given for a plan of scores or from a sketch, and left out for a plan of finding items."""
    if not context.params.get("discover"):
        return check_files(context, files)
    if files:
        raise InvalidValueError(
            "FILE must be left out with discover, which tells how many people an item needs and reads no scores; for a "
            "plan from a sketch of such items, leave out discover and its options: the sketch has the terms"
        )
    return files


@app.command("plan", short_help="Tell which epsilon a release needs.", epilog=PLAN_HELP)
@spread(without=["label", "kind", "spelling"])
def plan(
    k: KOption,
    events: EventOptions,
    items: ItemOptions,
    groups: GroupOptions,
    discovery: DiscoveryOptions,
    scores: ScoreOptions,
    output: OutputOptions,
    aim: GoalOptions,
    files: Annotated[
        list[str] | None,
        files_argument(
            "Scores that need no protection: .npy, .csv, .tsv, .json or .parquet, or - for standard input. For scores "
            "that do need it: what 'discreet sketch' wrote. With --user, events that need none.",
            _check_plan_files,
        ),
    ] = None,
    input_format: InputFormatOption = None,
    adjacency: Annotated[
        str | None,
        make_option(ReleaseOptions, "adjacency", more="By default add-remove, or that of a sketch."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page with the curves: a name that ends in .html.")
    ] = None,
    chart: ChartOption = None,
) -> None:
    """Tell which epsilon and which mechanism a release needs, from scores that need no protection.

    The plan is computed from the scores, so it is NOT private: use last year's published counts, a sample that may be
    shown, or made-up scores of the same kind. From a sketch it is as private as that, and says what it cost. From
    events it also tells what noise on all scores needs where users are held to few items, and what that loses; without
    --max-items-per-user several numbers of items are tried for a histogram.

    With --discover it needs no scores: it tells how many people an item that nobody listed needs to be found, and
    compares methods and parts of epsilon for it. A sketch of such items is planned by the terms that it was made with.
    """
    from discreet.cli.events import parse_discovery, parse_groups_per_user
    from discreet.study.plan import plan as make_plan

    count, shape = parse_count(k), parse_format(output)
    terms = parse_discovery(discovery, events.max_items_per_user)
    if terms is not None:
        neighbours = parse_adjacency(adjacency or "add-remove")
        if aim.epsilon is None:
            raise InvalidValueError("epsilon must be given with discover: how many people an item needs depends on it")
        if events.value is not None or list_given(groups):
            terms = terms.without_choice()
        compared = terms.compare(
            count, aim.epsilon, adjacency=neighbours, max_groups_per_user=parse_groups_per_user(groups)
        )
        needed = compared.planned
        if shape == "json":
            planned = describe_choice(needed)
            asked = {"k": count, "adjacency": neighbours, "delta": str(needed.delta)}
            print_json({**asked, **planned, "choices": compared.to_list()})
        else:
            print_text(f"The threshold is {needed.threshold:,} people. {needed.describe_threshold()}")
            print_text(f"{needed.describe_people()}\n\n{compared}")
        return
    parse_choice("goal", aim.goal, GOALS)
    if adjacency is not None:
        parse_adjacency(adjacency)
    sensitivity = parse_sensitivity(scores.sensitivity)
    if out is not None:
        check_ending(out, ("html", "htm"))
        check_matplotlib()
    file = Input.parse(files, input_format, events=events.user is not None)
    neighbours = adjacency or "add-remove"

    def read_scores(path: str, item: str | None, score: str | None) -> Source:
        return read_sketch(path, item, score) or file_source(path, item, score)

    open_table, _ = prepare_source(file, read_scores, events, items, discovery, groups, scores, neighbours, out)
    if chart is not None:
        check_chart(chart, {"input": file.files})
    notes: list[str] = []
    with (
        show_progress(not output.quiet),
        open_source(file, open_table, notes) as source,
        stage("computing what each mechanism needs"),
    ):
        found = make_plan(
            source, count, goal=aim.goal, probability=aim.probability, share=aim.share, epsilon=aim.epsilon,
            sensitivity=sensitivity, adjacency=adjacency, name=file.name(str(events.name)),
        )  # fmt: skip
    print_notes(notes, output.quiet)
    if out is not None:
        save(found.page(), out)
    if chart is not None:
        save_chart(found, chart)
    if shape == "json":
        print_json(_plan_to_dict(found, source))
    else:
        print_text(str(found), heading=True)


def _plan_to_dict(found: Plan, scores: Source | GroupedSource) -> dict[str, Any]:
    """Return a plan in terms of JSON; exact numbers are strings, as in a release, beside a float."""
    from discreet.exact.ball import float_above

    table, best, sketch = found.comparison, found.best, None
    if isinstance(scores, Sketch):
        cost = str(scores.guarantee.epsilon)
        sketch = {"epsilon": cost, "ranks": list(scores.ranks), "doubtful": scores.is_doubtful(table.k)}
    return {
        "private": isinstance(scores, Sketch) and scores.private,
        "sketch": sketch,
        "k": table.k,
        "d": found.d,
        "goal": found.goal,
        "probability": str(table.probability),
        "share": table.share and str(table.share),
        "adjacency": found.adjacency,
        "sensitivity": found.sensitivity.to_dict(),
        "recommended": {
            "mechanism": to_dict(best.mechanism),
            **_bound_to_dict(best),
            "epsilon": str(found.epsilon),
            "decimals": {"epsilon": float_above(found.epsilon)},
            "shortfall": found.shortfall and found.shortfall.to_dict(),
        },
        "command": found.command,
        **({} if found.discovery is None else {"discovery": describe_choice(found.discovery)}),
        "other_k": found.other_k and {"k": found.other_k.k, "epsilon": str(found.other_k.epsilon)},
        "mechanisms": [
            {
                "mechanism": to_dict(choice.mechanism),
                **_bound_to_dict(choice),
                "needs": {goal: None if needed is None else str(needed) for goal, needed in choice.needs.items()},
                "decimals": {goal: None if each is None else float_above(each) for goal, each in choice.needs.items()},
                "reaches": choice.reaches and {goal: getattr(choice.reaches, goal) for goal in GOALS},
            }
            for choice in table.choices
        ],
        "curve": [{"epsilon": epsilon, **shares} for epsilon, shares in found.curve.items()],
    }


def _bound_to_dict(choice: Choice) -> dict[str, Any]:
    """Return the contribution bound of a choice and the share of the list that it loses; nothing without a bound."""
    bound = choice.bound
    return {} if bound is None else {"max_items_per_user": bound.max_items_per_user, "lost": float(bound.lost)}


@app.command("study", short_help="Compare all mechanisms on score vectors.", epilog=STUDY_HELP)
def study(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder to write to.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES]...", help="The vectors to study; by default all.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder of vectors NAME.nD.npy, a file of scores as for plan (.csv, .tsv, .json, .npy, .parquet), "
            "or what 'discreet sketch' wrote. By default made-up vectors are used.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='The column of the items. By default "item", or the first of two.'),
    ] = None,
    score: Annotated[str | None, make_option(ScoreOptions, "score")] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Also what takes long: draws for every vector, and joint on scores that are not whole."
        ),
    ] = False,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Compare all mechanisms on score vectors, and write a page with charts, and the figures and tables as files.

    The result is NOT private: it is for vectors that need no protection. A study that was stopped goes on from the
    results that it had. Without matplotlib it writes the page and the tables, and no pictures.
    """
    from discreet.study.run import study as run_study
    from discreet.study.tasks import left_out_tasks, study_tasks
    from discreet.study.vectors import load_vectors, make_vectors

    processes, folder = parse_jobs(jobs), Path(out)
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"out must be a directory, not {str(folder)!r}, a file")
    if data is None:
        for name, column in (("item", item), ("score", score)):
            if column is not None:
                raise InvalidValueError(f"{name} must be left out without data: made-up vectors have no columns")
    vectors = make_vectors(names or []) if data is None else load_vectors(Path(data), names or [], item, score)
    can_draw = True
    try:
        check_matplotlib()
    except MissingExtraError as error:
        can_draw = False
        print_notes([f"{error}; the study goes on without them"], quiet)
    try:
        with show_progress(not quiet):
            files = run_study(
                study_tasks(vectors, full),
                folder,
                jobs=processes,
                progress=lambda total: progress_bar("studying", total, in_lines=True),
                left_out=left_out_tasks(vectors, full),
                draw=can_draw,
            )
    except OSError as error:
        raise OutputError(f"writing to {str(folder)!r} fails: {error.strerror}") from None
    print_text(f"wrote {files[0]} and {len(files) - 1} figures and tables beside it")
