"""What a study found: points of curves, the budgets methods need, and how long they take, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    """One point of one curve: how likely a goal is.

    Attributes
    ----------
    figure
        Which figure it belongs to: a key of `FIGURES`.
    vector, d, k
        Whose scores, how many, and how many are released.
    method
        The curve: a name as it stands in the legend.
    x
        Where on the axis: epsilon, or the shape of Zipf's law.
    goal
        "top", "great" or "good".
    probability, error
        How likely it is, and what that may be off by.
    """

    figure: str
    vector: str
    d: int
    k: int
    method: str
    x: float
    goal: str
    probability: float
    error: float


@dataclass(frozen=True)
class NeededEpsilon:
    """The epsilon that a method needs for the top-k with some probability, and its ratio to that of gamma = 1/2."""

    vector: str
    d: int
    k: int
    method: str
    probability: float
    epsilon: float
    ratio: float


@dataclass(frozen=True)
class Time:
    """How long one release takes: the seconds, and how the cost grows in d and k, in words."""

    vector: str
    d: int
    k: int
    method: str
    seconds: float
    growth: str


@dataclass(frozen=True)
class Figure:
    """A figure: its title, what its axis says, whether that is logarithmic, and what it shows in one sentence."""

    key: str
    title: str
    axis: str
    logarithmic: bool
    says: str


@dataclass(frozen=True)
class Results:
    """All that a study found, and points of curves that are to be marked."""

    points: list[Point]
    budgets: list[NeededEpsilon]
    times: list[Time]
    marks: list[Point] = field(default_factory=list)


FIGURES = {
    figure.key: figure
    for figure in (
        Figure(
            "methods",
            "How likely each method is to be right",
            "epsilon",
            True,
            "The further left a curve rises, the less privacy the method costs for the same answer.",
        ),
        Figure(
            "plan",
            "What each mechanism reaches",
            "epsilon",
            True,
            "The circle is what is recommended: the curve that reaches the goal with the least epsilon.",
        ),
        Figure(
            "shapes",
            "Zipf's law from flat to steep, at epsilon = 1",
            "shape s",
            False,
            "Scores proportional to i^-s: the steeper they fall, the easier the choice.",
        ),
        Figure(
            "flat",
            "Nearly flat scores: Zipf's law with s = 0.04",
            "epsilon",
            True,
            "The hardest vector of the paper against epsilon.",
        ),
        Figure(
            "noises",
            "One-shot with each noise",
            "epsilon",
            True,
            "The same mechanism with each noise whose log survival function is 1-Lipschitz.",
        ),
        Figure(
            "canonical-noises",
            "Canonical with each noise",
            "epsilon",
            True,
            "Drawn, not computed, where the noise is not Gumbel's: each point has an interval.",
        ),
        Figure(
            "gammas",
            "Canonical with gamma from 0 to 1",
            "epsilon",
            True,
            "How the weight between the worst item inside and the best outside matters.",
        ),
    )
}
