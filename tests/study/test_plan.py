"""`discreet plan`: a recommendation that follows from the table, a curve, and a page."""

import base64
import json
import re
import shlex
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.analysis.meters import Precision
from discreet.release.theme import Theme
from discreet.sources.arrays.array import array_source
from discreet.study.charts import style_curves
from discreet.study.curves import reader

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
            **{repr(one): one for one in discreet.Canonical.contenders()},
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
    assert f"Privacy: epsilon {best[2]} for each person" in done(*shlex.split(command.replace("FILE", scores)))


def test_the_command_protects_what_the_plan_was_for(scores, done):
    """A command without the sensitivity would release with too little noise."""
    text = done("plan", scores, "-k", "3", "--sensitivity", "1/2,3", "--adjacency", "swap")
    command = re.search(r"^To release: discreet (select FILE .+)$", text, re.MULTILINE)[1]
    assert "--sensitivity 1/2,3 --adjacency swap" in command
    release = discreet.Release.from_json(done(*shlex.split(command.replace("FILE", scores)), "--json"))
    assert release.guarantee.adjacency == "swap"
    assert release.guarantee.sensitivity == discreet.Sensitivity("1/2", 3).under("swap")


def test_the_curve_of_each_goal_is_drawn(scores, done):
    bars = re.findall(r"^ *([a-z]+) \|(.+)\|$", done("plan", scores, "-k", "3"), re.MULTILINE)
    assert [name for name, _ in bars] == ["top", "great", "good", "optimal", "recall"]
    assert all(len(bar) == 33 and bar == "".join(sorted(bar)) for _, bar in bars)
    assert bars[0][1][-1] == "█"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("goal", "meaning"),
    [
        ("great", "a list with the best 1 in it and nothing beyond rank 11"),
        ("good", "a list with the best 1 in it and nothing beyond rank 15"),
        ("optimal", "a top 10, whichever of equal scores are in it"),
        ("recall", "a list with 9.5 of the 10 right on average"),
    ],
)
def test_goals_are_said_in_words(goal, meaning, scores, done):
    assert meaning in done("plan", scores, "-k", "10", "--goal", goal, "--epsilon", "0.5")


def test_ties_leave_the_goals_that_can_be_reached(done, refused, tmp_path):
    file = tmp_path / "tied.csv"
    file.write_text("item,score\na,5\nb,5\nc,5\nd,1\n")
    assert "a top 1, whichever of equal scores" in done("plan", str(file), "-k", "1", "--goal", "optimal")
    assert "are tied; ask for goal" in refused("plan", str(file), "-k", "1")


def test_a_page_is_written_whole(scores, done, tmp_path):
    out = tmp_path / "plan.html"
    done("plan", scores, "-k", "3", "--out", str(out))
    page = out.read_text(encoding="utf-8")
    assert "Recommended: Canonical" in page
    assert page.rstrip().endswith("</html>")
    # Every candidate has a curve and a place in the legend, and the recommended point is marked.
    best = re.search(r"Recommended: Canonical\(gamma=&#39;([\d/]+)&#39;.*?epsilon\xa0=\xa0([\d.]+)\.", page)
    picture = base64.b64decode(re.search('data:image/svg[+]xml;base64,([^"]+)', page)[1]).decode()
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", picture)
    names = [
        *(f"canonical, gamma = {gamma}" for gamma in ("1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1")),
        "one-shot, exponential",
        "peeling",
        "joint, sequences",
    ]
    # Those that have room have their names beside them too.
    beside, legend = (texts[: -len(names)], texts[-len(names) :])
    assert legend == names
    assert f"gamma = {best[1]}" in beside
    assert f"epsilon = {best[2]}" in texts
    colour = style_curves(names, Theme())[f"canonical, gamma = {best[1]}"]["color"]
    assert re.search(f'style="fill: #ffffff; stroke: {colour}; stroke-width: 2;?', picture)
    table = page.partition('<table class="needs">')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="col">([^<]+)</th>', table) == ["Mechanism", "Epsilon it needs", "Times the least"]
    rows = re.findall(r'<tr( class="best")?><th scope="row">([^<]+)</th><td>([^<]+)</td><td>([^<]+)</td></tr>', table)
    assert {name for _, name, _, _ in rows} == set(names)
    assert rows[0] == (' class="best"', f"canonical, gamma = {best[1]}", best[2], "1.00\N{MULTIPLICATION SIGN}")
    needs = [float(needed) for _, _, needed, _ in rows]
    assert needs == sorted(needs)


def test_without_matplotlib_the_plan_is_told_and_a_page_is_refused_at_once(
    scores, done, refused, monkeypatch, tmp_path
):
    told = done("plan", scores, "-k", "3")
    monkeypatch.setattr("discreet.release.theme.find_spec", lambda name: None)
    assert done("plan", scores, "-k", "3") == told
    monkeypatch.setattr("discreet.study.plan.plan", None)  # nothing is computed
    out = tmp_path / "plan.html"
    for option in ("--out", "--chart"):
        given = str(out if option == "--out" else out.with_suffix(".png"))
        assert refused("plan", scores, "-k", "3", option, given).startswith("pictures need matplotlib, which the extra")
    assert not out.exists()


