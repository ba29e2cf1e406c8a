"""The release of one list: released items, their counts, and the guarantee, as data, as text and as JSON.

A release is frozen and holds nothing private.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.labels import label_from_json, label_to_json, sort_for_readers, sort_key, sort_labels
from discreet.language import ENGLISH, Language, find_language
from discreet.mechanisms.tally import CORE, OTHERWISE
from discreet.mechanisms.weighted_discovery import WeightedDiscovery
from discreet.privacy import EXPRESSED, Expressions, fraction_from_json, whole_number
from discreet.release.guarantee import Guarantee
from discreet.release.theme import check_matplotlib
from discreet.text import (
    align_columns,
    count_with_commas,
    make_html_table,
    make_html_view,
    number_for_programs,
    printable,
    render_html,
    repr_with_decimals,
    round_up,
)

FORMAT = 1
"""The format number of a release of one list; a release by group has format 2, a sketch format 3."""

_SHOWN = 10
"""The number of items that the repr of a release shows."""

CONFIDENCE = Fraction(19, 20)
"""The probability with which an interval or a bound of a release holds: 95%, as is usual."""

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""The errors that reading malformed data can raise."""


_TABLE = ("item", "about", "95% interval")
"""The header of a list with counts."""

CANDIDATES = CORE, OTHERWISE
"""The candidates of a mechanism that has several."""

DRAWN_BY = "Drawn by "
"""The beginning of the line about the mechanism, which the command line prints dimly."""

_MUCH = 20
"""Above this epsilon, even odds about a person can become certainty but for one part in a hundred million."""


