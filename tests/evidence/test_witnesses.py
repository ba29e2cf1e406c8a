"""The pairs that come closest to epsilon are what they say, and a scale 5% off fails on them."""

import sys
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
import witness_search
from discreet.evidence import definition, neighbours
from discreet.evidence.neighbours import SHARP, WITNESSES, Witness, best_witness
from discreet.evidence.report import Verification
from discreet.evidence.verify import plan, verify_witness
from discreet.exact.ball import ball
from discreet.mechanisms import canonical, oneshot
from discreet.mechanisms.noise import noise_of
from discreet.mechanisms.registry import all_variants
from witness_search import Candidate, main, search, share_of_epsilon

# A noise is searched after it has been written: until then `verify` says that it has no pair.
MECHANISMS = [mechanism for mechanism in all_variants() if best_witness(mechanism) is not None]
SHARPEST = [mechanism for mechanism in MECHANISMS if best_witness(mechanism).is_sharp]
KEPT = Path(neighbours.__file__).with_name("witnesses.json")
WEAK = Witness(2, Fraction(1), (3, 2, 2, 0), (4, 2, 2, 0), 0.2)


def checks(verdict):
    """What found something."""
    return {failure.check for failure in verdict.failures}


def scaled_by(monkeypatch, mechanism, factor):
    """Plants a scale that is off by a factor where the mechanism reads it."""
    module = sys.modules[type(mechanism).__module__]
    right = module.scale
    monkeypatch.setattr(module, "scale", lambda epsilon, sensitivity: right(epsilon, sensitivity) * Fraction(factor))


def test_every_mechanism_has_one_with_every_noise_that_was_searched():
    assert set(WITNESSES) == {repr(mechanism) for mechanism in MECHANISMS}
    searched = {noise_of(mechanism).name for mechanism in MECHANISMS}
    assert searched >= {"gumbel", "exponential", "laplace", "logistic", "half-logistic"}
    assert [one for one in all_variants() if noise_of(one).name in searched] == MECHANISMS
    # Were there fewer, a wrong scale could pass for the others.
    # What chooses first and then draws does not do its worst in both on one pair.
    assert [one for one in MECHANISMS if not one.may_release_fewer] == SHARPEST
    assert all(best_witness(one).share > 0.86 for one in MECHANISMS)
    assert SHARP * 1.05 > 1
    assert best_witness(discreet.Canonical("2/5")) is None


@pytest.mark.some(4)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_it_is_one_user_away_and_reaches_what_it_says_by_the_definition_and_as_shipped(mechanism):
    witness = best_witness(mechanism)
    user = tuple(after - before for before, after in zip(witness.scores, witness.neighbour, strict=True))
    assert set(user) == {0, 1}
    share = share_of_epsilon(mechanism, Candidate(witness.k, witness.epsilon, witness.scores, user))
    assert witness.share <= share < witness.share + 2e-6
    verdict = verify_witness(mechanism)
    assert verdict.holds, verdict.failures
    assert verdict.worst == pytest.approx(share, abs=1e-9)
    assert verdict.pairs == 1


@pytest.mark.some(4)
@pytest.mark.parametrize("mechanism", SHARPEST, ids=str)
def test_a_scale_five_percent_too_large_fails_by_epsilon_and_by_the_definition(monkeypatch, mechanism):
    scaled_by(monkeypatch, mechanism, "21/20")
    verdict = verify_witness(mechanism)
    assert not verdict.private
    assert checks(verdict) >= {"epsilon", "definition"}


@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.Joint(), discreet.Peeling("laplace")], ids=str)
@pytest.mark.parametrize("factor", ["19/20", "999999/1000000"])
def test_too_much_noise_is_found_by_the_definition_alone(monkeypatch, mechanism, factor):
    scaled_by(monkeypatch, mechanism, factor)
    assert checks(verify_witness(mechanism)) == {"definition"}


def test_a_scale_a_third_too_large_is_more_than_epsilon_where_the_families_reach_too_little(monkeypatch):
    mechanism = discreet.Canonical(gamma="1/2")
    scaled_by(monkeypatch, mechanism, "1.35")
    six = [[1, 1, 1, 1, 1, 0], [3, 2, 2, 1, 1, 0]]
    report = discreet.verify(mechanism, 3, scores=six[:1], adjacency="add-remove")
    # Without the pair that comes closest, every ratio is within epsilon.
    assert report.verdicts[0].witness is None
    assert report.verdicts[0].private
    assert checks(report.verdicts[0]) == {"definition"}
    assert verify_witness(mechanism).worst > 1.29


