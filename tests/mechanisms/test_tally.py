"""The tally: exact scores by rank, correctly rounded gaps, and counting by exact comparison."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Error
from discreet.mechanisms.tally import ExactColumn, FloatColumn, IntegerColumn, Tally, to_float
from discreet.sources.arrays.array import array_source

integers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1, max_size=30)
floats = st.lists(
    st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 0.1, 0.2, 0.3]), min_size=1, max_size=30
)
fractions = st.lists(st.fractions() | st.integers(-(10**40), 10**40).map(Fraction), min_size=1, max_size=20)


def ranked(values):
    return sorted((Fraction(v) for v in values), reverse=True)


@given(integers | floats | fractions)
def test_scores_by_rank_are_exact(values):
    tally = array_source(values).tally()
    assert tally.d == len(values)
    assert [tally.exact(rank) for rank in range(len(values))] == ranked(values)


@given(integers | floats | fractions, st.data())
def test_gaps_are_right_to_the_stated_error(values, data):
    tally, scores = array_source(values).tally(), ranked(values)
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, len(values) - 1)] * 2), min_size=1, max_size=10))
    upper, lower = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    gaps = tally.gaps(upper, lower, Fraction(1))
    for (i, j), gap in zip(pairs, gaps, strict=True):
        assert tally.gap(i, j) == scores[i] - scores[j]
        exact = max(scores[i] - scores[j], Fraction(0))
        beyond = to_float(exact) >= np.finfo(float).max
        assert beyond or abs(Fraction(float(gap)) - exact) <= exact / 2**50 + Fraction(1, 2**1000)
    assert tally.largest_gap(upper, lower) == max(max(scores[i] - scores[j], Fraction(0)) for i, j in pairs)


@given(integers | floats | fractions, st.data())
def test_within_counts_by_exact_comparison(values, data):
    tally, scores = array_source(values).tally(), ranked(values)
    differences = [abs(float(a - b)) for a in scores[:5] for b in scores[:5] if 0 < abs(a - b) < 2**1000]
    reach = data.draw(st.floats(2**-1000, 1e300) | st.sampled_from([1.0, 2.0, 0.5, *differences]))
    reach = max(reach, 5e-324)
    ranks = np.arange(len(values))
    expected = [max(r for r in ranks if scores[r] > scores[i] - Fraction(reach)) for i in ranks]
    assert tally.within(ranks, np.full(len(ranks), reach)).tolist() == expected
    # A column of reaches gives a row for each.
    reaches = np.array([[reach], [0.3], [reach]])
    each = [tally.within(ranks, np.full(len(ranks), one)).tolist() for one in reaches[:, 0]]
    assert tally.within(ranks, reaches).tolist() == each


@given(integers | floats, st.data())
def test_what_remains_skips_what_is_gone(values, data):
    tally, scores = array_source(values).tally(), ranked(values)
    gone = np.array(sorted(data.draw(st.sets(st.integers(0, len(values) - 1), max_size=len(values) - 1))), np.int64)
    rest = tally.without(gone)
    left = [rank for rank in range(len(values)) if rank not in gone]
    assert rest.d == len(left)
    assert rest.original(np.arange(rest.d)).tolist() == left
    assert rest.gap(0, rest.d - 1) == scores[left[0]] - scores[left[-1]]
    reach = data.draw(st.sampled_from([0.5, 1.0, 3.0, 1e18]))
    expected = max(i for i, rank in enumerate(left) if scores[rank] > scores[left[0]] - Fraction(reach))
    assert rest.within(np.array([0]), np.array([reach])).tolist() == [expected]


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 5)), min_size=1, max_size=8, unique_by=lambda p: p[0]))
def test_runs_are_the_same_as_the_items_written_out(runs):
    runs = sorted(runs, reverse=True)
    long = array_source([value for value, count in runs for _ in range(count)]).tally()
    short = Tally.of_runs([value for value, _ in runs], [count for _, count in runs])
    ranks = np.arange(long.d)
    assert short.d == long.d
    assert [short.exact(r) for r in ranks] == [long.exact(r) for r in ranks]
    assert (short.within(ranks, np.full(long.d, 2.5)) == long.within(ranks, np.full(long.d, 2.5))).all()


def test_each_kind_of_score_has_its_column():
    assert isinstance(array_source([3, 1, 2]).tally().column, IntegerColumn)
    assert isinstance(array_source([3.5, 1.0]).tally().column, FloatColumn)
    assert isinstance(array_source([2**80, 1]).tally().column, ExactColumn)
    assert isinstance(Tally.of_runs([Fraction(1, 2), 0], [1, 1]).column, IntegerColumn)
    assert isinstance(Tally.of_runs([Fraction(1, 2**70), 0], [1, 1]).column, ExactColumn)


@pytest.mark.parametrize(
    ("values", "counts"), [([], []), ([1, 2], [1, 1]), ([2, 2], [1, 1]), ([2, 1], [1]), ([1], [0]), ([1], [2**63 + 1])]
)
def test_bad_runs_are_refused(values, counts):
    with pytest.raises(Error):
        Tally.of_runs(values, counts)
    with pytest.raises(Error):
        Tally.of_runs(values, counts, Fraction(1, 4))


@pytest.mark.parametrize("values", [[7, 2, -3], [2**63 - 1, 0, -(2**63)]])
def test_runs_of_whole_units_are_runs_of_their_scores(values):
    unit, counts = Fraction(1, 4), [2, 1, 2**62]
    steps, scores = Tally.of_runs(values, counts, unit), Tally.of_runs([unit * value for value in values], counts)
    assert isinstance(steps.column, IntegerColumn)
    assert steps.d == scores.d == 3 + 2**62
    for rank in (0, 1, 2, 3, steps.d - 1):
        assert steps.exact(rank) == scores.exact(rank)
