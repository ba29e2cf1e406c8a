"""The program: `app`, whose commands are imported when they are called, and the one way out.

An error is one line on standard error, and no password of a connection URL is in it. The exit code is 0 after success,
2 after bad use, 1 after a failure, and 130 after Ctrl-C. Everything that is given as a number travels as text, so that
0.1 is exactly one tenth.

`app` is an ordinary Typer application: `typer.testing.CliRunner().invoke(app, ["select", ...])` runs it in a test.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet import __version__
from discreet.cli.errors import INTERRUPTED, SUCCESS, report_error
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
    "select": "select", "check": "check", "sketch": "sketch", "plan": "analysis", "study": "analysis",
    "verify": "evidence", "audit": "evidence", "budget": "budget", "statement": "statement",
    "publish": "publish",
}  # fmt: skip
"""Which module of this package has each command, in an `app` of its own."""


class Program(TyperGroup):
    """A group that imports a command when it is called or listed, and tells errors in the words of this program."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the help."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        if cmd_name in MODULES and cmd_name not in self.commands:
            module = import_module(f"discreet.cli.{MODULES[cmd_name]}")
            self.commands.update(typer.main.get_group(module.app).commands)
        return super().get_command(ctx, cmd_name)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command, and ends the process by its exit code unless `standalone_mode` is off."""
        # What comes before, Python's start and the modules that are imported above, sees no data.
        context = {"obj": time.monotonic(), **extra}
        try:
            # Not standalone, so that the errors arrive here and none is printed in another form.
            code = int(super().main(args, prog_name, complete_var, False, windows_expand_args, **context) or SUCCESS)
            flush()
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception as error:
            code = report_error(error, sys.argv[1:] if args is None else args)
        if standalone_mode:
            sys.exit(code)
        return code


app = typer.Typer(
    name="discreet",
    cls=Program,
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
    return int(app(prog_name="discreet", standalone_mode=False))


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"discreet {__version__}")
        raise typer.Exit


@app.callback(epilog=HELP, invoke_without_command=True)
def discreet(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())
