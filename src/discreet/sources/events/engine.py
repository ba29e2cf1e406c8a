"""Every call that reaches an engine goes through here, so that its own words never reach the caller.

An engine's error or warning can quote a private value. What the caller sees is the engine and the stage; the original
error shows only where DISCREET_DEBUG=1 asks for it, with a warning.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TypeVar

from discreet.errors import Error
from discreet.jobs import stage

Answer = TypeVar("Answer")


class EngineError(Error, RuntimeError):
    """A query failed on an engine. The message names the engine and the stage; its own words may quote private rows.

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


def ask(engine: str, what: str, question: Callable[[], Answer], need: str | None = None) -> Answer:
    """Return the answer of an engine, or raise an EngineError that names the engine, the stage and what it needs."""
    with stage(f"{what} on {engine}"):
        try:
            with warnings.catch_warnings(action="ignore"):
                return question()
        except Error:
            raise
        except Exception as error:
            if _is_interruption(error):
                raise KeyboardInterrupt from None
            if os.environ.get("DISCREET_DEBUG") == "1":
                warnings.warn("DISCREET_DEBUG=1: the error below may show private rows", stacklevel=2)
                raise
    # Raised outside the handler: not even __context__ keeps the engine's own error.
    stage_and_need = what if need is None else f"{what}, which needs {need}"
    hint = "DISCREET_DEBUG=1 shows why, and maybe private rows"
    raise EngineError(f"the query failed on {engine} at {stage_and_need}; {hint}")


def _is_interruption(error: Exception) -> bool:
    """Whether an error is Ctrl-C while DuckDB works, which arrives as an error of its own."""
    return type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"
