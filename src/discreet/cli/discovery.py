"""The options of `discreet select` for items that nobody listed: how they are declared, and what their text means."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import complete_from, join_choices, parse_choice, parse_count
from discreet.cli.output import print_doubt
from discreet.errors import InvalidValueError
from discreet.sources.discovered import EXACT, KINDS, SPELLINGS, discovered

if TYPE_CHECKING:
    from discreet.sources.discovered import Discovered

DiscoverOption = Annotated[
    bool,
    typer.Option(
        "--discover",
        help="With --user, in place of --domain: find the items in the events, where nobody has a list of them. Needs "
        "--delta, and --max-items-per-user, which then says how many items of a user count for finding them.",
    ),
]
DeltaOption = Annotated[
    str | None,
    typer.Option(
        metavar="D",
        help="With --discover: the chance that the promise of epsilon may fail, such as 1e-8; far below one over the "
        "number of people, and at most 1e-3.",
    ),
]
KindOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"With --discover: what the items are, {join_choices(KINDS)}. By default string.",
        autocompletion=complete_from(KINDS),
    ),
]
SpellingOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --discover: which texts are one item. exact, the default; casefold, whatever the case of A to Z; "
        "trim, whatever the spaces at their ends; or both.",
        autocompletion=complete_from(SPELLINGS),
    ),
]
DiscoveryEpsilonOption = Annotated[
    str | None,
    typer.Option(
        metavar="E1",
        help="With --discover: how much of epsilon is for finding the items. By default a quarter to a half.",
    ),
]


def parse_discovery(given: Mapping[str, Any], max_items_per_user: str | None) -> Discovered | None:
    """The terms that the options by name stand for; None, and no option given, where nothing is to be found."""
    if not given["discover"]:
        for option, text in given.items():
            if text:
                raise InvalidValueError(f"{option} must be left out without discover: the items come from a list")
        return None
    if max_items_per_user is None:
        raise InvalidValueError("max_items_per_user must be given with discover: how many items of a user count for it")
    most = parse_count(max_items_per_user, "max_items_per_user")
    kind = parse_choice("kind", given["kind"] or KINDS[0], KINDS)
    spelling = parse_choice("spelling", given["spelling"] or EXACT, SPELLINGS)
    with warnings.catch_warnings(record=True, action="always") as caught:
        terms = discovered(given["delta"], most, given["discovery_epsilon"], kind, spelling)
    for warning in caught:
        print_doubt(str(warning.message))
    return terms
