"""What discreet raises: always an Error, and always one of Python's own exceptions as well.

InvalidValueError is a ValueError, InvalidTypeError a TypeError, MissingExtraError an ImportError. What was allowed and
could not be had is a RuntimeError: LedgerError, with BudgetSpentError below it (`ledger/errors.py`), EngineError
(`sources/engine.py`), and InternalError, which only a fault of discreet itself can cause.
"""

import os
import reprlib
from typing import Any

from discreet.redaction import redact_url


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
