"""The program: `app`, which imports a command when it is called, and the one way in which errors leave it.

An error is one line on standard error, without the password of a connection URL; with `--log json` it is an event of
the log. The exit code tells the cause: `EXIT_CODES` has one for each code of an error that a scheduler may tell apart.

`app` is an ordinary Typer application: `typer.testing.CliRunner().invoke(app, ["select", ...])` runs it in a test.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet import __version__
from discreet.cli.output import JSON_LOG, RED, OutputError, apply_style, print_event, print_text
from discreet.errors import Error, nearest
from discreet.text import printable

SUCCESS, FAILURE, BAD_USE, BUDGET_SPENT, ENGINE_FAILED, MIXED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

EXIT_CODES = {
    "wrong-usage": BAD_USE,
    "missing-extra": BAD_USE,
    "budget-spent": BUDGET_SPENT,
    "engine": ENGINE_FAILED,
    "interrupted": INTERRUPTED,
}
"""The exit code of each code of an error; those of all others are `FAILURE`."""

LOG_STREAMS = {"publish": "stdout", "select": "stderr", "sketch": "stderr"}
"""The commands that release, and where `--log json` goes: standard output is for the list of select and sketch."""

HELP = """
\b
Exit codes:
  0    success
  1    another failure: of a ledger or a disk, or a verification that finds a fault
  2    wrong usage: an option, a column or a file that cannot be
  3    the budget is spent: the release does not fit
  4    an engine or the network fails
  5    some charts of publish failed, for different reasons; for one reason, its code
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
    "publish": "publish", "publish correct": "publish", "publish withdraw": "publish",
}  # fmt: skip
"""The module of this package that has each command, in an `app` of its own."""


class Program(TyperGroup):
    """A group that imports a command when it is called or listed, and prints errors in the form of this program."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(MODULES)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the first argument, or of the first two where they name one, with the rest."""
        if " ".join(args[:2]) in MODULES and len(args) > 1:
            args = [" ".join(args[:2]), *args[2:]]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None."""
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
        """Run a command, and end the process by its exit code unless `standalone_mode` is off."""
        # The clock of --pad-to starts here: the start of Python and the imports above see no data.
        context = {"obj": time.monotonic(), **extra}
        arguments = list(sys.argv[1:] if args is None else args)
        # Errors of the parser are events of the log too, so the option is found before the parser runs.
        is_json = "--log=json" in arguments or ("--log", "json") in pairwise(arguments)
        logged = JSON_LOG.set(LOG_STREAMS.get(arguments[0]) if is_json else None)
        try:
            # In standalone mode the parser would print errors in its own form.
            status = int(super().main(args, prog_name, complete_var, False, windows_expand_args, **context) or SUCCESS)
            # An error of the last write is reported here; when Python ends, it cannot be.
            if getattr(sys, "stdout", None) is not None:
                sys.stdout.flush()
        except KeyboardInterrupt:
            status = report_error(typer.Abort(), arguments)
        except Exception as error:
            status = report_error(error, arguments)
        finally:
            JSON_LOG.reset(logged)
        if standalone_mode:
            sys.exit(status)
        return status


app = typer.Typer(
    name="discreet",
    cls=Program,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> int:
    """Run the command line on the arguments of the process.

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
    """Release the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Print an error of the program in one line and return its exit code.

    Parameters
    ----------
    error
        The error.
    arguments
        The arguments that the program was called with.
    """
    code = find_code(error)
    status = EXIT_CODES.get(code, FAILURE)
    if isinstance(error, typer.Abort):
        print_event("error", code=code, exit=status, error="interrupted")
        return status
    if isinstance(error, Error | OutputError):
        message = str(error)
    elif code == "wrong-usage":
        message = _describe_usage_error(error, arguments)
    # Errors of files are handled at the reader and the writer, so this is standard output.
    elif isinstance(error, OSError):
        # The buffered rest has nowhere to go, and Python would try to write it once more at its end.
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            return status
        print_traceback(error)
        message = f"writing to standard output fails: {error.strerror}"
    else:
        print_traceback(error)
        message = describe_error(error)
    line = printable(hide_urls(" ".join(message.split())))
    with suppress(OSError):
        if JSON_LOG.get():
            print_event("error", code=code, exit=status, error=line)
        elif getattr(sys, "stderr", None) is not None:
            print(f"{apply_style('discreet:', RED, sys.stderr)} {line}", file=sys.stderr, flush=True)
    return status


def find_code(error: Exception) -> str:
    """Return the cause of an error in one word, for programs."""
    if isinstance(error, typer.Abort):
        return "interrupted"
    if isinstance(error, Error | OutputError):
        return error.code
    # The errors of the parser have no public base class before Typer 0.27.
    if callable(getattr(error, "format_message", None)):
        return "wrong-usage"
    return "output" if isinstance(error, OSError) else "unexpected"


def join_exit_codes(errors: Iterable[Exception]) -> int:
    """Return the exit code of a run in which charts failed: that of the one cause, or `MIXED` for several."""
    causes = {EXIT_CODES.get(find_code(error), FAILURE) for error in errors}
    return SUCCESS if not causes else causes.pop() if len(causes) == 1 else MIXED


def _describe_usage_error(error: Any, arguments: Sequence[str]) -> str:
    """Return an error of the parser in our form: the argument, what was given, and an example or the help to read."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    example = None if context is None else first_example(context.command.epilog)
    if type(error).__name__ == "MissingParameter" and parameter is not None and example:
        name = parameter.metavar if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
        return f"{name} is missing; for example: {example}"
    if context is not None:
        called = context.command_path
    else:
        called = f"discreet {arguments[0]}" if arguments and arguments[0].isalpha() else "discreet"
    # The suggestions of the parser, and their wording, differ between its versions; ours replace them.
    text = re.split(r"\.? (?:Did you mean|\(Possible options)", error.format_message())[0].rstrip(".")
    near = None
    unknown = re.match("No such command '(.+?)'", str(getattr(error, "message", "")))
    if unknown and context is not None:
        near = nearest(unknown[1], context.command.list_commands(context), private=False)
    elif type(error).__name__ == "NoSuchOption" and context is not None:
        options = [name for each in context.command.params for name in each.opts]
        near = nearest(error.option_name, options, private=False)
    hint = "" if near is None else f" (did you mean {near}?)"
    return f"{text[:1].lower()}{text[1:]}{hint}; see '{called} --help'"


def first_example(text: str | None) -> str | None:
    """Return the first command line in a help text."""
    lines = (line.strip() for line in (text or "").splitlines())
    return next((line for line in lines if line.startswith("discreet ")), None)


def describe_error(error: Exception) -> str:
    """Return an error in one line that may be shown: of an error that is not ours, only its type."""
    if isinstance(error, Error):
        return printable(hide_urls(" ".join(str(error).split())))
    hint = "DISCREET_DEBUG=1 shows the traceback, which may contain private data"
    return f"an internal error occurred ({type(error).__name__}); {hint}"


def print_traceback(error: Exception) -> None:
    """Print the traceback of an error if DISCREET_DEBUG asks for it."""
    if os.environ.get("DISCREET_DEBUG") == "1" and getattr(sys, "stderr", None) is not None:
        import traceback

        print(hide_urls("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def hide_urls(text: str) -> str:
    """Return a text without what follows the scheme of a URL, which may hold a password, in whole or in part."""
    return re.sub(r"(\w://)(?:.*@)?\S*?(?=['\")}\],;]*(?:\s|$))", r"\1...", text)
