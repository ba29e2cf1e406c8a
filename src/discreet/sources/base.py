"""What every source answers, whatever its engine."""

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
from discreet.privacy import Sensitivity, whole_number
from discreet.text import decimal, printable


class OpeningTime:
    """How long a source took to open: reading what the caller holds takes as long as the data ask for."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    def add_since(self, begun: float) -> None:
        """Notes the time since then, as counted by `time.monotonic`."""
        self._seconds.append(time.monotonic() - begun)

    def take(self) -> float:
        """The seconds, the first time this is asked, and then 0."""
        # Popping is one step, so that of two threads one counts it in.
        try:
            return self._seconds.pop()
        except IndexError:
            return 0.0


class AnySource:
    """What every source has, whatever its items are: a public question, and data that are held and let go."""

    def description(self) -> dict[str, Any]:
        """What is public about the question that the scores answer, in terms that JSON can hold; never the data."""
        return {}

    def notes(self) -> list[str]:
        """What has to be known to trust the scores, in sentences that depend on what was asked and declared alone."""
        return []

    @property
    def delta(self) -> Fraction:
        """The delta that finding the items costs: 0 where somebody listed them."""
        return Fraction(0)

    def _repr_html_(self) -> str:
        """The notebook view: what is public about it."""
        from discreet.html_text import make_html_table, make_html_view

        rows = make_html_table(list(summarize_source(self).items()))
        return make_html_view("Scored items, of which nothing is read before a release", rows, self.notes())

    def probe(self) -> None:
        """Raise where a release would fail for a public reason; called before a ledger is charged for one."""

    def opening_seconds(self) -> float:
        """How long the source took to open, the first time this is asked, and then 0: for one release to count in."""
        return 0.0

    def exclusive(self) -> AbstractContextManager[Any]:
        """Held from the tally until the source is closed, so that no other thread takes a snapshot in between."""
        return nullcontext()

    def close(self) -> None:
        """Lets go of what the tally made; called once the items are known, or something failed."""


def refuse_curve() -> InvalidTypeError:
    """The error about scores that have no items, where items are needed."""
    return InvalidTypeError("scores must have items to release, and a Sketch has none: it is for planning a release")


@dataclass(frozen=True)
class Snapshot:
    """The scores of a source at one time: valid inside the block of `Source.snapshot`."""

    source: Source
    tally: Tally

    def items(self, selection: Selection) -> list[Any] | Ranks:
        """Return the labels of a selection, in an array where they are positions; draw what it leaves open."""
        return [] if selection.is_empty else self.source.draw_items(self.tally, selection)


class Source(AnySource, ABC):
    """Scored items of a public domain. The tally and the items come from one snapshot."""

    sensitivity: Sensitivity | None = None
    """How far adding one user can move a score, or None where the caller has to say."""

    adjacency: str | None = None
    """What two neighbouring inputs differ by, or None where the caller has to say."""

    grid: Fraction | None = None
    """What all scores are whole multiples of, as far as that is public; None where it is not known."""

    between_steps: bool = False
    """Whether scores may be between the steps of the grid, to which what is released of them is rounded."""

    max_items_per_user: int | None = None
    """How many scores one user can move at most, or None where it may be all of them."""

    fractional: bool = False
    """True if scores are declared as numbers that need not be whole: then the caller must give the sensitivity."""

    has_items: ClassVar[bool] = True
    """Whether the items behind the scores are known: a curve of scores has none, and is for planning alone."""

    typed: bool = False
    """Whether all scores have one numeric type of the machine, so that their number says how long a release takes."""

    @property
    @abstractmethod
    def d(self) -> int:
        """How many items the public domain has."""

    @abstractmethod
    def tally(self) -> Tally:
        """The scores in descending order."""

    @abstractmethod
    def items(self, ranks: Ranks) -> list[Any]:
        """Return the labels of the items at these ranks of the last tally, in the order of the ranks."""

    def draw_items(self, tally: Tally, selection: Selection) -> list[Any] | Ranks:
        """Return the labels of a selection of a tally, in an array where they are positions; draw what it leaves open.

        A source that keeps no snapshot of its own finds the items by the tally.
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
        """Return a source whose scores nobody else can change: the same where they are not held in memory."""
        return self

    @abstractmethod
    def every_item(self) -> list[Any]:
        """The labels of the whole domain, in any order; the scores are not read."""


# Scores by group: one list of scored items for each of several public groups, such as countries or months.
#
# What one user can do to them all is said once, for the whole: a user is in one group ("one"), or in several ("many").


class GroupedSnapshot(Protocol):
    """The scores of all groups at one time."""

    def tallies(self) -> Iterator[Tally]:
        """Yield the tally of each group, in the order of the source."""

    def pick(self, selection: Selection) -> Any:
        """Draw what a selection of the group of the last tally leaves open, and return what `items` needs of it."""

    def items(self, picks: list[Any]) -> list[list[Any] | Ranks]:
        """Return the labels of what was picked in each group, in an array where they are positions."""


class GroupedSource(AnySource, ABC):
    """Scored items in each of several public groups, from one snapshot.

    Attributes
    ----------
    keys
        The groups, in the order of the public list; tuples where several columns make a group.
    names
        The names of the columns that make a group, for the header of a table.
    each_user
        "one" where a user's rows count in one group alone, "many" where they may count in several.
    groups_per_user
        In how many groups at most a user counts.
    members
        For each group what is public about it; of events all are the same.
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
        """What is public about it, in short."""
        bound = f", max_groups_per_user={self.groups_per_user}" if self.each_user == MANY else ""
        by = " and ".join(map(printable, self.names))
        return f"{type(self).__name__}({len(self.keys):,} groups by {by}, each_user={self.each_user!r}{bound})"


def check_each_user(each_user: Any, max_groups_per_user: Any, groups: int) -> int:
    """In how many of so many groups a user counts, by what the caller says of it, for which there is no default."""
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
    """What the two kinds mean and cost for so many groups; `bound` is what the caller knows that argument as."""
    return (
        f"with 'one' a user counts in one group alone, and each of the {groups} groups has the whole of epsilon. "
        f"With 'many' a user may count in several, so that epsilon 1 in each costs {groups}, or give each 1/{groups}; "
        f"{bound} bounds how many"
    )


# What is public about a source, in rows for people: what was asked and declared, and nothing that was counted.

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
"""The parts of a description that are shown as they are, and what they are called."""


def summarize_source(source: Any) -> dict[str, str]:
    """The rows, by their names.

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
    rows |= {_WORDS[part]: _spell(value) for part, value in described.items() if part in _WORDS and value is not None}
    if described.get("clip") is not None:
        low, high, unit = described["clip"]
        rows["clip"] = f"{low} to {high} steps of {unit}"
    rows["items"] = _describe_items(source)
    if hasattr(source, "keys"):
        rows["groups"] = f"{len(source.keys):,}"
    if getattr(source, "adjacency", None) is not None:
        rows["adjacency"] = source.adjacency
    moved = getattr(source, "sensitivity", None)
    if moved is not None:
        rows["one user"] = f"moves a score down by at most {decimal(moved.down)} and up by at most {decimal(moved.up)}"
    return rows


def _spell(value: Any) -> str:
    return " and ".join(map(printable, value)) if isinstance(value, list | tuple) else printable(value)


def _describe_items(source: Any) -> str:
    """How many items there are, where they are listed."""
    if hasattr(source, "terms"):
        return f"found in the events, for delta {decimal(source.delta)}"
    sizes = {member.d for member in source.members} if hasattr(source, "members") else {source.d}
    listed = f"{min(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    return f"{listed}, a public list"
