"""Every script of the gallery runs, prints a release that makes sense, and draws its picture and its thumbnail."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import discreet
from site_pages import DOCS, ROOT, run

GALLERY = ROOT / "examples" / "gallery"
PRINTED = {
    "movies": [
        "Top 20 of 400 items",
        "Privacy: epsilon 0.05 for each person",
        " of these are among the 20 most watched",
    ],
    "words": [
        "Privacy: epsilon 1 (0.6867 for finding the items, 0.3134 for the selection) and delta 1e-08 for each person",
        f"Top 30 of {sum(26**n for n in range(1, 14)):,} items",
        " of these are among the 30 most searched",
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
    "labour": [
        "Top 5 of 60 items in each of 4 groups by region",
        "Top 5 of 22 items in each of 4 groups by region",
        "spent 3/2 of 6 in 6 releases",
        " of these are among the 5 of their list",
    ],
    "assistant": ["Top 10 of 25 items", "Privacy: epsilon 1 (0.5 for", " of these are among the 10 that most people"],
    "errors": ["Top 8 of 300 items", "month 3: refused. epsilon 0.5 does not fit", " of 1 in 2 releases"],
}
FOUND = {
    "movies": 10, "words": 27, "features": 7, "charts": 50, "messages": 12, "errors": 1, "labour": 100, "assistant": 9,
}  # fmt: skip
"""At least so many; fewer have a chance below one in a million, by `discreet.class_probabilities`."""


SVG = "{http://www.w3.org/2000/svg}"


def test_every_script_is_known_and_has_a_page():
    assert {script.stem for script in GALLERY.glob("*.py")} == {*PRINTED, "picture"}
    assert {page.stem for page in (DOCS / "gallery").glob("*.md")} == {*PRINTED, "index"}


def test_every_page_shows_the_call_the_picture_the_list_and_the_script():
    for name in PRINTED:
        page = (DOCS / "gallery" / f"{name}.md").read_text(encoding="utf-8")
        shown = re.findall(r'--8<-- "([^"]+)"|\]\(\.\./(pictures/[^)]+)\)', page)
        assert ["".join(each) for each in shown] == [
            f"examples/gallery/{name}.py:release",
            f"pictures/{name}.svg#only-light",
            f"pictures/{name}-dark.svg#only-dark",
            f"docs/pictures/{name}.txt",
            f"examples/gallery/{name}.py",
        ]
        section = (GALLERY / f"{name}.py").read_text(encoding="utf-8").partition("# --8<-- [start:release]\n")[2]
        assert "discreet.top_k(" in section.partition("# --8<-- [end:release]\n")[0]


def test_every_story_has_a_card_with_its_thumbnail_and_its_title():
    index = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    card = (
        r"^- !\[\]\(\.\./pictures/(\w+)-small\.svg#only-light\)!\[\]\(\.\./pictures/(\w+)-small-dark\.svg#only-dark\)"
        r"\n\n    \*\*\[(.+)\]\((\w+)\.md\)\*\*\n\n    (.+\?)\n\n    (.+)$"
    )
    cards = re.findall(card, index, re.MULTILINE)
    assert sorted(name for _, _, _, name, _, _ in cards) == sorted(PRINTED)
    for light, dark, title, name, _, _ in cards:
        assert light == dark == name
        assert (DOCS / "gallery" / f"{name}.md").read_text(encoding="utf-8").startswith(f"# {title}\n")


def test_the_numbers_of_popular_searches_are_computed():
    page = (DOCS / "gallery" / "words.md").read_text(encoding="utf-8")
    assert "a word needs about 52 people" in page
    assert discreet.discovered(delta="1e-8").plan(k=30, epsilon=1).threshold == 52
    assert "more than 1,610 people" in page
    strings = sum(26**n for n in range(1, 14))
    assert 1600 < discreet.bounds.canonical_tail(strings, 30, epsilon=1, alpha="0.05") <= 1610


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name == "features" else pytest.param(name, marks=pytest.mark.long) for name in PRINTED]
)
def test_a_script_runs_prints_and_draws(name, tmp_path):
    printed = run(sys.executable, GALLERY / f"{name}.py", tmp_path / "pictures", folder=tmp_path)
    assert [part for part in PRINTED[name] if part not in printed] == []
    assert int(re.search(rf"(\d+){PRINTED[name][-1]}", printed)[1]) >= FOUND[name]
    drawn = {f"{name}{size}{tone}.svg" for size in ("", "-small") for tone in ("", "-dark")}
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == drawn
    pictures = {path: ElementTree.parse(tmp_path / "pictures" / path).getroot() for path in drawn}  # noqa: S314
    assert {picture.tag for picture in pictures.values()} == {f"{SVG}svg"}
    assert len(list(pictures[f"{name}.svg"].iter(f"{SVG}path"))) > 20
    # A thumbnail shows no words: matplotlib draws each as a group of its own.
    words = {path: [e for e in one.iter() if e.get("id", "").startswith("text_")] for path, one in pictures.items()}
    assert {path for path in drawn if words[path]} == {f"{name}.svg", f"{name}-dark.svg"}


@pytest.mark.slow
def test_without_a_folder_a_script_only_prints(tmp_path):
    without = {"PYTHONWARNINGS": "error", "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"}
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not needed to print')")
    printed = run(sys.executable, GALLERY / "features.py", folder=tmp_path, environment=without)
    assert "Top 8 of 200 items" in printed
