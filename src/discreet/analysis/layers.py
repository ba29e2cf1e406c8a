"""How likely joint is to release a good choice, from how many choices have a loss up to tau.

A weight exp(-c loss) is the chance that an exponential variable of rate c exceeds the loss, so all weights of a region
add up to the integral of c exp(-c tau) N(tau), where N(tau) counts its choices of loss at most tau. N is a staircase:
between two points without a step it is known exactly, elsewhere it lies between its values at the ends. Intervals are
halved where that matters; counts do not depend on c, so what was counted for one epsilon serves for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, log, log2

import numpy as np
from numpy.typing import NDArray

from discreet.analysis.goals import Hits, Wanted
from discreet.analysis.losses import Choices, Counter, log_right_sequences
from discreet.exact.arrays import Floats, Ranks
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.joint import last_ranks
from discreet.tally import Tally

_ROUGH = 0.25
_MOST = 1 << 16
"""How many intervals there may be, whatever the error."""

_ROUNDING = 1e-12
_TRUST, _CAUTION = 0.2, 3.0
_NEGLIGIBLE = 40.0
"""What has a share below exp(-40) is left out."""


@dataclass(frozen=True, eq=False)
class Layers:
    """The choices of k items by their loss, counted in all and within some regions.

    Attributes
    ----------
    tally, k
        The scores, and how many items a choice has.
    counters
        From rows of last ranks to the log number of choices within them: of all choices, then of each region.
    """

    tally: Tally
    k: int
    counters: Sequence[Counter]
    _seen: dict[float, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, tally: Tally, k: int, mechanism: Mechanism, wanted: Sequence[Wanted]) -> Layers:
        """The choices that a mechanism has, and those that are good enough, or how much of them is right."""
        count = Choices.of(mechanism).log_count
        return cls(tally, k, [lambda last: count(last, 0), *(_counter_of(count, one) for one in wanted)])

    @classmethod
    def of_set(cls, tally: Tally, mechanism: Mechanism, ranks: Ranks) -> Layers:
        """The choices that a mechanism has, and those of just these ranks."""
        choices = Choices.of(mechanism)
        return cls(tally, len(ranks), [lambda last: choices.log_count(last, 0), partial(choices.log_count_of, ranks)])

    def on(self, tally: Tally) -> Layers:
        """The same on a tally that may have been brought to another scale; counts are kept where it was not."""
        return self if tally is self.tally else Layers(tally, self.k, self.counters)

    def shares(self, rate: float, goal: float) -> tuple[list[float], float]:
        """The probability of each region where a choice weighs exp(-rate * loss), and what it may be off by."""
        parts = self._rough(rate, goal)
        if parts.nothing(goal):
            return [0.0] * (len(self.counters) - 1), goal
        while True:
            sums = parts.weights.sum(axis=0)
            shares = np.minimum(sums[1:] / sums[0], 1.0)
            doubt = np.minimum(parts.doubt, _CAUTION * parts.moved)
            # Both the weight of a region and that of all choices may be off.
            off = (doubt[:, 1:] + doubt[:, :1] * shares).max(axis=1) / sums[0]
            if off.sum() <= goal or len(off) > _MOST:
                return shares.tolist(), float(off.sum()) + _ROUNDING
            parts = self._split(parts, np.flatnonzero(off > goal / (2.0 * len(off))))

    def _rough(self, rate: float, goal: float) -> _Parts:
        """Intervals that leave a quarter of all weight in doubt at most, or show that no region weighs anything."""
        everything = float(self._below(np.array([np.inf]))[0, 0])
        # Beyond this, all choices together weigh next to nothing.
        end = 2.0 ** ceil(log2((everything + _NEGLIGIBLE) / rate))
        edges = np.array([0.0, end])
        begin, finish = self._upto(edges[:-1]), self._below(edges[1:])
        parts = _Parts(rate, edges, begin, finish, np.full(begin.shape, np.inf), np.ones(1, bool), everything)
        while True:
            parts = replace(parts, top=parts.highest)
            doubt = parts.doubt[:, 0] / parts.most[:, 0].sum()
            if doubt.sum() <= _ROUGH or parts.nothing(goal):
                return replace(parts, moved=parts.doubt)
            parts = self._split(parts, np.flatnonzero(doubt > _ROUGH / (2.0 * len(doubt))))

    def _split(self, parts: _Parts, places: Ranks) -> _Parts:
        """The intervals with some of them halved.

        Where an interval begins with a step, what is counted just before it serves at first: most intervals are never
        halved, and that saves a count for each of them.
        """
        blunt = places[~parts.sharp[places]]
        parts = parts.sharpen(blunt, self._upto(parts.edges[blunt]))
        middle = 0.5 * (parts.edges[places] + parts.edges[places + 1])
        halves = parts.halve(places, middle, self._below(middle))
        first = places + np.arange(len(places))
        # How far a guess moves when its interval is halved tells how far off the halves may still be.
        moved = np.abs(parts.weights[places] - halves.weights[first] - halves.weights[first + 1])
        # One that moves little by chance is not trusted before it has moved little more than once.
        moved = np.maximum(moved, _TRUST * parts.moved[places])
        halves.moved[first] = halves.moved[first + 1] = moved
        # Where a region begins inside an interval there is no straight line: only the bound counts.
        halves.moved[(halves.begin == -np.inf) & (halves.end > -np.inf)] = np.inf
        return halves

    def _below(self, taus: Floats) -> Floats:
        """Log counts of all choices and of each region, with a loss below each tau."""
        new = [tau for tau in taus.tolist() if tau not in self._seen]
        if new:
            self._seen.update(zip(new, self._counts(np.array(new)), strict=True))
        return np.array([self._seen[tau] for tau in taus.tolist()]).reshape(len(taus), len(self.counters))

    def _upto(self, taus: Floats) -> Floats:
        return self._below(np.nextafter(taus, np.inf))

    def _counts(self, taus: Floats) -> Floats:
        rows = last_ranks(self.tally, self.k, taus)
        return np.stack([counter(rows) for counter in self.counters], axis=1)


def is_counted(mechanism: Mechanism, wanted: Wanted) -> bool:
    """Whether choices can be counted that are good enough: of sets nobody counts how many of them are right."""
    return mechanism.ordered or not isinstance(wanted, Hits)


def _counter_of(count: Callable[[Ranks, int], Floats], wanted: Wanted) -> Counter:
    if isinstance(wanted, Hits):
        return partial(log_right_sequences, wanted.right, wanted.least)
    return partial(_within, count, *wanted)


def _within(count: Callable[[Ranks, int], Floats], h: int, t: int, last: Ranks) -> Floats:
    """The log number of choices that hold all ranks below h and none from t on."""
    return count(np.minimum(last, t - 1), h)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Intervals of tau. Weights are divided by exp(top), which keeps them within the range of floats.

    Attributes
    ----------
    edges
        Where the intervals begin, and where the last one ends.
    begin, end
        The log counts of all choices and of each region, at the beginning and just before the end of each interval.
    moved
        How far the guess at the weight of each interval may be off.
    sharp
        Whether the count at the beginning has the step there, if there is one.
    """

    rate: float
    edges: Floats
    begin: Floats
    end: Floats
    moved: Floats
    sharp: NDArray[np.bool_]
    top: float

    @property
    def highest(self) -> float:
        """The log of the most that one interval may weigh."""
        return float((self.end[:, 0] - self.rate * self.edges[:-1]).max())

    @property
    def most(self) -> Floats:
        """The most that each region may weigh in each interval."""
        return np.exp(self.end + self._log_share)

    @cached_property
    def doubt(self) -> Floats:
        """How much more that is than it weighs for certain."""
        with np.errstate(invalid="ignore"):
            return np.asarray(
                -self.most * np.expm1(np.where(self.end > -np.inf, self.begin - self.end, 0.0)), np.float64
            )

    @cached_property
    def _log_share(self) -> Floats:
        """What a count is multiplied by in each interval: exp(-rate a) - exp(-rate b), less top."""
        start = -self.rate * self.edges[:-1] - self.top
        return (start + np.log(-np.expm1(-self.rate * np.diff(self.edges))))[:, None]

    def nothing(self, goal: float) -> bool:
        """Whether no region can have a share above the goal."""
        most = np.logaddexp.reduce((self.end + self._log_share)[:, 1:], axis=0)
        least = np.logaddexp.reduce((self.begin + self._log_share)[:, 0])
        return bool(most.max() <= log(goal) + least)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each region in each interval, if the log count were a straight line there."""
        length = (self.rate * np.diff(self.edges))[:, None]
        start = (-self.rate * self.edges[:-1] - self.top)[:, None]
        with np.errstate(invalid="ignore"):
            rise = np.where(self.begin > -np.inf, self.end - self.begin, 0.0) - length
        # integral of c exp(-c tau + a straight line) = c (b - a) exp(start) (exp(rise) - 1) / rise
        return length * np.exp(start + self.begin + _log_mean_exp(rise))

    def sharpen(self, places: Ranks, begin: Floats) -> _Parts:
        """The intervals with a sharp beginning of some."""
        new, sharp = self.begin.copy(), self.sharp.copy()
        new[places], sharp[places] = begin, True
        return replace(self, begin=new, sharp=sharp)

    def halve(self, places: Ranks, middle: Floats, below: Floats) -> _Parts:
        """The intervals with some of them cut in two, given the log counts before the cuts."""
        begin, end = np.insert(self.begin, places + 1, below, axis=0), np.insert(self.end, places, below, axis=0)
        edges, moved = np.insert(self.edges, places + 1, middle), np.insert(self.moved, places, np.inf, axis=0)
        return _Parts(self.rate, edges, begin, end, moved, np.insert(self.sharp, places + 1, False), self.top)


def _log_mean_exp(rise: Floats) -> Floats:
    """log((exp(x) - 1) / x)."""
    size = np.maximum(np.abs(rise), 1e-300)
    # For a rise of x > 0: x + log((1 - exp(-x)) / x)
    flat = np.where(size < 1e-8, -0.5 * size, np.log(-np.expm1(-size)) - np.log(size))
    return np.maximum(rise, 0.0) + flat
