"""check_plan: what a Spark DataFrame or a lazy polars query may be made of, and the words for what it may not."""

import json
import math
import operator as op
import warnings
from datetime import date, datetime
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars import col

import discreet
from discreet.sources.events.rowwise import check_plan
from discreet.sources.events.rowwise_polars import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    LOGIC,
    STEP,
    _check_part,
    _name_function,
)
from effort import examples
from engines import CONNECT

ROWS = {"who": [1, 1, 2], "what": ["a", "b", "a"], "amount": [1.0, 2.0, None], "on": [True, True, True]}
PEOPLE = pl.LazyFrame({"who": [1, 2], "name": ["x", "y"]})
NOON = datetime(2024, 1, 1, 12)
ITSELF = "a join or isin of a table with itself"
UNEQUAL = "one row of several that are not equal"
OWN = "a function of your own"
LENIENT = "a conversion that can fail on a row (use strict=False)"
FORMAT = "a conversion whose format follows from rows (give a format)"
TEXT = "a scan of text, whose types and errors follow from rows (pass the path of the file as table instead)"
FILES = "a scan of several files, whose types follow from rows (pass their paths as table instead)"
OPEN = "an outer join or one by order, where an inner one would do"


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
    "columns": lambda f: (
        f.select("what", "who").rename({"who": "u"}).with_columns(who=col("u").cast(pl.String, strict=False))
    ),
    "text": lambda f: f.with_columns(what=(col("what").str.to_uppercase() + "!").str.to_lowercase().str.slice(0, 1)),
    "cases": lambda f: f.with_columns(x=pl.when(col("on")).then(1).otherwise(col("amount")).clip(0, 1).round(1)),
    "missing": lambda f: f.fill_null(0).drop_nulls("who"),
    "order": lambda f: f.sort("amount"),
    "equal rows once": lambda f: f.unique(),
    "one below the other": lambda f: pl.concat([f, f]),
    "joins": lambda f: f.join(pl.LazyFrame({"who": [1, 2], "name": ["x", "y"]}), on="who"),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("what", LAZY)
def test_a_lazy_query_about_single_rows_is_taken(what, tmp_path):
    frame = pl.DataFrame(ROWS)
    frame.write_parquet(tmp_path / "e.parquet")
    taken(LAZY[what](frame.lazy()))
    taken(LAZY[what](pl.scan_parquet(tmp_path / "e.parquet")))


