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


def test_a_plan_has_the_choice_of_its_release(done):
    asked = ("plan", "--discover", "--delta", "1e-8", "-k", "20", "--epsilon", "1", "--json")
    data = json.loads(done(*asked))
    assert (data["method"], data["choice"]["threshold"]) == ("auto", "121/6")
    for more in (("--max-groups-per-user", "2"), ("--each-user", "one")):
        planned = json.loads(done(*asked, *more))
        assert planned["method"] == "gaussian"
        assert "choice" not in planned


def test_a_delta_is_enough(done):
    asked = ("--discover", "--delta", "1e-8", "-k", "2", "--epsilon", "20")
    data = json.loads(done("select", "logs.parquet", *FOUND[:4], *asked, "--json"))
    assert data["items"] == ["disk full", "timeout"]
    found = data["guarantee"]["discovery"]
    assert (found["method"], found["max_items_per_user"]) == ("auto", 100)
    assert discreet.Release.from_dict(data).guarantee.discovery == discreet.discovered("1e-8").plan(2, 20)
    text = done("plan", *asked[:-1], "1", "--discovery-epsilon", "0.5")
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
        (("--spelling", "lower"), "spelling must be one of exact, casefold, trim, both, fold, not 'lower'"),
        (("--method", "gauss"), "method must be one of auto, gaussian, laplace, not 'gauss'; did you mean gaussian?"),
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
        (("--discover",), "delta must be given for discovery"),
        (
            ("--discover", "--delta", "1e-8", "--method", "laplace"),
            "max_items_per_user must be given with the method 'laplace'",
        ),
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
    assert refused(*SELECT, "--ledger", "plain.db", code=3).startswith(
        "delta 1e-08 does not fit: the ledger has none for"
    )
    made = done(*budget, "found.db", "--delta", "1e-6", "--release-delta", "1e-8")
    assert "epsilon 50, delta 1e-06, 1e-08 of it for releases" in made
    done(*SELECT, "--ledger", "found.db", "--purpose", "errors")
    assert "1e-08 of 1e-08 is spent on releases" in done("budget", "show", "found.db")
    assert json.loads(done("budget", "show", "found.db", "--format", "json"))["spent_delta"] == "1/100000000"
    assert "epsilon 20  delta 1e-08  top 2 of those found" in done("budget", "history", "found.db")
    assert refused(*SELECT, "--ledger", "found.db", code=3).startswith("delta 1e-08 does not fit: 0 of 1e-08 is left")


def test_a_plan_says_what_an_item_needs(done, refused):
    asked = ("plan", "--discover", "--delta", "1e-8", "--max-items-per-user", "3", "--method", "laplace", "-k", "20")
    text = done(*asked, "--epsilon", "1")
    assert text.startswith("The threshold is 198 people. An item that fewer than about 180 people touched")
    data = json.loads(done(*asked, "--epsilon", "1", "--adjacency", "swap", "--json"))
    assert (data["threshold"], data["delta"], data["max_items_per_user"]) == (411, "1/100000000", 3)
    assert "from 174 people on, 50% from 198 and 95% from 222." in text
    planned = [line.split() for line in text.splitlines() if line.endswith(" planned")]
    assert planned == [["laplace", "0.2875", "0.7125", "174", "198", "222", "222", "planned"]]
    gaussian = [line.split() for line in text.splitlines() if line.startswith("  gaussian")]
    assert [row[1] for row in gaussian] == ["0.25", "0.2875", "0.5", "0.75"]
    assert [row[-1] for row in gaussian if row[-1] == "default"] == ["default"]
    assert [choice["mark"] for choice in data["choices"]].count("planned") == 1
    assert data["people"]["1/2"] == 411
    assert refused(*asked).startswith("epsilon must be given with discover")
    assert refused(*asked, "scores.csv").startswith("FILE must be left out with discover")
    assert "from a sketch of such items, leave out discover" in refused(*asked, "scores.csv")
    assert refused("plan", "-k", "2") == "FILE is missing; for example: discreet plan scores.csv -k 10"
    assert refused("plan", "scores.csv", "-k", "2", "--delta", "1e-8").startswith("delta must be left out without")


def test_spellings_fold_and_expressions_stand_for_columns(done):
    lines = ["who,what,plz", *(f"{i},{('Äpfel', ' ÄPFEL ', 'äpfel')[i % 3]},{i % 2}0115" for i in range(300))]
    Path("rows.csv").write_text("\n".join(lines), encoding="utf-8")
    of_rows = ("select", "rows.csv", "--user", "who", "-k", "1", "--epsilon", "50", "--format", "items")
    found = ("--discover", "--delta", "1e-8", "--max-items-per-user", "1")
    assert done(*of_rows, "--item", "what", *found, "--spelling", "fold") == "äpfel\n"
    Path("items.csv").write_text("what\näpfel\nbirnen\n", encoding="utf-8")
    listed = ("--item", "fold(trim(what))", "--domain", "items.csv:what")
    assert done(*of_rows, *listed) == "äpfel\n"
    split = ("--by", "substring(plz, 1, 2)", "--groups", "plz.csv:plz", "--each-user", "one")
    Path("plz.csv").write_text("plz\n00\n10\n", encoding="utf-8")
    data = json.loads(done(*of_rows[:-2], *listed, *split, "--json"))
    assert [group["items"] for group in data["groups"]] == [["äpfel"], ["äpfel"]]
    assert "plz, 1, 2" in json.dumps(data)


