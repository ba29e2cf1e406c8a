"""The exact law of what the caller of `top_k` sees, and how far two of them are apart.

The probabilities are balls (`discreet.evidence.law`), and every draw is taken through `top_k`'s own way from ranks to a
release. Whatever the caller sees is an outcome: the items in the order they are listed in, and the released order. The
input is handed over in rank order, as a `value_counts()` would be, so that an order that is echoed shows too.

Two laws are compared as rows of log probabilities: by the largest log ratio, and by Renyi divergences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from discreet import topk
from discreet.evidence.law import as_selection, law
from discreet.evidence.neighbours import Family, Scores
from discreet.evidence.report import Outcome, Pair
from discreet.exact.arrays import Floats
from discreet.exact.ball import precision
from discreet.guarantee import Guarantee
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.release import Release
from discreet.request import make_request
from discreet.selection import Selection
from discreet.sources.arrays.array import ArraySource, array_source

_BITS = 112
_WIDEST = 1e-18
"""How exactly log probabilities are wanted, and the precision that is tried first."""

ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The Renyi orders at which zCDP is checked."""

_NOTHING = 1e-12
"""What counts as no difference where none is allowed."""


@dataclass(frozen=True)
class Table:
    """The laws of some inputs: log probabilities, a row for each, and how far each row may be off."""

    logs: Floats
    off: Floats
    outcomes: list[Outcome]


class Laws:
    """The laws of what `top_k` shows, for inputs of one family."""

    def __init__(self, mechanism: Mechanism, k: int, epsilon: Fraction, family: Family) -> None:
        self.k, self.epsilon, self.family = k, epsilon, family
        self.request = make_request(
            dict(enumerate(family.scores[0])), k, epsilon,
            mechanism=mechanism, sensitivity=family.sensitivity, adjacency=family.adjacency,
        )  # fmt: skip
        self._known: dict[Scores, dict[Outcome, tuple[float, float]]] = {}

    @property
    def guarantee(self) -> Guarantee:
        """What all these releases promise."""
        return self.request.guarantee

    def pair(self, scores: Scores, neighbour: Scores) -> Pair:
        """The pair with the outcome at which it is worst."""
        table = self.table([scores, neighbour])
        worst = int(log_ratios(table.logs[0], table.logs[1:])[0].argmax())
        outcome = table.outcomes[worst]
        return Pair(scores, neighbour, self.k, self.guarantee.epsilon, self.family.adjacency, outcome)

    def table(self, inputs: list[Scores]) -> Table:
        """The laws of some inputs side by side; an outcome that an input cannot have has probability 0."""
        rows = [self.law(scores) for scores in inputs]
        outcomes = list(dict.fromkeys(outcome for row in rows for outcome in row))
        logs = np.full((len(rows), len(outcomes)), -np.inf)
        off = np.zeros(len(rows))
        for i, row in enumerate(rows):
            for j, outcome in enumerate(outcomes):
                if outcome in row:
                    logs[i, j], error = row[outcome]
                    off[i] = max(off[i], error)
        return Table(logs, off, outcomes)

    def law(self, scores: Scores) -> dict[Outcome, tuple[float, float]]:
        """The log probability of everything that the caller can see, and how far it may be off."""
        if scores not in self._known:
            self._known[scores] = self._visible(scores)
        return self._known[scores]

    def source(self, scores: Scores) -> ArraySource:
        """The source that an input is handed over as."""
        return array_source(label_scores(scores))

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """What is released of the input behind `source` where `draw` selects."""
        return topk.draw_release(replace(self.request, source=source), draw)

    def _visible(self, scores: Scores) -> dict[Outcome, tuple[float, float]]:
        source = self.source(scores)
        return enumerate_outcomes(lambda draw: self.release(scores, source, draw), self.k)


def enumerate_outcomes(
    release: Callable[[Callable[[Prepared], Selection]], Release], k: int
) -> dict[Outcome, tuple[float, float]]:
    """The log probability of everything that the caller can see, and how far it may be off.

    Parameters
    ----------
    release
        What is released where a given function selects.
    k
        How many ranks are chosen.
    """
    prepared: list[Prepared] = []

    def observe(select: Callable[[Prepared], Selection]) -> Outcome:
        def draw(ready: Prepared) -> Selection:
            prepared.append(ready)
            return select(ready)

        return outcome_of(release(draw))

    first = observe(lambda _: Selection(np.arange(k)))
    if not prepared:
        # Nothing was drawn: this is all there is to see.
        return {first: (0.0, 0.0)}
    logs: dict[Outcome, tuple[float, float]] = {}
    for drawn, (log_probability, off) in _floats(prepared[0]).items():
        outcome = observe(partial(as_selection, drawn=drawn))
        before, error = logs.get(outcome, (-math.inf, 0.0))
        logs[outcome] = float(np.logaddexp(before, log_probability)), max(off, error) + (before > -math.inf) * 1e-14
    return logs


def outcome_of(release: Release) -> Outcome:
    """What the caller sees of a release."""
    order = release.chosen if release.order is None else tuple(release.order)
    return (tuple(release.items), order) if release.counts is None else (tuple(release.items), order, *release.counts)


def label_scores(scores: Scores) -> dict[str, int | Fraction]:
    """Scores with labels a, b, c, ..., listed in rank order; counts as the whole numbers that users have."""
    plain = [score.numerator if score.denominator == 1 else score for score in scores]
    ranked = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
    return {label(item): plain[item] for item in ranked}


def label(item: int) -> str:
    """What the item at a position is called: a, b, c, ..."""
    return chr(ord("a") + item)


def _floats(prepared: Prepared) -> dict[tuple[int, ...], tuple[float, float]]:
    """The law as floats, each with a bound on its distance from the true log probability."""
    bits = _BITS
    while True:
        with precision(bits):
            exactly = law(prepared)
        # A chance far below what the precision can tell from zero has no logarithm yet.
        if all(log.is_finite() and log.rad() < _WIDEST for log in exactly.values()):
            middles = {ranks: float(log.mid()) for ranks, log in exactly.items()}
            return {ranks: (middles[ranks], _WIDEST + 2.0**-52 * abs(middles[ranks])) for ranks in exactly}
        bits *= 2


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
