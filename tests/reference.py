"""The mechanisms from their definitions, slowly and on their own: what the tests hold the library against.

Nothing here is imported from the library. Scores are in any order; outcomes are tuples of positions.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
from scipy import integrate


def subsets(scores, k):
    return list(itertools.combinations(range(len(scores)), k))


def canonical_loss(scores, subset, gamma):
    inside = min(scores[i] for i in subset)
    outside = [scores[i] for i in range(len(scores)) if i not in subset]
    largest = max(outside) if outside else inside
    return (1 - gamma) * max(largest, inside) - gamma * inside


def joint_loss(scores, sequence):
    ordered = sorted(scores, reverse=True)
    return max(ordered[i] - scores[j] for i, j in enumerate(sequence))


# F and f of the five noises, in the standard parameterisation.
CDF = {
    "gumbel": lambda v: np.exp(-np.exp(-v)),
    "exponential": lambda v: np.where(v > 0, -np.expm1(-np.maximum(v, 0)), 0.0),
    "laplace": lambda v: np.where(v < 0, 0.5 * np.exp(np.minimum(v, 0)), 1 - 0.5 * np.exp(-np.maximum(v, 0))),
    "logistic": lambda v: 1 / (1 + np.exp(-v)),
    "half-logistic": lambda v: np.where(v > 0, np.tanh(np.maximum(v, 0) / 2), 0.0),
}
PDF = {
    "gumbel": lambda v: np.exp(-v - np.exp(-v)),
    "exponential": lambda v: np.where(v >= 0, np.exp(-np.maximum(v, 0)), 0.0),
    "laplace": lambda v: 0.5 * np.exp(-np.abs(v)),
    "logistic": lambda v: np.exp(-np.abs(v)) / (1 + np.exp(-np.abs(v))) ** 2,
    "half-logistic": lambda v: np.where(v >= 0, 0.5 / np.cosh(np.maximum(v, 0) / 2) ** 2, 0.0),
}


def integral(function, values):
    """The integral of a product of shifted noises; it has kinks where a shifted argument passes 0."""
    low, high = min(values) - 8.0, max(values) + 45.0
    total, _ = integrate.quad(
        function, low, high, points=sorted(set(map(float, values))), limit=2000, epsabs=1e-11, epsrel=1e-9
    )
    return total


def winner_probabilities(values, noise):
    """The chance of each value to be the largest after noise is added to all."""
    cdf, pdf = CDF[noise], PDF[noise]
    if noise == "gumbel":
        weights = np.exp(np.array(values) - max(values))
        return list(weights / weights.sum())

    # Equal values are equally likely: one integral each is enough.
    count = Counter(values)

    def chance(value):
        def density(v):
            rest = math.prod(cdf(v - other) ** (n - (other == value)) for other, n in count.items())
            return float(pdf(v - value) * rest)

        return integral(density, list(count))

    chances = {value: chance(value) for value in count}
    return [chances[value] for value in values]


def canonical(scores, k, s, gamma, noise="gumbel"):
    """The probability of every k-subset."""
    losses = [float(s * canonical_loss(scores, y, gamma)) for y in subsets(scores, k)]
    return dict(zip(subsets(scores, k), winner_probabilities([-loss for loss in losses], noise), strict=True))


def joint(scores, k, s):
    """The probability of every k-sequence."""
    sequences = list(itertools.permutations(range(len(scores)), k))
    weights = [math.exp(-float(s * joint_loss(scores, y)) / 2) for y in sequences]
    return {y: w / sum(weights) for y, w in zip(sequences, weights, strict=True)}


def peeling(scores, k, s, noise):
    """The probability of every k-sequence, by k rounds of one winner each."""
    result = {(): 1.0}
    rounds = {}
    for _ in range(k):
        longer = {}
        for taken, probability in result.items():
            left = [i for i in range(len(scores)) if i not in taken]
            values = tuple(float(s * scores[i] / k) for i in left)
            if values not in rounds:
                rounds[values] = winner_probabilities(values, noise)
            for i, p in zip(left, rounds[values], strict=True):
                longer[(*taken, i)] = probability * p
        result = longer
    return result


def oneshot(scores, k, s, noise):
    """The probability of every k-sequence of the k largest values, for k = 1 or 2."""
    values = [float(s * score / k) for score in scores]
    if k == 1:
        return {(i,): p for i, p in enumerate(winner_probabilities(values, noise))}
    cdf, pdf = CDF[noise], PDF[noise]

    def chance(first, second):
        rest = Counter(values) - Counter([first, second])

        def density(v):
            return float(pdf(v - second) * (1 - cdf(v - first)) * math.prod(cdf(v - r) ** n for r, n in rest.items()))

        return integral(density, list(set(values)))

    chances = {pair: chance(*pair) for pair in set(itertools.permutations(values, 2))}
    return {(i, j): chances[values[i], values[j]] for i, j in itertools.permutations(range(len(values)), 2)}


def oneshot_sets(scores, k, s, noise):
    """The probability of every k-subset of the k largest values, for any k < d."""
    values = [float(s * score / k) for score in scores]
    cdf, pdf = CDF[noise], PDF[noise]

    def chance(y):
        rest = [v for i, v in enumerate(values) if i not in y]

        def density(v):
            above = math.prod(1 - cdf(v - values[i]) for i in y)
            last = sum(
                pdf(v - r) * math.prod(cdf(v - o) for j, o in enumerate(rest) if j != i) for i, r in enumerate(rest)
            )
            return float(above * last)

        return integral(density, values)

    return {y: chance(y) for y in subsets(scores, k)}


def scale(epsilon, down=Fraction(0), up=Fraction(1)):
    return Fraction(epsilon) / (down + up)
