"""Every mechanism from its definition, enumerated: the second implementation that `verify` and `audit` judge by.

Nothing here is imported from the library, no formula is shared with it, and nothing of it is clever: every subset or
sequence is listed, its value computed as the definition says, and who wins is a sum (Gumbel) or a numerical integral
over the winner's value (Gauss and Legendre, between the kinks of the integrand, with a relative error below 1e-11).

Scores are exact and in any order; outcomes are tuples of positions, and laws are logarithms of probabilities. The
noises are in the standard parameterisation.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from hashlib import md5
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Outcome = tuple[Any, ...]
Law = dict[Outcome, float]
Scores = Sequence[Fraction | int]

# f of each noise, as logarithms.
LOG_PDF: dict[str, Callable[[Array], Array]] = {
    "gumbel": lambda v: -v - np.exp(-v),
    "exponential": lambda v: np.where(v >= 0.0, -v, -np.inf),
    "laplace": lambda v: -np.abs(v) - math.log(2.0),
    "logistic": lambda v: -np.abs(v) - 2.0 * np.log1p(np.exp(-np.abs(v))),
    "half-logistic": lambda v: np.where(v >= 0.0, math.log(2.0) - v - 2.0 * np.log1p(np.exp(-np.abs(v))), -np.inf),
}
# F of each noise, and 1 - F.
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
    """Adds the definition of a noise: the logarithms of f, of F and of 1 - F, whose only kink may be at zero."""
    LOG_PDF[name], LOG_CDF[name], LOG_ABOVE[name] = log_pdf, log_cdf, log_above
    _winner_logs.cache_clear()


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 45.0
"""So far from every kink an integrand is flat or exponential, and what is left of an exponential is below 3e-20."""


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
    """The log probability of every outcome of a mechanism, which is given by its name and parameters.

    A set is a tuple of positions in ascending order; a sequence is one in the order that is released, which `as_sets`
    leaves out; where a mechanism chooses between candidates, the word for the one it chose comes first. A user who is
    added moves a score by at least -down and at most up, and so many `items` at most.
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


Definition = Callable[[dict[str, Any], Scores, int, Fraction, Fraction], Law]
"""From name and parameters, scores, k, what one unit of loss costs, and the sensitivity, to the law."""

DEFINITIONS: dict[str, Definition] = {
    "canonical": lambda given, scores, k, s, delta: canonical(
        scores, k, s, Fraction(given["gamma"]), given["noise"], delta if given["ceil"] else None
    ),
    "one-shot": lambda given, scores, k, s, _: oneshot(scores, k, s, given["noise"]),
    "peeling": lambda given, scores, k, s, _: peeling(scores, k, s, given["noise"]),
    "joint": lambda _, scores, k, s, __: joint(scores, k, s),
    # One-shot adds noise to scores times s/k.
    "histogram": lambda given, scores, k, _, __: oneshot(scores, k, k * given["rate"], "laplace"),
}
"""The mechanisms by name; `discreet.evidence.definition`, which builds on this, adds its own."""

SET_DEFINITIONS: dict[str, Definition] = {
    "one-shot": lambda given, scores, k, s, _: oneshot_sets(scores, k, s, given["noise"]),
    "histogram": lambda given, scores, k, _, __: oneshot_sets(scores, k, k * given["rate"], "laplace"),
}
"""Those whose order is not defined for every k, without it."""


def scale(
    epsilon: Fraction | int,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
) -> Fraction:
    """What one unit of loss costs: epsilon over twice the half width, or twice the width where a user is replaced."""
    return Fraction(epsilon) / ((down + up) * (1 if adjacency == "add-remove" else 2))


def canonical(
    scores: Scores, k: int, s: Fraction, gamma: Fraction, noise: str = "gumbel", step: Fraction | None = None
) -> Law:
    """The log probability of every k-subset; losses are rounded up to multiples of `step`, if any."""
    outcomes = subsets(scores, k)
    losses = [canonical_loss(scores, y, gamma) for y in outcomes]
    if step is not None:
        losses = [math.ceil(loss / step) * step for loss in losses]
    return dict(zip(outcomes, winner_logs([-s * loss for loss in losses], noise), strict=True))


