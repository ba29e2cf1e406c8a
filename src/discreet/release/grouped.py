"""The release of a list for each of several public groups, made at once and under one guarantee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.labels import label_from_json, label_to_json
from discreet.language import ENGLISH, Language, find_language
from discreet.privacy import MANY, ONE, Expressions, sum_of_largest
from discreet.release.guarantee import Guarantee
from discreet.release.release import (
    MALFORMED,
    Listing,
    Release,
    add_decimals,
    add_order,
    describe_caveats,
    describe_cost,
    describe_mechanism,
    describe_support,
    describe_warnings,
    explain_malformed,
    expressions_from_dict,
    expressions_to_dict,
    from_json_text,
    items_from_dict,
    items_to_dict,
    to_json_text,
)
from discreet.release.theme import check_matplotlib
from discreet.text import make_html_view, measure_width, pad_cell, printable, render_html, round_up

FORMAT = 2
"""The format number of a release by group."""

_ALL, _FEW, _FOLDED = 12, 3, 200
"""The largest number of groups printed in full, the number printed of more groups, and the largest number that a page
offers to unfold: lists beyond these are too long to read, and `to_frame` has them all."""

_SIDE_BY_SIDE = (
    '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;align-items:flex-start">'
    "{% for name, list in lists %}<div><b>{{ name }}</b>{{ list | safe }}</div>{% endfor %}</div>"
)
_FOLDS = (
    "{% for name, list in lists %}<details><summary>{{ name }}</summary>{{ list | safe }}</details>{% endfor %}"
    "{% if more %}<p>... and {{ '{:,}'.format(more) }} more groups (all of them: to_frame())</p>{% endif %}"
)

_GAP, _LONGEST = 4, 40
"""The number of blanks between two lists side by side, and the longest name there, so that two fit a wide terminal."""


@dataclass(frozen=True)
class GroupedListing:
    """A list for each group.

    Attributes
    ----------
    names
        The names of the columns that make a group.
    lists
        The list of each group, by the group.
    """

    names: tuple[str, ...]
    lists: dict[Any, Listing]

    def columns(self) -> list[str]:
        """Return the names of the columns of `rows`; a group column named like another column gets a prefix."""
        own = self._own_columns()
        return [*(f"group_{name}" if name in own else name for name in self.names), *own]

    def rows(self) -> Iterator[list[Any]]:
        """Yield each item of each group, after the columns of the group; None for cells that a group does not have."""
        own = self._own_columns()
        for group, listing in self.lists.items():
            parts, names = group if len(self.names) > 1 else (group,), listing.columns()
            for row in listing.rows():
                cells = dict(zip(names, row, strict=True))
                yield [*parts, *(cells.get(name) for name in own)]

    def attributes(self) -> dict[str, Any]:
        """Return the facts about whole lists that the rows do not hold: the shortfall of each group, where released."""
        found = {group: listing.shortfall for group, listing in self.lists.items()}
        told = {group: shortfall.to_dict() for group, shortfall in found.items() if shortfall is not None}
        return {"shortfall": told} if told else {}

    def describe_order(self, language: Language = ENGLISH) -> str:
        """Describe the order of the items in words."""
        return language.text("list.or").join(
            sorted({listing.describe_order(language) for listing in self.lists.values()} - {""})
        )

    def to_lines(self) -> list[str]:
        """Return the lists as lines of text, as many side by side as the terminal is wide for."""
        import shutil  # slow to import, and only lists by group need it

        few, width = len(self.lists) <= _ALL, shutil.get_terminal_size().columns
        shown = _ALL if few else _FEW
        blocks = self._make_blocks(shown, _LONGEST)
        widest = max(measure_width(line) for block in blocks for line in block)
        across = min(len(blocks), max(1, (width + _GAP) // (widest + _GAP)))
        if across == 1:
            # Names need not be shortened if each list has its lines to itself.
            blocks = self._make_blocks(shown, None)
        lines = []
        for first in range(0, len(blocks), across):
            row = zip_longest(*blocks[first : first + across], fillvalue="")
            lines += ["".join(pad_cell(cell, widest + _GAP) for cell in cells).rstrip() for cells in row]
        more = f"... and {len(self.lists) - _FEW:,} more groups (all of them: to_frame(), --format csv)"
        return lines if few else [*lines, more]

    def _make_blocks(self, count: int, longest: int | None) -> list[list[str]]:
        return [
            [name_group(group), *(f"  {line}" for line in [*listing.lines(longest), *_brackets(listing)])]
            for group, listing in self._some(count)
        ]

    def to_html(self) -> str:
        """Return the lists of few groups side by side, those of more to unfold one by one, without a script."""
        template = _SIDE_BY_SIDE if len(self.lists) <= _ALL else _FOLDS
        lists = [(" ".join([name_group(group), *_brackets(one)]), one.to_html()) for group, one in self._some(_FOLDED)]
        return render_html(template, lists=lists, more=len(self.lists) - len(lists))

    def _some(self, count: int) -> Iterator[tuple[Any, Listing]]:
        return islice(self.lists.items(), count)

    def _own_columns(self) -> list[str]:
        """Return the columns of the lists without the group: all columns that some list has."""
        return max((listing.columns() for listing in self.lists.values()), key=len)


def _brackets(listing: Listing) -> list[str]:
    """Return the bound of the shortfall of one list in brackets, if there is one."""
    return [f"({listing.bound})"] if listing.bound else []


@dataclass(frozen=True, repr=False)
class GroupedRelease(Mapping[Any, Release]):
    """A release for each group, by the group, in the order of the public list of groups.

    Attributes
    ----------
    releases
        The release of each group; its guarantee is the group's own share.
    guarantee
        The guarantee of all groups together.
    each_user
        "one" if a user counts in one group only, "many" if in several.
    groups_per_user
        The contribution bound in groups.
    names
        The names of the columns that make a group.
    withheld
        The groups whose lists a publisher does not show; a release that was drawn withholds none.
    expressions
        The arguments of `events` that were row expressions, each with its text.

    Examples
    --------
    >>> import discreet
    >>> visits = {"DE": {"dune": 912, "alien": 877, "heat": 41}, "FR": {"dune": 20, "alien": 310, "heat": 298}}
    >>> charts = discreet.top_k(discreet.grouped(visits, each_user="many"), k=2, epsilon=10)
    >>> {group: release.items for group, release in charts.items()}
    {'DE': ['alien', 'dune'], 'FR': ['alien', 'heat']}
    >>> charts.guarantee.epsilon, charts["DE"].guarantee.epsilon
    (Fraction(10, 1), Fraction(5, 1))
    >>> discreet.GroupedRelease.from_json(charts.to_json()) == charts
    True
    """

    releases: dict[Any, Release]
    guarantee: Guarantee
    each_user: str
    groups_per_user: int
    names: tuple[str, ...] = ("group",)
    withheld: tuple[Any, ...] = ()
    expressions: Expressions = ()

    def __getitem__(self, group: Any) -> Release:
        if group in self.releases:
            return self.releases[group]
        few = ", ".join(repr(each) for each in islice(self.releases, 3))
        raise KeyError(f"{quote(group)} is no group of this release, whose {count_groups(len(self))} are like {few}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    @property
    def k(self) -> int:
        """The number of items released in each group, or the largest number where items had to be found."""
        first = next(iter(self.values()))
        return first.k if first.asked is None else first.asked

    @property
    def private(self) -> bool:
        """False if the caller passed a random generator: a release that can be drawn again protects nobody."""
        return all(release.private for release in self.releases.values())

    def to_frame(self, library: str | None = None) -> Any:
        """Return the items of all groups as one table, as `Release.to_frame` does, with the group before the item.

        Examples
        --------
        >>> import discreet
        >>> visits = {"DE": {"dune": 912, "alien": 3}, "FR": {"dune": 2, "alien": 31}}
        >>> charts = discreet.top_k(discreet.grouped(visits, each_user="one"), k=1, epsilon=100)
        >>> charts.to_frame("pyarrow").to_pylist()
        [{'group': 'DE', 'item': 'dune'}, {'group': 'FR', 'item': 'alien'}]
        """
        from discreet.release.formats import make_frame

        return make_frame(self.listing, library)

    def to_dict(self) -> dict[str, Any]:
        """Return the release as JSON data. Groups refer to their guarantee by its place in one list."""
        places = {id(release.guarantee): release.guarantee for release in self.releases.values()}
        order = {number: place for place, number in enumerate(places)}
        return {
            "format": FORMAT,
            "names": list(self.names),
            "each_user": self.each_user,
            "groups_per_user": self.groups_per_user,
            "guarantee": self.guarantee.to_dict(),
            "private": self.private,
            **({"withheld": [label_to_json(group) for group in self.withheld]} if self.withheld else {}),
            "guarantees": [guarantee.to_dict() for guarantee in places.values()],
            "groups": [
                {"group": label_to_json(group), **items, **counts, "guarantee": order[id(release.guarantee)]}
                for group, release in self.releases.items()
                for items, counts in [items_to_dict(release)]
            ],
            **expressions_to_dict(self.expressions),
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return the release as JSON text, as `Release.to_json` does."""
        return to_json_text(add_decimals(self), indent)

    def plot(self, *, dark: bool = False, language: str = "en") -> Any:
        """Draw each group in a panel of its own, as `Release.plot` does, with one scale for all bars.

        Parameters
        ----------
        dark
            True for a dark page.
        language
            "en" or "de".

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import discreet
        >>> visits = {"DE": {"dune": 912, "alien": 3}, "FR": {"dune": 2, "alien": 31}}
        >>> charts = discreet.top_k(discreet.grouped(visits, each_user="one"), k=1, epsilon=100)
        >>> [panel.get_title(loc="left") for panel in charts.plot().axes]
        ['DE', 'FR']
        """
        check_matplotlib()
        from discreet.release.plots import draw_groups

        return draw_groups(self, dark, find_language(language))

    def statement(self, ledger: Any = None, source: str | None = None, language: str = "en") -> str:
        """Return the privacy statement in Markdown, as `Release.statement` does."""
        from discreet.release.statement import make_statement

        return make_statement(self, ledger, source, language)

    def registry(self, ledger: Any = None, answers: Any = None, source: str | None = None) -> dict[str, Any]:
        """Return an entry for the public registry of deployments, as `Release.registry` does."""
        from discreet.release.registry import make_registry_entry

        return make_registry_entry(self, ledger, answers, source)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GroupedRelease:
        """Return the release that `to_dict` wrote."""
        try:
            return _read_groups(data)
        except MALFORMED as error:
            said = explain_malformed(error)
        raise InvalidValueError(f"data must be a release by group as GroupedRelease.to_dict or to_json writes it{said}")

    @classmethod
    def from_json(cls, text: str) -> GroupedRelease:
        """Return the release that `to_json` wrote."""
        return cls.from_dict(from_json_text(text, "GroupedRelease"))

    def __repr__(self) -> str:
        return f"GroupedRelease({count_groups(len(self))}, k={self.k}, epsilon={round_up(self.guarantee.epsilon)})"

    def __str__(self) -> str:
        return "\n".join([f"{self.title()}:", *self.listing.to_lines(), *self.notes()])

    def _repr_html_(self) -> str:
        """Return the notebook view."""
        return make_html_view(self.title(), self.listing.to_html(), self.notes())

    @property
    def listing(self) -> GroupedListing:
        """The lists of all groups for display, in rows and lines."""
        return GroupedListing(self.names, {group: release.listing for group, release in self.items()})

    def title(self, language: Language = ENGLISH) -> str:
        """Return the line above the lists."""
        sizes = sorted({release.d for release in self.values() if release.d is not None})
        items = language.text("list.of_found")
        if sizes:
            items = language.text("list.of_all", count=sizes[0])
        if len(sizes) > 1:
            items = language.text("list.of_some", least=sizes[0], most=sizes[-1])
        size = language.text(
            "list.groups_title",
            top=language.text("list.top" if all(release.k == self.k for release in self.values()) else "list.up_to"),
            count=self.k,
            items=items,
            groups=count_groups(len(self), language),
            by=self.name_columns(language),
        )
        return add_order(size, self.listing.describe_order(language), language)

    def name_columns(self, language: Language = ENGLISH) -> str:
        """Return the columns that make a group, for the end of a title; an empty text if they have no name."""
        names = language.join(map(printable, self.names))
        return "" if self.names == ("group",) else language.text("list.by", names=names)

    def describe_shortfall(self, language: Language = ENGLISH) -> list[str]:
        """Return the sentence about the bounds that stand in brackets, if there are any."""
        if not self.guarantee.shortfall_epsilon:
            return []
        elsewhere = self.groups_per_user < len(self) + len(self.withheld)
        return [language.text("shortfall.groups_elsewhere" if elsewhere else "shortfall.groups")]

    def notes(self, language: Language = ENGLISH) -> list[str]:
        """Return lines for people: the guarantee, and caveats about the lists."""
        support, *rest = self._list_remarks(language)
        cost = [self.describe_cost(language), describe_mechanism(self.guarantee, language)]
        return [*self.describe_shortfall(language), *support, *cost, *(line for lines in rest for line in lines)]

    def remarks(self, language: Language = ENGLISH) -> list[str]:
        """Return the notes without the shortfall, the cost and the mechanism."""
        return [line for lines in self._list_remarks(language) for line in lines]

    def describe_cost(self, language: Language = ENGLISH) -> str:
        """Return the cost of all groups in a line for people."""
        counts_in = language.text("person.one_group")
        if self.each_user != ONE:
            share = language.rounded(max(release.guarantee.epsilon for release in self.values()))
            most = count_groups(self.groups_per_user, language)
            counts_in = language.text("person.many_groups", groups=most, share=share)
        return describe_cost(self.guarantee, counts_in, language)

    def _list_remarks(self, language: Language) -> list[list[str]]:
        """Return lines about groups with few items, about counts, about the whole release, and about all lists."""
        first = next(iter(self.values()))
        fewer = sum(describe_support(release) is not None for release in self.values())
        groups = count_groups(len(self), language)
        support = [language.text("note.few_groups", fewer=fewer, groups=groups, k=self.k)] if fewer else []
        is_elsewhere = first.counts is not None and self.groups_per_user < len(self)
        counts = [language.text("note.counts_of_group")] if is_elsewhere else []
        warnings = describe_warnings(self.guarantee, self.private, language)
        return [support, counts, warnings, describe_caveats(first, language, in_group=True)]


