"""Where canonical has a better tail bound than peeling: a comparison of two upper bounds, not of two mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.analysis.bounds.arguments import check_alpha, check_positive_gamma, check_sizes
from discreet.analysis.bounds.rounding import precise
from discreet.analysis.bounds.tails import canonical_tail, peeling_tail, rounds_height, subsets_height
from discreet.exact.ball import ball
from discreet.noise import GUMBEL
from discreet.privacy import Number, Sensitivity, exact


@dataclass(frozen=True)
class Tails:
    """The tail bounds of canonical and of peeling for one (d, k), and whether canonical's is the smaller.

    The two numbers are rounded up; `canonical_is_better` is decided before that, and True only where it is certain.
    """

    canonical: float
    peeling: float
    canonical_is_better: bool


def compare_tails(
    d: int,
    k: int,
    epsilon: Number,
    alpha: Number,
    *,
    gamma: Number = "1/2",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> Tails:
    """The tail bounds of canonical and of peeling side by side, under Gumbel, exponential or half-logistic noise.

    This compares two upper bounds on how far below x[k] the worst released item is. The smaller bound is the better
    promise; it does not show that the mechanism is better on any scores. Which bound is smaller depends neither on
    epsilon nor on the sensitivity.

    Parameters
    ----------
    d, k, epsilon, alpha, gamma, sensitivity, adjacency
        As in `canonical_tail`.

    Returns
    -------
    Tails
        Both bounds, and whether that of canonical is the smaller.

    Examples
    --------
    >>> compare_tails(1000, 10, epsilon=1, alpha="0.05").canonical_is_better
    True
    >>> compare_tails(1000, 3, epsilon=1, alpha="0.05").canonical_is_better
    False
    """
    options: dict[str, Any] = {"sensitivity": sensitivity, "adjacency": adjacency}
    canonical = canonical_tail(d, k, epsilon, alpha, gamma=gamma, **options)
    peeling = peeling_tail(d, k, epsilon, alpha, **options)
    return Tails(canonical, peeling, _is_better(int(d), int(k), check_alpha(alpha), exact(gamma, "gamma")))


def smallest_k(d: int, alpha: Number, *, gamma: Number = "1/2") -> int | None:
    """The smallest k at which canonical's tail bound is below that of peeling: it then is for all k from there to d-1.

    Divide both bounds by k/s. That of peeling, log d + log(1/a), grows with k, because a falls. That of canonical is
    (log C(d, k) + log(1/alpha)) / (gamma k), which falls: log C(d, k) is the sum of log((d-j+1)/j) for j up to k, whose
    terms fall, and so does their mean. Hence they cross once. (With k = d all items are released: nothing to compare.)

    As in `compare_tails`, this is about two upper bounds and not about the mechanisms.

    Parameters
    ----------
    d, alpha, gamma
        As in `canonical_tail`.

    Returns
    -------
    int or None
        The smallest such k, or None where there is none below d.

    Examples
    --------
    >>> smallest_k(1000, alpha="0.05"), smallest_k(1000, alpha="0.05", gamma=1)
    (8, 2)
    """
    d, _ = check_sizes(d, 1)
    level, share = check_alpha(alpha), check_positive_gamma(gamma, "there is no bound for gamma = 0")
    low, high = 1, d
    while low < high:
        middle = (low + high) // 2
        if _is_better(d, middle, level, share):
            high = middle
        else:
            low = middle + 1
    return low if low < d else None


def _is_better(d: int, k: int, level: Fraction, share: Fraction) -> bool:
    """Whether canonical's tail bound is certainly below that of peeling, both times s."""
    bits, tail = 128, GUMBEL.require_pairwise_tail()
    # The two can be equal, as at d = 4, k = 2, level = 3/4, gamma = 1/2: then no precision tells them apart.
    while bits <= 2048:
        with precise(d, bits):
            canonical = subsets_height(d, k, level, tail) / ball(share)
            peeling = rounds_height(d, k, level, tail)
            if canonical < peeling:
                return True
            if canonical > peeling:
                return False
        bits *= 2
    return False
