"""Races on streams made up here: the law of the winner, and the room that float bounds leave above what is exact."""

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet
import draws
from discreet.exact import race
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.exact.times import BallTime, bound_exponentials
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source

ROOM = 2.0**-41
"""How far floats may be off by the assumption made, relative to what goes in: every bound leaves at least that."""


class Streams:
    """Streams of members that are picked uniformly and kept in so many of four cases; gains stay below the bound."""

    def __init__(self, *streams):
        self.streams = streams
        self.bound = np.array([bound for bound, _, _ in streams])
        self.log_rate = np.log([rate for _, rate, _ in streams])
        self.gains = {name: gain for _, _, members in streams for name, (gain, _) in members.items()}

    def rate(self, j):
        return arb(self.streams[j][1])

    def arrive(self, j, entropy):
        members = self.streams[j][2]
        name = list(members)[entropy.upto(len(members) - 1)]
        return name if entropy.upto(3) < members[name][1] else None

    def gain(self, member):
        return arb(self.gains[member])

    def law(self, **more):
        """With Gumbel noise a member wins in proportion to its rate times exp(gain)."""
        weights = {
            name: rate / len(members) * quarters / 4 * math.exp(gain + more.get(name, 0.0))
            for _, rate, members in self.streams
            for name, (gain, quarters) in members.items()
        }
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}


# Bounds far above the gains, so that a stream is asked for many arrivals before it is out.
STREAMS = Streams(
    (2.0, 4, {"a": (1.5, 2), "b": (0.0, 4)}),
    (1.5, 2, {"c": (0.25, 4)}),
    (1.0, 9, {"d": (0.0, 2), "e": (-2.0, 4), "f": (-0.5, 3)}),
    (-3.0, 40, {"g": (-3.0, 1)}),
)


@pytest.mark.some(1)
@pytest.mark.parametrize(("word", "n"), [(64, 2500), (2, 700)])
def test_the_winner_among_streams_has_its_law(word, n):
    entropy = Entropy(random.Random(7), word)
    counts = Counter(race.sample_winner(STREAMS, NOISES["gumbel"], entropy) for _ in range(n))
    assert draws.fits(counts, STREAMS.law())
    assert n < 2500 or draws.power(n, STREAMS.law(), STREAMS.law(a=0.3)) > 0.99


def room(value, *terms):
    return ROOM * (abs(float(value)) + sum(abs(float(term)) for term in terms))


@pytest.mark.parametrize("name", NOISES)
def test_a_reach_leaves_room_above_the_exact_value(name):
    rng = np.random.default_rng(4)
    bound = np.concatenate([rng.normal(size=100) * 10.0 ** rng.integers(-3, 9, 100), np.zeros(20)])
    total = np.concatenate([rng.exponential(size=60), rng.exponential(size=60) * 1e-9])
    log_rate = np.concatenate([rng.uniform(0, 40, 60), rng.uniform(0, 1e5, 50), np.zeros(10)])
    reach = race._bound_values_ahead(bound, total, log_rate, NOISES[name])
    with precision(200):
        for b, t, r, most in zip(bound, total, log_rate, reach, strict=True):
            noise = NOISES[name].inverse(BallTime(arb(float(t)) * (-arb(float(r))).exp()))
            value = arb(float(b)) + noise
            assert value + room(b, noise, r, 1.0) <= arb(float(most))
            assert arb(float(most)) <= value + 1e-8 * (1 + abs(b) + r + t + abs(float(noise)))


def stream_of_ties(name, entropy, gap):
    """A race in which stream 1 has 300 elements, all of them `gap` / 3 below the one in stream 0."""
    tally = array_source([2.0**20 + gap] + [2.0**20] * 300).tally()
    runners = discreet.OneShot(name).prepare(tally, 1, Fraction(1, 3), discreet.Sensitivity())
    assert runners.cells.tolist() == [1, 300]
    first = entropy.words(2)
    return race._RaceForBest(runners, NOISES[name], entropy, {1: first[1:2]}), first


