"""Every snippet of docs/engines.md runs where its engine does."""

import re
from pathlib import Path

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from engines import postgres, spark  # noqa: F401  # fixtures

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^```python title=\"(\w+)\"\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files that the page names."""
    monkeypatch.chdir(tmp_path)
    columns = {"user_id": lambda i: i % 97, "movie_id": lambda i: i * i % 50, "stars": lambda i: i % 5 + 1}
    ratings = pa.table({name: [value(i) for i in range(3000)] for name, value in columns.items()})
    pa.parquet.write_table(ratings, "ratings1.parquet")
    Path("movies.csv").write_text(
        "movie_id,title\n" + "".join(f"{i},Movie {i:02}\n" for i in range(50)), encoding="utf-8"
    )
    with duckdb.connect("ratings.ddb") as connection:
        connection.execute("CREATE TABLE ratings AS SELECT * FROM 'ratings1.parquet'")
        connection.execute("CREATE TABLE movies AS SELECT * FROM 'movies.csv'")
    return ratings


def run(name, **names):
    import ibis

    # Spark looks for files from where its server was started.
    text = SNIPPETS[name].replace('("ratings', f'("{Path.cwd()}/ratings').replace('("movies', f'("{Path.cwd()}/movies')
    scope = {"discreet": discreet, "pandas": pandas, "ibis": ibis, **names}
    exec(compile(text if name == "spark" else SNIPPETS[name], f"engines.md {name}", "exec"), scope)  # noqa: S102  # our own page
    assert len(scope["release"].items) == 10
    assert scope["release"].private


def test_all_snippets_are_known():
    assert set(SNIPPETS) == {"file", "pandas", "postgres", "spark", "ibis"}


@pytest.mark.parametrize("name", ["file", "pandas", "ibis"])
def test_snippets_on_duckdb_run(name, here):
    run(name)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_the_snippet_on_postgres_runs(here, postgres):  # noqa: F811
    import ibis

    connection = ibis.connect(postgres)
    connection.create_table("ratings", here, overwrite=True)
    connection.disconnect()
    run("postgres", url=postgres)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_snippet_on_spark_runs(here, spark):  # noqa: F811
    run("spark", spark=spark)
