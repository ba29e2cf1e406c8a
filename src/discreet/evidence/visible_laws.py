"""The exact law of what the caller of `top_k` sees, and how far two of them are apart.

The probabilities are balls (`discreet.evidence.law`), and every draw is taken through `top_k`'s own way from ranks to a
release. Whatever the caller sees is an outcome: the items in the order they are listed in, and the released order. The
input is handed over in rank order, as a `value_counts()` would be, so that an order that is echoed shows too.

Two laws are compared as rows of log probabilities: by the largest log ratio, and by Renyi divergences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from discreet.analysis.goals import fit
from discreet.errors import InvalidValueError, quote
from discreet.evidence import definition
from discreet.evidence.law import as_selection, law
from discreet.evidence.neighbours import Family, Scores
from discreet.evidence.report import Outcome, Pair, format_outcome, format_scores
from discreet.exact.arrays import Floats
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.noise import noise_of
from discreet.mechanisms.registry import to_dict
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity
from discreet.release import topk
from discreet.release.guarantee import Guarantee
from discreet.release.release import Release
from discreet.release.request import Randomness, Request, make_request
from discreet.sources.arrays.array import ArraySource, array_source
from discreet.sources.arrays.sorting import LARGE
from discreet.sources.base import Source

_BITS = 112
_WIDEST = 1e-18
"""How exactly log probabilities are wanted, and the precision that is tried first."""

ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The Renyi orders at which zCDP is checked."""

_NOTHING = 1e-12
"""What counts as no difference where none is allowed."""


@dataclass(frozen=True)
class Table:
    """The laws of some inputs: log probabilities, a row for each, and how far each row may be off."""

    logs: Floats
    off: Floats
    outcomes: list[Outcome]


class Laws:
    """The laws of what `top_k` shows, for inputs of one family."""

    def __init__(self, mechanism: Mechanism, k: int, epsilon: Fraction, family: Family) -> None:
        self.k, self.epsilon, self.family = k, epsilon, family
        self.request = make_request(
            dict(enumerate(family.scores[0])), k, epsilon,
            mechanism=mechanism, sensitivity=family.sensitivity, adjacency=family.adjacency,
        )  # fmt: skip
        self._known: dict[Scores, dict[Outcome, tuple[float, float]]] = {}

    @property
    def guarantee(self) -> Guarantee:
        """What all these releases promise."""
        return self.request.guarantee

    def pair(self, scores: Scores, neighbour: Scores) -> Pair:
        """The pair with the outcome at which it is worst."""
        table = self.table([scores, neighbour])
        worst = int(log_ratios(table.logs[0], table.logs[1:])[0].argmax())
        outcome = table.outcomes[worst]
        return Pair(scores, neighbour, self.k, self.guarantee.epsilon, self.family.adjacency, outcome)

    def table(self, inputs: list[Scores]) -> Table:
        """The laws of some inputs side by side; an outcome that an input cannot have has probability 0."""
        rows = [self.law(scores) for scores in inputs]
        outcomes = list(dict.fromkeys(outcome for row in rows for outcome in row))
        logs = np.full((len(rows), len(outcomes)), -np.inf)
        off = np.zeros(len(rows))
        for i, row in enumerate(rows):
            for j, outcome in enumerate(outcomes):
                if outcome in row:
                    logs[i, j], error = row[outcome]
                    off[i] = max(off[i], error)
        return Table(logs, off, outcomes)

    def law(self, scores: Scores) -> dict[Outcome, tuple[float, float]]:
        """The log probability of everything that the caller can see, and how far it may be off."""
        if scores not in self._known:
            self._known[scores] = self._visible(scores)
        return self._known[scores]

    def source(self, scores: Scores) -> ArraySource:
        """The source that an input is handed over as."""
        return array_source(label_scores(scores))

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """What is released of the input behind `source` where `draw` selects."""
        return replace(self.request, source=source).draw(Randomness(draw))

    def _visible(self, scores: Scores) -> dict[Outcome, tuple[float, float]]:
        source = self.source(scores)
        return enumerate_outcomes(lambda draw: self.release(scores, source, draw), self.k)


