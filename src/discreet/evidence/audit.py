"""Audit the shipped sampler from outside, by many releases of two neighbouring inputs and of a longer one.

The audit bounds the epsilon that was spent from below: half of the draws choose an event that tells the two inputs
apart, and the other half bounds its probabilities by Clopper-Pearson intervals, so that the choice does not bias the
bound. It also tests that the counts fit the definition. Both tests share one stated confidence. The longer input has so
many classes that boxes hold several of them and streams several items.
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
from discreet.evidence.report import Pair, format_scores
from discreet.evidence.visible_laws import (
    CELLS,
    Input,
    check_enumerable,
    count_outcomes,
    expected_law,
    forms_of,
    label,
    label_scores,
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

Releasing = Callable[[dict[str, Any]], Any]
"""The audited function, from labelled scores to a Release or any other hashable value."""

Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""A function of the total number of draws; it returns a context with a function to call after each draw."""

_TOP = (0, 0, 0, 1)
_REST = (3, 0, 3, 1, 1, 2, 3, 0, 2, 2)
"""The scores of the long input in units of noise: of the first items, which are lifted, and of the others."""

_HIGHEST = 64
"""The largest lift of the first items, in units of noise."""

_ENOUGH = 25_000
"""The largest number of outcomes of a long input."""

_MOST_DRAWS = 10**9
"""The largest number of draws."""

_LONGEST = 26
"""The number of letters, and so of items that can be labelled."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    mechanism
        The mechanism that was audited.
    pair
        The two neighbouring inputs.
    draws
        The number of releases of each input.
    confidence
        The probability, before drawing, that a correct sampler is not accused.
    spent
        A lower bound on the epsilon that was spent, at this confidence.
    event
        The outcomes that show the bound, more likely on the first input than on the second.
    fits
        The p-value of the counts under the definition: the least of all inputs, times their number; 1 for a `Sampler`,
        which has no definition.
    longer
        The longer input that was compared with the definition too, if any, by twice as many releases.
    shortfall
        The part of epsilon for the shortfall of each release, or None without one.
    """

    mechanism: Mechanism
    pair: Pair
    draws: int
    confidence: Fraction
    spent: float
    event: tuple[Any, ...]
    fits: float
    longer: Input | None = None
    shortfall: Fraction | None = None

    @property
    def overspent(self) -> bool:
        """True if more epsilon was spent than promised."""
        return self.spent > self.pair.epsilon

    @property
    def holds(self) -> bool:
        """True if no violation was found."""
        return not self.overspent and self.fits > float(1 - self.confidence) / 2.0

    def __str__(self) -> str:
        found = f"epsilon spent at least {self.spent:.4f} of {decimal(self.pair.epsilon)}"
        sure = decimal(self.confidence)
        part = "" if self.shortfall is None else f", of which {decimal(self.shortfall)} for a shortfall"
        head = f"{self.mechanism!r} on {self.pair}{part}, {self.draws:,} draws of each"
        if self.longer is not None:
            head += f", and {2 * self.draws:,} of {format_scores(self.longer.scores)}, k = {self.longer.k}"
        if self.holds:
            fits = "" if isinstance(self.mechanism, Sampler) else f", fit to the definition p = {self.fits:.3g}"
            return f"{head}: no violation at confidence {sure}; {found}{fits}"
        reason = f"the counts do not fit the definition, p = {self.fits:.3g}"
        if self.overspent:
            event = " or ".join(str(outcome) for outcome in self.event[:4])
            event += f" or {len(self.event) - 4} more" if len(self.event) > 4 else ""
            reason = f"{found}, by the event {event}"
        return f"{head}: VIOLATION at confidence {sure}: {reason}"


@dataclass(frozen=True)
class _Counts:
    """The outcomes of each of two inputs, in the draws that choose the event and in those that bound it."""

    choosing: tuple[Counter[Any], Counter[Any]]
    bounding: tuple[Counter[Any], Counter[Any]]

    @property
    def together(self) -> Iterator[Counter[Any]]:
        for chosen, kept in zip(self.choosing, self.bounding, strict=True):
            yield chosen + kept


