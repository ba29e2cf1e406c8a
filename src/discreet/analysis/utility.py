"""Compute the utility of a release from the scores: probabilities of goals, averages, classes and single sets.

All of it is NOT private: for public or made-up data, or for choosing a mechanism and an epsilon on data of the same
kind. `goals` defines the goals, `meters` computes their probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from typing import Any, TypeVar, overload

import numpy as np

from discreet.analysis.canonical_odds import cells_of
from discreet.analysis.found import among_found, as_released, check_listed
from discreet.analysis.goals import (
    GOALS,
    Hits,
    check_confidence,
    check_share,
    count_right_ranks,
    describe_ranks,
    draws_needed,
    goals,
)
from discreet.analysis.joint_odds import Layers, draw_by, make_analysis_request, make_grouped_analysis_request
from discreet.analysis.meters import (
    MOST_VALUES,
    Meter,
    Precision,
    check_always_k,
    check_computed,
    compute_set_chance_of_race,
    meter,
)
from discreet.analysis.race_odds import Chance
from discreet.analysis.results import NOT_PRIVATE, Expected, GroupedExpected, GroupedUtility, describe_origin
from discreet.analysis.results import Utility as Utility
from discreet.analysis.shortfall_odds import (
    compute_shortfall,
    count_draws_for_shortfall,
    find_shortfall_of_classes,
    find_shortfall_of_draws,
)
from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.discrete import interval_half_width
from discreet.exact.entropy import as_entropy
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.sampler import Sampler
from discreet.mechanisms.tally import Tally, to_float
from discreet.privacy import Number, Sensitivity, exact
from discreet.release.counts import MISS_PROBABILITY
from discreet.release.request import GroupedRequest, Request, make_listed_request
from discreet.sources.base import GroupedSource, Source

_LEAST_WIDTH = Fraction(1, 1000)
"""The least width of a sampled interval, which takes more than ten million draws."""


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """The probability of each class of sets. NOT private: computed from the scores.

    Attributes
    ----------
    h, t
        The number of best ranks that the sets of a class hold in a row, and their worst rank, from 1. The top-k itself,
        with h = t = k, comes first.
    probability
        The probability of each class; omitted classes have less than 1e-10 together.
    error
        The error of a sum of probabilities.
    """

    h: Ranks
    t: Ranks
    probability: Floats
    error: float

    def __str__(self) -> str:
        best = np.argsort(-self.probability)[:5]
        shown_ones = "  ".join(f"({self.h[i]}, {self.t[i]}) {self.probability[i]:.6f}" for i in best)
        return f"{len(self.h)} classes (h, t), the likeliest: {shown_ones}  ({NOT_PRIVATE})"


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
    share: Number | None = None,
    width: Number = "0.1",
    confidence: Number = "0.99",
) -> Utility | GroupedUtility:
    """Return the probability that a release is good, from the scores: NOT private, for public or made-up data.

    Parameters
    ----------
    scores
        The scores as in `top_k`, by group or not; or a `Sketch`, whose utility is post-processing.
    k, epsilon, mechanism, sensitivity, adjacency
        As in `top_k`.
    share
        Return as recall the probability that at least this share of the released items is right, "0.9" for nine in
        ten, in place of the expected share.
    width
        If there is no formula (canonical and peeling with noises other than Gumbel): the width of the interval around
        each sampled probability, which determines the number of draws.
    confidence
        The probability that all these intervals cover.

    Returns
    -------
    Utility
        The probabilities of the goals, the expected share of right items, and their error. For scores by group, a
        GroupedUtility: those of each group at its share of epsilon, and their means over groups.

    Examples
    --------
    >>> import discreet
    >>> discreet.utility([90, 80, 5, 1], k=2, epsilon=1).top > 0.999
    True
    >>> round(discreet.utility([90, 80, 70, 5, 1], k=3, epsilon="0.1", share="0.6").recall, 3)
    0.989
    """
    enough = check_share(share)
    precision = Precision(width=check_width(width), confidence=check_confidence(confidence))
    terms = k, epsilon, mechanism, sensitivity, adjacency
    if not isinstance(scores, GroupedSource):
        request = make_analysis_request(scores, *terms)
        return measure_list(request, request.source.tally, precision, enough)

    def measure(one: Request, tally: Tally, sure: Fraction) -> Utility:
        return measure_list(one, lambda: tally, replace(precision, confidence=sure), enough)

    return GroupedUtility(measure_groups(make_grouped_analysis_request(scores, *terms), precision.confidence, measure))


def measure_list(request: Request, read: Callable[[], Tally], precision: Precision, enough: Fraction | None) -> Utility:
    """Return the utility of one list, whose scores are read only if they matter."""
    if request.k == request.d:
        return Utility(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, share=enough, origin=describe_origin(request.source, request.k))
    tally = read()
    found = meter(tally, request.k, request.guarantee, goals(tally, request.k, enough), precision)
    return at_epsilon(found, request.guarantee.epsilon, enough, describe_origin(request.source, request.k))


Measured = TypeVar("Measured", Utility, Expected)


def measure_groups(
    every: GroupedRequest,
    confidence: Fraction,
    measure: Callable[[Request, Tally, Fraction], Measured],
) -> dict[Any, Measured]:
    """Measure each group, with a confidence per group that makes all groups hold together (union bound)."""
    measured: dict[Any, Measured] = {}
    sure = 1 - (1 - confidence) / len(every.requests)
    with every.source.snapshot() as snapshot:
        for key, request, tally in zip(every.source.keys, every.requests, snapshot.tallies(), strict=True):
            measured[key] = measure(request, tally, sure)
    drawn = any(one.confidence is not None for one in measured.values())
    # If any group was sampled, each states the confidence of all groups together.
    return {key: replace(one, confidence=confidence) for key, one in measured.items()} if drawn else measured


def at_epsilon(meter: Meter, epsilon: Fraction, share: Fraction | None = None, origin: str = NOT_PRIVATE) -> Utility:
    """Return the utility at one epsilon, from a meter of all goals."""
    shares = meter(epsilon)
    return Utility(
        **{name: shares.values[name] for name in GOALS},
        error=shares.error,
        confidence=shares.confidence,
        share=share,
        origin=origin,
    )


def check_width(value: Any) -> Fraction:
    """Return the width of an interval, exactly."""
    number = exact(value, "width")
    if not _LEAST_WIDTH <= number < 1:
        raise InvalidValueError(f"width must be from 0.001 to less than 1, not {quote(value)}")
    return number


@overload
def expected(scores: GroupedSource, k: int, epsilon: Number, *given: Any, **options: Any) -> GroupedExpected: ...
@overload
def expected(scores: Any, k: int, epsilon: Number, *given: Any, **options: Any) -> Expected: ...
def expected(
    scores: Any,
    k: int,
    epsilon: Number,
    mechanism: Mechanism | None = None,
    *,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
    counts: Number | None = None,
    split: str | None = None,
    width: Number = "0.1",
    confidence: Number = "0.99",
) -> Expected | GroupedExpected:
    """Return the recall, the score error, the quality of the order and the shortfall of a release.

    NOT private, because it is computed from the scores: for public or made-up data. The parameters are those of
    `utility`, and `counts` and `split` those of `top_k`. The recall is computed, except for canonical and peeling with
    noises other than Gumbel, which are sampled; the score error is computed for canonical with Gumbel noise. Sampled
    averages are within `width`: the score error as a share of the range of the scores, Kendall's tau within twice that.
    The quantiles of the shortfall are computed for canonical with Gumbel noise, and up to k = 10 for one-shot, peeling
    with Gumbel noise and the histogram; otherwise they are upper bounds from draws. For scores by group all are given
    for each group, and recall and score error over all groups.

    Examples
    --------
    >>> import discreet
    >>> discreet.expected([90, 80, 5, 1], k=2, epsilon=1).recall > 0.999
    True
    >>> discreet.expected([90, 80, 5, 1], k=2, epsilon=1, counts="0.5").count_width
    Fraction(24, 1)
    >>> discreet.expected([90, 80, 75, 1], k=2, epsilon="0.5").shortfall.describe(" people")
    'typically 0, at most 5 people in 19 of 20 releases'
    """
    sure, apart = check_confidence(confidence), check_width(width)
    own = mechanism if isinstance(mechanism, Sampler) else None
    request = make_listed_request(
        scores,
        k,
        epsilon,
        mechanism=None if own is not None else mechanism,
        sensitivity=sensitivity,
        adjacency=adjacency,
        counts=counts,
        split=split,
    )
    if request.groups is not None:
        if own is not None:
            raise InvalidTypeError("scores must be of one list of items for a Sampler, not of several groups")
        return GroupedExpected(
            measure_groups(request, sure, lambda one, tally, surer: _expect(one, lambda: tally, apart, surer))
        )
    asked = among_found(request if own is None else draw_by(request, own))
    found = _expect(asked, request.source.tally, apart, sure)
    return replace(found, origin=describe_origin(request.source, request.k))


def _expect(request: Request, read: Callable[[], Tally], apart: Fraction, sure: Fraction) -> Expected:
    """Return the averages of one list, whose scores are read only if they matter."""
    counting, values, wide = request.count_mechanism, request.value_format, None
    if values is not None:
        wide = 2 * values.grid * values.half_width
    elif counting is not None:
        wide = 2 * counting.grid * interval_half_width(counting.rate, MISS_PROBABILITY)
    if request.takes_all_items:
        return Expected(1.0, 0.0, 0.0, 0.0, count_width=wide)
    check_always_k(request.guarantee.mechanism)
    tally, k, form = read(), request.k, request.guarantee.mechanism.form
    right = count_right_ranks(tally, k)
    if form is Form.CLASSES:
        # A set of a class holds rank t and all ranks below h; the ranks between are equally likely.
        prepared: Any = request.prepare(tally)
        cells = cells_of(prepared)
        h, t, chance = cells.h, cells.t, cells.probability
        held = np.where(t < right, k, h + (k - 1 - h) * (right - h - 1) / np.maximum(t - h - 1, 1))
        recall = min(1.0, cells.top + float((chance * held).sum()) / k)
        below = float((chance * tally.gaps(np.full(len(t), k - 1), t, Fraction(1))).sum())
        shortfall = find_shortfall_of_classes(tally, h, t, chance, cells.top, cells.error)
        off = cells.error * _largest_gap(tally, k)
        return Expected(recall, below, cells.error, off, count_width=wide, shortfall=shortfall)
    drawn = _sample_averages(tally, request, right, apart, sure)
    computed = compute_shortfall(request.guarantee.mechanism, request.prepare(tally), tally)
    if computed is not None:
        drawn = replace(drawn, shortfall=computed)
    if form is not Form.UNKNOWN:
        found = meter(tally, k, request.guarantee, {"recall": Hits(right)})(request.guarantee.selection_epsilon)
        drawn = replace(drawn, recall=found.values["recall"], recall_off=found.error)
    return replace(drawn, count_width=wide)


def _largest_gap(tally: Tally, k: int) -> float:
    """Return the k-th score minus the least."""
    return float(tally.gaps(np.array([k - 1]), np.array([tally.d - 1]), Fraction(1))[0])


def _sample_averages(tally: Tally, request: Request, right: int, width: Fraction, sure: Fraction) -> Expected:
    """Estimate all averages from draws, with errors by Hoeffding's inequality."""
    k, ordered = request.k, request.guarantee.mechanism.ordered
    # Two averages, or four for an ordered release, each with two sides, and two quantiles with one side.
    off, alpha = float(width) / 2.0, float(1 - sure) / (10.0 if ordered else 6.0)
    draws, entropy = max(draws_needed(off, alpha), count_draws_for_shortfall(alpha)), as_entropy(None)
    prepared = as_released(request.prepare(tally))
    lists = [prepared.draw(entropy) for _ in range(draws)]
    # The last ranks stand for the items that a short list lacks, which have no part in its shortfall.
    ranks = np.array([np.append(each, np.arange(tally.d - k + len(each), tally.d)) for each in lists])
    recall = float((ranks < right).mean())
    below = float(tally.gaps(np.full(draws, k - 1), ranks.max(axis=1), Fraction(1)).mean())
    shortfall = find_shortfall_of_draws(tally, lists, alpha, sure)
    found = Expected(recall, below, off, off * _largest_gap(tally, k), sure, shortfall=shortfall)
    if not ordered:
        return found
    level = _first_of_equals(tally, ranks)
    places = float((level == _first_of_equals(tally, np.arange(k))).mean())
    signs = sum(float(np.sign(level[:, i + 1 :] - level[:, i : i + 1]).sum()) for i in range(k - 1))
    kendall = 2.0 * signs / (draws * k * (k - 1)) if k > 1 else 0.0
    # Kendall's tau lies in [-1, 1], the other averages in [0, 1].
    return replace(found, places=places, kendall=kendall, places_off=off, kendall_off=2.0 * off)


