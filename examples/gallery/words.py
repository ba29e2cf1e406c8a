"""Release the most popular searches, which nobody listed beforehand, in two ways.

    python examples/gallery/words.py            prints the releases
    python examples/gallery/words.py pictures   and draws pictures/words.svg

A list of words read off the searches would reveal what one person typed. Partition selection finds the words that
enough people searched, at the cost of a delta. The other way has no delta: its domain is every string of up to 13
letters.

The searches are made up, with a seed. The releases are drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pyarrow as pa

import discreet

PEOPLE, K, EPSILON, DELTA, LONGEST = 40_000, 30, 1, "1e-8", 13
WORDS = [
    "weather", "maps", "news", "translate", "mail", "football", "recipes", "calculator", "flights", "jobs",
    "lottery", "music", "games", "horoscope", "hotels", "traffic", "cinema", "pizza", "radio", "chess",
    "pharmacy", "trains", "museum", "tickets", "yoga", "bicycle", "garden", "shoes", "library", "swimming",
    "passport", "mushrooms", "kayak", "telescope", "origami", "beekeeping", "opera", "sailing", "pottery", "falconry",
]  # fmt: skip


def searches(seed: int = 11) -> pa.Table:
    """Return who searched what: common words, and strings that one person typed: names, secrets, typing errors."""
    rng = np.random.default_rng(seed)
    fame = np.geomspace(60.0, 1.0, len(WORDS))
    common = rng.choice(WORDS, 2 * PEOPLE, p=fame / fame.sum())
    letters = rng.choice(list(ascii_lowercase), (PEOPLE // 2, LONGEST))
    rare = ["".join(each[: rng.integers(6, LONGEST + 1)]) for each in letters]
    person = np.concatenate([rng.integers(0, PEOPLE, len(common)), rng.integers(0, PEOPLE, len(rare))])
    return pa.table({"person": person, "word": np.concatenate([common, rare])})


def truth(table: pa.Table) -> dict[str, int]:
    """Return how many people searched each word. Only made-up data may be shown like this."""
    counted = table.group_by("word").aggregate([("person", "count_distinct")]).to_pylist()
    return {row["word"]: row["person_count_distinct"] for row in counted}


# --8<-- [start:release]
def release_with_delta(table: pa.Table) -> discreet.Release:
    """Find the words that enough people searched, and select among those found."""
    domain = discreet.discovered(delta=DELTA)
    source = discreet.events(table, user="person", item="word", domain=domain)
    return discreet.top_k(source, k=K, epsilon=EPSILON)


def release_without_delta(table: pa.Table) -> discreet.Release:
    """Select among all strings of up to 13 letters."""
    domain = discreet.strings(ascii_lowercase, LONGEST)
    source = discreet.events(table, user="person", item="word", domain=domain)
    return discreet.top_k(source, k=K, epsilon=EPSILON)


# --8<-- [end:release]


def main() -> None:
    """Release with each domain, compare with the made-up truth, and draw if a folder is given."""
    table = searches()
    found, pure = release_with_delta(table), release_without_delta(table)
    print(f"With a delta:\n{found}\n\nWithout:\n{pure}")

    people = truth(table)
    never = [word for word in pure.items if word not in people]
    best = set(sorted(people, key=lambda word: -people[word])[:K])
    print(f"\nIn the made-up truth, {len(people):,} strings were typed. Nobody typed {len(never)} of the second list.")
    print(f"In the first list, {len(best & set(found.items))} of these are among the {K} most searched.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), people, set(found.items), set(pure.items), found.guarantee.threshold or 0)


def draw(folder: Path, people: dict[str, int], found: set[str], pure: set[str], threshold: int) -> None:
    """Draw the picture and its thumbnail."""
    from picture import INK, drawing, thumbnail

    shown = sorted(WORDS, key=lambda word: -people.get(word, 0))
    with drawing(folder, "words", height=7.2) as axes:
        draw_words(axes, shown, people, found, pure)
        axes.axvline(threshold, linewidth=1, linestyle="--", color=INK)
        axes.text(threshold * 1.06, len(shown), f"threshold: {threshold} people", fontsize=10)
        axes.set_yticks(range(len(shown), 0, -1), shown, fontsize=9)
        axes.set(xlabel="people who searched it (made up, and never released)", ylim=(-0.2, len(shown) + 0.8))
        axes.set_title(f"{K} words that nobody listed, epsilon = {EPSILON}")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.05))
    with thumbnail(folder, "words") as axes:
        draw_words(axes, shown[::3], people, found, pure)
        axes.axvline(threshold, linewidth=2, linestyle="--", color=INK)


def draw_words(axes: Any, shown: list[str], people: dict[str, int], found: set[str], pure: set[str]) -> None:
    """Draw the made-up truth, with a mark for the lists that have the word."""
    from picture import GREY, MISSED, RELEASED

    kinds = {
        "in both lists": (lambda word: word in pure and word in found, RELEASED, "o"),
        "in the list with a delta alone": (lambda word: word in found and word not in pure, MISSED, "D"),
        "in the list without a delta alone": (lambda word: word in pure and word not in found, RELEASED, "s"),
        "in neither": (lambda word: word not in found and word not in pure, GREY, "x"),
    }
    for label, (belongs, colour, marker) in kinds.items():
        dots = [(people[word], len(shown) - i) for i, word in enumerate(shown) if belongs(word)]
        if dots:
            axes.scatter(*zip(*dots, strict=True), color=colour, marker=marker, s=36, label=label, zorder=3)
    axes.set_xscale("log")
    axes.set_xticks([200, 500, 1_000, 2_000, 5_000])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")


if __name__ == "__main__":
    main()
