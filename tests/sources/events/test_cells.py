"""A cell is read alike by every engine, exactly or not at all, and no cell makes a query fail."""

import re
import sqlite3
import warnings
from datetime import date
from decimal import Decimal

import duckdb
import ibis
import pyarrow as pa
import pytest

import discreet
from discreet.sources.events.cells import is_untyped, read_cell
from discreet.sources.events.dialects.base import dialect_of
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.dialects.sqlite import declare_types
from discreet.sources.events.readers import convert_to_cell
from engines import LONG_ON_SERVERS, ON_CLICKHOUSE, fill_clickhouse

TEXTS = [
    "7", "07", "+7", "-7", "7.", "7.0", "7.000", "7.5", " 7", "7 ", "7\n", "\t7", "0x1F", "1_000", "1e3", "", "-", ".0",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9" * 40, "9" * 41,
    "0" * 39 + "7", "0" * 40 + "7", "7." + "0" * 20, "7." + "0" * 21, "\u0667", "seven", "NaN", "inf",
    "2024-01-31", "2024-02-29", "2023-02-29", "2024-02-30", "1900-02-29", "2000-02-29", "0000-01-01", "0001-01-01",
    "9999-12-31", "2024-13-01", "2024-00-10", "2024-01-00", "2024-1-5", "24-01-31", "2024-01-31\n", "31/01/2024",
    "2024-01-31 10:00:00", "true", "false", "True", "FALSE", "t", "yes", "1", "0", "TRUE ", "Straße", None,
]  # fmt: skip
FLOATS = [0.0, -0.0, 7.0, 7.5, -7.0, 2.0**53, 2.0**53 - 1, -(2.0**53), 1e300, -1e300, 5e-324, float("inf"), None]
DECIMALS = [Decimal("7.00"), Decimal("7.50"), Decimal("-7.00"), Decimal("9223372036854775807.00"),
            Decimal("9223372036854775808.00"), Decimal("1" + "0" * 30), Decimal("0.01"), None]  # fmt: skip
INTEGERS = [0, 7, -7, 2**63 - 1, -(2**63), None]


def integer_in_text(text):
    found = re.fullmatch(r"([+-]?[0-9]{1,40})(\.0{0,20})?", text or "")
    number = int(found.group(1)) if found else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def date_in_text(text):
    if text is None or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def boolean_in_text(text):
    return {"true": True, "false": False}.get(text.lower()) if text in ("true", "false", "True", "FALSE") else None


def whole(number):
    limit = 2**53 - 1 if isinstance(number, float) else 2**63 - 1
    if number is None or number in (float("inf"),) or not -limit <= number <= limit or number != int(number):
        return None
    return int(number)


def digits(number):
    return None if whole(number) is None else str(whole(number))


READINGS = {
    "texts": (TEXTS, {"integer": integer_in_text, "date": date_in_text, "boolean": boolean_in_text}),
    "floats": (FLOATS, {"integer": whole, "string": digits}),
    "decimals": (DECIMALS, {"integer": whole, "string": digits}),
    "integers": (INTEGERS, {"string": lambda number: None if number is None else str(number)}),
}
ARROW = {"texts": pa.string(), "floats": pa.float64(), "decimals": pa.decimal128(38, 2), "integers": pa.int64()}


def duckdb_cells(rows, request):
    return ibis.duckdb.connect().create_table("cells", rows), None


def datafusion_cells(rows, request):
    return ibis.datafusion.connect().create_table("cells", rows), None


def clickhouse_cells(rows, request):
    table = fill_clickhouse(rows)
    return dialect_of(table).adapt_table(table), None


def postgres_cells(rows, request):
    connection = ibis.connect(request.getfixturevalue("postgres"))
    if "cells" in connection.list_tables():
        connection.drop_table("cells")
    return connection.create_table("cells", rows), connection.disconnect


def spark_cells(rows, request):
    with warnings.catch_warnings(action="ignore"):  # about distutils, in pyspark
        connection = ibis.pyspark.connect(request.getfixturevalue("spark"))
        session = connection._session
        session.createDataFrame(
            [tuple(row.values()) for row in rows.to_pylist()], _schema(rows)
        ).createOrReplaceTempView("cells")
    return connection.table("cells"), lambda: connection.drop_view("cells")


def _schema(rows):
    kinds = {"string": "string", "double": "double", "int64": "bigint", "decimal128(38, 2)": "decimal(38, 2)"}
    return ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in rows.schema)


