"""Colours and dashes of the drawings of a study: gammas in an order, everything else to be told apart.

Canonical's curves are solid and blue, the deeper the larger gamma. Every other method has a hue that no gamma has and
one of four dashes: seven hues and four dashes have no factor in common, so that 28 methods differ in one of the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

DASHES = ("7 3", "2 3", "10 3 2 3", "14 4")
SHADES = 24
"""How many steps the scale of gammas has."""

_GAMMA = re.compile(r"\bgamma = (\d+(?:/[1-9]\d*|\.\d+)?)(?![\d./])")


@dataclass(frozen=True)
class Theme:
    """The colours of a drawing: of text, lines and paper, of curves to tell apart, and of the scale of gammas."""

    ink: str
    quiet: str
    grid: str
    paper: str
    hues: tuple[str, ...]
    scale: tuple[str, str, str]


LIGHT = Theme(
    "#1b2330",
    "#596273",
    "#e3e7ee",
    "#ffffff",
    ("#c2410c", "#0f766e", "#9333ea", "#52525b", "#2f7d1f", "#be185d", "#8a5a00"),
    ("#3b94f7", "#175cd3", "#0a1f52"),
)
DARK = Theme(
    "#e7ebf3",
    "#9aa5b8",
    "#2b3445",
    "#171d29",
    ("#fb923c", "#2dd4bf", "#c084fc", "#c4c4cc", "#86d96b", "#f472b6", "#facc15"),
    ("#3574e8", "#7fb2ff", "#e3eeff"),
)


def read_gamma(method: str) -> Fraction | None:
    """The gamma in the name of a method, or None where it names none."""
    found = _GAMMA.search(method)
    return None if found is None else Fraction(found[1])


def sort_by_gamma(methods: Sequence[str]) -> list[str]:
    """The methods in their order, those with a gamma by that number in the places that they had."""
    ranked = iter(_rank_gammas(methods))
    return [method if read_gamma(method) is None else next(ranked) for method in methods]


def tone(methods: Sequence[str], method: str) -> str:
    """The class that gives a method its colour and its dashes among the methods of a figure."""
    ranked = _rank_gammas(methods)
    if method in ranked:
        return f"r{round(SHADES * ranked.index(method) / (len(ranked) - 1)) if len(ranked) > 1 else SHADES // 2}"
    others = [each for each in methods if each not in ranked]
    return f"c{others.index(method) % (len(LIGHT.hues) * len(DASHES))}"


def _rank_gammas(methods: Sequence[str]) -> list[str]:
    gammas = {method: gamma for method in methods if (gamma := read_gamma(method)) is not None}
    return sorted(gammas, key=lambda method: gammas[method])


def style(theme: Theme) -> str:
    """The style sheet of drawings, with literal colours only, so that any program that reads SVG understands it."""
    rules = [
        f"text{{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:{theme.quiet};"
        "stroke-dasharray:none!important}",
        f"text.strong{{font-weight:650;fill:{theme.ink}}}tspan{{font-weight:400;fill:{theme.quiet}}}",
        f".paper{{fill:{theme.paper}}}.grid{{stroke:{theme.grid}}}.axis{{stroke:{theme.quiet}}}",
        ".line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}.main{stroke-width:3.2}",
        ".band{fill:currentColor;stroke:none;opacity:.16}",
        "text.name{font-size:11px;fill:currentColor}.end{fill:currentColor}",
        ".lead{stroke:currentColor;stroke-width:.9;stroke-dasharray:none!important}",
        f".halo{{paint-order:stroke;stroke:{theme.paper};stroke-width:4px;stroke-linejoin:round}}",
        f".chosen{{fill:{theme.paper};stroke:currentColor;stroke-width:2.5;stroke-dasharray:none!important}}",
        *_tones(theme),
        *(f".r{i}{{color:{_mix(theme.scale, i / SHADES)}}}" for i in range(SHADES + 1)),
    ]
    return "\n".join(rules)


def _tones(theme: Theme) -> list[str]:
    hues, dashes = theme.hues, DASHES
    pairs = [(hues[i % len(hues)], dashes[i % len(dashes)]) for i in range(len(hues) * len(dashes))]
    return [f".c{i}{{color:{hue};stroke-dasharray:{dash}}}" for i, (hue, dash) in enumerate(pairs)]


def _mix(colours: tuple[str, str, str], share: float) -> str:
    """The colour at a share of the way over three colours."""
    (start, stop), rest = (colours[:2], share * 2) if share < 0.5 else (colours[1:], share * 2 - 1)
    parts = zip(bytes.fromhex(start[1:]), bytes.fromhex(stop[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * rest) for a, b in parts).hex()
