"""Binomial numbers: walked bit by bit, counted against their probabilities, and the bounds that make them fast."""

import math
import random
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb
from scipy import stats

import draws
from discreet.evidence.walk import walk
from discreet.exact.ball import ball, log_binomial, precision
from discreet.exact.discrete import (
    MOST_TRIALS,
    _block_width,
    _bound_acceptance,
    _leading_words,
    _propose,
    _sample_from_bit,
    sample_binomials,
    sample_fair_binomials,
    upper_tail,
)
from discreet.exact.entropy import Entropy


def tail(n, rate=Fraction(1, 2)):
    """An irrational probability as discovery has them."""
    return partial(upper_tail, rate, n)


PROBABILITIES = {
    "small": tail(9),
    "below a half": tail(1),
    "above a half": tail(0),
    "near 1": tail(-9),
    "0": lambda: arb(0),
    "1": lambda: arb(1),
    "a quarter": lambda: arb(1) / 4,
    "a third": lambda: arb(1) / 3,
}


def binomial_law(m, p):
    return [math.comb(m, n) * p**n * (1 - p) ** (m - n) for n in range(m + 1)]


def assert_between(decided, undecided, probabilities):
    """Every probability, a ball, lies between what is decided for it and that plus what is undecided."""
    assert set(decided) <= set(probabilities)
    for outcome, p in probabilities.items():
        known = decided.get(outcome, Fraction(0))
        assert not p < ball(known)
        assert not p > ball(known + undecided)


@pytest.mark.some(6)
@pytest.mark.parametrize("m", [0, 1, 2, 3])
@pytest.mark.parametrize("name", PROBABILITIES)
def test_walked_bits_add_up_to_the_law(name, m):
    p = PROBABILITIES[name]
    decided, undecided = walk(lambda entropy: _sample_from_bit(entropy, m, p, 0), (1, 30, 300, 1200)[m])
    with precision(200):
        assert_between(decided, undecided, dict(enumerate(binomial_law(m, p()))))
    assert undecided < Fraction(1, 10)


@pytest.mark.some(2)
@pytest.mark.parametrize("loose", [0.0, 0.01, 1.0])
@pytest.mark.parametrize(
    "entries",
    [[(1, tail(1)), (1, tail(4))], [(2, tail(2)), (1, tail(-1))], [(0, tail(1)), (1, tail(6)), (1, tail(7))]],
    ids=["one and one", "both sides", "rare together"],
)
def test_entries_are_independent_however_little_the_floats_know(entries, loose):
    sizes = np.array([m for m, _ in entries])
    with precision(200):
        p = [float(chance().mid()) for _, chance in entries]
        low, high = np.maximum(np.array(p) - loose - 1e-15, 0), np.minimum(np.array(p) + loose + 1e-15, 1)
        laws = [binomial_law(m, chance()) for m, chance in entries]
        law = {
            tuple(found): math.prod((laws[i][n] for i, n in enumerate(found)), start=arb(1))
            for found in np.ndindex(*(m + 1 for m, _ in entries))
        }
    decided, undecided = walk(
        lambda entropy: tuple(sample_binomials(entropy, sizes, low, high, lambda i: entries[i][1]()).tolist()), 1500
    )
    with precision(200):
        assert_between(decided, undecided, law)
    assert undecided < Fraction(1, 4)


@pytest.mark.parametrize("word", [1, 2, 3])
def test_fair_bits_are_counted(word):
    for n in (1, 2, 5):
        decided, undecided = walk(lambda entropy, n=n: int(sample_fair_binomials(entropy, np.array([n]))[0]), 200, word)
        assert undecided == 0
        assert decided == {k: Fraction(math.comb(n, k), 2**n) for k in range(n + 1)}


