"""Noises from outside: everything runs on what a noise states of itself, or refuses in one sentence."""

import ast
import dataclasses
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb

import discreet
import draws
from definitions import definition
from discreet.analysis import bounds
from discreet.analysis.bounds import one_against
from discreet.cli.options import parse_mechanism
from discreet.evidence import definition as by_definition
from discreet.evidence.law import law, winners
from discreet.evidence.walk import walk
from discreet.exact.ball import precision
from discreet.mechanisms.noise import (
    GUMBEL,
    LOGISTIC,
    NOISES,
    Distribution,
    Noise,
    PairwiseTail,
    Piece,
    _check_analytic,
    check_facts,
    register_noise,
)
from discreet.mechanisms.registry import from_dict, to_dict
from discreet.publish.options import MechanismOptions
from discreet.sources.arrays.array import array_source
from sampling import sample


def half_time(time):
    return time.scale_by(Fraction(1, 2))


# The larger of two logistic noises: -log(e^(E/2) - 1); F = 1/(1 + x)^2, of log density log 2 - w - 3 log(1 + x).
_LARGER = Piece(
    lambda p, q: (q / (p + q)) ** 2,
    lambda p, q: p * (p + 2 * q) / (p + q) ** 2,
    lambda p, q: 2 * q / (p + q) ** 3,
)
LARGER = Noise(
    "larger-logistic",
    lambda time: half_time(time).tail() - half_time(time).value,
    Distribution(_LARGER, _LARGER),
    # 1 - F(w) <= 2 e^-w, and E[e^-Z] = 1, so that p(v) <= 2 e^-v
    PairwiseTail(lambda v: 2 * (-v).exp(), lambda ratio: ratio + arb.const_log2()),
)
# Twice a logistic noise: its F is no series in exp(-w), and nothing but its inverse is stated.
WIDE = Noise("wide-logistic", lambda time: 2 * (time.tail() - time.value), steepness=2.0)


@pytest.fixture
def larger(monkeypatch):
    for table in (by_definition.LOG_PDF, by_definition.LOG_CDF, by_definition.LOG_ABOVE):
        # Put back what is there now, when the test is over.
        monkeypatch.setitem(table, LARGER.name, None)
    monkeypatch.setitem(NOISES, LARGER.name, None)
    del NOISES[LARGER.name]
    register_noise(LARGER)
    by_definition.define_noise(
        LARGER.name,
        lambda v: math.log(2.0) - v - 3.0 * np.logaddexp(0.0, -v),
        lambda v: -2.0 * np.logaddexp(0.0, -v),
        lambda v: np.log1p(-np.exp(np.minimum(-2.0 * np.logaddexp(0.0, -v), -1e-300))),
    )
    return LARGER.name


@pytest.fixture
def wide(monkeypatch):
    monkeypatch.setitem(NOISES, WIDE.name, None)
    del NOISES[WIDE.name]
    register_noise(WIDE)
    return WIDE.name


def mechanisms(noise):
    return [discreet.Canonical(noise=noise), discreet.OneShot(noise), discreet.Peeling(noise)]


@pytest.mark.parametrize("noise", [*NOISES.values(), LARGER, WIDE], ids=lambda noise: noise.name)
def test_the_facts_of_a_noise_agree(noise):
    check_facts(noise)


@pytest.mark.some(2)
@pytest.mark.parametrize("index", range(3))
def test_a_noise_from_outside_is_drawn_as_defined(larger, index):
    mechanism, scores = mechanisms(larger)[index], [0, 4, 0, 3, 1, 0]
    right = definition(mechanism, scores, 2, Fraction(3))
    wrong = definition(mechanism, scores, 2, Fraction(4))
    right, wrong = (draws.by_score(one, scores, mechanism.ordered) for one in (right, wrong))
    counts = sample(mechanism, scores, 2, 3, 1200)
    assert draws.fits(draws.by_score(counts, scores, mechanism.ordered), right)
    assert draws.power(1200, right, wrong) > 0.9


def test_a_noise_from_outside_on_scripted_bits(larger):
    mechanism, scores = discreet.OneShot(larger), [1, 0]
    ready = mechanism.prepare(array_source(scores).tally(), 1, Fraction(1), discreet.Sensitivity())
    decided, undecided = walk(lambda entropy: tuple(ready.draw(entropy).tolist()), 1000)
    assert float(undecided) < 0.3
    for outcome, p in definition(mechanism, scores, 1, 1).items():
        low = float(decided.get(outcome, 0))
        assert low <= p + 1e-9 <= low + float(undecided) + 2e-9


