"""Draws that several test modules make."""

import random
from collections import Counter
from fractions import Fraction

import discreet
from discreet.exact.entropy import Entropy
from discreet.sources.arrays.array import array_source


def sample(mechanism, scores, k, epsilon, n, seed=1, word=64, sensitivity=None):
    """Counts of released positions, in order where the mechanism has one."""
    source, entropy = array_source(scores), Entropy(random.Random(seed), word)
    prepared = mechanism.prepare(source.tally(), k, Fraction(epsilon), sensitivity or discreet.Sensitivity())
    outcomes = (source.items(prepared.draw(entropy)) for _ in range(n))
    return Counter(tuple(y) if mechanism.ordered else tuple(sorted(y)) for y in outcomes)
