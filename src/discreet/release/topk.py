"""top_k: the one assembly, from a source of scores to a release.

A source gives a tally, a mechanism is prepared on it, a draw selects ranks, the source names the items at them, and
that is the release.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from discreet.errors import InternalError, InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.exact.discrete import sample_discrete_laplace
from discreet.exact.entropy import Entropy, as_entropy
from discreet.labels import sort_key, sort_labels
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Number, Sensitivity
from discreet.release.padding import Padding, check_auto
from discreet.release.release import Release
from discreet.release.request import Request, make_request
from discreet.sources.arrays.array import is_tensor, is_typed
from discreet.sources.base import AnySource, Chosen, GroupedSource, Source
from discreet.sources.events.engine import EngineError
from discreet.sources.scores import as_any_source

if TYPE_CHECKING:
    from discreet.ledger.charges import Charge
    from discreet.ledger.ledger import Ledger
    from discreet.release.discovery import DiscoveryRequest
    from discreet.release.grouped import AnyRelease, GroupedRelease
    from discreet.release.grouped_draw import GroupedRequest
    from discreet.release.sketch import Sketch
    from discreet.release.sketch_draw import SketchRequest
    from discreet.sources.discovered import UnlistedGroups


# What a release of any kind is asked for: of one list of items, of one for each group, or of items to be found.

AnyRequest: TypeAlias = "Request | GroupedRequest | DiscoveryRequest"


def make_any_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> AnyRequest:
    """The request that the arguments of `top_k` describe, by group where the scores are, or for items to be found."""
    if isinstance(scores, Source) or not isinstance(scores, AnySource):
        return make_request(scores, k, epsilon, **terms)
    if isinstance(scores, GroupedSource):
        from discreet.release.grouped_draw import make_grouped_request

        return make_grouped_request(scores, k, epsilon, **terms)
    from discreet.release.discovery import make_discovery_request
    from discreet.sources.discovered import UnlistedSource

    assert isinstance(scores, UnlistedSource), "there is no other kind of source"
    return make_discovery_request(scores, k, epsilon, **terms)


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
    if padding.is_auto and not isinstance(scores, AnySource):
        check_auto(is_tensor(scores) or is_typed(scores))
    if isinstance(scores, AnySource):
        padding.add_elapsed(scores.opening_seconds())
    delta = scores.delta if isinstance(scores, AnySource) else Fraction(0)
    given = [scores, labels]
    # What the caller keeps nowhere else is freed with the source, before the wait.
    del scores, labels

    def open_source() -> AbstractContextManager[AnySource]:
        names, values = given.pop(), given.pop()
        return nullcontext(as_any_source(values, names))

    ask = partial(
        make_any_request, k=k, epsilon=epsilon, mechanism=mechanism, sensitivity=sensitivity, adjacency=adjacency,
        counts=counts, split=split,
    )  # fmt: skip
    charge = plan_charge(ledger, purpose, request_id, dataset, rng, delta)
    release: AnyRelease = release_from(open_source, ask, padding, charge, rng)
    return release


def release_from(
    open_source: Callable[[], AbstractContextManager[Any]],
    ask: Callable[[Any], AnyRequest | SketchRequest],
    padding: Padding,
    charge: Charge | None = None,
    rng: Any = None,
) -> Any:
    """What `top_k` or `sketch` returns, from a source that is opened here and let go before anything is seen outside.

    Everything that takes private time, freeing the scores with the rest, happens before a wait; what comes after one
    sees the release alone. With a ledger the charge can be seen too, on the file, so that it has a wait of its own.
    """

    def select(prepared: Prepared) -> Selection:
        return prepared.select(entropy)

    with padding.delay_errors():
        record, release = None, None
        try:
            with open_source() as source:
                request, entropy = ask(source), as_entropy(rng)
                if padding.is_auto:
                    padding.choose_period(request.workload)
                if charge is not None:
                    query = charge.query(request)
                    if charge.is_new():
                        request.source.probe()
                        charge.check_room(query)
                    padding.wait()
                    record, release = charge.spend(query)
                if release is None:
                    noise = count_noise(entropy)
                    with tell_spent(record is not None):
                        release = draw_any(request, select, noise, rng is None, entropy)
                # The last references to the source: it goes when it is let go.
                del source, request
        except InternalError:
            try:
                padding.wait()
            finally:
                if charge is not None and record is not None:
                    charge.lock(record)
            raise
        padding.wait()
        if charge is not None and record is not None:
            charge.keep(record, release)
        return release


@contextmanager
def tell_spent(is_charged: bool) -> Iterator[None]:
    """Raise a failure of an engine inside with the words that it stays spent, if it was charged before."""
    try:
        yield
    except EngineError as error:
        if not is_charged:
            raise
        raise EngineError(f"{error}; it was charged before, and what it cost stays spent") from None


def plan_charge(
    ledger: Any, purpose: Any, request_id: Any, dataset: Any, rng: Any = None, delta: Fraction = Fraction(0)
) -> Charge | None:
    """What a release will be charged to and as what; None without a ledger, which is where all of that is written.

    `delta` is that of the release, where it has one: a ledger that has none for it is refused before anything is read.
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


