"""Quantiles of the shortfall of a release, against enumeration of every set and against draws."""

import random
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import pytest

import discreet
from discreet.analysis.goals import describe_ranks
from discreet.analysis.shortfall_odds import (
    ShortfallQuantiles,
    compute_shortfall,
    count_draws_for_shortfall,
    find_shortfall,
    find_shortfall_of_draws,
    list_regions,
)
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.exact.entropy import as_entropy
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source

SCORES = [[9, 7, 7, 6, 2, 0], [3, 3, 3, 3, 1, 0], [8, 5, 4, 4, 2, 1], [12, 11, 7, 5, 3, 0]]
COMPUTED = [
    *(discreet.Canonical(gamma) for gamma in ("1/3", "1/2", "1")),
    *(discreet.OneShot(noise) for noise in NOISES),
    discreet.Peeling(),
]


@cache
def enumerated(mechanism, scores, k, epsilon):
    """The probability of each shortfall, by that of every set, which test_details.py compares with the law."""
    found = Counter()
    for items in combinations(range(len(scores)), k):
        left_out = max(score for item, score in enumerate(scores) if item not in items)
        lead = max(left_out - min(scores[item] for item in items), 0)
        found[lead] += discreet.subset_probability(scores, items, epsilon, mechanism).value
    return found


def quantile(chances, level):
    """The least shortfall that is not exceeded with this probability."""
    reached = 0.0
    for lead in sorted(chances):
        reached += chances[lead]
        if reached >= level + 1e-4:
            return lead
    return max(chances)


def is_near_a_step(chances, level):
    """True if a sum of probabilities is so near to the level that integrals may fall on either side."""
    sums = np.cumsum([chances[lead] for lead in sorted(chances)])
    return bool((np.abs(sums - level) < 2e-4).any())


@pytest.mark.corners
@pytest.mark.parametrize("mechanism", COMPUTED, ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
@pytest.mark.parametrize(("k", "epsilon"), [(1, "1/2"), (3, "1/2"), (3, "2"), (4, "1/5")])
def test_computed_quantiles_are_those_of_enumeration(mechanism, scores, k, epsilon):
    tally = array_source(scores).tally()
    found = compute_shortfall(mechanism, mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity()), tally)
    chances = enumerated(mechanism, tuple(scores), k, epsilon)
    assert found.confidence is None
    for level, figure in ((0.5, found.median), (0.95, found.most)):
        if not is_near_a_step(chances, level):
            assert figure == quantile(chances, level)


@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.Peeling()], ids=str)
def test_the_regions_add_up_to_the_probability(mechanism):
    """For every threshold, with the probabilities of the regions by enumeration."""
    scores, k = [12, 11, 11, 7, 5, 5, 3, 0], 3
    tally = array_source(scores).tally()
    with precision(112):
        chances = law(mechanism.prepare(tally, k, Fraction(1, 5), discreet.Sensitivity()))
    sets = Counter()
    for ranks, log_chance in chances.items():
        sets[tuple(sorted(ranks))] += float(log_chance.exp())
    for threshold in range(13):
        ends = np.array([sum(scores[h] - score <= threshold for score in scores) for h in range(k)])
        total = 0.0
        for sign, (h, end) in list_regions(ends, k):
            total += sign * sum(p for ranks, p in sets.items() if set(range(h)) <= set(ranks) and ranks[-1] < end)
        wanted = 0.0
        for ranks, p in sets.items():
            h, t = describe_ranks(np.array(ranks))
            wanted += p * (h == k or scores[h] - scores[t - 1] <= threshold)
        assert total == pytest.approx(wanted, abs=1e-12)
    assert len(list_regions(np.array([2, 3, 3]), 3)) == 1


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "mechanism",
    [discreet.Canonical(), discreet.Canonical(noise="logistic"), discreet.OneShot(), discreet.Joint()],
    ids=str,
)
@pytest.mark.parametrize("k", [3, 12])
def test_draws_bound_the_quantiles(mechanism, k):
    """The share of releases up to a drawn bound is at least the level; a computed quantile agrees with draws."""
    scores = [int(400 / rank**0.7) for rank in range(1, 31)]
    found = discreet.expected(scores, k, "0.2", mechanism, confidence="0.9999").shortfall
    tally = array_source(scores).tally()
    prepared = mechanism.prepare(tally, k, Fraction(1, 5), discreet.Sensitivity())
    seeded = as_entropy(random.Random(1))
    leads = []
    for _ in range(2000):
        ranks = np.sort(prepared.draw(seeded))
        h, t = describe_ranks(ranks)
        leads.append(0 if h == k else tally.gap(h, t - 1))
    for level, figure in ((0.5, found.median), (0.95, found.most)):
        upto = float(np.mean([lead <= figure for lead in leads]))
        # 2,000 draws are off by 0.05 with a probability below 1e-4 (Hoeffding).
        assert upto >= level - 0.05
        if found.confidence is None:
            assert float(np.mean([lead < figure for lead in leads])) <= level + 0.05


