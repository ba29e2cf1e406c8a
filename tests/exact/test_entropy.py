"""Exact draws: every string of bits is walked, so that probabilities are sums of powers of two, not estimates."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import draws
from discreet.errors import Error
from discreet.evidence.walk import walk
from discreet.exact.arrays import sorted_distinct
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy, SystemBits, as_entropy


def assert_between(decided, undecided, probabilities):
    """Every probability lies between what is decided for it and that plus what is undecided."""
    assert set(decided) <= set(probabilities)
    for outcome, p in probabilities.items():
        assert decided.get(outcome, 0) <= p <= decided.get(outcome, 0) + undecided


@pytest.mark.some(2)
@pytest.mark.parametrize("largest", [0, 1, 2, 4, 6, 12])
def test_upto_is_uniform(largest):
    decided, undecided = walk(lambda entropy: entropy.upto(largest), 4000)
    assert_between(decided, undecided, {i: Fraction(1, largest + 1) for i in range(largest + 1)})
    assert undecided < Fraction(1, 100)


@pytest.mark.parametrize(("size", "last"), [(0, 3), (1, 3), (2, 3), (3, 4), (4, 4), (5, 4), (2, 4)])
def test_subset_is_uniform(size, last):
    decided, undecided = walk(lambda entropy: tuple(entropy.subset(size, last).tolist()), 2500)
    subsets = list(itertools.combinations(range(last + 1), size))
    assert_between(decided, undecided, {y: Fraction(1, len(subsets)) for y in subsets})
    assert undecided < Fraction(2, 5)


@pytest.mark.some(2)
@pytest.mark.parametrize("largest", [(2,), (0, 1), (1, 2, 2), (1, 1, 3), (3, 3)])
def test_arrangement_is_uniform_under_nested_bounds(largest):
    decided, undecided = walk(lambda entropy: tuple(entropy.arrangement(largest)), 6000)
    allowed = [
        y
        for y in itertools.permutations(range(max(largest) + 1), len(largest))
        if all(value <= bound for value, bound in zip(y, largest, strict=True))
    ]
    assert_between(decided, undecided, {y: Fraction(1, len(allowed)) for y in allowed})
    assert undecided < Fraction(1, 50)


def test_position_has_the_share_of_each_part():
    weights = [3, 1, 7, 2]
    cumulative = np.cumsum(weights)
    decided, undecided = walk(lambda entropy: entropy.position(cumulative), 800)
    assert_between(decided, undecided, {j: Fraction(w, sum(weights)) for j, w in enumerate(weights)})
    assert undecided < Fraction(1, 100)


@pytest.mark.parametrize("word", [1, 5, 64])
def test_many_bounded_draws_are_uniform(word):
    entropy = Entropy(random.Random(8), word)
    largest = np.tile(np.arange(6), 3000)
    values = entropy.upto_each(largest)
    assert (values >= 0).all()
    for bound in range(1, 6):
        counts = Counter(values[largest == bound].tolist())
        assert draws.fits(counts, dict.fromkeys(range(bound + 1), 1 / (bound + 1)))


def test_large_bounds_are_reached_and_kept():
    entropy = Entropy(random.Random(1))
    for largest in (2**63 - 1, 2**62, 2**53 + 1, 10**18):
        values = entropy.upto_each(np.full(3000, largest))
        assert values.min() >= 0
        assert values.max() <= largest
        assert values.max() > 0.99 * largest
    assert all(0 <= entropy.upto(2**200) <= 2**200 for _ in range(10))


def test_large_subsets_are_subsets():
    entropy = Entropy(random.Random(1))
    for size, last in [(1000, 2**63 - 2), (5000, 9999), (9999, 9999), (7000, 10**4), (0, 0)]:
        subset = entropy.subset(size, last)
        assert len(subset) == size
        assert (np.diff(subset) > 0).all()
        assert size == 0 or (subset[0] >= 0 and subset[-1] <= last)


def test_a_uniform_number_keeps_the_bits_it_has():
    uniform = Entropy(random.Random(3), 8).uniform()
    before = uniform.numerator
    ball = uniform.ball()
    for _ in range(5):
        uniform.extend()
        assert ball.contains(uniform.ball())
    assert uniform.bits == 48
    assert uniform.numerator >> 40 == before


def test_the_system_serves_by_default_and_generators_are_taken():
    one, other = Entropy().bits(256), Entropy().bits(256)
    assert one != other
    for make in (lambda: random.Random(5), lambda: np.random.default_rng(5)):
        assert as_entropy(make()).bits(200) == as_entropy(make()).bits(200)
        assert as_entropy(make()).bits(3) < 8
    with pytest.raises(Error, match="rng must be None"):
        as_entropy(7)


def test_distinct():
    assert sorted_distinct(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    assert sorted_distinct(np.array([], np.int64)).tolist() == []


def test_no_source_loses_a_bit_or_adds_one():
    """Each bit of a number is set about half the time, whatever the length; seven deviations, so never by chance."""
    for entropy in (Entropy(), as_entropy(np.random.default_rng(5)), as_entropy(random.Random(5))):
        for count in (1, 3, 8, 9, 13, 64, 65):
            values = [entropy.bits(count) for _ in range(400)]
            assert max(values) < 2**count
            for bit in range(count):
                assert 130 < sum(value >> bit & 1 for value in values) < 270


@pytest.mark.parametrize("word", [1, 5, 64])
def test_the_interval_of_a_uniform_number_is_exactly_what_its_bits_leave_open(word):
    uniform = Entropy(random.Random(6), word).uniform()
    for _ in range(3):
        ends = [arb((uniform.numerator + i, -uniform.bits)) for i in (0, 1)]
        with precision(300):
            held = uniform.ball()
            assert all(held.contains(end) for end in ends)
            assert held.rad() * 2 <= (ends[1] - ends[0]) * (1 + 2.0**-20)
        uniform.extend()


def test_fields_of_no_bits_are_zeros():
    fields = Entropy(random.Random(6))._fields(3, 0)
    assert fields.dtype == np.uint64
    assert fields.tolist() == [0, 0, 0]


def test_the_last_bits_of_large_draws_are_fair():
    """A number above 2^53 that passed through a float would end in zeros; seven deviations, so never by chance."""
    entropy = Entropy(random.Random(4))
    for values in (entropy.upto_each(np.full(2000, 2**62 - 1)), entropy.subset(2000, 2**62 - 1)):
        for bit in range(8):
            assert 840 < (values >> bit & 1).sum() < 1160


@pytest.mark.parametrize("base", [random.Random, random.SystemRandom, SystemBits])
def test_a_generator_with_bits_of_its_own_is_asked_for_all_of_them(base):
    class Ones(base):
        def getrandbits(self, k, /):
            return 2**k - 1

    assert (Entropy(Ones()).words(50) == 2**64 - 1).all()


@pytest.mark.parametrize("k", range(1, 25))
def test_bits_of_the_system_are_the_first_ones_of_as_few_bytes_as_have_them(k, monkeypatch):
    for given in (b"\x80\x01\x55", b"\xff\xff\xff", b"\x07\xc2\x99"):
        monkeypatch.setattr("os.urandom", lambda size, given=given: given[:size])
        size = -(-k // 8)
        assert SystemBits().getrandbits(k) == int.from_bytes(given[:size], "little") >> (8 * size - k)


def test_seeded_bytes_are_the_bits_of_the_generator():
    whole = random.Random(3).getrandbits(64 * 40).to_bytes(8 * 40, "little")
    assert (Entropy(random.Random(3)).words(40) == np.frombuffer(whole, "<u8")).all()


class Given(Entropy):
    """Random words that are given, once."""

    def __init__(self, words):
        super().__init__(random.Random(1))
        self.given = words

    def _fields(self, count, width):
        words, self.given = self.given, None
        if words is None:
            raise LookupError
        assert len(words) <= count
        return words


@pytest.mark.parametrize("last", [1, 2, 6, 255, 1000, 10922, 2**14 - 1])
def test_as_many_of_all_short_words_have_each_number(last):
    """Of all words of 16 bits, so that the distribution is seen and not estimated."""
    each = 2**16 // (last + 1)
    drawn = Given(np.arange(2**16, dtype=np.uint64)).upto_all(each * (last + 1), last)
    assert np.bincount(drawn, minlength=last + 1).tolist() == [each] * (last + 1)


@pytest.mark.parametrize("size", [2**16 + 1, 10**5, 10**6 + 3, 2**20, 3 * 2**24 + 5, 2**28 - 1, 2**28])
def test_as_many_long_words_have_each_number(size):
    """Of all words of 32 bits with some number in the upper half of their product."""
    each = 2**32 // size
    for number in (0, 1, size // 3, size - 2, size - 1):
        first, end = -(-number * 2**32 // size), -(-(number + 1) * 2**32 // size)
        words = np.arange(first, end, dtype=np.uint64)
        assert Given(words).upto_all(each, size - 1).tolist() == [number] * each
        with pytest.raises(LookupError):
            Given(words).upto_all(each + 1, size - 1)


def test_many_numbers_are_drawn_in_blocks():
    entropy, asked, fields = Entropy(random.Random(3)), [], Entropy._fields
    entropy._fields = lambda count, width: asked.append(count) or fields(entropy, count, width)
    drawn = entropy.upto_all(150_000, 99_999)
    assert len(drawn) == 150_000
    assert max(asked) == 2**16
    assert len(asked) == 3
    assert (drawn.min() >= 0, drawn.max() <= 99_999, drawn.dtype) == (True, True, np.dtype(np.int64))


@pytest.mark.parametrize(("size", "last"), [(20, 29), (9, 40), (12, 15)])
def test_members_of_larger_subsets_are_equally_likely(size, last):
    entropy, counts = Entropy(random.Random(8)), Counter()
    for _ in range(2000):
        counts.update(entropy.subset(size, last).tolist())
    assert draws.fits(counts, dict.fromkeys(range(last + 1), 1 / (last + 1)))


@pytest.mark.some(1)
@pytest.mark.parametrize(("count", "last"), [(1, 0), (1, 2), (2, 2), (2, 4), (3, 1)])
def test_few_numbers_at_once_are_uniform(count, last):
    decided, undecided = walk(lambda entropy: tuple(entropy.upto_all(count, last).tolist()), 3000)
    every = itertools.product(range(last + 1), repeat=count)
    assert_between(decided, undecided, {each: Fraction(1, (last + 1) ** count) for each in every})
    assert undecided < Fraction(1, 5)


def test_large_numbers_are_drawn_up_to_the_last_and_not_beyond():
    last = 2**28 + 5
    words = np.array([last, last + 1, 0, last, 2**29 - 1, 7, 8, 9, 10, 11], np.uint64)
    assert Given(words).upto_all(8, last).tolist() == [last, 0, last, 7, 8, 9, 10, 11]
    assert Given(words[[0, 2, 3]]).upto_all(3, last).tolist() == [last, 0, last]
    drawn = Entropy(random.Random(2)).upto_all(3000, last)
    assert (len(drawn), drawn.min() >= 0, drawn.max() <= last, drawn.max() > 0.99 * last) == (3000, True, True, True)


def test_marks_and_sorted_draws_give_subsets_of_one_law():
    """Beside the number from which on the drawn ones are marked no more."""
    for size, last in ((8, 511), (8, 512), (8, 513)):
        entropy, counts = Entropy(random.Random(last)), Counter()
        for _ in range(3000):
            drawn = entropy.subset(size, last)
            assert (len(drawn), (np.diff(drawn) > 0).all()) == (size, True)
            counts.update((drawn // 64).tolist())
        share = [min(64, last + 1 - 64 * i) / (last + 1) for i in range(-(-(last + 1) // 64))]
        assert draws.fits(counts, dict(enumerate(share)))


class GivenBytes(Entropy):
    """Random words of 32 bits that are given, so many at a time."""

    def __init__(self, words):
        super().__init__(random.Random(1))
        self.given = list(words)

    def _bytes(self, count):
        now, self.given = self.given[: count // 4], self.given[count // 4 :]
        if not now:
            raise LookupError
        return np.array(now, "<u4").tobytes()


@pytest.mark.parametrize("size", [3, 2**16 + 1, 10**6 + 3, 3 * 2**24 + 5, 2**28 - 1, 2**28])
def test_as_many_words_have_each_number_of_few(size):
    """Of all words of 32 bits with some number in the upper half of their product, or of the first and last of them."""
    each = 2**32 // size
    for number in (0, 1, size // 3, size - 2, size - 1):
        first, end = -(-number * 2**32 // size), -(-(number + 1) * 2**32 // size)
        words = [*range(first, min(end, first + 50)), *range(max(first + 50, end - 50), end)]
        drawn = GivenBytes(words)._upto_few(len(words), size - 1)
        assert set(drawn) == {number}
        assert len(words) - len(drawn) == end - first - each


@pytest.mark.parametrize(("size", "last"), [(2, 5), (4, 5), (6, 6), (0, 9), (3, 2**40)])
def test_few_numbers_are_a_uniform_subset(size, last):
    entropy = Entropy(random.Random(size + last))
    if last > 100:
        drawn = [entropy.subset(size, last) for _ in range(200)]
        assert {(len(each), bool((np.diff(each) > 0).all())) for each in drawn} == {(size, True)}
        assert 0.9 * last < max(each[-1] for each in drawn) <= last
        return
    counts = Counter(tuple(entropy.subset(size, last).tolist()) for _ in range(4000))
    subsets = list(itertools.combinations(range(last + 1), size))
    assert set(counts) == set(subsets)
    assert len(subsets) == 1 or draws.fits(counts, dict.fromkeys(subsets, 1 / len(subsets)))


@pytest.mark.parametrize(("size", "last"), [(33, 39), (40, 79), (50, 80), (40, 900), (45, 3000), (70, 2**30)])
def test_marked_numbers_are_each_as_likely(size, last):
    """Those drawn and all others, of few and of many; by tens, where there are many numbers."""
    entropy, width = Entropy(random.Random(last)), -(-(last + 1) // 10)
    found = [entropy.subset(size, last) for _ in range(300)]
    assert {(len(each), each.dtype == np.int64, bool((np.diff(each) > 0).all())) for each in found} == {
        (size, True, True)
    }
    counts = Counter((np.concatenate(found) // width).tolist())
    lengths = [min(width, last + 1 - i * width) for i in range(10)]
    assert draws.fits(counts, {i: length / (last + 1) for i, length in enumerate(lengths) if length > 0})


def test_a_second_round_of_draws_is_rare():
    """More are drawn at first than are likely needed, so that others hardly ever have to be."""
    rounds = []

    class Counting(Entropy):
        def upto_all(self, count, last):
            rounds.append(count)
            return super().upto_all(count, last)

    entropy = Counting(random.Random(1))
    for _ in range(100):
        entropy.subset(100, 299)
    assert len(rounds) < 115
    # 300 log(300 / 200) draws on the average, and two roots of the hundred.
    assert max(rounds) == rounds[0] == 141


@pytest.mark.parametrize(("count", "width", "size"), [
    (10, 13, 20), (10, 16, 20), (10, 17, 40), (10, 32, 40), (10, 33, 80), (2, 33, 16), (65, 1, 130), (4, 16, 0),
    (64, 1, 0),
])  # fmt: skip
def test_numbers_take_the_fewest_bytes_that_hold_them(count, width, size):
    """Where all of them have no more than 64 bits, no byte is asked for."""
    asked = []

    class Counting(Entropy):
        def _bytes(self, count):
            asked.append(count)
            return super()._bytes(count)

    fields = Counting(random.Random(1))._fields(count, width)
    assert (len(fields), sum(asked)) == (count, size)
    assert int(fields.max()) < 2**width


@pytest.mark.parametrize(("count", "last", "words"), [
    (64, 9, 64 + 2 + 4), (640, 3 * 2**26, 640 * 2**32 // (2**32 - 2**32 % (3 * 2**26 + 1)) + 20 + 4),
    (100, 2**30 - 1, 100 + 6 + 8), (100, 3 * 2**28 - 1, 133 + 6 + 8), (3, 2**14 - 1, 3 + 4), (3, 2**14, 3 + 4),
])  # fmt: skip
def test_a_little_more_is_drawn_than_is_likely_dropped(count, last, words):
    asked = []

    class Counting(Entropy):
        def _fields(self, count, width):
            asked.append(count)
            return super()._fields(count, width)

    drawn = Counting(random.Random(1)).upto_all(count, last)
    assert (len(drawn), asked[0]) == (count, words)
    assert drawn.max() <= last
