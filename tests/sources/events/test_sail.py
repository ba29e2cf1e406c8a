"""Spark Connect without Java, by pysail in the environment of Spark 4."""

import pytest

from discreet.sources.events.dialects.pyspark import keeps_cached_tables
from engines import run_on_connect

pytestmark = pytest.mark.long

PROGRAM = """
import ibis, discreet
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
from discreet.sources.events.dialects.pyspark import keeps_cached_tables

server = SparkConnectServer()
server.start(background=True)
session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
frame = session.createDataFrame([("ann", "tea"), ("bob", "rum")], "who string, what string")
frame.createOrReplaceTempView("events")
print("keeps", keeps_cached_tables(session))
for table in (frame, ibis.pyspark.connect(session).table("events")):
    try:
        discreet.events(table, user="who", item="what", domain=["tea", "rum"])
        print("accepted")
    except discreet.Error as error:
        print(error)
print("views", [each.name for each in session.catalog.listTables()])
"""


def test_a_spark_that_computes_cached_tables_anew_is_refused(tmp_path):
    """It says that it persists a frame, in which storage, and computes the frame for each query."""
    program = tmp_path / "on_sail.py"
    program.write_text(PROGRAM)
    lines = run_on_connect(program).splitlines()
    assert lines[:1] == ["keeps False"]
    assert len(lines) == 4
    assert all(line.startswith("table must be on a Spark that keeps cached tables") for line in lines[1:3])
    assert lines[3] == "views ['events']"


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_itself_keeps_cached_tables(spark):
    assert keeps_cached_tables(spark)
    frame = spark.sql("SELECT current_timestamp() AS moment")
    assert frame.select("moment").collect() != frame.select("moment").collect()
