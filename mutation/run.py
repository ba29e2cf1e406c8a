"""Runs the tests against mutants: `python -m mutation.run --help`.

pytest collects once. A first child process runs all tests under coverage, to see how long each takes and which lines it
reaches. Then every mutant has a child of its own, which takes the mutant's code and runs the tests that reach the
changed statement, those that killed its neighbours first, until one fails. A test that takes many times as long as it
should counts as failed. Nothing is run twice in one process, so no cache can hide a mutant.

The mutants are in one random order, fixed by a seed, so that those done so far are a random sample of all.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import re
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

from mutation.mutants import PACKAGES, SOURCE, Mutant, mutants

ROOT = SOURCE.parent
TESTS = (
    "tests/exact",
    "tests/mechanisms",
    "tests/analysis",
    "tests/evidence/test_verify.py",
    "tests/sources/arrays/test_array.py",
)
PAGE = ROOT / "docs" / "appendix" / "mutants.md"
RESULTS = ROOT / "mutants" / "results.jsonl"
MEMORY = 4 << 30
"""The bytes that a mutant may use beyond those of its parent."""

Lines = dict[str, dict[int, set[str]]]


@dataclass(eq=False)
class Run:
    """The plugin that takes the place of pytest's loop over tests."""

    options: argparse.Namespace
    seconds: dict[str, float] = field(default_factory=dict)
    reached: Lines = field(default_factory=dict)
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self.seconds, self.reached = _first_run(list(items.values()))
        chosen = _chosen(self.options)
        print(f"{len(items)} tests of {sum(self.seconds.values()):.0f} s, {len(chosen)} mutants", flush=True)
        until = time.monotonic() + 60 * self.options.minutes
        with RESULTS.open("a", encoding="utf-8") as results:
            for mutant in chosen:
                if time.monotonic() > until:
                    break
                row = self.examined(mutant, items)
                results.write(json.dumps(row) + "\n")
                results.flush()
        return True

    def examined(self, mutant: Mutant, items: dict[str, pytest.Item]) -> dict[str, Any]:
        """Tell the fate of one mutant."""
        names = self.tests_for(mutant)
        began = time.monotonic()
        by, how = _in_child(lambda tell: _attack(mutant, [items[name] for name in names], self.seconds, tell))
        if how == "killed":
            self.kills[mutant.function, by] += 1
            self.kills[mutant.module, by] += 1
        elif not names:
            how = "not reached"
        return {
            "name": mutant.name,
            "line": mutant.lines[0],
            "before": mutant.before,
            "after": mutant.after,
            "outcome": how,
            "by": by,
            "tests": len(names),
            "seconds": round(time.monotonic() - began, 2),
        }

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that reach the changed statement, the most promising first, for so many seconds in all."""
        reached = self.reached.get(str(mutant.path), {})
        first, last = mutant.lines
        names = set().union(*(reached.get(line, ()) for line in range(first, last + 1)))
        # What only another process or thread reaches is left to the tests of the module.
        own = "tests/{}/test_{}.py".format(*mutant.module.split(".")[1:])
        names = names or {name for name in self.seconds if name.startswith(own)}

        def order(name: str) -> tuple[float, ...]:
            here, near = self.kills[mutant.function, name], self.kills[mutant.module, name]
            return -here, -near / (1.0 + self.seconds[name]), self.seconds[name]

        chosen, total = [], 0.0
        for name in sorted(names, key=order):
            total += self.seconds[name]
            if total > self.options.seconds and chosen:
                break
            chosen.append(name)
        return chosen


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants to run: those that lived, those asked for by name, or all in random order less those done."""
    every = mutants()
    if options.again:
        lived = {row["name"] for row in results(every) if row["outcome"] != "killed"} - listed()
        every = [mutant for mutant in every if mutant.name in lived]
        return [m for m in every if any(fnmatch(m.name, pattern) for pattern in options.only or ["*"])]
    if options.only:
        return [m for m in every if any(fnmatch(m.name, pattern) for pattern in options.only)]
    done = {row["name"] for row in results(every)}
    # Each name has its own place, so that a new module does not change the order of the others.
    every.sort(key=lambda mutant: random.Random(f"{options.seed} {mutant.name}").random())  # noqa: S311  # no secret
    return [mutant for mutant in every[: options.sample] if mutant.name not in done]


def results(every: list[Mutant]) -> list[dict[str, Any]]:
    """Return the best result of each of these mutants: killed once is killed, because tests are only added.

    What was run on a function before it was changed does not count, but where the change is the same one.
    """
    if not RESULTS.exists():
        return []
    now = {mutant.name: [mutant.before, mutant.after] for mutant in every}
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if now.get(row["name"]) == [row["before"], row["after"]]]
    worst_first = sorted(rows, key=lambda row: ("not reached", "survived", "killed").index(row["outcome"]))
    return list({row["name"]: row for row in worst_first}.values())


def _first_run(items: list[pytest.Item]) -> tuple[dict[str, float], Lines]:
    """Return the seconds of each test and the tests that reach each line, measured in a child process."""
    found, how = _in_child(lambda tell: tell(_measured(items, tell)))
    if how != "survived":
        pytest.exit(f"{found} fails on the unchanged source", 1)
    return found  # type: ignore[no-any-return]


