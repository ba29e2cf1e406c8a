"""What a verification found, as values that print themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from discreet.evidence.neighbours import SHARP, Scores, Witness, best_witness
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.noise import noise_of
from discreet.text import align_columns

if TYPE_CHECKING:
    from discreet.evidence.counts import CountVerdict, ValueVerdict
    from discreet.evidence.discovery import DiscoveryVerdict
    from discreet.evidence.groups import GroupVerdict
    from discreet.evidence.visible_laws import Departure

SLACK = 1e-12
"""Some pairs reach epsilon exactly; bounds are certified to within this share of it."""

Outcome = tuple[Any, ...]
"""What the caller sees: the items as listed, the order or else which candidate was chosen, and the counts as listed."""


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
        seen = "" if self.outcome is None else f", seen: {format_outcome(self.outcome)}"
        public = f"k = {self.k}, {self.adjacency}, epsilon = {self.epsilon}"
        return f"{format_scores(self.scores)} and {format_scores(self.neighbour)}, {public}{seen}"


class Compared(Protocol):
    """What comparing the neighbours of one trial found."""

    @property
    def pairs(self) -> int: ...

    @property
    def worst(self) -> float: ...


class OverTrials:
    """What several trials found, taken together; a verdict has the trials in `found` and what broke in `failures`."""

    found: tuple[Compared, ...]
    failures: list[Failure]

    @property
    def pairs(self) -> int:
        """How many pairs of neighbouring inputs were compared."""
        return sum(one.pairs for one in self.found)

    @property
    def holds(self) -> bool:
        """Whether everything that is promised was found to be true."""
        return not self.failures

    @property
    def worst(self) -> float:
        """An upper bound on the largest log ratio, as a share of the whole epsilon."""
        return max(one.worst for one in self.found)


@dataclass(frozen=True)
class Failure:
    """A promise that was found broken.

    Attributes
    ----------
    check
        What found it: "epsilon", "zCDP" or "definition"; for counts "epsilon", "counts", "rate" or "noise",
        for groups "epsilon", "zCDP", "total" or "rate", and for items that nobody listed "delta", "people",
        "threshold", "chance", "total", "rate" or "drawn".
    what
        What was found, and where.
    """

    check: str
    what: str


class Judged(Protocol):
    """A row of a report: a verdict with the figures that its table shows."""

    headings: ClassVar[tuple[str, ...]]

    @property
    def pairs(self) -> int:
        """How many pairs of neighbouring inputs were compared."""

    @property
    def failures(self) -> list[Failure]:
        """All that was found broken."""

    def cells(self) -> tuple[str, ...]:
        """The row of the table, under the headings."""


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
    departure
        The outcome farthest from the probability that the definition gives it, None where all have it.
    witness
        The pair known to come closest to epsilon, where it was among those compared.
    """

    headings: ClassVar[tuple[str, ...]] = (
        *("mechanism", "noise", "gamma", "pairs"),
        *("reachable", "worst / epsilon", "Renyi / zCDP", "law", "verdict"),
    )

    mechanism: Mechanism
    pairs: int
    worst: float
    worst_pair: Pair
    renyi: float
    renyi_pair: Pair
    departure: Departure | None = None
    witness: Witness | None = None

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
        return not self.failures

    @property
    def failures(self) -> list[Failure]:
        """All that was found broken, and by which check."""
        found = []
        if not self.private:
            at = f"{share(self.worst)} of epsilon at {self.worst_pair}"
            found.append(Failure("epsilon", f"{self.mechanism!r} is not epsilon-DP: {at}"))
        if not self.concentrated:
            at = f"{share(self.renyi)} of it at {self.renyi_pair}"
            found.append(Failure("zCDP", f"{self.mechanism!r} does not have the zCDP that it states: {at}"))
        if self.departure is not None:
            found.append(Failure("definition", f"{self.mechanism!r} departs from its definition: {self.departure}"))
        return found

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        given = self.mechanism.parameters()
        noise = noise_of(self.mechanism).name
        gamma = given.get("gamma", "-") + (", ceil" if given.get("ceil") else "")
        figures = f"{self.pairs:,}", self._reachable(), share(self.worst), share(self.renyi)
        same = "same" if self.departure is None else "DIFFERS"
        return (self.mechanism.name, noise, gamma, *figures, same, verdict_word(self))

    def _reachable(self) -> str:
        if self.witness is None:
            return "-"
        return share(self.witness.share) + ("" if self.witness.is_sharp else " *")


@dataclass(frozen=True)
class Verification:
    """The verdicts on some mechanisms, and on counts, groups, values and unlisted items where all is verified.

    Attributes
    ----------
    verdicts
        One for each mechanism.
    counts
        One for each kind of release with counts.
    groups
        One for each kind of release by group.
    values
        One for each kind of release whose mechanism releases values.
    found
        One for each kind of release of items that nobody listed.
    """

    verdicts: list[Verdict]
    counts: list[CountVerdict] = field(default_factory=list)
    groups: list[GroupVerdict] = field(default_factory=list)
    values: list[ValueVerdict] = field(default_factory=list)
    found: list[DiscoveryVerdict] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        """How many pairs of neighbouring inputs were compared in all."""
        return sum(verdict.pairs for verdict in self._all())

    @property
    def holds(self) -> bool:
        """Whether every verdict is that the promise holds."""
        return not any(verdict.failures for verdict in self._all())

    def __str__(self) -> str:
        lines = _table(self.verdicts) if self.verdicts else []
        if any(verdict.witness and not verdict.witness.is_sharp for verdict in self.verdicts):
            lines.append(f"* no pair is known that reaches {SHARP}: a scale 5% off shows by the definition alone")
        if any(best_witness(verdict.mechanism) is None for verdict in self.verdicts):
            lines.append("- no pair has been searched for: how close to epsilon inputs can come is not known")
        for more in (self.counts, self.groups, self.values, self.found):
            lines += ["", *_table(more)] if more else []
        faults = [failure.what for verdict in self._all() for failure in verdict.failures]
        return "\n".join([*lines, f"{self.pairs:,} pairs of neighbouring inputs", *faults])

    def _all(self) -> list[Judged]:
        return [*self.verdicts, *self.counts, *self.groups, *self.values, *self.found]


def verdict_word(verdict: Judged) -> str:
    """How a verdict is spelt in a table."""
    return "FAILS" if verdict.failures else "holds"


def _table(verdicts: Sequence[Judged]) -> list[str]:
    return align_columns([verdicts[0].headings, *(verdict.cells() for verdict in verdicts)])


def share(number: float) -> str:
    """A share of what is allowed, as a report spells it."""
    return f"{number:.6f}"


def format_scores(scores: Scores) -> str:
    """Scores as a report spells them."""
    return f"({', '.join(str(score) for score in scores)})"


def format_outcome(outcome: Outcome) -> str:
    """What is seen, as a report spells it."""
    items, order = outcome[:2]
    if isinstance(order, str):
        return f"{order}, items {' '.join(map(str, items))}"
    return f"items {' '.join(map(str, items))}" + ("" if order is None else f", order {' '.join(map(str, order))}")
