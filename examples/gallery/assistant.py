"""Release the topics that most people ask an assistant about, with counts of people.

    python examples/gallery/assistant.py            prints the release
    python examples/gallery/assistant.py pictures   and draws pictures/assistant.svg

A question is put into a cluster by `cluster_of`, which reads that question alone. The clusters and their keywords are a
public list that was made beforehand, not from the questions. Clusters that are fitted to the questions would depend on
every person, and so would their names.

The questions are made up, with a seed. The release is drawn with the randomness of the operating system.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet

PEOPLE, QUESTIONS, K, EPSILON, PER_PERSON = 15_000, 60_000, 10, 1, 8
CLUSTERS = {
    "cooking and recipes": ["recipe", "bake", "dinner"],
    "fixing program code": ["traceback", "compile", "unit test"],
    "writing letters": ["cover letter", "apology", "invitation"],
    "translation": ["translate", "in Spanish", "in French"],
    "homework in mathematics": ["equation", "fraction", "triangle"],
    "homework in history": ["revolution", "empire", "treaty"],
    "travel plans": ["itinerary", "train to", "hotel near"],
    "health and symptoms": ["headache", "allergy", "blood pressure"],
    "law and contracts": ["tenant", "contract", "warranty"],
    "money and taxes": ["tax return", "mortgage", "pension"],
    "gardening": ["prune", "compost", "tomatoes"],
    "pets": ["puppy", "kitten", "aquarium"],
    "fitness": ["marathon", "push-ups", "stretching"],
    "films and books": ["novel", "film like", "sequel"],
    "music practice": ["chord", "violin", "metronome"],
    "household repairs": ["leaking tap", "drill", "radiator"],
    "cars and bicycles": ["brake", "puncture", "engine light"],
    "spreadsheets": ["pivot table", "formula", "column of dates"],
    "job interviews": ["interview", "salary", "notice period"],
    "bringing up children": ["toddler", "bedtime", "homework rules"],
    "friendship and love": ["my friend", "anniversary", "wedding speech"],
    "games and puzzles": ["crossword", "chess opening", "riddle"],
    "pictures and design": ["logo", "colour palette", "poster"],
    "phones and computers": ["battery", "wifi", "backup"],
    "something else": [],
}


def questions(seed: int = 8) -> pa.Table:
    """Return who asked what. Some topics are common, and some questions have no keyword of any cluster."""
    rng = np.random.default_rng(seed)
    names = [name for name in CLUSTERS if CLUSTERS[name]]
    often = 1.0 / (4.0 + rng.permutation(len(names)))
    topic = rng.choice(len(names), QUESTIONS, p=often / often.sum())
    word = rng.integers(0, 3, QUESTIONS)
    ways = ["Help me with this {}, please.", "What should I know about {}?", "A question on {}: where do I begin?"]
    texts = [ways[i % 3].format(CLUSTERS[names[t]][w]) for i, (t, w) in enumerate(zip(topic, word, strict=True))]
    other = rng.random(QUESTIONS) < 0.06
    texts = ["Tell me something nice." if is_other else text for is_other, text in zip(other, texts, strict=True)]
    return pa.table({"person": rng.integers(0, PEOPLE, QUESTIONS), "question": texts})


# --8<-- [start:release]
def cluster_of(question: str) -> str:
    """Return the first cluster with a keyword in the question, from this question alone."""
    for cluster, keywords in CLUSTERS.items():
        if any(keyword in question for keyword in keywords):
            return cluster
    return "something else"


def release_clusters(table: pa.Table) -> discreet.Release:
    """Return the clusters that most people asked about, with counts of people."""
    clusters = [cluster_of(question) for question in table["question"].to_pylist()]
    source = discreet.events(
        pa.table({"person": table["person"], "cluster": clusters}),
        user="person",
        item="cluster",
        domain=list(CLUSTERS),
        max_items_per_user=PER_PERSON,
    )
    return discreet.top_k(source, k=K, epsilon=EPSILON, split="auto")


# --8<-- [end:release]


def truth(table: pa.Table) -> dict[str, int]:
    """Return how many people asked about each cluster. Only made-up data may be shown like this."""
    pairs = zip(table["person"].to_pylist(), map(cluster_of, table["question"].to_pylist()), strict=True)
    return dict.fromkeys(CLUSTERS, 0) | Counter(cluster for _, cluster in set(pairs))


def main() -> None:
    """Release, compare with the made-up truth, and draw if a folder is given."""
    table = questions()
    release = release_clusters(table)
    print(release)

    people = truth(table)
    best = sorted(CLUSTERS, key=lambda name: -people[name])[:K]
    found = len(set(best) & set(release.items))
    print(f"\nIn the made-up truth, {found} of these are among the {K} that most people asked about.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), people, release)


def draw(folder: Path, people: dict[str, int], release: discreet.Release) -> None:
    """Draw the released counts beside the made-up truth, and the thumbnail as bars."""
    from picture import RELEASED, draw_counts, drawing, thumbnail

    counts = release.counts or []
    with drawing(folder, "assistant", height=4.8) as axes:
        draw_counts(axes, counts, people, "asked about it in truth (made up, and never released)")
        axes.set(xlabel="people", xlim=(0, None), ylim=(-0.9, len(counts) + 0.6))
        axes.set_title(f"{K} clusters of {len(CLUSTERS)}, epsilon = {EPSILON} in all")
        axes.legend(loc="lower left")
    with thumbnail(folder, "assistant") as axes:
        axes.barh(range(len(counts), 0, -1), [count.value for count in counts], color=RELEASED, height=0.7)


if __name__ == "__main__":
    main()
