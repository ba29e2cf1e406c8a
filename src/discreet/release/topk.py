"""Release the top-k of scored items with differential privacy.

`top_k` turns the scores into a source, makes the request, charges the ledger, draws, and returns the release. Each kind
of request draws its own release. `Delivery` withholds the release until the padding has passed: everything that takes
private time, freeing the scores included, happens before a wait, and the steps after a wait depend on the release
alone. A charge is visible in the ledger's file, so it has a wait of its own.
"""

from __future__ import annotations

import os
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from discreet.errors import Error, InternalError, InvalidValueError
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Number, Sensitivity
from discreet.release.padding import Padding, check_auto
from discreet.release.release import Release
from discreet.release.request import AnyRequest, Randomness, make_request
from discreet.sources.arrays.array import is_typed
from discreet.sources.base import AnySource, GroupedSource, Source
from discreet.sources.scores import as_any_source, is_tensor

if TYPE_CHECKING:
    from discreet.ledger.charges import PlannedCharge
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.store import Record
    from discreet.release.grouped import AnyRelease, GroupedRelease
    from discreet.sources.discovered import UnlistedGroups


class _Options(TypedDict, total=False):
    """The keyword arguments of `top_k`."""

    labels: Any
    mechanism: Mechanism | None
    sensitivity: Sensitivity | None
    adjacency: str | None
    counts: Number | None
    split: str | None
    shortfall: Number | None
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
    shortfall: Number | None = None,
    pad_to: Number | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    purpose: str | None = None,
    request_id: str | None = None,
    dataset: str | None = None,
    rng: Any = None,
) -> AnyRelease:
    """Release the k items with the highest scores, with epsilon-differential privacy for each user.

    Parameters
    ----------
    scores
        A mapping from item to score, a list or one-dimensional array, a pandas, polars or pyarrow column, or a source.
        A source by group, such as `discreet.grouped` returns, gives one list for each group, all within epsilon.
        For partition selection, where no list of items exists, pass events with `discreet.discovered` as their domain.
        The list of items must be public. The result of `value_counts()` or a groupby is not: it holds only items that
        somebody touched. docs/integrations.md shows how to add a public list. Scores must be finite.
    k
        The number of items to release.
    epsilon
        The privacy budget to spend: a number or a string such as "0.5", taken exactly.
    labels
        The names of the items where `scores` has none; by default the positions. The positions of an input sorted by
        score are ranks, and releasing ranks reveals scores: pass labels for such an input.
    mechanism
        The mechanism that draws; `Canonical()` by default.
    sensitivity
        The furthest that adding one user can move a score. Scores that are whole numbers by their type, or that have no
        type, such as those of a list, are counts of users by default: `Sensitivity(down=0, up=1)`. Arrays, columns and
        tensors of floats or decimals need it.
    adjacency
        "add-remove", the default, protects the presence of a user, "swap" the replacement of one user by another.
    counts
        Release a noisy score for each item too, for this epsilon in addition. Scores must be whole numbers by their
        type, or sums of events.
    split
        "auto" releases counts within epsilon itself: half of epsilon is for the counts, and all of it where k is the
        number of items.
    shortfall
        Release too how good the list is, for this epsilon in addition: a noisy bound on how far the best item left out
        is ahead of the weakest released one, in `release.shortfall`. "auto" takes a tenth of epsilon itself. Scores
        must be as for counts, and k below the number of items.
    pad_to
        Return, and write to a ledger, only at whole multiples of this many seconds since the call, so that the running
        time reveals less about the scores. "auto" chooses a period from the number of items and k; it works for arrays
        and columns of a numeric type alone. By default there is no padding.
    ledger
        A `Ledger` or its file. The release is charged to this budget before it is drawn, and stored before it is
        returned. Nothing is drawn if the budget does not allow the release.
    purpose
        With a ledger: the reason for the release, in words.
    request_id
        With a ledger: a name for this request. The same query under the same name returns the stored release and costs
        nothing; another query under that name is refused.
    dataset
        With a ledger: the name of the data. A ledger for one dataset refuses a release that names another dataset or
        none, before anything is read.
    rng
        A random generator, for tests only: the release is then marked as not private.

    Returns
    -------
    Release
        The items sorted by label, their order if the mechanism proves one, the counts if requested, and the guarantee.
        For scores by group, a GroupedRelease with a release for each group.

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
        # Scores that the caller does not keep are freed before the wait.
        del scores, labels
        request = make_any_request(
            source, k, epsilon, mechanism=mechanism, sensitivity=sensitivity, adjacency=adjacency, counts=counts,
            split=split, shortfall=shortfall,
        )  # fmt: skip
        delivery.draw(request)
        del source, request
    release: AnyRelease = delivery.release
    return release


class Delivery:
    """A context that draws one release and delivers it.

    The caller makes and draws a request inside the block. The end of the block waits for the padding and stores the
    release in the ledger; an error waits as well. The caller deletes its references to the source and the request
    inside the block, so that they are freed before the wait.
    """

    def __init__(self, padding: Padding, charge: PlannedCharge | None = None, rng: Any = None) -> None:
        self._padding, self._charge, self._rng = padding, charge, rng
        self._record: Record | None = None
        self.release: Any = None

    def __enter__(self) -> Delivery:
        return self

    def draw(self, request: AnyRequest) -> None:
        """Probe the source, charge the ledger, and draw; or take the release stored for the same request."""
        randomness, padding, charge = Randomness.of(self._rng), self._padding, self._charge
        if padding.is_auto:
            padding.choose_period(request.workload)
        if charge is not None:
            query = charge.query(request)
            if charge.is_new():
                request.source.probe()
                charge.check_room(query)
            padding.wait()
            self._record, self.release = charge.spend(query)
        if self.release is not None:
            return
        try:
            self.release = request.draw(randomness)
        except Error as error:
            if self._record is None or isinstance(error, InternalError):
                raise
            raise type(error)(f"{error}; it was charged before, and what it cost stays spent") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        charge, record = self._charge, self._record
        if isinstance(error, InternalError):
            try:
                self._padding.wait()
            finally:
                # An interrupted wait must not leave the ledger unlocked.
                if charge is not None and record is not None:
                    with self._padding.delay_errors():
                        charge.lock(record)
        if error is not None:
            if isinstance(error, Exception):
                self._padding.wait()
            return
        with self._padding.delay_errors():
            self._padding.wait()
            if charge is not None and record is not None:
                charge.keep(record, self.release)


def plan_charge(
    ledger: Any, purpose: Any, request_id: Any, dataset: Any, rng: Any = None, delta: Fraction = Fraction(0)
) -> PlannedCharge | None:
    """Return the charge that a release will make, or None without a ledger.

    `delta` is the delta of the release. A ledger without room for it is refused before anything is read.
    """
    if ledger is None:
        for name, given in (("purpose", purpose), ("request_id", request_id), ("dataset", dataset)):
            if given is not None:
                raise InvalidValueError(f"{name} must be left out without a ledger, which is where it is written")
        return None
    if rng is not None:
        raise InvalidValueError("rng must be left out with a ledger: what can be drawn again is not private")
    from discreet.ledger.charges import open_charge

    return open_charge(ledger, purpose, request_id, dataset, delta)


def make_any_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> AnyRequest:
    """Return the request that the arguments of `top_k` describe: a list, a list by group, or partition selection."""
    if isinstance(scores, Source) or not isinstance(scores, AnySource):
        return make_request(scores, k, epsilon, **terms)
    if isinstance(scores, GroupedSource):
        from discreet.release.grouped_request import make_grouped_request

        return make_grouped_request(scores, k, epsilon, **terms)
    from discreet.release.discovery_request import make_discovery_request
    from discreet.sources.discovered import UnlistedSource

    assert isinstance(scores, UnlistedSource), "there is no other kind of source"
    return make_discovery_request(scores, k, epsilon, **terms)
