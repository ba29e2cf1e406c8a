"""How much of the list each mechanism gets right, over epsilon: the picture of "Choose a mechanism and an epsilon".

    python examples/recall.py                 prints the table, as Markdown
    python examples/recall.py --draw FOLDER   and draws recall-100.svg and recall-1000.svg there

From the paper's vectors, NAME.nD.npy in ../shared/datasets or where DISCREET_DATA says, and from made-up ones where
those are not at hand. All of it is computed from the scores, so nothing here is private; the peeling of OpenDP alone,
which has no formula, is drawn in floats, round by round. It takes some minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.analysis.goals import goals
from discreet.analysis.meters import Precision, meter
from discreet.release.request import make_request
from discreet.study.vectors import Vector, load_vectors, make_vectors

sys.path.append(str(Path(__file__).parent / "gallery"))
from picture import GREY, TONES, drawing

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))
SIZES = (100, 1000)
SHARES = (0.5, 0.9)
STEPS, DRAWS = 43, 4
CANONICAL = discreet.Canonical()

Curve = list[tuple[float, float]]


def few(items: int) -> dict[str, Any]:
    """Return the histogram, for users of at most so many items."""
    return {"mechanism": discreet.Histogram(), "sensitivity": discreet.Sensitivity(items=items)}


METHODS: dict[str, dict[str, Any]] = {
    "canonical, 1/2": {"mechanism": discreet.Canonical(gamma="1/2")},
    "canonical, 3/4": {"mechanism": CANONICAL},
    "one-shot": {"mechanism": discreet.OneShot()},
    "core": {"mechanism": discreet.Core()},
    "OpenDP's peeling": {},
    **{f"histogram, l = {items}": few(items) for items in (1, 3, 10, 30)},
}
EVERYBODY = [name for name in METHODS if not name.startswith("histogram")]
"""Those that need not know how many items a user has."""


def main() -> None:
    """Print, and draw where a folder is given."""
    vectors = load_vectors(DATA, []) if DATA.is_dir() else make_vectors([])
    if not DATA.is_dir():
        print(f"The paper's vectors are not in {DATA.name}: what is printed is for made-up ones.\n")
    cases = [(vector, k) for k in SIZES for vector in vectors]
    found = {(vector.name, k): curves_of(vector, k) for vector, k in cases}
    print(table(found))
    if len(sys.argv) > 2 and sys.argv[1] == "--draw":
        for k in SIZES:
            draw(Path(sys.argv[2]), k, {name: curves for (name, size), curves in found.items() if size == k})


def curves_of(vector: Vector, k: int) -> dict[str, Curve]:
    """Return the expected recall of each method, at epsilons around canonical's for nine tenths of the list."""
    print(f"{vector.name}, k = {k}", file=sys.stderr)
    most = {"goal": "recall", "probability": "0.9", "mechanism": CANONICAL}
    middle = float(discreet.epsilon_for(vector.scores, k, **most, sensitivity=vector.limit))
    budgets = [float(f"{middle * 10 ** (0.1 * i - 3.5):.3g}") for i in range(STEPS)]
    return {
        name: [(e, recall(e)) for e in budgets]
        for name, options in METHODS.items()
        for recall in [recall_of(vector, k, options)]
    }


def recall_of(vector: Vector, k: int, options: dict[str, Any]) -> Callable[[float], float]:
    """From epsilon to the expected share of the true list; as `discreet.utility` has it, to four digits."""
    if not options:
        return partial(peel, vector.scores, k)
    request = make_request(vector.scores, k, 1, **options)
    tally = request.source.tally()
    wanted = {"recall": goals(tally, k, None)["recall"]}
    shares = meter(tally, k, request.guarantee, wanted, Precision(goal=1e-4))
    return lambda epsilon: shares(Fraction(str(epsilon))).values["recall"]


def peel(scores: Any, k: int, epsilon: float) -> float:
    """Return the mean share over some draws of OpenDP's top-k: k rounds of report noisy max with exponential noise.

    It asks for a scale; k / epsilon is the least that is epsilon-private for counts of users.
    """
    rng, values = np.random.default_rng(1), np.sort(np.asarray(scores, float))[::-1]
    shares = []
    for _ in range(DRAWS):
        left = values.copy()
        for _ in range(k):
            left[np.argmax(left + rng.exponential(k / epsilon, len(left)))] = -np.inf
        shares.append(float(np.isneginf(left[values >= values[k - 1]]).sum()) / k)
    return float(np.mean(shares))


def needed(curve: Curve, share: float) -> float | None:
    """Return the epsilon at which a curve first reaches a share, between two points of it by logarithms."""
    for (low, before), (high, after) in pairwise(curve):
        if before < share <= after:
            return exp(log(low) + (log(high) - log(low)) * (share - before) / (after - before))
    return None


def table(found: dict[tuple[str, int], dict[str, Curve]]) -> str:
    """Return the epsilon that each method needs, the least of those for everybody in bold."""
    lines = ["| scores | k | recall | " + " | ".join(METHODS) + " |", "| --- " * (3 + len(METHODS)) + "|"]
    for (name, k), curves in found.items():
        for share in SHARES:
            row = {method: needed(curve, share) for method, curve in curves.items()}
            least = min((row[each] for each in EVERYBODY if row[each] is not None), default=None)
            cells = " | ".join(cell(value, least) for value in row.values())
            lines.append(f"| {name} | {k} | {share} | {cells} |")
    return "\n".join(lines)


def cell(value: float | None, least: float | None) -> str:
    """Return an epsilon to two digits; nothing where the curve does not get there."""
    if value is None:
        return "-"
    return f"**{value:.2g}**" if value == least else f"{value:.2g}"


def draw(folder: Path, k: int, found: dict[str, dict[str, Curve]]) -> None:
    """Draw a panel for each vector, and the legend in the last one."""
    from matplotlib.ticker import LogLocator

    with drawing(folder, f"recall-{k}", height=8.4, rows=3, columns=2, shared=False) as axes:
        panels = list(axes.flat)
        for panel, (name, curves) in zip(panels, found.items(), strict=False):
            for (method, curve), look in zip(curves.items(), LOOKS, strict=True):
                panel.plot(*zip(*curve, strict=True), label=method, **look)
            panel.set(xscale="log", ylim=(0, 1.02))
            panel.xaxis.set_major_locator(LogLocator(numticks=5))
            panel.minorticks_off()
            panel.set_title(f"{name.title()}, k = {k}")
        for panel in panels[len(found) :]:
            panel.axis("off")
        for row in axes:
            row[0].set_ylabel("expected recall")
        for panel in panels[: len(found)][-2:]:
            panel.set_xlabel("epsilon")
        panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center")


LOOKS: list[dict[str, Any]] = [
    {"color": TONES[0], "linestyle": "--", "linewidth": 1.6},
    {"color": TONES[0], "linestyle": "-", "linewidth": 2},
    {"color": TONES[1], "linestyle": "-", "linewidth": 2},
    {"color": TONES[2], "linestyle": "-", "linewidth": 2.4},
    {"color": TONES[3], "linestyle": ":", "linewidth": 2},
    *({"color": GREY, "linestyle": dashes, "linewidth": 1.4} for dashes in ("-", "--", "-.", ":")),
]
"""Those for everybody in colours; the histogram in grey, by dashes."""


if __name__ == "__main__":
    main()
