"""What leaves the library: Release and its Count. Frozen, printable, serialisable, nothing private inside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.labels import label_from_json, label_to_json, sort_key
from discreet.mechanisms.tally import CORE, OTHERWISE
from discreet.privacy import fraction_from_json
from discreet.release.guarantee import Guarantee
from discreet.text import (
    align_columns,
    count_with_commas,
    decimal_above,
    number_for_programs,
    printable,
    repr_with_decimals,
    round_up,
    shorten,
)

# The items of a release as people and tables have them: in one order, with their places and counts where released.

_TABLE = ("item", "about", "95% interval")


@dataclass(frozen=True)
class Listing:
    """The items of a release: by noisy count, else in the released order, else sorted by label.

    Attributes
    ----------
    items
        The items, sorted by label.
    order
        The same items in the released order, or None.
    counts
        The count of each item, the largest first, or None.
    names
        The names of the columns that make a group, of which a release of one list has none.
    """

    items: list[Any]
    order: list[Any] | None
    counts: Sequence[Any] | None
    names: ClassVar[tuple[str, ...]] = ()

    def describe_order(self) -> str:
        """In which order the items are, in words."""
        if self.counts is not None:
            return "by noisy count"
        return "sorted by name, which says nothing about rank" if self.order is None else "in the released order"

    def columns(self) -> list[str]:
        """The names of what `rows` has of each item."""
        places = [] if self.order is None else ["order"]
        return ["item", *places, *([] if self.counts is None else ["count", "low", "high"])]

    def rows(self) -> list[tuple[Any, ...]]:
        """Each item with its place in the released order, its count and the interval, as far as these are there."""
        places = {sort_key(item): (place,) for place, item in enumerate(self.order or [], 1)}
        if self.counts is not None:
            return [(c.item, *places.get(sort_key(c.item), ()), c.value, c.low, c.high) for c in self.counts]
        return [(item, *places.get(sort_key(item), ())) for item in self._list_items()]

    def lines(self, longest: int | None = None) -> list[str]:
        """The items as lines of text, each cut to so many characters where that is said."""

        def name(item: Any) -> str:
            return printable(item) if longest is None else shorten(printable(item), longest)

        if self.counts is not None:
            rows = [_TABLE, *((name(item), *numbers) for item, *numbers in self._cells())]
            return align_columns(rows, numbers=True)
        width = len(str(len(self.items)))
        names = [name(item) for item in self._list_items()]
        return [f"{i:>{width}}  {name}" if self.order else name for i, name in enumerate(names, 1)]

    def to_html(self) -> str:
        """Return the items as an HTML list, or as a table with their counts."""
        from discreet.html_text import make_html_table, render_html

        if self.counts is not None:
            return make_html_table(self._cells(), _TABLE)
        tag = "ul" if self.order is None else "ol"
        template = "<{{ tag }}>{% for item in items %}<li>{{ item }}</li>{% endfor %}</{{ tag }}>"
        return render_html(template, tag=tag, items=map(str, self._list_items()))

    def _list_items(self) -> list[Any]:
        return self.items if self.order is None else self.order

    def _cells(self) -> list[tuple[str, str, str]]:
        """The counts as text, a row for each item."""
        return [
            (
                str(count.item),
                count_with_commas(count.value),
                f"{count_with_commas(count.low)} to {count_with_commas(count.high)}",
            )
            for count in self.counts or []
        ]


# What a release says about itself, in lines for people: how many items, what is promised, and what is doubtful.


def describe_size(release: Release) -> str:
    """How many items are released, of how many, in words."""
    if release.d is not None:
        return f"Top {release.k:,} of {release.d:,} items"
    if release.chosen is not None:
        return f"Top {release.k:,} of those found"
    if release.asked is None or release.k == release.asked:
        return f"Top {release.k:,} of those found"
    found = "No item was" if not release.k else "1 item was" if release.k == 1 else f"{release.k:,} items were"
    return f"{found} found, fewer than the {release.asked:,} asked for"


def describe_support(release: Release) -> str | None:
    """How many of the items asked for the data support, in words; None where that was not looked at, or it is all."""
    few = "the data do not support more at this epsilon"
    if release.chosen is None or (release.chosen == CORE and release.k == release.asked):
        return None
    if release.chosen == CORE:
        return f"{release.k:,} of the {release.asked:,} asked for: {few}"
    instead = "nothing is released" if not release.k else f"{release.k:,} items are released all the same"
    return f"none of the {release.asked:,} asked for is supported by the data at this epsilon: {instead}"


def describe_doubts(release: Release) -> list[str]:
    """Why another mechanism might have been the better one, as far as that is public."""
    asked = release.k if release.asked is None else release.asked
    doubt = release.guarantee.mechanism.doubt(asked, release.d)
    return [] if doubt is None else [doubt]


DRAWN_BY = "Drawn by "
"""What the line begins with that few read."""


_MUCH = 20


_DOUBT = f"DOUBTFUL: an epsilon above {_MUCH} promises next to nothing; from 0.1 to 3 is usual"
"""Whoever held even odds on somebody can then become sure but for one part in a hundred million."""


def describe_terms(guarantee: Guarantee, private: bool, counts_in: str = "") -> list[str]:
    """Return what is promised, in lines for people; `counts_in` says in which groups one person counts."""
    found, delta = guarantee.discovery, ""
    if found is not None:
        delta = f" and delta {round_up(found.delta)}"
    whose = describe_person(guarantee, counts_in)
    terms = f"Privacy: epsilon {round_up(guarantee.epsilon)}{describe_parts(guarantee)}{delta} {whose}."
    doubt = [_DOUBT] if guarantee.epsilon > _MUCH else []
    warning = [] if private else ["NOT PRIVATE: drawn with the caller's random generator"]
    seen = [] if found is None else [found.describe_threshold()]
    return [terms, f"{DRAWN_BY}{guarantee.mechanism!r}", *seen, *doubt, *warning]


def describe_person(guarantee: Guarantee, counts_in: str = "") -> str:
    """Return whose privacy it is, and the sensitivity that is assumed: how far that person moves a score.

    Examples
    --------
    >>> import discreet
    >>> describe_person(discreet.top_k([9, 5, 1], k=1, epsilon=1).guarantee)
    'for each person added or removed, who adds at most 1 to each score'
    """
    moved = guarantee.sensitivity
    scores = "each score" if moved.items is None else f"each of at most {moved.items:,} scores"
    down, up = decimal_above(moved.down), decimal_above(moved.up)
    if guarantee.adjacency == "swap":
        moves = f"moves {scores} by at most {up}"
    elif not moved.down:
        moves = f"adds at most {up} to {scores}"
    else:
        moves = f"moves {scores} down by at most {down} and up by at most {up}"
    also = f"{counts_in} and " if counts_in else ""
    return f"for each person {describe_user(guarantee.adjacency)}, who {also}{moves}"


def describe_parts(guarantee: Guarantee) -> str:
    """How epsilon divides between what is released, in brackets; nothing where it does not."""
    selection, counts = guarantee.selection_epsilon, guarantee.counts_epsilon
    parts = {"finding the items": guarantee.discovery_epsilon, "the selection": selection, "the counts": counts}
    named = [f"{round_up(part)} for {what}" for what, part in parts.items() if part or what == "the selection"]
    return f" ({', '.join(named)})" if len(named) > 1 else ""


def describe_values(release: Release, of_group: str = "") -> list[str]:
    """What has to be known about the values that a mechanism itself releases, if any; of the items of each group."""
    if release.counts is None or not release.guarantee.mechanism.releases_values:
        return []
    return [
        "values are those with the luckiest noise, so that each by itself is likely too high; the intervals allow for "
        f"that and hold for all items{of_group} at once"
    ]


def describe_user(adjacency: str) -> str:
    """What happens to the one user by whom neighbours differ."""
    return "added or removed" if adjacency == "add-remove" else "replaced"


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
        from discreet.release.formats import make_frame

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
        from discreet.release.statement import make_statement

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
        from discreet.release.registry import make_registry_entry

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
