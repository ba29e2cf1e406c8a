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


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from engine_features import make_table

    PAGE.write_text(write_table(PAGE.read_text(encoding="utf-8"), make_table()), encoding="utf-8")
