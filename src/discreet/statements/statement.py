"""A statement in Markdown that a lawyer and an expert can both read: what is promised, to whom, and what is not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from discreet.guarantee import Guarantee
from discreet.release_words import describe_user
from discreet.statements.belief import belief_percent
from discreet.statements.limits import DATA, OUTSIDE, PROMISE, find_limits
from discreet.statements.subject import Statable, Subject, make_subject
from discreet.text import decimal, decimal_above, printable

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet.ledger.ledger import Ledger

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
LIMITS_PAGE = "Each line of this section and of the next two is a heading of the page of known limits of discreet."
PAD_TO = "Was `pad_to` used, with how many seconds, and who could have measured how long the release took?"
WHO = "Who is one user: a person, an account, a household, a device?"
OTHERS = "What else was released about the same people, and what did it cost?"
VERSION = "Which version of discreet made the release?"


def make_statement(release: Statable, ledger: Ledger | str | os.PathLike[str] | None = None) -> str:
    """The statement of a release as Markdown.

    Parameters
    ----------
    release
        A release, a release by group, or a sketch.
    ledger
        The ledger that it was charged to; then the statement is about all of its releases too.
    """
    return write_statement(make_subject(release, ledger))


def write_statement(subject: Subject) -> str:
    """The statement of what is known as Markdown."""
    sections = [
        ("What is promised", _describe_promise(subject)),
        ("In numbers", _list_terms(subject)),
        ("All releases together", describe_ledger(subject.ledger) if subject.ledger else _ask_for_ledger()),
        ("How it was made", list_making(subject)),
        ("How far the promise goes", [LIMITS_PAGE, "", *_list_limits(subject, PROMISE)]),
        ("What can be seen while a release is made", [SIDE_CHANNELS, "", *_list_limits(subject, OUTSIDE)]),
        ("What the data holder answers for", _list_limits(subject, DATA)),
        ("What discreet cannot know", [f"- {question}" for question in list_questions(subject)]),
    ]
    body = [line for title, lines in sections for line in ("", f"## {title}", "", *lines)]
    return "\n".join([f"# {subject.title}", *body])


def promise_to_people(epsilon: Fraction, delta: Fraction, adjacency: str, word: str = "this list") -> str:
    """What is promised to one person, in a sentence.

    Parameters
    ----------
    epsilon, delta, adjacency
        The terms.
    word
        What readers look at.

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
    # With a delta a rare outcome may give somebody away, so that the bound is one on guesses.
    asked = "whether you are in the data" if adjacency == "add-remove" else "which of two ways your rows are"
    return f"Whoever looks at {word} and guesses, from even odds, {asked}, is right with a chance of at most {percent}."


def _secret(adjacency: str) -> str:
    return "that you are in the data" if adjacency == "add-remove" else "what your rows are"


def describe_adjacency(adjacency: str) -> str:
    """What two neighbouring data sets differ by, in a sentence."""
    if adjacency == "add-remove":
        return (
            "Neighbouring data differ by all rows of one user, who is there in one and not in the other (add-remove)."
        )
    return "Neighbouring data differ by all rows of one user, who has other rows in each of them (swap)."


def describe_ledger(ledger: Ledger) -> list[str]:
    """What is promised for all releases of a ledger together, those to come included, in lines of Markdown."""
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


def _ask_for_ledger() -> list[str]:
    return [
        "No ledger was given, so that nothing is known about other releases. Promises add up: two releases with "
        "epsilon 1 each come to epsilon 2."
    ]


def _describe_promise(subject: Subject) -> list[str]:
    terms = subject.guarantee
    if not subject.private:
        return [NOT_PRIVATE]
    unit = (
        WHO if subject.ledger is None else f"The budget is for the privacy of {printable(subject.ledger.budget.unit)}."
    )
    whole = "With this release alone: " + _lower(
        promise_to_people(terms.epsilon, terms.delta, terms.adjacency, subject.word)
    )
    return [whole, "", f"'You' are one user of the data. {unit}"]


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _list_terms(subject: Subject) -> list[str]:
    terms = subject.guarantee
    variant = "pure epsilon-differential privacy" if not terms.delta else "(epsilon, delta)-differential privacy"
    lines = [
        f"- epsilon = {decimal_above(terms.epsilon)}{subject.parts}",
        f"- delta = {decimal_above(terms.delta)}",
        f"- {variant}, for one user {describe_user(terms.adjacency)}; rho = {decimal_above(terms.zcdp)} of zCDP",
        f"- {describe_adjacency(terms.adjacency)}",
        f"- {describe_sensitivity(terms)}",
        *([] if subject.share is None else [f"- {subject.share}"]),
        *([] if terms.discovery is None else [f"- {terms.discovery.describe_threshold()}"]),
    ]
    return (
        lines
        if subject.private
        else [f"Asked for, and not given, because it is not private:\n\n{lines[0]}", *lines[1:]]
    )


def describe_sensitivity(terms: Guarantee) -> str:
    """How far one user moves scores, in a sentence: by coming, or by having other rows."""
    moved = terms.sensitivity
    sides = f"down by at most {decimal(moved.down)} and up by at most {decimal(moved.up)}"
    most = "" if moved.items is None else f", and at most {moved.items:,} scores"
    whole = "" if moved.l1 is None else f", all of them together by at most {decimal(moved.l1)}"
    if terms.adjacency == "add-remove":
        return f"Adding one user moves a score {sides}{most}{whole}; removing one reverses that."
    return f"Between neighbours a score moves {sides}{most}{whole}."


def list_making(subject: Subject) -> list[str]:
    """Mechanism, library, arithmetic, in lines of Markdown."""
    terms, entry = subject.guarantee, subject.entry
    by = "its version is not in the release" if entry is None else f"version {printable(entry.version)}"
    charged = [] if entry is None else [f"- charge {entry.number} of the ledger, at {printable(entry.time)}"]
    return [
        f"- mechanism: {terms.mechanism!r}, in the central model: whoever runs it sees the data",
        f"- library: discreet, {by}",
        *charged,
        f"- arithmetic: {ARITHMETIC}",
    ]


def list_questions(subject: Subject) -> list[str]:
    """What the statement would say as well, if the library could know it."""
    known = [] if subject.ledger is not None else [WHO, OTHERS, VERSION]
    return [*known, PAD_TO]


def _list_limits(subject: Subject, about: str) -> list[str]:
    return [f"- {heading}" for heading in find_limits(about, subject.traits)]
