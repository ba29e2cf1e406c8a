"""Draw releases of the demo over epsilon: their true shortfall, and the bound that each release certifies.

    python examples/quality.py            prints a table
    python examples/quality.py pictures   and draws pictures/quality.svg

The ratings are those of `make demo`, made up with a seed, so that the true shortfall may be shown. The releases are
drawn with a seed too, so that the picture of the page stays as it is: nothing here is private.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import discreet
from discreet.exact.arrays import Ranks
from ratings import five_stars, ratings, titles

K, RELEASES = 20, 12
EPSILONS = ("0.005", "0.0075", "0.01", "0.015", "0.02", "0.03", "0.05", "0.07", "0.1", "0.15", "0.2", "0.3")


@dataclass(frozen=True)
class Point:
    """The lead D of the best item left out of a release, and the bound that the release certifies."""

    epsilon: float
    lead: int
    bound: int


def main() -> None:
    """Print the medians for each epsilon, and draw all releases if a folder is given."""
    movies = len(titles())
    people = five_stars(ratings(500_000, 4_000_000, movies, seed=20), movies)
    points = [draw_release(people, epsilon, seed) for epsilon in EPSILONS for seed in range(RELEASES)]
    print(f"The top {K} of {len(people)} movies, {RELEASES} releases for each epsilon, a tenth of it for the bound:\n")
    print("epsilon  true shortfall  certified bound  true top 20, certified")
    for epsilon in EPSILONS:
        some = [point for point in points if point.epsilon == float(epsilon)]
        sure = sum(point.bound <= 0 for point in some)
        figures = (median(max(point.lead, 0) for point in some), median(point.bound for point in some))
        print(f"{epsilon:>7}  {figures[0]:>14,.0f}  {figures[1]:>15,.0f}  {sure:>10} of {RELEASES}")
    missed = sum(point.lead > point.bound for point in points)
    print(f"\nThe bound is missed in {missed} of {len(points)} releases. Movie {K} has {np.sort(people)[-K]:,} people.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), points)


def draw_release(people: Ranks, epsilon: str, seed: int) -> Point:
    """Return the true shortfall of a release with shortfall="auto", and its bound."""
    rng = random.Random(f"{epsilon} {seed}")
    release = discreet.top_k(people, K, epsilon, shortfall="auto", rng=rng)
    lead = int(np.delete(people, release.items).max() - people[release.items].min())
    return Point(float(epsilon), lead, release.shortfall.upper)


def draw(folder: Path, points: list[Point]) -> None:
    """Draw each release as a line from its true shortfall to its bound; numbers below 0 are drawn at 0."""
    sys.path.append(str(Path(__file__).parent / "gallery"))
    from picture import FAINT, MISSED, RELEASED, drawing

    with drawing(folder, "quality") as axes:
        spread = np.geomspace(0.9, 1.1, RELEASES)
        x = np.array([point.epsilon for point in points]) * np.tile(spread, len(EPSILONS))
        true = np.array([max(point.lead, 0) for point in points])
        bound = np.array([max(point.bound, 0) for point in points])
        axes.vlines(x, true, bound, color=FAINT, linewidth=1)
        axes.plot(x, bound, "_", color=RELEASED, markersize=6, label="certified bound")
        axes.plot(x, true, "o", color=MISSED, markersize=3, label="true shortfall")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=10, linscale=0.5)
        axes.set_ylim(bottom=-1.5)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set(xlabel="epsilon, a tenth of it for the bound", ylabel="people (0: a true top 20)")
        axes.set_title(f"Each line is a release of the top {K} of 900 movies")
        axes.legend()


if __name__ == "__main__":
    main()
