"""Discovery: the threshold against brute force, the delta of all neighbours of small tables, and the draw by runs."""

import itertools
import math
import random
import re
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from scipy import stats

import draws
from discreet.errors import Error
from discreet.evidence.visible_laws import divergences
from discreet.evidence.walk import walk
from discreet.exact.ball import ball, precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.discovery import Discovery, check_delta, delta_warning, make_discovery

SMALL = Discovery(Fraction(4), Fraction(1, 10**3), 1)
"""Few people are enough here, so that every string of bits can be walked."""


def least_threshold(epsilon, delta, items, adjacency, groups):
    """T by trying one after the other, in decimal arithmetic of 80 digits, from the definition alone."""
    with localcontext() as context:
        context.prec = 80
        share, allowed = _decimal(epsilon) / groups, _decimal(delta) / groups
        if adjacency == "swap":
            share /= 2
            allowed /= 1 + share.exp()
        q = (-share / items).exp()
        reached, threshold = q / (1 + q), 2
        while 1 - (1 - reached) ** items > allowed:
            reached, threshold = reached * q, threshold + 1
        return threshold


def _decimal(number):
    return Decimal(number.numerator) / number.denominator


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("items", [1, 2, 7])
@pytest.mark.parametrize("delta", ["1e-3", "1e-8", "3e-15"])
def test_the_threshold_is_the_least_that_is_allowed(delta, items, adjacency, groups):
    for epsilon in ("1/4", "0.77", "2", "60"):
        asked = Fraction(epsilon), Fraction(delta), items, adjacency, groups
        assert Discovery(*asked).threshold == least_threshold(*asked)


def test_the_threshold_is_known_for_every_size():
    assert Discovery(Fraction(10) ** 300, Fraction(1, 10**300), 5).threshold == 2
    assert Discovery(Fraction(1, 10**12), Fraction(1, 10**900), 10**4).threshold > 10**18
    # What the design promises at epsilon 1 and delta 1e-8, a quarter of epsilon being for discovery.
    thresholds = [
        make_discovery("1e-8", items, Fraction(1), 10**9, method="laplace").threshold for items in (1, 10, 100)
    ]
    assert all(abs(t / about - 1) < 0.03 for t, about in zip(thresholds, (72, 800, 9000), strict=True))


def tail(rate, n):
    """P(N >= n) as a float, from the definition: the sum of the law."""
    q = math.exp(-rate)
    return q**n / (1 + q) if n >= 1 else 1 - q ** (1 - n) / (1 + q)


UNKNOWN, UNCOUNTED = -1, 0
"""An item that nobody touched, and one that somebody touched but that counts for nobody."""


class Judged:
    """The law of the kept set, written a second time, with faults on demand."""

    def __init__(self, discovery, lower=0, keeps_uncounted=False):
        self.rate, self.threshold = float(discovery.rate), discovery.threshold - lower
        self.keeps_uncounted = keeps_uncounted

    def keep(self, users):
        if users == UNKNOWN or (users == UNCOUNTED and not self.keeps_uncounted):
            return 0.0
        return tail(self.rate, self.threshold - users)

    def law(self, users):
        """The probability of every set of items."""
        probabilities = np.ones(1)
        for p in map(self.keep, users):
            probabilities = np.concatenate([probabilities * (1 - p), probabilities * p])
        return probabilities

    def worst(self, neighbours, epsilon):
        """The largest hockey-stick divergence over pairs of neighbours, both ways: the delta that they need."""
        laws = {users: self.law(users) for pair in neighbours for users in pair}
        here = np.array([laws[one] for one, _ in neighbours])
        there = np.array([laws[other] for _, other in neighbours])
        factor = math.exp(epsilon)
        ways = (np.maximum(here - factor * there, 0), np.maximum(there - factor * here, 0))
        return max(way.sum(axis=1).max() for way in ways)


def subsets(items, most):
    return [chosen for size in range(most + 1) for chosen in itertools.combinations(range(items), size)]


def add(users, chosen, amount=1):
    """The table after somebody came for whom some items count."""
    return tuple(max(n, 0) + amount if i in chosen else n for i, n in enumerate(users))


def tables(discovery, items):
    """How many users each item may have: none, one, and around the threshold; in ascending order, items being alike."""
    values = (UNKNOWN, 1, 2, discovery.threshold - 1, discovery.threshold, discovery.threshold + 1)
    return itertools.combinations_with_replacement(sorted(set(values)), items)


def added(discovery, items, most=None, amount=1):
    """Every table with every user that may be added to it."""
    limit = discovery.max_items_per_user if most is None else most
    return [
        (users, add(users, chosen, amount)) for users in tables(discovery, items) for chosen in subsets(items, limit)
    ]


