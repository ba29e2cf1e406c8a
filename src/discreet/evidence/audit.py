"""The shipped sampler audited from outside: many releases of two neighbouring inputs and of a longer one.

Two questions are put to the counts. How much epsilon was spent at least? Half of the draws choose an event that tells
the two inputs apart, the other half bounds its probabilities (Clopper and Pearson), so that the bound is an honest one
whatever was chosen. And do the counts fit the definition, enumerated? Both are answered at one stated confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from discreet.analysis.goals import check_confidence, lower_bound, upper_bound
from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.evidence import definition
from discreet.evidence.neighbours import Family, Scores, bound_users, families
from discreet.evidence.report import Outcome, Pair, format_scores
from discreet.evidence.visible_laws import (
    Input,
    check_enumerable,
    count_outcomes,
    expected_law,
    forms_of,
    label,
    label_scores,
    outcome_of,
    releases,
)
from discreet.exact.arrays import Floats
from discreet.exact.entropy import Entropy, as_entropy
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.mechanisms.sampler import Sampler, make_generator
from discreet.privacy import Number, Sensitivity, check_adjacency, exact, positive, whole_number
from discreet.release.release import Release
from discreet.text import decimal

# The inputs that an audit draws from where the caller names none, and the event that tells two inputs apart best.
#
# A pair of neighbours of three or four items tells most about the epsilon that is spent: by the event by which the
# largest epsilon can be shown in so many draws. One longer input is there for the sampler: its classes are so many that
# boxes hold several of them and streams several items, and its top-k is drawn about every other time, so that what is
# drawn through boxes and what is not are held against each other.

_TOP = (0, 0, 0, 1)
_REST = (3, 0, 3, 1, 1, 2, 3, 0, 2, 2)
"""The scores of the long input, in units of noise: of the first items, which are lifted, and of the others."""

_HIGHEST = 64
"""By how much the first items are lifted at most, in units of noise."""

_ENOUGH = 25_000
"""How many outcomes a long input has at most."""


def telling_pair(
    mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str, draws: int
) -> tuple[Input, Input]:
    """The pair of neighbours that can show most of the epsilon spent in so many draws, by the definition."""
    pairs = [
        pair
        for family in bound_users(mechanism, families(deep=False), (1,))
        if family.adjacency == adjacency and family.d <= 4
        for pair in _pairs(family, (1 if family.d == 3 else 2) if k is None else k, mechanism, epsilon)
    ]
    if not pairs:
        raise InvalidValueError(f"k must be 1, 2 or 3 where scores and neighbour are left out, not {quote(k)}")
    laws = {one: expected_law(one).probabilities for one in dict.fromkeys(one for pair in pairs for one in pair)}
    return max(pairs, key=lambda pair: _can_show(laws[pair[0]], laws[pair[1]], draws))


def long_input(mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str) -> Input:
    """The input whose classes are many, with a k of its own where the caller names none."""
    size = _usual_size(mechanism) if k is None else k
    count = max(n for n in range(1, len(_REST) + 1) if count_outcomes(mechanism, size + n, size) <= _ENOUGH)
    limit = Sensitivity(items=1 if mechanism.releases_values else None)
    unit = max(1, round(1 / definition.scale(epsilon, limit.down, limit.up, adjacency)))

    def lift(by: int) -> Input:
        scores = [by + top for top in _TOP[:size]] + [*_REST[:count]]
        return Input(tuple(Fraction(unit * score) for score in scores), size, epsilon, mechanism, limit, adjacency)

    # The least lift by which the top-k is drawn every other time or more often; with gamma = 0 there is none.
    low, high = 0, _HIGHEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _top_chance(lift(middle)) < 0.5 else (low, middle)
    return lift(high)


def _pairs(family: Family, k: int, mechanism: Mechanism, epsilon: Fraction) -> Iterator[tuple[Input, Input]]:
    if not 1 <= k < family.d:
        return
    for scores in family.scores:
        first = Input(scores, k, epsilon, mechanism, family.sensitivity, family.adjacency)
        yield from ((first, replace(first, scores=other)) for other in family.neighbours(scores))


def _can_show(here: dict[Outcome, float], there: dict[Outcome, float], draws: int) -> float:
    """About how much epsilon so many draws of two inputs of these laws will show to be spent."""
    p = draws * np.array([here[outcome] for outcome in here])
    q = draws * np.array([there[outcome] for outcome in here])
    return max(best_prefix(p, q)[0], best_prefix(q, p)[0])


def _usual_size(mechanism: Mechanism) -> int:
    """The k of the long input: as large as the definition can do quickly."""
    if not mechanism.ordered:
        return 4
    return 2 if mechanism.needs_integrals else 3


def _top_chance(drawn_from: Input) -> float:
    """The probability that the k highest are released, in whatever order."""
    highest = sorted(range(len(drawn_from.scores)), key=drawn_from.scores.__getitem__)[-drawn_from.k :]
    top = tuple(sorted(label(item) for item in highest))
    return sum(chance for outcome, chance in expected_law(drawn_from).probabilities.items() if outcome[0] == top)


def telling_event(one: Mapping[Any, int], other: Mapping[Any, int]) -> tuple[tuple[Any, ...], bool]:
    """The event that tells two inputs apart best by these counts, and whether it is likelier on the second."""
    outcomes = list(dict.fromkeys([*one, *other]))
    here = np.array([one.get(outcome, 0) for outcome in outcomes], np.float64)
    there = np.array([other.get(outcome, 0) for outcome in outcomes], np.float64)
    candidates = [(*best_prefix(here, there), False), (*best_prefix(there, here), True)]
    _, members, swapped = max(candidates, key=lambda candidate: candidate[0])
    return tuple(outcomes[i] for i in members), swapped


def best_prefix(p: Floats, q: Floats) -> tuple[float, list[int]]:
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


Releasing = Callable[[dict[str, Any]], Any]
"""What is audited: from labelled scores to something that can be seen, a Release or any other hashable value."""

Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Called with the number of draws in all; gives a context with a function to call after each."""

