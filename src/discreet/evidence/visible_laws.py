"""Compute the exact law of what the caller of `top_k` sees, compare two such laws, and judge them by the definition.

The probabilities are balls (`discreet.evidence.law`), and every draw goes through the code of `top_k` from ranks to a
release. An outcome is everything that the caller sees. The input is in rank order, as a `value_counts()` would be, so
that an order that is echoed shows too. A class size, a factor or a scale that is wrong for both neighbours alike leaves
their ratio small; so every law is also compared with the definition, which shares no formula with the mechanisms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import cycle
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
"""The first precision of balls in bits, doubled until log probabilities are exact to `_WIDEST`."""

_WIDEST = 1e-18
"""The largest radius of a log probability."""

ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""The Renyi orders at which zCDP is checked."""

_NOTHING = 1e-12
"""Log ratios up to this size count as zero if epsilon is zero."""

TOLERANCE = 1e-9
"""The largest difference of log probabilities. The definition is computed in floats with errors of 1e-11."""

MOST_OUTCOMES = 100_000
"""The largest number of outcomes that are enumerated."""

_FARTHEST = 12
"""Shortfalls of so many units of noise and more are one outcome, and so are those below zero."""

CELLS = 2 * _FARTHEST + 1
"""The number of outcomes of a shortfall."""

_SHARE = 0.1
"""The least probability of a level, so that levels are few and small faults add up in them."""

_BATCH = 100
"""The number of releases that share one preparation. Nothing before the first random bit depends on chance."""

_TURNS = ("small", "small", "buckets", "small", "small", "counted", "small", "small", "buckets", "small")
"""The forms of input of successive batches.

The large forms put the scores among filler items that are practically never drawn. The source sorts the scores of
"buckets" into buckets and counts those of "counted", and looks the drawn items up in a large array.
"""

_APART = LARGE // 32
"""The distance between the positions of two items in a large array."""

_SURE, _DECOYS_SURE = 50.0, 20.0
"""A filler item is drawn with a probability below e^-50, and one of the decoys, which score higher, below e^-20."""

_SPREAD = 1000
"""The distance between the scores of filler items that fill buckets."""


@dataclass(frozen=True)
class Table:
    """The laws of some inputs: a row of log probabilities for each, and the largest error of each row."""

    logs: Floats
    off: Floats
    outcomes: list[Outcome]


