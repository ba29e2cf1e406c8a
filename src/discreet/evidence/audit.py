"""The shipped sampler audited from outside: many releases of two neighbouring inputs, through `top_k` itself.

Two questions are put to the counts. How much epsilon was spent at least? Half of the draws choose an event that tells
the two inputs apart, the other half bounds its probabilities (Clopper and Pearson), so that the bound is an honest one
whatever was chosen. And do the counts fit the exact law? Both are answered at one stated confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.analysis.statistics import fit, lower_bound, upper_bound
from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.evidence.neighbours import Family, Scores, families
from discreet.evidence.report import Pair
from discreet.evidence.seen import Laws, labelled, outcome_of
from discreet.exact.ball import Floats
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.registry import check_mechanism
from discreet.privacy import Number, check_adjacency, exact, positive
from discreet.release import Release, decimal
from discreet.topk import top_k

Sampler = Callable[[dict[str, Any]], Any]
"""What is audited: from labelled scores to something that can be seen, a Release or any other hashable value."""

_LARGEST = 10**9


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes
    ----------
    mechanism
        The mechanism that was audited.
    pair
        The two neighbouring inputs.
    draws
        How many releases of each input were drawn.
    confidence
        The probability, before drawing, that a right sampler is not accused.
    spent
        A lower bound on the epsilon that was spent, at this confidence.
    event
        The outcomes that show it, more likely on the first input than on the second.
    fits
        The probability of counts at least as far from the exact law as those seen, the smaller one of the two inputs.
    """

    mechanism: Mechanism
    pair: Pair
    draws: int
    confidence: Fraction
    spent: float
    event: tuple[Any, ...]
    fits: float

    @property
    def overspent(self) -> bool:
        """Whether more epsilon was spent than was promised."""
        return self.spent > self.pair.epsilon

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the sampler."""
        return not self.overspent and self.fits > float(1 - self.confidence) / 4.0

    def __str__(self) -> str:
        found = f"epsilon spent at least {self.spent:.4f} of {decimal(self.pair.epsilon)}"
        sure = decimal(self.confidence)
        head = f"{self.mechanism!r} on {self.pair}, {self.draws:,} draws of each"
        if self.holds:
            fits = f"fit to the exact law p = {self.fits:.3g}"
            return f"{head}: no violation at confidence {sure}; {found}, {fits}"
        reason = f"{found}, by the event {self._shown_event()}"
        if not self.overspent:
            reason = f"the counts do not fit the exact law, p = {self.fits:.3g}"
        return f"{head}: VIOLATION at confidence {sure}: {reason}"

    def _shown_event(self) -> str:
        listed = [str(outcome) for outcome in self.event[:4]]
        return " or ".join(listed) + (f" or {len(self.event) - 4} more" if len(self.event) > 4 else "")


def audit(
    mechanism: Mechanism | None = None,
    k: int | None = None,
    *,
    epsilon: Number = 1,
    scores: Sequence[Number] | None = None,
    neighbour: Sequence[Number] | None = None,
    adjacency: str = "add-remove",
    draws: int = 20_000,
    confidence: Number = "0.999",
    sampler: Sampler | None = None,
    progress: Callable[[int], AbstractContextManager[Callable[[], None]]] | None = None,
) -> Audit:
    """Tests the sampler as an outsider would: draws many releases of two neighbouring inputs and compares the counts.

    Parameters
    ----------
    mechanism
        The mechanism; `Canonical()` by default.
    k
        How many items to release.
    epsilon
        The budget that a release promises.
    scores, neighbour
        Two neighbouring vectors of counts of users; by default that pair of those in `verify` that can show most.
    adjacency
        What they differ by: "add-remove" or "swap".
    draws
        How many releases of each to draw.
    confidence
        The probability that a right sampler is not accused.
    sampler
        What to audit in place of `top_k`: a function from a dictionary of scores to a Release or any hashable value.
        It is promised to be as private as the mechanism, and its outcomes must be those of `top_k` for the law to fit.
    progress
        Called with the number of draws in all; gives a context with a function to call after each.

    Returns
    -------
    Audit
        `holds` is False where a violation was found.

    Examples
    --------
    >>> import discreet
    >>> discreet.audit(discreet.OneShot(), k=1, draws=200).holds
    True
    """
    chosen = Canonical() if mechanism is None else check_mechanism(mechanism)
    budget, sure = positive(epsilon, "epsilon"), exact(confidence, "confidence")
    check_adjacency(adjacency)
    if not Fraction(1, 2) <= sure < 1:
        raise InvalidValueError(f"confidence must be from 0.5 to less than 1, not {shown(confidence)}")
    if isinstance(draws, bool) or not isinstance(draws, int) or not 100 <= draws <= _LARGEST:
        raise InvalidValueError(f"draws must be a whole number from 100 to {_LARGEST}, not {shown(draws)}")
    if (scores is None) != (neighbour is None):
        raise InvalidValueError("scores and neighbour must be given together or both left out")
    if scores is None or neighbour is None:
        laws, first, second = _sharpest(chosen, k, budget, adjacency, draws)
    else:
        first, second = _vector(scores, "scores"), _vector(neighbour, "neighbour")
        laws = _laws_of_pair(chosen, k, budget, adjacency, first, second)
    counts = _drawn(laws, (first, second), draws, sampler, progress)
    return _judged(laws, (first, second), counts, draws, sure)


def _judged(laws: Laws, inputs: tuple[Scores, Scores], counts: _Counts, draws: int, sure: Fraction) -> Audit:
    """The two questions, each side of each with a quarter of what may go wrong."""
    alpha = float(1 - sure)
    (one, other), (one_kept, other_kept) = counts.choosing, counts.bounding
    event, swapped = _event(one, other)
    if swapped:
        inputs, one_kept, other_kept = inputs[::-1], other_kept, one_kept
    kept = draws - draws // 2
    likely = lower_bound(sum(one_kept[outcome] for outcome in event), kept, alpha / 4.0)
    unlikely = upper_bound(sum(other_kept[outcome] for outcome in event), kept, alpha / 4.0)
    spent = max(0.0, math.log(likely / unlikely)) if likely > 0.0 else 0.0
    fits = min(
        fit(both, {outcome: math.exp(log) for outcome, (log, _) in laws.law(scores).items()})
        for scores, both in zip(counts.inputs, counts.together, strict=True)
    )
    pair = Pair(inputs[0], inputs[1], laws.k, laws.guarantee.epsilon, laws.family.adjacency)
    return Audit(laws.guarantee.mechanism, pair, draws, sure, spent, event, fits)


@dataclass(frozen=True)
class _Counts:
    """What was seen on each of two inputs, in the half of the draws that chooses and in the half that bounds."""

    inputs: tuple[Scores, Scores]
    choosing: tuple[Counter[Any], Counter[Any]]
    bounding: tuple[Counter[Any], Counter[Any]]

    @property
    def together(self) -> Iterator[Counter[Any]]:
        for chosen, kept in zip(self.choosing, self.bounding, strict=True):
            yield chosen + kept


def _drawn(
    laws: Laws,
    inputs: tuple[Scores, Scores],
    draws: int,
    sampler: Sampler | None,
    progress: Callable[[int], AbstractContextManager[Callable[[], None]]] | None,
) -> _Counts:
    promised = laws.guarantee

    def shipped(mapping: dict[str, Any]) -> Release:
        return top_k(
            mapping,
            laws.k,
            laws.epsilon,
            mechanism=promised.mechanism,
            sensitivity=laws.family.sensitivity,
            adjacency=laws.family.adjacency,
        )

    sample = shipped if sampler is None else sampler
    mappings = [labelled(scores) for scores in inputs]
    seen: list[list[Counter[Any]]] = [[Counter(), Counter()], [Counter(), Counter()]]
    with nullcontext(lambda: None) if progress is None else progress(2 * draws) as step:
        for i in range(draws):
            # The two inputs take turns, so that whatever drifts drifts for both.
            for half, mapping in zip(seen, mappings, strict=True):
                half[2 * i >= draws][_seen(sample(mapping), len(mapping))] += 1
                step()
    return _Counts(inputs, (seen[0][0], seen[1][0]), (seen[0][1], seen[1][1]))


def _seen(result: Any, d: int) -> Any:
    """What is seen of a release, counts and the size of the domain too; anything else is taken as it is."""
    if not isinstance(result, Release):
        return result
    return outcome_of(result) if result.d == d else (*outcome_of(result), result.d)


def _event(one: Mapping[Any, int], other: Mapping[Any, int]) -> tuple[tuple[Any, ...], bool]:
    """The event that tells two inputs apart best by these counts, and whether it is likelier on the second."""
    outcomes = list(dict.fromkeys([*one, *other]))
    here = np.array([one.get(outcome, 0) for outcome in outcomes], np.float64)
    there = np.array([other.get(outcome, 0) for outcome in outcomes], np.float64)
    candidates = [(*_best_prefix(here, there), False), (*_best_prefix(there, here), True)]
    _, members, swapped = max(candidates, key=lambda candidate: candidate[0])
    return tuple(outcomes[i] for i in members), swapped


def _best_prefix(p: Floats, q: Floats) -> tuple[float, list[int]]:
    """Of the events that take outcomes by falling ratio, the one with the largest likely lower bound on epsilon."""
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    bounds = _likely_bound((hits + 0.5) / (p.sum() + 1.0), (misses + 0.5) / (q.sum() + 1.0), float(p.sum()))
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1].tolist()


def _likely_bound(p: Floats, q: Floats, draws: float) -> Floats:
    """About what the lower bound on log(p/q) will be: by Wilson's intervals, four standard errors wide."""
    room = 16.0 / draws

    def half_width(share: Floats) -> Floats:
        return np.sqrt(room * share * (1.0 - share) + room**2 / 4.0)

    return np.log((p + room / 2.0 - half_width(p)) / (q + room / 2.0 + half_width(q)))


