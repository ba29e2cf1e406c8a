"""Print the epsilon that each mechanism needs for half and nine tenths of a long list, and draw recall over epsilon.

    python examples/recall.py                 prints the table of docs/appendix/planning.md
    python examples/recall.py --draw FOLDER   and draws recall-100.svg and recall-1000.svg there, in many minutes

From the paper's vectors, NAME.nD.npy in ../shared/datasets or where DISCREET_DATA says, and from made-up ones where
those are not at hand. All of it is computed from the scores, so nothing here is private; the peeling of OpenDP alone,
which has no formula, is drawn in floats, round by round.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import sqrt
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
SHARES = ("0.5", "0.9")
STEPS, DRAWS = 43, 4
CLOSE = 1.005
CANONICAL = discreet.Canonical()

Curve = list[tuple[float, float]]


def few(items: int) -> dict[str, Any]:
    """Return the histogram, for users of at most so many items."""
    return {"mechanism": discreet.Histogram(), "sensitivity": discreet.Sensitivity(items=items)}


OPENDP = "OpenDP's peeling"
METHODS: dict[str, dict[str, Any]] = {
    "canonical, 1/2": {"mechanism": discreet.Canonical(gamma="1/2")},
    "canonical, 3/4": {"mechanism": CANONICAL},
    "one-shot": {"mechanism": discreet.OneShot()},
    "core": {"mechanism": discreet.Core()},
    OPENDP: {},
    **{f"histogram, l = {items}": few(items) for items in (1, 3, 10, 30)},
}
EVERYBODY = [name for name in METHODS if not name.startswith("histogram")]
"""Those that need not know how many items a user has."""


def main() -> None:
    """Print, and draw where a folder is given."""
    vectors = load_vectors(DATA, []) if DATA.is_dir() else make_vectors([])
    if not DATA.is_dir():
        print(f"The paper's vectors are not in {DATA.name}: what is printed is for made-up ones.\n")
    print(table({(vector.name, k): needs(vector, k) for k in SIZES for vector in vectors}))
    if len(sys.argv) > 2 and sys.argv[1] == "--draw":
        for k in SIZES:
            draw(Path(sys.argv[2]), k, {vector.name: curves_of(vector, k) for vector in vectors})


def needs(vector: Vector, k: int) -> dict[str, dict[str, float | None]]:
    """Return the epsilon that each method needs for each share of the list on average."""
    print(f"{vector.name}, k = {k}", file=sys.stderr)
    found = {name: {share: need(vector, k, options, share) for share in SHARES} for name, options in METHODS.items()}
    found[OPENDP] = {share: need_of_peeling(vector.scores, k, share, found["one-shot"][share]) for share in SHARES}
    return found


def need(vector: Vector, k: int, options: dict[str, Any], share: str) -> float | None:
    """Return the epsilon by `discreet.epsilon_for`; None if there is no formula, or if none is enough."""
    if not options:
        return None
    terms = {"goal": "recall", "probability": share, "sensitivity": vector.limit, **options}
    try:
        return float(discreet.epsilon_for(vector.scores, k, **terms))
    except discreet.Error:
        return None


def need_of_peeling(scores: Any, k: int, share: str, near: float | None) -> float | None:
    """Return the epsilon with which the draws have the share right, by bisection from half to eight times `near`."""
    if near is None:
        return None
    low, high = near / 2, 8 * near
    while high > CLOSE * low:
        middle = sqrt(low * high)
        low, high = (low, middle) if peel(scores, k, middle) >= float(share) else (middle, high)
    return high


def curves_of(vector: Vector, k: int) -> dict[str, Curve]:
    """Return the expected recall of each method, at epsilons around canonical's for nine tenths of the list."""
    print(f"curves of {vector.name}, k = {k}", file=sys.stderr)
    most = {"goal": "recall", "probability": "0.9", "mechanism": CANONICAL}
    middle = float(discreet.epsilon_for(vector.scores, k, **most, sensitivity=vector.limit))
    budgets = [float(f"{middle * 10 ** (0.1 * i - 3.5):.3g}") for i in range(STEPS)]
    return {
        name: [(e, recall(e)) for e in budgets]
        for name, options in METHODS.items()
        for recall in [recall_of(vector, k, options)]
    }


def recall_of(vector: Vector, k: int, options: dict[str, Any]) -> Callable[[float], float]:
    """Return the recall of `discreet.utility` as a function of epsilon, to four digits."""
    if not options:
        return partial(peel, vector.scores, k)
    request = make_request(vector.scores, k, 1, **{"sensitivity": vector.limit, **options})
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


def table(found: dict[tuple[str, int], dict[str, dict[str, float | None]]]) -> str:
    """Return the epsilon that each method needs, the least of those for everybody in bold."""
    lines = ["| scores | k | recall | " + " | ".join(METHODS) + " |", "| --- " * (3 + len(METHODS)) + "|"]
    for (name, k), needed in found.items():
        for share in SHARES:
            row = {method: each[share] for method, each in needed.items()}
            least = min((row[each] for each in EVERYBODY if row[each] is not None), default=None)
            cells = " | ".join(cell(method, value, least) for method, value in row.items())
            lines.append(f"| {name} | {k} | {share} | {cells} |")
    return "\n".join(lines)


def cell(method: str, value: float | None, least: float | None) -> str:
    """Return an epsilon to three digits, or to two if it was estimated by draws."""
    if value is None:
        return "-"
    digits = f"{float(f'{value:.{2 if method == OPENDP else 3}g}'):g}"
    return f"**{digits}**" if value == least else digits


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
