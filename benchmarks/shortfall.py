"""The cost of a shortfall: a release with one against the same release without."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from scores import zipf
from suite import Row, Rows, Run, power
from tables import ITEMS, make_events, many
from timing import medians, minima

TARGET = 1.05


def rows(run: Run) -> Rows:
    """Arrays of two sizes and two shapes, scores with names, and events in Parquet, listed and found."""
    for d, repeats in ((10**4, 4000), (run.size(10**7), 60)):
        rng = np.random.default_rng(5)
        for name, scores in (("Zipf", zipf(d)), ("uniform counts", rng.integers(0, 10**6, d))):
            shuffled = rng.permutation(scores)
            yield compare(f"{power(d)} scores, {name}, k = 100", lambda scores=shuffled: scores, 100, repeats)
    named = {f"item {item}": score for item, score in enumerate(zipf(10**4).tolist())}
    yield compare(f"{power(10**4)} scores with names, Zipf, k = 100", lambda: named, 100, 300)
    with tempfile.TemporaryDirectory() as folder:
        path, events = Path(folder) / "events.parquet", run.size(2 * 10**6, 2 * 10**7)
        make_events(path, events)
        for name, domain in (
            ("listed items", list(range(ITEMS))),
            ("found items", discreet.discovered(delta="1e-8", max_items_per_user=3, kind="integer")),
        ):

            def source(domain: Any = domain) -> Any:
                return discreet.events(str(path), user="user_id", item="item_id", domain=domain)

            yield compare(f"{many(events)} events, {name}, k = 20", source, 20, 15)


def compare(what: str, source: Callable[[], Any], k: int, repeats: int) -> Row:
    """Return the ratio of a release with a shortfall to one without, of medians or of minima.

    Many short releases are compared by medians: the number of random bits that the noise takes is itself random, and a
    minimum would show the fewest. Beside a release of milliseconds that is nothing, and a minimum shows the time that
    the release takes where nothing else runs.
    """
    measure = medians if repeats > 1000 else minima
    times = measure(
        {
            "without": lambda: discreet.top_k(source(), k, 1),
            "with": lambda: discreet.top_k(source(), k, 1, shortfall="0.05"),
        },
        repeats,
    )
    return Row(what, times["with"] / times["without"], "releases without", TARGET, one=times["without"])
