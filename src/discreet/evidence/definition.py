"""Compute the law of every mechanism from its definition: the second implementation that `verify` and `audit` judge by.

This module imports nothing of the library and shares no formula with it. It lists every subset or sequence, computes
its value as the definition says, and finds the probability of winning by a sum (Gumbel) or by Gauss-Legendre
integration over the value of the winner, between the kinks of the integrand, with a relative error below 1e-11. Scores
are exact and in any order, outcomes are tuples of positions, laws hold log probabilities, and noises are in standard
form.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from hashlib import md5
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Outcome = tuple[Any, ...]
Law = dict[Outcome, float]
Scores = Sequence[Fraction | int]
Definition = Callable[[dict[str, Any], Scores, int, Fraction, Fraction], Law]
"""A function of name and parameters, scores, k, the cost of one unit of loss, and the sensitivity, to a law."""

ValueLaw = dict[tuple[Outcome, Outcome], float]
"""The log probability of an order of items with their values, in steps."""

Touch = tuple[str, int, str]
"""A row: a user, a group and an item."""

Numbers = dict[str, tuple[int, int]]
"""For each item the number of users for whom it counts, or their weights, and the number of users who touched it."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 45.0
"""Integrals and sums of tails end this far from every kink.

An integrand is flat or exponential there, and the remainder of an exponential is below exp(-45) = 3e-20.
"""

_CORE_GAMMA = Fraction(3, 4)
"""The gamma of the canonical mechanism that draws a core."""


def law(
    mechanism: dict[str, Any],
    scores: Scores,
    k: int,
    epsilon: Fraction | int,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
    *,
    as_sets: bool = False,
    items: int | None = None,
) -> Law:
    """Return the log probability of every outcome of a mechanism, given by its name and parameters.

    A set is a tuple of positions in ascending order. A sequence is a tuple in released order; `as_sets` drops the
    order. If a mechanism chooses between candidates, the name of the chosen one comes first. An added user moves each
    score by a number in [-down, up], and at most `items` of the scores.
    """
    definitions = SET_DEFINITIONS if as_sets else DEFINITIONS
    if mechanism["name"] not in definitions:
        raise ValueError(f"no definition of {'the sets of ' if as_sets else ''}{mechanism['name']!r}")
    if mechanism.get("noise", "gumbel") not in LOG_PDF:
        raise ValueError(f"no definition of {mechanism['noise']!r} noise")
    s = scale(epsilon, down, up, adjacency)
    if mechanism["name"] == "histogram":
        mechanism = mechanism | {"rate": histogram_rate(epsilon, len(scores), down, up, adjacency, items)}
    return definitions[mechanism["name"]](mechanism, scores, k, s, Fraction(epsilon) / (2 * s))


DEFINITIONS: dict[str, Definition] = {
    "canonical": lambda given, scores, k, s, delta: canonical(
        scores, k, s, Fraction(given["gamma"]), given["noise"], delta if given["ceil"] else None
    ),
    "one-shot": lambda given, scores, k, s, _: oneshot(scores, k, s, given["noise"]),
    "peeling": lambda given, scores, k, s, _: peeling(scores, k, s, given["noise"]),
    "joint": lambda _, scores, k, s, __: joint(scores, k, s),
    # One-shot adds noise to scores times s/k.
    "histogram": lambda given, scores, k, _, __: oneshot(scores, k, k * given["rate"], "laplace"),
    "core": lambda given, scores, k, s, _: core(scores, k, s, Fraction(given["precision"]), given["otherwise"]),
}
"""The mechanisms by name."""

SET_DEFINITIONS: dict[str, Definition] = {
    "one-shot": lambda given, scores, k, s, _: oneshot_sets(scores, k, s, given["noise"]),
    "histogram": lambda given, scores, k, _, __: oneshot_sets(scores, k, k * given["rate"], "laplace"),
}
"""The laws without order of mechanisms whose order is not defined for every k."""


