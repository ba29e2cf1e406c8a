"""The exact numbers that texts and JSON values spell."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.errors import Error, InvalidValueError
from discreet.privacy import exact
from discreet.sources.files.wording import describe_not_finite


def numbers_from_texts(texts: list[str], where: str) -> list[int | Fraction]:
    """The exact numbers that the fields of a column spell."""
    with suppress(ValueError):
        if all(map(_is_plain, texts)):
            return list(map(int, texts))
    return _check_finite([_parse_number(text) if _is_plain(text) else None for text in texts], where)


def numbers_from_values(values: list[Any], where: str) -> list[int | Fraction]:
    """The exact numbers among JSON values; true and false are none."""
    if {type(value) for value in values} <= {int}:
        return values
    return _check_finite([_parse_number(value) if type(value) in (int, Decimal) else None for value in values], where)


def spells_number(text: str) -> bool:
    """Whether a text spells a finite number."""
    return _is_plain(text) and _parse_number(text) is not None


def _check_finite(numbers: list[int | Fraction | None], where: str) -> list[int | Fraction]:
    finite = [number for number in numbers if number is not None]
    if len(finite) < len(numbers):
        raise InvalidValueError(describe_not_finite(where))
    return finite


def _parse_number(value: Any) -> int | Fraction | None:
    """The exact number that a text or a Decimal denotes, or None; whole ones as int, which sort fastest."""
    try:
        number = exact(value, "score")
    except (Error, ValueError):
        return None
    return number.numerator if number.denominator == 1 else number


def _is_plain(text: str) -> bool:
    """Whether a text has none of what Python allows in a number and a table does not: 1_000, digits of all scripts."""
    return text.isascii() and "_" not in text