LAZY_ACROSS = [
    ("a limit", lambda f: f.head(2)),
    ("a limit", lambda f: f.filter(col("on")).slice(1)),
    ("the number of a row", lambda f: f.with_row_index().filter(col("index") < 2)),
    ("an aggregate", lambda f: f.filter(col("amount") < col("amount").max())),
    ("an aggregate", lambda f: f.group_by("what").agg(col("who").first())),
    ("an aggregate", lambda f: f.filter(pl.len() < 120)),
    ("IsIn with other inputs", lambda f: f.filter(col("what").is_in(col("what").implode()))),
    ("a window", lambda f: f.with_columns(n=col("amount").sum().over("who"))),
    ("CumSum, which is not known to keep rows apart", lambda f: f.filter(col("who").cum_sum() < 3)),
    ("IsFirstDistinct, which is not known", lambda f: f.filter(col("what").is_first_distinct())),
    ("Range, which is not known", lambda f: f.filter(pl.int_range(0, 3) < 2)),
    ("a column that is joined by position", lambda f: f.filter(pl.Series([True, False, True]))),
    (UNEQUAL, lambda f: f.unique(subset=["what"])),
    (ITSELF, lambda f: f.join(f.filter(col("amount") > 1), on="what", how="semi")),
    (OWN, lambda f: f.map_batches(lambda rows: rows)),
    (OWN, lambda f: f.with_columns(n=col("who").map_elements(lambda who: who, return_dtype=pl.Int64))),
    ("SQL of your own", lambda f: f.sql("SELECT * FROM self")),
    ("HConcat, which is not known", lambda f: pl.concat([f, f.select(n="who")], how="horizontal")),
    ("MergeSorted, which is not known", lambda f: f.merge_sorted(f, "who")),
    ("Hint, which is not known", lambda f: f.set_sorted("who")),
    ("FillNullWithStrategy, which is not known", lambda f: f.with_columns(col("amount").fill_null(strategy="forward"))),
    ("Reverse, which is not known", lambda f: f.reverse()),
    # The format of the first row decides for all.
    (FORMAT, lambda f: f.with_columns(day=col("what").str.to_date(strict=False))),
    (FORMAT, lambda f: f.with_columns(day=col("what").str.to_datetime(strict=False))),
    (FORMAT, lambda f: f.with_columns(day=col("what").str.strptime(pl.Date, strict=False))),
    # One row decides whether there is an answer.
    (LENIENT, lambda f: f.with_columns(day=col("what").str.to_date("%Y-%m-%d"))),
    (LENIENT, lambda f: f.with_columns(day=col("what").str.strptime(pl.Datetime, "%Y-%m-%d"))),
    (LENIENT, lambda f: f.with_columns(n=col("what").str.to_integer())),
    ("a cast that can fail on a row (use strict=False)", lambda f: f.with_columns(n=col("what").cast(pl.Int64))),
    ("a cast that can fail on a row (use strict=False)", lambda f: f.cast({"who": pl.Int8})),
    ("ToInteger, which is not known", lambda f: f.with_columns(n=col("what").str.to_integer(base=99, strict=False))),
    ("ToDecimal, which is not known", lambda f: f.with_columns(n=col("what").str.to_decimal(scale=2))),
    ("JsonDecode, which is not known", lambda f: f.with_columns(n=col("what").str.json_decode(pl.Int64))),
    ("ReplaceStrict, which is not known", lambda f: f.with_columns(n=col("who").replace_strict({1: 2}))),
    ("Truncate, which is not known", lambda f: f.with_columns(n=pl.lit(date(2024, 1, 1)).dt.truncate("1mo"))),
    ("Generic with other inputs", lambda f: f.with_columns(n=pl.lit(2) ** col("who"))),
    ("a cast from String to Boolean", lambda f: f.with_columns(n=col("what").cast(pl.Boolean, strict=False))),
    ("a cast from UInt64 to Int64", lambda f: f.with_columns(n=col("who").cast(pl.UInt64, strict=False).fill_null(-1))),
    ("an operation on Decimal", lambda f: f.with_columns(n=col("price") / col("price"))),
    ("a cast from Date to Datetime", lambda f: f.with_columns(n=col("day").is_between(NOON, NOON))),
    ("a cast from Date to String", lambda f: f.with_columns(n=col("day").cast(pl.String, strict=False))),
    ("a union that converts types", lambda f: pl.concat([f, f], how="vertical_relaxed")),
    ("a check of the keys of a join", lambda f: f.join(PEOPLE, on="who", validate="m:1")),
    (OPEN, lambda f: PEOPLE.join(f, on="who", how="left")),
    (OPEN, lambda f: f.join(PEOPLE, on="who", how="full")),
    (OPEN, lambda f: f.sort("who").join_asof(PEOPLE, on="who")),
    ("NonEqui, which is not known", lambda f: f.join_where(PEOPLE, col("who") < col("who_right"))),
]


@pytest.mark.parametrize(("word", "made"), LAZY_ACROSS, ids=[f"{i} {word}" for i, (word, _) in enumerate(LAZY_ACROSS)])
def test_a_lazy_query_that_looks_at_other_rows_is_refused(word, made):
    frame = pl.DataFrame(ROWS).with_columns(price=pl.lit("1.5").cast(pl.Decimal(10, 2)), day=pl.lit(date(2024, 1, 1)))
    refused(made(frame.lazy()), "this lazy frame", word)


def test_a_first_row_does_not_choose_the_format_of_others():
    """Without a format, one row with another order of day and month takes 50 users away."""
    days = pl.DataFrame({"who": range(51), "day": ["02/01/2024", *["2024-01-02"] * 50], "what": "a"})
    made = [frame.lazy().with_columns(day=col("day").str.to_date(strict=False)) for frame in (days, days[1:])]
    assert [int(each.filter(col("day") == date(2024, 1, 2)).collect().height) for each in made] == [1, 50]
    for each in made:
        refused(each, "this lazy frame", FORMAT)


