"""`discreet plan`: a recommendation that follows from the table, a curve, and a page."""

import re
import shlex
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.sources.arrays.array import array_source
from discreet.study.plan import make_plan

SCORES = (2e3 / np.arange(1, 61)).astype(np.int64)


@pytest.fixture
def scores(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("item,score\n" + "".join(f"film {i},{score}\n" for i, score in enumerate(SCORES)))
    return str(file)


def test_the_recommendation_is_the_least_epsilon_of_all(scores, done):
    text = done("plan", scores, "-k", "3", "--probability", "0.9")
    best = re.search(r"Recommended: (\w+)\(.*\) with epsilon = ([\d.]+)\.", text)
    needs = {
        name: discreet.epsilon_for(SCORES, 3, probability="0.9", mechanism=mechanism)
        for name, mechanism in {
            "canonical": discreet.Canonical(),
            "tail": discreet.Canonical(gamma=1),
            "one-shot": discreet.OneShot(),
            "peeling": discreet.Peeling(),
            "joint": discreet.Joint(),
        }.items()
    }
    assert Fraction(best[2]) == min(needs.values())
    assert "releases exactly the top 3 with probability 0.9" in text
    assert "NOT private" in text
    assert "By custom an epsilon up to 1 is strong protection." in text
    command = re.search(r"^To release: discreet (select FILE .+)$", text, re.MULTILINE)[1]
    assert f"epsilon = {best[2]} for one user" in done(*shlex.split(command.replace("FILE", scores)))


def test_the_command_protects_what_the_plan_was_for(scores, done):
    """A command without the sensitivity would release with too little noise."""
    text = done("plan", scores, "-k", "3", "--sensitivity", "1/2,3", "--adjacency", "swap")
    command = re.search(r"^To release: discreet (select FILE .+)$", text, re.MULTILINE)[1]
    assert "--sensitivity 1/2,3 --adjacency swap" in command
    release = discreet.Release.from_json(done(*shlex.split(command.replace("FILE", scores)), "--json"))
    assert release.guarantee.adjacency == "swap"
    assert release.guarantee.sensitivity == discreet.Sensitivity("1/2", 3).under("swap")


def test_the_curve_of_each_goal_is_drawn(scores, done):
    bars = re.findall(r"^ *(top|great|good|optimal) \|(.+)\|$", done("plan", scores, "-k", "3"), re.MULTILINE)
    assert [name for name, _ in bars] == ["top", "great", "good", "optimal"]
    assert all(len(bar) == 33 and bar == "".join(sorted(bar)) for _, bar in bars)
    assert bars[0][1][-1] == "█"


@pytest.mark.parametrize(
    ("goal", "meaning"),
    [
        ("great", "a list with the best 1 in it and nothing beyond rank 11"),
        ("good", "a list with the best 1 in it and nothing beyond rank 15"),
        ("optimal", "a top 10, whichever of equal scores are in it"),
    ],
)
def test_goals_are_said_in_words(goal, meaning, scores, done):
    assert meaning in done("plan", scores, "-k", "10", "--goal", goal, "--epsilon", "0.5")


def test_ties_leave_the_goals_that_can_be_reached(done, refused, tmp_path):
    file = tmp_path / "tied.csv"
    file.write_text("item,score\na,5\nb,5\nc,5\nd,1\n")
    assert "a top 1, whichever of equal scores" in done("plan", str(file), "-k", "1", "--goal", "optimal")
    assert "do not let it" in refused("plan", str(file), "-k", "1")


def test_a_page_is_written_whole(scores, done, tmp_path):
    out = tmp_path / "plan.html"
    done("plan", scores, "-k", "3", "--out", str(out))
    page = out.read_text(encoding="utf-8")
    assert "Recommended: Canonical" in page
    assert page.rstrip().endswith("</html>")


def test_bad_use_is_one_line(scores, refused, tmp_path):
    assert refused("plan", scores, "-k", "3", "--goal", "best").startswith("goal must be one of top, great, good, opt")
    assert refused("plan", scores, "-k", "3", "--out", str(tmp_path / "a.png")).startswith("out must be a page")
    assert refused("plan", scores, "-k", "60").startswith("k must be less than 60")
    assert refused("plan", scores, "-k", "3", "--probability", "2").startswith(
        "probability must be above 0 and below 1"
    )


def test_a_large_epsilon_is_called_what_it_is():
    flat = array_source(np.arange(100, 0, -1))
    assert "protects little" in str(make_plan(flat, 20, probability="0.99999"))
