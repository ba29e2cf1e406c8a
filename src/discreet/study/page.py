"""Writes the page of a study: one HTML file that asks for nothing else, with charts that answer a pointer and keys."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from discreet.atomic_write import atomic_write
from discreet.html_text import hash_for_policy
from discreet.study import charts
from discreet.study.charts import Panel, figures_of, panels_of
from discreet.study.curves import Figure, NeededEpsilon, Point, Results, Time
from discreet.study.theme import DARK, LIGHT, style
from discreet.text import describe_multiple, duration, three_digits

Section = tuple[str, str, str]  # an anchor, a title and what stands below it
_Row = NeededEpsilon | Time
_TITLE = "Private top-k: what a right answer costs"
_NOT_PRIVATE = """<strong>Not private.</strong> Computed from the scores themselves: for public or made-up scores, and
never to be published for data about people."""
_FROM_SCORES = "Computed from the scores: not private."
_NONE = '<td class="none">&ndash;</td>'


def write_page(results: Results, notes: list[str], path: Path, sketch: str | None = None) -> None:
    """Writes the page of a study, whole or not at all.

    What it shows is computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    results
        What to show; figures and tables without rows are left out.
    notes
        What the results say, in sentences or paragraphs of plain text: the first above the first figure, the others
        below it.
    path
        The HTML file to write or to replace.
    sketch
        Where all of it comes from a sketch: what that cost, in words.
    """
    atomic_write(path, page(results, notes, sketch))


def page(
    results: Results,
    notes: list[str],
    sketch: str | None = None,
    *,
    title: str = _TITLE,
    more: Sequence[Section] = (),
) -> str:
    """The page of a study, or of a plan, as text; `write_page` says what of.

    Parameters
    ----------
    results, notes, sketch
        As for `write_page`.
    title
        What the page is called.
    more
        Sections of its own, which come after the figures.
    """
    notice, origin = (_NOT_PRIVATE, _FROM_SCORES) if sketch is None else (_prose(_as_sentence(sketch)),) * 2
    panels = {figure.key: panels_of(results, figure) for figure in figures_of(results)}
    sections = [_figure(figure, panels[figure.key]) for figure in figures_of(results)]
    sections += more
    sections += [_budgets(results)] if results.budgets else []
    sections += [_times(results)] if results.times else []
    script = _text("page.js")
    return Template(_text("page.html")).substitute(
        title=_prose(title),
        style=f"{style(LIGHT)}\n@media screen and (prefers-color-scheme: dark) {{{style(DARK)}}}\n{_text('page.css')}",
        lead=_prose(notes[0]) if notes else "",
        notes="".join(f"<li>{_prose(note)}</li>" for note in notes[1:]),
        links="".join(f'<li><a href="#{key}">{_prose(title)}</a></li>' for key, title, _ in sections),
        first="".join(_section(*section) for section in sections[:1]),
        sections="\n".join(_section(*section) for section in sections[1:]),
        data=_json({"plot": charts.PLOT, "panels": [_data(panel) for key in panels for panel in panels[key]]}),
        script=script,
        script_hash=hash_for_policy(script),
        notice=notice,
        origin=origin,
    )


def _text(name: str) -> str:
    return files("discreet.study").joinpath(name).read_text(encoding="utf-8")


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _prose(text: str) -> str:
    """Text for the page, in which no line breaks inside an equation."""
    return escape(text).replace(" = ", "&nbsp;=&nbsp;")


def _json(value: Any) -> str:
    """JSON that no name can end early: no tag begins in it."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _section(key: str, title: str, content: str) -> str:
    head = f'<h2 id="{key}-title">{_prose(title)}</h2>'
    return f'<section id="{key}" aria-labelledby="{key}-title">{head}{content}</section>'


def _figure(figure: Figure, panels: list[Panel]) -> Section:
    content = (
        f'<p>{_prose(figure.says)}</p><div class="choices">{_figure_choices(figure, panels)}</div>{_legend(panels[0])}'
        f'<div class="panels">{"".join(map(_panel, panels))}<div class="tip" role="status" hidden></div></div>'
    )
    return figure.key, figure.title, content


