"""The scores that are measured: shuffled Zipf counts, the same as distinct floats, and the films of Netflix."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import discreet

OF_COUNTS = discreet.Sensitivity(down=0, up=1)
"""The sensitivity of all scores, floats included, which have none of their own."""

FOLDER = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "datasets"))


def zipf(d: int) -> np.ndarray:
    """Shuffled Zipf counts."""
    return np.random.default_rng(0).permutation((1e9 / np.arange(1, d + 1) ** 1.05).astype(np.int64))


def distinct(d: int) -> np.ndarray:
    """Shuffled Zipf counts with something below 1 added to each, so that no two are alike."""
    return zipf(d) + np.random.default_rng(1).random(d)


def netflix() -> np.ndarray | None:
    """Return the number of ratings of each of the 17,770 films, or None if the data are not here."""
    file = FOLDER / "NETFLIX.n17770.npy"
    return np.load(file) if file.exists() else None


NO_NETFLIX = "The Netflix scores are not here (set DISCREET_DATA to their folder): what needs them is skipped."
