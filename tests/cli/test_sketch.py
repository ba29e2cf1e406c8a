"""The curve is bought on the command line, charged and written, and `plan` reads it in place of scores."""

import json
from pathlib import Path

import pytest

import discreet
from command_line import EVENTS, MOVIES, write_table

MANY = {f"film {i}": 1000 - 8 * i for i in range(60)}
EXAMPLE = "for example: discreet sketch scores.csv --epsilon 0.05 --out curve.json"
GOAL = ("-k", "5", "--goal", "recall", "--probability", "0.9")


@pytest.fixture(autouse=True)
def many(folder):
    write_table("films.csv", ("item", "score"), MANY)


def read(name="curve.json"):
    return discreet.Sketch.from_json(Path(name).read_text())


def test_a_curve_is_written_and_planned_from(done):
    out = done("sketch", "films.csv", "--epsilon", "0.5", "--out", "curve.json")
    sketch = read()
    assert out.rstrip("\n") == str(sketch)
    assert sketch.ranks == (1, 2, 5, 10, 20, 50, 60)
    planned = done("plan", "curve.json", *GOAL)
    assert "NOT private" not in planned
    assert "computed from a sketch that cost epsilon = 0.5" in planned
    assert planned.rstrip("\n") == str(discreet.plan(sketch, 5, goal="recall", probability="0.9", name="curve.json"))
    told = json.loads(done("plan", "curve.json", *GOAL, "--json"))
    assert (told["private"], told["d"]) == (True, 60)
    assert told["sketch"] == {"epsilon": "1/2", "ranks": [1, 2, 5, 10, 20, 50, 60], "doubtful": sketch.is_doubtful(5)}
    assert json.loads(done("plan", "films.csv", *GOAL, "--json"))["sketch"] is None


def test_ranks_sensitivity_and_adjacency_are_those_given(done):
    options = ("--ranks", "1, 5,60", "--sensitivity", "1,2", "--adjacency", "swap")
    out = done("sketch", "films.csv", "--epsilon", "1000", *options, "--json", "--out", "curve.json")
    sketch = read()
    assert sketch == discreet.Sketch.from_json(out)
    assert sketch.scores == [1000, 968, 528]
    assert sketch.sensitivity == discreet.Sensitivity(1, 2)
    told = json.loads(done("plan", "curve.json", *GOAL, "--json"))
    assert (told["adjacency"], told["sensitivity"]) == ("swap", {"down": "1", "up": "2"})


def test_events_are_sketched(done, ratings):
    events = ("ratings.parquet", *EVENTS, *MOVIES, "--max-items-per-user", "3")
    done("sketch", *events, "--epsilon", "1000", "--ranks", "1,2,3,4", "--out", "curve.json")
    sketch = read()
    assert sketch.scores == [30, 15, 1, 0]
    assert (sketch.d, sketch.max_items_per_user) == (120, 3)
    done(
        "sketch", *events, "--value", "stars", "--clip", "0,5", "--epsilon", "1000", "--ranks", "1", "--out", "sum.json"
    )
    assert read("sum.json").scores == [90]
    assert read("sum.json").sensitivity == discreet.Sensitivity(0, 5)


def test_it_is_charged(done, refused):
    discreet.Ledger.create("budget.db", epsilon=1, unit="viewers")
    ask = ("sketch", "films.csv", "--ledger", "budget.db", "--purpose", "a plan", "--request-id", "may", "--quiet")
    out = done(*ask, "--epsilon", "0.75", "--json")
    assert done(*ask, "--epsilon", "0.75", "--json") == out
    assert discreet.Ledger("budget.db").left == discreet.Ledger("budget.db").budget.epsilon / 4
    line = done("budget", "history", "budget.db")
    assert "epsilon 0.75  sketch of 7 ranks of 60  discrete-laplace  a plan  request may" in line
    complaint = refused("sketch", "films.csv", "--ledger", "budget.db", "--epsilon", "0.5", code=3)
    assert complaint == "epsilon 0.5 does not fit: 0.25 of 1 is left, and nothing was drawn"


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--epsilon", "1"), f"FILE is missing; {EXAMPLE}"),
        (("films.csv",), f"--epsilon is missing; {EXAMPLE}"),
        (("films.csv", "--epsilon", "0"), "epsilon must be above zero, not '0'"),
        (("films.csv", "--epsilon", "1", "--ranks", "1,x"), "ranks must be a whole number such as 10, not 'x'"),
        (
            ("films.csv", "--epsilon", "1", "--ranks", "1,99"),
            "ranks must be a whole number from 1 to 60, the number of items, not 99",
        ),
        (("films.csv", "--epsilon", "1", "--grid", "1"), "grid must be left out, because the scores have their own"),
        (
            ("films.csv", "--epsilon", "1", "--domain", "x.csv:a"),
            "domain must be left out without user: a file of scores lists its own items",
        ),
        (
            ("films.csv", "--epsilon", "1", "--user", "u", "--item", "i", "--sensitivity", "1,1"),
            "sensitivity must be left out with user: the events tell how far one user can move a score",
        ),
        (
            ("films.csv", "--epsilon", "1", "--out", "films.csv"),
            "out must be another file than the scores, not 'films.csv'",
        ),
        (("films.csv", "--epsilon", "1", "--by", "x"), "no such option: --by; see 'discreet sketch --help'"),
    ],
)  # fmt: skip
def test_bad_use_is_one_line(refused, args, complaint):
    assert refused("sketch", *args) == complaint


def test_a_sketch_is_for_plans_alone(done, refused):
    done("sketch", "films.csv", "--epsilon", "1", "--out", "curve.json")
    assert "must be left out for" in refused("plan", "curve.json", *GOAL, "--item", "title")
    assert "sensitivity must be left out, because the source" in refused(
        "plan", "curve.json", *GOAL, "--sensitivity", "0,1"
    )
    assert "adjacency must be that of the source" in refused("plan", "curve.json", *GOAL, "--adjacency", "swap")
    refused("select", "curve.json", "-k", "1", "--epsilon", "1")
    data = json.loads(Path("curve.json").read_text())
    Path("curve.json").write_text(json.dumps({**data, "ranks": [5, 1]}))
    assert refused("plan", "curve.json", *GOAL).startswith("data must be a sketch")
