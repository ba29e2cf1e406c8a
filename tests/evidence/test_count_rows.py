"""What `verify --all` says of counts, and the faults that it finds."""

from fractions import Fraction

import pytest

import discreet
from discreet.evidence import definition
from discreet.evidence.counts import misdrawn
from discreet.evidence.number_rows import COUNTS, count_tasks
from discreet.exact.discrete import sample_discrete_laplace as right
from discreet.privacy import Sensitivity
from discreet.release import counts, request

ALONE = next(task for task in count_tasks("add-remove") if task.mechanism is None)


def checks(task):
    """What found something."""
    return {failure.check for failure in task.examine().failures}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("task", count_tasks("add-remove"), ids=lambda task: repr(task.mechanism))
def test_counts_hold_with_a_selection_and_alone(task):
    verdict = task.examine()
    assert verdict.holds, verdict.failures
    # Some user makes all of the noise necessary.
    assert verdict.counts == 1
    assert verdict.pairs >= 40


def test_both_adjacencies_are_covered_and_one_can_be_chosen():
    assert [task.adjacency for task in count_tasks()] == ["add-remove"] * 4 + ["swap"] * 4
    assert {task.adjacency for task in count_tasks("swap")} == {"swap"}


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("per_user", [None, 1, 2])
@pytest.mark.parametrize("limit", [(0, 1), (1, 2), ("1/3", "3/4")])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_rate_by_trying_every_user_is_that_of_the_formula(adjacency, per_user, limit, k):
    sensitivity, grid = Sensitivity(*limit), Fraction(1, 2)
    made = counts.make_count_mechanism(sensitivity, adjacency, grid, k, per_user, Fraction(1))
    tried = definition.counts_rate(Fraction(1), k, sensitivity.down, sensitivity.up, adjacency, grid, per_user)
    assert made.rate == tried


def test_half_the_noise_is_found_by_all_that_look_at_the_rate(monkeypatch):
    right = counts.l1_steps
    monkeypatch.setattr(counts, "l1_steps", lambda *given: Fraction(right(*given), 2))
    assert checks(ALONE) == {"epsilon", "counts", "rate"}


def test_twice_the_noise_is_found_by_the_definition(monkeypatch):
    right = counts.l1_steps
    monkeypatch.setattr(counts, "l1_steps", lambda *given: 2 * right(*given))
    assert checks(ALONE) == {"rate"}


@pytest.mark.parametrize("factor", [2, Fraction(1, 2)])
def test_noise_that_is_drawn_at_another_rate_is_found(monkeypatch, factor):
    monkeypatch.setattr(request, "sample_discrete_laplace", lambda entropy, rate: right(entropy, factor * rate))
    found = misdrawn(Fraction(1))
    assert [failure.check for failure in found] == ["noise"]
    assert found[0].what.startswith("noise of counts at the rate 1 is ")


def test_noise_of_one_sign_is_found(monkeypatch):
    monkeypatch.setattr(request, "sample_discrete_laplace", lambda entropy, rate: abs(right(entropy, rate)))
    assert misdrawn(Fraction(1))


def test_what_is_found_is_printed(monkeypatch):
    right = counts.l1_steps
    monkeypatch.setattr(counts, "l1_steps", lambda *given: 2 * right(*given))
    verdict = ALONE.examine()
    assert verdict.cells()[:2] == ("all items", "add-remove")
    assert verdict.cells()[-1] == "FAILS"
    assert f"by definition {COUNTS / 4}" in verdict.failures[0].what
    assert discreet.verify(scores=[[1, 0]], k=1, mechanism=discreet.Canonical()).counts == []