@dataclass(frozen=True, repr=False)
class Count:
    """The noisy score of a released item.

    Attributes
    ----------
    item
        The item.
    value
        The score with noise: a whole number, or a Fraction if scores are sums in finer steps.
    low, high
        The ends of an interval that holds the score with a probability of at least 95%: for this item by itself, or
        for all items at once if the mechanism releases values itself.

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
        """Return the count as JSON data; fractions are strings."""
        figures = {"value": self.value, "low": self.low, "high": self.high}
        plain = {name: figure if isinstance(figure, int) else str(figure) for name, figure in figures.items()}
        return {"item": label_to_json(self.item), **plain}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Count:
        """Return the count that `to_dict` wrote."""
        figures = (read_figure(data[name], name) for name in ("value", "low", "high"))
        return cls(label_from_json(data["item"]), *figures)


@dataclass(frozen=True, repr=False)
class Shortfall:
    """The noisy lead of the best item left out over the weakest item released.

    Attributes
    ----------
    value
        The lead with noise: a whole number, or a Fraction if scores are sums in finer steps. It may be negative.
    low, high
        The ends of an interval that holds the lead with a probability of at least 95%.
    upper
        A bound that is at or above the lead with a probability of at least 95%. If it is at most 0, the list is a true
        top-k with that confidence.
    epsilon
        The part of epsilon that the shortfall cost.
    max_items_per_user
        The contribution bound of the scores that the lead is about; None if every item of a user counts.
    confidence
        The probability with which the interval, or the bound, holds: 19/20.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=100, shortfall=100)
    >>> release.shortfall
    Shortfall(value=-467, low=-467, high=-467, upper=-467, epsilon=100)
    """

    value: int | Fraction
    low: int | Fraction
    high: int | Fraction
    upper: int | Fraction
    epsilon: Fraction
    max_items_per_user: int | None = field(default=None, repr=False)
    confidence: ClassVar[Fraction] = CONFIDENCE

    def __repr__(self) -> str:
        return repr_with_decimals(self, number_for_programs)

    def to_dict(self) -> dict[str, Any]:
        """Return the shortfall as JSON data; fractions are strings."""
        figures = {"value": self.value, "low": self.low, "high": self.high, "upper": self.upper}
        plain = {name: figure if isinstance(figure, int) else str(figure) for name, figure in figures.items()}
        bound = {} if self.max_items_per_user is None else {"max_items_per_user": self.max_items_per_user}
        return {**plain, "epsilon": str(self.epsilon), **bound, "confidence": str(self.confidence)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Shortfall:
        """Return the shortfall that `to_dict` wrote."""
        value, low, high, upper = (read_figure(data[name], name) for name in ("value", "low", "high", "upper"))
        epsilon, bound = fraction_from_json(data["epsilon"], "epsilon"), data.get("max_items_per_user")
        if not low <= value <= upper <= high or epsilon <= 0 or data["confidence"] != str(cls.confidence):
            raise ValueError
        return cls(value, low, high, upper, epsilon, None if bound is None else whole_number(bound, "bound", 1))

    def describe(self, k: int, counts_people: bool, language: Language = ENGLISH) -> str:
        """Return the one-sided bound as a sentence about a list of k items.

        Examples
        --------
        >>> Shortfall(86, 26, 146, 132, Fraction(1, 20)).describe(20, counts_people=True)
        'With 95% confidence, no item left out has more than 132 people more than any item on this list.'
        >>> Shortfall(-80, -140, -20, -34, Fraction(1, 20)).describe(20, counts_people=True)
        'With 95% confidence this is a true top 20, in any order.'
        """
        # With a bound, an item can have more people than count for it.
        most = self.max_items_per_user
        some = "" if most is None else language.text("shortfall.some", count=most)
        if self.upper <= 0:
            return language.text("shortfall.top", count=k, some=some)
        upper = self.spell_upper(counts_people, language)
        if counts_people and isinstance(self.upper, int):
            return language.text("shortfall.people", upper=upper, some=some)
        return language.text("shortfall.scores", upper=upper, some=some)

    def describe_briefly(self, k: int, counts_people: bool, language: Language = ENGLISH) -> str:
        """Return the one-sided bound in a few words, for the list of one of several groups."""
        if self.upper <= 0:
            return language.text("shortfall.brief_top", count=k)
        return language.text("shortfall.brief", upper=self.spell_upper(counts_people, language))

    def spell_upper(self, counts_people: bool, language: Language = ENGLISH) -> str:
        """Return the bound with its unit if it is a number of people."""
        if isinstance(self.upper, int):
            return language.text("people", count=self.upper) if counts_people else str(language.spell(self.upper))
        return language.above(self.upper)


@dataclass(frozen=True)
class Listing:
    """The items of a release for display: by noisy count, else in the released order, else sorted by label.

    Attributes
    ----------
    items
        The items, sorted for readers.
    order
        The same items in the released order, or None.
    counts
        The count of each item, the largest first, or None.
    shortfall
        The shortfall of the list, or None.
    bound
        The bound of the shortfall in a few words, for the list of one of several groups; empty without one.
    names
        The names of the columns that make a group: empty for a release of one list.
    """

    items: list[Any]
    order: list[Any] | None
    counts: Sequence[Any] | None
    shortfall: Shortfall | None = None
    bound: str = ""
    names: ClassVar[tuple[str, ...]] = ()

    def describe_order(self, language: Language = ENGLISH) -> str:
        """Describe the order of the items in words; empty for one item without a count, which has no order."""
        if self.counts is not None:
            return language.text("list.by_count")
        if len(self.items) < 2:
            return ""
        return language.text("list.by_name" if self.order is None else "list.by_order")

    def columns(self) -> list[str]:
        """Return the names of the columns of `rows`."""
        places = [] if self.order is None else ["order"]
        numbers = [] if self.counts is None else ["count", "low", "high"]
        return ["item", *places, *numbers, *([] if self.shortfall is None else ["shortfall_upper"])]

    def rows(self) -> list[tuple[Any, ...]]:
        """Return each item with its place, its count and interval, and the bound of the list, where released."""
        places = {sort_key(item): (place,) for place, item in enumerate(self.order or [], 1)}
        bound = () if self.shortfall is None else (self.shortfall.upper,)
        if self.counts is not None:
            return [(c.item, *places.get(sort_key(c.item), ()), c.value, c.low, c.high, *bound) for c in self.counts]
        # Data are sorted by label, as in `Release.items`.
        return [(item, *places.get(sort_key(item), ()), *bound) for item in self.order or sort_labels(self.items)]

    def attributes(self) -> dict[str, Any]:
        """Return the facts about the whole list that its rows do not hold: the shortfall, where released."""
        return {} if self.shortfall is None else {"shortfall": self.shortfall.to_dict()}

    def lines(self, longest: int | None = None) -> list[str]:
        """Return the items as lines of text, each item shortened to `longest` characters if given."""
        if self.counts is not None:
            rows = [_TABLE, *((printable(item, longest), *numbers) for item, *numbers in self._cells())]
            return align_columns(rows, numbers=True)
        width = len(str(len(self.items)))
        names = [printable(item, longest) for item in self.order or self.items]
        return [f"{i:>{width}}  {name}" if self.order else name for i, name in enumerate(names, 1)]

    def to_html(self) -> str:
        """Return the items as an HTML list, or as a table with their counts."""
        if self.counts is not None:
            return make_html_table(self._cells(), _TABLE)
        tag = "ul" if self.order is None else "ol"
        template = "<{{ tag }}>{% for item in items %}<li>{{ item }}</li>{% endfor %}</{{ tag }}>"
        return render_html(template, tag=tag, items=map(str, self.order or self.items))

    def _cells(self) -> list[tuple[str, str, str]]:
        """Return the counts as text, a row for each item."""
        return [
            (
                str(count.item),
                count_with_commas(count.value),
                f"{count_with_commas(count.low)} to {count_with_commas(count.high)}",
            )
            for count in self.counts or []
        ]


@dataclass(frozen=True, repr=False)
class Release:
    """The released items and their privacy guarantee.

    Attributes
    ----------
    items
        The items, sorted by label; the order reveals nothing about their scores.
    order
        The same items in the released order, best first, or None if no order was released.
    d
        The size of the public domain; None after partition selection, where nobody knows it.
    guarantee
        The privacy guarantee.
    private
        False if the caller passed a random generator: a release that can be drawn again protects nobody.
    counts
        A noisy score with an interval for each item, the largest first; None if counts were not requested and the
        mechanism releases none.
    asked
        The number of items requested, if fewer may be released: they had to be found, or the mechanism chose how many
        to release. None if the number is always k.
    chosen
        The candidate that the mechanism chose, if it has several (`Core`): "core", or "otherwise" for its fallback. The
        method that found the items, if `discovered` chose between two: "gaussian", or "few-items", whose threshold is
        `guarantee.discovery.alternative.threshold`.
    shortfall
        A noisy bound on how far the best item left out is ahead of the weakest released one; None if it was not
        requested or no item is released.
    expressions
        The arguments of `events` that were row expressions, each with its text; empty for plain columns, other scores,
        and the list of one of several groups, whose release has them.

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
    shortfall: Shortfall | None = None
    expressions: Expressions = ()

    @property
    def k(self) -> int:
        """The number of released items."""
        return len(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        # An empty release is true as well.
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.order or self.items if self.counts is None else [count.item for count in self.counts])

    def __contains__(self, item: Any) -> bool:
        return item in self.items

    def __repr__(self) -> str:
        few = ", ".join(map(repr, islice(self, _SHOWN)))
        more = ", ..." if self.k > _SHOWN else ""
        return f"Release([{few}{more}], k={self.k}, epsilon={round_up(self.guarantee.epsilon)})"

    @property
    def listing(self) -> Listing:
        """The items for display, in rows and lines."""
        return self.make_listing()

    def make_listing(self, language: Language = ENGLISH) -> Listing:
        """Return the items for display, with the bound of the shortfall in a language."""
        people = counts_people(self.guarantee)
        bound = "" if self.shortfall is None else self.shortfall.describe_briefly(self.k, people, language)
        return Listing(sort_for_readers(self.items), self.order, self.counts, self.shortfall, bound)

    def describe_shortfall(self, language: Language = ENGLISH) -> list[str]:
        """Return the sentence about the shortfall, if there is one."""
        people = counts_people(self.guarantee)
        return [] if self.shortfall is None else [self.shortfall.describe(self.k, people, language)]

    def to_dict(self) -> dict[str, Any]:
        """Return the release as JSON data."""
        items, counts = items_to_dict(self)
        return {
            "format": FORMAT,
            **items,
            "guarantee": self.guarantee.to_dict(),
            "private": self.private,
            **counts,
            **expressions_to_dict(self.expressions),
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return the items as a table, in the order in which they are printed.

        Parameters
        ----------
        library
            "pandas", "polars" or "pyarrow"; by default the first of these that is installed.

        Returns
        -------
        DataFrame or pyarrow.Table
            A row for each item: the item, and order, count, low and high if released. Counts that are fractions become
            floats.

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
        """Return the release as JSON text: exact numbers are strings, and `decimals` has the guarantee in floats."""
        return to_json_text(add_decimals(self), indent)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Release:
        """Return the release that `to_dict` wrote."""
        try:
            if data["format"] != FORMAT:
                raise ValueError
            release = items_from_dict(data, Guarantee.from_dict(data["guarantee"]), bool(data["private"]))
            return replace(release, expressions=expressions_from_dict(data))
        except MALFORMED as error:
            said = explain_malformed(error)
        raise InvalidValueError(f"data must be a release as Release.to_dict or to_json writes it{said}")

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Return the release that `to_json` wrote."""
        return cls.from_dict(from_json_text(text, "Release"))

    def plot(self, ax: Any = None, *, dark: bool = False, language: str = "en") -> Any:
        """Draw the list with matplotlib: bars with intervals for counts, numbered names for an order, else chips.

        Parameters
        ----------
        ax
            The axes to draw in; by default those of a new figure. A figure without a layout engine gets the
            constrained one, which makes room for names and notes.
        dark
            True for a dark page.
        language
            "en" or "de".

        Returns
        -------
        matplotlib.figure.Figure
            The figure, with the shortfall and the guarantee below the list.

        Examples
        --------
        >>> import discreet
        >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=100, counts=100)
        >>> [label.get_text() for label in release.plot().axes[0].get_yticklabels()]
        ['dune', 'alien']
        """
        check_matplotlib()
        from discreet.release.plots import draw_release

        return draw_release(self, ax, dark, find_language(language))

    def statement(self, ledger: Any = None, source: str | None = None, language: str = "en") -> str:
        """Return the privacy statement in Markdown: the promise of the release and its limits.

        Parameters
        ----------
        ledger
            The Ledger that the release was charged to, or its path: the statement then covers all of its releases
            together, and names the unit of privacy.
        source
            The kind of source, for its limits: "scores", "csv", "json", "parquet", "pandas", "polars", "arrow",
            "duckdb", "datafusion", "postgresql", "mariadb", "clickhouse", "sqlite", "spark" or "other".
        language
            "en" or "de".

        Examples
        --------
        >>> import discreet
        >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=1)
        >>> print(release.statement().splitlines()[8].partition(": ")[2])
        Somebody who thought it 50:50 that you are in the data is at most 73.2% sure of it after seeing this list.
        """
        from discreet.release.statement import make_statement

        return make_statement(self, ledger, source, language)

    def registry(self, ledger: Any = None, answers: Any = None, source: str | None = None) -> dict[str, Any]:
        """Return an entry for the public registry of deployments (opendp/deployments-registry-data), all tiers.

        Parameters
        ----------
        ledger
            As for `statement`.
        answers
            Facts that the library cannot know, by the names of the fields. Fields without an answer are empty or
            incomplete and listed in `questions`; an entry without that key is complete.
        source
            As for `statement`.

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

        return make_registry_entry(self, ledger, answers, source)

    def __str__(self) -> str:
        lines = [f"  {line}" for line in self.listing.lines()] if self.items else []
        return "\n".join([f"{self.title()}{':' if lines else '.'}", *lines, *self.notes()])

    def _repr_html_(self) -> str:
        """Return the notebook view."""
        return make_html_view(self.title(), self.listing.to_html(), self.notes())

    def title(self, language: Language = ENGLISH) -> str:
        """Return the line above the items."""
        order = self.listing.describe_order(language) if self.items else ""
        return add_order(describe_size(self, language), order, language)

    def notes(self, language: Language = ENGLISH) -> list[str]:
        """Return lines for people: the guarantee, and caveats about the list."""
        support = describe_support(self, language)
        said = [*([] if support is None else [support]), *self.describe_shortfall(language)]
        said += [describe_cost(self.guarantee, language=language), describe_mechanism(self.guarantee, language)]
        warnings = describe_warnings(self.guarantee, self.private, language, self.chosen)
        return [*said, *warnings, *describe_caveats(self, language)]

    def remarks(self, language: Language = ENGLISH) -> list[str]:
        """Return the notes without the shortfall, the cost and the mechanism."""
        support = describe_support(self, language)
        warnings = describe_warnings(self.guarantee, self.private, language, self.chosen)
        return [*([] if support is None else [support]), *warnings, *describe_caveats(self, language)]


