"""How the pictures of the gallery look, in one place: size, colours, letters, and how they become files.

Each picture is two files, for light pages and for dark ones: the same drawing with other colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INK, QUIET, GRID = "#1b2330", "#596273", "#e3e7ee"
RELEASED, MISSED, FALSE, FAINT = "#0a58ca", "#c2410c", "#9333ea", "#c3cad6"
TONES = ("#0a58ca", "#c2410c", "#0f766e", "#9333ea")
GREY, PAPER = "#8792a5", "#ffffff"
DARK = {
    INK: "#e7ebf3", QUIET: "#9aa5b8", GRID: "#2b3445", PAPER: "#171d29", FAINT: "#4b566b", GREY: "#8792a5",
    "#0a58ca": "#6ea8fe", "#c2410c": "#fb923c", "#0f766e": "#2dd4bf", "#9333ea": "#c084fc",
}  # fmt: skip
"""What each colour is on a dark page."""

DASHES = ("-", "--", "-.", ":")

STYLE = {
    "axes.edgecolor": QUIET, "axes.grid": True, "axes.axisbelow": True, "axes.labelcolor": INK,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlelocation": "left", "axes.titlesize": 12,
    "axes.titleweight": "bold", "figure.constrained_layout.use": True, "font.size": 11, "grid.color": GRID,
    "legend.frameon": False, "legend.fontsize": 10, "svg.hashsalt": "discreet", "text.color": INK,
    "xtick.color": QUIET, "xtick.labelcolor": INK, "ytick.color": QUIET, "ytick.labelcolor": INK,
}  # fmt: skip


@contextmanager
def drawing(
    folder: Path, name: str, height: float = 4.2, rows: int = 1, columns: int = 1, shared: bool = True
) -> Iterator[Any]:
    """One pair of axes, or rows of several that may share what is below them.

    They end up as `name`.svg and `name`-dark.svg.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(rows, columns, sharex="row" if shared else False, figsize=(7.2, height))
        try:
            yield axes
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            write_dark(folder / f"{name}.svg")
        finally:
            pyplot.close(figure)


def write_dark(picture: Path) -> Path:
    """Writes a picture once more with the colours of dark pages, beside it, and returns where."""
    drawn = picture.read_text(encoding="utf-8")
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda colour: DARK[colour[0]], drawn)
    path = picture.with_name(f"{picture.stem}-dark.svg")
    path.write_text(dark, encoding="utf-8")
    return path