@dataclass(frozen=True)
class Input:
    """Scores to draw releases from, and the terms of the releases.

    Attributes
    ----------
    scores
        The scores of items a, b, c, ....
    k
        The number of released items.
    epsilon
        The budget of each release.
    mechanism
        The mechanism.
    sensitivity
        The range of the change of a score by one added user.
    adjacency
        The adjacency of neighbouring inputs.
    shortfall
        The epsilon of the shortfall of each release, or None without one.
    """

    scores: Scores
    k: int
    epsilon: Fraction
    mechanism: Mechanism
    sensitivity: Sensitivity
    adjacency: str
    shortfall: Fraction | None = None

    @property
    def total(self) -> Fraction:
        """The epsilon that a release promises."""
        return self.epsilon + (self.shortfall or 0)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise of the shortfall by definition."""
        limit = self.sensitivity
        return definition.shortfall_rate(self.shortfall or Fraction(0), limit.down, limit.up, self.adjacency)

    def observe(self, release: Release) -> Outcome:
        """Return the outcome of a release, with its shortfall in whole units of noise."""
        if self.shortfall is None or release.shortfall is None:
            return outcome_of(release)
        cell = min(max(math.floor(release.shortfall.value * self.rate), -_FARTHEST), _FARTHEST)
        return *outcome_of(replace(release, shortfall=None)), cell

    def cells(self, items: tuple[str, ...]) -> dict[int, float]:
        """Return the probability by definition of each cell of the shortfall of some items, if they are released."""
        lead, rate = definition.lead(self.scores, positions_of(items)), self.rate
        # The value is at or above a cell's edge of c units with probability P(N >= ceil(c / rate) - lead).
        units = range(-_FARTHEST + 1, _FARTHEST + 1)
        above = [1.0, *(definition.upper_tail(rate, math.ceil(unit / rate) - int(lead)) for unit in units), 0.0]
        return {cell - _FARTHEST: above[cell] - above[cell + 1] for cell in range(len(above) - 1)}

    def request(self, source: Source | None = None) -> Request:
        """Return the request for these scores, or for a source that holds them in another form."""
        return make_request(
            label_scores(self.scores) if source is None else source, self.k, self.epsilon, mechanism=self.mechanism,
            sensitivity=self.sensitivity, adjacency=self.adjacency, shortfall=self.shortfall,
        )  # fmt: skip


@dataclass(frozen=True)
class Departure:
    """An outcome whose probability is not that of the definition.

    Attributes
    ----------
    scores, k, epsilon, adjacency
        The input and the terms of the release.
    outcome
        The outcome.
    log_probability, defined
        The log probability, and the one by definition.
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
        """The distance between the two logarithms."""
        return abs(self.log_probability - self.defined)

    def __str__(self) -> str:
        where = f"{format_scores(self.scores)}, k = {self.k}, {self.adjacency}, epsilon = {self.epsilon}"
        both = f"has probability {_probability(self.log_probability)}, by definition {_probability(self.defined)}"
        return f"{format_outcome(self.outcome)} {both}, at {where}"


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
        """The guarantee of all these releases."""
        return self.request.guarantee

    def pair(self, scores: Scores, neighbour: Scores) -> Pair:
        """Return the pair with the outcome of the largest ratio."""
        table = self.table([scores, neighbour])
        worst = int(log_ratios(table.logs[0], table.logs[1:])[0].argmax())
        outcome = table.outcomes[worst]
        return Pair(scores, neighbour, self.k, self.guarantee.epsilon, self.family.adjacency, outcome)

    def table(self, inputs: list[Scores]) -> Table:
        """Return the laws of some inputs side by side; an outcome that an input cannot have has probability 0."""
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
        """Return the log probability of every outcome, and a bound on its error."""
        if scores not in self._known:
            source = self.source(scores)
            self._known[scores] = enumerate_outcomes(lambda draw: self.release(scores, source, draw), self.k)
        return self._known[scores]

    def listed(self, scores: Scores) -> dict[Outcome, float]:
        """Return the log probability of every outcome that is compared with the definition."""
        return {outcome: log for outcome, (log, _) in self.law(scores).items()}

    def defined(self, scores: Scores) -> dict[Outcome, float]:
        """Return the log probability of the same outcomes by definition."""
        limit, adjacency = self.family.sensitivity, self.family.adjacency
        return visible_law(self.guarantee.mechanism, scores, self.k, self.epsilon, limit, adjacency)

    def source(self, scores: Scores) -> ArraySource:
        """Return the source of an input."""
        return array_source(label_scores(scores))

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """Release the input behind `source` with the selection of `draw`."""
        return replace(self.request, source=source).draw(Randomness(draw))


def enumerate_outcomes(
    release: Callable[[Callable[[Prepared], Selection]], Release], k: int
) -> dict[Outcome, tuple[float, float]]:
    """Return the log probability of every outcome, and a bound on its error.

    Parameters
    ----------
    release
        A function that makes a release with a given selection.
    k
        The number of selected ranks.
    """
    prepared: list[Prepared] = []

    def observe(select: Callable[[Prepared], Selection]) -> Outcome:
        def draw(ready: Prepared) -> Selection:
            prepared.append(ready)
            return select(ready)

        return outcome_of(release(draw))

    first = observe(lambda _: Selection(np.arange(k)))
    if not prepared:
        # Without a draw there is one outcome.
        return {first: (0.0, 0.0)}
    logs: dict[Outcome, tuple[float, float]] = {}
    for drawn, (log_probability, off) in _floats(prepared[0]).items():
        outcome = observe(partial(as_selection, drawn=drawn))
        before, error = logs.get(outcome, (-math.inf, 0.0))
        logs[outcome] = float(np.logaddexp(before, log_probability)), max(off, error) + (before > -math.inf) * 1e-14
    return logs


def _floats(prepared: Prepared) -> dict[tuple[int, ...], tuple[float, float]]:
    """Return the law as floats, each with a bound on its distance from the true log probability."""
    bits = _BITS
    while True:
        with precision(bits):
            exactly = law(prepared)
        # A probability that the precision cannot tell from zero has no logarithm yet.
        if all(log.is_finite() and log.rad() < _WIDEST for log in exactly.values()):
            middles = {ranks: float(log.mid()) for ranks, log in exactly.items()}
            return {ranks: (middles[ranks], _WIDEST + 2.0**-52 * abs(middles[ranks])) for ranks in exactly}
        bits *= 2


