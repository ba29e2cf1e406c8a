"""Recorded texts of the features beside the plain list: groups, discovery, sketches, formats, commands, publishing.

`python tests/golden/features.py` records them in features.jsonl; `tests/test_golden.py` compares. Every parameter is
written out, and a case draws from a generator that its own name seeds, so that a new case changes no other. The cases
use public names and the command line alone. Commands that draw do so with an epsilon that leaves no noise.
"""

import contextlib
import io
import itertools
import json
import os
import random
import re
import sys
import tempfile
import zlib
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import discreet

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.streams import ENGINES, LANDS, SONGS, STREAMS, open_streams, write_files

RECORDED = Path(__file__).with_name("features.jsonl")

HALF = discreet.Canonical(gamma="1/2", noise="gumbel", ceil=False)
QUARTERS = discreet.Canonical(gamma="3/4", noise="exponential", ceil=False)
SHOT = discreet.OneShot(noise="exponential")
MECHANISMS = [
    HALF,
    QUARTERS,
    discreet.Canonical(gamma="1", noise="laplace", ceil=False),
    SHOT,
    discreet.OneShot(noise="gumbel"),
    discreet.OneShot(noise="laplace"),
    discreet.OneShot(noise="logistic"),
    discreet.Peeling(noise="gumbel"),
    discreet.Peeling(noise="half-logistic"),
    discreet.Joint(),
    discreet.Core(precision="3/5", otherwise=SHOT),
    discreet.Core(precision="3/5", otherwise=None),
]
CEIL = discreet.Canonical(gamma="1/2", noise="gumbel", ceil=True)
USERS = discreet.Sensitivity(down=0, up=1)
FEW = discreet.Sensitivity(down=0, up=1, items=2)

TERMS = {
    "k": 3, "epsilon": 1, "labels": None, "mechanism": HALF, "sensitivity": USERS, "adjacency": "add-remove",
    "counts": None, "split": None, "pad_to": None, "ledger": None, "purpose": None, "request_id": None,
    "dataset": None,
}  # fmt: skip
GROUPS = {"by": None, "each_user": "one", "max_groups_per_user": None, "labels": None}
QUESTION = {
    "user": "who", "item": "song", "domain": SONGS, "label": None, "where": None, "during": None, "value": None,
    "clip": None, "resolution": None, "max_items_per_user": None, "by": None, "groups": None, "each_user": None,
    "max_groups_per_user": None, "adjacency": "add-remove", "delimiter": None, "escape": None, "encoding": None,
}  # fmt: skip
SKETCH = {
    "epsilon": 1, "ranks": [1, 2, 5, 10], "grid": None, "sensitivity": None, "adjacency": "add-remove",
    "pad_to": None, "ledger": None, "purpose": None, "request_id": None, "dataset": None,
}  # fmt: skip
BY_LAND = {"by": "land", "groups": LANDS, "each_user": "one", "max_groups_per_user": None}


def select(scores, rng, **terms):
    """Release with every term given."""
    return discreet.top_k(scores, rng=rng, **{**TERMS, **terms})


def group(scores, **terms):
    """Make scores by group with every term given."""
    return discreet.grouped(scores, **{**GROUPS, **terms})


def ask(engine, rng, question, **terms):
    """Release from the streams on an engine, with every argument given."""
    given = {**QUESTION, **question}
    source = discreet.events(**open_streams(engine), **given)
    return select(source, rng, **{"sensitivity": None, "adjacency": given["adjacency"], **terms})


def find(**terms):
    """Make a domain of items to be found with every term given."""
    given = {"delta": "1e-6", "max_items_per_user": 3, "epsilon": "2", "kind": "string", "spelling": "exact"}
    return discreet.discovered(**{**given, "method": "laplace", **terms})


def array_scores(d, shape):
    ranks = np.arange(1, d + 1)
    return {
        "zipf": (10_000 / ranks).astype(np.int64),
        "flat": np.full(d, 5),
        "head": np.where(ranks <= 40, 500, ranks % 7),
        "floats": np.sqrt(ranks) / 7,
    }[shape]


VISITS = {
    "DE": {"dune": 912, "alien": 877, "heat": 41, "tron": 40, "ran": 3},
    "FR": {"dune": 20, "alien": 310, "heat": 298, "tron": 300, "ran": 12},
    "IT": {"dune": 2, "alien": 3, "heat": 2, "tron": 1, "ran": 0},
}


