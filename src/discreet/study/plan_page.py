"""The page of a plan: the curves of its candidates, the recommended epsilon marked, and a table of what each needs."""

from __future__ import annotations

from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from discreet.analysis.compare import Choice
from discreet.study.page import Section, page
from discreet.study.results import Point, Results
from discreet.text import decimal, round_up, three_digits

if TYPE_CHECKING:
    from discreet.study.plan import Plan


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
