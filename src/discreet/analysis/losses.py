"""How many sequences, or sets, have a loss of the joint mechanism below a bound, and are good: counts, as logarithms.

A loss below tau means that the i-th item is one of the first n_i ranks, with n_i that do not decrease. Sequences of
distinct items are then chosen place by place; sets are increasing ranks below a staircase, counted by running sums.
A row of `last` holds n_i - 1, the last rank allowed in each place, for one tau.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import log_binomial_float
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.joint import log_count_float

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
