"""What a study takes beside folders of vectors: a file of scores, a sketch, and samplers of one's own."""

import csv
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.analysis.meters import Precision
from discreet.study import tasks
from discreet.study.curves import reader
from discreet.study.run import KEPT, study
from discreet.study.tasks import METHODS, Task, study_tasks
from discreet.study.vectors import Vector, load_vectors

SCORES = (2e3 / np.arange(1, 41)).astype(np.int64)
SMALL = Vector("SMALL", SCORES)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "films.csv"
    file.write_text("title,fans,other\n" + "".join(f"film {i},{score},1\n" for i, score in enumerate(SCORES)))
    return file


@pytest.fixture
def few(monkeypatch):
    """Fewer vectors, sizes and methods than a study has."""
    monkeypatch.setattr(tasks, "SIZES", (3,))
    monkeypatch.setattr(tasks, "NOISES", {})
    monkeypatch.setattr(tasks, "_GAMMAS", {})
    monkeypatch.setattr(tasks, "_of_zipf", lambda k, name: iter(()))
    for name in list(METHODS):
        if name not in ("canonical, gamma = 1/2", "canonical, gamma = 3/4"):
            monkeypatch.delitem(METHODS, name)


def draw(scores, k, epsilon, rng):
    return np.argsort(scores + rng.gumbel(scale=k / epsilon, size=len(scores)))[-k:]


def test_a_file_of_scores_is_a_vector(table, tmp_path):
    [vector] = load_vectors(table, [], "title", "fans")
    assert (vector.name, vector.d, vector.is_whole) == ("films", 40, True)
    assert (vector.scores == SCORES).all()
    assert load_vectors(table, ["films"], "title", "fans")[0].fingerprint == vector.fingerprint
    (tmp_path / "tenths.csv").write_text("item,score\na,0.1\nb,0.3\nc,0.2\n")
    [tenths] = load_vectors(tmp_path / "tenths.csv")
    assert tenths.scores.tolist() == [0.1, 0.3, 0.2]
    assert not tenths.is_whole
    (tmp_path / "list.json").write_text("[5, 3, 9]")
    assert load_vectors(tmp_path / "list.json")[0].scores.tolist() == [5, 3, 9]


def test_a_study_of_a_csv_says_what_utility_says(table, few, done, tmp_path):
    out = tmp_path / "report"
    done("study", "--data", str(table), "--item", "title", "--score", "fans", "--out", str(out), "--quiet")
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "<strong>Not private.</strong>" in page
    with (out / "budgets.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["probability"] == "0.9"]
    assert {(row["vector"], row["d"], row["k"], row["method"]) for row in rows} == {
        ("films", "40", "3", name) for name in METHODS
    }
    for row in rows:
        needed = discreet.epsilon_for(SCORES, 3, probability="0.9", mechanism=METHODS[row["method"]])
        assert float(row["epsilon"]) == pytest.approx(float(needed), rel=2e-3)


def test_a_study_without_matplotlib_has_all_but_pictures(table, few, call, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.release.theme.find_spec", lambda name: None)
    given = ("study", "--data", str(table), "--item", "title", "--score", "fans", "--out")
    with pytest.raises(ImportError, match="pictures need matplotlib"):
        study([], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    code, _, err = call(*given, str(tmp_path / "report"))
    assert code == 0
    assert err.startswith(
        'discreet: pictures need matplotlib, which the extra "plot" of discreet installs: pip install '
    )
    assert err.endswith("; the study goes on without them\n")
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {"index.html", "study.jsonl", "methods-films-k3.csv", "budgets.csv", "times.csv"}
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "cheapest" in page
    assert "<img" not in page


def test_a_study_of_a_sketch_has_its_sensitivity_and_says_what_it_cost(few, tmp_path):
    limit = discreet.Sensitivity(0, 3)
    sketch = discreet.sketch(SCORES, epsilon=1000, sensitivity=limit, adjacency="swap")
    file = tmp_path / "curve.json"
    file.write_text(sketch.to_json())
    [vector] = load_vectors(file)
    assert vector.scores == sketch
    assert vector.limit == limit.under("swap")
    pieces = study_tasks([vector], full=False)
    assert {piece.figure for piece in pieces} == {"methods"}
    found = pieces[0].compute()
    for point in found.points[::4]:
        exact = discreet.utility(sketch, 3, Fraction(point.x), pieces[0].mechanism)
        assert point.probability == pytest.approx(getattr(exact, point.goal), abs=1e-6)
    files = study(pieces, tmp_path / "report")
    page = files[0].read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "Not private" not in page
    assert "epsilon = 1000" in page


@pytest.mark.long
def test_a_sampler_stands_beside_what_is_computed_with_its_intervals(few, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "_DRAWN", Precision(width=Fraction(1, 5)))
    mine = discreet.Sampler("mine", lambda *given: draw(*given))
    pieces = study_tasks([SMALL], full=False, samplers=[mine])
    assert [piece.method for piece in pieces if piece.is_own] == ["mine"]
    files = study(pieces, tmp_path / "report", jobs=2)
    [picture] = [file.read_text(encoding="utf-8") for file in files if file.suffix == ".svg"]
    assert "FillBetween" in picture
    assert ">mine</text>" in picture
    own = Task("methods", SMALL, 3, "mine", mine).compute()
    assert own.budgets == []
    points = [point for point in own.points if point.goal == "recall"]
    assert len(points) >= 4
    read = reader(SMALL.tally, 3, discreet.OneShot("gumbel"), Precision(goal=1e-3), ("recall",))
    for point in points:
        recall = read(point.x).values["recall"]
        assert 0.01 < point.error < 0.2
        # Each point is covered with confidence 0.99, and all with 0.9 or so: twice the interval leaves no doubt.
        assert abs(point.probability - recall) < 2 * point.error


@pytest.mark.long
def test_a_sampler_is_drawn_anew_each_time(few, tmp_path, monkeypatch):
    """Another function may have the same title."""
    monkeypatch.setattr(tasks, "_DRAWN", Precision(width=Fraction(2, 5)))
    study(study_tasks([SMALL], False, [discreet.Sampler("mine", draw)]), tmp_path)
    begun = (tmp_path / KEPT).read_text().count("\n")
    first = discreet.Sampler("mine", lambda scores, k, epsilon, rng: np.argsort(scores)[-k:])
    study(study_tasks([SMALL], False, [first]), tmp_path)
    lines = (tmp_path / KEPT).read_text().splitlines()
    assert len(lines) == begun + 1
    assert '"probability": 1.0' in lines[-1]
    assert "Sampler('mine')" in lines[-1]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--data", "nowhere.csv"], "data must be a directory with files NAME.nD.npy, a file of scores or a sketch"),
        (["--data", "{table}", "--item", "title", "--score", "votes"], "score must name a column"),
        (["--data", "{table}", "other", "--item", "title", "--score", "fans"], "names must be of films, not 'other'"),
        (["--data", "{folder}", "--item", "title"], "item must be left out where data is a directory"),
        (["--item", "title"], "item must be left out without data: made-up vectors have no columns"),
    ],
)
def test_wrong_data_is_one_line(given, complaint, table, refused, tmp_path):
    words = [word.format(table=table, folder=tmp_path) for word in given]
    assert complaint in refused("study", *words, "--out", str(tmp_path / "report"))


def test_titles_are_not_those_of_others():
    for titles in (["canonical, gamma = 1"], ["mine", "mine"]):
        with pytest.raises(ValueError, match="samplers must have titles of their own"):
            study_tasks([SMALL], False, [discreet.Sampler(title, draw) for title in titles])
