"""A release says what it promises, to whom and for how many releases, and what it does not protect."""

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.release.statement import LIMITS, find_limits

SCORES = {"dune": 912, "alien": 877, "heat": 410}
VISITS = {"DE": SCORES, "FR": {"dune": 20, "alien": 310, "heat": 298}}
ROOT = Path(__file__).parents[2]


def found_release(delta="1e-6"):
    rows = pa.table({"who": list(range(3000)), "what": ["a", "b", "c"] * 1000})
    source = discreet.events(rows, user="who", item="what", domain=discreet.discovered(delta, max_items_per_user=1))
    return discreet.top_k(source, k=2, epsilon=1)


def section(text, title):
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_limits_are_the_headings_of_the_page():
    page = (ROOT / "docs" / "known-limits.md").read_text(encoding="utf-8")
    # A heading may link its first term to the glossary.
    page = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page)
    assert [limit.heading for limit in LIMITS] == re.findall(r"^\*\*(.+?)\*\*", page, re.MULTILINE)


def test_what_is_promised_in_terms_of_people():
    text = discreet.top_k(SCORES, k=2, epsilon=1).statement()
    told = "whoever looks at this list can become at most 73.2% sure, from even odds, that you are in the data."
    assert told in section(text, "What is promised")
    assert "Who is one user" in section(text, "What discreet cannot know")
    assert "Which version of discreet" in section(text, "What discreet cannot know")
    assert "NOT PRIVATE" not in text


def test_a_swap_is_about_what_the_rows_are():
    text = discreet.top_k(SCORES, k=2, epsilon="0.5", adjacency="swap").statement()
    assert "at most 62.3% sure, from even odds, what your rows are." in text
    assert "(swap)" in text
    assert "add-remove" not in text


@pytest.mark.parametrize(
    ("adjacency", "told"),
    [
        (
            "add-remove",
            "Adding one user moves a score down by at most 0 and up by at most 1, and at most 2 scores; removing one "
            "reverses that.",
        ),
        ("swap", "Between neighbours a score moves down by at most 1 and up by at most 1, and at most 4 scores."),
    ],
)
def test_which_way_scores_move_is_told_of_whoever_comes_or_changes(adjacency, told):
    sensitivity = discreet.Sensitivity(down=0, up=1, items=2)
    release = discreet.top_k(SCORES, k=2, epsilon=1, adjacency=adjacency, sensitivity=sensitivity)
    assert f"- {told}\n" in release.statement()
    assert release.registry()["deployment"]["privacy_loss"]["privacy_unit_details"].endswith(f" {told}")


def test_what_is_not_private_promises_nothing():
    text = discreet.top_k(SCORES, k=2, epsilon=1, rng=np.random.default_rng(1)).statement()
    assert section(text, "What is promised").strip().startswith("NOT PRIVATE")
    assert "% sure" not in text
    assert "A generator of your own is for tests." in section(text, "How far the promise goes")


def test_counts_are_a_part_of_epsilon():
    text = discreet.top_k(SCORES, k=2, epsilon=1, counts="1/2").statement()
    assert "- epsilon = 1.5 (1 for the selection, 0.5 for the counts)" in text
    assert "Counts cost extra, and an interval is about one item." in text
    assert "at most 81.8% sure" in text


@pytest.mark.parametrize(("each_user", "told"), [("one", "in one group alone"), ("many", "in up to 2 groups, each of")])
def test_groups_promise_as_a_whole(each_user, told):
    charts = discreet.top_k(discreet.grouped(VISITS, each_user=each_user), k=1, epsilon=2)
    text = charts.statement()
    assert text.startswith("# Top 1 in each of 2 groups\n")
    assert "whoever looks at these lists can become at most 88.1% sure" in text
    assert told in section(text, "In numbers")
    assert "Groups are public, and rows decide who is in them." in text


def test_lists_of_groups_of_which_one_is_shorter_are_up_to_k():
    clear = {str(i): 10**6 if i < 3 else 0 for i in range(6)}
    source = discreet.grouped({"DE": clear, "FR": clear}, each_user="one")
    core, rng = discreet.Core("0.9", otherwise=None), np.random.default_rng(1)
    drawn = [discreet.top_k(source, k=5, epsilon=1, mechanism=core, rng=rng) for _ in range(200)]
    titles = {
        min(release.k for release in charts.values()) < 5: charts.statement().partition("\n")[0] for charts in drawn
    }
    assert titles == {True: "# Up to 5 in each of 2 groups", False: "# Top 5 in each of 2 groups"}


