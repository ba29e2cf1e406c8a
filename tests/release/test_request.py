"""A request is made and checked in one place, and is what sampler, ledger, verifier and analysis take."""

import dataclasses
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.ledger.charges import query_of
from discreet.mechanisms.tally import Selection
from discreet.privacy import whole_number
from discreet.release.request import Randomness, Request, make_request

SCORES = {"dune": 912, "alien": 877, "heat": 410}
SOURCE = Path(discreet.__file__).parent


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"mechanism": discreet.OneShot("laplace"), "sensitivity": discreet.Sensitivity(1, 2), "adjacency": "swap"},
        {"counts": "1/3"},
        {"split": "auto"},
    ],
    ids=str,
)
@pytest.mark.parametrize("k", [1, 3])
def test_a_request_promises_what_its_release_does(terms, k):
    request = make_request(SCORES, k, "1/2", **terms)
    release = discreet.top_k(SCORES, k, "1/2", **terms)
    assert request.guarantee == release.guarantee
    assert (request.k, request.d, request.takes_all_items) == (k, 3, k == 3)
    assert (request.count_mechanism is not None) == (release.counts is not None)


def test_a_request_shows_no_score_and_does_not_change():
    request = make_request(SCORES, 1, 1)
    assert "912" not in repr(request)
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.k = 2


def test_the_mechanism_is_prepared_with_what_the_selection_may_spend():
    spent = []

    class Seen(discreet.Canonical):
        def prepare(self, tally, k, epsilon, sensitivity):
            spent.append(epsilon)
            return super().prepare(tally, k, epsilon, sensitivity)

    request = make_request(SCORES, 1, 1, mechanism=Seen(), split="auto")
    request.draw(Randomness(lambda prepared: Selection(np.array([0])), lambda rate: 0))
    assert spent == [Fraction(1, 2)]


def test_a_draw_is_released_as_it_was_selected():
    request = make_request(SCORES, 2, 1, mechanism=discreet.Peeling())
    release = request.draw(Randomness(lambda prepared: Selection(np.array([2, 0]))))
    assert (release.items, release.order, release.counts) == (["dune", "heat"], ["heat", "dune"], None)


def test_the_query_of_a_ledger_is_that_of_the_request():
    request = make_request(SCORES, 2, 1)
    query = query_of(request, "films")
    assert (query.k, query.d, query.guarantee, query.dataset) == (2, 3, request.guarantee, "films")
    assert query.fingerprint != query_of(make_request(SCORES, 1, 1), "films").fingerprint
    # The data are no part of a question about them.
    assert query.fingerprint == query_of(make_request(dict.fromkeys(SCORES, 0), 2, 1), "films").fingerprint


def test_what_is_wrong_is_told_before_a_score_is_read():
    class Unread(type(make_request(SCORES, 1, 1).source)):
        def tally(self):
            raise AssertionError

    source = Unread(np.array([3, 2, 1]))
    assert isinstance(make_request(source, 1, 1), Request)
    with pytest.raises(discreet.Error, match="k must be a whole number from 1 to 3, the number of items, not 4"):
        make_request(source, 4, 1)


@pytest.mark.parametrize("given", [True, np.True_, 2.0, "2", None])
def test_only_whole_numbers_are_whole_numbers(given):
    with pytest.raises(TypeError, match=r"^draws must be a whole number from 1 to ten, not "):
        whole_number(given, "draws", 1, 10, "ten")
    for fine in (2, np.int8(2), np.uint64(2)):
        assert type(whole_number(fine, "draws", 1, 10, "ten")) is int


def test_whole_numbers_have_ends():
    assert whole_number(10**30, "draws", 1) == 10**30
    for given in (0, 11):
        with pytest.raises(ValueError, match=rf"^draws must be a whole number from 1 to 10, not {given}$"):
            whole_number(given, "draws", 1, 10)


def test_a_release_is_data_without_sources():
    """Who reads a release loads nothing that reads scores."""
    bare = "import sys, types; package = types.ModuleType('discreet'); package.__path__ = [sys.argv[1]]; "
    script = f"{bare}sys.modules['discreet'] = package; import discreet.release.release; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script, str(SOURCE)], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "discreet.release.release" in loaded
    assert not [
        name
        for name in loaded
        if name.startswith(("discreet.sources", "discreet.release.request", "discreet.release.topk"))
    ]


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, lambda number: Fraction(str(number))])
def test_a_float_among_the_privacy_parameters_is_its_shortest_decimal(kind):
    release = discreet.top_k(SCORES, 1, kind(0.1), counts=kind(0.3), shortfall=kind(0.7))
    guarantee = release.guarantee
    parts = guarantee.selection_epsilon, guarantee.counts_epsilon, guarantee.shortfall_epsilon
    assert parts == (Fraction(1, 10), Fraction(3, 10), Fraction(7, 10))
    assert discreet.discovered(delta=kind(1e-5), max_items_per_user=1).delta == Fraction(1, 10**5)


def test_a_float_among_scores_and_their_bounds_is_its_binary_value():
    assert discreet.Sensitivity(0, 0.1).up == Fraction(0.1)
    assert discreet.sketch([0.1, 0.2], 1, grid=0.1, sensitivity=discreet.Sensitivity(0, 1)).grid == Fraction(0.1)


@pytest.mark.parametrize("given", [float("nan"), float("inf"), np.float32("nan"), -0.0, True])
def test_what_is_no_positive_number_is_refused_as_before(given):
    with pytest.raises(discreet.Error, match="epsilon must be"):
        discreet.top_k(SCORES, 1, given)
