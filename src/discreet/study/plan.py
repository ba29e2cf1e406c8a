"""Plan a release: compare the mechanisms, recommend one with its epsilon, and draw their curves.

A plan also looks for a nearby k that costs far less, because the scores have a gap there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np

from discreet.analysis.compare import Choice, Comparison, ItemBound, compare, compare_bounds, find_least
from discreet.analysis.found import AmongFound, as_released
from discreet.analysis.goals import GOALS, Hits, check_goal, goals, name_goal
from discreet.analysis.meters import Shares
from discreet.analysis.search import Aim, Case, Scores, Search, find_number_below, hardest_case
from discreet.analysis.shortfall_odds import ShortfallQuantiles, find_shortfall
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.partition_selection import PartitionSelection
from discreet.mechanisms.tally import Tally
from discreet.privacy import MANY, Number, Sensitivity
from discreet.release.release import counts_people
from discreet.release.sketch import Sketch
from discreet.release.theme import check_matplotlib
from discreet.sources.base import GroupedSource
from discreet.sources.discovered import EXACT, KINDS, Discovered
from discreet.study.charts import pictures_of
from discreet.study.curves import Point, Results, refine
from discreet.study.page import page
from discreet.text import decimal, round_up, three_digits

_SPAN, _STEPS = 8.0, 33
"""Curves go from the recommended epsilon divided by the span to its product with the span, in this many steps."""

_ROUGH = 1e-3
"""The error allowed for points of a curve: less than can be seen in a drawing."""

_CLOSE = 0.08
"""Two neighbouring points of a curve that differ by more than this probability get one between them."""

_BOUNDS_DRAWN = 3
"""At most this many bounds on the items of a user are drawn, so that a picture has few enough curves to read."""

_GAPS = 3
"""Another k is tried at this many of the largest gaps; each one takes as long as a mechanism of the table."""

_MUCH_LESS = Fraction(7, 10)
"""Another k is named if it costs at most this share."""

_BARS = " ▁▂▃▄▅▆▇█"

_MEANING = {
    "top": "exactly the top {k}",
    "optimal": "a top {k}, whichever of equal scores are in it",
    "great": "a list with the best {great} in it and nothing beyond rank {great_last}",
    "good": "a list with the best {good} in it and nothing beyond rank {good_last}",
    "recall": "a list with at least {least} of the {k} right",
}


@dataclass(frozen=True)
class OtherK:
    """Another number of items that costs far less, because the scores have a gap there."""

    k: int
    epsilon: Fraction


@dataclass(frozen=True, repr=False)
class Plan:
    """A recommended mechanism and epsilon. NOT private, unless the plan is computed from a sketch.

    Attributes
    ----------
    name
        The name of the scores on the page.
    d
        The number of items that have scores; None for a sketch under partition selection.
    goal
        The goal that the release must reach.
    meaning
        The goal and its probability in words.
    comparison
        The epsilon that each mechanism needs for the goal.
    sensitivity, adjacency
        The sensitivity of the scores and the neighbouring datasets that the release protects.
    other_k
        Another k that costs far less, or None. For scores by group none is looked for.
    question
        For events, the public description of the query, as `Source.description` has it; otherwise empty.
    each_user, groups_per_user
        For scores by group, "one" or "many" and the largest number of groups of one user; otherwise None and 1.

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
    d: int | None
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
        """The mechanism that needs the least epsilon for the goal."""
        return self.comparison.best(self.goal)

    @property
    def left_out(self) -> list[Mechanism]:
        """Mechanisms that need more than the best one, and for which computing how much more would take minutes."""
        return self.comparison.left_out

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that the best mechanism needs."""
        return self.comparison.ranked(self.goal)[0][0]

    @property
    def recommendation(self) -> str:
        """The recommendation as one paragraph."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the recommendation: first the mechanism and epsilon, then the list they release."""
        ranked = self.comparison.ranked(self.goal)
        needed, best = ranked[0]
        bound = "" if best.bound is None else f", of events with {best.bound}"
        sentences = [
            f"Recommended: {best.mechanism!r} with epsilon = {round_up(needed)}{bound}.",
            f"On scores like these it releases {self.meaning}.",
        ]
        if self.discovery is not None:
            sentences.append(f"Of it, {round_up(self.discovery.epsilon)} finds the items.")
            sentences.append(self.discovery.describe_people())
        if self.shortfall is not None:
            whose = "" if self.each_user is None else " of the group that needs the most"
            sentences.append(f"The true shortfall{whose} at this epsilon: {self._describe_shortfall(self.shortfall)}.")
        if best.bound is not None:
            sentences.append(f"Keeping {_describe_loss(best.bound, self.comparison.k)}; the noise costs the rest.")
        if len(ranked) > 1:
            more, other = ranked[1]
            factor = f"{float(more / needed):.3g}"
            often = "about" if factor == "1" else f"{factor} times"
            sentences.append(f"The next best, {other}, needs {often} as much.")
        if self.other_k is not None:
            share = float(self.other_k.epsilon / self.epsilon)
            cost = "half" if 0.45 <= share <= 0.55 else f"{share:.2g}"
            sentences.append(
                f"k = {self.other_k.k} costs {cost} of k = {self.comparison.k}: the gap is at {self.other_k.k}."
            )
        # No law sets a limit, so the sentence speaks of custom.
        custom = (
            "An epsilon above 10 protects little: release fewer items, settle for another goal, or collect more users."
        )
        if needed <= 1:
            custom = "By custom an epsilon up to 1 is strong protection."
        elif needed <= 10:
            custom = (
                "By custom an epsilon from 1 to 10 is moderate protection: smaller k or another goal would need less."
            )
        return [*sentences, custom]

    @cached_property
    def discovery(self) -> PartitionSelection | None:
        """The partition selection of the recommended release, if its sketch has the terms of one."""
        among = self._best_case.request.guarantee.mechanism
        return among.plan(self.comparison.k, self.epsilon) if isinstance(among, AmongFound) else None

    @cached_property
    def shortfall(self) -> ShortfallQuantiles | None:
        """The true shortfall to expect of the recommended release: its median, and its bound in 19 of 20 releases.

        It is computed for canonical with Gumbel noise, and up to k = 10 for mechanisms that add noise to each score;
        otherwise it is bounded by draws. For scores by group it is that of the group that needs the most epsilon. For a
        sketch under partition selection it is about lists with items, which may be short; None if too many have none.
        """
        return self._expect_shortfall(self.epsilon)

    def _expect_shortfall(self, epsilon: Fraction) -> ShortfallQuantiles | None:
        """Return the shortfall to expect of the best mechanism at an epsilon."""
        case, mechanism = self._best_case, self._best_case.request.guarantee.mechanism
        if isinstance(mechanism, AmongFound) and not mechanism.find_top(case.request.k, epsilon)[1]:
            return None
        terms = case.request.k, epsilon / self.groups_per_user, case.request.guarantee.sensitivity
        standings = None if case.truth is None else case.truth.standings
        prepared = as_released(mechanism.prepare(case.tally, *terms))
        return find_shortfall(mechanism, prepared, case.judged_by, standings)

    def _describe_shortfall(self, shortfall: ShortfallQuantiles) -> str:
        people = " person" if shortfall.most == 1 else " people"
        return shortfall.describe(people if counts_people(self._best_case.request.guarantee) else "")

    @property
    def command(self) -> str:
        """The command that makes the recommended release from a file of the private scores."""
        choice = self.best.mechanism
        usual = type(choice)().parameters()
        options = {name: value for name, value in choice.parameters().items() if value != usual.get(name)}
        source, found = self._best_case.request.source, ""
        if isinstance(source, Sketch) and source.terms is not None:
            summed = "" if self.sensitivity == Sensitivity() else "--value COLUMN --clip LOW,HIGH "
            found = f"--user USER --item ITEM {summed}{_describe_terms(source.terms.without_choice())} "
        elif self.sensitivity != Sensitivity() or source.fractional:
            bound = "" if self.sensitivity.items is None else f",{self.sensitivity.items}"
            options["sensitivity"] = f"{self.sensitivity.down},{self.sensitivity.up}{bound}"
        if (most := source.max_items_per_user) is not None:
            options["max-items-per-user"] = most
        if self.adjacency != "add-remove":
            options["adjacency"] = self.adjacency
        words = "".join(f" --{name} {value}" for name, value in options.items())
        terms = f"-k {self.comparison.k} --epsilon {round_up(self.epsilon)} --mechanism {choice.name}{words}"
        if self.each_user is None:
            columns = {}
            if "columns" in self.question:
                columns = {**self.question["columns"], "domain": "ITEMS"}
                if self.question["where"] is not None:
                    columns["where"] = self.question["where"]
                if self.question["clip"] is not None:
                    low, high, unit = self.question["clip"]
                    ends = ",".join(decimal(end * Fraction(unit)) for end in (low, high))
                    columns |= {"clip": ends, "resolution": unit}
            events = "".join(f"--{name} {shlex.quote(value)} " for name, value in columns.items())
            return f"discreet select FILE {found}{events}{terms}"
        groups = f" --max-groups-per-user {self.groups_per_user}" if self.each_user == MANY else ""
        names = "--user USER --item ITEM --domain ITEMS --by COLUMN --groups GROUPS"
        return f"discreet select FILE {names} --each-user {self.each_user}{groups} {terms}"

    @property
    def _best_case(self) -> Case:
        return self._cases[self.comparison.choices.index(self.best)]

    @cached_property
    def curve(self) -> dict[float, dict[str, float]]:
        """The probabilities of all goals with the best mechanism, from an eighth of the epsilon to eight times it.

        For scores by group the curve is that of the group that needs the most epsilon.
        """
        return {epsilon: shares.values for epsilon, shares in self._trace(self._best_case, GOALS).items()}

    @cached_property
    def curves(self) -> dict[str, dict[float, float]]:
        """The probability of the goal by mechanism and epsilon; of many bounds, those that need the least epsilon."""
        free = [choice for choice in self.comparison.choices if choice.bound is None]
        bounded = [choice for _, choice in self.comparison.ranked(self.goal) if choice.bound is not None]
        chosen = free + bounded[:_BOUNDS_DRAWN]
        pairs = zip(self.comparison.choices, self._cases, strict=True)
        return {choice.label: self._trace_goal(case) for choice, case in pairs if choice in chosen}

    def _results(self) -> Results:
        """Return the curves and the mark as a study has them."""

        def point(method: str, x: float, chance: float) -> Point:
            return Point(
                "plan", self.name, self._best_case.request.d, self.comparison.k, method, x, self.goal, chance, 0.0
            )

        points = [point(label, x, chance) for label, curve in self.curves.items() for x, chance in curve.items()]
        mark = point(self.best.label, float(self.epsilon), float(self.comparison.probability))
        return Results(points, [], [], [mark])

    def plot(self, ax: Any = None, *, dark: bool = False) -> Any:
        """Draw the probability of the goal by epsilon for each mechanism, with the recommended point marked.

        The recommendation stands below the curves. The parameters are those of `Release.plot`.

        Examples
        --------
        >>> import discreet
        >>> figure = discreet.plan([90, 88, 85, 84, 41, 40], k=4, probability="0.9").plot()
        >>> figure.axes[0].get_xlabel()
        'epsilon'
        """
        check_matplotlib()
        [picture] = pictures_of(self._results(), self.comparison.share)
        notes = [*self.sentences[:2], self.comparison.origin]
        return picture.draw(dark, notes) if ax is None else picture.draw_in(ax, dark, notes)

    def page(self) -> str:
        """Return an HTML page with the curves of all mechanisms, the recommended point marked. It needs matplotlib."""
        check_matplotlib()
        table, k = self.comparison, self.comparison.k
        first, second, *others = self.sentences
        notes = [f"{first} {second}", *others, f"To release: {self.command}", *table.notes()[:-1], *self.remarks]
        if undrawn := len(table.choices) - len(self.curves):
            notes.append(f"The curves of {undrawn} more, which keep other numbers of items a user, are not drawn.")
        head = ["Mechanism", "Epsilon it needs", "Times the least"]
        head += [] if table.epsilon is None else [f"What it reaches with epsilon = {decimal(table.epsilon)}"]
        ranked = [choice for _, choice in table.ranked(self.goal)]
        rows = []
        for choice in ranked + [choice for choice in table.choices if choice.needs[self.goal] is None]:
            needed, cells = choice.needs[self.goal], ["never", "\N{EN DASH}"]
            if needed is not None:
                cells = [round_up(needed), f"{three_digits(float(needed / self.epsilon))}\N{MULTIPLICATION SIGN}"]
            if choice.reaches is not None:
                cells.append(f"{100 * float(getattr(choice.reaches, self.goal)):.1f}%")
            rows.append({"label": choice.label, "cells": cells, "is_best": choice == self.best})
        says = f"For {self.meaning}. The recommended one is marked."
        results = self._results()
        return page(
            results,
            notes,
            table.sketch,
            pictures=pictures_of(results, table.share),
            title=f"A plan for the top {k:,} of {self.name}",
            needs={"says": says, "head": head, "rows": rows},
        )

    def __repr__(self) -> str:
        return f"Plan({self.best.mechanism!r}, epsilon={round_up(self.epsilon)}, {self.goal} of k={self.comparison.k})"

    def _repr_html_(self) -> str:
        """Return the notebook view: the recommendation and the comparison."""
        from markupsafe import Markup

        said = Markup("<br>").join([self.recommendation, f"To release: {self.command}", *self.remarks])
        return "".join([Markup("<p>{}</p>").format(said), self.comparison._repr_html_()])

    def __str__(self) -> str:
        table = [str(self.comparison), *self.remarks]
        # The best mechanism's curve as text: a column per epsilon, a taller bar for a larger probability.
        low, high = min(self.curve), max(self.curve)
        known = [goal for goal in GOALS if not any(isnan(shares[goal]) for shares in self.curve.values())]
        names = {goal: name_goal(goal, self.comparison.share) for goal in known}
        bars = {
            name: "".join(_BARS[round((len(_BARS) - 1) * shares[goal])] for shares in self.curve.values())
            for goal, name in names.items()
        }
        width = max(map(len, bars))
        left, right = f"{low:.3g}", f"{high:.3g}"
        scale = left + " " * max(1, len(self.curve) - len(left) - len(right)) + right
        chart = [
            f"How likely each goal is with {self.best.mechanism!r}, by epsilon:",
            *(f"{name:>{width}} |{bar}|" for name, bar in bars.items()),
            " " * (width + 2) + scale,
        ]
        return "\n".join([self.recommendation, f"To release: {self.command}", "", *table, "", *chart])

    def _trace(self, case: Case, asked: tuple[str, ...]) -> dict[float, Shares]:
        read = self._reader(case, asked)
        epsilons = [float(self.epsilon) * _SPAN ** (2.0 * step / (_STEPS - 1) - 1.0) for step in range(_STEPS)]
        return {epsilon: read(epsilon) for epsilon in epsilons}

    def _reader(self, case: Case, asked: tuple[str, ...]) -> Callable[[float], Shares]:
        read = case.meter(asked, self.comparison.share)
        return lambda epsilon: read(Fraction(epsilon) / self.groups_per_user, _ROUGH)

    def _trace_goal(self, case: Case) -> dict[float, float]:
        """Return the goal by epsilon, with more points where it rises steeply, so that a step is drawn as one."""
        seen = self._trace(case, (self.goal,))
        refine(seen, self._reader(case, (self.goal,)), 3 * _STEPS, _CLOSE, goals=(self.goal,))
        return {epsilon: seen[epsilon].values[self.goal] for epsilon in sorted(seen)}

    @property
    def remarks(self) -> list[str]:
        """The shortfall at the epsilon that was asked about, and the loss of each contribution bound that was tried."""
        given = self.comparison.epsilon
        expected = None if given is None else self._expect_shortfall(given)
        told = []
        if given is not None and expected is not None:
            at = f"The true shortfall of {self.best} at epsilon = {round_up(given)}"
            told.append(f"{at}: {self._describe_shortfall(expected)}.")
        bounds = [choice.bound for choice in self.comparison.choices if choice.bound is not None]
        losses = "; ".join(_describe_loss(bound, self.comparison.k) for bound in bounds)
        if bounds:
            told.append(f"Lists of few items a user are judged by the scores of all items. Keeping {losses}.")
        return told


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
    """Recommend a mechanism and an epsilon for a release, among all mechanisms and several gammas of canonical.

    The plan is computed from the scores, so it is NOT private: use public or made-up data. For scores by group the
    epsilon is that of the whole release, with which the list of every group reaches the goal.

    Parameters
    ----------
    scores, k, sensitivity, adjacency
        As for `top_k`. A `Sketch` may take the place of the scores; it has its own sensitivity.
    goal, probability, share
        The goal to reach, as for `epsilon_for`.
    epsilon
        An epsilon for which the plan also says how often each mechanism reaches the goal.
    name
        The name of the scores on the page.

    Returns
    -------
    Plan
        The recommendation, the epsilon that every mechanism needs, another k that costs far less, curves and a page.

    Examples
    --------
    >>> import discreet
    >>> found = discreet.plan([90, 80, 70, 12, 11, 10], k=3, goal="recall", probability="0.9")
    >>> print(found.recommendation.split(". ")[1])
    On scores like these it releases a list with 2.7 of the 3 right on average
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
    # For scores by group the curves are those of the group that needs the most epsilon.
    found = hardest_case(chosen, aim, needed / read.lists_per_user)
    hardest = next(index for index, case in enumerate(chosen) if found is not None and case is found[1])
    drawn, case = [cases[hardest] for cases in lists], chosen[hardest]
    own = source.sensitivity if isinstance(source, Sketch) else sensitivity
    limits, neighbours = own or Sensitivity(), case.request.guarantee.adjacency
    meaning = _describe_goal(case.judged_by, table, goal)
    if isinstance(source, GroupedSource):
        shared = source.each_user, source.groups_per_user
        return Plan(name, case.request.d, goal, meaning, table, limits, neighbours, None, drawn, {}, *shared)
    other = _find_other_k(case, aim, needed)
    size = source.domain_size if isinstance(source, Sketch) else source.d
    return Plan(name, size, goal, meaning, table, limits, neighbours, other, drawn, source.description())


def _describe_terms(terms: Discovered) -> str:
    """Return the options of the command line for finding items."""
    numbers = {"delta": terms.delta, "discovery-epsilon": terms.epsilon}
    # A short decimal is exact; another number is spelled as a fraction.
    exact = {
        name: text.replace("e-0", "e-") if Fraction(text := round_up(number)) == number else f"{number}"
        for name, number in numbers.items()
        if number is not None
    }
    given = {
        "delta": exact["delta"], "max-items-per-user": terms.max_items_per_user, "method": terms.method,
        "discovery-epsilon": exact.get("discovery-epsilon"), "kind": None if terms.kind == KINDS[0] else terms.kind,
        "spelling": None if terms.spelling == EXACT else terms.spelling,
    }  # fmt: skip
    spelled = {name: f"{value}" for name, value in given.items() if value is not None}
    return " ".join(["--discover", *(f"--{name} {value}" for name, value in spelled.items())])


def _describe_goal(tally: Tally, table: Comparison, goal: str) -> str:
    """Return the released list and its probability in words."""
    k, wanted = table.k, goals(tally, table.k, table.share)
    recall, chance = wanted["recall"], decimal(table.probability)
    where = "" if table.groups is None else f", in each of {table.groups:,} groups"
    if goal == "recall" and table.share is None:
        if table.best(goal).mechanism.may_release_fewer:
            return f"a list that has {chance} of the true {k} on average, and may be shorter{where}"
        return f"a list with {decimal(k * table.probability)} of the {k} right on average{where}"
    numbers = {"k": k, "least": recall.least if isinstance(recall, Hits) else None}
    for name in ("great", "good"):
        region = wanted[name]
        if not isinstance(region, Hits):
            numbers |= {name: region[0], f"{name}_last": region[1]}
    return f"{_MEANING[goal].format(**numbers)} with probability {chance}{where}"


def _describe_loss(bound: ItemBound, k: int) -> str:
    """Return the loss that a bound causes without noise: "3 items a user alone loses 4 of the 100"."""
    most = bound.max_items_per_user
    lost = f"{float(bound.lost):.3g}" if bound.lost else "none"
    return f"{most} item{'s' if most > 1 else ''} a user alone loses {lost} of the {k}"


def _find_other_k(case: Case, aim: Aim, needed: Fraction) -> OtherK | None:
    """Return the cheapest k between k/2 and 3k/2 among the largest gaps of the scores, if it costs much less."""
    tally, k = case.judged_by, case.request.k
    around = np.arange(max(1, k // 2), min(tally.d - 1, k + k // 2) + 1)
    gaps = tally.gaps(around - 1, around, Fraction(1))
    widest = [int(one) for one in around[np.argsort(-gaps, kind="stable")][:_GAPS] if one != k]
    best: OtherK | None = None
    for other in sorted(widest, key=lambda one: abs(one - k)):
        enough = _MUCH_LESS * needed if best is None else best.epsilon
        search = _search_for(case, other, aim)
        cost = search.smallest(enough) if search.is_enough(enough) else None
        if cost is None or (best is not None and cost >= best.epsilon):
            continue
        # At a gap one item fewer costs no less. On scores that fall evenly, fewer items always cost less.
        if other == 1 or not _search_for(case, other - 1, aim).is_enough(find_number_below(cost)):
            best = OtherK(other, cost)
    return best


def _search_for(case: Case, k: int, aim: Aim) -> Search:
    return Search.of(replace(case, request=replace(case.request, k=k)), aim)
