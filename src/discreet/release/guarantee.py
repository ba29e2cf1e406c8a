"""Guarantee: what a release promises, in numbers that accountants and ledgers add up."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

from discreet.exact.ball import float_above
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import from_dict as mechanism_from_dict
from discreet.mechanisms.registry import to_dict as mechanism_to_dict
from discreet.privacy import Sensitivity, fraction_from_json, spell_exactly
from discreet.text import repr_with_decimals, round_up

if TYPE_CHECKING:
    from discreet.mechanisms.discovery import Discovery


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What a release promises.

    Attributes
    ----------
    epsilon
        The pure differential privacy parameter spent in all, as an exact fraction.
    adjacency
        "add-remove" or "swap": what two neighbouring inputs differ by.
    sensitivity
        How far a score can move between neighbours.
    mechanism
        The mechanism that made the release.
    zcdp
        The rho of zero-concentrated differential privacy, for composition.
    counts_epsilon
        How much of epsilon the counts cost; 0 without counts, and for groups that divide epsilon in different ways.
    discovery
        How items that nobody listed were found, or None where they come from a public list.
    """

    epsilon: Fraction
    adjacency: str
    sensitivity: Sensitivity
    mechanism: Mechanism
    zcdp: Fraction
    counts_epsilon: Fraction = Fraction(0)
    discovery: Discovery | None = None

    def __repr__(self) -> str:
        return repr_with_decimals(self, round_up)

    @property
    def delta(self) -> Fraction:
        """The delta of (epsilon, delta)-differential privacy: 0, but for items that nobody listed."""
        return Fraction(0) if self.discovery is None else self.discovery.delta

    @property
    def threshold(self) -> int | None:
        """About how many people an item that nobody listed needs to be found; None where there is a list."""
        return None if self.discovery is None else self.discovery.threshold

    @property
    def discovery_epsilon(self) -> Fraction:
        """How much of epsilon it costs to find the items; 0 where there is a list of them."""
        return Fraction(0) if self.discovery is None else self.discovery.epsilon

    @property
    def selection_epsilon(self) -> Fraction:
        """How much of epsilon the selection of the items costs; the rest is for the counts and for finding them."""
        rest = self.epsilon - self.counts_epsilon if self.counts_epsilon else self.epsilon
        return rest if self.discovery is None else rest - self.discovery.epsilon

    def to_dict(self) -> dict[str, Any]:
        """The guarantee in terms that JSON can hold; fractions are strings."""
        split = {"selection_epsilon": str(self.selection_epsilon), "counts_epsilon": str(self.counts_epsilon)}
        return {
            "epsilon": str(self.epsilon),
            "adjacency": self.adjacency,
            "sensitivity": self.sensitivity.to_dict(),
            "mechanism": mechanism_to_dict(self.mechanism),
            "zcdp": spell_exactly(self.zcdp),
            **(split if self.counts_epsilon else {}),
            **({} if self.discovery is None else {"delta": str(self.delta), "discovery": self.discovery.to_dict()}),
        }

    def to_floats(self) -> dict[str, float]:
        """Its numbers for programs that do without fractions: the least floats that are not below; none where none is.

        Examples
        --------
        >>> import discreet
        >>> discreet.top_k({"a": 3, "b": 1}, k=1, epsilon="1/4").guarantee.to_floats()
        {'epsilon': 0.25, 'zcdp': 0.0078125}
        """
        numbers = {"epsilon": self.epsilon, "zcdp": self.zcdp, **({"delta": self.delta} if self.discovery else {})}
        return {name: found for name, number in numbers.items() if isfinite(found := float_above(number))}

    def to_dp_event(self, accountant: str | None = None, without_delta: bool = False) -> Any:
        """The guarantee as a DpEvent of Google's dp-accounting, never better than it is.

        Parameters
        ----------
        accountant
            "pld" for a PLDAccountant: an event that loses exactly epsilon, only under add-remove. "rdp" for an
            RdpAccountant: the rho of zCDP, which is the better one for many releases and a poor one for few. By default
            "pld" under add-remove and "rdp" under swap. The accountant's relation must be that of the guarantee.
        without_delta
            No event there has a delta. With True the event is that of epsilon alone, and you ask the accountant for a
            delta that is less by `delta`; a guarantee that has one is refused otherwise.

        Returns
        -------
        DpEvent
            With counts and for "pld", the selection and the counts composed, and so is what finding the items cost.

        Examples
        --------
        >>> import discreet
        >>> guarantee = discreet.top_k({"a": 9, "b": 3}, k=1, epsilon="0.5").guarantee
        >>> guarantee.to_dp_event()  # doctest: +SKIP
        DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1)
        >>> guarantee.to_dp_event(accountant="rdp")  # doctest: +SKIP
        ZCDpEvent(rho=0.03125, xi=0.0)
        """
        from discreet.integrations.dp_accounting import event

        return event(self, accountant, without_delta)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote."""
        sensitivity, mechanism = Sensitivity.from_dict(data["sensitivity"]), mechanism_from_dict(data["mechanism"])
        if mechanism.releases_values != (sensitivity.l1 is not None):
            raise ValueError
        return cls(
            fraction_from_json(data["epsilon"], "epsilon"),
            data["adjacency"],
            sensitivity,
            mechanism,
            fraction_from_json(data["zcdp"], "zcdp"),
            fraction_from_json(data.get("counts_epsilon", 0), "counts_epsilon"),
            _read_discovery(data),
        )


def _read_discovery(data: dict[str, Any]) -> Discovery | None:
    found = data.get("discovery")
    if found is None:
        return None
    from discreet.mechanisms.discovery import Discovery

    return Discovery.from_dict(found, data["delta"], data["adjacency"])