# The logarithm of the density f of each noise.
LOG_PDF: dict[str, Callable[[Array], Array]] = {
    "gumbel": lambda v: -v - np.exp(-v),
    "exponential": lambda v: np.where(v >= 0.0, -v, -np.inf),
    "laplace": lambda v: -np.abs(v) - math.log(2.0),
    "logistic": lambda v: -np.abs(v) - 2.0 * np.log1p(np.exp(-np.abs(v))),
    "half-logistic": lambda v: np.where(v >= 0.0, math.log(2.0) - v - 2.0 * np.log1p(np.exp(-np.abs(v))), -np.inf),
}


# The logarithms of F, the distribution function of each noise, and of 1 - F.
LOG_CDF: dict[str, Callable[[Array], Array]] = {
    "gumbel": lambda v: -np.exp(-v),
    "exponential": lambda v: np.where(v > 0.0, np.log(-np.expm1(-np.maximum(v, 0.0))), -np.inf),
    "laplace": lambda v: np.where(v < 0.0, v - math.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(v)))),
    "logistic": lambda v: -np.logaddexp(0.0, -v),
    "half-logistic": lambda v: np.where(v > 0.0, np.log(np.tanh(np.maximum(v, 0.0) / 2.0)), -np.inf),
}

LOG_ABOVE: dict[str, Callable[[Array], Array]] = {
    "gumbel": lambda v: np.log(-np.expm1(-np.exp(-v))),
    "exponential": lambda v: -np.maximum(v, 0.0),
    "laplace": lambda v: LOG_CDF["laplace"](-v),
    "logistic": lambda v: -np.logaddexp(0.0, v),
    "half-logistic": lambda v: math.log(2.0) - np.logaddexp(0.0, np.maximum(v, 0.0)),
}


def define_noise(
    name: str, log_pdf: Callable[[Array], Array], log_cdf: Callable[[Array], Array], log_above: Callable[[Array], Array]
) -> None:
    """Add the definition of a noise: the logarithms of f, F and 1 - F, which may have a kink at zero only."""
    LOG_PDF[name], LOG_CDF[name], LOG_ABOVE[name] = log_pdf, log_cdf, log_above
    _winner_logs.cache_clear()


def scale(
    epsilon: Fraction | int,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
) -> Fraction:
    """Return the cost of one unit of loss: epsilon over the width of the changes, or twice the width for swaps."""
    return Fraction(epsilon) / ((down + up) * (1 if adjacency == "add-remove" else 2))


def canonical(
    scores: Scores, k: int, s: Fraction, gamma: Fraction, noise: str = "gumbel", step: Fraction | None = None
) -> Law:
    """Return the log probability of every k-subset; losses are rounded up to multiples of `step`, if given."""
    outcomes = subsets(scores, k)
    losses = [canonical_loss(scores, y, gamma) for y in outcomes]
    if step is not None:
        losses = [math.ceil(loss / step) * step for loss in losses]
    return dict(zip(outcomes, winner_logs([-s * loss for loss in losses], noise), strict=True))


def canonical_loss(scores: Scores, subset: Sequence[int], gamma: Fraction) -> Fraction:
    """Return (1-gamma) max(M, m) - gamma m, with m the smallest score inside and M the largest outside."""
    inside = min(scores[i] for i in subset)
    outside = [scores[i] for i in range(len(scores)) if i not in subset]
    largest = max(outside) if outside else inside
    return (1 - gamma) * max(largest, inside) - gamma * inside


def joint(scores: Scores, k: int, s: Fraction) -> Law:
    """Return the log probability of every k-sequence."""
    outcomes = sequences(scores, k)
    return dict(zip(outcomes, winner_logs([-s * joint_loss(scores, y) / 2 for y in outcomes], "gumbel"), strict=True))


def joint_loss(scores: Scores, sequence: Sequence[int]) -> Fraction:
    """Return the largest excess of the i-th largest score over the score of the i-th item."""
    ordered = sorted(scores, reverse=True)
    return Fraction(max(ordered[i] - scores[j] for i, j in enumerate(sequence)))


