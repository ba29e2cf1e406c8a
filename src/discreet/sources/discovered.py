"""Partition selection as the caller requests it (`discreet.discovered`), and sources of items that nobody listed.

The size and the tally of such a source are private, so it has an interface of its own: the number of users for whom
each item counts, or the sum of their weights, and then the items that were drawn to be kept.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Ranks
from discreet.privacy import Number, Sensitivity, other_readings, positive, whole_number
from discreet.sources.base import AnySource

if TYPE_CHECKING:
    from discreet.mechanisms.discovery import DiscoveryComparison
    from discreet.mechanisms.partition_selection import PartitionSelection


KINDS = ("string", "integer", "date", "boolean")
"""The types that items can have."""

AUTO, GAUSSIAN, LAPLACE = METHODS = ("auto", "gaussian", "laplace")
"""The methods of partition selection; the first, a choice between noises, is the default without a bound or a part."""

MOST_ITEMS = 100
"""The contribution bound in items of Gaussian noise, if none is given."""

EXACT, FOLD = "exact", "fold"
ASCII, UNICODE = "A to Z", "Unicode"
SPELLINGS: dict[str, tuple[str | None, bool]] = {
    EXACT: (None, False),
    "casefold": (ASCII, False),
    "trim": (None, True),
    "both": (ASCII, True),
    FOLD: (UNICODE, True),
}
"""The rules by which spellings are equal: (the letters whose case is folded, True if spaces at the ends are trimmed).
The case of Unicode is that of `sources/events/case_folding`, because engines do not agree on their own."""


@dataclass(frozen=True)
class Discovered:
    """A domain to be found in the events; `discovered` makes one.

    Attributes
    ----------
    delta, max_items_per_user
        The delta, and the contribution bound in items for finding them.
    epsilon
        The part of epsilon for finding the items, or None for the default.
    kind, spelling
        The type of the items, and the rule by which spellings are equal.
    method
        The method that decides which items are found, a name in METHODS.
    """

    delta: Fraction
    max_items_per_user: int
    epsilon: Fraction | None = None
    kind: str = "string"
    spelling: str = EXACT
    method: str = GAUSSIAN

    @property
    def is_weighted(self) -> bool:
        """True if the method adds up weights of users in place of numbers of users."""
        return self.method != LAPLACE

    @property
    def has_choice(self) -> bool:
        """True if the data decide privately between two methods."""
        return self.method == AUTO

    def without_choice(self) -> Discovered:
        """Return the same terms with Gaussian noise in place of a choice."""
        return replace(self, method=GAUSSIAN) if self.has_choice else self

    def plan(
        self, k: int, epsilon: Number, *, adjacency: str = "add-remove", max_groups_per_user: int = 1
    ) -> PartitionSelection:
        """Return the partition selection of a release; all of it is public, and nothing is read.

        Parameters
        ----------
        k, epsilon, adjacency
            The arguments of `top_k`; epsilon without the cost of counts.
        max_groups_per_user
            The contribution bound in groups.

        Examples
        --------
        >>> import discreet
        >>> found = discreet.discovered(delta="1e-8").plan(k=20, epsilon=1)
        >>> found.threshold
        47
        """
        from discreet.mechanisms.discovery import make_discovery

        return make_discovery(
            self.delta, self.max_items_per_user, positive(epsilon, "epsilon"), whole_number(k, "k", 1),
            epsilon=self.epsilon, adjacency=adjacency, max_groups_per_user=max_groups_per_user, method=self.method,
        )  # fmt: skip

    def compare(
        self, k: int, epsilon: Number, *, adjacency: str = "add-remove", max_groups_per_user: int = 1
    ) -> DiscoveryComparison:
        """Compare the planned partition selection with all methods at several parts of epsilon; nothing is read.

        The parameters are those of `plan`.

        Examples
        --------
        >>> import discreet
        >>> found = discreet.discovered(delta="1e-8", max_items_per_user=3, method="laplace")
        >>> choices = found.compare(k=20, epsilon=1).choices
        >>> [(each.method, float(each.epsilon)) for each, mark in choices if mark == "planned"]
        [('laplace', 0.2875)]
        """
        from discreet.mechanisms.discovery import compare_discoveries

        planned = self.plan(k, epsilon, adjacency=adjacency, max_groups_per_user=max_groups_per_user)
        return compare_discoveries(planned, positive(epsilon, "epsilon"), k)

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as JSON values."""
        numbers = {"delta": str(self.delta), "epsilon": None if self.epsilon is None else str(self.epsilon)}
        kept = {"kind": self.kind, "spelling": self.spelling, "method": self.method}
        return {**numbers, "max_items_per_user": self.max_items_per_user, **kept}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Discovered:
        """Return the terms that `to_dict` wrote."""
        with warnings.catch_warnings():
            # A large delta was warned of when the terms were made.
            warnings.simplefilter("ignore", UserWarning)
            return discovered(
                data["delta"], data["max_items_per_user"], data["epsilon"],
                kind=data["kind"], spelling=data["spelling"], method=data["method"],
            )  # fmt: skip

    def description(self) -> dict[str, Any]:
        """Return the public facts as JSON data, without the privacy parameters, which the guarantee has."""
        described = self.spelling
        if self.spelling == FOLD:
            from discreet.sources.events.case_folding import read_table

            described += f" by Unicode {read_table()[0]}"
        return {"discovered": self.kind, **({} if self.spelling == EXACT else {"spelling": described})}


