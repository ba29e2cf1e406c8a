"""What went wrong, in one line on standard error, and the exit code for it. No password of a URL is in it."""

from __future__ import annotations

import os
import re
import sys
import traceback
from contextlib import suppress
from typing import Any

from discreet.cli.output import OutputError
from discreet.cli.terminal import RED, styled
from discreet.errors import Error
from discreet.sources.column_hints import nearest

SUCCESS, FAILURE, BAD_USE, INTERRUPTED = 0, 1, 2, 130


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
    """An error of the parser in our form: the argument, what was given, and what to type or where to read on."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    command = _command() if context is None else context.command_path
    example = None if context is None else first_example(context.command.epilog)
    if type(error).__name__ == "MissingParameter" and parameter is not None and example:
        name = parameter.metavar if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
        return f"{name} is missing; for example: {example}"
    # The parser's own suggestions differ between versions, and so does how they are worded.
    text = re.split(r"\.? (?:Did you mean|\(Possible options)", error.format_message())[0].rstrip(".")
    return f"{text[:1].lower()}{text[1:]}{_meant(error, context)}; see '{command} --help'"


def first_example(text: str | None) -> str | None:
    """The first command line in a help text."""
    lines = (line.strip() for line in (text or "").splitlines())
    return next((line for line in lines if line.startswith("discreet ")), None)


def _meant(error: Any, context: Any) -> str:
    """The option or the command that is most likely meant, in brackets, or nothing."""
    command = getattr(context, "command", None)
    unknown = re.match("No such command '(.+?)'", str(getattr(error, "message", "")))
    if command is None or not (unknown or type(error).__name__ == "NoSuchOption"):
        return ""
    options = [name for parameter in command.params for name in parameter.opts]
    given, names = (unknown[1], list(command.commands)) if unknown else (error.option_name, options)
    near = nearest(given, names, private=False)
    return "" if near is None else f" (did you mean {near}?)"


def _command() -> str:
    """The command that was called, for errors that do not know it."""
    first = sys.argv[1:2]
    return f"discreet {first[0]}" if first and first[0].isalpha() else "discreet"


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
            print(f"{styled('discreet:', RED, sys.stderr)} {line}", file=sys.stderr, flush=True)
    return code


def _without_urls(text: str) -> str:
    """A text without what follows the scheme of a URL: there may be a password in it, in whole or in part."""
    return re.sub(r"(\w://)(?:.*@)?\S*?(?=['\")}\],;]*(?:\s|$))", r"\1...", text)
