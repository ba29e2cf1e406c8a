"""How many periods a padded release takes, from its start to its end: the same for neighbours of every type.

The clock counts what the process computes and how long it sleeps, so that it needs not sleep for real, and a machine
that is busy with other things measures the same. A period is long beside the work; what is left over after the last
whole period is held against the time that reading the slower neighbour takes.
"""

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import computing_clock
import discreet

D = 5000
WHOLE = np.random.default_rng(0).integers(0, 10**6, D).tolist()
BROKEN = [*WHOLE[:-1], WHOLE[-1] + Fraction(1, 7)]
"""A neighbour: somebody added a seventh to one score."""


def told(scores):
    return {f"item {n}": score for n, score in enumerate(scores)}


def frame_of(users):
    return pd.DataFrame({"u": range(users), "i": [f"item {n % 50}" for n in range(users)]})


DOMAIN = [f"item {n}" for n in range(50)]
PAIRS = {
    "int array": (np.array(WHOLE), np.array(WHOLE) + (np.arange(D) == 7)),
    "float array": (np.array(WHOLE) / 3, np.array(WHOLE) / 3 + (np.arange(D) == 7)),
    "pandas column": (pd.Series(WHOLE), pd.Series(BROKEN)),
    "polars column": (pl.Series(WHOLE), pl.Series(WHOLE) + 1),
    "list with a Fraction": (WHOLE, BROKEN),
    "list with a Decimal": (WHOLE, [*WHOLE[:-1], Decimal(WHOLE[-1]) + Decimal("0.5")]),
    "list with a float": (WHOLE, [*WHOLE[:-1], WHOLE[-1] + 0.5]),
    "Decimals": ([Decimal(each) for each in WHOLE], [Decimal(each) + Decimal("1e-30") for each in WHOLE]),
    "Fractions": ([Fraction(each) for each in WHOLE], [Fraction(each * 7 + 1, n + 7) for n, each in enumerate(WHOLE)]),
    "dict": (told(WHOLE), told(BROKEN)),
}


@pytest.fixture
def _computing_clock(monkeypatch):
    """The clock of this process, until the end of a test."""
    monkeypatch.setattr(time, "monotonic", time.monotonic)
    monkeypatch.setattr(time, "sleep", time.sleep)
    computing_clock.install()


pytestmark = pytest.mark.usefixtures("_computing_clock")


def test_other_threads_sleep_as_ever():
    """A driver that is asleep in a loop must not let the clock run away."""
    ended = threading.Event()
    idle = threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(ended.is_set, True)])
    idle.start()
    begun = computing_clock.seconds()
    ended.wait(0.3)
    assert computing_clock.seconds() - begun < 0.25
    ended.set()
    idle.join()


def periods(task, seconds):
    """How many periods a task takes."""
    begun = time.monotonic()
    task()
    return (time.monotonic() - begun) / seconds


@pytest.mark.parametrize("kind", PAIRS)
def test_neighbours_take_one_period(kind):
    def release(scores):
        return discreet.top_k(scores, 3, 1, sensitivity=discreet.Sensitivity(0, 1), pad_to=4)

    taken = [periods(lambda scores=scores: release(scores), 4) for scores in PAIRS[kind]]
    assert [int(each) for each in taken] == [1, 1]
    assert max(taken) < 1.02


def events_taken(table, seconds):
    def task():
        source = discreet.events(table, user="u", item="i", domain=DOMAIN)
        discreet.top_k(source, 3, 1, pad_to=seconds)

    return periods(task, seconds)


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "csv", "parquet"])
def test_neighbouring_events_take_one_period(kind, tmp_path):
    """Opening is counted in: a frame is converted then."""
    frames = [frame_of(2000), frame_of(2001)]
    if kind == "csv":
        tables = [tmp_path / "0.csv", tmp_path / "1.csv"]
        for table, frame in zip(tables, frames, strict=True):
            frame.to_csv(table, index=False)
    elif kind == "parquet":
        tables = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
        for table, frame in zip(tables, frames, strict=True):
            frame.to_parquet(table)
    else:
        make = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind]
        tables = [make(frame) for frame in frames]
    events_taken(tables[0], 0.001)
    taken = [events_taken(table, 10) for table in tables]
    assert [int(each) for each in taken] == [1, 1]
    assert max(taken) < 1.02


