"""A padded release returns at a whole multiple of its period, and neighbours cannot be told apart by the clock."""

import gc
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import discreet
from command_line import write_table
from discreet.cli import main
from discreet.mechanisms.tally import Tally
from discreet.release.request import Workload
from discreet.release.topk import Padding, default_period, period, wait_for_multiple
from discreet.sources.arrays.array import ArraySource
from discreet.sources.events.table import TableSource

ALPHA = 1e-5
SHIFT = 0.001


def test_a_release_waits_for_the_end_of_its_period():
    for seconds in ("0.05", 0.1, "1/8"):
        begun = time.monotonic()
        discreet.top_k([3, 2, 1], 1, 1, pad_to=seconds)
        taken = time.monotonic() - begun
        assert taken >= float(period(seconds, 3, 1))


def test_what_is_late_waits_for_the_next_multiple():
    begun = time.monotonic() - 0.25
    wait_for_multiple(begun, 0.1)
    taken = time.monotonic() - begun
    assert taken >= 0.3


def test_the_default_depends_on_public_sizes_alone_and_grows_with_them():
    assert period("auto", 10_000, 100) == default_period(10_000, 100) == 2**-5
    assert default_period(10**7, 10**5) == 2.0
    assert default_period(100, 1) <= default_period(10**6, 1) <= default_period(10**6, 10**5)
    assert period(None, 10, 1) is None


@pytest.mark.parametrize("seconds", [0, -1, "soon", 1e-9, 10**6, True])
def test_a_period_must_be_sensible(seconds):
    with pytest.raises(discreet.Error, match="pad_to must be"):
        discreet.top_k([3, 2, 1], 1, 1, pad_to=seconds)


def test_from_a_file_the_default_has_room_for_reading_it():
    assert default_period(1000, 10, from_file=True) == 2.0
    assert default_period(10**6, 10, from_file=True) == 8.0


