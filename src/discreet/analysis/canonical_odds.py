"""Probabilities of goals under the canonical mechanism, from the classes (h, t) of docs/proofs.md, 4.2.

`Cells` lists single classes; `Rows` joins the classes of one h with t in a range. Along a row the gain hardly varies,
so its mass is the gain times its number of subsets, the sum of C(t-h-1, k-1-h) over t from t1 to t2, which equals
C(t2-h, k-h) - C(t1-h-1, k-h): the flat tail of a million items costs a few rows in place of ten million classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from discreet.analysis.goals import Hits, Wanted, split_edges
from discreet.exact.arrays import Floats, Mask, Ranks, count_up
from discreet.exact.ball import log_binomial_float, log_binomial_ratio
from discreet.exact.boxes import find_mass
from discreet.mechanisms.canonical import Classes, Prepared
from discreet.mechanisms.tally import Tally

_SPARED = 1e-11
"""The share of the mass that `massive_cells` may leave out."""

_FEW_CLASSES = 256
"""Boxes of up to this many classes are listed class by class."""

_CHUNK = 256
"""The number of boxes weighed at once: their classes stay in the cache."""

_ROUNDING = 2.0**-49
"""The relative rounding error of the two parts of a log weight."""

_NEGLIGIBLE = 1e-14
"""Rows whose total probability is below this are left out of the probability of few wrong items."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Classes and their log weights, relative to the weight 1 of the top-k.

    Attributes
    ----------
    h, t
        The number of best ranks held in a row, and the worst rank (from 0), of each class.
    log_weight
        The log weight of each class as a whole.
    log_total
        The log weight of all classes, the top-k included.
    error
        The error of a sum of probabilities.
    """

    h: Ranks
    t: Ranks
    log_weight: Floats
    log_total: float
    error: float

    @property
    def probability(self) -> Floats:
        """Return the probability of each class."""
        return np.exp(self.log_weight - self.log_total)

    @property
    def top(self) -> float:
        """Return the probability of the top-k."""
        return float(np.exp(-self.log_total))


def cells_of(prepared: Prepared) -> Cells:
    """Return the classes (h, t) of a canonical mechanism; with gamma = 1 the sampler's own classes have t alone."""
    return massive_cells(Classes(prepared.classes.losses))


def massive_cells(classes: Classes) -> Cells:
    """Return classes that hold all of the mass except a share of at most 1e-11."""
    corners, spared = find_mass(classes, 0.0, _FEW_CLASSES, _SPARED)
    parts = []
    for start in range(0, corners.shape[1], _CHUNK):
        h, t = _list_cells(*corners[:, start : start + _CHUNK])
        gain = classes.gain(*classes.heights(h, t), h, t)
        parts.append((h, t, gain, log_binomial_float(classes.losses.k - 1 - h, t - classes.losses.k)))
    if not parts:
        return Cells(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0.0, 2.0 * spared)
    h, t, gain, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    weight = gain + size
    total = float(np.logaddexp(0.0, _log_sum(weight)))
    return Cells(h, t, weight, total, 2.0 * spared + _ROUNDING * (float((size - gain).max()) + 16.0))


def _list_cells(h1: Ranks, h2: Ranks, t1: Ranks, t2: Ranks) -> tuple[Ranks, Ranks]:
    """Return h and t of every class in every box."""
    count = (h2 - h1 + 1) * (t2 - t1 + 1)
    place = count_up(count)
    down, across = np.divmod(place, np.repeat(t2 - t1 + 1, count))
    return np.repeat(h1, count) + down, np.repeat(t1, count) + across


