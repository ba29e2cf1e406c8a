"""top_k: what it takes, what it refuses and in which words, and what a release can tell."""

import enum
import itertools
import json
import pickle
import pkgutil
import random
import re
from array import array
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.labels import sort_labels

TRUTH = {"k": 2, "epsilon": 10**6}


@pytest.mark.parametrize(
    "scores",
    [
        [1, 90, 80, 5],
        (1, 90, 80, 5),
        range(4),
        [1.0, 90.5, 80.25, 5.0],
        [Fraction(1, 3), 90, Decimal("80.1"), 5.5],
        [True, 10**40, 10**30, -(10**40)],
        [np.int32(1), np.float64(90.0), 80, np.uint8(5)],
        np.array([1, 90, 80, 5], np.int8),
        np.array([1, 90, 80, 5], np.uint64) + np.uint64(2**63),
        np.array([1, 90, 80, 5], np.float16),
        np.array([1, 90, 80, 5], np.float32),
        np.array([1, 90, 80, 5], np.longdouble),
        np.array([1, 90, 80, 5], object),
        np.array([-(2**63), 2**63 - 1, 2**62, 0]),
        pl.Series([1, 90, 80, 5]),
        pl.Series([Decimal("1.5"), Decimal("90"), Decimal("80"), Decimal("5")]),
        pa.array([1, 90, 80, 5]),
        pa.array([Decimal("1.5"), Decimal("90.25"), Decimal("80"), Decimal("5")]),
        pa.chunked_array([[1, 90], [80, 5]]),
        pd.Series([1, 90, 80, 5]),
        pd.Series([1, 90, 80, 5], dtype="Int64"),
        pd.Series([1, 90, 80, 5], dtype="Float64"),
        np.arange(40)[::-10],
    ],
    ids=lambda scores: f"{type(scores).__module__}.{type(scores).__name__} {getattr(scores, 'dtype', '')}",
)
def test_every_kind_of_scores_is_taken_exactly(scores):
    values = [_exact(value) for value in scores]
    best = sorted(range(4), key=lambda i: -values[i])[:2]
    assert discreet.top_k(scores, **TRUTH, sensitivity=discreet.Sensitivity(0, 1)).items == sorted(best)


FLOATS = {
    **{f"numpy {kind}": np.array([1, 90, 5], kind) for kind in ("f2", "f4", "f8", ">f8", "longdouble")},
    "masked": np.ma.array([1.0, 90.0, 5.0]),
    "pandas": pd.Series([1.0, 90.0, 5.0]),
    "pandas Float64": pd.Series([1, 90, 5], dtype="Float64"),
    "pandas Arrow": pd.Series([1, 90, 5], dtype="float[pyarrow]"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1.0, 90.0, 5.0])),
    "pandas array": pd.array([1, 90, 5], dtype="Float32"),
    "pandas decimals": pd.Series([Decimal(1), Decimal(90), Decimal(5)], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "polars": pl.Series([1.0, 90.0, 5.0]),
    "polars Float32": pl.Series([1, 90, 5], dtype=pl.Float32),
    "polars decimals": pl.Series([Decimal(1), Decimal(90), Decimal(5)]),
    "pyarrow": pa.array([1.0, 90.0, 5.0]),
    "pyarrow half floats": pa.array(np.array([1, 90, 5], np.float16)),
    "pyarrow chunks": pa.chunked_array([[1.0], [90.0, 5.0]]),
    "pyarrow decimals": pa.array([Decimal(1), Decimal(90), Decimal(5)]),
    "array": array("d", [1, 90, 5]),
    "memory": memoryview(array("f", [1, 90, 5])),
}
COUNTED = {
    **{f"numpy {kind}": np.array([1, 90, 5], kind) for kind in ("i1", "u1", "i2", ">i4", "u8")},
    "booleans": np.array([False, True, False]),
    "objects that are floats": np.array([1.5, 90.5, 5.5], object),
    "dict": {0: 1.5, 1: 90.5, 2: 5.5},
    "list": [1.5, 90.5, 5.5],
    "list of NumPy's": [np.float64(1.5), np.float32(90.5), np.float16(5.5)],
    "Decimals": [Decimal("1.5"), Decimal("90.5"), Decimal("5.5")],
    "pandas": pd.Series([1, 90, 5]),
    "pandas Int64": pd.Series([1, 90, 5], dtype="Int64"),
    "pandas boolean": pd.Series([False, True, False], dtype="boolean"),
    "pandas Arrow": pd.Series([1, 90, 5], dtype="uint16[pyarrow]"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1, 90, 5])),
    "pandas objects": pd.Series([1.5, 90.5, 5.5], dtype=object),
    "polars": pl.Series([1, 90, 5], dtype=pl.UInt8),
    "polars objects": pl.Series([1.5, 90.5, 5.5], dtype=pl.Object),
    "pyarrow": pa.array([1, 90, 5]),
    "array": array("l", [1, 90, 5]),
    "memory": memoryview(array("B", [1, 90, 5])),
}
ASSUMED = "who adds at most 1 to each score"
CALLS = {
    "top_k": lambda scores, **terms: discreet.top_k(scores, 1, 100, **terms),
    "grouped": lambda scores, **terms: discreet.top_k(
        discreet.grouped({"x": [1, 2], "y": scores}, each_user="one"), 1, 100, **terms
    ),
    "sketch": lambda scores, **terms: discreet.sketch(scores, 100, [1, 2], grid=1, **terms),
    "utility": lambda scores, **terms: discreet.utility(scores, 1, 1, **terms),
    "expected": lambda scores, **terms: discreet.expected(scores, 1, 1, **terms),
    "epsilon_for": lambda scores, **terms: discreet.epsilon_for(
        scores, 1, goal="top", probability="0.9", mechanism=discreet.Canonical(), **terms
    ),
    "compare": lambda scores, **terms: discreet.compare(scores, 1, mechanisms=[discreet.Canonical()], **terms),
    "plan": lambda scores, **terms: discreet.plan(scores, 1, **terms),
    "class_probabilities": lambda scores, **terms: discreet.class_probabilities(scores, 1, 1, **terms),
    "subset_probability": lambda scores, **terms: discreet.subset_probability(scores, [0], 1, **terms),
}