def enumerate_outcomes(
    release: Callable[[Callable[[Prepared], Selection]], Release], k: int
) -> dict[Outcome, tuple[float, float]]:
    """The log probability of everything that the caller can see, and how far it may be off.

    Parameters
    ----------
    release
        What is released where a given function selects.
    k
        How many ranks are chosen.
    """
    prepared: list[Prepared] = []

    def observe(select: Callable[[Prepared], Selection]) -> Outcome:
        def draw(ready: Prepared) -> Selection:
            prepared.append(ready)
            return select(ready)

        return outcome_of(release(draw))

    first = observe(lambda _: Selection(np.arange(k)))
    if not prepared:
        # Nothing was drawn: this is all there is to see.
        return {first: (0.0, 0.0)}
    logs: dict[Outcome, tuple[float, float]] = {}
    for drawn, (log_probability, off) in _floats(prepared[0]).items():
        outcome = observe(partial(as_selection, drawn=drawn))
        before, error = logs.get(outcome, (-math.inf, 0.0))
        logs[outcome] = float(np.logaddexp(before, log_probability)), max(off, error) + (before > -math.inf) * 1e-14
    return logs


def outcome_of(release: Release) -> Outcome:
    """What the caller sees of a release."""
    order = release.chosen if release.order is None else tuple(release.order)
    return (tuple(release.items), order) if release.counts is None else (tuple(release.items), order, *release.counts)


def label_scores(scores: Scores) -> dict[str, int | Fraction]:
    """Scores with labels a, b, c, ..., listed in rank order; counts as the whole numbers that users have."""
    plain = [score.numerator if score.denominator == 1 else score for score in scores]
    ranked = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
    return {label(item): plain[item] for item in ranked}


def label(item: int) -> str:
    """What the item at a position is called: a, b, c, ..."""
    return chr(ord("a") + item)


def _floats(prepared: Prepared) -> dict[tuple[int, ...], tuple[float, float]]:
    """The law as floats, each with a bound on its distance from the true log probability."""
    bits = _BITS
    while True:
        with precision(bits):
            exactly = law(prepared)
        # A chance far below what the precision can tell from zero has no logarithm yet.
        if all(log.is_finite() and log.rad() < _WIDEST for log in exactly.values()):
            middles = {ranks: float(log.mid()) for ranks, log in exactly.items()}
            return {ranks: (middles[ranks], _WIDEST + 2.0**-52 * abs(middles[ranks])) for ranks in exactly}
        bits *= 2


def log_ratios(here: Floats, there: Floats) -> Floats:
    """How far log probabilities are apart, outcome by outcome; infinitely where only one is possible."""
    return np.abs(signed_log_ratios(here, there))


def signed_log_ratios(here: Floats, there: Floats) -> Floats:
    """By how much log probabilities are above others, outcome by outcome; 0 where neither is possible."""
    with np.errstate(invalid="ignore"):
        above = here - there
    return np.where(np.isnan(above), 0.0, above)


def shares(ratios: Floats, epsilon: Fraction) -> Floats:
    """Log ratios as shares of epsilon; where epsilon is zero, any ratio is infinitely much of it."""
    if epsilon == 0:
        return np.where(ratios > _NOTHING, np.inf, 0.0)
    return ratios / float(epsilon)


def divergences(here: Floats, there: Floats, zcdp: Fraction) -> Floats:
    """The largest of D_a / (rho a) over the orders a and both directions, for each row of `there`."""
    worst = np.zeros(len(there))
    for order in ORDERS:
        for p, q in ((here, there), (there, here)):
            divergence = renyi(np.broadcast_to(p, there.shape), np.broadcast_to(q, there.shape), order)
            allowed = float(zcdp) * order
            share = divergence / allowed if allowed else np.where(divergence > _NOTHING, np.inf, 0.0)
            worst = np.maximum(worst, share)
    return worst


def renyi(p: Floats, q: Floats, order: float) -> Floats:
    """The Renyi divergence of some order, of rows of log probabilities; the Kullback-Leibler one for order 1."""
    with np.errstate(invalid="ignore", over="ignore"):
        if order == 1.0:
            terms = np.exp(p) * (p - q)
            return np.asarray(np.where(p == -np.inf, 0.0, terms).sum(axis=1))
        terms = np.where(p == -np.inf, 0.0, np.exp(order * p + (1.0 - order) * q))
        return np.asarray(np.log(terms.sum(axis=1)) / (order - 1.0))


# Many releases of one input, by the code that `top_k` runs.
#
# What is done before the first random bit (sort the scores, cut the classes into boxes) has one outcome, so a batch of
# draws shares it: the first release of a batch comes from `top_k` itself, the others from what it calls. Some batches
# hand the same scores over among so many hopeless items that they are put into buckets, or counted, and that the chosen
# ones are looked up in a large array.