def swapped(discovery, items):
    """Every table with one user or another in it."""
    chosen = subsets(items, discovery.max_items_per_user)
    return [
        (add(users, one), add(users, other))
        for users in tables(discovery, items)
        for one, other in itertools.combinations(chosen, 2)
    ]


CASES = [("1", 1, "1e-3"), ("1/2", 2, "1e-4"), ("3", 3, "1e-3"), ("1/1000", 2, "1e-3"), ("9", 2, "1e-6")]


@pytest.mark.parametrize(("epsilon", "items", "delta"), CASES)
def test_adding_a_user_costs_epsilon_and_delta_and_one_less_would_break_it(epsilon, items, delta):
    found = Discovery(Fraction(epsilon), Fraction(delta), items)
    neighbours = added(found, items + 1)
    worst = Judged(found).worst(neighbours, found.epsilon)
    assert worst <= found.delta * (1 + 1e-9)
    # As near as a whole number can come: the next one to it, which has exp(rate) of it, is too much.
    assert Judged(found, lower=1).worst(neighbours, found.epsilon) > found.delta
    assert worst > 0.99 * float(found.delta) * math.exp(-found.rate)


@pytest.mark.some(2)
@pytest.mark.parametrize(("epsilon", "items", "delta"), CASES[:2] + CASES[3:])
def test_swapping_users_costs_epsilon_and_delta(epsilon, items, delta):
    found = Discovery(Fraction(epsilon), Fraction(delta), items, "swap")
    assert Judged(found).worst(swapped(found, 2 * items), found.epsilon) <= found.delta * (1 + 1e-9)
    # The noise and the threshold for adding a user would not do.
    easier = Discovery(found.epsilon, found.delta, items)
    if found.epsilon > 10 * found.delta:
        assert Judged(easier).worst(swapped(easier, 2 * items), found.epsilon) > found.delta


@pytest.mark.some(2)
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("each_user", ["one", "many"])
def test_groups_share_one_guarantee(adjacency, each_user):
    """Two groups of two items; everybody is in one of them, or may be in both."""
    many = 2 if each_user == "many" else 1
    found = Discovery(Fraction(1), Fraction(1, 10**3), 1, adjacency, max_groups_per_user=many)
    alone = Discovery(found.epsilon, found.delta, 1)
    in_a, in_b = [(), (0,), (1,)], [(), (2,), (3,)]
    choices = [a + b for a in in_a for b in in_b if many == 2 or not (a and b)]
    pairs = [((), one) for one in choices] if adjacency == "add-remove" else list(itertools.combinations(choices, 2))
    values = (UNKNOWN, 1, alone.threshold - 1, found.threshold)
    neighbours = [
        (add(users, one), add(users, other)) for users in itertools.product(values, repeat=4) for one, other in pairs
    ]
    assert Judged(found).worst(neighbours, found.epsilon) <= found.delta * (1 + 1e-9)
    if (adjacency, each_user) != ("add-remove", "one"):
        assert Judged(alone).worst(neighbours, found.epsilon) > found.delta


@pytest.mark.parametrize("items", [1, 2])
def test_planted_faults_are_caught(items):
    found = Discovery(Fraction(1), Fraction(1, 10**3), items)
    right, epsilon, delta = Judged(found), found.epsilon, float(found.delta)
    assert right.worst(added(found, 4), epsilon) <= delta * (1 + 1e-9)
    # The limit of items per user is not enforced.
    assert right.worst(added(found, 4, most=4), epsilon) > 1.5 * delta
    # Rows are counted in place of people.
    assert right.worst(added(found, 4, amount=3), epsilon) > 1.5 * delta
    # Items that count for nobody are kept where the noise is large: those that a user touched beyond the limit.
    neighbours = [((UNKNOWN,) * 9, (1,) * items + (UNCOUNTED,) * (9 - items))]
    assert right.worst(neighbours, epsilon) <= delta * (1 + 1e-9)
    assert Judged(found, keeps_uncounted=True).worst(neighbours, epsilon) > 1.5 * delta


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("items", [1, 2])
def test_what_is_known_already_is_concentrated(items, adjacency):
    """While no new item appears, the divergence of every order is within rho, and comes near it."""
    found = Discovery(Fraction(1, 2), Fraction(1, 10**3), items, adjacency)
    pairs = added(found, items) if adjacency == "add-remove" else swapped(found, 2 * items)
    judged = Judged(found)
    known = {pair for pair in pairs if min(map(min, pair)) > 0}
    here, there = (np.log([judged.law(users) for users in side]) for side in zip(*known, strict=True))
    assert 0.8 < divergences(here, there, found.zcdp).max() <= 1 + 1e-9


