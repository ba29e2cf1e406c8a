"""Scores of features that are exact sums over rows, each with a proof of its sensitivity to one row.

A float sum moves by more than its terms, because it is rounded and depends on their order. Here every row adds a whole
number of steps that depends on that row alone, so a proof about the sum is a proof about the code. A cell that is
missing, infinite or no number has a fixed value: no cell raises or warns, and no error shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf, lcm, nan
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats
from discreet.labels import unwrap_label
from discreet.privacy import Number, Sensitivity, exact, is_whole_number

Bounds = tuple[float | tuple[float, ...], float | tuple[float, ...]]
"""A lower and an upper bound, of all features or of each."""

MOST_CUTS = 100
"""The most thresholds made from bounds: each costs one pass over the rows."""

STEPS = 2**20
"""The number of steps between 0 and 1 of a term of a clipped correlation: sums over 2^42 rows fit into 64 bits."""

_BLOCK = 2**20
"""The number of cells converted to numbers at a time: 8 MB."""

_FAMILIES = {**dict.fromkeys("biuf", "numbers"), "U": "text", "S": "bytes", "O": None, "c": None}
_POLARS_FAMILIES = {**dict.fromkeys(("String", "Categorical", "Enum"), "text"), "Object": None, "Null": None}
_LABEL_FAMILIES = {bool: "numbers", int: "numbers", float: "numbers", str: "text", bytes: "bytes"}

_READABLE = (Real, np.bool_, Decimal, str, bytes)


@runtime_checkable
class Score(Protocol):
    """Scores of features with a known sensitivity.

    A score of your own needs its own proof: `scores` must be finite and exact, and adding any row whatsoever must move
    each of them down by at most `sensitivity.down` and up by at most `sensitivity.up`.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        """Return the amount by which adding one row can move a score."""

    def scores(self, X: Any, y: Any) -> Sequence[Any]:
        """Return one exact number for each feature. They are private: for public data, or for a mechanism."""