_BATCH = 100
_TURNS = ("small", "small", "buckets", "small", "small", "counted", "small", "small", "buckets", "small")
"""The form in which a batch hands the scores over, in turn."""

_APART = LARGE // 32
"""How far apart the items are in a large array."""

_SURE, _DECOYS_SURE = 50.0, 20.0
"""All hopeless items together are drawn with a probability below e^-50, a set of decoys and others with e^-20."""

_SPREAD = 1000
"""The distance between the scores of hopeless items that are to fill buckets."""


@dataclass(frozen=True)
class Input:
    """Scores that releases are drawn from, and what those promise.

    Attributes
    ----------
    scores
        The scores of items a, b, c, ....
    k
        How many items are released.
    epsilon
        The budget of each release.
    mechanism
        How they are drawn.
    sensitivity
        How far adding one user can move a score.
    adjacency
        What two neighbouring inputs differ by.
    """

    scores: Scores
    k: int
    epsilon: Fraction
    mechanism: Mechanism
    sensitivity: Sensitivity
    adjacency: str

    def request(self, source: Source | None = None) -> Request:
        """What is asked of these scores, or of a source that hands them over in another form."""
        return make_request(
            label_scores(self.scores) if source is None else source, self.k, self.epsilon,
            mechanism=self.mechanism, sensitivity=self.sensitivity, adjacency=self.adjacency,
        )  # fmt: skip


def releases(drawn_from: Input, entropy: Entropy, forms: tuple[str, ...] = ("small",)) -> Iterator[tuple[str, Outcome]]:
    """What is seen of one release after the other, without end, each with its form; the forms of batches take turns."""
    while True:
        for form in forms:
            yield from ((form, outcome) for outcome in _batch(drawn_from, form, entropy))


def forms_of(drawn_from: Input) -> tuple[str, ...]:
    """The forms that do not change the law: all, unless there is no score so low that it is hopeless."""
    is_whole = all(score.denominator == 1 for score in drawn_from.scores)
    fits = is_whole and drawn_from.k < len(drawn_from.scores) and _gap(drawn_from, _SURE) < 2.0**60
    return _TURNS if fits else ("small",)


def _gap(drawn_from: Input, sure: float) -> float:
    """How far below all others the scores of so many items have to be that are next to never drawn; inf if never."""
    weight = _weight(drawn_from)
    # At most LARGE^k sets or sequences hold such an item, and noise that makes up for x has a chance of about e^-x.
    return (drawn_from.k * math.log(LARGE) + sure) / float(weight) if weight else math.inf


def _weight(drawn_from: Input) -> Fraction:
    """What one unit of the score of the worst item costs, in units of noise."""
    limit = drawn_from.sensitivity
    s = definition.scale(drawn_from.epsilon, limit.down, limit.up, drawn_from.adjacency)
    return drawn_from.mechanism.unit_cost(s, drawn_from.k)


def _batch(drawn_from: Input, form: str, entropy: Entropy) -> Iterator[Outcome]:
    source = source_of(drawn_from, form)
    front_door = topk.top_k(
        source,
        drawn_from.k,
        drawn_from.epsilon,
        mechanism=drawn_from.mechanism,
        sensitivity=drawn_from.sensitivity,
        adjacency=drawn_from.adjacency,
        rng=entropy,
    )
    yield _observe_draw(front_door, form)
    request, draw = drawn_from.request(source), _draw_from_first(entropy)
    for _ in range(_BATCH - 1):
        yield _observe_draw(request.draw(Randomness(draw)), form)


def _draw_from_first(entropy: Entropy) -> Callable[[Prepared], Selection]:
    """Draws from the first of several equal preparations, which has its boxes already."""
    first: list[Prepared] = []

    def draw(prepared: Prepared) -> Selection:
        first.append(prepared)
        del first[1:]
        return first[0].select(entropy)

    return draw


