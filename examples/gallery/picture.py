"""Draw a picture of the documentation as two files: for light pages and, with other colours, for dark ones.

The settings of matplotlib are those of `discreet study`. A story of the gallery also has a thumbnail, without words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from discreet.release.theme import Theme, darken

THEME = Theme()
INK, QUIET, GRID, PAPER, STYLE = THEME.ink, THEME.quiet, THEME.grid, THEME.paper, THEME.settings()

RELEASED, MISSED, FALSE, FAINT = "#0a58ca", "#c2410c", "#9333ea", "#c3cad6"
TONES = ("#0a58ca", "#c2410c", "#0f766e", "#9333ea")
GREY = "#8792a5"
DASHES = ("-", "--", "-.", ":")


@contextmanager
def drawing(
    folder: Path, name: str, height: float = 4.2, rows: int = 1, columns: int = 1, shared: bool = True
) -> Iterator[Any]:
    """Give one pair of axes, or rows of several that may share a horizontal axis, and save them at the end.

    The files are `name`.svg and `name`-dark.svg.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, height), layout="constrained")
        yield figure.subplots(rows, columns, sharex="row" if shared else False)
        _save(figure, folder, name)


@contextmanager
def thumbnail(folder: Path, name: str, rows: int = 1, columns: int = 1) -> Iterator[Any]:
    """Give axes like `drawing`, and save what is drawn in them small and without words.

    The files are `name`-small.svg and `name`-small-dark.svg.
    """
    with rc_context({**STYLE, "axes.grid": False, "lines.linewidth": 2.5}):
        figure = Figure(figsize=(3.2, 2.0), layout="constrained")
        panels = figure.subplots(rows, columns)
        yield panels
        for axes in np.ravel(panels):
            axes.set(title="", xlabel="", ylabel="")
            axes.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
            for words in [*axes.texts, *filter(None, [axes.get_legend()])]:
                words.remove()
        _save(figure, folder, f"{name}-small")


def _save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as `name`.svg, and as `name`-dark.svg with the colours of dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    write_dark(folder / f"{name}.svg")


def write_dark(picture: Path) -> Path:
    """Write a picture once more beside it, with the colours of dark pages, and return the path."""
    drawn = picture.read_text(encoding="utf-8")
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda colour: darken(colour[0]), drawn)
    path = picture.with_name(f"{picture.stem}-dark.svg")
    path.write_text(dark, encoding="utf-8")
    return path


def draw_counts(axes: Any, counts: list[Any], truth: dict[Any, int], label: str) -> None:
    """Draw released counts with their intervals, the first at the top, beside crosses for the made-up truth."""
    places, values = range(len(counts), 0, -1), [count.value for count in counts]
    errors = [[count.value - count.low for count in counts], [count.high - count.value for count in counts]]
    released = "released, with its 95% interval"
    axes.errorbar(values, places, xerr=errors, fmt="o", color=RELEASED, capsize=3, markersize=4.5, label=released)
    true = [truth[count.item] for count in counts]
    axes.scatter(true, places, marker="x", color=MISSED, s=26, zorder=3, label=label)
    axes.set_yticks(places, [count.item for count in counts])
    axes.set_ylim(0.4, len(counts) + 0.6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
