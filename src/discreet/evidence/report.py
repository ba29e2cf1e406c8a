"""What a verification found, as values that print themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.evidence.neighbours import Scores
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical

SLACK = 1e-12
"""Some pairs reach epsilon exactly; bounds are certified to within this share of it."""

Outcome = tuple[Any, ...]
"""What the caller sees: the items as listed, the order, and the counts as listed where there are some."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring inputs, and the outcome that tells them apart best."""

    scores: Scores
    neighbour: Scores
    k: int
    epsilon: Fraction
    adjacency: str
    outcome: Outcome | None = None

    def __str__(self) -> str:
        seen = "" if self.outcome is None else f", seen: {_spelt(self.outcome)}"
        return f"{listed(self.scores)} and {listed(self.neighbour)}, k = {self.k}, {self.adjacency}{seen}"


@dataclass(frozen=True)
class Verdict:
    """What was found for one mechanism.

    Attributes
    ----------
    mechanism
        The mechanism.
    pairs
        How many pairs of neighbouring inputs were compared.
    worst
        An upper bound on the largest log ratio of probabilities found, as a share of epsilon.
    worst_pair
        Where it was found.
    renyi
        The largest Renyi divergence found, as a share of what the stated zCDP allows.
    renyi_pair
        Where that was found.
    """

    mechanism: Mechanism
    pairs: int
    worst: float
    worst_pair: Pair
    renyi: float
    renyi_pair: Pair

    @property
    def private(self) -> bool:
        """Whether no ratio is above epsilon."""
        return self.worst <= 1.0 + SLACK

    @property
    def concentrated(self) -> bool:
        """Whether no divergence is above what zCDP allows."""
        return self.renyi <= 1.0 + SLACK

    @property
    def holds(self) -> bool:
        """Whether everything that is promised was found to be true."""
        return self.private and self.concentrated


@dataclass(frozen=True)
class Verification:
    """The verdicts on some mechanisms.

    Attributes
    ----------
    verdicts
        One for each mechanism.
    """

    verdicts: list[Verdict]

    @property
    def pairs(self) -> int:
        """How many pairs of neighbouring inputs were compared in all."""
        return sum(verdict.pairs for verdict in self.verdicts)

    @property
    def holds(self) -> bool:
        """Whether every verdict is that the promise holds."""
        return all(verdict.holds for verdict in self.verdicts)

    def __str__(self) -> str:
        rows = [("mechanism", "noise", "gamma", "pairs", "worst / epsilon", "Renyi / zCDP", "verdict")]
        for verdict in self.verdicts:
            noise, gamma = getattr(verdict.mechanism, "noise", "gumbel"), _gamma(verdict.mechanism)
            figures = f"{verdict.pairs:,}", _share(verdict.worst), _share(verdict.renyi)
            rows.append((verdict.mechanism.name, noise, gamma, *figures, "holds" if verdict.holds else "FAILS"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join([*lines, f"{self.pairs:,} pairs of neighbouring inputs", *self._faults()])

    def _faults(self) -> Iterator[str]:
        for verdict in self.verdicts:
            if not verdict.private:
                at = f"{_share(verdict.worst)} of epsilon at {verdict.worst_pair}"
                yield f"{verdict.mechanism!r} is not epsilon-DP: {at}"
            if not verdict.concentrated:
                at = f"{_share(verdict.renyi)} of it at {verdict.renyi_pair}"
                yield f"{verdict.mechanism!r} does not have the zCDP that it states: {at}"


def _gamma(mechanism: Mechanism) -> str:
    if not isinstance(mechanism, Canonical):
        return "-"
    return f"{mechanism.gamma}{', ceil' if mechanism.ceil else ''}"


def _share(number: float) -> str:
    return f"{number:.6f}"


def listed(scores: Scores) -> str:
    """Scores as a reader sees them."""
    return f"({', '.join(str(score) for score in scores)})"


def _spelt(outcome: Outcome) -> str:
    items, order = outcome[:2]
    return f"items {' '.join(map(str, items))}" + ("" if order is None else f", order {' '.join(map(str, order))}")
