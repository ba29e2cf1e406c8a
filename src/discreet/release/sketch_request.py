"""Release noisy scores at a few public ranks: the shape of the score curve, for planning where no scores are public."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.mechanisms.histogram import DiscreteLaplace
from discreet.privacy import Number, Sensitivity, other_readings, positive, positive_exact, whole_number
from discreet.release.counts import CountMechanism, to_score
from discreet.release.guarantee import Guarantee
from discreet.release.request import (
    Randomness,
    Request,
    Workload,
    check_source_adjacency,
    find_items_per_user,
    find_sensitivity,
)
from discreet.release.sketch import MOST_FOUND, MOST_STEPS, Sketch, make_sketch_noise
from discreet.release.topk import Padding, deliver_release, plan_charge
from discreet.sources.base import AnySource, Source, refuse_curve
from discreet.sources.discovered import Discovered, UnlistedGroups, UnlistedSource
from discreet.sources.scores import as_source

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


_MOST_RANKS = 1000
"""The largest number of ranks: the noise of each grows with their number, and a curve needs some dozens."""

_LARGEST_NOISE = 2**40
"""The largest scale of the noise in steps: a curve with more noise is of no use for planning."""

_LAST_BY_DEFAULT = 1000
"""The last of the default ranks under partition selection, enough for a k up to 100."""

_LAST_DECADE = 7
"""The default ranks are 1, 2 and 5 times the powers of ten below 10^7, far beyond any usual k."""


@dataclass(frozen=True, eq=False, repr=False)
class SketchRequest:
    """A request for a sketch; the scores stay unread in the source.

    Attributes
    ----------
    source
        The source of the scores.
    ranks
        The ranks, counted from 1.
    guarantee
        The guarantee of the sketch.
    sensitivity
        The sensitivity of adding one user.
    noise
        The mechanism that adds the noise.
    max_items_per_user
        The contribution bound in items; None for unbounded.
    """

    source: Source | UnlistedSource
    ranks: tuple[int, ...]
    guarantee: Guarantee
    sensitivity: Sensitivity
    noise: CountMechanism
    max_items_per_user: int | None
    groups: ClassVar[None] = None
    requests: ClassVar[tuple[Request, ...]] = ()

    @property
    def k(self) -> int:
        """The number of ranks."""
        return len(self.ranks)

    @property
    def d(self) -> int | None:
        """The number of items in the public domain; None under partition selection."""
        return None if isinstance(self.source, UnlistedSource) else self.source.d

    @property
    def terms(self) -> Discovered | None:
        """The terms of partition selection of a planned release, if it has any."""
        return self.source.terms if isinstance(self.source, UnlistedSource) else None

    def describe(self) -> dict[str, Any]:
        """Return the ranks and the grid, and the terms of partition selection of the planned release."""
        terms = {} if self.terms is None else {"terms": self.terms.to_dict()}
        return {"sketch": {"ranks": list(self.ranks), "grid": str(self.noise.grid), **terms}}

    @property
    def workload(self) -> Workload:
        """The workload, which is not typed: the ranks may require sorting all scores, and that takes private time."""
        return Workload(False, self.d or 0, len(self.ranks), True)

    def draw(self, randomness: Randomness) -> Sketch:
        """Take a snapshot, read the scores at the ranks, and return them with noise."""
        made, promised, draw_noise = self.noise, self.guarantee, randomness.noise
        assert draw_noise is not None  # only a draw without counts has no noise, and a sketch consists of counts
        steps = [_clamp(exact + draw_noise(made.rate)) for exact in read_steps(self)]
        return Sketch(
            ranks=self.ranks, noisy=tuple(to_score(step, made.grid) for step in steps), domain_size=self.d,
            grid=made.grid, sensitivity=self.sensitivity, adjacency=promised.adjacency,
            max_items_per_user=self.max_items_per_user, guarantee=promised, private=randomness.private,
            terms=self.terms,
        )  # fmt: skip


def sketch(
    scores: Any,
    epsilon: Number,
    ranks: Iterable[int] | None = None,
    *,
    grid: Number | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
    pad_to: Number | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    purpose: str | None = None,
    request_id: str | None = None,
    dataset: str | None = None,
    part: str | None = None,
    as_of: str | date | None = None,
    rng: Any = None,
) -> Sketch:
    """Release noisy scores at a few public ranks, with epsilon-differential privacy: enough to plan a release by.

    Parameters
    ----------
    scores
        The scores of one list of items, as for `top_k`; or events with `discreet.discovered` as their domain, whose
        sketch costs no delta.
    epsilon
        The privacy budget of the sketch, in addition to that of the release it serves to plan.
    ranks
        The ranks to release scores at, from 1 for the largest score, in ascending order and not chosen by looking at
        the data. Fewer ranks have less noise. By default 1, 2, 5, 10, 20 and so on, and the last; under partition
        selection up to 1,000. Give more for a k above 100.
    grid
        The step to round scores to that are not whole numbers by their type; other scores have a grid of their own.
    sensitivity, adjacency
        As in `top_k`.
    pad_to
        As in `top_k`, except that "auto" is not allowed.
    ledger, purpose, request_id, dataset, part, as_of
        As in `top_k`: the sketch is charged before it is drawn and stored before it is returned.
    rng
        A random generator, for tests only: the sketch is then marked as not private.

    Returns
    -------
    Sketch
        A stand-in for scores that `utility`, `expected`, `epsilon_for`, `compare` and `plan` accept.

    Examples
    --------
    >>> import discreet
    >>> visits = [round(200_000 / (rank + 5)) for rank in range(1, 1001)]
    >>> curve = discreet.sketch(visits, epsilon="0.1")
    >>> curve
    <Sketch: 10 ranks of 1,000 items, epsilon = 0.1>
    >>> plan = discreet.plan(curve, k=10, goal="recall", probability="0.9")
    >>> print(str(plan.comparison).splitlines()[-1])
    computed from a sketch that cost epsilon = 0.1
    """
    padding = Padding(pad_to)
    if isinstance(scores, AnySource):
        padding.add_elapsed(scores.opening_seconds())
    charge = plan_charge(ledger, purpose, request_id, dataset, rng, as_of=as_of, part=part)
    with deliver_release(padding, charge, rng) as delivery:
        rest = ranks, grid, sensitivity, adjacency
        request = make_sketch_request(scores, epsilon, *rest)
        # Scores that the caller does not keep are freed before the wait.
        del scores
        others = (make_sketch_request(request.source, each, *rest) for (each,) in other_readings([epsilon]))
        delivery.draw(request, others)
        del request, others
    made: Sketch = delivery.release
    return made


def make_sketch_request(
    scores: Any, epsilon: Any, ranks: Any = None, grid: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> SketchRequest:
    """Return the request that the arguments of `sketch` describe, checked before anything private is read."""
    if isinstance(scores, Source) and not scores.has_items:
        raise refuse_curve()
    source: Source | UnlistedSource
    source = scores if isinstance(scores, UnlistedSource) else as_source(scores)
    if isinstance(source, UnlistedGroups):
        raise InvalidTypeError("scores must be of one list of items for a sketch, not of several groups")
    budget = positive(epsilon, "epsilon")
    neighbours = check_source_adjacency(source.adjacency, adjacency)
    if isinstance(source, UnlistedSource):
        if sensitivity is not None:
            raise InvalidValueError("sensitivity must be left out, because the source knows its own")
        # The bound of partition selection is for finding items. A user moves the scores of any number of items.
        own, most = source.sensitivity, None
    else:
        said = find_sensitivity(source, sensitivity)
        own, most = said.sides, find_items_per_user(source, said)
    # The grid is public: it comes from the type of the scores or from the caller.
    if source.grid is not None and grid is not None:
        raise InvalidValueError("grid must be left out, because the scores have their own")
    if source.grid is None and grid is None:
        raise InvalidTypeError(
            "grid must be given for scores that are not whole numbers by their type: what to round them to, such as 1"
        )
    step = positive_exact(grid, "grid") if source.grid is None else source.grid
    # Under partition selection the domain is infinite, so the default ranks end early.
    last = _LAST_BY_DEFAULT if isinstance(source, UnlistedSource) else source.d
    places = default_ranks(last) if ranks is None else _check_ranks(ranks, source)
    noise = make_sketch_noise(own, neighbours, step, len(places), most, budget)
    if noise.rate * _LARGEST_NOISE < 1:
        raise InvalidValueError(
            f"epsilon must be large enough for noise of at most 2^40 steps of the grid, not {quote(epsilon)}"
        )
    mechanism = DiscreteLaplace()
    rho = mechanism.zcdp(budget, len(places))
    # A sketch consists of counts: the whole of epsilon is theirs.
    guarantee = Guarantee(budget, neighbours, own.under(neighbours), mechanism, rho, budget)
    return SketchRequest(source, places, guarantee, own, noise, most)


def read_steps(request: SketchRequest) -> list[int]:
    """Return the exact scores at the ranks, in whole steps: the values whose sensitivity the noise covers."""
    source = request.source
    if isinstance(source, UnlistedSource):
        # The key decides which items count for finding them, which plays no part here.
        with source.snapshot("", with_uncounted=True) as unlisted:
            (largest,) = unlisted.largest_scores(request.ranks[-1])
        # Infinitely many items that nobody touched follow those of the table, with a score of 0.
        return [_clamp(max(0, largest[rank - 1])) if rank <= len(largest) else 0 for rank in request.ranks]
    # An overflow of a float depends on the scores, so the caller's NumPy settings must not raise an error for it.
    with np.errstate(all="ignore"), source.snapshot() as snapshot:
        # Clamping moves no two scores further apart.
        return [_clamp(request.noise.to_steps(snapshot.tally.exact(rank - 1))) for rank in request.ranks]


def default_ranks(d: int) -> tuple[int, ...]:
    """Return the ranks of a sketch of d items by default: 1, 2, 5, 10 and so on to five million, and the last.

    Examples
    --------
    >>> default_ranks(60)
    (1, 2, 5, 10, 20, 50, 60)
    """
    series = (digit * 10**power for power in range(_LAST_DECADE) for digit in (1, 2, 5))
    return (*(rank for rank in series if rank < d), d)


def _check_ranks(ranks: Any, source: Source | UnlistedSource) -> tuple[int, ...]:
    if isinstance(ranks, str | bytes) or not isinstance(ranks, Iterable):
        raise InvalidTypeError(f"ranks must be a list of whole numbers such as [1, 10, 100], not {quote(ranks)}")
    last, spelled = MOST_FOUND, f"{MOST_FOUND:,}"
    if not isinstance(source, UnlistedSource):
        last, spelled = source.d, f"{source.d}, the number of items"
    places = tuple(whole_number(rank, "ranks", 1, last, spelled) for rank in ranks)
    if not 1 <= len(places) <= _MOST_RANKS:
        raise InvalidValueError(f"ranks must be from 1 to {_MOST_RANKS} numbers, not {len(places)}")
    if any(one >= other for one, other in pairwise(places)):
        raise InvalidValueError(f"ranks must be in ascending order, each given once, not {quote(list(places))}")
    return places


def _clamp(steps: int) -> int:
    return min(max(steps, -MOST_STEPS), MOST_STEPS)
