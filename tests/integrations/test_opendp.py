"""Top-k as an OpenDP Measurement: its map is true, its law is ours, and it chains with what OpenDP itself makes."""

import itertools
import math
import random
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
import draws
from definitions import probabilities
from discreet.analysis import JointOverSets
from discreet.evidence import definition as by_definition
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.integrations.opendp import make_top_k, then_top_k
from discreet.sources.arrays.array import array_source

MECHANISMS = [
    discreet.Canonical(),
    discreet.Canonical(gamma=1),
    discreet.Canonical(ceil=True),
    discreet.OneShot("gumbel"),
    discreet.OneShot("exponential"),
    discreet.Peeling(),
    discreet.Joint(),
]
CERTAIN = 10**30
"""An epsilon by which the best differs from all else, however small the difference, with a chance next to 1."""


@pytest.fixture(autouse=True, scope="module")
def features():
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("honest-but-curious")


def space(kind=int, size=3, monotonic=False):
    atoms = dp.atom_domain(T=kind, nan=False) if kind in (float, "f32", "f64") else dp.atom_domain(T=kind)
    return dp.vector_domain(atoms, size=size), dp.linf_distance(T=kind, monotonic=monotonic)


# The privacy map


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("mechanism", [None, *MECHANISMS], ids=str)
def test_the_map_agrees_with_our_guarantee(mechanism, monotonic):
    sensitivity = discreet.Sensitivity(0 if monotonic else 1, 1)
    release = discreet.top_k([3, 2, 1], 2, "0.25", mechanism=mechanism, sensitivity=sensitivity)
    for kind in (int, float):
        select = make_top_k(*space(kind, monotonic=monotonic), k=2, epsilon="0.25", mechanism=mechanism)
        assert isinstance(select, dp.Measurement)
        assert str(select.output_measure) == "MaxDivergence"
        assert [select.map(kind(d_in)) for d_in in (0, 1, 2, 1000)] == [0, 0.25, 0.5, 250]
        assert Fraction(select.map(kind(1))) == release.guarantee.epsilon
        assert select.check(kind(2), 0.5)
        assert not select.check(kind(3), 0.5)


@pytest.mark.parametrize("kind", [int, float])
def test_noise_on_all_scores_goes_by_their_total(kind):
    domain, largest = space(kind)
    total = dp.l1_distance(T=kind)
    select = make_top_k(domain, total, k=2, epsilon="0.25", mechanism=discreet.Histogram())
    assert [select.map(kind(d_in)) for d_in in (0, 1, 2, 1000)] == [0, 0.25, 0.5, 250]
    assert make_top_k(domain, total, k=3, epsilon=100, mechanism=discreet.Histogram()).map(kind(1)) == 100
    scores = [kind(score) for score in (3, 900, 70)]
    assert make_top_k(domain, total, k=3, epsilon=100, mechanism=discreet.Histogram())(scores) == [1, 2, 0]
    for mechanism, metric, words in (
        (discreet.Histogram(), largest, "l1_distance"),
        (discreet.Canonical(), total, "linf_distance"),
    ):
        with pytest.raises(discreet.Error, match=f"input_metric must be {words}"):
            make_top_k(domain, metric, k=2, epsilon=1, mechanism=mechanism)


@given(
    st.fractions(min_value="1/1000", max_value=10**6),
    st.floats(min_value=0, allow_nan=False),
    st.sampled_from([discreet.Canonical(), discreet.Joint(), discreet.Canonical(ceil=True)]),
)
def test_the_map_is_the_least_float_that_is_not_below(epsilon, d_in, mechanism):
    got = make_top_k(*space(float), k=1, epsilon=epsilon, mechanism=mechanism).map(d_in)
    if d_in == math.inf:
        assert got == math.inf
        return
    distance = math.ceil(d_in) if mechanism == discreet.Canonical(ceil=True) else Fraction(d_in)
    assert got >= epsilon * distance
    assert got == 0 or math.nextafter(got, 0) < epsilon * distance


