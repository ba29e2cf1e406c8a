"""Where cells and levels of nested classes are cut: any place is valid, and few that waste little are wanted."""

import itertools

import numpy as np
import pytest

from discreet.exact import nested
from discreet.exact.nested import (
    SAG,
    WASTE,
    Cells,
    Enclosure,
    Levels,
    _add_levels,
    _add_up,
    _are_easy,
    _cut_in_a_row,
    _find_heavy,
    _heaviest,
    _pieces_of_a,
    _refine,
    _spread,
    _towards_both_ends,
    begin,
    is_flat,
    lay_out,
    make_plan,
    tighten,
)


@pytest.fixture(autouse=True)
def no_warnings():
    """The logarithm of no mass at all is asked for."""
    with np.errstate(all="ignore"):
        yield


class Scores:
    """The masses of falling scores, given by how far each is below the one before it."""

    def __init__(self, gaps, first):
        self.heights = np.concatenate([[0.0], np.cumsum(gaps), [np.inf]])
        self.first, self.last = first, first + len(gaps)

    def log_masses(self, first, last):
        near, far = self.heights[first - self.first], self.heights[last + 1 - self.first]
        return -near + np.log(-np.expm1(near - far))

    def log_masses_in_a_row(self, first):
        return self.log_masses(first, np.append(first[1:] - 1, self.last))

    def is_last_above(self, log_mass):
        return bool(-self.heights[-2] > log_mass)


class Even:
    """Masses that only say how long a cell is, for as many indices as wanted."""

    def __init__(self, last):
        self.last = last

    def log_masses(self, first, last):
        return np.log((last - first) + 1.0)

    def log_masses_in_a_row(self, first):
        return self.log_masses(first, np.append(first[1:] - 1, self.last))


def falling(shape, d, k):
    ranks, made = np.arange(d), np.random.default_rng(3)
    return {
        "zipf": lambda: np.floor(1e6 / (1 + ranks) ** 1.05),
        "uniform": lambda: np.sort(made.integers(0, 5001, d))[::-1].astype(float),
        "equal": lambda: np.full(d, 4.0),
        "floats": lambda: 5000.0 * np.sort(made.random(d))[::-1],
        "ridge": lambda: -3.0 * np.log1p(ranks),
        "steps": lambda: (ranks // 40)[::-1].astype(float),
        "gap": lambda: np.where(ranks < k + (d - k) // 3, 100.0, 0.0) - 1e-3 * ranks,
        "geometric": lambda: 1e3 * 0.9**ranks,
    }[shape]()


SHAPES = ("zipf", "uniform", "equal", "floats", "ridge", "steps", "gap", "geometric")


def sides(shape, k, m, epsilon):
    scores = epsilon * falling(shape, k + m, k)
    return Scores(-0.25 * np.diff(scores[:k])[::-1], 1), Scores(-0.75 * np.diff(scores[k - 1 :]), 0)


def log_total(top, bottom):
    """The logarithm of all mass, class by class."""
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, top.last + bottom.last + 1)))])
    every_a, b = np.arange(1, top.last + 1), np.arange(bottom.last + 1)
    u, v = top.log_masses(every_a, every_a), bottom.log_masses(b, b)
    some = every_a[u > -np.inf]
    return log_sum(np.array([log_sum(u[a - 1] + v + factorial[a + b] - factorial[a] - factorial[b]) for a in some]))


def log_sum(logs):
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def factor(cells, total):
    """How many times all mass the bounds are."""
    return np.exp(log_sum(cells.log_masses) - total)


def parts(cells):
    return len(cells.a.first), len(cells.b.first), len(cells.levels.b)


# By k and m, over all shapes: how far the planned bounds are above all mass at most, and the fitted ones; how many
# cells of a, cells of b and levels there are after fitting, and how often cells are cut, all added up.
QUALITY = {
    (1, 500): (1.3, 1.3, 24, 405, 192, 14),
    (2, 2000): (1.64, 1.64, 24, 863, 240, 17),
    (10, 2000): (1.64, 1.64, 42, 2058, 288, 18),
    (100, 2000): (1.8, 1.8, 885, 7263, 600, 21),
    (1000, 2000): (1.79, 1.79, 9462, 8186, 1272, 24),
    (1500, 1500): (np.inf, 1.45, 3449, 7587, 280, 28),
}


