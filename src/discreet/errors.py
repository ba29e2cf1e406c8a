"""Exceptions of discreet, and the text of their messages.

Every exception is an `Error` and one of Python's own: InvalidValueError is a ValueError, InvalidTypeError a TypeError,
MissingExtraError an ImportError. LedgerError, BudgetSpentError, InternalError and EngineError (`sources.events.engine`)
are RuntimeErrors: the arguments were allowed, and the work failed.
"""

from __future__ import annotations

import difflib
import os
import re
import reprlib
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+:/+")
"""The scheme of a URL, in any case and with any number of slashes."""

_SECRET = re.compile(
    r"""
    ^[\s'"<(]*[a-z][a-z0-9+.-]+:/                  # a scheme; the drive of a path has one letter
    | ://
    | ^(?![a-z]:[\\/]).*:.*@                        # user:password@host
    | (password|passwd|pwd)\s*=
    | (^|[\s?&;'"])(host|hostaddr|user|dbname)\s*=  # a connection string of libpq
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""A URL or a connection string, also one that is misspelt."""

_MOST_NAMED = 50
"""The number of column names that a message lists: a line that people still read."""

_FAULT = (
    "discreet found a fault in its own work and withholds the release; what was charged for it stays spent. "
    "Please report this"
)


class Error(Exception):
    """Base class of all errors that discreet raises on purpose.

    Examples
    --------
    >>> import discreet
    >>> try:
    ...     discreet.top_k({"a": 1}, k=2, epsilon=1)
    ... except discreet.Error as error:
    ...     print(error)
    k must be a whole number from 1 to 1, the number of items, not 2
    """

    code: ClassVar[str] = "failure"
    """The cause in one word, for programs; it never changes."""


class InvalidValueError(Error, ValueError):
    """An argument has the right type and a value that is not allowed."""

    code = "wrong-usage"


class InvalidTypeError(Error, TypeError):
    """An argument has the wrong type."""

    code = "wrong-usage"


class MissingExtraError(Error, ImportError):
    """An optional dependency is not installed."""

    code = "missing-extra"


class InternalError(Error, RuntimeError):
    """A check of discreet's own work failed and the release is withheld; the message never depends on the data."""

    code = "internal"

    def __init__(self, message: str = _FAULT) -> None:
        super().__init__(message)


class LedgerError(Error, RuntimeError):
    """A ledger is damaged, locked, full or gone, or a charge has no stored release; nothing was released.

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

    code = "ledger"


class BudgetSpentError(LedgerError):
    """A release costs more than the rest of a ledger's budget; nothing was drawn, and a command exits with 3.

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

    code = "budget-spent"


def quote(value: Any) -> str:
    """Return the repr of a public argument for an error message: one line, at most 80 characters, URLs redacted."""
    try:
        text = reprlib.repr(_redact(value))
    except Exception:  # a repr that raises or is too long to print must not replace the message
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:80]


def _redact(value: Any) -> Any:
    """Redact URLs in a string, a path, or a list or tuple of these; return any other value unchanged."""
    if isinstance(value, os.PathLike):
        # pathlib collapses the two slashes of a URL to one, which `redact_url` accepts.
        path = redact_url(str(value))
        return value if path == str(value) else path
    if type(value) in (list, tuple):
        return type(value)(map(_redact, value))
    return redact_url(value) if isinstance(value, str) else value


def redact_url(text: str) -> str:
    """Return a URL without user name, password and query; return any other text unchanged.

    Examples
    --------
    >>> redact_url("https://ann:pw@example.org/events.csv?X-Amz-Signature=ab12")
    'https://example.org/events.csv'
    >>> redact_url(" POSTGRES:/ann:p/w@example.org/shop")
    'POSTGRES:/...'
    """
    begin = _SCHEME.match(text)
    if begin is None:
        return text
    scheme, rest = begin.group().strip(), text[begin.end() :]
    place = re.split("[?#]", rest)[0]
    authority = place.partition("/")[0]
    # A password may contain "/", "?" or "#": with an "@" behind them, the split above cut through the password.
    if "@" in rest[len(authority) :]:
        return f"{scheme}..."
    return f"{scheme}{authority.rpartition('@')[2]}{place[len(authority) :]}"


def check_is_path(argument: str, text: str, allowed: str, folder: str | os.PathLike[str] = "") -> None:
    """Raise, without the text, if it may hold a password because it looks like a URL, and is no path that exists."""
    if _SECRET.search(text) and not os.path.exists(os.path.join(folder, text)):
        raise InvalidValueError(
            f"{argument} must be {allowed}, and what is given looks like another URL or a connection string; it is not "
            "shown, as it may hold a password"
        )


def nearest(name: Any, columns: Sequence[str], private: bool) -> str | None:
    """Return the column whose name is closest to `name`, or None if none is close.

    The header of a text file may be a row of data: with `private`, names with a digit are never returned.
    """
    if not isinstance(name, str):
        return None
    allowed = [column for column in columns if not (private and any(map(str.isdigit, column)))]
    folded = {column.casefold(): column for column in reversed(allowed)}
    close = difflib.get_close_matches(name.casefold(), folded, 1, cutoff=0.75 if private else 0.6)
    return folded[close[0]] if close else None


def suggestion(name: Any, columns: Sequence[str], private: bool) -> str:
    """Return a clause that suggests the nearest column or another delimiter; empty if neither is likely."""
    if len(columns) == 1 and any(mark in columns[0] for mark in ",;\t|"):
        return "; the header is one column: are its names separated by another delimiter?"
    near = nearest(name, columns, private)
    return "" if near is None else f"; did you mean {near}?"


def choices(columns: Sequence[str]) -> str:
    """Return the first column names, separated by commas."""
    return ", ".join(columns[:_MOST_NAMED]) + (", ..." if len(columns) > _MOST_NAMED else "")


def refuse_column(argument: str, column: Any, columns: Sequence[str], private: bool, hint: str = "") -> NoReturn:
    """Raise InvalidValueError for an argument that names no column; with `private`, do not list the columns."""
    hint = hint or suggestion(column, columns, private)
    if private:
        raise InvalidValueError(
            f"{argument} must be a column of the table, and {quote(column)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"{argument} must be a column of the table, one of {choices(columns)}, not {quote(column)}{hint}"
    )
