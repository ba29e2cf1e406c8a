"""The curve of a mechanism: points on its steps, ends where nothing changes, and where it rests."""

import math
from itertools import pairwise

import numpy as np
import pytest

import discreet
from discreet.analysis.joint_odds import JointOverSets
from discreet.analysis.meters import Precision, Shares
from discreet.study.curves import STEP, Point, find_plateau, refine, trace_curve
from discreet.study.vectors import Vector

STEEP = Vector("STEEP", np.arange(4000, 0, -10))


def test_a_step_gets_points_until_it_is_too_narrow_to_be_seen():
    seen = {}

    def at(epsilon):
        seen[epsilon] = Shares({"top": float(epsilon > 3.3)}, 0.0)
        return seen[epsilon]

    at(1.0), at(100.0)
    refine(seen, at, 100)
    places = sorted(seen)
    [(low, high)] = [pair for pair in pairwise(places) if seen[pair[0]] != seen[pair[1]]]
    assert 1 < high / low < 1.01
    assert len(seen) < 20
    # A step that a chart would show as a gap gets its points, however few are usual.
    whole = dict(seen)
    seen.clear()
    at(1.0), at(100.0)
    refine(seen, at, 2)
    assert seen == whole


def test_a_slope_gets_no_more_points_than_usual():
    seen = {}

    def at(epsilon):
        seen[epsilon] = Shares({"top": math.log10(epsilon)}, 0.0)
        return seen[epsilon]

    at(1.0), at(10.0)
    refine(seen, at, 7)
    # Four halves of halves are closer than the largest step; of the next ones two more are usual.
    assert len(seen) == 7
    assert max(seen[high].values["top"] - seen[low].values["top"] for low, high in pairwise(sorted(seen))) < STEP


@pytest.mark.parametrize("gamma", ["1/2", "3/4", "1"])
def test_a_steep_curve_has_points_on_its_rise(gamma):
    curve = trace_curve(STEEP.tally, 150, discreet.Canonical(gamma), Precision(goal=1e-6), 1.0, with_recall=True)
    for goal in ("top", "great", "good", "recall"):
        known = [(x, shares.values[goal]) for x, shares in curve.shares.items() if goal in shares.values]
        for (low, before), (high, after) in pairwise(known):
            assert after - before <= 0.041 or high / low < 1.01


@pytest.mark.parametrize("mechanism", [discreet.Joint(), JointOverSets()], ids=["sequences", "sets"])
def test_a_curve_of_the_joint_mechanism_has_no_gap(mechanism):
    """Its goals rise at different epsilons, one step after the other, and share few points."""
    curve = trace_curve(STEEP.tally, 40, mechanism, Precision(goal=1e-3), 8.0, with_recall=True)
    for goal in ("top", "great", "good"):
        known = [(x, shares.values[goal]) for x, shares in curve.shares.items() if goal in shares.values]
        assert all(after - before <= STEP or high / low < 1.01 for (low, before), (high, after) in pairwise(known))


def test_a_curve_goes_down_to_what_chance_gives():
    """Of a list of 100 of 400 items a quarter is right by chance: the share of right items ends there."""
    curve = trace_curve(STEEP.tally, 100, discreet.Canonical(), Precision(goal=1e-6), 1.0, with_recall=True)
    first = curve.shares[min(curve.shares)]
    assert 0.25 <= first.values["recall"] <= 0.275
    assert min(curve.shares) > 1e-6
    lowest = min(x for x, shares in curve.shares.items() if "good" in shares.values)
    assert curve.shares[lowest].values["good"] < 0.01


def points(levels):
    return [Point("methods", "A", 9, 1, "m", 1.2**i, "top", level, 0.0) for i, level in enumerate(levels)]


def test_a_rest_halfway_is_found():
    rests = points([0.0, 0.3, 0.5, 0.5, 0.51, 0.52, 0.9, 1.0])
    first, last = find_plateau(rests)
    assert (first.x, last) == (rests[2].x, rests[5].x)
    # One that has come to its end, because of ties, does not rest on its way up.
    assert find_plateau(points([0.0, 0.3, 0.5, 0.5, 0.5, 0.5, 0.5])) is None
    assert find_plateau(points([1 / (1 + math.exp(5 - i)) for i in range(11)])) is None
    assert find_plateau([]) is None