def add_order(size: str, order: str, language: Language) -> str:
    """Return the size of a list and, unless it is empty, the order of its items."""
    return language.text("list.title", size=size, order=order) if order else size


def describe_size(release: Release, language: Language = ENGLISH) -> str:
    """Describe how many items are released, and of how many."""
    if release.d is not None:
        return language.text("list.size", count=release.k, items=language.text("list.of_all", count=release.d))
    if release.chosen in CANDIDATES or release.asked is None or release.k == release.asked:
        return language.text("list.size_found", count=release.k)
    if not release.k:
        return language.text("list.size_empty", count=release.asked)
    return language.text("list.size_fewer", count=release.k, asked=release.asked)


def describe_support(release: Release, language: Language = ENGLISH) -> str | None:
    """Describe how many of the requested items the data support; None if all, or if the mechanism did not test that."""
    if release.chosen not in CANDIDATES or (release.chosen == CORE and release.k == release.asked):
        return None
    if release.chosen == CORE:
        return language.text("note.few_core", k=release.k, asked=release.asked)
    if not release.k:
        return language.text("note.none_core", asked=release.asked)
    return language.text("note.none_otherwise", count=release.k, asked=release.asked)


def describe_cost(guarantee: Guarantee, counts_in: str = "", language: Language = ENGLISH) -> str:
    """Return the cost in a line for people; `counts_in` describes the groups in which one person counts."""
    found = guarantee.discovery
    return language.text(
        "note.cost",
        epsilon=language.rounded(guarantee.epsilon),
        parts=describe_parts(guarantee, language),
        delta="" if found is None else language.text("note.delta", delta=language.rounded(found.delta)),
        person=describe_person(guarantee, counts_in, language),
    )


