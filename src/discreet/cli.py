"""The command line: parses, calls, prints.

A complaint is one line on standard error. The exit code is 0 after success, 2 after bad use, 1 after a failure, and
130 after Ctrl-C. Everything that is given as a number travels as text, so that 0.1 is exactly one tenth.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet import __version__
from discreet.errors import Error, InvalidValueError, shown
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import MECHANISMS
from discreet.noise import NOISES
from discreet.privacy import ADJACENCIES, Sensitivity, check_adjacency, positive
from discreet.release import Release
from discreet.sources.files import file_source
from discreet.topk import top_k
from discreet.whole import check_target, write_whole

_SUCCESS, _FAILURE, _BAD_USE, _INTERRUPTED = 0, 1, 2, 130

_EXAMPLES = {"discreet select": "discreet select scores.csv -k 10 --epsilon 1"}

_SELECT_EXAMPLES = """
\b
Examples:
  discreet select scores.csv -k 10 --epsilon 1
  discreet select films.csv -k 5 --epsilon 0.5 --item title --score fans
  discreet select scores.json -k 10 --epsilon 1 --json
  discreet select counts.npy -k 10 --epsilon 1/3 --out top.json
  discreet select scores.csv -k 3 --epsilon 1 --mechanism one-shot --noise gumbel
  discreet select points.tsv -k 3 --epsilon 1 --sensitivity 2,5 --adjacency swap
"""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class OutputError(Exception):
    """The release could not be handed over, because of a full disk, for example."""


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
        _flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        return _explained(error)
    return int(code or _SUCCESS)


def _print_version(wanted: bool) -> None:
    if wanted:
        _print(f"discreet {__version__}")
        raise typer.Exit


# A callback keeps `select` a command of its own while there is no other.
@app.callback()
def discreet(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Releases the top-k of scored items with pure epsilon-differential privacy, drawn exactly as in the proofs."""


@app.command(short_help="Release the k items that score highest.", epilog=_SELECT_EXAMPLES)
def select(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scores: .npy, .csv, .tsv or .json.")],
    k: Annotated[str, typer.Option("-k", metavar="K", help="How many items to release.")],
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The privacy budget to spend, taken exactly: 1, 0.5, 1/3 or 1e-2.")
    ],
    item: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='The column of the items. By default "item", or the first of two.'),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='The column of the scores. By default "score", or the second of two.'),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(metavar="NAME", help=f"How to draw: {', '.join(MECHANISMS)}.")
    ] = "canonical",
    gamma: Annotated[
        str | None,
        typer.Option(metavar="G", help="For canonical: the weight of the worst item taken, 0 to 1. By default 1/2."),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"For all but joint: {', '.join(NOISES)}. By default gumbel, with one-shot exponential.",
        ),
    ] = None,
    ceil: Annotated[
        bool, typer.Option("--ceil", help="For canonical: round losses up to multiples of the sensitivity.")
    ] = False,
    sensitivity: Annotated[
        str, typer.Option(metavar="DOWN,UP", help="How far adding one user can move a score down and up.")
    ] = "0,1",
    adjacency: Annotated[
        str, typer.Option(metavar="NAME", help=f"What may differ by one user: {' or '.join(ADJACENCIES)}.")
    ] = "add-remove",
    as_json: Annotated[bool, typer.Option("--json", help="Print the release as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the release to this file, as JSON, whole or not at all.")
    ] = None,
) -> None:
    """Releases which K items of FILE score highest, with epsilon-differential privacy for each user behind the scores.

    The list of items must be public: keep items that no user touched, with a score of zero. Scores are not shown. In a
    .npy file and in a JSON list the items are positions, counted from 0; where the scores are sorted, positions are
    ranks and tell about scores.
    """
    # Everything public is checked before the scores are read.
    drawn_by = _mechanism(mechanism, {"gamma": gamma, "noise": noise, "ceil": ceil or None})
    limits, count = _sensitivity(sensitivity), _count(k)
    positive(epsilon, "epsilon")
    check_adjacency(adjacency)
    _check_out(out, file)
    source = file_source(file, item, score)
    release = top_k(source, count, epsilon, mechanism=drawn_by, sensitivity=limits, adjacency=adjacency)
    _deliver(release, as_json, out)


