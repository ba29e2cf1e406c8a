"""The sensitivities of scores, over all small data sets and all rows that can be added to them."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import discreet
from discreet.integrations import feature_scores
from discreet.integrations.feature_scores import STEPS, ClassCounts, ClippedCorrelation, check_score

NAN, INF = math.nan, math.inf
HALVES = ClassCounts({1: "1/2"}, threshold=0)
SCORES = [
    HALVES,
    ClassCounts({1: "1/10"}, threshold=0.5),
    ClassCounts({"yes": 0.7}, threshold=0),
    ClassCounts({0: "1/5", 1: "3/10", "yes": "1/2"}, threshold=0),
    ClassCounts({0: "1/5", 1: "3/10"}, bounds=(-1, 1)),
    ClassCounts({1: "2/3", "yes": "1/4"}, bounds=(-0.5, 8), cuts=2),
    ClippedCorrelation((-1, 1), (0, 1)),
    ClippedCorrelation((0.1, 0.3), (-2, "1/3")),
]
CELLS = [NAN, -INF, -1.0, 0.25, 1 / 3, 7.0, INF, "text"]
LABELS = [0, 1, NAN, None, "yes", 0.3]


def score_of(score, rows):
    """The score of the one feature of these rows."""
    X = np.array([cell for cell, _ in rows], object).reshape(-1, 1)
    return score.scores(X, np.array([label for _, label in rows], object))[0]


def scores_of_all(score, labels):
    """The scores of features that hold all cells there are, for rows of these labels."""
    X = np.array(list(itertools.product(CELLS, repeat=len(labels))), object).T
    return dict(zip(itertools.product(CELLS, repeat=len(labels)), score.scores(X, list(labels)), strict=True))


@pytest.mark.some(2)
@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_one_row_moves_every_small_data_set_by_the_sensitivity_and_no_more(score):
    moves = set()
    for n in (0, 1, 2):
        for labels in itertools.product(LABELS, repeat=n + 1):
            before, after = scores_of_all(score, labels[:-1]), scores_of_all(score, labels)
            moves |= {value - before[feature[:-1]] for feature, value in after.items()}
    down, up = score.sensitivity.down, score.sensitivity.up
    assert all(-down <= move <= up for move in moves)
    assert {-down, up} <= moves, "both sides are reached, so the sensitivity is not too large either"


@pytest.mark.parametrize("score", SCORES, ids=repr)
def test_one_row_replaced_moves_a_score_by_the_sensitivity_of_a_swap_at_most(score):
    limit = score.sensitivity.under("swap")
    around = {}
    for labels in itertools.product(LABELS, repeat=2):
        for feature, value in scores_of_all(score, labels).items():
            around.setdefault((labels[0], feature[0]), []).append(value)
    assert max(max(values) - min(values) for values in around.values()) <= min(limit.down, limit.up)


CELL = st.one_of(
    st.floats(allow_subnormal=True),
    st.floats(-1, 1),
    st.integers(-(10**400), 10**400),
    st.text(max_size=4),
    st.decimals(),
    st.fractions(),
    st.booleans(),
    st.none(),
    st.complex_numbers(),
    st.datetimes(),
    st.sampled_from([pandas.NA, pandas.NaT, np.float32(0.1), np.bool_(True), b"0.5", {}, object(), "-1e999"]),
)
ROW = st.tuples(st.tuples(CELL, CELL), CELL)


@given(st.lists(ROW, min_size=1, max_size=8), ROW, st.sampled_from(SCORES))
def test_one_row_of_anything_moves_scores_by_the_sensitivity_at_most(rows, added, score):
    def scores(data):
        return score.scores([list(features) for features, _ in data], [label for _, label in data])

    before, after = scores(rows), scores([*rows, added])
    assert all(isinstance(value, Fraction) for value in before + after)
    for old, new in zip(before, after, strict=True):
        assert -score.sensitivity.down <= new - old <= score.sensitivity.up
    assert scores(rows[::-1]) == before, "the order of rows cannot matter"


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=30), st.floats(-1, 1))
def test_rows_of_floats_add_up_exactly(rows, x):
    score = ClippedCorrelation((-1, 1), (-1, 1))
    before = score_of(score, rows)
    assert abs(before - abs(sum(Fraction(a) * Fraction(b) for a, b in rows))) <= Fraction(len(rows), STEPS)
    assert abs(score_of(score, [*rows, (x, 1.0)]) - before) <= 1


def test_a_sum_of_floats_would_break_the_sensitivity():
    almost = 1 - 2**-53
    assert Fraction(almost + 1.0) - Fraction(almost) > 1
    score = ClippedCorrelation((-1, 1), (-1, 1))
    assert score_of(score, [(almost, 1.0), (1.0, 1.0)]) - score_of(score, [(almost, 1.0)]) == 1


@pytest.mark.some(6)
@pytest.mark.parametrize(
    "score",
    [
        HALVES,
        ClassCounts({1: "3/4"}, threshold=0),
        ClassCounts({0: "1/5", 1: "3/10"}, bounds=(-1, 1)),
        ClippedCorrelation((-1, 1), (0, 1)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize("others", [0, 1, 2])
def test_the_selection_is_private_for_every_row(score, adjacency, others):
    # Three features, rows of extreme cells: the likelihood of every pair of features, whichever row comes or goes.
    epsilon, kinds = 1, [(x, y) for x in itertools.product((-1, 1), repeat=3) for y in (0, 1)]
    shared = [kinds[0], kinds[5]][:others]

    def chances(rows):
        scores = score.scores(np.array([x for x, _ in rows]).reshape(-1, 3), np.array([y for _, y in rows]))
        terms = {"sensitivity": score.sensitivity, "adjacency": adjacency}
        pairs = itertools.combinations(range(3), 2)
        return [discreet.subset_probability(scores, pair, epsilon, **terms).value for pair in pairs]

    around = [chances([*shared, row]) for row in kinds]
    pairs = itertools.combinations(around, 2) if adjacency == "swap" else [(chances(shared), one) for one in around]
    worst = max(abs(math.log(p / q)) for one, other in pairs for p, q in zip(one, other, strict=True))
    assert (0.05 if others else 0) <= worst <= epsilon + 1e-9


def test_class_counts_are_what_they_say():
    X = [[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, NAN]]
    y = ["ill", "ill", "well", "well"]
    # Agreements less disagreements, halved: 4 - 0, 2 - 2, and 1 - 2 where one cell is missing.
    assert ClassCounts({"ill": "1/2"}, threshold=0).scores(X, y) == [2, 0, Fraction(1, 2)]
    rates = np.random.default_rng(3).integers(0, 2, (200, 5)), np.arange(200) % 4 == 0
    expected = [
        abs(2 * 200 * Fraction(3, 16) * (Fraction(int(x[rates[1]].sum()), 50) - Fraction(int(x[~rates[1]].sum()), 150)))
        for x in rates[0].T
    ]
    assert ClassCounts({True: "1/4"}, threshold=0).scores(*rates) == expected


def test_thresholds_and_bounds_may_differ_between_features():
    X, y = [[5, 0.5], [15, 1.5]], [0, 1]
    assert ClassCounts({1: "1/2"}, threshold=[10, 1]).scores(X, y) == [1, 1]
    assert ClassCounts({1: "1/2"}, threshold=10).scores(X, y) == [1, 0]
    assert ClippedCorrelation(([0, 0], [20, 2]), (0, 1)).scores(X, y) == [1, 1]
    # (0.5 - 10) / 10 = -0.95 for a target of -1, and (1.5 - 10) / 10 = -0.85 for one of 1, each rounded to a step.
    second = Fraction(round(0.95 * STEPS) - round(0.85 * STEPS), STEPS)
    assert ClippedCorrelation((np.zeros(2), 20), (0, 1)).scores(X, y) == [1, second]


def test_blocks_of_rows_add_up(monkeypatch):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50).astype(object)
    whole = [score.scores(X, y) for score in SCORES]
    for cells_at_a_time in (1, 7, 100):
        monkeypatch.setattr(feature_scores, "_BLOCK", cells_at_a_time)
        assert [score.scores(X, y) for score in SCORES] == whole
    assert len(list(feature_scores.blocks(X, y))) == 2


TABLE = [[1, 0.5, None], [0, -2.0, 3], [1, 8.0, -1]]
COLUMNS = {"a": [1, 0, 1], "b": [0.5, -2.0, 8.0], "c": [None, 3, -1]}


@pytest.mark.parametrize(
    "X",
    [
        np.array(TABLE, object),
        np.array(TABLE, float),
        np.array(TABLE, np.float32),
        np.array([[str(cell) for cell in row] for row in TABLE]),
        [[Decimal(1), Fraction(1, 2), pandas.NA], (False, np.float32(-2), b"3"), ["1", 8, -1]],
        pandas.DataFrame(COLUMNS),
        pandas.DataFrame(COLUMNS).convert_dtypes(),
        pandas.DataFrame(COLUMNS).astype({"a": "boolean", "b": "category", "c": "Int64"}),
        polars.DataFrame(COLUMNS),
        polars.DataFrame(COLUMNS).to_arrow(),
        sparse.csr_array(np.array(TABLE, float)),
        sparse.coo_matrix(np.array(TABLE, float)),
    ],
    ids=lambda X: type(X).__module__ + "." + type(X).__name__,
)
@pytest.mark.parametrize(
    "y", [[1, 0, 1], np.array([1, 0, 1]), pandas.Series([1, 0, 1], dtype="Int64"), ["1", 0.0, True]]
)
def test_the_same_table_has_the_same_scores_whatever_holds_it(X, y):
    assert ClippedCorrelation((-4, 4), (0, 1)).scores(X, y) == [Fraction(1, 2), Fraction(13, 8), 1]
    if y[0] == 1:
        assert HALVES.scores(X, y) == [Fraction(3, 2), Fraction(3, 2), 1]


def test_one_odd_row_does_not_change_what_the_others_count_for():
    # NumPy would make text of every cell, and "True" is no number.
    rows, labels = [[True, 2], [True, 3]], [1, 0]
    for odd in ("text", None, {}, 10**400):
        X, y = [*rows, [odd, odd]], [*labels, odd]
        assert feature_scores.numbers(feature_scores.matrix(X), "X")[:2].tolist() == [[1, 2], [1, 3]]
        assert HALVES.scores(X, y)[0] <= Fraction(1, 2)


def test_what_overflows_is_clipped():
    assert feature_scores.numbers(
        feature_scores.as_array([10**400, -(10**400), "1e999", Fraction(-(10**400))], "X"), "X"
    ).tolist() == [
        INF,
        -INF,
        INF,
        -INF,
    ]
    assert ClippedCorrelation((-1.7e308, 1.7e308), (0, 1)).scores([[1.7e308], [-INF]], [1, 0]) == [2]


class Odd:
    def __float__(self):
        raise KeyError("a secret")

    def __eq__(self, other):
        raise KeyError("a secret")

    __hash__ = None


def test_no_cell_raises():
    X = np.array([[Odd(), np.array([1.0])], [float, np.datetime64("NaT")]], object)
    for score in SCORES:
        assert score.scores(X, [Odd(), np.array([1, 2])]) == [0, 0]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ClassCounts({1: 1}, threshold=0), "classes must have shares of at most 1 together, and below 1 each"),
        (
            lambda: ClassCounts(dict.fromkeys(range(10), 0.1), threshold=0),
            r"such as 0.1 is not quite .*: write '0.1'\)",
        ),
        (lambda: ClassCounts({1: 0}, threshold=0), r"classes must have shares above 0, not \{1: 0\}"),
        (lambda: ClassCounts({1: None}, threshold=0), "a share of classes must be a number or a string"),
        (lambda: ClassCounts({NAN: "1/2"}, threshold=0), "classes must hold labels such as 1 or 'yes', not nan"),
        (lambda: ClassCounts({None: "1/2"}, threshold=0), "classes must hold labels such as 1 or 'yes', not None"),
        (lambda: ClassCounts({}, threshold=0), r"classes must be labels with their shares, .*, not \{\}"),
        (lambda: ClassCounts([0, 1], threshold=0), r"classes must be labels with their shares, .*, not \[0, 1\]"),
        (lambda: ClassCounts({1: "1/2"}), "threshold or bounds must be given, one of the two"),
        (lambda: ClassCounts({1: "1/2"}, threshold=1, bounds=(0, 1)), "threshold or bounds must be given, one of"),
        (lambda: ClassCounts({1: "1/2"}, bounds=(0, 1), cuts=0), "cuts must be a whole number from 1 to 100, not 0"),
        (lambda: ClassCounts({1: "1/2"}, bounds=(1, 1)), "bounds must have lower bounds below the upper ones"),
        (lambda: ClassCounts({1: "1/2"}, threshold=INF), "threshold must be a finite number, not inf"),
        (lambda: ClassCounts({1: "1/2"}, threshold=10**400), "threshold must be within the range of floats, not 1000"),
        (
            lambda: ClassCounts({1: "1/2"}, bounds=([0, 0], 1)).scores([[1]], [1]),
            "bounds must have one number for each feature of X, 1, not 2",
        ),
        (
            lambda: ClassCounts({1: "1/2"}, threshold=[1, 2]).scores([[1]], [1]),
            "threshold must have one number for each feature of X, 1, not 2",
        ),
        (
            lambda: ClippedCorrelation((1, 1), (0, 1)),
            r"x_bounds must have lower bounds below the upper ones, not \(1, 1\)",
        ),
        (lambda: ClippedCorrelation(([0, 3], 2), (0, 1)), "x_bounds must have lower bounds below the upper ones"),
        (
            lambda: ClippedCorrelation(([0, 0], [1, 1, 1]), (0, 1)),
            "x_bounds must have as many upper as lower bounds, 2, not 3",
        ),
        (lambda: ClippedCorrelation((0, 5e-324), (0, 1)), "x_bounds must have lower bounds below the upper ones"),
        (lambda: ClippedCorrelation(1, (0, 1)), "x_bounds must be a pair of a lower and an upper bound, not 1"),
        (lambda: ClippedCorrelation((0, 1), "01"), "y_bounds must be a pair of a lower and an upper bound, not '01'"),
        (lambda: ClippedCorrelation((0, 1), ([0], 1)), "y_bounds must be two numbers, not"),
        (lambda: HALVES.scores([1, 2], [1, 2]), "X must have two dimensions, rows and features, not 1"),
        (
            lambda: HALVES.scores([[1]], [1, 2]),
            r"^y must have one target for each row of X$",
        ),
        (
            lambda: HALVES.scores(np.array([["2020"]], "M8[D]"), [1]),
            r"X must hold numbers, not values of the type datetime64\[D\]",
        ),
        (lambda: HALVES.scores([[1]], np.array([1j])), "Complex data not supported: y must hold real numbers"),
        (lambda: check_score(ClassCounts), "score must be ClassCounts"),
        (lambda: check_score("chi2"), "score must be .* or a value with a sensitivity and a method scores, not 'chi2'"),
    ],
)
def test_public_mistakes_get_one_sentence(make, sentence):
    with pytest.raises(discreet.Error, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_score_that_is_not_halved_by_classes_is_the_sum_of_covariances():
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 17, (300, 4)), rng.permutation(np.repeat([0, 1, 2], [60, 90, 150]))
    score = ClassCounts({0: "1/5", 1: "3/10", 2: "1/2"}, bounds=(0, 16))
    cuts = [
        [sum(abs(_covariance(np.where(x > cut, 1, -1), y == c)) for c in range(3)) / 2 for x in X.T]
        for cut in (4, 8, 12)
    ]
    assert score.scores(X, y) == [max(of_feature) for of_feature in zip(*cuts, strict=True)]
    assert ClassCounts({0: "1/5", 1: "3/10"}, bounds=(0, 16)).scores(X, y) == score.scores(X, y), "the rest is a class"


def _covariance(side, is_of):
    """The covariance of a side and a class, times the number of rows, exactly."""
    return Fraction(int(side[is_of].sum())) - Fraction(int(is_of.sum()) * int(side.sum()), len(side))


def test_a_constant_feature_scores_nothing_where_the_shares_are_right():
    X, y = np.column_stack([np.zeros(10), np.ones(10), np.arange(10) > 7]), [0] * 8 + [1] * 2
    assert ClassCounts({1: "1/5"}, threshold=0.5).scores(X, y) == [0, 0, Fraction(16, 5)]
    assert ClassCounts({1: "1/2"}, threshold=0.5).scores(X, y)[:2] == [3, 3], "and where they are wrong it does not"


def test_a_label_without_a_share_adds_nothing():
    score = ClassCounts({0: "1/2", 1: "1/2"}, threshold=0)
    assert score.scores([[1], [1], [0]], [1, 7, 0]) == score.scores([[1], [0]], [1, 0]) == [1]


TARGETS = {
    "ints": (np.array([1, 0]), "numbers"),
    "floats": (np.array([1.0, NAN]), "numbers"),
    "booleans": (np.array([True, False]), "numbers"),
    "text": (np.array(["1", "0"]), "text"),
    "bytes": (np.array([b"1", b"0"]), "bytes"),
    "times": (np.array(["2020", "2021"], "M8[D]"), "datetime64[D]"),
    "objects": (np.array([1, "a"], object), None),
    "lists": ([1, 0], None),
    "pandas": (pandas.Series([1, 0], dtype="Int64"), "numbers"),
    "pandas with a gap": (pandas.Series([1, None], dtype="Int64"), "numbers"),
    "pandas truths": (pandas.Series([True, False], dtype="boolean"), "numbers"),
    "pandas truths with a gap": (pandas.Series([True, None], dtype="boolean"), "numbers"),
    "pandas text": (pandas.Series(["1", None], dtype="string"), "text"),
    "categories": (pandas.Series([True, None], dtype=pandas.CategoricalDtype([False, True])), "numbers"),
    "categories of both": (pandas.Series(["a", None], dtype=pandas.CategoricalDtype(["a", 1])), None),
    "polars": (polars.Series([1, None]), "numbers"),
    "polars truths": (polars.Series([True, None]), "numbers"),
    "polars text": (polars.Series(["a", None]), "text"),
    "polars enum": (polars.Series(["a", None], dtype=polars.Enum(["a"])), "text"),
    "polars dates": (polars.Series([None, None], dtype=polars.Date), "Date"),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("label", [1, 1.0, True, "1", b"1"], ids=repr)
def test_a_label_that_the_type_of_y_cannot_hold_is_refused(name, label):
    y, held = TARGETS[name]
    assert feature_scores.declared_family(y) == held
    own = {str: "text", bytes: "bytes"}.get(type(label), "numbers")
    score = ClassCounts({label: "1/2"}, threshold=0)
    if held in (None, own):
        assert score.scores([[1], [1]], y)[0] <= 1
    else:
        with pytest.raises(discreet.Error, match="classes must hold labels of the type of y") as caught:
            score.scores([[1], [1]], y)
        assert str(caught.value).endswith(f", {held}, not {own} such as {label!r}")
