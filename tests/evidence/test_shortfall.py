"""A list and its shortfall cost what they state, exactly, its bounds hold with 95%, and planted faults are found."""

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

import discreet
import planted_faults
from discreet.cli.evidence import _verification_to_dict
from discreet.evidence import definition
from discreet.evidence.counts import verify_counts
from discreet.evidence.discovery import discovery_tasks
from discreet.evidence.discovery_tables import SmallTables
from discreet.evidence.groups import GroupLaws, GroupTrial, group_tasks
from discreet.evidence.neighbours import Family, move, whole
from discreet.evidence.number_rows import SHORTFALL, NumberTask, NumberTrial, ShortfallVerdict, shortfall_tasks
from discreet.evidence.verify import as_report
from discreet.evidence.visible_laws import Input, expected_law
from discreet.exact.discrete import interval_half_width
from discreet.mechanisms.tally import Selection
from discreet.privacy import Sensitivity
from discreet.release import request, shortfall
from discreet.release.discovery_request import DiscoveryRequest
from discreet.release.shortfall import ShortfallMechanism, find_lead, make_shortfall_mechanism, shortfall_steps

EPSILONS = {"epsilon": Fraction(1, 2), "shortfall": Fraction(1, 3)}
TASKS = {(repr(task.mechanism), task.adjacency): task for task in shortfall_tasks()}
USERS = Family((whole(3, 2, 2, 0), whole(1, 1, 1, 1)), "add-remove")


def checks(task):
    """What found something."""
    return {failure.check for failure in task.examine().failures}


# The sensitivity of the lead, by enumeration.


@pytest.mark.parametrize(("down", "up"), [(0, 1), (1, 1), (1, 2)])
@pytest.mark.parametrize("d", [3, 4])
def test_one_user_moves_the_lead_by_down_and_up_whatever_k_and_the_number_of_items(d, down, up):
    """All scores from 0 to 2, and all users. Items can be renamed, so that one list of each size is enough."""
    users = list(product([-down, 0, up], repeat=d))
    for k in range(1, d):
        y = tuple(range(k))
        added, swapped = 0, 0
        for scores in product(range(3), repeat=d):
            leads = [definition.lead(move(scores, user), y) for user in users]
            added = max(added, *(abs(lead - definition.lead(scores, y)) for lead in leads))
            # Two users who come to the same scores are a swap.
            swapped = max(swapped, max(leads) - min(leads))
        assert (added, swapped) == (down + up, 2 * (down + up))


@pytest.mark.parametrize("grid", ["1", "1/2", "1/3", "2"])
@pytest.mark.parametrize("limit", [("0", "1"), ("1/3", "3/4"), ("1/4", "1/4"), ("1", "2")])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_the_rate_by_trying_every_user_is_that_of_the_formula(adjacency, limit, grid):
    sensitivity, step = Sensitivity(*limit), Fraction(grid)
    made = make_shortfall_mechanism(sensitivity, adjacency, step, Fraction(1))
    assert made.rate == definition.shortfall_rate(Fraction(1), sensitivity.down, sensitivity.up, adjacency, step)


@pytest.mark.parametrize("limit", [("1/3", "3/4"), ("1/4", "1/4"), ("0", "2/3")])
def test_a_lead_that_is_rounded_once_moves_by_at_most_its_steps(limit):
    """Every lead in twelfths between two steps of 1/2, and every change in twelfths."""
    sensitivity, grid = Sensitivity(*limit), Fraction(1, 2)
    reach = sensitivity.down + sensitivity.up
    changes = [Fraction(n, 12) for n in range(-12 * 3, 12 * 3 + 1) if abs(Fraction(n, 12)) <= reach]
    steps = max(
        abs(math.floor((lead + change) / grid + Fraction(1, 2)) - math.floor(lead / grid + Fraction(1, 2)))
        for lead in (Fraction(n, 12) for n in range(7))
        for change in changes
    )
    assert steps == shortfall_steps(sensitivity, "add-remove", grid) == math.ceil(reach / grid)


def test_the_second_definition_of_the_lead():
    assert definition.lead([5, 3, 2], (0,)) == -2
    assert definition.lead([5, 3, 2], (1, 2)) == 3
    assert definition.lead_of_found({"a": 5, "b": 3}, ["a"]) == -2
    assert definition.lead_of_found({"a": 5, "b": 3}, ["a", "b"]) == -3
    assert definition.lead_of_found({"a": 5}, ["a", "gone"]) == 0
    assert definition.lead_of_found({}, ["gone"]) == 0


