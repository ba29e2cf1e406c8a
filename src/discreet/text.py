"""Numbers, labels and tables as people read them: what releases, reports, errors and the command line all print.

Nothing here is read back: JSON has exact forms of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any
from unicodedata import combining, east_asian_width

from discreet.privacy import spell_exactly

_LINE_BREAKING = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What could end a line or change a terminal, half of a surrogate pair, and the sign that escapes begin with."""


_FEW_DIGITS, _MANY_DIGITS = 4, 12
_LONG = 10**20
_HARDLY = Fraction(1, 10**9)
_FLOAT_ERROR = Fraction(1, 10**14)
"""By what share a number that was given as a float, or a sum of such, may differ from the decimal that was meant."""


def decimal(number: Fraction) -> str:
    """A fraction as people write it: 0.1 where that is exact and short, else 1/3, else about 1e-320.

    Examples
    --------
    >>> decimal(Fraction(1, 10)), decimal(Fraction(1, 3)), decimal(Fraction(10**400))
    ('0.1', '1/3', 'about 10^400')
    """
    if number > 10**300:
        return f"about 10^{Decimal(int(number)).adjusted()}"
    text = f"{float(number):.12g}"
    if Fraction(text) == number:
        return text
    # Python spells no whole number of more than 4300 digits.
    if max(abs(number.numerator), number.denominator) < _LONG and len(spelled := str(number)) < 20:
        return spelled
    return f"about {text}" if float(number) else "almost 0"


def decimal_above(number: Fraction) -> str:
    """A number that is promised, zero or more: as `decimal` has it where that is exact, else rounded up, never down.

    Examples
    --------
    >>> decimal_above(Fraction(1, 3)), decimal_above(Fraction(10**18 + 1, 10**18))
    ('1/3', '1.00000000001 (rounded up)')
    """
    text = decimal(number)
    if text[:1].isdigit():
        return text
    return f"{_divide(number, _MANY_DIGITS, ROUND_CEILING):g} (rounded up)"


def round_up(number: Fraction) -> str:
    """What is spent or promised, zero or more, for people: an exact decimal of few digits, else four, never too low.

    What a float has beside the decimal that it was written as is left out: a share below 1e-14.

    Examples
    --------
    >>> round_up(Fraction(949, 2500)), round_up(Fraction(1, 3)), round_up(Fraction(0.1))
    ('0.3796', '0.3334', '0.1')
    """
    return _round(number, ROUND_CEILING)


def round_down(number: Fraction) -> str:
    """What is left, zero or more, for people: an exact decimal of few digits, else four, never too high.

    Examples
    --------
    >>> round_down(Fraction(1, 4)), round_down(Fraction(2, 3)), round_down(1 - Fraction(0.1))
    ('0.25', '0.6666', '0.9')
    """
    return _round(number, ROUND_FLOOR)


def _round(number: Fraction, rounding: str) -> str:
    exact = decimal(number)
    if exact[:1].isdigit() and "/" not in exact:
        return exact
    found, nearest = _divide(number, _FEW_DIGITS, rounding), _divide(number, _FEW_DIGITS, ROUND_HALF_EVEN)
    if (off := abs(Fraction(nearest) - number)) < number * _HARDLY:
        # The float 0.1 is not one tenth, but 0.1001 would look like another number.
        is_float = number.denominator & (number.denominator - 1) == 0
        found = nearest if is_float and off < number * _FLOAT_ERROR else _divide(number, _MANY_DIGITS, rounding)
    # A power of ten after many zeros, none after a few.
    return f"{found:f}" if -5 <= found.adjusted() < 12 else f"{found:e}"


def _divide(number: Fraction, digits: int, rounding: str) -> Decimal:
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)


def repr_with_decimals(instance: Any, spell: Callable[[Fraction], str]) -> str:
    """A dataclass as `repr` has it, with its fractions spelled by a function of this module."""
    values = {each.name: getattr(instance, each.name) for each in fields(instance) if each.repr}
    shown = (f"{name}={spell(value) if isinstance(value, Fraction) else repr(value)}" for name, value in values.items())
    return f"{type(instance).__name__}({', '.join(shown)})"


def count_with_commas(count: int | Fraction) -> str:
    """A count for people: a whole number with commas between thousands, a fraction as `decimal` has it."""
    sign = "-" if count < 0 else ""
    # As a Decimal, which may have more digits than Python spells of an int.
    return f"{Decimal(count):,}" if isinstance(count, int) else sign + decimal(abs(count))


def number_for_programs(count: int | Fraction) -> str:
    """A number that a program can read, exactly: no commas, a decimal where that is short, else a fraction."""
    text = "" if isinstance(count, int) else decimal(abs(count))
    if not text[:1].isdigit():
        return spell_exactly(count)
    return f"-{text}" if count < 0 else text


def describe_multiple(ratio: float) -> str:
    """A finite ratio to two digits, and to the last digit of a large one.

    Examples
    --------
    >>> describe_multiple(0.814), describe_multiple(48.3), describe_multiple(1234.5)
    ('0.81', '48', '1,234')
    """
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.2g}"


def three_digits(number: float) -> str:
    """A finite number to three digits.

    Examples
    --------
    >>> three_digits(0.12345), three_digits(1234.5), three_digits(2e-7)
    ('0.123', '1,234', '2.00e-07')
    """
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        places = 0 if number == 0 else max(0, 2 - math.floor(math.log10(abs(number))))
        return f"{number:,.{places}f}"
    return f"{number:.2e}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it: minutes, seconds, ms or µs."""
    for size, unit in ((60, "min"), (1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds * 1e6)} µs"


def printable(label: Any) -> str:
    r"""A label on one line: what would move the cursor or change the terminal is escaped.

    Examples
    --------
    >>> print(printable("a\nb"))
    a\nb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(label))


def shorten(text: str, width: int) -> str:
    """A text of at most so many characters, cut where it is longer.

    Examples
    --------
    >>> shorten("The Good, the Bad and the Ugly", 12)
    'The Good,...'
    """
    return text if len(text) <= width else f"{text[: width - 3].rstrip()}..."


def escape_line(label: Any) -> str:
    r"""A label on one line from which it can be read back: a backslash is \\, a control character \n or \x1b."""
    # Lone surrogates have no encoding, but this one, which is of ASCII alone.
    return _LINE_BREAKING.sub(lambda found: found[0].encode("unicode_escape").decode(), str(label))


def align_columns(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """Rows of a table as lines, with two spaces between columns.

    Parameters
    ----------
    rows
        The cells, as many in each row.
    numbers
        Whether all columns but the first hold numbers, which are moved to the right.
    """
    widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
    sides = "<" + (">" if numbers else "<") * (len(widths) - 1)
    return ["  ".join(map(pad_cell, row, widths, sides)).rstrip() for row in rows]


def pad_cell(text: str, width: int, side: str = "<") -> str:
    """A text with blanks after it, or before it with the side ">", that takes so many places in a terminal.

    Examples
    --------
    >>> pad_cell("寿司", 6), pad_cell("7", 3, ">")
    ('寿司  ', '  7')
    """
    blanks = " " * (width - measure_width(text))
    return blanks + text if side == ">" else text + blanks


def measure_width(text: str) -> int:
    """How many places a text takes in a terminal: a wide character takes two, and a combining accent none."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
