"""The classes (h, t) of subsets of the canonical mechanism: losses, sizes and uniform members.

`canonical.py` defines a class, and docs/proofs.md, section 4.2, proves its size and its loss. Both terms of the excess
over the loss of the top-k are non-negative, once the score at rank k-1 has been subtracted exactly, so floats do not
cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np

from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import LARGEST, log_binomial_upper
from discreet.exact.boxes import Sizes
from discreet.exact.entropy import Entropy
from discreet.mechanisms.tally import IntegerColumn, Selection, Tally, UniformSubset, to_float

Class = tuple[int, int]
"""A class of subsets (h, t). The top-k is the class (k, k-1): it lacks no rank below k, and its worst rank is k-1."""


@dataclass(frozen=True, eq=False, repr=False)
class Losses:
    """The excess s (loss - loss(top-k)) of a class, as a rational and as a float.

    `step` is delta if the loss is rounded up to multiples of delta, else None.
    """

    tally: Tally
    k: int
    s: Fraction
    gamma: Fraction
    step: Fraction | None = None

    def excess(self, h: int, t: int) -> Fraction:
        """Return s (loss(h, t) - loss(top-k)), where M is the score at rank h and m that at rank t."""
        # (1-gamma) (x[h] - x[k-1]) + gamma (x[k-1] - x[t])
        above, below = self.tally.gap(h, self.k - 1), self.tally.gap(self.k - 1, t)
        loss = (1 - self.gamma) * above + self.gamma * below
        if self.step is not None:
            loss = ceil(loss / self.step) * self.step
        return self.s * loss

    def height_h(self, h: Ranks) -> Floats:
        """Return the term of the best score left out in the excess, or in the loss in steps if that is rounded."""
        if self.gamma == 1:
            return np.zeros(len(h))
        return self.tally.gaps(h, np.full_like(h, self.k - 1), self._units[0])

    def height_t(self, t: Ranks) -> Floats:
        """Return the term of the worst score taken, likewise."""
        if self.gamma == 0:
            return np.zeros(len(t))
        return self.tally.gaps(np.full_like(t, self.k - 1), t, self._units[1])

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        """Return both terms, by one look-up if they have the same unit."""
        if self._units[0] != self._units[1]:
            return self.height_h(h), self.height_t(t)
        edge = np.full(max(len(h), len(t)), self.k - 1)
        upper, lower = np.concatenate([h, edge[: len(t)]]), np.concatenate([edge[: len(h)], t])
        both = self.tally.gaps(upper, lower, self._units[0])
        return both[: len(h)], both[len(h) :]

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        """Return minus the excess, a sum of two terms of one sign and so right to a relative 2^-48."""
        with np.errstate(all="ignore"):
            total = height_h + height_t
            if self.step is None:
                return -np.minimum(total, LARGEST)
            weight = min(to_float(self.s * self.step), LARGEST)
            rounded = (np.rint(total) if self._is_whole else np.ceil(total)) * weight
            # A loss so close to a multiple of the step that a float cannot decide the rounding is computed exactly.
            close = ~(np.abs(total - np.rint(total)) > 2.0**-40 * total) & (not self._is_whole) | (total > 1e300)
        for i in np.flatnonzero(close).tolist():
            rounded[i] = to_float(self.excess(int(h[i]), int(t[i])))
        return -np.minimum(rounded, LARGEST)

    @property
    def is_sum(self) -> bool:
        """True if the excess is the sum of its two terms, so that rounding up does not change it."""
        return self.step is None or self._is_whole

    @cached_property
    def _is_whole(self) -> bool:
        """True if losses are multiples of the step anyway."""
        column = self.tally.column
        return isinstance(column, IntegerColumn) and all((unit * column.unit).denominator == 1 for unit in self._units)

    @cached_property
    def _units(self) -> tuple[Fraction, Fraction]:
        """The factors of the two score differences in the two terms."""
        unit = self.s if self.step is None else 1 / self.step
        return unit * (1 - self.gamma), unit * self.gamma


@dataclass(frozen=True)
class ClassSizes:
    """Upper bounds, up to rounding, on the log number of subsets in classes (h, t), for k items."""

    k: int

    def __call__(self, h: Ranks, t: Ranks) -> Floats:
        return log_binomial_upper(self.k - 1 - h, t - self.k)


@dataclass(frozen=True)
class TailSizes:
    """Upper bounds, up to rounding, on the log number of subsets with worst rank t, for k items."""

    k: int

    def __call__(self, h: Ranks, t: Ranks) -> Floats:
        return log_binomial_upper(np.full_like(t, self.k - 1), t - self.k + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """All classes (h, t) with 0 <= h < k <= t < d, for any gamma."""

    losses: Losses

    @property
    def corners(self) -> tuple[int, int, int, int]:
        return 0, self.losses.k - 1, self.losses.k, self.losses.tally.d - 1

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        return self.losses.heights(h, t)

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        return self.losses.gain(height_h, height_t, h, t)

    @property
    def size(self) -> Sizes:
        return ClassSizes(self.losses.k)

    def members(self, h: int, t: int) -> tuple[int, int]:
        """Return (n, r) such that the class has C(n, r) subsets."""
        return t - h - 1, self.losses.k - 1 - h

    def choice(self, h: int, t: int, entropy: Entropy) -> Selection:
        """Return a uniform subset of the class, still to be drawn: ranks 0..h-1, t, and k-1-h between h and t."""
        return _select_with_some(h, self.losses.k - 1 - h, h + 1, t, entropy)

    def subset(self, h: int, t: int, entropy: Entropy) -> Ranks:
        """Draw a uniform subset of the class."""
        return self.choice(h, t, entropy).draw_ranks()


@dataclass(frozen=True, eq=False, repr=False)
class TailClasses(Classes):
    """All classes by their worst rank t alone, for gamma = 1, where the loss does not depend on h; h is always 0."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        return 0, 0, self.losses.k, self.losses.tally.d - 1

    @property
    def size(self) -> Sizes:
        return TailSizes(self.losses.k)

    def members(self, h: int, t: int) -> tuple[int, int]:
        return t, self.losses.k - 1

    def choice(self, h: int, t: int, entropy: Entropy) -> Selection:
        """Return a uniform subset of the class, still to be drawn: rank t and any k-1 of the ranks before it."""
        return _select_with_some(0, self.losses.k - 1, 0, t, entropy)


def _select_with_some(h: int, count: int, first: int, t: int, entropy: Entropy) -> Selection:
    """Return ranks 0..h-1, rank t, and a uniform subset of `count` of the ranks first..t-1."""
    return Selection(np.array([t]), h, UniformSubset(count, first, t - 1, entropy) if count else None)
