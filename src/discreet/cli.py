"""The command line: parses, calls, prints.

A complaint is one line on standard error, and no password of a connection URL is in it. The exit code is 0 after
success, 2 after bad use, 1 after a failure, and 130 after Ctrl-C. Everything that is given as a number travels as text,
so that 0.1 is exactly one tenth.
"""

from __future__ import annotations

import glob
import json
import os
import re
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
from discreet.sources.base import Source
from discreet.sources.domain import Integers, integers
from discreet.sources.engine import EngineError
from discreet.sources.files import file_source
from discreet.sources.table import events
from discreet.topk import top_k
from discreet.whole import check_target, write_whole

_SUCCESS, _FAILURE, _BAD_USE, _INTERRUPTED = 0, 1, 2, 130

_EXAMPLES = {"discreet select": "discreet select scores.csv -k 10 --epsilon 1"}

_SELECT_EXAMPLES = """
\b
Examples with scores:
  discreet select scores.csv -k 10 --epsilon 1
  discreet select films.csv -k 5 --epsilon 0.5 --item title --score fans
  discreet select scores.json -k 10 --epsilon 1 --json
  discreet select counts.npy -k 10 --epsilon 1/3 --out top.json
  discreet select scores.csv -k 3 --epsilon 1 --mechanism one-shot --noise gumbel
  discreet select points.tsv -k 3 --epsilon 1 --sensitivity 2,5 --adjacency swap
  discreet select scores.parquet -k 10 --epsilon 1

\b
Examples with events:
  discreet select ratings.parquet --user user_id --item movie_id --where "stars = 5" \\
    --domain movies.csv:movie_id --label title -k 100 --epsilon 1
  discreet select "ratings-*.csv" --user user_id --item movie_id \\
    --value stars --clip 0,5 --resolution 0.5 --domain movies.csv:movie_id -k 3 --epsilon 1
  discreet select ratings.parquet --user user_id --item movie_id \\
    --domain integers:0:999999 -k 3 --epsilon 1 --adjacency swap --out top.json
  discreet select --connect sqlite://ratings.db --name ratings --user user_id --item movie_id \\
    --domain movies.csv:movie_id --label title -k 3 --epsilon 1 --json
"""

# What belongs to one kind of input, and why it has no place beside the other.
_SCORES_ONLY = {
    "score": "the scores are made from the events",
    "sensitivity": "the events tell how far one user can move a score",
}
_EVENTS_ONLY = {
    "domain": "a file of scores lists its own items",
    "label": "a file of scores has its own labels",
    "where": "a file of scores has no rows of users to choose from",
    "value": "a file of scores is added up already",
    "clip": "a file of scores is added up already",
    "resolution": "a file of scores is added up already",
    "connect": "a database is read as events, not as scores",
    "name": "it is the table of a database, which is read as events",
}

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


def _is_url(text: str) -> bool:
    return "://" in text


def _check_file(context: typer.Context, file: str | None) -> str | None:
    """The input must be named once. What was given on the command line has been parsed before this."""
    connect = context.params.get("connect")
    if file is None and connect is None:
        raise InvalidValueError(f"FILE is missing; for example: {_EXAMPLES['discreet select']}")
    if file is not None and connect is not None:
        raise InvalidValueError("connect must be left out with FILE: the input is one of the two")
    if file is not None and _is_url(file):
        raise InvalidValueError("FILE must be a file; the URL of a database goes with --connect")
    return file


@app.command(short_help="Release the k items that score highest.", epilog=_SELECT_EXAMPLES)
def select(
    k: Annotated[str, typer.Option("-k", metavar="K", help="How many items to release.")],
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The privacy budget to spend, taken exactly: 1, 0.5, 1/3 or 1e-2.")
    ],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            callback=_check_file,
            show_default=False,
            help="The scores: .npy, .csv, .tsv, .json or .parquet. With --user the events: .parquet, .csv, .tsv or "
            ".json, compressed or not, or a quoted pattern of such files.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help='The column of the items. By default "item", or the first of two; with --user there is no default.',
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help='The column of the scores. By default "score", or the second of two.'),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Read events: one row for something a user did. The column that says which user."
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="With --user: the public list of items, as FILE:COLUMN or, for all whole numbers from LO to HI, as "
            "integers:LO:HI. It must not come from the events.",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --user: a column of the domain to show for the item.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="With --user: a condition on single events, in DuckDB's SQL."),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With --user: a column to add up. By default, distinct users are counted."),
    ] = None,
    clip: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="With --value: the range of what one user may add to an item in all."),
    ] = None,
    resolution: Annotated[
        str | None,
        typer.Option(metavar="R", help="With --value: the steps values are rounded to. By default 1, if clip allows."),
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="In place of FILE: a database with the events, postgres://USER@HOST/DATABASE, duckdb://FILE or "
            "sqlite://FILE.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TABLE", help="With --connect: the table of the events in the database.")
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
        str | None,
        typer.Option(
            metavar="DOWN,UP",
            help="How far adding one user can move a score down and up. By default 0,1; events know their own.",
        ),
    ] = None,
    adjacency: Annotated[
        str, typer.Option(metavar="NAME", help=f"What may differ by one user: {' or '.join(ADJACENCIES)}.")
    ] = "add-remove",
    as_json: Annotated[bool, typer.Option("--json", help="Print the release as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the release to this file, as JSON, whole or not at all.")
    ] = None,
) -> None:
    """Releases which K items score highest, with epsilon-differential privacy for each user behind the scores.

    FILE holds scores, or with --user events, from which scores are made: how many distinct users an item has, or what
    they add to it. Scores are not shown.

    The list of items must be public. In a file of scores, keep items that no user touched, with a score of zero. In a
    .npy file and in a JSON list the items are positions, counted from 0; where the scores are sorted, positions are
    ranks and tell about scores.
    """
    # Everything public is checked before the scores or the events are read.
    drawn_by = _mechanism(mechanism, {"gamma": gamma, "noise": noise, "ceil": ceil or None})
    count = _count(k)
    positive(epsilon, "epsilon")
    check_adjacency(adjacency)
    options = {
        "domain": domain, "label": label, "where": where, "value": value,
        "clip": clip, "resolution": resolution, "connect": connect, "name": name,
    }  # fmt: skip
    if user is None:
        _refuse(options, _EVENTS_ONLY, "without user")
        limits = Sensitivity() if sensitivity is None else _sensitivity(sensitivity)
        source = _scores(str(file), item, score, out)
    else:
        _refuse({"score": score, "sensitivity": sensitivity}, _SCORES_ONLY, "with user")
        limits = None
        source = _events(file, user, item, adjacency, options, out)
    release = top_k(source, count, epsilon, mechanism=drawn_by, sensitivity=limits, adjacency=adjacency)
    _deliver(release, as_json, out)


