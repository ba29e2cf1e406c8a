"""Guarantees without data: what the mechanisms promise for every score vector, from public numbers alone.

All of it rests on one race. Write v for how far an element is behind the best one, in units of the noise. For an
element to win it must beat the best one, which has a chance of at most exp(-v) under Gumbel noise, and there are |Y|
elements at most. Ranks count from 1, as in the paper: x[1] >= ... >= x[d] are the scores, T is the worst rank that is
released, s = epsilon / (2 delta). Every number is computed with balls and rounded to the side on which it stays true.

The paper (Shekelyan and Loukides, 2022) prints several of these bounds the wrong way round: see docs/errata.md. Its
"leap" for peeling is no bound and has no repair, so there is none here.
"""

from discreet.analysis.bounds.leaps import canonical_leap, canonical_miss
from discreet.analysis.bounds.tails import (
    Tails,
    canonical_tail,
    compare_tails,
    exponential_mechanism,
    peeling_tail,
    smallest_k,
)

__all__ = [
    "Tails",
    "canonical_leap",
    "canonical_miss",
    "canonical_tail",
    "compare_tails",
    "exponential_mechanism",
    "peeling_tail",
    "smallest_k",
]
