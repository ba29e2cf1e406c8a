"""Samplers on scripted bits: exact partial sums that must not exceed the probabilities of the definition."""

from fractions import Fraction

import numpy as np
import pytest

import discreet
from definitions import definition
from discreet.evidence.walk import walk
from discreet.mechanisms import canonical, joint
from discreet.sources.arrays.array import array_source

EPSILON = 1


def prepared(mechanism, scores, k):
    tally = array_source(np.array(scores)).tally()
    ready = mechanism.prepare(tally, k, Fraction(EPSILON), discreet.Sensitivity())
    # Weights of few bits, so that short scripts decide; any number of bits gives the same distribution.
    if isinstance(ready, canonical.Prepared):
        return canonical.Prepared(ready.classes, ready.noise, bits=8)
    return joint.Prepared(ready.tally, k, ready.rate, bits=7) if isinstance(ready, joint.Prepared) else ready


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "scores", "k", "open_at_most"),
    [
        (discreet.Canonical(gamma="1/2"), [2, 1, 0], 1, 0.09),
        (discreet.Canonical(gamma="1/2"), [2, 1, 0], 2, 0.09),
        (discreet.Canonical(gamma=1), [2, 1, 0], 2, 0.03),
        (discreet.Joint(), [2, 1, 0], 1, 0.25),
        (discreet.Joint(), [2, 0], 1, 0.25),
        (discreet.Canonical(noise="exponential"), [2, 0], 1, 0.75),
        (discreet.Canonical(noise="logistic"), [2, 0], 1, 0.75),
        (discreet.OneShot("exponential"), [2, 1, 0], 1, 0.4),
        (discreet.OneShot("half-logistic"), [1, 0], 1, 0.1),
        (discreet.OneShot("gumbel"), [1, 0], 1, 0.1),
        (discreet.Peeling("laplace"), [2, 1, 0], 1, 0.5),
    ],
    ids=str,
)
def test_partial_sums_enclose_the_definition(mechanism, scores, k, open_at_most):
    ready = prepared(mechanism, scores, k)

    def sampler(entropy):
        ranks = ready.draw(entropy).tolist()
        return tuple(ranks) if mechanism.ordered else tuple(sorted(ranks))

    decided, undecided = walk(sampler, 12_000)
    probabilities = definition(mechanism, scores, k, EPSILON)
    assert set(decided) <= set(probabilities)
    assert float(undecided) < open_at_most
    for outcome, p in probabilities.items():
        low = float(decided.get(outcome, 0))
        assert low <= p + 1e-9
        assert p <= low + float(undecided) + 1e-9
