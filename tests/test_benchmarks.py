"""What others do, as the benchmark measures it: the joint mechanism draws from its law, OpenDP takes all scores."""

import sys
from collections import Counter
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest

import draws
from discreet.evidence import definition

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # its modules know each other by their bare names
import peers

SCORES = [1, 4, 0, 4, 2, 1]


def joint_law(scores, k, epsilon):
    return {items: exp(log) for items, log in definition.joint(scores, k, definition.scale(epsilon)).items()}


@pytest.mark.parametrize("scores", [SCORES, [score + place / 8 for place, score in enumerate(SCORES)]], ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_joint_mechanism_in_numpy_draws_from_its_law(scores, k, monkeypatch):
    monkeypatch.setattr(peers, "_GENERATOR", np.random.default_rng(5))
    exact = [Fraction(score) for score in scores]
    right, wrong = (joint_law(exact, k, epsilon) for epsilon in (2, Fraction(5, 2)))
    n = draws.enough(right, wrong)
    counts, off = (
        Counter(tuple(peers.joint(np.array(scores), k, epsilon).tolist()) for _ in range(n)) for epsilon in (2.0, 2.5)
    )
    assert draws.fits(counts, right)
    assert not draws.fits(off, right)


def test_it_lists_each_item_once_however_many():
    for scores in (np.arange(40), np.full(40, 7), np.arange(40) / 8):
        assert sorted(peers.joint(scores, 40, 1.0).tolist()) == list(range(40))


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_opendp_takes_either_noise_and_kind_of_scores(noise, kind):
    assert len(set(peers.opendp(np.array(SCORES, kind), 3, 1.0, noise)())) == 3
