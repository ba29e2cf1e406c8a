"""What the tests of the site share: where things are, how a command is run, and the blocks of a page."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "error"}


def run(*command, folder, environment=None, code=0):
    """What a command prints, both streams in one; its exit code must be `code`, or anything but 0 for None."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment or ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode if code is None else done.returncode == code, done.stdout
    return done.stdout


def blocks(page):
    """The fenced blocks of a page in order: language, title or nothing, text."""
    text = (DOCS / page).read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)(?: title=\"(.*?)\")?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert text.count("\n```") == 2 * len(fenced), page
    return fenced


def with_programs(folder):
    """An environment in which `python` and `discreet` are those of this repository."""
    programs = folder / ".programs"
    programs.mkdir()
    for name, command in {"python": "", "discreet": " -m discreet"}.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{command} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    return {**ENVIRONMENT, "PATH": f"{programs}:{os.environ['PATH']}"}