def arrays():
    """Give the name of each release of scores by group, by Core or by Histogram, and what makes it."""
    many = {group: array_scores(90, shape) for group, shape in zip("xyz", ("zipf", "flat", "head"), strict=True)}
    for mechanism in [*MECHANISMS, CEIL]:
        yield f"groups {mechanism!r} one", lambda rng, m=mechanism: select(group(many), rng, k=6, mechanism=m)
    for mechanism in MECHANISMS:
        yield (
            f"groups {mechanism!r} many swap counts",
            lambda rng, m=mechanism: select(
                group(many, each_user="many", max_groups_per_user=2), rng,
                k=5, epsilon=3, mechanism=m, adjacency="swap", counts="1/2",
            ),
        )  # fmt: skip
    yield (
        "groups Histogram one",
        lambda rng: select(group(many), rng, k=4, epsilon=2, mechanism=discreet.Histogram(), sensitivity=FEW),
    )
    yield (
        "groups Histogram many swap",
        lambda rng: select(
            group(many, each_user="many", max_groups_per_user=None), rng,
            k=4, epsilon=6, mechanism=discreet.Histogram(), sensitivity=FEW, adjacency="swap",
        ),
    )  # fmt: skip
    for name, scores, terms in kinds_of_groups():
        for how, options in {
            "plain": {},
            "counts": {"counts": "1/3"},
            "split": {"split": "auto", "mechanism": SHOT},
        }.items():
            yield f"groups {name} {how}", lambda rng, s=scores, t=terms, o=options: select(group(s, **t), rng, **o)
    whole = {"all": [30, 20, 10], "some": [3, 2, 1, 9], "more": [5, 4, 3, 2, 1]}
    for most in (1, 2, None):
        for how, options in {"plain": {}, "split": {"split": "auto"}, "counts": {"counts": 2}}.items():
            yield (
                f"groups of which one is released whole {most} {how}",
                lambda rng, m=most, o=options: select(
                    group(whole, each_user="many", max_groups_per_user=m), rng, epsilon=2, **o
                ),
            )
    yield (
        "groups released whole",
        lambda rng: select(group({"x": [3, 2, 5], "y": [1, 5, 5]}), rng, k=3, split="auto"),
    )
    for shape in ("zipf", "flat", "head", "floats"):
        for otherwise in (None, SHOT, discreet.OneShot(noise="gumbel")):
            for precision, epsilon in (("3/5", "1/2"), ("9/10", 20)):
                mechanism = discreet.Core(precision=precision, otherwise=otherwise)
                yield (
                    f"{mechanism!r} {shape} {epsilon}",
                    lambda rng, s=shape, m=mechanism, e=epsilon: select(
                        array_scores(900, s), rng, k=60, epsilon=e, mechanism=m
                    ),
                )
    yield (
        "Core swap with counts",
        lambda rng: select(
            array_scores(900, "head"), rng, k=60, epsilon=9, adjacency="swap", counts=2,
            mechanism=discreet.Core(precision="3/5", otherwise=SHOT),
        ),
    )  # fmt: skip
    yield (
        "Core split",
        lambda rng: select(
            array_scores(900, "zipf"), rng, k=60, epsilon=40, split="auto",
            mechanism=discreet.Core(precision="3/5", otherwise=None),
        ),
    )  # fmt: skip
    for shape in ("zipf", "flat", "head", "floats"):
        for adjacency in ("add-remove", "swap"):
            yield (
                f"Histogram {shape} {adjacency}",
                lambda rng, s=shape, a=adjacency: select(
                    array_scores(300, s), rng, k=8, epsilon=2, mechanism=discreet.Histogram(), adjacency=a,
                    sensitivity=discreet.Sensitivity(down=0, up="3/2", items=3),
                ),
            )  # fmt: skip
    yield (
        "Histogram released whole",
        lambda rng: select(VISITS["DE"], rng, k=5, mechanism=discreet.Histogram(), sensitivity=FEW),
    )


def kinds_of_groups():
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame(VISITS)
    both = pd.concat({2025: frame, 2026: frame * 2}, axis=1, names=["year", "country"])
    lists = {land: list(each.values()) for land, each in VISITS.items()}
    yield "of mappings", VISITS, {"by": "country"}
    yield "of lists with labels", lists, {"by": "country", "labels": list(VISITS["DE"])}
    yield (
        "of series with labels of their own",
        {"DE": pl.Series(lists["DE"]), "FR": pa.array(lists["FR"]), "IT": pd.Series(lists["IT"], list("vwxyz"))},
        {"labels": {"DE": list("abcde"), "FR": list("fghij"), "IT": None}, "each_user": "many"},
    )
    yield "of a frame", frame, {"by": "country", "each_user": "many", "max_groups_per_user": 2}
    yield "of a frame with two levels", both, {"each_user": "many", "max_groups_per_user": 4}
    yield (
        "of tuples",
        {("DE", 1): VISITS["DE"], ("FR", 2): VISITS["FR"]},
        {"by": ["country", "half"], "each_user": "one"},
    )


def sketches():
    """Give the name of each sketch, and what makes it."""

    def draw(scores, rng, **terms):
        return discreet.sketch(scores, rng=rng, **{**SKETCH, **terms})

    def draw_events(engine, rng, question, **terms):
        given = {**QUESTION, **question}
        source = discreet.events(**open_streams(engine), **given)
        return draw(source, rng, adjacency=given["adjacency"], **terms)

    for shape in ("zipf", "flat", "head"):
        for adjacency in ("add-remove", "swap"):
            yield (
                f"sketch {shape} {adjacency}",
                lambda rng, s=shape, a=adjacency: draw(array_scores(900, s), rng, sensitivity=USERS, adjacency=a),
            )
    yield (
        "sketch floats",
        lambda rng: draw(
            array_scores(900, "floats"), rng, epsilon=3, ranks=[1, 2, 5, 10, 20, 50, 100, 900], grid="1/8",
            sensitivity=discreet.Sensitivity(down="1/3", up="1/2", items=4),
        ),
    )  # fmt: skip
    for engine in ENGINES:
        yield f"sketch of events {engine}", lambda rng, e=engine: draw_events(e, rng, {"max_items_per_user": 2})
    sums = {"value": "amount", "clip": (-1, 3), "resolution": "0.25", "adjacency": "swap"}
    for engine in ("arrow", "csv", "sqlite", "polars"):
        yield (
            f"sketch of sums {engine}",
            lambda rng, e=engine: draw_events(e, rng, sums, ranks=[1, 3, 11], epsilon="1/2"),
        )


