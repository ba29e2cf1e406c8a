"""top_k: the one assembly, from a source of scores to a release."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
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
from discreet.padding import period, wait_for_multiple
from discreet.privacy import Number, Sensitivity, check_adjacency, positive
from discreet.release import Guarantee, Release
from discreet.selection import Selection
from discreet.sources.array import array_source, is_tensor
from discreet.sources.base import Source
from discreet.sources.labels import in_order
from discreet.tally import Tally

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger


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
        Return only at a whole multiple of this many seconds, so that the running time tells less about the scores;
        "auto" takes a period that fits the number of items and k. By default there is no padding.
    ledger
        A `Ledger` or its file: the release is charged to this budget before it is drawn, and stored there before it is
        returned. Where the budget does not allow it, nothing is drawn.
    purpose
        With a ledger: what the release is for, in words.
    request_id
        With a ledger: a name for this request. Asked again by the same name, the same query returns the stored release
        and costs nothing; another query is refused.
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
    begun = time.monotonic()
    _check_spending(ledger, purpose, request_id, rng)
    source, entropy = as_source(scores, labels), as_entropy(rng)
    guarantee = promise(source, k, epsilon, mechanism, sensitivity, adjacency, counts, split)
    plan = planned(source, int(k), sensitivity, guarantee)
    seconds = period(pad_to, source.d, int(k), plan is not None)

    def draw() -> Release:
        noise = counting_noise(entropy)
        release = released(source, int(k), guarantee, lambda prepared: prepared.select(entropy), plan, noise)
        if seconds is not None:
            # Before a ledger stores it: the time of that can be seen on the file.
            wait_for_multiple(begun, seconds)
        return release if rng is None else replace(release, private=False)

    return draw() if ledger is None else _charged(ledger, purpose, request_id, source, int(k), guarantee, draw)


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
                    return source.selected(selection), []
                ranks = selection.drawn()
                return source.items(ranks), [tally.exact(rank) for rank in ranks.tolist()]
        finally:
            source.close()


def _prepared(tally: Tally, k: int, guarantee: Guarantee) -> Prepared:
    return guarantee.mechanism.prepare(tally, k, guarantee.selection_epsilon, guarantee.sensitivity)


def _check_spending(ledger: Any, purpose: Any, request_id: Any, rng: Any) -> None:
    if ledger is not None and rng is not None:
        raise InvalidValueError("rng must be left out with a ledger: what can be drawn again is not private")
    for name, given in (("purpose", purpose), ("request_id", request_id)):
        if ledger is None and given is not None:
            raise InvalidValueError(f"{name} must be left out without a ledger, which is where it is written")


def _charged(
    ledger: Any,
    purpose: Any,
    request_id: Any,
    source: Source,
    k: int,
    guarantee: Guarantee,
    draw: Callable[[], Release],
) -> Release:
    """The release, charged to a ledger before the first random bit and stored there after the last."""
    from discreet.ledger.charges import spend
    from discreet.ledger.query import asked

    return spend(ledger, asked(source, k, guarantee), purpose, request_id, draw)


def as_source(scores: Any, labels: Any) -> Source:
    """What the caller gave as scores, as a source."""
    if not isinstance(scores, Source):
        if not is_tensor(scores):
            return array_source(scores, labels)
        from discreet.sources.tensor import tensor_source

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
