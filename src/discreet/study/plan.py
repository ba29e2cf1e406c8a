"""Which epsilon and which mechanism, for people: a table, a sentence that recommends, and curves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.analysis.choose import Choice, Comparison, compare
from discreet.analysis.utility import GOALS, goals, meter
from discreet.errors import InvalidValueError, shown
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import all_contenders
from discreet.privacy import Number, Sensitivity
from discreet.request import Request, make_request
from discreet.sources.base import Source
from discreet.study.page import page
from discreet.study.results import Point, Results
from discreet.text import decimal

_MEANING = {
    "top": "exactly the top {k}",
    "optimal": "a top {k}, whichever of equal scores are in it",
    "great": "a list with the best {great} in it and nothing beyond rank {great_last}",
    "good": "a list with the best {good} in it and nothing beyond rank {good_last}",
}
_SPAN, _STEPS = 8.0, 33
_BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Plan:
    """What each mechanism needs, and the curve of the one that needs least. NOT private: computed from the scores."""

    name: str
    d: int
    goal: str
    meaning: str
    comparison: Comparison
    curve: dict[float, dict[str, float]]
    sensitivity: Sensitivity
    adjacency: str

    @property
    def best(self) -> Choice:
        """The mechanism that needs least for the goal."""
        return self.comparison.best(self.goal)

    @property
    def recommendation(self) -> str:
        """What to do, in one sentence or three."""
        ranked = self.comparison.ranked(self.goal)
        (needed, best), chance = ranked[0], decimal(self.comparison.probability)
        sentences = [
            f"Recommended: {best.mechanism!r} with epsilon = {decimal(needed)}.",
            f"On scores like these it releases {self.meaning} with probability {chance}.",
        ]
        if len(ranked) > 1:
            more, other = ranked[1]
            sentences.append(f"The next best, {other.mechanism!r}, needs {float(more / needed):.3g} times as much.")
        sentences.append(_opinion(needed))
        return " ".join(sentences)

    @property
    def command(self) -> str:
        """The command that releases as recommended, on a file of the private scores."""
        choice = self.best.mechanism
        options = {name: value for name, value in choice.parameters().items() if value != _usual(choice).get(name)}
        if self.sensitivity != Sensitivity():
            options["sensitivity"] = f"{self.sensitivity.down},{self.sensitivity.up}"
        if self.adjacency != "add-remove":
            options["adjacency"] = self.adjacency
        words = "".join(f" --{name} {value}" for name, value in options.items())
        epsilon = decimal(self.comparison.ranked(self.goal)[0][0])
        return f"discreet select FILE -k {self.comparison.k} --epsilon {epsilon} --mechanism {choice.name}{words}"

    def page(self) -> str:
        """A page with the curves and the recommendation."""
        method = repr(self.best.mechanism)
        points = [
            Point("methods", self.name, self.d, self.comparison.k, method, epsilon, goal, shares[goal], 0.0)
            for epsilon, shares in self.curve.items()
            for goal in ("top", "great", "good")
        ]
        notes = [self.recommendation, f"To release: {self.command}", "What each mechanism needs:", *self._lines()]
        return page(Results(points, [], []), notes)

    def __str__(self) -> str:
        return "\n".join(
            [self.recommendation, f"To release: {self.command}", "", str(self.comparison), "", *self._draw_chart()]
        )

    def _lines(self) -> list[str]:
        return [
            f"{choice.mechanism!r}: " + ", ".join(f"{goal} {_describe_need(choice.needs[goal])}" for goal in GOALS)
            for choice in self.comparison.choices
        ]

    def _draw_chart(self) -> list[str]:
        """The curve of the best mechanism as text: one column an epsilon, a taller bar for a larger probability."""
        low, high = min(self.curve), max(self.curve)
        bars = {
            goal: "".join(_BARS[round((len(_BARS) - 1) * shares[goal])] for shares in self.curve.values())
            for goal in GOALS
        }
        width = max(map(len, GOALS))
        lines = [f"{goal:>{width}} |{bar}|" for goal, bar in bars.items()]
        left, right = f"{low:.3g}", f"{high:.3g}"
        scale = left + " " * max(1, len(self.curve) - len(left) - len(right)) + right
        return [f"How likely each goal is with {self.best.mechanism!r}, by epsilon:", *lines, " " * (width + 2) + scale]


def make_plan(
    source: Source,
    k: int,
    *,
    goal: str = "top",
    probability: Number = "0.95",
    epsilon: Number | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
    name: str = "scores",
) -> Plan:
    """What `discreet plan` tells about some scores: NOT private, for public or made-up data."""
    if goal not in GOALS:
        raise InvalidValueError(f"goal must be one of {', '.join(GOALS)}, not {shown(goal)}")
    candidates = [contender for contender in all_contenders() if contender.form is not Form.UNKNOWN]
    table = compare(
        source, k, epsilon=epsilon, probability=probability, mechanisms=candidates,
        sensitivity=sensitivity, adjacency=adjacency,
    )  # fmt: skip
    needed, best = table.ranked(goal)[0]
    request = make_request(source, k, needed, mechanism=best.mechanism, sensitivity=sensitivity, adjacency=adjacency)
    regions = goals(source.tally(), k)
    numbers = {"k": k, **{key: value for each in ("great", "good") for key, value in _ends(each, regions[each])}}
    curve, limits = _curve(request), Sensitivity() if sensitivity is None else sensitivity
    return Plan(name, source.d, goal, _MEANING[goal].format(**numbers), table, curve, limits, adjacency)


def _describe_need(needed: Fraction | None) -> str:
    return "never" if needed is None else decimal(needed)


def _usual(mechanism: Mechanism) -> dict[str, Any]:
    """The parameters that the mechanism has where none are given."""
    return type(mechanism)().parameters()


def _ends(goal: str, region: tuple[int, int]) -> list[tuple[str, int]]:
    return [(goal, region[0]), (f"{goal}_last", region[1])]


def _curve(request: Request) -> dict[float, dict[str, float]]:
    """The goals at epsilons from an eighth of the one recommended to eight times it."""
    tally, guarantee = request.source.tally(), request.guarantee
    read: Any = meter(tally, request.k, guarantee, goals(tally, request.k))
    middle = float(guarantee.epsilon)
    epsilons = [middle * _SPAN ** (2.0 * step / (_STEPS - 1) - 1.0) for step in range(_STEPS)]
    return {epsilon: read(Fraction(epsilon)).values for epsilon in epsilons}


def _opinion(epsilon: Fraction) -> str:
    """What an epsilon of this size means to people; there is no law, so it is worded as custom."""
    if epsilon <= 1:
        return "By custom an epsilon up to 1 is strong protection."
    if epsilon <= 10:
        return "By custom an epsilon from 1 to 10 is moderate protection: smaller k or another goal would need less."
    return "An epsilon above 10 protects little: release fewer items, settle for another goal, or collect more users."
