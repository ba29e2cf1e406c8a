"""Options as text, turned into what the library takes; each complaint names the option."""

from __future__ import annotations

import os
from contextlib import suppress
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import MECHANISMS
from discreet.privacy import Sensitivity, exact


def as_mechanism(name: str, options: dict[str, Any]) -> Mechanism:
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
