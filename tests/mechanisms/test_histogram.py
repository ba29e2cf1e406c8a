"""Noise on all scores: what it promises and refuses, its law with values, and that these come from the race itself."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas
import pytest

import discreet
from discreet import Histogram, Sensitivity
from discreet.errors import InvalidValueError
from discreet.evidence import definition
from discreet.evidence.definition import define_values
from discreet.exact.discrete import rounded_half_width
from discreet.exact.entropy import Entropy
from discreet.ledger.charges import query_of
from discreet.mechanisms.histogram import scale
from discreet.mechanisms.tally import Tally
from discreet.release.counts import CountFormat
from discreet.release.request import make_grouped_request, make_request
from discreet.sources.files import file_source
from draws import enough, fits

SCORES = {"a": 912, "b": 877, "c": 410, "d": 3}
ONE = Sensitivity(items=1)


def release(scores=SCORES, k=2, epsilon=1, sensitivity=ONE, **options):
    return discreet.top_k(scores, k, epsilon, mechanism=Histogram(), sensitivity=sensitivity, **options)


def prepared(scores, k, epsilon, l1=1):
    """The mechanism on scores in descending order."""
    counts = Counter(scores)
    tally = Tally.of_runs(sorted(counts, reverse=True), [counts[one] for one in sorted(counts, reverse=True)])
    return Histogram().prepare(tally, k, Fraction(epsilon), Sensitivity().with_l1(Fraction(l1)))


@pytest.mark.parametrize(
    ("sensitivity", "adjacency", "l1"),
    [
        (Sensitivity(items=1), "add-remove", 1),
        (Sensitivity(items=3), "add-remove", 3),
        (Sensitivity(items=9), "add-remove", 4),
        (Sensitivity("1/3", "3/4", items=2), "add-remove", Fraction(3, 2)),
        (Sensitivity(items=1), "swap", 2),
        (Sensitivity(items=3), "swap", 4),
        (Sensitivity(1, 2, items=1), "swap", 4),
        (Sensitivity(1, 2, items=3), "swap", 10),
        (Sensitivity(1, 1, items=2), "swap", 4),
    ],
)
def test_noise_is_for_the_most_that_a_user_can_move_all_scores(sensitivity, adjacency, l1):
    promised = release(sensitivity=sensitivity, adjacency=adjacency).guarantee
    assert promised.sensitivity.l1 == l1
    assert scale(Fraction(1), promised.sensitivity) == 1 / Fraction(l1)
    rate = definition.histogram_rate(1, 4, sensitivity.down, sensitivity.up, adjacency, sensitivity.items)
    assert rate == 1 / Fraction(l1)
    assert (promised.epsilon, promised.zcdp, promised.counts_epsilon) == (1, Fraction(1, 2), 0)


def test_all_items_are_drawn_and_paid_for():
    whole = release(k=4, epsilon=50)
    assert whole.order == ["a", "b", "c", "d"]
    assert whole.guarantee.epsilon == 50
    assert [count.item for count in whole.counts] == whole.order


def test_values_are_near_and_intervals_hold_for_all_items_at_once():
    generator, held, runs = random.Random(1), 0, 300
    for _ in range(runs):
        found = release(k=4, rng=generator).counts
        held += all(count.low <= SCORES[count.item] <= count.high for count in found)
    # log(4 / 0.05) = 4.38 steps, rounded to 4; of 300 releases 285 or more are expected to be right.
    assert found[0].high - found[0].value == 4
    assert held >= 0.95 * runs - 15


@pytest.mark.parametrize(("d", "rate"), [(2, "1"), (1000, "1/7"), (2**63, "3/100"), (5, "9")])
def test_the_half_width_is_that_of_the_design(d, rate):
    width = rounded_half_width(Fraction(rate), Fraction(1, 20 * d))
    assert width == math.floor(math.log(d / 0.05) / float(Fraction(rate)) + 0.5)
    # The chance that one rounded noise is farther off: |x| from width + 1/2 on.
    assert d * math.exp(-float(Fraction(rate)) * (width + 0.5)) <= 0.05


def test_values_have_the_grid_of_the_scores_and_none_without_one():
    assert release({"a": 2.5, "b": 1.25, "c": 0.5}, epsilon=100).counts is None
    assert release({"a": 2.5, "b": 1.25, "c": 0.5}, epsilon=100).order == ["a", "b"]
    form = CountFormat(Fraction(1, 2), 3, floor=True)
    assert form.make_count("x", 1) == discreet.Count("x", Fraction(1, 2), Fraction(0), Fraction(2))
    assert CountFormat(Fraction(1), 3, floor=False).make_count("x", 1) == discreet.Count("x", 1, -2, 4)
    rows = pandas.DataFrame({"who": range(9), "what": [0] * 9})
    counted = discreet.events(rows, user="who", item="what", domain=discreet.integers(0, 9), max_items_per_user=1)
    assert {count.low for count in release(counted, epsilon="0.01", sensitivity=None).counts} == {0}
    signed = release(epsilon="0.01", sensitivity=Sensitivity(1, 1, items=1), k=4, rng=random.Random(5))
    assert any(count.low < 0 for count in signed.counts)


def test_scores_of_a_text_file_may_be_between_steps(tmp_path):
    """There an interval must reach half a step farther, and has a whole one more."""
    file = tmp_path / "scores.csv"
    file.write_text("item,score\na,2.5\nb,1.25\n")
    found = discreet.top_k(file_source(file), 2, 10**6, mechanism=Histogram(), sensitivity=ONE).counts
    assert found[1] == discreet.Count("b", 1, 0, 2)
    assert found[0].low <= 2.5 <= found[0].high


def law_of_values(scores, k, epsilon, steps):
    """What is drawn, and its value in steps, by the definition; what is beyond the steps is one outcome."""
    law = define_values(scores, k, Fraction(epsilon), steps)
    chances = {outcome: math.exp(log) for outcome, log in law.items()}
    return chances | {"beyond": 1.0 - sum(chances.values())}


@pytest.mark.some(1)
@pytest.mark.parametrize(("scores", "k"), [((2, 1, 0), 1), ((1, 0), 2), ((2, 1, 1), 2), ((3, 0, 0, 0, 0, 0), 2)])
def test_items_and_values_have_the_law_of_the_definition(scores, k):
    steps, wrong = range(-4, 7), law_of_values(scores, k, Fraction(23, 20), range(-4, 7))
    chances = law_of_values(scores, k, 1, steps)
    n, made, entropy = enough(chances, wrong), prepared(scores, k, 1), Entropy(random.Random(7))
    seen = Counter()
    for _ in range(n):
        selection = made.select(entropy)
        values = tuple(selection.values.to_steps(Fraction(1)))
        seen[(tuple(selection.ranks.tolist()), values) if set(values) <= set(steps) else "beyond"] += 1
    assert fits(merge(seen, scores), merge(chances, scores))
    assert not fits(merge(seen, scores), merge(wrong, scores))


def merge(outcomes, scores):
    """Ranks of equal scores are alike."""
    merged = Counter()
    for outcome, amount in outcomes.items():
        key = outcome if outcome == "beyond" else (tuple(scores[i] for i in outcome[0]), outcome[1])
        merged[key] += amount
    return merged


class Bits:
    """A generator that counts what it was asked for."""

    def __init__(self, seed):
        self.generator, self.asked = random.Random(seed), 0

    def getrandbits(self, k):
        self.asked += k
        return self.generator.getrandbits(k)


@pytest.mark.parametrize("word", [3, 64])
def test_rounding_is_exact_and_extends_the_uniforms_of_the_race(word):
    """On a fine grid floats cannot tell; what is found on a coarse one is that of the fine one, rounded."""
    for seed in range(20):
        bits = Bits(seed)
        selection = prepared([5, 4, 4, 1, 0, 0, 0, 0], 4, 1).select(Entropy(bits, word))
        raced = bits.asked
        coarse = selection.values.to_steps(Fraction(1))
        if word == 64:
            assert bits.asked == raced
        fine = selection.values.to_steps(Fraction(1, 10**40))
        assert bits.asked > raced
        assert [math.floor(Fraction(step, 10**40) + Fraction(1, 2)) for step in fine] == coarse
        assert sorted(fine, reverse=True) == fine
        # Asked again, the same value is the same.
        assert selection.values.to_steps(Fraction(1, 10**40)) == fine


def test_a_domain_of_all_integers_is_not_visited():
    tally = Tally.of_runs([10**6, 0], [3, 2**63 - 3])
    made = Histogram().prepare(tally, 5, Fraction(1), Sensitivity().with_l1(Fraction(1)))
    selection = made.select(Entropy(random.Random(3)))
    steps = selection.values.to_steps(Fraction(1))
    assert sorted(selection.ranks[:3].tolist()) == [0, 1, 2]
    # The largest of 2^63 Laplace noises is near log 2^62.
    assert all(20 < step < 100 for step in steps[3:])


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_groups_share_epsilon_and_a_user_who_moves_costs_no_more(adjacency):
    source = discreet.grouped({"x": {"a": 9, "b": 3, "c": 1}, "y": {"a": 2, "b": 8, "c": 1}}, each_user="many")
    both = discreet.top_k(
        source, 1, 200, mechanism=Histogram(), sensitivity=Sensitivity(items=2), adjacency=adjacency
    )  # fmt: skip
    assert [one.counts[0].value for one in both.values()] == [9, 8]
    assert both["x"].guarantee.epsilon == 100
    assert (both.guarantee.epsilon, both.guarantee.zcdp) == (200, 2 * Fraction(100**2, 2))
    # Leaving one group for another, either sees at most half of what counts.
    assert both["x"].guarantee.sensitivity.l1 == (2 if adjacency == "add-remove" else 4)
    # Of all groups together some interval misses more often.
    assert "hold for all items of a group at once" in str(both)
    assert discreet.GroupedRelease.from_json(both.to_json()) == both


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize(("each_user", "most"), [("one", 1), ("many", 1), ("many", 2)])
@pytest.mark.parametrize("limit", [Sensitivity(items=1), Sensitivity(items=2), Sensitivity(1, 2, items=1)], ids=str)
def test_all_groups_together_cost_epsilon_over_every_user_or_every_two(limit, each_user, most, adjacency):
    """What a change costs in a group is its weight times the L1 norm of the change (docs/proofs.md, section 8.2)."""
    bound = {} if each_user == "one" else {"max_groups_per_user": most}
    source = discreet.grouped({"x": {"a": 9, "b": 3}, "y": {"a": 2, "b": 8}}, each_user=each_user, **bound)
    request = make_grouped_request(
        source, 1, Fraction(1, 2), mechanism=Histogram(), sensitivity=limit, adjacency=adjacency
    )
    weights = [scale(one.guarantee.epsilon, one.guarantee.sensitivity) for one in request.requests]
    few = [u for u in itertools.product({0, -limit.down, limit.up}, repeat=2) if sum(map(bool, u)) <= limit.items]
    users = [both for both in itertools.product(few, repeat=2) if sum(any(one) for one in both) <= most]
    others = users if adjacency == "swap" else [((0, 0), (0, 0))]
    worst = max(
        sum(
            weight * sum(abs(new - old) for new, old in zip(there, here, strict=True))
            for weight, there, here in zip(weights, comes, goes, strict=True)
        )
        for comes, goes in itertools.product(users, others)
    )
    assert worst <= request.guarantee.epsilon == Fraction(1, 2)
    # Somebody needs all of it; but two who touch all of two items in all of two groups have nowhere else to go.
    assert (worst == Fraction(1, 2)) == ((limit.items, most, adjacency) != (2, 2, "swap"))


def test_groups_of_different_sizes_have_noise_of_their_own():
    source = discreet.grouped({"x": {"a": 9}, "y": {"a": 2, "b": 8, "c": 1}}, each_user="one")
    both = discreet.top_k(source, 1, 100, mechanism=Histogram(), sensitivity=Sensitivity(items=2))
    assert [one.guarantee.sensitivity.l1 for one in both.values()] == [1, 2]
    assert both.guarantee.sensitivity.l1 == 2


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (
            lambda: release(sensitivity=None),
            "mechanism must not be Histogram() unless it is known how many items one user touches at most, because",
        ),
        (lambda: release(counts=1), "counts must be left out with Histogram(), whose releases have values already"),
        (lambda: release(split="auto"), "split must be left out with Histogram(), whose releases have values already"),
        (lambda: Sensitivity(items=0), "sensitivity items must be a whole number from 1 to 2^63, not 0"),
        (lambda: Sensitivity(items=2**63 + 1), "sensitivity items must be a whole number from 1 to 2^63, not 9223"),
        (
            lambda: Histogram().prepare(Tally.of_runs([1, 0], [1, 1]), 1, Fraction(1), Sensitivity(items=1)),
            "sensitivity must say how far all scores together can move",
        ),
    ],
)
def test_what_is_refused(make, complaint):
    with pytest.raises(InvalidValueError) as raised:
        make()
    assert str(raised.value).startswith(complaint)


def test_it_is_refused_for_items_that_are_to_be_found():
    rows = {"user": ["u1", "u2"], "item": ["a", "b"]}
    source = discreet.events(
        pandas.DataFrame(rows), user="user", item="item",
        domain=discreet.discovered(delta="1e-8", max_items_per_user=1),
    )  # fmt: skip
    with pytest.raises(InvalidValueError, match=r"^mechanism must not be Histogram\(\) for items that are to be found"):
        discreet.top_k(source, 1, 1, mechanism=Histogram())


def test_events_of_few_items_per_user():
    rows = [(f"u{i}", item) for i in range(60) for item in ("a", "b", "c")[: 1 + (i < 40) + (i < 20)]]
    frame = pandas.DataFrame(rows, columns=["user", "item"])
    bounded = {"user": "user", "item": "item", "domain": ["a", "b", "c", "d"], "max_items_per_user": 3}
    found = discreet.top_k(discreet.events(frame, **bounded), 3, 1000, mechanism=Histogram())
    assert [(count.item, count.value) for count in found.counts] == [("a", 60), ("b", 40), ("c", 20)]
    assert found.guarantee.sensitivity.l1 == 3
    with pytest.raises(InvalidValueError, match="how many items one user touches"):
        discreet.top_k(discreet.events(frame, **bounded | {"max_items_per_user": None}), 3, 1, mechanism=Histogram())


def test_a_release_says_what_its_values_are_and_survives_a_file():
    found = release()
    assert "each by itself is likely too high; the intervals allow for that and hold for all items at once" in str(
        found
    )
    assert "at once" in found._repr_html_()
    assert discreet.Release.from_json(found.to_json()) == found
    assert found.to_dict()["guarantee"]["sensitivity"] == {"down": "0", "up": "1", "items": 1, "l1": "1"}
    assert "likely too high" not in str(discreet.top_k(SCORES, 2, 1, counts=1))


@pytest.mark.parametrize(
    "change",
    [
        lambda promised: promised["sensitivity"].update(l1="0"),
        lambda promised: promised["sensitivity"].update(l1="-1"),
        lambda promised: promised["sensitivity"].update(l1="1e3000000"),
        lambda promised: promised["sensitivity"].pop("l1"),
        lambda promised: promised.update(mechanism={"name": "one-shot", "noise": "laplace"}),
    ],
)
def test_a_guarantee_without_a_likely_reach_is_no_guarantee(change):
    data = release().to_dict()
    change(data["guarantee"])
    with pytest.raises(InvalidValueError, match=r"^data must be a release"):
        discreet.Release.from_dict(data)


@pytest.mark.parametrize("epsilon", ["1e-400", "1e-1000"])
def test_values_far_beyond_the_scores_are_rounded_in_no_time(epsilon):
    tiny = Fraction(epsilon)
    values = [abs(count.value) * tiny for _ in range(20) for count in release(epsilon=epsilon, k=3).counts]
    # Of noise with the scale 1 / epsilon, half is below zero, which is reported as zero.
    assert all(value < 60 for value in values)
    assert any(value > 1 for value in values)


def test_winners_of_one_stream_share_the_bits_that_rounding_reveals():
    """All of 3,000 equal scores race in few streams: each uniform is extended as far as one value needs, and once."""
    bits = Bits(1)
    selection = prepared([0] * 3000, 300, 1).select(Entropy(bits))
    raced = bits.asked
    steps = selection.values.to_steps(Fraction(1, 10**30))
    arrivals = sum(len(times.uniforms) for times in selection.values.winners._race.times.values())
    assert 0 < bits.asked - raced <= 3 * 64 * arrivals
    assert sorted(steps, reverse=True) == steps


def test_the_reach_of_another_release_is_not_taken_over():
    known = release().guarantee.sensitivity
    assert known.l1 == 1
    other = discreet.top_k(SCORES, 2, 1, sensitivity=known)
    assert other.guarantee.sensitivity == ONE


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_a_query_says_how_many_items_its_counts_are_for(adjacency):
    limits = (Sensitivity(), Sensitivity(items=1), Sensitivity(items=2))
    asked = [make_request(SCORES, 2, 1, counts=1, sensitivity=limit, adjacency=adjacency) for limit in limits]
    assert len({query_of(request).fingerprint for request in asked}) == 3


def test_padding_allows_for_the_rounding_of_values():
    scores, limit = np.arange(1000), Sensitivity(items=1)
    with_values = make_request(scores, 500, 1, mechanism=Histogram(), sensitivity=limit)
    with_counts = make_request(scores, 500, 1, counts=1)
    assert with_values.workload == with_counts.workload
    assert with_values.workload != make_request(scores, 500, 1).workload


def test_the_ledger_has_it_with_its_noise(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="a person")
    first = release(ledger=ledger, request_id="one")
    assert release(ledger=ledger, request_id="one") == first
    assert ledger.left == 2
    with pytest.raises(InvalidValueError, match="request_id must be new for a new query"):
        release(ledger=ledger, request_id="one", sensitivity=Sensitivity(items=2))


def test_counts_of_scores_whose_users_touch_few_items_need_less_noise():
    request = make_request(SCORES, 3, 1, counts=1, sensitivity=Sensitivity(items=1))
    assert request.count_mechanism.rate == 1
    assert make_request(SCORES, 3, 1, counts=1).count_mechanism.rate == Fraction(1, 3)


def test_utility_is_computed_and_right():
    scores, k, n = [9, 8, 6, 5, 5, 1, 0], 3, 1000
    found = discreet.utility(scores, k, "0.7", Histogram(), sensitivity=Sensitivity(items=2))
    assert found.confidence is None
    same = discreet.utility(scores, k, Fraction("0.7") * k / 2, discreet.OneShot("laplace"))
    for goal in ("top", "great", "good", "optimal", "recall"):
        assert getattr(found, goal) == pytest.approx(getattr(same, goal), abs=1e-9)
    made, entropy = prepared(scores, k, "0.7", 2), Entropy(random.Random(11))
    drawn = np.mean([np.isin(made.draw(entropy), [0, 1, 2]).mean() for _ in range(n)])
    assert found.recall == pytest.approx(float(drawn), abs=0.04)


def test_the_analysis_takes_it_where_users_touch_few_items():
    scores = [round(2000 / (rank + 5) ** 0.9) for rank in range(20)]
    few = {"sensitivity": Sensitivity(items=1)}
    needed = discreet.epsilon_for(scores, 3, goal="good", probability="0.9", mechanism=Histogram(), **few)
    reached = [discreet.utility(scores, 3, part * needed, Histogram(), **few).good for part in (1, Fraction(99, 100))]
    assert reached[0] >= 0.9 > reached[1]
    table = discreet.compare(scores, 3, goal="good", probability="0.9", **few)
    assert table.best("good").mechanism == Histogram()
    assert Histogram() not in [one.mechanism for one in discreet.compare(scores, 3, goal="good").choices]
    assert discreet.utility(scores, 20, 1, Histogram(), **few).top == 1.0
    expected = discreet.expected(scores, 3, 1, Histogram(), width="0.5", **few)
    assert expected.count_width == 2 * math.floor(math.log(20 / 0.05) + 0.5)


def test_plan_recommends_it_with_a_command_that_works():
    scores = [round(2000 / (rank + 5) ** 0.9) for rank in range(20)]
    plan = discreet.plan(scores, 3, goal="good", probability="0.9", sensitivity=Sensitivity(items=1))
    assert plan.best.mechanism == Histogram()
    assert plan.command.endswith("--mechanism histogram --sensitivity 0,1,1")
    frame = pandas.DataFrame({"user": list(range(300)), "item": ["a"] * 200 + ["b"] * 90 + ["c"] * 10})
    source = discreet.events(frame, user="user", item="item", domain=["a", "b", "c", "d"], max_items_per_user=1)
    plan = discreet.plan(source, 2, goal="recall", probability="0.9")
    assert plan.best.mechanism == Histogram()
    assert plan.command.endswith("--mechanism histogram --max-items-per-user 1")
