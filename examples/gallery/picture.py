"""Draw a picture of the documentation as two files: for light pages and, with other colours, for dark ones.

The settings of matplotlib are those of `discreet study`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from discreet.study.charts import GRID, INK, PAPER, QUIET, STYLE

RELEASED, MISSED, FALSE, FAINT = "#0a58ca", "#c2410c", "#9333ea", "#c3cad6"
TONES = ("#0a58ca", "#c2410c", "#0f766e", "#9333ea")
GREY = "#8792a5"
DARK = {
    INK: "#e7ebf3", QUIET: "#9aa5b8", GRID: "#2b3445", PAPER: "#171d29", FAINT: "#4b566b", GREY: "#8792a5",
    "#0a58ca": "#6ea8fe", "#c2410c": "#fb923c", "#0f766e": "#2dd4bf", "#9333ea": "#c084fc",
}  # fmt: skip
"""The colour on a dark page for each colour on a light one."""

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
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        write_dark(folder / f"{name}.svg")


def write_dark(picture: Path) -> Path:
    """Write a picture once more beside it, with the colours of dark pages, and return the path."""
    drawn = picture.read_text(encoding="utf-8")
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda colour: DARK[colour[0]], drawn)
    path = picture.with_name(f"{picture.stem}-dark.svg")
    path.write_text(dark, encoding="utf-8")
    return path
