"""The program: its commands, and the one way out.

A complaint is one line on standard error, and no password of a connection URL is in it. The exit code is 0 after
success, 2 after bad use, 1 after a failure, and 130 after Ctrl-C. Everything that is given as a number travels as text,
so that 0.1 is exactly one tenth. A command is imported when it is called, or when all are listed.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Annotated, Any

import typer

from discreet import __version__
from discreet.cli.commands import TextGroup
from discreet.cli.errors import INTERRUPTED, SUCCESS, explained
from discreet.cli.output import flush, print_text

HELP = """
\b
Exit codes:
  0    success
  1    a failure: the budget is spent, a query or a disk fails, a verification finds a fault
  2    bad use: an option, a column or a file that cannot be
  130  Ctrl-C

\b
Examples:
  discreet select scores.csv -k 10 --epsilon 1
  discreet select ratings.parquet --user user_id --item movie_id \\
    --domain movies.csv:movie_id --label title -k 20 --epsilon 1
  discreet plan public.csv -k 10
  discreet budget init budget.db --epsilon 3 --unit "users of ratings"
"""

MODULES = {
    "select": "select", "budget": "budget", "plan": "analysis", "study": "analysis",
    "verify": "evidence", "audit": "evidence",
}  # fmt: skip
"""Where each command is."""


def main() -> int:
    """Runs the command line on the arguments of the process.

    Returns
    -------
    int
        The exit code.
    """
    # What comes before, Python's start and the modules that are imported above, sees no data.
    begun, args = time.monotonic(), sys.argv[1:]
    try:
        # Not standalone, so that the errors arrive here and none is printed in another form.
        code = program(args).main(args=args, prog_name="discreet", standalone_mode=False, obj=begun)
        flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return explained(error)
    return int(code or SUCCESS)


def program(args: list[str]) -> Any:
    """The commands: the one that is called, or else all of them."""
    one = args[0] if args and args[0] in MODULES else None
    app = typer.Typer(
        cls=TextGroup,
        add_completion=one is None,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=HELP)(discreet)
    for module in dict.fromkeys(MODULES.values() if one is None else [MODULES[one]]):
        import_module(f"discreet.cli.{module}").add_to(app)
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"discreet {__version__}")
        raise typer.Exit


def discreet(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""
