"""Small tables of people who touch items, each with every user that may come, as the library's own query reads them.

All these tables are read by one query, each as a group of its own, and what it says of them is compared with the
definition. Everybody does everything more than once, or rows would be people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from discreet.discovery_terms import Discovered
from discreet.evidence import discovery_definition as defined
from discreet.evidence.discovery_laws import Touched
from discreet.evidence.report import Failure
from discreet.exact.arrays import Ranks
from discreet.sources.groups import MANY, ONE
from discreet.sources.unlisted import UnlistedSource

EPSILON = Fraction(1)
"""What finding the items costs."""

Person = tuple[tuple[int, str], ...]
"""What somebody touches: in which group, and which item."""

Table = tuple[Touched, ...]
"""What was found in each group of a table."""

_KEY, _LARGEST_DELTA, _REPEATED = "00c0ffee00c0ffee", Fraction(1, 10**3), 6


@dataclass(frozen=True)
class SmallTables:
    """Small tables with all their neighbours.

    Attributes
    ----------
    items
        How many items of a user count.
    adjacency
        What neighbours differ by.
    each_user
        In how many of two groups a user counts, or None without groups.
    """

    items: int
    adjacency: str
    each_user: str | None = None

    def __str__(self) -> str:
        groups = "" if self.each_user is None else f", each user in {self.each_user} of 2 groups"
        return f"l = {self.items}{groups}, {self.adjacency}"

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return 1 if self.each_user is None else 2

    @property
    def shares(self) -> int:
        """Among how many groups epsilon and delta are divided."""
        return 2 if self.each_user == MANY else 1

    @property
    def threshold(self) -> int:
        """The threshold by definition."""
        return defined.least_threshold(EPSILON, _LARGEST_DELTA, self.items, self.adjacency, self.shares)

    @property
    def delta(self) -> Fraction:
        """The delta that this threshold just needs, so that one less is too little."""
        needed = defined.needed_delta(self.threshold, EPSILON, self.items, self.adjacency, self.shares)
        return Fraction(math.ceil(needed * 10**13), 10**13)

    @property
    def terms(self) -> Discovered:
        """How the items are to be found."""
        return Discovered(self.delta, self.items)

    def bases(self) -> list[list[Person]]:
        """The people of some tables: none, or so many that items are just below the threshold, at it, or well above."""
        at, names = self.threshold, self._names
        sizes = [(at - 1, 1), (at, at - 1), (at + 1, at, 1), (3 * at, 3 * at)]
        alone: list[list[Person]] = [
            [((0, item),) for item, n in zip(names, size, strict=False) for _ in range(n)] for size in sizes
        ]
        elsewhere: list[Person] = [((1, names[0]),)] * (at - 1) if self.groups > 1 else []
        # Somebody of several items is the same person in all tables, for whom the same ones count.
        everything: list[Person] = [] if self.each_user == ONE else [tuple((0, item) for item in names)] * 2
        return [[], *(people + elsewhere for people in alone), everything + alone[0]]

    def users(self) -> list[Person]:
        """Every user that may come; the first has no rows."""
        cells = list(product(range(self.groups), self._names))
        return list(chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1)))

    def pair_up(self, tables: Sequence[Table]) -> Iterable[tuple[Table, Table]]:
        """Every table with one that has a user more, or with all that have another one."""
        size = len(self.users())
        for first in range(0, len(tables), size):
            around = tables[first : first + size]
            yield from combinations(around, 2) if self.adjacency == "swap" else ((around[0], one) for one in around[1:])

    def read(self) -> tuple[list[Table], list[Failure]]:
        """What the library finds in every base with every user, and where that is not what the definition says."""
        every_pair = product(enumerate(self.bases()), enumerate(self.users()))
        rows = [self._touch(i, j, base, user) for (i, base), (j, user) in every_pair]
        every = list_touched(self._open(rows))
        read = [tuple(every[at : at + self.groups]) for at in range(0, len(every), self.groups)]
        failures = self._find_miscounted(rows, read)
        if self.each_user is None:
            # Some of them in the way that has no groups.
            alone = [tuple(list_touched(_open_events([(0, *row) for row in each], self.terms))) for each in rows[-2:]]
            failures += self._find_miscounted(rows[-2:], alone)
        return read, failures

    @property
    def _names(self) -> str:
        return "abcd"[: 2 if self.groups > 1 else max(3, self.items + 1)]

    def _touch(self, i: int, j: int, base: list[Person], user: Person) -> list[defined.Touch]:
        """The rows of a table: the people of a base, and a user."""
        # Tables are groups, and so nobody may be in two of them where everybody counts in one.
        named = f"{i}-{j}" if self.each_user == ONE else f"{i}"
        people = [*((f"{named}-{n}", person) for n, person in enumerate(base)), (f"{i}-{j}-new", user)]
        return [(who, group, item) for who, person in people for group, item in person * _REPEATED]

    def _open(self, tables: list[list[defined.Touch]]) -> UnlistedSource:
        rows = [(table, *row) for table, each in enumerate(tables) for row in each]
        keys = list(product(range(len(tables)), range(self.groups)))
        own = ONE if self.each_user == ONE else MANY
        return _open_events(rows, self.terms, by=["table", "land"], groups=keys, each_user=own)

    def _find_miscounted(self, rows: list[list[defined.Touch]], read: list[Table]) -> list[Failure]:
        for touches, table in zip(rows, read, strict=True):
            right = defined.count_people(touches, self.items, _KEY, self.groups, self.each_user == ONE)
            for touched, wanted in zip(table, right, strict=True):
                if {item: (n, score) for item, n, score in touched} != wanted:
                    what = f"{format_table([touched])} are found to count, by definition {wanted}, with {self}"
                    return [Failure("people", what)]
        return []


def _open_events(rows: list[tuple[int, str, int, str]], terms: Discovered, **options: Any) -> UnlistedSource:
    import pyarrow as pa

    from discreet.sources.events.source import events

    table, who, land, what = map(list, zip(*rows, strict=True))
    made = pa.table({"table": table, "who": who, "land": land, "what": what})
    source: UnlistedSource = events(made, user="who", item="what", domain=terms, **options)
    return source


def list_touched(source: UnlistedSource) -> list[Touched]:
    """What a source finds in each group: every item that counts, with both of its numbers."""
    users: list[list[int]] = []

    def keep_all(counts: Ranks, items: Ranks) -> Ranks:
        users.append(np.repeat(counts, items).tolist())
        return np.arange(items.sum())

    found = source.find_items(_KEY, keep_all)
    return [tuple(sorted(zip(each.items, n, each.scores, strict=True))) for each, n in zip(found, users, strict=True)]


def format_table(table: Sequence[Touched]) -> str:
    """What was found in a table, as a report spells it: of each item for how many users it counts, and its score."""
    return " ".join(f"({', '.join(f'{item}: {n} of {score}' for item, n, score in touched)})" for touched in table)
