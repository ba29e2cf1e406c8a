"""A release says what it promises, to whom and for how many releases, and what it does not protect."""

import re
import subprocess
import sys
from fractions import Fraction
from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt

import discreet
from discreet.release.statement import (
    DATA,
    LIMITS,
    OUTSIDE,
    PROMISE,
    SOURCES,
    USE,
    Question,
    find_limits,
    make_subject,
    write_statement,
)

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
    assert [limit.heading() for limit in LIMITS] == re.findall(r"^\*\*(.+?)\*\*", page, re.MULTILINE)


def test_what_is_promised_in_terms_of_people():
    text = discreet.top_k(SCORES, k=2, epsilon=1).statement()
    told = "Somebody who thought it 50:50 that you are in the data is at most 73.2% sure of it after seeing this list."
    assert told in section(text, "What is promised")
    assert "Who is one user" in section(text, "What discreet cannot know")
    assert "Which version of discreet" in section(text, "What discreet cannot know")
    assert "NOT PRIVATE" not in text


def test_a_swap_is_about_what_the_rows_are():
    text = discreet.top_k(SCORES, k=2, epsilon="0.5", adjacency="swap").statement()
    assert "which of two ways your rows are is at most 62.3% sure of one after seeing this list." in text
    assert "(swap)" in text
    assert "add-remove" not in text


@pytest.mark.parametrize(
    ("adjacency", "told"),
    [
        (
            "add-remove",
            "Adding one user moves a score up by at most 1 and never down, and at most 2 scores; removing one reverses "
            "that.",
        ),
        ("swap", "Between neighbours a score moves down by at most 1 and up by at most 1, and at most 4 scores."),
    ],
)
def test_which_way_scores_move_is_told_of_whoever_comes_or_changes(adjacency, told):
    sensitivity = discreet.Sensitivity(down=0, up=1, items=2)
    release = discreet.top_k(SCORES, k=2, epsilon=1, adjacency=adjacency, sensitivity=sensitivity)
    assert f"| sensitivity | {told} |\n" in release.statement()
    assert release.registry()["deployment"]["privacy_loss"]["privacy_unit_details"].endswith(f" {told}")


def test_what_is_not_private_promises_nothing():
    text = discreet.top_k(SCORES, k=2, epsilon=1, rng=np.random.default_rng(1)).statement()
    assert section(text, "What is promised").strip().startswith("NOT PRIVATE")
    assert "% sure" not in text
    assert "A generator of your own is for tests." in section(text, "What the promise does not cover")


def test_counts_are_a_part_of_epsilon():
    text = discreet.top_k(SCORES, k=2, epsilon=1, counts="1/2").statement()
    assert "| epsilon | 1.5 (1 for the selection, 0.5 for the counts) |" in text
    assert "Counts spend more epsilon, and an interval is about one item." in text
    assert "at most 81.8% sure" in text


@pytest.mark.parametrize(("each_user", "told"), [("one", "in one group alone"), ("many", "in up to 2 groups, each of")])
def test_groups_promise_as_a_whole(each_user, told):
    charts = discreet.top_k(discreet.grouped(VISITS, each_user=each_user), k=1, epsilon=2)
    text = charts.statement()
    assert text.startswith("# Top 1 in each of 2 groups\n")
    assert "is at most 88.1% sure of it after seeing these lists." in text
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


PEOPLE = pa.table({"who": list(range(3000)), "what": ["a", "b", "c"] * 1000, "paid": [1.5] * 3000})
PUBLIC = {"user": "who", "item": "what", "domain": list("abcd")}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("options", "terms", "told"),
    [
        ({}, {"counts": "0.1"}, "with s = L / 0.1. L is .* together: 2, or less with a bound on the items of a user."),
        ({"max_items_per_user": 1}, {"counts": "0.1", "shortfall": 1}, "with s = 10 = L / 0.1. L = 1 is the most"),
        ({"domain": discreet.discovered("1e-6")}, {"counts": "0.1"}, "with s = 20 = L / 0.1. L = 2 is the most"),
        (
            {"max_items_per_user": 2, "value": "paid", "clip": (-1, 2), "resolution": "0.25"},
            {"mechanism": discreet.Histogram()},
            "Laplace, on every score, released or not: .* with s = 4 = L / 1. L = 4 is the most",
        ),
    ],
)
def test_the_noise_of_numbers_can_be_recomputed(options, terms, told):
    source = discreet.events(PEOPLE, **{**PUBLIC, **options})
    text = discreet.top_k(source, k=2, epsilon=1, **terms).statement()
    (noise,) = re.findall(r"^\| noise of numbers \| (.*) \|$", text, re.MULTILINE)
    assert re.search(told, noise)
    assert "noise of numbers" not in discreet.top_k(source, k=2, epsilon=1).statement() or "mechanism" in terms


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_no_stated_noise_is_smaller_than_that_of_the_release(adjacency):
    """Of scores of one's own, one user moves 1 of 2 by one, or 2 under swap."""
    moved = discreet.Sensitivity(down=0, up=1, items=1)
    terms = {"sensitivity": moved, "adjacency": adjacency, "counts": 1, "shortfall": 1}
    text = discreet.top_k(SCORES, 2, 1, **terms).statement()
    assert ("s = 1 = L / 1. L = 1 is" if adjacency == "add-remove" else "s = L / 1. L is the most") in text
    assert "together: 2, or less" in text or adjacency == "add-remove"