class FoundItems(NamedTuple):
    """The kept items, and the score of each among all users, in whole steps of the grid."""

    items: list[Any]
    scores: list[int]


class UnlistedSnapshot(Protocol):
    """The items that count for somebody at one time, in each group; a source without groups has one."""

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        """Return a run-length encoding for each group: numbers of users or sums of weights, and how many items have it.

        The numbers are above 0, in descending order.
        """

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        """Return the items at some ranks of each group."""

    def count_hidden(self) -> int:
        """Return the most users that an item hides, rounded up, at least 0, if the items of a user share one vote.

        An item hides the users for whom it counts, beyond three times the sum of its shares. There are no groups.
        Adding a user moves the number by 1 up or 2 down at most.
        """

    def take_shares(self) -> UnlistedSnapshot:
        """Return the snapshot of the sums of shares in steps, where the items of a user share a vote, without groups.

        Up to three items of a user have a share, those with the least hashes.
        """

    def largest_scores(self, count: int) -> list[list[int]]:
        """Return the `count` largest scores of all items of each group, in steps and in descending order.

        Items that count for nobody are among them, so the snapshot must have been taken with them.
        """


class UnlistedSource(AnySource, ABC):
    """Scored items for partition selection, which nobody listed.

    Attributes
    ----------
    terms
        The terms of the partition selection.
    sensitivity, adjacency, grid
        The sensitivity of adding one user, the adjacency, and the step of the scores.
    """

    terms: Discovered
    sensitivity: Sensitivity
    adjacency: str
    grid: Fraction

    @property
    def delta(self) -> Fraction:
        return self.terms.delta

    def other_readings(self) -> Iterator[dict[str, Any]]:
        for delta, epsilon in other_readings((self.terms.delta, self.terms.epsilon)):
            yield {"discovered": replace(self.terms, delta=delta, epsilon=epsilon)}

    @abstractmethod
    def snapshot(self, key: str, with_uncounted: bool = False) -> AbstractContextManager[UnlistedSnapshot]:
        """Hold one snapshot of the items until the block ends.

        Parameters
        ----------
        key
            The key of the hash that decides which items of a user count. It need not be secret.
        with_uncounted
            True if `largest_scores` will be asked for.
        """


