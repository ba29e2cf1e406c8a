"""The options that several commands share, with what a shell may complete them to.

Everything travels as text, so that 0.1 is exactly one tenth; `values` turns it into what the library takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from discreet.cli.stdin import INPUT_FORMATS
from discreet.mechanisms.registry import MECHANISMS
from discreet.noise import NOISES
from discreet.privacy import ADJACENCIES

TABLE_OR_JSON = ("table", "json")


def completed(names: Iterable[str]) -> Callable[[], list[str]]:
    """What a shell asks for the values of an option."""
    return lambda: list(names)


def choices(names: Iterable[str]) -> str:
    """The values of an option in a sentence: a, b or c."""
    *first, last = names
    return f"{', '.join(first)} or {last}"


KOption = Annotated[str, typer.Option("-k", metavar="K", help="How many items to release.")]
SmallKOption = Annotated[str | None, typer.Option("-k", metavar="K", help="How many items are released.")]
ItemOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help='The column of the items. By default "item", or the first of two; with --user there is no default.',
    ),
]
ScoreOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help='The column of the scores. By default "score", or the second of two.'),
]
SensitivityOption = Annotated[
    str | None,
    typer.Option(
        metavar="DOWN,UP",
        help="How far adding one user can move a score down and up. By default 0,1; events know their own.",
    ),
]
AdjacencyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"What may differ by one user: {choices(ADJACENCIES)}.",
        autocompletion=completed(ADJACENCIES),
    ),
]
MechanismOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"How to draw: {', '.join(MECHANISMS)}. By default canonical.",
        autocompletion=completed(MECHANISMS),
    ),
]
GammaOption = Annotated[
    str | None,
    typer.Option(metavar="G", help="For canonical: the weight of the worst item taken, 0 to 1. By default 1/2."),
]
NoiseOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"For all but joint: {', '.join(NOISES)}. By default gumbel, with one-shot exponential.",
        autocompletion=completed(NOISES),
    ),
]
CeilOption = Annotated[
    bool, typer.Option("--ceil", help="For canonical: round losses up to multiples of the sensitivity.")
]
InputFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With - for FILE: what standard input holds, {choices(INPUT_FORMATS)}. By default csv.",
        autocompletion=completed(INPUT_FORMATS),
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"How to print: {choices(TABLE_OR_JSON)}. By default table.",
        autocompletion=completed(TABLE_OR_JSON),
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress: only the result and errors.")]
JobsOption = Annotated[str | None, typer.Option(metavar="N", help="How many processes. By default one a core.")]
