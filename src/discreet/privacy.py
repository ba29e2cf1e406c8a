"""Privacy parameters as the exact rationals they denote: epsilon, sensitivities, and the adjacency of datasets.

Adding one user moves every score by something in [-down, +up]. A selection does not change if a constant is added to
all scores, so its sensitivity is delta = (down + up) / 2. Replacing one user by another is a removal and an addition,
so each side becomes down + up (docs/proofs.md, section 1.1).
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, product
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote

ADJACENCIES = ("add-remove", "swap")

ONE, MANY = "one", "many"
"""The number of groups that a user counts in: the values of `each_user`."""

Expressions = tuple[tuple[str, str], ...]
"""The arguments of `events` that are row expressions, each with its text; `by` may have several."""

EXPRESSED = ("user", "item", "value", "by")
"""The arguments of `events` that may be row expressions."""

RENEWALS = ("year", "quarter", "month")
"""The lengths of periods in which a budget can renew."""

Number = int | float | Fraction | Decimal | str
"""A number that denotes an exact rational: "0.1" and Decimal("0.1") are one tenth.

A float among the privacy parameters is its shortest decimal (`parameter`), and any other float its dyadic value.
"""

_MAX_CHARACTERS = 1000
"""The most characters of a parameter as text."""

_MAX_EXPONENT = 1000
"""The largest power of ten in a parameter; a few characters could otherwise take minutes to evaluate."""

_MAX_BITS = 4096
"""The most bits of a numerator or denominator, so that parameters stay printable and quick to compute with."""

_MAX_ITEMS = 2**63
"""The most items of a domain, and so the most scores that one user can move."""


def exact(value: Any, name: str) -> Fraction:
    """Return the exact rational that a public parameter denotes.

    Parameters
    ----------
    value
        A whole number, float, Fraction, Decimal or string such as "0.1", "1/3" or "1e-6".
    name
        The name in the error message.

    Examples
    --------
    >>> exact("0.1", "epsilon"), exact(0.5, "epsilon")
    (Fraction(1, 10), Fraction(1, 2))
    """
    # Nearly all values are of these two types, and the checks below take longer than the conversion.
    if type(value) is Fraction or type(value) is int:
        number = Fraction(value)
    elif isinstance(value, str):
        number = _from_text(value, name)
    elif isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        raise InvalidTypeError(f"{name} must be a number, not {quote(value)}")
    elif isinstance(value, numbers.Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, Decimal) and value.is_finite():
        number = _from_text(str(value), name)
    elif isinstance(value, (numbers.Real, Decimal)):
        if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
            raise InvalidValueError(f"{name} must be a finite number, not {quote(value)}")
        number = Fraction(*value.as_integer_ratio())  # type: ignore[union-attr]  # every float type has it
    else:
        raise InvalidTypeError(f"{name} must be a number or a string such as '0.5' or '1/3', not {quote(value)}")
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MAX_BITS:
        raise InvalidValueError(f"{name} must be a number of at most {_MAX_CHARACTERS} digits, not {quote(value)}")
    return number


def parameter(value: Any, name: str) -> Fraction:
    """Return the exact rational that a privacy parameter denotes: of a float, its shortest decimal.

    Epsilon, delta and their parts are written by people, who mean one tenth by 0.1. Ten times the dyadic value of 0.1
    would exceed a budget of 1. The guarantee states the number that is used, so that both readings are private.

    Examples
    --------
    >>> parameter(0.1, "epsilon"), exact(0.1, "score")
    (Fraction(1, 10), Fraction(3602879701896397, 36028797018963968))
    """
    if isinstance(value, float):
        # A subclass, such as that of NumPy, has a repr of its own.
        value = float.__repr__(value) if math.isfinite(value) else value
    elif type(value).__module__ == "numpy" and isinstance(value, numbers.Real) and math.isfinite(value):
        value = str(value)
    return exact(value, name)


def other_readings(values: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the numbers with some of them as floats, whose dyadic values earlier versions took.

    Examples
    --------
    >>> list(other_readings(["0.1", None, "0.5"]))
    [[Fraction(3602879701896397, 36028797018963968), None, '0.5']]
    """
    readings = []
    for value in values:
        readings.append([value])
        with suppress(InvalidValueError, InvalidTypeError, OverflowError):
            number = parameter(value, "a number")
            nearest = Fraction(float(number))
            readings[-1] += [nearest] if nearest not in (0, number) else []
    yield from islice(map(list, product(*readings)), 1, None)