@pytest.mark.parametrize("kind", FLOATS)
def test_floats_and_decimals_have_no_sensitivity_of_their_own(kind):
    """Their type decides, and nothing that they hold: all of these are whole numbers."""
    with pytest.raises(TypeError, match="sensitivity must be given for scores that are not whole numbers") as raised:
        discreet.top_k(FLOATS[kind], 1, 100)
    assert "pass sensitivity=discreet.Sensitivity(down=0, up=1), which is --sensitivity 0,1" in str(raised.value)
    release = discreet.top_k(FLOATS[kind], 1, 100, sensitivity=discreet.Sensitivity(down=2, up="1/3"))
    assert release.items == [1]
    for told in (str(release), release._repr_html_()):
        assert "who moves each score down by at most 2 and up by at most 1/3." in told


@pytest.mark.parametrize("kind", COUNTED)
def test_whole_numbers_and_what_has_no_type_are_counts_and_the_release_says_so(kind):
    release = discreet.top_k(COUNTED[kind], 1, 100)
    assert release.guarantee.sensitivity == discreet.Sensitivity(down=0, up=1)
    assert release.items == [1]
    for told in (str(release), release._repr_html_()):
        assert ASSUMED in told
    assert "Adding one user moves a score up by at most 1 and never down" in release.statement()


@pytest.mark.parametrize("call", CALLS)
def test_whatever_takes_scores_takes_no_float_without_a_sensitivity(call):
    """What is computed about a release is about one that would be granted."""
    floats = np.array([1.0, 90.0, 5.0])
    with pytest.raises(TypeError, match="sensitivity must be given for scores that are not whole numbers"):
        CALLS[call](floats)
    CALLS[call](floats, sensitivity=discreet.Sensitivity(down=0, up=1))


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({}, "added or removed, who adds at most 1 to each score."),
        ({"sensitivity": discreet.Sensitivity(items=3)}, "who adds at most 1 to each of at most 3 scores."),
        ({"sensitivity": discreet.Sensitivity(0, "0.5"), "adjacency": "swap"}, "replaced, who moves each score by at"),
        ({"sensitivity": discreet.Sensitivity(2, 0)}, "who moves each score down by at most 2 and up by at most 0."),
        ({"sensitivity": discreet.Sensitivity(0, 1 + Fraction(1, 10**18))}, "at most 1.00000000001 (rounded up) to"),
    ],
)
def test_a_release_prints_the_sensitivity_that_it_assumed(terms, said):
    release = discreet.top_k([1, 90, 5], 1, 100, **terms)
    assert said in str(release)


def _exact(value):
    value = value.as_py() if isinstance(value, pa.Scalar) else value
    if isinstance(value, np.floating):
        return Fraction(*value.as_integer_ratio())
    return Fraction(int(value) if isinstance(value, np.integer) else value)


