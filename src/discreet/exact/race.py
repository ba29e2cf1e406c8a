"""Races: elements arrive as Poisson processes, each arrival has the value gain + G(arrival time), the best values win.

Elements come in streams that share one process. An arrival of a stream draws one of its members uniformly (and may be
thinned), and its value is at most the stream's bound plus G(E). The outcome is a function of the arrivals alone, so
they may be looked at in any order, and looking at more of them than needed changes nothing. Floats choose where to look
and, with their error added, when a stream can hold no winner any more; two values are compared as balls.
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
from numpy.typing import NDArray

from discreet.errors import InternalError
from discreet.exact.arrays import Floats, Ranks, Words
from discreet.exact.ball import (
    LARGEST,
    MAX_SCANNED,
    RELATIVE,
    START,
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


class Streams(Protocol[Member]):
    """Streams of thinned arrivals, for `sample_winner`."""

    @property
    def bound(self) -> Floats:
        """At least the gain of every member of each stream."""

    @property
    def log_rate(self) -> Floats:
        """The logarithm of each stream's rate, to a relative (or absolute) 2^-41."""

    def rate(self, j: int) -> arb:
        """A ball around the rate of stream j."""

    def arrive(self, j: int, entropy: Entropy) -> Member | None:
        """Returns the member that arrives, or None where the arrival is thinned."""

    def gain(self, member: Member) -> arb:
        """A ball around the gain of a member."""


@dataclass(eq=False, repr=False)
class _Contender(Generic[Member]):
    """An arrival with its exact value: the gain of a member plus the noise of the time of its arrival."""

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

    def round_noise(self, scale: Fraction, base: Fraction, times: StreamTimes) -> int:
        """Return floor(base + scale noise + 1/2), decided exactly; the times are those of the stream."""
        count = len(self.uniforms)

        def value() -> arb:
            noise: arb = self.noise.inverse(BallTime(times.total(count) / self.rate()))
            return ball(base + Fraction(1, 2)) + ball(scale) * noise

        return find_floor(value, lambda words: reveal_all(self.uniforms, words))

    def certainly_beats(self, reach: float) -> bool:
        with precision(START):
            return bool(self.value() > arb(reach))


def scan_best(
    members: Iterable[Member],
    places: int,
    gain: Callable[[Member], arb],
    rate: Callable[[Member], arb],
    noise: NoiseFormula,
    entropy: Entropy,
) -> list[_Contender[Member]]:
    """Return the members with the largest values, best first, after giving every member its noise.

    A member of rate n has the largest noise of n elements. The scan relies on no bound and visits all members.
    """
    contenders = [
        _Contender(member, [entropy.uniform()], partial(gain, member), partial(rate, member), noise)
        for member in members
    ]
    return heapq.nlargest(places, contenders, key=cmp_to_key(_compare_upwards))


