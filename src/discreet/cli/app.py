"""The program: `app`, whose commands are imported when they are called, and the one way out.

An error is one line on standard error, and no password of a connection URL is in it. The exit code is 0 after success,
2 after bad use, 1 after a failure, and 130 after Ctrl-C. Everything that is given as a number travels as text, so that
0.1 is exactly one tenth.

`app` is an ordinary Typer application: `typer.testing.CliRunner().invoke(app, ["select", ...])` runs it in a test.
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet import __version__
from discreet.cli.output import RED, OutputError, apply_style, flush, print_text
from discreet.errors import Error
from discreet.sources.column_hints import nearest
from discreet.text import printable

SUCCESS, FAILURE, BAD_USE, INTERRUPTED = 0, 1, 2, 130


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Prints what went wrong when the program was called with these arguments, and returns the exit code."""
    if isinstance(error, Error):
        # What an engine or a ledger cannot do is also a RuntimeError; all else is about what was given.
        return _print_error(str(error), FAILURE if isinstance(error, RuntimeError) else BAD_USE)
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    # The parser's errors have their names in common, but no public base class before Typer 0.27.
    if callable(getattr(error, "format_message", None)):
        return _print_error(_describe_usage_error(error, arguments), BAD_USE)
    if isinstance(error, OutputError):
        return _print_error(str(error), FAILURE)
    # Files have been dealt with where they are read and written, so this is standard output.
    if isinstance(error, OSError):
        return _report_output_error(error)
    return _report_bug(error)


def _describe_usage_error(error: Any, arguments: Sequence[str]) -> str:
    """An error of the parser in our form: the argument, what was given, and what to type or where to read on."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    command = _name_command(arguments) if context is None else context.command_path
    example = None if context is None else first_example(context.command.epilog)
    if type(error).__name__ == "MissingParameter" and parameter is not None and example:
        name = parameter.metavar if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
        return f"{name} is missing; for example: {example}"
    # The parser's own suggestions differ between versions, and so does how they are worded.
    text = re.split(r"\.? (?:Did you mean|\(Possible options)", error.format_message())[0].rstrip(".")
    return f"{text[:1].lower()}{text[1:]}{_suggest_name(error, context)}; see '{command} --help'"


def first_example(text: str | None) -> str | None:
    """The first command line in a help text."""
    lines = (line.strip() for line in (text or "").splitlines())
    return next((line for line in lines if line.startswith("discreet ")), None)


def _suggest_name(error: Any, context: Any) -> str:
    """The option or the command that is most likely meant, in brackets, or nothing."""
    command = getattr(context, "command", None)
    unknown = re.match("No such command '(.+?)'", str(getattr(error, "message", "")))
    if command is None or not (unknown or type(error).__name__ == "NoSuchOption"):
        return ""
    options = [name for parameter in command.params for name in parameter.opts]
    given, names = (unknown[1], command.list_commands(context)) if unknown else (error.option_name, options)
    near = nearest(given, names, private=False)
    return "" if near is None else f" (did you mean {near}?)"


def _name_command(arguments: Sequence[str]) -> str:
    """The command that was called, for errors that do not know it."""
    return f"discreet {arguments[0]}" if arguments and arguments[0].isalpha() else "discreet"


def _report_output_error(error: OSError) -> int:
    # What is still buffered has nowhere to go, and Python would try once more at its end.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return FAILURE
    print_traceback(error)
    return _print_error(f"writing to standard output fails: {error.strerror}", FAILURE)


def describe_error(error: Exception) -> str:
    """What went wrong, on one line that may be shown: of what is not ours, only what kind it is."""
    if isinstance(error, Error):
        return printable(hide_urls(" ".join(str(error).split())))
    hint = "DISCREET_DEBUG=1 shows the traceback, which may contain private data"
    return f"an internal error occurred ({type(error).__name__}); {hint}"


def _report_bug(error: Exception) -> int:
    print_traceback(error)
    return _print_error(describe_error(error), FAILURE)


def print_traceback(error: Exception) -> None:
    """Prints where an error comes from, for those who have asked for it."""
    if os.environ.get("DISCREET_DEBUG") == "1" and getattr(sys, "stderr", None) is not None:
        print(hide_urls("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def _print_error(message: str, code: int) -> int:
    """Prints one line, whatever is in the message, and returns the exit code."""
    line = printable(hide_urls(" ".join(message.split())))
    if getattr(sys, "stderr", None) is not None:
        with suppress(OSError):
            print(f"{apply_style('discreet:', RED, sys.stderr)} {line}", file=sys.stderr, flush=True)
    return code


def hide_urls(text: str) -> str:
    """A text without what follows the scheme of a URL: there may be a password in it, in whole or in part."""
    return re.sub(r"(\w://)(?:.*@)?\S*?(?=['\")}\],;]*(?:\s|$))", r"\1...", text)


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
