"""A study from vectors to page: what its pieces find, that it goes on where it stopped, and its command."""

import json
import math
import re
import shlex
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.analysis.meters import Precision
from discreet.study.curves import PROBABILITIES, trace_curve
from discreet.study.run import KEPT, Store, gather_results, study, summarise
from discreet.study.tasks import METHODS, Task, study_tasks
from discreet.study.vectors import ZIPF_TOTAL, Vector, load_vectors, make_vectors, zipf

SMALL = Vector("SMALL", (2e3 / np.arange(1, 61)).astype(np.int64))


def pieces(figures=("methods",), k=5):
    return [Task(figure, SMALL, k, name, METHODS[name]) for figure in figures for name in METHODS]


@pytest.mark.parametrize(
    "method",
    # Their integrals take seconds, and the tests of utility hold them against enumeration.
    [name if "canonical" in name else pytest.param(name, marks=pytest.mark.long) for name in METHODS],
)
def test_a_curve_shows_its_rise_and_is_what_utility_says(method):
    results = Task("methods", SMALL, 5, method, METHODS[method]).compute()
    for goal in ("top", "great", "good"):
        points = [point for point in results.points if point.goal == goal]
        chances = [point.probability for point in points]
        assert [point.x for point in points] == sorted(point.x for point in points)
        assert chances == pytest.approx(sorted(chances), abs=2e-3)
        assert chances[0] < 0.01 < 0.99 < chances[-1]
        assert max(np.diff(chances)) <= 0.21
    for point in results.points[::5]:
        exact = discreet.utility(SMALL.scores, 5, point.x, METHODS[method])
        assert point.probability == pytest.approx(getattr(exact, point.goal), abs=point.error + exact.error + 1e-9)
    assert [budget.probability for budget in results.budgets] == list(PROBABILITIES)
    for budget in results.budgets:
        exact = discreet.utility(SMALL.scores, 5, budget.epsilon, METHODS[method]).top
        assert exact == pytest.approx(budget.probability, abs=2e-3)


def test_ties_that_no_epsilon_breaks_end_a_curve():
    tied = Vector("TIED", np.array([9, 5, 5, 1, 0]))
    curve = trace_curve(tied.tally, 2, discreet.Canonical(), Precision(), 1.0)
    assert max(shares.values["top"] for shares in curve.shares.values()) == pytest.approx(0.5, abs=0.01)
    assert 0.9 not in curve.crossings


@pytest.mark.slow
def test_the_other_figures_have_points(monkeypatch):
    # Fewer draws than a study makes.
    monkeypatch.setattr(discreet.study.tasks, "_DRAWN", Precision(width=Fraction(2, 5)))
    noisy = Task("canonical-noises", SMALL, 5, "laplace", discreet.Canonical(noise="laplace")).compute()
    assert {point.error > 0.005 for point in noisy.points} == {True}
    known = Task("canonical-noises", SMALL, 5, "gumbel", discreet.Canonical()).compute()
    assert max(point.error for point in known.points) < 1e-6
    for figure in ("gammas", "flat"):
        assert len(Task(figure, SMALL, 5, "any", discreet.Canonical()).compute().points) > 10
    shapes = Task("shapes", SMALL, 10, "canonical", discreet.Canonical()).compute().points
    tops = {point.x: point.probability for point in shapes if point.goal == "top"}
    assert list(tops) == sorted(tops)
    assert {0.0, 0.01, 0.02, 0.06, 1.0} <= set(tops)
    # What is left of a step is narrower than a chart can show, on a logarithmic axis too.
    rising = [(x, top) for x, top in tops.items() if x > 0]
    assert all(high - low <= 0.3 or end < 1.007 * begin for (begin, low), (end, high) in pairwise(rising))
    assert rising[0][1] < 0.01
    assert Task("times", SMALL, 5, "canonical", discreet.Canonical()).compute().times[0].seconds > 0


@pytest.mark.long
def test_what_was_done_is_not_done_again(tmp_path, monkeypatch):
    tasks = pieces()
    files = study(tasks[:3], tmp_path)
    before = Store(tmp_path / KEPT)
    assert all(before.get(task.key) is not None for task in tasks[:3])
    done = []
    real = Task.compute
    monkeypatch.setattr(Task, "compute", lambda task: done.append(task.method) or real(task))
    assert study(tasks, tmp_path)[0] == files[0]
    assert done == [task.method for task in tasks[3:]]
    study(tasks, tmp_path)
    assert len(done) == len(tasks) - 3


def test_a_line_that_was_cut_short_is_done_again(tmp_path):
    task = pieces()[0]
    study([task], tmp_path)
    kept = tmp_path / KEPT
    whole = kept.read_text()
    kept.write_text(whole[:-40])
    assert Store(kept).get(task.key) is None
    study([task], tmp_path)
    assert Store(kept).get(task.key) == Store(kept).get(task.key)
    assert json.loads(kept.read_text().splitlines()[-1]) == json.loads(whole)
    kept.write_text(whole.replace(f'"{discreet.__version__}, ', '"0.0.0, '))
    assert Store(kept).get(task.key) is None


def test_two_processes_find_what_one_finds(tmp_path):
    tasks = pieces()[:2]
    study(tasks, tmp_path / "one")
    study(tasks, tmp_path / "two", jobs=2)
    one, two = (Store(tmp_path / name / KEPT) for name in ("one", "two"))
    assert [one.get(task.key) for task in tasks] == pytest.approx([two.get(task.key) for task in tasks])


