"""Scores at the magnitudes and in the shapes at which bounds have been seen to fail."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source

rng = np.random.default_rng(20)


def tallies():
    """Name, tally: the magnitudes and shapes at which bounds have been seen to fail."""
    zipf = (1e9 / np.arange(1, 2001) ** 1.05).astype(np.int64)
    ulps = np.nextafter(1.0, 2.0) - 1.0
    arrays = {
        "zipf": zipf,
        "near 2^53": 2**53 + rng.integers(-40, 40, 300),
        "near 2^62": 2**62 - rng.integers(0, 1000, 300),
        "whole int64": np.array([-(2**63), 2**63 - 1, 0, 5, -7] * 10),
        "whole uint64": np.array([0, 2**64 - 1, 2**63, 7] * 10, np.uint64),
        "10^40": np.array([10**40 + i * i for i in range(60)], object),
        "1e-300": 1e-300 * rng.random(200),
        "1e300": 1e300 * rng.standard_normal(200),
        "all floats": np.array([1.7e308, -1.7e308, 5e-324, 0.0, 1.0, -1e-300] * 8),
        "one ulp apart": 1.0 + ulps * np.arange(200),
        "one ulp apart near 2^53": 2.0**53 + 2.0 * np.arange(200),
        "all ties": np.full(150, 7),
        "all distinct": rng.permutation(500),
        "two levels": np.repeat([1000, 0], [20, 180]),
        "tenths": np.array([Fraction(i * 37 % 101, 10) for i in range(80)], object),
    }
    for name, scores in arrays.items():
        yield pytest.param(array_source(scores).tally(), id=name)
    yield pytest.param(Tally.of_runs([10**6, 900, 3, 0], [3, 100, 10**12, 2**63 - 10**12 - 103]), id="2^63 as runs")
    yield pytest.param(Tally.of_runs([5], [2**63]), id="2^63 ties")
    yield pytest.param(Tally.of_runs(range(10**4, 0, -1), [10**9] * 10**4), id="10^13 in 10^4 runs")


TALLIES = list(tallies())
EPSILONS = ["1e-9", "0.01", 1, 10_000]


def sizes(tally):
    """Several k, from 1 to d - 1."""
    return sorted({1, 2, min(17, tally.d - 1), min(1000, tally.d // 2), min(tally.d - 1, 3000)})
