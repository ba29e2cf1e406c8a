"""Run the README as somebody does who has only installed the wheel: its Python blocks in order, then its commands.

python .ci/readme.py ROOT            the blocks that need nothing but the wheel
python .ci/readme.py ROOT sklearn    those that need scikit-learn, which an extra installs
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

root, extra = Path(sys.argv[1]), sys.argv[2:]
readme = (root / "README.md").read_text(encoding="utf-8")
blocks = re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
python = [text for language, text in blocks if language == "python" and ("sklearn" in text) == bool(extra)]
script = "\n".join(python)

if not extra:
    # The files of make demo.
    subprocess.run([sys.executable, str(root / "examples" / "ratings.py"), "demo"], check=True, capture_output=True)
    shutil.copy(root / "examples" / "charts.toml", "demo")
subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
commands = [
    line
    for language, text in blocks
    if language == "sh" and not extra
    for line in text.replace("\\\n", "").splitlines()
    if line.startswith("discreet ")
]
for command in commands:
    ran = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
    if ran.returncode or not ran.stdout:
        sys.exit(f"{command}\n{ran.stdout}{ran.stderr}")
print(f"README: {len(script.splitlines())} lines of Python and {len(commands)} commands ran as printed")
