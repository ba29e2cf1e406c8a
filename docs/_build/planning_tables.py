"""Write the tables of docs/appendix/planning.md again. Each stands between two comments, the first with its command.

    python docs/_build/planning_tables.py                   runs all commands
    python docs/_build/planning_tables.py gammas sketches   runs these scripts alone

The commands take about ten minutes in all, so `make docs` does not run them. They need the paper's score
vectors, in ../shared/datasets or where DISCREET_DATA says; without them nothing is written.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "appendix" / "planning.md"
TABLE = re.compile(r"(<!-- printed by python ([^\n]+) -->\n).*?(<!-- end -->)", re.DOTALL)
NO_VECTORS = "The paper's vectors are not in"


def main() -> None:
    """Run the commands of the page, or those of the scripts that are named, and replace their tables."""
    names = sys.argv[1:]
    for command in list_commands(PAGE.read_text(encoding="utf-8")):
        if names and Path(command.split()[0]).stem not in names:
            continue
        print(f"running {command}", flush=True)
        printed = subprocess.run(
            [sys.executable, *command.split()], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True
        ).stdout
        if NO_VECTORS in printed:
            sys.exit(printed.strip().partition("\n")[0])
        # Read again after each command, because some take minutes and the page may have been edited.
        PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), command, printed), encoding="utf-8")


def list_commands(page: str) -> list[str]:
    """Return the commands that print the tables of a page, in order."""
    return [command for _, command, _ in TABLE.findall(page)]


def replace_table(page: str, command: str, printed: str) -> str:
    """Return the page with the output of a command in the place of the table that it printed before."""

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}\n{printed.strip()}\n\n{found[3]}" if found[2] == command else found[0]

    return TABLE.sub(fill, page)


def find_table(page: str, script: str) -> str:
    """Return what a script, such as "gammas", printed on a page."""
    [table] = [found[0] for found in TABLE.finditer(page) if Path(found[2].split()[0]).stem == script]
    return table


if __name__ == "__main__":
    main()