def _from_text(text: str, name: str) -> Fraction:
    if len(text) > _MAX_CHARACTERS:
        raise InvalidValueError(f"{name} must be a number of at most {_MAX_CHARACTERS} characters, not {len(text)}")
    if "_" not in text and text.isascii():
        _check_exponent(text, name)
        try:
            return _read_number(text)
        except (ValueError, ZeroDivisionError):
            pass
    raise InvalidValueError(f"{name} must be a finite number such as '0.5', '1/3' or '1e-6', not {quote(text)}")


_read_number = lru_cache(maxsize=64)(Fraction)


def _check_exponent(text: str, name: str) -> None:
    exponent = text.lower().partition("e")[2].strip().lstrip("+-")
    if exponent.isdecimal() and (len(exponent) > 6 or int(exponent) > _MAX_EXPONENT):
        raise InvalidValueError(f"{name} must have an exponent of at most {_MAX_EXPONENT}, not {quote(text)}")


def spell_exactly(number: int | Fraction) -> str:
    """Return a whole number or fraction as `str` writes it, at any length; `str` stops at 4300 digits of an int."""
    line = "" if number.denominator == 1 else f"/{Decimal(number.denominator)}"
    return f"{Decimal(number.numerator)}{line}"


def fraction_from_json(value: Any, name: str) -> Fraction:
    """Parse a fraction in JSON, written by `str` or as a number, with any number of digits.

    The exponent is bounded: a few characters could otherwise denote a number that takes minutes to evaluate.
    """
    if isinstance(value, str):
        _check_exponent(value, name)
        if parts := re.fullmatch(r"(-?[0-9]+)/([0-9]+)|(-?[0-9]+)", value):
            # Decimal, because int() refuses text of more than 4300 digits.
            return Fraction(int(Decimal(parts[1] or parts[3])), int(Decimal(parts[2] or 1)))
    return Fraction(value)


def positive(value: Any, name: str) -> Fraction:
    """Return the rational that a privacy parameter denotes, as `parameter` reads it; raise unless it is above zero."""
    return _check_positive(parameter(value, name), value, name)


def positive_exact(value: Any, name: str) -> Fraction:
    """Return the exact rational that `value` denotes, of a float its dyadic value; raise unless it is above zero."""
    return _check_positive(exact(value, name), value, name)


def _check_positive(number: Fraction, value: Any, name: str) -> Fraction:
    if number.numerator <= 0:
        raise InvalidValueError(f"{name} must be above zero, not {quote(value)}")
    return number


