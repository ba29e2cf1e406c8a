"""What the tests of the command line share: a few arguments, files to read, and runs in a process of their own."""

import re
import subprocess
import sys
from pathlib import Path

SCORES = {"dune": 912345, "alien": 877, "heat": 410, "ran": 3}
SELECT = ("select", "scores.csv", "-k", "2", "--epsilon", "1")
EVENTS = ("--user", "user_id", "--item", "movie_id")
MOVIES = ("--domain", "movies.csv:movie_id")
FROM_EVENTS = ("select", "ratings.parquet", *EVENTS, *MOVIES, "-k", "1", "--epsilon", "1000")
PROGRAM = (sys.executable, "-m", "discreet")


def write_table(name, header, scores, delimiter=","):
    rows = [header, *((item, str(score)) for item, score in scores.items())]
    Path(name).write_text("".join(delimiter.join(row) + "\n" for row in rows))


def process(*args, program=PROGRAM, **options):
    """Runs the command line in a process of its own."""
    return subprocess.run([*program, *args], capture_output=True, text=True, timeout=60, **options)


def without_notes(err):
    """Standard error without the notes that say how columns without a declared type are read."""
    return re.sub(r"discreet: (item|by|during|value) reads .+, because its type is not declared.*\n", "", err)
