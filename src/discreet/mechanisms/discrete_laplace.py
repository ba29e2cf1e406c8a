"""Noise on scores that are released themselves: what a sketch is made by."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.privacy import Sensitivity
from discreet.tally import Tally


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace noise on scores: a guarantee names it, and as it selects no items nothing draws by it."""

    name: ClassVar[str] = "discrete-laplace"
    ordered: ClassVar[bool] = False

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        raise self._refusal

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        # epsilon-DP is epsilon^2/2-zCDP (Bun and Steinke, 2016, proposition 1.4).
        return epsilon**2 / 2

    def parameters(self) -> dict[str, Any]:
        return {}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        raise self._refusal

    @property
    def is_drawable(self) -> bool:
        return False

    @property
    def _refusal(self) -> InvalidValueError:
        return InvalidValueError("mechanism must be one that selects items, which DiscreteLaplace() does not")