@pytest.mark.long
def test_a_page_says_what_an_epsilon_that_was_given_reaches(scores, done, tmp_path):
    out = tmp_path / "plan.html"
    done("plan", scores, "-k", "3", "--epsilon", "0.05", "--out", str(out))
    page = out.read_text(encoding="utf-8")
    assert '<th scope="col">What it reaches with epsilon = 0.05</th>' in page
    reached = discreet.utility(SCORES, 3, "0.05", discreet.Peeling()).top
    assert re.search(rf">peeling</th><td>[^<]+</td><td>[^<]+</td><td>{100 * reached:.1f}%</td>", page)


def test_a_steep_curve_has_points_on_its_rise():
    """Canonical rises within a few percent of epsilon where k is large: no straight line stands for that."""
    found = discreet.plan(np.arange(4000, 0, -10), 150, goal="top", probability="0.9")
    steep = found.curves[discreet.Canonical(1).label]
    chances = list(steep.values())
    assert list(steep) == sorted(steep)
    assert max(np.diff(chances)) <= 0.081


def test_bad_use_is_one_line(scores, refused, tmp_path):
    assert refused("plan", scores, "-k", "3", "--goal", "best").startswith(
        "goal must be one of top, great, good, optimal, recall"
    )
    assert refused("plan", scores, "-k", "3", "--out", str(tmp_path / "a.png")).startswith(
        "out must be a file with a name that ends in .html or .htm, not "
    )
    assert refused("plan", scores, "-k", "3", "--chart", str(tmp_path / "a.html")).startswith(
        "chart must be a file with a name that ends in .png, .svg or .pdf, not "
    )
    assert refused("plan", scores, "-k", "60").startswith("k must be less than 60")
    assert refused("plan", scores, "-k", "3", "--probability", "2").startswith(
        "probability must be above 0 and below 1"
    )


def test_a_large_epsilon_is_called_what_it_is():
    assert "protects little" in str(discreet.plan(np.arange(100, 0, -1), 20, probability="0.99999"))


def test_a_share_of_the_list_is_asked_for(scores, done, refused):
    text = done("plan", scores, "-k", "10", "--goal", "recall", "--share", "0.8", "--probability", "0.9")
    assert "a list with at least 8 of the 10 right with probability 0.9" in text
    assert "epsilon for 0.8 right" in text
    found = json.loads(done("plan", scores, "-k", "5", "--goal", "recall", "--share", "0.8", "--json"))
    assert found["share"] == "4/5"
    needed = discreet.epsilon_for(SCORES, 5, goal="recall", share="0.8")
    assert min(Fraction(one["needs"]["recall"]) for one in found["mechanisms"]) == needed
    assert refused("plan", scores, "-k", "3", "--share", "0.8").startswith("share must be left out with the goal top")


def test_another_k_is_told_where_the_gap_is():
    scores = [1000, 990, 980, 970, 500, 499, 498, 497, 90, 80, 70, 60]
    found = discreet.plan(scores, 6, probability="0.9")
    assert found.other_k.k == 4
    assert found.other_k.epsilon == discreet.epsilon_for(scores, 4, probability="0.9", mechanism=found.best.mechanism)
    assert (
        f"costs {float(found.other_k.epsilon / found.epsilon):.2g} of k = 6: the gap is at 4." in found.recommendation
    )
    even = discreet.plan(np.arange(3000, 0, -100), 8, probability="0.9")
    assert even.other_k is None
    assert "the gap is at" not in even.recommendation


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["top", "recall"])
def test_a_plan_is_within_three_percent_of_the_best_in_64ths(goal):
    """What costs 3% less is not enough with any mechanism, by utility alone."""
    found = discreet.plan(SCORES, 5, goal=goal, probability="0.9")
    others = [discreet.OneShot(), discreet.Peeling(), discreet.Joint()]
    for mechanism in [*(discreet.Canonical(Fraction(n, 64)) for n in range(32, 65)), *others]:
        reached = discreet.utility(SCORES, 5, found.epsilon / Fraction(103, 100), mechanism)
        assert getattr(reached, goal) < 0.9, mechanism
    assert getattr(discreet.utility(SCORES, 5, found.epsilon, found.best.mechanism), goal) >= 0.9


