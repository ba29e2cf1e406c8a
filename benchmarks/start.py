"""Measure how long a new process takes to import the package, and to release from a small file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from suite import Row, Rows, Run
from timing import medians


def rows(run: Run) -> Rows:
    """Each against importing what it stands on."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.csv"
        lines = [f"item {i},{i * i % 1009}" for i in range(100)]
        file.write_text("\n".join(["item,score", *lines]), encoding="utf-8")
        commands = {
            "numpy, flint": ["-c", "import numpy, flint"],
            "discreet": ["-c", "import discreet"],
            "numpy, flint, typer": ["-c", "import numpy, flint, typer"],
            "select": ["-m", "discreet", "select", str(file), "-k", "10", "--epsilon", "1"],
        }
        tasks = {name: partial(process, arguments) for name, arguments in commands.items()}
        times = medians(tasks, repeats=41 if run.full else 15)
    one = times["numpy, flint"]
    yield Row("import discreet", times["discreet"] / one, "import numpy, flint", 1.5, one=one)
    one = times["numpy, flint, typer"]
    yield Row("discreet select, a CSV of 100 items", times["select"] / one, "import numpy, flint, typer", 1.5, one=one)


def process(arguments: list[str]) -> None:
    """Run a process of its own from start to end; its imports are compiled before, as those that pip installs are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
