"""The colours and the matplotlib settings of every picture: of releases, plans, studies and the documentation.

A dark page shows the same picture with inverted lightness, and with curves in colours of their own. Bars differ from
their outlines in lightness, and curves in colour, dashes and markers, so that a picture can be read in grey.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from typing import Any

from discreet.errors import MissingExtraError

_CARD = "#171d29"
"""The paper of dark pages, which shines through black."""

_DARK_CURVES = (
    "#ffc54c", "#6fcdfd", "#ccffff", "#0ad797", "#ad46ff", "#2876b6", "#d05d42", "#787887", "#5aa5ff", "#ff6fae",
    "#d2d278",
)  # fmt: skip
"""The curves of dark pages, in the order of the light ones. Inverted, sky and green would look the same without red."""


FONTS_WANTED = "fonts of other scripts, such as Noto Sans CJK JP or Noto Sans Arabic, are used where they are installed"
"""The remedy where a picture lacks letters."""

_FALLBACK_FONTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR", "Source Han Sans",
    "Droid Sans Fallback", "IPAexGothic", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Hiragino Sans", "PingFang SC",
    "Apple SD Gothic Neo", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Noto Sans Arabic", "Noto Naskh Arabic",
    "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai",
    "Noto Sans Symbols", "Noto Emoji", "FreeSans", "Arial Unicode MS", "Segoe UI", "Unifont",
)  # fmt: skip
"""The fonts for letters that DejaVu Sans, which comes with matplotlib, does not have."""


@dataclass(frozen=True)
class Theme:
    """The colours of a picture; by default those of a light page.

    Attributes
    ----------
    ink, quiet, grid, paper
        The colours of words, of less important words and axes, of grid lines, and of the background.
    bar, mark
        The colours of a bar, and of its outline and its interval.
    warn
        The colour of a warning.
    curves
        The colours of curves: orange, blue, ink, green, magenta, sky, brown, umber, ultramarine, violet and crimson,
        as many as a plan has mechanisms. Two of them that share a dash pattern differ in lightness, for grey paper and
        for readers who do not see red and green as different.
    """

    ink: str = "#1b2330"
    quiet: str = "#596273"
    grid: str = "#e3e7ee"
    paper: str = "#ffffff"
    bar: str = "#a9c3ec"
    mark: str = "#1d3f7c"
    warn: str = "#8a1c1c"
    curves: tuple[str, ...] = (
        "#d96b00", "#0a58ca", "#1b2330", "#00876c", "#b0308f", "#4a90d9", "#8f2d0c", "#635539", "#0000d4", "#55008e",
        "#e30055",
    )  # fmt: skip

    @classmethod
    def of(cls, dark: bool) -> Theme:
        """Return the theme of a light or of a dark page."""
        if not dark:
            return cls()
        light = cls()
        single = {each.name: darken(getattr(light, each.name)) for each in fields(cls) if each.name != "curves"}
        return cls(**single, curves=_DARK_CURVES)

    def settings(self) -> dict[Any, Any]:
        """Return the settings of matplotlib: colours, no frame, and element ids that are the same in every run."""
        return {
            "axes.axisbelow": True, "axes.edgecolor": self.quiet, "axes.facecolor": self.paper, "axes.grid": True,
            "axes.labelcolor": self.ink, "axes.spines.right": False, "axes.spines.top": False,
            "axes.titlelocation": "left", "axes.titlesize": 12, "axes.titleweight": "bold",
            "figure.facecolor": self.paper, "font.size": 11, "grid.color": self.grid, "legend.fontsize": 10,
            "legend.frameon": False, "savefig.facecolor": self.paper, "svg.hashsalt": "discreet",
            "text.color": self.ink, "xtick.color": self.quiet, "xtick.labelcolor": self.ink,
            "ytick.color": self.quiet, "ytick.labelcolor": self.ink,
        }  # fmt: skip


def darken(colour: str) -> str:
    """Return the colour of a dark page for "#rrggbb" of a light one.

    It is the filter `invert(1) hue-rotate(180deg)` of CSS, blended over the dark paper by `screen`.

    Examples
    --------
    >>> darken("#ffffff"), darken("#1b2330")
    ('#171d29', '#d9e1ee')
    """
    red, green, blue = (1 - part / 255 for part in bytes.fromhex(colour[1:]))
    # Half a turn of the hue mirrors a colour at the grey of its luminance.
    grey = 2 * (0.213 * red + 0.715 * green + 0.072 * blue)
    turned = (min(1.0, max(0.0, grey - part)) for part in (red, green, blue))
    over = (1 - (1 - part) * (1 - card / 255) for part, card in zip(turned, bytes.fromhex(_CARD[1:]), strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in over)


def check_matplotlib() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            'pictures need matplotlib, which the extra "plot" of discreet installs: pip install "matplotlib>=3.9"'
        )


@contextmanager
def themed(dark: bool = False, more: dict[Any, Any] | None = None) -> Iterator[Theme]:
    """Give a theme, with its settings and `more` in force; the reader's own settings of matplotlib change nothing."""
    check_matplotlib()
    from matplotlib import rc_context, rcdefaults, rcParams

    theme = Theme.of(dark)
    with rc_context():
        rcdefaults()
        rcParams.update({**theme.settings(), "font.family": _find_fonts()})
        # Labels are drawn as they are: a dollar sign begins no formula.
        rcParams.update({"svg.fonttype": "none", "text.parse_math": False, **(more or {})})
        yield theme


@cache
def _find_fonts() -> list[str]:
    """Return the font of pictures, and those of this machine that take the place of letters it lacks."""
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    found = [name for name in _FALLBACK_FONTS if name in known]
    # Most of them have one weight, and matplotlib would say so for each title, whatever letters are in it.
    log = logging.getLogger("matplotlib.font_manager")
    log.addFilter(lambda record: not any(f"font weight bold for {name}" in record.getMessage() for name in found))
    return ["sans-serif", *found]
