"""PrivateSelectKBest keeps scikit-learn's contract, and nothing of the rows but the release."""

import copy
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import discreet
from discreet.integrations.sklearn import ClassCounts, ClippedCorrelation, PrivateSelectKBest

PLANTED = [3, 17, 40]
HALVES = ClassCounts({1: "1/2"}, threshold=0)
CORRELATION = ClippedCorrelation((98, 102), (0, 1))


@pytest.fixture(scope="module")
def data():
    """Three features that say what y is, among fifty."""
    X = np.random.default_rng(7).integers(0, 2, size=(2000, 50))
    return X, (X[:, PLANTED].sum(axis=1) >= 2).astype(int)


def selector(**changes):
    return PrivateSelectKBest(**{"score": HALVES, "k": 3, "epsilon": 10, **changes})


# One of the checks fits 2 features twice and wants the same: with k = 2 they are all, with a huge epsilon there is no
# chance left. The warning is about k.
@pytest.mark.filterwarnings("ignore:k=10 is more than:UserWarning")
@parametrize_with_checks(
    [
        PrivateSelectKBest(HALVES, k=2, epsilon=1),
        PrivateSelectKBest(HALVES, epsilon="0.5", adjacency="swap"),
        PrivateSelectKBest(CORRELATION, k=1, epsilon=10**9, mechanism=discreet.OneShot()),
    ]
)
def test_scikit_learn_has_no_complaints(estimator, check):
    check(estimator)


def test_the_tags_say_what_it_is():
    tags = selector().__sklearn_tags__()
    assert tags.non_deterministic
    assert tags.target_tags.required
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse


def test_planted_features_are_found_in_a_pipeline(data):
    X, y = data
    model = make_pipeline(selector(), LogisticRegression()).fit(X, y)
    assert model.score(X, y) == 1
    assert model[0].get_support(indices=True).tolist() == PLANTED == model[0].release_.items
    assert model[:-1].get_feature_names_out().tolist() == ["x3", "x17", "x40"]
    numeric = selector(score=ClippedCorrelation((0, 1), (0, 1))).fit(X, y)
    assert numeric.get_support(indices=True).tolist() == PLANTED


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_frames_go_in_and_come_out_with_their_names(data, container):
    X, y = data
    names = [f"symptom {i}" for i in range(50)]
    frame = pandas.DataFrame(X, columns=names) if container == "pandas" else polars.DataFrame(X, schema=names)
    fitted = selector().set_output(transform=container).fit(frame, y)
    kept = ["symptom 17", "symptom 3", "symptom 40"]
    assert fitted.release_.items == kept, "by name, as every release is"
    assert fitted.get_feature_names_out().tolist() == sorted(kept, key=names.index)
    out = fitted.transform(frame)
    assert type(out) is type(frame)
    assert list(out.columns) == fitted.get_feature_names_out().tolist()
    assert (np.asarray(out) == X[:, PLANTED]).all()
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame[names[::-1]])


def test_columns_must_have_different_names(data):
    frame = pandas.DataFrame(data[0][:, :3], columns=["a", "b", "a"])
    with pytest.raises(discreet.Error, match=r"^X must have columns of different names, but 'a' is there twice$"):
        selector(k=1).fit(frame, data[1])


def test_sparse_rows_are_dense_ones(data):
    X, y = data
    fitted = selector().fit(sparse.csr_array(X), y)
    assert fitted.release_.items == PLANTED
    out = fitted.transform(sparse.csr_array(X))
    assert (out.toarray() == X[:, PLANTED]).all()
    back = fitted.inverse_transform(out)
    assert (back.toarray()[:, PLANTED] == X[:, PLANTED]).all()


def test_the_guarantee_is_the_one_of_the_score(data):
    fitted = selector(epsilon="0.1", score=ClassCounts({1: "1/5"}, threshold=0), mechanism=discreet.Joint()).fit(*data)
    guarantee = fitted.release_.guarantee
    assert guarantee.epsilon == Fraction(1, 10)
    assert guarantee.sensitivity == discreet.Sensitivity("4/5", "4/5")
    assert guarantee.mechanism == discreet.Joint()
    assert fitted.release_.private
    swapped = selector(adjacency="swap", score=CORRELATION).fit(*data).release_.guarantee
    assert (swapped.adjacency, swapped.sensitivity) == ("swap", discreet.Sensitivity(2, 2))


