"""Render the page of a study or a plan: one HTML file with its pictures inside, which loads nothing else."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from discreet.study.charts import Picture, pictures_of
from discreet.study.curves import NeededEpsilon, Results, Time
from discreet.text import describe_multiple, duration, hash_for_policy, three_digits

_TITLE = "Private top-k: what a right answer costs"
_DASH = "\N{EN DASH}"
_SHADES = 9
"""The number of shades of a cell in the table of budgets; the style sheet has a class for each."""


def page(
    results: Results,
    notes: list[str],
    sketch: str | None = None,
    *,
    pictures: list[Picture] | None = None,
    title: str = _TITLE,
    needs: dict[str, Any] | None = None,
) -> str:
    """Return the page of a study or a plan as text.

    The page is computed from the scores, so it is NOT private: use it for public or made-up data.

    Parameters
    ----------
    results
        The results to show. Figures and tables without rows are left out.
    notes
        The findings as sentences of plain text: the first one above the first figure, the others below it.
    sketch
        The cost of the sketch that all results come from, in words; None for results from scores.
    pictures
        The pictures of the results if they are at hand; an empty list leaves them out. By default they are drawn.
    title
        The title of the page.
    needs
        The table of a plan: its "says", "head" and "rows", each row with "label", "cells" and "is_best".
    """
    from jinja2 import Environment, StrictUndefined

    folder = files("discreet.study")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    # No line breaks inside an equation.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = lambda text: text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    drawn = pictures_of(results) if pictures is None else pictures
    figures = []
    for figure, group in groupby(drawn, key=lambda picture: picture.figure):
        own = list(group)
        # The first vector's middle k is open.
        first = [picture for picture in own if picture.vector == own[0].vector]
        chosen = sorted(first, key=lambda picture: picture.k)[len(first) // 2]
        shown = [
            {
                "subject": picture.subject,
                "description": picture.description,
                "address": f"data:image/svg+xml;base64,{b64encode(picture.svg.encode()).decode()}",
                "is_open": picture is chosen,
            }
            for picture in own
        ]
        figures.append({"figure": figure, "pictures": shown})
    probabilities = sorted({row.probability for row in results.budgets})
    return environment.from_string(folder.joinpath("page.html").read_text(encoding="utf-8")).render(
        title=title,
        style=style,
        style_hash=hash_for_policy(style),
        lead=notes[0] if notes else "",
        notes=notes[1:],
        sketch=sketch and f"{sketch[:1].upper()}{sketch[1:]}.",
        figures=figures,
        needs=needs,
        budgets={
            f"{100 * chance:g}%": budget_table([row for row in results.budgets if row.probability == chance])
            for chance in probabilities
        },
        usual=f"{100 * probabilities[len(probabilities) // 2]:g}%" if probabilities else "",
        times=time_table(results.times) if results.times else None,
    )


def budget_table(budgets: Sequence[NeededEpsilon]) -> dict[str, Any]:
    """Return the epsilon that each method needs, and its ratio to that of gamma = 1/2: larger, stronger in colour."""

    def cell(row: NeededEpsilon) -> dict[str, Any]:
        has_ratio = math.isfinite(row.ratio) and row.ratio > 0
        # A ratio of 1,000 has the full colour.
        heat = min(1.0, max(0.0, math.log10(row.ratio) / 3)) if has_ratio else 0.0
        ratio = _or_dash(row.ratio, lambda ratio: f"{describe_multiple(ratio)}\N{MULTIPLICATION SIGN}")
        return {"text": _or_dash(row.epsilon, three_digits), "small": ratio, "shade": round(_SHADES * heat)}

    return _table(budgets, [cell(row) for row in budgets])


def time_table(times: Sequence[Time]) -> dict[str, Any]:
    """Return the time that one release takes with each method, and how it grows."""
    growths = {row.method: row.growth for row in times}
    return {**_table(times, [{"text": _or_dash(row.seconds, duration)} for row in times]), "foot": growths}


def _or_dash(value: float, spell: Callable[[float], str]) -> str:
    return spell(value) if math.isfinite(value) else _DASH


def _table(rows: Sequence[NeededEpsilon | Time], cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a table for the template: a block per vector, in it a row per k, and a column per method."""
    methods = list(dict.fromkeys(row.method for row in rows))
    known = {(row.vector, row.k, row.method): cell for row, cell in zip(rows, cells, strict=True)}
    blocks = [
        {
            "vector": vector,
            "d": d,
            "rows": {
                k: [known.get((vector, k, method)) for method in methods]
                for k in sorted({row.k for row in rows if row.vector == vector})
            },
        }
        for vector, d in {row.vector: row.d for row in rows}.items()
    ]
    return {"methods": methods, "blocks": blocks}
