"""The benchmark of the peers: its joint mechanism draws from the law, and its last figures are those of the page."""

import os
import sys
from collections import Counter
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest

import draws
from discreet.evidence import definition

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # its modules know each other by their bare names
import every_engine
import load
import peer_table
import peers
import suite
import timing

ROOT = Path(__file__).parents[2]
SCORES = [1, 4, 0, 4, 2, 1]


def joint_law(scores, k, epsilon):
    return {items: exp(log) for items, log in definition.joint(scores, k, definition.scale(epsilon)).items()}


@pytest.mark.some(2)
@pytest.mark.parametrize("scores", [SCORES, [score + place / 8 for place, score in enumerate(SCORES)]], ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_joint_mechanism_in_numpy_draws_from_its_law(scores, k, monkeypatch):
    monkeypatch.setattr(peers, "_GENERATOR", np.random.default_rng(5))
    exact = [Fraction(score) for score in scores]
    right, wrong = (joint_law(exact, k, epsilon) for epsilon in (2, Fraction(5, 2)))
    n = draws.enough(right, wrong)
    counts, off = (
        Counter(tuple(peers.joint(np.array(scores), k, epsilon).tolist()) for _ in range(n)) for epsilon in (2.0, 2.5)
    )
    assert draws.fits(counts, right)
    assert not draws.fits(off, right)


def test_it_lists_each_item_once_however_many():
    for scores in (np.arange(40), np.full(40, 7), np.arange(40) / 8):
        assert sorted(peers.joint(scores, 40, 1.0).tolist()) == list(range(40))


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_opendp_takes_either_noise_and_kind_of_scores(noise, kind):
    assert len(set(peers.opendp(np.array(SCORES, kind), 3, 1.0, noise)())) == 3


@pytest.fixture
def once(monkeypatch):
    """Everything is measured once, and diffprivlib, which takes long to start, not at all."""
    monkeypatch.setattr(suite, "medians", lambda tasks, repeats, patience: timing.medians(tasks, 1))
    monkeypatch.setattr(peers.Diffprivlib, "is_here", lambda: False)


@pytest.mark.usefixtures("once")
def test_every_peer_has_a_row_for_every_shape():
    found = list(peer_table.rows(suite.Run(scale=50)))
    rows = [row for row in found if isinstance(row, suite.Row)]
    assert peers.NO_DIFFPRIVLIB in found
    assert all(row.measured > 0 for row in rows)
    names = {"plain NumPy", "OpenDP", peer_table.JOINT, "scan in NumPy"}
    compared = Counter(row.unit.removeprefix(peer_table.FASTER) for row in rows if row.at_least)
    shapes, cases = 4, len(peer_table.CASES)
    assert compared == {name: shapes * cases * (1 + (name == peer_table.JOINT)) for name in names}
    aimed = [row for row in rows if row.target is not None]
    assert len(aimed) == 2 * shapes
    assert {(row.unit, row.target) for row in aimed} == {(peer_table.FASTER + "OpenDP", 50)}


@pytest.mark.long
def test_engines_are_compared_with_their_bare_query_and_their_memory_with_a_hundredth(monkeypatch):
    some = {name: every_engine.ENGINES[name] for name in ("DuckDB", "SQLite")}
    monkeypatch.setattr(every_engine, "ENGINES", {**some, "Nowhere": (None, ("no_such_engine",))})
    monkeypatch.setattr(every_engine, "medians", lambda tasks, repeats, patience: timing.medians(tasks, 1))
    found = list(every_engine.rows(suite.Run(scale=100)))
    assert [row.name.split(", ")[1] for row in found[1:6:3]] == [*some]
    assert all(row.measured > 0 for row in found[1:3] + found[4:6])
    assert [row.unit for row in found[:6]] == ["load", "bare queries", "MB"] * 2
    assert found[6:] == ["Nowhere is not measured, because there is no no_such_engine here."]
    only = every_engine.rows(suite.Run(scale=100, engines=("SQLite",)))
    assert [row.name for row in only] == [row.name for row in found[3:6]]


def test_engines_that_are_measured_alone_keep_the_stored_figures_of_the_others(tmp_path):
    here = suite.machine()
    first = suite.Result("engines", here, [suite.Row("one", 1.0, "load"), suite.Row("two", 2.0, "load")], ["a note"])
    first.write(tmp_path)
    again = suite.Result("engines", here, [suite.Row("two", 3.0, "load")], ["a note"]).join(tmp_path)
    assert [(row.name, row.measured) for row in again.rows] == [("one", 1.0), ("two", 3.0)]
    assert again.notes == ["a note"]
    assert suite.Result("start", here).join(tmp_path).rows == []


def test_the_page_has_the_engines_of_the_last_committed_run():
    result = suite.Result.read(every_engine.STORED.read_text(encoding="utf-8"))
    assert every_engine.page_table(result) in (ROOT / "docs/appendix/speed.md").read_text(encoding="utf-8")


def test_the_page_has_the_table_of_the_last_committed_run():
    result = suite.Result.read((ROOT / "benchmarks/results/peers.json").read_text(encoding="utf-8"))
    assert peer_table.page_table(result) in (ROOT / "docs/comparison.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_ledger_is_loaded_by_several_clients(tmp_path):
    row = load.measure("file", str(tmp_path / "budget.db"), 2, 0.2)
    assert row.measured > 0
    assert (row.name, row.unit, row.is_ratio) == ("file, 2 clients", load.RATE, False)


def test_the_page_of_budgets_has_the_load_of_the_last_committed_run():
    result = suite.Result.read((ROOT / "benchmarks/results/load.json").read_text(encoding="utf-8"))
    assert load.page_table(result) in (ROOT / "docs/budget.md").read_text(encoding="utf-8")
