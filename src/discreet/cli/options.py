"""The options that several commands share: how they are declared, what a shell completes, and what their text means.

Everything travels as text, so that 0.1 is exactly one tenth; the functions `parse_...` turn it into what the library
takes. Each error names the option, and what may be meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Annotated, Any

import typer

from discreet.cli.stdin import STANDARD, Input
from discreet.errors import InvalidValueError, quote
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import FALLBACKS, MECHANISMS, make_mechanism
from discreet.noise import NOISES
from discreet.privacy import ADJACENCIES, Sensitivity, check_adjacency, exact
from discreet.sources.column_hints import suggestion

TABLE_OR_JSON = ("table", "json")
INPUT_FORMATS = ("csv", "tsv", "json", "parquet", "npy")


def complete_from(names: Iterable[str]) -> Callable[[], list[str]]:
    """What a shell asks for the values of an option."""
    return lambda: list(names)


def join_choices(names: Iterable[str]) -> str:
    """The values of an option in a sentence: a, b or c."""
    *first, last = names
    return f"{', '.join(first)} or {last}"


KOption = Annotated[str, typer.Option("-k", metavar="K", help="How many items to release.")]
SmallKOption = Annotated[str | None, typer.Option("-k", metavar="K", help="How many items are released.")]
ItemOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help='The column of the items. By default "item", or the first of two; with --user there is no default.',
    ),
]
ScoreOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help='The column of the scores. By default "score", or the second of two.'),
]
SensitivityOption = Annotated[
    str | None,
    typer.Option(
        metavar="DOWN,UP[,L]",
        help="How far adding one user can move a score down and up, and how many scores at most. By default 0,1 and "
        "all; events know their own. Must be given for .npy and .parquet files of floats.",
    ),
]
AdjacencyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"What may differ by one user: {join_choices(ADJACENCIES)}.",
        autocompletion=complete_from(ADJACENCIES),
    ),
]
PlanAdjacencyOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"What may differ by one user: {join_choices(ADJACENCIES)}. By default add-remove, or that of a sketch.",
        autocompletion=complete_from(ADJACENCIES),
    ),
]
MechanismOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"How to draw: {', '.join(MECHANISMS)}. By default canonical.",
        autocompletion=complete_from(MECHANISMS),
    ),
]
GammaOption = Annotated[
    str | None,
    typer.Option(
        metavar="G", help="For canonical: the weight of the worst item taken, 0 to 1. By default 3/4, with --ceil 1/2."
    ),
]
NoiseOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"For canonical, one-shot and peeling: {', '.join(NOISES)}. By default gumbel, with one-shot exponential.",
        autocompletion=complete_from(NOISES),
    ),
]
PrecisionOption = Annotated[
    str | None,
    typer.Option(metavar="P", help="For core: the share of its items that should be right, up to 1. By default 0.6."),
]
OtherwiseOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"For core: what to release where data support no core, {join_choices(FALLBACKS)}. By default the first.",
        autocompletion=complete_from(FALLBACKS),
    ),
]
CeilOption = Annotated[
    bool, typer.Option("--ceil", help="For canonical: round losses up to multiples of the sensitivity.")
]
InputFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With - for FILE: what standard input holds, {join_choices(INPUT_FORMATS)}. By default csv.",
        autocompletion=complete_from(INPUT_FORMATS),
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"How to print: {join_choices(TABLE_OR_JSON)}. By default table.",
        autocompletion=complete_from(TABLE_OR_JSON),
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress: only the result and errors.")]
JobsOption = Annotated[str | None, typer.Option(metavar="N", help="How many processes. By default one a core.")]


def parse_mechanism(name: str | None, options: dict[str, Any]) -> Mechanism:
    """The mechanism of this name with the options that were given, all of which must be its own."""
    name = parse_choice("mechanism", name or "canonical", MECHANISMS)
    given = {option: value for option, value in options.items() if value is not None}
    if "otherwise" in given:
        parse_choice("otherwise", given["otherwise"], FALLBACKS)
    noise = given.get("noise")
    with _suggest_on_error(None if noise in NOISES else noise, NOISES):
        return make_mechanism(name, given)


def parse_choice(name: str, given: str, allowed: Iterable[str]) -> str:
    """One of the names that are allowed."""
    names = list(allowed)
    if given not in names:
        hint = suggestion(given, names, private=False)
        raise InvalidValueError(f"{name} must be one of {', '.join(names)}, not {quote(given)}{hint}")
    return given


def parse_adjacency(text: str) -> str:
    """What two neighbouring inputs differ by."""
    with _suggest_on_error(text, ADJACENCIES):
        check_adjacency(text)
    return text


def parse_format(given: str | None, as_json: bool, allowed: Iterable[str]) -> str:
    """How to print the result: as --format says, or as JSON with --json; by default as a table."""
    if as_json and given not in (None, "json"):
        raise InvalidValueError(f"json must be left out with format {quote(given)}: it is short for --format json")
    return parse_choice("format", "json" if as_json else given or "table", allowed)


def parse_sensitivity(text: str) -> Sensitivity:
    """DOWN,UP or DOWN,UP,L as a sensitivity."""
    parts = text.split(",")
    if len(parts) not in (2, 3):
        raise InvalidValueError(
            f"sensitivity must be two numbers DOWN,UP such as 0,1, or three DOWN,UP,L such as 0,1,5, not {quote(text)}"
        )
    items = [parse_count(part, "sensitivity items") for part in parts[2:]]
    return Sensitivity(parts[0], parts[1], *items)


def parse_count(text: str, name: str = "k") -> int:
    """A whole number."""
    with suppress(ValueError):
        return int(text)
    raise InvalidValueError(f"{name} must be a whole number such as 10, not {quote(text)}")


def parse_seconds(text: str, name: str = "wait") -> float:
    """A time in seconds, of at most a day."""
    seconds = exact(text, name)
    if not 0 <= seconds <= 86_400:
        raise InvalidValueError(f"{name} must be from 0 to 86400 seconds, not {quote(text)}")
    return float(seconds)


def parse_jobs(text: str | None) -> int:
    """How many processes to use: by default one a core."""
    jobs = (os.cpu_count() or 1) if text is None else parse_count(text, "jobs")
    if not 1 <= jobs <= 256:
        raise InvalidValueError(f"jobs must be from 1 to 256, not {text!r}")
    return jobs


def parse_numbers(text: str, name: str) -> list[Fraction]:
    """Numbers with commas between them."""
    return [exact(number.strip(), name) for number in text.split(",")]


def check_input_format(file: Input, kind: str | None, events: bool = False) -> None:
    """Raises unless the format is given for standard input alone, and is one that can be read."""
    if kind is None:
        return
    if file != STANDARD:
        raise InvalidValueError("input_format must be left out unless FILE is -: the name of a file tells what it is")
    # An array has no columns, so it cannot hold events.
    parse_choice("input_format", kind, [name for name in INPUT_FORMATS if not (events and name == "npy")])


@contextmanager
def _suggest_on_error(given: str | None, names: Iterable[str]) -> Iterator[None]:
    """Ends what the library complains about inside with the name that is most likely meant."""
    try:
        yield
    except InvalidValueError as error:
        raise InvalidValueError(f"{error}{suggestion(given, list(names), private=False)}") from None


UserOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Read events: one row for something a user did. The column that says which user."
    ),
]
DomainOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="With --user: the public list of items, as FILE:COLUMN; integers:LO:HI are all whole numbers from LO to "
        "HI, strings:a-z:8 all strings of up to 8 letters (any characters, and a-z, A-Z or 0-9); with --connect also "
        "connect:TABLE.COLUMN, of the same database. It must not come from the events, whose other items are left out.",
    ),
]
LabelOption = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --user: a column of the domain to show for the item.")
]
WhereOption = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="With --user: a condition on single events, in DuckDB's SQL."),
]
ValueOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="With --user: a column to add up. By default, distinct users are counted."),
]
ClipOption = Annotated[
    str | None,
    typer.Option(metavar="LOW,HIGH", help="With --value: the range of what one user may add to an item in all."),
]
ResolutionOption = Annotated[
    str | None,
    typer.Option(metavar="R", help="With --value: the steps values are rounded to. By default 1, if clip allows."),
]
ConnectOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="In place of FILE: a database with the events, such as postgres://USER@HOST/DATABASE, duckdb://FILE or "
        "sqlite://FILE.",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE", help="With --connect: the table of the events in the database, such as events or mart.events."
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="With --user: what separates the fields of .csv files, of the events and of the domain; \\t is a tab. By "
        "default the comma, semicolon or tab that the header has.",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --user: how .csv and .tsv files spell text, utf-8, which is the default, utf-16 or latin-1.",
    ),
]
EscapeOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="With --user: what stands before a quote inside quotes in .csv and .tsv files, of the events and of "
        "the domain. By default another quote; MySQL and others write a backslash.",
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Charge the release to this budget, which 'discreet budget init' makes."),
]
PurposeOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="With --ledger: what the release is for, in words.")
]
RequestIdOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="With --ledger: a name for the request; asked again, it costs nothing and answers the same.",
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With --ledger: the data, by the name that the budget has for them."),
]

TABLE = (
    *("domain", "label", "where", "value", "clip", "resolution", "max_items_per_user"),
    *("connect", "name", "delimiter", "escape", "encoding"),
)
GROUPING = ("by", "groups", "each_user", "max_groups_per_user")
FINDING = ("discover", "delta", "kind", "spelling", "discovery_epsilon")
"""The options of events by what they are about: the table and its items, groups, and items that nobody listed."""


def gather_options(context: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """What was given for these options, None for one that was not, or that the command does not have."""
    given = {name: context.params.get(name) for name in names}
    # An option that can be repeated is an empty list where it is not given, and a switch is False.
    return {name: value if value or isinstance(value, str) else None for name, value in given.items()}


SCORES_ONLY = {
    "score": "the scores are made from the events",
    "sensitivity": "the events tell how far one user can move a score",
}
EVENTS_ONLY = {
    "domain": "a file of scores lists its own items",
    "label": "a file of scores has its own labels",
    "where": "a file of scores has no rows of users to choose from",
    "value": "a file of scores is added up already",
    "clip": "a file of scores is added up already",
    "resolution": "a file of scores is added up already",
    "max_items_per_user": "a file of scores is added up already",
    "discover": "a file of scores lists its own items",
    "delta": "a file of scores lists its own items, and none are to be found",
    "kind": "a file of scores lists its own items",
    "spelling": "a file of scores lists its own items",
    "discovery_epsilon": "a file of scores lists its own items",
    "by": "a file of scores has no rows of users to put into groups",
    "groups": "a file of scores has no groups",
    "each_user": "a file of scores has no groups",
    "max_groups_per_user": "a file of scores has no groups",
    "connect": "a database is read as events, not as scores",
    "name": "it is the table of a database, which is read as events",
    "delimiter": "the header of a file of scores shows it",
    "escape": "a file of scores doubles the quotes inside quotes",
    "encoding": "a file of scores is UTF-8",
}


def refuse_options(options: Mapping[str, Any], reasons: dict[str, str], when: str) -> None:
    """Raises where an option is given that belongs to the other kind of input."""
    for option, value in options.items():
        if value is not None:
            raise InvalidValueError(f"{option} must be left out {when}: {reasons[option]}")