def outcome_of(release: Release) -> Outcome:
    """Return everything that the caller sees of a release."""
    order = release.chosen if release.order is None else tuple(release.order)
    shortfall = () if release.shortfall is None else (release.shortfall,)
    return tuple(release.items), order, *(release.counts or ()), *shortfall


def label_scores(scores: Scores) -> dict[str, int | Fraction]:
    """Return scores under the labels a, b, c, ..., listed in rank order; integral scores as integers."""
    plain = [score.numerator if score.denominator == 1 else score for score in scores]
    ranked = sorted(range(len(scores)), key=lambda item: (-scores[item], item))
    return {label(item): plain[item] for item in ranked}


def label(item: int) -> str:
    """Return the label of the item at a position: a, b, c, ..."""
    return chr(ord("a") + item)


def positions_of(labels: Iterable[str]) -> list[int]:
    """Return the positions of the items with some labels."""
    return [ord(item) - ord("a") for item in labels]


def log_ratios(here: Floats, there: Floats) -> Floats:
    """Return the absolute differences of log probabilities; infinite if only one outcome is possible."""
    return np.abs(signed_log_ratios(here, there))


def signed_log_ratios(here: Floats, there: Floats) -> Floats:
    """Return the differences of log probabilities; 0 if neither outcome is possible."""
    with np.errstate(invalid="ignore"):
        above = here - there
    return np.where(np.isnan(above), 0.0, above)


def shares(ratios: Floats, epsilon: Fraction) -> Floats:
    """Return log ratios as shares of epsilon; if epsilon is zero, any ratio is infinite."""
    if epsilon == 0:
        return np.where(ratios > _NOTHING, np.inf, 0.0)
    return ratios / float(epsilon)


def divergences(here: Floats, there: Floats, zcdp: Fraction) -> Floats:
    """Return the largest of D_a / (rho a) over the orders a and both directions, for each row of `there`."""
    worst = np.zeros(len(there))
    for order in ORDERS:
        for p, q in ((here, there), (there, here)):
            divergence = renyi(np.broadcast_to(p, there.shape), np.broadcast_to(q, there.shape), order)
            allowed = float(zcdp) * order
            share = divergence / allowed if allowed else np.where(divergence > _NOTHING, np.inf, 0.0)
            worst = np.maximum(worst, share)
    return worst


def renyi(p: Floats, q: Floats, order: float) -> Floats:
    """Return the Renyi divergence of an order between rows of log probabilities; Kullback-Leibler for order 1."""
    with np.errstate(invalid="ignore", over="ignore"):
        if order == 1.0:
            terms = np.exp(p) * (p - q)
            return np.asarray(np.where(p == -np.inf, 0.0, terms).sum(axis=1))
        terms = np.where(p == -np.inf, 0.0, np.exp(order * p + (1.0 - order) * q))
        return np.asarray(np.log(terms.sum(axis=1)) / (order - 1.0))


def find_departure(laws: Laws, scores: Scores) -> Departure | None:
    """Return the outcome of an input that departs most from the definition, None if all agree."""
    found, defined = laws.listed(scores), laws.defined(scores)
    worst: Departure | None = None
    for outcome in dict.fromkeys([*defined, *found]):
        pair = found.get(outcome, -math.inf), defined.get(outcome, -math.inf)
        if math.isfinite(pair[1]) and abs(pair[0] - pair[1]) <= TOLERANCE * max(1.0, abs(pair[1])):
            continue
        one = Departure(scores, laws.k, laws.epsilon, laws.family.adjacency, outcome, *pair)
        if worst is None or one.size > worst.size:
            worst = one
    return worst


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
    """Return the log probability of every outcome by definition; `limit` bounds the change of a score by one user.

    With `as_sets` outcomes have no order.
    """
    if k == len(scores) and not mechanism.releases_values:
        # A release of all items has no order.
        return {_observe_drawn(tuple(range(k)), False): 0.0}
    check_defined(mechanism)
    given = to_dict(mechanism), scores, k, epsilon, limit.down, limit.up, adjacency
    law = definition.law(*given, as_sets=as_sets, items=limit.items)
    return {_observe_drawn(positions, mechanism.ordered and not as_sets): log for positions, log in law.items()}


