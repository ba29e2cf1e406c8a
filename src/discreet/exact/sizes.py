"""How many subsets nested classes have, log C(a+b, a), and sums of these over all a: what k and d alone decide is kept.

Sums of many exponentials are products of a matrix that is kept with a vector: the a are put into blocks, in each of
which sizes differ by so little that no float is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.exact.arrays import Floats, Ranks, freeze
from discreet.exact.ball import LARGEST, log_binomial_float, log_factorial_float

_TABLED = 1 << 16
"""Logarithms of the factorials of smaller numbers are kept."""

_WIDEST = 128
"""How many a there are in a block at most."""

_RISE = 500.0
"""By how much log sizes may differ in a block: their exponentials are no less than 10^-218 of the largest."""

_LOWEST = -700.0
"""What logarithms beside the largest of a block are taken for where they are less, which is below 2^-280 of the block:
NumPy takes many times as long for an exponential that is too small for a float."""


def log_sizes(a: Ranks, b: Ranks, most: int | None = None) -> Floats:
    """Log C(a + b, a), right to a relative 2^-43 or, where a table has it, to 2^-21; no a + b is above `most`."""
    if most is None:
        most = int(a.max(initial=0)) + int(b.max(initial=0))
    if most >= _TABLED:
        return log_binomial_float(a, b)
    # Each of three is right to a relative 2^-43 of less than 2^20.
    logs = _log_factorials(1 << most.bit_length())
    sizes: Floats = logs.take(a + b) - logs.take(a) - logs.take(b)
    return sizes


@lru_cache(maxsize=17)
def _log_factorials(count: int) -> Floats:
    logs = log_factorial_float(np.arange(count))
    freeze(logs)
    return logs


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """What sums of log sizes over all a are made of, at some levels of b.

    Attributes
    ----------
    count
        How many a there are.
    heights
        The log size of the last a of each block, by block and level.
    factors
        The sizes of all a of a block beside that, by block, level and a.
    """

    count: int
    heights: Floats
    factors: Floats

    @classmethod
    def over(cls, sizes: Floats) -> Sums:
        """Sums of exponentials of log sizes, a row for each level; they grow with a, and most at the last level."""
        count = sizes.shape[1]
        width = min(_WIDEST, count)
        while width > 1 and _largest_rise(sizes[-1], width) > _RISE:
            width //= 2
        # The last block is filled up with what has no mass.
        filled = np.pad(sizes, ((0, 0), (0, -count % width)), mode="edge")
        blocks = filled.reshape(len(sizes), -1, width).transpose(1, 0, 2)
        heights = np.ascontiguousarray(blocks[..., -1])
        factors = np.exp(blocks - heights[..., None])
        freeze(heights, factors)
        return cls(count, heights, factors)

    def log_sums(self, log_mass: Floats) -> Floats:
        """Return the logarithm of the sum of masses times sizes at each level.

        It is right to an absolute 2^-40, or a relative 2^-40 of the largest log size.
        """
        count, _, width = self.factors.shape
        if missing := count * width - self.count:
            log_mass = np.append(log_mass, np.full(missing, -np.inf))
        blocks = log_mass.reshape(count, width)
        top = np.maximum.reduce(blocks, axis=-1, keepdims=True, initial=-LARGEST)
        shares = blocks - top
        np.maximum(shares, _LOWEST, out=shares)
        np.exp(shares, out=shares)
        parts = (self.factors @ shares[..., None])[..., 0]
        np.log(parts, out=parts)
        parts += top
        parts += self.heights
        sums: Floats = parts[0] if count == 1 else log_sum_exp(parts, axis=0)
        return sums


def _largest_rise(sizes: Floats, width: int) -> float:
    """By how much sizes rise at most within a block of one width."""
    last = np.append(np.arange(width - 1, len(sizes) - 1, width), len(sizes) - 1)
    return float((sizes[last] - sizes[::width]).max())


def log_sum_exp(rows: Floats, axis: int = -1) -> Floats:
    """The logarithm of the sum of exponentials along an axis, a term below 2^-115 of the largest taken for that."""
    top = np.maximum.reduce(rows, axis=axis, keepdims=True)
    terms = rows - top
    np.maximum(terms, -80.0, out=terms)
    logs: Floats = np.log(np.exp(terms, out=terms).sum(axis=axis)) + np.squeeze(top, axis)
    return logs