# The law of the value, and of the bounds.


@pytest.mark.parametrize("grid", ["1", "1/2"])
def test_the_value_has_the_discrete_laplace_law_around_the_lead_rounded_once(grid):
    scores, y, step = (Fraction(5, 4), Fraction(1, 2), Fraction(0)), (1,), Fraction(grid)
    made = make_shortfall_mechanism(Sensitivity(), "add-remove", step, Fraction(1, 3))
    shown = {n: made.add_noise(definition.lead(scores, y), lambda _, n=n: n).value / step for n in range(-90, 91)}
    logs = {n: definition.shortfall_log(int(value), scores, y, made.rate, step) for n, value in shown.items()}
    assert logs == {n: definition.discrete_laplace_log(n, made.rate) for n in shown}
    assert sum(math.exp(log) for log in logs.values()) == pytest.approx(1, abs=1e-6)


def tail(rate, n):
    """P(N >= n) for n >= 1, by the sum of a geometric series."""
    return math.exp(-rate * n) / (1 + math.exp(-rate))


@pytest.mark.some(1)
@pytest.mark.parametrize(("epsilon", "steps"), [("0.05", 46), ("0.01", 230), ("1", 2), ("1/4", 9)])
def test_the_bound_covers_the_lead_with_95_percent_and_one_step_less_would_not(epsilon, steps):
    rate, lead = Fraction(epsilon), Fraction(7)
    made = make_shortfall_mechanism(Sensitivity(), "add-remove", Fraction(1), rate)
    # D <= upper = D + N + q where N >= -q. The law is symmetric: P(N < -q) = P(N >= q + 1).
    covered = {n: lead <= made.add_noise(lead, lambda _, n=n: n).upper for n in range(-steps - 2, 3)}
    assert covered == {n: n >= -steps for n in covered}
    assert 1 - tail(rate, steps + 1) >= 0.95 > 1 - tail(rate, steps)
    above, around = definition.shortfall_margins(rate)
    assert above == steps
    assert around == interval_half_width(rate, Fraction(1, 20))
    assert 1 - 2 * tail(rate, around + 1) >= 0.95 > 1 - 2 * tail(rate, around)


def test_the_tail_of_the_tests_is_that_of_the_definition():
    for n in (1, 5, 46):
        assert tail(Fraction(1, 20), n) == pytest.approx(definition.upper_tail(Fraction(1, 20), n), rel=1e-12)


# What `verify --all` says of it.


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", TASKS, ids=" ".join)
def test_a_list_and_its_shortfall_keep_their_epsilons(kind):
    verdict = TASKS[kind].examine()
    assert verdict.holds, verdict.failures
    # Some user makes all of the noise necessary.
    assert verdict.shortfall == 1
    assert verdict.worst > 0.65
    assert verdict.cells()[:2] == (TASKS[kind].mechanism.name, kind[1])


def test_every_kind_of_mechanism_is_covered_under_both_adjacencies():
    covered = [task.mechanism for task in shortfall_tasks("swap")]
    assert {one.name for one in covered} == {"canonical", "one-shot", "joint", "histogram", "core"}
    assert {one.otherwise is None for one in covered if one.name == "core"} == {True, False}
    assert len(TASKS) == 2 * len(covered)


def test_the_joint_law_of_list_and_shortfall_is_within_epsilon_point_by_point():
    """By the definition alone, over lists and values one after the other, against what the verifier adds up."""
    (mechanism, k), rate = (discreet.Canonical(), 2), SHORTFALL
    trial = NumberTrial(Family((whole(3, 2, 2, 0),), "add-remove"), k, shortfall=SHORTFALL)
    named = {"name": "canonical", "gamma": "3/4", "noise": "gumbel", "ceil": False}

    def joint(scores):
        law = definition.law(named, scores, k, Fraction(1, 2))
        return {
            (y, v): log + definition.shortfall_log(v, scores, y, rate, Fraction(1))
            for (y, log), v in product(law.items(), range(-12, 13))
        }

    (scores,) = trial.family.scores
    here = joint(scores)
    worst = max(
        abs(log - there)
        for other in trial.family.neighbours(scores)
        for log, there in zip(here.values(), joint(other).values(), strict=True)
    )
    assert worst / (Fraction(1, 2) + SHORTFALL) == pytest.approx(trial.compare(mechanism).worst, abs=1e-9)


# Faults.


def doubled(right):
    return lambda *given, **more: replace(right(*given, **more), rate=2 * right(*given, **more).rate)


