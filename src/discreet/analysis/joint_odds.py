"""Probabilities of goals under the joint mechanism, from the number of choices with a loss up to tau.

A weight exp(-c loss) is the probability that an exponential variable of rate c exceeds the loss (docs/proofs.md, 5), so
the weights of a region add up to the integral of c exp(-c tau) N(tau), where N(tau) counts its choices of loss at most
tau. N is a step function: it is known exactly between steps and bounded by its values at the ends of an interval
elsewhere; intervals are halved where that matters. Counts do not depend on c, so they serve for every epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, log, log2
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.analysis.found import among_found
from discreet.analysis.goals import Hits, Wanted
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import log_binomial_float
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.joint import Joint, last_ranks, log_count_float
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.mechanisms.sampler import Sampler
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity
from discreet.release.request import GroupedRequest, Request, make_grouped_request, make_request
from discreet.sources.base import GroupedSource

Counter = Callable[[Ranks], Floats]
"""From rows of last ranks to the log number of choices within them."""

_SHORT, _OFTEN = 16, 8
"""States of a block that shares one scale, and places between two rescalings: counts then stay within floats."""

_BLOCK = 64
"""Heights of a block that shares one scale."""

_TINY = 1e-290
_RANGE = log(1e307) - log(_TINY)
"""Counts start at `_TINY`; up to this log number of ways plain floats do not overflow."""

_CELLS = 1 << 17
"""The number of array elements processed at once: as many as stay in the cache."""

_ROUGH = 0.25
"""The share of all weight that the first intervals may leave uncertain."""

_MOST_INTERVALS = 1 << 16
"""The number of intervals beyond which the remaining error is reported as it is."""

_ROUNDING = 1e-12
"""Floating-point error of a share."""

_TRUST, _CAUTION = 0.2, 3.0
"""The least factor by which an estimated error shrinks per halving, and the factor by which it is exceeded."""

_NEGLIGIBLE = 40.0
"""Losses beyond which all choices together have a share below exp(-40) are left out."""


@dataclass(frozen=True)
class JointOverSets(Mechanism):
    """The joint exponential mechanism over sets in rank order, for `utility` and its like; `top_k` refuses it.

    It chooses among sets in place of sequences, with the same loss and the same privacy, and has no sampler.

    Examples
    --------
    >>> import discreet
    >>> from discreet.analysis import JointOverSets
    >>> scores = [9, 8, 7, 3, 2, 1]
    >>> sets, sequences = (discreet.utility(scores, 3, 1, m) for m in (JointOverSets(), discreet.Joint()))
    >>> sets.top > sequences.top
    True
    """

    name: ClassVar[str] = "joint"
    ordered: ClassVar[bool] = False

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        return Joint().prepare(tally, k, epsilon, sensitivity)

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        return Joint().zcdp(epsilon, k)

    def parameters(self) -> dict[str, Any]:
        return {"over": "sets"}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        return Joint().unit_cost(s, k)

    @property
    def label(self) -> str:
        return f"{self.name}, sets"

    @property
    def form(self) -> Form:
        return Form.LOSSES

    @property
    def is_drawable(self) -> bool:
        return False


def check_comparable(mechanism: Any) -> Mechanism:
    """Return the mechanism, or raise unless it can be drawn from or compared with."""
    if isinstance(mechanism, Joint) and not mechanism.is_drawable:
        # The deprecated spelling of JointOverSets.
        return JointOverSets()
    return mechanism if isinstance(mechanism, JointOverSets | Sampler) else check_mechanism(mechanism)


def make_analysis_request(
    scores: Any, k: Any, epsilon: Any, mechanism: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> Request:
    """Return a request for analysis alone: its mechanism need not have a sampler."""
    asked, compared = _find_drawable(mechanism)
    request = make_request(scores, k, epsilon, mechanism=asked, sensitivity=sensitivity, adjacency=adjacency)
    return among_found(request if compared is None else draw_by(request, compared))


def make_grouped_analysis_request(
    scores: GroupedSource, k: Any, epsilon: Any, mechanism: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> GroupedRequest:
    """Return the requests of all groups, for analysis alone."""
    asked, compared = _find_drawable(mechanism)
    every = make_grouped_request(scores, k, epsilon, mechanism=asked, sensitivity=sensitivity, adjacency=adjacency)
    return every if compared is None else replace(every, requests=[draw_by(one, compared) for one in every.requests])


def _find_drawable(mechanism: Any) -> tuple[Mechanism | None, Mechanism | None]:
    """Return a mechanism to make the request with, and one to put in its place if that one cannot be drawn from."""
    compared = None if mechanism is None else check_comparable(mechanism)
    if compared is None or compared.is_drawable:
        return compared, None
    # Joint over sequences has the same loss and so the same guarantee. A Sampler states its own guarantee.
    return DEFAULT if isinstance(compared, Sampler) else Joint(), compared


def draw_by(request: Request, mechanism: Mechanism) -> Request:
    """Return the request with a mechanism that is only compared with."""
    return replace(request, guarantee=replace(request.guarantee, mechanism=mechanism))


def is_counted(mechanism: Mechanism, wanted: Wanted) -> bool:
    """Return True if the choices that reach a goal can be counted; hits are not counted for sets."""
    return mechanism.ordered or not isinstance(wanted, Hits)


@dataclass(frozen=True, eq=False)
class Layers:
    """The choices of k items by their loss, counted in total and within some regions.

    Attributes
    ----------
    tally, k
        The scores, and the number of items in a choice.
    counters
        The counters of all choices, then of each region.
    """

    tally: Tally
    k: int
    counters: Sequence[Counter]
    _seen: dict[float, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, tally: Tally, k: int, mechanism: Mechanism, wanted: Sequence[Wanted]) -> Layers:
        """Count the choices of a mechanism and those that reach each wanted goal, or their right items."""
        log_count = log_sequences if mechanism.ordered else log_sets

        def make_counter(one: Wanted) -> Counter:
            if isinstance(one, Hits):
                return partial(_log_right_sequences, one.right, one.least)
            # Choices that hold all ranks below h and none from t on.
            h, t = one
            return lambda last: log_count(np.minimum(last, t - 1), h)

        return cls(tally, k, [lambda last: log_count(last, 0), *map(make_counter, wanted)])

    @classmethod
    def of_set(cls, tally: Tally, mechanism: Mechanism, ranks: Ranks) -> Layers:
        """Count the choices of a mechanism and those of exactly these ascending ranks."""
        log_count = log_sequences if mechanism.ordered else log_sets

        def log_count_of_ranks(last: Ranks) -> Floats:
            if not mechanism.ordered:
                return np.where((ranks <= last).all(axis=1), 0.0, -np.inf)
            free = np.searchsorted(ranks, last, side="right") - np.arange(len(ranks))
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(np.maximum(free, 0)).sum(axis=1), np.float64)

        return cls(tally, len(ranks), [lambda last: log_count(last, 0), log_count_of_ranks])

    def on(self, tally: Tally) -> Layers:
        """Return the layers of a tally that may be on another scale; the same tally keeps its counts."""
        return self if tally is self.tally else Layers(tally, self.k, self.counters)

    def shares(self, rate: float, goal: float) -> tuple[list[float], float]:
        """Return the probability of each region if a choice weighs exp(-rate * loss), and their error."""
        parts = self._rough(rate, goal)
        if parts.is_below(goal):
            return [0.0] * (len(self.counters) - 1), goal
        while True:
            sums = parts.weights.sum(axis=0)
            shares = np.minimum(sums[1:] / sums[0], 1.0)
            doubt = np.minimum(parts.doubt, _CAUTION * parts.moved)
            # Errors of the weight of a region and of the weight of all choices add up.
            off = (doubt[:, 1:] + doubt[:, :1] * shares).max(axis=1) / sums[0]
            if off.sum() <= goal or len(off) > _MOST_INTERVALS:
                return shares.tolist(), float(off.sum()) + _ROUNDING
            parts = self._split(parts, np.flatnonzero(off > goal / (2.0 * len(off))))

    def _rough(self, rate: float, goal: float) -> _Parts:
        """Return intervals that leave a quarter of all weight uncertain, or show that no region is above the goal."""
        everything = float(self._below(np.array([np.inf]))[0, 0])
        # Beyond this loss the share of all choices together is negligible.
        end = 2.0 ** ceil(log2((everything + _NEGLIGIBLE) / rate))
        edges = np.array([0.0, end])
        begin, finish = self._upto(edges[:-1]), self._below(edges[1:])
        parts = _Parts(rate, edges, begin, finish, np.full(begin.shape, np.inf), np.ones(1, bool), everything)
        while True:
            parts = replace(parts, top=float((parts.end[:, 0] - rate * parts.edges[:-1]).max()))
            doubt = parts.doubt[:, 0] / parts.most[:, 0].sum()
            if doubt.sum() <= _ROUGH or parts.is_below(goal):
                return replace(parts, moved=parts.doubt)
            parts = self._split(parts, np.flatnonzero(doubt > _ROUGH / (2.0 * len(doubt))))

    def _split(self, parts: _Parts, places: Ranks) -> _Parts:
        """Halve some of the intervals.

        A new right half takes as its first count the one just before its left edge, which may miss a step there: most
        intervals are never halved again, and this saves one count for each.
        """
        blunt = places[~parts.sharp[places]]
        begin, sharp = parts.begin.copy(), parts.sharp.copy()
        begin[blunt], sharp[blunt] = self._upto(parts.edges[blunt]), True
        parts = replace(parts, begin=begin, sharp=sharp)
        middle = 0.5 * (parts.edges[places] + parts.edges[places + 1])
        below = self._below(middle)
        halves = _Parts(
            parts.rate,
            np.insert(parts.edges, places + 1, middle),
            np.insert(parts.begin, places + 1, below, axis=0),
            np.insert(parts.end, places, below, axis=0),
            np.insert(parts.moved, places, np.inf, axis=0),
            np.insert(parts.sharp, places + 1, False),
            parts.top,
        )
        first = places + np.arange(len(places))
        # The change of an estimate when its interval is halved estimates the error of the halves.
        moved = np.abs(parts.weights[places] - halves.weights[first] - halves.weights[first + 1])
        # One small change may be chance, so an estimated error shrinks by a limited factor per halving.
        moved = np.maximum(moved, _TRUST * parts.moved[places])
        halves.moved[first] = halves.moved[first + 1] = moved
        # The log count is not a straight line where a region begins inside an interval; only the bound holds there.
        halves.moved[(halves.begin == -np.inf) & (halves.end > -np.inf)] = np.inf
        return halves

    def _below(self, taus: Floats) -> Floats:
        """Return the log counts of all choices and of each region with a loss below each tau."""
        new = [tau for tau in taus.tolist() if tau not in self._seen]
        if new:
            rows = last_ranks(self.tally, self.k, np.array(new))
            self._seen.update(zip(new, np.stack([counter(rows) for counter in self.counters], axis=1), strict=True))
        return np.array([self._seen[tau] for tau in taus.tolist()]).reshape(len(taus), len(self.counters))

    def _upto(self, taus: Floats) -> Floats:
        return self._below(np.nextafter(taus, np.inf))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Intervals of tau, with weights divided by exp(top) to keep them within the range of floats.

    Attributes
    ----------
    edges
        The left edges of the intervals and the right edge of the last.
    begin, end
        The log counts of all choices and of each region, at the beginning and just before the end of each interval.
    moved
        The estimated error of the weight of each interval.
    sharp
        True if the count at the beginning includes a step there.
    """

    rate: float
    edges: Floats
    begin: Floats
    end: Floats
    moved: Floats
    sharp: NDArray[np.bool_]
    top: float

    @property
    def most(self) -> Floats:
        """Return an upper bound on the weight of each region in each interval."""
        return np.exp(self.end + self._log_share)

    @cached_property
    def doubt(self) -> Floats:
        """Return the difference between the upper and the lower bound on each weight."""
        with np.errstate(invalid="ignore"):
            return np.asarray(
                -self.most * np.expm1(np.where(self.end > -np.inf, self.begin - self.end, 0.0)), np.float64
            )

    @cached_property
    def _log_share(self) -> Floats:
        """Return log(exp(-rate a) - exp(-rate b)) - top for each interval [a, b): the log weight of one choice."""
        start = -self.rate * self.edges[:-1] - self.top
        return (start + np.log(-np.expm1(-self.rate * np.diff(self.edges))))[:, None]

    def is_below(self, goal: float) -> bool:
        """Return True if no region can have a share above the goal."""
        most = np.logaddexp.reduce((self.end + self._log_share)[:, 1:], axis=0)
        least = np.logaddexp.reduce((self.begin + self._log_share)[:, 0])
        return bool(most.max() <= log(goal) + least)

    @cached_property
    def weights(self) -> Floats:
        """Return an estimate of the weight of each region in each interval, with a log count linear in tau."""
        length = (self.rate * np.diff(self.edges))[:, None]
        start = (-self.rate * self.edges[:-1] - self.top)[:, None]
        with np.errstate(invalid="ignore"):
            rise = np.where(self.begin > -np.inf, self.end - self.begin, 0.0) - length
        # The integral of c exp(-c tau + log count) is c (b - a) exp(start) (exp(rise) - 1) / rise.
        size = np.maximum(np.abs(rise), 1e-300)
        # log((exp(x) - 1) / x), for x > 0 as x + log((1 - exp(-x)) / x)
        flat = np.where(size < 1e-8, -0.5 * size, np.log(-np.expm1(-size)) - np.log(size))
        return np.asarray(length * np.exp(start + self.begin + (np.maximum(rise, 0.0) + flat)), np.float64)


