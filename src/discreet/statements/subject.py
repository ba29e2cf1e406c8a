"""What there is to say about a release, a release by group or a sketch, the same for all three."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.grouped_release import GroupedRelease, count_groups
from discreet.guarantee import Guarantee
from discreet.privacy import ONE
from discreet.release import Release, to_json_text
from discreet.release_words import describe_parts, describe_size
from discreet.sketches import Sketch
from discreet.statements.limits import COUNTS, FOUND, GROUPS, LEDGER, LISTED, SEEDED, VALUES
from discreet.text import decimal_above, printable

if TYPE_CHECKING:
    from discreet.ledger.account import Entry
    from discreet.ledger.ledger import Ledger

Statable = Release | GroupedRelease | Sketch
"""What has a statement."""


@dataclass(frozen=True)
class Subject:
    """What a statement is about.

    Attributes
    ----------
    title, word
        What was released, in words, and what readers look at: "this list", "these lists" or "this curve".
    guarantee, private
        What it promises, and whether it does.
    traits
        What of `limits` it has.
    d
        How many items there are; None where nobody listed them.
    parts
        How epsilon divides, in brackets; nothing where it does not.
    share
        How a user counts in groups, in a sentence; None where there are none.
    ledger, entry
        The ledger that it was charged to and its charge; None where no ledger was given.
    """

    title: str
    word: str
    guarantee: Guarantee
    private: bool
    traits: frozenset[str]
    d: int | None
    parts: str
    share: str | None = None
    ledger: Ledger | None = None
    entry: Entry | None = None


def make_subject(
    release: Statable, ledger: Ledger | str | os.PathLike[str] | None, entry: Entry | None = None
) -> Subject:
    """What is known of a release, and of the ledger that holds it; its charge is looked for where it is not given."""
    book = None if ledger is None else _open_ledger(ledger)
    if book is not None and entry is None:
        entry = _find_charge(book, release)
    own, title, word, share, d = _describe(release)
    guarantee = release.guarantee
    traits = {
        LISTED if guarantee.discovery is None else FOUND,
        *own,
        *([VALUES] if guarantee.mechanism.releases_values else []),
        *([] if book is None else [LEDGER]),
        *([] if release.private else [SEEDED]),
    }
    parts = "" if isinstance(release, Sketch) else describe_parts(guarantee)
    return Subject(title, word, guarantee, release.private, frozenset(traits), d, parts, share, book, entry)


def _describe(release: Statable) -> tuple[set[str], str, str, str | None, int | None]:
    """The traits of a release, its title, what readers look at, how users share groups, and how many items it is of."""
    if isinstance(release, Sketch):
        title = f"Noisy scores at {len(release.ranks):,} public ranks of {release.d:,} items"
        return set(), title, "this curve", None, release.d
    if isinstance(release, Release):
        counted = {COUNTS} if release.counts is not None and not release.guarantee.mechanism.releases_values else set()
        return counted, describe_size(release), "this list", None, release.d
    traits, _, _, _, d = _describe(next(iter(release.values())))
    by = "" if release.names == ("group",) else f" by {' and '.join(map(printable, release.names))}"
    size = "Up to" if any(each.k < release.k for each in release.values()) else "Top"
    title = f"{size} {release.k:,} in each of {count_groups(len(release))}{by}"
    return traits | {GROUPS}, title, "these lists", _describe_share(release), d


def _describe_share(release: GroupedRelease) -> str:
    if release.each_user == ONE:
        return "A user counts in one group alone, so that all groups together cost what one of them does."
    share = decimal_above(max(each.guarantee.epsilon for each in release.values()))
    most = count_groups(release.groups_per_user)
    return f"A user counts in up to {most}, each of which costs at most epsilon {share}; the epsilon above is for all."


def _open_ledger(given: Any) -> Ledger:
    from discreet.ledger.ledger import Ledger

    if isinstance(given, Ledger):
        return given
    if isinstance(given, str | os.PathLike):
        return Ledger(given)
    raise InvalidTypeError(f"ledger must be a Ledger or the path of one, not {quote(given)}")


def _find_charge(book: Ledger, release: Statable) -> Entry:
    """The charge of the release in the ledger, which must have it: otherwise its budget says nothing about it."""
    data = json.loads(to_json_text(release.to_dict(), None))
    for entry in reversed(book.history()):
        if entry.stored == data:
            return entry
    raise InvalidValueError(
        "ledger must be the one that the release was charged to, and this one does not hold the release"
    )


def check_answers(answers: Mapping[str, Any] | None) -> dict[str, Any]:
    """The answers by field."""
    if answers is None:
        return {}
    if not isinstance(answers, Mapping):
        raise InvalidTypeError(f"answers must be a mapping from field to answer, not {quote(answers)}")
    return dict(answers)
