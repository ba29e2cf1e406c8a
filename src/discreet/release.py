"""What leaves the library: Release and its Count. Frozen, printable, serialisable, nothing private inside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

from discreet.errors import InvalidValueError
from discreet.guarantee import Guarantee
from discreet.labels import label_from_json, label_to_json
from discreet.listing import Listing
from discreet.privacy import fraction_from_json
from discreet.release_words import describe_doubts, describe_size, describe_support, describe_terms, describe_values
from discreet.selection import CORE, OTHERWISE
from discreet.text import number_for_programs, repr_with_decimals, round_up

FORMAT = 1
"""What a release of one list is written as; one by group is of format 2 (`grouped_release`)."""

_SHOWN = 10
"""How many items the short form of a release shows."""

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What can be raised by reading data that is no release."""


@dataclass(frozen=True, repr=False)
class Count:
    """About how high a released item scores.

    Attributes
    ----------
    item
        The item.
    value
        Its score with noise: a whole number, or a Fraction where scores are sums in finer steps.
    low, high
        The score is from `low` to `high` with a chance of at least 95%: for this item by itself, and for all items at
        once where the mechanism releases values itself.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=100, counts=1000)
    >>> release.counts
    [Count(item='dune', value=912, low=912, high=912), Count(item='alien', value=877, low=877, high=877)]
    """

    item: Any
    value: int | Fraction
    low: int | Fraction
    high: int | Fraction

    def __repr__(self) -> str:
        return repr_with_decimals(self, number_for_programs)

    def to_dict(self) -> dict[str, Any]:
        """The count in terms that JSON can hold; fractions are strings."""
        figures = {"value": self.value, "low": self.low, "high": self.high}
        plain = {name: figure if isinstance(figure, int) else str(figure) for name, figure in figures.items()}
        return {"item": label_to_json(self.item), **plain}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Count:
        """The count that `to_dict` wrote."""
        figures = (read_figure(data[name], name) for name in ("value", "low", "high"))
        return cls(label_from_json(data["item"]), *figures)


@dataclass(frozen=True, repr=False)
class Release:
    """The released items and what is promised about them.

    Attributes
    ----------
    items
        The items, sorted by label; the order says nothing about their scores.
    order
        The same items in the released order, best first, or None where no order was released.
    d
        The size of the public domain; None where nobody listed the items, and nobody knows how many there are.
    guarantee
        What the release promises.
    private
        False where the caller passed a random generator: a release that can be drawn again protects nobody.
    counts
        A noisy score with an interval for each item, the largest first, or None where none were asked for and the
        mechanism releases none.
    asked
        How many items were asked for, where they may be fewer: they had to be found, or the mechanism chose how many to
        release. None where there are always as many.
    chosen
        Which candidate the mechanism chose, where it has several (`Core`): "core", or "otherwise" for its fallback.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"a": 90, "b": 80, "c": 5, "d": 1}, k=2, epsilon=100)
    >>> release.items
    ['a', 'b']
    >>> len(release), "c" in release, list(release)
    (2, False, ['a', 'b'])
    >>> discreet.Release.from_json(release.to_json()) == release
    True
    """

    items: list[Any]
    order: list[Any] | None
    d: int | None
    guarantee: Guarantee
    private: bool = True
    counts: list[Count] | None = None
    asked: int | None = None
    chosen: str | None = None

    @property
    def k(self) -> int:
        """How many items were released."""
        return len(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        # A release is one even where it holds nothing.
        return True

    def __iter__(self) -> Iterator[Any]:
        return (row[0] for row in self.listing.rows())

    def __contains__(self, item: Any) -> bool:
        return item in self.items

    def __repr__(self) -> str:
        few = ", ".join(map(repr, islice(self, _SHOWN)))
        more = ", ..." if self.k > _SHOWN else ""
        return f"Release([{few}{more}], k={self.k}, epsilon={round_up(self.guarantee.epsilon)})"

    @property
    def listing(self) -> Listing:
        """The items as they are printed, in rows and lines."""
        return Listing(self.items, self.order, self.counts)

    def to_dict(self) -> dict[str, Any]:
        """The release in terms that JSON can hold."""
        items, counts = items_to_dict(self)
        return {"format": FORMAT, **items, "guarantee": self.guarantee.to_dict(), "private": self.private, **counts}

    def to_frame(self, library: str | None = None) -> Any:
        """The items as a table, in the order in which they are printed.

        Parameters
        ----------
        library
            "pandas", "polars" or "pyarrow"; by default the first of these that is installed.

        Returns
        -------
        DataFrame or pyarrow.Table
            A row for each item: the item, and order, count, low and high where these were released. Counts that are
            fractions become floats.

        Examples
        --------
        >>> import discreet
        >>> release = discreet.top_k({"a": 90, "b": 80, "c": 5}, k=2, epsilon=100, counts=100)
        >>> release.to_frame("pyarrow").column_names
        ['item', 'count', 'low', 'high']
        """
        from discreet.release_frame import make_frame

        return make_frame(self.listing, library)

    def to_json(self, indent: int | None = None) -> str:
        """The release as JSON text: exact numbers are texts, and `decimals` has those of the guarantee as floats."""
        return to_json_text(add_decimals(self), indent)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Release:
        """The release that `to_dict` wrote."""
        try:
            if data["format"] != FORMAT:
                raise ValueError
            return items_from_dict(data, Guarantee.from_dict(data["guarantee"]), bool(data["private"]))
        except MALFORMED as error:
            said = explain_malformed(error)
        raise InvalidValueError(f"data must be a release as Release.to_dict or to_json writes it{said}")

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote."""
        return cls.from_dict(from_json_text(text, "Release"))

    def statement(self, ledger: Any = None) -> str:
        """What the release promises and what it does not, in Markdown that readers and lawyers can read.

        Parameters
        ----------
        ledger
            The Ledger that it was charged to, or its path: then the statement tells what all releases promise together,
            and whose privacy it is.

        Examples
        --------
        >>> import discreet
        >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=1)
        >>> print(release.statement().splitlines()[4].partition(": ")[2])
        whoever looks at this list can become at most 73.2% sure, from even odds, that you are in the data.
        """
        from discreet.statements.statement import make_statement

        return make_statement(self, ledger)

    def registry(self, ledger: Any = None, answers: Any = None) -> dict[str, Any]:
        """The release as an entry of the public registry of deployments (opendp/deployments-registry-data), all tiers.

        Parameters
        ----------
        ledger
            As for `statement`.
        answers
            What the library cannot know, by the names of the fields. As long as there is something of this kind, its
            fields are empty, or incomplete, and asked for in `questions`; without that key the entry is complete.

        Examples
        --------
        >>> import discreet
        >>> entry = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=1).registry()
        >>> entry["deployment"]["dp_variant"]["variant_name"]
        'Pure DP'
        >>> entry["deployment"]["basic"]["name"], entry["questions"]["basic.name"]
        ('', 'What is the published product called?')
        """
        from discreet.statements.registry import make_registry_entry

        return make_registry_entry(self, ledger, answers)

    def __str__(self) -> str:
        return "\n".join([f"{self._title()}:", *(f"  {line}" for line in self.listing.lines()), *self.notes()])

    def _repr_html_(self) -> str:
        """The notebook view."""
        from discreet.html_text import make_html_view

        return make_html_view(self._title(), self.listing.to_html(), self.notes())

    def _title(self) -> str:
        return f"{describe_size(self)}, {self.listing.describe_order()}"

    def notes(self) -> list[str]:
        """What is promised, and what has to be known to read the list, in lines for people."""
        support = describe_support(self)
        terms = describe_terms(self.guarantee, self.private)
        said = [*([] if support is None else [support]), *terms, *describe_values(self)]
        return [*said, *describe_doubts(self)]


def read_figure(figure: Any, name: str) -> int | Fraction:
    """A number of JSON: a whole one, or a fraction in a text."""
    return fraction_from_json(figure, name) if isinstance(figure, str) else int(figure)


def explain_malformed(error: Exception) -> str:
    """What is wrong with data of JSON, to be added to a message, where that is a sentence of discreet's own."""
    return f": {error}" if isinstance(error, InvalidValueError) else ""


