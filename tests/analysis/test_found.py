"""What is planned from a sketch of items that nobody listed: its law by enumeration, its bound, and its words."""

import dataclasses
import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import discreet
import draws
from discreet.analysis.found import AmongFound
from discreet.analysis.search import Scores
from discreet.evidence.law import set_law
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity
from discreet.release import sketch
from discreet.sources.scores import as_source
from effort import examples

EPSILON = Fraction(2)
UNIT = Sensitivity()


def make_curve(scores, terms, sensitivity=UNIT, adjacency="add-remove"):
    """A sketch with these scores at the first ranks, as if it had no noise."""
    made = discreet.sketch(
        list(scores), 1, range(1, len(scores) + 1), sensitivity=sensitivity, adjacency=adjacency, rng=random.Random(0)
    )
    return dataclasses.replace(made, noisy=tuple(scores), domain_size=None, terms=terms)


def make_terms(most=1, method="laplace", **options):
    with pytest.warns(UserWarning, match="delta is"):
        return discreet.discovered("1e-3", most, method=method, **options)


def list_chances(curve, k, epsilon):
    """The probability that each item of the curve is found, if each person has as many items as count."""
    found = curve.terms.plan(k, epsilon, adjacency=curve.adjacency)
    tally = curve.tally()
    scores = [tally.exact(rank) for rank in range(tally.d)]
    weight = 1 if curve.terms.method == "laplace" else math.isqrt(1024**2 // curve.terms.max_items_per_user)
    people = [max(0, math.ceil(score / curve.sensitivity.up)) for score in scores]
    return found, scores, [float(found.keep_probability(n * weight).mid()) for n in people]


def define_law(curve, k, epsilon, mechanism):
    """The probability of each list of ranks, over all sets of found items; short lists have fewer ranks."""
    found, scores, chances = list_chances(curve, k, epsilon)
    law = Counter()
    for kept in itertools.product((False, True), repeat=len(scores)):
        mass = math.prod(p if is_kept else 1 - p for p, is_kept in zip(chances, kept, strict=True))
        ranks = [rank for rank, is_kept in enumerate(kept) if is_kept]
        if mass == 0.0:
            continue
        if len(ranks) <= k:
            law[tuple(ranks)] += mass
            continue
        # Equal scores are one run; each set of places in it is one outcome.
        values, counts = zip(
            *((value, len(list(same))) for value, same in itertools.groupby(scores[i] for i in ranks)), strict=True
        )
        sensitivity = curve.sensitivity.under(curve.adjacency)
        prepared = mechanism.prepare(Tally.of_runs(values, counts), k, epsilon - found.epsilon, sensitivity)
        with precision(400):
            laws = set_law(prepared)
        for places, log_probability in laws.items():
            law[tuple(ranks[i] for i in places)] += mass * float(log_probability.exp().mid())
    return law


@pytest.fixture(autouse=True)
def few_others(monkeypatch):
    """So that every set of found items can be listed."""
    monkeypatch.setattr(sketch, "OTHERS", 3)


SCORES = (7, 6, 6, 4, 2)
CASES = [
    (discreet.Canonical(), "gaussian", (1, 2), "swap"),
    (discreet.Canonical(), "laplace", (0, 1), "add-remove"),
    (discreet.OneShot("gumbel"), "gaussian", (0, 1), "add-remove"),
    (discreet.Peeling(), "laplace", (0, 1), "add-remove"),
]


@pytest.mark.some(2)
@pytest.mark.parametrize(("mechanism", "method", "sides", "adjacency"), CASES, ids=str)
def test_draws_have_the_law_of_all_sets_of_found_items(mechanism, method, sides, adjacency):
    terms, k, epsilon = make_terms(2, method), 2, Fraction(6)
    curve = make_curve(SCORES, terms, Sensitivity(*sides), adjacency)
    law = define_law(curve, k, epsilon, mechanism)
    assert math.isclose(sum(law.values()), 1.0, rel_tol=1e-9)
    among = AmongFound(mechanism, curve)
    prepared = among.prepare(curve.tally(), k, epsilon, curve.sensitivity.under(adjacency))
    entropy = Entropy(random.Random(5))
    d = curve.d

    def fill_up(ranks):
        missing = k - len(ranks)
        return tuple(sorted((*ranks, *range(d - missing, d))))

    filled = Counter()
    for ranks, mass in law.items():
        filled[fill_up(ranks)] += mass
    seen = Counter(tuple(sorted(prepared.draw(entropy).tolist())) for _ in range(1000))
    assert draws.fits(seen, filled)
    # As if all of epsilon were for the selection, and every item were found.
    every = mechanism.prepare(curve.tally(), k, epsilon, curve.sensitivity.under(adjacency))
    wrong = {ranks: float(log_probability.exp().mid()) for ranks, log_probability in set_law(every).items()}
    assert draws.power(1000, dict(filled), {**dict.fromkeys(filled, 0.0), **wrong}) > 0.99


MECHANISMS = [
    discreet.Canonical(),
    discreet.Canonical(gamma=1),
    discreet.OneShot(),
    discreet.Peeling(),
    discreet.Joint(),
]


@pytest.mark.long
@settings(max_examples=examples(40))
@given(
    scores=st.lists(st.integers(0, 9), min_size=3, max_size=4).map(lambda each: sorted(each, reverse=True)),
    k=st.integers(1, 2),
    method=st.sampled_from(["laplace", "gaussian"]),
    mechanism=st.sampled_from(MECHANISMS),
    epsilon=st.sampled_from([Fraction(1), Fraction(4), Fraction(9)]),
    others=st.integers(0, 2),
)
def test_the_probability_of_the_top_k_is_never_more_than_it_is(scores, k, method, mechanism, epsilon, others):
    """The proof in docs/proofs.md, 8.4: the whole top k is found, and all that else there is."""
    assume(scores[k - 1] > scores[k])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "OTHERS", 3)
        curve = make_curve(scores, make_terms(2, method))
        law = define_law(curve, k, epsilon, mechanism)
        true = law[tuple(range(k))]
        (case,) = Scores(as_source(curve)).cases(k, epsilon, mechanism, None, None)
        bound = case.meter(("top",), None)(epsilon).values["top"]
    assert bound <= true * (1 + 1e-6) + 1e-9
    # The bound is not far off where all that counts is the top k.
    _, _, chances = list_chances(curve, k, epsilon)
    assert bound <= math.prod(chances[:k]) + 1e-9
    # Fewer other items than the bound assumes, and lower ones, make it no less true.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "OTHERS", max(1, others))
        fewer = make_curve([*scores[:-1], max(0, scores[-1] - 1)], curve.terms)
        assert bound <= define_law(fewer, k, epsilon, mechanism)[tuple(range(k))] * (1 + 1e-6) + 1e-9