def test_the_map_far_out():
    select = make_top_k(*space(float), k=1, epsilon="1/3")
    assert select.map(math.inf) == math.inf
    assert select.map(5e-324) == 5e-324
    assert make_top_k(*space(float), k=1, epsilon=10).map(1e308) == math.inf
    assert make_top_k(*space("i64"), k=1, epsilon=1).map(2**63 - 1) == 2.0**63


@pytest.mark.parametrize("d_in", [-1.0, math.nan])
def test_no_distance(d_in):
    with pytest.raises(dp.OpenDPException, match=r"d_in must be a distance of zero or more, not (-1\.0|nan)"):
        make_top_k(*space(float), k=1, epsilon=1).map(d_in)


def test_all_positions_cost_nothing():
    select = make_top_k(*space(float), k=3, epsilon=1, mechanism=discreet.Peeling())
    assert [select.map(d_in) for d_in in (0.0, 1.0, 7.5, math.inf)] == [0, 0, 0, 0]
    assert select([1.0, 9.0, 4.0]) == [0, 1, 2]
    assert discreet.top_k([1.0, 9.0, 4.0], 3, 1, mechanism=discreet.Peeling()).guarantee.epsilon == 0


@cache
def exactly(mechanism, k, sensitivity, scores, epsilon=Fraction(1)):
    """The log probability of every outcome, as positions."""
    source = array_source(list(scores))
    prepared = mechanism.prepare(source.tally(), k, epsilon, sensitivity)
    with precision(112):
        found = {}
        for ranks, log in law(prepared).items():
            items = source.items(np.array(ranks))
            found[tuple(items) if mechanism.ordered else tuple(sorted(items))] = float(log)
    return found


def worst(mechanism, k, monotonic, distance):
    """The largest privacy loss over some pairs of vectors at a distance, by their exact laws."""
    sensitivity = discreet.Sensitivity(0 if monotonic else 1, 1)
    moves = [Fraction(0), distance / 2, distance] if monotonic else [-distance, Fraction(0), distance]
    bases = [(0, 0, 0), (1, 0, Fraction(1, 2)), (Fraction(1, 4), 1, 2)]
    largest = 0.0
    for scores in (tuple(map(Fraction, base)) for base in bases):
        here = exactly(mechanism, k, sensitivity, scores)
        for move in itertools.product(moves, repeat=3):
            there = exactly(mechanism, k, sensitivity, tuple(x + y for x, y in zip(scores, move, strict=True)))
            largest = max(largest, *(abs(here[outcome] - there[outcome]) for outcome in here))
    return largest


@pytest.mark.some(4)
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_map_is_true(mechanism, monotonic):
    """At no distance do two laws differ by more than the map says, and some differ by a third of it at least."""
    select = make_top_k(*space(float, monotonic=monotonic), k=1, epsilon=1, mechanism=mechanism)
    for distance in (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2)):
        loss = worst(mechanism, 1, monotonic, distance)
        assert loss <= select.map(float(distance)) * (1 + 1e-12)
        assert loss >= float(distance) / 3


@pytest.mark.parametrize("monotonic", [False, True])
def test_a_rounded_loss_has_no_linear_map(monotonic):
    """A quarter of the distance costs more than a quarter of epsilon."""
    rounding = discreet.Canonical(ceil=True)
    assert worst(rounding, 1, monotonic, Fraction(1, 4)) > 0.38
    assert worst(discreet.Canonical(), 1, monotonic, Fraction(1, 4)) <= 0.25
    select = make_top_k(*space(float, monotonic=monotonic), k=1, epsilon=1, mechanism=rounding)
    assert [select.map(d_in) for d_in in (0.0, 0.25, 1.0, 1.25, 2.0)] == [0, 1, 1, 2, 2]


# The law


@pytest.fixture
def seeded(monkeypatch):
    entropy = Entropy(random.Random(11))
    monkeypatch.setattr("discreet.release.request.as_entropy", lambda rng: entropy)


