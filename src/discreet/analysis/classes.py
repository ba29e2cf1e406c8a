"""The mass of classes of subsets, where it is: the distribution over (h, t) of the canonical mechanism.

Of k(d-k) classes a few thousand hold all of the mass but a share that is stated. Boxes of classes are bounded by their
corners, as in the sampler; what cannot matter is dropped, and the rest is split down to single classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import log_binomial_stirling
from discreet.mechanisms.canonical import Classes, Prepared

_SPARED = 1e-11
"""The share of the mass that may be left out."""

_FEW = 64
_CHUNK = 256

_ROUNDING = 2.0**-49
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
    first_h, last_h, first_t, last_t = classes.corners
    box = _Boxes(*(np.array([edge], np.int64) for edge in (first_h, last_h, first_t, last_t)))
    spared = 0.0
    while True:
        upper, lower = box.bounds(classes)
        total = np.logaddexp(0.0, _log_sum(lower))
        order = np.argsort(upper)
        waste = np.cumsum(np.exp(np.minimum(upper[order] - total, 0.0)))
        dropped = int(np.searchsorted(waste, _SPARED - spared))
        spared += float(waste[dropped - 1]) if dropped else 0.0
        box = box.at(np.sort(order[dropped:]))
        if box.small.all():
            return _weighed(classes, box, spared)
        box = box.split()


def _weighed(classes: Classes, boxes: _Boxes, spared: float) -> Cells:
    """Every class of some boxes, weighed a few boxes at a time, which stay in the cache."""
    count = int(boxes.count.sum())
    h, t, weight, largest, done = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count), 0.0, 0
    for start in range(0, len(boxes.h1), _CHUNK):
        here, there = boxes.at(np.arange(start, min(start + _CHUNK, len(boxes.h1)))).cells()
        gain = classes.gain(*classes.heights(here, there), here, there)
        size = log_binomial_float(*_ways(classes, here, there))
        part = slice(done, done + len(here))
        h[part], t[part], weight[part] = here, there, gain + size
        largest, done = max(largest, float((size - gain).max())), done + len(here)
    total = float(np.logaddexp(0.0, _log_sum(weight)))
    return Cells(h, t, weight, total, 2.0 * spared + _ROUNDING * (largest + 16.0))


def _ways(classes: Classes, h: Ranks, t: Ranks) -> tuple[Ranks, Ranks]:
    return classes.losses.k - 1 - h, t - classes.losses.k


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Boxes h1..h2 by t1..t2."""

    h1: Ranks
    h2: Ranks
    t1: Ranks
    t2: Ranks

    @property
    def count(self) -> Ranks:
        return (self.h2 - self.h1 + 1) * (self.t2 - self.t1 + 1)

    @property
    def small(self) -> NDArray[np.bool_]:
        """Which boxes are taken cell by cell: bounding their halves would cost more."""
        return self.count <= _FEW

    def cells(self) -> tuple[Ranks, Ranks]:
        """Every cell of every box."""
        count = self.count
        place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        down, across = np.divmod(place, np.repeat(self.t2 - self.t1 + 1, count))
        return np.repeat(self.h1, count) + down, np.repeat(self.t1, count) + across

    def at(self, places: Ranks) -> _Boxes:
        return _Boxes(self.h1[places], self.h2[places], self.t1[places], self.t2[places])

    def bounds(self, classes: Classes) -> tuple[Floats, Floats]:
        """Upper and lower bounds on the log mass: the gain grows with h and falls with t, the size does the reverse."""
        cells = np.log(self.h2 - self.h1 + 1.0) + np.log(self.t2 - self.t1 + 1.0)
        best = classes.gain(*classes.heights(self.h2, self.t1), self.h2, self.t1)
        worst = classes.gain(*classes.heights(self.h1, self.t2), self.h1, self.t2)
        most = log_binomial_float(*_ways(classes, self.h1, self.t2))
        least = log_binomial_float(*_ways(classes, self.h2, self.t1))
        return best + most + cells, worst + least + cells

    def split(self) -> _Boxes:
        """Every box that is not small cut in the middle of both sides, where they can be."""
        h, t = (self.h1 + self.h2) >> 1, (self.t1 + self.t2) >> 1
        wide, long = ~self.small & (self.h2 > self.h1), ~self.small & (self.t2 > self.t1)
        h, t = np.where(wide, h, self.h2), np.where(long, t, self.t2)
        return _Boxes(
            np.concatenate([self.h1, (h + 1)[wide], self.h1[long], (h + 1)[wide & long]]),
            np.concatenate([h, self.h2[wide], h[long], self.h2[wide & long]]),
            np.concatenate([self.t1, self.t1[wide], (t + 1)[long], (t + 1)[wide & long]]),
            np.concatenate([t, t[wide], self.t2[long], self.t2[wide & long]]),
        )


def _log_sum(logs: Floats) -> float:
    if not len(logs):
        return -np.inf
    largest = float(logs.max())
    return largest + float(np.log(np.exp(logs - largest).sum()))


def log_binomial_float(r: Ranks, rest: Ranks) -> Floats:
    """Log C(r + rest, r), right to a relative 2^-50 or so.

    Accurate for what is reported, where `log_binomial_upper` of the sampler is a bound; both are Stirling's series, and
    differ in its remainders.
    """
    a, b = np.maximum(r, 1).astype(np.float64), np.maximum(rest, 1).astype(np.float64)
    value = log_binomial_stirling(a, b)
    value += _remainder(a + b) - _remainder(a) - _remainder(b)
    return np.where((r == 0) | (rest == 0), 0.0, value)


def _remainder(m: Floats) -> Floats:
    """Log m! - (m log m - m + log(2 pi m) / 2): the series from 12 on, by recursion below."""
    # c(m) = c(m+1) + (m + 1/2) log(1 + 1/m) - 1
    few = float(m.min(initial=12.0)) < 12.0
    far = np.maximum(m, 12.0) if few else m
    inverse = 1.0 / (far * far)
    series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / far
    return np.where(m < 12.0, _NEAR[np.minimum(m, 12.0).astype(np.int64)], series) if few else series


def _near() -> Floats:
    table = np.zeros(13)
    for m in range(1, 13):
        table[m] = np.log(float(np.prod(np.arange(1.0, m + 1.0)))) - (m * np.log(m) - m + 0.5 * np.log(2.0 * np.pi * m))
    return table


_NEAR = _near()
