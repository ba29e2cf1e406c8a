"""Refuses an ibis table in which one user's rows can depend on those of others.

A limit, a sample, a window or an aggregate lets one user push out or change the rows of many, and no bound on what one
user can do to a score holds. What is behind a table of the engine itself cannot be seen here.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidValueError


def check_rowwise(table: Any) -> None:
    """Raises where the expression of an ibis table looks across rows."""
    import ibis.expr.operations as ops

    kinds = {
        ops.Limit: "a limit",
        ops.Sample: "a sample",
        ops.WindowFunction: "a window",
        ops.WindowAggregate: "a window",
        ops.Analytic: "a window",
        ops.Aggregate: "an aggregate",
        ops.Reduction: "an aggregate",
    }
    # Aggregates are the parts of windows too, so the most telling kind comes first.
    found = {what for kind, what in kinds.items() if table.op().find(kind)}
    for what in kinds.values():
        if what in found:
            raise InvalidValueError(
                f"table must keep one user's rows independent of other users' rows, and this ibis expression holds "
                f"{what}: do that in the source data, or use where"
            )
