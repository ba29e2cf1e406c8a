"""Reading from standard input, and that no copy of it stays."""

import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from command_line import EVENTS, MOVIES, PROGRAM, SCORES, process, write_table

READ = ("select", "-", "-k", "2", "--epsilon", "1000")
FROM_EVENTS = ("select", "-", *EVENTS, *MOVIES, "-k", "1", "--epsilon", "1000")


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """A folder for temporary files, which must be empty again after each test."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    assert os.listdir(folder) == []


@pytest.fixture
def typed(monkeypatch):
    """Puts something into standard input."""

    def put(content):
        data = Path(content).read_bytes() if isinstance(content, str) else content
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.mark.parametrize("kind", [None, "csv", "tsv", "json", "parquet", "npy"])
def test_scores_of_every_format(done, typed, kind):
    write_table("scores.tsv", ("item", "score"), SCORES, "\t")
    Path("scores.json").write_text(json.dumps(SCORES))
    pa.parquet.write_table(pa.table({"item": list(SCORES), "score": list(SCORES.values())}), "scores.parquet")
    np.save("scores.npy", np.array([3, 900, 877, 1]))
    typed(f"scores.{kind or 'csv'}")
    release = discreet.Release.from_json(done(*READ, "--json", *(["--input-format", kind] if kind else [])))
    assert release == discreet.top_k([3, 900, 877, 1] if kind == "npy" else SCORES, k=2, epsilon=1000)


def test_scores_by_column(done, typed):
    typed(b"fans,year,title\n900,1979,alien\n3,1984,dune\n")
    options = ("--item", "title", "--score", "fans", "-k", "1", "--format", "items")
    assert done(*READ, *options) == "alien\n"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_events(done, typed, ratings, kind):
    Path("ratings.csv").write_text(Path("ratings-1.csv").read_text() + Path("ratings-2.csv").read_text())
    typed(f"ratings.{kind}")
    expected = discreet.events("ratings.parquet", user="user_id", item="movie_id", domain="movies.csv:movie_id")
    release = discreet.Release.from_json(done(*FROM_EVENTS, "--input-format", kind, "--json"))
    assert release.items == [7 if kind == "parquet" else "7"]  # text has no type
    assert release.guarantee == discreet.top_k(expected, 1, 1000).guarantee


def test_a_plan(done, typed):
    typed("scores.csv")
    assert done("plan", "-", "-k", "2") == done("plan", "scores.csv", "-k", "2")


def test_a_request_is_the_same_wherever_the_events_lay(done, typed, ratings):
    discreet.Ledger.create("budget.db", epsilon=5000, unit="users")
    charged = (*FROM_EVENTS, "--ledger", "budget.db", "--request-id", "june", "--json")
    answers = []
    for _ in range(2):
        typed("ratings-1.csv")
        answers.append(done(*charged))
    assert answers[0] == answers[1]
    assert len(discreet.Ledger("budget.db").history()) == 1


@pytest.mark.parametrize(
    ("content", "args", "sentence"),
    [
        (b"", READ, "standard input must hold scores, but is empty"),
        (b"item,score\na,1\n", READ, "k must be a whole number from 1 to 1, the number of items, not 2"),
        (b"a,b\nx,many9123\n", READ, "scores must be finite numbers, and column 'b' of standard input holds one"),
        (b"titel,n,x\na,1,2\n", (*READ, "--item", "title"), "item must name a column of standard input, one of"),
        (b"x", (*READ, "--input-format", "npy"), "standard input must be a whole .npy file"),
        (
            b"x",
            (*READ, "--input-format", "jsn"),
            "input_format must be one of csv, tsv, json, parquet, npy, not 'jsn';",
        ),
        (b"x", ("select", "scores.csv", *READ[2:], "--input-format", "csv"), "input_format must be left out unless"),
        (b"x", (*FROM_EVENTS, "--input-format", "npy"), "input_format must be one of csv, tsv, json, parquet, not"),
        (b"who\n1\n", FROM_EVENTS, "user must be a column of the table, and 'user_id' is not in the header"),
        (
            b"x",
            (*FROM_EVENTS, "--domain", "-"),
            "domain must be FILE:COLUMN, integers:LO:HI or strings:ALPHABET:MAX: stand",
        ),
        (
            b"x",
            (*FROM_EVENTS, "--domain", "-:movie_id"),
            "domain must be FILE:COLUMN, integers:LO:HI or strings:ALPHABET:MAX: sta",
        ),
        (b"x", (*READ, "--out", "-"), "out must be a file, not '-'"),
    ],
)
def test_complaints_name_standard_input(refused, typed, ratings, temporary, content, args, sentence):
    typed(content)
    said = refused(*args)
    assert said.startswith(sentence)
    assert str(temporary) not in said


def test_what_cannot_be_is_refused_before_anything_is_read(refused, monkeypatch):
    class Untouched(io.BytesIO):
        def read(self, *_):
            pytest.fail("standard input was read")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Untouched()))
    for extra in (("--epsilon", "0"), ("--gamma", "7"), ("-k", "x"), ("--out", "no/x.json"), ("--ledger", "no.db")):
        refused(*READ, *extra)
        refused(*FROM_EVENTS, *extra)


def test_the_program_reads_a_pipe_and_a_file():
    text = Path("scores.csv").read_text()
    assert process(*READ, "--format", "items", input=text).stdout == "alien\ndune\n"
    with Path("scores.csv").open() as file:
        assert process(*READ, "--format", "items", stdin=file).stdout == "alien\ndune\n"
    with Path("scores.csv").open() as file:
        done = process(*READ, "--out", "scores.csv", stdin=file)
    assert (done.returncode, done.stderr) == (
        2,
        "discreet: out must be another file than the scores, not 'scores.csv'\n",
    )
    assert Path("scores.csv").read_text() == text


def test_a_closed_standard_input_is_named():
    done = process("-c", f'"{sys.executable}" -m discreet {" ".join(READ)} <&-', program=("sh",))
    assert (done.returncode, done.stderr) == (2, "discreet: standard input must be open, but is closed\n")


@pytest.mark.parametrize("step", ["read1", "write"])
def test_a_copy_that_fails_is_a_failure(refused, typed, monkeypatch, step):
    class Failing(io.BytesIO):
        pass

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    setattr(Failing, step, full)
    if step == "read1":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Failing(b"item,score\n")))
    else:
        typed("scores.csv")
        monkeypatch.setattr("builtins.open", lambda number, *_: os.close(number) or Failing())
    sentence = "copying standard input to a temporary file fails: No space left on device"
    assert refused(*READ, code=1) == sentence


def test_a_folder_that_cannot_be_made_is_a_failure(refused, typed, monkeypatch, temporary):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    typed("scores.csv")
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkdtemp", full)
        assert refused(*READ, code=1) == "making a temporary folder fails: No space left on device"


def test_a_copy_that_cannot_be_removed_is_told(refused, typed, monkeypatch, temporary):
    def locked(*_, **__):
        raise OSError(1, "Operation not permitted")

    typed("scores.csv")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", locked)
        sentence = refused(*READ, code=1)
    assert sentence.startswith(f"removing the copy of standard input in '{temporary}/discreet-")
    assert sentence.endswith("' fails: Operation not permitted")
    shutil.rmtree(next(temporary.iterdir()))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 129)]
)
def test_the_copy_is_private_and_goes_with_the_process(temporary, number, code):
    # The tests themselves may run where a hang-up is ignored, which a child would inherit.
    heeded = partial(signal.signal, number, signal.SIG_DFL)
    running = subprocess.Popen(
        [*PROGRAM, *READ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heeded,  # no threads here
    )
    running.stdin.write(b"item,score\nsecret,912345\n" * 10_000)
    running.stdin.flush()
    copy = wait_for_copy(temporary, running)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err.strip()) == (code, b"", b"")


def wait_for_copy(folder, running):
    """The copy of standard input, once it is there."""
    while running.poll() is None:
        if found := list(folder.glob("discreet-*/stdin.csv")):
            return found[0]
        time.sleep(0.01)
    return pytest.fail("the program ended before it read")


def test_signals_that_were_ignored_stay_so(done, typed):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        typed("scores.csv")
        done(*READ)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