def sqlite_cells(rows, request):
    """A column without a declared type, so that each cell has its own."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE cells (id INTEGER, cell)")
    cells = [(row["id"], _sqlite(row["cell"])) for row in rows.to_pylist()]
    connection.executemany("INSERT INTO cells VALUES (?, ?)", cells)
    backend = ibis.sqlite.from_connection(connection)
    return declare_types(backend, "cells")[0], backend.disconnect


def _sqlite(cell):
    return float(cell) if isinstance(cell, Decimal) else cell


def fetched(table):
    """The rows of a table by the engine's own driver, because ibis makes floats of whole numbers beside a NULL."""
    backend = table.get_backend()
    if backend.name == "sqlite":
        return backend.con.execute(str(backend.compile(table))).fetchall()
    if backend.name == "pyspark":
        return [tuple(row) for row in backend._session.sql(str(backend.compile(table))).collect()]
    return [tuple(row.values()) for row in table.to_pyarrow().to_pylist()]


def spelled(kind, value):
    """What was read, in the types of Python: SQLite keeps dates as text and booleans as numbers."""
    if value is None:
        return None
    if kind == "date" and isinstance(value, str):
        return date.fromisoformat(value)
    return {"string": str, "boolean": bool}.get(kind, lambda same: same)(value)


SERVERS = {"postgres": postgres_cells, "spark": spark_cells}
MARKS = {each.values[0]: each.marks for each in LONG_ON_SERVERS} | {"clickhouse": ON_CLICKHOUSE}
ENGINES = [
    pytest.param(make, id=name, marks=MARKS.get(name, []))
    for name, make in {
        "duckdb": duckdb_cells,
        "sqlite": sqlite_cells,
        "datafusion": datafusion_cells,
        "clickhouse": clickhouse_cells,
        **SERVERS,
    }.items()
]


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("make", ENGINES)
def test_every_engine_reads_a_cell_alike(make, name, request):
    cells, readings = READINGS[name]
    rows = pa.table({"id": range(len(cells)), "cell": pa.array(cells, ARROW[name])})
    if make is sqlite_cells and name == "decimals":
        pytest.skip("SQLite has no decimals")
    table, close = make(rows, request)
    dialect = dialect_of(table)
    columns = {kind: read_cell(dialect, table.cell, kind) for kind in readings}
    found = fetched(table.select("id", **columns).order_by("id"))
    for place, (kind, expected) in enumerate(readings.items(), start=1):
        read = [spelled(kind, row[place]) for row in found]
        assert dict(zip(cells, read, strict=True)) == {cell: expected(cell) for cell in cells}
    if close is not None:
        close()


@pytest.mark.parametrize("name", READINGS)
def test_spelled_cells_read_as_those_of_one_type_do(name):
    """A column of mixed cells, of which it is not known what else is in it."""
    cells, readings = READINGS[name]
    rows = pa.table({"id": range(len(cells)), "cell": pa.array(cells, ARROW[name])})
    table = ibis.duckdb.connect().create_table("cells", rows)
    mixed = table.mutate(cell=convert_to_cell(table.cell))
    assert is_untyped(mixed.cell.type())
    for kind in {*readings, "float", "string"}:
        by_type = table.select("id", found=read_cell(DUCKDB, table.cell, kind)).order_by("id")
        by_cell = mixed.select("id", found=read_cell(DUCKDB, mixed.cell, kind)).order_by("id")
        assert _plain(by_type) == _plain(by_cell)


def _plain(table):
    """The rows, in which NaN equals itself and no zero is negative."""
    return [repr(row["found"] or None) for row in table.to_pyarrow().to_pylist()]


def test_numbers_are_items_however_a_column_is_declared(tmp_path):
    """Doubles, decimals and text in a declared column are the whole numbers of the domain where they are whole."""
    path = tmp_path / "e.ddb"
    with duckdb.connect(str(path)) as connection:
        for declared in ("DOUBLE", "DECIMAL(10, 2)", "VARCHAR", "UBIGINT", "FLOAT", "HUGEINT"):
            connection.execute(f"CREATE OR REPLACE TABLE ev_{declared[:3]} (who INTEGER, what {declared})")
            rows = "(1, 7), (2, 7), (3, 8), (4, NULL)"
            connection.execute(f"INSERT INTO ev_{declared[:3]} VALUES {rows}")  # noqa: S608  # names of types alone
    for name in ("ev_DOU", "ev_DEC", "ev_VAR", "ev_UBI", "ev_FLO", "ev_HUG"):
        for domain in ([7, 8, 9], ["7", "8", "9"], discreet.integers(7, 9)):
            source = discreet.events(f"duckdb://{path}", name=name, user="who", item="what", domain=domain)
            tally = source.tally()
            assert [tally.exact(rank) for rank in range(3)] == [2, 1, 0]
            source.close()
