"""How good a release will be: the probability that it is the true top-k, or nearly.

Computed from the scores, so NOT private: for public or made-up data, or for choosing a mechanism and an epsilon on data
of the same kind. A released set is described by h, how many of the best ranks it holds before the first one that it
lacks, and t, its worst rank, counted from 1; every goal is h >= some h0 and t <= some t0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, TypeVar, overload

import numpy as np

from discreet.analysis.classes import cells_of
from discreet.analysis.joint_sets import make_analysis_request, make_grouped_analysis_request
from discreet.analysis.layers import Layers
from discreet.analysis.results import GOALS as GOALS
from discreet.analysis.results import Expected, GroupedUtility
from discreet.analysis.results import Utility as Utility
from discreet.analysis.shots import Shots
from discreet.analysis.statistics import check_confidence, draws_needed, lower_bound, upper_bound
from discreet.errors import InvalidValueError, shown
from discreet.exact.arrays import Ranks
from discreet.exact.entropy import as_entropy
from discreet.grouped_request import GroupedRequest
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Form, Mechanism
from discreet.noise import Noise
from discreet.privacy import Number, Sensitivity, exact
from discreet.release import Guarantee
from discreet.request import Request
from discreet.selection import Selection
from discreet.sources.groups import GroupedSource
from discreet.tally import Tally, to_float

Region = tuple[int, int]
"""What is good enough: h at least the first number, t at most the second."""

FAR = 1e3
"""The k-th value is at 0: what is further from it than this is released, or is not, for certain."""

MOST_VALUES = 10**8
_LEAST_WIDTH = Fraction(1, 1000)


@overload
def utility(scores: GroupedSource, k: int, epsilon: Number, *given: Any, **options: Any) -> GroupedUtility: ...
@overload
def utility(scores: Any, k: int, epsilon: Number, *given: Any, **options: Any) -> Utility: ...
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
) -> Utility | GroupedUtility:
    """How likely a release is to be good, from the scores: NOT private, for public or made-up data.

    Parameters
    ----------
    scores
        What `top_k` takes, by group or not.
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
        The probabilities of the four goals and what they may be off by. Of scores by group a GroupedUtility: those of
        each group at its share of epsilon, and the expected share of groups that reach each goal.

    Examples
    --------
    >>> import discreet
    >>> discreet.utility([90, 80, 5, 1], k=2, epsilon=1).top > 0.999
    True
    """
    precision = Precision(width=check_width(width), confidence=check_confidence(confidence))
    terms = k, epsilon, mechanism, sensitivity, adjacency
    if not isinstance(scores, GroupedSource):
        request = make_analysis_request(scores, *terms)
        return _measure(request, request.source.tally, precision)

    def measure(one: Request, read: Callable[[], Tally], sure: Fraction) -> Utility:
        return _measure(one, read, replace(precision, confidence=sure))

    return GroupedUtility(measure_groups(make_grouped_analysis_request(scores, *terms), precision.confidence, measure))


def _measure(request: Request, read: Callable[[], Tally], precision: Precision) -> Utility:
    """The utility of one list, whose scores are read where they matter."""
    if request.takes_all_items:
        return Utility(1.0, 1.0, 1.0, 1.0, 0.0)
    tally = read()
    found = meter(tally, request.k, request.guarantee, goals(tally, request.k), precision)
    return at_epsilon(found, request.guarantee.epsilon)


Measured = TypeVar("Measured", Utility, Expected)


def measure_groups(
    every: GroupedRequest,
    confidence: Fraction,
    measure: Callable[[Request, Callable[[], Tally], Fraction], Measured],
) -> dict[Any, Measured]:
    """What is measured of each group; each is surer than asked for, so that all together are as sure as that."""
    measured: dict[Any, Measured] = {}
    sure = 1 - (1 - confidence) / len(every.requests)

    def choose(group: int, tally: Tally) -> Selection:
        measured[every.source.keys[group]] = measure(every.requests[group], lambda: tally, sure)
        return Selection(np.zeros(1, np.int64))

    # A source by group has the tallies of all groups in one snapshot; which items they are does not matter here.
    every.source.select_items(choose, False)
    drawn = any(one.confidence is not None for one in measured.values())
    # Where one was drawn, what holds for all is said of each.
    return {key: replace(one, confidence=confidence) for key, one in measured.items()} if drawn else measured


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
