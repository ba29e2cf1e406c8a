"""Lists by group against the query that anybody would ask without privacy, and many small groups of arrays."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from scores import zipf
from suite import Row, Rows, Run, power
from tables import ITEMS, USERS, draw_items, many, peak, print_peak
from timing import medians

GROUPS = 200
AT_HOME = 0.9
"""The share of a user's events that are in one group."""


def rows(run: Run) -> Rows:
    """Parquet on DuckDB for both kinds of users: time and memory; and scores in memory."""
    repeats = 5 if run.full else 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        make_events(path, run.size(2 * 10**7))
        for each_user in ("many", "one"):
            yield from parquet(path, each_user, repeats)
    yield from arrays(run.size(10**4), repeats)


def group_names() -> list[str]:
    """Return the public list."""
    return [f"group {i:03}" for i in range(GROUPS)]


def make_events(path: Path, rows: int) -> None:
    """Events of a long tail of items, most of each user's in one group."""
    rng = np.random.default_rng(3)
    user, home = rng.integers(0, USERS, rows), rng.integers(0, GROUPS, USERS)
    group = np.where(rng.random(rows) < AT_HOME, home[user], rng.integers(0, GROUPS, rows))
    named = pa.DictionaryArray.from_arrays(group, group_names()).cast(pa.string())
    pq.write_table(pa.table({"user_id": user, "item_id": draw_items(rng, rows), "country": named}), path)


def bare(path: Path, each_user: str) -> None:
    """Ask DuckDB without privacy: with "one", after finding the group of each user."""
    events = f"read_parquet('{path}')"
    counted = f"SELECT user_id, country, count(*) AS n FROM {events} GROUP BY ALL"  # noqa: S608
    home = f"SELECT user_id, arg_max(country, n) AS country FROM ({counted}) GROUP BY user_id"  # noqa: S608
    joined = "" if each_user == "many" else f"JOIN ({home}) USING (user_id, country)"
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT country, item_id, count(DISTINCT user_id) FROM {events} {joined} GROUP BY ALL"  # noqa: S608
        ).to_arrow_table()


def release(path: Path, each_user: str) -> None:
    """Return the same with privacy, and only the released items."""
    source = discreet.events(
        str(path), user="user_id", item="item_id", domain=list(range(ITEMS)),
        by="country", groups=group_names(), each_user=each_user,
    )  # fmt: skip
    discreet.top_k(source, k=10, epsilon=1)


TASKS = {"bare": bare, "release": release}


def parquet(path: Path, each_user: str, repeats: int) -> Rows:
    """Events in Parquet, on DuckDB: time and memory."""
    times = medians({name: lambda task=task: task(path, each_user) for name, task in TASKS.items()}, repeats)
    what = f"{many(pq.read_metadata(path).num_rows)} events, {GROUPS} groups, each user in {each_user}"
    yield Row(what, times["release"] / times["bare"], "bare queries", 1.4, one=times["bare"])
    peaks = [[peak(__file__, name, path, each_user) for name in TASKS] for _ in range(repeats - 2)]
    above = statistics.median(private - plain for plain, private in peaks)
    yield Row(f"{what}, peak memory above that of the bare query", above, "MB", 300)


def arrays(groups: int, repeats: int) -> Rows:
    """Many groups of counts that begin with about 10,000 users, in one group each or in many, with their source."""
    rng = np.random.default_rng(1)
    scores = {group: rng.poisson(zipf(1000) // 10**5) for group in range(groups)}
    for each_user, epsilon in (("one", 1), ("many", groups)):

        def release(each_user: str = each_user, epsilon: int = epsilon) -> None:
            discreet.top_k(discreet.grouped(scores, each_user=each_user), 10, epsilon)

        each = 1000 * medians({"release": release}, repeats)["release"] / groups
        yield Row(f"{power(groups)} groups of 1,000 scores, k = 10, each user in {each_user}", each, "ms a group", 0.1)


if __name__ == "__main__":
    TASKS[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
    print_peak()
