"""Chords and cells of nested classes: above what they bound, by balls, and without gaps up to 2^63."""

from dataclasses import dataclass

import numpy as np
import pytest
from flint import arb

from discreet.exact.ball import log_binomial, precision
from discreet.exact.nested import Cells, Enclosure, Levels, _add_levels, begin, log_slack, make_plan, tighten

SHAPES = [(1, 1), (3, 40), (200, 7), (1000, 10**4), (50, 10**9), (7, 2**63 - 1), (3000, 2**63 - 3000)]
"""K and m."""


@dataclass(frozen=True)
class Geometric:
    """Indices whose masses fall by a factor each; those of the last are all that is left."""

    last: int
    rate: float

    def log_masses(self, first, last):
        log_mass, width = -self.rate * first.astype(float), (last - first).astype(float) + 1.0
        share = np.where(last < self.last, np.log(-np.expm1(-self.rate * width)), 0.0)
        return log_mass + share

    def log_masses_in_a_row(self, first):
        return self.log_masses(first, np.append(first[1:] - 1, self.last))

    def is_last_above(self, log_mass):
        return -self.rate * self.last > log_mass


def enclose(top, bottom):
    return tighten(begin(top, bottom), top, bottom)


def cells_of(k, m, seed):
    made = np.random.default_rng(seed)
    last = np.unique(np.append(made.integers(1, k + 1, 12), k))
    return Cells(np.append(1, last[:-1] + 1), last, -made.random(len(last)) * log_binomial_float(k, m))


def log_binomial_float(k, m):
    with precision(200):
        return float(log_binomial(k + m, k).mid())


def some_b(m, levels, seed):
    made = np.random.default_rng(seed)
    spread = np.expm1(made.random(20) * np.log1p(float(m))).astype(np.int64)
    return np.unique(np.concatenate([spread.clip(0, m), levels[:3], levels[-3:], [0, m]]))


