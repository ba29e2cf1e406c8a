"""Many releases of one input, by the code that `top_k` runs.

What is done before the first random bit (sort the scores, cut the classes into boxes) has one outcome, so a batch of
draws shares it: the first release of a batch comes from `top_k` itself, the others from what it calls. Some batches
hand the same scores over among so many hopeless items that they are put into buckets, or counted, and that the chosen
ones are looked up in a large array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet import topk
from discreet.evidence import definition
from discreet.evidence.neighbours import Scores
from discreet.evidence.report import Outcome
from discreet.evidence.visible_laws import label, label_scores, outcome_of
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.privacy import Sensitivity
from discreet.release import Release
from discreet.request import Request, make_request
from discreet.selection import Selection
from discreet.sources.arrays.array import ArraySource, array_source
from discreet.sources.arrays.sorting import LARGE
from discreet.sources.base import Source
from discreet.tally import Tally

_BATCH = 100
_TURNS = ("small", "small", "buckets", "small", "small", "counted", "small", "small", "buckets", "small")
"""The form in which a batch hands the scores over, in turn."""

_APART = LARGE // 32
"""How far apart the items are in a large array."""

_SURE, _DECOYS_SURE = 50.0, 20.0
"""All hopeless items together are drawn with a probability below e^-50, a set of decoys and others with e^-20."""

_SPREAD = 1000
"""The distance between the scores of hopeless items that are to fill buckets."""


@dataclass(frozen=True)
class Input:
    """Scores that releases are drawn from, and what those promise.

    Attributes
    ----------
    scores
        The scores of items a, b, c, ....
    k
        How many items are released.
    epsilon
        The budget of each release.
    mechanism
        How they are drawn.
    sensitivity
        How far adding one user can move a score.
    adjacency
        What two neighbouring inputs differ by.
    """

    scores: Scores
    k: int
    epsilon: Fraction
    mechanism: Mechanism
    sensitivity: Sensitivity
    adjacency: str

    def request(self, source: Source | None = None) -> Request:
        """What is asked of these scores, or of a source that hands them over in another form."""
        return make_request(
            label_scores(self.scores) if source is None else source, self.k, self.epsilon,
            mechanism=self.mechanism, sensitivity=self.sensitivity, adjacency=self.adjacency,
        )  # fmt: skip


def releases(drawn_from: Input, entropy: Entropy, forms: tuple[str, ...] = ("small",)) -> Iterator[tuple[str, Outcome]]:
    """What is seen of one release after the other, without end, each with its form; the forms of batches take turns."""
    while True:
        for form in forms:
            yield from ((form, outcome) for outcome in _batch(drawn_from, form, entropy))


def forms_of(drawn_from: Input) -> tuple[str, ...]:
    """The forms that do not change the law: all, unless there is no score so low that it is hopeless."""
    is_whole = all(score.denominator == 1 for score in drawn_from.scores)
    fits = is_whole and drawn_from.k < len(drawn_from.scores) and _gap(drawn_from, _SURE) < 2.0**60
    return _TURNS if fits else ("small",)


def _gap(drawn_from: Input, sure: float) -> float:
    """How far below all others the scores of so many items have to be that are next to never drawn; inf if never."""
    weight = _weight(drawn_from)
    # At most LARGE^k sets or sequences hold such an item, and noise that makes up for x has a chance of about e^-x.
    return (drawn_from.k * math.log(LARGE) + sure) / float(weight) if weight else math.inf


def _weight(drawn_from: Input) -> Fraction:
    """What one unit of the score of the worst item costs, in units of noise."""
    limit = drawn_from.sensitivity
    s = definition.scale(drawn_from.epsilon, limit.down, limit.up, drawn_from.adjacency)
    return drawn_from.mechanism.unit_cost(s, drawn_from.k)


def _batch(drawn_from: Input, form: str, entropy: Entropy) -> Iterator[Outcome]:
    source = source_of(drawn_from, form)
    front_door = topk.top_k(
        source,
        drawn_from.k,
        drawn_from.epsilon,
        mechanism=drawn_from.mechanism,
        sensitivity=drawn_from.sensitivity,
        adjacency=drawn_from.adjacency,
        rng=entropy,
    )
    yield _observe(front_door, form)
    request, draw = drawn_from.request(source), _draw_from_first(entropy)
    for _ in range(_BATCH - 1):
        yield _observe(topk.draw_release(request, draw), form)


def _draw_from_first(entropy: Entropy) -> Callable[[Prepared], Selection]:
    """Draws from the first of several equal preparations, which has its boxes already."""
    first: list[Prepared] = []

    def draw(prepared: Prepared) -> Selection:
        first.append(prepared)
        del first[1:]
        return first[0].select(entropy)

    return draw


def source_of(drawn_from: Input, form: str) -> ArraySource:
    """The source that hands the scores over in some form."""
    if form == "small":
        return array_source(label_scores(drawn_from.scores))
    lowest, height = min(drawn_from.scores), math.ceil(_gap(drawn_from, _SURE))
    # Equal small scores are counted, and scores that are far apart fill buckets.
    scores = -_SPREAD * np.arange(LARGE) if form == "buckets" else np.zeros(LARGE, np.int64)
    scores[_APART // 2 :: _APART] = height - math.ceil(_gap(drawn_from, _DECOYS_SURE))
    for i, score in enumerate(drawn_from.scores):
        scores[i * _APART] = height + int(score - lowest)
    return HeldScores(*vars(array_source(scores)).values())


class HeldScores(ArraySource):
    """Scores that stand still, whose tally is made once for many draws."""

    @cached_property
    def _held(self) -> Tally:
        return super().tally()

    def tally(self) -> Tally:
        return self._held


def _observe(release: Release, form: str) -> Outcome:
    """What is seen of a release, with the items of a large array under their letters.

    Values that come with a selection have a law of their own (`discreet.evidence.value_rows`).
    """
    release = replace(release, counts=None)
    if form == "small":
        return outcome_of(release)

    def name_items(positions: list[Any]) -> list[Any]:
        # What is no item of the small input is left as it is: it cannot be drawn, and will be noticed.
        return [label(at // _APART) if at % _APART == 0 else at for at in positions]

    order = None if release.order is None else name_items(release.order)
    return outcome_of(replace(release, items=name_items(release.items), order=order))