def laws(mechanism, scores, k, epsilon):
    """What is drawn where all scores move in one direction, and where they do not: twice the noise."""
    for width in (1, 2):
        s = Fraction(epsilon) / width
        yield probabilities(
            by_definition.peeling(scores, k, s, mechanism.noise)
            if isinstance(mechanism, discreet.Peeling)
            else by_definition.canonical(scores, k, s, mechanism.gamma)
        )


@pytest.mark.some(1)
@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(
    ("mechanism", "monotonic", "kind", "negate"),
    [
        (discreet.Canonical(), True, "i32", False),
        (discreet.Canonical(), False, "f64", False),
        (discreet.Canonical(), False, "u64", True),
        (discreet.Peeling("gumbel"), True, "f32", True),
    ],
    ids=str,
)
def test_the_law_is_that_of_top_k(mechanism, monotonic, kind, negate):
    scores, k, epsilon = [1, 4, 0, 2], 2, 2
    right, wrong = laws(mechanism, [-score for score in scores] if negate else scores, k, epsilon)
    right, wrong = (right, wrong) if monotonic else (wrong, right)
    n = draws.enough(right, wrong)
    select = make_top_k(*space(kind, 4, monotonic), k=k, epsilon=epsilon, mechanism=mechanism, negate=negate)
    given = [float(score) for score in scores] if kind.startswith("f") else scores
    seen = Counter(tuple(select(given)) for _ in range(n))
    assert draws.fits(seen, right)
    assert not draws.fits(seen, wrong)


@pytest.mark.usefixtures("seeded")
def test_the_law_of_noise_on_all_scores_is_one_of_a_weight_of_epsilon():
    scores = [1, 2, 0]
    right, wrong = (
        probabilities(by_definition.oneshot(scores, 1, Fraction(weight), "laplace")) for weight in ("1", "3/2")
    )
    n = draws.enough(right, wrong)
    select = make_top_k(space()[0], dp.l1_distance(T=int), k=1, epsilon=1, mechanism=discreet.Histogram())
    seen = Counter(tuple(select(scores)) for _ in range(n))
    assert draws.fits(seen, right)
    assert not draws.fits(seen, wrong)


# Scores and positions


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("i32", -(2**31), -(2**31) + 1),
        ("i64", 2**63 - 2, 2**63 - 1),
        ("i64", -(2**63), -(2**63) + 1),
        ("u32", 2**32 - 2, 2**32 - 1),
        ("u64", 2**64 - 2, 2**64 - 1),
        ("u64", 0, 1),
        ("usize", 7, 8),
        ("f32", float(np.float32(0.1)), float(np.nextafter(np.float32(0.1), np.float32(1)))),
        ("f64", 0.1, math.nextafter(0.1, 1)),
        ("f64", 1.0, math.inf),
        ("f64", -math.inf, -1.0),
        ("f32", -math.inf, math.inf),
    ],
)
def test_scores_are_taken_exactly(kind, low, high):
    select = make_top_k(*space(kind), k=1, epsilon=CERTAIN)
    lowest = make_top_k(*space(kind), k=1, epsilon=CERTAIN, negate=True)
    assert select([low, high, low]) == [1]
    assert lowest([high, high, low]) == [2]


def test_a_float_of_32_bits_is_what_it_denotes():
    """OpenDP rounds what it is given to 32 bits; the two become one score, and each is drawn at times."""
    select = make_top_k(*space("f32", 2), k=1, epsilon=CERTAIN)
    assert {tuple(select([0.1, math.nextafter(0.1, 1)])) for _ in range(100)} == {(0,), (1,)}


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_no_score_raises(kind):
    for mechanism in MECHANISMS:
        select = make_top_k(*space(kind, 5), k=2, epsilon=CERTAIN, mechanism=mechanism)
        assert sorted(select([math.inf, 0.0, -math.inf, 5.0, math.nan])) == [0, 3]
        assert len(select([math.inf] * 5)) == len(select([math.nan] * 5)) == 2
        lowest = make_top_k(*space(kind, 5), k=1, epsilon=CERTAIN, mechanism=mechanism, negate=True)
        assert lowest([math.inf, 0.0, -math.inf, 5.0, math.nan]) == [2]


