"""What discreet raises: always an Error, and always one of Python's own exceptions as well.

InvalidValueError is a ValueError, InvalidTypeError a TypeError, MissingExtraError an ImportError; LedgerError, with
BudgetSpentError below it, and `discreet.sources.engine.EngineError` are RuntimeErrors: what was asked for is allowed,
and cannot be had.
"""

import reprlib
from typing import Any


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


def shown(value: Any) -> str:
    """A public argument as an error message shows it: short, on one line."""
    try:
        text = reprlib.repr(value)
    except Exception:  # a repr that raises or is too long to print must not replace the message
        text = f"a {type(value).__name__}"
    return " ".join(text.split())[:80]
