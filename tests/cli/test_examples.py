"""Every command line that a help text shows runs as shown, in a folder with the files that it names."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from command_line import without_notes, write_table
from discreet.cli.app import MODULES
from discreet.cli.budget import EXAMPLES
from discreet.evidence import audit, verify
from discreet.study.tasks import study_tasks

COMMANDS = [(), *((name,) for name in MODULES), *(("budget", name) for name in EXAMPLES)]
MANY = {f"film {i}": 1000 - 8 * i for i in range(120)}


CHARTS = """
title = "Movies"
ledger = "budget.db"
out = "site"
[[chart]]
id = "movies"
title = "Movies"
events = { table = "ratings.parquet", user = "user_id", item = "movie_id" }
domain = "movies.csv:movie_id"
k = 3
epsilon = 1
"""


def examples(text):
    """The command lines under each heading that says so."""
    blocks = re.findall(r"^  Examples.*:\n((?:    .+\n?)+)", text, re.MULTILINE)
    return [line.strip() for block in blocks for line in re.sub(r" \\\n +", " ", block).splitlines()]


@pytest.fixture
def files(ratings, monkeypatch):
    """What the examples name."""
    write_table("scores.csv", ("item", "score"), MANY)
    write_table("public.csv", ("item", "score"), MANY)
    write_table("films.csv", ("title", "fans"), MANY)
    write_table("points.tsv", ("item", "score"), MANY, "\t")
    Path("scores.json").write_text(json.dumps(MANY))
    pa.parquet.write_table(pa.table({"item": list(MANY), "score": list(MANY.values())}), "scores.parquet")
    np.save("counts.npy", np.arange(120))
    table = pa.parquet.read_table("ratings.parquet")
    days = pa.array([datetime(2026, 1 + i % 12, 1) for i in range(len(table))])
    table = table.append_column("country", pa.array(["DE", "FR", "XX"] * len(table)).slice(0, len(table)))
    pa.parquet.write_table(table.append_column("rated_at", days), "ratings.parquet")
    Path("countries.csv").write_text("code\nDE\nFR\nIT\n")
    Path("ratings.csv.gz").write_bytes(gzip.compress(Path("ratings-1.csv").read_bytes()))
    Path("visits.csv").write_text('visitor;page\n1;"a \\"b\\"; c"\n2;d\n')
    Path("pages.csv").write_text('page\n"a \\"b\\"; c"\nd\ne\nf\n')
    errors = [f"error {i % 30}" for i in range(18_000)]
    pa.parquet.write_table(pa.table({"device": list(range(18_000)), "message": errors}), "logs.parquet")
    Path("charts.toml").write_text(CHARTS)
    Path("curve.json").write_text(discreet.sketch(list(MANY.values()), 1).to_json())
    Path("vectors").mkdir()
    np.save("vectors/TEN.n10.npy", np.arange(10))
    np.save("vectors/FIFTY.n50.npy", np.arange(50))


@pytest.fixture
def quick(monkeypatch):
    """Of what takes long, the quickest pieces alone, which are done for real."""
    plan, audited = verify.plan, audit.audit

    def few(*args, **options):
        # A mechanism, and lists by group where all is verified.
        first, *rest = plan(*args, **options)
        return [replace(task, trials=task.trials[:1]) for task in (first, *rest[-1:])]

    def short(*args, **options):
        assert options["draws"] >= 1000
        return audited(*args, **{**options, "draws": 200, "confidence": "0.9999999999"})

    monkeypatch.setattr(verify, "plan", few)
    monkeypatch.setattr(audit, "audit", short)
    monkeypatch.setattr("discreet.study.tasks.study_tasks", lambda vectors, full: study_tasks(vectors, full)[-3:])


SLOW = [("plan",), ("study",), ("verify",)]
"""Commands that compute for seconds."""


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=pytest.mark.long) if each in SLOW else each for each in COMMANDS],
    ids=" ".join,
)
def test_the_help_ends_with_examples_that_run(done, files, quick, command):
    text = done(*command, "--help")
    found = examples(text)
    assert text.rstrip().replace("\\\n", " ").split()[-1] == found[-1].split()[-1]
    own = f"discreet {' '.join(command)}".strip()
    # A budget has to be there before it is shown, and must not be there before it is made.
    if command in (("select",), ("sketch",), ("publish",), *(("budget", name) for name in EXAMPLES if name != "init")):
        discreet.Ledger.create("budget.db", epsilon=10, unit="users")
    if command == ("statement",):
        book = discreet.Ledger.create("budget.db", epsilon=10, unit="users")
        Path("top.json").write_text(discreet.top_k(MANY, k=3, epsilon=1, ledger=book).to_json())
        Path("answers.json").write_text(json.dumps({"basic.name": "Most watched"}))
    if command in (("publish correct",), ("publish withdraw",)):
        discreet.Ledger.create("budget.db", epsilon=10, unit="users")
        done("publish", "charts.toml", "--yes")
    for example in found:
        assert own in example
        if "reopen" in example:
            lock(discreet.Ledger("budget.db"))
        if re.search("[|<>] ", example):
            in_a_shell(example)
        else:
            assert done(*shlex.split(example)[1:]) or "--out" in example, example


def lock(ledger):
    """Charges a release, and locks the ledger as a fault of discreet would."""
    discreet.top_k(MANY, k=3, epsilon=1, ledger=ledger)
    with ledger._store.read(0.0) as chain:
        charge = next(record for record in chain.records() if record.kind == "charge")
    ledger.lock(charge)


def in_a_shell(line):
    """Runs a line with pipes."""
    folder = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": os.pathsep.join([folder, os.environ["PATH"]])}
    shell = ["bash", "-o", "pipefail", "-c", line]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, without_notes(done.stderr)) == (0, ""), line
    assert done.stdout or "> " in line


def test_every_example_is_found(done):
    """The lines that were found are all that call the program."""
    for command in COMMANDS:
        text = done(*command, "--help")
        below = text[text.index("Examples") :]
        assert len(examples(text)) == len(re.findall(r"(?:^    |\| )discreet ", below, re.MULTILINE)), command


@pytest.mark.long
def test_the_examples_of_select_do_what_they_say(done, files):
    discreet.Ledger.create("budget.db", epsilon=1, unit="users")
    found = [example for example in examples(done("select", "--help")) if not re.search("[|<>] ", example)]
    assert len(found) == 23
    for example in found:
        out, k = done(*shlex.split(example)[1:]), int(re.search(r"-k (\d+)", example)[1])
        if "--mechanism core" in example:
            # How many they are is what it finds out.
            assert re.search(r"^Top \d+ of 120 items", out)
            continue
        assert shown_k(out, example) == k
        if "--out" in example:
            assert discreet.Release.from_json(Path("top.json").read_text()).k == k
    assert len(discreet.Ledger("budget.db").history()) == 1


def shown_k(out, example):
    """How many items a release has, or each group of it, by what was printed."""
    if "--json" in example:
        kind = discreet.GroupedRelease if "--by" in example else discreet.Release
        return kind.from_json(out).k
    if "--format csv" in example:
        return (len(out.splitlines()) - 1) // 12
    return int(re.match(r"Top (\d+) of ", out)[1])
