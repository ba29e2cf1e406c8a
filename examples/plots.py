"""Draw every plot of discreet, light and dark, from made-up scores.

    python examples/plots.py FOLDER

The folder then has NAME.svg, NAME.png and NAME-dark.png for each plot, and index.html, which shows all of them on a
light page, on a dark page and in grey.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import discreet
from discreet.release.plots import render

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "karst", "lagoon")
COUNTRIES = {"DE": 1.0, "FR": 0.6, "IT": 0.5, "ES": 0.3}


def main(folder: Path) -> None:
    """Draw all plots into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, drawable in make_results():
        names.append(name)
        for ending in ("svg", "png", "pdf"):
            (folder / f"{name}.{ending}").write_bytes(render(drawable.plot(), ending))
        (folder / f"{name}-dark.png").write_bytes(render(drawable.plot(dark=True), "png"))
    look = "body{margin:0}div{padding:1rem}img{max-width:100%}.dark{background:#171d29}.grey{filter:grayscale(1)}"
    kinds = (("light", ""), ("dark", "-dark"), ("grey", ""))
    pages = [
        f'<div class="{kind}">'
        + "".join(f'<p><img src="{name}{ending}.png" alt="{name}"></p>' for name in names)
        + "</div>"
        for kind, ending in kinds
    ]
    (folder / "index.html").write_text(f"<!doctype html><style>{look}</style>{''.join(pages)}", encoding="utf-8")
    print(f"wrote {folder / 'index.html'} with {len(names)} plots")


def make_results() -> Iterator[tuple[str, Any]]:
    """Yield each result that has a plot, with the name of its files."""
    random.seed(1)
    scores = {
        f"{WORDS[i % 12]} {WORDS[(5 * i + 1) % 12]} {i // 12 or ''}".strip(): round(60_000 / (i + 3) ** 0.9)
        for i in range(300)
    }
    yield "counts", discreet.top_k(scores, k=12, epsilon=1, counts="0.02", shortfall="0.05")
    yield (
        "values",
        discreet.top_k(
            scores, k=8, epsilon="0.05", mechanism=discreet.Histogram(), sensitivity=discreet.Sensitivity(0, 1, items=3)
        ),
    )
    yield "order", discreet.top_k(scores, k=10, epsilon=5, mechanism=discreet.Peeling())
    yield "no-order", discreet.top_k(scores, k=20, epsilon=1, shortfall="0.05")
    yield "not-private", discreet.top_k(scores, k=5, epsilon=1, rng=random.Random(1))
    groups = {name: {item: round(size * score) for item, score in scores.items()} for name, size in COUNTRIES.items()}
    yield (
        "groups-with-counts",
        discreet.top_k(discreet.grouped(groups, each_user="one"), k=5, epsilon=1, counts="0.05", shortfall="0.05"),
    )
    yield "groups", discreet.top_k(discreet.grouped(groups, each_user="one"), k=5, epsilon=1)
    yield "sketch", discreet.sketch(list(scores.values()), epsilon="0.5")
    yield "plan", discreet.plan(list(scores.values()), k=10, goal="recall", probability="0.9")
    yield "comparison", discreet.compare(list(scores.values()), k=10)
    yield "comparison-one-goal", discreet.compare(list(scores.values()), k=10, goal="top", epsilon="0.1")
    yield "utility", discreet.utility(list(scores.values()), k=10, epsilon="0.006")
    yield "utility-groups", discreet.utility(discreet.grouped(groups, each_user="one"), k=5, epsilon="0.01")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
