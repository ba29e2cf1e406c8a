"""The results of a verification, as frozen values that print themselves."""

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
    from discreet.evidence.discovery import DiscoveryVerdict
    from discreet.evidence.groups import GroupVerdict
    from discreet.evidence.number_rows import CountVerdict, ShortfallVerdict, ValueVerdict
    from discreet.evidence.visible_laws import Departure

SLACK = 1e-12
"""Some pairs reach epsilon exactly. Bounds are certified to within this share of epsilon."""

Outcome = tuple[Any, ...]
"""The visible part of a release: the items as listed, the order or the chosen candidate, and the counts as listed."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring inputs, and the outcome with the largest ratio of probabilities."""

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
    """The result of comparing the neighbours of one trial."""

    @property
    def pairs(self) -> int: ...

    @property
    def worst(self) -> float: ...


class OverTrials:
    """The results of several trials together; a verdict has the trials in `found` and failed checks in `failures`."""

    found: tuple[Compared, ...]
    failures: list[Failure]

    @property
    def pairs(self) -> int:
        """The number of pairs of neighbouring inputs."""
        return sum(one.pairs for one in self.found)

    @property
    def holds(self) -> bool:
        """True if every check passed."""
        return not self.failures

    @property
    def worst(self) -> float:
        """An upper bound on the largest log ratio, as a share of the whole epsilon."""
        return max(one.worst for one in self.found)


@dataclass(frozen=True)
class Failure:
    """A failed check.

    Attributes
    ----------
    check
        The name of the check: "epsilon", "zCDP" or "definition"; for counts "epsilon", "counts", "rate" or "noise", for
        a shortfall "epsilon", "shortfall", "total", "rate", "definition" or "bounds", for groups "epsilon", "zCDP",
        "shortfall", "total", "rate" or "definition", and for discovered items "delta", "alone", "people", "sigma",
        "threshold", "chance", "total", "rate", "shortfall", "definition" or "drawn".
    what
        The finding, with the inputs that show it.
    """

    check: str
    what: str


class Judged(Protocol):
    """A row of a report: a verdict with the figures of its table."""

    headings: ClassVar[tuple[str, ...]]

    @property
    def pairs(self) -> int:
        """The number of pairs of neighbouring inputs."""

    @property
    def failures(self) -> list[Failure]:
        """The failed checks."""

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table, under the headings."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one mechanism.

    Attributes
    ----------
    mechanism
        The mechanism.
    pairs
        The number of pairs of neighbouring inputs.
    worst
        An upper bound on the largest log ratio of probabilities, as a share of epsilon.
    worst_pair
        The pair with the largest ratio.
    renyi
        The largest Renyi divergence, as a share of the bound by the stated zCDP.
    renyi_pair
        The pair with the largest divergence.
    departure
        The outcome farthest from its probability by definition, None if all agree.
    witness
        The pair known to come closest to epsilon, if it was among the inputs.
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
        """True if no ratio exceeds epsilon."""
        return self.worst <= 1.0 + SLACK

    @property
    def concentrated(self) -> bool:
        """True if no divergence exceeds the bound by the stated zCDP."""
        return self.renyi <= 1.0 + SLACK

    @property
    def holds(self) -> bool:
        """True if every check passed."""
        return not self.failures

    @property
    def failures(self) -> list[Failure]:
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
        given = self.mechanism.parameters()
        noise = noise_of(self.mechanism).name
        gamma = given.get("gamma", "-") + (", ceil" if given.get("ceil") else "")
        reachable = "-"
        if self.witness is not None:
            reachable = share(self.witness.share) + ("" if self.witness.is_sharp else " *")
        figures = f"{self.pairs:,}", reachable, share(self.worst), share(self.renyi)
        same = "same" if self.departure is None else "DIFFERS"
        return (self.mechanism.name, noise, gamma, *figures, same, verdict_word(self))


@dataclass(frozen=True)
class Verification:
    """The verdicts on some mechanisms; after `verify --all` also on counts, shortfalls, groups, values and discovery.

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
        One for each kind of release of discovered items.
    shortfalls
        One for each kind of release with a shortfall.
    """

    verdicts: list[Verdict]
    counts: list[CountVerdict] = field(default_factory=list)
    groups: list[GroupVerdict] = field(default_factory=list)
    values: list[ValueVerdict] = field(default_factory=list)
    found: list[DiscoveryVerdict] = field(default_factory=list)
    shortfalls: list[ShortfallVerdict] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        """The number of pairs of neighbouring inputs in all."""
        return sum(verdict.pairs for verdict in self._all())

    @property
    def holds(self) -> bool:
        """True if every verdict holds."""
        return not any(verdict.failures for verdict in self._all())

    def __str__(self) -> str:
        lines = _table(self.verdicts) if self.verdicts else []
        if any(verdict.witness and not verdict.witness.is_sharp for verdict in self.verdicts):
            lines.append(f"* no pair is known that reaches {SHARP}: a scale 5% off shows by the definition alone")
        if any(best_witness(verdict.mechanism) is None for verdict in self.verdicts):
            lines.append("- no pair has been searched for: how close to epsilon inputs can come is not known")
        for more in (self.counts, self.shortfalls, self.groups, self.values, self.found):
            lines += ["", *_table(more)] if more else []
        faults = [failure.what for verdict in self._all() for failure in verdict.failures]
        return "\n".join([*lines, f"{self.pairs:,} pairs of neighbouring inputs", *faults])

    def _all(self) -> list[Judged]:
        return [*self.verdicts, *self.counts, *self.shortfalls, *self.groups, *self.values, *self.found]


def verdict_word(verdict: Judged) -> str:
    """Return the last cell of the row of a verdict."""
    return "FAILS" if verdict.failures else "holds"


def _table(verdicts: Sequence[Judged]) -> list[str]:
    return align_columns([verdicts[0].headings, *(verdict.cells() for verdict in verdicts)])


def share(number: float) -> str:
    """Return the text of a share of a bound."""
    return f"{number:.6f}"


def format_scores(scores: Scores) -> str:
    """Return the text of a vector of scores."""
    return f"({', '.join(str(score) for score in scores)})"


def format_outcome(outcome: Outcome) -> str:
    """Return the text of an outcome."""
    items, order, *numbers = outcome
    if numbers and isinstance(numbers[-1], int):
        return f"{format_outcome((items, order))}, shortfall {numbers[-1]}"
    if isinstance(order, str):
        return f"{order}, items {' '.join(map(str, items))}"
    return f"items {' '.join(map(str, items))}" + ("" if order is None else f", order {' '.join(map(str, order))}")
