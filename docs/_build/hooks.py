"""What MkDocs calls while it builds: the page of the command line is made of the program, and so is never stale."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]

from command_line import reference
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Adds cli.md, which is in no folder."""
    files.append(File.generated(config, "cli.md", content=reference()))
    return files
