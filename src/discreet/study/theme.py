"""The colours of drawings, on light paper and on dark, and the style sheet that they make."""

from __future__ import annotations

from dataclasses import dataclass

_DASHES = ("none", "7 3", "2 3", "10 3 2 3")


@dataclass(frozen=True)
class Theme:
    """The colours of a drawing: of text, lines and paper, of curves to tell apart, and of curves in an order."""

    ink: str
    quiet: str
    grid: str
    paper: str
    tones: tuple[str, ...]
    ends: tuple[str, str, str]


LIGHT = Theme(
    "#1b2330",
    "#596273",
    "#e3e7ee",
    "#ffffff",
    ("#0a58ca", "#c2410c", "#0f766e", "#9333ea", "#a16207", "#be185d", "#475569", "#15803d"),
    ("#1d3a9f", "#b12a90", "#e0861a"),
)
DARK = Theme(
    "#e7ebf3",
    "#9aa5b8",
    "#2b3445",
    "#171d29",
    ("#6ea8fe", "#fb923c", "#2dd4bf", "#c084fc", "#facc15", "#f472b6", "#cbd5e1", "#4ade80"),
    ("#8ea2ff", "#e879c6", "#ffd166"),
)


def style(theme: Theme) -> str:
    """The style sheet of drawings, with literal colours only, so that any program that reads SVG understands it."""
    rules = [
        f"text{{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:{theme.quiet}}}",
        f"text.strong{{font-weight:650;fill:{theme.ink}}}tspan{{font-weight:400;fill:{theme.quiet}}}",
        f".paper{{fill:{theme.paper}}}.grid{{stroke:{theme.grid}}}.axis{{stroke:{theme.quiet}}}",
        ".line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}.main{stroke-width:3.2}",
        ".band{fill:currentColor;stroke:none;opacity:.16}",
    ]
    for i, tone in enumerate(theme.tones):
        rules.append(f".c{i}{{color:{tone};stroke-dasharray:{_DASHES[i % len(_DASHES)]}}}")
    rules += [f".r{i}{{color:{_ramp(theme.ends, i / 10)}}}" for i in range(11)]
    return "\n".join(rules)


def _ramp(ends: tuple[str, str, str], share: float) -> str:
    """The colour at a share of the way over three colours."""
    (start, stop), rest = (ends[:2], share * 2) if share < 0.5 else (ends[1:], share * 2 - 1)
    parts = zip(bytes.fromhex(start[1:]), bytes.fromhex(stop[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * rest) for a, b in parts).hex()