def peeling(scores: Scores, k: int, s: Fraction, noise: str) -> Law:
    """Return the log probability of every k-sequence, by k rounds of one winner each."""
    result: Law = {(): 0.0}
    rounds: dict[tuple[Fraction, ...], list[float]] = {}
    for _ in range(k):
        longer: Law = {}
        for taken, log_probability in result.items():
            left = [i for i in range(len(scores)) if i not in taken]
            values = tuple(s * scores[i] / k for i in left)
            if values not in rounds:
                rounds[values] = winner_logs(values, noise)
            for i, chance in zip(left, rounds[values], strict=True):
                longer[(*taken, i)] = log_probability + chance
        result = longer
    return result


def oneshot(scores: Scores, k: int, s: Fraction, noise: str) -> Law:
    """Return the log probability of the sequence of the k largest values: for k of at most 2, or for Gumbel noise."""
    if k == 1 or noise == "gumbel":
        # The order of values with Gumbel noise has the law of successive winners (Yellott, 1977).
        return peeling(scores, k, s, noise)
    if k > 2:
        raise ValueError(f"no definition of the order of {k} items by one-shot with {noise} noise")
    values = _relative([s * score / k for score in scores])

    def chance(first: float, second: float) -> float:
        rest = Counter(values) - Counter([first, second])

        def log_density(v: Array) -> Array:
            return LOG_PDF[noise](v - second) + LOG_ABOVE[noise](v - first) + _all_below(rest, noise, v)

        return log_integral(log_density, values)

    chances = {pair: chance(*pair) for pair in set(itertools.permutations(values, 2))}
    return {(i, j): chances[values[i], values[j]] for i, j in sequences(scores, 2)}


def oneshot_sets(scores: Scores, k: int, s: Fraction, noise: str) -> Law:
    """Return the log probability of every set of the k largest values, for any k < d."""
    values = _relative([s * score / k for score in scores])

    def chance(inside: tuple[float, ...]) -> float:
        rest = Counter(values) - Counter(inside)

        def log_density(v: Array) -> Array:
            above = sum(LOG_ABOVE[noise](v - value) for value in inside)
            lasts = [
                math.log(n) + LOG_PDF[noise](v - value) + _all_below(rest - Counter([value]), noise, v)
                for value, n in rest.items()
            ]
            return np.asarray(above + np.logaddexp.reduce(lasts, axis=0))

        return log_integral(log_density, values)

    # Subsets of the same values are equally likely and share one integral.
    kinds = {y: tuple(sorted(values[i] for i in y)) for y in subsets(scores, k)}
    chances = {kind: chance(kind) for kind in set(kinds.values())}
    return {y: chances[kind] for y, kind in kinds.items()}


def core(scores: Scores, k: int, s: Fraction, precision: Fraction, otherwise: dict[str, Any] | None) -> Law:
    """Return the log probability of ("core" or "otherwise", *positions), with positions in ascending order."""
    share = find_share(k)
    rest = s * (1 - share)
    sizes = sorted({max(1, math.floor(Fraction(k) * Fraction(5, 6) ** i + Fraction(1, 2))) for i in range(13)})
    odds = [log_odds(scores, size, k, rest, precision) for size in sizes]
    # The running minimum from the smallest core up, less 1 / sigma. The fallback has infinite support.
    support = [math.inf, *(min(odds[: j + 1]) - float(1 / share) for j in range(len(odds))), -math.inf]
    utilities = [min(support[j], 0.0) + min(-support[j + 1], 0.0) for j in range(len(sizes) + 1)]
    weights = [math.exp(float(share / (2 * (1 - share))) * utility) for utility in utilities]
    result: Law = {}
    for size, weight in zip([None, *sizes], weights, strict=True):
        if weight > 0.0:
            said = "otherwise" if size is None else "core"
            if size is not None:
                law = canonical(scores, size, rest, _CORE_GAMMA)
            else:
                law = {(): 0.0} if otherwise is None else oneshot_sets(scores, k, rest, otherwise["noise"])
            for positions, log in law.items():
                result[said, *positions] = math.log(weight / sum(weights)) + log
    return result


