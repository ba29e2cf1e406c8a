"""Count the releases that fit into one by others, at the same k and epsilon, on every shape of 10^4 scores.

Each peer is measured in turn with a release. Of OpenDP the faster one of its two noises counts, and of the scan only
the weights of all classes: neither the sort before it nor the draw after it.

`python benchmarks/peer_table.py` prints what was measured last as the table of docs/comparison.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import discreet
from few import shapes
from peers import NO_DIFFPRIVLIB, NO_OPENDP, Diffprivlib, has_opendp, joint, opendp, plain_one_shot, scan
from scores import NO_NETFLIX, OF_COUNTS, netflix
from suite import Result, Row, Rows, Run, digits, power
from timing import Task

CASES = ((10, "1"), (100, "1"), (100, "0.01"))
"""k and epsilon."""

TARGETS = {("OpenDP", 100): 50}
"""The least number of releases of k items that are to fit into one of a peer."""

JOINT = "joint in NumPy"
FASTER = "times as fast as "

COLUMNS = {
    "plain NumPy": ("", "plain NumPy", *CASES[1]),
    "OpenDP": ("", "OpenDP", *CASES[1]),
    "OpenDP, ε = 0.01": ("", "OpenDP", *CASES[2]),
    "diffprivlib, k = 10": ("", "diffprivlib", *CASES[0]),
    "joint": ("", JOINT, *CASES[1]),
    "`Joint()` beside joint": ("joint, ", JOINT, *CASES[1]),
    "scan": ("", "scan in NumPy", *CASES[1]),
}
"""The columns of the page: what was released, beside which peer, k and epsilon."""


@dataclass(frozen=True, eq=False)
class Case:
    """The scores of a release, its k and its epsilon."""

    shape: str
    scores: np.ndarray
    k: int
    epsilon: str

    @property
    def label(self) -> str:
        """Return the name of the row."""
        return label(f"{self.shape}, {power(len(self.scores))} items", self.k, self.epsilon)

    def release(self) -> Task:
        """Return a release by the default mechanism, ready to be called."""
        return partial(discreet.top_k, self.scores, self.k, self.epsilon, sensitivity=OF_COUNTS)

    def joint_release(self) -> Task:
        """Return a release by the joint mechanism, ready to be called."""
        return partial(
            discreet.top_k, self.scores, self.k, self.epsilon, sensitivity=OF_COUNTS, mechanism=discreet.Joint()
        )


def label(what: str, k: int, epsilon: str) -> str:
    """Return the released items, with k and epsilon."""
    return f"{what}, k = {k}, epsilon = {epsilon}"


def rows(run: Run) -> Rows:
    """Each shape with each k and epsilon: a release by the clock, and against every peer that is here."""
    for k, epsilon in CASES:
        for shape, scores in shapes(run.size(10**4)):
            case = Case(shape, scores, k, epsilon)
            yield from by_the_clock(run, case)
            for peer, ways in peers(case):
                yield from against(run, case, peer, ways)
    for note, is_here in (
        (NO_NETFLIX, netflix() is not None),
        (NO_OPENDP, has_opendp()),
        (NO_DIFFPRIVLIB, Diffprivlib.is_here()),
    ):
        if not is_here:
            yield note


def by_the_clock(run: Run, case: Case) -> Rows:
    """Measure a release by the default mechanism and one by joint, in milliseconds."""
    times = run.medians({"": case.release(), "joint, ": case.joint_release()}, repeats=51)
    for mechanism, seconds in times.items():
        yield Row(mechanism + case.label, 1e3 * seconds, "ms")


def peers(case: Case) -> Iterator[tuple[str, Mapping[str, Task]]]:
    """Each peer that is here, with the ways in which it can do the same."""
    scores, k, epsilon = case.scores, case.k, float(case.epsilon)
    yield "plain NumPy", {"plain": partial(plain_one_shot, scores, k, epsilon)}
    if has_opendp():
        yield "OpenDP", {noise: opendp(scores, k, epsilon, noise) for noise in ("exponential", "gumbel")}
    # With k = 100 one release takes it up to half a minute.
    if Diffprivlib.is_here() and k == 10:
        with Diffprivlib() as peer:
            yield "diffprivlib", {"permute and flip": peer.task(scores, k, epsilon)}
    yield JOINT, {"table": partial(joint, scores, k, epsilon)}
    descending = np.sort(scores)[::-1].astype(np.float64)
    yield "scan in NumPy", {"scan": partial(scan, descending, k, epsilon)}


def against(run: Run, case: Case, peer: str, ways: Mapping[str, Task]) -> Rows:
    """Yield the number of releases that fit into the fastest way of a peer, and of those by joint for that peer."""
    releases = {"": case.release(), **({"joint, ": case.joint_release()} if peer == JOINT else {})}
    times = run.medians({**releases, **ways}, repeats=21)
    one = min(times[way] for way in ways)
    for mechanism in releases:
        target = TARGETS.get((peer, case.k))
        yield Row(mechanism + case.label, one / times[mechanism], FASTER + peer, target, at_least=True, one=one)


def page_table(result: Result) -> str:
    """Return the table of the page: shapes as rows and peers as columns, with k = 100 and epsilon 1 by default."""
    found = {(row.name, row.unit): digits(row.measured) for row in result.rows}
    items = dict.fromkeys(row.name.partition(", k = ")[0].removeprefix("joint, ") for row in result.rows)
    lines = [["scores", "a release", *COLUMNS], ["---", *["---:"] * (len(COLUMNS) + 1)]]
    for what in items:
        cells = [
            found.get((before + label(what, k, epsilon), FASTER + peer), "")
            for before, peer, k, epsilon in COLUMNS.values()
        ]
        lines.append([what, f"{found[label(what, *CASES[1]), 'ms']} ms", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(page_table(Result.read((Path(__file__).parent / "results" / "peers.json").read_text(encoding="utf-8"))))
