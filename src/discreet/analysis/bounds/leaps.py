"""How often canonical releases the top-k, and how often not, from how far the scores are apart: two lower bounds."""

from __future__ import annotations

from flint import arb

from discreet.analysis.bounds.public import not_negative, setting, share_of_worst
from discreet.analysis.bounds.race import one_against
from discreet.analysis.bounds.rounding import below
from discreet.exact.ball import log_binomial
from discreet.mechanisms.canonical import check_gamma
from discreet.privacy import Number, Sensitivity


def canonical_leap(
    d: int,
    k: int,
    epsilon: Number,
    gap: Number,
    *,
    gamma: Number = "1/2",
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """A probability with which canonical releases the top-k if x[k] - x[k+1] is at least `gap`.

    Let N be the largest of n = C(d, k) - 1 independent noises less one more, and X = N / (s gamma). Then
    Pr[TOP] >= Pr[X < x[k] - x[k+1]], because every other subset is behind the top-k by
    s ((1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t])) >= s gamma (x[k] - x[k+1]) as h+1 <= k and t >= k+1. If all of
    them were exactly so far behind, the top-k would win with probability Pr[N < s gamma (x[k] - x[k+1])], and moving
    them further back only helps it. Under Gumbel noise N is logistic about log n, so this is
    1 / (1 + n exp(-s gamma gap)); for the others see `race`. It holds for the loss rounded up (`ceil`) too.

    Parameters
    ----------
    d, k, epsilon, gamma, noise, sensitivity, adjacency
        As in `canonical_tail`.
    gap
        How far the k-th score is above the next one, at least: an assumption about the scores, zero or more.

    Returns
    -------
    float
        A lower bound on Pr[TOP], rounded down: for Gumbel noise in its last digit, for the others by up to 2^-40.

    Examples
    --------
    >>> round(canonical_leap(1000, 10, epsilon=1, gap=120), 4)
    0.9977
    >>> round(canonical_leap(1000, 10, epsilon=1, gap=120, noise="exponential"), 4)
    0.9988
    """
    given = setting(d, k, epsilon, noise, sensitivity, adjacency)
    share = share_of_worst(gamma, "the gap is below the k-th score, where the loss does not look with gamma = 0")
    v = given.s * share * not_negative(gap, "gap")
    if given.k == given.d:
        return 1.0
    return below(lambda: one_against(noise, v, _log_others(given.d, given.k))[0], given.d)


def canonical_miss(
    d: int,
    k: int,
    epsilon: Number,
    spread: Number,
    *,
    gamma: Number = "1/2",
    noise: str = "gumbel",
    sensitivity: Sensitivity | None = None,
    adjacency: str = "add-remove",
) -> float:
    """A probability with which canonical does not release the top-k if x[1] - x[d] is at most `spread`.

    With N as in `canonical_leap` and X = N / (s gamma), for gamma >= 1/2, Pr[not TOP] >= Pr[X > x[1] - x[d]]. For every
    other subset is behind the top-k by s ((1-gamma) (x[h+1] - x[k]) + gamma (x[k] - x[t])), a weighted sum of two parts
    of x[1] - x[d], and so by at most s max(gamma, 1-gamma) (x[1] - x[d]); moving them back that far only helps the
    top-k. For gamma < 1/2 the same holds with 1-gamma in place of gamma. Of the n = C(d, k) - 1 others each one counts:
    with one more, a dummy subset that is no subset of the items, it would be false. TOP is by rank: under ties the
    release may be as good and still not be the one that comes first. It does not cover `ceil`.

    Parameters
    ----------
    d, k, epsilon, noise, sensitivity, adjacency
        As in `canonical_tail`.
    spread
        How far the largest score is above the smallest, at most: an assumption about the scores, zero or more.
    gamma
        The gamma of the mechanism, which may be 0 here.

    Returns
    -------
    float
        A lower bound on Pr[not TOP], rounded down: for Gumbel noise in its last digit, for the others by up to 2^-40.

    Examples
    --------
    >>> round(canonical_miss(1000, 10, epsilon=1, spread=100), 4)
    0.9807
    """
    given = setting(d, k, epsilon, noise, sensitivity, adjacency)
    share = check_gamma(gamma)
    v = given.s * max(share, 1 - share) * not_negative(spread, "spread")
    if given.k == given.d:
        return 0.0
    return below(lambda: one_against(noise, v, _log_others(given.d, given.k))[1], given.d)


def _log_others(d: int, k: int) -> arb:
    """A ball around log(C(d, k) - 1), for k < d."""
    log_all = log_binomial(d, k)
    return log_all + (-(-log_all).exp()).log1p()
