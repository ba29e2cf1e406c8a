"""What went wrong, in one line on standard error, and the exit code for it. No password of a URL is in it."""

from __future__ import annotations

import os
import re
import sys
import traceback
from contextlib import suppress
from typing import Any

from discreet.cli.output import OutputError
from discreet.errors import Error

SUCCESS, FAILURE, BAD_USE, INTERRUPTED = 0, 1, 2, 130

EXAMPLES = {"discreet select": "discreet select scores.csv -k 10 --epsilon 1"}
"""What to show where something that a command needs is missing."""


def explained(error: Exception) -> int:
    """Prints what went wrong and returns the exit code."""
    if isinstance(error, Error):
        # What an engine or a ledger cannot do is also a RuntimeError; all else is about what was given.
        return _complain(str(error), FAILURE if isinstance(error, RuntimeError) else BAD_USE)
    # Typer has its own copy of click or uses click's, by its version, so its errors are told by their shape.
    if callable(getattr(error, "format_message", None)):
        return _complain(_usage(error), BAD_USE)
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    if isinstance(error, OutputError):
        return _complain(str(error), FAILURE)
    # Files have been dealt with where they are read and written, so this is standard output.
    if isinstance(error, OSError):
        return _explained_output(error)
    return _explained_bug(error)


def _usage(error: Any) -> str:
    """An error of the parser in our form: the argument, what was given, and where to read on."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    command = _command() if context is None else context.command_path
    example = EXAMPLES.get(command)
    if type(error).__name__ == "MissingParameter" and parameter is not None and example:
        name = parameter.metavar if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
        return f"{name} is missing; for example: {example}"
    text = error.format_message().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}; see '{command} --help'"


def _command() -> str:
    """The command that was called, for errors that do not know it."""
    return next((command for command in EXAMPLES if command.split()[1] in sys.argv[1:2]), "discreet")


def _explained_output(error: OSError) -> int:
    # What is still buffered has nowhere to go, and Python would try once more at its end.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return FAILURE
    _trace(error)
    return _complain(f"writing to standard output fails: {error.strerror}", FAILURE)


def _explained_bug(error: Exception) -> int:
    _trace(error)
    hint = "DISCREET_DEBUG=1 shows the traceback, which may contain private data"
    return _complain(f"an internal error occurred ({type(error).__name__}); {hint}", FAILURE)


def _trace(error: Exception) -> None:
    if os.environ.get("DISCREET_DEBUG") == "1" and getattr(sys, "stderr", None) is not None:
        print(_without_urls("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def _complain(message: str, code: int) -> int:
    """Prints one line, whatever is in the message, and returns the exit code."""
    words = _without_urls(" ".join(message.split()))
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    if getattr(sys, "stderr", None) is not None:
        with suppress(OSError):
            print(f"discreet: {line}", file=sys.stderr, flush=True)
    return code


def _without_urls(text: str) -> str:
    """A text without what follows the scheme of a URL: there may be a password in it, in whole or in part."""
    return re.sub(r"(\w://)(?:.*@)?\S*?(?=['\")}\],;]*(?:\s|$))", r"\1...", text)