def events():
    """Give the name of each release from events, and what makes it."""
    questions = {
        "by land": (BY_LAND, {"epsilon": 2, "counts": "1/2"}),
        "by month in Berlin": (
            {
                "by": discreet.month("at", zone="Europe/Berlin"), "groups": discreet.months("2026-01", "2026-04"),
                "each_user": "many", "max_groups_per_user": 2,
            },
            {"epsilon": 8, "mechanism": discreet.OneShot(noise="laplace"), "split": "auto"},
        ),
        "by land and quarter, swap": (
            {
                "by": ["land", discreet.quarter("at", zone=None)],
                "groups": discreet.product(LANDS, discreet.quarters("2026-Q1", "2026-Q2")), "each_user": "many",
                "max_groups_per_user": 3, "adjacency": "swap",
            },
            {"epsilon": 6, "mechanism": QUARTERS, "counts": 3},
        ),
        "histogram by land": (
            {**BY_LAND, "max_items_per_user": 2},
            {"epsilon": 2, "mechanism": discreet.Histogram()},
        ),
        "found": (
            {"domain": find(max_items_per_user=2, epsilon=None)},
            {"epsilon": 9, "mechanism": SHOT, "counts": 1, "sensitivity": None},
        ),
        "numbers found by land": (
            {"item": "number", "domain": find(max_items_per_user=1, kind="integer", epsilon="15"), **BY_LAND},
            {"k": 2, "epsilon": 20, "counts": 2},
        ),
        "sums with counts": (
            {
                "value": "amount", "clip": ("-0.5", 2), "resolution": "0.25",
                "where": "(stars >= 2 OR stars IS NULL) AND day < DATE '2026-09-01'",
            },
            {"epsilon": 2, "counts": "1/2"},
        ),
        "labels of a file": (
            {"item": "number", "domain": "songs.csv:number", "label": "title", "where": "note NOT LIKE 'demo%'"},
            {"mechanism": SHOT, "epsilon": "1/20"},
        ),
    }  # fmt: skip
    for engine in ENGINES:
        for name, (question, terms) in questions.items():
            yield f"{engine}: {name}", lambda rng, e=engine, q=question, t=terms: ask(e, rng, q, **t)
    # Each of the others is asked of one engine, in turn.
    for place, (name, question, terms) in enumerate(more_questions()):
        engine = ENGINES[place % len(ENGINES)]
        yield f"{engine}: {name}", lambda rng, e=engine, q=question, t=terms: ask(e, rng, q, **t)