def test_what_a_scan_may_be_told(tmp_path):
    frame = pl.DataFrame(ROWS)
    path, other, folder = tmp_path / "e.parquet", tmp_path / "e.ipc", tmp_path / "n=1"
    frame.write_parquet(path)
    frame.write_ipc(other)
    frame.write_csv(tmp_path / "e.csv")
    frame.write_ndjson(tmp_path / "e.ndjson")
    folder.mkdir()
    frame.write_parquet(folder / "e.parquet")
    for word, table in [
        ("a limit", pl.scan_parquet(path, n_rows=2)),
        ("the number of a row", pl.scan_parquet(path, row_index_name="n").filter(col("n") < 2)),
        ("Ipc, which is not known", pl.scan_ipc(other)),
        ("a scan of partitions", pl.scan_parquet(folder / "e.parquet", hive_partitioning=True)),
        ("schema, which is not known", pl.scan_parquet(path, schema=frame.schema)),
        ("include_file_paths, which is not known", pl.scan_parquet(path, include_file_paths="p")),
        (FILES, pl.scan_parquet(tmp_path / "*.parquet")),
        (FILES, pl.scan_parquet(folder)),
        (FILES, pl.scan_parquet([path, folder / "e.parquet"])),
        (FILES, pl.scan_parquet(path.read_bytes())),
        (TEXT, pl.scan_csv(tmp_path / "e.csv", skip_rows_after_header=1)),
        (TEXT, pl.scan_csv(tmp_path / "e.csv", infer_schema=False)),
        (TEXT, pl.scan_ndjson(tmp_path / "e.ndjson")),
        (ITSELF, pl.scan_parquet(path).join(pl.scan_parquet(path), on="what", how="semi")),
    ]:
        refused(table, "this lazy frame", word)
    for table in [
        pl.scan_parquet(path, parallel="columns", low_memory=True, cache=False, use_statistics=False),
        pl.scan_parquet(path, missing_columns="insert", extra_columns="ignore", hive_partitioning=False),
        pl.scan_parquet(path, glob=False, storage_options={}),
        pl.scan_parquet(folder / "e.parquet"),
    ]:
        taken(table)


def test_a_query_whose_types_were_asked_for_is_read_as_well():
    made = pl.DataFrame(ROWS).lazy().filter(col("on"))
    made.collect_schema()
    taken(made.select("who", "what"))
    made = pl.DataFrame(ROWS).lazy().head(2)
    made.collect_schema()
    refused(made.select("who", "what"), "this lazy frame", "a limit")


def test_an_unknown_part_of_a_plan_is_refused():
    """A later polars may add a step, a function or an option that nobody has looked at."""

    class RefusedError(Exception):
        pass

    def refuse(what):
        raise RefusedError(what)

    scan = {"DataFrameScan": {"df": [], "schema": {}}}
    values = {"input": scan, "predicate": {"Column": "on"}}
    _check_part(STEP, {"Filter": values}, "", refuse)
    is_in = {"Function": {"input": [{"Column": "on"}, {"Literal": {"Scalar": {}}}], "function": {"Boolean": "Later"}}}
    cast = {"Cast": {"expr": {"Column": "on"}, "dtype": {"Literal": "Int8"}, "options": "Later"}}
    for plan in [
        {"Later": values},
        {"Filter": values | {"later": None}},
        {"Filter": values | {"predicate": {"Later": "on"}}},
        {"Filter": values | {"predicate": is_in}},
        {"Filter": values | {"predicate": cast}},
        {"Filter": values, "Later": values},
        {"Distinct": {"input": scan, "options": {"subset": None, "later": True}}},
        "Later",
        [scan],
        None,
    ]:
        with pytest.raises(RefusedError):
            _check_part(STEP, plan, "", refuse)


