"""Count how often the bound of a shortfall holds, over 10,000 releases on each of six shapes at three epsilons.

    python examples/shortfall_coverage.py            prints the table, as Markdown, in a few minutes
    python examples/shortfall_coverage.py 1000       draws so many releases for each row

Each release is made by `top_k` with a seed of its own row, so that the table can be printed again, and the true lead of
the best item left out is computed from the scores. The script ends with an error if

- the one-sided bound of a row is missed more often than 5% explain: the Clopper-Pearson lower bound on the probability
  of a miss is above 5%, with an error of 1 in 1,000 for all rows together; or the same for the two-sided interval; or
- a bound lies further above its value than the least q with P(noise < -q) <= 5%, computed here in another way.

"exactly" is the probability with which a bound holds, and "step less" that of a bound of one step less. Nothing here is
private.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp
from statistics import fmean

import numpy as np

import discreet
from discreet.analysis.goals import lower_bound

K, D = 10, 200
EPSILONS = {"0.01": "0.03", "0.05": "0.1", "2": "0.5"}
"""The epsilon of the shortfall, and that of the selection beside it."""

DRAWS, ALPHA = 10_000, 0.001

HEADINGS = (
    "shortfall", "scores", "true shortfall, mean", "bound above value",
    "interval holds", "bound holds", "exactly", "step less",
)  # fmt: skip


def make_shapes() -> dict[str, list[int]]:
    """Return scores of six shapes."""
    ranks, draw = range(1, D + 1), random.Random(1)
    return {
        "Zipf": [30_000 // rank for rank in ranks],
        "uniform": [draw.randrange(3000) for _ in ranks],
        "geometric": [int(3000 * 0.97**rank) for rank in ranks],
        "ties": [100 * (300 // (10 + rank)) for rank in ranks],
        "near-ties": [500 - rank for rank in ranks],
        "all equal": [100 for _ in ranks],
    }


@dataclass(frozen=True)
class Row:
    """The figures of many releases from the same scores.

    Attributes
    ----------
    shape, cost
        The name of the scores and the epsilon of the shortfall.
    draws
        The number of releases.
    missed, missed_two_sided
        The number of releases whose lead is above `upper`, and outside `low` to `high`.
    widths
        The different distances of `upper` from `value`.
    lead
        The true shortfall max(D, 0), on average.
    """

    shape: str
    cost: str
    draws: int
    missed: int
    missed_two_sided: int
    widths: set[int]
    lead: float

    def check(self, rows: int) -> None:
        """Raise unless the bound of this row, which is one of several, holds and is no wider than it must be."""
        for missed in (self.missed, self.missed_two_sided):
            if lower_bound(missed, self.draws, ALPHA / (2 * rows)) > 0.05:
                raise SystemExit(f"{self.shape} at {self.cost}: missed {missed} of {self.draws}")
        if self.widths != {find_width(float(self.cost))}:
            raise SystemExit(f"{self.shape} at {self.cost}: bounds are {self.widths} above their values")


def find_width(rate: float) -> int:
    """Return the least q with P(noise < -q) <= 5%, by adding up the probabilities of discrete Laplace noise."""
    r, width = exp(-rate), 0
    miss = r / (1.0 + r)
    while miss > 0.05:
        width, miss = width + 1, miss * r
    return width


def find_lead(scores: list[int], items: list[int]) -> int:
    """Return the largest score left out minus the smallest score released."""
    released = set(items)
    left_out = max(score for item, score in enumerate(scores) if item not in released)
    return left_out - min(scores[item] for item in items)


def draw_row(shape: str, scores: list[int], cost: str, draws: int) -> Row:
    """Draw releases and compare their bounds with the true lead."""
    rng, array = random.Random(f"{shape} {cost}"), np.array(scores)
    missed, outside, widths, leads = 0, 0, set(), []
    for _ in range(draws):
        release = discreet.top_k(array, K, EPSILONS[cost], shortfall=cost, rng=rng)
        found, lead = release.shortfall, find_lead(scores, release.items)
        missed += lead > found.upper
        outside += not found.low <= lead <= found.high
        widths.add(found.upper - found.value)
        leads.append(max(lead, 0))
    return Row(shape, cost, draws, missed, outside, widths, fmean(leads))


def draw_rows(draws: int = DRAWS) -> Iterator[Row]:
    """Yield a row for each epsilon and shape."""
    for cost in EPSILONS:
        for shape, scores in make_shapes().items():
            yield draw_row(shape, scores, cost, draws)


def main() -> None:
    """Print the table, and check each row."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    rows = len(EPSILONS) * len(make_shapes())
    print(f"The top {K} of {D}, {draws:,} releases a row.\n")
    print(f"| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}")
    for row in draw_rows(draws):
        row.check(rows)
        rate, wide = float(row.cost), max(row.widths)
        exactly, less = (1.0 - exp(-rate * steps) / (1.0 + exp(-rate)) for steps in (wide + 1, wide))
        shares = [1.0 - row.missed_two_sided / draws, 1.0 - row.missed / draws, exactly, less]
        told = [row.cost, row.shape, f"{row.lead:.1f}", str(wide), *(f"{share:.2%}" for share in shares)]
        print(f"| {' | '.join(told)} |", flush=True)
    print(
        f"\nEvery bound holds as often as it says, with alpha = {ALPHA} for all rows, and is no wider than it must be."
    )


if __name__ == "__main__":
    main()
