"""The options of the command line: their expansion into typer's parameters, and the parsers of their texts.

A command declares its options as dataclasses; `spread` turns each field into an option. Numbers travel as text, so that
0.1 is exactly one tenth, and a `parse_` function turns a text into the value that the library takes. Each error names
the option.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from fractions import Fraction
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from discreet.cli.output import LOGS
from discreet.errors import InvalidValueError, quote, suggestion
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import FALLBACKS, MECHANISMS, make_mechanism
from discreet.privacy import ADJACENCIES, Sensitivity, check_adjacency, exact
from discreet.publish.options import LedgerOptions, MechanismOptions, Option, ReleaseOptions, join_choices, option

TABLE_OR_JSON = ("table", "json")
INPUT_FORMATS = ("csv", "tsv", "json", "parquet", "npy")

MAX_WAIT = 86_400
"""The longest time to wait, in seconds: a day, after which the next run of a daily job is due."""

MAX_JOBS = 256
"""The largest number of processes: more than the cores of a large machine are a typing error."""


def spread(without: Collection[str] = (), hidden: Collection[type] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that gives a command one option for each field of its dataclasses.

    typer reads the parameters of a command from `__signature__`.

    Parameters
    ----------
    without
        Names of fields that the command does not have; they keep their defaults.
    hidden
        Dataclasses whose options are accepted, and are not shown in the help. None of them is required.
    """
    annotated: Any = Annotated  # for the type checker, which takes no computed type
    keyword = inspect.Parameter.KEYWORD_ONLY

    def decorate(command: Callable[..., Any]) -> Any:
        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        bundles: dict[str, Any] = {}
        for parameter in inspect.signature(command).parameters.values():
            kind = hints[parameter.name]
            if not (isinstance(kind, type) and is_dataclass(kind)):
                parameters.append(parameter.replace(kind=keyword, annotation=kind))
                continue
            bundles[parameter.name], types, is_hidden = kind, get_type_hints(kind), kind in hidden
            for field in fields(kind):
                if field.name not in without:
                    default = field.default
                    if default is MISSING:
                        default = None if is_hidden else inspect.Parameter.empty
                    annotation = annotated[types[field.name], make_option(kind, field.name, is_hidden)]
                    parameters.append(inspect.Parameter(field.name, keyword, default=default, annotation=annotation))

        @wraps(command)
        def run(**given: Any) -> Any:
            # An option that can be repeated may arrive as an empty list.
            values = {name: None if value == [] else value for name, value in given.items()}
            made = {}
            for name, kind in bundles.items():
                made[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind) if each.name in given})
            return command(**values, **made)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def make_option(options: type, name: str, hidden: bool = False, more: str = "") -> Any:
    """Return typer's declaration of a field of a dataclass of options; `more` ends its help."""
    field = next(field for field in fields(options) if field.name == name)
    declared: Option = field.metadata["option"]
    text = declared.describe(f"{declared.cli} {more}".strip(), _spell)
    if declared.needs is not None:
        text = f"With {_spell(declared.needs)}: {text[0].lower()}{text[1:]}"
    # Without a flag of its own, a switch would have a second one, --no-NAME.
    flags = declared.flags or ((_spell(name),) if field.default is False else ())
    return typer.Option(
        *flags,
        metavar=declared.metavar or None,
        help=text,
        hidden=hidden,
        show_default=isinstance(field.default, str),
        autocompletion=complete_from(declared.choices) if declared.choices else None,
    )


def _spell(name: str) -> str:
    """Return the name of an option as the command line spells it; the table of a charts file is FILE there."""
    return "FILE" if name == "table" else f"--{name.replace('_', '-')}"


def complete_from(names: Iterable[str]) -> Callable[[], list[str]]:
    """Return the function that a shell's completion calls for the values of an option."""
    return lambda: list(names)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreOptions:
    """The options of a file of scores that events do not have."""

    score: str | None = option('The column of the scores. By default "score", or the second of two.', "COLUMN")
    sensitivity: str | None = option(
        "The most that adding one user moves a score down and up, and the most scores it moves. By default 0,1 and "
        "all; events know their own. Must be given for .npy and .parquet files of floats.",
        "DOWN,UP[,L]",
    )


@dataclass(frozen=True, eq=False, repr=False)
class OutputOptions:
    """The form in which a result is printed, and silence about progress."""

    form: str | None = option(
        f"The format to print: {join_choices(TABLE_OR_JSON)}. By default table.",
        "NAME",
        flags=("--format",),
        choices=TABLE_OR_JSON,
    )
    as_json: bool = option("Short for --format json.", flags=("--json",), default=False)
    quiet: bool = option("Show no progress: only the result and errors.", flags=("--quiet", "-q"), default=False)


@dataclass(frozen=True, eq=False, repr=False)
class ChargeOptions(LedgerOptions):
    """The budget that a release is charged to, the period of the charge, and the log of the command."""

    as_of: str | None = option(
        "For a ledger whose budget renews: the day or time whose period is charged, such as 2026-12-31; "
        "without an offset in the budget's zone. Not before the budget was made, or its --since. By default now.",
        "TIME",
    )
    log: str = option(
        "The format of messages: text, or json, one object a line, errors too. Nothing private is in either.",
        "NAME",
        default="text",
        choices=LOGS,
    )


