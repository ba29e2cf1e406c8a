"""Which epsilon, and which mechanism: utility turned round. Computed from the scores, so NOT private."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor, log10
from typing import Any

from discreet.analysis.goals import GOALS, check_goal, check_share, goals, name_goal
from discreet.analysis.joint_sets import check_comparable, make_analysis_request
from discreet.analysis.statistics import log_odds
from discreet.analysis.utility import Meter, Utility, at_epsilon, check_computed, meter
from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import DEFAULT, all_contenders
from discreet.privacy import Number, Sensitivity, exact, positive
from discreet.request import Request, as_source
from discreet.text import align_columns, decimal

_LEAST, _MOST, _STEP = Fraction(1, 10**9), Fraction(10**9), 4
_UNIT = 1000
_ERRORS = (1e-3, 1e-5, 1e-8)
"""How exactly what a release reaches is computed, as long as that does not decide."""

_UNREACHED = f"probability must be one that epsilon = {_MOST} reaches, and these scores and ties do not let it"


def epsilon_for(
    scores: Any,
    k: int,
    *,
    goal: str = "top",
    probability: Number = "0.95",
    share: Number | None = None,
    mechanism: Mechanism | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
) -> Fraction:
    """The smallest epsilon, to four digits and rounded up, with which a goal is reached often enough.

    Computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        What `top_k` would be given.
    goal
        "top", "great", "good", "optimal" or "recall", as in `Utility`.
    probability
        How often it must be reached; for "recall" without a share, how much of the list must be right on average.
    share
        For "recall": the share of the list that must be right so often, "0.9" for nine in ten.
    mechanism
        One whose utility is computed, not drawn. By default the least epsilon over several gammas of `Canonical`, and
        `compare(...).best(goal)` says of which.

    Returns
    -------
    Fraction
        The epsilon, exactly; `float()` or `str()` of it is what to pass on.

    Examples
    --------
    >>> import discreet
    >>> discreet.epsilon_for([90, 80, 5, 1], k=2, goal="top", probability="0.95", mechanism=discreet.Canonical())
    Fraction(7669, 100000)
    >>> discreet.epsilon_for([90, 80, 5, 1], k=2, goal="top", probability="0.95")
    Fraction(5893, 100000)
    """
    wanted, enough = _probability(probability), check_goal(goal, share)
    contenders = type(DEFAULT).contenders() if mechanism is None else [mechanism]
    needed: Fraction | None = None
    for contender in contenders:
        request = make_analysis_request(scores, k, 1, contender, sensitivity, adjacency)
        check_computed(request.guarantee.mechanism)
        if request.takes_all_items:
            return _LEAST
        needed = _Search.of(request, goal, wanted, enough).less_than(needed)
    if needed is None:
        raise InvalidValueError(_UNREACHED)
    return needed


@dataclass(frozen=True)
class _Search:
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
    def of(cls, request: Request, goal: str, wanted: Fraction, share: Fraction | None) -> _Search:
        """A search for the epsilon with which a request reaches a goal."""
        tally = request.source.tally()
        read = meter(tally, request.k, request.guarantee, {goal: goals(tally, request.k, share)[goal]})
        return cls(partial(_read_as_needed, read, goal, float(wanted)), float(wanted))

    def less_than(self, known: Fraction | None) -> Fraction | None:
        """The epsilon, or the one that is known where that is not more."""
        if known is not None and not self.read(known) >= self.wanted:
            return known
        found = self.smallest(known or Fraction(1))
        return known if found is None else found

    def smallest(self, start: Fraction = Fraction(1)) -> Fraction | None:
        """The epsilon, to four digits; None where the largest is not enough.

        From the start by steps to a pair around it, then by the secant of the log odds against log epsilon, which is
        nearly straight, kept between two ends. Numbers of four digits are counted through: see `_number`.
        """
        low, high = self._bracket(start)
        if high is None or low < _place(_LEAST):
            return None if high is None else _LEAST
        left, right = self._distance(low), self._distance(high)
        while high - low > 1:
            step = min(max(left / (left - right), 0.02), 0.98)
            middle = _place(Fraction(float(_number(low)) * float(_number(high) / _number(low)) ** step))
            middle = min(max(middle, low + 1), high - 1)
            value = self._distance(middle)
            # The end that stays counts for less, so that it does not stay for long.
            low, high, left, right = (low, middle, left / 2, value) if value >= 0 else (middle, high, value, right / 2)
        return _number(high)

    def _distance(self, place: int) -> float:
        """The log odds of what is read, less those wanted."""
        return log_odds(self.read(_number(place))) - log_odds(self.wanted)

    def _bracket(self, start: Fraction) -> tuple[int, int | None]:
        """An epsilon that is too small and one that is large enough; None for that where the largest is not."""
        known = _place(start)
        if self.read(_number(known)) >= self.wanted:
            low = _place(_number(known) / _STEP)
            while low >= _place(_LEAST) and self.read(_number(low)) >= self.wanted:
                known, low = low, _place(_number(low) / _STEP)
            return low, known
        high = _place(_number(known) * _STEP)
        while high <= _place(_MOST) and not self.read(_number(high)) >= self.wanted:
            known, high = high, _place(_number(high) * _STEP)
        return known, high if high <= _place(_MOST) else None


def _read_as_needed(read: Meter, goal: str, wanted: float, epsilon: Fraction) -> float:
    """What is read, so exactly that it is certain on which side of what is wanted it is; 1e-8 is enough in any case."""
    for error in _ERRORS:
        shares = read(epsilon, error)
        if abs(shares.values[goal] - wanted) > shares.error:
            break
    return shares.values[goal]


def _number(place: int) -> Fraction:
    """Numbers of four digits, counted through from 1.000, which has the place 0."""
    power, digits = divmod(place, 9 * _UNIT)
    return Fraction(_UNIT + digits, _UNIT) * Fraction(10) ** power


def _place(number: Fraction) -> int:
    """The place of the least number of four digits that is not below this one."""
    power = floor(log10(number))
    power -= Fraction(10) ** power > number
    return 9 * _UNIT * power + ceil(number * _UNIT / Fraction(10) ** power) - _UNIT


@dataclass(frozen=True)
class Choice:
    """One mechanism: the epsilon it needs for each goal, None where none is enough, and what it reaches at one."""

    mechanism: Mechanism
    needs: dict[str, Fraction | None]
    reaches: Utility | None


@dataclass(frozen=True)
class Comparison:
    """What each mechanism needs and reaches. NOT private: computed from the scores."""

    k: int
    probability: Fraction
    epsilon: Fraction | None
    choices: list[Choice]
    share: Fraction | None = None

    def best(self, goal: str = "top") -> Choice:
        """The choice that needs least epsilon for a goal."""
        return self.ranked(goal)[0][1]

    def ranked(self, goal: str = "top") -> list[tuple[Fraction, Choice]]:
        """The choices that reach a goal, with the epsilon each needs, the least first."""
        needs = [(needed, choice) for choice in self.choices if (needed := choice.needs[goal]) is not None]
        if not needs:
            raise InvalidValueError(_UNREACHED)
        return sorted(needs, key=lambda pair: pair[0])

    def __str__(self) -> str:
        asked = list(self.choices[0].needs) if self.choices else []
        head = ["mechanism", *(f"epsilon for {name_goal(goal, self.share)}" for goal in asked)]
        if self.epsilon is not None:
            head += [f"{name_goal(goal, self.share)} at {decimal(self.epsilon)}" for goal in GOALS]
        rows = [head]
        for choice in self.choices:
            row = [repr(choice.mechanism), *(_format_epsilon(choice.needs[goal]) for goal in asked)]
            if choice.reaches is not None:
                row += [f"{getattr(choice.reaches, goal):.4f}" for goal in GOALS]
            rows.append(row)
        enough = decimal(self.probability)
        title = f"k = {self.k}, each goal reached with probability {enough}"
        title += f", recall {enough} on average" if self.share is None and "recall" in asked else ""
        return "\n".join([title, *align_columns(rows), "NOT private: computed from the scores"])


def compare(
    scores: Any,
    k: int,
    *,
    epsilon: Number | None = None,
    probability: Number = "0.95",
    share: Number | None = None,
    goal: str | None = None,
    mechanisms: Iterable[Mechanism] | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
) -> Comparison:
    """What epsilon each mechanism needs for each goal, and what it reaches at one epsilon.

    Computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        What `top_k` would be given.
    epsilon
        Also tell what each mechanism reaches with this one.
    probability
        How often a goal must be reached; and how much of the list must be right on average, for recall.
    share
        For recall: the share of the list that must be right so often, in place of the average.
    goal
        Look for the epsilon that this one goal needs alone, which takes less long; by default for all.
    mechanisms
        Which ones; by default canonical with several gammas, one-shot and peeling.

    Examples
    --------
    >>> import discreet
    >>> table = discreet.compare([90, 80, 5, 1], k=2, mechanisms=[discreet.Canonical(), discreet.Canonical(gamma=1)])
    >>> table.best("top").mechanism
    Canonical(gamma='1', noise='gumbel')
    """
    wanted, source = _probability(probability), as_source(scores)
    enough = check_share(share) if goal is None else check_goal(goal, share)
    asked = GOALS if goal is None else (goal,)
    chosen = _quick_contenders() if mechanisms is None else list(mechanisms)
    for mechanism in chosen:
        check_comparable(mechanism)
    spent = None if epsilon is None else positive(epsilon, "epsilon")
    choices: list[Choice] = []
    for mechanism in chosen:
        budget = 1 if spent is None else spent
        request = make_analysis_request(source, k, budget, mechanism, sensitivity, adjacency)
        check_computed(mechanism)
        if request.takes_all_items:
            raise InvalidValueError(f"k must be less than {source.d}, the number of items, to compare, not {k}")
        near = {each: _guess(choices, mechanism, request.k, each) for each in asked}
        needs = {each: smallest_epsilon(request, each, wanted, enough, near[each]) for each in asked}
        choices.append(Choice(mechanism, needs, None if spent is None else _reach(request, spent, enough)))
    return Comparison(int(k), wanted, spent, choices, enough)


def _quick_contenders() -> list[Mechanism]:
    """The contenders whose utility is computed at once: where losses are counted it takes minutes."""
    return [contender for contender in all_contenders() if contender.form in (Form.CLASSES, Form.RACE)]


def _guess(choices: list[Choice], mechanism: Mechanism, k: int, goal: str) -> Fraction | None:
    """About what a mechanism needs, by what the one before it needs: those that decide item by item need more."""
    known = choices[-1].needs[goal] if choices else None
    if known is None:
        return None
    return known * _typical_need(mechanism, k) / _typical_need(choices[-1].mechanism, k)


def _typical_need(mechanism: Mechanism, k: int) -> Fraction:
    return {Form.RACE: 1 + Fraction(k, 3), Form.LOSSES: Fraction(2)}.get(mechanism.form, Fraction(1))


def smallest_epsilon(
    request: Request, goal: str, wanted: Fraction, share: Fraction | None, near: Fraction | None = None
) -> Fraction | None:
    """The smallest epsilon with which a request reaches a goal, looked for about `near`; None where none does."""
    return _Search.of(request, goal, wanted, share).smallest(near or Fraction(1))


def _reach(request: Request, epsilon: Fraction, share: Fraction | None) -> Utility:
    """What a request reaches with some epsilon."""
    tally = request.source.tally()
    return at_epsilon(meter(tally, request.k, request.guarantee, goals(tally, request.k, share)), epsilon, share)


def _format_epsilon(needed: Fraction | None) -> str:
    return "-" if needed is None else f"{float(needed):.4g}"


def _probability(value: Any) -> Fraction:
    number = exact(value, "probability")
    if not 0 < number < 1:
        raise InvalidValueError(f"probability must be above 0 and below 1, not {shown(value)}")
    return number
