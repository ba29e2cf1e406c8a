"""Lists by group on the command line: countries, months and both, in every format."""

import csv
import io
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet
from command_line import PROGRAM, SELECT, without_notes

SONGS = ("--user", "listener", "--item", "song", "--domain", "songs.csv:song")
SURE = ("-k", "1", "--epsilon", "1000")
BY_COUNTRY = ("--by", "country", "--groups", "countries.csv:code", "--each-user", "one")
BY_MONTH = ("--by", "month(played_at)", "--groups", "2026-01..2026-03", "--each-user", "many")
CHARTS = ("select", "streams.parquet", *SONGS, *SURE, *BY_COUNTRY)
MONTHS = ("select", "streams.parquet", *SONGS, *SURE, *BY_MONTH)
IN_JANUARY, LATE, IN_FEBRUARY = "2026-01-10 12:00:00", "2026-01-31 23:30:00", "2026-02-10 12:00:00"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Streams in files and a database: DE plays a in January, and six of it b in February; FR c late in January.

    Nine of DE are in FR once, for d, which would win there if they counted in two countries. XX is in no list.
    """
    folder = tmp_path_factory.mktemp("streams")
    rows = [(user, "a", "DE", IN_JANUARY) for user in range(20)] * 2
    rows += [(user, "b", "DE", IN_FEBRUARY) for user in range(6)]
    rows += [(user, "c", "FR", LATE) for user in range(100, 105)] + [(user, "d", "FR", LATE) for user in range(9)]
    rows += [(user, "e", "XX", "2025-12-31 12:00:00") for user in range(200, 240)]
    listeners, songs, countries, moments = zip(*rows, strict=True)
    moments = pa.array([datetime.fromisoformat(each) for each in moments], pa.timestamp("us"))
    table = pa.table({"listener": listeners, "song": songs, "country": countries, "played_at": moments})
    pa.parquet.write_table(table, folder / "streams.parquet")
    pa.csv.write_csv(table, folder / "streams.csv")
    (folder / "songs.csv").write_text("song\n" + "".join(f"{song}\n" for song in "abcdef"))
    (folder / "countries.csv").write_text("code\nFR\nDE\nIT\n")
    (folder / "combinations.csv").write_text("country,played_at\nFR,2026-01\nDE,2026-02\n")
    with closing(sqlite3.connect(folder / "streams.db")) as connection:
        connection.execute("CREATE TABLE streams (listener INTEGER, song TEXT, country TEXT, played_at TEXT)")
        connection.executemany("INSERT INTO streams VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    return folder


@pytest.fixture(autouse=True)
def streams(folder, made):
    """The files in the working directory."""
    shutil.copytree(made, folder, dirs_exist_ok=True)


@pytest.fixture
def charts(done):
    """Runs a release by group, and reads it back."""

    def run(*args):
        return discreet.GroupedRelease.from_json(done(*args, "--json"))

    return run


def test_one_country_for_each_listener(charts):
    found = charts(*CHARTS)
    assert list(found) == ["FR", "DE", "IT"]
    assert (found["FR"].items, found["DE"].items) == (["c"], ["a"])
    assert (found.names, found.each_user, found.groups_per_user) == (("country",), "one", 1)
    assert found.guarantee.epsilon == found["DE"].guarantee.epsilon == 1000


def test_several_months_for_each_listener(charts):
    found = charts(*MONTHS)
    assert list(found) == ["2026-01", "2026-02", "2026-03"]
    assert (found["2026-01"].items, found["2026-02"].items) == (["a"], ["b"])
    assert (found.names, found.groups_per_user) == (("month",), 3)
    assert (found.guarantee.epsilon, found["2026-01"].guarantee.epsilon) == (1000, Fraction(1000, 3))


def test_a_bound_on_the_groups_of_a_listener_gives_each_more(charts):
    found = charts(*MONTHS, "--max-groups-per-user", "2")
    assert (found.groups_per_user, found["2026-01"].guarantee.epsilon) == (2, 500)


def test_a_period_is_on_the_calendar_of_its_zone(charts):
    in_berlin = ("--by", "month(played_at, Europe/Berlin)", *BY_MONTH[2:])
    assert charts("select", "streams.parquet", *SONGS, *SURE, *in_berlin)["2026-02"].items == ["d"]


BOTH = ("--by", "country", "--by", "month(played_at)", "--each-user", "many")


def test_every_combination_of_two_lists(charts):
    lists = ("--groups", "countries.csv:code", "--groups", "2026-01..2026-02")
    found = charts("select", "streams.parquet", *SONGS, *SURE, *BOTH, *lists)
    assert list(found) == [(country, month) for country in ("FR", "DE", "IT") for month in ("2026-01", "2026-02")]
    assert [found[key].items for key in [("FR", "2026-01"), ("DE", "2026-01"), ("DE", "2026-02")]] == [
        ["d"],
        ["a"],
        ["b"],
    ]
    assert found.names == ("country", "month")


def test_a_file_of_combinations(done):
    text = done("select", "streams.parquet", *SONGS, *SURE, *BOTH, "--groups", "combinations.csv", "--format", "csv")
    assert text == "country,month,item\nFR,2026-01,d\nDE,2026-02,b\n"


def test_a_file_may_call_its_column_as_the_release_does(done):
    Path("by_month.csv").write_text("country,month\nFR,2026-01\nDE,2026-02\n")
    text = done("select", "streams.parquet", *SONGS, *SURE, *BOTH, "--groups", "by_month.csv", "--format", "csv")
    assert text == "country,month,item\nFR,2026-01,d\nDE,2026-02,b\n"
    text = done(*MONTHS[:-4], "--groups", "by_month.csv", "--each-user", "many", "--format", "csv")
    assert text == "month,item\n2026-01,a\n2026-02,b\n"


def test_a_path_may_have_two_dots(done):
    Path("below").mkdir()
    text = done(*CHARTS[:-4], "--groups", "below/../countries.csv:code", "--each-user", "one", "--format", "items")
    assert text.startswith("FR\tc")


def test_the_table_is_that_of_the_release(done, charts):
    assert done(*CHARTS[:-6], *BY_MONTH, "--format", "table").startswith(
        "Top 1 of 6 items in each of 3 groups by month:\n"
    )
    release = charts(*CHARTS)
    shown = done(*CHARTS)
    assert shown.splitlines()[-1] == str(release).splitlines()[-1]
    assert re.search(r"^FR +DE +IT", shown, re.MULTILINE)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("options", "header", "row"),
    [
        ((), "country,item", "FR,c"),
        (("--mechanism", "peeling"), "country,item,order", "FR,c,1"),
        (("--counts", "1000"), "country,item,count,low,high", "FR,c,5,5,5"),
        (("--counts", "1000", "--mechanism", "joint"), "country,item,order,count,low,high", "FR,c,1,5,5,5"),
    ],
)
def test_csv_has_the_group_first(done, options, header, row):
    lines = done(*CHARTS, "--format", "csv", *options).splitlines()
    assert (lines[:2], len(lines)) == ([header, row], 4)


def test_items_have_the_group_and_a_tab(done):
    assert done(*CHARTS, "--format", "items").splitlines()[:2] == ["FR\tc", "DE\ta"]
    both = done(
        "select", "streams.parquet", *SONGS, *SURE, *BOTH, "--groups", "combinations.csv", "--format", "items"
    )  # fmt: skip
    assert both == "FR\t2026-01\td\nDE\t2026-02\tb\n"


def test_odd_groups_stay_in_their_cells(done):
    odd = ["a\tb", 'say "hi", you', "two\nlines", "back\\slash"]
    table = pa.table({"listener": range(4), "song": ["a"] * 4, "country": odd})
    pa.parquet.write_table(table, "odd.parquet")
    pa.parquet.write_table(pa.table({"code": odd}), "codes.parquet")
    by_code = ("--by", "country", "--groups", "codes.parquet:code", "--each-user", "one")
    text = done("select", "odd.parquet", *SONGS, *SURE, *by_code, "--format", "csv")
    assert [row[0] for row in csv.reader(io.StringIO(text), strict=True)][1:] == odd
    lines = done("select", "odd.parquet", *SONGS, *SURE, *by_code, "--format", "items").split("\n")
    assert [line.split("\t")[0] for line in lines[:-1]] == ["a\\tb", 'say "hi", you', "two\\nlines", "back\\\\slash"]


def test_out_is_written_whole_and_reads_back(done):
    done(*CHARTS, "--out", "charts.json")
    assert discreet.GroupedRelease.from_json(Path("charts.json").read_text())["DE"].items == ["a"]
    assert done(*CHARTS, "--out", "charts.csv", "--format", "csv") == Path("charts.csv").read_text()


def test_one_charge_for_all_groups_and_none_for_asking_again(done, charts):
    done("budget", "init", "budget.db", "--epsilon", "1500", "--unit", "listeners")
    asked = (*CHARTS, "--ledger", "budget.db", "--request-id", "charts", "--purpose", "by country")
    assert charts(*asked) == charts(*asked)
    (line,) = done("budget", "history", "budget.db").splitlines()
    assert "epsilon 1000  top 1 of 6 in each of 3 groups  canonical  by country  request charts" in line
    assert re.search(r"^  left +500$", done("budget", "show", "budget.db"), re.MULTILINE)
    assert discreet.Ledger("budget.db").history()[0].release["FR"].items == ["c"]


def test_what_does_not_fit_the_budget_is_refused(done, refused):
    done("budget", "init", "budget.db", "--epsilon", "1", "--unit", "listeners")
    sentence = refused(*CHARTS, "--ledger", "budget.db", code=3)
    assert sentence == "epsilon 1000 does not fit: 1 of 1 is left, and nothing was drawn"


def test_padding_and_quiet(done):
    assert done(*CHARTS, "--pad-to", "0.05", "--quiet", "--format", "items").startswith("FR\tc\n")


def test_standard_input_and_a_database_have_groups_too(done):
    args = (*SONGS, *SURE, *BY_MONTH, "--format", "csv")
    expected = ["month,item", "2026-01,a", "2026-02,b"]
    assert done("select", "--connect", "sqlite://streams.db", "--name", "streams", *args).splitlines()[:3] == expected
    with Path("streams.csv").open() as text:
        piped = subprocess.run([*PROGRAM, "select", "-", *args], stdin=text, capture_output=True, text=True, timeout=60)
    assert (piped.stdout.splitlines()[:3], without_notes(piped.stderr)) == (expected, "")


WITHOUT = ("select", "streams.parquet", *SONGS, *SURE)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            (*SELECT, *BY_COUNTRY[:2]),
            "by must be left out without user: a file of scores has no rows of users to put into groups",
        ),
        ((*SELECT, "--groups", "1..3"), "groups must be left out without user: a file of scores has no groups"),
        ((*SELECT, "--each-user", "one"), "each_user must be left out without user: a file of scores has no groups"),
        (
            (*SELECT, "--max-groups-per-user", "2"),
            "max_groups_per_user must be left out without user: a file of scores has no groups",
        ),
        ((*WITHOUT, "--groups", "1..3"), "groups must be left out without by: there are no groups"),
        ((*WITHOUT, "--each-user", "one"), "each_user must be left out without by: there are no groups"),
        (
            (*WITHOUT, "--max-groups-per-user", "2"),
            "max_groups_per_user must be left out without by: there are no groups",
        ),
        (
            (*WITHOUT, "--by", "country", "--each-user", "one"),
            "groups must be given with by: a public list of groups, such as countries.csv:code or 2026-01..2026-12, "
            "because a list made from the events would tell where somebody was",
        ),
        (
            (*WITHOUT, *BY_COUNTRY[:-1], "man"),
            "each_user must be one of one, many, not 'man'; did you mean many?",
        ),
        (
            (*WITHOUT, "--by", "country,month(played_at)", *BY_COUNTRY[2:]),
            "by must be given once for each column, and names one, not 'country,month(played_at)'",
        ),
        ((*WITHOUT, "--by", "", *BY_COUNTRY[2:]), "by must be given once for each column, and names one, not ''"),
        (
            (*WITHOUT, "--by", "months(played_at)", *BY_MONTH[2:]),
            "by must be a column or day, week, month, quarter or year of one, not 'months(played_at)'; "
            "did you mean month?",
        ),
        (
            (*WITHOUT, *BY_COUNTRY, "--groups", "2026-01..2026-02"),
            "groups must be given once for each by, not 2 times",
        ),
        (
            (*WITHOUT, *BOTH, *("--groups", "1..2") * 3),
            "groups must be given once for each by, 2 times, or once as a file of combinations, not 3 times",
        ),
        (
            (*WITHOUT, "--by", "country", "--groups", "-:code", "--each-user", "one"),
            "groups must be FILE:COLUMN or FIRST..LAST: neither the URL of a database nor standard input",
        ),
        (
            (*WITHOUT, *BY_MONTH[:2], "--groups", "2025-1..2025-12", *BY_MONTH[4:]),
            "groups must be months like 2026-01..2026-12, not '2025-1..2025-12'",
        ),
        (
            (*WITHOUT, *BY_MONTH[:2], "--groups", "Jan..Dec", *BY_MONTH[4:]),
            "groups must be months like 2026-01..2026-12, not 'Jan..Dec'",
        ),
        (
            (*WITHOUT, "--by", "country", "--groups", "DE..FR", "--each-user", "one"),
            "groups must be a range of whole numbers like 1..12 or of periods, such as months like 2026-01..2026-12, "
            "not 'DE..FR'",
        ),
        (
            (*WITHOUT, "--by", "country", "--groups", "DE,FR", "--each-user", "one"),
            "groups must be FILE:COLUMN or FIRST..LAST, not 'DE,FR': put the list into a file, one group on each line "
            "under a header, and name it FILE:COLUMN",
        ),
        (
            (*WITHOUT, *BOTH, "--groups", "2026-01..2026-02"),
            "groups must be given once for each by, 2 times, or once as a file of combinations, "
            "not as the one range '2026-01..2026-02'",
        ),
        (
            (*WITHOUT, "--by", "played_at", *BY_MONTH[2:]),
            "by must be a column of strings, numbers, dates or booleans, not of timestamp(6); "
            "for its months by is discreet.month('played_at'), or month(played_at) on the command line",
        ),
        (
            (*WITHOUT, "--by", "month(played_at, Europe/Berln)", *BY_MONTH[2:]),
            "zone must be the name of a time zone such as 'Europe/Berlin', not 'Europe/Berln'; "
            "did you mean Europe/Berlin?",
        ),
        (
            (*MONTHS, "--max-groups-per-user", "two"),
            "max_groups_per_user must be a whole number such as 10, not 'two'",
        ),
        (
            (*CHARTS, "--max-groups-per-user", "2"),
            "max_groups_per_user must be left out with each_user='one', where it is 1",
        ),
        (
            (*WITHOUT, "--by", "nation", *BY_COUNTRY[2:]),
            "by must be a column of the table, one of listener, song, country, played_at, not 'nation'",
        ),
        ((*CHARTS, "--out", "countries.csv"), "out must be another file than the groups, not 'countries.csv'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(refused, args, sentence):
    assert refused(*args) == sentence


def test_a_missing_each_user_is_explained_with_the_price(refused):
    sentence = refused(*WITHOUT, *BY_MONTH[:-2])
    assert sentence.startswith("--each-user must be given with --by, one or many: with one a user counts in one group")
    assert "epsilon 1 in each costs 3, or give each 1/3; --max-groups-per-user bounds how many" in sentence
    assert "epsilon 1 in each costs G, or give each 1/G" in refused(*WITHOUT, *BY_COUNTRY[:-2])
    assert "epsilon 1 in each costs 8" in refused(*WITHOUT, *BOTH[:-2], "--groups", "1..2", "--groups", "1..4")


def test_a_bad_group_option_is_refused_before_the_events_are_opened(refused, monkeypatch):
    from discreet.cli import events

    monkeypatch.setattr(events, "events", lambda *_, **__: pytest.fail("the events were opened"))
    for extra in (("--each-user", "x"), ("--by", "a,b"), ("--groups", "-"), ("--max-groups-per-user", "x")):
        refused(*CHARTS, *extra)
    refused(*WITHOUT, "--by", "month(played_at, Nowhere/Land)", *BY_MONTH[2:])
    refused(*WITHOUT, *BY_MONTH[:2], "--groups", "2026-01..2026-13", *BY_MONTH[4:])