def more_questions():
    import pandas as pd
    import polars as pl

    for condition in CONDITIONS:
        yield f"where {condition}", {"where": condition}, {"counts": 3}
    periods = {
        "day": (discreet.day("day", zone=None), discreet.days("2026-02-01", "2026-02-03")),
        "week in Tokyo": (discreet.week("at", zone="Asia/Tokyo"), discreet.weeks("2026-W01", "2026-W05")),
        "month": (discreet.month("day", zone=None), discreet.months("2025-12", "2026-02")),
        "quarter in New York": (
            discreet.quarter("at", zone="America/New_York"), discreet.quarters("2025-Q4", "2026-Q4")
        ),
        "year in Berlin": (discreet.year("at", zone="Europe/Berlin"), discreet.years(2025, 2026)),
    }  # fmt: skip
    for name, (by, groups) in periods.items():
        for each_user, most in (("one", None), ("many", None), ("many", 1)):
            split = {"by": by, "groups": groups, "each_user": each_user, "max_groups_per_user": most}
            yield f"by {name} {each_user} {most}", split, {"epsilon": 3, "mechanism": SHOT, "counts": 3}
    yield "during a month", {"during": discreet.month("at", zone="Europe/Berlin").only("2026-03")}, {"counts": 3}
    yield (
        "by land during a quarter",
        {**BY_LAND, "during": discreet.quarter("day", zone=None).only("2026-Q2")},
        {"split": "auto"},
    )
    numbers = {"item": "number", "where": None}
    domains = {
        "a list of numbers": {**numbers, "domain": list(range(0, 23, 2))},
        "a Parquet file": {**numbers, "domain": "songs.parquet:number"},
        "a Parquet file with labels": {**numbers, "domain": "songs.parquet:number", "label": "song"},
        "integers": {**numbers, "domain": discreet.integers(-5, 10**9)},
        "strings": {"domain": discreet.strings("abcdefghijklmnopqrstuvwxyz", 5, min_length=1)},
        "a table": {"domain": pa.table({"song": SONGS})},
        "categories": {"domain": pd.CategoricalDtype(SONGS)},
        "an enumeration": {"domain": pl.Enum(SONGS)},
        "a CSV file": {"domain": "songs.csv:song"},
    }
    for name, question in domains.items():
        yield f"domain of {name}", question, {"epsilon": 4, "counts": "1/2"}
        yield f"domain of {name} by land", {**question, **BY_LAND}, {"epsilon": "1/10", "mechanism": QUARTERS}
    for kind, item in {"string": "song", "integer": "number", "date": "day", "boolean": "premium"}.items():
        for most in (1, 2, 5):
            domain = find(max_items_per_user=most, kind=kind, epsilon=10)
            terms = {"k": 2, "epsilon": 14, "counts": 4, "mechanism": HALF}
            yield f"{kind} found with {most} a user", {"item": item, "domain": domain}, terms
    for spelling in ("casefold", "trim", "both"):
        found = {"domain": find(spelling=spelling)}
        yield f"found by {spelling}", found, {"k": 9, "epsilon": 9, "split": "auto", "mechanism": SHOT}
    for adjacency in ("add-remove", "swap"):
        by_month = {
            "by": discreet.month("at", zone="Europe/Berlin"), "groups": discreet.months("2026-01", "2026-03"),
            "each_user": "many", "max_groups_per_user": 2, "adjacency": adjacency, "domain": find(epsilon="60"),
        }  # fmt: skip
        yield f"found by month {adjacency}", by_month, {"epsilon": 80, "counts": 1}
    yield (
        "sums found",
        {"domain": find(), "value": "stars", "clip": (0, 5), "resolution": 1},
        {"epsilon": 9, "counts": 1},
    )
    yield (
        "sums by land with a file of groups",
        {**BY_LAND, "groups": "lands.csv:code", "value": "amount", "clip": (0, 2), "resolution": "0.5"},
        {"split": "auto", "mechanism": SHOT},
    )
    yield (
        "pairs of a file",
        {"by": ["land", discreet.month("at", zone=None)], "groups": "pairs.csv", "each_user": "many"},
        {"epsilon": 6, "counts": 6},
    )
    yield (
        "three columns",
        {
            "by": ["land", "premium", "stars"], "each_user": "many", "max_groups_per_user": 4,
            "groups": discreet.product(LANDS[:2], [True, False], discreet.integers(1, 2)),
        },
        {"epsilon": 8},
    )  # fmt: skip
    yield "released whole by land", {**BY_LAND, "domain": SONGS[:3]}, {"k": 3, "split": "auto"}
    yield "few items of each user", {"max_items_per_user": 1}, {"mechanism": discreet.Histogram(), "epsilon": 3}
    yield "swap, few items", {"max_items_per_user": 3, "adjacency": "swap"}, {"counts": 2, "mechanism": SHOT}
    yield (
        "sums by histogram",
        {"max_items_per_user": 2, "value": "amount", "clip": (0, 1), "resolution": "0.25"},
        {"mechanism": discreet.Histogram(), "epsilon": 3},
    )
    for mechanism in [*MECHANISMS, CEIL]:
        yield f"by land {mechanism!r}", BY_LAND, {"mechanism": mechanism, "epsilon": "1/10"}


CONDITIONS = [
    "stars + 1 >= 5",
    "2 * stars - number > 3",
    "-stars < -2 AND amount > -0.25",
    "stars IN (1, 3, 5)",
    "stars NOT IN (1, 2)",
    "land IN ('DE', 'IT')",
    "note LIKE 'Live%'",
    "note ILIKE '%LIVE%'",
    "note NOT LIKE 're_mix'",
    "note IS NULL",
    "note IS NOT NULL AND stars IS NULL",
    "coalesce(note, 'none') = 'none'",
    "trim(note) = 'demo' OR upper(land) = 'FR'",
    "lower(note) BETWEEN 'a' AND 'm'",
    "day >= DATE '2026-03-01' AND day < DATE '2026-06-01'",
    "day BETWEEN DATE '2026-01-15' AND DATE '2026-02-15'",
    "at >= TIMESTAMP '2026-05-01 12:00:00'",
    "NOT (stars > 2 OR land = 'DE')",
    "premium",
    "premium IS NOT TRUE",
    "stars IS DISTINCT FROM 3",
    "amount BETWEEN 0 AND 1.25",
    "CASE WHEN stars > 3 THEN amount > 0 ELSE land = 'FR' END",
    "number + 0 < stars + 0",
    "number * number > 100 AND (stars = 1 OR stars = 2 OR note IS NULL)",
    "song = 'ame' OR song <> trim(song)",
    "stars > 9",
]


