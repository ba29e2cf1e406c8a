"""Compute and draw the figures of docs/mechanisms.md and docs/epsilon.md, from made-up scores.

    python examples/figures.py            prints the figures
    python examples/figures.py pictures   and draws them into pictures/

A thousand items, scored by how many people touched them: 200,000 / (rank + 5)^0.9, rounded. Everything is computed from
these scores, so nothing here is private.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import discreet

sys.path.append(str(Path(__file__).parent / "gallery"))
from picture import DASHES, TONES, drawing

SCORES = [round(200_000 / (rank + 5) ** 0.9) for rank in range(1, 1001)]
MECHANISMS = {
    "canonical": discreet.Canonical(),
    "one-shot": discreet.OneShot(),
    "peeling": discreet.Peeling(),
    "joint": discreet.Joint(),
}
PLACES = [1, 2, 3, 5, 10, 20, 50, 100]
CURVES = dict(zip(MECHANISMS, zip(TONES, DASHES, strict=True), strict=True))

Curves = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Print the figures, and draw them if a folder is given."""
    needed = {name: [(float(k), needs(k, name)) for k in PLACES] for name in MECHANISMS}
    chance = {name: [(e, top(10, e, name)) for e in steps(0.001, 0.05, 41)] for name in MECHANISMS}
    goals = reached(100, steps(0.05, 0.5, 41))
    shares = {name: [(e, share(10, e, name)) for e in steps(0.001, 0.032, 25)] for name in MECHANISMS}
    print(table(needed))
    print()
    print(shared(shares))
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), chance, needed, goals, shares)


def steps(low: float, high: float, count: int) -> list[float]:
    """Return numbers from low to high with a constant ratio, to three digits."""
    return [float(f"{low * (high / low) ** (i / (count - 1)):.3g}") for i in range(count)]


def needs(k: int, name: str) -> float:
    """Return the epsilon with which the exact top-k is released nine times in ten."""
    return float(discreet.epsilon_for(SCORES, k, goal="top", probability="0.9", mechanism=MECHANISMS[name]))


def top(k: int, epsilon: float, name: str) -> float:
    """Return the probability of the exact top-k."""
    return discreet.utility(SCORES, k, str(epsilon), MECHANISMS[name]).top


def share(k: int, epsilon: float, name: str) -> float:
    """Return the share of the true top-k that is released."""
    return discreet.utility(SCORES, k, str(epsilon), MECHANISMS[name]).recall


def reached(k: int, budgets: list[float]) -> Curves:
    """Return the probability of each goal with the canonical mechanism."""
    found = [(e, discreet.utility(SCORES, k, str(e))) for e in budgets]
    return {goal: [(e, getattr(one, goal)) for e, one in found] for goal in ("good", "great", "top")}


def table(needed: Curves) -> str:
    """Return the needed epsilons as text, a row for each k."""
    rows = [["k", *needed]]
    for i, k in enumerate(PLACES):
        rows.append([str(k), *(f"{curve[i][1]:.4g}" for curve in needed.values())])
    lines = ["  ".join(f"{cell:>9}" for cell in row) for row in rows]
    return "\n".join(["epsilon for the exact top-k in nine releases of ten", *lines])


def shared(shares: Curves) -> str:
    """Return the shares of the true top-10 as text, a row for every fourth epsilon."""
    rows = [["epsilon", *shares]]
    for i, (epsilon, _) in list(enumerate(shares["canonical"]))[::4]:
        rows.append([f"{epsilon:g}", *(f"{curve[i][1]:.2f}" for curve in shares.values())])
    lines = ["  ".join(f"{cell:>9}" for cell in row) for row in rows]
    return "\n".join(["share of the true top-10 that is released", *lines])


def draw(folder: Path, chance: Curves, needed: Curves, goals: Curves, shares: Curves) -> None:
    """Draw the four pictures."""
    with drawing(folder, "chance") as axes:
        plot(axes, chance, CURVES)
        axes.set(xlabel="epsilon", ylabel="chance of the exact top 10")
        axes.set_title("How often the list is exactly right")
    with drawing(folder, "shares") as axes:
        plot(axes, shares, CURVES)
        axes.set(xlabel="epsilon", ylabel="share of the true top 10 released")
        axes.set_title("How much of the list is right")
    with drawing(folder, "needed") as axes:
        plot(axes, needed, CURVES, marker="o")
        axes.set(yscale="log", xlabel="k", ylabel="epsilon needed")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xticks(PLACES, [str(k) for k in PLACES])
        axes.minorticks_off()
        axes.set_title("What the exact top k costs, nine times in ten")
    with drawing(folder, "goals") as axes:
        plot(axes, goals, dict(zip(goals, zip(TONES[2::-1], DASHES, strict=False), strict=True)))
        axes.set(xlabel="epsilon", ylabel="chance, canonical, k = 100")
        axes.set_xticks([0.05, 0.1, 0.2, 0.5])
        axes.minorticks_off()
        axes.set_title("What a near miss saves")


def plot(axes: Any, curves: Curves, styles: dict[str, tuple[str, str]], marker: str = "") -> None:
    """Plot lines that differ in colour and in dashes."""
    for name, curve in curves.items():
        colour, dashes = styles[name]
        axes.plot(*zip(*curve, strict=True), color=colour, linestyle=dashes, linewidth=2, marker=marker, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend()


if __name__ == "__main__":
    main()