def test_the_page_and_the_tables_have_what_was_found(tmp_path):
    drawn = [task for task in pieces(("times",)) if task.method != "joint, sets"]
    files = study(pieces() + drawn, tmp_path)
    names = {file.name for file in files}
    assert names == {"index.html", "methods-SMALL-k5.svg", "methods-SMALL-k5.csv", "budgets.csv", "times.csv"}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.search(r"(Canonical|Joint) was cheapest in 1 of 1 case", page)
    assert "joint, sets" in page
    rows = (tmp_path / "budgets.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * len(METHODS)


@pytest.mark.long
def test_budgets_are_multiples_of_canonicals():
    results = gather_results([task.compute() for task in pieces() if "joint" not in task.method])
    base = {row.probability: row.epsilon for row in results.budgets if row.method == "canonical, gamma = 1/2"}
    for row in results.budgets:
        assert row.ratio == pytest.approx(row.epsilon / base[row.probability])
    told = summarise(results)
    assert told[0].startswith("Canonical was cheapest in 1 of 1 case: ")
    assert any(re.match(r"Peeling took [\d.]+ times as much at k = 5\.", note) for note in told)


def test_the_plan_of_a_study_covers_what_the_paper_has():
    vectors = make_vectors([])
    tasks = study_tasks(vectors, full=False)
    assert {task.figure for task in tasks} == {
        "methods", "shapes", "flat", "noises", "canonical-noises", "gammas", "times",
    }  # fmt: skip
    assert {task.k for task in tasks if task.figure == "methods"} == {10, 100, 1000}
    assert {task.k for task in tasks if task.figure == "noises"} == {1, 10, 100, 1000}
    assert len({task.key for task in tasks}) == len(tasks)
    drawn = [task.vector.name for task in study_tasks(vectors, full=True) if task.figure == "canonical-noises"]
    assert set(drawn) == {vector.name for vector in vectors}


def test_vectors_are_read_by_name_and_made_up_without(tmp_path):
    np.save(tmp_path / "B.n3.npy", np.array([3, 2, 1]))
    np.save(tmp_path / "A.n2.npy", np.array([0.5, 1.5]))
    assert [vector.name for vector in load_vectors(tmp_path, [])] == ["A", "B"]
    assert load_vectors(tmp_path, ["B"])[0].d == 3
    assert zipf(0.5).scores.sum() == pytest.approx(ZIPF_TOTAL)
    assert math.isclose(zipf(1.0).scores[0] / zipf(1.0).scores[9], 10.0)
    assert len({vector.fingerprint for vector in make_vectors([])}) == 3


@pytest.mark.parametrize(
    ("names", "files", "complaint"),
    [
        ([], {}, "and .* has none"),
        (["C"], {"A.n2.npy": np.arange(2)}, "names must be of A, not 'C'"),
        ([], {"A.n2.npy": np.zeros((2, 2))}, "vectors of two finite numbers or more"),
        ([], {"A.n2.npy": np.array([np.nan, 1.0])}, "vectors of two finite numbers or more"),
        ([], {"A.n2.npy": None}, "files of NumPy arrays, and 'A.n2.npy' is none"),
        ([], {"A.n2.npy": b""}, "files of NumPy arrays, and 'A.n2.npy' is none"),
        ([], {"A.n2.npy": np.arange(2), "A.n3.npy": np.arange(3)}, "one file a name"),
    ],
)
def test_bad_vectors_are_one_sentence(names, files, complaint, tmp_path):
    for name, array in files.items():
        if array is None or isinstance(array, bytes):
            (tmp_path / name).write_bytes(b"no array" if array is None else array)
        else:
            np.save(tmp_path / name, array)
    with pytest.raises(discreet.Error, match=complaint):
        load_vectors(tmp_path, names)


def test_the_command_complains_in_one_line(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert refused("study", "--out", str(tmp_path / "file")).startswith("out must be a directory")
    assert refused("study", "NONE", "--out", str(tmp_path)).startswith("names must be of LONGTAIL, GENTLE, STEPS")
    assert refused("study", "--out", str(tmp_path), "--jobs", "0").startswith("jobs must be from 1 to 256")
    assert refused("study", "--out", str(tmp_path), "--data", str(tmp_path / "no")).startswith(
        "data must be a directory"
    )


@pytest.mark.long
def test_the_examples_in_the_help_run(done, tmp_path, monkeypatch):
    """With the quickest pieces of a study alone, which are done for real."""
    monkeypatch.chdir(tmp_path)
    Path("vectors").mkdir()
    np.save("vectors/TEN.n10.npy", np.arange(10))
    np.save("vectors/FIFTY.n50.npy", SMALL.scores[:50])
    Path("films.csv").write_text(
        "title,fans\n" + "".join(f"film {i},{score}\n" for i, score in enumerate(SMALL.scores))
    )
    monkeypatch.setattr("discreet.study.tasks.study_tasks", lambda vectors, full: study_tasks(vectors, full)[-3:])
    lines = map(str.strip, done("study", "--help").splitlines())
    found = [shlex.split(line)[1:] for line in lines if line.startswith("discreet ")]
    assert len(found) == 4
    for arguments in found:
        assert done(*arguments).startswith("wrote report/index.html and ")
    assert Path("report/index.html").exists()
