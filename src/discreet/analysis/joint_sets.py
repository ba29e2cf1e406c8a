"""The joint mechanism over sets: a rival that has a utility and no sampler.

Its choices are sets in rank order in place of sequences, with the same loss and the same privacy. It is there to be
compared with, so that the analysis knows it, and nothing that draws does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from discreet.grouped_request import GroupedRequest, make_grouped_request
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.joint import Joint
from discreet.mechanisms.registry import DEFAULT, check_mechanism
from discreet.mechanisms.sampler import Sampler
from discreet.privacy import Sensitivity
from discreet.request import Request, make_request
from discreet.sources.groups import GroupedSource
from discreet.tally import Tally


@dataclass(frozen=True)
class JointOverSets(Mechanism):
    """The joint exponential mechanism over sets in rank order, for `utility` and its like; `top_k` refuses it.

    Examples
    --------
    >>> import discreet
    >>> from discreet.analysis import JointOverSets
    >>> scores = [9, 8, 7, 3, 2, 1]
    >>> sets, sequences = (discreet.utility(scores, 3, 1, m) for m in (JointOverSets(), discreet.Joint()))
    >>> sets.top > sequences.top
    True
    """

    name: ClassVar[str] = "joint"
    ordered: ClassVar[bool] = False

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        return Joint().prepare(tally, k, epsilon, sensitivity)

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        return Joint().zcdp(epsilon, k)

    def parameters(self) -> dict[str, Any]:
        return {"over": "sets"}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        return Joint().unit_cost(s, k)

    @property
    def label(self) -> str:
        return f"{self.name}, sets"

    @property
    def form(self) -> Form:
        return Form.LOSSES

    @property
    def is_drawable(self) -> bool:
        return False


def check_comparable(mechanism: Any) -> Mechanism:
    """The mechanism, which must be one to draw from or one that is only compared with."""
    if isinstance(mechanism, Joint) and not mechanism.is_drawable:
        # The deprecated spelling.
        return JointOverSets()
    return mechanism if isinstance(mechanism, JointOverSets | Sampler) else check_mechanism(mechanism)


def make_analysis_request(
    scores: Any, k: Any, epsilon: Any, mechanism: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> Request:
    """A request that is only asked how good its release would be: its mechanism need not have a sampler."""
    asked, compared = _find_drawable(mechanism)
    request = make_request(scores, k, epsilon, mechanism=asked, sensitivity=sensitivity, adjacency=adjacency)
    return request if compared is None else draw_by(request, compared)


def make_grouped_analysis_request(
    scores: GroupedSource, k: Any, epsilon: Any, mechanism: Any = None, sensitivity: Any = None, adjacency: Any = None
) -> GroupedRequest:
    """The same for scores by group."""
    asked, compared = _find_drawable(mechanism)
    every = make_grouped_request(scores, k, epsilon, mechanism=asked, sensitivity=sensitivity, adjacency=adjacency)
    return every if compared is None else replace(every, requests=[draw_by(one, compared) for one in every.requests])


def _find_drawable(mechanism: Any) -> tuple[Mechanism | None, Mechanism | None]:
    """A mechanism that gives the guarantee, and where that has another sampler or none, the one that is asked about."""
    compared = None if mechanism is None else check_comparable(mechanism)
    if compared is None or compared.is_drawable:
        return compared, None
    # Over sequences the guarantee is the same: it is that of the loss. That of a sampler is its author's affair.
    return DEFAULT if isinstance(compared, Sampler) else Joint(), compared


def draw_by(request: Request, mechanism: Mechanism) -> Request:
    """The request with another mechanism that is only compared with."""
    return replace(request, guarantee=replace(request.guarantee, mechanism=mechanism))
