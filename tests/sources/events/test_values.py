"""Values that are no numbers, or beyond them: what they add to a sum is the same on every engine.

Spark's floats have their place in the contract of all engines.
"""

import sqlite3
from decimal import Decimal

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet
from engines import LOCAL, on

POSTGRES = pytest.param("postgres", marks=[pytest.mark.xdist_group("postgres"), pytest.mark.slow])
FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "two": 2.0, "none": None}
SUMS = {"nan": 0, "inf": 5, "-inf": -3, "two": 2, "none": 0}
"""NaN and what is missing add nothing, infinities as much as the clip lets any number add."""


def sums(given, domain=tuple(SUMS)):
    """The sum of each item, clipped to -3 and 5 for each user."""
    source = discreet.events(**given, user="who", item="what", domain=domain, value="amount", clip=(-3, 5))
    tally, items = source.tally(), source.items(np.arange(source.d))
    source.close()
    return {item: tally.exact(rank) for rank, item in enumerate(items)}


@pytest.mark.some(2)
@pytest.mark.parametrize("engine", [*LOCAL, POSTGRES])
def test_what_is_no_number_adds_nothing_and_infinity_the_bound(engine, tmp_path, request):
    amounts = pa.array(list(FLOATS.values()), pa.float64(), from_pandas=False)
    events = pa.table({"who": range(len(FLOATS)), "what": list(FLOATS), "amount": amounts})
    assert sums(on(engine, events, tmp_path, request)) == SUMS


@pytest.mark.some(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "Float64", "double[pyarrow]", "object"])
def test_every_float_of_pandas_too(dtype):
    values = [np.nan if value is None else value for value in FLOATS.values()]
    frame = pd.DataFrame({"who": range(len(FLOATS)), "what": list(FLOATS), "amount": pd.Series(values).astype(dtype)})
    assert sums({"table": frame}) == SUMS


def test_a_decimal_of_python_that_is_no_number():
    amounts = pd.Series([Decimal("NaN"), Decimal(2)], dtype=object)
    assert sums({"table": pd.DataFrame({"who": [1, 2], "what": ["nan", "two"], "amount": amounts})})["two"] == 2


NUMERIC = {
    "nan": ("NaN", 0), "inf": ("Infinity", 5), "-inf": ("-Infinity", -3), "two": ("2", 2), "large": ("1e400", 5),
    "-large": ("-1e400", -3), "small": ("1e-400", 0), "-small": ("-1e-400", 0), "half": ("0.5", 1), "none": (None, 0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("kind", ["numeric", "numeric(10, 2)", "real", "double precision"])
def test_the_numbers_of_postgres(kind, postgres):
    """Its NaN is above all numbers, in decimals too, and its decimals go beyond floats on both sides."""
    kept = {item: both for item, both in NUMERIC.items() if kind == "numeric" or item in ("nan", "two", "half", "none")}
    backend = ibis.connect(postgres)
    with backend.con.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS amounts; CREATE TABLE amounts (who int, what text, amount {kind})")
        rows = [(who, item, text) for who, (item, (text, _)) in enumerate(kept.items())]
        cursor.executemany("INSERT INTO amounts VALUES (%s, %s, %s)", rows)
    backend.con.commit()
    backend.disconnect()
    assert sums({"table": postgres, "name": "amounts"}, list(kept)) == {item: sum_ for item, (_, sum_) in kept.items()}


def test_what_sqlite_keeps_in_a_column_of_numbers(tmp_path):
    rows = [(1, "nan", "NaN"), (2, "inf", 9e999), (3, "-inf", -9e999), (4, "two", 2), (5, "none", None)]
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute("CREATE TABLE events (who INTEGER, what TEXT, amount NUMERIC)")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
    connection.close()
    assert sums({"table": f"sqlite://{tmp_path / 'e.db'}", "name": "events"}) == SUMS
