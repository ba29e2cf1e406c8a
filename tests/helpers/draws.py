"""Statistics that the sampler tests share: one alpha, counts against probabilities, and the power of that."""

from collections import Counter

import numpy as np
from scipy import stats

ALPHA = 1e-4
"""Every test of counts fails a right sampler with this probability, once and for all: seeds are fixed."""

LEAST = 5.0
"""Outcomes expected less often than this are counted together."""


def pooled(probabilities, n):
    """The outcomes in cells large enough for a chi-square test."""
    cells, rest = [], []
    for outcome, p in probabilities.items():
        (cells if n * p >= LEAST else rest).append([outcome] if n * p >= LEAST else outcome)
    return [*cells, rest] if rest else cells


def fits(counts, probabilities):
    """Whether counts agree with probabilities, by a chi-square test at ALPHA."""
    n = sum(counts.values())
    cells = pooled(probabilities, n)
    expected = np.array([n * sum(probabilities[o] for o in cell) for cell in cells])
    seen = np.array([sum(counts.get(o, 0) for o in cell) for cell in cells])
    assert seen.sum() == n, "an outcome that cannot happen has happened"
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(cells) - 1) > ALPHA


def power(n, probabilities, wrong):
    """The probability that n draws of a wrong sampler are rejected."""
    cells = pooled(probabilities, n)
    p = np.array([sum(probabilities[o] for o in cell) for cell in cells])
    q = np.array([sum(wrong[o] for o in cell) for cell in cells])
    critical = stats.chi2.isf(ALPHA, len(cells) - 1)
    return stats.ncx2.sf(critical, len(cells) - 1, n * ((q - p) ** 2 / p).sum())


def enough(probabilities, wrong, least=0.99):
    """The number of draws, in thousands, that reject a wrong sampler with at least this probability."""
    return next(n for n in range(2000, 100_000, 1000) if power(n, probabilities, wrong) > least)


def by_score(outcomes, scores, ordered):
    """Probabilities or counts of outcomes, added up over items of equal score."""
    merged = Counter()
    for outcome, amount in outcomes.items():
        values = (scores[i] for i in outcome)
        merged[tuple(values) if ordered else tuple(sorted(values))] += amount
    return merged
