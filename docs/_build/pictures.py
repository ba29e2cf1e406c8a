"""Run the scripts of the gallery and of other pages, and keep their pictures and output in docs/pictures/.

    python docs/_build/pictures.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
EXAMPLES = ROOT / "examples"
COLUMNS = {"COLUMNS": "50"}
"""The width of the printed lists, in letters: as many as a phone shows."""

OTHERS = ("figures", "discovery_compared", "quality")
SCRIPTS = [*sorted((EXAMPLES / "gallery").glob("*.py")), *(EXAMPLES / f"{name}.py" for name in OTHERS)]


def main() -> None:
    """Run each script in a process of its own and keep its output."""
    FOLDER.mkdir(exist_ok=True)
    for script in SCRIPTS:
        if script.stem == "picture":
            continue
        print(f"running {script.relative_to(ROOT)}", flush=True)
        command = [sys.executable, "-W", "error", str(script), str(FOLDER)]
        environment = {**os.environ, **COLUMNS}
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        (FOLDER / f"{script.stem}.txt").write_text(printed, encoding="utf-8")


if __name__ == "__main__":
    main()
