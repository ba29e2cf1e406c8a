"""Releases of scores that live on a GPU, against torch.sort of the same tensor, and that they are the right ones.

python benchmarks/gpu.py [largest d]; needs torch and a GPU, and tries CuPy and JAX where they are installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import discreet
from discreet.exact.entropy import Entropy

MECHANISMS = [cls() for cls in (discreet.Canonical, discreet.OneShot, discreet.Peeling, discreet.Joint, discreet.Core)]
MECHANISMS += [discreet.OneShot("laplace"), discreet.Histogram()]
OF_COUNTS, FEW = discreet.Sensitivity(down=0, up=1), discreet.Sensitivity(items=3)


def medians(tasks: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each task, in turns, each begun and ended with an idle device."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats + 1):
        for name, task in tasks.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            task()
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def peak_memory(task: Callable[[], object]) -> int:
    """Return the most bytes of the device that a task holds, beside those held before."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    task()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - held


def sizes(d: int) -> list[dict[str, Any]]:
    """Measure the cost of a release of d scores for several k and epsilon."""
    scores = torch.randn(d, device="cuda", generator=torch.Generator("cuda").manual_seed(1)) * 1e4
    rows = []
    for k in (10, 1000, 100_000):
        for epsilon in ("1", "0.01"):
            release = partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS)
            times = medians({"sort": lambda: torch.sort(scores), "top_k": release}, repeats=7)
            rows.append(
                {
                    "d": d,
                    "k": k,
                    "epsilon": epsilon,
                    "sort_ms": 1e3 * times["sort"],
                    "top_k_ms": 1e3 * times["top_k"],
                    "ratio": times["top_k"] / times["sort"],
                    "more_ms": 1e3 * (times["top_k"] - times["sort"]),
                    "memory": peak_memory(release) / scores.nbytes,
                }
            )
            print({name: round(value, 2) if isinstance(value, float) else value for name, value in rows[-1].items()})
    return rows


def same_releases() -> None:
    """Check that the same bits release the same items from the device and from the host, in every form of scores."""
    scores = np.random.default_rng(3).permutation(3 * np.arange(5000) // 2)
    for kind in ("int64", "float32", "float64"):
        held = scores.astype(kind)
        tensor = torch.from_numpy(held).cuda()
        given: dict[str, Any] = {"torch": tensor}
        if importlib.util.find_spec("cupy"):
            import cupy

            given["cupy"] = cupy.asarray(held)
        if importlib.util.find_spec("jax") and kind != "int64":
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
            import jax

            jax.config.update("jax_enable_x64", True)
            given["jax"] = jax.numpy.asarray(held)
        for mechanism in MECHANISMS:
            for seed in range(3):

                def drawn(scores: Any) -> discreet.Release:
                    rng = Entropy(random.Random(seed))  # noqa: B023
                    return discreet.top_k(scores, 15, "0.3", mechanism=mechanism, sensitivity=FEW, rng=rng)  # noqa: B023

                wanted = drawn(held)
                wrong = [name for name, each in given.items() if drawn(each) != wanted]
                if wrong:
                    sys.exit(f"{wrong} release other items than the host, of {kind} by {mechanism}")
        print(f"{kind}: {', '.join(given)} release what the host does")


def main() -> None:
    """Check, measure, and write the results beside the others."""
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8
    same_releases()
    rows = [row for d in (10**6, 10**7, 10**8, 10**9) if d <= largest for row in sizes(d)]
    out = Path(os.environ.get("OUT", Path(__file__).parent / "results")) / "gpu.json"
    out.parent.mkdir(exist_ok=True)
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    out.write_text(json.dumps({**machine, "rows": rows}, indent=1))
    missed = [row for row in rows if row["d"] >= 10**8 and row["more_ms"] > max(5.0, 0.2 * row["sort_ms"])]
    print(f"{len(rows) - len(missed)} of {len(rows)} within 1.2 sorts or a sort and 5 ms")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