def test_the_costs_add_up_over_groups():
    for adjacency, rho in (("add-remove", Fraction(1, 24)), ("swap", Fraction(1, 48))):
        assert Discovery(Fraction(1, 2), Fraction(1, 10**6), 3, adjacency).zcdp == rho
        assert Discovery(Fraction(1, 2), Fraction(1, 10**6), 3, adjacency, 2).zcdp == rho / 2
    assert Discovery(Fraction(1, 2), Fraction(1, 10**6), 5).rate == Fraction(1, 10)
    assert Discovery(Fraction(1, 2), Fraction(1, 10**6), 5, "swap", 3).rate == Fraction(1, 60)


def test_the_probability_of_keeping_an_item():
    found = Discovery(Fraction(1), Fraction(1, 10**5), 2)
    rate, threshold = float(found.rate), found.threshold
    with precision(100):
        for users in (1, 2, threshold - 1, threshold, threshold + 1, 10**6):
            assert abs(float(found.keep_probability(users).mid()) - tail(rate, threshold - users)) < 1e-14
        assert found.keep_probability(0) == 0
        assert found.keep_probability(threshold - 1) < 0.5 < found.keep_probability(threshold)
        assert found.keep_probability(1) < ball(found.delta)


def law_of_runs(found, users, items):
    """The probability of every combination of numbers kept, as balls."""
    law = {}
    for kept in itertools.product(*(range(m + 1) for m in items)):
        law[kept] = math.prod(
            (
                math.comb(m, n) * found.keep_probability(c) ** n * (1 - found.keep_probability(c)) ** (m - n)
                for n, m, c in zip(kept, items, users, strict=True)
            ),
            start=arb(1),
        )
    return law


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("users", "items"), [([2, 3], [1, 1]), ([0, 3], [1, 2]), ([1, 2, 4], [1, 1, 1]), ([2], [3])], ids=str
)
def test_walked_bits_keep_each_item_with_its_probability(users, items):
    assert SMALL.threshold == 3
    decided, undecided = walk(
        lambda entropy: tuple(SMALL.sample_kept(entropy, np.array(users), np.array(items)).tolist()), 1200
    )
    with precision(200):
        for kept, p in law_of_runs(SMALL, users, items).items():
            known = decided.pop(kept, Fraction(0))
            assert not p < ball(known)
            assert not p > ball(known + undecided)
    assert decided == {}
    assert undecided < Fraction(1, 3)


def draw_tables(found, users, items, n, seed):
    """Counts of what is kept in n tables of these runs, which are drawn all at once."""
    entropy = Entropy(random.Random(seed))
    kept = found.sample_kept(entropy, np.tile(users, n), np.tile(items, n)).reshape(n, -1)
    return Counter(map(tuple, kept.tolist()))


def test_runs_have_the_law_of_noise_on_every_item():
    found = Discovery(Fraction(1), Fraction(1, 10**3), 2)
    at, n = found.threshold, 20_000
    users, items = [at - 4, at - 1, at + 2], [3, 2, 2]
    one_more = [c + 1 for c in users]
    with precision(100):
        law = {kept: float(p.mid()) for kept, p in law_of_runs(found, users, items).items()}
        wrong = {kept: float(p.mid()) for kept, p in law_of_runs(found, one_more, items).items()}
    assert draws.fits(draw_tables(found, users, items, n, seed=5), law)
    assert draws.power(n, law, wrong) > 0.999


def test_large_runs_have_the_law_of_noise_on_every_item():
    """Of 10^9 items a run, by how many deviations the number kept is off: standard normal, or it would be seen."""
    found = Discovery(Fraction(1, 4), Fraction(1, 10**8), 3)
    users = np.arange(found.threshold - 60, found.threshold + 60)
    p = np.array([tail(float(found.rate), found.threshold - c) for c in users.tolist()])
    kept = np.concatenate(
        [found.sample_kept(Entropy(random.Random(seed)), users, np.full(120, 10**9)) for seed in range(30)]
    )
    off = (kept - np.tile(10**9 * p, 30)) / np.tile((10**9 * p * (1 - p)) ** 0.5, 30)
    assert stats.kstest(off, "norm").pvalue > draws.ALPHA
    assert stats.kstest(off * 1.1 + 0.1, "norm").pvalue < draws.ALPHA


def test_an_item_of_one_person_alone_is_found_as_rarely_as_delta_says():
    """A password in the events, 10^5 times at delta = 1e-3, among items that others have too."""
    found, n = Discovery(Fraction(19, 20), Fraction(1, 10**3), 1), 10**5
    counts = draw_tables(found, [1, 4, 30], [1, 2, 1], n, seed=7)
    hits = sum(number for kept, number in counts.items() if kept[0])
    p = tail(float(found.rate), found.threshold - 1)
    assert hits <= stats.binom.ppf(1 - 1e-9, n, 1e-3)
    assert stats.binom.ppf(1e-9, n, p) <= hits <= stats.binom.ppf(1 - 1e-9, n, p)
    # One less, and it would be seen nearly always.
    assert stats.binom.sf(stats.binom.ppf(1 - 1e-9, n, 1e-3), n, math.exp(found.rate) * p) > 0.999


