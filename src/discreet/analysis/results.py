"""Results of `utility` and `expected`, for one list and for one list per group, with their text and notebook views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean
from typing import Any

from discreet.analysis.goals import GOALS, name_goal
from discreet.analysis.shortfall_odds import ShortfallQuantiles
from discreet.release.sketch import Sketch
from discreet.release.theme import check_matplotlib
from discreet.text import decimal, make_html_table, make_html_view, repr_with_decimals

NOT_PRIVATE = "NOT private: computed from the scores"


def describe_origin(source: Any, k: int) -> str:
    """Return the note on privacy printed with a result: NOT private, or for a sketch its cost."""
    return source.describe_cost(k) if isinstance(source, Sketch) else NOT_PRIVATE


@dataclass(frozen=True, repr=False)
class Utility:
    """The probability that a release is good. NOT private if computed from scores; from a sketch it is post-processing.

    Attributes
    ----------
    top
        The probability of exactly the top-k, with ties broken by one fixed order.
    great
        The probability of a set that holds the best tenth of k and none beyond the best 11/10 of k.
    good
        The probability of a set that holds the best hundredth of k and none beyond the best 3/2 of k.
    optimal
        The probability of any top-k by score, however ties are broken.
    recall
        The expected share of released items that are right, that is, score at least as much as the true k-th; of items
        tied with it any is right. With `share`, the probability that at least this share is right. For a list that may
        be shorter than k (`Core`) it is a share of k, and the other four are NaN. NaN for joint over sets.
    error
        The error of each probability. For canonical it is a bound. For one-shot and joint it is the last change of an
        integral that was refined until it stood still, or a bound if that is smaller.
    confidence
        None if the probabilities were computed; if they were sampled, the probability that `error` covers all of them.
    share
        The share that recall is the probability of; None for the expected share.
    origin
        The note on privacy: NOT private, or the cost of the sketch.
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

    def plot(self, ax: Any = None, *, dark: bool = False) -> Any:
        """Draw a bar for each goal, with its error; the parameters are those of `Release.plot`.

        Examples
        --------
        >>> import discreet
        >>> figure = discreet.utility([90, 80, 5, 1], k=2, epsilon="0.1").plot()
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['top', 'great', 'good', 'optimal', 'recall']
        """
        check_matplotlib()
        from discreet.analysis.plots import draw_utility

        return draw_utility(self, ax, dark)

    def _repr_html_(self) -> str:
        rows = [(name_goal(goal, self.share), f"{getattr(self, goal):.4f}") for goal in GOALS]
        off = f"off by at most {self.error:.1e}{_sure(self.confidence)}"
        return _make_view("How likely a release is to be good", rows, ("goal", "chance"), [off, self.origin])

    def __str__(self) -> str:
        shares = "  ".join(f"{name_goal(name, self.share)} {getattr(self, name):.6f}" for name in GOALS)
        return f"{shares}  (off by at most {self.error:.1e}{_sure(self.confidence)}; {self.origin})"


