"""Heights on one side: floats draw where they are certain, and balls where they are not."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from discreet.exact.entropy import Entropy, Uniform
from discreet.mechanisms.canonical_nested import Heights, _cut_evenly
from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source


@pytest.fixture(autouse=True)
def no_warnings():
    """The logarithm of no mass at all is asked for, and gaps beyond all floats."""
    with np.errstate(all="ignore"):
        yield


def tally_of(scores):
    return array_source(np.array(scores)).tally()


def uniform_at(share):
    """A uniform number of 64 bits next to a share."""
    return Uniform(Entropy(random.Random(1)), int(share * 2**64))


@pytest.fixture
def by_balls(monkeypatch):
    """What balls were asked to draw."""
    asked, right = [], Heights._draw_by_balls

    def draw(self, first, last, uniform):
        asked.append((first, last))
        return right(self, first, last, uniform)

    monkeypatch.setattr(Heights, "_draw_by_balls", draw)
    return asked


def test_floats_draw_nearly_all(by_balls):
    scores = 40.0 * np.sort(np.random.default_rng(2).random(3000))[::-1]
    side = Heights(tally_of(scores), 1000, 1, 0, 1999, Fraction(1, 3))
    drawn = [side.draw(5, 1900, Entropy(random.Random(seed))) for seed in range(300)]
    assert len(set(drawn)) > 50
    assert not by_balls
    assert side.draw(7, 7, Entropy(random.Random(1))) == 7
    few = [side.draw(5, 1900, Entropy(random.Random(seed), word=2)) for seed in range(10)]
    assert len(by_balls) == 10
    assert {5 <= each <= 1900 for each in few} == {True}


@pytest.mark.parametrize("last", [4, 5])
@pytest.mark.parametrize("index", range(4))
def test_balls_decide_next_to_a_border(index, last, by_balls):
    """Of six heights 0 to 5 where the last cell ends before the end, or with it."""
    side = Heights(tally_of([6, 5, 4, 3, 2, 1]), 0, 1, 0, 5, Fraction(1, 2))
    whole = 1.0 if last == 5 else -np.expm1(-2.5)
    border = Fraction(-np.expm1(-0.5 * (index + 1)) / whole)
    for nearer in (Fraction(0), Fraction(3, 2**42), Fraction(1, 2**44)):
        for sign in (1, -1):
            uniform = uniform_at(border * (1 + sign * nearer))
            assert side._draw_by_floats(0, last, uniform) is None
            assert side._draw_by_balls(0, last, uniform) in (index, index + 1)
    for farther in (Fraction(5, 2**42), Fraction(1, 2**38), Fraction(1, 100)):
        assert side._draw_by_floats(0, last, uniform_at(border * (1 - farther))) == index
        assert side._draw_by_floats(0, last, uniform_at(border * (1 + farther))) == index + 1
    assert side._draw_by_balls(0, last, uniform_at(border * (1 - Fraction(1, 2**48)))) == index
    assert side._draw_by_balls(0, last, uniform_at(border * (1 + Fraction(1, 2**48)))) == index + 1


@pytest.mark.parametrize("step", [-1, 1])
def test_floats_find_an_index_of_many_by_several_cuts(step):
    """The middle of what each index has: 70,000 indices are cut into 256 pieces, and those again."""
    scores = np.arange(70_001)[::-1]
    side = Heights(tally_of(scores), 0 if step > 0 else 70_000, step, 0, 70_000, Fraction(1, 30_000))
    for first, last in ((0, 69_999), (300, 556), (300, 555), (1, 70_000)):
        whole = 1.0 if last == 70_000 else -np.expm1(-(last + 1 - first) / 30_000)
        for index in (first, first + 1, (first + last) // 2, last - 1, last):
            share = -np.expm1(-(index + 0.5 - first) / 30_000) / whole
            assert side._draw_by_floats(first, last, uniform_at(Fraction(share))) == index


def test_pieces_of_a_range_are_even():
    assert _cut_evenly(3, 6).tolist() == [3, 4, 5, 6]
    assert _cut_evenly(3, 6, with_end=True).tolist() == [3, 4, 5, 6, 7]
    assert _cut_evenly(10, 265).tolist() == list(range(10, 266))
    starts = _cut_evenly(10, 266, with_end=True)
    assert len(starts) == 257
    assert (int(starts[0]), int(starts[-2]), int(starts[-1])) == (10, 265, 267)
    assert set(np.diff(starts[:-1]).tolist()) == {1}
    assert _cut_evenly(2**63 - 3, 2**63 - 1).tolist() == [2**63 - 3, 2**63 - 2, 2**63 - 1]
    far = _cut_evenly(5, 2**63 - 1)
    assert (far.dtype, len(far), int(far[0])) == (np.int64, 256, 5)
    assert {int(one) for one in np.diff(far)} <= {2**55 - 1, 2**55}
    assert far[1] == 5 + (2**63 - 5) // 256


def test_floats_decide_above_what_stands_for_all_that_is_less():
    """Gaps of 4 and 1024 times the least that is told apart from none."""
    side = Heights(tally_of([2.0**-980, 2.0**-980 - 2.0**-998, 2.0**-980 - 2.0**-990, 0.0]), 0, 1, 0, 3, Fraction(1))
    assert side._draw_by_floats(0, 1, uniform_at(Fraction(5, 2**11))) == 0
    assert side._draw_by_floats(0, 1, uniform_at(Fraction(3, 2**11))) is None
    assert side._draw_by_balls(0, 1, uniform_at(Fraction(3, 2**11))) == 0


def test_steps_below_all_floats_have_their_masses_wherever_they_are():
    """Two tiny steps among others."""
    scores = [3.0, 2.0, 2.0 - 2.0**-51, 5e-324, 0.0, -1.0]
    other = [1.0, 1.0, 5e-324, 0.0, -5e-324, -2.0]
    unit = Fraction(1, 10**300)
    alone = [Heights(tally_of(each), 0, 1, 0, 5, unit) for each in (scores, other)]
    with np.errstate(all="ignore"):
        for side in alone:
            row = side.log_masses_in_a_row(np.arange(6))
            assert side.log_masses(np.arange(6), np.arange(6)) == pytest.approx(row, rel=1e-12)
            for i in range(5):
                gap = side.tally.gap(i, i + 1)
                right = math.log(gap.numerator) - math.log(gap.denominator) - 300 * math.log(10.0) if gap else -np.inf
                assert row[i] == pytest.approx(right, rel=1e-9)
            assert row[5] == pytest.approx(0.0, abs=1e-200)


@pytest.mark.parametrize("unit", [Fraction(1), Fraction(2), Fraction(1, 3)])
def test_heights_count_in_units_of_the_scores(unit):
    side = Heights(Tally.of_runs([7, 6, 1], [1, 1, 1], unit), 0, 1, 0, 2, Fraction(1, 4))
    heights = np.array([0.0, 0.25, 1.5]) * float(unit)
    assert side.log_masses(np.arange(3), np.full(3, 2)) == pytest.approx(-heights, rel=1e-12)


@pytest.mark.parametrize("scores", [
    [9, 5, 5, 1], [2**62, 7, 1, 0], [9.5, 5.25, 5.0, 1.0], [1e300, 1.0, 0.0, -1e300], [Fraction(10**400), 2, 1, 0],
    [Fraction(1, 3), 0, 0, Fraction(-1, 7)], [4, 4, 4, 4],
])  # fmt: skip
@pytest.mark.parametrize("unit", [Fraction(1, 8), Fraction(1, 10**300), Fraction(10**400)])
def test_the_log_mass_of_the_last_index_is_its_height(scores, unit):
    """On either side; where a gap or the unit is beyond all floats, that is all that is known."""
    tally = array_source(np.array(scores, object if isinstance(scores[0], Fraction) else None)).tally()
    for side in (Heights(tally, 0, 1, 0, 3, unit), Heights(tally, 4, -1, 1, 4, unit)):
        height = side._height(side.first, side.last)
        is_known = unit < 10**308 and height / unit < 10**308
        right = -float(height) if is_known else -np.inf
        if is_known:
            assert side._log_mass_of_last == pytest.approx(right, rel=2.0**-44, abs=2.0**-48)
        assert side.is_last_above(right - 1e-6 * abs(right) - 1e-12) is is_known
        assert not side.is_last_above(right + 1e-6 * abs(right) + 1e-12)


@pytest.mark.parametrize("scores", [[6, 5, 4, 3, 2, 1], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]])
@pytest.mark.parametrize("step", [-1, 1])
def test_the_last_of_all_indices_is_drawn_by_its_share(scores, step, by_balls, monkeypatch):
    """Without a look at the others, but for next to its border; and never for a cell that does not end with it."""
    side = Heights(tally_of(scores), 0 if step > 0 else 5, step, 0, 5, Fraction(1, 2))
    border = Fraction(-np.expm1(-2.5))
    looked, right = [], Heights._scores
    monkeypatch.setattr(Heights, "_scores", lambda self, index: looked.append(index) or right(self, index))
    for share in (border + Fraction(1, 2**39), (1 + border) / 2, 1 - Fraction(1, 2**60)):
        assert side._draw_by_floats(0, 5, uniform_at(share)) == 5
    assert not looked
    assert side._draw_by_floats(0, 5, uniform_at(border - Fraction(1, 2**39))) == 4
    assert looked
    for nearer in (Fraction(0), Fraction(1, 2**41), Fraction(-1, 2**41)):
        assert side._draw_by_floats(0, 5, uniform_at(border + nearer)) is None
    assert side._draw_by_floats(0, 4, uniform_at((1 + border) / 2)) < 5


def test_the_last_index_of_a_cell_is_not_that_of_all():
    """In the cell of 2 and 3 the last has next to no mass, and the sum of both is that of all indices."""
    side = Heights(tally_of([6.0, 5.0, 4.0, 3.0, 2.99, 1.0]), 0, 1, 0, 5, Fraction(1, 2))
    assert side._draw_by_floats(2, 3, uniform_at(Fraction(95, 100))) == 2
    assert side._draw_by_floats(2, 3, uniform_at(Fraction(999, 1000))) == 3


def test_the_last_of_all_indices_is_found_at_once_where_the_first_is_not_0(monkeypatch):
    side = Heights(tally_of([6, 5, 4, 3, 2, 1]), 6, -1, 1, 6, Fraction(1, 2))
    monkeypatch.setattr(Heights, "_scores", None)
    assert side._draw_by_floats(1, 6, uniform_at(Fraction(99, 100))) == 6


@pytest.mark.parametrize("unit", [Fraction(1), Fraction(10**400)])
def test_heights_beyond_all_floats_leave_a_mass_in_each_of_a_row(unit):
    """Each step may be a float and their sum not: -inf would say that there is nothing."""
    side = Heights(tally_of([1.5e308, 0.0, 0.0, -1.5e308]), 0, 1, 0, 3, unit)
    row = side.log_masses_in_a_row(np.arange(4))
    assert (row[0], row[1]) == (0.0, -np.inf)
    assert -np.inf < row[3] <= row[2] < -1e308
