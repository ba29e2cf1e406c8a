"""How the pictures of the gallery look, in one place: size, colours, letters, and how they become files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INK, QUIET, GRID = "#1b2330", "#596273", "#e3e7ee"
RELEASED, MISSED, FALSE, FAINT = "#0a58ca", "#c2410c", "#9333ea", "#c3cad6"
TONES = ("#0a58ca", "#c2410c", "#0f766e", "#9333ea")
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
    """One pair of axes, or rows of several that may share what is below them, which end up as `name`.svg."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(rows, columns, sharex="row" if shared else False, figsize=(7.2, height))
        try:
            yield axes
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        finally:
            pyplot.close(figure)
