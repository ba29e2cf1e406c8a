"""A whole study: does all pieces, keeps each as it is done, and writes the page, the figures and the tables.

What the pieces found is kept line by line, so that a study that was stopped goes on from what it had.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from itertools import chain
from math import nan
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.jobs import make_pool
from discreet.release.sketch import Sketch
from discreet.study.figures import write_figures
from discreet.study.page import write_page
from discreet.study.results import NeededEpsilon, Point, Results, Time
from discreet.study.summary import summarise
from discreet.study.tasks import METHODS, PAPERS, Task

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
