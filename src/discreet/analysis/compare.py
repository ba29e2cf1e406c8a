"""Which epsilon, and which mechanism: utility turned round. Computed from the scores, so NOT private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from numbers import Integral
from typing import Any

from discreet.analysis.goals import GOALS, Hits, check_goal, check_share, count_right_ranks, goals, name_goal
from discreet.analysis.joint_odds import check_comparable, make_analysis_request
from discreet.analysis.meters import MOST_VALUES, Precision, check_computed
from discreet.analysis.results import NOT_PRIVATE, GroupedUtility, Utility, describe_origin
from discreet.analysis.search import LEAST, MOST, Aim, Case, Scores, Search, hardest_case
from discreet.analysis.utility import at_epsilon, measure_list
from discreet.errors import InvalidValueError, quote
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.registry import DEFAULT, all_contenders
from discreet.mechanisms.sampler import Sampler
from discreet.mechanisms.tally import Tally
from discreet.privacy import Number, Sensitivity, exact, positive
from discreet.sources.base import GroupedSource, Source
from discreet.sources.clipped import ClippableSource, ClippedSource
from discreet.text import align_columns, decimal, round_up

# What each mechanism needs and reaches, as values that print themselves: a Comparison and its Choices.

UNREACHED = f"probability must be one that epsilon = {MOST} reaches, and these scores and ties do not let it"


@dataclass(frozen=True)
class ItemBound:
    """At most so many items of each user, and how many of the true list the best k then lack, without any noise."""

    max_items_per_user: int
    lost: Fraction

    def __str__(self) -> str:
        return f"at most {self.max_items_per_user} item{'s' if self.max_items_per_user > 1 else ''} a user"


@dataclass(frozen=True, repr=False)
class Choice:
    """One mechanism: the epsilon it needs for each goal, None where none is enough, and what it reaches at one.

    What a `Sampler` needs is not looked for, and is None too. With a `bound` it is on scores that keep so many items of
    each user, and is judged by the scores of all their items.
    """

    mechanism: Mechanism
    needs: dict[str, Fraction | None]
    reaches: Utility | GroupedUtility | None
    bound: ItemBound | None = None

    @property
    def label(self) -> str:
        """What it is called in legends."""
        return self.mechanism.label if self.bound is None else f"{self.mechanism.label}, {self.bound}"

    def __repr__(self) -> str:
        needs = {goal: _format_epsilon(needed) for goal, needed in self.needs.items()}
        return f"Choice({self}, needs {', '.join(f'{needed} for {goal}' for goal, needed in needs.items())})"

    def __str__(self) -> str:
        return repr(self.mechanism) if self.bound is None else f"{self.mechanism!r}, {self.bound}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each mechanism needs and reaches. NOT private where it is computed from the scores and not from a sketch.

    Of scores by group, what it needs for the goal in every group, and what share of the groups reaches it at `epsilon`.
    `left_out` are mechanisms that need more than the best, where finding how much more would take minutes.
    """

    k: int
    probability: Fraction
    epsilon: Fraction | None
    choices: list[Choice]
    share: Fraction | None = None
    groups: int | None = None
    origin: str = field(default=NOT_PRIVATE, repr=False)
    ties: str | None = field(default=None, repr=False)
    left_out: list[Mechanism] = field(default_factory=list)

    @property
    def sketch(self) -> str | None:
        """What the sketch cost that it is computed from, in words; None where it is computed from scores."""
        return None if self.origin == NOT_PRIVATE else self.origin

    def best(self, goal: str = "top") -> Choice:
        """The choice that needs least epsilon for a goal."""
        return self.ranked(goal)[0][1]

    def ranked(self, goal: str = "top") -> list[tuple[Fraction, Choice]]:
        """The choices that reach a goal, with the epsilon each needs, the least first."""
        needs = [(needed, choice) for choice in self.choices if (needed := choice.needs[goal]) is not None]
        if not needs:
            raise InvalidValueError((goal == "top" and self.ties) or UNREACHED)
        return sorted(needs, key=lambda pair: pair[0])

    def notes(self) -> list[str]:
        """What was left out, and whether the rest is private, in lines for people."""
        return [*(f"{mechanism!r} needs more: how much was not computed." for mechanism in self.left_out), self.origin]

    def _asked(self) -> list[str]:
        """The goals that an epsilon was looked for."""
        return list(self.choices[0].needs) if self.choices else []

    def _rows(self) -> list[list[str]]:
        """The table, its head first."""
        asked = self._asked()
        head = ["mechanism", *(f"epsilon for {name_goal(goal, self.share)}" for goal in asked)]
        if self.epsilon is not None:
            head += [f"{name_goal(goal, self.share)} at {round_up(self.epsilon)}" for goal in GOALS]
        rows = [head]
        for choice in self.choices:
            row = [str(choice), *(_format_epsilon(choice.needs[goal]) for goal in asked)]
            if choice.reaches is not None:
                row += [_format_reached(choice.reaches, goal) for goal in GOALS]
            rows.append(row)
        return rows

    def _title(self) -> str:
        enough = decimal(self.probability)
        where = "" if self.groups is None else f" in each of {self.groups:,} groups"
        title = f"k = {self.k}{where}, each goal reached with probability {enough}"
        average = self.share is None and "recall" in self._asked()
        return f"{title}, recall {enough} on average" if average else title

    def __repr__(self) -> str:
        spent = "" if self.epsilon is None else f", epsilon={round_up(self.epsilon)}"
        return f"Comparison({len(self.choices)} choices, k={self.k}, probability={decimal(self.probability)}{spent})"

    def __str__(self) -> str:
        return "\n".join([self._title(), *align_columns(self._rows()), *self.notes()])

    def _repr_html_(self) -> str:
        """The notebook view."""
        from discreet.html_text import make_html_table, make_html_view

        head, *rows = self._rows()
        return make_html_view(self._title(), make_html_table(rows, head), self.notes())


