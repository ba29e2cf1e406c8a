"""PrivateSelectKBest: the k best features for scikit-learn, released with epsilon-differential privacy for each row.

The features are the items and an exact score of each is what `top_k` selects by. What `fit` learns is the release, and
what is public: the number of features and their names.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidValueError, MissingExtraError, quote
from discreet.integrations.feature_scores import (
    ClassCounts,
    ClippedCorrelation,
    Score,
    as_array,
    check_score,
    declared_family,
    matrix,
)
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Number, is_whole_number
from discreet.release.topk import top_k

try:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils.validation import (
        check_array,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError:
    raise MissingExtraError(
        "discreet.integrations.sklearn needs scikit-learn 1.6 or newer: pip install 'scikit-learn>=1.6'"
    ) from None

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

__all__ = ["ClassCounts", "ClippedCorrelation", "PrivateSelectKBest", "Score"]


_PURPOSE = "PrivateSelectKBest.fit"
"""What a ledger is told."""


class _Parameter:
    """A parameter that is no attribute of an estimator.

    Wherever scikit-learn finds an attribute `score`, it takes it for a method and calls it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, estimator: object, value: Any) -> None:
        vars(estimator)[self.name] = value

    def __get__(self, estimator: object, owner: type | None = None) -> Any:
        if estimator is None:
            return self
        raise AttributeError(f"{self.name!r} is a parameter: get_params()[{self.name!r}] has it")


class PrivateSelectKBest(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Selects k features by a private score, with epsilon-differential privacy for each row of the training data.

    A row is a person: its features and its target together are what is protected. Each `fit` draws anew and spends
    epsilon again, and there is no `random_state`, because what can be drawn again is not private. Only the selection is
    private: `transform` hands the rows on as they are, and a model fitted to them has promises of its own or none.

    No value of X or y raises or warns: cells that are no numbers count as missing. That there is at least one row, and
    as many targets as rows, is taken to be public, like the columns and their types.

    Parameters
    ----------
    score
        `ClassCounts(...)`, `ClippedCorrelation(...)`, or a value with a sensitivity and a method `scores`.
    k
        How many features to keep; where there are no more than k, all are kept and nothing is spent.
    epsilon
        The privacy budget of each `fit`: a number or a string such as "0.5", taken exactly. There is no default.
    mechanism
        How to draw; `Canonical()` by default.
    adjacency
        "add-remove" protects the presence of a row, "swap" the replacement of one row by another.
    ledger
        A `Ledger` or its file, which each `fit` is charged to before it draws.
    dataset
        With a ledger: the name of the data, which must be that of a ledger that has one.

    Attributes
    ----------
    release_
        The release: its items are the names of the features, or their positions where they have none, and
        `release_.guarantee` says what was promised.
    n_features_in_
        The number of features.
    feature_names_in_
        The names of the features, where X has names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, size=(500, 6))
    >>> y = X[:, 4] | X[:, 2]
    >>> selector = PrivateSelectKBest(ClassCounts({1: "0.75"}, threshold=0), k=2, epsilon=1).fit(X, y)
    >>> selector.get_support(indices=True)
    array([2, 4])
    >>> selector.release_.guarantee.epsilon
    Fraction(1, 1)
    """

    score = _Parameter()

    def __init__(
        self,
        score: Score,
        *,
        k: int = 10,
        epsilon: Number,
        mechanism: Mechanism | None = None,
        adjacency: str = "add-remove",
        ledger: str | os.PathLike[str] | Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self.score = score
        self.k = k
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.adjacency = adjacency
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: Any) -> PrivateSelectKBest:
        """Draws which features are kept, and spends epsilon.

        Parameters
        ----------
        X
            The features: an array, a data frame, a list of rows or a sparse matrix, with a row for each person.
        y
            The target of each row.

        Returns
        -------
        PrivateSelectKBest
            This selector.
        """
        score, book = check_score(vars(self)["score"]), self._book()
        # A fit that is refused must not leave the release of other columns behind.
        self.__dict__.pop("release_", None)
        rows = check_array(matrix(X), accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=self)
        _check_names(X)
        validate_data(self, X, y, skip_check_array=True)
        targets = _read_targets(score, y)
        if rows.shape[0] != len(targets):
            # How many people there are is not for a message, though that both have as many is.
            raise InvalidValueError("y must have one target for each row of X")
        self.release_ = top_k(
            score.scores(rows, targets),
            self._limit_k(),
            self.epsilon,
            labels=self._names(),
            mechanism=self.mechanism,
            sensitivity=score.sensitivity,
            adjacency=self.adjacency,
            ledger=book,
            purpose=None if book is None else _PURPOSE,
            dataset=self.dataset,
        )
        return self

    def transform(self, X: Any) -> Any:
        """The kept features of some rows, as they are.

        Parameters
        ----------
        X
            Rows with the features that `fit` saw; missing values are handed on.
        """
        check_is_fitted(self)
        # scikit-learn would show the values of what has another form.
        matrix(X)
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Rows of kept features with columns of zeros where features were left out.

        Parameters
        ----------
        X
            Rows as `transform` returns them; missing values are handed on.
        """
        support = self.get_support()
        rows = matrix(X)
        if rows.shape[1] != support.sum():
            raise InvalidValueError(f"X must have the {support.sum()} kept features, not {rows.shape[1]}")
        if not isinstance(rows, np.ndarray):
            return super().inverse_transform(rows)
        # Unlike scikit-learn's, which refuses NaN.
        whole = np.zeros((len(rows), len(support)), rows.dtype)
        whole[:, support] = rows
        return whole

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep
            For other estimators: there is none inside this one.
        """
        return {name: vars(self)[name] for name in self._get_param_names()}

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        names = self._names()
        kept = set(self.release_.items)
        return np.array([item in kept for item in (range(self.n_features_in_) if names is None else names)], bool)

    def _book(self) -> Ledger | None:
        """The ledger, which must be for these data, before any row is looked at."""
        if self.ledger is None:
            return None
        from discreet.ledger.charges import open_charge

        return open_charge(self.ledger, _PURPOSE, None, self.dataset).ledger

    def _limit_k(self) -> Any:
        """K, or the number of features where that is less."""
        if not is_whole_number(self.k) or self.k <= self.n_features_in_:
            return self.k
        warnings.warn(
            f"k={self.k} is more than the {self.n_features_in_} features of X: all are kept, and nothing is spent",
            UserWarning,
            stacklevel=3,
        )
        return self.n_features_in_

    def _names(self) -> list[str] | None:
        if not hasattr(self, "feature_names_in_"):
            return None
        return [str(name) for name in self.feature_names_in_]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # A cell of text counts as missing, or as the number that it spells: refusing it would tell about its row.
        tags.input_tags.string = True
        return tags


def _read_targets(score: Score, y: Any) -> Any:
    """The targets as an array, of a type that must not tell of their values, and that can hold the score's labels."""
    if hasattr(score, "check_labels"):
        score.check_labels(y)
    targets = column_or_1d(as_array(y, "y"), warn=True)
    # What type NumPy gives to a column of a type unknown here may depend on the rows, and then a refusal would.
    return targets.astype(object) if declared_family(y) is None else targets


def _check_names(X: Any) -> None:
    """Raises where two columns of a pandas frame have one name: a release could not tell them apart."""
    if hasattr(X, "iloc") and hasattr(X, "columns") and not X.columns.is_unique:
        repeated = X.columns[X.columns.duplicated()][0]
        raise InvalidValueError(f"X must have columns of different names, but {quote(repeated)} is there twice")