def audit(
    mechanism: Mechanism | None = None,
    k: int | None = None,
    *,
    epsilon: Number = 1,
    scores: Sequence[Number] | None = None,
    neighbour: Sequence[Number] | None = None,
    adjacency: str = "add-remove",
    shortfall: Number | None = None,
    draws: int = 50_000,
    confidence: Number = "0.999",
    sampler: Releasing | None = None,
    progress: Progress | None = None,
    rng: Any = None,
) -> Audit:
    """Test the sampler as an outsider would: draw many releases of two neighbouring inputs and compare the counts.

    Without `scores` a longer input is drawn from too, at which boxes hold several classes and streams several items.
    Some of its releases come from large arrays, which are sorted lazily or counted.

    Parameters
    ----------
    mechanism
        The mechanism; `Canonical()` by default. A `Sampler` has no known law, so only its spent epsilon is bounded. Its
        outcome is the sequence that it returns; a sampler of sets should sort them.
    k
        The number of items to release.
    epsilon
        The budget that a release promises, without that of a shortfall.
    scores, neighbour
        Two neighbouring vectors of counts of users, of at most 26 items; by default a pair that shows much of epsilon.
    adjacency
        The adjacency of the two inputs: "add-remove" or "swap".
    shortfall
        The epsilon of a shortfall, which each release then has too.
    draws
        The number of releases of each input; twice as many are drawn of the longer input.
    confidence
        The probability that a correct sampler is not accused.
    sampler
        A function to audit in place of `top_k`, from a dictionary of scores to a Release or any hashable value. It
        promises the privacy of the mechanism, and must have the outcomes of `top_k` for the law to fit. A longer input
        is drawn from if k is given.
    progress
        A function of the total number of draws; it returns a context with a function to call after each draw.
    rng
        A random generator, for tests only.

    Returns
    -------
    Audit
        The result; `holds` is False if a violation was found.

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
    if own is not None and shortfall is not None:
        raise InvalidValueError(f"shortfall must be left out with {own!r}, which releases none")
    budget, sure = positive(epsilon, "epsilon"), check_confidence(confidence)
    bound = None if shortfall is None else positive(shortfall, "shortfall")
    check_adjacency(adjacency)
    draws = whole_number(draws, "draws", 100, _MOST_DRAWS)
    if (scores is None) != (neighbour is None):
        raise InvalidValueError("scores and neighbour must be given together or both left out")
    has_longer = own is None and (k is not None or sampler is None)
    pair, longer = _choose_inputs(chosen, k, budget, bound, scores, neighbour, adjacency, draws, has_longer)
    total = 2 * draws if longer is None else 4 * draws
    with nullcontext(lambda: None) if progress is None else progress(total) as step:
        entropy = as_entropy(rng)
        drawing = _Drawing(entropy, sampler if own is None else _release_by(own, pair[0].k, budget, entropy), step)
        counts = drawing.of_pair(pair, draws)
        longer_counts = Counter() if longer is None else drawing.of_one(longer, 2 * draws)
    return _judge(pair, counts, longer, longer_counts, draws, sure, own)


def _choose_inputs(
    mechanism: Mechanism,
    k: int | None,
    epsilon: Fraction,
    shortfall: Fraction | None,
    scores: Sequence[Number] | None,
    neighbour: Sequence[Number] | None,
    adjacency: str,
    draws: int,
    has_longer: bool,
) -> tuple[tuple[Input, Input], Input | None]:
    """Return the two neighbours, and the longer input if the caller gave no scores."""
    if scores is None or neighbour is None:
        pair = telling_pair(mechanism, k, epsilon, adjacency, draws, shortfall)
        return pair, long_input(mechanism, k, epsilon, adjacency, shortfall) if has_longer else None
    first, second = _parse_vector(scores, "scores"), _parse_vector(neighbour, "neighbour")
    if len(first) != len(second) or not 2 <= len(first) <= _LONGEST:
        raise InvalidValueError(
            f"scores and neighbour must be of one length, from 2 to {_LONGEST}, not {len(first)} and {len(second)}"
        )
    # For a mechanism that bounds the items of a user: the least bound under which the two are neighbours.
    every = bound_users(mechanism, [Family((first, second), adjacency)], tuple(range(1, len(first) + 1)))
    family = next((family for family in every if family.are_neighbours(first, second)), every[-1])
    if not family.are_neighbours(first, second):
        raise InvalidValueError(f"neighbour must be one user away from scores under {adjacency!r}")
    one, other = (
        Input(vector, 1 if k is None else k, epsilon, mechanism, family.sensitivity, adjacency, shortfall)
        for vector in (first, second)
    )
    # The request refuses a k that is no number of items.
    if not one.request().takes_all_items:
        check_enumerable(one)
    return (one, other), None


def _parse_vector(given: Any, name: str) -> Scores:
    try:
        return tuple(exact(score, name) for score in given)
    except TypeError:
        raise InvalidTypeError(f"{name} must be a list of numbers, not {quote(given)}") from None


def telling_pair(
    mechanism: Mechanism,
    k: int | None,
    epsilon: Fraction,
    adjacency: str,
    draws: int,
    shortfall: Fraction | None = None,
) -> tuple[Input, Input]:
    """Return the pair of neighbours that by definition shows the largest spent epsilon in `draws` draws."""
    pairs: list[tuple[Input, Input]] = []
    for family in bound_users(mechanism, families(deep=False), (1,)):
        size = (1 if family.d == 3 else 2) if k is None else k
        # A shortfall needs whole numbers, which have a grid.
        fits = shortfall is None or not family.random
        if family.adjacency == adjacency and 1 <= size < family.d <= 4 and fits:
            for scores in family.scores:
                first = Input(scores, size, epsilon, mechanism, family.sensitivity, adjacency, shortfall)
                pairs += [(first, replace(first, scores=other)) for other in family.neighbours(scores)]
    if not pairs:
        raise InvalidValueError(f"k must be 1, 2 or 3 where scores and neighbour are left out, not {quote(k)}")
    laws = {one: expected_law(one).probabilities for one in dict.fromkeys(one for pair in pairs for one in pair)}

    def expect_bound(pair: tuple[Input, Input]) -> float:
        here, there = laws[pair[0]], laws[pair[1]]
        p = draws * np.array([here[outcome] for outcome in here])
        q = draws * np.array([there[outcome] for outcome in here])
        return max(best_prefix(p, q)[0], best_prefix(q, p)[0])

    return max(pairs, key=expect_bound)


def long_input(
    mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str, shortfall: Fraction | None = None
) -> Input:
    """Return the input with many classes, with its own k if none is given.

    Its top-k has a probability of about 1/2, so that draws through boxes and draws of the top-k are compared.
    """
    # By default k is as large as the definition can compute quickly.
    usual = (2 if mechanism.needs_integrals else 3) if mechanism.ordered else 4
    size = usual if k is None else k
    enough = _ENOUGH if shortfall is None else _ENOUGH // CELLS
    count = max(n for n in range(1, len(_REST) + 1) if count_outcomes(mechanism, size + n, size) <= enough)
    limit = Sensitivity(items=1 if mechanism.releases_values else None)
    unit = max(1, round(1 / definition.scale(epsilon, limit.down, limit.up, adjacency)))

    def lift(by: int) -> Input:
        scores = [by + top for top in _TOP[:size]] + [*_REST[:count]]
        return Input(tuple(Fraction(unit * score) for score in scores), size, epsilon, mechanism, limit, adjacency)

    # Bisect for the least lift at which the top-k has probability 1/2 or more; with gamma = 0 there is none.
    low, high = 0, _HIGHEST
    while high - low > 1:
        middle = (low + high) // 2
        lifted = lift(middle)
        highest = sorted(range(len(lifted.scores)), key=lifted.scores.__getitem__)[-size:]
        top = tuple(sorted(label(item) for item in highest))
        law = expected_law(lifted).probabilities
        chance = sum(chance for outcome, chance in law.items() if outcome[0] == top)
        low, high = (middle, high) if chance < 0.5 else (low, middle)
    return replace(lift(high), shortfall=shortfall)


def _judge(
    pair: tuple[Input, Input],
    counts: _Counts,
    longer: Input | None,
    longer_counts: Counter[Any],
    draws: int,
    sure: Fraction,
    own: Sampler | None = None,
) -> Audit:
    """Bound the spent epsilon and test the fit, each with half of alpha; each side of the bound has half of that."""
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
    found = Pair(first.scores, second.scores, first.k, first.total, first.adjacency)
    if own is not None:
        return Audit(own, found, draws, sure, spent, event, 1.0)
    chances = [
        p for drawn_from, seen in zip(pair, counts.together, strict=True) for p in expected_law(drawn_from).fits(seen)
    ]
    if longer is not None:
        chances += fit_to_definition(longer, longer_counts)
    fits = min(1.0, len(chances) * min(chances))
    return Audit(first.mechanism, found, draws, sure, spent, event, fits, longer, first.shortfall)


def telling_event(one: Mapping[Any, int], other: Mapping[Any, int]) -> tuple[tuple[Any, ...], bool]:
    """Return the event that best tells two inputs apart by these counts, and True if the second has it more often."""
    outcomes = list(dict.fromkeys([*one, *other]))
    here = np.array([one.get(outcome, 0) for outcome in outcomes], np.float64)
    there = np.array([other.get(outcome, 0) for outcome in outcomes], np.float64)
    candidates = [(*best_prefix(here, there), False), (*best_prefix(there, here), True)]
    _, members, swapped = max(candidates, key=lambda candidate: candidate[0])
    return tuple(outcomes[i] for i in members), swapped


def best_prefix(p: Floats, q: Floats) -> tuple[float, list[int]]:
    """Return the largest expected bound on epsilon over events that take outcomes by falling ratio, and the event."""
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    # The expected lower bound on log(p/q), by Wilson intervals of four standard errors.
    room = 16.0 / float(p.sum())

    def half_width(rate: Floats) -> Floats:
        return np.sqrt(room * rate * (1.0 - rate) + room**2 / 4.0)

    above, below = (hits + 0.5) / (p.sum() + 1.0), (misses + 0.5) / (q.sum() + 1.0)
    bounds = np.log((above + room / 2.0 - half_width(above)) / (below + room / 2.0 + half_width(below)))
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1].tolist()


def fit_to_definition(drawn_from: Input, counts: Counter[Any]) -> list[float]:
    """Return the p-values of counts under the definition: of all releases, and of those from large arrays.

    The keys of the counts are pairs of a form and an outcome.
    """
    law = expected_law(drawn_from)
    every: Counter[Any] = Counter()
    large: Counter[Any] = Counter()
    for (form, outcome), times in counts.items():
        every[outcome] += times
        large[outcome] += times * (form != "small")
    return law.fits(every) + (law.fits(+large) if large.total() else [])


def draw_counts(drawn_from: Input, draws: int, entropy: Entropy) -> Counter[Any]:
    """Return the counts of each form and outcome in `draws` releases, in every form that keeps the law."""
    return _Drawing(entropy).of_one(drawn_from, draws)


@dataclass(frozen=True, eq=False, repr=False)
class _Drawing:
    """Draws from inputs, by the shipped sampler or by the one of the caller."""

    entropy: Entropy
    sampler: Releasing | None = None
    step: Callable[[], Any] = lambda: None

    def of_pair(self, pair: tuple[Input, Input], draws: int) -> _Counts:
        """Draw from two inputs in turn, so that a drift affects both alike."""
        one, other = (self._outcomes(drawn_from, ("small",)) for drawn_from in pair)
        seen: tuple[tuple[Counter[Any], Counter[Any]], ...] = ((Counter(), Counter()), (Counter(), Counter()))
        for i in range(draws):
            for half, outcomes in zip(seen[2 * i >= draws], (one, other), strict=True):
                half[next(outcomes)[1]] += 1
        return _Counts(*seen)

    def of_one(self, drawn_from: Input, draws: int) -> Counter[Any]:
        """Draw from one input, in every form that keeps its law."""
        outcomes = self._outcomes(drawn_from, forms_of(drawn_from))
        return Counter(next(outcomes) for _ in range(draws))

    def _outcomes(self, drawn_from: Input, forms: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if self.sampler is None:
            outcomes: Iterator[tuple[str, Any]] = releases(drawn_from, self.entropy, forms)
        else:
            mapping = label_scores(drawn_from.scores)
            outcomes = (("small", _observe_result(drawn_from, self.sampler(given))) for given in repeat(mapping))
        for outcome in outcomes:
            yield outcome
            self.step()


def _release_by(own: Sampler, k: int, epsilon: Fraction, entropy: Entropy) -> Releasing:
    """Return a function from labelled scores to the labels that a sampler selects, in its order."""
    rng = make_generator(entropy)

    def release(scores: dict[str, Any]) -> tuple[str, ...]:
        # By label, not by rank: an item has the same position in both inputs, so sorted positions tell no rank.
        labels = sorted(scores)
        values = np.array([float(scores[label]) for label in labels])
        return tuple(labels[i] for i in own.draw_positions(values, k, epsilon, rng).tolist())

    return release


def _observe_result(drawn_from: Input, result: Any) -> Any:
    """Return what is seen of a release, with counts and a wrong size of the domain; other values are unchanged."""
    if not isinstance(result, Release):
        return result
    seen = drawn_from.observe(result)
    return seen if result.d == len(drawn_from.scores) else (*seen, result.d)
