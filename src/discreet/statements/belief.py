"""How sure somebody who looks at a release can become about one person, who was in the data with even odds before.

Under pure epsilon the odds change by a factor of at most e^epsilon, so that nobody can become surer than e^epsilon /
(1 + e^epsilon). With a delta there is no bound for single outcomes; but whoever guesses is right with a chance of at
most 1/2 + TV/2, where the total variation TV is at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), and that is
(e^epsilon + delta) / (1 + e^epsilon).
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.exact.ball import ball, precision

_BITS = 512
_MOST_PLACES = 6
_CERTAIN = Fraction(64)
"""From this epsilon on the bound is 1 to more places than are ever printed."""


def bound_belief(epsilon: Fraction, delta: Fraction) -> Fraction:
    """At least (e^epsilon + delta) / (1 + e^epsilon), and more than that by less than 2^-500.

    Examples
    --------
    >>> float(bound_belief(Fraction(1), Fraction(0)))
    0.7310585786300049
    """
    if epsilon >= _CERTAIN:
        return Fraction(1)
    with precision(_BITS):
        rest = (-ball(epsilon)).exp()
        mantissa, exponent = ((1 + ball(delta) * rest) / (1 + rest)).upper().man_exp()
    return min(Fraction(1), Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def belief_percent(epsilon: Fraction, delta: Fraction = Fraction(0)) -> str:
    """The bound in percent, rounded up: one place at least, and as many as show that it is not 50 and not 100.

    Examples
    --------
    >>> [belief_percent(Fraction(epsilon)) for epsilon in ("0.001", "1", "10", "40")]
    ['50.03%', '73.2%', '99.996%', '100%']
    """
    percent = 100 * bound_belief(epsilon, delta)
    places = max(1, _first_place(100 - percent), _first_place(percent - 50))
    rounded = math.ceil(percent * 10**places)
    if rounded >= 100 * 10**places:
        return "100%"
    whole, part = divmod(rounded, 10**places)
    return f"{whole}.{part:0{places}}%"


def _first_place(number: Fraction) -> int:
    """After how many decimal places a number of zero or more shows its first digit; at most as many as are printed."""
    return next((places for places in range(_MOST_PLACES) if number * 10**places >= 1), _MOST_PLACES)
