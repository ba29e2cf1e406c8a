"""Writes every figure of a study as a picture and its rows as CSV, and the tables as CSV: files to take along."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from html import escape
from itertools import count, groupby
from pathlib import Path

from discreet.atomic_write import atomic_write
from discreet.study import charts
from discreet.study.charts import Panel, figures_of, panels_of
from discreet.study.results import NeededEpsilon, Point, Results, Time
from discreet.study.theme import LIGHT, style

_HEAD, _ROW = 58, 24


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Writes the figures and tables of a study, each file whole or not at all.

    What they show is computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    results
        What to write; figures and tables without rows are left out.
    folder
        Where to; it is made where there is none.

    Returns
    -------
    list[Path]
        The files: for each figure, vector and k an SVG with its goals side by side and a CSV of its points, then
        `budgets.csv` and `times.csv`.
    """
    texts: dict[str, str] = {}
    for figure in figures_of(results):
        for _, group in groupby(panels_of(results, figure), key=lambda panel: (panel.vector, panel.k)):
            panels = list(group)
            name = _free_name(f"{figure.key}-{panels[0].vector}-k{panels[0].k}", texts)
            texts[f"{name}.svg"] = picture(panels)
            texts[f"{name}.csv"] = _csv(_points(panels))
    if results.budgets:
        texts["budgets.csv"] = _csv(results.budgets)
    if results.times:
        texts["times.csv"] = _csv(results.times)
    return _write(texts, folder)


def picture(panels: list[Panel]) -> str:
    """The goals of one figure, one vector and one k side by side, below a title and above a legend, as SVG."""
    first, width = panels[0], charts.WIDTH * len(panels)
    where = f"{first.vector}, {first.d:,} items, k = {first.k:,}"
    methods = [method for method in first.methods if any(method in panel.curves for panel in panels)]
    legend, rows = _legend(first, methods, width)
    height = _HEAD + charts.HEIGHT + _ROW * rows + 10
    drawings = "".join(
        f'<g transform="translate({i * charts.WIDTH} {_HEAD})">{charts.draw(panel)}</g>'
        for i, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{escape(first.figure.title)}: {escape(where)}</title><style>{style(LIGHT)}</style>"
        f'<rect class="paper" width="{width}" height="{height}"/>'
        f'<text class="strong" x="{charts.LEFT}" y="30" style="font-size:16px">{escape(first.figure.title)}</text>'
        f'<text x="{charts.LEFT}" y="50">{escape(where)}</text>{drawings}{legend}</svg>\n'
    )


def _legend(panel: Panel, methods: list[str], width: int) -> tuple[str, int]:
    """A sample of each curve with its name, in as many rows as they take, and how many rows that is."""
    parts, x, row = [], charts.LEFT, 0
    for method in methods:
        room = 50 + 7 * len(method)
        if x + room > width and x > charts.LEFT:
            x, row = charts.LEFT, row + 1
        y = _HEAD + charts.HEIGHT + _ROW * row + 12
        sample = f'<line class="line {charts.tone(panel, method)}" x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}"/>'
        parts.append(f'{sample}<text x="{x + 32}" y="{y + 4}">{escape(method)}</text>')
        x += room
    return "".join(parts), row + 1


def _points(panels: list[Panel]) -> list[Point]:
    return [point for panel in panels for curve in panel.curves.values() for point in curve]


def _csv(rows: Sequence[Point] | Sequence[NeededEpsilon] | Sequence[Time]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def _free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name that every file system takes, and that differs from those taken by more than the case of letters."""
    plain = re.sub(r"[^A-Za-z0-9._=-]+", "_", wanted)[:100]
    known = {Path(name).stem.casefold() for name in taken}
    return next(name for name in _number_names(plain) if name.casefold() not in known)


def _number_names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{i}" for i in count(2))


def _write(texts: dict[str, str], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        atomic_write(folder / name, text)
    return [folder / name for name in texts]
