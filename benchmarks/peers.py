"""What others would do for the same k, epsilon and sensitivity: each user raises any score by at most 1.

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
    """The log weight of every class in one pass, in plain floats, as the paper does it."""
    t, total = np.arange(k, len(descending)), -np.inf
    tail = s / 2 * descending[k:] - gammaln(t - k + 1)
    for h in range(k):
        weights = tail - s / 2 * descending[h] + gammaln(t - h) - gammaln(k - h)
        total = np.logaddexp(total, weights.max() + np.log(np.exp(weights - weights.max()).sum()))
    return float(total)


def has_opendp() -> bool:
    """Whether OpenDP is installed."""
    return importlib.util.find_spec("opendp") is not None


def opendp(scores: np.ndarray, k: int, epsilon: float) -> Task:
    """OpenDP's noisy top-k with exponential noise, ready to be called; its privacy map must say epsilon.

    Building it and turning the scores into the list that it takes is not measured.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=True)
    select = dp.m.make_noisy_top_k(*space, dp.max_divergence(), k=k, scale=float(k / epsilon))
    if not np.isclose(select.map(1), epsilon, rtol=1e-9):
        raise RuntimeError(f"OpenDP would spend {select.map(1)} and not {epsilon}")
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
        """Whether `make peers` has been run."""
        return (ENVIRONMENT / ".installed").exists()

    def task(self, scores: np.ndarray, k: int, epsilon: float) -> Task:
        """A release, ready to be called; reading the scores is not measured."""
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
