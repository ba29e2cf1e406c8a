"""What a release will be like on average: how much of it is right, how far off its worst item, how good its order.

Computed from the scores, so NOT private: for public or made-up data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, overload

import numpy as np

from discreet.analysis.classes import Cells, cells_of
from discreet.analysis.goals import Hits, count_right_ranks
from discreet.analysis.joint_sets import draw_by
from discreet.analysis.meters import check_always_k, meter
from discreet.analysis.results import Expected, GroupedExpected, describe_origin
from discreet.analysis.statistics import check_confidence, draws_needed
from discreet.analysis.utility import check_width, measure_groups
from discreet.counts import MISS_PROBABILITY
from discreet.errors import InvalidTypeError
from discreet.exact.arrays import Ranks
from discreet.exact.entropy import as_entropy
from discreet.exact.laplace import interval_half_width
from discreet.grouped_request import GroupedRequest, make_listed_request
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.sampler import Sampler
from discreet.privacy import Number, Sensitivity
from discreet.request import Request
from discreet.sources.groups import GroupedSource
from discreet.tally import Tally


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
    """How much of a release is right, how far its worst score is below the k-th, and how good its order is, on average.

    Computed from the scores, so NOT private: for public or made-up data. The parameters are those of `utility`, and
    `counts` and `split` those of `top_k`. The recall is computed but where only draws tell (canonical and peeling with
    other noises than Gumbel); the score error is computed for canonical with Gumbel noise. What is estimated from draws
    is within `width`, of the score error as a share of the range of the scores, of Kendall's tau twice that.
    Of scores by group all are given for each group, and recall and score error over all.

    Examples
    --------
    >>> import discreet
    >>> discreet.expected([90, 80, 5, 1], k=2, epsilon=1).recall > 0.999
    True
    >>> discreet.expected([90, 80, 5, 1], k=2, epsilon=1, counts="0.5").count_width
    Fraction(24, 1)
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
    if isinstance(request, GroupedRequest):
        if own is not None:
            raise InvalidTypeError("scores must be of one list of items for a Sampler, not of several groups")
        return GroupedExpected(measure_groups(request, sure, lambda one, read, surer: _expect(one, read, apart, surer)))
    asked = request if own is None else draw_by(request, own)
    found = _expect(asked, request.source.tally, apart, sure)
    return replace(found, origin=describe_origin(request.source, request.k))


def _expect(request: Request, read: Callable[[], Tally], apart: Fraction, sure: Fraction) -> Expected:
    wide = _count_width(request)
    if request.takes_all_items:
        return Expected(1.0, 0.0, 0.0, 0.0, count_width=wide)
    check_always_k(request.guarantee.mechanism)
    tally, form = read(), request.guarantee.mechanism.form
    if form is Form.CLASSES:
        prepared: Any = request.prepare(tally)
        return replace(_on_average(tally, request.k, cells_of(prepared)), count_width=wide)
    drawn = _by_draws(tally, request, apart, sure)
    if form is not Form.UNKNOWN:
        hits = {"recall": Hits(count_right_ranks(tally, request.k))}
        found = meter(tally, request.k, request.guarantee, hits)(request.guarantee.selection_epsilon)
        drawn = replace(drawn, recall=found.values["recall"], recall_off=found.error)
    return replace(drawn, count_width=wide)


def _count_width(request: Request) -> Fraction | None:
    """How wide the interval of a count or a value is, where there are some."""
    counting, form = request.count_mechanism, request.value_format
    if form is not None:
        return 2 * form.grid * form.half_width
    if counting is None:
        return None
    return 2 * counting.grid * interval_half_width(counting.rate, MISS_PROBABILITY)


def _on_average(tally: Tally, k: int, cells: Cells) -> Expected:
    """In a class, rank t and all ranks below h are taken, and of those between any are equally likely."""
    h, t, right = cells.h, cells.t, count_right_ranks(tally, k)
    between = np.maximum(t - h - 1, 1)
    held = np.where(t < right, k, h + (k - 1 - h) * (right - h - 1) / between)
    below = tally.gaps(np.full(len(t), k - 1), t, Fraction(1))
    chance = cells.probability
    recall = min(1.0, cells.top + float((chance * held).sum()) / k)
    return Expected(recall, float((chance * below).sum()), cells.error, cells.error * _largest_gap(tally, k))


def _largest_gap(tally: Tally, k: int) -> float:
    """How far the worst score of all is below the k-th."""
    return float(tally.gaps(np.array([k - 1]), np.array([tally.d - 1]), Fraction(1))[0])


def _by_draws(tally: Tally, request: Request, width: Fraction, sure: Fraction) -> Expected:
    """By Hoeffding's inequality, for averages of numbers between 0 and 1, of tau between -1 and 1, or up to a gap."""
    k, ordered = request.k, request.guarantee.mechanism.ordered
    # Two averages or four, each off on either side.
    off = float(width) / 2.0
    draws, entropy = draws_needed(off, float(1 - sure) / (8.0 if ordered else 4.0)), as_entropy(None)
    prepared = request.prepare(tally)
    ranks = np.array([prepared.draw(entropy) for _ in range(draws)])
    recall = float((ranks < count_right_ranks(tally, k)).mean())
    below = float(tally.gaps(np.full(draws, k - 1), ranks.max(axis=1), Fraction(1)).mean())
    found = Expected(recall, below, off, off * _largest_gap(tally, k), sure)
    if not ordered:
        return found
    # Ranks of equal scores count as one: the first of them.
    level = _first_of_equals(tally, ranks)
    places = float((level == _first_of_equals(tally, np.arange(k))).mean())
    return replace(found, places=places, kendall=_kendall(level), places_off=off, kendall_off=2.0 * off)


def _first_of_equals(tally: Tally, ranks: Ranks) -> Ranks:
    """The first rank that has the same score as each of some ranks."""
    different, back = np.unique(ranks, return_inverse=True)
    equal = tally.gaps(different[:-1], different[1:], Fraction(1)) == 0.0
    starts = np.where(np.append(False, equal), -1, different)
    return np.maximum.accumulate(starts)[back].reshape(ranks.shape)


def _kendall(levels: Ranks) -> float:
    """The mean over rows of the share of pairs in ascending order, less that of pairs in descending order."""
    k = levels.shape[1]
    signs = sum(float(np.sign(levels[:, i + 1 :] - levels[:, i : i + 1]).sum()) for i in range(k - 1))
    return 2.0 * signs / (len(levels) * k * (k - 1)) if k > 1 else 0.0
