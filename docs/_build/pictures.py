"""Runs the scripts of the gallery and of the figures: what they draw and print goes to docs/pictures/, for the pages.

    python docs/_build/pictures.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
SCRIPTS = [*sorted((ROOT / "examples" / "gallery").glob("*.py")), ROOT / "examples" / "figures.py"]


def main() -> None:
    """Runs each script in a process of its own, and keeps what it prints."""
    FOLDER.mkdir(exist_ok=True)
    for script in SCRIPTS:
        if script.stem == "picture":
            continue
        print(f"running {script.relative_to(ROOT)}", flush=True)
        command = [sys.executable, "-W", "error", str(script), str(FOLDER)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        (FOLDER / f"{script.stem}.txt").write_text(printed, encoding="utf-8")


if __name__ == "__main__":
    main()
