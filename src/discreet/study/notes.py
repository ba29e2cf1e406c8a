"""What the results of a study say, in plain sentences, each with the figures it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from discreet.mechanisms.base import Form
from discreet.study.results import NeededEpsilon, Results
from discreet.study.tasks import METHODS

_USUAL = 0.9

_IN_PROSE = {
    "one-shot, exponential": "One-shot with exponential noise",
    "joint, sequences": "The joint mechanism over sequences",
    "joint, sets": "The joint mechanism over sets",
}
"""What a sentence calls a method, where the legend has a shorter name for it."""

_NUMBERS = {6: "Six", 7: "Seven"}


def notes(results: Results) -> list[str]:
    """A summary for people who will not read the tables."""
    return list(_notes(results))


def _notes(results: Results) -> Iterator[str]:
    vectors = sorted({point.vector for point in results.points if point.figure == "methods"})
    count = _NUMBERS.get(len(METHODS), len(METHODS))
    yield (
        f"How much privacy budget does the right answer cost? {count} methods, {len(vectors)} score vectors "
        f"({', '.join(vectors)}), every probability computed from the scores and not estimated from draws, unless a "
        "band says otherwise. The less epsilon a method needs, the better it protects for the same answer."
    )
    rows = [row for row in results.budgets if row.probability == _USUAL]
    yield from _winners(rows)
    for label, mechanism in METHODS.items():
        if mechanism.form is not Form.CLASSES:
            yield from _ratios(rows, label, _IN_PROSE.get(label, label.capitalize()))
    yield from _speed(results)


def _winners(rows: list[NeededEpsilon]) -> Iterator[str]:
    cases = sorted({(row.vector, row.k) for row in rows})
    if not cases:
        return
    best = [min((row for row in rows if (row.vector, row.k) == case), key=lambda row: row.epsilon) for case in cases]
    counts = {row.method: sum(other.method == row.method for other in best) for row in best}
    told = ", ".join(f"{name} in {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
    yield f"Least epsilon for the exact top-k with probability 0.9, of {len(cases)} cases of a vector and a k: {told}."


def _ratios(rows: list[NeededEpsilon], method: str, name: str) -> Iterator[str]:
    told = []
    for k in sorted({row.k for row in rows}):
        ratios = [row.ratio for row in rows if row.method == method and row.k == k]
        if ratios:
            told.append(f"{median(ratios):.3g} times at k = {k} ({min(ratios):.3g} to {max(ratios):.3g})")
    if told:
        yield f"{name} needs, in the median over vectors, this much of canonical's epsilon: {'; '.join(told)}."


def _speed(results: Results) -> Iterator[str]:
    slowest = max(results.times, key=lambda row: row.seconds, default=None)
    if slowest is not None:
        yield (
            f"One release takes {1000 * min(row.seconds for row in results.times):.1f} to "
            f"{1000 * slowest.seconds:.1f} ms here, everything included; the slowest is {slowest.method} on "
            f"{slowest.vector} at k = {slowest.k}."
        )
