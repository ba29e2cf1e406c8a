"""`discreet verify` and `discreet audit`: the evidence that epsilon holds, made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from discreet.cli.options import as_count, as_jobs, as_mechanism, as_numbers
from discreet.cli.output import print_text
from discreet.errors import InvalidValueError
from discreet.mechanisms.registry import MECHANISMS
from discreet.noise import NOISES
from discreet.privacy import ADJACENCIES

VERIFY_HELP = """
\b
Examples:
  discreet verify --all
  discreet verify --mechanism canonical --noise laplace --gamma 1/3
  discreet verify --mechanism one-shot --noise exponential -k 2 --epsilon 0.5
  discreet verify --scores 3,2,2,0 --scores 1,1,0,0 -k 2
"""

AUDIT_HELP = """
\b
Examples:
  discreet audit
  discreet audit --mechanism one-shot -k 1 --draws 5000
  discreet audit --scores 2,1,0 --neighbour 2,1,1 -k 1 --epsilon 0.5 --draws 1000 --confidence 0.99
"""

MechanismOption = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"Which mechanism: {', '.join(MECHANISMS)}. By default canonical.")
]
GammaOption = Annotated[str | None, typer.Option(metavar="G", help="For canonical: from 0 to 1. By default 1/2.")]
NoiseOption = Annotated[str | None, typer.Option(metavar="NAME", help=f"For all but joint: {', '.join(NOISES)}.")]
KOption = Annotated[str | None, typer.Option("-k", metavar="K", help="How many items are released.")]
CeilOption = Annotated[bool, typer.Option("--ceil", help="For canonical: round losses up.")]


def verify(
    every: Annotated[
        bool, typer.Option("--all", help="Verify every mechanism, with every noise and several gammas.")
    ] = False,
    mechanism: MechanismOption = None,
    noise: NoiseOption = None,
    gamma: GammaOption = None,
    ceil: CeilOption = False,
    k: KOption = None,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The budget of each release.")] = "1",
    scores: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="A vector of counts to verify on, more than once for more; 2 to 6 items."),
    ] = None,
    adjacency: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"{' or '.join(ADJACENCIES)}. By default both.")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Many more inputs, which takes hours.")] = False,
    jobs: Annotated[str | None, typer.Option(metavar="N", help="How many processes. By default one a core.")] = None,
) -> int:
    """Verifies epsilon exactly: computes the law of what is released for small inputs and all their neighbours.

    The worst log ratio of two probabilities must not exceed epsilon, and no Renyi divergence what the stated zCDP
    allows. The exit code is 1 where one does, and the pair of inputs is named.
    """
    from discreet.evidence.report import Verification
    from discreet.evidence.verify import each_examined, plan

    options = {"gamma": gamma, "noise": noise, "ceil": ceil or None}
    chosen = None if every else as_mechanism(mechanism or "canonical", options)
    if every and (mechanism is not None or any(value is not None for value in options.values())):
        raise InvalidValueError("all must be left out with a mechanism or one of its options")
    processes = as_jobs(jobs)
    tasks = plan(
        chosen,
        None if k is None else as_count(k),
        epsilon=epsilon,
        scores=[as_numbers(vector, "scores") for vector in scores] if scores else None,
        adjacency=adjacency,
        deep=deep,
    )
    verdicts = []
    with bar("verifying", len(tasks)) as step:
        for verdict in each_examined(tasks, processes):
            verdicts.append(verdict)
            step()
    report = Verification(verdicts)
    print_text(str(report))
    return 0 if report.holds else 1


def audit(
    mechanism: MechanismOption = None,
    noise: NoiseOption = None,
    gamma: GammaOption = None,
    ceil: CeilOption = False,
    k: KOption = None,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The budget that each release promises.")] = "1",
    scores: Annotated[str | None, typer.Option(metavar="A,B,...", help="Counts of users for 2 to 8 items.")] = None,
    neighbour: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="With --scores: the same counts with one user changed.")
    ] = None,
    adjacency: Annotated[str, typer.Option(metavar="NAME", help=f"{' or '.join(ADJACENCIES)}.")] = "add-remove",
    draws: Annotated[str, typer.Option(metavar="N", help="How many releases of each input to draw.")] = "20000",
    confidence: Annotated[
        str, typer.Option(metavar="P", help="The probability that a right sampler is not accused.")
    ] = "0.999",
) -> int:
    """Audits the sampler as an outsider would: many releases of two neighbouring inputs, and what their counts tell.

    It prints a lower bound on the epsilon that was spent, and whether the counts fit the exact law. The exit code is 1
    where a violation is found.
    """
    from discreet.evidence.audit import audit as audited

    found = audited(
        as_mechanism(mechanism or "canonical", {"gamma": gamma, "noise": noise, "ceil": ceil or None}),
        None if k is None else as_count(k),
        epsilon=epsilon,
        scores=None if scores is None else as_numbers(scores, "scores"),
        neighbour=None if neighbour is None else as_numbers(neighbour, "neighbour"),
        adjacency=adjacency,
        draws=as_count(draws, "draws"),
        confidence=confidence,
        progress=lambda total: bar("drawing", total),
    )
    print_text(str(found))
    return 0 if found.holds else 1


@contextmanager
def bar(name: str, total: int) -> Iterator[Callable[[], Any]]:
    """A progress bar on standard error, in a terminal only; gives what is to be called after each step."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)
        yield lambda: progress.advance(task)
