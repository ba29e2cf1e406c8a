"""Small tables of events with all their neighbours, and how the library and the definition find items in them.

Every user with any items is added to some tables. One query of the library reads all of them; the counts of users, or
their weights, the scores, the noise, the threshold and the probability of keeping an item must be those of the
definition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence.report import Failure
from discreet.exact.arrays import Floats
from discreet.exact.ball import precision
from discreet.mechanisms.partition_selection import PartitionSelection
from discreet.sources.base import MANY, ONE
from discreet.sources.discovered import GAUSSIAN, LAPLACE, Discovered, UnlistedSource

Touched = tuple[tuple[str, int, int], ...]
"""The items of one group: each with the number of users for whom it counts, which may be 0, and its score."""

Person = tuple[tuple[int, str], ...]
"""The touches of one user: groups and items."""

Table = tuple[Touched, ...]
"""The found items of each group of a table."""

EPSILON = Fraction(1)
"""The epsilon of discovery."""

_BITS = 112
"""The precision of balls in bits, more than twice that of a float."""

KEY = "00c0ffee00c0ffee"
"""The key of the hashes."""

_LARGEST_DELTA, _REPEATED = Fraction(1, 10**3), 6
"""The largest delta, and the rows of each touch: several, so that rows differ from users."""

_MOST_ITEMS = 9
"""More items than any small table has."""


@dataclass(frozen=True)
class SmallTables:
    """Small tables with all their neighbours, which one query of the library reads, each table as a group.

    Attributes
    ----------
    items
        The number of items of a user that count.
    adjacency
        The adjacency of the neighbours.
    each_user
        The number of groups of two in which a user counts, or None without groups.
    """

    items: int
    adjacency: str
    each_user: str | None = None

    method: ClassVar[str] = LAPLACE

    def __str__(self) -> str:
        groups = "" if self.each_user is None else f", each user in {self.each_user} of 2 groups"
        return f"l = {self.items}{groups}, {self.adjacency}"

    @property
    def groups(self) -> int:
        """The number of groups."""
        return 1 if self.each_user is None else 2

    @property
    def shares(self) -> int:
        """The number of groups that share epsilon and delta."""
        return 2 if self.each_user == MANY else 1

    @property
    def threshold(self) -> int:
        """The threshold by definition."""
        return definition.least_threshold(EPSILON, _LARGEST_DELTA, self.items, self.adjacency, self.shares)

    @property
    def delta(self) -> Fraction:
        """The delta that this threshold just needs; a threshold of one less needs more."""
        needed = definition.needed_delta(self.threshold, EPSILON, self.items, self.adjacency, self.shares)
        return Fraction(math.ceil(needed * 10**13), 10**13)

    @property
    def new_items_delta(self) -> Fraction | None:
        """The part of delta for the items that one user alone has; None if no part is set aside for them."""
        return None

    @property
    def terms(self) -> Discovered:
        """The terms of discovery."""
        return Discovered(self.delta, self.items, method=self.method)

    def find_wrong_noise(self, laws: KeptLaws) -> tuple[str, str] | None:
        """Return the first check of the noise and the threshold that fails, and what is wrong, or None."""
        made, threshold = laws.discovery.threshold, self.threshold
        if made != threshold:
            return "threshold", f"the threshold is {made}, by definition {threshold},"
        rate = definition.noise_rate(EPSILON, self.items, self.adjacency, self.shares)
        for users in range(threshold + 3):
            chance, right = laws.chance(users), definition.keep_chance(users, rate, threshold)
            if not math.isclose(chance, right, rel_tol=1e-9):
                return "chance", f"an item of {users} people is kept with {chance:.6g}, by definition {right:.6g},"
        return None

    def bases(self) -> list[list[Person]]:
        """Return the users of some tables: none, or enough to bring items just below the threshold, to it, or above."""
        at, names = self.threshold, self._names
        sizes = [(at - 1, 1), (at, at - 1), (at + 1, at, 1), (3 * at, 3 * at)]
        alone: list[list[Person]] = [
            [((0, item),) for item, n in zip(names, size, strict=False) for _ in range(n)] for size in sizes
        ]
        elsewhere: list[Person] = [((1, names[0]),)] * (at - 1) if self.groups > 1 else []
        everything: list[Person] = [] if self.each_user == ONE else [tuple((0, item) for item in self._of_busy)] * 2
        # Of the items of one user alone, some count for nobody until another user comes.
        few = [everything[:1]] if everything else []
        return [[], *(people + elsewhere for people in alone), everything + alone[0], *few]

    def users(self) -> list[Person]:
        """Return every user that may come; the first has no rows."""
        cells = list(product(range(self.groups), self._names))
        return list(chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1)))

    def pair_up(self, tables: Sequence[Table]) -> Iterable[tuple[Table, Table]]:
        """Yield every table with each one that has a user more, or pairs that differ by a swap."""
        size = len(self.users())
        for first in range(0, len(tables), size):
            around = tables[first : first + size]
            yield from combinations(around, 2) if self.adjacency == "swap" else ((around[0], one) for one in around[1:])

    def read(self) -> tuple[list[Table], list[Failure]]:
        """Return the items that the library finds in every base with every user, and departures from the definition."""
        rows: list[list[definition.Touch]] = []
        for (i, base), (j, user) in product(enumerate(self.bases()), enumerate(self.users())):
            # Each table is a group.
            name = f"{i}-{j}" if self._is_in_one_table else f"{i}"
            people = [*((f"{name}-{n}", person) for n, person in enumerate(base)), (f"{i}-{j}-new", user)]
            rows.append([(who, group, item) for who, person in people for group, item in person * _REPEATED])
        source = open_events(
            [(table, *row) for table, each in enumerate(rows) for row in each],
            self.terms,
            by=["table", "land"],
            groups=list(product(range(len(rows)), range(self.groups))),
            each_user=ONE if self.each_user == ONE else MANY,
        )
        read, failures = self._judge(rows, source)
        if self.each_user is None:
            # The last tables again, by the query without groups.
            for each in rows[-2:]:
                failures += self._judge([each], open_events([(0, *row) for row in each], self.terms))[1]
        return read, failures

    @property
    def _names(self) -> str:
        return "abcd"[: 2 if self.groups > 1 else max(3, self.items + 1)]

    @property
    def _is_in_one_table(self) -> bool:
        """True if no user may be in two tables: where every user counts in one group."""
        return self.each_user == ONE

    @property
    def _of_busy(self) -> str:
        """The items of a user of many. The user is the same in all tables, so that the same of them count."""
        return self._names

    def _judge(self, rows: list[list[definition.Touch]], source: UnlistedSource) -> tuple[list[Table], list[Failure]]:
        """Return the items that a source finds in some tables, and the first departure from the definition."""
        right = [
            wanted
            for touches in rows
            for wanted in definition.count_people(
                touches, self.items, KEY, self.groups, self.each_user == ONE, self.terms.is_weighted
            )
        ]
        found, failures = list[Touched](), list[Failure]()
        for touched, same, largest, wanted in zip(*list_touched(source), right, strict=True):
            counting = {item: numbers for item, numbers in wanted.items() if numbers[0]}
            if not {item: (n, score) for item, n, score in touched} == counting == {i: (n, x) for i, n, x in same}:
                what = f"{format_table([touched])} are found to count, by definition {wanted}, with {self}"
                failures.append(Failure("people", what))
            if largest != sorted((score for _, score in wanted.values()), reverse=True):
                what = f"{largest} are found to be the scores, by definition of {wanted}, with {self}"
                failures.append(Failure("people", what))
            # An item that counts for nobody has no name in what is read. It is there if its score is.
            left, uncounted = Counter(largest) - Counter(score for _, _, score in touched), list[tuple[str, int, int]]()
            for item, (n, score) in sorted(wanted.items()):
                if n == 0 and left[score] > 0:
                    left[score] -= 1
                    uncounted.append((item, 0, score))
            found.append((*touched, *uncounted))
        tables = [tuple(found[at : at + self.groups]) for at in range(0, len(found), self.groups)]
        return tables, failures[:1]


@dataclass(frozen=True)
class WeightedTables(SmallTables):
    """Small tables of which the items are found by Gaussian noise on sums of weights."""

    method: ClassVar[str] = GAUSSIAN

    def __str__(self) -> str:
        return f"weights, {super().__str__()}"

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise by definition."""
        return definition.least_sigma(EPSILON, self.delta, self.adjacency)

    @property
    def threshold(self) -> int:
        """The number of users of one item each that reach the threshold, by definition."""
        return math.ceil(self._cutoff(self.sigma) / 1024)

    @property
    def delta(self) -> Fraction:
        """The delta of discovery."""
        return _LARGEST_DELTA

    @property
    def new_items_delta(self) -> Fraction | None:
        return definition.new_items_delta(self.delta, self.adjacency)

    def find_wrong_noise(self, laws: KeptLaws) -> tuple[str, str] | None:
        made = laws.discovery.to_dict()
        sigma, right = float(Fraction(made["sigma"])), self.sigma
        # sigma is a rational of 24 bits that is rounded up.
        if not right * (1.0 - 1e-9) <= sigma <= right * (1.0 + 2.0**-22):
            return "sigma", f"the noise has the deviation {sigma:.9g}, by definition {right:.9g},"
        cutoff = self._cutoff(sigma)
        if Fraction(made["threshold"]) != Fraction(cutoff, 1024):
            return "threshold", f"the threshold is {made['threshold']}, by definition {Fraction(cutoff, 1024)},"
        for weight in (0, 1, 591, 724, 1024, cutoff - 1, cutoff, cutoff + 1, cutoff + 1024, 2 * cutoff):
            chance, other = laws.chance(weight), definition.weighted_keep_chance(weight, sigma, cutoff)
            if not math.isclose(chance, other, rel_tol=1e-9):
                return "chance", f"an item of weight {weight} is kept with {chance:.6g}, by definition {other:.6g},"
        return None

    def _cutoff(self, sigma: float) -> int:
        """Return the threshold in 1024ths by definition."""
        return definition.least_weighted_threshold(sigma, self.delta, self.items * self.shares, self.adjacency)

    @property
    def _is_in_one_table(self) -> bool:
        """True: the weights of a user are those of all groups together, and each table is a group."""
        return True

    @property
    def _of_busy(self) -> str:
        """The items of a user of many: as many as count, because the user has another name in each table."""
        return self._names[: self.items]


