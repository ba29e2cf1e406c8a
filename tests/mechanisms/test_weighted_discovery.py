"""Weighted discovery: sigma and T in decimal arithmetic, the delta of all neighbours of small tables, and the draw."""

import itertools
import math
import random
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb
from scipy import stats

import discreet
import draws
from discreet.errors import Error
from discreet.evidence.visible_laws import divergences
from discreet.evidence.walk import walk
from discreet.exact.ball import ball, precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms import weighted_discovery
from discreet.mechanisms.discovery import make_discovery, read_discovery
from discreet.mechanisms.weighted_discovery import WEIGHT_STEPS, WeightedDiscovery, weigh_items

SMALL = WeightedDiscovery(Fraction(9), Fraction(1, 10**3), 2)
PLACES = 60


def decimal(number):
    return Decimal(number.numerator) / number.denominator


@cache
def phi(x):
    """The normal distribution function by its series, 1/2 + density(x) (x + x^3/3 + x^5/15 + ...), in decimals."""
    with localcontext() as context:
        # The terms grow to exp(x^2 / 2), which takes digits.
        context.prec = PLACES + 20 + int(x * x / 4)
        pi = Decimal(
            "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
        )
        term, total, odd = x, x, 1
        while abs(term) > Decimal(10) ** -(PLACES + 20):
            odd += 2
            term = term * x * x / odd
            total += term
        return Decimal("0.5") + total * (-x * x / 2).exp() / (2 * pi).sqrt()


def excess(sigma, epsilon, delta, sides):
    """The condition of Balle and Wang: at most 0 where Gaussian noise is (epsilon, delta)-private."""
    with localcontext() as context:
        context.prec = PLACES + 20
        reach, s, e = Decimal(sides).sqrt(), decimal(sigma), decimal(epsilon)
        half, shift = reach / (2 * s), e * s / reach
        return phi(half - shift) - e.exp() * phi(-half - shift) - decimal(delta)


def alone(cutoff, sigma, t):
    """The probability of keeping any of t items of one user that nobody else has."""
    with localcontext() as context:
        context.prec = PLACES
        weight = 1 / Decimal(t).sqrt()
        return 1 - phi((Decimal(cutoff) / WEIGHT_STEPS - weight) / decimal(sigma)) ** t


@pytest.mark.some(6)
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-8", "3e-15"])
@pytest.mark.parametrize("epsilon", ["1/10", "0.77", "2", "12"])
def test_sigma_and_the_threshold_are_the_least_that_are_allowed(epsilon, delta, adjacency):
    for items, groups in ((1, 1), (2, 1), (30, 1), (3, 4)):
        found = WeightedDiscovery(Fraction(epsilon), Fraction(delta), items, adjacency, groups)
        sides = 2 if adjacency == "swap" else 1
        terms = found.epsilon, found.delta / 2, sides
        assert excess(found.sigma, *terms) <= 0 < excess(found.sigma * (1 - Fraction(1, 2**22)), *terms)
        each = found.delta / (2 * sides)
        sizes = range(1, items * groups + 1)
        assert max(alone(found.cutoff, found.sigma, t) for t in sizes) <= decimal(each)
        assert max(alone(found.cutoff - 1, found.sigma, t) for t in sizes) > decimal(each)
        assert found.threshold == math.ceil(Fraction(found.cutoff, WEIGHT_STEPS))


def test_sigma_has_few_bits_and_the_threshold_belongs_to_it():
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**8), 100)
    assert found.sigma.denominator & (found.sigma.denominator - 1) == 0
    assert found.sigma.numerator < 2**24
    assert float(found.sigma) == pytest.approx(5.2217943, rel=1e-6)
    # The design: at g = 12, e1 = 1, delta = 1e-6, l = 10 T is 25, and a hundred times as many items need little more.
    assert abs(WeightedDiscovery(Fraction(1), Fraction(1, 10**6), 10, "add-remove", 12).cutoff / 1024 - 25) < 1
    few, many = (WeightedDiscovery(Fraction(1), Fraction(1, 10**8), items).cutoff for items in (10, 1000))
    assert few < many < 1.2 * few


