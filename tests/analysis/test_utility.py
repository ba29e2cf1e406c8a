"""Utility against full enumeration, against draws, and against a scan of all classes."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from scipy.special import gammaln

import discreet
from discreet.analysis.canonical_odds import massive_cells
from discreet.analysis.goals import GOALS, goals, is_reached
from discreet.evidence.law import law
from discreet.exact.ball import log_binomial, log_binomial_float, log_binomial_ratio, precision
from discreet.mechanisms.canonical import Classes, Losses
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source

COMPUTED = (
    [discreet.Canonical(gamma) for gamma in ("0", "1/3", "1/2", "1")]
    + [discreet.Canonical(ceil=True), discreet.Peeling(), discreet.Joint()]
    + [discreet.OneShot(noise) for noise in NOISES]
)
SCORES = [[9, 7, 7, 6, 2, 0], [3, 3, 3, 3, 1, 0], [8, 5, 5, 5, 5, 5], [1, 0, 0, 0, 0, 0]]


def enumerated(mechanism, scores, k, epsilon):
    """The shares of all goals from the exact law of every set."""
    tally = array_source(np.array(scores)).tally()
    ordered = sorted(scores, reverse=True)
    with precision(112):
        chances = law(mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity()))
    shares = dict.fromkeys(GOALS, 0.0)
    for ranks, log_chance in chances.items():
        chance = float(log_chance.exp())
        held = set(ranks)
        h = next((rank for rank in range(k) if rank not in held), k)
        t = max(ranks) + 1
        shares["top"] += chance * (h == k)
        shares["great"] += chance * (h >= ceil(k / 10) and t <= 11 * k // 10)
        shares["good"] += chance * (h >= ceil(k / 100) and t <= 3 * k // 2)
        left = [ordered[rank] for rank in range(len(scores)) if rank not in held]
        shares["optimal"] += chance * (max(left) <= min(ordered[rank] for rank in ranks))
        shares["recall"] += chance * sum(ordered[rank] >= ordered[k - 1] for rank in ranks) / k
    return shares


@pytest.mark.corners
@pytest.mark.parametrize("mechanism", COMPUTED, ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_what_is_computed_is_what_enumeration_gives(mechanism, scores):
    for k, epsilon in [(1, "1/2"), (2, 2)]:
        found = discreet.utility(scores, k, epsilon, mechanism)
        expected = enumerated(mechanism, scores, k, epsilon)
        assert found.confidence is None
        assert found.error <= 1e-9
        for goal in GOALS:
            assert abs(getattr(found, goal) - expected[goal]) <= found.error + 1e-12, (goal, k, epsilon)


@pytest.mark.parametrize("mechanism", [discreet.Canonical(noise="laplace"), discreet.Peeling("logistic")])
def test_what_is_drawn_covers_what_enumeration_gives(mechanism):
    scores, k = [9, 7, 7, 6, 2], 2
    found = discreet.utility(scores, k, 1, mechanism, width="0.4", confidence="0.9999999")
    expected = enumerated(mechanism, scores, k, 1)
    assert found.confidence == Fraction(9999999, 10000000)
    assert found.error <= 0.201
    for goal in GOALS:
        assert abs(getattr(found, goal) - expected[goal]) <= found.error


@pytest.mark.parametrize("gamma", ["0", "1/2", "1"])
@pytest.mark.parametrize("epsilon", ["0.001", "0.05", "1"])
def test_the_classes_with_mass_are_found_without_a_scan(gamma, epsilon):
    d, k = 3000, 40
    scores = (1e5 / np.arange(1, d + 1) ** 0.8).astype(np.int64)
    losses = Losses(array_source(scores).tally(), k, Fraction(epsilon), Fraction(gamma))
    cells = massive_cells(Classes(losses))
    h, t = np.arange(k)[:, None], np.arange(k, d)[None, :]
    share, s = float(Fraction(gamma)), float(Fraction(epsilon))
    weight = -s * ((1 - share) * (scores[h] - scores[k - 1]) + share * (scores[k - 1] - scores[t]))
    weight = weight + gammaln(t - h) - gammaln(k - h) - gammaln(t - k + 1)
    total = np.logaddexp(0.0, np.log(np.exp(weight - weight.max()).sum()) + weight.max())
    assert cells.log_total == pytest.approx(total, abs=1e-8)
    assert len(cells.h) < 0.5 * k * (d - k)
    region = (h >= 4) & (t < 44)
    mine = cells.probability[(cells.h >= 4) & (cells.t < 44)].sum()
    assert mine == pytest.approx(np.exp(weight[region] - total).sum(), abs=1e-9)
    assert cells.error < 1e-9


def test_log_binomials_are_right():
    r = np.array([0, 1, 1, 2, 5, 11, 12, 13, 100, 10**5, 10**6])
    rest = np.array([7, 0, 1, 3, 9, 11, 12, 200, 10**6, 10**7, 10**6])
    with precision(128):
        exactly = [float(log_binomial(int(a + b), int(a))) for a, b in zip(r, rest, strict=True)]
    assert log_binomial_float(r, rest) == pytest.approx(exactly, rel=1e-15, abs=1e-12)


def test_ratios_of_binomials_lose_no_digits():
    """However many more there are to choose from: near 1 as well as beside nothing."""
    made = np.random.default_rng(11)
    few = [0, 1, 2, 3, 11, 12, 13, 200, 10**6, 10**12]
    grid = np.array([(m, r, rest) for m in few[1:] for r in few[1:] for rest in few])
    drawn = np.floor(10 ** made.uniform(0, 7, (500, 3))).astype(np.int64)
    m, r, rest = np.concatenate([grid, drawn]).T
    with precision(256):
        exactly = [
            float(log_binomial(int(b + c), int(b)) - log_binomial(int(a + b + c), int(b)))
            for a, b, c in zip(m, r, rest, strict=True)
        ]
    assert log_binomial_ratio(m, r, rest) == pytest.approx(exactly, rel=2.0**-48, abs=0.0)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "mechanism", [discreet.Canonical(), discreet.OneShot(), discreet.OneShot("laplace"), discreet.Joint()], ids=str
)
def test_more_epsilon_is_better_and_goals_imply_one_another(mechanism):
    scores = (1e4 / np.arange(1, 301)).astype(np.int64)
    before = None
    for epsilon in ("0.01", "0.1", "1", "10"):
        found = discreet.utility(scores, 10, epsilon, mechanism)
        assert found.top <= found.great + 1e-9
        assert found.great <= found.good + 1e-9
        assert found.good <= 1 + 1e-9
        assert found.top <= found.optimal + 1e-9
        if before is not None:
            assert all(getattr(found, goal) >= getattr(before, goal) - 1e-9 for goal in GOALS)
        before = found


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (discreet.OneShot(), "1/2"),
        (discreet.OneShot("laplace"), "1/2"),
        (discreet.Canonical(), "1/20"),
        (discreet.Joint(), "1/10"),
    ],
    ids=str,
)
def test_draws_on_a_larger_input_agree(mechanism, epsilon):
    """At alpha = 1e-5 by Hoeffding: 4,000 draws, off by at most 0.04."""
    scores, k, n = np.random.default_rng(5).permutation((2e4 / np.arange(1, 501)).astype(np.int64)), 20, 4000
    found = discreet.utility(scores, k, epsilon, mechanism)
    tally = array_source(scores).tally()
    prepared = mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
    entropy = discreet.exact.entropy.as_entropy(np.random.default_rng(6))
    seen = [np.sort(prepared.draw(entropy)) for _ in range(n)]
    for goal, wanted in goals(tally, k).items():
        assert abs(np.mean([is_reached(wanted, ranks, k) for ranks in seen]) - getattr(found, goal)) < 0.04
    assert any(0.05 < getattr(found, goal) < 0.95 for goal in GOALS)


def test_ties_make_more_sets_optimal():
    tally = array_source(np.array([5, 5, 3, 3, 3, 1])).tally()
    assert goals(tally, 3)["optimal"] == (2, 5)
    assert goals(tally, 2)["optimal"] == (2, 2)
    assert goals(tally, 1)["optimal"] == (0, 2)


def test_it_says_that_it_is_not_private():
    assert "NOT private" in str(discreet.utility([3, 2, 1], 1, 1))
    assert "NOT private" in discreet.utility.__doc__
    assert "with confidence 0.99;" in str(discreet.utility([3, 2, 1], 1, 1, discreet.Peeling("laplace"), width="0.9"))


def test_all_items_are_all_items():
    assert discreet.utility([3, 2, 1], 3, 1) == discreet.analysis.utility.Utility(1.0, 1.0, 1.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"width": 0}, "width must be from 0.001 to less than 1"), ({"confidence": 1}, "confidence must be from 0.5")],
)
def test_bad_use_is_one_sentence(options, complaint):
    with pytest.raises(discreet.Error, match=complaint):
        discreet.utility([3, 2, 1], 1, 1, discreet.Joint(), **options)


def test_groups_are_measured_at_their_share_and_as_a_whole():
    scores = {"x": [9, 7, 6, 1], "y": [5, 5, 4, 3], "all": [2, 1]}
    source = discreet.grouped(scores, each_user="many")
    found, gained = discreet.utility(source, 2, 3), discreet.expected(source, 2, 3)
    alone = {group: discreet.utility(scores[group], 2, 1) for group in scores}
    assert found.groups == alone
    assert gained.groups == {group: discreet.expected(scores[group], 2, 1) for group in scores}
    assert found.groups["all"].top == 1.0
    for goal in GOALS:
        assert getattr(found, goal) == pytest.approx(np.mean([getattr(one, goal) for one in alone.values()]))
    assert gained.recall == pytest.approx(np.mean([one.recall for one in gained.groups.values()]))
    assert found.error == max(one.error for one in alone.values())
    assert f"top      {found.top:.6f}  from" in str(found)
    assert "3 groups" in str(gained)
    assert all("NOT private" in str(one) for one in (found, gained))


def test_what_is_drawn_for_groups_covers_all_of_them_at_once():
    source = discreet.grouped({"x": [9, 7, 6], "y": [5, 4, 3]}, each_user="one")
    found = discreet.utility(source, 1, 1, discreet.Canonical(noise="laplace"), width="0.5", confidence="0.9")
    assert {one.confidence for one in found.groups.values()} == {Fraction(9, 10)}
    # As sure of each group as 1 - 0.1 / 2.
    alone = discreet.utility([9, 7, 6], 1, 1, discreet.Canonical(noise="laplace"), width="0.5", confidence="0.95")
    assert found.error == pytest.approx(alone.error, abs=0.05)
    assert "with confidence 0.9" in str(found)


@pytest.mark.some(2)
@pytest.mark.parametrize("epsilon", ["30", "300", "700", "3000", "1e6"])
@pytest.mark.parametrize("mechanism", [discreet.Histogram(), discreet.OneShot(), discreet.OneShot("laplace")], ids=str)
def test_no_noise_makes_a_list_wrong_at_a_large_epsilon(mechanism, epsilon):
    """Above the wrong ones lies a wide gap, and above it more that are right than are released."""
    scores, few = [40] * 5 + [7] * 8 + [0] * 300, discreet.Sensitivity(items=1)
    asked = str(Fraction(epsilon) * (1 if isinstance(mechanism, discreet.Histogram) else 10))
    found = discreet.utility(scores, 10, asked, mechanism, sensitivity=few)
    assert found.recall == pytest.approx(1.0, abs=1e-9)