def _first_of_equals(tally: Tally, ranks: Ranks) -> Ranks:
    """Return, for each rank, the first rank that has the same score."""
    different, back = np.unique(ranks, return_inverse=True)
    equal = tally.gaps(different[:-1], different[1:], Fraction(1)) == 0.0
    starts = np.where(np.append(False, equal), -1, different)
    return np.maximum.accumulate(starts)[back].reshape(ranks.shape)


def class_probabilities(
    scores: Any,
    k: int,
    epsilon: Number,
    mechanism: Mechanism | None = None,
    *,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
) -> ClassProbabilities:
    """Return the probability of each class (h, t) of sets under the canonical mechanism with Gumbel noise.

    NOT private, because it is computed from the scores: for public or made-up data. The parameters are those of
    `utility`.

    Examples
    --------
    >>> import discreet
    >>> classes = discreet.class_probabilities([9, 7, 6, 1], k=2, epsilon=1)
    >>> [(int(h), int(t)) for h, t in zip(classes.h, classes.t)]
    [(2, 2), (0, 3), (0, 4), (1, 3), (1, 4)]
    >>> round(float(classes.probability.sum()), 9)
    1.0
    """
    request = make_analysis_request(scores, k, epsilon, mechanism, sensitivity, adjacency)
    check_listed(request)
    if request.guarantee.mechanism.form is not Form.CLASSES:
        raise InvalidValueError(f"mechanism must be canonical with gumbel noise, not {request.guarantee.mechanism!r}")
    if request.takes_all_items:
        return ClassProbabilities(np.array([k]), np.array([k]), np.ones(1), 0.0)
    prepared: Any = request.prepare(request.source.tally())
    cells = cells_of(prepared)
    return ClassProbabilities(
        np.append(k, cells.h), np.append(k, cells.t + 1), np.append(cells.top, cells.probability), cells.error
    )


