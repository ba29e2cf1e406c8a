"""How likely joint is to release a good choice, from how many choices have a loss up to tau.

A weight exp(-c loss) is the chance that an exponential variable of rate c exceeds the loss, so all weights of a region
add up to the integral of c exp(-c tau) N(tau), where N(tau) counts its choices of loss at most tau. N is a staircase:
between two points without a step it is known exactly, elsewhere it lies between its values at the ends. Intervals are
halved where that matters; counts do not depend on c, so what was counted for one epsilon serves for the next.
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

from discreet.analysis.goals import Hits, Wanted
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import log_binomial_float
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.joint import Joint, last_ranks, log_count_float
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.mechanisms.sampler import Sampler
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity
from discreet.release.grouped_draw import GroupedRequest, make_grouped_request
from discreet.release.request import Request, make_request
from discreet.sources.base import GroupedSource

# How many sequences, or sets, have a loss of the joint mechanism below a bound, and are good: counts, as logarithms.
#
# A loss below tau means that the i-th item is one of the first n_i ranks, with n_i that do not decrease. Sequences of
# distinct items are then chosen place by place; sets are increasing ranks below a staircase, counted by running sums.
# A row of `last` holds n_i - 1, the last rank allowed in each place, for one tau.

Counter = Callable[[Ranks], Floats]
"""From rows of last ranks to the log number of choices within them."""


@dataclass(frozen=True)
class Choices:
    """What a mechanism with this loss chooses between.

    Attributes
    ----------
    log_count
        From rows of last ranks and some h to the log number of choices that hold all ranks below h.
    log_count_of
        From some ranks and rows of last ranks to the log number of choices of just these ranks.
    """

    log_count: Callable[[Ranks, int], Floats]
    log_count_of: Callable[[Ranks, Ranks], Floats]

    @classmethod
    def of(cls, mechanism: Mechanism) -> Choices:
        """The choices of a mechanism: sequences where it releases an order, and sets where it does not."""
        return cls(log_sequences, log_arrangements) if mechanism.ordered else cls(log_sets, log_one_set)


_BLOCK = 64
_SHORT, _OFTEN = 16, 8
_TINY = 1e-290
_RANGE = log(1e307) - log(_TINY)
_CELLS = 1 << 17
"""How many numbers are worked on at once: as many as stay in the cache."""


def log_sequences(last: Ranks, h: int) -> Floats:
    """The log number of sequences of distinct ranks, the i-th at most last[i], that hold all ranks below h."""
    if h == 0 or int(last.max()) < last.shape[1]:
        # With k ranks to choose from, all are held.
        return log_count_float(last)
    size = max(1, _CELLS // (min(h, last.shape[1] - h) + 1))
    return np.concatenate([_holding(last[row : row + size], h) for row in range(0, len(last), size)])


def log_right_sequences(right: int, least: int | None, last: Ranks) -> Floats:
    """The log number of sequences with at least so many ranks below `right`; None counts each by its share of those."""
    rate = _expected_share(last, right) if least is None else _chance_of_few_wrong(last, right, last.shape[1] - least)
    with np.errstate(divide="ignore"):
        return np.asarray(log_count_float(last) + np.log(rate), np.float64)


def _expected_share(last: Ranks, right: int) -> Floats:
    """Of sequences chosen place by place, the i-th of n_i - i ranks: the right ones left have equal chances."""
    rows, k = last.shape
    held = np.zeros(rows)
    for place in range(k):
        n = last[:, place] + 1.0
        held += (np.minimum(n, right) - held) / (n - place)
    return np.asarray(held / k, np.float64)


def _chance_of_few_wrong(last: Ranks, right: int, most: int) -> Floats:
    """The chance of at most so many wrong ranks in such a sequence, by how many there are up to each place."""
    rows, k = last.shape
    wrong = np.arange(most + 1.0)
    chances = np.zeros((rows, most + 1))
    chances[:, 0] = 1.0
    for place in range(k):
        n = last[:, place, None] + 1.0
        hit = np.clip((np.minimum(n, right) - (place - wrong)) / (n - place), 0.0, 1.0)
        missed = chances * (1.0 - hit)
        chances *= hit
        chances[:, 1:] += missed[:, :-1]
    return np.asarray(np.minimum(chances.sum(axis=1), 1.0), np.float64)


def _holding(last: Ranks, h: int) -> Floats:
    """Place by place: of i places, `held` went to ranks below h and the others to ranks from h on.

    A rank below h is one of min(n, h) less those held; another one of n - h less those taken. States lie in short
    blocks that have a logarithmic scale each, because from one state to the next counts may change by a factor n.
    """
    rows, k = last.shape
    # One number a state is enough, the smaller: how many are held, or how many are not.
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
            step = _rescale(ways, scale)
    with np.errstate(divide="ignore"):
        block, inside = divmod(most, _SHORT)
        return np.asarray(np.log(ways[:, block, inside]) + scale[:, block], np.float64)


def _rescale(ways: Floats, scale: Floats) -> Floats:
    """Brings the largest number of each block to 1; gives what a number is multiplied by on its way to the next."""
    largest = ways.max(axis=2)
    filled = largest > 0.0
    ways /= np.where(filled, largest, 1.0)[:, :, None]
    scale += np.log(np.where(filled, largest, 1.0))
    for block in range(1, scale.shape[1]):
        # One that nothing has reached yet has the scale of the one before.
        scale[:, block] = np.where(filled[:, block], scale[:, block], scale[:, block - 1])
    return np.exp(scale[:, :-1] - scale[:, 1:])


def log_arrangements(ranks: Ranks, last: Ranks) -> Floats:
    """The log number of sequences of just these ranks, the i-th at most last[i]."""
    free = np.searchsorted(ranks, last, side="right") - np.arange(last.shape[1])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(free, 0)).sum(axis=1), np.float64)


def log_sets(last: Ranks, h: int) -> Floats:
    """The log number of sets of ranks, the i-th smallest at most last[i], that hold all ranks below h."""
    k = last.shape[1]
    if h == k:
        return np.zeros(len(last))
    # How far each rank is above its place does not decrease, and stays below this.
    room = (last - np.arange(k) + 1)[:, h:]
    room = np.minimum.accumulate(room[:, ::-1], axis=1)[:, ::-1]
    size = max(1, _CELLS // int(room.max()))
    order = np.argsort(room.sum(axis=1))
    found = np.empty(len(last))
    for row in range(0, len(last), size):
        some = order[row : row + size]
        found[some] = _climbing(room[some])
    return found


def log_one_set(ranks: Ranks, last: Ranks) -> Floats:
    """The log number of sets of just these ascending ranks, the i-th at most last[i]: 0, or minus infinity for none."""
    return np.where((ranks <= last).all(axis=1), 0.0, -np.inf)


def _climbing(room: Ranks) -> Floats:
    """The log number of non-decreasing sequences of whole numbers from 0 on, the i-th below room[i].

    By running sums: as many end at u as ended at u or below one place before. Where the room grows no more, there are
    as many ways on from u as a binomial says.
    """
    widest = room[:, -1]
    steady = int((room == widest[:, None]).sum(axis=1).min())
    climbing = room[:, : room.shape[1] - steady]
    if not climbing.shape[1]:
        return log_binomial_float(np.full_like(widest, steady), widest - 1)
    # Were the room always the widest, there would be C(widest - 1 + places, places).
    most = float(log_binomial_float(np.array([climbing.shape[1]]), widest.max(keepdims=True) - 1)[0])
    ways = _plainly if most < _RANGE else _by_blocks
    logs = ways(climbing, int(climbing.max()))
    height = np.arange(logs.shape[1])
    onward = log_binomial_float(np.full_like(height, steady), np.maximum(widest[:, None] - 1 - height, 0))
    return np.asarray(np.logaddexp.reduce(logs + onward, axis=1), np.float64)


def _plainly(room: Ranks, widest: int) -> Floats:
    """The log number of ways to each height, in floats from the least to the largest there is."""
    ways = np.zeros((len(room), widest))
    ways[:, 0] = _TINY
    for place in range(room.shape[1]):
        width = int(room[:, place].max())
        np.cumsum(ways[:, :width], axis=1, out=ways[:, :width])
        _cut(ways, room[:, place])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(ways) - log(_TINY), np.float64)


def _by_blocks(room: Ranks, widest: int) -> Floats:
    """The log number of ways to each height, in blocks of 64 numbers that have a logarithmic scale each.

    Those that matter in the end may be the smallest of all for long, so that no one scale serves.
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
    """Leaves no way to end where there is no room."""
    least, most = int(room.min()), min(int(room.max()) + _BLOCK, ways.shape[1])
    if least < most:
        ways[:, least:most] *= np.arange(least, most) < room[:, None]


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


