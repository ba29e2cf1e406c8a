"""Calls to engines, whose own errors and warnings never reach the caller because they can quote private values.

Every call to an engine goes through `ask`. An error names the engine and the stage; DISCREET_DEBUG=1 raises the
original error with a warning.
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
