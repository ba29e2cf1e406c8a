"""How much of the canonical mechanism's mass meets each goal, by rows of classes.

A row is all classes (h, t) of one h with t in a range. Where the gain hardly varies along a row, its mass is a gain
times its number of subsets, and that is a difference of two binomials: sum of C(t-h-1, k-1-h) over t from t1 to t2 is
C(t2-h, k-h) - C(t1-h-1, k-h). So the long flat tail of a million items costs a few rows, not ten million classes. Where
worst ranks are tied the gain does not vary at all, so that a run of equal scores is one row, however short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from discreet.analysis.goals import Hits, Wanted, split_edges
from discreet.exact.arrays import Floats, Mask, Ranks, count_up
from discreet.exact.ball import log_binomial_float, log_binomial_ratio
from discreet.exact.boxes import find_mass
from discreet.mechanisms.canonical import Prepared
from discreet.mechanisms.canonical_classes import Classes
from discreet.mechanisms.tally import Tally

# The mass of classes of subsets, where it is: the distribution over (h, t) of the canonical mechanism.
#
# Of k(d-k) classes a few thousand hold all of the mass but a share that is stated. The boxes of the sampler find them:
# what cannot matter is dropped, and the rest is cut down to boxes so small that they are taken class by class.

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


_FEW_ROWS = 256
"""So many classes are taken one by one rather than as rows."""

_NEGLIGIBLE = 1e-14


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of classes that hold all of the mass but a share, with the top-k apart, whose weight is 1.

    Attributes
    ----------
    k
        How many items a set has.
    h, t1, t2
        The ranks held at the top, and the first and the last of the worst ranks (from 0), of each row.
    probability
        How likely each row is.
    top
        How likely the top-k is.
    error
        What a sum of probabilities may be off by.
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
        """The rows of a canonical mechanism, cut where what is wanted begins or ends, right to about a goal."""
        classes = Classes(prepared.classes.losses)
        corners, spared = find_mass(classes, 0.0, _FEW_ROWS, 0.1 * goal, flat=0.1 * goal)
        # Of how many are wrong, the chances along a row are differences too, in which short rows would lose digits.
        counts_wrong = any(isinstance(one, Hits) and one.least is not None for one in wanted.values())
        listed = _list_rows(corners) if counts_wrong else _list_runs(corners, classes.losses.tally)
        h, t1, t2 = _cut_rows(*listed, split_edges(wanted.values()))
        k = classes.losses.k
        high = _gains(classes, h, t1)
        low, long = high.copy(), np.flatnonzero(t1 < t2)
        low[long] = _gains(classes, h[long], t2[long])
        size = log_row_size(k, h, t1, t2)
        weight = 0.5 * (high + low) + size
        total = float(np.logaddexp(0.0, log_sum(weight)))
        probability = np.exp(weight - total)
        cancelling = _cancelling(k, h, t1, t2) if counts_wrong else 1.0
        rounding = ROUNDING * (float((size - low).max(initial=0.0)) + 16.0) * (1.0 + cancelling)
        flat = float(((high - low) * probability).sum())
        return cls(k, h, t1, t2, probability, float(np.exp(-total)), 2.0 * spared + 2.0 * flat + rounding)

    def share(self, wanted: Wanted) -> float:
        """The probability, or the expected share, of what is wanted."""
        if not isinstance(wanted, Hits):
            inside = (self.h >= wanted[0]) & (self.t2 < wanted[1])
            return min(1.0, self.top + float(self.probability[inside].sum()))
        rates = self._expected_share(wanted.right) if wanted.least is None else self._chance(wanted.right, wanted.least)
        return min(1.0, self.top + float((self.probability * rates).sum()))

    def _expected_share(self, right: int) -> Floats:
        """In a class rank t and all below h are held; of those between, each with the same chance."""
        h, t1, t2, k = self.h, self.t1, self.t2, self.k
        each = (k - 1 - h) / np.maximum(t1 - h - 1, 1)
        long = np.flatnonzero((t1 < t2) & (h < k - 1))
        if len(long):
            # C(t-h-1, k-1-h) (k-1-h) / (t-h-1) = C(t-h-2, k-2-h), again a difference of two binomials along a row
            ends = h[long], t1[long], t2[long]
            inner = _share_in_row(k - 1, ends[0], ends[1] - 1, ends[2] - 1) / _share_in_row(k, *ends)
            each[long] = inner * (k - ends[0]) / (ends[2] - ends[0])
        return np.asarray(np.where(t2 < right, 1.0, (h + (right - h - 1) * each) / k), np.float64)

    def _chance(self, right: int, least: int) -> Floats:
        """The chance that enough ranks are right, that is, that few enough are not."""
        chance = np.where(self.t2 < right, 1.0, 0.0)
        many = self.k - least - 1
        if many >= 0:
            asked = (self.t2 >= right) & (self.probability > _NEGLIGIBLE / max(1, len(self.h)))
            chance[asked] = self._chance_of_few(asked, right, many)
        return chance

    def _chance_of_few(self, asked: Mask, right: int, many: int) -> Floats:
        """The chance of at most so many wrong ranks beside the worst one, which is wrong.

        C(right-h-1, n-w) C(t-right, w) of the C(t-h-1, n) sets have w of them, n = k-1-h; along a row the second
        binomial adds up to C(t2-right+1, w+1) - C(t1-right, w+1).
        """
        h, t1, t2 = self.h[asked], self.t1[asked], self.t2[asked]
        n, one = self.k - 1 - h, t1 == t2
        starts = [(np.where(one, t2 - right, t2 - right + 1), 1.0), (np.where(one, -1, t1 - right), -1.0)]
        log_size, found = log_row_size(self.k, h, t1, t2), np.zeros(len(h))
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
    """The gain of each class."""
    losses = classes.losses
    return classes.gain(_look_up(losses.height_h, h), _look_up(losses.height_t, t), h, t)


def _look_up(height: Callable[[Ranks], Floats], ranks: Ranks) -> Floats:
    """The height of each rank, by a table of all from the least to the largest where that is shorter."""
    low, high = int(ranks.min(initial=2**63 - 1)), int(ranks.max(initial=0))
    if high - low >= len(ranks):
        return height(ranks)
    return height(np.arange(low, high + 1))[ranks - low]


def log_row_size(k: int, h: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    """The log number of subsets in each row; where t1 = t2 it is that of a class."""
    size = log_binomial_float(k - 1 - h, t1 - k)
    long = np.flatnonzero(t1 < t2)
    if len(long):
        size[long] = _log_long_row(k, h[long], t1[long], t2[long])
    return size


def _log_long_row(k: int, h: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    return np.asarray(log_binomial_float(k - h, t2 - k) + np.log(_share_in_row(k, h, t1, t2)), np.float64)


def _share_in_row(k: int, h: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    """The share of the classes of a row among those of its h up to its end: one less a ratio of two binomials."""
    gone = log_binomial_ratio(t2 - t1 + 1, k - h, np.maximum(t1 - 1 - k, 0))
    return np.where(t1 > k, -np.expm1(gone), 1.0)


def _cancelling(k: int, h: Ranks, t1: Ranks, t2: Ranks) -> float:
    """How many times the digits lost where two binomials nearly cancel, at most: one over the share that is left."""
    share = np.where(t1 == t2, 1.0, np.minimum(1.0, (t2 - t1 + 1) * (k - h) / (t2 - h + 1)))
    return float((1.0 / share).max(initial=1.0))


def _list_rows(corners: Ranks) -> tuple[Ranks, Ranks, Ranks]:
    """Rows of one h as they are, and the classes of other boxes one by one."""
    whole = _is_whole(corners)
    h, t = list_cells(*corners[:, ~whole])
    h1, _, t1, t2 = corners[:, whole]
    return np.append(h, h1), np.append(t, t1), np.append(t, t2)


def _list_runs(corners: Ranks, tally: Tally) -> tuple[Ranks, Ranks, Ranks]:
    """The same, but where scores are tied at several t, these classes of one h, which have one gain, are one row."""
    whole = _is_whole(corners)
    h1, h2, t1, t2 = corners[:, ~whole]
    box = np.arange(len(h1))
    h, box = list_cells(h1, h2, box, box)
    begin, end = t1[box], t2[box]
    low, high = int(begin.min(initial=2**63 - 1)), int(end.max(initial=0))
    # Looking at every score between must not cost more than the classes do.
    if not len(h) or high - low >= int((end - begin + 1).sum()):
        return _list_rows(corners)
    scores = tally.raw(np.arange(low, high + 1))
    last = np.append(np.flatnonzero(scores[1:] != scores[:-1]), high - low) + low
    row = np.arange(len(h))
    row, run = list_cells(row, row, np.searchsorted(last, begin), np.searchsorted(last, end))
    begin = np.maximum(begin[row], np.append(low, last[:-1] + 1)[run])
    end = np.minimum(end[row], last[run])
    h1, _, t1, t2 = corners[:, whole]
    return np.append(h[row], h1), np.append(begin, t1), np.append(end, t2)


def _is_whole(corners: Ranks) -> Mask:
    """Which boxes are rows already."""
    h1, h2, t1, t2 = corners
    whole: Mask = (h1 == h2) & (t2 - t1 >= _FEW_ROWS)
    return whole


def _cut_rows(h: Ranks, t1: Ranks, t2: Ranks, edges: list[int]) -> tuple[Ranks, Ranks, Ranks]:
    """The rows with none across an edge: those that begin before one and go on from it are two."""
    for edge in edges:
        across = (t1 < edge) & (t2 >= edge)
        if across.any():
            begin = np.append(t1, np.full(int(across.sum()), edge))
            end = np.append(np.where(across, edge - 1, t2), t2[across])
            h, t1, t2 = np.append(h, h[across]), begin, end
    return h, t1, t2