@pytest.mark.some(2)
@pytest.mark.parametrize(("k", "m"), QUALITY)
def test_few_cells_enclose_little_more_than_all_mass(k, m, monkeypatch):
    rounds = []

    def count(*given):
        rounds.append(given)
        return _refine(*given)

    monkeypatch.setattr(nested, "_refine", count)
    planned, fitted, counts = [], [], []
    for shape, epsilon in itertools.product(SHAPES, (1.0, 0.05, 0.001)):
        top, bottom = sides(shape, k, m, epsilon)
        total, plan = log_total(top, bottom), begin(top, bottom)
        found = tighten(plan, top, bottom)
        planned.append(factor(plan, total))
        fitted.append(factor(found, total))
        counts.append(parts(found))
    assert min(planned + fitted) > 1.0 - 1e-9
    limits = QUALITY[k, m]
    assert max(planned) <= 1.02 * limits[0]
    assert max(fitted) <= 1.02 * limits[1]
    assert (np.sum(counts, axis=0) <= 1.02 * np.array(limits[2:5])).all()
    assert len(rounds) <= limits[5]


def test_a_plan_is_spread_by_logarithms():
    assert _spread(9, 3).tolist() == [0, 2, 9]
    assert _spread(1000, 4).tolist() == [0, 9, 99, 1000]
    assert _spread(1000, 2).tolist() == [0, 1000]
    assert _spread(3, 100).tolist() == [0, 1, 2, 3]
    far = _spread(2**63 - 1, 200)
    assert (int(far[0]), int(far[-1]), far.dtype) == (0, 2**63 - 1, np.int64)


def test_cells_of_many_a_are_close_together_at_both_ends():
    a = _towards_both_ends(3000)
    assert a.tolist()[:17] == [*range(1, 17), 18]
    assert (a + a[::-1] == 3001).all()
    assert len(a) == 158
    assert np.diff(a).max() < 110
    far = _towards_both_ends(2**63 - 1)
    assert (int(far[0]), int(far[-1]), far.dtype) == (1, 2**63 - 1, np.int64)


def test_cells_of_b_begin_after_even_rises():
    assert lay_out(1, 1).b.tolist() == [0, 1]
    assert lay_out(1, 14).b.tolist() == [0, 1, 2, 3, 5, 6, 8, 11]
    assert lay_out(1000, 3).b.tolist() == [0, 1, 2, 3]
    assert len(lay_out(1, 10**6).b) == 47
    for k, m in ((2, 10**5), (10, 2000), (1, 2**62)):
        line = lay_out(k, m)
        first = line.b
        assert line.pieces == 1
        last = np.append(first[1:] - 1, m)
        high = np.log1p(last / (np.arange(1, k + 1)[:, None])).sum(axis=0)
        low = np.log1p(first / (np.arange(1, k + 1)[:, None])).sum(axis=0)
        assert (high - low).max() <= (0.35 if k < 10 else 0.61)
        assert len(first) <= np.ceil(high[-1] / 0.3)
    assert len(lay_out(10**5, 10**9).b) == 512


@pytest.mark.parametrize(
    ("k", "m", "count", "pieces"),
    [(100, 2000, 437, 1), (100, 10**4, 477, 1), (150, 10**4, 607, 1), (1000, 10**4, 512, 11)],
)
def test_more_cells_of_b_are_half_as_many_as_it_takes_or_in_pieces(k, m, count, pieces):
    line = lay_out(k, m)
    assert (len(line.b), line.pieces) == (count, pieces)


@pytest.mark.parametrize(
    ("k", "m", "count"),
    [(7, 1, 2), (7, 3, 3), (7, 100, 8), (7, 10**4, 13), (7, 10**9, 25), (7, 2**63 - 1, 47), (1000, 10**4, 67),
     (1000, 2**63 - 1, 108)],
)  # fmt: skip
def test_so_many_levels_are_planned(k, m, count):
    """They go on to what was laid out for the next power of two."""
    levels = make_plan(k, m).line.largest.b
    assert len(levels) == count
    assert (levels[0], levels[-1]) == (0, 2 ** m.bit_length() - 1)
    assert levels.tolist() == lay_out(k, 2 ** m.bit_length() - 1).largest.b.tolist()
    assert make_plan(1025, m).line.largest.b[-1] == m


