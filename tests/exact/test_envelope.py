"""The integer weights of an envelope: above the masses, and the same numbers where they are drawn and divided by."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet.evidence.walk import walk
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import Envelope, scan_weights

MASSES = {
    "near": np.array([0.0, -0.1, -1.0, 0.3]),
    "far apart": np.array([-5.0, 700.0, 699.999, -1e6, 650.0]),
    "one": np.array([1e9]),
}


@pytest.mark.parametrize("scale", [3, 20, 40])
@pytest.mark.parametrize("name", MASSES)
def test_weights_are_just_above_the_masses(name, scale):
    envelope = Envelope.over(MASSES[name], scale)
    unit = 2.0**-scale
    with precision(200):
        for j, log_mass in enumerate(MASSES[name]):
            share = (arb(float(log_mass)) - arb(float(MASSES[name].max()))).exp()
            weight = (envelope.log_weight(j) - arb(float(MASSES[name].max()))).exp()
            # Raised by a millionth, and by a unit at most.
            assert share * (1 + 2.0**-20) <= weight * (1 + 2.0**-50)
            assert weight <= share * (1 + 2.0**-19) + unit + 2.0**-100


@pytest.mark.parametrize("name", MASSES)
def test_the_weight_that_is_drawn_is_the_weight_that_is_divided_by(name):
    envelope = Envelope.over(MASSES[name], 12)
    drawn = np.diff(envelope.cumulative, prepend=0)
    assert (drawn >= 1).all()
    with precision(120):
        for j, weight in enumerate(drawn.tolist()):
            stated = (envelope.log_weight(j) - arb(envelope.reference)).exp() * 2**12
            assert abs(stated - weight) < 1e-20


def test_a_part_without_a_mass_has_no_weight_and_is_never_picked():
    envelope = Envelope.over(np.array([-np.inf, 0.0, -np.inf, -1e300, -np.inf]), 3)
    assert [envelope.weight(j) for j in range(5)] == [0, 9, 0, 1, 0]
    assert {envelope.pick(Entropy(random.Random(seed))) for seed in range(200)} == {1, 3}


@pytest.mark.some(1)
@pytest.mark.parametrize("logs", [[0, -1, -2, -700], [5], [-40, -40, -40], [0, "-inf", 0, "-inf"]])
def test_weights_are_scanned_by_balls_alone(logs):
    """With the probability of each weight, however small, and never one that weighs nothing."""
    total = sum(math.exp(float(log)) for log in logs)
    decided, undecided = walk(lambda entropy: scan_weights(entropy, lambda: [arb(log) for log in logs]), 3000)
    assert undecided < Fraction(1, 50)
    for j, log in enumerate(logs):
        share = math.exp(float(log)) / total
        assert decided.get(j, 0) - Fraction(1, 10**12) <= share <= decided.get(j, 0) + undecided + Fraction(1, 10**12)


def test_shares_below_all_floats_are_no_error():
    with np.errstate(all="raise"):
        envelope = Envelope.over(np.array([0.0, -720.0, -1e9]))
    assert [envelope.weight(j) for j in range(3)] == [2**40 + 2**20, 1, 1]
