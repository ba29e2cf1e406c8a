"""Epsilon verified exactly on small inputs: what `top_k` shows, compared between all neighbours.

Every input of a family is compared with every neighbour it has, outcome by outcome, in both directions: the largest log
ratio of probabilities must not exceed epsilon, and no Renyi divergence what the stated zCDP allows. Every law on the
way is compared with that of the definition, and the pair that is known to come closest to epsilon is among the inputs.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.evidence.counts import CountTask, CountVerdict, ValueTask, ValueVerdict, count_tasks, value_tasks
from discreet.evidence.discovery import DiscoveryTask, DiscoveryVerdict, discovery_tasks
from discreet.evidence.groups import GroupTask, GroupVerdict, group_tasks
from discreet.evidence.neighbours import Family, Scores, Witness, best_witness, bound_users, families
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
"""One mechanism, several, or None for all of them."""

Vectors = Iterable[Sequence[Number]] | None
"""Inputs of one's own, or None for the built-in ones."""

_FEW = {3: (1, 3), 4: (2,), 5: (3,), 6: (3,)}
"""Which k to try for each number of items when time is short. All of three items are released without an order."""

_ITEMS = (1, 2)
"""How many items users touch at most, for a mechanism that goes by that."""


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
    """Verifies epsilon exactly: the law of what is released, for small inputs against all their neighbours.

    Each law is also compared with the one that the definition of the mechanism gives, computed by other means.

    Parameters
    ----------
    mechanism
        One mechanism or several; by default all of them, with every noise, and releases with counts, by group, with the
        values of a histogram, and of items that nobody listed.
    k
        How many items to release; by default every number that the law can be had for.
    epsilon
        The budget of each release; the pair known to come closest to epsilon has one of its own.
    scores
        Vectors of counts of users, of at most six items, in place of the built-in ones.
    adjacency
        "add-remove" or "swap"; by default both.
    deep
        Many more vectors, which takes hours for all mechanisms.
    jobs
        How many processes to use.

    Returns
    -------
    Verification
        A verdict for each mechanism; `holds` is True where nothing is above what is promised.

    Examples
    --------
    >>> import discreet
    >>> report = discreet.verify(discreet.Canonical(), k=2, scores=[[2, 1, 1, 0]], adjacency="add-remove")
    >>> report.holds, report.pairs
    (True, 30)
    """
    tasks = plan(mechanism, k, epsilon=epsilon, scores=scores, adjacency=adjacency, deep=deep)
    return as_report(examine_each(tasks, jobs))


def as_report(verdicts: Iterable[AnyVerdict]) -> Verification:
    """The verdicts as one report."""
    every = list(verdicts)
    return Verification(
        [verdict for verdict in every if isinstance(verdict, Verdict)],
        [verdict for verdict in every if isinstance(verdict, CountVerdict)],
        [verdict for verdict in every if isinstance(verdict, GroupVerdict)],
        [verdict for verdict in every if isinstance(verdict, ValueVerdict)],
        [verdict for verdict in every if isinstance(verdict, DiscoveryVerdict)],
    )


@dataclass(frozen=True)
class Trial:
    """Inputs, and what is released of them."""

    family: Family
    k: int
    epsilon: Fraction


@dataclass(frozen=True)
class Task:
    """One mechanism, and what it is to be verified on; `witness` is there where its pair is among the trials."""

    mechanism: Mechanism
    trials: tuple[Trial, ...]
    witness: Witness | None = None

    def examine(self) -> Verdict:
        """The verdict on one mechanism, over all the pairs of its trials."""
        found = [_compare_neighbours(self.mechanism, trial) for trial in self.trials]
        worst, worst_pair = max((one.worst for one in found), key=_figure)
        renyi, renyi_pair = max((one.renyi for one in found), key=_figure)
        departures = [one.departure for one in found if one.departure is not None]
        farthest = max(departures, key=lambda one: one.size, default=None)
        pairs = sum(one.pairs for one in found)
        return Verdict(self.mechanism, pairs, worst, worst_pair, renyi, renyi_pair, farthest, self.witness)


AnyTask = Task | CountTask | GroupTask | ValueTask | DiscoveryTask
AnyVerdict = Verdict | CountVerdict | GroupVerdict | ValueVerdict | DiscoveryVerdict


def verify_witness(mechanism: Mechanism, witness: Witness | None = None) -> Verdict:
    """The verdict on one mechanism by one pair of inputs alone: the one given, or the best that is known for it.

    `failures` of what is returned says what is broken, and by which check.
    """
    pair = best_witness(mechanism) if witness is None else witness
    if pair is None:
        raise InvalidValueError(f"witness must be given for {mechanism!r}, for which none is known")
    return Task(mechanism, (_trial(pair),), pair).examine()