@pytest.mark.some(1)
@pytest.mark.parametrize("m", [1, 3, 7])
def test_a_proposal_is_accepted_in_proportion_to_the_law(m):
    """Each number k is proposed and accepted with probability f / 4w, for the f and w of the module."""

    def propose(entropy):
        number, accepted = _propose(entropy, np.array([m]))
        return int(number[0]) if accepted[0] else None

    width = int(_block_width(np.array([m]))[0])
    law = {k: Fraction(math.comb(2 * m, k), math.comb(2 * m, m) * 4 * width) for k in range(2 * m + 1)}
    law[None] = 1 - sum(law.values())
    decided, undecided = walk(propose, 3000)
    assert set(decided) <= set(law)
    for outcome, p in law.items():
        assert decided.get(outcome, 0) <= p <= decided.get(outcome, 0) + undecided
    assert undecided < Fraction(1, 8)


@pytest.mark.parametrize("m", [*range(1, 60), 255, 1000, 4321])
def test_no_acceptance_is_above_one(m):
    """2^b C(2m, m+d) <= C(2m, m) in whole numbers, for every place d and its block."""
    width, centre = int(_block_width(np.array([m]))[0]), math.comb(2 * m, m)
    row = centre
    for d in range(1, m + 1):
        row = row * (m - d + 1) // (m + d)
        assert row << d // width <= centre


@pytest.mark.parametrize("m", [10**6, 10**12, 2**61])
def test_no_acceptance_is_above_one_where_a_block_begins(m):
    width = int(_block_width(np.array([m]))[0])

    def log_acceptance(b, wide):
        return log_binomial(2 * m, m + b * wide) - log_binomial(2 * m, m) + b * arb.const_log2()

    with precision(200):
        assert all(log_acceptance(b, width) < 0 for b in range(1, 200))
        # The width is not much larger than it must be: a tenth less would be too narrow.
        assert log_acceptance(1, width * 9 // 10) > 0


def test_the_floats_hold_the_acceptance_and_say_enough():
    rng = np.random.default_rng(3)
    m = np.concatenate([2 ** rng.integers(8, 62, 300) - rng.integers(0, 100, 300), np.arange(1, 120)])
    block = rng.integers(0, 12, len(m))
    distance = block * _block_width(m) + rng.integers(0, _block_width(m))
    low, high = _bound_acceptance(m, distance, block)
    with precision(300):
        for i, (n, d, b) in enumerate(zip(m.tolist(), distance.tolist(), block.tolist(), strict=True)):
            if d > n:
                assert high[i] < 0
                continue
            value = (log_binomial(2 * n, n + d) - log_binomial(2 * n, n) + b * arb.const_log2()).exp()
            assert arb(low[i]) < value
            assert value < arb(high[i]) or high[i] == 1.0
    assert (high - low)[m > 2 * distance].max() < 0.1
    assert (high - low)[(m > 2 * distance) & (m > 10**4)].max() < 1e-9


def quantile_cells(law, cells=20):
    """Where to cut the outcomes of a law so that each cell has about the same chance, and those chances."""
    edges = np.unique(law.ppf(np.linspace(0, 1, cells + 1)[1:-1]))
    return edges, np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))


def assert_law(values, law, wrong):
    """The values have the law in cells of equal chance, and those of a wrong law would be rejected."""
    edges, chances = quantile_cells(law)
    off = np.diff(np.concatenate([[0.0], wrong.cdf(edges), [1.0]]))
    counts = Counter(np.searchsorted(edges, values, side="left").tolist())
    assert draws.fits(counts, dict(enumerate(chances)))
    assert draws.power(len(values), dict(enumerate(chances)), dict(enumerate(off))) > 0.99


