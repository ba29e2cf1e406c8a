"""The tables and the picture of the page "Discovery compared": which share of the true top-k is found and released.

    python examples/discovery_compared.py            prints the tables, as Markdown
    python examples/discovery_compared.py pictures   and draws pictures/discovery-compared.svg

Events are made up: every person has 1 to 1,000 of 20,000 items, and items are popular by Zipf's law. Four methods have
the same epsilon and delta. Three of them count l items of a person, add noise to each item's number of people, and
release the k largest that reach a threshold: OpenDP's own `make_laplace_threshold` where it is installed, and Laplace
and Gaussian noise in plain floats. `discreet` finds items by such counts, with its usual part of epsilon or with three
quarters of it, and selects among them by all of their people.

All draws but OpenDP's have a seed. It takes about a minute. Tables leave out rows in which every method releases 100%.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from math import erfc, exp, expm1, log, log1p, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

import discreet
from discreet.exact.entropy import Entropy
from discreet.mechanisms.discovery import Discovery

sys.path.append(str(Path(__file__).parent / "gallery"))
from picture import DASHES, TONES, drawing

DELTA = "1e-8"
PEOPLE = (20_000, 200_000)
SIZES = (10, 50)
LIMITS = (1, 3, 10, 30)
BUDGETS = ("0.3", "1", "3")
ITEMS, MOST = 20_000, 1_000
BOUNDINGS, DRAWS = 5, 10
"""How often the items of each person that count are chosen anew, and how often each method draws for each choice."""

OPENDP, LAPLACE, GAUSSIAN, OURS, MORE = "OpenDP", "Laplace", "Gaussian", "discreet", "discreet, 3/4"
PARTS = {OURS: None, MORE: Fraction(3, 4)}
"""How much of epsilon is for finding items: the usual part, and three quarters.

Three quarters was the best of 1/4, 1/2, 2/3, 3/4, 7/8 and 15/16 on the whole, tried with seed 17 and 20,000 people. The
tables have another seed, and the same law of events.
"""

Cell = tuple[int, int, str]
"""k, l and epsilon."""
Shares = dict[Cell, dict[str, int]]
"""For each method the share of the true top-k that it releases in the mean, in whole percents."""
Release = Callable[[np.ndarray, int, float, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Events:
    """Who touched what: one person and one item for each pair, sorted by person."""

    person: np.ndarray
    item: np.ndarray

    def count_people(self) -> np.ndarray:
        """How many people touched each item."""
        return np.bincount(self.item, minlength=ITEMS)

    def count_bounded(self, rng: np.random.Generator) -> dict[int, np.ndarray]:
        """Return the same for each l, where l items of a person count: a uniform subset of those of a larger l."""
        shuffled = self.item[np.argsort(self.person + rng.random(len(self.person)))]
        place = number_within(self.person)
        return {limit: np.bincount(shuffled[place < limit], minlength=ITEMS) for limit in LIMITS}


def number_within(groups: np.ndarray) -> np.ndarray:
    """0, 1, 2 and so on within each run of equal groups."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def make_events(people: int, seed: int = 18) -> Events:
    """Each person has m items with a chance in proportion to m^-1.5, chosen one after the other by popularity."""
    rng = np.random.default_rng(seed)
    often = np.arange(1, MOST + 1) ** -1.5
    wanted = rng.choice(np.arange(1, MOST + 1), people, p=often / often.sum())
    # Three times as many as needed: one who draws an item again draws another.
    person = np.repeat(np.arange(people), 3 * wanted)
    fame = np.cumsum(1.0 / np.arange(1, ITEMS + 1))
    item = np.searchsorted(fame, rng.random(len(person)) * fame[-1])
    first = np.sort(np.unique(person * ITEMS + item, return_index=True)[1])
    person, item = person[first], item[first]
    counts = number_within(person) < wanted[person]
    return Events(person[counts], item[counts])


def delta_of_one(delta: float, limit: int) -> float:
    """Return the chance with which each of l items that one person alone has may be released."""
    return -expm1(log1p(-delta) / limit)


def laplace_threshold(limit: int, epsilon: float) -> tuple[float, float]:
    """Return the scale of the noise, and the threshold: Google's `LaplacePartitionSelection`."""
    scale = limit / epsilon
    return scale, 1.0 - scale * log(2.0 * delta_of_one(float(DELTA), limit))


def gaussian_threshold(limit: int, epsilon: float) -> tuple[float, float]:
    """Return the same for Gaussian noise, with half of delta for each: Google's `GaussianPartitionSelection`."""
    half = float(DELTA) / 2.0
    deviation = gaussian_deviation(sqrt(limit), epsilon, half)
    return deviation, 1.0 - deviation * NormalDist().inv_cdf(delta_of_one(half, limit))


