"""Draw the navigation of the documentation, read from mkdocs.yml, as docs/pictures/navigation.svg, light and dark.

    python docs/_build/navigation.py docs/pictures

Each door is a row of page titles, wrapped like text, with arrows where pages have a reading order. Lengths are in points.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from matplotlib.textpath import TextPath

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples" / "gallery"))
from picture import GREY, INK, TONES, drawing  # noqa: E402  # the path to it is set above

WIDTH = 7.2 * 72
"""The width of every picture."""

FIRST, LAST = 96.0, WIDTH - 8.0
"""The left and the right edge of the titles; the names of the doors are left of them."""

SIZE, ARROW, LINE, BETWEEN = 9.0, 17.0, 18.0, 11.0
"""The size of the letters, the gap with an arrow between two titles, the height of a line, and that between doors."""

UNORDERED = {"Gallery", "Look up"}
"""Doors whose pages are read one by one: a dot stands between two titles."""


def read_navigation() -> dict[str, list[str]]:
    """Return the titles of the pages by door, in order; the page that opens a section has no title of its own."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    doors = {name: pages for entry in nav for name, pages in entry.items() if isinstance(pages, list)}
    return {name: [title for page in pages if isinstance(page, dict) for title in page] for name, pages in doors.items()}


def place_titles(titles: list[str]) -> list[tuple[float, int]]:
    """Return the left edge and the line of each title; a title that does not fit begins a line."""
    places, x, line = [], FIRST, 0
    for title in titles:
        width = TextPath((0, 0), title, size=SIZE).get_extents().width
        if x > FIRST and x + width > LAST:
            x, line = FIRST, line + 1
        places.append((x, line))
        x += width + ARROW
    return places


def draw_door(axes: Any, name: str, titles: list[str], colour: str, top: float) -> float:
    """Draw a door and its pages from `top` on downwards, and return the top of the next door."""
    places = place_titles(titles)
    bottom = top + LINE * (places[-1][1] + 1)
    axes.plot([FIRST - 10.0] * 2, [top + 2.0, bottom - 2.0], color=colour, linewidth=2.5, solid_capstyle="butt")
    axes.text(FIRST - 17.0, top + LINE / 2, name, size=11, weight="bold", color=colour, ha="right", va="center")
    for number, (title, (x, line)) in enumerate(zip(titles, places, strict=True)):
        y = top + LINE * (line + 0.5)
        axes.text(x, y, title, size=SIZE, color=INK, va="center")
        if number and line == places[number - 1][1]:
            if name in UNORDERED:
                axes.plot(x - ARROW / 2, y, ".", color=GREY, markersize=3)
            else:
                axes.annotate("", (x - 3.5, y), (x - 13.5, y), arrowprops={"arrowstyle": "->", "color": GREY, "lw": 0.8})
    return bottom + BETWEEN


def main(folder: Path) -> None:
    """Draw the doors below each other."""
    doors = read_navigation()
    lines = sum(place_titles(titles)[-1][1] + 1 for titles in doors.values())
    height = LINE * lines + BETWEEN * (len(doors) + 1)
    with drawing(folder, "navigation", height=height / 72) as axes:
        axes.set_position((0, 0, 1, 1))
        axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        axes.set_axis_off()
        top = BETWEEN
        for (name, titles), colour in zip(doors.items(), (*TONES, GREY), strict=True):
            top = draw_door(axes, name, titles, colour, top)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