def _observe_drawn(drawn: tuple[Any, ...], ordered: bool) -> Outcome:
    # A mechanism that chooses between candidates names the chosen one, and has no order.
    chosen, positions = (drawn[0], drawn[1:]) if drawn and isinstance(drawn[0], str) else (None, drawn)
    return tuple(map(label, sorted(positions))), tuple(map(label, positions)) if ordered else chosen


def check_defined(mechanism: Mechanism) -> None:
    """Raise unless the definition knows the noise of a mechanism."""
    name = noise_of(mechanism).name
    if name not in definition.LOG_PDF:
        known = ", ".join(definition.LOG_PDF)
        raise InvalidValueError(f"noise must be one that the definition knows, {known}, not {quote(name)}")


def _probability(log: float) -> str:
    return f"{math.exp(log):.6g}" if log > -700.0 or log == -math.inf else f"exp({log:.6g})"


@dataclass(frozen=True)
class ExpectedLaw:
    """The law of an outcome by definition.

    Attributes
    ----------
    probabilities
        The probability of every outcome.
    sees_order
        True if outcomes have their order; the order of many items may have no single integral.
    """

    probabilities: dict[Outcome, float]
    sees_order: bool = True

    def fits(self, counts: Mapping[Any, int]) -> list[float]:
        """Return the p-values of counts under the law: outcome by outcome, and level by level."""
        seen: Counter[Any] = Counter()
        for outcome, times in counts.items():
            if not self.sees_order and isinstance(outcome, tuple) and len(outcome) > 1:
                outcome = (outcome[0], None, *outcome[2:])
            seen[outcome] += times
        levels: Counter[Any] = Counter()
        for outcome, times in seen.items():
            levels[self._level.get(outcome, -1)] += times
        chances: dict[int, float] = {}
        for outcome, level in self._level.items():
            chances[level] = chances.get(level, 0.0) + self.probabilities[outcome]
        return [fit(seen, self.probabilities), fit(levels, chances)]

    @cached_property
    def _level(self) -> dict[Outcome, int]:
        """Number the outcomes by levels of falling probability; equally likely outcomes share a level."""
        level, share, before = 0, 0.0, 0.0
        levels = {}
        for outcome, chance in sorted(self.probabilities.items(), key=lambda one: -one[1]):
            if share >= _SHARE and not math.isclose(chance, before, rel_tol=1e-9):
                level, share = level + 1, 0.0
            levels[outcome] = level
            share, before = share + chance, chance
        return levels


def expected_law(drawn_from: Input) -> ExpectedLaw:
    """Return the law of a release of some input by definition."""
    scores, k, mechanism = drawn_from.scores, drawn_from.k, drawn_from.mechanism
    promised = drawn_from.epsilon, drawn_from.sensitivity, drawn_from.adjacency
    as_sets = k < len(scores) and _has_sets_alone(mechanism, k)
    law = visible_law(mechanism, scores, k, *promised, as_sets=as_sets)
    found: dict[Outcome, float] = {outcome: math.exp(log) for outcome, log in law.items()}
    if drawn_from.shortfall is not None:
        cells = {items: drawn_from.cells(items) for items, *_ in found if items}
        # An empty list has no shortfall.
        found = {
            (*outcome, *cell): chance * part
            for outcome, chance in found.items()
            for cell, part in ([((n,), p) for n, p in cells[outcome[0]].items()] if outcome[0] else [((), 1.0)])
        }
    return ExpectedLaw(found, sees_order=not as_sets)


def count_outcomes(mechanism: Mechanism, d: int, k: int) -> int:
    """Return the number of outcomes to enumerate."""
    is_set = not mechanism.ordered or _has_sets_alone(mechanism, k)
    return math.comb(d, k) if is_set else math.perm(d, k)


def check_enumerable(drawn_from: Input) -> None:
    """Raise if there are more outcomes than can be enumerated."""
    mechanism, d, k = drawn_from.mechanism, len(drawn_from.scores), drawn_from.k
    outcomes = count_outcomes(mechanism, d, k) * (1 if drawn_from.shortfall is None else CELLS)
    if outcomes > MOST_OUTCOMES:
        raise InvalidValueError(
            f"k must leave at most {MOST_OUTCOMES:,} outcomes to enumerate, and {quote(k)} of {d} items by "
            f"{mechanism!r} have {outcomes:,}"
        )