TYPED = {
    "int array": np.array([3, 2, 1]),
    "bool array": np.array([True, False, True]),
    "float array": np.array([3.5, 2, 1], np.float32),
    "foreign byte order": np.array([3, 2, 1], ">i8"),
    "pandas": pd.Series([3, 2, 1]),
    "pandas Int64": pd.Series([3, 2, 1], dtype="Int64"),
    "pandas Arrow": pd.Series([3, 2, 1], dtype="double[pyarrow]"),
    "polars": pl.Series([3.5, 2, 1]),
    "pyarrow": pa.chunked_array([[3, 2, 1]]),
}
UNTYPED = {
    "dict": {"a": 3, "b": 2},
    "list": [3, 2, 1],
    "tuple": (3, 2, 1),
    "object array": np.array([3, 2, 1], object),
    "longdouble array": np.array([3, 2, 1], np.longdouble),
    "pandas objects": pd.Series([3, 2, 1], dtype=object),
    "pandas decimals": pd.Series([Decimal(3), Decimal(2)], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "polars decimals": pl.Series([Decimal(3), Decimal(2)]),
    "pyarrow decimals": pa.array([Decimal(3), Decimal(2)]),
    "events": pa.table({"who": [1], "what": ["a"]}),
}
NOT_AUTO = (
    "pad_to must be a number of seconds, not 'auto', unless the scores are a column or an array of a numeric type"
)


@pytest.mark.parametrize("kind", TYPED)
def test_auto_is_for_what_has_a_numeric_type(kind):
    assert discreet.top_k(TYPED[kind], 1, 100, sensitivity=discreet.Sensitivity(0, 1), pad_to="auto").k == 1


@pytest.mark.parametrize("kind", UNTYPED)
def test_auto_is_refused_for_what_holds_objects(kind, monkeypatch):
    given = UNTYPED[kind]
    if kind == "events":
        given = discreet.events(given, user="who", item="what", domain=["a", "b"])
    monkeypatch.setattr("discreet.release.request.Request.draw", lambda *_: pytest.fail("something was drawn"))
    with pytest.raises(ValueError, match=NOT_AUTO):
        discreet.top_k(given, 1, 1, pad_to="auto")


def command(monkeypatch, *args):
    monkeypatch.setattr(sys, "argv", ["discreet", *args])
    return main()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_auto_on_the_command_line(folder, monkeypatch, capsys):
    periods = []
    monkeypatch.setattr("discreet.release.topk.wait_for_multiple", lambda _, seconds: periods.append(seconds))
    np.save("scores.npy", np.array([3, 2, 1]))
    pq.write_table(pa.table({"item": ["a", "b"], "score": [2.5, 1.5]}), "scores.parquet")
    options = ("-k", "1", "--epsilon", "1", "--sensitivity", "0,1", "--pad-to", "auto")
    for name in ("scores.npy", "scores.parquet"):
        assert command(monkeypatch, "select", name, *options) == 0
    assert periods == [2.0, 2.0]
    # A decimal column is public, and told once the schema is read.
    pq.write_table(pa.table({"item": ["a", "b"], "score": [Decimal(2), Decimal(1)]}), "scores.parquet")
    assert command(monkeypatch, "select", "scores.parquet", *options) == 2
    assert NOT_AUTO in capsys.readouterr().err


@pytest.mark.parametrize(
    "args", [("scores.csv",), ("scores.tsv",), ("scores.json",), ("-",), ("events.parquet", "--user", "u")]
)
def test_auto_is_refused_before_text_or_events_are_read(folder, monkeypatch, capsys, args):
    for name in ("scores.csv", "scores.tsv", "scores.json", "events.parquet"):
        (folder / name).write_text("not what its name says")
    more = ("--item", "i", "--domain", "integers:0:9") if "--user" in args else ()
    assert command(monkeypatch, "select", *args, *more, "-k", "1", "--epsilon", "1", "--pad-to", "auto") == 2
    assert NOT_AUTO in capsys.readouterr().err


def alive(*kinds):
    """How many objects of some kinds there are, of those that nobody has freed."""
    return sum(type(each) in kinds for each in gc.get_objects())


@pytest.fixture
def held_at_wait(monkeypatch):
    """What a release that waits still holds: sources, tallies and fractions, by how many there are more than before."""
    kinds = {"sources": (ArraySource, TableSource), "tallies": (Tally,), "fractions": (Fraction,)}
    gc.collect()
    before = {name: alive(*each) for name, each in kinds.items()}
    seen = []
    monkeypatch.setattr(
        "discreet.release.topk.wait_for_multiple",
        lambda *_: seen.append({name: alive(*each) - before[name] for name, each in kinds.items()}),
    )
    gc.disable()
    yield seen
    gc.enable()


def decimals(d):
    return [Decimal(n) / 8 for n in range(d)]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "made",
    [
        lambda: np.arange(5000),
        lambda: np.arange(5000) / 8,
        lambda: decimals(5000),
        lambda: [Fraction(1, n) for n in range(1, 5000)],
        lambda: {n: Fraction(1, n) for n in range(1, 5000)},
        lambda: [*range(5000), Fraction(1, 7)],
        lambda: pd.Series(decimals(5000), index=range(1, 5001)),
    ],
)
def test_scores_are_freed_before_the_wait(held_at_wait, made):
    """What takes time to free would be seen after the wait; fractions are in the guarantee, a few."""
    discreet.top_k(made(), 2, 1, sensitivity=discreet.Sensitivity(0, 1), pad_to=1)
    (held,) = held_at_wait
    assert (held["sources"], held["tallies"]) == (0, 0)
    assert held["fractions"] < 100


@pytest.mark.parametrize("counts", [None, 1])
def test_a_file_is_let_go_before_the_wait(held_at_wait, folder, monkeypatch, counts):
    write_table("scores.csv", ("item", "score"), {f"i{n}": f"{n}/7" for n in range(5000)})
    more = () if counts is None else ("--counts", str(counts))
    assert command(monkeypatch, "select", "scores.csv", "-k", "2", "--epsilon", "1", "--pad-to", "1", *more) == 0
    (held,) = held_at_wait
    assert (held["sources"], held["tallies"]) == (0, 0)
    assert held["fractions"] < 100


