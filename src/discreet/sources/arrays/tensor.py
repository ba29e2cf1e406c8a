"""Scores on a GPU: a torch tensor on any device, and through DLPack an array of CuPy or JAX.

The scores are sorted on the device and stay there. Only the scores at the ranks that a mechanism reads and the
positions of the chosen items cross to the host.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from discreet.exact.arrays import Floats, Ranks
from discreet.labels import labels_at
from discreet.mechanisms.tally import Selection, Tally, float_differences, lowest_keys, reach_thresholds
from discreet.sources.arrays.array import ArraySource, array_source, check_score_labels
from discreet.sources.arrays.positions import draw_inside, lies_close
from discreet.sources.arrays.sorting import FINITE, LARGE
from discreet.sources.base import Source

_ON_HOST = 1
"""DLPack's number for the memory of the host."""


def tensor_source(scores: Any, labels: Any = None) -> ArraySource | TensorSource:
    """Return the source of a tensor: on its device, or as an array if that is the host."""
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
    d: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", len(self.scores))

    @property
    def grid(self) -> Fraction | None:  # type: ignore[override]  # a constant in other sources, public here too
        return None if self.scores.is_floating_point() else Fraction(1)

    @property
    def fractional(self) -> bool:  # type: ignore[override]  # a constant in other sources, public here too
        return bool(self.scores.is_floating_point())

    def tally(self) -> Tally:
        # A sort without positions takes half the time and half the memory.
        values, counts = self.scores.unique(return_counts=True)
        column = TensorColumn(values, counts.cumsum(0), self.d)
        if not np.isfinite(column.raw(np.array([0, self.d - 1]))).all():
            raise InvalidValueError(FINITE)
        return Tally(column)

    def items(self, ranks: Ranks) -> list[Any]:
        return labels_at(self.labels, self._positions(self.tally(), ranks))

    def draw_items(self, tally: Tally, selection: Selection) -> list[Any] | Ranks:
        whole_runs = selection.cuts_no_run
        found = self._find_between(tally, selection) if whole_runs else self._positions(tally, selection.draw_ranks())
        return found if self.labels is None else labels_at(self.labels, found)

    def every_item(self) -> list[Any]:
        return labels_at(self.labels, np.arange(self.d))

    def freeze(self) -> TensorSource:
        """Return the same with a copy of the scores, which nobody else can change."""
        return replace(self, scores=self.scores.clone())

    def _positions(self, tally: Tally, ranks: Ranks) -> Ranks:
        """Return the positions of the items at some ranks; sort the items down to the lowest rank, ties by position."""
        lowest, below = _column_of(tally).find(np.array([self.d - 1 - int(ranks.max())]))
        if 2 * below < self.d:
            return _take(self.scores.sort(stable=True).indices, self.d - 1 - ranks)
        near = _where(self.scores >= lowest)
        return _take(near[self.scores[near].sort(stable=True).indices], len(near) - 1 - ranks)

    def _find_between(self, tally: Tally, selection: Selection) -> Ranks:
        """Return the positions of a selection that two scores bound; draw what it leaves open."""
        some = selection.subset
        ranks = np.array([selection.head - 1] if some is None else [some.first, some.last])
        bounds, _ = _column_of(tally).find(self.d - 1 - ranks)
        if some is None:
            return _to_host(_where(self.scores >= bounds[0]))
        high, low = bounds[0], bounds[1]
        head = _to_host(_where(self.scores > high)) if selection.head else np.empty(0, np.int64)
        if self.d < LARGE or lies_close(some, self.d):
            between = _where((self.scores >= low) & (self.scores <= high))
            return np.concatenate([head, _take(between, some.entropy.subset(some.count, len(between) - 1))])

        def keep(positions: Ranks) -> Ranks:
            kept: Ranks = positions[_to_host(self.scores[_to_device(positions, self.scores)] >= low)]
            return kept

        return draw_inside(some, self.d, keep, head)


