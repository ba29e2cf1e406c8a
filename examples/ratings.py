"""Makes a table of ratings, and public lists of movies and of countries: synthetic, seeded, the same on every machine.

Half a million people rate a few movies each, hits more often than others; four million rows in all. People like movies
of their own country better, and a movie is rated most soon after it came out, some time in 2026.

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
COUNTRIES = {
    "US": 0.2, "IN": 0.14, "BR": 0.12, "DE": 0.1, "FR": 0.09, "GB": 0.08, "JP": 0.07, "MX": 0.06, "ES": 0.05,
    "IT": 0.04, "PL": 0.03, "SE": 0.02,
}  # fmt: skip


def titles() -> list[str]:
    """Nine hundred different titles."""
    return [f"{first} {second} {third}" for first in FIRST for second in SECOND for third in THIRD]


def ratings(users: int, rows: int, movies: int, seed: int) -> pa.Table:
    """Return a table of users, movies and stars; a movie's fame falls with its place in a shuffled list."""
    rng = np.random.default_rng(seed)
    fame = 1.0 / (5.0 + rng.permutation(movies)) ** 0.8
    movie = rng.choice(movies, rows, p=fame / fame.sum())
    liking = rng.normal(3.4, 0.5, movies)[movie]
    stars = np.clip(np.rint(liking + rng.normal(0.0, 1.0, rows)), 1, 5).astype(np.int8)
    return pa.table({"user_id": rng.integers(0, users, rows), "movie_id": movie + 1000, "stars": stars})


def with_place_and_time(table: pa.Table, users: int, movies: int, seed: int) -> pa.Table:
    """Return the ratings with the country that each was given in, and when."""
    rng = np.random.default_rng(seed)
    user, movie = np.asarray(table["user_id"]), np.asarray(table["movie_id"]) - 1000
    liked = np.zeros(users, int)
    best_last = np.argsort(np.asarray(table["stars"]), kind="stable")
    liked[user[best_last]] = movie[best_last]
    country = countries(user, liked, movies, rng)
    table = table.append_column("country", pa.array(list(COUNTRIES)).take(pa.array(country)))
    return table.append_column("rated_at", pa.array(moments(movie, movies, rng)))


def countries(user: np.ndarray, liked: np.ndarray, movies: int, rng: np.random.Generator) -> np.ndarray:
    """Most people live where a movie that they like best comes from; one rating in twenty is given on a journey."""
    shares = np.array(list(COUNTRIES.values()))
    home = rng.choice(len(shares), movies, p=shares)
    lives = np.where(rng.random(len(liked)) < 0.6, home[liked], rng.choice(len(shares), len(liked), p=shares))
    return np.where(rng.random(len(user)) < 0.05, rng.choice(len(shares), len(user), p=shares), lives[user])


def moments(movie: np.ndarray, movies: int, rng: np.random.Generator) -> np.ndarray:
    """When each movie of a list was rated: most often soon after it came out, and always in 2026."""
    premiere = rng.uniform(0, 0.95, movies)[movie]
    seconds = 365 * 24 * 3600 * (premiere + (1 - premiere) * rng.random(len(movie)) ** 3)
    return (np.datetime64("2026-01-01", "s") + seconds.astype("timedelta64[s]")).astype("datetime64[us]")


def five_stars(table: pa.Table, movies: int) -> np.ndarray:
    """Return the number of different people who gave each movie five stars."""
    best = np.asarray(table["stars"]) == 5
    pairs = np.unique(np.stack([np.asarray(table["movie_id"])[best], np.asarray(table["user_id"])[best]]), axis=1)
    return np.bincount(pairs[0] - 1000, minlength=movies)


def main() -> None:
    """Write ratings.parquet, movies.csv, countries.csv, and the scores made of them into the folder given."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = titles()
    table = ratings(500_000, 4_000_000, len(names), seed=20)
    pq.write_table(with_place_and_time(table, 500_000, len(names), seed=16), folder / "ratings.parquet")
    (folder / "countries.csv").write_text("\n".join(["code", *COUNTRIES]) + "\n", encoding="utf-8")
    scores = five_stars(table, len(names))
    np.save(folder / "scores.npy", scores)
    counted = [f"{name},{score}" for name, score in zip(names, scores, strict=True)]
    (folder / "scores.csv").write_text("\n".join(["title,five_stars", *counted]) + "\n", encoding="utf-8")
    lines = [f"{1000 + i},{name}" for i, name in enumerate(names)]
    (folder / "movies.csv").write_text("\n".join(["movie_id,title", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