def find_share(k: int) -> Fraction:
    """Return the largest n / 10000 of at most 0.12 and 0.1 (100/k)^0.3, and at least 1 / 10000."""
    n = min(1200, math.floor(1000 * (100 / k) ** 0.3) + 1)
    while n > 1 and Fraction(n, 1000) ** 10 > Fraction(100, k) ** 3:
        n -= 1
    return Fraction(n, 10_000)


def log_odds(scores: Scores, size: int, k: int, s: Fraction, precision: Fraction) -> float:
    """Return the log odds that a core is good, if every subset had the loss and quality of the middle of its box."""
    x = sorted(scores, reverse=True)
    # The best subset weighs 1.
    good, bad = [0.0], list[float]()
    for subset in itertools.combinations(range(len(x)), size):
        if subset == tuple(range(size)):
            continue
        missing, worst = min(set(range(size)) - set(subset)), subset[-1]
        first, last = find_box(size - 1 - missing, size - 1, 4)
        h = ((size - 1 - last) + (size - 1 - first)) // 2
        first, last = find_box(worst - size, len(x) - 1 - size, 2)
        t = ((size + first) + (size + last)) // 2
        # The loss of a subset that lacks rank h and has t as its worst, less that of the best subset.
        loss = (1 - _CORE_GAMMA) * x[h] - _CORE_GAMMA * x[t] - (1 - 2 * _CORE_GAMMA) * x[size - 1]
        (good if expect_right(size, k, h, t) >= precision * size else bad).append(-float(s * loss))
    return _log_sum(np.array(good)) - _log_sum(np.array(bad)) if bad else math.inf


