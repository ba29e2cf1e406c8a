"""Lists from scores with a bound on items a user, judged by the scores without it: against full enumeration."""

import itertools
import math
import random
import re
import shlex
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.analysis.compare import BOUNDS, ItemBound, make_clipped_case
from discreet.analysis.goals import GOALS, goals
from discreet.analysis.joint_odds import make_analysis_request
from discreet.analysis.meters import meter
from discreet.analysis.race_odds import RaceOdds
from discreet.evidence import definition
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source

DOMAIN = range(6)


def make_events(seed, users=40):
    """Users who touch from one to five of six items, the first ones more often."""
    rng = random.Random(seed)
    rows = []
    for user in range(users):
        touched = {min(int(rng.expovariate(0.6)), 5) for _ in range(rng.randrange(1, 7))}
        rows += [{"who": user, "what": item} for item in touched]
    return pa.Table.from_pylist(rows)


def score_by_item(source):
    """Every item with its score."""
    tally = source.tally()
    found = {item: tally.exact(rank) for rank, item in enumerate(source.items(np.arange(tally.d)))}
    source.close()
    return found


def judge(law, truth, drawn, k, share):
    """The chance of each goal, or the share that is right, by a law over sets of items and the true scores."""
    # Of equal true scores, the one with less left of it comes first: the order that is hardest to release.
    order = sorted(DOMAIN, key=lambda item: (-truth[item], drawn[item]))
    kth = truth[order[k - 1]]
    right = [item for item in DOMAIN if truth[item] >= kth]
    above = [item for item in DOMAIN if truth[item] > kth]
    great, good = ((math.ceil(k / 10), 11 * k // 10), (math.ceil(k / 100), min(3 * k // 2, len(DOMAIN))))

    def within(chosen, h, t):
        return set(order[:h]) <= chosen <= set(order[:t])

    found = dict.fromkeys(GOALS, 0.0)
    for items, log_chance in law.items():
        chosen, chance = set(items), math.exp(log_chance)
        hits = len(chosen & set(right))
        found["top"] += chance * within(chosen, k, k)
        found["great"] += chance * within(chosen, *great)
        found["good"] += chance * within(chosen, *good)
        found["optimal"] += chance * (set(above) <= chosen <= set(right))
        found["recall"] += chance * (hits / k if share is None else hits >= math.ceil(share * k))
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("seed", [1, 2])
def test_goals_are_those_of_the_true_scores_under_noise_on_the_others(seed, most, adjacency):
    table = make_events(seed)
    asked = {"user": "who", "item": "what", "domain": DOMAIN, "adjacency": adjacency}
    source = discreet.events(table, **asked)
    truth = score_by_item(source)
    drawn = score_by_item(discreet.events(table, **asked, max_items_per_user=most))
    assert truth != drawn
    for (k, epsilon), share in itertools.product([(1, 1), (2, Fraction(1, 3)), (4, 2)], [None, Fraction(1, 2)]):
        law = definition.law(
            {"name": "histogram"}, [drawn[item] for item in DOMAIN], k, Fraction(epsilon),
            adjacency=adjacency, as_sets=True, items=most,
        )  # fmt: skip
        case = make_clipped_case(source.count_clipped(most), k, epsilon)
        found = case.meter(GOALS, share)(Fraction(epsilon), 1e-9)
        assert found.error < 1e-8
        for goal, chance in judge(law, truth, drawn, k, share).items():
            assert found.values[goal] == pytest.approx(chance, abs=1e-8), (goal, k)


@pytest.mark.some(2)
@pytest.mark.parametrize("noise", NOISES)
def test_any_race_can_be_judged_by_any_other_order(noise):
    """For each noise, some orders of five values and all regions and numbers of hits, against the law of the sets."""
    values = np.array([3.0, 2.0, 2.0, 0.5, -1.0])
    rng = random.Random(5)
    for k in (1, 3):
        law = definition.oneshot_sets([Fraction(value) for value in values], k, Fraction(k), noise)
        for standings in (rng.sample(range(5), 5) for _ in range(2)):
            odds = RaceOdds(
                discreet.mechanisms.noise.NOISES[noise].require_distribution(), values, k, 1e-10, np.array(standings)
            )
            for h, t in itertools.product(range(k + 1), range(k, 6)):
                chance = sum(
                    math.exp(log_chance)
                    for items, log_chance in law.items()
                    if set(range(h)) <= {standings[i] for i in items} <= set(range(t))
                )
                assert odds.rate((h, t)).value == pytest.approx(chance, abs=1e-8), (h, t)


def test_what_is_lost_without_noise_counts_ties_by_halves():
    """Two items share the place that is left, and one of them is right."""
    rows = [{"who": user, "what": item} for user, items in enumerate([[0], [0], [1], [2], [1, 3]]) for item in items]
    source = discreet.events(pa.Table.from_pylist(rows), user="who", item="what", domain=range(4))
    clipped = source.count_clipped(1)
    tally, truth = clipped.tally(), clipped.truth
    kept = sorted((tally.exact(i) for i in range(4)), reverse=True)
    assert truth.tally.exact(1) == 2
    lost = truth.count_lost(tally, 2, 2)
    # By the true scores 0 and 1 are the best; user 4 keeps one of 1 and 3.
    assert lost == (0 if kept == [2, 2, 1, 0] else Fraction(2, 3))
    assert source.count_clipped(2).keeps_all
    assert source.count_clipped(2).truth.count_lost(truth.tally, 2, 2) == 0


@pytest.fixture(scope="module")
def planned():
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(400), rng.integers(1, 9, 400))
    items = np.minimum((rng.pareto(0.8, len(users)) * 2).astype(int), 29)
    source = discreet.events(pa.table({"who": users, "what": items}), user="who", item="what", domain=range(30))
    return source, discreet.plan(source, k=4, goal="recall", probability="0.7", epsilon="0.2")


@pytest.mark.long
def test_plan_tries_several_bounds_and_says_what_they_cost(planned):
    source, plan = planned
    bounded = [choice for choice in plan.comparison.choices if choice.bound is not None]
    assert [choice.bound.max_items_per_user for choice in bounded] == list(BOUNDS[: len(bounded)])
    assert {choice.mechanism for choice in bounded} == {discreet.Histogram()}
    # The last bound keeps everything, so that it is what scores with so few items need; more are not tried.
    assert bounded[-1].bound.lost == 0
    assert source.count_clipped(bounded[-1].bound.max_items_per_user).keeps_all
    scores = list(score_by_item(source).values())
    limit = discreet.Sensitivity(0, 1, items=bounded[-1].bound.max_items_per_user)
    alone = discreet.epsilon_for(
        scores, 4, goal="recall", probability="0.7", mechanism=discreet.Histogram(), sensitivity=limit
    )
    assert bounded[-1].needs["recall"] == alone
    assert bounded[-1].reaches.recall == pytest.approx(
        discreet.utility(scores, 4, "0.2", discreet.Histogram(), sensitivity=limit).recall, abs=1e-8
    )
    for choice in bounded:
        needed = choice.needs["recall"]
        if needed is not None:
            read = make_clipped_case(source.count_clipped(choice.bound.max_items_per_user), 4, 1).meter(GOALS, None)
            below = read(needed * Fraction(998, 1000), 1e-5).values["recall"]
            assert read(needed, 1e-5).values["recall"] >= 0.7 > below
    text = str(plan)
    assert "Histogram(), at most 1 item a user " in text
    assert "NOT private" in text
    assert re.search(r"Keeping 1 item a user alone loses \S+ of the 4; 2 items a user alone loses \S+ of the 4", text)


def test_the_recommended_bound_is_in_the_command_and_on_the_page(planned):
    source, plan = planned
    bound = plan.best.bound
    assert bound is not None
    assert f"with epsilon = {float(plan.epsilon):g}, of events with {bound}." in plan.recommendation
    words = shlex.split(plan.command)
    assert words[words.index("--max-items-per-user") + 1] == str(bound.max_items_per_user)
    assert words[words.index("--user") + 1 : words.index("--user") + 4] == ["who", "--item", "what"]
    assert f"histogram, {bound}" in plan.page()
    release = discreet.top_k(
        discreet.events(
            source._opened.table, user="who", item="what", domain=range(30), max_items_per_user=bound.max_items_per_user
        ),
        k=4,
        epsilon=plan.epsilon,
        mechanism=plan.best.mechanism,
    )
    assert len(release.items) == 4


def test_a_bound_that_alone_misses_the_goal_is_never_enough():
    """Everybody has item 0 and one of three others; with one item a user, two of those end up beside it."""
    rows = [{"who": user, "what": item} for user in range(300) for item in (0, 1 + user % 3)]
    source = discreet.events(pa.Table.from_pylist(rows), user="who", item="what", domain=range(5))
    plan = discreet.plan(source, k=1, probability="0.9")
    one, two = (choice for choice in plan.comparison.choices if choice.bound is not None)
    assert (one.bound, one.needs) == (ItemBound(1, Fraction(2, 3)), {"top": None})
    assert (two.bound, two.needs["top"] is None) == (ItemBound(2, Fraction(0)), False)
    assert ">histogram, at most 1 item a user</th><td>never</td>" in plan.page()


def test_other_scores_have_no_bounds_to_try():
    assert all(choice.bound is None for choice in discreet.plan([9, 5, 2, 1], k=1).comparison.choices)
    source = discreet.events(make_events(1), user="who", item="what", domain=DOMAIN, max_items_per_user=2)
    assert not source.can_be_clipped
    assert all(choice.bound is None for choice in discreet.plan(source, k=2).comparison.choices)


def test_only_a_race_is_judged_by_another_order():
    tally = array_source(np.array([3, 2, 1])).tally()
    guarantee = make_analysis_request([3, 2, 1], 1, 1).guarantee
    with pytest.raises(ValueError, match="must be a race to be judged by other scores"):
        meter(tally, 1, guarantee, goals(tally, 1), standings=np.arange(3))