def _format_reached(reached: Utility | GroupedUtility, goal: str) -> str:
    """What is reached of a goal, with what it may be off by where it was estimated from draws."""
    value = f"{getattr(reached, goal):.4f}"
    is_drawn = isinstance(reached, Utility) and reached.confidence is not None
    return f"{value} +- {reached.error:.4f}" if is_drawn else value


def _format_epsilon(needed: Fraction | None) -> str:
    return "-" if needed is None else round_up(needed)


_LONG = 500
"""From so many items on, a mechanism whose losses are counted is only tried with what the best of the others needs."""


def describe_ties(tallies: Iterable[Tally], k: int) -> str | None:
    """Why no epsilon makes a list certain, where the k-th score of one of them is that of the next, and what does."""
    for tally in tallies:
        optimal = goals(tally, k)["optimal"] if k < tally.d else (k, k)
        assert not isinstance(optimal, Hits), "it is a region"
        first, end = optimal
        if end > k:
            instead = " or ".join(str(size) for size in (first, end) if 0 < size < tally.d)
            fits = f", or k = {instead}" if instead else ""
            return f"k must not be {k} for goal 'top': ranks {k} and {k + 1} are tied; ask for goal 'optimal'{fits}"
    return None


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

    Computed from the scores, so NOT private: for public or made-up data. Of scores by group it is the epsilon of the
    whole release with which the list of every group reaches the goal so often.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        What `top_k` would be given; or in place of the scores a `Sketch`, which knows its own sensitivity.
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
    aim = Aim(goal, _probability(probability), check_goal(goal, share))
    contenders = type(DEFAULT).contenders() if mechanism is None else [check_comparable(mechanism)]
    _check_goal_of(contenders, goal)
    read = Scores.of(scores)
    needed: Fraction | None = None
    for contender in contenders:
        cases = read.cases(k, 1, contender, sensitivity, adjacency)
        check_computed(contender)
        drawn = [case for case in cases if case.needs_epsilon]
        if not drawn:
            return LEAST
        if needed is None or all(Search.of(case, aim).is_enough(needed) for case in drawn):
            hardest = hardest_case(drawn, aim, needed)
            needed = needed if hardest is None else hardest[0]
    if needed is None:
        ties = None if goal != "top" else describe_ties(read.tallies, k)
        raise InvalidValueError(ties or UNREACHED)
    return needed * read.lists_per_user


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
        What `top_k` would be given; or in place of the scores a `Sketch`, which knows its own sensitivity.
    epsilon
        Also tell what each mechanism reaches with this one.
    probability
        How often a goal must be reached; and how much of the list must be right on average, for recall.
    share
        For recall: the share of the list that must be right so often, in place of the average.
    goal
        Look for the epsilon that this one goal needs alone, which takes less long; by default for all.
    mechanisms
        Which ones; by default canonical with several gammas, one-shot, peeling, joint, the histogram where it is known
        how many scores one user can move, and `Core` for the goal "recall"; `plan` lists the same. Of lists of 500
        items or more, joint is left out where it needs more than the best. A `Sampler` is drawn from at `epsilon`.

    Examples
    --------
    >>> import discreet
    >>> table = discreet.compare([90, 80, 5, 1], k=2, mechanisms=[discreet.Canonical(), discreet.Canonical(gamma=1)])
    >>> table.best("top").mechanism
    Canonical(gamma='1', noise='gumbel')
    """
    wanted, read = _probability(probability), Scores.of(scores)
    enough = check_share(share) if goal is None else check_goal(goal, share)
    aims = [Aim(each, wanted, enough) for each in (GOALS if goal is None else (goal,))]
    own = _find_contenders(read, sensitivity, goal) if mechanisms is None else list(mechanisms)
    for mechanism in own:
        check_comparable(mechanism)
        if not isinstance(mechanism, Sampler):
            check_computed(mechanism)
        elif epsilon is None:
            raise InvalidValueError(f"epsilon must be given to compare {mechanism!r}, which is drawn from at one")
    _check_goal_of(own, goal)
    spent = None if epsilon is None else positive(epsilon, "epsilon")
    judge = partial(_judge, read, k, aims, spent, sensitivity, adjacency)
    slow = [each for each in own if mechanisms is None and _takes_long(each, k)]
    choices: list[Choice] = []
    for mechanism in own:
        if mechanism not in slow:
            choices.append(judge(mechanism, choices))
    known, left_out = list(choices), []
    for mechanism in slow:
        cases = read.cases(k, 1, mechanism, sensitivity, adjacency)
        if any(_can_win(cases, read, known, aim) for aim in aims):
            choices.append(judge(mechanism, choices))
        else:
            left_out.append(mechanism)
    choices.sort(key=lambda choice: own.index(choice.mechanism))
    origin, ties = describe_origin(read.source, int(k)), describe_ties(read.tallies, int(k))
    return Comparison(int(k), wanted, spent, choices, enough, read.groups, origin, ties, left_out)


def _find_contenders(read: Scores, sensitivity: Sensitivity | None, goal: str | None) -> list[Mechanism]:
    """The mechanisms that are compared where none are named, in the order in which they are listed."""
    every = all_contenders(read.has_few_items(sensitivity), goal or "top")
    return [contender for contender in every if contender.form is not Form.UNKNOWN]


def _judge(
    read: Scores,
    k: Any,
    aims: list[Aim],
    epsilon: Fraction | None,
    sensitivity: Sensitivity | None,
    adjacency: str | None,
    mechanism: Mechanism,
    before: list[Choice],
) -> Choice:
    """What a mechanism needs for each aim, and what it reaches at an epsilon; those before say where to look first."""
    cases = read.cases(k, 1 if epsilon is None else epsilon, mechanism, sensitivity, adjacency)
    if not any(case.needs_epsilon for case in cases):
        most = max(tally.d for tally in read.tallies)
        raise InvalidValueError(f"k must be less than {most}, the number of items, to compare, not {k}")
    needs: dict[str, Fraction | None] = dict.fromkeys(aim.goal for aim in aims)
    if not isinstance(mechanism, Sampler):
        needs = {aim.goal: _need(read, cases, aim, _guess(before, mechanism, int(k), aim.goal)) for aim in aims}
    return Choice(mechanism, needs, None if epsilon is None else _reach(read.source, cases, aims[0].share))


def _takes_long(mechanism: Mechanism, k: Any) -> bool:
    """Whether the epsilon that a mechanism needs for k items is a matter of minutes: where many losses are counted."""
    return mechanism.form is Form.LOSSES and isinstance(k, Integral) and int(k) >= _LONG


def _can_win(cases: list[Case], read: Scores, choices: list[Choice], aim: Aim) -> bool:
    """Whether lists reach a goal with the least epsilon that others need."""
    least = find_least(choices, aim.goal)
    drawn = [case for case in cases if case.needs_epsilon]
    return least is None or all(Search.of(case, aim).is_enough(least / read.lists_per_user) for case in drawn)


def find_least(choices: Iterable[Choice], goal: str) -> Fraction | None:
    """The least that any mechanism needs."""
    return min((needed for choice in choices if (needed := choice.needs[goal]) is not None), default=None)


def _check_goal_of(mechanisms: Iterable[Mechanism], goal: str | None) -> None:
    """Raises where a list that may be shorter than k is asked for more than how much of the true one it has."""
    for mechanism in mechanisms:
        if mechanism.may_release_fewer and goal != "recall":
            raise InvalidValueError(
                f"goal must be recall for {mechanism!r}, whose list may have fewer than k items, not {quote(goal)}"
            )


def _guess(choices: list[Choice], mechanism: Mechanism, k: int, goal: str) -> Fraction | None:
    """About what a mechanism needs, by what the one before it needs: those that decide item by item need more."""
    known = choices[-1].needs[goal] if choices else None
    if known is None:
        return None
    return known * _typical_need(mechanism, k, goal) / _typical_need(choices[-1].mechanism, k, goal)


def _typical_need(mechanism: Mechanism, k: int, goal: str) -> Fraction:
    race = Fraction(3, 2) if goal == "recall" else 1 + Fraction(k, 3)
    return {Form.RACE: race, Form.LOSSES: Fraction(2)}.get(mechanism.form, Fraction(1))


def _need(read: Scores, cases: list[Case], aim: Aim, near: Fraction | None) -> Fraction | None:
    """The epsilon of a release with which all its lists reach a goal."""
    hardest = hardest_case(cases, aim, None if near is None else near / read.lists_per_user)
    return None if hardest is None else hardest[0] * read.lists_per_user


def _reach(source: Source | GroupedSource, cases: list[Case], share: Fraction | None) -> Utility | GroupedUtility:
    """What lists reach with the epsilon that they were asked for with."""

    def measure(case: Case) -> Utility:
        return measure_list(case.request, lambda: case.tally, Precision(), share)

    if isinstance(source, GroupedSource):
        return GroupedUtility(dict(zip(source.keys, map(measure, cases), strict=True)))
    return measure(cases[0])


def _probability(value: Any) -> Fraction:
    number = exact(value, "probability")
    if not 0 < number < 1:
        raise InvalidValueError(f"probability must be above 0 and below 1, not {quote(value)}")
    return number


# Noise on all scores where a user is held to few items: what it needs, with what is lost by holding them to it.
#
# Fewer items of a user mean less noise, and scores that are not the true ones. A list from such scores is judged by the
# scores of all items, so that both are in what is told. Computed from the events, so NOT private.

BOUNDS = (1, 2, 3, 5, 10, 30, 100)
"""How many items of a user are tried; the list is public, so that a plan says nothing by what it tries."""


def compare_bounds(
    read: Scores, k: int, aim: Aim, epsilon: Fraction | None, adjacency: Any, near: Fraction | None
) -> Iterator[tuple[Choice, Case]]:
    """What the histogram needs on events that have no bound yet, for each of several bounds; nothing for other scores.

    Parameters
    ----------
    read, k, aim, adjacency
        The scores, how many items are asked for, what is to be reached, and what a release must protect.
    epsilon
        Also tell what is reached with this one.
    near
        About which epsilon to look first.
    """
    source = read.source
    if not isinstance(source, ClippableSource) or not source.can_be_clipped or source.d > MOST_VALUES:
        return
    for most in BOUNDS:
        clipped = source.count_clipped(most)
        case = make_clipped_case(clipped, k, 1 if epsilon is None else epsilon, adjacency)
        needed = find_epsilon(case, aim, near)
        near = needed or near
        lost = clipped.truth.count_lost(case.tally, k, count_right_ranks(case.judged_by, k))
        yield Choice(Histogram(), {aim.goal: needed}, _clip_reach(case, aim, epsilon), ItemBound(most, lost)), case
        if clipped.keeps_all:
            # More items of a user would only mean more noise.
            return


def make_clipped_case(source: ClippedSource, k: int, epsilon: Any, adjacency: Any = None) -> Case:
    """A list from the scores with a bound, judged by the scores of all items."""
    return Case(make_analysis_request(source, k, epsilon, Histogram(), None, adjacency), source.tally(), source.truth)


def find_epsilon(case: Case, aim: Aim, near: Fraction | None) -> Fraction | None:
    """The smallest epsilon with which a list reaches a goal; None where even hardly any noise is too much."""
    search = Search.of(case, aim)
    return search.smallest(near or Fraction(1)) if search.is_enough(MOST) else None


def _clip_reach(case: Case, aim: Aim, epsilon: Fraction | None) -> Utility | None:
    return None if epsilon is None else at_epsilon(case.meter(GOALS, aim.share), epsilon, aim.share)
