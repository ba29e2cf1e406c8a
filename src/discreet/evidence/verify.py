"""Epsilon verified exactly on small inputs: what `top_k` shows, compared between all neighbours.

Every input of a family is compared with every neighbour it has, outcome by outcome, in both directions: the largest log
ratio of probabilities must not exceed epsilon, and no Renyi divergence what the stated zCDP allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.evidence.divergence import divergences, log_ratios, shares
from discreet.evidence.neighbours import Family, Scores, families
from discreet.evidence.report import Pair, Verdict, Verification
from discreet.evidence.seen import Laws
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.peeling import Peeling
from discreet.mechanisms.registry import check_mechanism
from discreet.noise import NOISES
from discreet.privacy import Number, check_adjacency, exact, positive

GAMMAS = ("0", "1/3", "1/2", "3/4", "1")

Mechanisms = Mechanism | Iterable[Mechanism] | None
"""One mechanism, several, or None for all of them."""

Vectors = Iterable[Sequence[Number]] | None
"""Inputs of one's own, or None for the built-in ones."""

_FEW = {3: (1, 3), 4: (2,), 5: (3,), 6: (3,)}
"""Which k to try for each number of items when time is short. All of three items are released without an order."""


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

    Parameters
    ----------
    mechanism
        One mechanism or several; by default all of them, with every noise.
    k
        How many items to release; by default every number that the law can be had for.
    epsilon
        The budget of each release.
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
    return Verification(list(each_examined(tasks, jobs)))


@dataclass(frozen=True)
class Task:
    """One mechanism, and what it is to be verified on."""

    mechanism: Mechanism
    epsilon: Fraction
    families: tuple[tuple[Family, tuple[int, ...]], ...]


def plan(
    mechanism: Mechanisms, k: int | None, *, epsilon: Number, scores: Vectors, adjacency: str | None, deep: bool
) -> list[Task]:
    """What `verify` will do with these arguments, in pieces that can be done apart."""
    budget = positive(epsilon, "epsilon")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise InvalidValueError(f"k must be a whole number from 1, not {shown(k)}")
    if adjacency is not None:
        check_adjacency(adjacency)
    chosen = families(deep) if scores is None else _own(scores)
    chosen = [family for family in chosen if adjacency in (None, family.adjacency)]
    tasks = []
    for one in _mechanisms(mechanism):
        work = tuple((family, _sizes(one, family, k, deep)) for family in chosen)
        if not any(sizes for _, sizes in work):
            limit = max(size for family in chosen for size in _sizes(one, family, None, True))
            raise InvalidValueError(f"k must be from 1 to {limit} for {one!r} on these scores, not {shown(k)}")
        tasks.append(Task(one, budget, tuple((family, sizes) for family, sizes in work if sizes)))
    return tasks


def all_mechanisms() -> list[Mechanism]:
    """Every mechanism with every noise, and canonical with several gammas."""
    made: list[Mechanism] = [Canonical(gamma, noise) for gamma in GAMMAS for noise in NOISES]
    made += [Canonical(noise=noise, ceil=True) for noise in NOISES]
    made += [OneShot(noise) for noise in NOISES]
    made += [Peeling(noise) for noise in NOISES]
    return [*made, Joint()]


def examined(task: Task) -> Verdict:
    """The verdict on one mechanism, over all the pairs of its families."""
    found = [_compared(task, family, k) for family, sizes in task.families for k in sizes]
    worst, worst_pair = max((one.worst for one in found), key=_figure)
    renyi, renyi_pair = max((one.renyi for one in found), key=_figure)
    return Verdict(task.mechanism, sum(one.pairs for one in found), worst, worst_pair, renyi, renyi_pair)


def each_examined(tasks: list[Task], jobs: int = 1) -> Iterator[Verdict]:
    """The verdicts on some tasks as they are reached, in their order, by so many processes."""
    if jobs == 1 or len(tasks) == 1:
        yield from map(examined, tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(examined, tasks)


@dataclass(frozen=True)
class _Found:
    """How many pairs were compared, and the worst of them by log ratio and by Renyi divergence."""

    pairs: int
    worst: tuple[float, Pair]
    renyi: tuple[float, Pair]


def _compared(task: Task, family: Family, k: int) -> _Found:
    """What comparing every input of one family with all its neighbours finds."""
    laws = Laws(task.mechanism, k, task.epsilon, family)
    promised = laws.guarantee
    pairs: list[tuple[Scores, Scores]] = []
    ratios: list[float] = []
    spreads: list[float] = []
    for scores in family.scores:
        others = list(family.neighbours(scores))
        table = laws.table([scores, *others])
        here, there = table.logs[0], table.logs[1:]
        apart = log_ratios(here, there).max(axis=1) + table.off[0] + table.off[1:]
        ratios += shares(apart, promised.epsilon).tolist()
        spreads += divergences(here, there, promised.zcdp).tolist()
        pairs += [(scores, other) for other in others]
    worst, renyi = max(range(len(pairs)), key=ratios.__getitem__), max(range(len(pairs)), key=spreads.__getitem__)
    return _Found(len(pairs), (ratios[worst], laws.pair(*pairs[worst])), (spreads[renyi], laws.pair(*pairs[renyi])))


def _figure(found: tuple[float, Pair]) -> float:
    return found[0]


def _mechanisms(given: Any) -> list[Mechanism]:
    if given is None:
        return all_mechanisms()
    if isinstance(given, list | tuple):
        if not given:
            raise InvalidValueError("mechanism must be one mechanism or several, not an empty list")
        return [check_mechanism(one) for one in given]
    return [check_mechanism(given)]


def _sizes(mechanism: Mechanism, family: Family, k: int | None, deep: bool) -> tuple[int, ...]:
    """The k for which the law can be had: the order of one-shot is integrated for two items at most."""
    integrated = getattr(mechanism, "noise", "gumbel") != "gumbel"
    possible = list(range(1, family.d + 1))
    if integrated and isinstance(mechanism, OneShot):
        possible = sorted({1, 2, family.d})
    if k is not None:
        return (k,) if k in possible else ()
    if integrated and family.d > 4 and not (deep and family.d == 5):
        # Each law would be dozens of integrals.
        return ()
    return tuple(possible) if deep else _FEW[family.d]


def _own(scores: Any) -> list[Family]:
    try:
        vectors = tuple(tuple(exact(score, "scores") for score in vector) for vector in scores)
    except TypeError:
        raise InvalidTypeError(f"scores must be a list of lists of numbers, not {shown(scores)}") from None
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or not 2 <= min(lengths) <= 6:
        raise InvalidValueError("scores must be vectors of one length, from 2 to 6")
    return [Family(vectors, "add-remove"), Family(vectors, "swap")]