ALL = TASKS[repr(discreet.Canonical()), "add-remove"]
ONE = NumberTask(discreet.Canonical(), "add-remove", (NumberTrial(USERS, 2, shortfall=SHORTFALL),), ShortfallVerdict)
SUMS = NumberTask(discreet.Canonical(), "add-remove", ALL.trials[-2:], ShortfallVerdict)


def test_noise_at_twice_the_rate_hides_in_the_joint_law_and_shows_by_itself(monkeypatch):
    monkeypatch.setattr(request, "make_shortfall_mechanism", doubled(make_shortfall_mechanism))
    weak = {**EPSILONS, "shortfall": Fraction(1, 100)}
    found = verify_counts(discreet.Canonical(), 2, USERS, **weak)
    assert found.worst < 1
    assert found.shortfall == 2
    assert not found.holds
    assert {"shortfall", "rate", "definition", "bounds"} <= checks(ONE)


def test_twice_the_noise_is_found_by_the_definition(monkeypatch):
    monkeypatch.setattr(shortfall, "shortfall_steps", lambda *given: 2 * shortfall_steps(*given))
    assert checks(ONE) == {"rate", "definition", "bounds"}


@pytest.mark.some(1)
@pytest.mark.parametrize("wrong", ["larger", "selection"])
def test_a_sensitivity_of_one_side_is_found(monkeypatch, wrong):
    def steps(limit, adjacency, grid):
        reach = max(limit.down, limit.up) if wrong == "larger" else limit.under(adjacency).delta
        return math.ceil(reach / grid) * (2 if adjacency == "swap" else 1)

    monkeypatch.setattr(shortfall, "shortfall_steps", steps)
    assert {"shortfall", "rate"} <= checks(SUMS)


def test_scores_that_are_rounded_one_by_one_are_found(monkeypatch):
    def find_lead(tally, selection):
        chosen = set(selection.draw_ranks().tolist())
        left_out = next(rank for rank in range(tally.d) if rank not in chosen)
        first, last = (math.floor(2 * tally.exact(rank) + Fraction(1, 2)) for rank in (left_out, max(chosen)))
        return Fraction(first - last, 2)

    monkeypatch.setattr(request, "find_lead", find_lead)
    assert checks(ONE) == set()
    assert {"shortfall", "definition"} <= checks(SUMS)


@pytest.mark.parametrize("change", ["upper", "low", "shared"])
def test_bounds_that_are_too_narrow_or_made_of_true_scores_are_found(monkeypatch, change):
    right = ShortfallMechanism.add_noise

    def add_noise(self, lead, noise):
        made = right(self, lead, noise)
        wrong = {"upper": made.upper - 1, "low": made.low + 1, "shared": made.upper}[change]
        return replace(made, upper=lead + 5) if change == "shared" else replace(made, **{change: wrong})

    monkeypatch.setattr(ShortfallMechanism, "add_noise", add_noise)
    found = checks(ONE)
    assert "bounds" in found
    assert ("epsilon" in found) is (change == "shared")


def test_the_last_item_of_the_list_in_place_of_the_weakest_is_found(monkeypatch):
    """The order of the draw would show in the lead of an ordered list."""
    right = shortfall.find_lead
    monkeypatch.setattr(
        request, "find_lead", lambda tally, selection: right(tally, Selection(selection.draw_ranks()[:1]))
    )
    assert "definition" in checks(ONE)


def test_an_epsilon_that_is_overstated_is_found(monkeypatch):
    """A share of too large an epsilon would look small."""
    right = request.Guarantee
    monkeypatch.setattr(request, "Guarantee", lambda total, *rest, **more: right(total + 1, *rest, **more))
    assert "total" in checks(ONE)


def test_counts_and_a_shortfall_keep_their_epsilons_side_by_side():
    found = verify_counts(discreet.Canonical(), 2, USERS, **EPSILONS, counts=Fraction(1, 5))
    assert (found.counts, found.shortfall, found.rate, found.shortfall_rate) == (1, 1, Fraction(1, 10), Fraction(1, 3))
    assert found.pairs == 60


# Groups.


def led_task(each_user, adjacency):
    """The trials with shortfalls of one row of groups."""
    task = next(one for one in group_tasks(adjacency) if one.each_user == each_user)
    return replace(task, trials=tuple(trial for trial in task.trials if trial.shortfall is not None))