class UnlistedGroups(UnlistedSource):
    """Scored items for partition selection, in each of several public groups, as in `GroupedSource`.

    Attributes
    ----------
    keys, names
        The groups in the order of the public list, and the names of the columns that make one.
    each_user, groups_per_user
        "one" or "many" groups of a user, and the contribution bound in groups.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    each_user: str
    groups_per_user: int


def discovered(
    delta: Number,
    max_items_per_user: int | None = None,
    epsilon: Number | None = None,
    kind: str = "string",
    spelling: str = EXACT,
    method: str | None = None,
) -> Discovered:
    """Return a domain for `discreet.events` without a public list: partition selection finds the items, for a delta.

    An item is found if enough people touched it, about as many as `release.guarantee.threshold` says;
    docs/discovery.md has more.

    Parameters
    ----------
    delta
        The probability with which the guarantee of epsilon may fail: far below one over the number of people, such as
        "1e-8", and at most 1e-3.
    max_items_per_user
        The contribution bound in items for finding them, at most 2^20; 100 if it is left out. A user with more items is
        not refused: a hash decides which of them count. The scores of found items count all users. A larger bound
        hardly raises the number of people that an item needs, except with the method "laplace", which needs a bound.
    epsilon
        The part of the release's epsilon for finding the items. By default a half, and up to a quarter more if k is
        small.
    kind
        The type of the items: "string", "integer", "date" or "boolean". A cell of another type is not an item.
    spelling
        The rule by which texts are one item: "exact", only equal texts; "casefold", up to capitals from A to Z; "trim",
        up to spaces at the ends; "both"; or "fold", up to spaces at the ends and to case in any script, by Unicode
        simple case folding. Text of more than 64 KiB is then no item.
    method
        The noise that decides which items are found. "gaussian" is added to a sum of weights: each of the m items of a
        user that count has the weight 1/sqrt(m). "laplace" is added to the number of an item's users. "auto" takes
        "gaussian" unless a noisy number says that up to three items of each user rank the items well, as where most
        users have one item or a few; these share one vote of the user, and the items with the largest noisy numbers of
        votes above a threshold are released.
        Give "gaussian" if the most frequent items may be those of a few users who have many. By default "auto", or
        "gaussian" if `max_items_per_user` or `epsilon` is given. "auto" is "gaussian" where scores are sums, in groups,
        and with another mechanism than the default.

    Returns
    -------
    Discovered
        A domain for `discreet.events`.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> messages = ["disk full"] * 300 + ["timeout"] * 200 + ["the password is hunter2"]
    >>> logs = pyarrow.table({"device": range(501), "message": messages})
    >>> domain = discreet.discovered(delta="1e-8")
    >>> source = discreet.events(logs, user="device", item="message", domain=domain)
    >>> release = discreet.top_k(source, k=3, epsilon=4)
    >>> release.items, release.d, release.asked
    (['disk full', 'timeout'], None, 3)
    >>> release.guarantee.epsilon, float(release.guarantee.delta), release.guarantee.threshold
    (Fraction(4, 1), 1e-08, 13)
    """
    from discreet.mechanisms.discovery import check_delta, delta_warning

    if method is None:
        method = AUTO if max_items_per_user is None and epsilon is None else GAUSSIAN
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidValueError(f"method must be {_join(METHODS)}, not {quote(method)}")
    if method != LAPLACE:
        most = MOST_ITEMS if max_items_per_user is None else max_items_per_user
        limit = whole_number(most, "max_items_per_user", 1, 2**20, "2^20")
    elif max_items_per_user is None:
        raise InvalidValueError(
            f"max_items_per_user must be given with the method {method!r}: how many items of a user count for it"
        )
    else:
        limit = whole_number(max_items_per_user, "max_items_per_user", 1, 2**31, "2^31")
    part = None if epsilon is None else positive(epsilon, "epsilon of discovered")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidValueError(f"kind must be {_join(KINDS)}, not {quote(kind)}")
    if not isinstance(spelling, str) or spelling not in SPELLINGS:
        raise InvalidValueError(f"spelling must be {_join(SPELLINGS)}, not {quote(spelling)}")
    if spelling != EXACT and kind != "string":
        raise InvalidValueError(f"spelling must be left out unless kind is 'string', and kind is {kind!r}")
    found = Discovered(check_delta(delta), limit, part, kind, spelling, method)
    warning = delta_warning(found.delta)
    if warning is not None:
        warnings.warn(warning, UserWarning, stacklevel=2)
    return found


def refuse_discovered(argument: str) -> InvalidTypeError:
    """Return the error about items to be found where a public list is needed."""
    return InvalidTypeError(
        f"{argument} must be of a public list of items here, not of discreet.discovered: which items there are is "
        "known only after they were found, and is released with the top-k alone"
    )


def _join(choices: Any) -> str:
    *others, last = map(repr, choices)
    return f"{', '.join(others)} or {last}"
