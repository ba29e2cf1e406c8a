"""The delta of a budget in two parts, fixed when it is made: for releases that have one, and for adding up."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.ledger.account import summarize_budget, zcdp_to_epsilon

EVENTS = pa.table({"who": list(range(90)), "what": ["a"] * 60 + ["b"] * 30})
DELTA = Fraction(1, 10**6)


def create(path, epsilon=3, **terms):
    return discreet.Ledger.create(path / "budget.db", epsilon=epsilon, unit="users", **terms)


def ask(ledger, delta="4e-7", epsilon="1/2", **terms):
    source = discreet.events(EVENTS, user="who", item="what", domain=discreet.discovered(delta, 1))
    return discreet.top_k(source, 1, epsilon, ledger=ledger, **terms)


def test_deltas_add_up_to_what_is_for_releases(tmp_path):
    ledger = create(tmp_path, delta=DELTA, release_delta="8e-7")
    first = ask(ledger, purpose="errors", request_id="one")
    assert ask(ledger, request_id="one") == first
    ask(ledger)
    assert (ledger.composition.delta, ledger.composition.epsilon) == (Fraction(8, 10**7), 1)
    with pytest.raises(discreet.BudgetSpentError, match="delta 1e-09 does not fit: 0 of 8e-07 is left for releases"):
        ask(ledger, delta="1e-9")
    # A release without one goes on, and so does the same request.
    assert discreet.top_k({"a": 3, "b": 1}, 1, 1, ledger=ledger).guarantee.delta == 0
    assert ask(ledger, request_id="one") == first
    entry = ledger.history()[0]
    assert (entry.delta, entry.d, entry.k, entry.release) == (Fraction(4, 10**7), None, 1, first)
    assert ledger.check() == len(ledger.export()["records"])
    assert ledger.budget.release_delta == Fraction(8, 10**7)


def test_the_two_parts_are_not_traded(tmp_path):
    """Many releases cost what zCDP makes of them at the part that is for adding up, and no more of delta than that."""
    ledger = create(tmp_path, epsilon=30, delta=DELTA, release_delta=DELTA / 2)
    for _ in range(3):
        discreet.top_k({"a": 3, "b": 1}, 1, "0.1", ledger=ledger)
    rho = ledger.composition.rho
    assert ledger.composition.by_zcdp(ledger.budget.conversion_delta) == zcdp_to_epsilon(rho, DELTA / 2)
    ask(ledger, delta=DELTA / 4)
    assert ledger.budget.conversion_delta == DELTA / 2
    (tmp_path / "other").mkdir()
    whole = create(tmp_path / "other", delta=DELTA, release_delta=DELTA)
    assert whole.budget.conversion_delta is None
    assert ask(whole, delta=DELTA).guarantee.delta == DELTA


@pytest.mark.parametrize("method", ["auto", "gaussian", "laplace"])
def test_a_ledger_with_zcdp_charges_all_of_delta(tmp_path, method):
    """A release is zCDP but for a part of delta; the conversion of the rho has its own part of the budget's delta."""
    ledger = create(tmp_path, delta=DELTA, release_delta="6e-7")
    terms = discreet.discovered("4e-7", 1, method=method)
    source = discreet.events(EVENTS, user="who", item="what", domain=terms)
    promised = discreet.top_k(source, 1, "1/2", ledger=ledger).guarantee
    entry = ledger.history()[0]
    assert promised.zcdp_delta == promised.delta / (2 if method == "gaussian" else 1)
    assert (entry.zcdp, entry.delta) == (promised.zcdp, promised.delta)
    assert (ledger.composition.rho, ledger.composition.delta) == (promised.zcdp, Fraction(4, 10**7))
    with pytest.raises(discreet.BudgetSpentError, match="delta 4e-07 does not fit: 2e-07 of 6e-07 is left"):
        discreet.top_k(source, 1, "1/2", ledger=ledger)
    assert " beside delta 4e-07, " in summarize_budget(ledger)["by zCDP"]


@pytest.mark.parametrize("terms", [{}, {"delta": DELTA}], ids=["pure", "with a delta"])
def test_a_ledger_without_refuses_before_anything_is_read(tmp_path, terms, monkeypatch):
    ledger = create(tmp_path, **terms)
    source = discreet.events(EVENTS, user="who", item="what", domain=discreet.discovered("1e-9", 1))
    monkeypatch.setattr(type(source), "snapshot", lambda *_: pytest.fail("the events were read"))
    # Not even a description of the question is asked for.
    monkeypatch.setattr(type(source), "description", lambda *_: pytest.fail("the request was made"))
    for request_id in (None, "one"):
        with pytest.raises(discreet.BudgetSpentError, match="the ledger has none for releases, which is fixed when"):
            discreet.top_k(source, 1, 1, ledger=ledger, request_id=request_id)
    assert ledger.history() == []


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"release_delta": "1e-8"}, "release_delta must be left out without delta, of which it is a part"),
        ({"delta": "1e-6", "release_delta": "2e-6"}, "release_delta must be from 0 to delta, 1e-06, not '2e-6'"),
        ({"delta": "1e-6", "release_delta": -1}, "release_delta must be from 0 to delta, 1e-06, not -1"),
    ],
)
def test_bad_parts_are_refused(tmp_path, terms, sentence):
    with pytest.raises(discreet.Error, match=sentence):
        create(tmp_path, **terms)
    assert not (tmp_path / "budget.db").exists()


def test_a_ledger_says_nothing_of_what_it_has_not(tmp_path):
    plain = create(tmp_path, delta=DELTA, release_delta=0)
    assert "release_delta" not in plain.export()["records"][0]["body"]
    assert plain.budget.release_delta == 0


def test_another_question_is_another_fingerprint(tmp_path):
    ledger = create(tmp_path, epsilon=30, delta=DELTA, release_delta=DELTA / 2)
    for terms in (
        ("1e-9", 1), ("2e-9", 1), ("1e-9", 2), ("1e-9", 1, "0.1"), ("1e-9", 1, None, "integer"),
        ("1e-9", 1, None, "string", "trim"),
    ):  # fmt: skip
        source = discreet.events(EVENTS, user="who", item="what", domain=discreet.discovered(*terms))
        discreet.top_k(source, 1, 1, ledger=ledger)
    assert len({entry.fingerprint for entry in ledger.history()}) == 6


def test_scores_that_are_not_finite_are_said_to_be_spent(tmp_path):
    """They are found when the scores are read, which is after the charge."""
    ledger = create(tmp_path)
    with pytest.raises(ValueError, match=r"finite.*; it was charged before, and what it cost stays spent"):
        discreet.top_k(
            np.array([1.0, np.nan, 3.0]), k=1, epsilon=1, sensitivity=discreet.Sensitivity(0, 1), ledger=ledger
        )
    assert [entry.epsilon for entry in ledger.history()] == [1]
