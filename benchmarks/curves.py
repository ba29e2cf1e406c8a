"""The plot: what one release costs against the number of items and against k, for every mechanism and peer.

Seconds, at epsilon = 1; at each point all contestants are measured in turns. One whose next point would take too long
stops there, and one that stopped long before the d of the other panel is not in that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np

import discreet
import plot
from discreet.mechanisms.base import Mechanism
from peers import NO_DIFFPRIVLIB, NO_OPENDP, Diffprivlib, has_opendp, opendp, plain_one_shot, scan
from scores import zipf
from suite import Run, machine
from timing import Task, medians

MECHANISMS: dict[str, Mechanism] = {
    "canonical": discreet.Canonical(),
    "one-shot": discreet.OneShot(),
    "peeling, Gumbel": discreet.Peeling(),
    "peeling, exponential": discreet.Peeling("exponential"),
    "joint": discreet.Joint(),
}

K = 100
"""The k of the curves along which d changes."""

Curves = dict[str, list[tuple[int, float]]]
Contestant = Callable[[np.ndarray, int], Task]


def main(run: Run, out: Path | None) -> None:
    """Measures, and where results are wanted writes curves.json, cost.svg and cost.png."""
    d = run.size(10**5)
    # Slow ones need a point more before they stop.
    many = [n for n in (10**3, 3000, 10**4, 10**5, 10**6, 10**7) if n <= run.size(10**7)]
    places = [n for n in (1, 10, 100, 1000, 10**4) if n < d]
    with Diffprivlib() if Diffprivlib.is_here() else nullcontext() as peer:
        against_d = curves(contestants(peer), [(n, n, K) for n in many], run)
        able = {name: make for name, make in contestants(peer).items() if 10 * against_d[name][-1][0] >= d}
        against_k = curves(able, [(n, d, n) for n in places], run)
    for missing in (NO_OPENDP if not has_opendp() else "", NO_DIFFPRIVLIB if not Diffprivlib.is_here() else ""):
        if missing:
            print(missing)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        found = {"machine": machine(), "epsilon": 1, "k": K, "against_d": against_d, "d": d, "against_k": against_k}
        (out / "curves.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        plot.draw(found, out)


def contestants(peer: Diffprivlib | None) -> dict[str, Contestant]:
    """Return the function that makes a task of scores and k, for each line of the plot."""

    def ours(mechanism: Mechanism, scores: np.ndarray, k: int) -> Task:
        return partial(discreet.top_k, scores, k, 1, mechanism=mechanism)

    every: dict[str, Contestant] = {name: partial(ours, mechanism) for name, mechanism in MECHANISMS.items()}
    every["np.sort"] = lambda scores, k: partial(np.sort, scores)
    every["np.argpartition"] = lambda scores, k: partial(np.argpartition, scores, len(scores) - k)
    every["plain float one-shot"] = lambda scores, k: partial(plain_one_shot, scores, k, 1.0)
    every["scan of all classes"] = lambda scores, k: partial(scan, np.sort(scores)[::-1].astype(np.float64), k, 1.0)
    if has_opendp():
        every["OpenDP"] = lambda scores, k: opendp(scores, k, 1.0)
    if peer is not None:
        every["diffprivlib"] = lambda scores, k: peer.task(scores, k, 1.0)
    return every


def curves(every: dict[str, Contestant], points: list[tuple[int, int, int]], run: Run) -> Curves:
    """Return the median seconds of each contestant at each point (x, d, k), as long as it is quick enough."""
    found: Curves = {name: [] for name in every}
    before = 0
    for x, d, k in points:
        scores, tasks = zipf(d), {}
        for name, make in every.items():
            line, is_first = found[name], x == points[0][0]
            if is_first or (line[-1][0] == before and foretold(line, x) < (12.0 if run.full else 8.0)):
                tasks[name] = make(scores, k)
        before = x
        for name, seconds in medians(tasks, repeats=11, patience=2.0 if run.full else 0.3).items():
            found[name].append((x, seconds))
    return found


def foretold(line: list[tuple[int, float]], x: int) -> float:
    """Return the seconds at x, if the cost goes on as it grew at last, and at first in proportion."""
    (before, one), (last, other) = [(1, line[-1][1] / line[-1][0]), *line][-2:]
    slope = np.log(other / one) / np.log(last / before) if last > before else 1.0
    return float(other * (x / last) ** max(slope, 0.0))
