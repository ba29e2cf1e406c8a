"""How good a release will be: the probability that it is the true top-k, or nearly.

Computed from the scores, so NOT private: for public or made-up data, or for choosing a mechanism and an epsilon on data
of the same kind. A released set is described by h, how many of the best ranks it holds before the first one that it
lacks, and t, its worst rank, counted from 1; every goal is h >= some h0 and t <= some t0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from discreet.analysis.classes import cells_of
from discreet.analysis.joint_sets import make_analysis_request
from discreet.analysis.layers import Layers
from discreet.analysis.shots import Shots
from discreet.analysis.statistics import check_confidence, draws_needed, lower_bound, upper_bound
from discreet.errors import InvalidValueError, shown
from discreet.exact.arrays import Ranks
from discreet.exact.entropy import as_entropy
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Form, Mechanism
from discreet.noise import Noise
from discreet.privacy import Number, Sensitivity, exact
from discreet.release import Guarantee
from discreet.tally import Tally, to_float
from discreet.text import decimal

Region = tuple[int, int]
"""What is good enough: h at least the first number, t at most the second."""

FAR = 1e3
"""The k-th value is at 0: what is further from it than this is released, or is not, for certain."""

MOST_VALUES = 10**8
_LEAST_WIDTH = Fraction(1, 1000)


@dataclass(frozen=True)
class Utility:
    """How likely a release is to be good. NOT private: computed from the scores.

    Attributes
    ----------
    top
        The probability of exactly the top-k, ties broken by one fixed order.
    great
        Of a set with the best tenth of k in it and none beyond the best 11/10 of k.
    good
        Of a set with the best hundredth of k in it and none beyond the best 3/2 of k.
    optimal
        Of any top-k by score, however ties are broken.
    error
        What each of them may be off by. For canonical it is a bound; for one-shot and joint, whose integrals are
        refined until they stand still, it is how far they still moved, where no bound is smaller.
    confidence
        None where they were computed; where they were estimated from draws, the probability that `error` covers all.
    """

    top: float
    great: float
    good: float
    optimal: float
    error: float
    confidence: Fraction | None = None

    def __str__(self) -> str:
        shares = "  ".join(f"{name} {getattr(self, name):.6f}" for name in GOALS)
        sure = "" if self.confidence is None else f" with confidence {decimal(self.confidence)}"
        return f"{shares}  (off by at most {self.error:.1e}{sure}; NOT private: computed from the scores)"


GOALS = tuple(field.name for field in fields(Utility))[:4]
"""The goals: top, great, good, optimal."""


def utility(
    scores: Any,
    k: int,
    epsilon: Number,
    mechanism: Mechanism | None = None,
    *,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
    width: Number = "0.1",
    confidence: Number = "0.99",
) -> Utility:
    """How likely a release is to be good, from the scores: NOT private, for public or made-up data.

    Parameters
    ----------
    scores
        What `top_k` takes.
    k, epsilon, mechanism, sensitivity, adjacency
        What `top_k` would be given.
    width
        Where there is no formula (canonical and peeling with other noises than Gumbel): how wide an interval
        around each probability may be, which decides how many releases are drawn.
    confidence
        The probability that all these intervals cover.

    Returns
    -------
    Utility
        The probabilities of the four goals and what they may be off by.

    Examples
    --------
    >>> import discreet
    >>> discreet.utility([90, 80, 5, 1], k=2, epsilon=1).top > 0.999
    True
    """
    request = make_analysis_request(scores, k, epsilon, mechanism, sensitivity, adjacency)
    if request.takes_all_items:
        return Utility(1.0, 1.0, 1.0, 1.0, 0.0)
    tally = request.source.tally()
    precision = Precision(width=check_width(width), confidence=check_confidence(confidence))
    read = meter(tally, request.k, request.guarantee, goals(tally, request.k), precision)
    return at_epsilon(read, request.guarantee.epsilon)


@dataclass(frozen=True)
class Shares:
    """The probabilities of some goals, what they may be off by, and how surely."""

    values: dict[str, float]
    error: float
    confidence: Fraction | None = None


@dataclass(frozen=True)
class Precision:
    """How exact probabilities must be: the error of what is computed, and the width and confidence of what is drawn."""

    goal: float = 1e-9
    width: Fraction = Fraction(1, 10)
    confidence: Fraction = Fraction(99, 100)


_USUAL = Precision()

Meter = Callable[[Fraction], Shares]
"""From epsilon to the probabilities of some goals."""


def at_epsilon(meter: Meter, epsilon: Fraction) -> Utility:
    """The utility at one epsilon, read from a meter of all goals."""
    shares = meter(epsilon)
    top, great, good, optimal = (shares.values[name] for name in GOALS)
    return Utility(top, great, good, optimal, shares.error, shares.confidence)


def meter(
    tally: Tally, k: int, guarantee: Guarantee, regions: dict[str, Region], precision: Precision = _USUAL
) -> Meter:
    """The probability of each region, for one mechanism on a tally, as a function of epsilon."""
    mechanism, sensitivity = guarantee.mechanism, guarantee.sensitivity
    share_regions = _FORMULAS[mechanism.form](_Question(tally, k, mechanism, regions, precision))
    return lambda epsilon: share_regions(mechanism.prepare(tally, k, epsilon, sensitivity))


@dataclass(frozen=True)
class _Question:
    """The regions whose probabilities are wanted, of a mechanism on a tally at any epsilon."""

    tally: Tally
    k: int
    mechanism: Mechanism
    regions: dict[str, Region]
    precision: Precision


def check_computed(mechanism: Mechanism) -> None:
    """Raises unless the probabilities of a mechanism are computed, not drawn."""
    if mechanism.form is Form.UNKNOWN:
        raise InvalidValueError(
            "mechanism must be one whose utility is computed: canonical or peeling with gumbel noise, one-shot or "
            f"joint, not {mechanism!r}"
        )


@dataclass(frozen=True)
class Race:
    """A mechanism on a tally that releases the k largest of all noisy values."""

    tally: Tally
    k: int
    weight: Fraction
    noise: Noise

    @classmethod
    def of(cls, prepared: Any) -> Race:
        """What is needed of a mechanism of the form of a race, which names its parts alike."""
        return cls(prepared.tally, prepared.k, prepared.weight, prepared.noise)

    def shots(self, goal: float, first: Ranks | None = None) -> Shots:
        """Its values, descending, or those at some ranks first."""
        d = self.tally.d
        if d > MOST_VALUES:
            raise InvalidValueError(
                f"scores must be of at most {MOST_VALUES} items for {self.noise.name} noise, not {d}"
            )
        values = oneshot.Prepared(self.tally, self.k, self.weight, self.noise).gain_float(np.arange(d))
        if first is not None:
            values = np.concatenate([values[first], np.delete(values, first)])
        return Shots(self.noise.require_distribution(), np.clip(values, -FAR, FAR), self.k, goal)


def goals(tally: Tally, k: int) -> dict[str, Region]:
    """The four goals for k of d items."""
    d = tally.d
    great, good = (ceil(k / 10), min(d, 11 * k // 10)), (ceil(k / 100), min(d, 3 * k // 2))
    regions = {"top": (k, k), "great": great, "good": good}
    if k < d and tally.gap(k - 1, k) == 0:
        # Of the items that share the k-th score, any will do.
        first = _first(lambda rank: tally.gap(rank, k - 1) == 0, 0, k - 1)
        beyond = _first(lambda rank: tally.gap(k - 1, rank) > 0, k, d)
        return {**regions, "optimal": (first, beyond)}
    return {**regions, "optimal": (k, k)}


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first rank from `low` on at which something holds, which then holds on; `high` if there is none before."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _by_classes(question: _Question) -> Callable[[Any], Shares]:
    def share_regions(prepared: Any) -> Shares:
        cells = cells_of(prepared)
        chance = cells.probability
        shares = {
            name: min(1.0, cells.top + float(chance[(cells.h >= h) & (cells.t < t)].sum()))
            for name, (h, t) in question.regions.items()
        }
        return Shares(shares, cells.error)

    return share_regions


def _by_layers(question: _Question) -> Callable[[Any], Shares]:
    # What is counted for one epsilon serves for the next.
    layers = Layers.of(question.tally, question.k, question.mechanism, list(question.regions.values()))

    def share_regions(prepared: Any) -> Shares:
        shares, error = layers.on(prepared.tally).shares(to_float(prepared.rate), question.precision.goal)
        return Shares(dict(zip(question.regions, shares, strict=True)), error)

    return share_regions


def _by_integration(question: _Question) -> Callable[[Any], Shares]:
    def share_regions(prepared: Any) -> Shares:
        shots = Race.of(prepared).shots(0.2 * question.precision.goal)
        chances = {region: shots.chance(*region) for region in set(question.regions.values())}
        shares = {name: chances[region].value for name, region in question.regions.items()}
        return Shares(shares, max(chance.error for chance in chances.values()))

    return share_regions


def _by_draws(question: _Question) -> Callable[[Any], Shares]:
    regions, precision = question.regions, question.precision
    alpha = float(1 - precision.confidence) / (2 * len(regions))
    draws = draws_needed(float(precision.width) / 2.0, alpha)

    def share_regions(prepared: Any) -> Shares:
        hits = dict.fromkeys(regions, 0)
        for _ in range(draws):
            h, t = describe_ranks(np.sort(prepared.draw(as_entropy(None))))
            for name, (least, most) in regions.items():
                hits[name] += h >= least and t <= most
        shares = {name: count / draws for name, count in hits.items()}
        error = max(
            max(upper_bound(count, draws, alpha) - shares[name], shares[name] - lower_bound(count, draws, alpha))
            for name, count in hits.items()
        )
        return Shares(shares, error, precision.confidence)

    return share_regions


_FORMULAS: dict[Form, Callable[[_Question], Callable[[Any], Shares]]] = {
    Form.CLASSES: _by_classes,
    Form.RACE: _by_integration,
    Form.LOSSES: _by_layers,
    Form.UNKNOWN: _by_draws,
}


def describe_ranks(ranks: Any) -> tuple[int, int]:
    """H and t of a set of ranks in ascending order: how many of the best it holds in a row, and the worst, from 1."""
    missing = np.flatnonzero(ranks != np.arange(len(ranks)))
    return int(missing[0]) if len(missing) else len(ranks), int(ranks[-1]) + 1


def check_width(value: Any) -> Fraction:
    """The width of an interval, exactly."""
    number = exact(value, "width")
    if not _LEAST_WIDTH <= number < 1:
        raise InvalidValueError(f"width must be from 0.001 to less than 1, not {shown(value)}")
    return number