def refusals():
    """Give the name of each question that is refused, and what asks it."""
    for condition in ("stars / 2 > 1", "stars > (SELECT 1)", "random() < 1", "note ~ 'x'", "stras = 1"):
        yield f"refused: where {condition}", lambda rng, c=condition: ask("arrow", rng, {"where": c})
    for name, question, terms in [
        ("no groups", {"by": "land", "each_user": "one"}, {}),
        ("no each_user", {"by": "land", "groups": LANDS}, {}),
        ("groups that repeat", {**BY_LAND, "groups": ["DE", "DE"]}, {}),
        ("ceil under swap", {**BY_LAND, "adjacency": "swap"}, {"mechanism": CEIL}),
        ("histogram of all items", {}, {"mechanism": discreet.Histogram()}),
        ("counts and split", {}, {"counts": 1, "split": "auto"}),
        ("a label of found items", {"domain": find(), "label": "title"}, {}),
        ("the events as domain", {"domain": STREAMS}, {}),
        (
            "a period that is none",
            {"by": discreet.month("at", zone=None), "groups": ["2026-13"], "each_user": "one"},
            {},
        ),
        ("too many items", {}, {"k": 12}),
    ]:
        yield f"refused: {name}", lambda rng, q=question, t=terms: ask("arrow", rng, q, **t)


def formats():
    """Give the name of each text about a release, and what writes it."""
    releases = {
        "a list": lambda rng: select(VISITS["DE"], rng, epsilon="1/500"),
        "an order with counts": lambda rng: select(VISITS["DE"], rng, mechanism=SHOT, counts="1/2"),
        "core": lambda rng: select(
            array_scores(900, "head"), rng, k=60, mechanism=discreet.Core(precision="3/5", otherwise=None)
        ),
        "histogram": lambda rng: select(VISITS["DE"], rng, mechanism=discreet.Histogram(), sensitivity=FEW),
        "groups": lambda rng: select(group(VISITS, by="country"), rng, counts="1/2", mechanism=SHOT),
        "groups in common, swap": lambda rng: select(
            group(VISITS, each_user="many", max_groups_per_user=2), rng, adjacency="swap", split="auto", epsilon=3
        ),
        "sums by land and month": lambda rng: ask(
            "arrow", rng,
            {
                "by": ["land", discreet.month("at", zone=None)], "each_user": "many", "value": "amount",
                "groups": discreet.product(LANDS, ["2026-01", "2026-02"]), "max_groups_per_user": 2, "clip": (0, 2),
                "resolution": "0.25",
            },
            counts=2,
        ),
        "found": lambda rng: ask("arrow", rng, {"domain": find(max_items_per_user=2)}, epsilon=8, counts=1),
        "found by land": lambda rng: ask(
            "arrow", rng, {"domain": find(epsilon="15"), **BY_LAND}, k=2, epsilon=20, mechanism=SHOT
        ),
        "released whole": lambda rng: select(VISITS["FR"], rng, k=5, split="auto"),
        "sketch": lambda rng: discreet.sketch(
            VISITS["DE"], rng=rng, **{**SKETCH, "ranks": [1, 3], "sensitivity": USERS}
        ),
    }  # fmt: skip
    writers = {
        "text": str,
        "repr": repr,
        "statement": lambda release: release.statement(),
        "statement as if private": lambda release: _claim_private(release).statement(),
        "registry": lambda release: json.dumps(release.registry(), ensure_ascii=False, indent=1),
        "registry as if private": lambda release: json.dumps(_claim_private(release).registry(), ensure_ascii=False),
        "frame": lambda release: json.dumps(release.to_frame("pyarrow").to_pydict(), default=str, ensure_ascii=False),
        "indented JSON": lambda release: release.to_json(indent=2),
    }

    @cache
    def draw(name):
        return releases[name](seed(f"a text of {name}"))

    for name, (form, write) in itertools.product(releases, writers.items()):
        if (name, form) != ("sketch", "frame"):
            yield f"{form} of {name}", lambda rng, n=name, w=write: w(draw(n))


def _claim_private(release):
    """Return the release as it is without a generator of the caller, read back from JSON."""
    data = json.loads(release.to_json())
    return type(release).from_dict({**data, "private": True})


EVENTS = ("--user", "who", "--item", "song", "--domain", "songs.csv:song")
SURE = ("-k", "3", "--epsilon", "1000000", "--mechanism", "canonical", "--gamma", "1/2", "--noise", "gumbel")
ORDERED = ("-k", "3", "--epsilon", "1000000", "--mechanism", "one-shot", "--noise", "exponential")
LAND_OPTIONS = ("--by", "land", "--groups", "lands.csv:code", "--each-user", "one")
MONTH_OPTIONS = (
    "--by", "month(at, Europe/Berlin)", "--groups", "2026-01..2026-03", "--each-user", "many",
    "--max-groups-per-user", "2",
)  # fmt: skip
FIND_OPTIONS = (
    "--user", "who", "--item", "song", "--discover", "--delta", "1e-8", "--max-items-per-user", "40", "--kind",
    "string", "--spelling", "exact", "--discovery-epsilon", "500000", "--method", "laplace",
)  # fmt: skip
COUNTED = ("--counts", "1000000")