@dataclass(frozen=True, eq=False)
class KeptLaws:
    """The probability with which the library keeps an item, by its number of users or the sum of their weights."""

    discovery: PartitionSelection

    @cached_property
    def _known(self) -> dict[int, float]:
        return {}

    def chance(self, users: int) -> float:
        """Return the probability of keeping an item."""
        if users not in self._known:
            with precision(_BITS):
                self._known[users] = float(self.discovery.keep_probability(users).mid())
        return self._known[users]

    def compare(self, table: Sequence[Touched], other: Sequence[Touched]) -> tuple[Floats, Floats]:
        """Return the probabilities of all kept sets, in all groups, from two tables."""
        here, there = np.ones(1), np.ones(1)
        for inside, outside in zip(table, other, strict=True):
            users, others = ({item: n for item, n, _ in touched} for touched in (inside, outside))
            for item in users | others:
                p, q = (self.chance(each[item]) if item in each else 0.0 for each in (users, others))
                if p == q == 0.0:
                    continue
                here, there = (np.outer(*pair).ravel() for pair in ((here, [1 - p, p]), (there, [1 - q, q])))
        return here, there


def list_touched(source: UnlistedSource) -> tuple[list[Touched], list[Touched], list[list[int]]]:
    """Return the items that a source finds in each group, with both of their numbers.

    They come twice, by the query without and with the items that count for nobody, and then the scores of all items.
    """
    found, largest = list[list[Touched]](), list[list[int]]()
    for with_uncounted in (False, True):
        with source.snapshot(KEY, with_uncounted=with_uncounted) as snapshot:
            runs = snapshot.runs()
            each_found = snapshot.items([np.arange(items.sum()) for _, items in runs])
            largest = snapshot.largest_scores(_MOST_ITEMS) if with_uncounted else largest
        users = [np.repeat(counts, items).tolist() for counts, items in runs]
        found.append(
            [
                tuple(sorted(zip(each.items, n, each.scores, strict=True)))
                for each, n in zip(each_found, users, strict=True)
            ]
        )
    return found[0], found[1], largest


def format_table(table: Sequence[Touched]) -> str:
    """Return the text of a table: for each item the number of its users, and its score."""
    return " ".join(f"({', '.join(f'{item}: {n} of {score}' for item, n, score in touched)})" for touched in table)


def open_events(rows: list[tuple[int, str, int, str]], terms: Discovered, **options: Any) -> UnlistedSource:
    """Return the source of some rows of tables, users, groups and items."""
    import pyarrow as pa

    from discreet.sources.events.source import events

    table, who, land, what = map(list, zip(*rows, strict=True))
    made = pa.table({"table": table, "who": who, "land": land, "what": what})
    source: UnlistedSource = events(made, user="who", item="what", domain=terms, **options)
    return source