def _measured(items: list[pytest.Item], tell: Callable[[Any], None]) -> tuple[dict[str, float], Lines]:
    watch = coverage.Coverage(data_file=None, include=[str(SOURCE / package / "*") for package in PACKAGES])
    watch.set_option("run:core", "ctrace")
    seconds, lines = {}, defaultdict[str, dict[int, set[str]]](lambda: defaultdict(set))
    watch.start()
    for item in items:
        watch.switch_context(item.nodeid)
        began = time.monotonic()
        if not _passes(item):
            tell(item.nodeid)
            os._exit(1)
        seconds[item.nodeid] = time.monotonic() - began
    watch.stop()
    data = watch.get_data()
    for path in data.measured_files():
        for line, names in data.contexts_by_lineno(path).items():
            lines[path][line] |= {name for name in names if name}
    return seconds, {path: dict(found) for path, found in lines.items()}


def _attack(mutant: Mutant, items: list[pytest.Item], seconds: dict[str, float], tell: Callable[[Any], None]) -> None:
    """Take the mutant's code and run tests until one fails, which is told before it runs, or takes too long."""
    tell("import")
    mutant.apply()
    for item in items:
        tell(item.nodeid)
        # The alarm has no handler, and so ends the process, even in the middle of a long call.
        signal.setitimer(signal.ITIMER_REAL, 4.0 + 8.0 * seconds[item.nodeid])
        if not _passes(item):
            os._exit(1)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    tell("")


def _passes(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))


def _in_child(work: Callable[[Callable[[Any], None]], None]) -> tuple[Any, str]:
    """Do work in a forked process; return the last thing that it told, and True if it survived."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _quiet()
        with os.fdopen(write, "wb") as pipe:

            def tell(what: Any) -> None:
                pickle.dump(what, pipe)
                pipe.flush()

            try:
                work(tell)
            except BaseException:
                os._exit(1)
        os._exit(0)
    os.close(write)
    told = None
    with os.fdopen(read, "rb") as pipe:
        while True:
            try:
                told = pickle.load(pipe)  # noqa: S301  # from our own child
            except (EOFError, pickle.UnpicklingError):
                break
    _, status = os.waitpid(child, 0)
    return told, "survived" if status == 0 else "killed"


def _quiet() -> None:
    """Discard what a child prints, and bound its memory."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def summary() -> str:
    """Return the score by module, with and without the mutants that the page explains, and the unexplained ones."""
    rows, reasons = results(mutants()), listed()
    lines = [f"{'module':<24} mutants killed listed  killed of those not listed"]
    for module in [*sorted({row["name"].split(":")[0] for row in rows}), ""]:
        here = [row for row in rows if row["name"].startswith(f"{module}:" if module else "")]
        killed = sum(row["outcome"] == "killed" for row in here)
        excused = sum(row["outcome"] != "killed" and row["name"] in reasons for row in here)
        share = killed / max(1, len(here) - excused)
        lines.append(
            f"{module.removeprefix('discreet.') or 'all':<24} {len(here):7} {killed:6} {excused:6}  {share:.1%}"
        )
    for row in sorted(rows, key=lambda row: (row["name"].rpartition(":")[0], row["line"])):
        if row["outcome"] != "killed" and row["name"] not in reasons:
            lines.append(f"{row['name']} (line {row['line']}, {row['outcome']}): {row['before']} -> {row['after']}")
    return "\n".join(lines)


def listed() -> set[str]:
    """Return the names of the mutants that docs/appendix/mutants.md lists, as functions with numbers of mutants."""
    found = re.findall(r"`((?:exact|mechanisms)\.\w+:[\w.]+)` ((?:\d+,? ?)+)", PAGE.read_text(encoding="utf-8"))
    return {f"discreet.{function}:{number}" for function, numbers in found for number in re.findall(r"\d+", numbers)}


def main() -> int:
    """Run what the command line asks for, and print the score of all results so far."""
    parser = argparse.ArgumentParser(description="Mutation testing of discreet.exact and discreet.mechanisms.")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the mutants")
    parser.add_argument("--sample", type=int, default=None, help="how many of them to run, all by default")
    parser.add_argument("--minutes", type=float, default=1e9, help="when to stop; a later run goes on from there")
    parser.add_argument("--seconds", type=float, default=12.0, help="of tests that a mutant has to stand, at most")
    parser.add_argument("--again", action="store_true", help="run those that lived and have no reason to once more")
    parser.add_argument("--only", nargs="+", help="names of mutants to run, * and ? allowed")
    parser.add_argument("--tests", nargs="+", default=[*TESTS, "-m", "not slow"], help="what to hand to pytest")
    parser.add_argument("--report", action="store_true", help="only print the score")
    options, more = parser.parse_known_args()
    if not options.report:
        RESULTS.parent.mkdir(exist_ok=True)
        os.chdir(ROOT)
        quiet = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib"]
        code = pytest.main([*quiet, *options.tests, *more], plugins=[Run(options)])
        if code:
            return int(code)
    print(summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