# A loss below tau means that the i-th item is one of the first n_i ranks, with n_i that do not decrease. Sequences of
# distinct items are then chosen place by place; sets are increasing ranks below a staircase, counted by running sums.
# A row of `last` holds n_i - 1, the last rank allowed in each place, for one tau.


def log_sequences(last: Ranks, h: int) -> Floats:
    """Return the log number of sequences of distinct ranks, the i-th at most last[i], that hold all ranks below h."""
    if h == 0 or int(last.max()) < last.shape[1]:
        # With only k ranks to choose from, every sequence holds all of them.
        return log_count_float(last)
    size = max(1, _CELLS // (min(h, last.shape[1] - h) + 1))
    return np.concatenate([_log_holding(last[row : row + size], h) for row in range(0, len(last), size)])


def _log_right_sequences(right: int, least: int | None, last: Ranks) -> Floats:
    """Return the log number of sequences with `least` ranks below `right`; None weighs each by its share of those.

    A sequence is chosen place by place, the i-th rank among n_i - i; the remaining right ranks are equally likely.
    """
    rows, k = last.shape
    if least is None:
        held = np.zeros(rows)
        for place in range(k):
            n = last[:, place] + 1.0
            held += (np.minimum(n, right) - held) / (n - place)
        rate = held / k
    else:
        # The distribution of the number of wrong ranks so far, up to the most allowed.
        wrong = np.arange(k - least + 1.0)
        chances = np.zeros((rows, k - least + 1))
        chances[:, 0] = 1.0
        for place in range(k):
            n = last[:, place, None] + 1.0
            hit = np.clip((np.minimum(n, right) - (place - wrong)) / (n - place), 0.0, 1.0)
            missed = chances * (1.0 - hit)
            chances *= hit
            chances[:, 1:] += missed[:, :-1]
        rate = np.minimum(chances.sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(log_count_float(last) + np.log(rate), np.float64)


def _log_holding(last: Ranks, h: int) -> Floats:
    """Count the sequences that hold all ranks below h, place by place, by the number of such ranks held so far.

    A rank below h is one of min(n, h) minus those held; another is one of n - h minus those taken. States lie in short
    blocks with a logarithmic scale each, because counts of neighbouring states may differ by a factor n.
    """
    rows, k = last.shape
    # The state is the smaller of two numbers: the ranks below h that are held, or the other ranks taken.
    few_held, most = h <= k - h, min(h, k - h)
    blocks = most // _SHORT + 1
    state = np.arange(blocks * _SHORT, dtype=np.float64).reshape(blocks, _SHORT)
    ways, scale = np.zeros((rows, blocks, _SHORT)), np.zeros((rows, blocks))
    ways[:, 0, 0] = 1.0
    step = np.ones((rows, blocks - 1))
    for place in range(k):
        n = last[:, place, None, None] + 1.0
        held = state if few_held else place - state
        hold, take = np.minimum(n, h) - held, np.maximum(n - h, 0.0) - (place - held)
        moving, staying = (hold, take) if few_held else (take, hold)
        moved = ways * np.maximum(moving, 0.0)
        ways *= np.maximum(staying, 0.0)
        ways[:, :, 1:] += moved[:, :, :-1]
        ways[:, 1:, 0] += moved[:, :-1, -1] * step
        if place % _OFTEN == 0:
            # Scale the largest count of each block to 1; `step` converts a count to the scale of the next block.
            largest = ways.max(axis=2)
            filled = largest > 0.0
            ways /= np.where(filled, largest, 1.0)[:, :, None]
            scale += np.log(np.where(filled, largest, 1.0))
            for block in range(1, blocks):
                # A block that no count has reached yet takes the scale of the block before it.
                scale[:, block] = np.where(filled[:, block], scale[:, block], scale[:, block - 1])
            step = np.exp(scale[:, :-1] - scale[:, 1:])
    with np.errstate(divide="ignore"):
        block, inside = divmod(most, _SHORT)
        return np.asarray(np.log(ways[:, block, inside]) + scale[:, block], np.float64)


def log_sets(last: Ranks, h: int) -> Floats:
    """Return the log number of sets of ranks, the i-th smallest at most last[i], that hold all ranks below h."""
    k = last.shape[1]
    if h == k:
        return np.zeros(len(last))
    # The distance of each rank from its place does not decrease, and stays below `room`.
    room = (last - np.arange(k) + 1)[:, h:]
    room = np.minimum.accumulate(room[:, ::-1], axis=1)[:, ::-1]
    size = max(1, _CELLS // int(room.max()))
    order = np.argsort(room.sum(axis=1))
    found = np.empty(len(last))
    for row in range(0, len(last), size):
        some = order[row : row + size]
        found[some] = _log_monotone(room[some])
    return found


def _log_monotone(room: Ranks) -> Floats:
    """Return the log number of non-decreasing sequences of whole numbers from 0 on, the i-th below room[i].

    By running sums: the sequences that end at u are those that ended at u or below one place before. Once the room
    stays the same, a binomial counts the ways on from u.
    """
    widest = room[:, -1]
    steady = int((room == widest[:, None]).sum(axis=1).min())
    climbing = room[:, : room.shape[1] - steady]
    if not climbing.shape[1]:
        return log_binomial_float(np.full_like(widest, steady), widest - 1)
    # An upper bound: C(widest - 1 + places, places) is the number if the room is always the widest.
    most = float(log_binomial_float(np.array([climbing.shape[1]]), widest.max(keepdims=True) - 1)[0])
    log_ways = _log_ways_plain if most < _RANGE else _log_ways_by_blocks
    logs = log_ways(climbing, int(climbing.max()))
    height = np.arange(logs.shape[1])
    onward = log_binomial_float(np.full_like(height, steady), np.maximum(widest[:, None] - 1 - height, 0))
    return np.asarray(np.logaddexp.reduce(logs + onward, axis=1), np.float64)


def _log_ways_plain(room: Ranks, widest: int) -> Floats:
    """Return the log number of ways to each height, with one scale for all."""
    ways = np.zeros((len(room), widest))
    ways[:, 0] = _TINY
    for place in range(room.shape[1]):
        width = int(room[:, place].max())
        np.cumsum(ways[:, :width], axis=1, out=ways[:, :width])
        _cut(ways, room[:, place])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(ways) - log(_TINY), np.float64)


def _log_ways_by_blocks(room: Ranks, widest: int) -> Floats:
    """Return the log number of ways to each height, with a logarithmic scale for each block of 64 heights.

    One scale would not do: the counts that matter in the end may be the smallest of all for many places.
    """
    rows, blocks = len(room), -(-widest // _BLOCK)
    ways, scale = np.zeros((rows, blocks, _BLOCK)), np.zeros((rows, blocks))
    ways[:, 0, 0] = 1.0
    for place in range(room.shape[1]):
        width = -(-int(room[:, place].max()) // _BLOCK)
        sums = ways[:, :width]
        np.cumsum(sums, axis=2, out=sums)
        with np.errstate(divide="ignore"):
            total = np.log(sums[:, :, -1]) + scale[:, :width]
        before = np.full((rows, width), -np.inf)
        np.logaddexp.accumulate(total[:, :-1], axis=1, out=before[:, 1:])
        larger = np.maximum(total, before)
        sums *= np.exp(scale[:, :width] - larger)[:, :, None]
        sums += np.exp(before - larger)[:, :, None]
        scale[:, :width] = larger
        _cut(ways.reshape(rows, -1), room[:, place])
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(ways) + scale[:, :, None]).reshape(rows, -1), np.float64)


def _cut(ways: Floats, room: Ranks) -> None:
    """Set the number of ways to zero at heights that are not below `room`."""
    least, most = int(room.min()), min(int(room.max()) + _BLOCK, ways.shape[1])
    if least < most:
        ways[:, least:most] *= np.arange(least, most) < room[:, None]
