"""Which epsilon and which mechanism, for people: a table, a sentence that recommends, another k, and curves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np

from discreet.analysis.choose import Choice, Comparison, compare
from discreet.analysis.goals import GOALS, Hits, check_goal, goals, name_goal
from discreet.analysis.search import Aim, Case, Scores, hardest_case
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import all_contenders
from discreet.privacy import MANY, Number, Sensitivity
from discreet.sketches import Sketch
from discreet.sources.groups import GroupedSource
from discreet.study.page import page
from discreet.study.results import Point, Results
from discreet.tally import Tally
from discreet.text import decimal

_MEANING = {
    "top": "exactly the top {k}",
    "optimal": "a top {k}, whichever of equal scores are in it",
    "great": "a list with the best {great} in it and nothing beyond rank {great_last}",
    "good": "a list with the best {good} in it and nothing beyond rank {good_last}",
    "recall": "a list with at least {least} of the {k} right",
}
_SPAN, _STEPS = 8.0, 33
_ROUGH = 1e-3
"""What the points of a curve may be off by: less than is seen."""

_BARS = " ▁▂▃▄▅▆▇█"
_GAPS = 3
_MUCH_LESS = 0.7
"""Another k is worth telling where it costs this much or less."""


@dataclass(frozen=True)
class OtherK:
    """Another number of items that costs far less, because the scores have a gap there."""

    k: int
    epsilon: Fraction


@dataclass(frozen=True)
class Plan:
    """What each mechanism needs for a goal, and what to do. NOT private but where it is computed from a sketch.

    Attributes
    ----------
    name
        What the scores are called on the page.
    d
        How many items have scores.
    goal
        What was to be reached.
    meaning
        That in words.
    comparison
        What each mechanism needs for it.
    sensitivity, adjacency
        What the release must protect.
    other_k
        Another k that would cost far less, or None; of scores by group it is not looked for.
    each_user, groups_per_user
        Of scores by group: whether a user counts in one or in many, and in how many at most; None and 1 of others.

    Examples
    --------
    >>> import discreet
    >>> plan = discreet.plan([90, 88, 85, 84, 41, 40, 38, 9, 8, 7], k=6, goal="top", probability="0.9")
    >>> plan.best.mechanism
    Canonical(gamma='15/16', noise='gumbel')
    >>> plan.other_k.k
    4
    """

    name: str
    d: int
    goal: str
    meaning: str
    comparison: Comparison
    sensitivity: Sensitivity
    adjacency: str
    other_k: OtherK | None
    _cases: list[Case] = field(repr=False, compare=False)
    each_user: str | None = None
    groups_per_user: int = 1

    @property
    def best(self) -> Choice:
        """The mechanism that needs least for the goal."""
        return self.comparison.best(self.goal)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that it needs."""
        return self.comparison.ranked(self.goal)[0][0]

    @property
    def recommendation(self) -> str:
        """What to do, in a few sentences."""
        ranked = self.comparison.ranked(self.goal)
        needed, best = ranked[0]
        sentences = [
            f"Recommended: {best.mechanism!r} with epsilon = {decimal(needed)}.",
            f"On scores like these it releases {self.meaning}.",
        ]
        if len(ranked) > 1:
            more, other = ranked[1]
            sentences.append(f"The next best, {other.mechanism!r}, needs {float(more / needed):.3g} times as much.")
        if self.other_k is not None:
            sentences.append(self._describe_other_k(self.other_k))
        sentences.append(_opinion(needed))
        return " ".join(sentences)

    @property
    def command(self) -> str:
        """The command that releases as recommended, on a file of the private scores."""
        choice = self.best.mechanism
        options = {name: value for name, value in choice.parameters().items() if value != _usual(choice).get(name)}
        if self.sensitivity != Sensitivity():
            bound = "" if self.sensitivity.items is None else f",{self.sensitivity.items}"
            options["sensitivity"] = f"{self.sensitivity.down},{self.sensitivity.up}{bound}"
        if (most := self._cases[0].request.source.max_items_per_user) is not None:
            options["max-items-per-user"] = most
        if self.adjacency != "add-remove":
            options["adjacency"] = self.adjacency
        words = "".join(f" --{name} {value}" for name, value in options.items())
        terms = f"-k {self.comparison.k} --epsilon {decimal(self.epsilon)} --mechanism {choice.name}{words}"
        return f"discreet select FILE {self._group_options()}{terms}"

    def _group_options(self) -> str:
        if self.each_user is None:
            return ""
        bound = f" --max-groups-per-user {self.groups_per_user}" if self.each_user == MANY else ""
        columns = "--user USER --item ITEM --domain ITEMS --by COLUMN --groups GROUPS"
        return f"{columns} --each-user {self.each_user}{bound} "

    @cached_property
    def curve(self) -> dict[float, dict[str, float]]:
        """All goals with the best mechanism, by epsilon, from an eighth of the one recommended to eight times it.

        Of scores by group it is that of the group that needs most.
        """
        case = next(one for one in self._cases if one.request.guarantee.mechanism == self.best.mechanism)
        return self._trace(case, GOALS)

    @cached_property
    def curves(self) -> dict[str, dict[float, float]]:
        """The goal with each mechanism, by its name and by epsilon."""
        traced = {one.request.guarantee.mechanism.label: self._trace(one, (self.goal,)) for one in self._cases}
        return {label: {x: shares[self.goal] for x, shares in curve.items()} for label, curve in traced.items()}

    def page(self) -> str:
        """A page with the curves of all mechanisms and the recommendation, which is marked."""
        curves = self.curves
        points = [self._point(label, x, chance) for label, curve in curves.items() for x, chance in curve.items()]
        mark = self._point(self.best.mechanism.label, float(self.epsilon), float(self.comparison.probability))
        notes = [self.recommendation, f"To release: {self.command}", "What each mechanism needs:", *self._lines()]
        return page(Results(points, [], [], [mark]), notes, self.comparison.sketch)

    def __str__(self) -> str:
        return "\n".join(
            [self.recommendation, f"To release: {self.command}", "", str(self.comparison), "", *self._draw_chart()]
        )

    def _point(self, method: str, x: float, chance: float) -> Point:
        return Point("plan", self.name, self.d, self.comparison.k, method, x, self.goal, chance, 0.0)

    def _trace(self, case: Case, asked: tuple[str, ...]) -> dict[float, dict[str, float]]:
        read = case.meter(asked, self.comparison.share)
        epsilons = [float(self.epsilon) * _SPAN ** (2.0 * step / (_STEPS - 1) - 1.0) for step in range(_STEPS)]
        return {epsilon: read(Fraction(epsilon) / self.groups_per_user, _ROUGH).values for epsilon in epsilons}

    def _describe_other_k(self, other: OtherK) -> str:
        share = float(other.epsilon / self.epsilon)
        cost = "half" if 0.45 <= share <= 0.55 else f"{share:.2g}"
        return f"k = {other.k} costs {cost} of k = {self.comparison.k}: the gap is at {other.k}."

    def _lines(self) -> list[str]:
        return [
            f"{choice.mechanism!r}: {_describe_need(choice.needs[self.goal])}" for choice in self.comparison.choices
        ]

    def _draw_chart(self) -> list[str]:
        """The curve of the best mechanism as text: one column an epsilon, a taller bar for a larger probability."""
        low, high = min(self.curve), max(self.curve)
        known = [goal for goal in GOALS if not any(isnan(shares[goal]) for shares in self.curve.values())]
        names = {goal: name_goal(goal, self.comparison.share) for goal in known}
        bars = {
            name: "".join(_BARS[round((len(_BARS) - 1) * shares[goal])] for shares in self.curve.values())
            for goal, name in names.items()
        }
        width = max(map(len, bars))
        lines = [f"{name:>{width}} |{bar}|" for name, bar in bars.items()]
        left, right = f"{low:.3g}", f"{high:.3g}"
        scale = left + " " * max(1, len(self.curve) - len(left) - len(right)) + right
        return [f"How likely each goal is with {self.best.mechanism!r}, by epsilon:", *lines, " " * (width + 2) + scale]


