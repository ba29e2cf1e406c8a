"""Items that nobody listed, from a table of events: one snapshot, its runs, and the items that are kept.

The snapshot has a row for each item that counts for somebody: for how many, and what it scores among all. What crosses
the wire is how many items count for how many users, and then the items that were drawn to be kept, with their scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.discovery_terms import EXACT, SPELLINGS, Discovered
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.sources.engine import ask
from discreet.sources.events.connect import Opened
from discreet.sources.events.event_table import EventTable, Question
from discreet.sources.events.group_split import GroupSplit
from discreet.sources.events.lookup import Lookup
from discreet.sources.events.unlisted_scoring import UnlistedScoring
from discreet.sources.events.user_hash import check_hash
from discreet.sources.groups import MANY
from discreet.sources.unlisted import FoundItems, KeepItems, UnlistedGroups, UnlistedSource


class UnlistedTable(EventTable, UnlistedSource):
    """Scores of items that are to be found in a table of events.

    Threads may share one, and take turns. It belongs to the process that made it, like the connection that it holds.
    """

    _scoring: UnlistedScoring

    def __init__(self, question: Question, terms: Discovered) -> None:
        super().__init__(question)
        opened, columns = question.opened, question.columns
        self._check_kind(terms.kind)
        check_hash(opened, "discovered")
        _check_trim(opened, terms)
        self.terms, self.adjacency = terms, question.adjacency
        self.sensitivity, self.grid = self._sensitivity, self._grid
        self._scoring = UnlistedScoring(
            columns=columns,
            kind=terms.kind,
            steps=question.steps,
            dialect=opened.dialect,
            spelling=terms.spelling,
            max_items_per_user=terms.max_items_per_user,
            drops_long_numbers=_may_become_floats(opened, columns["item"], terms.kind),
        )

    def description(self) -> dict[str, Any]:
        return {**self._describe_question(), **self.terms.description()}

    def find_items(self, key: str, keep: KeepItems) -> list[FoundItems]:
        with self.exclusive():
            try:
                return self._find_kept(key, keep)
            finally:
                self.close()

    def _find_kept(self, key: str, keep: KeepItems) -> list[FoundItems]:
        self.close()
        engine = self._opened.engine
        scores = ask(engine, "finding the items", lambda: self._make_query(key).cache())
        lookup = Lookup(scores, self.terms.kind, None, self._groups)
        self._snapshots.append(lookup)
        runs = ask(engine, "counting the items", lookup.runs)
        kept = [keep(_as_ranks(users), _as_ranks(items)) for users, items in runs]
        found = ask(engine, "looking up the items", lambda: lookup.items(kept))
        return [FoundItems([item for item, _ in pairs], [total for _, total in pairs]) for pairs in found]

    @property
    def _groups(self) -> int | None:
        return None

    def _make_query(self, key: str = "") -> Any:
        return self._scoring.find_items(self._table, key)


class UnlistedGroupTable(UnlistedTable, UnlistedGroups):
    """Scores of items that are to be found in each of several public groups."""

    _split: GroupSplit

    def __init__(self, question: Question, terms: Discovered, split: GroupSplit) -> None:
        super().__init__(question, terms)
        self._split = split
        self.keys, self.names = split.groups.keys, split.groups.names
        self.each_user, self.groups_per_user = split.each_user, split.groups_per_user

    def description(self) -> dict[str, Any]:
        bound = {"max_groups_per_user": self.groups_per_user} if self.each_user == MANY else {}
        return {**super().description(), **self._split.groups.description(), "each_user": self.each_user, **bound}

    @property
    def _groups(self) -> int | None:
        return len(self.keys)

    def _make_query(self, key: str = "") -> Any:
        again = self._filter(self._opened.table.view())
        return self._scoring.find_items_by_group(self._table, again, self._split, key)


def _as_ranks(numbers: list[int]) -> Ranks:
    return np.array(numbers, np.int64)


def _check_trim(opened: Opened, terms: Discovered) -> None:
    if terms.spelling != EXACT and SPELLINGS[terms.spelling][1] and opened.dialect.trim is None:
        raise InvalidValueError(f"spelling must not be {terms.spelling!r} on {opened.engine}: its trim is not known")


def _may_become_floats(opened: Opened, item: str, kind: str) -> bool:
    """Whether a missing item makes floats of a pandas column, which merges whole numbers beyond 2^53."""
    return opened.is_pandas and item in opened.undeclared and kind in ("integer", "string")