@pytest.mark.parametrize(("k", "m"), [(1, 10**6), (10, 10**4), (100, 10**4), (1000, 10**4), (1000, 10**7)])
def test_chords_between_planned_levels_sag_little(k, m):
    """Where R is the size of the largest a: never by more than twice what is wanted, and somewhere by half of it."""
    plan = make_plan(k, m)
    b = np.unique(np.append(_spread(m, 3000), m))
    exact = np.log1p(b / np.arange(1, k + 1)[:, None]).sum(axis=0)
    sag = plan.line.largest.bound(plan.line.largest.place(b)) - exact
    assert sag.min() > -1e-6
    assert sag.max() < 2.0 * SAG
    assert k == 1 or sag.max() > 0.5 * SAG


def test_plans_have_a_cell_for_each_a_up_to_some_k():
    assert make_plan(1024, 50).line.a[0].tolist() == list(range(1, 1025))
    assert len(make_plan(1025, 50).line.a[0]) < 200
    first, last, largest = make_plan(1000, 3).b
    assert first.tolist() == last.tolist() == [0, 1, 2, 3]
    assert np.exp(largest) == pytest.approx([1, 1001, 1001 * 1002 / 2, 1001 * 1002 * 1003 / 6])


def test_what_plans_share_is_read_only_whole_numbers():
    plan, line = make_plan(9, 700), lay_out(9, 1023)
    shared = [
        *plan.line.a,
        *plan.b[:2],
        plan.line.largest.b,
        plan.b[2],
        plan.every_a.log_mass,
        plan.line.sums.heights,
        plan.line.sums.factors,
    ]
    shared += [plan.at_last.level, plan.at_last.next, plan.at_last.way, plan.every_a.first, plan.every_a.last]
    assert not any(each.flags.writeable for each in [*shared, plan.line.largest.b, plan.line.largest.log_r])
    assert not line.largest.width.flags.writeable
    assert not any(each.flags.writeable for each in [*line.a, line.b, line.largest.b, line.largest.log_r])
    assert not any(each.flags.writeable for each in [line.sums.heights, line.sums.factors])
    every = plan.every_a
    assert (every.first.tolist(), every.last.tolist(), every.log_mass.tolist()) == ([1], [9], [0.0])
    assert {each.dtype for each in (*shared[:5], every.first, every.last)} == {np.dtype(np.int64)}


def test_bounds_are_easy_up_to_three_times_the_top_k():
    assert _are_easy(np.zeros(3)) is True
    assert _are_easy(np.array([0.0, 0.0, 0.0, -9.0])) is False
    assert _are_easy(np.array([-np.inf, 1.0])) is True
    assert _are_easy(np.array([1e6])) is False


def test_easy_bounds_are_left_alone_with_all_a_in_one_cell():
    top, bottom = Scores([1.0] * 4, 1), Scores([9.0] * 40, 0)
    found = begin(top, bottom)
    assert (found.a.first.tolist(), found.a.last.tolist()) == ([1], [5])
    assert tighten(found, top, bottom) is found


@pytest.mark.parametrize(("height", "k", "is_one"), [
    (0.99, 5, True), (1.01, 5, False), (0.5, 1024, True), (0.5, 1025, False),
])  # fmt: skip
def test_all_a_are_one_cell_where_the_largest_has_most_mass(height, k, is_one):
    """At most e times as much as there is; not where a are many."""
    top, bottom = Scores([height / (k - 1)] * (k - 1), 1), Scores([0.0] * 40, 0)
    found = begin(top, bottom)
    assert (len(found.a.first) == 1) is is_one
    assert is_flat(top) is is_one
    if is_one:
        assert (found.a.first.tolist(), found.a.last.tolist(), found.a.log_mass.tolist()) == ([1], [k], [0.0])
        assert factor(found, log_total(top, bottom)) < np.e
        fitted = tighten(found, top, bottom)
        assert len(fitted.a.first) == 1
        assert (fitted.b.log_mass > -np.inf).all()


