"""Choosing an epsilon is the inverse of utility, and the table says what each mechanism needs."""

from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.analysis.goals import GOALS
from discreet.errors import InvalidValueError
from discreet.mechanisms.base import Form
from discreet.mechanisms.registry import all_contenders

SCORES = (2000 / np.arange(1, 61)).astype(np.int64)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("mechanism", "goal"),
    [*((discreet.Canonical(), goal) for goal in GOALS), (discreet.OneShot(), "top"), (discreet.Peeling(), "great")],
    ids=str,
)
def test_it_is_the_smallest_epsilon_of_four_digits_that_does(mechanism, goal):
    epsilon = discreet.epsilon_for(SCORES, 5, goal=goal, probability="0.9", mechanism=mechanism)
    assert getattr(discreet.utility(SCORES, 5, epsilon, mechanism), goal) >= 0.9
    digits = epsilon
    while digits < 1000:
        digits *= 10
    while digits > 10_000:
        digits /= 10
    assert digits.denominator == 1
    less = epsilon * (digits - 1) / digits
    assert getattr(discreet.utility(SCORES, 5, less, mechanism), goal) < 0.9


def test_the_table_has_what_each_needs_and_reaches():
    table = discreet.compare(SCORES[:20], 3, epsilon="1/2", probability="0.9")
    assert [choice.mechanism.name for choice in table.choices] == [*["canonical"] * 7, "one-shot", "peeling", "joint"]
    gammas = [str(choice.mechanism.gamma) for choice in table.choices[:7]]
    assert gammas == ["1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1"]
    for choice in table.choices:
        assert choice.needs["good"] <= choice.needs["great"] <= choice.needs["top"]
        assert choice.reaches == discreet.utility(SCORES[:20], 3, "1/2", choice.mechanism)
    assert table.best("top").needs["top"] == min(choice.needs["top"] for choice in table.choices)
    text = str(table)
    assert text.endswith("NOT private: computed from the scores")
    assert "epsilon for top" in text
    assert "top at 0.5" in text
    assert len(str(discreet.compare(SCORES, 5, mechanisms=[discreet.Canonical()])).splitlines()) == 4


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"goal": "best"}, "goal must be one of top, great, good, optimal, recall, not 'best'"),
        ({"probability": 1}, "probability must be above 0 and below 1, not 1"),
        ({"mechanism": discreet.Canonical(noise="laplace")}, "mechanism must be one whose utility is computed"),
    ],
)
def test_bad_use_is_one_sentence(options, complaint):
    with pytest.raises(discreet.Error, match=complaint):
        discreet.epsilon_for(SCORES, 5, **options)


def test_without_a_mechanism_it_is_the_least_over_gammas():
    for goal in ("top", "recall"):
        table = discreet.compare(SCORES, 5, probability="0.9", goal=goal, mechanisms=discreet.Canonical.contenders())
        assert list(table.choices[0].needs) == [goal]
        assert discreet.epsilon_for(SCORES, 5, goal=goal, probability="0.9") == table.best(goal).needs[goal]
        assert table.best(goal).needs[goal] < discreet.epsilon_for(
            SCORES, 5, goal=goal, probability="0.9", mechanism=discreet.Canonical(gamma="1/2")
        )


def test_what_ties_forbid_is_said():
    tied = "^k must not be 2 for goal 'top': ranks 2 and 3 are tied; ask for goal 'optimal'"
    with pytest.raises(discreet.Error, match=f"{tied}$"):
        discreet.epsilon_for([3, 3, 3, 3], 2, goal="top")
    for scores, others in (([9, 3, 3, 3, 1], "1 or 4"), ([3, 3, 3, 1], "3"), ([9, 3, 3], "1")):
        with pytest.raises(discreet.Error, match=f"{tied}, or k = {others}$"):
            discreet.epsilon_for(scores, 2, goal="top")
        with pytest.raises(discreet.Error, match=f"{tied}, or k = {others}$"):
            discreet.plan(scores, 2, goal="top")
    assert discreet.epsilon_for([3, 3, 3, 3], 2, goal="optimal") < Fraction(2, 10**9)


def test_all_items_need_nothing_and_compare_nothing():
    assert discreet.epsilon_for([3, 2], 2) == Fraction(1, 10**9)
    with pytest.raises(discreet.Error, match="k must be less than 2, the number of items, to compare, not 2"):
        discreet.compare([3, 2], 2)


