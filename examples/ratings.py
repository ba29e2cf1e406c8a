"""Makes a table of ratings and a public list of movies: synthetic, seeded, the same on every machine.

Half a million people rate a few movies each, hits more often than others; four million rows in all.

    python examples/ratings.py demo/
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FIRST = ["Silent", "Golden", "Broken", "Hidden", "Electric", "Last", "Crimson", "Distant", "Paper", "Velvet"]
SECOND = ["River", "Harbour", "Winter", "Garden", "Signal", "Orchard", "Mirror", "Station", "Comet", "Lantern"]
THIRD = ["of Ash", "in Blue", "at Dawn", "by the Sea", "under Glass", "on Fire", "without End", "for Two", "of Salt"]


def titles() -> list[str]:
    """Nine hundred different titles."""
    return [f"{first} {second} {third}" for first in FIRST for second in SECOND for third in THIRD]


def ratings(users: int, rows: int, movies: int, seed: int) -> pa.Table:
    """Who gave which movie how many stars; a movie's fame falls with its place in a shuffled list."""
    rng = np.random.default_rng(seed)
    fame = 1.0 / (5.0 + rng.permutation(movies)) ** 0.8
    movie = rng.choice(movies, rows, p=fame / fame.sum())
    liking = rng.normal(3.4, 0.5, movies)[movie]
    stars = np.clip(np.rint(liking + rng.normal(0.0, 1.0, rows)), 1, 5).astype(np.int8)
    return pa.table({"user_id": rng.integers(0, users, rows), "movie_id": movie + 1000, "stars": stars})


def five_stars(table: pa.Table, movies: int) -> np.ndarray:
    """How many different people gave each movie five stars."""
    best = np.asarray(table["stars"]) == 5
    pairs = np.unique(np.stack([np.asarray(table["movie_id"])[best], np.asarray(table["user_id"])[best]]), axis=1)
    return np.bincount(pairs[0] - 1000, minlength=movies)


def main() -> None:
    """Writes ratings.parquet, movies.csv, and the scores made of them into the folder given."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = titles()
    table = ratings(500_000, 4_000_000, len(names), seed=20)
    pq.write_table(table, folder / "ratings.parquet")
    scores = five_stars(table, len(names))
    np.save(folder / "scores.npy", scores)
    counted = [f"{name},{score}" for name, score in zip(names, scores, strict=True)]
    (folder / "scores.csv").write_text("\n".join(["title,five_stars", *counted]) + "\n", encoding="utf-8")
    lines = [f"{1000 + i},{name}" for i, name in enumerate(names)]
    (folder / "movies.csv").write_text("\n".join(["movie_id,title", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