@pytest.mark.some(2)
@pytest.mark.parametrize("each_user", ["one", "many"])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_shortfalls_of_all_groups_keep_one_epsilon_and_need_all_of_it(each_user, adjacency):
    task = led_task(each_user, adjacency)
    assert {trial.counts is None for trial in task.trials} == {True, False}
    verdict = task.examine()
    assert verdict.holds, verdict.failures
    # In each trial some user moves the shortfalls as far as their noise allows for, in several groups if there are any.
    assert {one.shortfall for one in verdict.found} == {1.0}


def test_faults_in_shortfalls_by_group_are_found(monkeypatch):
    task = led_task("many", "add-remove")
    monkeypatch.setattr(request, "make_shortfall_mechanism", doubled(make_shortfall_mechanism))
    assert {"shortfall", "rate"} <= checks(task)
    monkeypatch.undo()
    monkeypatch.setattr(request, "find_lead", lambda tally, selection: find_lead(tally, selection) + 1)
    assert checks(task) == {"definition"}


def test_a_swap_that_counts_as_one_user_is_found_by_group(monkeypatch):
    monkeypatch.setattr(
        shortfall, "shortfall_steps", lambda limit, adjacency, grid: shortfall_steps(limit, "add-remove", grid)
    )
    assert {"shortfall", "rate"} <= checks(led_task("one", "swap"))


@pytest.mark.parametrize(("each_user", "parts"), [("one", 1), ("many", 2)])
def test_groups_state_the_zcdp_of_their_shortfalls(each_user, parts):
    trial = GroupTrial(discreet.Canonical(), 1, "add-remove", each_user)
    without, with_them = (GroupLaws(each).grouped.guarantee for each in (trial, replace(trial, shortfall=SHORTFALL)))
    assert with_them.zcdp - without.zcdp == SHORTFALL**2 / (2 * parts)
    assert with_them.epsilon - without.epsilon == SHORTFALL


# Items that nobody listed.


FOUND = {str(task.tables): task for task in discovery_tasks()}


def led_tables(name):
    """The trials with shortfalls of one row of discovery."""
    return replace(FOUND[name], trials=tuple(one for one in FOUND[name].trials if one.shortfall), is_drawn=False)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", FOUND)
def test_the_shortfall_of_found_items_keeps_its_epsilon_purely(name):
    verdict = led_tables(name).examine()
    assert verdict.holds, verdict.failures
    # Items that one table lacks score 0 there, so that the shortfall needs all of its noise and no delta of its own.
    assert [one.shortfall for one in verdict.found] == [1.0, 1.0]


def test_tables_have_items_that_count_for_nobody():
    read, failures = SmallTables(1, "add-remove").read()
    assert failures == []
    assert {n for (touched,) in read for _, n, _ in touched} >= {0, 1}
    # An item that counts for nobody until a user comes is two ahead of nothing at once.
    one, *others = read[-8:]
    gone = {item for item, n, _ in one[0] if n == 0}
    assert any((item, 1, 2) in touched for (touched,) in others for item in gone)


def test_a_list_that_is_empty_has_no_shortfall(monkeypatch):
    """A shortfall of nothing, of which the lead is made up, would be found."""
    right = DiscoveryRequest._release_found

    def release_found(self, found, randomness, largest=(), method=None):
        made = right(self, found, randomness, largest, method)
        if made.items:
            return made
        return replace(made, shortfall=self.shortfall_mechanism.add_noise(Fraction(0), randomness.noise))

    monkeypatch.setattr(DiscoveryRequest, "_release_found", release_found)
    assert "definition" in checks(led_tables("l = 1, add-remove"))


@pytest.mark.parametrize(
    "plant", [planted_faults.shortfall_among_kept_items, planted_faults.shortfall_with_half_the_noise]
)
def test_faults_of_found_items_are_caught(plant):
    with plant():
        found = checks(led_tables("l = 1, each user in many of 2 groups, add-remove"))
    assert found == ({"rate"} if "noise" in plant.__name__ else {"definition"})


# The audit.


def drawn_input(mechanism=None, k=2, adjacency="add-remove", part=Fraction(1, 3)):
    chosen = discreet.Canonical() if mechanism is None else mechanism
    limit = Sensitivity(items=1 if chosen.releases_values else None)
    return Input(whole(5, 3, 3, 0), k, Fraction(1), chosen, limit, adjacency, part)