def run(*arguments):
    """Run a command in this process, and return its exit code and what it prints, without versions and times."""
    from discreet.cli import main

    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["discreet", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main()
    finally:
        sys.argv = given
    return normalise(f"exit code {code}\n{out.getvalue()}{err.getvalue()}")


MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC"
"""A time of the ledger, as programs and as people read it."""


def normalise(text):
    """Return a text without what differs from run to run: versions, times, random ids and the hashes of both."""
    text = re.sub(MOMENT, "TIME", text.replace(discreet.__version__, "VERSION"))
    return re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{32})\b", "HASH", text)


def commands():
    """Give the name of each command line, and what runs it in the folder of the streams."""
    lines = {}
    for form in ("json", "csv", "table", "items"):
        lines |= {
            f"select whole {form}": ("select", "scores.csv", "-k", "11", *SURE[2:], "--format", form),
            f"select {form}": ("select", "scores.json", *ORDERED, *COUNTED, "--format", form),
            f"select from events {form}": ("select", "streams.csv", *EVENTS, *ORDERED, "--format", form),
            f"select by land {form}": (
                "select", "streams.parquet", *EVENTS, *LAND_OPTIONS, *SURE, *COUNTED, "--format", form
            ),
            f"select by month {form}": (
                "select", "streams.jsonl", *EVENTS, *MONTH_OPTIONS, "-k", "2", *ORDERED[2:], "--format", form
            ),
            f"select found {form}": (
                "select", "streams.parquet", *FIND_OPTIONS, "-k", "20", *SURE[2:], "--format", form
            ),
            f"select found by land {form}": (
                "select", "streams.parquet", *FIND_OPTIONS, *LAND_OPTIONS, *SURE, *COUNTED, "--format", form
            ),
            f"select histogram {form}": (
                "select", "scores.csv", "-k", "4", "--epsilon", "1000000", "--mechanism", "histogram", "--sensitivity",
                "0,1,1", "--format", form,
            ),
        }  # fmt: skip
    lines |= {
        "select whole by land": (
            "select", "--connect", "sqlite://streams.db", "--name", "streams", *EVENTS, *LAND_OPTIONS, "-k", "11",
            *SURE[2:], "--json",
        ),
        "select a sum": (
            "select", "streams.csv", *EVENTS, *SURE, "--value", "amount", "--clip", "0,2", "--resolution", "0.25",
            "--where", "stars >= 2", *COUNTED, "--json",
        ),
        "select labels": (
            "select", "streams.csv", "--user", "who", "--item", "number", "--domain", "songs.csv:number", "--label",
            "title", *ORDERED,
        ),
        "select strings": (
            "select", "streams.csv", *EVENTS[:4], "--domain", "strings:a-z:4", *ORDERED, "--adjacency", "swap",
        ),
        "select core": (
            "select", "scores.csv", *SURE[:4], "--mechanism", "core", "--precision", "3/5", "--otherwise", "none",
            "--json",
        ),
        "select quietly": ("select", "streams.csv", *EVENTS, *ORDERED, "--quiet"),
        "select a column that is not there": ("select", "streams.csv", "--user", "whom", *EVENTS[2:], *SURE),
        "select with a bad mechanism": ("select", "scores.csv", "-k", "3", "--epsilon", "1", "--mechanism", "canon"),
        "check": ("check", "streams.csv", *EVENTS),
        "check as JSON": ("check", "streams.parquet", *EVENTS, "--where", "stars >= 2", "--json"),
        "check by land": ("check", "streams.csv", *EVENTS, *LAND_OPTIONS, "--adjacency", "add-remove"),
        "check by month as JSON": ("check", "streams.parquet", *EVENTS, *MONTH_OPTIONS, "--json"),
        "check what nobody listed": ("check", "streams.csv", *FIND_OPTIONS),
        "check a condition that keeps nothing": ("check", "streams.csv", *EVENTS, "--where", "land = 'de'"),
        "sketch": ("sketch", "scores.csv", "--epsilon", "1000000", "--ranks", "1,3,11"),
        "sketch as JSON": (
            "sketch", "streams.csv", *EVENTS, "--epsilon", "1000000", "--ranks", "1,3,11", "--max-items-per-user", "2",
            "--json",
        ),
    }  # fmt: skip
    for name, line in lines.items():
        yield f"command: {name}", lambda rng, a=line: run(*a)
    yield from ledgers()


def ledgers():
    """Give the name of each text about a budget, and what writes it; each has a ledger of its own."""

    def spend(name, *options):
        first = run("budget", "init", f"{name}.db", "--epsilon", "3000000", "--unit", "users of streams", *options)
        terms = "--ledger", f"{name}.db", "--purpose", "a chart", "--request-id", "one"
        second = run("select", "scores.csv", *ORDERED, *terms, "--out", f"{name}.json")
        return f"{first}{second}"

    yield "command: budget init and select", lambda rng: spend("spent")
    yield (
        "command: budget init swap",
        lambda rng: spend("wrong", "--adjacency", "swap", "--delta", "1e-6", "--release-delta", "5e-7"),
    )
    for form in ("table", "json"):
        for spent in (False, True):
            yield (
                f"command: budget show {form} {spent}",
                lambda rng, f=form, s=spent: (
                    (spend if s else init)(f"show-{f}-{s}") + run("budget", "show", f"show-{f}-{s}.db", "--format", f)
                ),
            )
    for name in ("history", "check", "export"):
        yield (
            f"command: budget {name}",
            lambda rng, n=name: spend(f"own-{n}") + run("budget", n, f"own-{n}.db"),
        )
    for form in ("text", "json", "yaml"):
        yield (
            f"command: statement {form}",
            lambda rng, f=form: (
                spend(f"told-{f}") + run("statement", f"told-{f}.json", "--ledger", f"told-{f}.db", "--format", f)
            ),
        )


