"""Calls to engines, whose own errors and warnings never reach the caller because they can quote private values.

Every call to an engine goes through `ask`. An error names the engine and the stage; DISCREET_DEBUG=1 raises the
original error with a warning.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from typing import TypeVar

from discreet.errors import Error
from discreet.jobs import stage

Answer = TypeVar("Answer")

_REFUSALS = (
    (
        *("28000", (1044, 1045, 1698)),
        r"password authentication failed|no password supplied|Access denied for user|role \".*\" does not exist"
        r"|is not permitted to log in|pg_hba\.conf|Passwort-Authentifizierung|Rolle ».*« existiert nicht",
    ),
    ("3D000", (1049,), r"database \".*\" does not exist|Unknown database|Datenbank ».*« existiert nicht"),
    ("53300", (1040, 1203), r"[Tt]oo many (clients|connections)|remaining connection slots|zu viele Verbindungen"),
    ("57P03", (1053,), r"system is (starting up|shutting down|in recovery)|Datenbanksystem (startet|fährt)"),
    (
        *("08001", (2002, 2003, 2005)),
        r"Is the server running|Connection refused|resolve host|Can't connect|time(d )?out|Läuft der Server",
    ),
)
"""Codes of SQLSTATE, codes of MySQL that mean the same, and texts: libpq gives no code for a failed connection."""

_SENTENCES = {
    "28": "answers{place}, and refuses this user or password: correct {argument}",
    "3D": "answers{place}, and has no database of this name: correct {argument}",
    "53300": "answers{place}, and takes no more connections now: try again later",
    "57P03": "answers{place}, and takes no connections now: try again later",
    "08001": "does not answer{place}: try again later, or correct {argument}",
}
"""Sentences by the beginning of a code. They show no part of the driver's error, which may hold a password."""


class EngineError(Error, RuntimeError):
    """A query failed on an engine; the message names the engine and the stage, without the engine's own message.

    Examples
    --------
    >>> import discreet, ibis
    >>> nowhere = ibis.table({"who": "int64", "what": "string"}, name="nowhere")
    >>> try:
    ...     discreet.events(nowhere, user="who", item="what", domain=["a", "b"])
    ... except discreet.EngineError as error:
    ...     print(str(error).partition(";")[0])
    the query failed on ibis at finding the engine of table
    """

    code = "engine"


def find_sqlstate(error: Exception) -> str:
    """Return the SQLSTATE of an error of a driver that could not connect, "" if it is not known."""
    if code := getattr(error, "sqlstate", None):
        return str(code)
    number, text = next(iter(error.args), None), str(error)
    return next((code for code, numbers, sign in _REFUSALS if number in numbers or re.search(sign, text)), "")


def describe_refusal(code: str, argument: str, place: str = "") -> str | None:
    """Return what a server does to a connection that fails by this SQLSTATE, None for another code.

    `argument` is the argument to correct, and `place` follows the verb, such as " at localhost".
    """
    sentence = next((sentence for start, sentence in _SENTENCES.items() if code.startswith(start)), None)
    return None if sentence is None else sentence.format(argument=argument, place=place)


def ask(engine: str, what: str, question: Callable[[], Answer], need: str | None = None) -> Answer:
    """Return the answer of an engine, or raise an EngineError that names the engine, the stage and its need."""
    with stage(f"{what} on {engine}"):
        try:
            with warnings.catch_warnings(action="ignore"):
                return question()
        except Error:
            raise
        except Exception as error:
            # DuckDB reports Ctrl-C as an error of its own.
            if type(error).__name__ == "InterruptException" or str(error) == "Query interrupted":
                raise KeyboardInterrupt from None
            if os.environ.get("DISCREET_DEBUG") == "1":
                warnings.warn("DISCREET_DEBUG=1: the error below may show private rows", stacklevel=2)
                raise
    # Outside of the handler, __context__ does not keep the engine's own error.
    stage_and_need = what if need is None else f"{what}, which needs {need}"
    hint = "DISCREET_DEBUG=1 shows why, and maybe private rows"
    raise EngineError(f"the query failed on {engine} at {stage_and_need}; {hint}")
