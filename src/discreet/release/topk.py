"""Release the top-k of scored items with differential privacy.

`top_k` turns the scores into a source, makes the request, charges the ledger, draws, and returns the release. Each kind
of request draws its own release. `deliver_release` withholds the release until the padding has passed: everything that
takes private time, freeing the scores included, happens before a wait, and the steps after a wait depend on the release
alone. A charge is visible in the ledger's file, so it has a wait of its own.

`Padding` makes running time coarse: a release returns only at whole multiples of a period. The time of a draw depends
on the scores. An observer of a padded release learns only the multiple at which it ended; with a period well above the
usual time that is the first multiple, whatever the scores.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from discreet.errors import Error, InternalError, InvalidValueError, quote
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Number, Sensitivity, other_readings, positive
from discreet.release.release import Release
from discreet.release.request import AnyRequest, Asked, Randomness, Request, Workload, make_grouped_request, make_terms
from discreet.sources.arrays.array import is_typed
from discreet.sources.base import AnySource, GroupedSource, Source
from discreet.sources.scores import as_any_source, is_tensor

if TYPE_CHECKING:
    from discreet.ledger.charges import PlannedCharge
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.store import Record
    from discreet.release.grouped import AnyRelease, GroupedRelease
    from discreet.sources.discovered import UnlistedGroups

AUTO = "auto"

_LONGEST = 3600
"""The longest period in seconds: an hour, far above any release."""

_SPIN = 0.002
"""The seconds before the end at which sleeping stops: the operating system wakes a process late by up to this much."""


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
    part: str | None
    as_of: str | date | None
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
    part: str | None = None,
    as_of: str | date | None = None,
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
        A `Ledger`, its file, or its URL on PostgreSQL. The release is charged to this budget before it is drawn, and
        stored before it is returned. Nothing is drawn if the budget does not allow the release.
    purpose
        With a ledger: the reason for the release, in words.
    request_id
        With a ledger: a name for this request. The same query under the same name returns the stored release and costs
        nothing; another query under that name is refused.
    dataset
        With a ledger: the name of the data. A ledger for one dataset refuses a release that names another dataset or
        none, before anything is read.
    part
        With a ledger that has parts: the part to charge. By default the release is charged to what is in no part.
    as_of
        With a ledger that renews: the day or time whose period the release is charged to, such as "2026-12-31";
        without an offset in the zone of the ledger. It is not after now, and in no period before that of the last
        charge, or before the one in which the ledger was made unless it has a start (`since`). By default now.
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
    charge = plan_charge(ledger, purpose, request_id, dataset, rng, delta, as_of, part)
    with deliver_release(padding, charge, rng) as delivery:
        source = as_any_source(scores, labels)
        # Scores that the caller does not keep are freed before the wait.
        del scores, labels
        terms = {"mechanism": mechanism, "sensitivity": sensitivity, "adjacency": adjacency, "split": split}
        request = make_any_request(source, k, epsilon, counts=counts, shortfall=shortfall, **terms)
        others = (
            make_any_request(source, k, number, counts=more, shortfall=bound, **terms, **own)
            for own in ({}, *source.other_readings())
            for number, more, bound in ((epsilon, counts, shortfall), *other_readings((epsilon, counts, shortfall)))
        )
        delivery.draw(request, others)
        del source, request, others
    release: AnyRelease = delivery.release
    return release


@contextmanager
def deliver_release(padding: Padding, charge: PlannedCharge | None = None, rng: Any = None) -> Iterator[Delivery]:
    """Give a delivery that draws one release; where the block ends, wait for the padding and store the release.

    An error of the block waits as well. The caller deletes its references to the source and the request inside the
    block, so that they are freed before the wait.
    """
    delivery = Delivery(padding, charge, rng)
    try:
        yield delivery
    except InternalError:
        try:
            padding.wait()
        finally:
            # An interrupted wait must not leave the ledger unlocked.
            if charge is not None and delivery.record is not None:
                with padding.delay_errors():
                    charge.lock(delivery.record)
        padding.wait()
        raise
    except Exception:
        padding.wait()
        raise
    with padding.delay_errors():
        padding.wait()
        if charge is not None and delivery.record is not None:
            charge.keep(delivery.record, delivery.release)


class Delivery:
    """One release: the charge that it makes, its record in the ledger, and the release once it is drawn."""

    def __init__(self, padding: Padding, charge: PlannedCharge | None, rng: Any) -> None:
        self._padding, self._charge, self._rng = padding, charge, rng
        self.record: Record | None = None
        self.release: Any = None

    def draw(self, request: AnyRequest, others: Iterable[AnyRequest] = ()) -> None:
        """Probe the source, charge the ledger, and draw; or take the release stored for the same request.

        `others` are other readings of the request's floats: early versions stored it as one of them.
        """
        randomness, padding, charge = Randomness.of(self._rng), self._padding, self._charge
        if padding.is_auto:
            padding.choose_period(request.workload)
        if charge is not None:
            query = charge.query(request)
            if charge.is_new():
                request.source.probe()
                charge.check_room(query)
            padding.wait()
            self.record, self.release = charge.spend(query, others)
        if self.release is not None:
            return
        try:
            self.release = replace(request.draw(randomness), expressions=request.source.expressions)
        except Error as error:
            if self.record is None or isinstance(error, InternalError):
                raise
            raise type(error)(f"{error}; it was charged before, and what it cost stays spent") from None


def plan_charge(
    ledger: Any,
    purpose: Any,
    request_id: Any,
    dataset: Any,
    rng: Any = None,
    delta: Fraction = Fraction(0),
    as_of: Any = None,
    part: Any = None,
) -> PlannedCharge | None:
    """Return the charge that a release will make, or None without a ledger.

    `delta` is the delta of the release. A ledger without room for it is refused before anything is read.
    """
    if ledger is None:
        texts = {"purpose": purpose, "request_id": request_id, "dataset": dataset, "part": part, "as_of": as_of}
        for name, given in texts.items():
            if given is not None:
                raise InvalidValueError(f"{name} must be left out without a ledger, which is where it is written")
        return None
    if rng is not None:
        raise InvalidValueError("rng must be left out with a ledger: what can be drawn again is not private")
    from discreet.ledger.charges import open_charge

    return open_charge(ledger, purpose, request_id, dataset, delta, as_of, part)


def make_any_request(source: AnySource, k: Any, epsilon: Any, **terms: Any) -> AnyRequest:
    """Return the request that the arguments of `top_k` describe: a list, a list by group, or partition selection."""
    if isinstance(source, Source):
        return Request(source, *make_terms(source, Asked(k, epsilon, **terms)))
    if isinstance(source, GroupedSource):
        return make_grouped_request(source, k, epsilon, **terms)
    from discreet.release.discovery_request import make_discovery_request
    from discreet.sources.discovered import UnlistedSource

    assert isinstance(source, UnlistedSource), "there is no other kind of source"
    return make_discovery_request(source, k, epsilon, **terms)


class Padding:
    """A clock that ends visible steps at whole multiples of a period since `begun`; without a period, at once.

    Parameters
    ----------
    pad_to
        The period in seconds, "auto" or None, as the caller gave it.
    begun
        The start of the clock by `time.monotonic`; by default now.
    from_file
        True if the clock also covers the start of the command line and reading a file.
    """

    def __init__(self, pad_to: Any, begun: float | None = None, from_file: bool = False) -> None:
        self._begun = time.monotonic() if begun is None else begun
        self._from_file = from_file
        self.is_auto = isinstance(pad_to, str) and pad_to == AUTO
        self._seconds = None if self.is_auto else period(pad_to, 1, 1)

    def add_elapsed(self, seconds: float) -> None:
        """Add the time spent on the release before the clock started."""
        self._begun -= seconds

    def choose_period(self, work: Workload) -> None:
        """Choose the period of "auto" for a workload, whose scores must all have one machine type."""
        check_auto(work.typed)
        self._seconds = period(AUTO, work.d, work.k, work.counts, self._from_file, work.groups)

    def wait(self) -> None:
        """Wait for a whole multiple of the period; return at once without a period."""
        if self._seconds is not None:
            wait_for_multiple(self._begun, self._seconds)

    @contextmanager
    def delay_errors(self) -> Iterator[None]:
        """Delay errors of the block to whole multiples as well, because they follow reads that took private time."""
        try:
            yield
        except Exception:
            self.wait()
            raise


def check_auto(typed: bool) -> None:
    """Raise if the time of a release depends on more than the number of its scores."""
    if not typed:
        raise InvalidValueError(
            "pad_to must be a number of seconds, not 'auto', unless the scores are a column or an array of a numeric "
            "type: Python objects, decimals, text and events take as long as their values ask for; take several times "
            "what your slowest release takes"
        )


def period(pad_to: Any, d: int, k: int, counts: bool = False, from_file: bool = False, groups: int = 1) -> float | None:
    """Return the seconds that `pad_to` means for a release of k of d items, or None for no padding.

    Drawing a count takes about as long as drawing 200 items.
    """
    if pad_to is None:
        return None
    if isinstance(pad_to, str) and pad_to == AUTO:
        return default_period(d, k + 200 * k * counts, from_file, groups)
    seconds = positive(pad_to, "pad_to")
    if not 1 <= 1000 * seconds <= 1000 * _LONGEST:
        raise InvalidValueError(f"pad_to must be 'auto' or from 0.001 to {_LONGEST} seconds, not {quote(pad_to)}")
    return float(seconds)


def default_period(d: int, k: int, from_file: bool = False, groups: int = 1) -> float:
    """Return a power of two in seconds, several times what a release of k of d scores takes; all inputs are public."""
    # The draws of many groups add up, and slow ones average out.
    begin = 0.025 + 0.002 * (groups - 1)
    # A file adds the start of the command line and of Arrow, and the label of each item.
    reading = 1.5 + 4e-6 * d if from_file else 0
    return float(2.0 ** math.ceil(math.log2(begin + 1e-7 * d + 2e-6 * k + reading)))


def wait_for_multiple(begun: float, seconds: float) -> None:
    """Wait until a whole number of periods, at least one, has passed since `begun` (by `time.monotonic`)."""
    end = begun + seconds * max(1, math.ceil((time.monotonic() - begun) / seconds))
    while (left := end - time.monotonic()) > 0:
        if left > _SPIN:
            time.sleep(left - _SPIN)
