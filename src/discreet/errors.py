"""What discreet raises: always an Error, and always one of Python's own exceptions as well.

InvalidValueError is a ValueError, InvalidTypeError a TypeError, MissingExtraError an ImportError. What was allowed and
could not be had is a RuntimeError: LedgerError, with BudgetSpentError below it (`errors.py`), EngineError
(`sources/events/engine.py`), and InternalError, which only a fault of discreet itself can cause.
"""

from __future__ import annotations

import difflib
import os
import re
import reprlib
from collections.abc import Sequence
from typing import Any, NoReturn

# URLs without what may be secret in them: a name and a password before the host, and a query.

_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+:/+")
"""How a URL begins, in any case and with a slash too few or too many."""


def redact_url(text: str) -> str:
    """A URL without what may be secret in it; any other text as it is.

    Examples
    --------
    >>> redact_url("https://ann:pw@example.org/events.csv?X-Amz-Signature=ab12")
    'https://example.org/events.csv'
    >>> redact_url(" POSTGRES:/ann:p/w@example.org/shop")
    'POSTGRES:/...'
    """
    begin = _URL.match(text)
    if begin is None:
        return text
    scheme, rest = begin.group().strip(), text[begin.end() :]
    place = re.split("[?#]", rest)[0]
    authority = place.partition("/")[0]
    # A password may hold any sign, and then what looks like the host or the path is part of it.
    if "@" in rest[len(authority) :]:
        return f"{scheme}..."
    return f"{scheme}{authority.rpartition('@')[2]}{place[len(authority) :]}"


class Error(Exception):
    """Any complaint of discreet about what it was given.

    Examples
    --------
    >>> import discreet
    >>> try:
    ...     discreet.top_k({"a": 1}, k=2, epsilon=1)
    ... except discreet.Error as error:
    ...     print(error)
    k must be a whole number from 1 to 1, the number of items, not 2
    """


class InvalidValueError(Error, ValueError):
    """An argument of the right kind with a value that is not allowed."""


class InvalidTypeError(Error, TypeError):
    """An argument of the wrong kind."""


class MissingExtraError(Error, ImportError):
    """A library that only some uses of discreet need is not installed."""


_FAULT = (
    "discreet found a fault in its own work and withholds the release; what was charged for it stays spent. "
    "Please report this"
)


class InternalError(Error, RuntimeError):
    """A check of discreet's own work failed, so the release is withheld; the message tells nothing of the data."""

    def __init__(self, message: str = _FAULT) -> None:
        super().__init__(message)


def quote(value: Any) -> str:
    """A public argument as an error message shows it: short, on one line, and of a URL nothing that may be secret."""
    try:
        text = reprlib.repr(_redact(value))
    except Exception:  # a repr that raises or is too long to print must not replace the message
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:80]


def _redact(value: Any) -> Any:
    """A text or a path, or several of them, without secrets of URLs; anything else as it is."""
    if isinstance(value, os.PathLike):
        # A path of a URL has one slash of two.
        path = redact_url(str(value))
        return value if path == str(value) else path
    if type(value) in (list, tuple):
        return type(value)(map(_redact, value))
    return redact_url(value) if isinstance(value, str) else value


# What a ledger raises when it cannot or will not let a release go ahead.


class LedgerError(Error, RuntimeError):
    """A ledger cannot be used: its file is damaged, locked, full or gone, or a charge has no release; none was made.

    Examples
    --------
    >>> import discreet, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"no ledger"), file.flush()
    ...     try:
    ...         discreet.Ledger(file.name)
    ...     except discreet.LedgerError as error:
    ...         print(str(error).replace(file.name, "budget.db"))
    the ledger 'budget.db' is not a ledger, or is damaged: SQLite cannot read it
    """


class BudgetSpentError(LedgerError):
    """A ledger is in order, and what is left of its budget is less than a release costs; nothing was drawn.

    Examples
    --------
    >>> import discreet, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = discreet.Ledger.create(f"{folder}/budget.db", epsilon=1, unit="readers")
    ...     try:
    ...         discreet.top_k({"dune": 9, "emma": 7}, k=1, epsilon=2, ledger=ledger)
    ...     except discreet.BudgetSpentError as error:
    ...         print(error)
    epsilon 2 does not fit: 1 of 1 is left, and nothing was drawn
    """


# What is said of a column that is not there.
#
# The names of columns are public where they are a schema. Those of a text file are its first line, which is a row of
# somebody's where the file has no header: of these at most one is shown, and only if it is close to what was asked for.


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
