"""Statements for the engines that discreet was never run on: as recorded, and what a connection is told."""

import random
from datetime import UTC, date, datetime, timedelta

import duckdb
import ibis
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import discreet
from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events import compiled
from discreet.sources.events.dialects.base import dialect_named, dialect_of, list_engines
from golden import statements

EACH = pytest.mark.parametrize("engine", statements.ENGINES)


@pytest.mark.corners
@EACH
@pytest.mark.parametrize("question", statements.QUESTIONS)
def test_statements_are_those_that_were_reviewed(engine, question):
    recorded = statements.RECORDED / f"{engine}-{question}.sql"
    text = statements.compile_statement(engine, question)
    assert text == recorded.read_text(encoding="utf-8")
    # The dialect of sqlglot reads all of it, and means the same by it.
    [tree] = sqlglot.parse(text, read=engine)
    assert isinstance(tree, exp.Select)
    assert tree.find(exp.Command) is None
    assert sqlglot.parse_one(tree.sql(engine), read=engine) == tree


def test_every_engine_that_was_never_run_has_its_statements():
    never_run = {name for name in list_engines() if not dialect_named(name, runs=False).was_run}
    assert never_run == set(statements.ENGINES)
    recorded = {path.stem for path in statements.RECORDED.iterdir()}
    assert recorded == {f"{engine}-{question}" for engine in never_run for question in statements.QUESTIONS}


PRODUCTS = ["tea", "rum", "rum ", "Tea", "it's"]
DAY = datetime(2026, 3, 28, tzinfo=UTC)


def sales():
    """Generated events: missing cells, products outside of the list, and days around a change of clocks."""
    rng = random.Random(5)
    rows = [
        {
            "customer": rng.choice([None, "ann", "bob", "Bob", *(f"c{i}" for i in range(9))]),
            "product": rng.choice([None, "other", *PRODUCTS]),
            "number": rng.choice([None, -3, 7, 99, 100, 2**40]),
            "amount": rng.choice([None, 1.0, 2.5, 9.0]),
            "price": rng.choice([None, "0.01", "0.005", "99.5", "-7.25"]),
            "country": rng.choice([None, " DE ", "FR", "DE"]),
            "day": date(2025, 12, 28) + timedelta(rng.randrange(9)),
            "at": datetime(2025, 12, 31, 20) + timedelta(hours=rng.randrange(9)),
            "moment": DAY + timedelta(minutes=30 * rng.randrange(99)),
        }
        for _ in range(3000)
    ]
    kinds = ["string", "string", "int64", "float64", "string", "string", "date32", "timestamp", "moment"]
    types = {"timestamp": pa.timestamp("us"), "moment": pa.timestamp("us", "UTC"), "date32": pa.date32()}
    schema = pa.schema([
        (name, types.get(kind) or pa.type_for_alias(kind))
        for name, kind in zip(statements.COLUMNS, kinds, strict=True)
    ])  # fmt: skip
    return pa.Table.from_pylist(rows, schema)


SHIMS = {
    "ieee_divide(a, b)": "a / b",
    "with_timezone(a, b)": "timezone(b, a)",
    "to_timestamp_ltz(a)": "a",
    "make_date(a, b, c)": "CAST(printf('%04d-%02d-%02d', a, b, c) AS DATE)",
}
"""The functions of other engines that sqlglot does not translate, in the words of DuckDB."""