def test_wide_cells_are_cut_where_all_a_are_one_too():
    """Only those that matter, and the bounds are as good as where a are told apart."""
    k, m = 1000, 9000
    top, bottom = Scores([5e-4] * (k - 1), 1), Scores([1e-3] * m, 0)
    found = begin(top, bottom)
    assert len(found.a.first) == 1
    assert make_plan(k, m).line.pieces > 1
    assert len(found.b.first) > len(make_plan(k, m).b[0])
    assert factor(found, log_total(top, bottom)) < 1.5 * np.exp(0.5)


def test_planned_cells_of_a_have_a_mass():
    top, flat = Scores([0.0, 1.0, 0.0, 0.0, 1.0, 0.0], 1), Scores([0.0] * 40, 0)
    found = begin(top, flat)
    assert found.a.first.tolist() == found.a.last.tolist() == [2, 5, 7]
    assert found.levels.log_r == pytest.approx(Levels.at(found.levels.b, found.a).log_r, rel=1e-12)
    every = begin(Scores([1.0] * 6, 1), flat)
    assert every.a.first.tolist() == list(range(1, 8))


def in_a_row(first, last):
    first = np.array(first)
    return Cells(first, np.append(first[1:] - 1, last), np.zeros(len(first)))


@pytest.mark.parametrize(
    ("first", "last", "chosen", "pieces", "after"),
    [
        ([0, 10, 20], 29, (1, 2), 5, [0, 10, 12, 14, 16, 18, 20]),
        ([0, 10, 20], 29, (0, 3), 2, [0, 5, 10, 15, 20, 25]),
        ([0, 1, 2, 9], 9, (0, 4), 3, [0, 1, 2, 4, 6, 9]),
        ([0, 1], 2, (1, 2), 7, [0, 1, 2]),
        ([0], 0, (0, 1), 4, [0]),
        ([0, 2**62], 2**63 - 1, (1, 2), 2, [0, 2**62, 2**62 + 2**61]),
    ],
)
def test_cells_in_a_row_are_cut_into_pieces(first, last, chosen, pieces, after):
    cut = _cut_in_a_row(in_a_row(first, last), *chosen, pieces, Even(last))
    assert cut.first.tolist() == after
    assert cut.last.tolist() == [*(each - 1 for each in after[1:]), last]
    assert cut.log_mass == pytest.approx(np.log((cut.last - cut.first) + 1.0))


@pytest.mark.parametrize(("pieces", "count"), [(4, 3200), (7, 3200), (1000, 3200)])
def test_many_cells_are_cut_into_fewer_pieces(pieces, count):
    cells = in_a_row(np.arange(0, 10**5, 100), 10**5 - 1)
    assert len(_cut_in_a_row(cells, 100, 900, pieces, Even(10**5 - 1)).first) == 200 + 800 * 2
    assert len(_cut_in_a_row(cells, 100, 500, pieces, Even(10**5 - 1)).first) == 600 + 400 * min(pieces, 5)
    assert len(_cut_in_a_row(cells, 0, 1, pieces, Even(10**5 - 1)).first) == 999 + min(pieces, 100)


def test_cells_that_may_be_heavy_are_found_by_the_heaviest():
    assert _find_heavy(np.array([-9.0, 3.0, -2.0, 1.0, -6.0]), 2.0) == (1, 4)
    assert _find_heavy(np.array([5.0, -3.0]), 5.0) == (0, 1)
    assert _find_heavy(np.array([-2.9, 5.0, -2.9]), 5.0) == (0, 3)
    assert _find_heavy(np.array([-3.1, 5.0, -3.1]), 5.0) == (1, 2)
    # Where all are lighter than was thought, the heaviest of them are found all the same.
    assert _find_heavy(np.array([-20.0, 0.0, -7.0, -9.0]), 50.0) == (1, 3)
    cells = Cells(np.arange(3), np.arange(3), np.array([-1.0, -2.0, -9.0]))
    assert _heaviest(cells, np.array([0.0, 4.0, 99.0])) == -1.0
    assert _heaviest(cells, np.array([3.0, 4.0, 99.0])) == 1.0
    assert _heaviest(cells, np.array([3.0, 30.0, 99.0])) == 21.0
    assert _heaviest(cells[np.array([True, False, False])], np.zeros(1)) == -1.0


