"""sketch: the shape of the score curve, bought with a little epsilon, for planning where no scores are public."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.padding import Padding
from discreet.privacy import Number, Sensitivity
from discreet.sketch_request import make_sketch_request
from discreet.sketches import Sketch
from discreet.sources.base import AnySource
from discreet.topk import plan_charge, release_from

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


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
    rng: Any = None,
) -> Sketch:
    """Noisy scores at a few public ranks, with epsilon-differential privacy: enough to plan a release by.

    Parameters
    ----------
    scores
        What `top_k` takes, of one list of items.
    epsilon
        What the sketch may cost, beside the release that is planned with it.
    ranks
        The ranks whose scores are wanted, from 1 for the largest score, in ascending order and not chosen by looking at
        the data. Fewer ranks have less noise. By default 1, 2, 5, 10, 20 and so on, and the last.
    grid
        What to round scores to that are not whole numbers by their type; others have a grid of their own.
    sensitivity, adjacency
        As in `top_k`.
    pad_to
        As in `top_k`, but for "auto".
    ledger, purpose, request_id, dataset
        As in `top_k`: the sketch is charged before it is drawn and stored before it is returned.
    rng
        A random generator, for tests only: the sketch then says that it is not private.

    Returns
    -------
    Sketch
        What `utility`, `expected`, `epsilon_for`, `compare` and `plan` take in place of scores.

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
    given = [scores]
    # What the caller keeps nowhere else is freed with the source, before the wait.
    del scores

    def open_source() -> AbstractContextManager[Any]:
        return nullcontext(given.pop())

    ask = partial(
        make_sketch_request, epsilon=epsilon, ranks=ranks, grid=grid, sensitivity=sensitivity, adjacency=adjacency
    )
    charge = plan_charge(ledger, purpose, request_id, dataset, rng)
    made: Sketch = release_from(open_source, ask, padding, charge, rng)
    return made
