"""Write the tables of three appendices, between the marks that are in their pages.

    python tools/appendix.py verify    runs `discreet verify --all` and the self-test
    python tools/appendix.py speed     reads the committed results of `make bench`
    python tools/appendix.py discovery  measures as `examples/discovery_compared.py`, and writes both pages

The commands print plain text with aligned columns. The pages have Markdown tables, which scroll on a narrow screen.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("benchmarks", "examples")]
from suite import PARTS, Result, Row, described, digits

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "appendix"
RESULTS = ROOT / "benchmarks" / "results"


def replace_tables(page: str, name: str, tables: str) -> str:
    """Return the page with other text between its marks of this name."""
    begin, end = f"<!-- tables: {name} -->\n", "<!-- end of tables -->\n"
    before, mark, rest = page.partition(begin)
    if not mark:
        raise SystemExit(f"the page has no mark for the tables of {name}")
    return f"{before}{begin}\n{tables}\n\n{end}{rest.partition(end)[2]}"


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a Markdown table; the first row is its head."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *others))


def printed_tables(text: str) -> str:
    """Return aligned columns, as commands print them, as Markdown tables; other lines become paragraphs."""
    parts = []
    for block in text.strip().split("\n\n"):
        rows = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
        cells = [row for row in rows if len(row) == len(rows[0])]
        parts += [markdown_table(cells), *(" ".join(row).replace("*", "\\*") for row in rows if row not in cells)]
    return "\n\n".join(parts)


def speed_table(results: Sequence[Result]) -> str:
    """Return how many targets are met, and for each target of each part the range of its figures and the misses."""
    rows, by_target = [], defaultdict[tuple[str, str], list[Row]](list)
    for result in results:
        for row in result.rows:
            if row.target is not None:
                rows.append(row)
                by_target[PARTS[result.part], row.cells()[1]].append(row)
    met = f"{sum(row.met is True for row in rows)} of {len(rows)} targets are met."
    head = ("part", "target", "figures", "measured", "missed")
    table = markdown_table([head, *((*target, *summarize(found)) for target, found in by_target.items())])
    return "\n\n".join([met, table, *(note for result in results for note in result.notes)])


def summarize(rows: Sequence[Row]) -> tuple[str, str, str]:
    """Return the cells for all figures with one target: their number and range, and the worst one that missed."""
    ordered = sorted(rows, key=lambda row: row.measured)
    ends = dict.fromkeys(digits(row.measured) for row in (ordered[0], ordered[-1]))
    missed = [row for row in ordered if not row.met]
    worst = missed[0 if rows[0].at_least else -1].name if missed else ""
    return str(len(rows)), " to ".join(ends), f"{len(missed)}; worst: {worst}" if missed else ""


def read_results() -> list[Result]:
    """Return the committed results, in the order of the parts."""
    files = [RESULTS / f"{part}.json" for part in PARTS]
    return [Result.read(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def write_speed(page: str) -> str:
    """Return the page on speed with the committed results."""
    import every_engine

    results, engines = read_results(), Result.read(every_engine.STORED.read_text(encoding="utf-8"))
    page = replace_tables(page, "engines", every_engine.page_table(engines))
    return replace_tables(page, "speed", f"{described(results[0].machine)}\n\n{speed_table(results)}")


def write_verify(page: str) -> str:
    """Return the page on verification with the tables that its commands print now."""
    commands = {"verify": ["-m", "discreet", "verify", "--all"], "self-test": [str(ROOT / "tools" / "self_test.py")]}
    for name, command in commands.items():
        done = subprocess.run([sys.executable, *command], check=True, stdout=subprocess.PIPE, text=True)
        page = replace_tables(page, name, printed_tables(done.stdout))
    return write_coverage(page)


def write_coverage(page: str) -> str:
    """Return the page on verification with the table of how often the bound of a shortfall holds."""
    command = [sys.executable, str(ROOT / "examples" / "shortfall_coverage.py")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return replace_tables(page, "coverage", done.stdout.strip())


def write_discovery(page: str) -> str:
    """Return the page on discovery with the figures of all methods; write those of the page that cites it."""
    import discovery_compared

    shares, errors = discovery_compared.measure()
    cites = ROOT / "docs" / "discovery-compared.md"
    text = replace_tables(cites.read_text(encoding="utf-8"), "usual", discovery_compared.format_usual(shares))
    cites.write_text(replace_tables(text, "behind", discovery_compared.format_behind(shares)), encoding="utf-8")
    page = replace_tables(page, "shares", discovery_compared.format_shares(shares))
    return replace_tables(page, "errors", discovery_compared.format_errors(errors))


def main() -> None:
    """Write the tables of the page that the command line names."""
    writers = {"verify": write_verify, "speed": write_speed, "discovery": write_discovery}
    if len(sys.argv) != 2 or sys.argv[1] not in writers:
        raise SystemExit(f"usage: python tools/appendix.py {'|'.join(writers)}")
    file = PAGES / f"{sys.argv[1]}.md"
    file.write_text(writers[sys.argv[1]](file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
