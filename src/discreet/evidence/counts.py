"""Epsilon of a selection with counts, verified exactly on small inputs over all neighbours.

What is seen is a set (or an order) y and a noisy count for each of its items: with probability law(y) times the
product of discrete Laplace probabilities exp(-rate |c_i - f_i|) / Z around the true scores f, in steps. Between
neighbours f and g the log ratio at (y, c) is largest where every c_i is one of the two scores, and then the counts add
exactly rate * sum |f_i - g_i| over the items of y to the log ratio of the selection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any

from discreet import topk
from discreet.evidence.neighbours import Family, Scores
from discreet.evidence.report import SLACK, Pair
from discreet.evidence.visible_laws import Laws, log_ratios
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.release import Release
from discreet.request import make_request
from discreet.selection import Selection
from discreet.sources.arrays.array import ArraySource

_MARK = 10**6
"""More steps than any score of a small input has."""


@dataclass(frozen=True)
class Counted:
    """What comparing all neighbours found.

    Attributes
    ----------
    pairs
        How many pairs of neighbouring inputs were compared.
    worst
        An upper bound on the largest log ratio, as a share of the whole epsilon.
    counts
        The largest part of it that the counts alone have, as a share of theirs; exact.
    pair
        Where the worst was found.
    rate
        The rate at which noise was asked for.
    """

    pairs: int
    worst: float
    counts: Fraction
    pair: Pair
    rate: Fraction

    @property
    def holds(self) -> bool:
        """Whether no ratio is above what is promised."""
        return self.worst <= 1.0 + SLACK and self.counts <= 1


def verify_counts(
    mechanism: Mechanism,
    k: int,
    family: Family,
    *,
    epsilon: Fraction,
    counts: Fraction,
    grid: Fraction = Fraction(1),
    per_user: int | None = None,
) -> Counted:
    """Compares every input of a family with all its neighbours, of users who touch at most `per_user` items each."""
    laws = CountedLaws(mechanism, k, epsilon, counts, family, grid, per_user)
    found = [
        (*laws.apart(scores, other), (scores, other))
        for scores in family.scores
        for other in neighbours(family, scores, per_user)
    ]
    worst, _, pair = max(found, key=lambda one: one[0])
    return Counted(len(found), worst, max(part for _, part, _ in found), laws.pair(*pair), laws.rate)


def neighbours(family: Family, scores: Scores, per_user: int | None) -> Iterator[Scores]:
    """All neighbours by extreme changes, where every user touches at most so many items."""
    if per_user is None:
        yield from family.neighbours(scores)
        return
    for change in family.changes_by_users(per_user):
        if any(change):
            yield tuple(score + step for score, step in zip(scores, change, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class BoundedScores(ArraySource):
    """Scores of which each user is known to move at most so many."""

    max_items_per_user: int | None = None


class CountedLaws(Laws):
    """The laws of selections with counts: those of the selection, and what the counts are centred at."""

    def __init__(
        self,
        mechanism: Mechanism,
        k: int,
        epsilon: Fraction,
        counts: Fraction,
        family: Family,
        grid: Fraction,
        per_user: int | None,
    ) -> None:
        super().__init__(mechanism, k, epsilon, family)
        self._grid, self._per_user = grid, per_user
        self.request = make_request(
            self.source(family.scores[0]), k, epsilon,
            mechanism=mechanism, sensitivity=family.sensitivity, adjacency=family.adjacency, counts=counts,
        )  # fmt: skip
        self._rates: set[Fraction] = set()
        self._centres: dict[Scores, dict[Any, int | Fraction]] = {}

    def apart(self, scores: Scores, other: Scores) -> tuple[float, Fraction]:
        """The largest log ratio of two inputs as a share of epsilon, and that of the counts alone of theirs."""
        table = self.table([scores, other])
        selection = log_ratios(table.logs[0], table.logs[1:])[0] + table.off.sum()
        moved = [self.rate * self._steps_apart(scores, other, outcome[0]) for outcome in table.outcomes]
        worst = max(one + float(part) for one, part in zip(selection.tolist(), moved, strict=True))
        return worst / float(self.guarantee.epsilon), max(moved) / self.guarantee.counts_epsilon

    @property
    def rate(self) -> Fraction:
        """The one rate at which noise was asked for, which is that of all steps."""
        (rate,) = self._rates
        return rate

    def source(self, scores: Scores) -> ArraySource:
        made = super().source(scores)
        return BoundedScores(made.scores, made.labels, made.unit, self._grid, max_items_per_user=self._per_user)

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """What is released where the noise happens to bring every count to where it is aimed.

        The aims depend on the items alone, so that all inputs show the same counts; an interval around the true score,
        a list in the order of true scores, noise that is shared, scaled or left out would show another release.
        """
        centred = self._with_noise(source, draw, lambda call: 0)
        centres = self._centres.setdefault(scores, {})
        centres.update({count.item: count.value for count in centred.counts or []})
        # Which call is for whose noise is seen by noise that differs.
        marked = self._with_noise(source, draw, lambda call: (call + 1) * _MARK)
        calls = {self._steps(count.value - centres[count.item]): count.item for count in marked.counts or []}

        def aim(call: int) -> int:
            item = calls.get(Fraction((call + 1) * _MARK))
            return 0 if item is None else int(ord(item) - self._steps(centres[item]))

        return self._with_noise(source, draw, aim)

    def _with_noise(
        self, source: ArraySource, draw: Callable[[Prepared], Selection], noise: Callable[[int], int]
    ) -> Release:
        """The release where the noise of each call, in steps, is what `noise` says."""
        calls = count()

        def scripted_noise(rate: Fraction) -> int:
            self._rates.add(rate)
            return noise(next(calls))

        counted = self.request.count_mechanism
        # Without the floor, which could only hide a difference.
        counted = None if counted is None else replace(counted, floor=False)
        request = replace(self.request, source=source, count_mechanism=counted)
        return topk.draw_release(request, draw, scripted_noise)

    def _steps(self, value: int | Fraction) -> Fraction:
        return Fraction(value) / self._grid

    def _steps_apart(self, scores: Scores, other: Scores, items: tuple[Any, ...]) -> Fraction:
        """How many steps the centres of some items are apart in all."""
        here, there = self._centres[scores], self._centres[other]
        return sum((abs(self._steps(here[item] - there[item])) for item in items), Fraction(0))