_MOST_DRAWS = 10**9
_LONGEST = 26
"""How many items there are letters for."""


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
        The probability of counts as far from the definition as those seen: the least of those of all inputs, times how
        many there are; 1 for a `Sampler`, of which there is no definition.
    longer
        The longer input whose releases were held against the definition too, if any; twice as many were drawn.
    """

    mechanism: Mechanism
    pair: Pair
    draws: int
    confidence: Fraction
    spent: float
    event: tuple[Any, ...]
    fits: float
    longer: Input | None = None

    @property
    def overspent(self) -> bool:
        """Whether more epsilon was spent than was promised."""
        return self.spent > self.pair.epsilon

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the sampler."""
        return not self.overspent and self.fits > float(1 - self.confidence) / 2.0

    def __str__(self) -> str:
        found = f"epsilon spent at least {self.spent:.4f} of {decimal(self.pair.epsilon)}"
        sure = decimal(self.confidence)
        head = f"{self.mechanism!r} on {self.pair}, {self.draws:,} draws of each{self._shown_longer()}"
        if self.holds:
            fits = "" if isinstance(self.mechanism, Sampler) else f", fit to the definition p = {self.fits:.3g}"
            return f"{head}: no violation at confidence {sure}; {found}{fits}"
        reason = f"{found}, by the event {self._shown_event()}"
        if not self.overspent:
            reason = f"the counts do not fit the definition, p = {self.fits:.3g}"
        return f"{head}: VIOLATION at confidence {sure}: {reason}"

    def _shown_longer(self) -> str:
        if self.longer is None:
            return ""
        return f", and {2 * self.draws:,} of {format_scores(self.longer.scores)}, k = {self.longer.k}"

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
    draws: int = 50_000,
    confidence: Number = "0.999",
    sampler: Releasing | None = None,
    progress: Progress | None = None,
    rng: Any = None,
) -> Audit:
    """Tests the sampler as an outsider would: draws many releases of two neighbouring inputs and compares the counts.

    Where no scores are given, a longer input is drawn from too, at which boxes hold several classes and streams several
    items; some of its releases come from large arrays, which are sorted lazily or counted.

    Parameters
    ----------
    mechanism
        The mechanism; `Canonical()` by default. Of a `Sampler` only the epsilon that it spends is looked at: its law is
        not known. What it returns is what is seen, in its order; where a set is released, it should be sorted.
    k
        How many items to release.
    epsilon
        The budget that a release promises.
    scores, neighbour
        Two neighbouring vectors of counts of users, of at most 26 items; by default a pair that can show much.
    adjacency
        What they differ by: "add-remove" or "swap".
    draws
        How many releases of each to draw; twice as many of the longer input.
    confidence
        The probability that a right sampler is not accused.
    sampler
        What to audit in place of `top_k`: a function from a dictionary of scores to a Release or any hashable value.
        It is promised to be as private as the mechanism, and its outcomes must be those of `top_k` for the law to fit.
        There is a longer input where k is given.
    progress
        Called with the number of draws in all; gives a context with a function to call after each.
    rng
        A random generator, for tests only.

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
    own = mechanism if isinstance(mechanism, Sampler) else None
    if own is not None and sampler is not None:
        raise InvalidValueError(f"sampler must be left out with {own!r}, which is one")
    chosen = check_mechanism(DEFAULT if mechanism is None or own is not None else mechanism)
    budget, sure = positive(epsilon, "epsilon"), check_confidence(confidence)
    check_adjacency(adjacency)
    draws = whole_number(draws, "draws", 100, _MOST_DRAWS)
    if (scores is None) != (neighbour is None):
        raise InvalidValueError("scores and neighbour must be given together or both left out")
    has_longer = own is None and (k is not None or sampler is None)
    pair, longer = _inputs(chosen, k, budget, scores, neighbour, adjacency, draws, has_longer)
    total = 2 * draws if longer is None else 4 * draws
    with nullcontext(lambda: None) if progress is None else progress(total) as step:
        entropy = as_entropy(rng)
        drawn_by = sampler if own is None else _release_by(own, pair[0].k, budget, entropy)
        seen = _Drawing(entropy, drawn_by, step)
        counts = seen.of_pair(pair, draws)
        longer_counts = Counter() if longer is None else seen.of_one(longer, 2 * draws)
    return _judge(pair, counts, longer, longer_counts, draws, sure, own)


def fit_to_definition(drawn_from: Input, counts: Counter[Any]) -> list[float]:
    """The probabilities of counts as far from the definition as these: of all releases, and of those in large arrays.

    Counts are of a form and an outcome each.
    """
    law = expected_law(drawn_from)
    every: Counter[Any] = Counter()
    large: Counter[Any] = Counter()
    for (form, outcome), times in counts.items():
        every[outcome] += times
        large[outcome] += times * (form != "small")
    return law.fits(every) + (law.fits(+large) if large.total() else [])


def draw_counts(drawn_from: Input, draws: int, entropy: Entropy) -> Counter[Any]:
    """How often each form and outcome was seen in so many releases, in every form that leaves the law as it is."""
    return _Drawing(entropy).of_one(drawn_from, draws)


def _judge(
    pair: tuple[Input, Input],
    counts: _Counts,
    longer: Input | None,
    longer_counts: Counter[Any],
    draws: int,
    sure: Fraction,
    own: Sampler | None = None,
) -> Audit:
    """The two questions, each with half of what may go wrong; either side of the bound has half of that."""
    alpha = float(1 - sure)
    (one, other), (one_kept, other_kept) = counts.choosing, counts.bounding
    event, swapped = telling_event(one, other)
    first, second = pair
    if swapped:
        first, second, one_kept, other_kept = second, first, other_kept, one_kept
    kept = draws - draws // 2
    likely = lower_bound(sum(one_kept[outcome] for outcome in event), kept, alpha / 4.0)
    unlikely = upper_bound(sum(other_kept[outcome] for outcome in event), kept, alpha / 4.0)
    spent = max(0.0, math.log(likely / unlikely)) if likely > 0.0 else 0.0
    found = Pair(first.scores, second.scores, first.k, first.epsilon, first.adjacency)
    if own is not None:
        return Audit(own, found, draws, sure, spent, event, 1.0)
    chances = [
        p for drawn_from, seen in zip(pair, counts.together, strict=True) for p in expected_law(drawn_from).fits(seen)
    ]
    if longer is not None:
        chances += fit_to_definition(longer, longer_counts)
    fits = min(1.0, len(chances) * min(chances))
    return Audit(first.mechanism, found, draws, sure, spent, event, fits, longer)


@dataclass(frozen=True)
class _Counts:
    """What was seen on each of two inputs, in the half of the draws that chooses and in the half that bounds."""

    choosing: tuple[Counter[Any], Counter[Any]]
    bounding: tuple[Counter[Any], Counter[Any]]

    @property
    def together(self) -> Iterator[Counter[Any]]:
        for chosen, kept in zip(self.choosing, self.bounding, strict=True):
            yield chosen + kept


@dataclass(frozen=True, eq=False, repr=False)
class _Drawing:
    """Draws from inputs: by the shipped sampler, or by one that the caller named."""

    entropy: Entropy
    sampler: Releasing | None = None
    step: Callable[[], Any] = lambda: None

    def of_pair(self, pair: tuple[Input, Input], draws: int) -> _Counts:
        """So many outcomes of each of two inputs, which take turns, so that whatever drifts drifts for both."""
        one, other = (self._outcomes(drawn_from, ("small",)) for drawn_from in pair)
        seen: tuple[tuple[Counter[Any], Counter[Any]], ...] = ((Counter(), Counter()), (Counter(), Counter()))
        for i in range(draws):
            for half, outcomes in zip(seen[2 * i >= draws], (one, other), strict=True):
                half[next(outcomes)[1]] += 1
        return _Counts(*seen)

    def of_one(self, drawn_from: Input, draws: int) -> Counter[Any]:
        """So many outcomes of one input, in every form that leaves its law as it is."""
        outcomes = self._outcomes(drawn_from, forms_of(drawn_from))
        return Counter(next(outcomes) for _ in range(draws))

    def _outcomes(self, drawn_from: Input, forms: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if self.sampler is None:
            outcomes: Iterator[tuple[str, Any]] = releases(drawn_from, self.entropy, forms)
        else:
            mapping = label_scores(drawn_from.scores)
            outcomes = (("small", _observe(self.sampler(given), len(mapping))) for given in repeat(mapping))
        for outcome in outcomes:
            yield outcome
            self.step()


def _release_by(own: Sampler, k: int, epsilon: Fraction, entropy: Entropy) -> Releasing:
    """What a sampler makes of labelled scores: the labels at the positions, in the order in which it returns them."""
    rng = make_generator(entropy)

    def release(scores: dict[str, Any]) -> tuple[str, ...]:
        labels, values = list(scores), np.array([float(score) for score in scores.values()])
        return tuple(labels[i] for i in own.draw_positions(values, k, epsilon, rng).tolist())

    return release


def _observe(result: Any, d: int) -> Any:
    """What is seen of a release, counts and the size of the domain too; anything else is taken as it is."""
    if not isinstance(result, Release):
        return result
    return outcome_of(result) if result.d == d else (*outcome_of(result), result.d)


def _inputs(
    mechanism: Mechanism,
    k: int | None,
    epsilon: Fraction,
    scores: Sequence[Number] | None,
    neighbour: Sequence[Number] | None,
    adjacency: str,
    draws: int,
    has_longer: bool,
) -> tuple[tuple[Input, Input], Input | None]:
    """The two neighbours, and the longer input where the caller named none."""
    if scores is None or neighbour is None:
        pair = telling_pair(mechanism, k, epsilon, adjacency, draws)
        return pair, long_input(mechanism, k, epsilon, adjacency) if has_longer else None
    first, second = _vector(scores, "scores"), _vector(neighbour, "neighbour")
    if len(first) != len(second) or not 2 <= len(first) <= _LONGEST:
        raise InvalidValueError(
            f"scores and neighbour must be of one length, from 2 to {_LONGEST}, not {len(first)} and {len(second)}"
        )
    family = _family_of(mechanism, first, second, adjacency)
    if not family.are_neighbours(first, second):
        raise InvalidValueError(f"neighbour must be one user away from scores under {adjacency!r}")
    one, other = (
        Input(vector, 1 if k is None else k, epsilon, mechanism, family.sensitivity, adjacency)
        for vector in (first, second)
    )
    # A k that is no number of items is refused by the request.
    if not one.request().takes_all_items:
        check_enumerable(mechanism, len(first), one.k)
    return (one, other), None


def _family_of(mechanism: Mechanism, first: Scores, second: Scores, adjacency: str) -> Family:
    """The family of two vectors, for users of as few items as make one of the other, where the mechanism asks that."""
    every = bound_users(mechanism, [Family((first, second), adjacency)], tuple(range(1, len(first) + 1)))
    return next((family for family in every if family.are_neighbours(first, second)), every[-1])


def _vector(given: Any, name: str) -> Scores:
    try:
        return tuple(exact(score, name) for score in given)
    except TypeError:
        raise InvalidTypeError(f"{name} must be a list of numbers, not {quote(given)}") from None
