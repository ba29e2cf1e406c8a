"""From raw events to a tally: who did what, on DuckDB, PostgreSQL, SQLite, Spark or any other engine of ibis.

A score is the number of distinct users of an item, or the sum over users of what each adds to it, clipped. The scores
of all items are computed by one query and kept in one temporary table (`Table.cache`), which the tally and the lookup
of the chosen items both read. What crosses the wire is the tally, small counts, and the chosen items.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.sources.clipped import ClippableSource, ClippedSource
from discreet.sources.engine import ask
from discreet.sources.events.bounded import number_items, pair_scores
from discreet.sources.events.event_table import ListedEventTable, Question
from discreet.sources.events.lookup import Lookup
from discreet.sources.events.ranges import Integers
from discreet.sources.events.scoring import Scoring
from discreet.tally import Tally


class TableSource(ListedEventTable, ClippableSource):
    """Scores of a public domain from a table of events.

    Threads may share one, and take turns. It belongs to the process that made it, like the connection that it holds.
    """

    _scoring: Scoring

    def __init__(self, question: Question, domain: Any, label: str | None, max_items_per_user: int | None) -> None:
        super().__init__(question, domain, label)
        self.sensitivity, self.grid, self.adjacency = self._sensitivity, self._grid, question.adjacency
        self.max_items_per_user = most = max_items_per_user
        self._scoring = self._make_scoring(most, None if most is None else self._ordinals)

    @cached_property
    def _ordinals(self) -> Any:
        """Where each item stands in the order that decides which items of a user are kept."""
        return number_items(self._domain, self._opened)

    @property
    def d(self) -> int:
        return self._domain.d

    def __repr__(self) -> str:
        """What is public about it, in short."""
        return f"TableSource({self.d:,} items, {', '.join(f'{role}={name!r}' for role, name in self._columns.items())})"

    def description(self) -> dict[str, Any]:
        return self._describe(self.max_items_per_user)

    def tally(self) -> Tally:
        self._check_process()
        self.close()
        # The snapshot is what this query returns; everything after reads its result.
        scores = ask(self._opened.engine, "computing the scores", lambda: self._make_query().cache())
        lookup = Lookup(scores, "integer" if isinstance(self._domain, Integers) else self._domain.kind, self._domain)
        self._snapshots.append(lookup)
        values, counts = ask(self._opened.engine, "counting the scores", lookup.runs)[0]
        return Tally.of_runs(values, counts, self.grid)

    def _make_query(self) -> Any:
        return self._scoring.scores(self._table)

    @property
    def can_be_clipped(self) -> bool:
        return self.max_items_per_user is None

    def count_clipped(self, most: int) -> ClippedSource:
        """The scores with at most so many items of each user, beside those of all their items, from one query."""
        self._check_process()
        clipped = self._make_scoring(most, self._ordinals).scores(self._table)
        pairs = pair_scores(self._scoring.scores(self._table), clipped, self._opened.dialect)
        counted = ask(self._opened.engine, "counting the scores of fewer items a user", pairs.to_pyarrow)
        return ClippedSource(self, most, *(counted[name].to_numpy() for name in ("score", "kept", "items")))

    def items(self, ranks: Ranks) -> list[Any]:
        if not self._snapshots:
            raise InvalidValueError("items must be asked for after the tally, which takes the snapshot they come from")
        lookup, domain = self._snapshots[-1], self._domain
        found = ask(self._opened.engine, "looking up the items", lambda: lookup.items([ranks])[0])
        return [domain.spell(number) for number in found] if isinstance(domain, Integers) else found

    def every_item(self) -> list[Any]:
        return self._list_items()
