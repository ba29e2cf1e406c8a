"""A mechanism of somebody else's is compared by draws, audited, and never released by."""

import random

import numpy as np
import pytest

import discreet

SCORES = [90, 80, 75, 70, 60, 50, 20, 10]


def one_shot(scores, k, epsilon, rng):
    return np.sort(np.argsort(scores + rng.gumbel(scale=k / epsilon, size=len(scores)))[-k:])


def forgetful(scores, k, epsilon, rng):
    return np.sort(np.argsort(scores + rng.gumbel(scale=1 / epsilon, size=len(scores)))[-k:])


MINE = discreet.Sampler("mine", one_shot)
KNOWN = discreet.OneShot(noise="gumbel")


def test_what_is_estimated_is_what_is_computed():
    drawn = discreet.utility(SCORES, 3, "0.2", MINE, width="0.3", confidence="0.9999")
    known = discreet.utility(SCORES, 3, "0.2", KNOWN)
    for goal in ("top", "great", "good", "optimal", "recall"):
        assert abs(getattr(drawn, goal) - getattr(known, goal)) <= drawn.error
    assert drawn.error <= 0.15
    average = discreet.expected(SCORES, 3, "0.2", MINE, width="0.3", confidence="0.9999")
    assert abs(average.recall - known.recall) <= average.recall_off
    # One that spends three times as much is told apart.
    other = discreet.utility(SCORES, 3, "0.2", discreet.Sampler("forgetful", forgetful), width="0.3")
    assert other.top - other.error > known.top


@pytest.mark.slow
def test_it_stands_in_the_table_beside_ours():
    table = discreet.compare(SCORES, 3, epsilon="0.2", mechanisms=[KNOWN, MINE], goal="top")
    known, mine = table.choices
    assert mine.needs == {"top": None}
    assert known.needs["top"] is not None
    assert table.best("top") is known
    low, high = mine.reaches.top - mine.reaches.error, mine.reaches.top + mine.reaches.error
    assert f"{max(0, low):.4f} to {min(1, high):.4f}" in str(table).splitlines()[3]
    assert " to " not in str(table).splitlines()[2]
    with pytest.raises(discreet.Error, match="epsilon must be given to compare"):
        discreet.compare(SCORES, 3, mechanisms=[MINE])


def test_no_position_tells_a_rank():
    first = discreet.Sampler("first", lambda scores, k, epsilon, rng: np.arange(k))
    found = discreet.expected(list(range(100, 0, -1)), 10, 1, first, confidence="0.999999")
    assert abs(found.recall - 0.1) <= found.recall_off < 0.09


@pytest.mark.slow
def test_an_audit_catches_one_that_spends_too_much():
    pair = {"scores": [0] * 12, "neighbour": [1] * 3 + [0] * 9}
    right = discreet.audit(MINE, k=3, draws=20_000, rng=random.Random(7), **pair)
    assert right.holds
    assert str(right).startswith("Sampler('mine') on ")
    assert "definition" not in str(right)
    wrong = discreet.audit(discreet.Sampler("forgetful", forgetful), k=3, draws=20_000, rng=random.Random(7), **pair)
    assert wrong.overspent
    assert "VIOLATION" in str(wrong)
    with pytest.raises(discreet.Error, match="sampler must be left out with"):
        discreet.audit(MINE, k=2, sampler=lambda scores: 1)


def test_a_sampler_of_sets_is_acquitted_where_ranks_change():
    """An item has the same position in both inputs, so that sorted positions tell no rank."""

    def sorted_set(scores, k, epsilon, rng):
        return np.sort(one_shot(scores, k, epsilon, rng))

    mine = discreet.Sampler("sorted", sorted_set)
    for pair in ({"scores": [0] * 6, "neighbour": [0, 0, 0, 1, 1, 1]}, {}):
        assert discreet.audit(mine, k=2, draws=4_000, rng=random.Random(7), **pair).holds


def test_nothing_is_released_by_it():
    with pytest.raises(discreet.Error, match="is only there to be compared with"):
        discreet.top_k(SCORES, 3, 1, mechanism=MINE)
    with pytest.raises(discreet.Error, match="mechanism must be one whose utility is computed"):
        discreet.epsilon_for(SCORES, 3, mechanism=MINE)


@pytest.mark.parametrize(
    "draw",
    [
        lambda scores, k, epsilon, rng: np.zeros(k, int),
        lambda scores, k, epsilon, rng: np.arange(k + 1),
        lambda scores, k, epsilon, rng: np.arange(k) - 1,
        lambda scores, k, epsilon, rng: np.arange(k) + len(scores),
        lambda scores, k, epsilon, rng: np.arange(k) / 2,
    ],
)
def test_what_it_returns_must_be_positions(draw):
    with pytest.raises(discreet.Error, match=r"draw of Sampler\('odd'\) must return 3 different positions from 0 to 7"):
        discreet.utility(SCORES, 3, 1, discreet.Sampler("odd", draw))


def test_bad_use_is_one_sentence():
    with pytest.raises(discreet.Error, match="title must be a name for the mechanism, not 5"):
        discreet.Sampler(5, one_shot)
    with pytest.raises(discreet.Error, match="draw must be a function of scores, k, epsilon and rng, not 'x'"):
        discreet.Sampler("mine", "x")
    with pytest.raises(discreet.Error, match="scores must be of one list of items for a Sampler"):
        discreet.expected(discreet.grouped({"a": SCORES}, each_user="one"), 3, 1, MINE)
