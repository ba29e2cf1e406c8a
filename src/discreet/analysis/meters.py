"""From epsilon to the probabilities of some goals: one formula for each form that a mechanism can have."""

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
from discreet.analysis.race_odds import RaceOdds, Shots
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import as_entropy
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.noise import Noise
from discreet.mechanisms.tally import Tally, to_float
from discreet.release.guarantee import Guarantee

FAR = 1e3
"""The k-th value is at 0: what is further from it than this is released, or is not, for certain."""


MOST_VALUES = 10**8


@dataclass(frozen=True)
class Shares:
    """The probabilities of some goals, what they may be off by, and how surely."""

    values: dict[str, float]
    error: float
    confidence: Fraction | None = None


@dataclass(frozen=True)
class Precision:
    """How exact probabilities must be: the error of what is computed, and the width and confidence of what is drawn."""

    goal: float = 1e-9
    width: Fraction = Fraction(1, 10)
    confidence: Fraction = Fraction(99, 100)


_USUAL = Precision()


class Meter(Protocol):
    """From epsilon to the probabilities of some goals, computed to about an error of `goal` where that is given."""

    def __call__(self, epsilon: Fraction, goal: float | None = None) -> Shares: ...


_Formula = Callable[[Any, float], Shares]
"""From a prepared mechanism, and the error that is allowed, to the probabilities of some goals."""


def meter(
    tally: Tally,
    k: int,
    guarantee: Guarantee,
    wanted: Mapping[str, Wanted],
    precision: Precision = _USUAL,
    standings: Ranks | None = None,
) -> Meter:
    """The probability, or the expected share, of what is wanted, for one mechanism on a tally, by epsilon.

    A race can be judged by other scores than those that it is drawn by: `standings` are then the ranks by those of the
    items at each rank of the tally.
    """
    mechanism, sensitivity = guarantee.mechanism, guarantee.sensitivity
    if standings is not None and mechanism.form is not Form.RACE:
        raise InvalidValueError(f"mechanism must be a race to be judged by other scores, not {mechanism!r}")
    # Of a list that may be shorter than k, only how much of the true one it has is a question.
    asked = {name: one for name, one in wanted.items() if isinstance(one, Hits) or not mechanism.may_release_fewer}
    compute = _FORMULAS[mechanism.form](_Question(tally, k, mechanism, asked, precision, standings))

    def read(epsilon: Fraction, goal: float | None = None) -> Shares:
        found = compute(mechanism.prepare(tally, k, epsilon, sensitivity), precision.goal if goal is None else goal)
        return replace(found, values=dict.fromkeys(wanted, nan) | found.values)

    return read


@dataclass(frozen=True)
class _Question:
    """What is wanted of a mechanism on a tally at any epsilon."""

    tally: Tally
    k: int
    mechanism: Mechanism
    wanted: Mapping[str, Wanted]
    precision: Precision
    standings: Ranks | None = None


def check_computed(mechanism: Mechanism) -> None:
    """Raises unless the probabilities of a mechanism are computed, not drawn."""
    if mechanism.form is Form.UNKNOWN:
        raise InvalidValueError(
            "mechanism must be one whose utility is computed: canonical or peeling with gumbel noise, one-shot or "
            f"joint, not {mechanism!r}"
        )


def check_always_k(mechanism: Mechanism) -> None:
    """Raises unless a mechanism always releases k items."""
    if mechanism.may_release_fewer:
        raise InvalidValueError(f"mechanism must be one that always releases k items, not {mechanism!r}")


@dataclass(frozen=True)
class Race:
    """A mechanism on a tally that releases the k largest of all noisy values."""

    tally: Tally
    k: int
    weight: Fraction
    noise: Noise
    unit_values: Floats | None = None

    @classmethod
    def of(cls, prepared: Any, unit_values: Floats | None = None) -> Race:
        """What is needed of a mechanism of the form of a race, which names its parts alike.

        `unit_values` are the values that it would have with the weight 1, where they are known and no float is too
        large for them.
        """
        return cls(prepared.tally, prepared.k, prepared.weight, prepared.noise, unit_values)

    def shots(self, goal: float, first: Ranks | None = None) -> Shots:
        """Its values, descending, or those at some ranks first."""
        return Shots(self.noise.require_distribution(), self._values(first), self.k, goal)

    def odds(self, goal: float, standings: Ranks | None = None) -> RaceOdds:
        """What tells how good its k largest values are, by their own order or by other ranks."""
        return RaceOdds(self.noise.require_distribution(), self._values(), self.k, goal, standings)

    def _values(self, first: Ranks | None = None) -> Floats:
        d = self.tally.d
        if d > MOST_VALUES:
            raise InvalidValueError(
                f"scores must be of at most {MOST_VALUES} items for {self.noise.name} noise, not {d}"
            )
        if self.unit_values is not None and 2.0**-900 < to_float(self.weight) < 2.0**60:
            return np.clip(self.unit_values * to_float(self.weight), -FAR, FAR)
        values = oneshot.Prepared(self.tally, self.k, self.weight, self.noise).gain_float(np.arange(d))
        if first is not None:
            values = np.concatenate([values[first], np.delete(values, first)])
        return np.clip(values, -FAR, FAR)


