"""A padded release returns at a whole multiple of its period, and neighbours cannot be told apart by the clock."""

import time

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.padding import default_period, period, wait_for_multiple

ALPHA = 1e-5
SHIFT = 0.001


def test_a_release_waits_for_the_end_of_its_period():
    for seconds in ("0.05", 0.1, "1/8"):
        begun = time.monotonic()
        discreet.top_k([3, 2, 1], 1, 1, pad_to=seconds)
        taken = time.monotonic() - begun
        assert taken >= float(period(seconds, 3, 1))


def test_what_is_late_waits_for_the_next_multiple():
    begun = time.monotonic() - 0.25
    wait_for_multiple(begun, 0.1)
    taken = time.monotonic() - begun
    assert taken >= 0.3


def test_the_default_depends_on_public_sizes_alone_and_grows_with_them():
    assert period("auto", 10_000, 100) == default_period(10_000, 100) == 2**-5
    assert default_period(10**7, 10**5) == 2.0
    assert default_period(100, 1) <= default_period(10**6, 1) <= default_period(10**6, 10**5)
    assert period(None, 10, 1) is None


@pytest.mark.parametrize("seconds", [0, -1, "soon", 1e-9, 10**6, True])
def test_a_period_must_be_sensible(seconds):
    with pytest.raises(discreet.Error, match="pad_to must be"):
        discreet.top_k([3, 2, 1], 1, 1, pad_to=seconds)


def seconds(scores, k, epsilon):
    begun = time.perf_counter()
    discreet.top_k(scores, k, epsilon, pad_to="auto")
    return time.perf_counter() - begun


def told_apart(one, other):
    """Whether a rank test tells two samples of times apart at ALPHA."""
    return stats.mannwhitneyu(one, other, method="asymptotic").pvalue < ALPHA


def power(times, n):
    """How often a shift between two samples of n such times is found, resampled."""
    generator, pool = np.random.default_rng(2), np.array(times)
    found = [told_apart(generator.choice(pool, n), generator.choice(pool, n) + SHIFT) for _ in range(300)]
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "k", "epsilon"), [(10_000, 100, 1), (17_770, 1000, "0.01")])
def test_neighbours_are_not_told_apart_by_the_clock(d, k, epsilon):
    """What is larger takes longer to test: benchmarks/clock.py."""
    scores = np.random.default_rng(0).permutation((1e7 / np.arange(1, d + 1)).astype(np.int64))
    neighbour = scores + np.random.default_rng(1).integers(0, 2, d)
    discreet.top_k(scores, k, epsilon)
    one, other = [], []
    # As many draws as it takes to see a shift of one millisecond 99 times in 100: more where the machine is busy.
    while len(one) < 24 or (power(one + other, len(one)) < 0.99 and len(one) < 400):
        for _ in range(24):
            one.append(seconds(scores, k, epsilon))
            other.append(seconds(neighbour, k, epsilon))
    assert power(one + other, len(one)) >= 0.99
    assert not told_apart(one, other)
