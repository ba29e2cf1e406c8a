"""Options as text, turned into what the library takes; each complaint names the option, and what may be meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import MECHANISMS
from discreet.noise import NOISES, check_noise
from discreet.privacy import ADJACENCIES, Sensitivity, check_adjacency, exact
from discreet.sources.column_hints import suggestion


def as_mechanism(name: str | None, options: dict[str, Any]) -> Mechanism:
    """The mechanism of this name with the options that were given, all of which must be its own."""
    name = as_choice("mechanism", name or "canonical", MECHANISMS)
    given = {option: value for option, value in options.items() if value is not None}
    own = list(MECHANISMS[name]().parameters())
    for option in given:
        if option not in own:
            takes = f"takes only {' and '.join(own)}" if own else "takes no options"
            raise InvalidValueError(f"{option} must be left out with the mechanism {name}, which {takes}")
    if "noise" in given:
        with _suggesting(given["noise"], NOISES):
            check_noise(given["noise"])
    return MECHANISMS[name](**given)


def as_choice(name: str, given: str, allowed: Iterable[str]) -> str:
    """One of the names that are allowed."""
    names = list(allowed)
    if given not in names:
        hint = suggestion(given, names, private=False)
        raise InvalidValueError(f"{name} must be one of {', '.join(names)}, not {shown(given)}{hint}")
    return given


def as_adjacency(text: str) -> str:
    """What two neighbouring inputs differ by."""
    with _suggesting(text, ADJACENCIES):
        check_adjacency(text)
    return text


def as_format(given: str | None, as_json: bool, allowed: Iterable[str]) -> str:
    """How to print the result: as --format says, or as JSON with --json; by default as a table."""
    if as_json and given not in (None, "json"):
        raise InvalidValueError(f"json must be left out with format {shown(given)}: it is short for --format json")
    return as_choice("format", "json" if as_json else given or "table", allowed)


def as_sensitivity(text: str) -> Sensitivity:
    """DOWN,UP as a sensitivity."""
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidValueError(f"sensitivity must be two numbers DOWN,UP such as 0,1, not {shown(text)}")
    return Sensitivity(down=parts[0], up=parts[1])


def as_count(text: str, name: str = "k") -> int:
    """A whole number."""
    with suppress(ValueError):
        return int(text)
    raise InvalidValueError(f"{name} must be a whole number such as 10, not {shown(text)}")


def as_jobs(text: str | None) -> int:
    """How many processes to use: by default one a core."""
    jobs = (os.cpu_count() or 1) if text is None else as_count(text, "jobs")
    if not 1 <= jobs <= 256:
        raise InvalidValueError(f"jobs must be from 1 to 256, not {text!r}")
    return jobs


def as_numbers(text: str, name: str) -> list[Fraction]:
    """Numbers with commas between them."""
    return [exact(number.strip(), name) for number in text.split(",")]


@contextmanager
def _suggesting(given: str, names: Iterable[str]) -> Iterator[None]:
    """Ends what the library complains about inside with the name that is most likely meant."""
    try:
        yield
    except InvalidValueError as error:
        raise InvalidValueError(f"{error}{suggestion(given, list(names), private=False)}") from None
