"""Which epsilon and which mechanism, for people: a table, a sentence that recommends, another k, and curves."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from math import isnan
from typing import Any

import numpy as np

from discreet.analysis.choose import compare, find_least
from discreet.analysis.clipping import compare_bounds
from discreet.analysis.comparison import Choice, Comparison, ItemBound
from discreet.analysis.goals import GOALS, Hits, check_goal, goals, name_goal
from discreet.analysis.meters import Shares
from discreet.analysis.search import Aim, Case, Scores, Search, find_number_below, hardest_case
from discreet.mechanisms.base import Mechanism
from discreet.privacy import MANY, Number, Sensitivity
from discreet.sketches import Sketch
from discreet.sources.groups import GroupedSource
from discreet.study.curves import Point, Results, refine
from discreet.study.page import Section, page
from discreet.tally import Tally
from discreet.text import decimal, round_up, three_digits

_SPAN, _STEPS = 8.0, 33
_ROUGH = 1e-3
"""What the points of a curve may be off by: less than is seen."""

_CLOSE = 0.08
"""How far apart the points of a curve may be."""

_BOUNDS_DRAWN = 3
_BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, repr=False)
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
    question
        Of events: what is public about what they are asked, as `Source.description` has it; empty of others.
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
    question: dict[str, Any] = field(default_factory=dict, repr=False)
    each_user: str | None = None
    groups_per_user: int = 1

    @property
    def best(self) -> Choice:
        """The mechanism that needs least for the goal."""
        return self.comparison.best(self.goal)

    @property
    def left_out(self) -> list[Mechanism]:
        """Mechanisms that need more than the best, where finding how much more would take minutes."""
        return self.comparison.left_out

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that it needs."""
        return self.comparison.ranked(self.goal)[0][0]

    @property
    def recommendation(self) -> str:
        """What to do, in a few sentences."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the recommendation, what to do and what that gives first."""
        ranked = self.comparison.ranked(self.goal)
        needed, best = ranked[0]
        sentences = [
            f"Recommended: {best.mechanism!r} with epsilon = {round_up(needed)}{_say_bound(best)}.",
            f"On scores like these it releases {self.meaning}.",
        ]
        if best.bound is not None:
            sentences.append(f"Keeping {describe_loss(best.bound, self.comparison.k)}; the noise costs the rest.")
        if len(ranked) > 1:
            more, other = ranked[1]
            sentences.append(f"The next best, {other}, needs {float(more / needed):.3g} times as much.")
        if self.other_k is not None:
            sentences.append(self._describe_other_k(self.other_k))
        return [*sentences, describe_epsilon(needed)]

    @property
    def command(self) -> str:
        """The command that releases as recommended, on a file of the private scores."""
        choice = self.best.mechanism
        options = {name: value for name, value in choice.parameters().items() if value != _usual(choice).get(name)}
        if self.sensitivity != Sensitivity() or self._best_case.request.source.fractional:
            bound = "" if self.sensitivity.items is None else f",{self.sensitivity.items}"
            options["sensitivity"] = f"{self.sensitivity.down},{self.sensitivity.up}{bound}"
        if (most := self._best_case.request.source.max_items_per_user) is not None:
            options["max-items-per-user"] = most
        if self.adjacency != "add-remove":
            options["adjacency"] = self.adjacency
        words = "".join(f" --{name} {value}" for name, value in options.items())
        terms = f"-k {self.comparison.k} --epsilon {round_up(self.epsilon)} --mechanism {choice.name}{words}"
        return f"discreet select FILE {self._group_options() or describe_events(self.question)}{terms}"

    @property
    def _best_case(self) -> Case:
        return self._cases[self.comparison.choices.index(self.best)]

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
        return {epsilon: shares.values for epsilon, shares in self._trace(self._best_case, GOALS).items()}

    @cached_property
    def curves(self) -> dict[str, dict[float, float]]:
        """The goal with each mechanism, by its name and by epsilon; of many bounds, with those that need least."""
        chosen = self._choose_curves()
        pairs = zip(self.comparison.choices, self._cases, strict=True)
        return {choice.label: self._trace_goal(case) for choice, case in pairs if choice in chosen}

    def _choose_curves(self) -> list[Choice]:
        """The choices that are drawn: all without a bound, and the best few with one."""
        free = [choice for choice in self.comparison.choices if choice.bound is None]
        bounded = [choice for _, choice in self.comparison.ranked(self.goal) if choice.bound is not None]
        return free + bounded[:_BOUNDS_DRAWN]

    def page(self) -> str:
        """A page with the curves of all mechanisms and the recommendation, which is marked."""
        return make_plan_page(self)

    def __repr__(self) -> str:
        return f"Plan({self.best.mechanism!r}, epsilon={round_up(self.epsilon)}, {self.goal} of k={self.comparison.k})"

    def _repr_html_(self) -> str:
        """The notebook view: the recommendation, and what each mechanism needs."""
        from html import escape

        said = [self.recommendation, f"To release: {self.command}", *self.remarks]
        return f"<p>{'<br>'.join(map(escape, said))}</p>{self.comparison._repr_html_()}"

    def __str__(self) -> str:
        table = [str(self.comparison), *self.remarks]
        return "\n".join([self.recommendation, f"To release: {self.command}", "", *table, "", *self._draw_chart()])

    def _trace(self, case: Case, asked: tuple[str, ...]) -> dict[float, Shares]:
        read = case.meter(asked, self.comparison.share)
        epsilons = [float(self.epsilon) * _SPAN ** (2.0 * step / (_STEPS - 1) - 1.0) for step in range(_STEPS)]
        return {epsilon: read(Fraction(epsilon) / self.groups_per_user, _ROUGH) for epsilon in epsilons}

    def _trace_goal(self, case: Case) -> dict[float, float]:
        """The goal by epsilon, with more points where it rises steeply: a step is seen as one."""
        read, seen = case.meter((self.goal,), self.comparison.share), self._trace(case, (self.goal,))

        def at(epsilon: float) -> Shares:
            seen[epsilon] = read(Fraction(epsilon) / self.groups_per_user, _ROUGH)
            return seen[epsilon]

        refine(seen, at, 3 * _STEPS, _CLOSE, goals=(self.goal,))
        return {epsilon: seen[epsilon].values[self.goal] for epsilon in sorted(seen)}

    def _describe_other_k(self, other: OtherK) -> str:
        share = float(other.epsilon / self.epsilon)
        cost = "half" if 0.45 <= share <= 0.55 else f"{share:.2g}"
        return f"k = {other.k} costs {cost} of k = {self.comparison.k}: the gap is at {other.k}."

    @property
    def remarks(self) -> list[str]:
        """What the bounds alone do to the list, where some were tried."""
        bounds = [choice.bound for choice in self.comparison.choices if choice.bound is not None]
        losses = "; ".join(describe_loss(bound, self.comparison.k) for bound in bounds)
        told = f"Lists of few items a user are judged by the scores of all items. Keeping {losses}."
        return [told] if bounds else []

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
    table = compare(
        read, k, epsilon=epsilon, probability=probability, share=share, goal=goal,
        sensitivity=sensitivity, adjacency=adjacency,
    )  # fmt: skip
    source, aim = read.source, Aim(goal, table.probability, enough)
    bounded = list(compare_bounds(read, table.k, aim, table.epsilon, adjacency, find_least(table.choices, goal)))
    lists = [read.cases(k, 1, each.mechanism, sensitivity, adjacency) for each in table.choices]
    lists += [[case] for _, case in bounded]
    table = replace(table, choices=[*table.choices, *(choice for choice, _ in bounded)])
    needed, best = table.ranked(goal)[0]
    chosen = lists[table.choices.index(best)]
    hardest = _find_hardest(chosen, aim, needed / read.lists_per_user)
    drawn, case = [cases[hardest] for cases in lists], chosen[hardest]
    own = source.sensitivity if isinstance(source, Sketch) else sensitivity
    limits, neighbours = own or Sensitivity(), case.request.guarantee.adjacency
    meaning = describe_goal(case.judged_by, table, goal)
    if isinstance(source, GroupedSource):
        shared = source.each_user, source.groups_per_user
        return Plan(name, case.request.d, goal, meaning, table, limits, neighbours, None, drawn, {}, *shared)
    other = find_other_k(case, aim, needed)
    return Plan(name, source.d, goal, meaning, table, limits, neighbours, other, drawn, source.description())


