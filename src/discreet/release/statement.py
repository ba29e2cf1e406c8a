"""Write the privacy statement of a release in Markdown: a paragraph for lawyers, a table for experts, and the limits.

A limit stands in a statement only if it applies to the source, the mechanism and the ledger of the release.

The promise to one person bounds the belief of somebody who gave even odds to that person being in the data. Under pure
epsilon the odds change by a factor of at most e^epsilon, so that belief is at most e^epsilon / (1 + e^epsilon). With a
delta single outcomes have no bound, but a guess is right with probability at most 1/2 + TV/2, where the total variation
TV is at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1): in sum (e^epsilon + delta) / (1 + e^epsilon).
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.ball import ball, precision
from discreet.exact.discrete import interval_half_width
from discreet.language import ENGLISH, Language, find_language
from discreet.privacy import ONE, Expressions, Sensitivity
from discreet.release.counts import MISS_PROBABILITY, CountMechanism, make_count_mechanism
from discreet.release.grouped import GroupedRelease, count_groups
from discreet.release.guarantee import Guarantee
from discreet.release.release import Release, describe_parts, describe_size, to_json_text
from discreet.release.sketch import Sketch
from discreet.text import escape_markdown, printable

if TYPE_CHECKING:
    from discreet.ledger.account import Account, Entry
    from discreet.ledger.ledger import Ledger


PROMISE, DATA, OUTSIDE, USE = "promise", "data", "outside", "use"
"""The subjects of a limit: the reach of the promise, the duties of the data holder, the view of an observer, and the
use of the library, which no statement is about."""

LISTED, FOUND, COUNTS, VALUES, SHORTFALL, GROUPS, LEDGER, SEEDED, ZONED = (
    "listed", "found", "counts", "values", "shortfall", "groups", "ledger", "seeded", "zoned",
)  # fmt: skip
"""The traits of a release that a limit can be about."""

SCORES, EVENTS, TEXT, TYPED, SPILLED, PANDAS = "scores", "events", "text", "typed", "spilled", "pandas source"
"""The traits of a source: scores or events, a text file, types of columns that a program may have inferred from rows,
rows that an engine in this process may write to disk, and inferred types of pandas."""

SOURCES = {
    "scores": {SCORES},
    "csv": {EVENTS, TEXT, SPILLED},
    "json": {EVENTS, TEXT, SPILLED},
    "parquet": {EVENTS, TYPED, SPILLED},
    "pandas": {EVENTS, TYPED, SPILLED, PANDAS},
    "polars": {EVENTS, TYPED, SPILLED},
    "arrow": {EVENTS, TYPED, SPILLED},
    "duckdb": {EVENTS, TYPED, SPILLED},
    "datafusion": {EVENTS, TYPED, SPILLED},
    "postgresql": {EVENTS},
    "mariadb": {EVENTS},
    "clickhouse": {EVENTS},
    "sqlite": {EVENTS},
    "spark": {EVENTS, TYPED},
    "other": {EVENTS},
}
"""The traits of each kind of source."""

Statable = Release | GroupedRelease | Sketch
"""The kinds of release that have a statement."""

ADDS_ONE = Sensitivity(0, 1)
"""The sensitivity of numbers of users."""

_BITS = 512
"""The precision of the bound on belief, far beyond the places that are printed."""

_MOST_PLACES = 6
"""The largest number of decimal places of a percentage: a chance closer to 0 or 1 is shown as certain."""

_CERTAIN = Fraction(64)
"""From this epsilon on the bound on belief is 1 to more places than are ever printed."""

SIDE_CHANNELS = (
    "How long a release takes depends on the scores. With `pad_to` it ends only at whole multiples of a time; the "
    "release does not record whether that was used."
)


@dataclass(frozen=True)
class Limit:
    """A heading of docs/known-limits.md, its subject, and the trait that a release must have; None for any release.

    The catalogue of each language has the heading, and a sentence that says in a statement what follows from it.
    """

    name: str
    about: str
    needs: str | None = None

    def heading(self, language: Language = ENGLISH) -> str:
        """Return the heading."""
        return language.text(f"limit.{self.name}.heading")

    def sentence(self, language: Language = ENGLISH) -> str:
        """Return the sentence; it is empty for a limit that no statement is about."""
        return language.text(f"limit.{self.name}.sentence")


@dataclass(frozen=True)
class Question:
    """The arguments of `events` that a release does not record; all of them are public.

    Attributes
    ----------
    where
        The condition; None without one.
    period
        The column and the period of the rows, as "month(played_at) = 2026-10"; None for rows of any time.
    has_zone
        True if a period, of the rows or of groups, is taken in a time zone.
    max_items_per_user
        The contribution bound in items; None for unbounded.
    sensitivity, grid
        The sensitivity of adding one user, and the step of the scores.
    """

    where: str | None = None
    period: str | None = None
    has_zone: bool = False
    max_items_per_user: int | None = None
    sensitivity: Sensitivity = ADDS_ONE
    grid: Fraction = Fraction(1)


@dataclass(frozen=True)
class Subject:
    """A release of any kind in the terms of its statement.

    Attributes
    ----------
    title, seen
        The released product in words, and the key of its name in sentences: "list", "lists" or "curve".
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
    expressions
        The row expressions that make columns of the events, by argument.
    noise
        A sentence on the noise of the numbers; None without numbers.
    bound
        The contribution bound in items, None for unbounded or unknown.
    question
        The arguments of `events` that the release does not record, if they are known.
    language
        The language of the statement.
    chosen
        The `chosen` of the release.
    """

    title: str
    seen: str
    guarantee: Guarantee
    private: bool
    traits: frozenset[str]
    d: int | None
    parts: str
    share: str | None = None
    quality: str | None = None
    ledger: Ledger | None = None
    entry: Entry | None = None
    expressions: Expressions = ()
    noise: str | None = None
    bound: int | None = None
    question: Question | None = None
    language: Language = ENGLISH
    chosen: str | None = None


LIMITS = (
    Limit("public_list", DATA, LISTED),
    Limit("sensitivity", DATA, SCORES),
    Limit("exact_scores", DATA, SCORES),
    Limit("copied_domain", DATA, "listed events"),
    Limit("text_files", DATA, TEXT),
    Limit("column_names", DATA, TEXT),
    Limit("declared_types", DATA, TYPED),
    Limit("pandas", DATA, PANDAS),
    Limit("own_rows", DATA, EVENTS),
    Limit("process", USE),
    Limit("constant_table", DATA, EVENTS),
    Limit("positions", USE),
    Limit("planning", USE),
    Limit("time_zones", DATA, ZONED),
    Limit("dataset_name", DATA, LEDGER),
    Limit("floats", USE),
    Limit("found", PROMISE, FOUND),
    Limit("generator", PROMISE, SEEDED),
    Limit("values", PROMISE, VALUES),
    Limit("counts", PROMISE, COUNTS),
    Limit("shortfall", PROMISE, SHORTFALL),
    Limit("groups", PROMISE, GROUPS),
    Limit("cost", PROMISE),
    # The paragraph for lawyers says it.
    Limit("one_person", USE),
    Limit("failing_rows", OUTSIDE, EVENTS),
    Limit("time", OUTSIDE),
    Limit("engine", OUTSIDE, EVENTS),
    Limit("disk", OUTSIDE, SPILLED),
    Limit("standard_input", USE),
    Limit("features", USE),
    Limit("trusted_process", OUTSIDE),
)


def make_statement(
    release: Statable,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    source: str | None = None,
    language: str = "en",
) -> str:
    """Return the statement of a release as Markdown.

    Parameters
    ----------
    release
        A release, a release by group, or a sketch.
    ledger
        The ledger that the release was charged to; the statement then covers all of its releases too.
    source
        The kind of source, a name in `SOURCES`; the statement then has its limits.
    language
        The language, a name in `LANGUAGES`.
    """
    return write_statement(make_subject(release, ledger, source=source, language=find_language(language)))


def write_statement(subject: Subject, registry: str = "statement.registry") -> str:
    """Return the statement of a subject as Markdown; `registry` is the key of the line about the registry."""
    ledger, language = subject.ledger, subject.language
    limits = [
        f"- {' '.join(filter(None, (limit.heading(language), limit.sentence(language))))}"
        for about in (PROMISE, DATA, OUTSIDE)
        for limit in LIMITS
        if limit.about == about and _applies(limit, subject.traits)
    ]
    questions = ["pad_to"] if ledger is not None else ["who", "others", "version", "pad_to"]
    questions = questions if {SCORES, EVENTS} & subject.traits else [*questions, "source"]
    questions = questions if subject.question or SCORES in subject.traits else [*questions, "rows"]
    asked = [f"- {language.text(f'statement.{question}')}" for question in questions]
    sections = {
        "statement.promised": _list_promises(subject),
        "statement.numbers": [
            "| | |",
            "| --- | --- |",
            *(f"| {name} | {text} |" for name, text in _list_terms(subject)),
        ],
        "statement.not_covered": limits,
        "statement.unknown": [*asked, "", language.text(registry)],
    }
    body = [line for key, lines in sections.items() for line in ("", f"## {language.text(key)}", "", *lines)]
    return "\n".join([f"# {escape_markdown(subject.title)}", *body])


def _list_promises(subject: Subject) -> list[str]:
    """Return who is protected, against what, how much, for how long, and what is not: a paragraph each."""
    terms, ledger, tell = subject.guarantee, subject.ledger, subject.language.text
    if not subject.private:
        return [tell("statement.not_private")]
    is_added = terms.adjacency == "add-remove"
    alone = promise_to_people(
        terms.epsilon, terms.delta, terms.adjacency, tell(f"seen.{subject.seen}"), subject.language
    )
    if ledger is None:
        who, together = tell("statement.protected"), [tell("statement.no_ledger")]
    else:
        who = tell("statement.protected_unit", unit=escape_markdown(printable(ledger.budget.unit)))
        all_lists = tell("statement.together", promise=promise_of_ledger(ledger.account, subject.language))
        together = [all_lists, *describe_periods(ledger.account, subject.language)]
    said = [
        who,
        tell("statement.hidden_added" if is_added else "statement.hidden_replaced"),
        tell("statement.alone", promise=alone),
        *together,
        tell("statement.endless"),
        tell("statement.not_hidden"),
    ]
    return [line for paragraph in said for line in (paragraph, "")][:-1]


def make_subject(
    release: Statable,
    ledger: Any,
    entry: Entry | None = None,
    source: str | None = None,
    language: Language = ENGLISH,
    question: Question | None = None,
) -> Subject:
    """Return the subject of a statement; look up the charge of the release in its ledger unless it is given."""
    if source is not None and source not in SOURCES:
        raise InvalidValueError(f"source must be one of {', '.join(SOURCES)}, not {quote(source)}")
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
    own, title, seen, share, d = _describe(release, language)
    guarantee = release.guarantee
    traits = {
        LISTED if guarantee.discovery is None else FOUND,
        *own,
        # Items that nobody listed are found in events.
        *([] if guarantee.discovery is None else [EVENTS]),
        *(SOURCES[source] if source is not None else []),
        *([VALUES] if guarantee.mechanism.releases_values else []),
        *([SHORTFALL] if guarantee.shortfall_epsilon else []),
        *([] if book is None else [LEDGER]),
        *([] if release.private else [SEEDED]),
    }
    # A release does not record the zone of its period.
    if EVENTS in traits and (question is None or question.has_zone):
        traits.add(ZONED)
    parts = "" if isinstance(release, Sketch) else describe_parts(guarantee, language)
    quality = _describe_quality(release, language)
    return Subject(
        title, seen, guarantee, release.private, frozenset(traits), d, parts, share, quality, book, entry,
        release.expressions, _describe_noise(release, question, language), find_bound(release, question), question,
        language, release.chosen if isinstance(release, Release) else None,
    )  # fmt: skip


def _describe_quality(release: Statable, language: Language) -> str | None:
    """Return a sentence on the shortfall of a release, or None without one."""
    if not release.guarantee.shortfall_epsilon:
        return None
    if isinstance(release, Release):
        return "".join(release.describe_shortfall(language)) or language.text("statement.no_item")
    return language.text("statement.each_bound")


def find_bound(release: Statable, question: Question | None) -> int | None:
    """Return the contribution bound in items of listed events or scores; None for unbounded or unknown."""
    if question is not None:
        return question.max_items_per_user
    if isinstance(release, Sketch):
        return release.max_items_per_user
    first = next(iter(release.values())) if isinstance(release, GroupedRelease) else release
    items = first.guarantee.sensitivity.items
    if items is not None:
        # Two users differ in a swap.
        return items if first.guarantee.adjacency == "add-remove" else items // 2
    return None if first.shortfall is None else first.shortfall.max_items_per_user


def _describe_noise(release: Statable, question: Question | None, language: Language) -> str | None:
    """Return a sentence on the noise of the numbers of a release, or None without numbers."""
    if isinstance(release, Sketch):
        return _spell_noise("curve", release.noise, release.guarantee.epsilon, language)
    first = next(iter(release.values())) if isinstance(release, GroupedRelease) else release
    terms, moved, is_added = first.guarantee, first.guarantee.sensitivity, first.guarantee.adjacency == "add-remove"
    if moved.l1 is not None:
        scale = moved.l1 / terms.selection_epsilon
        numbers = {"scale": scale, "l1": moved.l1, "epsilon": terms.selection_epsilon}
        return language.text("noise.values", **{name: language.exact(number) for name, number in numbers.items()})
    if not terms.counts_epsilon:
        return None
    size = first.k if first.asked is None else first.asked
    # Without the question the step is unknown. It divides the sensitivity of events, and is 1 for other scores.
    own, grid = (moved.sides if is_added else Sensitivity(0, moved.up)), Fraction(1)
    if question is not None:
        own, grid = question.sensitivity, question.grid
    bound = None if terms.discovery is not None else find_bound(release, question)
    is_grouped = isinstance(release, GroupedRelease)
    counted = make_count_mechanism(own, terms.adjacency, grid, size, bound, terms.counts_epsilon, grouped=is_grouped)
    is_bound_known = bound is not None or terms.discovery is not None or first.shortfall is not None
    # Under swap the guarantee has down + up alone, and not both sides.
    kind = "scale" if is_added and is_bound_known else "unknown"
    return _spell_noise(kind if question is None else "counts", counted, terms.counts_epsilon, language)


def _spell_noise(kind: str, noise: CountMechanism, epsilon: Fraction, language: Language) -> str:
    """Return a sentence on discrete Laplace noise at epsilon."""
    within = interval_half_width(noise.rate, MISS_PROBABILITY) * noise.grid
    scale = noise.grid / noise.rate
    numbers = {"grid": noise.grid, "scale": scale, "l1": epsilon * scale, "epsilon": epsilon, "within": within}
    return language.text(f"noise.{kind}", **{name: language.exact(number) for name, number in numbers.items()})


def _describe(release: Statable, language: Language) -> tuple[set[str], str, str, str | None, int | None]:
    """Return the traits of a release, its title, its key in `seen`, how users share groups, and the number of items."""
    if isinstance(release, Sketch):
        title = language.text("statement.curve_title", count=len(release.ranks), size=release.describe_size(language))
        return set(), title, "curve", None, release.domain_size
    if isinstance(release, Release):
        counted = {COUNTS} if release.counts is not None and not release.guarantee.mechanism.releases_values else set()
        return counted, describe_size(release, language), "list", None, release.d
    traits, _, _, _, d = _describe(next(iter(release.values())), language)
    is_shorter = any(each.k < release.k for each in release.values())
    title = language.text(
        "list.groups_size",
        top=language.text("list.up_to" if is_shorter else "list.top"),
        count=release.k,
        groups=count_groups(len(release), language),
        by=release.name_columns(language),
    )
    share = language.text("statement.one_group")
    if release.each_user != ONE:
        cost = language.above(max(each.guarantee.epsilon for each in release.values()))
        share = language.text(
            "statement.many_groups", groups=count_groups(release.groups_per_user, language), cost=cost
        )
    return traits | {GROUPS}, title, "lists", share, d


def find_limits(about: str, traits: Collection[str]) -> list[str]:
    """Return the headings on one subject that concern a release with these traits."""
    return [limit.heading() for limit in LIMITS if limit.about == about and _applies(limit, traits)]


def _applies(limit: Limit, traits: Collection[str]) -> bool:
    """Return True if a release has all traits that a limit needs."""
    return limit.needs is None or limit.needs in traits or set(limit.needs.split()) <= set(traits)


def promise_to_people(
    epsilon: Fraction, delta: Fraction, adjacency: str, seen: str = "this list", language: Language = ENGLISH
) -> str:
    """Return the promise to one person in a sentence.

    Parameters
    ----------
    epsilon, delta, adjacency
        The privacy parameters.
    seen
        The released product: "this list", for instance.
    language
        The language of the sentence and of `seen`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> promise_to_people(Fraction(1), Fraction(0), "add-remove", "these lists")
    'Somebody who thought it 50:50 that you are in the data is at most 73.2% sure of it after seeing these lists.'
    """
    percent = belief_percent(epsilon, delta)
    is_added = adjacency == "add-remove"
    if percent == "100%":
        return language.text("promise.none_added" if is_added else "promise.none_replaced", seen=seen)
    # With a delta a rare outcome may reveal a person, so that only guesses have a bound.
    if delta:
        key = "promise.delta_added" if is_added else "promise.delta_replaced"
    else:
        key = "promise.pure_added" if is_added else "promise.pure_replaced"
    return language.text(key, seen=seen, percent=language.percent(percent.removesuffix("%")))


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


def describe_adjacency(adjacency: str, language: Language = ENGLISH) -> str:
    """Describe the difference between neighbouring datasets in a sentence."""
    is_added = adjacency == "add-remove"
    return language.text("statement.neighbours_added" if is_added else "statement.neighbours_replaced")


def describe_ledger(ledger: Ledger) -> list[str]:
    """Return the promise of all releases of a ledger together, later ones included, and their budget, in sentences."""
    account = ledger.account
    _, total, spent = name_budget(account)
    budget = ENGLISH.text("budget.all", total=total, unit=printable(account.budget.unit), spent=spent)
    return [promise_of_ledger(account), budget, *describe_periods(account)]


def promise_of_ledger(account: Account, language: Language = ENGLISH) -> str:
    """Return the promise of all releases of a budget together, later ones included."""
    budget = account.budget
    lists, _, _ = name_budget(account, language)
    return promise_to_people(budget.epsilon, budget.delta or Fraction(0), budget.adjacency, lists, language)


def name_budget(account: Account, language: Language = ENGLISH) -> tuple[str, str, str]:
    """Return the lists that a budget is for, its size, and the spent part, in words that follow the ledger alone."""
    budget, period, tell = account.budget, account.period, language.text
    size = _spell_size(budget.epsilon, budget.delta, language)
    spent = language.above(account.spending.spent())
    if budget.every is None:
        return tell("seen.ever"), size, tell("budget.spent", spent=spent)
    every = tell(f"every.{budget.every}")
    told = tell("budget.spent", spent=spent)
    if period is not None:
        told = tell("budget.spent_in", spent=spent, period=language.period(period))
    return tell(f"seen.{budget.every}"), tell("budget.each", size=size, every=every), told


def _spell_size(epsilon: Fraction, delta: Fraction | None, language: Language) -> str:
    beside = "" if delta is None else language.text("budget.delta", delta=language.above(delta))
    return language.text("budget.size", epsilon=language.above(epsilon), delta=beside)


def describe_periods(account: Account, language: Language = ENGLISH) -> list[str]:
    """Return the promise over several periods of a budget that renews; nothing for other budgets."""
    budget, count, tell = account.budget, len(account.periods), language.text
    if budget.every is None:
        return []
    # Over J periods with charges the promise is (J E, J D). A window of one length meets at most two periods, unless
    # charges count in periods before their own, or may do so because the ledger begins before it was made.
    zone = "UTC" if budget.zone is None else budget.zone
    spans = [tell("span.late")] if account.is_late else []
    if account.is_backdated:
        made = language.period(budget.period_of(account.made))
        spans.append(tell("span.since", period=language.period(account.start), made=made))
    span = " ".join(spans) or tell(f"span.{budget.every}")
    every = tell(f"every.{budget.every}")

    def spell_size(times: int) -> str:
        return _spell_size(times * budget.epsilon, None if budget.delta is None else times * budget.delta, language)

    percent = belief_percent(2 * budget.epsilon, 2 * (budget.delta or Fraction(0))).removesuffix("%")
    further = tell("budget.further", every=every, total=spell_size(2), percent=language.percent(percent))
    lines = [further, f"{tell(f'renews.{budget.every}', zone=zone)} {span}"]
    if not count:
        return lines
    first = language.period(next(iter(account.periods)))
    when = tell("budget.in", period=first, every=every)
    if count > 1:
        when = tell("budget.since", period=first, years=tell(f"years.{budget.every}", count=count))
    # Without a delta the epsilons that were really spent add up; a rho must not be converted afterwards.
    if budget.delta is None:
        spent, total = (language.above(each) for each in (account.total.epsilon, count * budget.epsilon))
        charged = tell("budget.charged_of", spent=spent, total=total, when=when)
    else:
        charged = tell("budget.charged", size=spell_size(count), when=when)
    if count == 1:
        return [*lines, charged]
    delta, seen = count * (budget.delta or Fraction(0)), tell("seen.together")
    return [*lines, charged, promise_to_people(count * budget.epsilon, delta, budget.adjacency, seen, language)]


def _list_terms(subject: Subject) -> list[tuple[str, str]]:
    """Return the rows of the table: a name and a text that fits a cell."""
    terms, ledger, entry, language = subject.guarantee, subject.ledger, subject.entry, subject.language
    tell, items, is_added = language.text, subject.guarantee.discovery, subject.guarantee.adjacency == "add-remove"
    found = [] if items is None else [items.describe_noise(language), items.describe_release(subject.chosen, language)]
    definition = "cell.pure_added" if is_added else "cell.pure_replaced"
    if terms.delta:
        definition = "cell.delta_added" if is_added else "cell.delta_replaced"
    budget = None
    if ledger is not None:
        _, total, spent = name_budget(ledger.account, language)
        unit = escape_markdown(printable(ledger.budget.unit))
        budget = tell("budget.cell", total=total, unit=unit, spent=spent)
    asked = "cell.epsilon" if subject.private else "cell.epsilon_asked"
    question, bound = subject.question, None
    if items is None and subject.bound is not None:
        bound = tell("cell.bound", count=subject.bound)
    elif items is None and question is not None:
        bound = tell("cell.unbounded")
    columns = ", ".join(_quote_code(f"{argument} = {text}") for argument, text in subject.expressions)
    rows = {
        "row.epsilon": tell(asked, epsilon=language.above(terms.epsilon), parts=subject.parts),
        "row.delta": language.above(terms.delta),
        "row.definition": tell(definition),
        "row.zcdp": describe_zcdp(terms, language),
        "row.neighbours": describe_adjacency(terms.adjacency, language),
        "row.sensitivity": describe_sensitivity(terms, language),
        "row.rows": tell("cell.rows", columns=columns) if columns else None,
        "row.where": _quote_code(question.where) if question and question.where else None,
        "row.period": _quote_code(question.period) if question and question.period else None,
        "row.groups": subject.share,
        "row.bound": bound,
        "row.quality": subject.quality,
        "row.found": " ".join(text for text in found if text),
        "row.noise": subject.noise,
        "row.mechanism": tell("cell.mechanism", mechanism=repr(terms.mechanism)),
        "row.budget": budget,
        "row.charge": None if entry is None else _describe_charge(entry, language),
        "row.library":
            tell("cell.library_unknown") if entry is None else tell("cell.library", version=entry.version),
        "row.arithmetic": tell("statement.arithmetic"),
    }  # fmt: skip
    # A bar would end the cell, and a blank that does not break counts as unprintable.
    return [
        (tell(name), printable(text.replace("\N{NO-BREAK SPACE}", " ")).replace("|", "\\|"))
        for name, text in rows.items()
        if text
    ]


def _quote_code(text: str) -> str:
    """Return a text as code of Markdown, whose marks mean nothing; a fence is longer than any backticks inside."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if len(fence) == 1 else f"{fence} {text} {fence}"