def _figure_choices(figure: Figure, panels: list[Panel]) -> str:
    vectors = {panel.vector: panel.vector for panel in panels}
    ks = {str(k): f"{k:,}" for k in sorted({panel.k for panel in panels})}
    goals = {panel.goal: charts.GOAL_TITLES[panel.goal][0] for panel in panels}
    goals = {"": "all", **goals} if len(goals) > 1 else goals
    return (
        _choice(figure.key, "vector", "Scores", vectors, next(iter(vectors)))
        + _choice(figure.key, "k", "k", ks, list(ks)[len(ks) // 2])
        + _choice(figure.key, "goal", "Goal", goals, next(iter(goals)))
    )


def _choice(section: str, name: str, label: str, options: dict[str, str], chosen: str) -> str:
    buttons = "".join(
        f'<label><input type="radio" name="{section}-{name}" value="{escape(value)}"'
        f"{' checked' * (value == chosen)}><span>{escape(text)}</span></label>"
        for value, text in options.items()
    )
    return f'<fieldset data-choice="{name}"><legend>{label}</legend>{buttons}</fieldset>'


def _legend(panel: Panel) -> str:
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-m="{i}"><svg viewBox="0 0 30 10" aria-hidden="true">'
        f'<line class="line {charts.tone(panel, method)}" x2="30" y1="5" y2="5"/></svg>{escape(method)}</button>'
        for i, method in enumerate(panel.methods)
    )
    hint = "<small>Choose one to hide or show it.</small>" if len(panel.methods) > 1 else ""
    return f'<div class="legend" role="group" aria-label="Methods">{buttons}{hint}</div>'


def _panel(panel: Panel) -> str:
    where = f'data-vector="{escape(panel.vector)}" data-k="{panel.k}" data-goal="{escape(panel.goal)}"'
    return f'<figure class="part" {where}>{charts.svg(panel)}</figure>'


def _data(panel: Panel) -> dict[str, Any]:
    """What the script reads out where a pointer is: each curve by the number of its method, as pieces of rows."""
    axis = panel.axis
    curves = {
        panel.methods.index(method): [[_row(point) for point in piece] for piece in pieces]
        for method, pieces in charts.traces(panel).items()
    }
    return {"label": axis.label, "log": axis.logarithmic, "low": axis.low, "high": axis.high, "curves": curves}


def _row(point: Point) -> list[float]:
    """The x and the probability of a point, and its error where that is to be shown."""
    error = [point.error] if point.error > charts.SHOWN_ERROR else []
    return [float(f"{value:.4g}") for value in (point.x, point.probability, *error)]


def _budgets(results: Results) -> Section:
    probabilities = sorted({row.probability for row in results.budgets})
    options = {f"{p:g}": f"{100 * p:g}%" for p in probabilities}
    tables = "".join(
        f'<div class="part scroll" data-probability="{p:g}" tabindex="0">'
        f"{budget_table([row for row in results.budgets if row.probability == p])}</div>"
        for p in probabilities
    )
    choice = _choice("budgets", "probability", "Probability", options, list(options)[len(options) // 2])
    says = (
        "The epsilon at which a release is exactly the top-k with this probability, and beside it how many times the "
        "epsilon of canonical with gamma = 1/2, the paper's, that is: the stronger the colour, the more."
    )
    return "budgets", "What each method needs", f'<p>{says}</p><div class="choices">{choice}</div>{tables}'


def _times(results: Results) -> Section:
    says = "The time of one release, and how it grows with the number d of items and with k."
    table = time_table(results.times)
    return "times", "How long it takes", f'<p>{says}</p><div class="scroll" tabindex="0">{table}</div>'


def budget_table(budgets: list[NeededEpsilon]) -> str:
    """The epsilon each method needs for one probability, and its ratio to gamma = 1/2: larger, stronger in colour."""
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
    epsilon, ratio = _or_dash(row.epsilon, three_digits), _or_dash(row.ratio, _multiple)
    return f'<td style="--heat:{heat:.2f}">{epsilon} <small>{ratio}</small></td>'


def _multiple(ratio: float) -> str:
    return f"{describe_multiple(ratio)}&times;"


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