def canonical_loss(scores: Scores, subset: Sequence[int], gamma: Fraction) -> Fraction:
    """(1-gamma) max(M, m) - gamma m, with m the smallest score inside and M the largest outside."""
    inside = min(scores[i] for i in subset)
    outside = [scores[i] for i in range(len(scores)) if i not in subset]
    largest = max(outside) if outside else inside
    return (1 - gamma) * max(largest, inside) - gamma * inside


def joint(scores: Scores, k: int, s: Fraction) -> Law:
    """The log probability of every k-sequence."""
    outcomes = sequences(scores, k)
    return dict(zip(outcomes, winner_logs([-s * joint_loss(scores, y) / 2 for y in outcomes], "gumbel"), strict=True))


def joint_loss(scores: Scores, sequence: Sequence[int]) -> Fraction:
    """The most by which the i-th largest score exceeds that of the i-th item."""
    ordered = sorted(scores, reverse=True)
    return Fraction(max(ordered[i] - scores[j] for i, j in enumerate(sequence)))


def peeling(scores: Scores, k: int, s: Fraction, noise: str) -> Law:
    """The log probability of every k-sequence, by k rounds of one winner each."""
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
    """The log probability of every k-sequence of the k largest values: of at most two, or of any with Gumbel noise."""
    if k == 1 or noise == "gumbel":
        # The order of values with Gumbel noise is that of winners in turn (Yellott, 1977).
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
    """The log probability of every k-subset of the k largest values, for any k < d."""
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

    # Subsets of the same values are equally likely: one integral each is enough.
    kinds = {y: tuple(sorted(values[i] for i in y)) for y in subsets(scores, k)}
    chances = {kind: chance(kind) for kind in set(kinds.values())}
    return {y: chances[kind] for y, kind in kinds.items()}


def winner_logs(values: Sequence[Fraction], noise: str) -> list[float]:
    """The log chance of each value to be the largest after noise is added to all."""
    near = _relative(values)
    chances = _winner_logs(tuple(sorted(Counter(near).items())), noise)
    return [chances[value] for value in near]


@lru_cache(maxsize=1 << 14)
def _winner_logs(groups: tuple[tuple[float, int], ...], noise: str) -> dict[float, float]:
    """The log chance of one of each group of equal values; equal values are equally likely."""
    count = Counter(dict(groups))
    if noise == "gumbel":
        total = _log_sum(np.array([value + math.log(n) for value, n in groups]))
        return {value: value - total for value in count}

    def chance(value: float) -> float:
        rest = count - Counter([value])
        return log_integral(lambda v: LOG_PDF[noise](v - value) + _all_below(rest, noise, v), count)

    return {value: chance(value) for value in count}


def log_integral(
    log_density: Callable[[Array], Array], values: Iterable[float], between: tuple[float, float] | None = None
) -> float:
    """The log integral of a product of shifted noises; it has kinks where a shifted argument passes 0."""
    kinks = sorted(set(values))
    ends = [kinks[0] - _FAR, kinks[-1] + _FAR] if between is None else list(between)
    steps = np.arange(-_FAR, _FAR + 1.0)
    cuts = np.unique(np.concatenate([ends, kinks, *(kink + steps for kink in kinks)]))
    cuts = cuts[(cuts >= ends[0]) & (cuts <= ends[1])]
    half = np.diff(cuts)[:, None] / 2.0
    with np.errstate(divide="ignore", over="ignore"):
        logs = log_density(cuts[:-1, None] + half * (1.0 + _NODES)) + np.log(half * _WEIGHTS)
    return _log_sum(logs)


def discrete_laplace_log(steps: int, rate: Fraction) -> float:
    """The log probability that a count is off by so many steps: proportional to exp(-rate |steps|)."""
    # The sum of exp(-rate |n|) over all whole n is (1 + e^-rate) / (1 - e^-rate).
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
    """Epsilon over the most steps that one user can move k scores in all, by trying every user or every two."""
    most = max(
        sum(math.ceil(abs(change) / grid) for change in changes)
        for changes in _changes(k, down, up, adjacency, per_user)
    )
    return epsilon / most