def test_positions_are_listed_as_opendp_lists_them():
    scores = [10, 40, 0, 30, 20]
    peer = dp.m.make_noisy_top_k(*space(size=5, monotonic=True), dp.max_divergence(), k=3, scale=1e-6)
    assert peer(scores) == [1, 3, 4]
    for mechanism in MECHANISMS:
        select = make_top_k(*space(size=5, monotonic=True), k=3, epsilon=CERTAIN, mechanism=mechanism)
        got = select(scores)
        assert type(got) is type(peer(scores))
        assert {type(position) for position in got} == {int}
        assert got == [1, 3, 4]
        # Best first where there is an order, and otherwise no order at all.
        assert select(scores[::-1]) == ([3, 1, 0] if mechanism.ordered else [0, 1, 3])


def test_a_vector_of_another_length_is_refused_without_its_scores():
    select = make_top_k(*space(float), k=1, epsilon=1)
    with pytest.raises(
        dp.OpenDPException, match="scores must be a vector of 3, the size of input_domain, not 2"
    ) as found:
        select([123.25, 456.5])
    assert "123" not in str(found.value)


# Chains

AGES = [31.0, 36.0, 44.0, 52.0, 39.0, 41.0, 18.0]
CANDIDATES = [20.0, 30.0, 40.0, 50.0, 60.0]


@pytest.mark.parametrize("size", [None, len(AGES)])
def test_after_a_transformation_of_opendp(size):
    people = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), dp.symmetric_distance()
    score = dp.t.make_quantile_score_candidates(*people, candidates=CANDIDATES, alpha=0.5)
    made = make_top_k(score.output_domain, score.output_metric, k=2, epsilon="0.1", negate=True)
    then = then_top_k(k=2, epsilon="0.1", negate=True)
    for chain in (score >> made, score >> then, people >> dp.t.then_quantile_score_candidates(CANDIDATES, 0.5) >> then):
        assert chain.input_metric == dp.symmetric_distance()
        for d_in in (0, 2, 6):
            epsilon = Fraction(1, 10) * score.map(d_in)
            assert math.nextafter(chain.map(d_in), 0) < epsilon <= chain.map(d_in) or epsilon == chain.map(d_in) == 0
    sure = score >> then_top_k(1, CERTAIN, discreet.OneShot(), True)
    assert sure(AGES) == (score >> dp.m.then_noisy_top_k(dp.max_divergence(), 1, 1e-6, True))(AGES) == [2]


def test_after_counts_and_sums():
    """Counts by OpenDP, seen under the L-infinity distance; float sums to which a person adds at most 0.5 each."""
    words = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    counts = dp.t.make_count_by_categories(*words, ["a", "b", "c"], null_category=False)
    seen = dp.t.make_user_transformation(
        counts.output_domain, counts.output_metric, *space("i32"), lambda x: x, lambda d_in: d_in
    )
    select = counts >> seen >> then_top_k(k=2, epsilon=CERTAIN)
    assert select(["c", "a", "b", "c", "a", "z"]) == [0, 2]
    assert (counts >> seen >> then_top_k(k=2, epsilon="0.5")).map(3) == 1.5

    sums = dp.t.make_user_transformation(
        dp.user_domain("rows", lambda _: True),
        dp.symmetric_distance(),
        *space(float),
        lambda rows: [sum(min(max(row[i], 0.0), 0.5) for row in rows) for i in range(3)],
        lambda d_in: 0.5 * d_in,
    )
    chain = sums >> then_top_k(k=1, epsilon=CERTAIN, mechanism=discreet.Joint())
    assert chain([[0.25, 9.0, 0.0], [0.5, 0.0, 0.25]]) == [0]
    assert (sums >> then_top_k(k=1, epsilon=1)).map(3) == 1.5