def plan(
    mechanism: Mechanisms, k: int | None, *, epsilon: Number, scores: Vectors, adjacency: str | None, deep: bool
) -> list[AnyTask]:
    """What `verify` will do with these arguments, in pieces that can be done apart."""
    budget = positive(epsilon, "epsilon")
    if k is not None:
        k = whole_number(k, "k", 1)
    if adjacency is not None:
        check_adjacency(adjacency)
    chosen = families(deep) if scores is None else _own(scores)
    chosen = [family for family in chosen if adjacency in (None, family.adjacency)]
    tasks: list[AnyTask] = []
    for one in _mechanisms(mechanism):
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
            tasks.append(Task(one, (*trials, _trial(witness)), witness))
    everything = mechanism is None and scores is None and k is None
    if not everything:
        return tasks
    lists: list[AnyTask] = [*count_tasks(adjacency), *group_tasks(adjacency)]
    return [*tasks, *lists, *value_tasks(adjacency), *discovery_tasks(adjacency)]


def _trial(witness: Witness) -> Trial:
    return Trial(witness.family(), witness.k, witness.epsilon)


def examine_each(tasks: Sequence[AnyTask], jobs: int = 1) -> Iterator[AnyVerdict]:
    """The verdicts on some tasks as they are reached, in their order, by so many processes."""
    if jobs == 1 or len(tasks) == 1:
        yield from map(_examine, tasks)
        return
    with make_pool(jobs) as pool:
        yield from pool.map(_examine, tasks)


def _examine(task: AnyTask) -> AnyVerdict:
    return task.examine()


@dataclass(frozen=True)
class _Found:
    """How many pairs were compared, the worst of them in both ways, and what departs most from the definition."""

    pairs: int
    worst: tuple[float, Pair]
    renyi: tuple[float, Pair]
    departure: Departure | None


def _compare_neighbours(mechanism: Mechanism, trial: Trial) -> _Found:
    """What comparing every input of one family with all its neighbours finds."""
    laws = Laws(mechanism, trial.k, trial.epsilon, trial.family)
    promised = laws.guarantee
    pairs: list[tuple[Scores, Scores]] = []
    ratios: list[float] = []
    spreads: list[float] = []
    for scores in trial.family.scores:
        others = list(trial.family.neighbours(scores))
        table = laws.table([scores, *others])
        here, there = table.logs[0], table.logs[1:]
        apart = log_ratios(here, there).max(axis=1) + table.off[0] + table.off[1:]
        ratios += shares(apart, promised.epsilon).tolist()
        spreads += divergences(here, there, promised.zcdp).tolist()
        pairs += [(scores, other) for other in others]
    worst, renyi = max(range(len(pairs)), key=ratios.__getitem__), max(range(len(pairs)), key=spreads.__getitem__)
    inputs = dict.fromkeys(scores for pair in pairs for scores in pair)
    departures = [found for found in (find_departure(laws, scores) for scores in inputs) if found is not None]
    return _Found(
        len(pairs),
        (ratios[worst], laws.pair(*pairs[worst])),
        (spreads[renyi], laws.pair(*pairs[renyi])),
        max(departures, key=lambda one: one.size, default=None),
    )


def _figure(found: tuple[float, Pair]) -> float:
    return found[0]


def _mechanisms(given: Any) -> list[Mechanism]:
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
    """Whether something holds numbers, as a vector of scores or several of them do."""
    if isinstance(given, Mapping) or hasattr(given, "dtype"):
        return True
    first = given[0] if isinstance(given, list | tuple) and given else None
    return isinstance(first, numbers.Number) or (first is not given and _looks_like_scores(first))


def _sizes(mechanism: Mechanism, family: Family, k: int | None, deep: bool) -> tuple[int, ...]:
    """The k for which the law can be had: the order of many items may have no formula, but all have none."""
    longest = mechanism.longest_exact_order
    whole = None if mechanism.releases_values else family.d
    possible = [size for size in range(1, family.d + 1) if longest is None or size <= longest or size == whole]
    if k is not None:
        return (k,) if k in possible else ()
    if mechanism.needs_integrals and family.d > 4 and not (deep and family.d == 5):
        # Each law would be dozens of integrals.
        return ()
    return tuple(possible) if deep else tuple(size for size in _FEW[family.d] if size in possible)


def _own(scores: Any) -> list[Family]:
    try:
        vectors = tuple(tuple(exact(score, "scores") for score in vector) for vector in scores)
    except TypeError:
        raise InvalidTypeError(f"scores must be a list of lists of numbers, not {quote(scores)}") from None
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or not 2 <= min(lengths) <= 6:
        raise InvalidValueError("scores must be vectors of one length, from 2 to 6")
    return [Family(vectors, "add-remove"), Family(vectors, "swap")]
