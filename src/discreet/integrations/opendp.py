"""OpenDP Measurements that release the top-k of a vector of scores, under the L-infinity distance.

A mechanism depends on epsilon and the sensitivity only through s = epsilon / (2 delta), and delta grows with the
distance, so one made for epsilon at distance 1 loses x epsilon at distance x. `Canonical(ceil=True)` also rounds losses
up to steps of delta: losses x steps apart are at most ceil(x) apart after rounding, so it loses ceil(x) epsilon.
The histogram uses the L1 distance: with noise of scale 1 / epsilon on every score it loses x epsilon at distance x.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, MissingExtraError, quote
from discreet.exact.ball import float_above
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Number, Sensitivity, positive
from discreet.release.release import Shortfall
from discreet.release.request import make_request
from discreet.release.topk import top_k
from discreet.sources.arrays.array import ArraySource

if TYPE_CHECKING:
    from opendp.mod import Domain, Measurement, Metric, _PartialConstructor

_KINDS: dict[str, type[np.generic]] = {
    "i32": np.int64,
    "i64": np.int64,
    "u32": np.uint64,
    "u64": np.uint64,
    "usize": np.uint64,
    "f32": np.float64,
    "f64": np.float64,
}
"""OpenDP's types of scores, and NumPy types that hold each exactly and sort fast."""


