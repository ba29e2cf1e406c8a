"""Scores of features that are exact sums over rows, each with the proof of how far one row can move it.

A sum of floats moves by more than its terms, because it is rounded and its order matters. Here every row adds a whole
number of steps, which depends on that row alone, so that the sum is exact and a proof about it is a proof about the
code. What a cell counts for when it is missing, infinite or no number is fixed: it never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats
from discreet.integrations.cells import as_array, blocks, matrix, numbers
from discreet.labels import unwrap_label
from discreet.privacy import Number, Sensitivity, exact

STEPS = 2**20
"""How many steps a term of a clipped correlation has between 0 and 1."""


@runtime_checkable
class Score(Protocol):
    """How good each feature is, and how far one row can move that.

    A score of your own needs its own proof: `scores` must be finite and exact, and adding any row whatsoever must move
    each of them down by at most `sensitivity.down` and up by at most `sensitivity.up`.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        """How far adding one row can move a score."""

    def scores(self, X: Any, y: Any) -> Sequence[Any]:
        """One exact number for each feature. They are private: for public data, or for a mechanism."""


@dataclass(frozen=True, init=False, repr=False)
class ClassCounts:
    """Counts of a feature with two sides by class: how well the side tells the class, beyond chance.

    A feature is above its threshold or not, a row is of the positive class or of the rest. Let p be the base rate, and
    let a row add to S

        +(1-p)  positive class, above          -(1-p)  positive class, not above
        +p      the rest, not above            -p      the rest, above

    and 0 where the feature or the label is missing. The score is |S|. Where p is the share of the positive class in n
    rows, S = 2 n p (1-p) (TPR + TNR - 1), with the true positive and negative rates of "above means positive": a
    feature that tells nothing scores 0, however unequal the classes are. With p = 1/2 it is half of
    |agreements - disagreements|.

    **Sensitivity.** Let m = max(p, 1-p). A row adds c with |c| <= m to S, and | |S + c| - |S| | <= |c|. Hence adding a
    row moves the score down by at most m and up by at most m, and both are reached. S is (b-a) U - a V over b, for
    p = a/b and whole numbers U and V that are counted, so the score is exact.

    Parameters
    ----------
    threshold
        A feature is above where it is larger than this: one number, or one for each feature.
    positive
        The label of the positive class; every other label is the rest.
    base_rate
        The share of the positive class as it is publicly known, above 0 and below 1. It must not come from the rows.

    Examples
    --------
    >>> ClassCounts().sensitivity
    Sensitivity(down='1/2', up='1/2')
    >>> ClassCounts(base_rate="0.1").scores([[1, 0], [1, 1], [0, 1]], [1, 1, 0])
    [Fraction(19, 10), Fraction(1, 10)]
    """

    threshold: float | tuple[float, ...]
    positive: Any
    base_rate: Fraction

    def __init__(self, threshold: Any = 0, positive: Any = 1, base_rate: Number = "1/2") -> None:
        share = exact(base_rate, "base_rate")
        if not 0 < share < 1:
            raise InvalidValueError(f"base_rate must be above 0 and below 1, not {quote(base_rate)}")
        object.__setattr__(self, "threshold", _public(threshold, "threshold"))
        object.__setattr__(self, "positive", _label(positive))
        object.__setattr__(self, "base_rate", share)

    def __repr__(self) -> str:
        return f"ClassCounts(threshold={self.threshold}, positive={self.positive!r}, base_rate='{self.base_rate}')"

    @property
    def sensitivity(self) -> Sensitivity:
        """How far adding one row can move a score: by max(p, 1-p) either way."""
        most = max(self.base_rate, 1 - self.base_rate)
        return Sensitivity(down=most, up=most)

    def scores(self, X: Any, y: Any) -> list[Fraction]:
        """The score of each feature, exactly. Not private by itself."""
        X, y = _check_pairs(X, y)
        threshold = _for_each(self.threshold, X.shape[1], "threshold")
        of_positive, of_rest = np.zeros((2, X.shape[1]), np.int64)
        for values, labels in blocks(X, y):
            side = np.where(np.isnan(values), 0, np.where(values > threshold, 1, -1))
            kind = np.array([self._kind(label) for label in labels.tolist()], np.int8)
            of_positive += side[kind > 0].sum(axis=0)
            of_rest += side[kind < 0].sum(axis=0)
        a, b = self.base_rate.numerator, self.base_rate.denominator
        pairs = zip(of_positive.tolist(), of_rest.tolist(), strict=True)
        return [Fraction(abs((b - a) * u - a * v), b) for u, v in pairs]

    def _kind(self, label: Any) -> int:
        """1 for the positive class, -1 for the rest, 0 where there is no label."""
        try:
            if label is None or isinstance(label, np.ndarray) or label != label:
                return 0
            return 1 if label == self.positive else -1
        except Exception:  # pandas' NA is neither equal nor not
            return 0


