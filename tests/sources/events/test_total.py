"""No value of any type makes a release fail: the least, the greatest and the oddest ones that each engine can store."""

import sqlite3
import warnings
from datetime import date
from decimal import Decimal

import ibis
import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.privacy import exact
from discreet.sources.events.dialects.base import dialect_named
from engines import as_table, fill_clickhouse

TEXTS = ["", "7", "é", "\U0001f600", "a" * 70_000, "2026-01-01", "1e999", "true", "9" * 50, "nan", "0x1F", "-0"]
ENDS = ["infinity", "-infinity", "2026-01-01"]
DUCKDB = {
    "FLOAT": ["1e-45", "3.4028235e38", "-0.0", "nan", "inf", "-inf", "7"],
    "DOUBLE": ["5e-324", "-5e-324", "1.7976931348623157e308", "-0.0", "nan", "inf", "-inf", "7"],
    "HUGEINT": [str(-(2**127)), str(2**127 - 1), "7"],
    "UHUGEINT": [str(2**128 - 1), "7"],
    "DECIMAL(38,0)": ["9" * 38, "-" + "9" * 38, "7"],
    "DECIMAL(38,37)": ["9." + "9" * 37, "0." + "0" * 36 + "1", "7"],
    "BIGINT": [str(-(2**63)), str(2**63 - 1), "7"],
    "UBIGINT": [str(2**64 - 1), "7"],
    "DATE": [*ENDS, "5881580-07-10", "5877642-06-25 (BC)"],
    "TIMESTAMP": [*ENDS, "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806"],
    "TIMESTAMP_S": [*ENDS, "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54"],
    "TIMESTAMP_MS": [*ENDS, "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775"],
    "TIMESTAMP_NS": [*ENDS, "1677-09-22 00:00:00", "2262-04-11 23:47:16.854775806"],
    "TIMESTAMPTZ": [*ENDS, "290309-12-22 (BC) 00:00:00+00", "294247-01-10 04:00:54.775806+00"],
    "INTERVAL": ["2147483647 months", "-2147483648 months", "2147483647 days", "30 days"],
    "TIME": ["24:00:00", "00:00:00"],
    "TIMETZ": ["24:00:00+15:59:59", "00:00:00-15:59:59"],
    "UUID": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "BLOB": ["\\xFF\\x00", "a", ""],
    "BIT": ["101"],
    "INTEGER[]": ["[1]"],
    "STRUCT(a INTEGER)": ["{'a': 1}"],
    "BOOLEAN": ["true", "false"],
    "VARCHAR": [*TEXTS, "a\0b"],
}
POSTGRES = {
    "float8": ["5e-324", "-5e-324", "1e-310", "1.7976931348623157e308", "-0", "NaN", "Infinity", "-Infinity", "7"],
    "float4": ["1e-45", "3.4028235e38", "-0", "NaN", "Infinity", "-Infinity", "7"],
    "numeric": ["NaN", "Infinity", "-Infinity", "1e131071", "-1e131071", "1e-16383", "-1e-16383", "1e-400", "7"],
    "numeric(38,30)": ["99999999." + "9" * 30, "0." + "0" * 29 + "1", "NaN", "7"],
    "int8": [str(-(2**63)), str(2**63 - 1), "7"],
    "money": ["-92233720368547758.08", "92233720368547758.07", "7"],
    "oid": ["0", "4294967295"],
    "date": [*ENDS, "4713-01-01 BC", "5874897-12-31"],
    "timestamp": [*ENDS, "4713-01-01 BC", "294276-12-31 23:59:59.999999"],
    "timestamptz": [*ENDS, "4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00"],
    "interval": ["178000000 years", "-178000000 years", "1 month", "30 days"],
    "time": ["24:00", "00:00"],
    "timetz": ["24:00+15:59", "00:00-15:59"],
    "bytea": ["\\x", "\\xff00", "\\x61"],
    "text": TEXTS,
    "char(5)": ["7", "a"],
    "uuid": DUCKDB["UUID"],
    "bool": ["t", "f"],
    "inet": ["::1", "1.2.3.4/8"],
    "bit(3)": ["101"],
    "jsonb": ["{}"],
    "int4[]": ["{1}"],
    "point": ["(1,2)"],
}
INVALID = ["0000-00-00", "2026-00-10", "2026-01-00", "2026-02-31", "0000-01-01", "0001-01-01", "9999-12-31"]
MARIADB = {
    "DOUBLE": ["5e-324", "-5e-324", "1.7976931348623157e308", "-1.7976931348623157e308", "-0.0", "7", "7.5"],
    "FLOAT": ["1e-45", "3.4028234e38", "-0.0", "7"],
    "DECIMAL(65,0)": ["9" * 65, "-" + "9" * 65, "7"],
    "DECIMAL(65,30)": ["9" * 35 + "." + "9" * 30, "0." + "0" * 29 + "1", "7"],
    "DECIMAL(38,37)": ["9." + "9" * 37, "7"],
    "BIGINT": [str(-(2**63)), str(2**63 - 1), "7"],
    "BIGINT UNSIGNED": [str(2**64 - 1), "0", "7"],
    "INT UNSIGNED": [str(2**32 - 1), "0", "7"],
    "TINYINT(1)": ["-128", "127", "0", "1"],
    "BIT(64)": [str(2**64 - 1), "0", "7"],
    "YEAR": ["0000", "1901", "2155", "2026"],
    "DATE": INVALID,
    "DATETIME(6)": [*INVALID, "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.5"],
    "TIMESTAMP(3)": ["0000-00-00", "1970-01-01 00:00:01", "2038-01-19 03:14:07.999"],
    "TIME": ["-838:59:59", "838:59:59", "00:00:00"],
    "UUID": DUCKDB["UUID"],
    "INET6": ["::1", "::ffff:1.2.3.4"],
    "ENUM('a','7','B ')": ["a", "7", "B ", "none of them"],
    "JSON": ["{}", "7"],
    "LONGTEXT": [*TEXTS, "a\0b", "A ", "a"],
    "VARCHAR(9) CHARACTER SET latin1": ["7", "é", "\x81", "a"],
    "VARCHAR(9) CHARACTER SET ascii": ["7", b"\xff", "a"],
    "VARCHAR(9) CHARACTER SET gbk": ["7", "é", "a"],
    "CHAR(5)": ["7", "a"],
    "LONGBLOB": [b"\xff\0", b"a", b""],
    "SET('a','7')": ["a,7", "7"],
    "POINT": [],
}
FLOATS = [5e-324, 1.7976931348623157e308, float("inf"), -float("inf"), -0.0, 7.0, 7.5]
SQLITE = [*FLOATS, 7, -(2**63), 2**63 - 1, b"", b"\xff\0", *TEXTS, "a\0b"]
WIDE = [-(2**63), -1, 0, 2**63 - 1]
DATAFUSION = {
    "float64": pa.array([*FLOATS, float("nan")]),
    "float32": pa.array([1e-45, 3.4028235e38, float("nan"), float("inf"), -0.0, 7.0], pa.float32()),
    "int64": pa.array(WIDE),
    "uint64": pa.array([0, 2**64 - 1], pa.uint64()),
    "decimal": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(7)], pa.decimal128(38, 0)),
    "fraction": pa.array([Decimal("9." + "9" * 37), Decimal("0." + "0" * 36 + "1")], pa.decimal128(38, 37)),
    "large": pa.array([Decimal("9" * 76), Decimal(7)], pa.decimal256(76, 0)),
    "date": pa.array([-(2**31), 0, 2**31 - 1], pa.int32()).cast(pa.date32()),
    "milliseconds": pa.array([-(10**10) * 86_400_000, 0], pa.int64()).cast(pa.date64()),
    **{f"timestamp {unit}": pa.array(WIDE).cast(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "zoned": pa.array(WIDE).cast(pa.timestamp("us", tz="Europe/Berlin")),
    "text": pa.array([*TEXTS, "a\0b"]),
    "large text": pa.array([*TEXTS, "a\0b"], pa.large_string()),
    "view": pa.array([*TEXTS, "a\0b"], pa.string_view()),
    "binary": pa.array([b"", b"\xff\0", b"a"]),
    "boolean": pa.array([True, False]),
    "time": pa.array([0, 86_399_999_999], pa.int64()).cast(pa.time64("us")),
    "dictionary": pa.array(["a", "7"]).dictionary_encode(),
    "list": pa.array([[1]]),
    "struct": pa.array([{"a": 1}]),
}
CLICKHOUSE = {
    "Float64": ["5e-324", "-5e-324", "1.7976931348623157e308", "-0.0", "nan", "-nan", "inf", "-inf", "7"],
    "Float32": ["1e-45", "3.4028235e38", "nan", "inf", "-0.0", "7"],
    "Int8": ["-128", "7"],
    "Int64": [str(-(2**63)), str(2**63 - 1), "7"],
    "UInt64": ["0", str(2**64 - 1), "7"],
    "Int128": [f"toInt128('{n}')" for n in (-(2**127), 2**127 - 1, 7)],
    "Int256": [f"toInt256('{n}')" for n in (-(2**255), 2**255 - 1, 7)],
    "Decimal(38, 0)": [f"toDecimal128('{n}', 0)" for n in ("9" * 38, "-" + "9" * 38, "7")],
    "Decimal(38, 37)": [f"toDecimal128('{n}', 37)" for n in ("9." + "9" * 37, "0." + "0" * 36 + "1", "7")],
    "Decimal(76, 0)": [f"toDecimal256('{n}', 0)" for n in ("9" * 76, "7")],
    "Date": ["0", "65535", "'2026-01-01'"],
    "Date32": ["toDate32('0001-01-01')", "toDate32('9999-12-31')", "'2026-01-01'"],
    "DateTime": ["0", "4294967295", "'2026-01-01 00:00:00'"],
    "DateTime64(0)": ["toDateTime64('0001-01-01 00:00:00', 0)", "toDateTime64('9999-12-31 23:59:59', 0)"],
    "DateTime64(3, 'Europe/Berlin')": ["toDateTime64('1900-01-01 00:00:00.5', 3)", "'2026-01-01 00:00:00'"],
    "DateTime64(9)": ["toDateTime64('1900-01-01 00:00:00.5', 9)", "toDateTime64('2262-04-11 00:00:00', 9)"],
    "String": [*(f"'{text}'" for text in TEXTS), "unhex('ff61')", "'a\\0b'"],
    "LowCardinality(String)": ["'7'", "'a'", "unhex('ff')"],
    "FixedString(3)": ["'7'", "'a'", "unhex('ff')"],
    "Enum8('7' = 1, 'a' = 2)": ["'7'", "'a'"],
    "UUID": [f"'{text}'" for text in DUCKDB["UUID"]],
    "IPv4": ["'1.2.3.4'"],
    "IPv6": ["'::1'"],
    "Bool": ["true", "false"],
    "Array(Int8)": ["[1]"],
    "Tuple(a Int8)": ["tuple(1)"],
}
SPARK = {
    "double": ["5e-324", "1.7976931348623157e308", "-0.0", "NaN", "Infinity", "-Infinity", "7"],
    "decimal(38,0)": ["9" * 38, "-" + "9" * 38, "7"],
    "decimal(38,37)": ["9." + "9" * 37, "7"],
    "timestamp": ["-290000-01-01 00:00:00", "+294247-01-10 04:00:54.775807", "2026-01-01 00:00:00"],
    "date": ["-5877641-06-23", "+5881580-07-11", "2026-01-01"],
    "binary": ["", "a"],
    "string": TEXTS,
}


def fill_duckdb(kind):
    backend = ibis.duckdb.connect()
    backend.con.execute(f"CREATE TABLE odd (n INTEGER, c {kind})")
    backend.con.executemany(f"INSERT INTO odd VALUES (?, CAST(? AS {kind}))", [*enumerate(DUCKDB[kind])])  # noqa: S608
    return backend.table("odd")


def fill_postgres(url, kind, values):
    psycopg = pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed here")
    with psycopg.connect(url.replace("postgres://", "postgresql://", 1)) as connection:
        connection.execute("DROP TABLE IF EXISTS odd")
        connection.execute(f"CREATE TABLE odd (n int, c {kind})")
        connection.cursor().executemany(f"INSERT INTO odd VALUES (%s, %s::{kind})", [*enumerate(values)])  # noqa: S608


def fill_mariadb(url, kind, values):
    with warnings.catch_warnings(action="ignore"):  # a new server has no table of time zones
        connection = ibis.connect(url)
    with connection.con.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        if "odd" in connection.list_tables():
            cursor.execute("DROP TABLE odd")
        cursor.execute(f"CREATE TABLE odd (n INTEGER, c {kind}) CHARACTER SET utf8mb4")
        # A number in the place of a text in quotes, which BIT would take for its bytes.
        marks = "%s, 0 + %s" if kind.startswith("BIT") else "%s, %s"
        cursor.executemany(f"INSERT INTO odd VALUES ({marks})", [*enumerate(values)])  # noqa: S608
    connection.disconnect()


def questions():
    """What is asked of a column `c` of odd values, beside the column `n` of their numbers."""
    yield {"user": "c", "item": "n", "domain": [1, 2]}
    groups = {"by": "n", "groups": [1, 2, 3], "each_user": "many", "max_groups_per_user": 1}
    yield {"user": "c", "item": "n", "domain": [1, 2], **groups}
    yield {"user": "c", "item": "n", "domain": discreet.discovered("1e-6", 1, kind="integer")}
    own = {"user": "n", "item": "n", "domain": [1, 2]}
    for domain in ([7, 8], ["7", "a"], [date(2026, 1, 1)], [True, False]):
        yield {**own, "item": "c", "domain": domain}
        yield {**own, "by": "c", "groups": domain, "each_user": "one"}
    yield {**own, "item": "c", "domain": discreet.strings("abc7", 3)}
    yield {**own, "item": "c", "domain": discreet.discovered("1e-6", 2, kind="string")}
    for step in ("2", "0.01", "1e-200", "1e200"):
        high = 4 * exact(step, "step")
        yield {**own, "value": "c", "clip": (-high, high), "resolution": step}
    yield {**own, "by": discreet.month("c"), "groups": ["2026-01"], "each_user": "one"}
    for where in ("c > 1", "c = 'a' OR c LIKE 'b%' OR c > 'c'", "c = DATE '2026-01-01'", "c * 3 = 21"):
        yield {**own, "where": where}


def ask_everything(**table):
    """How many questions were answered; the others are refused by the type of the column, before anything is read."""
    if isinstance(table["table"], str):
        # A connection for each question would take longer than all of them.
        opened, close = dialect_named(table["table"].partition("://")[0]).connect(table["table"])
        try:
            return ask_everything(table=opened.table("odd"))
        finally:
            close()
    answered = 0
    for question in questions():
        try:
            source = discreet.events(**table, **question)
        except (InvalidTypeError, InvalidValueError):
            continue
        discreet.top_k(source, 1, 1)
        answered += 1
    return answered


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", DUCKDB)
def test_no_value_of_duckdb_makes_a_release_fail(kind):
    refused = kind in ("UHUGEINT", "BIT", "INTERVAL", "INTEGER[]", "STRUCT(a INTEGER)")
    assert (ask_everything(table=fill_duckdb(kind)) == 0) == refused


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("kind", POSTGRES)
def test_no_value_of_postgres_makes_a_release_fail(kind, postgres):
    fill_postgres(postgres, kind, POSTGRES[kind])
    refused = kind in ("bit(3)", "jsonb", "interval", "int4[]", "point")
    assert (ask_everything(table=postgres, name="odd") == 0) == refused


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("mariadb")
@pytest.mark.parametrize("kind", MARIADB)
def test_no_value_of_mariadb_makes_a_release_fail(kind, mariadb):
    fill_mariadb(mariadb, kind, MARIADB[kind])
    refused = kind in ("SET('a','7')", "POINT")
    assert (ask_everything(table=mariadb, name="odd") == 0) == refused


@pytest.mark.some(2)
@pytest.mark.parametrize("declared", ["", "INTEGER", "REAL", "TEXT", "BLOB", "DATE", "BOOLEAN", "NUMERIC"])
def test_no_value_of_sqlite_makes_a_release_fail(declared, tmp_path):
    with sqlite3.connect(tmp_path / "odd.db") as connection:
        connection.execute(f"CREATE TABLE odd (n INTEGER, c {declared})")
        connection.executemany("INSERT INTO odd VALUES (?, ?)", [*enumerate(SQLITE)])
        connection.execute("INSERT INTO odd VALUES (99, CAST(x'ff61' AS TEXT))")
    connection.close()
    assert ask_everything(table=f"sqlite://{tmp_path / 'odd.db'}", name="odd") > 2


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", DATAFUSION)
def test_no_value_of_datafusion_makes_a_release_fail(kind):
    pytest.importorskip("datafusion", reason="DataFusion is not installed here")
    column = DATAFUSION[kind]
    events = pa.table({"n": pa.array(range(len(column)), pa.int64()), "c": column})
    refused = kind in ("list", "struct")
    assert (ask_everything(table=ibis.datafusion.connect().create_table("odd", events)) == 0) == refused


@pytest.mark.long
@pytest.mark.xdist_group("clickhouse")
@pytest.mark.parametrize("is_nullable", [False, True])
@pytest.mark.parametrize("kind", CLICKHOUSE)
def test_no_value_of_clickhouse_makes_a_release_fail(kind, is_nullable):
    if is_nullable and kind[:5] in ("Array", "Tuple", "LowCa"):
        pytest.skip("ClickHouse has no such type")
    values = [*CLICKHOUSE[kind], *["NULL"] * is_nullable]
    table = fill_clickhouse(pa.table({"n": pa.array([], pa.int64()), "c": pa.array([], pa.string())}), c="String")
    connection, name = table.get_backend().con, f"odd_{table.get_name()}"
    declared = f"Nullable({kind})" if is_nullable else kind
    connection.command(f"CREATE TABLE {name} (n Int32, c {declared}) ENGINE = Memory")
    for n, value in enumerate(values):
        connection.command(f"INSERT INTO {name} SELECT {n}, {value}")  # our own values
    refused = kind in ("Array(Int8)", "Tuple(a Int8)") or (is_nullable and kind.startswith("IPv"))
    assert (ask_everything(table=table.get_backend().table(name)) == 0) == refused


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("kind", SPARK)
def test_no_value_of_spark_makes_a_release_fail(kind, spark):
    frame = spark.createDataFrame([*enumerate(SPARK[kind])], "n int, text string")
    assert ask_everything(table=as_table(frame.selectExpr("n", f"CAST(text AS {kind}) AS c"))) > 2


STEPS = [
    *(("duckdb", *row) for row in (
        ("DOUBLE", "5e-324", 0), ("DOUBLE", "1.7976931348623157e308", 4), ("DOUBLE", "nan", 0), ("DOUBLE", "-inf", -4),
        ("DOUBLE", "0.9999", 0), ("DOUBLE", "1", 2), ("DOUBLE", "-1", 0), ("DOUBLE", "-1.0001", -2),
        ("HUGEINT", str(2**127 - 1), 4), ("DECIMAL(38,37)", "3." + "9" * 37, 4), ("DECIMAL(38,0)", "-" + "9" * 38, -4),
    )),
    *(("postgres", *row) for row in (
        ("float8", "5e-324", 0), ("float8", "-5e-324", 0), ("float8", "1.7976931348623157e308", 4), ("float8", "1", 2),
        ("float8", "NaN", 0), ("float8", "-Infinity", -4), ("float4", "1e-45", 0), ("numeric", "1e131071", 4),
        ("numeric", "-1e131071", -4), ("numeric", "1e-16383", 0), ("numeric", "NaN", 0), ("numeric", "-Infinity", -4),
        ("money", "92233720368547758.07", 4), ("money", "1.50", 2),
    )),
]  # fmt: skip


@pytest.mark.some(4)
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(("engine", "kind", "given", "expected"), STEPS)
def test_a_number_is_the_same_steps_on_every_engine(engine, kind, given, expected, request, monkeypatch):
    if engine == "duckdb":
        monkeypatch.setitem(DUCKDB, kind, [given])
        table = {"table": fill_duckdb(kind)}
    else:
        table = {"table": request.getfixturevalue("postgres"), "name": "odd"}
        fill_postgres(table["table"], kind, [given])
    summed = {"value": "c", "clip": (-4, 4), "resolution": 2}
    source = discreet.events(**table, user="n", item="n", domain=[0], **summed)
    assert source.tally().exact(0) == expected
    source.close()


@pytest.mark.parametrize("resolution", ["1e-251", "1e251", "1e-400", "1e400"])
def test_a_resolution_is_a_double(resolution):
    with pytest.raises(discreet.Error, match=r"^resolution must be from 1e-250 to 1e250, not "):
        discreet.events({}, user="n", item="n", domain=[0], value="c", clip=(0, "1e400"), resolution=resolution)


ENCODED = {"WIN1252": ["\\201", "\\351t\\351"], "SQL_ASCII": ["\\201", "\\377\\376"], "EUC_JP": ["\\244\\242"]}
"""Bytes, in octal, that are no text in UTF-8, or have no meaning at all, by the encoding of the database."""


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    "encoding", ["WIN1252", *(pytest.param(each, marks=pytest.mark.long) for each in [*ENCODED][1:])]
)
def test_text_of_a_database_in_another_encoding_makes_no_release_fail(encoding, postgres):
    psycopg = pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed here")
    name, plain = f"in_{encoding.lower()}", postgres.replace("postgres://", "postgresql://", 1)
    with psycopg.connect(plain, autocommit=True) as connection:
        if not connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).fetchall():
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    url = postgres.replace("/contract", f"/{name}")
    with psycopg.connect(url.replace("postgres://", "postgresql://", 1)) as connection:
        connection.execute(f"SET client_encoding TO '{encoding}'")
        connection.execute("DROP TABLE IF EXISTS odd")
        connection.execute("CREATE TABLE odd (n int, c text)")
        for text in [*ENCODED[encoding], "tea", "7"]:
            connection.execute(f"INSERT INTO odd SELECT g, E'{text}' FROM generate_series(1, 40) g")  # noqa: S608
    assert ask_everything(table=url, name="odd") > 10
    own = {"table": url, "name": "odd", "user": "n", "item": "c"}
    source = discreet.events(**own, domain=["tea", "x"], where="c LIKE 't%' AND c < 'u'")
    tally = source.tally()
    assert [int(tally.exact(rank)) for rank in range(2)] == [40, 0]
    assert source.items(np.arange(2)) == ["tea", "x"]
    source.close()
    found = discreet.discovered("1e-6", 1, kind="string", epsilon=500)
    assert set(discreet.top_k(discreet.events(**own, domain=found), 5, 1000).items) <= {"tea", "7"}