def source_of(drawn_from: Input, form: str) -> ArraySource:
    """The source that hands the scores over in some form."""
    if form == "small":
        return array_source(label_scores(drawn_from.scores))
    lowest, height = min(drawn_from.scores), math.ceil(_gap(drawn_from, _SURE))
    # Equal small scores are counted, and scores that are far apart fill buckets.
    scores = -_SPREAD * np.arange(LARGE) if form == "buckets" else np.zeros(LARGE, np.int64)
    scores[_APART // 2 :: _APART] = height - math.ceil(_gap(drawn_from, _DECOYS_SURE))
    for i, score in enumerate(drawn_from.scores):
        scores[i * _APART] = height + int(score - lowest)
    return HeldScores(*vars(array_source(scores)).values())


class HeldScores(ArraySource):
    """Scores that stand still, whose tally is made once for many draws."""

    @cached_property
    def _held(self) -> Tally:
        return super().tally()

    def tally(self) -> Tally:
        return self._held


def _observe_draw(release: Release, form: str) -> Outcome:
    """What is seen of a release, with the items of a large array under their letters.

    Values that come with a selection have a law of their own (`discreet.evidence.counts`).
    """
    release = replace(release, counts=None)
    if form == "small":
        return outcome_of(release)

    def name_items(positions: list[Any]) -> list[Any]:
        # What is no item of the small input is left as it is: it cannot be drawn, and will be noticed.
        return [label(at // _APART) if at % _APART == 0 else at for at in positions]

    order = None if release.order is None else name_items(release.order)
    return outcome_of(replace(release, items=name_items(release.items), order=order))


# What the definition expects a caller of `top_k` to see, and what departs from it.
#
# It comes from `discreet.evidence.definition` alone, so that no formula of the mechanisms can vouch for itself. That
# neighbouring laws are close says nothing of a class size, a factor or a scale that is wrong on both sides alike. So
# `verify` compares every law with the expected one, outcome by outcome, and `audit` holds its counts against it.

TOLERANCE = 1e-9
"""How far log probabilities may be apart: the definition is computed in floats, with errors a hundred times smaller."""

MOST_OUTCOMES = 100_000
"""Up to how many outcomes are enumerated."""

_SHARE = 0.1
"""How much of the probability a level has at least, so that levels are few and small faults add up in them."""


@dataclass(frozen=True)
class Departure:
    """An outcome whose probability is not that of the definition.

    Attributes
    ----------
    scores, k, epsilon, adjacency
        Where.
    outcome
        What is seen.
    log_probability, defined
        The logarithms of its probability, and of the one that the definition gives it.
    """

    scores: Scores
    k: int
    epsilon: Fraction
    adjacency: str
    outcome: Outcome
    log_probability: float
    defined: float

    @property
    def size(self) -> float:
        """How far the two logarithms are apart."""
        return abs(self.log_probability - self.defined)

    def __str__(self) -> str:
        where = f"{format_scores(self.scores)}, k = {self.k}, {self.adjacency}, epsilon = {self.epsilon}"
        both = f"has probability {_probability(self.log_probability)}, by definition {_probability(self.defined)}"
        return f"{format_outcome(self.outcome)} {both}, at {where}"


def find_departure(laws: Laws, scores: Scores) -> Departure | None:
    """The outcome of an input that departs most from the definition, None where all have its probability."""
    found = {outcome: log for outcome, (log, _) in laws.law(scores).items()}
    defined = defined_law(laws, scores)
    worst: Departure | None = None
    for outcome in dict.fromkeys([*defined, *found]):
        pair = found.get(outcome, -math.inf), defined.get(outcome, -math.inf)
        if math.isfinite(pair[1]) and abs(pair[0] - pair[1]) <= TOLERANCE * max(1.0, abs(pair[1])):
            continue
        one = Departure(scores, laws.k, laws.epsilon, laws.family.adjacency, outcome, *pair)
        if worst is None or one.size > worst.size:
            worst = one
    return worst


def defined_law(laws: Laws, scores: Scores) -> dict[Outcome, float]:
    """The log probability that the definition gives everything that the caller can see."""
    family = laws.family
    return visible_law(laws.guarantee.mechanism, scores, laws.k, laws.epsilon, family.sensitivity, family.adjacency)


def visible_law(
    mechanism: Mechanism,
    scores: Scores,
    k: int,
    epsilon: Fraction,
    limit: Sensitivity,
    adjacency: str,
    *,
    as_sets: bool = False,
) -> dict[Outcome, float]:
    """The same, from all that the law depends on; `limit` is how far adding one user can move a score.

    With `as_sets` it is that of what is seen but for its order.
    """
    if k == len(scores) and not mechanism.releases_values:
        # All items are released, without an order.
        return {_observe(tuple(range(k)), False): 0.0}
    check_defined(mechanism)
    given = to_dict(mechanism), scores, k, epsilon, limit.down, limit.up, adjacency
    law = definition.law(*given, as_sets=as_sets, items=limit.items)
    return {_observe(positions, mechanism.ordered and not as_sets): log for positions, log in law.items()}


def check_defined(mechanism: Mechanism) -> None:
    """Raises unless the definition knows the noise of a mechanism."""
    name = noise_of(mechanism).name
    if name not in definition.LOG_PDF:
        known = ", ".join(definition.LOG_PDF)
        raise InvalidValueError(f"noise must be one that the definition knows, {known}, not {quote(name)}")


def _observe(drawn: tuple[Any, ...], ordered: bool) -> Outcome:
    # A mechanism that chooses between candidates says which, and no order.
    chosen, positions = (drawn[0], drawn[1:]) if drawn and isinstance(drawn[0], str) else (None, drawn)
    return tuple(map(label, sorted(positions))), tuple(map(label, positions)) if ordered else chosen


def _probability(log: float) -> str:
    return f"{math.exp(log):.6g}" if log > -700.0 or log == -math.inf else f"exp({log:.6g})"


@dataclass(frozen=True)
class ExpectedLaw:
    """The law of what is seen.

    Attributes
    ----------
    probabilities
        The probability of every outcome.
    sees_order
        Whether outcomes have their order; that of many items may have no single integral.
    """

    probabilities: dict[Outcome, float]
    sees_order: bool = True

    def fits(self, counts: Mapping[Any, int]) -> list[float]:
        """The probability of counts at least as far from the law as these: outcome by outcome, and level by level."""
        seen: Counter[Any] = Counter()
        for outcome, times in counts.items():
            seen[outcome if self.sees_order else _without_order(outcome)] += times
        levels: Counter[Any] = Counter()
        for outcome, times in seen.items():
            levels[self._level.get(outcome, -1)] += times
        chances: dict[int, float] = {}
        for outcome, level in self._level.items():
            chances[level] = chances.get(level, 0.0) + self.probabilities[outcome]
        return [fit(seen, self.probabilities), fit(levels, chances)]

    @cached_property
    def _level(self) -> dict[Outcome, int]:
        """The outcomes by falling probability, cut where a tenth has been reached; the equally likely stay together."""
        level, share, before = 0, 0.0, 0.0
        levels = {}
        for outcome, chance in sorted(self.probabilities.items(), key=lambda one: -one[1]):
            if share >= _SHARE and not math.isclose(chance, before, rel_tol=1e-9):
                level, share = level + 1, 0.0
            levels[outcome] = level
            share, before = share + chance, chance
        return levels


def expected_law(drawn_from: Input) -> ExpectedLaw:
    """The law of a release of some input, by the definition."""
    scores, k, mechanism = drawn_from.scores, drawn_from.k, drawn_from.mechanism
    promised = drawn_from.epsilon, drawn_from.sensitivity, drawn_from.adjacency
    as_sets = k < len(scores) and _has_sets_alone(mechanism, k)
    law = visible_law(mechanism, scores, k, *promised, as_sets=as_sets)
    return ExpectedLaw({outcome: math.exp(log) for outcome, log in law.items()}, sees_order=not as_sets)


def count_outcomes(mechanism: Mechanism, d: int, k: int) -> int:
    """How many outcomes there are to enumerate."""
    is_set = not mechanism.ordered or _has_sets_alone(mechanism, k)
    return math.comb(d, k) if is_set else math.perm(d, k)


def check_enumerable(mechanism: Mechanism, d: int, k: int) -> None:
    """Raises where there are more outcomes than can be enumerated."""
    if count_outcomes(mechanism, d, k) > MOST_OUTCOMES:
        raise InvalidValueError(
            f"k must leave at most {MOST_OUTCOMES:,} outcomes to enumerate, and {quote(k)} of {d} items by "
            f"{mechanism!r} have {count_outcomes(mechanism, d, k):,}"
        )


def _has_sets_alone(mechanism: Mechanism, k: int) -> bool:
    return mechanism.longest_exact_order is not None and k > mechanism.longest_exact_order


def _without_order(outcome: Any) -> Any:
    return (outcome[0], None, *outcome[2:]) if isinstance(outcome, tuple) and len(outcome) > 1 else outcome
