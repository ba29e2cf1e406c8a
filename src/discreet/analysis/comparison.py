"""What each mechanism needs and reaches, as values that print themselves: a Comparison and its Choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from discreet.analysis.goals import GOALS, name_goal
from discreet.analysis.results import NOT_PRIVATE, GroupedUtility, Utility
from discreet.analysis.search import MOST
from discreet.errors import InvalidValueError
from discreet.mechanisms.base import Mechanism
from discreet.text import align_columns, decimal, round_up

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
