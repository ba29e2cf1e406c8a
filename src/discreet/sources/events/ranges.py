"""Public domains that are never written out: ranges of whole numbers, and all strings up to a length.

A string is a number in bijective numeration to the base of the alphabet's size: its characters are the digits 1, 2, ...
and there is no digit zero. The empty string is 0, and strings are ordered by length and then by the alphabet. Engines
compute the number of each row by an expression that fails on no row; released numbers are spelled here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, ClassVar

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.privacy import is_whole_number
from discreet.sources.events.cells import LARGEST_EXACT, engine_function, null_unless, read_cell
from discreet.sources.events.dialects.base import Dialect


@dataclass(frozen=True)
class Integers:
    """The whole numbers from `lo` to `hi`, both included."""

    lo: int
    hi: int

    kind: ClassVar[str] = "integer"
    title: ClassVar[str] = "a range of whole numbers"

    @property
    def d(self) -> int:
        """The number of items."""
        return self.hi - self.lo + 1

    def description(self) -> list[Any]:
        """Return the public description of the domain as values of JSON."""
        return [self.lo, self.hi]

    def spell(self, number: int) -> Any:
        """Return the item of a number."""
        return number

    def list_items(self) -> list[Any]:
        """Return all items in order."""
        return [self.spell(number) for number in range(self.lo, self.hi + 1)]

    def check_engine(self, dialect: Dialect) -> None:
        """Raise unless the engine is known to read items as the other engines do."""

    def read_item(self, dialect: Dialect, column: Any) -> Any:
        """Return the number of each cell's item, NULL for a cell that is none; it may be out of range."""
        return read_cell(dialect, column, "integer")

    def holds_long_numbers(self) -> bool:
        """Return True if the domain has whole numbers beyond 2^53."""
        return max(-self.lo, self.hi) > LARGEST_EXACT


def integers(lo: int, hi: int) -> Integers:
    """Return the domain of all whole numbers from `lo` to `hi`, both included, at most 2^63 of them.

    The domain is never written out.

    Examples
    --------
    >>> import discreet
    >>> discreet.integers(0, 9)
    Integers(lo=0, hi=9)
    """
    for name, value in (("lo", lo), ("hi", hi)):
        if not is_whole_number(value):
            raise InvalidTypeError(f"{name} must be a whole number, not {quote(value)}")
        if not -(2**63) <= value < 2**63:
            raise InvalidValueError(f"{name} must be from -2^63 to 2^63 - 1, not {quote(value)}")
    if hi < lo:
        raise InvalidValueError(f"hi must be at least lo, {lo}, not {hi}")
    if hi - lo >= 2**63:
        raise InvalidValueError(f"hi must be less than 2^63 above lo, not {hi - lo} above")
    return Integers(int(lo), int(hi))


STRINGS = "strings:"
"""The beginning of a text that stands for all strings up to a length."""

LONGEST = 63
"""The largest length of a string: strings of two characters up to this length have numbers below 2^63."""

_RANGES = {"a-z": ascii_lowercase, "A-Z": ascii_uppercase, "0-9": digits}


@dataclass(frozen=True, repr=False)
class Strings(Integers):
    """All strings from `min_length` to `max_length` characters of an alphabet, numbered from `lo` to `hi`."""

    alphabet: str
    max_length: int
    min_length: int

    kind: ClassVar[str] = "string"
    title: ClassVar[str] = "all strings up to a length"

    def __repr__(self) -> str:
        return f"Strings({self.alphabet!r}, max_length={self.max_length}, min_length={self.min_length})"

    def description(self) -> list[Any]:
        return [self.alphabet, self.min_length, self.max_length]

    def spell(self, number: int) -> str:
        """Return the string of a number."""
        size, word = len(self.alphabet), ""
        while number:
            number, digit = divmod(number - 1, size)
            word = self.alphabet[digit] + word
        return word

    def check_engine(self, dialect: Dialect) -> None:
        if dialect.text_bytes is None or dialect.bytes_text is None:
            raise InvalidValueError(
                f"domain must be a list on {dialect.title}: discreet does not know how it takes text apart"
            )

    def read_item(self, dialect: Dialect, column: Any) -> Any:
        """Return the number of each cell's text, NULL if it is too long or has a character outside the alphabet."""
        if dialect.number_string is not None:
            return dialect.number_string(read_cell(dialect, column, "string"), self.alphabet, self.max_length)
        import ibis

        text = dialect.drop_broken_text(read_cell(dialect, column, "string"))
        # Without the collation of its column.
        text = dialect.text_of_key(dialect.group_key(text), is_text=True)
        substr = engine_function(dialect.substring, "string", "string", "int64", "int64")
        alphabet, places = self.alphabet, list[Any]()
        for place in range(self.max_length):
            # A place from the start is read twice as fast as one from the end, and ibis' own substr would add a CASE.
            character = substr(text, text.length() - place, 1)
            # Some engines return 32 bits, which must be widened before the multiplication; ibis assumes 64.
            found = dialect.find(character, alphabet).cast("int32").cast("int64")
            # The digit is 0 if the text is shorter, and NULL if the character is not in the alphabet.
            digit = (found + 1).nullif(0) * len(alphabet) ** place
            places.append(ibis.cases((text.length() > place, digit), else_=ibis.literal(0, "int64")))
        return null_unless(text.length() <= self.max_length, _add_up(places))

    def holds_long_numbers(self) -> bool:
        """Return True if a string can spell a whole number beyond 2^53, which has 16 digits."""
        return self.max_length >= len(str(2**53)) and any(each in self.alphabet for each in "123456789")