@pytest.mark.parametrize("index", range(3))
def test_the_law_of_a_noise_from_outside_is_its_definition(larger, index):
    mechanism, scores = mechanisms(larger)[index], [3, 2, 2, 0]
    with precision(96):
        found = law(mechanism.prepare(array_source(scores).tally(), 2, Fraction(2), discreet.Sensitivity()))
    defined = by_definition.law(to_dict(mechanism), scores, 2, Fraction(2))
    assert {tuple(ranks) if mechanism.ordered else tuple(sorted(ranks)) for ranks in found} == set(defined)
    for ranks, log in found.items():
        key = ranks if mechanism.ordered else tuple(sorted(ranks))
        assert float(log) == pytest.approx(defined[key], abs=1e-9)


@pytest.mark.some(2)
@pytest.mark.parametrize("index", range(3))
def test_verify_judges_a_noise_from_outside(larger, index):
    mechanism = mechanisms(larger)[index]
    small = [[2, 1, 0], [1, 1, 0]]
    assert discreet.verify(mechanism, k=2, scores=small).holds
    by_definition.define_noise(larger, *(table["logistic"] for table in TABLES))
    (verdict,) = discreet.verify(mechanism, k=2, scores=small).verdicts
    assert verdict.departure is not None


TABLES = by_definition.LOG_PDF, by_definition.LOG_CDF, by_definition.LOG_ABOVE


def test_utility_is_computed_for_one_shot_and_drawn_for_the_others(larger):
    scores, options = [5, 3, 3, 1, 0], {"width": "0.2", "confidence": "0.999"}
    computed = discreet.utility(scores, 2, 4, discreet.OneShot(larger))
    defined = definition(discreet.OneShot(larger), scores, 2, 4)
    top = sum(p for pair, p in defined.items() if set(pair) == {0, 1})
    assert computed.confidence is None
    assert computed.top == pytest.approx(top, abs=1e-7)
    drawn = discreet.utility(scores, 2, 4, discreet.Canonical(noise=larger), **options)
    truth = definition(discreet.Canonical(noise=larger), scores, 2, 4)[0, 1]
    assert drawn.confidence is not None
    assert abs(drawn.top - truth) < 0.2


def test_bounds_take_the_tail_that_a_noise_states(larger):
    log2 = math.log(2.0)
    plain, raised = (bounds.canonical_tail(100, 5, 1, "0.05", gamma="1/2", noise=noise) for noise in ("gumbel", larger))
    assert raised == pytest.approx(plain + 2 * log2, rel=1e-12)
    plain = bounds.peeling_tail(100, 5, 1, "0.05")
    assert bounds.peeling_tail(100, 5, 1, "0.05", noise=larger) == pytest.approx(plain + 5 * log2, rel=1e-12)
    with precision(128):
        for v in map(Fraction, ("1/1000", "1/2", "5", "12")):
            kept, _ = one_against(LARGER, v, arb(6).log())
            won, _ = winners(LARGER, ((Fraction(0), 1), (v, 6)))
            assert abs(kept - won) < 1e-12
    assert 0.5 < bounds.canonical_leap(20, 2, 1, 20, noise=larger) < 1


def test_a_noise_from_outside_has_a_name_everywhere(larger):
    mechanism = parse_mechanism(MechanismOptions(mechanism="one-shot", noise=larger))
    assert mechanism == discreet.OneShot(larger)
    assert from_dict(to_dict(mechanism)) == mechanism
    assert mechanism.zcdp(Fraction(1), 3) == Fraction(1, 2)
    release = discreet.top_k({"a": 9, "b": 5, "c": 1}, 2, 1, mechanism=mechanism)
    assert discreet.Release.from_json(release.to_json()).guarantee.mechanism == mechanism


def test_a_wide_noise_is_that_of_half_the_budget(wide):
    scores = [0, 4, 0, 3, 1, 0]
    for mechanism, narrow in zip(mechanisms(wide), mechanisms("logistic"), strict=True):
        right = draws.by_score(definition(narrow, scores, 2, Fraction(2)), scores, mechanism.ordered)
        counts = sample(mechanism, scores, 2, 4, 500)
        assert draws.fits(draws.by_score(counts, scores, mechanism.ordered), right)