@dataclass(frozen=True)
class GroupedUtility:
    """The probability that the list of each group is good. NOT private: computed from the scores.

    Attributes
    ----------
    groups
        The utility of each group; the confidence of sampled ones is that of all groups together.
    """

    groups: dict[Any, Utility]

    @property
    def top(self) -> float:
        """Return the expected share of groups whose list is exactly the top-k."""
        return self._mean("top")

    @property
    def great(self) -> float:
        """Return the expected share of groups whose list is great, as in `Utility`."""
        return self._mean("great")

    @property
    def good(self) -> float:
        """Return the expected share of groups whose list is good."""
        return self._mean("good")

    @property
    def optimal(self) -> float:
        """Return the expected share of groups whose list is a top-k by score, however ties are broken."""
        return self._mean("optimal")

    @property
    def recall(self) -> float:
        """Return the expected share of right items in all lists, or of lists with at least `share` right."""
        return self._mean("recall")

    @property
    def error(self) -> float:
        """Return the error of each share."""
        return max(one.error for one in self.groups.values())

    def plot(self, ax: Any = None, *, dark: bool = False) -> Any:
        """Draw a bar for each goal, with a line from the worst group to the best.

        The parameters are those of `Release.plot`.
        """
        check_matplotlib()
        from discreet.analysis.plots import draw_utility

        return draw_utility(self, ax, dark)

    def _mean(self, goal: str) -> float:
        return fmean(getattr(one, goal) for one in self.groups.values())

    def _rows(self, digits: int) -> list[tuple[str, ...]]:
        """Return each goal with its expected share, and the probability of the worst and of the best group."""
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
    """Averages over releases. NOT private if computed from scores; from a sketch it is post-processing.

    Attributes
    ----------
    recall
        The share of released items that are right, that is, score at least as much as the true k-th.
    score_error
        The k-th best score minus the worst released score.
    recall_off, score_error_off
        The errors of these two.
    confidence
        None if all was computed; if some was sampled, the probability that the errors cover all of that.
    places, kendall
        For a mechanism that releases an order, otherwise None: the share of items whose score is that of their place,
        and Kendall's tau, the share of pairs in the order of their scores minus the share of pairs in the other order
        (pairs of equal scores are neither; one item has no pairs and 0).
    places_off, kendall_off
        The errors of these two.
    count_width
        With counts, the width of their intervals before clipping at zero; None without.
    shortfall
        The median and the 95% quantile of the true shortfall of a release; None if all items are released.
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
    shortfall: ShortfallQuantiles | None = None
    origin: str = field(default=NOT_PRIVATE, repr=False)

    def __repr__(self) -> str:
        return repr_with_decimals(self, decimal)

    def _parts(self) -> list[tuple[str, float, float | None]]:
        """Return the averages by name, with their errors."""
        parts = [
            ("recall", self.recall, self.recall_off),
            ("score error", self.score_error, self.score_error_off),
            ("places", self.places, self.places_off),
            ("Kendall's tau", self.kendall, self.kendall_off),
        ]
        return [(name, value, off) for name, value, off in parts if value is not None]

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4g}", f"{off:.1e}") for name, value, off in self._parts()]
        counted = [] if self.count_width is None else [("count interval", decimal(self.count_width), "")]
        short = [] if self.shortfall is None else [f"Shortfall: {self.shortfall.describe()}."]
        head = ("on average", "value", f"off by at most{_sure(self.confidence)}")
        return _make_view("What a release will be like", [*rows, *counted], head, [*short, self.origin])

    def __str__(self) -> str:
        sure = _sure(self.confidence)
        told = [f"{name} {value:.6g} (off by at most {off:.1e}{sure})" for name, value, off in self._parts()]
        counted = [] if self.count_width is None else [f"counts in intervals of {decimal(self.count_width)}"]
        short = [] if self.shortfall is None else [f"shortfall {self.shortfall.describe()}"]
        return "  ".join([*told, *counted, *short, f"({self.origin})"])


@dataclass(frozen=True)
class GroupedExpected:
    """Averages over the lists of all groups. NOT private: computed from the scores.

    Attributes
    ----------
    groups
        The averages of each group.
    """

    groups: dict[Any, Expected]

    @property
    def recall(self) -> float:
        """Return the share of right items in all lists."""
        return self._mean("recall")

    @property
    def score_error(self) -> float:
        """Return the k-th best score minus the worst released score, on average over groups."""
        return self._mean("score_error")

    def _mean(self, name: str) -> float:
        return fmean(getattr(one, name) for one in self.groups.values())

    def _repr_html_(self) -> str:
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
    return make_html_view(title, make_html_table(rows, head), notes)


def _sure(confidence: Fraction | None) -> str:
    return "" if confidence is None else f" with confidence {decimal(confidence)}"
