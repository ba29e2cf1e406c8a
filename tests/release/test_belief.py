"""How sure somebody can become: the formula, rounded up and never down, and what it means."""

from fractions import Fraction
from math import factorial

import pytest

from discreet.release.statement import belief_percent, bound_belief

TERMS = [
    (epsilon, delta) for epsilon in ("1/1000", "0.1", "1/2", "1", "3", "10", "15") for delta in ("0", "1e-8", "1e-3")
]


def exponential(x):
    """Rationals below and above e^x, by the series of e^(x/32) and its remainder."""
    part = x / 32
    below = sum((part**n / factorial(n) for n in range(40)), Fraction(0))
    return below**32, (below + 2 * part**40 / factorial(40)) ** 32


@pytest.mark.parametrize(("epsilon", "delta"), TERMS)
def test_the_bound_is_above_the_formula_and_close_to_it(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    low, high = exponential(epsilon)
    assert (
        (low + delta) / (1 + low) <= bound_belief(epsilon, delta) <= (high + delta) / (1 + high) + Fraction(1, 2**100)
    )


@pytest.mark.parametrize(("epsilon", "delta"), TERMS)
def test_the_percentage_is_rounded_up_by_less_than_its_last_place(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    text = belief_percent(epsilon, delta)
    printed, bound = Fraction(text.removesuffix("%")), 100 * bound_belief(epsilon, delta)
    places = len(text.removesuffix("%").partition(".")[2])
    assert bound <= printed < bound + Fraction(1, 10**places)
    assert places >= 1
    assert 50 < printed < 100


def test_one_is_not_seventy_three_but_a_little_more():
    assert belief_percent(Fraction(1)) == "73.2%"
    assert bound_belief(Fraction(1), Fraction(0)) > Fraction(73, 100)


@pytest.mark.parametrize("epsilon", ["19", "64", "1000", "1e300"])
def test_a_large_epsilon_leaves_no_doubt(epsilon):
    assert belief_percent(Fraction(epsilon)) == "100%"


@pytest.mark.parametrize(("odds", "delta"), [(3, "0"), (3, "1/10"), (20, "1/100")])
def test_the_formula_is_the_best_guess_against_the_worst_mechanism(odds, delta):
    """With delta the mechanism tells all; else it answers truly with odds e^epsilon. No mechanism lets guess better."""
    delta, told = Fraction(delta), Fraction(odds, 1 + odds)
    there = [delta, (1 - delta) * told, (1 - delta) * (1 - told), Fraction(0)]
    away = there[::-1]
    best = sum(max(p, q) for p, q in zip(there, away, strict=True)) / 2
    assert best == (odds + delta) / (1 + odds)
    assert all(p <= odds * q + delta for p, q in zip(there, away, strict=True))