def test_composed_with_others_and_as_zcdp():
    both = dp.c.make_composition(
        [
            make_top_k(*space(), k=2, epsilon="0.5"),
            make_top_k(*space(), k=1, epsilon="0.25", mechanism=discreet.Joint()),
        ]
    )
    assert both.map(1) == 0.75
    assert [len(release) for release in both([5, 6, 7])] == [2, 1]
    zcdp = dp.c.make_pureDP_to_zCDP(make_top_k(*space(), k=2, epsilon="0.5"))
    # OpenDP's own conversion knows epsilon alone.
    assert zcdp.map(1) == pytest.approx(0.5**2 / 2)


# A shortfall


@pytest.mark.parametrize("kind", ["i32", "i64", "u32", "u64", "usize"])
@pytest.mark.parametrize("negate", [False, True])
def test_the_shortfall_is_that_of_the_released_positions(kind, negate):
    scores = [7, 900, 40, 41, 900, 12]
    sign = -1 if negate else 1
    for mechanism in MECHANISMS:
        select = make_top_k(*space(kind, 6), k=2, epsilon="1/50", mechanism=mechanism, negate=negate, shortfall=CERTAIN)
        positions, shortfall = select(scores)
        left_out = max(sign * score for place, score in enumerate(scores) if place not in positions)
        assert shortfall.value == shortfall.upper == left_out - min(sign * scores[place] for place in positions)
        assert shortfall.epsilon == CERTAIN


@pytest.mark.parametrize("monotonic", [False, True])
def test_the_map_with_a_shortfall(monotonic):
    domain, largest = space(monotonic=monotonic)
    chosen = {"k": 2, "epsilon": "0.25", "shortfall": "0.125"}
    assert [make_top_k(domain, largest, **chosen).map(d_in) for d_in in (0, 1, 2, 10)] == [0, 0.375, 0.75, 3.75]
    within = make_top_k(domain, largest, k=2, epsilon=1, shortfall="auto")
    assert [within.map(1), within([9, 1, 5])[1].epsilon] == [1, Fraction(1, 10)]
    chain = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    counts = dp.t.make_count_by_categories(*chain, ["a", "b", "c"], null_category=False)
    seen = dp.t.make_user_transformation(
        counts.output_domain, counts.output_metric, *space("i32"), lambda x: x, lambda d_in: d_in
    )
    then = counts >> seen >> then_top_k(**chosen)
    assert then.map(3) == 1.125
    assert len(then(["a", "b", "a"])) == 2


def test_the_map_with_a_shortfall_rounds_the_distance_of_the_selection_alone():
    whole, by_halves = space("i64")[0], dp.linf_distance(T=float)
    select = make_top_k(whole, by_halves, k=1, epsilon=1, mechanism=discreet.Canonical(ceil=True), shortfall="1/2")
    assert [select.map(d_in) for d_in in (0.5, 1.0, 1.5)] == [1.25, 1.5, 2.75]
    total = make_top_k(
        space()[0], dp.l1_distance(T=int), k=1, epsilon=1, mechanism=discreet.Histogram(), shortfall="1/2"
    )
    assert [total.map(d_in) for d_in in (1, 2)] == [1.5, 3]


@pytest.mark.some(1)
@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("monotonic", [False, True])
def test_the_noise_of_a_shortfall_costs_what_the_map_says(monotonic):
    """P(n) is proportional to exp(-rate |n|); one score more or less moves the lead by one, or by two both ways."""
    rate = Fraction(1) if monotonic else Fraction(1, 2)
    select = make_top_k(*space(monotonic=monotonic), k=1, epsilon=CERTAIN, shortfall=1)
    right, wrong = (
        {n: (1 - math.exp(-r)) / (1 + math.exp(-r)) * math.exp(-r * abs(n)) for n in range(-60, 61)}
        for r in (rate, 2 * rate)
    )
    n = draws.enough(right, wrong)
    seen = Counter(int(select([40, 0, 15])[1].value) + 25 for _ in range(n))
    assert draws.fits(seen, right)
    assert not draws.fits(seen, wrong)


