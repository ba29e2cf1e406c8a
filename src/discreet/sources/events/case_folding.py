"""Unicode simple case folding, one character to one, by a table of a named Unicode version that ships with the package.

Engines have functions for lower and upper case, but they differ in 'ß', 'İ' and final sigma, by their versions and by
the locale. `tools/case_folding.py` makes the table. Folding a folded text changes nothing.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

_FILE = "case_folding.json"


@cache
def read_table() -> tuple[str, list[tuple[int, int, int, int]]]:
    """Return the Unicode version, and the runs of characters that fold to others.

    A run is the first and the last code point, the step between neighbours, and the distance to what each folds to.
    """
    table = json.loads(files(__package__).joinpath(_FILE).read_text("ascii"))
    return table["unicode"], [(first, last, step, offset) for first, last, step, offset in table["runs"]]


@cache
def list_folds() -> dict[int, int]:
    """Return the code point that each character folds to, without those that stay."""
    runs = read_table()[1]
    return {code: code + offset for first, last, step, offset in runs for code in range(first, last + 1, step)}


def fold_case(text: str) -> str:
    """Return a text after simple case folding.

    Examples
    --------
    >>> fold_case("ÄRGER, Straße, ΣΊΣΥΦΟΣ, İ")
    'ärger, straße, σίσυφοσ, İ'
    """
    # A to Z are the characters of ASCII that fold; `lower` takes a fifth of the time there.
    return text.lower() if text.isascii() else text.translate(list_folds())