@pytest.mark.some(6)
@pytest.mark.parametrize("gap", [1.0, 2.0**41 + 1])
@pytest.mark.parametrize("word", [64, 16, 3])
@pytest.mark.parametrize("name", NOISES)
def test_bounds_on_arrivals_hold_what_is_drawn_with_room(name, word, gap):
    """Every arrival of a stream of ties, first and later ones, against the exact value of the same random numbers."""
    entropy = Entropy(random.Random(2), word)
    state, first = stream_of_ties(name, entropy, gap)
    low, high = bound_exponentials(first, word)
    pools = [
        race._bound_arrivals(state, np.array([1]), np.array([0]), np.array([5]), low[1:2].copy(), high[1:2].copy())
    ]
    for _ in range(7):
        pools.append(race._draw_more(state, 1, pools[-1], low, high))
    assert len(state.words[1]) == 128
    with precision(200):
        for pool in pools:
            for turn, element, least, most in zip(pool.turn, pool.element, pool.low, pool.high, strict=True):
                contender = race._contender_at(state, first, 1, int(turn), int(element))
                for uniform in contender.uniforms:
                    while uniform.bits < 150:
                        uniform.extend()
                exact = contender.value()
                gain = state.streams.gain(int(element))
                assert arb(float(least)) + room(gain, 1.0) <= exact
                assert exact <= arb(float(most)) - room(gain, 1.0)
                if word == 64:
                    assert most - least < 1e-7 + 1e-10 * gap


def test_a_long_sum_of_exponentials_leaves_room_for_its_rounding():
    """A running sum of n positive floats is off by a relative n / 2^53 at most: more than that is left."""
    entropy, n = Entropy(random.Random(3)), 2**14
    state, first = stream_of_ties("gumbel", entropy, 1.0)
    state.words[1] = entropy.words(n)
    low, high = bound_exponentials(first, 64)
    before = low[1], high[1]
    race._draw_more(state, 1, race._bound_arrivals(state, *np.zeros((3, 0), int), *np.zeros((2, 0))), low, high)
    steps = bound_exponentials(state.words[1][n:], 64)
    assert len(steps[0]) == n
    least, most = (math.fsum([start, *step]) for start, step in zip(before, steps, strict=True))
    assert low[1] <= least * (1 - 1.5 * n * 2.0**-53)
    assert high[1] >= most * (1 + 1.5 * n * 2.0**-53)
    assert high[1] <= low[1] * (1 + 1e-10)


@pytest.mark.some(3)
@pytest.mark.parametrize("word", [2, 4, 64])
@pytest.mark.parametrize("name", ["gumbel", "laplace", "half-logistic"])
def test_the_ranking_is_that_of_the_exact_values(name, word, monkeypatch):
    """With few bits the float bounds of many arrivals overlap, in chains; all bits are revealed to check the order."""
    seen, plain = [], race._rank_best
    monkeypatch.setattr(race, "_rank_best", lambda *given: seen.append(given) or plain(*given))
    tally = array_source([4, 4, 3, 3, 3, 3, 2, 2, 2, 2, 2, 0, 0, 0]).tally()
    runners = discreet.OneShot(name).prepare(tally, 4, 3, discreet.Sensitivity())
    entropy = Entropy(random.Random(11), word)
    for _ in range(60):
        found = race.sample_best(runners, 4, NOISES[name], entropy)
        state, first, pool, _, _ = seen.pop()
        values = {}
        with precision(250):
            for j, turn, element in zip(pool.stream, pool.turn, pool.element, strict=True):
                contender = race._contender_at(state, first, int(j), int(turn), int(element))
                for uniform in contender.uniforms:
                    while uniform.bits < 200:
                        uniform.extend()
                values[int(element)] = contender.value()
            assert len(values) == len(pool.element)
            exactly = sorted(values, key=lambda element: values[element].mid(), reverse=True)
        assert found == exactly[:4]
