"""How good a release will be, as values that print themselves: of one list, and of a list for each group."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from statistics import fmean
from typing import Any

from discreet.text import decimal

NOT_PRIVATE = "NOT private: computed from the scores"


@dataclass(frozen=True)
class Utility:
    """How likely a release is to be good. NOT private: computed from the scores.

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
    error
        What each of them may be off by. For canonical it is a bound; for one-shot and joint, whose integrals are
        refined until they stand still, it is how far they still moved, where no bound is smaller.
    confidence
        None where they were computed; where they were estimated from draws, the probability that `error` covers all.
    """

    top: float
    great: float
    good: float
    optimal: float
    error: float
    confidence: Fraction | None = None

    def __str__(self) -> str:
        shares = "  ".join(f"{name} {getattr(self, name):.6f}" for name in GOALS)
        return f"{shares}  (off by at most {self.error:.1e}{_sure(self.confidence)}; {NOT_PRIVATE})"


GOALS = tuple(field.name for field in fields(Utility))[:4]
"""The goals: top, great, good, optimal."""


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
    def error(self) -> float:
        """What each share may be off by."""
        return max(one.error for one in self.groups.values())

    def _mean(self, goal: str) -> float:
        return fmean(getattr(one, goal) for one in self.groups.values())

    def __str__(self) -> str:
        lines = [f"the expected share of {len(self.groups):,} groups, and the chance of the worst and of the best:"]
        for goal in GOALS:
            chances = [getattr(one, goal) for one in self.groups.values()]
            lines.append(f"  {goal:<7}  {self._mean(goal):.6f}  from {min(chances):.6f} to {max(chances):.6f}")
        confidence = next(iter(self.groups.values())).confidence
        return "\n".join([*lines, f"off by at most {self.error:.1e}{_sure(confidence)}; {NOT_PRIVATE}"])


@dataclass(frozen=True)
class Expected:
    """What a release will be like on average. NOT private: computed from the scores.

    Attributes
    ----------
    recall
        The share of the true top-k that is released, ties broken by one fixed order.
    score_error
        By how much the worst released score is below the k-th best.
    recall_off, score_error_off
        What they may be off by.
    confidence
        None where they were computed; where they were estimated from draws, the probability that both are covered.
    """

    recall: float
    score_error: float
    recall_off: float
    score_error_off: float
    confidence: Fraction | None = None

    def __str__(self) -> str:
        sure = _sure(self.confidence)
        return (
            f"recall {self.recall:.6f} (off by at most {self.recall_off:.1e}{sure})  "
            f"score error {self.score_error:.6g} (off by at most {self.score_error_off:.1e}{sure}; {NOT_PRIVATE})"
        )


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
        """The share of the items of all true lists that is released."""
        return self._mean("recall")

    @property
    def score_error(self) -> float:
        """By how much the worst released score is below the k-th best, on average over groups."""
        return self._mean("score_error")

    def _mean(self, name: str) -> float:
        return fmean(getattr(one, name) for one in self.groups.values())

    def __str__(self) -> str:
        every = list(self.groups.values())
        off = max(one.recall_off for one in every)
        return (
            f"recall {self.recall:.6f} over {len(every):,} groups, from {min(one.recall for one in every):.6f} to "
            f"{max(one.recall for one in every):.6f} (off by at most {off:.1e}{_sure(every[0].confidence)})  "
            f"score error {self.score_error:.6g} ({NOT_PRIVATE})"
        )


def _sure(confidence: Fraction | None) -> str:
    return "" if confidence is None else f" with confidence {decimal(confidence)}"