@pytest.mark.parametrize(("k", "m"), SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_chords_are_above_what_they_bound(k, m, seed):
    """Terms of R are right, and what they add up to is below the chord of R with half of its slack."""
    a = cells_of(k, m, seed)
    levels = Levels.at(make_plan(k, m).line.largest.b, a)
    cells = Enclosure(a, a, levels, a.log_mass)
    slack, largest = log_slack(k, m, len(a.last), 40), log_binomial_float(k, m)
    with precision(300):
        for b in some_b(m, levels.b, seed).tolist():
            row = cells.row(b)
            bound = arb(float(levels.bound(levels.place(np.array([b])))[0])) + slack / 2
            total = arb(0)
            for i, last in enumerate(a.last.tolist()):
                right = arb(float(a.log_mass[i])) + log_binomial(last + b, last)
                assert abs(right - float(row[i])) <= 2.0**-30 + 2.0**-44 * largest
                total += arb(float(row[i])).exp()
            assert total.log() <= bound


def test_without_the_slack_a_bound_may_be_too_low():
    """At a level the chord is R itself: integer weights, which are rounded up, are above it."""
    a = cells_of(40, 100, 1)
    levels = Levels.at(make_plan(40, 100).line.largest.b, a)
    assert log_slack(40, 100, len(a.last), 3) > log_slack(40, 100, len(a.last), 40) > 2.0**-17
    assert levels.bound(levels.place(levels.b)) == pytest.approx(levels.log_r, rel=1e-12)


@pytest.mark.parametrize(("k", "m"), SHAPES)
def test_plans_begin_and_end_where_indices_do(k, m):
    plan = make_plan(k, m)
    for first, last, low, high in ((*plan.line.a, 1, k), (*plan.b[:2], 0, m)):
        assert (int(first[0]), int(last[-1])) == (low, high)
        assert (last >= first).all()
        assert (first[1:] == last[:-1] + 1).all()
    assert plan.line.largest.b[0] == 0
    assert plan.line.largest.b[-1] >= m
    assert (np.diff(plan.line.largest.b) > 0).all()
    assert len(plan.line.largest.b) <= 100
    assert len(plan.b[0]) <= 1025


@pytest.mark.parametrize(("k", "m"), SHAPES)
def test_more_levels_are_between_those_there_were(k, m):
    a = cells_of(k, m, 4)
    levels = Levels.at(make_plan(k, m).line.largest.b, a)
    more = _add_levels(a, levels, np.full(len(levels.b) - 1, 3.0))
    assert set(levels.b.tolist()) <= set(more.b.tolist())
    assert (np.diff(more.b) > 0).all()
    room = np.minimum(np.diff(levels.b), 3) - 1
    assert len(more.b) == len(levels.b) + int(room.sum())
    assert more.log_r == pytest.approx(Levels.at(more.b, a).log_r, rel=1e-14)


def test_a_cell_is_cut_without_a_gap_up_to_the_last_index():
    side = Geometric(2**63 - 1, 1e-18)
    whole = Cells(np.array([5, 9]), np.array([8, 2**63 - 1]), np.zeros(2))
    cut = whole.cut(side, np.array([1, 7]))
    assert cut.first.tolist()[:2] == [5, 9]
    assert cut.last.tolist()[-1] == 2**63 - 1
    assert (cut.first[1:] == cut.last[:-1] + 1).all()
    assert len(whole.cut(side, np.array([32, 1])).first) == 5


@pytest.mark.parametrize("rate", [3.0, 0.7, 0.05, 1e-4])
@pytest.mark.parametrize(("k", "m"), [(4, 60), (300, 5000), (5000, 10**6)])
def test_bounds_are_little_above_all_mass(k, m, rate):
    with np.errstate(all="ignore"):
        found = enclose(Geometric(k, rate), Geometric(m, rate))
    top = float(found.log_masses.max())
    with precision(100):
        total = exact_total(k, m, rate) if k * m < 10**4 else None
    bound = top + float(np.log(np.exp(found.log_masses - top).sum()))
    assert len(found.levels.b) <= 100
    if total is not None:
        assert total <= bound
        assert bound <= max(total, 0.0) + np.log(3.0)


def exact_total(k, m, rate):
    total = arb(0)
    for a in range(1, k + 1):
        for b in range(m + 1):
            u = arb(-rate * a).exp() * (1 if a == k else 1 - arb(-rate).exp())
            v = arb(-rate * b).exp() * (1 if b == m else 1 - arb(-rate).exp())
            total += u * v * log_binomial(a + b, a).exp()
    return float(total.log().mid())


def test_a_cell_that_is_not_cut_keeps_its_bound_and_one_in_two_pieces_is_cut():
    whole = Cells(np.array([0, 10, 20]), np.array([9, 19, 40]), np.array([7.0, 8.0, 9.0]))
    cut = whole.cut(Geometric(40, 0.5), np.array([1, 2, 1]))
    assert cut.first.tolist() == [0, 20, 10, 15]
    assert cut.last.tolist() == [9, 40, 14, 19]
    assert cut.log_mass.tolist()[:2] == [7.0, 9.0]
    assert cut.log_mass[2:] == pytest.approx([-5.0 + np.log(-np.expm1(-2.5)), -7.5 + np.log(-np.expm1(-2.5))])


def sags_of(*log_r):
    """With each b + 1 twice the one before it."""
    return Levels(2 ** np.arange(len(log_r)) - 1, np.array(log_r, float)).sags


def test_chords_sag_by_a_quarter_of_what_the_slopes_beside_them_allow():
    """Slopes 1, 2 and 4 by doublings: the first chord may begin flat, and the last may end steep."""
    assert sags_of(0, 1, 3, 7) == pytest.approx([0.25 * 1 / 2, 0.25 * 2 / 3, 0.25 * 2], rel=1e-8)
    falls, straight, bends_down = sags_of(5, 4, 4), sags_of(0, 1, 2, 3), sags_of(0, 2, 3, 4)
    assert falls[0] == 0.0
    for almost_none in (*straight[:-1], *bends_down[:-1]):
        assert 0.0 < almost_none < 1e-10
    assert Levels(np.array([0, 7, 63]), np.array([0.0, 3.0, 9.0])).sags[0] == pytest.approx(0.375, rel=1e-8)


def test_the_slack_is_for_rounding_and_for_weights_that_are_rounded_up():
    assert log_slack(1, 1, 1, 60) - 2.0**-17 == pytest.approx(2.0**-36 * (64 + np.log(2.0)), rel=1e-3)
    assert log_slack(10**15, 10**15, 1, 60) == pytest.approx(2.0**-35 * 10**15 * np.log(2.0), rel=1e-6)
    assert log_slack(1, 1, 1000, 3) == pytest.approx(np.log1p(250.0), rel=1e-4)


def test_cells_without_a_mass_are_dropped():
    a = Cells(np.array([1, 2]), np.array([1, 2]), np.array([-2.0, -np.inf]))
    b = Cells(np.array([0, 4, 9]), np.array([3, 8, 9]), np.array([0.0, -np.inf, -3.0]))
    left = Enclosure.of(a, b, Levels(np.array([0, 9]), np.array([-2.0, 0.5]))).drop_empty()
    assert (left.a.first.tolist(), left.b.first.tolist()) == ([1], [0, 9])
    assert left.row(3) == pytest.approx([-2.0 + np.log(4.0)])
    assert np.isfinite(left.log_masses).all()
