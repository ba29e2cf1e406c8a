"""The tables and the picture of the page "Discovery compared": which share of the true top-k is found and released.

    python examples/discovery_compared.py            prints the tables, as Markdown
    python examples/discovery_compared.py pictures   and draws pictures/discovery-compared.svg
    python tools/appendix.py discovery               writes them all into the pages

Events are made up by eight laws. All methods have the same epsilon and delta. `discreet` has its default bound l = 100
on the items of a person. Every other method, and Laplace noise, gets the bound l that suits it best, unknown
without looking at the data. OpenDP's `make_laplace_threshold` is the library itself where it is installed, and
`discreet` makes its own draws. The others are their formulas in plain floats. `discovery_split.py` fits the part of
epsilon for discovery on seven of the laws and two with groups.

All draws but OpenDP's have a seed. It takes a few minutes on two cores.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import erfc, exp, expm1, log, log1p, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

import discreet
from discreet.mechanisms.adaptive_discovery import HIDDEN_BEYOND, MOST_SHARED, SHARE_STEPS
from discreet.mechanisms.partition_selection import PartitionSelection
from discreet.mechanisms.weighted_discovery import WEIGHT_STEPS, weigh_items
from discreet.release.discovery_request import find_items
from discreet.release.request import Randomness
from discreet.sources.discovered import FoundItems

sys.path.append(str(Path(__file__).parent / "gallery"))
from picture import DASHES, TONES, drawing

DELTA = "1e-8"
PEOPLE = (5_000, 20_000, 100_000)
SIZES = (10, 50)
SEEDS, DRAWS = (18, 19, 20, 21), 4
"""The seeds of the tables of each law, and how often each method draws from each of them."""
LIMITS = (1, 3, 10, 30, 100)
BUDGETS = ("0.3", "1", "3")
ITEMS, MOST = 20_000, 1_000

Cell = tuple[str, int, int, str]
"""The law, the number of people, k and epsilon."""
Shares = dict[Cell, dict[str, int]]
"""For each method the share of the true top-k that it releases in the mean, in whole percents."""
Errors = dict[Cell, dict[str, float]]
"""The standard errors of these means, in points, from those of single tables."""


@dataclass(frozen=True)
class Law:
    """A law of events.

    Attributes
    ----------
    sizes
        Draws the number of items of each person.
    fame
        The popularity of each item.
    groups
        The number of groups; each touch is in one of them, by chance.
    has_tastes
        True if people of 30 items or more prefer other items than the rest.
    has_hit
        True if all people of one item have the same one.
    """

    sizes: Callable[[np.random.Generator, int], np.ndarray]
    fame: np.ndarray
    groups: int = 1
    has_tastes: bool = False
    has_hit: bool = False


def draw_power(most: int, exponent: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Return a law of sizes from 1 to `most`, each with a chance in proportion to its power."""
    often = np.arange(1.0, most + 1) ** -exponent
    return lambda rng, people: rng.choice(np.arange(1, most + 1), people, p=often / often.sum())


def draw_lognormal(rng: np.random.Generator, people: int) -> np.ndarray:
    """Draw sizes with a logarithm of mean 1.5 and deviation 1.3, rounded up."""
    return np.minimum(np.ceil(np.exp(rng.normal(1.5, 1.3, people))), MOST).astype(np.int64)


def draw_two_kinds(rng: np.random.Generator, people: int) -> np.ndarray:
    """Draw 30 to 199 items for three people in ten, and 1 to 4 for the others."""
    return np.where(rng.random(people) < 0.3, rng.integers(30, 200, people), rng.integers(1, 5, people))


def draw_one_or_many(rng: np.random.Generator, people: int) -> np.ndarray:
    """Draw 30 items for one person in five, and one for the others."""
    return np.where(rng.random(people) < 0.2, 30, 1)


def zipf(exponent: float, shift: float = 0.0) -> np.ndarray:
    """Return the popularity of the items by the law of Zipf, or of Zipf and Mandelbrot."""
    return (np.arange(1.0, ITEMS + 1) + shift) ** -exponent


FITTED = {
    "searches": Law(draw_power(MOST, 1.5), zipf(1)),
    "few items": Law(draw_power(10, 1.5), zipf(1)),
    "one item": Law(draw_power(1, 1), zipf(1)),
    "steep": Law(draw_power(300, 1.5), zipf(1.5)),
    "flat": Law(draw_power(MOST, 1.2), zipf(0.6)),
    "months": Law(draw_power(MOST, 1.5), zipf(1), groups=12),
}
"""The laws on which the part of epsilon for discovery was fitted."""