def test_a_shortfall_of_no_position_is_none():
    sure = make_top_k(*space(size=8), k=4, epsilon="1/1000", mechanism=discreet.Core(otherwise=None), shortfall=1)
    released = [sure([5] * 8) for _ in range(20)]
    assert {shortfall is None for positions, shortfall in released if not positions} <= {True}
    assert any(not positions for positions, _ in released)


# What is refused


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shortfall": 0}, "shortfall must be above zero, not 0"),
        ({"shortfall": 1, "k": 3}, "shortfall must be left out where k is the number of items, 3"),
        ({"shortfall": 1, "input_domain": "floats"}, "scores must be of a type of whole numbers for a shortfall"),
        ({"k": 0}, "k must be a whole number from 1 to 3, the number of items, not 0"),
        ({"k": 4}, "k must be a whole number from 1 to 3, the number of items, not 4"),
        ({"k": 1.0}, "k must be a whole number from 1 to 3, the number of items, not 1.0"),
        ({"epsilon": 0}, "epsilon must be above zero, not 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number, not inf"),
        ({"mechanism": "joint"}, "mechanism must be one of .*, not 'joint'"),
        ({"mechanism": JointOverSets()}, "mechanism must be one to draw from"),
        ({"negate": 1}, "negate must be True or False, not 1"),
        ({"input_domain": 3}, "input_domain must be a vector_domain of numbers with a size, not 3"),
        ({"input_domain": "scalar"}, "input_domain must be a vector_domain of numbers with a size, not AtomDomain"),
        ({"input_domain": "unsized"}, r"input_domain must have a size, as in vector_domain\(..., size=3\), not Vec"),
        ({"input_domain": "nan"}, r"input_domain must be of atom_domain\(T=f64, nan=False\), not VectorDomain"),
        ({"input_domain": "words"}, "input_domain must be of i32, i64, u32, u64, usize, f32, f64, not VectorDomain"),
        ({"input_domain": "own"}, "input_domain must be a vector_domain of numbers with a size, not VectorDomain"),
        ({"input_metric": None}, r"input_metric must be linf_distance\(T=..., monotonic=...\), not None"),
        ({"input_metric": "L1"}, r"input_metric must be linf_distance\(T=..., monotonic=...\), not L1Distance"),
    ],
    ids=str,
)
def test_what_is_refused(wrong, message):
    others = {
        "scalar": dp.atom_domain(T=int),
        "unsized": dp.vector_domain(dp.atom_domain(T=int)),
        "nan": dp.vector_domain(dp.atom_domain(T=float), size=3),
        "words": dp.vector_domain(dp.atom_domain(T=str), size=3),
        "own": dp.vector_domain(dp.user_domain("own", lambda _: True), size=3),
        "L1": dp.l1_distance(T=int),
        "floats": space(float)[0],
    }
    domain, metric = space()
    arguments = {"input_domain": domain, "input_metric": metric, "k": 2, "epsilon": 1}
    arguments |= {name: others.get(given, given) for name, given in wrong.items()}
    with pytest.raises(discreet.Error, match=message) as found:
        make_top_k(**arguments)
    assert len(str(found.value).splitlines()) == 1


def test_features_are_for_the_user_to_enable():
    dp.disable_features("honest-but-curious")
    try:
        with pytest.raises(dp.OpenDPException, match='requires "contrib", "honest-but-curious", but not enabled'):
            make_top_k(*space(), k=1, epsilon=1)
    finally:
        dp.enable_features("honest-but-curious")


def test_without_opendp(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    for call in (lambda: make_top_k(None, None, 1, 1), lambda: then_top_k(1, 1)):
        with pytest.raises(ImportError, match=r'OpenDP is not installed: pip install "opendp>=0\.14,<0\.17"') as found:
            call()
        assert isinstance(found.value, discreet.Error)


def test_nothing_is_imported_unless_asked_for():
    code = """
import sys, discreet, discreet.integrations.opendp, discreet.release.guarantee
print([name for name in ("opendp", "dp_accounting") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
