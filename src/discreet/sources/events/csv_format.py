"""How CSV files are written: as the caller says, or as their headers show, which are public.

Nothing of it is guessed from rows: one user's row could change how all are read.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote

DELIMITERS = {".csv": ",", ".tsv": "\t"}
QUOTE = '"'

ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
"""How text files are encoded, of those that people have."""

_NAMES = {"iso8859-1": "latin-1", "utf-8-sig": "utf-8"}
"""Names of Python for encodings that are one of those; a byte order mark is read over anyway."""

_POSSIBLE = (",", ";", "\t")
"""What a header may have between names, the first of which that it has is meant."""


@dataclass(frozen=True, repr=False)
class CsvFormat:
    """The delimiter of fields, what stands before a quote inside quotes, and how bytes spell text, where said."""

    delimiter: str | None = None
    escape: str | None = None
    encoding: str | None = None

    def delimiter_for(self, ending: str) -> str | None:
        """What separates fields in a file; the name of a .tsv says that it is tabs. None where its header shows it."""
        return self.delimiter if ending == ".csv" else DELIMITERS[ending]


USUAL = CsvFormat()


def sniff_delimiter(header: str) -> str:
    """The delimiter that a header has between names, outside of quotes: a comma, else a semicolon or a tab."""
    plain = "".join(header.split(QUOTE)[::2])
    return next((each for each in _POSSIBLE if each in plain), DELIMITERS[".csv"])


def check_csv_format(delimiter: Any, escape: Any, encoding: Any, endings: Collection[str | None]) -> CsvFormat:
    """The format of files with these endings, one of which must be able to have it."""
    tabular = bool(set(endings) & DELIMITERS.keys())
    if delimiter is not None:
        _check_character("delimiter", delimiter, "such as ';'", forbidden=QUOTE)
        if ".csv" not in endings:
            raise InvalidValueError("delimiter must be left out unless the table or the domain is a .csv file")
    if escape is not None:
        _check_character("escape", escape, r"such as '\\'")
        if not tabular:
            raise InvalidValueError("escape must be left out unless the table or the domain is a .csv or .tsv file")
        if not escape.isascii() or escape == delimiter or escape in _POSSIBLE:
            raise InvalidValueError(f"escape must be an ASCII character other than the delimiter, not {quote(escape)}")
    if encoding is not None:
        encoding = _name_encoding(encoding)
        if encoding not in ENCODINGS:
            raise InvalidValueError(f"encoding must be {', '.join(map(repr, ENCODINGS))}, not {quote(encoding)}")
        if not tabular:
            raise InvalidValueError("encoding must be left out unless the table or the domain is a .csv or .tsv file")
    return CsvFormat(delimiter, escape, encoding)


def _name_encoding(given: Any) -> Any:
    """An encoding by the name that it has here, whichever of its names was given; what is none stays as it is."""
    try:
        name = codecs.lookup(given).name
    except (LookupError, TypeError, ValueError):
        return given
    return _NAMES.get(name, name)


def _check_character(argument: str, given: Any, example: str, forbidden: str = "") -> None:
    """Raises unless something is one character that can stand between fields or before quotes."""
    message = f"{argument} must be one character, {example}, and no letter, digit, quote or line break, not"
    if not isinstance(given, str):
        raise InvalidTypeError(f"{message} {quote(given)}")
    if len(given) != 1 or given.isalnum() or given in f"{forbidden}\n\r\0\ufeff":
        raise InvalidValueError(f"{message} {quote(given)}")
