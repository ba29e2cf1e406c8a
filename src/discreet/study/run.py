"""A whole study: does all pieces, keeps each as it is done, and writes the page, the figures and the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path

from discreet.study.figures import write_figures
from discreet.study.notes import notes
from discreet.study.page import write_page
from discreet.study.results import NeededEpsilon, Results
from discreet.study.store import Store
from discreet.study.tasks import CANONICAL, METHODS, Task

KEPT = "study.jsonl"
PAGE = "index.html"

Progress = Callable[[int], AbstractContextManager[Callable[[], object]]]
"""Given how many pieces there are, shows progress; gives what is to be called after each."""


def _silent(total: int) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(lambda: None)


def study(tasks: list[Task], out: Path, *, jobs: int = 1, progress: Progress = _silent) -> list[Path]:
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

    Returns
    -------
    list[Path]
        The files written, the page first.
    """
    out.mkdir(parents=True, exist_ok=True)
    store = Store(out / KEPT)
    missing = [task for task in tasks if store.get(task.key) is None]
    with progress(len(missing)) as step:
        # What is timed is done last, and alone.
        timed = [task for task in missing if task.figure == "times"]
        others = [task for task in missing if task.figure != "times"]
        for task, found in chain(_each_done(others, jobs), _each_done(timed, 1)):
            store.put(task.key, found)
            step()
    results = gathered([store.get(task.key) or Results([], [], []) for task in tasks])
    write_page(results, notes(results), out / PAGE)
    return [out / PAGE, *write_figures(results, out)]


def _each_done(tasks: list[Task], jobs: int) -> Iterator[tuple[Task, Results]]:
    if jobs == 1 or len(tasks) <= 1:
        yield from ((task, task.done()) for task in tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(Task.done, task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def gathered(found: list[Results]) -> Results:
    """All results together, in the order of a reader, with every budget compared with canonical's."""
    points = [point for one in found for point in one.points]
    budgets = [budget for one in found for budget in one.budgets]
    times = [time for one in found for time in one.times]
    place = {name: i for i, name in enumerate(METHODS)}
    return Results(
        sorted(points, key=lambda one: (one.figure, one.vector, one.k, place.get(one.method, 0), one.method, one.x)),
        sorted(_compared(budgets), key=lambda one: (one.vector, one.k, one.probability, place[one.method])),
        sorted(times, key=lambda one: (one.vector, one.k, place[one.method])),
    )


def _compared(budgets: list[NeededEpsilon]) -> list[NeededEpsilon]:
    """The budgets as multiples of canonical's, where canonical reaches the same."""
    base = {(one.vector, one.k, one.probability): one.epsilon for one in budgets if one.method == CANONICAL}
    known = [one for one in budgets if (one.vector, one.k, one.probability) in base]
    return [replace(one, ratio=one.epsilon / base[one.vector, one.k, one.probability]) for one in known]