def plan(
    scores: Any,
    k: int,
    *,
    goal: str = "top",
    probability: Number = "0.95",
    share: Number | None = None,
    epsilon: Number | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
    name: str = "scores",
) -> Plan:
    """Which mechanism and which epsilon a release needs, over all mechanisms and several gammas of canonical.

    Computed from the scores, so NOT private: for public or made-up data. Of scores by group it is the epsilon of the
    whole release with which the list of every group reaches the goal.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        What `top_k` would be given; or in place of the scores a `Sketch`, which knows its own sensitivity.
    goal, probability, share
        What is to be reached, as in `epsilon_for`.
    epsilon
        Also tell what each mechanism reaches with this one.
    name
        What the scores are called on the page.

    Returns
    -------
    Plan
        The recommendation, what every mechanism needs, another k that would cost far less, curves and a page.

    Examples
    --------
    >>> import discreet
    >>> found = discreet.plan([90, 80, 70, 12, 11, 10], k=3, goal="recall", probability="0.9")
    >>> print(found.recommendation.split(". ")[1])
    On scores like these it releases a list of 3 items of which 0.9 are right on average
    >>> found.command.split(" --mechanism ")[1]
    'canonical --gamma 1'
    """
    read, enough = Scores.of(scores), check_goal(goal, share)
    contenders = all_contenders(read.has_few_items(sensitivity), goal)
    candidates = [contender for contender in contenders if contender.form is not Form.UNKNOWN]
    table = compare(
        read, k, epsilon=epsilon, probability=probability, share=share, goal=goal, mechanisms=candidates,
        sensitivity=sensitivity, adjacency=adjacency,
    )  # fmt: skip
    needed, best = table.ranked(goal)[0]
    source, aim = read.source, Aim(goal, table.probability, enough)
    lists = {each.mechanism: read.cases(k, needed, each.mechanism, sensitivity, adjacency) for each in table.choices}
    hardest = _find_hardest(lists[best.mechanism], aim, needed / read.lists_per_user)
    drawn = [cases[hardest] for cases in lists.values()]
    case = lists[best.mechanism][hardest]
    own = source.sensitivity if isinstance(source, Sketch) else sensitivity
    limits, neighbours = own or Sensitivity(), case.request.guarantee.adjacency
    meaning = _describe_goal(case.tally, table, goal)
    if isinstance(source, GroupedSource):
        shared = source.each_user, source.groups_per_user
        return Plan(name, case.request.d, goal, meaning, table, limits, neighbours, None, drawn, *shared)
    other = _find_other_k(case, aim, needed)
    return Plan(name, source.d, goal, meaning, table, limits, neighbours, other, drawn)


