"""Files of scores and of events for the tests of the command line."""

import shutil
import sqlite3
from contextlib import closing

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from command_line import SCORES, write_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working directory with files of scores in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    write_table("scores.csv", ("item", "score"), SCORES)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Thirty users and a list of 120 movies, in files and databases: all saw 7, half loved 8, and one shouts for 9."""
    folder = tmp_path_factory.mktemp("ratings")
    rows = [(user, 7, 3.0) for user in range(30)] + [(user, 8, 5.0) for user in range(15)] + [(1, 9, 4.5)] * 500
    users, movies, stars = zip(*rows, strict=True)
    table = pa.table({"user_id": users, "movie_id": movies, "stars": stars})
    pa.parquet.write_table(table, folder / "ratings.parquet")
    pa.csv.write_csv(table.slice(0, 40), folder / "ratings-1.csv")
    pa.csv.write_csv(table.slice(40), folder / "ratings-2.csv")
    write_table(folder / "movies.csv", ("movie_id", "title"), {str(i): f"film {i}" for i in range(120)})
    with duckdb.connect(str(folder / "ratings.duckdb")) as connection:
        connection.execute(f"CREATE TABLE ratings AS FROM '{folder / 'ratings.parquet'}'")
    with closing(sqlite3.connect(folder / "ratings.db")) as connection:
        connection.execute("CREATE TABLE ratings (user_id INTEGER, movie_id INTEGER, stars REAL)")
        connection.executemany("INSERT INTO ratings VALUES (?, ?, ?)", rows)
        connection.commit()
    return folder


@pytest.fixture
def ratings(folder, made):
    """Events and their domain in the working directory."""
    shutil.copytree(made, folder, dirs_exist_ok=True)
