"""The exact law against the definitions, computed on their own by other means."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet
from definitions import definition
from discreet.evidence.law import first_two, law, winners
from discreet.exact.ball import precision
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source

SCORES = [[5, 3, 3, 1], [9, 4, 1, 0]]
CASES = (
    [(discreet.Canonical(gamma, noise), k) for gamma in ("0", "1/3", "1") for noise in NOISES for k in (1, 2, 3)]
    + [(discreet.OneShot(noise), k) for noise in NOISES for k in (1, 2)]
    + [(discreet.Peeling(noise), k) for noise in NOISES for k in (1, 2)]
    + [(discreet.Joint(), k) for k in (1, 2, 3)]
)


@pytest.mark.parametrize(("mechanism", "k"), CASES, ids=str)
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_the_law_is_that_of_the_definition(mechanism, k, scores):
    prepared = mechanism.prepare(array_source(np.array(scores)).tally(), k, Fraction(1), discreet.Sensitivity())
    with precision(96):
        exactly = law(prepared)
        total = sum((log.exp() for log in exactly.values()), arb(0))
    assert total.contains(1)
    assert float(total.rad()) < 1e-15
    expected = definition(mechanism, scores, k, Fraction(1))
    got = {drawn if mechanism.ordered else tuple(sorted(drawn)): float(log.exp()) for drawn, log in exactly.items()}
    assert got.keys() == expected.keys()
    assert max(abs(got[outcome] - expected[outcome]) for outcome in got) < 1e-8


def test_a_probability_far_below_the_smallest_float_is_not_zero():
    prepared = discreet.OneShot("gumbel").prepare(
        array_source(np.array([2000, 0])).tally(), 1, Fraction(1), discreet.Sensitivity()
    )
    with precision(96):
        lost = law(prepared)[1,]
    assert float(lost) == -2000.0


@pytest.mark.parametrize("noise", [name for name in NOISES if name != "gumbel"])
def test_two_alike_win_equally_and_the_second_place_is_what_is_left(noise):
    with precision(96):
        (all_of_them,) = winners(NOISES[noise], ((Fraction(0), 3),))
        first = winners(NOISES[noise], ((Fraction(0), 1), (Fraction(1), 1)))
        pairs = (
            first_two(NOISES[noise], Fraction(0), Fraction(1), ()),
            first_two(NOISES[noise], Fraction(1), Fraction(0), ()),
        )
    assert all_of_them.contains(1)
    # Of two elements, who wins says who is second.
    assert first[0].overlaps(pairs[0])
    assert first[1].overlaps(pairs[1])


def test_an_order_that_has_no_single_integral_is_refused():
    prepared = discreet.OneShot("laplace").prepare(
        array_source(np.array([3, 2, 1, 0])).tally(), 3, Fraction(1), discreet.Sensitivity()
    )
    with pytest.raises(discreet.Error, match="k must be 1 or 2 for one-shot with laplace noise"):
        law(prepared)


def test_only_a_mechanism_on_a_tally_has_a_law():
    with pytest.raises(discreet.Error, match="prepared must be a mechanism on a tally, not str"):
        law("canonical")
