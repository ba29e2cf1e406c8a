"""More about a release than four goals: which classes, how likely one set is, how many are right, how far off.

Computed from the scores, so NOT private: for public or made-up data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any, overload

import numpy as np

from discreet.analysis.classes import Cells, cells_of
from discreet.analysis.joint_sets import make_analysis_request
from discreet.analysis.layers import Layers
from discreet.analysis.results import NOT_PRIVATE, Expected, GroupedExpected
from discreet.analysis.shots import Chance
from discreet.analysis.statistics import check_confidence, draws_needed
from discreet.analysis.utility import MOST_VALUES, Race, check_computed, check_width, describe_ranks, measure_groups
from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import as_entropy
from discreet.grouped_request import GroupedRequest, make_listed_request
from discreet.mechanisms import canonical, joint
from discreet.mechanisms.base import Form, Mechanism
from discreet.privacy import Number, Sensitivity
from discreet.request import Request
from discreet.sources.base import Source
from discreet.sources.groups import GroupedSource
from discreet.tally import Tally, to_float


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """How likely each class of sets is. NOT private: computed from the scores.

    Attributes
    ----------
    h, t
        How many of the best ranks the sets of a class hold in a row, and their worst rank, from 1. The top-k itself,
        with h = t = k, comes first.
    probability
        How likely each class is; those left out have less than 1e-10 together.
    error
        What a sum of probabilities may be off by.
    """

    h: Ranks
    t: Ranks
    probability: Floats
    error: float

    def __str__(self) -> str:
        best = np.argsort(-self.probability)[:5]
        shown_ones = "  ".join(f"({self.h[i]}, {self.t[i]}) {self.probability[i]:.6f}" for i in best)
        return f"{len(self.h)} classes (h, t), the likeliest: {shown_ones}  ({NOT_PRIVATE})"


def class_probabilities(
    scores: Any,
    k: int,
    epsilon: Number,
    mechanism: Mechanism | None = None,
    *,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
) -> ClassProbabilities:
    """How likely each class (h, t) of sets is under the canonical mechanism with Gumbel noise.

    Computed from the scores, so NOT private: for public or made-up data. The parameters are those of `utility`.

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
    """How likely a release is to be just these items: a value, and what it may be off by.

    Computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    scores, epsilon, mechanism, sensitivity, adjacency
        What `top_k` would be given. The mechanism must be one whose probabilities are computed: canonical or peeling
        with Gumbel noise, one-shot or joint.
    subset
        The items, by label; k is how many they are.

    Examples
    --------
    >>> import discreet
    >>> discreet.subset_probability({"dune": 9, "alien": 7, "heat": 2}, ["dune", "alien"], epsilon=2).value > 0.99
    True
    """
    items = _distinct(subset)
    request = make_analysis_request(scores, len(items), epsilon, mechanism, sensitivity, adjacency)
    chosen = request.guarantee.mechanism
    check_computed(chosen)
    if request.takes_all_items:
        return Chance(1.0, 0.0)
    ranks = _ranks(request.source, items)
    return _SET_FORMULAS[chosen.form](chosen, request.prepare(request.source.tally()), ranks)


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
    width: Number = "0.1",
    confidence: Number = "0.99",
) -> Expected | GroupedExpected:
    """The share of the true top-k that is released, and how far its worst score is below the k-th, on average.

    Computed from the scores, so NOT private: for public or made-up data. The parameters are those of `utility`;
    `width` is that of the recall's interval, and of the score error's as a share of the range of the scores, where the
    mechanism is not canonical with Gumbel noise. Of scores by group both are given for each group, and over all.

    Examples
    --------
    >>> import discreet
    >>> discreet.expected([90, 80, 5, 1], k=2, epsilon=1).recall > 0.999
    True
    """
    sure, apart = check_confidence(confidence), check_width(width)
    request = make_listed_request(scores, k, epsilon, mechanism=mechanism, sensitivity=sensitivity, adjacency=adjacency)
    if isinstance(request, GroupedRequest):
        return GroupedExpected(measure_groups(request, sure, lambda one, read, surer: _expect(one, read, apart, surer)))
    return _expect(request, request.source.tally, apart, sure)


