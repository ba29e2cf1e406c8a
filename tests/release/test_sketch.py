"""A sketch moves no further than its noise allows for, has the law of that noise, and is charged and read back."""

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import discreet
import draws
from discreet.evidence.counts import BoundedScores
from discreet.release.sketch import fill_in, fit_falling
from discreet.release.sketch_request import default_ranks, make_sketch_request, read_steps
from discreet.sources.arrays.array import array_source
from laplace import log_probability

VISITS = [round(20_000 / (rank + 5)) for rank in range(1, 201)]


def bounded(scores, per_user, grid=None):
    """Scores of which a user is known to move at most so many."""
    made = array_source(list(scores))
    return BoundedScores(made.scores, None, made.unit, grid, max_items_per_user=per_user)


def users_of(d, down, up, per_user, step):
    """What a user can add to each score: anything in whole steps from -down to up, on at most so many of them."""
    low, high = Fraction(-down) / step, Fraction(up) / step
    parts = [step * i for i in range(int(low), int(high) + 1)]
    return [user for user in product(parts, repeat=d) if sum(map(bool, user)) <= (per_user or d)]


def largest_move(scores, ranks, limit, adjacency, per_user, grid, step):
    """How far the steps of a sketch move over all neighbours, and how far they may."""

    def ask(values):
        source = bounded(values, per_user)
        return make_sketch_request(source, 1, ranks, grid=grid, sensitivity=limit, adjacency=adjacency)

    users = users_of(len(scores), limit.down, limit.up, per_user, step)
    nobody = (Fraction(0),) * len(scores)
    changes = [(nobody, user) for user in users] if adjacency == "add-remove" else product(users, repeat=2)
    before, allowed = read_steps(ask(scores)), 1 / ask(scores).noise.rate
    others = {tuple(x - a + b for x, a, b in zip(scores, gone, new, strict=True)) for gone, new in changes}
    moves = (sum(abs(x - y) for x, y in zip(before, read_steps(ask(other)), strict=True)) for other in others)
    return max(moves), allowed


CASES = [
    # scores, ranks, down, up, users of at most so many, grid, the steps of what users add
    ((0, 0, 0), (1, 2, 3), 0, 1, None, 1, 1),
    ((2, 1, 0), (1, 3), 0, 1, None, 1, 1),
    ((1, 1, 1, 0), (1, 2), 0, 1, 1, 1, 1),
    ((2, 1, 1, 0), (1, 2, 4), 0, 1, 2, 1, 1),
    ((3, 1, 0), (1, 2, 3), 1, 2, None, 1, 1),
    ((4, 2, 1, 0), (1, 2, 3), 1, 2, 2, 1, 1),
    ((3, 3, 0), (1, 2), 2, 1, 1, 1, 1),
    ((3, 0, 0), (1, 2, 3), 1, 1, 2, 1, 1),
    # Off the grid: what a user adds is rounded up to it.
    (("1/2", "1/4", 0), (1, 2, 3), "3/4", "3/4", 2, 1, Fraction(1, 4)),
    (("3/2", 0, 0), (1, 2), 0, "1/2", 1, "1/3", Fraction(1, 4)),
]


@pytest.mark.some(5)
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_neighbour_moves_a_sketch_by_more_than_its_noise_allows_for(case, adjacency):
    scores, ranks, down, up, per_user, grid, step = case
    limit = discreet.Sensitivity(down, up)
    moved, allowed = largest_move(tuple(map(Fraction, scores)), ranks, limit, adjacency, per_user, grid, Fraction(step))
    assert 0 < moved <= allowed


@pytest.mark.parametrize(
    ("scores", "other", "per_user", "sides", "adjacency", "steps"),
    [
        ((0, 0, 0), (1, 1, 1), None, (0, 1), "add-remove", 3),
        ((0, 0, 0), (1, 1, 0), 2, (0, 1), "add-remove", 2),
        ((1, 1, 1), (0, 0, 0), None, (0, 1), "swap", 3),
        # A user of one item who is replaced moves two scores, not one.
        ((1, 9, 0), (1, 8, 1), 1, (0, 1), "swap", 2),
        ((9, 9, 0), (11, 7, 0), 2, (2, 2), "add-remove", 4),
        # One who added 2 to two items gives way to one who takes 1 from the first of them and adds 2 to another.
        ((29, 19, 0), (26, 17, 2), 2, (1, 2), "swap", 7),
        ((9, 9, 9), (6, 6, 6), None, (1, 2), "swap", 9),
    ],
)
def test_some_neighbours_are_as_far_apart_as_the_noise_allows_for(scores, other, per_user, sides, adjacency, steps):
    def ask(values):
        limit = discreet.Sensitivity(*sides)
        return make_sketch_request(bounded(values, per_user), 1, (1, 2, 3), 1, limit, adjacency)

    moved = sum(abs(x - y) for x, y in zip(read_steps(ask(scores)), read_steps(ask(other)), strict=True))
    assert moved == steps == 1 / ask(scores).noise.rate


