"""GroupedRelease: a release for each of several public groups, made at once and promised for as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.labels import label_from_json, label_to_json
from discreet.privacy import MANY, ONE, sum_of_largest
from discreet.release.guarantee import Guarantee
from discreet.release.release import (
    MALFORMED,
    Listing,
    Release,
    add_decimals,
    describe_doubts,
    describe_support,
    describe_terms,
    describe_values,
    explain_malformed,
    from_json_text,
    items_from_dict,
    items_to_dict,
    to_json_text,
)
from discreet.text import measure_width, pad_cell, printable, round_up

# The lists of several groups as people and tables have them: side by side, to unfold, or as rows of one table.

_ALL, _FEW, _FOLDED = 12, 3, 200
"""Up to how many groups are printed whole, how many of more, and how many a page has to unfold."""

_SIDE_BY_SIDE = (
    '<div style="display:flex;flex-wrap:wrap;gap:1em 2em;align-items:flex-start">'
    "{% for name, list in lists %}<div><b>{{ name }}</b>{{ list | safe }}</div>{% endfor %}</div>"
)
_FOLDS = (
    "{% for name, list in lists %}<details><summary>{{ name }}</summary>{{ list | safe }}</details>{% endfor %}"
    "{% if more %}<p>... and {{ '{:,}'.format(more) }} more groups (all of them: to_frame())</p>{% endif %}"
)

_GAP, _LONGEST = 4, 40
"""How many blanks there are between lists, and how long a name can be where lists stand beside each other."""


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
        """The names of what `rows` has; a group that is called like another column is told apart from it."""
        own = self._own_columns()
        return [*(f"group_{name}" if name in own else name for name in self.names), *own]

    def rows(self) -> Iterator[list[Any]]:
        """Each item of each group, the group first, in as many places as it has columns; None for what is not there."""
        own = self._own_columns()
        for group, listing in self.lists.items():
            parts, names = group if len(self.names) > 1 else (group,), listing.columns()
            for row in listing.rows():
                cells = dict(zip(names, row, strict=True))
                yield [*parts, *(cells.get(name) for name in own)]

    def describe_order(self) -> str:
        """In which order the items are, in words."""
        return ", or ".join(sorted({listing.describe_order() for listing in self.lists.values()}))

    def to_lines(self) -> list[str]:
        """The lists as lines of text, as many side by side as the terminal is wide for."""
        import shutil  # what it stands on takes time to import, and few lists are of groups

        few, width = len(self.lists) <= _ALL, shutil.get_terminal_size().columns
        shown = _ALL if few else _FEW
        blocks = self._make_blocks(shown, _LONGEST)
        if _count_across(blocks, width) == 1:
            # What stands alone on its line need not be cut.
            blocks = self._make_blocks(shown, None)
        more = (
            [] if few else [f"... and {len(self.lists) - _FEW:,} more groups (all of them: to_frame(), --format csv)"]
        )
        return [*_put_side_by_side(blocks, width), *more]

    def _make_blocks(self, count: int, longest: int | None) -> list[list[str]]:
        return [
            [name_group(group), *(f"  {line}" for line in listing.lines(longest))]
            for group, listing in self._some(count)
        ]

    def to_html(self) -> str:
        """Return the lists side by side, or, if there are many groups, folded one by one; no script is needed."""
        from discreet.html_text import render_html

        template = _SIDE_BY_SIDE if len(self.lists) <= _ALL else _FOLDS
        lists = [(name_group(group), one.to_html()) for group, one in self._some(_FOLDED)]
        return render_html(template, lists=lists, more=len(self.lists) - len(lists))

    def _some(self, count: int) -> Iterator[tuple[Any, Listing]]:
        return islice(self.lists.items(), count)

    def _own_columns(self) -> list[str]:
        """The columns of the lists without the group: what one of them has, all have, if only with nothing in it."""
        return max((listing.columns() for listing in self.lists.values()), key=len)


def name_group(group: Any) -> str:
    """A group on one line; the parts of one of several columns with commas between."""
    return ", ".join(map(printable, group)) if isinstance(group, tuple) else printable(group)


def _put_side_by_side(blocks: list[list[str]], width: int) -> list[str]:
    """Blocks of lines in rows, each with as many of equal width as fit, and at least one."""
    widest, across = _find_widest(blocks), _count_across(blocks, width)
    lines = []
    for first in range(0, len(blocks), across):
        row = zip_longest(*blocks[first : first + across], fillvalue="")
        lines += ["".join(pad_cell(cell, widest + _GAP) for cell in cells).rstrip() for cells in row]
    return lines


def _count_across(blocks: list[list[str]], width: int) -> int:
    """How many blocks beside each other fit, and at least one."""
    return min(len(blocks), max(1, (width + _GAP) // (_find_widest(blocks) + _GAP)))


def _find_widest(blocks: list[list[str]]) -> int:
    return max(measure_width(line) for block in blocks for line in block)


FORMAT = 2
"""What a release by group is written as."""


@dataclass(frozen=True, repr=False)
class GroupedRelease(Mapping[Any, Release]):
    """A release for each group, by the group, in the order of the public list of groups.

    Attributes
    ----------
    releases
        The release of each group; its guarantee is the group's own share.
    guarantee
        What all groups together promise.
    each_user
        "one" where a user counts in one group alone, "many" where in several.
    groups_per_user
        In how many groups at most a user counts.
    names
        The names of the columns that make a group.

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
        """How many items of each group were released, or at most, where they had to be found."""
        first = next(iter(self.values()))
        return first.k if first.asked is None else first.asked

    @property
    def private(self) -> bool:
        """False where the caller passed a random generator: a release that can be drawn again protects nobody."""
        return all(release.private for release in self.releases.values())

    def to_frame(self, library: str | None = None) -> Any:
        """The items of all groups as one table, as `Release.to_frame` has it, with the group before the item.

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
        """The release in terms that JSON can hold. Groups that have the same guarantee name it by its place."""
        places = {id(release.guarantee): release.guarantee for release in self.releases.values()}
        order = {number: place for place, number in enumerate(places)}
        return {
            "format": FORMAT,
            "names": list(self.names),
            "each_user": self.each_user,
            "groups_per_user": self.groups_per_user,
            "guarantee": self.guarantee.to_dict(),
            "private": self.private,
            "guarantees": [guarantee.to_dict() for guarantee in places.values()],
            "groups": [
                _member_to_dict(group, release, order[id(release.guarantee)])
                for group, release in self.releases.items()
            ],
        }

    def to_json(self, indent: int | None = None) -> str:
        """The release as JSON text, as `Release.to_json` has it."""
        return to_json_text(add_decimals(self), indent)

    def statement(self, ledger: Any = None) -> str:
        """What the release promises and what it does not, as `Release.statement` has it."""
        from discreet.release.statement import make_statement

        return make_statement(self, ledger)

    def registry(self, ledger: Any = None, answers: Any = None) -> dict[str, Any]:
        """The release as an entry of the public registry of deployments, as `Release.registry` has it."""
        from discreet.release.registry import make_registry_entry

        return make_registry_entry(self, ledger, answers)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GroupedRelease:
        """The release that `to_dict` wrote."""
        try:
            return _read_groups(data)
        except MALFORMED as error:
            said = explain_malformed(error)
        raise InvalidValueError(f"data must be a release by group as GroupedRelease.to_dict or to_json writes it{said}")

    @classmethod
    def from_json(cls, text: str) -> GroupedRelease:
        """The release that `to_json` wrote."""
        return cls.from_dict(from_json_text(text, "GroupedRelease"))

    def __repr__(self) -> str:
        return f"GroupedRelease({count_groups(len(self))}, k={self.k}, epsilon={round_up(self.guarantee.epsilon)})"

    def __str__(self) -> str:
        return "\n".join([f"{self._title()}:", *self.listing.to_lines(), *self.notes()])

    def _repr_html_(self) -> str:
        """The notebook view."""
        from discreet.html_text import make_html_view

        return make_html_view(self._title(), self.listing.to_html(), self.notes())

    @property
    def listing(self) -> GroupedListing:
        """The lists of all groups as they are printed, in rows and lines."""
        return GroupedListing(self.names, {group: release.listing for group, release in self.items()})

    def _title(self) -> str:
        by = "" if self.names == ("group",) else f" by {' and '.join(map(printable, self.names))}"
        order = self.listing.describe_order()
        top = "Top" if all(release.k == self.k for release in self.values()) else "Up to"
        return f"{top} {self.k:,} of {self._count_items()} in each of {count_groups(len(self))}{by}, {order}"

    def _count_items(self) -> str:
        """Of how many items a group's list is, in words."""
        sizes = sorted({release.d for release in self.values() if release.d is not None})
        if not sizes:
            return "those found"
        return f"{sizes[0]:,} items" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,} items"

    def notes(self) -> list[str]:
        """What is promised, and what has to be known to read the list, in lines for people."""
        if self.each_user == ONE:
            counts_in = "counts in one group alone"
        else:
            share = round_up(max(release.guarantee.epsilon for release in self.values()))
            counts_in = f"counts in up to {count_groups(self.groups_per_user)} at {share} each"
        terms, drawn_by, *warnings = describe_terms(self.guarantee, self.private, counts_in)
        first = next(iter(self.values()))
        said = [*self._describe_support(), terms, drawn_by, *self._describe_counts(), *warnings]
        return [*said, *describe_values(first, " of a group"), *describe_doubts(first)]

    def _describe_support(self) -> list[str]:
        """In how many groups the data did not support all the items asked for."""
        fewer = sum(describe_support(release) is not None for release in self.values())
        if not fewer:
            return []
        return [f"in {fewer:,} of {count_groups(len(self))} the data do not support all {self.k:,} at this epsilon"]

    def _describe_counts(self) -> list[str]:
        """Whom counts leave out, where a user may have been in more groups than count."""
        counted = next(iter(self.values())).counts is not None
        if not counted or self.groups_per_user >= len(self):
            return []
        return ["counts are of the users who count in the group, without those who were there and count elsewhere"]