def test_everything_is_known_for_every_size():
    assert WeightedDiscovery(Fraction(10) ** 300, Fraction(1, 10**300), 5).threshold < 5
    large = WeightedDiscovery(Fraction(1024), Fraction(1, 10**8), 5)
    assert replace(large, epsilon=Fraction(10) ** 9).cutoff == large.cutoff
    assert replace(large, epsilon=Fraction(1023)).sigma > large.sigma
    assert WeightedDiscovery(Fraction(1, 10**12), Fraction(1, 10**900), 10**4).threshold > 10**15
    assert WeightedDiscovery(Fraction(1, 10**50), Fraction(1, 10**8), 10**4).threshold < 10**9
    assert WeightedDiscovery(Fraction(1, 10**999), Fraction(1, 10**999), 1).threshold > 10**999
    with pytest.raises(Error, match="epsilon and delta must be at least 1e-999 for Gaussian noise"):
        _ = WeightedDiscovery(Fraction(1, 10**300_000), Fraction(1, 10**8), 1).sigma
    most = WeightedDiscovery(Fraction(1), Fraction(1, 10**8), 2**20)
    assert replace(most, max_groups_per_user=10**6).cutoff == most.cutoff


@pytest.mark.parametrize("sigma", ["1/40", "1/3", "5/8", "1", "3", "47"])
def test_no_number_of_items_is_left_out_of_the_threshold(sigma):
    """Where the largest is at one item, at all of them, or about equal at both ends."""
    for most, delta in itertools.product((1, 2, 3, 17, 400), (5e-4, 1e-9)):
        q = -np.expm1(np.log1p(-delta) / np.arange(1, most + 1))
        each = 1 / np.sqrt(np.arange(1, most + 1)) + float(Fraction(sigma)) * stats.norm.isf(q)
        found = weighted_discovery.least_cutoff(Fraction(sigma), Fraction(delta), most)
        assert found == math.ceil(1024 * each.max())


def test_weights_of_a_user_have_a_norm_of_at_most_one():
    for m in (*range(1, 3000), 2**20 - 1, 2**20):
        weight = weigh_items(m)
        assert m * weight**2 <= WEIGHT_STEPS**2 < m * (weight + 1) ** 2
    assert weigh_items(2**20) == 1
    assert weigh_items(2**20 + 1) == 0


# All neighbours of small tables.


class Judged:
    """The law of the kept set, written a second time, with faults on demand."""

    def __init__(self, found, lower=0, sigma=1.0, is_scaled=True):
        self.sigma, self.cutoff = sigma * float(found.sigma), (found.cutoff - lower) / 1024
        self.is_scaled = is_scaled

    def sums(self, users, size):
        total = [0.0] * size
        for own in users:
            for item in own:
                total[item] += math.floor(1024 / math.sqrt(len(own))) / 1024 if self.is_scaled else 1.0
        return tuple(total)

    def law(self, users, size):
        """The probability of every set of items."""
        probabilities = np.ones(1)
        for total in self.sums(users, size):
            p = stats.norm.cdf((total - self.cutoff) / self.sigma) if total else 0.0
            probabilities = np.concatenate([probabilities * (1 - p), probabilities * p])
        return probabilities

    def worst(self, neighbours, size, epsilon):
        """The largest hockey-stick divergence over pairs of neighbours, both ways, and the mass of new items."""
        laws = {users: self.law(users, size) for pair in neighbours for users in pair}
        here, there = (np.array([laws[users] for users in side]) for side in zip(*neighbours, strict=True))
        ways, factor = ((here, there), (there, here)), math.exp(epsilon)
        needed = max(np.maximum(p - factor * q, 0).sum(axis=1).max() for p, q in ways)
        return needed, max(np.where(q == 0, p, 0).sum(axis=1).max() for p, q in ways)


def some_tables(found, size, rng):
    """Tables with sums from none to twice T, of users of every number of items."""
    sets = [own for m in range(1, found.max_items_per_user + 1) for own in itertools.combinations(range(size), m)]
    for people in (0, 1, 2, found.threshold, 2 * found.threshold, 5 * found.threshold):
        yield tuple(sets[i] for i in rng.integers(0, len(sets), people))


def neighbours_of(found, size, own):
    rng = np.random.default_rng(1)
    for users in some_tables(found, size, rng):
        pairs = [((), one) for one in own] if found.adjacency == "add-remove" else itertools.combinations(own, 2)
        yield from (((*users, *([one] if one else [])), (*users, *([other] if other else []))) for one, other in pairs)


def subsets(size, most):
    return [own for m in range(most + 1) for own in itertools.combinations(range(size), m)]


CASES = [("1", 1, "1e-3"), ("3/10", 2, "1e-3"), ("1", 3, "1e-4"), ("9", 2, "1e-6"), ("1/100", 3, "1e-3")]