def subset_probability(
    scores: Any,
    subset: Iterable[Hashable],
    epsilon: Number,
    mechanism: Mechanism | None = None,
    *,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
) -> Chance:
    """Return the probability that a release consists of exactly these items, and its error.

    NOT private, because it is computed from the scores: for public or made-up data.

    Parameters
    ----------
    scores, epsilon, mechanism, sensitivity, adjacency
        As in `top_k`. The mechanism must be one whose probabilities are computed: canonical or peeling with Gumbel
        noise, one-shot or joint.
    subset
        The labels of the items; k is their number.

    Examples
    --------
    >>> import discreet
    >>> discreet.subset_probability({"dune": 9, "alien": 7, "heat": 2}, ["dune", "alien"], epsilon=2).value > 0.99
    True
    """
    items = _distinct(subset)
    request = make_analysis_request(scores, len(items), epsilon, mechanism, sensitivity, adjacency)
    check_listed(request)
    chosen = request.guarantee.mechanism
    check_always_k(chosen)
    check_computed(chosen)
    if request.k == request.d:
        return Chance(1.0, 0.0)
    with request.source.snapshot() as snapshot:
        ranks = _ranks(request.source, items)
    prepared: Any = request.prepare(snapshot.tally)
    if chosen.form is Form.RACE:
        return compute_set_chance_of_race(prepared, ranks)
    if chosen.form is Form.LOSSES:
        shares, error = Layers.of_set(prepared.tally, chosen, ranks).shares(to_float(prepared.rate), 1e-9)
        return Chance(shares[0], error)
    # All sets of a class are equally likely: one weighs exp(-excess), relative to the top-k.
    cells = cells_of(prepared)
    h, t = describe_ranks(ranks)
    excess = Fraction(0) if h == len(ranks) else prepared.classes.losses.excess(h, t - 1)
    value = exp(-min(to_float(excess) + cells.log_total, 1e6))
    return Chance(value, value * (cells.error + 1e-12))


def _distinct(subset: Any) -> list[Any]:
    """Return the items as a list; raise unless they are distinct labels."""
    if isinstance(subset, str | bytes) or not isinstance(subset, Iterable):
        raise InvalidTypeError(f"subset must be a list of items, not {quote(subset)}")
    items = list(subset)
    if not all(isinstance(item, Hashable) for item in items):
        raise InvalidTypeError(f"subset must be a list of labels, not {quote(subset)}")
    if len(set(items)) < len(items) or not items:
        raise InvalidValueError(f"subset must be one item or more, each once, not {quote(subset)}")
    return items


def _ranks(source: Source, items: list[Any]) -> Ranks:
    """Return the ranks of some items, ascending."""
    if source.d > MOST_VALUES:
        raise InvalidValueError(f"scores must be of at most {MOST_VALUES} items to find some of them, not {source.d}")
    place = {item: rank for rank, item in enumerate(source.items(np.arange(source.d)))}
    for item in items:
        if item not in place:
            raise InvalidValueError(f"subset must be of items that have scores, and {quote(item)} has none")
    return np.array(sorted(place[item] for item in items), np.int64)