def init(name):
    """Make a budget of its own."""
    return run(
        "budget", "init", f"{name}.db", "--epsilon", "3", "--delta", "1e-6", "--release-delta", "5e-7", "--adjacency",
        "swap", "--unit", "users of streams", "--dataset", "streams",
    )  # fmt: skip


HEAD = 'title = "What people listen to"\nledger = "charts.db"\nout = "site"\npictures = false\n'
PERIOD = 'every = "month"\ntime = "at"\n'
OF_TEXT = 'kind = "string", spelling = "exact"'
OF_STREAMS = 'table = "streams.parquet", user = "who", item = "song"'
CHARTS = {
    "list": f"""
[[chart]]
id = "list"
title = "Songs"
events = {{ {OF_STREAMS}, where = "stars >= 2" }}
domain = "songs.csv:song"
label = "title"
k = 3
epsilon = "0.25"
mechanism = "canonical"
gamma = "3/4"
noise = "gumbel"
counts = "0.25"
adjacency = "add-remove"
{PERIOD}""",
    "lands": f"""
[[chart]]
id = "lands"
title = "Songs by land"
events = {{ {OF_STREAMS}, max_items_per_user = 2 }}
domain = "songs.csv:song"
by = {{ column = "land", groups = "lands.csv:code", each_user = "one" }}
k = 2
epsilon = "0.5"
mechanism = "histogram"
adjacency = "swap"
{PERIOD}""",
    "sums": f"""
[[chart]]
id = "sums"
title = "Amounts by quarter"
events = {{ {OF_STREAMS}, value = "amount", clip = [0, 2], resolution = "0.25" }}
domain = ["ame", "blu", "cor", "dia"]
by = {{ column = ["land", "quarter(at)"], groups = [["DE", "FR"], "2026-Q1..2026-Q2"], each_user = "many", \
max_groups_per_user = 2 }}
k = 2
epsilon = "1"
mechanism = "one-shot"
noise = "exponential"
split = "auto"
""",
    "found": f"""
[[chart]]
id = "found"
title = "Found songs"
events = {{ {OF_STREAMS} }}
discover = {{ method = "laplace", delta = "1e-9", max_items_per_user = 2, epsilon = "0.5", {OF_TEXT} }}
k = 4
epsilon = "2"
mechanism = "canonical"
gamma = "1/2"
noise = "gumbel"
{PERIOD}""",
}
AS_OF = ("--as-of", "2026-04-01T00:00:00+00:00")


def publishing():
    """Give the name of each text of publishing, and what writes it."""

    def prepare(charts, epsilon="20"):
        Path("charts.toml").write_text(HEAD + charts, encoding="utf-8")
        Path("charts.db").unlink(missing_ok=True)
        options = ("--delta", "1e-6", "--release-delta", "5e-7", "--adjacency", "add-remove")
        run("budget", "init", "charts.db", "--epsilon", epsilon, "--unit", "listeners", *options)

    def price(charts, epsilon, *options):
        prepare(charts, epsilon)
        return run("publish", "charts.toml", "--dry-run", *AS_OF, *options)

    def publish(charts, folder, *options):
        prepare(charts)
        told = run("publish", "charts.toml", *options, *AS_OF, "--log", "json")
        files = sorted(file for file in Path(folder).rglob("*.*") if file.suffix in (".csv", ".json", ".md"))
        return "\n".join([told, *(f"{file.as_posix()}:\n{normalise(file.read_text('utf-8'))}" for file in files)])

    for name, charts in {**CHARTS, "all": "".join(CHARTS.values())}.items():
        for log in ("text", "json"):
            yield f"publish: price of {name} {log}", lambda rng, c=charts, g=log: price(c, "20", "--log", g)
    yield "publish: price above the budget", lambda rng: price(CHARTS["list"], "1/4")
    for name, charts in CHARTS.items():
        yield f"publish: rehearsal of {name}", lambda rng, c=charts: publish(c, "site-dummy", "--dummy")
    whole = CHARTS["list"].replace("k = 3", "k = 11").replace('counts = "0.25"\n', "")
    yield "publish: releases of everything", lambda rng: publish(whole, "site", "--yes")
    yield "publish: check of the charts", lambda rng: (prepare(CHARTS["list"]), run("check", "charts.toml", *AS_OF))[1]
    yield "publish: schema", lambda rng: _read_schema()


def _read_schema():
    from importlib.resources import files

    return files("discreet.publish").joinpath("charts.schema.json").read_text("utf-8")


