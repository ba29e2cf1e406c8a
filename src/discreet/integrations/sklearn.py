"""A scikit-learn selector of the k best features, with epsilon-differential privacy for each row.

The features are the items of `top_k`, with an exact score each. `fit` keeps only the release and public facts: the
number of features and their names.
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
    from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise MissingExtraError(
        "discreet.integrations.sklearn needs scikit-learn 1.6 or newer: pip install 'scikit-learn>=1.6'"
    ) from None

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

__all__ = ["ClassCounts", "ClippedCorrelation", "PrivateSelectKBest", "Score"]


_PURPOSE = "PrivateSelectKBest.fit"
"""The purpose of each charge in a ledger."""


class _Parameter:
    """A parameter that cannot be read as an attribute.

    scikit-learn calls any attribute `score` that it finds, as a method.
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
    """Select k features by a score, with epsilon-differential privacy for each row of the training data.

    A row is a person: its features and its target together are protected. Each `fit` draws anew and spends epsilon
    again. There is no `random_state`, because a draw that can be repeated is not private. Only the selection is
    private: `transform` returns the rows unchanged, and a model fitted to them needs its own guarantee.

    No value of X or y raises or warns: cells that are no numbers count as missing. The columns and their types, the
    presence of at least one row, and equal numbers of rows and targets are assumed to be public.

    Parameters
    ----------
    score
        `ClassCounts(...)`, `ClippedCorrelation(...)`, or a value with a sensitivity and a method `scores`.
    k
        The number of features to keep; if there are no more than k, all are kept and nothing is spent.
    epsilon
        The privacy budget of each `fit`: a number or a string such as "0.5", taken exactly. There is no default.
    mechanism
        The mechanism; `Canonical()` by default.
    adjacency
        "add-remove" protects the presence of a row, "swap" the replacement of one row by another.
    ledger
        A `Ledger` or its file, to which each `fit` is charged before it draws.
    dataset
        With a ledger: the name of the data, which must match that of the ledger, if it has one.

    Attributes
    ----------
    release_
        The release: its items are the names of the features, or their positions without names, and
        `release_.guarantee` is the privacy guarantee.
    n_features_in_
        The number of features.
    feature_names_in_
        The names of the features, if X has names that are all strings.

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
        """Draw the features to keep, and spend epsilon.

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
        score, book = check_score(vars(self)["score"]), None
        if self.ledger is not None:
            # The ledger must be for these data, which is checked before any row is read.
            from discreet.ledger.charges import open_charge

            book = open_charge(self.ledger, _PURPOSE, None, self.dataset).ledger
        # A refused fit must not leave the release of other columns behind.
        self.__dict__.pop("release_", None)
        rows = check_array(matrix(X), accept_sparse="csr", dtype=None, ensure_all_finite=False, estimator=self)
        if hasattr(X, "iloc") and hasattr(X, "columns") and not X.columns.is_unique:
            repeated = X.columns[X.columns.duplicated()][0]
            raise InvalidValueError(f"X must have columns of different names, but {quote(repeated)} is there twice")
        validate_data(self, X, y, skip_check_array=True)
        if hasattr(score, "check_labels"):
            score.check_labels(y)
        targets = column_or_1d(as_array(y, "y"), warn=True)
        if declared_family(y) is None:
            # NumPy's type for a column of unknown type may depend on the rows, and then so would an error.
            targets = targets.astype(object)
        if rows.shape[0] != len(targets):
            # The message does not show the number of rows, which may be private.
            raise InvalidValueError("y must have one target for each row of X")
        scores, k = score.scores(rows, targets), self.k
        if is_whole_number(k) and k > self.n_features_in_:
            warnings.warn(
                f"k={k} is more than the {self.n_features_in_} features of X: all are kept, and nothing is spent",
                UserWarning,
                stacklevel=2,
            )
            k = self.n_features_in_
        self.release_ = top_k(
            scores,
            k,
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
        """Return the kept features of some rows, unchanged.

        Parameters
        ----------
        X
            Rows with the features that `fit` saw; missing values are passed on.
        """
        check_is_fitted(self)
        # Checked here, because the errors of scikit-learn show values.
        matrix(X)
        return super().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows of kept features with columns of zeros in place of the other features.

        Parameters
        ----------
        X
            Rows as `transform` returns them; missing values are passed on.
        """
        support = self.get_support()
        rows = matrix(X)
        if rows.shape[1] != support.sum():
            raise InvalidValueError(f"X must have the {support.sum()} kept features, not {rows.shape[1]}")
        if not isinstance(rows, np.ndarray):
            return super().inverse_transform(rows)
        # The method of scikit-learn refuses NaN.
        whole = np.zeros((len(rows), len(support)), rows.dtype)
        whole[:, support] = rows
        return whole

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep
            Ignored: there is no estimator inside this one.
        """
        return {name: vars(self)[name] for name in self._get_param_names()}

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        names = self._names()
        kept = set(self.release_.items)
        return np.array([item in kept for item in (range(self.n_features_in_) if names is None else names)], bool)

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
        # A cell of text counts as the number that it spells, or as missing: an error would reveal its row.
        tags.input_tags.string = True
        return tags
