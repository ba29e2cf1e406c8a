"""The guarantee of a release: exact privacy parameters that accountants and ledgers add up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, MissingExtraError, quote
from discreet.exact.ball import float_above
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import from_dict as mechanism_from_dict
from discreet.mechanisms.registry import to_dict as mechanism_to_dict
from discreet.privacy import Sensitivity, fraction_from_json, spell_exactly
from discreet.text import repr_with_decimals, round_up

if TYPE_CHECKING:
    from discreet.mechanisms.partition_selection import PartitionSelection


@dataclass(frozen=True, repr=False)
class Guarantee:
    """The privacy guarantee of a release.

    Attributes
    ----------
    epsilon
        The total epsilon of pure differential privacy, as an exact fraction.
    adjacency
        "add-remove" or "swap": the difference between two neighbouring inputs.
    sensitivity
        The furthest that a score can move between neighbours.
    mechanism
        The mechanism that made the release.
    zcdp
        The rho of zero-concentrated differential privacy, for composition; `zcdp_delta`-approximate with a discovery.
    counts_epsilon
        The part of epsilon that the counts cost; 0 without counts, and for groups that divide epsilon differently.
    discovery
        The partition selection that found the items, or None for items of a public list.
    shortfall_epsilon
        The part of epsilon that the shortfall costs; 0 without one.
    """

    epsilon: Fraction
    adjacency: str
    sensitivity: Sensitivity
    mechanism: Mechanism
    zcdp: Fraction
    counts_epsilon: Fraction = Fraction(0)
    discovery: PartitionSelection | None = None
    shortfall_epsilon: Fraction = Fraction(0)

    def __repr__(self) -> str:
        shown = repr_with_decimals(self, round_up)
        if not self.zcdp_delta:
            return shown
        rho = f", zcdp={round_up(self.zcdp)}"
        return shown.replace(rho, f"{rho}, zcdp_delta={round_up(self.zcdp_delta)}", 1)

    @property
    def delta(self) -> Fraction:
        """The delta of (epsilon, delta)-differential privacy: 0 except for partition selection."""
        return Fraction(0) if self.discovery is None else self.discovery.delta

    @property
    def zcdp_delta(self) -> Fraction:
        """The delta of delta-approximate zCDP with the rho `zcdp`: 0 except for partition selection."""
        return Fraction(0) if self.discovery is None else self.discovery.zcdp_delta

    @property
    def threshold(self) -> int | None:
        """The approximate number of people that an item needs to be found; None for items of a public list."""
        return None if self.discovery is None else self.discovery.threshold

    @property
    def discovery_epsilon(self) -> Fraction:
        """The part of epsilon that finding the items costs; 0 for items of a public list."""
        return Fraction(0) if self.discovery is None else self.discovery.epsilon

    @property
    def selection_epsilon(self) -> Fraction:
        """The part of epsilon that the selection costs; the rest is for counts, shortfall and finding the items."""
        rest = self.epsilon - self.counts_epsilon - self.shortfall_epsilon
        return rest if self.discovery is None else rest - self.discovery.epsilon

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as JSON data; fractions are strings."""
        parts = {"counts_epsilon": self.counts_epsilon, "shortfall_epsilon": self.shortfall_epsilon}
        split = {name: str(part) for name, part in parts.items() if part}
        return {
            "epsilon": str(self.epsilon),
            "adjacency": self.adjacency,
            "sensitivity": self.sensitivity.to_dict(),
            "mechanism": mechanism_to_dict(self.mechanism),
            "zcdp": spell_exactly(self.zcdp),
            **({"selection_epsilon": str(self.selection_epsilon), **split} if split else {}),
            **({} if self.discovery is None else {"delta": str(self.delta), "discovery": self.discovery.to_dict()}),
        }

    def to_floats(self) -> dict[str, float]:
        """Return the parameters as the least floats not below the exact ones, without those above all floats.

        Examples
        --------
        >>> import discreet
        >>> discreet.top_k({"a": 3, "b": 1}, k=1, epsilon="1/4").guarantee.to_floats()
        {'epsilon': 0.25, 'zcdp': 0.0078125}
        """
        numbers = {"epsilon": self.epsilon, "zcdp": self.zcdp, **({"delta": self.delta} if self.discovery else {})}
        return {name: found for name, number in numbers.items() if isfinite(found := float_above(number))}

    def to_dp_event(self, accountant: str | None = None, without_delta: bool = False) -> Any:
        """Return the guarantee as a DpEvent of Google's dp-accounting, never stronger than it is.

        Parameters
        ----------
        accountant
            "pld" for a PLDAccountant: an event that loses exactly epsilon, only under add-remove. "rdp" for an
            RdpAccountant: the rho of zCDP, which is tighter for many releases and looser for few. By default "pld"
            under add-remove and "rdp" under swap. The accountant's relation must be that of the guarantee.
        without_delta
            Events of dp-accounting have no delta. With True the event covers epsilon alone, and you ask the accountant
            for a delta that is smaller by `delta`; otherwise a guarantee with a delta is refused.

        Returns
        -------
        DpEvent
            For "pld", the composition of the selection, the counts and the partition selection.

        Notes
        -----
        dp-accounting has no event for epsilon-DP, but its discrete Laplace event is the worst epsilon-DP mechanism:
        such noise of rate epsilon on a count of sensitivity 1 has the privacy loss epsilon with probability
        1 / (1 + exp(-epsilon)), and -epsilon otherwise. Every epsilon-DP mechanism is a post-processing of that coin
        (Kairouz, Oh and Viswanath, 2015), so an accountant that composes such coins never understates the loss.

        Examples
        --------
        >>> import discreet
        >>> guarantee = discreet.top_k({"a": 9, "b": 3}, k=1, epsilon="0.5").guarantee
        >>> guarantee.to_dp_event()  # doctest: +SKIP
        DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1)
        >>> guarantee.to_dp_event(accountant="rdp")  # doctest: +SKIP
        ZCDpEvent(rho=0.03125, xi=0.0)
        """
        try:
            from dp_accounting import dp_event as events
        except ImportError:
            raise MissingExtraError('dp-accounting is not installed: pip install "dp-accounting>=0.6"') from None
        if accountant is None:
            # Under swap the PLD accountant takes no discrete Laplace noise. It takes randomized response, which is the
            # same coin, but dp-accounting 0.6 counts n of those as one, so no such event is returned.
            accountant = "pld" if self.adjacency == "add-remove" else "rdp"
        elif not isinstance(accountant, str) or accountant not in ("pld", "rdp"):
            raise InvalidValueError(f"accountant must be 'pld', 'rdp' or left out, not {quote(accountant)}")
        elif accountant == "pld" and self.adjacency == "swap":
            raise InvalidValueError("accountant must be 'rdp' or left out for the adjacency 'swap', not 'pld'")
        if self.epsilon == 0:
            return events.NoOpDpEvent()
        if self.delta and not without_delta:
            raise InvalidValueError(
                f"without_delta must be True for a guarantee with a delta, {round_up(self.delta)}: no event of "
                "dp-accounting has one, so that you have to take it off the delta that you ask the accountant for"
            )
        if accountant == "rdp":
            rho = float_above(self.zcdp)
            return events.ZCDpEvent(rho) if rho < inf else events.NonPrivateDpEvent()
        # Rates of noise are rounded up, which never understates the privacy loss.
        finding = [self.discovery_epsilon, self.selection_epsilon]
        if self.discovery is not None and self.discovery.alternative is not None:
            # The alternative spends both parts on one noise.
            finding = [self.discovery_epsilon + self.selection_epsilon]
        costs = *finding, self.counts_epsilon, self.shortfall_epsilon
        rates = [float_above(cost) for cost in costs if cost]
        parts = [events.DiscreteLaplaceDpEvent(r, 1) if r < inf else events.NonPrivateDpEvent() for r in rates]
        return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Guarantee:
        """Return the guarantee that `to_dict` wrote."""
        sensitivity, mechanism = Sensitivity.from_dict(data["sensitivity"]), mechanism_from_dict(data["mechanism"])
        if mechanism.releases_values != (sensitivity.l1 is not None):
            raise ValueError
        found = data.get("discovery")
        if found is not None:
            from discreet.mechanisms.discovery import read_discovery

            found = read_discovery(found, data["delta"], data["adjacency"])
        made = cls(
            fraction_from_json(data["epsilon"], "epsilon"),
            data["adjacency"],
            sensitivity,
            mechanism,
            fraction_from_json(data["zcdp"], "zcdp"),
            fraction_from_json(data.get("counts_epsilon", 0), "counts_epsilon"),
            found,
            fraction_from_json(data.get("shortfall_epsilon", 0), "shortfall_epsilon"),
        )
        if min(made.counts_epsilon, made.shortfall_epsilon, made.selection_epsilon) < 0:
            raise ValueError
        return made
