"""Find the epsilon that each mechanism needs for a goal, and compare mechanisms. NOT private: computed from scores.

`compare_bounds` does the same for noise on all scores when each user is held to few items: a smaller contribution bound
means less noise and scores further from the true ones. Such a list is judged by the scores of all items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.analysis.found import ALL_FOUND, AmongFound
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
from discreet.privacy import Number, Sensitivity, exact, is_whole_number, positive
from discreet.release.sketch import Sketch
from discreet.release.theme import check_matplotlib
from discreet.sources.base import GroupedSource
from discreet.sources.clipped import ClippableSource, ClippedSource
from discreet.text import align_columns, decimal, make_html_table, make_html_view, number_for_programs, round_up

UNREACHED = f"probability must be one that epsilon = {MOST} reaches, and these scores and ties do not let it"

_LONG = 500
"""From this k on, joint's epsilon takes minutes: joint is only tested at the least epsilon of the others."""

BOUNDS = (1, 2, 3, 5, 10, 30, 100)
"""The contribution bounds that are tried; a fixed public list, so a plan reveals nothing by its candidates."""


@dataclass(frozen=True)
class ItemBound:
    """A contribution bound, and the number of items of the true list that the noise-free list under it lacks."""

    max_items_per_user: int
    lost: Fraction

    def __str__(self) -> str:
        return f"at most {self.max_items_per_user} item{'s' if self.max_items_per_user > 1 else ''} a user"


class Epsilon(Fraction):
    """An exact epsilon that prints as a decimal number; in calculations it is a Fraction.

    Examples
    --------
    >>> str(Epsilon("0.1569")), Epsilon("0.1569") * 2
    ('0.1569', Fraction(1569, 5000))
    """

    __slots__ = ()

    def __str__(self) -> str:
        return number_for_programs(self)

    def __repr__(self) -> str:
        return f"Epsilon({str(self)!r})"