def test_what_a_noise_does_not_state_is_refused(wide):
    scores = [3, 2, 1, 0]
    with pytest.raises(discreet.Error, match=r"^noise must be one whose tail is bounded, not 'wide-logistic'$"):
        bounds.canonical_tail(100, 5, 1, "0.05", noise=wide)
    with pytest.raises(discreet.Error, match=r"^noise must be one whose tail is bounded, not 'wide-logistic'$"):
        bounds.canonical_leap(100, 5, 1, 50, noise=wide)
    with pytest.raises(discreet.Error, match=r"^noise must be one that the definition knows, gumbel, .*, not 'wide"):
        discreet.verify(discreet.Peeling(wide))
    with pytest.raises(discreet.Error, match=r"^noise must be one whose distribution function is known, not 'wide"):
        law(discreet.OneShot(wide).prepare(array_source(scores).tally(), 1, Fraction(1), discreet.Sensitivity()))
    with pytest.raises(discreet.Error, match=r"^mechanism must be one whose utility is computed"):
        discreet.subset_probability(scores, [0, 1], 1, discreet.OneShot(wide))
    assert discreet.utility(scores, 2, 1, discreet.OneShot(wide), width="0.5").confidence is not None


def changed(noise, **facts):
    return dataclasses.replace(noise, name="changed", **facts)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (changed(LOGISTIC, inverse=lambda time: (time.tail() - time.value) / 2), "selections with it are not private"),
        (changed(WIDE, steepness=1.0), "move by at most its steepness, which 1.0 is not"),
        (changed(LOGISTIC, inverse=lambda time: time.value), "have an inverse that falls with the time"),
        (changed(LOGISTIC, max_stable=True), "be Gumbel's to be max-stable"),
        (changed(LOGISTIC, distribution=GUMBEL.distribution), "have a distribution function whose inverse is its inv"),
        (changed(LARGER, pairwise_tail=GUMBEL.pairwise_tail), "have a pairwise tail whose heights are high enough"),
        (
            changed(LARGER, pairwise_tail=dataclasses.replace(LARGER.pairwise_tail, chance=lambda v: (-v).exp() / 3)),
            "have a pairwise tail that is no less",
        ),
        (
            changed(LOGISTIC, distribution=Distribution(LOGISTIC.distribution.upper, None)),
            "have no value below the floor",
        ),
        (dataclasses.replace(LOGISTIC, name="Two words"), "have a name of small letters and hyphens, not 'Two words'"),
        (LOGISTIC, "have a name that no other has, not 'logistic'"),
        ("gumbel", "be a Noise, not 'gumbel'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_facts_that_disagree_are_refused(noise, message):
    before = dict(NOISES)
    with pytest.raises(discreet.Error, match=r"^noise must ") as refused:
        register_noise(noise)
    assert message in str(refused.value)
    assert before == NOISES


def test_a_series_is_checked():
    """Twice a logistic noise has F = 1 / (1 + sqrt(x)), which integrals over x would take for analytic."""
    root = Piece(
        lambda p, q: 1 / (1 + _root(p / q)),
        lambda p, q: _root(p / q) / (1 + _root(p / q)),
        lambda p, q: 1 / (2 * _root(p / q) * (1 + _root(p / q)) ** 2 * q**2),
    )
    with pytest.raises(discreet.Error, match="tails fall as fast as"):
        check_facts(dataclasses.replace(WIDE, distribution=Distribution(root, root)))


def _root(x):
    return np.sqrt(x) if isinstance(x, np.ndarray) else x.sqrt()


@pytest.mark.long
def test_no_other_module_compares_the_name_of_a_noise():
    """But for the definition, which is written a second time and imports nothing."""
    source = Path(discreet.__file__).parent
    for path in source.rglob("*.py"):
        if path.name in ("noise.py", "definition.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                constants = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
                assert not constants & set(NOISES), f"{path.relative_to(source)}:{node.lineno}"


def test_a_root_with_a_cut_is_refused_unless_it_has_no_value_there():
    """F = sqrt(1 + x^2) - x. Over complex balls a plain root is finite across its cut, and its integrals are wrong."""

    def distribution(root):
        below = lambda p, q: root(p * p + q * q) / q - p / q  # noqa: E731
        piece = Piece(below, lambda p, q: 1 - below(p, q), lambda p, q: 1 - p / root(p * p + q * q))
        return Distribution(piece, piece)

    _check_analytic(distribution(lambda value: value.sqrt(analytic=True)))
    with pytest.raises(discreet.Error, match="analytic wherever it has a value"):
        _check_analytic(distribution(lambda value: value.sqrt()))
