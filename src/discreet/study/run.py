"""A whole study: does all pieces, keeps each as it is done, and writes the page, the figures and the tables.

What the pieces found is kept line by line, so that a study that was stopped goes on from what it had.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, fields, replace
from html import escape
from itertools import chain, count, groupby
from math import nan
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.atomic_write import atomic_write
from discreet.sketches import Sketch
from discreet.study import charts
from discreet.study.charts import Panel, figures_of, panels_of
from discreet.study.curves import NeededEpsilon, Point, Results, Time
from discreet.study.page import write_page
from discreet.study.tasks import METHODS, PAPERS, Task, summarise
from discreet.study.theme import LIGHT, style
from discreet.workers import make_pool

KEPT = "study.jsonl"
PAGE = "index.html"

Progress = Callable[[int], AbstractContextManager[Callable[[], object]]]
"""Given how many pieces there are, shows progress; gives what is to be called after each."""

_VERSION = f"{__version__}, 3"
"""Of the library, and of how a study computes: to be raised when results would be others."""


def _silent(total: int) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(lambda: None)


def study(
    tasks: list[Task], out: Path, *, jobs: int = 1, progress: Progress = _silent, left_out: Sequence[Task] = ()
) -> list[Path]:
    """Does the pieces of a study and writes what they find.

    Computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    tasks
        The pieces, as `study_tasks` makes them.
    out
        The folder to write to. What was found is kept there as well, and is not computed again.
    jobs
        How many processes to use.
    progress
        Shows how far it is.
    left_out
        Pieces that are not done, which the page says.

    Returns
    -------
    list[Path]
        The files written, the page first.
    """
    out.mkdir(parents=True, exist_ok=True)
    store = Store(out / KEPT)
    missing = [task for task in tasks if task.is_own or store.get(task.key) is None]
    with progress(len(missing)) as step:
        # What is timed is done last, and alone.
        timed = [task for task in missing if task.figure == "times"]
        others = [task for task in missing if task.figure != "times" and not task.is_own]
        # A function of somebody's own need not be one that another process can be sent.
        own = [task for task in missing if task.is_own]
        for task, found in chain(_compute_each(others, jobs), _compute_each(own, 1), _compute_each(timed, 1)):
            store.put(task.key, found)
            step()
    results = gather_results([store.get(task.key) or Results([], [], []) for task in tasks])
    write_page(results, summarise(results, left_out), out / PAGE, _describe_sketch(tasks))
    return [out / PAGE, *write_figures(results, out)]


def _describe_sketch(tasks: list[Task]) -> str | None:
    """What the sketch cost that a study is of, in words; None where it is of scores."""
    sketched = [(task.vector.scores, task.k) for task in tasks if isinstance(task.vector.scores, Sketch)]
    return None if not sketched else sketched[0][0].describe_cost(max(k for _, k in sketched))


def _compute_each(tasks: list[Task], jobs: int) -> Iterator[tuple[Task, Results]]:
    if jobs == 1 or len(tasks) <= 1:
        yield from ((task, task.compute()) for task in tasks)
        return
    with make_pool(jobs) as pool:
        waiting = {pool.submit(Task.compute, task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def gather_results(found: list[Results]) -> Results:
    """All results together, in the order of a reader, with every budget compared with that of the paper's mechanism."""
    points = [point for one in found for point in one.points]
    budgets = [budget for one in found for budget in one.budgets]
    times = [time for one in found for time in one.times]
    place = {name: i for i, name in enumerate(METHODS)}
    return Results(
        sorted(points, key=lambda one: (one.figure, one.vector, one.k, place.get(one.method, 0), one.method, one.x)),
        sorted(_relate_to_canonical(budgets), key=lambda one: (one.vector, one.k, one.probability, place[one.method])),
        sorted(times, key=lambda one: (one.vector, one.k, place[one.method])),
    )


def _relate_to_canonical(budgets: list[NeededEpsilon]) -> list[NeededEpsilon]:
    """The budgets as multiples of that of the paper's mechanism, where it reaches the same."""
    base = {(one.vector, one.k, one.probability): one.epsilon for one in budgets if one.method == PAPERS.label}
    return [replace(one, ratio=one.epsilon / base.get((one.vector, one.k, one.probability), nan)) for one in budgets]


class Store:
    """A file of results, one line a piece; what another version of the library found is not used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = self._read()

    def get(self, key: str) -> Results | None:
        """What the piece found, if it was done before."""
        return self._lines.get(key)

    def put(self, key: str, results: Results) -> None:
        """Keeps what a piece found, on the disk when this returns."""
        line = json.dumps({"version": _VERSION, "key": key, **asdict(results)})
        # A line that was cut short ends where this one begins.
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" + line if self._ends_in_mid_line() else line)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        self._lines[key] = results

    def _ends_in_mid_line(self) -> bool:
        text = self._path.read_bytes() if self._path.exists() else b""
        return bool(text) and not text.endswith(b"\n")

    def _read(self) -> dict[str, Results]:
        found = {}
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
                # A line that does not read was cut short: its piece is done again.
                with suppress(ValueError, KeyError, TypeError):
                    data = json.loads(line)
                    if data["version"] == _VERSION:
                        found[str(data["key"])] = _results(data)
        return found


def _results(data: dict[str, Any]) -> Results:
    return Results(
        [Point(**row) for row in data["points"]],
        [NeededEpsilon(**row) for row in data["budgets"]],
        [Time(**row) for row in data["times"]],
    )


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