def test_booleans_are_zeros_and_ones():
    assert discreet.top_k(np.array([False, True, True, False]), **TRUTH).items == [1, 2]
    assert discreet.top_k([False, True, True], **TRUTH).items == [1, 2]


def test_an_index_is_taken_for_what_it_says():
    scores = pd.Series([1, 2, 3, 4, 100, 200])
    for part in (scores, scores.tail(3), scores[::-1], scores[scores > 1]):
        assert discreet.top_k(part, k=1, epsilon=10**6).items == [5]

    class Special(pd.Series):
        pass

    assert discreet.top_k(Special([1, 9], index=["a", "b"]), k=1, epsilon=10**6).items == ["b"]


def test_labels_of_other_libraries_are_unwrapped():
    class Colour(enum.Enum):
        RED = "red"

    class Word(str):
        def __lt__(self, other):
            return False

    class Level(enum.IntEnum):
        LOW, HIGH = 3, 4

    three = [5, 90, 80]
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]")
    assert discreet.top_k(three, labels=times, **TRUTH).items == [datetime(2020, 1, 2), datetime(2020, 1, 3)]
    assert discreet.top_k(three, labels=pa.array(["x", "y", "z"]), **TRUTH).items == ["y", "z"]
    assert discreet.top_k(three, labels=[Word("b"), Word("a"), Word("c")], **TRUTH).items == ["a", "c"]
    assert discreet.top_k(three, labels=[Level.LOW, Level.HIGH, 9], **TRUTH).items == [4, 9]
    for bad in (Colour.RED, pd.Timedelta(1, "ns"), pd.Timestamp(1), times[0] + np.timedelta64(1, "ns")):
        with pytest.raises(discreet.Error, match="labels must be strings"):
            discreet.top_k([1, 2], 1, 1, labels=["a", bad])


def test_times_of_many_zones_have_one_order():
    """Python orders two clocks of one zone by the clock and others by the instant, which is no order at all."""
    york = ZoneInfo("America/New_York")
    moments = [
        datetime(2024, 11, 3, 1, 30, tzinfo=york, fold=1),
        datetime(2024, 11, 3, 1, 30, tzinfo=york),
        datetime(2024, 11, 3, 1, 45, tzinfo=york),
        datetime(2024, 11, 3, 6, 0, tzinfo=UTC),
        datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
        datetime(2024, 11, 3, 5, 30),
    ]
    orders = {tuple(map(repr, sort_labels(list(each)))) for each in itertools.permutations(moments)}
    assert len(orders) == 1
    hours = pd.Series(range(30), index=pd.date_range("2024-11-02 18:00", periods=30, freq="h", tz="America/New_York"))
    assert len(discreet.top_k(hours, 5, 1).items) == 5


def test_no_setting_of_numpy_makes_scores_raise():
    with np.errstate(all="raise"):
        for scores in ([10**6, 5000, 4000, 3000, 10], [1e308, -1e308, 0.0, 5e-324]):
            for mechanism in (discreet.Canonical(), discreet.Joint(), discreet.OneShot("laplace"), discreet.Peeling()):
                assert len(discreet.top_k(scores, 2, 1, mechanism=mechanism).items) == 2


def test_labels_come_from_a_mapping_an_argument_or_an_index():
    assert discreet.top_k({"a": 90, "b": 80, "c": 5, "d": 1}, **TRUTH).items == ["a", "b"]
    assert discreet.top_k([5, 90, 80], labels=["x", "y", "z"], **TRUTH).items == ["y", "z"]
    assert discreet.top_k(np.array([5, 90, 80]), labels=np.array(["x", "y", "z"]), **TRUTH).items == ["y", "z"]
    assert discreet.top_k(pd.Series([5, 90, 80], index=["x", "y", "z"]), **TRUTH).items == ["y", "z"]
    assert discreet.top_k(pl.Series([5, 90, 80]), labels=pl.Series(["x", "y", "z"]), **TRUTH).items == ["y", "z"]
    days = pd.Series([1, 9, 8], index=pd.date_range("2026-01-01", periods=3))
    assert discreet.top_k(days, **TRUTH).items == [datetime(2026, 1, 2), datetime(2026, 1, 3)]


@pytest.mark.parametrize(
    "epsilon", [1, 1.0, Fraction(1), Decimal(1), "1", "1.0", "1e0", "2/2", np.float32(1), np.int64(1)]
)
def test_epsilon_is_taken_exactly(epsilon):
    assert discreet.top_k([1, 2, 3], 1, epsilon).guarantee.epsilon == 1


