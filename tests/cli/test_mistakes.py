"""The most common mistakes: each is answered by one line that says what to type."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from command_line import EVENTS, FROM_EVENTS, MOVIES, SELECT, write_table


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (SELECT[:4], "--epsilon is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (SELECT[:2], "-k is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (("select",), "FILE is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (("plan",), "FILE is missing; for example: discreet plan scores.csv -k 10"),
        (("plan", "scores.csv"), "-k is missing; for example: discreet plan scores.csv -k 10"),
        (("study",), "--out is missing; for example: discreet study --out report"),
        (("budget", "show"), "FILE is missing; for example: discreet budget show budget.db"),
        (("budget", "export"), "FILE is missing; for example: discreet budget export budget.db --out budget.json"),
        (("budget", "check"), "FILE is missing; for example: discreet budget check budget.db"),
        (("budget", "history"), "FILE is missing; for example: discreet budget history budget.db"),
    ],
)
def test_what_is_missing_is_named_with_an_example(refused, args, sentence):
    assert refused(*args) == sentence


def test_a_database_is_called_connect(refused, ratings):
    said = refused("select", "--connect", "sqlite://none.db", "--name", "ratings", *FROM_EVENTS[2:])
    assert said == "connect must be the URL of a database file that exists, not one of 'none.db'"


def test_a_domain_that_was_forgotten(refused, ratings):
    assert refused("select", "ratings.parquet", *EVENTS, "-k", "1", "--epsilon", "1").startswith(
        "domain must be given with user: a public list of items, such as movies.csv:movie_id or integers:0:999,"
    )


def test_a_k_larger_than_the_domain(refused, ratings):
    end = "the number of items, not 200"
    assert refused(*SELECT, "-k", "200") == f"k must be a whole number from 1 to 4, {end}"
    assert refused(*FROM_EVENTS, "-k", "200") == f"k must be a whole number from 1 to 120, {end}"


@pytest.mark.parametrize(
    ("args", "near"),
    [
        ((*SELECT, "--item", "itme"), "item"),
        ((*SELECT, "--score", "Scores"), "score"),
        (("select", "scores.parquet", *SELECT[2:], "--score", "fan_5"), "fans_5"),
        (("select", "scores.json", *SELECT[2:], "--item", "tilte"), "title"),
        (("plan", "scores.csv", "-k", "1", "--item", "itm"), "item"),
        ((*FROM_EVENTS, "--user", "userid"), "user_id"),
        (("select", "ratings-*.csv", *FROM_EVENTS[2:], "--user", "userid"), "user_id"),
        ((*FROM_EVENTS, "--item", "movieid"), "movie_id"),
        ((*FROM_EVENTS, "--value", "star", "--clip", "0,5"), "stars"),
        ((*FROM_EVENTS, "--where", "star = 5"), "stars"),
        ((*FROM_EVENTS, "--domain", "movies.csv:movie"), "movie_id"),
        ((*FROM_EVENTS, "--label", "tittle"), "title"),
        (("select", "--connect", "sqlite://ratings.db", "--name", "rating", *FROM_EVENTS[2:]), "ratings"),
        ((*SELECT, "--mechanism", "oneshot"), "one-shot"),
        ((*SELECT, "--noise", "Laplacian"), "laplace"),
        ((*SELECT, "--noise", "halflogistic"), "half-logistic"),
        ((*SELECT, "--adjacency", "add_remove"), "add-remove"),
        ((*SELECT, "--adjacency", "swop"), "swap"),
        ((*SELECT, "--format", "jason"), "json"),
        (("plan", "scores.csv", "-k", "1", "--goal", "best-top"), None),
        (("plan", "scores.csv", "-k", "1", "--goal", "optimum"), "optimal"),
        (("verify", "--adjacency", "swaps"), "swap"),
        (("audit", "--mechanism", "cannonical"), "canonical"),
        (("budget", "init", "b.db", "--epsilon", "1", "--unit", "x", "--adjacency", "addremove"), "add-remove"),
    ],
)
def test_the_nearest_is_suggested(refused, ratings, args, near):
    columns = {"title": ["a", "b"], "fans_5": [1, 2]}
    pa.parquet.write_table(pa.table(columns), "scores.parquet")
    Path("scores.json").write_text(json.dumps([{"title": "a", "score": 1}, {"title": "b", "score": 2}]))
    sentence = refused(*args)
    assert sentence.endswith(f"; did you mean {near}?") if near else "did you mean" not in sentence


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("selct",), "no such command 'selct' (did you mean select?); see 'discreet --help'"),
        (("budget", "shwo"), "no such command 'shwo' (did you mean show?); see 'discreet budget --help'"),
        (
            (*SELECT, "--epsilom", "1"),
            "no such option: --epsilom (did you mean --epsilon?); see 'discreet select --help'",
        ),
        ((*SELECT, "--ledgr=b.db"), "no such option: --ledgr (did you mean --ledger?); see 'discreet select --help'"),
        (("xyzzy",), "no such command 'xyzzy'; see 'discreet --help'"),
        ((*SELECT, "--xyzzy"), "no such option: --xyzzy; see 'discreet select --help'"),
    ],
)
def test_commands_and_options_are_suggested_too(refused, args, sentence):
    assert refused(*args).lower() == sentence.lower()


def test_a_first_line_without_names_is_not_shown(refused):
    """Where the columns have no names, the first line is a row of data; its scores are never suggested."""
    write_table("bare.csv", ("dune", "912345"), {"alien": 877})
    for asked in ("912344", "91234", "dune9"):
        sentence = refused("select", "bare.csv", *SELECT[2:], "--score", asked)
        assert "912345" not in sentence
        assert "whose first line holds numbers and may not be a header" in sentence


def test_values_are_never_suggested(refused, ratings):
    """Only names of columns are: an item of the events that is like what was typed stays untold."""
    write_table("ratings-1.csv", ("user_id", "movie_id"), {"anna": "solaris", "bert": "stalker"})
    for option in ("--user", "--item", "--label"):
        args = ("select", "ratings-1.csv", *EVENTS, *MOVIES, "-k", "1", "--epsilon", "1", option, "solari")
        assert "solaris" not in refused(*args)
