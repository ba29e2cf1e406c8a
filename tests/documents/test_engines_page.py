"""Every snippet of docs/engines.md and docs/databases.md runs where its engine does."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet
import site_pages
from site_pages import blocks, with_programs

SNIPPETS = {title: text for page in ("engines.md", "databases.md") for _, title, text in blocks(page)}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    columns = {"user_id": lambda i: i % 97, "movie_id": lambda i: i * i % 50, "stars": lambda i: i % 5 + 1}
    ratings = pa.table({name: [value(i) for i in range(3000)] for name, value in columns.items()})
    pa.parquet.write_table(ratings, "ratings1.parquet")
    movies = pa.table({"movie_id": range(50), "title": [f"Movie {i:02}" for i in range(50)]})
    pa.csv.write_csv(movies, "movies.csv")
    with duckdb.connect("ratings.ddb") as connection:
        connection.execute("CREATE TABLE ratings AS SELECT * FROM 'ratings1.parquet'")
        connection.execute("CREATE TABLE movies AS SELECT * FROM 'movies.csv'")
    with closing(sqlite3.connect("ratings.db")) as connection:
        for name, table in (("ratings", ratings), ("movies", movies)):
            connection.execute(f"CREATE TABLE {name} ({', '.join(table.column_names)})")
            rows = [tuple(row.values()) for row in table.to_pylist()]
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})", rows)  # noqa: S608  # our names
        connection.commit()
    return {"ratings": ratings, "movies": movies}


def run(name, **names):
    import ibis

    # Spark looks for files from where its server was started.
    text = SNIPPETS[name].replace('("ratings', f'("{Path.cwd()}/ratings').replace('("movies', f'("{Path.cwd()}/movies')
    scope = {"discreet": discreet, "ibis": ibis, **names}
    exec(compile(text if name == "spark" else SNIPPETS[name], f"snippet {name}", "exec"), scope)  # noqa: S102  # our own page
    assert len(scope["release"].items) == 10
    assert scope["release"].private


def run_shell(url, folder):
    environment = {**with_programs(folder), "DATABASE": url}
    printed = site_pages.run(
        "bash", "-euo", "pipefail", "-c", SNIPPETS["shell"], folder=folder, environment=environment
    )
    assert "Top 10 of 50 items" in printed  # after a note on the types that the engine does not declare


def test_all_snippets_are_known():
    assert set(SNIPPETS) == {
        *("file", "shell", "url", "spark", "clickhouse", "ibis", "compiled", "expressions"),
        *("rights", "rights on MariaDB"),
    }


def test_expressions_print_what_the_page_says(capsys):
    exec(compile(SNIPPETS["expressions"], "snippet expressions", "exec"), {})  # noqa: S102  # our own page
    assert capsys.readouterr().out == "['äpfel']\n"


@pytest.mark.parametrize("name", ["file", "ibis"])
def test_snippets_on_duckdb_run(name, here):
    run(name)


@pytest.mark.long
@pytest.mark.xdist_group("clickhouse")
def test_the_snippet_on_clickhouse_runs_in_the_process(here, monkeypatch):
    import ibis

    pytest.importorskip("chdb", reason="ClickHouse in the process is not installed here")
    connection = ibis.clickhouse.connect(interface="chdb", path=":memory:")
    for name, table in here.items():
        columns = ", ".join(f"{each.name} {'String' if each.name == 'title' else 'Int64'}" for each in table.schema)
        connection.con.command(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
        connection.con.insert_arrow(name, table)
    monkeypatch.setattr(ibis.clickhouse, "connect", lambda **options: connection)
    run("clickhouse")
    for name in here:
        connection.con.command(f"DROP TABLE {name}")


def test_the_snippet_without_an_engine_has_its_statement():
    scope = {"discreet": discreet}
    exec(compile(SNIPPETS["compiled"], "snippet compiled", "exec"), scope)  # noqa: S102  # our own page
    assert "TO_BINARY" in scope["statement"]
    assert len(scope["release"].items) == 1


@pytest.mark.long
@pytest.mark.parametrize("url", ["duckdb://ratings.ddb", "sqlite://ratings.db"])
def test_snippets_on_database_files_run(url, here, tmp_path):
    run("url", url=url)
    run_shell(url, tmp_path)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_snippets_on_postgres_run(here, tmp_path, postgres):
    import ibis

    connection = ibis.connect(postgres)
    for name, table in here.items():
        connection.create_table(name, table, overwrite=True)
    connection.disconnect()
    run("url", url=postgres)
    run_shell(postgres, tmp_path)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_snippet_on_spark_runs(here, spark):
    run("spark", spark=spark)