def test_tenths_are_tenths():
    assert discreet.top_k([1, 2], 1, "0.1").guarantee.epsilon == Fraction(1, 10)
    assert discreet.top_k([1, 2], 1, Decimal("0.1")).guarantee.epsilon == Fraction(1, 10)
    assert discreet.top_k([1, 2], 1, 0.1).guarantee.epsilon == Fraction(1, 10)


GOOD = {"scores": [3, 2, 1], "k": 1, "epsilon": 1}
BAD = [
    ({"k": 0}, "k must be a whole number from 1 to 3, the number of items, not 0"),
    ({"k": 4}, "k must be a whole number from 1 to 3, the number of items, not 4"),
    ({"k": -1}, "not -1"),
    ({"k": 1.0}, "k must be a whole number from 1 to 3, the number of items, not 1.0"),
    ({"k": "1"}, "not '1'"),
    ({"k": True}, "not True"),
    ({"k": None}, "not None"),
    ({"epsilon": 0}, "epsilon must be above zero, not 0"),
    ({"epsilon": -1}, "epsilon must be above zero, not -1"),
    ({"epsilon": float("nan")}, "epsilon must be a finite number, not nan"),
    ({"epsilon": float("inf")}, "epsilon must be a finite number, not inf"),
    ({"epsilon": Decimal("NaN")}, "epsilon must be a finite number"),
    ({"epsilon": Decimal("Infinity")}, "epsilon must be a finite number"),
    ({"epsilon": "much"}, "epsilon must be a finite number such as '0.5', '1/3' or '1e-6', not 'much'"),
    ({"epsilon": "1/0"}, "not '1/0'"),
    ({"epsilon": "1e999999999"}, "epsilon must have an exponent of at most 1000"),
    ({"epsilon": "9" * 2000}, "at most 1000 characters, not 2000"),
    ({"epsilon": "1e9_999_999_999"}, "epsilon must be a finite number such as"),
    ({"epsilon": "1e\u00b2"}, "epsilon must be a finite number such as"),
    ({"epsilon": "\u0661"}, "epsilon must be a finite number such as"),
    ({"epsilon": 10**2000}, "epsilon must be a number of at most 1000 digits"),
    ({"epsilon": Decimal("1e5000")}, "epsilon must have an exponent of at most 1000"),
    ({"epsilon": None}, "epsilon must be a number"),
    ({"epsilon": True}, "epsilon must be a number, not True"),
    ({"epsilon": [1]}, "epsilon must be a number"),
    ({"epsilon": 1j}, "epsilon must be a number"),
    ({"scores": [1.0, float("nan"), 2.0]}, "scores must be finite numbers"),
    ({"scores": [1.0, float("inf"), 2.0]}, "scores must be finite numbers"),
    ({"scores": np.array([1, np.nan]), "sensitivity": discreet.Sensitivity()}, "scores must be finite numbers"),
    ({"scores": [1, float("-inf"), 2.0]}, "scores must be finite numbers"),
    ({"scores": [1, Decimal("NaN")]}, "scores must be finite numbers"),
    ({"scores": pd.Series([1, None], dtype="Int64")}, "scores must be finite numbers"),
    ({"scores": pl.Series([1, None])}, "scores must be finite numbers"),
    ({"scores": pa.array([1, None])}, "scores must be finite numbers"),
    ({"scores": []}, "scores must hold at least one item, not none"),
    ({"scores": {}}, "scores must hold at least one item, not none"),
    ({"scores": np.zeros((2, 2))}, "scores must have one dimension, not 2"),
    ({"scores": np.zeros((2, 2), object)}, "scores must have one dimension"),
    ({"scores": [[1, 2], [3, 4]]}, "scores must have one dimension"),
    ({"scores": np.array(3)}, "scores must have one dimension, not 0"),
    ({"scores": "abc"}, "scores must be a mapping, a list or a one-dimensional array, not a str"),
    ({"scores": 7}, "scores must be a mapping, a list or a one-dimensional array, not a int"),
    ({"scores": None}, "not a NoneType"),
    ({"scores": np.ma.array([1, 2, 999], mask=[0, 0, 1])}, "scores must be finite numbers"),
    ({"scores": [Decimal("1e999999")]}, "scores must be numbers of at most 5000 digits"),
    ({"labels": {"a", "b", "c"}}, "labels must be a list with one label for each score, not a set"),
    ({"labels": {"a": 912}}, "not a dict"),
    ({"scores": {1, 2}}, "not a set"),
    ({"scores": ["a", "b"]}, "scores must be numbers, not values of type str"),
    ({"scores": np.array(["a", "b"])}, "scores must be numbers, not an array of <U1"),
    ({"scores": np.array(["2020-01-01"], "M8[D]")}, "scores must be numbers"),
    ({"scores": [1j, 2j]}, "scores must be numbers"),
    ({"scores": pd.DataFrame({"a": [1]})}, "scores must be one column, not a pandas DataFrame"),
    ({"scores": pl.DataFrame({"a": [1]})}, "scores must be one column, not a polars DataFrame"),
    ({"scores": pa.table({"a": [1]})}, "scores must be one column, not a pyarrow Table"),
    ({"labels": ["a", "b"]}, "labels must be as many as the scores, 3, not 2"),
    ({"labels": ["a", "b", "a"]}, "labels must all be different, but 'a' is there twice"),
    ({"labels": [1, 2, 1.0]}, "labels must all be different"),
    ({"labels": [[1], [2], [3]]}, "labels must be strings, numbers, dates"),
    ({"labels": ["a", "b", float("nan")]}, "labels must be strings, numbers, dates"),
    ({"labels": ["a", "b", object()]}, "labels must be strings, numbers, dates"),
    ({"labels": "abc"}, "labels must be a list with one label for each score, not a str"),
    ({"labels": 5}, "labels must be a list"),
    ({"scores": {"a": 1}, "labels": ["b"]}, "labels must be left out when scores is a mapping"),
    ({"scores": pd.Series([1, 2], index=["a", "a"])}, "labels must all be different, but one is there twice"),
    (
        {"mechanism": "canonical"},
        "one of Canonical(), OneShot(), Peeling(), Joint(), Histogram(), Core(), not 'canonical'",
    ),
    ({"mechanism": discreet.Canonical}, "mechanism must be one of"),
    ({"sensitivity": 1}, "sensitivity must be a Sensitivity(down=..., up=...), not 1"),
    ({"adjacency": "replace"}, "adjacency must be 'add-remove' or 'swap', not 'replace'"),
    ({"adjacency": 1}, "adjacency must be 'add-remove' or 'swap', not 1"),
    ({"rng": 5}, "rng must be None"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[f"{i} {sorted(change)}" for i, (change, _) in enumerate(BAD)])
def test_bad_input_gets_one_clear_sentence(change, message):
    with pytest.raises(discreet.Error) as raised:
        discreet.top_k(**{**GOOD, **change})
    text = str(raised.value)
    assert message in text
    assert "\n" not in text
    assert len(text) < 200
    assert isinstance(raised.value, ValueError | TypeError)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: discreet.Canonical(gamma=2), "gamma must be from 0 to 1, not 2"),
        (lambda: discreet.Canonical(gamma=-0.5), "gamma must be from 0 to 1, not -0.5"),
        (lambda: discreet.Canonical(gamma="x"), "gamma must be a finite number"),
        (
            lambda: discreet.Canonical(noise="cauchy"),
            "noise must be one of gumbel, exponential, laplace",
        ),
        (lambda: discreet.OneShot("gauss"), "noise must be one of"),
        (lambda: discreet.Peeling(noise=3), "noise must be one of"),
        (lambda: discreet.Canonical(gamma=1, ceil=True), "ceil must be False unless gamma is 1/2"),
        (lambda: discreet.Canonical(ceil=1), "ceil must be True or False, not 1"),
        (lambda: discreet.Sensitivity(down=-1), "sensitivity down must be zero or more, not -1"),
        (lambda: discreet.Sensitivity(up="-0.5"), "sensitivity up must be zero or more, not '-0.5'"),
        (lambda: discreet.Sensitivity(0, 0), "sensitivity must be above zero on at least one side"),
        (lambda: discreet.Sensitivity(up=float("inf")), "sensitivity up must be a finite number"),
        (lambda: discreet.Release.from_json("{}"), "data must be a release"),
        (lambda: discreet.Release.from_json("["), "text must be a release"),
        (lambda: discreet.Release.from_json("[]"), "data must be a release"),
    ],
)
def test_bad_parameters_get_one_clear_sentence(make, message):
    with pytest.raises(discreet.Error, match=re.escape(message)):
        make()