@dataclass(frozen=True, repr=False)
class Choice:
    """One mechanism: the epsilon it needs for each goal, None if none is enough, and its utility at one epsilon.

    For a `Sampler` the need is not computed and None. With a `bound`, the mechanism is applied to scores under this
    contribution bound and judged by the scores of all items.
    """

    mechanism: Mechanism
    needs: dict[str, Fraction | None]
    reaches: Utility | GroupedUtility | None
    bound: ItemBound | None = None

    @property
    def label(self) -> str:
        """Return the name shown in legends."""
        return self.mechanism.label if self.bound is None else f"{self.mechanism.label}, {self.bound}"

    def __repr__(self) -> str:
        needs = {goal: _format_epsilon(needed) for goal, needed in self.needs.items()}
        return f"Choice({self}, needs {', '.join(f'{needed} for {goal}' for goal, needed in needs.items())})"

    def __str__(self) -> str:
        return repr(self.mechanism) if self.bound is None else f"{self.mechanism!r}, {self.bound}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Needs and utilities of mechanisms. NOT private if computed from scores; from a sketch it is post-processing.

    For scores by group, a need is the epsilon with which every group reaches the goal, and a utility the share of
    groups that reach it at `epsilon`. `left_out` are mechanisms that need more than the best, if the exact need would
    take minutes.
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
        """Return the cost of the sketch in words; None if the comparison was computed from scores."""
        return None if self.origin == NOT_PRIVATE else self.origin

    def best(self, goal: str = "top") -> Choice:
        """Return the choice that needs the least epsilon for a goal."""
        return self.ranked(goal)[0][1]

    def ranked(self, goal: str = "top") -> list[tuple[Fraction, Choice]]:
        """Return the choices that reach a goal, with the epsilon that each needs, the least first."""
        needs = [(needed, choice) for choice in self.choices if (needed := choice.needs[goal]) is not None]
        if not needs:
            raise InvalidValueError((goal == "top" and self.ties) or UNREACHED)
        return sorted(needs, key=lambda pair: pair[0])

    def notes(self) -> list[str]:
        """Return lines on left-out mechanisms and on privacy."""
        return [*(f"{mechanism!r} needs more: how much was not computed." for mechanism in self.left_out), self.origin]

    def plot(self, ax: Any = None, *, dark: bool = False) -> Any:
        """Draw the epsilon that each mechanism needs, with a marker for each goal.

        The parameters are those of `Release.plot`.

        Examples
        --------
        >>> import discreet
        >>> table = discreet.compare([90, 80, 5, 1], k=2, goal="top", mechanisms=[discreet.Canonical()])
        >>> [label.get_text() for label in table.plot().axes[0].get_yticklabels()]
        ['canonical, gamma = 3/4']
        """
        check_matplotlib()
        from discreet.analysis.plots import draw_comparison

        return draw_comparison(self, ax, dark)

    def _asked(self) -> list[str]:
        """Return the goals whose epsilon was searched."""
        return list(self.choices[0].needs) if self.choices else []

    def _rows(self) -> list[list[str]]:
        """Return the table, with its head first."""
        asked = self._asked()
        head = ["mechanism", *(f"epsilon for {name_goal(goal, self.share)}" for goal in asked)]
        if self.epsilon is not None:
            head += [f"{name_goal(goal, self.share)} at {round_up(self.epsilon)}" for goal in GOALS]
        rows = [head]
        for choice in self.choices:
            row = [str(choice), *(_format_epsilon(choice.needs[goal]) for goal in asked)]
            if (reached := choice.reaches) is not None:
                row += [_format_chance(reached, goal) for goal in GOALS]
            rows.append(row)
        return rows

    def title(self) -> str:
        """Return the line above the table."""
        enough = decimal(self.probability)
        where = "" if self.groups is None else f" in each of {self.groups:,} groups"
        title = f"k = {self.k}{where}, each goal reached with probability {enough}"
        average = self.share is None and "recall" in self._asked()
        return f"{title}, recall {enough} on average" if average else title

    def __repr__(self) -> str:
        spent = "" if self.epsilon is None else f", epsilon={round_up(self.epsilon)}"
        return f"Comparison({len(self.choices)} choices, k={self.k}, probability={decimal(self.probability)}{spent})"

    def __str__(self) -> str:
        return "\n".join([self.title(), *align_columns(self._rows()), *self.notes()])

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return make_html_view(self.title(), make_html_table(rows, head), self.notes())


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
) -> Epsilon:
    """Return the smallest epsilon, to four digits and rounded up, with which a goal is reached often enough.

    NOT private, because it is computed from the scores: for public or made-up data. For scores by group it is the
    epsilon of the whole release with which the list of every group reaches the goal.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        As in `top_k`; in place of the scores, a `Sketch`, which has its own sensitivity.
    goal
        "top", "great", "good", "optimal" or "recall", as in `Utility`.
    probability
        The probability with which the goal must be reached; for "recall" without a share, the expected share.
    share
        For "recall": the share of the list that must be right with this probability, "0.9" for nine in ten.
    mechanism
        A mechanism whose utility is computed and not sampled. By default the least epsilon over several gammas of
        `Canonical`; `compare(...).best(goal)` names the gamma.

    Returns
    -------
    Epsilon
        The epsilon, exactly: a `Fraction` that prints as a decimal number, which `top_k` accepts as it is.

    Examples
    --------
    >>> import discreet
    >>> discreet.epsilon_for([90, 80, 5, 1], k=2, goal="top", probability="0.95", mechanism=discreet.Canonical())
    Epsilon('0.07669')
    >>> print(discreet.epsilon_for([90, 80, 5, 1], k=2, goal="top", probability="0.95"))
    0.05893
    """
    aim = Aim(goal, _check_probability(probability), check_goal(goal, share))
    contenders = type(DEFAULT).contenders() if mechanism is None else [check_comparable(mechanism)]
    _check_goal_of(contenders, goal)
    read = Scores.of(scores)
    needed: Fraction | None = None
    for contender in contenders:
        cases = read.cases(k, 1, contender, sensitivity, adjacency)
        check_computed(contender)
        drawn = [case for case in cases if case.needs_epsilon]
        if not drawn:
            return Epsilon(LEAST)
        if needed is None or all(Search.of(case, aim).is_enough(needed) for case in drawn):
            hardest = hardest_case(drawn, aim, needed)
            needed = needed if hardest is None else hardest[0]
    if needed is None:
        ties = None if goal != "top" else describe_ties(read.tallies, k)
        raise InvalidValueError(ties or UNREACHED)
    return Epsilon(needed * read.lists_per_user)


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
    """Return the epsilon that each mechanism needs for each goal, and its utility at one epsilon.

    NOT private, because it is computed from the scores: for public or made-up data.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        As in `top_k`; in place of the scores, a `Sketch`, which has its own sensitivity.
    epsilon
        Also compute the utility of each mechanism at this epsilon.
    probability
        The probability with which a goal must be reached; for recall, the expected share.
    share
        For recall: the share of the list that must be right with this probability, in place of the expected share.
    goal
        Search for the epsilon of this goal alone, which is faster; by default of all goals.
    mechanisms
        The mechanisms; by default canonical with several gammas, one-shot, peeling, joint, the histogram if a bound on
        the number of scores that one user can move is known, and `Core` for the goal "recall"; `plan` lists the same.
        From k = 500 on, joint is left out if it needs more than the best. A `Sampler` is drawn from at `epsilon`.

    Examples
    --------
    >>> import discreet
    >>> table = discreet.compare([90, 80, 5, 1], k=2, mechanisms=[discreet.Canonical(), discreet.Canonical(gamma=1)])
    >>> table.best("top").mechanism
    Canonical(gamma='1', noise='gumbel')
    """
    wanted, read = _check_probability(probability), Scores.of(scores)
    enough = check_share(share) if goal is None else check_goal(goal, share)
    aims = [Aim(each, wanted, enough) for each in (GOALS if goal is None else (goal,))]
    if mechanisms is None:
        every = all_contenders(read.has_few_items(sensitivity), goal or "top")
        own = [contender for contender in every if contender.form is not Form.UNKNOWN]
    else:
        own = list(mechanisms)
    for mechanism in own:
        check_comparable(mechanism)
        if not isinstance(mechanism, Sampler):
            check_computed(mechanism)
        elif epsilon is None:
            raise InvalidValueError(f"epsilon must be given to compare {mechanism!r}, which is drawn from at one")
    _check_goal_of(own, goal)
    spent = None if epsilon is None else positive(epsilon, "epsilon")

    def measure(case: Case) -> Utility:
        if isinstance(case.request.guarantee.mechanism, AmongFound):
            return at_epsilon(case.meter(GOALS, enough), case.request.guarantee.epsilon, enough)
        return measure_list(case.request, lambda: case.tally, Precision(), enough)

    def judge(mechanism: Mechanism) -> Choice:
        cases = read.cases(k, 1 if spent is None else spent, mechanism, sensitivity, adjacency)
        if not any(case.needs_epsilon for case in cases):
            most = max(tally.d for tally in read.tallies)
            raise InvalidValueError(f"k must be less than {most}, the number of items, to compare, not {k}")
        needs: dict[str, Fraction | None] = dict.fromkeys(aim.goal for aim in aims)
        for aim in [] if isinstance(mechanism, Sampler) else aims:
            # Begin near the need of the mechanism before, times the usual ratio of the two.
            near = choices[-1].needs[aim.goal] if choices else None
            if near is not None:
                near *= _typical_need(mechanism, int(k), aim.goal)
                near /= _typical_need(choices[-1].mechanism, int(k), aim.goal) * read.lists_per_user
            hardest = hardest_case(cases, aim, near)
            needs[aim.goal] = None if hardest is None else hardest[0] * read.lists_per_user
        reaches: Utility | GroupedUtility | None = None
        if spent is not None and isinstance(read.source, GroupedSource):
            reaches = GroupedUtility(dict(zip(read.source.keys, map(measure, cases), strict=True)))
        elif spent is not None:
            reaches = measure(cases[0])
        return Choice(mechanism, needs, reaches)

    is_long = mechanisms is None and is_whole_number(k) and k >= _LONG
    slow = [each for each in own if is_long and each.form is Form.LOSSES]
    choices: list[Choice] = []
    for mechanism in own:
        if mechanism not in slow:
            choices.append(judge(mechanism))
    least = {aim: find_least(choices, aim.goal) for aim in aims}
    left_out = []
    for mechanism in slow:
        drawn = [each for each in read.cases(k, 1, mechanism, sensitivity, adjacency) if each.needs_epsilon]
        if any(
            most is None or all(Search.of(case, aim).is_enough(most / read.lists_per_user) for case in drawn)
            for aim, most in least.items()
        ):
            choices.append(judge(mechanism))
        else:
            left_out.append(mechanism)
    choices.sort(key=lambda choice: own.index(choice.mechanism))
    origin, ties = describe_origin(read.source, int(k)), describe_ties(read.tallies, int(k))
    if isinstance(read.source, Sketch) and read.source.terms is not None:
        origin += f"; {ALL_FOUND}"
    return Comparison(int(k), wanted, spent, choices, enough, read.groups, origin, ties, left_out)