@pytest.mark.some(3)
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize(("epsilon", "items", "delta"), CASES)
def test_neighbours_cost_epsilon_and_delta(epsilon, items, delta, adjacency):
    found = WeightedDiscovery(Fraction(epsilon), Fraction(delta), items, adjacency)
    neighbours = list(neighbours_of(found, 4, subsets(4, items)))
    needed, new = Judged(found).worst(neighbours, 4, found.epsilon)
    sides = 2 if adjacency == "swap" else 1
    assert needed <= found.delta
    # The items of one user alone have their part of delta, and nothing to spare.
    assert 0.9 * float(found.delta) / (2 * sides) < new <= found.delta / (2 * sides)
    if items > 1:
        assert Judged(found, is_scaled=False).worst(neighbours, 4, found.epsilon)[1] > found.delta / (2 * sides)
    lower = Judged(found, lower=max(1, int(found.sigma * 200)))
    assert lower.worst(neighbours, 4, found.epsilon)[1] > found.delta / (2 * sides)


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_all_groups_share_one_norm(adjacency):
    """Two groups of two items, one of which counts in each: the pairs of a user are what m counts."""
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**3), 1, adjacency, max_groups_per_user=2)
    own = [a + b for a in ((), (0,), (1,)) for b in ((), (2,), (3,))]
    neighbours = list(neighbours_of(found, 4, own))
    needed, new = Judged(found).worst(neighbours, 4, found.epsilon)
    assert needed <= found.delta
    assert new <= found.delta / (4 if adjacency == "swap" else 2)
    assert found.share_of_group() is found


def test_a_threshold_for_one_item_alone_is_too_low():
    found = WeightedDiscovery(Fraction(1, 10), Fraction(1, 10**3), 40)
    first = weighted_discovery.least_cutoff(found.sigma, found.delta / 2, 1)
    assert alone(found.cutoff, found.sigma, 40) <= found.delta / 2
    assert alone(first, found.sigma, 40) > decimal(found.delta)


def test_less_noise_is_not_private():
    """The condition on sigma is exact: a score that one user moves by 1 has this divergence, by numbers."""
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**6), 1)
    grid = np.linspace(-60, 60, 2_000_001)
    for share, holds in ((1.0, True), (0.95, False)):
        noise = stats.norm(0, share * float(found.sigma))
        gap = np.maximum(noise.pdf(grid - 1) - math.e * noise.pdf(grid), 0)
        assert (gap.sum() * (grid[1] - grid[0]) <= 5e-7 * (1 + 1e-6)) == holds


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_what_is_known_already_is_concentrated(adjacency):
    """While no new item appears, the divergence of every order is within rho."""
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**3), 2, adjacency)
    judged = Judged(found)
    pairs = [pair for pair in neighbours_of(found, 3, subsets(3, 2)) if all(min(judged.sums(u, 3)) > 0 for u in pair)]
    here, there = (np.log([judged.law(users, 3) for users in side]) for side in zip(*pairs, strict=True))
    assert 0.3 < divergences(here, there, found.zcdp).max() <= 1
    assert found.zcdp == (1 if adjacency == "add-remove" else 2) / (2 * found.sigma**2)


# The draw.


def law_of_runs(found, totals, items):
    """The probability of every combination of numbers kept, as balls."""
    law = {}
    for kept in itertools.product(*(range(m + 1) for m in items)):
        law[kept] = math.prod(
            (
                math.comb(m, n) * found.keep_probability(c) ** n * (1 - found.keep_probability(c)) ** (m - n)
                for n, m, c in zip(kept, items, totals, strict=True)
            ),
            start=arb(1),
        )
    return law


def test_the_probability_of_keeping_an_item():
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**5), 2)
    with precision(200), localcontext() as context:
        context.prec = PLACES
        for total in (1, 724, 1024, found.cutoff - 1, found.cutoff, found.cutoff + 1, 3 * found.cutoff):
            right = phi((Decimal(total - found.cutoff) / WEIGHT_STEPS) / decimal(found.sigma))
            assert abs(found.keep_probability(total) - arb(str(right))) < arb("1e-45")
        assert found.keep_probability(0) == 0
        assert found.keep_probability(found.cutoff) == 0.5


@pytest.mark.some(2)
@pytest.mark.parametrize("below", [[0, -300], [200, 100], [700, -700]], ids=str)
def test_walked_bits_keep_each_item_with_its_probability(below):
    totals, items = [SMALL.cutoff - n for n in below], [1, 2]
    decided, undecided = walk(
        lambda entropy: tuple(SMALL.sample_kept(entropy, np.array(totals), np.array(items)).tolist()), 1200
    )
    with precision(200):
        for kept, p in law_of_runs(SMALL, totals, items).items():
            known = decided.pop(kept, Fraction(0))
            assert not p < ball(known)
            assert not p > ball(known + undecided)
    assert decided == {}
    assert undecided < Fraction(1, 3)


