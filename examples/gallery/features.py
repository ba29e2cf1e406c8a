"""The best features: which eight of two hundred answers tell most about an outcome.

    python examples/gallery/features.py            prints the release
    python examples/gallery/features.py pictures   and draws pictures/features.svg

A survey asks 200 yes-or-no questions and one that matters. A question scores as many people as it gets right when it is
used alone: either "yes means yes" or "yes means no", whichever fits more people. Adding a person adds 1 to one of these
two counts, so that the larger one stays or grows by 1: `Sensitivity(down=0, up=1)`, the default. That is the whole
proof. A correlation has no such proof: its denominator moves with everybody.

The survey is made up, with a seed. The release is drawn with the randomness of the operating system.
"""

import sys
from pathlib import Path

import numpy as np

import discreet

PEOPLE, QUESTIONS, TELLING, K, EPSILON = 4_000, 200, 10, 8, "0.2"


def survey(seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Answers (a row for a person) and outcomes: ten questions tell something, and the others are coins."""
    rng = np.random.default_rng(seed)
    outcome = rng.random(PEOPLE) < 0.4
    agreement = np.full(QUESTIONS, 0.5)
    agreement[rng.choice(QUESTIONS, TELLING, replace=False)] = np.linspace(0.72, 0.56, TELLING)
    agrees = rng.random((PEOPLE, QUESTIONS)) < agreement
    return agrees == outcome[:, None], outcome


def right_alone(answers: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """How many people each question gets right when it is used alone, either way round."""
    right = (answers == outcome[:, None]).sum(axis=0)
    return np.maximum(right, len(outcome) - right)


def main() -> None:
    """Releases, compares with the truth, which is made up, and draws where a folder is given."""
    answers, outcome = survey()
    names = [f"question {i:03}" for i in range(1, QUESTIONS + 1)]
    scores = right_alone(answers, outcome)

    release = discreet.top_k(scores, k=K, epsilon=EPSILON, labels=names)
    print(release)

    ranked = [names[i] for i in np.argsort(-scores, kind="stable")]
    found = len(set(ranked[:K]) & set(release.items))
    print(f"\nIn the made-up truth, {found} of these are among the {K} best.")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), dict(zip(names, scores.tolist(), strict=True)), ranked, set(release.items))


def draw(folder: Path, scores: dict[str, int], ranked: list[str], released: set[str]) -> None:
    """Draw the share of people that each question gets right, by rank, coloured by what was released."""
    from picture import FAINT, MISSED, QUIET, RELEASED, drawing

    kinds = {
        "released": (lambda i, name: name in released, RELEASED, 42),
        "among the true best 8, and not released": (lambda i, name: i < K and name not in released, MISSED, 42),
        "neither": (lambda i, name: i >= K and name not in released, FAINT, 14),
    }
    shown = max(60, 1 + max(ranked.index(name) for name in released))
    with drawing(folder, "features") as axes:
        for label, (belongs, colour, size) in kinds.items():
            dots = [(i + 1, 100 * scores[name] / PEOPLE) for i, name in enumerate(ranked[:shown]) if belongs(i, name)]
            if dots:
                axes.scatter(*zip(*dots, strict=True), color=colour, s=size, label=label)
        axes.axhline(50, color=QUIET, linewidth=1, linestyle=":")
        axes.set(xlabel="true rank of the question (made up, and never released)", ylabel="% of people it gets right")
        axes.set_title(f"{K} of {QUESTIONS} questions, {PEOPLE:,} people, epsilon = {EPSILON}")
        axes.legend()


if __name__ == "__main__":
    main()
