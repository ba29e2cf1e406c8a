"""The most watched movies: twenty of four hundred, from who watched what.

    python examples/gallery/movies.py            prints the release
    python examples/gallery/movies.py pictures   and draws pictures/movies.svg

The viewings are made up, with a seed. The release is not: it is drawn with the randomness of the operating system, so
that every run prints its own.
"""

import sys
from pathlib import Path

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
    """Who watched what: about ten movies a person, the famous ones more often. One may be watched twice."""
    rng = np.random.default_rng(seed)
    fame = 1.0 / (10.0 + rng.permutation(len(titles))) ** 0.9
    rows = rng.poisson(10.0, PEOPLE).sum()
    watched = rng.choice(len(titles), rows, p=fame / fame.sum())
    return pa.table({"person": rng.integers(0, PEOPLE, rows), "movie": pa.array(titles).take(pa.array(watched))})


def truth(table: pa.Table, titles: list[str]) -> dict[str, int]:
    """How many different people watched each movie. Only made-up data may be shown like this."""
    counted = table.group_by("movie").aggregate([("person", "count_distinct")]).to_pylist()
    return dict.fromkeys(titles, 0) | {row["movie"]: row["person_count_distinct"] for row in counted}


def main() -> None:
    """Releases, compares with the truth, which is made up, and draws where a folder is given."""
    titles = catalogue()
    table = viewings(titles)

    source = discreet.events(table, user="person", item="movie", domain=titles)
    release = discreet.top_k(source, k=K, epsilon=EPSILON)
    print(release)

    people = truth(table, titles)
    ranked = sorted(titles, key=lambda title: -people[title])
    found = len(set(ranked[:K]) & set(release.items))
    print(f"\nIn the made-up truth, {found} of these are among the {K} most watched.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), ranked, people, set(release.items))


def draw(folder: Path, ranked: list[str], people: dict[str, int], released: set[str]) -> None:
    """Bars of the made-up truth by rank, coloured by what was released."""
    from picture import FAINT, FALSE, INK, MISSED, RELEASED, drawing

    shown = max(40, 1 + max(ranked.index(title) for title in released))
    kinds = {
        "released, and among the true top 20": (lambda i, title: i < K and title in released, RELEASED),
        "released, though not among them": (lambda i, title: i >= K and title in released, FALSE),
        "among them, and not released": (lambda i, title: i < K and title not in released, MISSED),
        "neither": (lambda i, title: i >= K and title not in released, FAINT),
    }
    with drawing(folder, "movies") as axes:
        for label, (belongs, colour) in kinds.items():
            bars = [(i + 1, people[title]) for i, title in enumerate(ranked[:shown]) if belongs(i, title)]
            if bars:
                axes.bar(*zip(*bars, strict=True), color=colour, label=label, width=0.8)
        axes.axvline(K + 0.5, color=INK, linewidth=1, linestyle=":")
        axes.set(xlabel="true rank (made up, and never released)", ylabel="people who watched it")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(f"{K} movies of {MOVIES}, epsilon = {EPSILON}")
        axes.grid(axis="x", visible=False)
        axes.legend()


if __name__ == "__main__":
    main()
