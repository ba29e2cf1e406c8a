"""Verify epsilon exactly on small inputs: compare the laws of what `top_k` shows between all neighbours.

Every input of a family is compared with every neighbour, outcome by outcome, in both directions. The largest log ratio
of probabilities must not exceed epsilon, and no Renyi divergence the bound by the stated zCDP. Every law must agree
with the definition, and the pair known to come closest to epsilon is among the inputs.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter, methodcaller
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.evidence.discovery import DiscoveryTask, DiscoveryVerdict, discovery_tasks
from discreet.evidence.discovery_choice import choice_tasks
from discreet.evidence.groups import GroupTask, GroupVerdict, group_tasks
from discreet.evidence.neighbours import Family, Scores, Witness, best_witness, bound_users, families
from discreet.evidence.number_rows import (
    CountVerdict,
    NumberTask,
    NumberVerdict,
    ShortfallVerdict,
    ValueVerdict,
    count_tasks,
    shortfall_tasks,
    value_tasks,
)
from discreet.evidence.report import Pair, Verdict, Verification
from discreet.evidence.visible_laws import (
    Departure,
    Laws,
    check_defined,
    divergences,
    find_departure,
    log_ratios,
    shares,
)
from discreet.jobs import make_pool
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import all_variants, check_mechanism
from discreet.privacy import Number, check_adjacency, exact, positive, whole_number

Mechanisms = Mechanism | Iterable[Mechanism] | None
"""One mechanism, several, or None for all."""

Vectors = Iterable[Sequence[Number]] | None
"""Inputs of the caller, or None for the built-in ones."""

_FEW = {3: (1, 3), 4: (2,), 5: (3,), 6: (3,)}
"""The k to try for each number of items unless `deep`. A release of all three items has no order."""

_ITEMS = (1, 2)
"""The bounds on the items of a user, for a mechanism that needs one."""


@dataclass(frozen=True)
class _Compared:
    """The number of pairs, the worst pair by ratio and by divergence, and the largest departure from the definition."""

    pairs: int
    worst: tuple[float, Pair]
    renyi: tuple[float, Pair]
    departure: Departure | None


@dataclass(frozen=True)
class Trial:
    """Inputs, and the terms of their releases."""

    family: Family
    k: int
    epsilon: Fraction

    @classmethod
    def of_witness(cls, witness: Witness) -> Trial:
        """Return the trial on the pair of a witness."""
        return cls(witness.family(), witness.k, witness.epsilon)

    def compare(self, mechanism: Mechanism) -> _Compared:
        """Compare every input with all its neighbours, and every law with the definition."""
        laws = Laws(mechanism, self.k, self.epsilon, self.family)
        promised = laws.guarantee
        pairs: list[tuple[Scores, Scores]] = []
        ratios: list[float] = []
        spreads: list[float] = []
        for scores in self.family.scores:
            others = list(self.family.neighbours(scores))
            table = laws.table([scores, *others])
            here, there = table.logs[0], table.logs[1:]
            apart = log_ratios(here, there).max(axis=1) + table.off[0] + table.off[1:]
            ratios += shares(apart, promised.epsilon).tolist()
            spreads += divergences(here, there, promised.zcdp).tolist()
            pairs += [(scores, other) for other in others]
        worst, renyi = max(range(len(pairs)), key=ratios.__getitem__), max(range(len(pairs)), key=spreads.__getitem__)
        inputs = dict.fromkeys(scores for pair in pairs for scores in pair)
        departures = [found for found in (find_departure(laws, scores) for scores in inputs) if found is not None]
        return _Compared(
            len(pairs),
            (ratios[worst], laws.pair(*pairs[worst])),
            (spreads[renyi], laws.pair(*pairs[renyi])),
            max(departures, key=lambda one: one.size, default=None),
        )


@dataclass(frozen=True)
class Task:
    """One mechanism and its trials; `witness` is set if its pair is among them."""

    mechanism: Mechanism
    trials: tuple[Trial, ...]
    witness: Witness | None = None

    def examine(self) -> Verdict:
        """Compare the neighbours of all trials and return the verdict."""
        found = [trial.compare(self.mechanism) for trial in self.trials]
        worst, worst_pair = max((one.worst for one in found), key=itemgetter(0))
        renyi, renyi_pair = max((one.renyi for one in found), key=itemgetter(0))
        departures = [one.departure for one in found if one.departure is not None]
        farthest = max(departures, key=lambda one: one.size, default=None)
        pairs = sum(one.pairs for one in found)
        return Verdict(self.mechanism, pairs, worst, worst_pair, renyi, renyi_pair, farthest, self.witness)


AnyTask = Task | NumberTask | GroupTask | DiscoveryTask
AnyVerdict = Verdict | NumberVerdict | GroupVerdict | DiscoveryVerdict


def verify(
    mechanism: Mechanisms = None,
    k: int | None = None,
    *,
    epsilon: Number = 1,
    scores: Vectors = None,
    adjacency: str | None = None,
    deep: bool = False,
    jobs: int = 1,
) -> Verification:
    """Verify epsilon exactly: compute the law of a release for small inputs and all their neighbours.

    Each law is also compared with the one that the definition of the mechanism gives, computed by other means.

    Parameters
    ----------
    mechanism
        One mechanism or several; by default all of them, with every noise, and releases with counts, with a shortfall,
        by group, with the values of a histogram, and of discovered items.
    k
        The number of items to release; by default every number whose law can be computed.
    epsilon
        The budget of each release; the pair known to come closest to epsilon has its own.
    scores
        Vectors of counts of users, of at most six items, in place of the built-in ones.
    adjacency
        "add-remove" or "swap"; by default both.
    deep
        Verify many more vectors, which takes hours for all mechanisms.
    jobs
        The number of processes.

    Returns
    -------
    Verification
        A verdict for each mechanism; `holds` is True if every check passed.

    Examples
    --------
    >>> import discreet
    >>> report = discreet.verify(discreet.Canonical(), k=2, scores=[[2, 1, 1, 0]], adjacency="add-remove")
    >>> report.holds, report.pairs
    (True, 30)
    """
    tasks = plan(mechanism, k, epsilon=epsilon, scores=scores, adjacency=adjacency, deep=deep)
    return as_report(examine_each(tasks, jobs))


def verify_witness(mechanism: Mechanism, witness: Witness | None = None) -> Verdict:
    """Verify one mechanism on one pair of inputs: the one given, or the best known for it.

    The `failures` of the verdict name the failed checks.
    """
    pair = best_witness(mechanism) if witness is None else witness
    if pair is None:
        raise InvalidValueError(f"witness must be given for {mechanism!r}, for which none is known")
    return Task(mechanism, (Trial.of_witness(pair),), pair).examine()


def plan(
    mechanism: Mechanisms, k: int | None, *, epsilon: Number, scores: Vectors, adjacency: str | None, deep: bool
) -> list[AnyTask]:
    """Return the tasks of `verify` for these arguments; each can be examined in its own process."""
    budget = positive(epsilon, "epsilon")
    if k is not None:
        k = whole_number(k, "k", 1)
    if adjacency is not None:
        check_adjacency(adjacency)
    chosen = families(deep) if scores is None else _parse_families(scores)
    chosen = [family for family in chosen if adjacency in (None, family.adjacency)]
    tasks: list[AnyTask] = []
    for one in _parse_mechanisms(mechanism):
        check_defined(one)
        bounded = bound_users(one, chosen, _ITEMS)
        trials = [Trial(family, size, budget) for family in bounded for size in _sizes(one, family, k, deep)]
        if not trials:
            limit = max(size for family in bounded for size in _sizes(one, family, None, True))
            raise InvalidValueError(f"k must be from 1 to {limit} for {one!r} on these scores, not {quote(k)}")
        witness = best_witness(one) if scores is None else None
        if witness is None or k not in (None, witness.k) or adjacency not in (None, witness.family().adjacency):
            tasks.append(Task(one, tuple(trials)))
        else:
            tasks.append(Task(one, (*trials, Trial.of_witness(witness)), witness))
    if mechanism is None and scores is None and k is None:
        tasks += [*count_tasks(adjacency), *shortfall_tasks(adjacency), *group_tasks(adjacency)]
        tasks += [*value_tasks(adjacency), *discovery_tasks(adjacency), *choice_tasks(adjacency)]
    return tasks


def examine_each(tasks: Sequence[AnyTask], jobs: int = 1) -> Iterator[AnyVerdict]:
    """Yield the verdicts on some tasks in their order, computed by `jobs` processes."""
    examine = methodcaller("examine")
    if jobs == 1 or len(tasks) == 1:
        yield from map(examine, tasks)
        return
    with make_pool(jobs) as pool:
        yield from pool.map(examine, tasks)


def as_report(verdicts: Iterable[AnyVerdict]) -> Verification:
    """Return one report of all verdicts."""
    every = list(verdicts)
    return Verification(
        [verdict for verdict in every if isinstance(verdict, Verdict)],
        [verdict for verdict in every if isinstance(verdict, CountVerdict)],
        [verdict for verdict in every if isinstance(verdict, GroupVerdict)],
        [verdict for verdict in every if isinstance(verdict, ValueVerdict)],
        [verdict for verdict in every if isinstance(verdict, DiscoveryVerdict)],
        [verdict for verdict in every if isinstance(verdict, ShortfallVerdict)],
    )


def _parse_mechanisms(given: Any) -> list[Mechanism]:
    if given is None:
        return all_variants()
    if _looks_like_scores(given):
        raise InvalidTypeError(
            "mechanism must come before k, and scores are named, because verify has its own: "
            "verify(discreet.Canonical(), k=2, scores=[[3, 2, 0]])"
        )
    if isinstance(given, list | tuple):
        if not given:
            raise InvalidValueError("mechanism must be one mechanism or several, not an empty list")
        return [check_mechanism(one) for one in given]
    return [check_mechanism(given)]


def _looks_like_scores(given: Any) -> bool:
    """Return True for a vector of numbers, or for several."""
    if isinstance(given, Mapping) or hasattr(given, "dtype"):
        return True
    first = given[0] if isinstance(given, list | tuple) and given else None
    return isinstance(first, numbers.Number) or (first is not given and _looks_like_scores(first))


def _parse_families(scores: Any) -> list[Family]:
    try:
        vectors = tuple(tuple(exact(score, "scores") for score in vector) for vector in scores)
    except TypeError:
        raise InvalidTypeError(f"scores must be a list of lists of numbers, not {quote(scores)}") from None
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or not 2 <= min(lengths) <= 6:
        raise InvalidValueError("scores must be vectors of one length, from 2 to 6")
    return [Family(vectors, "add-remove"), Family(vectors, "swap")]


def _sizes(mechanism: Mechanism, family: Family, k: int | None, deep: bool) -> tuple[int, ...]:
    """Return each k whose law can be computed; a long order has no formula, but all items need no order."""
    longest = mechanism.longest_exact_order
    whole = None if mechanism.releases_values else family.d
    possible = [size for size in range(1, family.d + 1) if longest is None or size <= longest or size == whole]
    if k is not None:
        return (k,) if k in possible else ()
    if mechanism.needs_integrals and family.d > 4 and not (deep and family.d == 5):
        # Each law would take dozens of integrals.
        return ()
    return tuple(possible) if deep else tuple(size for size in _FEW[family.d] if size in possible)