@pytest.mark.some(2)
@pytest.mark.parametrize("part", ["2", "1/3", "2/7"])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_cells_of_the_audit_have_the_law_of_the_definition(adjacency, part):
    """Against the sum over all values that a shortfall can have."""
    drawn_from = drawn_input(adjacency=adjacency, part=Fraction(part))
    noisy = make_shortfall_mechanism(Sensitivity(), adjacency, Fraction(1), Fraction(part))
    for items in (("a", "b"), ("c", "d")):
        lead = definition.lead(drawn_from.scores, [ord(item) - ord("a") for item in items])
        cells = drawn_from.cells(items)
        summed = dict.fromkeys(cells, 0.0)
        release = discreet.top_k(dict(zip("abcd", (5, 3, 3, 0), strict=True)), 2, 1)
        for n in range(-400, 401):
            seen = drawn_from.observe(replace(release, shortfall=noisy.add_noise(lead, lambda _, n=n: n)))
            summed[seen[2]] += math.exp(definition.discrete_laplace_log(n, noisy.rate))
        assert summed == pytest.approx(cells, abs=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [discreet.Canonical(), discreet.OneShot("gumbel"), discreet.Histogram(), discreet.Core(otherwise=None)],
    ids=str,
)
def test_laws_with_a_shortfall_add_up_to_one_and_empty_lists_have_none(mechanism):
    law = expected_law(drawn_input(mechanism)).probabilities
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert {len(outcome) for outcome in law if outcome[0]} == {3}
    assert {len(outcome) for outcome in law if not outcome[0]} == ({2} if mechanism.name == "core" else set())


@pytest.mark.long
def test_an_audit_draws_shortfalls_and_finds_nothing():
    found = discreet.audit(k=2, epsilon=1, shortfall=1, draws=800, confidence="0.999999", rng=random.Random(4))
    assert found.holds, found
    assert (found.shortfall, found.pair.epsilon) == (1, 2)
    assert "epsilon = 2, of which 1 for a shortfall" in str(found)
    without = discreet.audit(k=2, epsilon=1, draws=800, rng=random.Random(4))
    assert without.shortfall is None
    assert "shortfall" not in str(without)


def test_an_audit_finds_half_the_noise():
    with planted_faults.shortfall_with_half_the_noise():
        found = discreet.audit(k=2, shortfall=1, draws=400, confidence="0.999999", rng=random.Random(4))
    assert not found.holds
    assert "the counts do not fit the definition" in str(found)


def test_an_audit_finds_an_overspent_shortfall_of_a_sampler():
    generator = random.Random(2)

    def hasty(scores):
        return discreet.top_k(scores, 1, 1, shortfall=20, rng=random.Random(generator.getrandbits(64)))

    pair = {"scores": [2, 1, 0], "neighbour": [2, 2, 0], "epsilon": 1, "shortfall": "1/2"}
    found = discreet.audit(k=1, **pair, draws=800, sampler=hasty)
    assert found.overspent
    assert found.spent > 1.5


def test_what_an_audit_of_a_shortfall_refuses():
    own = discreet.Sampler("first", lambda scores, k, epsilon, rng: list(range(k)))
    with pytest.raises(discreet.Error, match="shortfall must be left out with"):
        discreet.audit(own, k=1, shortfall=1)
    with pytest.raises(discreet.Error, match="shortfall must be left out where k is the number of items, 3"):
        discreet.audit(k=3, shortfall=1, scores=[1, 1, 0], neighbour=[1, 1, 1])
    with pytest.raises(discreet.Error, match="at most 100,000 outcomes to enumerate"):
        discreet.audit(k=4, shortfall=1, scores=[1] * 25, neighbour=[1] * 24 + [2])
    with pytest.raises(discreet.Error, match="shortfall must be"):
        discreet.audit(k=1, shortfall=0)


def test_the_command_audits_a_shortfall(done):
    options = "--scores 2,1,0 --neighbour 2,1,1 -k 1 --epsilon 0.5 --shortfall 0.25 --draws 300 --confidence 0.9999999"
    assert "epsilon = 3/4, of which 0.25 for a shortfall, 300 draws of each" in done("audit", *options.split())
    found = json.loads(done("audit", *options.split(), "--format", "json"))
    assert (found["holds"], found["epsilon"], found["shortfall"]) == (True, "3/4", "1/4")


def test_the_report_of_the_command_line_lists_shortfalls():
    verdict = ONE.examine()
    found = _verification_to_dict(as_report([verdict]))
    assert list(found) == ["holds", "pairs", "verdicts", "shortfalls"]
    (row,) = found["shortfalls"]
    assert (row["mechanism"]["name"], row["adjacency"], row["holds"], row["shortfall"]) == (
        "canonical", "add-remove", True, 1.0,
    )  # fmt: skip
    assert "shortfall with  adjacency" in str(as_report([verdict]))