def _find_hardest(cases: list[Case], aim: Aim, needed: Fraction) -> int:
    """Which of the lists needs most."""
    hardest = hardest_case(cases, aim, needed)
    return next(index for index, case in enumerate(cases) if hardest is not None and case is hardest[1])


def _say_bound(choice: Choice) -> str:
    return "" if choice.bound is None else f", of events with {choice.bound}"


def _usual(mechanism: Mechanism) -> dict[str, Any]:
    """The parameters that the mechanism has where none are given."""
    return type(mechanism)().parameters()


_MEANING = {
    "top": "exactly the top {k}",
    "optimal": "a top {k}, whichever of equal scores are in it",
    "great": "a list with the best {great} in it and nothing beyond rank {great_last}",
    "good": "a list with the best {good} in it and nothing beyond rank {good_last}",
    "recall": "a list with at least {least} of the {k} right",
}


def describe_goal(tally: Tally, table: Comparison, goal: str) -> str:
    """What is released, and how often."""
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


def describe_loss(bound: ItemBound, k: int) -> str:
    """What holding users to few items does to the list, without noise: "3 items a user alone loses 4 of the 100"."""
    most = bound.max_items_per_user
    lost = f"{float(bound.lost):.3g}" if bound.lost else "none"
    return f"{most} item{'s' if most > 1 else ''} a user alone loses {lost} of the {k}"