def test_a_plan_of_groups_is_that_of_the_group_that_needs_most():
    scores = {"steep": [900, 700, 500, 20, 10, 5], "flat": [90, 85, 60, 50, 48, 40, 12]}
    source = discreet.grouped(scores, each_user="many", max_groups_per_user=2)
    found = discreet.plan(source, 3, goal="top", probability="0.9")
    alone = discreet.plan(scores["flat"], 3, goal="top", probability="0.9")
    assert found.best.mechanism == alone.best.mechanism
    assert found.epsilon == 2 * alone.epsilon
    assert found.other_k is None
    assert found.meaning == "exactly the top 3 with probability 0.9, in each of 2 groups"
    assert "--each-user many --max-groups-per-user 2 -k 3" in found.command
    assert found.curve[min(found.curve)] == alone.curve[min(alone.curve)]
    assert "in each of 2 groups" in found.page()


@pytest.fixture
def loans(tmp_path):
    """Events in a file, and the options that say what is in it."""
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(300), rng.integers(1, 6, 300))
    items = np.minimum((rng.pareto(0.8, len(users)) * 2).astype(int), 19)
    file = tmp_path / "loans.csv"
    file.write_text("reader,book\n" + "".join(f"{user},{item}\n" for user, item in zip(users, items, strict=True)))
    return str(file), ["--user", "reader", "--item", "book", "--domain", "integers:0:19"]


@pytest.mark.long
def test_events_are_planned_with_several_bounds(loans, done, tmp_path):
    file, options = loans
    asked = ["plan", file, *options, "-k", "3", "--goal", "recall", "--probability", "0.7"]
    text = done(*asked, "--out", str(tmp_path / "plan.html"))
    found = json.loads(done(*asked, "--json"))
    assert not found["private"]
    bounds = [row["max_items_per_user"] for row in found["mechanisms"] if "max_items_per_user" in row]
    assert bounds == [1, 2, 3, 5][: len(bounds)]
    assert len(bounds) > 1
    for bound, row in zip(bounds, found["mechanisms"][-len(bounds) :], strict=True):
        alone = re.search(rf"[ ;] ?{bound} items? a user alone loses (\S+) of the 3", text)[1]
        assert float(alone.replace("none", "0")) == pytest.approx(row["lost"], abs=0.01)
    command = re.search(r"^To release: discreet (select FILE .+)$", text, re.MULTILINE)[1]
    assert command.startswith("select FILE --user reader --item book --domain ITEMS -k 3 --epsilon ")
    words = shlex.split(command.replace("FILE", file).replace("ITEMS", "integers:0:19"))
    assert len(json.loads(done(*words, "--json"))["items"]) == 3
    assert "histogram, at most" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_options_of_events_and_of_scores_are_not_mixed(loans, scores, refused):
    file, options = loans
    assert refused("plan", file, *options, "-k", "3", "--score", "x").startswith("score must be left out with user")
    assert refused("plan", scores, "-k", "3", "--domain", "integers:0:9").startswith(
        "domain must be left out without user"
    )
    assert refused("plan", scores, "-k", "3", "--max-items-per-user", "2").startswith(
        "max_items_per_user must be left out without user"
    )


@pytest.mark.long
def test_what_takes_minutes_is_left_out_where_it_cannot_win():
    scores = np.arange(700, 0, -1) * 40
    found = discreet.plan(scores, 500, goal="recall", probability="0.9")
    assert found.left_out == [discreet.Joint()]
    assert "\nJoint() needs more: how much was not computed.\n" in str(found)
    assert "Joint() needs more: how much was not computed." in found.page()
    read = reader(array_source(scores).tally(), 500, discreet.Joint(), Precision(goal=0.01), ("recall",))
    assert read(float(found.epsilon)).values["recall"] < 0.88


@pytest.mark.long
@pytest.mark.parametrize(("goal", "probability"), [("top", "0.95"), ("recall", "0.7")])
def test_a_plan_tells_the_shortfall_to_expect(goal, probability):
    scores = [int(900 / rank**0.7) for rank in range(1, 41)]
    found = discreet.plan(scores, 5, goal=goal, probability=probability, epsilon="0.05")
    exact = discreet.expected(scores, 5, found.epsilon, found.best.mechanism).shortfall
    assert found.shortfall == exact
    assert f"The true shortfall at this epsilon: {exact.describe(' people')}." in found.sentences
    assert (exact.most == 0) is (goal == "top")
    lower = discreet.expected(scores, 5, "0.05", found.best.mechanism).shortfall.describe(" people")
    assert f"The true shortfall of {found.best} at epsilon = 0.05: {lower}." in str(found)


def test_the_shortfall_of_a_plan_by_group_is_that_of_the_hardest_group():
    hard, easy = [40, 39, 38, 37, 36, 35], [500, 400, 9, 8, 7, 6]
    groups = discreet.grouped({"hard": hard, "easy": easy}, each_user="many")
    found = discreet.plan(groups, 2, goal="recall", probability="0.6")
    exact = discreet.expected(hard, 2, found.epsilon / found.groups_per_user, found.best.mechanism).shortfall
    assert found.shortfall == exact
    assert exact.most > 0