def histogram_rate(
    epsilon: Fraction | int, d: int, down: Fraction, up: Fraction, adjacency: str, per_user: int | None
) -> Fraction:
    """Epsilon over the most that one user can move all d scores together, by trying every user or every two."""
    return Fraction(epsilon) / max(sum(map(abs, changes)) for changes in _changes(d, down, up, adjacency, per_user))


def _changes(
    k: int, down: Fraction, up: Fraction, adjacency: str, per_user: int | None
) -> Iterator[tuple[Fraction, ...]]:
    """What a user, or two of them, can do to k scores, as far as each goes."""
    most = k if per_user is None else per_user
    users = [
        user
        for user in itertools.product({Fraction(0), -down, up}, repeat=k)
        if sum(part != 0 for part in user) <= most
    ]
    for user, other in itertools.product(users, users if adjacency == "swap" else [(Fraction(0),) * k]):
        yield tuple(new - gone for new, gone in zip(user, other, strict=True))


def counts_rate_by_group(
    epsilon: Fraction,
    k: int,
    down: Fraction = Fraction(0),
    up: Fraction = Fraction(1),
    adjacency: str = "add-remove",
    per_user: int | None = None,
) -> Fraction:
    """The same where a user who is replaced can leave one group and come to another, which then share epsilon."""
    whole = counts_rate(epsilon, k, down, up, adjacency, per_user=per_user)
    if adjacency == "add-remove":
        return whole
    return min(whole, counts_rate(epsilon / 2, k, down, up, "add-remove", per_user=per_user))


def subsets(scores: Scores, k: int) -> list[Outcome]:
    """All sets of k positions."""
    return list(itertools.combinations(range(len(scores)), k))


def sequences(scores: Scores, k: int) -> list[Outcome]:
    """All sequences of k different positions."""
    return list(itertools.permutations(range(len(scores)), k))


def _all_below(count: Counter[float], noise: str, v: Array) -> Array:
    """The log chance that all of some values stay below v."""
    return np.asarray(sum((n * LOG_CDF[noise](v - value) for value, n in count.items()), np.zeros_like(v)))


def _relative(values: Sequence[Fraction]) -> list[float]:
    """Values below the largest; only differences matter."""
    largest = max(values)
    return [float(value - largest) for value in values]


def _log_sum(logs: Array) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


# The values of a histogram from its definition: who is released with which values, as one integral.
#
# Like `discreet.evidence.definition`, on which alone it builds, it shares no formula with the library. All noises are
# independent, so that given the last value v that is released, in noise units, the rest are below it by themselves, and
# the one before it is above v and in its own part of the line by itself.

ValueLaw = dict[tuple[Outcome, Outcome], float]
"""The log probability of an order of items with their values, in steps."""

_HALVES = Fraction(-1, 2), Fraction(1, 2)


def define_values(
    scores: Scores, k: int, rate: Fraction, steps: Sequence[int], grid: Fraction = Fraction(1)
) -> ValueLaw:
    """The log probability of every order of one or two items with each of some values of theirs, in steps of a grid.

    Every score has noise of the density rate exp(-rate |x|) / 2, and a value is taken to the nearest step.
    """
    if k > 2:
        raise ValueError(f"no definition of the values of {k} items")
    centres = [float(rate * score) for score in scores]
    ends = {step: tuple(float(rate * grid * (step + half)) for half in _HALVES) for step in steps}
    law = {}
    for order in sequences(scores, k):
        rest = Counter(centre for i, centre in enumerate(centres) if i not in order)
        for values in itertools.combinations_with_replacement(sorted(steps, reverse=True), k):
            law[order, values] = _value_log([centres[i] for i in order], rest, [ends[value] for value in values])
    return law