def test_utility_and_expected_are_those_of_the_law():
    curve, k, epsilon = make_curve(SCORES, make_terms(1)), 3, Fraction(6)
    law = define_law(curve, k, epsilon, discreet.Canonical())
    found = discreet.utility(curve, k, epsilon)
    assert found.error <= 0.05 + 1e-9
    assert found.confidence == Fraction(99, 100)
    top = law[0, 1, 2]
    recall = sum(mass * sum(rank < 3 for rank in ranks) for ranks, mass in law.items()) / 3
    # The error holds in 99 of 100; twice of it in all but one in 10^8.
    assert abs(found.top - top) <= 2 * found.error
    assert abs(found.recall - recall) <= 2 * found.error
    averages = discreet.expected(curve, k, epsilon, counts=1)
    assert abs(averages.recall - recall) <= 2 * averages.recall_off

    def find_quantile(level):
        leads = Counter()
        scores = [curve.tally().exact(rank) for rank in range(curve.d)]
        for ranks, mass in law.items():
            if ranks:
                left_out = max(score for rank, score in enumerate(scores) if rank not in ranks)
                leads[max(0, left_out - min(scores[rank] for rank in ranks))] += mass
        sums = np.cumsum([leads[lead] for lead in sorted(leads)])
        return sorted(leads)[int(np.searchsorted(sums, level * sums[-1]))]

    assert find_quantile(0.5) <= averages.shortfall.median <= find_quantile(0.6)
    assert find_quantile(0.95) <= averages.shortfall.most <= find_quantile(0.99)
    assert averages.count_width > 0
    # An item that a short list lacks counts as one of the last rank.
    lost = sum(
        mass * (6 - (2 if len(ranks) < 3 else float(curve.tally().exact(max(ranks))))) for ranks, mass in law.items()
    )
    assert abs(averages.score_error - lost) <= 2 * averages.score_error_off


def test_the_epsilon_that_is_found_is_enough():
    terms = make_terms(1)
    curve = make_curve((300, 200, 150, 20, 10), terms)
    needed = discreet.epsilon_for(curve, 3, goal="top", probability="0.9", mechanism=discreet.Canonical())
    (case,) = Scores(as_source(curve)).cases(3, needed, discreet.Canonical(), None, None)
    read = case.meter(("top",), None)
    assert read(needed).values["top"] >= 0.9 > read(needed * Fraction(99, 100)).values["top"]
    assert define_law(curve, 3, needed, discreet.Canonical())[0, 1, 2] >= 0.9
    # An item that is hardly found takes more epsilon than the selection alone.
    listed = dataclasses.replace(curve, domain_size=8, terms=None)
    assert needed > discreet.epsilon_for(listed, 3, goal="top", probability="0.9", mechanism=discreet.Canonical())


