"""Release the twenty most watched movies of four hundred, from a table of who watched what.

    python examples/gallery/movies.py            prints the release
    python examples/gallery/movies.py pictures   and draws pictures/movies.svg

The viewings are made up, with a seed. The release is drawn with the randomness of the operating system, so every run
prints its own.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

PEOPLE, MOVIES, K, EPSILON = 30_000, 400, 20, "0.05"
FIRST = ["Amber", "Borrowed", "Copper", "Drifting", "Empty", "Frozen", "Gentle", "Hollow", "Iron", "Jade"]
SECOND = ["Acre", "Bell", "Causeway", "Dial", "Estuary", "Ferry", "Gate", "Hour", "Island", "Junction"]
THIRD = ["", " II", " Again", " Forever"]


def catalogue() -> list[str]:
    """Return the titles that could be watched: public, and known before anybody watched one."""
    return [f"{first} {second}{third}" for third in THIRD for first in FIRST for second in SECOND]


def viewings(titles: list[str], seed: int = 7) -> pa.Table:
    """Return who watched what: about ten movies a person, the famous ones more often. One may be watched twice."""
    rng = np.random.default_rng(seed)
    fame = 1.0 / (10.0 + rng.permutation(len(titles))) ** 0.9
    rows = rng.poisson(10.0, PEOPLE).sum()
    watched = rng.choice(len(titles), rows, p=fame / fame.sum())
    return pa.table({"person": rng.integers(0, PEOPLE, rows), "movie": pa.array(titles).take(pa.array(watched))})


def truth(table: pa.Table, titles: list[str]) -> dict[str, int]:
    """Return how many people watched each movie. Only made-up data may be shown like this."""
    counted = table.group_by("movie").aggregate([("person", "count_distinct")]).to_pylist()
    return dict.fromkeys(titles, 0) | {row["movie"]: row["person_count_distinct"] for row in counted}


# --8<-- [start:release]
def release_movies(table: pa.Table, titles: list[str]) -> discreet.Release:
    """Return the most watched movies: a person counts once for each movie."""
    source = discreet.events(table, user="person", item="movie", domain=titles)
    return discreet.top_k(source, k=K, epsilon=EPSILON)


# --8<-- [end:release]


def main() -> None:
    """Release, compare with the made-up truth, and draw if a folder is given."""
    titles = catalogue()
    table = viewings(titles)
    release = release_movies(table, titles)
    print(release)

    people = truth(table, titles)
    ranked = sorted(titles, key=lambda title: -people[title])
    found = len(set(ranked[:K]) & set(release.items))
    print(f"\nIn the made-up truth, {found} of these are among the {K} most watched.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), ranked, people, set(release.items))


def draw(folder: Path, ranked: list[str], people: dict[str, int], released: set[str]) -> None:
    """Draw the picture and its thumbnail."""
    from picture import drawing, thumbnail

    with drawing(folder, "movies") as axes:
        draw_bars(axes, ranked, people, released)
        axes.set(xlabel="true rank (made up, and never released)", ylabel="people who watched it")
        axes.set_title(f"{K} movies of {MOVIES}, epsilon = {EPSILON}")
        axes.grid(axis="x", visible=False)
        axes.legend()
    with thumbnail(folder, "movies") as axes:
        draw_bars(axes, ranked, people, released)


def draw_bars(axes: Any, ranked: list[str], people: dict[str, int], released: set[str]) -> None:
    """Draw bars of the made-up truth by rank, coloured by what was released."""
    from picture import FAINT, FALSE, INK, MISSED, RELEASED

    shown = max(40, 1 + max(ranked.index(title) for title in released))
    kinds = {
        "released, and among the true top 20": (lambda i, title: i < K and title in released, RELEASED),
        "released, though not among them": (lambda i, title: i >= K and title in released, FALSE),
        "among them, and not released": (lambda i, title: i < K and title not in released, MISSED),
        "neither": (lambda i, title: i >= K and title not in released, FAINT),
    }
    for label, (belongs, colour) in kinds.items():
        bars = [(i + 1, people[title]) for i, title in enumerate(ranked[:shown]) if belongs(i, title)]
        if bars:
            axes.bar(*zip(*bars, strict=True), color=colour, label=label, width=0.8)
    axes.axvline(K + 0.5, color=INK, linewidth=1, linestyle=":")
    axes.yaxis.set_major_formatter("{x:,.0f}")


if __name__ == "__main__":
    main()