def test_errors_about_scores_never_show_a_score():
    secrets = [
        [1.0, 12345.678, float("nan")],
        np.array([12345.678, np.inf]),
        [12345.678, None],
        [12345.678, "x"],
        SimpleNamespace(dune=12345),
        "dune 12345",
        np.int64(12345),
    ]
    for secret in secrets:
        with pytest.raises(discreet.Error) as raised:
            discreet.top_k(secret, 1, 1)
        assert "12345" not in str(raised.value)


def test_guarantees():
    def guarantee(mechanism, **options):
        return discreet.top_k([5, 3, 1], 2, "0.4", mechanism=mechanism, **options).guarantee

    tenth = Fraction(16, 100)
    assert guarantee(discreet.Canonical()).zcdp == tenth / 8
    assert guarantee(discreet.Joint()).zcdp == tenth / 8
    assert guarantee(discreet.Canonical(noise="laplace")).zcdp == tenth / 2
    assert guarantee(discreet.OneShot("gumbel")).zcdp == tenth / 16
    assert guarantee(discreet.Peeling("gumbel")).zcdp == tenth / 16
    assert guarantee(discreet.Peeling("laplace")).zcdp == tenth / 4
    assert guarantee(discreet.OneShot("exponential")).zcdp == tenth / 2
    swapped = guarantee(discreet.Canonical(), adjacency="swap", sensitivity=discreet.Sensitivity("0.5", 2))
    assert swapped.sensitivity == discreet.Sensitivity("2.5", "2.5")
    assert swapped.adjacency == "swap"


