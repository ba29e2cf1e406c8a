"""Release the best features: the eight of two hundred questions that tell most about an outcome.

    python examples/gallery/features.py            prints the release
    python examples/gallery/features.py pictures   and draws pictures/features.svg

A survey asks 200 yes-or-no questions and one question about the outcome. The score of a question is the number of
people that it predicts correctly when it is used alone, as "yes means yes" or as "yes means no", whichever fits more.
Adding a person adds 1 to one of these two counts, so the larger count stays or grows by 1: `Sensitivity(down=0, up=1)`,
the default. A correlation has no such proof: its denominator changes with every person.

The survey is made up, with a seed. The release is drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import discreet

PEOPLE, QUESTIONS, TELLING, K, EPSILON = 4_000, 200, 10, 8, "0.2"


def survey(seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return answers (one row per person) and outcomes: ten questions are informative, the others are coin flips."""
    rng = np.random.default_rng(seed)
    outcome = rng.random(PEOPLE) < 0.4
    agreement = np.full(QUESTIONS, 0.5)
    agreement[rng.choice(QUESTIONS, TELLING, replace=False)] = np.linspace(0.72, 0.56, TELLING)
    agrees = rng.random((PEOPLE, QUESTIONS)) < agreement
    return agrees == outcome[:, None], outcome


# --8<-- [start:release]
def right_alone(answers: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Return how many people each question predicts correctly when it is used alone, either way round."""
    right = (answers == outcome[:, None]).sum(axis=0)
    return np.maximum(right, len(outcome) - right)


def release_questions(answers: np.ndarray, outcome: np.ndarray, names: list[str]) -> discreet.Release:
    """Return the best questions. The default sensitivity is that of the scores: one person adds 0 or 1."""
    return discreet.top_k(right_alone(answers, outcome), k=K, epsilon=EPSILON, labels=names)


# --8<-- [end:release]


def main() -> None:
    """Release, compare with the made-up truth, and draw if a folder is given."""
    answers, outcome = survey()
    names = [f"question {i:03}" for i in range(1, QUESTIONS + 1)]
    release = release_questions(answers, outcome, names)
    print(release)

    scores = right_alone(answers, outcome)
    ranked = [names[i] for i in np.argsort(-scores, kind="stable")]
    found = len(set(ranked[:K]) & set(release.items))
    print(f"\nIn the made-up truth, {found} of these are among the {K} best.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), dict(zip(names, scores.tolist(), strict=True)), ranked, set(release.items))


def draw(folder: Path, scores: dict[str, int], ranked: list[str], released: set[str]) -> None:
    """Draw the picture and its thumbnail."""
    from picture import QUIET, drawing, thumbnail

    with drawing(folder, "features") as axes:
        draw_dots(axes, scores, ranked, released)
        axes.axhline(50, color=QUIET, linewidth=1, linestyle=":")
        axes.set(xlabel="true rank of the question (made up, and never released)", ylabel="% of people it gets right")
        axes.set_title(f"{K} of {QUESTIONS} questions, {PEOPLE:,} people, epsilon = {EPSILON}")
        axes.legend()
    with thumbnail(folder, "features") as axes:
        draw_dots(axes, scores, ranked, released)


def draw_dots(axes: Any, scores: dict[str, int], ranked: list[str], released: set[str]) -> None:
    """Draw the share of people that each question predicts correctly, by rank, coloured by what was released."""
    from picture import GREY, MISSED, RELEASED

    kinds = {
        "released": (lambda i, name: name in released, RELEASED, "o", 42),
        "among the true best 8, and not released": (lambda i, name: i < K and name not in released, MISSED, "D", 36),
        "neither": (lambda i, name: i >= K and name not in released, GREY, "x", 16),
    }
    shown = max(60, 1 + max(ranked.index(name) for name in released))
    for label, (belongs, colour, marker, size) in kinds.items():
        dots = [(i + 1, 100 * scores[name] / PEOPLE) for i, name in enumerate(ranked[:shown]) if belongs(i, name)]
        if dots:
            axes.scatter(*zip(*dots, strict=True), color=colour, marker=marker, s=size, label=label)


if __name__ == "__main__":
    main()
