"""top_k: the one assembly, from a source of scores to a release."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.counts import Counting, check_counts, counting, shares
from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.exact.entropy import Entropy, Ranks, as_entropy
from discreet.exact.laplace import laplace
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.registry import check_mechanism
from discreet.padding import Padding, check_auto
from discreet.privacy import Number, Sensitivity, check_adjacency, positive
from discreet.release import Guarantee, Release
from discreet.selection import Selection
from discreet.sources.arrays.array import array_source, is_tensor, is_typed
from discreet.sources.base import Source
from discreet.sources.labels import in_order
from discreet.tally import Tally

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.query import Query


def top_k(
    scores: Any,
    k: int,
    epsilon: Number,
    *,
    labels: Any = None,
    mechanism: Mechanism | None = None,
    sensitivity: Sensitivity | None = None,
    adjacency: str | None = None,
    counts: Number | None = None,
    split: str | None = None,
    pad_to: Number | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    purpose: str | None = None,
    request_id: str | None = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """Releases which k items score highest, with epsilon-differential privacy for each user behind the scores.

    Parameters
    ----------
    scores
        A mapping from item to score, a list or one-dimensional array, a pandas, polars or pyarrow column, or a source.
        The list of items must be public, which that of a `value_counts()` or a groupby is not: it holds what somebody
        touched, and docs/integrations.md says how to bring in a list. Scores must be finite.
    k
        How many items to release.
    epsilon
        The privacy budget to spend: a number or a string such as "0.5", taken exactly.
    labels
        The names of the items where `scores` has none; by default the positions. If the input was sorted by score, its
        positions are ranks, and releasing them tells about scores: pass labels.
    mechanism
        How to draw; `Canonical()` by default.
    sensitivity
        How far adding one user can move a score; counts of users, `Sensitivity(down=0, up=1)`, by default.
    adjacency
        "add-remove", the default, protects the presence of a user, "swap" the replacement of one user by another.
    counts
        Release a noisy score for each item too, at this epsilon beside the other; scores must be whole numbers by
        their type, or sums of events.
    split
        "auto" releases counts within epsilon itself: half of it is for them, and all of it where k is all items.
    pad_to
        Return, and write to a ledger, only at whole multiples of this many seconds since the call, so that the running
        time tells less about the scores. "auto" takes a period that fits the number of items and k, for arrays and
        columns of a numeric type alone. By default there is no padding.
    ledger
        A `Ledger` or its file: the release is charged to this budget before it is drawn, and stored there before it is
        returned. Where the budget does not allow it, nothing is drawn.
    purpose
        With a ledger: what the release is for, in words.
    request_id
        With a ledger: a name for this request. Asked again by the same name, the same query returns the stored release
        and costs nothing; another query is refused.
    dataset
        With a ledger: the name of the data. A ledger that is for one dataset refuses a release that names another or
        none, before anything is read.
    rng
        A random generator, for tests only: the release then says that it is not private.

    Returns
    -------
    Release
        The items sorted by label, the order where the mechanism proves one, the counts if asked for, and the guarantee.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=1)
    >>> release.items
    ['alien', 'dune']
    >>> release.guarantee.epsilon
    Fraction(1, 1)
    """
    padding = Padding(pad_to)
    if padding.is_auto and not isinstance(scores, Source):
        check_auto(is_tensor(scores) or is_typed(scores))
    if isinstance(scores, Source):
        padding.count_in(scores.opening_seconds())
    given = [scores, labels]
    # What the caller keeps nowhere else is freed with the source, before the wait.
    del scores, labels

    def opening() -> AbstractContextManager[Source]:
        names, values = given.pop(), given.pop()
        return nullcontext(as_source(values, names))

    return release_from(
        opening, k, epsilon, padding, mechanism=mechanism, sensitivity=sensitivity, adjacency=adjacency, counts=counts,
        split=split, ledger=ledger, purpose=purpose, request_id=request_id, dataset=dataset, rng=rng,
    )  # fmt: skip


def release_from(
    opening: Callable[[], AbstractContextManager[Source]],
    k: Any,
    epsilon: Any,
    padding: Padding,
    *,
    mechanism: Any = None,
    sensitivity: Any = None,
    adjacency: Any = None,
    counts: Any = None,
    split: Any = None,
    ledger: Any = None,
    purpose: Any = None,
    request_id: Any = None,
    dataset: Any = None,
    rng: Any = None,
) -> Release:
    """What `top_k` returns, from a source that is opened here and let go again before what is seen from outside.

    Everything that takes private time, freeing the scores with the rest, happens before a wait; what comes after one
    sees the release alone. With a ledger the charge can be seen too, on the file, so that it has a wait of its own.
    """
    _check_spending(ledger, purpose, request_id, dataset, rng)
    book = None if ledger is None else _opened_for(ledger, purpose, request_id, dataset)
    with padding.of_errors(), ExitStack() as held:
        source, entropy = held.enter_context(opening()), as_entropy(rng)
        guarantee = promise(source, k, epsilon, mechanism, sensitivity, adjacency, counts, split)
        plan = planned(source, int(k), sensitivity, guarantee)
        padding.fit(source.typed, source.d, int(k), plan is not None)
        query = None if book is None else _asked(source, int(k), guarantee, dataset)
        select, noise = lambda prepared: prepared.select(entropy), counting_noise(entropy)
        # The one reference to the source that is left: it goes with the draw.
        drawing = [partial(released, source, int(k), guarantee, select, plan, noise)]
        del source

        def draw() -> Release:
            release = drawing.pop()()
            return release if rng is None else replace(release, private=False)

        def finish(release: Release) -> Release:
            drawing.clear()
            held.close()
            padding.wait()
            return release

        if book is None or query is None:
            return finish(draw())
        padding.wait()
        return _spent(book, query, purpose, request_id, draw, finish)


def counting_noise(entropy: Entropy) -> Callable[[Fraction], int]:
    """What draws the noise of counts: n with probability exactly proportional to exp(-rate |n|), for any rate."""
    return partial(laplace, entropy)


def released(
    source: Source,
    k: int,
    guarantee: Guarantee,
    draw: Callable[[Prepared], Selection],
    plan: Counting | None = None,
    noise: Callable[[Fraction], int] | None = None,
) -> Release:
    """The release of what `draw` selects, with counts by `plan` where there is one.

    The one way from ranks to what the caller sees: the verifier walks it with every choice in turn.
    """
    items: list[Any] | Ranks
    scores: list[Fraction] = []
    if k == source.d and plan is None:
        items = source.every_item()
    else:
        items, scores = _drawn(source, k, guarantee, draw, with_scores=plan is not None)
    listed = in_order(items)
    is_ordered = guarantee.mechanism.ordered and k < source.d
    order = (items.tolist() if isinstance(items, np.ndarray) else items) if is_ordered else None
    counts = None if plan is None or noise is None else plan.counts(list(items), scores, noise)
    return Release(listed, order, source.d, guarantee, counts=counts)


def _drawn(
    source: Source, k: int, guarantee: Guarantee, draw: Callable[[Prepared], Selection], with_scores: bool
) -> tuple[list[Any] | Ranks, list[Fraction]]:
    """Returns k items, in the released order where there is one, and their scores where they are wanted."""
    with source.exclusive():
        try:
            # Whether a float overflows depends on the scores: no setting of the caller's may turn that into an error.
            with np.errstate(all="ignore"):
                tally = source.tally()
                selection = Selection(np.arange(k)) if k == source.d else draw(_prepared(tally, k, guarantee))
                if not with_scores:
                    return source.draw_items(selection), []
                ranks = selection.drawn()
                return source.items(ranks), [tally.exact(rank) for rank in ranks.tolist()]
        finally:
            source.close()


def _prepared(tally: Tally, k: int, guarantee: Guarantee) -> Prepared:
    return guarantee.mechanism.prepare(tally, k, guarantee.selection_epsilon, guarantee.sensitivity)


def _check_spending(ledger: Any, purpose: Any, request_id: Any, dataset: Any, rng: Any) -> None:
    if ledger is not None and rng is not None:
        raise InvalidValueError("rng must be left out with a ledger: what can be drawn again is not private")
    for name, given in (("purpose", purpose), ("request_id", request_id), ("dataset", dataset)):
        if ledger is None and given is not None:
            raise InvalidValueError(f"{name} must be left out without a ledger, which is where it is written")


def _opened_for(ledger: Any, purpose: Any, request_id: Any, dataset: Any) -> Ledger:
    from discreet.ledger.charges import opened_for

    return opened_for(ledger, purpose, request_id, dataset)


def _asked(source: Source, k: int, guarantee: Guarantee, dataset: str | None) -> Query:
    from discreet.ledger.query import asked

    return asked(source, k, guarantee, dataset)


def _spent(book: Ledger, query: Query, purpose: Any, request_id: Any, draw: Any, finish: Any) -> Release:
    """The release, charged to a ledger before the first random bit and stored there after the last."""
    from discreet.ledger.charges import spend

    return spend(book, query, purpose, request_id, draw, finish)


def as_source(scores: Any, labels: Any) -> Source:
    """What the caller gave as scores, as a source."""
    if not isinstance(scores, Source):
        if not is_tensor(scores):
            return array_source(scores, labels)
        from discreet.sources.arrays.tensor import tensor_source

        return tensor_source(scores, labels)
    if labels is not None:
        raise InvalidValueError("labels must be left out when scores is a source, which has its own")
    return scores


def promise(
    source: Source,
    k: Any,
    epsilon: Any,
    mechanism: Any,
    sensitivity: Any,
    adjacency: Any,
    counts: Any = None,
    split: Any = None,
    drawn: bool = True,
) -> Guarantee:
    """What the release will promise; every public parameter is checked here, before anything private is read."""
    budget = positive(epsilon, "epsilon")
    check_counts(source, counts, split)
    adjacency = _adjacency(source, adjacency)
    chosen = Canonical() if mechanism is None else check_mechanism(mechanism, drawn)
    limit = _sensitivity(source, sensitivity).under(adjacency)
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InvalidTypeError(f"k must be a whole number from 1 to {source.d}, the number of items, not {shown(k)}")
    if not 1 <= k <= source.d:
        raise InvalidValueError(f"k must be a whole number from 1 to {source.d}, the number of items, not {shown(k)}")
    selection, rest = shares(budget, counts, split, everything=k == source.d)
    # Both privacy parameters of two releases add up, whatever the second makes of the first; rest-DP is rest^2/2-zCDP.
    rho = chosen.zcdp(selection, int(k)) + rest**2 / 2
    return Guarantee(selection + rest, adjacency, limit, chosen, rho, rest)


def planned(source: Source, k: int, sensitivity: Any, guarantee: Guarantee) -> Counting | None:
    """How the counts of a release are made, or None where it has none."""
    if not guarantee.counts_epsilon or source.grid is None:
        return None
    limit, adjacency = _sensitivity(source, sensitivity), guarantee.adjacency
    return counting(limit, adjacency, source.grid, k, source.max_items_per_user, guarantee.counts_epsilon)


def _adjacency(source: Source, given: Any) -> str:
    if given is not None:
        check_adjacency(given)
    if source.adjacency is not None and given not in (None, source.adjacency):
        raise InvalidValueError(
            f"adjacency must be that of the source, {source.adjacency!r}, or left out, not {given!r}"
        )
    return str(given or source.adjacency or "add-remove")


def _sensitivity(source: Source, given: Any) -> Sensitivity:
    if source.sensitivity is not None:
        if given is not None:
            raise InvalidValueError("sensitivity must be left out, because the source knows its own")
        return source.sensitivity
    if given is None:
        return Sensitivity()
    if not isinstance(given, Sensitivity):
        raise InvalidTypeError(f"sensitivity must be a Sensitivity(down=..., up=...), not {shown(given)}")
    return given
