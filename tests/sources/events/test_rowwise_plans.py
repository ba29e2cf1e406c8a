"""check_plan: what a Spark DataFrame or a lazy polars query may be made of, and the words for what it may not."""

import polars as pl
import pytest
from engines import spark  # noqa: F401  # fixture
from polars import col

import discreet
from discreet.sources.events.rowwise import check_plan

ROWS = {"who": [1, 1, 2], "what": ["a", "b", "a"], "amount": [1.0, 2.0, None], "on": [True, True, True]}
ITSELF = "a join or isin of a table with itself"
UNEQUAL = "one row of several that are not equal"
HIDDEN = "a function of your own, or one that polars does not show"


def refused(table, thing, word):
    with pytest.raises(discreet.Error) as raised:
        discreet.events(table, user="who", item="what", domain=["a", "b", "c"])
    start = f"table must keep one user's rows independent of other users' rows, and {thing} holds {word}"
    assert str(raised.value).startswith(start)


def taken(table):
    source = discreet.events(table, user="who", item="what", domain=["a", "b", "c"])
    assert discreet.top_k(source, 1, 1000).items == ["a"]


LAZY = {
    "as it is": lambda f: f,
    "filters": lambda f: f.filter(col("on") & col("what").is_in(["a", "b"]) & ~col("amount").is_nan().fill_null(False)),
    "columns": lambda f: f.select("what", "who").rename({"who": "u"}).with_columns(who=col("u").cast(pl.String)),
    "text": lambda f: f.with_columns(what=(col("what").str.to_uppercase() + "!").str.to_lowercase().str.slice(0, 1)),
    "cases": lambda f: f.with_columns(x=pl.when(col("on")).then(1).otherwise(col("amount")).clip(0, 1).round(1)),
    "missing": lambda f: f.fill_null(0).drop_nulls("who"),
    "order": lambda f: f.sort("amount"),
    "equal rows once": lambda f: f.unique(),
    "one below the other": lambda f: pl.concat([f, f]),
    "joins": lambda f: f.join(pl.LazyFrame({"who": [1, 2], "name": ["x", "y"]}), on="who"),
}


@pytest.mark.parametrize("what", LAZY)
def test_a_lazy_query_about_single_rows_is_taken(what, tmp_path):
    frame = pl.DataFrame(ROWS)
    frame.write_parquet(tmp_path / "e.parquet")
    taken(LAZY[what](frame.lazy()))
    taken(LAZY[what](pl.scan_parquet(tmp_path / "e.parquet")))


LAZY_ACROSS = [
    ("a limit", lambda f: f.head(2)),
    ("a limit", lambda f: f.filter(col("on")).slice(1)),
    ("MapFunction, which is not known", lambda f: f.with_row_index().filter(col("index") < 2)),
    ("an aggregate", lambda f: f.filter(col("amount") < col("amount").max())),
    ("an aggregate", lambda f: f.group_by("what").agg(col("who").first())),
    ("an aggregate", lambda f: f.filter(pl.len() < 120)),
    ("an aggregate", lambda f: f.filter(col("what").is_in(col("what").implode()))),
    ("a window", lambda f: f.with_columns(n=col("amount").sum().over("who"))),
    ("cum_sum, which is not known to keep rows apart", lambda f: f.filter(col("who").cum_sum() < 3)),
    ("IsFirstDistinct, which is not known", lambda f: f.filter(col("what").is_first_distinct())),
    ("IntRange, which is not known", lambda f: f.filter(pl.int_range(0, 3) < 2)),
    ("a column that is joined by position", lambda f: f.filter(pl.Series([True, False, True]))),
    (UNEQUAL, lambda f: f.unique(subset=["what"])),
    (ITSELF, lambda f: f.join(f.filter(col("amount") > 1), on="what", how="semi")),
    (HIDDEN, lambda f: f.map_batches(lambda rows: rows)),
    (HIDDEN, lambda f: f.with_columns(n=col("who").map_elements(lambda who: who, return_dtype=pl.Int64))),
]


@pytest.mark.parametrize(("word", "made"), LAZY_ACROSS, ids=[f"{i} {word}" for i, (word, _) in enumerate(LAZY_ACROSS)])
def test_a_lazy_query_that_looks_at_other_rows_is_refused(word, made):
    refused(made(pl.DataFrame(ROWS).lazy()), "this lazy frame", word)


def test_rows_counted_while_a_file_is_scanned(tmp_path):
    pl.DataFrame(ROWS).write_parquet(path := tmp_path / "e.parquet")
    refused(pl.scan_parquet(path, n_rows=2), "this lazy frame", "a limit")
    refused(pl.scan_parquet(path, row_index_name="n").filter(col("n") < 2), "this lazy frame", "the number of a row")
    semi = pl.scan_parquet(path).join(pl.scan_parquet(path), on="what", how="semi")
    refused(semi, "this lazy frame", ITSELF)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_spark_dataframe_that_looks_at_other_rows_is_refused(spark, tmp_path):  # noqa: F811  # the fixture
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(list(zip(*ROWS.values(), strict=True)), list(ROWS))
    people = spark.createDataFrame([(1, "x"), (2, "y")], ["who", "name"])
    pl.DataFrame(ROWS).write_parquet(tmp_path / "e.parquet")
    stored = spark.read.parquet(str(tmp_path / "e.parquet"))
    frame.createOrReplaceTempView("everything")
    frame.limit(2).createOrReplaceTempView("few")
    for word, made in [
        ("a limit", frame.limit(2)),
        ("a limit", frame.offset(1)),
        ("a limit", spark.table("few")),
        ("a sample", frame.sample(0.5)),
        ("a window", frame.withColumn("n", f.row_number().over(Window.orderBy("amount"))).filter("n < 3")),
        ("an aggregate", frame.groupBy("who", "what").count()),
        ("a subquery", spark.sql("SELECT * FROM everything WHERE what IN (SELECT what FROM everything)")),
        ("an aggregate", spark.sql("SELECT * FROM everything WHERE who < (SELECT max(who) FROM everything)")),
        ("a random number or the number of a row", frame.filter(f.rand() < 0.5)),
        ("a random number or the number of a row", frame.filter(f.monotonically_increasing_id() < 120)),
        ("a function of your own", frame.withColumn("n", f.udf(lambda who: who)("what"))),
        (UNEQUAL, frame.dropDuplicates(["what"])),
        (ITSELF, frame.join(frame.filter("amount > 1").select("what"), "what", "left_semi")),
        (ITSELF, stored.join(spark.read.parquet(str(tmp_path / "e.parquet")).select("what"), "what")),
    ]:
        refused(made, "this Spark DataFrame", word)
    for made in [
        stored.filter("amount > 0 AND what LIKE 'a%'").orderBy("amount"),
        frame.withColumn("who", f.col("who").cast("string")).na.fill(0).join(people, "who", "left").distinct(),
        spark.sql("SELECT who, CASE WHEN on THEN what END AS what FROM everything").union(frame.select("who", "what")),
    ]:
        check_plan(made)