def test_what_counts_for_nobody_is_never_kept():
    found = Discovery(Fraction(1, 1000), Fraction(1, 10**3), 1)
    kept = found.sample_kept(Entropy(random.Random(1)), np.array([0, 1]), np.array([10**15, 10**15]))
    assert kept[0] == 0
    assert kept[1] > 10**11
    empty = np.empty(0, np.int64)
    assert found.sample_kept(Entropy(), empty, empty).tolist() == []


@pytest.mark.parametrize("rate", ["1/3", "1e-15", "1e300", "50", "1/100000"])
def test_the_floats_hold_the_tails(rate):
    found = Discovery(Fraction(rate), Fraction(1, 10**3), 1)
    steps = np.unique(np.concatenate([np.arange(1, 40), 2 ** np.arange(5, 62), 2 ** np.arange(5, 62) - 3]))
    low, high = found._bound_upper_tails(steps)
    with precision(200):
        for i, n in enumerate(steps.tolist()):
            p = (-ball(found.rate * n)).exp() / (1 + (-ball(found.rate)).exp())
            assert not arb(low[i]) > p
            assert not arb(high[i]) < p or (high[i] == 0 and p < arb(2) ** -1000)
    assert (high - low).max() < 1e-11


def test_the_words_say_what_the_probabilities_are():
    found = make_discovery("1e-8", 1, Fraction(1), 20, method="laplace")
    text = found.describe_threshold()
    few, many = (int(number) for number in re.findall(r"about (\d+)", text))
    with precision(100):
        assert found.keep_probability(few - 1) < ball(Fraction(1, 10)) < found.keep_probability(few)
        assert found.keep_probability(many - 1) < ball(Fraction(9, 10)) < found.keep_probability(many)
    assert "at most 1 item counts" in text
    assert (
        "fewer than about 8,300 people"
        in make_discovery("1e-8", 100, Fraction(1), 10**9, method="laplace").describe_threshold()
    )
    assert (
        "at most 1,000 items count"
        in make_discovery("1e-8", 1000, Fraction(1), 10, method="laplace").describe_threshold()
    )


def test_the_default_part_of_epsilon():
    assert make_discovery("1e-8", 3, Fraction(1), 20, method="laplace").epsilon == Fraction(23, 80)
    assert make_discovery("1e-8", 50, Fraction(2), 20, method="laplace").epsilon == 1
    assert make_discovery("1e-8", 3, Fraction(1), 20, epsilon="0.4").epsilon == Fraction(2, 5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"delta": None}, "delta must be given for discovery: above zero and at most 0.001"),
        ({"delta": "0.0011"}, "delta must be above zero and at most 0.001, not '0.0011'"),
        ({"delta": 0}, "delta must be above zero and at most 0.001, not 0"),
        ({"delta": "-1e-8"}, "delta must be above zero"),
        ({"delta": True}, "delta must be a number, not True"),
        ({"max_items_per_user": 0}, "max_items_per_user must be a whole number from 1, not 0"),
        ({"max_items_per_user": 1.5}, "max_items_per_user must be a whole number from 1, not 1.5"),
        ({"max_items_per_user": None}, "max_items_per_user must be a whole number from 1, not None"),
        ({"epsilon": 1}, "epsilon of discovered must be below 1, the epsilon of the release, not 1"),
        ({"epsilon": Fraction(3)}, "epsilon of discovered must be below 1, the epsilon of the release, not 3"),
        ({"epsilon": 0}, "epsilon of discovered must be above zero, not 0"),
        ({"adjacency": "both"}, "adjacency must be 'add-remove' or 'swap'"),
        ({"epsilon": "1e-30"}, "epsilon must be larger for discovery with max_items_per_user=3: with 1e-30 for it, an"),
    ],
)
def test_mistakes_are_named(changed, message):
    given = {"delta": "1e-8", "max_items_per_user": 3, "budget": Fraction(1), "k": 20} | changed
    with pytest.raises(Error, match=re.escape(message)):
        make_discovery(**given, method="laplace")


def test_a_large_delta_is_warned_about():
    assert delta_warning(check_delta("1e-5")) is None
    assert delta_warning(check_delta(1e-8)) is None
    assert "delta is 0.0001: it should be well below one over the number of people" in delta_warning(
        check_delta("1e-4")
    )
