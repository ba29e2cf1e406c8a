"""Release and Guarantee: what leaves the library. Frozen, printable, serialisable, and with nothing private inside."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from discreet.errors import InvalidValueError
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import from_dict as mechanism_from_dict
from discreet.mechanisms.registry import to_dict as mechanism_to_dict
from discreet.privacy import Sensitivity

_FORMAT = 1


@dataclass(frozen=True)
class Guarantee:
    """What a release promises.

    Attributes
    ----------
    epsilon
        The pure differential privacy parameter spent, as an exact fraction.
    adjacency
        "add-remove" or "swap": what two neighbouring inputs differ by.
    sensitivity
        How far a score can move between neighbours.
    mechanism
        The mechanism that made the release.
    zcdp
        The rho of zero-concentrated differential privacy, for composition.
    """

    epsilon: Fraction
    adjacency: str
    sensitivity: Sensitivity
    mechanism: Mechanism
    zcdp: Fraction

    def to_dict(self) -> dict[str, Any]:
        """The guarantee in terms that JSON can hold; fractions are strings."""
        return {
            "epsilon": str(self.epsilon),
            "adjacency": self.adjacency,
            "sensitivity": {"down": str(self.sensitivity.down), "up": str(self.sensitivity.up)},
            "mechanism": mechanism_to_dict(self.mechanism),
            "zcdp": str(self.zcdp),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote."""
        return cls(
            Fraction(data["epsilon"]),
            data["adjacency"],
            Sensitivity(data["sensitivity"]["down"], data["sensitivity"]["up"]),
            mechanism_from_dict(data["mechanism"]),
            Fraction(data["zcdp"]),
        )


@dataclass(frozen=True)
class Release:
    """The released items and what is promised about them.

    Attributes
    ----------
    items
        The k items, sorted by label; the order says nothing about their scores.
    order
        The same items in the released order, best first, or None where no order was released.
    d
        The size of the public domain.
    guarantee
        What the release promises.
    private
        False where the caller passed a random generator: a release that can be drawn again protects nobody.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"a": 90, "b": 80, "c": 5, "d": 1}, k=2, epsilon=100)
    >>> release.items
    ['a', 'b']
    >>> discreet.Release.from_json(release.to_json()) == release
    True
    """

    items: list[Any]
    order: list[Any] | None
    d: int
    guarantee: Guarantee
    private: bool = True

    @property
    def k(self) -> int:
        """How many items were released."""
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        """The release in terms that JSON can hold."""
        return {
            "format": _FORMAT,
            "items": [_encoded(item) for item in self.items],
            "order": None if self.order is None else [_encoded(item) for item in self.order],
            "d": self.d,
            "guarantee": self.guarantee.to_dict(),
            "private": self.private,
        }

    def to_json(self, indent: int | None = None) -> str:
        """The release as JSON text."""
        text = json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)
        # Half of a surrogate pair can be a label but not a character of a file.
        return json.dumps(self.to_dict(), indent=indent) if re.search("[\ud800-\udfff]", text) else text

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Release:
        """The release that `to_dict` wrote."""
        try:
            if data["format"] != _FORMAT:
                raise ValueError
            order = None if data["order"] is None else [_decoded(item) for item in data["order"]]
            items = [_decoded(item) for item in data["items"]]
            return cls(items, order, int(data["d"]), Guarantee.from_dict(data["guarantee"]), bool(data["private"]))
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise InvalidValueError("data must be a release as Release.to_dict or to_json writes it") from None

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise InvalidValueError("text must be a release as Release.to_json writes it") from None
        return cls.from_dict(data)

    def __str__(self) -> str:
        shown = self.items if self.order is None else self.order
        width = len(str(self.k))
        names = [printable(item) for item in shown]
        lines = [f"  {i:>{width}}  {name}" if self.order else f"  {name}" for i, name in enumerate(names, 1)]
        return "\n".join([f"{self._title()}:", *lines, self._terms(), *self._warnings()])

    def _repr_html_(self) -> str:
        """The notebook view."""
        from html import escape

        tag, shown = ("ul", self.items) if self.order is None else ("ol", self.order)
        rows = "".join(f"<li>{escape(str(item))}</li>" for item in shown)
        notes = "".join(f"<br>{escape(line)}" for line in (self._terms(), *self._warnings()))
        return f"<b>{escape(self._title())}</b><{tag}>{rows}</{tag}><small>{notes.removeprefix('<br>')}</small>"

    def _title(self) -> str:
        order = "sorted by name, which says nothing about rank" if self.order is None else "in the released order"
        return f"Top {self.k:,} of {self.d:,} items, {order}"

    def _terms(self) -> str:
        epsilon, mechanism = self.guarantee.epsilon, self.guarantee.mechanism
        change = "added or removed" if self.guarantee.adjacency == "add-remove" else "replaced"
        return f"epsilon = {decimal(epsilon)} for one user {change}, drawn by {mechanism!r}"

    def _warnings(self) -> list[str]:
        return [] if self.private else ["NOT PRIVATE: drawn with the caller's random generator"]


def printable(label: Any) -> str:
    """A label on one line: what would move the cursor or change the terminal is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(label))


def decimal(number: Fraction) -> str:
    """A fraction as people write it: 0.1 where that is exact and short, else 1/3, else about 1e-320."""
    if number > 10**300:
        return f"about 10^{len(str(int(number))) - 1}"
    text = f"{float(number):.12g}"
    if Fraction(text) == number:
        return text
    return str(number) if len(str(number)) < 40 else f"about {text}" if float(number) else "almost 0"


def _encoded(label: Any) -> Any:
    """A label as JSON holds it; what JSON has no type for becomes an object with its type and text."""
    if label is None or isinstance(label, str | bool):
        return label
    if isinstance(label, int) or (isinstance(label, float) and math.isfinite(label)):
        return label
    if isinstance(label, tuple):
        return {"type": "tuple", "value": [_encoded(part) for part in label]}
    if isinstance(label, timedelta):
        return {"type": "timedelta", "value": [label.days, label.seconds, label.microseconds]}
    kind = next(name for name, (known, _) in _TYPES.items() if isinstance(label, known))
    # The second 2:30 of a night on which clocks are put back is another label than the first.
    later = {"fold": 1} if getattr(label, "fold", 0) else {}
    return {"type": kind, "value": label.hex() if isinstance(label, bytes) else _text(label), **later}


def _text(label: Any) -> str:
    return str(label.isoformat()) if isinstance(label, date | time) else str(label)


def _decoded(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    if data["type"] == "tuple":
        return tuple(_decoded(part) for part in data["value"])
    if data["type"] == "timedelta":
        return timedelta(*data["value"])
    label = _TYPES[data["type"]][1](data["value"])
    return label.replace(fold=1) if data.get("fold") == 1 else label


_TYPES: dict[str, tuple[type, Any]] = {
    "datetime": (datetime, datetime.fromisoformat),
    "date": (date, date.fromisoformat),
    "time": (time, time.fromisoformat),
    "decimal": (Decimal, Decimal),
    "fraction": (Fraction, Fraction),
    "float": (float, float),
    "bytes": (bytes, bytes.fromhex),
    "uuid": (UUID, UUID),
}
