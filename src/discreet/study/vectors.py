"""The score vectors of a study: files named NAME.nD.npy, or made-up ones where there are none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats
from discreet.sources.arrays.array import array_source
from discreet.tally import Tally

ZIPF_TOTAL = 15**7
"""What the scores of the Zipf study add up to, as in the authors' code."""


@dataclass(frozen=True, eq=False)
class Vector:
    """Scores and the name they go by."""

    name: str
    scores: NDArray[Any]

    @property
    def d(self) -> int:
        """How many items there are."""
        return len(self.scores)

    @cached_property
    def tally(self) -> Tally:
        """The scores in descending order."""
        return array_source(self.scores).tally()

    @property
    def fingerprint(self) -> str:
        """Tells vectors apart whatever their names."""
        return hashlib.sha256(str(self.scores.dtype).encode() + self.scores.tobytes()).hexdigest()[:16]


def load_vectors(folder: Path, names: Sequence[str]) -> list[Vector]:
    """The vectors in a folder, all of them or those of these names."""
    if not folder.is_dir():
        raise InvalidValueError(f"data must be a directory with files NAME.nD.npy, not {str(folder)!r}")
    paths = sorted(folder.glob("*.n*.npy"))
    files = {path.name.split(".")[0]: path for path in paths}
    if len(files) < len(paths):
        raise InvalidValueError(f"data must be a directory with one file a name, and {str(folder)!r} has more")
    if not files:
        raise InvalidValueError(f"data must be a directory with files NAME.nD.npy, and {str(folder)!r} has none")
    return [_load(name, files[name]) for name in _choose_names(names, list(files))]


def make_vectors(names: Sequence[str]) -> list[Vector]:
    """Made-up vectors, all of them or those of these names: a long tail, a gentle slope and steps with many ties."""
    ranks = np.arange(1, 4001)
    vectors = {
        "LONGTAIL": np.floor(2e5 / ranks**0.9),
        "GENTLE": np.floor(2e5 * np.exp(-ranks / 1500.0)),
        "STEPS": np.floor(40.0 * (60.0 - np.floor(np.sqrt(ranks))) / 3.0).clip(0.0),
    }
    return [Vector(name, vectors[name].astype(np.int64)) for name in _choose_names(names, list(vectors))]


def zipf(shape: float, d: int = 10**4) -> Vector:
    """Scores proportional to i^-shape that add up to 15^7."""
    weights: Floats = np.arange(1.0, d + 1.0) ** -shape
    return Vector(f"ZIPF {shape:g}", ZIPF_TOTAL * weights / weights.sum())


def _choose_names(names: Sequence[str], known: list[str]) -> list[str]:
    for name in names:
        if name not in known:
            raise InvalidValueError(f"names must be of {', '.join(known)}, not {name!r}")
    return [name for name in known if name in names or not names]


def _load(name: str, path: Path) -> Vector:
    try:
        scores = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InvalidValueError(f"data must hold files of NumPy arrays, and {path.name!r} is none") from None
    if (
        not isinstance(scores, np.ndarray)
        or scores.ndim != 1
        or len(scores) < 2
        or scores.dtype.kind not in "iuf"
        or not np.isfinite(scores).all()
    ):
        raise InvalidValueError(f"data must hold vectors of two finite numbers or more, and {path.name!r} is none")
    return Vector(name, scores)