def _refuse(options: dict[str, str | None], reasons: dict[str, str], when: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise InvalidValueError(f"{option} must be left out {when}: {reasons[option]}")


def _scores(file: str, item: str | None, score: str | None, out: Path | None) -> Source:
    _check_out(out, {"scores": [file]})
    return file_source(file, item, score)


def _events(
    file: str | None, user: str, item: str | None, adjacency: str, options: dict[str, str | None], out: Path | None
) -> Source:
    """The source of events that the options describe, each of which is checked before the events are opened."""
    if item is None:
        raise InvalidValueError("item must be given with user: the column that says what the user did it to")
    if (domain := options["domain"]) is None:
        raise InvalidValueError(
            "domain must be given with user: a public list of items, such as movies.csv:movie_id or integers:0:999, "
            "because a list made from the events would tell what somebody touched"
        )
    table, listed, clip = _table(file, options["connect"], options["name"]), _domain(domain), _clip(options["clip"])
    _check_out(out, {"events": _files(table), "domain": _files(domain) + _files(domain.rpartition(":")[0])})
    return events(
        table, user=user, item=item, domain=listed, label=options["label"], where=options["where"],
        value=options["value"], clip=clip, resolution=options["resolution"], adjacency=adjacency, name=options["name"],
    )  # fmt: skip


def _table(file: str | None, connect: str | None, name: str | None) -> str:
    """Where the events are: the path of a file, or the URL of a database beside the name of a table."""
    if connect is None:
        if name is not None:
            raise InvalidValueError("name must be left out without connect: it is the table of a database")
        return str(file)
    if not _is_url(connect):
        raise InvalidValueError("connect must be the URL of a database, such as postgres://...")
    if not name:
        raise InvalidValueError("name must be given with connect: the table of the events in the database")
    return connect


def _domain(text: str) -> str | Integers:
    if _is_url(text):
        raise InvalidValueError("domain must be FILE:COLUMN or integers:LO:HI, not the URL of a database")
    if not text.startswith("integers:"):
        return text
    ends = re.fullmatch(r"integers:([+-]?[0-9]{1,20}):([+-]?[0-9]{1,20})", text)
    if ends is None:
        raise InvalidValueError(f"domain must be integers:LO:HI such as integers:0:999, not {shown(text)}")
    return integers(int(ends[1]), int(ends[2]))


def _clip(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    low, comma, high = text.partition(",")
    if not comma or "," in high:
        raise InvalidValueError(f"clip must be two numbers LOW,HIGH such as 0,5, not {shown(text)}")
    return low, high


def _files(table: str) -> list[str]:
    """The files behind a path, a pattern of paths or the URL of a database in a file."""
    path = table.partition("://")[2].partition("?")[0] if _is_url(table) else table
    return [path, *glob.glob(path)]


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


def _check_out(out: Path | None, inputs: dict[str, list[str]]) -> None:
    """The release must not replace what it is made from."""
    if out is None:
        return
    check_target(out, "out")
    for role, files in inputs.items():
        if os.path.exists(out) and any(os.path.exists(file) and os.path.samefile(out, file) for file in files):
            raise InvalidValueError(f"out must be another file than the {role}, not {str(out)!r}")


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
        return _complain(str(error), _FAILURE if isinstance(error, EngineError) else _BAD_USE)
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
    _trace(error)
    return _complain(f"writing to standard output fails: {error.strerror}", _FAILURE)


def _explained_bug(error: Exception) -> int:
    _trace(error)
    hint = "DISCREET_DEBUG=1 shows the traceback, which may contain private data"
    return _complain(f"an internal error occurred ({type(error).__name__}); {hint}", _FAILURE)


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