def test_all_items_cost_nothing_and_have_no_order():
    for mechanism in (discreet.Canonical(), discreet.OneShot(), discreet.Peeling(), discreet.Joint()):
        release = discreet.top_k({"b": 1, "a": 5, "c": 3}, 3, 1, mechanism=mechanism)
        assert release.items == ["a", "b", "c"]
        assert release.order is None
        assert release.guarantee.epsilon == 0
        assert release.guarantee.zcdp == 0


def test_a_callers_generator_makes_the_release_not_private():
    assert discreet.top_k([1, 2], 1, 1).private
    release = discreet.top_k([1, 2], 1, 1, rng=random.Random(1))
    assert not release.private
    assert "NOT PRIVATE" in str(release)
    assert not discreet.top_k([1, 2], 1, 1, rng=random.SystemRandom()).private


def test_the_release_tells_nothing_but_its_items():
    """Inputs that differ in private scores, in their order or in their type release equal values in every form."""
    inputs = [
        {"dune": 912, "alien": 877, "heat": 1},
        {"heat": 3, "alien": 900, "dune": 899},
        {"alien": 10**6, "heat": 0, "dune": 10**6},
    ]
    for mechanism in (discreet.Canonical(), discreet.Canonical(noise="laplace"), discreet.Canonical(gamma=1)):
        releases = [discreet.top_k(scores, 2, 1, mechanism=mechanism) for scores in inputs]
        assert all(release.items == ["alien", "dune"] for release in releases)
        assert len({release.to_json() for release in releases}) == 1
        assert len({pickle.dumps(release) for release in releases}) == 1
        assert len({str(release) for release in releases}) == 1
        assert len({repr(release) for release in releases}) == 1
        assert len({release._repr_html_() for release in releases}) == 1
    ordered = [
        discreet.top_k(scores, 2, 10**6, mechanism=discreet.OneShot())
        for scores in (inputs[0], {"heat": 5, "alien": 40, "dune": 50})
    ]
    assert pickle.dumps(ordered[0]) == pickle.dumps(ordered[1])


def test_nothing_reachable_from_a_release_holds_scores():
    secret = 987_654_321
    release = discreet.top_k({"a": secret, "b": secret - 1, "c": 5}, 2, 1)
    seen, stack = set(), [release]
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, type):
            continue
        seen.add(id(value))
        assert not isinstance(value, np.ndarray | np.generic)
        assert not (isinstance(value, int) and abs(value) >= secret - 10)
        if isinstance(value, list | tuple | set | frozenset):
            stack += list(value)
        elif isinstance(value, dict):
            stack += [*value.keys(), *value.values()]
        else:
            stack += list(vars(value).values()) if hasattr(value, "__dict__") else []


LABELS = [
    None, "b", "a", "é", "\U0001f600", "", 3, 2.5, -1, Decimal("2.4"), Fraction(7, 3), 10**400, float("inf"), True,
    b"bytes", date(2026, 1, 1), datetime(2026, 1, 1, 12), datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=3),
    UUID(int=5), ("a", 1), ("a", "b"), (1,), (),
]  # fmt: skip


def test_labels_of_all_kinds_have_one_order_and_survive_json():
    rng = random.Random(4)
    expected = sort_labels(LABELS)
    for _ in range(20):
        shuffled = rng.sample(LABELS, len(LABELS))
        assert sort_labels(shuffled) == expected
    release = discreet.top_k(list(range(len(LABELS))), len(LABELS), 1, labels=LABELS)
    again = discreet.Release.from_json(release.to_json())
    assert again == release
    assert [type(item) for item in again.items] == [type(item) for item in release.items]


