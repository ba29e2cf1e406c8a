"""Search for the smallest epsilon with which a list, or each of several, reaches a goal with a given probability.

Probabilities grow with epsilon, so a bracket and the secant method find it; they are computed only as exactly as the
comparison with the wanted probability needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, repeat
from math import ceil, exp, floor, log, log10
from typing import Any

from discreet.analysis.found import AmongFound
from discreet.analysis.goals import goals, log_odds
from discreet.analysis.joint_odds import make_analysis_request, make_grouped_analysis_request
from discreet.analysis.meters import Meter, Shares, meter
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity
from discreet.release.request import Request, find_items_per_user
from discreet.sources.base import GroupedSource, Source
from discreet.sources.clipped import Truth
from discreet.sources.scores import as_listed_source

LEAST, MOST = Fraction(1, 10**9), Fraction(10**9)
"""The range in which an epsilon is searched."""

_STEPS = Fraction(5, 4), Fraction(2), Fraction(4)
"""The factors of the first steps away from the start; the last one repeats."""

_UNIT = 1000
"""Epsilons have four digits: a factor from 1.000 to 9.999 in steps of 1/1000, times a power of ten."""

_BEND, _SLOW = 0.05, 0.7
"""The secant aims this share of the bracket's log width to one side; a bracket that keeps more than 0.7 is halved."""

_ERRORS = (0.1, 0.01, 1e-3, 1e-5, 1e-8)
"""Errors tried in turn until one decides the comparison: far from the goal, 0.1 takes a fortieth of the time."""

_COUNTED_ERRORS = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-8)
"""The same for joint, in smaller steps, because the counts for one error serve for the next."""


@dataclass(frozen=True)
class Aim:
    """A goal, the probability with which it must be reached, and for recall the share that must be right."""

    goal: str
    probability: Fraction
    share: Fraction | None


@dataclass(frozen=True)
class Case:
    """One requested list, and the scores that determine its utility.

    Attributes
    ----------
    request
        The request.
    tally
        The scores that the list is drawn from.
    truth
        The scores that it is judged by, if those are others.
    """

    request: Request
    tally: Tally
    truth: Truth | None = None

    @property
    def judged_by(self) -> Tally:
        """Return the scores that decide which items are right."""
        return self.tally if self.truth is None else self.truth.tally

    @property
    def needs_epsilon(self) -> bool:
        """Return True unless the list holds all items, which is right at every epsilon."""
        return self.request.k < self.request.d

    def meter(self, asked: Iterable[str], share: Fraction | None) -> Meter:
        """Return a meter of some goals for this list."""
        k, wanted = self.request.k, goals(self.judged_by, self.request.k, share)
        standings = None if self.truth is None else self.truth.standings
        some = {goal: wanted[goal] for goal in asked}
        promised = self.request.guarantee
        if not isinstance(promised.mechanism, AmongFound):
            return meter(self.tally, k, promised, some, standings=standings)
        found = promised.mechanism
        read = meter(self.tally, k, replace(promised, mechanism=found.selection), some)

        def read_found(epsilon: Fraction, goal: float | None = None) -> Shares:
            chance, rest = found.find_top(k, epsilon)
            if chance == 0.0:
                return Shares(dict.fromkeys(some, 0.0), 0.0)
            shares = read(rest, goal)
            return replace(shares, values={name: chance * share for name, share in shares.values.items()})

        return read_found