def test_the_selection_is_what_top_k_draws_from_the_scores(monkeypatch, data):
    seen = {}
    own = discreet.release.topk.top_k

    def top_k(scores, k, epsilon, **terms):
        seen.update(terms, scores=scores, k=k, epsilon=epsilon)
        return own(scores, k, epsilon, **terms)

    monkeypatch.setattr("discreet.integrations.sklearn.top_k", top_k)
    selector(epsilon="1/3").fit(*data)
    assert seen["scores"] == HALVES.scores(*data)
    assert (seen["k"], seen["epsilon"], seen["sensitivity"]) == (3, "1/3", HALVES.sensitivity)
    assert "rng" not in seen


def test_every_fit_draws_anew():
    # Fair coins: 60 fits of a choice of one in ten that are all alike have a chance of 10^-59.
    X, y = np.zeros((1, 10)), [1]
    assert len({selector(k=1).fit(X, y).release_.items[0] for _ in range(60)}) > 1


def test_what_is_learnt_is_public_or_released(data):
    X, y = data
    names = [f"c{i}" for i in range(50)]
    fitted = selector().fit(pandas.DataFrame(X, columns=names), y)
    parameters = {"score", "k", "epsilon", "mechanism", "adjacency", "ledger", "dataset"}
    assert set(vars(fitted)) == parameters | {"release_", "n_features_in_", "feature_names_in_"}
    assert fitted.n_features_in_ == 50
    assert fitted.feature_names_in_.tolist() == names
    release = fitted.release_
    assert (release.order, release.counts, release.d, release.k) == (None, None, 50, 3)
    fresh = discreet.Release(release.items, None, 50, release.guarantee)
    assert release == fresh, "the items and the guarantee are all there is"
    # Other rows, another number of them, other labels: the same attributes.
    assert set(vars(selector().fit(pandas.DataFrame(X[:9] * np.nan, columns=names), ["?"] * 9))) == set(vars(fitted))


ODD_CELLS = [np.nan, np.inf, -np.inf, None, "text", pandas.NA, 10**400, 1j, {}, 5e-324]


@pytest.mark.some(5)
@pytest.mark.parametrize("score", [HALVES, ClippedCorrelation((0, 1), (0, 1))])
@pytest.mark.parametrize("odd", ODD_CELLS, ids=repr)
def test_no_row_raises_or_warns(data, score, odd):
    # Warnings are errors here.
    X = np.concatenate([data[0], np.full((1, 50), odd, object)]).astype(object)
    y = np.append(data[1].astype(object), odd)
    fitted = selector(score=score).fit(X, y)
    assert fitted.release_.items == PLANTED
    assert fitted.transform(X).shape == (2001, 3)
    assert fitted.inverse_transform(fitted.transform(X)).shape == X.shape
    if isinstance(odd, float):
        selector(score=score).fit(X.astype(float), y.astype(float)).transform(X.astype(float))
    # Even where all rows are like that, or where there is one class only.
    selector(score=score).fit(X[-1:], y[-1:])
    selector(score=score).fit(X, [odd] * 2001)


def test_missing_values_are_handed_on(data):
    X = data[0].astype(float)
    X[::2] = np.nan
    fitted = selector().fit(X, data[1])
    assert np.array_equal(fitted.transform(X), X[:, fitted.get_support()], equal_nan=True)
    back = fitted.inverse_transform(fitted.transform(X))
    assert np.array_equal(back[:, fitted.get_support()], X[:, fitted.get_support()], equal_nan=True)
    assert not back[:, ~fitted.get_support()].any()


