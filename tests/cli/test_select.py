import json
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet
from command_line import EVENTS, FROM_EVENTS, MOVIES, SCORES, SELECT, process, without_notes, write_table
from discreet.cli import events, select
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import MECHANISMS

FROM_SQLITE = ("select", "--connect", "sqlite://ratings.db", *FROM_EVENTS[2:])


def selected(call, *extra, k=2, epsilon="1000"):
    code, out, err = call("select", "scores.csv", "-k", str(k), "--epsilon", epsilon, "--json", *extra)
    assert (code, err) == (0, "")
    return discreet.Release.from_json(out)


def released(call, *args):
    code, out, err = call(*args, "--json")
    assert (code, without_notes(err)) == (0, "")
    return discreet.Release.from_json(out)


def test_select_prints_the_release(call):
    code, out, err = call("select", "scores.csv", "-k", "2", "--epsilon", "1000")
    assert (code, err) == (0, "")
    expected = discreet.top_k(SCORES, k=2, epsilon=1000)
    assert out == f"{expected}\n"
    assert "  alien\n  dune\n" in out


def test_select_prints_json(call):
    assert selected(call) == discreet.top_k(SCORES, k=2, epsilon=1000)


TYPED_FILES = [
    *((kind, False) for kind in (np.dtype("i4"), np.dtype("bool"), pa.int64(), pa.uint8())),
    *((kind, True) for kind in (np.dtype("f2"), np.dtype("f8"), pa.float32(), pa.float64(), pa.decimal128(21, 2))),
]


@pytest.mark.some(6)
@pytest.mark.parametrize(("kind", "is_float"), TYPED_FILES, ids=str)
@pytest.mark.parametrize(
    "command", [("select", "--epsilon", "1000"), ("sketch", "--epsilon", "1"), ("plan", "--goal", "recall")]
)
def test_files_of_floats_need_a_sensitivity_by_the_type_that_they_declare(call, kind, is_float, command):
    """The numbers in them are whole all the same."""
    if isinstance(kind, np.dtype):
        file = "typed.npy"
        np.save(file, np.array([0, 1, 0], kind))
    else:
        file, scores = "typed.parquet", pa.array([0, 1, 0]).cast(kind)
        pa.parquet.write_table(pa.table({"item": ["a", "b", "c"], "score": scores}), file)
    rest = (*command[1:], *(() if command[0] == "sketch" else ("-k", "1")))
    rest += ("--grid", "1") if command[0] == "sketch" and is_float else ()
    code, out, err = call(command[0], file, *rest)
    if is_float:
        assert (code, out) == (2, "")
        assert "sensitivity must be given for scores that are not whole numbers by their type" in err
        assert "--sensitivity 0,1 on the command line" in err
        assert len(err.splitlines()) == 1
        code, out, err = call(command[0], file, *rest, "--sensitivity", "0,1")
    assert (code, err) == (0, "")
    if command[0] == "plan":
        assert ("--sensitivity 0,1" in out) is is_float
    else:
        assert "who adds at most 1 to each score." in out


@pytest.mark.parametrize("text", ["0.1", "1/3", "1e-2"])
def test_epsilon_is_exact(call, text):
    assert selected(call, epsilon=text).guarantee.epsilon == Fraction(text)


@pytest.mark.parametrize(
    ("options", "mechanism"),
    [
        ((), discreet.Canonical()),
        (("--gamma", "0.1", "--noise", "laplace"), discreet.Canonical(gamma="1/10", noise="laplace")),
        (("--ceil",), discreet.Canonical(ceil=True)),
        (("--mechanism", "one-shot"), discreet.OneShot()),
        (("--mechanism", "one-shot", "--noise", "gumbel"), discreet.OneShot(noise="gumbel")),
        (("--mechanism", "peeling", "--noise", "logistic"), discreet.Peeling(noise="logistic")),
        (("--mechanism", "joint"), discreet.Joint()),
    ],
)
def test_mechanisms_and_their_options(call, options, mechanism):
    assert selected(call, *options).guarantee.mechanism == mechanism


def test_sensitivity_and_adjacency(call):
    guarantee = selected(call, "--sensitivity", "0.5,2").guarantee
    assert guarantee.sensitivity == discreet.Sensitivity(down="1/2", up=2)
    guarantee = selected(call, "--adjacency", "swap").guarantee
    assert (guarantee.adjacency, guarantee.sensitivity) == ("swap", discreet.Sensitivity(down=1, up=1))


