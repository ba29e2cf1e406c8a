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
"""What core may release otherwise."""

DEFAULT: Mechanism = Canonical()
"""What draws where the caller names no mechanism."""


def make_mechanism(name: str, options: dict[str, Any]) -> Mechanism:
    """The mechanism of a name with the options that were given, all of which must be its own."""
    own = list(MECHANISMS[name]().parameters())
    for option in options:
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
    """The mechanism, which must be one to draw from."""
    if isinstance(mechanism, Mechanism) and not mechanism.is_drawable:
        raise InvalidValueError(
            f"mechanism must be one to draw from, and {mechanism!r} is only there to be compared with; "
            "Canonical() releases a set"
        )
    if not isinstance(mechanism, Mechanism) or not isinstance(mechanism, tuple(MECHANISMS.values())):
        names = ", ".join(f"{kind.__name__}()" for kind in MECHANISMS.values())
        raise InvalidTypeError(f"mechanism must be one of {names}, not {_describe_given(mechanism)}")
    return mechanism


def _describe_given(mechanism: Any) -> str:
    """What was given as a mechanism, and which is meant where that is plain."""
    from difflib import get_close_matches

    if isinstance(mechanism, type) and mechanism in MECHANISMS.values():
        return f"the class {mechanism.__name__}; did you mean {mechanism.__name__}()?"
    near = get_close_matches(mechanism.lower(), MECHANISMS, 1) if isinstance(mechanism, str) else []
    return quote(mechanism) + (f"; did you mean {MECHANISMS[near[0]].__name__}()?" if near else "")


def all_variants() -> list[Mechanism]:
    """Every mechanism with every noise, and canonical with several gammas: what `verify --all` covers."""
    return [variant for kind in MECHANISMS.values() for variant in kind.variants()]


def all_contenders(few_items: bool = False, goal: str = "top") -> list[Mechanism]:
    """The mechanisms that are compared with each other, each as its defaults make it and where else it is good.

    `few_items` says whether it is known how many scores one user can move, which some need. For another `goal` than
    "recall" a list must have k items.
    """
    every = [contender for kind in MECHANISMS.values() for contender in kind.contenders()]
    every = [contender for contender in every if goal == "recall" or not contender.may_release_fewer]
    return [contender for contender in every if few_items or not contender.releases_values]


def to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """The name and the parameters of a mechanism."""
    return {"name": mechanism.name, **mechanism.parameters()}


def from_dict(data: dict[str, Any]) -> Mechanism:
    """The mechanism that `to_dict` wrote."""
    # A parameter may be a mechanism itself.
    parts: dict[str, Any] = {key: from_dict(part) if isinstance(part, dict) else part for key, part in data.items()}
    return check_mechanism(MECHANISMS[parts.pop("name")](**parts))
