"""Releases by others for the same k, epsilon and sensitivity: each user raises any score by at most 1.

The plain ones are not private, or not exactly: they are what speed alone would choose.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

import numpy as np
from scipy.special import gammaln

from timing import Task

ENVIRONMENT = Path(__file__).parents[1] / ".venv-peers"
NO_DIFFPRIVLIB = "diffprivlib is not here (run make peers): what needs it is skipped."
NO_OPENDP = "OpenDP is not here (pip install 'discreet[opendp]'): what needs it is skipped."

PLAIN = "times the plain float one-shot"
_GENERATOR = np.random.default_rng(2)


def plain_one_shot(scores: np.ndarray, k: int, epsilon: float) -> np.ndarray:
    """One-shot with Gumbel noise in plain floats: fast, and not private."""
    noisy = scores * (epsilon / k) + _GENERATOR.gumbel(size=len(scores))
    return np.argpartition(noisy, len(noisy) - k)[-k:]


def scan(descending: np.ndarray, k: int, s: float) -> float:
    """Compute the log weight of every class in one pass, in plain floats, as the paper does it."""
    t, total = np.arange(k, len(descending)), -np.inf
    tail = s / 2 * descending[k:] - gammaln(t - k + 1)
    for h in range(k):
        weights = tail - s / 2 * descending[h] + gammaln(t - h) - gammaln(k - h)
        total = np.logaddexp(total, weights.max() + np.log(np.exp(weights - weights.max()).sum()))
    return float(total)


def joint(scores: np.ndarray, k: int, epsilon: float) -> np.ndarray:
    """Draw by the joint mechanism in plain floats, over the table of all k d losses, as the code of its authors does.

    Entry (i, j) of the table is what is lost where the item of rank j has place i, and the loss of a sequence is that
    of the last of its k entries in sorted order. So each entry is the loss of a known number of sequences: the product
    of how many choices the other places have by then. One entry is drawn by that number and its loss, and then the rest
    of a sequence, uniformly. The rows of the table are in order, and a stable sort merges them in O(d k log k) steps.
    """
    order = np.argsort(scores)[::-1]
    ranked, d = scores[order], len(scores)
    # Of equal losses the last place has the first: then a place never has fewer choices than one before it.
    table = (ranked[k - 1 :: -1, None] - ranked).ravel()
    entries = np.argsort(table, kind="stable")
    places, ranks = k - 1 - entries // d, entries % d
    drawn = _draw_entry(ranks - places, -epsilon / 2 * table[entries])
    positions = _GENERATOR.integers(np.arange(k), np.bincount(places[: drawn + 1], minlength=k))
    positions[places[drawn]] = ranks[drawn]
    return order[_pick_distinct(positions, d)]


def _draw_entry(above: np.ndarray, log_weights: np.ndarray) -> int:
    """Draw an entry by its weight and the number of sequences that end with it; `above` is its rank less its place."""
    # Place i has above + 1 choices from an entry on. Until each place has its first, there are no sequences.
    first = int(np.flatnonzero(above == 0)[-1])
    logs = np.log(np.arange(1.0, above.max() + 2.0))
    # One choice more for a place: all sequences so far grow from `above` to above + 1.
    more = np.maximum(above, 1)
    growth = np.where(above > 0, logs[more] - logs[more - 1], 0.0)
    # In those that an entry adds, its own place has no choice.
    totals = np.cumsum(growth)[first:] - logs[above[first:]] + log_weights[first:]
    shares = np.cumsum(np.exp(totals - totals.max()))
    return first + int(np.searchsorted(shares, shares[-1] * _GENERATOR.random(), side="right"))


def _pick_distinct(positions: np.ndarray, d: int) -> list[int]:
    """Return a rank for each place: what is at its position, with those taken before swapped to the front."""
    ranks = list(range(d))
    for place, position in enumerate(positions.tolist()):
        ranks[place], ranks[position] = ranks[position], ranks[place]
    return ranks[: len(positions)]


def has_opendp() -> bool:
    """Return True if OpenDP is installed."""
    return importlib.util.find_spec("opendp") is not None


def opendp(scores: np.ndarray, k: int, epsilon: float, noise: str = "exponential") -> Task:
    """OpenDP's noisy top-k with exponential or Gumbel noise, ready to be called; its privacy map must say the same.

    Its measure chooses the noise. At this scale each of k rounds is epsilon/k-private with either, so that both spend
    epsilon; of Gumbel noise the map tells the rho of k rounds. Building it and turning the scores into the list that it
    takes is not measured.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    known = {
        "exponential": (dp.max_divergence(), epsilon),
        "gumbel": (dp.zero_concentrated_divergence(), epsilon**2 / (8 * k)),
    }
    measure, promised = known[noise]
    kind, one = ("f64", 1.0) if scores.dtype.kind == "f" else ("i64", 1)
    space = dp.vector_domain(dp.atom_domain(T=kind, nan=False)), dp.linf_distance(T=kind, monotonic=True)
    select = dp.m.make_noisy_top_k(*space, measure, k=k, scale=float(k / epsilon))
    if not np.isclose(select.map(one), promised, rtol=1e-9):
        raise RuntimeError(f"OpenDP would spend {select.map(one)} and not {promised}")
    listed = scores.tolist()
    return lambda: select(listed)


class Diffprivlib:
    """diffprivlib's permute-and-flip, peeled k times at epsilon / k, in a process of the environment it lives in.

    A call sends one line there and waits for one to come back, so that it can be measured in turn with other things.
    """

    def __enter__(self) -> Diffprivlib:
        self._folder = tempfile.TemporaryDirectory()
        command = [ENVIRONMENT / "bin" / "python", Path(__file__).with_name("peel_diffprivlib.py")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()
        self._folder.cleanup()

    @staticmethod
    def is_here() -> bool:
        """Return True if `make peers` has been run."""
        return (ENVIRONMENT / ".installed").exists()

    def task(self, scores: np.ndarray, k: int, epsilon: float) -> Task:
        """Return a release, ready to be called; reading the scores is not measured."""
        file = Path(self._folder.name) / f"{len(list(Path(self._folder.name).iterdir()))}.npy"
        np.save(file, scores)
        self._ask({"load": str(file)})
        return lambda: self._ask({"scores": str(file), "k": k, "epsilon": epsilon})

    def _ask(self, question: dict[str, object]) -> int:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("diffprivlib has no pipes")
        self._process.stdin.write(json.dumps(question) + "\n")
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("diffprivlib has stopped")
        return int(answer)
