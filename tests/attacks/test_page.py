"""The page about attacks names every test, and no test that is not there."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "attacks.md"


def test_the_page_names_every_attack():
    named = re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8"))
    files = [path for path in HERE.glob("test_*.py") if path != Path(__file__)]
    written = [name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)]
    assert sorted(named) == sorted(written)
