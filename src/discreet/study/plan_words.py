"""What a plan says, in words: its goal, what a bound loses, how its events are asked for, and what epsilon means."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import Any

from discreet.analysis.compare import Comparison, ItemBound
from discreet.analysis.goals import Hits, goals
from discreet.mechanisms.tally import Tally
from discreet.text import decimal

_MEANING = {
    "top": "exactly the top {k}",
    "optimal": "a top {k}, whichever of equal scores are in it",
    "great": "a list with the best {great} in it and nothing beyond rank {great_last}",
    "good": "a list with the best {good} in it and nothing beyond rank {good_last}",
    "recall": "a list with at least {least} of the {k} right",
}


def describe_goal(tally: Tally, table: Comparison, goal: str) -> str:
    """What is released, and how often."""
    k, wanted = table.k, goals(tally, table.k, table.share)
    recall, chance = wanted["recall"], decimal(table.probability)
    where = "" if table.groups is None else f", in each of {table.groups:,} groups"
    if goal == "recall" and table.share is None:
        if table.best(goal).mechanism.may_release_fewer:
            return f"a list that has {chance} of the true {k} on average, and may be shorter{where}"
        return f"a list of {k} items of which {chance} are right on average{where}"
    numbers = {"k": k, "least": recall.least if isinstance(recall, Hits) else None}
    for name in ("great", "good"):
        region = wanted[name]
        if not isinstance(region, Hits):
            numbers |= {name: region[0], f"{name}_last": region[1]}
    return f"{_MEANING[goal].format(**numbers)} with probability {chance}{where}"


def describe_loss(bound: ItemBound, k: int) -> str:
    """What holding users to few items does to the list, without noise: "3 items a user alone loses 4 of the 100"."""
    most = bound.max_items_per_user
    lost = f"{float(bound.lost):.3g}" if bound.lost else "none"
    return f"{most} item{'s' if most > 1 else ''} a user alone loses {lost} of the {k}"


def describe_events(question: dict[str, Any]) -> str:
    """The options of the command line that ask the same of events; nothing where there are no events."""
    if "columns" not in question:
        return ""
    columns = {**question["columns"], "domain": "ITEMS"}
    if question["where"] is not None:
        columns["where"] = question["where"]
    if question["clip"] is not None:
        low, high, unit = question["clip"]
        columns |= {"clip": ",".join(decimal(end * Fraction(unit)) for end in (low, high)), "resolution": unit}
    return "".join(f"--{name} {shlex.quote(value)} " for name, value in columns.items())


def describe_epsilon(epsilon: Fraction) -> str:
    """What an epsilon of this size means to people; there is no law, so it is worded as custom."""
    if epsilon <= 1:
        return "By custom an epsilon up to 1 is strong protection."
    if epsilon <= 10:
        return "By custom an epsilon from 1 to 10 is moderate protection: smaller k or another goal would need less."
    return "An epsilon above 10 protects little: release fewer items, settle for another goal, or collect more users."