i, u, f, g, s, b, d, t = (col(name) for name in "iufgsbdt")
SPELLED = [s.str.to_date("%Y-%m-%d", strict=False), s.str.to_date("%d/%m/%Y", strict=False, exact=False)]
SPELLED += [s.str.to_datetime("%Y-%m-%d %H:%M", strict=False, time_unit=unit) for unit in ("ns", "us", "ms")]
SPELLED += [s.str.to_datetime("%Y-%m-%d %H:%M%z", strict=False), s.str.strptime(pl.Time, "%H:%M", strict=False)]
CASTS = [each.cast(pl.String, strict=False) for each in (i, u, f, g, b)]
CASTS += [each.cast(kind, strict=False) for each in (i, f, s) for kind in (pl.Int8, pl.UInt64, pl.Float32, pl.Float64)]
CASTS += [
    d.cast(pl.Datetime("ns"), strict=False),
    t.cast(pl.Date, strict=False),
    t.cast(pl.Datetime("ms"), strict=False),
]
CASTS += [i.cast(pl.Boolean, strict=False), b.cast(pl.Int8, strict=False)]
EXPRESSIONS = [
    *(do(i) for do in (abs, lambda e: -e, pl.Expr.sign, pl.Expr.hash)),
    *(do(x) for x in (f, g) for do in (abs, pl.Expr.sign, pl.Expr.ceil, pl.Expr.floor, pl.Expr.sqrt, pl.Expr.cbrt)),
    *(do(f) for do in (pl.Expr.exp, pl.Expr.log, pl.Expr.log10, pl.Expr.is_nan, pl.Expr.is_not_nan, pl.Expr.is_finite)),
    *(f.round(2, mode) for mode in ("half_to_even", "half_away_from_zero")),
    *(x**power for x in (i, f) for power in (0, 2, 3, 0.5)),
    *(i.clip(0, 9), f.clip(0, None), u.clip(None, 9), f.clip(9, 0), f.is_infinite(), u.hash(seed=3)),
    *(x.fill_null(0) for x in (i, u, f)),
    *(pl.coalesce(i, 1), pl.coalesce(s, pl.lit("x")), s.fill_null("x"), b.fill_null(True), t.fill_null(NOON)),
    *(i.replace({1: 2}), s.replace(["", "é"], ["x", None]), i.replace_strict({1: "a"}, default=None)),
    *(s.replace_strict({"": 1}, default=0), i.is_null(), s.is_not_null(), ~b, b & (i > 0), b | b, b ^ b, i ^ 1, i & 3),
    *(pl.all_horizontal(b, i > 0), pl.any_horizontal(b, i > 0), b.and_(b), b.or_(b)),
    *(i.is_in([1, 2]), s.is_in(["", None], nulls_equal=True), f.is_in(pl.Series([0.5])), d.is_in([NOON.date()])),
    *(i.is_between(0, f, closed=closed) for closed in ("both", "none", "left", "right")),
    *(s.str.to_lowercase(), s.str.to_uppercase(), s.str.len_bytes(), s.str.len_chars(), s.str.reverse()),
    *(s.str.starts_with("2"), s.str.ends_with("4"), s.str.slice(1, 2), s.str.slice(-3), s.str.head(-2), s.str.tail(2)),
    *(s.str.zfill(5), s.str.strip_chars(), s.str.strip_chars("0"), s.str.strip_chars_start(), s.str.strip_chars_end()),
    *(s.str.strip_prefix("2"), s.str.strip_suffix("4"), s.str.contains("^2"), s.str.contains("(", literal=True)),
    *(s.str.contains("(", strict=False), s.str.replace("2", "x"), s.str.replace_all("[0-9]", "$0", literal=False)),
    *(
        s.str.replace("(", "x", literal=True, n=2),
        s.str.replace_all("", "x", literal=True),
        s.str.extract("([0-9]+)", 1),
    ),
    *(s + "!", s + s, pl.concat_str(s, s, separator="-"), pl.concat_str(s, pl.lit(1), ignore_nulls=True)),
    *(s.str.to_integer(base=base, strict=False) for base in (2, 8, 10, 16)),
    *(getattr(x.dt, part)() for x in (d, t) for part in ("year", "quarter", "month", "week", "weekday", "day")),
    *(t.dt.hour(), t.dt.minute(), t.dt.second(), t.dt.date()),
    *(pl.when(b).then(i).otherwise(f), pl.when(i > u).then(s), (i + 1).name.keep(), i.name.suffix("_"), pl.all()),
    *(
        do(x, y)
        for do in (op.add, op.sub, op.mul, op.truediv, op.floordiv, op.mod)
        for x, y in product((i, f), (i, g, 0))
    ),
    *(
        do(x, y)
        for do in (op.eq, op.ne, op.lt, op.le, op.gt, op.ge)
        for x, y in ((i, u), (i, g), (s, s), (t, t), (i, 0.5))
    ),
    *(x.eq_missing(y) for x, y in ((i, f), (s, ""), (d, d))),
    *(i.ne_missing(1), b == b, d > NOON.date(), t <= NOON),
    *SPELLED,
    *CASTS,
]
HUGE = [0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 2.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
WORDS = [
    "",
    "é",
    "\U0001f600",
    "ß",
    " x ",
    "7",
    "-7",
    "1e400",
    "9" * 40,
    "0x1F",
    "2024-01-02",
    "02/01/2024",
    "(",
    "$0",
    "nan",
]
CELL = st.fixed_dictionaries(
    {
        "i": st.none() | st.sampled_from(HUGE) | st.integers(-(2**63), 2**63 - 1),
        "u": st.none() | st.sampled_from([0, 1, 2**64 - 1]),
        "f": st.none() | st.sampled_from(FLOATS) | st.floats(),
        "g": st.none() | st.sampled_from([0.0, 1.5, math.inf, math.nan]),
        "s": st.none() | st.sampled_from(WORDS) | st.text(max_size=8),
        "b": st.none() | st.booleans(),
        "d": st.none() | st.sampled_from([0, 19724, 2**31 - 1, -(2**31)]),
        "t": st.none() | st.sampled_from(HUGE),
    }
)
TYPES = {"i": pl.Int64, "u": pl.UInt64, "f": pl.Float64, "g": pl.Float32, "s": pl.String, "b": pl.Boolean}
TYPES |= {"d": pl.Int32, "t": pl.Int64}


def frame_of(rows):
    frame = pl.DataFrame(rows, schema=TYPES)
    return frame.with_columns(d.cast(pl.Date), t.cast(pl.Datetime("us"))).lazy()


def evaluated(rows):
    named = [
        each.alias(str(n)) for n, each in enumerate(EXPRESSIONS) if each.meta.output_name(raise_if_undetermined=False)
    ]
    return frame_of(rows).select(named).collect()


@pytest.mark.parametrize("made", EXPRESSIONS, ids=lambda each: str(each)[:60].encode("unicode_escape").decode())
def test_what_is_evaluated_below_is_accepted(made):
    check_plan(frame_of([]).select(made))


def test_every_accepted_function_is_evaluated_below():
    seen = set()

    def look(part):
        for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            look(each)
        if isinstance(part, dict) and "Function" in part:
            seen.add(_name_function(part["Function"]["function"])[0])
        if isinstance(part, dict) and "BinaryExpr" in part:
            seen.add(part["BinaryExpr"]["op"])

    with warnings.catch_warnings(action="ignore"):  # polars may change its JSON, which is why it is read by lists
        for each in EXPRESSIONS:
            look(json.loads(each.meta.serialize(format="json")))
    # Two spellings of one operator, of which Python writes one.
    assert {*FUNCTIONS, *COMPARISONS, *ARITHMETIC, *LOGIC} - seen <= {"LogicalAnd", "LogicalOr"}


@given(st.lists(CELL, max_size=4), CELL, st.integers(0, 4))
@settings(max_examples=examples(60), deadline=None)
def test_one_more_row_changes_no_value_of_another_and_fails_nothing(rows, odd, place):
    place = min(place, len(rows))
    without, whole = evaluated(rows), evaluated([*rows[:place], odd, *rows[place:]])
    rest = pl.concat([whole[:place], whole[place + 1 :]])
    assert without.schema == whole.schema
    assert [name for name in without.columns if not without[name].equals(rest[name], null_equal=True)] == []


@pytest.mark.parametrize("what", LAZY)
@given(st.lists(CELL, max_size=4), CELL, st.integers(0, 4))
@settings(max_examples=examples(10), deadline=None)
def test_one_more_user_changes_no_row_of_another(what, rows, odd, place):
    def kept(cells):
        frame = pl.DataFrame(
            [{"who": who, "what": cell["s"], "amount": cell["f"], "on": cell["b"]} for who, cell in cells],
            schema={"who": pl.Int64, "what": pl.String, "amount": pl.Float64, "on": pl.Boolean},
        )
        rows = LAZY[what](frame.lazy()).collect().rows()
        return sorted(repr(row) for row in rows if 99 not in row and "99" not in row)

    old = [(n % 2 + 1, row) for n, row in enumerate(rows)]
    place = min(place, len(rows))
    assert kept(old) == kept([*old[:place], (99, odd), *old[place:]])


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not CONNECT, reason="make test-connect asks through Spark Connect")
def test_a_frame_of_spark_connect_is_a_table_or_files_with_some_of_their_columns(spark, tmp_path):
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(list(zip(*ROWS.values(), strict=True)), list(ROWS))
    pl.DataFrame(ROWS).write_parquet(tmp_path / "e.parquet")
    stored = spark.read.parquet(str(tmp_path / "e.parquet"))
    frame.write.partitionBy("who").parquet(f"{tmp_path}/parts")
    parts = spark.read.parquet(f"{tmp_path}/parts")
    pl.DataFrame(ROWS).write_csv(tmp_path / "e.csv")
    frame.createOrReplaceTempView("everything")
    frame.write.saveAsTable("kept")
    numbered = f.row_number().over(Window.orderBy("amount"))
    for word, made in [
        ("a limit", frame.limit(2)),
        ("a limit", frame.limit(2).select("who", "what")),
        ("a limit", stored.offset(1)),
        ("a sample", frame.sample(0.5)),
        ("a computed column", frame.withColumn("n", numbered)),
        ("a computed column", frame.select("who", numbered.alias("what"))),
        ("a computed column", frame.select("who", f.col("what").cast("int").alias("n"))),
        ("a computed column", frame.selectExpr("who", "what AS n")),
        ("an aggregate", frame.groupBy("who", "what").count()),
        ("a query in SQL", spark.sql("SELECT * FROM everything")),
        ("a filter", frame.filter(f.rand() < 0.5)),
        ("a join", frame.join(stored.select("what"), "what")),
        ("one row of several that are not equal", frame.dropDuplicates(["what"])),
        ("the step set_op, which is not known", frame.union(frame)),
        ("a scan of text", spark.read.csv(str(tmp_path / "e.csv"), header=True, inferSchema=True)),
        ("a scan of partitions", parts),
        ("a name that is no table of the catalog", spark.table(f"json.`{tmp_path}/e.json`")),
        ("a name that is no table of the catalog", spark.table(f"parquet.`{tmp_path}/parts`")),
        ("a temporary view", spark.table("everything")),
        ("a read with settings of its own", spark.read.option("mode", "FAILFAST").table("kept")),
        ("a read with settings of its own", spark.read.schema("who INT, what INT").orc(str(tmp_path / "e.parquet"))),
        ("a column that is hidden", stored.select("who", f.col("_metadata.row_index").alias("what"))),
        ("a column that is hidden", stored.select("who", stored.metadataColumn("_metadata").alias("what"))),
        ("a column that is hidden", stored.alias("z").select("who", f.col("z.`_metadata`.file_size").alias("what"))),
    ]:
        refused(made, "this DataFrame of Spark Connect", word)
    for made in [
        frame,
        stored,
        spark.table("kept"),
        spark.read.option("mergeSchema", True).parquet(str(tmp_path / "e.parquet")),
        stored.select("who", f.col("what").alias("item")).withColumnRenamed("who", "user").drop("on").alias("events"),
    ]:
        check_plan(made)
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "TRUE")
    refused(parts, "this DataFrame of Spark Connect", "a scan of partitions")
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    check_plan(parts)
    spark.sql("DROP TABLE kept")
    spark.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(CONNECT, reason="Spark Connect has rules of its own")