@dataclass(frozen=True, init=False, repr=False)
class ClassCounts:
    """Association of a thresholded feature with the class, from counts.

    Let s be 1 if a feature is above its threshold and -1 if not, and p_c the share of class c. A row of class y adds
    s (1 - p_y) to S_y and -s p_c to S_c for every other class c; it adds nothing if the feature or the label is
    missing. The score is (|S_1| + ... + |S_C|) / 2, and with several thresholds the largest. If p_c is the share of the
    class among the rows, S_c is their number n times the covariance of s with "is of class c": a constant feature
    scores 0, and an uninformative one about the square root of n. With two classes the score is
    2 n p (1-p) |TPR + TNR - 1|, with the true positive and negative rates of "above means positive".

    **Sensitivity.** The shares of all classes add up to 1, so a row of class y moves the S_c by
    (1 - p_y) + sum of the others' p_c = 2 (1 - p_y) in total, and half of the sum of |S_c| by at most 1 - p_y. The
    maximum of several numbers moves no further than one of them. Let p be the least share: adding a row moves the score
    down by at most 1 - p and up by at most 1 - p. Both are reached: a first row raises the score from 0 to 1 - p, and a
    second row on the opposite side lowers it to 0. With whole counts U_c of sides and p_c = a_c / b, S_c is
    (b U_c - a_c (U_1 + ... + U_C)) / b, so the score is exact.

    Shares and thresholds must be public and must not come from the rows. Shares far from those of the rows make a
    constant feature look good; thresholds far from all rows make every feature constant.

    Parameters
    ----------
    classes
        The labels and their publicly known shares, such as {"ill": "0.1"}: above 0, and at most 1 together. All other
        labels form one more class, with the remaining share. If none remains, their rows add nothing.
    threshold
        The threshold: one number, or one for each feature.
    bounds
        In place of a threshold: the lower and the upper bound of the features, two numbers, or two lists with one for
        each feature. The thresholds cut the range between them into equal parts.
    cuts
        The number of thresholds made from the bounds.

    Examples
    --------
    >>> score = ClassCounts({"ill": "0.1"}, threshold=0)
    >>> score.sensitivity
    Sensitivity(down='9/10', up='9/10')
    >>> score.scores([[1, 0], [1, 1], [0, 1]], ["ill", "ill", "well"])
    [Fraction(19, 10), Fraction(1, 10)]
    >>> digits = ClassCounts(dict.fromkeys(range(10), "1/10"), bounds=(0, 16))
    >>> digits.list_thresholds()
    [4.0, 8.0, 12.0]
    """

    classes: tuple[tuple[Any, Fraction], ...]
    threshold: float | tuple[float, ...] | None
    bounds: Bounds | None
    cuts: int

    def __init__(
        self, classes: Mapping[Any, Number], *, threshold: Any = None, bounds: Any = None, cuts: int = 3
    ) -> None:
        if (threshold is None) == (bounds is None):
            raise InvalidValueError("threshold or bounds must be given, one of the two: nothing public says either")
        if not is_whole_number(cuts) or not 1 <= cuts <= MOST_CUTS:
            raise InvalidValueError(f"cuts must be a whole number from 1 to {MOST_CUTS}, not {quote(cuts)}")
        if not isinstance(classes, Mapping) or not classes:
            raise InvalidTypeError(
                f"classes must be labels with their shares, such as {{'ill': '0.1'}}, not {quote(classes)}"
            )
        shares = []
        for name, share in classes.items():
            label = unwrap_label(name)
            if type(label) not in _LABEL_FAMILIES or label != label:
                raise InvalidTypeError(f"classes must hold labels such as 1 or 'yes', not {quote(name)}")
            shares.append((label, exact(share, "a share of classes")))
        if not all(share > 0 for _, share in shares):
            raise InvalidValueError(f"classes must have shares above 0, not {quote(classes)}")
        if sum(share for _, share in shares) > 1 or shares[0][1] == 1:
            raise InvalidValueError(
                "classes must have shares of at most 1 together, and below 1 each (a float such as 0.1 is not quite "
                f"what it says: write '0.1'), not {quote(classes)}"
            )
        object.__setattr__(self, "classes", tuple(shares))
        object.__setattr__(self, "threshold", None if threshold is None else _public(threshold, "threshold"))
        object.__setattr__(self, "bounds", None if bounds is None else _bounds(bounds, "bounds"))
        object.__setattr__(self, "cuts", int(cuts))

    def __repr__(self) -> str:
        shares = {label: str(share) for label, share in self.classes}
        sides = f"bounds={self.bounds}, cuts={self.cuts}" if self.threshold is None else f"threshold={self.threshold}"
        return f"ClassCounts({shares}, {sides})"

    @property
    def shares(self) -> list[Fraction]:
        """Return the shares of all classes, with the remaining share of other labels last, if any."""
        given = [share for _, share in self.classes]
        left = 1 - sum(given, Fraction(0))
        return [*given, left] if left else given

    @property
    def sensitivity(self) -> Sensitivity:
        """Return the sensitivity: 1 minus the least share, in both directions."""
        most = 1 - min(self.shares)
        return Sensitivity(down=most, up=most)

    def list_thresholds(self) -> list[Any]:
        """Return the thresholds: each a number, or an array with one for each feature."""
        if self.bounds is None:
            return [self.threshold]
        low, high = (np.asarray(bound, np.float64)[()] for bound in self.bounds)
        parts = [(cut + 1) / (self.cuts + 1) for cut in range(self.cuts)]
        cuts = [low * (1 - part) + high * part for part in parts]
        return [cut if cut.ndim else float(cut) for cut in cuts]

    def check_labels(self, y: Any) -> None:
        """Raise if the declared type of the targets, which is public, cannot hold a label.

        Parameters
        ----------
        y
            The targets, as the caller has them. Their values are not read.
        """
        held = declared_family(y)
        for label, _ in self.classes:
            own = _LABEL_FAMILIES[type(label)]
            if held not in (None, own):
                raise InvalidTypeError(
                    f"classes must hold labels of the type of y, {held}, not {own} such as {label!r}"
                )

    def scores(self, X: Any, y: Any) -> list[Fraction]:
        """Return the score of each feature, exactly. It is not private by itself."""
        self.check_labels(y)
        X, y = _check_pairs(X, y)
        name, shares = "threshold" if self.bounds is None else "bounds", self.shares
        thresholds = [_for_each(cut, X.shape[1], name) for cut in self.list_thresholds()]
        numbered = {label: number for number, (label, _) in enumerate(self.classes)}
        other = len(numbered) if len(shares) > len(numbered) else -1
        counts = np.zeros((len(thresholds), len(shares), X.shape[1]), np.int64)
        for values, labels in blocks(X, y):
            # A missing label, or one without a share, has the number -1 and counts for no class.
            classes = np.full(len(labels), -1, np.int64)
            for row, label in enumerate(labels.tolist()):
                # pandas' NA raises on comparison, and some values have no hash: both count as missing.
                with suppress(Exception):
                    if not (label is None or isinstance(label, np.ndarray) or label != label):
                        classes[row] = numbered.get(label, other)
            for cut, threshold in enumerate(thresholds):
                side = np.where(np.isnan(values), 0, np.where(values > threshold, 1, -1))
                for number in range(len(shares)):
                    counts[cut, number] += side[classes == number].sum(axis=0)
        # With p_c = a_c / b, the score is half of the sum of |b U_c - a_c (U_1 + ... + U_C)| / b, maximised over cuts.
        b = lcm(*(share.denominator for share in shares))
        whole = [int(share * b) for share in shares]
        by_cut = [
            [sum(abs(b * u - a * sum(each)) for a, u in zip(whole, each, strict=True)) for each in cut.T.tolist()]
            for cut in counts
        ]
        return [Fraction(max(of_feature), 2 * b) for of_feature in zip(*by_cut, strict=True)]