def test_events_are_let_go_before_the_wait(held_at_wait, folder, monkeypatch):
    (folder / "events.csv").write_text("u,i\n1,1\n2,1\n3,2\n")
    args = ("--user", "u", "--item", "i", "--domain", "integers:0:9", "-k", "1", "--epsilon", "1", "--pad-to", "1")
    assert command(monkeypatch, "select", "events.csv", *args) == 0
    (held,) = held_at_wait
    assert (held["sources"], held["tallies"]) == (0, 0)


def test_a_copy_of_standard_input_is_gone_before_the_wait(folder, monkeypatch):
    seen = []
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(
        "discreet.release.topk.wait_for_multiple", lambda *_: seen.append(list(folder.glob("discreet-*")))
    )
    (folder / "scores.csv").write_text("item,score\na,3\nb,1\n")
    with (folder / "scores.csv").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert command(monkeypatch, "select", "-", "-k", "1", "--epsilon", "1", "--pad-to", "1") == 0
    assert seen == [[]]


def test_nothing_is_printed_or_written_before_the_wait(folder, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(
        "discreet.release.topk.wait_for_multiple",
        lambda *_: seen.append((capsys.readouterr().out, list(folder.iterdir()))),
    )
    write_table("scores.csv", ("item", "score"), {"a": 3, "b": 1})
    files = list(folder.iterdir())
    args = ("select", "scores.csv", "-k", "1", "--epsilon", "1", "--pad-to", "1", "--out", "top.json")
    assert command(monkeypatch, *args) == 0
    assert seen == [("", files)]
    assert (folder / "top.json").exists()


def test_errors_after_reading_are_padded_as_well():
    begun = time.monotonic()
    with pytest.raises(ValueError, match="k must be a whole number from 1 to 2"):
        discreet.top_k({"a": Fraction(1, 3), "b": 1}, 3, 1, pad_to="0.1")
    assert time.monotonic() - begun >= 0.1


def test_the_period_of_an_error_is_that_of_the_release():
    padding = Padding("auto")
    padding.choose_period(Workload(True, 10, 1, False))
    with pytest.raises(KeyError), padding.delay_errors():
        raise KeyError
    assert time.monotonic() - padding._begun >= default_period(10, 1)


def seconds(scores, k, epsilon):
    begun = time.perf_counter()
    discreet.top_k(scores, k, epsilon, pad_to="auto")
    return time.perf_counter() - begun


def told_apart(one, other):
    """Whether a rank test tells two samples of times apart at ALPHA."""
    return stats.mannwhitneyu(one, other, method="asymptotic").pvalue < ALPHA


def power(times, n):
    """How often a shift between two samples of n such times is found, resampled."""
    generator, pool = np.random.default_rng(2), np.array(times)
    found = [told_apart(generator.choice(pool, n), generator.choice(pool, n) + SHIFT) for _ in range(300)]
    return np.mean(found)


@pytest.mark.long
@pytest.mark.parametrize(("d", "k", "epsilon"), [(10_000, 100, 1), (17_770, 1000, "0.01")])
def test_neighbours_are_not_told_apart_by_the_clock(d, k, epsilon):
    """What is larger takes longer to test: benchmarks/clock.py."""
    scores = np.random.default_rng(0).permutation((1e7 / np.arange(1, d + 1)).astype(np.int64))
    neighbour = scores + np.random.default_rng(1).integers(0, 2, d)
    discreet.top_k(scores, k, epsilon)
    one, other = [], []
    # As many draws as it takes to see a shift of one millisecond 99 times in 100: more where the machine is busy.
    while len(one) < 24 or (power(one + other, len(one)) < 0.99 and len(one) < 400):
        for _ in range(24):
            one.append(seconds(scores, k, epsilon))
            other.append(seconds(neighbour, k, epsilon))
    assert power(one + other, len(one)) >= 0.99
    assert not told_apart(one, other)
