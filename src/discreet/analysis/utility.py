"""How good a release will be: the probability that it is the true top-k, or nearly.

Computed from the scores, so NOT private: for public or made-up data, or for choosing a mechanism and an epsilon on data
of the same kind. What is good enough is in `goals`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar, overload

import numpy as np

from discreet.analysis.goals import GOALS, check_share, goals
from discreet.analysis.joint_sets import make_analysis_request, make_grouped_analysis_request
from discreet.analysis.meters import Meter, Precision, meter
from discreet.analysis.results import NOT_PRIVATE, Expected, GroupedUtility, describe_origin
from discreet.analysis.results import Utility as Utility
from discreet.analysis.statistics import check_confidence
from discreet.errors import InvalidValueError, quote
from discreet.grouped_request import GroupedRequest
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Number, Sensitivity, exact
from discreet.request import Request
from discreet.selection import Selection
from discreet.sources.groups import GroupedSource
from discreet.tally import Tally

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
    share: Number | None = None,
    width: Number = "0.1",
    confidence: Number = "0.99",
) -> Utility | GroupedUtility:
    """How likely a release is to be good, from the scores: NOT private, for public or made-up data.

    Parameters
    ----------
    scores
        What `top_k` takes, by group or not; or a `Sketch`, and then what is told is as private as that.
    k, epsilon, mechanism, sensitivity, adjacency
        What `top_k` would be given.
    share
        Give as recall the probability that at least this share of the released items is right, "0.9" for nine in ten,
        in place of the expected share.
    width
        Where there is no formula (canonical and peeling with other noises than Gumbel): how wide an interval
        around each probability may be, which decides how many releases are drawn.
    confidence
        The probability that all these intervals cover.

    Returns
    -------
    Utility
        The probabilities of the goals, the expected share that is right, and what they may be off by. Of scores by
        group a GroupedUtility: those of each group at its share of epsilon, and the mean over groups of each.

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

    def measure(one: Request, read: Callable[[], Tally], sure: Fraction) -> Utility:
        return measure_list(one, read, replace(precision, confidence=sure), enough)

    return GroupedUtility(measure_groups(make_grouped_analysis_request(scores, *terms), precision.confidence, measure))


def measure_list(request: Request, read: Callable[[], Tally], precision: Precision, enough: Fraction | None) -> Utility:
    """The utility of one list, whose scores are read where they matter."""
    if request.k == request.d:
        return Utility(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, share=enough, origin=describe_origin(request.source, request.k))
    tally = read()
    found = meter(tally, request.k, request.guarantee, goals(tally, request.k, enough), precision)
    return at_epsilon(found, request.guarantee.epsilon, enough, describe_origin(request.source, request.k))


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


def at_epsilon(meter: Meter, epsilon: Fraction, share: Fraction | None = None, origin: str = NOT_PRIVATE) -> Utility:
    """The utility at one epsilon, read from a meter of all goals."""
    shares = meter(epsilon)
    return Utility(
        **{name: shares.values[name] for name in GOALS},
        error=shares.error,
        confidence=shares.confidence,
        share=share,
        origin=origin,
    )


def check_width(value: Any) -> Fraction:
    """The width of an interval, exactly."""
    number = exact(value, "width")
    if not _LEAST_WIDTH <= number < 1:
        raise InvalidValueError(f"width must be from 0.001 to less than 1, not {quote(value)}")
    return number