def count_noise(entropy: Entropy) -> Callable[[Fraction], int]:
    """What draws the noise of counts: n with probability exactly proportional to exp(-rate |n|), for any rate."""
    return partial(sample_discrete_laplace, entropy)


def draw_any(
    request: AnyRequest | SketchRequest,
    draw: Callable[[Prepared], Selection],
    noise: Callable[[Fraction], int] | None = None,
    private: bool = True,
    entropy: Entropy | None = None,
) -> AnyRelease | Sketch:
    """The release of what `draw` selects, by group where the request is; `entropy` finds items that nobody listed.

    A sketch selects nothing, and is all noise.
    """
    if isinstance(request, Request):
        return draw_release(request, draw, noise, private)
    from discreet.release.discovery import DiscoveryRequest
    from discreet.release.grouped_draw import GroupedRequest

    if isinstance(request, GroupedRequest):
        from discreet.release.grouped_draw import draw_grouped_release

        return draw_grouped_release(request, draw, noise, private)
    if isinstance(request, DiscoveryRequest):
        from discreet.release.discovery import draw_discovery_release

        return draw_discovery_release(request, draw, noise, private, entropy or Entropy())
    from discreet.release.sketch_draw import draw_sketch

    return draw_sketch(request, noise or count_noise(entropy or Entropy()), private)


def draw_release(
    request: Request,
    draw: Callable[[Prepared], Selection],
    noise: Callable[[Fraction], int] | None = None,
    private: bool = True,
) -> Release:
    """The release of what `draw` selects, with counts where the request has them and `noise` to add.

    The one way from ranks to what the caller sees: the verifier walks it with every choice in turn.
    """
    scored = request.count_mechanism is not None
    chosen: Chosen
    drawn = Drawn()
    if request.takes_all_items and not scored:
        chosen = request.source.every_item(), []
    else:
        # Whether a float overflows depends on the scores: no setting of the caller's may turn that into an error.
        with np.errstate(all="ignore"):
            chosen = request.source.select_items(partial(choose_ranks, request, draw, drawn), scored)
    return make_release(request, chosen, drawn, noise, private)


@dataclass
class Drawn:
    """What is released beside the items: values, in steps, and which candidate was chosen, where there are any."""

    values: list[int] = field(default_factory=list)
    chosen: str | None = None


def choose_ranks(request: Request, draw: Callable[[Prepared], Selection], drawn: Drawn, tally: Tally) -> Selection:
    """Return what `draw` selects of the mechanism on a tally, or everything where the request takes all items.

    What comes with it is noted in `drawn`, as long as the tally is there to make values of.
    """
    prepared = request.prepare_draw(tally)
    if prepared is None:
        return Selection(np.arange(request.k))
    selection = draw(prepared)
    if selection.values is not None and request.value_format is not None:
        drawn.values = selection.values.to_steps(request.value_format.grid)
    drawn.chosen = selection.chosen
    return selection


def make_release(
    request: Request, chosen: Chosen, drawn: Drawn, noise: Callable[[Fraction], int] | None, private: bool
) -> Release:
    """Return the release of the chosen items, with their values, or with noise on their scores, where there are any."""
    (items, scores), counted, form = chosen, request.count_mechanism, request.value_format
    listed = check_items(items, request.k, request.guarantee.mechanism.may_release_fewer)
    has_order = request.guarantee.mechanism.ordered and not request.takes_all_items
    order = (items.tolist() if isinstance(items, np.ndarray) else items) if has_order else None
    counts = None if counted is None or noise is None else counted.add_noise(list(items), scores, noise)
    if form is not None and drawn.values:
        # In the released order, which is that of the values before they are rounded.
        counts = [form.make_count(item, steps) for item, steps in zip(order or [], drawn.values, strict=True)]
    asked = request.k if request.guarantee.mechanism.may_release_fewer else None
    return Release(listed, order, request.d, request.guarantee, private, counts, asked, drawn.chosen)


def check_items(items: list[Any] | Ranks, k: int, may_be_fewer: bool) -> list[Any]:
    """Return the items sorted by label; raise InternalError unless they are distinct, and k or, if allowed, fewer."""
    listed = sort_labels(items)
    # Equality knows nothing of the two hours of a clock that is set back, and keys do.
    kinds = {type(item) for item in listed}
    simple = kinds <= {str} or kinds <= {int}
    distinct = len(set(listed if simple else map(sort_key, listed)))
    if distinct < len(listed) or not (len(listed) == k or (may_be_fewer and len(listed) < k)):
        raise InternalError
    return listed
