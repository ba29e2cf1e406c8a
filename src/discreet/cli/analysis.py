"""`discreet plan` and `discreet study`: how good a release will be, from scores that need no protection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options as shared
from discreet.cli.events import (
    ByOption,
    DeltaOption,
    DiscoverOption,
    DiscoveryEpsilonOption,
    EachUserOption,
    GroupsOption,
    MaxGroupsOption,
    parse_discovery,
)
from discreet.cli.options import (
    EVENTS_ONLY,
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
    NameOption,
    ResolutionOption,
    UserOption,
    ValueOption,
    WhereOption,
    check_input_format,
    gather_options,
    parse_adjacency,
    parse_choice,
    parse_count,
    parse_format,
    parse_jobs,
    parse_sensitivity,
    refuse_options,
)
from discreet.cli.output import OutputError, check_out, print_json, print_notes, print_text, progress_bar, save
from discreet.cli.select import check_files, open_source
from discreet.cli.stdin import input_files, input_name, name_input
from discreet.errors import InvalidValueError
from discreet.mechanisms.registry import to_dict
from discreet.progress import show_progress, stage
from discreet.sketches import Sketch
from discreet.sources.base import Source
from discreet.sources.files import file_source, read_sketch
from discreet.sources.groups import GroupedSource

if TYPE_CHECKING:
    from discreet.analysis.comparison import Choice
    from discreet.discovery_terms import Discovered
    from discreet.study.plan import Plan

PLAN_HELP = """
\b
Examples:
  discreet plan scores.csv -k 10
  discreet plan scores.csv -k 10 --goal good --probability 0.9 --epsilon 0.5
  discreet plan scores.csv -k 10 --goal recall --probability 0.95 --share 0.8
  discreet plan curve.json -k 10 --goal recall --probability 0.9
  discreet plan films.csv -k 5 --item title --score fans --out plan.html
  discreet plan ratings.parquet --user user_id --item movie_id --domain movies.csv:movie_id \\
    -k 3 --goal recall --probability 0.9
  discreet plan - -k 10 --format json < scores.csv
  discreet plan --discover --delta 1e-8 --max-items-per-user 3 -k 20 --epsilon 1
"""

STUDY_HELP = """
\b
Examples:
  discreet study --out report
  discreet study GENTLE STEPS --out report --jobs 2
  discreet study --data vectors --out report --full --quiet
  discreet study --data films.csv --item title --score fans --out report
