"""The interface of all sources: scored items of a public domain, scores by group, and their snapshots."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Ranks
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import MANY as MANY
from discreet.privacy import ONE as ONE
from discreet.privacy import Expressions, Sensitivity, whole_number
from discreet.text import decimal, make_html_table, make_html_view, printable

_WORDS = {
    "where": "where",
    "during": "during",
    "label": "label",
    "max_items_per_user": "items of a user",
    "by": "by",
    "each_user": "each user",
    "max_groups_per_user": "groups of a user",
    "spelling": "spelling",
}
"""The parts of a description that a summary shows unchanged, and their names there."""


class OpeningTime:
    """The time since `begun`, by `time.monotonic`, that opening a source took and the padding of one release counts."""

    def __init__(self, begun: float) -> None:
        self._seconds = [time.monotonic() - begun]

    def take(self) -> float:
        """Return the seconds on the first call, and 0 afterwards."""
        # Popping is atomic, so that only one of two threads gets the time.
        try:
            return self._seconds.pop()
        except IndexError:
            return 0.0


class AnySource:
    """The base of every source: a public question, and data that are held and let go."""

    opening: OpeningTime | None = None
    """The time that opening the source took; None if that does not depend on the data."""

    expressions: Expressions = ()
    """The row expressions that make columns of the events, which a release states."""

    def description(self) -> dict[str, Any]:
        """Return the public question that the scores answer, as JSON data; never the data."""
        return {}

    def notes(self) -> list[str]:
        """Return caveats about the scores, in sentences that depend on the public question alone."""
        return []

    @property
    def delta(self) -> Fraction:
        """The delta that finding the items costs: 0 for a public list."""
        return Fraction(0)

    def other_readings(self) -> Iterator[dict[str, Any]]:
        """Yield terms of a request with other readings of the floats among the source's privacy parameters."""
        return iter(())

    def _repr_html_(self) -> str:
        """Return the notebook view of the public facts."""
        rows = make_html_table(list(summarize_source(self).items()))
        return make_html_view("Scored items, of which nothing is read before a release", rows, self.notes())

    def probe(self) -> None:
        """Raise if a release would fail for a public reason; called before a ledger is charged."""

    def opening_seconds(self) -> float:
        """Return the seconds that opening took on the first call, and 0 afterwards, for one release to count."""
        return 0.0 if self.opening is None else self.opening.take()

    def exclusive(self) -> AbstractContextManager[Any]:
        """Return a context that keeps other threads from taking a snapshot between the tally and `close`."""
        return nullcontext()

    def close(self) -> None:
        """Let go of the snapshot; called once the items are known, or after an error."""


def refuse_curve() -> InvalidTypeError:
    """Return the error about scores without items where items are needed."""
    return InvalidTypeError("scores must have items to release, and a Sketch has none: it is for planning a release")


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """The scores of a source at one time, valid inside the block of `Source.snapshot`."""

    source: Source
    tally: Tally

    def items(self, selection: Selection) -> list[Any] | Ranks:
        """Return the labels of a selection, as an array if they are positions; draw the ranks that it leaves open."""
        return [] if selection.is_empty else self.source.draw_items(self.tally, selection)