def compare_bounds(
    read: Scores, k: int, aim: Aim, epsilon: Fraction | None, adjacency: Any, near: Fraction | None
) -> Iterator[tuple[Choice, Case]]:
    """Yield the need of the histogram on events under each of several contribution bounds; nothing for other scores.

    Parameters
    ----------
    read, k, aim, adjacency
        The scores, the number of items, the goal, and the adjacency.
    epsilon
        Also compute the utility at this epsilon.
    near
        The epsilon at which the search begins.
    """
    source = read.source
    if not isinstance(source, ClippableSource) or not source.can_be_clipped or source.d > MOST_VALUES:
        return
    for most in BOUNDS:
        clipped = source.count_clipped(most)
        case = make_clipped_case(clipped, k, 1 if epsilon is None else epsilon, adjacency)
        search = Search.of(case, aim)
        needed = search.smallest(near or Fraction(1)) if search.is_enough(MOST) else None
        near = needed or near
        lost = clipped.truth.count_lost(case.tally, k, count_right_ranks(case.judged_by, k))
        reaches = None if epsilon is None else at_epsilon(case.meter(GOALS, aim.share), epsilon, aim.share)
        yield Choice(Histogram(), {aim.goal: needed}, reaches, ItemBound(most, lost)), case
        if clipped.keeps_all:
            # A larger bound would only add noise.
            return