def is_whole_number(value: Any) -> bool:
    """Return True if a public parameter is a whole number by its type; True and False are not."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def whole_number(value: Any, name: str, low: int, high: int | None = None, high_in_words: str | None = None) -> int:
    """Return `value` as an int; raise unless it is a whole number from `low` to `high`, if there is one.

    Examples
    --------
    >>> whole_number(3, "k", 1, 5)
    3
    """
    if is_whole_number(value) and low <= value and (high is None or value <= high):
        return int(value)
    upto = "" if high is None else f" to {high_in_words or high}"
    kind = InvalidValueError if is_whole_number(value) else InvalidTypeError
    raise kind(f"{name} must be a whole number from {low}{upto}, not {quote(value)}")


def check_adjacency(adjacency: Any) -> None:
    """Raise unless `adjacency` is one of ADJACENCIES."""
    if not isinstance(adjacency, str) or adjacency not in ADJACENCIES:
        raise InvalidValueError(f"adjacency must be 'add-remove' or 'swap', not {quote(adjacency)}")


@dataclass(frozen=True, init=False)
class Sensitivity:
    """The most that adding one user moves a score: down by at most `down`, up by at most `up`.

    Counts of distinct users are Sensitivity(down=0, up=1), the default for whole numbers. Floats have no default.

    Attributes
    ----------
    down, up
        The most that a score moves down and up.
    items
        The most scores that one user can move, or None if it may be all of them.
    l1
        In a guarantee: the L1 sensitivity of all scores, if the mechanism uses it.

    Examples
    --------
    >>> Sensitivity(down=0, up=1).delta
    Fraction(1, 2)
    >>> Sensitivity(down=0, up=1).under("swap")
    Sensitivity(down=1, up=1)
    >>> Sensitivity(down=0, up=1, items=3).under("swap")
    Sensitivity(down=1, up=1, items=6)
    """

    down: Fraction
    up: Fraction
    items: int | None = None
    l1: Fraction | None = field(default=None, init=False)

    def __init__(self, down: Number = 0, up: Number = 1, items: int | None = None) -> None:
        low, high = exact(down, "sensitivity down"), exact(up, "sensitivity up")
        for side, number, given in (("down", low, down), ("up", high, up)):
            if number < 0:
                raise InvalidValueError(f"sensitivity {side} must be zero or more, not {quote(given)}")
        if low == high == 0:
            raise InvalidValueError("sensitivity must be above zero on at least one side, not down=0 and up=0")
        object.__setattr__(self, "down", low)
        object.__setattr__(self, "up", high)
        most = None if items is None else whole_number(items, "sensitivity items", 1, _MAX_ITEMS, "2^63")
        object.__setattr__(self, "items", most)

    def __repr__(self) -> str:
        bound = "" if self.items is None else f", items={self.items}"
        return f"Sensitivity(down={_literal(self.down)}, up={_literal(self.up)}{bound})"

    @cached_property
    def span(self) -> Fraction:
        """The most that the difference of two scores moves: down + up."""
        return self.down + self.up

    @cached_property
    def delta(self) -> Fraction:
        """The sensitivity of a selection, after centring."""
        return self.span / 2

    def under(self, adjacency: str) -> Sensitivity:
        """Return the sensitivity between datasets that differ by one user added or removed, or by one user replaced."""
        check_adjacency(adjacency)
        if adjacency == "add-remove" and self.l1 is None:
            return self
        if adjacency == "add-remove":
            # Without the l1 of a guarantee, which holds for one mechanism and domain.
            return Sensitivity(self.down, self.up, self.items)
        return Sensitivity(self.span, self.span, None if self.items is None else min(2 * self.items, _MAX_ITEMS))

    @property
    def sides(self) -> Sensitivity:
        """The bounds on each score alone, without the number of scores."""
        return Sensitivity(self.down, self.up)

    def with_l1(self, l1: Fraction) -> Sensitivity:
        """Return the sensitivity with an L1 sensitivity of all scores."""
        known = copy(self)
        object.__setattr__(known, "l1", l1)
        return known

    def to_dict(self) -> dict[str, Any]:
        """Return the sensitivity as JSON values; fractions are strings."""
        known = {"items": self.items, "l1": None if self.l1 is None else str(self.l1)}
        sides = {"down": str(self.down), "up": str(self.up)}
        return {**sides, **{name: value for name, value in known.items() if value is not None}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sensitivity:
        """Return the sensitivity that `to_dict` wrote."""
        made = cls(data["down"], data["up"], data.get("items"))
        return made.with_l1(positive(data["l1"], "sensitivity l1")) if "l1" in data else made


OF_COUNTS = Sensitivity()
"""The sensitivity of counts of users."""


def sensitivity_or_default(given: Any) -> Sensitivity:
    """Return the given sensitivity, or that of counts of users for None; raise for anything else."""
    if given is None:
        return OF_COUNTS
    if not isinstance(given, Sensitivity):
        raise InvalidTypeError(f"sensitivity must be a Sensitivity(down=..., up=...), not {quote(given)}")
    return given


def sum_of_largest(costs: Iterable[tuple[Fraction, int]], most: int) -> Fraction:
    """Return the cost to a user in at most `most` groups: the sum of the largest costs, each shared by some groups.

    Examples
    --------
    >>> sum_of_largest([(Fraction(1, 2), 3), (Fraction(1), 1)], 2)
    Fraction(3, 2)
    """
    total = Fraction(0)
    for cost, size in sorted(costs, reverse=True):
        total += cost * min(size, most)
        most -= min(size, most)
    return total


def _literal(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else repr(str(number))
