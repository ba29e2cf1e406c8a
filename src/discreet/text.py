"""Format numbers, labels and tables for people, in releases, reports, errors, notebooks and on the command line.

Programs do not parse this text: JSON has its own exact forms. HTML is rendered by jinja2 with every value escaped.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from discreet.privacy import spell_exactly

if TYPE_CHECKING:
    from jinja2 import Template

_LINE_BREAKING = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that end a line or control a terminal, lone surrogates, and the backslash that begins an escape."""

_MARKS = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)|[`*\[]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|~(?=~)|(?<=~)~")
"""Characters that begin or end a tag, a link, code or emphasis of Markdown where they stand."""

_FEW_DIGITS, _MANY_DIGITS = 4, 12
"""Significant digits of a rounded number, and of one whose first four digits already agree to `_CLOSE`."""

_LONGEST_FRACTION = 20
"""A fraction of fewer characters is printed as a fraction."""

_CLOSE = Fraction(1, 10**9)
"""Relative distance from its four-digit neighbour below which a number is printed with twelve digits."""

_FLOAT_ERROR = Fraction(1, 10**14)
"""Relative distance below which a float, or a short sum of floats, stands for the decimal next to it."""

_TABLE = (
    "<table>{% if head %}<tr>{% for cell in head %}<th>{{ cell }}</th>{% endfor %}</tr>{% endif %}"
    "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>"
)
_VIEW = (
    "<b>{{ title }}</b>{{ body | safe }}"
    "<small>{% for note in notes %}{{ note }}{{ '' if loop.last else '<br>' | safe }}{% endfor %}</small>"
)


def decimal(number: Fraction) -> str:
    """Format a fraction: as 0.1 if that is exact and short, else as 1/3, else as "about 1e-320".

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
    longest = _LONGEST_FRACTION
    if max(abs(number.numerator), number.denominator) < 10**longest and len(spelled := str(number)) < longest:
        return spelled
    return f"about {text}" if float(number) else "almost 0"


def decimal_above(number: Fraction) -> str:
    """Format a promised number, zero or more: as `decimal` does if that is exact, else rounded up.

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
    """Format a spent or promised number, zero or more: as an exact short decimal, else rounded up to four digits.

    A float within 1e-14 (relative) of a short decimal is printed as that decimal.

    Examples
    --------
    >>> round_up(Fraction(949, 2500)), round_up(Fraction(1, 3)), round_up(Fraction(0.1))
    ('0.3796', '0.3334', '0.1')
    """
    return _round(number, ROUND_CEILING)


def round_down(number: Fraction) -> str:
    """Format a remaining number, zero or more: as an exact short decimal, else rounded down to four digits.

    Examples
    --------
    >>> round_down(Fraction(1, 4)), round_down(Fraction(2, 3)), round_down(1 - Fraction(0.1))
    ('0.25', '0.6666', '0.9')
    """
    return _round(number, ROUND_FLOOR)


def round_apart(above: Fraction, below: Fraction) -> tuple[str, str]:
    """Format a number that exceeds another: the first rounded up, the other down, so that the texts differ.

    Examples
    --------
    >>> round_apart(Fraction(1, 3), Fraction(1, 4)), round_apart(Fraction(1, 10), 1 - 9 * Fraction(0.1))
    (('0.3334', '0.25'), ('0.1', '0.0999999'))
    """
    texts, digits = (round_up(above), round_down(below)), _FEW_DIGITS
    while Fraction(texts[0]) <= Fraction(texts[1]):
        digits += 2
        ends = _divide(above, digits, ROUND_CEILING), _divide(below, digits, ROUND_FLOOR)
        texts = f"{ends[0]:f}", f"{ends[1]:f}"
    return texts


def _round(number: Fraction, rounding: str) -> str:
    exact = decimal(number)
    if exact[:1].isdigit() and "/" not in exact:
        return exact
    found, nearest = _divide(number, _FEW_DIGITS, rounding), _divide(number, _FEW_DIGITS, ROUND_HALF_EVEN)
    if (off := abs(Fraction(nearest) - number)) < number * _CLOSE:
        # The float 0.1 is slightly above one tenth; printing 0.1001 would mislead.
        is_float = number.denominator & (number.denominator - 1) == 0
        found = nearest if is_float and off < number * _FLOAT_ERROR else _divide(number, _MANY_DIGITS, rounding)
    return f"{found:f}" if -5 <= found.adjusted() < 12 else f"{found:e}"


def _divide(number: Fraction, digits: int, rounding: str) -> Decimal:
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)


def repr_with_decimals(instance: Any, spell: Callable[[Fraction], str]) -> str:
    """Return the repr of a dataclass with its fractions formatted by `spell`."""
    values = {each.name: getattr(instance, each.name) for each in fields(instance) if each.repr}
    shown = (f"{name}={spell(value) if isinstance(value, Fraction) else repr(value)}" for name, value in values.items())
    return f"{type(instance).__name__}({', '.join(shown)})"


def count_with_commas(count: int | Fraction) -> str:
    """Format a whole number with commas between thousands, and a fraction as `decimal` does."""
    sign = "-" if count < 0 else ""
    # Python formats no int of more than 4300 digits; Decimal has no such limit.
    return f"{Decimal(count):,}" if isinstance(count, int) else sign + decimal(abs(count))


def number_for_programs(count: int | Fraction) -> str:
    """Format a number exactly for a program: without commas, as a short decimal or else as a fraction."""
    text = "" if isinstance(count, int) else decimal(abs(count))
    if not text[:1].isdigit():
        return spell_exactly(count)
    return f"-{text}" if count < 0 else text


def describe_multiple(ratio: float) -> str:
    """Format a finite ratio to two significant digits, and from 99.5 on to the nearest whole number.

    Examples
    --------
    >>> describe_multiple(0.814), describe_multiple(48.3), describe_multiple(1234.5)
    ('0.81', '48', '1,234')
    """
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.2g}"


def three_digits(number: float) -> str:
    """Format a finite number to three significant digits.

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
    """Format a time in minutes, seconds, ms or µs, to three significant digits."""
    for size, unit in ((60, "min"), (1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds * 1e6)} µs"


def printable(label: Any, width: int | None = None) -> str:
    r"""Return a label on one line, with every unprintable character escaped, cut to `width` characters if given.

    Examples
    --------
    >>> print(printable("a\nb"))
    a\nb
    """
    escaped = (c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(label))
    return "".join(escaped) if width is None else shorten("".join(escaped), width)


def shorten(text: str, width: int) -> str:
    """Cut a text to at most `width` characters, with "..." at the cut.

    Examples
    --------
    >>> shorten("The Good, the Bad and the Ugly", 12)
    'The Good,...'
    """
    return text if len(text) <= width else f"{text[: width - 3].rstrip()}..."


def escape_line(label: Any) -> str:
    r"""Return a label on one line, reversibly: a backslash becomes \\, a control character \n or \x1b."""
    # unicode_escape accepts lone surrogates, which UTF-8 refuses.
    return _LINE_BREAKING.sub(lambda found: found[0].encode("unicode_escape").decode(), str(label))


def escape_markdown(text: str) -> str:
    r"""Return a text within a line of Markdown, in which it stands for itself; ordinary names stay as they are.

    Examples
    --------
    >>> print(escape_markdown("<b>R&B</b> *[a](b)* user_id, 3 < 4"))
    \<b>R&B\</b> \*\[a](b)\* user_id, 3 < 4
    """
    return _MARKS.sub(r"\\\g<0>", text)


def align_columns(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """Format a table as lines, with two spaces between columns.

    Parameters
    ----------
    rows
        The cells; all rows have the same length.
    numbers
        Align all columns but the first to the right.
    """
    widths = [max(map(measure_width, column)) for column in zip(*rows, strict=True)]
    sides = "<" + (">" if numbers else "<") * (len(widths) - 1)
    return ["  ".join(map(pad_cell, row, widths, sides)).rstrip() for row in rows]


def pad_cell(text: str, width: int, side: str = "<") -> str:
    """Pad a text to `width` terminal columns, on the right, or on the left with the side ">".

    Examples
    --------
    >>> pad_cell("寿司", 6), pad_cell("7", 3, ">")
    ('寿司  ', '  7')
    """
    blanks = " " * (width - measure_width(text))
    return blanks + text if side == ">" else text + blanks


def measure_width(text: str) -> int:
    """Return the terminal columns that a text takes: two for a wide character, none for a combining one."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def render_html(template: str, **values: Any) -> str:
    """Render a jinja2 template, given as text. Every value is escaped unless the template marks it as safe.

    Examples
    --------
    >>> render_html("<b>{{ name }}</b>", name="<a>")
    '<b>&lt;a&gt;</b>'
    """
    return _compile(template).render(values)


@cache
def _compile(template: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined).from_string(template)


def make_html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return rows of text as an HTML table.

    Examples
    --------
    >>> make_html_table([("<a>", "1")], head=("item", "count"))
    '<table><tr><th>item</th><th>count</th></tr><tr><td>&lt;a&gt;</td><td>1</td></tr></table>'
    """
    return render_html(_TABLE, rows=rows, head=head)


def make_html_view(title: str, body: str, notes: Iterable[str]) -> str:
    """Return a title in bold, `body` as the HTML that it is, and notes in small print, a line each."""
    return render_html(_VIEW, title=title, body=body, notes=notes)


def hash_for_policy(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows one inline style or script, and no other.

    Examples
    --------
    >>> hash_for_policy("alert('Hello, world.');")
    'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='
    """
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
