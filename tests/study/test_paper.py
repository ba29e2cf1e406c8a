"""The figures of docs/paper.md are what the library computes, where the paper's score vectors are at hand."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.analysis import JointOverSets
from discreet.study.vectors import make_vectors

PAGE = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[3] / "shared" / "datasets"))
COLUMNS = (
    discreet.Canonical(gamma=1),
    discreet.OneShot(),
    discreet.Peeling(),
    discreet.Joint(),
    JointOverSets(),
)


def row(name, k):
    """The figures of one line of the table: canonical's epsilon, and what the others need of it."""
    section = PAGE.split(f"| {name} | 10 |")[1]
    line = f"| {name} | 10 |" + section if k == 10 else section.split(f"\n| | {k} |")[1]
    cells = re.findall(r"[\d.]+|-", line.split("\n")[0].removeprefix(f"| {name} | 10 |"))
    return [float(cell) for cell in cells if cell != "-"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("name", "k"), [("NETFLIX", 10), ("HEPTH", 10), ("MEDCOST", 10), ("NETFLIX", 100)])
def test_the_budgets_are_what_the_page_says(name, k):
    files = list(DATA.glob(f"{name}.n*.npy"))
    if not files:
        pytest.skip(f"the scores {name} are not in {DATA.name} (set DISCREET_DATA to their folder)")
    scores = np.load(files[0])
    printed = row(name, k)
    canonical = discreet.epsilon_for(scores, k, probability="0.9", mechanism=discreet.Canonical(gamma="1/2"))
    assert float(canonical) == pytest.approx(printed[0], rel=0.006)
    # At k = 100 the joint mechanism takes longer than a test should.
    for mechanism, ratio in zip(COLUMNS[: 5 if k == 10 else 3], printed[1:], strict=False):
        needed = discreet.epsilon_for(scores, k, probability="0.9", mechanism=mechanism)
        assert float(needed / canonical) == pytest.approx(ratio, rel=0.006), mechanism


def test_the_commands_and_the_links_are_there():
    from discreet.study.curves import FIGURES
    from discreet.study.run import PAGE as NAME

    assert f"report/{NAME}" in PAGE
    for figure in re.findall(r"`([a-z-]+)-(?:NETFLIX|ZIPF)", PAGE):
        assert figure in FIGURES
    for link in re.findall(r"\]\((\w+\.md)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / link).exists()


@pytest.fixture
def gammas(monkeypatch):
    """The script that prints the tables of gammas."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import gammas

    return gammas


@pytest.mark.parametrize("goal", ["top", "recall"])
def test_the_table_of_gammas_is_what_the_script_prints(gammas, goal):
    page = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")
    tables = dict(zip(("top", "recall"), page.split("The epsilon that canonical needs for ")[1:], strict=True))
    [vector] = make_vectors(["LONGTAIL"])
    needs = [gammas.need(vector, 10, gamma, goal) for gamma in gammas.GAMMAS]
    row = gammas.table({("LONGTAIL", 10): needs}).splitlines()[2]
    assert row in tables[goal].splitlines()
    assert tables[goal].startswith(gammas.TARGETS[goal])


def test_the_script_says_where_the_papers_vectors_are_not_there(gammas, capsys, tmp_path):
    assert gammas.load_papers(tmp_path / "nowhere") == []
    assert "The paper's vectors are not in nowhere" in capsys.readouterr().out
    [steps] = make_vectors(["STEPS"])
    assert gammas.need(steps, 10, "3/4", "top") is None