def make_top_k(
    input_domain: Domain,
    input_metric: Metric,
    k: int,
    epsilon: Number,
    mechanism: Mechanism | None = None,
    negate: bool = False,
    shortfall: Number | None = None,
) -> Measurement:
    """Return an OpenDP Measurement that releases the positions of the k highest scores of a vector.

    It uses OpenDP's `make_user_measurement`, so you must enable "contrib" and "honest-but-curious" yourself.

    Parameters
    ----------
    input_domain
        A `vector_domain` of whole numbers or floats, with a size and without NaN. Infinite scores are replaced by the
        largest and the lowest float, and an unexpected NaN by the lowest: no score raises an error.
    input_metric
        `linf_distance`. If it is monotonic, all scores of neighbours move in one direction, and the same epsilon
        needs half the noise. With `Histogram()`, `l1_distance`.
    k
        The number of positions to release.
    epsilon
        The privacy loss at distance 1, taken exactly. At distance x it is x epsilon, or ceil(x) epsilon with
        `Canonical(ceil=True)`, rounded up to a float; 0 if k is the size, because then all positions are released.
    mechanism
        The mechanism; `Canonical()` by default.
    negate
        Release the k lowest scores instead, as in OpenDP's `make_noisy_top_k`.
    shortfall
        Release a bound on the shortfall too, as in `top_k`, for this epsilon at distance 1 in addition; "auto" takes a
        tenth of epsilon itself. Scores must be whole numbers, and k below the size. At distance x it costs x times as
        much with every mechanism.

    Returns
    -------
    Measurement
        A function that returns a list of positions: best first if the mechanism releases an order, otherwise ascending,
        which is independent of the scores. With `shortfall` it returns a pair of that list and a `Shortfall`, or None
        if no position is released.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = dp.vector_domain(dp.atom_domain(T=int), size=4), dp.linf_distance(T=int, monotonic=True)
    >>> select = make_top_k(*space, k=2, epsilon=100)
    >>> select([5, 90, 1, 80])
    [1, 3]
    >>> select.map(2)
    200.0
    >>> judged = make_top_k(*space, k=2, epsilon=100, shortfall=50)
    >>> positions, shortfall = judged([5, 90, 1, 80])
    >>> shortfall.value
    -75
    >>> judged.map(2)
    300.0
    """
    dp = _opendp()
    if not isinstance(input_domain, dp.VectorDomain):
        raise InvalidTypeError(
            f"input_domain must be a vector_domain of numbers with a size, not {quote(input_domain)}"
        )
    if input_domain.size is None:
        raise InvalidValueError(
            f"input_domain must have a size, as in vector_domain(..., size=3), not {quote(input_domain)}"
        )
    size, element = int(input_domain.size), input_domain.element_domain
    kind = str(element.carrier_type) if isinstance(element, dp.AtomDomain) else None
    if kind not in _KINDS:
        raise InvalidTypeError(f"input_domain must be of {', '.join(_KINDS)}, not {quote(input_domain)}")
    if element.nan:
        raise InvalidValueError(f"input_domain must be of atom_domain(T={kind}, nan=False), not {quote(input_domain)}")
    metric = str(input_metric) if isinstance(input_metric, dp.Metric) else ""
    if isinstance(mechanism, Mechanism) and mechanism.releases_values:
        if not metric.startswith("L1Distance("):
            raise InvalidTypeError(
                f"input_metric must be l1_distance(T=...) for noise on all scores, not {quote(input_metric)}"
            )
        # L1 distance 1 is as one user who moves one score by 1.
        sensitivity = Sensitivity(down=1, up=1, items=1)
    else:
        if not metric.startswith("LInfDistance("):
            raise InvalidTypeError(
                f"input_metric must be linf_distance(T=..., monotonic=...), not {quote(input_metric)}"
            )
        # OpenDP shows the flag through comparison alone; a metric not known as monotonic gets noise both ways.
        is_monotonic = input_metric == dp.linf_distance(T=input_metric.distance_type, monotonic=True)
        sensitivity = Sensitivity(down=0 if is_monotonic else 1, up=1)
    if not isinstance(negate, bool):
        raise InvalidTypeError(f"negate must be True or False, not {quote(negate)}")
    # The guarantee depends on the number and the type of the scores alone; these zeros take no memory.
    zeros = np.broadcast_to(_KINDS[kind](0), size)
    source = ArraySource(zeros, grid=None if zeros.dtype.kind == "f" else Fraction(1))
    guarantee = make_request(
        source, k, epsilon, mechanism=mechanism, sensitivity=sensitivity, shortfall=shortfall
    ).guarantee
    chosen, budget = guarantee.mechanism, positive(epsilon, "epsilon")

    def function(scores: list[Any]) -> list[int] | tuple[list[int], Shortfall | None]:
        if len(scores) != size:
            # The L-infinity distance is defined for vectors of one length, so the length distinguishes no neighbours.
            raise InvalidValueError(f"scores must be a vector of {size}, the size of input_domain, not {len(scores)}")
        values = np.array(scores, _KINDS[kind])
        if values.dtype.kind == "f":
            # An infinite score is infinitely far from every other, so its replacement matters to no neighbour.
            values = np.nan_to_num(-values if negate else values, nan=-np.finfo(np.float64).max)
        elif negate:
            # ~x = -1 - x, or 2^64 - 1 - x unsigned: distances stay, and a selection depends on distances alone.
            values = ~values
        release = top_k(values, int(k), budget, mechanism=chosen, sensitivity=sensitivity, shortfall=shortfall)
        positions: list[int] = release.items if release.order is None else release.order
        return positions if shortfall is None else (positions, release.shortfall)

    def privacy_map(d_in: float) -> float:
        if not d_in >= 0:
            raise InvalidValueError(f"d_in must be a distance of zero or more, not {quote(d_in)}")
        if guarantee.epsilon == 0:
            return 0.0
        if d_in == math.inf:
            return math.inf
        distance = Fraction(d_in)
        selection = guarantee.selection_epsilon * (distance if chosen.is_linear else math.ceil(distance))
        # The lead moves by at most x times its sensitivity, which is a whole number of steps.
        return float_above(selection + guarantee.shortfall_epsilon * distance)

    output = "Vec<usize>" if shortfall is None else "ExtrinsicObject"
    return dp.m.make_user_measurement(  # type: ignore[no-any-return]  # it is not typed
        input_domain, input_metric, dp.max_divergence(), function, privacy_map, TO=output
    )


def then_top_k(
    k: int,
    epsilon: Number,
    mechanism: Mechanism | None = None,
    negate: bool = False,
    shortfall: Number | None = None,
) -> _PartialConstructor:
    """Apply `make_top_k` to the output of a transformation, as in `transformation >> then_top_k(k=3, epsilon=1)`.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> ages = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    >>> score = dp.t.make_quantile_score_candidates(*ages, candidates=[20.0, 40.0, 60.0], alpha=0.5)
    >>> median = score >> then_top_k(k=1, epsilon=100, negate=True)
    >>> median([31.0, 36.0, 44.0, 52.0, 39.0])
    [1]
    """
    return _opendp()._PartialConstructor(  # type: ignore[no-any-return]  # it is not typed
        lambda input_domain, input_metric: make_top_k(
            input_domain, input_metric, k, epsilon, mechanism, negate, shortfall
        )
    )


def _opendp() -> Any:
    try:
        import opendp.prelude
    except ImportError:
        raise MissingExtraError('OpenDP is not installed: pip install "opendp>=0.14,<0.17"') from None
    return opendp.prelude