def find_box(distance: int, largest: int, part: int) -> tuple[int, int]:
    """Return the first and the last distance of the box that holds a distance; it spans 1 + first // part distances."""
    first = 0
    while distance > first + first // part:
        first += 1 + first // part
    return first, min(first + first // part, largest)


def expect_right(size: int, k: int, h: int, t: int) -> Fraction:
    """Return the mean number of top-k members over all sets that miss rank h, have all before, and end at rank t."""
    others = list(itertools.combinations(range(h + 1, t), size - 1 - h))
    right = [sum(rank < k for rank in (*range(h), *some, t)) for some in others]
    return Fraction(sum(right), len(right))


def winner_logs(values: Sequence[Fraction], noise: str) -> list[float]:
    """Return the log probability of each value to be the largest after noise is added to all."""
    near = _relative(values)
    chances = _winner_logs(tuple(sorted(Counter(near).items())), noise)
    return [chances[value] for value in near]


@lru_cache(maxsize=1 << 14)
def _winner_logs(groups: tuple[tuple[float, int], ...], noise: str) -> dict[float, float]:
    """Return the log probability of one member of each group of equal values to be the largest."""
    count = Counter(dict(groups))
    if noise == "gumbel":
        total = _log_sum(np.array([value + math.log(n) for value, n in groups]))
        return {value: value - total for value in count}

    def chance(value: float) -> float:
        rest = count - Counter([value])
        return log_integral(lambda v: LOG_PDF[noise](v - value) + _all_below(rest, noise, v), count)

    return {value: chance(value) for value in count}


def _all_below(count: Counter[float], noise: str, v: Array) -> Array:
    """Return the log probability that all of some values stay below v."""
    return np.asarray(sum((n * LOG_CDF[noise](v - value) for value, n in count.items()), np.zeros_like(v)))


def _relative(values: Sequence[Fraction]) -> list[float]:
    """Return values relative to the largest; only differences matter."""
    largest = max(values)
    return [float(value - largest) for value in values]


def log_integral(
    log_density: Callable[[Array], Array], values: Iterable[float], between: tuple[float, float] | None = None
) -> float:
    """Return the log integral of a product of shifted noises, which has kinks at the shifts."""
    kinks = sorted(set(values))
    ends = [kinks[0] - _FAR, kinks[-1] + _FAR] if between is None else list(between)
    steps = np.arange(-_FAR, _FAR + 1.0)
    cuts = np.unique(np.concatenate([ends, kinks, *(kink + steps for kink in kinks)]))
    cuts = cuts[(cuts >= ends[0]) & (cuts <= ends[1])]
    half = np.diff(cuts)[:, None] / 2.0
    with np.errstate(divide="ignore", over="ignore"):
        logs = log_density(cuts[:-1, None] + half * (1.0 + _NODES)) + np.log(half * _WEIGHTS)
    return _log_sum(logs)


def _log_sum(logs: Array) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def subsets(scores: Scores, k: int) -> list[Outcome]:
    """Return all sets of k positions."""
    return list(itertools.combinations(range(len(scores)), k))


def sequences(scores: Scores, k: int) -> list[Outcome]:
    """Return all sequences of k different positions."""
    return list(itertools.permutations(range(len(scores)), k))


def define_values(
    scores: Scores, k: int, rate: Fraction, steps: Sequence[int], grid: Fraction = Fraction(1)
) -> ValueLaw:
    """Return the log probability of every order of one or two items with each of some values, in steps of a grid.

    Every score has noise of density rate exp(-rate |x|) / 2, and its value is rounded to the nearest step.
    """
    if k > 2:
        raise ValueError(f"no definition of the values of {k} items")
    centres = [float(rate * score) for score in scores]
    halves = Fraction(-1, 2), Fraction(1, 2)
    ends = {step: tuple(float(rate * grid * (step + half)) for half in halves) for step in steps}
    law = {}
    for order in sequences(scores, k):
        rest = Counter(centre for i, centre in enumerate(centres) if i not in order)
        for values in itertools.combinations_with_replacement(sorted(steps, reverse=True), k):
            law[order, values] = _value_log([centres[i] for i in order], rest, [ends[value] for value in values])
    return law


def _value_log(centres: list[float], rest: Counter[float], parts: list[tuple[float, ...]]) -> float:
    """Return the log probability that one or two values lie in their intervals, in this order, with the rest below.

    The noises are independent. Given the last released value v, the rest lie below v, and the value before it lies
    above v and in its own interval.
    """
    low, high = parts[-1]

    def log_density(v: Array) -> Array:
        found = LOG_PDF["laplace"](v - centres[-1])
        for centre, n in rest.items():
            found = found + n * LOG_CDF["laplace"](v - centre)
        if len(centres) == 2:
            found = found + _laplace_log_mass(np.maximum(v, parts[0][0]) - centres[0], parts[0][1] - centres[0])
        return found

    return log_integral(log_density, [*centres, *rest], (low, high))


def _laplace_log_mass(low: Array, high: float) -> Array:
    """Return the log probability of Laplace noise between two numbers, `low` <= `high`."""
    top = np.full_like(low, high)
    # If both bounds are on one side of zero, the difference of the smaller tails loses no digits.
    near, far = np.where(low >= 0.0, low, -top), np.where(low >= 0.0, top, -low)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        one_side = -near + np.log(-np.expm1(near - far)) - math.log(2.0)
        around = np.log(1.0 - 0.5 * np.exp(np.minimum(low, 0.0)) - 0.5 * np.exp(-np.maximum(top, 0.0)))
    return np.asarray(np.where((low < 0.0) & (top > 0.0), around, one_side))


def discrete_laplace_log(steps: int, rate: Fraction) -> float:
    """Return the log probability that the noise of a count is `steps`, proportional to exp(-rate |steps|)."""
    # The sum of exp(-rate |n|) over all integers n is (1 + e^-rate) / (1 - e^-rate).
    return -float(rate) * abs(steps) - math.log1p(math.exp(-rate)) + math.log(-math.expm1(-rate))


def counts_rate(
    epsilon: Fraction,
    k: int,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
    grid: Fraction = Fraction(1),
    per_user: int | None = None,
) -> Fraction:
    """Return epsilon over the most steps that one user can move k scores in all, by trying every user or swap."""
    most = max(
        sum(math.ceil(abs(change) / grid) for change in changes)
        for changes in _changes(k, down, up, adjacency, per_user)
    )
    return epsilon / most


def counts_rate_by_group(
    epsilon: Fraction,
    k: int,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
    per_user: int | None = None,
) -> Fraction:
    """Return the rate of counts by group; a swapped user may leave one group and join another."""
    whole = counts_rate(epsilon, k, down, up, adjacency, per_user=per_user)
    if adjacency == "add-remove":
        return whole
    return min(whole, counts_rate(epsilon / 2, k, down, up, "add-remove", per_user=per_user))


def histogram_rate(
    epsilon: Fraction | int, d: int, down: Fraction, up: Fraction, adjacency: str, per_user: int | None
) -> Fraction:
    """Return epsilon over the most that one user can move d scores in all, by trying every user or swap."""
    return Fraction(epsilon) / max(sum(map(abs, changes)) for changes in _changes(d, down, up, adjacency, per_user))


def _changes(
    k: int, down: Fraction, up: Fraction, adjacency: str, per_user: int | None
) -> Iterator[tuple[Fraction, ...]]:
    """Yield the extreme changes of k scores by one user, or by a swap of two users."""
    most = k if per_user is None else per_user
    users = [
        user
        for user in itertools.product({Fraction(0), -down, up}, repeat=k)
        if sum(part != 0 for part in user) <= most
    ]
    for user, other in itertools.product(users, users if adjacency == "swap" else [(Fraction(0),) * k]):
        yield tuple(new - gone for new, gone in zip(user, other, strict=True))


def lead(scores: Scores, subset: Sequence[int]) -> Fraction:
    """Return the largest score outside a subset minus the smallest score inside."""
    outside = [score for i, score in enumerate(scores) if i not in subset]
    return Fraction(max(outside) - min(scores[i] for i in subset))


def lead_of_found(scores: Mapping[str, int], released: Iterable[str]) -> int:
    """Return the lead under partition selection; an item that nobody touched scores 0, released or not."""
    inside = set(released)
    return max([0, *(n for item, n in scores.items() if item not in inside)]) - min(scores.get(i, 0) for i in inside)


def shortfall_log(steps: int, scores: Scores, subset: Sequence[int], rate: Fraction, grid: Fraction) -> float:
    """Return the log probability that the shortfall of a subset is `steps`: its lead, rounded once, and noise."""
    return discrete_laplace_log(steps - math.floor(lead(scores, subset) / grid + Fraction(1, 2)), rate)


def shortfall_rate(
    epsilon: Fraction,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
    grid: Fraction = Fraction(1),
) -> Fraction:
    """Return epsilon over the most steps that one user can move a lead, or two users one after the other in a swap.

    Every user is tried on three items of equal scores, of which one or two are released.
    """
    leads = [lead(user, y) for user in itertools.product((Fraction(0), -down, up), repeat=3) for y in ((0,), (0, 1))]
    most = max(math.ceil(abs(change) / grid) for change in leads)
    return epsilon / (most if adjacency == "add-remove" else most + most)


def shortfall_margins(rate: Fraction) -> tuple[int, int]:
    """Return the least q with P(N < -q) <= 5%, and the least q with P(|N| > q) <= 5%, by trying one after the other."""
    above, around = (next(q for q in itertools.count() if sides * upper_tail(rate, q + 1) <= 0.05) for sides in (1, 2))
    return above, around


@cache
def upper_tail(rate: Fraction, n: int) -> float:
    """Return the probability of noise of n or more, a sum of its symmetric law."""
    if n < 1:
        return 1.0 - upper_tail(rate, 1 - n)
    return math.fsum(math.exp(discrete_laplace_log(z, rate)) for z in range(n, n + math.ceil(_FAR / rate)))


def keep_chance(users: int, rate: Fraction, threshold: int) -> float:
    """Return the probability of keeping an item that counts for `users` users; it is 0 without users."""
    return upper_tail(rate, threshold - users) if users >= 1 else 0.0


def noise_rate(epsilon: Fraction, items: int, adjacency: str, groups: int) -> Fraction:
    """Return epsilon over the most counts that one user, or a swap of two, changes in all groups."""
    return epsilon / (items * groups * (2 if adjacency == "swap" else 1))


def least_threshold(epsilon: Fraction, delta: Fraction, items: int, adjacency: str, groups: int) -> int:
    """Return the least integer from 2 on that needs at most delta, by trying one after the other."""
    threshold = 2
    while needed_delta(threshold, epsilon, items, adjacency, groups) > delta:
        threshold += 1
    return threshold


def needed_delta(threshold: int, epsilon: Fraction, items: int, adjacency: str, groups: int) -> float:
    """Return the delta that a threshold needs in all groups, for items that only one user has."""
    chance = upper_tail(noise_rate(epsilon, items, adjacency, groups), threshold - 1)
    alone = -math.expm1(items * math.log1p(-chance))
    # A swap is a removal and an addition at half of epsilon each. The second multiplies the delta of the first by
    # exp(epsilon / 2).
    swapped = 1.0 + math.exp(epsilon / (2 * groups)) if adjacency == "swap" else 1.0
    return groups * swapped * alone


def gaussian_tail(x: float) -> float:
    """Return the probability that a standard normal variable is x or more."""
    return math.erfc(x / math.sqrt(2.0)) / 2.0


def gaussian_delta(sigma: float, epsilon: Fraction, adjacency: str) -> float:
    """Return the hockey-stick divergence of Gaussian noise on a vector that moves by 1 in L2, in a swap by sqrt(2)."""
    # The loss of N(0, s^2) against N(D, s^2) exceeds epsilon where the noise is below D/2 - epsilon s^2 / D.
    distance = math.sqrt(2.0) if adjacency == "swap" else 1.0
    edge = epsilon * sigma / distance
    half = distance / (2.0 * sigma)
    return gaussian_tail(edge - half) - math.exp(epsilon) * gaussian_tail(edge + half)


def least_sigma(epsilon: Fraction, delta: Fraction, adjacency: str) -> float:
    """Return the least standard deviation that needs at most half of delta for items that others have too."""
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon, adjacency) > delta / 2:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaussian_delta(middle, epsilon, adjacency) > delta / 2 else (low, middle)
    return high