SECRET = 8675309


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda X, y: selector().fit(X[:, 0], y), "Reshape your data: X must have two dimensions"),
        (lambda X, y: selector().fit(X.astype(complex), y), "Complex data not supported: X must hold real numbers"),
        (lambda X, y: selector().fit(X, y.astype(complex)), "Complex data not supported: y must hold real numbers"),
        (lambda X, y: selector().fit(X, X), r"y should be a 1d array, got an array of shape \(5, 4\) instead"),
        (lambda X, y: selector().fit(X, y[:2]), r"^y must have one target for each row of X$"),
        (lambda X, y: selector().fit(X, None), "requires y to be passed"),
        (lambda X, y: selector().fit(X[:0], y[:0]), r"Found array with 0 sample\(s\)"),
        (lambda X, y: selector().fit(X[:, :0], y), r"Found array with 0 feature\(s\)"),
        (lambda X, y: selector().fit(X.tolist()[0], y), "Reshape your data"),
        (lambda X, y: selector().fit([[SECRET], [SECRET, 1]], y[:2]), "Reshape your data"),
        (lambda X, y: selector().fit(X, y).transform(X[0]), "Reshape your data"),
        (lambda X, y: selector().fit(X, y).transform(X.astype(complex)), "Complex data not supported"),
        (lambda X, y: selector().fit(X, y).transform(X[:, :3]), "X has 3 features, but"),
        (lambda X, y: selector().fit(X, y).inverse_transform(X), "X must have the 3 kept features, not 4"),
        (lambda X, y: selector().fit(X, y).inverse_transform(X[0]), "Reshape your data"),
        (lambda X, y: selector(k=0).fit(X, y), "k must be a whole number from 1 to 4, the number of items, not 0"),
        (
            lambda X, y: selector(k=True).fit(X, y),
            "k must be a whole number from 1 to 4, the number of items, not True",
        ),
        (
            lambda X, y: selector(k="all").fit(X, y),
            "k must be a whole number from 1 to 4, the number of items, not 'all'",
        ),
        (lambda X, y: selector(epsilon=0).fit(X, y), "epsilon must be above zero, not 0"),
        (lambda X, y: selector(adjacency="one").fit(X, y), "adjacency must be 'add-remove' or 'swap', not 'one'"),
        (lambda X, y: selector(mechanism="joint").fit(X, y), "mechanism must be"),
        (lambda X, y: selector(score="chi2").fit(X, y), "score must be ClassCounts"),
    ],
)
def test_errors_show_no_values(act, sentence):
    X, y = np.full((5, 4), SECRET), np.full(5, SECRET)
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        act(X, y)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("gap", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda values: pandas.Series(values, dtype="boolean"),
        lambda values: pandas.Series(values, dtype="Int64"),
        lambda values: pandas.Series(values, dtype=pandas.CategoricalDtype([False, True])),
        polars.Series,
    ],
)
def test_whether_a_label_is_refused_does_not_depend_on_a_gap(data, make, gap):
    # NumPy makes objects of some of these columns where a cell is missing.
    y = make([None if gap else True, *(data[1][1:] == 1).tolist()])
    with pytest.raises(discreet.Error, match="classes must hold labels of the type of y, numbers, not text such as"):
        selector(score=ClassCounts({"ill": "1/2"}, threshold=0)).fit(data[0], y)
    assert selector().fit(data[0], y).release_.items == PLANTED


@pytest.mark.parametrize("gap", [True, False])
def test_a_column_of_a_type_unknown_here_is_never_refused(data, gap):
    import pyarrow

    y = pyarrow.array([None if gap else True, *(data[1][1:] == 1).tolist()])
    selector(score=ClassCounts({"ill": "1/2"}, threshold=0)).fit(data[0], y)
    assert selector().fit(data[0], y).release_.items == PLANTED


def test_a_column_of_targets_is_warned_about_as_everywhere(data):
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert selector().fit(data[0], data[1][:, None]).release_.items == PLANTED


def test_more_than_all_features_are_all_and_cost_nothing(data):
    X, y = data[0][:, :3], data[1]
    with pytest.warns(UserWarning, match="^k=10 is more than the 3 features of X: all are kept, and nothing is spent$"):
        fitted = PrivateSelectKBest(HALVES, epsilon=1).fit(X, y)
    assert fitted.release_.guarantee.epsilon == 0
    assert fitted.get_support().all()
    assert selector(k=3).fit(X, y).release_.guarantee.epsilon == 0


def test_epsilon_has_no_default():
    with pytest.raises(TypeError, match="epsilon"):
        PrivateSelectKBest(HALVES)


def test_it_is_cloned_copied_and_pickled_like_any_other(data):
    fitted = selector(score=CORRELATION).fit(*data)
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert not hasattr(again, "release_")
    with pytest.raises(NotFittedError):
        again.transform(data[0])
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):  # noqa: S301  # our own
        assert twin.release_ == fitted.release_
        assert twin.get_params() == fitted.get_params()
    assert "ClippedCorrelation(x_bounds=(98.0, 102.0)" in repr(fitted)


def test_score_is_a_parameter_and_not_a_method():
    made = selector()
    assert not hasattr(made, "score")
    assert made.set_params(score=CORRELATION).get_params()["score"] == CORRELATION


def test_a_refused_fit_leaves_nothing_fitted(data):
    fitted = selector().fit(*data)
    with pytest.raises(discreet.Error):
        fitted.set_params(epsilon=-1).fit(data[0][:, :5], data[1])
    with pytest.raises(NotFittedError):
        fitted.get_support()


def test_a_score_of_ones_own(data):
    class Rows:
        sensitivity = discreet.Sensitivity(0, 1)

        def scores(self, X, y):
            return [len(X) * (j == 9) for j in range(X.shape[1])]

    assert selector(score=Rows(), k=1).fit(*data).release_.items == [9]


