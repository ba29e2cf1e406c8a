"""Probabilities of goals as a function of epsilon, with one formula for each `Form` of a mechanism.

Canonical mechanisms sum over classes (`canonical_odds`), races integrate over a threshold (`race_odds`), joint counts
choices by loss (`joint_odds`), Core averages over its candidates. Mechanisms without a formula are sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, nan, sqrt
from typing import Any, Protocol

import numpy as np

from discreet.analysis.canonical_odds import Rows
from discreet.analysis.goals import Hits, Wanted, draws_needed, is_reached, lower_bound, upper_bound
from discreet.analysis.joint_odds import Layers, is_counted
from discreet.analysis.race_odds import Chance, RaceOdds, compute_chance_of_first
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import as_entropy
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.tally import Tally, to_float
from discreet.release.guarantee import Guarantee

_FAR = 1e3
"""Values further than this from the k-th, which is at 0, are certainly released or certainly not."""

MOST_VALUES = 10**8
"""The most items whose values are held in one array: 0.8 GB of floats."""


@dataclass(frozen=True)
class Shares:
    """The probabilities of some goals, their error, and the confidence of that error if it was sampled."""

    values: dict[str, float]
    error: float
    confidence: Fraction | None = None


@dataclass(frozen=True)
class Precision:
    """The error wanted of computed probabilities, and the interval width and confidence of sampled ones."""

    goal: float = 1e-9
    width: Fraction = Fraction(1, 10)
    confidence: Fraction = Fraction(99, 100)


_USUAL = Precision()


class Meter(Protocol):
    """Compute the probabilities of some goals at an epsilon, to an error of about `goal`."""

    def __call__(self, epsilon: Fraction, goal: float | None = None) -> Shares: ...


@dataclass(frozen=True)
class _Question:
    """The goals asked of a mechanism on a tally, at any epsilon."""

    tally: Tally
    k: int
    mechanism: Mechanism
    wanted: Mapping[str, Wanted]
    precision: Precision
    standings: Ranks | None = None


_Formula = Callable[[Any, float], Shares]
"""From a prepared mechanism and the allowed error to the probabilities of some goals."""


def meter(
    tally: Tally,
    k: int,
    guarantee: Guarantee,
    wanted: Mapping[str, Wanted],
    precision: Precision = _USUAL,
    standings: Ranks | None = None,
) -> Meter:
    """Return a function from epsilon to the probabilities of the wanted goals, for one mechanism on a tally.

    A race can be judged by other scores than those it is drawn from: `standings` then holds, for each rank of the
    tally, the rank by those other scores.
    """
    mechanism, sensitivity = guarantee.mechanism, guarantee.sensitivity
    if standings is not None and mechanism.form is not Form.RACE:
        raise InvalidValueError(f"mechanism must be a race to be judged by other scores, not {mechanism!r}")
    # For a list that may be shorter than k, recall is the only goal with a meaning.
    asked = {name: one for name, one in wanted.items() if isinstance(one, Hits) or not mechanism.may_release_fewer}
    compute = _FORMULAS[mechanism.form](_Question(tally, k, mechanism, asked, precision, standings))

    def read(epsilon: Fraction, goal: float | None = None) -> Shares:
        found = compute(mechanism.prepare(tally, k, epsilon, sensitivity), precision.goal if goal is None else goal)
        return replace(found, values=dict.fromkeys(wanted, nan) | found.values)

    return read


def check_computed(mechanism: Mechanism) -> None:
    """Raise unless the probabilities of a mechanism are computed and not sampled."""
    if mechanism.form is Form.UNKNOWN:
        raise InvalidValueError(
            "mechanism must be one whose utility is computed: canonical or peeling with gumbel noise, one-shot or "
            f"joint, not {mechanism!r}"
        )


def check_always_k(mechanism: Mechanism) -> None:
    """Raise unless a mechanism always releases k items."""
    if mechanism.may_release_fewer:
        raise InvalidValueError(f"mechanism must be one that always releases k items, not {mechanism!r}")


def compute_set_chance_of_race(prepared: Any, ranks: Ranks) -> Chance:
    """Return the probability that a race releases exactly the items at some ranks."""
    distribution, values = prepared.noise.require_distribution(), _list_race_values(prepared)
    first = np.concatenate([values[ranks], np.delete(values, ranks)])
    return compute_chance_of_first(distribution, first, prepared.k, 1e-10)


def make_race_odds(prepared: Any, goal: float, standings: Ranks | None = None) -> RaceOdds:
    """Return the odds of a prepared race, to an error of about `goal` for each probability."""
    values = _list_race_values(prepared)
    return RaceOdds(prepared.noise.require_distribution(), values, prepared.k, goal, standings)


def _list_race_values(prepared: Any, unit_values: Floats | None = None) -> Floats:
    """Return the values of a race before noise, scaled from those of weight 1 where these are given."""
    d, weight = prepared.tally.d, prepared.weight
    if d > MOST_VALUES:
        raise InvalidValueError(
            f"scores must be of at most {MOST_VALUES} items for {prepared.noise.name} noise, not {d}"
        )
    if unit_values is not None and 2.0**-900 < to_float(weight) < 2.0**60:
        return np.clip(unit_values * to_float(weight), -_FAR, _FAR)
    values = oneshot.Prepared(prepared.tally, prepared.k, weight, prepared.noise).gain_float(np.arange(d))
    return np.clip(values, -_FAR, _FAR)


def _by_classes(question: _Question) -> _Formula:
    def compute(prepared: Any, goal: float) -> Shares:
        rows = Rows.of(prepared, question.wanted, goal)
        return Shares({name: rows.share(wanted) for name, wanted in question.wanted.items()}, rows.error)

    return compute


def _by_layers(question: _Question) -> _Formula:
    # Counts do not depend on epsilon, so `layers` keeps them from one call to the next.
    known = {name: one for name, one in question.wanted.items() if is_counted(question.mechanism, one)}
    layers = Layers.of(question.tally, question.k, question.mechanism, list(known.values()))

    def compute(prepared: Any, goal: float) -> Shares:
        if not known:
            return Shares(dict.fromkeys(question.wanted, nan), nan)
        shares, error = layers.on(prepared.tally).shares(to_float(prepared.rate), goal)
        return Shares(dict.fromkeys(question.wanted, nan) | dict(zip(known, shares, strict=True)), error)

    return compute


def _by_integration(question: _Question) -> _Formula:
    # The values of weight 1, which serve for every epsilon; None if floats do not reach them.
    units: list[Floats | None] = []

    def compute(prepared: Any, goal: float) -> Shares:
        if not units:
            plain = oneshot.Prepared(prepared.tally, prepared.k, Fraction(1), prepared.noise)
            ends = plain.gain_float(np.array([0, prepared.tally.d - 1]))
            is_small = prepared.tally.d <= MOST_VALUES and float(np.abs(ends).max()) < 2.0**900
            units.append(plain.gain_float(np.arange(prepared.tally.d)) if is_small else None)
        distribution, values = prepared.noise.require_distribution(), _list_race_values(prepared, units[0])
        odds = RaceOdds(distribution, values, prepared.k, 0.2 * goal, question.standings)
        chances = {wanted: odds.rate(wanted) for wanted in set(question.wanted.values())}
        shares = {name: chances[wanted].value for name, wanted in question.wanted.items()}
        return Shares(shares, max(chance.error for chance in chances.values()))

    return compute


def _by_candidates(question: _Question) -> _Formula:
    # The formula of each candidate serves for every epsilon.
    formulas: dict[int, _Formula] = {}

    def compute(prepared: Any, goal: float) -> Shares:
        chances, error = prepared.chances()
        values = dict.fromkeys(question.wanted, 0.0)
        for j, chance in enumerate(chances.tolist()):
            if chance < 0.1 * goal / len(chances):
                error += chance
            elif (size := prepared.size(j)) > 0:
                if j not in formulas:
                    mechanism = prepared.mechanism(j)
                    formulas[j] = _FORMULAS[mechanism.form](replace(question, k=size, mechanism=mechanism))
                found = formulas[j](prepared.candidate(j), goal)
                error += chance * found.error
                for name, one in question.wanted.items():
                    # A shorter list can reach only its part of an expected share of k, and at most `size` hits.
                    if isinstance(one, Hits) and one.least is None:
                        weight = size / question.k
                    else:
                        weight = float(isinstance(one, Hits) and size >= (one.least or 0))
                    values[name] += chance * found.values[name] * weight
        return Shares(values, error)

    return compute


def _by_draws(question: _Question) -> _Formula:
    wanted, precision = question.wanted, question.precision
    alpha = float(1 - precision.confidence) / (2 * len(wanted))
    draws = draws_needed(float(precision.width) / 2.0, alpha)

    def compute(prepared: Any, goal: float) -> Shares:
        entropy = as_entropy(None)
        ranks = [np.sort(prepared.draw(entropy)) for _ in range(draws)]
        shares, error = {}, 0.0
        for name, one in wanted.items():
            total = sum(is_reached(one, drawn, question.k) for drawn in ranks)
            shares[name] = share = total / draws
            if isinstance(one, Hits) and one.least is None:
                # Hoeffding's inequality for an average, Clopper and Pearson's interval for a count.
                error = max(error, sqrt(log(1.0 / alpha) / (2.0 * draws)))
            else:
                hits = round(total)
                error = max(error, upper_bound(hits, draws, alpha) - share, share - lower_bound(hits, draws, alpha))
        return Shares(shares, error, precision.confidence)

    return compute


_FORMULAS: dict[Form, Callable[[_Question], _Formula]] = {
    Form.CLASSES: _by_classes,
    Form.RACE: _by_integration,
    Form.LOSSES: _by_layers,
    Form.CANDIDATES: _by_candidates,
    Form.UNKNOWN: _by_draws,
}