def test_an_interval_of_a_known_question_is_stated():
    """With epsilon 0.1 and one item of each user the intervals of the counts reach 30 to each side."""
    source = discreet.events(PEOPLE, **PUBLIC, max_items_per_user=1)
    release = discreet.top_k(source, k=2, epsilon=1, counts="0.1")
    text = write_statement(make_subject(release, None, source="arrow", question=Question(max_items_per_user=1)))
    (count, _) = release.counts
    assert (count.high - count.low) // 2 == 30
    assert "x in steps of 1: P(x) is in proportion to exp(-abs(x) / s), with s = 10 = L / 0.1." in text
    assert "With 95% it is within 30. |" in text
    assert "| items of a user | Of each user at most 1 item counts. |" in text
    assert "Which rows counted" not in text
    assert "Which rows counted" in release.statement()


def test_a_sketch_states_its_noise():
    sketch = discreet.sketch([9, 5, 2, 1], epsilon="0.1", ranks=[1, 4])
    assert "with s = 20 = L / 0.1. L = 2 is the most" in sketch.statement()
    assert f"With 95% it is within {sketch.half_width}." in sketch.statement()


def test_found_items_have_a_delta_and_the_promise_is_about_guesses():
    text = found_release().statement()
    assert (
        "whether you are in the data, and guesses after seeing this list, is right with a chance of at most 73.2%."
        in text
    )
    assert "| delta | 1e-06 |" in text
    assert "Items that are found cost a delta, and rare ones are not found." in text
    assert "The list of items must be public." not in text
    # Found items come from events.
    assert "An engine sees the queries" in text
    assert "The list of items must be public." in discreet.top_k(SCORES, k=1, epsilon=1).statement()


@pytest.mark.parametrize(
    ("method", "adjacency", "delta"),
    [("auto", "add-remove", "1e-06"), ("gaussian", "add-remove", "5e-07"), ("gaussian", "swap", "5e-07"),
     ("laplace", "add-remove", "1e-06")],
)  # fmt: skip
def test_the_zcdp_of_found_items_has_a_delta_wherever_it_is_named(method, adjacency, delta):
    rows = pa.table({"who": list(range(3000)), "what": ["a", "b", "c"] * 1000})
    terms = discreet.discovered("1e-6", max_items_per_user=1, method=method)
    source = discreet.events(rows, user="who", item="what", domain=terms, adjacency=adjacency)
    release = discreet.top_k(source, k=2, epsilon=1)
    assert re.search(f", zcdp=[^ ]+, zcdp_delta={delta}, ", repr(release.guarantee))
    assert re.search(f"\\| zCDP \\| rho = .* of delta-approximate zCDP, with delta = {delta} \\|", release.statement())
    told = release.registry()["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert f"of delta-approximate zero-concentrated differential privacy with delta = {delta}. " in told
    assert "approximate" not in discreet.top_k(SCORES, k=2, epsilon=1).statement()


def test_a_sketch_has_a_statement_too():
    text = discreet.sketch([9, 5, 2, 1], epsilon="0.1", ranks=[1, 4]).statement()
    assert text.startswith("# Noisy scores at 2 public ranks of 4 items\n")
    assert "is at most 52.5% sure of it after seeing this curve." in text
    assert "for the selection" not in text


def test_an_epsilon_that_protects_nobody_is_called_that():
    assert "this epsilon protects nobody" in discreet.top_k(SCORES, k=2, epsilon=100).statement()


def test_a_ledger_tells_what_all_releases_promise(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, delta="1e-6", unit="readers of the library")
    release = discreet.top_k(SCORES, k=2, epsilon=1, ledger=ledger)
    text = release.statement(ledger)
    assert "is right with a chance of at most 95.3%" in section(text, "What is promised")
    assert (
        "3 and delta = 1e-06 for all lists together, to protect the readers of the library; all releases so far spent 1"
        in section(text, "In numbers")
    )
    assert f"version {discreet.__version__}" in text
    assert "record 2 of the ledger" in text
    assert "Who is one user" not in text
    assert release.statement(ledger.path) == text


def test_no_promised_number_is_below_the_exact_one(tmp_path):
    little_above = Fraction(10**18 + 1, 10**18)
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3 * little_above, unit="readers")
    release = discreet.top_k(SCORES, k=2, epsilon=little_above, ledger=ledger)
    text, entry = release.statement(ledger), release.registry(ledger)["deployment"]
    assert "| epsilon | 1.00000000001 (rounded up) |\n" in text
    assert "rho = 0.125000000001 (rounded up) of zCDP" in text
    assert (
        "epsilon = 3.00000000001 (rounded up) for all lists together, to protect the readers; "
        "all releases so far spent 1.00000000001 (rounded up)" in text
    )
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
    text = discreet.top_k(source, k=1, epsilon=1).statement(source="arrow")
    assert "- Days depend on the database of time zones." in section(text, "What the promise does not cover")