def test_a_search_over_parameters_is_charged_for_each_fit(data, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=5, unit="rows")
    model = make_pipeline(selector(epsilon=1, ledger=ledger.path), LogisticRegression())
    search = GridSearchCV(model, {"privateselectkbest__k": [2, 3]}, cv=2, error_score="raise").fit(*data)
    assert search.best_params_ == {"privateselectkbest__k": 3}
    assert ledger.spent == 5
    assert {entry.purpose for entry in ledger.history()} == {"PrivateSelectKBest.fit"}
    with pytest.raises(discreet.Error, match="epsilon 1 does not fit: 0 of 5 is left"):
        model.fit(*data)
    with pytest.raises(discreet.Error, match="epsilon 1 does not fit"):
        clone(model.set_params(privateselectkbest__ledger=ledger)).fit(*data)


def test_a_ledger_for_one_dataset_is_asked_before_a_row_is_read(data, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=5, unit="rows", dataset="patients")
    selector(epsilon=1, ledger=ledger, dataset="patients").fit(*data)
    assert ledger.spent == 1
    with pytest.raises(discreet.Error, match="dataset must be that of the ledger, 'patients', not 'visits'"):
        selector(epsilon=1, ledger=ledger.path, dataset="visits").fit("rows that are none", None)
    with pytest.raises(discreet.Error, match="dataset must be given"):
        selector(epsilon=1, ledger=ledger).fit("rows that are none", None)


def test_without_scikit_learn_the_error_has_the_pip_line():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import discreet\n"
        "try:\n    import discreet.integrations.sklearn\n"
        "except discreet.Error as error:\n    assert isinstance(error, ImportError); print(error)\n"
        "from discreet.integrations.feature_scores import ClassCounts\n"
        "print(ClassCounts({1: '1/2'}, threshold=0).scores([[1]], [1])[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "discreet.integrations.sklearn needs scikit-learn 1.6 or newer: pip install 'scikit-learn>=1.6'",
        "1/2",
    ]


def test_discreet_itself_imports_no_scikit_learn():
    code = "import sys, discreet.integrations.feature_scores; assert 'sklearn' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


PAGE = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text(encoding="utf-8")


def test_the_page_runs_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(found) == PAGE.count("```python") == 4
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block, "sklearn.md", "exec"), names)  # noqa: S102  # our own page
    out = capsys.readouterr().out.splitlines()
    refused = "epsilon 1 does not fit: 0 of 2 is left, and nothing was drawn"
    assert out == ["[ 3 17 40]", "1", "['x3' 'x17' 'x40']", "0.03508", refused, "1.0"]
    bounds = re.search(r"`(ClippedCorrelation\(x_bounds=.*\))`", PAGE)[1]
    score = eval(bounds, {"ClippedCorrelation": ClippedCorrelation})  # noqa: S307  # our own page
    one = PrivateSelectKBest(score, k=1, epsilon="0.5").fit(
        [[71, 168], [34, 181], [55, float("nan")]], [151, 118, "140"]
    )
    assert one.n_features_in_ == 2
    assert all(f"# {line}" in PAGE for line in out)
    scores, counts, planned = names["counts"].scores(names["X"], names["y"]), names["counts"], names["planned"]
    terms = {"goal": "top", "probability": "0.95", "sensitivity": counts.sensitivity}
    assert discreet.epsilon_for(scores, k=3, mechanism=discreet.Canonical(), **terms) == planned.epsilon
    least = discreet.epsilon_for(scores, k=3, **terms)
    assert f"(here {float(least)})" in PAGE
    assert names["selector"].release_.private


def test_folds_beyond_the_budget_score_nan_as_the_page_says(tmp_path):
    X = np.random.default_rng(0).integers(0, 2, size=(200, 6))
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=2, unit="patients")
    selector = PrivateSelectKBest(ClassCounts({1: "1/2"}, threshold=0), k=2, epsilon=1, ledger=ledger)
    model = make_pipeline(selector, LogisticRegression())
    with pytest.warns(FitFailedWarning):
        folds = cross_val_score(model, X, X[:, 4], cv=5)
    assert np.isnan(folds).tolist() == [False, False, True, True, True]
    with pytest.raises(discreet.Error, match="does not fit"):
        cross_val_score(model, X, X[:, 4], cv=5, error_score="raise")


@pytest.mark.long
def test_the_table_of_the_page_is_what_the_script_prints():
    script = Path(__file__).parents[2] / "examples" / "features.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout in PAGE
    assert done.stdout.count("\n") == 9
