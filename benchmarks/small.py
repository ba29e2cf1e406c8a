"""Few items, where no sort hides what a draw costs: against the plain float one-shot, OpenDP, diffprivlib, a scan."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

import discreet
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source
from peers import NO_DIFFPRIVLIB, NO_OPENDP, PLAIN, Diffprivlib, has_opendp, opendp, plain_one_shot, scan
from scores import NO_NETFLIX, netflix, zipf
from suite import Row, Rows, Run, power
from timing import Task

SCAN = "of a scan of all classes in NumPy"


def rows(run: Run) -> Rows:
    """Zipf counts and Netflix against the plain one-shot and the peers, then Netflix against a scan, and long joint."""
    films = netflix()
    known = {"d = 10^4": zipf(10**4), **({} if films is None else {"Netflix": films})}
    for name, scores in known.items():
        yield from against_plain(run, name, scores)
        yield from against_peers(run, name, scores)
    if films is None:
        yield NO_NETFLIX
    else:
        yield from against_scan(run, films)
    yield from joint_lists(run)
    if not has_opendp():
        yield NO_OPENDP
    if not Diffprivlib.is_here():
        yield NO_DIFFPRIVLIB


def against_plain(run: Run, name: str, scores: np.ndarray) -> Rows:
    """Measure the whole of top_k; with a small epsilon more items matter."""
    for k in (10, 100, 1000):
        for epsilon, target in (("1", 2), ("0.1", 8), ("0.01", 8), ("0.001", 8)):
            tasks: dict[str, Task] = {
                "top_k": partial(discreet.top_k, scores, k, epsilon),
                "plain": partial(plain_one_shot, scores, k, float(epsilon)),
            }
            times = run.medians(tasks, repeats=51)
            what = f"{name}, k = {k}, epsilon = {epsilon}"
            yield Row(what, times["top_k"] / times["plain"], PLAIN, target, one=times["plain"])


def against_peers(run: Run, name: str, scores: np.ndarray) -> Rows:
    """Yield the number of releases that fit into one of each library, at the same epsilon."""
    for epsilon in ("1", "0.01") if run.full else ("1",):
        if has_opendp():
            yield against(run, name, scores, 100, epsilon, "OpenDP", opendp(scores, 100, float(epsilon)), 500)
        # With k = 100 a release takes it half a minute, and so does Netflix.
        if Diffprivlib.is_here() and (run.full or name != "Netflix"):
            with Diffprivlib() as peer:
                task = peer.task(scores, 10, float(epsilon))
                yield against(run, name, scores, 10, epsilon, "diffprivlib", task, None)


def against(
    run: Run, name: str, scores: np.ndarray, k: int, epsilon: str, library: str, task: Task, target: float | None
) -> Row:
    """One library against top_k."""
    times = run.medians({"top_k": partial(discreet.top_k, scores, k, epsilon), "library": task}, repeats=21)
    what, unit, one = f"{name}, k = {k}, epsilon = {epsilon}", f"times faster than {library}", times["library"]
    return Row(what, one / times["top_k"], unit, target, at_least=True, one=one)


def against_scan(run: Run, scores: np.ndarray) -> Rows:
    """Netflix at k = 1000 against the 17 million classes of the paper's algorithm."""
    tally, k, descending = array_source(scores).tally(), 1000, np.sort(scores)[::-1].astype(np.float64)
    for epsilon in (Fraction(1), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000)):
        budget = str(float(epsilon))
        drawn: dict[str, Task] = {
            noise: partial(first_draw, tally, k, epsilon, discreet.Canonical(noise=noise)) for noise in NOISES
        }
        prepared = discreet.Canonical().prepare(tally, k, epsilon, discreet.Sensitivity())
        tasks: dict[str, Task] = {
            **drawn,
            "scan": partial(scan, descending, k, float(epsilon)),
            "whole": partial(discreet.top_k, scores, k, budget),
            "joint": partial(discreet.top_k, scores, k, budget, mechanism=discreet.Joint()),
            "further": lambda: prepared.draw(Entropy()),  # noqa: B023
        }
        times = run.medians(tasks, repeats=31)
        at, whole = f"Netflix, k = {k}, epsilon = {float(epsilon):g}", times["scan"]
        for what, name, target in (("canonical", "whole", 150), ("canonical, drawing alone", "gumbel", 250)):
            unit = "times faster than a scan of all classes in NumPy"
            yield Row(f"{what}, {at}", whole / times[name], unit, target, at_least=True, one=whole)
        for noise in list(NOISES)[1:]:
            yield Row(f"canonical, {noise}, drawing alone, {at}", times[noise] / whole, SCAN, 1 / 25, one=whole)
        yield Row(f"joint, {at}", times["joint"] / whole, SCAN, 1 / 20, one=whole)
        yield Row(f"a further draw, {at}", times["further"] / times["gumbel"], "of the first", 0.1, one=times["gumbel"])


def joint_lists(run: Run) -> Rows:
    """Measure a sequence of 10^4 items, which looks up 10^4 ranks for each count."""
    scores = zipf(run.size(10**5))
    for epsilon in ("1", "0.1", "0.01"):
        task = partial(discreet.top_k, scores, len(scores) // 10, epsilon, mechanism=discreet.Joint())
        seconds = run.medians({"joint": task}, repeats=7)["joint"]
        what = f"joint, d = {power(len(scores))}, k = {power(len(scores) // 10)}"
        yield Row(f"{what}, epsilon = {epsilon}", seconds, "s", 0.3)


def first_draw(tally: Tally, k: int, epsilon: Fraction, mechanism: Mechanism) -> None:
    """Prepare and draw once, with the tally given."""
    mechanism.prepare(tally, k, epsilon, discreet.Sensitivity()).draw(Entropy())
