"""Write the keys of the charts file as tables, read off the program, which docs/charts-file.md includes.

    python docs/_build/charts_keys.py docs/pictures
"""

from __future__ import annotations

import sys
from pathlib import Path

from discreet.publish.charts_file import CHART, FILE, Key


def tables() -> dict[str, str]:
    """Return the tables by name: of the file, of a chart, and of each key that is a table itself."""
    nested = {key.name: key.keys for key in CHART if key.keys}
    return {name: format_table(keys) for name, keys in {"file": FILE, "chart": CHART, **nested}.items()}


def format_table(keys: tuple[Key, ...]) -> str:
    """Return a table with a row for each key."""
    return "\n".join(["| Key | Meaning |", "| --- | --- |", *map(format_row, keys)]) + "\n"


def format_row(key: Key) -> str:
    """Return the row of a key: its name, its meaning and its choices."""
    must = " (required)" if key.is_required else ""
    more = f" One of {', '.join(f'`{choice}`' for choice in key.choices)}." if len(key.choices) > 1 else ""
    return f"| `{key.name}`{must} | {key.says}{more} |"


if __name__ == "__main__":
    for name, table in tables().items():
        Path(sys.argv[1], f"keys-{name}.txt").write_text(table, encoding="utf-8")
