"""Lists by group are charged once and stored whole, under a fingerprint of all that is public."""

import json
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.ledger.charges import query_of
from discreet.release.topk import make_any_request

SCORES = {"DE": {"a": 90, "b": 5, "c": 1}, "FR": {"a": 1, "b": 90, "c": 5}}


@pytest.fixture
def ledger(tmp_path):
    return discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="listeners")


def ask(ledger, scores=SCORES, k=1, epsilon=1, **options):
    source = discreet.grouped(scores, each_user="many")
    return discreet.top_k(source, k, epsilon, ledger=ledger, **options)


def test_all_groups_are_one_charge_and_one_stored_release(ledger):
    release = ask(ledger, request_id="june", purpose="charts")
    (entry,) = ledger.history()
    assert (entry.epsilon, entry.groups, entry.k, entry.d) == (1, 2, 1, 3)
    assert entry.release == release
    assert entry.zcdp == release.guarantee.zcdp
    assert ledger.check() == 3
    assert ledger.left == 2
    # Asked again it costs nothing, in another process too.
    again = ask(discreet.Ledger(ledger.path), request_id="june")
    assert again == release
    assert list(again) == list(release)
    assert ledger.left == 2
    assert json.loads(json.dumps(ledger.export()))["records"][1]["body"]["groups"] == 2


def test_lists_of_one_kind_are_charged_as_before(ledger):
    discreet.top_k(SCORES["DE"], 1, 1, ledger=ledger)
    ask(ledger)
    first, second = ledger.history()
    assert (first.groups, second.groups) == (None, 2)
    assert isinstance(first.release, discreet.Release)
    assert isinstance(second.release, discreet.GroupedRelease)
    assert "groups" not in ledger.export()["records"][1]["body"]


def test_what_does_not_fit_is_not_drawn(ledger):
    with pytest.raises(discreet.BudgetSpentError, match="epsilon 4 does not fit: 3 of 3 is left"):
        ask(ledger, epsilon=4)
    assert ledger.spent == 0


OTHERS = {
    "another k": ({"k": 2}, {}),
    "another epsilon": ({"epsilon": Fraction(1, 2)}, {}),
    "counts": ({"counts": 1}, {}),
    "another mechanism": ({"mechanism": discreet.OneShot()}, {}),
    "one group each": ({}, {"each_user": "one"}),
    "fewer groups each": ({}, {"max_groups_per_user": 1}),
    "other groups": ({}, {"scores": {"DE": SCORES["DE"], "IT": SCORES["FR"]}}),
    "another order of groups": ({}, {"scores": dict(reversed(SCORES.items()))}),
    "other items": ({}, {"scores": {**SCORES, "FR": {"a": 1, "b": 90, "d": 5}}}),
    "more items": ({}, {"scores": {**SCORES, "FR": {"a": 1, "b": 90, "c": 5, "d": 7}}}),
}


def fingerprint(terms, groups):
    given = {"scores": SCORES, "each_user": "many", **groups}
    return query_of(make_any_request(discreet.grouped(**given), **{"k": 1, "epsilon": 1, **terms})).fingerprint


@pytest.mark.parametrize("name", OTHERS)
def test_every_public_parameter_is_in_the_fingerprint(name):
    assert fingerprint(*OTHERS[name]) != fingerprint({}, {})


def test_no_score_is_in_the_fingerprint():
    other = {group: dict.fromkeys(reversed(scores), 7) for group, scores in SCORES.items()}
    assert fingerprint({}, {"scores": other}) == fingerprint({}, {})


def test_the_labels_of_many_groups_are_read_up_to_a_number(monkeypatch):
    from discreet.ledger import charges

    arrays, names = {group: np.arange(3) for group in range(9)}, ["a", "b", "c"]
    monkeypatch.setattr(charges, "MOST_LABELS", 3)
    # One list for all is read once.
    shared = [fingerprint({}, {"scores": arrays, "labels": labels}) for labels in (names, ["a", "b", "d"])]
    assert shared[0] != shared[1]
    apart = [dict.fromkeys(range(9), names), {group: names if group < 8 else ["a", "b", "d"] for group in range(9)}]
    assert fingerprint({}, {"scores": arrays, "labels": apart[0]}) == fingerprint(
        {}, {"scores": arrays, "labels": apart[1]}
    )
