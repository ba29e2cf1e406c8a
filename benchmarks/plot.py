"""Draw cost.svg and cost.png from curves.json: seconds against d and against k, each line labelled at its end."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator

from discreet.release.theme import Theme

INK, STYLE = Theme().ink, Theme().settings()

# The colours of Okabe and Ito are safe for colour-blind readers. Peers are dashed, and every line has its own marker.
LINES = {
    "canonical": ("#0072B2", "-", "o"),
    "one-shot": ("#009E73", "-", "s"),
    "peeling, Gumbel": ("#56B4E9", "-", "x"),
    "peeling, exponential": ("#CC79A7", "-", "D"),
    "joint": ("#D55E00", "-", "^"),
    "np.sort": ("#7d8594", "--", "v"),
    "np.argpartition": ("#7d8594", ":", "<"),
    "plain float one-shot": ("#596273", "--", "P"),
    "scan of all classes": ("#B8860B", "--", "h"),
    "OpenDP": ("#1b2330", "--", "X"),
    "diffprivlib": ("#1b2330", ":", "*"),
}

GAP, WIDE = 0.29, 0.75
"""The height of a name in powers of ten of a second, and its width in powers of ten of d or k."""


def draw(found: dict[str, Any], folder: Path) -> None:
    """Draw both panels over one axis of seconds."""
    with rc_context(STYLE):
        figure = Figure(figsize=(13, 6.4))
        left, right = figure.subplots(1, 2, sharey=True)
        panel(left, found["against_d"], f"Number of items d, with k = {found['k']}")
        panel(right, found["against_k"], f"k, with d = {found['d']:,}")
        if absent := [name for name in found["against_d"] if name not in found["against_k"]]:
            right.set_title(f"Too slow to start here: {', '.join(absent)}", fontsize=10, fontweight="normal")
        left.set_ylabel("seconds for one release, or one sort")
        right.tick_params(labelleft=True)
        left.set_title("What one release costs, epsilon = 1")
        figure.tight_layout()
        for suffix, metadata in ((".svg", {"Date": None}), (".png", {})):
            figure.savefig(folder / f"cost{suffix}", metadata=metadata, dpi=130)


def panel(axes: Axes, curves: dict[str, list[tuple[int, float]]], along: str) -> None:
    """Draw one line for each contestant, its name beside its last point."""
    axes.set(xscale="log", yscale="log", xlabel=along)
    ends: dict[float, dict[str, float]] = {}
    for name, points in curves.items():
        colour, dashes, mark = LINES[name]
        along_x, along_y = zip(*points, strict=True)
        axes.plot(
            along_x,
            along_y,
            dashes,
            color=colour,
            marker=mark,
            markersize=5,
            linewidth=2.4 if name == "canonical" else 1.5,
        )
        ends.setdefault(along_x[-1], {})[name] = along_y[-1]
    last = max(ends)
    beside(axes, last, ends.pop(last))
    above(axes, [(x, y, name) for x, names in ends.items() for name, y in names.items()])
    low = axes.get_xlim()[0]
    # Room for the names at the right and at the top.
    axes.set_xlim(low, last * (last / low) ** 0.42)
    axes.set_ylim(top=max(axes.get_ylim()[1], 4 * max(y for points in curves.values() for _, y in points)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([x for x in (10**n for n in range(9)) if low <= x <= last])


def beside(axes: Axes, x: float, ends: dict[str, float]) -> None:
    """Write the names of the lines that reach the right end, each tied to its line."""
    heights = apart({name: math.log10(y) for name, y in ends.items()})
    for name, y in ends.items():
        colour = LINES[name][0]
        tie = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)}
        place = (x * 1.6, 10 ** heights[name])
        axes.annotate(name, (x, y), place, color=darker(colour), va="center", fontsize=10, arrowprops=tie)


def above(axes: Axes, ends: list[tuple[float, float, str]]) -> None:
    """Write the names of the lines that stop early over their last points, stacked where these are close."""
    halo = [withStroke(linewidth=3, foreground="white")]
    placed: list[tuple[float, float]] = []
    for x, y, name in sorted(ends, key=lambda end: end[1]):
        text = name.replace(", ", ",\n").replace("scan of ", "scan of\n")
        close = [top for other, top in placed if abs(math.log10(x / other)) < WIDE]
        height = max([math.log10(y) + GAP / 2, *close])
        placed.append((x, height + GAP * (1 + text.count("\n"))))
        colour = darker(LINES[name][0])
        axes.text(x, 10**height, text, color=colour, ha="center", fontsize=10, linespacing=0.95, path_effects=halo)


def darker(colour: str) -> tuple[float, ...]:
    """Return the colour of a line for letters, which need more contrast."""
    return tuple(0.6 * part + 0.4 * ink for part, ink in zip(to_rgb(colour), to_rgb(INK), strict=True))


def apart(heights: dict[str, float]) -> dict[str, float]:
    """Return the heights, moved as little as needed to keep all of them GAP apart; neighbours share the move."""
    names = sorted(heights, key=lambda name: heights[name])
    blocks: list[list[str]] = []
    centres: list[float] = []
    for name in names:
        blocks.append([name])
        centres.append(heights[name])
        while len(blocks) > 1 and centres[-1] - centres[-2] < GAP * (len(blocks[-1]) + len(blocks[-2])) / 2:
            last = blocks.pop()
            centres.pop()
            blocks[-1] += last
            centres[-1] = sum(heights[name] for name in blocks[-1]) / len(blocks[-1])
    return {
        name: centre + GAP * (place - (len(block) - 1) / 2)
        for block, centre in zip(blocks, centres, strict=True)
        for place, name in enumerate(block)
    }