@pytest.mark.parametrize(
    ("n", "word"), [(511, 64), (513, 64), (513, 5), (10**4 + 1, 64), (10**6, 64), (10**12 + 1, 64), (MOST_TRIALS, 64)]
)
def test_fair_draws_have_the_law(n, word):
    """A deviation that is 6% off would be seen. Beyond 10^6 the law is normal to far less than that."""
    size = 20_000
    values = sample_fair_binomials(Entropy(random.Random(9), word), np.full(size, n))
    assert values.dtype == np.int64
    assert values.min() >= 0
    if n < 10**7:
        return assert_law(values, stats.binom(n, 0.5), stats.norm(n / 2, 1.06 * n**0.5 / 2))
    # Centred in whole numbers, because half a float step is a lot here.
    centred = (values - n // 2).astype(float) - (n % 2) / 2
    return assert_law(centred, stats.norm(0, n**0.5 / 2), stats.norm(0, 1.06 * n**0.5 / 2))


def test_both_parities_and_neighbours_are_drawn():
    """The last bits of large numbers are fair: nothing was rounded to a float; seven deviations, so never by chance."""
    values = sample_fair_binomials(Entropy(random.Random(2)), np.full(4000, 10**17 + 1))
    for bit in range(6):
        assert 1780 < (values >> bit & 1).sum() < 2220


def bounds(p):
    """Floats around a probability, as tight as discovery has them."""
    with precision(100):
        value = float(p().mid())
    return value * (1 - 1e-12), min(1.0, value * (1 + 1e-12))


@pytest.mark.parametrize(
    ("m", "n"),
    [(10**3, 2), (10**9, 1), (10**9, 0), (10**12, 50), (10**12, -52), (10**6, 20), (40, 3), (3 * 10**12, 57)],
    ids=str,
)
def test_large_draws_have_the_law(m, n):
    """Rare, common and nearly certain successes, drawn by the rarer side where the law is compared."""
    size, p = 4000, tail(n)
    low, high = bounds(p)
    values = sample_binomials(
        Entropy(random.Random(11)), np.full(size, m), np.full(size, low), np.full(size, high), lambda i: p()
    )
    with precision(100):
        rarer = float(p().mid()) if n > 0 else float((1 - p()).mid())
    values = values if n > 0 else m - values
    spread = (m * rarer * (1 - rarer)) ** 0.5
    if m * rarer > 10**6:
        law, wrong = (stats.norm(m * rarer - 0.5, spread * off) for off in (1.0, 1.15))
    else:
        law, wrong = (stats.binom(m, rarer * off) for off in (1.0, 1 + 0.2 * spread / (m * rarer)))
    assert_law(values, law, wrong)


def test_a_few_of_very_many_trials_succeed():
    """10^12 trials of probability 1e-15, ten thousand times: about ten successes, and never less than one."""
    size, p = 10**4, tail(69)
    low, high = bounds(p)
    assert 0.5e-15 < low < 2e-15
    entropy = Entropy(random.Random(1))
    kept = sample_binomials(entropy, np.full(size, 10**12), np.full(size, low), np.full(size, high), lambda i: p())
    mean = low * 10**16
    assert stats.poisson.ppf(1e-9, mean) <= kept.sum() <= stats.poisson.isf(1e-9, mean)
    assert [_sample_from_bit(entropy, 10**12, tail(70), 0) for _ in range(3)] == [0, 0, 0]
    assert _sample_from_bit(entropy, 10**12, tail(-3000), 0) == 10**12


def test_one_alone_is_as_one_of_many():
    p = tail(2)
    entropy = Entropy(random.Random(6))
    values = np.array([_sample_from_bit(entropy, 30, p, 0) for _ in range(3000)])
    low, _ = bounds(p)
    assert_law(values, stats.binom(30, low), stats.binom(30, 1.05 * low))


def test_the_cost_does_not_grow_with_the_trials():
    """Bits asked for: as many draws as the number of trials has bits, with a few for each."""

    class Counted(random.Random):
        asked = 0

        def getrandbits(self, k, /):
            self.asked += k
            return super().getrandbits(k)

    asked = {}
    for m in (10**6, 10**18):
        bits = Counted(4)
        for _ in range(5):
            _sample_from_bit(Entropy(bits), m, tail(1), 0)
        asked[m] = bits.asked
    assert asked[10**18] < 6 * asked[10**6]
    assert asked[10**18] < 5 * 80 * 64 * 200


def test_the_leading_bits_of_one_are_ones():
    words = _leading_words(np.array([0.0, 0.5, 0.75, 1 - 2.0**-53, 1.0, 1.5]))
    assert words.tolist() == [0, 2**63, 3 * 2**62, 2**64 - 2**11, 2**64 - 1, 2**64 - 1]
