"""The mechanisms by name, for files and the command line."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling

MECHANISMS: dict[str, type[Canonical | Joint | OneShot | Peeling]] = {
    kind.name: kind for kind in (Canonical, OneShot, Peeling, Joint)
}


def check_mechanism(mechanism: Any, drawn: bool = True) -> Mechanism:
    """The mechanism, which must be one, and one to draw from unless it is only asked how good it is."""
    if not isinstance(mechanism, Canonical | OneShot | Peeling | Joint):
        names = ", ".join(f"{kind.__name__}()" for kind in MECHANISMS.values())
        raise InvalidTypeError(f"mechanism must be one of {names}, not {_describe_given(mechanism)}")
    if drawn and isinstance(mechanism, Joint) and mechanism.over == "sets":
        raise InvalidValueError(
            f"mechanism must be one to draw from, and {mechanism!r} is only there to be compared with; "
            "Canonical() releases a set"
        )
    return mechanism


def _describe_given(mechanism: Any) -> str:
    """What was given as a mechanism, and which is meant where that is plain."""
    from difflib import get_close_matches

    if isinstance(mechanism, type) and mechanism in MECHANISMS.values():
        return f"the class {mechanism.__name__}; did you mean {mechanism.__name__}()?"
    near = get_close_matches(mechanism.lower(), MECHANISMS, 1) if isinstance(mechanism, str) else []
    return shown(mechanism) + (f"; did you mean {MECHANISMS[near[0]].__name__}()?" if near else "")


def to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """The name and the parameters of a mechanism."""
    return {"name": mechanism.name, **mechanism.parameters()}


def from_dict(data: dict[str, Any]) -> Mechanism:
    """The mechanism that `to_dict` wrote."""
    return check_mechanism(MECHANISMS[data["name"]](**{key: value for key, value in data.items() if key != "name"}))
