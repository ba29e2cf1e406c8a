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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
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
"""The mechanisms by name; `discreet.evidence.core_definition`, which builds on this, adds its own."""

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