def test_a_spark_dataframe_that_looks_at_other_rows_is_refused(spark, tmp_path):
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    frame = spark.createDataFrame(list(zip(*ROWS.values(), strict=True)), list(ROWS))
    people = spark.createDataFrame([(1, "x"), (2, "y")], ["who", "name"])
    pl.DataFrame(ROWS).write_parquet(tmp_path / "e.parquet")
    stored = spark.read.parquet(str(tmp_path / "e.parquet"))
    pl.DataFrame(ROWS).write_csv(tmp_path / "e.csv")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    strict_cast = frame.withColumn("n", f.col("what").cast("int"))
    spark.conf.set("spark.sql.ansi.enabled", "false")
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
        ("an outer join, where an inner one would do", people.join(frame, "who", "left")),
        ("a scan of text", spark.read.csv(str(tmp_path / "e.csv"), header=True, inferSchema=True)),
        ("RaiseError, which is not known", spark.sql("SELECT *, raise_error('x') AS n FROM everything")),
        ("ParseToDate, which is not known", frame.withColumn("n", f.to_date("what", "yyyy"))),
        ("LIKE with a backslash", frame.filter(f.col("what").like("a\\"))),
        ("what was made in ANSI mode", strict_cast),
        ("a column that is hidden", stored.select("who", f.col("_metadata.row_index").alias("what"))),
        ("a column that is hidden", stored.filter(f.col("_metadata.file_size") > 9)),
        (ITSELF, stored.join(spark.read.parquet(str(tmp_path / "e.parquet")).select("what"), "what")),
    ]:
        refused(made, "this Spark DataFrame", word)
    for made in [
        stored.filter("amount > 0 AND what LIKE 'a%'").orderBy("amount"),
        frame.withColumn("who", f.col("who").cast("string")).na.fill(0).join(people, "who").distinct(),
        spark.sql("SELECT who, CASE WHEN on THEN what END AS what FROM everything").union(frame.select("who", "what")),
    ]:
        check_plan(made)
