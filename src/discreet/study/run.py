"""Run a whole study: compute its tasks, keep each result, and write the page, the figures and the tables.

Results are kept line by line in a file, so a study that was stopped goes on from the last finished task.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, fields, replace
from itertools import chain, count
from math import nan
from pathlib import Path

from discreet import __version__
from discreet.atomic_write import atomic_write
from discreet.jobs import make_pool
from discreet.release.sketch import Sketch
from discreet.release.theme import check_matplotlib
from discreet.study.charts import Picture, pictures_of
from discreet.study.curves import NeededEpsilon, Point, Results, Time
from discreet.study.page import page
from discreet.study.tasks import METHODS, PAPERS, Task, summarise

KEPT = "study.jsonl"
PAGE = "index.html"

Progress = Callable[[int], AbstractContextManager[Callable[[], object]]]
"""Takes the number of tasks and shows progress; the context gives a function to call after each task."""

_VERSION = f"{__version__}, 4"
"""The versions of the library and of the computation. Raise the second one with any change of the results."""


def study(
    tasks: list[Task],
    out: Path,
    *,
    jobs: int = 1,
    progress: Progress = lambda total: nullcontext(lambda: None),
    left_out: Sequence[Task] = (),
    draw: bool = True,
) -> list[Path]:
    """Compute the tasks of a study and write the results.

    The results are computed from the scores, so they are NOT private: use public or made-up data.

    Parameters
    ----------
    tasks
        The tasks, as `study_tasks` makes them.
    out
        The folder to write to. Results that are kept there already are not computed again.
    jobs
        The number of processes to use.
    progress
        Shows how many tasks are done.
    left_out
        Tasks that are not computed, which the page names.
    draw
        True draws pictures, which needs matplotlib. False writes the page and the tables alone.

    Returns
    -------
    list[Path]
        The files written, the page first.
    """
    if draw:
        check_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    store = Store(out / KEPT)
    missing = [task for task in tasks if task.is_own or store.get(task.key) is None]
    # A user's own function need not be one that can be sent to another process. Times are measured last and alone.
    own = [task for task in missing if task.is_own]
    timed = [task for task in missing if task.figure == "times" and not task.is_own]
    others = [task for task in missing if task.figure != "times" and not task.is_own]
    with progress(len(missing)) as step:
        for task, found in chain(_compute_each(others, jobs), _compute_each(own, 1), _compute_each(timed, 1)):
            store.put(task.key, found)
            step()
    results = gather_results([store.get(task.key) or Results([], [], []) for task in tasks])
    pictures = pictures_of(results)
    sketches = [(task.vector.scores, task.k) for task in tasks if isinstance(task.vector.scores, Sketch)]
    cost = sketches[0][0].describe_cost(max(k for _, k in sketches)) if sketches else None
    atomic_write(out / PAGE, page(results, summarise(results, left_out), cost, pictures=pictures if draw else []))
    return [out / PAGE, *write_figures(results, out, pictures, draw=draw)]


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
    """Return all results in one, sorted for a reader, each budget also as a multiple of the paper's mechanism's."""
    points = [point for one in found for point in one.points]
    budgets = [budget for one in found for budget in one.budgets]
    times = [time for one in found for time in one.times]
    place = {name: i for i, name in enumerate(METHODS)}
    base = {(one.vector, one.k, one.probability): one.epsilon for one in budgets if one.method == PAPERS.label}
    budgets = [replace(one, ratio=one.epsilon / base.get((one.vector, one.k, one.probability), nan)) for one in budgets]
    return Results(
        sorted(points, key=lambda one: (one.figure, one.vector, one.k, place.get(one.method, 0), one.method, one.x)),
        sorted(budgets, key=lambda one: (one.vector, one.k, one.probability, place[one.method])),
        sorted(times, key=lambda one: (one.vector, one.k, place[one.method])),
    )


class Store:
    """A file of results, one line per task. Lines that another version of the library wrote are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, Results] = {}
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            # A line that cannot be read was cut short; its task is computed again.
            with suppress(ValueError, KeyError, TypeError):
                data = json.loads(line)
                if data["version"] == _VERSION:
                    self._lines[str(data["key"])] = Results(
                        [Point(**row) for row in data["points"]],
                        [NeededEpsilon(**row) for row in data["budgets"]],
                        [Time(**row) for row in data["times"]],
                    )

    def get(self, key: str) -> Results | None:
        """Return the results of a task if it was computed before."""
        return self._lines.get(key)

    def put(self, key: str, results: Results) -> None:
        """Keep the results of a task; they are on the disk when this returns."""
        line = json.dumps({"version": _VERSION, "key": key, **asdict(results)})
        text = self._path.read_bytes() if self._path.exists() else b""
        with self._path.open("a", encoding="utf-8") as file:
            # After a line that was cut short, a new line begins.
            file.write("\n" if text and not text.endswith(b"\n") else "")
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._lines[key] = results


def write_figures(
    results: Results, folder: Path, pictures: list[Picture] | None = None, *, draw: bool = True
) -> list[Path]:
    """Write the figures and tables of a study, each file whole or not at all.

    The files are computed from the scores, so they are NOT private: use public or made-up data.

    Parameters
    ----------
    results
        The results to write. Figures and tables without rows are left out.
    folder
        The folder to write to; it is made if there is none.
    pictures
        The pictures of the results, if they are at hand.
    draw
        True writes each picture beside its points.

    Returns
    -------
    list[Path]
        The files: for each figure, vector and k an SVG with its goals and a CSV of its points, then `budgets.csv` and
        `times.csv`.
    """
    texts: dict[str, str] = {}
    for picture in pictures_of(results) if pictures is None else pictures:
        # A name that every file system takes, and that differs from the others by more than the case of letters.
        plain = re.sub(r"[^A-Za-z0-9._=-]+", "_", f"{picture.figure.key}-{picture.vector}-k{picture.k}")[:100]
        taken = {Path(name).stem.casefold() for name in texts}
        numbered = chain([plain], (f"{plain}-{i}" for i in count(2)))
        name = next(name for name in numbered if name.casefold() not in taken)
        if draw:
            texts[f"{name}.svg"] = picture.svg
        texts[f"{name}.csv"] = _to_csv(picture.points)
    if results.budgets:
        texts["budgets.csv"] = _to_csv(results.budgets)
    if results.times:
        texts["times.csv"] = _to_csv(results.times)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        atomic_write(folder / name, text)
    return [folder / name for name in texts]


def _to_csv(rows: Sequence[Point] | Sequence[NeededEpsilon] | Sequence[Time]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()
