"""Walks once through `discreet` and counts what is passed: files, and hops from one file to another.

    PYTHONPATH=some/tree/src python tools/walk.py top_k
    PYTHONPATH=some/tree/src python tools/walk.py arrays
    PYTHONPATH=some/tree/src python tools/walk.py select
    PYTHONPATH=some/tree/src python tools/walk.py select_by

A real release is made under `sys.setprofile`, which sees every call of a function. A file is passed where one of its
functions runs. A hop is a call from a function in one file to a function in another, both under the tree's package:
`pairs` counts each caller with each callee once, which is what a reader has to follow, and `calls` every time. A lambda
or a comprehension belongs to the function that it stands in, and what runs while a module is imported does not count.
The bits are those of a seeded generator, so that the same tree gives the same numbers. `functions` counts the functions
that run, and `lines` the lines of code in them, whether these run or not: what a reviewer of such a release reads.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SELECT = """select events.parquet --user user --item item --domain items.csv:item --label title -k 3 --epsilon 1
  --where "stars >= 4 and kind = 'film'" """
SELECT_BY = SELECT + "--by kind --groups kinds.csv:kind --each-user one"


@dataclass
class Walk:
    """The files passed so far and the hops between them, within one package; `importing` counts the open imports."""

    package: str
    files: set[str] = field(default_factory=set)
    hops: Counter[tuple[str, str]] = field(default_factory=Counter)
    functions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    importing: int = 0

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        """Record one event of the profiler."""
        code = frame.f_code
        if code.co_name == "<module>":
            self.importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self.importing and self._is_ours(code):
            self.files.add(code.co_filename)
            self.functions[_function(code)] |= {line for *_, line in code.co_lines() if line}
            caller = frame.f_back
            if caller and self._is_ours(caller.f_code) and caller.f_code.co_filename != code.co_filename:
                self.hops[_function(caller.f_code), _function(code)] += 1

    def _is_ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.package)


def _function(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_qualname.split('.<locals>.<')[0]}"


def prepare_top_k() -> Callable[[], Any]:
    """Return a release from an array of a thousand counts."""
    import numpy as np

    import discreet

    scores = np.arange(1000)
    return lambda: discreet.top_k(scores, 10, 1)


def prepare_arrays() -> Callable[[], Any]:
    """Releases by the default mechanism from arrays of several sizes, types and shapes."""
    import numpy as np

    import discreet

    made, limit = np.random.default_rng(0), discreet.Sensitivity(down=0, up=1)
    counts = [np.arange(1000), np.full(1000, 7), (1e7 / np.arange(1, 200_001)).astype(np.int64)]
    arrays = [*counts, made.integers(0, 10**9, 200_000), made.random(3000) * 1e3, made.random(200_000) * 1e4]

    def run() -> None:
        for scores in arrays:
            for k, epsilon in ((10, "1"), (500, "0.05"), (len(scores) // 6, "2")):
                discreet.top_k(scores, k, epsilon, sensitivity=limit)

    return run


def prepare_select(command: str = SELECT) -> Callable[[], Any]:
    """Write a file of two hundred events to the current folder, and return a run of the command line on it."""
    import pyarrow as pa
    import pyarrow.parquet

    from discreet.cli import main

    events = [{"user": i % 40, "item": i * i % 12, "stars": i % 5 + 1, "kind": "film"} for i in range(200)]
    pa.parquet.write_table(pa.Table.from_pylist(events), "events.parquet")
    Path("items.csv").write_text("item,title\n" + "".join(f"{i},Title {i}\n" for i in range(12)), encoding="utf-8")
    Path("kinds.csv").write_text("kind\nfilm\nseries\n", encoding="utf-8")
    sys.argv = ["discreet", *shlex.split(command)]

    def run() -> None:
        with redirect_stdout(StringIO()):
            code = main()
        if code:
            raise SystemExit(code)

    return run


def prepare_select_by() -> Callable[[], Any]:
    """Write the same file, and return a run that releases one list for each kind."""
    return prepare_select(SELECT_BY)


def measure(prepare: Callable[[], Callable[[], Any]]) -> dict[str, int]:
    """Return the files passed, the pairs of functions that hop, and the calls from file to file."""
    run = prepare()
    import discreet

    walk = Walk(os.path.dirname(discreet.__file__) + os.sep)
    # All bits come from here: two walks of one tree are the same.
    os.urandom = random.Random(0).randbytes  # noqa: S311  # nothing is released
    sys.setprofile(walk.see)
    try:
        run()
    finally:
        sys.setprofile(None)
    lines = sum(map(len, walk.functions.values()))
    counts = {"files": len(walk.files), "functions": len(walk.functions), "lines": lines}
    return {**counts, "pairs": len(walk.hops), "calls": sum(walk.hops.values())}


def main() -> None:
    """Print what the named walk passes, as JSON."""
    walks = (prepare_top_k, prepare_arrays, prepare_select, prepare_select_by)
    prepare = {walk.__name__.removeprefix("prepare_"): walk for walk in walks}[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(json.dumps(measure(prepare)))


if __name__ == "__main__":
    main()
