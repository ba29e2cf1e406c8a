"""Runs the README as somebody does who has only installed the wheel: its Python blocks in order, then its commands."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

root = Path(sys.argv[1])
readme = (root / "README.md").read_text(encoding="utf-8")
blocks = re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)

# What make demo leaves behind, and the two files of the pipe.
subprocess.run([sys.executable, str(root / "examples" / "ratings.py"), "demo"], check=True, capture_output=True)
Path("demo/charts.toml").write_bytes((root / "examples" / "charts.toml").read_bytes())
budget = ["budget", "init", "demo/budget.db", "--epsilon", "3", "--unit", "users of the demo"]
subprocess.run([sys.executable, "-m", "discreet", *budget], check=True, capture_output=True)
Path("movies.csv").write_bytes(Path("demo/movies.csv").read_bytes())
with gzip.open("ratings.csv.gz", "wt", encoding="utf-8") as file:
    file.write("user_id,movie_id\n" + "".join(f"{i % 97},{i * i % 50}\n" for i in range(3000)))

script = "\n".join(text for language, text in blocks if language == "python")
subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
commands = [
    line for language, text in blocks if not language for line in text.splitlines() if not line.startswith("make ")
]
for command in commands:
    ran = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
    if ran.returncode or not ran.stdout:
        sys.exit(f"{command}\n{ran.stdout}{ran.stderr}")
print(f"README: {len(script.splitlines())} lines of Python and {len(commands)} commands ran as printed")