def _find_hardest(cases: list[Case], aim: Aim, needed: Fraction) -> int:
    """Which of the lists needs most."""
    hardest = hardest_case(cases, aim, needed)
    return next(index for index, case in enumerate(cases) if hardest is not None and case is hardest[1])


def _describe_goal(tally: Tally, table: Comparison, goal: str) -> str:
    k, wanted = table.k, goals(tally, table.k, table.share)
    recall, chance = wanted["recall"], decimal(table.probability)
    where = "" if table.groups is None else f", in each of {table.groups:,} groups"
    if goal == "recall" and table.share is None:
        if table.best(goal).mechanism.may_release_fewer:
            return f"a list that has {chance} of the true {k} on average, and may be shorter{where}"
        return f"a list of {k} items of which {chance} are right on average{where}"
    numbers = {"k": k, "least": recall.least if isinstance(recall, Hits) else None}
    for name in ("great", "good"):
        region = wanted[name]
        if not isinstance(region, Hits):
            numbers |= {name: region[0], f"{name}_last": region[1]}
    return f"{_MEANING[goal].format(**numbers)} with probability {chance}{where}"


def _find_other_k(case: Case, aim: Aim, needed: Fraction) -> OtherK | None:
    """The k from half of this one to half as many again that costs least, if that is much less: tried at large gaps."""
    tally, k = case.tally, case.request.k
    around = np.arange(max(1, k // 2), min(tally.d - 1, k + k // 2) + 1)
    gaps = tally.gaps(around - 1, around, Fraction(1))
    widest = [int(one) for one in around[np.argsort(-gaps, kind="stable")][:_GAPS] if one != k]

    def need(size: int) -> Fraction | None:
        other = replace(case, request=replace(case.request, k=size))
        found = hardest_case([other], aim, needed)
        return None if found is None else found[0]

    costs = {other: cost for other in widest if (cost := need(other)) is not None and cost <= _MUCH_LESS * needed}
    # Where the scores fall evenly, fewer items always cost less: it is a gap where one fewer would cost no less.
    found = [OtherK(other, cost) for other, cost in costs.items() if other == 1 or (need(other - 1) or cost) >= cost]
    return min(found, key=lambda one: (one.epsilon, abs(one.k - k)), default=None)


def _describe_need(needed: Fraction | None) -> str:
    return "never" if needed is None else decimal(needed)


def _usual(mechanism: Mechanism) -> dict[str, Any]:
    """The parameters that the mechanism has where none are given."""
    return type(mechanism)().parameters()


def _opinion(epsilon: Fraction) -> str:
    """What an epsilon of this size means to people; there is no law, so it is worded as custom."""
    if epsilon <= 1:
        return "By custom an epsilon up to 1 is strong protection."
    if epsilon <= 10:
        return "By custom an epsilon from 1 to 10 is moderate protection: smaller k or another goal would need less."
    return "An epsilon above 10 protects little: release fewer items, settle for another goal, or collect more users."
