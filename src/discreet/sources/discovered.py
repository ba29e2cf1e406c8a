"""`discreet.discovered`: items that nobody listed are to be found, and on which terms, as the caller says it."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Ranks
from discreet.privacy import Number, Sensitivity, positive, whole_number
from discreet.sources.base import AnySource

if TYPE_CHECKING:
    from discreet.mechanisms.discovery import Discovery


KINDS = ("string", "integer", "date", "boolean")
"""What items can be."""

EXACT = "exact"
SPELLINGS: dict[str, tuple[bool, bool]] = {
    EXACT: (False, False),
    "casefold": (True, False),
    "trim": (False, True),
    "both": (True, True),
}
"""What makes two spellings one item: whether capitals from A to Z are small letters, and whether spaces at the ends of
a text are left out. More would not mean the same on every engine."""


@dataclass(frozen=True)
class Discovered:
    """A domain that is to be found in the events; `discovered` makes one.

    Attributes
    ----------
    delta, max_items_per_user
        With what chance the promise of epsilon may fail, and how many items of a user count for finding them.
    epsilon
        The part of epsilon for finding them, or None for the usual one.
    kind, spelling
        What the items are, and which spellings of one are the same.
    """

    delta: Fraction
    max_items_per_user: int
    epsilon: Fraction | None = None
    kind: str = "string"
    spelling: str = EXACT

    def plan(
        self, k: int, epsilon: Number, *, adjacency: str = "add-remove", max_groups_per_user: int = 1
    ) -> Discovery:
        """How the items of a release will be found; all of it is public, and nothing is read.

        Parameters
        ----------
        k, epsilon, adjacency
            What `top_k` will be given; epsilon without what counts cost.
        max_groups_per_user
            In how many groups a user may count.

        Examples
        --------
        >>> import discreet
        >>> found = discreet.discovered(delta="1e-8", max_items_per_user=3).plan(k=20, epsilon=1)
        >>> found.threshold
        198
        """
        from discreet.mechanisms.discovery import make_discovery

        return make_discovery(
            self.delta, self.max_items_per_user, positive(epsilon, "epsilon"), whole_number(k, "k", 1),
            epsilon=self.epsilon, adjacency=adjacency, max_groups_per_user=max_groups_per_user,
        )  # fmt: skip

    def description(self) -> dict[str, Any]:
        """All of it but the privacy parameters, which the guarantee has, in terms that JSON can hold."""
        return {"discovered": self.kind, **({} if self.spelling == EXACT else {"spelling": self.spelling})}


def discovered(
    delta: Number,
    max_items_per_user: int,
    epsilon: Number | None = None,
    kind: str = "string",
    spelling: str = EXACT,
) -> Discovered:
    """The domain of `discreet.events` where there is no public list: items are found in the events, for a delta.

    An item is found where enough people touched it, about as many as `release.guarantee.threshold` says;
    docs/discovery.md has more.

    Parameters
    ----------
    delta
        With this chance at most the promise of epsilon may fail; far below one over the number of people, such as
        "1e-8", and at most 1e-3.
    max_items_per_user
        How many items of a user count for finding them. A user who has more is not refused: which of them count is
        decided by a hash. The more count, the more people an item needs. The scores of what is found count all users.
    epsilon
        How much of the release's epsilon is for finding the items. By default a quarter, and up to a half where many
        items of a user count beside k.
    kind
        What the items are: "string", "integer", "date" or "boolean". A cell that is none is no item.
    spelling
        Which texts are one item: "exact", none but equal ones; "casefold", those that differ in capitals from A to Z;
        "trim", those that differ in spaces at their ends; or "both".

    Returns
    -------
    Discovered
        What `discreet.events` takes as a domain.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> messages = ["disk full"] * 300 + ["timeout"] * 200 + ["the password is hunter2"]
    >>> logs = pyarrow.table({"device": range(501), "message": messages})
    >>> domain = discreet.discovered(delta="1e-8", max_items_per_user=1)
    >>> source = discreet.events(logs, user="device", item="message", domain=domain)
    >>> release = discreet.top_k(source, k=3, epsilon=4)
    >>> release.items, release.d, release.asked
    (['disk full', 'timeout'], None, 3)
    >>> release.guarantee.epsilon, float(release.guarantee.delta), release.guarantee.threshold
    (Fraction(4, 1), 1e-08, 15)
    """
    from discreet.mechanisms.discovery import check_delta, delta_warning

    limit = whole_number(max_items_per_user, "max_items_per_user", 1, 2**31, "2^31")
    part = None if epsilon is None else positive(epsilon, "epsilon of discovered")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidValueError(f"kind must be {_join(KINDS)}, not {quote(kind)}")
    if not isinstance(spelling, str) or spelling not in SPELLINGS:
        raise InvalidValueError(f"spelling must be {_join(SPELLINGS)}, not {quote(spelling)}")
    if spelling != EXACT and kind != "string":
        raise InvalidValueError(f"spelling must be left out unless kind is 'string', and kind is {kind!r}")
    found = Discovered(check_delta(delta), limit, part, kind, spelling)
    warning = delta_warning(found.delta)
    if warning is not None:
        warnings.warn(warning, UserWarning, stacklevel=2)
    return found


def refuse_discovered(argument: str) -> InvalidTypeError:
    """The error about items that nobody listed where a public list is needed."""
    return InvalidTypeError(
        f"{argument} must be of a public list of items here, not of discreet.discovered: which items there are is "
        "known only after they were found, and is released with the top-k alone"
    )


def _join(choices: Any) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}"


# Scored items that nobody listed: a source of which not even the items are known before they are found.
#
# What a source with a public list answers, its size or its tally, is private here. So it is a kind of its own, which
# gives how many items count for how many users, and after that the items that were drawn to be kept.


class FoundItems(NamedTuple):
    """The items that were kept, and of each the score among all users, in whole steps of the grid."""

    items: list[Any]
    scores: list[int]


class UnlistedSnapshot(Protocol):
    """The items that count for somebody at one time, in each group; where there are no groups, in one."""

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        """Return for each group a run-length encoding: numbers of users, and how many items count for so many."""

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        """Return the items at some ranks of each group."""


class UnlistedSource(AnySource, ABC):
    """Scored items that nobody listed.

    Attributes
    ----------
    terms
        How they are to be found.
    sensitivity, adjacency, grid
        How far adding one user can move a score, what neighbours differ by, and what a score is a multiple of.
    """

    terms: Discovered
    sensitivity: Sensitivity
    adjacency: str
    grid: Fraction

    @property
    def delta(self) -> Fraction:
        return self.terms.delta

    @abstractmethod
    def snapshot(self, key: str) -> AbstractContextManager[UnlistedSnapshot]:
        """Hold one snapshot of the items until the block ends.

        Parameters
        ----------
        key
            The key of the hash that decides which items of a user count. It need not be secret.
        """


class UnlistedGroups(UnlistedSource):
    """Scored items that nobody listed, in each of several public groups; as `GroupedSource` has them.

    Attributes
    ----------
    keys, names
        The groups in the order of the public list, and the names of the columns that make one.
    each_user, groups_per_user
        Whether a user counts in one group or in many, and in how many at most.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    each_user: str
    groups_per_user: int
