"""Load the score vectors of a study: files NAME.nD.npy, a file of scores, a sketch, or made-up ones."""

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
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity
from discreet.release.sketch import Sketch, read_sketch
from discreet.sources.arrays.array import array_source
from discreet.sources.files import file_source

ZIPF_TOTAL = 15**7
"""The sum of the scores that follow Zipf's law, as in the authors' code."""


@dataclass(frozen=True, eq=False)
class Vector:
    """Scores, or a sketch of them, and their name."""

    name: str
    scores: NDArray[Any] | Sketch

    @property
    def d(self) -> int:
        """The number of items."""
        return self.scores.d if isinstance(self.scores, Sketch) else len(self.scores)

    @cached_property
    def tally(self) -> Tally:
        """The scores in descending order."""
        return self.scores.tally() if isinstance(self.scores, Sketch) else array_source(self.scores).tally()

    @property
    def limit(self) -> Sensitivity:
        """The sensitivity of the scores: that of the sketch, or that of counts of users."""
        if isinstance(self.scores, Sketch):
            return self.scores.sensitivity.under(self.scores.adjacency)
        return Sensitivity()

    @property
    def is_whole(self) -> bool:
        """True if the scores are known to be whole numbers."""
        return not isinstance(self.scores, Sketch) and self.scores.dtype.kind != "f"

    @property
    def fingerprint(self) -> str:
        """A hash of the scores, which differs for vectors of the same name."""
        if isinstance(self.scores, Sketch):
            return hashlib.sha256(self.scores.to_json().encode()).hexdigest()[:16]
        return hashlib.sha256(str(self.scores.dtype).encode() + self.scores.tobytes()).hexdigest()[:16]


def load_vectors(
    data: Path, names: Sequence[str] = (), item: str | None = None, score: str | None = None
) -> list[Vector]:
    """Load the vectors of a folder, or the one vector of a file of scores or a sketch.

    Parameters
    ----------
    data
        A folder with files NAME.nD.npy, or a file: scores that `file_source` reads, or a sketch.
    names
        The names of the vectors to load; all of them if none are named.
    item, score
        The columns of a file of scores.
    """
    if data.is_dir():
        if item is not None or score is not None:
            given = "item" if item is not None else "score"
            raise InvalidValueError(f"{given} must be left out where data is a directory: its files have no columns")
        paths = sorted(data.glob("*.n*.npy"))
        files = {path.name.split(".")[0]: path for path in paths}
        if len(files) < len(paths):
            raise InvalidValueError(f"data must be a directory with one file a name, and {str(data)!r} has more")
        if not files:
            raise InvalidValueError(f"data must be a directory with files NAME.nD.npy, and {str(data)!r} has none")
        vectors = []
        for name in _choose_names(names, list(files)):
            path = files[name]
            try:
                scores = np.load(path, allow_pickle=False)
            except (OSError, ValueError, EOFError):
                raise InvalidValueError(f"data must hold files of NumPy arrays, and {path.name!r} is none") from None
            is_vector = isinstance(scores, np.ndarray) and scores.ndim == 1 and len(scores) >= 2
            if not is_vector or scores.dtype.kind not in "iuf" or not np.isfinite(scores).all():
                raise InvalidValueError(
                    f"data must hold vectors of two finite numbers or more, and {path.name!r} is none"
                )
            vectors.append(Vector(name, scores))
        return vectors
    if not data.exists():
        raise InvalidValueError(
            f"data must be a directory with files NAME.nD.npy, a file of scores or a sketch, not {str(data)!r}"
        )
    _choose_names(names, [data.stem])
    sketch = read_sketch(data, item, score)
    if sketch and sketch.terms is not None:
        raise InvalidValueError(
            "data must be scores of a public list, and this is a sketch of items that nobody listed"
        )
    if sketch:
        return [Vector(data.stem, sketch)]
    source = file_source(data, item, score)
    if source.d < 2:
        raise InvalidValueError(f"data must hold two scores or more, and {data.name!r} has {source.d}")
    if source.unit == 1 and source.scores.dtype != object:
        return [Vector(data.stem, source.scores)]
    # Other scores become the nearest floats: a study shows three digits.
    with np.errstate(over="ignore"):
        numbers = np.array([float(number * source.unit) for number in source.scores.tolist()])
    if not np.isfinite(numbers).all():
        raise InvalidValueError(f"data must hold numbers that floats can hold, and {data.name!r} has others")
    return [Vector(data.stem, numbers)]


def make_vectors(names: Sequence[str]) -> list[Vector]:
    """Return made-up vectors, all or those of these names: a long tail, a gentle slope and steps with many ties."""
    ranks = np.arange(1, 4001)
    vectors = {
        "LONGTAIL": np.floor(2e5 / ranks**0.9),
        "GENTLE": np.floor(2e5 * np.exp(-ranks / 1500.0)),
        "STEPS": np.floor(40.0 * (60.0 - np.floor(np.sqrt(ranks))) / 3.0).clip(0.0),
    }
    return [Vector(name, vectors[name].astype(np.int64)) for name in _choose_names(names, list(vectors))]


def zipf(shape: float, d: int = 10**4) -> Vector:
    """Return scores proportional to i^-shape whose sum is 15^7."""
    weights: Floats = np.arange(1.0, d + 1.0) ** -shape
    return Vector(f"ZIPF {shape:g}", ZIPF_TOTAL * weights / weights.sum())


def _choose_names(names: Sequence[str], known: list[str]) -> list[str]:
    for name in names:
        if name not in known:
            raise InvalidValueError(f"names must be of {', '.join(known)}, not {name!r}")
    return [name for name in known if name in names or not names]
