"""`discreet verify` and `discreet audit`: the evidence that epsilon holds, made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.app import FAILURE, SUCCESS
from discreet.cli.options import (
    AdjacencyOption,
    JobsOption,
    OutputOptions,
    SmallKOption,
    list_given,
    make_option,
    parse_adjacency,
    parse_count,
    parse_format,
    parse_jobs,
    parse_mechanism,
    parse_numbers,
    spread,
)
from discreet.cli.output import print_json, print_text, progress_bar
from discreet.errors import InvalidValueError
from discreet.jobs import show_progress
from discreet.mechanisms.registry import to_dict
from discreet.publish.options import MechanismOptions, ReleaseOptions

if TYPE_CHECKING:
    from discreet.evidence.number_rows import NumberVerdict
    from discreet.evidence.report import Failure, Verification

VERIFY_HELP = """
\b
Examples:
  discreet verify --all
  discreet verify --mechanism canonical --noise laplace --gamma 1/3
  discreet verify --mechanism one-shot --noise exponential -k 2 --epsilon 0.5
  discreet verify --scores 3,2,2,0 --scores 1,1,0,0 -k 2 --format json
"""

AUDIT_HELP = """
\b
Examples:
  discreet audit
  discreet audit --mechanism one-shot -k 1 --draws 5000
  discreet audit --shortfall 1 --draws 2000
  discreet audit --scores 2,1,0 --neighbour 2,1,1 -k 1 --epsilon 0.5 --draws 1000 --confidence 0.99 --quiet
