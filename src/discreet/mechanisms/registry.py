"""The mechanisms by name, for files and the command line."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.core import Core
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.noise import check_noise
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (Canonical, OneShot, Peeling, Joint, Histogram, Core)
}

FALLBACKS = (OneShot.name, "none")
"""The names of the fallbacks of Core."""

DEFAULT: Mechanism = Canonical()
"""The mechanism of a caller who names none."""


def make_mechanism(name: str, options: dict[str, Any]) -> Mechanism:
    """Return the mechanism of a name with the given options; raise for an option that it does not have."""
    for option in options:
        own = list(MECHANISMS[name]().parameters())
        if option not in own:
            takes = f"takes only {' and '.join(own)}" if own else "takes no options"
            raise InvalidValueError(f"{option} must be left out with the mechanism {name}, which {takes}")
    if "noise" in options:
        check_noise(options["noise"])
    if "otherwise" in options:
        fallback = options["otherwise"]
        options = {**options, "otherwise": None if fallback == "none" else MECHANISMS[fallback]()}
    return MECHANISMS[name](**options)


def check_mechanism(mechanism: Any) -> Mechanism:
    """Return a mechanism; raise unless it can be drawn from."""
    if isinstance(mechanism, Mechanism) and not mechanism.is_drawable:
        raise InvalidValueError(
            f"mechanism must be one to draw from, and {mechanism!r} is only there to be compared with; "
            "Canonical() releases a set"
        )
    if not isinstance(mechanism, Mechanism) or not isinstance(mechanism, tuple(MECHANISMS.values())):
        from difflib import get_close_matches

        names = ", ".join(f"{kind.__name__}()" for kind in MECHANISMS.values())
        given, near = quote(mechanism), None
        if isinstance(mechanism, type) and mechanism in MECHANISMS.values():
            given, near = f"the class {mechanism.__name__}", mechanism
        elif isinstance(mechanism, str) and (names_near := get_close_matches(mechanism.lower(), MECHANISMS, 1)):
            near = MECHANISMS[names_near[0]]
        hint = f"; did you mean {near.__name__}()?" if near else ""
        raise InvalidTypeError(f"mechanism must be one of {names}, not {given}{hint}")
    return mechanism


def all_variants() -> list[Mechanism]:
    """Return every mechanism with every noise, and canonical with several gammas, as `verify --all` covers them."""
    return [variant for kind in MECHANISMS.values() for variant in kind.variants()]


def all_contenders(few_items: bool = False, goal: str = "top") -> list[Mechanism]:
    """Return the mechanisms that comparisons try: each with its defaults, and with other parameters that do well.

    `few_items` tells that a bound on the number of scores one user can move is known, which some mechanisms need. Only
    the goal "recall" admits mechanisms that may release fewer than k items.
    """
    every = [contender for kind in MECHANISMS.values() for contender in kind.contenders()]
    every = [contender for contender in every if goal == "recall" or not contender.may_release_fewer]
    return [contender for contender in every if few_items or not contender.releases_values]


def to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Return the name and the parameters of a mechanism."""
    return {"name": mechanism.name, **mechanism.parameters()}


def from_dict(data: dict[str, Any]) -> Mechanism:
    """Return the mechanism that `to_dict` wrote."""
    # A parameter may be a mechanism itself.
    parts: dict[str, Any] = {key: from_dict(part) if isinstance(part, dict) else part for key, part in data.items()}
    return check_mechanism(MECHANISMS[parts.pop("name")](**parts))
