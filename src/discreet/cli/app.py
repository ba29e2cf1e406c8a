"""The program: its commands, and the one way out.

A complaint is one line on standard error, and no password of a connection URL is in it. The exit code is 0 after
success, 2 after bad use, 1 after a failure, and 130 after Ctrl-C. Everything that is given as a number travels as text,
so that 0.1 is exactly one tenth.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from discreet import __version__
from discreet.cli import analysis, budget, evidence, select
from discreet.cli.complain import INTERRUPTED, SUCCESS, explained
from discreet.cli.output import flush, print_text

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> int:
    """Runs the command line on the arguments of the process.

    Returns
    -------
    int
        The exit code.
    """
    try:
        # Not standalone, so that the errors arrive here and none is printed in another form.
        code = typer.main.get_command(app).main(args=sys.argv[1:], prog_name="discreet", standalone_mode=False)
        flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return explained(error)
    return int(code or SUCCESS)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def discreet(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""


app.command("select", short_help="Release the k items that score highest.", epilog=select.HELP)(select.select)
app.add_typer(budget.app, name="budget", short_help="Keep a privacy budget in a file.", epilog=budget.HELP)
app.command("plan", short_help="Tell which epsilon a release needs.", epilog=analysis.PLAN_HELP)(analysis.plan)
app.command("study", short_help="Compare all mechanisms on score vectors.", epilog=analysis.STUDY_HELP)(analysis.study)
app.command("verify", short_help="Verify epsilon exactly.", epilog=evidence.VERIFY_HELP)(evidence.verify)
app.command("audit", short_help="Audit the sampler by many draws.", epilog=evidence.AUDIT_HELP)(evidence.audit)
