"""What `verify --all` says of lists by group, over all neighbouring tables, and the faults that it finds."""

from fractions import Fraction

import pytest

import discreet
import planted_faults
from discreet.cli.evidence import _verification_to_dict
from discreet.evidence import definition, groups
from discreet.evidence.groups import EPSILON, GroupTrial, choose_groups, compare_tables, group_tasks, is_enumerable
from discreet.evidence.neighbours import whole
from discreet.evidence.verify import as_report
from discreet.mechanisms.registry import all_variants
from discreet.privacy import Sensitivity
from discreet.release import counts

TASKS = {(task.each_user, task.adjacency): task for task in group_tasks()}


def checks(task):
    """What found something."""
    return {failure.check for failure in task.examine().failures}


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", TASKS, ids=" ".join)
def test_the_law_of_all_groups_changes_by_at_most_epsilon(kind):
    verdict = TASKS[kind].examine()
    assert verdict.holds, verdict.failures
    # Some user makes all of the noise necessary, and the groups together are no better than what they state.
    assert verdict.worst == pytest.approx(1.0, abs=1e-9)
    assert verdict.renyi > 0.98
    assert verdict.pairs > 500


def test_every_mechanism_with_a_closed_form_is_covered():
    for (_, adjacency), task in TASKS.items():
        wanted = {repr(one) for one in all_variants() if is_enumerable(one) and (adjacency != "swap" or one.is_linear)}
        assert {repr(trial.mechanism) for trial in task.trials} == wanted
        assert {trial.counts is None for trial in task.trials} == {True, False}
        assert {trial.per_user for trial in task.trials} == {None, 1}
    assert {task.adjacency for task in group_tasks("swap")} == {"swap"}


def test_every_user_with_any_rows_is_there():
    one = GroupTrial(discreet.Canonical(), 1, "add-remove", "one").changes()
    # Nobody, or any of seven sets of items in one of two groups.
    assert len(one) == 15
    assert one[0] == (whole(0, 0, 0), whole(0, 0, 0))
    assert all(sum(any(scores) for scores in change) <= 1 for change in one)
    assert len(GroupTrial(discreet.Canonical(), 1, "swap", "many").changes()) == 64
    bounded = GroupTrial(discreet.Canonical(), 1, "swap", "many", most=2, groups=3, items=2, per_user=1).changes()
    assert max(sum(map(sum, change)) for change in bounded) == 2


def test_a_user_is_in_the_group_with_most_rows_and_of_equal_ones_in_the_first():
    assert choose_groups({0: {1}, 1: {0, 2}}, "one", None) == [1]
    assert choose_groups({1: {0}, 0: {2}}, "one", None) == [0]
    assert choose_groups({}, "one", None) == []
    assert choose_groups({2: {0}, 0: {2}, 1: {1}}, "many", 2) == [0, 1]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("plant", "caught", "finds"),
    [
        (planted_faults.left_in_all_groups, ("one", "add-remove"), {"epsilon", "zCDP", "shortfall"}),
        (planted_faults.left_in_all_groups, ("one", "swap"), {"epsilon", "zCDP", "shortfall"}),
        (
            planted_faults.whole_epsilon_for_each_group,
            ("many", "add-remove"),
            {"epsilon", "total", "rate", "shortfall"},
        ),
        (planted_faults.swap_counted_once_in_groups, ("one", "swap"), {"epsilon", "rate"}),
    ],
)
def test_a_planted_fault_is_caught(plant, caught, finds):
    with plant():
        assert checks(TASKS[caught]) == finds


def test_rounded_losses_break_epsilon_by_group_under_swap_and_are_refused(monkeypatch):
    trial = GroupTrial(discreet.Canonical(ceil=True), 2, "swap", "one", items=6)
    with pytest.raises(discreet.Error, match="mechanism must not be"):
        compare_tables(trial)
    monkeypatch.setattr(discreet.Canonical, "is_linear", True)
    monkeypatch.setitem(groups._TABLES, (2, 6), ((whole(4, 3, 2, 0, 0, 0),) * 2,))
    found = compare_tables(trial)
    assert found.worst > 1.05
    assert found.failures()[0].check == "epsilon"


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("per_user", [None, 1, 2])
@pytest.mark.parametrize("limit", [(0, 1), (1, 2), ("1/2", "1/2")])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_rate_by_trying_every_user_is_that_of_the_formula(adjacency, per_user, limit, k):
    sensitivity = Sensitivity(*limit)
    made = counts.make_count_mechanism(sensitivity, adjacency, Fraction(1), k, per_user, Fraction(1), grouped=True)
    sides = sensitivity.down, sensitivity.up
    assert made.rate == definition.counts_rate_by_group(Fraction(1), k, *sides, adjacency, per_user)


def test_what_is_found_is_printed():
    task = TASKS["many", "add-remove"]
    with planted_faults.whole_epsilon_for_each_group():
        verdict = type(task)("many", "add-remove", task.trials[1:2]).examine()
    assert verdict.cells()[:3] == ("many", "add-remove", "1")
    assert verdict.cells()[-1] == "FAILS"
    assert any(f"state epsilon = {2 * EPSILON} where {EPSILON} was asked for" in one.what for one in verdict.failures)
    assert any("of epsilon at (2, 1, 0) (0, 1, 1) and" in one.what for one in verdict.failures)


def test_the_report_of_the_command_line_lists_groups():
    verdict = TASKS["one", "add-remove"].examine()
    found = _verification_to_dict(as_report([verdict]))
    assert (found["holds"], found["pairs"], list(found)) == (
        True,
        verdict.pairs,
        ["holds", "pairs", "verdicts", "groups"],
    )
    assert (found["groups"][0]["each_user"], found["groups"][0]["failures"]) == ("one", [])
