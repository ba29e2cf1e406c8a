"""Measures every part, prints each figure beside its target, and writes JSON, a Markdown table and a plot.

python benchmarks/run.py [--full] [--scale N] [--out FOLDER] [PART ...]
python benchmarks/run.py [--full] [--scale N] [--out FOLDER] --engines NAME,...
python benchmarks/run.py --compare [--against REVISION] [PART ...]

The exit status is 1 where a target is missed, or with --compare where a ratio got worse.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import compare
import curves
from suite import MODULES, PARTS, Result, Row, Run, described, machine, write_table

EVERY = [*PARTS, "curves"]
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Read the arguments and do as they ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(EVERY)}; all by default")
    parser.add_argument("--full", action="store_true", help="the full sizes: twenty minutes or more")
    parser.add_argument("--scale", type=int, default=1, metavar="N", help="all sizes divided by N, to try things out")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go; with --scale nowhere by default")
    parser.add_argument("--compare", action="store_true", help="compare with the last committed results")
    parser.add_argument("--against", metavar="REVISION", help="compare with a revision, measured here in the same way")
    parser.add_argument("--engines", metavar="NAME,...", help="only these engines; stored figures of others are kept")
    given = parser.parse_args()
    engines = find_engines(parser, given.engines)
    run, parts = Run(given.full, given.scale, engines), given.parts or (["engines"] if engines else EVERY)
    if unknown := set(parts) - set(EVERY):
        parser.error(f"PART must be one of {', '.join(EVERY)}, not {', '.join(sorted(unknown))}")
    if given.compare or given.against:
        sys.exit(compare.main(parts, lambda names: [measured(part, run) for part in names], given.against))
    default = None if given.scale > 1 else RESULTS / "full" if given.full else RESULTS
    sys.exit(0 if bench(parts, run, given.out or default) else 1)


def find_engines(parser: argparse.ArgumentParser, given: str | None) -> tuple[str, ...]:
    """Return the names of engines that are given in any case, with commas between them."""
    if given is None:
        return ()
    from every_engine import ENGINES

    known = {name.casefold(): name for name in ENGINES}
    if unknown := [name for name in given.split(",") if name.casefold() not in known]:
        parser.error(f"--engines must be of {', '.join(ENGINES)}, not {', '.join(unknown)}")
    return tuple(known[name.casefold()] for name in given.split(","))


def bench(parts: Iterable[str], run: Run, out: Path | None) -> bool:
    """Measures, prints, writes, and tells whether all targets are met."""
    started, results = time.perf_counter(), []
    print(described(machine()), end="\n\n", flush=True)
    for part in parts:
        if part == "curves":
            curves.main(run, out)
            continue
        begun = time.perf_counter()
        results.append(measured(part, run))
        print(results[-1].text(), f"({time.perf_counter() - begun:.0f} s)\n", sep="", flush=True)
        if out is not None:
            (results[-1].join(out) if run.engines else results[-1]).write(out)
    if out is not None:
        write_table(out)
    rows = [row for result in results for row in result.rows if row.target is not None]
    missed = [row for row in rows if not row.met]
    print(f"{len(rows) - len(missed)} of {len(rows)} targets are met ({time.perf_counter() - started:.0f} s).")
    for row in missed:
        print(f"MISSED: {row.name}: {row.cells()[1]}, measured {row.cells()[2]}")
    return not missed


def measured(part: str, run: Run) -> Result:
    """Return the rows of a part, with progress in a terminal."""
    result = Result(part, machine())
    for found in importlib.import_module(MODULES[part]).rows(run):
        (result.rows if isinstance(found, Row) else result.notes).append(found)
        show(f"{PARTS[part]}: {len(result.rows)} figures")
    show("")
    return result


def show(text: str) -> None:
    """Replace the last line of a terminal; elsewhere nothing is shown."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
