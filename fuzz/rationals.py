"""Exact numbers: epsilon and the like. The reference reads digits by hand and knows nothing of Python's Fraction(text).

Not called numbers.py: run from this folder, it would take the place of Python's own module.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.privacy import exact, positive, positive_exact
from fuzz.contract import REFUSED, agree, as_text, outcome

SEEDS = ["1", "0.1", "1/3", "1e-6", "-2.50E+3", ".5", "5.", "0", "-0", " 7 ", "1e1000", "1e-1001", "0x10", "1_000", "٣"]
SEEDS += ["inf", "nan", "1/0", "9" * 400, "0." + "0" * 300 + "1", "1/" + "7" * 300, "1e+0000005", "+1/2", "1 / 2"]
SEEDS += ["float 0000000000000001", "float 8000000000000000", "float 7fefffffffffffff", "float 3fb999999999999a"]
SEEDS += ["float 7ff0000000000000", "decimal 0 15 -1", "decimal 1 3 2000", "decimal 0 0 -999999"]
WORDS = [
    *"0123456789",
    ".",
    "e",
    "E",
    "-",
    "+",
    "/",
    "_",
    " ",
    "\t",
    "\x1f",
    "\x00",
    "inf",
    "nan",
    "٣",
    "\uff11",
    "999",
    "1000",
]
WORDS += ["float ", "decimal ", "7ff0000000000000"]


def check(text: str) -> bool:
    """Compare one input with the reference; return True if it was accepted as a number."""
    given, expected, certain = _meant(text)
    found = outcome(lambda: exact(given, "epsilon"))
    above = outcome(lambda: positive_exact(given, "epsilon"))
    written = outcome(lambda: positive(given, "epsilon"))
    if found is REFUSED:
        agree(above is REFUSED, f"exact refuses {given!r}, positive takes it as {above!r}")
        agree(not (certain and expected is not None), f"{given!r} is a number, and refused")
        return False
    agree(type(found) is Fraction and found == expected, f"{given!r} is read as {found!r}, and is {expected!r}")
    agree((above is not REFUSED) == (found > 0), f"{given!r} is {found!r}, and positive says {above!r}")
    agree(above is REFUSED or above == found, f"{given!r} is {found!r}, and positive says {above!r}")
    # A privacy parameter that is a float is read as the shortest text that Python reads as this float.
    meant = of_text(float.__repr__(given)) if isinstance(given, float) else found
    agree(written is REFUSED if above is REFUSED else written == meant, f"{given!r} is read as {written!r}")
    return True


def check_bytes(data: bytes) -> bool:
    """Try one input of the fuzzer."""
    return check(as_text(data))


def _meant(text: str) -> tuple[Any, Fraction | None, bool]:
    """Return the argument that an input stands for, its number, if any, and True if it has to be accepted."""
    kind, _, rest = text.partition(" ")
    try:
        if kind == "float":
            bits = int(rest[:16], 16)
            given = struct.unpack(">d", struct.pack(">Q", bits))[0]
            return (np.float64(given) if len(rest) > 16 else given), of_float(bits), True
        if kind == "decimal":
            sign, digits, exponent = map(int, rest.split())
            ciphers = tuple(map(int, str(abs(digits))))
            number = of_decimal(sign % 2, ciphers, exponent) if abs(exponent) <= 2000 else None
            short = number is not None and len(ciphers) < 200 and abs(exponent) < 900
            return Decimal((sign % 2, ciphers, exponent)), number, short
    except (ValueError, OverflowError, struct.error):
        pass  # no input of that kind, so it is text
    number = of_text(text)
    return text, number, is_plain(text)


def of_text(text: str) -> Fraction | None:
    """Return the number that a text spells, digit by digit, or None."""
    text = text.strip(" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text[1:] if text.startswith("+") else text)
    if "/" in body:
        above, _, below = body.partition("/")
        # Newer versions of Python allow spaces around the bar.
        top, bottom = whole(above.rstrip()), whole(below.lstrip())
        return None if top is None or not bottom else Fraction(sign * top, bottom)
    mantissa, mark, power = body.replace("E", "e").partition("e")
    before, _, after = mantissa.partition(".")
    digits = whole(before + after)
    shift = whole(power[1:] if power[:1] in ("+", "-") else power) if mark else 0
    if digits is None or shift is None or shift > 2000 or not (before or after):
        return None
    shift = (-shift if power.startswith("-") else shift) - len(after)
    return sign * Fraction(digits * 10 ** max(shift, 0), 10 ** max(-shift, 0))


def whole(text: str) -> int | None:
    """Return the whole number that ASCII digits spell, or None."""
    if not text or any(character not in "0123456789" for character in text):
        return None
    number = 0
    for character in text:
        number = 10 * number + "0123456789".index(character)
    return number


def of_float(bits: int) -> Fraction | None:
    """Return the number that the 64 bits of a double stand for, or None."""
    sign, power, mantissa = bits >> 63, (bits >> 52) & 0x7FF, bits & (2**52 - 1)
    if power == 0x7FF:
        return None
    magnitude = Fraction(mantissa + (2**52 if power else 0)) * Fraction(2) ** (max(power, 1) - 1075)
    return -magnitude if sign else magnitude


def of_decimal(sign: int, ciphers: tuple[int, ...], exponent: int) -> Fraction:
    """Return the number that the parts of a Decimal stand for."""
    number = Fraction(0)
    for cipher in ciphers:
        number = 10 * number + cipher
    return (-number if sign else number) * Fraction(10) ** exponent


def is_plain(text: str) -> bool:
    """Whether a text that spells a number has to be accepted: no spaces, and far from every limit on its size."""
    power = text.lower().partition("e")[2].lstrip("+-")
    return len(text) <= 200 and not any(map(str.isspace, text)) and len(power) <= 6 and (whole(power) or 0) <= 700