"""

_NO_COLUMNS = "made-up vectors have no columns"


app = typer.Typer(rich_markup_mode=None)


def _goals() -> list[str]:
    from discreet.analysis.goals import GOALS

    return list(GOALS)


def _check_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    """The scores must be named, unless only finding items is planned. Options have been parsed before this."""
    if not context.params.get("discover"):
        return check_files(context, files, PLAN_HELP)
    if files:
        raise InvalidValueError("FILE must be left out with discover: what items need to be found is told by no scores")
    return files


@app.command("plan", short_help="Tell which epsilon a release needs.", epilog=PLAN_HELP)
def plan(
    context: typer.Context,
    k: shared.KOption,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            callback=_check_files,
            show_default=False,
            help="Scores that need no protection: .npy, .csv, .tsv, .json or .parquet, or - for standard input. "
            "For scores that do need it: what 'discreet sketch' wrote. With --user, events that need none.",
        ),
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            "--goal",
            metavar="GOAL",
            help="What is good enough: top, the exact top-k; optimal, any of equal scores; great, the best tenth of k "
            "and none beyond 11/10 of it; good, the best hundredth and none beyond 3/2; recall, as much of the list "
            "right on average as --probability says, or --share of it so often.",
            autocompletion=_goals,
        ),
    ] = "top",
    probability: Annotated[str, typer.Option(metavar="P", help="How often the goal must be reached.")] = "0.95",
    share: Annotated[
        str | None, typer.Option(metavar="S", help="With --goal recall: the share of the list that must be right.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="Also tell what each mechanism reaches with this one.")
    ] = None,
    item: shared.ItemOption = None,
    score: shared.ScoreOption = None,
    user: UserOption = None,
    domain: DomainOption = None,
    where: WhereOption = None,
    value: ValueOption = None,
    clip: ClipOption = None,
    resolution: ResolutionOption = None,
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
    sensitivity: shared.SensitivityOption = None,
    adjacency: shared.PlanAdjacencyOption = None,
    form: shared.FormatOption = None,
    as_json: shared.JsonOption = False,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page with the curves: a name that ends in .html.")
    ] = None,
    quiet: shared.QuietOption = False,
    discover: DiscoverOption = False,
    delta: DeltaOption = None,
    max_items_per_user: Annotated[
        str | None,
        typer.Option(
            metavar="L",
            help="With --user: score at most L items of each user; by default several are tried for a histogram, and "
            "none otherwise. With --discover: how many items of a user count for finding them.",
        ),
    ] = None,
    discovery_epsilon: DiscoveryEpsilonOption = None,
) -> None:
    """Tells which epsilon and which mechanism a release needs, from scores that need no protection.

    What it prints is computed from the scores, so it is NOT private: use last year's published counts, a sample that
    may be shown, or made-up scores of the same kind. From a sketch it is as private as that, and says what it cost.
    From events it also tells what noise on all scores needs where users are held to few items, and what that loses.

    With --discover it needs no scores: it tells how many people an item that nobody listed needs to be found.
    """
    from discreet.study.plan import plan as make_plan

    count, shape = parse_count(k), parse_format(form, as_json, shared.TABLE_OR_JSON)
    terms = parse_discovery(gather_options(context, FINDING), max_items_per_user)
    if terms is not None or discover:
        _print_discovery(terms, count, epsilon, parse_adjacency(adjacency or "add-remove"), shape)
        return
    parse_choice("goal", goal, _goals())
    if adjacency is not None:
        parse_adjacency(adjacency)
    limits = None if sensitivity is None else parse_sensitivity(sensitivity)
    if out is not None and Path(out).suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(f"out must be a page, with a name that ends in .html, not {out!r}")
    options, grouping = gather_options(context, TABLE), gather_options(context, GROUPING)
    file = name_input(files, events=user is not None)
    check_input_format(file, input_format, events=user is not None)
    source_of: Callable[[Any], Any]
    if user is None:
        refuse_options({**options, **grouping}, EVENTS_ONLY, "without user")
        check_out(out, {"scores": input_files(file)})
        source_of = partial(_read_scores, item=item, score=score)
    else:
        from discreet.cli.events import prepare_events

        refuse_options({"score": score, "sensitivity": sensitivity}, SCORES_ONLY, "with user")
        source_of = prepare_events(file, user, item, adjacency or "add-remove", options, None, grouping, out)
    notes: list[str] = []
    with (
        show_progress(not quiet),
        open_source(file, input_format, source_of, notes) as scores,
        stage("computing what each mechanism needs"),
    ):
        found = make_plan(
            scores, count, goal=goal, probability=probability, share=share, epsilon=epsilon,
            sensitivity=limits, adjacency=adjacency, name=input_name(file, str(name)),
        )  # fmt: skip
    print_notes(notes, quiet)
    if out is not None:
        save(found.page(), out)
    if shape == "json":
        print_json(_plan_to_dict(found, scores))
    else:
        print_text(str(found), heading=True)


def _read_scores(path: str, item: str | None, score: str | None) -> Source:
    """The scores in a file, or a sketch of some."""
    return read_sketch(path, item, score) or file_source(path, item, score)


def _print_discovery(terms: Discovered | None, k: int, epsilon: str | None, adjacency: str, shape: str) -> None:
    """Prints how many people an item needs to be found."""
    if terms is None or epsilon is None:
        raise InvalidValueError("epsilon must be given with discover: how many people an item needs depends on it")
    found = terms.plan(k, epsilon, adjacency=adjacency)
    if shape == "json":
        print_json({"k": k, "adjacency": adjacency, "delta": str(found.delta), **found.to_dict()})
    else:
        print_text(f"The threshold is {found.threshold:,} people. {found.describe_threshold()}")


def _sketch_to_dict(sketch: Sketch, k: int) -> dict[str, Any]:
    """What is to know of the sketch behind a plan."""
    cost = str(sketch.guarantee.epsilon)
    return {"epsilon": cost, "ranks": list(sketch.ranks), "doubtful": sketch.is_doubtful(k)}


def _plan_to_dict(found: Plan, scores: Source | GroupedSource) -> dict[str, Any]:
    """What a plan says, in terms that JSON can hold; exact numbers are strings, as in a release, beside a float."""
    from discreet.exact.ball import float_above

    table, best = found.comparison, found.best
    sketch = scores if isinstance(scores, Sketch) else None
    return {
        "private": sketch is not None and sketch.private,
        "sketch": sketch and _sketch_to_dict(sketch, table.k),
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
        },
        "command": found.command,
        "other_k": found.other_k and {"k": found.other_k.k, "epsilon": str(found.other_k.epsilon)},
        "mechanisms": [
            {
                "mechanism": to_dict(choice.mechanism),
                **_bound_to_dict(choice),
                "needs": {goal: None if needed is None else str(needed) for goal, needed in choice.needs.items()},
                "decimals": {goal: None if each is None else float_above(each) for goal, each in choice.needs.items()},
                "reaches": choice.reaches and {goal: getattr(choice.reaches, goal) for goal in _goals()},
            }
            for choice in table.choices
        ],
        "curve": [{"epsilon": epsilon, **shares} for epsilon, shares in found.curve.items()],
    }


def _bound_to_dict(choice: Choice) -> dict[str, Any]:
    """How many items of a user are scored where that was tried, and how many of the list it alone loses."""
    bound = choice.bound
    return {} if bound is None else {"max_items_per_user": bound.max_items_per_user, "lost": float(bound.lost)}


@app.command("study", short_help="Compare all mechanisms on score vectors.", epilog=STUDY_HELP)
def study(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder to write to.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES]...", help="Which vectors; by default all.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="A folder of vectors NAME.nD.npy, a file of scores as for plan (.csv, .tsv, .json, .npy, .parquet), "
            "or what 'discreet sketch' wrote. By default made-up vectors are used.",
        ),
    ] = None,
    item: shared.ItemOption = None,
    score: shared.ScoreOption = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Also what takes long: draws for every vector, and joint on scores that are not whole."
        ),
    ] = False,
    jobs: shared.JobsOption = None,
    quiet: shared.QuietOption = False,
) -> None:
    """Compares all mechanisms on score vectors, and writes a page with charts, and the figures and tables as files.

    What it computes is NOT private: it is for vectors that need no protection. A study that was stopped goes on from
    what it had.
    """
    from discreet.study.run import study as studied
    from discreet.study.tasks import left_out_tasks, study_tasks
    from discreet.study.vectors import load_vectors, make_vectors

    processes, folder = parse_jobs(jobs), Path(out)
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"out must be a directory, not {str(folder)!r}, a file")
    if data is None:
        refuse_options({"item": item, "score": score}, dict.fromkeys(("item", "score"), _NO_COLUMNS), "without data")
    vectors = make_vectors(names or []) if data is None else load_vectors(Path(data), names or [], item, score)
    try:
        with show_progress(not quiet):
            files = studied(
                study_tasks(vectors, full),
                folder,
                jobs=processes,
                progress=lambda total: progress_bar("studying", total, in_lines=True),
                left_out=left_out_tasks(vectors, full),
            )
    except OSError as error:
        raise OutputError(f"writing to {str(folder)!r} fails: {error.strerror}") from None
    print_text(f"wrote {files[0]} and {len(files) - 1} figures and tables beside it")
