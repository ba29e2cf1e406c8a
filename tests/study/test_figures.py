"""The figures of a study as files: a picture and its rows for each, and the tables."""

import csv
import xml.etree.ElementTree as ElementTree

import pytest

from discreet.study.curves import Results
from discreet.study.run import write_figures
from study_rows import METHODS, curve, study

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "new" / "figures"
    write_figures(study(), folder)
    return folder


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_vector_and_k_has_a_picture_and_rows(tmp_path):
    names = [path.name for path in write_figures(study(), tmp_path)]
    stems = [
        "methods-ALPHA-k10",
        "methods-ALPHA-k100",
        "methods-_b_Beta_-k10",
        "shapes-ZIPF-k10",
        "canonical-noises-ALPHA-k10",
        "gammas-ALPHA-k10",
    ]
    expected = [f"{stem}.{kind}" for stem in stems for kind in ("svg", "csv")]
    assert names == [*expected, "budgets.csv", "times.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.long
def test_a_picture_shows_all_goals_and_methods(folder):
    root = ElementTree.parse(folder / "methods-_b_Beta_-k10.svg").getroot()  # noqa: S314  # our own file
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert set(METHODS) <= set(texts)
    assert "<b>&\"Beta', 1,000 items, k = 10" in texts
    assert [text[: text.index(":")] for text in texts if ":" in text] == ["TOP", "GREAT", "GOOD"]
    assert texts.count("epsilon") == texts.count("probability") == 3


@pytest.mark.long
def test_without_pictures_the_rows_are_written_all_the_same(folder, tmp_path):
    paths = write_figures(study(), tmp_path, draw=False)
    assert {path.suffix for path in paths} == {".csv"}
    assert all(path.read_bytes() == (folder / path.name).read_bytes() for path in paths)


def test_rows_are_the_points(folder):
    found = rows(folder / "gammas-ALPHA-k10.csv")
    points = [point for point in study().points if point.figure == "gammas"]
    assert [(row["method"], float(row["x"]), float(row["probability"])) for row in found] == [
        (point.method, point.x, point.probability) for point in points
    ]


def test_tables_are_the_rows(folder):
    assert len(rows(folder / "budgets.csv")) == len(study().budgets)
    assert rows(folder / "times.csv")[-1]["growth"] == "d & k"


def test_names_that_look_alike_stay_apart(tmp_path):
    points = [point for vector in ("a b", "A/b", "a_b") for point in curve("methods", vector, 1, "m", 1)]
    paths = write_figures(Results(points, [], []), tmp_path)
    assert [path.name for path in paths[::2]] == ["methods-a_b-k1.svg", "methods-A_b-k1-2.svg", "methods-a_b-k1-3.svg"]