def test_odd_characters_survive_files(tmp_path):
    release = discreet.top_k({"half \ud800": 3, "全": 2, 'quo"te': 1}, 2, 1)
    (tmp_path / "r.json").write_text(release.to_json(indent=2), encoding="utf-8")
    assert discreet.Release.from_json((tmp_path / "r.json").read_text(encoding="utf-8")) == release
    assert json.loads(release.to_json())["d"] == 3


@pytest.mark.parametrize("epsilon", ["1e900", "1e-900", "1e-320", 5e-324, 1e308, "1/3"])
def test_extreme_epsilons_print_and_survive_json(epsilon):
    release = discreet.top_k([3, 2, 1], 1, epsilon)
    assert discreet.Release.from_json(release.to_json()) == release
    assert "Privacy: epsilon " in str(release)


def test_a_label_cannot_write_lines_of_its_own():
    release = discreet.top_k({"a\nepsilon = 0 for all": 9, "\x1b[31mred": 8, "caf\u00e9": 7, "z": 0}, 3, 10**6)
    assert len(str(release).splitlines()) == 7
    assert "\x1b" not in str(release)
    assert "caf\u00e9" in str(release)


def test_a_release_reads_well():
    release = discreet.top_k({"alien": 900, "dune": 899, "heat": 3}, 2, "0.1", adjacency="swap")
    assert str(release).splitlines() == [
        "Top 2 of 3 items, sorted by name, which says nothing about rank:",
        "  alien",
        "  dune",
        "Privacy: epsilon 0.1 for each person replaced, who moves each score by at most 1.",
        "Drawn by Canonical(gamma='3/4', noise='gumbel')",
    ]
    tagged = discreet.top_k({"<b>": 9, "x": 0}, 1, 10**6)
    assert "&lt;b&gt;" in tagged._repr_html_()


def test_what_public_functions_return_and_raise_is_public_too():
    assert isinstance(discreet.utility([9, 7, 1], k=1, epsilon=1), discreet.Utility)
    assert isinstance(discreet.compare([9, 7, 1], k=1, mechanisms=[discreet.Canonical()]), discreet.Comparison)
    assert isinstance(discreet.expected([9, 7, 1], k=1, epsilon=1), discreet.Expected)
    assert isinstance(discreet.class_probabilities([9, 7, 1], k=1, epsilon=1), discreet.ClassProbabilities)
    assert isinstance(discreet.subset_probability([9, 7, 1], [0], epsilon=1), discreet.Chance)
    assert isinstance(discreet.verify(discreet.Canonical(), k=1, scores=[[1, 0]]), discreet.Verification)
    assert isinstance(discreet.audit(discreet.OneShot(), k=1, draws=100), discreet.Audit)
    users = {"who": [1, 2], "what": ["a", "b"]}
    source = discreet.events(pa.table(users), user="who", item="what", domain=["a", "b"])
    assert isinstance(source, discreet.TableSource)


def test_the_errors_of_the_reference_are_a_hierarchy():
    table = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `(\w+)` \|", table, re.MULTILINE))
    raised = {name.rpartition(".")[2] for name in rows}
    assert {name for name in discreet.__all__ if name.endswith("Error")} <= raised
    assert {name for name in vars(discreet.errors) if name.endswith("Error")} <= raised
    for name, parent in rows.items():
        error = pkgutil.resolve_name(name if "." in name else f"discreet.{name}")
        assert issubclass(error, discreet.Error)
        assert parent in [kind.__name__ for kind in error.__mro__[1:]]


def test_every_public_name_is_listed_once_and_in_order():
    assert sorted(discreet.__all__) == discreet.__all__
    assert len(set(discreet.__all__)) == len(discreet.__all__)
    for name in discreet.__all__:
        assert getattr(discreet, name).__doc__


def test_every_mechanism_prints_as_it_is_written():
    kinds = (discreet.Canonical, discreet.OneShot, discreet.Peeling, discreet.Joint)
    values = (discreet.Canonical("1/3", "laplace"), discreet.Canonical(ceil=True), *(kind() for kind in kinds))
    for mechanism in values:
        written = eval(repr(mechanism), {kind.__name__: kind for kind in kinds})  # noqa: S307  # our own text
        assert written == mechanism
        assert hash(written) == hash(mechanism)


