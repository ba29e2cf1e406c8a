"""What a release says about itself, in lines for people: how many items, what is promised, and what is doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.guarantee import Guarantee
from discreet.selection import CORE
from discreet.text import decimal_above, round_up

if TYPE_CHECKING:
    from discreet.release import Release


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