def describe_mechanism(guarantee: Guarantee, language: Language = ENGLISH) -> str:
    """Return the line about the mechanism."""
    return language.text("note.drawn_by", mechanism=repr(guarantee.mechanism))


def describe_warnings(
    guarantee: Guarantee, private: bool, language: Language = ENGLISH, chosen: str | None = None
) -> list[str]:
    """Return lines about items that are not found, about a large epsilon, and about a release that is not private.

    `chosen` is that of a release.
    """
    found = guarantee.discovery
    doubt = [language.text("note.doubtful", most=_MUCH)] if guarantee.epsilon > _MUCH else []
    warning = [] if private else [language.text("note.not_private")]
    seen = [] if found is None else [found.describe_release(chosen, language)]
    return [*seen, *doubt, *warning]


def describe_person(guarantee: Guarantee, counts_in: str = "", language: Language = ENGLISH) -> str:
    """Describe the protected person and the assumed sensitivity: how far that person moves a score.

    Examples
    --------
    >>> import discreet
    >>> describe_person(discreet.top_k([9, 5, 1], k=1, epsilon=1).guarantee)
    'for each person added or removed, who adds at most 1 to each score'
    """
    moved = guarantee.sensitivity
    scores = language.text("person.all_scores")
    if moved.items is not None:
        scores = language.text("person.some_scores", count=moved.items)
    up, also = language.above(moved.up), language.text("person.also", where=counts_in) if counts_in else ""
    if guarantee.adjacency == "swap":
        return language.text("person.replaced", also=also, scores=scores, up=up)
    if not moved.down:
        return language.text("person.added", also=also, scores=scores, up=up)
    return language.text("person.moved", also=also, scores=scores, down=language.above(moved.down), up=up)