def _sharpest(
    mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str, draws: int
) -> tuple[Laws, Scores, Scores]:
    """The pair of neighbours that can show most in so many draws, by the exact law."""
    best: tuple[float, Laws, Scores, Scores] | None = None
    for family in families(deep=False):
        size = (1 if family.d == 3 else 2) if k is None else k
        if family.adjacency != adjacency or family.d > 4 or not 1 <= size < family.d:
            continue
        laws = Laws(mechanism, size, epsilon, family)
        for scores in family.scores:
            others = list(family.neighbours(scores))
            table = np.exp(laws.table([scores, *others]).logs)
            for other, law in zip(others, table[1:], strict=True):
                for p, q, pair in ((table[0], law, (scores, other)), (law, table[0], (other, scores))):
                    bound, _ = _best_prefix(draws * p, draws * q)
                    if best is None or bound > best[0]:
                        best = bound, laws, *pair
    if best is None:
        raise InvalidValueError(f"k must be 1, 2 or 3 where scores and neighbour are left out, not {shown(k)}")
    return best[1:]


def _vector(given: Any, name: str) -> Scores:
    try:
        return tuple(exact(score, name) for score in given)
    except TypeError:
        raise InvalidTypeError(f"{name} must be a list of numbers, not {shown(given)}") from None


def _laws_of_pair(
    mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str, first: Scores, second: Scores
) -> Laws:
    if len(first) != len(second) or not 2 <= len(first) <= 8:
        raise InvalidValueError(
            f"scores and neighbour must be of one length, from 2 to 8, not {len(first)} and {len(second)}"
        )
    family = Family((first, second), adjacency)
    if not family.are_neighbours(first, second):
        raise InvalidValueError(f"neighbour must be one user away from scores under {adjacency!r}")
    return Laws(mechanism, 1 if k is None else k, epsilon, family)
