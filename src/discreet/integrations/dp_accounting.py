"""A guarantee as an event of Google's dp-accounting, for its accountants to compose with what else was released.

No event of that library says "epsilon-DP", but one is exactly as bad as that can be. Discrete Laplace noise of rate
epsilon on a count that moves by 1 has a privacy loss of epsilon, with probability 1 / (1 + exp(-epsilon)), or else of
-epsilon. Whatever tells neighbours apart with epsilon-DP can be made from that coin (Kairouz, Oh and Viswanath, 2015),
so an accountant that composes such coins never says less than what is lost.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, MissingExtraError, quote
from discreet.exact.ball import float_above
from discreet.text import round_up

if TYPE_CHECKING:
    from discreet.release.guarantee import Guarantee

ACCOUNTANTS = ("pld", "rdp")


def event(guarantee: Guarantee, accountant: str | None = None, without_delta: bool = False) -> Any:
    """The event of a guarantee for one of the two accountants; see `Guarantee.to_dp_event`."""
    events = _dp_event()
    kind = _check_accountant(accountant, guarantee.adjacency)
    if guarantee.epsilon == 0:
        return events.NoOpDpEvent()
    if guarantee.delta and not without_delta:
        raise InvalidValueError(
            f"without_delta must be True for a guarantee with a delta, {round_up(guarantee.delta)}: no event of "
            "dp-accounting has one, so that you have to take it off the delta that you ask the accountant for"
        )
    if kind == "rdp":
        rho = float_above(guarantee.zcdp)
        return events.ZCDpEvent(rho) if rho < math.inf else events.NonPrivateDpEvent()
    costs = guarantee.discovery_epsilon, guarantee.selection_epsilon, guarantee.counts_epsilon
    parts = [_pure(events, cost) for cost in costs if cost]
    return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)


def _pure(events: Any, epsilon: Fraction) -> Any:
    """An event whose loss is epsilon or -epsilon; more noise has a smaller parameter, so it is rounded up."""
    rate = float_above(epsilon)
    return events.DiscreteLaplaceDpEvent(rate, 1) if rate < math.inf else events.NonPrivateDpEvent()


def _check_accountant(accountant: Any, adjacency: str) -> str:
    """The accountant to make an event for; by default one that takes this adjacency.

    For records that are replaced, the PLD accountant takes no discrete Laplace noise. It takes randomized response,
    which is the same coin, but dp-accounting 0.6 counts n times that as once: nobody should be handed such an event.
    """
    if accountant is None:
        return "pld" if adjacency == "add-remove" else "rdp"
    if not isinstance(accountant, str) or accountant not in ACCOUNTANTS:
        raise InvalidValueError(f"accountant must be 'pld', 'rdp' or left out, not {quote(accountant)}")
    if accountant == "pld" and adjacency == "swap":
        raise InvalidValueError("accountant must be 'rdp' or left out for the adjacency 'swap', not 'pld'")
    return accountant


def _dp_event() -> Any:
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise MissingExtraError('dp-accounting is not installed: pip install "dp-accounting>=0.6"') from None
    return dp_event
