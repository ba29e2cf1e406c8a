"""`discreet plan` and `discreet study`: how good a release will be, from scores that need no protection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.evidence import bar
from discreet.cli.options import as_count, as_jobs, as_sensitivity
from discreet.cli.output import OutputError, check_out, print_text, save
from discreet.errors import InvalidValueError
from discreet.privacy import ADJACENCIES, check_adjacency
from discreet.sources.files import file_source

PLAN_HELP = """
\b
Examples:
  discreet plan scores.csv -k 10
  discreet plan scores.csv -k 10 --goal good --probability 0.9 --epsilon 0.5
  discreet plan films.csv -k 5 --item title --score fans --out plan.html
"""

STUDY_HELP = """
\b
Examples:
  discreet study --out report
  discreet study GENTLE STEPS --out report --jobs 2
  discreet study --data vectors --out report --full
"""


def plan(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Scores that need no protection: .npy, .csv, .tsv, .json or .parquet.")
    ],
    k: Annotated[str, typer.Option("-k", metavar="K", help="How many items are to be released.")],
    goal: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="What is good enough: top, the exact top-k; optimal, any of equal scores; great, the best tenth of k "
            "and none beyond 11/10 of it; good, the best hundredth and none beyond 3/2.",
        ),
    ] = "top",
    probability: Annotated[str, typer.Option(metavar="P", help="How often the goal must be reached.")] = "0.95",
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="Also tell what each mechanism reaches with this one.")
    ] = None,
    item: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the items, as for select.")] = None,
    score: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the scores, as for select.")
    ] = None,
    sensitivity: Annotated[
        str | None, typer.Option(metavar="DOWN,UP", help="How far adding one user can move a score. By default 0,1.")
    ] = None,
    adjacency: Annotated[
        str, typer.Option(metavar="NAME", help=f"What may differ by one user: {' or '.join(ADJACENCIES)}.")
    ] = "add-remove",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with the curves: a name that ends in .html.")
    ] = None,
) -> None:
    """Tells which epsilon and which mechanism a release needs, from scores that need no protection.

    What it prints is computed from the scores, so it is NOT private: use last year's published counts, a sample that
    may be shown, or made-up scores of the same kind.
    """
    from discreet.progress import stage
    from discreet.study.plan import planned

    count = as_count(k)
    check_adjacency(adjacency)
    limits = None if sensitivity is None else as_sensitivity(sensitivity)
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(f"out must be a page, with a name that ends in .html, not {str(out)!r}")
    check_out(out, {"scores": [file]})
    source = file_source(file, item, score)
    with stage("computing what each mechanism needs"):
        found = planned(
            source, count, goal=goal, probability=probability, epsilon=epsilon,
            sensitivity=limits, adjacency=adjacency, name=Path(file).name,
        )  # fmt: skip
    if out is not None:
        save(found.page(), out)
    print_text(str(found))


def study(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES]...", help="Which vectors; by default all.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder of vectors NAME.nD.npy. By default made-up vectors are used."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Also what takes long: draws for every vector, and joint on scores that are not whole."
        ),
    ] = False,
    jobs: Annotated[str | None, typer.Option(metavar="N", help="How many processes. By default one a core.")] = None,
) -> None:
    """Compares all mechanisms on score vectors, and writes a page with charts, and the figures and tables as files.

    What it computes is NOT private: it is for vectors that need no protection. A study that was stopped goes on from
    what it had.
    """
    from discreet.study.run import study as studied
    from discreet.study.tasks import planned
    from discreet.study.vectors import found, made

    processes = as_jobs(jobs)
    if out.exists() and not out.is_dir():
        raise InvalidValueError(f"out must be a directory, not {str(out)!r}, a file")
    vectors = made(names or []) if data is None else found(data, names or [])
    try:
        files = studied(planned(vectors, full), out, jobs=processes, progress=lambda total: bar("studying", total))
    except OSError as error:
        raise OutputError(f"writing to {str(out)!r} fails: {error.strerror}") from None
    print_text(f"wrote {files[0]} and {len(files) - 1} figures and tables beside it")
