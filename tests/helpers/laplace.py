"""The discrete Laplace distribution by its formulas, for tests of what the sampler draws."""

from discreet.exact.ball import ball
from discreet.exact.discrete import upper_tail


def log_probability(rate, n):
    """A ball around the log probability of n."""
    # Pr[n] = (1 - q) / (1 + q) q^|n| with q = exp(-rate).
    return (-(-ball(rate)).expm1()).log() - (-ball(rate)).exp().log1p() - ball(rate * abs(n))


def tail_probability(rate, n):
    """A ball around Pr[|N| > n] for n >= 0."""
    return 2 * upper_tail(rate, n + 1)
