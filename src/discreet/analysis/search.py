"""The smallest epsilon with which a list, or each of several, reaches a goal often enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import chain, repeat
from math import ceil, exp, floor, log, log10
from typing import Any

import numpy as np

from discreet.analysis.goals import goals, log_odds
from discreet.analysis.joint_odds import make_analysis_request, make_grouped_analysis_request
from discreet.analysis.meters import Meter, meter
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity
from discreet.release.request import Request, find_items_per_user
from discreet.sources.base import GroupedSource, Source
from discreet.sources.clipped import Truth
from discreet.sources.scores import as_listed_source

LEAST, MOST = Fraction(1, 10**9), Fraction(10**9)
"""Between which an epsilon is looked for."""

_STEPS, _UNIT = (Fraction(5, 4), Fraction(2), Fraction(4)), 1000
_BEND, _SLOW = 0.05, 0.7
_ERRORS = (0.1, 0.01, 1e-3, 1e-5, 1e-8)
"""How exactly what a release reaches is computed, as long as that does not decide: far off it costs a fortieth."""

_COUNTED_ERRORS = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-8)
"""The same where losses are counted, and what was counted for one error serves for the next."""


@dataclass(frozen=True)
class Aim:
    """What is to be reached: a goal, how often, and for recall which share of the list must be right so often."""

    goal: str
    probability: Fraction
    share: Fraction | None


@dataclass(frozen=True)
class Case:
    """One list that is asked for, and the scores that say how good it will be.

    Attributes
    ----------
    request
        What is asked for.
    tally
        The scores that the list is drawn by.
    truth
        The scores that it is judged by, where those are others.
    """

    request: Request
    tally: Tally
    truth: Truth | None = None

    @property
    def judged_by(self) -> Tally:
        """The scores that say which items are right."""
        return self.tally if self.truth is None else self.truth.tally

    @property
    def needs_epsilon(self) -> bool:
        """Whether how good the list is depends on epsilon: one of all items is always right."""
        return self.request.k < self.request.d

    def meter(self, asked: Iterable[str], share: Fraction | None) -> Meter:
        """What the list reaches of some goals, by its epsilon."""
        k, wanted = self.request.k, goals(self.judged_by, self.request.k, share)
        standings = None if self.truth is None else self.truth.standings
        some = {goal: wanted[goal] for goal in asked}
        return meter(self.tally, k, self.request.guarantee, some, standings=standings)


@dataclass(frozen=True)
class Scores:
    """The scores that a release would be made from, read once: of one list, or of one for each group."""

    source: Source | GroupedSource

    @classmethod
    def of(cls, scores: Any) -> Scores:
        """The scores that a caller gave, or those that were read from them before."""
        return scores if isinstance(scores, Scores) else cls(as_listed_source(scores))

    @cached_property
    def tallies(self) -> list[Tally]:
        """The scores of each list."""
        if not isinstance(self.source, GroupedSource):
            return [self.source.tally()]
        tallies: list[Tally] = []

        def keep(group: int, tally: Tally) -> Selection:
            tallies.append(tally)
            return Selection(np.zeros(1, np.int64))

        # A source by group has the tallies of all groups in one snapshot; which items they are does not matter here.
        self.source.select_items(keep, False)
        return tallies

    @property
    def groups(self) -> int | None:
        """How many groups there are, where there are groups."""
        return len(self.source.keys) if isinstance(self.source, GroupedSource) else None

    def has_few_items(self, sensitivity: Sensitivity | None) -> bool:
        """Whether it is known how many scores one user can move; `sensitivity` is what the caller gave."""
        members = self.source.members if isinstance(self.source, GroupedSource) else [self.source]
        return all(find_items_per_user(member, sensitivity) is not None for member in members)

    @property
    def lists_per_user(self) -> int:
        """How many lists share what a release costs: as many as one user can count in."""
        return self.source.groups_per_user if isinstance(self.source, GroupedSource) else 1

    def cases(self, k: Any, epsilon: Any, mechanism: Mechanism, sensitivity: Any, adjacency: Any) -> list[Case]:
        """The lists that a release by a mechanism has."""
        terms = k, epsilon, mechanism, sensitivity, adjacency
        if isinstance(self.source, GroupedSource):
            requests = make_grouped_analysis_request(self.source, *terms).requests
        else:
            requests = [make_analysis_request(self.source, *terms)]
        return [Case(request, tally) for request, tally in zip(requests, self.tallies, strict=True)]


def hardest_case(cases: Iterable[Case], aim: Aim, near: Fraction | None = None) -> tuple[Fraction, Case] | None:
    """The smallest epsilon of each list with which all of them reach a goal, and the list that needs so much.

    None where one of them never does. It is looked for about `near`.
    """
    known: tuple[Fraction, Case] | None = None
    for case in filter(lambda each: each.needs_epsilon, cases):
        search = Search.of(case, aim)
        if known is not None and search.is_enough(known[0]):
            continue
        found = search.smallest(near or Fraction(1) if known is None else known[0])
        if found is None:
            return None
        known = found, case
    return known


@dataclass(frozen=True)
class Search:
    """Looks for the smallest epsilon at which a number that grows with epsilon is large enough.

    Attributes
    ----------
    read
        The number at some epsilon.
    wanted
        How large it must be.
    """

    read: Callable[[Fraction], float]
    wanted: float

    @classmethod
    def of(cls, case: Case, aim: Aim) -> Search:
        """A search for the epsilon with which a list reaches a goal."""
        counts_losses = case.request.guarantee.mechanism.form is Form.LOSSES
        errors = _COUNTED_ERRORS if counts_losses else _ERRORS
        read = partial(_read_as_needed, case.meter((aim.goal,), aim.share), aim, errors)
        # What was read where it was looked for first is asked for again.
        return cls(cache(read), float(aim.probability))

    def is_enough(self, epsilon: Fraction) -> bool:
        """Whether an epsilon is large enough."""
        return self.read(epsilon) >= self.wanted

    def smallest(self, start: Fraction = Fraction(1)) -> Fraction | None:
        """The epsilon, to four digits; None where the largest is not enough.

        From the start by growing steps to a pair around it, then by the secant of the log odds against log epsilon,
        which is nearly straight. Numbers of four digits are counted through: see `_number`.
        """
        low, high = self._bracket(start)
        if high is None or low < _place(LEAST):
            return None if high is None else LEAST
        left, right, last_step = self._distance(low), self._distance(high), 0.5
        while high - low > 1:
            wide = log(float(_number(high) / _number(low)))
            step = left / (left - right)
            # A straight line is off by the square of how far it goes. Beside where it points there is a number on the
            # other side, so that both ends come near; where they did not, the middle helps.
            aside = min(_BEND * wide, 0.25)
            step += aside if abs(right) > abs(left) else -aside
            step = 0.5 if last_step > _SLOW else min(max(step, 0.01), 0.99)
            middle = _place(Fraction(float(_number(low)) * exp(wide * step)))
            middle = min(max(middle, low + 1), high - 1)
            value, before = self._distance(middle), high - low
            low, high, left, right = (low, middle, left, value) if value >= 0 else (middle, high, value, right)
            last_step = (high - low) / before if step != 0.5 else 0.5
        return _number(high)

    def _distance(self, place: int) -> float:
        """The log odds of what is read, less those wanted."""
        return log_odds(self.read(_number(place))) - log_odds(self.wanted)

    def _bracket(self, start: Fraction) -> tuple[int, int | None]:
        """An epsilon that is too small and one that is large enough; None for that where the largest is not."""
        known, steps = _place(start), chain(_STEPS, repeat(_STEPS[-1]))
        if self.is_enough(_number(known)):
            low = _place(_number(known) / next(steps))
            while low >= _place(LEAST) and self.is_enough(_number(low)):
                known, low = low, _place(_number(low) / next(steps))
            return low, known
        high = _place(_number(known) * next(steps))
        while high <= _place(MOST) and not self.is_enough(_number(high)):
            known, high = high, _place(_number(high) * next(steps))
        return known, high if high <= _place(MOST) else None


def _read_as_needed(read: Meter, aim: Aim, errors: tuple[float, ...], epsilon: Fraction) -> float:
    """What is read, so exactly that it is certain on which side of what is wanted it is; 1e-8 is enough in any case."""
    for error in errors:
        shares = read(epsilon, error)
        if abs(shares.values[aim.goal] - float(aim.probability)) > shares.error:
            break
    return shares.values[aim.goal]


def find_number_below(number: Fraction) -> Fraction:
    """The largest number of four digits that is below one."""
    return _number(_place(number) - 1)


def _number(place: int) -> Fraction:
    """Numbers of four digits, counted through from 1.000, which has the place 0."""
    power, digits = divmod(place, 9 * _UNIT)
    return Fraction(_UNIT + digits, _UNIT) * Fraction(10) ** power


def _place(number: Fraction) -> int:
    """The place of the least number of four digits that is not below this one."""
    power = floor(log10(number))
    power -= Fraction(10) ** power > number
    return 9 * _UNIT * power + ceil(number * _UNIT / Fraction(10) ** power) - _UNIT