def listed(text):
    """The limits of a statement, each with its sentence."""
    return re.findall("^- (.*)$", section(text, "What the promise does not cover"), re.MULTILINE)


@pytest.mark.parametrize("source", [None, *SOURCES])
def test_only_limits_of_the_source_are_listed_each_with_a_sentence_on_one_page(source, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="readers")
    release = discreet.top_k(SCORES, k=2, epsilon=1, counts="0.1", shortfall="0.1", ledger=ledger)
    text = release.statement(ledger, source=source)
    limits = listed(text)
    assert all(re.fullmatch(r".+\. .+\.", limit) for limit in limits)
    about = {
        "pandas": "Pandas merges", "typed": "Declared column types", "text": "Text files must",
        "engine": "An engine sees",
        "spilled": "Rows that do not fit", "scores": "Scores must move",
    }  # fmt: skip
    assert {name for name, begin in about.items() if any(limit.startswith(begin) for limit in limits)} == {
        None: set(), "scores": {"scores"}, "csv": {"text", "engine", "spilled"}, "json": {"text", "engine", "spilled"},
        "pandas": {"pandas", "typed", "engine", "spilled"}, "postgresql": {"engine"}, "mariadb": {"engine"},
        "clickhouse": {"engine"}, "spark": {"typed", "engine"}, "sqlite": {"engine"}, "other": {"engine"},
    }.get(source, {"typed", "engine", "spilled"})  # fmt: skip
    # A page of A4 has some 60 lines of 100 letters.
    assert sum(1 + len(line) // 100 for line in text.splitlines()) <= 75
    assert ("What were the scores made from?" in text) == (source is None)
    assert not any("histogram" in limit or "Groups" in limit for limit in limits)


def test_a_source_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match=r"source must be one of scores, csv, .*, not 'mysql'"):
        discreet.top_k(SCORES, k=2, epsilon=1).statement(source="mysql")


def test_every_limit_in_a_statement_has_a_sentence():
    assert {limit.about for limit in LIMITS} == {PROMISE, DATA, OUTSIDE, USE}
    assert all(bool(limit.sentence()) == (limit.about != USE) for limit in LIMITS)


def test_numbers_are_exact(tmp_path):
    """The float next to three tenths is below it, and the next one above is 0.30000000000000004."""
    release = discreet.top_k(SCORES, k=2, epsilon="0.3")
    entry = release.registry()
    assert "| epsilon | 0.3 |" in release.statement()
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.3}
    third = discreet.top_k(SCORES, k=2, epsilon="1/3").registry()["deployment"]["privacy_loss"]["privacy_parameters"]
    assert Fraction(third["epsilon"]) >= Fraction(1, 3)