def _describe_charge(entry: Entry, language: Language) -> str:
    """Return the charge of a release, its time, its part and, for a budget that renews, its period."""
    part = "" if entry.part is None else language.text("cell.part", part=escape_markdown(printable(entry.part)))
    period = "" if entry.period is None else language.text("cell.within", period=language.period(entry.period))
    return language.text(
        "cell.charge",
        number=entry.number,
        time=language.moment(entry.time),
        within=part + period,
        counted="" if entry.as_of is None else language.text("cell.counted", time=language.moment(entry.as_of)),
    )


def describe_zcdp(terms: Guarantee, language: Language = ENGLISH) -> str:
    """Return the rho of zCDP, with the delta of delta-approximate zCDP where there is one."""
    rho = language.above(terms.zcdp)
    if not terms.zcdp_delta:
        return language.text("cell.zcdp", rho=rho)
    return language.text("cell.zcdp_approximate", rho=rho, delta=language.above(terms.zcdp_delta))


def describe_sensitivity(terms: Guarantee, language: Language = ENGLISH) -> str:
    """Describe the sensitivity in a sentence: how far one user moves scores, added or replaced."""
    moved, key = terms.sensitivity, "statement.moves_replaced"
    if terms.adjacency == "add-remove":
        key = "statement.moves_added" if moved.down else "statement.moves_up"
    return language.text(
        key,
        down=language.exact(moved.down),
        up=language.exact(moved.up),
        items="" if moved.items is None else language.text("statement.moves_items", count=moved.items),
        whole="" if moved.l1 is None else language.text("statement.moves_whole", l1=language.exact(moved.l1)),
    )
