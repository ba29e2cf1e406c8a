"""How good a release will be, as values that print themselves: of one list, and of a list for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean
from typing import Any

from discreet.analysis.goals import GOALS, name_goal
from discreet.release.sketch import Sketch
from discreet.text import decimal, repr_with_decimals

NOT_PRIVATE = "NOT private: computed from the scores"


def describe_origin(source: Any, k: int) -> str:
    """What is printed with whatever is computed of k items: that it is not private, or what their sketch cost."""
    return source.describe_cost(k) if isinstance(source, Sketch) else NOT_PRIVATE


@dataclass(frozen=True, repr=False)
class Utility:
    """How likely a release is to be good. NOT private where it is computed from the scores and not from a sketch.

    Attributes
    ----------
    top
        The probability of exactly the top-k, ties broken by one fixed order.
    great
        Of a set with the best tenth of k in it and none beyond the best 11/10 of k.
    good
        Of a set with the best hundredth of k in it and none beyond the best 3/2 of k.
    optimal
        Of any top-k by score, however ties are broken.
    recall
        The expected share of the released items that are right: that score at least as much as the true k-th, so that
        of items tied with it any is right. With `share`, the probability that at least this share is right. Of a list
        that may be shorter than k (`Core`) it is a share of k, and the other four are not numbers. Not a number for
        joint over sets, for which it is not computed.
    error
        What each of them may be off by. For canonical it is a bound; for one-shot and joint, whose integrals are
        refined until they stand still, it is how far they still moved, where no bound is smaller.
    confidence
        None where they were computed; where they were estimated from draws, the probability that `error` covers all.
    share
        What recall is the probability of; None for the expected share.
    origin
        That it is not private, or what the sketch cost that it is computed from, in words.
    """

    top: float
    great: float
    good: float
    optimal: float
    recall: float
    error: float
    confidence: Fraction | None = None
    share: Fraction | None = None
    origin: str = field(default=NOT_PRIVATE, repr=False)

    def __repr__(self) -> str:
        return repr_with_decimals(self, decimal)

    def _repr_html_(self) -> str:
        """The notebook view."""
        rows = [(name_goal(goal, self.share), f"{getattr(self, goal):.4f}") for goal in GOALS]
        off = f"off by at most {self.error:.1e}{_sure(self.confidence)}"
        return _make_view("How likely a release is to be good", rows, ("goal", "chance"), [off, self.origin])

    def __str__(self) -> str:
        shares = "  ".join(f"{name_goal(name, self.share)} {getattr(self, name):.6f}" for name in GOALS)
        return f"{shares}  (off by at most {self.error:.1e}{_sure(self.confidence)}; {self.origin})"


@dataclass(frozen=True)
class GroupedUtility:
    """How likely the list of each group is to be good. NOT private: computed from the scores.

    Attributes
    ----------
    groups
        The utility of each group, by the group; where they were estimated from draws, their confidence is that of all
        of them together.
    """

    groups: dict[Any, Utility]

    @property
    def top(self) -> float:
        """The expected share of groups whose list is exactly the top-k."""
        return self._mean("top")

    @property
    def great(self) -> float:
        """The expected share of groups whose list is great, as `Utility` has it."""
        return self._mean("great")

    @property
    def good(self) -> float:
        """The expected share of groups whose list is good."""
        return self._mean("good")

    @property
    def optimal(self) -> float:
        """The expected share of groups whose list is a top-k by score, however ties are broken."""
        return self._mean("optimal")

    @property
    def recall(self) -> float:
        """The expected share of the items of all lists that are right, or of lists of which at least `share` are."""
        return self._mean("recall")

    @property
    def error(self) -> float:
        """What each share may be off by."""
        return max(one.error for one in self.groups.values())

    def _mean(self, goal: str) -> float:
        return fmean(getattr(one, goal) for one in self.groups.values())

    def _rows(self, digits: int) -> list[tuple[str, ...]]:
        """Each goal with the expected share, and the chance of the worst and of the best group."""
        share = next(iter(self.groups.values())).share
        rows = []
        for goal in GOALS:
            chances = [getattr(each, goal) for each in self.groups.values()]
            told = (f"{number:.{digits}f}" for number in (self._mean(goal), min(chances), max(chances)))
            rows.append((name_goal(goal, share), *told))
        return rows

    def _describe_error(self) -> str:
        return f"off by at most {self.error:.1e}{_sure(next(iter(self.groups.values())).confidence)}"

    def _repr_html_(self) -> str:
        """The notebook view."""
        head = ("goal", "expected share", "worst group", "best group")
        title = f"How likely the lists of {len(self.groups):,} groups are to be good"
        return _make_view(title, self._rows(4), head, [self._describe_error(), NOT_PRIVATE])

    def __str__(self) -> str:
        rows = self._rows(6)
        wide = max(len(name) for name, *_ in rows)
        lines = [f"  {name:<{wide}}  {mean}  from {worst} to {best}" for name, mean, worst, best in rows]
        title = f"the expected share of {len(self.groups):,} groups, and the chance of the worst and of the best:"
        return "\n".join([title, *lines, f"{self._describe_error()}; {NOT_PRIVATE}"])


@dataclass(frozen=True, repr=False)
class Expected:
    """What a release will be like on average. NOT private where it is computed from the scores and not from a sketch.

    Attributes
    ----------
    recall
        The share of the released items that are right: that score at least as much as the true k-th.
    score_error
        By how much the worst released score is below the k-th best.
    recall_off, score_error_off
        What they may be off by.
    confidence
        None where all was computed; where some was estimated from draws, the probability that all of that is covered.
    places, kendall
        Of a mechanism that releases an order, None of others: the share of the items whose score is that of the place
        they are in, and Kendall's tau, which is the share of pairs that are in the order of their scores less the
        share of those in the other order (pairs of equal scores are neither, and one item has none: 0).
    places_off, kendall_off
        What they may be off by.
    count_width
        With counts: how wide their intervals are, but for what is cut off below zero; None without.
    origin
        As in `Utility`.
    """

    recall: float
    score_error: float
    recall_off: float
    score_error_off: float
    confidence: Fraction | None = None
    places: float | None = None
    kendall: float | None = None
    places_off: float | None = None
    kendall_off: float | None = None
    count_width: Fraction | None = None
    origin: str = field(default=NOT_PRIVATE, repr=False)

    def __repr__(self) -> str:
        return repr_with_decimals(self, decimal)

    def _parts(self) -> list[tuple[str, float, float | None]]:
        """What is expected, and what it may be off by."""
        parts = [
            ("recall", self.recall, self.recall_off),
            ("score error", self.score_error, self.score_error_off),
            ("places", self.places, self.places_off),
            ("Kendall's tau", self.kendall, self.kendall_off),
        ]
        return [(name, value, off) for name, value, off in parts if value is not None]

    def _repr_html_(self) -> str:
        """The notebook view."""
        rows = [(name, f"{value:.4g}", f"{off:.1e}") for name, value, off in self._parts()]
        counted = [] if self.count_width is None else [("count interval", decimal(self.count_width), "")]
        head = ("on average", "value", f"off by at most{_sure(self.confidence)}")
        return _make_view("What a release will be like", [*rows, *counted], head, [self.origin])

    def __str__(self) -> str:
        sure = _sure(self.confidence)
        told = [f"{name} {value:.6g} (off by at most {off:.1e}{sure})" for name, value, off in self._parts()]
        counted = [] if self.count_width is None else [f"counts in intervals of {decimal(self.count_width)}"]
        return "  ".join([*told, *counted, f"({self.origin})"])


@dataclass(frozen=True)
class GroupedExpected:
    """What the lists of all groups will be like on average. NOT private: computed from the scores.

    Attributes
    ----------
    groups
        What is expected of each group, by the group.
    """

    groups: dict[Any, Expected]

    @property
    def recall(self) -> float:
        """The share of the items of all lists that are right."""
        return self._mean("recall")

    @property
    def score_error(self) -> float:
        """By how much the worst released score is below the k-th best, on average over groups."""
        return self._mean("score_error")

    def _mean(self, name: str) -> float:
        return fmean(getattr(one, name) for one in self.groups.values())

    def _repr_html_(self) -> str:
        """The notebook view."""
        worst, best = (choose(one.recall for one in self.groups.values()) for choose in (min, max))
        rows = [("recall", f"{self.recall:.4f}", f"{worst:.4f}", f"{best:.4f}")]
        rows += [("score error", f"{self.score_error:.4g}", "", "")]
        title = f"What the lists of {len(self.groups):,} groups will be like"
        return _make_view(title, rows, ("on average", "value", "worst group", "best group"), [NOT_PRIVATE])

    def __str__(self) -> str:
        every = list(self.groups.values())
        off = max(one.recall_off for one in every)
        return (
            f"recall {self.recall:.6f} over {len(every):,} groups, from {min(one.recall for one in every):.6f} to "
            f"{max(one.recall for one in every):.6f} (off by at most {off:.1e}{_sure(every[0].confidence)})  "
            f"score error {self.score_error:.6g} ({NOT_PRIVATE})"
        )


def _make_view(title: str, rows: Sequence[Sequence[str]], head: Sequence[str], notes: list[str]) -> str:
    from discreet.html_text import make_html_table, make_html_view

    return make_html_view(title, make_html_table(rows, head), notes)


def _sure(confidence: Fraction | None) -> str:
    return "" if confidence is None else f" with confidence {decimal(confidence)}"
