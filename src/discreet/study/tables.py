"""The tables of a study as HTML: what epsilon each method needs, and how long it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from discreet.study.results import NeededEpsilon, Time

_Row = NeededEpsilon | Time
_NONE = '<td class="none">&ndash;</td>'


def budget_table(budgets: list[NeededEpsilon]) -> str:
    """The epsilon each method needs for one probability, and its ratio to canonical's: larger, stronger in colour."""
    return _table(budgets, {_key(row): _budget_cell(row) for row in budgets}, {})


def time_table(times: list[Time]) -> str:
    """The time that one release takes with each method, and how it grows."""
    growths = {row.method: row.growth for row in times}
    return _table(times, {_key(row): f"<td>{duration(row.seconds)}</td>" for row in times}, growths)


def number(value: float) -> str:
    """A number to three digits."""
    if not math.isfinite(value):
        return "&ndash;"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        decimals = 0 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:,.{decimals}f}"
    return f"{value:.2e}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if not math.isfinite(seconds):
        return "&ndash;"
    for size, unit in ((60, "min"), (1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds * 1e6)} µs"


def _key(row: _Row) -> tuple[str, int, str]:
    return row.vector, row.k, row.method


def _budget_cell(row: NeededEpsilon) -> str:
    heat = min(1, max(0, math.log10(row.ratio) / 3)) if math.isfinite(row.ratio) and row.ratio > 0 else 0
    return f'<td style="--heat:{heat:.2f}">{number(row.epsilon)} <small>{_times(row.ratio)}</small></td>'


def _times(ratio: float) -> str:
    if not math.isfinite(ratio):
        return "&ndash;"
    return f"{ratio:,.0f}&times;" if ratio >= 99.5 else f"{ratio:.2g}&times;"


def _table(rows: Sequence[_Row], cells: dict[tuple[str, int, str], str], growths: dict[str, str]) -> str:
    """One row for each vector and k, the ones of a vector under its name, and one column for each method."""
    methods = list(dict.fromkeys(row.method for row in rows))
    head = "".join(f'<th scope="col">{escape(method)}</th>' for method in methods)
    bodies = "".join(
        f"<tbody>{_name(vector, d, len(methods) + 1)}"
        f"{_body(vector, sorted({row.k for row in rows if row.vector == vector}), methods, cells)}</tbody>"
        for vector, d in {row.vector: row.d for row in rows}.items()
    )
    return (
        f'<table style="--methods:{len(methods)}"><thead><tr><th scope="col">k</th>{head}</tr></thead>'
        f"{bodies}{_foot(methods, growths) if growths else ''}</table>"
    )


def _name(vector: str, d: int, columns: int) -> str:
    name = f"<span>{escape(vector)} <small>{d:,} items</small></span>"
    return f'<tr><th scope="rowgroup" colspan="{columns}">{name}</th></tr>'


def _body(vector: str, ks: list[int], methods: list[str], cells: dict[tuple[str, int, str], str]) -> str:
    return "".join(
        f'<tr><th scope="row">{k:,}</th>{"".join(cells.get((vector, k, method), _NONE) for method in methods)}</tr>'
        for k in ks
    )


def _foot(methods: list[str], growths: dict[str, str]) -> str:
    cells = "".join(f"<td>{escape(growths[method])}</td>" for method in methods)
    return f'<tfoot><tr><th scope="row">grows as</th>{cells}</tr></tfoot>'