@cache
def gaussian_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation for epsilon and delta, by Theorem 8 of Balle and Wang (2018)."""
    low, high = 0.0, 1000.0 * sensitivity / epsilon
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        ratio = sensitivity / middle
        near, far = ratio / 2.0 - epsilon / ratio, -ratio / 2.0 - epsilon / ratio
        reached = normal_cdf(near) - exp(epsilon) * normal_cdf(far)
        low, high = (low, middle) if reached <= delta else (middle, high)
    return high


def normal_cdf(x: float) -> float:
    """Return the standard normal law, with its relative precision kept in the lower tail."""
    return erfc(-x / sqrt(2.0)) / 2.0


def release_laplace(counts: np.ndarray, limit: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return the items above the threshold, the largest noisy count first."""
    scale, threshold = laplace_threshold(limit, epsilon)
    return rank_above(counts, counts + rng.laplace(0.0, scale, len(counts)), threshold)


def release_gaussian(counts: np.ndarray, limit: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return the items above the threshold, the largest noisy count first."""
    deviation, threshold = gaussian_threshold(limit, epsilon)
    return rank_above(counts, counts + rng.normal(0.0, deviation, len(counts)), threshold)


def rank_above(counts: np.ndarray, noisy: np.ndarray, threshold: float) -> np.ndarray:
    """Items that somebody touched and that reach the threshold, the largest first."""
    kept = np.flatnonzero((counts > 0) & (noisy >= threshold))
    return kept[np.argsort(-noisy[kept])]


def release_opendp(counts: np.ndarray, limit: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return the same by OpenDP, which draws with bits of its own and takes microseconds for each item.

    So items that are 15 scales below the threshold are left out: each would be released once in three million draws.
    """
    scale, threshold = opendp_threshold(limit, epsilon)
    near = np.flatnonzero(counts > max(0.0, threshold - 15.0 * scale))
    measurement = make_opendp(scale, threshold)
    noisy: dict[int, int] = measurement(dict(zip(near.tolist(), counts[near].tolist(), strict=True)))
    return np.array(sorted(noisy, key=lambda item: -noisy[item]), np.int64)


@cache
def opendp_threshold(limit: int, epsilon: float) -> tuple[float, int]:
    """Return the scale, and the least threshold for which OpenDP's own privacy map says that delta is kept."""
    scale, low, high = limit / epsilon, 1, 10**6
    while high - low > 1:
        middle = (low + high) // 2
        _, delta = make_opendp(scale, middle).map((limit, limit, 1))
        low, high = (low, middle) if delta <= float(DELTA) else (middle, high)
    return scale, high


@cache
def make_opendp(scale: float, threshold: int) -> Any:
    """OpenDP's measurement of counts by item, for people who change l counts by 1 each."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    metric = dp.l01inf_distance(dp.absolute_distance(T="i64"))
    return dp.m.make_laplace_threshold(counts, metric, scale=scale, threshold=threshold)


THRESHOLDS = {OPENDP: opendp_threshold, LAPLACE: laplace_threshold, GAUSSIAN: gaussian_threshold}
RELEASES: dict[str, Release] = {OPENDP: release_opendp, LAPLACE: release_laplace, GAUSSIAN: release_gaussian}


def list_methods() -> list[str]:
    """Return the methods with a threshold that are here."""
    return [name for name in RELEASES if name != OPENDP or importlib.util.find_spec("opendp") is not None]


@cache
def plan_ours(name: str, cell: Cell) -> Discovery:
    """How `discreet` finds items, with the part of epsilon that the name stands for."""
    k, limit, epsilon = cell
    part = PARTS[name]
    return discreet.discovered(DELTA, limit, part and part * Fraction(epsilon)).plan(k, epsilon)


@dataclass(frozen=True)
class Ranked:
    """Bounded counts, the items in their order, and the runs of equal ones; and all people of each item."""

    counts: np.ndarray
    people: np.ndarray

    @cached_property
    def order(self) -> np.ndarray:
        """The items from the smallest bounded count on."""
        return np.argsort(self.counts, kind="stable")

    @cached_property
    def runs(self) -> tuple[np.ndarray, np.ndarray]:
        """The different counts, and how many items have each."""
        return np.unique(self.counts, return_counts=True)

    def release(self, name: str, cell: Cell, bits: random.Random) -> np.ndarray:
        """Release as `top_k` does: items are found by the bounded counts, and selected by all of their people."""
        k, _, epsilon = cell
        found = plan_ours(name, cell)
        kept = self.order[found.sample_kept_ranks(Entropy(bits), *self.runs)]
        if len(kept) <= k:
            return kept
        return kept[discreet.top_k(self.people[kept], k, Fraction(epsilon) - found.epsilon, rng=bits).items]


def measure_shares(
    people: int,
    settings: Iterable[tuple[int, str]] = tuple(product(LIMITS, BUDGETS)),
    boundings: int = BOUNDINGS,
    draws: int = DRAWS,
) -> Shares:
    """Return the share of the true top-k that each method releases in the mean, for each k, l and epsilon."""
    events, rng, bits = make_events(people), np.random.default_rng(people), random.Random(people)
    touched = events.count_people()
    cells = [(k, limit, epsilon) for k in SIZES for limit, epsilon in settings]
    best = {k: np.argsort(-touched, kind="stable")[:k] for k in SIZES}
    hits: dict[Cell, Counter[str]] = {cell: Counter() for cell in cells}
    for _ in range(boundings):
        ranked = {limit: Ranked(counts, touched) for limit, counts in events.count_bounded(rng).items()}
        for (limit, epsilon), name, _ in product(settings, list_methods(), range(draws)):
            released = RELEASES[name](ranked[limit].counts, limit, float(epsilon), rng)
            for k in SIZES:
                hits[k, limit, epsilon][name] += count_common(best[k], released[:k])
        for cell, name, _ in product(cells, PARTS, range(draws)):
            hits[cell][name] += count_common(best[cell[0]], ranked[cell[1]].release(name, cell, bits))
    whole = boundings * draws / 100
    return {cell: {name: round(hit / (cell[0] * whole)) for name, hit in row.items()} for cell, row in hits.items()}


def count_common(best: np.ndarray, released: np.ndarray) -> int:
    """How many of the best were released."""
    return len(np.intersect1d(best, released))


def format_shares(shares: Shares) -> str:
    """Return a row for each cell in which not all methods release everything, the largest share in bold."""
    names = list(next(iter(shares.values())))
    cells = {cell: list(row.values()) for cell, row in shares.items() if min(row.values()) < 100}
    rows = [[*map(str, cell), *mark_best(row)] for cell, row in cells.items()]
    return format_table(["k", "l", "epsilon", *names], rows)


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def mark_best(shares: list[int]) -> list[str]:
    """Percents, the largest in bold unless all are equal."""
    best = max(shares) if len(set(shares)) > 1 else None
    return [f"**{share}%**" if share == best else f"{share}%" for share in shares]


def format_best(by_people: dict[int, Shares]) -> str:
    """Return the share of each method with the l that suits it best, and that l, unless all release everything."""
    names = list(next(iter(by_people[PEOPLE[0]].values())))
    rows = []
    for people, k, epsilon in product(PEOPLE, SIZES, BUDGETS):
        shares = {limit: by_people[people][k, limit, epsilon] for limit in LIMITS}
        best = {name: max(LIMITS, key=lambda limit: shares[limit][name]) for name in names}
        largest = [shares[limit][name] for name, limit in best.items()]
        if min(largest) < 100:
            texts = zip(mark_best(largest), best.values(), strict=True)
            rows.append([f"{people:,}", str(k), epsilon, *(f"{text}, l = {limit}" for text, limit in texts)])
    return format_table(["people", "k", "epsilon", *names], rows)


def format_thresholds(epsilon: str = "1") -> str:
    """How many people an item needs, for each l."""
    methods, rows = list_methods(), []
    for limit in LIMITS:
        needs = [THRESHOLDS[name](limit, float(epsilon))[1] for name in methods]
        needs += [plan_ours(OURS, (k, limit, epsilon)).threshold for k in SIZES]
        needs += [plan_ours(MORE, (SIZES[0], limit, epsilon)).threshold]
        rows.append([str(limit), *(f"{need:,.0f}" for need in needs)])
    return format_table(["l", *methods, *(f"{OURS}, k = {k}" for k in SIZES), MORE], rows)


def draw(folder: Path, by_people: dict[int, Shares]) -> None:
    """Draw the share of the true top 50 against l with few people, where methods differ, a panel for each epsilon."""
    people, k = PEOPLE[0], SIZES[-1]
    styles = dict(zip((OURS, MORE, LAPLACE, GAUSSIAN), zip(TONES, DASHES, strict=True), strict=True))
    with drawing(folder, "discovery-compared", height=3.6, columns=len(BUDGETS)) as panels:
        for panel, epsilon in zip(panels, BUDGETS, strict=True):
            for name, (colour, dashes) in styles.items():
                shares = [by_people[people][k, limit, epsilon][name] for limit in LIMITS]
                panel.plot(LIMITS, shares, color=colour, linestyle=dashes, linewidth=2, marker="o", label=name)
            panel.set(xscale="log", ylim=(-4, 104), xlabel="l")
            panel.set_xticks(LIMITS, [str(limit) for limit in LIMITS])
            panel.minorticks_off()
            panel.set_title(f"epsilon = {epsilon}", fontsize=11)
        panels[0].set_ylabel(f"% of the true top {k}")
        title = f"What is released with {people:,} people, where l items of each count"
        panel.figure.suptitle(title, x=0.01, horizontalalignment="left", weight="bold")
        panel.figure.legend(*panel.get_legend_handles_labels(), loc="outside lower left", ncols=4)


def main() -> None:
    """Print, and draw where a folder is given."""
    if OPENDP not in list_methods():
        print("OpenDP is not here (pip install 'discreet[opendp]'): its column is left out.\n")
    by_people = {people: measure_shares(people) for people in PEOPLE}
    print(f"Each with the l that suits it best:\n\n{format_best(by_people)}\n")
    print(f"How many people an item needs at epsilon 1:\n\n{format_thresholds()}\n")
    for people, shares in by_people.items():
        print(f"With {people:,} people:\n\n{format_shares(shares)}\n")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), by_people)


if __name__ == "__main__":
    main()
