"""What a study found, in sentences for people who will not read its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan
from statistics import median

from discreet.study.curves import find_plateau
from discreet.study.results import NeededEpsilon, Point, Results
from discreet.study.tasks import METHODS, PAPERS, Task
from discreet.text import describe_multiple, three_digits

_USUAL = 0.9
_IN_PROSE = {
    "canonical, gamma = 3/4": "Canonical with gamma = 3/4, the default,",
    "canonical, gamma = 1": "Canonical with gamma = 1",
    "one-shot, exponential": "One-shot with exponential noise",
    "joint, sequences": "The joint mechanism over sequences",
    "joint, sets": "The joint mechanism over sets",
}
"""What a sentence calls a method, where the legend has a shorter name for it."""

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Case = tuple[str, int]
"""A score vector by its name, and a k."""


def summarise(results: Results, left_out: Sequence[Task] = ()) -> list[str]:
    """What the results say, the most important first, and what was left out."""
    return list(_sentences(results, left_out))


def _sentences(results: Results, left_out: Sequence[Task]) -> Iterator[str]:
    rows = [row for row in results.budgets if row.probability == _USUAL]
    yield from _name_winners(rows)
    yield from _describe_scope(results)
    yield from _compare_with_paper(rows)
    yield from _explain_plateaus(results)
    yield from _name_cases_without_winner(results, rows)
    yield from _name_left_out(left_out)
    yield from _describe_speed(results)


def _name_winners(rows: list[NeededEpsilon]) -> Iterator[str]:
    cases = sorted({(row.vector, row.k) for row in rows})
    if not cases:
        return
    best = [min((row for row in rows if (row.vector, row.k) == case), key=lambda row: row.epsilon) for case in cases]
    (first, most), *others = Counter(METHODS[row.method].name for row in best).most_common()
    rest = "".join(f", {name} in {count}" for name, count in others)
    yield (
        f"{first.capitalize()} was cheapest in {most} of {_count(len(cases), 'case')}{rest}: it released exactly the "
        "k best items nine times in ten with the least epsilon."
    )


def _describe_scope(results: Results) -> Iterator[str]:
    points = [point for point in results.points if point.figure == "methods"]
    if not points:
        return
    vectors, methods = sorted({point.vector for point in points}), {point.method for point in points}
    ks = _join([f"{k:,}" for k in sorted({point.k for point in points})])
    cases = len({(point.vector, point.k) for point in points})
    yield (
        f"{_spell(len(methods)).capitalize()} methods were compared on {_join(vectors)}, at k = {ks}: "
        f"{_count(cases, 'case')} of a score vector and a k. Every probability is computed from the scores; where one "
        "is estimated from draws, a pale band says so."
    )


def _compare_with_paper(rows: list[NeededEpsilon]) -> Iterator[str]:
    told = []
    for label in METHODS:
        multiples = list(_tell_multiples([row for row in rows if row.method == label]))
        if label != PAPERS.label and multiples:
            told.append(f"{_IN_PROSE.get(label, label.capitalize())} took {_join(multiples)}.")
    if told:
        among = ", in the median over the vectors" if len({row.vector for row in rows}) > 1 else ""
        yield f"How much epsilon that took, in multiples of canonical with gamma = {PAPERS.gamma}, the paper's{among}:"
        yield from told


def _tell_multiples(rows: list[NeededEpsilon]) -> Iterator[str]:
    for k in sorted({row.k for row in rows}):
        ratios = [row.ratio for row in rows if row.k == k and not isnan(row.ratio)]
        if ratios:
            yield f"{describe_multiple(median(ratios))} times as much at k = {k:,}"


def _explain_plateaus(results: Results) -> Iterator[str]:
    """Why some curves of the joint mechanism rest on their way up."""
    found = {}
    for case in sorted({(point.vector, point.k) for point in results.points if point.figure == "methods"}):
        rest = _find_rest(results.points, case)
        if rest is not None:
            found[case] = rest
    if not found:
        return
    (vector, k), (point, until) = next(iter(found.items()))
    yield (
        "Joint's curves rest on their way up, and that is no mistake: it judges a list by its worst place alone, so "
        "that all lists with the same worst place are equally likely, and more epsilon changes nothing until it rules "
        f"them out all at once. On {vector} at k = {k:,} {point.goal.upper()} stays near "
        f"{100 * point.probability:.0f}% from epsilon = {three_digits(point.x)} to {three_digits(until)}."
    )


def _find_rest(points: list[Point], case: Case) -> tuple[Point, float] | None:
    """Where joint's curve for a case begins to rest, and until where, if any does."""
    for method, mechanism in METHODS.items():
        for goal in ("top", "great", "good") if mechanism.name == "joint" else ():
            curve = [
                point for point in points
                if (point.figure, point.vector, point.k, point.method, point.goal) == ("methods", *case, method, goal)
            ]  # fmt: skip
            if (rest := find_plateau(curve)) is not None:
                return rest
    return None


def _name_cases_without_winner(results: Results, rows: list[NeededEpsilon]) -> Iterator[str]:
    known = {(row.vector, row.k) for row in rows}
    computed = {(point.vector, point.k) for point in results.points if point.figure == "methods"}
    missing = sorted(computed - known)
    if missing:
        yield (
            f"Not counted above: {_name_cases(missing)}. There the k-th best score has equals, so that no method and "
            "no epsilon gives exactly one list nine times in ten."
        )


def _name_left_out(left_out: Sequence[Task]) -> Iterator[str]:
    short = sorted({(task.vector.name, task.k) for task in left_out if task.k >= task.vector.d})
    if short:
        yield f"Left out: {_name_cases(short)}, where there are no more items than that and so nothing to choose."
    slow = [task for task in left_out if task.heavy]
    if slow:
        names = _join(sorted({task.mechanism.name for task in slow}))
        cases = _name_cases(sorted({(task.vector.name, task.k) for task in slow}))
        yield f"Left out: {names} on {cases}, which would take many minutes; discreet study --full does it."


def _describe_speed(results: Results) -> Iterator[str]:
    slowest = max(results.times, key=lambda row: row.seconds, default=None)
    if slowest is not None:
        yield (
            f"One release took {1000 * min(row.seconds for row in results.times):.1f} to "
            f"{1000 * slowest.seconds:.1f} ms on this machine, everything included; the slowest was {slowest.method} "
            f"on {slowest.vector} at k = {slowest.k:,}."
        )


def _name_cases(cases: Sequence[Case]) -> str:
    """Vectors with their k, such as "STEPS at k = 10 and 100"."""
    ks: dict[str, list[str]] = {}
    for vector, k in cases:
        ks.setdefault(vector, []).append(f"{k:,}")
    return _join([f"{vector} at k = {_join(known)}" for vector, known in ks.items()])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _spell(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def _join(words: Sequence[str]) -> str:
    """Words as in a sentence: "10, 100 and 1,000"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