def test_columns(call):
    write_table("films.csv", ("title", "fans"), SCORES)
    write_table("wide.csv", ("fans", "year", "title"), {f"{score},1999": item for item, score in SCORES.items()})
    for file in ("films.csv", "wide.csv"):
        code, out, _ = call("select", file, "-k", "1", "--epsilon", "1000", "--item", "title", "--score", "fans")
        assert code == 0
        assert "\n  dune\n" in out


def test_version(call):
    assert call("--version") == (0, f"discreet {discreet.__version__}\n", "")


@pytest.mark.parametrize("args", [("--help",), ("-h",)])
def test_help_lists_the_commands(call, args):
    code, out, err = call(*args)
    assert (code, err) == (0, "")
    assert re.search(r"^  select +Release the k items", out, re.MULTILINE)


def test_help_of_select_names_every_option_and_default(call):
    code, out, err = call("select", "--help")
    assert (code, err) == (0, "")
    options = (
        "-k --epsilon --item --score --user --domain --label --where --value --clip --resolution --connect --name "
        "--mechanism --gamma --noise --ceil --sensitivity --adjacency --ledger --purpose --request-id --json --out "
        "--input-format --format --dataset --pad-to"
    )
    assert set(options.split()) <= set(re.findall(r"^  (--?[\w-]+)", out, re.MULTILINE))
    assert re.search(r"^  -q, --quiet ", out, re.MULTILINE)
    flat = "".join(out.split())  # lines also end at hyphens
    assert "canonical,one-shot,peeling,joint" in flat
    noises = {name: kind().parameters().get("noise") for name, kind in MECHANISMS.items()}
    assert "Bydefaultgumbel,withone-shotexponential." in flat
    assert noises == {
        "canonical": "gumbel",
        "one-shot": "exponential",
        "peeling": "gumbel",
        **dict.fromkeys(("joint", "histogram", "core")),
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "place",
    [
        ("ratings.parquet",),
        ("ratings-*.csv",),
        ("--connect", "sqlite://ratings.db", "--name", "ratings"),
        ("--connect", "duckdb://ratings.duckdb", "--name", "ratings"),
    ],
)
def test_events_are_counted_by_user_wherever_they_are(call, ratings, place):
    release = released(call, "select", *place, *EVENTS, *MOVIES, "--label", "title", "-k", "2", "--epsilon", "1000")
    source = discreet.events("ratings.parquet", user="user_id", item="movie_id", domain=list(range(120)))
    expected = discreet.top_k(source, k=2, epsilon=1000)
    assert release.items == [f"film {item}" for item in expected.items] == ["film 7", "film 8"]
    assert release.guarantee == expected.guarantee


def test_a_histogram_of_events_has_values(call, ratings):
    options = ("--max-items-per-user", "2", "--mechanism", "histogram", "--epsilon", "1000")
    release = released(call, *FROM_EVENTS, *options)
    assert release.guarantee.mechanism == discreet.Histogram()
    assert release.guarantee.sensitivity.l1 == 2
    assert [count.item for count in release.counts] == release.order
    _, out, _ = call(*FROM_EVENTS, *options)
    assert "hold for all items at once" in out


def test_a_histogram_of_scores_whose_users_are_known_to_move_few(call):
    release = released(call, *SELECT, "--mechanism", "histogram", "--sensitivity", "0,1,2", "--adjacency", "swap")
    assert release.guarantee.sensitivity.l1 == 4
    assert len(release.counts) == release.k


def test_core_says_how_many_the_data_support(call, tmp_path):
    np.save("popular.npy", np.array([10**6] * 30 + [0] * 50_000))
    options = ("select", "popular.npy", "-k", "60", "--epsilon", "1", "--mechanism", "core")
    release = released(call, *options, "--otherwise", "none", "--precision", "0.9")
    assert release.guarantee.mechanism == discreet.Core("0.9", otherwise=None)
    assert (release.chosen, release.asked) == ("core", 60)
    _, out, _ = call(*options, "--precision", "0.9")
    assert "of the 60 asked for: the data do not support more at this epsilon" in out
    _, out, _ = call(*SELECT, "--mechanism", "core", "--otherwise", "one-shot")
    assert "DOUBTFUL: to choose how many items to release costs more than it gains for k below 50" in out


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--mechanism", "core", "--otherwise", "joint"), "otherwise must be one of one-shot, none, not 'joint'"),
        (("--mechanism", "core", "--precision", "2"), "precision must be above 0 and at most 1, not '2'"),
        (
            ("--mechanism", "core", "--gamma", "1"),
            "gamma must be left out with the mechanism core, which takes only precision and otherwise",
        ),
        (
            ("--otherwise", "none"),
            "otherwise must be left out with the mechanism canonical, which takes only gamma and noise and ceil",
        ),
    ],
)
def test_options_of_core_are_its_own(call, options, error):
    code, out, err = call(*SELECT, *options)
    assert (code, out) == (2, "")
    assert error in err


