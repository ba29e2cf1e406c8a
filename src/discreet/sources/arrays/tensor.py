"""Scores that live on a GPU: a torch tensor on any device, and through DLPack an array of CuPy or JAX.

The scores are sorted where they are, and stay there. What crosses to the host are the scores at the ranks that a
mechanism asks for, a level of its boxes at a time, and the positions of the chosen items.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.columns import float_differences, lowest_keys, reach_thresholds
from discreet.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from discreet.exact.arrays import Floats, Ranks
from discreet.labels import labels_at
from discreet.selection import Selection
from discreet.sources.arrays.array import ArraySource, array_source, check_score_labels
from discreet.sources.arrays.sorting import FINITE
from discreet.sources.base import Source
from discreet.tally import Tally

_ON_HOST = 1
"""What DLPack calls the memory of the host."""


def tensor_source(scores: Any, labels: Any = None) -> ArraySource | TensorSource:
    """The source behind a tensor: on the device where it is, or as an array where that is the host."""
    tensor = _as_tensor(scores)
    if isinstance(tensor, np.ndarray):
        return array_source(tensor, labels)
    return TensorSource(tensor, check_score_labels(labels, tuple(tensor.shape)))


@dataclass(frozen=True, eq=False, repr=False)
class TensorSource(Source):
    """Scores in a one-dimensional tensor of int64, float32 or float64, with labels or positions as labels."""

    scores: Any
    labels: Sequence[Any] | None = None
    typed = True

    @property
    def d(self) -> int:
        return len(self.scores)

    @property
    def grid(self) -> Fraction | None:  # type: ignore[override]  # a constant in other sources, public here too
        return None if self.scores.is_floating_point() else Fraction(1)

    def tally(self) -> Tally:
        return Tally(self._sorted_scores[0])

    def items(self, ranks: Ranks) -> list[Any]:
        return labels_at(self.labels, self._positions(ranks))

    def draw_items(self, selection: Selection) -> list[Any] | Ranks:
        positions = self._positions(selection.draw_ranks())
        return positions if self.labels is None else labels_at(self.labels, positions)

    def every_item(self) -> list[Any]:
        return labels_at(self.labels, np.arange(self.d))

    def _positions(self, ranks: Ranks) -> Ranks:
        return _take(self._sorted_scores[1], self.d - 1 - ranks)

    @cached_property
    def _sorted_scores(self) -> tuple[TensorColumn, Any]:
        """The scores in ascending order, and the position of each."""
        values, positions = self.scores.sort()
        column = TensorColumn(values)
        if not np.isfinite(column.raw(np.array([0, self.d - 1]))).all():
            raise InvalidValueError(FINITE)
        return column, positions


@dataclass(frozen=True, eq=False, repr=False)
class TensorColumn:
    """Ascending scores in a tensor."""

    values: Any
    unit: ClassVar[Fraction] = Fraction(1)

    def __len__(self) -> int:
        return len(self.values)

    def exact(self, position: int) -> Fraction:
        return Fraction(self.values[position].item())

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        # One transfer for both.
        one, other = np.split(_take(self.values, np.concatenate([larger, smaller])), 2)
        if self.values.is_floating_point():
            return float_differences(one, other)
        return np.where(one > other, one.view(np.uint64) - other.view(np.uint64), np.uint64(0)).astype(np.float64)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        score = _take(self.values, positions)
        if not self.values.is_floating_point():
            lowest = lowest_keys(score.view(np.uint64) + _HALF, reaches, self.unit) - _HALF
            return self._search(lowest.view(np.int64), right=False)
        near, from_near_on = reach_thresholds(score, reaches)
        return np.where(from_near_on, self._search(near, right=False), self._search(near, right=True))

    def run(self, positions: Ranks) -> Ranks:
        return self._search(_take(self.values, positions), right=False)

    def raw(self, positions: Ranks) -> NDArray[Any]:
        taken = _take(self.values, positions)
        return taken if self.values.is_floating_point() else taken.view(np.uint64)

    def _search(self, wanted: NDArray[Any], right: bool) -> Ranks:
        torch = sys.modules["torch"]
        asked = torch.from_numpy(wanted).to(self.values.device)
        found: Ranks = torch.searchsorted(self.values, asked, right=right).cpu().numpy()
        return found


_HALF = np.uint64(2**63)
"""What turns the order of signed numbers into that of their bits."""


def _take(tensor: Any, positions: Ranks) -> NDArray[Any]:
    """The entries of a tensor at some positions, on the host."""
    torch = sys.modules["torch"]
    index = torch.from_numpy(np.ascontiguousarray(positions)).to(tensor.device)
    taken: NDArray[Any] = tensor[index].cpu().numpy()
    return taken


def _as_tensor(scores: Any) -> Any:
    """Scores as a tensor that sorts, or as an array where they are in the memory of the host."""
    loaded = sys.modules.get("torch")
    if loaded is None or not isinstance(scores, loaded.Tensor):
        if int(scores.__dlpack_device__()[0]) == _ON_HOST:
            return _as_array(scores)
        scores = _import_torch().from_dlpack(scores)
    torch = _import_torch()
    kind = str(scores.dtype).removeprefix("torch.")
    if scores.layout != torch.strided or scores.is_complex() or scores.is_quantized or kind == "uint64":
        raise InvalidTypeError(
            f"scores must be a dense tensor of whole numbers or floats, not a {scores.layout} of {kind}"
        )
    tensor = scores.detach()
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.int64)
    elif tensor.dtype != torch.float64:
        tensor = tensor.to(torch.float32)
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def _as_array(scores: Any) -> NDArray[Any]:
    try:
        return np.from_dlpack(scores)
    except (BufferError, RuntimeError, TypeError):
        kind = getattr(scores, "dtype", type(scores).__name__)
    raise InvalidTypeError(f"scores must be an array of whole numbers or floats that NumPy knows, not of {kind}")


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            'scores on a GPU need torch, which is not installed: pip install "torch>=2.4"'
        ) from None
    return torch