def _expect(request: Request, read: Callable[[], Tally], apart: Fraction, sure: Fraction) -> Expected:
    if request.takes_all_items:
        return Expected(1.0, 0.0, 0.0, 0.0)
    tally = read()
    prepared: Any = request.prepare(tally)
    if request.guarantee.mechanism.form is Form.CLASSES:
        return _on_average(tally, request.k, cells_of(prepared))
    return _by_draws(tally, request.k, prepared, apart, sure)


def _distinct(subset: Any) -> list[Any]:
    if isinstance(subset, str | bytes) or not isinstance(subset, Iterable):
        raise InvalidTypeError(f"subset must be a list of items, not {shown(subset)}")
    items = list(subset)
    if not all(isinstance(item, Hashable) for item in items):
        raise InvalidTypeError(f"subset must be a list of labels, not {shown(subset)}")
    if len(set(items)) < len(items) or not items:
        raise InvalidValueError(f"subset must be one item or more, each once, not {shown(subset)}")
    return items


def _ranks(source: Source, items: list[Any]) -> Ranks:
    """The ranks of some items, ascending."""
    if source.d > MOST_VALUES:
        raise InvalidValueError(f"scores must be of at most {MOST_VALUES} items to find some of them, not {source.d}")
    place = {item: rank for rank, item in enumerate(source.items(np.arange(source.d)))}
    for item in items:
        if item not in place:
            raise InvalidValueError(f"subset must be of items that have scores, and {shown(item)} has none")
    return np.array(sorted(place[item] for item in items), np.int64)


def _of_class(mechanism: Mechanism, prepared: canonical.Prepared, ranks: Ranks) -> Chance:
    """All sets of a class are equally likely: the weight of one is exp(-excess), that of the top-k being 1."""
    cells = cells_of(prepared)
    h, t = describe_ranks(ranks)
    excess = Fraction(0) if h == len(ranks) else prepared.classes.losses.excess(h, t - 1)
    value = exp(-min(to_float(excess) + cells.log_total, 1e6))
    return Chance(value, value * (cells.error + 1e-12))


def _of_loss(mechanism: Mechanism, prepared: joint.Prepared, ranks: Ranks) -> Chance:
    shares, error = Layers.of_set(prepared.tally, mechanism, ranks).shares(to_float(prepared.rate), 1e-9)
    return Chance(shares[0], error)


def _of_race(mechanism: Mechanism, prepared: Any, ranks: Ranks) -> Chance:
    return Race.of(prepared).shots(1e-10, first=ranks).first()


_SET_FORMULAS: dict[Form, Callable[[Mechanism, Any, Ranks], Chance]] = {
    Form.CLASSES: _of_class,
    Form.LOSSES: _of_loss,
    Form.RACE: _of_race,
}


def _on_average(tally: Tally, k: int, cells: Cells) -> Expected:
    """In a class, rank t and all ranks below h are taken, and of those between any are equally likely."""
    h, t = cells.h, cells.t
    between = np.maximum(t - h - 1, 1)
    held = h + (k - 1 - h) * (k - 1 - h) / between
    below = tally.gaps(np.full(len(t), k - 1), t, Fraction(1))
    chance = cells.probability
    most = float(tally.gaps(np.array([k - 1]), np.array([tally.d - 1]), Fraction(1))[0])
    recall = min(1.0, cells.top + float((chance * held).sum()) / k)
    return Expected(recall, float((chance * below).sum()), cells.error, cells.error * most)


def _by_draws(tally: Tally, k: int, prepared: Any, width: Fraction, sure: Fraction) -> Expected:
    """By Hoeffding's inequality, for two averages of numbers between 0 and 1 or the largest gap."""
    # Two averages, each off on either side.
    off = float(width) / 2.0
    draws, entropy = draws_needed(off, float(1 - sure) / 4.0), as_entropy(None)
    ranks = np.array([np.sort(prepared.draw(entropy)) for _ in range(draws)])
    recall = float((ranks < k).mean())
    below = tally.gaps(np.full(draws, k - 1), ranks[:, -1], Fraction(1))
    most = float(tally.gaps(np.array([k - 1]), np.array([tally.d - 1]), Fraction(1))[0])
    return Expected(recall, float(below.mean()), off, off * most, sure)
