"""Two hundred seeded releases over all mechanisms, noises, sources and formats, with every parameter written out.

`python tests/golden/cases.py` records them in releases.jsonl; `tests/test_golden.py` compares. What changes one of them
changes how random bits become a release, and says so.
"""

import itertools
import json
import random
import sqlite3
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import discreet
from discreet.release.release import to_json_text

RECORDED = Path(__file__).with_name("releases.jsonl")
NOISES = ["gumbel", "exponential", "laplace", "logistic", "half-logistic"]
MECHANISMS = [
    *(discreet.Canonical(gamma=gamma, noise=noise) for gamma in ("1/2", "3/4", "1") for noise in NOISES),
    discreet.Canonical(gamma="1/2", noise="gumbel", ceil=True),
    *(discreet.OneShot(noise=noise) for noise in NOISES),
    *(discreet.Peeling(noise=noise) for noise in NOISES),
    discreet.Joint(),
]
EVENTS = pa.table({
    "who": [f"u{i % 37}" for i in range(400)],
    "what": [i * i % 23 for i in range(400)],
    "stars": [i % 5 + 1 for i in range(400)],
    "amount": [i % 7 / 4 for i in range(400)],
})  # fmt: skip
DOMAIN = list(range(25))
COUNTS = discreet.Sensitivity(down=0, up=1)


def array_scores(d, shape):
    ranks = np.arange(1, d + 1)
    return {
        "zipf": (10_000 / ranks).astype(np.int64),
        "flat": np.full(d, 5),
        "steps": ranks // 3,
        "floats": np.sqrt(ranks) / 7,
    }[shape]


def cases(folder):
    """Name, scores and options of every release; the seed is the place in the list."""
    for mechanism, shape in itertools.product(MECHANISMS, ("zipf", "flat", "steps", "floats")):
        options = {"k": 5, "epsilon": "1/2", "mechanism": mechanism, "sensitivity": COUNTS}
        yield f"{mechanism!r} {shape}", array_scores(60, shape), options
    for mechanism in MECHANISMS:
        if not getattr(mechanism, "ceil", False):
            options = {"k": 7, "epsilon": 2, "mechanism": mechanism, "adjacency": "swap", "counts": "1/4"}
            yield f"{mechanism!r} swap with counts", array_scores(80, "zipf"), options
    for (d, k), shape in itertools.product(
        [(2000, 10), (40_000, 100), (300, 299)], ("zipf", "flat", "steps", "floats")
    ):
        for mechanism in (discreet.Canonical(gamma="1/2"), discreet.OneShot("exponential")):
            yield (
                f"{d} {k} {shape} {mechanism!r}",
                array_scores(d, shape),
                {"k": k, "epsilon": 1, "mechanism": mechanism, "sensitivity": COUNTS},
            )
    for name, scores in kinds_of_scores(folder):
        for k, epsilon in ((1, "0.1"), (3, 2)):
            options = {"k": k, "epsilon": epsilon, "mechanism": discreet.Canonical(gamma="1/2"), "sensitivity": COUNTS}
            yield f"{name} {k}", scores, options
    for name, table in kinds_of_events(folder):
        for options, how in questions():
            source = discreet.events(**table, user="who", item="what", domain=DOMAIN, **options)
            yield f"{name} {sorted(options)} {sorted(how)}", source, {"k": 4, "epsilon": 1, **how}


def kinds_of_scores(folder):
    import pandas as pd
    import polars as pl

    from discreet.sources.files import file_source

    counts = {"dune": 912, "alien": 877, "heat": 410, "psycho": 33, "gravity": 33, "tron": 0}
    yield "mapping", counts
    yield "fractions", {name: Fraction(score, 3) for name, score in counts.items()}
    yield "list", list(counts.values())
    yield "pandas", pd.Series(counts)
    yield "polars", pl.Series(list(counts.values()))
    yield "arrow", pa.array(list(counts.values()))
    (folder / "scores.csv").write_text("item,score\n" + "".join(f"{a},{b}\n" for a, b in counts.items()), "utf-8")
    (folder / "scores.json").write_text(json.dumps(counts), "utf-8")
    np.save(folder / "scores.npy", np.array(list(counts.values())))
    pa.parquet.write_table(pa.table({"item": list(counts), "score": list(counts.values())}), folder / "scores.parquet")
    for ending in ("csv", "json", "npy", "parquet"):
        yield ending, file_source(folder / f"scores.{ending}")


def kinds_of_events(folder):
    import polars as pl

    rows = EVENTS.to_pylist()
    pa.parquet.write_table(EVENTS, folder / "events.parquet")
    (folder / "events.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    lines = [",".join(EVENTS.column_names), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "events.csv").write_text("\n".join(lines) + "\n", "utf-8")
    with sqlite3.connect(folder / "events.db") as connection:
        connection.execute("CREATE TABLE events (who TEXT, what INTEGER, stars INTEGER, amount REAL)")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", [tuple(row.values()) for row in rows])
    connection.close()
    yield "events arrow", {"table": EVENTS}
    yield "events pandas", {"table": EVENTS.to_pandas()}
    yield "events polars", {"table": pl.from_arrow(EVENTS)}
    yield "events parquet", {"table": folder / "events.parquet"}
    yield "events csv", {"table": folder / "events.csv"}
    yield "events json", {"table": folder / "events.jsonl"}
    yield "events sqlite", {"table": f"sqlite://{folder / 'events.db'}", "name": "events"}


def questions():
    canonical, oneshot = discreet.Canonical(gamma="1/2"), discreet.OneShot("laplace")
    yield {}, {"mechanism": canonical}
    yield {"where": "stars >= 4"}, {"mechanism": oneshot, "counts": "1/2"}
    yield {"value": "amount", "clip": (0, 2), "resolution": "0.25"}, {"mechanism": canonical}
    yield {"max_items_per_user": 3, "adjacency": "swap"}, {"mechanism": oneshot, "counts": 1}


def _write(release):
    """What a ledger stores of a release."""
    return to_json_text(release.to_dict(), None)


def names():
    """Return the names of all cases, in the order in which they are recorded."""
    with tempfile.TemporaryDirectory() as name:
        return [case for case, _, _ in cases(Path(name))]


def releases(part=slice(None)):
    """Give the name of each case, or of some of them, and its release as JSON."""
    with tempfile.TemporaryDirectory() as name:
        for seed, (case, scores, options) in list(enumerate(cases(Path(name))))[part]:
            yield case, _write(discreet.top_k(scores, rng=random.Random(seed), **options))


if __name__ == "__main__":
    lines = [json.dumps([case, release]) for case, release in releases()]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(len(lines), "releases")
