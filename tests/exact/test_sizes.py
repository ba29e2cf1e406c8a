"""Sizes of nested classes and sums of them: held against balls, whatever the masses are."""

import numpy as np
import pytest
from flint import arb

from discreet.exact import nested as sizes_module
from discreet.exact.ball import log_binomial, precision
from discreet.exact.nested import Sums, log_sizes, log_sum_exp


def exact_sums(log_mass, a, levels):
    """Log of the sum of masses times sizes at each level, by balls."""
    with precision(200):
        return [
            float(
                sum(
                    ((arb(float(mass)) + log_binomial(int(each + b), int(each))).exp()
                     for mass, each in zip(log_mass, a, strict=True) if mass > -np.inf),
                    arb(0),
                ).log().mid()
            )
            for b in levels.tolist()
        ]  # fmt: skip


@pytest.mark.parametrize("most", [3, 4000, 2**16 - 1, 2**16, 2**16 + 1, 10**9, 2**62])
def test_sizes_are_right(most):
    made = np.random.default_rng(most)
    b = np.expm1(made.random(30) * np.log1p(most - 1.0)).astype(np.int64)
    for a in (1, 2, min(most, 700)):
        some = np.minimum(b, most - a)
        found = log_sizes(np.full(len(b), a), some)
        with precision(200):
            right = [float(log_binomial(a + each, a).mid()) for each in some.tolist()]
        assert found == pytest.approx(right, rel=1e-13, abs=2.0**-30)


def test_sizes_are_those_of_pairs_and_none_of_none():
    assert log_sizes(np.array([1, 2]), np.array([[0], [3]])) == pytest.approx(np.log([[1.0, 1.0], [4.0, 10.0]]))
    assert log_sizes(np.array([1, 2]), np.empty((0, 1), np.int64)).shape == (0, 2)


def test_what_is_kept_cannot_be_written():
    assert not sizes_module._log_factorials(1 << 4).flags.writeable


# How many a there are, and which levels.
PLANS = [
    (1, [0, 1]),
    (10, [0, 3, 900]),
    (100, [0, 40, 10**4]),
    (300, [0, 10**5]),
    (1000, [0, 700, 10**4]),
    (60, [0, 2**62]),
]


def masses(kind, count):
    made = np.random.default_rng(count)
    return {
        "flat": lambda: np.full(count, -np.log(count)),
        "steep": lambda: -30.0 * np.arange(count),
        "very steep": lambda: -1e5 * np.arange(count),
        "rough": lambda: -1000.0 * made.random(count),
        "few": lambda: np.where(made.random(count) < 0.9, -np.inf, -3.0),
        "last": lambda: np.where(np.arange(count) < count - 1, -np.inf, 0.0),
        "first": lambda: np.where(np.arange(count) > 0, -np.inf, 0.0),
        "lowest": lambda: np.where(np.arange(count) > 0, -1.7e308, 0.0),
    }[kind]()


@pytest.mark.parametrize("kind", ["flat", "steep", "very steep", "rough", "few", "last", "first", "lowest"])
@pytest.mark.parametrize(("count", "levels"), PLANS)
def test_sums_over_all_a_are_right(count, levels, kind):
    a, b, log_mass = np.arange(1, count + 1), np.array(levels), masses(kind, count)
    if (log_mass == -np.inf).all():
        log_mass[0] = -2.0
    sums = Sums.over(log_sizes(a, b[:, None]))
    with np.errstate(divide="ignore", over="ignore"):
        found = sums.log_sums(log_mass)
    assert found == pytest.approx(exact_sums(log_mass, a, b), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize(
    ("count", "last", "shape"),
    [(10, 10**4, (1, 2, 10)), (100, 10**3, (1, 2, 100)), (1000, 10**4, (16, 2, 64)), (100, 2**62, (9, 2, 12))],
)
def test_blocks_are_as_wide_as_floats_allow(count, last, shape):
    sizes = log_sizes(np.arange(1, count + 1), np.array([[0], [last]]))
    sums = Sums.over(sizes)
    assert sums.factors.shape == shape
    assert sums.factors.max() == 1.0
    assert sums.factors.min() > 1e-218


def test_few_wide_cells_are_a_block_each():
    sums = Sums.over(log_sizes(np.array([1, 5000, 10**4]), np.array([[0], [10**6]])))
    assert sums.factors.shape == (3, 2, 1)


def test_exponentials_are_added_along_an_axis():
    rows = np.log([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert np.exp(log_sum_exp(rows)) == pytest.approx([6.0, 15.0])
    assert np.exp(log_sum_exp(rows, axis=0)) == pytest.approx([5.0, 7.0, 9.0])
    assert log_sum_exp(np.array([[1e6, -1e6]])) == pytest.approx([1e6])
