"""What a caller says of CSV files. Nothing of it is guessed: one user's row could change how all are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote

DELIMITERS = {".csv": ",", ".tsv": "\t"}
QUOTE = '"'


@dataclass(frozen=True, repr=False)
class CsvFormat:
    """The delimiter of fields and what stands before a quote inside quotes, where they are not the usual ones."""

    delimiter: str | None = None
    escape: str | None = None

    def delimiter_for(self, ending: str) -> str:
        """What separates fields in a file; the name of a .tsv says that it is tabs."""
        return self.delimiter if self.delimiter and ending == ".csv" else DELIMITERS[ending]


USUAL = CsvFormat()


def check_csv_format(delimiter: Any, escape: Any, endings: Iterable[str | None]) -> CsvFormat:
    """The format of files with these endings, one of which must be able to have it."""
    endings = set(endings)
    if delimiter is not None:
        _check_character("delimiter", delimiter, "such as ';'", forbidden=QUOTE)
        if ".csv" not in endings:
            raise InvalidValueError("delimiter must be left out unless the table or the domain is a .csv file")
    if escape is not None:
        _check_character("escape", escape, r"such as '\\'")
        if not endings & DELIMITERS.keys():
            raise InvalidValueError("escape must be left out unless the table or the domain is a .csv or .tsv file")
        if not escape.isascii() or escape in (delimiter or DELIMITERS[".csv"], DELIMITERS[".tsv"]):
            raise InvalidValueError(f"escape must be an ASCII character other than the delimiter, not {quote(escape)}")
    return CsvFormat(delimiter, escape)


def _check_character(argument: str, given: Any, example: str, forbidden: str = "") -> None:
    """Raises unless something is one character that can stand between fields or before quotes."""
    message = f"{argument} must be one character, {example}, and no letter, digit, quote or line break, not"
    if not isinstance(given, str):
        raise InvalidTypeError(f"{message} {quote(given)}")
    if len(given) != 1 or given.isalnum() or given in f"{forbidden}\n\r\0\ufeff":
        raise InvalidValueError(f"{message} {quote(given)}")