def test_where_chooses_events(call, ratings):
    assert released(call, *FROM_EVENTS, "--where", "stars = 5").items == [8]


@pytest.mark.parametrize(
    ("options", "item", "sensitivity"),
    [
        (("--clip", "0,500"), 9, discreet.Sensitivity(0, 500)),
        (("--clip", "0,5"), 7, discreet.Sensitivity(0, 5)),
        (("--clip", "-1,4.5", "--resolution", "0.5"), 7, discreet.Sensitivity(1, "4.5")),
        (("--clip", "-1,5", "--adjacency", "swap"), 7, discreet.Sensitivity(6, 6)),
    ],
)
def test_values_are_clipped_for_each_user(call, ratings, options, item, sensitivity):
    release = released(call, *FROM_EVENTS, "--value", "stars", *options)
    assert release.items == [item]
    assert release.guarantee.sensitivity == sensitivity


def test_a_range_of_whole_numbers_is_a_domain(call, ratings):
    release = released(call, *FROM_EVENTS, "--domain", "integers:-9223372036854775808:-1")
    assert (release.d, release.k) == (2**63, 1)
    assert released(call, *FROM_EVENTS, "--domain", "integers:8:100").items == [8]


def test_all_strings_up_to_a_length_are_a_domain(call, ratings):
    release = released(call, *FROM_EVENTS, "--domain", "strings:a-z0-9:3")
    assert (release.d, release.items) == (36 + 36**2 + 36**3, ["7"])
    assert released(call, *FROM_EVENTS, "--domain", "strings:8:9:2").items == ["8"], "the last colon counts"


