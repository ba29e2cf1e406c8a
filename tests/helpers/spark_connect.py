"""Ask a server of Spark Connect for each feature, and of one user more, and print JSON; .venv-connect runs this.

Its package of pyspark is that of Spark 4, so that it cannot run in the environment of the other tests.
"""

import json
import sys
import tempfile

import pyarrow as pa
from pyspark.sql import SparkSession

import discreet
from engine_features import EVENTS, FEATURES
from lookalikes import ALIKE, AMOUNTS, ASKED, SCHEMA, check_move, count_by_look, make_others

BROKEN = """
SELECT * FROM VALUES ('u1', 'a'), ('u2', 'a'), ('u3', 'a'), ('u4', 'b') AS t(who, what)
UNION ALL SELECT 'z', CAST(unhex('61FF') AS STRING) UNION ALL SELECT CAST(unhex('FF') AS STRING), 'b'
"""
ON_BROKEN_TEXT = {
    "list": {},
    "constant": {"item": "concat(lower('A'), what)", "domain": ["aa", "ab"]},
    "user": {"user": "lower(who)"},
    "lower": {"item": "lower(what)"},
    "fold": {"item": "fold(what)"},
    "cast": {"item": "cast(what AS BIGINT)", "domain": [1, 2]},
    "strings": {"domain": discreet.strings("ab", 2)},
    "discovery": {"domain": discreet.discovered("1e-8", 1)},
}
"""What decodes text, on a table of which one item and one user are no UTF-8."""


COLLATIONS = ["UTF8_BINARY", "UTF8_LCASE_RTRIM"]
"""The usual one, and one that equates case and blanks at the end."""

OWN = [
    {"who": "ann", "what": what, "land": ALIKE[3 * place % len(ALIKE)], "amount": AMOUNTS[place % len(AMOUNTS)]}
    for place, what in enumerate(ALIKE)
]
"""The rows of one user more: every item, in groups of all spellings, with every odd amount."""


def find_moves(session, collation):
    """Return what one user more moves as no user may, by question, and the users that the collation tells apart."""
    columns = [f"{name} COLLATE {collation} AS {name}" for name in SCHEMA.names if name != "amount"]
    tables = {}
    for name, rows in (("before", make_others(ALIKE)), ("after", [*OWN, *make_others(ALIKE)])):
        session.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)).createOrReplaceTempView(name)
        tables[name] = {"table": session.table(name).selectExpr(*columns, "amount")}
    apart = tables["before"]["table"].select("who").distinct().count()
    found = {}
    for asked in ASKED:
        old, new = (count_by_look(table, ALIKE, asked) for table in tables.values())
        try:
            check_move(old, new, OWN, asked)
        except AssertionError as error:
            found[asked] = f"{error!r}: {old} and {new}"
    for name in tables:
        session.catalog.dropTempView(name)
    return found, apart


def ask(table, options):
    """Return the most frequent item, in the first group if there are groups, or the message of an error."""
    try:
        release = discreet.top_k(discreet.events(table, **options), k=1, epsilon=1000)
    except discreet.Error as error:
        return str(error)
    return next(iter((release[True] if "by" in options else release).items), None)


def main():
    shuffles = {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}
    with tempfile.TemporaryDirectory() as folder:
        session = (
            SparkSession.builder.remote("local[1]")
            .config(map={**shuffles, "spark.sql.warehouse.dir": f"{folder}/warehouse", "spark.local.dir": folder})
            .getOrCreate()
        )
        frame = session.createDataFrame(EVENTS.to_pandas())
        answers = {name: ask(frame, options) for name, (options, _) in FEATURES.items()}
        # A table of a file: functions that make such text are not among the steps that a release accepts.
        session.sql(BROKEN).write.parquet(f"{folder}/broken")
        table, plain = session.read.parquet(f"{folder}/broken"), {"user": "who", "item": "what", "domain": ["a", "b"]}
        answers["broken text"] = {name: ask(table, {**plain, **options}) for name, options in ON_BROKEN_TEXT.items()}
        answers["look-alikes"] = {each: find_moves(session, each) for each in COLLATIONS}
        answers["views"] = [each.name for each in session.catalog.listTables()]
        session.stop()
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
