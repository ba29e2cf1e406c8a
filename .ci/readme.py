"""Runs the README as somebody does who has only installed the wheel: its Python blocks in order, then its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

root = Path(sys.argv[1])
readme = (root / "README.md").read_text(encoding="utf-8")
blocks = re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)

# What make demo leaves behind.
subprocess.run([sys.executable, str(root / "examples" / "ratings.py"), "demo"], check=True, capture_output=True)

script = "\n".join(text for language, text in blocks if language == "python")
subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
commands = [
    line
    for language, text in blocks
    if not language
    for line in text.replace("\\\n", "").splitlines()
    if not line.startswith("make ")
]
for command in commands:
    ran = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
    if ran.returncode or not ran.stdout:
        sys.exit(f"{command}\n{ran.stdout}{ran.stderr}")
print(f"README: {len(script.splitlines())} lines of Python and {len(commands)} commands ran as printed")
