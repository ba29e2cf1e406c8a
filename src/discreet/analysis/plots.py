"""Draw comparisons and utilities with matplotlib; imported by their `plot` methods alone."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import LogLocator, PercentFormatter

from discreet.analysis.goals import GOALS, name_goal
from discreet.release.plots import ROW, entitle, figure_of, open_axes, write_below, write_beside
from discreet.release.theme import themed
from discreet.text import round_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.analysis.compare import Comparison
    from discreet.analysis.results import GroupedUtility, Utility

_MARKERS = "oDs^v"
"""A marker for each goal, so that goals can be told apart in grey."""


def draw_comparison(table: Comparison, ax: Any, dark: bool) -> Any:
    """Return a figure of the epsilon that each mechanism needs: a row for each, a marker for each goal."""
    goals = list(table.choices[0].needs) if table.choices else []
    with themed(dark) as theme:
        axes = open_axes(ax, ROW * len(table.choices) * (1.6 if len(goals) > 1 else 1) + 1.6, theme)
        entitle(axes, theme, table.title())
        for place, goal in enumerate(goals):
            rows = [(row, need) for row, choice in enumerate(table.choices) if (need := choice.needs[goal]) is not None]
            # Goals are slightly apart, so that equal needs do not hide each other.
            shift = 0.14 * (place - (len(goals) - 1) / 2)
            axes.plot(
                [float(need) for _, need in rows], [row + shift for row, _ in rows], _MARKERS[place % len(_MARKERS)],
                color=theme.curves[place + 1], markersize=6, label=name_goal(goal, table.share),
            )  # fmt: skip
            if len(goals) == 1:
                for row, need in rows:
                    axes.annotate(
                        round_up(need), (float(need), row), (8, 0), textcoords="offset points", va="center", fontsize=9
                    )
        for row, choice in enumerate(table.choices):
            if all(need is None for need in choice.needs.values()):
                place_of = axes.get_yaxis_transform()
                axes.text(0.01, row, "not computed, or never", transform=place_of, va="center", color=theme.quiet)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.margins(x=0.2)
        _name_rows(axes, [choice.label for choice in table.choices])
        if len(goals) > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        write_below(axes, theme, table.notes(), "epsilon needed, the less the better")
        return figure_of(axes)


def draw_utility(found: Utility | GroupedUtility, ax: Any, dark: bool) -> Any:
    """Return a figure of the probability of each goal: bars, and lines for errors or from the worst to the best group.

    Goals that were not computed are left out.
    """
    lists = getattr(found, "groups", {"": found})
    share, origin = next((each.share, each.origin) for each in lists.values())
    with themed(dark) as theme:
        goals = [goal for goal in GOALS if not isnan(getattr(found, goal))]
        axes = open_axes(ax, ROW * 1.4 * len(goals) + 1.4, theme)
        chances = [getattr(found, goal) for goal in goals]
        low, high = ([most(getattr(each, goal) for each in lists.values()) for goal in goals] for most in (min, max))
        if len(lists) == 1:
            low, high = ([chance + sign * found.error for chance in chances] for sign in (-1, 1))
        axes.barh(range(len(goals)), chances, height=0.66, color=theme.bar, edgecolor=theme.mark, linewidth=0.6)
        ends = [
            [chance - max(0.0, end) for chance, end in zip(chances, low, strict=True)],
            [min(1.0, end) - chance for chance, end in zip(chances, high, strict=True)],
        ]
        if any(map(any, ends)):
            axes.errorbar(chances, range(len(goals)), xerr=ends, fmt="none", ecolor=theme.mark, capsize=3)
        for row, (chance, end) in enumerate(zip(chances, high, strict=True)):
            write_beside(axes, theme, f"{100 * chance:.1f}%", min(1.0, end), row)
        axes.set(xlim=(0, 1.12), xticks=[0, 0.25, 0.5, 0.75, 1])
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        _name_rows(axes, [name_goal(goal, share) for goal in goals])
        title = "How likely a release is to be good"
        if "recall" in goals and share is None:
            title = f"{title}, and its expected recall" if len(goals) > 1 else "The expected recall of a release"
        if len(lists) > 1:
            title = f"Expected share of {len(lists):,} groups with a good list; a line from the worst group to the best"
        entitle(axes, theme, title)
        write_below(axes, theme, [origin])
        return figure_of(axes)


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
