"""What is said of a column that is not there.

The names of columns are public where they are a schema. Those of a text file are its first line, which is a row of
somebody's where the file has no header: of these at most one is shown, and only if it is close to what was asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from discreet.errors import InvalidValueError, quote


def nearest(name: Any, columns: Sequence[str], private: bool) -> str | None:
    """The column that is most likely meant, if any is close; never one with a digit where names may be private."""
    if not isinstance(name, str):
        return None
    allowed = [column for column in columns if not (private and any(map(str.isdigit, column)))]
    folded = {column.casefold(): column for column in reversed(allowed)}
    close = difflib.get_close_matches(name.casefold(), folded, 1, cutoff=0.75 if private else 0.6)
    return folded[close[0]] if close else None


def suggestion(name: Any, columns: Sequence[str], private: bool) -> str:
    """The end of a sentence that asks for the nearest column, or nothing."""
    if len(columns) == 1 and any(mark in columns[0] for mark in ",;\t|"):
        return "; the header is one column: are its names separated by another delimiter?"
    near = nearest(name, columns, private)
    return "" if near is None else f"; did you mean {near}?"


def choices(columns: Sequence[str]) -> str:
    """The columns to choose from, as far as they fit a message."""
    return ", ".join(columns[:50]) + (", ..." if len(columns) > 50 else "")


def refuse_column(argument: str, column: Any, columns: Sequence[str], private: bool) -> NoReturn:
    """Raises the error about an argument that names no column of the events."""
    hint = suggestion(column, columns, private)
    if private:
        raise InvalidValueError(
            f"{argument} must be a column of the table, and {quote(column)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"{argument} must be a column of the table, one of {choices(columns)}, not {quote(column)}{hint}"
    )
