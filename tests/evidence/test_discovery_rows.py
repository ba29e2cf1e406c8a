"""What `verify --all` says of items that nobody listed, over all neighbouring tables, and the faults that it finds."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet
import planted_faults
from discreet.cli.evidence import _verification_to_dict
from discreet.evidence import definition as defined
from discreet.evidence.definition import discrete_laplace_log
from discreet.evidence.discovery import (
    DiscoveryTask,
    compare_sketches,
    discovery_tasks,
    misdrawn,
    needed_delta,
    tell_scores_apart,
)
from discreet.evidence.discovery_choice import choice_tasks
from discreet.evidence.discovery_tables import EPSILON, SmallTables
from discreet.evidence.verify import as_report
from discreet.exact.entropy import Entropy
from discreet.mechanisms import weighted_discovery
from discreet.mechanisms.discovery import Discovery
from discreet.mechanisms.weighted_discovery import WeightedDiscovery
from discreet.release import sketch_request
from discreet.sources.events.unlisted import UnlistedScoring
from self_test import cases

TASKS = {str(task.tables): task for task in discovery_tasks()}
FEW = TASKS["l = 1, add-remove"]


@pytest.mark.some(1)
@pytest.mark.parametrize("name", TASKS)
def test_neighbours_need_no_more_than_delta(name):
    verdict = TASKS[name].examine()
    assert verdict.holds, verdict.failures
    # A delta that the threshold just needs: some user's own items are found as often as it allows.
    if "weights" in name:
        # Half of delta is for noise on items that others have too, of which thresholds show little.
        assert (0.499 if "add-remove" in name else 0.249) < verdict.kept < 0.501
    else:
        assert verdict.kept > (0.999 if "add-remove" in name else 0.3)
    assert verdict.worst <= 1 + 1e-9
    assert verdict.pairs >= 100


def test_tables_have_every_user_and_items_around_the_threshold():
    tables = SmallTables(3, "add-remove")
    assert len(tables.users()) == 2**4
    assert len(SmallTables(1, "swap", "many").users()) == 2**4
    assert tables.users()[0] == ()
    read, failures = tables.read()
    assert failures == []
    assert len(read) == len(tables.bases()) * len(tables.users())
    counting = {n for (touched,) in read for _, n, _ in touched}
    assert {1, 2, tables.threshold - 1, tables.threshold, tables.threshold + 1} <= counting
    # Of a user of four items three count, and the fourth is there for shortfalls alone.
    assert sorted(n for _, n, _ in read[15][0]) == [0, 1, 1, 1]
    assert len(list(tables.pair_up(read))) == 7 * 15
    assert len(list(SmallTables(3, "swap").pair_up(read))) == 7 * 15 * 16 // 2


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("plant", "checks"),
    [
        (planted_faults.threshold_one_less, {"delta", "threshold", "drawn"}),
        (planted_faults.all_items_of_a_user_count, {"delta", "people"}),
        (planted_faults.rows_as_people, {"delta", "people", "shortfall", "sketch"}),
        (planted_faults.uncounted_items_kept, {"delta", "people", "chance"}),
        (planted_faults.counts_bounded_like_discovery, {"delta", "rate"}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_planted_faults_are_caught(plant, checks):
    with plant():
        verdict = FEW.examine()
    assert {failure.check for failure in verdict.failures} == checks
    assert verdict.cells()[-1] == "FAILS"


def test_groups_that_each_have_all_of_delta_are_caught():
    with planted_faults.whole_delta_for_each_group():
        verdict = TASKS["l = 1, each user in many of 2 groups, add-remove"].examine()
        assert TASKS["l = 1, each user in one of 2 groups, add-remove"].examine().holds
    assert {failure.check for failure in verdict.failures} == {"delta", "threshold"}


CHOICES = {str(task.tables): task for task in choice_tasks()}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", CHOICES)
def test_neighbours_of_a_choice_need_no_more_than_delta(name):
    verdict = CHOICES[name].examine()
    assert verdict.holds, verdict.failures
    assert 0.25 < verdict.kept < 1
    assert 0.25 < verdict.worst < 1
    assert verdict.pairs >= 98


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("plant", "checks"),
    [
        (planted_faults.choice_for_one_user, {"choice", "delta"}),
        (planted_faults.choice_for_free, {"rate", "threshold", "chance", "delta"}),
        (planted_faults.shared_threshold_one_less, {"threshold", "chance", "alone", "delta"}),
        (planted_faults.shared_threshold_for_one_item, {"threshold", "chance", "alone", "delta"}),
        (planted_faults.each_share_is_a_vote, {"people", "alone", "delta"}),
        (planted_faults.all_items_have_a_vote, {"people"}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_planted_faults_of_a_choice_are_caught(plant, checks):
    with plant():
        verdict = CHOICES["choice at epsilon = 1/2, weights, l = 4, add-remove"].examine()
    assert {failure.check for failure in verdict.failures} == checks
    assert verdict.cells()[-1] == "FAILS"


WEIGHTED = TASKS["weights, l = 3, add-remove"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("plant", "checks"),
    [
        (planted_faults.weights_not_scaled, {"alone", "delta", "people"}),
        (planted_faults.threshold_for_one_item, {"alone", "threshold"}),
        (planted_faults.sigma_five_percent_low, {"sigma"}),
        (planted_faults.all_items_of_a_user_count, {"people"}),
        (planted_faults.rows_as_people, {"people"}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_planted_faults_of_weights_are_caught(plant, checks):
    with plant():
        verdict = WEIGHTED.examine()
    assert checks <= {failure.check for failure in verdict.failures}
    assert verdict.cells()[-1] == "FAILS"


def test_weights_of_each_group_alone_are_caught(monkeypatch):
    """As if m were the items of a user in one group, so that a user of two groups has twice the squared weight."""
    right = UnlistedScoring._count_users

    def count_apart(self, by_user, table, key, within=()):
        apart = by_user.mutate(who=by_user.who.cast("string") + "/" + by_user.grp.cast("string"))
        return right(self, apart, table, key, within)

    monkeypatch.setattr(UnlistedScoring, "_count_users", count_apart)
    verdict = TASKS["weights, l = 1, each user in many of 2 groups, add-remove"].examine()
    assert {"people", "alone"} <= {failure.check for failure in verdict.failures}


def sketch_failures(tables=FEW.tables):
    read, failures = tables.read()
    assert failures == []
    return {failure.check for failure in compare_sketches(tables, list(tables.pair_up(read)))}


@pytest.mark.some(2)
@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.tables.each_user is None])
def test_sketches_of_neighbours_are_as_close_as_their_noise_allows(name):
    assert sketch_failures(TASKS[name].tables) == set()


def test_faults_of_sketches_are_caught(monkeypatch):
    right = sketch_request.make_sketch_noise

    def bound(*terms):
        # The bound of partition selection in place of none.
        *others, _, epsilon = terms
        return right(*others, 1, epsilon)

    def read_without_zeros(request):
        return [*right_steps(request), 1][1:]

    right_steps = sketch_request.read_steps
    with monkeypatch.context() as patch:
        patch.setattr(sketch_request, "make_sketch_noise", bound)
        assert sketch_failures() == {"rate", "sketch"}
    with monkeypatch.context() as patch:
        patch.setattr(sketch_request, "read_steps", read_without_zeros)
        assert sketch_failures() == {"sketch"}


@pytest.mark.long
def test_draws_by_gaussian_noise_are_judged(monkeypatch):
    assert misdrawn("gaussian") == []
    right = WeightedDiscovery.sample_kept

    def keep_all(self, entropy, totals, items):
        return np.where(totals >= self.cutoff, items, right(self, entropy, totals, items))

    monkeypatch.setattr(WeightedDiscovery, "sample_kept", keep_all)
    assert [failure.check for failure in misdrawn("gaussian")] == ["drawn"]
    monkeypatch.undo()
    monkeypatch.setattr(weighted_discovery, "least_sigma", lambda *terms: Fraction(1, 2))
    assert "drawn" in [failure.check for failure in misdrawn("gaussian")]


@pytest.mark.parametrize(("items", "adjacency", "groups"), list(product([1, 3], ["add-remove", "swap"], [1, 2])))
def test_the_definition_of_weights_is_that_of_the_library(items, adjacency, groups):
    for epsilon, delta in (("2", "1e-3"), ("20", "1e-9"), ("1/7", "1e-5")):
        made = WeightedDiscovery(Fraction(epsilon), Fraction(delta), items, adjacency, groups)
        sigma = defined.least_sigma(made.epsilon, made.delta, adjacency)
        assert sigma * (1 - 1e-9) <= made.sigma <= sigma * (1 + 2**-22)
        assert defined.round_up_to_bits(sigma, 24) == made.sigma
        cutoff = defined.least_weighted_threshold(float(made.sigma), made.delta, items * groups, adjacency)
        assert cutoff == made.cutoff


def test_people_are_weighed_by_what_counts_in_all_groups():
    rows = [("ann", 0, "a"), ("ann", 1, "b"), ("bob", 1, "b"), ("bob", 1, "b"), ("cid", 1, "a")]
    both = defined.count_people(rows, 1, "key", 2, one_group=False, is_weighted=True)
    assert both == [{"a": (724, 1)}, {"b": (724 + 1024, 2), "a": (1024, 1)}]
    many = [("ann", 0, item) for item in "abcdefgh"]
    (found,) = defined.count_people(many, 4, "key", 1, one_group=False, is_weighted=True)
    assert sorted(n for n, _ in found.values()) == [0] * 4 + [512] * 4


def test_what_is_drawn_is_judged(monkeypatch):
    assert misdrawn() == []
    right = Discovery.sample_kept

    def keep_all(self, entropy, users, items):
        return np.where(users >= self.threshold, items, right(self, entropy, users, items))

    monkeypatch.setattr(Discovery, "sample_kept", keep_all)
    assert [failure.check for failure in misdrawn()] == ["drawn"]
    monkeypatch.undo()
    monkeypatch.setattr(Entropy, "subset", lambda self, count, last: np.arange(count))
    assert [failure.check for failure in misdrawn()] == ["drawn", "drawn"]


# The second definition by itself, and against the library.


@pytest.mark.parametrize(("items", "adjacency", "groups"), list(product([1, 3], ["add-remove", "swap"], [1, 2])))
def test_the_definition_is_that_of_the_library(items, adjacency, groups):
    for epsilon, delta in (("2", "1e-3"), ("20", "1e-9"), ("7", "1e-5")):
        made = Discovery(Fraction(epsilon), Fraction(delta), items, adjacency, groups)
        given = Fraction(epsilon), items, adjacency, groups
        assert defined.noise_rate(*given) == made.rate
        assert defined.least_threshold(given[0], Fraction(delta), *given[1:]) == made.threshold
        needed = [defined.needed_delta(made.threshold - less, *given) for less in (0, 1)]
        assert needed[0] <= Fraction(delta) < needed[1]


def test_tails_add_up_to_one():
    rate = Fraction(1, 3)
    for n in (-5, 0, 1, 4, 30):
        below = math.fsum(math.exp(discrete_laplace_log(z, rate)) for z in range(-200, n))
        assert defined.upper_tail(rate, n) + below == pytest.approx(1, abs=1e-14)
    assert defined.keep_chance(0, rate, 2) == 0


def test_the_part_for_discovery_is_that_of_the_plan():
    for method, items, k, groups in product(("gaussian", "laplace"), (1, 3, 50), (1, 10, 200), (1, 12)):
        budget = defined.budget_for_discovery(Fraction(2), method, items, k, groups)
        planned = discreet.discovered("1e-6", items, method=method).plan(k, budget, max_groups_per_user=groups)
        assert planned.epsilon == 2


def test_people_are_counted_once_in_the_groups_that_are_theirs():
    rows = [("ann", 0, "a"), ("ann", 0, "a"), ("ann", 1, "b"), ("bob", 1, "b"), ("cid", 1, "a"), ("cid", 0, "b")]
    both = defined.count_people(rows, 1, "key", 2, one_group=False)
    assert both == [{"a": (1, 1), "b": (1, 1)}, {"b": (2, 2), "a": (1, 1)}]
    assert defined.count_people(rows, 1, "key", 2, one_group=True) == [{"a": (1, 1), "b": (1, 1)}, {"b": (1, 1)}]
    many = [("ann", 0, item) for item in "abcdef"] + [("bob", 0, "a")]
    (found,) = defined.count_people(many, 2, "key", 1, one_group=False)
    assert sum(n for n, _ in found.values()) == 3
    assert found["a"][1] == 2


def test_counts_tell_scores_apart_as_their_noise_does():
    """Against the sum over all values that a noisy count can have."""
    rate, values = Fraction(1, 2), range(-150, 160)
    for steps in (1, 2, 5):
        here, there = (np.exp([discrete_laplace_log(c - at, rate) for c in values]) for at in (0, steps))
        cells = np.array(tell_scores_apart(steps, rate))
        assert cells.sum(axis=0) == pytest.approx([1, 1], abs=1e-12)
        for epsilon in (0, Fraction(1, 3), Fraction(3, 2)):
            assert needed_delta(*cells.T, epsilon) == pytest.approx(needed_delta(here, there, epsilon), abs=1e-12)
    assert tell_scores_apart(0, rate) == tell_scores_apart(3, None) == [(1, 1)]


def test_the_divergence_is_the_larger_of_both_directions():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])
    assert needed_delta(p, q, Fraction(0)) == needed_delta(q, p, Fraction(0)) == 0.5
    assert needed_delta(p, q, Fraction(1)) == 0.5


# The report.


def test_what_is_found_is_printed():
    with planted_faults.rows_as_people():
        verdict = DiscoveryTask(FEW.tables, FEW.trials[:1]).examine()
    assert verdict.cells()[:7] == ("laplace", "1", "-", "add-remove", f"{FEW.tables.threshold}", "1", "49")
    said = "\n".join(failure.what for failure in verdict.failures)
    assert "of delta at" in said
    assert "are found to count, by definition" in said
    assert str(FEW.tables) in said


def test_the_report_of_the_command_line_lists_discovery():
    verdict = DiscoveryTask(FEW.tables, FEW.trials[:1]).examine()
    found = _verification_to_dict(as_report([verdict]))
    assert list(found) == ["holds", "pairs", "verdicts", "discovery"]
    (row,) = found["discovery"]
    assert (row["max_items_per_user"], row["each_user"], row["adjacency"]) == (1, None, "add-remove")
    assert (row["pairs"], row["holds"], row["failures"]) == (49, True, [])


def test_all_of_it_is_in_the_self_test():
    planted = [case for case in cases() if case.name.startswith("discovery")]
    assert len(planted) == 6
    assert all(case.found == tuple(TASKS.values())[:10] for case in planted)
    weights = [case for case in cases() if case.name.startswith("weights")]
    assert len(weights) == 3
    assert all(case.found == tuple(TASKS.values())[10:] for case in weights)
    assert {task.tables.adjacency for task in discovery_tasks("swap")} == {"swap"}
    assert EPSILON < 2