"""

app = typer.Typer(rich_markup_mode=None)


@app.command("verify", short_help="Verify epsilon exactly.", epilog=VERIFY_HELP)
@spread()
def verify(
    mechanism: MechanismOptions,
    output: OutputOptions,
    every: Annotated[
        bool, typer.Option("--all", help="Verify every mechanism, with every noise and several gammas.")
    ] = False,
    k: SmallKOption = None,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The budget of each release.")] = "1",
    scores: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="A vector of counts to verify on, more than once for more; 2 to 6 items."),
    ] = None,
    adjacency: Annotated[str | None, make_option(ReleaseOptions, "adjacency", more="By default both.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Many more inputs, which takes hours.")] = False,
    jobs: JobsOption = None,
) -> int:
    """Verify epsilon exactly: compute the law of a release for small inputs and all their neighbours.

    The worst log ratio of two probabilities must not exceed epsilon, no Renyi divergence may exceed the stated zCDP,
    and every probability must be the one that the definition gives. The exit code is 1 where something is not so, and
    the inputs are named. "Reachable" is how close to epsilon the best known inputs come.
    """
    from discreet.evidence.verify import as_report, examine_each, plan

    chosen = None if every else parse_mechanism(mechanism)
    shape = parse_format(output)
    if every and list_given(mechanism):
        raise InvalidValueError("all must be left out with a mechanism or one of its options")
    processes = parse_jobs(jobs)
    tasks = plan(
        chosen,
        None if k is None else parse_count(k),
        epsilon=epsilon,
        scores=[parse_numbers(vector, "scores") for vector in scores] if scores else None,
        adjacency=None if adjacency is None else parse_adjacency(adjacency),
        deep=deep,
    )
    verdicts = []
    with show_progress(not output.quiet), progress_bar("verifying", len(tasks)) as step:
        for verdict in examine_each(tasks, processes):
            verdicts.append(verdict)
            step()
    report = as_report(verdicts)
    if shape == "json":
        print_json(_verification_to_dict(report))
    else:
        print_text(str(report), heading=True)
    return SUCCESS if report.holds else FAILURE


def _verification_to_dict(report: Verification) -> dict[str, Any]:
    """Return a report in terms of JSON; counts, shortfalls, groups and discovery are there where all is verified."""
    verdicts = [
        {
            "mechanism": to_dict(verdict.mechanism),
            "holds": verdict.holds,
            "pairs": verdict.pairs,
            "worst": verdict.worst,
            "worst_pair": str(verdict.worst_pair),
            "renyi": verdict.renyi,
            "renyi_pair": str(verdict.renyi_pair),
            "reachable": None if verdict.witness is None else verdict.witness.share,
            "failures": _list_failures(verdict.failures),
        }
        for verdict in report.verdicts
    ]

    def row(verdict: Any, what: dict[str, Any], figures: dict[str, float]) -> dict[str, Any]:
        judged = {"holds": verdict.holds, "pairs": verdict.pairs, "worst": verdict.worst}
        return {
            **what,
            "adjacency": verdict.adjacency,
            **judged,
            **figures,
            "failures": _list_failures(verdict.failures),
        }

    def selection(verdict: NumberVerdict) -> dict[str, Any]:
        return {"mechanism": None if verdict.mechanism is None else to_dict(verdict.mechanism)}

    counts = [row(each, selection(each), {"counts": float(each.counts)}) for each in report.counts]
    shortfalls = [row(each, selection(each), {"shortfall": float(each.shortfall)}) for each in report.shortfalls]
    groups = [row(each, {"each_user": each.each_user}, {"renyi": each.renyi}) for each in report.groups]
    discovery = [
        {
            "method": verdict.tables.method,
            "max_items_per_user": verdict.tables.items,
            "each_user": verdict.tables.each_user,
            "adjacency": verdict.tables.adjacency,
            "threshold": verdict.tables.threshold,
            "holds": verdict.holds,
            "pairs": verdict.pairs,
            "kept": verdict.kept,
            "worst": verdict.worst,
            "failures": _list_failures(verdict.failures),
        }
        for verdict in report.found
    ]
    more = {"counts": counts, "shortfalls": shortfalls, "groups": groups, "discovery": discovery}
    return {
        "holds": report.holds,
        "pairs": report.pairs,
        "verdicts": verdicts,
        **{name: rows for name, rows in more.items() if rows},
    }


def _list_failures(found: list[Failure]) -> list[dict[str, str]]:
    return [{"check": failure.check, "what": failure.what} for failure in found]


@app.command("audit", short_help="Audit the sampler by many draws.", epilog=AUDIT_HELP)
@spread()
def audit(
    mechanism: MechanismOptions,
    output: OutputOptions,
    k: SmallKOption = None,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The budget that each release promises.")] = "1",
    scores: Annotated[str | None, typer.Option(metavar="A,B,...", help="Counts of users for 2 to 26 items.")] = None,
    neighbour: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="With --scores: the same counts with one user changed.")
    ] = None,
    adjacency: AdjacencyOption = "add-remove",
    shortfall: Annotated[
        str | None, typer.Option(metavar="E", help="Release a shortfall too, which costs this beside the budget.")
    ] = None,
    draws: Annotated[
        str,
        typer.Option(
            metavar="N", help="The number of releases of each input to draw; of the longer one it is twice as many."
        ),
    ] = "50000",
    confidence: Annotated[
        str, typer.Option(metavar="P", help="The probability that a right sampler is not accused.")
    ] = "0.999",
) -> int:
    """Audit the sampler as an outsider would, by the counts of many releases of two neighbouring inputs.

    The command prints a lower bound on the epsilon that was spent, and whether the counts fit the definition. Without
    --scores a longer input is drawn from too. The exit code is 1 where a violation is found.
    """
    from discreet.evidence.audit import audit as run_audit

    shape = parse_format(output)
    with show_progress(not output.quiet):
        found = run_audit(
            parse_mechanism(mechanism),
            None if k is None else parse_count(k),
            epsilon=epsilon,
            scores=None if scores is None else parse_numbers(scores, "scores"),
            neighbour=None if neighbour is None else parse_numbers(neighbour, "neighbour"),
            adjacency=parse_adjacency(adjacency),
            shortfall=shortfall,
            draws=parse_count(draws, "draws"),
            confidence=confidence,
            progress=lambda total: progress_bar("drawing", total),
        )
    if shape == "json":
        pair = found.pair
        print_json(
            {
                "mechanism": to_dict(found.mechanism),
                "holds": found.holds,
                "scores": [str(score) for score in pair.scores],
                "neighbour": [str(score) for score in pair.neighbour],
                "k": pair.k,
                "epsilon": str(pair.epsilon),
                "adjacency": pair.adjacency,
                "shortfall": None if found.shortfall is None else str(found.shortfall),
                "draws": found.draws,
                "confidence": str(found.confidence),
                "spent": found.spent,
                "fits": found.fits,
                "longer": None if found.longer is None else [str(score) for score in found.longer.scores],
            }
        )
    else:
        print_text(str(found))
    return SUCCESS if found.holds else FAILURE
