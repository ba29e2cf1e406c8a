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
from discreet.analysis.layers import Layers
from discreet.analysis.shots import Shots
from discreet.analysis.statistics import check_confidence, draws_needed, lower_bound, upper_bound
from discreet.errors import InvalidValueError, shown
from discreet.exact.entropy import Ranks, as_entropy
from discreet.mechanisms import canonical, oneshot
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling
from discreet.noise import NOISES
from discreet.privacy import Number, Sensitivity, exact
from discreet.release import Guarantee
from discreet.request import make_analysis_request
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
    precision = Precision(width=as_width(width), confidence=check_confidence(confidence))
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
    layers = Layers.of(tally, k, mechanism, list(regions.values())) if isinstance(mechanism, Joint) else None

    def read(epsilon: Fraction) -> Shares:
        prepared: Any = mechanism.prepare(tally, k, epsilon, sensitivity)
        if layers is not None:
            return _by_layers(layers.on(prepared.tally), prepared.rate, regions, precision.goal)
        if has_classes(mechanism):
            return _by_classes(prepared, regions)
        if is_race(mechanism):
            return _by_integration(Race(tally, k, prepared.weight, prepared.noise), regions, precision.goal)
        return _by_draws(lambda: prepared.draw(as_entropy(None)), k, regions, precision)

    return read


def has_classes(mechanism: Mechanism) -> bool:
    """Whether probabilities come from the weights of classes."""
    return isinstance(mechanism, Canonical) and mechanism.noise == "gumbel"


def is_race(mechanism: Mechanism) -> bool:
    """Whether the k largest of all noisy values are released, so that probabilities are integrals."""
    return isinstance(mechanism, OneShot) or (isinstance(mechanism, Peeling) and mechanism.noise == "gumbel")


def check_computed(mechanism: Mechanism) -> None:
    """Raises unless the probabilities of a mechanism are computed, not drawn."""
    if not (has_classes(mechanism) or is_race(mechanism) or isinstance(mechanism, Joint)):
        raise InvalidValueError(
            "mechanism must be one whose utility is computed: canonical or peeling with gumbel noise, one-shot or "
            f"joint, not {mechanism!r}"
        )


@dataclass(frozen=True)
class Race:
    """A mechanism that releases the k largest of all noisy values."""

    tally: Tally
    k: int
    weight: Fraction
    noise: str

    def shots(self, goal: float, first: Ranks | None = None) -> Shots:
        """Its values, descending, or those at some ranks first."""
        d = self.tally.d
        if d > MOST_VALUES:
            raise InvalidValueError(f"scores must be of at most {MOST_VALUES} items for {self.noise} noise, not {d}")
        values = oneshot.Prepared(self.tally, self.k, self.weight, self.noise).gain_float(np.arange(d))
        if first is not None:
            values = np.concatenate([values[first], np.delete(values, first)])
        return Shots(NOISES[self.noise], np.clip(values, -FAR, FAR), self.k, goal)


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


def _by_classes(prepared: canonical.Prepared, regions: dict[str, Region]) -> Shares:
    cells = cells_of(prepared)
    chance = cells.probability
    shares = {
        name: min(1.0, cells.top + float(chance[(cells.h >= h) & (cells.t < t)].sum()))
        for name, (h, t) in regions.items()
    }
    return Shares(shares, cells.error)


def _by_layers(layers: Layers, rate: Fraction, regions: dict[str, Region], goal: float) -> Shares:
    shares, error = layers.shares(to_float(rate), goal)
    return Shares(dict(zip(regions, shares, strict=True)), error)


def _by_integration(race: Race, regions: dict[str, Region], goal: float) -> Shares:
    shots = race.shots(0.2 * goal)
    chances = {region: shots.chance(*region) for region in set(regions.values())}
    shares = {name: chances[region].value for name, region in regions.items()}
    return Shares(shares, max(chance.error for chance in chances.values()))


def _by_draws(draw: Callable[[], Any], k: int, regions: dict[str, Region], precision: Precision) -> Shares:
    alpha = float(1 - precision.confidence) / (2 * len(regions))
    draws = draws_needed(float(precision.width) / 2.0, alpha)
    hits = dict.fromkeys(regions, 0)
    for _ in range(draws):
        h, t = described(np.sort(draw()))
        for name, (least, most) in regions.items():
            hits[name] += h >= least and t <= most
    shares = {name: count / draws for name, count in hits.items()}
    error = max(
        max(upper_bound(count, draws, alpha) - shares[name], shares[name] - lower_bound(count, draws, alpha))
        for name, count in hits.items()
    )
    return Shares(shares, error, precision.confidence)


def described(ranks: Any) -> tuple[int, int]:
    """H and t of a set of ranks in ascending order: how many of the best it holds in a row, and the worst, from 1."""
    missing = np.flatnonzero(ranks != np.arange(len(ranks)))
    return int(missing[0]) if len(missing) else len(ranks), int(ranks[-1]) + 1


def as_width(value: Any) -> Fraction:
    """The width of an interval, exactly."""
    number = exact(value, "width")
    if not _LEAST_WIDTH <= number < 1:
        raise InvalidValueError(f"width must be from 0.001 to less than 1, not {shown(value)}")
    return number
