"""Compare the features that each score finds in three data sets of scikit-learn with those of `SelectKBest`.

    python examples/features.py

prints the table of docs/sklearn.md. Every number is computed from the rows, so nothing here is private: the draws have
a seed, which no release has. Bounds and shares are round numbers that say what such data look like; a real release
needs them from elsewhere, as here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

import discreet
from discreet.integrations.feature_scores import ClassCounts, ClippedCorrelation, Score

EPSILONS = (1, 5)
DRAWS = 100


@dataclass(frozen=True)
class Data:
    """Rows, what `SelectKBest` ranks by, what a model is judged by, and the scores to try, each with a name."""

    name: str
    load: Callable[[], Any]
    k: int
    judge: Any
    model: Any
    scores: Sequence[tuple[str, Score]]


SIZES = {
    "radius": 30, "texture": 40, "perimeter": 200, "area": 2000, "smoothness": 0.2, "compactness": 0.4,
    "concavity": 0.4, "concave points": 0.2, "symmetry": 0.4, "fractal dimension": 0.1,
}  # fmt: skip
"""The largest mean of a picture; its standard error is a tenth of that, the worst nucleus half as much again."""
PARTS = {"mean": 1, "error": 0.1, "worst": 1.5}
CELLS = ([0] * 30, [size * part for part in PARTS.values() for size in SIZES.values()])
BENIGN = {1: "0.6"}
EACH_DIGIT = dict.fromkeys(range(10), "1/10")

DATA = (
    Data("breast cancer", load_breast_cancer, 8, f_classif, GaussianNB(), (
        ("`ClassCounts({1: '0.6'})`", ClassCounts(BENIGN, bounds=CELLS)),
        ("with `cuts=9`", ClassCounts(BENIGN, bounds=CELLS, cuts=9)),
        ("`ClippedCorrelation`", ClippedCorrelation(CELLS, (0, 1))),
    )),
    Data("digits", load_digits, 16, f_classif, GaussianNB(), (
        ("`ClassCounts` of ten shares of `'1/10'`", ClassCounts(EACH_DIGIT, bounds=(0, 16))),
        ("a wrong share: `ClassCounts({1: '1/2'})`", ClassCounts({1: "1/2"}, threshold=0)),
    )),
    Data("diabetes", load_diabetes, 4, f_regression, LinearRegression(), (
        ("`ClippedCorrelation`", ClippedCorrelation((-0.1, 0.1), (0, 300))),
        ("with `x_bounds` ten times too wide", ClippedCorrelation((-1, 1), (0, 300))),
    )),
)  # fmt: skip


def main() -> None:
    """Print the table, as Markdown."""
    print("\n".join(make_table()))


def make_table() -> list[str]:
    """Return the lines of the table."""
    noisy = [f"epsilon {epsilon}" for epsilon in EPSILONS]
    head = ["data", "score", "without noise", *noisy, "model", "theirs"]
    rows = [row for data in DATA for row in _list_rows(data)]
    return [_join(head), _join(["---"] * len(head)), *map(_join, rows)]


def _list_rows(data: Data) -> list[list[str]]:
    """Return a row for each score."""
    X, y = data.load(return_X_y=True)
    with warnings.catch_warnings():
        # Of constant features it says that they are.
        warnings.simplefilter("ignore")
        theirs = set(SelectKBest(data.judge, k=data.k).fit(X, y).get_support(indices=True).tolist())
    title = f"{data.name}, {data.k} of {X.shape[1]}, {len(X)} rows"
    best = f"{_judge_model(data, X, y, theirs):.2f}"
    return [
        [title if number == 0 else "", name, *_try_score(data, score, X, y, theirs), best]
        for number, (name, score) in enumerate(data.scores)
    ]


def _try_score(data: Data, score: Score, X: Any, y: Any, theirs: set[int]) -> list[str]:
    """Return the cells of a score: shared and constant features, averages over draws, and the quality of a model."""
    scores = score.scores(X, y)
    found = set(sorted(range(len(scores)), key=lambda feature: -scores[feature])[: data.k])
    shared = [f"{_share_of_draws(scores, score, data.k, epsilon, theirs):.1f}" for epsilon in EPSILONS]
    constant = sum(np.ptp(X[:, feature]) == 0 for feature in found)
    alone = f"{len(found & theirs)}" + (f" ({constant} constant)" if constant else "")
    return [alone, *shared, f"{_judge_model(data, X, y, found):.2f}"]


def _share_of_draws(scores: Any, score: Score, k: int, epsilon: int, theirs: set[int]) -> float:
    """Return the number of their features in a private choice, on average over draws with a seed."""
    rng = np.random.default_rng(1)
    terms = {"sensitivity": score.sensitivity, "rng": rng}
    drawn = [discreet.top_k(scores, k, epsilon, **terms).items for _ in range(DRAWS)]
    return float(np.mean([len(theirs & set(items)) for items in drawn]))


def _judge_model(data: Data, X: Any, y: Any, features: set[int]) -> float:
    """Return the accuracy of naive Bayes, or the share of variance that linear regression explains, over five folds."""
    return float(np.mean(cross_val_score(data.model, X[:, sorted(features)], y, cv=5)))


def _join(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