def _log_sum(logs: Floats) -> float:
    if not len(logs):
        return -np.inf
    largest = float(logs.max())
    return largest + float(np.log(np.exp(logs - largest).sum()))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of classes that hold all of the mass except a small share; the top-k is apart and has the weight 1.

    Attributes
    ----------
    k
        The number of items in a set.
    h, t1, t2
        The number of best ranks held in a row, and the first and the last worst rank (from 0), of each row.
    probability
        The probability of each row.
    top
        The probability of the top-k.
    error
        The error of a sum of probabilities.
    """

    k: int
    h: Ranks
    t1: Ranks
    t2: Ranks
    probability: Floats
    top: float
    error: float

    @classmethod
    def of(cls, prepared: Prepared, wanted: Mapping[str, Wanted], goal: float) -> Rows:
        """Return the rows of a canonical mechanism, cut at the edges of the wanted regions, to an error near `goal`."""
        classes = Classes(prepared.classes.losses)
        corners, spared = find_mass(classes, 0.0, _FEW_CLASSES, 0.1 * goal, flat=0.1 * goal)
        # The probability of few wrong items is a difference along a row, in which short rows would lose digits.
        counts_wrong = any(isinstance(one, Hits) and one.least is not None for one in wanted.values())
        h, t1, t2 = _list_rows(corners) if counts_wrong else _list_runs(corners, classes.losses.tally)
        for edge in split_edges(wanted.values()):
            across = (t1 < edge) & (t2 >= edge)
            if across.any():
                begin = np.append(t1, np.full(int(across.sum()), edge))
                end = np.append(np.where(across, edge - 1, t2), t2[across])
                h, t1, t2 = np.append(h, h[across]), begin, end
        k = classes.losses.k
        high = _gains(classes, h, t1)
        low, long = high.copy(), np.flatnonzero(t1 < t2)
        low[long] = _gains(classes, h[long], t2[long])
        size = _log_row_size(k, h, t1, t2)
        weight = 0.5 * (high + low) + size
        total = float(np.logaddexp(0.0, _log_sum(weight)))
        probability = np.exp(weight - total)
        cancelling = 1.0
        if counts_wrong:
            # Two binomials that nearly cancel lose digits in the inverse ratio of the share that is left.
            left = np.where(t1 == t2, 1.0, np.minimum(1.0, (t2 - t1 + 1) * (k - h) / (t2 - h + 1)))
            cancelling = float((1.0 / left).max(initial=1.0))
        rounding = _ROUNDING * (float((size - low).max(initial=0.0)) + 16.0) * (1.0 + cancelling)
        flat = float(((high - low) * probability).sum())
        return cls(k, h, t1, t2, probability, float(np.exp(-total)), 2.0 * spared + 2.0 * flat + rounding)

    def share(self, wanted: Wanted) -> float:
        """Return the probability of a region, or the expected share or the probability of hits."""
        if not isinstance(wanted, Hits):
            inside = (self.h >= wanted[0]) & (self.t2 < wanted[1])
            return min(1.0, self.top + float(self.probability[inside].sum()))
        if wanted.least is None:
            rates = self._expected_share(wanted.right)
        else:
            rates = np.where(self.t2 < wanted.right, 1.0, 0.0)
            many = self.k - wanted.least - 1
            if many >= 0:
                asked = (self.t2 >= wanted.right) & (self.probability > _NEGLIGIBLE / max(1, len(self.h)))
                rates[asked] = self._chance_of_few(asked, wanted.right, many)
        return min(1.0, self.top + float((self.probability * rates).sum()))

    def _expected_share(self, right: int) -> Floats:
        """Return the expected share of right items in each row.

        A set of a class holds rank t and all ranks below h; the ranks between are equally likely.
        """
        h, t1, t2, k = self.h, self.t1, self.t2, self.k
        each = (k - 1 - h) / np.maximum(t1 - h - 1, 1)
        long = np.flatnonzero((t1 < t2) & (h < k - 1))
        if len(long):
            # C(t-h-1, k-1-h) (k-1-h) / (t-h-1) = C(t-h-2, k-2-h), again a difference of two binomials along a row
            ends = h[long], t1[long], t2[long]
            inner = _share_in_row(k - 1, ends[0], ends[1] - 1, ends[2] - 1) / _share_in_row(k, *ends)
            each[long] = inner * (k - ends[0]) / (ends[2] - ends[0])
        return np.asarray(np.where(t2 < right, 1.0, (h + (right - h - 1) * each) / k), np.float64)

    def _chance_of_few(self, asked: Mask, right: int, many: int) -> Floats:
        """Return the probability of at most `many` wrong ranks besides the worst one, which is wrong.

        With n = k-1-h, C(right-h-1, n-w) C(t-right, w) of the C(t-h-1, n) sets have w wrong ranks; along a row the
        second binomial adds up to C(t2-right+1, w+1) - C(t1-right, w+1).
        """
        h, t1, t2 = self.h[asked], self.t1[asked], self.t2[asked]
        n, one = self.k - 1 - h, t1 == t2
        starts = [(np.where(one, t2 - right, t2 - right + 1), 1.0), (np.where(one, -1, t1 - right), -1.0)]
        log_size, found = _log_row_size(self.k, h, t1, t2), np.zeros(len(h))
        first = log_binomial_float(n, np.full_like(n, right - self.k)) - log_size
        more = np.where(one, 0, 1)
        for start, sign in starts:
            with np.errstate(divide="ignore"):
                # C(start, 0) or C(start, 1)
                log_term = first + np.where(start < more, -np.inf, np.log(np.where(one, 1, np.maximum(start, 1))))
                for w in range(many + 1):
                    found += sign * np.exp(log_term)
                    ratio = np.maximum(n - w, 0) * np.maximum(start - w - more, 0)
                    log_term += np.log(ratio / ((right - self.k + w + 1.0) * (w + 1.0 + more)))
        return np.clip(found, 0.0, 1.0)


def _gains(classes: Classes, h: Ranks, t: Ranks) -> Floats:
    losses = classes.losses
    return classes.gain(_look_up(losses.height_h, h), _look_up(losses.height_t, t), h, t)


def _look_up(height: Callable[[Ranks], Floats], ranks: Ranks) -> Floats:
    """Return the height of each rank, through a table of all ranks in their range if that is shorter."""
    low, high = int(ranks.min(initial=2**63 - 1)), int(ranks.max(initial=0))
    if high - low >= len(ranks):
        return height(ranks)
    return height(np.arange(low, high + 1))[ranks - low]


def _log_row_size(k: int, h: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    """Return the log number of subsets in each row."""
    size = log_binomial_float(k - 1 - h, t1 - k)
    long = np.flatnonzero(t1 < t2)
    if len(long):
        ends = h[long], t1[long], t2[long]
        size[long] = log_binomial_float(k - ends[0], ends[2] - k) + np.log(_share_in_row(k, *ends))
    return size


def _share_in_row(k: int, h: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    """Return the share of t1..t2 among the subsets of each h with t up to t2: one minus a ratio of two binomials."""
    gone = log_binomial_ratio(t2 - t1 + 1, k - h, np.maximum(t1 - 1 - k, 0))
    return np.where(t1 > k, -np.expm1(gone), 1.0)


def _list_rows(corners: Ranks) -> tuple[Ranks, Ranks, Ranks]:
    """Return boxes that are long rows unchanged, and the classes of other boxes as rows of one class."""
    whole = _is_long_row(corners)
    h, t = _list_cells(*corners[:, ~whole])
    h1, _, t1, t2 = corners[:, whole]
    return np.append(h, h1), np.append(t, t1), np.append(t, t2)


def _list_runs(corners: Ranks, tally: Tally) -> tuple[Ranks, Ranks, Ranks]:
    """Return the same, with runs of tied scores at t, which share one gain, joined to one row."""
    whole = _is_long_row(corners)
    h1, h2, t1, t2 = corners[:, ~whole]
    box = np.arange(len(h1))
    h, box = _list_cells(h1, h2, box, box)
    begin, end = t1[box], t2[box]
    low, high = int(begin.min(initial=2**63 - 1)), int(end.max(initial=0))
    # Reading every score in the range must not cost more than listing the classes.
    if not len(h) or high - low >= int((end - begin + 1).sum()):
        return _list_rows(corners)
    scores = tally.raw(np.arange(low, high + 1))
    last = np.append(np.flatnonzero(scores[1:] != scores[:-1]), high - low) + low
    row = np.arange(len(h))
    row, run = _list_cells(row, row, np.searchsorted(last, begin), np.searchsorted(last, end))
    begin = np.maximum(begin[row], np.append(low, last[:-1] + 1)[run])
    end = np.minimum(end[row], last[run])
    h1, _, t1, t2 = corners[:, whole]
    return np.append(h[row], h1), np.append(begin, t1), np.append(end, t2)


def _is_long_row(corners: Ranks) -> Mask:
    """Mark the boxes that are rows of more classes than are listed one by one."""
    h1, h2, t1, t2 = corners
    long: Mask = (h1 == h2) & (t2 - t1 >= _FEW_CLASSES)
    return long
