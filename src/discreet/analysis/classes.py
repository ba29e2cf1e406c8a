"""The mass of classes of subsets, where it is: the distribution over (h, t) of the canonical mechanism.

Of k(d-k) classes a few thousand hold all of the mass but a share that is stated. The boxes of the sampler find them:
what cannot matter is dropped, and the rest is cut down to boxes so small that they are taken class by class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.exact.arrays import Floats, Ranks, count_up
from discreet.exact.ball import log_binomial_float
from discreet.exact.boxes import find_mass
from discreet.mechanisms.canonical import Prepared
from discreet.mechanisms.canonical_classes import Classes

_SPARED = 1e-11
"""The share of the mass that may be left out."""

_FEW = 256
_CHUNK = 256

ROUNDING = 2.0**-49
"""How far, relative to its two parts, a log weight may be off."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Classes, the logarithms of their weights, and what is known of all of them; the top-k has the weight 1.

    Attributes
    ----------
    h, t
        The ranks held at the top, and the worst rank (from 0) of each class.
    log_weight
        The log weight of each class as a whole.
    log_total
        The log weight of all classes, the top-k included.
    error
        What a sum of probabilities may be off by.
    """

    h: Ranks
    t: Ranks
    log_weight: Floats
    log_total: float
    error: float

    @property
    def probability(self) -> Floats:
        """The probability of each class."""
        return np.exp(self.log_weight - self.log_total)

    @property
    def top(self) -> float:
        """The probability of the top-k."""
        return float(np.exp(-self.log_total))


def cells_of(prepared: Prepared) -> Cells:
    """The classes (h, t) of a canonical mechanism; those of gamma = 1 are by t alone, and are told apart by h here."""
    return massive_cells(Classes(prepared.classes.losses))


def massive_cells(classes: Classes) -> Cells:
    """The classes that hold all of the mass but a share of 1e-11."""
    corners, spared = find_mass(classes, 0.0, _FEW, _SPARED)
    parts = [_weigh_cells(classes, corners[:, start : start + _CHUNK]) for start in range(0, corners.shape[1], _CHUNK)]
    if not parts:
        return Cells(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0.0, 2.0 * spared)
    h, t, gain, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    weight = gain + size
    total = float(np.logaddexp(0.0, log_sum(weight)))
    return Cells(h, t, weight, total, 2.0 * spared + ROUNDING * (float((size - gain).max()) + 16.0))


def _weigh_cells(classes: Classes, corners: Ranks) -> tuple[Ranks, Ranks, Floats, Floats]:
    """Every class of some boxes, so few that they stay in the cache, with gain and size."""
    h, t = list_cells(*corners)
    gain = classes.gain(*classes.heights(h, t), h, t)
    return h, t, gain, log_binomial_float(classes.losses.k - 1 - h, t - classes.losses.k)


def list_cells(h1: Ranks, h2: Ranks, t1: Ranks, t2: Ranks) -> tuple[Ranks, Ranks]:
    """Every cell of every box."""
    count = (h2 - h1 + 1) * (t2 - t1 + 1)
    place = count_up(count)
    down, across = np.divmod(place, np.repeat(t2 - t1 + 1, count))
    return np.repeat(h1, count) + down, np.repeat(t1, count) + across


def log_sum(logs: Floats) -> float:
    """The logarithm of the sum of exponentials."""
    if not len(logs):
        return -np.inf
    largest = float(logs.max())
    return largest + float(np.log(np.exp(logs - largest).sum()))
