"""Numbers by buckets: every answer is that of sorted scores, and only what is looked at is sorted."""

import threading
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.errors import Error
from discreet.mechanisms.tally import FloatColumn, IntegerColumn, Tally
from discreet.sources.arrays import sorting
from discreet.sources.arrays.sorting import BucketColumn

MADE = np.random.default_rng(6)
SPREAD = {
    "uniform": MADE.random(70_000) * 5000.0,
    "narrow": MADE.normal(-3.0, 1e-9, 70_000),
    "float32": MADE.normal(0.0, 1e3, 70_000).astype(np.float32),
    "tied": MADE.integers(-2000, 2000, 70_000) / 4.0,
    "zeros of both signs": np.append(MADE.random(69_998) - 0.5, [0.0, -0.0]),
    "large": MADE.random(70_000) * 8e307 - 4e307,
    "small": MADE.integers(0, 2**40, 70_000) * 2.0**-1040,
    "Zipf": 1e9 / np.arange(1.0, 70_001.0) ** 1.05,
    "squares": -1e9 / np.arange(1.0, 70_001.0) ** 2,
    "denormal": MADE.integers(0, 2**40, 70_000) * 5e-324,
    "steep narrow floats": np.exp(MADE.normal(0.0, 4.0, 70_000)).astype(np.float32),
    "every second": (MADE.random(140_000) * 9.0)[::2],
    "whole": MADE.integers(0, 10**9, 70_000),
    "whole of any size": MADE.integers(-(2**63), 2**63, 70_000),
    "large without a sign": MADE.integers(0, 2**64, 70_000, np.uint64),
    "short": MADE.integers(-(2**31), 2**31, 70_000, np.int32),
    "whole Zipf": (1e18 / np.arange(1, 70_001)).astype(np.int64),
}


def fill_buckets(scores):
    return sorting.fill_buckets(scores, Fraction(1), lambda: sorting._sort_column(scores, Fraction(1)))


@pytest.mark.parametrize("name", SPREAD)
def test_every_answer_is_that_of_sorted_scores(name):
    scores = SPREAD[name]
    column, ordered = fill_buckets(scores), sorting._sort_column(scores, Fraction(1))
    assert isinstance(column, BucketColumn)
    assert len(column) == len(scores)
    for size in (1, 3, 400, 9):
        some = MADE.integers(0, len(scores), size)
        assert column.raw(some).dtype == (scores.dtype if scores.dtype.kind == "f" else np.uint64)
        assert (column.raw(some) == ordered.raw(some)).all()
        assert column.number(int(some[0])) == ordered.number(int(some[0]))
    ends = np.array([0, 1, len(scores) - 2, len(scores) - 1])
    assert (column.raw(ends) == ordered.raw(ends)).all()
    assert len(column._known.values) < len(scores) // 5
    every = np.arange(len(scores))
    assert (column.raw(every) == ordered.raw(every)).all()
    one, other = MADE.integers(0, len(scores), (2, 50))
    with np.errstate(all="ignore"):
        assert (column.differences(one, other) == ordered.differences(one, other)).all()
    assert (column.within(one, np.full(50, 1.0)) == ordered.within(one, np.full(50, 1.0))).all()
    assert (column.run(one) == ordered.run(one)).all()


def test_what_was_looked_at_stays_in_order():
    scores = SPREAD["uniform"]
    column = fill_buckets(scores)
    column.raw(np.arange(0, 70_000, 700))
    first = column._known
    column.raw(np.arange(0, 70_000, 700))
    assert column._known is first
    column.raw(np.array([1234]))
    assert (column._known.has >= first.has).all()
    assert (np.diff(column._known.values) >= 0).all()
    assert "_whole" not in vars(column)
    # A quarter of all takes as long as all.
    assert column._sort_more(first, np.arange(0, 2**15, 3)) is None


def test_all_is_sorted_after_some_looks():
    """A mechanism that asks for one rank after the other does not pass over the array each time."""
    column, ordered = fill_buckets(SPREAD["uniform"]), np.sort(SPREAD["uniform"])
    for looks, position in enumerate(range(0, 16_000, 1000)):
        assert column._known.looks == looks
        assert column.number(position) == ordered[position]
    assert "_whole" not in vars(column)
    assert column.number(0) == ordered[0]
    assert column.number(50_000) == ordered[50_000]
    assert "_whole" in vars(column)
    known = column._known
    assert column.number(60_000) == ordered[60_000]
    assert column._known is known


