"""Values of a histogram are verified over all neighbours, and what is planted there is found."""

import math
from fractions import Fraction

import pytest

import discreet
from discreet import Histogram
from discreet.evidence import definition
from discreet.evidence.definition import define_values
from discreet.evidence.neighbours import Family, whole
from discreet.evidence.number_rows import NumberTask, ValueTrial, ValueVerdict, value_tasks
from discreet.mechanisms import histogram
from discreet.privacy import Sensitivity
from discreet.release import request
from discreet.release.counts import Reach, l1_distance


def few(adjacency):
    """The trials of all of two items, which are quick."""
    task = value_tasks(adjacency)[0]
    return NumberTask(
        task.mechanism, adjacency, tuple(each for each in task.trials if each.family.d == 2), ValueVerdict
    )


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_values_reach_epsilon_and_not_more(adjacency):
    verdict = few(adjacency).examine()
    assert verdict.holds
    assert verdict.pairs > 10
    assert verdict.worst == pytest.approx(1.0, abs=1e-9)
    assert verdict.cells() == ("histogram", adjacency, str(verdict.pairs), "1.000000", "holds")


def test_all_trials_hold():
    assert all(task.examine().holds for task in value_tasks("add-remove"))


@pytest.mark.parametrize("factor", ["21/20", "2"])
def test_a_scale_that_is_too_large_is_found(monkeypatch, factor):
    right = histogram.scale
    monkeypatch.setattr(histogram, "scale", lambda *given: Fraction(factor) * right(*given))
    assert {failure.check for failure in few("add-remove").examine().failures} == {"epsilon", "rate"}


def test_noise_that_is_more_than_needed_is_found(monkeypatch):
    right = histogram.scale
    monkeypatch.setattr(histogram, "scale", lambda *given: right(*given) / 2)
    assert {failure.check for failure in few("swap").examine().failures} == {"rate"}


def test_a_user_replaced_who_is_counted_as_one_added_is_found(monkeypatch):
    monkeypatch.setattr(request, "l1_distance", lambda reach, _, *rest: l1_distance(reach, "add-remove", *rest))
    assert {failure.check for failure in few("swap").examine().failures} == {"epsilon", "rate"}


def test_half_of_down_and_up_which_does_for_a_selection_is_found(monkeypatch):
    monkeypatch.setattr(
        request, "l1_distance", lambda reach, *rest: l1_distance(Reach(reach.both / 2, reach.both), *rest)
    )
    assert "epsilon" in {failure.check for failure in few("add-remove").examine().failures}


def test_a_mechanism_without_values_is_refused():
    trial = ValueTrial(Family((whole(2, 1),), "add-remove", Sensitivity(items=1)), 1)
    with pytest.raises(discreet.Error, match="must be one that releases values"):
        trial.compare(discreet.OneShot())


@pytest.mark.parametrize(("scores", "k"), [((2, 1), 1), ((1, 1, 0), 2)])
def test_the_law_of_values_adds_up_and_has_that_of_orders_in_it(scores, k):
    law = define_values(scores, k, Fraction(2), range(-14, 17))
    assert sum(map(math.exp, law.values())) == pytest.approx(1.0, abs=1e-9)
    orders = definition.law({"name": "histogram"}, scores, k, 2, items=1)
    for order, log in orders.items():
        part = sum(math.exp(one) for (seen, _), one in law.items() if seen == order)
        assert part == pytest.approx(math.exp(log), rel=1e-7)


def test_values_of_three_have_no_definition():
    with pytest.raises(ValueError, match="no definition of the values of 3 items"):
        define_values((3, 2, 1), 3, Fraction(1), range(3))


def test_verify_takes_users_of_few_items():
    report = discreet.verify(Histogram(), k=1, scores=[[1, 0, 0]])
    assert report.holds
    assert report.pairs > 20
    mine = discreet.verify(Histogram(), k=2, scores=[[2, 1]], adjacency="swap")
    assert mine.holds
    with pytest.raises(discreet.Error, match=r"k must be from 1 to 2 for Histogram\(\)"):
        discreet.verify(Histogram(), k=3, scores=[[2, 1, 0]])


def test_two_users_of_few_items_make_just_these_neighbours():
    """Which pairs are neighbours, asked of each pair, is which are listed."""
    for limit in (Sensitivity(items=1), Sensitivity(1, 2, items=1), Sensitivity(items=2), Sensitivity(1, 1, items=2)):
        for adjacency in ("add-remove", "swap"):
            family = Family((whole(0, 0, 0),), adjacency, limit)
            listed = set(family.neighbours(whole(0, 0, 0)))
            assert all(family.are_neighbours(whole(0, 0, 0), other) for other in listed)
            most = limit.items if adjacency == "add-remove" else 2 * limit.items
            beyond = [whole(*([limit.up] * (most + 1) + [0] * 3)[:3]), whole(9, 0, 0)]
            for other in beyond:
                assert other in listed or not family.are_neighbours(whole(0, 0, 0), other)


@pytest.mark.long
def test_an_audit_takes_a_pair_of_users_of_few_items():
    found = discreet.audit(Histogram(), k=1, scores=[3, 1, 0], neighbour=[3, 2, 1], draws=300)
    assert found.holds
    assert discreet.audit(Histogram(), draws=200).holds
