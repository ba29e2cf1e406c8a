"""The check on the command line finds each planted mistake on each engine, and is nothing but a look at rows."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import ibis
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet
from command_line import EVENTS, FROM_EVENTS, MOVIES, without_notes
from discreet.sources.events.check_report import WARNING
from engines import on_server

FILMS = {"M1": "Dune", "M2": "Heat", "M3": "Alien"}
SEEN = [(f"u{i}", f"M{1 + i % 2}", f"{13 + i}/01/2026", "DE") for i in range(8)]
COLUMNS = ("who", "film", "at", "land")
READ = ("--user", "who", "--item", "film")
IDS = ("--domain", "films.csv:id")
MISTAKES = {
    "names in place of ids": (SEEN, ("--domain", "films.csv:title"), "is the domain 'films.csv:id'?", 1),
    "names in place of ids in lower case": (SEEN, ("--domain", "lower.csv:title"), "is the domain 'lower.csv:id'?", 1),
    "lower case": (
        SEEN,
        ("--domain", "lower.csv:id"),
        "such as 'M1', which the domain has as 'm1': --item 'fold(trim(film))' spells both alike",
        1,
    ),
    "dates as text": (
        SEEN,
        (*IDS, "--by", "month(at)", "--groups", "2026-01..2026-02", "--each-user", "one"),
        "8 of 8 rows (100.0%) have a date in 'at' that is not read, and is missing to a condition, a period or a "
        "domain of dates: --date-format %d/%m/%Y reads them",
        1,
    ),
    "missing ids": (
        [(None if i % 4 else who, *rest) for i, (who, *rest) in enumerate(SEEN)],
        IDS,
        "6 of 8 rows (75.0%) have no user and are dropped",
        0,
    ),
    "ids that stand for nobody": (
        [("NULL" if i % 4 else who, *rest) for i, (who, *rest) in enumerate(SEEN)],
        IDS,
        "'NULL' (6 rows), and all rows of one such text count as one person",
        0,
    ),
    "a where that keeps nothing": (
        SEEN,
        (*IDS, "--where", "land = 'de'"),
        "where keeps none of 8 rows. Compare it with what its columns hold most: 'land' holds 'DE' (8 rows)",
        1,
    ),
}


@pytest.fixture
def events(request):
    """Writes rows to an engine, and gives the arguments that name them."""
    Path("films.csv").write_text("id,title\n" + "".join(f"{key},{name}\n" for key, name in FILMS.items()))
    Path("lower.csv").write_text("id,title\n" + "".join(f"{key.lower()},{name}\n" for key, name in FILMS.items()))

    def write(engine, rows):
        columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(COLUMNS))]
        table = pa.table(columns, names=COLUMNS)
        match engine:
            case "csv":
                pa.csv.write_csv(table, "seen.csv")
                return ("seen.csv",)
            case "parquet":
                pa.parquet.write_table(table, "seen.parquet")
                return ("seen.parquet",)
            case "duckdb":
                with duckdb.connect("seen.ddb") as connection:
                    connection.register("rows_table", table)
                    connection.execute("CREATE TABLE seen AS SELECT * FROM rows_table")
                return ("--connect", "duckdb://seen.ddb", "--name", "seen")
            case "sqlite":
                with closing(sqlite3.connect("seen.db")) as connection:
                    connection.execute(f"CREATE TABLE seen ({', '.join(f'{name} TEXT' for name in COLUMNS)})")
                    connection.executemany("INSERT INTO seen VALUES (?, ?, ?, ?)", rows)
                    connection.commit()
                return ("--connect", "sqlite://seen.db", "--name", "seen")
        url = request.getfixturevalue("postgres")
        connection = ibis.connect(url)
        connection.create_table("seen", table, overwrite=True)
        connection.disconnect()
        return ("--connect", url, "--name", "seen")

    return write


@pytest.mark.some(3)
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("engine", ["csv", "parquet", "duckdb", "sqlite", on_server("postgres")])
def test_each_planted_mistake_is_found(call, events, engine, mistake):
    rows, options, told, code = MISTAKES[mistake]
    actual, out, err = call("check", *events(engine, rows), *READ, *options)
    assert (actual, without_notes(err)) == (code, "")
    assert out.startswith(WARNING)
    assert told in out.partition("What to change:")[2]


def test_a_decimal_comma_is_told(call, events):
    rows = [(who, film, at, "17,29" if i % 4 else "17.29") for i, (who, film, at, _) in enumerate(SEEN)]
    code, out, _ = call("check", *events("csv", rows), *READ, *IDS, "--value", "land", "--clip", "0,50")
    assert code == 0
    assert "6 of 8 rows (75.0%) have no number as value and are dropped: --decimal , reads them" in out


@pytest.mark.parametrize("engine", ["csv", "sqlite"])
def test_what_fits_is_said_to_fit(done, events, engine):
    out = done("check", *events(engine, SEEN), *READ, *IDS)
    assert out.endswith("What to change:\n- Nothing stands out.\n")
    assert re.search("rows that count +8\n", out)


def test_the_command_line_of_a_release_is_checked_by_its_first_word(done, ratings):
    options = ("--counts", "1", "--mechanism", "one-shot", "--noise", "gumbel", "--pad-to", "1", "--request-id", "a")
    options = (*options, "--format", "csv", "--label", "title")
    out = done("check", *FROM_EVENTS[1:], *options)
    assert out == f"{discreet.check_events(source())}\n"


def source():
    return discreet.events("ratings.parquet", user="user_id", item="movie_id", domain="movies.csv:movie_id")


def test_json_has_the_same(done, ratings):
    told = json.loads(done("check", "ratings.parquet", *EVENTS, *MOVIES, "--json"))
    assert told == discreet.check_events(source()).to_dict()
    assert (told["private"], told["rows"], told["users"], told["items_untouched"]) == (False, 545, 30, 117)


def test_names_beside_declared_numbers_are_refused_as_they_are_by_select(refused, ratings):
    names = ("ratings.parquet", *EVENTS, "--domain", "movies.csv:title")
    told = refused("check", *names)
    assert told == refused("select", *names, "-k", "1", "--epsilon", "1")
    assert told == "domain must hold items like those of the events, integers, and one is not"


def test_nothing_is_written_unless_asked_for(done, ratings):
    before = sorted(Path().iterdir())
    out = done("check", "ratings.parquet", *EVENTS, *MOVIES)
    assert sorted(Path().iterdir()) == before
    assert done("check", "ratings.parquet", *EVENTS, *MOVIES, "--out", "check.txt") == out
    assert Path("check.txt").read_text() == out
    assert Path("check.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((*EVENTS, *MOVIES, "--ledger", "budget.db"), "ledger must be left out: a check is not private"),
        ((), "user must be given: a check is for events"),
        (EVENTS, "domain must be given with user"),
        ((*EVENTS, *MOVIES, "--score", "s"), "score must be left out with user"),
        ((*EVENTS, *MOVIES, "--format", "xml"), "format must be one of table, json, csv, items, not 'xml'"),
        ((*EVENTS, *MOVIES, "--out", "movies.csv"), "out must be a new file, not 'movies.csv': a check is not private"),
        ((*EVENTS, *MOVIES, "--out", "none/check.txt"), "out must be in a directory that exists"),
    ],
)
def test_what_cannot_be_is_one_sentence(refused, ratings, options, told):
    assert told in refused("check", "ratings.parquet", *options)


def test_a_ledger_is_not_touched(refused, ratings):
    ledger = discreet.Ledger.create("budget.db", epsilon=1, unit="users")
    refused("check", "ratings.parquet", *EVENTS, *MOVIES, "--ledger", "budget.db")
    assert ledger.check() == 1
