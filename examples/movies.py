"""Makes a table of movies and how many people gave each five stars: synthetic, seeded, the same on every machine.

python examples/movies.py demo/scores.csv
"""

import csv
import random
import sys
from pathlib import Path

FIRST = ["Silent", "Golden", "Broken", "Hidden", "Electric", "Last", "Crimson", "Distant", "Paper", "Velvet"]
SECOND = ["River", "Harbour", "Winter", "Garden", "Signal", "Orchard", "Mirror", "Station", "Comet", "Lantern"]
PLACE = [
    "of Ash",
    "in Blue",
    "at Dawn",
    "by the Sea",
    "under Glass",
    "on Fire",
    "without End",
    "for Two",
    "of Salt",
    "",
]


def titles() -> list[str]:
    """A thousand different titles."""
    return [f"{first} {second} {place}".strip() for first in FIRST for second in SECOND for place in PLACE]


def counts(number: int, seed: int) -> list[int]:
    """How many people gave five stars, from a few hits to a long tail."""
    source = random.Random(seed)
    return [int(9000 / (1 + rank) ** 0.6 + 40 * source.random()) for rank in range(number)]


def main() -> None:
    """Writes the table in the order of the titles, which says nothing about the counts."""
    target = Path(sys.argv[1])
    names = titles()
    shuffled = random.Random(7).sample(counts(len(names), seed=11), len(names))
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "five_stars"])
        writer.writerows(zip(names, shuffled, strict=True))


if __name__ == "__main__":
    main()
