"""Large arrays: counted or partly sorted scores answer as sorted ones do, and selections become items exactly."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
import draws
from definitions import definition
from discreet.errors import Error
from discreet.evidence.walk import walk
from discreet.exact.entropy import Entropy
from discreet.labels import sort_labels
from discreet.mechanisms.tally import FloatColumn, Selection, UniformSubset
from discreet.sources.arrays import array, positions, sorting
from discreet.sources.arrays.array import array_source

COUNTS = discreet.Sensitivity(down=0, up=1)
KINDS = [np.int64, np.uint64, np.int8, np.int32, np.float32, np.float64]


@pytest.fixture
def tiny(monkeypatch):
    """Makes every array a large one: few scores a block, a small sample, and small numbers that end early."""
    monkeypatch.setattr(sorting, "LARGE", 1)
    monkeypatch.setattr(array, "LARGE", 1)
    monkeypatch.setattr(positions, "LARGE", 1)
    monkeypatch.setattr(positions, "BLOCK", 5)
    monkeypatch.setattr(positions, "_SHORT", 1)
    monkeypatch.setattr(sorting, "BLOCK", 5)
    monkeypatch.setattr(sorting, "_SMALL", 8)
    monkeypatch.setattr(sorting, "MANY", 1)
    for name, value in (("BLOCK", 5), ("SAMPLE", 11)):
        monkeypatch.setattr(sorting, name, value)
    for name, value in (("BLOCK", 5), ("_SHARE", 1)):
        monkeypatch.setattr(sorting, name, value)


def numbers(kind):
    if np.dtype(kind).kind == "f":
        width = 32 if kind is np.float32 else 64
        return st.floats(allow_nan=False, allow_infinity=False, width=width) | st.sampled_from([0.0, -0.0, 0.5, 1.0])
    info = np.iinfo(kind)
    return st.integers(int(info.min), int(info.max)) | st.integers(0, 9)


arrays = st.sampled_from(KINDS).flatmap(
    lambda kind: st.lists(numbers(kind), min_size=1, max_size=60).map(lambda values: np.array(values, kind))
)
fast = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def in_rank_order(scores):
    """Positions by descending score; of equal scores the last comes first."""
    return sorted(range(len(scores)), key=lambda i: (Fraction(scores[i].item()), i), reverse=True)


@given(arrays)
@fast
def test_a_tally_is_that_of_the_sorted_scores(tiny, scores):
    tally = array_source(scores).tally()
    expected = sorted((Fraction(score.item()) for score in scores), reverse=True)
    ranks = np.arange(len(scores))
    assert tally.d == len(scores)
    assert [tally.exact(rank) for rank in ranks.tolist()] == expected
    assert tally.last_of_run(ranks).tolist() == [max(i for i in ranks if expected[i] == score) for score in expected]
    within = [max(i for i in ranks if expected[i] > score - Fraction(3, 2)) for score in expected]
    assert tally.within(ranks, np.full(len(ranks), 1.5)).tolist() == within


@given(arrays, st.data())
@fast
def test_the_items_at_ranks_are_found_by_value(tiny, scores, data):
    source, order = array_source(scores), in_rank_order(scores)
    ranks = data.draw(st.lists(st.integers(0, len(scores) - 1), min_size=1, max_size=20, unique=True))
    assert source.items(np.array(ranks)) == [order[rank] for rank in ranks]


def test_many_items_are_found_where_most_scores_are_others():
    scores = np.random.default_rng(3).permutation(np.arange(300_000.0))
    ranks = np.random.default_rng(4).choice(300_000, 500, replace=False)
    found = array_source(scores).items(ranks)
    assert (scores[found] == 299_999 - ranks).all()


SCORES = np.array([4, 7, 7, 1, 4, 9, 7, 4, 0, 4, 2, 4])


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("head", "first", "last", "count", "ranks"),
    [
        (0, 1, 10, 2, [11]),
        (2, 3, 9, 3, [10]),
        (1, 2, 3, 1, [4]),
        (3, 4, 8, 4, [9]),
        (0, 0, 6, 3, [7]),
        (5, 0, -1, 0, []),
    ],
)
@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_a_selection_draws_every_subset_of_the_range_equally_often(tiny, kind, head, first, last, count, ranks):
    """The range cuts through runs of equal scores, of which only some belong to it."""
    scores = SCORES.astype(kind)
    order, source = in_rank_order(scores), array_source(scores)
    fixed = {order[rank] for rank in [*range(head), *ranks]}
    subsets = list(itertools.combinations(order[first : last + 1], count))
    probabilities = {tuple(sorted({*fixed, *subset})): Fraction(1, len(subsets)) for subset in subsets}

    def sampler(entropy):
        some = UniformSubset(count, first, last, entropy) if count else None
        return tuple(sort_labels(source.draw_items(source.tally(), Selection(np.array(ranks, np.int64), head, some))))

    decided, undecided = walk(sampler, 1500)
    assert set(decided) <= set(probabilities)
    assert all(decided.get(y, 0) <= p <= decided.get(y, 0) + undecided for y, p in probabilities.items())
    drawn = Counter(sampler(Entropy(random.Random(seed))) for seed in range(40 * len(subsets)))
    assert set(drawn) == set(probabilities)
    assert len(subsets) == 1 or draws.fits(drawn, {y: float(p) for y, p in probabilities.items()})


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("head", "last", "count"),
    [(0, 11, 2), (0, 8, 3), (1, 11, 2), (1, 8, 2), (1, 8, 4), (1, 3, 1), (4, 10, 3), (1, 11, 9), (4, 3, 0)],
)
@pytest.mark.parametrize("kind", [np.int64, np.float32])
@pytest.mark.parametrize("size", ["few", "many"])
def test_so_does_one_that_cuts_no_run(size, kind, head, last, count, request):
    """By scores alone, whether the range begins with the first rank, ends with the last, or neither."""
    if size == "many":
        request.getfixturevalue("tiny")
    scores = SCORES.astype(kind)
    order, source = in_rank_order(scores), array_source(scores)
    subsets = list(itertools.combinations(order[head : last + 1], count))
    probabilities = {tuple(sorted({*order[:head], *subset})): Fraction(1, len(subsets)) for subset in subsets}

    def sampler(entropy):
        some = UniformSubset(count, head, last, entropy) if count else None
        nobody = np.empty(0, np.int64)
        return tuple(sort_labels(source.draw_items(source.tally(), Selection(nobody, head, some, cuts_no_run=True))))

    decided, undecided = walk(sampler, 1500)
    assert set(decided) <= set(probabilities)
    assert all(decided.get(y, 0) <= p <= decided.get(y, 0) + undecided for y, p in probabilities.items())
    drawn = Counter(sampler(Entropy(random.Random(seed))) for seed in range(40 * len(subsets)))
    assert set(drawn) == set(probabilities)
    assert len(subsets) == 1 or draws.fits(drawn, {y: float(p) for y, p in probabilities.items()})


@pytest.mark.parametrize("count", [5, 50_000])
def test_some_of_nearly_all_items_are_those_before_the_range_and_as_many_inside(count):
    scores, head = np.random.default_rng(6).permutation(np.arange(2.0**17)), 3
    some = UniformSubset(count, head, 2**17 - 1001, Entropy(random.Random(1)))
    source, nobody = array_source(scores), np.empty(0, np.int64)
    found = source.draw_items(source.tally(), Selection(nobody, head, some, cuts_no_run=True))
    drawn = np.sort(scores[found])[::-1]
    assert len(np.unique(found)) == head + count
    assert drawn[:head].tolist() == [2**17 - 1, 2**17 - 2, 2**17 - 3]
    assert drawn.min() >= 1000


@pytest.mark.some(1)
@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.Canonical(gamma=1), discreet.OneShot("gumbel")])
@pytest.mark.parametrize("scores", [np.array([3, 9, 2, 2, 9, 0]), np.array([2.5, 0.25, 2.0, 2.0, 9.5, 0.0])], ids=str)
def test_large_arrays_release_by_the_definition(tiny, mechanism, scores):
    probabilities = definition(mechanism, scores.tolist(), 2, 2)
    entropy = Entropy(random.Random(8))
    releases = (discreet.top_k(scores, 2, 2, mechanism=mechanism, sensitivity=COUNTS, rng=entropy) for _ in range(3000))
    counts = Counter(tuple(release.order or release.items) for release in releases)
    assert draws.fits(counts, probabilities)


def falling(d):
    """Scores whose top is far above the rest."""
    return 1e6 / np.arange(1.0, d + 1.0)


def test_only_the_buckets_asked_for_are_sorted():
    scores = np.random.default_rng(5).permutation(falling(2**18))
    tally = array_source(scores).tally()
    discreet.Canonical().prepare(tally, 20, Fraction(1), discreet.Sensitivity()).draw(Entropy(random.Random(1)))
    assert isinstance(tally.column, sorting.BucketColumn)
    assert 20 < len(tally.column._known.values) < 2**16
    # Asked for a rank below, it sorts more, and the answers stay what they were.
    before = tally.exact(7)
    assert tally.exact(2**18 - 1) == Fraction(float(scores.min()))
    assert tally.exact(7) == before


def test_scores_counted_by_value_need_no_sort():
    scores = np.random.default_rng(8).integers(0, 1000, 2**18)
    tally = array_source(scores).tally()
    assert tally.last is not None
    assert len(tally.column) == 1000
    counts = np.bincount(scores)
    assert tally.last_of_run(np.array([0])).tolist() == [counts[999] - 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 77_777, 2**17 - 1])
@pytest.mark.parametrize("scale", [1.0, 1.5e308])
def test_one_score_that_is_not_finite_is_found(bad, place, scale):
    """Whether the top alone or all is sorted, and where sums of blocks are beyond all floats too."""
    for scores in (falling(2**17) * (scale / 1e6), np.random.default_rng(9).random(2**17)):
        assert discreet.top_k(scores, 3, 1, sensitivity=discreet.Sensitivity(0, scale / 1e6)).d == 2**17
        scores[place] = bad
        with pytest.raises(Error, match="finite"):
            discreet.top_k(scores, 3, 1, sensitivity=COUNTS)


def test_float32_is_compared_as_what_it_denotes():
    values = np.array([0.1, 0.2, 0.3, 16777216.0, 16777218.0], np.float32)
    column = FloatColumn(values)
    reach = float(np.float64(values[4]) - 16777217.0)
    # 16777216 is not above 16777218 - 1 = 16777217, which float32 does not hold.
    assert column.within(np.array([4]), np.array([reach])).tolist() == [4]
    assert column.within(np.array([4]), np.array([np.nextafter(2.0, 3.0)])).tolist() == [3]
    assert column.number(0) == float(np.float32(0.1))


def test_a_rank_that_is_asked_for_twice_costs_one_sort(monkeypatch):
    calls = []
    whole = sorting._sort_column
    monkeypatch.setattr(sorting, "_sort_column", lambda *args: calls.append(1) or whole(*args))
    scores = np.random.default_rng(1).integers(0, 2**60, 2**17)
    tally = array_source(scores).tally()
    assert not calls
    for _ in range(2):
        assert tally.last_of_run(np.array([5])).tolist() == [5]
    assert len(calls) == 1
    source = array_source(np.array([3, 1]))
    assert positions.PositionFinder(source.scores, source.tally()).find(np.array([1])).tolist() == [1]


@pytest.mark.some(6)
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("below", [0, 1, 600, 5000, 2**40, 2**62 - 200])
@pytest.mark.parametrize("epsilon", ["0.001", 1, 1000])
def test_large_whole_numbers_that_tie_at_the_top_are_no_error(kind, below, epsilon):
    """Numbers that floats round up, even beyond their type, on 5% of the items: the bar is found in whole numbers."""
    rng = np.random.default_rng(1)
    scores = rng.integers(2**30, 2**31, 2**17).astype(kind)
    scores[rng.random(2**17) < 0.05] = np.iinfo(kind).max - below
    release = discreet.top_k(scores, 10, epsilon)
    assert len(release.items) == 10
    assert epsilon == "0.001" or (scores[release.items] > 2**31).all()


def test_a_sample_that_misleads_costs_a_sort_and_no_more():
    """Every score that the sample sees is small, and hardly any other is."""
    scores = np.random.default_rng(2).integers(2**40, 2**50, 2**18)
    scores[:: 2**18 // sorting.SAMPLE] = 3
    tally = array_source(scores).tally()
    assert tally.last is None
    assert tally.exact(0) == scores.max()
    assert tally.exact(2**18 - 1) == 3


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_a_mapped_file_is_read_in_pieces_and_let_go(tmp_path, kind):
    """Its pages do not stay in memory beside a sorted copy; a mapping that was written to keeps what was written."""
    scores = (np.random.default_rng(4).random(2**17) * 1e9).astype(kind)
    np.save(tmp_path / "scores.npy", scores)
    mapped, private = (np.load(tmp_path / "scores.npy", mmap_mode=mode) for mode in ("r", "c"))
    assert sorting._find_mapping(np.asarray(mapped)[5:]) is not None
    assert sorting._find_mapping(private) is None
    assert sorting._find_mapping(scores) is None
    private[7] = 2 * scores.max()
    assert array_source(mapped).tally().exact(0) == Fraction(scores.max().item())
    assert array_source(private).tally().exact(0) == Fraction(2 * scores.max().item())
    assert private[7] == 2 * scores.max()
    one, other = (discreet.top_k(each, 5, 1, sensitivity=COUNTS, rng=random.Random(1)) for each in (mapped, scores))
    assert one == other


@pytest.mark.parametrize("d", [1, 2, 600, 3000, 2**18])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_whole_numbers_are_sorted_by_digits_as_by_comparing(dtype, d):
    made, limits = np.random.default_rng(d), np.iinfo(dtype)
    spans = [(limits.min, limits.max), (0, 5), (limits.max - 3, limits.max), (limits.min, limits.min + 4)]
    for low, high in spans:
        scores = made.integers(low, high, d, dtype=dtype, endpoint=True)
        # Most of them small, and some of any size.
        scores[::9] = made.integers(limits.min, limits.max, len(scores[::9]), dtype=dtype, endpoint=True)
        for some in (scores, scores[::-1][::2]):
            column = sorting._sort_column(some, Fraction(1))
            assert column.keys.dtype == np.uint64
            assert (column.keys + np.uint64(column.low % 2**64) == sorting.as_bits(np.sort(some))).all()


@pytest.mark.parametrize("d", [1, 600, 3000, 2**18])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_are_sorted_by_digits_as_by_comparing(dtype, d):
    made = np.random.default_rng(d)
    zeros = np.where(made.random(d) < 0.5, -0.0, 0.0)
    for scores in (made.normal(size=d), -made.pareto(0.3, d), zeros, made.normal(size=d) * 1e-40, made.random(d) - 0.5):
        some = scores.astype(dtype)
        assert (sorting.sort_scores(some) == np.sort(some)).all()
        assert (sorting.sort_scores(some[::-1][::3]) == np.sort(some[::-1][::3])).all()


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("d", [2, 600, 5000])
def test_what_is_not_finite_is_refused_at_every_length(bad, d):
    scores = np.random.default_rng(1).random(d)
    scores[d // 2] = bad
    with pytest.raises(Error, match="finite"):
        sorting._sort_column(scores, Fraction(1))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "mechanism", [discreet.Canonical(), discreet.Canonical(noise="laplace"), discreet.Core()], ids=repr
)
@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_what_was_sorted_for_few_items_does_not_decide_about_more(kind, mechanism):
    """A second release with a larger k from one source is what a first one would be."""
    scores = np.random.default_rng(1).integers(10**6, 10**6 + 10**9, 2**17 + 5).astype(kind)
    used = discreet.grouped({"x": scores}, each_user="one")
    limit = discreet.Sensitivity(down=0, up=1)
    discreet.top_k(used, 10, "1e-5", sensitivity=limit, rng=random.Random(0))
    for k in (11, 500, 5000):
        fresh = discreet.grouped({"x": scores}, each_user="one")
        one, other = (
            discreet.top_k(source, k, "1e-5", mechanism=mechanism, sensitivity=limit, rng=random.Random(k))["x"].items
            for source in (used, fresh)
        )
        assert one == other


def spread(d):
    counts = np.zeros(d, np.int64)
    counts[:3] = 1000
    return counts


def rewrite(counts):
    """Puts eight other items at the top, in place."""
    counts[:] = 0
    counts[100:107] = 1000
    counts[500] = 1000


@pytest.mark.parametrize("make", ["array", "frame", "mapped"])
def test_a_source_that_outlives_a_call_does_not_follow_its_array(make, tmp_path):
    """The scores are those of the time when it was made, whoever writes to the array, the frame or the file later."""
    counts = spread(1000)
    given = counts
    if make == "frame":
        import pandas as pd

        frame = pd.DataFrame({"DE": counts}, copy=False)
        source = discreet.grouped(frame, each_user="one")
        given = frame["DE"].to_numpy(copy=False)
        given.setflags(write=True)
    else:
        if make == "mapped":
            np.save(tmp_path / "scores.npy", counts)
            given = np.load(tmp_path / "scores.npy", mmap_mode="r+")
        source = discreet.grouped({"DE": given}, each_user="one")
    for _ in range(2):
        assert discreet.top_k(source, k=3, epsilon=50)["DE"].items == [0, 1, 2]
        rewrite(given)
    assert not source.members[0].scores.flags.writeable


@pytest.mark.parametrize("d", [1000, 2**17])
def test_an_array_that_changes_between_tally_and_lookup_is_withheld(d, monkeypatch):
    """Positions found by an old threshold would be seven items for k = 3, without any noise."""
    counts = spread(d)
    real = array.tally_of_array

    def tally_and_rewrite(scores, unit):
        tally = real(scores, unit)
        rewrite(counts)
        return tally

    monkeypatch.setattr(array, "tally_of_array", tally_and_rewrite)
    with pytest.raises(discreet.InternalError, match="withholds the release"):
        discreet.top_k(counts, k=3, epsilon=1)


def test_a_tally_is_made_anew_for_each_release():
    counts = spread(1000)
    source = array_source(counts)
    assert source.tally().exact(7) == 0
    rewrite(counts)
    assert source.tally().exact(7) == 1000
