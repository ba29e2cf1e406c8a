"""More about a release than the goals: which classes, and how likely one set is.

Computed from the scores, so NOT private: for public or made-up data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np

from discreet.analysis.classes import cells_of
from discreet.analysis.goals import describe_ranks
from discreet.analysis.joint_sets import make_analysis_request
from discreet.analysis.layers import Layers
from discreet.analysis.meters import MOST_VALUES, Race, check_always_k, check_computed
from discreet.analysis.results import NOT_PRIVATE
from discreet.analysis.shots import Chance
from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.mechanisms import canonical, joint
from discreet.mechanisms.base import Form, Mechanism
from discreet.privacy import Number, Sensitivity
from discreet.sources.base import Source
from discreet.tally import to_float


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
    check_always_k(chosen)
    check_computed(chosen)
    if request.k == request.d:
        return Chance(1.0, 0.0)
    with request.source.exclusive():
        tally = request.source.tally()
        ranks = _ranks(request.source, items)
        request.source.close()
    return _SET_FORMULAS[chosen.form](chosen, request.prepare(tally), ranks)


def _distinct(subset: Any) -> list[Any]:
    if isinstance(subset, str | bytes) or not isinstance(subset, Iterable):
        raise InvalidTypeError(f"subset must be a list of items, not {quote(subset)}")
    items = list(subset)
    if not all(isinstance(item, Hashable) for item in items):
        raise InvalidTypeError(f"subset must be a list of labels, not {quote(subset)}")
    if len(set(items)) < len(items) or not items:
        raise InvalidValueError(f"subset must be one item or more, each once, not {quote(subset)}")
    return items


def _ranks(source: Source, items: list[Any]) -> Ranks:
    """The ranks of some items, ascending."""
    if source.d > MOST_VALUES:
        raise InvalidValueError(f"scores must be of at most {MOST_VALUES} items to find some of them, not {source.d}")
    place = {item: rank for rank, item in enumerate(source.items(np.arange(source.d)))}
    for item in items:
        if item not in place:
            raise InvalidValueError(f"subset must be of items that have scores, and {quote(item)} has none")
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