def describe_events(question: dict[str, Any]) -> str:
    """The options of the command line that ask the same of events; nothing where there are no events."""
    if "columns" not in question:
        return ""
    columns = {**question["columns"], "domain": "ITEMS"}
    if question["where"] is not None:
        columns["where"] = question["where"]
    if question["clip"] is not None:
        low, high, unit = question["clip"]
        columns |= {"clip": ",".join(decimal(end * Fraction(unit)) for end in (low, high)), "resolution": unit}
    return "".join(f"--{name} {shlex.quote(value)} " for name, value in columns.items())


def describe_epsilon(epsilon: Fraction) -> str:
    """What an epsilon of this size means to people; there is no law, so it is worded as custom."""
    if epsilon <= 1:
        return "By custom an epsilon up to 1 is strong protection."
    if epsilon <= 10:
        return "By custom an epsilon from 1 to 10 is moderate protection: smaller k or another goal would need less."
    return "An epsilon above 10 protects little: release fewer items, settle for another goal, or collect more users."


_GAPS = 3
_MUCH_LESS = Fraction(7, 10)
"""Another k is worth telling where it costs this much or less."""


@dataclass(frozen=True)
class OtherK:
    """Another number of items that costs far less, because the scores have a gap there."""

    k: int
    epsilon: Fraction


def find_other_k(case: Case, aim: Aim, needed: Fraction) -> OtherK | None:
    """The k from half of this one to half as many again that costs least, if that is much less: tried at large gaps."""
    tally, k = case.judged_by, case.request.k
    around = np.arange(max(1, k // 2), min(tally.d - 1, k + k // 2) + 1)
    gaps = tally.gaps(around - 1, around, Fraction(1))
    widest = [int(one) for one in around[np.argsort(-gaps, kind="stable")][:_GAPS] if one != k]
    best: OtherK | None = None
    for other in sorted(widest, key=lambda one: abs(one - k)):
        enough = _MUCH_LESS * needed if best is None else best.epsilon
        search = _search_for(case, other, aim)
        if search.is_enough(enough):
            cost = search.smallest(enough)
            if cost is not None and (best is None or cost < best.epsilon) and _is_gap(case, other, aim, cost):
                best = OtherK(other, cost)
    return best


def _search_for(case: Case, k: int, aim: Aim) -> Search:
    return Search.of(replace(case, request=replace(case.request, k=k)), aim)


def _is_gap(case: Case, k: int, aim: Aim, cost: Fraction) -> bool:
    """Whether one item fewer would cost no less: where the scores fall evenly, fewer items always do."""
    return k == 1 or not _search_for(case, k - 1, aim).is_enough(find_number_below(cost))


def make_plan_page(plan: Plan) -> str:
    """The page of a plan as text."""
    curves = plan.curves
    points = [_point(plan, label, x, chance) for label, curve in curves.items() for x, chance in curve.items()]
    mark = _point(plan, plan.best.label, float(plan.epsilon), float(plan.comparison.probability))
    first, second, *others = plan.sentences
    notes = [f"{first} {second}", *others, f"To release: {plan.command}", *plan.comparison.notes()[:-1], *plan.remarks]
    undrawn = len(plan.comparison.choices) - len(curves)
    if undrawn:
        notes.append(f"The curves of {undrawn} more, which keep other numbers of items a user, are not drawn.")
    results, title = Results(points, [], [], [mark]), f"A plan for the top {plan.comparison.k:,} of {plan.name}"
    return page(results, notes, plan.comparison.sketch, title=title, more=[_needs(plan)])


def _point(plan: Plan, method: str, x: float, chance: float) -> Point:
    return Point("plan", plan.name, plan.d, plan.comparison.k, method, x, plan.goal, chance, 0.0)


def _needs(plan: Plan) -> Section:
    """The section with the table: a row for each candidate, the least first, those that never reach it last."""
    given = plan.comparison.epsilon
    head = ["Mechanism", "Epsilon it needs", "Times the least"]
    head += [] if given is None else [f"What it reaches with epsilon = {decimal(given)}"]
    cells = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    ranked = [choice for _, choice in plan.comparison.ranked(plan.goal)]
    rows = ranked + [choice for choice in plan.comparison.choices if choice.needs[plan.goal] is None]
    body = "".join(_row(plan, choice) for choice in rows)
    table = f'<table class="needs"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
    says = f"For {plan.meaning}. The recommended one is marked."
    return "needs", "What each mechanism needs", f'<p>{escape(says)}</p><div class="scroll" tabindex="0">{table}</div>'


def _row(plan: Plan, choice: Choice) -> str:
    needed = choice.needs[plan.goal]
    cells = [*_describe_need(needed, plan.epsilon), *_describe_reached(choice, plan.goal)]
    is_best = ' class="best"' if choice == plan.best else ""
    return (
        f'<tr{is_best}><th scope="row">{escape(choice.label)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
    )


def _describe_need(needed: Fraction | None, least: Fraction) -> list[str]:
    return (
        ["never", "&ndash;"] if needed is None else [round_up(needed), f"{three_digits(float(needed / least))}&times;"]
    )


def _describe_reached(choice: Choice, goal: str) -> list[str]:
    return [] if choice.reaches is None else [f"{100 * float(getattr(choice.reaches, goal)):.1f}%"]