@dataclass(frozen=True, init=False)
class ClippedCorrelation:
    """Sums of clipped products: how far feature and target leave their public centres together.

    Both are mapped so that their bounds become -1 and 1 and clipped to that, u for the feature and v for the target;
    what is missing is 0. Each row adds u v, rounded to a multiple of 2^-20, to S. The score is |S|.

    **Sensitivity.** |u v| <= 1 in floats too, because rounding does not lead beyond 1, and rounding to steps does not
    either. So a row adds c with |c| <= 1 to S, and | |S + c| - |S| | <= |c|: adding a row moves the score down by at
    most 1 and up by at most 1, and both are reached. S is summed in whole steps, so the score is exact, and the
    operations that make a term are those that IEEE 754 rounds correctly, so the term depends on its row alone.

    The centres are the middles of the bounds. Where they are far from the means, S measures that distance and not the
    correlation: choose bounds around the means that you expect. They must not come from the rows.

    Parameters
    ----------
    x_bounds
        The lower and the upper bound of the features: two numbers, or two lists with one for each feature.
    y_bounds
        The lower and the upper bound of the target.

    Examples
    --------
    >>> score = ClippedCorrelation(x_bounds=(0, 10), y_bounds=(-1, 1))
    >>> score.sensitivity
    Sensitivity(down=1, up=1)
    >>> score.scores([[10, 5], [0, 9], [99, float("nan")]], [1, -1, "0.5"])
    [Fraction(5, 2), Fraction(838861, 1048576)]
    """

    x_bounds: tuple[float | tuple[float, ...], float | tuple[float, ...]]
    y_bounds: tuple[float, float]

    def __init__(self, x_bounds: Any, y_bounds: Any) -> None:
        low, high = _bounds(y_bounds, "y_bounds")
        if isinstance(low, tuple) or isinstance(high, tuple):
            raise InvalidTypeError(f"y_bounds must be two numbers, not {quote(y_bounds)}")
        object.__setattr__(self, "x_bounds", _bounds(x_bounds, "x_bounds"))
        object.__setattr__(self, "y_bounds", (low, high))

    @property
    def sensitivity(self) -> Sensitivity:
        """How far adding one row can move a score: by 1 either way."""
        return Sensitivity(down=1, up=1)

    def scores(self, X: Any, y: Any) -> list[Fraction]:
        """The score of each feature, exactly. Not private by itself."""
        X, y = _check_pairs(X, y)
        low, high = (_for_each(bound, X.shape[1], "x_bounds") for bound in self.x_bounds)
        total = np.zeros(X.shape[1], np.int64)
        for values, targets in blocks(X, y):
            u = _clip(values, low, high)
            v = _clip(numbers(targets, "y"), *map(np.float64, self.y_bounds))
            total += np.rint(u * v[:, None] * STEPS).astype(np.int64).sum(axis=0)
        return [Fraction(abs(steps), STEPS) for steps in total.tolist()]


def check_score(score: Any) -> Score:
    """The score, which must be a value with a sensitivity and a method `scores`."""
    if isinstance(score, type) or not isinstance(score, Score) or not isinstance(score.sensitivity, Sensitivity):
        raise InvalidTypeError(
            "score must be ClassCounts(...), ClippedCorrelation(...) or a value with a sensitivity and a method scores"
            f", not {quote(score)}"
        )
    return score


def _clip(values: Floats, low: Any, high: Any) -> Floats:
    """Values mapped from their bounds to [-1, 1] and clipped to that; NaN becomes 0."""
    # Halves first: the bounds may be as large as floats get. Whether a value overflows is its own affair.
    with np.errstate(all="ignore"):
        mapped: Floats = np.clip((values - (low / 2 + high / 2)) / (high / 2 - low / 2), -1, 1)
    return np.nan_to_num(mapped, nan=0)


def _check_pairs(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    X, y = matrix(X), as_array(y, "y")
    if y.shape != (X.shape[0],):
        raise InvalidValueError(f"y must have one target for each row of X, {X.shape[0]}, not the shape {y.shape}")
    return X, y


def _for_each(value: float | tuple[float, ...], features: int, name: str) -> Any:
    if isinstance(value, tuple) and len(value) != features:
        raise InvalidValueError(f"{name} must have one number for each feature of X, {features}, not {len(value)}")
    return np.array(value, np.float64)


def _bounds(given: Any, name: str) -> tuple[float | tuple[float, ...], float | tuple[float, ...]]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable) or len(pair := list(given)) != 2:
        raise InvalidTypeError(f"{name} must be a pair of a lower and an upper bound, not {quote(given)}")
    low, high = _public(pair[0], name), _public(pair[1], name)
    if isinstance(low, tuple) and isinstance(high, tuple) and len(low) != len(high):
        raise InvalidValueError(f"{name} must have as many upper as lower bounds, {len(low)}, not {len(high)}")
    if not np.all(np.divide(high, 2) - np.divide(low, 2) > 0):
        raise InvalidValueError(f"{name} must have lower bounds below the upper ones, not {quote(given)}")
    return low, high


def _public(given: Any, name: str) -> float | tuple[float, ...]:
    """A public parameter as a float, or as a tuple of them where there is one for each feature."""
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes) and np.ndim(given):
        return tuple(_float(value, name) for value in given)
    return _float(given, name)


def _float(given: Any, name: str) -> float:
    number = exact(unwrap_label(given), name)
    try:
        return float(number)
    except OverflowError:
        raise InvalidValueError(f"{name} must be within the range of floats, not {quote(given)}") from None


def _label(given: Any) -> Any:
    label = unwrap_label(given)
    if not isinstance(label, str | bytes | int | float) or label != label:
        raise InvalidTypeError(f"positive must be a label such as 1 or 'yes', not {quote(given)}")
    return label