AnyRelease = Release | GroupedRelease


def read_release(data: Any) -> AnyRelease:
    """Return the release that some `to_dict` wrote, by group or not, according to its format number."""
    by_group = isinstance(data, dict) and data.get("format") == FORMAT
    return GroupedRelease.from_dict(data) if by_group else Release.from_dict(data)


def count_groups(count: int, language: Language = ENGLISH) -> str:
    """Return a number of groups in words."""
    return language.text("groups", count=count)


def name_group(group: Any) -> str:
    """Return a group on one line; the parts of a group of several columns are separated by commas."""
    return ", ".join(map(printable, group)) if isinstance(group, tuple) else printable(group)


def _read_groups(data: dict[str, Any]) -> GroupedRelease:
    """Return the release in the data; raise ValueError unless the total is what the shares of the groups add up to."""
    if data["format"] != FORMAT or not data["groups"] or data["each_user"] not in (ONE, MANY):
        raise ValueError
    guarantees, private = dict(enumerate(map(Guarantee.from_dict, data["guarantees"]))), bool(data["private"])
    releases = {
        label_from_json(entry["group"]): items_from_dict(entry, guarantees[entry["guarantee"]], private)
        for entry in data["groups"]
    }
    if len(releases) < len(data["groups"]):
        raise ValueError
    total, names = Guarantee.from_dict(data["guarantee"]), tuple(map(str, data["names"]))
    most, own = int(data["groups_per_user"]), [each.guarantee for each in releases.values()]
    found = None if total.discovery is None else total.discovery.share_of_group()
    if any(each.discovery != found for each in own):
        raise ValueError
    if total.discovery is not None and total.discovery.max_groups_per_user != most:
        raise ValueError
    # One discovery may find the items of all groups at once, so its cost is compared by itself.
    shares = Counter(each.epsilon - each.discovery_epsilon for each in own)
    withheld = tuple(label_from_json(group) for group in data.get("withheld", ()))
    if withheld:
        # Lists are withheld for their shortfall, which all groups have at one cost.
        [share] = shares
        shares[share] += len(withheld)
    if not 1 <= most <= (1 if data["each_user"] == ONE else len(releases) + len(withheld)):
        raise ValueError
    if total.epsilon - total.discovery_epsilon != sum_of_largest(shares.items(), most):
        raise ValueError
    if not names or (
        len(names) > 1 and any(not isinstance(group, tuple) or len(group) != len(names) for group in releases)
    ):
        raise ValueError
    return GroupedRelease(releases, total, data["each_user"], most, names, withheld, expressions_from_dict(data))
