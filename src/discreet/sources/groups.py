"""Scores by group: one list of scored items for each of several public groups, such as countries or months.

What one user can do to them all is said once, for the whole: a user is in one group ("one"), or in several ("many").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.privacy import MANY as MANY
from discreet.privacy import ONE as ONE
from discreet.privacy import whole_number
from discreet.selection import Selection
from discreet.sources.base import AnySource, Chosen, Source
from discreet.tally import Tally
from discreet.text import printable

Choose = Callable[[int, Tally], Selection]
"""Selects ranks of a group, given its index and its tally."""


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
    def select_items(self, choose: Choose, scored: bool) -> list[Chosen]:
        """What `choose` selects in each group, all from one snapshot, which is let go again.

        Parameters
        ----------
        choose
            Called with the index and the tally of each group, in order. What a selection leaves open is drawn before
            the next group's turn.
        scored
            Whether to give the exact score of each item too.
        """

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
