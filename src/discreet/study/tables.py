"""The tables of a study as HTML: what epsilon each method needs, and how long it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from discreet.study.results import NeededEpsilon, Time
from discreet.text import duration, three_digits

_Row = NeededEpsilon | Time
_NONE = '<td class="none">&ndash;</td>'


def budget_table(budgets: list[NeededEpsilon]) -> str:
    """The epsilon each method needs for one probability, and its ratio to canonical's: larger, stronger in colour."""
    return _table(budgets, {_key(row): _budget_cell(row) for row in budgets}, {})


def time_table(times: list[Time]) -> str:
    """The time that one release takes with each method, and how it grows."""
    growths = {row.method: row.growth for row in times}
    return _table(times, {_key(row): f"<td>{_or_dash(row.seconds, duration)}</td>" for row in times}, growths)


def _or_dash(value: float, spell: Callable[[float], str]) -> str:
    """A figure as text, or a dash where there is none."""
    return spell(value) if math.isfinite(value) else "&ndash;"


def _key(row: _Row) -> tuple[str, int, str]:
    return row.vector, row.k, row.method


def _budget_cell(row: NeededEpsilon) -> str:
    heat = min(1, max(0, math.log10(row.ratio) / 3)) if math.isfinite(row.ratio) and row.ratio > 0 else 0
    epsilon, ratio = _or_dash(row.epsilon, three_digits), _or_dash(row.ratio, _times)
    return f'<td style="--heat:{heat:.2f}">{epsilon} <small>{ratio}</small></td>'


def _times(ratio: float) -> str:
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
