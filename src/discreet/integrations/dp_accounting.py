"""Convert a guarantee to an event of Google's dp-accounting, for its accountants to compose with other releases.

That library has no event for epsilon-DP, but its discrete Laplace event is the worst epsilon-DP mechanism: such noise
of rate epsilon on a count of sensitivity 1 has the privacy loss epsilon with probability 1 / (1 + exp(-epsilon)), and
-epsilon otherwise. Every epsilon-DP mechanism is a post-processing of that coin (Kairouz, Oh and Viswanath, 2015), so
an accountant that composes such coins never understates the loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, MissingExtraError, quote
from discreet.exact.ball import float_above
from discreet.text import round_up

if TYPE_CHECKING:
    from discreet.release.guarantee import Guarantee

ACCOUNTANTS = ("pld", "rdp")


def event(guarantee: Guarantee, accountant: str | None = None, without_delta: bool = False) -> Any:
    """Return the event of a guarantee for one of the two accountants; see `Guarantee.to_dp_event`."""
    try:
        from dp_accounting import dp_event as events
    except ImportError:
        raise MissingExtraError('dp-accounting is not installed: pip install "dp-accounting>=0.6"') from None
    if accountant is None:
        # Under swap the PLD accountant takes no discrete Laplace noise. It takes randomized response, which is the same
        # coin, but dp-accounting 0.6 counts n of those as one, so no such event is returned.
        accountant = "pld" if guarantee.adjacency == "add-remove" else "rdp"
    elif not isinstance(accountant, str) or accountant not in ACCOUNTANTS:
        raise InvalidValueError(f"accountant must be 'pld', 'rdp' or left out, not {quote(accountant)}")
    elif accountant == "pld" and guarantee.adjacency == "swap":
        raise InvalidValueError("accountant must be 'rdp' or left out for the adjacency 'swap', not 'pld'")
    if guarantee.epsilon == 0:
        return events.NoOpDpEvent()
    if guarantee.delta and not without_delta:
        raise InvalidValueError(
            f"without_delta must be True for a guarantee with a delta, {round_up(guarantee.delta)}: no event of "
            "dp-accounting has one, so that you have to take it off the delta that you ask the accountant for"
        )
    if accountant == "rdp":
        rho = float_above(guarantee.zcdp)
        return events.ZCDpEvent(rho) if rho < math.inf else events.NonPrivateDpEvent()
    # The parameter of the noise is rounded up: a larger one means less noise and a larger loss.
    costs = (
        guarantee.discovery_epsilon, guarantee.selection_epsilon, guarantee.counts_epsilon, guarantee.shortfall_epsilon
    )  # fmt: skip
    rates = [float_above(cost) for cost in costs if cost]
    parts = [events.DiscreteLaplaceDpEvent(r, 1) if r < math.inf else events.NonPrivateDpEvent() for r in rates]
    return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)