def shortfalls():
    """Give the name of each release with a shortfall, and what makes it."""
    for mechanism in [*MECHANISMS, CEIL]:
        for adjacency in ("add-remove", "swap"):
            yield (
                f"shortfall {mechanism!r} {adjacency}",
                lambda rng, m=mechanism, a=adjacency: select(
                    array_scores(900, "zipf"), rng, k=20, epsilon="1/5", mechanism=m, adjacency=a, shortfall="1/20",
                ),
            )  # fmt: skip
    yield (
        "shortfall with counts, text",
        lambda rng: str(select(VISITS["FR"], rng, k=2, counts="1/2", shortfall="1/2", mechanism=SHOT)),
    )
    yield "shortfall auto", lambda rng: select(VISITS["FR"], rng, k=2, split="auto", shortfall="auto")
    yield (
        "shortfall by group, text",
        lambda rng: str(select(group(VISITS, each_user="many"), rng, k=2, epsilon=6, shortfall=3)),
    )
    yield "shortfall statement", lambda rng: select(VISITS["FR"], rng, k=2, shortfall="1/2").statement()
    questions = {
        "list": ({}, {"shortfall": "1/4"}),
        "by land": (BY_LAND, {"epsilon": 2, "shortfall": "1/2"}),
        "found": ({"domain": find(max_items_per_user=2, epsilon=None)}, {"epsilon": 9, "shortfall": 1}),
        "found by land": ({"domain": find(epsilon="15"), **BY_LAND}, {"k": 2, "epsilon": 20, "shortfall": 2}),
        "sums": ({"value": "amount", "clip": ("-0.5", 2), "resolution": "0.25"}, {"shortfall": "1/2"}),
    }
    for engine in ENGINES:
        for name, (question, terms) in questions.items():
            yield f"shortfall {engine}: {name}", lambda rng, e=engine, q=question, t=terms: ask(e, rng, q, **t)


def seed(name):
    """Return a generator that the name alone seeds."""
    return random.Random(zlib.crc32(name.encode()))


def weighted():
    """Give the name of each release of items that Gaussian noise finds, and what makes it."""
    domain = find(method="gaussian", max_items_per_user=100, epsilon=15)
    both = {"by": "land", "groups": LANDS, "each_user": "many", "max_groups_per_user": 2, "adjacency": "swap"}
    questions = {
        "found by weights": ({"domain": domain}, {"epsilon": 20, "counts": 1, "shortfall": 1}),
        "found by weights and land": ({"domain": domain, **both}, {"k": 2, "epsilon": 20, "mechanism": SHOT}),
    }
    for engine in ENGINES:
        for name, (question, terms) in questions.items():
            yield f"{engine}: {name}", lambda rng, e=engine, q=question, t=terms: ask(e, rng, q, **t)
    line = ("select", "streams.parquet", *FIND_OPTIONS[:-1], "gaussian", "-k", "20", *SURE[2:], "--format")
    for form in ("table", "json"):
        yield f"select found by weights {form}", lambda rng, f=form: run(*line, f)


def planned():
    """Give the name of each sketch of items that nobody listed, and of plans for them, and what makes it."""
    terms = {**SKETCH, "ranks": [1, 3, 11], "adjacency": None}
    sums = {"value": "amount", "clip": (-1, 3), "resolution": "0.25", "adjacency": "swap"}
    for engine in ("arrow", "sqlite"):
        for name, question in (("found", {}), ("sums found", sums)):
            given = {**QUESTION, **question, "domain": find(method="gaussian", max_items_per_user=100)}
            yield (
                f"sketch of {name} {engine}",
                lambda rng, e=engine, q=given: discreet.sketch(
                    discreet.events(**open_streams(e), **q), rng=rng, **terms
                ),
            )
    line = ("plan", "--discover", "--delta", "1e-8", "--max-items-per-user", "3", "--method", "gaussian", "-k", "20")
    line += ("--discovery-epsilon", "0.6", "--epsilon", "1", "--max-groups-per-user", "2")
    yield "command: plan what nobody listed", lambda rng: run(*line)
    yield "command: plan what nobody listed as JSON", lambda rng: run(*line, "--json")


KINDS = [arrays, sketches, events, formats, commands, publishing, refusals, shortfalls, weighted, planned]


def names():
    """Return the names of all cases, in the order in which they are recorded."""
    return [name for kind in KINDS for name, _ in kind()]


def texts(kind, part=slice(None)):
    """Give the name of each case of a kind, or of some of them, and its text."""
    # Tables are as wide as the terminal.
    terminal = patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"})
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), terminal:
        write_files()
        for name, make in list(kind())[part]:
            yield name, _write(name, make, kind is refusals)


def _write(name, make, is_refused):
    """Return the text of a case: itself, its JSON, or the error of one that must be refused."""
    try:
        made = make(seed(name))
    except discreet.Error as error:
        if not is_refused:
            raise
        return f"{type(error).__name__}: {error}"
    if is_refused:
        raise AssertionError(f"{name} is not refused")
    return made if isinstance(made, str) else made.to_json()


if __name__ == "__main__":
    lines = [json.dumps(case) for kind in KINDS for case in texts(kind)]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(len(lines), "texts")