class Source(AnySource, ABC):
    """Scored items of a public domain. The tally and the items come from one snapshot."""

    d: int
    """The number of items in the public domain."""

    sensitivity: Sensitivity | None = None
    """The sensitivity of adding one user, or None if the caller has to state it."""

    adjacency: str | None = None
    """The adjacency, or None if the caller has to state it."""

    grid: Fraction | None = None
    """The public step that all scores are whole multiples of; None if unknown."""

    between_steps: bool = False
    """True if scores may lie between the steps of the grid; released scores are then rounded to it."""

    max_items_per_user: int | None = None
    """The contribution bound in items, or None if one user can move all scores."""

    fractional: bool = False
    """True if scores are declared as numbers that need not be whole: the caller must then give the sensitivity."""

    has_items: ClassVar[bool] = True
    """False for a curve of scores without items, which serves for planning alone."""

    typed: bool = False
    """True if all scores have one machine type, so that their number determines how long a release takes."""

    @abstractmethod
    def tally(self) -> Tally:
        """Return the scores in descending order, run-length encoded."""

    @abstractmethod
    def items(self, ranks: Ranks) -> list[Any]:
        """Return the labels of the items at these ranks of the last tally, in the order of the ranks."""

    def draw_items(self, tally: Tally, selection: Selection) -> list[Any] | Ranks:
        """Return the labels of a selection, as an array if they are positions; draw the ranks that it leaves open.

        A source without a snapshot of its own finds the items by the tally.
        """
        return self.items(selection.draw_ranks())

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Hold one snapshot of the scores, from which the tally and the items both come, until the block ends."""
        with self.exclusive():
            try:
                yield Snapshot(self, self.tally())
            finally:
                self.close()

    def freeze(self) -> Source:
        """Return a source whose scores nobody else can change; `self` if they are not held in memory."""
        return self

    @abstractmethod
    def every_item(self) -> list[Any]:
        """Return the labels of the whole domain, in any order, without reading the scores."""


class GroupedSnapshot(Protocol):
    """The scores of all groups at one time."""

    def tallies(self) -> Iterator[Tally]:
        """Yield the tally of each group, in the order of the source."""

    def pick(self, selection: Selection) -> Any:
        """Draw the ranks that a selection of the last tally leaves open, and return a pick for `items`."""

    def items(self, picks: list[Any]) -> list[list[Any] | Ranks]:
        """Return the labels of the pick of each group, as an array if they are positions."""


class GroupedSource(AnySource, ABC):
    """Scored items in each of several public groups, from one snapshot.

    The contribution bound is stated once for all groups: a user is in one group ("one"), or in several ("many").

    Attributes
    ----------
    keys
        The groups, in the order of the public list; tuples if several columns make a group.
    names
        The names of the columns that make a group, for the header of a table.
    each_user
        "one" if the rows of a user count in one group only, "many" if they may count in several.
    groups_per_user
        The contribution bound in groups.
    members
        The public facts about each group; all groups of events share one member.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    each_user: str
    groups_per_user: int
    members: Sequence[Source]

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[GroupedSnapshot]:
        """Hold one snapshot of the scores of all groups until the block ends."""

    def __repr__(self) -> str:
        bound = f", max_groups_per_user={self.groups_per_user}" if self.each_user == MANY else ""
        by = " and ".join(map(printable, self.names))
        return f"{type(self).__name__}({len(self.keys):,} groups by {by}, each_user={self.each_user!r}{bound})"


def check_each_user(each_user: Any, max_groups_per_user: Any, groups: int) -> int:
    """Return the contribution bound in groups from the caller's words, which have no default."""
    if not isinstance(each_user, str) or each_user not in (ONE, MANY):
        said = ", and has no default" if each_user is None else f", not {quote(each_user)}"
        raise InvalidValueError(f"each_user must be 'one' or 'many'{said}: {explain_each_user(str(groups))}")
    if each_user == ONE:
        if max_groups_per_user is not None:
            raise InvalidValueError("max_groups_per_user must be left out with each_user='one', where it is 1")
        return 1
    if max_groups_per_user is None:
        return groups
    return min(whole_number(max_groups_per_user, "max_groups_per_user", 1), groups)


def explain_each_user(groups: str, bound: str = "max_groups_per_user") -> str:
    """Explain the meaning and cost of "one" and "many"; `bound` is the caller's name of that argument."""
    return (
        f"with 'one' a user counts in one group alone, and each of the {groups} groups has the whole of epsilon. "
        f"With 'many' a user may count in several, so that epsilon 1 in each costs {groups}, or give each 1/{groups}; "
        f"{bound} bounds how many"
    )


def summarize_source(source: Any) -> dict[str, str]:
    """Return the public facts about a source in rows for people, by their names.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> loans = pyarrow.table({"who": [1, 2], "book": ["emma", "dune"]})
    >>> source = discreet.events(loans, user="who", item="book", domain=["emma", "dune", "ulysses"])
    >>> summarize_source(source)["items"], summarize_source(source)["adjacency"]
    ('3, a public list', 'add-remove')
    """
    described = source.description()
    rows = {role: printable(name) for role, name in described.get("columns", {}).items()}
    for part, value in described.items():
        if part in _WORDS and value is not None:
            parts = value if isinstance(value, list | tuple) else [value]
            rows[_WORDS[part]] = " and ".join(map(printable, parts))
    if described.get("clip") is not None:
        low, high, unit = described["clip"]
        rows["clip"] = f"{low} to {high} steps of {unit}"
    if hasattr(source, "terms"):
        rows["items"] = f"found in the events, for delta {decimal(source.delta)}"
    else:
        sizes = sorted({member.d for member in source.members} if hasattr(source, "members") else {source.d})
        size = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        rows["items"] = f"{size}, a public list"
    if hasattr(source, "keys"):
        rows["groups"] = f"{len(source.keys):,}"
    if getattr(source, "adjacency", None) is not None:
        rows["adjacency"] = source.adjacency
    moved = getattr(source, "sensitivity", None)
    if moved is not None:
        rows["one user"] = f"moves a score down by at most {decimal(moved.down)} and up by at most {decimal(moved.up)}"
    return rows