def draw_tables(found, totals, items, n, seed):
    """Counts of what is kept in n tables of these runs, which are drawn all at once."""
    entropy = Entropy(random.Random(seed))
    kept = found.sample_kept(entropy, np.tile(totals, n), np.tile(items, n)).reshape(n, -1)
    return Counter(map(tuple, kept.tolist()))


def test_runs_have_the_law_of_noise_on_every_item():
    found, n = WeightedDiscovery(Fraction(1), Fraction(1, 10**3), 2), 20_000
    totals, items = [found.cutoff + shift for shift in (-4000, -1000, 0, 2500)], [3, 2, 1, 2]
    with precision(100):
        law = {kept: float(p.mid()) for kept, p in law_of_runs(found, totals, items).items()}
        shifted = law_of_runs(found, [total + 250 for total in totals], items)
        wrong = {kept: float(p.mid()) for kept, p in shifted.items()}
    assert draws.fits(draw_tables(found, totals, items, n, seed=5), law)
    assert draws.power(n, law, wrong) > 0.999


def test_large_runs_have_the_law_of_noise_on_every_item():
    """Of 10^9 items a run, by how many deviations the number kept is off: standard normal, or it would be seen."""
    found = WeightedDiscovery(Fraction(1, 4), Fraction(1, 10**8), 100)
    totals = found.cutoff + np.arange(-60, 60) * 1000
    p = stats.norm.cdf((totals - found.cutoff) / (1024 * float(found.sigma)))
    kept = np.concatenate(
        [found.sample_kept(Entropy(random.Random(seed)), totals, np.full(120, 10**9)) for seed in range(30)]
    )
    off = (kept - np.tile(10**9 * p, 30)) / np.tile((10**9 * p * (1 - p)) ** 0.5, 30)
    assert stats.kstest(off, "norm").pvalue > draws.ALPHA
    assert stats.kstest(off * 1.1 + 0.1, "norm").pvalue < draws.ALPHA


def test_items_far_above_the_threshold_may_be_left_out():
    """At 5 sigma above T one of 3.5 million is: no probability is rounded to 1."""
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**8), 100)
    at, n = np.array([found.cutoff + round(5 * 1024 * float(found.sigma))]), 10**12
    left = n - int(found.sample_kept(Entropy(random.Random(2)), at, np.array([n]))[0])
    assert stats.binom.ppf(1e-9, n, stats.norm.sf(5)) <= left <= stats.binom.ppf(1 - 1e-9, n, stats.norm.sf(5))
    # Runs that are kept whole and runs that are kept in part have their ranks.
    totals, items = np.array([9 * found.cutoff, found.cutoff, 9, 0]), np.array([4, 6, 5, 3])
    ranks = found.sample_kept_ranks(Entropy(random.Random(6)), totals, items)
    assert ranks[:4].tolist() == [0, 1, 2, 3]
    assert 0 < len(ranks[4:]) < 6
    assert set(ranks[4:].tolist()) < set(range(4, 10))


def test_what_counts_for_nobody_is_never_kept():
    found = WeightedDiscovery(Fraction(1, 1000), Fraction(1, 10**3), 1)
    kept = found.sample_kept(Entropy(random.Random(1)), np.array([1, 0]), np.array([10**15, 10**15]))
    assert kept[1] == 0
    assert kept[0] > 10**11
    empty = np.empty(0, np.int64)
    assert found.sample_kept_ranks(Entropy(), empty, empty).tolist() == []


@pytest.mark.parametrize("epsilon", ["1/3", "1e-15", "1e300", "50", "1/100000"])
def test_the_floats_hold_the_tails(epsilon):
    found = WeightedDiscovery(Fraction(epsilon), Fraction(1, 10**3), 1)
    near = np.linspace(0, 45 * 1024 * float(found.sigma), 500).astype(np.int64)
    steps = np.unique(np.concatenate([np.arange(40), 2 ** np.arange(5, 62), 2 ** np.arange(5, 62) - 3, near]))
    low, high = found._bound_upper_tails(steps)
    with precision(300):
        for i, n in enumerate(steps.tolist()):
            p = (ball(Fraction(n) / (1024 * found.sigma)) / arb(2).sqrt()).erfc() / 2
            assert not arb(low[i]) > p
            assert not arb(high[i]) < p
    assert (high - low).max() < 1e-11
    sure = low > 0
    assert ((high - low)[sure] < 1e-8 * low[sure]).all()


# Words, JSON and mistakes.