def test_found_items_have_a_delta_and_the_promise_is_about_guesses():
    text = found_release().statement()
    assert "guesses, from even odds, whether you are in the data, is right with a chance of at most 73.2%." in text
    assert "- delta = 1e-06" in text
    assert "Items that are found cost a delta, and rare ones are not found." in text
    assert "The list of items must be public." not in text
    assert "The list of items must be public." in discreet.top_k(SCORES, k=1, epsilon=1).statement()


def test_a_sketch_has_a_statement_too():
    text = discreet.sketch([9, 5, 2, 1], epsilon="0.1", ranks=[1, 4]).statement()
    assert text.startswith("# Noisy scores at 2 public ranks of 4 items\n")
    assert "whoever looks at this curve can become at most 52.5% sure" in text
    assert "for the selection" not in text


def test_an_epsilon_that_protects_nobody_is_called_that():
    assert "this epsilon protects nobody" in discreet.top_k(SCORES, k=2, epsilon=100).statement()


def test_a_ledger_tells_what_all_releases_promise(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, delta="1e-6", unit="readers of the library")
    release = discreet.top_k(SCORES, k=2, epsilon=1, ledger=ledger)
    text = release.statement(ledger)
    together = section(text, "All releases together")
    assert "is right with a chance of at most 95.3%" in together
    assert "epsilon = 3 and delta = 1e-06, for readers of the library; 1 is spent" in together
    assert f"version {discreet.__version__}" in text
    assert "charge 2 of the ledger" in text
    assert "Who is one user" not in text
    assert release.statement(ledger.path) == text


def test_no_promised_number_is_below_the_exact_one(tmp_path):
    little_above = Fraction(10**18 + 1, 10**18)
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3 * little_above, unit="readers")
    release = discreet.top_k(SCORES, k=2, epsilon=little_above, ledger=ledger)
    text, entry = release.statement(ledger), release.registry(ledger)["deployment"]
    assert "- epsilon = 1.00000000001 (rounded up)\n" in text
    assert "rho = 0.125000000001 (rounded up) of zCDP" in text
    assert "epsilon = 3.00000000001 (rounded up), for readers; 1.00000000001 (rounded up) is spent" in text
    assert "epsilon = 1.00000000001 (rounded up), delta = 0" in entry["privacy_loss"]["privacy_parameters_details"]
    assert "Privacy: epsilon 1.00000000001 for each person" in str(release)


def test_a_ledger_that_does_not_hold_the_release_says_nothing_about_it(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="users")
    with pytest.raises(ValueError, match="does not hold the release"):
        discreet.top_k(SCORES, k=2, epsilon=1).statement(ledger)
    with pytest.raises(TypeError, match="ledger must be a Ledger or the path of one, not 7"):
        discreet.top_k(SCORES, k=2, epsilon=1).statement(7)


def test_one_period_without_groups_depends_on_time_zones_too():
    rows = pa.table({"who": [1, 2], "what": ["a", "b"], "at": ["2026-10-31T23:30:00Z", "2026-10-02T00:00:00Z"]})
    october = discreet.month("at", zone="Europe/Berlin").only("2026-10")
    source = discreet.events(rows, user="who", item="what", domain=["a", "b"], during=october)
    text = discreet.top_k(source, k=1, epsilon=1).statement()
    assert "- Days depend on the database of time zones.\n" in section(text, "What the data holder answers for")


def test_a_limit_that_does_not_matter_is_not_listed():
    assert find_limits("promise", {"found"})[0].startswith("Items that are found")
    assert not any("Groups" in heading for heading in find_limits("promise", set()))


@pytest.mark.parametrize("program", ["import discreet", "import discreet.cli.select"])
def test_nothing_is_loaded_before_a_statement_is_asked_for(program):
    late = {"discreet.release.statement", "discreet.release.registry"}
    told = f"import sys; {program}; print([name for name in sys.modules if name in {late}])"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "[]\n"
