"""Items that nobody listed on the command line: found, refused, charged, in every format."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet

NAMES = ["disk full"] * 300 + ["timeout"] * 200 + ["hunter2"]
FOUND = ("--user", "device", "--item", "message", "--discover", "--delta", "1e-8", "--max-items-per-user", "3")
SELECT = ("select", "logs.parquet", *FOUND, "-k", "2", "--epsilon", "20")


@pytest.fixture(autouse=True)
def logs(folder):
    lands = ["DE", "FR", "IT"] * (len(NAMES) // 3)
    table = pa.table({"device": list(range(len(NAMES))), "message": NAMES, "code": [7] * len(NAMES), "land": lands})
    pa.parquet.write_table(table, "logs.parquet")


def test_the_table_says_what_was_found_and_what_that_means(done):
    text = done(*SELECT)
    assert text.startswith("Top 2 of those found, sorted by name, which says nothing about rank:")
    assert " and delta 1e-08 for each person added or removed, who adds at most 1 to each score." in text
    assert "An item that fewer than about" in text
    assert "hunter2" not in text
    fewer = done(*SELECT, "-k", "7")
    assert fewer.startswith("2 items were found, fewer than the 7 asked for")


def test_json_reads_back(done):
    data = json.loads(done(*SELECT, "--json", "--counts", "1"))
    release = discreet.Release.from_dict(data)
    assert (release.d, release.asked, release.guarantee.delta) == (None, 2, Fraction(1, 10**8))
    assert release.guarantee.discovery.max_items_per_user == 3
    assert done(*SELECT, "--format", "items").splitlines() == ["disk full", "timeout"]
    assert done(*SELECT, "--format", "csv").splitlines() == ["item", "disk full", "timeout"]


def test_the_gaussian_method_needs_no_bound(done):
    asked = ("--discover", "--delta", "1e-8", "--method", "gaussian", "-k", "2", "--epsilon", "20")
    data = json.loads(done("select", "logs.parquet", *FOUND[:4], *asked, "--json"))
    assert data["items"] == ["disk full", "timeout"]
    found = data["guarantee"]["discovery"]
    assert (found["method"], found["max_items_per_user"]) == ("gaussian", 100)
    assert discreet.Release.from_dict(data).guarantee.discovery.epsilon == 10
    text = done("plan", *asked[:-1], "1")
    assert text.startswith("The threshold is 66 people. An item that fewer than about 53 people touched")
    assert "at most 7 items count" in done("plan", *asked, "--max-items-per-user", "7")


def test_kinds_parts_and_groups(done):
    codes = ("select", "logs.parquet", *FOUND[:2], "--item", "code", *FOUND[4:], "--kind", "integer", "-k", "1")
    data = json.loads(done(*codes, "--epsilon", "20", "--discovery-epsilon", "15", "--json"))
    assert (data["items"], data["guarantee"]["discovery"]["epsilon"]) == ([7], "15")
    Path("lands.csv").write_text("land\nDE\nFR\n")
    by = ("--by", "land", "--groups", "lands.csv:land", "--each-user", "one", "--spelling", "both")
    assert "Top 2 of those found in each of 2 groups by land" in done(*SELECT, *by)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--delta", "0.5"), "delta must be above zero and at most 0.001, not '0.5'"),
        (("--kind", "text"), "kind must be one of string, integer, date, boolean, not 'text'"),
        (("--spelling", "lower"), "spelling must be one of exact, casefold, trim, both, not 'lower'"),
        (("--method", "gauss"), "method must be one of laplace, gaussian, not 'gauss'; did you mean gaussian?"),
        (("--domain", "movies.csv:movie"), "domain must be left out with discover"),
        (("--label", "title"), "label must be left out with discreet.discovered"),
        (("--discovery-epsilon", "20"), "epsilon of discovered must be below 20, the epsilon of the release"),
    ],
)
def test_bad_use_is_refused_in_one_sentence(refused, args, sentence):
    assert refused(*SELECT, *args).startswith(sentence)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--discover",), "max_items_per_user must be given with discover"),
        (("--discover", "--max-items-per-user", "3"), "delta must be given for discovery"),
        (("--domain", "integers:0:9", "--delta", "1e-8"), "delta must be left out without discover"),
        ((), "domain must be given with user"),
    ],
)
def test_what_belongs_together(refused, args, sentence):
    message = refused("select", "logs.parquet", *FOUND[:4], *args, "-k", "1", "--epsilon", "1")
    assert message.startswith(sentence)
    assert args or message.endswith("without a list, give discover with a delta (docs/discovery.md)")


def test_scores_have_no_items_to_find(refused):
    args = ("select", "scores.csv", "-k", "1", "--epsilon", "1")
    assert (
        refused(*args, "--discover") == "discover must be left out without user: a file of scores lists its own items"
    )
    assert refused(*args, "--delta", "1e-8").startswith("delta must be left out without user")


def test_a_large_delta_is_warned_about(call):
    code, out, err = call(*SELECT, "--delta", "1e-4")
    assert (code, out.splitlines()[0][:5]) == (0, "Top 2")
    assert err.startswith("discreet: delta is 0.0001: it should be well below one over the number of people")


def test_a_budget_with_a_delta_for_releases(done, refused):
    budget = ("budget", "init", "--epsilon", "50", "--unit", "devices")
    done(*budget, "plain.db", "--delta", "1e-6")
    assert refused(*SELECT, "--ledger", "plain.db", code=1).startswith(
        "delta 1e-08 does not fit: the ledger has none for"
    )
    made = done(*budget, "found.db", "--delta", "1e-6", "--release-delta", "1e-8")
    assert "epsilon 50, delta 1e-06, 1e-08 of it for releases" in made
    done(*SELECT, "--ledger", "found.db", "--purpose", "errors")
    assert "1e-08 of 1e-08 is spent on releases" in done("budget", "show", "found.db")
    assert json.loads(done("budget", "show", "found.db", "--format", "json"))["spent_delta"] == "1/100000000"
    assert "epsilon 20  delta 1e-08  top 2 of those found" in done("budget", "history", "found.db")
    assert refused(*SELECT, "--ledger", "found.db", code=1).startswith("delta 1e-08 does not fit: 0 of 1e-08 is left")


def test_a_plan_says_what_an_item_needs(done, refused):
    asked = ("plan", "--discover", "--delta", "1e-8", "--max-items-per-user", "3", "-k", "20")
    text = done(*asked, "--epsilon", "1")
    assert text.startswith("The threshold is 198 people. An item that fewer than about 180 people touched")
    data = json.loads(done(*asked, "--epsilon", "1", "--adjacency", "swap", "--json"))
    assert (data["threshold"], data["delta"], data["max_items_per_user"]) == (411, "1/100000000", 3)
    assert refused(*asked).startswith("epsilon must be given with discover")
    assert refused(*asked, "scores.csv").startswith("FILE must be left out with discover")
    assert refused("plan", "-k", "2") == "FILE is missing; for example: discreet plan scores.csv -k 10"
    assert refused("plan", "scores.csv", "-k", "2", "--delta", "1e-8").startswith("delta must be left out without")
