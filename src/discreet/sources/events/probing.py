"""Trying, on no rows, what a release will ask of an engine, before a ledger is charged for it.

Rights, temporary tables, room for them and functions that an engine lacks are public. The query of the release runs
on a table of which no row is read, and what fails there is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.sources.engine import EngineError, ask
from discreet.sources.events.connect import Opened


def probe_query(opened: Opened, make_query: Callable[[], Any], columns: Sequence[str]) -> None:
    """Raise an EngineError that names what a query cannot do on its engine, whatever the rows are.

    Parameters
    ----------
    opened
        The events.
    make_query
        Returns the expression that will be cached.
    columns
        The columns of the events that it reads.
    """
    import ibis

    def cache_nothing(query: Any) -> None:
        # As an outermost step no engine reads a row for it, and all of them check the whole query.
        snapshot = query.filter(ibis.literal(False)).cache()
        try:
            snapshot.to_pyarrow()
        finally:
            snapshot.release()

    def works(question: Callable[[], Any]) -> bool:
        try:
            ask(opened.engine, "trying the query on no rows", question)
        except EngineError:
            return False
        return True

    named = opened.table.select(*dict.fromkeys(columns))
    trouble = opened.dialect.find_trouble(opened.table.get_backend())
    if trouble is None:
        if works(lambda: cache_nothing(make_query())):
            return
        if not works(lambda: named.filter(ibis.literal(False)).to_pyarrow()):
            trouble = f"must let this account read the columns {', '.join(named.columns)} of the table"
        elif not works(lambda: cache_nothing(opened.table.select(one=ibis.literal(1)))):
            trouble = "must let this account make temporary tables, and have room for them"
        else:
            trouble = "must be able to compute these scores, and lacks a function that they need"
    raise EngineError(f"{opened.engine} {trouble}; nothing was drawn or charged")