# The joint mechanism over sets: a rival that has a utility and no sampler.
#
# Its choices are sets in rank order in place of sequences, with the same loss and the same privacy. It is there to be
# compared with, so that the analysis knows it, and nothing that draws does.


@dataclass(frozen=True)
class JointOverSets(Mechanism):
    """The joint exponential mechanism over sets in rank order, for `utility` and its like; `top_k` refuses it.

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
    """The mechanism, which must be one to draw from or one that is only compared with."""
    if isinstance(mechanism, Joint) and not mechanism.is_drawable:
        # The deprecated spelling.
        return JointOverSets()
    return mechanism if isinstance(mechanism, JointOverSets | Sampler) else check_mechanism(mechanism)


def make_analysis_request(
    scores: Any, k: Any, epsilon: Any, mechanism: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> Request:
    """A request that is only asked how good its release would be: its mechanism need not have a sampler."""
    asked, compared = _find_drawable(mechanism)
    request = make_request(scores, k, epsilon, mechanism=asked, sensitivity=sensitivity, adjacency=adjacency)
    return request if compared is None else draw_by(request, compared)


def make_grouped_analysis_request(
    scores: GroupedSource, k: Any, epsilon: Any, mechanism: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> GroupedRequest:
    """The same for scores by group."""
    asked, compared = _find_drawable(mechanism)
    every = make_grouped_request(scores, k, epsilon, mechanism=asked, sensitivity=sensitivity, adjacency=adjacency)
    return every if compared is None else replace(every, requests=[draw_by(one, compared) for one in every.requests])


def _find_drawable(mechanism: Any) -> tuple[Mechanism | None, Mechanism | None]:
    """A mechanism that gives the guarantee, and where that has another sampler or none, the one that is asked about."""
    compared = None if mechanism is None else check_comparable(mechanism)
    if compared is None or compared.is_drawable:
        return compared, None
    # Over sequences the guarantee is the same: it is that of the loss. That of a sampler is its author's affair.
    return DEFAULT if isinstance(compared, Sampler) else Joint(), compared


def draw_by(request: Request, mechanism: Mechanism) -> Request:
    """The request with another mechanism that is only compared with."""
    return replace(request, guarantee=replace(request.guarantee, mechanism=mechanism))
