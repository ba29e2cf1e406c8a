"""Arrays of numbers looked at in pieces, sampled, and sorted, in as few passes as their size and type allow."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Ranks

FINITE = "scores must be finite numbers, and one of them is not; drop or replace it before the call"

BLOCK = 1 << 16
"""How many scores are looked at at a time, so that they stay in the cache."""

SAMPLE = 1 << 14
"""About how many scores a sample has."""


def iterate_blocks(scores: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The scores in pieces, each with its first position; the pages of a mapped file are let go on the way."""
    mapped = _find_mapping(scores)
    for start in range(0, len(scores), BLOCK):
        yield start, scores[start : start + BLOCK]
        if mapped is not None and start % (256 * BLOCK) == 0:
            mapped.madvise(mmap.MADV_DONTNEED)


def _find_mapping(scores: NDArray[Any]) -> mmap.mmap | None:
    """The mapping of a file that scores are read from, if it is mapped only to be read and its pages can be let go."""
    owner: Any = scores
    while owner is not None and not isinstance(owner, np.memmap):
        owner = getattr(owner, "base", None)
    # A mapping that may be written to could hold what is not in the file.
    if owner is None or owner.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return owner.base if isinstance(owner.base, mmap.mmap) else None


def take_sample(scores: NDArray[Any]) -> NDArray[Any]:
    """Some of the scores, evenly spread over the positions."""
    return scores[:: max(1, len(scores) // SAMPLE)]


BY_DIGITS = range(1 << 9, 1 << 18)
"""For how many scores at a time sorting them by digits is faster than comparing them."""


def sort_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """A copy of some numbers in ascending order."""
    if len(scores) in BY_DIGITS[1 << 11 :] and _find_mapping(scores) is None:
        with np.errstate(all="ignore"):
            keys = _scale_to_16_bits(scores)
        order = _order_nearly(scores) if keys is None else np.argsort(keys, kind="stable")
        ordered: NDArray[Any] = scores.take(order)
        if not (ordered[1:] >= ordered[:-1]).all():
            # Takes advantage of what is in order already, and puts right what is not.
            ordered.sort(kind="stable")
        return ordered
    ordered = _copy_scores(scores)
    ordered.sort()
    return ordered


def _scale_to_16_bits(scores: NDArray[Any]) -> NDArray[np.uint16] | None:
    """Keys in about the order of the scores; None where many would share a key, as a sample of them says.

    The caller has NumPy ignore what overflows and what is no number.
    """
    sample = np.sort(scores[:: len(scores) // 64])
    # How wide the range may be for an eighth of the scores, or four to a key, to have a 64th of it.
    crowd = min(8, (1 << 18) // len(scores))
    widest = 64.0 * float((sample[crowd:] - sample[:-crowd]).min())
    if not widest > float(sample[-1]) - float(sample[0]):
        return None
    low = scores[scores.argmin()]
    width = float(scores[scores.argmax()]) - float(low)
    return ((scores - low) * (65535.0 / width)).astype(np.uint16) if widest > width else None


def _order_nearly(scores: NDArray[Any]) -> Ranks:
    """The positions of some numbers in about ascending order, by the leading 32 bits of what they differ in."""
    bits = scores if scores.dtype.kind != "f" else scores.view(f"i{scores.itemsize}")
    low = bits[bits.argmin()]
    if scores.dtype.kind == "f" and low < 0:
        bits = order_bits(scores)
        low = bits[bits.argmin()]
    above = (bits - low).view(f"u{bits.itemsize}") if low else bits
    keys = (above >> max(0, int(above[above.argmax()]).bit_length() - 32)).astype(np.uint32, copy=False)
    order: Ranks = np.argsort(keys.astype(np.uint16), kind="stable")
    return order.take(np.argsort((keys >> 16).astype(np.uint16).take(order), kind="stable"))


def order_bits(scores: NDArray[Any], signed: bool = True) -> NDArray[Any]:
    """The bits of floats as whole numbers that are in their order; `signed` says whether some may be negative."""
    bits = scores.view(f"i{scores.itemsize}")
    # Read as whole numbers they are but for the negative ones, which are reversed.
    return bits ^ (bits >> (8 * bits.itemsize - 1) & np.iinfo(bits.dtype).max) if signed else bits


def as_bits(whole: NDArray[Any]) -> NDArray[np.uint64]:
    """Whole numbers modulo 2^64; a view where they have 64 bits."""
    return whole.astype(np.uint64 if whole.dtype.kind == "u" else np.int64, copy=False).view(np.uint64)


def _copy_scores(scores: NDArray[Any]) -> NDArray[Any]:
    if _find_mapping(scores) is None:
        return np.array(scores)
    copy = np.empty(len(scores), scores.dtype)
    for start, block in iterate_blocks(scores):
        copy[start : start + len(block)] = block
    return copy