def test_the_order_statistic_is_the_least_that_is_sure():
    """P(Bin(n, level) >= m) is at most alpha at the rank m that is taken, and above it one rank before."""
    tally = array_source(list(range(300, 0, -1))).tally()
    n, alpha = 200, 0.005
    # The m-th draw, for m = 1, ..., has h = 0 and its worst rank is m, so that the leads are 1, ..., n.
    found = find_shortfall_of_draws(tally, [np.array([m]) for m in range(1, n + 1)], alpha, Fraction(99, 100))
    for level, figure in ((Fraction(1, 2), found.median), (Fraction(19, 20), found.most)):
        for m, is_sure in ((int(figure), True), (int(figure) - 1, False)):
            tail = sum(comb(n, i) * level**i * (1 - level) ** (n - i) for i in range(m, n + 1))
            assert (tail <= Fraction(alpha)) is is_sure


def test_too_few_draws_give_no_bound():
    tally = array_source([3, 2, 1]).tally()
    least = count_draws_for_shortfall(0.005)
    assert 0.95**least <= 0.005 < 0.95 ** (least - 1)
    some = [np.array([0])] * (least - 1)
    assert find_shortfall_of_draws(tally, some, 0.005, Fraction(99, 100)) is None
    assert find_shortfall_of_draws(tally, [*some, np.empty(0, np.int64)], 0.005, Fraction(99, 100)) is None
    assert find_shortfall_of_draws(tally, [*some, np.array([0])], 0.005, Fraction(99, 100)).most == 0


def test_lists_that_may_be_shorter_are_drawn_from_with_one_seed():
    scores = [90, 80, 70, 12, 11, 10, 9, 8]
    core = discreet.Core()
    prepared = core.prepare(array_source(scores).tally(), 3, Fraction(1), discreet.Sensitivity())
    found = [find_shortfall(core, prepared, array_source(scores).tally()) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].confidence == Fraction(99, 100)


def test_expected_says_how_it_knows():
    computed = discreet.expected([90, 80, 5, 1], 2, 1)
    assert computed.shortfall == ShortfallQuantiles(Fraction(0), Fraction(0))
    assert "shortfall typically 0, at most 0 in 19 of 20 releases  (NOT private" in str(computed)
    assert "Shortfall: typically 0" in computed._repr_html_()
    drawn = discreet.expected([90, 80, 5, 1], 2, 1, discreet.Joint())
    assert "in 19 of 20 releases, by draws" in str(drawn)
    assert discreet.expected([3, 2], 2, 1).shortfall is None


def test_fractions_are_rounded_up():
    assert ShortfallQuantiles(Fraction(1, 10), Fraction(5, 2)).describe() == (
        "typically 0.1, at most 2.5 in 19 of 20 releases"
    )


def test_a_list_is_judged_by_other_scores():
    """As in a plan with a contribution bound: drawn by one score of each item, and judged by another."""
    drawn_by, judged_by, k = [9, 7, 6, 4, 2, 0], [5, 8, 1, 8, 3, 0], 2
    mechanism = discreet.OneShot()
    # Both of the 8s are rank 0 or 1 of the scores that decide; it does not matter which.
    standings = np.array([2, 0, 4, 1, 3, 5])
    prepared = mechanism.prepare(array_source(drawn_by).tally(), k, Fraction(1, 2), discreet.Sensitivity())
    chances = Counter()
    for items in combinations(range(6), k):
        left_out = max(score for item, score in enumerate(judged_by) if item not in items)
        lead = max(left_out - min(judged_by[item] for item in items), 0)
        chances[lead] += discreet.subset_probability(drawn_by, items, "1/2", mechanism).value
    found = find_shortfall(mechanism, prepared, array_source(judged_by).tally(), standings)
    assert not is_near_a_step(chances, 0.5)
    assert not is_near_a_step(chances, 0.95)
    assert (found.median, found.most) == (quantile(chances, 0.5), quantile(chances, 0.95))
    assert found.median > 0
