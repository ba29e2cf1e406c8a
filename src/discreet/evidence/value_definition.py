"""The values of a histogram from its definition: who is released with which values, as one integral.

Like `discreet.evidence.definition`, on which alone it builds, it shares no formula with the library. All noises are
independent, so that given the last value v that is released, in noise units, the rest are below it by themselves, and
the one before it is above v and in its own part of the line by itself.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.evidence.definition import LOG_CDF, LOG_PDF, Array, Outcome, Scores, log_integral, sequences

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
