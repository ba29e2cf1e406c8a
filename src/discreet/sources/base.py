"""What every source answers, whatever its engine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InvalidTypeError
from discreet.exact.arrays import Ranks
from discreet.privacy import Sensitivity
from discreet.selection import Selection
from discreet.tally import Tally

Chosen = tuple[list[Any] | Ranks, list[Fraction]]
"""The items that were chosen, in an array where they are positions, and their scores where they were asked for."""


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
        from discreet.sources.source_summary import summarize_source

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

    def select_items(self, choose: Callable[[Tally], Selection], scored: bool) -> Chosen:
        """What `choose` selects of the tally, from one snapshot; where `scored`, with the exact score of each item."""
        with self.exclusive():
            try:
                tally = self.tally()
                return self.draw_chosen(tally, choose(tally), scored)
            finally:
                self.close()

    def draw_chosen(self, tally: Tally, selection: Selection, scored: bool) -> Chosen:
        """What was selected of the tally, while that is there."""
        if selection.is_empty:
            return [], []
        if not scored:
            return self.draw_items(tally, selection), []
        ranks = selection.draw_ranks()
        items = self.draw_items(tally, Selection(ranks))
        labels = items.tolist() if isinstance(items, np.ndarray) else items
        return labels, [tally.exact(rank) for rank in ranks.tolist()]

    def snapshot(self) -> Source:
        """Return a source whose scores nobody else can change: the same where they are not held in memory."""
        return self

    @abstractmethod
    def every_item(self) -> list[Any]:
        """The labels of the whole domain, in any order; the scores are not read."""
