"""How far two laws are apart: the largest log ratio, and Renyi divergences. Laws are rows of log probabilities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.exact.arrays import Floats

ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The Renyi orders at which zCDP is checked."""

_NOTHING = 1e-12
"""What counts as no difference where none is allowed."""


def log_ratios(here: Floats, there: Floats) -> Floats:
    """How far log probabilities are apart, outcome by outcome; infinitely where only one is possible."""
    return np.abs(signed_log_ratios(here, there))


def signed_log_ratios(here: Floats, there: Floats) -> Floats:
    """By how much log probabilities are above others, outcome by outcome; 0 where neither is possible."""
    with np.errstate(invalid="ignore"):
        above = here - there
    return np.where(np.isnan(above), 0.0, above)


def shares(ratios: Floats, epsilon: Fraction) -> Floats:
    """Log ratios as shares of epsilon; where epsilon is zero, any ratio is infinitely much of it."""
    if epsilon == 0:
        return np.where(ratios > _NOTHING, np.inf, 0.0)
    return ratios / float(epsilon)


def divergences(here: Floats, there: Floats, zcdp: Fraction) -> Floats:
    """The largest of D_a / (rho a) over the orders a and both directions, for each row of `there`."""
    worst = np.zeros(len(there))
    for order in ORDERS:
        for p, q in ((here, there), (there, here)):
            divergence = renyi(np.broadcast_to(p, there.shape), np.broadcast_to(q, there.shape), order)
            allowed = float(zcdp) * order
            share = divergence / allowed if allowed else np.where(divergence > _NOTHING, np.inf, 0.0)
            worst = np.maximum(worst, share)
    return worst


def renyi(p: Floats, q: Floats, order: float) -> Floats:
    """The Renyi divergence of some order, of rows of log probabilities; the Kullback-Leibler one for order 1."""
    with np.errstate(invalid="ignore", over="ignore"):
        if order == 1.0:
            terms = np.exp(p) * (p - q)
            return np.asarray(np.where(p == -np.inf, 0.0, terms).sum(axis=1))
        terms = np.where(p == -np.inf, 0.0, np.exp(order * p + (1.0 - order) * q))
        return np.asarray(np.log(terms.sum(axis=1)) / (order - 1.0))
