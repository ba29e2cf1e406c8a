"""Write the table of engines and features into docs/engines.md, as the contract of the tests has it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "engines.md"
BEGIN, END = "<!-- made by tools/engines_table.py -->", "<!-- end -->"


def write_table(page: str, lines: list[str]) -> str:
    """Return a page with these lines between the two marks."""
    return re.sub(f"{BEGIN}.*?{END}", "\n\n".join([BEGIN, "\n".join(lines), END]), page, flags=re.DOTALL)


def make_table() -> list[str]:
    """Return the lines of the table."""
    from engine_features import FEATURES
    from engines import SUPPORTED

    lines = [["", *(each.title for each in SUPPORTED)], ["---"] * (len(SUPPORTED) + 1)]
    lines += [[feature, *(each.status(feature) for each in SUPPORTED)] for feature in FEATURES]
    return [f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    PAGE.write_text(write_table(PAGE.read_text(encoding="utf-8"), make_table()), encoding="utf-8")