def _column_of(tally: Tally) -> TensorColumn:
    """Return the column of a tally that a TensorSource made."""
    if not isinstance(tally.column, TensorColumn):
        raise InvalidTypeError("tally must be that of a tensor")
    return tally.column


@dataclass(frozen=True, eq=False, repr=False)
class TensorColumn:
    """Ascending scores on a device, run-length encoded: the distinct scores, and the number of scores up to each."""

    values: Any
    ends: Any
    length: int
    unit: ClassVar[Fraction] = Fraction(1)

    def __len__(self) -> int:
        return self.length

    def number(self, position: int) -> int | float:
        found: int | float = self._take(np.array([position]))[0].item()
        return found

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        # One transfer serves both.
        one, other = np.split(self._take(np.concatenate([larger, smaller])), 2)
        if self.values.is_floating_point():
            return float_differences(one, other)
        return np.where(one > other, one.view(np.uint64) - other.view(np.uint64), np.uint64(0)).astype(np.float64)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        score = self._take(positions)
        if not self.values.is_floating_point():
            lowest = lowest_keys(score.view(np.uint64) + _HALF, reaches, self.unit) - _HALF
            return self._search(lowest.view(np.int64), right=False)
        near, from_near_on = reach_thresholds(score, reaches)
        return np.where(from_near_on, self._search(near, right=False), self._search(near, right=True))

    def run(self, positions: Ranks) -> Ranks:
        return _to_host(self._begin(self._runs(positions)))

    def raw(self, positions: Ranks) -> NDArray[Any]:
        taken = self._take(positions)
        return taken if self.values.is_floating_point() else taken.view(np.uint64)

    def find(self, positions: Ranks) -> tuple[Any, int]:
        """Return the scores at some positions, on the device, and the first position of the last of them."""
        runs = self._runs(positions)
        return self.values[runs], int(self._begin(runs)[-1])

    def _take(self, positions: Ranks) -> NDArray[Any]:
        return _to_host(self.values[self._runs(positions)])

    def _runs(self, positions: Ranks) -> Any:
        """Return the indices of the runs at some positions."""
        return sys.modules["torch"].searchsorted(self.ends, _to_device(positions, self.ends), right=True)

    def _begin(self, runs: Any) -> Any:
        """Return the first position of each of some runs; a run after the last one begins at the end."""
        return self.ends[(runs - 1).clamp(min=0)] * (runs > 0)

    def _search(self, wanted: NDArray[Any], right: bool) -> Ranks:
        asked = _to_device(wanted, self.values)
        return _to_host(self._begin(sys.modules["torch"].searchsorted(self.values, asked, right=right)))


_HALF = np.uint64(2**63)
"""The offset that maps the order of signed numbers to the order of their bits."""


def _take(tensor: Any, positions: Ranks) -> NDArray[Any]:
    """Return the entries of a tensor at some positions, on the host."""
    return _to_host(tensor[_to_device(positions, tensor)])


def _where(mask: Any) -> Any:
    """Return the positions, on the device, at which a mask is true."""
    return mask.nonzero().squeeze(1)


def _to_device(array: NDArray[Any], tensor: Any) -> Any:
    return sys.modules["torch"].from_numpy(np.ascontiguousarray(array)).to(tensor.device)


def _to_host(tensor: Any) -> NDArray[Any]:
    held: NDArray[Any] = tensor.cpu().numpy()
    return held


def _as_tensor(scores: Any) -> Any:
    """Return scores as a tensor that torch can sort, or as an array if they are in the memory of the host."""
    loaded = sys.modules.get("torch")
    if loaded is None or not isinstance(scores, loaded.Tensor):
        if int(scores.__dlpack_device__()[0]) == _ON_HOST:
            try:
                return np.from_dlpack(scores)
            except (BufferError, RuntimeError, TypeError):
                kind = getattr(scores, "dtype", type(scores).__name__)
            raise InvalidTypeError(
                f"scores must be an array of whole numbers or floats that NumPy knows, not of {kind}"
            )
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


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            'scores on a GPU need torch, which is not installed: pip install "torch>=2.4"'
        ) from None
    return torch