def test_a_name_with_a_bar_stays_in_its_cell(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="a | b")
    release = discreet.top_k(SCORES, k=2, epsilon=1, ledger=ledger)
    assert "protect the a \\| b; all releases so far spent 1" in section(release.statement(ledger), "In numbers")


ODD = "CASE WHEN what = '`<b>*|' THEN 'none' ELSE fold(trim(what)) END"
ROWS = pa.table({"who": ["Ann", "ann ", "bob"], "what": [" Dune", "dune", "heat"], "land": ["de", "DE", "fr"]})
EXPRESSED = {"user": "lower(trim(who))", "item": "fold(trim(what))", "domain": ["dune", "heat", "none"]}
PLAIN = {"user": "who", "item": "what", "domain": ["dune", "heat", "none"]}
SPLIT = {"by": ["upper(land)", "substring(land, 1, 1)"], "groups": [("DE", "d"), ("FR", "f")], "each_user": "one"}
OWN = (("user", "lower(trim(who))"), ("item", "fold(trim(what))"))


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["list", "groups", "list for each source", "found", "sketch"])
def test_a_release_and_its_stored_copy_state_the_row_expressions(kind, tmp_path):
    ledger = discreet.Ledger.create(
        tmp_path / "budget.db", epsilon=9, delta="1e-5", release_delta="1e-6", unit="readers"
    )
    split, own = (SPLIT, (*OWN, *(("by", text) for text in SPLIT["by"]))) if kind == "groups" else ({}, OWN)
    found = {"domain": discreet.discovered("1e-6", 2)} if kind == "found" else {}
    source = discreet.events(ROWS, **{**EXPRESSED, **split, **found})
    if kind == "list for each source":
        plain = discreet.events(ROWS, **PLAIN)
        source = discreet.grouped({"new": source, "plain": plain, "again": source}, each_user="one")
    draw = discreet.sketch if kind == "sketch" else partial(discreet.top_k, k=1)
    release = draw(source, epsilon=1, ledger=ledger, request_id="one")
    read = type(release).from_json(release.to_json())
    assert read == draw(source, epsilon=1, ledger=ledger, request_id="one") == release
    assert read.expressions == release.expressions == own
    told = ", ".join(f"`{argument} = {text}`" for argument, text in own)
    assert f"| rows | Computed from the rows: {told} |\n" in read.statement(ledger)
    assert f"| Zeilen | Aus den Zeilen berechnet: {told} |\n" in read.statement(ledger, language="de")


def test_plain_columns_and_conditions_are_not_in_a_release(tmp_path):
    rows = ROWS.append_column("fold(trim(what))", ROWS["what"])
    options = {**PLAIN, "item": "fold(trim(what))", "where": "who <> 'bob'"}
    release = discreet.top_k(discreet.events(rows, **options), k=1, epsilon=1)
    assert release.expressions == ()
    assert "fold" not in release.to_json() + release.statement()
    assert "bob" not in release.to_json() + release.statement()


def test_an_expression_is_code_in_its_cell():
    release = discreet.top_k(discreet.events(ROWS, **{**EXPRESSED, "item": ODD}), k=1, epsilon=1)
    text = release.statement()
    assert "`` item = CASE WHEN what = '`<b>*\\|' THEN 'none' ELSE fold(trim(what)) END ``" in text
    html = MarkdownIt("zero", {"html": False}).enable(["backticks", "table"]).render(section(text, "In numbers"))
    assert unescape(re.findall("<code>(item .*?)</code></td>", html)[0]) == f"item = {ODD}"


@pytest.mark.parametrize("wrong", [[["where", "a = 1"]], [["item"]], [["item", 1]], 3, "item"])
def test_expressions_that_no_release_has_are_refused(wrong):
    data = {**discreet.top_k(SCORES, k=1, epsilon=1).to_dict(), "expressions": wrong}
    with pytest.raises(discreet.Error, match=r"^data must be a release as Release\.to_dict"):
        discreet.Release.from_dict(data)


def test_a_limit_that_does_not_matter_is_not_listed():
    assert find_limits("promise", {"found"})[0].startswith("Items that are found")
    assert not any("Groups" in heading for heading in find_limits("promise", set()))


@pytest.mark.parametrize("program", ["import discreet", "import discreet.cli.select"])
def test_nothing_is_loaded_before_a_statement_is_asked_for(program):
    late = {"discreet.release.statement", "discreet.release.registry"}
    told = f"import sys; {program}; print([name for name in sys.modules if name in {late}])"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "[]\n"
