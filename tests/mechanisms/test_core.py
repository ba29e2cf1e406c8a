"""Core: how many items the data support, chosen privately, and what its releases say of themselves."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet
import draws
import planted_faults
import self_test
from discreet import Core, OneShot, Sensitivity
from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.evidence import definition
from discreet.evidence import definition as by_definition
from discreet.evidence.law import law
from discreet.evidence.neighbours import Family, Witness, whole
from discreet.evidence.verify import verify_witness
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.core import choice_share, core_sizes, count_subsets, expect_held, lay_grid
from discreet.mechanisms.registry import from_dict, to_dict
from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source

UNEVEN = Sensitivity(down="1/3", up="3/4")
LONG = [3000] * 30 + list(range(970, 0, -1))
"""Of the best 60, thirty are far above the rest: at an epsilon of 0.1 about so many are supported."""


def prepare(scores, k, epsilon, mechanism=None, sensitivity=None):
    tally = scores if isinstance(scores, Tally) else array_source(np.array(scores)).tally()
    return (mechanism or Core()).prepare(tally, k, Fraction(epsilon), sensitivity or Sensitivity())


def draw_fallback(source, k, epsilon, mechanism, **options):
    """A release that is, or of which a group is, by the fallback; made-up generators make it one."""
    for seed in range(50):
        release = discreet.top_k(source, k, epsilon, mechanism=mechanism, rng=random.Random(seed), **options)
        if "otherwise" in [each.chosen for each in getattr(release, "releases", {0: release}).values()]:
            return release
    raise AssertionError("no draw was by the fallback")


def chances_of(prepared):
    """The probability of each candidate, by balls."""
    with precision(200):
        weights = [weight.exp() for weight in prepared.log_weights()]
        total = sum(weights, arb(0))
        return [float(weight / total) for weight in weights]


def test_the_share_is_the_formula_rounded_down():
    for k in [*range(1, 200), 500, 1000, 12_345, 10**6, 10**9]:
        exactly = min(0.12, 0.1 * (100 / k) ** 0.3)
        assert choice_share(k) == definition.find_share(k)
        assert 0 <= exactly - float(choice_share(k)) < 1.0001e-4
    assert choice_share(2**63) == Fraction(1, 10_000)


def test_cores_are_a_sixth_smaller_each():
    assert core_sizes(1) == [1]
    assert core_sizes(3) == [1, 2, 3]
    sizes = core_sizes(10**6)
    assert len(sizes) == 13
    assert all(1.199 < larger / smaller < 1.201 for smaller, larger in itertools.pairwise(sizes))
    assert 10**6 / sizes[0] < 10


@pytest.mark.parametrize(("size", "d"), [(1, 2), (1, 9), (3, 4), (3, 9), (4, 11), (6, 13)])
def test_boxes_count_every_subset_once(size, d):
    """By listing all subsets; and each class is as good on average as the formula says."""
    k = min(size + 1, d - 1)
    grid = lay_grid(size, k, d, Fraction(3, 5))
    counted, right = Counter(), {}
    for subset in itertools.combinations(range(d), size):
        if subset == tuple(range(size)):
            continue
        h, t = min(set(range(size)) - set(subset)), subset[-1]
        h1, h2, t1, t2 = grid.corners
        (box,) = np.flatnonzero((h1 <= h) & (h <= h2) & (t1 <= t) & (t <= t2)).tolist()
        counted[box] += 1
        right.setdefault((h, t), []).append(sum(rank < k for rank in subset))
    with precision(200):
        exactly = [float(count_subsets(size, grid.corners[:, box])) for box in range(len(grid.h))]
    assert exactly == pytest.approx([counted[box] for box in range(len(grid.h))])
    assert np.exp(grid.log_count) == pytest.approx(exactly, rel=1e-9)
    assert all(expect_held(size, k, *cell) == Fraction(sum(some), len(some)) for cell, some in right.items())
    held = [expect_held(size, k, int(h), int(t)) for h, t in zip(grid.h, grid.t, strict=True)]
    assert grid.is_good.tolist() == [one >= Fraction(3, 5) * size for one in held]


@pytest.mark.parametrize("d", [101, 5000, 2**20 + 100, 2**40 + 100, 2**63])
def test_counts_of_boxes_are_as_exact_as_they_say(d):
    grid = lay_grid(100, 100, d, Fraction(3, 5))
    for box in range(0, len(grid.h), 7):
        with precision(400):
            exactly = count_subsets(100, grid.corners[:, box]).log()
        assert abs(float(exactly) - grid.log_count[box]) <= grid.off[box] < 1e-6


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("sensitivity", [Sensitivity(), UNEVEN], ids=["counts", "uneven"])
def test_odds_move_by_no_more_than_the_candidates_have(adjacency, sensitivity):
    """The claim of the proof, over all neighbours: the log odds of each core, and what it is weighed by."""
    family = Family((whole(3, 2, 2, 1, 0), whole(1, 0, 0, 0, 0)), adjacency, sensitivity)
    limit = sensitivity.under(adjacency)

    def odds(scores):
        prepared = prepare([*map(Fraction, scores)], 3, 2, Core(otherwise=None), limit)
        with precision(150):
            return [float(prepared._odds.exactly(j)) for j in range(3)], float(prepared.epsilon)

    reached = 0.0
    for scores in family.scores:
        here, allowed = odds(scores)
        for other in itertools.islice(family.neighbours(scores), 0, None, 3):
            moved = max(abs(a - b) for a, b in zip(here, odds(other)[0], strict=True))
            assert moved <= allowed + 1e-12
            reached = max(reached, moved / allowed)
    assert reached > 0.5


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("scores", "k", "epsilon"),
    [
        ([5, 3, 3, 1, 0, 0, 0], 3, 1),
        ([7.5e300, 1.0, 0.5, 1e-300, 0.0], 2, 1),
        (LONG, 60, "0.01"),
        (LONG, 60, "0.1"),
        (LONG, 60, 50),
        ([1] * 200, 60, 1),
        (list(range(3000)), 300, "0.001"),
    ],
    ids=["few", "huge", "none", "some", "all", "tied", "slope"],
)
def test_floats_bound_the_weights(scores, k, epsilon):
    prepared = prepare(scores, k, epsilon)
    low, high = prepared.log_bounds
    # An exponential of a number near 10^301 takes a thousand bits.
    with precision(2000 if max(scores) > 1e9 else 200):
        exactly = prepared.log_weights()
        assert all(arb(one) <= weight <= arb(other) for one, weight, other in zip(low, exactly, high, strict=True))
    likely = high > -50
    assert ((high - low)[likely] < 1e-6).all()
    chances, error = prepared.chances()
    if max(scores) < 1e9:
        assert chances == pytest.approx(chances_of(prepared), abs=error + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.1", "1e-6"])
def test_bounds_of_a_million_scores_are_narrow(epsilon):
    scores = np.random.default_rng(1).permutation(10**6).astype(np.float64)
    low, high = prepare(array_source(scores).tally(), 100, epsilon).log_bounds
    assert (high - low)[high > -50].max() < 1e-6


@pytest.mark.parametrize("mechanism", [Core(otherwise=None), Core("0.9", OneShot("gumbel"))], ids=str)
@pytest.mark.parametrize(("k", "epsilon"), [(1, 2), (3, 1), (4, "1/2")])
def test_the_law_is_that_of_the_definition(mechanism, k, epsilon):
    scores = [4, 4, 2, 1, 0, 0]
    prepared = prepare(scores, k, epsilon, mechanism)
    with precision(150):
        exactly = {drawn: float(log.exp()) for drawn, log in law(prepared).items()}
    assert sum(exactly.values()) == pytest.approx(1, abs=1e-12)
    defined = by_definition.law(to_dict(mechanism), scores, k, Fraction(epsilon))
    merged = Counter()
    for (j, *ranks), chance in exactly.items():
        merged["core" if j else "otherwise", *ranks] += chance
    assert merged == pytest.approx({outcome: math.exp(log) for outcome, log in defined.items()}, rel=1e-9)


def test_the_sampler_draws_candidates_by_their_weights():
    prepared = prepare(LONG, 60, "0.1")
    right = dict(enumerate(chances_of(prepared)))
    wrong = dict(enumerate(chances_of(prepare(LONG, 60, "0.11"))))
    entropy = Entropy(random.Random(3))
    n = draws.enough(right, wrong)
    assert draws.fits(Counter(prepared.draw_candidate(entropy) for _ in range(n)), right)


@pytest.mark.parametrize("word", [1, 3])
def test_few_bits_at_a_time_draw_the_same_candidates(word):
    """Nearly every comparison is then decided by balls."""
    prepared = prepare([6, 4, 1, 0, 0], 3, 2, Core(otherwise=None))
    entropy = Entropy(random.Random(word), word)
    counts = Counter(prepared.draw_candidate(entropy) for _ in range(2000))
    assert draws.fits(counts, dict(enumerate(chances_of(prepared))))


def test_releases_follow_the_definition():
    scores, mechanism = [6, 4, 4, 1, 0], Core(otherwise=None)
    defined = by_definition.law(to_dict(mechanism), scores, 3, 2)
    prepared, entropy, counts = prepare(scores, 3, 2, mechanism), Entropy(random.Random(5)), Counter()
    for _ in range(4000):
        drawn = prepared.select(entropy)
        counts[drawn.chosen, *sorted(drawn.draw_ranks().tolist())] += 1
    assert draws.fits(counts, {outcome: math.exp(log) for outcome, log in defined.items()})
    wrong = by_definition.law(to_dict(mechanism), scores, 3, 3)
    assert not draws.fits(counts, {outcome: math.exp(log) for outcome, log in wrong.items()})


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_verify_holds_over_all_neighbours(adjacency):
    report = discreet.verify(Core(otherwise=None), k=2, scores=[[2, 1, 1, 0]], adjacency=adjacency)
    assert report.holds
    assert report.pairs == (30 if adjacency == "add-remove" else 80)


@pytest.mark.slow
def test_verify_holds_with_its_fallback():
    assert discreet.verify(Core(), k=2, scores=[[2, 1, 1, 0]], adjacency="add-remove").holds


FAULTS = {
    "core: no running minimum": Witness(3, Fraction(1), (3, 2, 1, 1, 0, 0), (4, 2, 1, 1, 1, 0), 0.5),
    "core: the choice for nothing": Witness(3, Fraction(1), (3, 2, 1, 1, 0, 0), (4, 2, 1, 1, 1, 0), 0.5),
    "core: boxes by scores": Witness(3, Fraction(1), (3, 2, 1, 1, 0, 0), (4, 2, 1, 1, 1, 0), 0.5),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_caught(name):
    case = next(case for case in self_test.cases() if case.name == name)
    mechanism = Core(otherwise=None)
    assert mechanism in case.rows
    with case.plant():
        found = verify_witness(mechanism, FAULTS[name]).failures
    assert "definition" in {failure.check for failure in found}
    assert not verify_witness(mechanism, FAULTS[name]).failures


def test_what_the_choice_costs_is_more_than_epsilon_where_it_is_not_taken_off():
    mechanism = Core("0.9", OneShot("gumbel"))
    witness = Witness(1, Fraction(4), (11, 0), (12, 0), 0.9)
    assert verify_witness(mechanism, witness).worst < 1
    with planted_faults.choice_for_nothing():
        assert verify_witness(mechanism, witness).worst > 1


def test_a_release_says_how_many_the_data_support():
    release = discreet.top_k(LONG, 60, "0.1", mechanism=Core(otherwise=None), rng=random.Random(1))
    assert (release.chosen, release.asked, release.order) == ("core", 60, None)
    assert 20 < release.k < 60
    text = str(release)
    assert f"Top {release.k} of 1,000 items" in text
    assert f"{release.k} of the 60 asked for: the data do not support more at this epsilon" in text
    assert discreet.Release.from_json(release.to_json()) == release
    assert "DOUBTFUL" not in text
    few = str(discreet.top_k(LONG, 20, 1, mechanism=Core()))
    assert "DOUBTFUL: to choose how many items to release costs more than it gains for k below 50" in few


def test_a_release_of_all_that_was_asked_for_says_nothing():
    release = discreet.top_k(list(range(1000)), 60, 1000, mechanism=Core())
    assert (release.k, release.chosen, release.asked) == (60, "core", 60)
    assert len(str(release).splitlines()) == 64
    assert "support" not in str(release)
    assert "DOUBTFUL: to choose" not in str(release)


@pytest.mark.parametrize("otherwise", [OneShot(), None], ids=str)
def test_where_the_data_support_nothing_the_fallback_is_released(otherwise):
    release = draw_fallback([1] * 5000, 60, "0.001", Core(otherwise=otherwise))
    assert release.k == (60 if otherwise else 0)
    what = "60 items are released all the same" if otherwise else "nothing is released"
    assert f"none of the 60 asked for is supported by the data at this epsilon: {what}" in str(release)
    assert discreet.Release.from_json(release.to_json()) == release


def test_a_file_that_contradicts_itself_is_refused():
    data = discreet.top_k(LONG, 60, 1, mechanism=Core()).to_dict()
    plain = discreet.top_k(LONG, 60, 1).to_dict()
    for wrong in (data | {"chosen": "x"}, {**data, "asked": None}, plain | {"chosen": "core", "asked": 60}):
        with pytest.raises(InvalidValueError, match=r"^data must be a release"):
            discreet.Release.from_dict(wrong)


def test_all_items_need_no_choice():
    release = discreet.top_k([3, 2, 1], 3, 1, mechanism=Core())
    assert (release.items, release.chosen) == ([0, 1, 2], None)
    assert release.guarantee.epsilon == 0
    assert discreet.Release.from_json(release.to_json()) == release


def test_counts_are_for_the_items_that_are_released():
    release = discreet.top_k(LONG, 60, "0.1", mechanism=Core(otherwise=None), counts=10**6, rng=random.Random(1))
    assert len(release.counts) == release.k < 60
    assert {count.item: count.value for count in release.counts} == {item: LONG[item] for item in release.items}
    # The noise is for k items, whatever is released.
    assert release.guarantee.zcdp == Core(otherwise=None).zcdp(Fraction(1, 10), 60) + Fraction(10**12, 2)
    nothing = draw_fallback([1] * 5000, 60, "0.001", Core(otherwise=None), counts=1)
    assert nothing.counts == []


def test_groups_have_lists_of_their_own_lengths():
    groups = {"many": dict(enumerate(LONG)), "none": dict.fromkeys(range(1000), 7)}
    source = discreet.grouped(groups, each_user="one")
    release = draw_fallback(source, 60, "0.1", Core(otherwise=None))
    assert (release.k, release["none"].k, release["none"].chosen) == (60, 0, "otherwise")
    assert (release["many"].chosen, release["many"].k) == ("core", 29)
    assert "in 2 of 2 groups the data do not support all 60 at this epsilon" in str(release)
    assert str(release).startswith("Up to 60 of ")
    whole = discreet.top_k(discreet.grouped({"a": [90, 2, 1]}, each_user="one"), 1, 100, mechanism=Core(otherwise=None))
    assert str(whole).startswith("Top 1 of 3 items")
    assert discreet.GroupedRelease.from_json(release.to_json()) == release


def test_events_by_group_may_have_no_item_at_all():
    pd = pytest.importorskip("pandas")
    rows = [(user, "ab"[user % 2], "xy"[user % 2]) for user in range(20)]
    frame = pd.DataFrame(rows, columns=["user", "item", "place"])
    terms = {"user": "user", "item": "item", "domain": [f"{i}" for i in range(3000)]}
    asked = 60, "0.001", Core(otherwise=None)
    assert draw_fallback(discreet.events(frame, **terms), *asked).items == []
    by_place = discreet.events(frame, **terms, by="place", groups=["x", "y"], each_user="one")
    for each in draw_fallback(by_place, *asked).values():
        assert (each.items == []) == (each.chosen == "otherwise")


def test_items_that_nobody_listed_are_selected_from_those_found():
    pd = pytest.importorskip("pandas")
    rows = [(user, f"item {i}") for i in range(80) for user in range(400 if i < 30 else 100)]
    frame = pd.DataFrame(rows, columns=["user", "item"])
    found = discreet.discovered(delta="1e-6", max_items_per_user=80, epsilon=500)
    source = discreet.events(frame, user="user", item="item", domain=found)
    release = discreet.top_k(source, 60, 501, mechanism=Core(otherwise=None))
    assert (release.d, release.asked) == (None, 60)
    assert release.chosen == "core"
    assert {f"item {i}" for i in range(30)} >= set(release.items) or release.k > 30
    assert discreet.Release.from_json(release.to_json()) == release


def test_a_ledger_gives_the_stored_release_again(tmp_path):
    book = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="readers")
    terms = {"mechanism": Core(otherwise=None), "ledger": book, "purpose": "x", "request_id": "r"}
    first = discreet.top_k(LONG, 60, "0.1", **terms)
    assert discreet.top_k(LONG, 60, "0.1", **terms) == first
    assert first.asked == 60
    with pytest.raises(discreet.Error):
        discreet.top_k(LONG, 60, "0.1", **terms | {"mechanism": Core()})


def test_a_domain_of_two_to_the_63_items_is_drawn_from():
    tally = Tally.of_runs([10**6, 500, 0], [40, 1000, 2**63 - 1040])
    drawn = [prepare(tally, 60, "0.05").select(Entropy(random.Random(seed))) for seed in range(9)]
    assert {len(one.draw_ranks()) for one in drawn} <= set(core_sizes(60))
    assert prepare(tally, 60, 10).select(Entropy(random.Random(1))).draw_ranks().max() < 1040


def test_the_values_of_the_mechanism():
    assert from_dict(to_dict(Core("0.7", OneShot("laplace")))) == Core("0.7", OneShot("laplace"))
    assert from_dict(to_dict(Core(otherwise=None))) == Core(otherwise=None)
    epsilon, share = Fraction(1, 2), choice_share(100)
    rest = (1 - share) * epsilon
    assert Core().zcdp(epsilon, 100) == (share * epsilon) ** 2 / 8 + rest**2 / 2
    assert Core(otherwise=None).zcdp(epsilon, 100) == (share * epsilon) ** 2 / 8 + rest**2 / 8
    for wrong, error in (
        (lambda: Core(0), r"^precision must be above 0 and at most 1, not 0$"),
        (lambda: Core("1.5"), r"^precision must be above 0 and at most 1, not '1.5'$"),
        (lambda: Core(otherwise=discreet.Canonical()), r"^otherwise must be a OneShot\(\) or None, not "),
    ):
        with pytest.raises((InvalidValueError, InvalidTypeError), match=error):
            wrong()


@pytest.mark.parametrize(("k", "d", "doubt"), [(49, 10**6, "below 50"), (50, 499, "10th"), (50, 500, None)])
def test_doubts(k, d, doubt):
    said = Core().doubt(k, d)
    assert said is None if doubt is None else doubt in said


@pytest.mark.parametrize("mechanism", [Core(), Core(otherwise=None), Core("0.9", OneShot("gumbel"))], ids=str)
@pytest.mark.parametrize("share", [None, "0.6"])
def test_recall_is_that_of_the_law(mechanism, share):
    scores, k = [9, 7, 7, 4, 1, 0], 2 if mechanism.needs_integrals else 3
    with precision(150):
        exactly = {drawn: float(log.exp()) for drawn, log in law(prepare(scores, k, 1, mechanism)).items()}
    right = sum(score >= sorted(scores)[-k] for score in scores)
    hits = {drawn: sum(rank < right for rank in drawn[1:]) for drawn in exactly}
    worth = {drawn: hit / k if share is None else hit >= math.ceil(Fraction(share) * k) for drawn, hit in hits.items()}
    found = discreet.utility(scores, k, 1, mechanism, share=share)
    assert found.recall == pytest.approx(sum(exactly[drawn] * worth[drawn] for drawn in exactly), abs=1e-7)
    assert found.error < 1e-7
    assert math.isnan(found.top)
    assert discreet.utility(scores, 6, 1, mechanism).recall == 1.0


def test_recall_of_a_long_list_is_that_of_draws():
    prepared, entropy = prepare(LONG, 60, "0.1"), Entropy(random.Random(4))
    hits = [int((prepared.draw(entropy) < 60).sum()) / 60 for _ in range(400)]
    found = discreet.utility(LONG, 60, "0.1", Core())
    assert np.mean(hits) == pytest.approx(found.recall, abs=4 * np.std(hits) / 20)


def test_it_is_compared_by_recall_alone():
    scores = [300] * 5 + list(range(60, 0, -1))
    refused = r"^goal must be recall for Core\(.*\), whose list may have fewer than k items, not "
    for ask in (
        lambda: discreet.epsilon_for(scores, 10, goal="top", mechanism=Core()),
        lambda: discreet.compare(scores, 10, goal="good", mechanisms=[Core()]),
        lambda: discreet.compare(scores, 10, mechanisms=[Core()]),
    ):
        with pytest.raises(InvalidValueError, match=refused):
            ask()
    for ask in (
        lambda: discreet.expected(scores, 10, 1, Core()),
        lambda: discreet.subset_probability(scores, [1, 2], 1, Core()),
    ):
        with pytest.raises(InvalidValueError, match=r"^mechanism must be one that always releases k items, not Core"):
            ask()
    needed = discreet.epsilon_for(scores, 10, goal="recall", probability="0.6", mechanism=Core())
    assert discreet.utility(scores, 10, needed, Core()).recall >= 0.6 - 1e-6
    names = [choice.mechanism for choice in discreet.compare(scores, 10, goal="recall", probability="0.6").choices]
    assert Core() in names
    assert Core() not in [choice.mechanism for choice in discreet.compare(scores, 10, goal="good").choices]


def test_a_plan_may_recommend_it():
    scores = [1000] * 30 + [1] * 2000
    plan = discreet.plan(scores, 60, goal="recall", probability="0.55")
    assert Core() in [choice.mechanism for choice in plan.comparison.choices]
    by_core = [choice for choice in plan.comparison.choices if choice.mechanism == Core()]
    assert by_core[0].needs["recall"] is None or by_core[0].needs["recall"] >= plan.epsilon
    assert Core() not in [choice.mechanism for choice in discreet.plan([9, 5, 3, 1], 2, goal="top").comparison.choices]


def test_opendp_maps_distances_as_it_does_for_others():
    dp = pytest.importorskip("opendp.prelude")
    from discreet.integrations.opendp import make_top_k

    dp.enable_features("contrib", "honest-but-curious")
    domain = dp.vector_domain(dp.atom_domain(T=int), size=1000)
    select = make_top_k(domain, dp.linf_distance(T=int, monotonic=True), k=60, epsilon="0.25", mechanism=Core())
    assert select.map(3) == 0.75
    assert len(select(LONG)) <= 60