@dataclass(frozen=True)
class Scores:
    """The scores that a release would be made from, read once, of one list or of one list per group."""

    source: Source | GroupedSource

    @classmethod
    def of(cls, scores: Any) -> Scores:
        """Wrap the scores that a caller gave; return scores that are wrapped already."""
        return scores if isinstance(scores, Scores) else cls(as_listed_source(scores))

    @cached_property
    def tallies(self) -> list[Tally]:
        """The scores of each list."""
        if not isinstance(self.source, GroupedSource):
            return [self.source.tally()]
        with self.source.snapshot() as snapshot:
            return list(snapshot.tallies())

    @property
    def groups(self) -> int | None:
        """Return the number of groups, or None for one list."""
        return len(self.source.keys) if isinstance(self.source, GroupedSource) else None

    def has_few_items(self, sensitivity: Sensitivity | None) -> bool:
        """Return True if a bound on the number of scores that one user can move is known."""
        members = self.source.members if isinstance(self.source, GroupedSource) else [self.source]
        return all(find_items_per_user(member, sensitivity) is not None for member in members)

    @property
    def lists_per_user(self) -> int:
        """Return the number of lists that one user can contribute to: they share the epsilon of a release."""
        return self.source.groups_per_user if isinstance(self.source, GroupedSource) else 1

    def cases(self, k: Any, epsilon: Any, mechanism: Mechanism, sensitivity: Any, adjacency: Any) -> list[Case]:
        """Return the lists of a release by a mechanism."""
        terms = k, epsilon, mechanism, sensitivity, adjacency
        if isinstance(self.source, GroupedSource):
            requests = make_grouped_analysis_request(self.source, *terms).requests
        else:
            requests = [make_analysis_request(self.source, *terms)]
        return [Case(request, tally) for request, tally in zip(requests, self.tallies, strict=True)]


def hardest_case(cases: Iterable[Case], aim: Aim, near: Fraction | None = None) -> tuple[Fraction, Case] | None:
    """Return the smallest epsilon per list with which all lists reach a goal, and the list that needs it.

    Return None if some list never reaches the goal. The search begins at `near`.
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
    """A search for the smallest epsilon at which an increasing function is large enough.

    Attributes
    ----------
    read
        The function of epsilon.
    wanted
        The value that it must reach.
    """

    read: Callable[[Fraction], float]
    wanted: float

    @classmethod
    def of(cls, case: Case, aim: Aim) -> Search:
        """Return the search for the epsilon with which a list reaches a goal."""
        meter, wanted = case.meter((aim.goal,), aim.share), float(aim.probability)
        errors = _COUNTED_ERRORS if case.request.guarantee.mechanism.form is Form.LOSSES else _ERRORS

        # Cached, because `is_enough` and `smallest` read the first epsilons twice.
        @cache
        def read(epsilon: Fraction) -> float:
            for error in errors:
                shares = meter(epsilon, error)
                if abs(shares.values[aim.goal] - wanted) > shares.error:
                    break
            return shares.values[aim.goal]

        return cls(read, wanted)

    def is_enough(self, epsilon: Fraction) -> bool:
        """Return True if an epsilon is large enough."""
        return self.read(epsilon) >= self.wanted

    def smallest(self, start: Fraction = Fraction(1)) -> Fraction | None:
        """Return the smallest epsilon that is enough, to four digits; None if the largest is not.

        Growing steps from the start find a bracket. The secant of the log odds against log epsilon, which is nearly
        straight, narrows it. Numbers of four digits are enumerated: see `_number`.
        """
        low, high = self._bracket(start)
        if high is None or low < _place(LEAST):
            return None if high is None else LEAST
        left, right, last_step = self._distance(low), self._distance(high), 0.5
        while high - low > 1:
            wide = log(float(_number(high) / _number(low)))
            step = left / (left - right)
            # The secant's error grows with the square of the width. Aiming past the root puts it on the other side, so
            # both ends move; after a step that hardly narrowed the bracket, bisect.
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
        """Return the log odds of the function minus those wanted."""
        return log_odds(self.read(_number(place))) - log_odds(self.wanted)

    def _bracket(self, start: Fraction) -> tuple[int, int | None]:
        """Return the places of an epsilon that is too small and one that is enough; None if the largest is not."""
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


def find_number_below(number: Fraction) -> Fraction:
    """Return the largest four-digit number below `number`."""
    return _number(_place(number) - 1)


def _number(place: int) -> Fraction:
    """Return the four-digit number at a place; 1.000 has the place 0, 1.001 the place 1."""
    power, digits = divmod(place, 9 * _UNIT)
    return Fraction(_UNIT + digits, _UNIT) * Fraction(10) ** power


def _place(number: Fraction) -> int:
    """Return the place of the least four-digit number that is at least `number`."""
    power = floor(log10(number))
    power -= Fraction(10) ** power > number
    return 9 * _UNIT * power + ceil(number * _UNIT / Fraction(10) ** power) - _UNIT