def test_the_words_say_what_the_probabilities_are():
    found = make_discovery("1e-8", 100, Fraction(1), 20, method="gaussian")
    text = found.describe_threshold()
    few, many, busy = (int(number) for number in re.findall(r"about (\d+)", text))
    with precision(100):
        assert found.keep_probability(1024 * (few - 1)) < ball(Fraction(1, 10)) < found.keep_probability(1024 * few)
        assert found.keep_probability(1024 * (many - 1)) < ball(Fraction(9, 10)) < found.keep_probability(1024 * many)
        # Two digits of it are told.
        assert (
            found.keep_probability(102 * (busy + 5)) > ball(Fraction(9, 10)) > found.keep_probability(102 * (busy - 15))
        )
    assert "Of each person at most 100 items count for that." in text
    assert "in each of at most 3 groups count for that." in replace(found, max_groups_per_user=3).describe_threshold()
    assert "at most 1 item counts" in make_discovery("1e-8", 1, Fraction(1), 20, method="gaussian").describe_threshold()


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_json_is_read_back_and_checked(adjacency):
    found = WeightedDiscovery(Fraction(1, 3), Fraction(1, 10**8), 7, adjacency, 2)
    written = found.to_dict()
    assert written["method"] == "gaussian"
    assert Fraction(written["sigma"]) == found.sigma
    assert Fraction(written["threshold"]) * 1024 == found.cutoff
    assert read_discovery(written, "1e-8", adjacency) == found
    for change in ({"sigma": "1"}, {"threshold": "2"}, {"sigma": None}, {"epsilon": "1/4"}, {"max_items_per_user": 9}):
        with pytest.raises(Error, match="threshold must be that of the other numbers"):
            read_discovery(written | change, "1e-8", adjacency)


def test_an_epsilon_that_is_too_small_is_refused():
    with pytest.raises(
        Error, match="epsilon must be larger for discovery with max_items_per_user=3: with 1e-30 for it"
    ):
        make_discovery("1e-40", 3, Fraction(1), 20, epsilon="1e-30", method="gaussian")


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("groups", [1, 3])
def test_the_people_needed_are_the_fewest_whose_item_is_found_so_often(method, adjacency, groups):
    terms = {"adjacency": adjacency, "max_groups_per_user": groups, "method": method}
    found = make_discovery("1e-6", 5, Fraction(2), 10, **terms)
    assert found.most_items == 5 * groups
    for items, chance in itertools.product(
        (1, 2, found.most_items), (Fraction(1, 20), Fraction(1, 2), Fraction(19, 20))
    ):
        weight = weigh_items(items) if method == "gaussian" else 1
        people = found.people_needed(chance, items)
        assert found.keep_probability(people * weight) >= ball(chance)
        assert found.keep_probability((people - 1) * weight) < ball(chance)
    assert found.list_people(1) == sorted(found.list_people(1))


def test_half_is_reached_at_the_cutoff_itself():
    # Phi(0) is 1/2 exactly.
    found = WeightedDiscovery(Fraction(1), Fraction(1, 10**6), 1)
    assert found.people_needed(Fraction(1, 2)) == -(-found.cutoff // WEIGHT_STEPS)
    assert found.people_needed(Fraction(1, 10**30)) == 1


@pytest.mark.parametrize("groups", [1, 4])
def test_both_methods_are_compared_on_the_terms_of_the_plan(groups):
    domain = discreet.discovered("1e-8", 3, method="laplace")
    compared = domain.compare(20, 2, adjacency="swap", max_groups_per_user=groups)
    assert compared.planned == domain.plan(20, 2, adjacency="swap", max_groups_per_user=groups)
    choice = {"auto"} if groups == 1 else set()
    assert {each.method for each, _ in compared.choices} == {"laplace", "gaussian"} | choice
    shared = {
        (each.delta, each.max_items_per_user, each.adjacency, each.max_groups_per_user) for each, _ in compared.choices
    }
    assert shared == {(Fraction(1, 10**8), 3, "swap", groups)}
    assert [each for each, mark in compared.choices if mark == "planned"] == [compared.planned]
    for each, mark in compared.choices:
        if mark == "default":
            assert each == replace(domain, method=each.method).plan(20, 2, adjacency="swap", max_groups_per_user=groups)
    parts = {each.epsilon for each, _ in compared.choices}
    assert {Fraction(1, 2), Fraction(1), Fraction(3, 2)} <= parts
    chosen = replace(domain, epsilon=Fraction(1, 3)).compare(20, 2, max_groups_per_user=groups)
    assert chosen.planned.epsilon == Fraction(1, 3)
    assert "planned" in [mark for _, mark in chosen.choices]
    assert "<table" in compared._repr_html_()