def test_the_noise_has_the_law_of_its_rate():
    rate, generator = Fraction(1, 3), random.Random(5)
    seen = Counter(discreet.sketch([7, 5, 0], 1, [1, 2, 3], rng=generator).noisy for _ in range(3000))
    law = {n: float(log_probability(rate, n).exp()) for n in range(-60, 61)}
    wrong = {n: float(log_probability(rate * Fraction(5, 4), n).exp()) for n in range(-60, 61)}
    for place, score in enumerate((7, 5, 0)):
        counts = Counter(dict.fromkeys(law, 0))
        for noisy, times in seen.items():
            counts[noisy[place] - score] += times
        assert draws.fits(counts, law)
        assert not draws.fits(counts, wrong)


def test_what_it_promises_and_prints():
    sketch = discreet.sketch(VISITS, "0.5", [1, 10, 100], adjacency="swap")
    assert sketch.guarantee.epsilon == sketch.guarantee.counts_epsilon == Fraction(1, 2)
    assert sketch.guarantee.zcdp == Fraction(1, 8)
    assert sketch.guarantee.sensitivity == discreet.Sensitivity(1, 1)
    assert sketch.sensitivity == discreet.Sensitivity(0, 1)
    assert (sketch.d, sketch.adjacency, sketch.private) == (200, "swap", True)
    assert repr(sketch) == "<Sketch: 3 ranks of 200 items, epsilon = 0.5>"
    text = str(sketch)
    # A discrete Laplace number of rate 1/6 is farther than 18 from zero once in twenty times at most.
    assert text.startswith("Scores at 3 ranks of 200 items, noise within 18 with a chance of 95% for each:\n")
    assert text.endswith("\nPrivacy: epsilon 0.5 for each person replaced, who moves each score by at most 1.")
    drawn = discreet.sketch(VISITS, "0.5", [1, 10, 100], rng=random.Random(1))
    assert str(drawn).endswith("NOT PRIVATE: drawn with the caller's random generator")
    assert "NOT private: computed from a sketch" in str(discreet.utility(drawn, 10, 1))


def test_it_reads_back_from_json():
    source = bounded([Fraction(1, 2), Fraction(1, 3), 7, 0], 2)
    for sketch in (discreet.sketch(VISITS, 1), discreet.sketch(source, "1/3", grid="1/4", sensitivity=SUM)):
        again = discreet.Sketch.from_json(sketch.to_json(indent=2))
        assert again == sketch
        assert again.scores == sketch.scores