@pytest.mark.some(3)
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize(
    ("each_user", "options"),
    [
        ("many", ("--max-groups-per-user", "2")),
        # The release counts a user in no more groups than there are.
        ("many", ("--max-groups-per-user", "12")),
        ("many", ()),
        ("one", ()),
    ],
)
def test_a_plan_is_for_the_partition_selection_of_the_release(method, adjacency, each_user, options, done):
    terms = ("--discover", "--delta", "1e-8", "--max-items-per-user", "3", "--method", method, "-k", "2", "--json")
    Path("lands.csv").write_text("land\nDE\nFR\nIT\n", encoding="utf-8")
    grouped = ("--by", "land", "--groups", "lands.csv:land", "--each-user", each_user, *options)
    asked = (*terms, "--epsilon", "20", "--adjacency", adjacency, *grouped)
    planned = json.loads(done("plan", *asked))
    released = json.loads(done("select", "logs.parquet", "--user", "device", "--item", "message", *asked))
    promised = discreet.GroupedRelease.from_dict(released).guarantee.discovery
    assert {name: planned[name] for name in promised.to_dict()} == promised.to_dict()
    assert planned.get("max_groups_per_user", 1) == promised.max_groups_per_user


def test_a_plan_by_group_needs_no_events(done, refused):
    terms = ("--discover", "--delta", "1e-8", "--max-items-per-user", "3", "--method", "laplace")
    asked = ("plan", *terms, "-k", "20", "--epsilon", "1")
    text = done(*asked, "--max-groups-per-user", "2")
    assert text.startswith("The threshold is 409 people. An item that fewer than about 380")
    assert done(*asked, "--each-user", "many", "--max-groups-per-user", "2") == text
    assert done(*asked, "--each-user", "one") == done(*asked)
    assert refused(*asked, "--each-user", "many").startswith("max_groups_per_user must be given with each_user many")
    assert refused(*asked, "--each-user", "one", "--max-groups-per-user", "2").startswith("max_groups_per_user must be")
    assert refused(*asked, "--groups", "1..3").startswith("groups must be left out without by")


def test_a_plan_says_what_busy_people_count(done):
    text = done("plan", "--discover", "--delta", "1e-8", "--method", "gaussian", "-k", "20", "--epsilon", "1")
    assert " if they touched nothing else, and from " in text
    assert " if each of them touched 100 items." in text
    assert "  95% at 100 items" in text


def test_commands_that_spend_no_delta_need_none(done):
    events = ("logs.parquet", *FOUND[:4], "--discover")
    done("sketch", *events, "--epsilon", "20", "--ranks", "1,2", "--out", "curve.json")
    curve = discreet.Sketch.from_json(Path("curve.json").read_text(encoding="utf-8"))
    assert curve.terms == discreet.discovered("1e-8")
    assert done("check", *events) == done("check", *events, "--delta", "1e-6")


@pytest.mark.some(1)
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_a_sketch_needs_no_delta_and_a_plan_needs_the_sketch_alone(method, done, refused):
    done("budget", "init", "plain.db", "--epsilon", "50", "--unit", "devices")
    asked = ("sketch", "logs.parquet", *FOUND, "--method", method, "--epsilon", "20", "--ranks", "1,2,3,50")
    text = done(*asked, "--ledger", "plain.db", "--purpose", "planning", "--out", "curve.json")
    assert text.startswith("Scores at 4 ranks of items that nobody listed, noise within ")
    assert "delta" not in text
    assert "sketch of 4 ranks" in done("budget", "history", "plain.db")
    curve = discreet.Sketch.from_json(Path("curve.json").read_text(encoding="utf-8"))
    assert (curve.domain_size, curve.terms.method, curve.terms.max_items_per_user) == (None, method, 3)
    goal = ("-k", "2", "--goal", "recall", "--probability", "0.9")
    plan = done("plan", "curve.json", *goal)
    assert " finds the items. An item is found with a chance of 5% from " in plan
    assert f"--discover --delta 1e-8 --max-items-per-user 3 --method {method} -k 2 --epsilon " in plan
    assert "as if each person had 3 items, and 1,000,000 more items the score of rank 50" in plan
    assert "counting only lists for which the whole top k was found" in plan
    data = json.loads(done("plan", "curve.json", *goal, "--json"))
    planned = curve.terms.plan(2, data["recommended"]["epsilon"])
    assert {name: data["discovery"][name] for name in planned.to_dict()} == planned.to_dict()
    expected = data["recommended"]["shortfall"]
    assert 0 <= int(expected["median"]) <= int(expected["most"])
    assert data["d"] is None
    # The plan is for a release that finds and selects as it says.
    command = plan.partition("To release: discreet ")[2].splitlines()[0].split()
    columns = {"FILE": "logs.parquet", "USER": "device", "ITEM": "message"}
    assert len(done(*(columns.get(word, word) for word in command), "--format", "items").splitlines()) <= 2
    assert refused("sketch", "logs.parquet", *FOUND[:4], "--epsilon", "1").startswith("domain must be given with user")
    assert refused("sketch", "scores.csv", "--discover", "--epsilon", "1").startswith("discover must be left out")
    assert refused("study", "--data", "curve.json", "--out", "report").startswith("data must be scores of a public")