@pytest.mark.parametrize("epsilon", [1.0, 0.05, 0.001])
@pytest.mark.parametrize("shape", SHAPES)
def test_levels_of_planned_cells_are_the_sums_over_their_a(shape, epsilon):
    top, bottom = sides(shape, 1000, 5000, epsilon)
    found = begin(top, bottom)
    right = Levels.at(found.levels.b, found.a).log_r
    assert found.levels.log_r == pytest.approx(right, rel=1e-12, abs=1e-9)


def test_wide_planned_cells_are_cut_only_where_bounds_are_not_easy():
    plan = make_plan(1000, 5000)
    assert plan.line.pieces > 1
    easy = begin(Scores([5.0] * 999, 1), Scores([4.0] * 5000, 0))
    assert len(easy.a.first) > 1
    assert easy.b.first is plan.b[0]
    flat = begin(*sides("floats", 1000, 5000, 0.05))
    assert len(flat.b.first) > len(plan.b[0])
    assert (flat.b.first[1:] == flat.b.last[:-1] + 1).all()


def test_shares_are_added_up_by_block():
    assert _add_up(np.array([2, 0, 2]), np.array([0.5, 1.0, 0.25]), 5).tolist() == [1.0, 0.0, 0.75, 0.0, 0.0]


def test_levels_are_added_evenly_by_logarithms():
    a = Cells(np.array([1]), np.array([3]), np.zeros(1))
    for before, pieces, after in [
        ([0, 9], [2.0], [0, 2, 9]),
        ([9, 99], [2.0], [9, 30, 99]),
        ([0, 9, 99, 500], [1.0, 2.0, 1.0], [0, 9, 30, 99, 500]),
        ([5, 7], [8.0], [5, 6, 7]),
        ([0, 1, 2], [3.0, 3.0], [0, 1, 2]),
    ]:
        levels = Levels.at(np.array(before), a)
        more = _add_levels(a, levels, np.array(pieces))
        assert more.b.tolist() == after
        assert more.log_r == pytest.approx(Levels.at(more.b, a).log_r, rel=1e-14)
    far = _add_levels(a, Levels.at(np.array([2**62, 2**63 - 1]), a), np.array([2.0])).b
    assert (far[0], far[2]) == (2**62, 2**63 - 1)
    assert float(far[1]) == pytest.approx(2.0**62.5, rel=1e-9)


def one_a(first, last, levels, log_mass=0.0):
    """Cells of b next to a = 1, of which there are b + 1 classes each: their rises are logarithms of quotients."""
    first, last = np.array(first), np.array(last)
    a = Cells(np.array([1]), np.array([1]), np.zeros(1))
    return Enclosure.of(a, Cells(first, last, log_mass + np.zeros(len(first))), Levels.at(np.array(levels), a))


def refine(found):
    last = int(found.levels.b[-1])
    return _refine(found, Even(1), Even(last), WASTE, False)


def test_cells_that_waste_little_are_left_alone():
    found = one_a([3], [7], [0, 7, 1000])
    assert refine(found) == (found, True)
    cut, is_fine = refine(one_a([1], [4], [0, 4, 1000], log_mass=-0.6))
    assert (cut.b.first.tolist(), cut.b.last.tolist(), is_fine) == ([1, 3], [2, 4], True)


@pytest.mark.parametrize(
    ("last", "pieces", "is_fine"), [(99, 8, True), (161 * 10**6, 32, True), (10**9, 32, False), (10**15, 32, False)]
)
def test_wide_cells_are_cut_by_their_rise_and_not_too_much_at_once(last, pieces, is_fine):
    cut, fine = refine(one_a([0], [last], [0, last]))
    assert len(cut.b.first) == pieces
    assert (cut.b.first[0], cut.b.last[-1]) == (0, last)
    assert fine == is_fine
    assert cut.levels.b.tolist() == [0, last]