SUM = discreet.Sensitivity(1, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1}, {"ranks": [1, 1, 5]}, {"ranks": [1, 2]}, {"ranks": [0, 2, 5]}, {"ranks": [1, 2, 6]},
        {"noisy": [1, "1/2", 3]}, {"noisy": [1, 2, 10**30]}, {"grid": "0"}, {"max_items_per_user": 0}, {"d": 2**64},
        {"guarantee": {}}, {"ranks": []}, {"sensitivity": {"down": "1", "up": "1"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_sketch_is_refused(change):
    data = discreet.sketch([9, 7, 5, 3, 1], 1, [1, 2, 5]).to_dict()
    with pytest.raises(discreet.Error, match=r"data must be a sketch as Sketch\.to_dict or to_json writes it"):
        discreet.Sketch.from_dict({**data, **change})
    with pytest.raises(discreet.Error, match=r"text must be a sketch as Sketch\.to_json writes it"):
        discreet.Sketch.from_json("{")


@pytest.mark.parametrize(
    ("scores", "options", "complaint"),
    [
        (VISITS, {"epsilon": 0}, "epsilon must be above zero, not 0"),
        (VISITS, {"epsilon": "1e-20"}, "epsilon must be large enough for noise of at most 2\\^40 steps of the grid"),
        (VISITS, {"ranks": 5}, "ranks must be a list of whole numbers such as"),
        (VISITS, {"ranks": []}, "ranks must be from 1 to 1000 numbers, not 0"),
        (VISITS, {"ranks": [0]}, "ranks must be a whole number from 1 to 200, the number of items, not 0"),
        (VISITS, {"ranks": [1, 201]}, "ranks must be a whole number from 1 to 200, the number of items, not 201"),
        (VISITS, {"ranks": [2, 1]}, r"ranks must be in ascending order, each given once, not \[2, 1\]"),
        (VISITS, {"grid": 1}, "grid must be left out, because the scores have their own"),
        ([1.5, 2.0], {}, "grid must be given for scores that are not whole numbers by their type"),
        ([1.5, 2.0], {"grid": 0}, "grid must be above zero, not 0"),
        (VISITS, {"adjacency": "replace"}, "adjacency must be 'add-remove' or 'swap', not 'replace'"),
        (VISITS, {"pad_to": "auto"}, "pad_to must be a number of seconds, not 'auto'"),
        (VISITS, {"purpose": "x"}, "purpose must be left out without a ledger"),
        (discreet.grouped({"a": [1, 2]}, each_user="one"), {}, "scores must be of one list of items here"),
        (discreet.sketch(VISITS, 1), {}, "scores must have items to release, and a Sketch has none"),
    ],
)
def test_bad_use_is_one_sentence(scores, options, complaint):
    with pytest.raises(discreet.Error, match=complaint):
        discreet.sketch(scores, **{"epsilon": 1, **options})


def test_nothing_is_released_from_a_sketch():
    sketch = discreet.sketch(VISITS, 1)
    for release in (
        lambda: discreet.top_k(sketch, 10, 1),
        lambda: discreet.grouped({"a": sketch}, each_user="one"),
        lambda: sketch.every_item(),
    ):
        with pytest.raises(discreet.Error, match="a Sketch has none: it is for planning a release"):
            release()


def test_ranks_are_public():
    assert default_ranks(1) == (1,)
    assert default_ranks(100) == (1, 2, 5, 10, 20, 50, 100)
    assert default_ranks(2**63)[-3:] == (2 * 10**6, 5 * 10**6, 2**63)


def test_scores_fall_and_stay_above_zero_where_they_must():
    assert fit_falling([5, 5, 1]) == [5, 5, 1]
    assert fit_falling([1, 2, 3]) == [2, 2, 2]
    for seed in range(20):
        noisy = [random.Random(seed * 100 + i).randint(-9, 9) for i in range(8)]
        fitted = fit_falling(noisy)
        assert all(one >= other for one, other in pairwise(fitted))
        assert sum(fitted) == sum(noisy)
        # The optimum of a projection: no other falling sequence is nearer.
        for other in ([0] * 8, sorted(noisy, reverse=True), list(range(8, 0, -1))):
            assert sum((x - y) * (z - y) for x, y, z in zip(noisy, fitted, other, strict=True)) <= 0
    below = discreet.sketch([3, 0, 0, 0], "0.01", rng=random.Random(3))
    assert min(below.noisy) < 0 <= min(below.scores)
    sums = discreet.sketch([3, 0, 0, 0], "0.01", sensitivity=SUM, rng=random.Random(3))
    assert min(sums.scores) < 0


def test_the_curve_goes_through_what_is_known():
    tally = fill_in([2, 10, 100], [800, 100, 0], 1000, Fraction(1, 2))
    assert tally.d == 1000
    scores = [tally.exact(rank) for rank in range(1000)]
    assert all(one >= other for one, other in pairwise(scores))
    assert [scores[rank - 1] for rank in (1, 2, 10, 100, 1000)] == [400, 400, 50, 0, 0]
    # A power of the rank: 800 (4/2)^log_5(1/8).
    assert abs(float(scores[3]) - 400 * 2 ** (np.log(1 / 8) / np.log(5))) <= 0.5
    huge = fill_in([1, 5, 2**63], [2**62, 7, -(2**62)], 2**63, Fraction(1))
    assert huge.d == 2**63
    assert [huge.exact(rank) for rank in (0, 4, 2**63 - 1)] == [2**62, 7, -(2**62)]


def test_scores_of_any_size_are_cut_off_and_not_refused():
    sketch = discreet.sketch([1e308, 1.0, -1e308], 1000, grid=1)
    assert sketch.scores == [2**62, 1, 0]
    assert discreet.epsilon_for(sketch, 1, goal="top", probability="0.9") > 0


def test_a_sketch_without_noise_plans_what_the_scores_plan():
    sketch = discreet.sketch(VISITS[:40], 1000, range(1, 41))
    assert sketch.scores == VISITS[:40]
    options = {"goal": "recall", "probability": "0.9"}
    assert discreet.epsilon_for(sketch, 5, **options) == discreet.epsilon_for(VISITS[:40], 5, **options)
    measured, known = discreet.utility(sketch, 5, "0.1"), discreet.utility(VISITS[:40], 5, "0.1")
    assert (measured.top, measured.recall) == (known.top, known.recall)
    assert discreet.expected(sketch, 5, "0.1").recall == discreet.expected(VISITS[:40], 5, "0.1").recall


def test_what_is_computed_from_it_says_what_it_cost():
    sketch, cost = discreet.sketch(VISITS[:30], "0.25"), "computed from a sketch that cost epsilon = 0.25"
    plan = discreet.plan(sketch, 3, goal="recall", probability="0.9", epsilon=1)
    for told in (
        str(discreet.utility(sketch, 3, 1)),
        str(discreet.expected(sketch, 3, 1)),
        str(plan.comparison),
        str(plan.best.reaches),
        str(plan),
    ):
        assert cost in told
        assert "NOT private" not in told
    page = plan.page()
    assert "Computed from a sketch that cost epsilon\u00a0=\u00a00.25.</footer>" in page
    assert "not private" not in page.lower()


def test_a_plan_is_for_the_users_of_the_sketch():
    sketch = discreet.sketch(VISITS, 1, sensitivity=SUM, adjacency="swap")
    plan = discreet.plan(sketch, 5, goal="recall", probability="0.9")
    assert (plan.sensitivity, plan.adjacency) == (SUM, "swap")
    assert plan.command.endswith("--sensitivity 1,2 --adjacency swap")
    with pytest.raises(discreet.Error, match="sensitivity must be left out, because the source knows its own"):
        discreet.plan(sketch, 5, sensitivity=SUM)
    with pytest.raises(discreet.Error, match="adjacency must be that of the source, 'swap'"):
        discreet.utility(sketch, 5, 1, adjacency="add-remove")


def test_events_are_sketched_with_the_bound_they_have(tmp_path):
    (tmp_path / "events.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u in range(40) for i in range(u % 4)))
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{i}\n" for i in range(6)))
    source = discreet.events(
        str(tmp_path / "events.csv"), user="user", item="item", domain=f"{tmp_path}/items.csv:item",
        max_items_per_user=3,
    )  # fmt: skip
    sketch = discreet.sketch(source, 1000, [1, 2, 3, 6])
    assert sketch.scores == [30, 20, 10, 0]
    assert sketch.max_items_per_user == 3
    # Three scores that a user can move, not four.
    assert sketch.half_width == discreet.sketch([1, 1, 1], 1000).half_width


def test_it_is_charged_before_it_is_drawn_and_stored(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="visitors")
    options = {"ledger": ledger, "purpose": "a plan", "request_id": "curve"}
    sketch = discreet.sketch(VISITS, "0.25", [1, 10], **options)
    assert ledger.spent == Fraction(1, 4)
    (entry,) = ledger.history()
    assert (entry.k, entry.d, entry.zcdp, entry.is_sketch) == (2, 200, Fraction(1, 32), True)
    assert entry.mechanism == {"name": "discrete-laplace"}
    assert entry.release == sketch
    # Asked again it costs nothing and answers the same; other ranks are another question.
    assert discreet.sketch(VISITS, "0.25", [1, 10], **options) == sketch
    with pytest.raises(discreet.Error, match="request_id must be new for a new query"):
        discreet.sketch(VISITS, "0.25", [1, 20], **options)
    with pytest.raises(discreet.BudgetSpentError, match=r"epsilon 0\.8 does not fit: 0\.75 of 1 is left"):
        discreet.sketch(VISITS, "0.8", ledger=ledger)
    release = discreet.top_k(VISITS, 3, "0.75", ledger=ledger)
    assert [entry.is_sketch for entry in ledger.history()] == [True, False]
    assert ledger.history()[1].release == release
    assert ledger.check() == 5
    assert json.loads(json.dumps(ledger.export()))["records"][2]["body"]["release"] == sketch.to_dict()


def test_it_doubts_itself_where_the_noise_hides_the_curve():
    clear, tied = [10**6 // rank for rank in range(1, 101)], [7] * 100
    assert not discreet.sketch(clear, 1).is_doubtful(10)
    sketch = discreet.sketch(tied, 1000)
    for told in (discreet.utility(sketch, 10, 1), discreet.expected(sketch, 10, 1)):
        assert "; DOUBTFUL: it does not show how the scores fall around rank 10," in str(told)
    # Where it has no rank on one side of k it knows nothing there.
    ends = discreet.sketch(clear, 1000, [5, 20])
    assert [ends.is_doubtful(k) for k in (4, 5, 19, 20)] == [True, False, False, True]


def test_users_of_few_items_need_less_noise_by_the_callers_word_too():
    said = discreet.Sensitivity(items=1)
    made = discreet.sketch([9, 5, 3, 1], epsilon=1, ranks=[1, 2, 3], sensitivity=said)
    assert made.max_items_per_user == 1
    assert made.half_width < discreet.sketch([9, 5, 3, 1], epsilon=1, ranks=[1, 2, 3]).half_width
    assert discreet.Sketch.from_json(made.to_json()) == made