@pytest.mark.parametrize(
    "scores",
    [
        np.full(70_000, 2.5),
        np.append(np.zeros(69_000), MADE.random(1000)),
        MADE.integers(0, 20, 70_000) + 0.5,
        np.append(1.0 + MADE.random(69_999) * 1e-9, 1e300),
        MADE.random(70_000) * 1.7e308 * np.where(MADE.random(70_000) < 0.5, 1, -1),
        ((MADE.random(70_000) - 0.5) * 6.6e38).astype(np.float32),
        2**62 + MADE.permutation(2**17),
        MADE.permutation(np.append(MADE.pareto(0.7, 35_000), -MADE.pareto(0.7, 35_000))),
    ],
)
def test_scores_that_are_not_spread_are_sorted(scores):
    """Equal ones, few different ones, close ones beside one that is far away, and steep ones on both sides of 0."""
    with np.errstate(all="ignore"):
        assert fill_buckets(scores) is None
        column = sorting.tally_of_array(scores, Fraction(1)).column
    assert isinstance(column, FloatColumn | IntegerColumn)
    ordered = np.sort(scores)
    assert all(column.number(i) == ordered[i] for i in range(0, 70_000, 700))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 65_536, 69_999])
def test_a_score_that_is_not_finite_is_refused(bad, place):
    scores = SPREAD["uniform"].copy()
    scores[place] = bad
    with pytest.raises(Error, match="scores must be finite"):
        discreet.top_k(scores, 10, 1, sensitivity=discreet.Sensitivity(down=0, up=1))


def test_keys_never_fall_and_reach_both_ends():
    for scores in SPREAD.values():
        column = fill_buckets(scores)
        keys = column.keys[np.argsort(scores, kind="stable")].astype(np.int64)
        assert (np.diff(keys) >= 0).all()
        assert keys[0] == 0
        assert 2 * int(keys[-1]) >= len(column.begins) - 3
        assert (np.diff(column.begins) == np.bincount(keys, minlength=len(column.begins) - 1)).all()
        assert column.begins[-1] == len(scores)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bits", [1, 8, 16])
def test_leading_bits_never_fall_and_fit_whatever_the_signs(kind, bits):
    """With zeros of both signs at either end and between, and from the least to the largest of all floats."""
    limits = np.finfo(kind)
    tiny = limits.smallest_subnormal
    for ends in ([0.0, -0.0, tiny, 1.0], [-1.0, -tiny, -0.0, 0.0], [-0.0, 0.0], [limits.min, -0.0, 0.0, limits.max]):
        for scores in (np.array(ends, kind), np.array(ends[::-1], kind)):
            low, high = sorting._find_range(scores)
            keys = sorting._find_by_bits(low, high, bits)(scores).astype(np.int64)
            assert keys.max() < 2**bits
            order = np.argsort(scores, kind="stable")
            assert (np.diff(keys[order]) >= 0).all()
            assert len({int(key) for key in keys[scores == 0.0]}) <= 1


@pytest.mark.parametrize("by", ["_find_by_share", "_find_by_bits"])
def test_either_way_to_buckets_finds_every_score(by, monkeypatch):
    """Where some buckets are crowded too, which costs time alone."""
    monkeypatch.setattr(sorting, "_SHARE", 1)
    other = {"_find_by_share": "_find_by_bits", "_find_by_bits": "_find_by_share"}[by]
    monkeypatch.setattr(sorting, other, lambda low, high, bits: None)
    for scores in SPREAD.values():
        if (column := fill_buckets(scores)) is not None:
            some = MADE.integers(0, len(scores), 30)
            assert (column.raw(some) == sorting._sort_column(scores, Fraction(1)).raw(some)).all()
        else:
            assert by == "_find_by_share"


def test_threads_may_look_at_different_ranks():
    scores = SPREAD["uniform"]
    ordered, wrong = np.sort(scores), []

    def read(column, begin, seed):
        made = np.random.default_rng(seed)
        begin.wait()
        for _ in range(60):
            some = made.integers(0, len(scores), 20)
            if not (column.raw(some) == ordered[some]).all():
                wrong.append(seed)

    for _ in range(3):
        column, begin = fill_buckets(scores), threading.Barrier(4)
        threads = [threading.Thread(target=read, args=(column, begin, seed)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.OneShot(), discreet.Joint()], ids=repr)
def test_a_release_is_that_of_sorted_scores(mechanism, monkeypatch):
    """Drawn by the same bits, where all scores are in one column."""
    import random

    releases, limit = [], discreet.Sensitivity(down=0, up=1)
    for many in (sorting.MANY, 10**9):
        monkeypatch.setattr(sorting, "MANY", many)
        drawn = discreet.top_k(
            SPREAD["uniform"], 40, "0.05", mechanism=mechanism, sensitivity=limit, rng=random.Random(3)
        )
        releases.append(drawn.items)
    assert releases[0] == releases[1]
    assert isinstance(Tally(fill_buckets(SPREAD["uniform"])).exact(3), Fraction)


def test_scores_that_change_while_they_are_looked_at_are_withheld():
    scores = SPREAD["uniform"].copy()
    column = fill_buckets(scores)
    column.keys[:] = column.keys[0]
    with pytest.raises(discreet.InternalError):
        column.raw(np.array([3]))