def describe_parts(guarantee: Guarantee, language: Language = ENGLISH) -> str:
    """Describe the parts of epsilon in brackets; return an empty text if there is only one part."""
    parts = {
        "part.finding": guarantee.discovery_epsilon,
        "part.selection": guarantee.selection_epsilon,
        "part.counts": guarantee.counts_epsilon,
        "part.shortfall": guarantee.shortfall_epsilon,
    }
    named = [
        language.text(name, part=language.rounded(part))
        for name, part in parts.items()
        if part or name == "part.selection"
    ]
    return f" ({', '.join(named)})" if len(named) > 1 else ""


def describe_caveats(release: Release, language: Language = ENGLISH, in_group: bool = False) -> list[str]:
    """Return caveats about values that the mechanism itself releases, and public reasons for choosing another one.

    `in_group` is True for the list of one of several groups.
    """
    mechanism, caveats = release.guarantee.mechanism, list[str]()
    if release.counts is not None and mechanism.releases_values:
        caveats.append(language.text("note.values_of_group" if in_group else "note.values"))
    doubt = mechanism.doubt(release.k if release.asked is None else release.asked, release.d, language)
    return caveats if doubt is None else [*caveats, doubt]


def counts_people(guarantee: Guarantee) -> bool:
    """Return True if a user adds 0 to 1 to each score, so that whole scores are numbers of people."""
    moved = guarantee.sensitivity
    return moved.up == 1 and moved.down == (0 if guarantee.adjacency == "add-remove" else 1)