OTHERS = {
    "lognormal": Law(draw_lognormal, zipf(1.2, 30)),
    "tastes": Law(draw_two_kinds, zipf(1), has_tastes=True),
    "lands": Law(draw_power(300, 1.3), zipf(1.1, 5), groups=4),
}
"""The laws on which it was checked."""

HIT = {"one hit": Law(draw_one_or_many, zipf(0.8, 60)[:300], has_hit=True)}
"""A law that misleads the choice: one person in five has 30 of 300 items, and the others have the most popular one."""

LAWS = FITTED | OTHERS | HIT
COMPARED = [name for name, law in LAWS.items() if law.groups == 1]
"""The laws without groups, on which the methods are compared."""


@dataclass(frozen=True)
class Events:
    """Pairs of a person and an item, sorted by person. Each group has items of its own."""

    person: np.ndarray
    item: np.ndarray
    groups: int = 1

    def count_people(self) -> np.ndarray:
        """Return how many people touched each item."""
        return np.bincount(self.item, minlength=ITEMS * self.groups)

    def bound(self, limit: int, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many people count for each item, and their weights, if `limit` items of each count in a group.

        The items that come first in `order`, random numbers, count: those of a smaller limit are among them.
        """
        within = self.person * self.groups + self.item // ITEMS
        sort = np.lexsort((order, within))
        chosen = sort[number_within(within[sort]) < limit]
        person, item = self.person[chosen], self.item[chosen]
        sizes, cells = np.bincount(person)[person], ITEMS * self.groups
        weights = np.array([0, *map(weigh_items, range(1, int(sizes.max()) + 1))])[sizes]
        return np.bincount(item, minlength=cells), np.bincount(item, weights, minlength=cells).astype(np.int64)

    def count_votes(self, order: np.ndarray) -> np.ndarray:
        """Return the votes of each item in steps: up to three items of each person, the first in `order`, share one."""
        sort = np.lexsort((order, self.person))
        chosen = sort[number_within(self.person[sort]) < MOST_SHARED]
        steps = SHARE_STEPS // np.bincount(self.person[chosen])[self.person[chosen]]
        return np.bincount(self.item[chosen], steps, minlength=ITEMS * self.groups).astype(np.int64)


def number_within(groups: np.ndarray) -> np.ndarray:
    """Return 0, 1, 2 and so on within each run of equal groups."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def make_events(name: str, people: int, seed: int = 18) -> Events:
    """Return events by a law: each person has items that are chosen one after the other by popularity."""
    law, rng = LAWS[name], np.random.default_rng(seed)
    wanted = law.sizes(rng, people)
    # Three times as many as needed: one who draws an item again draws another.
    person = np.repeat(np.arange(people), 3 * wanted)
    fame = np.cumsum(law.fame)
    item = np.minimum(np.searchsorted(fame, rng.random(len(person)) * fame[-1]), ITEMS - 1)
    if law.has_tastes:
        other = np.arange(ITEMS)
        other[:2000] = rng.permutation(2000)
        item = np.where((wanted >= 30)[person], other[item], item)
    if law.has_hit:
        item = np.where((wanted == 1)[person], 0, item)
    first = np.sort(np.unique(person * ITEMS + item, return_index=True)[1])
    person, item = person[first], item[first]
    counts = number_within(person) < wanted[person]
    person, item = person[counts], item[counts]
    return Events(person, item + ITEMS * rng.integers(0, law.groups, len(item)), law.groups)


# The methods.


def delta_of_one(delta: float, limit: int) -> float:
    """Return the chance with which each of l items that one person alone has may be released."""
    return -expm1(log1p(-delta) / limit)


@cache
def laplace_threshold(limit: int, epsilon: float) -> tuple[float, float]:
    """Return the scale of Laplace noise on counts, and the threshold."""
    scale = limit / epsilon
    return scale, 1.0 - scale * log(2.0 * delta_of_one(float(DELTA), limit))


@cache
def gaussian_threshold(limit: int, epsilon: float) -> tuple[float, float]:
    """Return the same for Gaussian noise, with half of delta for each: Google's `GaussianPartitionSelection`."""
    half = float(DELTA) / 2.0
    deviation = gaussian_deviation(sqrt(limit), epsilon, half)
    return deviation, 1.0 - deviation * NormalDist().inv_cdf(delta_of_one(half, limit))


@cache
def weighted_threshold(limit: int, epsilon: float, delta: float = float(DELTA)) -> tuple[float, float]:
    """Return the same for weights of 1/sqrt(m), by Gopi et al. (2020) and Swanberg et al. (2023)."""
    deviation = gaussian_deviation(1.0, epsilon, delta / 2.0)
    alone = (
        1.0 / sqrt(t) - deviation * NormalDist().inv_cdf(delta_of_one(delta / 2.0, t)) for t in range(1, limit + 1)
    )
    return deviation, max(alone)


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


def peeling_rate(k: int, epsilon: float, delta: float) -> float:
    """Return the epsilon of each of k picks by the exponential mechanism, by the better of two compositions.

    One is the sum. The other is e^2 / 8 zCDP for each pick (Cesar and Rogers, 2021), and epsilon = rho + 2 sqrt(rho
    log(1/delta)) for all.
    """
    root = sqrt(log(1.0 / delta) + epsilon) - sqrt(log(1.0 / delta))
    return max(epsilon / k, root * sqrt(8.0 / k))


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
    """Return OpenDP's measurement of counts by item, for people who change l counts by 1 each."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    metric = dp.l01inf_distance(dp.absolute_distance(T="i64"))
    return dp.m.make_laplace_threshold(counts, metric, scale=scale, threshold=threshold)


@dataclass(frozen=True)
class Table:
    """The input of all methods from one table: bounded counts, sums of weights, and all people of each item.

    `votes` are sums of votes in steps, where up to three items of each person share one.
    """

    counts: np.ndarray
    weights: np.ndarray
    people: np.ndarray
    limit: int
    votes: np.ndarray


@dataclass(frozen=True)
class Snapshot:
    """The sums by item that `discreet` reads of a table."""

    table: Table
    totals: np.ndarray

    def runs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the distinct sums above 0 in descending order, and the number of items of each."""
        values, items = np.unique(self.totals[self.totals > 0], return_counts=True)
        return [(values[::-1], items[::-1])]

    def items(self, kept: list[np.ndarray]) -> list[FoundItems]:
        """Return the items at some ranks, and their people."""
        ranked = np.argsort(-self.totals, kind="stable")[kept[0]]
        return [FoundItems(ranked.tolist(), self.table.people[ranked].tolist())]

    def count_hidden(self) -> int:
        """Return the number for the choice of a method."""
        hidden = SHARE_STEPS * self.table.counts - (HIDDEN_BEYOND + 1) * self.table.votes
        return max(0, -int(-hidden.max() // SHARE_STEPS))

    def take_shares(self) -> Snapshot:
        """Return the snapshot of the sums of votes."""
        return replace(self, totals=self.table.votes)


def release_opendp(table: Table, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Release the largest counts above the threshold, by OpenDP, which draws with bits of its own.

    It takes microseconds for each item, so items that are 15 scales below the threshold are left out: each would be
    released once in three million draws.
    """
    scale, threshold = opendp_threshold(table.limit, epsilon)
    near = np.flatnonzero(table.counts > max(0.0, threshold - 15.0 * scale))
    noisy: dict[int, int] = make_opendp(scale, threshold)(
        dict(zip(near.tolist(), table.counts[near].tolist(), strict=True))
    )
    return np.array(sorted(noisy, key=lambda item: -noisy[item])[:k], np.int64)


def release_tumult(table: Table, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Find items at half of epsilon, and release the largest counts of those found with noise at the other half."""
    scale, threshold = laplace_threshold(table.limit, epsilon / 2.0)
    noisy = table.counts + rng.laplace(0.0, scale, len(table.counts))
    again = table.counts + rng.laplace(0.0, scale, len(table.counts))
    return rank_above(table.counts, noisy >= threshold, again)[:k]


def release_gaussian(table: Table, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Release the largest counts with Gaussian noise above the threshold."""
    deviation, threshold = gaussian_threshold(table.limit, epsilon)
    noisy = table.counts + rng.normal(0.0, deviation, len(table.counts))
    return rank_above(table.counts, noisy >= threshold, noisy)[:k]


def release_weighted(table: Table, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Release the largest sums of weights with Gaussian noise above the threshold."""
    deviation, threshold = weighted_threshold(table.limit, epsilon)
    noisy = table.weights / WEIGHT_STEPS + rng.normal(0.0, deviation, len(table.weights))
    return rank_above(table.weights, noisy >= threshold, noisy)[:k]


def release_peeled(table: Table, k: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Find items by weights at half of epsilon and delta, and pick k of them by all of their people at the rest."""
    deviation, threshold = weighted_threshold(table.limit, epsilon / 2.0, float(DELTA) / 2.0)
    noisy = table.weights / WEIGHT_STEPS + rng.normal(0.0, deviation, len(table.weights))
    rate = peeling_rate(k, epsilon / 2.0, float(DELTA) / 2.0)
    return rank_above(table.weights, noisy >= threshold, table.people + rng.gumbel(0.0, 1.0 / rate, len(noisy)))[:k]


def rank_above(counts: np.ndarray, is_kept: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """Return the kept items that count for somebody, the largest noisy number first."""
    kept = np.flatnonzero((counts > 0) & is_kept)
    return kept[np.argsort(-noisy[kept])]


@cache
def plan_ours(method: str, limit: int, k: int, epsilon: str) -> PartitionSelection:
    """Return how `discreet` finds items, with its default part of epsilon."""
    return discreet.discovered(DELTA, limit, method=method).plan(k, epsilon)


def release_ours(table: Table, k: int, epsilon: str, method: str, bits: random.Random) -> np.ndarray:
    """Release as `top_k` does: items are found by counts or weights, and selected by all of their people."""
    found = plan_ours(method, table.limit, k, epsilon)
    snapshot = Snapshot(table, table.counts if method == "laplace" else table.weights)
    (kept_items,), _ = find_items(snapshot, found, k, Randomness.of(bits))
    kept = np.array(kept_items.items, np.int64)
    if len(kept) <= k:
        return kept
    rest = discreet.privacy.positive(epsilon, "epsilon") - found.epsilon
    return kept[discreet.top_k(table.people[kept], k, rest, rng=bits).items]


OPENDP, OURS, LAPLACE, GAUSSIAN = "OpenDP", "discreet", "discreet, laplace", "discreet, gaussian"
DEFAULTS = {OURS: "auto", GAUSSIAN: "gaussian"}
"""The methods of `discreet` that have the default bound."""
RELEASES = {
    OPENDP: release_opendp,
    "Tumult": release_tumult,
    "PipelineDP": release_gaussian,
    "weighted": release_weighted,
    "WGM, peeling": release_peeled,
}


def list_methods() -> list[str]:
    """Return the methods that are here; ours are the last."""
    others = [name for name in RELEASES if name != OPENDP or importlib.util.find_spec("opendp") is not None]
    return [*others, LAPLACE, GAUSSIAN, OURS]


# The figures.


def measure_shares(name: str, people: int, seeds: Sequence[int] = SEEDS, draws: int = DRAWS) -> tuple[Shares, Errors]:
    """Return the share of the true top-k that each method releases in the mean, for each k and epsilon.

    Every method but `DEFAULTS` has the l that suits it best in the mean of all tables.
    """
    hits: dict[tuple[int, str, str, int], np.ndarray] = defaultdict(lambda: np.zeros(len(seeds)))
    for place, seed in enumerate(seeds):
        events, rng, bits = make_events(name, people, seed), np.random.default_rng([people, seed]), random.Random(seed)
        touched, order = events.count_people(), rng.random(len(events.person))
        votes = events.count_votes(order)
        for limit in LIMITS:
            table = Table(*events.bound(limit, order), touched, limit, votes)
            for k, epsilon, method, _ in product(SIZES, BUDGETS, list_methods(), range(draws)):
                if method in RELEASES:
                    released = RELEASES[method](table, k, float(epsilon), rng)
                elif method in DEFAULTS and limit == LIMITS[-1]:
                    released = release_ours(table, k, epsilon, DEFAULTS[method], bits)
                elif method == LAPLACE:
                    released = release_ours(table, k, epsilon, "laplace", bits)
                else:
                    continue
                hits[k, epsilon, method, limit][place] += 100 * count_best(touched, k, released) / (k * draws)
    shares, errors = Shares(), Errors()
    for k, epsilon in product(SIZES, BUDGETS):
        best = {
            method: max((hits[k, epsilon, method, limit] for limit in LIMITS), key=np.mean) for method in list_methods()
        }
        cell = name, people, k, epsilon
        shares[cell] = {method: round(found.mean()) for method, found in best.items()}
        errors[cell] = {method: float(found.std(ddof=1)) / sqrt(len(seeds)) for method, found in best.items()}
    return shares, errors


def measure() -> tuple[Shares, Errors]:
    """Return the shares on all laws, and their standard errors."""
    shares, errors = Shares(), Errors()
    with ProcessPoolExecutor(2) as pool:
        for found, spread in pool.map(measure_shares, *zip(*product(COMPARED, PEOPLE), strict=True)):
            shares |= found
            errors |= spread
    return shares, errors


def count_best(people: np.ndarray, k: int, released: np.ndarray) -> int:
    """Return how many released items are in a true top-k; items of as many people as the last one are."""
    least = np.sort(people)[-k]
    return min(k, int((people[released] >= least).sum()))


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def mark_best(shares: list[int]) -> list[str]:
    """Return percents, the largest in bold unless all are equal."""
    best = max(shares) if len(set(shares)) > 1 else None
    return [f"**{share}%**" if share == best else f"{share}%" for share in shares]


def format_shares(shares: Shares) -> str:
    """Return a row for each cell in which not all methods release the same."""
    rows = [
        [cell[0], f"{cell[1]:,}", str(cell[2]), cell[3], *mark_best(list(row.values()))]
        for cell, row in shares.items()
        if len(set(row.values())) > 1
    ]
    return format_table(["law", "people", "k", "epsilon", *next(iter(shares.values()))], rows)


def format_usual(shares: Shares) -> str:
    """Return a row for each law, with 20,000 people, k = 50 and epsilon 1."""
    rows = [[name, *mark_best(list(shares[name, 20_000, 50, "1"].values()))] for name in COMPARED]
    return format_table(["law", *next(iter(shares.values()))], rows)


def format_errors(errors: Errors) -> str:
    """Return the standard errors for each law, of 20,000 people, k = 50 and epsilon 1, and the largest of all cells."""
    rows = [[name, *(f"{error:.1f}" for error in errors[name, 20_000, 50, "1"].values())] for name in COMPARED]
    largest = [f"{max(row[method] for row in errors.values()):.1f}" for method in errors[next(iter(errors))]]
    return format_table(["law", *errors[next(iter(errors))]], [*rows, ["largest of all cells", *largest]])


def format_behind(shares: Shares) -> str:
    """Return how far each method is behind the best one: how often by at most 3 points, in the mean, and at most."""
    rows = []
    for method in next(iter(shares.values())):
        behind = {cell: max(row.values()) - row[method] for cell, row in shares.items()}
        worst = max(behind, key=behind.__getitem__)
        law, people, k, epsilon = worst
        near, mean = sum(each <= 3 for each in behind.values()), sum(behind.values()) / len(behind)
        where = f"{law}, {people:,} people, k = {k}, epsilon {epsilon}"
        rows.append([method, f"{near} of {len(behind)}", f"{mean:.0f}", f"{behind[worst]} ({where})"])
    return format_table(["method", "at most 3 points behind", "behind in the mean", "behind at most"], rows)


def draw(folder: Path, shares: Shares) -> None:
    """Draw the share of the true top 50 at epsilon 1 against the number of people, a panel for each of some laws."""
    shown, laws = (OURS, "WGM, peeling", "PipelineDP", "Tumult"), ("searches", "few items", "flat", "tastes")
    styles = dict(zip(shown, zip(TONES, DASHES, strict=True), strict=True))
    with drawing(folder, "discovery-compared", height=3.6, columns=len(laws)) as panels:
        for panel, law in zip(panels, laws, strict=True):
            for name, (colour, dashes) in styles.items():
                heights = [shares[law, people, 50, "1"][name] for people in PEOPLE]
                panel.plot(PEOPLE, heights, color=colour, linestyle=dashes, linewidth=2, marker="o", label=name)
            panel.set(xscale="log", ylim=(-4, 104), xlabel="people")
            panel.set_xticks(PEOPLE, [f"{people // 1000}k" for people in PEOPLE])
            panel.minorticks_off()
            panel.set_title(law, fontsize=11)
        panels[0].set_ylabel("% of the true top 50")
        title = "What is released at epsilon 1, for four laws of events"
        panel.figure.suptitle(title, x=0.01, horizontalalignment="left", weight="bold")
        panel.figure.legend(*panel.get_legend_handles_labels(), loc="outside lower left", ncols=4)


def main() -> None:
    """Print, and draw where a folder is given."""
    if OPENDP not in list_methods():
        print("OpenDP is not here (pip install 'discreet[opendp]'): its column is left out.\n")
    shares, errors = measure()
    print(f"With 20,000 people, k = 50 and epsilon 1:\n\n{format_usual(shares)}\n")
    print(f"In all cells:\n\n{format_behind(shares)}\n")
    print(f"All figures:\n\n{format_shares(shares)}\n")
    print(f"Standard errors with 20,000 people, k = 50 and epsilon 1, in points:\n\n{format_errors(errors)}\n")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), shares)


if __name__ == "__main__":
    main()
