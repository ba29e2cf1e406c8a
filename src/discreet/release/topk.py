"""Release the top-k of scored items: check the request, charge the ledger, draw, and return the release.

`top_k` reads like the sentence. `Delivery` holds the release back until the padding allows it to be seen; the four
kinds of request draw it.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from discreet.mechanisms.base import Mechanism
from discreet.privacy import Number, Sensitivity
from discreet.release.delivery import Delivery, plan_charge
from discreet.release.padding import Padding, check_auto
from discreet.release.release import Release
from discreet.release.request import AnyRequest, make_request
from discreet.sources.arrays.array import is_tensor, is_typed
from discreet.sources.base import AnySource, GroupedSource, Source
from discreet.sources.scores import as_any_source

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger
    from discreet.release.grouped import AnyRelease, GroupedRelease
    from discreet.sources.discovered import UnlistedGroups


class _Options(TypedDict, total=False):
    """What `top_k` takes by name alone."""

    labels: Any
    mechanism: Mechanism | None
    sensitivity: Sensitivity | None
    adjacency: str | None
    counts: Number | None
    split: str | None
    pad_to: Number | None
    ledger: str | os.PathLike[str] | Ledger | None
    purpose: str | None
    request_id: str | None
    dataset: str | None
    rng: Any


@overload
def top_k(
    scores: GroupedSource | UnlistedGroups, k: int, epsilon: Number, **options: Unpack[_Options]
) -> GroupedRelease: ...
@overload
def top_k(scores: Any, k: int, epsilon: Number, **options: Unpack[_Options]) -> Release: ...
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
) -> AnyRelease:
    """Releases which k items score highest, with epsilon-differential privacy for each user behind the scores.

    Parameters
    ----------
    scores
        A mapping from item to score, a list or one-dimensional array, a pandas, polars or pyarrow column, or a source;
        one by group, such as `discreet.grouped` makes, has a list released for each group, all within epsilon. Items
        that nobody listed are found in events, with `discreet.discovered` as their domain.
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
        How far adding one user can move a score. Scores that are whole numbers, or that have no type, such as those of
        a list, are taken for counts of users by default, `Sensitivity(down=0, up=1)`. For arrays, columns and tensors
        of floats or decimals it must be given.
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
        A GroupedRelease, with a release for each group, where the scores are by group.

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
    delta = Fraction(0)
    if isinstance(scores, AnySource):
        padding.add_elapsed(scores.opening_seconds())
        delta = scores.delta
    elif padding.is_auto:
        check_auto(is_tensor(scores) or is_typed(scores))
    charge = plan_charge(ledger, purpose, request_id, dataset, rng, delta)
    with Delivery(padding, charge, rng) as delivery:
        source = as_any_source(scores, labels)
        # What the caller keeps nowhere else is freed before the wait.
        del scores, labels
        request = make_any_request(
            source, k, epsilon, mechanism=mechanism, sensitivity=sensitivity, adjacency=adjacency, counts=counts,
            split=split,
        )  # fmt: skip
        delivery.draw(request)
        del source, request
    release: AnyRelease = delivery.release
    return release


def make_any_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> AnyRequest:
    """Return the request that the arguments of `top_k` describe: for a list, for each group, or for items to find."""
    if isinstance(scores, Source) or not isinstance(scores, AnySource):
        return make_request(scores, k, epsilon, **terms)
    if isinstance(scores, GroupedSource):
        from discreet.release.grouped_request import make_grouped_request

        return make_grouped_request(scores, k, epsilon, **terms)
    from discreet.release.discovery_request import make_discovery_request
    from discreet.sources.discovered import UnlistedSource

    assert isinstance(scores, UnlistedSource), "there is no other kind of source"
    return make_discovery_request(scores, k, epsilon, **terms)
