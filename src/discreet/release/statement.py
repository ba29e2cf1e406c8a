"""Write the privacy statement of a release in Markdown, for lawyers and experts: promise, numbers and limits.

The promise to one person bounds the belief of somebody who gave even odds to that person being in the data. Under pure
epsilon the odds change by a factor of at most e^epsilon, so that belief is at most e^epsilon / (1 + e^epsilon). With a
delta single outcomes have no bound, but a guess is right with probability at most 1/2 + TV/2, where the total variation
TV is at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1): in sum (e^epsilon + delta) / (1 + e^epsilon).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.ball import ball, precision
from discreet.privacy import ONE
from discreet.release.grouped import GroupedRelease, count_groups
from discreet.release.guarantee import Guarantee
from discreet.release.release import Release, describe_parts, describe_size, describe_user, to_json_text
from discreet.release.sketch import Sketch
from discreet.text import decimal, decimal_above, printable

if TYPE_CHECKING:
    from discreet.ledger.account import Entry
    from discreet.ledger.ledger import Ledger


PROMISE, DATA, OUTSIDE = "promise", "data", "outside"
"""The subjects of a limit: the reach of the promise, the duties of the data holder, and the view of an observer."""

LISTED, FOUND, COUNTS, VALUES, SHORTFALL, GROUPS, LEDGER, SEEDED = (
    "listed", "found", "counts", "values", "shortfall", "groups", "ledger", "seeded",
)  # fmt: skip
"""The traits of a release that a limit can be about."""

Statable = Release | GroupedRelease | Sketch
"""The kinds of release that have a statement."""

_BITS = 512
"""The precision of the bound on belief, far beyond the places that are printed."""

_MOST_PLACES = 6
"""The largest number of decimal places of a percentage: a chance closer to 0 or 1 is shown as certain."""

_CERTAIN = Fraction(64)
"""From this epsilon on the bound on belief is 1 to more places than are ever printed."""

NOT_PRIVATE = (
    "NOT PRIVATE: it was drawn with the caller's random generator, so that whoever can guess the seed can undo the "
    "noise. It is for tests, promises nothing, and is not to be published."
)
ARITHMETIC = (
    "Scores, epsilon and sensitivities are exact rationals. Every random choice compares random bits of the operating "
    "system with interval arithmetic of as many digits as it takes to decide, so that what is drawn has exactly the "
    "probabilities of the proof; floating point enters as proven upper bounds alone."
)
SIDE_CHANNELS = (
    "How long a release takes depends on the scores. With `pad_to` it ends only at whole multiples of a time; the "
    "release does not record whether that was used."
)
NO_LEDGER = (
    "No ledger was given, so that nothing is known about other releases. Promises add up: two releases with epsilon 1 "
    "each come to epsilon 2."
)
LIMITS_PAGE = "Each line of this section and of the next two is a heading of the page of known limits of discreet."
PAD_TO = "Was `pad_to` used, with how many seconds, and who could have measured how long the release took?"
WHO = "Who is one user: a person, an account, a household, a device?"
OTHERS = "What else was released about the same people, and what did it cost?"
VERSION = "Which version of discreet made the release?"


@dataclass(frozen=True)
class Limit:
    """A heading of docs/known-limits.md, its subject, and the trait that a release must have; None for any release."""

    heading: str
    about: str
    needs: str | None = None


@dataclass(frozen=True)
class Subject:
    """A release of any kind in the terms of its statement.

    Attributes
    ----------
    title, word
        The released product in words, and its name in sentences: "this list", "these lists" or "this curve".
    guarantee, private
        The guarantee, and False if it does not hold because the caller passed a random generator.
    traits
        The traits that select the limits.
    d
        The number of items; None after partition selection.
    parts
        The parts of epsilon in brackets; empty if there is one part.
    share
        A sentence on how users share groups; None without groups.
    quality
        A sentence on the shortfall; None without one.
    ledger, entry
        The ledger that the release was charged to, and its charge; None without a ledger.
    """

    title: str
    word: str
    guarantee: Guarantee
    private: bool
    traits: frozenset[str]
    d: int | None
    parts: str
    share: str | None = None
    quality: str | None = None
    ledger: Ledger | None = None
    entry: Entry | None = None


LIMITS = (
    Limit("The list of items must be public.", DATA, LISTED),
    Limit("Scores must move by no more than the stated sensitivity.", DATA),
    Limit("Scores must be numbers exactly as you mean them.", DATA),
    Limit("A domain taken from the events is not always detected.", DATA, LISTED),
    Limit("Text files must be well formed.", DATA),
    Limit("Column names are public where they are a schema or a header.", DATA),
    Limit("Declared column types are trusted.", DATA),
    Limit("Pandas merges whole numbers beyond 2^53.", DATA),
    Limit("Each user's rows must depend on that user alone.", DATA),
    Limit("A source of events stays in its process.", DATA),
    Limit("A table must not change during a release.", DATA),
    Limit("Positions of a sorted array are ranks.", DATA),
    Limit("Planning on private scores is not private.", DATA),
    # A period of the rows can have a time zone too, and a release does not record it.
    Limit("Days depend on the database of time zones.", DATA),
    Limit("A ledger knows a dataset by its name alone.", DATA, LEDGER),
    Limit("Float functions are trusted to a stated error.", DATA),
    Limit("Items that are found cost a delta, and rare ones are not found.", PROMISE, FOUND),
    Limit("A generator of your own is for tests.", PROMISE, SEEDED),
    Limit("The values of a histogram are biased upwards.", PROMISE, VALUES),
    Limit("Counts cost extra, and an interval is about one item.", PROMISE, COUNTS),
    Limit("A shortfall is about one list, and misses one time in twenty.", PROMISE, SHORTFALL),
    Limit("Groups are public, and rows decide who is in them.", PROMISE, GROUPS),
    Limit("Every release costs.", PROMISE),
    Limit("Epsilon is about one person.", PROMISE),
    Limit("Some rows can still make a release fail.", OUTSIDE),
    Limit("Running time depends on the scores.", OUTSIDE),
    Limit("An engine sees the queries, and how many there are.", OUTSIDE),
    Limit("Rows that do not fit into memory are written to disk.", OUTSIDE),
    Limit("Standard input is copied.", OUTSIDE),
    Limit("A feature selection shows that there is a row.", OUTSIDE),
    Limit("The process is trusted.", OUTSIDE),
)


def make_statement(release: Statable, ledger: Ledger | str | os.PathLike[str] | None = None) -> str:
    """Return the statement of a release as Markdown.

    Parameters
    ----------
    release
        A release, a release by group, or a sketch.
    ledger
        The ledger that the release was charged to; the statement then covers all of its releases too.
    """
    return write_statement(make_subject(release, ledger))


def write_statement(subject: Subject) -> str:
    """Return the statement of a subject as Markdown."""
    terms, entry, ledger = subject.guarantee, subject.entry, subject.ledger
    promised = [NOT_PRIVATE]
    if subject.private:
        promise = promise_to_people(terms.epsilon, terms.delta, terms.adjacency, subject.word)
        unit = WHO if ledger is None else f"The budget is for the privacy of {printable(ledger.budget.unit)}."
        alone = f"With this release alone: {promise[:1].lower()}{promise[1:]}"
        promised = [alone, "", f"'You' are one user of the data. {unit}"]
    version = "its version is not in the release" if entry is None else f"version {printable(entry.version)}"
    charged = [] if entry is None else [f"- charge {entry.number} of the ledger, at {printable(entry.time)}"]
    made = [
        f"- mechanism: {terms.mechanism!r}, in the central model: whoever runs it sees the data",
        f"- library: discreet, {version}",
        *charged,
        f"- arithmetic: {ARITHMETIC}",
    ]
    limits = {
        about: [f"- {heading}" for heading in find_limits(about, subject.traits)] for about in (PROMISE, OUTSIDE, DATA)
    }
    questions = [PAD_TO] if ledger is not None else [WHO, OTHERS, VERSION, PAD_TO]
    sections = [
        ("What is promised", promised),
        ("In numbers", _list_terms(subject)),
        ("All releases together", [NO_LEDGER] if ledger is None else describe_ledger(ledger)),
        ("How it was made", made),
        ("How far the promise goes", [LIMITS_PAGE, "", *limits[PROMISE]]),
        ("What can be seen while a release is made", [SIDE_CHANNELS, "", *limits[OUTSIDE]]),
        ("What the data holder answers for", limits[DATA]),
        ("What discreet cannot know", [f"- {question}" for question in questions]),
    ]
    body = [line for title, lines in sections for line in ("", f"## {title}", "", *lines)]
    return "\n".join([f"# {subject.title}", *body])


def make_subject(release: Statable, ledger: Any, entry: Entry | None = None) -> Subject:
    """Return the subject of a statement; look up the charge of the release in its ledger unless it is given."""
    book = None
    if ledger is not None:
        from discreet.ledger.ledger import Ledger

        if not isinstance(ledger, Ledger | str | os.PathLike):
            raise InvalidTypeError(f"ledger must be a Ledger or the path of one, not {quote(ledger)}")
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if book is not None and entry is None:
        # The budget of another ledger says nothing about this release.
        data = json.loads(to_json_text(release.to_dict(), None))
        entry = next((each for each in reversed(book.history()) if each.stored == data), None)
        if entry is None:
            raise InvalidValueError(
                "ledger must be the one that the release was charged to, and this one does not hold the release"
            )
    own, title, word, share, d = _describe(release)
    guarantee = release.guarantee
    traits = {
        LISTED if guarantee.discovery is None else FOUND,
        *own,
        *([VALUES] if guarantee.mechanism.releases_values else []),
        *([SHORTFALL] if guarantee.shortfall_epsilon else []),
        *([] if book is None else [LEDGER]),
        *([] if release.private else [SEEDED]),
    }
    parts = "" if isinstance(release, Sketch) else describe_parts(guarantee)
    quality = _describe_quality(release)
    return Subject(title, word, guarantee, release.private, frozenset(traits), d, parts, share, quality, book, entry)


def _describe_quality(release: Statable) -> str | None:
    """Return a sentence on the shortfall of a release, or None without one."""
    if not release.guarantee.shortfall_epsilon:
        return None
    if isinstance(release, Release):
        return "".join(release.describe_shortfall()) or "No item is released, so there is no shortfall."
    return "Each list has a bound on its shortfall, which holds with 95% confidence for that list by itself."


def _describe(release: Statable) -> tuple[set[str], str, str, str | None, int | None]:
    """Return the traits of a release, its title, its word, how users share groups, and the number of items."""
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
    share = "A user counts in one group alone, so that all groups together cost what one of them does."
    if release.each_user != ONE:
        cost = decimal_above(max(each.guarantee.epsilon for each in release.values()))
        most = count_groups(release.groups_per_user)
        share = (
            f"A user counts in up to {most}, each of which costs at most epsilon {cost}; the epsilon above is for all."
        )
    return traits | {GROUPS}, title, "these lists", share, d


def find_limits(about: str, traits: Collection[str]) -> list[str]:
    """Return the headings on one subject that concern a release with these traits."""
    return [each.heading for each in LIMITS if each.about == about and (each.needs is None or each.needs in traits)]


def promise_to_people(epsilon: Fraction, delta: Fraction, adjacency: str, word: str = "this list") -> str:
    """Return the promise to one person in a sentence.

    Parameters
    ----------
    epsilon, delta, adjacency
        The privacy parameters.
    word
        The released product: "this list", for instance.

    Examples
    --------
    >>> from fractions import Fraction
    >>> promise_to_people(Fraction(1), Fraction(0), "add-remove", "these lists")
    'Whoever looks at these lists can become at most 73.2% sure, from even odds, that you are in the data.'
    """
    percent = belief_percent(epsilon, delta)
    if percent == "100%":
        return (
            f"Whoever looks at {word} may become as good as certain {_secret(adjacency)}: this epsilon protects nobody."
        )
    if not delta:
        return f"Whoever looks at {word} can become at most {percent} sure, from even odds, {_secret(adjacency)}."
    # With a delta a rare outcome may reveal a person, so that only guesses have a bound.
    asked = "whether you are in the data" if adjacency == "add-remove" else "which of two ways your rows are"
    return f"Whoever looks at {word} and guesses, from even odds, {asked}, is right with a chance of at most {percent}."


def _secret(adjacency: str) -> str:
    return "that you are in the data" if adjacency == "add-remove" else "what your rows are"


def bound_belief(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return an upper bound on (e^epsilon + delta) / (1 + e^epsilon) that exceeds it by less than 2^-500.

    Examples
    --------
    >>> float(bound_belief(Fraction(1), Fraction(0)))
    0.7310585786300049
    """
    if epsilon >= _CERTAIN:
        return Fraction(1)
    with precision(_BITS):
        rest = (-ball(epsilon)).exp()
        mantissa, exponent = ((1 + ball(delta) * rest) / (1 + rest)).upper().man_exp()
    return min(Fraction(1), Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def belief_percent(epsilon: Fraction, delta: Fraction = Fraction(0)) -> str:
    """Return the bound in percent, rounded up, with as many places as show that it is neither 50 nor 100, at least one.

    Examples
    --------
    >>> [belief_percent(Fraction(epsilon)) for epsilon in ("0.001", "1", "10", "40")]
    ['50.03%', '73.2%', '99.996%', '100%']
    """
    percent = 100 * bound_belief(epsilon, delta)
    places = max(1, _first_place(100 - percent), _first_place(percent - 50))
    rounded = math.ceil(percent * 10**places)
    if rounded >= 100 * 10**places:
        return "100%"
    whole, part = divmod(rounded, 10**places)
    return f"{whole}.{part:0{places}}%"


def _first_place(number: Fraction) -> int:
    """Return the decimal place of the first digit of a nonnegative number, at most `_MOST_PLACES`."""
    return next((places for places in range(_MOST_PLACES) if number * 10**places >= 1), _MOST_PLACES)


def describe_adjacency(adjacency: str) -> str:
    """Describe the difference between neighbouring datasets in a sentence."""
    if adjacency == "add-remove":
        return (
            "Neighbouring data differ by all rows of one user, who is there in one and not in the other (add-remove)."
        )
    return "Neighbouring data differ by all rows of one user, who has other rows in each of them (swap)."


def describe_ledger(ledger: Ledger) -> list[str]:
    """Return the promise of all releases of a ledger together, later ones included, in lines of Markdown."""
    budget, spent = ledger.budget, ledger.spent
    delta = budget.delta or budget.epsilon * 0
    lists = "all lists that are ever charged to this budget"
    beside = "" if budget.delta is None else f" and delta = {decimal_above(budget.delta)}"
    return [
        promise_to_people(budget.epsilon, delta, budget.adjacency, lists),
        "",
        f"The budget of all of them is epsilon = {decimal_above(budget.epsilon)}{beside}, for "
        f"{printable(budget.unit)}; {decimal_above(spent)} is spent. A release that does not fit is refused "
        "before anything is drawn.",
    ]


def _list_terms(subject: Subject) -> list[str]:
    terms, items = subject.guarantee, subject.guarantee.discovery
    found = [] if items is None else [items.describe_noise(), items.describe_threshold()]
    variant = "pure epsilon-differential privacy" if not terms.delta else "(epsilon, delta)-differential privacy"
    lines = [
        f"- epsilon = {decimal_above(terms.epsilon)}{subject.parts}",
        f"- delta = {decimal_above(terms.delta)}",
        f"- {variant}, for one user {describe_user(terms.adjacency)}; rho = {decimal_above(terms.zcdp)} of zCDP",
        f"- {describe_adjacency(terms.adjacency)}",
        f"- {describe_sensitivity(terms)}",
        *([] if subject.share is None else [f"- {subject.share}"]),
        *([] if subject.quality is None else [f"- {subject.quality}"]),
        *(f"- {text}" for text in found if text),
    ]
    return (
        lines
        if subject.private
        else [f"Asked for, and not given, because it is not private:\n\n{lines[0]}", *lines[1:]]
    )


def describe_sensitivity(terms: Guarantee) -> str:
    """Describe the sensitivity in a sentence: how far one user moves scores, added or replaced."""
    moved = terms.sensitivity
    sides = f"down by at most {decimal(moved.down)} and up by at most {decimal(moved.up)}"
    most = "" if moved.items is None else f", and at most {moved.items:,} scores"
    whole = "" if moved.l1 is None else f", all of them together by at most {decimal(moved.l1)}"
    if terms.adjacency == "add-remove":
        return f"Adding one user moves a score {sides}{most}{whole}; removing one reverses that."
    return f"Between neighbours a score moves {sides}{most}{whole}."
