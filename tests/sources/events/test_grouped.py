"""Lists by group on every engine: the scores of each group, its items, and what one user can do to them."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from engines import on, postgres, spark  # noqa: F401  # fixtures
from test_contract import ENGINES, STEPS, SUMS, counted, expected, first_by_hash, generated, kept, summed

import discreet
from discreet.selection import Selection

LANDS = ["DE", "FR", "AT", "é", "JP"]
"""The public groups; that nobody is in the last one does not show."""


def with_lands(seed, kind):
    """Generated events in groups, some in none or in one that is not listed; and the domain of their items."""
    rows, events, domain = generated(seed, kind)
    rng = random.Random(seed)
    for row in rows:
        row["land"] = rng.choice([*LANDS[:4], *LANDS[:2], "US", None])
    land = pa.array([row["land"] for row in rows], pa.string())
    return rows, events.append_column("land", land), domain


def count_in_groups(rows, keys, each_user, most_groups=None):
    """The definition: the rows that count in each group, of the groups that each user counts in."""
    rows = [row for row in rows if row["who"] is not None and row["land"] in keys]
    own = {}
    for who in {row["who"] for row in rows}:
        number = Counter(keys.index(row["land"]) for row in rows if row["who"] == who)
        if each_user == "one":
            own[who] = {max(number, key=lambda place: (number[place], -place))}
        else:
            own[who] = set(first_by_hash({place: place for place in number}, most_groups or len(keys)))
    return [[row for row in rows if row["land"] == key and place in own[row["who"]]] for place, key in enumerate(keys)]


def score_groups(rows, keys, domain, options):
    """The definition: the scores of all items in each group."""
    passing = [row for row in rows if "where" not in options or row["stars"] >= 2]
    groups = count_in_groups(passing, keys, options["each_user"], options.get("max_groups_per_user"))
    most = options.get("max_items_per_user")
    if "value" not in options:
        return [counted(rows if most is None else kept(rows, domain, most), domain) for rows in groups]
    valued = [[row for row in rows if row["amount"] is not None and row["amount"] == row["amount"]] for rows in groups]
    return [summed(rows if most is None else kept(rows, domain, most), domain, *STEPS) for rows in valued]


def rank_groups(source):
    """Every item with its score, by rank, in each group: all that a source can say."""
    chosen = source.select_items(lambda _, tally: Selection(np.arange(tally.d)), scored=True)
    return [list(zip(scores, items, strict=True)) for items, scores in chosen]


@pytest.fixture
def grouped_on(tmp_path, request):
    """Makes a source by group on an engine: (engine, events, domain, more arguments of `discreet.events`)."""

    def source(engine, events, domain, **options):
        given_as = on(engine, events, tmp_path, request)
        options = {"by": "land", "groups": LANDS} | options
        return discreet.events(**given_as, user="who", item="what", domain=domain, **options)

    return source


CASES = [
    {"each_user": "one"},
    {"each_user": "many", "max_groups_per_user": 2, "max_items_per_user": 2, "where": "stars >= 2", **SUMS},
    {"each_user": "one", "max_items_per_user": 1, **SUMS},
    {"each_user": "many"},
    {"each_user": "many", "max_groups_per_user": 1, "where": "stars >= 2"},
    {"each_user": "one", "max_items_per_user": 2},
    {"each_user": "many", "max_groups_per_user": 3, "max_items_per_user": 3},
    {"each_user": "many", **SUMS},
]


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_items_are_those_of_the_definition(engine, grouped_on):
    # A query on Spark takes seconds.
    for number, options in enumerate(CASES[: 2 if engine == "spark" else None]):
        rows, events, domain = with_lands(20 + number, ["string", "integer"][number % 2])
        source = grouped_on(engine, events, domain, **options)
        assert rank_groups(source) == [expected(scores) for scores in score_groups(rows, LANDS, domain, options)]
        assert not source._snapshots
