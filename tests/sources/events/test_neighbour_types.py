"""Rows of one more user that change the type of a column, the name of one, or the files of a pattern."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, SPELLINGS, read_cell
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.readers import convert_to_cell

N = 5
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
ZONED = [pd.Timestamp("2024-01-31 12:00:00.123456789", tz="Europe/Berlin")] * N
LONG = [2**60 + i for i in range(N)]
SPANS = [timedelta(i + 1) for i in range(N)]


def scores(table, domain, **question):
    """The scores of a domain, or what is said in place of them."""
    try:
        source = discreet.events(table, user="who", item="what", domain=domain, **question)
    except discreet.Error as error:
        return str(error)
    tally, items = source.tally(), source.items(np.arange(source.d))
    source.close()
    return {item: tally.exact(rank) for rank, item in enumerate(items)}


def assert_neighbours(one, other):
    if isinstance(one, str):
        assert one == other
        assert "the query failed" not in one
    else:
        assert one.keys() == other.keys()
        assert all(0 <= other[item] - one[item] <= 1 for item in one), (one, other)


def frame(**columns):
    return pd.DataFrame({"who": list(range(len(next(iter(columns.values()))))), "what": 1} | columns)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("cells", "odd", "where"),
    [
        (ZONED, "x", "a >= TIMESTAMPTZ '2024-01-01 00:00:00+00:00'"),
        (ZONED, "x", "a LIKE '2024%'"),
        ([pd.Timestamp("1850-01-01", tz="Europe/Berlin")] * N, "x", "a > TIMESTAMPTZ '1800-01-01 00:00:00+00:00'"),
        (LONG, None, "a <> '7'"),
        (LONG, None, "a + 0 > 5"),
        (LONG, "x", "a <> what"),
        ([5] * N, None, "a < 1e400"),
        ([5] * N, None, "a < 5.00000000000000000001"),
        ([5] * N, None, "a < price"),
        ([5] * N, "x", "coalesce(a, 1) * 2 > 1"),
        (SPANS, "x", "a IS NULL"),
    ],
)
def test_a_cell_in_pandas_changes_no_condition_on_others(cells, odd, where):
    price = [Decimal("7.5")] * (N + 1)
    declared = pd.array(price, dtype=pd.ArrowDtype(pa.decimal128(10, 2)))
    old = frame(a=cells).assign(price=declared[:N])
    new = frame(a=[*cells, odd]).assign(price=declared)
    assert_neighbours(scores(old, [1, 2], where=where), scores(new, [1, 2], where=where))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "users",
    [SPANS, list(pd.period_range("2020-01", periods=N, freq="M")), list(pd.interval_range(0, N)), ZONED[:1], LONG],
    ids=["durations", "periods", "intervals", "zones", "long"],
)
def test_a_user_of_text_in_pandas_takes_nobody_away(users):
    old = scores(pd.DataFrame({"who": users, "what": 1}), [1, 2])
    assert old == {1: len(set(users)), 2: 0}
    assert_neighbours(old, scores(pd.DataFrame({"who": [*users, "zed"], "what": 1}), [1, 2]))


def test_items_of_strange_types_in_pandas_are_what_their_cells_are():
    half = np.ones(N, np.float16)
    assert_neighbours(scores(frame(what=half), [1, 2]), scores(frame(what=[*half, "x"]), [1, 2]))
    zoned = [pd.Timestamp(NOON)] * N
    domain = ["2024-01-31 12:00:00+00", "2024-01-31 12:00:00+00:00"]
    assert_neighbours(scores(frame(what=zoned), domain), scores(frame(what=[*zoned, "x"]), domain))
    text = pd.array(["1"] * N + ["\ud800"], dtype=pd.StringDtype("python"))
    assert_neighbours(scores(frame(what=text[:N]), ["1"]), scores(frame(what=text), ["1"]))
    assert scores(frame(what=[1] * N + [10**5000, -(10**5000)]), [1]) == {1: N}


def write(folder, files):
    for name, columns in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        pa.parquet.write_table(pa.table(columns), folder / name)


def parquet_neighbours(folder, base, extra, question, domain=(1, 2)):
    """The scores of one Parquet file in a folder, and with one more file before it."""
    columns = {"who": list(range(N)), "what": [1] * N} | base
    write(folder, {"m.parquet": columns})
    old = scores(str(folder / "*.parquet"), list(domain), **question)
    write(folder, {"a.parquet": {"who": [99], "what": [1]} | extra})
    return old, scores(str(folder / "*.parquet"), list(domain), **question)


AWARE = pa.array([NOON] * N, pa.timestamp("us", "UTC"))
NAIVE = pa.array([NOON.replace(tzinfo=None)] * N, pa.timestamp("ns"))
EXTREMES = pa.array([2**63 - 1, -(2**63) + 1, 2**63 - 2], pa.timestamp("us"))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("base", "extra", "question"),
    [
        ({"a": AWARE}, {"a": pa.nulls(1)}, {"where": "a >= TIMESTAMPTZ '2024-01-01 00:00:00+00:00'"}),
        ({"a": AWARE}, {"a": ["x"]}, {"where": "a LIKE '2024-01-31 12%'"}),
        ({"a": NAIVE}, {"a": ["x"]}, {"where": "a >= TIMESTAMP '1600-01-01 00:00:00'"}),
        (
            {"a": pa.array([1_706_695_200_000_000_001] * N, pa.timestamp("ns"))},
            {"a": ["x"]},
            {"where": "a > TIMESTAMP '2024-01-31 10:00:00'"},
        ),
        ({"a": pa.array([5_000_000] * N, pa.date32())}, {"a": ["x"]}, {"where": "a > DATE '2024-01-31'"}),
        (
            {"a": NAIVE.cast(pa.timestamp("us"))},
            {"who": [99] * 3, "what": [1] * 3, "a": EXTREMES},
            {"where": "a > DATE '2024-01-31' OR a LIKE '2024%'"},
        ),
        ({"a": [b"%d" % i for i in range(N)]}, {"a": ["x"]}, {"where": "a IS NULL"}),
        ({"a": [5] * N}, {"a": [5.5]}, {"where": "a < 1e400"}),
        ({"a": [5] * N}, {"A": ["5"]}, {"where": "a = 5"}),
        ({}, {"what": pa.array([{"text": [1], "number": "x"}])}, {}),
    ],
)
def test_the_types_of_one_more_file_change_no_condition_on_others(base, extra, question, tmp_path):
    assert_neighbours(*parquet_neighbours(tmp_path, base, extra, question))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "users",
    [
        pa.array([bytes([i] * 16) for i in range(N)]),
        pa.array([Decimal(2**70 + i) for i in range(N)], pa.decimal128(38, 0)),
        pa.array([NOON + timedelta(i) for i in range(N)], pa.timestamp("us", "UTC")),
        pa.array([time(i) for i in range(N)]),
        pa.array([[i] for i in range(N)]),
        pa.array(LONG),
    ],
    ids=lambda users: str(users.type),
)
def test_users_of_one_type_are_there_beside_those_of_another(users, tmp_path):
    for who in (pa.nulls(1), ["zed"]):
        old, new = parquet_neighbours(tmp_path, {"who": users}, {"who": who}, {})
        assert old == {1: N, 2: 0}
        assert_neighbours(old, new)
        (tmp_path / "a.parquet").unlink()


def test_one_user_is_one_in_integers_and_in_floats(tmp_path):
    old, new = parquet_neighbours(tmp_path, {"who": [2**60] * N}, {"who": [2.0**60]}, {})
    assert old == new == {1: 1, 2: 0}


def test_a_column_in_other_capitals_is_the_same_one(tmp_path):
    assert parquet_neighbours(tmp_path, {}, {"what": pa.nulls(1), "x": [1]}, {})[1] == {1: N, 2: 0}
    write(tmp_path, {"b.parquet": {"Who": [98], "WHAT": ["1"]}})
    assert scores(str(tmp_path / "*.parquet"), [1, 2]) == {1: N + 1, 2: 0}
    for name, header in (("one", "who,what"), ("two", "What,WHO,more")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,1{',' * header.count('more')}\n", encoding="utf-8")
    assert scores(str(tmp_path / "*.csv"), [1, 2]) == {1: 1, 2: 0}
    (tmp_path / "one.csv").unlink()
    assert scores(str(tmp_path / "*.csv"), [1, 2]) == {1: 1, 2: 0}


@pytest.mark.some(2)
@pytest.mark.parametrize("part", ["*", "?", "[01]", "%FF", "\n", "a=b", "\\"])
def test_a_folder_with_any_name_changes_nothing_else(part, tmp_path):
    question = {"value": "amount", "clip": (0, 9)}
    write(tmp_path, {f"what={i}/0.parquet": {"who": [1, 2], "amount": [1, 1]} for i in range(2)})
    old = scores(str(tmp_path / "*" / "*.parquet"), ["0", "1"], **question)
    write(tmp_path, {f"what={part}/0.parquet": {"who": [9], "amount": [1]}})
    assert scores(str(tmp_path / "*" / "*.parquet"), ["0", "1"], **question) == old == {"0": 2, "1": 2}


@pytest.mark.some(2)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("name", ["*", "?", "[m]"])
def test_a_text_file_with_any_name_is_read_alone(ending, name, tmp_path):
    for who, file in enumerate(["m", name]):
        content = f"who,what,amount\n{who},1,1\n" if ending == "csv" else f'{{"who":{who},"what":1,"amount":1}}\n'
        (tmp_path / f"{file}.{ending}").write_text(content, encoding="utf-8")
    assert scores(str(tmp_path / f"*.{ending}"), [1], value="amount", clip=(0, 9)) == {1: 2}


COLUMNS = {
    "BIGINT": ["0", "-7", "9007199254740993", "9223372036854775807"],
    "UBIGINT": ["18446744073709551615"],
    "HUGEINT": ["170141183460469231731687303715884105727", "7"],
    "DOUBLE": ["7.0", "-0.0", "2.5", "1e300", "9007199254740992", "'NaN'", "'Infinity'"],
    "FLOAT": ["0.1", "16777216"],
    "DECIMAL(18, 3)": ["7.000", "7.125", "999999999999999.999"],
    "BOOLEAN": ["true", "false"],
    "DATE": ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'10000-01-01'", "'0044-03-15 (BC)'", "'infinity'"],
    "TIMESTAMP": ["'2024-01-31'", "'2024-01-31 10:00:00.5'", "'10000-01-01'", "'infinity'", "'290309-12-22 (BC)'"],
    "TIMESTAMP_NS": ["'2024-01-31 10:00:00.123456789'", "'1700-01-01'"],
    "TIMESTAMP_S": ["'2024-01-31 10:00:00'", "'9999-12-31 23:59:59'"],
    "TIMESTAMPTZ": ["'2024-01-31 10:00:00+00'", "'10000-01-01 00:00:00+00'", "'infinity'"],
    "VARCHAR": ["'07'", "'2024-01-31'", "'true'", "''"],
    "UUID": ["'00000000-0000-0000-0000-000000000001'"],
    "TIME": ["'10:00:00'"],
    "BLOB": ["'a'"],
}


@pytest.mark.some(2)
@pytest.mark.parametrize("dtype", COLUMNS)
def test_a_spelled_cell_reads_as_the_cell_itself(dtype):
    """In every kind, for every type: whether files agree in a type must not matter."""
    from discreet.sources.events.dialects.duckdb import connect_in_memory

    connection, close = connect_in_memory()
    values = ", ".join(f"(CAST({cell} AS {dtype}))" for cell in COLUMNS[dtype])
    connection.con.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {values}, (NULL)) AS v(a)")  # noqa: S608  # from above
    table = connection.table("t")
    for kind in (*SPELLINGS, "string", "boolean", DAY_NUMBER, SECOND_NUMBER):
        plain, spelled = (
            read_cell(DUCKDB, each, kind).cast("string") for each in (table["a"], convert_to_cell(table["a"]))
        )
        one, other = (table.select(a=each).to_pyarrow()["a"].to_pylist() for each in (plain, spelled))
        assert one == other, kind
    close()


def test_dates_of_a_domain_are_read_from_timestamps_and_text_alike(tmp_path):
    days = pa.array([datetime(2024, 2, 29)] * N, pa.timestamp("ns"))
    old, new = parquet_neighbours(tmp_path, {"what": days}, {"what": ["n-a"]}, {}, [date(2024, 2, 29)])
    assert old == new == {date(2024, 2, 29): N}


def test_no_huge_whole_number_makes_a_query_fail(tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "e.ddb")) as connection:
        connection.execute("CREATE TABLE ev AS SELECT 1 AS who, unnest([1::HUGEINT, 10::HUGEINT ** 38 + 1]) AS what")
        connection.execute("ALTER TABLE ev ALTER what TYPE HUGEINT USING what::HUGEINT")
    for domain in ([1, 2], ["1", "2"]):
        assert list(scores(f"duckdb://{tmp_path / 'e.ddb'}", domain, name="ev").values()) == [1, 0]
