"""Every script of the gallery runs, prints a release that makes sense, and draws its picture."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from site_pages import DOCS, ROOT, run

GALLERY = ROOT / "examples" / "gallery"
PRINTED = {
    "movies": [
        "Top 20 of 400 items",
        "Privacy: epsilon 0.05 for each person",
        " of these are among the 20 most watched",
    ],
    "words": [
        f"top 12 of {sum(26**n for n in range(1, 14)):,} possible",
        "epsilon = 1 for one person",
        " of these are the 12 most searched",
    ],
    "features": ["Top 8 of 200 items", "Privacy: epsilon 0.2 for each person", " of these are among the 8 best"],
    "charts": [
        "Top 5 of 36 items in each of 12 groups by country and month",
        "JP, 2026-03",
        " of these are among the 5",
    ],
    "messages": [
        "Before anything is read: An item that fewer than about ",
        "and 0 of them are released",
        " of these are the 12 that most devices wrote",
    ],
    "errors": ["Top 8 of 300 items", "month 3: refused. epsilon 0.5 does not fit", " of 1 in 2 releases"],
}
FOUND = {"movies": 10, "words": 12, "features": 7, "charts": 50, "messages": 12, "errors": 1}
"""At least so many; fewer have a chance below one in a million, by `discreet.class_probabilities`."""


def test_every_script_is_known_and_has_a_page():
    assert {script.stem for script in GALLERY.glob("*.py")} == {*PRINTED, "picture"}
    assert {page.stem for page in (DOCS / "gallery").glob("*.md")} == {*PRINTED, "index"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name == "features" else pytest.param(name, marks=pytest.mark.long) for name in PRINTED]
)
def test_a_script_runs_prints_and_draws(name, tmp_path):
    printed = run(sys.executable, GALLERY / f"{name}.py", tmp_path / "pictures", folder=tmp_path)
    assert [part for part in PRINTED[name] if part not in printed] == []
    assert int(re.search(rf"(\d+){PRINTED[name][-1]}", printed)[1]) >= FOUND[name]
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {f"{name}.svg", f"{name}-dark.svg"}
    picture = ElementTree.parse(tmp_path / "pictures" / f"{name}.svg").getroot()  # noqa: S314  # our own file
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) > 20


@pytest.mark.slow
def test_without_a_folder_a_script_only_prints(tmp_path):
    without = {"PYTHONWARNINGS": "error", "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"}
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not needed to print')")
    printed = run(sys.executable, GALLERY / "features.py", folder=tmp_path, environment=without)
    assert "Top 8 of 200 items" in printed
