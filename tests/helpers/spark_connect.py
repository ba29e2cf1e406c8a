"""Ask a server of Spark Connect for each feature, and print the answers as JSON; .venv-connect runs this.

Its package of pyspark is that of Spark 4, so that it cannot run in the environment of the other tests.
"""

import json
import sys
import tempfile

from pyspark.sql import SparkSession

import discreet
from engine_features import EVENTS, FEATURES

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
        answers["views"] = [each.name for each in session.catalog.listTables()]
        session.stop()
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