def _has_sets_alone(mechanism: Mechanism, k: int) -> bool:
    return mechanism.longest_exact_order is not None and k > mechanism.longest_exact_order


def releases(drawn_from: Input, entropy: Entropy, forms: tuple[str, ...] = ("small",)) -> Iterator[tuple[str, Outcome]]:
    """Yield outcomes of releases without end, each with its form; batches of releases cycle through the forms.

    The first release of a batch comes from `top_k` itself, the others from the functions that it calls.
    """
    for form in cycle(forms):
        source = source_of(drawn_from, form)
        first = topk.top_k(
            source, drawn_from.k, drawn_from.epsilon, mechanism=drawn_from.mechanism, shortfall=drawn_from.shortfall,
            sensitivity=drawn_from.sensitivity, adjacency=drawn_from.adjacency, rng=entropy,
        )  # fmt: skip
        yield form, _observe_form(drawn_from, first, form)
        request, prepared = drawn_from.request(source), list[Prepared]()

        def draw(ready: Prepared, prepared: list[Prepared] = prepared) -> Selection:
            # All preparations of a batch are equal, and the first has its boxes already.
            prepared.append(ready)
            del prepared[1:]
            return prepared[0].select(entropy)

        randomness = replace(Randomness.of(entropy), select=draw)
        for _ in range(_BATCH - 1):
            yield form, _observe_form(drawn_from, request.draw(randomness), form)


def forms_of(drawn_from: Input) -> tuple[str, ...]:
    """Return the forms that keep the law: all, unless no score is low enough for filler items."""
    is_whole = all(score.denominator == 1 for score in drawn_from.scores)
    fits = is_whole and drawn_from.k < len(drawn_from.scores) and _gap(drawn_from, _SURE) < 2.0**60
    return _TURNS if fits else ("small",)


def _gap(drawn_from: Input, sure: float) -> float:
    """Return the gap below which items are drawn with probability below e^-sure; inf if there is none."""
    limit = drawn_from.sensitivity
    s = definition.scale(drawn_from.epsilon, limit.down, limit.up, drawn_from.adjacency)
    weight = drawn_from.mechanism.unit_cost(s, drawn_from.k)
    # At most LARGE^k sets or sequences hold such an item, and noise makes up for x with probability about e^-x.
    return (drawn_from.k * math.log(LARGE) + sure) / float(weight) if weight else math.inf


def source_of(drawn_from: Input, form: str) -> ArraySource:
    """Return the source of an input in some form."""
    if form == "small":
        return array_source(label_scores(drawn_from.scores))
    lowest, height = min(drawn_from.scores), math.ceil(_gap(drawn_from, _SURE))
    # Equal small scores are counted, and scores far apart are sorted into buckets.
    scores = -_SPREAD * np.arange(LARGE) if form == "buckets" else np.zeros(LARGE, np.int64)
    scores[_APART // 2 :: _APART] = height - math.ceil(_gap(drawn_from, _DECOYS_SURE))
    for i, score in enumerate(drawn_from.scores):
        scores[i * _APART] = height + int(score - lowest)
    made = array_source(scores)
    return HeldScores(made.scores, made.labels, made.unit, made.grid, made.typed)


class HeldScores(ArraySource):
    """Scores whose tally is made once for many draws."""

    @cached_property
    def _held(self) -> Tally:
        return super().tally()

    def tally(self) -> Tally:
        return self._held


def _observe_form(drawn_from: Input, release: Release, form: str) -> Outcome:
    """Return the outcome of a release, with the items of a large array under their labels.

    Values of a histogram are left out; `discreet.evidence.counts` verifies their law.
    """
    release = replace(release, counts=None)
    if form == "small":
        return drawn_from.observe(release)

    def name_items(positions: list[Any]) -> list[Any]:
        # An item that is not of the small input keeps its position, which shows as an impossible outcome.
        return [label(at // _APART) if at % _APART == 0 else at for at in positions]

    order = None if release.order is None else name_items(release.order)
    return drawn_from.observe(replace(release, items=name_items(release.items), order=order))