@pytest.mark.parametrize(
    "scores", [[2 * 10**7, 10**7, 0, 0], [10**10, 5 * 10**9, 4, 1], [1e16, 0, 0], [1e300, 1e299, 0]]
)
@pytest.mark.parametrize("mechanism", [discreet.OneShot(), discreet.OneShot("logistic"), discreet.Peeling()], ids=str)
def test_gaps_of_any_size_are_seen_through(scores, mechanism):
    assert discreet.utility(scores, 1, 1, mechanism).top == pytest.approx(1.0, abs=1e-9)
    assert discreet.subset_probability(scores, [0], 1, mechanism).value == pytest.approx(1.0, abs=1e-9)


def test_the_epsilon_of_one_large_gap_is_that_of_the_exponential_mechanism():
    """With permute-and-flip one item of score 2g, one of g and two of 0, at s = epsilon."""
    needed = float(discreet.epsilon_for([2 * 10**7, 10**7, 0, 0], 1, mechanism=discreet.OneShot()))
    assert needed == pytest.approx(2.453e-7, rel=1e-3)


def test_goals_that_ties_forbid_are_dashes():
    table = discreet.compare([5, 5, 5, 1], 1, mechanisms=[discreet.Canonical(), discreet.OneShot()])
    assert [choice.needs["top"] for choice in table.choices] == [None, None]
    assert all(choice.needs["optimal"] is not None for choice in table.choices)
    assert "  -  " in str(table)
    with pytest.raises(discreet.Error, match=r"^k must not be 1 for goal 'top': ranks 1 and 2 are tied"):
        table.best("top")


GROUPS = {
    "steep": [900, 700, 500, 20, 10, 5],
    "flat": [90, 85, 60, 50, 48, 40, 12],
    "whole": [3, 2],
}


@pytest.mark.corners
@pytest.mark.parametrize("terms", [{"each_user": "one"}, {"each_user": "many", "max_groups_per_user": 2}], ids=str)
@pytest.mark.parametrize("goal", ["top", "recall"])
def test_groups_need_what_the_hardest_of_them_needs_for_each_group_of_a_user(terms, goal):
    source = discreet.grouped(GROUPS, **terms)
    shares = terms.get("max_groups_per_user", 1)
    asked = {"goal": goal, "probability": "0.9"}
    for mechanism in (None, discreet.Canonical(gamma="1/2"), discreet.OneShot()):
        alone = [discreet.epsilon_for(GROUPS[name], 2, mechanism=mechanism, **asked) for name in ("steep", "flat")]
        assert alone[0] < alone[1]
        needed = discreet.epsilon_for(source, 2, mechanism=mechanism, **asked)
        assert needed == shares * alone[1]
    reached = discreet.utility(source, 2, needed, discreet.OneShot())
    assert min(getattr(one, goal) for one in reached.groups.values()) >= 0.9


@pytest.mark.long
def test_a_table_of_groups_says_what_all_of_them_need_and_reach():
    source = discreet.grouped(GROUPS, each_user="many")
    table = discreet.compare(source, 2, epsilon=3, probability="0.9", goal="top")
    for choice in table.choices:
        assert choice.needs["top"] == discreet.epsilon_for(source, 2, mechanism=choice.mechanism, probability="0.9")
        assert choice.reaches == discreet.utility(source, 2, 3, choice.mechanism)
    assert "in each of 3 groups" in str(table)


def test_groups_that_are_all_released_whole_need_no_epsilon():
    source = discreet.grouped({"a": [3, 2], "b": [5, 1]}, each_user="one")
    assert discreet.epsilon_for(source, 2) == Fraction(1, 10**9)
    with pytest.raises(InvalidValueError, match="k must be less than 2"):
        discreet.compare(source, 2)


@pytest.mark.corners
@pytest.mark.parametrize("goal", ["top", "recall"])
@pytest.mark.parametrize("items", [None, 1])
def test_a_comparison_and_a_plan_list_the_same_mechanisms_in_the_same_order(goal, items):
    sensitivity = None if items is None else discreet.Sensitivity(items=items)
    options = {"goal": goal, "probability": "0.9", "sensitivity": sensitivity}
    table = discreet.compare([90, 80, 5, 1], 2, **options)
    listed = [choice.mechanism for choice in table.choices]
    assert listed == [choice.mechanism for choice in discreet.plan([90, 80, 5, 1], 2, **options).comparison.choices]
    assert listed == [each for each in all_contenders(items is not None, goal) if each.form is not Form.UNKNOWN]
    assert discreet.Joint() in listed