AnyRelease = Release | GroupedRelease


def read_release(data: Any) -> AnyRelease:
    """The release that some `to_dict` wrote, by group or not: its format says which."""
    by_group = isinstance(data, dict) and data.get("format") == FORMAT
    return GroupedRelease.from_dict(data) if by_group else Release.from_dict(data)


def count_groups(count: int) -> str:
    """So many groups, in words."""
    return f"{count:,} group{'' if count == 1 else 's'}"


def _member_to_dict(group: Any, release: Release, guarantee: int) -> dict[str, Any]:
    items, counts = items_to_dict(release)
    return {"group": label_to_json(group), **items, **counts, "guarantee": guarantee}


def _read_groups(data: dict[str, Any]) -> GroupedRelease:
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
    release = GroupedRelease(releases, total, data["each_user"], int(data["groups_per_user"]), names)
    _check_parts(release)
    return release


def _check_parts(release: GroupedRelease) -> None:
    """Raises unless the whole promises what its groups add up to, and a group has as many parts as it has names."""
    most, names = release.groups_per_user, release.names
    shares = Counter(each.guarantee.epsilon for each in release.values())
    if not 1 <= most <= (1 if release.each_user == ONE else len(release)):
        raise ValueError
    if release.guarantee.epsilon != sum_of_largest(shares.items(), most):
        raise ValueError
    if not names or (
        len(names) > 1 and any(not isinstance(group, tuple) or len(group) != len(names) for group in release)
    ):
        raise ValueError