def test_adjacency_reaches_the_events(call, ratings):
    guarantee = released(call, *FROM_EVENTS, "--adjacency", "swap").guarantee
    assert (guarantee.adjacency, guarantee.sensitivity) == ("swap", discreet.Sensitivity(1, 1))


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("select",), "FILE is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (SELECT[:2], "-k is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (SELECT[:4], "--epsilon is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (("select", "no.csv", *SELECT[2:]), "'no.csv' must be a file that can be read, but does not exist"),
        (("select", ".", *SELECT[2:]), "'.' must be a file that can be read, but is a directory"),
        ((*SELECT, "-k", "5"), "k must be a whole number from 1 to 4, the number of items, not 5"),
        ((*SELECT, "-k", "-1"), "k must be a whole number from 1 to 4, the number of items, not -1"),
        ((*SELECT, "-k", "two"), "k must be a whole number such as 10, not 'two'"),
        ((*SELECT, "--epsilon", "0"), "epsilon must be above zero, not '0'"),
        ((*SELECT, "--epsilon", "x"), "epsilon must be a finite number such as '0.5', '1/3' or '1e-6', not 'x'"),
        (
            (*SELECT, "--sensitivity", "1"),
            "sensitivity must be two numbers DOWN,UP such as 0,1, or three DOWN,UP,L such as 0,1,5, not '1'",
        ),
        ((*SELECT, "--sensitivity", "0,1,x"), "sensitivity items must be a whole number such as 10, not 'x'"),
        (
            (*SELECT, "--mechanism", "histogram"),
            "mechanism must not be Histogram() unless it is known how many items one user touches at most, because its "
            "noise is for all scores together: give events max_items_per_user, or scores a "
            "Sensitivity(down, up, items=...)",
        ),
        ((*SELECT, "--sensitivity", "-1,1"), "sensitivity down must be zero or more, not '-1'"),
        ((*SELECT, "--adjacency", "all"), "adjacency must be 'add-remove' or 'swap', not 'all'"),
        (
            (*SELECT, "--mechanism", "x"),
            "mechanism must be one of canonical, one-shot, peeling, joint, histogram, core, not 'x'",
        ),
        ((*SELECT, "--gamma", "2"), "gamma must be from 0 to 1, not '2'"),
        ((*SELECT, "--ceil", "--gamma", "1"), "ceil must be False unless gamma is 1/2, but gamma is '1'"),
        (
            (*SELECT, "--noise", "x"),
            f"noise must be one of {', '.join(NOISES)}, not 'x'",
        ),
        ((*SELECT, "--item", "x"), "item must name a column of 'scores.csv', one of 'item', 'score', not 'x'"),
        ((*SELECT, "--out", "no/top.json"), "out must be in a directory that exists, not 'no/top.json'"),
        ((*SELECT, "--out", "."), "out must be a file, not '.', a directory"),
        ((*SELECT, "--out", "/dev/null"), "out must be a regular file, not '/dev/null', a device or a pipe"),
        ((*SELECT, "--out", "./scores.csv"), "out must be another file than the scores, not 'scores.csv'"),
    ],
)
def test_bad_use_is_refused_in_one_sentence(refused, args, sentence):
    assert refused(*args) == sentence


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--score", "stars"), "score must be left out with user: the scores are made from the events"),
        (
            ("--sensitivity", "0,1"),
            "sensitivity must be left out with user: the events tell how far one user can move a score",
        ),
        (("--name", "ratings"), "name must be left out without connect: it is the table of a database"),
        (("--connect", "sqlite://ratings.db"), "connect must be left out with FILE: the input is one of the two"),
        (("--clip", "5"), "clip must be two numbers LOW,HIGH such as 0,5, not '5'"),
        (("--clip", "1,2,3"), "clip must be two numbers LOW,HIGH such as 0,5, not '1,2,3'"),
        (("--value", "stars", "--clip", "0,x"), "clip high must be a finite number such as '0.5', '1/3' or '1e-6'"),
        (("--value", "stars", "--clip", "5,0"), "clip must be (low, high) with low at most high"),
        (("--value", "stars", "--clip", "0,5", "--resolution", "3"), "resolution must divide the clip bounds"),
        (("--value", "stars"), "clip must be given with value"),
        (("--clip", "0,5"), "clip must be left out without value"),
        (("--domain", "integers:0"), "domain must be integers:LO:HI such as integers:0:999, not 'integers:0'"),
        (("--domain", "integers:0:9.5"), "domain must be integers:LO:HI such as integers:0:999, not 'integers:0:9.5'"),
        (("--domain", "integers:9:0"), "hi must be at least lo, 9, not 0"),
        (("--domain", "integers:0:9", "--label", "title"), "label must be left out when domain is a range"),
        (("--domain", "ratings.parquet:movie_id"), "domain must be a public list of items, not the events themselves"),
        (
            ("--domain", "postgres://a/b"),
            "domain must be FILE:COLUMN, connect:TABLE.COLUMN, integers:LO:HI or strings:ALPHABET:MAX, not the",
        ),
        (("--domain", "strings:abc"), "domain must be strings:ALPHABET:MAX such as strings:abc:8, not 'strings:abc'"),
        (("--domain", "strings:a-za:3"), "alphabet must have each character once, but 'a' is there twice"),
        (("--domain", "strings:a-z:14"), "max_length must leave fewer than 2^63 strings"),
        (("--domain", "strings:abc:8", "--label", "title"), "label must be left out when domain is all strings up to"),
        (("--domain", "no.csv:movie_id"), "domain must be a file that exists, not 'no.csv'"),
        (("--domain", "movies.csv:id"), "domain must have a column called 'id', and has movie_id, title"),
        (("--label", "name"), "label must be a column of the domain, one of movie_id, title, not 'name'"),
        (("--user", "who"), "user must be a column of the table, one of user_id, movie_id, stars, not 'who'"),
        (("--where", "stars ="), "where must "),
        (("-k", "121"), "k must be a whole number from 1 to 120, the number of items, not 121"),
        (("--out", "ratings.parquet"), "out must be another file than the events, not 'ratings.parquet'"),
        (("--out", "./movies.csv"), "out must be another file than the domain, not 'movies.csv'"),
    ],
)
def test_bad_use_with_events_is_refused_in_one_sentence(refused, ratings, args, sentence):
    assert refused(*FROM_EVENTS, *args).startswith(sentence)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ("select", "ratings.parquet", *EVENTS, *SELECT[2:]),
            "domain must be given with user: a public list of items, such as movies.csv:movie_id or integers:0:999, "
            "because a list made from the events would tell what somebody touched; without a list, give discover with "
            "a delta (docs/discovery.md)",
        ),
        (
            ("select", "ratings.parquet", *EVENTS[:2], *MOVIES, *SELECT[2:]),
            "item must be given with user: the column that says what the user did it to",
        ),
        (FROM_SQLITE, "name must be given with connect: the table of the events in the database"),
        ((*FROM_SQLITE, "--name", "stars"), "name must be a table of SQLite, and 'stars' is none"),
        ((*FROM_SQLITE, "--connect", "ratings"), "connect must be the URL of a database, such as postgres://..."),
        (
            (*FROM_SQLITE, "--name", "ratings", "--out", "ratings.db"),
            "out must be another file than the events, not 'ratings.db'",
        ),
        (
            ("select", "ratings-*.csv", *FROM_EVENTS[2:], "--out", "ratings-2.csv"),
            "out must be another file than the events, not 'ratings-2.csv'",
        ),
        (("select", "no.parquet", *FROM_EVENTS[2:]), "table must be a file that exists, not 'no.parquet'"),
        (("select", *FROM_EVENTS[2:]), "FILE is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (
            ("select", "postgres://h/db", *FROM_EVENTS[2:]),
            "FILE must be a file, or the URL of one by https, s3 or gs; the URL of a database goes with --connect",
        ),
        ((*SELECT, *MOVIES), "domain must be left out without user: a file of scores lists its own items"),
        ((*SELECT, "--label", "title"), "label must be left out without user: a file of scores has its own labels"),
        (
            (*SELECT, "--where", "stars = 5"),
            "where must be left out without user: a file of scores has no rows of users to choose from",
        ),
        ((*SELECT, "--value", "stars"), "value must be left out without user: a file of scores is added up already"),
        ((*SELECT, "--clip", "0,5"), "clip must be left out without user: a file of scores is added up already"),
        (
            (*SELECT, "--resolution", "1"),
            "resolution must be left out without user: a file of scores is added up already",
        ),
        (
            (*SELECT, "--name", "ratings"),
            "name must be left out without user: it is the table of a database, which is read as events",
        ),
        (
            (*SELECT, "--delimiter", ";"),
            "delimiter must be left out without user: the header of a file of scores shows it",
        ),
        (
            (*SELECT, "--escape", "\\"),
            "escape must be left out without user: a file of scores doubles the quotes inside quotes",
        ),
        (
            ("select", "--connect", "sqlite://ratings.db", *SELECT[2:]),
            "connect must be left out without user: a database is read as events, not as scores",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(refused, ratings, args, sentence):
    assert refused(*args) == sentence


def test_without_a_command_there_is_help(call):
    code, out, err = call()
    assert (code, err) == (0, "")
    assert out == call("--help")[1]
    assert "discreet select scores.csv -k 10 --epsilon 1" in out


@pytest.mark.parametrize(("epsilon", "lines"), [("20", 0), ("20.1", 1), ("1e14", 1), ("1", 0)])
def test_an_epsilon_that_promises_nothing_gets_a_line_of_doubt(call, ratings, epsilon, lines):
    code, out, err = call("select", "scores.csv", "-k", "1", "--epsilon", epsilon)
    assert (code, err) == (0, "")
    assert out.count("\nDOUBTFUL: an epsilon above 20 promises next to nothing") == lines


def test_the_name_of_a_file_says_that_it_is_csv(call, ratings):
    asked = ("select", "scores.csv", "-k", "1", "--epsilon", "1")
    for out, begin in {"top.csv": "item\n", "TOP.CSV": "item\n", "top.json": "{", "top.txt": "Top 1 of"}.items():
        assert call(*asked, "--out", out)[0] == 0
        assert Path(out).read_text(encoding="utf-8").startswith(begin)
    assert call(*asked, "--out", "all.csv", "--format", "json")[0] == 0
    assert json.loads(Path("all.csv").read_text(encoding="utf-8"))["format"] == 1


@pytest.mark.parametrize("given", ["top.png", "top", "top.xlsx"])
def test_an_ending_that_out_does_not_know_is_refused_before_anything_is_charged(call, refused, ratings, given):
    assert call("budget", "init", "budget.db", "--epsilon", "1", "--unit", "readers")[0] == 0
    asked = ("select", "scores.csv", "-k", "1", "--epsilon", "1", "--ledger", "budget.db")
    known = "out must be a file with a name that ends in .json, .csv or .txt, not "
    assert refused(*asked, "--out", given) == f"{known}'{given}'"
    known = "chart must be a file with a name that ends in .png, .svg or .pdf, not "
    assert refused(*asked, "--chart", "top.jpg") == f"{known}'top.jpg'"
    assert refused(*asked, "--chart", "scores.csv").startswith("chart must be another file than the input")
    assert "releases  0" in call("budget", "show", "budget.db")[1]
    assert not Path(given).exists()


@pytest.mark.parametrize(
    ("ending", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_a_chart_is_drawn_in_the_format_of_its_name(call, ratings, ending, begin):
    asked = ("select", "scores.csv", "-k", "1", "--epsilon", "1", "--counts", "1")
    assert call(*asked, "--chart", f"top.{ending}")[0] == 0
    assert Path(f"top.{ending}").read_bytes().startswith(begin)


def test_a_chart_needs_matplotlib_before_anything_is_charged(refused, ratings, monkeypatch):
    monkeypatch.setattr("discreet.release.theme.find_spec", lambda name: None)
    sentence = refused("select", "scores.csv", "-k", "1", "--epsilon", "1", "--chart", "top.png")
    assert sentence.endswith('pip install "matplotlib>=3.9"')


def test_several_files_and_folders_are_events_together(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "days").mkdir()
    for name, rows in {"days/1.csv": "1;7\n2;7\n", "days/2.csv": "3;8\n4;7\n", "late.csv": "5;7\n6;8\n7;8\n"}.items():
        (tmp_path / name).write_text(f"who;what\n{rows}", encoding="utf-8")
    asked = (
        "--user",
        "who",
        "--item",
        "what",
        "--domain",
        "integers:7:9",
        "-k",
        "3",
        "--epsilon",
        "1",
        "--counts",
        "1000",
    )
    expected = "item,count,low,high\n7,4,4,4\n8,3,3,3\n9,0,0,0\n"
    for files in (("days/1.csv", "days/2.csv", "late.csv"), ("days", "late.csv"), ("days/*.csv", "late.csv"), (".",)):
        assert call("select", *files, *asked, "--format", "csv", "--quiet") == (0, expected, "")
    for files, sentence in (
        (("days/1.csv", "late.csv"), "FILE must be one file of scores, not 2; with --user there may be several"),
        (("-", "late.csv", *asked[:6]), "FILE must be - alone, or files: standard input is not read beside others"),
    ):
        assert call("select", *files, "-k", "1", "--epsilon", "1") == (2, "", f"discreet: {sentence}\n")


@pytest.mark.parametrize("debug", ["0", "1"])
@pytest.mark.parametrize(
    "args",
    [
        ("--connect", "postgres://ann:hunter2@127.0.0.1:1/films", "--name", "ratings"),
        ("--connect", "postgres://ann:hunter2@127.0.0.1:1/films"),
        ("--connect", "postgres://ann:hunter2@127.0.0.1:x/films", "--name", "ratings"),
        ("--connect", "nosuch://ann:hunter2@127.0.0.1/films", "--name", "ratings"),
        ("--connect", "sqlite://ann:hunter2@no.db", "--name", "ratings"),
        ("--connect", "duckdb://no.db?password=hunter2", "--name", "ratings"),
        ("--connect", "sqlite://movies.csv?password=hunter2", "--name", "ratings"),
        ("--connect", "ann:hunter2@127.0.0.1", "--name", "ratings"),
        ("ratings.parquet", "--connect", "postgres://ann:hunter2@127.0.0.1:1/films"),
        ("postgres://ann:hunter2@127.0.0.1:1/films",),
        ("ratings.parquet", "postgres://ann:p hunter2@127.0.0.1:1/films"),
        ("ratings.parquet", "--domain", "postgres://ann:hunter2@127.0.0.1:1/films:title"),
    ],
)
def test_a_password_is_never_printed(call, ratings, monkeypatch, args, debug):
    monkeypatch.setenv("DISCREET_DEBUG", debug)
    domain = () if "--domain" in args else MOVIES
    code, out, err = call("select", *args, *EVENTS, *domain, "-k", "1", "--epsilon", "1")
    # A server that is down may answer later; all else is to be corrected.
    is_down = args == ("--connect", "postgres://ann:hunter2@127.0.0.1:1/films", "--name", "ratings")
    assert (code, out) == (4 if is_down else 2, "")
    assert re.fullmatch(r"discreet: .+\n", err)
    assert "hunter2" not in err


def test_a_password_is_not_in_a_traceback_either(call, monkeypatch):
    def broken(table, **_):
        raise RuntimeError(f"no answer from {table.database}")

    monkeypatch.setattr(events, "events", broken)
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    args = ("--connect", "postgres://ann:hunter2@h/films", "--name", "ratings", *EVENTS, "--domain", "integers:0:9")
    code, out, err = call("select", *args, "-k", "1", "--epsilon", "1")
    assert (code, out) == (1, "")
    assert "no answer from postgres://...\n" in err
    assert "hunter2" not in err


@pytest.mark.parametrize("args", [(), ("--where", "stars = 5")])
def test_a_query_that_fails_is_a_failure_and_says_nothing_private(refused, ratings, args):
    content = Path("ratings.parquet").read_bytes()
    middle = content.index(b"PAR1") + 4
    Path("ratings.parquet").write_bytes(content[:middle] + b"secret" * 5 + content[middle + 30 :])
    sentence = refused(*FROM_EVENTS, *args, code=4)
    hint = "DISCREET_DEBUG=1 shows why, and maybe private rows"
    assert sentence == f"the query failed on DuckDB at computing the scores; {hint}"


@pytest.mark.parametrize(
    ("mechanism", "options", "option", "takes"),
    [
        ("one-shot", ("--gamma", "1"), "gamma", "takes only noise"),
        ("one-shot", ("--ceil",), "ceil", "takes only noise"),
        ("peeling", ("--gamma", "1"), "gamma", "takes only noise"),
        ("joint", ("--noise", "gumbel"), "noise", "takes no options"),
        ("joint", ("--ceil",), "ceil", "takes no options"),
    ],
)
def test_options_of_another_mechanism_are_refused(refused, mechanism, options, option, takes):
    sentence = refused(*SELECT, "--mechanism", mechanism, *options)
    assert sentence == f"{option} must be left out with the mechanism {mechanism}, which {takes}"


@pytest.mark.parametrize(
    ("args", "named", "where"),
    [
        (("choose",), "'choose'", "discreet --help"),
        (("--fast",), "--fast", "discreet --help"),
        ((*SELECT, "--fast"), "--fast", "discreet select --help"),
        ((*SELECT, "--gamma"), "'--gamma'", "discreet select --help"),
        ((*SELECT, "--json=yes"), "'--json'", "discreet select --help"),
    ],
)
def test_what_cannot_be_parsed_is_named_and_help_is_pointed_at(refused, args, named, where):
    sentence = refused(*args)  # how the parser says it differs between versions of typer
    assert named in sentence
    assert sentence.endswith(f"; see '{where}'")


def test_a_bad_argument_is_refused_before_the_scores_are_read(refused, monkeypatch):
    monkeypatch.setattr(select, "file_source", lambda *_: pytest.fail("the file was read"))
    monkeypatch.setattr(events, "events", lambda *_, **__: pytest.fail("the events were opened"))
    for extra in (("--epsilon", "0"), ("--gamma", "7"), ("--adjacency", "x"), ("-k", "x"), ("--out", "no/x.json")):
        refused(*SELECT, *extra)
        refused(*FROM_EVENTS, *extra)


def test_a_bad_score_is_not_shown(refused):
    write_table("scores.csv", ("item", "score"), SCORES | {"ran": "many912345"})
    sentence = refused(*SELECT)
    assert sentence == "scores must be finite numbers, and column 'score' of 'scores.csv' holds one that is not"


def test_names_cannot_break_the_line(refused):
    Path("a\nb\x1b[31m.csv").write_text("x\ny,1\n")
    sentence = refused("select", "a\nb\x1b[31m.csv", *SELECT[2:])
    assert "a\\nb\\x1b[31m.csv" in sentence
    assert "\x1b" not in refused(*SELECT, "--x\ny\x1b")


def test_internal_errors_show_nothing_private(call, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError(f"secret {SCORES['dune']}")

    monkeypatch.setattr(select, "deliver_release", broken)
    code, out, err = call(*SELECT)
    hint = "DISCREET_DEBUG=1 shows the traceback, which may contain private data"
    assert (code, out, err) == (1, "", f"discreet: an internal error occurred (RuntimeError); {hint}\n")
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    code, out, err = call(*SELECT)
    assert (code, out) == (1, "")
    assert "Traceback" in err
    assert "secret" in err


def test_out_writes_the_release_and_prints_the_summary(call):
    code, out, err = call(*SELECT, "--out", "top.json")
    assert (code, err) == (0, "")
    text = Path("top.json").read_text()
    assert text.endswith("}\n")
    assert out == f"{discreet.Release.from_json(text)}\n"
    assert sorted(os.listdir()) == ["scores.csv", "top.json"]


def test_out_with_json_prints_the_same_json(call):
    code, out, _ = call(*SELECT, "--out", "top.json", "--json")
    assert code == 0
    assert Path("top.json").read_text() == out


def test_out_replaces_a_file_through_a_link_and_keeps_its_mode(call):
    Path("old.json").write_text("old")
    Path("old.json").chmod(0o600)
    Path("link.json").symlink_to("old.json")
    assert call(*SELECT, "--out", "link.json")[0] == 0
    assert Path("link.json").is_symlink()
    assert discreet.Release.from_json(Path("old.json").read_text()).k == 2
    assert Path("old.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_failure_while_writing_leaves_the_old_file_alone(refused, monkeypatch, step):
    def full(*_):
        raise OSError(28, "No space left on device")

    Path("top.json").write_text("old")
    monkeypatch.setattr(step, full)
    assert refused(*SELECT, "--out", "top.json", code=1) == "writing 'top.json' fails: No space left on device"
    assert Path("top.json").read_text() == "old"
    assert sorted(os.listdir()) == ["scores.csv", "top.json"]


def test_an_interrupt_while_writing_leaves_no_draft(call, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    code, out, err = call(*SELECT, "--out", "top.json")
    assert (code, out, err.strip()) == (130, "", "")
    assert os.listdir() == ["scores.csv"]


@pytest.mark.parametrize("program", [(sys.executable, "-m", "discreet"), (Path(sys.executable).with_name("discreet"),)])
def test_the_program(program):
    done = process(*SELECT, "--json", program=program)
    assert (done.returncode, done.stderr) == (0, "")
    assert discreet.Release.from_json(done.stdout).k == 2
    done = process("select", "scores.csv", "-k", "2", program=program)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "discreet: --epsilon is missing; for example: discreet select scores.csv -k 10 --epsilon 1\n"


@pytest.mark.parametrize("items", [4, 5000])
def test_a_closed_pipe_is_no_reason_for_a_traceback(items):
    np.save("counts.npy", np.arange(items + 1))
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "discreet", "select", "counts.npy", "-k", str(items), "--epsilon", "1"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_standard_output_is_a_failure():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *SELECT], stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr == b"discreet: writing to standard output fails: No space left on device\n"


def test_a_closed_standard_output_is_a_failure():
    done = process("-c", f'"{sys.executable}" -m discreet {" ".join(SELECT)} >&-', program=("sh",))
    assert (done.returncode, done.stderr) == (1, "discreet: standard output must be open, but is closed\n")


def test_ctrl_c_is_quiet():
    os.mkfifo("slow.csv")
    command = [sys.executable, "-m", "discreet", "select", "slow.csv", *SELECT[2:]]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = wait_for_reader("slow.csv", running)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    os.close(end)
    assert (running.returncode, out, err.strip()) == (130, b"", b"")


def wait_for_reader(pipe, running):
    """Opens a pipe for writing once the process waits at its other end."""
    while running.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    return pytest.fail("the program ended before it read")


@pytest.mark.some(2)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_labels_that_standard_output_cannot_spell(encoding):
    label = "amélie \U0001f3ac"
    write_table("scores.csv", ("item", "score"), {label: 10_000, "dune": 1})
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "discreet", "select", "scores.csv", "-k", "1", "--epsilon", "1000"]
    done = subprocess.run([*command, "--json"], capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode(encoding))["items"] == [label]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert label.encode(encoding, "backslashreplace") in done.stdout


@pytest.mark.long
def test_the_program_with_events(ratings):
    done = process(*FROM_EVENTS, "--label", "title", "--where", "stars = 5", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert discreet.Release.from_json(done.stdout).items == ["film 8"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("args", "loaded"),
    [
        (SELECT, ""),
        (("select", "--help"), ""),
        (("select", "ratings.parquet", *EVENTS, *SELECT[2:]), ""),
        (("select", "scores.parquet", "-k", "1", "--epsilon", "1"), "pyarrow"),
    ],
)
def test_start_is_light(args, loaded):
    pa.parquet.write_table(pa.table({"item": ["a", "b"], "score": [1, 2]}), "scores.parquet")
    heavy = "pandas polars pyarrow scipy duckdb ibis torch pyspark sqlglot pydantic rich sqlite3 numpy.ma"
    program = f"import sys, discreet.cli; discreet.cli.main(); print('', *set('{heavy}'.split()) & set(sys.modules))"
    done = process("-c", program, *args, program=(sys.executable,))
    assert done.stdout.splitlines()[-1].strip() == loaded


def test_another_dialect_of_csv_is_said_on_the_command_line(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text('visitor\tpage\n1\t"a \\"b\\"\n9\tc"\n2\t"a \\"b\\"\n9\tc"\n3\tc\n')
    Path("pages.csv").write_text('page\tn\n"a \\"b\\"\n9\tc"\t1\nc\t2\nd\t3\n')
    args = ("--user", "visitor", "--item", "page", "--domain", "pages.csv:page", "-k", "1", "--epsilon", "1000")
    out = done("select", "visits.csv", *args, "--delimiter", r"\t", "--escape", "\\", "--json")
    assert json.loads(out)["items"] == ['a "b"\n9\tc']


@pytest.mark.long
def test_what_a_condition_reads_text_as_is_said_unless_all_is_quiet(ratings):
    command = ["select", "ratings-1.csv", *EVENTS, *MOVIES, "-k", "1", "--epsilon", "1", "--where", "stars >= 5"]
    said = process(*command)
    assert said.returncode == 0
    assert said.stderr == (
        "discreet: item reads movie_id as text, whose case and spaces count, because its type is not declared\n"
        "discreet: where reads stars as numbers (2.5), because its type is not declared: no other spelling meets it; "
        "decimal says otherwise\n"
    )
    assert process(*command, "--quiet").stderr == ""
    assert process("select", "ratings.parquet", *command[2:]).stderr == ""