def test_only_cells_that_waste_much_are_cut_in_two_at_least():
    """One rises by 3, one by 1/2 but weighs much, and one weighs nothing."""
    found = one_a([0, 59, 200], [19, 99, 300], [0, 19, 99, 300, 1000], np.array([0.0, -1.8, -20.0]))
    cut, is_fine = refine(found)
    assert is_fine
    assert cut.b.first.tolist() == [200, 0, 4, 8, 12, 16, 59, 79]
    assert cut.b.last.tolist() == [300, 3, 7, 11, 15, 19, 78, 99]


@pytest.mark.parametrize(
    ("first", "last", "levels", "count"),
    [(999, 999, [0, 10**6], 6), (0, 3, [0, 7], 3), (2**30, 2**30, [0, 2**60 - 1], 9), (2, 2, [0, 23], 2)],
)
def test_levels_are_added_where_a_chord_sags(first, last, levels, count):
    found = one_a([first], [last], levels, log_mass=0.5)
    more, is_fine = refine(found)
    assert len(more.levels.b) == count
    assert is_fine == (more is found) == (count == 2)
    # A cell of one b is left alone.
    assert first < last or more.b.log_mass.tolist() == [0.5]


def test_a_level_is_added_where_a_chord_sags_little_below_much():
    """By a tenth, where the bound rises by 6."""
    found = one_a([0], [3], [0, 7, 63])
    levels = Levels(found.levels.b, np.array([0.0, 6.0, 12.45]))
    assert levels.sags[0] == pytest.approx(0.105, abs=0.001)
    more, is_fine = refine(Enclosure.of(found.a, found.b, levels))
    assert more.levels.b.tolist() == [0, 1, 7, 63]
    assert not is_fine


def pieces_of(first, last, log_mass, levels, in_block):
    a = Cells(np.array(first), np.array(last), np.array(log_mass))
    found = _pieces_of_a(a, Levels.at(np.array(levels), a), np.array(in_block), WASTE)
    return None if found is None else found.tolist()


def test_cells_of_a_are_cut_where_they_waste_much():
    """At b = 1 a cell of a counts a' + 1 classes."""
    # Half of the bound is of the wide one, of which 3/4 may be waste: 3/8 of all, beside 5/8 that there are at least.
    assert pieces_of([1, 2], [1, 11], [0.0, -1.75], [0, 1, 50], [1.0, 0.0]) == [1, 3]
    assert pieces_of([1, 2], [1, 11], [0.0, -1.85], [0, 1, 50], [1.0, 0.0]) is None
    assert pieces_of([1], [3], [0.0], [0, 1, 50], [3.0, 0.0]) == [2]
    # The mean of two blocks counts.
    assert pieces_of([2], [3], [0.0], [0, 2, 3, 9], [1.0, 1.0, 0.0]) == [2]
    assert pieces_of([2], [3], [0.0], [0, 1, 2, 9], [1.0, 1.0, 0.0]) is None
    assert pieces_of([1, 2], [1, 11], [0.0, -3.2], [0, 1, 2, 9], [1.0, 1.0, 0.0]) is None
    # Of two wide ones that waste much one rises little, and a third one wastes nothing to speak of.
    some = pieces_of([1, 2, 100, 200], [1, 60, 149, 209], [-9.0, 0.0, 0.4, -9.0], [0, 1, 50], [1.0, 0.0])
    assert some == [1, 6, 2, 1]
    assert pieces_of([1, 2], [1, 99], [0.0, 0.0], [0, 1, 1000], [0.0, 1.0]) == [1, 32]


@pytest.mark.parametrize(
    ("in_block", "is_near"),
    [
        ([4.0, 6.0 * 2.0**-21], False),
        ([4.0, 9.0 * 2.0**-20], True),
        ([2.0**20 - 1.0, 1.0], False),
        ([0.25, 0.375 * 2.0**-21], False),
        ([0.25, 0.75 * 2.0**-20], True),
    ],
)
def test_blocks_with_next_to_no_mass_do_not_count(in_block, is_near):
    pieces = pieces_of([1, 2], [1, 11], [0.0, 0.0], [0, 1, 6, 60], [*in_block, 0.0])
    assert pieces == [1, 11 if is_near else 3]