def _value_log(centres: list[float], rest: Counter[float], parts: list[tuple[float, ...]]) -> float:
    """The log chance that the last of one or two values is in its part with the rest below, the other in its own."""
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
    """The log chance of Laplace noise between two numbers, the first of which is not above the other."""
    top = np.full_like(low, high)
    # Where both are on one side of zero, the smaller tail is what must not be rounded away.
    near, far = np.where(low >= 0.0, low, -top), np.where(low >= 0.0, top, -low)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        one_side = -near + np.log(-np.expm1(near - far)) - math.log(2.0)
        around = np.log(1.0 - 0.5 * np.exp(np.minimum(low, 0.0)) - 0.5 * np.exp(-np.maximum(top, 0.0)))
    return np.asarray(np.where((low < 0.0) & (top > 0.0), around, one_side))


# Discovery from its definition: for whom an item counts, the threshold, what is kept, and what it may cost.
#
# Written a second time, to judge by: nothing of the library is imported but the law of the noise in `definition`, tails
# are sums of it, and the threshold is found by trying one whole number after the other.

Touch = tuple[str, int, str]
"""A row: a user, a group and an item."""

Numbers = dict[str, tuple[int, int]]
"""Of each item for how many users it counts, and how many touched it."""

_FAR_NOISE = 45
"""A tail is added up until what is left of it is below exp(-45) of it."""


@cache
def upper_tail(rate: Fraction, n: int) -> float:
    """The probability of a noise of n or more: the sum of its law, which is symmetric."""
    if n < 1:
        return 1.0 - upper_tail(rate, 1 - n)
    return math.fsum(math.exp(discrete_laplace_log(z, rate)) for z in range(n, n + math.ceil(_FAR_NOISE / rate)))


def keep_chance(users: int, rate: Fraction, threshold: int) -> float:
    """The probability of keeping an item for which so many users count; of one that counts for nobody it is 0."""
    return upper_tail(rate, threshold - users) if users >= 1 else 0.0


def noise_rate(epsilon: Fraction, items: int, adjacency: str, groups: int) -> Fraction:
    """Epsilon over all that one user changes: so many items in so many groups, of two users where one is replaced."""
    return epsilon / (items * groups * _sides(adjacency))


def least_threshold(epsilon: Fraction, delta: Fraction, items: int, adjacency: str, groups: int) -> int:
    """The least whole number from 2 on with which no user's own items are kept with more than the chance allowed."""
    threshold = 2
    while needed_delta(threshold, epsilon, items, adjacency, groups) > delta:
        threshold += 1
    return threshold


def needed_delta(threshold: int, epsilon: Fraction, items: int, adjacency: str, groups: int) -> float:
    """The delta that a threshold needs, in all groups: one user's items are new, of two where one is replaced."""
    chance = upper_tail(noise_rate(epsilon, items, adjacency, groups), threshold - 1)
    alone = -math.expm1(items * math.log1p(-chance))
    # A removal and an addition at half of epsilon each: the delta of the one is multiplied by what the other may cost.
    swapped = 1.0 + math.exp(epsilon / (2 * groups)) if adjacency == "swap" else 1.0
    return groups * swapped * alone


def part_for_discovery(items: int, k: int) -> Fraction:
    """The part of epsilon that finding the items takes where nothing is said: 1/4 + l/(4k), and 1/2 at most."""
    return min(Fraction(1, 2), Fraction(1, 4) + Fraction(items, 4 * k))


def count_people(touches: Iterable[Touch], items: int, key: str, groups: int, one_group: bool) -> list[Numbers]:
    """The numbers of each group. Of a user those items count, in each group, that have the least hashes.

    With `one_group` a user counts in the group with most rows of theirs alone, of several the first.
    """
    rows: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for who, group, item in touches:
        rows[who].append((group, item))
    counting, touching = ([Counter[str]() for _ in range(groups)] for _ in range(2))
    for who, own in rows.items():
        sizes = Counter(group for group, _ in own)
        main = min(sizes, key=lambda group: (-sizes[group], group))
        for group in [main] if one_group else sizes:
            found = {item for at, item in own if at == group}
            touching[group].update(found)
            counting[group].update(sorted(found, key=lambda item: _hash(key, who, item))[:items])
    return [{item: (n[item], all_users[item]) for item in n} for n, all_users in zip(counting, touching, strict=True)]


