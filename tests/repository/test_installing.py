"""Errors about what is not installed name packages that are on the package index, which discreet is not."""

import re
from pathlib import Path

import discreet

SOURCES = Path(discreet.__file__).parent


def test_no_sentence_installs_discreet_from_the_index():
    told = [
        line.strip()
        for path in SOURCES.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "pip install" in line
    ]
    assert len(told) > 5
    assert [line for line in told if re.search(r"pip install ['\"]?discreet", line)] == []