def test_a_wrong_class_size_departs_from_the_definition_on_one_input(monkeypatch):
    right = canonical.Prepared.log_size
    monkeypatch.setattr(
        canonical.Prepared, "log_size", lambda self, cell: right(self, cell) + ball(Fraction(1, 1000)) * (cell[0] == 1)
    )
    verdict = verify_witness(discreet.Canonical(), WEAK)
    assert checks(verdict) == {"definition"}
    (failure,) = verdict.failures
    assert failure.what.startswith("Canonical(gamma='3/4', noise='gumbel') departs from its definition: items ")
    assert ", by definition 0." in failure.what
    assert "k = 2, add-remove, epsilon = 1" in failure.what


def test_a_missing_k_departs_from_the_definition(monkeypatch):
    def careless(self, tally, k, epsilon, sensitivity):
        return oneshot.Prepared(tally, k, epsilon / (2 * sensitivity.delta), noise_of(self))

    monkeypatch.setattr(discreet.OneShot, "prepare", careless)
    assert checks(verify_witness(discreet.OneShot())) >= {"epsilon", "definition"}


def test_items_that_cannot_be_released_depart_from_the_definition(monkeypatch):
    right = definition.law
    monkeypatch.setattr(definition, "law", lambda *given, **options: dict(list(right(*given, **options).items())[1:]))
    verdict = verify_witness(discreet.Canonical(), WEAK)
    assert verdict.departure.size == float("inf")
    assert "by definition 0, at (" in verdict.failures[0].what


def test_the_plan_has_the_pair_where_nothing_excludes_it():
    def planned(**options):
        given = {"epsilon": 1, "scores": None, "adjacency": None, "deep": False}
        (task,) = plan(discreet.Canonical(), options.pop("k", None), **(given | options))
        return task.witness

    assert planned() == planned(k=5) == planned(adjacency="add-remove") == best_witness(discreet.Canonical())
    assert planned(adjacency="swap") is None
    assert planned(k=2) is None
    assert planned(scores=[[2, 1, 0]]) is None


def test_the_table_marks_rows_that_no_pair_makes_sharp():
    weak, sharp = verify_witness(discreet.Canonical(), WEAK), verify_witness(discreet.OneShot())
    text = str(Verification([weak, sharp]))
    assert "0.200000 *" in text
    assert "* no pair is known that reaches 0.96: a scale 5% off shows by the definition alone" in text
    assert "*" not in str(Verification([sharp]))


def test_the_table_says_where_no_pair_has_been_searched_for():
    searched = discreet.verify(discreet.Canonical("1/3"), 1, scores=[[1, 0]])
    unsearched = discreet.verify(discreet.Canonical("2/5"), 1, scores=[[1, 0]])
    note = "- no pair has been searched for: how close to epsilon inputs can come is not known"
    assert note not in str(searched).splitlines()
    assert note in str(unsearched).splitlines()
    assert unsearched.holds


def test_a_gamma_that_was_not_searched_needs_a_pair():
    with pytest.raises(discreet.Error, match="witness must be given for Canonical"):
        verify_witness(discreet.Canonical("2/5"))
    assert verify_witness(discreet.Canonical("2/5"), WEAK).holds


def test_the_search_finds_a_pair_close_to_epsilon_and_the_same_one_again():
    found = search(discreet.OneShot(), starts=2, patience=40)
    assert found == search(discreet.OneShot(), starts=2, patience=40)
    assert found.share > 0.99
    with pytest.raises(ValueError, match="starts must be at least 1"):
        search(discreet.OneShot(), starts=0, patience=1)


def test_the_search_prints_what_is_kept(monkeypatch, capsys):
    one = discreet.OneShot("half-logistic")
    (kept,) = [line for line in KEPT.read_text().splitlines() if repr(one) in line]
    monkeypatch.setattr(witness_search, "all_variants", lambda: [discreet.OneShot(), one])
    for chosen in ("half-logistic", "1"):
        monkeypatch.setattr(sys, "argv", ["search", chosen])
        main()
        assert capsys.readouterr().out == "{\n" + kept.removesuffix(",") + "\n}\n"