def _by_classes(question: _Question) -> _Formula:
    def compute(prepared: Any, goal: float) -> Shares:
        rows = Rows.of(prepared, question.wanted, goal)
        return Shares({name: rows.share(wanted) for name, wanted in question.wanted.items()}, rows.error)

    return compute


def _by_layers(question: _Question) -> _Formula:
    # What is counted for one epsilon serves for the next.
    known = {name: one for name, one in question.wanted.items() if is_counted(question.mechanism, one)}
    layers = Layers.of(question.tally, question.k, question.mechanism, list(known.values()))

    def compute(prepared: Any, goal: float) -> Shares:
        if not known:
            return Shares(dict.fromkeys(question.wanted, nan), nan)
        shares, error = layers.on(prepared.tally).shares(to_float(prepared.rate), goal)
        return Shares(dict.fromkeys(question.wanted, nan) | dict(zip(known, shares, strict=True)), error)

    return compute


def _by_integration(question: _Question) -> _Formula:
    units: list[Floats | None] = []

    def unit_values(prepared: Any) -> Floats | None:
        """The values with the weight 1, which serve for every epsilon; None where floats do not reach them."""
        if not units:
            plain = oneshot.Prepared(prepared.tally, prepared.k, Fraction(1), prepared.noise)
            ends = plain.gain_float(np.array([0, prepared.tally.d - 1]))
            small = prepared.tally.d <= MOST_VALUES and float(np.abs(ends).max()) < 2.0**900
            units.append(plain.gain_float(np.arange(prepared.tally.d)) if small else None)
        return units[0]

    def compute(prepared: Any, goal: float) -> Shares:
        odds = Race.of(prepared, unit_values(prepared)).odds(0.2 * goal, question.standings)
        chances = {wanted: odds.rate(wanted) for wanted in set(question.wanted.values())}
        shares = {name: chances[wanted].value for name, wanted in question.wanted.items()}
        return Shares(shares, max(chance.error for chance in chances.values()))

    return compute


def _by_candidates(question: _Question) -> _Formula:
    formulas: dict[int, _Formula] = {}

    def formula_of(prepared: Any, j: int) -> _Formula:
        """What computes the goals of a candidate, which serves for the next epsilon too."""
        if j not in formulas:
            mechanism = prepared.mechanism(j)
            formulas[j] = _FORMULAS[mechanism.form](replace(question, k=prepared.size(j), mechanism=mechanism))
        return formulas[j]

    def compute(prepared: Any, goal: float) -> Shares:
        chances, error = prepared.chances()
        values = dict.fromkeys(question.wanted, 0.0)
        for j, chance in enumerate(chances.tolist()):
            if chance < 0.1 * goal / len(chances):
                error += chance
            elif (size := prepared.size(j)) > 0:
                found = formula_of(prepared, j)(prepared.candidate(j), goal)
                error += chance * found.error
                for name, one in question.wanted.items():
                    values[name] += chance * found.values[name] * _weigh_shorter(one, size, question.k)
        return Shares(values, error)

    return compute


def _weigh_shorter(wanted: Wanted, size: int, k: int) -> float:
    """What a list of fewer items counts for, where it is asked for a share of k: those that it lacks are not right."""
    if isinstance(wanted, Hits) and wanted.least is None:
        return size / k
    return float(isinstance(wanted, Hits) and size >= (wanted.least or 0))


def _by_draws(question: _Question) -> _Formula:
    wanted, precision = question.wanted, question.precision
    alpha = float(1 - precision.confidence) / (2 * len(wanted))
    draws = draws_needed(float(precision.width) / 2.0, alpha)

    def compute(prepared: Any, goal: float) -> Shares:
        entropy = as_entropy(None)
        ranks = [np.sort(prepared.draw(entropy)) for _ in range(draws)]
        sums = {name: sum(is_reached(one, drawn, question.k) for drawn in ranks) for name, one in wanted.items()}
        shares = {name: total / draws for name, total in sums.items()}
        error = max(_half_width(one, sums[name], draws, alpha) for name, one in wanted.items())
        return Shares(shares, error, precision.confidence)

    return compute


def _half_width(wanted: Wanted, total: float, draws: int, alpha: float) -> float:
    """What an average over draws may be off by: by Clopper and Pearson where it counts, else by Hoeffding."""
    if isinstance(wanted, Hits) and wanted.least is None:
        return sqrt(log(1.0 / alpha) / (2.0 * draws))
    hits, share = round(total), total / draws
    return max(upper_bound(hits, draws, alpha) - share, share - lower_bound(hits, draws, alpha))


_FORMULAS: dict[Form, Callable[[_Question], _Formula]] = {
    Form.CLASSES: _by_classes,
    Form.RACE: _by_integration,
    Form.LOSSES: _by_layers,
    Form.CANDIDATES: _by_candidates,
    Form.UNKNOWN: _by_draws,
}