def make_clipped_case(source: ClippedSource, k: int, epsilon: Any, adjacency: Any = None) -> Case:
    """Return a list drawn from the clipped scores and judged by the scores of all items."""
    return Case(make_analysis_request(source, k, epsilon, Histogram(), None, adjacency), source.tally(), source.truth)


def find_least(choices: Iterable[Choice], goal: str) -> Fraction | None:
    """Return the least epsilon that any choice needs for a goal."""
    return min((needed for choice in choices if (needed := choice.needs[goal]) is not None), default=None)


def describe_ties(tallies: Iterable[Tally], k: int) -> str | None:
    """Return advice if ranks k and k+1 are tied in some list, so that no epsilon makes the goal top certain."""
    for tally in tallies:
        optimal = goals(tally, k)["optimal"] if k < tally.d else (k, k)
        assert not isinstance(optimal, Hits), "it is a region"
        first, end = optimal
        if end > k:
            instead = " or ".join(str(size) for size in (first, end) if 0 < size < tally.d)
            fits = f", or k = {instead}" if instead else ""
            return f"k must not be {k} for goal 'top': ranks {k} and {k + 1} are tied; ask for goal 'optimal'{fits}"
    return None


def _check_goal_of(mechanisms: Iterable[Mechanism], goal: str | None) -> None:
    """Raise if a mechanism that may release fewer than k items is asked for a goal other than recall."""
    for mechanism in mechanisms:
        if mechanism.may_release_fewer and goal != "recall":
            raise InvalidValueError(
                f"goal must be recall for {mechanism!r}, whose list may have fewer than k items, not {quote(goal)}"
            )


def _typical_need(mechanism: Mechanism, k: int, goal: str) -> Fraction:
    """Return the usual epsilon of a mechanism relative to canonical: those that decide item by item need more."""
    race = Fraction(3, 2) if goal == "recall" else 1 + Fraction(k, 3)
    return {Form.RACE: race, Form.LOSSES: Fraction(2)}.get(mechanism.form, Fraction(1))


def _check_probability(value: Any) -> Fraction:
    number = exact(value, "probability")
    if not 0 < number < 1:
        raise InvalidValueError(f"probability must be above 0 and below 1, not {quote(value)}")
    return number


def _format_chance(reached: Utility | GroupedUtility, goal: str) -> str:
    """Return a probability, and for a sampled one the interval that holds it with the stated confidence."""
    chance = getattr(reached, goal)
    if not isinstance(reached, Utility) or reached.confidence is None:
        return f"{chance:.4f}"
    return f"{max(0.0, chance - reached.error):.4f} to {min(1.0, chance + reached.error):.4f}"


def _format_epsilon(needed: Fraction | None) -> str:
    return "-" if needed is None else round_up(needed)
