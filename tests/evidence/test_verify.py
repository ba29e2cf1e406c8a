"""Verify finds epsilon kept, and every fault that is planted here."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet
from discreet.evidence.discovery import discovery_tasks
from discreet.evidence.discovery_choice import choice_tasks
from discreet.evidence.groups import group_tasks
from discreet.evidence.neighbours import Family, families, whole
from discreet.evidence.number_rows import count_tasks, shortfall_tasks, value_tasks
from discreet.evidence.verify import Task, plan
from discreet.exact.ball import ball
from discreet.mechanisms import canonical, joint
from discreet.mechanisms.registry import all_variants
from discreet.privacy import Sensitivity
from discreet.release import request

COUNTS = [[3, 2, 2, 0], [1, 1, 1, 1], [2, 1, 0, 0], [4, 0, 0, 0]]
GUMBEL = [mechanism for mechanism in all_variants() if getattr(mechanism, "noise", "gumbel") == "gumbel"]


@pytest.mark.some(3)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("mechanism", GUMBEL, ids=str)
def test_epsilon_holds_without_integrals(mechanism, k):
    report = discreet.verify(mechanism, k, scores=COUNTS, epsilon="1/2")
    assert report.holds, report
    assert report.pairs == 4 * (2 * 15 + 80)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        discreet.Canonical(noise="exponential"),
        pytest.param(discreet.Canonical("1/3", "half-logistic"), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_epsilon_holds_for_noises_that_are_integrated(mechanism):
    """Some of them; `discreet verify --all`, which .ci/run calls, takes every one."""
    report = discreet.verify(mechanism)
    assert report.holds, report
    assert report.pairs >= 200
    # The inputs can show most of epsilon: the check is not one that passes whatever the noise.
    assert report.verdicts[0].worst > 0.5


def test_all_of_it_is_at_least_what_was_promised():
    planned = plan(None, None, epsilon=1, scores=None, adjacency=None, deep=False)
    tasks = [task for task in planned if isinstance(task, Task)]
    assert [task.mechanism for task in tasks] == all_variants()
    assert len({task.mechanism for task in tasks}) == len(tasks) >= 41
    more = [*count_tasks(), *shortfall_tasks(), *group_tasks(), *value_tasks(), *discovery_tasks(), *choice_tasks()]
    assert len(planned) - len(tasks) == len(more) == 52
    pairs = [
        sum(len(list(trial.family.neighbours(scores))) for trial in task.trials for scores in trial.family.scores)
        for task in tasks
    ]
    assert min(pairs) >= 200
    assert sum(pairs) >= 10_000


def test_all_neighbours_of_counts_are_there():
    added = Family((whole(1, 0),), "add-remove").neighbours(whole(1, 0))
    assert set(added) == {whole(1, 1), whole(2, 0), whole(2, 1), whole(0, 0), whole(1, -1), whole(0, -1)}
    swapped = list(Family((whole(1, 0),), "swap").neighbours(whole(1, 0)))
    assert len(swapped) == 8
    assert whole(0, 1) in swapped


def test_real_changes_stay_within_the_sensitivity_and_reach_its_ends():
    family = next(family for family in families(deep=False) if family.random)
    scores = family.scores[0]
    others = list(family.neighbours(scores))
    assert all(family.are_neighbours(scores, other) for other in others)
    moved = {after - before for other in others for before, after in zip(scores, other, strict=True)}
    assert {Fraction(3, 4), Fraction(-1, 3), Fraction(-3, 4), Fraction(1, 3), Fraction(0)} <= moved
    assert len(moved) > 10


def fails(*arguments, **options):
    """The one verdict, which must be a bad one, with its pair named in the report."""
    report = discreet.verify(*arguments, **options)
    assert not report.holds
    (verdict,) = report.verdicts
    assert "FAILS" in str(report)
    return verdict, str(report)


def test_the_printed_class_size_is_caught(monkeypatch):
    """Algorithm 1 of the paper, as printed: m += log((t - (h+1)) / (k - (h+1))) for h = k-2 down to 0, from rank 1."""

    def printed(self, cell):
        if cell == self.top:
            return Fraction(1)
        (h, t), k, size = cell, self.top[0], Fraction(1)
        for head in range(k - 2, h - 1, -1):
            size *= Fraction((t + 1) - (head + 1), k - (head + 1))
        return size

    monkeypatch.setattr(canonical.Prepared, "log_size", lambda self, cell: ball(printed(self, cell)).log())
    six = [[1, 1, 1, 1, 1, 0], [3, 2, 2, 1, 1, 0]]
    verdict, text = fails(discreet.Canonical(), 3, scores=six, epsilon="1/2", adjacency="add-remove")
    # The design measured a log ratio of 1.22 at epsilon = 1/2.
    assert verdict.worst > 2.4
    assert "is not epsilon-DP" in text
    assert "k = 3, add-remove, epsilon = 1/2, seen: items" in text


@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", [discreet.Canonical(gamma=1), discreet.OneShot("gumbel"), discreet.OneShot()])
def test_a_missing_factor_two_is_caught(monkeypatch, mechanism):
    module = f"discreet.mechanisms.{'canonical' if isinstance(mechanism, discreet.Canonical) else 'oneshot'}.scale"
    monkeypatch.setattr(module, lambda epsilon, sensitivity: epsilon / sensitivity.delta)
    verdict, _ = fails(mechanism, 1, scores=COUNTS)
    assert verdict.worst > 1.5


@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", [discreet.Canonical(gamma=1), discreet.Joint(), discreet.Peeling()])
def test_swap_given_the_noise_of_add_remove_is_caught(monkeypatch, mechanism):
    monkeypatch.setattr(Sensitivity, "under", lambda self, adjacency: self)
    # What makes neighbours must not be fooled as well.
    monkeypatch.setattr(Family, "_sides", lambda self: iter([(Fraction(-1), Fraction(1))]))
    verdict, _ = fails(mechanism, 2, scores=COUNTS, adjacency="swap")
    assert verdict.worst > 1.2
    assert verdict.worst_pair.adjacency == "swap"


def test_joint_with_the_whole_scale_is_caught(monkeypatch):
    def careless(self, tally, k, epsilon, sensitivity):
        return joint.Prepared(tally, k, epsilon / (2 * sensitivity.delta))

    monkeypatch.setattr(joint.Joint, "prepare", careless)
    verdict, _ = fails(discreet.Joint(), 2, scores=COUNTS)
    assert verdict.worst > 1.1


def test_items_in_rank_order_are_caught(monkeypatch):
    monkeypatch.setattr(request, "sort_labels", list)
    verdict, _ = fails(discreet.Canonical(), 2, scores=COUNTS)
    assert verdict.worst == np.inf


def test_items_in_input_order_are_caught(monkeypatch):
    right = request.Request.draw

    def echoed(self, randomness):
        release = right(self, randomness)
        return dataclasses.replace(release, items=[item for item in self.source.labels if item in release.items])

    monkeypatch.setattr(request.Request, "draw", echoed)
    verdict, _ = fails(discreet.Canonical(), 2, scores=COUNTS)
    assert verdict.worst == np.inf


def test_an_order_of_all_items_is_caught(monkeypatch):
    right = request.Request.draw

    def ordered(self, randomness):
        release = right(self, randomness)
        if self.k < self.d:
            return release
        return dataclasses.replace(release, order=self.source.items(np.arange(self.d)))

    monkeypatch.setattr(request.Request, "draw", ordered)
    verdict, _ = fails(discreet.Peeling(), 4, scores=COUNTS)
    assert verdict.worst == np.inf


def test_a_tail_that_ends_one_too_early_is_caught(monkeypatch):
    def short(self):
        return 0, self.losses.k - 1, self.losses.k, self.losses.tally.d - 2

    monkeypatch.setattr(canonical.Classes, "corners", property(short))
    verdict, _ = fails(discreet.Canonical(), 2, scores=COUNTS)
    assert verdict.worst == np.inf


def test_a_body_that_ends_one_too_early_is_caught(monkeypatch):
    def short(self, h, t, entropy):
        body = h + 1 + entropy.subset(self.losses.k - 1 - h, max(t - h - 3, self.losses.k - 2 - h))
        return np.concatenate([np.arange(h), body, [t]])

    monkeypatch.setattr(canonical.Classes, "subset", short)
    verdict, _ = fails(discreet.Canonical(), 2, scores=COUNTS)
    assert verdict.worst == np.inf


@pytest.mark.parametrize("k", [1, 2])
def test_an_eighth_of_epsilon_squared_is_too_little_for_exponential_noise(monkeypatch, k):
    monkeypatch.setattr(discreet.OneShot, "zcdp", lambda self, epsilon, k: epsilon**2 / 8)
    verdict, text = fails(discreet.OneShot("exponential"), k, scores=COUNTS, adjacency="add-remove")
    assert verdict.private
    assert verdict.renyi > 1.3
    assert "does not have the zCDP that it states" in text


def test_noise_of_the_wrong_shape_is_caught(monkeypatch):
    """A tail twice as steep as the Lipschitz condition allows: every chance is that of doubled values."""
    right = canonical.Prepared.excess
    monkeypatch.setattr(canonical.Prepared, "excess", lambda self, cell: 2 * right(self, cell))
    verdict, _ = fails(discreet.Canonical(gamma=1), 2, scores=COUNTS)
    assert verdict.worst > 1.5


def test_the_command_prints_the_table_and_succeeds(call):
    code, out, err = call("verify", "--scores", "3,2,2,0", "-k", "2", "--gamma", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split()[:6] == ["mechanism", "noise", "gamma", "pairs", "reachable", "worst"]
    assert out.splitlines()[1].split()[:4] == ["canonical", "gumbel", "1", "110"]
    assert out.splitlines()[1].split()[-1] == "holds"


def test_the_command_names_the_pair_and_exits_with_1_where_a_fault_is_planted(monkeypatch, call):
    monkeypatch.setattr(canonical.Prepared, "log_size", lambda self, cell: arb(3 * (cell != self.top)))
    code, out, _ = call("verify", "--scores", "3,2,2,0", "-k", "2")
    assert code == 1
    assert "DIFFERS  FAILS" in out
    assert "(3, 2, 2, 0) and (" in out.splitlines()[-2]
    assert "departs from its definition: items " in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--all", "--noise", "laplace"], "all must be left out with a mechanism or one of its options"),
        (["-k", "0"], "k must be a whole number from 1, not 0"),
        (["-k", "9"], "k must be from 1 to"),
        (["--scores", "1,2", "--scores", "1,2,3"], "scores must be vectors of one length, from 2 to 6"),
        (["--scores", "1,x"], "scores must be a finite number such as '0.5', '1/3' or '1e-6', not 'x'"),
        (["--adjacency", "move"], "adjacency must be 'add-remove' or 'swap', not 'move'"),
        (["--jobs", "0"], "jobs must be from 1 to 256, not '0'"),
        (["--epsilon", "0"], "epsilon must be above zero"),
    ],
)
def test_bad_use_is_one_sentence(refused, options, complaint):
    assert refused("verify", *options).startswith(complaint)


@pytest.mark.long
def test_processes_give_the_same_report():
    mechanisms = [discreet.Canonical(), discreet.Joint()]
    alone = discreet.verify(mechanisms, 2, scores=COUNTS)
    assert discreet.verify(mechanisms, 2, scores=COUNTS, jobs=2) == alone


@pytest.mark.parametrize("scores", [[3, 2, 0], [[3, 2, 0], [1, 1]], (1.5, 2), {"a": 3}, np.array([3, 2])])
def test_scores_in_the_place_of_the_mechanism_are_pointed_out(scores):
    with pytest.raises(discreet.Error, match=r"scores are named, .*: verify\(discreet.Canonical\(\), k=2, scores=\[\["):
        discreet.verify(scores, 1)


def test_what_is_no_mechanism_and_no_scores_is_refused_as_before():
    for given in ("canonical", ["canonical"], discreet.Canonical):
        with pytest.raises(discreet.Error, match=r"mechanism must be one of Canonical\(\)"):
            discreet.verify(given, 1)
