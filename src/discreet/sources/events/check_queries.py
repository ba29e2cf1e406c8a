"""Questions to an engine about its rows, for a check: what is fetched is counts and the most frequent few values."""

from __future__ import annotations

from typing import Any

from discreet.sources.engine import ask
from discreet.sources.events.check_report import Frequent
from discreet.sources.events.connect import Opened

FEW = 5
_NO_TEXT = "(no text)"


def fetch(opened: Opened, expression: Any) -> list[dict[str, Any]]:
    """The rows of a small result."""
    backend = opened.table.get_backend()
    rows: list[dict[str, Any]] = ask(
        opened.engine, "checking the rows", lambda: backend.to_pyarrow(expression).to_pylist()
    )
    return rows


def fetch_counts(opened: Opened, table: Any, **asked: Any) -> dict[str, int]:
    """Numbers about a table, by name; those of no rows are 0."""
    [found] = fetch(opened, table.aggregate(**asked))
    return {name: int(count or 0) for name, count in found.items()}


def find_frequent(opened: Opened, rows: Any, column: str, most: int = FEW) -> list[Frequent]:
    """The most frequent values of a column of text."""
    return list_first(opened, rows.group_by(value=rows[column]).agg(n=rows.count()), most)


def list_first(opened: Opened, counted: Any, most: int) -> list[Frequent]:
    """The values that have most rows, of columns `value` and `n`, in an order that is always the same."""
    rows = fetch(opened, counted.order_by([in_descending_order(counted.n), counted.value]).limit(most))
    return [Frequent(_NO_TEXT if row["value"] is None else str(row["value"]), int(row["n"])) for row in rows]


def count_if(condition: Any) -> Any:
    """In how many rows a condition holds, as an expression."""
    return condition.ifelse(1, 0).sum()


def in_descending_order(column: Any) -> Any:
    """What puts rows with larger values first."""
    import ibis

    return ibis.desc(column)