def _hash(key: str, who: str, item: str) -> str:
    return md5(f"{key}{who}/{item}".encode(), usedforsecurity=False).hexdigest()[:12]


def _sides(adjacency: str) -> int:
    return 2 if adjacency == "swap" else 1


# Core from its definition, enumerated: which candidate is chosen, and what it releases.
#
# Like `discreet.evidence.definition`, on which alone it builds, it shares no formula with the library, and nothing of
# it is clever: the odds of a core are a sum over every subset, each with the weight that it is counted with.

GAMMA = Fraction(3, 4)


def define_core(scores: Scores, k: int, s: Fraction, precision: Fraction, otherwise: dict[str, Any] | None) -> Law:
    """The log probability of what is seen: "core" or "otherwise", and positions in ascending order."""
    share = find_share(k)
    rest = s * (1 - share)
    sizes = sorted({max(1, math.floor(Fraction(k) * Fraction(5, 6) ** i + Fraction(1, 2))) for i in range(13)})
    odds = [log_odds(scores, size, k, rest, precision) for size in sizes]
    # The running minimum from the smallest core up, less 1 / sigma; the fallback always has all the support.
    support = [math.inf, *(min(odds[: j + 1]) - float(1 / share) for j in range(len(odds))), -math.inf]
    utilities = [min(support[j], 0.0) + min(-support[j + 1], 0.0) for j in range(len(sizes) + 1)]
    weights = [math.exp(float(share / (2 * (1 - share))) * utility) for utility in utilities]
    result: Law = {}
    for size, weight in zip([None, *sizes], weights, strict=True):
        if weight > 0.0:
            said = "otherwise" if size is None else "core"
            law = _fall_back(scores, k, rest, otherwise) if size is None else canonical(scores, size, rest, GAMMA)
            for positions, log in law.items():
                result[said, *positions] = math.log(weight / sum(weights)) + log
    return result


def find_share(k: int) -> Fraction:
    """The largest n / 10000 of at most 0.12 and 0.1 (100/k)^0.3, and at least one of these parts."""
    n = min(1200, math.floor(1000 * (100 / k) ** 0.3) + 1)
    while n > 1 and Fraction(n, 1000) ** 10 > Fraction(100, k) ** 3:
        n -= 1
    return Fraction(n, 10_000)


def log_odds(scores: Scores, size: int, k: int, s: Fraction, precision: Fraction) -> float:
    """The log odds that a core is good, were every subset as heavy, and as good, as the middle of its box."""
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
        loss = (1 - GAMMA) * x[h] - GAMMA * x[t] - (1 - 2 * GAMMA) * x[size - 1]
        (good if expect_right(size, k, h, t) >= precision * size else bad).append(-float(s * loss))
    return _log_sum_core(good) - _log_sum_core(bad) if bad else math.inf


def find_box(distance: int, largest: int, part: int) -> tuple[int, int]:
    """The first and the last distance of the box that one is in, which is one and so much of the first long."""
    first = 0
    while distance > first + first // part:
        first += 1 + first // part
    return first, min(first + first // part, largest)


def expect_right(size: int, k: int, h: int, t: int) -> Fraction:
    """How many are among the k best, on average, of all subsets that lack rank h but none before, and end at rank t."""
    others = list(itertools.combinations(range(h + 1, t), size - 1 - h))
    right = [sum(rank < k for rank in (*range(h), *some, t)) for some in others]
    return Fraction(sum(right), len(right))


def _fall_back(scores: Scores, k: int, s: Fraction, otherwise: dict[str, Any] | None) -> Law:
    return {(): 0.0} if otherwise is None else oneshot_sets(scores, k, s, otherwise["noise"])


def _log_sum_core(logs: list[float]) -> float:
    largest = max(logs)
    return largest + math.log(sum(math.exp(one - largest) for one in logs))


DEFINITIONS["core"] = lambda given, scores, k, s, _: define_core(
    scores, k, s, Fraction(given["precision"]), given["otherwise"]
)