@pytest.mark.long
@pytest.mark.slow
def test_ten_million_items():
    rng = np.random.default_rng(1)
    scores = rng.permutation((1e9 / np.arange(1, 10**7 + 1) ** 1.05).astype(np.int64))
    best = set(np.argsort(-scores)[:1000].tolist())
    release = discreet.top_k(scores, 1000, 10)
    assert len(set(release.items) & best) > 950
    floats = scores.astype(np.float64) + rng.random(10**7)
    assert len(discreet.top_k(floats, 1000, "0.001", sensitivity=discreet.Sensitivity(0, 1)).items) == 1000


@pytest.mark.parametrize("name", ["epsilon", "zcdp", "counts_epsilon", "value", "low"])
def test_a_number_with_a_long_exponent_is_refused_at_once(name):
    data = discreet.top_k({"a": 3, "b": 1}, 1, 1, counts=1).to_dict()
    (data["guarantee"] if name in data["guarantee"] else data["counts"][0])[name] = "1e3000000"
    with pytest.raises(discreet.Error, match=f"writes it: {name} must have an exponent of at most 1000, not '1e30"):
        discreet.Release.from_dict(data)


def test_a_release_over_sets_of_joint_is_not_read():
    release = discreet.top_k([3, 2, 1], 1, 1, mechanism=discreet.Joint())
    forged = release.to_json().replace('"name": "joint"', '"name": "joint", "over": "sets"')
    assert forged != release.to_json()
    with pytest.raises(discreet.Error), pytest.warns(DeprecationWarning, match="JointOverSets"):
        discreet.Release.from_json(forged)


@pytest.mark.parametrize(
    "scalar",
    [pd.NA, pd.NaT, pa.scalar(3), pa.scalar([1, 2]), pa.schema([]), pl.lit(1)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_column_of_a_library_is_named(scalar):
    with pytest.raises(discreet.Error, match=r"scores must (be|hold)"):
        discreet.top_k(scalar, 1, 1)


def test_a_release_is_a_collection_of_its_items():
    scores = {"a": 90, "b": 80, "c": 70, "d": 1}
    unordered = discreet.top_k(scores, 3, 100)
    assert (len(unordered), list(unordered), "b" in unordered, "d" in unordered) == (3, ["a", "b", "c"], True, False)
    ordered = discreet.top_k({"a": 1, "b": 90, "c": 80}, 2, 100, mechanism=discreet.OneShot())
    assert list(ordered) == ordered.order == ["b", "c"]
    counted = discreet.top_k(scores, 2, 100, counts=1000)
    assert list(counted) == [count.item for count in counted.counts]
    assert repr(ordered) == "Release(['b', 'c'], k=2, epsilon=100)"
    assert repr(discreet.top_k(list(range(30)), 12, "0.5")).endswith(", ...], k=12, epsilon=0.5)")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_release_is_a_table_of_any_library(library):
    pytest.importorskip(library)
    mechanism, few = discreet.Histogram(), discreet.Sensitivity(items=1)
    release = discreet.top_k({"a": 9, "b": 900, "c": 80}, 2, 1000, mechanism=mechanism, sensitivity=few)
    frame = release.to_frame(library)
    rows = {
        "pandas": lambda: frame.to_dict("records"),
        "polars": lambda: frame.to_dicts(),
        "pyarrow": lambda: frame.to_pylist(),
    }
    assert rows[library]() == [
        {"item": "b", "order": 1, "count": 900, "low": 900, "high": 900},
        {"item": "c", "order": 2, "count": 80, "low": 80, "high": 80},
    ]
    with pytest.raises(discreet.Error, match=r"^library must be one of pandas, polars, pyarrow, not 'excel'$"):
        release.to_frame("excel")


@pytest.mark.parametrize("epsilon", ["1/3", 0.1, "1e400"])
def test_json_has_floats_beside_exact_numbers(epsilon):
    few = discreet.grouped({"x": {"a": 3, "b": 1}}, each_user="one")
    for release in (discreet.top_k({"a": 3, "b": 1}, 1, epsilon), discreet.top_k(few, 1, epsilon)):
        data = json.loads(release.to_json(), parse_constant=pytest.fail)
        assert Fraction(data["guarantee"]["epsilon"]) == Fraction(str(epsilon))
        floats = {name: Fraction(number) for name, number in data["decimals"].items()}
        if epsilon == "1e400":
            assert floats == {}
        else:
            for name, number in floats.items():
                assert 0 <= number - Fraction(data["guarantee"][name]) < number * Fraction(1, 10**15)
        assert type(release).from_json(release.to_json()) == release


def test_an_internal_error_can_be_sent_to_another_process():
    again = pickle.loads(pickle.dumps(discreet.InternalError()))  # noqa: S301  # made here
    assert str(again) == str(discreet.InternalError())