def items_to_dict(release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
    """The items of a release, and its counts where it has any, in terms that JSON can hold."""
    items = {
        "items": [label_to_json(item) for item in release.items],
        "order": None if release.order is None else [label_to_json(item) for item in release.order],
        "d": release.d,
        **({} if release.asked is None else {"asked": release.asked}),
        **({} if release.chosen is None else {"chosen": release.chosen}),
    }
    return items, {} if release.counts is None else {"counts": [count.to_dict() for count in release.counts]}


def items_from_dict(data: dict[str, Any], guarantee: Guarantee, private: bool) -> Release:
    """The release of the items and counts that `items_to_dict` wrote."""
    order = None if data["order"] is None else [label_from_json(item) for item in data["order"]]
    items = [label_from_json(item) for item in data["items"]]
    counts = None if data.get("counts") is None else [Count.from_dict(entry) for entry in data["counts"]]
    d, asked = (None if data.get(name) is None else int(data[name]) for name in ("d", "asked"))
    if (d is None) != (guarantee.discovery is not None):
        raise ValueError
    chosen = data.get("chosen")
    if chosen not in (None, CORE, OTHERWISE):
        raise ValueError
    if chosen is not None and (asked is None or not guarantee.mechanism.may_release_fewer):
        raise ValueError
    return Release(items, order, d, guarantee, private, counts, asked, chosen)


def add_decimals(release: Any) -> dict[str, Any]:
    """What `to_dict` of a release has, with the numbers of its guarantee as floats beside it."""
    return {**release.to_dict(), "decimals": release.guarantee.to_floats()}


def to_json_text(data: Any, indent: int | None) -> str:
    """Some data as JSON text, in which labels can be read as they are."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    # Half of a surrogate pair can be a label but not a character of a file.
    return json.dumps(data, indent=indent) if re.search("[\ud800-\udfff]", text) else text


def from_json_text(text: Any, kind: str, what: str = "release") -> Any:
    """The data that `to_json_text` wrote for a release of some kind, or for something else that has one."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InvalidValueError(f"text must be a {what} as {kind}.to_json writes it") from None