def sample_winner(streams: Streams[Member], noise: NoiseFormula, entropy: Entropy) -> Member:
    """Return the member with the largest value, where every member arrives as a Poisson process of its own rate.

    Only the first arrival of a member matters, because later ones have less noise; so the law is that of one value
    per element, with as many elements behind a member as its rate says. Raise EnvelopeError if a member turns out to
    gain more than the bound of its stream.
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
        if best is not None and _ceiling(streams, j, uniforms, noise).loses_to(best):
            # This stream is out; the others are still to be held against the best.
            reach[j] = -np.inf
            continue
        member = streams.arrive(j, entropy)
        if member is not None:
            with precision(START):
                if streams.gain(member) > arb(float(streams.bound[j])):
                    raise EnvelopeError
            rival = _contender(streams, j, member, list(uniforms), noise)
            if best is None or best.loses_to(rival):
                best = rival
        uniforms.append(following := entropy.uniform())
        step, _ = bound_exponentials(np.array([following.numerator], np.uint64), entropy.word)
        total[j] += step[0]
        here = slice(j, j + 1)
        reach[here] = _bound_values_ahead(streams.bound[here], total[here], streams.log_rate[here], noise)


def _contender(
    streams: Streams[Member], j: int, member: Member, uniforms: list[Uniform], noise: NoiseFormula
) -> _Contender[Member]:
    return _Contender(member, uniforms, lambda: streams.gain(member), lambda: streams.rate(j), noise)


def _ceiling(
    streams: Streams[Member], j: int, uniforms: list[Uniform], noise: NoiseFormula
) -> _Contender[Member | None]:
    """The most that stream j can still reach, as an exact value: floats cannot see noise below their error."""
    bound = float(streams.bound[j])
    return _Contender(None, uniforms, lambda: arb(bound), lambda: streams.rate(j), noise)


def _bound_values_ahead(bound: Floats, total: Floats, log_rate: Floats, noise: NoiseFormula) -> Floats:
    """At least the value of any member of the streams from their current arrival on."""
    value, off = evaluate_noise(noise, total * (1.0 - RELATIVE), log_rate)
    return bound + value + off + RELATIVE * (np.abs(bound) + np.abs(value))


class Runners(Protocol):
    """Elements in a row, cut into streams of neighbours, for `sample_best`."""

    @property
    def start(self) -> Ranks:
        """The first element of each stream, ascending from 0."""

    @property
    def cells(self) -> Ranks:
        """How many elements each stream has."""

    @property
    def bound(self) -> Floats:
        """At least the gain of every element of each stream."""

    def gain_float(self, elements: Ranks, above: int | None = None) -> Floats:
        """Return the gain of elements, to a relative (or absolute) 2^-41; infinity stands for all beyond the floats.

        `above` is an element from which gains are counted; without one they are as `gain` has them.
        """

    def gain(self, element: int) -> arb:
        """A ball around the gain of an element."""


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


@dataclass(eq=False, repr=False)
class _RaceForBest:
    """The state of a race for several winners."""

    runners: Runners
    noise: NoiseFormula
    entropy: Entropy
    words: dict[int, Words] = field(default_factory=dict)
    times: dict[int, StreamTimes] = field(default_factory=dict)


class Podium(Protocol):
    """The winners of a race, best first, and their values."""

    @property
    def elements(self) -> Ranks:
        """The elements that won."""

    def round_noises(self, scale: Fraction, base: Callable[[int], Fraction]) -> list[int]:
        """Return floor(base(element) + scale noise + 1/2) for each winner, exactly; scale is above zero."""


@dataclass(frozen=True, eq=False, repr=False)
class _ScannedPodium:
    """The winners of a scan."""

    contenders: list[_Contender[int]]

    @property
    def elements(self) -> Ranks:
        return np.array([each.member for each in self.contenders], np.int64)

    def round_noises(self, scale: Fraction, base: Callable[[int], Fraction]) -> list[int]:
        return [each.round_noise(scale, base(each.member), StreamTimes(each.uniforms)) for each in self.contenders]


@dataclass(frozen=True, eq=False, repr=False)
class _RacedPodium:
    """The winners of a race by streams."""

    _race: _RaceForBest
    _first: Words
    _pool: _Arrivals
    _winners: Ranks

    @property
    def elements(self) -> Ranks:
        return self._pool.element[self._winners]

    def round_noises(self, scale: Fraction, base: Callable[[int], Fraction]) -> list[int]:
        # The noise comes from the uniforms of the race, extended where floats and what is known of them do not decide.
        factor, pool = float_above(scale), self._pool
        bases = [base(element) for element in self.elements.tolist()]
        wholes = [each.__floor__() for each in bases]
        rest = np.array([float(each - whole) for each, whole in zip(bases, wholes, strict=True)]) + 0.5
        with np.errstate(over="ignore", invalid="ignore"):
            low = np.floor(bound_below(pool.noise_low[self._winners] * factor + rest))
            high = np.floor(bound_above(pool.noise_high[self._winners] * factor + rest))
        # Whole numbers beyond 2^52 have no floats between them that would show a doubt.
        sure = (low == high) & (np.abs(low) < 2.0**52)
        each_winner = zip(self._winners.tolist(), bases, wholes, low.tolist(), sure.tolist(), strict=True)
        return [
            whole + int(near) if plain else self._round_exactly(arrival, scale, own)
            for arrival, own, whole, near, plain in each_winner
        ]

    def _round_exactly(self, arrival: int, scale: Fraction, base: Fraction) -> int:
        contender = _contender_of(self._race, self._first, self._pool, arrival)
        return contender.round_noise(scale, base, self._race.times[int(self._pool.stream[arrival])])


def sample_best(runners: Runners, places: int, noise: NoiseFormula, entropy: Entropy) -> list[int]:
    """Returns the elements with the largest values, best first, where each element has one arrival at rate 1."""
    best: list[int] = sample_podium(runners, places, noise, entropy).elements.tolist()
    return best


def sample_podium(runners: Runners, places: int, noise: NoiseFormula, entropy: Entropy) -> Podium:
    """Return the elements with the largest values, best first, and these, where each has one arrival at rate 1.

    If the bound of a stream turns out to be too low, all elements are scanned instead, where they are not too many.
    """
    try:
        return _race_by_streams(runners, places, noise, entropy)
    except EnvelopeError:
        d = int(runners.start[-1]) + int(runners.cells[-1])
        if d > MAX_SCANNED:
            raise InternalError from None
        return _ScannedPodium(scan_best(range(d), places, runners.gain, lambda _: arb(1), noise, entropy))


def _race_by_streams(runners: Runners, places: int, noise: NoiseFormula, entropy: Entropy) -> _RacedPodium:
    """Return the winners, relying on the bounds of the streams.

    A stream of n elements is a process of rate n whose arrivals pick an element uniformly; an element's value is that
    of its first arrival. There must be at least as many streams as places.
    """
    race = _RaceForBest(runners, noise, entropy)
    streams = np.arange(len(runners.start))
    first = entropy.words(len(streams))
    total_low, total_high = bound_exponentials(first, entropy.word)
    element = runners.start + entropy.upto_each(runners.cells - 1)
    pool = _bound_arrivals(race, streams, np.zeros_like(streams), element, total_low, total_high)
    log_rate = np.log(runners.cells.astype(np.float64))
    race.words = {int(j): first[j : j + 1] for j in np.flatnonzero(runners.cells > 1)}
    open_streams = runners.cells > 1
    while True:
        bar = np.partition(pool.low, -places)[-places]
        reach = _bound_values_ahead(runners.bound, total_low, log_rate, noise)
        behind = np.flatnonzero(open_streams & (reach >= bar))
        if not len(behind):
            return _RacedPodium(race, first, pool, _rank_best(race, first, pool, float(bar), places))
        fresh = [_draw_more(race, int(j), pool, total_low, total_high) for j in behind]
        pool = _Arrivals(*(np.concatenate(parts) for parts in zip(*map(_fields, [pool, *fresh]), strict=True)))
        arrived = np.bincount(pool.stream, minlength=len(streams))
        open_streams &= arrived < runners.cells


def _fields(arrivals: _Arrivals) -> tuple[NDArray[np.generic], ...]:
    return tuple(vars(arrivals).values())


def _draw_more(race: _RaceForBest, j: int, pool: _Arrivals, total_low: Floats, total_high: Floats) -> _Arrivals:
    """As many further arrivals of stream j as it has had; elements that arrived before are dropped."""
    before = race.words[j]
    words = race.entropy.words(len(before))
    race.words[j] = np.concatenate([before, words])
    step_low, step_high = bound_exponentials(words, race.entropy.word)
    # A running sum of n positive terms is off by a relative n / 2^53 at most.
    rounding = len(words) * 2.0**-52
    low = (total_low[j] + np.cumsum(step_low)) * (1.0 - rounding)
    high = (total_high[j] + np.cumsum(step_high)) * (1.0 + rounding)
    total_low[j], total_high[j] = low[-1], high[-1]
    last = np.full(len(words), race.runners.cells[j] - 1)
    element = race.runners.start[j] + race.entropy.upto_each(last)
    _, firsts = np.unique(element, return_index=True)
    firsts = np.sort(firsts[~np.isin(element[firsts], pool.element[pool.stream == j])])
    stream = np.full(len(firsts), j)
    return _bound_arrivals(race, stream, len(before) + firsts, element[firsts], low[firsts], high[firsts])


def _bound_arrivals(
    race: _RaceForBest, stream: Ranks, turn: Ranks, element: Ranks, low: Floats, high: Floats
) -> _Arrivals:
    """Arrivals with bounds on their values, from bounds on the sums of exponentials before them."""
    gain = race.runners.gain_float(element)
    log_rate = np.log(race.runners.cells[stream].astype(np.float64))
    most, most_off = evaluate_noise(race.noise, low, log_rate)
    least, least_off = evaluate_noise(race.noise, high, log_rate)
    gain_low, gain_high = np.minimum(gain, LARGEST), np.maximum(gain, -LARGEST)
    if (bound_below(gain_low) > race.runners.bound[stream]).any():
        raise EnvelopeError
    noise_low, noise_high = least - least_off - RELATIVE * np.abs(least), most + most_off + RELATIVE * np.abs(most)
    noise_low = np.where(np.isnan(noise_low), -np.inf, noise_low)
    low, high = bound_below(gain_low) + noise_low, bound_above(gain_high) + noise_high
    return _Arrivals(stream, turn, element, np.where(np.isnan(low), -np.inf, low), high, noise_low, noise_high)


def _rank_best(race: _RaceForBest, first: Words, pool: _Arrivals, bar: float, places: int) -> Ranks:
    """Return where in the pool the best are, in order."""
    near = np.flatnonzero(pool.high >= bar)
    return _rank(race, first, pool, near, pool.low[near], pool.high[near], places)[:places]


def _rank(
    race: _RaceForBest, first: Words, pool: _Arrivals, some: Ranks, low: Floats, high: Floats, places: int
) -> Ranks:
    """Return arrivals best first, at least so many in order: by floats where their bounds are apart.

    Floats are coarse for scores far from the k-th. Where bounds overlap, gains are therefore counted anew from one of
    the group, so that equal scores are told apart by their noise; and only what overlaps even then is left to balls.
    """
    order = np.argsort(-high)
    ranked, lowest = some[order], np.minimum.accumulate(low[order])
    # Everything before a cut is certainly above everything after it.
    cuts = np.concatenate([[0], np.flatnonzero(high[order][1:] < lowest[:-1]) + 1, [len(some)]])
    for j in np.flatnonzero((np.diff(cuts) > 1) & (cuts[:-1] < places)).tolist():
        place = slice(cuts[j], cuts[j + 1])
        group = ranked[place]
        gain = race.runners.gain_float(pool.element[group], int(pool.element[group[0]]))
        closer_low = bound_below(np.minimum(gain, LARGEST)) + pool.noise_low[group]
        closer_high = bound_above(np.maximum(gain, -LARGEST)) + pool.noise_high[group]
        if (closer_high - closer_low).max() < 0.5 * (high - low)[order][place].max():
            ranked[place] = _rank(race, first, pool, group, closer_low, closer_high, places - int(cuts[j]))
        else:
            ranked[place] = _sort_exactly(race, first, pool, group)
    return ranked


def _sort_exactly(race: _RaceForBest, first: Words, pool: _Arrivals, group: Ranks) -> list[int]:
    """The arrivals of a group whose float bounds overlap, best first, by exact comparison."""
    contenders = {i: _contender_of(race, first, pool, i) for i in group.tolist()}
    order = cmp_to_key(_compare)
    return sorted(contenders, key=lambda i: order(contenders[i]))


def _compare_upwards(one: _Contender[Any], other: _Contender[Any]) -> int:
    return _compare(other, one)


def _compare(one: _Contender[Any], other: _Contender[Any]) -> int:
    return 1 if one.loses_to(other) else -1


def _contender_of(race: _RaceForBest, first: Words, pool: _Arrivals, arrival: int) -> _Contender[int]:
    """An arrival of the pool with its exact value."""
    return _contender_at(race, first, int(pool.stream[arrival]), int(pool.turn[arrival]), int(pool.element[arrival]))


def _contender_at(race: _RaceForBest, first: Words, j: int, turn: int, element: int) -> _Contender[int]:
    words = race.words.get(j, first[j : j + 1])
    uniforms = race.times.setdefault(j, StreamTimes()).first(turn + 1, words, race.entropy)
    cells = int(race.runners.cells[j])
    return _Contender(element, uniforms, lambda: race.runners.gain(element), lambda: arb(cells), race.noise)