def test_people_of_more_items_need_a_larger_epsilon():
    def ask(most, method, sensitivity=UNIT):
        curve = make_curve((300, 200, 150, 20, 10), make_terms(most, method), sensitivity)
        return discreet.epsilon_for(curve, 3, probability="0.9")

    assert ask(1, "gaussian") < ask(4, "gaussian") < ask(16, "gaussian")
    assert ask(1, "laplace") < ask(4, "laplace")
    # Where a user can add 3 to a score, a score has fewer people.
    assert ask(1, "laplace") < ask(1, "laplace", Sensitivity(0, 3))


def test_results_say_that_a_choice_of_methods_is_not_foreseen():
    curve = make_curve((3000, 2000, 1500, 20, 10), discreet.discovered("1e-8"))
    said = '; planned as "gaussian", which "auto" may not choose'
    assert said in str(discreet.utility(curve, 3, 1))
    assert said in str(discreet.expected(curve, 3, 1))
    plan = discreet.plan(curve, 3, goal="recall", probability="0.9")
    assert said in str(plan)
    assert plan.discovery.method == "gaussian"


def test_a_plan_names_the_partition_selection_and_the_command_of_the_release():
    terms = make_terms(2, "gaussian", epsilon="1/8", spelling="trim")
    curve = make_curve((3000, 2000, 1500, 20, 10), terms)
    plan = discreet.plan(curve, 3, goal="recall", probability="0.9", epsilon=1)
    assert plan.discovery == terms.plan(3, plan.epsilon)
    assert plan.discovery.epsilon == Fraction(1, 8)
    assert plan.shortfall.median <= plan.shortfall.most <= 1500
    assert f"The true shortfall at this epsilon: {plan.shortfall.describe(' people')}." in plan.recommendation
    assert f"The true shortfall of {plan.best} at epsilon = 1: " in str(plan)
    assert plan.discovery.describe_people() in plan.recommendation
    assert "Of it, 0.125 finds the items." in plan.recommendation
    assert plan.command.startswith(
        "discreet select FILE --user USER --item ITEM --discover --delta 0.001 --max-items-per-user 2 "
        "--method gaussian --discovery-epsilon 0.125 --spelling trim -k 3 --epsilon "
    )
    assert "as if each person had 2 items, and 3 more items the score of rank 5" in plan.comparison.origin
    assert "counting only lists for which the whole top k was found" in plan.comparison.origin
    assert "planned as" not in plan.comparison.origin
    # No epsilon leaves anything for the selection up to that of discovery.
    assert plan.epsilon > Fraction(1, 8)
    assert plan.comparison.choices[0].reaches.recall <= 1


def test_what_cannot_be_computed_is_refused():
    curve = make_curve((300, 200, 150, 20, 10), make_terms(1, epsilon=1))
    refusals = [
        (lambda: discreet.utility(curve, 3, 1), "epsilon of discovered must be below 1, the epsilon of the release"),
        (lambda: discreet.expected(curve, 3, "1/2"), "epsilon of discovered must be below 0.5"),
        (lambda: discreet.utility(curve, 5, 2), "k must be below 5, the last rank of the sketch, not 5"),
        (lambda: discreet.plan(curve, 6), "k must be below 5, the last rank of the sketch, not 6"),
        (lambda: discreet.class_probabilities(curve, 3, 2), "scores must be of a public list of items here"),
        (lambda: discreet.subset_probability(curve, [1, 2], 2), "scores must be of a public list of items here"),
        (lambda: discreet.expected(curve, 3, 2, discreet.Core()), "mechanism must be one that always releases k"),
        (lambda: discreet.utility(curve, 3, 2, discreet.Histogram()), "mechanism must not be Histogram"),
    ]
    for ask, complaint in refusals:
        with pytest.raises(discreet.Error) as caught:
            ask()
        assert str(caught.value).startswith(complaint)


def test_a_large_curve_is_drawn_by_runs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "OTHERS", 10**6)
        curve = make_curve([round(10**6 / rank) for rank in range(1, 200)], make_terms(1))
        ranks = AmongFound(discreet.Canonical(), curve).prepare(curve.tally(), 10, EPSILON, UNIT).draw(Entropy())
    assert np.array_equal(np.sort(ranks), np.arange(10))
