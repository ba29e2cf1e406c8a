"""What of `discreet select` belongs to one kind of input, scores or events, and why it has no place beside others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidValueError

SCORES_ONLY = {
    "score": "the scores are made from the events",
    "sensitivity": "the events tell how far one user can move a score",
}
EVENTS_ONLY = {
    "domain": "a file of scores lists its own items",
    "label": "a file of scores has its own labels",
    "where": "a file of scores has no rows of users to choose from",
    "value": "a file of scores is added up already",
    "clip": "a file of scores is added up already",
    "resolution": "a file of scores is added up already",
    "max_items_per_user": "a file of scores is added up already",
    "discover": "a file of scores lists its own items",
    "delta": "a file of scores lists its own items, and none are to be found",
    "kind": "a file of scores lists its own items",
    "spelling": "a file of scores lists its own items",
    "discovery_epsilon": "a file of scores lists its own items",
    "by": "a file of scores has no rows of users to put into groups",
    "groups": "a file of scores has no groups",
    "each_user": "a file of scores has no groups",
    "max_groups_per_user": "a file of scores has no groups",
    "connect": "a database is read as events, not as scores",
    "name": "it is the table of a database, which is read as events",
    "delimiter": "the header of a file of scores shows it",
    "escape": "a file of scores doubles the quotes inside quotes",
    "encoding": "a file of scores is UTF-8",
}


def refuse_options(options: Mapping[str, Any], reasons: dict[str, str], when: str) -> None:
    """Raises where an option is given that belongs to the other kind of input."""
    for option, value in options.items():
        if value is not None:
            raise InvalidValueError(f"{option} must be left out {when}: {reasons[option]}")