def test_what_opening_took_is_counted_in_once(monkeypatch):
    """A frame is converted by `events`; how long the caller waits before the release is no part of it."""
    frame, convert = pl.from_pandas(frame_of(100)), pl.DataFrame.to_arrow
    discreet.events(frame, user="u", item="i", domain=DOMAIN)

    def convert_slowly(*arguments):
        time.sleep(6)
        return convert(*arguments)

    monkeypatch.setattr(pl.DataFrame, "to_arrow", convert_slowly)
    begun = time.monotonic()
    source = discreet.events(frame, user="u", item="i", domain=DOMAIN)
    opened = (time.monotonic() - begun) / 10
    first = periods(lambda: discreet.top_k(source, 3, 1, pad_to=10), 10)
    assert opened >= 0.6
    assert 1 <= first + opened < 1.02
    assert 1 <= periods(lambda: discreet.top_k(source, 3, 1, pad_to=10), 10) < 1.02


PERIOD = 10
ROWS = 60_000
TIMED = """
import sys
from discreet.cli import main
print("begun", file=sys.stderr, flush=True)
begun = time.monotonic()
code = main()
print(time.monotonic() - begun, file=sys.stderr)
sys.exit(code)
"""
"""The command line, with the time from its entry until all is printed."""

EVENTS = ("--user", "u", "--item", "i", "--domain", "domain.csv:i")


def write_scores(name, scores):
    labels = [f"item {n}" for n in range(len(scores))]
    if name.endswith(".json"):
        numbers = [float(score) if isinstance(score, Fraction) else score for score in scores]
        return json.dumps(dict(zip(labels, numbers, strict=True)))
    return "item,score\n" + "".join(f"{label},{score}\n" for label, score in zip(labels, scores, strict=True))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """For each kind two neighbouring files, by name."""
    folder = tmp_path_factory.mktemp("neighbours")
    whole = np.random.default_rng(0).integers(0, 10**6, ROWS).tolist()
    for name, scores in (("fast", whole), ("slow", [*whole[:-1], whole[-1] + Fraction(1, 7)])):
        (folder / f"{name}.csv").write_text(write_scores(".csv", scores))
        (folder / f"{name}.json").write_text(write_scores(".json", scores))
        numbers = np.array(scores, np.float64)
        np.save(folder / f"{name}.npy", numbers)
        labels = [f"item {n}" for n in range(ROWS)]
        pq.write_table(pa.table({"item": labels, "score": numbers}), folder / f"{name}.parquet")
        frame = frame_of(ROWS + (name == "slow"))
        frame.to_csv(folder / f"{name}-events.csv", index=False)
        frame.to_parquet(folder / f"{name}-events.parquet")
    (folder / "domain.csv").write_text("i\n" + "\n".join(DOMAIN) + "\n")
    return folder


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize("kind", [".csv", ".json", ".npy", ".parquet", "-events.csv", "-events.parquet"])
def test_neighbouring_files_take_one_period(files, kind):
    """To read the slower .csv alone takes more than what may be left over, so that it must be inside the period."""
    options = EVENTS if "events" in kind else ("--sensitivity", "0,1")
    taken = [command_taken(files, f"{name}{kind}", *options) for name in ("fast", "slow")]
    assert [int(each) for each in taken] == [1, 1]
    assert max(taken) < 1 + 0.2 / PERIOD


def command_taken(folder, *args):
    """How many periods the command line takes."""
    more = ("-k", "3", "--epsilon", "1", "--pad-to", str(PERIOD))
    clock = f"{Path(computing_clock.__file__).read_text()}\ninstall()"
    line = [sys.executable, "-c", f"{clock}\n{TIMED}", "select", *args, *more]
    ran = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout
    return float(ran.stderr.split()[-1]) / PERIOD


@pytest.mark.long
def test_the_clock_starts_before_standard_input_is_read(tmp_path):
    """The rest of the scores comes late, as from a slow query; the end comes with the period all the same."""
    line = [sys.executable, "-c", f"import time\n{TIMED}", "select", "-"]
    line += ["-k", "1", "--epsilon", "1", "--pad-to", "2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, cwd=tmp_path, text=True, **pipes) as ran:
        ran.stdin.write("item,score\na,3\n")
        ran.stdin.flush()
        assert ran.stderr.readline() == "begun\n"
        with suppress(subprocess.TimeoutExpired):
            ran.wait(timeout=1.2)
        _, errors = ran.communicate("b,1\n", timeout=60)
    # A busy machine may take several periods, each of which is whole.
    taken = float(errors.split()[-1]) / 2
    assert ran.returncode == 0
    assert taken >= 1
    assert taken % 1 < 0.2