@dataclass(frozen=True, init=False)
class ClippedCorrelation:
    """Absolute sum of clipped products of feature and target, each relative to its public centre.

    Both are mapped linearly so that their bounds become -1 and 1, and clipped: u for the feature, v for the target, 0
    for missing values. Each row adds u v, rounded to a multiple of 2^-20, to S. The score is |S|.

    **Sensitivity.** |u v| <= 1 holds in floats too: neither rounding nor rounding to steps leads beyond 1, because 1 is
    itself a float and a whole number of steps. So a row adds c with |c| <= 1 to S, and | |S + c| - |S| | <= |c|: adding
    a row moves the score down by at most 1 and up by at most 1, and both are reached. S is summed in whole steps, so
    the score is exact; a term uses only operations that IEEE 754 rounds correctly, so it depends on its row alone.

    The centres are the middles of the bounds. If they are far from the means, S measures that distance and not the
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

    x_bounds: Bounds
    y_bounds: tuple[float, float]

    def __init__(self, x_bounds: Any, y_bounds: Any) -> None:
        low, high = _bounds(y_bounds, "y_bounds")
        if isinstance(low, tuple) or isinstance(high, tuple):
            raise InvalidTypeError(f"y_bounds must be two numbers, not {quote(y_bounds)}")
        object.__setattr__(self, "x_bounds", _bounds(x_bounds, "x_bounds"))
        object.__setattr__(self, "y_bounds", (low, high))

    @property
    def sensitivity(self) -> Sensitivity:
        """Return the sensitivity: 1 in both directions."""
        return Sensitivity(down=1, up=1)

    def scores(self, X: Any, y: Any) -> list[Fraction]:
        """Return the score of each feature, exactly. It is not private by itself."""
        X, y = _check_pairs(X, y)
        low, high = (_for_each(bound, X.shape[1], "x_bounds") for bound in self.x_bounds)
        total = np.zeros(X.shape[1], np.int64)
        for values, targets in blocks(X, y):
            u = _clip(values, low, high)
            v = _clip(numbers(targets, "y"), *map(np.float64, self.y_bounds))
            total += np.rint(u * v[:, None] * STEPS).astype(np.int64).sum(axis=0)
        return [Fraction(abs(steps), STEPS) for steps in total.tolist()]


def check_score(score: Any) -> Score:
    """Return the score; raise unless it is a value with a sensitivity and a method `scores`."""
    if isinstance(score, type) or not isinstance(score, Score) or not isinstance(score.sensitivity, Sensitivity):
        raise InvalidTypeError(
            "score must be ClassCounts(...), ClippedCorrelation(...) or a value with a sensitivity and a method scores"
            f", not {quote(score)}"
        )
    return score


def _clip(values: Floats, low: Any, high: Any) -> Floats:
    """Map values linearly from their bounds to [-1, 1] and clip them; NaN becomes 0."""
    # Halve first: the bounds may be as large as floats get. An overflow of a value must not warn.
    with np.errstate(all="ignore"):
        mapped: Floats = np.clip((values - (low / 2 + high / 2)) / (high / 2 - low / 2), -1, 1)
    return np.nan_to_num(mapped, nan=0)


def _check_pairs(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    X, y = matrix(X), as_array(y, "y")
    if y.shape != (X.shape[0],):
        # The message does not show the number of rows, which may be private.
        raise InvalidValueError("y must have one target for each row of X")
    return X, y


def _for_each(value: Any, features: int, name: str) -> Any:
    """Return a public number, or one for each feature, as an array."""
    array = np.array(value, np.float64)
    if array.ndim and len(array) != features:
        raise InvalidValueError(f"{name} must have one number for each feature of X, {features}, not {len(array)}")
    return array


def _bounds(given: Any, name: str) -> Bounds:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable) or len(pair := list(given)) != 2:
        raise InvalidTypeError(f"{name} must be a pair of a lower and an upper bound, not {quote(given)}")
    low, high = _public(pair[0], name), _public(pair[1], name)
    if isinstance(low, tuple) and isinstance(high, tuple) and len(low) != len(high):
        raise InvalidValueError(f"{name} must have as many upper as lower bounds, {len(low)}, not {len(high)}")
    if not np.all(np.divide(high, 2) - np.divide(low, 2) > 0):
        raise InvalidValueError(f"{name} must have lower bounds below the upper ones, not {quote(given)}")
    return low, high


def _public(given: Any, name: str) -> float | tuple[float, ...]:
    """Return a public parameter as a float, or as a tuple with one for each feature."""
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes) and np.ndim(given):
        return tuple(_float(value, name) for value in given)
    return _float(given, name)


def _float(given: Any, name: str) -> float:
    number = exact(unwrap_label(given), name)
    try:
        return float(number)
    except OverflowError:
        raise InvalidValueError(f"{name} must be within the range of floats, not {quote(given)}") from None


def matrix(X: Any, name: str = "X") -> Any:
    """Return rows of features as an array of two dimensions or a sparse one, with its cells unchanged."""
    array = _real(X.tocsr(), name) if hasattr(X, "tocsr") else as_array(X, name)
    if array.ndim != 2:
        raise InvalidValueError(
            f"Reshape your data: {name} must have two dimensions, rows and features, not {array.ndim}"
        )
    _check_readable(array, name)
    return array


def as_array(values: Any, name: str) -> Any:
    """Return an array, frame or column as an array of its own type, anything else as an array of Python objects.

    A cell must depend on itself and the public type of its array alone. NumPy would turn all cells of a list to text if
    one is text, so lists become objects.
    """
    kind = type(values).__name__
    try:
        array = np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, dtype=object)
    except Exception:
        array = None
    # Raised outside the handler: the message of another library may quote a value.
    if array is None:
        raise InvalidTypeError(f"{name} must be an array, a data frame or a list, not a {kind}")
    return _real(array, name)


def declared_family(column: Any) -> str | None:
    """Return the declared content of a column: "numbers", "text", "bytes" or the name of a type; None for anything.

    The types of pandas and polars are read from the column itself. NumPy's conversion may depend on missing cells, and
    an error that follows from that would reveal them.
    """
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "is_numeric"):
        name = str(dtype.base_type())
        return "numbers" if dtype.is_numeric() or name == "Boolean" else _POLARS_FAMILIES.get(name, name)
    if hasattr(dtype, "categories"):
        return declared_family(dtype.categories)
    if getattr(dtype, "type", None) is str:
        return "text"
    kind = getattr(dtype, "kind", "O")
    return _FAMILIES.get(kind, str(dtype))


def blocks(X: Any, y: NDArray[Any]) -> Iterator[tuple[Floats, NDArray[Any]]]:
    """Yield blocks of rows: their features as numbers, and their targets."""
    rows = max(1, _BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], rows):
        block = X[start : start + rows]
        yield numbers(block.toarray() if hasattr(block, "toarray") else block, "X"), y[start : start + rows]


def numbers(cells: NDArray[Any], name: str) -> Floats:
    """Return cells as floats; a cell that is no number becomes NaN, one that is too large becomes infinite."""
    _check_readable(cells, name)
    if cells.dtype.kind in "biuf":
        # An overflow of a wide float depends on the value: no NumPy setting may turn it into an error.
        with np.errstate(all="ignore"):
            return cells.astype(np.float64)
    return np.array([_number(cell) for cell in cells.ravel().tolist()], np.float64).reshape(cells.shape)


def _number(cell: Any) -> float:
    if not isinstance(cell, _READABLE):
        return nan
    try:
        return float(cell)
    except OverflowError:
        return inf if cell > 0 else -inf  # type: ignore[operator]  # text does not overflow
    except Exception:  # a caller's type may raise anything
        return nan


def _real(array: Any, name: str) -> Any:
    """Return the array; raise if its type is complex: the error of scikit-learn would show the values."""
    if array.dtype.kind == "c":
        raise InvalidValueError(f"Complex data not supported: {name} must hold real numbers, not {array.dtype}")
    return array


def _check_readable(array: Any, name: str) -> None:
    if array.dtype.kind not in "biufOUS":
        raise InvalidTypeError(f"{name} must hold numbers, not values of the type {array.dtype}")
