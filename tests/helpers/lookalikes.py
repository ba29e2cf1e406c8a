"""Users, items and groups whose spellings look alike, and how far one more user may move the scores of these items."""

import numpy as np
import pyarrow as pa

import discreet
from discreet.mechanisms.tally import Selection
from snapshots import scores_of, select_items

ALIKE = [
    "ann",
    "ANN",
    "ann ",
    " ann",
    "ann\t",
    "ann\0",
    "änn",
    "a\u0308nn",
    "ann\u00ad",
    "😀",
    "😁",
    "",
    " ",
    "0",
    "-0",
    "ﬀ",
    "ß",
    "ss",
]
"""Spellings that collations equate, or that differ by blanks, case, accents, NUL or an emoji."""

AMOUNTS = [None, 0.0, -0.0, 1.0, 2.5, float("nan"), float("inf"), -1e300]

SCHEMA = pa.schema([("who", pa.string()), ("what", pa.string()), ("land", pa.string()), ("amount", pa.float64())])

ASKED = {
    "list": {},
    "sums": {"value": "amount", "clip": (-2, 2), "resolution": "0.5"},
    "bound": {"max_items_per_user": 1},
    "condition": {"where": "amount = 0 OR what < 'b'"},
    "one group": {"each_user": "one"},
    "many groups": {"each_user": "many", "max_groups_per_user": 1},
    "discovery": {},
}


def make_others(alike):
    """The rows of all users but the first, of half of the items each."""
    return [
        dict(zip(SCHEMA.names, (who, what, alike[(place + 5 * row) % len(alike)], 1.0), strict=True))
        for row, who in enumerate(alike[1:])
        for place, what in enumerate(alike[::2])
    ]


def count_by_look(given, alike, asked):
    """The scores of the items, by group where there are groups; of items to be found, only how many have which."""
    question = {"user": "who", "item": "what", "domain": alike, **ASKED[asked]}
    if asked == "discovery":
        terms = discreet.discovered(delta="1e-8", max_items_per_user=1, method="laplace")
        with discreet.events(**given, **{**question, "domain": terms}).snapshot("key") as found:
            [(users, items)] = found.runs()
        return [int(each) for each in np.repeat(users, items)]
    if "group" not in asked:
        return scores_of(given, alike, ASKED[asked])[0]
    source = discreet.events(**given, **question, by="land", groups=alike)
    found = select_items(source, lambda _, tally: Selection(np.arange(tally.d)), scored=True)
    return {
        (land, item): score
        for land, pairs in zip(alike, found, strict=True)
        for item, score in zip(*pairs, strict=True)
    }


def check_move(old, new, own, asked):
    """Raise unless the rows of the first user, which only `new` counts, move the scores as they may."""
    if asked == "discovery":
        values = {*old, *new}
        more = sum(max(0, new.count(value) - old.count(value)) for value in values)
        assert sum(new) - sum(old) == bool(own)
        assert more == bool(own)
        return
    assert old.keys() == new.keys()
    moved = {key: step for key in new if (step := new[key] - old[key])}
    limit = 2 if asked == "sums" else 1
    assert all(-limit * (asked == "sums") <= step <= limit for step in moved.values()), moved
    if asked == "list":
        assert {item for _, item in moved} == {row["what"] for row in own}
    if asked == "bound":
        assert len(moved) == bool(own)
    if "group" in asked:
        assert len({land for land, _ in moved}) == bool(own)
        assert all((item, land) in {(row["what"], row["land"]) for row in own} for land, item in moved)
