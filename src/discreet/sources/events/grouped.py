"""Scores of raw events by group: one query for all groups, and one lookup of all chosen items.

The snapshot holds a row for each group and item that somebody touched there. Items of a listed domain are kept as their
ordinals in its order, so that those nobody touched are found as the numbers that are free, and the names are looked up
here, in the public list.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NoReturn

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.privacy import Sensitivity
from discreet.sources.base import Chosen, Source
from discreet.sources.engine import ask
from discreet.sources.events.bounded import MASK, adopt_ordinals, read_in_order
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.event_table import ListedEventTable, Question
from discreet.sources.events.group_split import GroupSplit
from discreet.sources.events.lookup import Lookup
from discreet.sources.events.ranges import Integers
from discreet.sources.events.scoring import Scoring
from discreet.sources.groups import MANY, Choose, GroupedSource
from discreet.tally import Tally


class GroupedTableSource(ListedEventTable, GroupedSource):
    """Scores of a public domain in each of several public groups, from a table of events.

    Threads may share one, and take turns. It belongs to the process that made it, like the connection that it holds.
    """

    _scoring: Scoring
    _split: GroupSplit

    def __init__(
        self,
        question: Question,
        domain: Any,
        label: str | None,
        max_items_per_user: int | None,
        split: GroupSplit,
    ) -> None:
        super().__init__(question, domain, label)
        self._split, self._max_items_per_user = split, max_items_per_user
        self.keys, self.names = split.groups.keys, split.groups.names
        self.each_user, self.groups_per_user = split.each_user, split.groups_per_user
        self._labels, ordinals = self._number_domain()
        self._numbers = self._domain if isinstance(self._domain, Integers) else Integers(0, self._domain.d - 1)
        member = GroupMember(self._domain, self._labels, self._grid, self._sensitivity)
        member.adjacency, member.max_items_per_user = question.adjacency, max_items_per_user
        self.members = [member] * len(self.keys)
        self._scoring = self._make_scoring(max_items_per_user, ordinals)

    def description(self) -> dict[str, Any]:
        bound = {"max_groups_per_user": self.groups_per_user} if self.each_user == MANY else {}
        own = self._describe(self._max_items_per_user) | self._split.groups.description()
        return {**own, "each_user": self.each_user, **bound}

    def select_items(self, choose: Choose, scored: bool) -> list[Chosen]:
        with self.exclusive():
            try:
                tallies = self._take_snapshot()
                ranks, scores = [], []
                for group, tally in enumerate(tallies):
                    ranks.append(choose(group, tally).draw_ranks())
                    scores.append([tally.exact(rank) for rank in ranks[-1].tolist()] if scored else [])
                return list(zip(self._find_items(ranks), scores, strict=True))
            finally:
                self.close()

    def _take_snapshot(self) -> list[Tally]:
        """The tallies of all groups; what is computed here is kept until it is let go."""
        self.close()
        engine = self._opened.engine
        scores = ask(engine, "computing the scores", lambda: self._make_query().cache())
        lookup = Lookup(scores, "integer", self._numbers, len(self.keys))
        self._snapshots.append(lookup)
        runs = ask(engine, "counting the scores", lookup.runs)
        return [Tally.of_runs(values, counts, self._grid) for values, counts in runs]

    def _make_query(self) -> Any:
        again = self._filter(self._opened.table.view())
        return self._scoring.scores_by_group(self._table, again, self._split)

    def _find_items(self, ranks: list[Ranks]) -> list[list[Any]]:
        lookup = self._snapshots[-1]
        found = ask(self._opened.engine, "looking up the items", lambda: lookup.items(ranks))
        if isinstance(self._domain, Integers):
            return [[self._domain.spell(number) for number in numbers] for numbers in found]
        # Arrow takes no list without a type for numbers.
        return [self._labels.take(numbers).to_pylist() if numbers else [] for numbers in found]

    def _number_domain(self) -> tuple[Any, Any]:
        """What to show in place of each ordinal, and the ordinals on the engine; a range of numbers needs none."""
        domain = self._domain
        if isinstance(domain, Integers):
            return None, domain
        if domain.d > MASK + 1:
            raise InvalidValueError(f"domain must hold at most 2^31 items with by, not {domain.d}, or be integers")
        rows = read_in_order(domain, self._opened)
        shown_as = rows["label" if domain.labelled else "item"].combine_chunks()
        return shown_as, adopt_ordinals(rows["item"], self._opened)


class GroupMember(Source):
    """What is public about one group of events; all of them are released at once."""

    def __init__(self, domain: Integers | ListedDomain, labels: Any, grid: Fraction, sensitivity: Sensitivity) -> None:
        self._domain, self._labels, self.grid, self.sensitivity = domain, labels, grid, sensitivity

    @property
    def d(self) -> int:
        return self._domain.d

    def tally(self) -> Tally:
        self._refuse()

    def items(self, ranks: Ranks) -> list[Any]:
        self._refuse()

    def every_item(self) -> list[Any]:
        domain = self._domain
        found: list[Any] = domain.list_items() if isinstance(domain, Integers) else self._labels.to_pylist()
        return found

    def _refuse(self) -> NoReturn:
        raise InvalidValueError("a group of events must be released with the others: pass the whole source")
