"""The most searched words, out of every word that could be typed: 2.6 times 10^18 of them.

    python examples/gallery/words.py            prints the release
    python examples/gallery/words.py pictures   and draws pictures/words.svg

A vocabulary read off the searches would tell what somebody typed. So the domain is every string of up to 13 letters.
It is never written out: what nobody typed has the score zero, and all zeros are one run.

The searches are made up, with a seed. The release is drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pyarrow as pa

import discreet

LONGEST = 13
DOMAIN = discreet.strings(ascii_lowercase, LONGEST)
PEOPLE, K, EPSILON = 150_000, 12, 1
COMMON = [
    "weather", "maps", "news", "translate", "mail", "football", "recipes", "calculator", "flights", "jobs",
    "lottery", "music", "games", "horoscope", "hotels", "traffic", "cinema", "pizza", "radio", "chess",
    "pharmacy", "trains", "museum", "tickets", "yoga", "bicycle", "garden", "shoes", "library", "swimming",
]  # fmt: skip


def searches(seed: int = 11) -> pa.Table:
    """Who searched what: common words, and words that only one person ever typed: names, secrets, typing errors."""
    rng = np.random.default_rng(seed)
    fame = 1.0 / (4.0 + np.arange(len(COMMON)))
    common = rng.choice(COMMON, 4 * PEOPLE, p=fame / fame.sum())
    letters = rng.choice(list(ascii_lowercase), (PEOPLE // 2, LONGEST))
    rare = ["".join(each[: rng.integers(6, LONGEST + 1)]) for each in letters]
    person = np.concatenate([rng.integers(0, PEOPLE, len(common)), rng.integers(0, PEOPLE, len(rare))])
    return pa.table({"person": person, "word": np.concatenate([common, rare])})


def truth(table: pa.Table) -> dict[str, int]:
    """How many different people searched each common word. Only made-up data may be shown like this."""
    counted = table.group_by("word").aggregate([("person", "count_distinct")]).to_pylist()
    people = {row["word"]: row["person_count_distinct"] for row in counted}
    return {word: people.get(word, 0) for word in COMMON}


def main() -> None:
    """Releases, compares with the truth, which is made up, and draws where a folder is given."""
    table = searches()

    source = discreet.events(table, user="person", item="word", domain=DOMAIN)
    release = discreet.top_k(source, k=K, epsilon=EPSILON)

    print(f"The top {K} of {release.d:,} possible words, sorted by name:")
    print("\n".join(f"  {word}" for word in sorted(release.items)))
    print(f"epsilon = {release.guarantee.epsilon} for one person added or removed, by {release.guarantee.mechanism!r}")

    people = truth(table)
    ranked = sorted(COMMON, key=lambda word: -people[word])
    typed = len(set(table["word"].to_pylist()))
    found = len(set(ranked[:K]) & set(release.items))
    print(f"\nIn the made-up truth, {typed:,} words were typed, and {found} of these are the {K} most searched.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), ranked, people, set(release.items))


def draw(folder: Path, ranked: list[str], people: dict[str, int], released: set[str]) -> None:
    """Draw the common words by how many people searched them, coloured by what was released."""
    from picture import FAINT, MISSED, RELEASED, drawing

    shown = ranked[: 2 * K]
    colours = [RELEASED if word in released else MISSED if i < K else FAINT for i, word in enumerate(shown)]
    with drawing(folder, "words", height=5.4) as axes:
        places = range(len(shown), 0, -1)
        axes.barh(places, [people[word] for word in shown], color=colours, height=0.75)
        axes.set_yticks(places, shown)
        axes.set(xlabel="people who searched it (made up, and never released)")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(f"{K} words of up to {LONGEST} letters, epsilon = {EPSILON}")
        axes.grid(axis="y", visible=False)
        kinds = {"released": RELEASED, "in the true top 12, and not released": MISSED, "neither": FAINT}
        for label, colour in kinds.items():
            axes.bar(0, 0, color=colour, label=label)
        axes.legend(loc="lower right")


if __name__ == "__main__":
    main()