def strings(alphabet: str, max_length: int, *, min_length: int = 1) -> Strings:
    """Return the domain of all strings over an alphabet up to a length, at most 2^63 - 1 of them.

    The domain is never written out. Text that is longer or has another character is no item. Characters are code
    points: an accent that is a code point of its own counts as one. Strings are ordered by length, then by alphabet.

    Parameters
    ----------
    alphabet
        The characters, each of them once.
    max_length
        The largest number of characters of a string.
    min_length
        The least number of characters. With 0 the empty string is an item too.

    Examples
    --------
    >>> import discreet
    >>> words = discreet.strings("abcdefghijklmnopqrstuvwxyz", 13)
    >>> words.d
    2580398988131886038
    >>> searches = {"who": ["ann", "bob", "eve"], "word": ["maps", "maps", "MAPS!"]}
    >>> import pyarrow
    >>> source = discreet.events(pyarrow.table(searches), user="who", item="word", domain=words)
    >>> discreet.top_k(source, k=1, epsilon=100).items
    ['maps']
    """
    if not isinstance(alphabet, str):
        raise InvalidTypeError(f"alphabet must be a string of characters, not {quote(alphabet)}")
    if not alphabet:
        raise InvalidValueError("alphabet must have at least one character, not none")
    repeated = [each for each in alphabet if alphabet.count(each) > 1]
    if repeated:
        raise InvalidValueError(f"alphabet must have each character once, but {quote(repeated[0])} is there twice")
    if any(each == "\0" or "\ud800" <= each <= "\udfff" for each in alphabet):
        raise InvalidValueError("alphabet must be proper text without NUL, which databases cannot hold")
    _check_length("max_length", max_length, 1)
    _check_length("min_length", min_length, 0)
    if min_length > max_length:
        raise InvalidValueError(f"min_length must be at most max_length, {max_length}, not {min_length}")
    size, longest, shortest = len(alphabet), int(max_length), int(min_length)
    lo, hi = sum(size**length for length in range(shortest)), sum(size**length for length in range(1, longest + 1))
    if hi >= 2**63:
        raise InvalidValueError(
            f"max_length must leave fewer than 2^63 strings, and {size} characters make more of up to {longest}"
        )
    return Strings(lo, hi, alphabet, longest, shortest)


def _check_length(name: str, given: Any, least: int) -> None:
    if not is_whole_number(given) or not least <= given <= LONGEST:
        raise InvalidValueError(f"{name} must be a whole number from {least} to {LONGEST}, not {quote(given)}")


def _add_up(terms: Sequence[Any]) -> Any:
    """Return the sum as a balanced tree, because SQL parsers limit the depth of an expression."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return _add_up(terms[:middle]) + _add_up(terms[middle:])


def parse_strings(text: str) -> Strings:
    """Parse strings:ALPHABET:MAX, whose alphabet may hold colons, and a-z, A-Z or 0-9 as ranges."""
    parts = re.fullmatch(rf"{STRINGS}(.+):([0-9]{{1,3}})", text, re.DOTALL)
    if parts is None:
        raise InvalidValueError(f"domain must be strings:ALPHABET:MAX such as strings:abc:8, not {quote(text)}")
    return strings(re.sub("a-z|A-Z|0-9", lambda ends: _RANGES[ends[0]], parts[1]), int(parts[2]))