def _mechanism(name: str, options: dict[str, Any]) -> Mechanism:
    """The mechanism of this name with the options that were given, all of which must be its own."""
    if name not in MECHANISMS:
        raise InvalidValueError(f"mechanism must be one of {', '.join(MECHANISMS)}, not {shown(name)}")
    given = {option: value for option, value in options.items() if value is not None}
    own = list(MECHANISMS[name]().parameters())
    for option in given:
        if option not in own:
            takes = f"takes only {' and '.join(own)}" if own else "takes no options"
            raise InvalidValueError(f"{option} must be left out with the mechanism {name}, which {takes}")
    return MECHANISMS[name](**given)


def _sensitivity(text: str) -> Sensitivity:
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidValueError(f"sensitivity must be two numbers DOWN,UP such as 0,1, not {shown(text)}")
    return Sensitivity(down=parts[0], up=parts[1])


def _count(text: str) -> int:
    with suppress(ValueError):
        return int(text)
    raise InvalidValueError(f"k must be a whole number such as 10, not {shown(text)}")


def _check_out(out: Path | None, file: Path) -> None:
    if out is None:
        return
    check_target(out, "out")
    if os.path.exists(out) and os.path.exists(file) and os.path.samefile(out, file):
        raise InvalidValueError(f"out must be another file than the scores, not {str(out)!r}")


def _deliver(release: Release, as_json: bool, out: Path | None) -> None:
    if out is not None:
        _save(release, out)
    _print(_printable_json(release) if as_json else str(release))


def _save(release: Release, out: Path) -> None:
    try:
        write_whole(out, release.to_json(indent=2) + "\n")
    except OSError as error:
        raise OutputError(f"writing {str(out)!r} fails: {error.strerror}") from None


def _printable_json(release: Release) -> str:
    """The release as JSON; where standard output cannot spell a label, with escapes in place of it."""
    text = release.to_json(indent=2)
    with suppress(UnicodeEncodeError):
        text.encode(_encoding())
        return text
    return json.dumps(release.to_dict(), indent=2)


def _print(text: str) -> None:
    if getattr(sys, "stdout", None) is None:
        raise OutputError("standard output must be open, but is closed")
    print(text.encode(_encoding(), "backslashreplace").decode(_encoding()))


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _flush() -> None:
    """Prints what is buffered while an error still has a place to go; when Python ends, it has none."""
    if getattr(sys, "stdout", None) is not None:
        sys.stdout.flush()


def _explained(error: Exception) -> int:
    """Prints what went wrong and returns the exit code."""
    if isinstance(error, Error):
        return _complain(str(error), _BAD_USE)
    # Typer has its own copy of click or uses click's, by its version, so its errors are told by their shape.
    if callable(getattr(error, "format_message", None)):
        return _complain(_usage(error), _BAD_USE)
    if type(error).__name__ == "Abort":
        return _INTERRUPTED
    if isinstance(error, OutputError):
        return _complain(str(error), _FAILURE)
    # Files have been dealt with where they are read and written, so this is standard output.
    if isinstance(error, OSError):
        return _explained_output(error)
    return _explained_bug(error)


def _usage(error: Any) -> str:
    """An error of the parser in our form: the argument, what was given, and where to read on."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    command = _command() if context is None else context.command_path
    example = _EXAMPLES.get(command)
    if type(error).__name__ == "MissingParameter" and parameter is not None and example:
        name = parameter.metavar if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
        return f"{name} is missing; for example: {example}"
    text = error.format_message().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}; see '{command} --help'"


def _command() -> str:
    """The command that was called, for errors that do not know it."""
    return next((command for command in _EXAMPLES if command.split()[1] in sys.argv[1:2]), "discreet")


def _explained_output(error: OSError) -> int:
    # What is still buffered has nowhere to go, and Python would try once more at its end.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return _FAILURE
    return _complain(f"writing to standard output fails: {error.strerror}", _FAILURE)


def _explained_bug(error: Exception) -> int:
    if os.environ.get("DISCREET_DEBUG") == "1":
        traceback.print_exception(error)
    hint = "DISCREET_DEBUG=1 shows the traceback, which may contain private data"
    return _complain(f"an internal error occurred ({type(error).__name__}); {hint}", _FAILURE)


def _complain(message: str, code: int) -> int:
    """Prints one line, whatever is in the message, and returns the exit code."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(message.split()))
    if getattr(sys, "stderr", None) is not None:
        with suppress(OSError):
            print(f"discreet: {line}", file=sys.stderr, flush=True)
    return code
