"""Exponential races: elements arrive as Poisson processes, with the value gain + G(E) at time E, and the best win.

G is a decreasing function, the noise. Elements are grouped in streams that share one process, whose arrivals draw an
element uniformly and may be thinned (docs/proofs.md, section 9.2). The winners are a function of the arrivals alone, so
arrivals may be inspected in any order and in excess. Floats with proven error bounds choose the next stream to inspect
and decide when no stream can hold a winner any more; values whose bounds overlap are compared as balls.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cmp_to_key, partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from flint import arb

from discreet.errors import InternalError
from discreet.exact.arrays import Floats, Ranks, Words
from discreet.exact.ball import (
    FLOAT_MARGIN,
    LARGEST,
    MAX_SCANNED,
    START_PRECISION,
    EnvelopeError,
    ball,
    bound_above,
    bound_below,
    find_floor,
    float_above,
    is_less,
    precision,
    sum_exponentials,
)
from discreet.exact.entropy import Entropy, Uniform
from discreet.exact.times import BallTime, NoiseFormula, StreamTimes, bound_exponentials, evaluate_noise, reveal_all

Member = TypeVar("Member")


@dataclass(eq=False, repr=False)
class _Contender(Generic[Member]):
    """An arrival with its exact value: the gain of a member plus the noise at the time of its arrival."""

    member: Member
    uniforms: list[Uniform]
    gain: Callable[[], arb]
    rate: Callable[[], arb]
    noise: NoiseFormula

    def value(self) -> arb:
        noise: arb = self.noise.inverse(BallTime(sum_exponentials(self.uniforms) / self.rate()))
        return self.gain() + noise

    def loses_to(self, other: _Contender[Any]) -> bool:
        # Two arrivals of one stream share uniforms: each is extended once, in an order that never varies.
        both = list(dict.fromkeys([*self.uniforms, *other.uniforms]))
        return is_less(self.value, other.value, lambda words: reveal_all(both, words))

    def certainly_beats(self, reach: float) -> bool:
        with precision(START_PRECISION):
            return bool(self.value() > arb(reach))

    def round_noise(self, scale: Fraction, base: Fraction, times: StreamTimes) -> int:
        """Return floor(base + scale noise + 1/2), decided exactly; `times` are those of the stream."""
        count = len(self.uniforms)

        def value() -> arb:
            noise: arb = self.noise.inverse(BallTime(times.total(count) / self.rate()))
            return ball(base + Fraction(1, 2)) + ball(scale) * noise

        return find_floor(value, lambda words: reveal_all(self.uniforms, words))


def _compare(one: _Contender[Any], other: _Contender[Any]) -> int:
    """Order contenders by falling value."""
    return 1 if one.loses_to(other) else -1


# One winner


class Streams(Protocol[Member]):
    """Streams of thinned arrivals, for `sample_winner`."""

    @property
    def bound(self) -> Floats:
        """An upper bound on the gain of every member of each stream."""

    @property
    def log_rate(self) -> Floats:
        """The logarithm of the rate of each stream, to a relative (or absolute) 2^-41."""

    def rate(self, j: int) -> arb:
        """Return a ball around the rate of stream j."""

    def arrive(self, j: int, entropy: Entropy) -> Member | None:
        """Draw the member that arrives next in stream j, or None if the arrival is thinned out."""

    def gain(self, member: Member) -> arb:
        """Return a ball around the gain of a member."""


def sample_winner(streams: Streams[Member], noise: NoiseFormula, entropy: Entropy) -> Member:
    """Draw the member with the largest value, where every member arrives as a Poisson process of its own rate.

    Only the first arrival of a member matters, because later ones have less noise. A member of rate n therefore has
    the distribution of the best of n elements, each with one independent noise. Raise EnvelopeError if the gain of a
    member exceeds the bound of its stream.
    """
    words = entropy.words(len(streams.bound))
    total, _ = bound_exponentials(words, entropy.word)
    reach = _bound_values_ahead(streams.bound, total, streams.log_rate, noise)
    arrivals: dict[int, list[Uniform]] = {}
    best: _Contender[Member] | None = None
    while True:
        j = int(np.argmax(reach))
        if best is not None and (reach[j] == -np.inf or best.certainly_beats(float(reach[j]))):
            return best.member
        uniforms = arrivals.setdefault(j, [Uniform(entropy, int(words[j]))])
        rate = partial(streams.rate, j)
        if best is not None:
            # The largest value that stream j can still reach, exactly: floats cannot see noise below their error.
            ceiling = _Contender(None, uniforms, partial(arb, float(streams.bound[j])), rate, noise)
            if ceiling.loses_to(best):
                reach[j] = -np.inf
                continue
        member = streams.arrive(j, entropy)
        if member is not None:
            with precision(START_PRECISION):
                if streams.gain(member) > arb(float(streams.bound[j])):
                    raise EnvelopeError
            rival = _Contender(member, list(uniforms), partial(streams.gain, member), rate, noise)
            if best is None or best.loses_to(rival):
                best = rival
        uniforms.append(following := entropy.uniform())
        step, _ = bound_exponentials(np.array([following.numerator], np.uint64), entropy.word)
        total[j] += step[0]
        here = slice(j, j + 1)
        reach[here] = _bound_values_ahead(streams.bound[here], total[here], streams.log_rate[here], noise)


def _bound_values_ahead(bound: Floats, total: Floats, log_rate: Floats, noise: NoiseFormula) -> Floats:
    """Return upper bounds on the values of the current and all later arrivals of the streams."""
    value, off = evaluate_noise(noise, total * (1.0 - FLOAT_MARGIN), log_rate)
    return bound + value + off + FLOAT_MARGIN * (np.abs(bound) + np.abs(value))


def scan_best(
    members: Iterable[Member],
    places: int,
    gain: Callable[[Member], arb],
    rate: Callable[[Member], arb],
    noise: NoiseFormula,
    entropy: Entropy,
) -> list[_Contender[Member]]:
    """Draw the noise of every member and return the `places` members with the largest values, best first.

    A member of rate n has the largest noise of n elements. The scan visits all members and relies on no bound.
    """
    contenders = [
        _Contender(member, [entropy.uniform()], partial(gain, member), partial(rate, member), noise)
        for member in members
    ]
    by_value: Callable[[_Contender[Member]], Any] = cmp_to_key(lambda one, other: _compare(other, one))
    return heapq.nlargest(places, contenders, key=by_value)


# Several winners


class UniformStreams(Protocol):
    """Elements in a row, cut into streams of neighbours that arrive with equal probability, for `sample_best`."""

    @property
    def start(self) -> Ranks:
        """The first element of each stream, ascending from 0."""

    @property
    def cells(self) -> Ranks:
        """The number of elements of each stream."""

    @property
    def bound(self) -> Floats:
        """An upper bound on the gain of every element of each stream."""

    def gain_float(self, elements: Ranks, above: int | None = None) -> Floats:
        """Return the gains of elements, to a relative (or absolute) 2^-41; infinity stands for all beyond the floats.

        With `above`, gains are relative to that of the element `above`.
        """

    def gain(self, element: int) -> arb:
        """Return a ball around the gain of an element."""


class NoisyWinners(Protocol):
    """The winners of a race, best first, with their noise."""

    @property
    def elements(self) -> Ranks:
        """The elements that won."""

    def round_noises(self, scale: Fraction, base: Callable[[int], Fraction]) -> list[int]:
        """Return floor(base(element) + scale noise + 1/2) for each winner, exactly; scale is above zero."""


@dataclass(frozen=True, eq=False, repr=False)
class _ScannedWinners:
    """The winners of a scan."""

    contenders: list[_Contender[int]]

    @property
    def elements(self) -> Ranks:
        return np.array([each.member for each in self.contenders], np.int64)

    def round_noises(self, scale: Fraction, base: Callable[[int], Fraction]) -> list[int]:
        return [each.round_noise(scale, base(each.member), StreamTimes(each.uniforms)) for each in self.contenders]


@dataclass(eq=False, repr=False)
class _RaceForBest:
    """The state of a race for several winners: the first word of each arrival, and the uniforms made of these."""

    streams: UniformStreams
    noise: NoiseFormula
    entropy: Entropy
    words: dict[int, Words] = field(default_factory=dict)
    times: dict[int, StreamTimes] = field(default_factory=dict)


@dataclass(eq=False, repr=False)
class _Arrivals:
    """The distinct elements that have arrived, in parallel arrays, with bounds on their values and on their noise."""

    stream: Ranks
    turn: Ranks
    element: Ranks
    low: Floats
    high: Floats
    noise_low: Floats
    noise_high: Floats


@dataclass(frozen=True, eq=False, repr=False)
class _RacedWinners:
    """The winners of a race by streams."""

    _race: _RaceForBest
    _first: Words
    _pool: _Arrivals
    _winners: Ranks

    @property
    def elements(self) -> Ranks:
        return self._pool.element[self._winners]

    def round_noises(self, scale: Fraction, base: Callable[[int], Fraction]) -> list[int]:
        # Floats round where their bounds agree; elsewhere the uniforms of the race are extended until balls decide.
        race, pool, factor = self._race, self._pool, float_above(scale)
        bases = [base(element) for element in self.elements.tolist()]
        wholes = [each.__floor__() for each in bases]
        rest = np.array([float(each - whole) for each, whole in zip(bases, wholes, strict=True)]) + 0.5
        with np.errstate(over="ignore", invalid="ignore"):
            low = np.floor(bound_below(pool.noise_low[self._winners] * factor + rest))
            high = np.floor(bound_above(pool.noise_high[self._winners] * factor + rest))
        # Beyond 2^52 neighbouring floats are whole numbers, so that equal floors prove nothing.
        sure = (low == high) & (np.abs(low) < 2.0**52)
        rounded = [whole + int(near) if is_sure else 0 for whole, near, is_sure in zip(wholes, low, sure, strict=True)]
        for i in np.flatnonzero(~sure).tolist():
            arrival = int(self._winners[i])
            contender = _contender_at(race, self._first, *_locate(pool, arrival))
            rounded[i] = contender.round_noise(scale, bases[i], race.times[int(pool.stream[arrival])])
        return rounded


def sample_best(streams: UniformStreams, places: int, noise: NoiseFormula, entropy: Entropy) -> list[int]:
    """Draw the `places` elements with the largest values, best first, where each element has one independent noise."""
    best: list[int] = sample_noisy_best(streams, places, noise, entropy).elements.tolist()
    return best


def sample_noisy_best(streams: UniformStreams, places: int, noise: NoiseFormula, entropy: Entropy) -> NoisyWinners:
    """Draw the elements of `sample_best` together with their noise.

    If the bound of a stream turns out to be too low, all elements are scanned instead, up to MAX_SCANNED.
    """
    try:
        return _race_by_streams(streams, places, noise, entropy)
    except EnvelopeError:
        d = int(streams.start[-1]) + int(streams.cells[-1])
        if d > MAX_SCANNED:
            raise InternalError from None
        return _ScannedWinners(scan_best(range(d), places, streams.gain, lambda _: arb(1), noise, entropy))


def _race_by_streams(streams: UniformStreams, places: int, noise: NoiseFormula, entropy: Entropy) -> _RacedWinners:
    """Draw the winners, relying on the bounds of the streams, of which there are at least `places`.

    A stream of n elements is a process of rate n whose arrivals draw an element uniformly; the value of an element is
    that of its first arrival.
    """
    race = _RaceForBest(streams, noise, entropy)
    every = np.arange(len(streams.start))
    first = entropy.words(len(every))
    total_low, total_high = bound_exponentials(first, entropy.word)
    element = streams.start + entropy.upto_each(streams.cells - 1)
    pool = _bound_arrivals(race, every, np.zeros_like(every), element, total_low, total_high)
    log_rate = np.log(streams.cells.astype(np.float64))
    race.words = {int(j): first[j : j + 1] for j in np.flatnonzero(streams.cells > 1)}
    open_streams = streams.cells > 1
    while True:
        # Only a stream that can still exceed the lower bound of the last place is inspected further.
        bar = np.partition(pool.low, -places)[-places]
        reach = _bound_values_ahead(streams.bound, total_low, log_rate, noise)
        behind = np.flatnonzero(open_streams & (reach >= bar))
        if not len(behind):
            return _RacedWinners(race, first, pool, _rank_best(race, first, pool, float(bar), places))
        pools = [pool, *(_draw_more(race, int(j), pool, total_low, total_high) for j in behind)]
        pool = _Arrivals(*map(np.concatenate, zip(*(vars(each).values() for each in pools), strict=True)))
        arrived = np.bincount(pool.stream, minlength=len(every))
        open_streams &= arrived < streams.cells


def _draw_more(race: _RaceForBest, j: int, pool: _Arrivals, total_low: Floats, total_high: Floats) -> _Arrivals:
    """Draw as many further arrivals of stream j as it has had, and drop elements that have arrived before."""
    before = race.words[j]
    words = race.entropy.words(len(before))
    race.words[j] = np.concatenate([before, words])
    step_low, step_high = bound_exponentials(words, race.entropy.word)
    # A running sum of n positive terms has a relative error of at most n / 2^53.
    rounding = len(words) * 2.0**-52
    low = (total_low[j] + np.cumsum(step_low)) * (1.0 - rounding)
    high = (total_high[j] + np.cumsum(step_high)) * (1.0 + rounding)
    total_low[j], total_high[j] = low[-1], high[-1]
    last = np.full(len(words), race.streams.cells[j] - 1)
    element = race.streams.start[j] + race.entropy.upto_each(last)
    _, firsts = np.unique(element, return_index=True)
    firsts = np.sort(firsts[~np.isin(element[firsts], pool.element[pool.stream == j])])
    stream = np.full(len(firsts), j)
    return _bound_arrivals(race, stream, len(before) + firsts, element[firsts], low[firsts], high[firsts])


def _bound_arrivals(
    race: _RaceForBest, stream: Ranks, turn: Ranks, element: Ranks, low: Floats, high: Floats
) -> _Arrivals:
    """Return arrivals with bounds on their values; `low` and `high` bound the sums of exponentials before them."""
    gain = race.streams.gain_float(element)
    log_rate = np.log(race.streams.cells[stream].astype(np.float64))
    most, most_off = evaluate_noise(race.noise, low, log_rate)
    least, least_off = evaluate_noise(race.noise, high, log_rate)
    gain_low, gain_high = np.minimum(gain, LARGEST), np.maximum(gain, -LARGEST)
    if (bound_below(gain_low) > race.streams.bound[stream]).any():
        raise EnvelopeError
    noise_low = least - least_off - FLOAT_MARGIN * np.abs(least)
    noise_high = most + most_off + FLOAT_MARGIN * np.abs(most)
    noise_low = np.where(np.isnan(noise_low), -np.inf, noise_low)
    low, high = bound_below(gain_low) + noise_low, bound_above(gain_high) + noise_high
    return _Arrivals(stream, turn, element, np.where(np.isnan(low), -np.inf, low), high, noise_low, noise_high)


def _rank_best(race: _RaceForBest, first: Words, pool: _Arrivals, bar: float, places: int) -> Ranks:
    """Return the indices of the best arrivals in the pool, best first."""
    near = np.flatnonzero(pool.high >= bar)
    return _rank(race, first, pool, near, pool.low[near], pool.high[near], places)[:places]


def _rank(
    race: _RaceForBest, first: Words, pool: _Arrivals, some: Ranks, low: Floats, high: Floats, places: int
) -> Ranks:
    """Return arrivals best first, of which at least the first `places` are in order.

    Floats decide where their bounds are disjoint. They are coarse for scores far from the k-th: where bounds overlap,
    gains are therefore recomputed relative to one member of the group, so that the noise separates equal scores. Balls
    compare arrivals whose bounds overlap even then.
    """
    order = np.argsort(-high)
    ranked, lowest = some[order], np.minimum.accumulate(low[order])
    # Everything before a cut is certainly above everything after it.
    cuts = np.concatenate([[0], np.flatnonzero(high[order][1:] < lowest[:-1]) + 1, [len(some)]])
    for j in np.flatnonzero((np.diff(cuts) > 1) & (cuts[:-1] < places)).tolist():
        place = slice(cuts[j], cuts[j + 1])
        group = ranked[place]
        gain = race.streams.gain_float(pool.element[group], int(pool.element[group[0]]))
        closer_low = bound_below(np.minimum(gain, LARGEST)) + pool.noise_low[group]
        closer_high = bound_above(np.maximum(gain, -LARGEST)) + pool.noise_high[group]
        if (closer_high - closer_low).max() < 0.5 * (high - low)[order][place].max():
            ranked[place] = _rank(race, first, pool, group, closer_low, closer_high, places - int(cuts[j]))
        else:
            contenders = {i: _contender_at(race, first, *_locate(pool, i)) for i in group.tolist()}
            key = cmp_to_key(_compare)
            ranked[place] = sorted(contenders, key=lambda i: key(contenders[i]))
    return ranked


def _locate(pool: _Arrivals, arrival: int) -> tuple[int, int, int]:
    """Return the stream of an arrival, its turn in the stream, and its element."""
    return int(pool.stream[arrival]), int(pool.turn[arrival]), int(pool.element[arrival])


def _contender_at(race: _RaceForBest, first: Words, j: int, turn: int, element: int) -> _Contender[int]:
    """Return an arrival with its exact value."""
    words = race.words.get(j, first[j : j + 1])
    uniforms = race.times.setdefault(j, StreamTimes()).first(turn + 1, words, race.entropy)
    cells = int(race.streams.cells[j])
    return _Contender(element, uniforms, lambda: race.streams.gain(element), lambda: arb(cells), race.noise)