@pytest.mark.some(2)
@pytest.mark.parametrize(("engine", "question"), [
    (engine, question)
    for engine in statements.ENGINES
    for question in ["list", "conditions", "groups", "sums", "bounds", "periods"]
    # The users of a group are chosen by a hash of their bytes, which has other digits on Snowflake.
    if (engine, question) != ("snowflake", "groups")
])  # fmt: skip
def test_statements_that_sqlglot_translates_to_duckdb_have_the_scores_of_duckdb(engine, question, monkeypatch):
    """This shows that a statement computes the scores, if the engine is as sqlglot takes it to be."""
    options = dict(statements.QUESTIONS[question])
    if isinstance(options["domain"], list):
        # DuckDB shows bytes that are not ASCII in digits.
        options["domain"] = PRODUCTS
    monkeypatch.setitem(statements.QUESTIONS, question, options)
    text = sqlglot.transpile(statements.compile_statement(engine, question), read=engine, write="duckdb")[0]
    connection = ibis.duckdb.connect()
    connection.con.execute("SET TimeZone = 'UTC'")
    connection.create_database("mart")
    connection.create_table("raw", sales())
    columns = ", ".join(
        f'CAST("{name}" AS DECIMAL(12, 2)) AS "{name}"' if name == "price" else f'"{name}"'
        for name in statements.COLUMNS
    )
    connection.con.execute(f"CREATE TABLE mart.sales AS SELECT {columns} FROM raw")  # noqa: S608  # our names
    for name, body in SHIMS.items():
        connection.con.execute(f"CREATE OR REPLACE MACRO {name} AS {body}")
    table = connection.table("sales", database="mart")
    expected = discreet.events(table, user="customer", **options).make_query().to_pyarrow()
    found = connection.con.execute(text).to_arrow_table().select(expected.column_names)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert sum(found["score"].to_pylist()) > 3


def test_scores_from_a_statement_are_released_with_the_sensitivity_of_the_source():
    source = statements.ask("trino", "sums")
    assert "mart" in source.sql()
    assert source.sensitivity == discreet.Sensitivity(5, 50)
    scores = dict.fromkeys(range(100), 0) | {7: 12_345}
    assert discreet.top_k(scores, k=1, epsilon=10, sensitivity=source.sensitivity).items == [7]


def test_a_table_without_a_connection_releases_nothing(tmp_path):
    source = statements.ask("bigquery", "list")
    for use in (source.tally, source.probe, lambda: discreet.top_k(source, k=1, epsilon=1)):
        with pytest.raises(InvalidValueError, match=r"^table must be on a connection, and discreet.compiled only comp"):
            use()


@EACH
def test_a_connection_to_an_engine_that_was_never_run_is_one_without_a_dialect(engine, monkeypatch):
    """Its text may be compared by a collation that the documentation did not tell of."""
    assert dialect_named(engine).text_bytes is None
    assert dialect_named(engine, runs=False).text_bytes is not None
    monkeypatch.setattr(compiled.Compiler, "runs", True)
    assert dialect_of(discreet.compiled(engine, "sales", statements.COLUMNS)).digest is None
    with pytest.raises(InvalidTypeError, match=rf"^user must hold numbers, dates or booleans on {engine}, not string"):
        statements.ask(engine, "list")


def test_errors_say_what_is_allowed():
    columns = {"who": "int64", "what": "int64"}
    with pytest.raises(
        InvalidValueError, match=r"^engine must be bigquery, databricks, snowflake, trino, not 'duckdb'"
    ):
        discreet.compiled("duckdb", "events", columns)
    with pytest.raises(InvalidValueError, match=r"^columns must have types of ibis"):
        discreet.compiled("trino", "events", {"who": "numberish"})
    with pytest.raises(InvalidTypeError, match=r"^columns must map each column to its type"):
        discreet.compiled("trino", "events", ["who"])
    table = discreet.compiled("trino", "events", columns)
    long = discreet.events(table, user="who", item="what", domain=list(range(compiled.MOST_LISTED + 1)))
    with pytest.raises(
        InvalidValueError, match=r"^a public list must have at most 10,000 rows in a statement, not 10,"
    ):
        long.sql()
    found = discreet.events(table, user="who", item="what", domain=discreet.discovered("1e-6", 1, kind="integer"))
    with pytest.raises(InvalidValueError, match=r"^sql must be asked of a source with a public list of items"):
        found.sql()
    stored = duckdb.sql("SELECT 1 AS who, 2 AS what")
    with pytest.raises(InvalidValueError, match=r"^sql must be asked of a table of discreet.compiled, not of one on D"):
        discreet.events(stored, user="who", item="what", domain=[2, 3]).sql()


def test_text_is_not_read_as_numbers_on_snowflake_where_a_cast_could_fail():
    with pytest.raises(InvalidTypeError, match=r"^domain must hold items like those of the events, strings, not int"):
        discreet.events(
            discreet.compiled("snowflake", "sales", statements.COLUMNS), user="customer", item="product", domain=[1, 2]
        )