def round_up_to_bits(number: float, bits: int) -> float:
    """Return the least float of so many bits that is not below a number."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.ceil(mantissa * 2**bits), exponent - bits)


def new_items_delta(delta: Fraction, adjacency: str) -> Fraction:
    """Return the part of delta for the items that one user alone has: a half, and in a swap a quarter for each user."""
    return delta / (4 if adjacency == "swap" else 2)


def least_weighted_threshold(sigma: float, delta: Fraction, pairs: int, adjacency: str) -> int:
    """Return the least threshold in 1024ths at which no t items of one user alone, t up to `pairs`, need more."""
    allowed = float(new_items_delta(delta, adjacency))
    needed = []
    for t in range(1, pairs + 1):
        # Each of t items may be kept with q, where 1 - (1 - q)^t is what is allowed.
        q = -math.expm1(math.log1p(-allowed) / t)
        needed.append(1.0 / math.sqrt(t) - sigma * NormalDist().inv_cdf(q))
    return math.ceil(1024 * max(needed))


def weighted_keep_chance(weight: int, sigma: float, threshold: int) -> float:
    """Return the probability of keeping an item whose weights add up to so many 1024ths; it is 0 without any."""
    return gaussian_tail((threshold - weight) / (1024 * sigma)) if weight >= 1 else 0.0


def hidden_users(people: Collection[tuple[Fraction, int]]) -> int:
    """Return the most users for whom an item counts, beyond three times the sum of its shares; part of one is one."""
    return max([0, *(math.ceil(users - 3 * votes) for votes, users in people)])


def choice_rate(epsilon: Fraction, adjacency: str) -> Fraction:
    """Return epsilon over the largest change of `hidden_users`: by two users, or under swap by three."""
    return epsilon / (3 if adjacency == "swap" else 2)


def choice_lead(hidden: int, epsilon: Fraction, adjacency: str) -> int:
    """Return the least noise with which shares are not taken: enough for four scales of it."""
    return math.ceil((12 if adjacency == "swap" else 8) / epsilon) - hidden


def value_tail(value: int, total: int, rate: Fraction) -> float:
    """Return P(n + Z + 1/2 >= value) for a sum n and Laplace noise Z, in steps; 0 for the sum 0."""
    missing = float(rate * (value - Fraction(1, 2) - total))
    if total < 1:
        return 0.0
    return math.exp(-missing) / 2.0 if missing > 0.0 else 1.0 - math.exp(missing) / 2.0


def least_shared_threshold(epsilon: Fraction, delta: Fraction, items: int, adjacency: str) -> int:
    """Return the least threshold in sixths of a vote that items of one user alone reach with at most delta.

    They are 1, 2 or 3, at most `items`, with equal shares of a vote. In a swap each of two users has half of delta.
    """
    sides = 2 if adjacency == "swap" else 1

    def any_kept(threshold: int, t: int) -> float:
        return -math.expm1(t * math.log1p(-value_tail(threshold, 6 // t, epsilon / (6 * sides))))

    alone = range(1, min(items, 3) + 1)
    return next(at for at in itertools.count(7) if all(any_kept(at, t) <= delta / sides for t in alone))


def order_items(who: str, items: Iterable[str], key: str) -> list[str]:
    """Return the items of a user by their hashes."""
    return sorted(items, key=lambda item: md5(f"{key}{who}/{item}".encode(), usedforsecurity=False).hexdigest()[:12])


def count_shares(touches: Iterable[tuple[str, str]], key: str, items: int) -> dict[str, tuple[Fraction, int]]:
    """Return for each item the sum of its shares, and the number of users for whom it counts.

    The `items` of a user with the least hashes count. The first three of them, or all if there are fewer, share a vote.
    """
    own: dict[str, set[str]] = defaultdict(set)
    for who, item in touches:
        own[who].add(item)
    votes, users = defaultdict[str, Fraction](Fraction), Counter[str]()
    for who, touched in own.items():
        counting = order_items(who, touched, key)[:items]
        users.update(counting)
        for item in counting[:3]:
            votes[item] += Fraction(1, len(counting[:3]))
    return {item: (votes[item], n) for item, n in users.items()}


def budget_for_discovery(part: Fraction, method: str, items: int, k: int, groups: int) -> Fraction:
    """Return the epsilon of a release that spends `part` on discovery by default.

    Laplace noise gets 1/4 + l/(4k) of the budget, and at most 1/2. Gaussian noise gets 3/4, and where k or the number g
    of groups is so large that this is above 1/2 of the budget plus 5/(k g), that.
    """
    if method == "laplace":
        return part / min(Fraction(1, 2), Fraction(1, 4) + Fraction(items, 4 * k))
    return max(part * Fraction(4, 3), 2 * (part - Fraction(5, k * groups)))


def count_people(
    touches: Iterable[Touch], items: int, key: str, groups: int, one_group: bool, is_weighted: bool = False
) -> list[Numbers]:
    """Return the numbers of each group. In each group the items of a user with the least hashes count.

    With `one_group` a user counts only in the group with most of the user's rows, the first of several. With
    `is_weighted` a user of whom m items count, in all groups, counts for 1/sqrt(m) in each, in 1024ths rounded down. An
    item that counts for nobody is there too, with 0 users.
    """
    rows: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for who, group, item in touches:
        rows[who].append((group, item))
    counting, touching = ([Counter[str]() for _ in range(groups)] for _ in range(2))
    for who, own in rows.items():
        sizes = Counter(group for group, _ in own)
        main = min(sizes, key=lambda group: (-sizes[group], group))
        chosen = list[tuple[int, str]]()
        for group in [main] if one_group else sizes:
            found = {item for at, item in own if at == group}
            touching[group].update(found)
            hashes = {item: md5(f"{key}{who}/{item}".encode(), usedforsecurity=False).hexdigest() for item in found}
            chosen += [(group, item) for item in sorted(hashes, key=lambda item: hashes[item][:12])[:items]]
        for group, item in chosen:
            counting[group][item] += int(1024 / math.sqrt(len(chosen)) + 1e-9) if is_weighted else 1
    return [
        {item: (n[item], users) for item, users in all_users.items()}
        for n, all_users in zip(counting, touching, strict=True)
    ]