def read_figure(figure: Any, name: str) -> int | Fraction:
    """Read a number of JSON: an int, or a fraction in a string."""
    return fraction_from_json(figure, name) if isinstance(figure, str) else int(figure)


def explain_malformed(error: Exception) -> str:
    """Return the end of a message about malformed data: the error's own text if discreet wrote it."""
    return f": {error}" if isinstance(error, InvalidValueError) else ""


def items_to_dict(release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the items of a release and, separately, its counts and shortfall if there are any, as JSON data."""
    items = {
        "items": [label_to_json(item) for item in release.items],
        "order": None if release.order is None else [label_to_json(item) for item in release.order],
        "d": release.d,
        **({} if release.asked is None else {"asked": release.asked}),
        **({} if release.chosen is None else {"chosen": release.chosen}),
    }
    numbers = {} if release.counts is None else {"counts": [count.to_dict() for count in release.counts]}
    return items, numbers if release.shortfall is None else {**numbers, "shortfall": release.shortfall.to_dict()}


def items_from_dict(data: dict[str, Any], guarantee: Guarantee, private: bool) -> Release:
    """Return the release of the items and counts that `items_to_dict` wrote."""
    order = None if data["order"] is None else [label_from_json(item) for item in data["order"]]
    items = [label_from_json(item) for item in data["items"]]
    counts = None if data.get("counts") is None else [Count.from_dict(entry) for entry in data["counts"]]
    d, asked = (None if data.get(name) is None else int(data[name]) for name in ("d", "asked"))
    if (d is None) != (guarantee.discovery is not None):
        raise ValueError
    chosen, found = data.get("chosen"), guarantee.discovery
    methods = () if found is None or found.alternative is None else (WeightedDiscovery.method, found.alternative.method)
    candidates = CANDIDATES if guarantee.mechanism.may_release_fewer else methods
    # Early versions did not tell which method of partition selection was chosen.
    if chosen is not None and (asked is None or chosen not in candidates):
        raise ValueError
    shortfall = None if data.get("shortfall") is None else Shortfall.from_dict(data["shortfall"])
    if shortfall is not None and (shortfall.epsilon != guarantee.shortfall_epsilon or not items or len(items) == d):
        raise ValueError
    return Release(items, order, d, guarantee, private, counts, asked, chosen, shortfall)


def expressions_to_dict(expressions: Expressions) -> dict[str, Any]:
    """Return the row expressions as JSON data, which are empty without any."""
    return {"expressions": [list(each) for each in expressions]} if expressions else {}


def expressions_from_dict(data: dict[str, Any]) -> Expressions:
    """Return the row expressions that `expressions_to_dict` wrote."""
    expressions = tuple((argument, text) for argument, text in data.get("expressions", ()))
    if any(argument not in EXPRESSED or not isinstance(text, str) for argument, text in expressions):
        raise ValueError
    return expressions


def add_decimals(release: Any) -> dict[str, Any]:
    """Return `to_dict` of a release with the numbers of its guarantee as floats in addition."""
    return {**release.to_dict(), "decimals": release.guarantee.to_floats()}


def to_json_text(data: Any, indent: int | None) -> str:
    """Return data as JSON text in which labels are readable."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    # Half of a surrogate pair can be in a label but not in a file.
    return json.dumps(data, indent=indent) if re.search("[\ud800-\udfff]", text) else text


def from_json_text(text: Any, kind: str, what: str = "release") -> Any:
    """Parse the JSON text of a `kind` of release, or of another object that `what` names."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InvalidValueError(f"text must be a {what} as {kind}.to_json writes it") from None
