"""Which epsilon, and which mechanism: utility turned round. Computed from the scores, so NOT private."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.analysis.joint_sets import check_comparable, make_analysis_request
from discreet.analysis.utility import GOALS, Utility, at_epsilon, check_computed, goals, meter
from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import all_contenders
from discreet.privacy import Number, Sensitivity, exact, positive
from discreet.request import Request
from discreet.sources.scores import as_source
from discreet.tally import Tally
from discreet.text import align_columns, decimal

_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**9)
_DIGITS = 4
_UNREACHED = f"probability must be one that epsilon = {_MOST} reaches, and these scores and ties do not let it"


def epsilon_for(
    scores: Any,
    k: int,
    *,
    goal: str = "top",
    probability: Number = "0.95",
    mechanism: Mechanism | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
) -> Fraction:
    """The smallest epsilon, to four digits and rounded up, with which a goal is reached often enough.

    Computed from the scores, so NOT private: for public or made-up data.

    Parameters
    ----------
    scores, k, mechanism, sensitivity, adjacency
        What `top_k` would be given. The mechanism must be one whose utility is computed, not drawn.
    goal
        "top", "great", "good" or "optimal", as in `Utility`.
    probability
        How often it must be reached.

    Returns
    -------
    Fraction
        The epsilon, exactly; `float()` or `str()` of it is what to pass on.

    Examples
    --------
    >>> import discreet
    >>> discreet.epsilon_for([90, 80, 5, 1], k=2, goal="top", probability="0.95")
    Fraction(69, 625)
    """
    wanted = _probability(probability)
    if goal not in GOALS:
        raise InvalidValueError(f"goal must be one of {', '.join(GOALS)}, not {shown(goal)}")
    request = make_analysis_request(scores, k, 1, mechanism, sensitivity, adjacency)
    check_computed(request.guarantee.mechanism)
    needed = _LEAST if request.takes_all_items else _smallest(request, request.source.tally(), goal, wanted)
    if needed is None:
        raise InvalidValueError(_UNREACHED)
    return needed


def _smallest(request: Request, tally: Tally, goal: str, wanted: Fraction) -> Fraction | None:
    """By bisection of the decade, then of its four digits; utility does not fall when epsilon grows."""
    read = meter(tally, request.k, request.guarantee, {goal: goals(tally, request.k)[goal]})

    def enough(epsilon: Fraction) -> bool:
        return read(epsilon).values[goal] >= float(wanted)

    if not enough(_MOST):
        return None
    low, high = -9, 9
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(Fraction(10) ** middle) else (middle, high)
    unit: Fraction = Fraction(10) ** (low + 1 - _DIGITS)
    few, many = 10 ** (_DIGITS - 1), 10**_DIGITS
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle * unit) else (middle, many)
    return Fraction(many * unit)


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
        head = ["mechanism", *(f"epsilon for {goal}" for goal in GOALS)]
        if self.epsilon is not None:
            head += [f"{goal} at {decimal(self.epsilon)}" for goal in GOALS]
        rows = [head]
        for choice in self.choices:
            row = [repr(choice.mechanism), *(_format_epsilon(choice.needs[goal]) for goal in GOALS)]
            if choice.reaches is not None:
                row += [f"{getattr(choice.reaches, goal):.4f}" for goal in GOALS]
            rows.append(row)
        title = f"k = {self.k}, each goal reached with probability {decimal(self.probability)}"
        return "\n".join([title, *align_columns(rows), "NOT private: computed from the scores"])


def compare(
    scores: Any,
    k: int,
    *,
    epsilon: Number | None = None,
    probability: Number = "0.95",
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
        How often a goal must be reached.
    mechanisms
        Which ones; by default canonical, canonical with gamma = 1, one-shot and peeling.

    Examples
    --------
    >>> import discreet
    >>> table = discreet.compare([90, 80, 5, 1], k=2, mechanisms=[discreet.Canonical(), discreet.Canonical(gamma=1)])
    >>> table.best("top").mechanism
    Canonical(gamma='1', noise='gumbel')
    """
    wanted, source = _probability(probability), as_source(scores)
    chosen = _quick_contenders() if mechanisms is None else list(mechanisms)
    for mechanism in chosen:
        check_comparable(mechanism)
    spent = None if epsilon is None else positive(epsilon, "epsilon")
    choices = []
    for mechanism in chosen:
        budget = 1 if spent is None else spent
        request = make_analysis_request(source, k, budget, mechanism, sensitivity, adjacency)
        check_computed(mechanism)
        if request.takes_all_items:
            raise InvalidValueError(f"k must be less than {source.d}, the number of items, to compare, not {k}")
        choices.append(_choice(mechanism, request, spent, wanted))
    return Comparison(int(k), wanted, spent, choices)


def _quick_contenders() -> list[Mechanism]:
    """The contenders whose utility is computed at once: where losses are counted it takes minutes."""
    return [contender for contender in all_contenders() if contender.form in (Form.CLASSES, Form.RACE)]


def _choice(mechanism: Mechanism, request: Request, spent: Fraction | None, wanted: Fraction) -> Choice:
    """What a mechanism, as the caller spelled it, needs and reaches."""
    tally, promised = request.source.tally(), request.guarantee
    needs = {goal: _smallest(request, tally, goal, wanted) for goal in GOALS}
    reaches = None
    if spent is not None:
        reaches = at_epsilon(meter(tally, request.k, promised, goals(tally, request.k)), spent)
    return Choice(mechanism, needs, reaches)


def _format_epsilon(needed: Fraction | None) -> str:
    return "-" if needed is None else f"{float(needed):.4g}"


def _probability(value: Any) -> Fraction:
    number = exact(value, "probability")
    if not 0 < number < 1:
        raise InvalidValueError(f"probability must be above 0 and below 1, not {shown(value)}")
    return number