KOption = Annotated[str, make_option(ReleaseOptions, "k")]
SmallKOption = Annotated[str | None, make_option(ReleaseOptions, "k")]
AdjacencyOption = Annotated[str, make_option(ReleaseOptions, "adjacency")]
PadToOption = Annotated[str | None, make_option(ReleaseOptions, "pad_to")]
InputFormatOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With - for FILE: what standard input holds, {join_choices(INPUT_FORMATS)}. By default csv.",
        autocompletion=complete_from(INPUT_FORMATS),
    ),
]
ChartOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Draw the result in this file too: .png, .svg or .pdf. It needs the extra discreet[plot]."
    ),
]
AsOfOption = Annotated[str | None, make_option(ChargeOptions, "as_of")]
LogOption = Annotated[str, make_option(ChargeOptions, "log")]
QuietOption = Annotated[bool, make_option(OutputOptions, "quiet")]
JobsOption = Annotated[str | None, typer.Option(metavar="N", help="The number of processes. By default one a core.")]


def list_given(*options: Any) -> dict[str, Any]:
    """Return the options that were given, by name."""
    pairs = ((field, getattr(each, field.name)) for each in options for field in fields(each))
    return {field.name: value for field, value in pairs if value != field.default}


def refuse_options(reasons: Mapping[str, str], when: str, *options: Any) -> None:
    """Raise if an option is given for which there is a reason to leave it out."""
    for name in list_given(*options):
        if name in reasons:
            raise InvalidValueError(f"{name} must be left out {when}: {reasons[name]}")


def parse_mechanism(options: MechanismOptions) -> Mechanism:
    """Return the mechanism with the parameters that were given, all of which must be its own."""
    given = list_given(options)
    name = parse_choice("mechanism", given.pop("mechanism", None) or "canonical", MECHANISMS)
    if "otherwise" in given:
        parse_choice("otherwise", given["otherwise"], FALLBACKS)
    with _suggest_on_error(None if options.noise in NOISES else options.noise, NOISES):
        return make_mechanism(name, given)


def parse_choice(name: str, given: str, allowed: Iterable[str]) -> str:
    """Return a value that must be one of those allowed."""
    names = list(allowed)
    if given not in names:
        hint = suggestion(given, names, private=False)
        raise InvalidValueError(f"{name} must be one of {', '.join(names)}, not {quote(given)}{hint}")
    return given


def parse_adjacency(text: str) -> str:
    """Return the name of an adjacency."""
    with _suggest_on_error(text, ADJACENCIES):
        check_adjacency(text)
    return text


def parse_format(options: OutputOptions, allowed: Iterable[str] = TABLE_OR_JSON) -> str:
    """Return the name of the form to print in: that of --format, json with --json, or table."""
    if options.as_json and options.form not in (None, "json"):
        raise InvalidValueError(
            f"json must be left out with format {quote(options.form)}: it is short for --format json"
        )
    return parse_choice("format", "json" if options.as_json else options.form or "table", allowed)


def parse_sensitivity(text: str | None) -> Sensitivity | None:
    """Parse DOWN,UP or DOWN,UP,L."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) not in (2, 3):
        raise InvalidValueError(
            f"sensitivity must be two numbers DOWN,UP such as 0,1, or three DOWN,UP,L such as 0,1,5, not {quote(text)}"
        )
    items = [parse_count(part, "sensitivity items") for part in parts[2:]]
    return Sensitivity(parts[0], parts[1], *items)


def parse_count(text: str, name: str = "k") -> int:
    """Parse a whole number."""
    with suppress(ValueError):
        return int(text)
    raise InvalidValueError(f"{name} must be a whole number such as 10, not {quote(text)}")


def parse_seconds(text: str, name: str = "wait") -> float:
    """Parse a time in seconds."""
    seconds = exact(text, name)
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidValueError(f"{name} must be from 0 to {MAX_WAIT} seconds, not {quote(text)}")
    return float(seconds)


def parse_jobs(text: str | None) -> int:
    """Parse a number of processes; by default there is one for each core."""
    jobs = (os.cpu_count() or 1) if text is None else parse_count(text, "jobs")
    if not 1 <= jobs <= MAX_JOBS:
        raise InvalidValueError(f"jobs must be from 1 to {MAX_JOBS}, not {text!r}")
    return jobs


def parse_numbers(text: str, name: str) -> list[Fraction]:
    """Parse numbers with commas between them."""
    return [exact(number.strip(), name) for number in text.split(",")]


@contextmanager
def _suggest_on_error(given: str | None, names: Iterable[str]) -> Iterator[None]:
    """End the error of the library from inside with the name that is most likely meant."""
    try:
        yield
    except InvalidValueError as error:
        raise InvalidValueError(f"{error}{suggestion(given, list(names), private=False)}") from None
